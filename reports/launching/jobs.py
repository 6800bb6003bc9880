"""A job that runs a plan: a batch script of Slurm, or a PyTorchJob (Kubeflow) or a JobSet of Kubernetes, around the settings of a stack.

Every form starts one torchrun a node with a fixed rank, so that neighbouring ranks are those that the plan was priced with. What only the
user knows (code, data, tokenizer, learning rate) is a variable without which the job ends in a sentence; how often is evaluated and saved
is one with a default.

Read in: NVIDIA/Megatron-LM megatron/training/arguments.py (000c4ac24f61: a retained interval is a multiple of the saved one);
pytorch/torchtitan torchtitan/config/job_config.py (checkpoints and validation are off unless they are enabled); kubeflow/training-operator
pkg/apis/kubeflow.org/v1/pytorch_types.go and pkg/controller.v1/pytorch/envvar.go (MASTER_ADDR, MASTER_PORT and RANK of each pod);
kubernetes-sigs/jobset examples/pytorch/resnet.yaml (the host name of the first pod); Kubernetes' indexed jobs (JOB_COMPLETION_INDEX);
oracle-quickstart/oci-hpc-oke docs/running-pytorch-jobs-on-oke-using-hostnetwork-with-rdma.md (hostNetwork, dnsPolicy, IPC_LOCK);
Mellanox/k8s-rdma-shared-dev-plugin (names of RDMA resources); Slurm's sbatch and srun (SLURM_NODEID, --time as days-hours:minutes:seconds).
"""

import re
from dataclasses import dataclass
from math import ceil, inf
from textwrap import indent

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.errors import RefusedError
from crossopt.reports.launching.launch import Launched
from crossopt.reports.sheets.amounts import days_of

_PORT = 29500
_TRAY = 4
"""Devices of a machine where more than eight share a node's links: racks such as NVL72 are made of trays of four."""
_LARGEST = 8
_CHECKPOINTS = ("CHECKPOINTS", "the folder of checkpoints, from which a restarted job goes on")
_RATE = ("LEARNING_RATE", "the peak learning rate, such as 3e-4")
_WARMUP = ("WARMUP_STEPS", "steps over which the learning rate rises, such as 2000")
_CLIP = ("CLIP_GRAD", "1.0", "largest norm of gradients")
_SAVED = ("SAVE_INTERVAL", "500", "steps between checkpoints")
_USUAL_SLACK = 1.25
"""Time that is asked for, over the predicted one: for start, checkpoints, evaluation and the model's error. An assumption."""
_STEPS = ("STEPS", "the number of steps, as the question names no tokens under goal")


@dataclass(frozen=True, slots=True)
class _Program:
    """What each node runs below torchrun."""

    command: str
    """The script and its arguments, as a shell takes them."""
    needs: tuple[tuple[str, str], ...]
    """Variables that the user fills in, each with what it is."""
    usual: tuple[tuple[str, str, str], ...] = ()
    """Variables with a default, and what each is: to be looked at."""
    files: tuple[tuple[str, str], ...] = ()
    """Files that are written first, by name."""
    remarks: tuple[str, ...] = ()


def job_text(form: str, stack: str, instance: Instance, launched: Launched) -> str:
    """The job in a form of `--job`."""
    goal, devices = instance.goal, launched.plan.devices
    per_node = _per_node(instance, devices)
    steps = str(goal.steps_taken(launched.step_time)) if goal is not None else '"$STEPS"'
    program = _PROGRAMS[stack](launched.text, steps)
    needs = (*program.needs, *(() if goal is not None else (_STEPS,)))
    name = _name(instance.name)
    notes = (words for words in launched.notes if "yours to add" not in words)
    head = "".join(f"{line}\n" for line in launched.comments(*program.remarks, *notes))
    script = _Script(program, needs, devices // per_node, per_node, launched.environment)
    if form == "slurm":
        return _slurm(name, head, script, None if goal is None else goal.seconds(launched.step_time))
    accelerator = "amd.com/gpu" if getattr(instance.hardware, "name", "").startswith("mi") else "nvidia.com/gpu"
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
        return "\n".join([*lines, *(f"export {name}={value}" if value else f"unset {name}" for name, value in self.environment)])

    def defaults(self) -> str:
        """Variables with a default, as a shell sets them."""
        lines = [f'export {name}="${{{name}:-{value}}}"  # a default, yours to change: {what}' for name, value, what in self.program.usual]
        return "".join(f"{line}\n" for line in lines)

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


def _time_limit(seconds: float | None, resumes: bool) -> str:
    """The time limit of the job, in whole hours above the predicted time where there is one."""
    if seconds is None or seconds == inf:
        return "## #SBATCH --time=...   as long as your run takes"
    hours = ceil(seconds * _USUAL_SLACK / 3600.0)
    again = (
        "a job that is submitted again goes on from its last checkpoint" if resumes else "your script then has to go on from a checkpoint"
    )
    return (
        f"#SBATCH --time={hours // 24}-{hours % 24:02d}:00:00\n"
        f"## {days_of(seconds)} are predicted, and a quarter is added for checkpoints, evaluation and the model's error;\n"
        f"## shorten it to the limit of your partition: {again}"
    )


def _slurm(name: str, head: str, script: _Script, seconds: float | None) -> str:
    return f"""#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --nodes={script.nodes}
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node={script.per_node}
#SBATCH --exclusive
#SBATCH --output=%x-%j.log
{_time_limit(seconds, _CHECKPOINTS in script.needs)}
## #SBATCH --partition=... --account=...   as your cluster wants them
{head}set -euo pipefail

# yours: fill in here after each `:?`{", look at each default" if script.program.usual else ""}, or `sbatch --export=ALL,NAME=VALUE,...`
{script.defaults()}{script.variables()}

read -r MASTER_ADDR < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
MASTER_PORT=${{MASTER_PORT:-{_PORT}}}
{script.files()}srun --kill-on-bad-exit=1 bash -c 'exec torchrun --node-rank="$SLURM_NODEID" "$@"' torchrun \\
  {script.torchrun("")}
"""


_FABRIC = (
    "  # hostNetwork: true  # where pods reach InfiniBand or RoCE through the network of their node, and with it\n"
    "  # dnsPolicy: ClusterFirstWithHostNet\n",
    "        rdma/REPLACE: 1  # the RDMA resource of your cluster, such as rdma/hca_shared_devices_a or vpc.amazonaws.com/efa;\n"
    "        # without one messages between nodes take TCP, far slower than predicted; delete the line only with hostNetwork\n",
    "    securityContext: {capabilities: {add: [IPC_LOCK]}}  # RDMA pins memory\n",
)
"""What pods of several nodes need for the network between them: in the pod, among the limits, and in the container."""


def _pods(script: _Script, rank: str, accelerator: str, address: str, restart: str) -> str:
    """The pod of a node, from its `spec` on."""
    given = [(name, f'""  # REPLACE: {what}') for name, what in script.needs]
    given += [(name, f'"{value}"  # a default, yours to change: {what}') for name, value, what in script.program.usual]
    given += [(name, f'"{value}"') for name, value in script.environment if value]
    env = "".join(f"\n    - name: {name}\n      value: {value}" for name, value in given) + address
    lines = f"set -euo pipefail\n{script.variables()}\n{script.files()}exec torchrun {script.torchrun(f' --node-rank={rank}')}\n"
    host, limit, locked = _FABRIC if script.nodes > 1 else ("", "", "")
    return f"""spec:
  restartPolicy: {restart}
{host}  containers:
  - name: pytorch
    image: REPLACE/WITH-YOUR-IMAGE  # with PyTorch and the stack
    {f"env:{env}" if env else "env: []"}
    command: [bash, -c]
    args:
    - |
{indent(lines, "      ")}    resources:
      limits:
        {accelerator}: {script.per_node}
{limit}{locked}    volumeMounts:
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
    least = ("MIN_LEARNING_RATE", "the learning rate at the end, such as 3e-5")
    data = ("DATA_PATH", "the prefix of preprocessed data, or several, each with its weight before it")
    tokenizer = ("TOKENIZER", "a tokenizer of Hugging Face, by its name or folder")
    more = (
        f'--train-iters {steps} --lr "$LEARNING_RATE" --min-lr "$MIN_LEARNING_RATE"',
        '--lr-warmup-iters "$WARMUP_STEPS" --lr-decay-style "$LR_DECAY" --clip-grad "$CLIP_GRAD"',
        '--weight-decay "$WEIGHT_DECAY" --adam-beta2 "$ADAM_BETA2"',
        '--eval-interval "$EVAL_INTERVAL" --eval-iters "$EVAL_STEPS" --log-throughput --log-interval 10',
        "--data-path $DATA_PATH --split 99,1,0",
        '--tokenizer-type HuggingFaceTokenizer --tokenizer-model "$TOKENIZER"',
        '--save "$CHECKPOINTS" --load "$CHECKPOINTS" --save-interval "$SAVE_INTERVAL"',
        '--save-retain-interval "$KEEP_INTERVAL"',
    )
    arguments = " \\\n  ".join((text, *more))
    usual = (
        ("LR_DECAY", "cosine", "decay of the learning rate: cosine, linear or constant"),
        _CLIP,
        ("WEIGHT_DECAY", "0.1", "weight decay of the optimizer"),
        ("ADAM_BETA2", "0.95", "average of squared gradients"),
        ("EVAL_INTERVAL", "1000", "steps between evaluations"),
        ("EVAL_STEPS", "10", "batches of each, which no price here holds"),
        _SAVED,
        ("KEEP_INTERVAL", "5000", "steps between checkpoints that stay, a multiple of SAVE_INTERVAL; older others are deleted"),
    )
    needs = (code, data, tokenizer, _CHECKPOINTS, _RATE, least, _WARMUP)
    return _Program(f'"$MEGATRON/pretrain_gpt.py" \\\n  {arguments}', needs, usual)


def _torchtitan(text: str, steps: str) -> _Program:
    data = ("DATA_PATH", "the folder of the data set")
    dataset = ("DATASET", "the name of the data set, such as c4")
    assets = ("TOKENIZER", "the folder of the model on Hugging Face, with its tokenizer")
    more = (
        f'--training.steps {steps} --optimizer.lr "$LEARNING_RATE" --lr_scheduler.warmup_steps "$WARMUP_STEPS"',
        '--lr_scheduler.decay_type "$LR_DECAY" --lr_scheduler.min_lr_factor "$MIN_LR_FACTOR" --training.max_norm "$CLIP_GRAD"',
        '--training.dataset "$DATASET" --training.dataset_path "$DATA_PATH"',
        '--model.hf_assets_path "$TOKENIZER" --job.dump_folder "$CHECKPOINTS"',
        '--checkpoint.enable --checkpoint.interval "$SAVE_INTERVAL" --checkpoint.keep_latest_k "$KEEP_CHECKPOINTS"',
    )
    arguments = " \\\n  ".join((text, *more))
    usual = (
        ("LR_DECAY", "cosine", "decay of the learning rate: cosine, linear or sqrt"),
        ("MIN_LR_FACTOR", "0.1", "learning rate at the end, as a share of the peak"),
        _CLIP,
        _SAVED,
        ("KEEP_CHECKPOINTS", "10", "latest checkpoints that stay, at least 2; 0 keeps all"),
    )
    remark = "no evaluation: --validation.enable with --validation.freq, .steps and .dataset adds it, at a cost that is not modelled"
    needs = (dataset, data, assets, _CHECKPOINTS, _RATE, _WARMUP)
    return _Program(f"-m torchtitan.train \\\n  {arguments}", needs, usual, remarks=(remark,))


_SCRIPTED = "learning rate with warm-up and decay, clipping of gradients, evaluation and checkpoints are those of your script"


def _deepspeed(text: str, steps: str) -> _Program:
    document, _, calls = text.partition("\n\n")
    script = ("TRAIN", "your script, which takes what deepspeed.add_config_arguments adds, --steps and --data-path")
    command = f'"$TRAIN" --deepspeed --deepspeed_config deepspeed.json --steps {steps} --data-path "$DATA_PATH"'
    remarks = (*(line.removeprefix("# ") for line in calls.splitlines() if line), _SCRIPTED)
    needs = (script, ("DATA_PATH", "the data, as your script takes it"))
    return _Program(command, needs, files=(("deepspeed.json", document),), remarks=remarks)


def _fsdp(text: str, steps: str) -> _Program:
    count = steps if steps.isdecimal() else 'int(os.environ["STEPS"])'
    script = text.replace("def main(steps=10):", f"def main(steps={count}):")
    remark = "train.py has a stand-in for network and data: put yours there first"
    return _Program("train.py", (), files=(("train.py", script),), remarks=(remark, _SCRIPTED))


_PROGRAMS = {"megatron": _megatron, "torchtitan": _torchtitan, "deepspeed": _deepspeed, "fsdp": _fsdp}
