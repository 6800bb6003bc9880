"""Assignment 3: a chain of layers cut into pipeline stages, by dynamic programming and by an integer model, judged layer by layer."""

from collections.abc import Sequence
from functools import partial
from itertools import accumulate, pairwise
from random import Random

from crossopt.solvers.grading.handed_model import Plan, saying, solved
from crossopt.solvers.grading.marks import (
    FULL,
    Assignment,
    Case,
    Task,
    Verdict,
    given_first,
    integers_in,
    nearly,
    number,
    public,
    shown,
    wrong,
)
from crossopt.solvers.grading.running import Call

Chain = tuple[list[int], list[int]]
"""Microseconds of each layer, and of handing its output to the next layer where that is on another stage; the last hands on nothing."""

_CUTS, _CUTS_OF_MANY = 5, 2
"""Drawn to try a model with, and one of so many layers that a list of all cuts has more variables than a model may have."""


def tasks(seed: str) -> tuple[Task, ...]:
    """Chains of up to 120 layers, the last of each kind with as many stages as layers."""
    random, handed = Random(f"{seed}/03"), public("03-pipeline-stages")
    rng = Random(f"{seed}/03/plans")
    times, messages, most = handed["times"], handed["messages"], handed["stages"]
    sizes = ((60, 7, False), (40, 5, True), (12, 12, False))
    many = [(times, messages, most), *(_telling(random, layers, stages, filling) for layers, stages, filling in sizes)]
    many.append((*_chain(random, 120), 1))
    few = [(times, messages, most), *((*_chain(random, layers), stages) for layers, stages in ((17, 5), (10, 4), (5, 5)))]
    bounds = [(times, most), *((_uneven(random, layers, stages), stages) for layers, stages in ((50, 7), (9, 8), (30, 1)))]
    within = [
        (times, messages, handed["limit"]),
        *(_within(random, layers, stages, exactly) for layers, stages, exactly in ((80, 6, True), (6, 1, False))),
    ]
    within.append(_filling_fails(random, 40, 9))
    return (
        Task("the quickest stages by dynamic programming: best_stages", 21, given_first(_stages_case(given) for given in many)),
        Task("a bound without any search: bound", 6, given_first(_bound_case(given) for given in bounds)),
        Task("an integer model: model", 21, given_first(_model_case(given, rng) for given in few)),
        Task("the fewest stages within a time: fewest_stages", 12, given_first(_fewest_case(given) for given in within)),
    )


def slowest(times: Sequence[int], messages: Sequence[int], starts: Sequence[int]) -> int:
    """Microseconds of the busiest stage: its layers, what it takes in and what it hands on."""
    return max(_stage(times, messages, start, end, None) for start, end in pairwise([*starts, len(times)]))


def least(times: Sequence[int], messages: Sequence[int], stages: int) -> list[int]:
    """The least busiest stage with exactly 1, 2, ... `stages` stages: best[k][e] = min over s of max(best[k-1][s], stage from s to e)."""
    return _least(times, messages, stages, None)


def _least(times: Sequence[int], messages: Sequence[int], stages: int, side: int | None) -> list[int]:
    """The least busiest stage with 1, 2, ... `stages` stages where only one side pays a message: the receiving stage (`side` 0) or the
    sending one (1)."""
    count = len(times)
    before = [0, *accumulate(times)]
    into = [0 if side == 1 or not s else messages[s - 1] for s in range(count)]
    out = [0 if side == 0 or e == count else messages[e - 1] for e in range(1, count + 1)]
    row = [before[e] + out[e - 1] for e in range(1, count + 1)]
    found = [row[-1]]
    for used in range(2, stages + 1):
        starts = range(used - 1, count)
        row = [
            min((max(row[s - 1], before[e] - before[s] + into[s] + out[e - 1]) for s in starts if s < e), default=_NEVER)
            for e in range(1, count + 1)
        ]
        found.append(row[-1])
    return found


def _one_sided(times: Sequence[int], messages: Sequence[int], starts: Sequence[int], side: int) -> int:
    """The busiest stage where one side pays."""
    return max(_stage(times, messages, start, end, side) for start, end in pairwise([*starts, len(times)]))


_NEVER = 1 << 60


ALONE = "messages are left out: these cuts are the best where handing on takes no time"
ONE_SIDED = "a message is paid by one of its two stages (both pay it)"
ALL_USED = "as many stages are used as allowed, where fewer are quicker"
EQUAL = "layers are dealt out in equal numbers"
BELOW = "a stage that takes exactly the limit is left out (it is allowed)"
FILLED = "each stage is filled as far as it goes, though it may end at a long message there"


def judge_stages(handed: object, chain: Chain, stages: int, best: int) -> Verdict:
    """The busiest of the stages that are handed in: the best, or what a likely mistake finds."""
    starts = _starts(handed, len(chain[0]))
    if starts is None:
        return wrong(f"the first layers of the stages are meant, rising from 0 to at most {len(chain[0]) - 1}, not {shown(handed)}")
    if len(starts) > stages:
        return wrong(f"{len(starts)} stages are made of {stages}")
    reached = slowest(*chain, starts)
    why = f"the busiest stage takes {reached} us, {best} us can be had"
    return FULL if reached == best else _explained(starts, chain, stages, why)


def _explained(starts: list[int], chain: Chain, stages: int, why: str) -> Verdict:
    """Which question these stages are the best answer to."""
    times, messages = chain
    reached, none, sides = slowest(*chain, starts), [0] * len(times), [_one_sided(times, messages, starts, side) for side in (0, 1)]
    names = {
        ALL_USED: len(starts) == stages and slowest(*chain, starts) == least(*chain, stages)[-1],
        ONE_SIDED: any(found == min(_least(times, messages, stages, side)) for side, found in enumerate(sides)),
        ALONE: slowest(times, none, starts) == min(least(times, none, stages)),
        FILLED: starts == _filled(chain, reached) and not _fills(chain, stages, reached - 1),
    }
    if found := [name for name, so in names.items() if so]:
        return nearly(found[0], why, *found[1:])
    lengths = {end - start for start, end in pairwise([*starts, len(times)])}
    return wrong(why, EQUAL if len(starts) == stages and max(lengths) - min(lengths) <= 1 else "")


def judge_fewest(handed: object, chain: Chain, limit: int, fewest: int) -> Verdict:
    """Stages within the limit, as few as there can be."""
    starts = _starts(handed, len(chain[0]))
    if starts is None:
        return wrong(f"the first layers of the stages are meant, rising from 0, not {shown(handed)}")
    reached = slowest(*chain, starts)
    if reached > limit:
        alone = slowest(chain[0], [0] * len(chain[0]), starts) <= limit
        return wrong(
            f"the busiest stage takes {reached} us of {limit} us, {reached - limit} too many", "messages are left out" if alone else ""
        )
    why = f"{len(starts)} stages where {fewest} do"
    if len(starts) <= fewest:
        return FULL
    if len(starts) == fewest_within(*chain, limit - 1):
        return nearly(BELOW, why)
    return nearly(FILLED, why) if starts == _filled(chain, limit) else wrong(why)


def fewest_within(times: Sequence[int], messages: Sequence[int], limit: int) -> int | None:
    """The fewest stages of which none takes longer; None where there are none."""
    return next((number for number, value in enumerate(least(times, messages, len(times)), 1) if value <= limit), None)


def _filled(chain: Chain, limit: int) -> list[int]:
    """Each stage as long as it is within the limit."""
    (times, _), starts = chain, [0]
    while True:
        ends = [end for end in range(starts[-1] + 1, len(times) + 1) if _stage(*chain, starts[-1], end, None) <= limit]
        if not ends or ends[-1] == len(times):
            return starts
        starts.append(ends[-1])


def _fills(chain: Chain, stages: int, limit: int) -> bool:
    """Whether so many stages are enough, each filled as far as it goes."""
    filled = _filled(chain, limit)
    return len(filled) <= stages and slowest(*chain, filled) <= limit


def judge_model(handed: object, chain: Chain, stages: int, best: int, plans: Sequence[Plan]) -> Verdict:
    """The stages that the best solution of a model says, priced layer by layer, where the model holds all plans."""
    try:
        values, claimed = solved(handed)
        starts = _starts_in(values, len(chain[0]), stages)
    except ValueError as error:
        return wrong(str(error))
    reached = slowest(*chain, starts)
    off = "" if claimed == reached else f"the objective says {claimed}, but the busiest stage takes {reached} us"
    return saying(judge_stages(starts, chain, stages, best), handed, plans, off)


def draw_plans(random: Random, chain: Chain, stages: int) -> tuple[Plan, ...]:
    """Cuts that are no slower than all layers on one stage, and what is none: back to an earlier stage, a layer nowhere, a layer twice."""
    layers, total, plans = len(chain[0]), sum(chain[0]), list[Plan]()
    for _ in range(_CUTS if layers <= 12 else _CUTS_OF_MANY):
        starts = [0, *sorted(random.sample(range(1, layers), random.randrange(min(stages, layers))))]
        on = [sum(start <= layer for start in starts) - 1 for layer in range(layers)]
        named = {f"layer {layer} on {stage}": int(on[layer] == stage) for layer in range(layers) for stage in range(stages)}
        if (price := slowest(*chain, starts)) <= total:
            plans.append(Plan(named, price, f"stages that begin with the layers {shown(starts)}, the busiest of {price} us"))
        plans += [Plan(named | changed, None, text) for changed, text in _faults(random, on)]
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
    starts = integers_in(handed, layers)
    rising = starts is not None and starts == sorted(set(starts))
    return starts if starts and rising and starts[0] == 0 and starts[-1] < layers else None


def _chain(random: Random, layers: int) -> Chain:
    """Layers of several kinds, with some messages too long for a good cut."""
    kinds = [random.randrange(200, 2000) for _ in range(4)]
    times = [random.choice(kinds) + random.randrange(50) for _ in range(layers)]
    messages = [random.choice((20, 60, 150, 900)) + random.randrange(20) for _ in range(layers - 1)]
    return times, [*messages, 0]


def _telling(random: Random, layers: int, stages: int, filling: bool) -> tuple[list[int], list[int], int]:
    """The first draw in which each likely mistake finds slower stages: no message, one side of it, as many stages as allowed (of few); with
    `filling`, also to fill each stage as far as it goes, by any limit."""

    def tells(times: list[int], messages: list[int]) -> bool:
        found = least(times, messages, stages)
        if filling and _fills((times, messages), stages, min(found)):
            return False
        wrong_ones = [_cuts(times, messages, stages, side) for side in (0, 1)] + [_cuts(times, [0] * layers, stages, None)]
        return (layers > stages or found[-1] > min(found)) and all(slowest(times, messages, cuts) > min(found) for cuts in wrong_ones)

    return *next(chain for chain in iter(lambda: _chain(random, layers), None) if tells(*chain)), stages


def _cuts(times: Sequence[int], messages: Sequence[int], stages: int, side: int | None) -> list[int]:
    """The earliest cuts into stages that are as quick as possible by these costs."""
    limit = min(_least(times, messages, stages, side))
    fewest: list[tuple[int, int]] = [(0, 0)]
    for end in range(1, len(times) + 1):
        ends = ((fewest[s][0] + 1, s) for s in range(end) if _stage(times, messages, s, end, side) <= limit)
        fewest.append(min(ends, default=(_NEVER, 0)))
    cuts, end = list[int](), len(times)
    while end:
        end = fewest[end][1]
        cuts.append(end)
    return cuts[::-1]


def _stage(times: Sequence[int], messages: Sequence[int], start: int, end: int, side: int | None) -> int:
    """What a stage takes where both sides pay a message, or one."""
    into = 0 if side == 1 or not start else messages[start - 1]
    out = 0 if side == 0 or end == len(times) else messages[end - 1]
    return sum(times[start:end]) + into + out


def _uneven(random: Random, layers: int, stages: int) -> list[int]:
    """Layers of which an equal share is a whole number and less than a half; with nearly as many stages as layers, the longest layer is
    above it."""
    chains = iter(lambda: _chain(random, layers)[0], None)
    return next(
        times
        for times in chains
        if stages == 1 or (0 < 2 * (sum(times) % stages) < stages and (2 * stages < layers or max(times) > -(-sum(times) // stages)))
    )


def _within(random: Random, layers: int, stages: int, exactly: bool) -> tuple[list[int], list[int], int]:
    """A limit that so many stages meet, to the microsecond or nearly."""
    chain = _chain(random, layers)
    return *chain, min(least(*chain, stages)) + (0 if exactly else random.randrange(40))


def _filling_fails(random: Random, layers: int, stages: int) -> tuple[list[int], list[int], int]:
    """The first draw of which filling each stage as far as it goes is not the fewest."""
    chains = iter(lambda: _within(random, layers, stages, False), None)
    return next(given for given in chains if len(_filled(given[:2], given[2])) > (fewest_within(*given) or layers))


def _stages_case(given: tuple[list[int], list[int], int]) -> Case:
    times, messages, stages = given
    best = min(least(times, messages, stages))
    return Case(_text(given), Call("best_stages", given), partial(judge_stages, chain=(times, messages), stages=stages, best=best))


def _model_case(given: tuple[list[int], list[int], int], random: Random) -> Case:
    times, messages, stages = given
    best, plans = min(least(times, messages, stages)), draw_plans(random, (times, messages), stages)
    return Case(_text(given), Call("model", given), partial(judge_model, chain=(times, messages), stages=stages, best=best, plans=plans))


def judge_bound(handed: object, times: Sequence[int], stages: int) -> Verdict:
    """Right from the longest layer and an equal share of all, rounded up, to the best cut where messages take no time, which is the
    largest that holds for all messages; no bound above it."""
    if (given := number(handed)) is None:
        return wrong(f"{shown(handed)} is returned where a figure is meant")
    share, longest = -(-sum(times) // stages), max(times)
    most = min(least(times, [0] * len(times), stages))
    if given > most:
        return wrong(f"{shown(handed)} us is no bound: without messages a busiest stage of {most} us can be had")
    if given >= max(longest, share):
        return FULL
    why = f"{shown(handed)} us is a bound, but {max(longest, share)} us is one without any search"
    if given == max(longest, sum(times) // stages) or given == sum(times) / stages:
        return nearly("an equal share is not rounded up, or the longest layer is left out", why)
    names = {share: "the longest layer is left out", longest: "an equal share of all layers is left out"}
    return nearly(names[int(given)], why) if given in names else wrong(why)


def _bound_case(given: tuple[list[int], int]) -> Case:
    times, stages = given
    return Case(f"{len(times)} layers, {stages} stages", Call("bound", given), partial(judge_bound, times=times, stages=stages))


def _fewest_case(given: tuple[list[int], list[int], int]) -> Case:
    times, messages, limit = given
    fewest = fewest_within(*given) or len(times)
    name = f"{len(times)} layers within {limit} us"
    return Case(name, Call("fewest_stages", given), partial(judge_fewest, chain=(times, messages), limit=limit, fewest=fewest))


def _text(given: tuple[list[int], list[int], int]) -> str:
    return f"{len(given[0])} layers, {given[2]} stages"


STAGES = Assignment("03-pipeline-stages", "Cut a chain of layers into stages", tasks)
