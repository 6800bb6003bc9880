"""Public tests of assignment 13: `pytest .` tries solution.py or the notebook on instance.yaml; `crossopt grade 13 .` asks for more."""

import sys
from math import isclose
from pathlib import Path

import yaml

HERE = Path(__file__).parent
GIVEN = yaml.safe_load((HERE / "instance.yaml").read_text(encoding="utf-8"))
sys.path[:0] = [str(HERE), str(HERE.parent)]  # a solution may import files beside it; handed_in.py lies here, or above in a checkout

from handed_in import functions  # noqa: E402

MINE = functions(HERE)
PREFILL, DECODE, DEVICES = (GIVEN[key] for key in ("prefill", "decode", "devices"))


def test_prompts_of_others_lengthen_the_time_for_a_token() -> None:
    token, rate = MINE["together"](*GIVEN["step"])
    assert isclose(token, 36.0, rel_tol=1e-9)
    assert isclose(rate, 1000.0 * 32 / (240 * 36.0), rel_tol=1e-9)


def test_copies_of_one_worker_take_six_devices() -> None:
    row, copies = MINE["choose"](GIVEN["table"], GIVEN["ttft"], GIVEN["tpot"], GIVEN["rate"])
    devices, ttft, tpot, rate = GIVEN["table"][row]
    assert ttft <= GIVEN["ttft"] and tpot <= GIVEN["tpot"]
    assert copies * rate >= GIVEN["rate"]
    assert copies * devices == 6


def test_the_table_mixes_kinds_and_leaves_devices_idle() -> None:
    assert list(MINE["best_rates"](PREFILL, DEVICES)) == [0, 0, 0, 4500, 8500, 8500, 9000, 13000, 17000, 17000, 17500, 21500]


def test_both_parts_serve_the_most_on_all_devices() -> None:
    first, second = MINE["apart"](PREFILL, DECODE, DEVICES)
    assert sum(n * size for own, kinds in ((first, PREFILL), (second, DECODE)) for n, (size, _) in zip(own, kinds, strict=True)) <= DEVICES
    served = [sum(n * rate for n, (_, rate) in zip(own, kinds, strict=True)) for own, kinds in ((first, PREFILL), (second, DECODE))]
    assert min(served) == 9500


def test_the_bound_needs_no_table() -> None:
    assert isclose(MINE["bound"](PREFILL, DECODE, DEVICES), 11 * 2125 * 2375 / (2125 + 2375), rel_tol=1e-9)
