"""What an answer says of networks with experts: what hiding their exchange is worth, and how far the model is off on such runs."""

import re
from dataclasses import replace

import pytest

from crossopt.crossflow.plan import Plan
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.known_errors import likely_of, mean_error
from crossopt.reports.facts.repriced import doubt_text, hidden_text, measured_text, runs_text
from tests.reports.answers import answer, answered, design_of, evaluation_of
from tests.solvers.codesign.questions import TINY_FREE, ask

MIXTRAL = """
kind: codesign
workload: {model: mixtral-8x7b, global_batch: 256, sequence: 4096, capacity_factor: 1.1}
cluster: {devices: 64}
hardware: h100-sxm
choices: {pipeline: 2, expert: 8, interleave: 4, zero: 1, overlap: both, expert_exchange: [exposed, hidden]}
"""


def joined(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(("tensor", "share", "beside"), [(1, "40%", ""), (2, "20%", ", which is less beside tensor or context ranks,")])
def test_an_answer_says_what_the_plan_costs_with_its_exchange_of_experts_exposed(tensor: int, share: str, beside: str) -> None:
    """The same figure as the question with the exchange exposed, which was the only other design."""
    settings = (f"choices.tensor={tensor}", f"choices.sequence_parallel={str(tensor > 1).lower()}")
    asked = ask(MIXTRAL, *settings)
    result, other = answered(asked), answered(ask(MIXTRAL, *settings, "choices.expert_exchange=exposed"))
    hidden, exposed = (evaluation_of(one).step_time for one in (result, other))
    words = hidden_text(asked, design_of(result))
    assert words.startswith(f"{share} of the exchange of experts hides behind work on another microbatch: exposed, this plan takes ")
    assert f" takes {exposed:.4g} s (+{exposed / hidden - 1.0:.1%}) and another may be better; that share{beside} rests on one " in words
    assert "Megatron-LM, pull request 6311" in words
    assert joined(words) in joined(answer(result, asked))
    assert hidden_text(asked, design_of(other)) == ""
    assert "hidden exchange" not in answer(other, asked)


def test_a_constant_of_the_question_rests_on_no_measured_run() -> None:
    """Whoever gives it knows why."""
    asked = ask(MIXTRAL, "efficiency.expert_overlap=0.8")
    words = hidden_text(asked, design_of(answered(asked)))
    assert words.startswith("80% of the exchange")
    assert re.search(r"that share is a constant of this question$", words)


def test_networks_with_experts_are_told_the_error_of_runs_with_experts() -> None:
    """Dense runs are named as such, and what is likely is no narrower than 19.6 %."""
    usual, older = ask(MIXTRAL), ask(MIXTRAL, "hardware=a100-80g")
    titan = ask(MIXTRAL, "stack=torchtitan", "choices.expert_exchange=exposed")
    shared = "21 public runs with experts on H100, B200, GB200, none of which was fitted to: 19.6% off on average, 40.9% at most; "
    assert measured_text(usual, None) == f"{shared}the 77 of megatron-core on h100-sxm, 6.3% off, are dense networks"
    assert measured_text(titan, None) == f"{shared}none by torchtitan; the 24 of torchtitan on h100-sxm, 10.4% off, are dense networks"
    assert measured_text(older, None) == f"{shared}none on a100-80g; the 16 of megatron-core on a100-80g, 7.8% off, are dense networks"
    assert measured_text(ask(MIXTRAL, "hardware=mi300x"), None) == f"{shared}none on mi300x"
    for asked in (usual, titan, older):
        assert likely_of(asked, 10.0, (9.2, 10.9), Plan()) == pytest.approx((10 / 1.196, 10 / 0.804))


def test_a_free_chip_is_off_by_no_less_than_constants_that_were_taken_over() -> None:
    """By 17.7 %, however little the sets of constants differ, as where its L2 limits; by the model's own constants nothing is likely."""
    free = ask(TINY_FREE)
    for likely, wider in (((10.0, 10.0), (10 / 1.177, 10 / 0.823)), ((8.0, 13.0), (8.0, 13.0)), ((9.9, 13.0), (10 / 1.177, 13.0))):
        assert likely_of(free, 10.0, likely, Plan()) == pytest.approx(wider, rel=1e-3)
    ideal = ask(TINY_FREE, "technology={base: accelerator-7nm, constants: ideal}")
    assert likely_of(ideal, 10.0, (10.0, 10.0), Plan()) == (10.0, 10.0)


def test_what_is_likely_covers_the_runs_of_the_very_network_or_of_its_family() -> None:
    """Both runs of GPT-OSS on H100 took longer than predicted, one by 1 / 0.703; on H200 those of all devices count, one by 1 / 0.672."""
    asked = ask(MIXTRAL.replace("mixtral-8x7b", "gpt-oss-120b"))
    words = "of gpt-oss-120b on H100 2 are known, for which 29.7% too little to 23.6% too little is predicted"
    assert measured_text(asked, None).endswith(words)
    priced = (10.0, (9.2, 10.9))
    assert likely_of(asked, *priced, Plan()) == pytest.approx((10 / 1.2665, 10 / 0.703))
    assert mean_error(asked) == pytest.approx(0.2665)
    other = ask(MIXTRAL.replace("mixtral-8x7b", "gpt-oss-120b"), "hardware=h200")
    assert "of GPT-OSS 4 are known, for which 32.8% too little to 23.6% too little" in measured_text(other, None)
    assert likely_of(other, *priced, Plan())[1] == pytest.approx(10 / 0.672)


def test_answers_say_whether_ranking_was_tested_on_their_device() -> None:
    usual, older = ask(MIXTRAL), ask(MIXTRAL, "hardware=a100-80g")
    taus = "Kendall's tau 0.87 for 125 questions on one node, 0.59 for 20 on several"
    untested = f"ranking of plans was not tested on this device: only A100 has questions with three measured plans ({taus})"
    assert runs_text(usual, None) == f"{measured_text(usual, None)}; {untested}"
    assert runs_text(older, None) == f"{measured_text(older, None)}; plans were ranked against measured ones with {taus}"
    assert joined(untested) in joined(answer(answered(usual), usual))


def test_the_uncertainty_is_that_of_the_network_whatever_its_file_is_called() -> None:
    asked = ask(MIXTRAL.replace("mixtral-8x7b", "gpt-oss-120b"))
    assert isinstance(asked.workload, Transformer)
    other = replace(asked, workload=replace(asked.workload, name="config"))
    priced = (10.0, (9.2, 10.9))
    assert likely_of(other, *priced, Plan()) == likely_of(asked, *priced, Plan())
    assert mean_error(other) == mean_error(asked)
    assert measured_text(other, None) == measured_text(asked, None)


def test_an_exchange_of_tensor_ranks_hidden_between_nodes_is_told_to_be_launched_by_none() -> None:
    """Sixteen ranks on nodes of eight; of eight nothing is told. Exposed is the other question's only design."""
    dense = MIXTRAL.partition("choices:")[0].replace("mixtral-8x7b", "gpt3-175b").replace(", capacity_factor: 1.1", "")
    plan = "choices={tensor: 16, pipeline: 4, sequence_parallel: true, zero: 1, tensor_exchange: hidden}"
    wide, near, open_ = (
        ask(dense, plan, *more) for more in ((), ("choices.tensor=8", "choices.pipeline=8"), ("choices.tensor_exchange=exposed",))
    )
    result, exposed = answered(wide), answered(open_)
    assert result.value is not None
    assert exposed.value is not None
    words = hidden_text(wide, design_of(result))
    assert words.startswith("no stack that is known hides an exchange of tensor ranks beyond the links of a node, as it is here: exposed, ")
    assert f"this plan takes {exposed.value:.4g} s (+{exposed.value / result.value - 1.0:.1%})" in words
    assert joined(words) in joined(answer(result, wide))
    assert hidden_text(near, design_of(answered(near))) == hidden_text(open_, design_of(exposed)) == ""


def test_runs_that_share_optimizers_alone_say_little_of_plans_that_share_weights() -> None:
    assert "of Megatron-FSDP two runs with ZeRO-3 are known" in measured_text(ask(MIXTRAL), Plan(zero=3))
    assert measured_text(ask(MIXTRAL), Plan(zero=3)).endswith("run test steps of this plan and of the best one with ZeRO-1 first")
    dense = MIXTRAL.partition("choices:")[0].replace("mixtral-8x7b", "llama3-8b").replace(", capacity_factor: 1.1", "")
    assert "issue 2772" not in measured_text(ask(dense), Plan(zero=3))
    assert "Megatron-FSDP" not in measured_text(ask(MIXTRAL), Plan(zero=1))
    assert "Megatron-FSDP" not in measured_text(ask(MIXTRAL, "stack=torchtitan", "choices.expert_exchange=exposed"), Plan(zero=3))


def test_gains_below_the_error_of_measured_runs_are_told_as_no_reason_to_change() -> None:
    assert doubt_text(0.188, 0.18) == (
        "that is less than the 18.8% by which the model is off on measured runs: by itself no reason to leave this plan"
    )
    assert doubt_text(0.188, 0.19) == doubt_text(0.188, 0.0) == doubt_text(None, 0.1) == ""
    assert mean_error(ask(MIXTRAL, "objective=energy_per_token")) is None
    assert mean_error(ask(MIXTRAL)) == 0.196


def test_a_network_that_no_setting_of_the_stack_says_is_told_with_the_answer() -> None:
    """Gemma 2 has four norms a layer and caps its scores, for which Megatron-LM has no arguments."""
    gemma = (
        MIXTRAL.replace("mixtral-8x7b", "gemma-2-27b")
        .replace(", capacity_factor: 1.1", "")
        .replace("pipeline: 2, expert: 8, interleave: 4", "tensor: 8")
    )
    asked = ask(gemma, "stack=megatron-core", "choices.overlap=data", "choices.expert_exchange=exposed")
    told = joined(answer(answered(asked), asked))
    assert (
        "no setting of megatron-core says that scores and logits are bent by tanh, and results are normed, gates are of GELU's tanh form: "
        in told
    )
    free = ask(gemma, "choices.overlap=data", "choices.expert_exchange=exposed")
    said = ask(gemma, "stack=megatron-core", "choices.overlap=data", "choices.expert_exchange=exposed", "workload.attention=flash")
    assert [getattr(one.workload, "attention", None) for one in (asked, free, said)] == ["unfused", "flash", "flash"]
    assert "not launched" not in answer(answered(free), free)
