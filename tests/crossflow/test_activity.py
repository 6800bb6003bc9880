"""What large products and streams draw of a chip, counted by hand on the usual chip of 7 nm."""

from dataclasses import replace

import numpy as np
import pytest

from crossopt.crossflow.device import Architecture
from crossopt.crossflow.generator import Split, generate
from crossopt.crossflow.technology import MEMORIES, Activity, Technology, Traffic, at_precision
from crossopt.instances.catalogue.registry import technology
from crossopt.instances.catalogue.technologies import build_technology, usual_split

ENTRY = technology("accelerator-7nm")
PRODUCTS, STREAMS = build_technology(ENTRY, "accelerator-7nm").sustained


def chip(memory: str = "hbm2e", package_area: float = 1700e-6, **powers: float) -> tuple[Technology, Architecture]:
    """The usual chip with stacks of some generation, and other powers."""
    made, split = build_technology(ENTRY, "accelerator-7nm", memory=memory), usual_split(ENTRY)
    return made, generate(made, replace(_with(split, powers), package_area=package_area))


def _with(split: Split, powers: dict[str, float]) -> Split:
    return replace(split, powers=replace(split.powers, **powers))


def test_products_move_what_their_flops_take_whatever_memories_could() -> None:
    """440 cores do 512 FLOPs a cycle of 1.41 GHz, 0.82 of them 260 TFLOP/s: through L2 1 / 171 value, 2 pJ a bit, 49 W."""
    _, built = chip()
    rate = 0.82 * 440 * 512 * 1.41e9
    watts = {"registers": (0.2857, 30e-15), "l1": (0.0215, 250e-15), "l2": (0.00586, 2e-12), "dram": (0.00037, 5e-12)}
    for level, (values, joules) in watts.items():
        assert built.moved(level, PRODUCTS) == pytest.approx(rate * 2 * values * 8 * joules, rel=1e-9), level
        assert built.drawn(level, PRODUCTS) == getattr(built, level).static + built.moved(level, PRODUCTS), level
    assert built.moved("l2", PRODUCTS) == pytest.approx(48.8, abs=0.1)
    assert chip(l2=180.0)[1].drawn("l2", PRODUCTS) == built.drawn("l2", PRODUCTS)


def test_an_l2_that_carries_less_than_products_ask_for_saves_them_no_power() -> None:
    """Else a starved L2 would hold back the cores in place of a lower clock, and buy more of them: 36 bytes of 64 a cycle draw as much."""
    made, split = build_technology(ENTRY, "accelerator-7nm"), usual_split(ENTRY)
    fast, slow = (generate(replace(made, l2=replace(made.l2, bank_bytes_per_cycle=each)), split) for each in (64.0, 36.0))
    assert slow.l2.bandwidth < 0.6 * fast.l2.bandwidth
    assert slow.power((PRODUCTS,)) == fast.power((PRODUCTS,))


def test_streams_run_at_the_clock_that_lets_through_what_stacks_deliver() -> None:
    """2,048 GB/s through 80 banks of 64 bytes, seven tenths of the cycles: 571 MHz, for which the lowest supply, 0.65 V, is enough. Of 39 W
    of uncore (0.65 / 0.8)^2 x 571 / 1,410 is left."""
    made, built = chip(dram=90.0)
    assert built.dram.bandwidth == pytest.approx(2048e9)
    clock = 2048e9 / (80 * 64 * 0.7)
    share = (0.65 / 0.8) ** 2 * clock / 1.41e9
    assert clock == pytest.approx(571e6, rel=1e-3)
    assert built.beside(STREAMS) - built.uncore_idle == pytest.approx(0.0475e6 * 815e-6 * share)
    switched = share * 440 * (0.4005 - 0.06)
    assert built.drawn("core", STREAMS) - built.core.leakage == pytest.approx(switched * (0.516 + 0.125 * 0.484))
    assert built.drawn("l2", STREAMS) == pytest.approx(built.l2.static + 2048e9 * 8 * 2e-12)
    assert built.drawn("dram", STREAMS) == built.dram.power
    assert made.sustained == (PRODUCTS, STREAMS)


def test_faster_stacks_cost_products_nothing_and_need_a_higher_clock_in_streams() -> None:
    """Four stacks of HBM3E deliver what L2 lets through, nearly twice what five of HBM2E do, for 3.75 in place of 5 pJ a bit: at 1,410 /
    1.3125 MHz, for which the overdrive d with d^2 / (d + 0.25) = 0.762 x 0.378 is 0.449 and the supply 0.699 V. A package of 1,500 mm^2
    holds two of them a side."""
    slow, fast = chip(dram=200.0)[1], chip("hbm3e", 1500e-6, dram=200.0, l2=150.0)[1]
    more = 80 * 64 * 0.7 * 1.41e9 / 1.3125 / 2048e9
    assert fast.dram.bandwidth == pytest.approx(more * slow.dram.bandwidth)
    assert fast.moved("dram", PRODUCTS) == pytest.approx(0.75 * slow.moved("dram", PRODUCTS))
    assert fast.core.slow_clocked == pytest.approx(slow.core.slow_clocked * more * (0.699 / 0.65) ** 2, rel=2e-3)
    assert fast.power((PRODUCTS,)) < slow.power((PRODUCTS,)) + 2.0


def test_stacks_run_no_faster_than_l2_lets_through_and_draw_what_that_clock_takes() -> None:
    """4,096 wires at 7.52 of 8 Gb/s: overdrive d with d^2 / (d + 0.4) = 0.940 x 0.449 is 0.673, supply 1.073 V of 1.104, where 3.75 pJ a
    bit are 3.54. Under a wider L2 they run at their rate, and where nothing is said of L2 too."""
    made, built = chip("hbm3e", 1500e-6, dram=200.0, l2=150.0)
    through = 80 * 64 * 0.7 * 1.41e9 / 1.3125
    assert (built.dram.links, built.dram.bandwidth) == (4096, pytest.approx(through))
    assert built.dram.frequency == pytest.approx(8 * through / 4096)
    assert built.dram.voltage == pytest.approx(1.0729, abs=1e-4)
    assert built.dram.power == pytest.approx(built.dram.static + 8 * through * 3.75e-12 * (1.0729 / 1.104) ** 2, rel=1e-3)
    split = replace(_with(usual_split(ENTRY), {"dram": 200.0, "l2": 150.0}), package_area=1500e-6)
    free = replace(made, dram=replace(made.dram, least_l2=0.0))
    wide = replace(made, l2=replace(made.l2, bank_bytes_per_cycle=96.0))
    for other in (generate(free, split), generate(wide, _with(split, {"l2": 200.0}))):
        assert other.dram.bandwidth == pytest.approx(4096 * 1e9)
        assert other.dram.power > built.dram.power


def test_narrow_products_draw_what_wide_ones_do() -> None:
    """Twice the FLOPs on operands of half as many bytes."""
    made = build_technology(ENTRY, "accelerator-7nm")
    narrow = at_precision(made, 2.0, 1.0)
    wide, eight = (generate(one, usual_split(ENTRY)) for one in (made, narrow))
    for level in MEMORIES:
        assert eight.moved(level, narrow.sustained[0]) == pytest.approx(wide.moved(level, made.sustained[0]))
    assert narrow.sustained[1] == STREAMS
    assert np.isclose(eight.power(narrow.sustained), wide.power(made.sustained))


def test_a_kernel_has_the_pace_of_its_cores_or_of_its_memory() -> None:
    with pytest.raises(ValueError, match="a kernel has the pace of its cores or of its memory"):
        Activity(per_flop=Traffic(l2=0.1), streams=True)
    with pytest.raises(ValueError, match="not below 0"):
        Traffic(l1=-0.1)
