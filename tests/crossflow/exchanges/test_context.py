"""What context ranks exchange around attention, by hand on a device of round figures."""

from dataclasses import replace

import pytest

from crossopt.crossflow.exchanges.context import around_attention, by_all_to_all
from crossopt.crossflow.hardware import Hardware, Memory
from crossopt.crossflow.layer import Pass, backward_pass, forward_pass, layer
from crossopt.crossflow.plan import Plan
from crossopt.crossflow.recomputation import number_of
from crossopt.crossflow.roofline import NOTHING
from crossopt.crossflow.workload import Transformer
from tests.crossflow.test_layer import GROUPED, group, number

WINDOWS = replace(GROUPED, window=512, global_layers=2)
RESULTS, KEYS = 2048 / 4 * 16 * 64 * 2, 2048 / 4 * 4 * 64 * 2
"""Bytes of a quarter of the tokens: of 16 heads of width 64, of 4."""


def slow(plain: Hardware) -> Hardware:
    """A device on which bytes of the memory take time, work none."""
    return replace(plain, dram=Memory(64e9, 1e6), throughput=1e30, efficiency=replace(plain.efficiency, overlap_loss=0.0))


def beside(hardware: Hardware, backward: bool, plan: Plan) -> tuple[float, float]:
    """Seconds and kernels of what attention does among context ranks beside attention itself."""
    core, _ = around_attention(NOTHING, GROUPED, group(plan), hardware, backward)
    return number(core.time), number(core.kernels)


def test_each_step_of_the_ring_puts_results_together(plain: Hardware) -> None:
    """Three steps: forward of the results, backward of the gradients of queries, keys and values, each read twice and written once; a
    launch of attention and two of these each."""
    assert beside(slow(plain), backward=False, plan=Plan(context=4)) == pytest.approx((3 * 3 * RESULTS / 1e6, 9))
    assert beside(slow(plain), backward=True, plan=Plan(context=4)) == pytest.approx((3 * 3 * (RESULTS + 2 * KEYS) / 1e6, 9))
    assert beside(slow(plain), backward=False, plan=Plan(context=4, tensor=2))[0] == pytest.approx(3 * 3 * RESULTS / 2 / 1e6)
    assert beside(slow(plain), backward=True, plan=Plan(tensor=2)) == (0.0, 0.0)


def test_launches_of_the_steps_take_their_time(plain: Hardware) -> None:
    idle = replace(slow(plain), dram=Memory(64e9, 1e30), efficiency=replace(slow(plain).efficiency, kernel=2.0))
    assert beside(idle, backward=False, plan=Plan(context=4))[0] == pytest.approx(3 * 3 * 2.0)


def test_the_ring_takes_its_share_of_the_device(plain: Hardware) -> None:
    losing = replace(plain, efficiency=replace(plain.efficiency, overlap_loss=0.25))
    hidden = 2 * 3 * 2 * KEYS / 100e9
    free, lost = (backward_pass(GROUPED, group(Plan(context=4)), one) for one in (plain, losing))
    spent = plain.efficiency.overlap_loss
    assert number(lost.context.hidden) == pytest.approx(hidden)
    assert number(lost.core.time) - number(free.core.time) == pytest.approx((0.25 - spent) * hidden)


@pytest.mark.parametrize("model", [WINDOWS, replace(GROUPED, sinks=True)])
def test_sinks_and_windows_go_by_all_to_all(plain: Hardware, model: Transformer) -> None:
    """Three quarters of queries, keys, values and results leave the rank, in either direction, and nothing hides them."""
    expected = 3 / 4 * (2 * RESULTS + 2 * KEYS) / 100e9
    one = group(Plan(context=4))
    passes: list[Pass] = [forward_pass(model, one, plain), backward_pass(model, one, plain)]
    for side in passes:
        assert (number(side.context.hidden), number(side.context.exposed)) == pytest.approx((0.0, expected))
        assert number(side.exchanges()) == pytest.approx(expected)
        assert number(side.context.energy) == pytest.approx(expected * 100e9 * plain.links[0].energy)
    alone = layer(*passes, number_of("none"), plain)
    assert number(alone.context) == pytest.approx(2 * expected)
    again = layer(*passes, number_of("selective"), plain)
    assert number(again.backward) - number(alone.backward) == pytest.approx(number(passes[0].core.time) + expected)


def test_a_window_of_the_whole_sequence_is_none() -> None:
    assert by_all_to_all(WINDOWS)
    assert not by_all_to_all(replace(GROUPED, window=GROUPED.sequence))
    assert not by_all_to_all(GROUPED)
