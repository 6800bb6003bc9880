"""Which options of joint designs the drawn questions have, how many of these were answered, and how many answers compared."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from crossopt.crossflow.plan import OFFLOAD, OVERLAP, SCHEDULES, TENSOR_EXCHANGES, Plan
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.instance import Instance, MultiScaleQuestion, Portfolio
from crossopt.instances.codesign.section import ChoicesSection
from crossopt.instances.codesign.stacks.rules import STACKS
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
    "one",
    "several workloads",
    "worst_regret",
    "several counts",
    "several batches",
    "sets",
    "host",
    "dense",
    "experts",
    "Lstm",
    "Gemm",
)
_NO_CHOICES = frozenset(("rest", "only"))
ALL = (
    *(f"choices.{name.name}" for name in fields(ChoicesSection) if name.name not in {*_NO_CHOICES, *_WORDS}),
    *(f"choices.{name}: {word}" for name, words in _WORDS.items() for word in words),
    *(f"objective: {name}" for name in (*OBJECTIVES, "devices")),
    *(f"stack: {name}" for name in (*STACKS, None)),
    *(f"shape: {shape}" for shape in _SHAPES),
    *(f"form: {form}" for form in _FORMS),
)
"""What joint designs may ask; of a setting with words each of them, of another that it is named with another option than the usual."""
COLUMNS = ("drawn", "answered", "compared")


def options_of(question: Any) -> frozenset[str]:  # noqa: ANN401 - of any kind
    """The options that a question has; none where it is no joint design."""
    return (
        frozenset(_options(question)) & frozenset(ALL) if isinstance(question, Instance | Portfolio | MultiScaleQuestion) else frozenset()
    )


def _options(question: Instance | Portfolio | MultiScaleQuestion) -> Iterator[str]:
    parts = question.parts if isinstance(question, Portfolio | MultiScaleQuestion) else (question,)
    yield f"objective: {question.objective}"
    if isinstance(question, MultiScaleQuestion):
        yield from (f"form: several {'batches' if place.batch else 'counts'}" for place in question.places)
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


def table_of(counts: Counter[tuple[str, str]]) -> str:
    """Each option with how many questions had it, how many of these were answered and compared; those too few are marked."""
    rows = [(option, *(counts[option, column] for column in COLUMNS)) for option in ALL]
    lines = [
        f"{option:<36}{drawn:>8,}{answered:>10,}{compared:>10,}{'' if compared >= NEEDED else '  few'}"
        for option, drawn, answered, compared in rows
    ]
    few = sum(row[-1] < NEEDED for row in rows)
    head = f"{'option of joint designs':<36}{COLUMNS[0]:>8}{COLUMNS[1]:>10}{COLUMNS[2]:>10}"
    return "\n".join([head, *lines, f"{few} of {len(rows)} options were compared in fewer than {NEEDED} questions", ""])
