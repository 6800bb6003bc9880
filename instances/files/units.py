"""Quantities as people write them (`815 mm^2`, `900 GB/s`, `400 Gb/s`, `0.08 USD/kWh`) to SI numbers and back.

A quantity is a number, at most one unit, and nothing else. Which unit belongs to which dimension is the table `DIMENSIONS`.
`GB/s` are bytes and `Gb/s` bits; `GB` is a power of ten and `GiB` a power of two. The arithmetic is exact until the one rounding
to a float, so that `parse_quantity("815 mm^2", "area") == 815e-6`.
"""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from difflib import SequenceMatcher
from fractions import Fraction
from math import inf, nextafter
from sys import float_info
from typing import Final

from crossopt.crossflow.records import dataclass

NUMBER: Final = r"[+-]?(?:[0-9]+(?:_[0-9]+)*\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
LONGEST: Final = 100  # characters of a number with its unit; also keeps the exact arithmetic small

_NUMBER: Final = re.compile(NUMBER)
_ENDING: Final = re.compile(r"([^\W\d]+)(\d\d+)")
_OTHER_LETTER: Final = 0.7
"""Likeness that a known word needs to be suggested for one that begins with another letter."""
_GROUPED: Final = re.compile(r"[0-9]{1,3}(,[0-9]{3})+")
_POWERS: Final = {
    "k": 1, "ki": 1, "thousand": 1, "m": 2, "mi": 2, "mio": 2, "million": 2,
    "b": 3, "g": 3, "bn": 3, "billion": 3,
    "t": 4, "ti": 4, "tn": 4, "trillion": 4,
}  # fmt: skip
"""Meaning of a suffix letter of a count, as a power of 1,000 or 1,024."""
_LONG_POWER: Final = 4
"""Power of a thousand from which on a number is written with an exponent."""
_LARGEST_COUNT: Final = 10**18
_PREFIX: Final = {
    "f": Fraction(1, 10**15), "p": Fraction(1, 10**12), "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 10**3),
    "c": Fraction(1, 100), "": Fraction(1), "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12),
    "P": Fraction(10**15), "E": Fraction(10**18), "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30),
    "Ti": Fraction(2**40), "Pi": Fraction(2**50),
}  # fmt: skip
_SPELLINGS: Final = (
    ("²", "^2"), ("m2", "m^2"), ("µ", "u"), ("μ", "u"), ("$", "USD"),
    ("bit/s", "b/s"), ("bps", "b/s"), ("Bps", "B/s"), ("FLOPS", "FLOP/s"), ("days", "d"), ("years", "year"),
)  # fmt: skip
_WORDS_OF_TIME: Final = {"sec": "s", "second": "s", "minute": "min", "hour": "h", "hr": "h", "day": "d"}


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension: its phrase, its units with their size in SI, and the display units, smallest first."""

    phrase: str
    example: str
    units: Mapping[str, Fraction]
    shown: tuple[str, ...]


def _units(prefixes: str, unit: str, size: Fraction | int = 1) -> dict[str, Fraction]:
    """Each prefix of `prefixes` before `unit`; `-` stands for no prefix."""
    return {mark + unit: _PREFIX[mark] * size for mark in prefixes.replace("-", "").split(" ")}


_AREAS: Final = {f"{mark}m^2": _PREFIX[mark] ** 2 for mark in ("n", "u", "m", "c", "")}
_BYTES: Final = _units("- k M G T P Ki Mi Gi Ti Pi", "B")
_BITS: Final = _units("- k M G T P", "b")
_HOUR: Final = Fraction(3600)
_CLOCK: Final = {"min": Fraction(60), "h": _HOUR, "d": 24 * _HOUR, "year": Fraction(36525, 100) * 24 * _HOUR}

DIMENSIONS: Final[Mapping[str, Dimension]] = {
    "area": Dimension("an area", "815 mm^2", _AREAS, ("um^2", "mm^2")),
    "power": Dimension("a power", "400 W", _units("p n u m - k M G", "W"), ("uW", "mW", "W", "kW", "MW")),
    "bytes": Dimension("a size in bytes", "80 GiB", _BYTES, ("B", "KiB", "MiB", "GiB", "TiB", "PiB")),
    "bits": Dimension("a number of bits", "8 Gb", _BITS | _units("- k M G T P", "bit"), ("b", "kb", "Mb", "Gb", "Tb")),
    "bandwidth": Dimension(
        "a bandwidth",
        "900 GB/s",
        {f"{unit}/s": size for unit, size in _BYTES.items()} | {f"{unit}/s": size / 8 for unit, size in _BITS.items()},
        ("B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"),
    ),
    "frequency": Dimension("a frequency", "1.4 GHz", _units("- k M G T", "Hz"), ("Hz", "kHz", "MHz", "GHz")),
    "time": Dimension("a time", "5 us", _units("p n u m -", "s") | _CLOCK, ("ns", "us", "ms", "s")),
    "energy": Dimension(
        "an energy",
        "20 kWh",
        _units("f p n u m - k M G", "J") | _units("m - k M G", "Wh", _HOUR),
        ("fJ", "pJ", "nJ", "uJ", "mJ", "J", "kJ", "kWh", "MWh"),
    ),
    "energy_per_bit": Dimension("an energy per bit", "4.2 pJ/bit", _units("f p n u m -", "J/bit"), ("fJ/bit", "pJ/bit", "nJ/bit")),
    "throughput": Dimension("a throughput", "312 TFLOP/s", _units("- k M G T P E", "FLOP/s"), ("FLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s")),
    "voltage": Dimension("a voltage", "0.8 V", _units("m -", "V"), ("mV", "V")),
    "length": Dimension("a length", "26 mm", _units("n u m c -", "m"), ("nm", "um", "mm", "m")),
    "money": Dimension("an amount of money", "1200 USD", _units("-", "USD"), ("USD",)),
    "price_per_energy": Dimension(
        "a price of energy",
        "0.08 USD/kWh",
        {f"USD/{unit}": 1 / size for unit, size in (_units("- k M G", "Wh", _HOUR) | _units("- k M G", "J")).items()},
        ("USD/kWh",),
    ),
    "price_per_area": Dimension(
        "a price of area", "0.5 USD/mm^2", {f"USD/{unit}": 1 / size for unit, size in _AREAS.items()}, ("USD/mm^2",)
    ),
    "ratio": Dimension("a ratio", "0.85", {"": Fraction(1), "%": Fraction(1, 100)}, ("",)),
    "per_length": Dimension(
        "a number per length", "400 /mm", {f"/{unit}": 1 / size for unit, size in _units("u m c -", "m").items()}, ("/mm",)
    ),
    "per_area": Dimension("a number per area", "0.1 /cm^2", {f"/{unit}": 1 / size for unit, size in _AREAS.items()}, ("/cm^2", "/mm^2")),
    "power_per_area": Dimension(
        "a power per area",
        "0.8 W/mm^2",
        {f"{watt}/{unit}": power / area for watt, power in _units("m - k", "W").items() for unit, area in _AREAS.items()},
        ("W/mm^2",),
    ),
    "power_per_bit": Dimension("a power per bit", "3.5 pW/bit", _units("f p n u m -", "W/bit"), ("pW/bit", "nW/bit", "uW/bit")),
    "area_per_bit": Dimension(
        "an area per bit", "0.1 um^2/bit", {f"{unit}/bit": size for unit, size in _AREAS.items()}, ("nm^2/bit", "um^2/bit", "mm^2/bit")
    ),
}
_DIMENSION_OF: Final = {unit: dimension for dimension in DIMENSIONS.values() for unit in dimension.units}


def parse_quantity(text: str, dimension: str) -> float:
    """The quantity in SI units; a ValueError with value and remedy if it is not a quantity of `dimension`."""
    return as_float(exact_quantity(text, dimension), text)


def exact(value: float) -> Fraction:
    """The shortest decimal that is this float, as files write it."""
    return Fraction(Decimal(repr(float(value))))


def float_within(limit: Fraction) -> float:
    """The greatest float whose decimal is not above a limit."""
    nearest_float = float(limit)
    return nearest_float if exact(nearest_float) <= limit else nextafter(nearest_float, -inf)


def float_covering(figure: Fraction) -> float:
    """The least float whose decimal is not below a figure: as a limit it is kept by what takes just this."""
    if figure > float_info.max:
        return inf
    nearest_float = float(figure)
    return nearest_float if exact(nearest_float) >= figure else nextafter(nearest_float, inf)


def exact_quantity(text: str, dimension: str) -> Fraction:
    """As `parse_quantity`, but exact, before rounding to a float."""
    wanted = dimension_named(dimension)
    number, unit = _split(text, wanted)
    if unit not in wanted.units:
        raise ValueError(_wrong_unit(text, number, unit, wanted))
    value = _exact(number)
    if value < 0:
        raise ValueError(f"{quoted(text)} is negative, {wanted.phrase} of zero or more is needed")
    return value * wanted.units[unit]


def format_quantity(value: float, dimension: str) -> str:
    """The quantity with six digits in the largest unit that keeps the number at one or more: 8.15e-4 as an area is '815 mm^2'."""
    wanted = dimension_named(dimension)
    fitting = [unit for unit in wanted.shown if float(wanted.units[unit]) <= abs(value)]
    unit = fitting[-1] if fitting else wanted.shown[0] if value else wanted.example.partition(" ")[2]
    number = value / float(wanted.units[unit])
    return f"{number:.0f} {unit}".strip() if 1e6 <= abs(number) < 1e15 else f"{number:.6g} {unit}".strip()


def rounded_quantity(value: float, dimension: str, digits: int = 4) -> str:
    """The quantity with this many significant digits: '1000 ms' for 999.96. Numbers from 1 to below a million are written
    without powers of ten.
    """
    number, _, unit = format_quantity(value, dimension).partition(" ")
    rounded = f"{float(number):.{digits}g}"
    usual = 1.0 <= abs(float(rounded)) < 1e6
    return f"{float(rounded):.0f} {unit}" if "e" in rounded and usual else f"{rounded} {unit}"


def bytes_beyond(used: float, limit: float, between: str) -> str:
    """Comparison of bytes with an exceeded limit, in exact bytes if both would read alike."""
    used_text, limit_text = format_quantity(used, "bytes"), format_quantity(limit, "bytes")
    return f"{used_text} {between} {limit_text}" if used_text != limit_text else f"{used:,.0f} bytes {between} {limit:,.0f}"


def dimension_named(name: str) -> Dimension:
    """The row of `DIMENSIONS`; a ValueError that lists them if there is none."""
    if name not in DIMENSIONS:
        raise ValueError(f"{name!r} is not a dimension (one of {', '.join(DIMENSIONS)})")
    return DIMENSIONS[name]


def parse_number(text: str) -> Fraction:
    """The exact value of a plain number such as `12`, `1_000`, `.5` or `1e9`; a ValueError for anything else."""
    match = _NUMBER.fullmatch(text.strip()) if len(text) <= LONGEST else None
    if match is None:
        raise ValueError(f"{quoted(text)} is not a number{_number_meant(text.strip())}")
    return _exact(match.group())


def _number_meant(text: str) -> str:
    """Suggestion for a count such as `8k` (1,000 or 1,024), with commas, in percent, or with a unit."""
    start = _NUMBER.match(text)
    if (
        len(parts := [part for part in re.split(r"[,\s]+", text.strip("[] ")) if part]) > 1
        and all(map(_NUMBER.fullmatch, parts))
        and not _GROUPED.fullmatch(text)
    ):
        return f" (write a list: [{', '.join(parts)}])"
    if _GROUPED.fullmatch(text):
        return f" (write {quoted(text.replace(',', ''))}, without commas)"
    if start is None or len(text) > LONGEST:
        return ""
    number, unit = start.group(), text[start.end() :].strip().casefold()
    match unit:
        case "%":
            return f" (write {quoted(f'{float(_exact(number)) / 100.0:g}')}, as a share)"
        case "node" | "nodes":
            return " (write the number of devices: that of nodes times the devices of each)"
    return f" (write {_power_meant(number, _POWERS[unit])})" if unit in _POWERS else f" (write {quoted(number)}, without a unit)"


def _power_meant(number: str, power: int) -> str:
    """A number with a power of a thousand, written out in both ways that may be meant, or with an exponent where it is long."""
    binary, decimal = (_exact(number) * base**power for base in (1024, 1000))
    if binary.denominator != 1 or decimal.denominator != 1 or not 0 < binary < _LARGEST_COUNT:
        return "the number out"
    if power >= _LONG_POWER:
        return f"{number}e{3 * power}"
    ways = f"{binary} for {number} x {' x '.join(['1024'] * power)}", f"{decimal} for {number} x {1000**power}"
    return " or ".join(ways if power == 1 else ways[::-1][: 4 - power + 1])


def as_float(value: Fraction, text: str) -> float:
    """The nearest float; a ValueError that names `text` if it is too large."""
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{quoted(text)} is too large") from None


def spellings(unit: str) -> list[str]:
    """Every accepted spelling of a unit: `um^2` is also `um2`, `µm²` and so on."""
    known = [unit]
    for other, canonical in _SPELLINGS:
        known += [spelling.replace(canonical, other) for spelling in known if canonical in spelling]
    return known


def pattern_of(dimension: str) -> str:
    """A regular expression (for the JSON schema) of the texts that `parse_quantity` accepts, without negative numbers."""
    units = dimension_named(dimension).units
    after = "|".join(re.escape(spelling) for unit in units for spelling in spellings(unit))
    dollars = [re.escape(unit.removeprefix("USD")) for unit in units if unit.startswith("USD")]
    before = rf"|\$\s*{NUMBER}\s*({'|'.join(dollars)})" if dollars else ""
    return rf"^\s*({NUMBER}\s*({after}){before})\s*$"


def quoted(text: str, longest: int = 40) -> str:
    """The text in quotes on one line of at most `longest` characters, for error messages."""
    shown = text if len(text) <= longest else text[: longest - 3] + "..."
    return f"'{shown}'" if shown.isprintable() else repr(shown)


def nearest(wanted: str, known: Iterable[str], likeness: float = 0.6) -> list[str]:
    """Known words that differ from `wanted` by case only, else the one with the nearest number, else the most similar one, else the first
    that begins with it, else none. Words that begin with another letter, and do not contain it as a part, are to be more alike."""
    known, word = list(known), wanted.lstrip("-")[:LONGEST]
    same = [other for other in known if other.casefold() == wanted.casefold()]
    if same or not known:
        return same
    if (number := _ENDING.fullmatch(word)) and (alike := [other for other in known if _beside(number, other) is not None]):
        return [min(alike, key=lambda other: _beside(number, other) or 0)]
    best, score = max(((other, SequenceMatcher(None, word, other.lstrip("-")).ratio()) for other in known), key=lambda pair: pair[1])
    first, part = word[:1].casefold() == best.lstrip("-")[:1].casefold(), word in best.split("_")
    longer = [other for other in known if other.casefold().startswith(f"{wanted.casefold()}_")]
    return [best] if score >= (likeness if first or part else max(likeness, _OTHER_LETTER)) else longer[:1]


def _beside(number: re.Match[str], other: str) -> int | None:
    """How far the number that a word ends with is from another word's; None where the words differ otherwise."""
    found = _ENDING.fullmatch(other)
    if found is None or found[1] != number[1] or len(found[2]) != len(number[2]):
        return None
    return abs(int(found[2]) - int(number[2]))


def _split(text: str, wanted: Dimension) -> tuple[str, str]:
    """The number and the unit in table spelling; `$` may also precede the number."""
    stripped = text.strip()
    dollars = stripped.startswith("$")
    body = stripped.removeprefix("$").lstrip()
    match = _NUMBER.match(body) if len(text) <= LONGEST else None
    if match is None:
        raise ValueError(f"{quoted(text)} does not begin with a number, {wanted.phrase} is needed (for example '{wanted.example}')")
    return match.group(), _canonical("$" * dollars + body[match.end() :].strip())


def _canonical(unit: str) -> str:
    """The unit in table spelling: `mm²` as `mm^2`, `Gbps` as `Gb/s`, `$ / kWh` as `USD/kWh`."""
    unit = re.sub(r"\s*/\s*", "/", unit)
    for other, canonical in _SPELLINGS:
        unit = unit.replace(other, canonical)
    return _WORDS_OF_TIME.get(unit.removesuffix("s") or unit, unit)


def _exact(number: str) -> Fraction:
    """The value of a text that `NUMBER` matches; exponents whose exact value would be huge are refused."""
    exponent = number.lower().partition("e")[2].lstrip("+-")
    if len(exponent) > 3:
        raise ValueError(f"{quoted(number)} is too large or too small")
    return Fraction(number.replace("_", ""))


_DAYS = {"week": 7.0, "month": 30.44, "year": 365.25}
"""Spans of a calendar that are no units, as their lengths differ or days say the same."""


def _wrong_unit(text: str, number: str, unit: str, wanted: Dimension) -> str:
    """Message that `unit` is refused where `wanted` is needed, with the remedy."""
    if not unit:
        example = f"'{number} ms', '{number} s' or '{number} d'" if wanted is DIMENSIONS["time"] else f"'{wanted.example}'"
        return f"{quoted(text)} has no unit, {wanted.phrase} is needed (for example {example})"
    if unit.startswith(","):
        return f"{quoted(text)} has a comma, {wanted.phrase} is needed (write '1200' for '1,200' and '1.2' for '1,2')"
    rates = [rate for rate in (f"{unit}/s", f"{unit.removesuffix('B')}b/s") if rate in wanted.units]  # ports are rated in bits
    if (days := _DAYS.get(unit.casefold().removesuffix("s"))) is not None and "d" in wanted.units:
        same = f"{'' if days == round(days) else 'about '}'{round(float(number) * days)} d'"
        return f"{quoted(text)} is no time with a unit that is known here (write it in days: {same})"
    other, near = _DIMENSION_OF.get(unit), nearest(unit, wanted.units, likeness=0.5)
    lower = unit.casefold()
    near = [guess for guess in near if other is None or lower.startswith(guess.casefold()) or guess.casefold().startswith(lower)]
    guesses = " or ".join(quoted(f"{number} {guess}".strip()) for guess in rates or near)
    remedy = f"did you mean {guesses}?" if guesses else f"for example '{wanted.example}'"
    problem = f"is {other.phrase}" if other else f"has the unknown unit {quoted(unit)}"
    return f"{quoted(text)} {problem}, {wanted.phrase} is needed ({remedy})"
