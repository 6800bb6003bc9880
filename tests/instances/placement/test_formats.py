"""Reading placement graphs: every fault with its place and remedy, units that cannot be right, and the published files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read, read_again
from crossopt.solvers.family import described
from crossopt.solvers.placement.family import FAMILY
from tests.every import every
from tests.paths import reference


def node(name: int, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"id": name, "supportedOnFpga": 1, "cpuLatency": 10.0, "fpgaLatency": 1.0, "isBackwardNode": 0, "size": 8.0, **more}


def document(**more: Any) -> dict[str, Any]:  # noqa: ANN401
    edges = [{"sourceId": 1, "destId": 2, "cost": 0.5}, {"sourceId": 1, "destId": 3, "cost": 0.5}]
    return {"maxFPGAs": 2, "maxCPUs": 1, "maxSizePerFPGA": 16.0, "nodes": [node(1), node(2), node(3)], "edges": edges, **more}


def written(path: Path, what: object) -> Path:
    target = path / "graph.json"
    target.write_text(what if isinstance(what, str) else json.dumps(what), encoding="utf-8")
    return target


REFUSED = [
    ("[1, 2]", "a placement graph is a mapping with the lists `nodes` and `edges`"),
    ('{"nodes": [', "this is not JSON"),
    ('{"nodes": NaN}', "NaN is no number"),
    (document(nodes=[]), "nodes: 0 nodes are given"),
    (document(maxFPGAs=-1), "maxFPGAs: -1 is below 0"),
    (document(maxFPGAs=1.5), "maxFPGAs: '1.5' is no whole number"),
    (document(maxFPGAs=0, maxCPUs=0), "0 accelerators and 0 CPUs are given"),
    (document(maxSizePerFPGA=None), "maxSizePerFPGA: maxSizePerFPGA is missing"),
    (document(nodes=[node(1), node(2, fpgaLatency=10**400), node(3)]), "nodes[1].fpgaLatency: '1000"),
    (document(nodes=[node(1), node(2, size=1e300), node(3)]), "is no number that can be worked with"),
    (document(nodes=[node(1), node(2, id="1"), node(3)]), "nodes[1].id: '1' is the id of nodes[0] already"),
    (document(nodes=[node(1), node(1), node(3)]), "nodes[1].id: 1 is the id of nodes[0] already"),
    (document(nodes=[node(1), node(2, fpgaLatency=-1.0), node(3)]), "nodes[1].fpgaLatency: -1.0 is below 0"),
    (document(nodes=[node(1), node(2, fpgaLatency="x"), node(3)]), "nodes[1].fpgaLatency: 'x' is no number"),
    (document(nodes=[node(1), node(2, isBackwardNode=7), node(3)]), "nodes[1].isBackwardNode: '7' is neither true nor false"),
    (document(edges=[{"sourceId": 1, "destId": 9, "cost": 1.0}]), "edges[0].destId: there is no node 9"),
    (
        document(edges=[{"sourceId": 1, "destId": 2, "cost": 1.0}, {"sourceId": 1, "destId": 3, "cost": 2.0}]),
        "edges[1].cost: the output of node 1 costs 2.0 here and 1.0 in edges[0]",
    ),
    (
        document(edges=[{"sourceId": 1, "destId": 2, "cost": 1.0}, {"sourceId": 2, "destId": 1, "cost": 1.0}]),
        "edges: the nodes 1 -> 2 -> 1 form a cycle",
    ),
]


@every(("what", "message"), REFUSED)
def test_a_wrong_graph_names_the_place_and_the_remedy(what: object, message: str, tmp_path: Path) -> None:
    with pytest.raises(InstanceError) as raised:
        read(written(tmp_path, what))
    assert message in str(raised.value)
    assert "Traceback" not in str(raised.value)


def test_all_faults_come_at_once(tmp_path: Path) -> None:
    wrong = document(nodes=[node(1, size=-1), node(2, cpuLatency=None), node(3)], edges=[{"sourceId": 8, "destId": 9, "cost": 1.0}])
    with pytest.raises(InstanceError) as raised:
        read(written(tmp_path, wrong))
    assert len(raised.value.faults) == 4


def test_ids_may_be_words_and_colours_may_be_missing(tmp_path: Path) -> None:
    words = document(
        nodes=[node(1, id="a", colorClass=5), node(2, id="b"), node(3, id="c", colorClass=5)],
        edges=[{"sourceId": "a", "destId": "b", "cost": 1.0}],
    )
    graph = read(written(tmp_path, words)).graph
    assert graph.ids == ("a", "b", "c")
    assert graph.colour.tolist() == [0, 1, 0]
    assert graph.transfer.tolist() == [1.0, 0.0, 0.0]


def test_settings_replace_what_the_file_says_and_the_question_can_be_asked_again(tmp_path: Path) -> None:
    asked = ("devices=5", "cpus=0", "memory=99 B", "contiguous=no", "edge_unit=s")
    question = read(written(tmp_path, document()), asked)
    assert (question.accelerators, question.cpus, question.memory) == (5, 0, 99.0)
    assert question.graph.transfer.tolist() == [500.0, 0.0, 0.0]
    again = read_again(described(FAMILY, question), "placement")
    assert described(FAMILY, again) == described(FAMILY, question)
    assert np.array_equal(again.graph.transfer, question.graph.transfer)


@pytest.mark.parametrize(("size", "said"), [(0.5e6, False), (1.5e9, True), (5e2, True)])
def test_links_of_impossible_speed_are_told(size: float, said: bool, tmp_path: Path) -> None:
    """Half a millisecond for half a megabyte is a gigabyte a second."""
    edges = [{"sourceId": 1, "destId": 2, "cost": 0.5, "size": size}]
    notes = read(written(tmp_path, document(edges=edges))).notes
    assert bool(notes) == said
    assert ("a thousand times too fast" in "".join(notes)) == (size > 1e6)


@pytest.mark.data
def test_the_published_layer_graphs_have_costs_in_seconds() -> None:
    for kind, wrong in (("layer/bert24_inference", True), ("operator/bert_l-3_inference", False)):
        path = reference(f"placement/throughput/{kind}.json")
        assert bool(read(path).notes) == wrong
        assert read(path, ("edge_unit=s",)).notes == ()
