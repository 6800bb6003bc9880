"""Form of a stack's table: rows about every plan that the stack supports, and columns of plans to which they refer."""

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import cache
from math import gcd
from re import ASCII, fullmatch
from typing import Any, Final, get_args

import numpy as np

from crossopt.crossflow.arrays import Ints, Mask
from crossopt.crossflow.context_exchange import by_all_to_all
from crossopt.crossflow.plan import END_STAGES, PLACEMENTS, PLAN_FIELDS, Plans, Rule, code
from crossopt.crossflow.recomputation import OF_BOTH, OF_EXPERTS, OF_LATENTS, PARTLY, RECOMPUTE
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.sharding import RESIDENT_LAYERS
from crossopt.crossflow.stages import split_layers
from crossopt.crossflow.workload import Precision, Scaling, Transformer
from crossopt.instances.catalogue.workload import WorkloadSection
from crossopt.instances.codesign.section import SETTINGS, open_options
from crossopt.instances.files.units import quoted


@dataclass(frozen=True, slots=True)
class Machine:
    """Properties of devices that stack rules depend on."""

    domain: int = 0
    """Neighbouring devices joined by a node's links (NVLink); 0 if unlimited."""
    four_bits: bool = False
    """Whether they multiply in 4 bits, as since Blackwell, with 8-bit block scaling in hardware."""


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a row."""

    repository: str
    path: str
    version: str
    """Leading digits of a commit, a release, or the date of a page."""

    def __str__(self) -> str:
        return f"{self.repository} {self.path} ({self.version})"


@dataclass(frozen=True, slots=True)
class Fact:
    """A condition on a quantity of a plan: one of some values, or above a number."""

    quantity: str
    values: tuple[object, ...] = ()
    above: int | None = None

    def holds(self, model: Transformer, plans: Plans, machine: Machine) -> Mask:
        quantity = QUANTITIES[self.quantity]
        column = quantity.column(machine if quantity.of_machine else model, plans)
        if self.above is not None:
            return np.greater(column, self.above)
        first, *others = _numbers(self)
        found: Mask = np.equal(column, first)
        for number in others:
            found = found | np.equal(column, number)
        return found


@cache
def _numbers(fact: Fact) -> tuple[int, ...]:
    """The encoded values of a condition."""
    return tuple(number_of(fact.quantity, value) for value in fact.values)


@dataclass(frozen=True, slots=True)
class Row:
    """A rule: where all of `when` holds, `then` holds."""

    sentence: str
    then: Fact
    source: Source
    when: tuple[Fact, ...] = ()

    def holds(self, model: Transformer, plans: Plans, machine: Machine) -> Mask:
        found = self.then.holds(model, plans, machine)
        for fact in self.when:
            found = found | ~fact.holds(model, plans, machine)
        return np.broadcast_to(found, (len(plans),))

    @property
    def settings(self) -> frozenset[str]:
        """The plan settings that the row mentions."""
        return frozenset(name for fact in (self.then, *self.when) for name in QUANTITIES[fact.quantity].settings)


def _numbered(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


@dataclass(frozen=True, slots=True)
class Edition:
    """A version of the stack from which the table applies, or which differs from it."""

    since: str
    """Version numbers separated by dots."""
    what: str
    """Software whose version it is."""
    changes: Mapping[str, bool | float] = field(default_factory=dict)
    """Facts of the table with another value."""


@dataclass(frozen=True, slots=True)
class Stack:
    """The rules and facts of one stack."""

    name: str
    about: str
    rows: tuple[Row, ...]
    editions: tuple[Edition, ...]
    """Oldest first; the last one is as the table states."""
    also: tuple[tuple[str, Source], ...] = ()
    """Features that other stacks lack and that need no rule."""
    decided: tuple[str, ...] = ()
    """Settings that follow from others with this stack: open if a question does not name them."""
    once_a_node: bool = False
    """Whether one copy of a token is sent per node by default."""
    bends_kept_scores: bool = False
    """Whether attention with capped scores stores all scores by default."""
    logit_peak_bytes: float = 6.0
    """Default peak bytes per logit during the loss."""
    keeps_casts: bool = True
    """Whether 8-bit products store their inputs cast."""
    apart: bool = False
    """Whether queries, keys, values and gates are separate products."""
    hides_publication: bool = False
    """Whether updated parameters are gathered behind the next forward pass if a plan overlaps data-parallel communication."""
    stops_early: bool = False
    """Whether recomputation ends with the last stored value."""
    whole_messages: bool = False
    """Whether each tensor rank sends the whole message between stages if ranks do not split the sequence."""

    def trained(self, workload: Transformer, section: WorkloadSection) -> Transformer:
        """The workload as this stack trains it; explicit settings of the question are kept."""
        if section.expert_dispatch is None:
            workload = replace(workload, once_a_node=self.once_a_node and workload.experts > 1)
        if section.attention is None and workload.attention_cap and self.bends_kept_scores:
            workload = replace(workload, attention="unfused")
        if section.logit_bytes is None and section.logit_peak_bytes is None:
            workload = replace(workload, logit_peak_bytes=self.logit_peak_bytes)
        workload = replace(workload, keeps_casts=self.keeps_casts, whole_messages=self.whole_messages, apart=self.apart)
        return replace(workload, hides_publication=self.hides_publication, stops_early=self.stops_early)

    def at(self, version: str | None) -> "Stack":
        """The table at a version (default: newest); a ValueError if the version is invalid or too old."""
        if version is None:
            return self
        return replace(self, **self.editions[self._edition(version)].changes)  # type: ignore[arg-type]

    def _edition(self, version: str) -> int:
        if not fullmatch(r"\d+(\.\d+)*", version, ASCII):
            raise ValueError(f"{quoted(version)} is no version (numbers with dots, such as {self.editions[-1].since})")
        found = [index for index, edition in enumerate(self.editions) if _numbered(edition.since) <= _numbered(version)]
        if not found:
            raise ValueError(f"of {self.name} no version before {self.editions[0].since} is known ({self.known()})")
        return found[-1]

    def edition_label(self, version: str | None) -> str:
        """Description of the versions from which plans are taken, and whether one was named."""
        index = len(self.editions) - 1 if version is None else self._edition(version)
        taken, later = self.editions[index], self.editions[index + 1 :]
        until = f", before {later[0].since}" if later else " and later"
        return f"plans are those of {taken.what} {taken.since}{until}{'' if version else ', as no version is named'}"

    def known(self) -> str:
        """The known versions in words."""
        return f"{self.editions[-1].what} {', '.join(edition.since for edition in self.editions)} and later"

    def rules(self, model: Transformer, plans: Plans, machine: Machine) -> tuple[Rule, ...]:
        """The rows as rules of plans: sentence, and column that is true where it holds."""
        return tuple((f"{self.name}: {row.sentence}", row.holds(model, plans, machine)) for row in self.rows)

    def about_only(self, settings: frozenset[str]) -> "Stack":
        """The rows about these settings only."""
        return replace(self, rows=tuple(row for row in self.rows if row.settings <= settings))

    def about_any(self, settings: frozenset[str]) -> "Stack":
        """The rows about at least one of these settings."""
        return replace(self, rows=tuple(row for row in self.rows if row.settings & settings))

    def apart_from(self, settings: frozenset[str]) -> "Stack":
        """The rows about none of these settings."""
        return replace(self, rows=tuple(row for row in self.rows if not row.settings & settings))


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number derived from a plan, and the settings that it depends on."""

    settings: tuple[str, ...]
    column: Callable[[Any, Plans], Ints]
    """Computed from network and plans."""
    of_machine: bool = False
    """Computed from machine and plans instead."""


def number_of(quantity: str, value: object) -> int:
    """The number that encodes a value in a quantity's column."""
    if quantity == "precision":
        return get_args(Precision).index(value)
    if quantity == "scaling":
        return get_args(Scaling).index(value)
    if quantity == "mode of recomputation":
        return code("recompute", value)
    return code(quantity, value) if quantity in PLAN_FIELDS else int(value)  # type: ignore[call-overload]


def _field(name: str) -> Quantity:
    return Quantity((name,), lambda _, plans: np.asarray(getattr(plans, name)))


def _flag(name: str, bit: int) -> Quantity:
    """Whether a bit set contains this value."""
    return Quantity((name,), lambda _, plans: (np.asarray(getattr(plans, name)) // bit) % 2)


def _of_model(value: Callable[[Transformer], int]) -> Quantity:
    return Quantity((), lambda model, plans: np.full(len(plans), value(model), np.int64))


def _microbatches(model: Transformer, plans: Plans) -> Ints:
    return np.asarray(model.global_batch // np.maximum(plans.data * plans.microbatch, 1))


def _left_over(model: Transformer, plans: Plans) -> Ints:
    """Number of layers beyond those of equal chunks. If the end stages have layer counts of their own, the stages between set
    the size of chunks. Then only the first and the last chunk may have fewer layers.
    """
    even, equal = (plans.first_stage_layers == 0) & (plans.last_stage_layers == 0), model.stack % (plans.pipeline * plans.interleave)
    if even.all():
        return equal
    split = split_layers(model.stack, *(getattr(plans, name).astype(np.float64) for name in ("pipeline", *END_STAGES)))
    most, fewest = np.maximum(split.first(), split.last()), np.minimum(split.first(), split.last())
    between = np.where(plans.pipeline > 2, split.between, most)
    apart = np.maximum(most - between, 0.0) + np.maximum(between - between // plans.interleave - fewest, 0.0)
    left = split.fuller + between % plans.interleave + apart
    return np.where(even, equal, left.astype(np.int64))


QUANTITIES: Final[dict[str, Quantity]] = {
    **{name: _field(name) for name in PLAN_FIELDS},
    "mode of recomputation": Quantity(("recompute",), lambda _, plans: plans.recompute % PARTLY),
    "data is hidden": _flag("overlap", 1),
    "transfers are hidden": _flag("overlap", 2),
    "weights are away": _flag("offload", 1),
    "activations are away": _flag("offload", 2),
    "optimizer is away": _flag("offload", 4),
    "sharing ranks": Quantity(("data", "context"), lambda _, plans: plans.data * plans.context),
    "width": Quantity(("tensor", "context"), lambda _, plans: plans.tensor * plans.context),
    "tensor x pipeline": Quantity(("tensor", "pipeline"), lambda _, plans: plans.tensor * plans.pipeline),
    "microbatches": Quantity(("data", "microbatch"), _microbatches),
    "microbatches to spare": Quantity(
        ("data", "microbatch", "pipeline"), lambda model, plans: _microbatches(model, plans) - plans.pipeline
    ),
    "layers left over": Quantity(("pipeline", "interleave", *END_STAGES), _left_over),
    "tokens left by pairs of context": Quantity(("context",), lambda model, plans: model.sequence % (2 * plans.context)),
    "tokens left by pairs of tensor x context": Quantity(
        ("tensor", "context"), lambda model, plans: model.sequence % (2 * plans.tensor * plans.context)
    ),
    "key-value heads left over": Quantity(("tensor",), lambda model, plans: model.attention_groups % plans.tensor),
    "heads left by width": Quantity(
        ("tensor", "context"), lambda model, plans: gcd(model.heads, model.attention_groups) % (plans.tensor * plans.context)
    ),
    "sinks or windows": _of_model(lambda model: int(by_all_to_all(model))),
    "bent scores": _of_model(lambda model: int(model.attention_cap)),
    "normed queries and keys": _of_model(lambda model: int(model.qk_norm)),
    "resident layers to spare": _of_model(lambda model: int(model.stack - RESIDENT_LAYERS)),
    "expert left by width": Quantity(("expert", "tensor", "context"), lambda _, plans: plans.expert % (plans.tensor * plans.context)),
    "experts": _of_model(lambda model: model.experts),
    "copies go once a node": _of_model(lambda model: int(model.once_a_node)),
    "prediction layers": _of_model(lambda model: model.prediction_layers),
    "latents": _of_model(lambda model: int(model.latent)),
    "precision": _of_model(lambda model: get_args(Precision).index(model.precision)),
    "scaling": _of_model(lambda model: get_args(Scaling).index(model.scaling)),
    "rows of 8 bits left by 128": Quantity(
        ("microbatch", "context", "tensor"), lambda model, plans: plans.microbatch * model.sequence % (128 * plans.tensor * plans.context)
    ),
    "devices of a node left by tensor": Quantity(("tensor",), lambda machine, plans: machine.domain % plans.tensor, of_machine=True),
    "device scales blocks": Quantity((), lambda machine, plans: np.full(len(plans), int(machine.four_bits)), of_machine=True),
    "gradient bytes": _of_model(lambda model: round(model.gradient_bytes)),
}
"""Quantities that rows refer to."""

NAMED_OPTIONS: Final[dict[str, tuple[object, ...]]] = {
    **{name: open_options(name) for name in SETTINGS if SETTINGS[name][1].keyword is None and name not in END_STAGES},
    "recompute": (*RECOMPUTE, *OF_EXPERTS, *OF_LATENTS, *OF_BOTH),
    "placement": PLACEMENTS,
}
"""Settings with named options or steps; for `expert_tensor`, those open by default."""
