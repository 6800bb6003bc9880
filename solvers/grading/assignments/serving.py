"""Assignment 13: workers that serve requests, judged by adding up what they serve.

together    what prompts of others add to the time for a token, and the rate of a worker that does both
choose      copies of one worker of a table for a rate within limits of latency: the fewest devices
best_rates  the best rate on every number of devices, any workers beside each other (an unbounded knapsack)
apart       workers for prompts and workers for tokens on so many devices: where both rates cross
bound       the rate that no workers exceed, without any table
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import ceil, inf
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
    numbers,
    public,
    same,
    shown,
    wrong,
)
from crossopt.solvers.grading.running import Call

Kinds = list[list[int]]
"""Devices of a worker, and requests that it serves in 1,000 s."""
Rows = list[list[int]]
"""Devices, milliseconds to the first token, microseconds for each other one, and requests in 1,000 s."""

# What is right.


def together(prefill: float, decode: float, batch: int, output: int) -> list[float]:
    """A prompt is computed alone, and of each token's steps a part of batch / output brings one."""
    token = decode + batch / output * prefill
    return [token, 1e3 * batch / (output * token)]


def replicas_for(row: Sequence[int], rate: int) -> int:
    """Copies that serve a rate."""
    return ceil(rate / row[3])


def fewest(rows: Rows, ttft: float, tpot: float, rate: int) -> int | None:
    """Devices of copies of one row within the limits; None where no row is."""
    return min((row[0] * replicas_for(row, rate) for row in rows if row[1] <= ttft and row[2] <= tpot), default=None)


def best_rates(kinds: Kinds, devices: int) -> list[int]:
    """The best rate on at most 0, 1, ... devices."""
    best = [0]
    for count in range(1, devices + 1):
        best.append(max([best[-1], *(best[count - size] + rate for size, rate in kinds if size <= count)]))
    return best


def best_apart(prefill: Kinds, decode: Kinds, devices: int) -> int:
    """The best rate of both parts."""
    first, second = best_rates(prefill, devices), best_rates(decode, devices)
    return max(min(first[own], second[devices - own]) for own in range(devices + 1))


def density(kinds: Kinds) -> float:
    return max(rate / size for size, rate in kinds)


def bound(prefill: Kinds, decode: Kinds, devices: int) -> float:
    """R <= x d_P and R <= (devices - x) d_D for some x: largest where the two are equal."""
    first, second = density(prefill), density(decode)
    return devices * first * second / (first + second)


# Likely mistakes.

UNDISTURBED = "prompts of others take no time"
OWN_PROMPT = "only the request's own prompt is counted, not that of each other one in the batch"
NO_LIMITS = "the limits are left out"
STRICT = "a latency that is exactly at its limit counts as broken"
DENSEST = "the worker with most requests for a device is taken, though its last copy has little to do"
ROUNDED = "copies are rounded down"
ONE_KIND = "copies of one kind of worker alone"
ONCE = "each kind of worker is taken once"
ALL_USED = "all devices are in use, where some would be idle"
GREEDY = "the kind with most requests for a device first"
HALVES = "the devices are halved"
SLOWER = "the slower part has all devices"
HALF_EACH = "each part has half of the devices"
MEAN = "the mean of the two parts is taken"


def table_mistakes(kinds: Kinds, devices: int) -> dict[str, list[int]]:
    """What likely mistakes make of the best rates."""
    counts = range(devices + 1)
    once, exact = [0] * (devices + 1), [0, *[-1] * devices]
    for size, rate in kinds:
        for count in range(devices, size - 1, -1):
            once[count] = max(once[count], once[count - size] + rate)
    for count in counts:
        exact[count] = max([exact[count], *(exact[count - s] + r for s, r in kinds if s <= count and exact[count - s] >= 0)])
    return {
        ONE_KIND: [max((count // size * rate for size, rate in kinds), default=0) for count in counts],
        ONCE: once,
        ALL_USED: [max(item, 0) for item in exact],
        GREEDY: [_greedy(kinds, count) for count in counts],
    }


def _greedy(kinds: Kinds, devices: int) -> int:
    reached = 0
    for size, rate in sorted(kinds, key=lambda kind: -kind[1] / kind[0]):
        reached, devices = reached + devices // size * rate, devices % size
    return reached


def apart_mistakes(prefill: Kinds, decode: Kinds, devices: int) -> dict[str, int]:
    """Rates that likely mistakes reach."""
    first, second = (table_mistakes(kinds, devices)[ONE_KIND] for kinds in (prefill, decode))
    half = devices // 2
    return {
        ONE_KIND: max(min(first[own], second[devices - own]) for own in range(devices + 1)),
        HALVES: min(best_rates(prefill, devices)[half], best_rates(decode, devices)[devices - half]),
    }


def choice_mistakes(rows: Rows, ttft: int, tpot: int, rate: int) -> dict[str, int | None]:
    """Devices that likely mistakes take."""
    within = [row for row in rows if row[1] <= ttft and row[2] <= tpot]
    dense = max(within, key=lambda row: row[3] / row[0], default=None)
    return {
        NO_LIMITS: fewest(rows, inf, inf, rate),
        STRICT: fewest(rows, ttft - 0.5, tpot - 0.5, rate),
        DENSEST: None if dense is None else dense[0] * replicas_for(dense, rate),
    }


# Judges.


def judge_together(handed: object, prefill: int, decode: int, batch: int, output: int) -> Verdict:
    """Both figures."""
    right, given = together(prefill, decode, batch, output), numbers(handed, 2)
    if given is None or len(given) != 2:
        return wrong(f"{shown(handed)} is returned where [milliseconds, requests a second] is meant")
    if all(same(item, figure_) for item, figure_ in zip(given, right, strict=True)):
        return FULL
    mistakes = {UNDISTURBED: float(decode), OWN_PROMPT: decode + prefill / output}
    named = [name for name, token in mistakes.items() if same(given[0], token)]
    why = f"{given[0]:.6g} ms and {given[1]:.6g} requests a second are returned, {right[0]:.6g} and {right[1]:.6g} are right"
    return nearly(named[0], why) if named and same(given[1], 1e3 * batch / (output * given[0])) else wrong(why)


def judge_choice(handed: object, rows: Rows, ttft: int, tpot: int, rate: int) -> Verdict:
    """The row is looked up, and its copies are added up."""
    given, best = integers_in(handed, 2), fewest(rows, ttft, tpot, rate)
    if given is None or len(given) != 2 or not 0 <= given[0] < len(rows) or given[1] < 1:
        return wrong(f"{shown(handed)} is returned where [row, copies] is meant")
    row, devices = rows[given[0]], rows[given[0]][0] * given[1]
    if row[3] * given[1] < rate:
        return wrong(
            f"{row[3] * given[1]} requests in 1,000 s are served of {rate}", ROUNDED if given[1] == replicas_for(row, rate) - 1 else ""
        )
    mistakes = choice_mistakes(rows, ttft, tpot, rate)
    if row[1] > ttft or row[2] > tpot:
        why = f"row {given[0]} takes {row[1]} ms and {row[2]} us, limits are {ttft} and {tpot}"
        return wrong(why, NO_LIMITS if devices == mistakes[NO_LIMITS] else "")
    if devices == best:
        return FULL
    why = f"{devices} devices are taken where {best} do"
    named = [name for name in (STRICT, DENSEST) if devices == mistakes[name]]
    return nearly(named[0], why, *named[1:]) if named else wrong(why)


def judge_rates(handed: object, kinds: Kinds, devices: int) -> Verdict:
    """The whole table."""
    right, given = best_rates(kinds, devices), integers_in(handed, devices + 1)
    if given is None or len(given) != devices + 1:
        return wrong(f"{shown(handed)} is returned where {devices + 1} whole numbers are meant")
    if given == right:
        return FULL
    index = next(count for count, (item, best) in enumerate(zip(given, right, strict=True)) if item != best)
    why = f"{given[index]} on {index} devices where {right[index]} can be had"
    named = [name for name, table in table_mistakes(kinds, devices).items() if table == given]
    return nearly(named[0], why) if named and named[0] != GREEDY else wrong(why, named[0] if named else "")


def judge_apart(handed: object, prefill: Kinds, decode: Kinds, devices: int) -> Verdict:
    """Devices and rates of both parts are added up."""
    if not isinstance(handed, list) or len(handed) != 2:
        return wrong(f"{shown(handed)} is returned where two lists of numbers of workers are meant")
    parts = [integers_in(own, len(kinds)) for own, kinds in zip(handed, (prefill, decode), strict=True)]
    used, reached = 0, list[int]()
    for own, kinds in zip(parts, (prefill, decode), strict=True):
        if own is None or len(own) != len(kinds) or min(own) < 0:
            return wrong(f"{shown(handed)} is returned where a number from 0 on is meant for each kind")
        used += sum(count * size for count, (size, _) in zip(own, kinds, strict=True))
        reached.append(sum(count * rate for count, (_, rate) in zip(own, kinds, strict=True)))
    if used > devices:
        return wrong(f"{used} devices are used of {devices}")
    best = best_apart(prefill, decode, devices)
    if min(reached) == best:
        return FULL
    why = f"{min(reached)} requests in 1,000 s are served, {best} can be"
    named = [name for name, rate in apart_mistakes(prefill, decode, devices).items() if rate == min(reached)]
    return nearly(named[0], why, *named[1:]) if named else wrong(why)


# Cases.


def tasks(seed: str) -> tuple[Task, ...]:
    """Tables drawn anew."""
    random, handed = Random(f"{seed}/13"), public("13-serving")
    steps = [
        tuple(handed["step"]),
        *((random.randrange(80, 900), random.randrange(6, 40), 8 * random.randrange(2, 17), random.randrange(100, 900)) for _ in range(4)),
    ]
    choices = [(handed["table"], handed["ttft"], handed["tpot"], handed["rate"]), *(_choice(random) for _ in range(4))]
    tables = [(handed["prefill"], handed["devices"]), *(_table(random) for _ in range(4))]
    both = [(handed["prefill"], handed["decode"], handed["devices"]), *(_apart(random) for _ in range(4))]
    return (
        Task("a token among prompts: together", 9, given_first(_case("together", step, judge_together, _STEP) for step in steps)),
        Task("copies of one worker: choose", 12, given_first(_case("choose", choice, judge_choice, _CHOICE) for choice in choices)),
        Task("the best rates: best_rates", 15, given_first(_case("best_rates", table, judge_rates, _TABLE) for table in tables)),
        Task("prompts and tokens apart: apart", 18, given_first(_case("apart", item, judge_apart, _APART) for item in both)),
        Task("a bound without a table: bound", 6, given_first(_bound_case(*item) for item in both)),
    )


_STEP, _CHOICE = ("prefill", "decode", "batch", "output"), ("rows", "ttft", "tpot", "rate")
_TABLE, _APART = ("kinds", "devices"), ("prefill", "decode", "devices")


def _case(function: str, given: Sequence[object], judge: Callable[..., Verdict], words: Sequence[str]) -> Case:
    return Case(f"{words[-1]} {given[-1]}", Call(function, tuple(given)), partial(judge, **dict(zip(words, given, strict=True))))


def _bound_case(prefill: Kinds, decode: Kinds, devices: int) -> Case:
    first, second = density(prefill), density(decode)
    slips = [
        Slip(SLOWER, devices * min(first, second), share=0.0),
        Slip(HALF_EACH, devices * min(first, second) / 2.0),
        Slip(MEAN, devices * (first + second) / 4.0, share=0.0),
    ]
    judge = partial(figure, right=bound(prefill, decode, devices), slips=slips)
    return Case(f"devices {devices}", Call("bound", (prefill, decode, devices)), judge)


def _choice(random: Random) -> tuple[Rows, int, int, int]:
    """A table whose best row is exactly at a limit, and in which likely mistakes take other numbers of devices."""
    while True:
        rows = Rows()
        for ranks in (1, 2, 4, 8):
            for batch in (8, 16, 32, 64, 128):
                token = round((20_000 / ranks**0.8 + 70 * batch / ranks**0.6) * random.uniform(0.9, 1.1))
                first = round((900 / ranks**0.9 + 3 * batch) * random.uniform(0.9, 1.1))
                rows.append([ranks, first, token, round(2e6 * batch / token)])
        random.shuffle(rows)
        tpot, ttft, rate = random.choice(rows)[2], random.randrange(200, 900), random.randrange(10_000, 60_000)
        best, found = fewest(rows, ttft, tpot, rate), choice_mistakes(rows, ttft, tpot, rate)
        if best is not None and None not in found.values() and len({best, *found.values()}) == 1 + len(found):
            return rows, ttft, tpot, rate


def _kinds(random: Random) -> Kinds:
    sizes = random.sample(range(2, 10), 3)
    return [[size, round(1_000 * size * random.uniform(0.85, 1.15))] for size in sizes]


def _table(random: Random) -> tuple[Kinds, int]:
    """Kinds of which all likely mistakes make other tables."""
    while True:
        kinds, devices = _kinds(random), random.randrange(20, 40)
        found = [best_rates(kinds, devices), *table_mistakes(kinds, devices).values()]
        if all(item != other for index, item in enumerate(found) for other in found[:index]):
            return kinds, devices


def _apart(random: Random) -> tuple[Kinds, Kinds, int]:
    """Two parts of which likely mistakes serve less."""
    while True:
        prefill, decode, devices = _kinds(random), _kinds(random), random.randrange(25, 60)
        prefill = [[size, round(rate * 1.7)] for size, rate in prefill]
        best, found = best_apart(prefill, decode, devices), apart_mistakes(prefill, decode, devices)
        if len({best, *found.values()}) == 1 + len(found):
            return prefill, decode, devices


SERVING = Assignment("13-serving", "Serve requests: workers, copies, devices", tasks)
