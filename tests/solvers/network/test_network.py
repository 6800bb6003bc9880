"""Bandwidths of networks: LIBRA's published workloads, by hand, against every choice of a catalogue, and against random networks."""

import random
from collections import defaultdict
from itertools import product
from math import inf, sqrt
from pathlib import Path

import pytest
import yaml

from crossopt.formulation.network.program import Multipliers, Program, bound_of
from crossopt.instances.errors import InstanceError
from crossopt.instances.network.question import NetworkQuestion
from crossopt.instances.question import read
from crossopt.reports.sheets.networks.network import sheet
from crossopt.solvers.answer import Limits, Result, unwatched
from crossopt.solvers.family import solve
from crossopt.solvers.network.family import FAMILY
from crossopt.solvers.network.judge import Bandwidths, Network
from tests.paths import INSTANCES, reference
from tests.solvers.network.drawn import catalogue

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
    return solve(FAMILY, question, "auto", Limits(), unwatched)


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
    rival = next(one for one in result.rivals if one.name == "equal bandwidths")
    assert rival.value is not None
    assert (rival.value - question.compute) * 1e3 == pytest.approx(equal, abs=5.1e-5)
    assert rival.value / result.value == pytest.approx(gain, abs=5.1e-5)


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
    told = sheet(asked(tmp_path, document), result).notes
    assert any(one.startswith(f"{members} of the 8 of node have {share:.1%}") for one in told) == (share < 1.0)


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
    told = sheet(asked(tmp_path, document), result).notes
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
    rivals = {one.name: one.value for one in result.rivals}
    assert rivals["by bytes"] == pytest.approx(9.0 / 90.0 + 1.0 / 10.0, rel=1e-9)
    assert rivals["by root of bytes"] == pytest.approx(16.0 / 100.0, rel=1e-9)
    assert rivals["equal bandwidths"] == pytest.approx(10.0 / 50.0, rel=1e-9)


def test_where_money_is_limited_the_root_is_of_bytes_over_prices(tmp_path: Path) -> None:
    """Money of p B + q C is best spent where B / C is the root of (m / p) / (n / q), as it is on one dimension for each collective."""
    document = two(9_000_000_000, 1_000_000_000) | {"budget": {"cost": "1000 USD"}}
    document["dimensions"] = [{"name": n, "shape": "ring", "size": 2, "prices": {"link": p}} for n, p in (("in", 4.0), ("out", 1.0))]
    result = answered(asked(tmp_path, document))
    assert {one.name: one.value for one in result.rivals}["by root of bytes"] == pytest.approx(result.value, rel=1e-7)
    assert solve(FAMILY, asked(tmp_path, document), "root", Limits(), unwatched).answer == result.rivals[-1].answer


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
        verdict = FAMILY.judge(question, Bandwidths(tuple(one * 1e9 for one in chosen)))
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
        verdict = FAMILY.judge(question, Bandwidths(tuple(rate * 600.0001e9 / sum(rates) for rate in rates)))
        assert verdict.accepted
        assert verdict.value >= result.bound


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
