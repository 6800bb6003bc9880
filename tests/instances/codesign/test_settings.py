"""Settings hold where they apply: no listed value deletes a plan, one more option never loses a design, and a default may be named."""

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossopt.crossflow.plan import Plan
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.plan_groups import left_out
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.codesign.space import allows, combinations
from crossopt.instances.errors import InstanceError
from crossopt.reports.cli import main
from crossopt.reports.sheets.codesign.design import combinations_section, reasons_of
from crossopt.reports.sheets.sheet import Folded
from tests.extent import examples
from tests.instances.codesign.test_space import every_combination, plans_of
from tests.solvers.codesign.asking import answered
from tests.solvers.codesign.questions import GEMM, TINY_FREE, ask, meant
from tests.solvers.codesign.test_exhaustive import values_one_by_one

SMALL = """
kind: codesign
workload: {transformer: {layers: 8, hidden: 1024, heads: 8, ffn: 4096, vocabulary: 32000, sequence: 1024}, global_batch: 32}
cluster: {devices: 8, devices_per_node: 4}
hardware: a100-40g
"""
LLAMA = """
kind: codesign
workload:
  transformer: {layers: 28, hidden: 3072, heads: 24, kv_heads: 8, ffn: 8192, gated: true, vocabulary: 128256, sequence: 8192}
  global_batch: 256
cluster: {devices: 128}
hardware: h100-sxm
choices: {tensor: divisors, pipeline: divisors, microbatch: [1, 2, 4], zero: [0, 1, 2, 3], recompute: [none, selective, full]}
"""
OPTIONS = {
    "tensor": ["1", "2", "4", "8"],
    "context": ["1", "2"],
    "pipeline": ["1", "2", "4", "8"],
    "microbatch": ["1", "2", "4"],
    "interleave": ["1", "2", "4"],
    "sequence_parallel": ["false", "true"],
    "recompute": ["none", "selective", "full"],
    "zero": ["0", "1", "2", "3"],
    "overlap": ["none", "data", "pipeline", "both"],
    "expert": ["1", "2"],
}
DEFAULTS = {name: "divisors" if name == "data" else options[0] for name, options in {**OPTIONS, "data": [""]}.items()}
FULL = ["tensor=[1,2,4,8]", "pipeline=[1,2,4,8]"]


def listed(choices: dict[str, list[str]]) -> list[str]:
    return [f"{name}=[{','.join(options)}]" for name, options in choices.items() if options]


@st.composite
def choices(draw: st.DrawFn) -> dict[str, list[str]]:
    """Options of some settings; degrees always leave a plan."""
    names = draw(st.lists(st.sampled_from(sorted(OPTIONS)), unique=True, max_size=6))
    found = {name: draw(st.lists(st.sampled_from(OPTIONS[name]), unique=True, min_size=1)) for name in names}
    return found | {name: sorted({"1", *found[name]}) for name in ("tensor", "context", "pipeline") if name in found}


def test_layers_of_full_recomputation_are_modes_of_it() -> None:
    text = f"{TINY_FREE}  recompute_layers: [0, 2]\n"
    assert dict(ask(text).plan_options)["recompute"] == ("none", "full", "full-2")
    assert dict(ask(text, "recompute_layers=1", "recompute=[full, selective]").plan_options)["recompute"] == ("full-1", "selective")
    with pytest.raises(InstanceError, match="no choice for a workload other than a transformer"):
        ask(f"{GEMM}  recompute_layers: 1\n")


@settings(max_examples=8)
@given(choices(), st.data())
def test_one_more_option_never_makes_the_optimum_worse(some: dict[str, list[str]], data: st.DataObject) -> None:
    assert_no_worse(some, data)


@pytest.mark.slow
@examples(200)
@given(choices(), st.data())
def test_one_more_option_never_makes_the_optimum_worse_of_many(some: dict[str, list[str]], data: st.DataObject) -> None:
    assert_no_worse(some, data)


def assert_no_worse(some: dict[str, list[str]], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(OPTIONS)))
    more = some | {name: [*some.get(name, [DEFAULTS[name]]), data.draw(st.sampled_from(OPTIONS[name]))]}
    few, many = (answered(ask(SMALL, *listed(one)), "exhaustive").value for one in (some, more))
    assert few is None or (many is not None and many <= few)


@given(choices(), st.sampled_from(sorted(DEFAULTS)))
def test_a_default_that_is_named_changes_nothing(some: dict[str, list[str]], name: str) -> None:
    left = {other: options for other, options in some.items() if other != name}
    assert plans_of(ask(SMALL, *listed(left), f"{name}={DEFAULTS[name]}")) == plans_of(ask(SMALL, *listed(left)))


@given(choices())
def test_every_combination_that_keeps_the_rules_is_a_plan_once(some: dict[str, list[str]]) -> None:
    instance = ask(SMALL, *listed(some))
    plans = plans_of(instance)
    assert sorted(map(str, plans)) == sorted(map(str, every_combination(instance)))
    assert [allows(instance, plan) for plan in plans] == [None] * len(plans)


MORE = {
    **OPTIONS,
    "expert_tensor": ["0", "1", "2"],
    "tensor_exchange": ["exposed", "hidden"],
    "schedule": ["1f1b", "zero-bubble", "zero-bubble-v", "dualpipe"],
    "first_stage_layers": ["0", "1", "3"],
    "last_stage_layers": ["0", "1", "2"],
    "shard": ["0", "2", "4"],
    "placement": ["tensor-context-data-pipeline", "data-tensor-context-pipeline", "data-pipeline-tensor-context"],
}
EXPERTS = SMALL.replace("vocabulary", "experts: 4, experts_per_token: 2, vocabulary")


NAMES = st.lists(st.sampled_from(sorted(MORE)), unique=True, min_size=3, max_size=6)


@settings(max_examples=4)
@given(NAMES, st.sampled_from([SMALL, EXPERTS]))
def test_no_plan_is_lost_before_all_its_settings_are_known(names: list[str], text: str) -> None:
    assert_no_plan_is_lost(names, text)


@pytest.mark.slow
@examples(40)
@given(NAMES, st.sampled_from([SMALL, EXPERTS]))
def test_no_plan_of_more_questions_is_lost(names: list[str], text: str) -> None:
    assert_no_plan_is_lost(names, text)


def assert_no_plan_is_lost(names: list[str], text: str) -> None:
    """A beginning that breaks a rule may keep it with what comes after: chunks that no pipeline divides go in a V."""
    instance = ask(text, *listed({name: MORE[name] for name in {*names, "pipeline", "tensor"}}))
    assert set(plans_of(instance)) == set(every_combination(instance))


def test_a_fixed_overlap_does_not_force_a_pipeline() -> None:
    """Nor does sequence parallelism force tensor ranks: what is best without either is found with both."""
    fixed = answered(ask(LLAMA, "overlap=both", "sequence_parallel=true"), "boxes")
    free = answered(ask(LLAMA, "overlap=[none, data, pipeline, both]", "sequence_parallel=[false, true]"), "boxes")
    strict = answered(ask(LLAMA, "overlap=both", "sequence_parallel=true", "only=[overlap, sequence_parallel]"), "boxes")
    assert fixed.value == free.value
    assert strict.value is not None
    assert fixed.value is not None
    assert strict.value > fixed.value * 1.2


def test_both_overlaps_hold_the_one_that_there_is() -> None:
    """`[none, both]` hid the exchange of gradients of plans without stages."""
    plans = plans_of(ask(SMALL, *FULL, "overlap=[none, both]"))
    assert {plan.overlap for plan in plans if isinstance(plan, Plan) and plan.pipeline == 1 and plan.data > 1} == {"none", "data"}
    assert {plan.overlap for plan in plans if isinstance(plan, Plan) and plan.pipeline == 8} == {"none", "pipeline"}


def test_a_setting_only_leaves_out_what_it_says_and_tells_how_much() -> None:
    usual, strict = ask(SMALL, *FULL, "overlap=both"), ask(SMALL, *FULL, "overlap=both", "only=overlap")
    assert {plan.overlap for plan in plans_of(strict) if isinstance(plan, Plan)} == {"both"}
    out = left_out(strict)
    assert out is not None
    assert (out.plans, out.unlike) == (len(plans_of(strict)), len(plans_of(usual)) - len(plans_of(strict)))


def counted(instance: Instance) -> tuple[int, int]:
    """Plans and combinations, one by one."""
    return len(every_combination(instance)), combinations(instance)


@given(choices())
def test_what_is_left_out_is_counted(some: dict[str, list[str]]) -> None:
    instance = ask(SMALL, *listed(some))
    out = left_out(instance)
    assert out is not None
    assert (out.exact, (out.plans, out.combinations)) == (True, counted(instance))
    assert out.plans <= out.combinations - out.same - max((many for _, many in out.broken), default=0)
    assert [many for _, many in out.broken] == sorted((many for _, many in out.broken), reverse=True)


def test_all_opens_every_setting_and_what_is_named_stays() -> None:
    every = ask(SMALL, "choices=all")
    assert dict(every.plan_options)["tensor"] == (1, 2, 4, 8)
    assert dict(every.plan_options)["overlap"] == ("none", "data", "pipeline", "both")
    assert dict(every.plan_options)["offload"] == ("none",)
    one = ask(SMALL, "choices=all", "tensor=1")
    assert (dict(one.plan_options)["tensor"], one.plan_options[2:]) == ((1,), every.plan_options[2:])
    assert ask(SMALL, "rest=all", "tensor=1").plan_options == one.plan_options
    assert ask(SMALL, "choices=fixed").plan_options == ask(SMALL).plan_options
    assert answered(every, "boxes").value == answered(every, "exhaustive").value


def test_all_opens_layers_of_the_ends_and_of_recomputation_and_groups_that_share() -> None:
    """Eight devices are two nodes of four; DeepSpeed has none of these settings, torchtitan computes all layers again or none."""
    opened = {"last_stage_layers": (0, -1, -2, -3), "first_stage_layers": (0, -1), "shard": (0, 4)}
    again = ("none", "elements", "selective", "selective-elements", "full", "full-1", "full-2", "dense-part")
    listed_of = {stack: dict(ask(SMALL, "choices=all", f"stack={stack}").plan_options) for stack in ("null", "torchtitan", "deepspeed")}
    assert {name: listed_of["null"][name] for name in (*opened, "recompute")} == opened | {"recompute": again}
    assert {name: listed_of["torchtitan"][name] for name in (*opened, "recompute")} == opened | {"recompute": ("none", "full")}
    assert {name: listed_of["deepspeed"][name] for name in opened} == dict.fromkeys(opened, (0,))


def test_layers_below_zero_are_fewer_than_the_even_share() -> None:
    """Eight layers: four a stage of two, two a stage of four; one on each of eight, from which none can be taken."""
    text = SMALL + "choices: {pipeline: [1, 2, 4, 8], last_stage_layers: [0, -1, -3]}"
    ends = {(plan.pipeline, plan.last_stage_layers) for plan in plans_of(ask(text)) if isinstance(plan, Plan)}
    assert ends == {(1, 0), (2, 0), (2, 3), (2, 1), (4, 0), (4, 1), (8, 0)}
    assert allows(ask(text), Plan(pipeline=2, data=4, last_stage_layers=3)) is None
    assert allows(ask(text), Plan(pipeline=2, data=4, last_stage_layers=2)) == "last_stage_layers 2 is not among the options"
    letter = plans_of(ask(text, "only=last_stage_layers", "last_stage_layers=-1"))
    assert {(plan.pipeline, plan.last_stage_layers) for plan in letter if isinstance(plan, Plan)} == {(2, 3), (4, 1)}
    written = answered(ask(SMALL, "pipeline=[1, 2, 4, 8]", "last_stage_layers=[0, 1, 3]"), "exhaustive").value
    assert answered(ask(text), "exhaustive").value == answered(ask(text), "boxes").value == written


def test_the_letter_of_a_setting_does_not_hang_on_the_order_of_its_options() -> None:
    """An option that says what the plan has is kept where one before it comes to the same, but not to the letter."""
    text = SMALL + "choices: {pipeline: [1, 2, 4, 8], interleave: [2, 1], zero: [1, 0], shard: [4, 0], only: [interleave, shard, zero]}"
    found = {(plan.pipeline, plan.interleave, plan.zero, plan.shard) for plan in plans_of(ask(text)) if isinstance(plan, Plan)}
    turned = text.replace("[2, 1], zero: [1, 0], shard: [4, 0]", "[1, 2], zero: [0, 1], shard: [0, 4]")
    assert found == {(plan.pipeline, plan.interleave, plan.zero, plan.shard) for plan in plans_of(ask(turned)) if isinstance(plan, Plan)}
    assert {(1, 1, 1, 4), (1, 1, 1, 0), (1, 1, 0, 0), (2, 2, 1, 0), (8, 1, 0, 0)} <= found
    assert not any(interleave > 1 for pipeline, interleave, _, _ in found if pipeline == 1)
    alone = plans_of(ask(text.replace("[4, 0]", "4")))
    assert {(plan.pipeline, plan.zero, plan.shard) for plan in alone if isinstance(plan, Plan)} == {(1, 1, 4)}


def test_exchanges_of_experts_are_hidden_to_the_letter() -> None:
    text = (
        SMALL.replace("{layers: 8,", "{layers: 8, experts: 4, experts_per_token: 2,") + "choices: {expert: [1, 4], expert_exchange: hidden}"
    )
    assert {plan.expert for plan in plans_of(ask(text)) if isinstance(plan, Plan)} == {1, 4}
    assert {plan.expert for plan in plans_of(ask(text, "only=expert_exchange")) if isinstance(plan, Plan)} == {4}


def test_all_that_is_no_word_is_refused() -> None:
    with pytest.raises(InstanceError, match=r"choices.rest: 'al' is unknown \(did you mean 'all'\?\)"):
        ask(SMALL, "choices=al")


def test_answers_say_what_was_left_out_and_where_nothing_was_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL, encoding="utf-8")
    assert main(["solve", str(path), "--verbose", "--set", "workload.transformer.layers=2"]) == 0
    assert "Combinations of settings" not in capsys.readouterr().out
    assert (
        main(["solve", str(path), "--verbose", "--set", "tensor=divisors", "--set", "pipeline=divisors", "--set", "overlap=[none, both]"])
        == 0
    )
    said = capsys.readouterr().out
    assert "of 20 are valid plans; of the others:" in said
    assert "are equivalent to another" in said


def test_a_terminal_shows_five_reasons_and_the_page_all() -> None:
    out = left_out(ask(LLAMA, "choices=all"))
    assert out is not None
    every, (_, some, more, folded) = reasons_of(out), combinations_section(out).parts
    assert len(every) == len(out.broken) + 1 > 7
    assert some == every[:5]
    assert more == f"{len(every) - 5} further rules are broken by fewer."
    assert isinstance(folded, Folded)
    assert folded.text.splitlines() == list(every)


def leaves(tree: Any, places: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], float | None]]:  # noqa: ANN401 - of JSON
    """The options of each combination, with its value; a branch that is cut short stands for all below it."""
    if not isinstance(tree, list):
        yield places, tree
        return
    for place, part in tree[1:]:
        yield from leaves(part, (*places, place))


def test_a_certificate_lists_what_each_combination_comes_to(tmp_path: Path) -> None:
    """Whoever asks for options as they are listed is told what they come to."""
    question, result, certificate = (tmp_path / name for name in ("small.yaml", "small.json", "listed.json"))
    question.write_text(SMALL, encoding="utf-8")
    asked = (*FULL, "overlap=[both, none]", "zero=[1, 0]", "sequence_parallel=true")
    options = [part for one in asked for part in ("--set", one)]
    assert main(["solve", str(question), *options, "--engine", "exhaustive", "--out", str(result)]) == 0
    assert main(["export", str(result), "--as", "certificate", "--out", str(certificate)]) == 0
    listing = json.loads(certificate.read_text(encoding="utf-8"))
    instance = read_instance(question, asked)
    values = {str(one.plan): value for one, value in values_one_by_one(instance).items()}
    names, found = [name for name, _ in listing["choices"]], dict(leaves(listing["tree"]))
    lists = dict(instance.plan_options)
    for places in product(*(range(len(options)) for _, options in listing["choices"])):
        chosen: dict[str, Any] = {name: lists[name][place] for name, place in zip(names, places, strict=True)}
        own = meant(Plan(**chosen, data=max(8 // (chosen["tensor"] * chosen["pipeline"]), 1)), 1)
        least = next(found[places[:depth]] for depth in range(len(places) + 1) if places[:depth] in found)
        assert least == (values.get(str(own)) if own.devices == 8 else None)


def test_failures_are_told_and_change_no_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """8 devices, one failure in 1,000 h each: one in 125 h; sqrt(2 x 60 s x 125 h) is 122 min, a little more than the best."""
    path = tmp_path / "small.yaml"
    path.write_text(SMALL.replace("layers: 8", "layers: 2"), encoding="utf-8")
    failing = "cluster.failures={mean_time: 1000 h, checkpoint: 60 s, restart: 10 min}"
    assert main(["solve", str(path), "--set", failing]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "a failure in 5.21 days" in said
    assert "a checkpoint every 2.03 h" in said
    assert answered(ask(SMALL, failing), "boxes").value == answered(ask(SMALL), "boxes").value
    with pytest.raises(InstanceError, match=r"cluster.failures.checkpoint: zero is no figure"):
        ask(SMALL, "cluster.failures={mean_time: 1000 h, checkpoint: 0 s, restart: 0 s}")


def test_modules_that_a_network_lacks_are_computed_again_nowhere() -> None:
    """Of a dense network without latents: the same plans as without the word, but where it is asked to the letter."""
    plain, words = ask(SMALL, "recompute=none"), "recompute=[up-projections, expert-activation, norms+up-projections]"
    assert dict(ask(SMALL, "recompute=up-projections").plan_options)["recompute"] == ("none",)
    assert set(plans_of(ask(SMALL, "recompute=up-projections"))) == set(plans_of(plain))
    assert dict(ask(SMALL, words).plan_options)["recompute"] == ("none", "norms")
    assert dict(ask(SMALL, "recompute=[none, up-projections]", "only=recompute").plan_options)["recompute"] == ("none",)
    assert dict(ask(EXPERTS, "recompute=expert-activation").plan_options)["recompute"] == ("expert-activation",)
    with pytest.raises(InstanceError, match="has none of what up-projections would compute again"):
        ask(SMALL, "recompute=up-projections", "only=recompute")
