"""A GPU is added by three commands: its data sheet, what its runs say, and how far off both are, walked on runs that are made up."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
import yaml

from crossopt.instances.catalogue import registry
from crossopt.instances.measured import runs
from crossopt.instances.measured.runs import device_for, read_measured
from crossopt.reports.cli import main
from crossopt.solvers.measured import calibrate
from crossopt.solvers.measured.accuracy import predictions
from crossopt.solvers.measured.calibrate import STACK_CONSTANTS

COLUMNS = "source,model,layers,hidden,heads,ffn,vocab,seq,gpu,gpus,precision,tp,pp,mbs,gbs,zero_fsdp,framework,time_per_iter_s"
MODELS = ((16, 2048), (32, 4096))
TRUTH = {"matrix": 0.56, "attention": 0.2}
"""What the runs of the made-up table reach; not what an L40S does."""
ALL = tuple(one.name for one in STACK_CONSTANTS)
"""Which constants runs ask for is chosen among these: two that are off, and others that are not."""
QUESTION = """\
kind: codesign
workload: {model: gpt3-125m, global_batch: 64}
cluster: {devices: 8}
hardware: l40s
stack: fsdp
choices: {microbatch: [1, 2], zero: 3, overlap: data}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A registry of the test's own, to which a device may be added."""
    copytree(registry._FOLDER, tmp_path / "registry")
    monkeypatch.setattr(registry, "_FOLDER", tmp_path / "registry")
    forget = (registry.device.cache_clear, runs._registered.cache_clear)
    for one in forget:
        one()
    yield tmp_path
    for one in forget:
        one()


def sheet_of(text: str) -> str:
    """The data sheet of an L40S (NVIDIA L40S data sheet 2023), by that of an H100: what it says goes in, what it does not goes out."""
    sheet = yaml.safe_load(text)
    sheet |= {
        "peak": {"fp32": "91.6 TFLOP/s", "bf16": "362 TFLOP/s", "fp16": "362 TFLOP/s", "fp8": "733 TFLOP/s"},
        "dram": {"capacity": "44.4 GiB", "bandwidth": "864 GB/s", "energy": "6 pJ/bit"},
        "network": {"node": {"bandwidth": "25 GB/s"}, "cluster": {"bandwidth": "22 GB/s"}},
        "power": "350 W",
    }
    return yaml.safe_dump({name: sheet[name] for name in ("peak", "dram", "network", "devices_per_node", "power")})


def table(path: Path) -> None:
    """Runs of FSDP by two people, whose times the model itself tells under constants that the fit does not know."""
    rows = [
        f"{source},made up,{layers},{hidden},{hidden // 128},{4 * hidden},50000,{seq},l40s,8,bf16,1,1,{size},{8 * size},FSDP,FSDP,999"
        for number, source in enumerate(("one", "other"))
        for layers, hidden in MODELS
        for size, seq in ((1, 2048), (2, 4096), (4, 1024), (1, 16384))[number:]
    ]
    path.write_text("\n".join([COLUMNS, *rows]) + "\n", encoding="utf-8")
    seconds = predictions(
        read_measured(path).measurements,
        lambda run: replace(device_for(run), efficiency=replace(device_for(run).efficiency, **TRUTH), variants=()),
    )[:, 0]
    noise = np.random.default_rng(7).uniform(0.98, 1.02, len(rows))
    timed = [f"{row.rpartition(',')[0]},{time * factor}" for row, time, factor in zip(rows, seconds, noise, strict=True)]
    path.write_text("\n".join([COLUMNS, *timed]) + "\n", encoding="utf-8")


@pytest.mark.thorough
@pytest.mark.parametrize("tried", [("matrix", "attention", "stream", "data_overlap"), pytest.param(ALL, marks=pytest.mark.slow)])
def test_a_gpu_is_added_by_three_commands(
    tried: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(calibrate, "STACK_CONSTANTS", tuple(one for one in STACK_CONSTANTS if one.name in tried))
    new, runs, fitted = folder / "registry/hardware/l40s.yaml", folder / "runs.csv", folder / "set.yaml"
    assert main(["list", "hardware", "--sheet", "h100-sxm"]) == 0
    new.write_text(sheet_of(capsys.readouterr().out), encoding="utf-8")
    assert registry.device("l40s").taken_over == "a100-80g"
    table(runs)

    assert main(["calibrate", str(runs), "--gpu", "l40s", "--stack", "fsdp", "--out", str(fitted)]) == 0
    printed = capsys.readouterr()
    assert "the device's own constants: " in printed.err
    found = yaml.safe_load(fitted.read_text(encoding="utf-8"))["stacks"]["fsdp"]
    assert found["constants"] == pytest.approx(TRUTH, rel=0.05)
    assert found["rows"] == {"one": 8, "other": 6}
    assert found["error"] < 0.02
    assert max(found["left_out"].values()) < 0.05
    new.write_text(new.read_text(encoding="utf-8") + fitted.read_text(encoding="utf-8"), encoding="utf-8")
    registry.device.cache_clear()

    assert main(["accuracy", str(runs), "--by", "gpu", "--worst", "0"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.split()[:2] == ["l40s", "measured"])
    assert float(line.split()[4].rstrip("%")) < 2.0
    (folder / "question.yaml").write_text(QUESTION, encoding="utf-8")
    assert main(["solve", str(folder / "question.yaml"), "--verbose"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "priced by l40s with fsdp; fitted to 14 runs of 2 sources, " in told


def test_the_sheet_of_a_device_says_nothing_that_its_runs_said(capsys: pytest.CaptureFixture[str]) -> None:
    for name in registry.names("hardware"):
        assert main(["list", "hardware", "--sheet", name]) == 0
        sheet = yaml.safe_load(capsys.readouterr().out)
        assert {"peak", "dram", "network"} <= set(sheet)
        assert not {"efficiency", "optimistic", "pessimistic", "calibration", "stacks", "kernels", "taken_over", "versions"} & set(sheet)
        assert not {"stacks", "efficiency"} & set(sheet.get("sources", {}))
    with pytest.raises(SystemExit):
        main(["list", "hardware", "--sheet", "h100"])
    assert "--sheet: 'h100' is no known device (did you mean 'h100-sxm'?" in capsys.readouterr().err


def test_a_sheet_that_says_everything_but_constants_takes_those_of_the_class(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "hardware", "--sheet", "h100-sxm"]) == 0
    (folder / "registry/hardware/twin.yaml").write_text(capsys.readouterr().out, encoding="utf-8")
    twin, usual = registry.device("twin"), registry.device("h100-sxm")
    assert (twin.efficiency, twin.optimistic, twin.derived) == (usual.efficiency, usual.optimistic, ("efficiency",))
    assert twin.stacks["fsdp"].constants == usual.stacks["fsdp"].constants
    assert (twin.stacks["fsdp"].taken_over, twin.stacks["fsdp"].rows) == ("h100-sxm with fsdp", {})
