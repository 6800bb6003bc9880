"""What an answer says of networks with experts: what hiding their exchange is worth, and how far the model is off on such runs."""

import re

import pytest

from crossopt.reports.facts.design import facts_of
from crossopt.reports.facts.expert_exchange import hidden_words
from crossopt.reports.facts.measured_runs import likely_of, measured_words
from crossopt.reports.texts.design import answer
from tests.every import every
from tests.reports.answers import answered, design_of, evaluation_of
from tests.solvers.codesign.questions import ask

MIXTRAL = """
kind: codesign
workload: {model: mixtral-8x7b, global_batch: 256, sequence: 4096}
cluster: {devices: 64}
hardware: h100-sxm
choices: {pipeline: 2, expert: 8, interleave: 4, zero: 1, overlap: both, expert_exchange: [exposed, hidden]}
"""


def joined(text: str) -> str:
    return " ".join(text.split())


@every(("tensor", "share", "beside"), [(1, "40%", ""), (2, "20%", ", which is less beside tensor or context ranks,")])
def test_an_answer_says_what_the_plan_costs_with_its_exchange_of_experts_exposed(tensor: int, share: str, beside: str) -> None:
    """The same figure as the question with the exchange exposed, which was the only other design."""
    settings = (f"choices.tensor={tensor}", f"choices.sequence_parallel={str(tensor > 1).lower()}")
    asked = ask(MIXTRAL, *settings)
    result, other = answered(asked), answered(ask(MIXTRAL, *settings, "choices.expert_exchange=exposed"))
    hidden, exposed = (evaluation_of(one)["step_time"] for one in (result, other))
    words = hidden_words(asked, design_of(result))
    assert words.startswith(f"{share} of the exchange of experts hides behind work on another microbatch: exposed, this plan takes ")
    assert f" takes {exposed:.4g} s (+{exposed / hidden - 1.0:.1%}) and another may be better; that share{beside} rests on one " in words
    assert "Megatron-LM, pull request 6311" in words
    assert joined(words) in joined(answer(result, asked))
    assert f"Of hidden exchanges: {words}." in facts_of(asked, design_of(result)).assumed
    assert hidden_words(asked, design_of(other)) == ""
    assert "hidden exchange" not in answer(other, asked)


def test_a_constant_of_the_question_rests_on_no_measured_run() -> None:
    """Whoever gives it knows why."""
    asked = ask(MIXTRAL, "efficiency.expert_overlap=0.8")
    words = hidden_words(asked, design_of(answered(asked)))
    assert words.startswith("80% of the exchange")
    assert re.search(r"that share is a constant of this question$", words)


def test_networks_with_experts_are_told_the_error_of_runs_with_experts() -> None:
    """Dense runs are named as such, and what is likely is no narrower than 19.6 %."""
    usual, older = ask(MIXTRAL), ask(MIXTRAL, "hardware=a100-80g")
    titan = ask(MIXTRAL, "stack=torchtitan", "choices.expert_exchange=exposed")
    shared = "9 public runs with experts on H100, B200, GB200, none of which was fitted to: 19.6% off on average, 38.0% at most; "
    assert measured_words(usual) == f"{shared}the 77 of megatron-core on h100-sxm, 7.5% off, are dense networks"
    assert measured_words(titan) == f"{shared}none by torchtitan; the 26 of torchtitan on h100-sxm, 12.9% off, are dense networks"
    assert measured_words(older) == f"{shared}none on a100-80g; the 16 of megatron-core on a100-80g, 9.1% off, are dense networks"
    assert measured_words(ask(MIXTRAL, "hardware=mi300x")) == f"{shared}none on mi300x"
    for asked in (usual, titan, older):
        assert likely_of(asked, {"step_time": 10.0, "likely": [9.2, 10.9]}) == pytest.approx((10 / 1.196, 10 / 0.804))
