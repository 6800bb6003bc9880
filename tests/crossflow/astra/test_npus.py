"""Several NPUs replayed: by hand, and a published plan to the nanosecond."""

from dataclasses import replace

import pytest

from crossopt.crossflow.astra.collective import Network, congested_times
from crossopt.crossflow.astra.npus import StuckError, Task, between, replay_npus, ring_time
from crossopt.crossflow.astra.phases import Collective, Dimension, Endpoint
from crossopt.instances.traces.chakra.messages import messages_in, node_in
from crossopt.instances.traces.chakra.program import Compute, Exchange, Item, Receive, Send, Writer, pieces_of
from crossopt.instances.traces.chakra.tasks import Roofline, task_of

MIB = 1 << 20
RING = Network((Dimension("ring", 4, 50.0, 500.0, "ring"),), Endpoint(10, 1600.0))
TWO = Network((Dimension("ring", 2, 200.0, 500.0, "ring"), Dimension("switch", 2, 50.0, 1000.0, "ring")), Endpoint(10, 1600.0))


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
    assert [between(TWO, 0, other, MIB) for other in range(4)] == [0, 500 + 4_882, 2_000 + 19_531, 500 + 4_882]


def test_what_never_ends_is_told() -> None:
    tasks = [[Task(1, "receive", peer=1, tag=1, bytes=8)], [], [], []]
    with pytest.raises(StuckError, match="NPU 0 waits for ever with 1 tasks to go"):
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
        tasks.append([task_of(node_in(data, *span), roofline) for span in list(messages_in(data))[1:]])
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
    ("network", "roofline", "time"),
    [(RING, None, 2_855_005), (TWO, None, 2_827_707), (SLOW, Roofline(100e12, 1e12), 1_552_940)],
)
def test_a_published_plan_takes_as_long_as_in_the_simulator(network: Network, roofline: Roofline | None, time: int) -> None:
    """(4 + 2 - 1) 300 us, two messages, and an all-reduce over two hops. By a roofline of 1e9 FLOPs at 100 TFLOP/s a computation takes
    10 us, and messages set the pace."""
    assert max(replay_npus(traced(roofline), GROUPS, network)) == time
