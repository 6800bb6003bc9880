"""Pipelines over unequal nodes: published answers, equality with all placements, monotony, proofs that are refused, and bad input."""

import json
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise
from math import inf
from random import Random

import pytest
import yaml

from crossopt.crossflow.pipelines import Links, Stage, greatest_flow
from crossopt.formulation.pipelines import best_above, closed_bound, covering, least_rate
from crossopt.instances.counts.pipelines import PipelinesQuestion
from crossopt.instances.errors import InstanceError
from crossopt.reports.shown import text_of
from crossopt.solvers.answer import Limits, Result, unwatched
from crossopt.solvers.checking import check_answer
from crossopt.solvers.counts.pipelines import BY_CHAINS, BY_COVERS, FAMILY, NodeLayers, Placement, TokenFlow, judge, units_within
from crossopt.solvers.family import solve
from tests.extent import FULL
from tests.paths import ROOT
from tests.samples import PIPELINES
from tests.solvers.counts.drawn import best_pipelines, drawn_pipelines, pipelines_in

REFERENCE = ROOT.parent / "shared" / "data" / "serving" / "helix.json"


def solved(question: PipelinesQuestion, engine: str = "auto") -> Result[Placement, TokenFlow]:
    return solve(FAMILY, question, engine, Limits(), unwatched)


def nothing() -> None:
    pass


def test_the_greatest_flow_by_hand() -> None:
    """Two nodes of 3 and 4 over the same half, a third of 6 after them, whose link from the first carries 2: 2 + 4 of it pass."""
    links = Links((9, 9, 0), ((0, 0, 2), (0, 0, 5), (0, 0, 0)), (0, 0, 9))
    flow = greatest_flow((Stage(0, 0, 2, 3), Stage(1, 0, 2, 4), Stage(2, 2, 4, 7)), 4, links)
    assert (flow.value, flow.nodes, flow.links) == (6, (1,), ((0, 2),))
    assert flow.passed == ((-1, 0, 2), (0, 2, 2), (-1, 1, 4), (1, 2, 4), (2, -2, 6))
    late = (Stage(0, 0, 3, 3), Stage(2, 2, 4, 7))  # the second holds layer 2, too
    assert greatest_flow(late, 4, links).value == 0
    assert greatest_flow(late, 4, links, partial=True).value == 2


@pytest.mark.parametrize("start", range(10))
def test_drawn_questions_have_the_best_of_all_placements(start: int) -> None:
    infeasible, seeds = 0, range(start, 1_000 if FULL else 120, 10)
    for seed in seeds:
        question = drawn_pipelines(seed)
        best, found = best_pipelines(question), solved(question)
        assert (found.value, found.bound if found.value else inf) == (None if best == inf else best, best), seed
        assert found.status == ("INFEASIBLE" if best == inf else "OPTIMAL"), seed
        assert bool(found.reasons) == (best == inf), seed
        assert check_answer(FAMILY, found, question).accepted, seed
        assert question.seconds(closed_bound(question)) <= best, seed
        infeasible += best == inf
    assert infeasible < 0.7 * len(seeds)


@pytest.mark.parametrize("name", ["nodes10", "nodes24"])
@pytest.mark.data
def test_the_reference_data_of_helix(name: str) -> None:
    """Ten nodes: the published placement passes what is published, and a search of covers proves it. 24 nodes: more than is published."""
    if not REFERENCE.exists():
        pytest.skip("the reference data are not here")
    data = json.loads(REFERENCE.read_text(encoding="utf-8"))["instances"][name]
    nodes = {one["kind"]: {"number": one["count"], "rates": one["tokens_per_s_by_layers"]} for one in data["kinds"]}
    names = {str(node): f"{one['kind']}-{place}" for one in data["kinds"] for place, node in enumerate(one["nodes"], 1)}
    links = data["links_tokens_per_s"]
    if "pairs" in links:
        ends = {
            ("source", "nodes"): "from_source_or_to_sink",
            ("nodes", "nodes"): "between_nodes",
            ("nodes", "sink"): "from_source_or_to_sink",
        }
        rows = [{"from": sender, "to": receiver, "rate": links[key]} for (sender, receiver), key in ends.items()]
    else:
        pairs = [(key.split("_"), rate) for key, rate in links.items()]
        rows = [{"from": names.get(one, one), "to": names.get(other, other), "rate": rate} for (one, other), rate in pairs]
    question = pipelines_in({"layers": data["layers"], "nodes": nodes, "links": rows})
    assert question.rate(closed_bound(question)) == pytest.approx(data["work_bound"], rel=1e-6)
    found, published = solved(question, "auto" if name == "nodes10" else "stages"), min(one["objective"] for one in data["published"])
    assert found.details is not None
    assert check_answer(FAMILY, found, question).accepted
    if name == "nodes24":
        assert found.details.rate > published
        return
    held = {names[node]: NodeLayers(names[node], *layers) for node, layers in data["published_placement"].items()}
    verdict = judge(question, Placement(tuple(held[node] for node in question.nodes)))
    assert (verdict.details.rate, found.value, found.proved) == (pytest.approx(published, rel=1e-7), verdict.value, True)
    assert found.proof is not None
    assert found.proof.by == BY_COVERS


def test_the_greatest_cover_is_what_partial_inference_passes_over_any_links() -> None:
    """And with links no placement passes more than it."""
    for seed in range(20):
        document = yaml.safe_load(drawn_pipelines(seed).document["text"])
        free = {key: document[key] for key in ("layers", "nodes")}
        question = pipelines_in(free | {"partial": True})
        found = solved(question, "exhaustive")  # which looks at all placements, whatever proves them
        assert found.proved
        most = inf if found.value is None else found.value
        units = units_within(question, most)
        assert covering(question, units + 1, nothing) is None, seed
        if units:
            cover = covering(question, units, nothing)
            assert cover is not None
            assert least_rate(question, cover) == units, seed
        for links in ({"link_rate": 2}, {key: document[key] for key in ("links", "link_rate") if key in document}):
            assert all((solved(pipelines_in(free | links | {"partial": way})).value or inf) >= most for way in (False, True)), seed


def test_more_nodes_and_faster_nodes_or_links_are_never_worse() -> None:
    """Neither the best placement nor the bound by work is."""
    for seed in range(10):
        question, random = drawn_pipelines(seed), Random(seed)
        document = yaml.safe_load(question.document["text"])
        kind = random.choice([*document["nodes"]])
        more, faster, wider = (deepcopy(document) for _ in range(3))
        more["nodes"]["more"] = {"rates": [3, 2]}
        faster["nodes"][kind]["rates"] = [rate + random.choice((0, 1, 4)) for rate in faster["nodes"][kind]["rates"]]
        wider |= (
            {"links": [row | {"rate": row["rate"] + random.choice((0, 2))} for row in document["links"]]} if "links" in document else {}
        )
        for other in map(pipelines_in, (more, faster, wider)):
            found, before = solved(other), solved(question)
            assert (found.value or inf) <= (before.value or inf), seed
            assert found.stopped == before.stopped == "complete"
            assert other.rate(closed_bound(other)) >= question.rate(closed_bound(question)), seed


def test_what_is_not_so_is_refused() -> None:
    question = pipelines_in(yaml.safe_load(PIPELINES))
    found = solved(question)
    assert (found.status, found.proof is not None) == ("OPTIMAL", True)
    assert found.answer is not None
    assert found.details is not None
    [first, *others] = found.answer.nodes
    moved = replace(found, answer=Placement((replace(first, first=first.first + 1), *others)))
    slower = judge(question, solved(pipelines_in(yaml.safe_load(PIPELINES) | {"link_rate": 0})).answer or found.answer)
    forged = {
        "value": replace(found, value=0.5 * (found.value or 0.0), bound=0.5 * (found.value or 0.0)),
        "placement": moved,
        "twice": replace(found, answer=Placement((first, first, *others))),
        "stranger": replace(found, answer=Placement((replace(first, node="stranger"), *others))),
        "layers": replace(found, answer=Placement((replace(first, layers=9), *others))),
        "link": replace(found, details=replace(found.details, links=found.details.links[1:])),
        "cut": replace(found, details=replace(found.details, cut=())),
        "infeasible": replace(
            found, status="INFEASIBLE", answer=None, details=None, value=None, bound=inf, gap=None, trace=(), baselines=()
        ),
    }
    assert slower.value == found.value  # rows of links say more than the rate of all others
    assert [name for name, result in forged.items() if check_answer(FAMILY, result, question).accepted] == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"layers": 0}, "layers: '0' is too small (at least 1)"),
        ({"nodes": {}}, "nodes: 0 kinds of nodes are given, 1 to 50 are needed"),
        ({"nodes": {"a": {"rates": []}}}, "hold no layer"),
        ({"nodes": {"a": {"rates": [".nan"]}}}, "nodes.a.rates[0]"),
        ({"nodes": {"a": {"rates": [-3]}}}, "'-3' is too small (at least 0)"),
        ({"nodes": {"a": {"rates": [0]}}}, "nodes.a.rates[0]"),
        ({"nodes": {"a": {"rates": [1], "number": 0}}}, "0 nodes are given, 1 to 200 are needed"),
        ({"nodes": {"source": {"rates": [1]}}}, "is an end of links"),
        ({"nodes": {"a-1": {"rates": [1]}, "a": {"rates": [1], "number": 2}}}, "is the name of another node, too"),
        ({"links": [{"from": "odl", "to": "sink", "rate": 1}]}, "there is no node 'odl' (did you mean old?)"),
        ({"links": [{"from": "sink", "to": "old", "rate": 1}]}, "no link goes from the sink"),
        ({"links": [{"from": "source", "to": "sink", "rate": 1}]}, "through nodes"),
        ({"links": [{"from": "old-1", "to": "old-1", "rate": 1}]}, "a node needs no link to itself"),
        ({"links": [{"from": "source", "to": "old", "rate": 1}, {"from": "source", "to": "old-2", "rate": 2}]}, "stands in item 0, too"),
        ({"links": [{"from": "source", "to": "old", "rate": -1}]}, "links[0].rate"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(change: dict[str, object], said: str) -> None:
    with pytest.raises(InstanceError) as refused:
        pipelines_in(yaml.safe_load(PIPELINES) | change)
    assert said in str(refused.value)
    assert len(refused.value.faults) == 1, refused.value


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"layers": 11}, "layers: all nodes together hold 10 of 11 layers"),
        ({"links": []}, "links: there is none that links the source to a node"),
        ({"links": [{"from": "source", "to": "nodes", "rate": 5}]}, "links: there is none that links the sink from a node"),
        ({"links": [{"from": end, "to": to, "rate": 5} for end, to in (("source", "old"), ("new", "sink"))]}, "links: no chain of nodes"),
    ],
)
def test_what_passes_no_tokens_says_why(change: dict[str, object], reason: str) -> None:
    question = pipelines_in(yaml.safe_load(PIPELINES) | change)
    found = solved(question)
    assert (found.status, found.proved) == ("INFEASIBLE", True)
    assert found.reasons[0].startswith(reason)
    assert reason in " ".join(text_of("pipelines", question, found).split())


def test_a_single_chain_is_found_where_links_are_few() -> None:
    """24 nodes in a ring of links, of which each holds up to 2 of 40 layers."""
    names = [f"a-{place}" for place in range(1, 25)]
    rows = [{"from": one, "to": other, "rate": 3} for one, other in pairwise(names)]
    rows += [{"from": "source", "to": names[2], "rate": 9}, {"from": names[-1], "to": "sink", "rate": 9}]
    found = solved(pipelines_in({"layers": 40, "nodes": {"a": {"number": 24, "rates": [7, 2]}}, "links": rows}))
    assert found.details is not None
    assert found.details.rate == 2.0


def test_links_without_a_chain_for_all_layers_are_proved_infeasible() -> None:
    """There are too many placements of nine nodes to look at each; the only chain from the source to the sink holds 12 of 20 layers."""
    names = [f"n{place}" for place in range(9)]
    path = ["source", *names[:3], "sink"]
    links = [{"from": sender, "to": receiver, "rate": 50} for sender, receiver in [*pairwise(path), *pairwise(names[3:]), ("n8", "n3")]]
    question = pipelines_in(
        {"kind": "pipelines", "layers": 20, "nodes": {name: {"rates": [40, 30, 20, 10]} for name in names}, "links": links}
    )
    found = solved(question)
    assert (found.status, found.proved_by, found.reasons) == (
        "INFEASIBLE",
        BY_CHAINS,
        ("links: no chain of nodes with links holds all layers",),
    )
    assert check_answer(FAMILY, found, question).accepted


def test_a_node_without_links_makes_the_search_of_all_placements_no_longer() -> None:
    question = drawn_pipelines(12)
    document = yaml.safe_load(question.document["text"])
    document["nodes"]["more"] = {"rates": [1, 1]}
    found, other = (best_above(one, 0, nothing, 40_000) for one in (question, pipelines_in(document)))
    assert found is not None
    assert other is not None
    assert other[1].value == found[1].value
