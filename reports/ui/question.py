"""The question on the page: its tree and faults, edits that preserve the rest of the text, and the price of a single design.

The page holds the text. Every request brings it along, so that a reload loses nothing; what was read of it is cached here.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import Any, Final

import yaml

from crossopt.crossflow.fields import Unit
from crossopt.instances.catalogue.registry import shipped
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.codesign.section import ChoicesSection
from crossopt.instances.codesign.space import hardware_choice
from crossopt.instances.errors import Fault, InstanceError, ModelError, RefusedError
from crossopt.instances.files.document import Node, Scalar, read_text
from crossopt.instances.files.schema import mark_of, options_of, slots_of
from crossopt.instances.files.units import DIMENSIONS, format_quantity
from crossopt.instances.files.written import Files
from crossopt.instances.kinds import KINDS, kind_in
from crossopt.instances.question import read_given
from crossopt.reports.facts.chip import choice_name, design_text
from crossopt.reports.facts.question import text_of_question
from crossopt.reports.render.html import paragraph, section_html, tiles, verdict_rows
from crossopt.reports.sheets.amounts import days_of, time_of
from crossopt.reports.sheets.codesign.caveats import Context
from crossopt.reports.sheets.codesign.design import estimates, fullness, limit_of, rates, time_section
from crossopt.reports.sheets.sheet import Limits, Section
from crossopt.solvers.codesign.judge import Single, evaluate_choices, evaluate_single

Plain = str | None | list[Any] | dict[str, Any]
"""A YAML value whose scalars are text as written."""
_SOURCE: Final = "question.yaml"
"""The name of the text in messages."""
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLAIN: Final = re.compile(r"(?!(?:null|Null|NULL)$)(?!-*(?: |$))[\w.+-]([\w.+/^ -]*[\w.+/^-])?")
"""Texts that YAML reads as they are, also inside brackets."""
_WIDE: Final = 110
"""Longest line on which a whole value is written."""
_FIRST_DESIGN: Final = 1.5
"""Time limit in seconds of the search for the initial design."""


@dataclass
class FilesInside(Files):
    """Files of the folder of a question, and of a shipped question those that are shipped; symbolic links elsewhere are not followed."""

    named: set[str] = field(default_factory=set)
    """The files that were read."""

    def path(self, name: str) -> Path:
        path, top = self.folder / name, shipped()["tiny"].parent
        top = top if self.folder.is_relative_to(top) else self.folder
        climbs = Path(os.path.normpath(name)).parts.count(os.pardir) > len(self.folder.relative_to(top).parts)
        if "\0" in name or climbs or not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(top)):
            message = "this file is not in the folder of the question (copy it there, and start `crossopt ui` in that folder)"
            raise InstanceError(str(path), [Fault(1, 1, "", message)])
        self.named.add(name)
        return path


@dataclass(frozen=True, slots=True)
class Lever:
    """An open choice, with the setting of each option."""

    name: str
    label: str
    options: tuple[str, ...]
    """Labels on the page."""
    settings: tuple[str, ...]
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Opened:
    """A parsed question."""

    kind: str
    question: Any
    text: str
    folder: Path
    levers: tuple[Lever, ...]
    files: tuple[str, ...]
    """The files that it names."""


def opened(text: str, folder: Path) -> Opened:
    """The question in a text, read once while the files that it names stay as they are; an InstanceError with every fault."""
    if len(_NAMED) > _MOST_NAMED:
        _NAMED.clear()
    return _opened(text, folder, tuple(_state_of(folder / name) for name in _NAMED.get((text, folder), ())))


_NAMED: Final[dict[tuple[str, Path], tuple[str, ...]]] = {}
"""The files that texts name, as far as they name any."""
_MOST_NAMED: Final = 64


def _state_of(path: Path) -> tuple[int, int]:
    try:
        return path.stat().st_mtime_ns, path.stat().st_size
    except OSError:
        return 0, 0


@lru_cache(maxsize=16)
def _opened(text: str, folder: Path, state: tuple[tuple[int, int], ...]) -> Opened:
    del state
    kind, files = kind_in(text), FilesInside(folder)
    try:
        question = read_given(text, kind, files=files)
    except RefusedError as error:
        raise InstanceError(_SOURCE, [Fault(1, 1, "kind", str(error))]) from error
    levers = levers_of(question) if isinstance(question, Instance) else ()
    if files.named:
        _NAMED[text, folder] = tuple(sorted(files.named))
    return Opened(kind, question, text, folder, levers, tuple(sorted(files.named)))


def described(text: str, folder: Path) -> dict[str, Any]:
    """Everything that the page shows of a text before pricing."""
    try:
        root = read_text(text, _SOURCE)
    except InstanceError as error:
        return {"tree": None, "faults": _faults(error, None, folder)}
    tree = plain(root)
    kind = tree.get("kind") if isinstance(tree, dict) else None
    shown: dict[str, Any] = {"tree": tree, "kind": kind if kind in KINDS else "codesign", "faults": []}
    try:
        found = opened(text, folder)
    except InstanceError as error:
        return {**shown, "faults": _faults(error, root, folder)}
    module = import_module(KINDS[found.kind].question)
    described_as = tree.get("description") if isinstance(tree, dict) else None
    sentence = (
        text_of_question(found.question).sentence if isinstance(found.question, Instance) else described_as or KINDS[found.kind].about
    )
    sentence = sentence[:1].upper() + sentence[1:]
    return {**shown, "size": module.size_of(found.question), "sentence": sentence, **engines_of(found.kind)}


def engines_of(kind: str) -> dict[str, Any]:
    """The engines that answer such a question, the usual one first."""
    from crossopt.solvers.family import family_of  # noqa: PLC0415 - it loads what judges

    return {"engines": list(family_of(kind).engines)}


def _faults(error: InstanceError, root: Node | None, folder: Path) -> list[dict[str, Any]]:
    """The faults with their positions in the text; faults of another file are at the position where the text names it."""
    faults: tuple[Fault, ...] = error.faults
    if error.source != _SOURCE:
        at = next((node for node in _scalars(root) if str(folder / plain_text(node)) == error.source), root)
        line, column, path = (1, 1, "") if at is None else (at.line, at.column, at.path)
        faults = tuple(Fault(line, column, path, f"{error.source}:{fault.line}:{fault.column}: {fault.message}") for fault in faults)
    return [{"line": fault.line, "column": fault.column, "path": fault.path, "message": fault.message} for fault in faults]


def _scalars(node: Node | None) -> Iterator[Node]:
    """Every text of a tree."""
    match node.value if node is not None else ():
        case dict() as entries:
            for entry in entries.values():
                yield from _scalars(entry.node)
        case tuple() as items:
            for item in items:
                yield from _scalars(item)
        case _ if node is not None:
            yield node


def plain_text(node: Node) -> str:
    """The text of a scalar; empty for anything else."""
    return node.value.text if isinstance(node.value, Scalar) else ""


def plain(node: Node) -> Plain:
    """The tree as plain data."""
    match node.value:
        case Scalar() as scalar:
            return None if scalar.empty else scalar.text
        case dict() as entries:
            return {key: plain(entry.node) for key, entry in entries.items()}
        case items:
            return [plain(item) for item in items]


# --- one design -----------------------------------------------------------------------------------------------------------------------


def levers_of(question: Instance) -> tuple[Lever, ...]:
    """The open choices of chip and plan; `data` is left out, as it follows from the other degrees."""
    units = {slot.name: mark_of(marks, Unit) for slot in slots_of(ChoicesSection) for _, marks in options_of(slot.kind, slot.marks)[:1]}
    free = question.hardware.options if isinstance(question.hardware, FreeHardware) else ()
    chip = tuple(_lever_of_chip(name, values, units.get(name)) for name, values in free if len(values) > 1)
    choices = ((name, values) for name, values in question.plan_options if len(values) > 1 and name != "data")
    return (*chip, *(_lever(name, name.replace("_", " "), values, [str(value).lower() for value in values]) for name, values in choices))


def _lever_of_chip(name: str, values: Sequence[float], unit: Unit | None) -> Lever:
    """Options as quantities; settings have full precision, in SI units."""
    if unit is None:
        return _lever(name, choice_name(name), values, [f"{value:g}" for value in values])
    base = next(symbol for symbol, size in DIMENSIONS[unit.dimension].units.items() if size == 1)
    settings = tuple(f"{name}={value!r} {base}".rstrip() for value in values)
    return Lever(name, choice_name(name), tuple(format_quantity(value, unit.dimension) for value in values), settings, tuple(values))


def _lever(name: str, label: str, values: Sequence[Any], shown: Sequence[str]) -> Lever:
    return Lever(name, label, tuple(shown), tuple(f"{name}={value}" for value in shown), tuple(values))


def levers_json(found: Opened, design: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The levers and their positions in the design, by default the best one that is found soon, or else their first options."""
    if not isinstance(found.question, Instance):
        return {"levers": [], "refused": _NO_LEVERS}
    values, begins = _first_design(found.question) if design is None else (design, "the answer")
    at = {lever.name: _option(lever, values[lever.name]) for lever in found.levers if lever.name in values}
    rows = [{"name": lever.name, "label": lever.label, "options": lever.options, "at": at.get(lever.name, 0)} for lever in found.levers]
    return {"levers": rows, "begins": f"The sliders begin at {begins}." if values else "The sliders begin at the first options."}


_NO_LEVERS: Final = "Single designs are priced for joint designs of one workload on one number of devices."


def _option(lever: Lever, value: object) -> int:
    """The index of the option with this value; the last one if the plan has only the part of it that applies."""
    return lever.values.index(value) if value in lever.values else len(lever.values) - 1


def _first_design(question: Instance) -> tuple[dict[str, Any], str]:
    """The choices of the best design that is found soon, or of a rule, and what it is; empty if there is no design."""
    from crossopt.reports.facts.repriced import best_soon  # noqa: PLC0415 - only pages with levers need searches
    from crossopt.solvers.codesign.recipes import simplest_design  # noqa: PLC0415

    chosen, begins = None, f"the best design found in {_FIRST_DESIGN:g} s"
    with suppress(RefusedError):
        chosen, _, complete = best_soon(question, _FIRST_DESIGN)
        begins = "the best design" if complete else begins
    if chosen is None:
        chosen, begins = simplest_design(question, monotonic() + _FIRST_DESIGN), "a usual design"
    return ({}, "") if chosen is None else ({**hardware_choice(question, chosen.point), **asdict(chosen.plan)}, begins)


def price(found: Opened, picks: Mapping[str, int]) -> tuple[Instance, Single]:
    """The design with these options, by index; an InstanceError, a ModelError or a ValueError if it is invalid."""
    settings, choices = list[str](), dict[str, Any]()
    for lever in found.levers:
        index = picks.get(lever.name, 0)
        if not 0 <= index < len(lever.settings):
            raise RefusedError(f"{lever.label} has no option {index}")
        settings.append(lever.settings[index])
        choices[lever.name] = lever.values[index]
    if isinstance(found.question, Instance) and (single := evaluate_choices(found.question, choices)) is not None:
        return found.question, single
    # the question with these choices says why they are no design
    instance = read_given(found.text, found.kind, tuple(settings), files=FilesInside(found.folder))
    if not isinstance(instance, Instance):
        raise RefusedError(_NO_LEVERS)
    return instance, evaluate_single(instance)


def price_json(found: Opened, picks: Mapping[str, int]) -> dict[str, Any]:
    """What the page shows beside the levers: figures, the breakdown of the step, and limits; or why the design is invalid."""
    try:
        instance, single = price(found, picks)
    except InstanceError as error:
        return {"refused": "; ".join(fault.message for fault in error.faults)}
    except (ModelError, RefusedError) as error:
        return {"refused": str(error)}
    evaluation, context = single.evaluation, Context(instance, single.design, single.evaluation)
    figures = dict([("step time", time_of(evaluation.step_time)), *rates(evaluation, instance, single.design.plan)])
    if (goal := instance.goal) is not None:
        money = goal.money(evaluation.step_time)
        figures |= {"run": days_of(goal.seconds(evaluation.step_time)), **({} if money is None else {"cost": f"{money:,.0f} USD"})}
    sentences = tuple(pair for pair in estimates(context) if pair[0] != "likely step time")
    html = "\n".join(
        [
            paragraph(design_text(single.design), "answer"),
            tiles(list(figures.items())),
            verdict_rows(sentences) if sentences else "",
            paragraph(fullness(evaluation)),
            section_html(time_section(evaluation), 0),
            section_html(Section("Limits", (Limits(tuple(map(limit_of, evaluation.limits))),)), 1),
        ]
    )
    return {"feasible": evaluation.feasible, "step_time": evaluation.step_time, "drawn": html}


# --- edits ----------------------------------------------------------------------------------------------------------------------------

Path_ = Sequence[str | int]
"""Keys and indices that lead to a value."""


def edited(text: str, path: Path_, value: Plain, *, remove: bool = False) -> str:
    """The text with one value set or removed. Comments and layout are preserved, unless the text has to be written again as a whole."""
    wanted = _changed(plain(read_text(text, _SOURCE)), path, value, remove)
    try:
        root: Any = yaml.compose(text, Loader=_LOADER)
        changed = _removed(text, root, path) if remove else _set(text, root, path, value)
        if plain(read_text(changed, _SOURCE)) == wanted:
            return changed
    except (InstanceError, LookupError, yaml.YAMLError):
        pass
    return yaml_text(wanted)


def _changed(tree: Any, path: Path_, value: Plain, remove: bool) -> Any:  # noqa: ANN401 - plain data
    """The changed tree; a RefusedError if the path does not exist."""
    if not path:
        return value
    key, rest = path[0], path[1:]
    if isinstance(tree, list):
        if not isinstance(key, int) or not 0 <= key <= len(tree) - bool(rest or remove):
            raise RefusedError(f"there is no item {key}")
        here, old = list(tree), tree[key] if key < len(tree) else None
        here[key : key + 1] = [] if remove and not rest else [_changed(old, rest, value, remove)]
        return here
    if not isinstance(key, str):
        raise RefusedError(f"there is no list with an item {key}")
    entries = dict(tree) if isinstance(tree, dict) else {}
    if remove and not rest:
        entries.pop(key, None)
        return entries
    return {**entries, key: _changed(entries.get(key), rest, value, remove)}


def _towards(root: yaml.Node, path: Path_) -> tuple[list[yaml.Node], int]:
    """The nodes along a path as far as it exists, and how many of its steps that are."""
    nodes = [root]
    for count, key in enumerate(path):
        inner = None
        if isinstance(nodes[-1], yaml.MappingNode):
            inner = next((node for name, node in nodes[-1].value if name.value == key), None)
        elif isinstance(nodes[-1], yaml.SequenceNode) and isinstance(key, int) and key < len(nodes[-1].value):
            inner = nodes[-1].value[key]
        if inner is None:
            return nodes, count
        nodes.append(inner)
    return nodes, len(path)


def _set(text: str, root: yaml.Node, path: Path_, value: Plain) -> str:
    nodes, steps = _towards(root, path)
    last = nodes[-1]
    if steps == len(path):
        start = last.start_mark.index
        space = " " if start and text[start - 1] == ":" else ""
        return f"{text[:start]}{space}{in_line(value)}{text[max(_end(last), start) :]}"
    for key in reversed(path[steps + 1 :]):
        value = {str(key): value}
    added = in_line(value) if isinstance(last, yaml.SequenceNode) else f"{_scalar(str(path[steps]))}: {in_line(value)}"
    if not isinstance(last, yaml.CollectionNode):  # an empty value, which becomes a mapping
        start = last.start_mark.index
        return f"{text[:start]} {{{added}}}{text[max(_end(last), start) :]}"
    if last.flow_style:
        end = _end(last) - 1
        return f"{text[:end].rstrip()}{', ' if last.value else ''}{added}{text[end:]}"
    end, mark = text.find("\n", _end(last)), "- " if isinstance(last, yaml.SequenceNode) else ""
    end = len(text) if end < 0 else end
    return f"{text[:end]}\n{' ' * last.start_mark.column}{mark}{added}{text[end:]}"


def _removed(text: str, root: yaml.Node, path: Path_) -> str:
    nodes, steps = _towards(root, path)
    if steps < len(path):
        return text
    parent, node = nodes[-2], nodes[-1]
    if not isinstance(parent, yaml.CollectionNode) or len(parent.value) < 2:
        raise LookupError("nothing would be left")
    spans = [(key.start_mark.index, _end(inner)) for key, inner in _pairs(parent)]
    index = next(number for number, (_, inner) in enumerate(_pairs(parent)) if inner is node)
    if parent.flow_style:
        first, after = (spans[index - 1][1], spans[index][1]) if index else (spans[0][0], spans[1][0])
        return text[:first] + text[after:]
    first, after = text.rfind("\n", 0, spans[index][0]) + 1, text.find("\n", spans[index][1]) + 1
    return text[:first] + (text[after:] if after else "")


def _pairs(parent: yaml.CollectionNode) -> list[tuple[yaml.Node, yaml.Node]]:
    return list(parent.value) if isinstance(parent, yaml.MappingNode) else [(item, item) for item in parent.value]


def _end(node: yaml.Node) -> int:
    """Where the last character of a value was; blocks end at that of their last part, not at the next key."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        return max(_end(inner) for _, inner in _pairs(node))
    return int(node.end_mark.index)


def in_line(value: Plain) -> str:
    """A value in one line of YAML."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_scalar(key)}: {in_line(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(in_line, value))}]"
    return "~" if value is None else _scalar(value)


def _scalar(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(sign if sign.isprintable() and sign not in '"\\' else f"\\U{ord(sign):08x}" for sign in text) + '"'


def yaml_text(tree: Plain, indent: str = "") -> str:
    """A whole question as YAML: short values in a line, longer ones in a block."""
    if not isinstance(tree, dict) or not tree:
        return f"{indent}{in_line(tree)}\n"
    lines = []
    for key, value in tree.items():
        line = f"{indent}{_scalar(key)}: {in_line(value)}\n"
        short = len(line) <= _WIDE or not isinstance(value, dict) or not value
        lines.append(line if short else f"{indent}{_scalar(key)}:\n{yaml_text(value, indent + '  ')}")
    return "".join(lines)
