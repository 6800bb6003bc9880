"""A job that runs a plan: a batch script of Slurm, or a PyTorchJob (Kubeflow) or a JobSet of Kubernetes, around the settings of a stack.

Every form starts one torchrun a node with a fixed rank, so that neighbouring ranks are those that the plan was priced with. What only the
user knows (code, data, tokenizer, learning rate) is a variable without which the job ends in a sentence.

Read in: kubeflow/training-operator pkg/apis/kubeflow.org/v1/pytorch_types.go and pkg/controller.v1/pytorch/envvar.go (MASTER_ADDR,
MASTER_PORT and RANK of each pod); kubernetes-sigs/jobset examples/pytorch/resnet.yaml (the host name of the first pod); Kubernetes' indexed
jobs (JOB_COMPLETION_INDEX); sbatch and srun of Slurm (SLURM_NODEID).
"""

import re
from dataclasses import dataclass
from textwrap import indent

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.errors import RefusedError
from crossopt.reports.launching.launch import Launched

_PORT = 29500
_TRAY = 4
"""Devices of a machine where more than eight share a node's links: racks such as NVL72 are made of trays of four."""
_LARGEST = 8
_CHECKPOINTS = ("CHECKPOINTS", "the folder of checkpoints, from which a restarted job goes on")
_RATE = ("LEARNING_RATE", "the learning rate, such as 3e-4")
_STEPS = ("STEPS", "the number of steps, as the question names no tokens under goal")


@dataclass(frozen=True, slots=True)
class _Program:
    """What each node runs below torchrun."""

    command: str
    """The script and its arguments, as a shell takes them."""
    needs: tuple[tuple[str, str], ...]
    """Variables that the user fills in, each with what it is."""
    files: tuple[tuple[str, str], ...] = ()
    """Files that are written first, by name."""
    remarks: tuple[str, ...] = ()


def job_text(form: str, stack: str, instance: Instance, launched: Launched) -> str:
    """The job in a form of `--job`."""
    goal, devices = instance.goal, launched.plan.devices
    per_node = _per_node(instance, devices)
    steps = str(goal.steps) if goal is not None else '"$STEPS"'
    program = _PROGRAMS[stack](launched.text, steps)
    needs = (*program.needs, *(() if goal is not None else (_STEPS,)))
    name = _name(instance.name)
    length = () if goal is None else (f"{goal.steps:,} steps for {goal.tokens:.6g} tokens",)
    notes = (words for words in launched.notes if "yours to add" not in words)
    head = "".join(f"{line}\n" for line in launched.comments(*length, *program.remarks, *notes))
    script = _Script(program, needs, devices // per_node, per_node, launched.environment)
    if form == "slurm":
        return _slurm(name, head, script)
    accelerator = "amd.com/gpu" if str(instance.document.get("hardware", "")).startswith("mi") else "nvidia.com/gpu"
    return (_pytorchjob if form == "pytorchjob" else _jobset)(name, head, script, accelerator)


@dataclass(frozen=True, slots=True)
class _Script:
    program: _Program
    needs: tuple[tuple[str, str], ...]
    nodes: int
    per_node: int
    environment: tuple[tuple[str, str], ...]

    def variables(self) -> str:
        """What ends the job where a variable is not filled in, and what the stack needs in the environment."""
        lines = [f'export {name}="${{{name}:?{what}}}"' for name, what in self.needs]
        return "\n".join([*lines, *(f"export {name}={value}" for name, value in self.environment)])

    def files(self) -> str:
        return "".join(f"cat > {name} <<'END_OF_FILE'\n{text}\nEND_OF_FILE\n" for name, text in self.program.files)

    def torchrun(self, rank: str) -> str:
        fixed = f"--nnodes={self.nodes} --nproc-per-node={self.per_node}{rank}"
        return f'{fixed} --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" \\\n  {self.program.command}'


def _per_node(instance: Instance, devices: int) -> int:
    """Devices of a machine: those that share the innermost links, unless these join a rack."""
    domain = min(instance.cluster.level_sizes[0], devices)
    found = domain if domain <= _LARGEST else _TRAY
    if devices % found:
        raise RefusedError(f"--job: {devices} devices are no whole number of nodes of {found}")
    return found


def _name(name: str) -> str:
    """As Kubernetes takes it, with room for what it appends."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40].strip("-") or "training"


def _slurm(name: str, head: str, script: _Script) -> str:
    return f"""#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --nodes={script.nodes}
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node={script.per_node}
#SBATCH --exclusive
#SBATCH --output=%x-%j.log
## #SBATCH --partition=... --account=... --time=...   as your cluster wants them
{head}set -euo pipefail

# yours: fill in here, or `sbatch --export=ALL,NAME=VALUE,...`
{script.variables()}

read -r MASTER_ADDR < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
MASTER_PORT=${{MASTER_PORT:-{_PORT}}}
{script.files()}srun --kill-on-bad-exit=1 bash -c 'exec torchrun --node-rank="$SLURM_NODEID" "$@"' torchrun \\
  {script.torchrun("")}
"""


def _pods(script: _Script, rank: str, accelerator: str, address: str, restart: str) -> str:
    """The pod of a node, from its `spec` on."""
    given = [*((name, f'""  # REPLACE: {what}') for name, what in script.needs), *((name, f'"{v}"') for name, v in script.environment)]
    env = "".join(f"\n    - name: {name}\n      value: {value}" for name, value in given) + address
    lines = f"set -euo pipefail\n{script.variables()}\n{script.files()}exec torchrun {script.torchrun(f' --node-rank={rank}')}\n"
    return f"""spec:
  restartPolicy: {restart}
  containers:
  - name: pytorch
    image: REPLACE/WITH-YOUR-IMAGE  # with PyTorch and the stack
    {f"env:{env}" if env else "env: []"}
    command: [bash, -c]
    args:
    - |
{indent(lines, "      ")}    resources:
      limits:
        {accelerator}: {script.per_node}
    volumeMounts:
    - {{name: shared, mountPath: /shared}}
    - {{name: shm, mountPath: /dev/shm}}
  volumes:
  - name: shared
    persistentVolumeClaim: {{claimName: REPLACE-WITH-YOUR-CLAIM}}
  - name: shm
    emptyDir: {{medium: Memory}}
"""


def _pytorchjob(name: str, head: str, script: _Script, accelerator: str) -> str:
    pods = indent(_pods(script, '"$RANK"', accelerator, "", "OnFailure"), " " * 8)
    workers = (
        f"    Worker:\n      replicas: {script.nodes - 1}\n      restartPolicy: OnFailure\n      template:\n{pods}"
        if script.nodes > 1
        else ""
    )
    return f"""{head}apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: {name}
spec:
  nprocPerNode: "{script.per_node}"
  runPolicy: {{cleanPodPolicy: None}}
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: OnFailure
      template:
{pods}{workers}"""


def _jobset(name: str, head: str, script: _Script, accelerator: str) -> str:
    address = f"""
    - name: MASTER_ADDR
      value: {name}-nodes-0-0.{name}
    - name: MASTER_PORT
      value: "{_PORT}\""""
    pods = indent(_pods(script, '"$JOB_COMPLETION_INDEX"', accelerator, address, "Never"), " " * 10)
    return f"""{head}apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: {name}
spec:
  failurePolicy: {{maxRestarts: 3}}
  replicatedJobs:
  - name: nodes
    replicas: 1
    template:
      spec:
        parallelism: {script.nodes}
        completions: {script.nodes}
        completionMode: Indexed
        backoffLimit: 0
        template:
{pods}"""


# What the stacks run.


def _megatron(text: str, steps: str) -> _Program:
    code = ("MEGATRON", "the folder of Megatron-LM")
    data = ("DATA_PATH", "the prefix of preprocessed data, or several, each with its weight before it")
    tokenizer = ("TOKENIZER", "a tokenizer of Hugging Face, by its name or folder")
    more = (
        f'--train-iters {steps} --lr "$LEARNING_RATE"',
        "--data-path $DATA_PATH --split 99,1,0",
        '--tokenizer-type HuggingFaceTokenizer --tokenizer-model "$TOKENIZER"',
        '--save "$CHECKPOINTS" --load "$CHECKPOINTS" --save-interval 500',
    )
    arguments = " \\\n  ".join((text, *more))
    return _Program(f'"$MEGATRON/pretrain_gpt.py" \\\n  {arguments}', (code, data, tokenizer, _CHECKPOINTS, _RATE))


def _torchtitan(text: str, steps: str) -> _Program:
    data = ("DATA_PATH", "the folder of the data set")
    dataset = ("DATASET", "the name of the data set, such as c4")
    assets = ("TOKENIZER", "the folder of the model on Hugging Face, with its tokenizer")
    more = (
        f'--training.steps {steps} --optimizer.lr "$LEARNING_RATE"',
        '--training.dataset "$DATASET" --training.dataset_path "$DATA_PATH"',
        '--model.hf_assets_path "$TOKENIZER" --job.dump_folder "$CHECKPOINTS"',
    )
    arguments = " \\\n  ".join((text, *more))
    return _Program(f"-m torchtitan.train \\\n  {arguments}", (dataset, data, assets, _CHECKPOINTS, _RATE))


def _deepspeed(text: str, steps: str) -> _Program:
    document, _, calls = text.partition("\n\n")
    script = ("TRAIN", "your script, which takes what deepspeed.add_config_arguments adds, --steps and --data-path")
    command = f'"$TRAIN" --deepspeed --deepspeed_config deepspeed.json --steps {steps} --data-path "$DATA_PATH"'
    remarks = tuple(line.removeprefix("# ") for line in calls.splitlines() if line)
    return _Program(command, (script, ("DATA_PATH", "the data, as your script takes it")), (("deepspeed.json", document),), remarks)


def _fsdp(text: str, steps: str) -> _Program:
    count = steps if steps.isdecimal() else 'int(os.environ["STEPS"])'
    script = text.replace("def main(steps=10):", f"def main(steps={count}):")
    remark = "train.py has a stand-in for network and data: put yours there first"
    return _Program("train.py", (), (("train.py", script),), (remark,))


_PROGRAMS = {"megatron": _megatron, "torchtitan": _torchtitan, "deepspeed": _deepspeed, "fsdp": _fsdp}
