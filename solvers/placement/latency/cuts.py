"""A bound on latency from the nodes that all data pass: a dynamic program from cut to cut, with the parts between them looked at in full.

Let c_0, c_1, ..., c_m be nodes in the order of the data. The part of c_i and c_(i+1) is every node that comes after the first and before
the second; all other nodes are left out, which can only lower a bound. No data leave a piece (the nodes that an accelerator runs at once)
and come back to it. So a piece with c_i and c_(i+1) holds their whole part, and one with nodes of two parts holds the cut between these.
Of the nodes of a part

    S    are in the piece of c_i, without c_(i+1): all that comes before a node of S is in S
    T    are in the piece of c_(i+1), without c_i: all that comes after a node of T is in T
    R    are left: on CPUs, or in inner pieces of an accelerator of their own

Then with time(X) the sum of accelerator times, and out and in the transfers of outputs that the pieces hand out and take in,

    from c_i (done, or at the end of its piece) to c_(i+1):   time(S) + out(S) + rest(R) + in(T) + time(T)

and least[i, pieces used, bytes in the open piece] follows by adding the parts one after the other. `rest` is at least

    without inner pieces    the longest path of R by CPU times
    any inner pieces        the longest path where nodes are on CPUs or in pieces, with the transfers on the path
    one inner piece         for disjoint chains of R and the set X of those with a node in the piece, the larger of all CPU times of a chain
                            outside X and, over X, the sum of (its nodes before and after the piece) / |X| + (its nodes in the piece)

The last holds as a piece ends no sooner than what comes before it on any chain, plus its whole load: the mean over X is no more than the
most. A net that several chains share is paid once, so each pays a share of it. Nodes of one colour are in one piece.

Times are whole quanta, as for `paths`, and quotients are rounded down. Bytes are counted in units of a part of the memory, rounded down.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from math import inf

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask
from crossopt.formulation.model import real
from crossopt.solvers.placement.latency.paths import ScaledQuestion

LARGEST = 2_000
"""Nodes in a row of which relations between all pairs take too long."""
_UNITS = 512
"""Units of an accelerator's memory."""
_MOST_SETS, _MOST_PAIRS = 12_000, 20_000_000
"""Sets S of a part, and pairs of S and T of all parts, beyond which there is no bound."""
_MOST_BLOCKS = 62
"""Blocks of a part, whose sets are bits of an integer."""
_MOST_TABLED = 4_000_000
"""Pairs of sets of the groups of a part that are put into tables."""
_CHUNK = 1 << 16
"""Pairs that are looked at together."""
_MOST_CHAINS = 5
_INNER = 3
"""Inner pieces of a part: none, one, or two and more."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The nodes between two cuts, in the order of the data, and all sets S of them; T is what such a set leaves."""

    left: int | None
    """The cut before; None before the first."""
    right: int | None
    rows: list[int]
    sets: Ints
    """A bit for each block: rows of one colour, and what must be with them."""
    holds: Mask
    """Whether a set holds a row."""
    fits: Mask
    """Whether a set may be S, and what it leaves T: rows of a cut's colour are in its piece."""
    crossing: Array
    """Transfers of outputs of the left cut and the set that the rows it leaves, or the right cut, take."""


@dataclass(frozen=True, slots=True, eq=False)
class Rest:
    """What the rows between S and T, some of S and some of T take at least, by the inner pieces, for each number of units of S and T."""

    alone: Array
    first: Array
    """With S."""
    last: Array
    """With T."""
    both: Array
    origins: tuple[Ints, Ints, Ints, Ints]
    """For each of the four, a pair that takes as long: the index of S times the number of sets, and of the set that holds all but T."""


@dataclass(frozen=True, slots=True, eq=False)
class CutTables:
    """All parts between cuts, and the least times up to each cut, on a CPU or in an open piece."""

    scaled: ScaledQuestion
    parts: list[Part]
    rests: list[Rest]
    unit: int
    room: int

    def states(self) -> list[tuple[Array, Array]]:
        """The least times before the first part and after each, by pieces used; those in a piece also by its units."""
        slots = min(self.scaled.slots, len(self.scaled.cpu))
        on_cpu, in_piece = np.full(slots + 1, inf), np.full((slots + 1, self.room + 1), inf)
        on_cpu[0] = 0.0
        found = [(on_cpu, in_piece)]
        for part, rest in zip(self.parts, self.rests, strict=True):
            found.append(_through(self.scaled, part, rest, *found[-1], self.unit))
        return found

    def bound(self) -> float:
        """Milliseconds that no placement is below."""
        least = float(self.states()[-1][0].min())
        return real(int(least), self.scaled.quantum) if least < inf else 0.0


def cut_bound(scaled: ScaledQuestion, late: Callable[[], bool]) -> float:
    """Milliseconds that no placement is below; zero where there are no cuts, a part has too many sets, or time ran out."""
    return max((tables.bound() for tables in cut_tables(scaled, late)), default=0.0)


def cut_tables(scaled: ScaledQuestion, late: Callable[[], bool]) -> list[CutTables]:
    """Tables of all cuts, and of those that no edge goes around, if these are others."""
    if not 1 < len(scaled.cpu) <= LARGEST:
        return []
    before, after, cuts = _ordered(scaled)
    ends = before[cuts[-1]] & after[cuts[0]]
    edges = [(row, taker) for row, takers in enumerate(scaled.after) if ends >> row & 1 for taker in takers if ends >> taker & 1]
    passed = [cut for cut in cuts if not any(start != cut != end and before[cut] >> start & after[cut] >> end & 1 for start, end in edges)]
    known = dict[_Known, Rest]()
    found = [_tables_by(scaled, before, after, chosen, known, late) for chosen in (cuts, passed)[len(cuts) == len(passed) :]]
    return [tables for tables in found if tables is not None]


def _ordered(scaled: ScaledQuestion) -> tuple[list[int], list[int], list[int]]:
    """What comes before and after each row, a bit for each and for itself; and what is before or after all between the widest ends."""
    count = len(scaled.cpu)
    before, after = [0] * count, [0] * count
    for row in scaled.along:
        before[row] = 1 << row
        for other in scaled.before[row]:
            before[row] |= before[other]
    for row in reversed(scaled.along):
        after[row] = 1 << row
        for other in scaled.after[row]:
            after[row] |= after[other]
    end = max(range(count), key=lambda row: before[row].bit_count())
    spanned = max((before[end] & after[row] for row in range(count)), key=int.bit_count)
    return before, after, [row for row in scaled.along if spanned >> row & 1 and not spanned & ~(before[row] | after[row])]


_Known = tuple[int | None, int | None, tuple[int, ...], tuple[tuple[float, float], ...]]
"""The cuts and rows of a part, and the times and sizes of these."""


def _tables_by(
    scaled: ScaledQuestion, before: list[int], after: list[int], cuts: list[int], known: dict[_Known, Rest], late: Callable[[], bool]
) -> CutTables | None:
    """None if a part has too many sets, or time ran out."""
    apart = ~sum(1 << row for row in cuts)
    masks = [before[cuts[0]], *(after[left] & before[right] for left, right in pairwise(cuts)), after[cuts[-1]]]
    rows_of = [[row for row in scaled.along if (mask & apart) >> row & 1] for mask in masks]
    scaled = _with_their_colour(scaled, {row for rows in rows_of for row in rows} | set(cuts))
    unit = max(-(-int(scaled.memory) // _UNITS), 1)
    room = int(scaled.memory) // unit
    parts, rests, pairs = list[Part](), list[Rest](), 0
    for left, right, rows in zip((None, *cuts), (*cuts, None), rows_of, strict=True):
        part = _part(scaled, left, right, rows)
        if part is None:
            return None
        key = (left, right, tuple(rows), tuple((scaled.accelerator[row], scaled.size[row]) for row in (*rows, right) if row is not None))
        if key not in known:
            known[key], looked = _rest(scaled, part, unit, room, late)
            pairs += looked
            if late() or pairs > _MOST_PAIRS:
                return None
        parts.append(part)
        rests.append(known[key])
    return CutTables(scaled, parts, rests, unit, room)


def _with_their_colour(scaled: ScaledQuestion, kept: set[int]) -> ScaledQuestion:
    """Rows that are left out add their accelerator times and sizes to the first kept row of their colour, which is in their piece. A row
    that is larger than the memory is in none."""
    accelerator, size = list(scaled.accelerator), list(scaled.size)
    first = dict[int, int]()
    for row in scaled.along:
        if row in kept:
            first.setdefault(scaled.colour[row], row)
    for row, colour in enumerate(scaled.colour):
        if row not in kept and colour in first:
            accelerator[first[colour]] += accelerator[row]
            size[first[colour]] += size[row]
    accelerator = [inf if own > scaled.memory else time for time, own in zip(accelerator, size, strict=True)]
    return replace(scaled, accelerator=accelerator, size=size)


def _part(scaled: ScaledQuestion, left: int | None, right: int | None, rows: list[int]) -> Part | None:
    """The part with all sets of its blocks that hold what comes before their rows; None if there are too many."""
    index_of = {row: number for number, row in enumerate(rows)}
    blocks = {colour: number for number, colour in enumerate(dict.fromkeys(scaled.colour[row] for row in rows))}
    needs = [1 << number for number in range(len(blocks))]
    above = [0] * len(rows)
    for number, row in enumerate(rows):  # blocks with a row that comes before it
        above[number] = 1 << blocks[scaled.colour[row]]
        for other in scaled.before[row]:
            if other in index_of:
                above[number] |= above[index_of[other]]
        needs[blocks[scaled.colour[row]]] |= above[number]
    while True:
        wider = [_union(needs, need) for need in needs]
        if wider == needs:
            break
        needs = wider
    groups = sorted(set(needs), key=lambda need: (need.bit_count(), need))  # blocks that need each other are one
    if len(groups) > _MOST_BLOCKS:
        return None
    found = [0]
    for number, need in enumerate(groups):
        all_needed = sum(1 << other for other in range(number) if groups[other] & need == groups[other])
        found += [held | 1 << number for held in found if held & all_needed == all_needed]
        if len(found) > _MOST_SETS:
            return None
    group_of = {need: number for number, need in enumerate(groups)}
    sets = np.array(found, np.int64)
    places = np.array([group_of[needs[blocks[scaled.colour[row]]]] for row in rows], np.int64)
    holds = (sets[:, None] >> places & 1).astype(bool)
    lefts, rights = (
        np.array([end is not None and scaled.colour[row] == scaled.colour[end] for row in rows], bool) for end in (left, right)
    )
    joined = left is not None and right is not None and scaled.colour[left] == scaled.colour[right]
    fits = ~(~holds[:, lefts]).any(axis=1) & ~holds[:, rights].any(axis=1) & np.full(len(sets), not joined)
    return Part(left, right, rows, sets, holds, fits, _crossing(scaled, left, right, rows, holds))


def _crossing(scaled: ScaledQuestion, left: int | None, right: int | None, rows: list[int], holds: Mask) -> Array:
    index_of, found = {row: number for number, row in enumerate(rows)}, np.zeros(len(holds))
    for row in rows if left is None else (left, *rows):
        taken = np.zeros(len(holds), bool)
        for taker in scaled.after[row]:
            if taker == right:
                taken[:] = True
            elif taker in index_of:
                taken |= ~holds[:, index_of[taker]]
        found += scaled.transfer[row] * (taken & holds[:, index_of[row]] if row in index_of else taken)
    return found


def _union(needs: list[int], need: int) -> int:
    found, rest = need, need
    while rest:
        low = rest & -rest
        found |= needs[low.bit_length() - 1]
        rest ^= low
    return found


def _rest(scaled: ScaledQuestion, part: Part, unit: int, room: int, late: Callable[[], bool]) -> tuple[Rest, int]:
    """All pairs of S and T, and how many they are."""
    inner = _INNER if scaled.slots and len(part.rows) > 0 else 1
    shapes = ((inner, 1), (inner, room + 1), (inner, room + 1), (inner, room + 1, room + 1))
    alone, first, last, both = (np.full(shape, inf) for shape in shapes)
    rest = Rest(alone, first, last, both, tuple(np.zeros(shape, np.int64) for shape in shapes))  # type: ignore[arg-type]
    size = np.array([int(scaled.size[row]) for row in part.rows], np.int64)
    end_size = int(scaled.size[part.right]) if part.right is not None else 0
    time = np.array([scaled.accelerator[row] for row in part.rows])
    barred = np.isinf(time)
    time = np.where(barred, 0.0, time)
    holds = part.holds
    units = np.where((holds & barred).any(axis=1), room + 1, holds @ size // unit)
    units_left = np.where((~holds & barred).any(axis=1), room + 1, (~holds @ size + end_size) // unit)
    first_time, last_time = holds @ time + part.crossing, ~holds @ time + part.crossing
    none, every = int(np.flatnonzero(part.sets == 0)[0]), int(np.argmax(part.sets))
    firsts = np.flatnonzero(part.fits & (units <= room)) if part.left is not None else np.zeros(0, np.int64)
    lasts = np.flatnonzero(part.fits & (units_left <= room)) if part.right is not None else np.zeros(0, np.int64)
    chains, paths = _chains(scaled, part), _paths(scaled, part, inner)
    looked = 0
    for start, end in _pairs(part.sets, np.union1d(firsts, [none]), np.union1d(lasts, [every])):
        looked += len(start)
        if late() or looked > _MOST_PAIRS:
            break
        is_first, is_last, pair = np.isin(start, firsts), np.isin(end, lasts), start * len(part.sets) + end
        nothing = np.zeros(len(start), np.int64)
        cases = [
            (alone, rest.origins[0], (start == none) & (end == every), (nothing,), nothing),
            (first, rest.origins[1], is_first & (end == every), (units[start],), first_time[start]),
            (last, rest.origins[2], is_last & (start == none), (units_left[end],), last_time[end]),
            (both, rest.origins[3], is_first & is_last, (units[start], units_left[end]), first_time[start] + last_time[end]),
        ]
        times = paths(start, end)
        for number, own in zip((0, 2), times, strict=False):
            for table, origin, here, index, ends in cases:
                _lower(table[number], origin[number], index, here, own + ends, pair)
        if inner > 1:  # few pairs can be better than those before them
            better = np.zeros(len(start), bool)
            for table, _, here, index, ends in cases:
                better[here] |= (times[1] + ends)[here] < table[1][tuple(own[here] for own in index)]
            with_one = np.full(len(start), inf)
            with_one[better] = np.maximum(times[1][better], _with_one_piece(chains, part, start[better], end[better]))
            for table, origin, here, index, ends in cases:
                _lower(table[1], origin[1], index, here & better, with_one + ends, pair)
    return rest, looked


def _lower(table: Array, origin: Ints, index: tuple[Ints, ...], here: Mask, times: Array, pair: Ints) -> None:
    """Keep lesser times, and which pair takes them."""
    places = np.flatnonzero(here)
    places = places[times[places] < table[tuple(own[places] for own in index)]]
    index, times = tuple(own[places] for own in index), times[places]
    np.minimum.at(table, index, times)
    least = times == table[index]
    origin[tuple(own[least] for own in index)] = pair[places[least]]


def _pairs(sets: Ints, firsts: Ints, lasts: Ints) -> Iterator[tuple[Ints, Ints]]:
    """All S, and sets that hold S and leave T, some at a time."""
    starts, ends, waiting = list[Ints](), list[Ints](), 0
    step = max(_CHUNK * 16 // len(lasts), 1)
    for low in range(0, len(firsts), step):
        some = firsts[low : low + step]
        start, end = np.nonzero((sets[some][:, None] & ~sets[lasts]) == 0)
        starts.append(some[start])
        ends.append(lasts[end])
        waiting += len(start)
        if waiting >= _CHUNK or low + step >= len(firsts):
            start, end = np.concatenate(starts), np.concatenate(ends)
            for index in range(0, len(start), _CHUNK):
                yield start[index : index + _CHUNK], end[index : index + _CHUNK]
            starts, ends, waiting = [], [], 0


def _paths(scaled: ScaledQuestion, part: Part, inner: int) -> Callable[[Ints, Ints], list[Array]]:
    """For S and T the longest path of the rows between them, on CPUs, and if there are inner pieces also in these.

    Rows without a path between them are looked at apart, where the sets of each such group are few enough for a table of all pairs.
    """
    groups = list[tuple[list[int], Mask, Ints]]()
    for places in _groups(scaled, part):
        holds, number_of = np.unique(part.holds[:, places], axis=0, return_inverse=True)
        groups.append((places, holds, number_of.reshape(-1)))
    if sum(len(holds) ** 2 for _, holds, _ in groups) > _MOST_TABLED:
        places = list(range(len(part.rows)))
        return lambda start, end: _longest_paths(scaled, part, places, part.holds[start], part.holds[end], inner)
    tables = []
    for places, holds, number_of in groups:
        start, end = (own.reshape(-1) for own in np.indices((len(holds), len(holds))))
        tables.append((_longest_paths(scaled, part, places, holds[start], holds[end], inner), number_of, len(holds)))

    def longest(start: Ints, end: Ints) -> list[Array]:
        found = [np.zeros(len(start)) for _ in range(2 if inner > 1 else 1)]
        for table, number_of, count in tables:
            pair = number_of[start] * count + number_of[end]
            for own, times in zip(found, table, strict=True):
                np.maximum(own, times[pair], out=own)
        return found

    return longest


def _groups(scaled: ScaledQuestion, part: Part) -> list[list[int]]:
    """Places of the rows of a part that are joined by edges within it, in the order of the data."""
    index_of, group = {row: number for number, row in enumerate(part.rows)}, list(range(len(part.rows)))
    for number, row in enumerate(part.rows):
        for other in scaled.before[row]:
            if other in index_of:
                old, new = group[index_of[other]], group[number]
                group = [new if own == old else own for own in group]
    return [[number for number, own in enumerate(group) if own == name] for name in dict.fromkeys(group)]


def _longest_paths(scaled: ScaledQuestion, part: Part, places: list[int], started: Mask, held: Mask, inner: int) -> list[Array]:
    """The longest paths of the rows at some places, of which `started` says which S holds, and `held` which T does not."""
    rows = [part.rows[index] for index in places]
    on_cpus = _longest(scaled, rows, held & ~started)
    return [on_cpus] if inner == 1 else [on_cpus, _longest_in_pieces(scaled, part, rows, held & ~started, held)]


def _longest(scaled: ScaledQuestion, rows: list[int], rest: Mask) -> Array:
    """The longest path of the rows that are left, on CPUs."""
    index_of = {row: number for number, row in enumerate(rows)}
    done = list[Array]()
    for number, row in enumerate(rows):
        ready = np.zeros(len(rest))
        for other in scaled.before[row]:
            if other in index_of:
                np.maximum(ready, done[index_of[other]], out=ready)
        done.append((ready + scaled.cpu[row]) * rest[:, number])
    return np.max(done, axis=0) if done else np.zeros(len(rest))


def _longest_in_pieces(scaled: ScaledQuestion, part: Part, rows: list[int], rest: Mask, held: Mask) -> Array:
    """A lower bound on the longest path where rows may be in inner pieces: each path takes its own best way."""
    index_of = {row: number for number, row in enumerate(rows)}
    done, inside = list[Array](), list[Array]()
    """When a row's output is there for others, and when it is in its piece, infinite where it cannot be in one."""
    least = np.zeros(len(held))
    for number, row in enumerate(rows):
        ready, entered, left = np.zeros(len(held)), np.zeros(len(held)), rest[:, number]
        for other in scaled.before[row]:
            if other == part.left:
                np.maximum(entered, scaled.transfer[other], out=entered)
            elif other in index_of:
                there = index_of[other]
                np.maximum(ready, done[there], out=ready)
                np.maximum(entered, np.minimum(inside[there], done[there] + scaled.transfer[other]), out=entered)
        within = entered + scaled.accelerator[row]
        out = np.minimum(ready + scaled.cpu[row], within + scaled.transfer[row])
        done.append(np.where(left, out, 0.0))
        inside.append(np.where(left, within, inf))
        taken = np.zeros(len(held), bool)
        for taker in scaled.after[row]:
            if taker == part.right:
                taken[:] = True
            elif taker in index_of:
                taken |= ~held[:, index_of[taker]]
        np.maximum(least, np.where(left, np.where(taken, out, np.minimum(out, within)), 0.0), out=least)
    return least


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """Rows that follow each other, and what those from one place up to another take at least."""

    rows: list[int]
    held: Ints
    """How many of them each set holds: the first ones."""
    cpu: Array
    on_piece: Array
    """With one piece, by the number of chains that it has rows of."""


def _chains(scaled: ScaledQuestion, part: Part) -> list[Chain]:
    """What the chains of a part take."""
    index_of, found = {row: number for number, row in enumerate(part.rows)}, chains_of(scaled, part)
    most = len(found) + (1 if sum(len(chain) for chain in found) < len(part.rows) else 0)
    return [_chain(scaled, part, chain, [index_of[row] for row in chain], most) for chain in found]


def chains_of(scaled: ScaledQuestion, part: Part) -> list[list[int]]:
    """The longest chain by CPU times, the longest of what is left, and so on."""
    left, found = dict.fromkeys(part.rows), list[list[int]]()
    while left and len(found) < _MOST_CHAINS:
        sums, origin = dict[int, float](), dict[int, int | None]()
        for row in left:
            origin[row] = max((other for other in scaled.before[row] if other in sums), key=lambda other: sums[other], default=None)
            sums[row] = scaled.cpu[row] + (0.0 if (known := origin[row]) is None else sums[known])
        row = max(sums, key=lambda number: sums[number])
        chain = list[int]()
        step: int | None = row
        while step is not None:
            chain.append(step)
            step = origin[step]
        found.append(chain[::-1])
        for step in chain:
            del left[step]
    return found


def _chain(scaled: ScaledQuestion, part: Part, rows: list[int], places: list[int], most: int) -> Chain:
    length = len(rows)
    upto = np.concatenate([[0.0], np.cumsum([scaled.cpu[row] for row in rows])])
    cpu = upto[None, :] - upto[:, None]
    on_piece = np.full((most + 1, length + 1, length + 1), inf)
    for first in range(length):
        work = 0.0
        enters = scaled.transfer[rows[first - 1]] if first else scaled.transfer[part.left] if part.left in scaled.before[rows[0]] else 0.0
        shared = not first or len(scaled.after[rows[first - 1]]) > 1
        for last in range(first, length):
            work += scaled.accelerator[rows[last]]
            leaves = scaled.transfer[rows[last]] if last < length - 1 or part.right in scaled.after[rows[last]] else 0.0
            for count in range(1, most + 1):
                load = work + leaves + (enters // count if shared else enters)
                beside = (upto[first] - upto[: first + 1])[:, None] + (upto[last + 1 :] - upto[last + 1])[None, :]
                here = on_piece[count, : first + 1, last + 1 :]
                np.minimum(here, load + beside // count, out=here)
    return Chain(rows, part.holds[:, places].sum(axis=1), cpu, on_piece)


def _with_one_piece(chains: list[Chain], part: Part, start: Ints, end: Ints) -> Array:
    """The least over the sets of chains that the piece has rows of; with none of them where chains do not hold all rows of the part."""
    every = (1 << len(chains)) - 1
    spans = [(chain.held[start], chain.held[end]) for chain in chains]
    on_cpu = {0: np.zeros(len(start))}
    for subset in range(1, every + 1):
        number = subset.bit_length() - 1
        on_cpu[subset] = np.maximum(on_cpu[subset ^ 1 << number], chains[number].cpu[spans[number]])
    covered = sum(len(chain.rows) for chain in chains) == len(part.rows)
    least = np.full(len(start), inf) if covered else on_cpu[every].copy()
    for count in range(1, len(chains) + 1):
        in_piece = [chain.on_piece[count][span] for chain, span in zip(chains, spans, strict=True)]
        for inside in combinations(range(len(chains)), count):
            outside = every ^ sum(1 << number for number in inside)
            np.minimum(least, np.maximum(sum(in_piece[number] for number in inside), on_cpu[outside]), out=least)
    return least


def _through(scaled: ScaledQuestion, part: Part, rest: Rest, on_cpu: Array, in_piece: Array, unit: int) -> tuple[Array, Array]:
    """The least times up to the right cut, on a CPU or in a piece that is not yet at its end, by pieces used and by its units."""
    most, room = len(on_cpu), in_piece.shape[1] - 1
    fitting = np.minimum.accumulate(in_piece, axis=1)[:, ::-1]  # by the units that are needed beside the piece's own
    cpu = scaled.cpu[part.right] if part.right is not None else 0.0
    time = scaled.accelerator[part.right] if part.right is not None else inf
    cpu_next, piece_next = np.full_like(on_cpu, inf), np.full_like(in_piece, inf)
    for inner in range(len(rest.alone)):
        for used in range(most - inner):
            first = float((fitting[used] + rest.first[inner]).min())
            cpu_next[used + inner] = min(cpu_next[used + inner], on_cpu[used] + rest.alone[inner, 0] + cpu, first + cpu)
            if used + inner + 1 < most and time < inf:
                begun = np.minimum(on_cpu[used] + rest.last[inner], (fitting[used][:, None] + rest.both[inner]).min(axis=0)) + time
                np.minimum(piece_next[used + inner + 1], begun, out=piece_next[used + inner + 1])
    if part.right is not None and part.left is not None:
        rows = [*part.rows, part.right]
        work, units = sum(scaled.accelerator[row] for row in rows), int(sum(scaled.size[row] for row in rows)) // unit
        if work < inf and units <= room:
            np.minimum(piece_next[:, units:], in_piece[:, : room + 1 - units] + work, out=piece_next[:, units:])
    return cpu_next, piece_next
