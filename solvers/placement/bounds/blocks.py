"""What a device must do that holds a certain block: a bound on the busiest device that needs no solver.

Whoever holds block b on an accelerator holds some set S of blocks with b in it, does their work and pays for the nets that S cuts:

    T >= least over S with b in S of  sum of p over S + sum of c over the nets with a pin in S and a pin outside

which is a minimum cut between b and a sink that every block b' leads to with capacity p_b'; a net becomes two nodes joined by its cost,
into which all its pins lead and out of which all its pins are reached (Lawler 1973). On a CPU it is q_b at least. All capacities are whole
quanta, rounded down, so that the cut is exact and no placement is below it. One block and the limit are all that shows a bound again.
"""

from collections.abc import Iterator
from dataclasses import replace
from time import monotonic
from typing import NamedTuple

from crossopt.formulation.model import real
from crossopt.formulation.placement.blocks import Blocks, Edge, Figures, Network, figures_of, least_cut, network_of
from crossopt.instances.placement.graph import PlacementQuestion

PROOF = "the least that a device with one of the blocks must do, by minimum cuts"
_STEPS, _CUTS = 1 << 40, 40


class Held(NamedTuple):
    """A bound in milliseconds, and the block whose holder is that busy."""

    bound: float
    block: int


def least_busiest(question: PlacementQuestion, blocks: Blocks, greatest: float, deadline: float = float("inf")) -> Held:
    """The greatest of these bounds for placements no busier than `greatest`, and never above that.

    Blocks whose own work and nets are less than it are not looked at, nor more than some blocks, nor any after the deadline. Where
    transfers run behind the work, they count for nothing here.
    """
    figures, cpus = _figures(question, blocks, greatest), question.cpus
    most = alone(blocks, figures)
    own = [_either(work, cpu, cpus) if runs else 0 for work, cpu, runs in _rows(figures)]
    block = max(range(len(blocks)), key=lambda one: own[one])
    best, network, asked = own[block], None, 0
    for one in sorted(range(len(blocks)), key=lambda one: -most[one]):
        if asked == _CUTS or monotonic() >= deadline:
            break
        if min(most[one], figures.cpu[one] if cpus and figures.supported[one] else most[one]) <= best:
            continue
        if figures.supported[one] and most[one] > figures.accelerator[one]:
            network = network_of(_edges(blocks, figures)) if network is None else network
            asked += 1
        found = _least_load(blocks, figures, one, cpus, network)
        if found > best:
            best, block = found, one
    return Held(min(greatest, real(best, figures.quantum)), block)


def least_with(question: PlacementQuestion, blocks: Blocks, greatest: float, block: int) -> float:
    """The bound that one block gives, in milliseconds, for placements no busier than `greatest`."""
    figures = _figures(question, blocks, greatest)
    return min(greatest, real(_least_load(blocks, figures, block, question.cpus, network_of(_edges(blocks, figures))), figures.quantum))


def _least_load(blocks: Blocks, figures: Figures, block: int, cpus: int, network: "Network | None") -> int:
    """What whoever holds a block does at least, in quanta; its own work where there is no network."""
    if not figures.supported[block]:
        return figures.cpu[block] if cpus else 0
    on_accelerator = figures.accelerator[block] if network is None else least_cut(network, block, len(blocks))
    return _either(on_accelerator, figures.cpu[block], cpus)


def _either(on_accelerator: int, on_cpu: int, cpus: int) -> int:
    return min(on_accelerator, on_cpu) if cpus else on_accelerator


def _rows(figures: Figures) -> Iterator[tuple[int, int, bool]]:
    return zip(figures.accelerator, figures.cpu, figures.supported, strict=True)


def _figures(question: PlacementQuestion, blocks: Blocks, greatest: float) -> Figures:
    figures = figures_of(blocks, question.memory, greatest, _STEPS)
    overlapped = question.communication == "overlapped"
    return replace(figures, transfer=[0] * len(figures.transfer)) if overlapped else figures


def alone(blocks: Blocks, figures: Figures) -> list[int]:
    """What a device does that holds this block and no other; what it does at the most, where no accelerator can."""
    found = [work if runs else max(work, cpu) for work, cpu, runs in zip(figures.accelerator, figures.cpu, figures.supported, strict=True)]
    for pins, cost in zip(blocks.nets, figures.transfer, strict=True):
        for pin in pins:
            found[pin] += cost
    return found


def _edges(blocks: Blocks, figures: Figures) -> Iterator[Edge]:
    """Blocks as they are numbered, then the sink, then two nodes for each net."""
    sink = len(blocks)
    for block, work in enumerate(figures.accelerator):
        yield block, sink, work
    for number, (pins, cost) in enumerate(zip(blocks.nets, figures.transfer, strict=True)):
        entry = sink + 1 + 2 * number
        yield entry, entry + 1, cost
        for pin in pins:
            yield pin, entry, None
            yield entry + 1, pin, None
