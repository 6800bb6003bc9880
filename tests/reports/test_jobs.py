"""Jobs around launch settings: what they start is read back as the plan, on as many nodes, with as many steps as the tokens take."""

import json
import os
import shlex
import subprocess
from math import ceil
from pathlib import Path
from typing import Any

import pytest
import yaml

from crossopt.reports.arguments import JOBS, STACKS
from crossopt.reports.cli import main
from crossopt.reports.launching.launch import EXPORTS
from crossopt.reports.launching.options import parsed_flags

pytestmark = pytest.mark.process
TOKENS = 3_000_000_001
GIVEN = (
    *("MEGATRON", "TRAIN", "DATA_PATH", "DATASET", "TOKENIZER", "CHECKPOINTS", "STEPS"),
    *("LEARNING_RATE", "MIN_LEARNING_RATE", "WARMUP_STEPS"),
)
QUESTION = """
kind: codesign
name: A "run"; it's 2 $nodes
workload: {model: llama3-8b, global_batch: 64}
cluster: {devices: 16, devices_per_node: 8}
hardware: h100-sxm
stack: STACK
choices: {zero: 3, microbatch: 1, recompute: full, overlap: [none, data]}
"""
OF_TORCHRUN = ("--nnodes", "--nproc-per-node", "--node-rank", "--master-addr", "--master-port")
MEGATRON_TRAINING = {
    "--rotary-base": "500000",
    "--norm-epsilon": "1e-05",
    "--lr-warmup-iters": "given",
    "--min-lr": "given",
    "--lr-decay-style": "cosine",
    "--clip-grad": "1.0",
    "--eval-interval": "1000",
    "--save-interval": "500",
    "--save-retain-interval": "5000",
    "--log-throughput": None,
}
TORCHTITAN_TRAINING = {
    "--lr_scheduler.warmup_steps": "given",
    "--lr_scheduler.min_lr_factor": "0.1",
    "--training.max_norm": "1.0",
    "--checkpoint.enable": None,
    "--checkpoint.interval": "500",
    "--checkpoint.keep_latest_k": "10",
}
OF_STACK = {"megatron": "megatron-core", "torchtitan": "torchtitan", "deepspeed": "deepspeed", "fsdp": "fsdp"}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, bool], Path]:
    """A result of each stack, of a question with a number of tokens and of one without."""
    found = dict[tuple[str, bool], Path]()
    for stack in STACKS:
        for goal in (True, False):
            folder = tmp_path_factory.mktemp(f"{stack}-{goal}")
            text = QUESTION.replace("STACK", OF_STACK[stack]) + (f"goal: {{tokens: {TOKENS}}}\n" if goal else "")
            (folder / "run.yaml").write_text(text, encoding="utf-8")
            found[stack, goal] = folder / "run.json"
            assert main(["solve", str(folder / "run.yaml"), "--out", str(found[stack, goal])]) == 0
    return found


def job(result: Path, stack: str, form: str) -> str:
    out = result.with_name(f"job-{form}")
    assert main(["export", str(result), "--as", stack, "--job", form, "--out", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    out.unlink()
    return text


def scripts(form: str, text: str) -> list[tuple[str, dict[str, str]]]:
    """What each node runs, with the environment that the cluster and the resource give it."""
    if form == "slurm":
        return [(text, {"SLURM_NODEID": str(node)}) for node in range(2)]
    document = yaml.safe_load(text)
    assert document["metadata"]["name"] == "a-run-it-s-2-nodes"
    if form == "pytorchjob":
        assert (document["apiVersion"], document["kind"], document["spec"]["nprocPerNode"]) == ("kubeflow.org/v1", "PyTorchJob", "8")
        specs = document["spec"]["pytorchReplicaSpecs"]
        assert {name: spec["replicas"] for name, spec in specs.items()} == {"Master": 1, "Worker": 1}
        of_nodes = [specs["Master"]["template"]["spec"], specs["Worker"]["template"]["spec"]]
        given = [{"RANK": str(node), "MASTER_ADDR": "first", "MASTER_PORT": "29500"} for node in range(2)]
    else:
        assert (document["apiVersion"], document["kind"]) == ("jobset.x-k8s.io/v1alpha2", "JobSet")
        (replicated,) = document["spec"]["replicatedJobs"]
        of_job = replicated["template"]["spec"]
        assert (of_job["parallelism"], of_job["completions"], of_job["completionMode"]) == (2, 2, "Indexed")
        of_nodes = [of_job["template"]["spec"]] * 2
        given = [{"JOB_COMPLETION_INDEX": str(node)} for node in range(2)]
    return [(script_of(pod), environment_of(pod) | more) for pod, more in zip(of_nodes, given, strict=True)]


def script_of(pod: dict[str, Any]) -> str:
    (container,) = pod["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 8, "rdma/REPLACE": 1}, "two nodes talk by RDMA"
    assert container["securityContext"]["capabilities"]["add"] == ["IPC_LOCK"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    assert container["command"] == ["bash", "-c"]
    (script,) = container["args"]
    return str(script)


def environment_of(pod: dict[str, Any]) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in pod["containers"][0]["env"] if entry["value"]}


def started(script: str, given: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    """The script with stand-ins for the cluster's programs; torchrun prints its arguments, one a line."""
    programs = {
        "srun": 'while [[ "$1" == --* ]]; do shift; done\nexec "$@"',
        "scontrol": 'echo "first"; echo "second"',
        "torchrun": "printf '%s\\n' \"$@\"",
    }
    (folder / "bin").mkdir(exist_ok=True)
    for name, text in programs.items():
        (folder / "bin" / name).write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
        (folder / "bin" / name).chmod(0o755)
    environment = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "SLURM_JOB_NODELIST": "nodes", **given}
    (folder / "job").write_text(script, encoding="utf-8")
    return subprocess.run(["bash", "job"], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("form", JOBS)
@pytest.mark.parametrize("stack", STACKS)
def test_every_node_starts_the_plan_with_its_rank(
    stack: str, form: str, results: dict[tuple[str, bool], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = job(results[stack, True], stack, form)
    steps = str(ceil(TOKENS / (64 * 8192)))
    assert main(["export", str(results[stack, True]), "--as", stack]) == 0
    printed = capsys.readouterr().out
    for node, (script, given) in enumerate(scripts(form, text)):
        assert "$(" not in script or form == "slurm"
        done = started(script, given | dict.fromkeys(GIVEN, "given"), tmp_path)
        assert done.returncode == 0, done.stderr
        words = done.stdout.splitlines()
        fixed = dict(word.removeprefix("--").split("=", 1) for word in words if "=" in word and word.startswith("--n"))
        assert (fixed["nnodes"], fixed["nproc-per-node"], fixed["node-rank"]) == ("2", "8", str(node))
        assert any(word.startswith("--master-addr=") and len(word) > len("--master-addr=") for word in words)
        if stack in ("megatron", "torchtitan"):
            wanted = parsed_flags(printed)
            behind = [word for word in words if word.partition("=")[0] not in OF_TORCHRUN]
            assert behind[:2] == ["-m", "torchtitan.train"] or behind[0] == "given/pretrain_gpt.py"
            of_training = MEGATRON_TRAINING if stack == "megatron" else TORCHTITAN_TRAINING
            flags = parsed_flags(shlex.join(behind[next(at for at, word in enumerate(behind) if word.startswith("--")) :]))
            assert {name: flags.get(name) for name in wanted} == wanted
            assert set(flags) <= set(EXPORTS[stack].options.names)
            assert {name: flags.get(name) for name in of_training} == of_training
            assert flags["--train-iters" if stack == "megatron" else "--training.steps"] == steps
        elif stack == "deepspeed":
            document = json.loads((tmp_path / "deepspeed.json").read_text(encoding="utf-8"))
            assert document["train_batch_size"] == 64
            assert words[-4:] == ["--steps", steps, "--data-path", "given"]
        else:
            program = (tmp_path / "train.py").read_text(encoding="utf-8")
            compile(program, "train.py", "exec")
            assert f"def main(steps={steps}):" in program
            assert words[-1] == "train.py"


@pytest.mark.parametrize("form", JOBS)
@pytest.mark.parametrize("stack", STACKS)
def test_a_job_ends_in_a_sentence_where_something_is_not_filled_in(
    stack: str, form: str, results: dict[tuple[str, bool], Path], tmp_path: Path
) -> None:
    script, given = scripts(form, job(results[stack, False], stack, form))[0]
    known = dict.fromkeys(GIVEN, "7")
    assert started(script, given | known, tmp_path).returncode == 0
    needed = [name for name in GIVEN if f"{{{name}:?" in script]
    assert "STEPS" in needed
    for name in needed:
        done = started(script, given | {other: value for other, value in known.items() if other != name}, tmp_path)
        assert (done.returncode != 0, done.stdout, f"{name}: " in done.stderr) == (True, "", True)


@pytest.mark.parametrize("form", JOBS)
def test_the_environment_is_what_megatron_asks_for(form: str, tmp_path: Path) -> None:
    """Tensor ranks on a device before Blackwell want one connection; nothing is set on Blackwell."""
    for hardware, wanted in (("h100-sxm", True), ("b200", False)):
        target = tmp_path / f"{hardware}.json"
        words = [f"hardware={hardware}", "choices={tensor: 2, sequence_parallel: true, zero: 1, microbatch: 1, recompute: full}"]
        (tmp_path / "run.yaml").write_text(QUESTION.replace("STACK", "megatron-core"), encoding="utf-8")
        assert main(["solve", str(tmp_path / "run.yaml"), *(part for word in words for part in ("--set", word)), "--out", str(target)]) == 0
        assert ("export CUDA_DEVICE_MAX_CONNECTIONS=1\n" in job(target, "megatron", form).replace("  ", "")) == wanted


@pytest.mark.parametrize(("devices", "per_node", "found"), [(64, 64, 4), (8, 8, 8), (4, 8, 4)])
def test_a_rack_is_made_of_trays(devices: int, per_node: int, found: int, tmp_path: Path) -> None:
    text = QUESTION.replace("STACK", "megatron-core").replace(
        "devices: 16, devices_per_node: 8", f"devices: {devices}, devices_per_node: {per_node}"
    )
    (tmp_path / "run.yaml").write_text(text, encoding="utf-8")
    assert main(["solve", str(tmp_path / "run.yaml"), "--out", str(tmp_path / "run.json")]) == 0
    script = job(tmp_path / "run.json", "megatron", "slurm")
    assert f"--nnodes={devices // found} --nproc-per-node={found} " in script
    assert f"#SBATCH --nodes={devices // found}\n" in script
    assert (
        "Worker" in yaml.safe_load(job(tmp_path / "run.json", "megatron", "pytorchjob"))["spec"]["pytorchReplicaSpecs"] or found == devices
    )


def test_a_job_says_its_time_its_deadline_and_what_is_unset(tmp_path: Path) -> None:
    """ZeRO-2 of Megatron must not inherit one connection; the step is priced, and 5,723 of them a quarter longer are the time limit."""
    text = QUESTION.replace("STACK", "megatron-core").replace("zero: 3", "zero: 2") + f"goal: {{tokens: {TOKENS}, target: TARGET}}\n"
    for target, said in (("1 h", "# THE DEADLINE of 1 hour IS MISSED: the run takes"), ("90 d", ", within the deadline of 90 days")):
        (tmp_path / "run.yaml").write_text(text.replace("TARGET", target), encoding="utf-8")
        assert main(["solve", str(tmp_path / "run.yaml"), "--out", str(tmp_path / "run.json")]) == 0
        script = job(tmp_path / "run.json", "megatron", "slurm")
        assert said in " ".join(script.replace("\n#    ", "").split())
        assert "unset CUDA_DEVICE_MAX_CONNECTIONS\n" in script
        step = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["value"]
        hours = ceil(1.25 * step * ceil(TOKENS / (64 * 8192)) / 3600.0)
        assert f"#SBATCH --time={hours // 24}-{hours % 24:02d}:00:00\n" in script
    target = f"{1.001 * step * ceil(TOKENS / (64 * 8192)):.0f} s"
    (tmp_path / "run.yaml").write_text(text.replace("TARGET", target), encoding="utf-8")
    assert main(["solve", str(tmp_path / "run.yaml"), "--out", str(tmp_path / "run.json")]) == 0
    script = job(tmp_path / "run.json", "megatron", "slurm")
    assert ", which may be missed: likely up to" in " ".join(script.replace("\n#    ", "").split())


@pytest.mark.parametrize("stack", STACKS)
def test_only_stacks_that_save_checkpoints_are_said_to_go_on(stack: str, results: dict[tuple[str, bool], Path]) -> None:
    script = job(results[stack, True], stack, "slurm")
    assert ("goes on from its last checkpoint" in script) == (stack in ("megatron", "torchtitan")) == ("look at each default" in script)


def test_pods_ask_for_the_accelerator_of_the_question_and_one_node_for_no_network(tmp_path: Path) -> None:
    text = QUESTION.replace("stack: STACK\n", "").replace("h100-sxm", "mi300x").replace("devices: 16", "devices: 8")
    (tmp_path / "run.yaml").write_text(text, encoding="utf-8")
    assert main(["solve", str(tmp_path / "run.yaml"), "--out", str(tmp_path / "run.json")]) == 0
    document = yaml.safe_load(job(tmp_path / "run.json", "fsdp", "jobset"))
    (container,) = document["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"amd.com/gpu": 8}
    assert "securityContext" not in container


def test_a_job_of_what_is_no_stack_is_refused(results: dict[tuple[str, bool], Path], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["export", str(results["fsdp", True]), "--as", "lp", "--job", "slurm"])
    assert (
        "--job: a job runs a training stack, and --as lp is none (take --as megatron, torchtitan, deepspeed or fsdp)"
        in capsys.readouterr().err
    )
