"""The sheet of strategies of layers: what is used of each budget, the strategy and figures of every layer, rules beside them."""

from collections import Counter
from collections.abc import Sequence

from crossopt.instances.files.units import rounded_quantity
from crossopt.instances.layers.problem import Problem, chosen
from crossopt.instances.layers.question import UNITS, LayersQuestion
from crossopt.reports.sheets.sheet import Column, Section, Sheet, Table, answer_sheet, baselines_in, names
from crossopt.solvers.answer import Result
from crossopt.solvers.layers.judge import LayerChoices, LayerTotals

_DIMENSIONS = {"s": "time", "J": "energy", "B": "bytes"}
_NAMED = 6
"""Layers of a strategy that the short answer names."""
_ROWS = 40
"""Layers that a terminal shows; spreadsheets have all."""


def sheet(question: LayersQuestion, result: Result[LayerChoices, LayerTotals]) -> Sheet:
    """What is shown."""
    problem, answer, said = question.problem, result.answer, result.details
    free = [place for place, own in enumerate(problem.strategies) if len(own) > 1]
    answered: tuple[Section, ...] = ()
    if answer is not None and said is not None:
        answered = (_budgets(question, said), _layers(question, answer.strategies, free))
    return answer_sheet(
        result,
        "choice",
        f"Which strategy does each layer take, so that {problem.figures[0]} is least within the budgets?",
        asks=problem.figures[0],
        summary=f"{len(problem):,} layers, {len(free):,} of them with a choice",
        answer_rows=(("strategies", _counted(answer.strategies, free)), _named(question, answer.strategies, free))
        if answer is not None
        else (),
        figures=(*_between(question, answer.strategies, said), *_figures(question, said))
        if answer is not None and said is not None
        else (),
        given=(
            ("layers", f"{len(problem):,}"),
            ("with a choice", f"{len(free):,}"),
            ("links", f"{len(problem.links):,}"),
            *((("devices", f"{question.devices:,}"),) if question.devices > 1 else ()),
            *((f"budget of {name}", amount(name, most)) for name, most in question.budgets.items()),
        ),
        sections=(*answered, baselines_in("choice", result, result.baselines)),
        notes=result.notes,
        judged="on every layer and link",
        next_step="`crossopt export RESULT --as strategies` names the strategy of each layer",
    )


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


def _between(question: LayersQuestion, strategies: Sequence[str], said: LayerTotals) -> tuple[tuple[str, str], ...]:
    """What relayouts between layers add to the objective, where layers are split over devices."""
    problem, figure = question.problem, question.problem.figures[0]
    if question.devices == 1 or not said.totals[figure]:
        return ()
    rows = chosen(problem, strategies)
    links = problem.amount(0, sum(int(link.uses[rows[link.first], rows[link.second], 0]) for link in problem.links))
    return (("relayouts", f"{amount(figure, links)} of {figure} ({links / said.totals[figure]:.1%})"),)


def _share_text(question: LayersQuestion, said: LayerTotals, name: str) -> str:
    most = f" of {amount(name, question.budgets[name])} ({said.budget_shares[name]:.1%})" if name in question.budgets else ""
    return f"{amount(name, said.totals[name])}{most}"


def _counted(strategies: Sequence[str], free: Sequence[int]) -> str:
    """How many layers with a choice take each strategy."""
    found = Counter(strategies[place] for place in free)
    return " · ".join(f"{count:,} x {name}" for name, count in found.most_common()) or "no layer has a choice"


def _named(question: LayersQuestion, strategies: Sequence[str], free: Sequence[int]) -> tuple[str, str]:
    """Layers that take another strategy than most, by name."""
    ranked = [name for name, _ in Counter(strategies[place] for place in free).most_common()]
    parts = []
    for name in ranked[1:]:
        layers = [question.problem.layers[place] for place in free if strategies[place] == name]
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
            Column("used", tuple("-" if one is None else f"{one:.1%}" for one in shares), shares, "used share"),
        )
    )
    return Section("Totals and budgets", (table,) if every else ())


def _layers(question: LayersQuestion, strategies: Sequence[str], free: Sequence[int]) -> Section:
    """Layers with a choice, their strategy, and figures of that alone."""
    problem = question.problem
    rows = chosen(problem, strategies)
    shown = [place for place, name in enumerate(problem.figures) if _counts(problem, place) or name in question.budgets]
    columns = [
        names("layer", (problem.layers[one] for one in free)),
        names("strategy", (strategies[one] for one in free)),
        names("of", (", ".join(problem.strategies[one]) for one in free)),
    ]
    for place in shown:
        figure = problem.figures[place]
        values = tuple(problem.amount(place, int(problem.uses[one][rows[one], place])) for one in free)
        columns.append(
            Column(figure, tuple(amount(figure, value) for value in values), values, f"{figure} in {UNITS[figure]}".removesuffix(" in "))
        )
    words = f"Figures of each layer alone; {'conversions' if question.devices == 1 else 'relayouts'} between layers come on top."
    return Section("Layer by layer", (words, Table(tuple(columns), most=_ROWS)) if free else ())


def _counts(problem: Problem, place: int) -> bool:
    """Whether a figure is anything at all."""
    return any(table[:, place].any() for table in problem.uses)
