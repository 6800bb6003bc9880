"""Placements from the tables of cuts: what the program from cut to cut takes of each part, with inner pieces that a search finds.

The least times of the program are true where a part has no inner pieces. Where it has some, a search on the part alone finds them, and the
table takes the time found instead of the bound. This is repeated until the program takes nothing but times that were found.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from math import inf

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.instances.placement.question import PlacementQuestion
from crossopt.solvers.placement.latency.cuts import CutTables, Part, Rest, chains_of
from crossopt.solvers.placement.latency.flow import CPU, Flow, flow_of, replayed
from crossopt.solvers.placement.latency.search import Serial, annealed, first_pieces, fits, packed

_MOST_INNER = 4
"""Inner pieces of a part that are searched for."""
_MOVES, _ROUNDS = 1_500, 200
"""Moves of a search on a part, and how often the program is run at most."""

Late = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class _Choice:
    """What the program takes of a part."""

    kind: int
    """Which table of the rest: with neither S nor T, with S, with T, with both; -1 if one piece goes through."""
    inner: int = 0
    index: tuple[int, ...] = (0,)


Inner = tuple[float, list[int]]
"""Quanta that the rows between S and T take, and the inner piece of each of them, or CPU."""


def assembled(question: PlacementQuestion, flow: Flow, tables: CutTables, seed: int, late: Late) -> tuple[float, list[int]]:
    """The best placement by tables with found times, by its replay; all on CPUs if there is none."""
    everywhere = [CPU] * len(flow.blocks)
    last, best = everywhere, (replayed(flow, everywhere), everywhere)
    tables = replace(tables, rests=[_more_inner(rest, tables.scaled.slots) for rest in tables.rests])
    known = dict[tuple[int, int, int], Inner]()
    found = set[tuple[int, _Choice]]()
    for _ in range(_ROUNDS):
        if late():
            break
        choices, new = _choices(tables), False
        for number, choice in enumerate(choices):
            if choice.inner and (number, choice) not in found and not late():
                found.add((number, choice))
                new |= _search(question, tables, number, choice, known, seed)
        slot_of = _slots(flow, tables, choices, known)
        if slot_of is not None:
            last = slot_of
            best = min(best, (replayed(flow, slot_of), slot_of))
        if slot_of is None and not new and tables.room > 0:  # sizes of parts are rounded down
            tables = _less_room(tables)
        elif not new:
            break
    beside = _beside(flow, tables)
    return min(_joined(flow, slot_of, beside, late) for slot_of in (last, best[1]))


def _beside(flow: Flow, tables: CutTables) -> list[int]:
    """The blocks without rows of parts and cuts."""
    rows = {row for part in tables.parts for row in (*part.rows, part.right)}
    return [block for block, own in enumerate(flow.rows) if rows.isdisjoint(own)]


def _joined(flow: Flow, slot_of: list[int], beside: list[int], late: Late) -> tuple[float, list[int]]:
    """Blocks beside the cuts join the pieces of their neighbours where that takes no longer."""
    near = [set[int]() for _ in range(len(flow.blocks))]
    for source, target in flow.blocks.arcs:
        near[source].add(target)
        near[target].add(source)
    best = (replayed(flow, slot_of), slot_of)
    for block in (*beside[::-1], *beside):
        for slot in sorted({best[1][other] for other in near[block]} - {best[1][block]}):
            changed = list(best[1])
            changed[block] = slot
            if late():
                return best
            if fits(flow, best[1], [block], slot) and (value := replayed(flow, changed)) <= best[0]:
                best = (value, changed)
    return best


def _less_room(tables: CutTables) -> CutTables:
    end = tables.room
    rests = [replace(rest, first=rest.first[:, :end], last=rest.last[:, :end], both=rest.both[:, :end, :end]) for rest in tables.rests]
    return replace(tables, rests=rests, room=end - 1)


def _more_inner(rest: Rest, most: int) -> Rest:
    """More inner pieces begin with the bound for two and more; a table of its own, as it takes in what is found."""
    count = min(_MOST_INNER, most) + 1 if len(rest.alone) > 1 else 1
    rows = [min(number, len(rest.alone) - 1) for number in range(count)]
    return Rest(rest.alone[rows], rest.first[rows], rest.last[rows], rest.both[rows], tuple(own[rows] for own in rest.origins))  # type: ignore[arg-type]


def _search(
    question: PlacementQuestion, tables: CutTables, number: int, choice: _Choice, known: dict[tuple[int, int, int], Inner], seed: int
) -> bool:
    """Find inner pieces for what a part takes, and whether they take longer than the table says, which then has their time."""
    part, rest = tables.parts[number], tables.rests[number]
    pair = int(rest.origins[choice.kind][(choice.inner, *choice.index)])
    start, end = divmod(pair, len(part.sets))
    rows = [row for row, left in zip(part.rows, part.holds[end] & ~part.holds[start], strict=True) if left]
    key = (number, pair, choice.inner)
    if key not in known:
        known[key] = _inner(question, tables, part, rows, choice.inner, seed)
    table = (rest.alone, rest.first, rest.last, rest.both)[choice.kind]
    at = (choice.inner, *choice.index)
    least = known[key][0] + _ends_of(tables, part, start, end, choice.kind)
    grows = bool(least > table[at])
    table[at] = max(least, float(table[at]))
    return grows


def _ends_of(tables: CutTables, part: Part, start: int, end: int, kind: int) -> float:
    """What S and T take of the times of a part."""
    time = np.array([tables.scaled.accelerator[row] for row in part.rows])
    first = float(time[part.holds[start]].sum() + part.crossing[start]) if kind in (1, 3) else 0.0
    last = float(time[~part.holds[end]].sum() + part.crossing[end]) if kind in (2, 3) else 0.0
    return first + last


def _inner(question: PlacementQuestion, tables: CutTables, part: Part, rows: list[int], count: int, seed: int) -> Inner:
    """The best pieces found for rows of a part, between rows that are done before and rows that begin after."""
    graph, inside = question.graph, set(rows)
    joined = zip(graph.source.tolist(), graph.target.tolist(), strict=True)
    edges = [(start, end) for start, end in joined if start in inside or end in inside]
    ends = sorted({row for edge in edges for row in edge} - inside)
    if not rows:
        return 0.0, []
    order = [*rows, *ends]
    index_of = {row: number for number, row in enumerate(order)}
    outside = np.arange(len(order)) >= len(rows)
    part_of = replace(
        graph,
        ids=tuple(graph.ids[row] for row in order),
        names=tuple(graph.names[row] for row in order),
        accelerator_time=np.where(outside, inf, graph.accelerator_time[order]),
        cpu_time=np.where(outside, 0.0, graph.cpu_time[order]),
        size=graph.size[order],
        transfer=graph.transfer[order],
        backward=graph.backward[order],
        colour=np.unique(np.where(outside, -1 - np.arange(len(order)), graph.colour[order]), return_inverse=True)[1],
        source=np.array([index_of[start] for start, _ in edges], np.int64),
        target=np.array([index_of[end] for _, end in edges], np.int64),
    )
    flow = flow_of(replace(question, graph=part_of, accelerators=count, pieces=1))
    chains = [[index_of[row] for row in chain if row in inside] for chain in chains_of(tables.scaled, part)]
    starts = (first_pieces(flow, lambda: False)[1], _on_chains(flow, chains, count))
    best = min(annealed(flow, slot_of, _MOVES, seed, lambda: False) for slot_of in starts)
    slots = [best[1][block] for block in flow.blocks.block_of.tolist()][: len(rows)]
    return float(np.ceil(best[0] / tables.scaled.quantum)), slots


def _on_chains(flow: Flow, chains: list[list[int]], count: int) -> list[int]:
    """One piece on each of the chains that take the longest on CPUs, where it makes the chain shortest by itself."""
    slot_of = [CPU] * len(flow.blocks)
    chains = sorted((chain for chain in chains if chain), key=lambda chain: -sum(flow.cpu[row] for row in chain))
    for slot, chain in enumerate(chains[:count]):
        tried = [(sum(flow.cpu[row] for row in chain), [])]  # type: list[tuple[float, list[int]]]
        for first, last in combinations(range(len(chain) + 1), 2):
            span = chain[first:last]
            blocks = sorted({int(flow.blocks.block_of[row]) for row in span})
            if all(slot_of[block] == CPU for block in blocks) and fits(flow, slot_of, blocks, slot):
                inside = set(span)
                time = sum(flow.cpu[row] for row in chain if row not in inside) + sum(flow.accelerator[row] for row in span)
                time += sum(flow.transfer[row] for row, after in enumerate(flow.after) if row not in inside and inside & {*after})
                tried.append((time + sum(flow.transfer[row] for row in span if {*flow.after[row]} - inside), blocks))
        for block in min(tried)[1]:
            slot_of[block] = slot
    return slot_of


def _choices(tables: CutTables) -> list[_Choice]:
    """What the program takes of each part, from the last to the first, in the order of the parts."""
    states = tables.states()
    used, units = int(states[-1][0].argmin()), -1
    found = list[_Choice]()
    for number in range(len(tables.parts) - 1, -1, -1):
        value = float(states[number + 1][0][used] if units < 0 else states[number + 1][1][used, units])
        choice, used, units = _before(tables, number, states[number], value, used, units)
        found.append(choice)
    return found[::-1]


def _before(tables: CutTables, number: int, state: tuple[Array, Array], value: float, used: int, units: int) -> tuple[_Choice, int, int]:
    """What a part adds to reach a value, and the pieces and units before it; no units on a CPU."""
    scaled, part, rest = tables.scaled, tables.parts[number], tables.rests[number]
    on_cpu, in_piece = state
    fitting = np.minimum.accumulate(in_piece, axis=1)[:, ::-1]
    if units < 0:
        cpu = scaled.cpu[part.right] if part.right is not None else 0.0
        for inner in range(min(len(rest.alone), used + 1)):
            if on_cpu[used - inner] + rest.alone[inner, 0] + cpu == value:
                return _Choice(0, inner), used - inner, -1
            sums = fitting[used - inner] + rest.first[inner] + cpu
            if sums.min() == value:
                index = int(sums.argmin())
                return _Choice(1, inner, (index,)), used - inner, _fullest(tables, in_piece[used - inner], index)
    else:
        time = scaled.accelerator[part.right] if part.right is not None else inf
        if part.left is not None and part.right is not None:
            rows = [*part.rows, part.right]
            work, own = sum(scaled.accelerator[row] for row in rows), int(sum(scaled.size[row] for row in rows)) // tables.unit
            if units >= own and in_piece[used, units - own] + work == value:
                return _Choice(-1), used, units - own
        for inner in range(min(len(rest.alone), used)):
            earlier = used - inner - 1
            if on_cpu[earlier] + rest.last[inner, units] + time == value:
                return _Choice(2, inner, (units,)), earlier, -1
            sums = fitting[earlier] + rest.both[inner][:, units] + time
            if sums.min() == value:
                index = int(sums.argmin())
                return _Choice(3, inner, (index, units)), earlier, _fullest(tables, in_piece[earlier], index)
    raise ArithmeticError("no part leads to a value of the table")


def _fullest(tables: CutTables, in_piece: Array, index: int) -> int:
    """The units of the open piece that leaves room for so many more."""
    return int(in_piece[: tables.room + 1 - index].argmin())


def _slots(flow: Flow, tables: CutTables, choices: list[_Choice], known: dict[tuple[int, int, int], Inner]) -> list[int] | None:
    """The slots of all blocks; None where pieces do not fit."""
    piece_of, pieces, here = dict[int, int](), 0, -1
    """Of each row, how many there are, and the open one."""
    for number, choice in enumerate(choices):
        part, rest = tables.parts[number], tables.rests[number]
        if choice.kind < 0:
            piece_of |= dict.fromkeys(part.rows, here)
        else:
            pair = int(rest.origins[choice.kind][(choice.inner, *choice.index)])
            start, end = divmod(pair, len(part.sets))
            if choice.kind in (1, 3):
                piece_of |= {row: here for row, held in zip(part.rows, part.holds[start], strict=True) if held}
            if choice.inner:
                rows = [row for row, left in zip(part.rows, part.holds[end] & ~part.holds[start], strict=True) if left]
                inner = known.get((number, pair, choice.inner), (0.0, [CPU] * len(rows)))[1]
                piece_of |= {row: pieces + slot for row, slot in zip(rows, inner, strict=True) if slot != CPU}
                pieces += choice.inner
            here = -1
            if choice.kind in (2, 3):
                here, pieces = pieces, pieces + 1
                piece_of |= {row: here for row, held in zip(part.rows, part.holds[end], strict=True) if not held}
        if here >= 0 and part.right is not None:
            piece_of[part.right] = here
    piece = [_common({piece_of.get(row, CPU) for row in rows}) for rows in flow.rows]
    names = {old: new for new, old in enumerate(sorted(set(piece) - {CPU}))}
    piece = [names.get(old, CPU) for old in piece]
    sizes = np.bincount(np.array(piece) + 1, flow.blocks.size)[1:]
    if len(sizes) > flow.slots or sizes.max(initial=0.0) > flow.memory:
        return None
    return packed(flow, Serial(inf, piece))


def _common(pieces: set[int]) -> int:
    return next(iter(pieces)) if len(pieces) == 1 else CPU
