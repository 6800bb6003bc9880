"""Sets of stacks: the fewest constants that runs left out ask for, none where they ask for none, and that the committed ones are those."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crossopt.instances.catalogue.entries import OWN, StackEntry
from crossopt.instances.catalogue.registry import device, names
from crossopt.instances.measured.runs import Measurement
from crossopt.reports.cli import main
from crossopt.solvers.measured.accuracy import once, predictions, publisher
from crossopt.solvers.measured.calibrate import STACK_CONSTANTS, StackFit, fit_stack, of_stacks, section_text
from tests.solvers.measured.measured_rows import reference_runs, timed


def as_the_model_says() -> list[Measurement]:
    """Runs of two sources that take as long as the device's own constants say."""
    rows = [replace(row, stack=OWN) for row in timed(("one", "other"))]
    return [replace(row, seconds=float(time)) for row, time in zip(rows, predictions(rows)[:, 0], strict=True)]


def test_runs_that_the_device_explains_tell_no_constant() -> None:
    fit = fit_stack(as_the_model_says())
    assert fit.entry == StackEntry({})
    assert max(fit.own.values()) < 1e-9
    assert len(fit.steps) == 2
    assert section_text("fsdp", fit, "runs.csv") == (
        "# no constant of fsdp is told by runs.csv: runs left out are predicted as well by the device's own constants\n"
    )


def test_runs_left_out_have_no_say_in_which_constants_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """All runs take 1.3 times as long, which the matrix rate explains in part with both sources in view; runs of one of them do not ask
    for it, so that the other is as far off as by the device's own constants, 1 - 1/1.3."""
    monkeypatch.setattr("crossopt.solvers.measured.calibrate.STACK_CONSTANTS", STACK_CONSTANTS[:1])
    fit = fit_stack([replace(row, seconds=1.3 * row.seconds) for row in as_the_model_says()])
    assert list(fit.entry.constants) == ["matrix"]
    assert fit.steps[1] == "with matrix: 15.9% off, each source by values that did not see it"
    assert fit.entry.left_out["other"] == pytest.approx(1 - 1 / 1.3) == fit.own["other"]
    assert fit.steps[-1].startswith("each source by constants that were chosen and fitted without it: ")


def test_models_are_left_out_of_a_single_source_and_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crossopt.solvers.measured.calibrate.STACK_CONSTANTS", STACK_CONSTANTS[:1])
    fit = fit_stack([replace(row, seconds=1.3 * row.seconds, source="one") for row in as_the_model_says()])
    assert fit.steps[1].endswith("off, each hidden size by values that did not see it")
    assert fit.steps[-1].startswith("each hidden size by constants that were chosen and fitted without it: ")


def test_a_set_is_told_with_its_runs_and_its_errors() -> None:
    entry = StackEntry({"attention": 0.39441}, rows={"one": 3, "two people": 4}, error=0.051, left_out={"one": 0.06, "two people": 0.05})
    assert section_text("fsdp", StackFit(entry, {}, ()), "runs.csv") == (
        "stacks: # fitted by `crossopt calibrate` to runs.csv; a set more goes below those that the file has\n"
        "  fsdp:\n"
        "    constants: {attention: 0.3944}\n"
        '    rows: {one: 3, "two people": 4}\n'
        "    error: 0.0510\n"
        '    left_out: {one: 0.0600, "two people": 0.0500}\n'
    )
    assert entry.runs == 7
    assert entry.expected == pytest.approx((3 * 0.06 + 4 * 0.05) / 7)


@pytest.mark.parametrize(
    ("source", "who"),
    [
        ("NeMo 24.07 performance summary", "NeMo"),
        ("Megatron-Bridge performance summary 26.02.01 NeMo Container", "Megatron-Bridge performance summary"),
        ("NVIDIA DGX Cloud benchmarking recipes v25.04.01 2025-05-21", "NVIDIA DGX Cloud benchmarking recipes"),
        ("Megatron-LM README 2020 scaling table", "Megatron-LM README 2020 scaling table"),
        ("mosaicml/llm-foundry training benchmarks", "mosaicml/llm-foundry training benchmarks"),
    ],
)
def test_editions_of_one_table_are_one_source(source: str, who: str) -> None:
    assert publisher(source) == who


def test_runs_of_other_stacks_and_too_few_of_them_are_refused() -> None:
    rows = timed(("one", "other"))
    with pytest.raises(ValueError, match=re.escape("runs.csv has no row of fsdp on this kind of device (32 of no stack that has sets)")):
        of_stacks(rows, ["fsdp"], "runs.csv")
    few = of_stacks([replace(row, stack="fsdp") for row in rows[:2]], ["fsdp"], "runs.csv")
    with pytest.raises(ValueError, match=r"2 distinct rows are too few: without any .*; some ten plans of two networks tell a set"):
        fit_stack(few)


def test_repeated_runs_and_editions_count_once() -> None:
    row = replace(timed()[0], stack="fsdp", source="NeMo 24.07 summary")
    found = of_stacks([row, replace(row, line=9), replace(row, source="NeMo 25.02 summary", seconds=2.0)], ["fsdp"], "runs.csv")
    assert [(one.source, one.stack, one.line) for one in found] == [("NeMo", OWN, row.line), ("NeMo", OWN, row.line)]


def test_the_command_takes_sets_of_runs_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernels = tmp_path / "kernels.csv"
    kernels.write_text("gpu,m,n,k,microseconds\nh100-sxm,128,128,128,5\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["calibrate", str(kernels), "--gpu", "h100-sxm", "--of", "products", "--stack", "fsdp"])
    assert "kernels are fitted one file at a time, whatever the stack" in capsys.readouterr().err


@pytest.mark.data
def test_every_committed_set_has_the_runs_and_the_error_that_it_tells() -> None:
    """In place of the fits themselves, which take minutes: `crossopt calibrate` prints them."""
    rows = [row for name in ("dev", "extra") for row in once(reference_runs(name).measurements)]
    seen = 0
    for name in names("hardware"):
        for stack, entry in device(name).stacks.items():
            mine = [row for row in rows if row.gpu == name and (row.stack == stack or (stack, row.stack) == ("fsdp", "torchtitan"))]
            if not entry.rows:
                continue
            off = np.abs(predictions(mine)[:, 0] / np.array([row.seconds for row in mine]) - 1.0)
            counted = {who: sum(publisher(row.source) == who for row in mine) for who in entry.rows}
            assert (counted, len(mine)) == (entry.rows, entry.runs), (name, stack)
            assert float(off.mean()) == pytest.approx(entry.error, abs=5e-4), (name, stack)
            own = np.abs(predictions([replace(row, stack=OWN) for row in mine])[:, 0] / np.array([row.seconds for row in mine]) - 1.0)
            assert entry.expected is not None
            assert entry.error < entry.expected < float(own.mean()), (name, stack)
            seen += 1
    assert seen == 2
