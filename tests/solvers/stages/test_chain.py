"""Chains: golden optima, every plan of small chains, a second dynamic program, and answers as users get them."""

from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.instances.errors import InstanceError, VerificationError
from crossopt.instances.question import read, read_again
from crossopt.instances.stages.chain import ChainQuestion
from crossopt.reports.cli import main
from crossopt.solvers.answer import Limits, Result, SearchOutcome, gap_between, unwatched
from crossopt.solvers.checking import Report, check
from crossopt.solvers.family import ProblemType, certify, solve
from crossopt.solvers.proofs import RecomputableBound, UnverifiedBound
from crossopt.solvers.stages.chain import judge as prove
from crossopt.solvers.stages.chain.family import FAMILY
from crossopt.solvers.stages.chain.judge import ChainLoads, ChainPlan, even, every_plan, judge, least_of_all
from crossopt.solvers.stages.chain.plans import best_plans, equal_splits
from tests.commands import exit_code
from tests.every import every
from tests.extent import examples
from tests.paths import INSTANCES, reference
from tests.solvers.stages.chain.chains import SHAPES, answered, asked_of, random_chain, text_of
from tests.solvers.stages.chain.chains import text_of as chain_text
from tests.solvers.stages.pipedream.profiles import CHAIN

# Plans for chains: golden optima, every plan of small chains, figures by hand, and what is never worse.

GOLDEN = {
    ("bert", "none"): (0.1956659621345883, 1, 256, 4, 0.2630260519291469),
    ("bert", "full"): (0.19848368379236858, 1, 512, 2, 0.2630260519291469),
    ("gpt2", "none"): (0.6252912217410407, 1, 128, 8, 0.9703138347035363),
    ("gpt2", "full"): (0.7217094413933298, 1, 256, 4, 0.9855585132129607),
    ("gpt72", "none"): (3.3767011328323377, 1, 256, 4, 31.426042093936164),
    ("gpt72", "full"): (3.9294263171713686, 1, 128, 8, 41.85523222072188),
    ("gpt3", "none"): (86.72937565629293, 1, 26, 38, 245.4528902866281),
    ("gpt3", "full"): (94.49189336167915, 1, 31, 33, 255.13784992234233),
}
"""Seconds of a batch, width, replicas and stages by the public program of PHAZE, and seconds of the plan to compare with."""


@pytest.mark.parametrize("name", GOLDEN)
def test_the_optimum_is_that_of_the_public_program(name: tuple[str, str]) -> None:
    seconds, width, data, stages, fixed = GOLDEN[name]
    result = answered(asked_of(text_of(SHAPES[name[0]], f"recompute: {name[1]}")))
    assert result.status == "OPTIMAL"
    assert result.value == pytest.approx(seconds, rel=1e-12)
    assert result.answer is not None
    assert (result.answer.width, result.answer.data, len(result.answer.stages)) == (width, data, stages)
    baselines = {baseline.name: baseline.value for baseline in result.baselines}
    assert baselines["fixed plan"] == pytest.approx(fixed, rel=1e-12)


def test_both_ways_to_recompute_are_looked_at_together() -> None:
    result = answered(asked_of(text_of(SHAPES["gpt3"])))
    assert result.value == pytest.approx(GOLDEN["gpt3", "none"][0], rel=1e-12)
    assert {"divisible", "equal split", "fixed, stored", "fixed, recomputed"} == {baseline.name for baseline in result.baselines}


def test_divisible_replicas_divide_and_are_the_rival_of_free_ones() -> None:
    free, bound = (answered(asked_of(text_of(SHAPES["gpt3"], f"divisible: {word}"))) for word in ("false", "true"))
    assert bound.answer is not None
    assert 1024 % bound.answer.data == 4096 % bound.answer.data == 0
    assert bound.value == next(baseline.value for baseline in free.baselines if baseline.name == "divisible")
    assert (free.value or 0.0) < (bound.value or 0.0)


SCHEDULES = {
    "flush": "",
    "divisible": "divisible: true",
    "recompute": "recompute: full",
    "adam": "copies: 3",
    "two versions": "schedule: two-versions\noverhead: 2 ms",
    "two versions, divisible": "schedule: two-versions\ndivisible: true",
}


@pytest.mark.parametrize("more", SCHEDULES.values())
@pytest.mark.parametrize("widths", [(1,), (1, 2)])
def test_no_plan_of_a_small_chain_is_better_and_one_is_as_good(more: str, widths: tuple[int, ...]) -> None:
    found = set()
    for seed in range(12):
        question = asked_of(random_chain(seed, 4 + seed % 3, widths, more))
        verdicts = (judge(question, plan) for plan in every_plan(question))
        true = min((verdict.value for verdict in verdicts if not verdict.violations), default=float("inf"))
        best = best_plans(question, equal_splits(question, lambda: None).divisible.value, lambda: None).any
        assert best.value == pytest.approx(true, rel=1e-12)
        if best.plan is not None:
            verdict = judge(question, best.plan)
            assert verdict.violations == ()
            assert verdict.value == pytest.approx(best.value, rel=1e-13)
        found.add(best.plan and len(best.plan.stages))
    assert len(found) > 2


@pytest.mark.parametrize("schedule", ["flush", "two-versions"])
def test_merged_microbatches_and_the_divisible_rival_are_exact_too(schedule: str) -> None:
    merged = "microbatch: [1, 2]\n" if schedule == "two-versions" else ""
    for seed in range(8):
        text = random_chain(seed, 5, (1, 2), f"schedule: {schedule}\n{merged}overhead: 3 ms").replace(
            "microbatches: 1\n", "microbatches: 8\n"
        )
        question = asked_of(text)
        result = answered(question)
        least, bound = least_of_all(question), least_of_all(replace(question, file=replace(question.file, divisible=True)))
        assert (result.value or float("inf")) == pytest.approx(least, rel=1e-12)
        baseline = next(baseline.value for baseline in result.baselines if baseline.name == "divisible")
        assert (baseline or float("inf")) == pytest.approx(bound, rel=1e-12)


HAND = """\
kind: chain
devices: 4
memory: 100 B
bandwidth: 1 kB/s
microbatches: 8
layers:
  - {output: 10 B, widths: {1: {forward: 1 s, backward: 2 s, parameters: 4 B, activations: 6 B}}}
  - {output: 99 B, widths: {1: {forward: 3 s, backward: 4 s, parameters: 8 B, activations: 5 B}}}
"""


def test_a_chain_by_hand() -> None:
    """Two stages: 3 + 0.01 s and 7 + 0.01 s, ten bytes between them; two replicas do four microbatches each."""
    plan = ChainPlan(1, "none", 1, 2, (1, 1))
    found = judge(asked_of(HAND), plan)
    assert [load.total for load in found.details.loads] == pytest.approx([3.01, 7.01], rel=1e-15)
    assert [load.memory for load in found.details.loads] == [2 * 4 + 6 + 6, 2 * 8 + 5]
    assert found.value == pytest.approx(7.01 * (4 + 1) + 4 * 0.5 * 4 / 1000, rel=1e-15)
    again = judge(asked_of(HAND), replace(plan, recompute="full"))
    assert [load.total for load in again.details.loads] == pytest.approx([4.0, 7.01], rel=1e-15)
    assert [load.memory for load in again.details.loads] == [2 * 4 + 6 + 0, 2 * 8 + 5]
    merged = asked_of(HAND.replace("layers:", "schedule: two-versions\nmicrobatch: [1, 2]\noverhead: 0.5 s\nlayers:"))
    large = judge(merged, replace(plan, microbatch=2))
    assert [load.total for load in large.details.loads] == pytest.approx([2 * 3.01 + 1.0, 2 * 7.01 + 1.0], rel=1e-15)
    assert [load.memory for load in large.details.loads] == [2 * 4 + 12 + 12, 2 * 8 + 10]
    assert large.value == pytest.approx(2 * 15.02 + 2 * 0.5 * 8 / 1000, rel=1e-15)


def test_more_devices_and_more_memory_are_never_worse() -> None:
    for more in ("", "schedule: two-versions"):
        text = random_chain(5, 12, (1, 2), more).replace("microbatches: 1\n", "microbatches: 12\n")
        values = [_least(text, devices, 80) for devices in (2, 5, 9, 30, 100)]
        assert values == sorted(values, reverse=True)
        values = [_least(text, 12, memory) for memory in (20, 60, 100, 1000)]
        assert values == sorted(values, reverse=True)
        assert values[-1] < float("inf")


def _least(text: str, devices: int, memory: int) -> float:
    lines = (f"devices: {devices}" if line.startswith("devices") else line for line in text.splitlines())
    lines = (f"memory: {memory} MB" if line.startswith("memory") else line for line in lines)
    value = answered(asked_of("\n".join(lines))).value
    return float("inf") if value is None else value


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (ChainPlan(2, "none", 1, 1, (1, 1)), "no width 2"),
        (ChainPlan(1, "none", 1, 1, (1,)), "have 2 layers together"),
        (ChainPlan(1, "none", 1, 1, (2, 0)), "have 2 layers together"),
        (ChainPlan(1, "none", 1, 0, (2,)), "have 2 layers together"),
    ],
)
def test_what_is_no_plan_is_refused_in_words(plan: ChainPlan, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        judge(asked_of(HAND), plan)


def test_broken_rules_are_told() -> None:
    question = asked_of(
        HAND.replace("100 B", "20 B").replace("layers:", "schedule: two-versions\ndivisible: true\nrecompute: none\nlayers:")
    )
    told = " ".join(judge(question, ChainPlan(1, "full", 2, 5, (1, 1))).violations)
    for words in (
        *(
            "10 devices are used, there are 4",
            "recompute full is not among",
            "2 microbatches as one is not among",
            "5 replicas do not divide 4",
        ),
        *("5 replicas do not divide the 4 microbatches", "a batch is shorter than the 2 stages", "keeps 26 B on a device of 20 B"),
    ):
        assert words in told


def test_even_stages_have_the_rounded_mean_and_the_last_the_rest() -> None:
    assert even(26, 8) == (3, 3, 3, 3, 3, 3, 3, 5)
    assert even(50, 32) == (2,) * 18 + (1,) * 14
    assert even(4, 4) == (1, 1, 1, 1)
    assert even(7, 1) == (7,)
    assert all(sum(even(n, s)) == n and len(even(n, s)) == s and min(even(n, s)) > 0 for n in range(1, 40) for s in range(1, n + 1))


def test_the_best_known_is_left_where_the_time_is_over() -> None:
    result = solve(FAMILY, asked_of(text_of(SHAPES["gpt72"])), "cuts", Limits(seconds=0.0), unwatched)
    assert (result.status, result.stopped, result.bound) == ("UNKNOWN", "time limit", None)


# Chains as users get them: results that cannot be edited, faults in words, and the chains that come along.


def checked(result: Result[ChainPlan, ChainLoads]) -> Report:
    return check(FAMILY, result, Path())


def test_a_bound_above_another_plan_is_neither_answered_nor_accepted() -> None:
    """The equal split of a long chain called the best, with the divisible plan below it, and no plan at all with one beside it."""
    question = asked_of(chain_text(SHAPES["gpt3"]))
    best = answered(question)
    split = next(baseline for baseline in best.baselines if baseline.name == "equal split")
    word = UnverifiedBound("somebody")
    for found in (
        SearchOutcome(split.answer, split.value, word, baselines=best.baselines),
        SearchOutcome(None, float("inf"), word, baselines=best.baselines),
    ):
        with pytest.raises(VerificationError, match=r"bound: 'divisible' takes"):
            certify(FAMILY, question, found, Limits(), 0.0)
        wrong = replace(certify(FAMILY, question, replace(found, baselines=()), Limits(), 0.0), baselines=best.baselines)
        assert any(fault.startswith("bound: 'divisible' takes") for fault in checked(wrong).refused)


def test_small_chains_and_large_ones_are_proved_anew() -> None:
    for text in (random_chain(3, 6, (1, 2)), chain_text(SHAPES["bert"])):
        report = checked(answered(asked_of(text)))
        assert (report.accepted, report.unverified) == (True, False)


def test_a_worse_plan_that_is_called_optimal_is_refused() -> None:
    """The plan of four devices, said of five hundred."""
    found = answered(asked_of(HAND))
    other = {**found.question, "text": HAND.replace("devices: 4", "devices: 500")}
    forged = replace(found, question=other, baselines=())
    assert "bound: an answer takes" in " ".join(check(ALONE, forged, Path()).refused)
    assert not checked(forged).accepted


@pytest.mark.parametrize("path", sorted((INSTANCES / "stages").glob("*.yaml")), ids=lambda path: path.stem)
def test_the_chains_that_come_along_are_proved_and_found_by_name(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", path.stem, "--verbose"]) == 0
    assert "certificate: no plan is below" in capsys.readouterr().out
    found = answered(read(path))
    assert found.status == "OPTIMAL"
    assert checked(found).accepted


@every(
    ("old", "new", "said"),
    [
        ("devices: 4", "devices: 0", "devices: '0' is too small"),
        ("memory: 100 B", "memory: 100", "memory: '100' has no unit"),
        ("1 kB/s", "0 B/s", "bandwidth: less than a byte a second is no bandwidth"),
        ("bandwidth", "bandwith", "bandwith: unknown key (did you mean 'bandwidth'?)"),
        ("widths: {1: ", "widths: {0: ", "layers[0].widths: '0' is no width"),
        ("widths: {1: ", "widths: {x: ", "layers[0].widths: 'x' is no width"),
        ("99 B, widths: {1: ", "99 B, widths: {2: ", "layers[1].widths: the widths 2 are not those of the first layer, 1"),
        ("layers:", "microbatch: 2\nlayers:", "microbatch: microbatches are merged under `schedule: two-versions` only"),
        ("layers:", "schedule: two-versions\nmicrobatch: 3\nlayers:", "microbatch: each must divide the 8 microbatches"),
        ("layers:", "fixed: {stages: 9, width: 4}\nlayers:", "fixed.width: the layers have no width 4"),
        ("layers:", "fixed: {stages: 9}\nlayers:", "fixed.stages: 9 stages are more than the 2 layers"),
        ("{output: 99 B", "{count: 5000, output: 99 B", "5,001 layers are given"),
        ("parameters: 8 B", "parameters: 8 PB", "bytes in all are more than can be counted"),
        ("parameters: 8 B", "parameters: 1e308 B", "inf bytes in all are more than can be counted"),
        ("1: {forward: 1 s, backward: 2 s", "1: {forward: 1e308 s, backward: 1e308 s", "a layer takes more than 1e9 s"),
        ("forward: 3 s", "forward: 1e12 s", "a layer takes more than 1e9 s"),
        ("forward: 3 s", "forward: -3 s", "layers[1].widths.1.forward: '-3 s' is negative"),
    ],
)
def test_a_wrong_chain_names_the_place_and_the_remedy(old: str, new: str, said: str) -> None:
    assert old in HAND
    with pytest.raises(InstanceError) as raised:
        asked_of(HAND.replace(old, new, 1))
    assert said in str(raised.value)
    assert "test.yaml:" in str(raised.value)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["solve", "--verbose"], 0, "certificate: no plan is below"),
        (["solve", "--json"], 0, '"kind": "chain"'),
        (["solve", "--devices", "2"], 2, "--devices: this does not apply to a question about chains of layers"),
        (["solve", "--engine", "boxes"], 2, "the engine 'boxes' answers no question of kind chain"),
        (["solve", "--set", "devices=8"], 0, "on 8 devices"),
        (["solve", "--set", "devises=8"], 3, "devises: unknown key (did you mean 'devices'?) [from --set devises=8]"),
        (["validate"], 0, "valid: 2 layers of 1 width on 4 devices"),
        (["compare"], 0, "equal split"),
    ],
)
def test_the_command_answers_and_refuses_in_words(
    words: list[str], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "hand.yaml"
    path.write_text(HAND, encoding="utf-8")
    ended = exit_code([words[0], str(path), *words[1:]])
    captured = capsys.readouterr()
    assert ended == code
    assert said in captured.out + captured.err


PROFILED = """\
kind: chain
schedule: two-versions
profile: graph.txt
devices: 4
memory: 32 MB
bandwidth: 1 GB/s
microbatches: 8
microbatch: [1, 2]
"""


def test_a_profile_gives_the_layers_and_a_result_stands_without_it(tmp_path: Path) -> None:
    """Its first node is an input; the second hands 1.5 MB to the third and, behind it, to the fourth."""
    path, graph = tmp_path / "asked.yaml", tmp_path / "graph.txt"
    path.write_text(PROFILED, encoding="utf-8")
    graph.write_text(CHAIN + "\tnode2 -- node4\n", encoding="utf-8")
    question = read(path)
    assert question.layers == ("node2", "node3", "node4")
    assert question.entering.tolist() == [0.0, 1.5e6, 2.5e6, 0.0]
    assert question.widths[0].forward.tolist() == [1e-3, 0.5e-3, 2e-3]
    saved = answered(question)
    graph.unlink()
    assert checked(saved).accepted
    with pytest.raises(InstanceError, match="profile: there is no such file"):
        read(path)
    path.write_text(PROFILED + "layers: []\n", encoding="utf-8")
    graph.write_text("nonsense\n", encoding="utf-8")
    with pytest.raises(InstanceError, match=r"graph\.txt:1:1: 'nonsense' is neither a node nor an edge"):
        read(path)


@pytest.mark.data
@pytest.mark.parametrize("name", ["vgg16", "resnet50", "gnmt"])
def test_published_profiles_are_planned_with_two_versions(name: str) -> None:
    text = (
        PROFILED.replace("32 MB", "24 GiB").replace("1 GB/s", "10 GB/s").replace("devices: 4", "devices: 8").replace("ches: 8", "ches: 16")
    )
    profile = reference(f"placement/pipedream/{name}/graph.txt").read_text(encoding="utf-8")
    found = answered(read_again({"source": "q.yaml", "text": text, "settings": [], "files": {"graph.txt": profile}}, "chain"))
    assert found.status == "OPTIMAL"
    assert checked(found).accepted
    baselines = {baseline.name: baseline.value for baseline in found.baselines}
    assert (baselines["equal split"] or float("inf")) >= (found.value or 0.0) * (1.13 if name == "gnmt" else 1.0)


def test_no_memory_is_enough_is_proved_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, target = tmp_path / "hand.yaml", tmp_path / "answer.json"
    path.write_text(HAND.replace("100 B", "3 B"), encoding="utf-8")
    assert main(["solve", str(path), "--out", str(target)]) == 20
    assert main(["check", str(target)]) == 0
    told = capsys.readouterr().out
    assert "one layer alone keeps 21 bytes on a device of 3" in told
    assert "every answer was enumerated again" in told


def test_too_few_devices_for_any_width_are_told() -> None:
    found = answered(asked_of(HAND.replace("{1: ", "{8: ")))
    assert found.status == "INFEASIBLE"
    assert found.reasons == ("a stage needs 8 devices at the least, there are 4",)


# A second dynamic program beside the search and every plan: it shows as much, and refuses what is not so.

LONG = text_of(SHAPES["bert"])
ALONE = replace(FAMILY, rules=None, searched=None)
"""As if nothing were known of its baselines: what else a check refuses."""
COUNTED = RecomputableBound("dynamic programming over all cuts")
MERGED = "schedule: two-versions\nmicrobatch: [1, 2]\noverhead: 2 ms"


def least(question: ChainQuestion) -> float:
    """Of every plan."""
    verdicts = (judge(question, plan) for plan in every_plan(question))
    return min((verdict.value for verdict in verdicts if not verdict.violations), default=inf)


def refused(result: Result[ChainPlan, ChainLoads], family: ProblemType[ChainQuestion, ChainPlan, ChainLoads] = FAMILY) -> str:
    return " ".join(check(family, result, Path()).refused)


@examples(120)
@given(st.integers(0, 1 << 20), st.integers(1, 6), st.sampled_from([(1,), (1, 2), (2, 3)]), st.sampled_from([*SCHEDULES.values(), MERGED]))
def test_it_shows_what_every_plan_shows_and_never_more(seed: int, layers: int, widths: tuple[int, ...], more: str) -> None:
    text = random_chain(seed, layers, widths, more)
    question = asked_of(text.replace("microbatches: 1\n", "microbatches: 2\n") if more == MERGED else text)
    true, sure = least(question), prove.least_time(question)
    assert sure <= true
    assert sure == true == inf or sure >= true * (1.0 - 1e-12)


@pytest.mark.parametrize("more", [*SCHEDULES.values(), MERGED])
def test_it_shows_what_the_search_finds_on_chains_of_too_many_plans(more: str) -> None:
    for seed in range(8):
        text = random_chain(seed, 12 + seed, (1, 2), more)
        result = answered(asked_of(text.replace("microbatches: 1\n", "microbatches: 2\n") if more == MERGED else text))
        report = check(FAMILY, result, Path())
        assert (report.refused, report.unverified) == ((), False)
        assert isinstance(result.proof, RecomputableBound)


def test_a_bound_that_is_moved_up_is_refused_and_one_moved_down_is_no_optimum() -> None:
    """Even by less than sums of doubles are off: what is shown is what is claimed."""
    found = answered(asked_of(LONG))
    assert found.value is not None
    above = replace(found, bound=found.value, gap=0.0)
    assert "bound: a second dynamic program shows no more than" in refused(above)
    below = replace(found, bound=0.9 * found.value, gap=gap_between(found.value, 0.9 * found.value))
    assert "proved if its bound is within the requested gap" in refused(below)
    assert "value: the plan takes" in refused(replace(found, value=0.9 * found.value))


@pytest.mark.parametrize("name", ["HiGHS 99, proved in Coq", "dynamic programming over 3 cuts", "dynamic programming over all cuts, twice"])
def test_a_proof_by_another_name_is_refused(name: str) -> None:
    found = answered(asked_of(LONG))
    assert isinstance(found.proof, RecomputableBound)
    assert f"nothing is proved by {name!r}" in refused(replace(found, proof=replace(found.proof, by=name)))


@pytest.mark.parametrize("more", ["", "schedule: two-versions", "recompute: full"])
def test_another_plan_that_is_called_the_best_is_refused(more: str) -> None:
    """As by a search that overlooks what is better."""
    question = asked_of(random_chain(5, 14, (1, 2), more))
    best = answered(question)
    plans = [
        baseline.answer for baseline in best.baselines if baseline.value is not None and baseline.value > (best.value or 0.0) * (1.0 + 1e-6)
    ]
    assert plans
    for plan in plans:
        claimed = SearchOutcome(plan, judge(question, plan).value, COUNTED, "cuts")
        wrong = certify(FAMILY, question, claimed, Limits(), 0.0)
        assert "bound: a second dynamic program shows no more than" in refused(wrong, ALONE)
        assert refused(wrong)
    none = certify(FAMILY, question, SearchOutcome(None, inf, COUNTED, "cuts", reasons=("no",)), Limits(), 0.0)
    assert "the result says that nothing is possible" in refused(none, ALONE)


def test_that_there_is_no_plan_is_shown_too() -> None:
    found = answered(asked_of(LONG.replace("memory: 80 GiB", "memory: 80 MiB")))
    report = check(FAMILY, found, Path())
    assert (found.status, report.refused, report.unverified) == ("INFEASIBLE", (), False)


def test_what_would_take_too_many_steps_is_told_and_not_called_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    question = asked_of(LONG)
    counted = answered(question)
    monkeypatch.setattr(prove, "MOST_STEPS", 1000)
    told = answered(question)
    assert isinstance(told.proof, UnverifiedBound)
    report = check(FAMILY, told, Path())
    assert (report.refused, report.unverified) == ((), True)
    assert "proof: repeating it takes more steps than `check` allows" in refused(counted)


def test_a_word_is_held_against_it_all_the_same() -> None:
    found = answered(asked_of(LONG))
    report = check(FAMILY, replace(found, status="FEASIBLE", proved=False, proof=UnverifiedBound("somebody")), Path())
    assert (report.refused, report.unverified) == ((), False)
