"""A log of requests as workload: arrivals and lengths from CSV or JSON Lines, and the classes of lengths that stand for them in a plan.

Columns are found by the names that public logs use: of the BurstGPT, Azure and Mooncake traces, and of replays of vLLM. A unit is part of
the name (`arrival_ms`), and times of day are read as such. A `timestamp` counts milliseconds in JSON Lines, as Mooncake's, and seconds in
CSV, as BurstGPT's.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from math import ceil, isfinite
from typing import Final

from crossopt.instances.files.tables import table_in
from crossopt.instances.files.units import quoted

FEWEST, MOST, LONGEST = 2, 200_000, 1e9
"""Requests of a log, and seconds from the first to the last: of more, a clock of floating-point numbers loses microseconds."""
_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_ARRIVAL: Final = ("arrival", "arrival_time", "arrived", "queued", "planned", "timestamp", "time")
_INPUT: Final = (
    "input",
    "isl",
    "input_length",
    "input_tokens",
    "input_toks",
    "prompt_tokens",
    "request_tokens",
    "contexttokens",
    "num_prefill_tokens",
)
_OUTPUT: Final = (
    *("output", "osl", "output_length", "output_tokens", "output_toks", "completion_tokens", "response_tokens", "generatedtokens"),
    "num_decode_tokens",
)
_MEASURED: Final = {"ttft": "first", "tpot": "token", "e2e": "whole"}


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """A request of a log, in seconds from the first arrival."""

    arrived: float
    input: int
    output: int
    first: float | None = None
    token: float | None = None
    whole: float | None = None
    """Measured seconds to the first token, per output token, and of the whole request."""


@dataclass(frozen=True, slots=True)
class LengthClass:
    """Requests of similar prompts, by their means."""

    name: str
    input: int
    output: int
    rate: float


def requests_in(text: str, source: str, run: str | None) -> tuple[LoggedRequest, ...]:
    """Requests by their arrival; a ValueError in a sentence."""
    rows = [row for row in _rows(text, source) if run is None or row[1].get("run") == run]
    if run is not None and not rows:
        raise ValueError(f"no request has the run {quoted(run)} (of the column run)")
    if len(rows) > MOST:
        raise ValueError(f"{len(rows):,} requests are more than the {MOST:,} that are read (give a part of the log)")
    if len(rows) < FEWEST:
        raise ValueError(f"the log has {len(rows)} of the {FEWEST} requests or more that make a rate")
    found = sorted((_request(line, row, 1e-3 if _is_lines(text) else 1.0) for line, row in rows), key=lambda request: request.arrived)
    start = found[0].arrived
    if found[-1].arrived <= start:
        raise ValueError("all requests arrive at once, which makes no rate (state arrivals)")
    if (span := found[-1].arrived - start) > LONGEST:
        raise ValueError(f"the requests arrive over {span:.3g} s, more than {LONGEST:.0e} s (check the unit of the arrivals)")
    return tuple(LoggedRequest(item.arrived - start, item.input, item.output, item.first, item.token, item.whole) for item in found)


def _rows(text: str, source: str) -> Iterator[tuple[int, Mapping[str, str]]]:
    if not _is_lines(text):
        for cells in table_in(text, source, (), (), "request").lines:
            if cells.fault:
                raise ValueError(f"line {cells.line}: {cells.fault}")
            yield cells.line, {_column(name): value for name, value in cells.given.items()}
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                row = json.loads(line)
            except RecursionError:
                raise ValueError(f"line {number}: this is nested too deep for a request") from None
            except ValueError as error:
                raise ValueError(f"line {number}: this is no JSON object ({error})") from None
            if not isinstance(row, dict):
                raise ValueError(f"line {number}: this is no JSON object")
            yield number, {_column(name): str(value) for name, value in row.items() if not isinstance(value, list | dict)}


def _is_lines(text: str) -> bool:
    """Whether a log is JSON Lines."""
    return text.lstrip().startswith("{")


def _column(name: str) -> str:
    return name.strip().casefold().replace(" ", "_")


def _request(line: int, row: Mapping[str, str], stamp: float) -> LoggedRequest:
    """A request; `stamp` is the unit of a `timestamp`."""
    measured = {}
    for column, name in _MEASURED.items():
        key = next((own for own in row if re.fullmatch(rf"{column}(_(ns|us|ms|s))?", own)), None)
        measured[name] = None if key is None or not row[key].strip() else _seconds(line, key, row[key])
    return LoggedRequest(
        _arrival(line, row, stamp), _tokens(line, row, _INPUT, "prompt"), _tokens(line, row, _OUTPUT, "answer"), **measured
    )


def _arrival(line: int, row: Mapping[str, str], stamp: float) -> float:
    for name in _ARRIVAL:
        for key in row:
            if key == name or (key.startswith(f"{name}_") and key.rpartition("_")[2] in _UNITS):
                return _seconds(line, key, row[key], stamp if key == "timestamp" else 1.0)
    raise ValueError(f"line {line}: no column has arrivals (one of {', '.join(_ARRIVAL)}, with _ms or another unit if not in seconds)")


def _seconds(line: int, key: str, text: str, unit: float = 1.0) -> float:
    try:
        value = float(text)
    except ValueError:
        try:
            return datetime.fromisoformat(text.strip()[:26]).timestamp()
        except ValueError:
            raise ValueError(f"line {line}: {quoted(text)} is no time (column {key})") from None
    if not isfinite(value) or value < 0.0:
        raise ValueError(f"line {line}: {quoted(text)} is no time (column {key})")
    return value * _UNITS.get(key.rpartition("_")[2], unit)


def _tokens(line: int, row: Mapping[str, str], names: Collection[str], what: str) -> int:
    key = next((name for name in names if name in row), None)
    if key is None:
        raise ValueError(f"line {line}: no column has the tokens of the {what} (one of {', '.join(names)})")
    try:
        value = float(row[key])
    except ValueError:
        value = 0.0
    if not (value >= 1.0 and value.is_integer() and value < 1 << 31):
        raise ValueError(f"line {line}: {quoted(row[key])} is no number of tokens of the {what} (column {key})")
    return int(value)


def classes_of(requests: Collection[LoggedRequest], count: int) -> tuple[LengthClass, ...]:
    """Requests in so many classes of equal number by the length of their prompts, with mean lengths and rates."""
    ordered = sorted(requests, key=lambda one: (one.input, one.output))
    seconds = max(item.arrived for item in ordered) * len(ordered) / (len(ordered) - 1)
    count = min(count, len(ordered))
    edges = [round(index * len(ordered) / count) for index in range(count + 1)]
    found: dict[str, LengthClass] = {}
    for low, high in pairwise(edges):
        own = ordered[low:high]
        name = f"to {own[-1].input} in"
        name = f"{name} ({len(found) + 1})" if name in found else name
        found[name] = LengthClass(
            name, ceil(sum(item.input for item in own) / len(own)), ceil(sum(item.output for item in own) / len(own)), len(own) / seconds
        )
    return tuple(found.values())
