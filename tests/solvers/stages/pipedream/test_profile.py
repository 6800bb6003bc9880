"""Reading profiles: what counts of them, and every fault with its line and remedy."""

import pytest

from crossopt.instances.errors import InstanceError
from crossopt.instances.files.graphs import text_of
from crossopt.instances.stages.pipedream import profile_of
from tests.every import every
from tests.paths import reference
from tests.solvers.stages.pipedream.profiles import CHAIN

NODE = "node{} -- Layer -- forward_compute_time=1.0, backward_compute_time=1.0, activation_size={}, parameter_size=0.0\n"


def test_inputs_and_unused_items_are_left_out_and_lists_are_summed() -> None:
    text = CHAIN + NODE.format(5, 4).replace("Layer", "__getitem__(1)") + "\tnode4 -- node5\n"
    profile = profile_of(text, "test")
    assert profile.ids == ("node2", "node3", "node4")
    assert profile.left_out == ("node1", "node5")
    assert profile.seconds.tolist() == [3e-3, 1e-3, 5e-3]
    assert profile.activation.tolist() == [1.5e6, 1e6, 5e5]
    assert profile.parameters.tolist() == [2e6, 0.0, 4e6]
    assert profile.edges == ((0, 1), (1, 2))


def test_an_input_that_takes_something_in_counts_and_items_that_are_used_count() -> None:
    text = NODE.format(1, 4) + NODE.format(2, 4).replace("Layer", "Input") + NODE.format(3, 4).replace("Layer", "__getitem__(0)")
    profile = profile_of(text + NODE.format(4, 4) + "\tnode1 -- node2\n\tnode1 -- node3\n\tnode3 -- node4\n", "test")
    assert set(profile.ids) == {"node1", "node2", "node3", "node4"}


def test_fractions_of_a_byte_are_rounded_up_and_stages_of_other_tools_are_read_over() -> None:
    profile = profile_of(NODE.format(1, 2.5).replace("\n", " -- stage_id=3\n"), "test")
    assert profile.activation.tolist() == [3.0]


@every(
    ("text", "said"),
    [
        ("", "test:1:1: 0 nodes are given"),
        ("hello\n", "test:1:1: 'hello' is neither a node nor an edge"),
        (NODE.format(1, 1) + "\tnode1 > node2\n", "test:2:1: 'node1 > node2' is no edge"),
        (NODE.format(1, 1) + "\tnode1 -- node2\n", "test:2:1: there is no node 'node2'"),
        (NODE.format(1, 1) * 2, "test:2:1: node1: line 1 is about this node already"),
        (NODE.format(1, -1), "test:1:1: node1.activation_size: -1 is below 0"),
        (NODE.format(1, "[1; x]"), "node1.activation_size: 'x' is no number"),
        (NODE.format(1, "nan"), "node1.activation_size: 'nan' is no number"),
        (NODE.format(1, "1e300"), "node1.activation_size: '1e300' is no number that can be worked with"),
        (NODE.format(1, 4e15) + NODE.format(2, 4e15), "8e+15 bytes in all are more than can be counted"),
        (NODE.format(1, 1).replace("backward_compute_time=1.0, ", ""), "test:1:1: node1: the figures forward_compute_time, backward"),
        (NODE.format(1, 1) + "\tnode1 -- node1\n", "test:2:1: the nodes node1 -> node1 form a cycle"),
        (
            NODE.format(1, 1) + NODE.format(2, 1) + "\tnode1 -- node2\n\tnode2 -- node1\n",
            "test:3:1: the nodes node1 -> node2 -> node1 form a cycle",
        ),
        (NODE.format(1, 1).replace("Layer", "Input"), "there are only inputs here"),
    ],
)
def test_a_wrong_profile_names_the_line_and_the_remedy(text: str, said: str) -> None:
    with pytest.raises(InstanceError) as raised:
        profile_of(text, "test")
    assert said in str(raised.value)


def test_all_faults_come_at_once() -> None:
    text = NODE.format(1, -1) + NODE.format(1, 1) + "what\n\tnode1 -- node9\n\tnode8 -- node1\n"
    with pytest.raises(InstanceError) as raised:
        profile_of(text, "test")
    assert [fault.line for fault in raised.value.faults] == [1, 2, 3, 4, 5]


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "nodes", "seconds", "parameters"),
    [("vgg16", 40, 0.672535, 553_430_176), ("resnet50", 176, 0.443419, 102_228_128), ("gnmt", 37, 0.089416, 775_063_808)],
)
def test_the_published_profiles_have_the_sums_they_should(name: str, nodes: int, seconds: float, parameters: int) -> None:
    profile = profile_of(text_of(reference(f"placement/pipedream/{name}/graph.txt")), name)
    assert len(profile) == nodes
    assert profile.seconds.sum() == pytest.approx(seconds, rel=1e-12)
    assert profile.parameters.sum() == parameters
