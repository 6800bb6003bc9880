"""Lists of embedding tables: from JSON or CSV files in the forms of several tools, or drawn from a seed with measured marginals."""

from collections.abc import Iterator, Mapping, Sequence
from csv import DictReader
from dataclasses import replace
from io import StringIO
from math import exp, isfinite, log10
from random import Random
from typing import Any, Final, TypeVar, get_args

from crossopt.crossflow.embeddings import Kernel, Sharding
from crossopt.crossflow.records import dataclass
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.careful import reading_as
from crossopt.instances.files.graphs import read_json
from crossopt.instances.files.units import nearest, quoted

T = TypeVar("T")
MOST_TABLES, MOST_ROWS, MOST_COLUMNS, MOST_LOOKUPS = 20_000, 10**12, 1 << 20, 1e6
BYTES: Final[Mapping[str, float]] = {"fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1, "int4": 0.5, "int2": 0.25}
BINS: Final = 17
"""Shares of the lookups by how often a row is used in a batch: once, up to 2, 4, 8 ... 32,768 times, and more often."""
_SHOWN: Final = 12
"""Faults of a file that are reported."""
_ROUNDED: Final = 1e-3
"""By which printed shares may miss 1."""


@dataclass(frozen=True, slots=True)
class Table:
    """An embedding table as a file or a question states it."""

    name: str
    rows: int
    dimension: int
    pooling: float = 1.0
    fraction: float = 1.0
    """Share of the samples that have the feature, or features a sample."""
    dtype: str = "fp32"
    weighted: bool = False
    pooled: bool = True
    reuse: tuple[float, ...] = ()
    sharding: tuple[Sharding, ...] = ()
    """Those that are allowed; empty for all of the question."""
    kernel: tuple[Kernel, ...] = ()

    @property
    def element(self) -> float:
        """Bytes of an element."""
        return BYTES[self.dtype]

    @property
    def type(self) -> tuple[object, ...]:
        """What its costs depend on: tables of one type are alike."""
        shape = self.rows, self.dimension, self.pooling, self.fraction, self.dtype, self.weighted, self.pooled
        return *shape, self.reuse, self.sharding, self.kernel


@dataclass(frozen=True, slots=True)
class TableList:
    """Tables of a file, with the devices and the batch that it states."""

    tables: tuple[Table, ...]
    head: Mapping[str, Any]


_NAMES: Final = {
    "name": "name", "table": "name", "index": "name", "table_name": "name",
    "rows": "rows", "row": "rows", "num_embeddings": "rows", "hash_size": "rows",
    "dimension": "dimension", "dim": "dimension", "embedding_dim": "dimension",
    "pooling": "pooling", "pooling_factor": "pooling", "input_length": "pooling",
    "batch_fraction": "fraction", "fraction": "fraction", "num_poolings": "fraction", "poolings": "fraction",
    "dtype": "dtype", "data_type": "dtype",
    "weighted": "weighted", "is_weighted": "weighted",
    "pooled": "pooled", "is_pooled": "pooled",
    "reuse": "reuse", "feature_names": "features", "features": "features",
    "pooling_factors": "poolings of features", "num_poolings of features": "fractions of features",
    "sharding_types": "sharding", "sharding": "sharding", "compute_kernels": "kernel", "kernel": "kernel",
}  # fmt: skip
"""Keys of TorchRec's configurations, of the data sets of DLRM, and of our own files."""
_IGNORED: Final = frozenset((
    "init_fn", "weight_init_max", "weight_init_min", "pruning_indices_remapping", "num_embeddings_post_pruning", "need_pos",
    "stochastic_rounding", "bounds_check_mode", "enable_embedding_update", "stash_weights",
))  # fmt: skip
"""Keys of TorchRec's configurations and constraints that change neither time nor memory."""
_ELSEWHERE: Final = {
    "min_partition": "say `choices: {narrowest: N}`",
    "cache_params": "say `choices: {cache: [share]}`",
    "output_dtype": "say `messages`, in bytes of an element",
    "batch_sizes": "say `batch`, of a device",
    "use_virtual_table": "virtual tables are not modelled",
    "total_num_buckets": "virtual tables are not modelled",
    "virtual_table_eviction_policy": "virtual tables are not modelled",
    "input_dim": "it is not known here",
    "enforce_hbm": "say `kernel: [fused]`",
    "device_group": "devices are alike here",
    "key_value_params": "say `kernel: [key_value]`",
}
"""Keys that must be unset, and what to say in their place."""
_SHARDINGS: Final[Mapping[str, Sharding]] = {
    "table_wise": "table", "row_wise": "row", "column_wise": "column", "table_row_wise": "table-row", "table_column_wise": "table-column",
    "grid_shard": "grid", "data_parallel": "data",
}  # fmt: skip
_KERNELS: Final[Mapping[str, Kernel]] = {name: name for name in get_args(Kernel)}
_COLUMNS = "name,rows,dimension are columns or keys of each table"
_FORM = "a list of tables, or a mapping with `tables`"


def tables_in(text: str, source: str) -> TableList:
    """The tables in the text of a JSON or CSV file; an InstanceError with every fault."""
    stripped = text.lstrip("\ufeff \t\r\n")
    with reading_as("", stripped, "a list of tables", _COLUMNS):
        return _tables_in_json(stripped, source) if stripped[:1] in {"{", "["} else _tables_in_csv(stripped, source)


def _tables_in_csv(text: str, source: str) -> TableList:
    if (lines := text.rstrip().count("\n")) > MOST_TABLES:
        raise _refused(source, _too_many(lines))
    reader = DictReader(StringIO(text))
    names = reader.fieldnames or ()
    if len(names) == 1 and ";" in names[0]:
        raise _refused(source, "columns are separated by semicolons (separate them by commas)")
    if not {"rows", "dimension"} & {_NAMES.get(name.strip().lower()) for name in names}:
        raise _refused(source, f"this is no list of tables ({_COLUMNS})")
    return _listed([dict(row) for row in reader], {}, source)


def _tables_in_json(text: str, source: str) -> TableList:
    data = read_json(text, source)
    head = data if isinstance(data, dict) else {}
    rows = head.get("tables") if head else data
    if isinstance(rows, Mapping):
        rows = [{"name": name, **row} if isinstance(row, Mapping) else row for name, row in rows.items()]
    if not isinstance(rows, list):
        raise _refused(source, f"{_FORM} is needed ({_COLUMNS})")
    columns = head.get("columns")
    if isinstance(columns, list):
        rows = [dict(zip(columns, row, strict=False)) if isinstance(row, list) and len(row) == len(columns) else row for row in rows]
    constraints = head.get("constraints")
    if isinstance(constraints, Mapping):
        rows = [_constrained(row, constraints) if isinstance(row, Mapping) else row for row in rows]
        own = {str(row.get("name")) for row in rows if isinstance(row, Mapping)}
        if strange := [name for name in constraints if name not in own]:
            raise _refused(source, f"constraints: there is no table {quoted(str(strange[0])[:40])}")
    return _listed(rows, {key: value for key, value in head.items() if key not in {"tables", "columns", "constraints"}}, source)


def _constrained(row: Mapping[Any, Any], constraints: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """A table with its constraints of TorchRec's planner beside its configuration."""
    own = constraints.get(row.get("name"))
    return {**row, **{key: value for key, value in own.items() if value is not None}} if isinstance(own, Mapping) else row


def _refused(source: str, message: str) -> InstanceError:
    return InstanceError(source, [Fault(1, 1, "", message)])


def _too_many(count: int) -> str:
    return f"{count:,} tables are more than the {MOST_TABLES:,} that are answered (merge tables that are alike)"


def _listed(rows: Sequence[Any], head: Mapping[str, Any], source: str) -> TableList:
    if len(rows) > MOST_TABLES:
        raise _refused(source, _too_many(len(rows)))
    tables, faults = list[Table](), list[Fault]()
    for number, row in enumerate(rows):
        said = list[str]()
        table = _table_of(row, number, said) if isinstance(row, Mapping) else None
        said += [] if isinstance(row, Mapping) else ["it has not one cell for each column"]
        faults += [Fault(1, 1, f"tables[{number}]", message) for message in said]
        if len(faults) > _SHOWN:
            break
        if table is not None and not said:
            tables.append(table)
    faults += [Fault(1, 1, "tables", message) for message in faults_of_names([table.name for table in tables])]
    if not rows:
        faults.append(Fault(1, 1, "tables", f"there are no tables ({_COLUMNS})"))
    if faults:
        raise InstanceError(source, faults[:_SHOWN])
    return TableList(tuple(tables), head)


def faults_of_names(names: Sequence[str]) -> Iterator[str]:
    """A sentence for names that are given twice."""
    seen, twice = set[str](), dict[str, None]()
    for name in names:
        twice |= {name: None} if name in seen else {}
        seen.add(name)
    if twice:
        more = f" and {len(twice) - 1} more" if len(twice) > 1 else ""
        yield f"two tables are called {quoted(next(iter(twice)))}{more} (each needs a name of its own)"


def _table_of(row: Mapping[Any, Any], number: int, said: list[str]) -> Table | None:
    """The table of a mapping, with faults in `said`; `pooling: SUM` of TorchRec's configurations says that a table is pooled."""
    given = dict[str, Any]()
    bins = {key: value for key, value in row.items() if isinstance(key, str) and key.startswith("bin_")}
    pooled, unknown = {"sum": True, "mean": True, "none": False}, list[str]()
    for key, value in row.items():
        if key == "pooling" and (mode := str(value).lower().rpartition(".")[2]) in pooled:
            given["pooled"] = pooled[mode]
            continue
        name = "num_poolings of features" if key == "num_poolings" and isinstance(value, list) else str(key).strip().lower()
        known = _NAMES.get(name)
        if key in bins or key in _IGNORED or value in (None, "") or (key in _ELSEWHERE and not value):
            continue
        if key is None:
            said.append("it has more cells than the file has columns")
            continue
        if key in _ELSEWHERE:
            said.append(f"{key}: this is not taken over ({_ELSEWHERE[key]})")
            continue
        if known is None:
            unknown.append(str(key))
        else:
            given[known] = value
    if "need_pos" in row and "pooling" not in row:  # an EmbeddingConfig, whose rows are kept apart
        given.setdefault("pooled", False)
    if unknown:
        close = nearest(unknown[0], _NAMES)
        more = f", nor {len(unknown) - 1} more" if len(unknown) > 1 else f" (did you mean {close[0]}?)" if close else ""
        said.append(f"there is no key {quoted(unknown[0])} of a table{more}")
    if bins:
        given["reuse"] = [bins.get(f"bin_{index}", 0.0) for index in range(len(bins))]
    said += [f"{key} is missing" for key in ("rows", "dimension") if key not in given]
    if said:
        return None
    features = given.get("features")
    count = len(features) if isinstance(features, list) else 1
    if "poolings of features" in given or "fractions of features" in given:
        given["pooling"], given["fraction"] = _of_features(given, count, said)
        count = 1
    table = Table(
        name=str(given.get("name", f"t{number}")),
        rows=_whole(given, "rows", said),
        dimension=_whole(given, "dimension", said),
        pooling=_number(given, "pooling", 1.0, said),
        fraction=_number(given, "fraction", 1.0, said) * count,
        dtype=str(given.get("dtype", "fp32")).lower().rpartition(".")[2],
        weighted=_flag(given, "weighted", default=False, said=said),
        pooled=_flag(given, "pooled", default=True, said=said),
        reuse=_shares(given.get("reuse", []), said),
        sharding=_named(given, "sharding", {**_SHARDINGS, **{name: name for name in _SHARDINGS.values()}}, said),
        kernel=_named(given, "kernel", _KERNELS, said),
    )
    said += faults_of_table(table) if not said else []
    return table


def _of_features(given: Mapping[str, Any], count: int, said: list[str]) -> tuple[float, float]:
    """Lookups of a sample that has a feature, and features a sample, of several features with poolings of their own."""
    poolings = _shares(given.get("poolings of features", [given.get("pooling", 1.0)] * count), said, "pooling_factors")
    fractions = _shares(given.get("fractions of features", [1.0] * len(poolings)), said, "num_poolings")
    if not poolings or len(poolings) != len(fractions):
        said.append(f"{len(poolings)} pooling_factors and {len(fractions)} num_poolings are given (one of each for every feature)")
        return 1.0, 1.0
    if len(set(poolings)) > 1 and min(poolings) < 1.0:
        said.append("pooling_factors: features below 1 beside others are not merged (give each feature a table of its own)")
    total = sum(fractions)
    return sum(own * share for own, share in zip(poolings, fractions, strict=True)) / total if total else 0.0, total


def _named(given: Mapping[str, Any], key: str, known: Mapping[str, T], said: list[str]) -> tuple[T, ...]:
    """Names of a list, in our terms."""
    names = given.get(key, [])
    listed = [name for name in names.replace(",", " ").split() if name] if isinstance(names, str) else names
    if not isinstance(listed, list) or any(str(name).lower() not in known for name in listed):
        strange = next((name for name in listed if str(name).lower() not in known), "") if isinstance(listed, list) else listed
        said.append(f"{key}: {quoted(str(strange)[:40])} is none of {', '.join(dict.fromkeys(map(str, known)))}")
        return ()
    return tuple(dict.fromkeys(known[str(name).lower()] for name in listed))


def _whole(given: Mapping[str, Any], key: str, said: list[str]) -> int:
    value = _number(given, key, 0.0, said)
    if value % 1.0:
        said.append(f"{key}: {value:g} is no whole number")
    return int(value)


def _number(given: Mapping[str, Any], key: str, default: float, said: list[str]) -> float:
    value = given.get(key, default)
    try:
        found = float(value) if not isinstance(value, bool) else float("nan")
    except (TypeError, ValueError, OverflowError):
        found = float("nan")
    if not isfinite(found) or found < 0.0:
        said.append(f"{key}: {quoted(str(value)[:40])} is no number from 0 on")
        return 1.0
    return found


def _flag(given: Mapping[str, Any], key: str, *, default: bool, said: list[str]) -> bool:
    """Truth, or 0 and 1."""
    text = str(given.get(key, default)).strip().lower()
    if text not in {"0", "1", "true", "false", "0.0", "1.0"}:
        said.append(f"{key}: {quoted(text[:40])} is neither true nor false")
    return text in {"1", "true", "1.0"}


def _shares(value: object, said: list[str], key: str = "reuse") -> tuple[float, ...]:
    if not isinstance(value, list):
        said.append(f"{key}: a list of numbers is needed")
        return ()
    return tuple(_number({key: share}, key, 0.0, said) for share in value)


def faults_of_table(table: Table) -> Iterator[str]:
    """Sentences about figures that no table has."""
    for key, most in (("rows", MOST_ROWS), ("dimension", MOST_COLUMNS)):
        if not 1 <= getattr(table, key) <= most:
            yield f"{key}: {getattr(table, key):,} is not from 1 to {most:,}"
    for key in ("pooling", "fraction"):
        value = getattr(table, key)
        if not isfinite(value) or value > MOST_LOOKUPS or value < 0.0:
            yield f"{key}: {value:g} is not from 0 to {MOST_LOOKUPS:,.0f}"
        elif not value:
            what = "no sample looks a row up" if key == "pooling" else "no sample has its feature"
            yield f"{key}: it is 0, so that {what} (leave the table out)"
    if table.dtype not in BYTES:
        yield f"dtype: there is no {quoted(table.dtype[:40])} (one of {', '.join(BYTES)})"
    if table.reuse and len(table.reuse) != BINS:
        yield f"reuse: {len(table.reuse)} shares are given, {BINS} are needed (rows used once, up to 2, 4 ... 32,768 times, and more)"
    elif table.reuse and not abs(sum(table.reuse) - 1.0) <= _ROUNDED:
        yield f"reuse: its shares add up to {sum(table.reuse):.6g}, not to 1 within {_ROUNDED:g}"


# How a cache does: shares of the lookups by the uses of a row, and the rows that they mean.


def cache_statistics(table: Table, lookups: float, cached: float) -> tuple[float, float]:
    """Share of the different rows of a step that a cache of the most used ones misses, and their number.

    A row of the bin up to 2^k is taken to be used 3 * 2^(k-2) times, the middle of the bin; no more rows are used than there are.
    """
    uses = [1.0, *(0.75 * 2.0**index for index in range(1, BINS))]
    rows = [lookups * share / use for share, use in zip(table.reuse, uses, strict=True)]
    unique = min(sum(rows), float(table.rows))
    return max(1.0 - cached * table.rows / unique, 0.0) if unique else 0.0, unique


# Drawn tables: marginals of 856 tables that dlrm_datasets publishes (embedding_bag/2021), and a mean of 15.81 lookups.

_MARGINAL: Final = (0.069, 0.044, 0.068, 0.101, 0.121, 0.104, 0.073, 0.058, 0.052, 0.05, 0.049, 0.048, 0.048, 0.043, 0.031, 0.023, 0.019)
_MEAN: Final = 15.81
_DIMENSIONS: Final = {16: 10, 32: 20, 64: 35, 96: 8, 128: 18, 192: 4, 256: 5}


def random_tables(count: int, seed: int) -> tuple[Table, ...]:
    """Tables like those of a large recommendation model: rows log-normal, poolings scaled to the measured mean, reuse by size."""
    random = Random(seed)
    found = [_drawn(random, index) for index in range(count)]
    scaled = [table for table in found if table.pooling > 1.0 and table.pooled]
    fixed = sum(table.pooling * table.fraction for table in found) - sum(table.pooling * table.fraction for table in scaled)
    lookups = sum(table.pooling * table.fraction for table in scaled)
    factor = max((_MEAN * count - fixed) / lookups, 0.01) if scaled else 1.0

    def pooling(table: Table) -> float:
        return max(round(table.pooling * factor if table.pooling > 1.0 and table.pooled else table.pooling, 2), 0.01)

    return tuple(replace(table, pooling=pooling(table)) for table in found)


def _drawn(random: Random, place: int) -> Table:
    rows = int(min(4e7, max(8, 10 ** random.gauss(5.5, 0.9))))
    dimension = random.choices(list(_DIMENSIONS), list(_DIMENSIONS.values()))[0]
    pooling = 1.0 if random.random() < 0.3 else min(60.0, max(2.0, 10 ** random.gauss(1.2, 0.3)))
    fraction = 1.0 if random.random() < 0.6 else round(random.uniform(0.05, 1), 3)
    dtype = "fp32" if random.random() < 0.7 else "fp16"
    weighted, pooled = random.random() < 0.15, random.random() < 0.95
    while not pooled and pooling >= 8:
        pooling /= 2
    tilt = random.gauss(0, 0.9) + 0.5 * log10(1e6 / rows)
    weights = [share * exp(tilt * (bin_ - 8) / 8 + random.gauss(0, 0.3)) for bin_, share in enumerate(_MARGINAL)]
    shares = [round(weight / sum(weights), 4) for weight in weights]
    top = shares.index(max(shares))
    shares[top] = round(1 - sum(shares[:top]) - sum(shares[top + 1 :]), 4)
    return Table(f"t{place:04d}", rows, dimension, pooling, fraction, dtype, weighted, pooled, tuple(shares))
