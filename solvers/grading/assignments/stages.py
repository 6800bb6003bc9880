"""Assignment 3: a chain of layers cut into pipeline stages, by dynamic programming and by an integer model, judged layer by layer."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from random import Random

from crossopt.solvers.grading.handed_model import solved
from crossopt.solvers.grading.handouts import public
from crossopt.solvers.grading.marks import FULL, Assignment, Case, Task, Verdict, by_gap, number, shown, whole_numbers
from crossopt.solvers.grading.plans_held import HALF, Plan, saying
from crossopt.solvers.grading.walls.running import Call

Chain = tuple[list[int], list[int]]
"""Microseconds of each layer, and of handing its output to the next layer where that is on another stage; the last hands on nothing."""

_NEAR, _BOUND_NEAR = 0.1, 0.001
_CUTS = 5
"""Drawn to try a model with."""


def tasks(seed: str) -> tuple[Task, ...]:
    """Chains of up to 120 layers, the last of each kind with as many stages as layers."""
    random, handed = Random(f"{seed}/03"), public("03-pipeline-stages")
    drawn = Random(f"{seed}/03/plans")
    times, messages, most = handed["times"], handed["messages"], handed["stages"]
    many = [(times, messages, most), *((*_chain(random, layers), stages) for layers, stages in ((120, 8), (60, 5), (40, 1), (12, 12)))]
    few = [(times, messages, most), *((*_chain(random, layers), stages) for layers, stages in ((12, 3), (10, 4), (5, 5)))]
    bounds = [(times, most), *((_chain(random, layers)[0], stages) for layers, stages in ((50, 7), (9, 8), (30, 1)))]
    within = [(times, messages, handed["limit"]), *(_within(random, layers, stages) for layers, stages in ((80, 6), (40, 9), (6, 1)))]
    return (
        Task("the quickest stages by dynamic programming: best_stages", 35, tuple(_stages_case(given) for given in many)),
        Task("a bound without any search: bound", 10, tuple(_bound_case(given) for given in bounds)),
        Task("an integer model: model", 35, tuple(_model_case(given, drawn) for given in few)),
        Task("the fewest stages within a time: fewest_stages", 20, tuple(_fewest_case(given) for given in within)),
    )


def slowest(times: Sequence[int], messages: Sequence[int], starts: Sequence[int]) -> int:
    """Microseconds of the busiest stage: its layers, what it takes in and what it hands on."""
    ends = [*starts[1:], len(times)]
    into = [messages[start - 1] if start else 0 for start in starts]
    out = [messages[end - 1] if end < len(times) else 0 for end in ends]
    return max(sum(times[s:e]) + i + o for s, e, i, o in zip(starts, ends, into, out, strict=True))


def least(times: Sequence[int], messages: Sequence[int], stages: int) -> list[int]:
    """The least busiest stage with exactly 1, 2, ... `stages` stages: best[k][e] = min over s of max(best[k-1][s], stage from s to e)."""
    count = len(times)
    costs = {(s, e): _cost(times, messages, s, e) for s in range(count) for e in range(s + 1, count + 1)}
    row = [costs[0, end] for end in range(1, count + 1)]
    found = [row[-1]]
    for used in range(2, stages + 1):
        starts = range(used - 1, count)
        row = [min((max(row[s - 1], costs[s, e]) for s in starts if s < e), default=_NEVER) for e in range(1, count + 1)]
        found.append(row[-1])
    return found


_NEVER = 1 << 60


def judge_stages(handed: object, chain: Chain, stages: int, best: int) -> Verdict:
    """The busiest of the stages that are handed in, beside the best."""
    starts = _starts(handed, len(chain[0]))
    if starts is None:
        return Verdict(0.0, f"the first layers of the stages are meant, rising from 0 to at most {len(chain[0]) - 1}, not {shown(handed)}")
    if len(starts) > stages:
        return Verdict(0.0, f"{len(starts)} stages are made of {stages}")
    reached = slowest(*chain, starts)
    return FULL if reached == best else by_gap(reached / best - 1.0, _NEAR, f"the busiest stage takes {reached} us, {best} us can be had")


def judge_fewest(handed: object, chain: Chain, limit: int, fewest: int) -> Verdict:
    """Stages within the limit earn by their number; others nothing."""
    starts = _starts(handed, len(chain[0]))
    if starts is None:
        return Verdict(0.0, f"the first layers of the stages are meant, rising from 0, not {shown(handed)}")
    reached = slowest(*chain, starts)
    if reached > limit:
        return Verdict(0.0, f"the busiest stage takes {reached} us of {limit} us, {reached - limit} too many")
    return FULL if len(starts) <= fewest else by_gap((len(starts) - fewest) / fewest, 1.0, f"{len(starts)} stages where {fewest} do")


def judge_model(handed: object, chain: Chain, stages: int, best: int, plans: Sequence[Plan]) -> Verdict:
    """The stages that the best solution of a model says, priced layer by layer, where the model holds all plans."""
    try:
        values, claimed = solved(handed)
        starts = _starts_in(values, len(chain[0]), stages)
    except ValueError as error:
        return Verdict(0.0, str(error))
    reached = slowest(*chain, starts)
    wrong = "" if claimed == reached else f"the objective says {claimed}, but the busiest stage takes {reached} us"
    return saying(judge_stages(starts, chain, stages, best), handed, plans, replace(HALF, wrong=wrong))


def draw_plans(random: Random, chain: Chain, stages: int) -> tuple[Plan, ...]:
    """Cuts that are no slower than all layers on one stage, and what is none: back to an earlier stage, a layer nowhere, a layer twice."""
    layers, whole, plans = len(chain[0]), sum(chain[0]), list[Plan]()
    for _ in range(_CUTS):
        starts = [0, *sorted(random.sample(range(1, layers), random.randrange(min(stages, layers))))]
        on = [sum(start <= layer for start in starts) - 1 for layer in range(layers)]
        named = {f"layer {layer} on {stage}": int(on[layer] == stage) for layer in range(layers) for stage in range(stages)}
        if (price := slowest(*chain, starts)) <= whole:
            plans.append(Plan(named, price, f"stages that begin with the layers {shown(starts)}, the busiest of {price} us"))
        plans += [Plan(named | changed, None, words) for changed, words in _faults(random, on)]
    return tuple(plans)


def _faults(random: Random, on: list[int]) -> list[tuple[dict[str, int], str]]:
    """What makes a plan of stages none."""
    out = random.randrange(len(on))
    faults = [({f"layer {out} on {on[out]}": 0}, f"layer {out} on no stage")]
    borders = [layer for layer, (this, following) in enumerate(pairwise(on)) if this != following]
    if not borders:
        return faults
    layer = random.choice(borders)
    here, there = on[layer], on[layer + 1]
    back = {f"layer {layer} on {here}": 0, f"layer {layer} on {there}": 1}
    back |= {f"layer {layer + 1} on {here}": 1, f"layer {layer + 1} on {there}": 0}
    faults.append((back, f"layer {layer} on stage {there} and layer {layer + 1} on stage {here}"))
    return [*faults, ({f"layer {layer} on {there}": 1}, f"layer {layer} on two stages")]


def _starts_in(values: dict[str, int], layers: int, stages: int) -> list[int]:
    """The first layers of the stages; a ValueError where a layer is on no stage or on several, or where stages go back."""
    of = []
    for layer in range(layers):
        on = [stage for stage in range(stages) if values.get(f"layer {layer} on {stage}") == 1]
        if len(on) != 1:
            raise ValueError(f"layer {layer} is on {len(on)} stages in the best solution (variables `layer {layer} on 0`, ...)")
        of += on
    if of != sorted(of):
        raise ValueError(f"the stages of the best solution go back: {shown(of)}")
    return [layer for layer in range(layers) if layer == 0 or of[layer] != of[layer - 1]]


def _starts(handed: object, layers: int) -> list[int] | None:
    starts = whole_numbers(handed, layers)
    rising = starts is not None and starts == sorted(set(starts))
    return starts if starts and rising and starts[0] == 0 and starts[-1] < layers else None


def _cost(times: Sequence[int], messages: Sequence[int], start: int, end: int) -> int:
    return sum(times[start:end]) + (messages[start - 1] if start else 0) + (messages[end - 1] if end < len(times) else 0)


def _chain(random: Random, layers: int) -> Chain:
    """Layers of several kinds, some messages so long that nobody should cut there."""
    kinds = [random.randrange(200, 2000) for _ in range(4)]
    times = [random.choice(kinds) + random.randrange(50) for _ in range(layers)]
    messages = [random.choice((20, 60, 150, 900)) + random.randrange(20) for _ in range(layers - 1)]
    return times, [*messages, 0]


def _within(random: Random, layers: int, stages: int) -> tuple[list[int], list[int], int]:
    """A limit that so many stages meet, or nearly."""
    chain = _chain(random, layers)
    return *chain, min(least(*chain, stages)) + random.randrange(40)


def _stages_case(given: tuple[list[int], list[int], int]) -> Case:
    times, messages, stages = given
    best = min(least(times, messages, stages))
    return Case(_words(given), Call("best_stages", given), partial(judge_stages, chain=(times, messages), stages=stages, best=best))


def _model_case(given: tuple[list[int], list[int], int], drawn: Random) -> Case:
    times, messages, stages = given
    best, plans = min(least(times, messages, stages)), draw_plans(drawn, (times, messages), stages)
    return Case(_words(given), Call("model", given), partial(judge_model, chain=(times, messages), stages=stages, best=best, plans=plans))


def judge_bound(handed: object, times: Sequence[int], stages: int) -> Verdict:
    """All points from the longest layer and an equal share of all, rounded up, to the best cut where messages take no time, which is the
    largest that holds for all messages; nothing above it."""
    if (given := number(handed)) is None:
        return Verdict(0.0, f"{shown(handed)} is returned where a figure is meant")
    enough, most = max(*times, -(-sum(times) // stages)), min(least(times, [0] * len(times), stages))
    if given > most:
        return Verdict(0.0, f"{shown(handed)} us is no bound: without messages a busiest stage of {most} us can be had")
    return by_gap(max(0.0, 1.0 - given / enough), _BOUND_NEAR, f"{shown(handed)} us is a bound, but {enough} us is one without any search")


def _bound_case(given: tuple[list[int], int]) -> Case:
    times, stages = given
    return Case(f"{len(times)} layers, {stages} stages", Call("bound", given), partial(judge_bound, times=times, stages=stages))


def _fewest_case(given: tuple[list[int], list[int], int]) -> Case:
    times, messages, limit = given
    needed = next(number for number, value in enumerate(least(times, messages, len(times)), 1) if value <= limit)
    name = f"{len(times)} layers within {limit} us"
    return Case(name, Call("fewest_stages", given), partial(judge_fewest, chain=(times, messages), limit=limit, fewest=needed))


def _words(given: tuple[list[int], list[int], int]) -> str:
    return f"{len(given[0])} layers, {given[2]} stages"


STAGES = Assignment("03-pipeline-stages", "Cut a chain of layers into stages", tasks)
