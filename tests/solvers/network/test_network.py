"""Bandwidths of networks and schedules of collectives: published workloads, by hand, and against every choice of small questions."""

import random
import re
from collections import defaultdict
from dataclasses import replace
from itertools import product
from math import inf, sqrt
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from crossopt.formulation.model import Scheduled, Shop
from crossopt.formulation.network import (
    Multipliers,
    Program,
    bound_of,
    chunk_loads,
    compositions,
    least_steps,
    least_time,
    sends_model,
    weighed_bound,
)
from crossopt.instances.errors import InstanceError, RefusedError
from crossopt.instances.network.collective import CollectiveQuestion
from crossopt.instances.network.question import NetworkQuestion
from crossopt.instances.network.synthesis import SynthesisQuestion
from crossopt.instances.question import read, read_given
from crossopt.reports.cli import main
from crossopt.reports.sheets.networks import collective_sheet, network_sheet
from crossopt.reports.sheets.sheet import Sheet, Table
from crossopt.solvers.answer import Limits, Result, unwatched
from crossopt.solvers.backends import Spend, backend
from crossopt.solvers.backends.cpsat import scheduled
from crossopt.solvers.checking import check, check_answer
from crossopt.solvers.family import solve
from crossopt.solvers.network.collective import engines
from crossopt.solvers.network.collective.engines import weights_of
from crossopt.solvers.network.collective.family import FAMILY as COLLECTIVE
from crossopt.solvers.network.collective.family import Chunks, as_run, themis
from crossopt.solvers.network.family import FAMILY as NETWORK
from crossopt.solvers.network.family import Bandwidths, Network
from crossopt.solvers.network.synthesis.family import FAMILY as SYNTHESIS
from crossopt.solvers.network.synthesis.family import Sends, judge
from crossopt.solvers.proofs import Tangent, Tangents
from tests.extent import examples
from tests.paths import INSTANCES, ROOT, reference
from tests.solvers.network.drawn import catalogue, chunks, least_of

# Bandwidths of networks: LIBRA's published workloads, by hand, against every choice of a catalogue, and against random networks.

SHIPPED = INSTANCES / "network/three-models-4096.yaml"
WORDS = {"ALLREDUCE": "all_reduce", "ALLGATHER": "all_gather", "REDUCESCATTER": "reduce_scatter", "ALLTOALL": "all_to_all"}
SHAPES = {"Ring": "ring", "FullyConnected": "fully_connected", "Switch": "switch"}


def asked(folder: Path, document: object, *settings: str) -> NetworkQuestion:
    path = folder / "question.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    found = read(path, settings)
    assert isinstance(found, NetworkQuestion)
    return found


def answered(question: NetworkQuestion) -> Result[Bandwidths, Network]:
    return solve(NETWORK, question, "auto", Limits(), unwatched)


def libra(workload: str, groups: str, network: str, total: float = 500.0) -> dict[str, object]:
    """A question in LIBRA's own files, which gives groups that are parts of dimensions all of their bandwidth."""
    shapes = yaml.safe_load(reference(f"network/libra/network/{network}.yml").read_text(encoding="utf-8"))
    members = yaml.safe_load(reference(f"network/libra/communicator/{groups}.yml").read_text(encoding="utf-8"))
    compute, sent = 0, defaultdict[tuple[str, str], int](int)
    for line in reference(f"network/libra/workload/{workload}.txt").read_text(encoding="utf-8").splitlines():
        words = line.split()
        for place, phase in enumerate(("Forward", "InputGrad", "WeightGrad")):
            compute += int(words[2 + 3 * place])
            if words[3 + 3 * place] in WORDS:
                sent[phase, WORDS[words[3 + 3 * place]]] += int(words[4 + 3 * place])
    collectives = [
        {"collective": what, "bytes": f"{size} B", "group": [max(count, 1) for count in members[phase]]}
        for (phase, what), size in sent.items()
    ]
    return {
        "kind": "network",
        "part_groups": "whole",
        "dimensions": [
            {"name": f"d{place}", "shape": SHAPES[shape], "size": size}
            for place, (shape, size) in enumerate(zip(shapes["Topology"], shapes["NpusCount"], strict=True))
        ],
        "budget": {"total": f"{total} GB/s"},
        "workloads": [{"name": workload, "compute": f"{compute} ns", "collectives": collectives}],
    }


COSTLY = """\
kind: network
dimensions:
  - {name: a, shape: switch, size: 3, tier: chiplet, at_least: 50 GB/s, at_most: 50 GB/s}
  - {name: b, shape: switch, size: 3, tier: pod, options: [50 GB/s, 25 GB/s]}
  - {name: c, shape: fully_connected, size: 8, tier: package, options: [25 GB/s]}
workloads: [{name: w, collectives: [{collective: all_reduce, bytes: 1 GB, group: [3, 2, 8]}]}]
budget: {cost: BUDGET USD}
"""


def test_what_a_network_costs_is_a_budget_that_it_keeps() -> None:
    """117,720 USD, of which floating point makes less by a last digit when it adds the dimensions up."""
    found = solve(NETWORK, read_given(COSTLY.replace("BUDGET", "1000000"), "network"), "tangents", Limits(), unwatched)
    assert found.details.cost == 117720.0
    again = solve(NETWORK, read_given(COSTLY.replace("BUDGET", repr(found.details.cost)), "network"), "tangents", Limits(), unwatched)
    assert (again.value, again.answer) == (found.value, found.answer)


@pytest.mark.data
@pytest.mark.parametrize(
    ("workload", "groups", "network", "milliseconds", "equal", "gain"),
    [
        ("MSFT_1T", "MSFT_1T_4d", "4d_network", 39.69116, 90.4837, 1.2422),
        ("GPT_3", "GPT_3_4d", "4d_network", 37.96354, 90.5970, 1.0729),
        ("Turing_NLG", "Turing_NLG_4D", "4d_network", 3.47695, 10.4334, 1.0210),
        ("ResNet_50", "ResNet_50_4d", "4d_network", 0.20397, 0.6121, 1.3141),
        ("MSFT_1T", "MSFT_1T_3d", "3d_network", 39.69116, 84.1702, 1.2121),
        ("GPT_3", "GPT_3_3d", "3d_network", 42.99173, 86.2936, 1.0595),
    ],
)
def test_libras_workloads(workload: str, groups: str, network: str, milliseconds: float, equal: float, gain: float, tmp_path: Path) -> None:
    question = asked(tmp_path, libra(workload, groups, network))
    result = answered(question)
    assert result.value is not None
    assert result.bound is not None
    assert (result.value - question.compute) * 1e3 == pytest.approx(milliseconds, abs=5.1e-6)
    assert result.gap is not None
    assert 0.0 <= result.gap <= 1e-8
    baseline = next(one for one in result.baselines if one.name == "equal bandwidths")
    assert baseline.value is not None
    assert (baseline.value - question.compute) * 1e3 == pytest.approx(equal, abs=5.1e-5)
    assert baseline.value / result.value == pytest.approx(gain, abs=5.1e-5)


@pytest.mark.data
def test_orders_sums_and_a_given_bandwidth(tmp_path: Path) -> None:
    """LIBRA's constraints on GPT-3: the first dimension has 500 GB/s, the last two 200 together, and none of the first three more than the
    one before."""
    document = libra("GPT_3", "GPT_3_4d", "4d_network", 1000.0)
    document |= {"descending": ["d0", "d1", "d2"], "together": [{"dimensions": ["d2", "d3"], "at_most": "200 GB/s"}]}
    question = asked(tmp_path, document, "dimensions.0.bandwidth=500 GB/s")
    result = answered(question)
    assert result.status == "OPTIMAL"
    assert result.value is not None
    assert result.answer is not None
    assert (result.value - question.compute) * 1e3 == pytest.approx(23.9905, abs=5.1e-5)
    first, second, third, fourth = (rate / 1e9 for rate in result.answer.bandwidths)
    assert (first, third, fourth) == pytest.approx((500.0, 151.18, 48.82), rel=2e-4)
    assert third <= second <= 300.0, "the second has more than it needs, so that any of these is as good"


@pytest.mark.parametrize(
    ("shape", "members", "share"),
    [
        ("fully_connected", 2, 1 / 7),
        ("fully_connected", 4, 3 / 7),
        ("fully_connected", 8, 1.0),
        ("ring", 2, 0.5),
        ("ring", 8, 1.0),
        ("switch", 2, 1.0),
    ],
)
def test_a_part_of_a_dimension_has_the_links_among_its_own(shape: str, members: int, share: float, tmp_path: Path) -> None:
    """Of 280 GB/s each of eight that are joined has 40 to each other, and a ring 140 to either side; a switch gives all to anybody."""
    sent = {"collective": "all_gather", "bytes": "1 GB", "group": [members]}
    dimension = {"name": "node", "shape": shape, "size": 8, "bandwidth": "280 GB/s"}
    document = {"kind": "network", "dimensions": [dimension], "budget": {}, "workloads": [{"name": "all", "collectives": [sent]}]}
    result = answered(asked(tmp_path, document))
    assert result.value == pytest.approx((members - 1) / 280 / share, rel=1e-12)
    assert result.gap is not None
    assert 0.0 <= result.gap <= 1e-8
    assert answered(asked(tmp_path, document, "part_groups=whole")).value == pytest.approx((members - 1) / 280, rel=1e-12)
    told = network_sheet(asked(tmp_path, document), result).sections[-1].parts[0]
    assert any(one.startswith(f"{members} of the 8 of node have {share:.1%}") for one in told) == (share < 1.0)


def test_a_collective_that_is_sent_several_times_takes_as_often_as_long(tmp_path: Path) -> None:
    """Of 280 GB/s an all-gather among eight takes 7 / 280 s for each GB, in all dimensions' bytes and in the value."""
    sent = {"collective": "all_gather", "bytes": "1 GB", "group": [8], "count": 3}
    dimension = {"name": "node", "shape": "switch", "size": 8, "bandwidth": "280 GB/s"}
    document = {"kind": "network", "dimensions": [dimension], "budget": {}, "workloads": [{"name": "all", "collectives": [sent]}]}
    result = answered(asked(tmp_path, document))
    assert result.value == pytest.approx(3 * 7 / 280, rel=1e-12)
    assert result.details is not None
    assert [(one.bytes, one.seconds) for one in result.details.exchanged] == [(pytest.approx((21e9,)), pytest.approx((3 * 7 / 280,)))]


@pytest.mark.parametrize(("size", "members", "passed"), [(16, 16, 4.0), (3, 3, 2 / 3), (2, 2, 1 / 2), (16, 4, 2.0), (16, 2, 1.0)])
def test_all_to_all_on_a_ring_passes_the_links_of_others(size: int, members: int, passed: float, tmp_path: Path) -> None:
    """Around all of a ring of 16 a byte for each other NPU goes 1 to 8 links, 64 / 16 of the bytes of each in all; on a line of four the
    middle link has 4 / 4 of them either way, over half of the bandwidth. Of two dimensions that have 400 GB/s together the ring then takes
    the greater part."""
    sent = {"collective": "all_to_all", "bytes": "1 GB", "group": [members, 16]}
    shapes = [{"name": "ring", "shape": "ring", "size": size}, {"name": "switch", "shape": "switch", "size": 16}]
    workloads = [{"name": "all", "collectives": [sent]}]
    document = {"kind": "network", "dimensions": shapes, "budget": {"total": "400 GB/s"}, "workloads": workloads}
    result = answered(asked(tmp_path, document))
    assert result.value == pytest.approx((passed + 15 / 16) / 400, rel=1e-8)
    assert answered(asked(tmp_path, document, "part_groups=whole")).value == pytest.approx((1 - 1 / members + 15 / 16) / 400, rel=1e-8)
    told = network_sheet(asked(tmp_path, document), result).sections[-1].parts[0]
    assert any("as all to all it passes the links of others" in one for one in told) == (passed > 1 - 1 / members)


@pytest.mark.parametrize(("orders", "least"), [((), (100, 50, 100)), (("[other, third]",), (100, 100, 100))])
def test_of_catalogues_nothing_is_bought_that_no_collective_waits_for(
    orders: tuple[str, ...], least: tuple[int, ...], tmp_path: Path
) -> None:
    """An all-reduce of 1 GB takes 10 ms on the first dimension and half of that at 100 GB/s on the second, so that 50 do. The second may be
    told to have no less than the third, which needs all it can have."""
    sent = [{"collective": "all_reduce", "bytes": "1 GB", "group": group} for group in ([2, 2, 1], [1, 1, 2])]
    first, *others = ({"name": name, "shape": "switch", "size": 2} for name in ("first", "other", "third"))
    shapes = [first | {"bandwidth": "100 GB/s"}, *(one | {"options": ["50 GB/s", "100 GB/s"]} for one in others)]
    document = {"kind": "network", "dimensions": shapes, "budget": {"total": "600 GB/s"}}
    document["workloads"] = [{"name": "all", "collectives": sent}]
    result = answered(asked(tmp_path, document, *(f"descending={order}" for order in orders)))
    assert result.answer is not None
    assert [rate / 1e9 for rate in result.answer.bandwidths] == [*least]
    assert result.value == pytest.approx(0.02)


def two(first: int, second: int) -> dict[str, object]:
    """A collective on either of two dimensions of two, of which each moves so many bytes."""
    sides = [
        {"collective": "reduce_scatter", "bytes": f"{2 * size} B", "group": group} for size, group in ((first, [2, 1]), (second, [1, 2]))
    ]
    return {
        "kind": "network",
        "dimensions": [{"name": name, "shape": "ring", "size": 2, "tier": "chiplet"} for name in ("in", "out")],
        "budget": {"total": "100 GB/s"},
        "workloads": [{"name": "both", "collectives": sides}],
    }


def test_bandwidth_goes_by_the_square_root_of_the_bytes(tmp_path: Path) -> None:
    """m / B + n / (S - B) is least at B = S sqrt(m) / (sqrt(m) + sqrt(n)), where it is (sqrt(m) + sqrt(n))^2 / S."""
    result = answered(asked(tmp_path, two(9_000_000_000, 1_000_000_000)))
    assert result.answer is not None
    assert result.value == pytest.approx((sqrt(9.0) + sqrt(1.0)) ** 2 / 100.0, rel=1e-9)
    assert [rate / 1e9 for rate in result.answer.bandwidths] == pytest.approx([75.0, 25.0], rel=1e-6)
    baselines = {one.name: one.value for one in result.baselines}
    assert baselines["by bytes"] == pytest.approx(9.0 / 90.0 + 1.0 / 10.0, rel=1e-9)
    assert baselines["by root of bytes"] == pytest.approx(16.0 / 100.0, rel=1e-9)
    assert baselines["equal bandwidths"] == pytest.approx(10.0 / 50.0, rel=1e-9)


def test_where_money_is_limited_the_root_is_of_bytes_over_prices(tmp_path: Path) -> None:
    """Money of p B + q C is best spent where B / C is the root of (m / p) / (n / q), as it is on one dimension for each collective."""
    document = two(9_000_000_000, 1_000_000_000) | {"budget": {"cost": "1000 USD"}}
    document["dimensions"] = [{"name": n, "shape": "ring", "size": 2, "prices": {"link": p}} for n, p in (("in", 4.0), ("out", 1.0))]
    result = answered(asked(tmp_path, document))
    assert {one.name: one.value for one in result.baselines}["by root of bytes"] == pytest.approx(result.value, rel=1e-7)
    assert solve(NETWORK, asked(tmp_path, document), "root", Limits(), unwatched).answer == result.baselines[-1].answer


def test_a_price_that_only_rounding_brings_to_zero_bounds_nothing_of_an_endless_bandwidth() -> None:
    """Five times 0.1 is 0.5 as computed, and a little more in fact: B at 0.5 less that is worth less the more there is of it."""
    program = Program(sent=((1.0,),), linear=(0.5,), factors=((-0.1,),), most=(0.0,), lows=(1.0,), highs=(inf,))
    assert bound_of(program, Multipliers(shares=((1.0,),), prices=(5.0,))) == -inf
    assert 0.0 < bound_of(program, Multipliers(shares=((1.0,),), prices=(0.0,))) <= 2.0 * sqrt(0.5)


def test_multipliers_of_any_kind_are_a_bound() -> None:
    """Of that question, at B = (75, 25), at twice the price and at half of it, at other shares, and never above 0.16 s."""
    program = Program(((9e9, 0.0), (0.0, 1e9)), (0.0, 0.0), ((1.0, 1.0),), (1e11,), (1e7, 1e7), (inf, inf))
    right = ((1.0, 0.0), (0.0, 1.0))
    assert bound_of(program, Multipliers(right, (1.6e-12,))) == pytest.approx(0.16, rel=1e-9)
    draw = random.Random(1)
    for _ in range(200):
        shares = tuple((draw.random(), draw.random()) for _ in range(2))
        assert bound_of(program, Multipliers(shares, (draw.random() * 1e-11,))) < 0.16
    with pytest.raises(ValueError, match="multipliers are numbers of zero and more"):
        bound_of(program, Multipliers(right, (-1.0,)))


def test_a_catalogue_is_searched_as_if_every_choice_were_looked_at() -> None:
    options = {"chiplet": (50, 150, 300, 400), "package": (50, 100, 150), "node": (25, 50, 200), "pod": (12.5, 25, 50, 100)}
    settings = [f"dimensions.{place}.options=[{', '.join(f'{one} GB/s' for one in options[name])}]" for place, name in enumerate(options)]
    question = read(SHIPPED, (*settings, "descending=[package, node]"))
    result, least = answered(question), inf
    for chosen in product(*options.values()):
        verdict = NETWORK.judge(question, Bandwidths(tuple(one * 1e9 for one in chosen)))
        least = least if verdict.violations else min(least, verdict.value)
    assert (result.value, result.status) == (least, "OPTIMAL")


@pytest.mark.parametrize("seed", range(12))
def test_random_catalogues_are_searched_as_if_every_choice_were_looked_at(seed: int) -> None:
    question, least = catalogue(seed)
    result = answered(question)
    assert result.status == ("OPTIMAL" if least < inf else "INFEASIBLE")
    assert (inf if result.value is None else result.value) == pytest.approx(least, rel=1e-12)


def test_no_network_at_hand_is_better_for_its_cost() -> None:
    settings = ("budget={at_least: 600 GB/s}", "objective=time_cost")
    question = read(SHIPPED, settings)
    result = answered(question)
    assert result.status == "OPTIMAL"
    assert result.answer is not None
    assert result.value is not None
    draw = random.Random(2)
    for _ in range(200):
        rates = [rate * 2.0 ** draw.gauss(0.0, 0.1) for rate in result.answer.bandwidths]
        verdict = NETWORK.judge(question, Bandwidths(tuple(rate * 600.0001e9 / sum(rates) for rate in rates)))
        assert verdict.accepted
        assert verdict.value >= result.bound


def test_steep_lines_bound_no_more_than_the_best_network_costs(tmp_path: Path) -> None:
    """A line that is zero about the least cost, and falls by 1e20 to 1e180 a USD."""
    document = two(9_000_000_000, 1_000_000_000) | {"budget": {"at_least": "100 GB/s"}, "objective": "time_cost"}
    document["dimensions"] = [{"name": n, "shape": "ring", "size": 2, "prices": {"link": p}} for n, p in (("in", 3.7), ("out", 1.3))]
    document["workloads"] = [{**document["workloads"][0], "compute": "10 ms"}]  # type: ignore[index]
    question, draw = asked(tmp_path, document), random.Random(3)
    result = answered(question)
    assert result.value is not None
    assert isinstance(result.proof, Tangents)
    cheapest = Multipliers((), result.proof.tangents[0].prices)
    for _ in range(2_000):
        price = 10.0 ** draw.uniform(20.0, 180.0)
        lines = [Multipliers(((0.0, 0.0),) * 2, (*(price * one for one in cheapest.prices), price))]
        assert weighed_bound(question, cheapest, lines)[0] <= result.value
    short = replace(result, proof=replace(result.proof, tangents=(*result.proof.tangents[:1], Tangent((), (1e-8,)))))
    family: object = NETWORK
    assert any("prices and shares of" in text for text in check(family, short, Path()).refused)  # type: ignore[arg-type]


def test_a_dimension_costs_by_all_its_links(tmp_path: Path) -> None:
    """64 NPUs: 16 rings of 8 links of B / 2 each at 7 USD; the switch of 16 above them joins all by a link each, at 8."""
    document = two(1, 1) | {
        "dimensions": [
            {"name": "in", "shape": "ring", "size": 4, "prices": {"link": 4, "nic": 3, "switch": 50}},
            {"name": "out", "shape": "switch", "size": 16, "prices": {"link": 1, "nic": 2, "switch": 5}},
        ]
    }
    question = asked(tmp_path, document)
    assert question.costs == (16 * 8 / 2 * 7.0 / 1e9, 64 * 8.0 / 1e9)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("workloads.0.collectives.0.group=[4, 8]", "2 numbers are given for 4 dimensions"),
        ("workloads.0.collectives.0.group=[4, 16, 1, 1]", "more members than the 8 NPUs along 'package'"),
        ("workloads.0.collectives.0.group=[4, -1, 1, 1]", "too small"),
        ("descending=[chiplet, pakage]", "did you mean 'package'"),
        ("budget={}", "nothing limits 'chiplet'"),
        ("budget={at_least: 1 GB/s}", "more bandwidth only shortens the time"),
        ("objective=time_cost", "time_cost weighs what bandwidth costs"),
        ("dimensions.0.at_most=1 MB/s", "at_most is below at_least"),
        ("dimensions.1.name=chiplet", "two dimensions 'chiplet'"),
        ("dimensions.0.bandwidth=0 GB/s", "bandwidths lie between"),
    ],
)
def test_faults_are_told_in_a_sentence(setting: str, words: str) -> None:
    with pytest.raises(InstanceError, match=words):
        read(SHIPPED, (setting,))


# Chunks of collectives: against every sequence of few chunks, on the networks of Themis's study, and by hand.

COLLECTIVE_SHIPPED = INSTANCES / "network/all-reduce-torus.yaml"
Link = tuple[str, int, float, float, str]
NETWORKS: dict[str, tuple[Link, ...]] = {
    "ring x switch": (("ring", 4, 200, 500, "ring"), ("switch", 8, 50, 1000, "halving_doubling")),
    "full x switch": (("fully_connected", 8, 50, 500, "direct"), ("switch", 4, 25, 1000, "halving_doubling")),
    "switch x switch": (("switch", 8, 200, 700, "halving_doubling"), ("switch", 8, 100, 1700, "halving_doubling")),
    "torus": (("ring", 4, 80, 1000, "ring"), ("ring", 8, 80, 1000, "ring")),
    "switch x ring": (("switch", 8, 400, 936.25, "ring"), ("ring", 2, 50, 1000, "ring")),
    "three": (("ring", 2, 200, 50, "ring"), ("fully_connected", 8, 100, 500, "direct"), ("switch", 4, 50, 2000, "halving_doubling")),
}
FLUID = {"ring x switch": 8.750, "full x switch": 7.500, "switch x switch": 6.562, "torus": 12.109, "switch x ring": 4.167, "three": 2.072}
"""ms of an all-reduce of 1 GiB where chunks are infinitely small and links have no latency."""


def collective_asked(folder: Path, links: tuple[Link, ...], chunks: list[int], **more: Any) -> CollectiveQuestion:  # noqa: ANN401 - keys of a file
    document = {
        "kind": "collective",
        "bytes": "1 GiB",
        "chunks": chunks,
        "dimensions": [
            {"name": f"d{place}", "shape": shape, "size": size, "bandwidth": f"{rate} GiB/s", "latency": f"{wait} ns", "algorithm": how}
            for place, (shape, size, rate, wait, how) in enumerate(links)
        ],
    } | more
    path = folder / "question.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    found = read(path, ())
    assert isinstance(found, CollectiveQuestion)
    return found


@pytest.mark.parametrize("name", list(NETWORKS))
def test_orders_are_proved_best_and_beat_themis(name: str, tmp_path: Path) -> None:
    """On five of six networks for 8, 12, 16 and 24 chunks at once; three dimensions take a solver."""
    question = collective_asked(tmp_path, NETWORKS[name], [8, 12, 16, 24])
    result = solve(COLLECTIVE, question, "search", Limits(0.3), unwatched)
    assert result.value is not None
    assert result.bound is not None
    assert result.value >= FLUID[name] * 1e6
    assert (result.status == "OPTIMAL") == (name != "three")
    at_sixteen = as_run(question, 16, themis(question, 16))[0]
    assert at_sixteen / result.value >= (1.05 if name in {"switch x switch", "torus", "switch x ring", "three"} else 1.0)


@pytest.mark.slow
def test_three_dimensions_are_proved_too(tmp_path: Path) -> None:
    result = solve(COLLECTIVE, collective_asked(tmp_path, NETWORKS["three"], [12, 16, 24]), "auto", Limits(120.0), unwatched)
    assert (result.status, result.engine) == ("OPTIMAL", "cpsat")


def test_a_solver_is_asked_again_with_another_seed_until_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that finds nothing at first and then that nothing is better: proved by its word; one that never does ends at the limit that is
    stated, which is said."""
    question, seeds = collective_asked(tmp_path, NETWORKS["three"], [8]), list[int]()

    def late(shop: Shop, seconds: float, workers: int, seed: int) -> Scheduled:
        assert seconds <= 15.0 * 2.0 ** len(seeds)
        assert workers >= 4
        seeds.append(seed)
        return Scheduled(shop.most if len(seeds) == 3 else shop.least)

    monkeypatch.setattr(engines, "scheduled", late)
    result = solve(COLLECTIVE, question, "auto", Limits(seed=5), unwatched)
    assert (seeds, result.bound, result.stopped, result.unverified) == ([5, 6, 7], result.value, "complete", True)
    monkeypatch.setitem(engines._PATIENCE, "search", 0.1)
    open_still = solve(COLLECTIVE, question, "search", Limits(), unwatched)
    assert (open_still.stopped, open_still.proved) == ("time limit", False)
    assert check(COLLECTIVE, result, ROOT).accepted
    refused = check(COLLECTIVE, replace(result, engine="search"), ROOT).refused
    assert "proof: the engine search reports no bound of a solver" in refused


def test_a_solver_finds_the_way_that_keeps_both_machines_busy() -> None:
    """Two jobs of a long and a short operation, on either machine first: 5 + 2 with opposite ways, 2 x 5 + 2 with the same."""
    shop = Shop(2, (((0, 5), (1, 2)), ((1, 5), (0, 2))), least=1, most=12)
    found = scheduled(shop, 120.0, 1, 0)
    assert (found.bound, sorted(found.ways)) == (7, [0, 1])
    assert sorted(found.sequences(shop)) == [(0, 1), (1, 0)]
    assert scheduled(replace(shop, most=6), 120.0, 1, 0) == Scheduled(6)


@pytest.mark.parametrize("collective", ["all_reduce", "reduce_scatter", "all_gather", "all_to_all"])
def test_two_chunks_are_ordered_as_if_every_sequence_were_looked_at(collective: str, tmp_path: Path) -> None:
    links: tuple[Link, ...] = (("ring", 3, 20, 500, "ring"), ("fully_connected", 4, 5, 900, "direct"))
    question = collective_asked(tmp_path, links, [2], collective=collective, bytes="3 MiB")
    result = solve(COLLECTIVE, question, "auto", Limits(1.0), unwatched)
    assert result.value == least_of(question, 2)
    assert result.bound is not None
    assert result.bound <= result.value


@pytest.mark.parametrize("seed", range(12))
def test_no_chunks_of_random_networks_are_quicker(seed: int) -> None:
    question, least = chunks(seed)
    result = solve(COLLECTIVE, question, "search", Limits(0.2), unwatched)
    assert result.value is not None
    assert result.bound is not None
    assert result.bound <= least <= result.value
    assert result.value <= 1.02 * least


def test_a_schedule_by_hand(tmp_path: Path) -> None:
    """Rings of two without latency at 3 GiB/s, two chunks of 1 GiB: a reduce-scatter takes 1 + floor(1e9 / 6) + 1 ns, and of the half that
    is left 1 + floor(1e9 / 12) + 1. With opposite orders both dimensions are busy from the first ns to the last."""
    ring = ("ring", 2, 3, 0, "ring")
    question = collective_asked(tmp_path, (ring, ring), [2], collective="reduce_scatter", bytes="2 GiB", endpoint={"memory": "1000 PB/s"})
    long, short = 166_666_668, 83_333_335
    opposite = COLLECTIVE.judge(question, Chunks(2, ((0, 1), (1, 0)), ((0, 1), (1, 0))))
    alike = COLLECTIVE.judge(question, Chunks(2, ((0, 1), (0, 1)), ((0, 1), (0, 1))))
    assert (opposite.value, alike.value) == (long + short, 2 * long + short)
    assert least_time(chunk_loads(question, 2), ()) == long + short
    with pytest.raises(ValueError, match="wait for each other"):
        COLLECTIVE.judge(question, Chunks(2, ((0, 1), (1, 0)), ((1, 0), (0, 1))))


def test_weights_of_many_choices_bound_no_higher_than_all_of_them_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = {count: least_time(chunk_loads(collective_asked(tmp_path, NETWORKS["three"], [count]), count), ()) for count in (8, 16)}
    monkeypatch.setattr("crossopt.formulation.network.MOST_LOOKS", 0)
    for count, true in exact.items():
        one = chunk_loads(collective_asked(tmp_path, NETWORKS["three"], [count]), count)
        weights = weights_of(one)
        assert 0.85 * true <= least_time(one, weights) <= true
        with pytest.raises(ValueError, match="weights are whole numbers"):
            least_time(one, [(-1, 2, 3)] * len(weights))


def test_all_ways_to_deal_chunks_are_there_once() -> None:
    rows = [tuple(row) for row in compositions(4, 3).tolist()]
    assert sorted(rows) == sorted(one for one in product(range(5), repeat=3) if sum(one) == 4)


def shown(question: CollectiveQuestion) -> Sheet:
    return collective_sheet(question, solve(COLLECTIVE, question, "search", Limits(0.1), unwatched))


def printed(question: CollectiveQuestion, section: str) -> tuple[Table, list[str]]:
    """The table of a section of the sheet, and the sentences around it."""
    (found,) = (one for one in shown(question).sections if one.title == section)
    (table,) = (part for part in found.parts if isinstance(part, Table))
    return table, [part for part in found.parts if isinstance(part, str)]


@pytest.mark.parametrize("name", ["ring x switch", "full x switch", "torus"])
@pytest.mark.parametrize("collective", ["all_reduce", "all_to_all"])
def test_every_printed_sum_of_a_phase_is_what_it_says(name: str, collective: str, tmp_path: Path) -> None:
    """Counted by what stands there alone, with a delay and reductions that cannot be overlooked."""
    endpoint = {"delay": "700 ns", "memory": "50 GB/s"}
    question = collective_asked(tmp_path, NETWORKS[name], [4], collective=collective, endpoint=endpoint)
    sums = printed(question, "What each phase is made of")[0].columns[-1].texts
    assert len(sums) >= 2
    for one in sums:
        told, whole = one.replace(",", "").replace(" x ", " * ").split(" = ")
        assert re.fullmatch(r"[0-9 +*()]+", told)
        assert eval(told) == int(whole), one  # noqa: S307 - figures and signs alone


def test_figures_of_the_simulator_below_the_bound_say_which_schedules_they_are_of(tmp_path: Path) -> None:
    """A ring of two at 3 GiB/s and a chunk of 1 GiB: a scatter and a gather take 1 + 166,666,666 + 1 ns each, merged a delay less. Of an
    all-gather nothing is merged, but two chunks at once take half as long as one after the other."""
    rings: tuple[Link, ...] = (("ring", 2, 3, 0, "ring"),)
    question = collective_asked(tmp_path, rings, [1], bytes="1 GiB", endpoint={"memory": "1000 PB/s"})
    table, words = printed(question, "Comparison with ASTRA-sim")
    assert shown(question).bound == 333_333_336
    assert [column.texts for column in table.columns if column.head.startswith("localBW")] == [("333,333,335",)]
    merged = "one merged all-reduce in the last dimension instead of a reduce-scatter and an all-gather"
    below = "Figures of baseline, localBWAware, congestion lie below the proved bound"
    assert words[1:] == [f"{below}, as they are of schedules with {merged}."]
    assert "No schedule of equal chunks in phases of reduce-scatter and all-gather, one chunk at a time on" in shown(question).verdict
    gather = collective_asked(tmp_path, rings, [2], collective="all_gather", bytes="2 GiB", active_chunks=2)
    assert "with 2 chunks at once on a dimension, each as if alone" in printed(gather, "Comparison with ASTRA-sim")[1][1]
    assert printed(replace(gather, file=replace(gather.file, active_chunks=1)), "Comparison with ASTRA-sim")[1][1:] == []


ASTRA_NETWORK = "topology: [ Ring ]\nnpus_count: [ 8 ]\nbandwidth: [ 50.0 ]  # GB/s\nlatency: [ 500.0 ]  # ns\n"
ASTRA_SYSTEM = """\
{"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 4,
 "all-reduce-implementation": ["ring"], "collective-optimization": "localBWAware", "local-mem-bw": 50}
"""


def in_astras_files(folder: Path, network: str = ASTRA_NETWORK, system: str = ASTRA_SYSTEM) -> Path:
    path = folder / "asked.yaml"
    path.write_text("kind: collective\nbytes: 1 MiB\nnetwork: net.yml\nsystem: sys.json\n", encoding="utf-8")
    (folder / "net.yml").write_text(network, encoding="utf-8")
    (folder / "sys.json").write_text(system, encoding="utf-8")
    return path


def test_astra_sims_own_files_give_its_own_nanoseconds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The simulator's regression value, 117,780 ns, and a phase of 4 chunks: 10 + 14 x (1,110 + 10) + 7 x 3 x 655 = 29,445."""
    assert main(["solve", str(in_astras_files(tmp_path)), "--verbose", "--out", str(tmp_path / "found.json")]) == 0
    said = capsys.readouterr().out
    assert "117,780" in said
    (tmp_path / "net.yml").unlink()
    assert main(["check", str(tmp_path / "found.json")]) == 0, "a result holds the texts of both files"


@pytest.mark.parametrize(
    ("network", "system", "words"),
    [
        (ASTRA_NETWORK.replace("[ 8 ]", "[ 8, 2 ]"), ASTRA_SYSTEM, "2 numbers are given for 1 dimensions"),
        (ASTRA_NETWORK.replace("Ring", "Torus"), ASTRA_SYSTEM, "'Torus' is unknown"),
        (ASTRA_NETWORK, ASTRA_SYSTEM.replace('["ring"]', "[]"), "0 algorithms are given for 1 dimensions"),
        (ASTRA_NETWORK, ASTRA_SYSTEM.replace("10,", "0,"), "'0' is too small"),
        (ASTRA_NETWORK, ASTRA_SYSTEM.replace('["ring"]', '["oneRing"]'), "'oneRing' is unknown"),
    ],
)
def test_faults_of_astra_sims_files_are_told_in_a_sentence(network: str, system: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InstanceError, match=words):
        read(in_astras_files(tmp_path, network, system), ())


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("dimensions.0.algorithm=halving_doubling dimensions.0.size=6", "halving and doubling needs a power of two, 6 is none"),
        ("endpoint.delay=0 s", "the simulator ends without a result below a ns"),
        ("bytes=40 B", "a chunk has a byte for each of 32 NPUs at the least"),
        ("bytes=0.5 B", "whole bytes are needed"),
        ("dimensions.1.name=inner", "two dimensions 'inner'"),
        ("dimensions.0.bandwidth=1 B/s", "bandwidths of links lie between"),
        ("dimensions.0.latency=2 s", "no latency of a link"),
        ("chunks=[0]", "too small"),
        ("network=net.yml", "dimensions or ASTRA-sim's network file are needed, and not both"),
    ],
)
def test_collective_faults_are_told_in_a_sentence(setting: str, words: str) -> None:
    settings = tuple(setting.replace(" dimensions", "\ndimensions").split("\n"))
    with pytest.raises(InstanceError, match=words):
        read(COLLECTIVE_SHIPPED, settings)


# Sends over links: by hand, against all that can be done at all, and every mistake in a question told.

SYNTHESIS_SHIPPED = ROOT / "instances" / "network" / "gather-two-boxes.yaml"


def synthesis_asked(text: str) -> SynthesisQuestion:
    question = read_given(text, "synthesis")
    assert isinstance(question, SynthesisQuestion)
    return question


def steps(text: str) -> tuple[int, int]:
    """Of the answer, and of the bound of cuts."""
    question = synthesis_asked(f"kind: synthesis\n{text}")
    result = solve(SYNTHESIS, question, "auto", Limits(), unwatched)
    assert result.value is not None
    return int(result.value), least_steps(question)


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("layout: {shape: line, size: [3]}", 2),  # the far end's chunk comes behind its neighbour's
        ("layout: {shape: ring, size: [4]}", 2),  # three chunks over two links
        ("layout: {shape: full, size: [6]}", 1),
        ("layout: {shape: torus, size: [3, 3]}", 2),  # eight chunks over four links
        ("layout: {shape: mesh, size: [3, 3]}", 4),  # eight chunks over the two links of a corner
        ("layout: {shape: line, size: [3]}\ncollective: broadcast\nchunks: 2", 3),  # two steps away, one behind the other
        ("layout: {shape: line, size: [3]}\ncollective: reduce_scatter", 2),
        ("links: [{from: 0, to: 1, steps: 3}, {from: 1, to: 0}]\nchunks: 2", 6),
    ],
)
def test_small_networks_by_hand(text: str, least: int) -> None:
    assert steps(text) == (least, least)


def test_two_boxes_wait_for_their_slow_links_and_go_one_step_further() -> None:
    """Four chunks over two links of 3 steps are in after 6; the last has to go on, or to come over both: 7, and no solver is believed."""
    question = read(SYNTHESIS_SHIPPED, ())
    assert isinstance(question, SynthesisQuestion)
    result = solve(SYNTHESIS, question, "auto", Limits(), unwatched)
    assert (result.value, result.status, least_steps(question)) == (7, "OPTIMAL", 7)


def test_of_a_reduce_scatter_every_npu_adds_what_it_received_before_it_sends() -> None:
    """Turned round again: each chunk leaves each NPU but its own once, and after all of it has come in there."""
    question = synthesis_asked("kind: synthesis\nlayout: {shape: mesh, size: [2, 3]}\ncollective: reduce_scatter")
    result = solve(SYNTHESIS, question, "auto", Limits(), unwatched)
    assert result.answer is not None and result.value is not None
    runs = [
        (chunk, question.links[place].receiver, question.links[place].sender, int(result.value) - step - question.links[place].steps)
        for chunk, place, step in result.answer.sends
    ]
    for chunk, owner in enumerate(question.origins):
        mine = [(sender, receiver, step) for one, sender, receiver, step in runs if one == chunk]
        assert sorted(sender for sender, _, _ in mine) == [npu for npu in range(6) if npu != owner]
        for sender, _, step in mine:
            assert all(came < step for _, receiver, came in mine if receiver == sender)


@st.composite
def networks(draw: st.DrawFn) -> str:
    """Three or four NPUs, a ring that leads everywhere and some links more, all of one step."""
    npus = draw(st.integers(3, 4))
    pairs = {(npu, (npu + 1) % npus) for npu in range(npus)}
    pairs |= draw(st.sets(st.sampled_from([pair for pair in product(range(npus), repeat=2) if pair[0] != pair[1]]), max_size=4))
    links = ", ".join(f"{{from: {one}, to: {other}}}" for one, other in sorted(pairs))
    collective = draw(st.sampled_from(("all_gather", "broadcast", "reduce_scatter")))
    return f"links: [{links}]\ncollective: {collective}"


@given(networks())
@examples(40)
def test_nothing_at_all_is_quicker(text: str) -> None:
    """Breadth first over who has what: all that one step can do, nothing left out but what is no use."""
    question = synthesis_asked(f"kind: synthesis\n{text}")
    value, bound = steps(text)
    assert bound <= value == steps_of_all_ways(question)


@given(networks(), st.lists(st.integers(1, 3), min_size=16, max_size=16), st.integers(1, 2))
@examples(40)
def test_cuts_ask_for_no_step_too_many(text: str, lengths: list[int], chunks: int) -> None:
    """Links of several lengths: all is done in the answer's steps, and a solver finds nothing in a step less than cuts ask for."""
    lengthened = iter(lengths)
    text = "}".join(f"{part}, steps: {next(lengthened)}" if "to:" in part else part for part in text.split("}"))
    question = synthesis_asked(f"kind: synthesis\n{text}\nchunks: {chunks}")
    model, _ = sends_model(question, least_steps(question) - 1)
    assert backend("cpsat")(model, Spend()).status == "INFEASIBLE"


def steps_of_all_ways(question: SynthesisQuestion) -> int:
    now = {frozenset((chunk, origin) for chunk, origin in enumerate(question.origins))}
    chunks, done = range(len(question.origins)), len(question.origins) * question.npus
    taken = 0
    while not any(len(has) == done for has in now):
        taken += 1
        after = set[frozenset[tuple[int, int]]]()
        for has in now:
            useful = [
                [(chunk, link.receiver) for chunk in chunks if (chunk, link.sender) in has and (chunk, link.receiver) not in has]
                for link in question.links
            ]
            after |= {has | set(way) for way in product(*(ways for ways in useful if ways))}
        now = {has for has in after if not any(has < other for other in after)}
    return taken


MOST_ARRIVALS = 10
"""Chunks at all units together, of which all ways to send are tried."""


def least_sends(question: SynthesisQuestion) -> float:
    """The steps of all ways to send, where there is no deadline before them."""
    if len(question.origins) * question.npus > MOST_ARRIVALS:
        raise RefusedError("too many chunks at too many units")
    steps = steps_of_all_ways(question)
    return float(steps) if question.file.deadline is None or steps <= question.file.deadline else inf


def sends_question(seed: int) -> SynthesisQuestion:
    """Sends of one or two chunks over few links of one step."""
    draw = random.Random(seed)
    shape, collective = draw.choice(("line", "ring", "full", "mesh")), draw.choice(("all_gather", "reduce_scatter", "broadcast"))
    layout = f"layout: {{shape: {shape}, size: {'[2, 2]' if shape == 'mesh' else [draw.choice((2, 3))]}}}"
    links = "links: [{from: 0, to: 1}, {from: 1, to: 2, steps: 1}, {from: 2, to: 0}]"
    root = f"\nroot: {draw.choice((0, 1))}" if collective == "broadcast" else ""
    chosen = links if draw.random() < 0.3 else layout
    return synthesis_asked(f"kind: synthesis\n{chosen}\ncollective: {collective}\nchunks: {draw.choice((1, 1, 2))}{root}")


@pytest.mark.parametrize(
    ("sends", "told"),
    [
        (((0, 0, 0), (0, 9, 0)), "a send names a chunk and a link of the question, and a step from 0"),
        (((1, 0, 0),), "NPU 0 sends chunk 1 at step 0 before receiving it"),
        (((0, 0, 0), (0, 0, 1)), "NPU 1 receives chunk 0 twice"),
        (((0, 0, 1), (1, 1, 0)), "sends stand by their steps, and those of a step by their links"),
        (((0, 0, 0),), "every NPU needs every chunk"),
    ],
)
def test_the_judge_refuses_what_cannot_be_done(sends: tuple[tuple[int, int, int], ...], told: str) -> None:
    """Two NPUs with a link each way."""
    with pytest.raises(ValueError, match=told):
        judge(synthesis_asked("kind: synthesis\nlayout: {shape: line, size: [2]}"), Sends(sends))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("collective: broadcast", "links: a layout or links are needed, and not both"),
        ("layout: {shape: torus, size: [3]}", "layout.size: a torus has 2 sides (give as many numbers)"),
        ("layout: {shape: mesh, size: [3, 4]}", "layout.size: these are 12 NPUs, 2 to 9 are needed, because all schedules are enumerated"),
        ("links: [{from: 0, to: 0}]", "links.0.to: NPU 0 needs no link to itself (take it out)"),
        ("links: [{from: 0, to: 1}, {from: 0, to: 1, steps: 2}]", "there is a link from 0 to 1 already (take one of them out)"),
        ("links: [{from: 0, to: 1}]", "links: no links lead from NPU 1 to NPU 0 (add some)"),
        ("links: [{from: 0, to: 1}]\ncollective: reduce_scatter", "links: no links lead from NPU 1 to NPU 0 (add some)"),
        ("layout: {shape: full, size: [3]}\nroot: 1", "root: only a broadcast has a root (take it out, or ask for a broadcast)"),
        ("layout: {shape: full, size: [3]}\ncollective: broadcast\nroot: 3", "root: there is no NPU 3 (there are 3, counted from 0)"),
    ],
)
def test_every_mistake_is_told(text: str, told: str) -> None:
    with pytest.raises(InstanceError) as error:
        synthesis_asked(f"kind: synthesis\n{text}")
    assert told.replace("links.0.to", "links[0].to") in str(error.value)


def test_a_deadline_in_whole_nanoseconds_is_kept_as_it_is_written() -> None:
    """0.003989125 s times 1e9 is below 3,989,125 in floating point."""
    assert int(0.003989125 * 1e9) == 3_989_124
    dimension = "{name: d, shape: ring, algorithm: ring, size: 2, bandwidth: 200 GiB/s, latency: 700 ns}"
    text = f"kind: collective\ncollective: all_reduce\nbytes: 1 MiB\nchunks: [1]\ndimensions: [{dimension}]\ndeadline: 3989125 ns\n"
    assert read_given(text, "collective").deadline == 3_989_125


@pytest.mark.parametrize("least", [300, 299, 150])
def test_time_times_cost_is_proved_where_the_least_sum_of_bandwidths_is_best(least: int) -> None:
    """At 300 GB/s, what both dimensions may have together, there is one network; below, the first has all that it may have."""
    dimension = "{name: %s, shape: ring, size: 4, tier: %s, at_most: %d GB/s}"
    text = f"""\
kind: network
dimensions: [{dimension % ("a", "chiplet", 100)}, {dimension % ("b", "package", 200)}]
objective: time_cost
budget: {{at_least: {least} GB/s}}
workloads:
  - {{name: m, compute: 1 ms, collectives: [{{collective: all_reduce, bytes: 192 MiB, group: [4, 4]}}]}}
"""
    question = read_given(text, "network")
    found = solve(NETWORK, question, "auto", Limits(), unwatched)
    assert found.proved
    assert found.answer is not None
    assert sum(found.answer.bandwidths) == least * 1e9
    assert check_answer(NETWORK, found, question).accepted


@pytest.mark.parametrize(("rates", "budget"), [((3.77,), 60.32), ((7.5, 12.5), 1280)])
def test_a_budget_that_the_cost_equals_is_kept(rates: tuple[float, ...], budget: float) -> None:
    """16e-9 USD times 3.77e9 is above 60.32 where the price is a float that is counted exactly."""
    dimensions = ", ".join(
        f"{{name: d{number}, shape: fully_connected, size: 4, tier: package, bandwidth: {rate} GB/s}}" for number, rate in enumerate(rates)
    )
    collective = f"{{collective: all_reduce, bytes: 1 MiB, group: {[4] * len(rates)}}}"
    workload = f"{{name: w, collectives: [{collective}]}}"
    text = f"kind: network\ndimensions: [{dimensions}]\nbudget: {{cost: {budget} USD}}\nworkloads: [{workload}]\n"
    question = read_given(text, "network")
    found = solve(NETWORK, question, "auto", Limits(), unwatched)
    assert found.answer is not None
    assert check_answer(NETWORK, found, question).accepted
    less = read_given(text.replace(f"{budget} USD", f"{budget - 0.01} USD"), "network")
    assert solve(NETWORK, less, "auto", Limits(), unwatched).answer is None


def test_no_rule_is_below_the_answer_by_what_rounding_leaves(tmp_path: Path) -> None:
    """One dimension, of which all rules take the most; the convex program ends a little below that."""
    dimension = {"name": "a", "shape": "fully_connected", "size": 8, "at_most": "1.85 GB/s"}
    sums = [{"collective": one, "bytes": "499179435 B", "group": [8]} for one in ("all_gather", "all_reduce", "reduce_scatter")]
    workload = {"name": "w", "compute": "50 ms", "collectives": sums}
    document = {"kind": "network", "dimensions": [dimension], "workloads": [workload], "budget": {"total": "150 GB/s"}}
    question = asked(tmp_path, document)
    found = answered(question)
    assert found.value == min(baseline.value for baseline in found.baselines if baseline.value is not None)
    assert check_answer(NETWORK, found, question).accepted
