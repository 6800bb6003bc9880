"""A study, which derives formulas from its answers and compares them with expectations and measured runs; only arithmetic is run."""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import product
from math import isfinite
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from crossopt.crossflow.fields import Doc, Duration, Positive, Prose, Ratio
from crossopt.crossflow.plan import Plan
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.document import Node, Scalar, read_file
from crossopt.instances.files.schema import read_as
from crossopt.instances.files.tables import Cells, columns_of, read_table
from crossopt.instances.files.tables import number as number_in
from crossopt.instances.files.units import nearest, parse_number, quoted

# Formulas in a file: numbers, names, sums, products, powers, a few functions, and one comparison; nothing else, so that nothing is run.
#
#     tokens / optimum / devices                               a figure
#     optimum < at(optimum, memory='hbm1')                     what holds or does not
#     abs(speedup - 0.559) <= 0.08
#
# A text is parsed as Python reads an expression (module `ast`) and turned into the few kinds of nodes below; all else is refused.

LONGEST: Final = 400
"""Signs of a formula."""
_DEEPEST: Final = 40
FUNCTIONS: Final = {"abs": 1, "sqrt": 1, "log": 1, "exp": 1, "before": 1, "at": 1, "min": 2, "max": 2}
"""How many figures each takes; `min` and `max` take two or more, `at` also names places."""
_SIGNS: Final = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
_COMPARED: Final = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that is written out."""

    value: float


@dataclass(frozen=True, slots=True)
class Name:
    """`optimum`, or `plan.tensor`."""

    text: str


@dataclass(frozen=True, slots=True)
class Operation:
    """Two formulas with a sign between them."""

    sign: str
    left: "Formula"
    right: "Formula"


@dataclass(frozen=True, slots=True)
class Call:
    """A function of formulas; `places` are those that `at` names."""

    function: str
    given: tuple["Formula", ...]
    places: tuple[tuple[str, str], ...] = ()


Formula = Figure | Name | Operation | Call


@dataclass(frozen=True, slots=True)
class Comparison:
    """What holds or does not."""

    sign: str
    left: Formula
    right: Formula


def parse_formula(text: str) -> Formula:
    """The formula in a text; a ValueError in words where it is none."""
    found = _read_formula(_tree(text))
    if isinstance(found, Comparison):
        raise ValueError("this compares, and a figure is needed (leave the comparison out)")
    return found


def parse_claim(text: str) -> Comparison:
    """The comparison in a text; a ValueError in words where it is none."""
    found = _read_formula(_tree(text))
    if not isinstance(found, Comparison):
        raise ValueError("this is a figure, and something that holds or does not is needed (compare by < <= > >=)")
    return found


def names_in(formula: Formula | Comparison) -> Iterator[str]:
    """Every name that it has."""
    match formula:
        case Name(text):
            yield text
        case Operation(_, left, right) | Comparison(_, left, right):
            yield from names_in(left)
            yield from names_in(right)
        case Call(_, given, _):
            for part in given:
                yield from names_in(part)
        case Figure():
            return


def points_named(formula: Formula | Comparison) -> Iterator[tuple[str, str]]:
    """Every place that `at` names."""
    match formula:
        case Operation(_, left, right) | Comparison(_, left, right):
            yield from points_named(left)
            yield from points_named(right)
        case Call(_, given, places):
            yield from places
            for part in given:
                yield from points_named(part)
        case _:
            return


def _tree(text: str) -> ast.expr:
    if len(text) > LONGEST:
        raise ValueError(f"this formula has {len(text):,} signs (write {LONGEST} or fewer; derive a part of it before)")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise ValueError("this is no formula (for example `tokens / optimum / devices`)") from error


def _read_formula(tree: ast.expr) -> Formula | Comparison:
    if isinstance(tree, ast.Compare):
        sign = _COMPARED.get(type(tree.ops[0]))
        if len(tree.ops) > 1 or sign is None:
            raise ValueError("one comparison by < <= > >= is taken (write one line for each; of equal figures `abs(a - b) <= 0.01 * b`)")
        return Comparison(sign, _figure(tree.left, 0), _figure(tree.comparators[0], 0))
    return _figure(tree, 0)


def _figure(tree: ast.expr, depth: int) -> Formula:
    if depth > _DEEPEST:
        raise ValueError("this formula is too deep (derive a part of it before)")
    match tree:
        case ast.Constant(value=bool() | str() | bytes() | None):
            pass
        case ast.Constant(value=int() | float() as value) if _fits(value):
            return Figure(float(value))
        case ast.Name(id=text):
            return Name(text)
        case ast.Attribute(value=ast.Name(id=text), attr=part):
            return Name(f"{text}.{part}")
        case ast.UnaryOp(op=ast.USub(), operand=inside):
            return Operation("-", Figure(0.0), _figure(inside, depth + 1))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _SIGNS:
            return Operation(_SIGNS[type(op)], _figure(left, depth + 1), _figure(right, depth + 1))
        case ast.Call(func=ast.Name(id=name), args=given, keywords=places):
            return _call(name, given, places, depth)
        case _:
            pass
    raise ValueError("a formula has numbers, names, + - * / **, parentheses and functions (" + ", ".join(FUNCTIONS) + "), and nothing else")


def _fits(value: float) -> bool:
    try:
        return isfinite(float(value))
    except OverflowError:
        return False


def _call(name: str, given: list[ast.expr], places: list[ast.keyword], depth: int) -> Call:
    if name not in FUNCTIONS:
        raise ValueError(f"there is no function `{name}` (one of {', '.join(FUNCTIONS)})")
    least = FUNCTIONS[name]
    if len(given) < least or (least == 1 and len(given) > 1):
        raise ValueError(f"`{name}` takes {'one figure' if least == 1 else 'two figures or more'}")
    named = list[tuple[str, str]]()
    for keyword in places:
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        if name != "at" or keyword.arg is None or not isinstance(value, str | int | float):
            raise ValueError("only `at` names places, each as axis='value'")
        named.append((keyword.arg, str(value)))
    if name == "at" and not named:
        raise ValueError("`at` names a place (for example `at(optimum, devices='8')`)")
    return Call(name, tuple(_figure(argument, depth + 1) for argument in given), tuple(named))


# What a study derives from its answers, expects of them and holds against measured runs: the form of it, and what of it is no formula.
#
# Names in formulas are `optimum` (between bound and value), `value`, `bound`, `devices`, `tokens` (of a step), the axes, what was derived
# before, and facts of the best design that was found: `plan.tensor`, `chip.hbm_stacks`, `design.power`, `part.compute` (seconds of a step),
# `found.expert` (the value that an engine found). `before(x)` is x one place to the left on the first axis, `at(x, axis='value')` that at
# another place.

ALWAYS: Final = ("optimum", "value", "bound", "devices", "tokens")
DESIGN: Final = ("step_time", "energy", "average_power", "power", "die_area", "cost", "flops", "utilisation", "memory")
PLAN: Final = tuple(item.name for item in fields(Plan))
SUBJECT: Final = "subject"


@dataclass(frozen=True, slots=True)
class DerivedSection:
    """A column that follows from others."""

    name: Annotated[str, Doc("one word, by which later formulas call it")]
    formula: Annotated[str, Doc("expression over the columns of a point, for example `tokens / optimum / devices`")]
    unit: Annotated[str, Doc("unit of the figures on pages")] = ""
    drawn: Annotated[bool, Doc("whether it is plotted along the first axis")] = True


@dataclass(frozen=True, slots=True)
class ExpectedSection:
    """Something that is expected to hold."""

    says: Annotated[str, Doc("the expectation as a sentence")]
    claim: Annotated[str, Doc("comparison of two formulas, with any tolerance in it: `abs(speedup - 0.56) <= 0.08`")]
    where: Annotated[dict[str, str], Doc("restriction to these values of axes, or of this `subject`; default: all points")] = field(
        default_factory=dict
    )
    source: Annotated[str, Doc("source of the expectation")] = ""


@dataclass(frozen=True, slots=True)
class MeasuredSection:
    """Measured points to compare a column with, as a saved study holds them."""

    name: str
    column: str
    points: dict[str, float]
    """By values of the first axis."""
    source: str
    where: dict[str, str] = field(default_factory=dict)
    within: float | None = None


@dataclass(frozen=True, slots=True)
class AgainstSection:
    """Measured points to compare a column with, as a study's file states them, written out or in a file of their own."""

    name: Annotated[str, Doc("name of the points")]
    column: Annotated[str, Doc("derived column for the same quantity")]
    source: Annotated[str, Doc("source of the measurements")]
    points: Annotated[dict[str, float], Doc("points by values of the first axis, without `file`")] = field(default_factory=dict)
    file: Annotated[str, Doc("path of a CSV file with the points, relative to the study")] = ""
    at: Annotated[str, Doc("column of the file with values of the first axis; other rows are skipped")] = ""
    figure: Annotated[str, Doc("column of the file with the measurements")] = ""
    rows: Annotated[dict[str, str], Doc("only rows with these texts in these columns")] = field(default_factory=dict)
    where: Annotated[dict[str, str], Doc("values of the other axes, or of the `subject`, to compare with")] = field(default_factory=dict)
    within: Annotated[Ratio | None, Doc("expected largest relative deviation of the column from a point")] = None

    @property
    def measured(self) -> "MeasuredSection":
        """As runs keep them."""
        return MeasuredSection(self.name, self.column, self.points, self.source, self.where, self.within)


@dataclass(frozen=True, slots=True)
class Claims:
    """All of it, as runs keep it."""

    derive: tuple[DerivedSection, ...] = ()
    expect: tuple[ExpectedSection, ...] = ()
    against: tuple[MeasuredSection, ...] = ()
    leaves_open: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FormulaNames:
    """What formulas may name: the values on each axis and the subjects, by their names in formulas."""

    axes: Mapping[str, Sequence[str]]
    first: str
    engines: Sequence[str]


def as_name(label: str) -> str:
    """A label as formulas write it."""
    return re.sub(r"\W+", "_", label)


def faults_of(claims: Claims, places: FormulaNames) -> Iterator[tuple[str, str]]:
    """Every path at which something is wrong, and what."""
    known = [*ALWAYS, *(name for name in places.axes if name != SUBJECT)]
    for number, column in enumerate(claims.derive):
        path = f"derive[{number}]"
        if not column.name.isidentifier() or column.name in known:
            yield f"{path}.name", f"{quoted(column.name)} is taken or no word (write another one, with letters, digits and `_`)"
        yield from _formula_faults(f"{path}.formula", column.formula, False, known, places)
        known.append(column.name)
    for number, wanted in enumerate(claims.expect):
        yield from _formula_faults(f"expect[{number}].claim", wanted.claim, True, known, places)
        yield from _point_faults(f"expect[{number}].where", wanted.where.items(), places)
    derived = [column.name for column in claims.derive]
    for number, points in enumerate(claims.against):
        path = f"against[{number}]"
        if points.column not in derived:
            yield f"{path}.column", _unknown("derived column", points.column, derived)
        yield from _point_faults(f"{path}.where", points.where.items(), places)
        yield from _point_faults(f"{path}.points", [(places.first, at) for at in points.points] if places.first else [], places)
        if not places.first or not points.points:
            yield f"{path}.points", "points stand at values of the first axis of `sweep`, and there are none"
        elif any(not 0.0 < value < float("inf") for value in points.points.values()):
            yield f"{path}.points", "what is measured is above zero"


def _formula_faults(path: str, text: str, compares: bool, known: Sequence[str], places: FormulaNames) -> Iterator[tuple[str, str]]:
    try:
        formula: Formula | Comparison = parse_claim(text) if compares else parse_formula(text)
    except ValueError as error:
        yield path, str(error)
        return
    for name in dict.fromkeys(names_in(formula)):
        if fault := _name_fault(name, known, places):
            yield path, fault
    yield from _point_faults(path, points_named(formula), places)


def _name_fault(name: str, known: Sequence[str], places: FormulaNames) -> str:
    """What is wrong with a name of a formula; nothing where nothing is."""
    of, dot, part = name.partition(".")
    inside = {"plan": PLAN, "design": DESIGN, "found": [as_name(engine) for engine in places.engines]}
    if not dot:
        return "" if name in known else _unknown("column", name, known)
    if of in {"chip", "part"}:  # choices and uses of time of which each question has its own
        return ""
    if of not in inside:
        return f"there is nothing called {quoted(of)} (one of plan, chip, design, part, found)"
    return "" if part in inside[of] else _unknown(f"`{of}`", part, inside[of])


def _point_faults(path: str, named: Iterable[tuple[str, str]], places: FormulaNames) -> Iterator[tuple[str, str]]:
    for axis, value in dict.fromkeys(named):
        known = places.axes.get(as_name(axis))
        if known is None:
            yield path, _unknown("axis", axis, list(places.axes))
        elif value not in known:
            yield path, f"{axis} has no value {quoted(value)} (one of {', '.join(known)})"


def _unknown(what: str, name: str, known: Sequence[str]) -> str:
    guess = nearest(name, known)
    return f"there is no {what} {quoted(name)} (one of {', '.join(known)}{f'; did you mean {guess[0]!r}?' if guess else ''})"


# The form of a study (`kind: study`): questions, perhaps along several axes, and the engines that are asked each of them.
#
# A setting is written as `KEY: VALUE` with the keys of `--set`; lists and mappings are values too. Every value of an axis is combined with
# every value of the others, and with every question that is named.

# --- measured points ------------------------------------------------------------------------------------------------------------------


ReportFault = Callable[[str, str], None]
"""Takes a key of the section, and what is wrong there."""


def with_points(section: AgainstSection, axis: Sequence[str], folder: Path, report: ReportFault) -> AgainstSection:
    """The section with the points of its file. It stays as it is without a file or after a fault, which is reported."""
    if not section.file:
        for key in ("at", "figure", "rows"):
            if getattr(section, key):
                report(key, f"this says where points stand in a file (write `file:` beside it, or leave `{key}` out)")
        return section
    if section.points:
        report("points", "points are written here or in a file (leave `points` out, or `file`)")
    elif not (section.at and section.figure):
        report("file", "say which columns of the file are meant (`at:` for the value on the first axis, `figure:` for what was measured)")
    elif axis:  # a study without axes is reported anyway
        return _read(section, axis, folder, report)
    return section


def _read(section: AgainstSection, axis: Sequence[str], folder: Path, report: ReportFault) -> AgainstSection:
    """Every row that is meant and stands at a value of the axis, once."""
    needed = tuple(dict.fromkeys((section.at, section.figure, *section.rows)))
    path = folder / section.file
    try:
        columns = columns_of(path)
        if missing := [name for name in needed if name not in columns]:
            guess = nearest(missing[0], columns)
            remedy = (
                f"did you mean {guess[0]!r}?"
                if guess
                else f"one of {', '.join(map(quoted, columns[:_SHOWN])) or 'none, as the file is empty'}"
            )
            report("file", f"{section.file} has no column {quoted(missing[0])} ({remedy})")
            return section
        table = read_table(path, needed, needed, "measured point")
    except InstanceError as error:
        report("file", "; ".join(f"{error.source}:{fault.line}: {fault.message}" for fault in error.faults))
        return section
    meant = [row for row in table.lines if all(row.given.get(name) == text for name, text in section.rows.items())]
    points, faults = dict[str, float](), list[str]()
    for row in meant:
        faults += _take(row, section, axis, points)
    if not faults and not points:
        which = f"of its {len(table.lines):,} rows {len(meant):,} are meant, and none stands at {', '.join(axis)}"
        faults = [f"{which} (look at `at:`{' and `rows:`' if section.rows else ''})"]
    if faults:
        report("file", f"{section.file}: {'; '.join(faults[:_TOLD])}{'; and more' * (len(faults) > _TOLD)}")
        return section
    return replace(section, points=points)


_TOLD, _SHOWN = 3, 12


def _take(row: Cells, section: AgainstSection, axis: Sequence[str], points: dict[str, float]) -> list[str]:
    """Put the point of a row among the others, where it stands at a value of the axis; what is wrong with it."""
    if row.fault:
        return [f"line {row.line}: {row.fault}"]
    at, faults = _value_at(row.given[section.at], axis), list[str]()
    if at is None:
        return []
    figure = number_in(row.given, section.figure, faults)
    if at in points and figure is not None:
        return [f"line {row.line}: there is a point at {at} already (say by `rows:` which are meant)"]
    if figure is not None:
        points[at] = figure
    return [f"line {row.line}: {fault}" for fault in faults]


def _value_at(text: str, axis: Sequence[str]) -> str | None:
    """The value of the axis that a cell means: the same text, or the same number."""
    return next((value for value in axis if value == text or _same_number(value, text)), None)


def _same_number(first: str, second: str) -> bool:
    try:
        return parse_number(first) == parse_number(second)
    except ValueError:
        return False


MOST_QUESTIONS = 1_000
MOST_SWEPT = 50_000
"""Of a sweep, which keeps its answers in files."""
_SPECIAL = frozenset(",[]{}#:")


@dataclass(frozen=True, slots=True)
class AskedSection:
    """A question with settings of its own."""

    instance: Annotated[str, Doc("name from `crossopt list instances`, or a path relative to the study")]
    name: Annotated[str | None, Doc("name of the subject; default: the instance's name")] = None
    settings: Annotated[dict[str, str], Doc("settings of this question, with the keys of `--set`")] = field(default_factory=dict)
    workload: Annotated[str | None, Doc("workload to use, if there are several")] = None


@dataclass(frozen=True, slots=True)
class AxisSection:
    """A setting and the values that it takes in turn."""

    setting: Annotated[str, Doc("key of `--set`")]
    values: Annotated[tuple[str, ...], Doc("values of the setting")]
    name: Annotated[str | None, Doc("name of the axis; default: the setting")] = None
    beside: Annotated[dict[str, tuple[str, ...]], Doc("further settings with as many values, which change together with this one")] = field(
        default_factory=dict
    )

    @property
    def label(self) -> str:
        return self.name or " ".join(self.setting.replace(".", " ").split("_"))


@dataclass(frozen=True, slots=True)
class StudyFile:
    """Questions, and who is asked them."""

    kind: Annotated[Literal["study"], Doc("problem type")]
    title: Annotated[str, Doc("title of pages and tables")]
    instances: Annotated[tuple[str | AskedSection, ...], Doc("names, paths, or questions with their own settings")]
    engines: Annotated[tuple[str, ...], Doc("engines, in the order of the columns")]
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None
    settings: Annotated[dict[str, str], Doc("settings of every question")] = field(default_factory=dict)
    sweep: Annotated[tuple[AxisSection, ...], Doc("axes; plots run along the first one")] = ()
    time_limit: Annotated[Duration | None, Doc("time limit of each run; default: 5 s for search engines, no limit for others")] = None
    seeds: Annotated[Positive, Doc("number of seeds for randomised engines")] = 1
    derive: Annotated[tuple[DerivedSection, ...], Doc("columns computed from the answers, for `compare`")] = ()
    expect: Annotated[tuple[ExpectedSection, ...], Doc("expectations, for `compare`")] = ()
    against: Annotated[tuple[AgainstSection, ...], Doc("measured points plotted beside a derived column")] = ()
    leaves_open: Annotated[tuple[str, ...], Doc("limitations of the study, for its page")] = ()

    @property
    def claims(self) -> Claims:
        """What it says of its own answers."""
        against = tuple(section.measured for section in self.against)
        return Claims(self.derive, self.expect, against, tuple(" ".join(text.split()) for text in self.leaves_open))


class Setting(NamedTuple):
    """`KEY=VALUE`, and where it stands in the study; nowhere where the command line gives it."""

    text: str
    location: Fault | None


@dataclass(frozen=True, slots=True)
class UnreadPoint:
    """One question of a study before it is read."""

    subject: str
    """What it is about where the study asks about several things; empty where its values on the axes say all."""
    instance: str
    workload: str | None
    location: Fault
    """Where the study names it, as a fault without words."""
    at: tuple[str, ...]
    """Its value on each axis."""
    settings: tuple[Setting, ...]

    @property
    def name(self) -> str:
        return ", ".join([self.subject, *self.at] if self.subject else self.at)


@dataclass(frozen=True, slots=True)
class StudyText:
    """A study as it was read."""

    file: StudyFile
    root: Node
    source: str
    folder: Path


def read_study(path: Path, beside: Callable[[Node, Path], Iterable[Fault]] = lambda *_: (), most: int = MOST_QUESTIONS) -> StudyText:
    """The study in a file; an InstanceError with every fault of its form, and with those that are found beside them in what was written."""
    root, source, faults = _flowing(read_file(path)), str(path), list[Fault]()
    file = read_as(StudyFile, root, faults)
    if file is not None:
        file = _with_points(file, root, path.parent, faults)
        unread = {fault.path.partition(".")[0] for fault in faults}  # sections whose points have faults that are reported already
        faults += [fault for fault in _faults(file, root, most) if fault.path not in unread]
    if file is None or faults:
        raise InstanceError(source, [*faults, *beside(root, path.parent)])
    return StudyText(file, root, source, path.parent)


def points_of(study: StudyText, more: tuple[str, ...] = ()) -> Iterator[UnreadPoint]:
    """All questions: the instances in their order, and of each the last axis fastest; settings of the command line come last."""
    file, root = study.file, study.root
    shared = list(_settings(file.settings, root, "settings"))
    columns = [_column(axis, root, f"sweep[{number}]") for number, axis in enumerate(file.sweep)]
    for number, given in enumerate(file.instances):
        section = AskedSection(given) if isinstance(given, str) else given
        own = list(_settings(section.settings, root, f"instances[{number}].settings"))
        for chosen in product(*columns):
            at = tuple(value for value, _ in chosen)
            subject = (section.name or Path(section.instance).stem) if len(file.instances) > 1 or not at else ""
            swept = [setting for _, settings in chosen for setting in settings]
            settings = (*shared, *own, *swept, *(Setting(text, None) for text in more))
            at_instance = location_of(root, f"instances[{number}]")
            yield UnreadPoint(subject, section.instance, section.workload, at_instance, at, settings)


def _column(axis: AxisSection, root: Node, path: str) -> list[tuple[str, list[Setting]]]:
    """The values of an axis, each with its setting and those that change in step."""
    found = []
    for at, value in enumerate(axis.values):
        settings = [Setting(f"{axis.setting}={value}", location_of(root, f"{path}.values[{at}]"))]
        settings += [Setting(f"{key}={values[at]}", location_of(root, f"{path}.beside.{key}[{at}]")) for key, values in axis.beside.items()]
        found.append((value, settings))
    return found


def location_of(root: Node, path: str) -> Fault:
    """Where the value at a path stands, as a fault without words; keys with dots in them are one step."""
    node = root
    while inner := _towards(node, path):
        node = inner
    return Fault(node.line, node.column, node.path, "")


def _towards(node: Node, path: str) -> Node | None:
    value = node.value
    inside = [entry.node for entry in value.values()] if isinstance(value, dict) else value if isinstance(value, tuple) else ()
    on_the_way = (item for item in inside if path == item.path or path.startswith((f"{item.path}.", f"{item.path}[")))
    return max(on_the_way, key=lambda item: len(item.path), default=None)


def _settings(settings: Mapping[str, str], root: Node, path: str) -> Iterator[Setting]:
    for key, value in settings.items():
        yield Setting(f"{key}={value}", location_of(root, f"{path}.{key}"))


def _faults(file: StudyFile, root: Node, most: int) -> Iterator[Fault]:
    """What no single value shows."""
    rules = [("instances", bool(file.instances), "a study asks something (name at least one instance)")]
    rules += [("engines", bool(file.engines), "no engine is named (name engines, such as [auto, expert])")]
    for number, axis in enumerate(file.sweep):
        rules.append((f"sweep[{number}].values", bool(axis.values), "an axis has values (give at least one, or remove it)"))
        rules.append((f"sweep[{number}].values", len(set(axis.values)) == len(axis.values), "a value is given twice (keep one)"))
        even = all(len(values) == len(axis.values) for values in axis.beside.values())
        rules.append((f"sweep[{number}].beside", even, "settings beside an axis have a value for each of its values (give as many)"))
    labels = [axis.label for axis in file.sweep]
    rules.append(("sweep", len(set(labels)) == len(labels), "two axes have one name (give one of them another `name`)"))
    count = len(file.instances)
    for axis in file.sweep:
        count *= len(axis.values)
    swept = f", or ask up to {MOST_SWEPT:,} by `crossopt sweep`" if most < count <= MOST_SWEPT else ""
    problem = f"{count:,} questions are more than the {most:,} that may be asked at once (give fewer values{swept})"
    rules.append(("sweep" if file.sweep else "instances", count <= most, problem))
    for path, holds, message in rules:
        if not holds:
            yield replace(location_of(root, path), message=message)
    for path, message in faults_of(file.claims, formula_names(file)):
        yield replace(location_of(root, path), message=message)


def _with_points(file: StudyFile, root: Node, folder: Path, faults: list[Fault]) -> StudyFile:
    """The study with the measured points that stand in files."""
    axis, found = file.sweep[0].values if file.sweep else (), list[AgainstSection]()
    for number, section in enumerate(file.against):
        path = f"against[{number}]"

        def report(key: str, message: str, path: str = path) -> None:
            faults.append(replace(location_of(root, f"{path}.{key}"), message=message))

        found.append(with_points(section, axis, folder, report))
    return replace(file, against=tuple(found))


def formula_names(file: StudyFile) -> FormulaNames:
    """What formulas of the study may name."""
    sections = [AskedSection(given) if isinstance(given, str) else given for given in file.instances]
    subjects = [section.name or Path(section.instance).stem for section in sections]
    axes = {as_name(axis.label): axis.values for axis in file.sweep}
    first = as_name(file.sweep[0].label) if file.sweep else ""
    return FormulaNames({**axes, SUBJECT: subjects}, first, file.engines)


# --- lists and mappings as values ----------------------------------------------------------------------------------------------------


def _flowing(root: Node) -> Node:
    """The tree with the values of settings and axes as text, in which lists and mappings are written on one line."""
    ways = (("settings", "*"), ("instances", "*", "settings", "*"), ("sweep", "*", "values", "*"), ("sweep", "*", "beside", "*", "*"))
    for steps in ways:
        root = _within(root, steps)
    return root


def _within(node: Node, steps: tuple[str, ...]) -> Node:
    """The node with the values that these steps lead to as text; `*` is every key and every item."""
    if not steps:
        return replace(node, value=Scalar(_flow(node), quoted=True))
    value, (step, *rest) = node.value, steps
    if isinstance(value, dict):
        chosen = {key: entry for key, entry in value.items() if step in ("*", key)}
        return replace(node, value=value | {key: replace(entry, node=_within(entry.node, tuple(rest))) for key, entry in chosen.items()})
    if isinstance(value, tuple) and step == "*":
        return replace(node, value=tuple(_within(item, tuple(rest)) for item in value))
    return node


def _flow(node: Node, *, inner: bool = False) -> str:
    """The value on one line."""
    match node.value:
        case dict() as entries:
            return "{" + ", ".join(f"{_quoted(key)}: {_flow(entry.node, inner=True)}" for key, entry in entries.items()) + "}"
        case tuple() as items:
            return "[" + ", ".join(_flow(item, inner=True) for item in items) + "]"
        case Scalar(text=text, quoted=quoted) as scalar:
            return "null" if scalar.empty else _quoted(text) if inner and (quoted or not _SPECIAL.isdisjoint(text)) else text


def _quoted(text: str) -> str:
    return text if text.replace("_", "").isalnum() and text.isascii() and not text.isdecimal() else "'" + text.replace("'", "''") + "'"
