"""What a stack launches: its table's rows are rules of the question's plans, and remove plans but add none."""

import re
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

from crossopt.crossflow.arrays import Ints
from crossopt.crossflow.hardware import Hardware, variants_of
from crossopt.crossflow.plan import PLAN_FIELDS, Plan, Plans, joined, plan_at, rows_of, table
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue import registry
from crossopt.instances.catalogue.entries import constants_for
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.plan_groups import broken_everywhere, family_blocks, left_out, members
from crossopt.instances.codesign.question import read_question
from crossopt.instances.codesign.space import plan_blocks, unlaunched
from crossopt.instances.codesign.stack_rules import STACKS, broken_rows, nearest
from crossopt.instances.codesign.stack_table import QUANTITIES, Machine
from crossopt.instances.errors import InstanceError
from tests.every import every
from tests.solvers.codesign.questions import GEMM, ask
from tests.stack_questions import STACK_NAMES, stack_question

QUESTION = """\
kind: codesign
workload: {model: llama3-8b, global_batch: 64}
cluster: {devices: 16}
hardware: h100-sxm
"""


def plans_of(instance: Instance) -> Plans:
    return joined([block for block in plan_blocks(instance) if isinstance(block, Plans)])


@cache
def every_plan(experts: bool) -> tuple[Instance, Plans]:
    """Those of the question without a stack."""
    free = stack_question("", experts=experts)
    return free, plans_of(free)


def in_order(plans: object) -> Ints:
    """Plans as rows of numbers, in an order that is theirs alone."""
    assert isinstance(plans, Plans)
    columns = [getattr(plans, name) for name in PLAN_FIELDS]
    return np.transpose(columns)[np.lexsort(columns)]


@pytest.mark.parametrize("experts", [False, True])
@pytest.mark.parametrize("stack", STACK_NAMES)
def test_a_stack_leaves_exactly_the_plans_that_keep_its_rows(stack: str, experts: bool) -> None:
    free, plans = every_plan(experts)
    kept = np.all([column for _, column in STACKS[stack].rules(free.workload, plans, free.machine)], axis=0)  # type: ignore[arg-type]
    assert np.array_equal(in_order(plans_of(stack_question(stack, experts=experts))), in_order(rows_of(plans, np.flatnonzero(kept))))
    assert 0 < np.count_nonzero(kept) < len(plans)


@pytest.mark.parametrize("experts", [False, True])
@pytest.mark.parametrize("stack", STACK_NAMES)
def test_the_members_of_all_families_are_all_plans_that_are_launched(stack: str, experts: bool) -> None:
    """Concessions too, of which the rules of a stack may join two: recomputation and offloaded activations."""
    asked = stack_question(stack, experts=experts)
    blocks = list(family_blocks(asked))
    assert np.array_equal(in_order(joined([listed(members(asked, block.heads)) for block in blocks])), in_order(plans_of(asked)))
    assert [len(members(asked, block.heads)) for block in blocks] == [int(block.counts.sum()) for block in blocks]


def listed(plans: object) -> Plans:
    assert isinstance(plans, Plans)
    return plans


@every(
    ("stack", "plan", "word"),
    [
        ("megatron-core", Plan(pipeline=2, data=8, zero=2, overlap="data"), "ZeRO-2 and ZeRO-3"),
        ("megatron-core", Plan(data=16, zero=3), "always overlap"),
        ("megatron-core", Plan(pipeline=2, data=8, overlap="pipeline"), "interleave above 1"),
        ("megatron-core", Plan(tensor=16), "KV heads"),
        ("megatron-core", Plan(data=16, recompute="full", offload="activations"), "does not support recomputation"),
        ("torchtitan", Plan(tensor=2, data=8, zero=3, overlap="data"), "sequence parallel"),
        ("torchtitan", Plan(data=16, zero=1, overlap="data"), "ZeRO-2, ZeRO-3"),
        ("torchtitan", Plan(data=16, zero=3), "always"),
        ("torchtitan", Plan(pipeline=16, data=1, microbatch=8), "as many microbatches"),
        ("torchtitan", Plan(pipeline=4, data=4, zero=3), "requires ZeRO-1"),
        ("megatron-core", Plan(pipeline=2, data=8, schedule="zero-bubble"), "without split backward"),
        ("megatron-core", Plan(pipeline=2, data=8, schedule="dualpipe"), "without split backward"),
        ("torchtitan", Plan(pipeline=2, data=8, zero=1, schedule="dualpipe"), "bidirectional"),
        ("torchtitan", Plan(pipeline=2, data=8, zero=1, schedule="zero-bubble"), "several chunks"),
        ("deepspeed", Plan(pipeline=4, data=4, schedule="zero-bubble"), "not split"),
        ("torchtitan", Plan(data=16, zero=3, expert_tensor=2, expert=2, overlap="data"), "expert tensor parallelism is 1 or TP"),
        ("torchtitan", Plan(tensor=4, data=4, zero=3, expert_tensor=1, expert=2, overlap="data"), "EP is a multiple of TP x CP"),
        ("deepspeed", Plan(data=16, expert_tensor=1), "over the tensor ranks"),
        ("deepspeed", Plan(tensor=2, data=8, sequence_parallel=True, tensor_exchange="hidden"), "TP communication is exposed"),
        ("deepspeed", Plan(pipeline=4, data=4, zero=2), "ZeRO-0 or ZeRO-1"),
        ("deepspeed", Plan(pipeline=4, data=4, interleave=2), "not interleaved"),
        ("fsdp", Plan(tensor=2, data=8, zero=3, overlap="data"), "TP is 1"),
    ],
)
def test_a_row_says_why_a_plan_is_not_launched(stack: str, plan: Plan, word: str) -> None:
    asked = read_question({"text": f"{QUESTION}stack: {stack}\n", "source": "q.yaml", "settings": ["choices=all"]})
    assert any(word in sentence and sentence.startswith(f"{stack}: ") for sentence in unlaunched(asked, plan))


HIDING = Plan(tensor=4, data=4, sequence_parallel=True, zero=1, tensor_exchange="hidden")
NARROW = ("workload.precision=fp8", "workload.scaling=blocks")
CHIP = (*NARROW, "hardware=~", "cluster.devices_per_node=8")


@every(
    ("stack", "plan", "settings", "words"),
    [
        ("megatron-core", HIDING, (), ""),
        ("megatron-core", replace(HIDING, tensor=16, data=1, zero=0), (), "an NVLink domain"),
        ("megatron-core", HIDING, ("cluster.devices_per_node=2",), "an NVLink domain"),
        ("megatron-core", replace(HIDING, tensor=2, data=8), ("cluster.devices_per_node=2",), ""),
        ("megatron-core", HIDING, ("cluster.devices=12", "cluster.devices_per_node=6"), "TP divides the devices"),
        ("megatron-core", HIDING, ("cluster.network=[{size: 2, shape: ring}, {size: 2, shape: ring}, {size: 4}]",), ""),
        ("megatron-core", HIDING, ("cluster.network=[{size: 2}, {size: 8, links: cluster}]",), "an NVLink domain"),
        ("megatron-core", replace(HIDING, tensor=16, data=1, zero=0), ("hardware=gb200-nvl72",), ""),
        ("torchtitan", replace(HIDING, zero=3, overlap="data"), ("cluster.devices_per_node=2",), "symmetric memory"),
        ("torchtitan", replace(HIDING, tensor=8, data=2, zero=3, overlap="data"), (), ""),
        ("megatron-core", HIDING, NARROW, "with block-scaled FP8"),
        ("megatron-core", HIDING, ("workload.precision=fp8",), ""),
        ("megatron-core", replace(HIDING, tensor_exchange="exposed"), NARROW, ""),
        ("megatron-core", HIDING, (*NARROW, "hardware=b200"), ""),
        ("megatron-core", HIDING, (*NARROW, "hardware=b200", "workload.sequence=256"), "multiple of 128 rows per rank"),
        ("megatron-core", HIDING, (*CHIP, "technology=accelerator-4np"), ""),
        ("megatron-core", HIDING, (*CHIP, "technology=accelerator-4nm"), "with block-scaled FP8"),
        ("megatron-core", HIDING, ("workload.precision=fp4", "hardware=b200"), "in FP4"),
    ],
)
def test_a_hidden_tensor_exchange_is_where_links_and_recipes_carry_it(
    stack: str, plan: Plan, settings: tuple[str, ...], words: str
) -> None:
    """On nodes of 8 of H100 unless said: 4 of 6 would have ranks on two nodes; 256 tokens over 4 ranks are 64 rows each."""
    asked = read_question({"text": f"{QUESTION}stack: {stack}\n", "source": "q.yaml", "settings": ["choices=all", *settings]})
    broken = [sentence for sentence in unlaunched(asked, plan) if "TP overlap" in sentence or "TP communication" in sentence]
    assert [words in sentence for sentence in broken] == [True] * bool(words)


def test_what_each_row_removes_is_counted() -> None:
    counts = left_out(stack_question("torchtitan"))
    assert counts is not None
    assert counts.plans == len(plans_of(stack_question("torchtitan")))
    assert any(sentence.startswith("torchtitan: ") for sentence, _ in counts.broken)
    free = left_out(stack_question(""))
    assert free is not None
    assert not any(":" in sentence for sentence, _ in free.broken)


def test_a_row_that_all_break_says_by_which_setting() -> None:
    """Sixteen tensor ranks on eight key-value heads; where other degrees are open, some plan keeps it and none is named."""
    asked = read_question(
        {"text": f"{QUESTION}stack: megatron-core\n", "source": "q.yaml", "settings": ["choices.tensor=16", "choices.rest=all"]}
    )
    counts = left_out(asked)
    assert counts is not None
    assert counts.plans == 0
    assert "megatron-core: TP divides the KV heads (tensor: 16)" in dict(counts.broken)
    free = left_out(stack_question("megatron-core"))
    assert free is not None
    assert not any(sentence.endswith(")") and "tensor: " in sentence for sentence, _ in free.broken)


def test_settings_that_a_stack_decides_follow_where_they_are_not_named() -> None:
    """Eight tensor ranks come with sequence parallelism, and replicas with sharing and hidden exchange, though none is named."""
    asked = read_question(
        {"text": f"{QUESTION}choices: {{tensor: [8], pipeline: [1]}}\nstack: torchtitan\n", "source": "q.yaml", "settings": []}
    )
    plans = plans_of(asked)
    assert {(plan.sequence_parallel, plan.zero, plan.overlap) for plan in map(partial(plan_at, plans), range(len(plans)))} == {
        (True, 3, "data")
    }
    named = read_question({**asked.document, "settings": ["choices.sequence_parallel=false"]})
    assert len(plans_of(named)) == 0
    assert broken_everywhere(named) == ("torchtitan: TP includes sequence parallelism",)


@pytest.mark.thorough
def test_a_setting_that_no_degrees_have_as_only_asks_is_told_with_its_rule() -> None:
    """Groups of 32 ranks that share, on 16 devices; those of 8 are there, but for megatron-core's ZeRO-3."""
    settings = ["choices.shard=32", "choices.zero=1", "choices.only=shard", "choices.rest=all"]
    asked = read_question({"text": f"{QUESTION}stack: megatron-core\n", "source": "q.yaml", "settings": settings})
    rule = "context divides the ranks that share (shard), which divide data x context"
    assert broken_everywhere(asked) == (f"no degrees have shard: 32 as `only` asks ({rule})",)
    some = read_question({**asked.document, "settings": [*settings, "choices.shard=[8, 32]"]})
    assert len(plans_of(some)) > 0
    other = read_question({**asked.document, "settings": [*settings, "choices.shard=8", "choices.zero=3"]})
    assert len(plans_of(other)) == 0
    assert broken_everywhere(other) == (next(row for row in broken_everywhere(other) if "num-distributed-optimizer-instances" in row),)


@pytest.mark.parametrize("stack", ["megatron-core", "fsdp", "torchtitan", "deepspeed"])
def test_a_device_has_the_constants_of_the_stack_that_launches(stack: str) -> None:
    """Those of quick and slow runs differ from the usual ones as before; a question's own constants hold for any stack."""
    device, own_set = ask(f"{QUESTION}stack: {stack}\n").hardware, registry.device("h100-sxm")
    assert isinstance(device, Hardware)
    wanted = {**own_set.efficiency, **constants_for(own_set.stacks, stack)}
    matrix, attention = wanted["matrix"], wanted["attention"]
    assert (device.efficiency.matrix, device.efficiency.attention, device.efficiency.stream) == (matrix, attention, 0.95)
    plain = registry.build_device(own_set, "h100-sxm", "bf16", 2)
    for one, other in zip(variants_of(device), variants_of(plain), strict=True):
        assert one.efficiency.matrix == pytest.approx(matrix * other.efficiency.matrix / own_set.efficiency["matrix"])
    own = ask(f"{QUESTION}stack: {stack}\nefficiency: {{matrix: 0.6}}\n").hardware
    assert isinstance(own, Hardware)
    assert (own.efficiency.matrix, own.efficiency.attention) == (0.6, attention)


ROUTED = """
kind: codesign
workload: {model: mixtral-8x7b, global_batch: 64}
cluster: {devices: 16}
hardware: h100-sxm
choices: {expert: [1, 8], zero: 1}
"""


@pytest.mark.parametrize(
    ("settings", "once"),
    [
        ((), False),
        (("workload.expert_dispatch=nodes",), True),
        (("stack=megatron-core",), True),
        (("stack=megatron-core", "workload.expert_dispatch=copies"), False),
        (("stack=torchtitan",), False),
        (("stack=megatron-core", "workload.model=llama3-8b", "choices.expert=1"), False),
    ],
)
def test_tokens_go_to_experts_as_the_stack_sends_them_or_as_the_question_says(settings: tuple[str, ...], once: bool) -> None:
    workload = ask(ROUTED, *settings).workload
    assert isinstance(workload, Transformer)
    assert workload.once_a_node is once


@pytest.mark.parametrize(("version", "early"), [("2.0", False), ("2.0.1", False), ("2.1", True), ("2.10", True)])
def test_a_question_may_name_the_version_of_its_stack(version: str, early: bool) -> None:
    """PyTorch's checkpoints go on to the end before 2.1, and versions are numbers: 2.10 is not before 2.1."""
    asked = ask(f"{QUESTION}stack: {{name: fsdp, version: '{version}'}}\n")
    assert isinstance(asked.workload, Transformer)
    assert asked.workload.stops_early is early
    assert asked.priced_by.endswith(f"; plans are those of PyTorch {'2.1 and later' if early else '2.0, before 2.1'}")


@pytest.mark.parametrize(
    ("stack", "newest"), [("fsdp", "PyTorch 2.1"), ("torchtitan", "torchtitan 0.2"), ("megatron-core", "Megatron-Core 0.14")]
)
def test_an_answer_says_which_version_was_taken_where_none_is_named(stack: str, newest: str) -> None:
    assert ask(f"{QUESTION}stack: {stack}\n").priced_by.endswith(f"; plans are those of {newest} and later, as no version is named")
    assert "plans are those of" not in ask(QUESTION).priced_by


@pytest.mark.parametrize(
    ("stack", "told"),
    [
        ("{name: fsdp, version: 1.13}", "stack.version: of fsdp no version before 2.0 is known (PyTorch 2.0, 2.1 and later)"),
        ("{name: megatron-core, version: 0.9}", "of megatron-core no version before 0.14 is known (Megatron-Core 0.14 and later)"),
        ("{name: torchtitan, version: main}", "stack.version: 'main' is no version (numbers with dots, such as 0.2)"),
    ],
)
def test_versions_that_nobody_knows_are_told_with_those_that_there_are(stack: str, told: str) -> None:
    with pytest.raises(InstanceError, match=re.escape(told)):
        ask(f"{QUESTION}stack: {stack}\n")


def test_checkpoints_of_pytorch_alone_stop_early() -> None:
    for stack, early in (("torchtitan", True), ("megatron-core", False), ("deepspeed", False)):
        workload = ask(ROUTED, f"stack={stack}").workload
        assert isinstance(workload, Transformer)
        assert workload.stops_early is early


def test_megatron_core_alone_sends_whole_messages_between_stages() -> None:
    for settings, whole in ((), False), (("stack=megatron-core",), True), (("stack=torchtitan",), False):
        workload = ask(ROUTED, *settings).workload
        assert isinstance(workload, Transformer)
        assert workload.whole_messages is whole


@pytest.mark.parametrize(
    ("settings", "kept", "peak"),
    [
        ((), 4, 6),
        (("stack=megatron-core",), 4, 6),
        (("stack=megatron-core", "workload.logit_bytes=2"), 2, 2),
        (("stack=torchtitan",), 4, 4),
        (("stack=torchtitan", "workload.logit_peak_bytes=16"), 4, 16),
        (("stack=fsdp", "choices.expert=1"), 4, 12),
        (("workload.logit_bytes=2", "workload.logit_peak_bytes=4"), 2, 4),
    ],
)
def test_logits_take_what_they_take_on_the_stack_or_what_the_question_says(settings: tuple[str, ...], kept: int, peak: int) -> None:
    workload = ask(ROUTED, *settings).workload
    assert isinstance(workload, Transformer)
    assert (workload.logit_bytes, workload.logit_peak_bytes) == (kept, peak)


def test_a_stack_without_such_a_dispatcher_spreads_no_experts_by_it() -> None:
    asked = ask(ROUTED, "stack=torchtitan", "workload.expert_dispatch=nodes", "choices.zero=3", "choices.overlap=data")
    plans = plans_of(asked)
    assert set(plans.expert.tolist()) == {1}
    left = left_out(asked)
    assert left is not None
    assert "torchtitan: each copy of a token is sent to its expert separately" in {sentence for sentence, _ in left.broken}


def test_a_dense_network_has_no_dispatch() -> None:
    with pytest.raises(InstanceError, match=r"workload\.expert_dispatch: a network without experts has no expert_dispatch"):
        ask(ROUTED, "workload.model=llama3-8b", "choices.expert=1", "workload.expert_dispatch=nodes")


def test_a_stack_launches_transformers_only() -> None:
    with pytest.raises(InstanceError, match="stack: stacks launch transformers, and this is a gemm"):
        ask(GEMM, "stack=fsdp")


@pytest.mark.parametrize("stack", STACK_NAMES)
def test_the_nearest_plan_is_launched_and_a_plan_that_is_launched_is_its_own(stack: str) -> None:
    free, random = stack_question("", experts=stack == "torchtitan"), np.random.default_rng(0)
    every_plan, model = plans_of(free), free.workload
    for place in random.integers(len(every_plan), size=6):
        plan = plan_at(every_plan, int(place))
        found = nearest(STACKS[stack], model, plan, Machine())  # type: ignore[arg-type]
        for one in found:
            assert not broken_rows(STACKS[stack], model, one, Machine())  # type: ignore[arg-type]
            assert one.devices == plan.devices
        launched = not broken_rows(STACKS[stack], model, plan, Machine())  # type: ignore[arg-type]
        assert (found == (plan,)) == launched


@pytest.mark.parametrize("stack", STACK_NAMES)
def test_every_row_has_a_source_and_speaks_of_quantities_that_are_known(stack: str) -> None:
    rows = STACKS[stack].rows
    assert len({row.sentence for row in rows}) == len(rows)
    for row in rows:
        assert all((row.source.repository, row.source.path, row.source.version))
        assert all(fact.quantity in QUANTITIES for fact in (row.then, *row.when))
        assert all((fact.above is None) == bool(fact.values) for fact in (row.then, *row.when))
        assert row.holds(stack_question("").workload, table([Plan()]), Machine()).shape == (1,)  # type: ignore[arg-type]


@pytest.mark.parametrize(("stack", "kept"), [("megatron-core", True), ("torchtitan", False)])
def test_products_keep_what_they_keep_on_the_stack(stack: str, kept: bool) -> None:
    workload = ask(ROUTED, f"stack={stack}").workload
    assert isinstance(workload, Transformer)
    assert workload.keeps_casts == kept
