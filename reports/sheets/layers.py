"""The sheet of strategies of layers: what is used of each budget, the strategy and figures of every layer, rules beside them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from crossopt.crossflow.operator_graph import edges
from crossopt.instances.files.units import rounded_quantity
from crossopt.instances.layers.network import is_view
from crossopt.instances.layers.problem import Problem, chosen
from crossopt.instances.layers.question import UNITS, LayersQuestion
from crossopt.instances.layers.splits import COPY
from crossopt.reports.drawing.graph import MOST, Graph, drawn
from crossopt.reports.drawing.plots import points
from crossopt.reports.sheets.sheet import Bar, Bars, Column, Picture, Section, Sheet, Table, answer_sheet, baselines_in, names
from crossopt.solvers.answer import Result
from crossopt.solvers.layers.judge import LayerChoices, LayerTotals

_DIMENSIONS = {"s": "time", "J": "energy", "B": "bytes"}
_NAMED = 6
"""Layers of a strategy that the short answer names."""
_MOST_OF_FRONTS = 5_000
"""Layers up to which pages have the picture of the budget: it takes some thirty passes over them."""
_STEPS = "Totals step by step: layers that leave their first strategy, by strategy, then conversions and relayouts between layers."
_CORNERS = "Each point is the best choice within its own use: this choice, and corners that prices find. Between them there may be others."
_ROWS = 40
"""Layers that a terminal shows; spreadsheets have all."""


def sheet(question: LayersQuestion, result: Result[LayerChoices, LayerTotals]) -> Sheet:
    """What is shown."""
    chips, answer, said = question.chips, result.answer, result.details
    question = question if chips is None else question.on_chip(0 if answer is None else answer.chip)
    problem = question.problem
    free = [index for index, own in enumerate(problem.strategies) if len(own) > 1]
    answered: tuple[Section, ...] = ()
    if answer is not None and said is not None:
        answered = (*_chip_section(said.chip), _budgets(question, said), _layers(question, answer.strategies, free))
    return answer_sheet(
        result,
        "choice",
        f"Which strategy does each layer take, so that {problem.figures[0]} is least within the budgets?",
        asks=problem.figures[0],
        summary=f"{len(problem):,} layers, {len(free):,} of them with a choice",
        answer_rows=(
            *((("chip", _chip(said.chip)),) if said is not None and said.chip else ()),
            ("strategies", _counted(answer.strategies, free)),
            _named(question, answer.strategies, free),
        )
        if answer is not None
        else (),
        figures=(
            *_between(question, answer.strategies, said),
            *_gradients(question, answer.strategies),
            *_figures(question, said),
            *_utilisation(question, answer.strategies, said),
        )
        if answer is not None and said is not None
        else (),
        given=(
            ("layers", f"{len(problem):,}"),
            ("with a choice", f"{len(free):,}"),
            ("links", f"{len(problem.links):,}"),
            *((("chips", f"{len(chips):,}"),) if chips is not None else ()),
            *((("devices", f"{question.devices:,}"),) if question.devices > 1 else ()),
            *((f"budget of {name}", amount(name, most)) for name, most in question.budgets.items()),
        ),
        sections=(*answered, baselines_in("choice", result, result.baselines)),
        details=lambda: () if answer is None else tuple(_pictures(question, result, answer.strategies)),
        notes=result.notes,
        judged="on every layer and link",
        next_step="" if answer is None else _NEXT_STEP + ("" if question.graph is None else _FOR_QUANTISERS),
    )


_NEXT_STEP = "`crossopt export RESULT --as strategies`"
_FOR_QUANTISERS = " (modelopt and torchao for quantisers)"
_CHIP_UNITS = {"area": ("mm^2", 1e6), "power": ("W", 1.0), "throughput": ("TFLOP/s", 1e-12), "bandwidth": ("GB/s", 1e-9)}


def _chip_rows(chosen: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    """What is chosen of a chip and what it is, in the units of files."""
    for name, value in chosen.items():
        unit, factor = next((own for ending, own in _CHIP_UNITS.items() if name.endswith(ending)), ("", 1.0))
        words = name.replace("_", " ")
        yield words, ("yes" if value else "no") if name.startswith("computes_") else f"{value * factor:.4g} {unit}".rstrip()


def _chip(chosen: Mapping[str, float]) -> str:
    """Choices, area and power of a chip in one line; its figures are in a table."""
    return " · ".join(f"{name} {shown}" for name, shown in _chip_rows(chosen) if not name.endswith(("throughput", "bandwidth")))


def _chip_section(chosen: Mapping[str, float]) -> tuple[Section, ...]:
    rows = list(_chip_rows(chosen))
    if not rows:
        return ()
    table = Table((names("figure", (name for name, _ in rows)), Column("value", tuple(shown for _, shown in rows), tuple(chosen.values()))))
    return (Section("The chip", (table,)),)


def amount(figure: str, value: float) -> str:
    """A total of a figure in the unit that suits it."""
    unit = UNITS[figure]
    if not value:
        return "0"
    return rounded_quantity(value, _DIMENSIONS[unit], 5) if unit else f"{value:.5g}"


def _figures(question: LayersQuestion, said: LayerTotals) -> tuple[tuple[str, str], ...]:
    """Totals beside the objective, with shares of their budgets."""
    rest = [name for name in question.problem.figures[1:] if said.totals[name] or name in question.budgets]
    return tuple((name, _share_text(question, said, name)) for name in rest)


def _pictures(question: LayersQuestion, result: Result[LayerChoices, LayerTotals], strategies: Sequence[str]) -> Iterator[Section]:
    """The network by strategy, how the answer comes from one strategy everywhere, and what more or less of the budget would give."""
    problem = question.problem
    if arcs := _arcs(question):
        yield Section("The network by strategy", (_network(problem, strategies, arcs),))
    yield Section("From one strategy to this choice", (_STEPS, _steps(problem, strategies)))
    budgets = [name for name in problem.figures if name in question.budgets]
    if len(budgets) != 1 or budgets[0] == problem.figures[0] or len(problem) > _MOST_OF_FRONTS:
        return
    from crossopt.solvers.layers.engines import best_by_use  # noqa: PLC0415 - pages alone have it

    units = [_unit(name) for name in (budgets[0], problem.figures[0])]
    if not (corners := best_by_use(question)):
        return
    if result.proved and result.value is not None and result.details is not None:
        corners = tuple(sorted({*corners, (result.details.totals[budgets[0]], result.value)}))
    pairs = [(use / units[0][0], value / units[1][0]) for use, value in corners]
    axes = tuple(f"{name}{unit and f' in {unit}'}" for name, (_, unit) in zip((budgets[0], problem.figures[0]), units, strict=True))
    told = "; ".join(
        f"{number}: {amount(budgets[0], use)}, {amount(problem.figures[0], value)}" for number, (use, value) in enumerate(corners, 1)
    )
    picture = Picture(lambda titles: points(titles, pairs, (axes[0], axes[1])), "", _CORNERS, described=f"{told}.", zooms=False)
    yield Section(f"{problem.figures[0].capitalize()} by the budget of {budgets[0]}", (picture,))


def _arcs(question: LayersQuestion) -> list[tuple[int, int]]:
    """Pairs of neighbours by their numbers: those of the graph without views and common copies, or the links of a table."""
    problem, graph = question.problem, question.graph
    if graph is None:
        return sorted({(min(link.first, link.second), max(link.first, link.second)) for link in problem.links})
    rows, found, before = {name: row for row, name in enumerate(problem.layers)}, set[tuple[int, int]](), dict[int, set[int]]()
    for edge in edges(graph):
        source, target = (graph.nodes[number] for number in (edge.source, edge.target))
        makers = before.get(edge.source, set()) if is_view(source) else {rows[source.name]}
        if is_view(target):
            before.setdefault(edge.target, set()).update(makers)
        else:
            found |= {(maker, rows[target.name]) for maker in makers}
    return sorted(found)


def _network(problem: Problem, strategies: Sequence[str], arcs: Sequence[tuple[int, int]]) -> Picture:
    """Every layer with the number of its strategy, the commonest first; of many layers the first."""
    count, figure = min(len(problem), MOST), problem.figures[0]
    shown = [layer for layer in sorted({layer for arc in arcs for layer in arc} | set(range(count))) if layer < count]
    shown = [layer for layer in shown if not problem.layers[layer].startswith(COPY)]
    places = {layer: index for index, layer in enumerate(shown)}
    ranks = {name: rank for rank, (name, _) in enumerate(Counter(strategies).most_common())}
    rows = chosen(problem, strategies)
    uses = [problem.amount(0, int(problem.uses[layer][rows[layer], 0])) for layer in shown]
    graph = Graph(
        tuple((places[first], places[second]) for first, second in arcs if first in places and second in places),
        tuple(ranks[strategies[layer]] for layer in shown),
        tuple(str(ranks[strategies[layer]] + 1) for layer in shown),
        tuple(len(problem.strategies[layer]) == 1 for layer in shown),
        tuple(f"{problem.layers[layer]}: {strategies[layer]}, {amount(figure, use)}" for layer, use in zip(shown, uses, strict=True)),
    )
    numbers = "; ".join(f"{rank + 1} {name}" for name, rank in ranks.items())
    cut = f" Of {len(problem):,} layers the first {count:,} are drawn." if count < len(problem) else ""
    caption = f"Each mark is a layer with the number of its strategy: {numbers}. Round marks have no choice. Data flow down.{cut}"
    counts = Counter(strategies[layer] for layer in shown)
    described = f"{len(shown):,} layers: {'; '.join(f'{number:,} {name}' for name, number in counts.most_common())}."
    undrawn = "Layers wait for each other in a circle, so that no picture can be drawn."
    return Picture(lambda titles: drawn(titles, graph), "", caption, undrawn, described=described)


def _unit(figure: str) -> tuple[float, str]:
    """A unit of axes, in SI units, and its name."""
    return {"s": (1e-3, "ms"), "J": (1.0, "J"), "B": (float(2**20), "MiB"), "": (1.0, "")}[UNITS[figure]]


def _steps(problem: Problem, strategies: Sequence[str]) -> Bars:
    """Totals of the objective from the first strategy of each layer, strategy after strategy, and then with what lies between layers."""
    figure, rows = problem.figures[0], chosen(problem, strategies)
    changed = Counter(name for name, row in zip(strategies, rows, strict=True) if row)
    total = sum(int(table[0, 0]) for table in problem.uses) + sum(int(link.uses[0, 0, 0]) for link in problem.links)
    first = {own[0] for own in problem.strategies}
    stages = [(f"all {first.pop()}" if len(first) == 1 else "first strategies", total)]
    gains = {name: 0 for name, _ in changed.most_common(_NAMED)}
    for table, name, row in zip(problem.uses, strategies, rows, strict=True):
        if row:
            label = name if name in gains else "others"
            gains[label] = gains.get(label, 0) + int(table[row, 0]) - int(table[0, 0])
    links = sum(int(link.uses[rows[link.first], rows[link.second], 0]) - int(link.uses[0, 0, 0]) for link in problem.links)
    parts = [(f"{changed[name]:,} x {name}" if name in changed else name, gain) for name, gain in gains.items()]
    for label, gain in (*parts, *([("between layers", links)] if links else [])):
        total += gain
        stages.append((label, total))
    bars, before = list[Bar](), None
    for label, units in stages:
        value = problem.amount(0, units)
        step = "" if before is None else f", {'+' if value > before else '-'}{amount(figure, abs(value - before))}"
        bars.append(Bar(label, value, f"{amount(figure, value)}{step}"))
        before = value
    return Bars(tuple(bars), UNITS[figure], None, None)


def _between(question: LayersQuestion, strategies: Sequence[str], said: LayerTotals) -> tuple[tuple[str, str], ...]:
    """What relayouts and shared tables add to the objective, where layers are split over devices."""
    problem, figure = question.problem, question.problem.figures[0]
    if question.devices == 1 or not said.totals[figure]:
        return ()
    rows = chosen(problem, strategies)
    links = problem.amount(0, sum(int(link.uses[rows[link.first], rows[link.second], 0]) for link in problem.links))
    return () if not links else (("between layers", f"{amount(figure, links)} of {figure} ({links / said.totals[figure]:.1%})"),)


def _gradients(question: LayersQuestion, strategies: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """What the exchange of gradients takes, and how much of it the backward pass of this choice hides."""
    pricing = question.pricing
    if pricing is None or not pricing.request.training or question.problem.figures[0] != "time":
        return ()
    every, left = pricing.gradients_over_time(dict(zip(question.problem.layers, strategies, strict=True)))
    stated = f"{1.0 - pricing.request.exposed_gradients:.0%} stated"
    return () if not every else (("gradients", f"{amount('time', every)}, {max(1.0 - left / every, 0.0):.0%} can hide ({stated})"),)


def _utilisation(question: LayersQuestion, strategies: Sequence[str], said: LayerTotals) -> tuple[tuple[str, str], ...]:
    """The share of the time that the multiply-adds of all operators would take at the device's peak in their formats."""
    chosen_formats = dict(zip(question.problem.layers, strategies, strict=True))
    least = sum(seconds[chosen_formats[layer]] for layer, seconds in question.at_peak.items())
    return (("utilisation", f"{least / said.totals['time']:.1%} of the peak, by multiply-adds"),) if least else ()


def _share_text(question: LayersQuestion, said: LayerTotals, name: str) -> str:
    most = f" of {amount(name, question.budgets[name])} ({said.budget_shares[name]:.1%})" if name in question.budgets else ""
    return f"{amount(name, said.totals[name])}{most}"


def _counted(strategies: Sequence[str], free: Sequence[int]) -> str:
    """How many layers with a choice take each strategy."""
    found = Counter(strategies[index] for index in free)
    return " · ".join(f"{count:,} x {name}" for name, count in found.most_common()) or "no layer has a choice"


def _named(question: LayersQuestion, strategies: Sequence[str], free: Sequence[int]) -> tuple[str, str]:
    """Layers that take another strategy than most, by name."""
    ranked = [name for name, _ in Counter(strategies[index] for index in free).most_common()]
    parts = []
    for name in ranked[1:]:
        layers = [question.problem.layers[index] for index in free if strategies[index] == name]
        more = f" and {len(layers) - _NAMED:,} more" if len(layers) > _NAMED else ""
        parts.append(f"{name}: {', '.join(layers[:_NAMED])}{more}")
    return "layers", "; ".join(parts)


def _budgets(question: LayersQuestion, said: LayerTotals) -> Section:
    every = list(said.totals)
    shares = tuple(said.budget_shares.get(name) for name in every)
    table = Table(
        (
            names("figure", every),
            Column("total", tuple(amount(name, said.totals[name]) for name in every), tuple(said.totals[name] for name in every)),
            Column(
                "budget",
                tuple(amount(name, question.budgets[name]) if name in question.budgets else "-" for name in every),
                tuple(question.budgets.get(name) for name in every),
                more=(("unit", tuple(UNITS[name] for name in every)),),
            ),
            Column("used", tuple("-" if share is None else f"{share:.1%}" for share in shares), shares, "used share"),
        )
    )
    return Section("Totals and budgets", (table,) if every else ())


def _layers(question: LayersQuestion, strategies: Sequence[str], free: Sequence[int]) -> Section:
    """Layers with a choice, their strategy, and figures of that alone: what it gains over the first strategy, and its shares of budgets."""
    problem = question.problem
    rows = chosen(problem, strategies)
    shown = [index for index, name in enumerate(problem.figures) if _counts(problem, index) or name in question.budgets]
    columns = [
        names("layer", (problem.layers[item] for item in free)),
        names("strategy", (strategies[item] for item in free)),
        names("of", (", ".join(problem.strategies[item]) for item in free)),
    ]
    if question.graph is not None:
        operators = {node.name: node.operator for node in question.graph.nodes}
        columns.insert(1, names("operator", (operators.get(problem.layers[item], "copy") for item in free)))
    for index in shown:
        figure = problem.figures[index]
        values = tuple(problem.amount(index, int(problem.uses[item][rows[item], index])) for item in free)
        columns.append(
            Column(figure, tuple(amount(figure, value) for value in values), values, f"{figure} in {UNITS[figure]}".removesuffix(" in "))
        )
        if index == 0:
            gains = tuple(problem.amount(0, int(problem.uses[item][0, 0] - problem.uses[item][rows[item], 0])) for item in free)
            signed = (f"{'-' if gain < 0 else ''}{amount(figure, abs(gain))}" for gain in gains)
            columns.append(Column("gain", tuple(signed), gains, f"gain of {figure} in {UNITS[figure]}".removesuffix(" in ")))
        if question.budgets.get(figure):
            shares = tuple(value / question.budgets[figure] for value in values)
            columns.append(Column("of budget", tuple(f"{share:.1%}" for share in shares), shares, f"share of the budget of {figure}"))
    between = "conversions" if question.devices == 1 else "relayouts"
    words = f"Figures of each layer alone, with the gain over its first strategy; {between} between layers come on top."
    if len(free) > _ROWS:
        words += f" The first {_ROWS} of {len(free):,} are shown; `crossopt export RESULT --as strategies` has all."
    return Section("Layer by layer", (words, Table(tuple(columns), most=_ROWS)) if free else ())


def _counts(problem: Problem, place: int) -> bool:
    """Whether a figure is anything at all."""
    return any(table[:, place].any() for table in problem.uses)
