"""What devices draw on average, beside published measurements."""

from functools import cache

import pytest

from crossopt.crossflow.device import device_from
from crossopt.crossflow.generator import generate
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.roofline import Product, product_cost, stream_cost
from crossopt.instances.catalogue.registry import build_device, device, names, technology
from crossopt.instances.catalogue.technologies import build_technology, usual_split
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
    found = answered(ask(NODE), "auto").details.evaluation
    assert found is not None
    return float(found.average_power)


PRODUCT = Product(8192.0, 8192.0, 8192.0)


def in_products(hardware: Hardware, rate: float) -> float:
    """Watts while large products run at this many FLOP/s."""
    cost = product_cost(PRODUCT, 2.0, hardware)
    moved = float(cost.energy) - hardware.running_power * (float(cost.time) - hardware.efficiency.kernel)
    return moved / (float(PRODUCT.flops) / rate) + hardware.running_power + hardware.idle_power


def in_streams(hardware: Hardware) -> float:
    """Watts while memory is read from end to end."""
    cost = stream_cost(4e9, 1e9, hardware)
    return float(cost.energy) / float(cost.time) + hardware.idle_power


def test_large_products_draw_what_an_a100_may() -> None:
    """257 TFLOP/s with random values at the limit of 400 W (H. He 2024)."""
    assert in_products(build_device(device("a100-80g"), "a100-80g", "bf16", 2), 257e12) == pytest.approx(400.0, rel=0.1)


@pytest.mark.parametrize(("name", "sold"), [("accelerator-7nm", "a100-80g"), ("accelerator-4nm", "h100-sxm")])
def test_usual_chips_draw_what_the_devices_like_them_draw(name: str, sold: str) -> None:
    """In products and in streams; and what limits them is what they draw in the worse of both."""
    entry, like = technology(name), build_device(device(sold), sold, "fp16", 2)
    made = build_technology(entry, name)
    built = generate(made, usual_split(entry))
    chip = device_from(made, built, 2.0, like.efficiency)
    rate = 0.82 * float(like.throughput)
    assert in_products(chip, rate) == pytest.approx(in_products(like, rate), rel=0.1)
    assert in_streams(chip) == pytest.approx(in_streams(like), rel=0.1)
    assert chip.power == pytest.approx(max(in_products(chip, rate), in_streams(chip)), rel=0.1)


@pytest.mark.parametrize(
    ("name", "watts"),
    [
        ("accelerator-7nm", 88.0),
        ("accelerator-4nm", 105.0),
        ("accelerator-4np", 137.0),
        ("accelerator-5nm-stacked", 191.0),
        ("tensor-7nm", 90.0),
    ],
)
def test_usual_chips_idle_as_devices_like_them_were_measured(name: str, watts: float) -> None:
    """A100 (H. He 2024), H100 (Morrison et al. 2025), B200 and MI300X (ROCm/legacy-rocm-build, issues 5219 and 5231, August 2025), TPU v4
    (Google Cloud documentation, 2025)."""
    entry = technology(name)
    assert generate(build_technology(entry, name), usual_split(entry)).idle_power == pytest.approx(watts, rel=0.05)


@pytest.mark.parametrize("name", [name for name in names("technologies") if name != "v100-class"])
def test_cores_and_banks_leak_at_every_technology_that_is_sold(name: str) -> None:
    """A tenth to a fifth of what the usual chip draws, with what of the uncore leaks."""
    entry = technology(name)
    made = build_technology(entry, name)
    built = generate(made, usual_split(entry))
    banks = built.registers.static + built.l1.static + built.l2.static
    uncore = built.uncore_idle - made.uncore.steady_per_area * usual_split(entry).die_area
    assert 0.05 < (built.core.leakage + uncore + banks) / built.power(made.sustained) < 0.2


def test_training_on_h100_draws_what_was_measured() -> None:
    """Over 600 W, 85 % of the rating (OLMo 2; Morrison et al. 2025, arXiv:2503.05804); nodes 76 % of 10.2 kW (Newkirk et al. 2025,
    arXiv:2506.14551)."""
    assert drawn() == pytest.approx(600.0, rel=0.1)
    assert 8 * drawn() + REST == pytest.approx(0.76 * 10_200.0, rel=0.1)


def test_arrays_of_a_tensor_chip_draw_no_less_than_published_arithmetic_does() -> None:
    """0.21 pJ a multiply in bfloat16 and 0.38 pJ an add in float32 at 7 nm (Jouppi et al. 2021), beside leakage and clocks; in products the
    usual chip draws 192 W, the most that was measured of a TPU v4 (Jouppi et al. 2023)."""
    entry = technology("tensor-7nm")
    made = build_technology(entry, "tensor-7nm")
    assert 0.59e-12 < 2.0 * made.core.energy_per_flop < 1.2 * 0.59e-12
    built = generate(made, usual_split(entry))
    assert built.power(made.sustained) == pytest.approx(192.0, rel=0.01)
    assert built.core.frequency == pytest.approx(1.05e9, rel=0.01)
