"""Kernels that run alone: hand-computed times, the same digits in columns as one by one, and more of a resource never slower."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.kernels.fitted import (
    FORMATS,
    AttentionFormat,
    CollectiveCall,
    CollectiveConstants,
    ContextCall,
    ContextConstants,
    GenerationCall,
    GenerationConstants,
    ProductCall,
    ProductConstants,
    collective_time,
    context_time,
    generation_time,
    product_time,
)
from crossopt.instances.catalogue.registry import build_device, device

H100 = build_device(device("h100-sxm"), "h100-sxm", "bf16", 1)
PRODUCT = ProductConstants(2.4e-6, 0.88, 72.0, 0.88, 1.0e-10, 0.3, 2.8e-6, 2.2e-12)
CONTEXT = ContextConstants(1.3e-5, 0.6, 3.0e-6, 5.0e-11, 1.7, 2.4)
GENERATION = GenerationConstants(8.0e-6, 0.8, 1.0e-6, 9.0e-9, 4.0e-8, 4.0e-6, 5.0e12)
COLLECTIVE = CollectiveConstants(9.0e-7, 5.0e-6, 0.4, 2.0e-5, 0.97, 0.6, 4194304.0)
PLAIN = AttentionFormat(2.0, eight_bits=False)
NARROW = AttentionFormat(1.0, eight_bits=True, alone=True)
PACKED = AttentionFormat(2.0, eight_bits=False, packs=True, splits=False)

SIDES = st.sampled_from([1.0, 17.0, 64.0, 128.0, 1000.0, 4096.0, 28672.0])
HEADS = st.sampled_from([(8.0, 8.0), (32.0, 8.0), (64.0, 1.0)])
SIZES = st.sampled_from([64.0, 128.0, 192.0, 256.0])
WINDOWS = st.sampled_from([0.0, 128.0, 4096.0])
FORMS = st.sampled_from([PLAIN, NARROW, PACKED])
PRODUCTS = st.builds(ProductCall, SIDES, SIDES, SIDES, st.sampled_from(sorted(FORMATS)).map(lambda name: FORMATS[name]))
CONTEXTS = st.builds(lambda heads, *rest: ContextCall(*heads, *rest), HEADS, SIZES, WINDOWS, SIDES, SIDES, FORMS)
GENERATIONS = st.builds(lambda heads, *rest: GenerationCall(*heads, *rest), HEADS, SIZES, WINDOWS, SIDES, SIDES, FORMS)
COLLECTIVES = st.builds(
    CollectiveCall, st.sampled_from([2.0, 4.0, 8.0]), SIDES.map(lambda side: side * 4096.0), st.sampled_from([1.0, 2.0])
)


def time_of(call: Any, hardware: Hardware = H100) -> Any:  # noqa: ANN401 - any call and its seconds
    match call:
        case ProductCall():
            return product_time(call, PRODUCT, hardware)
        case ContextCall():
            return context_time(call, CONTEXT, hardware)
        case GenerationCall():
            return generation_time(call, GENERATION, hardware)
        case _:
            return collective_time(call, COLLECTIVE, hardware)


# --- by hand -------------------------------------------------------------------------------------------------------------------------


def test_a_product_of_one_tile_is_counted_by_hand() -> None:
    """A tile of 64 x 64 at 0.76 of the rate on one of 100 bundles, beside 24,576 bytes from memory; parts would wait for their sum."""
    hardware = replace(H100, throughput=100.0e12, bundles=100.0, dram=replace(H100.dram, bandwidth=1.0e12))
    constants = ProductConstants(1.0e-6, 1.0, 64.0, 0.5, 1.0e-9, reduction=1.0)
    arithmetic, steps = 128 * 64 * 64 * 2 / 0.76 / 1.0e12, 64 * 1.0e-9
    tile, memory = (arithmetic**2 + steps**2) ** 0.5, 3 * 64 * 64 * 2 / 0.5e12
    call = ProductCall(64.0, 64.0, 64.0, FORMATS["bfloat16"])
    assert product_time(call, constants, hardware) == pytest.approx(1.0e-6 + (tile**2 + memory**2) ** 0.5)


def test_products_that_go_on_for_long_are_throttled() -> None:
    """Hardly within microseconds, and by 0.3 after a second."""
    short, long = (ProductCall(side, side, side, FORMATS["bfloat16"]) for side in (256.0, 65536.0))
    free = replace(PRODUCT, throttle=0.0)
    assert product_time(short, PRODUCT, H100) == pytest.approx(product_time(short, free, H100), rel=2e-3)
    assert product_time(long, PRODUCT, H100) == pytest.approx(1.3 * product_time(long, free, H100), rel=2e-3)


def test_a_cast_is_paid_for_each_element_of_the_input() -> None:
    call = ProductCall(4096.0, 4096.0, 1024.0, FORMATS["fp8"])
    free = product_time(call, replace(PRODUCT, cast=0.0), H100)
    assert product_time(call, PRODUCT, H100) == pytest.approx(free + 2.2e-12 * 4096 * 1024)
    wide = ProductCall(4096.0, 4096.0, 1024.0, FORMATS["bfloat16"])
    assert product_time(wide, PRODUCT, H100) == product_time(wide, replace(PRODUCT, cast=0.0), H100)


def test_kernels_that_do_not_split_wait_for_the_whole_depth() -> None:
    """65,536 steps of 1 ns in one tile, and a few of its 32 parts where the depth is split."""
    slow = replace(PRODUCT, step=1.0e-9)
    whole, parted = (product_time(ProductCall(1.0, 128.0, 65536.0, FORMATS[name]), slow, H100) for name in ("fp8_block", "fp8"))
    assert whole > 65.0e-6
    assert parted < 20.0e-6


def test_a_context_of_one_block_is_counted_by_hand() -> None:
    """64 queries and keys in one block of 64, whose mean is its only one, at 0.8 of the rate, beside softmax; then the passes."""
    constants = ContextConstants(1.0e-6, 1.0, 2.0e-6, 3.0e-11, 0.0)
    hardware = replace(H100, throughput=100.0e12, bundles=100.0)
    score = ((4 * 128 / 0.8e12) ** 2 + 3.0e-11**2) ** 0.5
    unit = 64 * 64 * score + 2.0e-6
    call = ContextCall(1.0, 1.0, 128.0, 0.0, 1.0, 64.0, PLAIN)
    assert context_time(call, constants, hardware) == pytest.approx(1.0e-6 + unit * (1.0 + 0.01**2) ** 0.5)


def test_generation_reads_keys_and_values_once_for_heads_that_share_them() -> None:
    """32 sequences of 4,096 keys and 8 heads of 128 are 536 MB; 4 or 8 queries to each hardly change that."""
    constants = replace(GENERATION, launch=0.0, unit=1.0e-12, group=0.0, serial=1.0e-12)
    few, many = (generation_time(GenerationCall(heads, 8.0, 128.0, 0.0, 32.0, 4096.0, PLAIN), constants, H100) for heads in (32.0, 64.0))
    assert few == pytest.approx(2 * 2 * 32 * 4096 * 8 * 128 / (0.8 * 3.35e12), rel=0.01)
    assert many == pytest.approx(few, rel=0.01)


def test_a_window_bounds_what_generation_reads() -> None:
    call = GenerationCall(32.0, 8.0, 128.0, 128.0, 256.0, 1.0e5, PLAIN)
    assert generation_time(call, GENERATION, H100) < 0.1 * generation_time(replace(call, window=0.0), GENERATION, H100)


def test_a_collective_is_counted_by_hand_on_both_sides_of_the_switch() -> None:
    """An all-reduce of four ranks: six steps and 3/2 of the message; two ranks lose 0.6 / 4 of the links."""
    bandwidth = H100.links[0].bandwidth * (1.0 - 0.15)
    small, large = (collective_time(CollectiveCall(4.0, size, 2.0), COLLECTIVE, H100) for size in (1.0e6, 1.0e8))
    assert small == pytest.approx(5.0e-6 + 6 * 9.0e-7 + 1.5e6 / (bandwidth * 0.4))
    assert large == pytest.approx(2.0e-5 + 6 * 9.0e-7 + 1.5e8 / (bandwidth * 0.97))


# --- what all keep -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("calls", [PRODUCTS, CONTEXTS, GENERATIONS, COLLECTIVES])
def test_columns_have_the_digits_of_single_calls(calls: st.SearchStrategy[Any]) -> None:
    @given(st.lists(calls, min_size=2, max_size=6))
    def hold(drawn: list[Any]) -> None:
        same = [call for call in drawn if getattr(call, "format", None) == getattr(drawn[0], "format", None)]
        names = [name for name in type(same[0]).__slots__ if isinstance(getattr(same[0], name), float)]
        columns = replace(same[0], **{name: np.array([getattr(call, name) for call in same])[:, None] for name in names})
        together = np.broadcast_to(time_of(columns), (len(same), 1))[:, 0]
        assert together.tolist() == [float(time_of(call)) for call in same]

    hold()


@pytest.mark.parametrize("calls", [PRODUCTS, CONTEXTS, GENERATIONS, COLLECTIVES])
def test_more_of_a_resource_is_never_slower(calls: st.SearchStrategy[Any]) -> None:
    @given(calls, st.sampled_from([1.0000001, 1.3, 7.0]))
    def hold(call: Any, factor: float) -> None:  # noqa: ANN401 - any call
        faster = replace(H100, throughput=H100.throughput * factor)
        wider = replace(H100, dram=replace(H100.dram, bandwidth=H100.dram.bandwidth * factor))
        joined = replace(H100, links=(replace(H100.links[0], bandwidth=H100.links[0].bandwidth * factor),))
        assert max(time_of(call, one) for one in (faster, wider, joined)) <= time_of(call)

    hold()
