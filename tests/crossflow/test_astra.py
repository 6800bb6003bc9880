"""ASTRA-sim's analytical back end to the nanosecond: its own runs, worked examples, single messages, and several NPUs replayed."""

import csv
import random
from collections.abc import Mapping
from dataclasses import replace

import pytest

from crossopt.crossflow.astra.collective import (
    Chunk,
    Collective,
    Dimension,
    Endpoint,
    Network,
    Passing,
    Phase,
    Policy,
    Scheduling,
    Setting,
    Shape,
    chunk_sizes,
    congested,
    congested_times,
    equal_chunks,
    finish_times,
    npu_times,
    operation_time,
    phase_time,
    route,
    themis_chunks,
    time_collective,
    unhindered,
)
from crossopt.crossflow.astra.npus import StuckError, Task, between, replay_npus, ring_time
from crossopt.instances.traces.chakra import messages_in, node_in
from crossopt.instances.traces.chakra_archive import Compute, Exchange, Item, Receive, Roofline, Send, Writer, pieces_of, task_of
from tests.paths import reference

# ASTRA-sim's analytical back end to the nanosecond: its own runs, worked examples, and message by message against the closed form.

SHAPES: Mapping[str, Shape] = {"Ring": "ring", "FullyConnected": "fully_connected", "Switch": "switch"}
PASSINGS: Mapping[str, Passing] = {"baseline": "baseline", "localBWAware": "bandwidth_aware"}
POLICIES: Mapping[str, Policy] = {"FIFO": "fifo", "smallestFirst": "smallest_first"}
SCHEDULINGS: Mapping[str, Scheduling] = {"baseline": "natural", "themis": "themis", "themisflex": "themis_flexible"}
COLLECTIVES: tuple[Collective, ...] = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all")


def network_of(row: Mapping[str, str]) -> Network:
    columns = zip(
        row["topology"].split("_"),
        row["npus"].split("x"),
        row["bw_GBps"].split("/"),
        row["latency_ns"].split("/"),
        row["algorithm"].replace("halvingDoubling", "halving_doubling").split("/"),
        strict=True,
    )
    dimensions = tuple(Dimension(SHAPES[shape], int(size), float(rate), float(wait), how) for shape, size, rate, wait, how in columns)  # type: ignore[arg-type]
    endpoint = Endpoint(int(row["endpoint_delay_ns"]), float(row["local_mem_bw_GBps"]))
    return Network(dimensions, endpoint, int(row["active_chunks"]), int(row["queues_per_dim"]))


def times_of(row: Mapping[str, str]) -> tuple[int, int]:
    """ns of the slowest and the fastest NPU by the model."""
    inter = row["inter_dim_policy"]
    passing = PASSINGS[row["collective_optimization"]] if inter == "baseline" else "two_way"
    setting = Setting(passing, SCHEDULINGS[inter], POLICIES[row["intra_dim_policy"]], row["backend"] == "congestion_aware")
    return npu_times(row["collective"], int(row["size_bytes"]), int(row["chunks"]), network_of(row), setting)  # type: ignore[arg-type]


@pytest.mark.data
@pytest.mark.parametrize("name", ["astra-golden-dev.csv", "astra-golden-themis-dev.csv"])
def test_every_run_of_the_simulator_comes_out_to_the_nanosecond(name: str) -> None:
    with reference(f"network/{name}").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    told = [(row["cycles_ns"], row["min_npu_cycles_ns"]) for row in rows]
    assert len(rows) >= 30
    assert [tuple(map(str, times_of(row))) for row in rows] == told


@pytest.mark.parametrize(
    ("algorithm", "times"),
    [
        ("ring", (199_071, 687_132, 355_941, 288_055)),
        ("direct", (28_443, 98_166, 12_717, 41_155)),
        ("halving_doubling", (134_150, 685_113, 12_717, 221_114)),
    ],
)
def test_phases_on_a_switch_of_eight(algorithm: str, times: tuple[int, ...]) -> None:
    """40 GB/s are 42.949... bytes a ns: a ring message of 2^19 takes floor(2 * 250 + 12,207.03) = 12,707 ns, and seven of them, each with 5
    of delay and 3 * floor(5,242.88) of sums behind it, end at 5 + 7 * (12,707 + 5 + 15,726) = 199,071."""
    switch = Dimension("switch", 8, 40.0, 250.0, algorithm)  # type: ignore[arg-type]
    order: tuple[Collective, ...] = ("reduce_scatter", "all_gather", "all_to_all", "all_reduce")
    assert tuple(phase_time(Phase(0, kind, 4 << 20), switch, Endpoint(5, 100.0)) for kind in order) == times


@pytest.mark.parametrize(("chunks", "time"), [(1, 96_365), (4, 117_780)])
def test_the_simulators_own_regression_value(chunks: int, time: int) -> None:
    network = Network((Dimension("ring", 8, 50.0, 500.0, "ring"),), Endpoint(10, 50.0))
    assert time_collective(equal_chunks("all_reduce", 1 << 20, chunks, 1), "all_reduce", network).time == time


TWO = Network((Dimension("ring", 6, 60.0, 300.0, "ring"), Dimension("switch", 4, 20.0, 800.0, "halving_doubling")), Endpoint(1))


@pytest.mark.parametrize(("chunks", "phases", "time"), [(1, [82_901, 79_647, 82_886], 245_434), (4, [21_851, 24_713, 21_851], 174_808)])
def test_chunks_of_an_all_reduce_overlap_on_two_dimensions(chunks: int, phases: list[int], time: int) -> None:
    timed = time_collective(equal_chunks("all_reduce", 6 << 20, chunks, 2), "all_reduce", TWO)
    assert ([operation.duration for operation in timed.jobs[0]], timed.time) == (phases, time)
    if chunks == 1:
        assert sum(phases) == time


def test_what_does_not_divide_becomes_a_chunk_more() -> None:
    assert chunk_sizes(11, 4) == [2] * 6
    assert chunk_sizes(12, 4) == [3] * 4


def drawn_dimension(draw: random.Random) -> Dimension:
    algorithm, shape = draw.choice(("ring", "direct", "halving_doubling")), draw.choice(tuple(SHAPES.values()))
    size = draw.choice((2, 4, 8)) if algorithm == "halving_doubling" else draw.randint(2, 9)
    return Dimension(shape, size, draw.choice((0.5, 25.0, 50.0)), draw.choice((0.0, 250.0, 936.25)), algorithm)  # type: ignore[arg-type]


def test_message_by_message_every_npu_ends_with_the_closed_form() -> None:
    """But for direct all-reduces on rings, whose second round starts early where sums take long; they never end later."""
    draw, early = random.Random(3), 0
    for _ in range(300):
        dimension, endpoint = drawn_dimension(draw), Endpoint(draw.randint(1, 9), draw.choice((1.0, 50.0, 1600.0)))
        phase = Phase(0, draw.choice(COLLECTIVES), draw.randint(1, 1 << 16) * dimension.size)
        times, closed = finish_times([phase], dimension, endpoint, unhindered(dimension)), phase_time(phase, dimension, endpoint)
        assert operation_time(phase, Network((dimension,), endpoint)) == max(times)
        if (phase.collective, dimension.algorithm, dimension.shape) == ("all_reduce", "direct", "ring"):
            assert max(times) <= closed
            early += max(times) < closed
        else:
            assert set(times) == {closed}
    assert early


def test_a_message_through_a_switch_is_sent_twice() -> None:
    """2^20 bytes at 1 GB/s take 976,562.5 ns on either link, with 100 of latency: 976,662 there, as many on, and 1 of delay around it."""
    switch = Dimension("switch", 2, 1.0, 100.0, "ring")
    phase = Phase(0, "all_gather", 1 << 20)
    assert finish_times([phase], switch, Endpoint(1), congested(switch)) == [1 + 2 * 976_662 + 1] * 2
    assert finish_times([phase], switch, Endpoint(1), unhindered(switch)) == [1 + 976_762 + 1] * 2


def test_the_second_message_waits_for_the_link() -> None:
    """Two chunks at once on a ring of two: the first holds the link for floor(976,562.5) ns, the second then flies floor(976,662.5)."""
    ring = Network((Dimension("ring", 2, 1.0, 100.0, "ring"),), Endpoint(1), active_chunks=2)
    assert congested_times([1 << 20, 1 << 20], "all_gather", ring) == [1 + 976_562 + 976_662 + 1] * 2


def test_ways_around_a_ring_are_the_shorter_ones() -> None:
    ring = Dimension("ring", 6, 1.0, 0.0, "ring")
    assert [route(ring, 5, to) for to in (1, 2, 3)] == [[5, 0, 1], [5, 0, 1, 2], [5, 4, 3]]


def test_more_queues_run_more_chunks_side_by_side() -> None:
    """Two chunks in one queue one after another, in two queues at once; each takes 1 + 488,281 + 1 ns."""
    ring = (Dimension("ring", 2, 1.0, 0.0, "ring"),)
    chunks = [Chunk(1 << 19, (0,))] * 2
    times = [time_collective(chunks, "all_gather", Network(ring, Endpoint(1), active, queues)).time for active, queues in ((1, 1), (2, 2))]
    assert times == [2 * 488_283, 488_283]


def test_themis_gives_the_less_loaded_dimension_first_what_the_other_lacks() -> None:
    """Two equal dimensions of two: the first chunk loads them 1/2 and 1/4 of itself, so that the second passes them the other way round."""
    ring = Dimension("ring", 2, 1.0, 0.0, "ring")
    found = themis_chunks("all_reduce", 4 << 20, 4, (ring, ring), (1.0, 1.0))
    assert [chunk.order for chunk in found] == [(0, 1), (1, 0), (0, 1), (1, 0)]
    assert [chunk.order for chunk in themis_chunks("all_to_all", 4 << 20, 2, (ring, ring), (1.0, 1.0))] == [(0, 1)] * 2


# Several NPUs replayed: by hand, and a published plan to the nanosecond.

MIB = 1 << 20
RING = Network((Dimension("ring", 4, 50.0, 500.0, "ring"),), Endpoint(10, 1600.0))
NPUS_TWO = Network((Dimension("ring", 2, 200.0, 500.0, "ring"), Dimension("switch", 2, 50.0, 1000.0, "ring")), Endpoint(10, 1600.0))


def test_a_message_is_received_when_it_has_been_sent() -> None:
    """NPU 0 computes 5 ns and sends 1 MiB over a link: floor(500 + 19,531.25) ns; NPU 1 then computes 7."""
    tasks = [
        [Task(1, "compute", time=5), Task(2, "send", (1,), bytes=MIB, peer=1, tag=3)],
        [Task(1, "receive", bytes=MIB, peer=0, tag=3), Task(2, "compute", (1,), 7)],
        [],
        [],
    ]
    assert replay_npus(tasks, {}, RING) == [20_036, 20_043, 0, 0]


def test_one_computation_at_a_time_the_smallest_number_first() -> None:
    """2 is free at once; 1 waits for 3, a message that comes after 531 ns: 2 has run by then."""
    waits = [Task(1, "compute", (3,), 10), Task(2, "compute", (), 40), Task(3, "receive", peer=0, tag=1, bytes=0)]
    tasks = [[Task(1, "send", peer=1, tag=1, bytes=0)], waits, [], []]
    assert replay_npus(tasks, {}, RING)[:2] == [500, 510]


def test_members_of_a_group_wait_for_one_another() -> None:
    """NPUs 0 and 2 are two hops apart: 10 + 2 (floor(1,000 + 19,531.25 / 2) + 10) and sums of floor(524,288 / 1,600) thrice."""
    tasks = [
        [Task(1, "compute", time=100), Task(2, "collective", (1,), bytes=MIB, group=1)],
        [],
        [Task(1, "collective", bytes=MIB, group=1)],
        [],
    ]
    time = 10 + 2 * (1_000 + 9_765 + 10) + 3 * 327
    assert ring_time(RING, (0, 2), "all_reduce", MIB, 1) == time
    assert replay_npus(tasks, {1: (0, 2)}, RING) == [100 + time, 0, 100 + time, 0]


def test_the_first_dimension_that_differs_is_charged() -> None:
    assert [between(NPUS_TWO, 0, other, MIB) for other in range(4)] == [0, 500 + 4_882, 2_000 + 19_531, 500 + 4_882]


def test_what_never_ends_is_told() -> None:
    tasks = [[Task(1, "receive", peer=1, tag=1, bytes=8)], [], [], []]
    with pytest.raises(StuckError, match="deadlock: NPU 0 has 1 tasks that can never start"):
        replay_npus(tasks, {}, RING)


def published(stage: int) -> list[Item]:
    """Four microbatches, all forward (100 us), then all backward (200 us), messages of 1 MiB, gradients of 64 MiB."""
    found = list[Item]()
    for one in range(4):
        found += [Receive(f"r{one}", MIB, "previous", 2 * one)] * stage
        found.append(Compute(f"f{one}", 100, 10**9, 10**6))
        found += [Send(f"s{one}", MIB, "next", 2 * one)] * (1 - stage)
    for one in range(4):
        found += [Receive(f"r{one}", MIB, "next", 2 * one + 1)] * (1 - stage)
        found.append(Compute(f"b{one}", 200, 10**9, 10**6))
        found += [Send(f"s{one}", MIB, "previous", 2 * one + 1)] * stage
    return [*found, Exchange("g", "all_reduce", 64 * MIB, "data")]


SLOW = Network(RING.dimensions, Endpoint(10, 1000.0))


def traced(roofline: Roofline | None = None) -> list[list[Task]]:
    """Two stages of two replicas, as traces that are written and read."""
    tasks = list[list[Task]]()
    for number in range(4):
        replica, stage = divmod(number, 2)
        peer = 2 * replica + 1 - stage
        data = Writer(pieces_of(published(stage))).trace_of(number, {"next": peer, "previous": peer}, {"data": stage + 1})
        tasks.append([task_of(node_in(one), roofline) for one in list(messages_in(data))[1:]])
    return tasks


GROUPS = {1: (0, 2), 2: (1, 3)}


def test_a_published_plan_takes_longer_where_its_rings_share_links() -> None:
    """Of either group every message takes two hops, each of which holds its link for 625 us: 4,105,005 ns in the simulator."""
    assert max(replay_npus(traced(), GROUPS, RING, congestion=True)) == 4_105_005


@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "all_to_all"])
def test_a_collective_of_all_that_come_at_once_is_that_of_the_dimension(collective: Collective) -> None:
    """Whoever comes late sends late: all but the last wait for it."""
    switch = Network((Dimension("switch", 4, 50.0, 500.0, "direct"),), Endpoint(10, 1600.0))
    for network in (RING, switch):
        one = Task(2, "collective", bytes=MIB, collective=collective)
        own = congested_times([MIB // 2, MIB // 2], collective, network)
        assert replay_npus([[one]] * 4, {}, network, 2, congestion=True) == own
        late = [[one]] * 3 + [[Task(1, "compute", time=777), replace(one, after=(1,))]]
        ends = replay_npus(late, {}, network, 2, congestion=True)
        assert max(own) < max(ends) <= max(own) + 777


def test_messages_wait_for_a_link_that_another_holds() -> None:
    """NPU 0 sends to 1 at 10,000 and holds the link until 29,531. What 3 sends over 0 waits there from 20,031 on."""
    sends = [Task(1, "compute", time=10_000), Task(2, "send", (1,), bytes=MIB, peer=1, tag=1)]
    over = [Task(1, "send", bytes=MIB, peer=1, tag=2)]
    tasks = [sends, [Task(1, "receive", bytes=MIB, peer=0, tag=1), Task(2, "receive", bytes=MIB, peer=3, tag=2)], [], over]
    assert replay_npus(tasks, {}, RING) == [30_031, 30_031, 0, 20_531]
    assert replay_npus(tasks, {}, RING, congestion=True) == [30_031, 29_531 + 20_031, 0, 29_531 + 20_031]
    with pytest.raises(StuckError):
        replay_npus([[Task(1, "collective", bytes=8, group=1)], [], [], []], {1: (0, 2)}, RING, congestion=True)


@pytest.mark.parametrize(
    ("network", "roofline", "time"), [(RING, None, 2_855_005), (NPUS_TWO, None, 2_827_707), (SLOW, Roofline(100e12, 1e12), 1_552_940)]
)
def test_a_published_plan_takes_as_long_as_in_the_simulator(network: Network, roofline: Roofline | None, time: int) -> None:
    """(4 + 2 - 1) 300 us, two messages, and an all-reduce over two hops. By a roofline of 1e9 FLOPs at 100 TFLOP/s a computation takes
    10 us, and messages set the pace."""
    assert max(replay_npus(traced(roofline), GROUPS, network)) == time
