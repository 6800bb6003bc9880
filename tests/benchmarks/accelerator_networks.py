"""Joint optima against one choice after the other: `python -m tests.benchmarks.accelerator_networks [NETWORK ...]` prints Markdown.

Ten networks, each on the chips of PHAZE's template, or on a grid of chips of a technology (`--technology`). `--devices 8,4096` asks for
other numbers of devices. Minimised is the time of a batch, or the area of a chip or the energy of a batch within 1.25 times that time.
Two designers choose one after the other: the chip with the least work, then stages; and the chip of the best plan of one degree for all
stages, which is then cut freely. Their distance from the optimum is in the table, with what PHAZE's search takes in the time.
Seconds are those of the processor, for the answer with all rules and for `check`.
"""

import os
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import yaml

from crossopt.crossflow.operator_graph import OperatorGraph
from crossopt.instances.operators.graph_file import graph_text
from crossopt.instances.question import read
from crossopt.solvers.accelerator.family import FAMILY
from crossopt.solvers.accelerator.judge import AcceleratorFigures, AcceleratorPlan
from crossopt.solvers.answer import Limits, Result, unwatched
from crossopt.solvers.checking import check_answer, solve_and_verify
from tests.instances.layers.image_networks import alexnet, resnet50, vgg16
from tests.instances.layers.tbd_networks import inception_v3

Answer = Result[AcceleratorPlan, AcceleratorFigures]
SHAPES: dict[str, dict[str, Any]] = {
    "BERT-large": {"transformer": {"layers": 24, "hidden": 1024, "heads": 16, "ffn": 4096, "vocabulary": 30522, "sequence": 512}},
    "GPT-2 XL": {
        "transformer": {"layers": 48, "hidden": 1600, "heads": 25, "ffn": 6400, "vocabulary": 50257, "sequence": 1024},
        "tensor": [1],
    },
    "OPT 1.3B": {"transformer": {"layers": 24, "hidden": 2048, "heads": 32, "ffn": 8192, "vocabulary": 50272, "sequence": 2048}},
    "Llama 2 7B": {"workload": "llama2-7b"},
    "GPT-3 175B": {"workload": "gpt3-175b"},
    "Mixtral 8x7B": {"workload": "mixtral-8x7b"},
}
GRAPHS: dict[str, Callable[[int], OperatorGraph]] = {
    "ResNet-50": resnet50,
    "Inception-v3": inception_v3,
    "VGG-16": vgg16,
    "AlexNet": alexnet,
}
SAMPLES = 16
"""Batch of a graph on chips of a technology."""
TECHNOLOGY = {
    "name": "accelerator-7nm",
    "compute_area": {"from": "320 mm^2", "to": "600 mm^2", "step": "1 mm^2"},
    "compute_power": {"from": "120 W", "to": "260 W", "step": "1 W"},
    "l2_area": {"from": "10 mm^2", "to": "80 mm^2", "step": "0.5 mm^2"},
    "hbm_stacks": [1, 2, 3, 4, 5, 6],
    "die_area": "815 mm^2",
    "package_area": "1700 mm^2",
    "power": "400 W",
}
RULES = ("chip first, then stages", "chip for one degree, then stages", "one degree for all stages", "PHAZE's search")
POWER = {"area": "0.5 W/mm^2", "chip": "50 W"}
_UNITS = {"time": (1.0, "s"), "area": (1e6, "mm^2"), "energy": (1e-3, "kJ")}


def main() -> None:
    """Print the table."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=[*SHAPES, *GRAPHS])
    parser.add_argument("--devices", default="1024")
    parser.add_argument("--technology", action="store_true")
    parser.add_argument("--memory-bandwidth", default="")
    parser.add_argument("--objectives", default="time,area,energy")
    parser.add_argument("--seconds", type=float, default=600.0)
    options = parser.parse_args()
    print(f"| network | devices | minimised | optimum | gap | {' | '.join(RULES)} | stages | answer s | check s |")
    print("|---|---|---|---|---|" + "---|" * (len(RULES) + 3))
    for name in options.networks:
        for devices in map(int, options.devices.split(",")):
            asks = asked(name, devices, options.technology)
            asks |= {"memory_bandwidth": options.memory_bandwidth} if options.memory_bandwidth else {}
            for line in lines(name, asks, options.objectives.split(","), options.seconds):
                print(line, flush=True)


def asked(name: str, devices: int, technology: bool) -> dict[str, Any]:
    """The question about a network."""
    asks: dict[str, Any] = {"kind": "accelerator", "devices": devices, "memory": "80 GiB", "bandwidth": "4 GiB/s", "batch": 4096}
    asks |= {"tensor": [1, 2, 4, 8], "microbatch": [1] if technology else [1, 2, 4]}
    asks |= {"bandwidth": "50 GB/s", "batch": 4096 // SAMPLES, "technology": TECHNOLOGY} if technology else {"power": POWER}
    if name == "Inception-v3":  # branches beside each other have 1,205 places to cut
        asks |= {"tensor": [1], "microbatch": [1]}
    return asks | ({"graph": name} if name in GRAPHS else SHAPES[name])


def lines(name: str, asks: dict[str, Any], objectives: list[str], seconds: float) -> Iterator[str]:
    """Rows of a network, for each objective."""
    fastest = answered(asks, seconds)[0]
    if fastest.value is None:
        yield f"| {name} | {asks['devices']:,} | time | none: {'; '.join(fastest.reasons) or fastest.status} |"
        return
    for objective in objectives:
        more = {} if objective == "time" else {"objective": objective, "time_limit": f"{1.25 * fastest.value!r} s"}
        result, spent, checked = answered(asks | more, seconds)
        yield row(name, asks["devices"], objective, result, (spent, checked))


def answered(asks: dict[str, Any], seconds: float) -> tuple[Answer, float, float]:
    """The answer, and seconds of the processor for it and for its check."""
    with TemporaryDirectory() as folder:
        if "graph" in asks:
            made = GRAPHS[asks["graph"]](SAMPLES if "technology" in asks else 1)
            (Path(folder) / "graph.json").write_text(graph_text(made))
            asks = asks | {"graph": "graph.json"}
        (Path(folder) / "asks.yaml").write_text(yaml.safe_dump(asks))
        question = read(Path(folder) / "asks.yaml")
    start = process_time()
    result: Answer = solve_and_verify(FAMILY, question, "certified", Limits(seconds=seconds), unwatched)
    middle = process_time()
    report = check_answer(FAMILY, result, question)
    if not report.accepted:
        raise ArithmeticError(f"{report}")
    return result, middle - start, process_time() - middle


def row(name: str, devices: int, objective: str, result: Answer, seconds: tuple[float, float]) -> str:
    """One line of the table."""
    if result.value is None or result.answer is None:
        return f"| {name} | {devices:,} | {objective} | {result.status} |"
    factor, unit = _UNITS[objective]
    rules = {one.name: one for one in result.baselines}
    above = []
    for rule in RULES:
        value = rules[rule].value if rule in rules else None
        above.append("-" if value is None else f"{100.0 * (value / result.value - 1.0):.1f}%")
    gap = 0.0 if not result.bound else result.value / result.bound - 1.0
    kinds = {(stage.tensor, stage.recompute) for stage in result.answer.plans[0].stages}
    stages = f"{len(result.answer.plans[0].stages)}{' mixed' * (len(kinds) > 1)}"
    shown = f"{result.value * factor:.4g} {unit} | {'0' if gap < 1e-8 else f'{gap:.2%}'}"
    return f"| {name} | {devices:,} | {objective} | {shown} | {' | '.join(above)} | {stages} | {seconds[0]:.1f} | {seconds[1]:.1f} |"


if __name__ == "__main__":
    main()
