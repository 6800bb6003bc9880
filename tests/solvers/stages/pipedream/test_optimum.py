"""Stages of profiles: the figures of the public optimizer, every plan of small profiles, and figures by hand."""

from dataclasses import replace

import pytest

from crossopt.instances.errors import InstanceError, RefusedError
from crossopt.instances.stages.pipedream.question import Asked, PipelineQuestion, read_pipeline
from crossopt.solvers.answer import Limits, Progress
from crossopt.solvers.stages.pipedream.brute_force import every_plan
from crossopt.solvers.stages.pipedream.engine import answered
from crossopt.solvers.stages.pipedream.ideals import ideals_of
from crossopt.solvers.stages.pipedream.judge import judge
from crossopt.solvers.stages.pipedream.optimum import best_stages
from crossopt.solvers.stages.pipedream.plan import Stage
from tests.every import every
from tests.paths import reference
from tests.solvers.stages.pipedream.profiles import CHAIN, asked_of, random_profile


def silent(progress: Progress) -> None:
    del progress


def least(question: PipelineQuestion) -> float:
    """The search's value, which the judge must have for its plan."""
    ideals = ideals_of(question.profile, question.memory, question.compatible, lambda share: None)
    value, stages = best_stages(question, ideals, lambda share: None)
    if stages:
        verdict = judge(question, stages)
        assert verdict.violations == ()
        assert verdict.value == pytest.approx(value, rel=1e-13)
    return value


ONE_LEVEL = {
    "vgg16": (0.672535, 0.370931, 0.231234, 0.175733, 0.138712, 0.117950, 0.104219, 0.093513),
    "resnet50": (0.443419, 0.221933, 0.148136, 0.111497, 0.090117, 0.075160, 0.064204, 0.056315),
    "gnmt": (0.089416, 0.045936, 0.034572, 0.025868, 0.024648, 0.019032, 0.019032, 0.019032),
}
STRAIGHT = {"vgg16": 0.216450, "resnet50": 0.111497, "gnmt": 0.025868}
COMPRESSED = {
    "vgg16": (0.411042, 0.264061, 0.205521),
    "resnet50": (0.285058, 0.205521, 0.162881),
    "gnmt": (0.045936, 0.034572, 0.025868),
}
TWO_LEVELS = {
    "vgg16": (0.170590, 0.092863, 0.058362, 0.045185),
    "resnet50": (0.111497, 0.055999, 0.037897, 0.028916),
    "gnmt": (0.025868, 0.017774, 0.013805, 0.011081),
}
"""What the public optimizer prints, with six digits."""


def published(name: str, asked: Asked) -> float:
    return round(least(read_pipeline(reference(f"placement/pipedream/{name}/graph.txt"), replace(asked, compatible=True))), 6)


@pytest.mark.parametrize("name", ONE_LEVEL)
def test_the_figures_of_the_public_optimizer_are_met_to_the_last_printed_digit(name: str) -> None:
    assert tuple(published(name, Asked(devices=(count,))) for count in range(1, 9)) == ONE_LEVEL[name]
    assert published(name, Asked(straight=True)) == STRAIGHT[name]
    assert tuple(published(name, Asked(devices=(count,), compression=1.0)) for count in (2, 3, 4)) == COMPRESSED[name]


@pytest.mark.parametrize("name", TWO_LEVELS)
def test_so_are_those_of_two_levels(name: str) -> None:
    asked = (Asked(devices=(4, groups), bandwidth=(6e9, 1e9)) for groups in (1, 2, 3, 4))
    assert tuple(published(name, one) for one in asked) == TWO_LEVELS[name]


ASKED = [
    Asked(devices=(1,)),
    Asked(devices=(3,), bandwidth=(1e8,)),
    Asked(devices=(4,), bandwidth=(3e9,), compression=4.0),
    Asked(devices=(3,), straight=True),
    Asked(devices=(3,), memory=7e7),
    Asked(devices=(3,), memory=5e7, straight=True),
    Asked(devices=(2, 2), bandwidth=(4e9, 5e8)),
    Asked(devices=(2, 2), bandwidth=(5e8, 4e9), straight=True),
    Asked(devices=(2, 1, 2), bandwidth=(4e9, 1e9, 5e8)),
]


@every("compatible", [False, True])
@every("asked", ASKED)
def test_no_plan_of_a_small_profile_is_better_and_one_is_as_good(asked: Asked, compatible: bool) -> None:
    """Compatible only from one first node, since the public optimizer does not see all cuts of other profiles."""
    for seed in range(5):
        text = random_profile(seed, 5 if len(asked.devices) > 1 else 6, 1 if compatible else 2)
        question = asked_of(text, replace(asked, compatible=compatible))
        verdicts = (judge(question, stages) for stages in every_plan(question))
        true = min((verdict.value for verdict in verdicts if not verdict.violations), default=float("inf"))
        assert least(question) == pytest.approx(true, rel=1e-12)


def test_compatible_levels_count_the_memory_of_each() -> None:
    found = set()
    for seed in range(8):
        question = asked_of(random_profile(seed, 5, 1), Asked(devices=(2, 2), bandwidth=(4e9, 5e8), memory=4e7, compatible=True))
        verdicts = (judge(question, stages) for stages in every_plan(question))
        true = min((verdict.value for verdict in verdicts if not verdict.violations), default=float("inf"))
        assert least(question) == pytest.approx(true, rel=1e-12)
        free = least(asked_of(random_profile(seed, 5, 1), Asked(devices=(2, 2), bandwidth=(4e9, 5e8), compatible=True)))
        found.add("none" if true == float("inf") else "binds" if true > free * 1.001 else "fits")
    assert len(found) > 1


def test_small_memories_leave_some_of_these_without_a_plan_and_some_with() -> None:
    values = {least(asked_of(random_profile(seed, 6), Asked(devices=(3,), memory=6e7))) for seed in range(12)}
    assert float("inf") in values
    assert len(values) > 4


def test_a_chain_by_hand() -> None:
    """3 + 1 + 5 ms; two devices halve them and sum 6 MB of gradients once: 4.5 ms + 2 * 1/2 * 6 MB / 1 GB/s = 10.5 ms."""
    question = asked_of(CHAIN, Asked(devices=(2,)))
    together = judge(question, (Stage(("node2", "node3", "node4"), (), (2,)),))
    assert together.value == pytest.approx(10.5e-3, rel=1e-12)
    apart = judge(question, (Stage(("node2", "node3"), (), (1,)), Stage(("node4",), (), (1,))))
    assert [load.total for load in apart.loads] == pytest.approx([4e-3, 5e-3], rel=1e-12)
    assert [load.transfer for load in apart.loads] == pytest.approx([2e-3, 2e-3], rel=1e-12)
    assert [load.memory for load in apart.loads] == [2 * (2e6 + 2.5e6), 4e6 + 5e5]
    assert least(question) == pytest.approx(5e-3, rel=1e-12)
    compatible = asked_of(CHAIN, Asked(devices=(2,), compatible=True))
    assert judge(compatible, (Stage(("node2", "node3", "node4"), (), (2,)),)).value == pytest.approx((9e-3 + 12e-3) / 2, rel=1e-12)


def test_more_devices_and_faster_links_are_never_worse() -> None:
    """Devices may idle by the own charges, so that every plan of fewer is one of more."""
    text = random_profile(3, 12)
    values = [least(asked_of(text, Asked(devices=(count,), bandwidth=(2e9,)))) for count in (1, 2, 3, 5, 8, 13)]
    assert values == sorted(values, reverse=True)
    speeds = [least(asked_of(text, Asked(devices=(6,), bandwidth=(speed,)))) for speed in (1e8, 1e9, 1e10, 1e11)]
    assert speeds == sorted(speeds, reverse=True)


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        ((), "a plan has stages"),
        ((Stage(("node2", "node3"), (), (1,)),), "node node4 is in no stage"),
        ((Stage(("node2", "node3", "node4", "node4"), (), (1,)),), "a node is in two stages"),
        ((Stage(("node1", "node2", "node3", "node4"), (), (1,)),), "node node1 is none of the profile that costs anything"),
        ((Stage(("node2", "node3", "node4"), (), (1, 1)),), "at each of 1 levels"),
        ((Stage(("node2", "node3", "node4"), (), (0,)),), "at each of 1 levels"),
    ],
)
def test_what_is_no_plan_is_refused_in_words(stages: tuple[Stage, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        judge(asked_of(CHAIN, Asked()), stages)


def test_broken_rules_are_told() -> None:
    back = (Stage(("node3",), (), (3,)), Stage(("node2", "node4"), (), (2,)))
    told = " ".join(judge(asked_of(CHAIN, Asked(straight=True, memory=1e6)), back).violations)
    for words in ("node3 runs before node node2", "5 members are used, there are 4", "is replicated", "MiB on a device of 976.562 KiB"):
        assert words in told
    few = judge(asked_of(CHAIN, Asked(compatible=True)), (Stage(("node2", "node3", "node4"), (), (1,)),))
    assert few.violations == ("level 1: 1 of 4 members are used (--compatible uses all)",)


def test_nodes_that_cost_nothing_are_no_places_to_cut() -> None:
    """Each item of a tuple is a node of its own in profiles; twenty of them would make a million cuts."""
    idle = "node{} -- item -- forward_compute_time=0, backward_compute_time=0, activation_size=0, parameter_size=0\n\tnode2 -- node{}\n"
    with_items = asked_of(CHAIN + "".join(idle.format(row, row) for row in range(100, 120)), Asked(devices=(3,), bandwidth=(5e8,)))
    assert len(ideals_of(with_items.profile, float("inf"), compatible=False, tick=lambda share: None)) == 4
    assert least(with_items) == least(asked_of(CHAIN, Asked(devices=(3,), bandwidth=(5e8,))))


def test_a_profile_that_branches_too_much_is_refused_in_words() -> None:
    node = "node{} -- Layer -- forward_compute_time=1.0, backward_compute_time=1.0, activation_size=1, parameter_size=0.0\n"
    question = asked_of("".join(node.format(row) for row in range(16)), Asked())
    with pytest.raises(RefusedError, match="cut in more than 20,000 places"):
        answered(question, Limits(), silent)


def test_what_the_public_optimizer_would_not_see_is_refused() -> None:
    """Beside a chain, a node that nothing of it needs."""
    alone = "node9 -- Layer -- forward_compute_time=1.0, backward_compute_time=1.0, activation_size=1, parameter_size=0.0\n"
    assert least(asked_of(CHAIN + alone, Asked())) > 0.0
    with pytest.raises(RefusedError, match=r"node node9 does not follow from node node2.*leave out --compatible"):
        answered(asked_of(CHAIN + alone, Asked(compatible=True)), Limits(), silent)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (Asked(devices=(0,)), "0 devices leave a level empty"),
        (Asked(devices=(64, 64)), "64x64 devices are more than 1,024"),
        (Asked(devices=(2, 2, 2, 2)), "4 levels of devices are given"),
        (Asked(devices=(4,), bandwidth=(1e9, 1e9)), "2 bandwidths are given for 1 levels"),
        (Asked(bandwidth=(0.0,)), "a bandwidth must be above zero"),
        (Asked(compression=0.0), "a compression of '0.0' is none"),
        (Asked(devices=(2, 2), memory=1e9), "the memory of groups of devices is not modelled"),
    ],
)
def test_what_cannot_be_asked_is_refused(asked: Asked, said: str) -> None:
    with pytest.raises(InstanceError) as raised:
        asked_of(CHAIN, asked)
    assert said in str(raised.value)


def test_the_best_rule_is_left_where_the_time_is_over() -> None:
    result = answered(asked_of(random_profile(1, 30), Asked()), Limits(seconds=0.0), silent)
    assert (result.stopped, result.proved, result.bound) == ("time limit", False, None)
    assert result.value == min(rival.value for rival in result.rivals if rival.value is not None)
