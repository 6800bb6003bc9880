"""Public tests of assignment 1: `pytest .` tries solution.py or the notebook on instance.yaml; `crossopt grade 1 .` asks for more."""

import sys
from math import isclose
from pathlib import Path

import yaml

HERE = Path(__file__).parent
GIVEN = yaml.safe_load((HERE / "instance.yaml").read_text(encoding="utf-8"))
sys.path[:0] = [str(HERE), str(HERE.parent)]  # a solution may import files beside it; handed_in.py lies here, or above in a checkout

from handed_in import functions  # noqa: E402

MINE = functions(HERE)
SHAPE, PRODUCT = GIVEN["shape"], GIVEN["product"]


def test_weights() -> None:
    assert MINE["layer_weights"](SHAPE) == 218112000


def test_flops() -> None:
    assert isclose(MINE["step_flops"](SHAPE, **GIVEN["step_flops"]), 1897688350064640, rel_tol=1e-9)


def test_bytes_of_a_product() -> None:
    assert MINE["product_bytes"](**PRODUCT) == 28672


def test_seconds_of_a_product_that_arithmetic_binds_and_of_one_that_memory_binds() -> None:
    seconds = MINE["product_seconds"]
    assert isclose(seconds(**PRODUCT, **GIVEN["device"]), 5.24288e-07, rel_tol=1e-9)
    assert isclose(seconds(**PRODUCT, peak=1e15, bandwidth=1e11), 2.8672e-07, rel_tol=1e-9)


def test_activations() -> None:
    kept, asked = MINE["layer_activations"], GIVEN["layer_activations"]
    assert isclose(kept(SHAPE, **asked), 1141899264, rel_tol=1e-9)
    assert isclose(kept(SHAPE, **(asked | {"recompute": True})), 2 * 8192 * 4096, rel_tol=1e-9)


def test_training_state() -> None:
    assert isclose(MINE["state_bytes"](SHAPE, **GIVEN["state_bytes"]), 817950720, rel_tol=1e-9)
