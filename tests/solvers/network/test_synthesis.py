"""Sends over links: by hand, against all that can be done at all, and every mistake in a question told."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.formulation.network.sends import least_steps, sends_model
from crossopt.instances.errors import InstanceError
from crossopt.instances.network.synthesis import SynthesisQuestion
from crossopt.instances.question import read, read_given
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.backends import Spend, backend
from crossopt.solvers.family import solve
from crossopt.solvers.network.synthesis.family import FAMILY
from crossopt.solvers.network.synthesis.judge import Sends, judge
from tests.extent import examples
from tests.paths import ROOT

SHIPPED = ROOT / "instances" / "network" / "gather-two-boxes.yaml"


def asked(text: str) -> SynthesisQuestion:
    question = read_given(text, "synthesis")
    assert isinstance(question, SynthesisQuestion)
    return question


def steps(text: str) -> tuple[int, int]:
    """Of the answer, and of the bound of cuts."""
    question = asked(f"kind: synthesis\n{text}")
    result = solve(FAMILY, question, "auto", Limits(), unwatched)
    assert result.value is not None
    return int(result.value), least_steps(question)


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("layout: {shape: line, size: [3]}", 2),  # the far end's chunk comes behind its neighbour's
        ("layout: {shape: ring, size: [4]}", 2),  # three chunks over two links
        ("layout: {shape: full, size: [6]}", 1),
        ("layout: {shape: torus, size: [3, 3]}", 2),  # eight chunks over four links
        ("layout: {shape: mesh, size: [3, 3]}", 4),  # eight chunks over the two links of a corner
        ("layout: {shape: line, size: [3]}\ncollective: broadcast\nchunks: 2", 3),  # two steps away, one behind the other
        ("layout: {shape: line, size: [3]}\ncollective: reduce_scatter", 2),
        ("links: [{from: 0, to: 1, steps: 3}, {from: 1, to: 0}]\nchunks: 2", 6),
    ],
)
def test_small_networks_by_hand(text: str, least: int) -> None:
    assert steps(text) == (least, least)


def test_two_boxes_wait_for_their_slow_links_and_go_one_step_further() -> None:
    """Four chunks over two links of 3 steps are in after 6; the last has to go on, or to come over both: 7, and no solver is believed."""
    question = read(SHIPPED, ())
    assert isinstance(question, SynthesisQuestion)
    result = solve(FAMILY, question, "auto", Limits(), unwatched)
    assert (result.value, result.status, least_steps(question)) == (7, "OPTIMAL", 7)


def test_of_a_reduce_scatter_every_npu_adds_what_it_received_before_it_sends() -> None:
    """Turned round again: each chunk leaves each NPU but its own once, and after all of it has come in there."""
    question = asked("kind: synthesis\nlayout: {shape: mesh, size: [2, 3]}\ncollective: reduce_scatter")
    result = solve(FAMILY, question, "auto", Limits(), unwatched)
    assert result.answer is not None and result.value is not None
    runs = [
        (chunk, question.links[place].receiver, question.links[place].sender, int(result.value) - step - question.links[place].steps)
        for chunk, place, step in result.answer.sends
    ]
    for chunk, owner in enumerate(question.origins):
        mine = [(sender, receiver, step) for one, sender, receiver, step in runs if one == chunk]
        assert sorted(sender for sender, _, _ in mine) == [npu for npu in range(6) if npu != owner]
        for sender, _, step in mine:
            assert all(came < step for _, receiver, came in mine if receiver == sender)


@st.composite
def networks(draw: st.DrawFn) -> str:
    """Three or four NPUs, a ring that leads everywhere and some links more, all of one step."""
    npus = draw(st.integers(3, 4))
    pairs = {(npu, (npu + 1) % npus) for npu in range(npus)}
    pairs |= draw(st.sets(st.sampled_from([pair for pair in product(range(npus), repeat=2) if pair[0] != pair[1]]), max_size=4))
    links = ", ".join(f"{{from: {one}, to: {other}}}" for one, other in sorted(pairs))
    collective = draw(st.sampled_from(("all_gather", "broadcast", "reduce_scatter")))
    return f"links: [{links}]\ncollective: {collective}"


@given(networks())
@examples(40)
def test_nothing_at_all_is_quicker(text: str) -> None:
    """Breadth first over who has what: all that one step can do, nothing left out but what is no use."""
    question = asked(f"kind: synthesis\n{text}")
    value, bound = steps(text)
    assert bound <= value == _all_ways(question)


@given(networks(), st.lists(st.integers(1, 3), min_size=16, max_size=16), st.integers(1, 2))
@examples(40)
def test_cuts_ask_for_no_step_too_many(text: str, lengths: list[int], chunks: int) -> None:
    """Links of several lengths: all is done in the answer's steps, and a solver finds nothing in a step less than cuts ask for."""
    lengthened = iter(lengths)
    text = "}".join(f"{part}, steps: {next(lengthened)}" if "to:" in part else part for part in text.split("}"))
    question = asked(f"kind: synthesis\n{text}\nchunks: {chunks}")
    model, _ = sends_model(question, least_steps(question) - 1)
    assert backend("cpsat")(model, Spend()).status == "INFEASIBLE"


def _all_ways(question: SynthesisQuestion) -> int:
    now = {frozenset((chunk, origin) for chunk, origin in enumerate(question.origins))}
    chunks, done = range(len(question.origins)), len(question.origins) * question.npus
    taken = 0
    while not any(len(has) == done for has in now):
        taken += 1
        after = set[frozenset[tuple[int, int]]]()
        for has in now:
            useful = [
                [(chunk, link.receiver) for chunk in chunks if (chunk, link.sender) in has and (chunk, link.receiver) not in has]
                for link in question.links
            ]
            after |= {has | set(way) for way in product(*(ways for ways in useful if ways))}
        now = {has for has in after if not any(has < other for other in after)}
    return taken


@pytest.mark.parametrize(
    ("sends", "told"),
    [
        (((0, 0, 0), (0, 9, 0)), "a send names a chunk and a link of the question, and a step from 0"),
        (((1, 0, 0),), "NPU 0 sends chunk 1 at step 0 and has not got it"),
        (((0, 0, 0), (0, 0, 1)), "NPU 1 receives chunk 0 twice"),
        (((0, 0, 1), (1, 1, 0)), "sends stand by their steps, and those of a step by their links"),
        (((0, 0, 0),), "every NPU needs every chunk"),
    ],
)
def test_the_judge_refuses_what_cannot_be_done(sends: tuple[tuple[int, int, int], ...], told: str) -> None:
    """Two NPUs with a link each way."""
    with pytest.raises(ValueError, match=told):
        judge(asked("kind: synthesis\nlayout: {shape: line, size: [2]}"), Sends(sends))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("collective: broadcast", "links: a layout or links are needed, and not both"),
        ("layout: {shape: torus, size: [3]}", "layout.size: a torus has 2 sides (give as many numbers)"),
        ("layout: {shape: mesh, size: [3, 4]}", "layout.size: these are 12 NPUs, 2 to 9 are needed, as all ways to send are looked at"),
        ("links: [{from: 0, to: 0}]", "links.0.to: NPU 0 needs no link to itself (take it out)"),
        ("links: [{from: 0, to: 1}, {from: 0, to: 1, steps: 2}]", "there is a link from 0 to 1 already (take one of them out)"),
        ("links: [{from: 0, to: 1}]", "links: no links lead from NPU 1 to NPU 0 (add some)"),
        ("links: [{from: 0, to: 1}]\ncollective: reduce_scatter", "links: no links lead from NPU 1 to NPU 0 (add some)"),
        ("layout: {shape: full, size: [3]}\nroot: 1", "root: only a broadcast has a root (take it out, or ask for a broadcast)"),
        ("layout: {shape: full, size: [3]}\ncollective: broadcast\nroot: 3", "root: there is no NPU 3 (there are 3, counted from 0)"),
    ],
)
def test_every_mistake_is_told(text: str, told: str) -> None:
    with pytest.raises(InstanceError) as error:
        asked(f"kind: synthesis\n{text}")
    assert told.replace("links.0.to", "links[0].to") in str(error.value)
