"""Remote memory of ASTRA-sim's, and switches that reduce: against their formulas, access by access."""

import json
from math import floor
from random import Random

import pytest

from crossopt.crossflow.astra.collective import Collective, Dimension, Endpoint, Network, Phase, phase_time
from crossopt.crossflow.astra.npus import RemoteMemory, StuckError, Task, overfull, replay_npus
from crossopt.instances.errors import InstanceError
from crossopt.instances.network.collective import remote_memory, simulated

KINDS = {"PER_NPU_MEMORY_EXPANSION": "npu", "PER_NODE_MEMORY_EXPANSION": "node", "MEMORY_POOL": "pool"}


def network(npus: int) -> Network:
    return Network((Dimension("switch", npus, 40.0, 250.0, "ring"),), Endpoint(5, 1e6), 1)


def drawn(random: Random) -> tuple[list[list[Task]], RemoteMemory]:
    each = random.choice((1, 2, 4))
    npus = each * random.choice((1, 2, 3)) if each > 1 else random.choice((2, 4))
    tasks = []
    for _ in range(npus):
        own = list[Task]()
        for number in range(random.randint(1, 6)):
            after = (number - 1,) if number else ()
            if random.random() < 0.5:
                own.append(Task(number, "compute", after, random.randint(1, 5000)))
            else:
                own.append(Task(number, random.choice(("load", "store")), after, bytes=random.randint(0, 1 << 20)))
        tasks.append(own)
    level = random.choice(("npu", "node", "pool"))
    return tasks, RemoteMemory(level, random.randint(0, 900), random.choice((0.7, 12.5, 100.0)), each)  # type: ignore[arg-type]


def one_after_the_other(tasks: list[list[Task]], memory: RemoteMemory) -> list[int]:
    """Chains of tasks: the access that comes first is served first, of several the one that was scheduled first."""
    now, at, free = [0] * len(tasks), [0] * len(tasks), dict[int, int]()
    order = [(0, npu) for npu in range(len(tasks))]
    while order:
        order.sort(key=lambda item: item[0])
        time, npu = order.pop(0)
        if at[npu] == len(tasks[npu]):
            continue
        task = tasks[npu][at[npu]]
        at[npu] += 1
        if task.kind == "compute":
            now[npu] = time + task.time
        else:
            took = memory.latency + floor(task.bytes / memory.bandwidth)
            place = {"npu": npu, "node": npu // memory.npus_per_node, "pool": 0}[memory.level]
            start = time if memory.level == "npu" else max(time, free.get(place, 0))
            now[npu] = free[place] = start + took
        order.append((now[npu], npu))
    return now


@pytest.mark.parametrize("seed", range(60))
def test_drawn_chains_take_what_the_formulas_say(seed: int) -> None:
    tasks, memory = drawn(Random(seed))
    assert replay_npus(tasks, {}, network(len(tasks)), memory=memory) == one_after_the_other(tasks, memory)


def test_a_pool_serves_one_access_after_the_other_latency_included() -> None:
    tasks = [[Task(0, "load", bytes=1000)] for _ in range(4)]
    pool, each = RemoteMemory("pool", 100, 3.0), RemoteMemory("npu", 100, 3.0)
    assert replay_npus(tasks, {}, network(4), memory=each) == [433] * 4
    assert replay_npus(tasks, {}, network(4), memory=pool) == [433, 866, 1299, 1732]
    assert replay_npus(tasks, {}, network(4), memory=RemoteMemory("node", 100, 3.0, 2)) == [433, 866, 433, 866]


def test_traces_that_load_need_a_memory_that_holds_what_is_stored() -> None:
    tasks = [[Task(0, "store", bytes=600)], [Task(0, "store", bytes=600)]]
    with pytest.raises(StuckError, match="there is none"):
        replay_npus(tasks, {}, network(2))
    assert "holds 1,000 bytes, and 1,200 are stored" in overfull(RemoteMemory("pool", 0, 1.0, capacity=1000), tasks)
    assert not overfull(RemoteMemory("npu", 0, 1.0, capacity=1000), tasks)
    assert not overfull(RemoteMemory("pool", 0, 1.0), tasks)


@pytest.mark.parametrize(("collective", "most"), [("all_reduce", 1), ("reduce_scatter", 1), ("all_gather", 8)])
def test_a_switch_that_reduces_passes_every_byte_once_up_and_once_down(collective: Collective, most: int) -> None:
    switch, endpoint = Dimension("switch", 8, 40.0, 250.0, "in_network"), Endpoint(5, 100.0)
    size = 4 << 20
    assert phase_time(Phase(0, collective, size), switch, endpoint) == 5 + floor(2 * 250.0 + most * size / switch.rate) + 5
    ring = Dimension("switch", 8, 40.0, 250.0, "ring")
    assert phase_time(Phase(0, "all_reduce", size), switch, endpoint) < phase_time(Phase(0, "all_reduce", size), ring, endpoint)
    direct = Dimension("switch", 8, 40.0, 250.0, "direct")
    swapped = Phase(0, "all_to_all", size)
    assert phase_time(swapped, switch, endpoint) == phase_time(swapped, direct, endpoint)


def test_reduction_in_the_network_needs_a_switch() -> None:
    network_file = "topology: [Ring]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n"
    system_file = json.dumps({"all-reduce-implementation": ["inNetwork"]})
    with pytest.raises(InstanceError, match="links between NPUs reduce nothing"):
        simulated((network_file, "network.yml"), (system_file, "system.json"), "all_reduce")
    found = simulated((network_file.replace("Ring", "Switch"), "network.yml"), (system_file, "system.json"), "all_reduce")
    assert found.dimensions[0].algorithm == "in_network"


def test_files_of_the_simulator_are_read() -> None:
    for kind, level in KINDS.items():
        written = {"memory-type": kind, "remote-mem-latency": 7, "remote-mem-bw": 64, "num-nodes": 2, "num-npus-per-node": 4, "other": 1}
        found = remote_memory(json.dumps(written), "memory.json", 8)
        assert found == RemoteMemory(level, 7, 64.0, 4)  # type: ignore[arg-type]
    assert remote_memory('{"memory-type": "NO_MEMORY_EXPANSION"}', "memory.json", 8) is None
    with pytest.raises(InstanceError, match="2 nodes of 3 NPUs are not the 8 NPUs"):
        remote_memory('{"memory-type": "PER_NODE_MEMORY_EXPANSION", "num-nodes": 2, "num-npus-per-node": 3}', "memory.json", 8)
    with pytest.raises(InstanceError, match="memory-type"):
        remote_memory('{"memory-type": "CLOUD"}', "memory.json", 8)
