"""Assignment 10: a collective over single links. Who sends what to whom and when, so that all have everything soonest?

    far     no chunk comes farther than along the quickest way: the largest of these
    cut     into some NPUs come those chunks that they lack: the first T with  sum of floor(T / w) over the links into them  enough
    bound   the largest of both, over all NPUs and all cuts

Networks of the last function are drawn so that sends are known which end at the bound: what ends there is the best.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from math import ceil
from random import Random

from crossopt.solvers.grading.handouts import public
from crossopt.solvers.grading.marks import (
    FULL,
    Assignment,
    Case,
    Slip,
    Task,
    Verdict,
    figure,
    given_first,
    nearly,
    number,
    shown,
    whole_numbers,
    wrong,
)
from crossopt.solvers.grading.walls.running import Call

Links = list[list[int]]
"""From, to, and the steps that a chunk takes."""
Sends = list[list[int]]
"""The chunk, the link by its place, and the step at which it sets out."""

_TRIES, _MOST_SENDS = 60, 2000
LATE = "all have everything, but later than they can"


def tasks(seed: str) -> tuple[Task, ...]:
    """Networks drawn anew: slow links for figures, quick ones for sends."""
    random, handed = Random(f"{seed}/10"), public("10-collectives")
    given = (handed["npus"], handed["links"])
    slow = [given, *((npus, _drawn(random, npus, 12)) for npus in (5, 6, 7, 6))]
    bounds = [given, _drawn_where(random, 6, _cuts_tell), _doubled(random, 7), _drawn_where(random, 5, _one_left_out_tells), slow[-1]]
    cuts = [
        (*given, handed["inside"]),
        *((*one, sorted(random.sample(range(one[0]), random.randrange(2, one[0] - 1)))) for one in slow[1:]),
    ]
    rings = [handed["ring"], *(random.sample(range(npus), npus) for npus in random.sample(range(6, 16), 3))]
    quick = [given, *(_reached(random, npus) for npus in (4, 5, 5))]
    return (
        Task("when all have everything: finish", 12, given_first(_finish_cases(random, handed, [*slow[1:], slow[1]]))),
        Task("the farthest way: far", 9, given_first(_far_case(*one) for one in slow)),
        Task("what a cut lets through: cut", 9, given_first(_cut_case(*one) for one in cuts)),
        Task("before when nobody is done: bound", 9, given_first(_bound_case(*one) for one in bounds)),
        Task("around a ring: ring", 6, given_first(_ring_case(order) for order in rings)),
        Task("the soonest sends: gather", 15, given_first(_gather_case(*one) for one in quick)),
    )


# --- what is right -------------------------------------------------------------------------------------------------------------------


def finish(npus: int, links: Links, sends: Sends, *, waits: bool = True, alone: bool = True) -> int | None:
    """The step at which all have everything; None where somebody sends what it has not, or over a link that is busy, or lacks something in
    the end. The mistakes of not looking whether a chunk has come, or whether a link is free, are settings."""
    there, busy = {(npu, npu): 0 for npu in range(npus)}, dict[int, int]()
    for chunk, place, step in sorted(sends, key=lambda one: one[2]):
        sender, receiver, took = links[place]
        came = there.get((sender, chunk))
        if came is None or (waits and came > step) or (alone and busy.get(place, 0) > step):
            return None
        busy[place] = step + took
        there[receiver, chunk] = min(there.get((receiver, chunk), step + took), step + took)
    return max(there.values()) if len(there) == npus * npus else None


def distances(npus: int, links: Links) -> list[list[float]]:
    """Steps of the quickest way between any two."""
    away = [[0.0 if one == other else float("inf") for other in range(npus)] for one in range(npus)]
    for sender, receiver, took in links:
        away[sender][receiver] = min(away[sender][receiver], took)
    for over in range(npus):
        for one in range(npus):
            away[one] = [min(far, away[one][over] + more) for far, more in zip(away[one], away[over], strict=True)]
    return away


def far(npus: int, links: Links) -> int:
    return int(max(map(max, distances(npus, links))))


def cut(npus: int, links: Links, inside: list[int]) -> int:
    """The first step by which the links into some NPUs can have brought all chunks of the others."""
    into = [took for sender, receiver, took in links if receiver in inside and sender not in inside]
    return next(step for step in range(npus * max(into) + 1) if sum(step // took for took in into) >= npus - len(inside))


def bound(npus: int, links: Links) -> int:
    """Over all NPUs and all cuts."""
    sets = (list(inside) for size in range(1, npus) for inside in combinations(range(npus), size))
    return max(far(npus, links), *(cut(npus, links, inside) for inside in sets))


def greedy(npus: int, links: Links, random: Random) -> Sends:
    """Free links in any order, each with a chunk that its receiver lacks and that is not under way to it (TACOS, Won et al. 2024)."""
    there, under_way = {(npu, npu): 0 for npu in range(npus)}, {(npu, npu) for npu in range(npus)}
    free, sends, step = [0] * len(links), Sends(), 0
    while len(under_way) < npus * npus:
        for place in random.sample(range(len(links)), len(links)):
            sender, receiver, took = links[place]
            able = [c for c in range(npus) if there.get((sender, c), step + 1) <= step and (receiver, c) not in under_way]
            if able and free[place] <= step:
                chunk = random.choice(able)
                sends.append([chunk, place, step])
                free[place], there[receiver, chunk] = step + took, step + took
                under_way.add((receiver, chunk))
        step += 1
    return sends


# --- who judges ----------------------------------------------------------------------------------------------------------------------


def judge_finish(handed: object, npus: int, links: Links, sends: Sends) -> Verdict:
    """A step, or None."""
    right = finish(npus, links, sends)
    if handed is None and right is None:
        return FULL
    told = {
        "a chunk is sent on before it has come": finish(npus, links, sends, waits=False),
        "two chunks are on a link at once": finish(npus, links, sends, alone=False),
    }
    last = max((step for *_, step in sends), default=0)
    if right is None:
        given = number(handed)
        named = [mistake for mistake, so in told.items() if given is not None and given == so]
        why = f"{shown(handed)} is returned, and a rule is broken: None is right"
        return nearly(named[0], why, *named[1:]) if named else wrong(why)
    if handed is None:
        return wrong(f"None is returned, and all have everything at step {right}")
    slips = [Slip("this is when the last chunk sets out, not when it comes", float(last)), Slip("steps are counted from 1", right + 1.0)]
    return figure(handed, float(right), slips)


def sends_in(handed: object, links: Links, npus: int) -> Sends | None:
    """Sends whose chunks, links and steps there are; None for anything else."""
    if not isinstance(handed, list) or len(handed) > _MOST_SENDS:
        return None
    found = [one for one in (whole_numbers(each, 3) for each in handed) if one is not None and len(one) == 3]
    good = [one for one in found if 0 <= one[0] < npus and 0 <= one[1] < len(links) and 0 <= one[2] <= _MOST_SENDS]
    return good if len(good) == len(handed) else None


def judge_sends(handed: object, npus: int, links: Links, best: int) -> Verdict:
    """Sends after which all have everything at the best step."""
    sends = sends_in(handed, links, npus)
    if sends is None:
        return wrong(f"a list of sends [chunk, link, step] is meant, not {shown(handed)}")
    ended = finish(npus, links, sends)
    if ended is None:
        broken = {
            "a chunk is sent on before it has come": finish(npus, links, sends, waits=False),
            "two chunks are on a link at once": finish(npus, links, sends, alone=False),
        }
        named = [mistake for mistake, so in broken.items() if so is not None]
        return wrong("a rule is broken, or somebody lacks a chunk in the end", named[0] if named else "")
    why = f"it ends at step {ended}, where {best} is possible"
    return FULL if ended == best else nearly(LATE, why)


# --- cases ---------------------------------------------------------------------------------------------------------------------------


def _drawn(random: Random, npus: int, slowest: int) -> Links:
    """A ring one way, so that all reach all, and as many further links, of different steps."""
    order = random.sample(range(npus), npus)
    ring = [(one, order[(place + 1) % npus]) for place, one in enumerate(order)]
    others = [(one, two) for one in range(npus) for two in range(npus) if one != two and (one, two) not in ring]
    return [[one, two, random.randrange(1, slowest + 1)] for one, two in (*ring, *random.sample(others, npus))]


def _drawn_where(random: Random, npus: int, tells: Callable[[int, Links], bool]) -> tuple[int, Links]:
    """The first draw in which a part of the bound alone does not do."""
    return next((npus, links) for links in iter(lambda: _drawn(random, npus, 12), None) if tells(npus, links))


def _cuts_tell(npus: int, links: Links) -> bool:
    """Whether cuts around several NPUs say more than ways and single NPUs do."""
    single = max(cut(npus, links, [npu]) for npu in range(npus))
    return bound(npus, links) > max(far(npus, links), single)


def _one_left_out_tells(npus: int, links: Links) -> bool:
    """Whether ways, and cuts around all but one, say less than another cut."""
    others = max(cut(npus, links, [npu for npu in range(npus) if npu != one]) for one in range(npus))
    return bound(npus, links) > max(far(npus, links), others)


def _doubled(random: Random, npus: int) -> tuple[int, Links]:
    """A ring one way with two links from each to the next, so that ways are longer than cuts are narrow."""
    took, order = random.randrange(3, 30), random.sample(range(npus), npus)
    return npus, [[one, order[(place + 1) % npus], took] for place, one in enumerate(order) for _ in range(2)]


def _reached(random: Random, npus: int) -> tuple[int, Links]:
    """The first draw of quick links on which a greedy that tries often ends at the bound, and seldom at once."""

    def ends(links: Links) -> Iterator[int | None]:
        return (finish(npus, links, greedy(npus, links, random)) for _ in range(_TRIES))

    while True:
        links = _drawn(random, npus, 2)
        least, first = bound(npus, links), list[int | None]()
        for ended in ends(links):
            first.append(ended)
            if ended == least:
                break
        if first[-1] == least and len(first) > 3:
            return npus, links


def _finish_cases(random: Random, handed: dict[str, list[list[int]]], networks: list[tuple[int, Links]]) -> Iterator[Case]:
    """Sends that are sound, sent on too soon, on a busy link, and without the last one."""
    npus, links = int(handed["npus"]), handed["links"]  # type: ignore[call-overload]
    yield _finish_case(npus, links, handed["sends"])
    for change, (count, drawn) in zip((_as_it_is, _too_soon, _at_once, _without_last, _as_it_is), networks, strict=True):
        yield _finish_case(count, drawn, change(greedy(count, drawn, random), count, drawn))


def _as_it_is(sends: Sends, npus: int, links: Links) -> Sends:
    del npus, links
    return sends


def _too_soon(sends: Sends, npus: int, links: Links) -> Sends:
    """The first that is handed on sets out a step before it has come, and over a link that is free then."""
    for place, (chunk, link, step) in enumerate(sends):
        changed = [*sends[:place], [chunk, link, step - 1], *sends[place + 1 :]]
        if step > 0 and finish(npus, links, changed) is None and finish(npus, links, changed, waits=False) is not None:
            return changed
    return sends[:-1]


def _at_once(sends: Sends, npus: int, links: Links) -> Sends:
    """One sets out while another is on its link, though it has come."""
    for place, (chunk, link, step) in enumerate(sends):
        changed = [*sends[:place], [chunk, link, step - 1], *sends[place + 1 :]]
        if step > 0 and finish(npus, links, changed) is None and finish(npus, links, changed, alone=False) is not None:
            return changed
    return sends[:-1]


def _without_last(sends: Sends, npus: int, links: Links) -> Sends:
    del npus, links
    return sends[:-1]


def _case(name: str, call: Call, judge: Callable[[object], Verdict]) -> Case:
    return Case(name, call, judge)


def _finish_case(npus: int, links: Links, sends: Sends) -> Case:
    judge = partial(judge_finish, npus=npus, links=links, sends=sends)
    return _case(f"{npus} NPUs, {len(sends)} sends", Call("finish", (npus, links, sends)), judge)


def _far_case(npus: int, links: Links) -> Case:
    away, ones = distances(npus, links), [[one, two, 1] for one, two, _ in links]
    slips = [
        Slip("links are counted, not their steps", float(far(npus, ones))),
        Slip("the ways from the first NPU alone are looked at", max(away[0])),
        Slip("the ways to the first NPU alone are looked at", max(row[0] for row in away)),
        Slip("the slowest link is returned, not the farthest way", float(max(took for *_, took in links))),
    ]
    return _case(_words(npus, links), Call("far", (npus, links)), partial(figure, right=float(far(npus, links)), slips=slips))


def _cut_case(npus: int, links: Links, inside: list[int]) -> Case:
    into = [took for sender, receiver, took in links if receiver in inside and sender not in inside]
    missing = npus - len(inside)
    outside = [npu for npu in range(npus) if npu not in inside]
    slips = [
        Slip("links take the same time: their steps are left out", float(ceil(missing / len(into)))),
        Slip("parts of chunks are counted: a link brings whole ones", float(ceil(missing / sum(1.0 / took for took in into) - 1e-9))),
        Slip("the chunks inside are counted, not those that are missing", float(_within(into, len(inside)))),
        Slip("the links that lead out are counted", float(cut(npus, links, outside)) if _leads(links, inside) else -1.0),
    ]
    right = float(cut(npus, links, inside))
    return _case(
        f"{_words(npus, links)}, {len(inside)} inside", Call("cut", (npus, links, inside)), partial(figure, right=right, slips=slips)
    )


def _within(into: list[int], chunks: int) -> int:
    return next(step for step in range(chunks * max(into) + 1) if sum(step // took for took in into) >= chunks)


def _leads(links: Links, inside: list[int]) -> bool:
    return any(sender in inside and receiver not in inside for sender, receiver, _ in links)


def _bound_case(npus: int, links: Links) -> Case:
    single = [cut(npus, links, [npu]) for npu in range(npus)]
    others = [cut(npus, links, [npu for npu in range(npus) if npu != one]) for one in range(npus)]
    sets = [list(inside) for size in range(1, npus) for inside in combinations(range(npus), size)]
    slips = [
        Slip("cuts around single NPUs alone are looked at", float(max(far(npus, links), *single))),
        Slip("cuts around all but one alone are looked at", float(max(far(npus, links), *others))),
        Slip("cuts alone are looked at, not the ways", float(max(cut(npus, links, inside) for inside in sets))),
        Slip("ways alone are looked at, not the cuts", float(far(npus, links))),
        Slip("the sum is no bound: the largest is", float(far(npus, links) + max(single))),
    ]
    return _case(_words(npus, links), Call("bound", (npus, links)), partial(figure, right=float(bound(npus, links)), slips=slips))


def ring_of(order: list[int]) -> Links:
    """Around a ring in this order, from each NPU to the next one and to the one before, a step each."""
    return [[npu, order[(place + way) % len(order)], 1] for place, npu in enumerate(order) for way in (1, -1)]


def _ring_case(order: list[int]) -> Case:
    judge = partial(judge_sends, npus=len(order), links=ring_of(order), best=len(order) // 2)
    return _case(f"{len(order)} NPUs", Call("ring", (order,)), judge)


def _gather_case(npus: int, links: Links) -> Case:
    judge = partial(judge_sends, npus=npus, links=links, best=bound(npus, links))
    return _case(_words(npus, links), Call("gather", (npus, links)), judge)


def _words(npus: int, links: Links) -> str:
    return f"{npus} NPUs, {len(links)} links"


COLLECTIVES = Assignment("10-collectives", "A collective over links: who sends what to whom, and when is it best?", tasks)
