"""What the benchmark measures: designs per second through the public API, and the memory of a long enumeration."""

import subprocess
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter

import numpy as np

import crossopt
from crossopt.crossflow.evaluate import evaluate
from crossopt.crossflow.plan import Plans, rows_of
from crossopt.crossflow.transformer import price, price_directly
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.codesign.space import devices, plan_blocks
from crossopt.solvers.answer import Progress
from crossopt.solvers.codesign import exhaustive
from crossopt.solvers.codesign.answer import candidate_in, design_of
from crossopt.solvers.codesign.boxes import search as boxes
from crossopt.solvers.codesign.boxes.branch import Spend

_SETTINGS = ("tensor=divisors", "context=[1, 2, 4]", "microbatch=divisors", "interleave=divisors")
_LONG = (
    "compute_area={from: 300 mm^2, to: 500 mm^2, step: 5 mm^2}",
    "compute_power={from: 140 W, to: 260 W, step: 10 W}",
    "network_power={from: 3 W, to: 15 W, step: 1 W}",
)

Figure = tuple[float, str, str]


def all_plans(instance: Instance) -> Plans:
    """Every plan of a question on transformers as one table."""
    blocks = [plans for plans in plan_blocks(instance) if isinstance(plans, Plans)]
    return Plans(*(np.concatenate([getattr(block, name) for block in blocks]) for name in Plans.__dataclass_fields__))


def plans_on_fixed_hardware() -> Figure:
    """Many plans on one device, time, memory and energy."""
    instance = read_instance("instances/gpt3-175b-1024xa100.yaml", _SETTINGS)
    plans, hardware = all_plans(instance), devices(instance, 0, 1).hardware
    start = perf_counter()
    price(instance.workload, hardware, instance.cluster, plans)  # type: ignore[arg-type]
    return len(plans) / (perf_counter() - start) / 1e6, "million designs/s", f"goal >= 1, {len(plans):,} plans"


def plans_on_free_hardware() -> Figure:
    """Plans on hundreds of devices."""
    instance = read_instance("instances/gpt3-175b-pathfinding-7nm.yaml")
    plans, hardware = all_plans(instance), devices(instance, 0, 512).hardware
    start = perf_counter()
    prices = price(instance.workload, hardware, instance.cluster, plans)  # type: ignore[arg-type]
    return prices.step_time.size / (perf_counter() - start) / 1e6, "million designs/s", f"goal >= 1, {prices.step_time.size:,} designs"


def tables_over_formulas() -> Figure:
    """How much faster the tables are than the same formulas without them, in one run."""
    instance = read_instance("instances/gpt3-175b-1024xa100.yaml")
    plans, hardware = all_plans(instance), devices(instance, 0, 1).hardware
    plans = rows_of(plans, slice(0, 1 << 16))
    start = perf_counter()
    price_directly(instance.workload, hardware, instance.cluster, plans)  # type: ignore[arg-type]
    middle = perf_counter()
    price(instance.workload, hardware, instance.cluster, plans)  # type: ignore[arg-type]
    return (middle - start) / (perf_counter() - middle), "times as fast", "tables against formulas"


def memory_of_a_long_enumeration() -> Figure:
    """Peak memory of a process that enumerates more than 1e8 designs."""
    program = (
        "import resource; "
        "from crossopt.instances.codesign.question import read_instance; "
        "from crossopt.solvers.codesign.exhaustive import search;"
        f"found = search(read_instance('instances/gpt3-175b-pathfinding-7nm.yaml', {_LONG!r}), lambda progress: None);"
        "print(found.space.designs, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    output = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    designs, kilobytes = (int(word) for word in output.split())
    return kilobytes / 1024, "MiB", f"goal < 1024, {designs:,} designs"


def boxes_over_enumeration() -> Figure:
    """How much faster branch and bound is than pricing every design, in one run on the same question; the values must be the same."""
    instance = read_instance("instances/gpt3-175b-pathfinding-7nm.yaml", _LONG)
    start = perf_counter()
    enumerated = exhaustive.search(instance, _unwatched)
    middle = perf_counter()
    found = boxes.search(instance, _unwatched, Spend())
    end = perf_counter()
    if found.value != enumerated.value:
        raise ArithmeticError(f"boxes find {found.value!r}, enumeration {enumerated.value!r}")
    return (middle - start) / (end - middle), "times as fast", f"boxes against {enumerated.space.designs:,} designs priced"


def proof_of_the_large_question() -> Figure:
    """Seconds of a whole process that proves the optimum of everything open at once."""
    seconds, _, designs = _large()
    return seconds, "s", f"goal < 30, {designs:.1e} designs"


def memory_of_the_large_question() -> Figure:
    """Its peak memory."""
    _, megabytes, designs = _large()
    return megabytes, "MiB", f"goal < 2048, {designs:.1e} designs"


def reading_the_large_proof_again() -> Figure:
    """Seconds in which the tree of cuts is gone down again."""
    instance = read_instance("instances/gpt3-175b-pathfinding-large.yaml")
    found = boxes.search(instance, _unwatched, Spend())
    start = perf_counter()
    read = boxes.reread(instance, found.cuts, found.value or 0.0)
    if read.faults:
        raise ArithmeticError("; ".join(read.faults))
    return perf_counter() - start, "s", f"goal < 30, {len(found.cuts)} boxes"


def proof_of_a_plan_on_fixed_hardware() -> Figure:
    """Seconds in which the best of all plans with the memory of the hosts is found and proved."""
    instance = read_instance("instances/gpt3-175b-512xa100-offload.yaml")
    start = perf_counter()
    found = boxes.search(instance, _unwatched, Spend())
    seconds = perf_counter() - start
    if found.bound != found.value:
        raise ArithmeticError(f"not proved: {found.value!r} over {found.bound!r}")
    return seconds, "s", f"goal < 3, {found.plans:,} plans in {found.groups:,} groups"


def _large() -> tuple[float, float, float]:
    """Seconds, MiB and designs of the large question in a process of its own."""
    program = (
        "import resource; "
        "from crossopt.instances.codesign.question import read_instance; "
        "from crossopt.instances.codesign.space import hardware_points;"
        "from crossopt.solvers.codesign.boxes.search import search; "
        "from crossopt.solvers.codesign.boxes.branch import Spend;"
        "asked = read_instance('instances/gpt3-175b-pathfinding-large.yaml'); found = search(asked, lambda progress: None, Spend());"
        "print(found.plans * hardware_points(asked) * (found.bound == found.value), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    start = perf_counter()
    output = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    designs, kilobytes = (int(word) for word in output.split())
    return perf_counter() - start, kilobytes / 1024, float(designs)


def _unwatched(progress: Progress) -> None:
    del progress


def single_design_over_its_model() -> Figure:
    """One design through the Python API, over the model alone on a device that is there: what generating, checking and reporting add."""
    question = crossopt.read("quickstart")
    chip = {"compute_area": 440e-6, "l2_area": 50e-6, "compute_power": 200.0, "hbm_stacks": 6}
    choices = {"tensor": 1, "pipeline": 1, "data": 64, "microbatch": 4, "interleave": 1, "sequence_parallel": False}
    choices |= {"recompute": "none", "zero": 3, "overlap": "both", **chip}
    design = design_of(question, candidate_in(question, crossopt.evaluate(question, choices).design))
    through = _median_seconds(lambda: crossopt.evaluate(question, choices))
    alone = _median_seconds(lambda: evaluate(question.workload, design))
    return through / alone, "times the model", f"goal <= 2, {1e3 * through:.2f} ms a design (goal <= 5)"


def _median_seconds(work: Callable[[], object]) -> float:
    """Of 200 calls, after ten that fill caches."""
    seconds = []
    for _ in range(210):
        start = perf_counter()
        work()
        seconds.append(perf_counter() - start)
    return median(seconds[10:])


CASES: dict[str, Callable[[], Figure]] = {
    "one design from Python": single_design_over_its_model,
    "plans on fixed hardware": plans_on_fixed_hardware,
    "plans on free hardware": plans_on_free_hardware,
    "tables over formulas": tables_over_formulas,
    "memory of a long enumeration": memory_of_a_long_enumeration,
    "boxes over enumeration": boxes_over_enumeration,
    "proof of a plan on fixed hardware": proof_of_a_plan_on_fixed_hardware,
    "proof of the large question": proof_of_the_large_question,
    "memory of the large question": memory_of_the_large_question,
    "reading the large proof again": reading_the_large_proof_again,
}
