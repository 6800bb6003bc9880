"""Exchanges of layers whose experts are folded, and exchanges that go on behind products."""

from dataclasses import replace

import pytest

from crossopt.crossflow.hardware import Hardware, Link
from crossopt.crossflow.layer import backward_pass, forward_pass
from crossopt.crossflow.plan import Plan
from crossopt.crossflow.projections import named_projections, projections
from crossopt.crossflow.roofline import product_cost
from crossopt.crossflow.workload import Transformer
from tests.crossflow.test_layer import EXPERTS, GPT, GROUPED, group, number

FOLDED = Plan(tensor=4, data=2, expert=8, expert_tensor=1, sequence_parallel=True)
"""Eight ranks, four of which share attention, with one expert each."""


def test_folded_experts_do_the_same_work_in_fewer_and_larger_products() -> None:
    """2,048 tokens of each of two samples, each to two of eight experts: 1,024 for the one expert of a rank, which has all 4,096 columns.
    Four ranks that share each of four experts have 1,024 tokens of each, on a quarter of the columns."""
    folded, usual = (dict(named_projections(EXPERTS, group(plan))) for plan in (FOLDED, replace(FOLDED, expert=2, expert_tensor=0)))
    inner, shared = folded["inner product"], usual["inner product"]
    assert [number(part) for part in (inner.rows, inner.depth, inner.columns, inner.count)] == [1024.0, 1024.0, 4096.0, 1.0]
    assert [number(part) for part in (shared.rows, shared.depth, shared.columns, shared.count)] == [1024.0, 1024.0, 1024.0, 4.0]
    assert number(inner.flops) == number(shared.flops)
    assert folded["queries, keys, values"] == usual["queries, keys, values"]


def test_tokens_of_folded_experts_are_sent_once_and_gathered_by_those_that_share_one(arithmetic: Hardware) -> None:
    """A rank has 512 tokens of 2 KiB and sends two copies of each, seven eighths of them away, there and back; attention alone is gathered
    over tensor ranks. Ranks that share an expert gather each other's copies."""
    device = replace(arithmetic, links=(Link(1e9, 0.0), Link(1e9, 0.0)))
    copies = 2 * 512 * 2048
    whole = forward_pass(EXPERTS, group(FOLDED), device)
    assert number(whole.expert) == pytest.approx(2 * copies * 7 / 8 / 1e9)
    usual = forward_pass(EXPERTS, group(replace(FOLDED, expert=2, expert_tensor=0)), device)
    assert number(usual.tensor) == pytest.approx(2 * number(whole.tensor))
    split = forward_pass(EXPERTS, group(replace(FOLDED, expert=4, expert_tensor=2)), device)
    assert number(split.expert) == pytest.approx(2 * (copies * 3 / 4 + 2 * copies / 2) / 1e9)


def test_shared_experts_are_gathered_as_before(arithmetic: Hardware) -> None:
    model = replace(EXPERTS, shared_experts=1)
    folded, usual = (forward_pass(model, group(plan), arithmetic) for plan in (FOLDED, replace(FOLDED, expert=2, expert_tensor=0)))
    assert number(folded.tensor) == number(usual.tensor)


HIDING = Plan(tensor=4, sequence_parallel=True, tensor_exchange="hidden")


@pytest.mark.parametrize("model", [GPT, GROUPED, replace(GPT, parallel_blocks=True, norms=1)])
@pytest.mark.parametrize("backward", [False, True])
def test_three_quarters_of_an_exchange_of_four_ranks_go_on_behind_products(
    model: Transformer, backward: bool, arithmetic: Hardware
) -> None:
    """P + X becomes max(P + lost 3/4 X, 3/4 X) + 1/4 X, on fast links and on slow ones, which products do not fill; half as much where half
    of that is reached."""
    side = backward_pass if backward else forward_pass
    for bandwidth in (1e12, 1e7):
        links = (Link(bandwidth, 0.0), Link(bandwidth, 0.0))
        device = replace(arithmetic, links=links, efficiency=replace(arithmetic.efficiency, overlap_loss=0.2, tensor_overlap=1.0))
        plain, hidden = (side(model, group(plan), device) for plan in (replace(HIDING, tensor_exchange="exposed"), HIDING))
        products, exchanged = number(plain.work.time), number(plain.tensor)
        assert number(hidden.tensor) == pytest.approx(exchanged / 4)
        assert number(hidden.work.time) == pytest.approx(max(products + 0.2 * 0.75 * exchanged, 0.75 * exchanged))
        assert (number(hidden.core.time), number(hidden.energy)) == (number(plain.core.time), number(plain.energy))
        half = side(model, group(HIDING), replace(device, efficiency=replace(device.efficiency, tensor_overlap=0.5)))
        assert number(half.tensor) == pytest.approx(exchanged * 5 / 8)


def test_hidden_exchanges_are_behind_either_part_of_a_backward_pass_that_is_split(arithmetic: Hardware) -> None:
    """All of them behind the gradients of inputs; those of weights take what they took."""
    device = replace(arithmetic, efficiency=replace(arithmetic.efficiency, overlap_loss=0.2, tensor_overlap=1.0))
    plain, hidden = (backward_pass(GPT, group(plan), device) for plan in (replace(HIDING, tensor_exchange="exposed"), HIDING))
    behind = 0.75 * number(plain.tensor)
    assert number(hidden.rest.time) == pytest.approx(max(number(plain.rest.time) + 0.2 * behind, behind))
    assert number(hidden.weights.time) == number(plain.weights.time)


def test_where_there_are_experts_only_attention_hides_its_exchange(arithmetic: Hardware) -> None:
    """One of two exchanges, behind two of four products and the router's."""
    plan = replace(HIDING, data=2, expert=2)
    arithmetic = replace(arithmetic, efficiency=replace(arithmetic.efficiency, tensor_overlap=1.0))
    plain, hidden = (forward_pass(EXPERTS, group(one), arithmetic) for one in (replace(plan, tensor_exchange="exposed"), plan))
    one = number(plain.tensor) / 2
    assert number(hidden.tensor) == pytest.approx(one + one / 4)
    lost = number(arithmetic.efficiency.overlap_loss)
    attention = sum(number(product_cost(product, 2.0, arithmetic).time) for product in projections(EXPERTS, group(plan))[:2])
    others = number(plain.work.time) - attention
    assert number(hidden.work.time) == pytest.approx(others + max(attention + lost * 0.75 * one, 0.75 * one))
