"""Public tests of assignment 14: `pytest .` tries solution.py or the notebook on instance.yaml; `crossopt grade 14 .` asks for more."""

import sys
from itertools import pairwise
from pathlib import Path

import yaml

HERE = Path(__file__).parent
GIVEN = yaml.safe_load((HERE / "instance.yaml").read_text(encoding="utf-8"))
sys.path[:0] = [str(HERE), str(HERE.parent)]  # a solution may import files beside it; handed_in.py lies here, or above in a checkout

from handed_in import functions  # noqa: E402

MINE = functions(HERE)
LAYERS = [(one["before"], one["kinds"], one["sizes"], one["per_element"]) for one in GIVEN["layers"]]
CHAIN = [GIVEN[key] for key in ("sent", "stored", "kept")]
LIMITS = [GIVEN[key] for key in ("devices", "microbatches", "memory")]
PAIRS = [[8, 8], [16, 8], [20, 20], [40, 40], [32, 16]]


def test_cycles_on_one_core_and_on_all() -> None:
    assert [list(pair) for pair in MINE["cycles"](*LAYERS[0][1:], GIVEN["chips"][0])] == PAIRS


def test_the_layer_takes_84_cycles() -> None:
    before, kinds, *_ = LAYERS[0]
    found = MINE["schedule"](before, kinds, PAIRS, GIVEN["chips"][0][:2])
    ends = [start + pair[whole] for (start, whole), pair in zip(found, PAIRS, strict=True)]
    assert all(ends[one] <= found[row][0] for row, earlier in enumerate(before) for one in earlier)
    assert max(ends) == 84


def test_a_batch_takes_5548_cycles() -> None:
    forward, (sent, stored, kept), (devices, microbatches, memory) = GIVEN["forward"], CHAIN, LIMITS
    data, starts = MINE["plan"](forward, [2 * one for one in forward], *CHAIN, *LIMITS)
    ends = list(pairwise([*starts, len(sent)]))
    assert data * len(starts) <= devices
    assert all(sum(stored[a:b]) + (len(ends) - row) * sum(kept[a:b]) <= memory for row, (a, b) in enumerate(ends))
    loads = [3 * sum(forward[a:b]) + (sent[a - 1] if a else 0) + (sent[b - 1] if b < len(sent) else 0) for a, b in ends]
    assert max(loads) * (-(-microbatches // data) + len(ends) - 1) == 5548


def test_the_best_chip() -> None:
    assert MINE["best_chip"](GIVEN["chips"], LAYERS, GIVEN["order"], CHAIN, LIMITS) == 1


def test_where_the_search_ends() -> None:
    assert MINE["early_stop"](GIVEN["areas"], GIVEN["times"], GIVEN["step"], GIVEN["patience"]) == 0
