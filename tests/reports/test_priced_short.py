"""What is told of ranks with which every known run took longer than predicted."""

import pytest

from crossopt.crossflow.plan import Plan
from crossopt.instances.catalogue import known_runs
from crossopt.instances.catalogue.known_runs import errors_like, short_of, underestimated_runs
from crossopt.reports.facts.repriced import once_text, short_text
from crossopt.solvers.codesign.answer import ChosenDesign, ChosenHardware
from tests.reports.answers import answered
from tests.reports.test_text import LLAMA_ON_H100
from tests.solvers.codesign.questions import ask

CONTEXT = (-0.315, -0.311, -0.281, -0.2, -0.193, -0.031)
"""torchtitan on 2, 4 and 8 context ranks: Llama 3 8B, and Llama 3.1 405B with tensor and pipeline ranks."""


@pytest.mark.parametrize(
    ("stack", "plans", "kind", "errors"),
    [
        ("torchtitan", "context ranks in 16 bits", "context", CONTEXT),
        ("torchtitan", "tensor, context and pipeline ranks in 16 bits", "context", CONTEXT),
        ("torchtitan", "pipeline ranks in 16 bits", "", ()),
        ("torchtitan", "tensor ranks in 8 bits", "", ()),
        ("megatron-core", "context and pipeline ranks in 8 bits", "", ()),
        ("fsdp", "context ranks in 16 bits", "", ()),
    ],
)
def test_a_kind_of_ranks_is_priced_short_where_every_run_with_it_is(stack: str, plans: str, kind: str, errors: tuple[float, ...]) -> None:
    """Pipelines without context ranks are 2.4 to 4.4 % too short alone, and of tensor ranks some runs were quicker."""
    assert short_of(stack, plans) == (kind, errors)
    none_known = known_runs.known_errors(stack, plans) is None
    assert not none_known or errors_like(stack, plans) == (errors or (-known_runs.elsewhere(stack), known_runs.elsewhere(stack)))


def test_runs_of_just_such_plans_are_told_where_all_took_longer() -> None:
    """1 / (1 - 0.181) and 1 / (1 - 0.329) are 1.22 and 1.49; other runs with tensor ranks were quicker."""
    rows = ("workload.precision=fp8", "workload.scaling=rows", "stack=torchtitan", "choices.rest=all")
    words = short_text(ask(LLAMA_ON_H100, *rows, "choices.tensor=8"), Plan(tensor=8), 1.0)
    assert words.startswith(
        "all 4 known runs of torchtitan with tensor ranks in 8 bits with scales of rows took longer than predicted, by 22% to 49%"
    )
    assert underestimated_runs("torchtitan", "tensor ranks in 8 bits") == ()
    assert short_text(ask(LLAMA_ON_H100, *rows), Plan(tensor=1), 1.0) == ""


def test_embedding_and_head_that_are_exchanged_with_every_microbatch_are_told() -> None:
    """2 x 128,256 x 4,096 + 4,096 weights over 10 GB/s: scattered in 4 bytes x 63 / 64, 413.7 ms, gathered in half. Of 16 microbatches
    15 more scatters and 31 more gathers are 12.62 s; of ZeRO-2 15 scatters, 6.206 s. Megatron is not known to, and one has nothing more."""
    settings = ("cluster.devices=64", "workload.model=llama3-8b", "workload.sequence=8192", "choices.microbatch=1")
    slow = "cluster.network=[{size: 64, shape: switch, bandwidth: 10 GB/s, latency: 0 us, setup: 0 us}]"
    for stack, batch, zero, told in (
        ("torchtitan", 1024, 3, "torchtitan gathers and scatters embedding and head with each of 16 microbatches, "),
        ("torchtitan", 64, 3, ""),
        ("fsdp", 1024, 2, "fsdp scatters gradients of embedding and head with each of 16 microbatches, "),
        ("megatron-core", 1024, 3, ""),
    ):
        asked = ask(LLAMA_ON_H100, *settings, slow, f"workload.global_batch={batch}", f"stack={stack}", "choices.rest=all")
        words = once_text(asked, ChosenDesign(ChosenHardware("h100-sxm"), Plan(data=64, zero=zero, overlap="data"), ""))
        assert words.startswith(told)
        assert bool(words) == bool(told)
        assert not told or f"up to {'12.62' if zero == 3 else '6.206'} s more (" in words


def test_one_quicker_run_or_many_runs_clear_a_kind_of_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    for words, errors in (("context ranks in 16 bits", (0.01,)), ("context and pipeline ranks in 16 bits", ())):
        seen = {"torchtitan": {**known_runs.SEEN["torchtitan"], words: errors}}
        monkeypatch.setattr(known_runs, "SEEN", seen)
        assert short_of("torchtitan", "context ranks in 16 bits") == ("", ())


def test_the_best_plan_without_such_ranks_stands_beside() -> None:
    """1 / (1 - 0.031) and 1 / (1 - 0.315) are 1.03 and 1.46; a question that has such ranks alone names none."""
    wide = ask(LLAMA_ON_H100, "stack=torchtitan", "choices.context=[1, 2]", "choices.rest=all", "choices.microbatch=1")
    best = answered(ask(LLAMA_ON_H100, "stack=torchtitan", "choices.context=1", "choices.rest=all", "choices.microbatch=1"))
    assert best.value is not None
    words = short_text(wide, Plan(context=2), 0.8 * best.value)
    assert words.startswith("all 6 known runs of torchtitan with context ranks took longer than predicted, by 3% to 46%")
    assert "without them the best is " in words
    assert words.endswith("(+25.0%): measure both before a long run")
    alone = ask(LLAMA_ON_H100, "stack=torchtitan", "choices.context=2", "choices.rest=all", "choices.microbatch=1")
    assert short_text(alone, Plan(context=2), 1.0) == short_text(wide, Plan(context=2))
    assert "without" not in short_text(wide, Plan(context=2))
    assert short_text(wide, Plan(context=1)) == ""
