"""Ranges of options: from one number to another by equal steps, in a number of values, or by a factor.

Exact numbers until the caller rounds each once, so that errors cannot add up: every step is the float that the user would have written.
"""

import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from decimal import Context, Decimal
from enum import Enum
from fractions import Fraction
from functools import cache, lru_cache
from itertools import accumulate, islice, repeat, takewhile
from math import lcm
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from crossopt.crossflow.fields import (
    As,
    Bounds,
    Choice,
    Derived,
    Doc,
    Given,
    In,
    Key,
    Later,
    Needed,
    NonZero,
    Prose,
    Short,
    Unit,
    Unset,
    Whole,
)
from crossopt.crossflow.records import dataclass
from crossopt.instances.errors import Fault
from crossopt.instances.files.document import Entry, Node, Scalar, below
from crossopt.instances.files.units import as_float, dimension_named, exact_quantity, format_quantity, nearest, parse_number, quoted

MOST_VALUES: Final = 100_000


def expand(start: Fraction, end: Fraction, ways: Mapping[str, Fraction], integral: bool) -> list[Fraction]:
    """The options of a range; a ValueError with the remedy if there are none or too many."""
    if not ways and integral:
        ways = {"step": Fraction(1)}
    if start > end:
        raise ValueError("the range is empty: 'from' is above 'to' (exchange them)")
    if len(ways) != 1:
        raise ValueError("a range needs exactly one of 'step', 'count' and 'factor'")
    [(way, amount)] = ways.items()
    number = amount if way == "count" else (end - start) / amount + 1 if way == "step" and amount > 0 else 0
    options = list(islice(WAYS[way](start, end, amount), MOST_VALUES + 1)) if number < MOST_VALUES + 1 else []
    if number >= MOST_VALUES + 1 or len(options) > MOST_VALUES:
        raise ValueError(f"the range has more than {MOST_VALUES:,} values (choose a larger '{way}')")
    if integral and any(option.denominator != 1 for option in options):
        raise ValueError(f"this '{way}' gives numbers that are not whole (choose another, or list the values)")
    return options


def _stepped(start: Fraction, end: Fraction, step: Fraction) -> Iterator[Fraction]:
    if step <= 0:
        raise ValueError("'step' must be above zero")
    return _even(start, step, int((end - start) / step) + 1)


def _evenly_by_count(start: Fraction, end: Fraction, count: Fraction) -> Iterator[Fraction]:
    if count == 1 and start != end:
        raise ValueError("a 'count' of 1 cannot hold both ends (give 2 or more, or a single value)")
    return _even(start, (end - start) / (count - 1 or 1), int(count))


def _even(start: Fraction, step: Fraction, number: int) -> Iterator[Fraction]:
    """This many equal steps, in integers over one denominator, since summing fractions is several times slower."""
    unit = lcm(start.denominator, step.denominator)
    first, each = int(start * unit), int(step * unit)
    return (Fraction(first + index * each, unit) for index in range(number))


def _multiplied(start: Fraction, end: Fraction, factor: Fraction) -> Iterator[Fraction]:
    """start * factor^k; powers are kept to 50 digits: exact for sensible factors, and bounded for others."""
    if start <= 0 or factor <= 1:
        raise ValueError("'factor' needs to be above 1, and 'from' above zero")
    digits = Context(prec=50)
    grow, limit = (digits.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)) for ratio in (factor, end / start))
    powers = accumulate(repeat(grow), digits.multiply, initial=Decimal(1))
    return (start * Fraction(power) for power in takewhile(lambda power: power <= limit, powers))


WAYS: Final = {"step": _stepped, "count": _evenly_by_count, "factor": _multiplied}


# What annotations say of a field: its type, unit and bounds, the keys of a dataclass; read by `schema` and `schema_export`.

T = TypeVar("T")
Kind: TypeAlias = Any  # a type as annotations write it
Marks: TypeAlias = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Slot:
    """A key of a mapping, the argument that it becomes, and its type."""

    name: str
    key: str
    kind: Kind
    marks: Marks
    required: bool
    nullable: bool = False
    """Whether null is allowed as the default, though the type has no None."""

    def mark(self, cls: type[T]) -> T | None:
        """The field's mark of this class, outside of a union; None if it has none."""
        return mark_of(unwrap(self.kind, self.marks)[1], cls)

    @property
    def text(self) -> str:
        """The meaning of the field."""
        doc = self.mark(Doc)
        return doc.text if doc else ""

    @property
    def unit(self) -> str:
        """The unit in which files state a plain number."""
        mark = self.mark(In)
        return mark.unit if mark else ""


def slots_of(cls: Kind) -> list[Slot]:
    """The keys of a dataclass; a field such as `from_`, named after a Python keyword, has the key without the underscore."""
    return _slots_of(cls)


@cache
def _slots_of(cls: Kind) -> list[Slot]:
    hints = get_type_hints(cls, include_extras=True)
    slots = (_slot(field, hints[field.name]) for field in fields(cls) if field.init)
    return [slot for slot in slots if slot is not None]


@cache
def is_partial(cls: Kind) -> bool:
    """Whether some field of a record, or of a record inside it, may be derived; an inner `Given` is separate."""
    derived = any(slot.mark(Derived) is not None for slot in slots_of(cls))
    return derived or any(is_partial(inner) for slot in slots_of(cls) for inner in _records_in(slot.kind) if inner is not cls)


def _records_in(kind: Kind) -> Iterator[Kind]:
    """The dataclasses among the members of a type."""
    kind = kind.__origin__ if origin_of(kind) is Annotated else kind
    for member in get_args(kind) if origin_of(kind) in (Union, types.UnionType) else (kind,):
        if is_dataclass(member):
            yield member


@cache
def unknown_of(cls: Kind) -> Mapping[str, object]:
    """Initial values of fields that become known later."""
    hints = get_type_hints(cls, include_extras=True)
    marks = ((field.name, mark_of(unwrap(hints[field.name], ())[1], Later)) for field in fields(cls))
    return {name: later.value for name, later in marks if later is not None}


def _slot(field: Field[Any], hint: Kind) -> Slot | None:
    """The key of a field; None if files do not state it."""
    marks = unwrap(hint, ())[1]
    key = mark_of(marks, Key)
    if (key is not None and key.name is None) or mark_of(marks, Later) is not None:
        return None
    plain = field.default is MISSING and field.default_factory is MISSING
    name = field.name.rstrip("_") if key is None or key.name is None else key.name
    other = mark_of(marks, As)
    inherited = () if other is None else _meaning_of(cast("Kind", other.record), field.name)
    derived, unset, needed = (mark_of(marks, mark) is not None for mark in (Derived, Unset, Needed))
    return Slot(field.name, name, hint, inherited, (plain or needed) and not derived, derived or unset)


@cache
def _meaning_of(cls: Kind, name: str) -> Marks:
    """The marks of another record's field on its values."""
    marks = (mark for _, marks in options_of(get_type_hints(cls, include_extras=True)[name], ()) for mark in marks)
    return tuple(mark for mark in marks if isinstance(mark, Bounds | Doc | NonZero | Prose | Unit | Whole))


def figures_of(record: Any) -> Iterator[tuple[Slot, float]]:  # noqa: ANN401 - any dataclass
    """The measured (not counted) figures that a record states, each with its slot; `Unset` figures at their default are omitted."""
    defaults = {field.name: field.default for field in fields(record)}
    values = ((slot, getattr(record, slot.name)) for slot in slots_of(type(record)))
    figures = ((slot, value) for slot, value in values if isinstance(value, float))
    return ((slot, value) for slot, value in figures if value != defaults[slot.name] or slot.mark(Unset) is None)


def unwrap(kind: Kind, marks: Marks) -> tuple[Kind, Marks]:
    """The bare type and all its marks, the innermost first."""
    if origin_of(kind) is Annotated:
        return kind.__origin__, kind.__metadata__ + marks
    return (get_args(kind)[0] if origin_of(kind) is Given else kind), marks


def origin_of(kind: Kind) -> object:
    """`tuple` for `tuple[int, ...]`, and so on; None for a plain type."""
    return get_origin(kind)


def options_of(kind: Kind, marks: Marks) -> list[tuple[Kind, Marks]]:
    """Members of a union that files may state, without marks and arrays; another type is its own only member."""
    kind, marks = unwrap(kind, marks)
    members = get_args(kind) if origin_of(kind) in (Union, types.UnionType) else (kind,)
    stated = [member for member in members if getattr(origin_of(member), "__name__", "") != "ndarray"]
    integral = mark_of(marks, Whole) is not None
    return [unwrap(int if integral and member is float else member, () if member is type(None) else marks) for member in stated]


def mark_of(marks: Marks, cls: type[T]) -> T | None:
    return next((mark for mark in marks if isinstance(mark, cls)), None)


def text_of(kind: Kind) -> Mapping[str, object]:
    """Names of a Literal or Enum with their values; empty for other types."""
    if origin_of(kind) is Literal:
        return {str(value): value for value in get_args(kind)}
    return {str(member.value): member for member in kind} if isinstance(kind, type) and issubclass(kind, Enum) else {}


def takes_range(kind: Kind, marks: Marks) -> bool:
    """Whether a tuple may be given as a range."""
    return mark_of(marks, Choice) is not None and unwrap(get_args(kind)[0], ())[0] in (int, float)


def range_slots(number: Kind, marks: Marks) -> list[Slot]:
    """The keys of a range; floats stay exact until the options are known, to avoid accumulated rounding."""
    exact = int if number is int else Fraction
    unit = tuple(mark for mark in marks if isinstance(mark, Unit))
    return [
        Slot("start", "from", exact, marks, required=True),
        Slot("end", "to", exact, marks, required=True),
        Slot("step", "step", exact, unit, required=False),
        Slot("count", "count", int, (Bounds(1, MOST_VALUES),), required=False),
        Slot("factor", "factor", Fraction, (), required=False),
    ]


@lru_cache(maxsize=16)
def places_of(cls: Kind) -> Mapping[str, tuple[str, ...]]:
    """Paths at which each key of any section below a dataclass occurs, shortest first."""
    found: dict[str, list[str]] = {}
    for path in sorted(_paths(cls, (), ()), key=len):
        found.setdefault(path[-1], []).append(".".join(path))
    return {key: tuple(paths) for key, paths in found.items()}


def _paths(cls: Kind, above: tuple[str, ...], within: tuple[Kind, ...]) -> Iterator[tuple[str, ...]]:
    """Paths of all keys, except those inside lists and mappings by name."""
    for slot in slots_of(cls):
        yield (*above, slot.key)
        for kind, _ in options_of(slot.kind, slot.marks):
            if is_dataclass(kind) and kind not in within:
                yield from _paths(kind, (*above, slot.key), (*within, cls))


# A tree of `Node`s to frozen dataclasses, directed by their annotations: one table of types serves reading and the JSON schema.
#
# A field may be a `str`, `int`, `float`, `bool`, `Literal`, `Enum`, dataclass, `tuple[T, ...]`, `dict[str, T]`, or a union of those that
# the form of the YAML tells apart (`str | Cluster`, `float | None`). `Annotated` adds `Unit`, `Bounds`, `Choice` and `Doc`. Elements
# of a tuple or dict inherit what is said of the whole.

# --- other names of keys --------------------------------------------------------------------------------------------------------------


_CALLED: Final[Mapping[str, tuple[str, ...]]] = {
    "choices.tensor": ("tp", "tp_size", "tensor_parallel", "tensor_parallel_size", "tensor_model_parallel_size", "tensor_parallel_degree"),
    "choices.pipeline": ("pp", "pp_size", "pipeline_parallel", "pipeline_parallel_size", "pipeline_model_parallel_size", "stages"),
    "choices.data": ("dp", "dp_size", "data_parallel", "data_parallel_size", "data_parallel_degree", "replicas"),
    "choices.context": ("cp", "cp_size", "context_parallel", "context_parallel_size", "context_parallel_degree"),
    "choices.expert": ("ep", "ep_size", "expert_parallel", "expert_parallel_size", "expert_model_parallel_size"),
    "choices.expert_tensor": ("etp", "etp_size", "expert_tensor_parallel_size", "expert_tensor_parallel_degree"),
    "choices.sequence_parallel": ("sp", "sequence_parallelism"),
    "choices.microbatch": ("mbs", "micro_batch", "micro_batch_size", "microbatch_size", "train_micro_batch_size_per_gpu"),
    "choices.interleave": ("vp", "vpp", "virtual_pipeline", "virtual_pipeline_model_parallel_size", "num_model_chunks"),
    "choices.recompute": (
        "recomputation",
        "recompute_granularity",
        "recompute_modules",
        "activation_checkpointing",
        "gradient_checkpointing",
    ),
    "choices.zero": ("zero_stage", "fsdp", "zero_optimization"),
    "choices.shard": ("hsdp", "data_parallel_shard_degree", "sharding_group_size", "hybrid_shard"),
    "choices.schedule": ("pipeline_schedule", "pipeline_parallel_schedule", "pp_schedule"),
    "choices.first_stage_layers": ("decoder_first_pipeline_num_layers", "num_layers_in_first_pipeline_stage"),
    "choices.last_stage_layers": ("decoder_last_pipeline_num_layers", "num_layers_in_last_pipeline_stage"),
    "choices.expert_exchange": ("overlap_moe_expert_parallel_comm", "moe_a2a_overlap"),
    "choices.tensor_exchange": ("tp_comm_overlap", "async_tensor_parallel", "enable_async_tensor_parallel"),
    "choices.hbm_stacks": ("stacks", "num_stacks"),
    "microbatches": ("num_microbatches", "num_micro_batches", "gradient_accumulation_steps", "mbs_in_batch"),
    "workload.global_batch": ("gbs", "batch", "batch_size", "global_batch_size", "train_batch_size"),
    "workload.sequence": ("seq", "seq_len", "seq_length", "seqlen", "sequence_length", "context_length", "max_seq_len", "block_size"),
    "workload.precision": ("dtype", "torch_dtype"),
    "transformer.layers": ("num_layers", "n_layers", "n_layer", "num_hidden_layers"),
    "transformer.hidden": ("hidden_size", "hidden_dim", "d_model", "n_embd", "dim"),
    "transformer.heads": ("num_heads", "n_heads", "n_head", "num_attention_heads"),
    "transformer.kv_heads": ("n_kv_heads", "num_kv_heads", "num_key_value_heads", "num_query_groups"),
    "transformer.head_size": ("head_dim", "kv_channels"),
    "transformer.ffn": ("ffn_hidden_size", "intermediate_size", "ffn_dim", "d_ff"),
    "transformer.vocabulary": ("vocab", "vocab_size", "padded_vocab_size"),
    "transformer.experts": ("num_experts", "n_experts", "num_local_experts"),
    "transformer.experts_per_token": ("top_k", "topk", "moe_router_topk", "num_experts_per_tok"),
    "transformer.expert_ffn": ("moe_intermediate_size", "moe_ffn_hidden_size", "expert_intermediate_size"),
    "transformer.shared_experts": ("n_shared_experts", "num_shared_experts"),
    "transformer.expert_groups": ("n_group", "moe_router_num_groups"),
    "transformer.groups_per_token": ("topk_group", "moe_router_group_topk"),
    "transformer.dense_layers": ("first_k_dense_replace",),
    "transformer.window": ("sliding_window", "window_size", "attention_window"),
    "transformer.query_rank": ("q_lora_rank",),
    "transformer.kv_rank": ("kv_lora_rank",),
    "transformer.rope_size": ("qk_rope_head_dim",),
    "transformer.value_size": ("v_head_dim",),
    "transformer.qk_norm": ("qk_layernorm",),
    "transformer.prediction_layers": ("num_nextn_predict_layers", "mtp_num_layers"),
    "cluster.devices": ("gpus", "num_gpus", "n_gpus", "ngpus", "world_size", "num_devices"),
    "cluster.devices_per_node": ("gpus_per_node", "num_gpus_per_node", "nproc_per_node"),
    "hardware": ("gpu", "device", "accelerator"),
}
"""Names of keys in other tools, by our key and the end of its path if there are several."""
_OURS: Final = {name: ours for ours, names in _CALLED.items() for name in names}
_FEW: Final = 3


def called_here(key: str) -> str:
    """Our name for another tool's key, with the end of its path; empty for others."""
    return _OURS.get(key.casefold().replace("-", "_"), "")


def remedy_for(key: str, section: str, known: Sequence[str], places: Mapping[str, Sequence[str]]) -> tuple[list[str], str]:
    """For an unknown key: a list of at most one known key that is meant, and a message that says what to write. `places` are the
    paths of all keys.
    """
    if section == "budget" and key == "memory":
        return [], "devices have the memory of their hardware; `cluster: {reserved_memory: 20 GiB}` leaves so much of it free"
    if f"{key}s" in known:
        return [f"{key}s"], f"did you mean '{key}s'?"
    ours = called_here(key)
    name = ours.rpartition(".")[2]
    if name in known and (ours.startswith("choices.") or not section.endswith("choices")):  # a choice may have the name of a shape
        return [name], f"{key} is called {name} here"
    if meant := [path for path in places.get(name, ()) if f".{path}".endswith(f".{ours}")] or list(places.get(name, ())):
        return [], f"{key} is called {name} here: {_either(meant)}"
    guess = nearest(key, known)[:1]
    if key in places and not (guess and guess[0].casefold() == key.casefold()):
        return [], f"{key} stands elsewhere: {_either([f'{path} at the top' if '.' not in path else path for path in places[key]])}"
    return guess, f"did you mean '{guess[0]}'?" if guess else f"the known keys are {', '.join(known)}"


def _either(paths: Sequence[str]) -> str:
    return " or ".join(paths) if len(paths) <= _FEW else f"{', '.join(paths[:_FEW])}, ..."


_PHRASES: Final[Mapping[Kind, str]] = {
    str: "a text", int: "a whole number", float: "a number", Fraction: "a number", bool: "true or false", type(None): ""
}  # fmt: skip
_MAPPING: Final = "a mapping"
ZERO: Final = "zero is no figure to work with (give one above 0)"
_LONGEST_NAME: Final = 1_000
MOST: Final = 1_000  # faults of one file that are looked for
_PERCENT: Final = 10
"""Least value of a share that is taken for one in percent."""
LARGEST_WHOLE: Final = 2**63 - 1  # what numpy and the solvers can hold


def read_as(cls: type[T], node: Node, faults: list[Fault]) -> T | None:
    """The dataclass that `node` describes, or None after adding every fault to `faults`."""
    before = len(faults)
    value = None
    with suppress(_EnoughError):
        value = _read(cls, (), node, _Faults(faults, unwrap(cls, ())[0]))
    return cast("T", value) if len(faults) == before else None


@dataclass(frozen=True, slots=True)
class _Faults:
    """The faults found so far, and the root dataclass."""

    faults: list[Fault]
    root: Kind

    def add(self, fault: Fault) -> None:
        """Add a fault; raises _EnoughError when there are too many to report."""
        self.faults.append(fault)
        if len(self.faults) >= MOST:
            raise _EnoughError


class _EnoughError(Exception):
    """Raised when there are too many faults to report more."""


def _takes(kind: Kind, marks: Marks, node: Node) -> bool:
    """Whether this type is written in the form of the node (mapping, list or scalar)."""
    origin = origin_of(kind)
    match node.value:
        case dict():
            return is_dataclass(kind) or origin is dict or (origin is tuple and takes_range(kind, marks))
        case tuple():
            return origin is tuple
        case Scalar():
            if origin is tuple:
                return any(_takes(*option, node) for option in options_of(get_args(kind)[0], ()))
            if is_dataclass(kind):
                return mark_of(marks, Short) is not None
            return origin is not dict and kind is not type(None)


def _entries(node: Node) -> dict[str, Entry]:
    return node.value if isinstance(node.value, dict) else {}


def _wanted(kind: Kind, marks: Marks) -> str:
    """Description of a value of this type, with an example or the options."""
    texts = [_wanted_one(*option) for option in options_of(kind, marks)]
    hints = [hint for _, hint in texts if hint]
    return " or ".join(text for text, _ in texts if text) + " is needed" + (f" ({hints[0]})" if hints else "")


def _wanted_one(kind: Kind, marks: Marks) -> tuple[str, str]:
    unit, origin = mark_of(marks, Unit), origin_of(kind)
    if origin is tuple:
        text, hint = _wanted_one(*unwrap(get_args(kind)[0], marks))
        if text == _MAPPING:
            return "a list of mappings", hint
        return f"{text}, a list or a range" if takes_range(kind, marks) else f"{text} or a list", hint
    if names := text_of(kind):
        return "a word", f"one of {', '.join(names)}"
    if unit:
        dimension = dimension_named(unit.dimension)
        return dimension.phrase, f"for example '{dimension.example}'"
    return _PHRASES.get(kind, _MAPPING), ""


def _read(kind: Kind, marks: Marks, node: Node, faults: _Faults) -> object:
    """The value of `node`; after a fault, which is added to `faults`, it has no meaning. ValueErrors become faults at the node."""
    try:
        if _is_empty(node):
            return _nothing(kind, marks)
        return _read_one(*_meant(kind, marks, node), node, faults)
    except ValueError as error:
        faults.add(Fault(node.line, node.column, node.path, str(error)))
        return None


def _is_empty(node: Node) -> bool:
    return isinstance(node.value, Scalar) and node.value.empty


def _nothing(kind: Kind, marks: Marks) -> object:
    if all(option is not type(None) for option, _ in options_of(kind, marks)):
        raise ValueError(f"there is no value, {_wanted(kind, marks)}")
    return None


def _meant(kind: Kind, marks: Marks, node: Node) -> tuple[Kind, Marks]:
    """The member of a union for the form of the node."""
    fitting = [option for option in options_of(kind, marks) if _takes(*option, node)]
    if not fitting:
        form = "mapping" if isinstance(node.value, dict) else "list" if isinstance(node.value, tuple) else "single value"
        wanted = _wanted(kind, marks)
        remedy = "write one value, without brackets" if form == "list" and not wanted.startswith(_MAPPING) else ""
        if wanted.startswith(_MAPPING):
            records = [option for option, _ in options_of(kind, marks) if is_dataclass(option)]
            needed = [slot.key for record in records for slot in slots_of(record) if slot.required]
            remedy = "write 'key: value' lines" if not node.path else f"with {', '.join(needed)}" if needed else ""
        raise ValueError(f"this is a {form}, {wanted}{f' ({remedy})' if remedy and '(' not in wanted else ''}")
    return max(fitting, key=lambda option: _affinity(option[0], node))


def _affinity(kind: Kind, node: Node) -> int:
    """Rank of a union's member for a scalar: 3 with this exact name, 2 with a similar one, 1 without names, else 0."""
    names = text_of(kind)
    if not names or not isinstance(node.value, Scalar):
        return 1
    return 3 if node.value.text in names else 2 if nearest(node.value.text, names) else 0


def _read_one(kind: Kind, marks: Marks, node: Node, faults: _Faults) -> object:
    match node.value:
        case dict():
            return _read_mapping(kind, marks, node, faults)
        case tuple() as nodes:
            return _read_items(kind, marks, nodes, faults)
        case Scalar() if is_dataclass(kind) and (short := mark_of(marks, Short)):
            inner = replace(node, path=below(node.path, short.key))
            return _read_mapping(kind, marks, replace(node, value={short.key: Entry(node.line, node.column, inner)}), faults)
        case Scalar() as scalar:
            return _read_items(kind, marks, (node,), faults) if origin_of(kind) is tuple else _value(kind, marks, scalar)


def _read_mapping(kind: Kind, marks: Marks, node: Node, faults: _Faults) -> object:
    if is_dataclass(kind):
        values = _read_slots(slots_of(kind), node, faults)
        return None if values is None else _record(cast("Any", kind), values)
    if origin_of(kind) is tuple:
        return _read_range(kind, marks, node, faults)
    return {key: _read(get_args(kind)[1], marks, entry.node, faults) for key, entry in _entries(node).items()}


def _record(cls: Any, values: dict[str, Any]) -> object:  # noqa: ANN401 - a dataclass
    """The record of these values, or a `Given`; its `__post_init__` and `check_given` may raise a ValueError."""
    if not is_partial(cls):
        return cls(**unknown_of(cls), **values)
    if hasattr(cls, "check_given"):
        cls.check_given(values)
    return Given(cls, values)


def _read_slots(slots: Sequence[Slot], node: Node, faults: _Faults) -> dict[str, Any] | None:
    """The arguments of a mapping; None after a fault. A misspelt key is not also reported as missing."""
    entries = _entries(node)
    before, known, meant = len(faults.faults), [slot.key for slot in slots], set[str]()
    for key, entry in entries.items():
        if key not in known:
            guess, remedy = remedy_for(key, node.path, known, places_of(faults.root))
            meant.update(guess)
            faults.add(Fault(entry.line, entry.column, entry.node.path, f"unknown key ({remedy})"))
    for slot in slots:
        if slot.required and slot.key not in entries and slot.key not in meant:
            message = f"this key is missing, {_wanted(slot.kind, slot.marks)}"
            faults.add(Fault(node.line, node.column, below(node.path, slot.key), message))
    renamed = {called_here(key).rpartition(".")[2]: entry for key, entry in entries.items() if key not in known}
    unset = {slot.key for slot in slots if slot.nullable and slot.key in entries and _is_empty(entries[slot.key].node)}
    present = {key: entry for key, entry in (renamed | entries).items() if key not in unset}
    given = [(slot, present) for slot in slots if slot.key in present]  # what is called otherwise has its faults too
    values = {slot.name: _read(slot.kind, slot.marks, entries[slot.key].node, faults) for slot, entries in given}
    return values if len(faults.faults) == before else None


def _read_items(kind: Kind, marks: Marks, nodes: Sequence[Node], faults: _Faults) -> tuple[Any, ...]:
    before, kinds = len(faults.faults), get_args(kind)
    if Ellipsis not in kinds and len(nodes) != len(kinds):
        raise ValueError(f"a list of {len(kinds)} values is needed, this has {len(nodes)}")
    values = [_read(kinds[0], marks, node, faults) for node in nodes]
    if len(faults.faults) > before or not mark_of(marks, Choice):
        return tuple(values)
    if not values:
        raise ValueError("an empty list leaves nothing to choose (give at least one value)")
    return _distinct(values)


def _distinct(values: Iterable[Any]) -> tuple[Any, ...]:
    """The values without duplicates; numbers in ascending order."""
    distinct = dict.fromkeys(values)
    return tuple(sorted(distinct) if all(isinstance(value, int | float) for value in distinct) else distinct)


def _value(kind: Kind, marks: Marks, scalar: Scalar) -> object:
    """The value of a scalar; a ValueError if it does not have this type."""
    if names := text_of(kind):
        return _option(names, scalar.text)
    if kind is str:
        return scalar.text if mark_of(marks, Prose) else _name(scalar.text)
    if scalar.quoted and not mark_of(marks, Unit) and _is_plain(kind, scalar.text):
        raise ValueError(f"{quoted(scalar.text)} is in quotes, {_wanted(kind, marks)} (remove the quotes)")
    if kind is bool:
        return _option({"true": True, "false": False}, scalar.text)
    if kind in (int, float, Fraction):
        return _number(kind, marks, scalar.text)
    raise TypeError(f"fields of type {kind} cannot be read (see the module's list of types)")


def _is_plain(kind: Kind, text: str) -> bool:
    """Whether a text would be a value of this type without quotes."""
    try:
        return text in ("true", "false") if kind is bool else parse_number(text) is not None
    except ValueError:
        return False


def _name(text: str) -> str:
    """A text that is a name."""
    if not set(text).isdisjoint("\t\n\r") or len(text) > _LONGEST_NAME:
        raise ValueError(f"{quoted(text)} is no name (write one line of at most {_LONGEST_NAME:,} characters)")
    return text


def _option(names: Mapping[str, object], text: str) -> object:
    if text not in names:
        guess = [name for name in nearest(text, names) if text not in name.split("_")[1:]]  # none who writes `tensor` means `expert_tensor`
        raise ValueError(f"{quoted(text)} is unknown " + (f"(did you mean '{guess[0]}'?)" if guess else f"(one of {', '.join(names)})"))
    return names[text]


def _number(kind: Kind, marks: Marks, text: str) -> int | float | Fraction:
    unit, bounds = mark_of(marks, Unit), mark_of(marks, Bounds) or Bounds()
    exact = exact_quantity(text, unit.dimension) * unit.times if unit else parse_number(text)
    value = int(exact) if kind is int else as_float(exact, text)
    if kind is int and exact.denominator != 1:
        raise ValueError(f"{quoted(text)} is not a whole number")
    if kind is int and abs(value) > LARGEST_WHOLE:
        raise ValueError(f"{quoted(text)} is too large (at most {LARGEST_WHOLE})")
    if value == 0 and mark_of(marks, NonZero) is not None:
        raise ValueError(ZERO)
    if bounds.low is not None and value < bounds.low:
        raise ValueError(f"{quoted(text)} is too small (at least {_shown(bounds.low, unit)})")
    if bounds.high is not None and (value > bounds.high or (bounds.below and value == bounds.high)):
        share = unit is not None and unit.dimension == "ratio" and bounds.high == 1 and value >= _PERCENT and "%" not in text
        percent = f"; write '{text} %' for a share" if share else ""
        raise ValueError(f"{quoted(text)} is too large ({'below' if bounds.below else 'at most'} {_shown(bounds.high, unit)}{percent})")
    return exact if kind is Fraction else value


def _shown(limit: float, unit: Unit | None) -> str:
    return format_quantity(limit / unit.times, unit.dimension) if unit else f"{limit:.15g}"


def _read_range(kind: Kind, marks: Marks, node: Node, faults: _Faults) -> tuple[Any, ...] | None:
    number, marks = unwrap(get_args(kind)[0], marks)
    values = _read_slots(range_slots(number, marks), node, faults)
    if values is None:
        return None
    ways = {way: Fraction(values[way]) for way in WAYS if way in values}
    options = expand(Fraction(values["start"]), Fraction(values["end"]), ways, integral=number is int)
    return _distinct(int(option) if number is int else float(option) for option in options)
