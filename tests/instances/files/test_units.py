"""Quantities read to exact SI numbers; what is no quantity says what to write instead."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.instances.files.units import (
    DIMENSIONS,
    bytes_beyond,
    format_quantity,
    nearest,
    parse_number,
    parse_quantity,
    pattern_of,
    quoted,
    rounded_quantity,
    spellings,
)
from tests.every import every

READ = [
    ("815 mm^2", "area", 815e-6),
    ("815mm2", "area", 815e-6),
    ("8.15 cm²", "area", 815e-6),
    ("1 µm^2", "area", 1e-12),
    ("400 W", "power", 400.0),
    ("0.4kW", "power", 400.0),
    ("80 GiB", "bytes", 80 * 2.0**30),
    ("80 GB", "bytes", 80e9),
    ("1 KiB", "bytes", 1024.0),
    ("1 kB", "bytes", 1000.0),
    ("900 GB/s", "bandwidth", 900e9),
    ("2 TiB/s", "bandwidth", 2 * 2.0**40),
    ("400 Gb/s", "bandwidth", 50e9),
    ("400 Gbit/s", "bandwidth", 50e9),
    ("400 Gbps", "bandwidth", 50e9),
    ("400 GBps", "bandwidth", 400e9),
    ("400 GB / s", "bandwidth", 400e9),
    ("1.4 GHz", "frequency", 1.4e9),
    ("5 µs", "time", 5e-6),
    ("5 μs", "time", 5e-6),
    ("90 min", "time", 5400.0),
    ("2 h", "time", 7200.0),
    ("4 years", "time", 4 * 365.25 * 86400),
    ("1 kWh", "energy", 3.6e6),
    ("3 fJ", "energy", 3e-15),
    ("4.2 pJ/bit", "energy_per_bit", 4.2e-12),
    ("312 TFLOP/s", "throughput", 312e12),
    ("1 PFLOPS", "throughput", 1e15),
    ("800 mV", "voltage", 0.8),
    ("26 mm", "length", 0.026),
    ("1200 USD", "money", 1200.0),
    ("$1200", "money", 1200.0),
    ("1_200 $", "money", 1200.0),
    ("3.6 USD/kWh", "price_per_energy", 1e-6),
    ("$3.6/kWh", "price_per_energy", 1e-6),
    ("0.85", "ratio", 0.85),
    ("85 %", "ratio", 0.85),
    ("85%", "ratio", 0.85),
    ("400 /mm", "per_length", 400e3),
    ("0.1 /cm^2", "per_area", 1e3),
    ("3.5 pW/bit", "power_per_bit", 3.5e-12),
    ("0.1 um^2/bit", "area_per_bit", 1e-13),
    ("0 W", "power", 0.0),
    ("+.5e1 W", "power", 5.0),
    ("5. W", "power", 5.0),
    ("1E3 W", "power", 1000.0),
    ("1e-999 W", "power", 0.0),
]

REFUSED = [
    ("400 Wh", "power", "'400 Wh' is an energy, a power is needed (did you mean '400 W'?)"),
    ("815", "area", "'815' has no unit, an area is needed (for example '815 mm^2')"),
    ("815 mm", "area", "'815 mm' is a length, an area is needed (did you mean '815 mm^2'?)"),
    ("80 Gb", "bytes", "'80 Gb' is a number of bits, a size in bytes is needed (did you mean '80 GB'?)"),
    ("80 GiB", "bandwidth", "'80 GiB' is a size in bytes, a bandwidth is needed (did you mean '80 GiB/s'?)"),
    ("400 GB", "bandwidth", "'400 GB' is a size in bytes, a bandwidth is needed (did you mean '400 GB/s' or '400 Gb/s'?)"),
    ("3 W", "ratio", "'3 W' is a power, a ratio is needed (for example '0.85')"),
    ("3 GHz", "power", "'3 GHz' is a frequency, a power is needed (for example '400 W')"),
    ("9 gb/s", "bandwidth", "'9 gb/s' has the unknown unit 'gb/s', a bandwidth is needed (did you mean '9 GB/s' or '9 Gb/s'?)"),
    ("5 KB", "bytes", "'5 KB' has the unknown unit 'KB', a size in bytes is needed (did you mean '5 kB'?)"),
    ("5 watts", "power", "'5 watts' has the unknown unit 'watts', a power is needed (for example '400 W')"),
    ("5 W W", "power", "'5 W W' has the unknown unit 'W W', a power is needed (did you mean '5 W'?)"),
    ("1,200 USD", "money", "'1,200 USD' has a comma, an amount of money is needed (write '1200' for '1,200' and '1.2' for '1,2')"),
    ("-3 W", "power", "'-3 W' is negative, a power of zero or more is needed"),
    ("nan W", "power", "'nan W' does not begin with a number, a power is needed (for example '400 W')"),
    ("inf W", "power", "'inf W' does not begin with a number, a power is needed (for example '400 W')"),
    ("", "area", "'' does not begin with a number, an area is needed (for example '815 mm^2')"),
    ("٣ W", "power", "'٣ W' does not begin with a number, a power is needed (for example '400 W')"),
    ("1e999 W", "power", "'1e999 W' is too large"),
    ("1e99999999999 W", "power", "'1e99999999999' is too large or too small"),
    ("9" * 101 + " W", "power", f"'{'9' * 37}...' does not begin with a number, a power is needed (for example '400 W')"),
]


@every(("text", "dimension", "value"), READ)
def test_a_quantity_is_the_nearest_float_to_what_was_written(text: str, dimension: str, value: float) -> None:
    assert parse_quantity(text, dimension) == value


@every(("text", "dimension", "message"), REFUSED)
def test_what_is_no_quantity_names_value_and_remedy(text: str, dimension: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        parse_quantity(text, dimension)


@every(
    ("value", "dimension", "text"),
    [
        (8.15e-4, "area", "815 mm^2"),
        (2e12, "bandwidth", "2 TB/s"),
        (80 * 2**30, "bytes", "80 GiB"),
        (1.4e9, "frequency", "1.4 GHz"),
        (14.9, "time", "14.9 s"),
        (4.2e-12, "energy_per_bit", "4.2 pJ/bit"),
        (0.85, "ratio", "0.85"),
        (0.0, "power", "0 W"),
        (0.0, "ratio", "0"),
        (1e-12, "power", "1e-06 uW"),
        (1234567.0, "money", "1234567 USD"),
        (0.08 / 3.6e6, "price_per_energy", "0.08 USD/kWh"),
        (400e3, "per_length", "400 /mm"),
        (float("inf"), "bandwidth", "inf PB/s"),
    ],
)
def test_a_quantity_is_shown_as_people_write_it(value: float, dimension: str, text: str) -> None:
    assert format_quantity(value, dimension) == text


@given(st.sampled_from(sorted(DIMENSIONS)), st.floats(1e-30, 1e30) | st.just(0.0))
def test_a_shown_quantity_reads_back(dimension: str, value: float) -> None:
    """Six digits are shown, so the worst relative error is half a unit of the sixth."""
    assert parse_quantity(format_quantity(value, dimension), dimension) == pytest.approx(value, rel=5.1e-6)


@given(
    st.text(max_size=20) | st.from_regex(r"[-+$]?[0-9.e_]{1,8} ?[a-zA-Z/^2%$ ]{0,6}", fullmatch=True), st.sampled_from(sorted(DIMENSIONS))
)
def test_any_text_is_a_finite_quantity_or_a_sentence(text: str, dimension: str) -> None:
    try:
        value = parse_quantity(text, dimension)
    except ValueError as error:
        assert str(error).isprintable()
    else:
        assert 0 <= value < float("inf")
        assert re.fullmatch(pattern_of(dimension), re.sub(r"\s*/\s*", "/", text.strip()))


def test_a_unit_belongs_to_one_dimension() -> None:
    owners = [(spelling, name) for name, dimension in DIMENSIONS.items() for unit in dimension.units for spelling in spellings(unit)]
    assert len(owners) == len(dict(owners))


@every("name", sorted(DIMENSIONS))
def test_every_spelling_of_a_unit_is_read_and_fits_the_pattern(name: str) -> None:
    for unit, size in DIMENSIONS[name].units.items():
        for spelling in spellings(unit):
            assert parse_quantity(f"2 {spelling}", name) == float(2 * size)
            assert re.search(pattern_of(name), f"2 {spelling}")
    assert parse_quantity(DIMENSIONS[name].example, name) > 0


def test_the_pattern_refuses_other_dimensions() -> None:
    assert re.search(pattern_of("power"), "400 W")
    assert not re.search(pattern_of("power"), "400 Wh")
    assert not re.search(pattern_of("power"), "400")
    assert re.search(pattern_of("money"), "$1200")
    assert not re.search(pattern_of("power"), "$400")


def test_an_unknown_dimension_is_refused() -> None:
    with pytest.raises(ValueError, match="'aera' is not a dimension"):
        parse_quantity("1 W", "aera")


def test_a_plain_number_has_no_unit() -> None:
    assert parse_number(" 1e9 ") == 10**9
    with pytest.raises(ValueError, match=re.escape("'80 GiB' is not a number (write '80', without a unit)")):
        parse_number("80 GiB")
    with pytest.raises(ValueError, match=re.escape("(write the number of devices: that of nodes times the devices of each)")):
        parse_number("32 nodes")
    with pytest.raises(ValueError, match=r"^'nan' is not a number$"):
        parse_number("nan")


def test_the_nearest_word_prefers_those_that_differ_by_case_only() -> None:
    assert nearest("GB", ["gb", "Gb", "GBs"]) == ["gb", "Gb"]
    assert nearest("tensors", ["data", "tensor"]) == ["tensor"]
    assert nearest("xyz", ["data", "tensor"]) == []
    assert nearest("xyz", []) == []


def test_quoted_text_stays_on_one_short_line() -> None:
    assert quoted("a\nb") == r"'a\nb'"
    assert quoted("x" * 1000) == f"'{'x' * 37}...'"


def test_more_bytes_than_a_limit_never_read_like_the_limit() -> None:
    assert bytes_beyond(3 * 2.0**30, 2.0**30, "of") == "3 GiB of 1 GiB"
    assert bytes_beyond(2.0**34 + 1.0, 2.0**34, "of") == "17,179,869,185 bytes of 17,179,869,184"


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("p97", "mean p50 p90 p95 p99", "p95"),
        ("p93", "mean p50 p90 p95 p99", "p95"),
        ("ollama", "vllm sglang trtllm eager", ""),
        ("--fast", "--at --rate --ttft", ""),
        ("--set", "--rent --at", ""),
        ("--tfft", "--ttft --tpot", "--ttft"),
        ("gb2000", "gb200-nvl72 b200 h200", "b200"),
        ("vlm", "vllm sglang", "vllm"),
        ("TTFT", "ttft tpot", "ttft"),
    ],
)
def test_a_known_word_is_suggested_where_it_may_be_meant(word: str, known: str, meant: str) -> None:
    """Of words that end with numbers the one with the nearest; none that shares a few letters alone."""
    assert nearest(word, known.split()) == ([meant] if meant else [])


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.9996, 3, "1000 ms"),
        (0.9996, 4, "999.6 ms"),
        (1.2345, 3, "1.23 s"),
        (0.0, 4, "0 us"),
        (1e-15, 3, "1e-06 ns"),
        (1e20, 4, "1e+20 s"),
    ],
)
def test_rounding_tells_no_powers_of_ten_where_a_reader_needs_none(value: float, digits: int, text: str) -> None:
    assert rounded_quantity(value, "time", digits) == text
