"""Serving plans: the dynamic program against every plan, what may never happen, proofs, and sentences."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import crossopt
from crossopt.formulation.serving.matching import Part, apart_bound, counts_on, crossing, divided, rates_on, together_bound
from crossopt.instances.catalogue.registry import entry_text
from crossopt.instances.errors import InstanceError
from crossopt.instances.files.written import Files
from crossopt.instances.question import read_given
from crossopt.instances.serving.question import ServingQuestion
from crossopt.instances.serving.workers import (
    UNITS,
    Offer,
    Shape,
    broken,
    handed_over,
    kernels_of,
    latencies_at,
    priced,
    sent_at,
    shapes_of,
    units_within,
)
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.checking import check, check_answer, solve_and_verify
from crossopt.solvers.family import family_of
from crossopt.solvers.serving.engines import exhaustive, program
from crossopt.solvers.serving.judge import Copies, ServingPlan, best_of, judge, multiplier_bound, prove, reasons_of, solved, table_of
from tests.extent import some

LLAMA = """\
kind: serving
model: llama3-70b
hardware: h100-sxm
devices: 16
requests: {input: 2000, output: 200}
limits: {ttft: 1 s, tpot: 40 ms}
choices: {tensor: [4, 8], batch: [8, 32]}
"""
GOLDEN = """\
kind: serving
requests: {input: 4000, output: 500}
limits: {ttft: 300 ms, tpot: 10 ms}
devices: 32
matching: {prefill: 0.9, decode: 0.92, ttft: 1.8}
workers:
  first: {role: prefill, devices: 4, rate: 9.260, ttft: 107.988 ms}
  second: {role: decode, devices: 4, rate: 13.279, tpot: 9.659 ms}
"""


def ask(text: str) -> ServingQuestion:
    question: ServingQuestion = read_given(text, "serving")
    return question


def best_value(question: ServingQuestion) -> float:
    found = program(question, Limits(), unwatched)
    return inf if found.answer is None else float(judge(question, found.answer).value)


def drawn(random: Random) -> str:
    """A small question with workers of its own."""
    lines = ["kind: serving", f"requests: {{input: 10, output: {random.choice([2, 100])}, rate: {random.choice([1, 5, 20])}}}"]
    limits = random.choice(["{}", "{ttft: 50 ms}", "{tpot: 5 ms}", "{ttft: 80 ms, tpot: 8 ms}"])
    lines += [f"limits: {limits}", f"objective: {random.choice(['throughput', 'devices', 'cost'])}", f"devices: {random.randint(1, 9)}"]
    lines += ["rent: 2 USD", f"matching: {{prefill: {random.choice([1, 0.9])}, decode: {random.choice([1, 0.92])}}}", "workers:"]
    for number in range(random.randint(2, 4)):
        role = ["prefill", "decode", "both", random.choice(["prefill", "decode", "both"])][number]
        figures = f"rate: {random.uniform(0.5, 9):.3f}, ttft: {random.randint(1, 90)} ms, tpot: {random.randint(1, 9)} ms"
        lines.append(f"  w{number}: {{role: {role}, devices: {random.randint(1, 4)}, {figures}}}")
    return "\n".join(lines) + "\n"


def test_300_small_questions_as_by_a_look_at_every_plan() -> None:
    random, answered = Random(1), 0
    for _ in range(300):
        question = ask(drawn(random))
        found, looked = (engine(question, Limits(), unwatched) for engine in (program, exhaustive))
        assert (found.answer is None) == (looked.answer is None)
        assert found.bound == (inf if looked.value is None else looked.value)
        if found.answer is not None:
            answered += 1
            assert judge(question, found.answer).violations == ()
            assert judge(question, found.answer).value == found.value == looked.value
        else:
            assert found.reasons
    assert answered > 100


def test_small_questions_of_a_model_as_by_a_look_at_every_plan() -> None:
    asked = list(product(("throughput", "devices", "cost", "energy"), ("[together]", "[apart]", "[together, apart]")))
    for objective, mode in some(asked, 6):
        text = (
            LLAMA.replace("40 ms", "40 ms, at: mean")
            .replace("batch: [8, 32]", f"batch: [16, 64], prefill_batch: 1, mode: {mode}, shapes: any")
            .replace("devices: 16", "devices: 12")
            .replace("tensor: [4, 8]", "tensor: 4")
        )
        question = ask(f"{text}objective: {objective}\n".replace("output: 200", "output: 200, rate: 3"))
        assert best_value(question) == exhaustive(question, Limits(), unwatched).value


@pytest.mark.parametrize("count", [pytest.param(12, marks=pytest.mark.thorough), pytest.param(30, marks=pytest.mark.slow)])
def test_drawn_questions_of_drafts_and_attention_by_groups_as_by_a_look_at_every_plan(count: int) -> None:
    """The better of the two is taken, the check repeats it, and each alone is no better."""
    random, family, taken = Random(9), family_of("serving"), set[str]()
    for _ in range(count):
        accepted, level, batch = random.choice((1.05, 2.2)), random.choice(("mean", "p95")), random.choice((8, 256))
        text = (
            f"kind: serving\nmodel: deepseek-v3\nhardware: b200\ndevices: {random.choice((8, 16))}\n"
            f"requests: {{input: {random.choice((500, 2000))}, output: {random.choice((1, 200))}, rate: 0.5}}\n"
            f"limits: {{ttft: 5 s, tpot: {random.choice((20, 60))} ms, at: {level}}}\n"
            f"objective: {random.choice(('throughput', 'devices'))}\nSPECULATION"
            "choices: {tensor: 8, expert: 8, data: DATA, "
            f"batch: {batch}, prefill_batch: 1, mode: {random.choice(('together', '[apart, together]'))}}}\n"
        )
        values = {}
        for data in ("1", "8", "[1, 8]"):
            for name, drafts in (("none", ""), ("some", f"speculation: {{accepted: {{2: {accepted}}}}}\n")):
                question = ask(text.replace("SPECULATION", drafts).replace("DATA", data))
                found, looked = (engine(question, Limits(), unwatched) for engine in (program, exhaustive))
                assert (found.answer is None) == (looked.answer is None)
                values[data, name] = inf if found.answer is None else float(judge(question, found.answer).value)
                assert values[data, name] == found.bound == (looked.value or inf)
                if found.answer is not None:
                    taken |= {f"data {copies.shape.data}, drafted {copies.shape.drafted}" for copies in found.answer.workers}
        for name in ("none", "some"):
            assert values["[1, 8]", name] <= min(values["1", name], values["8", name])
    result = solve_and_verify(family, ask(text.replace("SPECULATION", "").replace("DATA", "[1, 8]")), "auto", Limits(), unwatched)
    assert check(family, result, Path()).accepted
    assert len(taken) > 1


def test_more_tokens_of_a_step_never_serve_less() -> None:
    before = 0.0
    for accepted in (1.0, 1.5, 2.0, 3.0):
        now = rate_of(ask(f"{LLAMA}speculation: {{accepted: {{2: {accepted}}}}}\n".replace("1 s, tpot", "2 s, tpot")))
        assert now >= before
        before = now
    assert before > rate_of(ask(LLAMA.replace("1 s, tpot", "2 s, tpot")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("speculation: {accepted: {2: 3.5}}", "a step that verifies 2 drafted tokens gives 3 at most"),
        ("speculation: {accepted: {0: 1}}", "is no number of drafted tokens"),
        ("speculation: {accepted: {x: 1}}", "is no number of drafted tokens"),
        ("speculation: {accepted: {}}", "no number of drafted tokens is given"),
        ("speculation: {accepted: {2: .nan}}", "speculation.accepted.2"),
        ("choices: {data: 8}", "the model has no experts"),
        ("model: deepseek-v3\nchoices: {data: 3}", "3 groups divide none of the tensor degrees"),
    ],
)
def test_faults_of_drafts_and_groups_are_sentences(text: str, message: str) -> None:
    plain = LLAMA.replace("choices: {tensor: [4, 8], batch: [8, 32]}\n", "")
    with pytest.raises(InstanceError) as caught:
        ask((plain.replace("model: llama3-70b\n", "") if "model" in text else plain) + text + "\n")
    assert message in str(caught.value)


def test_rate_matching_of_published_workers() -> None:
    """The answer of AIConfigurator 0.12 for 32 H200, which the dynamic program proves best for its workers, and others."""
    for devices, rate in ((8, 8.33), (24, 25.00), (32, 36.65), (40, 48.87), (100, 122.17), (128, 158.35)):
        question = ask(GOLDEN.replace("devices: 32", f"devices: {devices}"))
        assert 1.0 / best_value(question) == pytest.approx(rate, abs=6e-3)
    found = program(ask(GOLDEN), Limits(), unwatched)
    assert found.answer is not None
    details = judge(ask(GOLDEN), found.answer).details
    assert [copies.count for copies in found.answer.workers] == [5, 3]
    assert (details.ttft, details.tpot) == (pytest.approx(0.19438, abs=1e-5), 0.009659)


def test_the_program_is_exact_in_whole_numbers() -> None:
    random = Random(2)
    for _ in range(200):
        kinds = [(random.randint(1, 5), random.randint(1, 30)) for _ in range(random.randint(1, 4))]
        best, last = rates_on(kinds, 12)
        for devices in (0, 5, 12):
            every = product(*(range(devices // size + 1) for size, _ in kinds))
            used = ((sum(n * size for n, (size, _) in zip(c, kinds, strict=True)), c) for c in every)
            assert best[devices] == max(sum(n * r for n, (_, r) in zip(c, kinds, strict=True)) for total, c in used if total <= devices)
            assert sum(count * kinds[kind][1] for kind, count in counts_on(kinds, last, devices).items()) == best[devices]
            assert best[devices] <= together_bound([(kinds, devices)], devices)


def test_where_two_parts_cross_is_the_best_split() -> None:
    random = Random(3)
    for _ in range(300):
        first, second = (sorted(random.randint(0, 40) for _ in range(11)) for _ in range(2))
        first[0] = second[0] = 0
        rate, devices = crossing(first, second, 10)
        assert rate == max(min(first[x], second[10 - x]) for x in range(11)) == min(first[devices], second[10 - devices])


def rising(random: Random, most: int) -> list[int]:
    return [0, *sorted(random.randint(0, 30) for _ in range(most))]


def test_divisions_of_several_kinds_as_by_a_look_at_all() -> None:
    """Together and apart, for the greatest rate and for the least cost, with limits of each kind and of all."""
    random = Random(5)
    for _ in range(200):
        kinds, roles, total = random.choice((2, 3)), random.choice((1, 2)), random.randint(2, 9)
        most = [random.randint(1, 4) for _ in range(kinds)]
        parts = [Part(tuple(rising(random, n) for _ in range(roles)), random.randint(1, 5), n) for n in most]
        needed = random.choice((None, random.randint(1, 60)))
        best: tuple[int, int] | None = None
        for counts in product(*(product(range(n + 1), repeat=roles) for n in most)):
            used = [sum(own) for own in counts]
            if sum(used) > total or any(own > n for own, n in zip(used, most, strict=True)):
                continue
            rate = min(sum(part.rates[role][own[role]] for part, own in zip(parts, counts, strict=True)) for role in range(roles))
            cost = sum(part.cost * own for part, own in zip(parts, used, strict=True))
            if rate and (needed is None or rate >= needed):
                key = (-rate, 0) if needed is None else (cost, -rate)
                best = key if best is None else min(best, key)
        found = divided(parts, total, needed)
        assert (found is None) == (best is None)
        if found is not None and best is not None:
            assert (found.rate if needed is None else found.cost) == abs(best[0])
            assert found.rate == min(
                sum(part.rates[role][own[role]] for part, own in zip(parts, found.devices, strict=True)) for role in range(roles)
            )
            assert all(sum(own) <= n for own, n in zip(found.devices, most, strict=True))


@pytest.mark.parametrize(("objective", "level"), some(list(product(("throughput", "devices", "cost", "energy"), ("mean", "p95"))), 4))
def test_several_kinds_of_devices_as_by_a_look_at_every_plan(objective: str, level: str) -> None:
    text = f"{LLAMA}objective: {objective}\n".replace("h100-sxm", "[h100-sxm, h200]").replace("40 ms", f"40 ms, at: {level}")
    text = text.replace("devices: 16", "available: {h100-sxm: 2, h200: 4}").replace("output: 200", "output: 200, rate: 1.5")
    question = ask(text.replace("tensor: [4, 8], batch: [8, 32]", "tensor: 2, batch: 32, prefill_batch: 1"))
    found = program(question, Limits(), unwatched)
    assert found.answer is not None
    assert judge(question, found.answer).violations == ()
    assert judge(question, found.answer).value == found.bound == exhaustive(question, Limits(), unwatched).value
    alone = [judge(question, baseline.answer).value for baseline in found.baselines if baseline.answer]
    assert alone
    assert min(alone) >= (found.bound or 0.0)


def test_a_kind_of_device_that_no_worker_is_on_slows_nothing() -> None:
    """The network of l40s has an eighth of the rate of that of mi300x."""
    text = """\
kind: serving
model: qwen3-32b
hardware: [l40s, mi300x]
available: {l40s: 2, mi300x: 3}
requests: {input: 4000, output: 20}
limits: {ttft: 600 ms, tpot: 20 ms, at: p99}
choices: {tensor: 1, batch: 128, prefill_batch: [1, 2], mode: apart}
"""
    both, fast = ask(text), ask(text.replace("[l40s, mi300x]", "mi300x").replace("available: {l40s: 2, mi300x: 3}", "devices: 3"))
    found, alone = program(both, Limits(), unwatched), program(fast, Limits(), unwatched)
    assert found.answer is not None and alone.bound is not None
    assert found.bound == judge(both, found.answer).value == alone.bound == exhaustive(both, Limits(), unwatched).value


CLASSES = """\
kind: serving
model: llama3-8b
hardware: h100-sxm
devices: 8
objective: devices
classes:
  chat: {input: 500, output: 100, rate: 30}
  code: {input: 2000, output: 300, rate: 5}
  long: {input: 8000, output: 50, rate: 2}
limits: {ttft: 1 s, tpot: 15 ms}
choices: {tensor: [1, 2], batch: 32, prefill_batch: 1, mode: together}
"""


@pytest.mark.parametrize(
    ("pools", "edit"),
    [
        ("any", ("", "")),
        ("own", ("objective: devices", "objective: cost")),
        ("shared", ("together", "[together, apart], tensor: 1")),
        pytest.param("any", ("objective: devices", "objective: cost"), marks=pytest.mark.thorough),
    ],
)
def test_classes_in_pools_as_by_a_look_at_every_partition(pools: str, edit: tuple[str, str]) -> None:
    text = CLASSES.replace("mode: together", f"mode: together, pools: {pools}").replace(*edit)
    question = ask(text.replace("tensor: [1, 2], ", "") if "tensor: 1" in edit[1] else text)
    found, looked = program(question, Limits(), unwatched), exhaustive(question, Limits(), unwatched)
    assert found.answer is not None
    verdict = judge(question, found.answer)
    assert verdict.violations == ()
    assert verdict.value == found.bound == looked.value
    labels = {copies.shape.classes for copies in found.answer.workers}
    assert pools == "any" or labels == ({""} if pools == "shared" else {"chat", "code", "long"})


@pytest.mark.thorough
def test_more_ways_to_pool_classes_take_no_more_devices() -> None:
    devices = {pools: best_value(ask(CLASSES.replace("mode: together", f"pools: {pools}"))) for pools in ("any", "own", "shared")}
    assert devices["any"] <= min(devices.values())


def test_of_equal_plans_the_one_with_the_fewest_pools_is_taken() -> None:
    """Two devices serve these rates in one pool and in two, and more requests a second in two."""
    text = CLASSES.replace("rate: 30", "rate: 15").replace("rate: 2}", "rate: 1}").replace("tensor: [1, 2]", "tensor: 1, pools: any")
    found, alone = (solved(ask(edited)) for edited in (text, text.replace("pools: any", "pools: shared")))
    assert found is not None and alone is not None
    assert found.devices == alone.devices == 2
    assert len(found.pools) == 1


def test_plans_that_leave_a_class_out_or_serve_it_twice_are_none() -> None:
    question = ask(CLASSES.replace("mode: together", "mode: together, pools: own"))
    plan = program(question, Limits(), unwatched).answer
    assert plan is not None
    shared = program(ask(CLASSES.replace("mode: together", "mode: together, pools: shared")), Limits(), unwatched).answer
    assert shared is not None
    for workers in (plan.workers[:-1], (*plan.workers, *shared.workers)):
        with pytest.raises(ValueError, match="each class of requests needs one pool of workers"):
            judge(question, ServingPlan(workers))


def test_pools_other_than_the_question_offers_are_refused() -> None:
    shared, own = (ask(CLASSES.replace("mode: together", f"mode: together, pools: {pools}")) for pools in ("shared", "own"))
    apart, all_in_one = (program(question, Limits(), unwatched).answer for question in (own, shared))
    assert apart is not None and all_in_one is not None
    with pytest.raises(ValueError, match="pools: shared leaves no other pools of workers"):
        judge(shared, apart)
    with pytest.raises(ValueError, match="pools: own leaves no other pools of workers"):
        judge(own, all_in_one)


def test_equal_classes_are_one_class_of_their_rates_together() -> None:
    """Their prices differ in the last digits alone, as means of equal figures do."""
    one = ask(LLAMA.replace("output: 200", "output: 200, rate: 3").replace("devices: 16", "devices: 16\nobjective: devices"))
    section = "classes: {first: {input: 2000, output: 200, rate: 2}, other: {input: 2000, output: 200, rate: 1}}"
    two = ask(
        LLAMA.replace("requests: {input: 2000, output: 200}", section)
        .replace("devices: 16", "devices: 16\nobjective: devices")
        .replace("choices: {", "choices: {pools: shared, ")
    )
    for first, second in zip(priced(one, shapes_of(one)), priced(two, shapes_of(two)), strict=True):
        assert second.rate == pytest.approx(first.rate, rel=1e-9)
        assert (second.ttft, second.tpot, second.memory) == pytest.approx((first.ttft, first.tpot, first.memory))
        assert second.queue == pytest.approx(first.queue, abs=1e-12)
    assert best_value(one) == best_value(two)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (("objective: devices", "objective: throughput"), "classes have rates"),
        (("classes:", "requests: {input: 1, output: 1}\nclasses:"), "one of requests, classes and log is needed"),
        (("  chat:", "  a and b:"), "a class has a name without"),
        (("rate: 2}", "rate: 0}"), "rate"),
        (("limits:", "context: 4000\nlimits:"), "8,050 tokens of input and output are beyond the context of 4,000"),
    ],
)
def test_faults_of_classes_are_sentences(edit: tuple[str, str], message: str) -> None:
    with pytest.raises(InstanceError) as caught:
        ask(CLASSES.replace(*edit))
    assert message in str(caught.value)


def test_a_class_that_no_plan_serves_is_named() -> None:
    found = program(ask(CLASSES.replace("rate: 5}", "rate: 5000}")), Limits(), unwatched)
    assert found.bound == inf
    assert found.reasons[0].startswith("code: rate: 5000 a second are asked")
    few = program(ask(CLASSES.replace("devices: 8", "devices: 3").replace("together}", "together, pools: own}")), Limits(), unwatched)
    assert few.reasons == ("devices: the classes need more than the 3 of the question",)


def test_a_cached_prefix_is_attended_to_and_not_computed() -> None:
    """A prompt of 2,000 tokens of which 1,000 are cached takes longer than one of 1,000, and less than all; the memory is the same."""
    plain = LLAMA.replace("[8, 32]}", "[8, 32], prefill_batch: 1}")
    asked = [ask(plain.replace("input: 2000", text)) for text in ("input: 2000", "input: 2000, cached: 1000", "input: 1000")]
    for whole, cached, short in zip(*(priced(question, shapes_of(question)) for question in asked), strict=True):
        if whole.shape.role == "decode":
            assert (cached.rate, cached.tpot) == (whole.rate, whole.tpot)
        else:
            assert short.ttft < cached.ttft < whole.ttft
            assert short.rate > cached.rate > whole.rate
        assert cached.cache == whole.cache > short.cache
    assert rate_of(asked[1]) > rate_of(asked[0])
    with pytest.raises(InstanceError, match="2,000 tokens are cached of a prompt of 2,000"):
        ask(LLAMA.replace("input: 2000", "input: 2000, cached: 2000"))


def test_money_at_the_rate_that_is_asked_for_is_least() -> None:
    """Not that of the rate that the devices could serve: more devices with more requests each would be dearer."""
    question = ask(f"{LLAMA}objective: cost\nrent: 3.6 USD\n".replace("output: 200", "output: 200, rate: 1"))
    found = program(question, Limits(), unwatched)
    assert found.answer is not None
    said = judge(question, found.answer).details
    fewest = best_value(ask(f"{LLAMA}objective: devices\n".replace("output: 200", "output: 200, rate: 1")))
    assert said.devices == fewest
    assert found.bound == pytest.approx(fewest * 3.6 / 3600 * 1e6 / 200)


def test_energy_is_that_of_all_devices_at_their_power_limit() -> None:
    """700 W of an H100 and 400 W of an A100 for the tokens of the rate; the kind that takes less energy is taken, not the fewer devices."""
    text = f"{LLAMA}objective: energy\n".replace("output: 200", "output: 200, rate: 1")
    fewest = best_value(ask(text.replace("energy", "devices")))
    assert best_value(ask(text)) == pytest.approx(fewest * 700 / 200)
    mixed = ask(text.replace("h100-sxm", "[h100-sxm, a100-80g]"))
    found = program(mixed, Limits(), unwatched)
    assert found.answer is not None
    used = {copies.shape.device or "h100-sxm": 0 for copies in found.answer.workers}
    for copies in found.answer.workers:
        used[copies.shape.device or "h100-sxm"] += copies.count * copies.shape.tensor * copies.shape.pipeline
    watts = sum({"h100-sxm": 700, "a100-80g": 400}[device] * count for device, count in used.items())
    assert found.bound == pytest.approx(watts / 200)
    assert (found.bound or 0.0) <= best_value(ask(text))


def test_a_percentile_takes_no_fewer_devices_than_the_mean_and_a_higher_one_no_fewer_than_a_lower() -> None:
    rates = [rate_of(ask(LLAMA.replace("40 ms", f"40 ms, at: {level}"))) for level in ("mean", "p90", "p95", "p99")]
    assert rates == sorted(rates, reverse=True)
    assert rates[1] > rates[3] > 0.0


def test_multipliers_bound_parts_apart() -> None:
    prefill, decode = [(2, 7), (3, 11)], [(1, 2), (4, 9)]
    first, second = rates_on(prefill, 20)[0], rates_on(decode, 20)[0]
    for devices in range(21):
        assert crossing(first, second, devices)[0] <= apart_bound([(prefill, decode, devices)], devices)
    assert apart_bound([(prefill, decode, 20)], 20) == 20 * Fraction(11, 3) * Fraction(9, 4) / (Fraction(11, 3) + Fraction(9, 4))


def rate_of(question: ServingQuestion) -> float:
    value = best_value(question)
    return 0.0 if value == inf else 1.0 / value


EXPERTS = """\
kind: serving
model: qwen3-30b-a3b
hardware: h100-sxm
devices: 16
requests: {input: 1000, output: 100}
limits: {ttft: 1 s, tpot: 40 ms}
choices: {tensor: [2, 4], expert: 2, data: [1, 2], batch: [8, 32]}
"""


def options(mode: str, experts: bool) -> ServingQuestion:
    """A dense model, or one with experts, groups with attention of their own and drafts."""
    drafts = "speculation: {accepted: {2: 1.8}}\n" if experts else ""
    return ask((EXPERTS if experts else LLAMA).replace("batch: [8, 32]", f"batch: [1, 8, 32, 128, 512], mode: {mode}") + drafts)


OPTIONS = [
    ("together", False),
    pytest.param("apart", False, marks=pytest.mark.thorough),
    pytest.param("together", True, marks=pytest.mark.thorough),
    pytest.param("apart", True, marks=pytest.mark.thorough),
]


@pytest.mark.parametrize(("mode", "experts"), OPTIONS)
def test_throughput_never_falls_with_devices_memory_or_bandwidth(mode: str, experts: bool) -> None:
    question = options(mode, experts)
    [kind] = question.kinds
    hardware = kind.hardware
    dram, links = hardware.dram, hardware.links
    before = 0.0
    for devices in (2, 4, 5, 8, 12, 16, 31, 64):
        now = rate_of(replace(question, file=replace(question.file, devices=devices)))
        assert now >= before
        before = now
    for name in ("capacity", "bandwidth"):
        before = 0.0
        for factor in (0.5, 0.7, 1.0, 1.2, 2.0):
            memory = replace(dram, **{name: getattr(dram, name) * factor})
            room = kind.usable_memory * (factor if name == "capacity" else 1.0)
            other = replace(kind, hardware=replace(hardware, dram=memory), usable_memory=room)
            now = rate_of(replace(question, kinds=(other,)))
            assert now >= before
            before = now
    before = 0.0
    for factor in (0.3, 1.0, 3.0):
        wider = tuple(replace(link, bandwidth=link.bandwidth * factor) for link in links)
        now = rate_of(replace(question, kinds=(replace(kind, hardware=replace(hardware, links=wider)),)))
        assert now >= before
        before = now


@pytest.mark.thorough
@pytest.mark.parametrize("experts", [False, True])
def test_throughput_never_rises_where_limits_tighten(experts: bool) -> None:
    question = options("[apart, together]", experts)
    for name, sizes in (("ttft", (10.0, 2.0, 0.8, 0.4, 0.2, 0.1, 0.01)), ("tpot", (0.2, 0.05, 0.03, 0.02, 0.012, 0.008, 0.004, 0.0004))):
        before = inf
        for limit in sizes:
            limits = replace(question.file.limits, **{name: limit})
            now = rate_of(replace(question, file=replace(question.file, limits=limits)))
            assert now <= before
            before = now
        assert before == 0.0


def test_workers_alone_and_in_a_block_have_one_price() -> None:
    question = ask(LLAMA.replace("tensor: [4, 8]", "tensor: [2, 4, 8], pipeline: [1, 2], chunk: [512, 8192]"))
    every = list(shapes_of(question))
    together = priced(question, every)
    assert {shape.role for shape in every} == {"both", "prefill", "decode"}
    for shape, offer in list(zip(every, together, strict=True))[::5]:
        assert priced(replace(question), [shape]) == (offer,), "of a question that knows no prices"


def test_ten_thousand_devices_and_fifty_kinds() -> None:
    """Of a size at which nobody looks at every plan: the bound by multipliers is close above."""
    random = Random(4)
    roles = ["prefill", "decode"] * 25
    rows = [
        f"  w{n}: {{role: {role}, devices: {random.randint(1, 64)}, rate: {random.uniform(1, 90):.4f}}}" for n, role in enumerate(roles)
    ]
    question = ask("\n".join(["kind: serving", "requests: {input: 10, output: 10}", "devices: 10000", "workers:", *rows]))
    result = solve_and_verify(family_of("serving"), question, "auto", Limits(), unwatched)
    assert result.optimal
    table = table_of(question)
    best = best_of(question, table)
    assert best is not None
    assert best.rate <= multiplier_bound(question, table, 10_000) <= best.rate * 1.01


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ("{tpot: 1 ms}", "tpot: 1 ms are asked, no worker takes less than"),
        ("{ttft: 1 ms}", "ttft: 1 ms are asked, no worker takes less than"),
    ],
)
def test_limits_below_the_floor_are_named(limits: str, sentence: str) -> None:
    found = program(ask(LLAMA.replace("{ttft: 1 s, tpot: 40 ms}", limits)), Limits(), unwatched)
    assert found.answer is None
    assert found.reasons[0].startswith(sentence)
    assert ("the weights alone pass from memory in 2.6" in found.reasons[0]) == ("tpot" in limits)


def test_other_reasons_are_named() -> None:
    def reason(text: str) -> str:
        question = ask(text)
        return reasons_of(question, table_of(question))[0]

    assert reason(LLAMA.replace("tensor: [4, 8]", "tensor: 1")).startswith("memory: no worker fits into 74.7")
    assert reason(f"{LLAMA}memory: 0.0001\n").startswith("memory: no worker fits into 0 GB")
    assert reason(LLAMA.replace("devices: 16", "devices: 3")) == "devices: a worker needs 4, more than the 3 of the question"
    assert reason(LLAMA.replace("output: 200", "output: 200, rate: 1000")).startswith("rate: 1000 a second are asked, 16 devices serve ")
    one, other = "{role: both, devices: 1, rate: 1, ttft: 9 ms, tpot: 90 ms}", "{role: both, devices: 1, rate: 1, ttft: 900 ms, tpot: 9 ms}"
    clash = f"kind: serving\nrequests: {{input: 9, output: 9}}\ndevices: 2\nworkers: {{one: {one}, other: {other}}}\n"
    assert reason(f"{clash}limits: {{ttft: 10 ms, tpot: 10 ms}}") == (
        "ttft and tpot: each can be kept, no worker that fits into memory keeps both"
    )


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (("model: llama3-70b\n", ""), "one of model and config is needed"),
        (("model: llama3-70b", "model: llama9"), "llama9"),
        (("model: llama3-70b", "model: gemm-1024"), "gemm-1024 is no transformer"),
        (("hardware: h100-sxm", "hardware: h900"), "h900"),
        (("hardware: h100-sxm\n", ""), "a device is needed"),
        (("hardware: h100-sxm", "hardware: [h100-sxm, h200, b200, b300, a100-80g]"), "5 kinds of devices are more than the 4"),
        (("devices: 16", "devices: 16\navailable: {h200: 3}"), "'h200' is none of the devices"),
        (("hardware: h100-sxm", "hardware: [h200, b200]\nobjective: cost"), "cheapest devices of several kinds for which rate"),
        (("tpot: 40 ms}\nchoices: {", "tpot: 40 ms}\nchoices: {shapes: any, "), "queues in front of several shapes are not priced"),
        (("devices: 16\n", ""), "how many devices are there at most"),
        (("devices: 16\n", "objective: devices\n"), "the fewest devices for which rate"),
        (("devices: 16\n", "objective: energy\n"), "the fewest devices for which rate"),
        (("output: 200", "output: 0"), "output"),
        (("output: 200", "output: .nan"), "output"),
        (("output: 200", "output: 200, rate: 0"), "rate"),
        (("output: 200}", "output: 1}\ncontext: 2000"), "2,001 tokens of input and output are beyond the context of 2,000"),
        (("input: 2000", "input: 131000"), "131,200 tokens of input and output are beyond the context of 131,072"),
        (("tensor: [4, 8]", "tensor: [3]"), "3 ranks cannot share 64 heads evenly"),
        (("tensor: [4, 8]", "tensor: [16]"), "16 ranks are more than the 8 of which exchanges are priced"),
        (("tensor: [4, 8]", "pipeline: [100]"), "100 stages are more than the 80 layers"),
        (("tensor: [4, 8]", "chunk: [1]"), "1 tokens make 2,000 steps of a prompt, 256 are priced (take 8 or more)"),
        (("tensor: [4, 8]", "expert: [2]"), "the model has no experts"),
        (("tensor: [4, 8]", "weights: [fp4]"), "h100-sxm has no peak in fp4"),
        (("limits: {ttft: 1 s", "limits: {ttft: 0 s"), "ttft"),
        (("hardware: h100-sxm", "hardware: trainium2\nobjective: cost"), "what does a device cost an hour"),
        (("devices: 16", "devices: 16\nrent: 1e300 USD"), "rent: '1e300 USD' is too large (at most 1000000000 USD)"),
        (("devices: 16", "devices: 16\nrents: {h100-sxm: 1e-300 USD}"), "rents.h100-sxm: '1e-300 USD' is too small"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(edit: tuple[str, str], message: str) -> None:
    with pytest.raises(InstanceError) as caught:
        ask(LLAMA.replace(*edit))
    assert len(caught.value.faults) == 1
    assert message in str(caught.value)


def test_a_file_with_a_registered_devices_figures_is_priced_like_it_also_under_another_name() -> None:
    registered = entry_text("hardware", "h200")
    for name in ("h200", "other"):
        files = Files(Path(), {"own.yaml": f"name: {name}\n{registered}"})
        own = read_given(LLAMA.replace("h100-sxm", "own.yaml"), "serving", files=files)
        assert own.kinds[0].name == name
        known = ask(LLAMA.replace("h100-sxm", "h200"))
        assert priced(own, shapes_of(own)) == priced(known, shapes_of(known))
    slower = Files(Path(), {"own.yaml": registered.replace("bandwidth: 4800 GB/s", "bandwidth: 2400 GB/s")})
    assert best_value(read_given(LLAMA.replace("h100-sxm", "own.yaml"), "serving", files=slower)) > best_value(own)


def test_exchanges_over_pcie_are_not_priced_by_those_over_nvlink() -> None:
    sheet = "peak: {bf16: 300 TFLOP/s}\ndram: {capacity: 64 GiB, bandwidth: 1 TB/s}\nnetwork: {node: {bandwidth: LINK GB/s}}\n"
    both = []
    for link in ("50", "300"):
        files = Files(Path(), {"own.yaml": sheet.replace("LINK", link)})
        both.append(kernels_of(read_given(LLAMA.replace("h100-sxm", "own.yaml"), "serving", files=files), Shape("both"))[1])
    assert [next(text for text in lent if "all-reduces" in text) for lent in both] == [
        "all-reduces by rtx-pro-6000",
        "all-reduces by a100-80g",
    ]


def test_times_per_token_are_those_of_the_requests_in_flight() -> None:
    """Few where few requests come, as many as by Little's law where copies are many, and within the limit at the greatest rate."""
    question = ask(LLAMA.replace("requests: {input: 2000, output: 200}", "requests: {input: 2000, output: 201}"))
    full = Shape("decode", weights="fp8", tensor=8, batch=128, chunk=8192)
    alone, some, every = priced(question, [replace(full, batch=batch) for batch in (1, 48, 128)])
    assert latencies_at("p95", every, 1, 1e-9) == (0.0, alone.tpot)
    arriving = 48 / (200 * some.tpot)  # a request gets 200 tokens after its first
    assert latencies_at("p50", every, 1 << 16, arriving)[1] == pytest.approx(some.tpot, rel=0.03)
    times = [latencies_at("p95", every, copies, arriving)[1] for copies in (1, 4, 64, 1 << 16)]
    assert times == sorted(times, reverse=True)
    assert times[0] > 1.05 * some.tpot
    assert latencies_at("p99", every, 1, 1e6)[1] == every.tpot
    for copies in (1, 3, 32):
        tight, loose = (int(units_within("p95", 1.0, tpot, every, np.array([copies]))[0]) for tpot in (some.tpot, 1.0))
        assert 0 < tight < loose < every.rate
        assert (
            latencies_at("p95", every, copies, tight / UNITS)[1] <= some.tpot < latencies_at("p95", every, copies, 1.05 * tight / UNITS)[1]
        )
    assert latencies_at("p95", priced(question, [replace(full, role="prefill", batch=1)])[0], 1, 1.0)[1] == 0.0


def test_a_stated_context_is_taken_before_that_of_the_published_model() -> None:
    long = LLAMA.replace("llama3-70b", "qwen3-32b").replace("input: 2000", "input: 50000").replace("1 s", "60 s")
    with pytest.raises(InstanceError, match="50,200 tokens of input and output are beyond the context of 40,960"):
        ask(long)
    assert ask(f"{long}context: 131072\n").input == 50_000


@pytest.mark.parametrize("rate", [1.1, 0.1, 0.29, 3.3, 0.000001, 12345.678901234])
def test_workers_whose_rates_add_up_to_the_rate_that_is_asked_for_serve_it(rate: float) -> None:
    """2 x 1.1 = 2.2, whatever their nearest binary fractions are."""
    asked = float(Fraction(str(rate)) * 2)
    workers = f"{{a: {{role: prefill, devices: 1, rate: {rate}}}, b: {{role: decode, devices: 1, rate: {rate}}}}}"
    text = f"kind: serving\nrequests: {{input: 9, output: 9, rate: {asked!r}}}\nobjective: devices\ndevices: 8\nworkers: {workers}\n"
    found = program(ask(text), Limits(), unwatched)
    assert (found.value, found.bound) == (4, 4)
    few = program(ask(text.replace("devices: 8", "devices: 3")), Limits(), unwatched)
    assert few.bound == inf


def test_weights_are_block_scaled_where_the_checkpoint_of_the_model_is() -> None:
    for model, weights in (("deepseek-v3", ("fp8-block",)), ("qwen3-30b-a3b", ("fp8-block",)), ("llama3-70b", ("fp8",))):
        assert ask(LLAMA.replace("llama3-70b", model)).kinds[0].options.weights == weights
    assert ask(LLAMA.replace("h100-sxm", "a100-80g").replace("llama3-70b", "qwen3-30b-a3b")).kinds[0].options.weights == ("bf16",)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (("  second: {role: decode, devices: 4, rate: 13.279, tpot: 9.659 ms}\n", ""), "there are prefill workers and none for decode"),
        (("devices: 32", "devices: 32\nhardware: h200"), "hardware is not needed where workers are stated"),
        (("rate: 13.279", "rate: -1"), "rate"),
        (("devices: 4, rate: 13.279", "devices: 0, rate: 13.279"), "devices"),
        (("rate: 13.279", "rate: 0.00000001"), "1e-08 is so small that rounding down its share loses a millionth"),
    ],
)
def test_stated_workers_are_refused_in_a_sentence(edit: tuple[str, str], message: str) -> None:
    with pytest.raises(InstanceError) as caught:
        ask(GOLDEN.replace(*edit))
    assert message in str(caught.value)


def test_one_token_is_served_by_prefill_alone() -> None:
    question = ask(LLAMA.replace("output: 200", "output: 1"))
    found = program(question, Limits(), unwatched)
    assert found.answer is not None
    assert {copies.shape.role for copies in found.answer.workers} == {"both"}
    assert judge(question, found.answer).details.tpot == 0.0
    with pytest.raises(InstanceError, match="answers of one token need no decode workers"):
        ask(LLAMA.replace("output: 200", "output: 1").replace("tensor: [4, 8]", "mode: [apart], tensor: 4"))


def test_the_judge_refuses_what_the_question_does_not_offer() -> None:
    question = ask(LLAMA)
    found = program(question, Limits(), unwatched).answer
    assert found is not None
    first = found.workers[0]
    other = replace(first, shape=replace(first.shape, batch=9))
    for workers in ((other,), (replace(first, count=0),), (first, first), ()):
        with pytest.raises(ValueError, match=r".+"):
            judge(question, ServingPlan(workers))
    assert "devices are more than 16" in judge(question, ServingPlan((replace(first, count=99),))).violations[0]


def test_a_forged_bound_is_refused() -> None:
    family: Any = family_of("serving")
    question = ask(LLAMA)
    result = solve_and_verify(family, question, "auto", Limits(), unwatched)
    assert prove(question, result, unwatched).refused == ()
    forged = replace(result, bound=result.bound * 1.01)
    assert "bound: a plan has the value" in prove(question, forged, unwatched).refused[0]


def test_a_worker_says_which_limits_it_breaks() -> None:
    question = ask(LLAMA)
    offer: Offer = priced(question, list(shapes_of(question))[:1])[0]
    assert broken(question, offer) == ()
    means = replace(question, file=replace(question.file, limits=replace(question.file.limits, at="mean")))
    assert broken(means, replace(offer, ttft=9.0, tpot=9.0, weights=1e12, rate=0)) == ("memory", "ttft", "tpot", "rate")
    assert broken(question, replace(offer, queue=(9.0,) * len(offer.queue), load=((8.0, 1.0, 9.0),), weights=1e12, rate=0)) == (
        "memory",
        "ttft",
        "tpot",
        "rate",
    )
    assert offer.rate < UNITS * 100


def test_looking_at_every_plan_ends_at_its_limit_with_the_best_so_far() -> None:
    question = ask(LLAMA.replace("devices: 16", "devices: 8"))
    stopped = exhaustive(question, Limits(1e-9), unwatched)
    assert (stopped.stopped, stopped.answer) == ("time limit", None)
    assert exhaustive(question, Limits(), unwatched).stopped == "complete"


def test_units_and_parts_by_rules_of_others_are_never_better() -> None:
    """By hand for 20 requests a second: a unit of 3 prefill and 2 decode workers serves 7.3, so three of them; part by part 7 and 6."""
    text = GOLDEN.replace("output: 500", "output: 500, rate: 20").replace("devices: 32", "devices: 64\nobjective: devices")
    text = text.replace("devices: 4, rate: 9.260", "devices: 1, rate: 3.334").replace("devices: 4, rate: 13.279", "devices: 2, rate: 3.98")
    question = ask(text)
    found = program(question, Limits(), unwatched)
    plans = {baseline.name: baseline.answer for baseline in found.baselines}
    recommended, parts = plans["recommended"], plans["part by part"]
    assert recommended is not None
    assert parts is not None
    assert [copies.count for copies in recommended.workers] == [9, 6]
    assert [copies.count for copies in parts.workers] == [7, 6]
    assert found.bound == 19
    assert judge(question, recommended).value == 21
    assert judge(question, parts).value == 19
    own = ask(LLAMA.replace("output: 200", "output: 200, rate: 2").replace("devices: 16", "devices: 64\nobjective: devices"))
    best = program(own, Limits(), unwatched)
    values = {one.name: judge(own, one.answer).value for one in best.baselines if one.answer is not None}
    assert {"recommended", "part by part"} <= set(values)
    assert min(values.values()) >= (best.bound or 0.0)
    result = solve_and_verify(family_of("serving"), own, "program", Limits(), unwatched)
    renamed = {"largest copies": "smallest copies", "smallest copies": "largest copies"}
    exchanged = tuple(replace(one, name=renamed.get(one.name, one.name)) for one in result.baselines)
    assert check_answer(family_of("serving"), result, own).accepted
    for edited in (exchanged, result.baselines[1:]):
        refused = check_answer(family_of("serving"), replace(result, baselines=edited), own).refused
        assert any(reason.startswith("baselines: largest copies ") for reason in refused)


def test_attention_in_groups_is_offered_as_many_requests_a_group() -> None:
    question = ask(
        "kind: serving\nmodel: deepseek-v3\nhardware: b200\ndevices: 16\nrequests: {input: 100, output: 100}\nchoices: {tensor: 8}\n"
    )
    largest = {data: max(shape.batch for shape in shapes_of(question) if (shape.role, shape.data) == ("decode", data)) for data in (1, 8)}
    assert largest == {1: 512, 8: 4096}


def test_a_stated_time_with_its_factor_keeps_a_limit_that_it_equals() -> None:
    """10 ms times 1.8 are 18 ms; the product of the two floats is more."""
    text = GOLDEN.replace("ttft: 107.988 ms", "ttft: 10 ms").replace("ttft: 300 ms", "ttft: 18 ms")
    assert 0.01 * 1.8 > 0.018
    assert best_value(ask(text)) < inf


def test_the_link_is_a_bandwidth() -> None:
    with pytest.raises(InstanceError, match=r"matching\.link: '1' has no unit, a bandwidth is needed"):
        ask(f"{LLAMA}matching: {{link: 1}}\n")
    assert sent_at(ask(f"{LLAMA}matching: {{link: 50 GB/s}}\n")) == 50e9


def test_too_few_devices_for_both_parts_are_the_reason() -> None:
    text = LLAMA.replace("devices: 16", "devices: 4").replace("tensor: [4, 8], batch: [8, 32]", "tensor: 4, batch: 8, mode: apart")
    question = ask(text.replace("40 ms", "40 ms, at: mean"))
    found = program(question, Limits(), unwatched)
    assert found.reasons == ("devices: a prefill and a decode worker need 8, more than the 4 of the question",)
    document = crossopt.solve(text).data
    assert crossopt.check(document).accepted
    doubtful = {**document, "status": "UNKNOWN", "proved": False, "proof": {**document["proof"], "form": "unverified"}}
    assert crossopt.check(doubtful).accepted
    assert not crossopt.check({**doubtful, "reasons": ["devices: 9 are too few"]}).accepted


def test_prefill_and_decode_workers_have_the_formats_of_the_cache_and_of_weights_in_common() -> None:
    """Engines pass caches as they are. A pair of two formats would be better here, and is refused by the judge; all plans are looked at."""
    text = "kind: serving\nmodel: llama3-8b\nhardware: l40s\ndevices: 6\nrequests: {input: 3000, output: 300}\nlimits: {at: mean}\n"
    choices = "choices: {tensor: 1, batch: 4, shapes: one, prefill_batch: 1, weights: [fp8, int4], cache: [bf16, fp8], mode: apart}\n"
    question = read_given(f"{text}{choices}", "serving")
    found, looked = (engine(question, Limits(), unwatched) for engine in (program, exhaustive))
    assert found.answer is not None
    assert found.bound == judge(question, found.answer).value == looked.value
    assert len({(copies.shape.weights, copies.shape.cache) for copies in found.answer.workers}) == 1
    every = list(priced(question, shapes_of(question)))
    best = [max((offer for offer in every if offer.shape.role == role), key=lambda one: one.rate).shape for role in ("prefill", "decode")]
    assert (best[0].weights, best[1].weights) == ("fp8", "int4")
    mixed = judge(question, ServingPlan((Copies(1, best[0]), Copies(5, best[1]))))
    assert mixed.value < found.bound
    assert mixed.violations == ("prefill and decode workers differ in formats of the cache or of weights",)
    several = read_given(f"{text}{choices}".replace("l40s", "[a100-80g, h200]").replace("weights: [fp8, int4], ", ""), "serving")
    assert {kind.options.weights for kind in several.kinds} == {("bf16",), ("fp8",)}
    assert len({handed_over(several, shape) for shape in shapes_of(several)}) == 2, "caches alone, where devices have other weights"
