"""What the Python functions return: answers and single designs with their figures as attributes, as tables, data frames and pictures."""

from collections.abc import Mapping, Sequence
from csv import DictReader
from dataclasses import asdict, dataclass, field
from html import escape
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from math import inf, isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.plan import Plan
from crossopt.instances.catalogue.workload import repeated_share
from crossopt.instances.codesign.instance import Instance, MultiScaleQuestion, Portfolio
from crossopt.instances.errors import RefusedError, install_text
from crossopt.instances.files.saved import naming, write_atomically
from crossopt.instances.files.units import exact, float_covering, nearest, rounded_quantity
from crossopt.instances.kinds import KINDS
from crossopt.reports.sheets.amounts import amount, digits, time_of
from crossopt.solvers.answer import Baseline, Number, Result, Status, Trace, plain_result, to_text
from crossopt.solvers.codesign.answer import ChosenDesign, ChosenHardware, DesignEvaluation, Designs, EvaluatedDesigns, LimitUse
from crossopt.solvers.codesign.objective import UNITS
from crossopt.solvers.proofs import Proof

_DAY: Final = 86400
Row = dict[str, Any]
"""A row of a table: values by column."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture, which a notebook shows: `answer.plot("roofline").save("roofline.svg")`."""

    name: str
    svg: str = field(repr=False)
    """The picture as a file of its own, with its colours and legend."""

    def save(self, path: str | Path) -> Path:
        """Write the picture as SVG, or as PDF where the path ends in `.pdf` (`pip install 'crossopt[figures]'`)."""
        path = Path(path)
        if path.suffix != ".pdf":
            write_atomically(path, self.svg)
            return path
        if find_spec("reportlab") is None:
            raise RefusedError(f"a picture as PDF needs reportlab (`{install_text('figures')}`), or save it as .svg")
        from crossopt.reports.render.pdf import pdf_of  # noqa: PLC0415

        data = pdf_of(self.svg)
        with naming(path):
            path.write_bytes(data)
        return path

    def _repr_svg_(self) -> str:
        return self.svg


ALIASES: Final = {
    "breakdown": "where-the-step-goes",
    "timeline": "one-step-over-time",
    "memory": "memory-holds",
    "convergence": "bound-over-time",
    "chip": "the-chip-from-above-to-scale",
    "network": "how-the-network-is-used",
}
"""Short names of the usual pictures."""


def plot_named(pictures: Mapping[str, str], name: str) -> Plot:
    """The picture with this name, with a short name of `ALIASES`, or with this in its name; a RefusedError lists those that there are."""
    wanted = name if name in pictures else ALIASES.get(name, name)
    found = [known for known in pictures if known == wanted] or [known for known in pictures if wanted in known]
    if len(found) != 1:
        short = [alias for alias, long in ALIASES.items() if any(long in known for known in pictures)]
        listed = ", ".join([*short, *pictures]) or "none"
        guess = nearest(name, [*short, *pictures])
        meant = f"did you mean {guess[0]!r}? " if guess and not found else ""
        raise RefusedError(f"{name!r} is {'several pictures' if found else 'no picture'} of this result ({meant}there are {listed})")
    return Plot(found[0], pictures[found[0]])


def frame_of(rows: Sequence[Mapping[str, Any]]) -> Any:  # noqa: ANN401 - of pandas, or else of polars
    """Rows as a data frame of pandas, or of polars where pandas is not installed."""
    for package in ("pandas", "polars"):
        if find_spec(package) is not None:
            return import_module(package).DataFrame([dict(row) for row in rows])
    raise RefusedError("a data frame needs pandas or polars (`pip install pandas`); `table()` gives the rows without them")


def html_table(title: str, rows: Sequence[Sequence[object]], heads: Sequence[str] = ()) -> str:
    """A small table for notebooks."""
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(shown(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><caption>{escape(title)}</caption>{f'<tr>{head}</tr>' if head else ''}{body}</table>"


def _figure(text: str) -> str | float:
    """A figure of a table as a number."""
    try:
        return float(text)
    except ValueError:
        return text


def shown(cell: object) -> str:
    """A cell in six digits."""
    return "" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else str(cell)


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """What the model says of one design, in SI units: `evaluate("tiny", {"tensor": 4, ...}).step_time`."""

    question: Instance
    """The question as it was read."""
    design: ChosenDesign
    figures: DesignEvaluation
    """All figures of the model."""
    value: float
    """The objective, in `unit`."""

    @property
    def unit(self) -> str:
        """The unit of the objective."""
        return UNITS[self.question.objective]

    @property
    def plan(self) -> Plan | KernelPlan:
        """The parallel plan, such as `plan.tensor`."""
        return self.design.plan

    @property
    def hardware(self) -> ChosenHardware:
        """The name of the device, or of the technology with the values of the chip's choices."""
        return self.design.hardware

    @property
    def feasible(self) -> bool:
        """Whether every limit is satisfied."""
        return self.figures.feasible

    @property
    def limits(self) -> tuple[LimitUse, ...]:
        """Each limit with what the design uses of it."""
        return self.figures.limits

    @property
    def binding(self) -> tuple[str, ...]:
        """Limits of which the design uses at least 95 %."""
        return self.figures.binding

    @property
    def step_time(self) -> float:
        """Seconds of a training step."""
        return self.figures.step_time

    @property
    def likely(self) -> tuple[float, float]:
        """The least and the greatest likely step time, by constants and by measured runs."""
        return self.figures.likely

    @property
    def breakdown(self) -> dict[str, float]:
        """Seconds of the step by use; they add up to the step time."""
        return self.figures.breakdown

    @property
    def mfu(self) -> float:
        """Model FLOPs utilisation: useful FLOP/s over the peak of all devices."""
        return self.figures.utilisation

    @property
    def hfu(self) -> float:
        """Hardware FLOPs utilisation: with what is recomputed."""
        return self.figures.utilisation * (1.0 + repeated_share(self.question.workload, self.plan))

    @property
    def tokens_per_second(self) -> float:
        """Tokens of all devices in a second."""
        return self.figures.tokens_per_second

    @property
    def memory(self) -> dict[str, float]:
        """Bytes by use on the fullest device."""
        return self.figures.memory

    @property
    def memory_used(self) -> float:
        """Bytes on the fullest device."""
        return sum(self.memory.values())

    @property
    def energy(self) -> float:
        """Joules of a step, all devices together."""
        return self.figures.energy

    @property
    def power(self) -> float:
        """Rated watts of a device."""
        return self.figures.power

    @property
    def days(self) -> float | None:
        """Days of the whole run, where the question has a goal; as its deadline they are kept."""
        if (goal := self.question.goal) is None:
            return None
        seconds = goal.seconds(self.step_time)
        return float_covering(exact(seconds) / _DAY) if isfinite(seconds) else inf  # failures may leave nothing of the time

    @property
    def money(self) -> float | None:
        """Dollars of the whole run, where the question has a goal with a rent or a purchase."""
        goal = self.question.goal
        return None if goal is None else goal.money(self.step_time)

    @property
    def data(self) -> dict[str, Any]:
        """Everything as plain data, as `crossopt evaluate --json` prints it."""
        from crossopt.reports.facts.question import evaluation_json  # noqa: PLC0415

        return evaluation_json(self.question, self.design, self.figures)

    @property
    def row(self) -> Row:
        """Plan, chip and key figures as one row, for tables of many designs."""
        figures = {name: getattr(self, name) for name in _OF_ROWS}
        return {"value": self.value, "feasible": self.feasible, **self.hardware.choices, **asdict(self.plan), **figures}

    def table(self) -> list[Row]:
        """Every figure as a row with its unit."""
        figures = self.figures
        rows: list[tuple[str, str, float, str]] = [
            ("figure", name.replace("_", " "), getattr(self, name), unit)
            for name, unit in _UNITS.items()
            if getattr(self, name) is not None
        ]
        rows += [("time", name, seconds, "s") for name, seconds in figures.breakdown.items()]
        rows += [("memory", name, size, "bytes") for name, size in figures.memory.items()]
        rows += [("limit", limit.name, limit.used, limit.unit) for limit in figures.limits]
        return [dict(zip(("part", "name", "value", "unit"), row, strict=True)) for row in rows]

    def to_frame(self) -> Any:  # noqa: ANN401 - of pandas, or else of polars
        """`table()` as a data frame."""
        return frame_of(self.table())

    @property
    def plots(self) -> tuple[str, ...]:
        """Names of the pictures that `plot` draws."""
        return tuple(self._pictures())

    def plot(self, name: str = "breakdown") -> Plot:
        """A picture: `breakdown`, `timeline`, `roofline`, `memory` or another of `plots`."""
        return plot_named(self._pictures(), name)

    def _pictures(self) -> dict[str, str]:
        from crossopt.reports.render.figures import figures_of  # noqa: PLC0415
        from crossopt.reports.render.html import html  # noqa: PLC0415
        from crossopt.reports.sheets.codesign.design import evaluation_sheet  # noqa: PLC0415

        return dict(figures_of(html(evaluation_sheet(self.question, self.design, self.figures), {})))

    @property
    def text(self) -> str:
        """The whole text, as `crossopt evaluate` prints it."""
        from crossopt.reports.render.terminal import terminal  # noqa: PLC0415
        from crossopt.reports.sheets.codesign.design import evaluation_sheet  # noqa: PLC0415

        return terminal(evaluation_sheet(self.question, self.design, self.figures))

    def __str__(self) -> str:
        """The key figures; `text` has all."""
        exceeded = ", ".join(limit.name for limit in self.limits if not limit.satisfied)
        figures = [("plan", self.design.plan_label), ("step time", time_of(self.step_time)), ("MFU", f"{self.mfu:.1%}")]
        figures += [("speed", f"{self.tokens_per_second:,.0f} tokens/s"), ("memory", rounded_quantity(self.memory_used, "bytes", 4))]
        figures += [("limits", f"exceeded: {exceeded}" if exceeded else "all are satisfied")]
        figures += [("run", f"{self.days:.3g} days{'' if self.money is None else f', {self.money:,.0f} USD'}")] if self.days else []
        return f"{self.question.name}\n\n" + "\n".join(f"  {name:<11}{text}" for name, text in figures) + "\n"

    def __repr__(self) -> str:
        limits = "" if self.feasible else ", infeasible"
        return f"<Evaluation {self.question.name}: {self.design.plan_label}, {amount(self.value, self.unit)}{limits}>"

    def _repr_html_(self) -> str:
        rows = [(row["name"], row["value"], row["unit"]) for row in self.table()]
        return html_table(f"{self.question.name}: {self.design.plan_label}", rows, ("figure", "value", "unit"))


_OF_ROWS: Final = ("step_time", "mfu", "hfu", "tokens_per_second", "memory_used", "energy", "power", "days", "money")
"""Figures of a row."""
_UNITS: Final = {
    "value": "",
    "step_time": "s",
    "mfu": "",
    "hfu": "",
    "tokens_per_second": "1/s",
    "memory_used": "bytes",
    "energy": "J",
    "power": "W",
    "days": "days",
    "money": "USD",
}
"""Key figures and their units."""


FOLLOWING: Final = "`text` has all; `table()` and `plot()` the figures; `save` keeps it for `crossopt.check` and `crossopt.report`"
"""Next steps of an answer in Python."""


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """An answer with its proof: `solve("tiny").value`. Of a joint design `evaluation` has all figures, some of them here as well.

    `print` shows the short text, and `text` is the whole.
    """

    result: Result[Any, Any]
    """The complete typed result."""
    question: Any
    """The question as it was read."""
    summary: str = ""
    """The short text of `plan`; that of other answers is made from the result."""

    @property
    def text(self) -> str:
        """The whole text, as `crossopt solve --verbose` prints it."""
        from crossopt.reports.shown import text_of  # noqa: PLC0415

        return text_of(self.result.kind, self.question, self.result)

    @property
    def data(self) -> dict[str, Any]:
        """The result as plain data, as `crossopt solve --out` writes it."""
        return plain_result(self.result)

    @property
    def status(self) -> Status:
        """OPTIMAL, FEASIBLE, INFEASIBLE or UNKNOWN."""
        return self.result.status

    @property
    def value(self) -> Number | None:
        """The objective value by the full model; None without an answer."""
        return self.result.value

    @property
    def bound(self) -> Number | None:
        """The lower bound."""
        return self.result.bound

    @property
    def gap(self) -> float | None:
        """(value - bound) / value."""
        return self.result.gap

    @property
    def proved(self) -> bool:
        """Whether the lower bound is within the requested gap."""
        return self.result.proved

    @property
    def answer(self) -> Any:  # noqa: ANN401 - the dataclass of its kind
        """The typed answer: Designs, or the dataclass of another problem type; None without an answer."""
        return self.result.answer

    @property
    def details(self) -> Any:  # noqa: ANN401 - the dataclass of its kind
        """The full model's evaluation of the answer; None where there is no answer."""
        return self.result.details

    def save(self, path: str | Path) -> None:
        """Write the result to a file for `check` and `report`."""
        write_atomically(Path(path), to_text(self.result))

    @property
    def name(self) -> str:
        """The name of the question."""
        return str(self.result.question["name"])

    @property
    def unit(self) -> str:
        """The unit of value and bound."""
        return str(self.result.question["unit"])

    @property
    def proof(self) -> Proof | None:
        """How the bound was proved, with the data that `check` repeats it from."""
        return self.result.proof

    @property
    def baselines(self) -> tuple[Baseline[Any], ...]:
        """Rules and narrower searches to compare with: name, value and answer."""
        return self.result.baselines

    @property
    def trace(self) -> Trace:
        """Seconds, best value and bound at each improvement."""
        return self.result.trace

    @property
    def has_design(self) -> bool:
        """Whether this is an answer about joint designs that has one, and so an `evaluation`."""
        return isinstance(self.result.answer, Designs)

    @property
    def evaluation(self) -> Evaluation:
        """All figures of a joint design, of the first of several workloads; a RefusedError where there is no design."""
        return self.evaluations[0]

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """The same of each workload."""
        answer, details = self.result.answer, self.result.details
        if not isinstance(answer, Designs) or not isinstance(details, EvaluatedDesigns):
            what = "no design keeps every limit" if self.result.kind == "codesign" else f"it is about {KINDS[self.result.kind].about}"
            raise RefusedError(f"this answer has no training plan: {what} (`answer` and `details` are what it has)")
        question = self.question
        if isinstance(question, MultiScaleQuestion):
            question = question.parts[question.scales.index(answer.scale)]
        parts = question.parts if isinstance(question, Portfolio) else (question,)
        several = zip(parts, answer.designs, details.shares, strict=True)
        return tuple(Evaluation(part, design, share.evaluation, float(share.value)) for part, design, share in several)

    @property
    def plan(self) -> Plan | KernelPlan:
        """The parallel plan of a joint design, such as `answer.plan.tensor`."""
        return self.evaluation.plan

    @property
    def step_time(self) -> float:
        """Seconds of a training step."""
        return self.evaluation.step_time

    @property
    def mfu(self) -> float:
        """Model FLOPs utilisation."""
        return self.evaluation.mfu

    @property
    def memory(self) -> dict[str, float]:
        """Bytes by use on the fullest device."""
        return self.evaluation.memory

    @property
    def days(self) -> float | None:
        """Days of the whole run, where the question has a goal."""
        return self.evaluation.days

    @property
    def money(self) -> float | None:
        """Dollars of the whole run, where the question has a goal with a rent or a purchase."""
        return self.evaluation.money

    def table(self) -> list[Row]:
        """All figures as rows, unrounded: `pandas.DataFrame(answer.table())`."""
        from crossopt.reports.commands.report import tables_on  # noqa: PLC0415

        with TemporaryDirectory() as folder:
            path = Path(folder) / "result.json"
            self.save(path)
            return [{name: _figure(text) for name, text in row.items()} for row in DictReader(StringIO(tables_on("csv", [path])))]

    def to_frame(self) -> Any:  # noqa: ANN401 - of pandas, or else of polars
        """`table()` as a data frame of pandas, or of polars where pandas is not installed."""
        return frame_of(self.table())

    @property
    def plots(self) -> tuple[str, ...]:
        """Names of the pictures that `plot` draws."""
        return tuple(self._pictures())

    def plot(self, name: str) -> Plot:
        """A picture of the answer's page: `breakdown`, `timeline`, `roofline`, `memory`, `convergence` or another of `plots`."""
        return plot_named(self._pictures(), name)

    def _pictures(self) -> dict[str, str]:
        from crossopt.reports.render.figures import figures_of  # noqa: PLC0415
        from crossopt.reports.shown import page_of  # noqa: PLC0415

        return dict(figures_of(page_of(self.result.kind, self.question, self.result, {})))

    def __str__(self) -> str:
        from crossopt.reports.shown import text_of  # noqa: PLC0415

        return self.summary or text_of(self.result.kind, self.question, self.result, verbose=False, following=FOLLOWING)

    def __repr__(self) -> str:
        value = "no answer" if self.value is None else digits(self.value, self.unit)
        return f"<Answer {self.name}: {self.status}, {value}{', proved' if self.proved else ''}>"

    def _repr_html_(self) -> str:
        """The HTML page, for notebooks."""
        from crossopt.reports.render.html import page as whole_page  # noqa: PLC0415
        from crossopt.reports.shown import page_of  # noqa: PLC0415

        page = escape(whole_page(page_of(self.result.kind, self.question, self.result, self.data)), quote=True)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 40em; border: 0" title="{escape(repr(self)[1:-1])}"></iframe>'
