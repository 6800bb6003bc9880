"""`export --as chakra` and `check` of what it wrote: every plan's traces hold together, run to their end, and any edit is told."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from crossopt.crossflow.astra.collective import Dimension, Endpoint, Network
from crossopt.crossflow.astra.npus import Task, replay_npus
from crossopt.crossflow.plan import PLACEMENTS, Plan
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.errors import InstanceError, RefusedError
from crossopt.instances.traces.chakra import COLLECTIVE, Node, messages_in, metadata_in, node_in, written
from crossopt.instances.traces.chakra_archive import Compute, Exchange, Send, Writer, archive_at, pieces_of, recounted, task_of
from crossopt.reports.cli import main
from crossopt.reports.launching.chakra import (
    AFTER,
    BEFORE,
    CONTEXT,
    DATA,
    ENDS,
    EXPERT,
    NEXT,
    ROUTED,
    TENSOR,
    cannot,
    flops_of,
    npus_of,
    planned,
    program_of,
    refuse_large,
)
from crossopt.solvers.codesign.answer import Candidate, design_of
from tests.paths import INSTANCES

NARROW = [word for one in ("tensor=2", "pipeline=2", "microbatch=8", "recompute=full") for word in ("--set", one)]


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("chakra") / "result.json"
    assert main(["solve", "tiny", *NARROW, "--out", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def folder(result: Path) -> Path:
    assert main(["export", str(result), "--as", "chakra", "--out", str(result.parent / "traces")]) == 0
    return result.parent / "traces"


def test_a_folder_and_a_tar_are_read_again(result: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of eight devices four are first stages; each sends four microbatches, as many come back: 32 messages."""
    assert sorted(one.name for one in folder.iterdir()) == ["about.json", "groups.json", *(f"tiny.{npu}.et" for npu in range(8))]
    groups = json.loads((folder / "groups.json").read_text(encoding="utf-8"))
    assert min(map(int, groups)) == 1
    assert list(groups.values())[:5] == [[0, 1], [2, 3], [4, 5], [6, 7], [0, 2]]
    tar = result.parent / "traces.tar"
    assert main(["export", str(result), "--as", "chakra", "--out", str(tar)]) == 0
    assert "100.000000% of those of the step and of what is computed again" in capsys.readouterr().out
    for path in (folder, tar):
        assert main(["check", str(path)]) == 0
        printed = capsys.readouterr().out
        assert "8 traces were read" in printed
        assert "32 messages of " in printed
        assert f"{path.name}: accepted" in " ".join(printed.split())


def test_sends_and_receives_of_a_rank_are_told_apart_from_collectives(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """NPU 0 is of the first of two stages: it sends four microbatches, and four come back."""
    assert main(["import", str(folder / "tiny.0.et")]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if "operations" in line)
    collectives = sum(node.type == COLLECTIVE for node in nodes_of(folder, 0))
    assert collectives > 0
    assert line.endswith(f" · {collectives} collectives · 4 sends · 4 receives")


def changed(folder: Path, to: Path, npu: int, change: dict[int, Node | None]) -> Path:
    """A copy in which nodes of an NPU, by their place, are others or missing."""
    shutil.copytree(folder, to)
    path = to / f"tiny.{npu}.et"
    data = path.read_bytes()
    first, *others = messages_in(data)
    nodes = [change.get(place, node_in(one)) for place, one in enumerate(others)]
    path.write_bytes(written(metadata_in(first), [node for node in nodes if node is not None]))
    return to


def nodes_of(folder: Path, npu: int) -> list[Node]:
    data = (folder / f"tiny.{npu}.et").read_bytes()
    return [node_in(one) for one in list(messages_in(data))[1:]]


def with_value(node: Node, name: str, value: object) -> Node:
    return replace(node, attributes=tuple(replace(one, value=value) if one.name == name else one for one in node.attributes))  # type: ignore[arg-type]


def renamed(node: Node, name: str, other: str) -> Node:
    return replace(node, attributes=tuple(replace(one, name=other) if one.name == name else one for one in node.attributes))


def test_every_edit_is_told(folder: Path, tmp_path: Path) -> None:
    nodes = nodes_of(folder, 0)
    send = next(place for place, node in enumerate(nodes) if node.type == 5)
    exchange = next(place for place, node in enumerate(nodes) if node.type == 7)
    compute = next(place for place, node in enumerate(nodes) if node.type == 4)
    edits: list[tuple[dict[int, Node | None], str]] = [
        ({send: with_value(nodes[send], "comm_tag", 77)}, "no NPU receives the message from 0 to 4 with tag "),
        ({send: None}, "31 messages are sent and 32 received"),
        (
            {exchange: with_value(nodes[exchange], "comm_size", 5)},
            "in group 1 it does not issue the collectives of NPU 0 in the same order",
        ),
        ({exchange: with_value(nodes[exchange], "pg_name", "0")}, "pg_name is '0', a group's number from 1 on is needed"),
        ({exchange: with_value(nodes[exchange], "pg_name", "2")}, "it exchanges in group 2, of which it is no member"),
        ({compute: with_value(nodes[compute], "num_ops", 1)}, " by about.json"),
        ({compute: replace(nodes[compute], id=99)}, "it waits for a node that does not stand before it"),
        ({compute + 1: replace(nodes[compute + 1], id=nodes[compute].id)}, "the id is given twice"),
        ({compute: renamed(nodes[compute], "is_cpu_op", "is_cpu_oq")}, "is_cpu_op is not false"),
        ({compute: replace(nodes[compute], name="forward")}, "NPU 0: the bytes of its trace are not those that were written"),
        ({len(nodes) - 1: replace(nodes[-1], data_deps=(1,))}, "NPU 0: the bytes of its trace are not those that were written"),
    ]
    for number, (change, told) in enumerate(edits):
        wrong = recounted(archive_at(changed(folder, tmp_path / str(number), 0, change)))[1]
        assert any(told in one for one in wrong), (told, wrong)
    groups = changed(folder, tmp_path / "groups", 0, {})
    (groups / "groups.json").write_text((groups / "groups.json").read_text(encoding="utf-8").replace("[0,1]", "[1,0]"), encoding="utf-8")
    assert recounted(archive_at(groups))[1] == ["groups.json: its bytes are not those that were written, by about.json"]


def test_files_that_are_cut_or_missing_are_told(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = changed(folder, tmp_path / "cut", 0, {})
    (cut / "tiny.3.et").write_bytes((cut / "tiny.3.et").read_bytes()[:-5])
    (cut / "tiny.5.et").unlink()
    assert main(["check", str(cut)]) == 30
    printed = capsys.readouterr().out
    assert "NPU 3: byte " in printed
    assert "the trace of NPU 5 is missing" in printed
    (cut / "groups.json").unlink()
    with pytest.raises(InstanceError, match=r"there is no groups.json in this folder"):
        archive_at(cut)
    (tmp_path / "x.tar").write_bytes(b"no tar at all")
    with pytest.raises(InstanceError, match=r"this .tar cannot be read"):
        archive_at(tmp_path / "x.tar")


WAYS = {f"{name}-implementation": ["ring"] for name in ("all-reduce", "all-gather")}
SYSTEM = {"endpoint-delay": 10, "local-mem-bw": 1600, "preferred-dataset-splits": 1, **WAYS}


def test_traces_are_timed_on_a_network_of_the_simulator(
    result: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As long as computations of the busiest stage at least; half the bandwidth takes longer. The plan's own step stands beside."""
    step = json.loads(result.read_text(encoding="utf-8"))["value"]
    network, system, times = tmp_path / "net.yml", tmp_path / "sys.json", list[int]()
    system.write_text(json.dumps(SYSTEM), encoding="utf-8")
    asked = ["check", str(folder), "--network", str(network), "--system", str(system)]
    for bandwidth in (50, 25):
        network.write_text(f"topology: [Ring]\nnpus_count: [8]\nbandwidth: [{bandwidth}]\nlatency: [500]\n", encoding="utf-8")
        assert main(asked) == 0
        printed = capsys.readouterr().out
        assert f"  {round(step * 1e9):,} ns as the plan is priced" in printed
        told = next(line for line in printed.splitlines() if "congestion-unaware" in line)
        times.append(int(told.split()[0].replace(",", "")))
        shared = next(line for line in printed.splitlines() if "congestion-aware" in line)
        assert int(shared.split()[0].replace(",", "")) >= times[-1]
    assert max(sum(node.duration_micros for node in nodes_of(folder, npu)) for npu in range(8)) * 1000 < times[0] < times[1]
    network.write_text("topology: [Ring]\nnpus_count: [6]\nbandwidth: [50]\nlatency: [500]\n", encoding="utf-8")
    assert main(asked) == 2
    assert "npus_count 6 makes 6 NPUs, and there are 8 traces" in capsys.readouterr().err
    for words in (asked[:4], [*asked[:1], str(network), *asked[2:]]):
        with pytest.raises(SystemExit):
            main(words)


def test_nothing_is_written_over_or_half(result: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for out, told in ((folder, "this is there already"), (result.parent / "none" / "x", "there is no folder")):
        with pytest.raises(SystemExit):
            main(["export", str(result), "--as", "chakra", "--out", str(out)])
        assert told in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["export", str(result), "--as", "chakra"])
    assert "a folder or a .tar is needed" in capsys.readouterr().err
    assert not list(result.parent.glob(".crossopt-*"))


PLANS = {
    "interleaved": Plan(2, 1, 2, 2, microbatch=2, interleave=2),
    "zero 3": Plan(1, 1, 1, 8, microbatch=2, zero=3),
    "zero 2, stages": Plan(1, 1, 4, 2, microbatch=2, zero=2, placement="pipeline-data-tensor-context"),
    "zero-bubble": Plan(1, 1, 4, 2, microbatch=2, schedule="zero-bubble"),
    "sequence": Plan(4, 1, 2, 1, microbatch=4, sequence_parallel=True, recompute="selective"),
    "experts": Plan(1, 1, 2, 4, expert=2, microbatch=2),
    "alone": Plan(microbatch=8),
    "context": Plan(1, 4, 2, 1, microbatch=4, interleave=2, recompute="full", zero=1),
    "context, all to all": Plan(1, 2, 1, 2, expert=2, microbatch=4),
}


@pytest.mark.parametrize("name", PLANS)
def test_traces_of_every_plan_run_to_their_end(name: str) -> None:
    """No NPU waits for ever, FLOPs are those of the step, and no NPU is done before its computations could be."""
    instance, plan = read_instance(INSTANCES / "tiny.yaml"), PLANS[name]
    assert isinstance(instance.workload, Transformer)
    model = replace(instance.workload, experts=4, experts_per_token=2) if plan.expert > 1 else instance.workload
    model = replace(model, sinks=True) if name == "context, all to all" else model
    one = planned(model, design_of(instance, Candidate(0, plan)).hardware, instance.cluster, plan)
    programs = [list(program_of(one, stage)) for stage in range(plan.pipeline)]
    npus, groups = npus_of(plan, {item.group for program in programs for item in program if isinstance(item, Exchange)})
    tasks = list[list[Task]]()
    for npu in npus:
        data = Writer(pieces_of(programs[npu.stage])).trace_of(npu.number, npu.peers, npu.groups)
        tasks.append([task_of(node_in(one)) for one in list(messages_in(data))[1:]])
    network = Network((Dimension("switch", max(plan.devices, 2), 100.0, 500.0, "ring"),), Endpoint(10, 1600.0))
    ends = replay_npus(tasks, groups, network)
    flops = sum(item.flops for npu in npus for item in programs[npu.stage] if isinstance(item, Compute))
    assert flops == pytest.approx(flops_of(one), rel=1e-9)
    assert all(end >= sum(task.time for task in own) for end, own in zip(ends, tasks, strict=True))


def test_groups_lie_where_the_plan_lays_them() -> None:
    """Tensor ranks inside, then data ranks, then stages: 2 x 4 x 2 devices, experts over two data ranks each."""
    npus, groups = npus_of(Plan(2, 1, 2, 4, expert=2), {TENSOR, DATA, EXPERT, ROUTED, ENDS})
    of = {role: [groups[npu.groups[role]] for npu in npus[:2]] for role in (TENSOR, DATA, EXPERT, ROUTED, ENDS)}
    assert of == {
        TENSOR: [(0, 1), (0, 1)],
        DATA: [(0, 2, 4, 6), (1, 3, 5, 7)],
        EXPERT: [(0, 2), (1, 3)],
        ROUTED: [(0, 4), (1, 5)],
        ENDS: [(0, 8), (1, 9)],
    }
    assert all(npu.number in groups[group] for npu in npus for group in npu.groups.values())
    assert (npus[3].peers, npus[11].peers) == ({"next": 11, "previous": 11}, {"next": 3, "previous": 3})


def test_context_ranks_hand_on_keys_and_values_and_sum_gradients_with_data_ranks() -> None:
    """Of a sample of 2,048 tokens each of four ranks has 512, with 2 x 768 values of 2 bytes: in three steps for each of 6 layers forward,
    and twice that backward. Two data ranks lie around them."""
    instance, plan = read_instance(INSTANCES / "tiny.yaml"), Plan(1, 4, 2, 2, microbatch=1)
    assert isinstance(instance.workload, Transformer)
    one = planned(instance.workload, design_of(instance, Candidate(0, plan)).hardware, instance.cluster, plan)
    program = list(program_of(one, 0))
    sent = [item for item in program if isinstance(item, Send)]
    ahead, back = ([item for item in sent if item.name.startswith(f"{way} 1.1 keys")] for way in ("forward", "backward"))
    block = 6 * 512 * 2 * 768 * 2
    assert ([item.bytes for item in ahead], [item.bytes for item in back]) == ([block] * 3, [2 * block] * 3)
    npus, groups = npus_of(plan, {DATA, CONTEXT})
    assert [groups[npus[1].groups[role]] for role in (CONTEXT, DATA)] == [(0, 1, 2, 3), (0, 1, 2, 3, 4, 5, 6, 7)]
    assert {role: npus[0].peers[role] for role in (AFTER, BEFORE, NEXT)} == {AFTER: 1, BEFORE: 3, NEXT: 8}


def test_inputs_are_gathered_once_more_beside_the_backward_pass() -> None:
    """Of a layer's two products by columns, each of two tensor ranks brings half of 4 x 2,048 tokens of 768 values of 2 bytes; six layers
    on each of two stages. It begins with the pass, and what follows waits for both. Ranks that sum whole results gather nothing."""
    instance, plan = read_instance(INSTANCES / "tiny.yaml"), Plan(2, 1, 2, 2, microbatch=4, sequence_parallel=True)
    assert isinstance(instance.workload, Transformer)
    one = planned(instance.workload, design_of(instance, Candidate(0, plan)).hardware, instance.cluster, plan)
    program = list(program_of(one, 0))
    name, shard = "backward 1.1 inputs once more", 4 * 2048 * 768 * 2 // 2
    place = next(place for place, item in enumerate(program) if item.name == name)
    assert program[place] == Exchange(name, "all_gather", 6 * 2 * shard, TENSOR, is_beside=True)
    work, gathered, after = (node_in(piece.node) for piece in pieces_of(program)[place - 1 : place + 2])
    assert (work.type, gathered.type, gathered.data_deps) == (4, COLLECTIVE, work.data_deps)
    assert after.data_deps == (work.id, gathered.id)
    whole = replace(plan, sequence_parallel=False)
    summed = planned(instance.workload, design_of(instance, Candidate(0, whole)).hardware, instance.cluster, whole)
    assert not any(item.name.endswith("once more") for item in program_of(summed, 0))


def test_operations_of_a_layer_are_those_of_the_public_generator_of_traces() -> None:
    """astra-sim/symbolic_tensor_graph, module3/tpsp: products of a layer by their indices, and tensors that change from rows of a sequence
    on each tensor rank to all of them or back. Weights are summed over replicas; a tensor is handed on to the next stage."""
    batch, sequence, hidden, heads, groups, wide, ranks, layers = 2, 256, 512, 8, 2, 1024, 2, 3
    shape = Transformer(
        "llama-like",
        layers=2 * layers,
        hidden=hidden,
        heads=heads,
        kv_heads=groups,
        ffn=wide,
        vocabulary=8192,
        sequence=sequence,
        global_batch=8,
        gated=True,
        biases=False,
        learned_positions=False,
    )
    plan, instance = (
        Plan(tensor=ranks, pipeline=2, data=2, microbatch=batch, sequence_parallel=True),
        read_instance(INSTANCES / "tiny.yaml"),
    )
    one = planned(shape, design_of(instance, Candidate(0, plan)).hardware, instance.cluster, plan)
    of_head, rows = hidden // heads, batch * sequence
    products = [
        (rows, hidden, of_head * (heads + 2 * groups) // ranks),  # bsm,mnh->bsnh
        (rows * heads // ranks, of_head, sequence),  # bsnh,bwnh->bswh
        (rows * heads // ranks, sequence, of_head),  # bswh,bwnh->bsnh
        (rows, of_head * heads // ranks, hidden),  # bsmh,mhn->bsn
        *[(rows, hidden, wide // ranks)] * 2,  # up and gate, bsm,mn->bsn
        (rows, wide // ranks, hidden),  # down
    ]
    flops = sum(2 * height * depth * width for height, depth, width in products)
    whole = rows * hidden * 2
    program = [item for item in program_of(one, 0) if item.name.startswith(("forward 1.1", "backward 1.1"))]
    computed = {item.name: item.flops for item in program if isinstance(item, Compute)}
    assert computed == {"forward 1.1": layers * flops, "backward 1.1": 2 * layers * flops}
    found = [(item.name.split()[0], item.kind, item.bytes) for item in program if isinstance(item, Exchange)]
    shard, both = layers * 2 * whole // ranks, layers * 2 * whole  # a gather and a scatter in attention, and in the two layers behind it
    assert sorted(found) == sorted(
        [("forward", "all_gather", shard), ("forward", "reduce_scatter", both)]
        + [("backward", "all_gather", shard)] * 2  # of gradients, and of inputs once more
        + [("backward", "reduce_scatter", both)]
    )
    assert [item.bytes for item in program if isinstance(item, Send)] == [whole // ranks]
    weights = layers * (hidden * of_head * (heads + 2 * groups) + hidden * hidden + 3 * hidden * wide) // ranks
    [summed] = [item for item in program_of(one, 0) if isinstance(item, Exchange) and item.name == "gradients"]
    beside = 8192 * hidden // ranks + layers * 2 * hidden
    assert summed.kind == "all_reduce"
    assert summed.bytes == pytest.approx(shape.gradient_bytes * (weights + beside), rel=1e-2)


def test_what_a_plan_offloads_is_loaded_and_stored_beside_its_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Eight layers in two stages: each has four, one of which is away but for its optimizer state. Activations of a microbatch are stored
    forward and loaded backward, weights are loaded both ways; a pool serves all NPUs in turn, so that it takes longer."""
    own = "transformer: {layers: 8, hidden: 512, heads: 8, ffn: 2048, vocabulary: 8192, sequence: 512}, global_batch: 8"
    (tmp_path / "pool.yaml").write_text(
        f"kind: codesign\nworkload: {{{own}}}\nhardware: a100-40g\n"
        "cluster: {devices: 4, host: {memory: 1 TiB, bandwidth: 100 GB/s, latency: 1 us, shared_by: 4}}\n"
        "choices: {pipeline: [2], offload: [all], zero: [1], recompute: [none], microbatch: [1], tensor: [1], data: [2]}\n"
    )
    result, folder = tmp_path / "pool.json", tmp_path / "traces"
    assert main(["solve", str(tmp_path / "pool.yaml"), "--out", str(result)]) == 0
    assert main(["export", str(result), "--as", "chakra", "--out", str(folder)]) == 0
    sums, wrong = recounted(archive_at(folder))
    assert wrong == []
    assert sums.accesses == 4 * (4 * 4 + 2)
    (tmp_path / "net.yml").write_text("topology: [Switch]\nnpus_count: [4]\nbandwidth: [300]\nlatency: [500]\n")
    ways = {f"{name}-implementation": ["ring"] for name in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")}
    system = {"endpoint-delay": 10, "preferred-dataset-splits": 1, "active-chunks-per-dimension": 1, **ways}
    (tmp_path / "sys.json").write_text(json.dumps(system))
    times = list[int]()
    for kind in ("PER_NPU_MEMORY_EXPANSION", "MEMORY_POOL"):
        (tmp_path / "memory.json").write_text(json.dumps({"memory-type": kind, "remote-mem-latency": 1000, "remote-mem-bw": 1}))
        capsys.readouterr()
        files = [
            word
            for name, file in (("network", "net.yml"), ("system", "sys.json"), ("remote-memory", "memory.json"))
            for word in (f"--{name}", str(tmp_path / file))
        ]
        assert main(["check", str(folder), *files]) == 0
        times.append(int(capsys.readouterr().out.split(" ns by ASTRA-sim's congestion-unaware")[0].split()[-1].replace(",", "")))
    assert times[0] < times[1]


def test_sizes_that_no_node_holds_are_refused() -> None:
    refuse_large([[Compute("work", 1, (1 << 62) - 1, 5)]])
    for item in (Compute("work", 1, 1 << 62), Send("message", 1 << 63, NEXT, 0)):
        with pytest.raises(RefusedError, match="FLOPs or bytes are too many for one node"):
            refuse_large([[Compute("before", 1)], [item]])


def test_what_traces_do_not_say_is_refused() -> None:
    model = read_instance(INSTANCES / "tiny.yaml").workload
    assert isinstance(model, Transformer)
    assert cannot(model, Plan(shard=2, zero=3)) == "shard 2 yet (ask again with --set shard=0)"
    assert all(cannot(model, Plan(placement=name)) is None for name in PLACEMENTS)
