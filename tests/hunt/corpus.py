"""What is hit by chance: questions, files beside them, and saved results of every kind, with the commands that read them."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from crossopt.instances.catalogue.registry import entry_text, shipped
from crossopt.instances.kinds import KINDS
from crossopt.instances.traces.chakra import COLLECTIVE, COMP, Attribute, Metadata, Node, written
from tests.instances.catalogue.sections import LLAMA
from tests.instances.operators.onnx_models import transformer
from tests.instances.placement.test_formats import document as graph_document
from tests.instances.sharding.files import document as problem_document
from tests.instances.sharding.tiny import tiny
from tests.instances.traces.test_kineto import LAUNCHED
from tests.paths import INSTANCES, ROOT
from tests.samples import SAMPLES
from tests.solvers.codesign.questions import GEMM, TINY_FREE
from tests.solvers.test_vipr import BRANCHED, MOST, ROUNDED

QUALITY = """\
kind: layers
objective: time
graph: sound.json
hardware: h100-sxm
formats: [fp8]
quality_file: losses.csv
budgets: {quality: 0.6}
"""
RARELY = 0.02
"""How often what takes a second is drawn, beside what takes some milliseconds."""
VALIDATE, IMPORT = (("validate", "FILE"),), ("import", "FILE")
CHECK = (("check", "FILE"), ("report", "FILE", "--as", "FORM", "--out", "PAGE"))
"""FILE is the one that was hit, PAGE one that is written, and FORM any form of it."""
CERTIFICATES = ("benchmark0.yaml", "benchmark1.yaml", "sharding0.yaml", "sharding1.yaml", "problem.json", "free-milp")
"""Results whose proof is written as a certificate, where it is a tree."""
HIT = "hit-"
"""Before the name of a file that was hit."""
BUDGET = "budget: {die_area: 900 mm^2, power: 300 W}\n"
TODAY = """\
kind: codesign
workload: {model: deepseek-v3, sequence: 4096, global_batch: [1024, 2048], precision: bf16, capacity_factor: 1.1}
cluster: {devices: [256, 512], devices_per_node: 8, reserved_memory: 8 GiB}
hardware: h100-sxm
stack: megatron-core
choices: {rest: all, tensor: [1, 2, 4, 8], zero: [0, 1]}
only: [zero]
objective: time_per_sample
"""
"""A question about a network and a stack of today."""
SOLVED: dict[str, tuple[str, tuple[str, ...]]] = {
    "tiny": ("tiny", ()),
    "expert": ("tiny", ("--engine", "expert")),
    "boxes": ("tiny", ("--engine", "boxes")),
    "milp": ("tiny", ("--engine", "milp")),
    "cpsat": ("tiny", ("--engine", "cpsat")),
    "none": ("tiny", ("--set", "budget.power=1 W")),
    "front": ("tiny", ("--pareto", "step_time,power")),
    "free": ("free.yaml", ()),
    "free-milp": ("free.yaml", ("--engine", "milp")),
    "free-boxes": ("free.yaml", ("--engine", "boxes")),
    "free-near": ("free.yaml", ("--engine", "boxes", "--gap", "5%")),
    "free-front": ("free.yaml", ("--pareto", "step_time,die_area", "--points", "3")),
    "gemm": ("gemm.yaml", ("--engine", "boxes")),
}
"""Results of joint designs: the question, and the options."""


LONG = {
    *("gpt3-175b-pathfinding-large", "joint-vs-single-layer", "chiplets-and-yield"),
    *("logic-memory-network-scaling", "links-in-the-package", "rare-exchanges", "packages", "optical-links", "diminishing-returns"),
}
"""Results whose own check takes more than five seconds, which is all that a command may take with a hit file.

A comparison saves no trees, so that its check asks each question anew: 84 small ones of chiplets, and twenty to a hundred searches of
joint designs.
"""


@dataclass(frozen=True, slots=True)
class Original:
    """A sound file."""

    name: str
    """Which says by its ending what it is."""
    text: bytes
    sort: str
    """Files of one sort lend each other their parts."""
    commands: tuple[tuple[str, ...], ...]
    often: float = 1.0


def questions() -> dict[str, bytes]:
    """Questions of every kind as files, by their names."""
    found = {path.name: path.read_bytes() for path in shipped().values()}
    for kind, sample in SAMPLES.items():
        if kind in KINDS:
            found |= {f"{kind}{place}{sample.suffix}": text.encode() for place, text in enumerate(sample.texts)}
    course = sorted(path for path in (INSTANCES / "course").glob("*/*.yaml") if path.stem != "instance")
    return found | {
        "free.yaml": f"{TINY_FREE}{BUDGET}".encode(),
        "gemm.yaml": GEMM.encode(),
        "today.yaml": TODAY.encode(),
        "stack.yaml": f"{TINY_FREE}stack: torchtitan\n".encode(),
        **{_flat(path): path.read_bytes() for path in course},
    }


def _flat(path: Path) -> str:
    return f"{path.parent.name}-{path.name}"


def authors_files() -> dict[str, bytes]:
    """Files of authors."""
    problem = json.dumps(problem_document(tiny(3))).encode()
    return {
        "graph.json": json.dumps(graph_document()).encode(),
        "problem.json": problem,
        "problem.json.gz": gzip.compress(problem, mtime=0),
    }


def beside(folder: Path) -> Iterator[Original]:
    """Files that a question names, with the question in the folder."""
    texts = {"chip.yaml": entry_text("hardware", "a100-80g"), "process.yaml": entry_text("technologies", "accelerator-7nm")}
    texts["config.json"] = json.dumps(LLAMA)
    embeddings = SAMPLES["embeddings"].texts[0].partition("cluster:")[2]
    texts |= dict(SAMPLES["what-if"].files) | dict(SAMPLES["layers"].files)
    texts["requests.csv"] = "arrival_s,input,output\n" + "".join(f"{place / 4},{900 + place % 3},{40 + place % 7}\n" for place in range(30))
    texts["losses.csv"] = "layer,format,quality\nfirst,fp8,0.25\nlast,fp8,0.5\n"
    texts["tables.csv"] = "name,rows,dimension,pooling\na,1000,64,3\nb,1000,64,3\nc,200000,128,1\n"
    network = {"nodes": [{"id": 1, "time": 2, "bytes": 4}, {"id": 2, "time": 3, "bytes": 2, "workspace": 1}], "edges": [[1, 2]]}
    texts["memory.json"] = json.dumps({**network, "fixed_bytes": 2})
    asks = {
        "chip.yaml": GEMM.replace("a100-80g", "./chip.yaml"),
        "process.yaml": TINY_FREE.replace("accelerator-7nm", "./process.yaml"),
        "config.json": TINY_FREE.replace("model: gpt3-125m", "config: ./config.json, sequence: 4096"),
        "step.json": SAMPLES["what-if"].texts[0],
        "net.json": SAMPLES["layers"].texts[2],
        "requests.csv": SAMPLES["serving"].texts[2].replace("requests: {input: 1000, output: 100, rate: 5}", "log: {file: requests.csv}"),
        "losses.csv": QUALITY,
        "tables.csv": f"kind: embeddings\ntables: {{file: tables.csv}}\ncluster:{embeddings}",
        "memory.json": "kind: memory\ngraph: memory.json\nmemory: 9 B\n",
    }
    asking = folder / "asking"
    asking.mkdir(exist_ok=True)
    (asking / "sound.json").write_text(texts["net.json"], encoding="utf-8")
    for name, text in texts.items():
        question = asking / f"asks-{name}.yaml"
        question.write_text(asks[name], encoding="utf-8")
        yield Original(name, text.encode(), name, (("validate", f"asking/{question.name}"),))
    measured = (INSTANCES / "measured-sample.csv").read_bytes()
    yield Original("measured.csv", measured, "measured", (("accuracy", "FILE"),), 0.3)


def traces() -> Iterator[Original]:
    """Traces of two tools, a graph of one, and a model of ONNX."""
    events = {"schemaVersion": 1, "traceEvents": LAUNCHED}
    nodes = [
        Node(1, "a", COMP, duration_micros=5),
        Node(2, "b", COLLECTIVE, data_deps=(1,), attributes=(Attribute("pg_name", "string", "1"),)),
    ]
    operations = [{"name": "a", "kind": "host", "on": "t", "ns": 1}, {"name": "b", "kind": "kernel", "on": "s", "ns": 2, "group": "1"}]
    texts = {
        "kineto.json": json.dumps(events).encode(),
        "trace.et": written(Metadata("0.0.4"), nodes),
        "again.json": json.dumps({"trace": 1, "operations": operations, "edges": [[0, 1, "launch"]]}).encode(),
    }
    for name, text in texts.items():
        yield Original(name, text, f"trace {Path(name).suffix}", (IMPORT,), 0.3)
    yield Original("model.onnx", transformer(1).SerializeToString(), "model", ((*IMPORT, "--set", "batch=2", "--set", "length=5"),), 0.5)


def made(folder: Path) -> Path:
    """The folder with the whole corpus in it: questions, and what commands write about them."""
    given = folder / "given"
    given.mkdir(parents=True)
    asked, targets, about = questions() | authors_files(), list[tuple[str, ...]](), dict[str, str]()
    traces = {name: text.encode() for sample in SAMPLES.values() for name, text in sample.files}
    traces |= {path.name: path.read_bytes() for path in (INSTANCES / "traces").glob("*.json")}
    for name, text in (asked | traces).items():
        (given / name).write_bytes(text)
    samples = [name for name in asked if Path(name).stem.rstrip("0123456789") in SAMPLES or name in authors_files()]
    for name in samples:
        targets.append(("solve", name, "--out", f"{name}.result.json"))
    targets += [("solve", question, *more, "--out", f"{name}.result.json") for name, (question, more) in SOLVED.items()]
    targets.append(("compare", "tiny", "free.yaml", "--engines", "auto,boxes,expert", "--out", "runs.result.json"))
    targets.append(("explain", "tiny", "--relaxation", "--out", "tree.result.json"))
    for words in targets:
        about[words[-1]] = words[1]
    targets += [("export", f"{name}.result.json", "--as", "vipr", "--out", f"{name}.vipr") for name in CERTIFICATES]
    script = "import json, sys\nfrom crossopt.reports.cli import main\nprint([main(words) for words in json.load(sys.stdin)])"
    run = subprocess.run(
        [sys.executable, "-c", script], input=json.dumps(targets), cwd=given, text=True, capture_output=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(ROOT)])},
    )  # fmt: skip
    missing = [target for target in about if not (given / target).exists()]
    if missing:
        raise RuntimeError(f"the corpus could not be made: {missing}, {run.stderr[-2000:]}")
    return given


def corpus(given: Path) -> list[Original]:
    """All that can be hit, in a fixed order."""
    found = [*beside(given), *traces()]
    for path in sorted(given.iterdir()):
        if path.is_dir() or path.name.startswith(HIT):
            continue
        text = path.read_bytes()
        if path.name.endswith(".result.json"):
            found.append(Original(path.name, text, _sort_of(json.loads(text)), CHECK))
        elif path.suffix == ".vipr":
            found.append(Original(path.name, text, "certificate", CHECK[:1]))
        elif path.suffix == ".yaml":
            asks = yaml.safe_load(text)
            sort = str(asks.get("kind", "codesign")) if isinstance(asks, dict) else "codesign"
            found.append(
                Original(
                    path.name, text, f"question {sort}", VALIDATE, RARELY if "mesh:" in text.decode() else 0.1 if sort == "study" else 1.0
                )
            )
        else:
            found.append(Original(path.name, text, f"author {path.suffix}", VALIDATE))
    gallery = sorted(path for path in (ROOT / "reports" / "gallery").glob("*.json") if path.stem not in LONG)
    found += [Original(f"{place}.vipr", text.encode(), "certificate", CHECK[:1]) for place, text in enumerate((ROUNDED, BRANCHED, MOST))]
    return found + [
        Original(f"{path.stem}.result.json", text, _sort_of(json.loads(text)), CHECK, RARELY)
        for path in gallery
        for text in [path.read_bytes()]
    ]


def _sort_of(result: dict[str, object]) -> str:
    return f"result {result.get('kind')}"
