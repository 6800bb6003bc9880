"""Public tests of assignment 10: `pytest .` tries solution.py or the notebook on instance.yaml; `crossopt grade 10 .` asks for more."""

import sys
from pathlib import Path

import yaml

HERE = Path(__file__).parent
GIVEN = yaml.safe_load((HERE / "instance.yaml").read_text(encoding="utf-8"))
NETWORK = GIVEN["npus"], GIVEN["links"]
sys.path[:0] = [str(HERE), str(HERE.parent)]  # a solution may import files beside it; handed_in.py lies here, or above in a checkout

from handed_in import functions  # noqa: E402

MINE = functions(HERE)


def test_the_sends_of_the_file_end_at_step_five() -> None:
    assert MINE["finish"](*NETWORK, GIVEN["sends"]) == 5


def test_a_chunk_is_not_sent_on_before_it_has_come() -> None:
    early = [[1, 2, 1] if send == [1, 2, 4] else send for send in GIVEN["sends"]]
    assert MINE["finish"](*NETWORK, early) is None


def test_the_farthest_two_are_three_steps_apart() -> None:
    assert MINE["far"](*NETWORK) == 3


def test_two_chunks_over_two_links_of_two_steps_take_two() -> None:
    assert MINE["cut"](*NETWORK, GIVEN["inside"]) == 2


def test_nobody_is_done_before_step_three() -> None:
    assert MINE["bound"](*NETWORK) == 3


def test_around_a_ring_of_four_two_steps_are_enough() -> None:
    order = GIVEN["ring"]
    links = [[npu, order[(place + way) % len(order)], 1] for place, npu in enumerate(order) for way in (1, -1)]
    assert MINE["finish"](len(order), links, MINE["ring"](order)) == 2


def test_the_soonest_sends_end_at_the_bound() -> None:
    assert MINE["finish"](*NETWORK, MINE["gather"](*NETWORK)) == MINE["bound"](*NETWORK)
