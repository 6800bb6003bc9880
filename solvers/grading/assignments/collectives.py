"""Assignment 10: a collective over single links. Who sends what to whom and when, so that all have everything soonest?

Networks of the last function are drawn so that sends are known which end at the bound: what ends there is the best.

Sends of chunks over single links: when all have everything, and a lower bound on that step.

far     no chunk comes farther than along the quickest way: the largest of these
cut     into some NPUs come those chunks that they lack: the first T with  sum of floor(T / w) over the links into them  enough
bound   the largest of both, over all NPUs and all cuts
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations, permutations
from math import ceil
from random import Random

from crossopt.solvers.grading.marks import (
    FULL,
    Assignment,
    Case,
    Slip,
    Task,
    Verdict,
    figure,
    given_first,
    integers_in,
    nearly,
    number,
    public,
    shown,
    wrong,
)
from crossopt.solvers.grading.running import Call

Links = list[list[int]]
"""From, to, and the steps that a chunk takes."""
Sends = list[list[int]]
"""The chunk, the link by its place, and the step at which it sets out."""


def finish(
    npus: int,
    links: Links,
    sends: Sends,
    *,
    waits: bool = True,
    alone: bool = True,
    ordered: bool = True,
    counts: Callable[[int, int], int] = min,
) -> int | None:
    """The step at which all have everything; None if an NPU sends a chunk that it lacks, or over a link that is busy, or lacks something in
    the end. The mistakes of not looking whether a chunk has come, whether a link is free, at which step a send sets out, and which of two
    comings is the first one, are settings."""
    there, busy = {(npu, npu): 0 for npu in range(npus)}, dict[int, int]()
    for chunk, link, step in sorted(sends, key=lambda send: send[2]) if ordered else sends:
        sender, receiver, took = links[link]
        came = there.get((sender, chunk))
        if came is None or (waits and came > step) or (alone and busy.get(link, 0) > step):
            return None
        busy[link] = step + took
        there[receiver, chunk] = counts(there.get((receiver, chunk), step + took), step + took)
    return max(there.values()) if len(there) == npus * npus else None


def distances(npus: int, links: Links) -> list[list[float]]:
    """Steps of the quickest way between any two."""
    away = [[0.0 if source == target else float("inf") for target in range(npus)] for source in range(npus)]
    for sender, receiver, took in links:
        away[sender][receiver] = min(away[sender][receiver], took)
    for over in range(npus):
        for source in range(npus):
            away[source] = [min(far, away[source][over] + more) for far, more in zip(away[source], away[over], strict=True)]
    return away


def far(npus: int, links: Links) -> int:
    return int(max(map(max, distances(npus, links))))


def cut(npus: int, links: Links, inside: list[int]) -> int:
    """The first step by which the links into some NPUs can have brought all chunks of the others."""
    into = [took for sender, receiver, took in links if receiver in inside and sender not in inside]
    return next(step for step in range(npus * max(into) + 1) if sum(step // took for took in into) >= npus - len(inside))


def bound(npus: int, links: Links) -> int:
    """Over all NPUs and all cuts."""
    return max(far(npus, links), *by_size(npus, links))


def greedy(npus: int, links: Links, random: Random) -> Sends:
    """Free links in any order, each with a chunk that its receiver lacks and that is not under way to it (TACOS, Won et al. 2024)."""
    there, under_way = {(npu, npu): 0 for npu in range(npus)}, {(npu, npu) for npu in range(npus)}
    free, sends, step = [0] * len(links), Sends(), 0
    while len(under_way) < npus * npus:
        for link in random.sample(range(len(links)), len(links)):
            sender, receiver, took = links[link]
            able = [c for c in range(npus) if there.get((sender, c), step + 1) <= step and (receiver, c) not in under_way]
            if able and free[link] <= step:
                chunk = random.choice(able)
                sends.append([chunk, link, step])
                free[link], there[receiver, chunk] = step + took, step + took
                under_way.add((receiver, chunk))
        step += 1
    return sends


def last(links: Links, sends: Sends) -> int:
    """When the last of all sends comes."""
    return max(step + links[link][2] for _, link, step in sends)


def by_size(npus: int, links: Links) -> list[int]:
    """What cuts around one, two, ... NPUs say."""
    return [max(cut(npus, links, list(inside)) for inside in combinations(range(npus), size)) for size in range(1, npus)]


def _latest(_: int, later: int) -> int:
    return later


def _first_sent(first: int, _: int) -> int:
    return first


OTHER_COMINGS = (max, _latest, _first_sent)
"""Of two comings of a chunk another one than the first."""


_TRIES, _SELDOM, _MOST_SENDS = 60, 10, 2000
LATE = "all have everything, but later than they can"
IN_ANY_ORDER = "sends come in any order: taken by their steps these break no rule"
AGAIN = "a chunk that comes again counts, though it was there before, or comes sooner by another link"
SIZES = "cuts around some numbers of NPUs alone are looked at"
WAYS = "ways alone are looked at, or cuts that say no more than they do"


def tasks(seed: str) -> tuple[Task, ...]:
    """Networks drawn anew: slow links for figures, quick ones for sends."""
    random, handed = Random(f"{seed}/10"), public("10-collectives")
    given = (handed["npus"], handed["links"])
    slow = [given, *((npus, _random_links(random, npus, 12)) for npus in (5, 6, 7, 6))]
    bounds = [given, *(_narrow(random, 6, inside) for inside in (1, 2, 3, 4)), _doubled(random, 7)]
    cuts = [
        (*given, handed["inside"]),
        *((*given, sorted(random.sample(range(given[0]), random.randrange(2, given[0] - 1)))) for given in slow[1:]),
    ]
    rings = [handed["ring"], *(random.sample(range(npus), npus) for npus in random.sample(range(6, 16), 3))]
    quick = [given, *(_reached(random, npus) for npus in (6, 6, 6))]
    return (
        Task("when all have everything: finish", 12, given_first(_finish_cases(random, handed))),
        Task("the farthest way: far", 9, given_first(_far_case(*given) for given in slow)),
        Task("what a cut lets through: cut", 9, given_first(_cut_case(*given) for given in cuts)),
        Task("before when nobody is done: bound", 9, given_first(_bound_case(*given) for given in bounds)),
        Task("around a ring: ring", 6, given_first(_ring_case(order) for order in rings)),
        Task("the soonest sends: gather", 15, given_first(_gather_case(*given) for given in quick)),
    )


# --- who judges ----------------------------------------------------------------------------------------------------------------------


def judge_finish(handed: object, npus: int, links: Links, sends: Sends) -> Verdict:
    """A step, or None."""
    right = finish(npus, links, sends)
    if handed is None and right is None:
        return FULL
    mistakes = {
        "a chunk is sent on before it has come": finish(npus, links, sends, waits=False),
        "two chunks are on a link at once": finish(npus, links, sends, alone=False),
    }
    if right is None:
        given = number(handed)
        named = [mistake for mistake, so in mistakes.items() if given is not None and given == so]
        why = f"{shown(handed)} is returned, and a rule is broken: None is right"
        return nearly(named[0], why, *named[1:]) if named else wrong(why)
    others = [finish(npus, links, sends, counts=counts) for counts in OTHER_COMINGS]
    if handed is None:
        explained = {AGAIN: None in others, IN_ANY_ORDER: finish(npus, links, sends, ordered=False) is None}
        why = f"None is returned, and all have everything at step {right}"
        return Verdict(0.0, why, tuple(name for name, so in explained.items() if so))
    slips = [
        Slip("this is when the last chunk sets out, not when it comes", float(max(step for *_, step in sends))),
        Slip("steps are counted from 1", right + 1.0),
        Slip(AGAIN, float(last(links, sends))),
        *(
            Slip(AGAIN, float(again))
            for again in (finish(npus, links, sends, counts=counts) for counts in OTHER_COMINGS)
            if again is not None
        ),
    ]
    return figure(handed, float(right), slips)


def sends_in(handed: object, links: Links, npus: int) -> Sends | None:
    """Sends whose chunks, links and steps there are; None for anything else."""
    if not isinstance(handed, list) or len(handed) > _MOST_SENDS:
        return None
    found = [send for send in (integers_in(each, 3) for each in handed) if send is not None and len(send) == 3]
    good = [send for send in found if 0 <= send[0] < npus and 0 <= send[1] < len(links) and 0 <= send[2] <= _MOST_SENDS]
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


def _random_links(random: Random, npus: int, slowest: int) -> Links:
    """A ring one way, so that all reach all, and as many further links, of different steps."""
    order = random.sample(range(npus), npus)
    ring = [(npu, order[(index + 1) % npus]) for index, npu in enumerate(order)]
    others = [(source, target) for source in range(npus) for target in range(npus) if source != target and (source, target) not in ring]
    return [[source, target, random.randrange(1, slowest + 1)] for source, target in (*ring, *random.sample(others, npus))]


def _narrow(random: Random, npus: int, size: int) -> tuple[int, Links]:
    """The first draw of NPUs in two groups, with slow links into one of them, in which cuts around so many NPUs alone say most; NPU 0 is
    inside for every other size, so that it cannot be left out."""

    def draw() -> tuple[list[int], Links]:
        order = random.sample(range(npus), npus)
        inside, others = order[:size], order[size:]
        near = [[*pair, random.randrange(1, 4)] for group in (inside, others) for pair in permutations(group, 2)]
        out = [[random.choice(inside), random.choice(others), random.randrange(1, 4)] for _ in range(2)]
        into = [[random.choice(others), random.choice(inside), random.randrange(6, 13)] for _ in range(2)]
        return inside, random.sample([*near, *out, *into], len(near) + 4)

    def tells(inside: list[int], links: Links) -> bool:
        sizes = by_size(npus, links)
        most = sizes.pop(size - 1)
        return (0 in inside) == (size % 2 == 0) and most > max(far(npus, links), *sizes)

    return npus, next(links for inside, links in iter(draw, None) if tells(inside, links))


def _doubled(random: Random, npus: int) -> tuple[int, Links]:
    """A ring one way with two links from each to the next, so that ways are longer than cuts are narrow."""
    took, order = random.randrange(3, 30), random.sample(range(npus), npus)
    return npus, [[npu, order[(index + 1) % npus], took] for index, npu in enumerate(order) for _ in range(2)]


def _reached(random: Random, npus: int) -> tuple[int, Links]:
    """The first draw of quick links on which a greedy that tries often ends at the bound, and seldom: the first try is not enough."""
    while True:
        links = _random_links(random, npus, 2)
        least, ends = bound(npus, links), 0
        for _ in range(_TRIES):
            ends += finish(npus, links, greedy(npus, links, random)) == least
            if ends > _SELDOM:
                break
        if 1 < ends <= _SELDOM:
            return npus, links


def _finish_cases(random: Random, handed: dict[str, list[list[int]]]) -> Iterator[Case]:
    """Sends in any order: sound ones, one sent on too soon, one on a busy link, without the last one, and with chunks that come again. Each
    time the first network on which there are such."""
    given = int(handed["npus"])  # type: ignore[call-overload]
    yield _finish_case(given, handed["links"], handed["sends"])
    for change, npus in ((_as_it_is, 5), (_too_soon, 6), (_at_once, 7), (_without_last, 6), (_again, 5)):
        found = Sends()
        while not found:
            links = _with_twins(random, npus) if change is _again else _random_links(random, npus, 12)
            found = change(random, npus, links)
        yield _finish_case(npus, links, _mixed(random, found, npus, links))


def _mixed(random: Random, sends: Sends, npus: int, links: Links) -> Sends:
    """The first order of sound ones in which they break a rule where they are taken as they are listed."""
    sound = finish(npus, links, sends) is not None
    orders = iter(lambda: random.sample(sends, len(sends)), None)
    return next(mixed for mixed in orders if not sound or finish(npus, links, mixed, ordered=False) is None)


def _as_it_is(random: Random, npus: int, links: Links) -> Sends:
    return greedy(npus, links, random)


def _without_last(random: Random, npus: int, links: Links) -> Sends:
    return greedy(npus, links, random)[:-1]


def _too_soon(random: Random, npus: int, links: Links) -> Sends:
    """The first that is handed on sets out a step before it has come, and over a link that is free then."""
    return _a_step_before(random, npus, links, lambda changed: finish(npus, links, changed, waits=False))


def _at_once(random: Random, npus: int, links: Links) -> Sends:
    """One sets out while another is on its link, though it has come."""
    return _a_step_before(random, npus, links, lambda changed: finish(npus, links, changed, alone=False))


def _a_step_before(random: Random, npus: int, links: Links, ends: Callable[[Sends], int | None]) -> Sends:
    """The first of sound sends that sets out a step before and breaks one rule; none where there is none."""
    sends = greedy(npus, links, random)
    for index, (chunk, link, step) in enumerate(sends):
        changed = [*sends[:index], [chunk, link, step - 1], *sends[index + 1 :]]
        if step > 0 and finish(npus, links, changed) is None and ends(changed) is not None:
            return changed
    return []


def _again(random: Random, npus: int, links: Links) -> Sends:
    """Sends over the first half of the links; one of them that matters goes over its slower twin a step before as well, and another chunk
    goes again when all is done. None where no such one matters."""
    half = len(links) // 2
    sends = greedy(npus, links[:half], random)
    late = [random.randrange(npus), random.randrange(half), last(links, sends) + 1]
    for chunk, link, step in sends:
        found = [*sends, [chunk, link + half, step - 1], late]
        ended = finish(npus, links, found) if step else None
        if ended is not None and ended not in (finish(npus, links, found, counts=counts) for counts in OTHER_COMINGS):
            return found
    return []


def _with_twins(random: Random, npus: int) -> Links:
    """And then as many links again, each slower."""
    links = _random_links(random, npus, 12)
    return [*links, *([source, target, took + random.randrange(3, 9)] for source, target, took in links)]


def _case(name: str, call: Call, judge: Callable[[object], Verdict]) -> Case:
    return Case(name, call, judge)


def _finish_case(npus: int, links: Links, sends: Sends) -> Case:
    judge = partial(judge_finish, npus=npus, links=links, sends=sends)
    return _case(f"{npus} NPUs, {len(sends)} sends", Call("finish", (npus, links, sends)), judge)


def _far_case(npus: int, links: Links) -> Case:
    away, ones = distances(npus, links), [[source, target, 1] for source, target, _ in links]
    slips = [
        Slip("links are counted, not their steps", float(far(npus, ones))),
        Slip("the ways from the first NPU alone are looked at", max(away[0])),
        Slip("the ways to the first NPU alone are looked at", max(row[0] for row in away)),
        Slip("the slowest link is returned, not the farthest way", float(max(took for *_, took in links))),
    ]
    return _case(_text(npus, links), Call("far", (npus, links)), partial(figure, right=float(far(npus, links)), slips=slips))


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
        f"{_text(npus, links)}, {len(inside)} inside", Call("cut", (npus, links, inside)), partial(figure, right=right, slips=slips)
    )


def _within(into: list[int], chunks: int) -> int:
    return next(step for step in range(chunks * max(into) + 1) if sum(step // took for took in into) >= chunks)


def _leads(links: Links, inside: list[int]) -> bool:
    return any(sender in inside and receiver not in inside for sender, receiver, _ in links)


def _bound_case(npus: int, links: Links) -> Case:
    sizes, ways = by_size(npus, links), far(npus, links)
    slips = [
        Slip(WAYS, float(ways)),
        Slip("cuts alone are looked at, not the ways", float(max(sizes))),
        *(Slip(SIZES, float(max(ways, most))) for most in sizes),
        Slip("the sum is no bound: the largest is", float(ways + sizes[0])),
    ]
    return _case(_text(npus, links), Call("bound", (npus, links)), partial(figure, right=float(bound(npus, links)), slips=slips))


def ring_of(order: list[int]) -> Links:
    """Around a ring in this order, from each NPU to the next one and to the one before, a step each."""
    return [[npu, order[(index + way) % len(order)], 1] for index, npu in enumerate(order) for way in (1, -1)]


def _ring_case(order: list[int]) -> Case:
    judge = partial(judge_sends, npus=len(order), links=ring_of(order), best=len(order) // 2)
    return _case(f"{len(order)} NPUs", Call("ring", (order,)), judge)


def _gather_case(npus: int, links: Links) -> Case:
    judge = partial(judge_sends, npus=npus, links=links, best=bound(npus, links))
    return _case(_text(npus, links), Call("gather", (npus, links)), judge)


def _text(npus: int, links: Links) -> str:
    return f"{npus} NPUs, {len(links)} links"


COLLECTIVES = Assignment("10-collectives", "A collective over links: who sends what to whom, and when is it best?", tasks)
