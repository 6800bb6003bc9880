"""Stages of profiles: the figures of the public optimizer, every plan of small profiles, and figures by hand."""

import pytest

from crossopt.instances.errors import InstanceError, RefusedError
from crossopt.instances.question import read
from crossopt.instances.stages.pipedream import PipelineQuestion
from crossopt.solvers.answer import Limits
from crossopt.solvers.stages.pipedream.engine import best_stages, ideals_of
from crossopt.solvers.stages.pipedream.judge import PipedreamPlan, Stage, judge
from crossopt.solvers.stages.pipedream.prove import every_plan
from tests.paths import reference
from tests.solvers.stages.pipedream.profiles import CHAIN, answered, asked_of, random_profile


def least(question: PipelineQuestion) -> float:
    """The search's value, which the judge must have for its plan."""
    ideals = ideals_of(question.profile, question.memory, question.compatible, lambda share: None)
    value, stages = best_stages(question, ideals, lambda share: None)
    if stages:
        verdict = judge(question, PipedreamPlan(stages))
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


def published(name: str, asked: tuple[str, ...]) -> float:
    return round(least(read(reference(f"placement/pipedream/{name}/graph.txt"), (*asked, "compatible=true"))), 6)


@pytest.mark.data
@pytest.mark.parametrize("name", ONE_LEVEL)
def test_the_figures_of_the_public_optimizer_are_met_to_the_last_printed_digit(name: str) -> None:
    assert tuple(published(name, (f"devices={count}",)) for count in range(1, 9)) == ONE_LEVEL[name]
    assert published(name, ("straight=true",)) == STRAIGHT[name]
    assert tuple(published(name, (f"devices={count}", "compression=1.0")) for count in (2, 3, 4)) == COMPRESSED[name]


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", TWO_LEVELS)
def test_so_are_those_of_two_levels(name: str) -> None:
    asked = ((f"devices=[4, {groups}]", "bandwidth=[6e9 B/s, 1e9 B/s]") for groups in (1, 2, 3, 4))
    assert tuple(published(name, one) for one in asked) == TWO_LEVELS[name]


ASKED = [
    ("devices=1",),
    ("devices=3", "bandwidth=1e8 B/s"),
    ("devices=4", "bandwidth=3e9 B/s", "compression=4.0"),
    ("devices=3", "straight=true"),
    ("devices=3", "memory=7e7 B"),
    ("devices=3", "memory=5e7 B", "straight=true"),
    ("devices=[2, 2]", "bandwidth=[4e9 B/s, 5e8 B/s]"),
    ("devices=[2, 2]", "bandwidth=[5e8 B/s, 4e9 B/s]", "straight=true"),
    ("devices=[2, 1, 2]", "bandwidth=[4e9 B/s, 1e9 B/s, 5e8 B/s]"),
]


@pytest.mark.parametrize("compatible", [False, True], ids=["own", "compatible"])
@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_no_plan_of_a_small_profile_is_better_and_one_is_as_good(asked: tuple[str, ...], compatible: bool) -> None:
    """Compatible only from one first node, since the public optimizer does not see all cuts of other profiles."""
    for seed in range(5):
        text = random_profile(seed, 5 if "[" in asked[0] else 6, 1 if compatible else 2)
        question = asked_of(text, (*asked, f"compatible={str(compatible).lower()}"))
        verdicts = (judge(question, plan) for plan in every_plan(question))
        true = min((verdict.value for verdict in verdicts if not verdict.violations), default=float("inf"))
        assert least(question) == pytest.approx(true, rel=1e-12)


def test_compatible_levels_count_the_memory_of_each() -> None:
    found = set()
    for seed in range(8):
        question = asked_of(
            random_profile(seed, 5, 1), ("devices=[2, 2]", "bandwidth=[4e9 B/s, 5e8 B/s]", "memory=4e7 B", "compatible=true")
        )
        verdicts = (judge(question, plan) for plan in every_plan(question))
        true = min((verdict.value for verdict in verdicts if not verdict.violations), default=float("inf"))
        assert least(question) == pytest.approx(true, rel=1e-12)
        free = least(asked_of(random_profile(seed, 5, 1), ("devices=[2, 2]", "bandwidth=[4e9 B/s, 5e8 B/s]", "compatible=true")))
        found.add("none" if true == float("inf") else "binds" if true > free * 1.001 else "fits")
    assert len(found) > 1


def test_small_memories_leave_some_of_these_without_a_plan_and_some_with() -> None:
    values = {least(asked_of(random_profile(seed, 6), ("devices=3", "memory=6e7 B"))) for seed in range(12)}
    assert float("inf") in values
    assert len(values) > 4


def test_a_chain_by_hand() -> None:
    """3 + 1 + 5 ms; two devices halve them and sum 6 MB of gradients once: 4.5 ms + 2 * 1/2 * 6 MB / 1 GB/s = 10.5 ms."""
    question = asked_of(CHAIN, ("devices=2",))
    together = judge(question, PipedreamPlan((Stage(("node2", "node3", "node4"), (), (2,)),)))
    assert together.value == pytest.approx(10.5e-3, rel=1e-12)
    apart = judge(question, PipedreamPlan((Stage(("node2", "node3"), (), (1,)), Stage(("node4",), (), (1,)))))
    assert [load.total for load in apart.details.loads] == pytest.approx([4e-3, 5e-3], rel=1e-12)
    assert [load.transfer for load in apart.details.loads] == pytest.approx([2e-3, 2e-3], rel=1e-12)
    assert [load.memory for load in apart.details.loads] == [2 * (2e6 + 2.5e6), 4e6 + 5e5]
    assert least(question) == pytest.approx(5e-3, rel=1e-12)
    compatible = asked_of(CHAIN, ("devices=2", "compatible=true"))
    assert judge(compatible, PipedreamPlan((Stage(("node2", "node3", "node4"), (), (2,)),))).value == pytest.approx(
        (9e-3 + 12e-3) / 2, rel=1e-12
    )


def test_more_devices_and_faster_links_are_never_worse() -> None:
    """Devices may idle by the own charges, so that every plan of fewer is one of more."""
    text = random_profile(3, 12)
    values = [least(asked_of(text, (f"devices={count}", "bandwidth=2e9 B/s"))) for count in (1, 2, 3, 5, 8, 13)]
    assert values == sorted(values, reverse=True)
    speeds = [least(asked_of(text, ("devices=6", f"bandwidth={speed} B/s"))) for speed in (1e8, 1e9, 1e10, 1e11)]
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
        judge(asked_of(CHAIN), PipedreamPlan(stages))


def test_broken_rules_are_told() -> None:
    back = (Stage(("node3",), (), (3,)), Stage(("node2", "node4"), (), (2,)))
    told = " ".join(judge(asked_of(CHAIN, ("straight=true", "memory=1e6 B")), PipedreamPlan(back)).violations)
    for words in ("node3 runs before node node2", "5 members are used, there are 4", "is replicated", "MiB on a device of 976.562 KiB"):
        assert words in told
    few = judge(asked_of(CHAIN, ("compatible=true",)), PipedreamPlan((Stage(("node2", "node3", "node4"), (), (1,)),)))
    assert few.violations == ("level 1: 1 of 4 members are used (--compatible uses all)",)


def test_nodes_that_cost_nothing_are_no_places_to_cut() -> None:
    """Each item of a tuple is a node of its own in profiles; twenty of them would make a million cuts."""
    idle = "node{} -- item -- forward_compute_time=0, backward_compute_time=0, activation_size=0, parameter_size=0\n\tnode2 -- node{}\n"
    with_items = asked_of(CHAIN + "".join(idle.format(row, row) for row in range(100, 120)), ("devices=3", "bandwidth=5e8 B/s"))
    assert len(ideals_of(with_items.profile, float("inf"), compatible=False, tick=lambda share: None)) == 4
    assert least(with_items) == least(asked_of(CHAIN, ("devices=3", "bandwidth=5e8 B/s")))


def test_a_profile_that_branches_too_much_is_refused_in_words() -> None:
    node = "node{} -- Layer -- forward_compute_time=1.0, backward_compute_time=1.0, activation_size=1, parameter_size=0.0\n"
    question = asked_of("".join(node.format(row) for row in range(16)))
    with pytest.raises(RefusedError, match="cut in more than 20,000 places"):
        answered(question)


def test_what_the_public_optimizer_would_not_see_is_refused() -> None:
    """Beside a chain, a node that nothing of it needs."""
    alone = "node9 -- Layer -- forward_compute_time=1.0, backward_compute_time=1.0, activation_size=1, parameter_size=0.0\n"
    assert least(asked_of(CHAIN + alone)) > 0.0
    with pytest.raises(RefusedError, match=r"node node9 does not follow from node node2.*leave out --compatible"):
        answered(asked_of(CHAIN + alone, ("compatible=true",)))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("devices=0",), "devices: '0' is too small (at least 1)"),
        (("devices=[64, 64]",), "64x64 devices are more than 1,024"),
        (("devices=[2, 2, 2, 2]",), "4 levels of devices are given"),
        (("devices=4", "bandwidth=[1e9 B/s, 1e9 B/s]"), "2 bandwidths are given for 1 levels"),
        (("bandwidth=0 B/s",), "a bandwidth must be above zero"),
        (("compression=0.0",), "a compression of '0.0' is none"),
        (("devices=[2, 2]", "memory=1e9 B"), "the memory of groups of devices is not modelled"),
    ],
)
def test_what_cannot_be_asked_is_refused(asked: tuple[str, ...], said: str) -> None:
    with pytest.raises(InstanceError) as raised:
        asked_of(CHAIN, asked)
    assert said in str(raised.value)


def test_the_best_rule_is_left_where_the_time_is_over() -> None:
    result = answered(asked_of(random_profile(1, 30)), Limits(seconds=0.0))
    assert (result.stopped, result.proved, result.bound) == ("time limit", False, None)
    assert result.value == min(rival.value for rival in result.rivals if rival.value is not None)
