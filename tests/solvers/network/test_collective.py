"""Chunks of collectives: against every sequence of few chunks, on the networks of Themis's study, and by hand."""

import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from crossopt.formulation.model import Scheduled, Shop
from crossopt.formulation.network.orders import asked_of, compositions, least_time
from crossopt.instances.errors import InstanceError
from crossopt.instances.network.collective import CollectiveQuestion
from crossopt.instances.question import read
from crossopt.reports.cli import main
from crossopt.reports.sheets.networks.collective import sheet
from crossopt.reports.sheets.sheet import Sheet, Table
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.backends.cpsat import scheduled
from crossopt.solvers.family import solve
from crossopt.solvers.network.collective import engines
from crossopt.solvers.network.collective.engines import as_run, themis, weights_of
from crossopt.solvers.network.collective.family import FAMILY
from crossopt.solvers.network.collective.judge import Chunks
from tests.paths import INSTANCES
from tests.solvers.network.drawn import chunks, least_of

SHIPPED = INSTANCES / "network/all-reduce-torus.yaml"
Link = tuple[str, int, float, float, str]
NETWORKS: dict[str, tuple[Link, ...]] = {
    "ring x switch": (("ring", 4, 200, 500, "ring"), ("switch", 8, 50, 1000, "halving_doubling")),
    "full x switch": (("fully_connected", 8, 50, 500, "direct"), ("switch", 4, 25, 1000, "halving_doubling")),
    "switch x switch": (("switch", 8, 200, 700, "halving_doubling"), ("switch", 8, 100, 1700, "halving_doubling")),
    "torus": (("ring", 4, 80, 1000, "ring"), ("ring", 8, 80, 1000, "ring")),
    "switch x ring": (("switch", 8, 400, 936.25, "ring"), ("ring", 2, 50, 1000, "ring")),
    "three": (("ring", 2, 200, 50, "ring"), ("fully_connected", 8, 100, 500, "direct"), ("switch", 4, 50, 2000, "halving_doubling")),
}
FLUID = {
    "ring x switch": 8.750,
    "full x switch": 7.500,
    "switch x switch": 6.562,
    "torus": 12.109,
    "switch x ring": 4.167,
    "three": 2.072,
}
"""ms of an all-reduce of 1 GiB where chunks are infinitely small and links have no latency."""


def asked(folder: Path, links: tuple[Link, ...], chunks: list[int], **more: Any) -> CollectiveQuestion:  # noqa: ANN401 - keys of a file
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
    question = asked(tmp_path, NETWORKS[name], [8, 12, 16, 24])
    result = solve(FAMILY, question, "search", Limits(0.3), unwatched)
    assert result.value is not None
    assert result.bound is not None
    assert result.value >= FLUID[name] * 1e6
    assert (result.status == "OPTIMAL") == (name != "three")
    at_sixteen = as_run(question, 16, themis(question, 16))[0]
    assert at_sixteen / result.value >= (1.05 if name in {"switch x switch", "torus", "switch x ring", "three"} else 1.0)


@pytest.mark.slow
def test_three_dimensions_are_proved_too(tmp_path: Path) -> None:
    result = solve(FAMILY, asked(tmp_path, NETWORKS["three"], [12, 16, 24]), "auto", Limits(120.0), unwatched)
    assert (result.status, result.engine) == ("OPTIMAL", "cpsat")


def test_a_solver_is_asked_again_with_another_seed_until_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that finds nothing at first and then that nothing is better: proved by its word; one that never does ends at the limit that is
    stated, which is said."""
    question, seeds = asked(tmp_path, NETWORKS["three"], [8]), list[int]()

    def late(shop: Shop, seconds: float, workers: int, seed: int) -> Scheduled:
        assert seconds <= 15.0 * 2.0 ** len(seeds)
        assert workers >= 4
        seeds.append(seed)
        return Scheduled(shop.most if len(seeds) == 3 else shop.least)

    monkeypatch.setattr(engines, "scheduled", late)
    result = solve(FAMILY, question, "auto", Limits(seed=5), unwatched)
    assert (seeds, result.bound, result.stopped, result.told) == ([5, 6, 7], result.value, "complete", True)
    monkeypatch.setitem(engines._PATIENCE, "search", 0.1)
    open_still = solve(FAMILY, question, "search", Limits(), unwatched)
    assert (open_still.stopped, open_still.proved) == ("time limit", False)


def test_a_solver_finds_the_way_that_keeps_both_machines_busy() -> None:
    """Two jobs of a long and a short operation, on either machine first: 5 + 2 with opposite ways, 2 x 5 + 2 with the same."""
    shop = Shop(2, (((0, 5), (1, 2)), ((1, 5), (0, 2))), least=1, most=12)
    found = scheduled(shop, 20.0, 1, 0)
    assert (found.bound, sorted(found.ways)) == (7, [0, 1])
    assert sorted(found.sequences(shop)) == [(0, 1), (1, 0)]
    assert scheduled(replace(shop, most=6), 20.0, 1, 0) == Scheduled(6)


@pytest.mark.parametrize("collective", ["all_reduce", "reduce_scatter", "all_gather", "all_to_all"])
def test_two_chunks_are_ordered_as_if_every_sequence_were_looked_at(collective: str, tmp_path: Path) -> None:
    links: tuple[Link, ...] = (("ring", 3, 20, 500, "ring"), ("fully_connected", 4, 5, 900, "direct"))
    question = asked(tmp_path, links, [2], collective=collective, bytes="3 MiB")
    result = solve(FAMILY, question, "auto", Limits(1.0), unwatched)
    assert result.value == least_of(question, 2)
    assert result.bound is not None
    assert result.bound <= result.value


@pytest.mark.parametrize("seed", range(12))
def test_no_chunks_of_random_networks_are_quicker(seed: int) -> None:
    question, least = chunks(seed)
    result = solve(FAMILY, question, "search", Limits(0.2), unwatched)
    assert result.value is not None
    assert result.bound is not None
    assert result.bound <= least <= result.value
    assert result.value <= 1.02 * least


def test_a_schedule_by_hand(tmp_path: Path) -> None:
    """Rings of two without latency at 3 GiB/s, two chunks of 1 GiB: a reduce-scatter takes 1 + floor(1e9 / 6) + 1 ns, and of the half that
    is left 1 + floor(1e9 / 12) + 1. With opposite orders both dimensions are busy from the first ns to the last."""
    ring = ("ring", 2, 3, 0, "ring")
    question = asked(tmp_path, (ring, ring), [2], collective="reduce_scatter", bytes="2 GiB", endpoint={"memory": "1000 PB/s"})
    long, short = 166_666_668, 83_333_335
    opposite = FAMILY.judge(question, Chunks(2, ((0, 1), (1, 0)), ((0, 1), (1, 0))))
    alike = FAMILY.judge(question, Chunks(2, ((0, 1), (0, 1)), ((0, 1), (0, 1))))
    assert (opposite.value, alike.value) == (long + short, 2 * long + short)
    assert least_time(asked_of(question, 2), ()) == long + short
    with pytest.raises(ValueError, match="wait for each other"):
        FAMILY.judge(question, Chunks(2, ((0, 1), (1, 0)), ((1, 0), (0, 1))))


def test_weights_of_many_choices_bound_no_higher_than_all_of_them_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = {count: least_time(asked_of(asked(tmp_path, NETWORKS["three"], [count]), count), ()) for count in (8, 16)}
    monkeypatch.setattr("crossopt.formulation.network.orders.MOST_LOOKS", 0)
    for count, true in exact.items():
        one = asked_of(asked(tmp_path, NETWORKS["three"], [count]), count)
        weights = weights_of(one)
        assert 0.85 * true <= least_time(one, weights) <= true
        with pytest.raises(ValueError, match="weights are whole numbers"):
            least_time(one, [(-1, 2, 3)] * len(weights))


def test_all_ways_to_deal_chunks_are_there_once() -> None:
    rows = [tuple(row) for row in compositions(4, 3).tolist()]
    assert sorted(rows) == sorted(one for one in product(range(5), repeat=3) if sum(one) == 4)


def shown(question: CollectiveQuestion) -> Sheet:
    return sheet(question, solve(FAMILY, question, "search", Limits(0.1), unwatched))


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
    question = asked(tmp_path, NETWORKS[name], [4], collective=collective, endpoint=endpoint)
    sums = printed(question, "What each phase is made of")[0].columns[-1].words
    assert len(sums) >= 2
    for one in sums:
        told, whole = one.replace(",", "").replace(" x ", " * ").split(" = ")
        assert re.fullmatch(r"[0-9 +*()]+", told)
        assert eval(told) == int(whole), one  # noqa: S307 - figures and signs alone


def test_figures_of_the_simulator_below_the_bound_say_which_schedules_they_are_of(tmp_path: Path) -> None:
    """A ring of two at 3 GiB/s and a chunk of 1 GiB: a scatter and a gather take 1 + 166,666,666 + 1 ns each, merged a delay less. Of an
    all-gather nothing is merged, but two chunks at once take half as long as one after the other."""
    rings: tuple[Link, ...] = (("ring", 2, 3, 0, "ring"),)
    question = asked(tmp_path, rings, [1], bytes="1 GiB", endpoint={"memory": "1000 PB/s"})
    table, words = printed(question, "What ASTRA-sim says")
    assert shown(question).bound == 333_333_336
    assert [column.words for column in table.columns if column.head.startswith("localBW")] == [("333,333,335",)]
    merged = "one merged all-reduce in the last dimension instead of a reduce-scatter and an all-gather"
    below = "Figures of baseline, localBWAware, congestion lie below the proved bound"
    assert words[1:] == [f"{below}, as they are of schedules with {merged}."]
    assert "No schedule of equal chunks in phases of reduce-scatter and all-gather, one chunk at a time on" in shown(question).verdict
    gather = asked(tmp_path, rings, [2], collective="all_gather", bytes="2 GiB", active_chunks=2)
    assert "with 2 chunks at once on a dimension, each as if alone" in printed(gather, "What ASTRA-sim says")[1][1]
    assert printed(replace(gather, file=replace(gather.file, active_chunks=1)), "What ASTRA-sim says")[1][1:] == []


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
    assert main(["solve", str(in_astras_files(tmp_path)), "--out", str(tmp_path / "found.json")]) == 0
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
def test_faults_are_told_in_a_sentence(setting: str, words: str) -> None:
    settings = tuple(setting.replace(" dimensions", "\ndimensions").split("\n"))
    with pytest.raises(InstanceError, match=words):
        read(SHIPPED, settings)
