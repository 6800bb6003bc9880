"""Any blocks on any device, or convex devices: from the best stages by annealing and bounds to HiGHS and CP-SAT on one model."""

from collections.abc import Iterator
from dataclasses import replace
from math import inf
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.model import Values, real, violations
from crossopt.formulation.placement.blocks import Blocks, blocks_of
from crossopt.formulation.placement.latency import greatest_of
from crossopt.formulation.placement.throughput import Assignment, assignment_model, contract, device_of_blocks, machine_of, values_at
from crossopt.instances.errors import FailedError
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.instances.placement.question import too_large
from crossopt.solvers.answer import Found, Limits, Progress, Watch
from crossopt.solvers.placement.answer import COARSE_GAP, Placement, ended
from crossopt.solvers.placement.bounds.along.bound import MOST_REPEATED, along
from crossopt.solvers.placement.bounds.along.bound import PROOF as PROOF_ALONG
from crossopt.solvers.placement.bounds.blocks import PROOF, least_busiest
from crossopt.solvers.placement.bounds.branches import branched
from crossopt.solvers.placement.search.orders import staged_start
from crossopt.solvers.placement.search.restarts import improved
from crossopt.solvers.placement.throughput.rivals import rivals_of
from crossopt.solvers.placement.throughput.run import Run, devices_of, in_time, none_by, none_by_size, start_many
from crossopt.solvers.placement.throughput.together import Known, solved_together
from crossopt.solvers.proofs import Priced, Proof, Surrounded, Swept, Word

_STARTING, _ANNEALING, _SWEEPING = 0.1, 0.2, 0.75
"""Shares of the time limit after which starts and bounds from single blocks end, then annealing, then other bounds."""
_LONGEST_SWEEP = 300.0
"""Seconds after which bounds along all blocks end where no time limit is given: the integer model has its turn."""
_PRICING, _SHORTEST_PRICING, _LONGEST_PRICING = 0.3, 3.0, 100.0
"""The share of the time limit that prices of blocks take, and the seconds below which it is not worth the while, and at the most."""


def portfolio(question: PlacementQuestion, limits: Limits, watch: Watch) -> Found[Placement]:
    """The least busy placement, as near as models can tell, with its proof."""
    began = monotonic()
    reasons = too_large(question)
    if reasons:
        return replace(none_by_size(reasons), engine="portfolio")
    near = replace(limits, gap=max(limits.gap, COARSE_GAP))
    found = replace(_portfolio(question, near, watch, began), coarse=COARSE_GAP)
    return ended(question, "portfolio", found, rivals_of(question), began)


def _portfolio(question: PlacementQuestion, limits: Limits, watch: Watch, began: float) -> Found[Placement]:
    convex, run = question.contiguity == "convex", Run(question, near=limits.gap)
    blocks, machine = blocks_of(question.graph, staged=convex), machine_of(question)
    try:
        _start(run, blocks, limits, watch, began)
    except KeyboardInterrupt:
        return run.found(stopped="interrupted")
    if run.closed():
        return run.found()
    value = min(run.value * (1.0 + COARSE_GAP), greatest_of(blocks))
    if not convex:
        blocks = contract(blocks, machine, value)
    model = assignment_model(blocks, machine, value, run.bound)
    quantum = model.figures.quantum

    def show(state: Known) -> None:
        watch(Progress("HiGHS and CP-SAT", in_time(state.value, quantum), in_time(state.bound, quantum), run.answer))

    hint, seconds = _hint(run, blocks, model), max(limits.seconds - (monotonic() - began), 0.0)
    try:
        end = solved_together(model.model, hint, seconds, limits.gap / 2.0, limits.seed, show)
    except FailedError as error:
        if run.known is None:
            raise
        return replace(run.found(stopped="interrupted"), notes=(f"both solvers ended early: {error}",))
    trace = tuple((at, in_time(found, quantum), in_time(bound, quantum)) for at, found, bound in end.trace)
    solvers, left = " and ".join(end.solvers), limits.seconds - (monotonic() - began)
    bound = inf if end.bound is None else real(end.bound, quantum)
    watch(Progress("a tree in whole numbers", run.value, run.bound, run.answer))
    shown = branched(question, value, bound, began, left) if end.stopped == "complete" else None
    if end.bound is None:
        return none_by(question, run.known, shown[1] if shown and shown[0] >= value else Word(solvers))
    if shown:
        run.raise_bound(*shown)
    run.improve(None if end.values is None else np.array(device_of_blocks(model, end.values), np.int64)[blocks.block_of])
    run.raise_bound(real(end.bound, quantum), Word(f"{solvers}, in whole quanta of {quantum:.1e} ms"))
    return replace(run.found(stopped=end.stopped, trace=trace), notes=end.notes)


def _hint(run: Run, blocks: Blocks, model: Assignment) -> Values | None:
    """What is known as a solution of the model, if it is one."""
    if run.known is None:
        return None
    device = np.zeros(len(blocks), np.int64)
    device[blocks.block_of] = run.known
    hint = values_at(model, blocks, machine_of(run.question), device.tolist())
    return None if violations(model.model, hint) else hint


def _start(run: Run, blocks: Blocks, limits: Limits, watch: Watch, began: float) -> None:
    """The best stages, and what annealing makes of them; bounds from single blocks, by prices, and along all blocks."""
    question = run.question
    start_many(run, blocks, watch)
    run.improve(staged_devices(question, began + _STARTING * limits.seconds))
    greatest = run.greatest(blocks)
    held = least_busiest(question, blocks, greatest, began + _STARTING * limits.seconds)
    run.raise_bound(held.bound, Surrounded(PROOF, greatest, held.block))
    if run.known is None:
        return
    watch(Progress("stages along orders", run.value, run.bound, run.answer))
    if question.contiguity != "convex":
        for better in improved(question, run.known, limits.seed, began + _ANNEALING * limits.seconds, run.bound):
            run.improve(better)
            watch(Progress("annealing", run.value, run.bound, run.answer))
    for bound, proof, placements in _bounds(run, blocks, limits, began):
        run.raise_bound(bound, proof)
        for placement in placements:
            run.improve(placement)
        watch(Progress("prices of blocks" if isinstance(proof, Priced) else "along the blocks", run.value, run.bound, run.answer))
        if run.closed():
            break


def _bounds(run: Run, blocks: Blocks, limits: Limits, began: float) -> Iterator[tuple[float, Proof, tuple[Whole, ...]]]:
    """Bounds by prices of blocks, then along all blocks, with what proves them and the placements that come of it."""
    machine, limit, least = machine_of(run.question), run.value * (1.0 - limits.gap / 2.0), run.bound
    seconds = min(_PRICING * limits.seconds, _LONGEST_PRICING, began + _SWEEPING * limits.seconds - monotonic())
    if seconds >= _SHORTEST_PRICING:
        from crossopt.solvers.placement.bounds.set_partitioning import PROOF as PROOF_BY_PRICES  # noqa: PLC0415 - it loads a compiler
        from crossopt.solvers.placement.bounds.set_partitioning import priced  # noqa: PLC0415

        for priced_so in priced(blocks, machine, limit, least, monotonic() + seconds):
            yield priced_so.bound, Priced(PROOF_BY_PRICES, limit, tuple(priced_so.prices.tolist())), ()
    for found in along(blocks, machine, limit, least, began + min(_SWEEPING * limits.seconds, _LONGEST_SWEEP)):
        again = found.states <= MOST_REPEATED
        yield found.bound, Swept(PROOF_ALONG, limit, found.states) if again else Word(PROOF_ALONG), found.placements


def staged_devices(question: PlacementQuestion, deadline: float) -> Whole | None:
    """The best stages along some orders: they are convex, and a placement without contiguity too."""
    blocks = blocks_of(question.graph, staged=True)
    start = staged_start(question, blocks, deadline)
    return None if start.value == float("inf") else devices_of(question, blocks, start.stage, start.cpu)
