"""Reading Piper's graphs: every fault with its place and remedy, units that cannot be right, and the published files."""

import json
from pathlib import Path
from typing import Any

import pytest

from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read, read_again
from crossopt.instances.stages.piper import narrowed
from crossopt.solvers.family import described
from crossopt.solvers.stages.piper.family import FAMILY
from tests.every import every
from tests.paths import reference
from tests.solvers.stages.piper.graphs import configuration, document, node, written


def with_configuration(**more: Any) -> dict[str, Any]:  # noqa: ANN401
    return document(nodes=[node(1), node(2, TMPCs={"1": [{**configuration("vanilla", 1.0), **more}]}), node(3)])


AT = "nodes[1].TMPCs.1[0]"
REFUSED = [
    ('{"nodes": [', "this is not JSON"),
    (document(nodes=[]), "nodes: 0 nodes are given"),
    (document(maxDevices=-1), "maxDevices: -1 is below 0"),
    (document(maxDevices=1.5), "maxDevices: '1.5' is no whole number"),
    (document(maxDevices=0), "maxDevices: 0 devices are given, 1 to 16,384 are needed (--devices)"),
    (document(bandwidth=0), "bandwidth: 0.0 bytes/s are given"),
    (document(mbsInBatch=0), "mbsInBatch: 0 microbatches are given"),
    (document(mbsInBatch=None), "mbsInBatch: mbsInBatch is missing"),
    (document(maxMemoryPerDevice=None), "maxMemoryPerDevice: maxMemoryPerDevice is missing"),
    (document(nodes=[node(1), node("1"), node(3)]), "nodes[1].id: '1' is the id of nodes[0] already"),
    (document(nodes=[node(1), node(2, TMPCs={}), node(3)]), "nodes[1].TMPCs: a mapping is needed"),
    (document(nodes=[node(1), node(2, TMPCs={"0": []}), node(3)]), "nodes[1].TMPCs.0: '0' is no number of devices"),
    (document(nodes=[node(1), node(2, TMPCs={"x": []}), node(3)]), "nodes[1].TMPCs.x: 'x' is no number of devices"),
    (document(nodes=[node(1), node(2, TMPCs={"1": []}), node(3)]), "nodes[1].TMPCs.1: a list of configurations is needed"),
    (document(nodes=[node(1), node(2, TMPCs={"1": [5]}), node(3)]), f"{AT}.id: a name is needed"),
    (document(nodes=[node(1), node(2, TMPCs={"1": [configuration("a", 1.0)] * 2}), node(3)]), "TMPCs.1[1].id: 'a' is a configuration"),
    (with_configuration(timePerSample=None), f"{AT}.timePerSample: timePerSample is missing"),
    (with_configuration(timePerSample=-1.0), f"{AT}.timePerSample: -1.0 is below 0"),
    (with_configuration(parameterSize="x"), f"{AT}.parameterSize: 'x' is no number"),
    (with_configuration(memoryUsageA=1e300), f"{AT}.memoryUsageA: '1e+300' is no number that can be worked with"),
    (with_configuration(syncTimeFw=3), f"{AT}.syncTimeFw: a mapping is needed"),
    (with_configuration(syncTimeFw={"9": 1.0}), f"{AT}.syncTimeFw: no edge joins this node and '9'"),
    (with_configuration(syncTimeFw={"1": 1.0}, syncTimeBw={"1": 1.0}), f"{AT}.syncTimeBw: '1' has an entry in syncTimeFw already"),
    (document(edges=[{"sourceId": 1, "destId": 9, "communicationCost": 1.0}]), "edges[0].destId: there is no node 9"),
    (document(edges=[{"sourceId": 1, "destId": 2}]), "edges[0].communicationCost: communicationCost is missing"),
    (document(edges=[{"sourceId": 1, "destId": 2, "communicationCost": 1.0}] * 2), "edges[1]: this edge is edges[0] again"),
    (
        document(edges=[{"sourceId": one, "destId": 3 - one, "communicationCost": 1.0} for one in (1, 2)]),
        "edges: the nodes 1 -> 2 -> 1 form a cycle",
    ),
]


@every(("what", "message"), REFUSED)
def test_a_wrong_graph_names_the_place_and_the_remedy(what: object, message: str, tmp_path: Path) -> None:
    with pytest.raises(InstanceError) as raised:
        read(written(tmp_path, what))
    assert message in str(raised.value)


def test_all_faults_come_at_once(tmp_path: Path) -> None:
    wrong = with_configuration(timePerSample=-1.0, memoryUsageB=None)
    wrong["edges"] = [{"sourceId": 8, "destId": 9, "communicationCost": 1.0}]
    with pytest.raises(InstanceError) as raised:
        read(written(tmp_path, wrong))
    assert len(raised.value.faults) == 4


def test_a_question_in_yaml_names_a_graph_and_says_what_the_graph_does_not(tmp_path: Path) -> None:
    graph, path = written(tmp_path, document()), tmp_path / "question.yaml"
    path.write_text(f"kind: piper\nfile: {graph.name}\ndevices: 7\nwithout: tensor\n", encoding="utf-8")
    question = read(path)
    assert (question.name, question.devices, question.without) == ("question", 7, ("tensor",))
    graph.write_text("[1, 2]", encoding="utf-8")
    assert read_again(question.document, "piper").graph.offers == question.graph.offers
    with pytest.raises(InstanceError, match="a Piper graph is a mapping with the lists `nodes` and `edges`"):
        read(path)


def test_layers_that_nothing_is_left_for_are_named(tmp_path: Path) -> None:
    wide = node(2, TMPCs={"2": [configuration("vanilla", 1.0)]})
    with pytest.raises(InstanceError, match=r"nodes\[1\].TMPCs: no configuration is left without tensor"):
        read(written(tmp_path, document(nodes=[node(1), wide, node(3)])), ("without=tensor",))


def test_it_does_not_matter_in_which_of_the_two_an_edge_stands(tmp_path: Path) -> None:
    one, other = (
        read(written(tmp_path, with_configuration(syncTimeFw=first, syncTimeBw=second))).graph.offers[1][1][0]
        for first, second in (({"1": 5.0}, {"3": 7.0}), ({"3": 7.0}, {"1": 5.0}))
    )
    assert dict(one.entering) == dict(other.entering) == {0: 5.0}
    assert dict(one.leaving) == dict(other.leaving) == {2: 7.0}


def test_a_part_of_a_byte_takes_a_byte_and_is_told(tmp_path: Path) -> None:
    question = read(written(tmp_path, with_configuration(memoryUsageA=3.25)))
    assert question.graph.offers[1][1][0].stashed == 4
    assert any("rounded up" in note for note in question.notes)


def test_settings_replace_what_the_file_says_and_the_question_can_be_asked_again(tmp_path: Path) -> None:
    asked = ("devices=5", "memory=99.5 B", "bandwidth=7 B/s", "microbatches=12", "without=[data, recompute]", "time_unit=ms")
    question = read(written(tmp_path, document()), asked)
    assert (question.devices, question.memory, question.bandwidth, question.degrees) == (5, 99, 7.0, (1,))
    assert [[one.name for one in offer[1]] for offer in question.graph.offers] == [["vanilla"]] * 3
    assert question.graph.offers[0][1][0].time == 1e-3
    again = read_again(json.loads(json.dumps(described(FAMILY, question))), "piper")
    assert described(FAMILY, again) == described(FAMILY, question)
    assert again.graph.offers == question.graph.offers


def test_degrees_divide_the_microbatches_and_are_no_more_than_devices(tmp_path: Path) -> None:
    question = read(written(tmp_path, document()), ("devices=7", "microbatches=12"))
    assert question.degrees == (1, 2, 3, 4, 6)
    assert narrowed(question, ("data",)).degrees == (1,)


@pytest.mark.data
def test_the_published_files_are_in_seconds_and_in_milliseconds() -> None:
    for name, unit, wrong in (("bert32a100", "s", False), ("bert32a100", "ms", True), ("gnmt", "s", True), ("gnmt", "ms", False)):
        question = read(reference(f"placement/piper/{name}.json"), (f"time_unit={unit}",))  # type: ignore[arg-type]
        other = "ms" if unit == "s" else "s"
        assert any(f"--time-unit {other} reads them so" in note for note in question.notes) == wrong
