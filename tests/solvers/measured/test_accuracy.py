"""Errors of predicted step times and the ranking of plans, by hand, by properties and from the command line."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.evaluate import Design, evaluate
from crossopt.crossflow.hardware import Hardware
from crossopt.instances.measured.runs import Measured, Measurement, device_for, read_measured
from crossopt.reports.cli import main
from crossopt.solvers.measured.accuracy import (
    Accuracy,
    Choice,
    InRange,
    accuracy,
    choices,
    errors,
    kendall_tau,
    likely,
    predictions,
    ranking,
    regret,
    with_variants,
    worst,
)
from tests.solvers.measured.measured_rows import foretold, reference_runs

HEADER = (
    "id,source,model,layers,hidden,ffn,heads,seq,vocab,gpu,gpus,precision,tp,pp,dp,mbs,gbs,recompute,framework,time_per_iter_s,time_kind"
)
SHAPE = "24,2048,8192,16,1024,51200,A100-80GB,8,fp16"
Captured = pytest.CaptureFixture[str]


def row(number: int, plan: str, seconds: float, source: str = "one", kind: str = "measured", batch: int = 64) -> str:
    """A row of a small model on eight devices; the plan is its tensor, pipeline and data degrees and its microbatch."""
    return f"{number},{source},GPT,{SHAPE},{plan},{batch},full,Megatron-LM 2021,{seconds},{kind}"


ROWS = (
    row(1, "1,1,8,2", 1.0),
    row(2, "2,1,4,2", 1.2),
    row(3, "4,1,2,2", 1.5),
    row(4, "8,1,1,2", 2.5),
    row(5, "1,2,4,2", 1.3, source="two"),
    row(6, "1,2,4,2", 1.1, source="two", kind="derived"),
    row(7, "1,2,4,2", 1.3, source="two"),
    row(8, "3,1,1,2", 1.3, source="three"),
)
"""Four plans of one question, a run with a repeat and a derived time, and a row that cannot be priced."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "runs.csv"
    path.write_text("\n".join([HEADER, *ROWS]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def measured(file: Path) -> Measured:
    return read_measured(file)


def result_of(measured: Measured, predicted: list[float], by: str = "source") -> Accuracy:
    return accuracy(measured, np.array(predicted), by)


# --- predictions ---------------------------------------------------------------------------------------------------------------------


def test_a_prediction_is_what_the_full_model_says(measured: Measured) -> None:
    """Tables and groups are for speed: `evaluate` prices each run alone."""
    seconds = predictions(measured.measurements)
    assert seconds.shape == (7, 1)
    for run, predicted in zip(measured.measurements, seconds[:, 0], strict=True):
        assert predicted == pytest.approx(evaluate(run.workload, Design(device_for(run), run.cluster, run.plan)).step_time, rel=1e-12)


def varied(factors: np.ndarray | float) -> Callable[[Measurement], Hardware]:
    """Devices with their constants, resources and links times the factors."""

    def device_of(run: Measurement) -> Hardware:
        usual = device_for(run)
        constants = replace(usual.efficiency, host=usual.efficiency.host * factors, step=usual.efficiency.step * factors)
        links = tuple(replace(link, bandwidth=link.bandwidth * factors) for link in usual.links)
        return replace(usual, vector_throughput=usual.vector_throughput * factors, links=links, efficiency=constants)

    return device_of


def only_constants(factors: np.ndarray | float) -> Callable[[Measurement], Hardware]:
    def device_of(run: Measurement) -> Hardware:
        usual = device_for(run)
        return replace(usual, efficiency=replace(usual.efficiency, matrix=usual.efficiency.matrix * factors))

    return device_of


@pytest.mark.parametrize("variation", [varied, only_constants])
def test_many_sets_of_constants_at_once_are_the_same_sets_one_by_one(
    variation: Callable[[np.ndarray | float], Callable[[Measurement], Hardware]], measured: Measured
) -> None:
    factors = np.array([0.5, 0.9, 1.1])
    together = predictions(measured.measurements, variation(factors))
    assert together.shape == (7, 3)
    for column, factor in enumerate(factors):
        assert np.array_equal(together[:, column], predictions(measured.measurements, variation(float(factor)))[:, 0])
    assert len(np.unique(together[0])) == 3


def test_constants_and_resources_must_agree_on_how_many_devices_there_are(measured: Measured) -> None:
    def device_of(run: Measurement) -> Hardware:
        usual = varied(np.array([1.0, 2.0]))(run)
        return replace(usual, efficiency=replace(usual.efficiency, matrix=np.array([0.5, 0.6, 0.7])))

    with pytest.raises(ValueError, match="different numbers of devices"):
        predictions(measured.measurements, device_of)


def test_no_runs_have_no_predictions() -> None:
    assert predictions([]).shape == (0, 1)


def test_the_likely_range_of_a_run_is_the_one_that_its_design_has(measured: Measured) -> None:
    seconds = predictions(measured.measurements, with_variants)
    assert np.array_equal(seconds[:, 0], predictions(measured.measurements)[:, 0]), "the first set is the central one"
    for run, found in zip(measured.measurements, likely(measured.measurements, seconds), strict=True):
        assert found == pytest.approx(evaluate(run.workload, Design(device_for(run), run.cluster, run.plan)).likely, rel=1e-12)


def test_a_device_without_other_sets_has_no_likely_range_beside_those_that_have(
    measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plain(run: Measurement) -> Hardware:
        return replace(device_for(run), variants=()) if run.gpu == "v100-32g" else device_for(run)

    monkeypatch.setattr("crossopt.solvers.measured.accuracy.device_for", plain)
    first, *others = measured.measurements
    runs = [replace(first, machine=replace(first.machine, gpu="v100-32g")), *others]
    seconds = predictions(runs, with_variants)
    assert [found is None for found in likely(runs, seconds)] == [True] + [False] * 6
    assert np.ptp(seconds[0]) == 0.0


def test_runs_inside_their_ranges_are_counted_once_and_only_where_there_are_ranges(measured: Measured) -> None:
    """Times 1.0, 1.2, 1.5 and 2.5 of source one: on the lower end, above, without a range, inside; the repeat in two counts once."""
    ranges = [(1.0, 1.1), (1.0, 1.1), None, (2.0, 3.0), (1.2, 1.4), None, (1.2, 1.4)]
    result = accuracy(measured, np.ones(7), "source", ranges)
    assert [line.in_range for line in result.lines] == [InRange(2, 3, 0, 1, 1), InRange(1, 1, 0, 0, 1), None, None]
    assert [line.in_range for line in result.totals] == [InRange(3, 4, 0, 1, 1), None]
    below = accuracy(measured, np.ones(7), "source", [(3.0, 4.0), *[None] * 6])
    assert below.lines[0].in_range == InRange(0, 1, 1, 0, 1)


# --- errors --------------------------------------------------------------------------------------------------------------------------


def test_errors_by_hand(measured: Measured) -> None:
    """Predicted 1.1, 1.2, 1.2, 3.0 against 1.0, 1.2, 1.5, 2.5: +10 %, 0, -20 %, +20 %."""
    line = result_of(measured, [1.1, 1.2, 1.2, 3.0, 1.0, 1.0, 1.0]).lines[0]
    assert line.errors is not None
    assert (line.label, line.derived, line.errors.rows) == ("one", False, 4)
    assert line.errors.mean == pytest.approx(0.125)
    assert line.errors.median == pytest.approx(0.15)
    assert line.errors.bias == pytest.approx(0.025)
    assert line.errors.median_bias == pytest.approx(0.05)
    assert abs(line.errors.largest) == pytest.approx(0.2)


def test_measured_and_derived_times_are_never_in_one_figure(measured: Measured) -> None:
    result = result_of(measured, [1.0] * 7)
    assert [(line.label, line.derived, line.errors.rows if line.errors else 0) for line in (*result.lines, *result.totals)] == [
        ("one", False, 4),
        ("two", False, 1),
        ("two", True, 1),
        ("three", None, 0),
        ("all", False, 5),
        ("all", True, 1),
    ]


def test_a_repeated_row_counts_once_and_a_rejected_one_is_counted(measured: Measured) -> None:
    result = result_of(measured, [1.0] * 7)
    assert [line.repeats for line in result.lines] == [0, 1, 0, 0]
    assert result.rejected_by_label == {"one": 0, "two": 0, "three": 1}
    assert [refused.line for refused in result.rejected] == [9]


@pytest.mark.parametrize(
    ("by", "labels"),
    [
        ("gpu", ["a100-80g"]),
        ("model", ["GPT"]),
        ("nodes", ["one, one node", "two, one node", "three, rejected"]),
        ("tensor", [*(f"one, tensor {degree}" for degree in (1, 2, 4, 8)), "two, tensor 1", "rejected"]),
        ("pipeline", ["one, pipeline 1", "two, pipeline 2", "rejected"]),
        ("microbatch", ["one, microbatch 2", "two, microbatch 2", "rejected"]),
    ],
)
def test_what_rows_are_told_apart_by(by: str, labels: list[str], measured: Measured) -> None:
    assert list(dict.fromkeys(line.label for line in result_of(measured, [1.0] * 7, by).lines)) == labels


def test_the_worst_runs_are_those_furthest_off_as_a_ratio(measured: Measured) -> None:
    """A quarter of the time is worse than three times the time."""
    result = result_of(measured, [0.25, 1.2, 4.5, 2.5, 1.3, 1.1, 1.3])
    assert [outlier.run.id for outlier in worst(result, 2)] == ["1", "3"]


def test_a_perfect_model_has_no_error(measured: Measured) -> None:
    result = result_of(measured, [run.seconds for run in measured.measurements])
    found = errors(result.priced)
    assert (found.mean, found.median, found.bias, found.largest) == (0.0, 0.0, 0.0, 0.0)


# --- ranking -------------------------------------------------------------------------------------------------------------------------


def test_only_plans_of_one_question_are_ranked_and_repeats_have_their_median(measured: Measured) -> None:
    groups = choices(result_of(measured, [1.0, 2.0, 3.0, 4.0, 5.0, 5.0, 5.0]).priced)
    assert groups == [
        [Choice(1.0, 1.0), Choice(1.2, 2.0), Choice(1.5, 3.0), Choice(2.5, 4.0)],
        [Choice(1.3, 5.0)],
        [Choice(1.1, 5.0)],
    ]


def test_another_batch_is_another_question(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    lines = [row(1, "1,1,8,2", 1.0), row(2, "1,1,8,1", 1.2), row(3, "1,1,8,1", 2.0, batch=128), row(4, "1,1,8,1", 1.4)]
    path.write_text("\n".join([HEADER, *lines]) + "\n", encoding="utf-8")
    found = choices(result_of(read_measured(path), [1.0, 2.0, 3.0, 2.0]).priced)
    assert [len(group) for group in found] == [2, 1]
    assert found[0][1].measured == pytest.approx(1.3)


def test_tau_by_hand() -> None:
    """Of the six pairs of 1 2 3 4 against 1 3 2 4, five are in order: (5 - 1) / 6."""
    assert kendall_tau([Choice(1, 1), Choice(2, 3), Choice(3, 2), Choice(4, 4)]) == pytest.approx(4 / 6)


def test_a_model_that_tells_no_plan_from_another_ranks_nothing_and_regrets_the_worst() -> None:
    group = [Choice(1.0, 7.0), Choice(2.0, 7.0), Choice(4.0, 7.0)]
    assert (kendall_tau(group), regret(group)) == (0.0, 3.0)


def test_regret_by_hand() -> None:
    """The plan that is predicted to be fastest takes 1.5 s, the best 1.2 s."""
    assert regret([Choice(1.2, 2.0), Choice(1.5, 1.0), Choice(3.0, 3.0)]) == pytest.approx(0.25)


def test_small_groups_are_not_ranked() -> None:
    assert ranking([[Choice(1, 2), Choice(2, 1)]]) is None


def test_ranking_is_the_mean_over_questions() -> None:
    right = [Choice(1.0, 1.0), Choice(2.0, 2.0), Choice(3.0, 3.0)]
    wrong = [Choice(1.0, 3.0), Choice(2.0, 2.0), Choice(3.0, 1.0)]
    found = ranking([right, wrong])
    assert found is not None
    assert (found.groups, found.tau, found.mean_regret, found.largest_regret, found.best_found) == (2, 0.0, 1.0, 2.0, 0.5)


TIMES = st.lists(st.integers(1, 50).map(float), min_size=3, max_size=8)


@given(TIMES, st.permutations(range(8)))
def test_tau_is_between_minus_one_and_one_and_turns_with_the_order(times: list[float], order: list[int]) -> None:
    predicted = [float(order[place]) for place in range(len(times))]
    tau = kendall_tau([Choice(*pair) for pair in zip(times, predicted, strict=True)])
    turned = kendall_tau([Choice(time, -guess) for time, guess in zip(times, predicted, strict=True)])
    assert -1.0 <= tau <= 1.0
    assert turned == -tau


@given(TIMES, st.floats(0.1, 10.0))
def test_only_the_order_of_predictions_matters_for_the_regret(times: list[float], factor: float) -> None:
    assert regret([Choice(time, time) for time in times]) == 0.0
    assert regret([Choice(time, 100.0 - time) for time in times]) == regret([Choice(time, factor * (100.0 - time)) for time in times])


def test_the_order_of_rows_does_not_matter() -> None:
    group = [Choice(1.0, 2.0), Choice(1.5, 1.0), Choice(2.0, 4.0), Choice(3.0, 3.0)]
    assert len({(kendall_tau(order), regret(order)) for order in permutations(group)}) == 1


# --- command line --------------------------------------------------------------------------------------------------------------------


def test_the_command_prints_errors_ranking_and_rejected_rows(file: Path, capsys: Captured) -> None:
    assert main(["accuracy", str(file)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("runs.csv   8 rows, 7 priced (7 with a setting that the source does not state), 1\n")
    assert "the degrees do not multiply to the number of GPUs (line 9)" in " ".join(out.split())
    assert err == ""


def test_the_command_draws_a_picture(file: Path, tmp_path: Path, capsys: Captured) -> None:
    target = tmp_path / "plot.svg"
    assert main(["accuracy", str(file), "--plot", str(target), "--by", "gpu"]) == 0
    assert ElementTree.parse(target).getroot().tag.endswith("svg")
    assert any(line.split()[:2] == ["gpu", "times"] for line in capsys.readouterr().out.splitlines())


def test_the_command_gives_json(file: Path, capsys: Captured) -> None:
    assert main(["accuracy", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [run["id"] for run in found["runs"]] == ["1", "2", "3", "4", "5", "6", "7"]
    assert [refused["line"] for refused in found["rejected"]] == [9]


def test_a_bad_cell_costs_its_row_and_not_the_file(file: Path, capsys: Captured) -> None:
    file.write_text(file.read_text().replace("2048", "2048 (recalled)", 1), encoding="utf-8")
    assert main(["accuracy", str(file)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("runs.csv   8 rows, 6 priced (6 with a setting that the source does not state), 2\n")
    assert "hidden: '2048 (recalled)' is no number, a number above 0 is needed (or leave the cell empty) (line 2)" in " ".join(out.split())
    assert err == ""


def test_a_file_without_a_needed_column_exits_with_three_and_its_faults(file: Path, capsys: Captured) -> None:
    file.write_text(file.read_text().replace("hidden", "width", 1), encoding="utf-8")
    assert main(["accuracy", str(file)]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"{file}:1:1: hidden: this column is missing")


def test_a_file_without_a_run_that_can_be_priced_exits_with_three_and_the_reasons(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(f"{HEADER}\n{ROWS[-1]}\n", encoding="utf-8")
    target = tmp_path / "empty.svg"
    assert main(["accuracy", str(path), "--plot", str(target)]) == 3
    out, err = capsys.readouterr()
    assert out.startswith("runs.csv   1 row, 0 priced, 1 rejected\n")
    assert "the degrees do not multiply" in out
    assert err == f"--plot {target}: not written, as no run could be priced\n"
    assert not target.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--by", "colour"),
        ("--worst", "-1"),
        ("--worst", "some"),
        ("--plot", "-"),
        ("--plot", "nowhere/plot.svg"),
        ("--plot", "nothing.csv"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_read(arguments: tuple[str, str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["accuracy", "nothing.csv", *arguments])
    assert caught.value.code == 2


# --- the reference data --------------------------------------------------------------------------------------------------------------


@pytest.mark.data
def test_the_reference_runs_have_finite_figures() -> None:
    """The number of questions is that of groups of at least three plans of equal model, sequence, devices, batch and recomputation."""
    found, seconds = reference_runs("dev"), foretold("dev")
    assert seconds.shape == (1437, 3)
    assert np.all(np.isfinite(seconds)) and np.all(seconds > 0.0)
    result = accuracy(found, seconds[:, 0])
    assert {line.label[:6]: line.ranking.groups for line in result.lines if line.ranking} == {"vTrain": 126, "BigSci": 11}
    assert all(np.isfinite(line.errors.mean) for line in result.totals if line.errors)
