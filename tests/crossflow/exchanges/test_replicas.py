"""What data-parallel ranks and pipeline stages exchange, by hand on links of round figures."""

from dataclasses import fields, replace

import numpy as np
import pytest

from crossopt.crossflow.exchanges.replicas import DataExchange, data_exchange, transfer_energy, transfer_time
from crossopt.crossflow.hardware import Cluster, Hardware, Link
from crossopt.crossflow.layout import lay_out
from crossopt.crossflow.parameters import embedding_parameters, layer_parameters, parameters
from crossopt.crossflow.plan import Plan, table
from crossopt.crossflow.transformer import parts_of, sharding, terms
from crossopt.crossflow.workload import Transformer

CLUSTER = Cluster(64, (8, 64))
GPT = Transformer("gpt", 8, 1024, 16, 4096, 32000, 2048, 64, biases=False, learned_positions=False)
LAYER, TABLE, NORM = layer_parameters(GPT), embedding_parameters(GPT), GPT.hidden
EXPERTS = replace(GPT, experts=8)
DATA = Plan(data=4)


def exchanged(plan: Plan, hardware: Hardware, model: Transformer = GPT) -> dict[str, float]:
    columns = table([plan])
    priced = data_exchange(model, sharding(model, columns), lay_out(columns, CLUSTER), hardware)
    return {field.name: float(np.asarray(getattr(priced, field.name)).item()) for field in fields(DataExchange)}


def test_without_sharing_the_gradients_are_all_reduced(plain: Hardware) -> None:
    """Four bytes a weight, 2 x 3/4 of them at 100 GB/s."""
    found = exchanged(DATA, plain)
    assert found["synchronize"] == pytest.approx(2 * 3 / 4 * 4 * parameters(GPT) / 100e9)
    assert (found["publish"], found["gather_forward"], found["gather_backward"], found["gather_energy"]) == (0, 0, 0, 0)


def test_shared_optimizer_state_means_scattered_gradients_and_gathered_weights(plain: Hardware) -> None:
    """Half the gradient exchange, and two bytes a weight after the update."""
    found = exchanged(replace(DATA, zero=1), plain)
    assert found["synchronize"] == pytest.approx(3 / 4 * 4 * parameters(GPT) / 100e9)
    assert found["publish"] == pytest.approx(3 / 4 * 2 * parameters(GPT) / 100e9)
    assert (found["gather_forward"], found["gather_backward"]) == (0, 0)


def test_shared_gradients_are_scattered_a_layer_at_a_time(plain: Hardware) -> None:
    """No device keeps them whole, so every microbatch scatters four bytes a weight of each layer; weights are gathered once a step."""
    found = exchanged(replace(DATA, zero=2), plain)
    assert (found["gather_forward"], found["gather_backward"]) == (0, pytest.approx(3 / 4 * 4 * LAYER / 100e9))
    assert found["synchronize"] == pytest.approx(3 / 4 * 4 * (TABLE + NORM) / 100e9)
    assert found["publish"] == pytest.approx(3 / 4 * 2 * parameters(GPT) / 100e9)


def test_shared_weights_are_gathered_a_layer_at_a_time(plain: Hardware) -> None:
    """Two bytes a weight forward; again backward, with four bytes of gradients scattered; embedding and norm once a step."""
    found = exchanged(replace(DATA, zero=3), plain)
    assert found["gather_forward"] == pytest.approx(3 / 4 * 2 * LAYER / 100e9)
    assert found["gather_backward"] == pytest.approx(3 / 4 * (2 + 4) * LAYER / 100e9)
    assert found["synchronize"] == pytest.approx(3 / 4 * 4 * (TABLE + NORM) / 100e9)
    assert found["publish"] == pytest.approx(3 / 4 * 2 * (TABLE + NORM) / 100e9)


def test_groups_that_share_add_up_their_parts(plain: Hardware) -> None:
    """Four of eight replicas share, of which each node of four has one group; ring inside at 100 GB/s, two nodes at 10 GB/s."""
    two = Cluster(8, (4, 8))
    for zero, summed, weights in (
        (1, parameters(GPT), parameters(GPT)),
        (2, TABLE + NORM, parameters(GPT)),
        (3, TABLE + NORM, TABLE + NORM),
    ):
        plans = table([Plan(data=8, zero=zero, shard=4)])
        found = data_exchange(GPT, sharding(GPT, plans), lay_out(plans, two), plain)
        inside, across = 3 / 4 / 100e9, 2 * 1 / 2 / 4 / 10e9
        assert float(np.asarray(found.synchronize).item()) == pytest.approx(4 * summed * (inside + across))
        assert float(np.asarray(found.publish).item()) == pytest.approx(2 * weights * inside)
        scattered = 4 * LAYER * (inside + across) if zero > 1 else 0.0
        gathered = 2 * LAYER * inside if zero > 2 else 0.0
        assert float(np.asarray(found.gather_backward).item()) == pytest.approx(scattered + gathered)
        assert float(np.asarray(found.gather_forward).item()) == pytest.approx(gathered)


@pytest.mark.parametrize("pipeline", [2, 3, 5])
def test_under_shared_weights_the_table_is_exchanged_whole_however_uneven_the_stages(plain: Hardware, pipeline: int) -> None:
    """The stage with the most weights need not be the one with the head."""
    untied = replace(GPT, tied=False)
    found = exchanged(Plan(data=4, pipeline=pipeline, zero=3), plain, untied)
    assert found["publish"] == pytest.approx(3 / 4 * 2 * (TABLE + NORM) / 100e9)


def test_the_fullest_stage_sets_the_pace(plain: Hardware) -> None:
    """Eight layers on three stages are 2, 3 and 3 with a table in front and behind it: the last but one has 3 layers alone."""
    untied = replace(GPT, tied=False)
    found = exchanged(Plan(data=4, pipeline=3, zero=1), plain, untied)
    most = max(3 * LAYER + TABLE, 3 * LAYER, 2 * LAYER + TABLE + NORM)
    assert found["publish"] == pytest.approx(3 / 4 * 2 * most / 100e9)


def test_first_and_last_stage_add_up_the_gradients_of_a_tied_table(plain: Hardware) -> None:
    """Four bytes for each of V h / t weights over the slow link, as the stages of this placement are on different nodes."""
    plan = Plan(tensor=2, data=4, pipeline=8)
    tied, untied = (exchanged(plan, plain, model)["synchronize"] for model in (GPT, replace(GPT, tied=False)))
    assert tied - untied == pytest.approx(4 * TABLE / 2 / 10e9)
    assert exchanged(DATA, plain)["synchronize"] == exchanged(DATA, plain, replace(GPT, tied=True))["synchronize"]


def test_a_tied_table_and_messages_of_stages_go_over_their_own_levels(plain: Hardware) -> None:
    """16 stages on two nodes: the ends are on different ones, each stage in the middle has a neighbour on its own."""
    columns, size = table([Plan(pipeline=16), Plan(pipeline=16, interleave=2)]), 2048 * 1024 * 2
    split, laid = sharding(GPT, columns), lay_out(columns, CLUSTER)
    for inside, beyond in ((5e9, 100e9), (100e9, 5e9)):
        wired = replace(plain, links=(Link(inside, 0.0), Link(beyond, 0.0)))
        tied, untied = (data_exchange(one, split, laid, wired).synchronize for one in (GPT, replace(GPT, tied=False)))
        assert np.ravel(tied - untied) == pytest.approx(4 * TABLE / beyond)
        parts = parts_of(GPT, wired, CLUSTER, columns, laid)
        handed = terms(GPT, wired, columns, parts).transfer
        assert np.ravel(handed) == pytest.approx([size / 2 * (1 / inside + 1 / 5e9), size / 5e9])


@pytest.mark.parametrize(("zero", "summed", "handed"), [(0, 2, 0), (1, 1, 1)])
def test_both_copies_of_a_stage_are_added_up_and_shared(plain: Hardware, zero: int, summed: int, handed: int) -> None:
    """Twice the weights over four replicas; the copies then send each other the quarter that each rank has, or half of it, and where state
    is shared half of the new weights. The optimizer of a rank has an eighth."""
    model = replace(GPT, tied=False)
    found = exchanged(Plan(data=4, pipeline=2, zero=zero, schedule="dualpipe"), plain, model)
    whole, turns = parameters(model), 2 - zero
    assert found["synchronize"] == pytest.approx((turns * 3 / 4 * 4 + summed * 4 / 8) * whole / 100e9)
    assert found["publish"] == pytest.approx(zero * (3 / 4 * 2 + handed * 2 / 8) * whole / 100e9)
    alone = exchanged(Plan(data=8, zero=zero), plain, model)
    assert found["optimizer"] == pytest.approx(alone["optimizer"])


def test_expert_weights_are_exchanged_only_among_those_who_hold_the_same(plain: Hardware) -> None:
    """Eight data ranks, experts over four: pairs of ranks all-reduce two experts a layer, all eight the rest; the pairs are on one node."""
    expert = 2 * 1024 * 4096
    shared = parameters(EXPERTS) - 8 * 8 * expert
    found = exchanged(Plan(data=8, expert=4), plain, EXPERTS)
    assert found["synchronize"] == pytest.approx((2 * 7 / 8 * 4 * shared + 2 * 1 / 2 * 4 * 8 * 2 * expert) / 100e9)


def test_shared_expert_weights_are_gathered_with_their_layer_only(plain: Hardware) -> None:
    """Two experts of a layer between the two ranks that hold them; beside the layers only embedding and norm are left for the end."""
    expert = 2 * 1024 * 4096
    found = exchanged(Plan(data=8, expert=4, zero=3), plain, EXPERTS)
    layer = layer_parameters(EXPERTS) - 8 * expert
    assert found["gather_forward"] == pytest.approx((7 / 8 * 2 * layer + 1 / 2 * 2 * 2 * expert) / 100e9)
    assert found["synchronize"] == pytest.approx(7 / 8 * 4 * (TABLE + NORM) / 100e9)


def test_context_ranks_reduce_gradients_with_the_data_ranks(plain: Hardware) -> None:
    assert exchanged(Plan(context=2, data=4), plain)["synchronize"] == pytest.approx(exchanged(Plan(data=8), plain)["synchronize"])


def test_the_optimizer_streams_its_state_of_the_weights_it_owns(plain: Hardware) -> None:
    """Gradients twice (2 x 4), state read and written (2 x 12), weights written (2): 34 bytes a weight at 1 TB/s."""
    whole = 34 * parameters(GPT) / 1e12
    assert exchanged(DATA, plain)["optimizer"] == pytest.approx(whole)
    assert exchanged(replace(DATA, zero=1), plain)["optimizer"] == pytest.approx(whole / 4)


@pytest.mark.parametrize(("zero", "times"), [(0, 1.0), (1, 2.0), (2, 1.0), (3, 1.0)])
def test_a_shared_optimizer_may_take_gradients_that_were_summed_everywhere(plain: Hardware, zero: int, times: float) -> None:
    """Under ZeRO-1 an all-reduce takes and sends twice what a reduce-scatter does; weights are published as before."""
    wired = replace(plain, links=(Link(100e9, 0.0, energy=2.0), plain.links[1]))
    plan = replace(DATA, zero=zero)
    scattered, whole = (exchanged(plan, wired, replace(GPT, scattered_gradients=flag)) for flag in (True, False))
    assert whole["synchronize"] == pytest.approx(times * scattered["synchronize"])
    assert whole["energy"] - scattered["energy"] == pytest.approx((times - 1.0) * 2 * 3 / 4 * 4 * parameters(GPT))
    assert {name for name in whole if whole[name] != scattered[name]} == ({"synchronize", "energy"} if zero == 1 else set())


@pytest.mark.parametrize(("ranks", "turns"), [(8, 8), (64, 32)])
def test_whole_matrices_are_published_by_one_rank_after_the_other(plain: Hardware, ranks: int, turns: int) -> None:
    """Of four matrices in each of eight layers 32 ranks have one at the most; a turn goes by all ranks, at the slower links' pace."""
    links = (Link(100e9, 1e-6, setup=1e-5), Link(10e9, 2e-6, setup=2e-5, ring_latency=5e-6))
    wired, plan, model = replace(plain, links=links), Plan(data=ranks, zero=1), replace(GPT, broadcasts=True, global_batch=64)
    start, step, pace = (1e-5, 1e-6, 100e9) if ranks == 8 else (2e-5, 5e-6, 8 * 10e9)
    sent = (ranks - 1) / ranks * 2 * parameters(GPT) / pace
    found = exchanged(plan, wired, model)
    assert found["publish"] == pytest.approx(turns * (start + ranks * step) + sent)
    assert {name for name, value in exchanged(plan, wired).items() if value != found[name]} == {"publish"}


def test_energy_of_the_exchanges_counts_what_each_rank_sends(plain: Hardware) -> None:
    wired = replace(plain, links=(Link(100e9, 0.0, energy=2.0), plain.links[1]))
    assert exchanged(DATA, wired)["energy"] == pytest.approx(2 * 2 * 3 / 4 * 4 * parameters(GPT))
    assert exchanged(replace(DATA, zero=1), wired)["energy"] == pytest.approx(2 * 3 / 4 * (4 + 2) * parameters(GPT))
    assert exchanged(replace(DATA, zero=2), wired)["gather_energy"] == pytest.approx(2 * 3 / 4 * 4 * LAYER)
    assert exchanged(replace(DATA, zero=3), wired)["gather_energy"] == pytest.approx(2 * 3 / 4 * (2 + 2 + 4) * LAYER)


def test_gradients_that_are_added_apart_move_bytes_in_every_microbatch(plain: Hardware) -> None:
    """18 bytes a weight of the rank for each of eight microbatches, by the bandwidth of the memory alone."""
    plan, model = Plan(data=2, zero=1), replace(GPT, global_batch=16)
    apart, together = (exchanged(plan, plain, one)["optimizer"] for one in (replace(model, gradient_traffic=18.0), model))
    assert apart - together == pytest.approx(8 * 18.0 * parameters(GPT) / float(plain.dram.bandwidth), rel=0.01)


@pytest.mark.parametrize(
    ("plan", "size"),
    [
        (Plan(pipeline=2, microbatch=3), 3 * 2048 * 1024 * 2),
        (Plan(pipeline=2, context=4), 2048 / 4 * 1024 * 2),
        (Plan(pipeline=2, tensor=4), 2048 * 1024 * 2 / 4 + 2048 * 1024 * 2 * 3 / 4),
        (Plan(pipeline=2, tensor=4, sequence_parallel=True), 2048 * 1024 * 2 / 4),
        (Plan(tensor=2), 0),
    ],
)
def test_stages_hand_on_what_a_rank_holds_of_the_activations(plain: Hardware, plan: Plan, size: float) -> None:
    """Tensor ranks send a part each, and gather it again unless they hold parts of the sequence; nothing in a pipeline of one."""
    wired = replace(plain, links=(Link(100e9, 0.0, energy=2.0), plain.links[1]))
    columns = table([plan])
    split, laid = sharding(GPT, columns), lay_out(columns, CLUSTER)
    assert float(np.asarray(transfer_time(GPT, split, laid, wired.links)).item()) == pytest.approx(size / 100e9)
    assert float(np.asarray(transfer_energy(GPT, split, laid, wired.links)).item()) == pytest.approx(2 * size)


@pytest.mark.parametrize(
    ("plan", "parts"), [(Plan(pipeline=2, tensor=4), 1), (Plan(pipeline=2, tensor=4, sequence_parallel=True), 4), (Plan(tensor=2), 0)]
)
def test_whole_messages_are_sent_by_each_tensor_rank_and_never_gathered(plain: Hardware, plan: Plan, parts: int) -> None:
    """But for ranks that hold parts of the sequence, which have nothing else to send."""
    size, model = (2048 * 1024 * 2 / parts if parts else 0.0), replace(GPT, whole_messages=True)
    wired = replace(plain, links=(Link(100e9, 0.0, energy=2.0), plain.links[1]))
    columns = table([plan])
    split, laid = sharding(model, columns), lay_out(columns, CLUSTER)
    assert float(np.asarray(transfer_time(model, split, laid, wired.links)).item()) == pytest.approx(size / 100e9)
    assert float(np.asarray(transfer_energy(model, split, laid, wired.links)).item()) == pytest.approx(2 * size)
