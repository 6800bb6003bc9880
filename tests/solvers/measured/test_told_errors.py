"""What answers tell of measured runs is what the runs say today."""

from dataclasses import asdict, replace
from typing import Final

import numpy as np
import pytest

from crossopt.instances.catalogue.entries import USUAL
from crossopt.instances.catalogue.known_runs import FEW, MEASURED, SEEN, errors_like, features
from crossopt.instances.measured.runs import Measurement
from crossopt.reports.facts.measured_runs import RANKED, RANKED_ON, Ranked
from crossopt.solvers.measured.accuracy import FEWEST, Priced, choices, ranking
from tests.solvers.measured.measured_rows import foretold, reference_runs

CORE: Final = ("NeMo", "Megatron-Bridge", "DGX Cloud", "Megatron-LM README", "Korthikanti")
SOURCES: Final = {"megatron-core": CORE, "torchtitan": ("torchtitan",), "fsdp": ("llm-foundry", "torchtitan", "fms-fsdp")}
ON_A100: Final = ("llm-foundry", "fms-fsdp")


@pytest.fixture(scope="module")
def runs() -> list[tuple[Measurement, float]]:
    """Each run once, with predicted over measured time, less 1."""
    found: dict[object, tuple[Measurement, float]] = {}
    for name in ("dev", "extra"):
        for row, seconds in zip(reference_runs(name).measurements, foretold(name)[:, 0], strict=True):
            key = (row.source, replace(row.workload, name=""), row.machine, row.cluster, row.plan, row.seconds)
            found.setdefault(key, (row, float(seconds) / row.seconds - 1.0))
    return list(found.values())


@pytest.mark.data
def test_two_layers_make_five_sixths_of_the_regret_on_one_node() -> None:
    """Of hidden size 2048 on four tensor ranks with a microbatch of 2, and 1024 on two with 4: the best plans of 32 of 124 questions."""
    questions: dict[object, list[tuple[float, float, Measurement]]] = {}
    for row, seconds in zip(reference_runs("dev").measurements, foretold("dev")[:, 0], strict=True):
        if "vTrain" in row.source and len(row.cluster.level_sizes) == 1:
            questions.setdefault(row.group, []).append((float(seconds), row.seconds, row))
    regrets: dict[bool, list[float]] = {True: [], False: []}
    for plans in questions.values():
        if len({row.plan for _, _, row in plans}) >= FEWEST:
            _, best, run = min(plans, key=lambda one: one[1])
            layer = (run.workload.hidden, run.plan.tensor, run.plan.microbatch)
            regrets[layer in {(2048, 4, 2), (1024, 2, 4)}].append(min(plans)[1] / best - 1.0)
    assert (len(regrets[True]), len(regrets[False])) == (32, 92)
    assert sum(regrets[True]) / sum(regrets[True] + regrets[False]) == pytest.approx(5 / 6, abs=0.02)
    assert (sum(regrets[False]) / 92, max(regrets[False])) == pytest.approx((0.008, 0.137), abs=0.001)


@pytest.mark.data
@pytest.mark.parametrize(("stack", "device"), tuple(MEASURED))
def test_answers_tell_as_many_runs_and_as_large_errors_as_there_are(stack: str, device: str, runs: list[tuple[Measurement, float]]) -> None:
    sources = ON_A100 if stack == "fsdp" and device.startswith("a100") else SOURCES[stack]
    known = [(row, error) for row, error in runs if row.gpu == device and any(source in row.source for source in sources)]
    errors = np.abs([error for _, error in known])
    told = MEASURED[stack, device]
    assert (len(errors), max(row.cluster.devices for row, _ in known)) == (told.runs, told.devices)
    assert round(float(errors.mean()), 3) == told.error
    assert told.most is None or round(float(errors.max()), 3) == told.most


@pytest.mark.data
def test_runs_of_like_plans_are_off_as_is_told(runs: list[tuple[Measurement, float]]) -> None:
    """Of dense networks whose stack is known, but for V100's noisy ones, with three sets that the page of published plans holds."""
    found: dict[str, dict[str, list[float]]] = {}
    for row, error in runs:
        if row.stack and row.workload.experts == 1 and not row.gpu.startswith("v100"):
            stack = USUAL if row.stack.startswith("megatron") else row.stack
            found.setdefault(stack, {}).setdefault(features(row.workload, asdict(row.plan)), []).append(round(error, 3))
    told = {stack: dict(known) for stack, known in SEEN.items()}
    staged = [told["torchtitan"].pop(f"{ranks} and pipeline ranks in 8 bits") for ranks in ("tensor", "tensor, context")]
    assert list(map(len, staged)) == [3, 3]
    assert told == {
        stack: {plans: () if len(errors) >= FEW else tuple(sorted(errors)) for plans, errors in known.items()}
        for stack, known in found.items()
    }


def test_a_run_is_no_evidence_for_its_own_range() -> None:
    """Of three that are known two count for one of them, all for others; of many none, and of none what taking over was off by."""
    assert errors_like("torchtitan", "context ranks in 8 bits", -0.2811) == (-0.315, -0.031)
    assert errors_like("torchtitan", "context ranks in 8 bits", -0.5) == (-0.315, -0.281, -0.031)
    assert errors_like("megatron-lm", "tensor ranks in 16 bits", -0.5) == ()
    assert errors_like("fsdp", "tensor ranks in 16 bits") == (-0.17, 0.17)
    assert errors_like("", "context ranks in 32 bits") == (-0.177, 0.177)


@pytest.mark.data
def test_answers_tell_how_plans_are_ranked_and_where_that_was_tested(
    runs: list[tuple[Measurement, float]],
) -> None:
    priced = [Priced(run, float(np.float32((1.0 + error) * run.seconds))) for run, error in runs]
    assert ranking(choices(one for one in priced if not one.run.gpu.startswith(RANKED_ON))) is None
    for name, told in RANKED.items():
        alone = name == "one node"
        found = ranking(choices(one for one in priced if (len(one.run.cluster.level_sizes) == 1) is alone))
        assert found is not None
        assert Ranked(found.groups, round(found.tau, 2), round(found.mean_regret, 3), round(found.largest_regret, 3)) == told
