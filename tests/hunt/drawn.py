"""Random questions of every kind with what their best answer truly is: everything is tried, in code that shares nothing with engines."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np
import yaml

from crossopt.instances.codesign.instance import Instance, MultiScaleQuestion, Portfolio
from crossopt.instances.codesign.question import asked_in
from crossopt.instances.codesign.space import combinations, hardware_points
from crossopt.instances.errors import InstanceError, RefusedError
from crossopt.instances.question import read, read_again
from crossopt.solvers.stages.chain.judge import judge as judge_chain
from crossopt.solvers.stages.chain.prove import every_plan
from tests.hunt.settings import any_settings
from tests.instances.placement.samples import sample_at_random, tried
from tests.instances.sharding.files import written
from tests.instances.sharding.tiny import least, tiny
from tests.offloading_questions import offloading_question, several_offloading
from tests.solvers.codesign.any_questions import any_question
from tests.solvers.codesign.questions import random_question
from tests.solvers.codesign.several_questions import least_by_brute_force, random_several, values_by_brute_force
from tests.solvers.network.drawn import catalogue, chunks
from tests.solvers.placement.test_answers import brute_force
from tests.solvers.placement.test_searches import asked_at_random
from tests.solvers.stages.chain.chains import asked_of, random_chain
from tests.solvers.stages.pipedream.plainly import Plainly, seen
from tests.solvers.stages.piper.graphs import best_by_trying
from tests.solvers.stages.piper.graphs import random_question as random_graph_of_layers
from tests.solvers.stages.test_pipedream import drawn as drawn_profile
from tests.solvers.traces.drawn import changes, kernels

FEW = 120
"""Combinations of choices that are tried one by one."""
FEWER = 70
"""The same where five engines are asked."""
LOOSE = ("budget.power=900 W", "budget.die_area=2000 mm^2", "budget.package_area=6000 mm^2")
T = TypeVar("T", Instance, Portfolio, Instance | Portfolio | MultiScaleQuestion)


class TooLargeError(Exception):
    """A question that takes too long to be tried."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A question, its least value (infinite where nothing keeps its rules), and engines that say something of it."""

    kind: str
    question: Any
    least: float
    engines: tuple[str, ...]
    nearness: float = 0.0
    """The share by which sums in another order may differ."""


def design(seed: int) -> Drawn:
    """A chip and a plan."""
    question = fewer(loosened(random_question(seed), seed), seed)
    return Drawn("codesign", question, _least_design(question), ("exhaustive", "boxes", "milp", "cpsat"))


def moved_design(seed: int) -> Drawn:
    """The same where a host may hold what is moved."""
    question = fewer(loosened(offloading_question(seed), seed), seed)
    return Drawn("codesign", question, _least_design(question), ("exhaustive", "boxes", "milp"))


def several_designs(seed: int) -> Drawn:
    """A chip for several workloads."""
    question = fewer(loosened(random_several(seed) if seed % 2 else several_offloading(seed), seed), seed)
    return Drawn("codesign", question, least_by_brute_force(question), ("exhaustive", "boxes"), 1e-15)


def loosened(question: T, seed: int) -> T:
    """The question, of three two with limits that most designs keep: where nothing does, little can be wrong."""
    return asked_in({**question.document, "settings": [*question.document["settings"], *LOOSE]}) if seed % 3 else question


def any_design(seed: int) -> Drawn:
    """A design over all settings of plans together, for one or several numbers of devices, batches or workloads."""
    question = fewer(any_settings(seed), seed, FEWER)
    engines = ("exhaustive", "boxes", "auto", "milp", "cpsat")
    return Drawn("codesign", question, _least_of_all(question), engines, 0.0 if isinstance(question, Instance) else 1e-15)


def other_design(seed: int) -> Drawn:
    """A design of any workload, chip, cluster and stack."""
    question = fewer(any_question(seed, few=True), seed, FEWER)
    return Drawn("codesign", question, _least_design(question), ("exhaustive", "boxes", "milp", "cpsat"))


def _least_of_all(question: Instance | Portfolio | MultiScaleQuestion) -> float:
    if isinstance(question, MultiScaleQuestion):
        least = [(devices, _least_design(part)) for devices, part in zip(question.counts, question.parts, strict=True)]
        return min((float(devices) if question.objective == "devices" else value for devices, value in least if value < inf), default=inf)
    return _least_design(question) if isinstance(question, Instance) else least_by_brute_force(question)


def fewer(question: T, seed: int, few: int = FEW) -> T:
    """The question with half of the options here and there, until there are few designs; so that many questions can be asked."""
    random, settings = Random(seed), list(question.document["settings"])
    options = _options(question.document)
    while _designs(question) > few and options:
        more = list[str]()
        for name in random.sample(sorted(options), min(2, len(options))):
            found = options.pop(name)
            left = [found[place] for place in sorted(random.sample(range(len(found)), len(found) // 2))]
            options |= {name: left} if len(left) > 1 else {}
            more.append(f"choices.{name}={json.dumps(left)}")
        try:
            question, settings = read_again({**question.document, "settings": [*settings, *more]}, "codesign"), [*settings, *more]
        except InstanceError:  # no options that are left make a plan: others are tried
            continue
    if _designs(question) > few:
        raise TooLargeError
    return question


def _options(document: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The choices with several options."""
    choices = dict(yaml.safe_load(document["text"])["choices"])
    for name, _, options in (setting.partition("=") for setting in document["settings"]):
        choices |= {name: yaml.safe_load(options)} if name in {"offload", "recompute"} else {}
    several = {name: [1, 2] if options == "divisors" else options for name, options in choices.items()}
    return {name: options for name, options in several.items() if isinstance(options, list) and len(options) > 1}


def _designs(question: Any) -> int:  # noqa: ANN401 - of one workload or several
    return sum(combinations(part) * hardware_points(part) for part in getattr(question, "parts", (question,)))


def _least_design(question: Instance) -> float:
    return min((value for values in values_by_brute_force(question) for value in values), default=inf)


def placement(seed: int) -> Drawn:
    """The busiest device, in stages or anywhere."""
    question = asked_at_random(1_000 + seed)
    return Drawn("placement", question, brute_force(question), ("auto",))


def latency(seed: int) -> Drawn:
    """One sample through the devices."""
    question = sample_at_random(5_000 + seed, nodes=5, places=2 + seed % 2)
    return Drawn("placement", question, tried(question), ("auto",))


def strategies(seed: int) -> Drawn:
    """A strategy for each node."""
    true = least(tiny(seed))
    with TemporaryDirectory() as folder:
        question = read(written(Path(folder), seed), ())
    return Drawn("sharding", question, inf if true is None else float(true), ("auto", "exhaustive", "milp", "cpsat"))


def chain(seed: int) -> Drawn:
    """Stages of a chain."""
    random = np.random.default_rng([seed, 7])
    more = str(random.choice(["", "copies: 3", "schedule: two-versions", "schedule: two-versions\ndivisible: true"]))
    question = asked_of(random_chain(seed, int(random.integers(3, 7)), (1,) if random.random() < 0.5 else (1, 2), more))
    verdicts = (judge_chain(question, plan) for plan in every_plan(question))
    true = min((float(verdict.value) for verdict in verdicts if not verdict.violations), default=inf)
    return Drawn("chain", question, true, ("auto",))


def profile(seed: int) -> Drawn:
    """Stages of a profile, for our optimizer or for the public one."""
    compatible = bool(seed % 2)
    question = drawn_profile(seed, compatible)
    if compatible and frozenset(range(len(question.profile))) not in seen(question):
        raise RefusedError("the public optimizer sees no plan")
    true = Plainly(question).least()
    return Drawn("pipedream", question, inf if true is None else float(true), ("auto",), 1e-12)


def split_stages(seed: int) -> Drawn:
    """Stages with replicas and splits."""
    with TemporaryDirectory() as folder:
        question = random_graph_of_layers(Path(folder), seed, 3 + seed % 3, 3 + seed % 4)
    return Drawn("piper", question, best_by_trying(question), ("auto",), 1e-12)


def bandwidths(seed: int) -> Drawn:
    """Bandwidths of a catalogue."""
    question, true = catalogue(seed)
    return Drawn("network", question, true, ("auto",), 1e-12)


def ordered_chunks(seed: int) -> Drawn:
    """Two chunks on two dimensions."""
    question, true = chunks(seed)
    return Drawn("collective", question, true, ("auto", "search"))


def changes_of_a_trace(seed: int) -> Drawn:
    """Changes of a trace."""
    question, true = changes(seed)
    return Drawn("what-if", question, true, ("auto", "enumerate"))


def benchmark(seed: int) -> Drawn:
    """Kernels that stand for a trace."""
    question, true = kernels(seed)
    return Drawn("benchmark", question, true, ("auto", "exhaustive"))


DRAWS: dict[str, Callable[[int], Drawn]] = {
    "design": design,
    "moved design": moved_design,
    "several designs": several_designs,
    "any design": any_design,
    "other design": other_design,
    "placement": placement,
    "latency": latency,
    "strategies": strategies,
    "chain": chain,
    "profile": profile,
    "split stages": split_stages,
    "bandwidths": bandwidths,
    "ordered chunks": ordered_chunks,
    "changes of a trace": changes_of_a_trace,
    "benchmark": benchmark,
}
