"""Freezes the figures: what every command says of the shipped questions and of public inputs, without seconds and versions.

    python -m tests.freeze FOLDER          write all answers, checks, pages and tables into a folder, some minutes
    python -m tests.freeze OLD NEW         tell every figure in which two such folders differ

A change of form that must not change a figure is held to this: freeze before, freeze after, compare. Answers that hang on the clock
(searchers under a limit) are left out.
"""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
INSTANCES, DATA = ROOT / "instances", (ROOT / "../shared/data").resolve()
CLOCK = {"seconds", "versions", "trace", "to_one_percent", "to_proof"}
"""Keys of results that hang on the machine."""
TIMES = re.compile(r"(proved|after|repeated|stopped) (in )?\d[\d.,e-]* (ms|s|min)\b")
NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.]*[a-zA-Z_][\w]*\.)")


def questions() -> Iterator[tuple[str, list[str]]]:
    """Every question that is solved, by a short name, with its options."""
    for path in (
        *INSTANCES.glob("*.yaml"),
        *(path for kind in ("network", "placement", "sharding", "stages") for path in INSTANCES.glob(f"{kind}/*.yaml")),
    ):
        yield path.stem, [str(path)]
    for path in sorted(INSTANCES.glob("course/*/question.yaml")):
        yield f"course-{path.parent.name[:2]}", [str(path)]
    pathfinding = str(INSTANCES / "gpt3-175b-pathfinding-7nm.yaml")
    yield "milp", [pathfinding, "--engine", "milp"]
    yield "cpsat", [str(INSTANCES / "tiny.yaml"), "--engine", "cpsat"]
    yield "boxes", [str(INSTANCES / "quickstart.yaml"), "--engine", "boxes"]
    for engine in ("expert", "fsdp", "pipedream-flush"):
        yield f"rule-{engine}", [str(INSTANCES / "quickstart.yaml"), "--engine", engine]
    yield "counts", [str(INSTANCES / "tiny.yaml"), "--set", "cluster.devices=[4, 8, 16]"]
    yield "front", [str(INSTANCES / "quickstart.yaml"), "--pareto", "step_time,power", "--points", "4"]
    yield (
        "infeasible",
        [str(INSTANCES / "gpt3-175b-1024xa100.yaml"), "--set", "pipeline=[1, 2, 4]", "--set", "zero=0", "--set", "tensor=[1, 2]"],
    )
    yield "energy", [str(INSTANCES / "quickstart.yaml"), "--set", "objective=energy_per_token"]
    yield "limited", [str(INSTANCES / "quickstart.yaml"), "--set", "budget.step_time=5 s", "--set", "objective=die_area"]
    yield from public()


def public() -> Iterator[tuple[str, list[str]]]:
    """One published input and more of each kind of author's file, where they are there."""
    layers, operators = DATA / "placement/throughput/layer", DATA / "placement/throughput/operator"
    yield "bert24-stages", [str(layers / "bert24_training.json")]
    yield "gnmt-stages", [str(layers / "gnmt_inference.json"), "--devices", "4"]
    yield "operators-stages", [str(operators / "bert_l-3_inference.json")]
    yield "gnmt-latency", [str(DATA / "placement/latency/layer/gnmt_inference.json"), "--problem", "latency"]
    yield (
        "piper",
        [
            str(DATA / "placement/piper/bert32a100.json"),
            *["--devices", "32", "--memory", "8GiB", "--bandwidth", "25GiB/s", "--microbatches", "1920"],
        ],
    )
    profile = str(DATA / "placement/pipedream/vgg16/graph.txt")
    yield "profile", [profile]
    yield "profile-compatible", [profile, "--compatible", "--devices", "4x2", "--bandwidth", "6e9,1e9"]
    yield "contest-example", [str(DATA / "sharding/example.json")]
    yield "contest-g", [str(DATA / "sharding/asplos-2025-iopddl-G.json.gz")]


def others() -> Iterator[tuple[str, list[str]]]:
    """Commands beside solve, check and report, whose words are kept."""
    quickstart, tiny = str(INSTANCES / "quickstart.yaml"), str(INSTANCES / "tiny.yaml")
    for name, options in questions():
        if name in {path.stem for path in INSTANCES.glob("**/*.yaml")}:
            yield f"validate-{name}", ["validate", *options]
    single = ["--set", "tensor=4", "--set", "pipeline=1", "--set", "microbatch=2", "--set", "recompute=none"]
    yield "evaluate", ["evaluate", tiny, *single]
    yield "evaluate-json", ["evaluate", tiny, *single, "--json"]
    yield "explain", ["explain", quickstart, "--force", "hbm_stacks=2"]
    yield "explain-near", ["explain", tiny, "--near", "1%"]
    yield "explain-relaxation", ["explain", quickstart, "--relaxation"]
    yield "explain-clash", ["explain", str(INSTANCES / "gpt3-175b-1024xa100.yaml"), "--set", "zero=0", "--set", "tensor=[1, 2]"]
    yield "compare", ["compare", tiny, "--engines", "boxes,exhaustive,expert,fsdp,plan-only,hardware-only"]
    yield "compare-graph", ["compare", str(DATA / "placement/throughput/layer/bert24_training.json"), "--time-limit", "5s"]
    yield "accuracy", ["accuracy", str(INSTANCES / "measured-sample.csv"), "--json"]
    yield "accuracy-training", ["accuracy", str(DATA / "measured/training-dev.csv")]
    for kind in ("hardware", "technologies", "workloads", "instances"):
        yield f"list-{kind}", ["list", kind]
    yield "list-show", ["list", "hardware", "--show", "a100-80g"]
    for name in [path.name for path in sorted((INSTANCES / "course").glob("0*"))]:
        yield f"grade-{name[:2]}", ["grade", str(int(name[:2])), str(INSTANCES / "course/solutions" / name)]
    yield "course", ["course", "list"]


def run(arguments: list[str], folder: Path) -> tuple[int, str, str]:
    """Exit code, output and errors of one command."""
    command = [sys.executable, "-c", "from crossopt.reports.cli import main; raise SystemExit(main())", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=900, check=False)
    return done.returncode, done.stdout, done.stderr


def timeless(data: Any) -> Any:  # noqa: ANN401 - one walk for all of JSON
    """The same without what hangs on the machine: seconds are 0, traces and versions empty, so that pages can still be drawn of it."""
    if isinstance(data, dict):
        empty = {"seconds": 0.0, "versions": {}, "trace": [], "to_one_percent": None, "to_proof": None}
        return {key: empty[key] if key in CLOCK else timeless(value) for key, value in data.items()}
    return [timeless(value) for value in data] if isinstance(data, list) else data


def freeze(folder: Path) -> None:
    """Write everything."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, options in questions():
        if not Path(options[0]).exists():
            continue
        sys.stderr.write(f"{name}\n")
        target = folder / f"{name}.json"
        code, text, _ = run(["solve", *options, "--out", str(target)], folder)
        (folder / f"{name}.solve.txt").write_text(f"exit {code}\n{TIMES.sub('TIME', text)}", encoding="utf-8")
        if target.exists():
            target.write_text(json.dumps(timeless(json.loads(target.read_text(encoding="utf-8"))), indent=1) + "\n", encoding="utf-8")
            code, text, errors = run(["check", target.name], folder)
            (folder / f"{name}.check.txt").write_text(f"exit {code}\n{text}{errors}", encoding="utf-8")
            for form, ending in (("html", "html"), ("text", "text"), ("markdown", "md"), ("csv", "csv"), ("latex", "tex")):
                run(["report", target.name, "--as", form, "--out", f"{name}.{ending}"], folder)
    for stack in ("megatron", "torchtitan", "deepspeed"):
        for name in ("tiny", "llama3-405b-1024xh100"):
            (folder / f"export-{name}-{stack}.txt").write_text(run(["export", f"{name}.json", "--as", stack], folder)[1], encoding="utf-8")
    run(["export", str(INSTANCES / "quickstart.yaml"), "--as", "lp", "--out", "quickstart.lp"], folder)
    for name, arguments in others():
        sys.stderr.write(f"{name}\n")
        code, text, errors = run(arguments, folder)
        (folder / f"{name}.txt").write_text(f"exit {code}\n{TIMES.sub('TIME', text)}{errors if code else ''}", encoding="utf-8")


def figures(path: Path) -> Counter[str]:
    """All figures of a file and how often each occurs; of a result each by the name of its field."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return Counter(leaves("", json.loads(text)))
    return Counter(NUMBER.findall(re.sub(r"<style>.*?</style>|<script.*?</script>", "", text, flags=re.DOTALL)))


def leaves(key: str, data: Any) -> Iterator[str]:  # noqa: ANN401
    """Every number and truth of a result, by the name of its own field, wherever that lies."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield from leaves(name, value)
    elif isinstance(data, list):
        for value in data:
            yield from leaves(key, value)
    elif isinstance(data, bool | int | float):
        yield f"{key} {data!r}"


def compare(old: Path, new: Path) -> int:
    """Tell what differs; the number of files that do."""
    differing = 0
    names = sorted({path.name for folder in (old, new) for path in folder.iterdir() if path.is_file()})
    for name in names:
        if not (old / name).exists() or not (new / name).exists():
            lost, come = Counter({"the whole file": 1}), Counter[str]()
            if not (old / name).exists():
                lost, come = come, lost
        else:
            before, after = figures(old / name), figures(new / name)
            lost, come = before - after, after - before
        if lost or come:
            differing += 1
            sys.stdout.write(f"{name}\n  gone: {sorted(lost)[:12]}\n  new:  {sorted(come)[:12]}\n")
    sys.stdout.write(f"{len(names)} files, {differing} differ\n")
    return differing


if __name__ == "__main__":
    folders = [Path(argument).resolve() for argument in sys.argv[1:]]
    if len(folders) == 2:
        raise SystemExit(1 if compare(*folders) else 0)
    freeze(folders[0])
