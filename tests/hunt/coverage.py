"""Which options of every kind the drawn questions have, how many of these were answered, and how many answers compared."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from functools import cache
from importlib import import_module
from pathlib import Path
from re import findall, fullmatch
from typing import Any

from crossopt.crossflow.plan import OFFLOAD, OVERLAP, SCHEDULES, TENSOR_EXCHANGES, Plan
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.instance import Instance, MultiScaleQuestion, Portfolio
from crossopt.instances.codesign.section import ChoicesSection
from crossopt.instances.codesign.stack_rules import STACKS
from crossopt.instances.files.document import Node, Scalar, node_of, read_text
from crossopt.instances.files.written import TOP_ONLY, lay_over
from crossopt.instances.kinds import KINDS
from crossopt.instances.placement.question import PlacementQuestion
from crossopt.instances.schema_export import FORMS, json_schema
from crossopt.solvers.codesign.objective import OBJECTIVES

NEEDED = 50
"""Questions with an option that a run compares at least."""
_WORDS = {
    "schedule": SCHEDULES,
    "overlap": OVERLAP,
    "offload": OFFLOAD,
    "tensor_exchange": TENSOR_EXCHANGES,
    "expert_exchange": ("exposed", "hidden"),
    "zero": (0, 1, 2, 3),
    "split": ("rows-columns", "inner"),
}
_SHAPES = ("switch", "rails", "ring", "fully_connected")
_FORMS = (
    *(
        "one",
        "several workloads",
        "worst_regret",
        "several counts",
        "several batches",
        "several networks",
        "sets",
        "host",
        "dense",
        "experts",
    ),
    *("Lstm", "Gemm"),
)
_NO_CHOICES = frozenset(("rest", "only"))
_DESIGNS = (
    *(f"choices.{name.name}" for name in fields(ChoicesSection) if name.name not in {*_NO_CHOICES, *_WORDS}),
    *(f"choices.{name}: {word}" for name, words in _WORDS.items() for word in words),
    *(f"objective: {name}" for name in (*OBJECTIVES, "devices")),
    *(f"stack: {name}" for name in (*STACKS, None)),
    *(f"shape: {shape}" for shape in _SHAPES),
    *(f"form: {form}" for form in _FORMS),
)
"""What joint designs may ask; of a setting with words each of them, of another that it is named with another option than the usual."""
_UNCOUNTED = frozenset(("kind", "name", "description", "from", "to", "step", "count", "factor"))
"""Keys that say nothing of the answer, and the ends of ranges."""
_NEVER = frozenset(
    (
        "collective dimensions.algorithm: in_network",  # is replayed with traces, and refused where orders are chosen
        "serving hub",  # a name in exported command lines
    )
)
"""Options of questions that have no answer to compare."""
_ELSEWHERE = {"codesign": frozenset(("technology", "hardware", "choices", "stack", "objective", "workloads"))}
"""Keys below which options are counted otherwise; of other kinds those of a whole workload or chip."""
_ANY = ".*"
"""Ends the path of keys below which every name is an author's."""


@cache
def schema_options(kind: str) -> frozenset[str]:
    """Every key of a kind's files, and every word that one takes, as the kind's schema has them."""
    schema = json_schema(FORMS[kind])
    return frozenset(
        option
        for option in _in_schema(
            schema, schema.get("$defs", {}), "", _ELSEWHERE.get(kind, frozenset(("workload", "hardware"))), frozenset()
        )
        if not option.endswith(_ANY)
    )


@cache
def _open(kind: str) -> frozenset[str]:
    schema = json_schema(FORMS[kind])
    return frozenset(
        option.removesuffix(_ANY)
        for option in _in_schema(schema, schema.get("$defs", {}), "", frozenset(), frozenset())
        if option.endswith(_ANY)
    )


def _in_schema(node: Mapping[str, Any], named: Mapping[str, Any], path: str, ends: frozenset[str], above: frozenset[str]) -> Iterator[str]:
    name = node.get("$ref", "").rpartition("/")[2]
    if name and name not in above:
        yield from _in_schema(named[name], named, path, ends, above | {name})
    yield from (f"{path}: {word}" for word in node.get("enum", ()) if path)
    for key, inner in node.get("properties", {}).items():
        if key not in _UNCOUNTED:
            deeper = f"{path}.{key}".lstrip(".")
            yield deeper
            yield from () if key in ends else _in_schema(inner, named, deeper, ends, above)
    if isinstance(node.get("additionalProperties"), dict):
        yield f"{path}{_ANY}"
    for inner in (*node.get("anyOf", ()), *(node[key] for key in ("items", "additionalProperties") if isinstance(node.get(key), dict))):
        yield from _in_schema(inner, named, path, ends, above)


def _label(kind: str, option: str) -> str:
    return option if kind == "codesign" else f"{kind} {option}"


_ASKED = tuple(kind for kind in KINDS if kind != "study" and kind in FORMS)
"""Problem types with a schema; a test that ran before may have added another to KINDS."""
_OTHERS = (_label(kind, option) for kind in _ASKED for option in sorted(schema_options(kind)))
ALL = tuple(dict.fromkeys((*_DESIGNS, *(option for option in _OTHERS if option not in _NEVER))))
COLUMNS = ("drawn", "answered", "compared")


def options_of(question: Any, kind: str = "codesign") -> frozenset[str]:  # noqa: ANN401 - of any kind
    """The options that a question of this kind has."""
    own = {_label(kind, option) for option in schema_options(kind).intersection(_in_document(question, kind))}
    if isinstance(question, PlacementQuestion):  # drawn without a file
        words = (f"contiguous: {question.contiguity}", f"transfers: {question.communication}", f"problem: {question.problem}")
        own |= {
            _label(kind, word)
            for word in (*words, *(key for key, there in (("cpus", question.cpus), ("pieces", question.pieces > 1)) if there))
        }
    own |= {*_options(question)} if isinstance(question, Instance | Portfolio | MultiScaleQuestion) else set()
    return frozenset(own) & frozenset(ALL)


def _in_document(question: Any, kind: str) -> Iterator[str]:  # noqa: ANN401 - of any kind
    """The keys and words in the text of a question, with the settings laid over it."""
    source, text = str(question.document.get("source", "")), question.document.get("text")
    in_words = Path(source).suffix == ".yaml" and (text is not None or Path(source).exists())
    root = read_text(text or Path(source).read_text(encoding="utf-8"), source) if in_words else node_of({"file": source})
    for setting in question.document.get("settings", ()):
        root = lay_over(root, setting, source, getattr(import_module(KINDS[kind].question), "KEYS", TOP_ONLY))
    for option in _in_node(root, "", _open(kind)):
        yield option.replace("workloads.", "workload.", 1) if kind == "codesign" else option


def _in_node(node: Node, path: str, free: frozenset[str]) -> Iterator[str]:
    if isinstance(node.value, Scalar):
        yield f"{path}: {node.value.text}"
    elif isinstance(node.value, tuple):
        for inner in node.value:
            yield from _in_node(inner, path, free)
    else:
        for key, entry in node.value.items():
            deeper = f"{path}.{key}".lstrip(".")
            yield from (deeper, *_in_node(entry.node, deeper, free), *(_in_node(entry.node, path, free) if path in free else ()))


def _options(question: Instance | Portfolio | MultiScaleQuestion) -> Iterator[str]:
    parts = question.parts if isinstance(question, Portfolio | MultiScaleQuestion) else (question,)
    yield f"objective: {question.objective}"
    if isinstance(question, MultiScaleQuestion):
        yield from (f"form: several {what}" for what, some in (("batches", question.batches), ("networks", question.networks)) if some)
        yield from ("form: several counts",) if len(question.numbers) > 1 else ()
    elif isinstance(question, Portfolio):
        yield from ("form: several workloads", f"form: {question.combine}")
    else:
        yield "form: one"
    for part in parts:
        yield from _of_part(part) if isinstance(part, Instance) else _options(part)


def _of_part(part: Instance) -> Iterator[str]:
    usual = Plan()
    for name, values in (*part.plan_options, *getattr(part.hardware, "options", ())):
        if name in _WORDS:
            yield from (f"choices.{name}: {value}" for value in values)
        elif len(values) > 1 or (values and values[0] != getattr(usual, name, None)):
            yield f"choices.{name}"
        if name == "recompute" and any(str(value).startswith("full-") for value in values):
            yield "choices.recompute_layers"
    yield f"stack: {part.stack and part.stack.name}"
    yield from (f"shape: {link.shape}" for link in getattr(part.hardware, "links", ()))
    yield from (f"shape: {join.shape}" for join in getattr(part.hardware, "joins", ()))
    yield from (f"form: {what}" for what, there in (("sets", part.others), ("host", part.hardware.host)) if there)
    workload = part.workload
    experts = isinstance(workload, Transformer) and workload.experts > 1
    yield f"form: {('experts' if experts else 'dense') if isinstance(workload, Transformer) else type(workload).__name__}"


def rarity(options: Iterable[str], compared: Counter[str]) -> float:
    """How much is to be gained by comparing a question with these options: those that were compared less count more, and enough nothing."""
    return sum(1.0 / (1 + compared[option]) for option in options if compared[option] < NEEDED)


def table_of(columns: Mapping[str, Counter[str]]) -> str:
    """Each option with how many questions had it, how many of these were answered and compared; those too few are marked."""
    rows = [(option, *(columns[column][option] for column in COLUMNS)) for option in ALL]
    lines = [
        f"{option:<52}{drawn:>8,}{answered:>10,}{compared:>10,}{'' if compared >= NEEDED else '  few'}"
        for option, drawn, answered, compared in rows
    ]
    head = f"{'option':<52}{COLUMNS[0]:>8}{COLUMNS[1]:>10}{COLUMNS[2]:>10}"
    return "\n".join([head, *lines, ""])


SUMS = ("questions", "compared", "forged", "files", "faults", "findings")


def totals_of(sums: Mapping[str, int], faults: Mapping[str, int], compared: Counter[str]) -> str:
    """All that a run has done: how often what happened to a process, and the sums."""
    told = {**sums, "faults": sum(faults.values())}
    few = sum(compared[option] < NEEDED for option in ALL)
    return (
        f"faults: {', '.join(f'{count:,} {fault}' for fault, count in sorted(faults.items()))}\n"
        f"sums: {', '.join(f'{told[what]:,} {what}' for what in SUMS)}; "
        f"{few:,} of {len(ALL):,} options were compared in fewer than {NEEDED} questions\n"
    )


def sum_of(logs: Iterable[str]) -> str:
    """The table and the sums of several runs of one tree, from what they printed."""
    columns, sums, faults = {column: Counter[str]() for column in COLUMNS}, Counter[str](), Counter[str]()
    for line in (line for log in logs for line in log.splitlines()):
        head, _, rest = line.partition(": ")
        if head in {"sums", "faults"}:
            counts = findall(r"(\d[\d,]*) ([^,;]+)", rest.partition(";")[0])
            (sums if head == "sums" else faults).update({what: _number(count) for count, what in counts})
        elif (row := fullmatch(r"(.*?) +([\d,]+) +([\d,]+) +([\d,]+)(  few)?", line)) and row[1] in ALL:
            for column, figure in zip(COLUMNS, row.groups()[1:], strict=False):
                columns[column][row[1]] += _number(figure)
    return table_of(columns) + totals_of(sums, faults, columns["compared"])


def _number(figure: str) -> int:
    return int(figure.replace(",", ""))
