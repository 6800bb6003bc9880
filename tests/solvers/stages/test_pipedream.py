"""Pipelines of profiles: the public optimizer's figures, every plan of small profiles, rules, proofs, files and answers."""

import re
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.instances.errors import InstanceError, RefusedError, VerificationError
from crossopt.instances.files.graphs import text_of
from crossopt.instances.question import read
from crossopt.instances.stages.pipedream import PipelineQuestion, profile_of
from crossopt.reports.cli import main
from crossopt.solvers.answer import Limits, SearchOutcome, gap_between, unwatched
from crossopt.solvers.family import certify
from crossopt.solvers.proofs import RecomputableBound, UnverifiedBound
from crossopt.solvers.stages.pipedream import family
from crossopt.solvers.stages.pipedream.engine import best_stages, ideals_of
from crossopt.solvers.stages.pipedream.family import FAMILY, baselines_of, every_plan, least_of_all, least_slowest, rules, steps_of
from crossopt.solvers.stages.pipedream.judge import PipedreamPlan, Stage, judge
from tests.commands import exit_code
from tests.every import every
from tests.extent import examples
from tests.paths import reference
from tests.solvers.stages.pipedream.plainly import Plainly, closed, seen
from tests.solvers.stages.pipedream.profiles import CHAIN, Answer, answered, asked_of, checked, random_profile

# Pipelines as users get them: what a check says of them, and faults in words.


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "chain.txt"
    target.write_text(CHAIN, encoding="utf-8")
    return target


def test_a_small_profile_is_proved_anew_and_a_large_one_too() -> None:
    assert not checked(answered(asked_of(CHAIN, ("devices=[2, 2]", "bandwidth=[2e9 B/s, 1e9 B/s]")))).unverified
    assert not checked(answered(asked_of(random_profile(1, 14)))).unverified


def test_a_bound_is_lowered_by_what_the_plan_can_lose_and_no_more() -> None:
    """One node on one device has one plan, of 3 + 8 us: exchanges of 0.9 s, which it has none of, are no reason to doubt its bound."""
    node = "node0 -- L0 -- forward_compute_time=0.003, backward_compute_time=0.008, activation_size=500000.0, parameter_size=900000.0\n"
    result = answered(asked_of(node, ("devices=1", "bandwidth=1e6 B/s")))
    assert result.value == pytest.approx(11e-6, rel=1e-12)
    assert result.proved
    assert not checked(result).unverified


def test_a_bound_above_a_plan_is_refused_on_a_small_profile() -> None:
    """The second best of all plans, better than every rule's, called the best: the check looks at all plans."""
    question = asked_of(random_profile(3, 6), ("devices=3",))
    every = {verdict.value: plan for plan in every_plan(question) if not (verdict := judge(question, plan)).violations}
    value = sorted(every)[1]
    found = SearchOutcome(every[value], value, UnverifiedBound("a guess"), "cuts", baselines=baselines_of(question))
    refused = checked(certify(FAMILY, question, found, Limits(), 0.0)).refused
    assert len(refused) == 1
    assert refused[0].startswith("bound: an answer takes")


def test_a_straight_pipeline_on_more_devices_than_stages_is_told_as_such() -> None:
    result = answered(asked_of(CHAIN, ("devices=4", "straight=true", "compatible=true")))
    assert result.status == "INFEASIBLE"
    assert "needs as many stages (--compatible uses all), and the profile cannot be cut into so many" in result.reasons[0]
    assert checked(result).accepted


def test_no_memory_is_enough_is_proved_too(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = path.with_suffix(".json")
    assert main(["solve", str(path), "--memory", "1MB", "--out", str(target)]) == 20
    assert "every plan has a stage that keeps more than the memory" in capsys.readouterr().out
    assert main(["check", str(target)]) == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 0, "certificate: no plan is below"),
        (["--devices", "2x2", "--bandwidth", "6GB/s,1e9"], 0, "slowest stage"),
        (["--devices", "2", "--straight", "--compression", "2"], 0, "stage 2 x 1"),
        (["--compatible"], 0, "no plan with the cuts and charges of the public optimizer is below"),
        (["--devices", "x"], 2, "is no count"),
        (["--devices", "0"], 2, "--devices: '0' is too small (at least 1)"),
        (["--bandwidth", "0"], 2, "--bandwidth: a bandwidth must be above zero"),
        (["--bandwidth", "0", "--compression", "0"], 2, "bytes a second; --compression: a compression of '0.0' is none"),
        (["--bandwidth", "fast"], 2, "--bandwidth: 'fast' does not begin with a number, a bandwidth is needed (for example '900 GB/s')"),
        (["--compression", "-1"], 2, "--compression: a compression of '-1.0' is none"),
        (["--memory", "much"], 2, "--memory: 'much' does not begin with a number, a size in bytes is needed"),
        (["--cpus", "2"], 2, "--cpus: this does not apply to a question about stages of a profile (leave it out)"),
        (["--engine", "milp"], 2, "the engine 'milp' answers no question of kind pipedream"),
        (["--set", "tensor=8"], 3, "tensor: unknown key (the known keys are file, "),
        (["--set", "devices=2x2", "--set", "bandwidth=[6 GB/s, 1 GB/s]"], 0, "slowest stage"),
        (["--set", "bandwidth=6"], 3, "'6' has no unit, a bandwidth is needed (for example '900 GB/s') [from --set bandwidth=6]"),
        (["--set", "straight=true", "--devices", "2"], 0, "stage 2 x 1"),
    ],
)
def test_the_command_answers_and_refuses_in_words(
    words: list[str], code: int, said: str, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = exit_code(["solve", str(path), "--verbose", *words])
    captured = capsys.readouterr()
    assert ended == code
    assert said in " ".join((captured.out + captured.err).split())


def test_faults_of_the_file_are_told_with_their_lines(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text(CHAIN + "oops\n\tnode1 -- node7\n", encoding="utf-8")
    assert main(["solve", str(path)]) == 3
    said = capsys.readouterr().err
    assert f"{path}:8:1" in said
    assert "2 faults, nothing solved" in said


def test_a_folder_is_no_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "folder.txt").mkdir()
    assert main(["solve", str(tmp_path / "folder.txt")]) == 3
    assert "this is a directory" in capsys.readouterr().err
    assert main(["solve", str(tmp_path / "nothing.txt")]) == 3


# Stages of profiles: the figures of the public optimizer, every plan of small profiles, and figures by hand.


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
COMPRESSED = {"vgg16": (0.411042, 0.264061, 0.205521), "resnet50": (0.285058, 0.205521, 0.162881), "gnmt": (0.045936, 0.034572, 0.025868)}
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
        ((Stage(("node1", "node2", "node3", "node4"), (), (1,)),), "node node1 is not a node of the profile with a cost"),
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
        (("devices=[]",), "0 levels of devices are given, 1 to 3 are needed"),
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
    assert result.value == min(baseline.value for baseline in result.baselines if baseline.value is not None)


# Random small profiles, asked in every way: what is proved of them holds of every plan that can be, and of every rule's.

SHAPES = ((1,), (2,), (3,), (4,), (1, 2), (2, 1), (2, 2), (3, 2), (2, 3))


def drawn(seed: int, compatible: bool) -> PipelineQuestion:
    """A question of a few nodes: devices, links, transfers, memory and replicas as they come."""
    random = np.random.default_rng([seed, compatible])
    shape = SHAPES[random.integers(len(SHAPES))]
    count = int(random.integers(1, 8 if len(shape) == 1 else 7))
    text = random_profile(int(random.integers(1 << 30)), count, int(random.integers(1, 4)))
    memory = float(10.0 ** random.uniform(6.5, 8.0)) if random.random() < 0.4 and (compatible or len(shape) == 1) else None
    speeds = ", ".join(f"{10.0 ** random.uniform(8.0, 10.5)} B/s" for _ in shape)
    straight = random.random() < 0.2
    compression = random.choice([1.0, 4.0]) if random.random() < 0.5 else "null"
    asked = {"devices": list(shape), "bandwidth": f"[{speeds}]", "straight": straight, "compression": compression, "compatible": compatible}
    settings = (*(f"{key}={str(value).lower()}" if isinstance(value, bool) else f"{key}={value}" for key, value in asked.items()),)
    return asked_of(text, settings if memory is None else (*settings, f"memory={memory} B"))


def held(question: PipelineQuestion, result: Answer) -> str:
    """Everything that a result says, beside every plan; what kind of question it was."""
    true, report = Plainly(question).least(), checked(result)
    assert report.accepted, report.refused
    assert result.proved
    if true is None:
        assert (result.value, result.status) == (None, "INFEASIBLE")
        assert all(baseline.value is None for baseline in result.baselines)
        return "no plan"
    assert result.value is not None
    assert result.bound is not None
    assert result.value == pytest.approx(float(true), rel=1e-12)
    assert Fraction(result.bound) <= true
    values = [baseline.value for baseline in result.baselines if baseline.value is not None]
    assert all(value >= result.bound for value in values)
    return "beats the rules" if all(value > result.value * 1.001 for value in values) else "as good as a rule"


@pytest.mark.thorough
@pytest.mark.parametrize("compatible", [False, True], ids=["own", "compatible"])
def test_what_is_proved_of_random_profiles_holds_of_every_plan(compatible: bool) -> None:
    kinds = set[str]()
    for seed in range(24):
        question = drawn(seed, compatible)
        everything = frozenset(range(len(question.profile)))
        if compatible and everything not in seen(question):
            with pytest.raises(RefusedError, match="the public optimizer would not see it"):
                answered(question)
            kinds.add("not seen")
        else:
            kinds.add(held(question, answered(question)))
    assert kinds >= {"no plan", "beats the rules", "as good as a rule"}
    assert ("not seen" in kinds) == compatible


def two_first(count: int) -> str:
    """Two nodes that both feed a third, and what follows it."""
    node = "node{} -- Layer -- forward_compute_time={}, backward_compute_time=0, activation_size=0, parameter_size={}\n"
    nodes = [node.format("1", 5, 9), node.format("2", 5, 9), *(node.format(row, 10, 0) for row in range(3, count + 1))]
    return "".join([*nodes, "\tnode1 -- node3\n\tnode2 -- node3\n", *(f"\tnode{row} -- node{row + 1}\n" for row in range(3, count))])


def test_a_plan_cut_where_the_public_optimizer_sees_no_cut_is_none_of_its_plans() -> None:
    """By hand: 5 ms beside 15 ms is the best of its plans; 10 and 10 ms need a cut behind two nodes without an edge between them."""
    asked = ("devices=2", "bandwidth=100.0 B/s", "compatible=true")
    result = answered(asked_of(two_first(3), asked))
    assert result.value == pytest.approx(15e-3, rel=1e-12)
    equal = next(baseline for baseline in result.baselines if baseline.name == "equal stages")
    assert equal.value is None
    assert equal.note == "not all nodes of stage 1 before a cut hang together with node node1 (--compatible cuts only where they do)"
    assert checked(result).accepted
    assert not checked(result).unverified
    own = answered(asked_of(two_first(3), ("devices=2", "bandwidth=100.0 B/s")))
    assert own.value == pytest.approx(10e-3, rel=1e-12)


def test_the_judge_knows_the_cuts_of_the_public_optimizer() -> None:
    for seed in range(40):
        question = asked_of(random_profile(seed, 6, 2), ("devices=2", "compatible=true"))
        everything = frozenset(range(len(question.profile)))
        cuts, whole = seen(question), everything in seen(question)
        for cut in closed(question) - {frozenset(), everything}:
            parts = (sorted(cut), sorted(everything - cut))
            plan = PipedreamPlan(tuple(Stage(tuple(question.profile.ids[row] for row in rows), (), (1,)) for rows in parts))
            assert (not judge(question, plan).violations) == (whole and cut in cuts)


def test_the_first_plans_of_very_many_are_looked_at_without_the_others() -> None:
    question = asked_of(random_profile(3, 10, 1), ("devices=[32, 32]",))
    few = list(islice(every_plan(question), 100))
    assert len(set(few)) == 100
    assert least_of_all(question) is None


# Reading profiles: what counts of them, and every fault with its line and remedy.

NODE = "node{} -- Layer -- forward_compute_time=1.0, backward_compute_time=1.0, activation_size={}, parameter_size=0.0\n"


def test_inputs_and_unused_items_are_left_out_and_lists_are_summed() -> None:
    text = CHAIN + NODE.format(5, 4).replace("Layer", "__getitem__(1)") + "\tnode4 -- node5\n"
    profile = profile_of(text, "test")
    assert profile.ids == ("node2", "node3", "node4")
    assert profile.left_out == ("node1", "node5")
    assert profile.seconds.tolist() == [3e-3, 1e-3, 5e-3]
    assert profile.activation.tolist() == [1.5e6, 1e6, 5e5]
    assert profile.parameters.tolist() == [2e6, 0.0, 4e6]
    assert profile.edges == ((0, 1), (1, 2))


def test_an_input_that_takes_something_in_counts_and_items_that_are_used_count() -> None:
    text = NODE.format(1, 4) + NODE.format(2, 4).replace("Layer", "Input") + NODE.format(3, 4).replace("Layer", "__getitem__(0)")
    profile = profile_of(text + NODE.format(4, 4) + "\tnode1 -- node2\n\tnode1 -- node3\n\tnode3 -- node4\n", "test")
    assert set(profile.ids) == {"node1", "node2", "node3", "node4"}


def test_fractions_of_a_byte_are_rounded_up_and_stages_of_other_tools_are_read_over() -> None:
    profile = profile_of(NODE.format(1, 2.5).replace("\n", " -- stage_id=3\n"), "test")
    assert profile.activation.tolist() == [3.0]


@every(
    ("text", "said"),
    [
        ("", "test:1:1: 0 nodes are given"),
        ("hello\n", "test:1:1: 'hello' is neither a node nor an edge"),
        (NODE.format(1, 1) + "\tnode1 > node2\n", "test:2:1: 'node1 > node2' is no edge"),
        (NODE.format(1, 1) + "\tnode1 -- node2\n", "test:2:1: there is no node 'node2'"),
        (NODE.format(1, 1) * 2, "test:2:1: node1: line 1 is about this node already"),
        (NODE.format(1, -1), "test:1:1: node1.activation_size: -1 is below 0"),
        (NODE.format(1, "[1; x]"), "node1.activation_size: 'x' is no number"),
        (NODE.format(1, "nan"), "node1.activation_size: 'nan' is no number"),
        (NODE.format(1, "1e300"), "node1.activation_size: '1e300' is no number that can be worked with"),
        (NODE.format(1, 4e15) + NODE.format(2, 4e15), "8e+15 bytes in all are more than can be counted"),
        (NODE.format(1, 1).replace("backward_compute_time=1.0, ", ""), "test:1:1: node1: the figures forward_compute_time, backward"),
        (NODE.format(1, 1) + "\tnode1 -- node1\n", "test:2:1: the nodes node1 -> node1 form a cycle"),
        (
            NODE.format(1, 1) + NODE.format(2, 1) + "\tnode1 -- node2\n\tnode2 -- node1\n",
            "test:3:1: the nodes node1 -> node2 -> node1 form a cycle",
        ),
        (NODE.format(1, 1).replace("Layer", "Input"), "there are only inputs here"),
    ],
)
def test_a_wrong_profile_names_the_line_and_the_remedy(text: str, said: str) -> None:
    with pytest.raises(InstanceError) as raised:
        profile_of(text, "test")
    assert said in str(raised.value)


def test_all_faults_come_at_once() -> None:
    text = NODE.format(1, -1) + NODE.format(1, 1) + "what\n\tnode1 -- node9\n\tnode8 -- node1\n"
    with pytest.raises(InstanceError) as raised:
        profile_of(text, "test")
    assert [fault.line for fault in raised.value.faults] == [1, 2, 3, 4, 5]


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "nodes", "seconds", "parameters"),
    [("vgg16", 40, 0.672535, 553_430_176), ("resnet50", 176, 0.443419, 102_228_128), ("gnmt", 37, 0.089416, 775_063_808)],
)
def test_the_published_profiles_have_the_sums_they_should(name: str, nodes: int, seconds: float, parameters: int) -> None:
    profile = profile_of(text_of(reference(f"placement/pipedream/{name}/graph.txt")), name)
    assert len(profile) == nodes
    assert profile.seconds.sum() == pytest.approx(seconds, rel=1e-12)
    assert profile.parameters.sum() == parameters


# A second dynamic program beside the search and every plan: it shows as much, and refuses what is not so.

WAYS: tuple[tuple[str, ...], ...] = (
    ("devices=4",),
    ("devices=3", "memory=40 MB"),
    ("devices=[2, 3]", "bandwidth=[8e9 B/s, 1e9 B/s]"),
    ("devices=4", "straight=true"),
    ("devices=4", "compatible=true"),
    ("devices=[2, 2]", "compatible=true", "memory=90 MB"),
)


def refused(result: Answer) -> str:
    return " ".join(checked(result).refused)


@examples(120)
@given(st.integers(0, 1 << 20), st.booleans())
def test_it_shows_what_every_plan_shows(seed: int, compatible: bool) -> None:
    """In fractions, by trying everything; compatible plans of profiles that the public optimizer sees."""
    question = drawn(seed, compatible)
    if compatible and frozenset(range(len(question.profile))) not in seen(question):
        return
    true, found = Plainly(question).least(), least_slowest(question)
    assert found == (inf if true is None else pytest.approx(float(true), rel=1e-12))


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_it_shows_what_the_search_finds_where_plans_are_too_many(way: tuple[str, ...]) -> None:
    for seed in range(5):
        result = answered(asked_of(random_profile(seed, 12, 1), way))
        report = checked(result)
        assert (report.refused, report.unverified) == ((), False), (seed, report)
        assert isinstance(result.proof, RecomputableBound)


@pytest.mark.data
@pytest.mark.parametrize("name", ["vgg16", "resnet50", "gnmt"])
def test_published_profiles_are_proved_anew(name: str) -> None:
    for way in (("devices=4",), ("devices=16", "memory=16 GB"), ("devices=4", "compatible=true")):
        report = checked(answered(read(reference(f"placement/pipedream/{name}/graph.txt"), way)))
        assert (report.refused, report.unverified) == ((), False), way


def test_a_bound_that_is_moved_up_is_refused_and_one_moved_down_is_no_optimum() -> None:
    """Even by less than sums of doubles are off: what is shown is what is claimed."""
    found = answered(asked_of(random_profile(4, 14, 1), ("devices=5",)))
    assert found.value is not None
    assert "bound: a second dynamic program shows no more than" in refused(replace(found, bound=found.value, gap=0.0))
    below = replace(found, bound=0.9 * found.value, gap=gap_between(found.value, 0.9 * found.value))
    assert "proved if its bound is within the requested gap" in refused(below)
    assert "value: the plan takes" in refused(replace(found, value=0.9 * found.value))


@pytest.mark.parametrize("way", [WAYS[0], WAYS[2], WAYS[3]])
def test_a_rule_that_is_called_the_best_is_refused(way: tuple[str, ...]) -> None:
    """As by a search that overlooks what is better; no rule stands beside it."""
    question = asked_of(random_profile(6, 14, 1), way)
    best = answered(question)
    plans = [
        baseline.answer for baseline in best.baselines if baseline.value is not None and baseline.value > (best.value or 0.0) * (1.0 + 1e-6)
    ]
    assert plans
    for plan in plans:
        assert plan is not None
        wrong = certify(
            FAMILY,
            question,
            SearchOutcome(plan, judge(question, plan).value, RecomputableBound("dynamic programming over all cuts"), "cuts"),
            Limits(),
            0.0,
        )
        assert "bound: a second dynamic program shows no more than" in " ".join(FAMILY.prove(question, wrong, unwatched).refused)
    none = certify(
        FAMILY,
        question,
        SearchOutcome(None, inf, RecomputableBound("dynamic programming over all cuts"), "cuts", reasons=("no",)),
        Limits(),
        0.0,
    )
    assert "the result says that nothing is possible" in " ".join(FAMILY.prove(question, none, unwatched).refused)


def test_that_there_is_no_plan_is_shown_too() -> None:
    found = answered(asked_of(random_profile(4, 14, 1), ("devices=5", "memory=1 MB")))
    report = checked(found)
    assert (found.status, report.refused, report.unverified) == ("INFEASIBLE", (), False)


def test_what_would_take_too_many_steps_is_told_and_not_called_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    question = asked_of(random_profile(4, 14, 1), ("devices=5",))
    counted = answered(question)
    monkeypatch.setattr(family, "MOST_STEPS", 1000)
    told = answered(question)
    assert isinstance(told.proof, UnverifiedBound)
    report = checked(told)
    assert (report.refused, report.unverified) == ((), True)
    assert "proof: repeating it takes more steps than `check` allows" in refused(counted)
    monkeypatch.setattr(family, "MOST_STEPS", 1 << 60)
    monkeypatch.setattr(family, "MOST_CUTS", 3)
    assert isinstance(answered(question).proof, UnverifiedBound)


def test_more_cuts_members_and_levels_take_more_steps() -> None:
    one, more, levels = (asked_of(random_profile(1, 6), (f"devices={word}",)) for word in ("4", "8", "[4, 4]"))
    assert 0 < steps_of(one, 10) < steps_of(one, 20)
    assert steps_of(one, 20) < steps_of(more, 20)
    assert steps_of(one, 20) < steps_of(levels, 20)


# Plans of rules beside the best: groups of devices without a stage, and bounds that such a plan is below.


@pytest.mark.data
@pytest.mark.parametrize(("name", "shape"), [("vgg16", (8, 16)), ("gnmt", (8, 16)), ("gnmt", (4, 4, 8))])
def test_rules_leave_groups_out_that_have_no_stage(name: str, shape: tuple[int, ...]) -> None:
    question = read(reference(f"placement/pipedream/{name}/graph.txt"), (f"devices={list(shape)}",))
    equal = rules(question)["equal stages"]
    verdict, stages = judge(question, equal), equal.stages
    assert verdict.violations == ()
    assert [stage.group for stage in stages] == sorted(stage.group for stage in stages)
    assert len(stages) < question.devices


def test_one_node_on_groups_of_devices_is_one_stage() -> None:
    node = "node1 -- Layer -- forward_compute_time=5, backward_compute_time=0, activation_size=0, parameter_size=0\n"
    result = answered(asked_of(node, ("devices=[1, 2]",)))
    assert result.value == pytest.approx(2.5e-3, rel=1e-12)
    assert [baseline.value for baseline in result.baselines] == pytest.approx([5e-3, 2.5e-3, 5e-3], rel=1e-12)


@pytest.fixture
def beaten() -> tuple[PipelineQuestion, list[SearchOutcome[PipedreamPlan]]]:
    """A plan of a profile too large to look at all plans, said to be the best, with a value that a rule's plan is below; and none."""
    question = asked_of(random_profile(1, 14))
    plan, baselines = rules(question)["one device"], baselines_of(question)
    found = SearchOutcome(plan, judge(question, plan).value, UnverifiedBound("a guess"), "cuts", baselines=baselines)
    return question, [found, SearchOutcome(None, float("inf"), UnverifiedBound("a guess"), "cuts", baselines=baselines)]


def test_a_bound_above_the_plan_of_a_rule_is_neither_answered_nor_accepted(
    beaten: tuple[PipelineQuestion, list[SearchOutcome[PipedreamPlan]]],
) -> None:
    question, both = beaten
    baselines = answered(question).baselines
    for found, said in zip(both, ("'data parallel' takes", "says that nothing is possible"), strict=True):
        with pytest.raises(VerificationError, match=said):
            certify(FAMILY, question, found, Limits(), 0.0)
        wrong = replace(certify(FAMILY, question, replace(found, baselines=()), Limits(), 0.0), baselines=baselines)
        assert any(said in fault for fault in checked(wrong).refused)


def test_the_plans_of_rules_are_those_of_the_question() -> None:
    """Two of them in each other's place, each with its true value."""
    result = answered(asked_of(CHAIN))
    one, other, *rest = result.baselines
    swapped = (replace(other, name=one.name), replace(one, name=other.name), *rest)
    for baselines in (swapped, ()):
        [fault] = checked(replace(result, baselines=baselines)).refused
        assert re.fullmatch(f"baselines: {one.name} .* follow by rule, and here are .*", fault)
