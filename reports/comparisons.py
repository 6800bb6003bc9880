"""What Python functions return about several answers: explanations, comparisons of engines, sweeps over settings, and fronts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, overload

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.errors import RefusedError
from crossopt.instances.files.units import rounded_quantity
from crossopt.reports.commands.explain import Explained
from crossopt.reports.drawing import plots
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.facts.chip import hardware_text
from crossopt.reports.render.style import alone
from crossopt.reports.render.terminal import text_of
from crossopt.reports.results import Answer, Evaluation, Plot, Row, frame_of, html_table, plot_named, shown
from crossopt.reports.sheets.amounts import amount, digits, several, with_unit
from crossopt.reports.sheets.codesign.explain import LIMIT_DIMENSIONS
from crossopt.reports.sheets.sheet import Section, Sheet, Table, names
from crossopt.solvers.answer import Number, Status, Trace
from crossopt.solvers.codesign.answer import ChosenDesign
from crossopt.solvers.codesign.explain.near_optimal import Near
from crossopt.solvers.codesign.objective import UNITS
from crossopt.solvers.fronts import Front
from crossopt.solvers.study.records import Study

_MOST_ROWS: Final = 6
"""Rows that `print` shows of a table, half of them its first and half its last."""
_FEW, _NAMED, _LONGEST = 3, 24, 60
"""Questions that are named in a title, and letters of their names and of designs in a table."""


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


class _Tabular:
    """What has rows: a short text, a data frame, and a table in notebooks."""

    @property
    def title(self) -> str:
        """What the rows are about."""
        raise NotImplementedError

    def table(self) -> list[Row]:
        """The rows, with equal columns."""
        raise NotImplementedError

    def to_frame(self) -> Any:  # noqa: ANN401 - of pandas, or else of polars
        """The rows as a data frame of pandas, or of polars where pandas is not installed."""
        return frame_of(self.table())

    def _listed(self) -> list[Row]:
        """The rows with the columns that `print` shows."""
        return self.table()

    def __str__(self) -> str:
        rows = self._listed()
        heads = [name for name in rows[0] if any(row[name] not in (None, "") for row in rows)] if rows else []
        cells = [[shown(row[name]) for name in heads] for row in rows]
        left = len(rows) - _MOST_ROWS
        if left > 0:
            cells[_MOST_ROWS // 2 : -_MOST_ROWS // 2] = [["..."] * len(heads)]
        columns = zip(heads, zip(*cells, strict=True), strict=True)
        table = Table(tuple(names(head.replace("_", " "), texts) for head, texts in columns))
        more = f"{several(left, 'row')} more: `to_frame()` and `table()` have all rows and columns" if left > 0 else ""
        return text_of(self.title, (), [Section(several(len(rows), "row"), (table,))], more)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.title}, {several(len(self.table()), 'row')}>"

    def _repr_html_(self) -> str:
        rows = self.table()
        heads = [name for name in rows[0] if any(row[name] is not None for row in rows)] if rows else []
        return html_table(self.title, [[row[name] for name in heads] for row in rows], heads)


def _pictures(sheet: Sheet) -> dict[str, str]:
    from crossopt.reports.render.figures import figures_of  # noqa: PLC0415
    from crossopt.reports.render.html import html  # noqa: PLC0415

    return dict(figures_of(html(sheet, {})))


# Explanations.

Reason = Literal["limit", "range end", "not opened", "technology", "clash"]


@dataclass(frozen=True)
class Effect:
    """A restriction with what a little more of it would buy; of a question without a design, one that clashes with the others."""

    workload: str
    reason: Reason
    name: str
    """The limit or the choice, or a sentence about the technology."""
    now: float | None
    """The limit, or the option at the end of its range, in SI units."""
    raised: float | None
    """A tenth more, or one option beyond; of a limit that clashes, what the other restrictions need of it."""
    value: float | None
    """The objective of the best design then; None where it was not asked."""
    gain: float | None
    """The share by which that is less than the optimum; 0 where it buys nothing."""
    complete: bool
    """Whether the search for it came to its end."""


@dataclass(frozen=True, repr=False)
class Explanation(_Tabular):
    """Why an answer is what it is: `print(explain("tiny"))`, or the effect of each restriction as a row."""

    text: str
    """What the terminal shows."""
    parts: tuple[tuple[Instance, Explained], ...]
    """Each workload with its answer and what was asked about it."""

    @property
    def title(self) -> str:
        """The headline of the first workload."""
        return self.text.partition("\n")[0]

    @property
    def effects(self) -> tuple[Effect, ...]:
        """All restrictions that were looked at, those that buy most first."""
        found = [effect for question, explained in self.parts for effect in _effects(question.name, explained)]
        return tuple(sorted(found, key=lambda effect: -(effect.gain or 0.0)))

    @property
    def binding(self) -> tuple[str, ...]:
        """Names of limits and choices of which more would buy something."""
        return tuple(effect.name for effect in self.effects if effect.gain)

    @property
    def conflict(self) -> tuple[str, ...]:
        """Names of limits and choices that leave no design together, none of which can be spared; empty where there is a design."""
        return tuple(effect.name for effect in self.effects if effect.reason == "clash")

    @property
    def near(self) -> tuple[Near | None, ...]:
        """Of each workload what designs within the gap `near` have in common."""
        return tuple(explained.near for _, explained in self.parts)

    def table(self) -> list[Row]:
        """The effects as rows."""
        return [dict(vars(effect)) for effect in self.effects]

    @property
    def plots(self) -> tuple[str, ...]:
        """Names of the pictures that `plot` draws."""
        return ("gains",)

    def plot(self, name: str = "gains") -> Plot:
        """What a little more of each limit would buy, in percent of the optimum, and of what else buys something; a RefusedError where
        nothing was asked."""
        return plot_named({"gains": _drawn_gains(self)}, name)

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        rows = [
            (effect.name, _reads(effect, effect.now), _reads(effect, effect.raised), effect.value, effect.gain) for effect in self.effects
        ]
        return html_table(self.title, rows, ("restriction", "now", "with", "best value", "gain"))


def _effects(workload: str, explained: Explained) -> Iterator[Effect]:
    optimum, why = explained.result.value, explained.why

    def gain(value: float | None) -> float | None:
        return None if value is None or not optimum else max(1.0 - value / optimum, 0.0)

    for relief in why.reliefs:
        name = relief.name.replace("_", " ")
        yield Effect(workload, "limit", name, relief.budget, relief.raised, relief.value, gain(relief.value), relief.complete)
    for end in why.ends:
        yield Effect(workload, "range end", end.name, end.option, end.beyond, end.value, gain(end.value), end.complete)
    for part in why.unopened:
        name = f"{part.name} a tenth {'more' if part.more else 'less'}"
        yield Effect(workload, "not opened", name, None, None, part.value, gain(part.value), part.complete)
    for built, bought in why.building:
        if bought is not None:
            yield Effect(workload, "technology", built.sentence, None, None, None, bought, complete=True)
    for member in explained.clash or ():
        there = member.allowed[0] if member.least is not None else None
        yield Effect(workload, "clash", member.name, there if isinstance(there, float) else None, member.least, None, None, complete=True)


def _reads(effect: Effect, amount: float | None) -> object:
    """An amount with its unit, where that is known."""
    dimension = LIMIT_DIMENSIONS.get(effect.name.replace(" ", "_"))
    return rounded_quantity(amount, dimension) if dimension and amount is not None else amount


def _drawn_gains(explanation: Explanation) -> str:
    """The picture of the gains."""
    known = [(effect, 100.0 * effect.gain) for effect in explanation.effects if effect.gain is not None]
    found = [(effect, gain) for effect, gain in known if gain or effect.reason == "limit"] or known
    if not found:
        raise RefusedError("no picture of this explanation: no restriction has a gain (`print` and `table()` have what there is)")
    rows = [plots.Row(effect.name, (plots.Mark(gain, 0.0, gain),), f"{gain:.2f}%") for effect, gain in found]
    described = "; ".join(f"{row.label}: {row.shown}" for row in rows)
    titles = Titles("gains", explanation.title.rstrip(":"), described)
    return alone(plots.ranges(titles, rows, "gain in % of the optimum", tenfold=False))


# Comparisons of engines.


@dataclass(frozen=True)
class EngineRun:
    """One engine on one question with one seed."""

    question: str
    engine: str
    seed: int
    status: Status
    value: Number | None
    bound: Number | None
    proved: bool
    seconds: float
    trace: Trace = field(repr=False)
    """Seconds, best value and bound at each improvement."""
    design: ChosenDesign | None = field(default=None, repr=False)
    """Of a joint design."""
    note: str = ""
    """Why the engine did not answer."""


@dataclass(frozen=True, repr=False)
class Comparison(_Tabular):
    """Engines side by side: `for run in compare("tiny", ["boxes", "random"], time_limit=5): print(run.engine, run.value)`."""

    runs: tuple[EngineRun, ...]
    study: Study | None = None
    """Of joint designs: the runs as `crossopt compare --out` writes them."""

    @property
    def title(self) -> str:
        """Which questions were asked."""
        asked = list(dict.fromkeys(run.question for run in self.runs))
        return f"engines on {', '.join(asked) if len(asked) <= _FEW else several(len(asked), 'question')}"

    @property
    def best(self) -> EngineRun:
        """The run with the least value; of several the first."""
        return min(self.runs, key=lambda run: float("inf") if run.value is None else run.value)

    def table(self) -> list[Row]:
        """The runs as rows."""
        return [{name: value for name, value in vars(run).items() if name not in ("trace", "design")} for run in self.runs]

    def _listed(self) -> list[Row]:
        several_asked = len({run.question for run in self.runs}) > 1
        return [_engine_line(run, several_asked) for run in self.runs]

    @property
    def plots(self) -> tuple[str, ...]:
        """Names of the pictures that `plot` draws; none but of joint designs."""
        return tuple(self._drawn())

    def plot(self, name: str) -> Plot:
        """A picture of runs of joint designs: a name of `plots`, or a part of one."""
        return plot_named(self._drawn(), name)

    def _drawn(self) -> dict[str, str]:
        from crossopt.reports.sheets.study import study_sheet  # noqa: PLC0415

        return {} if self.study is None else _pictures(study_sheet(self.study))

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[EngineRun]:
        return iter(self.runs)

    @overload
    def __getitem__(self, place: int) -> EngineRun: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[EngineRun, ...]: ...
    def __getitem__(self, place: int | slice) -> EngineRun | tuple[EngineRun, ...]:
        return self.runs[place]


def _engine_line(run: EngineRun, several_asked: bool) -> Row:
    """A run as `print` shows it."""
    asked = {"question": _shortened(run.question, _NAMED)} if several_asked else {}
    proof = run.note or ("proved" if run.proved else "not proved")
    return {
        **asked,
        "engine": run.engine,
        "seed": run.seed,
        "value": run.value,
        "bound": run.bound,
        "seconds": f"{run.seconds:.3g}",
        "proof": proof,
    }


def comparison_of(study: Study) -> Comparison:
    """The runs of a study of joint designs."""
    fields = ("engine", "seed", "status", "value", "bound", "proved", "seconds", "trace", "design", "note")
    runs = (EngineRun(study.questions[run.question].name, *(getattr(run, name) for name in fields)) for run in study.runs)
    return Comparison(tuple(runs), study)


# Sweeps over settings.


@dataclass(frozen=True)
class SweepPoint:
    """One combination of settings with its answer."""

    settings: Mapping[str, Any]
    answer: Answer | None
    """None where these settings make no question."""
    note: str = ""
    """Why not."""


@dataclass(frozen=True, repr=False)
class Sweep(_Tabular):
    """A question under each combination of settings: `sweep("tiny", {"cluster.devices": [4, 8]}).to_frame()`."""

    question: str
    points: tuple[SweepPoint, ...]

    @property
    def title(self) -> str:
        """The question, and what is varied."""
        return f"{self.question}: {', '.join(self.points[0].settings) if self.points else 'no settings'}"

    @property
    def best(self) -> SweepPoint:
        """The point with the least value; of several the first."""
        return min(
            self.points, key=lambda point: float("inf") if point.answer is None or point.answer.value is None else point.answer.value
        )

    def table(self) -> list[Row]:
        """A row for each point: its settings, value and bound, and of joint designs plan, chip and key figures."""
        rows = [_row_of(point) for point in self.points]
        columns = dict.fromkeys(name for row in rows for name in row)
        return [{name: row.get(name) for name in columns} for row in rows]

    def _listed(self) -> list[Row]:
        return [_line_of(point) for point in self.points]

    @property
    def plots(self) -> tuple[str, ...]:
        """Names of the pictures that `plot` draws."""
        return ("values",)

    def plot(self, name: str = "values") -> Plot:
        """The values over the first setting, with a line for each combination of the others; a RefusedError where there is none."""
        return plot_named({"values": _drawn_values(self)}, name)

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[SweepPoint]:
        return iter(self.points)

    def __getitem__(self, place: int) -> SweepPoint:
        return self.points[place]


def _at(point: SweepPoint) -> Row:
    """The settings of a point as cells of a table."""
    return {name: value if isinstance(value, str | int | float) else str(value) for name, value in point.settings.items()}


def _line_of(point: SweepPoint) -> Row:
    """A point as `print` shows it."""
    answer = point.answer
    if answer is None or answer.value is None:
        why = point.note.partition("\n")[0] if answer is None else answer.status
        return {**_at(point), "value": "none", "proof": "", "design": why}
    plan = answer.evaluation.design.plan_label if answer.has_design else ""
    return {**_at(point), "value": digits(answer.value, answer.unit), "proof": "proved" if answer.proved else "not proved", "design": plan}


def _drawn_values(swept: Sweep) -> str:
    """The picture of the values over the first setting."""
    found = [(point, point.answer.value) for point in swept.points if point.answer is not None and point.answer.value is not None]
    values = [float(value) for _, value in found]
    if not values or min(values) <= 0.0:
        raise RefusedError("no picture of this sweep: it has no values above zero (`table()` has what there is)")
    first, *others = swept.points[0].settings
    places = list(dict.fromkeys(str(point.settings[first]) for point in swept.points))
    courses = dict[str, dict[str, float]]()
    for (point, _), value in zip(found, values, strict=True):
        label = ", ".join(f"{name}={point.settings[name]}" for name in others) or "value"
        courses.setdefault(label, {})[str(point.settings[first])] = value
    curves = [plots.Line(label, tuple(map(course.get, places)), (False,) * len(places)) for label, course in courses.items()]
    answer = next(point.answer for point, _ in found if point.answer is not None)
    upward = with_unit(str(answer.result.question.get("objective", "value")).replace("_", " "), answer.unit)
    described = "; ".join(
        f"{curve.label}: {', '.join('none' if value is None else shown(value) for value in curve.values)}" for curve in curves
    )
    titles = Titles("values", f"{swept.question} over {first}", described)
    return alone(plots.lines(titles, places, curves, (first, upward), (min(values), max(values))))


def _row_of(point: SweepPoint) -> Row:
    answer, at = point.answer, _at(point)
    if answer is None:
        return {**at, "status": None, "note": point.note}
    known = {"status": answer.status, "value": answer.value, "bound": answer.bound, "gap": answer.gap, "proved": answer.proved}
    beside = answer.evaluation.row if answer.has_design else {}
    return {
        **at,
        **known,
        "seconds": answer.result.seconds,
        **{name: value for name, value in beside.items() if name not in known},
        "note": "",
    }


# Fronts of two objectives.


@dataclass(frozen=True)
class FrontPoint:
    """A design such that none is better in one objective without being worse in the other."""

    first: float
    second: float
    """Both objectives in SI units; no design with at most this first one has a lower second one, where the front is proved."""
    answer: Answer

    @property
    def evaluation(self) -> Evaluation:
        """All figures of the design."""
        return self.answer.evaluation


@dataclass(frozen=True, repr=False)
class DesignFront(_Tabular):
    """A Pareto front: `front("tiny", "step_time", "energy_per_token").plot().save("front.svg")`."""

    question: Instance
    objectives: tuple[str, str]
    points: tuple[FrontPoint, ...]
    """From the least first objective to the least second one."""
    proved: bool
    """Whether each point is proved, and the ends are."""
    found: Front

    @property
    def title(self) -> str:
        """The question and both objectives."""
        first, second = (name.replace("_", " ") for name in self.objectives)
        return f"{self.question.name}: {second} against {first}"

    def table(self) -> list[Row]:
        """A row for each point: both objectives, plan, chip and key figures."""
        return [_front_row(self.objectives, point) for point in self.points]

    def _listed(self) -> list[Row]:
        return [_front_line(self.objectives, point) for point in self.points]

    @property
    def plots(self) -> tuple[str, ...]:
        """Names of the pictures that `plot` draws."""
        return tuple(self._drawn())

    def plot(self, name: str = "front") -> Plot:
        """The points against each other."""
        return plot_named(self._drawn(), name)

    def _drawn(self) -> dict[str, str]:
        from crossopt.reports.sheets.front import front_sheet  # noqa: PLC0415

        return _pictures(front_sheet(self.question, self.objectives, self.found))

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[FrontPoint]:
        return iter(self.points)

    def __getitem__(self, place: int) -> FrontPoint:
        return self.points[place]


def _front_line(objectives: tuple[str, str], point: FrontPoint) -> Row:
    """A point as `print` shows it."""
    pairs = zip(objectives, (point.first, point.second), strict=True)
    design = point.evaluation.design
    return {
        **{name: amount(value, UNITS[name]) for name, value in pairs},
        "proof": "proved" if point.answer.proved else "not proved",
        "design": _shortened("; ".join([*hardware_text(design)[1:], design.plan_label]), _LONGEST),
    }


def _front_row(objectives: tuple[str, str], point: FrontPoint) -> Row:
    own = {objectives[0]: point.first, objectives[1]: point.second, "proved": point.answer.proved}
    return {**own, **{name: value for name, value in point.evaluation.row.items() if name not in (*own, "value", "feasible")}}
