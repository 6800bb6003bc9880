"""Chains as users get them: results that cannot be edited, faults in words, and the chains that come along."""

from dataclasses import replace
from pathlib import Path

import pytest

from crossopt.instances.errors import InstanceError, VerificationError
from crossopt.instances.question import read, read_again
from crossopt.reports.cli import main
from crossopt.solvers.answer import Limits, Result, SearchOutcome
from crossopt.solvers.checking import Report, check
from crossopt.solvers.family import certify
from crossopt.solvers.proofs import UnverifiedBound
from crossopt.solvers.stages.chain.family import FAMILY
from crossopt.solvers.stages.chain.judge import ChainLoads, ChainPlan
from tests.every import every
from tests.paths import INSTANCES, reference
from tests.solvers.stages.chain.chains import SHAPES, answered, asked_of, random_chain
from tests.solvers.stages.chain.chains import text_of as chain_text
from tests.solvers.stages.chain.test_optimum import HAND
from tests.solvers.stages.pipedream.profiles import CHAIN


def checked(result: Result[ChainPlan, ChainLoads]) -> Report:
    return check(FAMILY, result, Path())


def test_a_bound_above_another_plan_is_neither_answered_nor_accepted() -> None:
    """The equal split of a long chain called the best, with the divisible plan below it, and no plan at all with one beside it."""
    question = asked_of(chain_text(SHAPES["gpt3"]))
    best = answered(question)
    split = next(rival for rival in best.rivals if rival.name == "equal split")
    word = UnverifiedBound("somebody")
    for found in (
        SearchOutcome(split.answer, split.value, word, rivals=best.rivals),
        SearchOutcome(None, float("inf"), word, rivals=best.rivals),
    ):
        with pytest.raises(VerificationError, match=r"bound: 'divisible' takes"):
            certify(FAMILY, question, found, Limits(), 0.0)
        wrong = replace(certify(FAMILY, question, replace(found, rivals=()), Limits(), 0.0), rivals=best.rivals)
        assert any(fault.startswith("bound: 'divisible' takes") for fault in checked(wrong).refused)


def test_small_chains_and_large_ones_are_proved_anew() -> None:
    for text in (random_chain(3, 6, (1, 2)), chain_text(SHAPES["bert"])):
        report = checked(answered(asked_of(text)))
        assert (report.accepted, report.told) == (True, False)


def test_a_worse_plan_that_is_called_optimal_is_refused() -> None:
    """The plan of four devices, said of five hundred."""
    found = answered(asked_of(HAND))
    other = {**found.question, "text": HAND.replace("devices: 4", "devices: 500")}
    assert "bound: an answer takes" in " ".join(checked(replace(found, question=other, rivals=())).refused)


@pytest.mark.parametrize("path", sorted((INSTANCES / "stages").glob("*.yaml")), ids=lambda path: path.stem)
def test_the_chains_that_come_along_are_proved_and_found_by_name(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", path.stem]) == 0
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
        (["solve"], 0, "certificate: no plan is below"),
        (["solve", "--json"], 0, '"kind": "chain"'),
        (["solve", "--devices", "2"], 2, "--devices: this says nothing of a question about chains of layers"),
        (["solve", "--engine", "boxes"], 2, "the engine 'boxes' answers no question of kind chain"),
        (["solve", "--set", "devices=8"], 0, "on 8 devices"),
        (["solve", "--set", "devises=8"], 3, "devises: unknown key (did you mean 'devices'?) [from --set devises=8]"),
        (["validate"], 0, "a sound question: 2 layers of 1 width on 4 devices"),
        (["compare"], 0, "equal split"),
    ],
)
def test_the_command_answers_and_refuses_in_words(
    words: list[str], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "hand.yaml"
    path.write_text(HAND, encoding="utf-8")
    try:
        ended = main([words[0], str(path), *words[1:]])
    except SystemExit as stop:
        ended = int(stop.code or 0)
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
    rivals = {rival.name: rival.value for rival in found.rivals}
    assert (rivals["equal split"] or float("inf")) >= (found.value or 0.0) * (1.13 if name == "gnmt" else 1.0)


def test_no_memory_is_enough_is_proved_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, target = tmp_path / "hand.yaml", tmp_path / "answer.json"
    path.write_text(HAND.replace("100 B", "3 B"), encoding="utf-8")
    assert main(["solve", str(path), "--out", str(target)]) == 20
    assert main(["check", str(target)]) == 0
    told = capsys.readouterr().out
    assert "one layer alone keeps 21 bytes on a device of 3" in told
    assert "every answer was looked at anew" in told


def test_too_few_devices_for_any_width_are_told() -> None:
    found = answered(asked_of(HAND.replace("{1: ", "{8: ")))
    assert found.status == "INFEASIBLE"
    assert found.reasons == ("a stage needs 8 devices at the least, there are 4",)
