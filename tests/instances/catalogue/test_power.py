"""What devices draw on average, beside published measurements."""

from functools import cache

import pytest

from crossopt.crossflow.roofline import Product, product_cost
from crossopt.instances.catalogue.registry import build_device, device
from crossopt.solvers.codesign.answer import evaluation_in
from tests.solvers.codesign.asking import answered
from tests.solvers.codesign.questions import ask

NODE = """\
kind: codesign
workload: {model: llama2-13b, global_batch: 128, sequence: 4096}
cluster: {devices: 8, devices_per_node: 8}
hardware: h100-sxm
stack: fsdp
choices: all
"""
REST = 8_480.0 - 8 * 700.0
"""Watts of a node beside its eight H100: all of it drew 8.48 kW when each of them drew its rating (Latif et al. 2024, arXiv:2412.08602)."""


@cache
def drawn() -> float:
    """Watts of one H100 that trains Llama 2 13B in a node of eight."""
    found = evaluation_in(answered(ask(NODE), "auto"))
    assert found is not None
    return float(found["average_power"])


def test_large_products_draw_what_an_a100_may() -> None:
    """257 TFLOP/s with random values at the limit of 400 W (H. He 2024)."""
    a100 = build_device(device("a100-80g"), "a100-80g", "bf16", 2)
    product = Product(8192.0, 8192.0, 8192.0)
    cost, seconds = product_cost(product, 2.0, a100), float(product.flops) / 257e12
    moved = float(cost.energy) - a100.running_power * (float(cost.time) - a100.efficiency.kernel)
    assert moved / seconds + a100.running_power + a100.idle_power == pytest.approx(400.0, rel=0.1)


def test_training_on_h100_draws_what_was_measured() -> None:
    """Over 600 W, 85 % of the rating (OLMo 2; Morrison et al. 2025, arXiv:2503.05804); nodes 76 % of 10.2 kW (Newkirk et al. 2025,
    arXiv:2506.14551)."""
    assert drawn() == pytest.approx(600.0, rel=0.1)
    assert 8 * drawn() + REST == pytest.approx(0.76 * 10_200.0, rel=0.1)
