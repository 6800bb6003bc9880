"""A question about training on bought or rented devices, written from the few words of a command line.

    crossopt plan qwen3-32b --gpus 256xh100 --tokens 15T --context 8k --deadline 90d

What is not said is taken as most runs have it, and the written question says so in comments: about four million tokens a step, bf16, every
setting that the training stack launches.
"""

import json
import re
from dataclasses import dataclass
from math import gcd
from os.path import relpath
from pathlib import Path
from typing import Final

from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.huggingface import config_in, text_of
from crossopt.instances.catalogue.registry import device, is_path, model, names
from crossopt.instances.files.units import nearest, parse_quantity, quoted

USUAL_BATCH: Final = 4 * 2**20
"""Tokens of a step, an assumption: Llama 3 405B began with about as many and went to 16 million (arXiv:2407.21783)."""
STACK: Final = "megatron-core"
_GROUP: Final = re.compile(r"(?P<count>[0-9][0-9,]*)\s*[xX*]\s*(?P<name>\S+)|(?P<other>\S+?)\s*[:*]\s*(?P<number>[0-9][0-9,]*)")
_COUNT: Final = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?(?:e\+?[0-9]{1,2})?)(?P<power>[kKmMbBgGtT]?)")
_POWERS: Final = {"": 0, "k": 1, "m": 2, "b": 3, "g": 3, "t": 4}
_ENDINGS: Final = re.compile(
    r"-(?:instruct|base|chat|thinking-\d{4}|hf|it|pt|bf16|fp8|dynamic|block|(?:nv)?fp4(?:-v\d)?|awq|gptq|int[48]|(?:quantized\.)?w[48]a16|"
    r"v0\.\d|\d{4})$"
)
_SAME_SHAPES: Final = {
    **dict.fromkeys(("deepseekr1", "deepseekv3.1"), "deepseek-v3"),
    **dict.fromkeys(("llama3.170b", "llama3.370b"), "llama3-70b"),
    "llama3.1405b": "llama3-405b",
}
"""Models on the hub with the shapes of registered ones."""
_MOST: Final = 10**18
_GRAPHS: Final = (".onnx", ".pt2", ".pb", ".dot")
_DOWNLOAD: Final = "fetch it with `hf download {} config.json --local-dir model`, then name model/config.json"


@dataclass(frozen=True, slots=True)
class Group:
    """So many devices of a registered kind."""

    count: int
    device: str

    @property
    def name(self) -> str:
        return f"{self.count}x{self.device}"


@dataclass(frozen=True, slots=True)
class Run:
    """What the command line says of a training run."""

    model: str
    """A name of the registry or of the hub, or the path of a config.json."""
    tokens: float | None = None
    context: int | None = None
    batch: int | None = None
    """Samples of a step."""
    precision: str | None = None
    stack: str | None = None
    deadline: str | None = None
    rent: str | None = None


def groups_in(text: str, *, files: bool = False) -> tuple[Group, ...]:
    """Devices such as `256xh100` or `256xh100,128xb200`; where files are taken, too, their paths. A ValueError in a sentence where they are
    none."""
    parts = re.sub(r"(?:(?<=^)|(?<=,))\s*([0-9]{1,3}),(?=[0-9]{3}\s*[xX*])", r"\1", text)  # 1,024xh100 is one of them
    found = tuple(_group(part.strip(), files) for part in parts.split(","))
    if len({group.name for group in found}) < len(found):
        raise ValueError(f"{quoted(text)} names the same devices twice (name each once)")
    return found


def _group(text: str, files: bool) -> Group:
    found = _GROUP.fullmatch(text)
    if found is None:
        between = re.fullmatch(r"([0-9]+)\s*(?:-|\.\.|to)\s*([0-9]+)\s*[xX*]\s*(.+)", text)
        several = f"; several are {between[1]}x{between[3]},{between[2]}x{between[3]}, and --fewest seeks the number" if between else ""
        raise ValueError(f"{quoted(text)} is no number of devices (write COUNTxDEVICE, such as 256xh100-sxm{several})")
    count = int((found["count"] or found["number"]).replace(",", ""))
    if not 1 <= count <= 10**6:
        raise ValueError(f"{quoted(text)} is no number of devices from 1 to 1,000,000")
    named = found["name"] or found["other"]
    return Group(count, str(Path(named).resolve()) if files and is_path(named) else device_named(named))


def device_named(text: str) -> str:
    """The registered device that is meant: its name, or the beginning of only one name."""
    known = names("hardware")
    wanted = text.casefold()
    if wanted in known:
        return wanted
    begun = [name for name in known if name.startswith(f"{wanted}-")] or [name for name in known if _begins(name, wanted)]
    if len(begun) == 1:
        return begun[0]
    if begun:
        raise ValueError(f"{quoted(text)} is {' or '.join(begun)} (name one of them)")
    if wanted.endswith(".yaml"):
        raise ValueError(f"{quoted(text)} is a file, and here a registered device is needed (a question of joint design takes files)")
    guess = nearest(wanted, {*known, *(name.partition("-")[0] for name in known)})
    raise ValueError(
        f"{quoted(text)} is no device that is known ({f'did you mean {guess[0]}? ' if guess else ''}see `crossopt list hardware`)"
    )


def _begins(name: str, start: str) -> bool:
    """Whether a name begins so, not within a number: an H20 is no H200."""
    return name.startswith(start) and not (start[-1:].isdigit() and name[len(start) : len(start) + 1].isdigit())


_LIKE = 0.8
"""Likeness from which on another name may be meant."""
_FAMILY = re.compile("[a-z]+")
"""The letters with which the name of a model begins."""


def model_named(text: str) -> tuple[str, str]:
    """The key and the value of the workload that is meant: a registered model, also by its name on the hub or by the beginning of only one
    name, or a config.json."""
    path = Path(text)
    if path.is_dir() and (path / "config.json").is_file():
        return "config", str(path / "config.json")
    if path.suffix in _GRAPHS:
        raise ValueError(f"{quoted(text)} is a graph of operators (name a model or its config.json; `crossopt quantize` takes a graph)")
    if text in ("-", "/dev/stdin"):
        raise ValueError(f"{quoted(text)}: no model is read from standard input (name it, or its config.json)")
    if path.suffix in (".yaml", ".yml") and path.is_file():
        raise ValueError(f"{quoted(text)} is no model (`crossopt solve {text}` answers a question in YAML)")
    if path.is_file():
        return "config", text
    if path.suffix in (".json", ".yaml", ".yml"):
        names_of_models = "name a model of `crossopt list workloads`, or a config.json; `crossopt solve` answers a question in YAML"
        remedy = _DOWNLOAD.format("ORG/MODEL") if path.suffix == ".json" else names_of_models
        raise ValueError(f"{quoted(text)}: there is no such file ({remedy})")
    if found := _registered(text.rpartition("/")[2].casefold(), hub="/" in text):
        return "model", found
    raise ValueError(_no_model(text))


def _registered(name: str, hub: bool) -> str | None:
    """The registered model of this name, with or without what marks a format or an edition, or of the only one that begins so."""
    known = names("workloads")
    plain = {**_SAME_SHAPES, **{_plain(name): name for name in known}}
    wanted = name
    while wanted:
        if found := plain.get(_plain(wanted)) or plain.get(_plain(wanted.removeprefix("meta-"))):
            return found
        shorter = _ENDINGS.sub("", wanted)
        if shorter == wanted:
            break
        wanted = shorter
    begun = _begun(name)
    return begun[0] if len(begun) == 1 and not hub else None


def _begun(name: str) -> list[str]:
    return [other for other in names("workloads") if other.startswith(f"{name}-")]


def _no_model(text: str) -> str:
    """That a model is not known, with those that may be meant."""
    path, name = Path(text), text.rpartition("/")[2].casefold()
    begun, family = _begun(name), _FAMILY.match(name)
    guess = begun if len(begun) in (2, 3) else nearest(name, names("workloads"), likeness=_LIKE)
    siblings = [other for other in names("workloads") if family and other.startswith(family[0])]
    near = f"did you mean {' or '.join(guess)}? " if guess else f"registered are {', '.join(siblings)}; " if siblings else ""
    if path.is_dir():
        return f"{quoted(text)} is a folder without a config.json ({_DOWNLOAD.format('ORG/MODEL')})"
    if re.fullmatch(r"[\w.-]+/[\w.-]+", text):
        return f"{quoted(text)} is not in the registry, and nothing is downloaded ({near}{_DOWNLOAD.format(text)})"
    return f"{quoted(text)} is no model that is known ({near}see `crossopt list workloads`, or name its config.json from the hub)"


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", name.casefold())  # 1.3b is not 13b


def count_of(text: str, thousand: int = 1000, example: str = "") -> float:
    """A count such as `15T`; of a context and a batch a thousand is 1,024."""
    found = _COUNT.fullmatch(text.replace(",", "").strip())
    number = float(found["number"]) * thousand ** _POWERS[found["power"].casefold()] if found else float("nan")
    if not 0 < number < _MOST:
        raise ValueError(f"{quoted(text)} is no count (write for example {example or ('8k' if thousand == 1024 else '15T')})")
    return number


def samples_in(text: str, context: int) -> int:
    """A batch: samples as a plain number, or tokens with a letter such as `4M`."""
    number = count_of(text, 1024, "512, or 4M for tokens")
    return max(round(number / context), 1) if text.strip()[-1:].isalpha() else max(round(number), 1)


def context_of(run: Run) -> int:
    """Tokens of a sample; a ValueError where neither the command line nor the model says how many."""
    if run.context is not None:
        return run.context
    key, name = model_named(run.model)
    shape = model(name).transformer if key == "model" else None
    if key == "config":
        config_in(text_of(Path(name)), name)  # what is no configuration is refused as such
    if not isinstance(shape, Transformer):
        raise ValueError("the length of samples is needed (say for example --context 8k)")
    return shape.sequence


def question_text(run: Run, group: Group, folder: Path = Path(), limit: bool = True) -> str:
    """The question in YAML, to be read in this folder, from which it names a configuration; the deadline as a limit, or as a target."""
    key, name = model_named(run.model)
    written = json.dumps(relpath(name, folder)) if key == "config" else name
    context, entry = context_of(run), device(group.device)
    precision = run.precision or ("bf16" if "bf16" in entry.peak else "fp16")
    stack = run.stack or (STACK if group.device.startswith(("a100", "h100", "h200", "b200", "b300", "gb200", "v100")) else "")
    batch, remark = (run.batch, "") if run.batch else (_usual_batch(context, group.count), "  # about four million tokens a step")
    goal = [f"tokens: {f'{run.tokens:.12g}'.replace('e+', 'e')}"] if run.tokens else []
    goal += [f"{label}: {value}" for label, value in (("deadline" if limit else "target", run.deadline), ("rent", run.rent)) if value]
    lines = [
        "kind: codesign",
        f"name: {Path(name).parent.name or Path(name).stem if key == 'config' else name}-{group.name}",
        "workload:",
        f"  {key}: {written}",
        f"  sequence: {context}",
        f"  global_batch: {batch}{remark}",
        f"  precision: {precision}",
        f"cluster: {{devices: {group.count}}}",
        f"hardware: {group.device}",
        *([f"stack: {stack}"] if stack else []),
        "choices: all  # every setting of the plan that the stack launches" if stack else "choices: all",
        *([f"goal: {{{', '.join(goal)}}}"] if run.tokens else []),
        "objective: step_time",
    ]
    return "\n".join(lines) + "\n"


def _usual_batch(context: int, devices: int) -> int:
    """Samples of about USUAL_BATCH tokens, within a third, that share the largest divisor with the devices: replicas get equal parts."""
    usual = max(USUAL_BATCH // context, 1)
    near = range(max(usual - usual // 3, 1), usual + usual // 3 + 1)
    return max(near, key=lambda batch: (gcd(batch, devices), -abs(batch - usual)))


def seconds_of_deadline(text: str) -> float:
    """A deadline in seconds; a ValueError where it is no time."""
    return parse_quantity(text, "time")
