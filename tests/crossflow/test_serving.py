"""Prices of serving: steps, workers and their memory, by hand and by what may never happen."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.kernels.fitted import (
    FORMATS,
    CollectiveConstants,
    ExpertCall,
    ExpertConstants,
    ProductCall,
    expert_time,
    product_time,
)
from crossopt.crossflow.serving.flight import greatest_rate, loads_of, most_within, share_beyond, token_time_beyond
from crossopt.crossflow.serving.steps import (
    Engine,
    Kernels,
    Speculation,
    Split,
    Step,
    active_experts,
    experts_time,
    kv_heads,
    layer_products,
    layer_time,
    step_time,
)
from crossopt.crossflow.serving.workers import (
    Bytes,
    Requests,
    Worker,
    WorkerTimes,
    cache_of_token,
    contexts,
    decode_rate,
    first_token_time,
    output_time,
    streaming_floor,
    together_rate,
    transfer_time,
    weights_on_device,
    worker_memory,
    worker_times,
)
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.engines import ENGINES, EngineName, constants_of_engine, lenders, serving_kernels, stored_in
from crossopt.instances.catalogue.registry import build_device, device, model, names

ALL = Requests(1024, 256)
FP8 = Bytes(1.0, 2.0)


def network(name: str) -> Transformer:
    found = model(name).transformer
    assert found is not None
    return found


def hardware(name: str = "h100-sxm") -> Hardware:
    return build_device(device(name), name, "bf16", 1)


def kernels(name: str = "h100-sxm") -> Kernels:
    return serving_kernels(name, "fp8", "bf16", "vllm")[0]


def split(tensor: float, pipeline: float = 1.0, expert: float = 1.0) -> Split:
    return Split(np.float64(tensor), np.float64(pipeline), np.float64(expert))


def priced(tensor: float, batch: float, pipeline: float = 1.0, name: str = "llama3-70b", gpu: Hardware | None = None) -> WorkerTimes:
    worker = Worker(split(tensor, pipeline), np.float64(batch), 8192.0)
    return worker_times(network(name), kernels(), ENGINES["vllm"].constants, worker, ALL, gpu or hardware())


def test_cache_and_weights_of_llama_by_hand() -> None:
    llama = network("llama3-70b")
    assert cache_of_token(llama, split(1), FP8) == 2 * 80 * 8 * 128 * 2
    assert cache_of_token(llama, split(8), FP8) == cache_of_token(llama, split(1), FP8) / 8
    layer = 8192 * 8192 * 2 + 8192 * 1024 * 2 + 3 * 8192 * 28672 + 2 * 8192
    assert weights_on_device(llama, split(1), FP8) == pytest.approx(80 * layer + 2 * 2 * 128256 * 8192, rel=1e-12)
    halves = weights_on_device(llama, split(1, 2), FP8)
    assert halves == pytest.approx(40 * layer + 2 * 128256 * 8192, rel=1e-12)


def test_ranks_beyond_the_heads_of_keys_hold_copies() -> None:
    llama = network("llama3-70b")
    assert kv_heads(llama, 16.0) == 1.0
    assert cache_of_token(llama, split(16), FP8) == cache_of_token(llama, split(8), FP8)
    assert 16 * weights_on_device(llama, split(16), FP8) > 8 * weights_on_device(llama, split(8), FP8)


def test_latents_are_cached_once_for_all_heads() -> None:
    deepseek = network("deepseek-v3")
    assert cache_of_token(deepseek, split(1), FP8) == cache_of_token(deepseek, split(8), FP8) == 61 * (512 + 64) * 2


def test_uneven_stages_count_by_the_fullest() -> None:
    llama = replace(network("llama3-70b"), layers=7)
    assert cache_of_token(llama, split(1, 2), FP8) == 4 / 7 * cache_of_token(llama, split(1), FP8)


def test_products_of_a_layer_have_the_weights_of_the_layer() -> None:
    llama = network("llama3-70b")
    values = sum(call.columns * call.depth for call, _ in layer_products(llama, kernels(), split(1), np.float64(1)))
    assert values == 8192 * 8192 * 2 + 8192 * 1024 * 2 + 3 * 8192 * 28672


def test_tokens_take_few_experts_of_many() -> None:
    mixtral = network("mixtral-8x7b")
    assert active_experts(mixtral, np.float64(1)) == pytest.approx(2.0)
    assert active_experts(mixtral, np.float64(2)) == pytest.approx(8 * (1 - 0.75**2))
    assert active_experts(mixtral, np.float64(1000)) == pytest.approx(8.0)


def test_experts_by_hand() -> None:
    """Weights of active experts are read, tokens computed in padded tiles, and copies of them moved; shared experts are further ones."""
    constants = ExpertConstants(launch=1.0e-5, matrix=0.5, pad=16.0, stream=0.8, passes=2.0, expert=1.0e-7)
    call, device = ExpertCall(64.0, 4096.0, 768.0, 8.0, 4.0, 100.0, 3.0, FORMATS["fp8"]), hardware()
    arithmetic = (64 * 8 / 4 + 25 * 16) * 3 * 4096 * 768 * 2 / (float(device.throughput) * 2 * 0.5)
    weights = 25 * 3 * 4096 * 768 / (float(device.dram.bandwidth) * 0.8)
    moved = 2.0 * 128 * (2 * 4096 + 3 * 768) * 2 / float(device.dram.bandwidth)
    assert expert_time(call, constants, device) == pytest.approx(1.0e-5 + np.hypot(arithmetic, weights) + 25 * 1.0e-7 + moved)
    deepseek, rows = model("deepseek-v3").transformer, np.float64(64)
    assert deepseek is not None
    alone, shared = replace(deepseek, shared_experts=0), replace(deepseek, shared_experts=2)
    times = [float(experts_time(own, kernels(), split(8), rows, rows, device)) for own in (alone, deepseek, shared)]
    assert times[0] < times[1] < times[2] < 1.1 * times[0]
    whole = [float(experts_time(deepseek, kernels(), Split(8.0, 1.0, expert), rows, rows, device)) for expert in (1.0, 8.0)]
    assert whole[0] == pytest.approx(whole[1], rel=0.3)


def test_a_step_on_one_device_is_its_kernels_and_the_host() -> None:
    """One layer without attention costs leaves products, moves and head: the host's part is exact, the products are there."""
    llama, own = replace(network("llama3-70b"), layers=1), Engine(gap=0.0, host=1.0, request=0.5)
    step = Step(np.float64(4), np.float64(100))
    found = step_time(llama, kernels(), own, split(1), step, hardware())
    assert found > 1.0 + 4 * 0.5
    calls = [product_time(call, replace(used, launch=0.0), hardware()) for call, used in layer_products(llama, kernels(), split(1), 4.0)]
    head = ProductCall(np.float64(4), 128256.0, 8192.0, kernels().wide_form)
    whole = 3.0 + sum(calls) + product_time(head, replace(kernels().wide, launch=0.0), hardware())
    assert whole < found < whole + 1.0e-4


def test_no_step_is_below_the_stream_of_its_weights() -> None:
    for name in ("llama3-8b", "llama3-70b", "qwen3-32b", "mixtral-8x7b", "deepseek-v3"):
        for tensor in (1.0, 2.0, 4.0, 8.0):
            floor = streaming_floor(network(name), split(tensor), FP8, hardware())
            assert priced(tensor, 1, name=name).decode > floor


def test_times_fall_with_bandwidth_of_memory_and_links() -> None:
    for tensor in (1.0, 4.0, 8.0):
        for batch in (1.0, 16.0, 200.0):
            before = priced(tensor, batch)
            memory = replace(hardware(), dram=replace(hardware().dram, bandwidth=1.1 * hardware().dram.bandwidth))
            link = hardware().links[0]
            links = replace(hardware(), links=(replace(link, bandwidth=1.1 * link.bandwidth),))
            for faster in (memory, links):
                after = priced(tensor, batch, gpu=faster)
                assert after.decode <= before.decode
                assert after.prefill <= before.prefill
                assert output_time(after, ALL) <= output_time(before, ALL)


def test_same_bits_alone_and_in_a_block() -> None:
    tensor, pipeline, batch = (column.ravel() for column in np.meshgrid([1.0, 2.0, 4.0, 8.0], [1.0, 2.0], [1.0, 3.0, 64.0, 500.0]))
    for name in ("llama3-70b", "qwen3-235b-a22b", "deepseek-v3"):
        worker = Worker(Split(tensor, pipeline), batch, 512.0)
        block = worker_times(network(name), kernels(), ENGINES["vllm"].constants, worker, ALL, hardware())
        for place in range(0, len(batch), 3):
            one = slice(place, place + 1)
            single = Worker(Split(tensor[one], pipeline[one]), batch[one], 512.0)
            alone = worker_times(network(name), kernels(), ENGINES["vllm"].constants, single, ALL, hardware())
            for field in ("prefill", "slowest_stage", "decode", "mixed", "piece", "load"):
                assert getattr(alone, field)[0] == getattr(block, field)[place]


def test_slots_and_times_give_the_rate() -> None:
    times = WorkerTimes(*(np.float64(value) for value in (0.2, 0.2, 0.01, 0.16, 0.2, 0.4)), pieces=1)
    batch, asked = np.float64(5), Requests(100, 11)
    per_token = 0.6 * 0.01 + 0.4 * 0.16
    assert output_time(times, asked) == pytest.approx(per_token)
    assert output_time(replace(times, load=np.float64(1.5)), asked) == pytest.approx(0.16 + 0.5 * 0.2)
    assert together_rate(times, batch, asked) == pytest.approx(5 / (0.2 + 10 * per_token))
    assert decode_rate(times, batch, asked) == pytest.approx(5 / (10 * 0.01))
    assert first_token_time(times, batch, Engine(0.0, 0.0, 0.0, first=2.0, wait=0.1)) == pytest.approx(0.4 + 0.1 * 4 * 0.2 + 0.005)


def test_others_bring_their_prompts() -> None:
    assert priced(4, 8).load == 7 / 255
    assert priced(4, 1).load == 0.0


def test_requests_of_one_token_are_all_prefill() -> None:
    times, asked = priced(4, 8), Requests(1024, 1)
    assert output_time(times, asked) == 0.0
    assert together_rate(times, np.float64(8), asked) == 1.0 / times.slowest_stage


def test_requests_in_flight_by_hand() -> None:
    """Servers that do not share: Erlang's formula. One that all share: each number is rho times as likely as the one before."""
    erlang, shared = loads_of([(1.0, 2.0, 0.1), (3.0, 6.0, 0.3)]), loads_of([(1.0, 2.0, 0.1), (4.0, 2.0, 0.4)])
    terms = [1.0, 2.0, 2.0, 4.0]  # 4 requests a second keep 2 of 3 servers busy: the last is 4 / 3, times 3 with those that wait
    assert share_beyond(erlang, 2, 1, 4.0) == pytest.approx(terms[3] / sum(terms))
    assert share_beyond(erlang, 0, 1, 4.0) == pytest.approx(1.0 - 1.0 / sum(terms))
    assert [share_beyond(shared, number, 1, 1.0) for number in range(4)] == pytest.approx([0.5, 0.25, 0.125, 0.0625])
    assert share_beyond(shared, 1, 3, 1.0) == pytest.approx(1 / 64)
    assert [share_beyond(loads, 2, 1, 6.0) for loads in (erlang, shared)] == [1.0, 1.0]
    assert (most_within(erlang, 0.2), most_within(erlang, 0.19), most_within(erlang, 0.09)) == (2, 1, 0)
    assert [token_time_beyond(shared, 1, 1.0, share) for share in (0.5, 0.25, 0.01)] == pytest.approx([0.1, 0.2, 0.4])
    assert greatest_rate(erlang.rates[None], erlang.tokens[None], 0.2)[0] == pytest.approx(4.0)


def test_more_requests_a_second_and_longer_steps_never_lower_the_share() -> None:
    random = np.random.default_rng(3)
    for _ in range(100):
        numbers = np.cumsum(random.integers(1, 9, 5)).astype(float)
        rates, slower = random.uniform(1.0, 9.0, 5), random.uniform(0.5, 1.0, 5)
        quick, slow = (loads_of([*zip(numbers, own, rates, strict=True)]) for own in (rates, rates * slower))
        number, rate, copies = int(random.integers(0, quick.slots)), random.uniform(0.1, 9.0), int(random.integers(1, 9))
        base = share_beyond(quick, number, copies, rate)
        assert share_beyond(slow, number, copies, rate) >= base * (1.0 - 1e-12)
        assert share_beyond(quick, number, copies, rate * 1.1) >= base * (1.0 - 1e-12)
        assert share_beyond(quick, max(number - 1, 0), copies, rate) >= base


def test_contexts_are_within_a_request() -> None:
    found = list(contexts(Requests(1000, 81)))
    assert found[0] == 1000 + 1 + 80 / 16
    assert sum(found) / len(found) == 1000 + 1 + 40


def test_memory_of_a_worker_by_hand() -> None:
    worker = Worker(split(4), np.float64(32), 8192.0)
    memory = worker_memory(network("llama3-70b"), worker, ALL, FP8)
    assert memory.cache == 32 * 1280 * 2 * 80 * 2 * 128 * 2
    assert memory.total == memory.weights + memory.cache + memory.working
    more = worker_memory(network("llama3-70b"), Worker(split(4), np.float64(33), 8192.0), ALL, FP8)
    assert more.total > memory.total


def test_the_cache_of_a_prompt_passes_once() -> None:
    assert transfer_time(network("llama3-70b"), Requests(4000, 10), FP8, 1e9) == pytest.approx(4000 * 327_680 / 1e9)


@pytest.mark.parametrize("engine", ["vllm", "trtllm"])
@pytest.mark.parametrize("gpu", ["b200", "b300", "gb200-nvl72"])
def test_dense_models_decode_faster_in_4_bits_than_in_8(gpu: str, engine: EngineName) -> None:
    """Half the bytes, and steps of the depth that take no longer: public runs have more tokens a second at every load."""
    priced = [serving_kernels(gpu, form, "fp8", engine)[0] for form in ("fp4", "fp8")]
    for tensor, sequences in product((1, 2, 4), (1.0, 16.0, 64.0, 256.0)):
        step = Step(sequences, 1500.0)
        shape, constants = network("llama3-70b"), ENGINES[engine].constants
        four, eight = (step_time(shape, own, constants, split(tensor), step, hardware(gpu)) for own in priced)
        assert four < eight


def test_attention_is_in_16_bits_where_experts_alone_are_in_4() -> None:
    """The layer of Qwen3 30B A3B by hand: experts in 4.5 bits, all else in 16 bits; dense models are in 4.5 bits everywhere."""
    experts, attention = 128 * 3 * 2048 * 768, 2048 * (32 + 2 * 4) * 128 + 32 * 128 * 2048
    outside = attention + 2 * 128 + 2 * 2048 + 2048 * 128  # norms of queries and keys, two norms, and the router
    held = weights_on_device(network("qwen3-30b-a3b"), split(1), stored_in("fp4", "fp8"))
    assert float(held) == pytest.approx(48 * (experts * 0.5625 + outside * 2.0) + 2 * 151_936 * 2048 * 2.0)
    found = serving_kernels("b200", "fp4", "fp8", "vllm")[0]
    for name, form in (("qwen3-30b-a3b", found.wide_form), ("qwen3-32b", found.form)):
        assert {call.format for call, _ in layer_products(network(name), found, split(1), 1.0)} == {form}


def test_every_device_prices_every_format_or_borrows() -> None:
    for gpu in names("hardware"):
        for weights in ("bf16", "fp8", "fp8-block", "fp4", "int8", "int4"):
            found, lent = serving_kernels(gpu, weights, "fp8", "trtllm")
            assert found.form.weight_bytes <= 2.0
            assert all(" by " in sentence for sentence in lent)
    assert serving_kernels("h100-sxm", "fp8", "bf16", "vllm")[1] == ()
    assert serving_kernels("h100-sxm", "int4", "bf16", "vllm")[1] == ("products in int4 by a100-80g",)
    assert next(lenders("a100-40g")) == "a100-40g"


def test_versions_have_their_own_constants() -> None:
    assert constants_of_engine("trtllm", "1.0.0rc3") != constants_of_engine("trtllm", "1.2.0")
    assert constants_of_engine("trtllm") == constants_of_engine("trtllm", "1.2.0") == constants_of_engine("trtllm", "10.0")


def test_groups_with_attention_of_their_own_share_latents_and_hold_their_weights_of_attention() -> None:
    """Eight groups of one rank: an eighth of the cache of each rank, eight times its attention, and the same experts."""
    deepseek, one = network("deepseek-v3"), np.float64(8.0)
    shared, own = (Split(one, np.float64(1.0), one, np.float64(data)) for data in (1.0, 8.0))
    memory = [worker_memory(deepseek, Worker(part, np.float64(64.0), 8192.0), ALL, FP8) for part in (shared, own)]
    assert memory[1].cache == memory[0].cache / 8
    experts = 58 * 256 * 3 * 7168 * 2048
    assert 1.0 < (8 * memory[1].weights - experts) / (8 * memory[0].weights - experts) < 8.0
    assert cache_of_token(deepseek, own, FP8) == cache_of_token(deepseek, shared, FP8)
    llama = network("llama3-70b")
    assert cache_of_token(llama, own, FP8) == 8 * cache_of_token(llama, shared, FP8)


def test_attention_of_its_own_pays_for_latents_of_many_sequences() -> None:
    deepseek, eight = network("deepseek-v3"), np.float64(8.0)
    for batch, better in ((8.0, False), (512.0, True)):
        times = []
        for data in (1.0, 8.0):
            worker = Worker(Split(eight, np.float64(1.0), eight, np.float64(data)), np.float64(batch), 8192.0)
            times.append(worker_times(deepseek, kernels(), ENGINES["vllm"].constants, worker, Requests(4096, 256), hardware()).decode)
        assert (times[1] < times[0]) == better


def test_exchanges_of_groups_last_as_long_as_those_that_receive_most() -> None:
    """Two ranks with 10 sequences each and a prompt of 100 tokens: in one group, the other's rank receives 110 rows; in both, each does."""
    qwen, known, gpu = network("qwen3-30b-a3b"), kernels(), hardware()
    two, value = Split(np.float64(2.0), np.float64(1.0), np.float64(2.0), np.float64(2.0)), 2.0 * qwen.hidden
    for groups, received in ((1.0, 110.0), (2.0, 110.0), (0.0, 10.0)):
        step = Step(np.float64(10.0), np.float64(500.0), 100.0 if groups else 0.0, 1.0, 100.0, groups=groups or np.inf)
        times = []
        for share in (1.0, 2.0):
            gather = CollectiveConstants(0.0, 0.0, share, 0.0, share, 0.0, 1.0)
            times.append(layer_time(qwen, replace(known, all_gather=gather), ENGINES["vllm"].constants, two, step, gpu))
        assert times[0] - times[1] == pytest.approx(2.0 * received * value / gpu.links[0].bandwidth * 0.5)


def test_drafts_shorten_steps_of_few_sequences_by_less_than_the_tokens_that_they_give() -> None:
    llama = network("llama3-70b")
    for batch, least, most in ((1.0, 0.4, 0.6), (512.0, 0.6, 2.0)):
        plain, drafted = (
            worker_times(llama, kernels(), ENGINES["vllm"].constants, worker, ALL, hardware())
            for worker in (
                Worker(split(8), np.float64(batch), 8192.0),
                Worker(split(8), np.float64(batch), 8192.0, drafts=Speculation(3.0, 2.5, 1.0)),
            )
        )
        assert drafted.decode > plain.decode
        assert drafted.mixed > drafted.decode
        assert least < drafted.decode / 2.5 / plain.decode < most


def test_a_draft_that_is_never_accepted_takes_all_its_time() -> None:
    llama, worker = network("llama3-70b"), Worker(split(8), np.float64(4.0), 8192.0, drafts=Speculation(1.0, 1.0, 1.0))
    drafted = worker_times(llama, kernels(), ENGINES["vllm"].constants, worker, ALL, hardware())
    assert drafted.decode > priced(8, 4.0).decode
    assert weights_on_device(llama, split(8), FP8, 1.0) > weights_on_device(llama, split(8), FP8)
