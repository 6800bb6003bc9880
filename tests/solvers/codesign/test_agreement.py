"""Four engines, one optimum: over every instance that comes along, and over a thousand small questions of any technology and generation.

`exhaustive` and `boxes` give one value, to the last bit; `milp` and `cpsat` one within their gap, with a bound that no design is below.
Questions take the forms of the integer model in turn. The whole of it is slow; a share of it runs every time.
"""

from dataclasses import replace
from itertools import cycle
from math import inf
from time import monotonic

import pytest

from crossopt.crossflow.workload import Transformer
from crossopt.formulation.codesign.forms import FORMS
from crossopt.instances.catalogue.registry import ladder
from crossopt.instances.codesign.instance import Instance, Portfolio
from crossopt.instances.codesign.question import read_instance, read_single_scale
from crossopt.instances.codesign.space import combinations, hardware_points
from crossopt.solvers.answer import unwatched
from crossopt.solvers.backends import backend
from crossopt.solvers.codesign import engines, family
from crossopt.solvers.codesign.answer import DesignResult
from crossopt.solvers.codesign.combined import engines as several
from crossopt.solvers.codesign.engines import Limits
from crossopt.solvers.codesign.linear.refine import LEAST_GAP, refine_among
from tests.solvers.codesign.asking import answered
from tests.solvers.codesign.questions import TINY_FREE, ask, random_question
from tests.solvers.codesign.test_linear import agrees, cold
from tests.solvers.codesign.wide_questions import wide_question

COUNTED = 300_000_000
"""Combinations of choices up to which every design is priced: a few minutes at the most."""
PROVED = 10_000_000
"""Plans up to which a solver's bound is always proved in whole numbers; beyond, pricing them one by one may take too long for it."""
QUESTIONS, SHARE = 1000, 8
CHOICES, OPTIONS = 5, 3


def modelled(instance: Instance) -> bool:
    """Whether the integer models answer it."""
    return isinstance(instance.workload, Transformer) and instance.objective == "step_time" and instance.budget.step_time == float("inf")


def agree(instance: Instance, form: str, solvers: tuple[str, ...] = ("milp", "cpsat"), seconds: float = inf) -> list[DesignResult]:
    """The answers of all engines that have one, after they were compared; integer models may be cut off, and settle nothing then."""
    exact = ["boxes", *(["exhaustive"] if hardware_points(instance) * combinations(instance) <= COUNTED else [])]
    found = [answered(instance, name) for name in exact]
    true = found[0].value
    assert all(result.proved and result.value == true and result.bound == true for result in found)
    for name in solvers if modelled(instance) else ():
        result = answered(instance, name, Limits(seconds, form=form))
        assert result.settled or seconds < inf
        assert result.proved or not result.settled or form != "strong" or combinations(instance) > PROVED
        assert (result.value is None) == (true is None)
        if true is not None:
            assert result.value is not None
            assert result.bound is not None
            assert result.bound <= true <= result.value
            assert result.value - result.bound <= LEAST_GAP * result.value or not result.settled
        found.append(result)
    return found


def small(seed: int) -> Instance:
    """A question of few chips whose step time is asked: every other one of any technology and generation."""
    instance = random_question(seed) if seed % 2 else wide_question(seed // 2, CHOICES, OPTIONS)
    return replace(instance, objective="step_time")


def agree_on(seed: int) -> tuple[float | None, int]:
    """All engines on one question, and one of the solvers from a cold start, so that the integer model has something to do."""
    instance, form = small(seed), list(FORMS)[seed % len(FORMS)]
    true = agree(instance, form)[0].value
    rounds = 0
    if modelled(instance):
        solver = ("highs", "cpsat")[seed // len(FORMS) % 2]
        found = refine_among(instance, cold(instance), backend(solver), FORMS[form], LEAST_GAP, monotonic() + 300, unwatched)
        assert found.stopped == "complete"
        assert agrees(found, true)
        rounds = found.rounds
    return true, rounds


@pytest.mark.parametrize("name", ["tiny", "small"])
def test_engines_agree_on_small_instances(name: str) -> None:
    agree(read_instance(ladder()[name]), "strong")


OF_TODAY = {
    "latents, dense first layers, a further token": "ffn: 2048, head_size: 64, tied: false, learned_positions: false, biases: [router], "
    "experts: 4, experts_per_token: 2, expert_ffn: 512, shared_experts: 1, dense_layers: 1, query_rank: 256, kv_rank: 128, rope_size: 32, "
    "prediction_layers: 1",
    "windows, caps, four norms": "ffn: 2048, kv_heads: 4, gated: true, window: 128, global_layers: 1, qk_norm: true, norms: 4, "
    "attention_cap: true, logit_cap: true, sinks: true",
    "windows and dense first layers": "ffn: 2048, window: 128, global_layers: 2, experts: 4, experts_per_token: 2, dense_layers: 2",
    "parallel blocks": "ffn: 2048, kv_heads: 1, norms: 1, parallel_blocks: true, biases: [norms]",
    "frozen layers": "ffn: 2048, tied: false, experts: 4, experts_per_token: 2, global_layers: 1, window: 128",
    "adapters": "ffn: 2048, experts: 4, experts_per_token: 2, dense_layers: 1",
}
"""Shapes beside four layers of 512 with eight heads."""


@pytest.mark.parametrize(("name", "form"), [(next(iter(OF_TODAY)), "strong")])
def test_engines_agree_on_networks_of_today(name: str, form: str) -> None:
    agree_today(name, form, ("cpsat",))


EXPERTS = "{transformer: {layers: 4, hidden: 512, heads: 8, ffn: 1024, vocabulary: 8192, sequence: 512, experts: 4, experts_per_token: 2}"
PLANS_OF_TODAY = {
    "hidden tensor exchange": "pipeline: [1, 2]\n  sequence_parallel: [false, true]\n  tensor_exchange: [exposed, hidden]\n"
    "  interleave: [1, 2]\n  schedule: [1f1b, zero-bubble]\n",
    "hidden expert exchange": "pipeline: [1, 2]\n  interleave: [1, 2]\n  expert: [1, 2, 4]\n  expert_exchange: [exposed, hidden]\n"
    "  zero: [0, 1, 3]\n  overlap: [none, both]\n",
    "folded experts": "context: [1, 2]\n  pipeline: [1, 2]\n  expert: [1, 2, 4]\n  expert_tensor: [0, 1, 2]\n  zero: [0, 1, 3]\n"
    "  sequence_parallel: [false, true]\n",
    "split backward passes": "context: [1, 2]\n  pipeline: [2, 4]\n  interleave: [1, 2]\n  zero: [0, 1, 2]\n"
    "  schedule: [1f1b, zero-bubble, zero-bubble-v]\n  overlap: [none, both]\n",
    "both ways": "context: [1, 2]\n  pipeline: [2, 4]\n  zero: [0, 1]\n  schedule: [1f1b, zero-bubble, dualpipe]\n"
    "  overlap: [none, both]\n",
    "both ways with experts": "pipeline: [1, 2, 4]\n  expert: [1, 2, 4]\n  expert_exchange: [exposed, hidden]\n  zero: [0, 1]\n"
    "  schedule: [1f1b, dualpipe]\n",
    "layers of the ends": "pipeline: [1, 2, 4]\n  interleave: [1, 2]\n  first_stage_layers: [0, 2, 3]\n  last_stage_layers: [0, 1, 2]\n",
}
"""Choices beside tensor parallelism and recomputation."""
FEW_OF_TODAY = ("split backward passes", "both ways with experts")


@pytest.mark.parametrize(("name", "form", "solver"), list(zip(FEW_OF_TODAY, cycle(FORMS), cycle(("milp", "cpsat")), strict=False)))
def test_engines_agree_on_plans_of_today(name: str, form: str, solver: str) -> None:
    agree_on_plans(name, form, (solver,))


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", PLANS_OF_TODAY)
def test_engines_agree_on_plans_of_today_in_every_form(name: str, form: str) -> None:
    agree_on_plans(name, form, ("milp", "cpsat"))


def agree_on_plans(name: str, form: str, solvers: tuple[str, ...]) -> None:
    text = TINY_FREE.replace("  pipeline: [1, 2]\n", "")
    text = text.replace("{model: gpt3-125m", EXPERTS) if "expert" in name else text
    asked = ask(f"{text}  microbatch: [1, 4]\n  {PLANS_OF_TODAY[name]}")
    assert agree(asked, form, solvers)[0].value is not None


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", OF_TODAY)
def test_engines_agree_on_networks_of_today_in_every_form(name: str, form: str) -> None:
    agree_today(name, form, ("milp", "cpsat"))


def agree_today(name: str, form: str, solvers: tuple[str, ...]) -> None:
    shape = f"{{layers: 4, hidden: 512, heads: 8, vocabulary: 8192, sequence: 512, {OF_TODAY[name]}}}"
    adapters = {"adapters": ", lora_rank: 8", "frozen layers": ", frozen_layers: 2"}.get(name, "")
    text = TINY_FREE.replace("{model: gpt3-125m, global_batch: 64}", f"{{transformer: {shape}, global_batch: 64{adapters}}}")
    instance = ask(f"{text}  context: [1, 2]\n  expert: [1, 2]\n  zero: [0, 1, 3]\n")
    assert agree(instance, form, solvers)[0].value is not None


@pytest.mark.slow
@pytest.mark.parametrize("name", ladder())
def test_engines_agree_on_every_instance(name: str) -> None:
    """Of several workloads each alone; together they have engines and tests of their own.

    The largest is beyond the integer models (`formulation/README.md`): they are cut off, and must be right in what they say.
    """
    seconds = 60.0 if name == "gpt3-175b-pathfinding-large" else inf
    asked = read_single_scale(ladder()[name])
    for instance in asked.parts if isinstance(asked, Portfolio) else (asked,):
        agree(instance, "strong", seconds=seconds)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(SHARE, QUESTIONS, 50))
def test_engines_agree_on_a_thousand_questions(first: int) -> None:
    for seed in range(first, min(first + 50, QUESTIONS)):
        agree_on(seed)


@pytest.mark.thorough
def test_engines_agree_on_some_questions_and_these_ask_something() -> None:
    """Most are the integer models' to answer, some of them with work for the solver, and some have no design."""
    asked = [small(seed) for seed in range(SHARE)]
    assert sum(map(modelled, asked)) > SHARE / 2
    found = [agree_on(seed) for seed in range(SHARE)]
    assert sum(value is not None for value, _ in found) > SHARE / 3
    assert sum(rounds > 0 for _, rounds in found) > SHARE / 4
    assert any(value is None for value, _ in found)


def test_the_names_of_engines_are_known_before_they_are_loaded() -> None:
    assert tuple(engines.ENGINES) == family.ENGINES == tuple(family.FAMILY.engines)
    assert several.ENGINES == family.OF_SEVERAL
    assert set(family.ALIASES.values()) <= set(family.ENGINES)
