"""Engines for placements: each answers a question, and all are judged in one way."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import inf
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.model import violations
from crossopt.formulation.placement.assignment import assignment_model, device_of_blocks, machine_of, values_at
from crossopt.formulation.placement.blocks import Blocks, blocks_of
from crossopt.formulation.placement.reductions import contracted
from crossopt.formulation.placement.stages import Stages, stage_of, stages_model
from crossopt.formulation.placement.stages import values_at as stage_values_at
from crossopt.formulation.rounding import real
from crossopt.instances.errors import RefusedError, SolverError
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.instances.placement.question import too_large
from crossopt.solvers.answer import Counted, Found, Limits, Progress, Trace, Watch, Word, gap_between
from crossopt.solvers.backends import backend
from crossopt.solvers.backends.answer import Answer, Event, Spend
from crossopt.solvers.family import solve
from crossopt.solvers.placement.answer import COARSE_GAP, COUNTING, LEAST_GAP, Placement, ended, placement_of
from crossopt.solvers.placement.bounds.along.bound import PROOF as PROOF_ALONG
from crossopt.solvers.placement.bounds.along.bound import Along, along
from crossopt.solvers.placement.bounds.blocks import PROOF, least_busiest, least_stage
from crossopt.solvers.placement.bounds.ideals import Best, best_by_ideals
from crossopt.solvers.placement.family import FAMILY
from crossopt.solvers.placement.judge import judge
from crossopt.solvers.placement.latency.engine import latency
from crossopt.solvers.placement.portfolio import Known, solved_together
from crossopt.solvers.placement.rivals import rivals_of
from crossopt.solvers.placement.search.orders import staged_start
from crossopt.solvers.placement.search.restarts import improved

Engine = Callable[[PlacementQuestion, Limits, Watch], Found[Placement]]
_WORKERS = 3
_STARTING, _ANNEALING, _SWEEPING = 0.1, 0.2, 0.75
"""Shares of the time limit after which starts and bounds from single blocks end, then annealing, then other bounds."""
_LONGEST_SWEEP = 300.0
"""Seconds after which bounds along all blocks end where no time limit is given: the integer model has its turn."""
_PRICING, _SHORTEST_PRICING, _LONGEST_PRICING = 0.3, 3.0, 100.0
"""The share of the time limit that prices of blocks take, and the seconds below which it is not worth the while, and at the most."""
_SHORTAGE = 10.0
"""Seconds for the least memory that would do."""
_ROUNDED = 1.0 + 1e-9
"""Sums in another order may be larger by less than this share."""


def stages(question: PlacementQuestion, limits: Limits, watch: Watch) -> Found[Placement]:
    """Stages along many orders, then the integer model of all stages, solved by CP-SAT."""
    began = monotonic()
    reasons = too_large(question)
    found = _none(reasons) if reasons else _stages(question, limits, watch, began)
    return ended(question, "stages", found, rivals_of(question), began)


def _stages(question: PlacementQuestion, limits: Limits, watch: Watch, began: float) -> Found[Placement]:
    blocks = blocks_of(question.graph, staged=True)
    start = staged_start(question, blocks, began + _STARTING * limits.seconds)
    known = None if start.value == float("inf") else devices_of(question, blocks, start.stage, start.cpu)
    value = float("inf") if known is None else judge(question, known).value
    first = ((monotonic() - began, None if known is None else value, None),)
    greatest = min(value * _ROUNDED, most(blocks))
    overlapped = question.communication == "overlapped"
    near = max(limits.gap, LEAST_GAP) * value
    try:
        least, proof = least_busiest(question, blocks, greatest, began + _STARTING * limits.seconds), PROOF
        if known is None or value - least > near:
            best = best_by_ideals(question, value, began + _STARTING * limits.seconds)
            if best is not None and (found := _by_ideals(question, best, known, limits.gap, first)):
                return found
        if known is not None and value - least > near:
            left = Spend(seconds=max(limits.seconds - (monotonic() - began), 0.0), gap=0.0, workers=_WORKERS, seed=limits.seed)
            least, proof = least_stage(question, blocks, start, greatest, least, left)
    except KeyboardInterrupt:
        return Found(_placement(question, known), stopped="interrupted", trace=first)
    if known is not None and value - least <= near:
        return Found(_placement(question, known), least, Word(proof), trace=first)
    model = stages_model(blocks, question.accelerators, question.cpus, question.memory, overlapped, greatest, least)
    hint = None if known is None else stage_values_at(model, blocks, start.stage, _kinds(question, start.cpu))
    spend = Spend(
        seconds=max(limits.seconds - (monotonic() - began), 0.0),
        gap=max(limits.gap - LEAST_GAP, 0.0),
        workers=_WORKERS,
        seed=limits.seed,
        hint=hint,
        watch=_shown(watch, model, value),
    )
    answer = backend("cpsat")(model.model, spend)
    return _found(question, blocks, model, answer, known, first)


def _by_ideals(question: PlacementQuestion, best: Best, known: Whole | None, gap: float, first: Trace) -> Found[Placement] | None:
    """The answer of the program, or None where rounded figures keep its placement from being as good as its bound."""
    if known is None and best.device_of is None:
        return Found(None, inf, Counted(best.proof), reasons=_shortage(question), trace=first) if best.bound == inf else None
    device_of = _better(question, known, best.device_of)
    verdict = None if device_of is None else judge(question, device_of)
    if verdict is None or not verdict.accepted or verdict.value - best.bound > max(gap, LEAST_GAP) * verdict.value:
        return None
    return Found(_placement(question, device_of), best.bound, Counted(best.proof), trace=first)


def _found(
    question: PlacementQuestion,
    blocks: Blocks,
    model: Stages,
    answer: Answer,
    known: Whole | None,
    first: Trace,
) -> Found[Placement]:
    quantum = model.figures.quantum
    offset = first[-1][0]
    trace = [(event.seconds + offset, _real(event.value, quantum), _real(event.bound, quantum)) for event in answer.trace]
    if answer.status == "INFEASIBLE":
        _refuse_lie(known, answer.solver)
        return Found(None, inf, Word(answer.solver), reasons=_shortage(question), trace=first)
    device_of = known
    if answer.values is not None:
        kinds = [bool(answer.values[variable]) for variable in model.cpu]
        device_of = _better(question, known, devices_of(question, blocks, stage_of(model, answer.values), kinds))
    bound = None if answer.bound is None or device_of is None else real(answer.bound, quantum)
    stopped = answer.stopped if answer.stopped in {"time limit", "interrupted"} else "complete"
    proof = Word(f"{answer.solver}, in whole quanta of {quantum:.1e} ms")
    return Found(_placement(question, device_of), bound, proof, stopped=stopped, trace=(*first, *trace))


def _shortage(question: PlacementQuestion) -> tuple[str, ...]:
    """Why there is no placement, and the least memory that would do: the busiest device where bytes are the work."""
    graph = replace(question.graph, accelerator_time=question.graph.size, transfer=np.zeros(len(question.graph)))
    asked = replace(question, graph=graph, memory=float("inf"), communication="calls")
    found = solve(FAMILY, asked, "auto", Limits(seconds=_SHORTAGE), lambda progress: None)
    words = f"no placement keeps the memory of every accelerator, {question.memory:,.0f} bytes"
    if found.value is None:
        return (words,)
    surely = "" if found.status == "OPTIMAL" or found.bound is None else f", and less than {found.bound:,.0f} would not"
    return (f"{words}; {found.value:,.0f} bytes each would do{surely} (--memory, or more of them: --devices)",)


def _refuse_lie(known: Whole | None, solver: str) -> None:
    """A SolverError where a solver sees no placement and there is one."""
    if known is not None:
        raise SolverError(f"{solver} broke its word: it calls a model infeasible of which a placement is known")


def most(blocks: Blocks) -> float:
    """No device of a placement that keeps the rules is busier than this."""
    finite = np.where(np.isfinite(blocks.accelerator_time), blocks.accelerator_time, 0.0)
    return float(np.maximum(finite, blocks.cpu_time).sum() + blocks.transfer.sum()) * (1.0 + 1e-9) + 1e-9


def devices_of(question: PlacementQuestion, blocks: Blocks, stage: Sequence[int], kinds: Sequence[bool]) -> Whole:
    """The device of every node, from the stage of every block and the kind of every stage."""
    accelerators, cpus = iter(range(question.accelerators)), iter(range(question.accelerators, len(question.devices)))
    device = [next(cpus) if kind else next(accelerators) for kind in kinds]
    return np.array([device[stage[block]] for block in blocks.block_of.tolist()], np.int64)


def _kinds(question: PlacementQuestion, cpu: Sequence[bool]) -> list[bool]:
    """Kinds of all stages: those that are used, and idle ones for the other devices."""
    left = question.cpus - sum(cpu)
    idle = len(question.devices) - len(cpu) - left
    return [*cpu, *[True] * left, *[False] * idle]


def _shown(watch: Watch, model: Stages, known: float) -> Callable[[Event], bool]:
    def show(event: Event) -> bool:
        best = _real(event.value, model.figures.quantum)
        best = min((value for value in (best, known) if value is not None), default=None)
        watch(Progress("stages", best if best != float("inf") else None, _real(event.bound, model.figures.quantum)))
        return False

    return show


def _real(quanta: int | None, quantum: float) -> float | None:
    return None if quanta is None else real(quanta, quantum)


def portfolio(question: PlacementQuestion, limits: Limits, watch: Watch) -> Found[Placement]:
    """Any blocks on any device, or convex devices: HiGHS and CP-SAT on one model, from the best stages."""
    began = monotonic()
    reasons = too_large(question)
    if reasons:
        return replace(_none(reasons), engine="portfolio")
    near = replace(limits, gap=max(limits.gap, COARSE_GAP))
    found = replace(_portfolio(question, near, watch, began), coarse=COARSE_GAP)
    return ended(question, "portfolio", found, rivals_of(question), began)


def _portfolio(question: PlacementQuestion, limits: Limits, watch: Watch, began: float) -> Found[Placement]:
    convex = question.contiguity == "convex"
    blocks, machine = blocks_of(question.graph, staged=convex), machine_of(question)
    known, least, proof, ended = _started(question, blocks, limits, watch, began)
    if ended:
        return Found(_placement(question, known), None if known is None else least, Word(proof), stopped="interrupted")
    if known is not None and gap_between(judge(question, known).value, least) <= limits.gap:
        return Found(_placement(question, known), least, Word(proof))
    value = most(blocks) if known is None else min(judge(question, known).value * (1.0 + COARSE_GAP), most(blocks))
    if not convex:
        blocks = contracted(blocks, machine, value)
    model = assignment_model(blocks, machine, value, least)
    hint = None
    if known is not None:
        device = np.zeros(len(blocks), np.int64)
        device[blocks.block_of] = known
        hint = values_at(model, blocks, machine, device.tolist())
        hint = None if violations(model.model, hint) else hint
    quantum = model.figures.quantum

    def show(state: Known) -> None:
        watch(Progress("HiGHS and CP-SAT", _real(state.value, quantum), _real(state.bound, quantum)))

    seconds = max(limits.seconds - (monotonic() - began), 0.0)
    end = solved_together(model.model, hint, seconds, limits.gap / 2.0, limits.seed, show)
    trace = tuple((at, _real(found, quantum), _real(bound, quantum)) for at, found, bound in end.trace)
    if end.bound is None:
        _refuse_lie(known, " and ".join(end.solvers))
        return Found(None, inf, Word(" and ".join(end.solvers)), reasons=_shortage(question))
    device_of = known if end.values is None else np.array(device_of_blocks(model, end.values), np.int64)[blocks.block_of]
    best = _better(question, known, device_of)
    bound = real(end.bound, quantum)
    if bound > least:
        least, proof = bound, f"{' and '.join(end.solvers)}, in whole quanta of {quantum:.1e} ms"
    return Found(_placement(question, best), None if best is None else least, Word(proof), stopped=end.stopped, trace=trace)


def _started(
    question: PlacementQuestion, blocks: Blocks, limits: Limits, watch: Watch, began: float
) -> tuple[Whole | None, float, str, bool]:
    """A placement that is known, a bound of all with its proof, and whether Ctrl-C ended it.

    The best stages, and what annealing makes of them; bounds from single blocks, by prices, and along all blocks.
    """
    known, least, proof = None, 0.0, PROOF
    try:
        known = _staged_devices(question, began + _STARTING * limits.seconds)
        greatest = most(blocks) if known is None else min(judge(question, known).value * _ROUNDED, most(blocks))
        least = least_busiest(question, blocks, greatest, began + _STARTING * limits.seconds)
        if known is not None and question.contiguity != "convex":
            for better in improved(question, known, limits.seed, began + _ANNEALING * limits.seconds, least):
                known = better
        if known is not None:
            value = judge(question, known).value
            for found, by in _bounds(question, blocks, limits, value, least, began):
                least, proof = (found.bound, by) if found.bound > least else (least, proof)
                for placement in found.placements:
                    known = _better(question, known, placement)
                value = judge(question, known).value if known is not None else value
                watch(Progress("along the blocks" if by == PROOF_ALONG else "prices of blocks", value, least))
                if gap_between(value, least) <= limits.gap:
                    break
    except KeyboardInterrupt:
        return known, least, proof, True
    return known, least, proof, False


def _bounds(
    question: PlacementQuestion, blocks: Blocks, limits: Limits, value: float, least: float, began: float
) -> Iterator[tuple[Along, str]]:
    """Bounds by prices of blocks, then along all blocks, with what proves them."""
    machine, limit = machine_of(question), value * (1.0 - limits.gap / 2.0)
    seconds = min(_PRICING * limits.seconds, _LONGEST_PRICING, began + _SWEEPING * limits.seconds - monotonic())
    if seconds >= _SHORTEST_PRICING:
        from crossopt.solvers.placement.bounds.set_partitioning import PROOF as PROOF_BY_PRICES  # noqa: PLC0415 - it loads a compiler
        from crossopt.solvers.placement.bounds.set_partitioning import priced  # noqa: PLC0415

        for bound in priced(blocks, machine, limit, least, monotonic() + seconds):
            yield Along(bound, ()), PROOF_BY_PRICES
    for found in along(blocks, machine, limit, least, began + min(_SWEEPING * limits.seconds, _LONGEST_SWEEP)):
        yield found, PROOF_ALONG


def _better(question: PlacementQuestion, known: Whole | None, found: Whole | None) -> Whole | None:
    """What was found, if the judge accepts it and sees none better in what is known: rounded sizes may let a little too much in."""
    if found is None:
        return known
    verdict = judge(question, found)
    return found if verdict.accepted and (known is None or verdict.value <= judge(question, known).value) else known


def _staged_devices(question: PlacementQuestion, deadline: float) -> Whole | None:
    """The best stages along some orders: they are convex, and a placement without contiguity too."""
    blocks = blocks_of(question.graph, staged=True)
    start = staged_start(question, blocks, deadline)
    return None if start.value == float("inf") else devices_of(question, blocks, start.stage, start.cpu)


def _none(reasons: tuple[str, ...]) -> Found[Placement]:
    """Sizes alone show that there is no placement."""
    return Found(None, inf, COUNTING, reasons=reasons)


def _placement(question: PlacementQuestion, device_of: Whole | None) -> Placement | None:
    return None if device_of is None else placement_of(question, device_of)


ENGINES: dict[str, Engine] = {"portfolio": portfolio, "stages": stages, "latency": latency}
BY_CONTIGUITY = {"stages": "stages", "convex": "portfolio", "no": "portfolio"}


def answered(engine: str, question: PlacementQuestion, limits: Limits, watch: Watch) -> Found[Placement]:
    """The answer of an engine; `auto` is the one for the problem and the contiguity that are asked."""
    of_latency = question.problem == "latency"
    fitting = "latency" if of_latency else BY_CONTIGUITY[question.contiguity]
    if engine not in {"auto", fitting}:
        asked = "--problem latency" if of_latency else f"--contiguous {question.contiguity}"
        raise RefusedError(f"the engine {engine} does not answer {asked}; take {fitting}, or none")
    return ENGINES[fitting](question, limits, watch)
