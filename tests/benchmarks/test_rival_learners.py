"""Regressors on what is left: they find what follows from settings, and nothing of a layer that they did not see."""

from dataclasses import replace

import numpy as np
import pytest

from crossopt.crossflow.arrays import Array, Ints
from crossopt.crossflow.hardware import Cluster
from crossopt.crossflow.plan import Plan
from crossopt.crossflow.workload import Transformer
from crossopt.instances.measured.runs import Machine, Measurement
from tests.benchmarks.rival_ceilings import second_best
from tests.benchmarks.rival_learners import LEARNERS, change, corrected, features, folds_of_layers, folds_of_rows, layer_of
from tests.benchmarks.rival_ranges import by_chance
from tests.benchmarks.rival_readings import once_only

MODEL = Transformer("GPT", layers=8, hidden=1024, heads=16, ffn=4096, vocabulary=51200, sequence=1024, global_batch=64)


def row(hidden: int, plan: Plan, batch: int = 64) -> Measurement:
    model = replace(MODEL, hidden=hidden, global_batch=batch)
    cluster = Cluster(plan.devices, (plan.devices,))
    source = "vTrain (MICRO 2024) ground truth"
    return Measurement(1, "1", source, "GPT", Machine("a100-80g", 8), model, cluster, plan, 1.0, False)


ROWS = [
    row(hidden, Plan(tensor=tensor, data=8 // tensor, microbatch=size, recompute="full"), batch)
    for hidden in (1024, 2048)
    for tensor in (1, 2, 4)
    for size in (1, 2, 4)
    for batch in range(64, 128, 8)
]


def left(errors: Array, folds: Ints, name: str) -> float:
    """Of errors of runs that all are predicted to take a second, what a regressor leaves in the mean."""
    rows = [replace(each, seconds=float(np.exp(-error))) for each, error in zip(ROWS, errors, strict=True)]
    times = np.array([each.seconds for each in rows])
    return float(np.abs(np.log(corrected(rows, np.ones(len(rows)), folds, LEARNERS[name]) / times)).mean())


@pytest.mark.parametrize("name", LEARNERS)
def test_an_error_that_follows_from_a_setting_is_found_in_layers_not_seen(name: str) -> None:
    """A larger hidden size takes a tenth less than predicted; of that two thirds at the most stay, by what holds weights small."""
    errors = np.array([0.1 * (each.workload.hidden > 1024) for each in ROWS])
    assert left(errors, folds_of_layers(ROWS), name) < 0.67 * errors.mean()


@pytest.mark.parametrize("name", ["nearest", "trees"])
def test_what_is_a_layers_own_is_looked_up_and_not_foreseen(name: str) -> None:
    """Every other layer 10 % too long, its neighbours as much too short: found with rows left out, hardly any of it with layers."""
    errors = 0.1 * (-1.0) ** np.array([np.log2(each.workload.hidden * each.plan.tensor * each.plan.microbatch) for each in ROWS])
    assert left(errors, folds_of_rows(ROWS), name) < 0.02
    assert left(errors, folds_of_layers(ROWS), name) > 0.06


def test_a_layer_is_left_out_whole() -> None:
    folds = folds_of_layers(ROWS)
    assert {len(set(folds[[layer_of(one) == layer for one in ROWS]])) for layer in map(layer_of, ROWS)} == {1}
    assert set(folds) == set(range(5))


def test_features_have_no_size_of_their_own() -> None:
    """Mean 0 and spread 1, and 0 where all are alike, as sequences are here."""
    found = features(ROWS, np.ones(len(ROWS)))
    assert found.mean(axis=0) == pytest.approx(np.zeros(found.shape[1]), abs=1e-12)
    assert set(found.std(axis=0).round(9).tolist()) == {0.0, 1.0}


def test_a_doubled_setting_moves_errors_up_and_down() -> None:
    """Doubled microbatches cost one tensor rank 10 % more, two as much as they should, and four 10 % less, in two hidden sizes each."""
    sign = {1: 1.0, 2: 0.0, 4: -1.0}
    seconds = np.exp([0.1 * sign[each.plan.tensor] * np.log2(each.plan.microbatch) for each in ROWS])
    found = change(ROWS, seconds, {"microbatch": 2})
    assert (found.pairs, len(found.layers)) == (12 * 8, 12)
    assert (found.count(1.0), found.count(-1.0)) == (4, 4)
    assert change(ROWS, seconds, {"pipeline": 2}).pairs == 0


def test_the_second_best_plan_by_hand() -> None:
    plans = {Plan(microbatch=1): [float(np.log(2.0))], Plan(microbatch=2): [float(np.log(2.2))], Plan(microbatch=4): [2.0]}
    assert second_best(plans) == pytest.approx(0.1)


def test_chance_by_hand() -> None:
    """All of two are inside 81 times of a hundred, at most one of two 19 times, none of one 10 times."""
    assert [by_chance(share, count) for share, count in ((1.0, 2), (0.5, 2), (0.0, 1))] == pytest.approx([0.81, 0.19, 0.1])


def test_runs_on_several_nodes_are_read_as_they_are() -> None:
    small, large = ROWS[0], replace(ROWS[0], cluster=Cluster(16, (8, 16)))
    assert (once_only(small).plan.recompute, once_only(large).plan.recompute) == ("none", "full")
