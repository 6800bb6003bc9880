"""The sheet of embedding tables on devices: time and memory of each device, the largest tables, what makes the slowest slow."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from crossopt.crossflow.embeddings import row_shards
from crossopt.crossflow.recommendation import Strategy
from crossopt.instances.embeddings.options import FIGURES, TIERS, PricedOption, devices_of
from crossopt.instances.embeddings.question import EmbeddingsQuestion
from crossopt.instances.embeddings.systems import AXES, Part, System, SystemFigures, all_parts, chosen_parts, fixed_at
from crossopt.instances.embeddings.tables import Table as EmbeddingTable
from crossopt.instances.files.units import rounded_quantity
from crossopt.reports.drawing.bars import Units, columns
from crossopt.reports.sheets.amounts import several
from crossopt.reports.sheets.sheet import (
    Limit,
    Limits,
    Picture,
    Section,
    Sheet,
    Table,
    amounts,
    answer_sheet,
    baselines_in,
    counts,
    names,
)
from crossopt.solvers.answer import Result
from crossopt.solvers.embeddings.judge import EmbeddingFigures, EmbeddingPlan, TablePlan, option_text

_DEVICES, _ROWS, _NAMED = 32, 12, 4
"""Devices of a picture, rows that a terminal shows, and tables that a sentence names."""
_GIB = float(2**30)
_ASKED = {"slowest_device": "slowest device", "step": "step", "fewest_devices": "devices"}
TORCHREC_NAMES = {
    "table": "table_wise",
    "row": "row_wise",
    "column": "column_wise",
    "table-row": "table_row_wise",
    "table-column": "table_column_wise",
    "grid": "grid_shard",
    "data": "data_parallel",
}


def sheet(asked_for: EmbeddingsQuestion, result: Result[EmbeddingPlan, EmbeddingFigures]) -> Sheet:
    """What is shown."""
    answer, said, question = result.answer, result.details, asked_for
    if answer is not None and answer.system is not None:
        question = fixed_at(asked_for, answer.system)
    if answer is not None and answer.devices is not None:
        question = asked_for.on(answer.devices)
    file = question.file
    asked = "slowest device" if file.objective == "slowest_device" else "slowest of each phase in all"
    wanted = "fewest devices hold them" if asked_for.file.objective == "fewest_devices" else f"{asked} takes the least time"
    sections: tuple[Section, ...] = ()
    if answer is not None and said is not None:
        beside = tuple(_system(asked_for, answer.system, said.system)) if answer.system and said.system else ()
        sections = (*beside, _limits(question, said), _phases(said), _devices(question, answer, said), _largest(question, answer))
    return answer_sheet(
        result,
        "plan",
        f"Where does each embedding table lie, cut how, in which memory, so that the {wanted}?",
        asks=_ASKED[asked_for.file.objective] + (" with dense layers" if asked_for.file.dense else ""),
        summary=_ways(answer) if answer else "",
        answer_rows=(("tables", _ways(answer)), *(_choices(asked_for, answer.system, said.system) if answer.system and said else ()))
        if answer
        else (),
        figures=_figures(question, answer, said) if answer and said else (),
        given=_given(question),
        sections=(*sections, baselines_in("plan", result, result.baselines)),
        details=lambda: () if said is None else tuple(_pictures(question, said)),
        notes=(*result.notes, *_notes(question)),
        judged="shard by shard",
        next_step="`crossopt export RESULT --as plan` writes the shards of every table as JSON"
        if answer is not None
        else "`crossopt explain QUESTION` names a smallest set of limits that clash",
    )


def _time(milliseconds: float) -> str:
    return rounded_quantity(milliseconds / 1e3, "time", 5)


def _size(amount: float) -> str:
    return rounded_quantity(float(amount), "bytes") if amount else "0"


def _ways(answer: EmbeddingPlan) -> str:
    """How many tables lie in which way."""
    found = Counter(f"{held.option.sharding}, {held.option.kernel}" for held in answer.tables)
    return " · ".join(f"{count:,} x {name}" for name, count in found.most_common())


def _figures(question: EmbeddingsQuestion, answer: EmbeddingPlan, said: EmbeddingFigures) -> tuple[tuple[str, str], ...]:
    slowest = max(range(len(said.loads)), key=said.loads.__getitem__)
    other = ("step", _time(said.step)) if question.file.objective == "slowest_device" else ("slowest device", _time(said.slowest))
    return other, ("mean device", _time(said.mean)), ("slowest", f"device {slowest}: {_causes(question, answer, slowest)}")


def pieces_on(
    question: EmbeddingsQuestion, answer: EmbeddingPlan, device: int
) -> list[tuple[EmbeddingTable, TablePlan, PricedOption, int]]:
    """Tables with pieces on a device, and how many, those that take most time first."""
    group, found = question.group, list[tuple[EmbeddingTable, TablePlan, PricedOption, int]]()
    options = [{option.option: option for option in own} for own in question.options]
    for table, kind, held in zip(question.tables, question.types, answer.tables, strict=True):
        option = options[kind][held.option]
        count = sum(item == device for item in devices_of(option.spread, held.places, group.per_node, group.devices))
        if count:
            found.append((table, held, option, count))
    return sorted(found, key=lambda one: -one[2].time * one[3])


def _causes(question: EmbeddingsQuestion, answer: EmbeddingPlan, device: int) -> str:
    """The tables that take most of a device's time."""
    own = pieces_on(question, answer, device)
    total = sum(option.time * count for _, _, option, count in own)
    shown = [f"{table.name} {option.time * count / total:.0%}" for table, _, option, count in own[:_NAMED]] if total else []
    more = f" and {several(len(own) - _NAMED, 'more table')}" if len(own) > _NAMED else ""
    return ", ".join(shown) + more if shown else "no tables"


def _given(question: EmbeddingsQuestion) -> tuple[tuple[str, str], ...]:
    file, group = question.file, question.group
    kept = []
    if file.cluster.reserve:
        kept.append(f"{file.cluster.reserve:.0%} reserved")
    if file.cluster.dense:
        kept.append(f"{_size(file.cluster.dense)} for the dense part")
    tiers = [f"{_size(room)} of {tier.upper()}" for tier, room in zip(TIERS, question.capacity, strict=True)]
    return (
        ("tables", f"{len(question.tables):,} of {several(len(question.options), 'type')}"),
        ("devices", f"{group.devices:,} in {several(question.nodes, 'node')}"),
        ("a device", ", ".join(tiers) + f" ({', '.join(kept) or 'nothing reserved'})"),
        ("batch", f"{group.batch:,} of each device"),
        ("optimizer", file.optimizer),
        ("pipeline", file.pipeline),
    )


def _notes(question: EmbeddingsQuestion) -> Iterator[str]:
    """What a reader may miss."""
    few = [table for table in question.tables if table.rows < question.group.devices]
    if few and "row" in question.file.choices.sharding:
        yield f"{several(len(few), 'table')} with fewer rows than devices ({few[0].name} first) cannot be cut by rows over all"
    cuts = [columns for columns in question.file.choices.columns if columns > 1]
    if cuts and {"column", "table-column", "grid"} & set(question.file.choices.sharding):
        narrowest = question.choices.narrowest
        whole = sum(all(table.dimension % cut or table.dimension // cut < narrowest for cut in cuts) for table in question.tables)
        if whole:
            yield f"columns of {several(whole, 'table')} are not cut: equal pieces of {narrowest} or more are asked (choices.narrowest)"


def _limits(question: EmbeddingsQuestion, said: EmbeddingFigures) -> Section:
    used = [max(own[tier] for own in said.memory) for tier in range(len(TIERS))]
    rows = [
        Limit(f"{tier.upper()} of the fullest device", float(most), float(room), "bytes")
        for tier, most, room in zip(TIERS, used, question.capacity, strict=True)
        if most
    ]
    return Section("Memory", (Limits(tuple(rows)),) if rows else ())


def _strategy(strategy: Strategy) -> str:
    return f"{strategy.within} within nodes, {strategy.across} across"


def _choices(question: EmbeddingsQuestion, system: System, said: SystemFigures | None) -> Iterator[tuple[str, str]]:
    """What was chosen beside the plan of tables."""
    several_nodes = question.nodes > 1
    for name, strategy in (("bottom", system.bottom), ("top", system.top)):
        if strategy is not None:
            yield f"{name} layers", _strategy(strategy) if several_nodes else strategy.within
    if question.file.node is not None and said is not None:
        parts = zip(AXES, chosen_parts(question, system), strict=True)
        chosen = [f"{_part(name, part)}" for name, part in parts if getattr(question.file.node, name)]
        yield "node", f"{', '.join(chosen)}, for {said.price:,.2f} USD"


def _part(name: str, part: Part) -> str:
    rate = rounded_quantity(part.bandwidth * 1e3, "bandwidth")
    return f"{name.replace('_', '-')} of {f'{_size(part.size)} at ' if part.size else ''}{rate}"


def _system(question: EmbeddingsQuestion, system: System, said: SystemFigures) -> Iterator[Section]:
    """Layers with their strategies, and parts of the node beside the others of their kind."""
    rows = [
        (name, "-" if strategy is None else _strategy(strategy), cost)
        for name, strategy, cost in (
            ("bottom", system.bottom, said.bottom),
            ("interaction", None, said.interaction),
            ("top", system.top, said.top),
        )
        if cost is not None
    ]
    if rows:
        table = Table(
            (
                names("layers", (name for name, _, _ in rows)),
                names("strategy", (strategy for _, strategy, _ in rows)),
                amounts("forward", [cost.forward for _, _, cost in rows], _time, "ms"),
                amounts("backward", [cost.backward for _, _, cost in rows], _time, "ms"),
                amounts("messages", [cost.messages for _, _, cost in rows], _time, "ms"),
                amounts("HBM", [float(cost.memory) for _, _, cost in rows], _size, "B"),
            )
        )
        note = "Messages of weights and of gradients overlap with products of the same pass; forward and backward say what is left."
        yield Section("Dense layers", (note, table))
    if question.file.node is not None:
        own = [(name, part, chosen) for name, parts, chosen in zip(AXES, all_parts(question), system.parts, strict=True) for part in parts]
        own = [(name, part, chosen) for name, part, chosen in own if getattr(question.file.node, name)]
        table = Table(
            (
                names("part", (name.replace("_", "-") for name, _, _ in own)),
                amounts("size", [part.size or None for _, part, _ in own], _size, "B"),
                amounts(
                    "bandwidth", [part.bandwidth for _, part, _ in own], lambda rate: rounded_quantity(rate * 1e3, "bandwidth"), "B/ms"
                ),
                amounts("price for a device", [part.price for _, part, _ in own], lambda price: f"{price:,.2f}", "USD"),
                names("chosen", ("yes" if part.index == chosen else "" for _, part, chosen in own)),
            ),
            most=4 * _ROWS,
        )
        budget = question.file.node.budget
        within = "" if budget is None else f" of a budget of {budget:,.2f} USD"
        yield Section("The node", (f"{question.group.per_node} devices for {said.price:,.2f} USD{within}.", table))


def _phases(said: EmbeddingFigures) -> Section:
    shown = [(name, time) for name, time in zip(FIGURES, said.phases, strict=True) if time]
    words = "The slowest device of each phase; their sum is the step, in which devices wait for each other after every phase."
    table = Table((names("phase", (name for name, _ in shown)), amounts("slowest", [time for _, time in shown], _time, "ms")))
    return Section("Phases", (words, table) if shown else ())


def _devices(question: EmbeddingsQuestion, answer: EmbeddingPlan, said: EmbeddingFigures) -> Section:
    order = sorted(range(len(said.loads)), key=lambda device: (-said.loads[device], device))
    holders = Counter[int]()
    options = [{option.option: option for option in own} for own in question.options]
    for kind, held in zip(question.types, answer.tables, strict=True):
        spread = options[kind][held.option].spread
        holders.update(set(devices_of(spread, held.places, question.group.per_node, question.group.devices)))
    tiers = [tier for tier in range(len(TIERS)) if any(own[tier] for own in said.memory)]
    table = Table(
        (
            names("device", (str(device) for device in order)),
            amounts("time", [said.loads[device] for device in order], _time, "ms"),
            counts("tables", [holders[device] for device in order]),
            *(amounts(TIERS[tier].upper(), [float(said.memory[device][tier]) for device in order], _size, "B") for tier in tiers),
        ),
        most=_ROWS,
    )
    return Section("Devices, the slowest first", (table,))


def _largest(question: EmbeddingsQuestion, answer: EmbeddingPlan) -> Section:
    options = [{option.option: option for option in own} for own in question.options]
    rows = [
        (table, held, options[kind][held.option]) for table, kind, held in zip(question.tables, question.types, answer.tables, strict=True)
    ]
    rows.sort(key=lambda row: -row[0].rows * row[0].dimension * row[0].element)
    sizes = [float(table.rows * table.dimension * table.element) for table, _, _ in rows]
    table = Table(
        (
            names("table", (table.name for table, _, _ in rows)),
            amounts("weights", sizes, _size, "B"),
            names("lies", (option_text(held.option) for _, held, _ in rows)),
            names("on", (_where(option, held.places) for _, held, option in rows)),
            amounts("time of a piece", [option.time for _, _, option in rows], _time, "ms"),
        ),
        most=_ROWS,
    )
    return Section("Tables, the largest first", (table,))


def _where(option: PricedOption, places: Sequence[int]) -> str:
    """Devices or nodes in a few words, runs of them with their ends."""
    if option.spread == "all":
        return "all devices"
    runs = [[index for _, index in run] for _, run in groupby(enumerate(sorted(set(places))), lambda pair: pair[1] - pair[0])]
    what = "node" if option.spread == "node" else "device"
    return f"{what}{'s' * (len(set(places)) > 1)} {', '.join(f'{run[0]}-{run[-1]}' if len(run) > 1 else str(run[0]) for run in runs)}"


def _pictures(question: EmbeddingsQuestion, said: EmbeddingFigures) -> Iterator[Section]:
    """Devices as stacked columns, by phase and by tier."""
    order = sorted(range(len(said.loads)), key=lambda device: (-said.loads[device], device))[:_DEVICES]
    labels = [str(device) for device in order]
    only = "" if len(said.loads) <= _DEVICES else f" The {_DEVICES} slowest of {len(said.loads):,} devices are drawn."
    tiers = [tier for tier in range(len(TIERS)) if any(own[tier] for own in said.memory)]
    memory = [(TIERS[tier].upper(), [said.memory[device][tier] / _GIB for device in order]) for tier in tiers]
    times = [(name, [said.by_phase[device][phase] for device in order]) for phase, name in enumerate(FIGURES) if said.phases[phase]]
    for title, parts, unit, limit in (
        ("Time of each device", times, "ms", said.mean),
        ("Memory of each device", memory, "GiB", question.capacity[0] / _GIB if tiers == [0] else 0.0),
    ):
        if not parts:
            continue
        told = "; ".join(
            f"device {name}: {', '.join(f'{label} {values[index]:.4g} {unit}' for label, values in parts)}"
            for index, name in enumerate(labels)
        )
        units = Units(unit, 1.0, "the mean" if unit == "ms" else "for tables", "device, the slowest first")
        picture = Picture(
            lambda titles, parts=parts, limit=limit, units=units: columns(titles, labels, parts, limit, units),  # type: ignore[misc]
            "",
            ("The line is the mean device." if unit == "ms" else "The line is the memory for tables." if limit else "By tier.") + only,
            described=f"{told}.",
        )
        yield Section(title, (picture,))


def plan_document(question: EmbeddingsQuestion, result: Result[EmbeddingPlan, EmbeddingFigures]) -> dict[str, Any]:
    """Shards of every table in TorchRec's terms: sharding type, kernel, ranks, and rows and columns of each shard."""
    if result.answer is None:
        return {}
    said = None if result.details is None else result.details.system
    question = question if result.answer.devices is None else question.on(result.answer.devices)
    group, options = question.group, [{option.option: option for option in own} for own in question.options]
    plan = dict[str, Any]()
    for table, kind, held in zip(question.tables, question.types, result.answer.tables, strict=True):
        option = options[kind][held.option]
        ranks = list(devices_of(option.spread, held.places, group.per_node, group.devices))
        plan[table.name] = {
            "sharding_type": TORCHREC_NAMES[held.option.sharding],
            "compute_kernel": held.option.kernel,
            **({"cache_load_factor": held.option.cache} if held.option.cache else {}),
            "ranks": ranks,
            "shards": list(_shards(table, held, ranks, group.per_node)),
        }
    system = {} if result.answer.system is None else {"system": dict(_choices(question, result.answer.system, said))}
    return {"world_size": group.devices, "local_world_size": group.per_node, **system, "plan": plan}


def _shards(table: EmbeddingTable, held: TablePlan, ranks: Sequence[int], per_node: int) -> Iterator[dict[str, Any]]:
    """Rank, sizes and offsets of each shard."""
    columns, sharding = table.dimension // held.option.columns, held.option.sharding
    if sharding == "data":
        yield from ({"rank": rank, "size": [table.rows, table.dimension], "offset": [0, 0]} for rank in ranks)
        return
    parts = len(ranks) if sharding == "row" else per_node if sharding in {"table-row", "grid"} else 1
    rows = row_shards(table.rows, parts)
    for index, rank in enumerate(ranks):
        piece, part = divmod(index, parts)
        yield {"rank": rank, "size": [rows[part], columns], "offset": [min(rows[0] * part, table.rows), columns * piece]}
