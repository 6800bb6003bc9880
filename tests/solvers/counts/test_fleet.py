"""Fleets: published answers, equality with a look at everything, monotony, proofs that are refused, and bad input."""

import json
from dataclasses import replace
from itertools import pairwise
from math import inf
from pathlib import Path
from random import Random

import pytest

from crossopt.formulation.certificate import unpacked
from crossopt.formulation.fleet import bound_of_fleets, fleet_bound, scaled
from crossopt.instances.counts.fleet import FleetQuestion
from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read, read_given
from crossopt.solvers.answer import Limits, Result, unwatched
from crossopt.solvers.checking import check_answer, status_faults
from crossopt.solvers.counts.fleet import FAMILY, Fleet, FleetUse, judge, prove
from crossopt.solvers.family import solve
from crossopt.solvers.proofs import Integers
from tests.every import every
from tests.extent import FULL
from tests.paths import ROOT
from tests.samples import SAMPLES
from tests.solvers.counts.drawn import best_fleet, drawn_fleet, fleet_in

REFERENCE = ROOT.parent / "shared" / "data" / "serving" / "melange.json"
MELANGE = ROOT / "instances" / "counts" / "melange-two-kinds.yaml"


def solved(question: FleetQuestion, gap: float = 0.0) -> Result[Fleet, FleetUse]:
    return solve(FAMILY, question, "auto", Limits(gap=gap), unwatched)


@pytest.mark.parametrize(("slices", "cost"), [("1", 6.70), ("2", 5.69), ("3", 4.68), ("4", 5.69), ("6", 4.68), ("null", 4.68)])
def test_the_example_of_melange(slices: str, cost: float) -> None:
    question = read(MELANGE, (f"slices={slices}",))
    found = solved(question)
    assert (found.status, found.value, found.proved) == ("OPTIMAL", cost, True)
    assert not check_answer(FAMILY, found, question).refused
    if slices == "1":
        assert found.answer is not None
        assert found.answer.devices == {"a10g": 3, "a100-80g": 1}


def test_a_share_that_no_decimal_says_is_exact() -> None:
    """A third of the long prompts keeps one A10G exactly busy."""
    found = solved(read(MELANGE))
    assert found.answer is not None
    assert found.answer.devices == {"a10g": 1, "a100-80g": 1}
    assert found.answer.shares["long-short"] == {"a100-80g": "2/3", "a10g": "1/3"}
    assert found.details is not None
    assert found.details.busy["a10g"] == 1.0


@pytest.mark.data
def test_the_reference_data_of_melange() -> None:
    if not REFERENCE.exists():
        pytest.skip("the reference data are not here")
    data = json.loads(REFERENCE.read_text(encoding="utf-8"))
    asked, rate = data["instance"], data["instance"]["total_request_rate"]
    classes = {f"{i}-{j}": round(rate * share, 9) for i, row in enumerate(asked["workload_distribution"]) for j, share in enumerate(row)}
    devices = {
        name: {"price": one["cost"], "rates": {f"{i}-{j}": rate for i, row in enumerate(one["tputs"]) for j, rate in enumerate(row)}}
        for name, one in asked["gpu_info"].items()
    }
    for golden in data["golden"]:
        slices = {} if golden["slices"] == "real" else {"slices": golden["slices"]}
        assert solved(fleet_in({"classes": classes, "devices": devices, **slices})).value == golden["cost_per_hour"]


@pytest.mark.parametrize("start", range(10))
def test_drawn_questions_have_the_best_of_everything(start: int) -> None:
    infeasible = 0
    seeds = range(start, 1_000 if FULL else 300, 10)
    for seed in seeds:
        question = drawn_fleet(seed)
        best, found = best_fleet(question), solved(question)
        assert found.value == (None if best == inf else best), seed
        assert found.status == ("INFEASIBLE" if best == inf else "OPTIMAL"), seed
        assert bool(found.reasons) == (best == inf), seed
        proved = prove(question, found, unwatched)
        assert (proved.refused, proved.unverified) == ((), False), seed
        infeasible += best == inf
    assert 0 < infeasible < 0.7 * len(seeds)


def test_finer_slices_cost_no_more_and_any_split_costs_least() -> None:
    for seed in range(40):
        question = drawn_fleet(seed)
        text = question.document["text"]
        values = [solved(read_given(text, "fleet", (f"slices={slices}",))).value for slices in ("1", "2", "4", "null")]
        costs = [inf if value is None else value for value in values]
        assert all(coarse >= fine for coarse, fine in pairwise(costs)), seed


def test_more_devices_and_fewer_requests_cost_no_more() -> None:
    for seed in range(40):
        question = drawn_fleet(seed)
        text, name = question.document["text"], question.classes[0]
        limited = [kind for kind, limit in zip(question.kinds, question.limits, strict=True) if limit is not None]
        more = tuple(f"devices.{kind}.available=null" for kind in limited)
        fewer = (f"classes.{name}={float(question.loads[0]) * 0.75}",)
        values = [solved(read_given(text, "fleet", settings)).value for settings in ((), more, fewer)]
        costs = [inf if value is None else value for value in values]
        assert costs[1] <= costs[0], seed
        assert costs[2] <= costs[0], seed


def test_bounds_of_any_prices_are_below_every_fleet() -> None:
    random = Random(5)
    for seed in range(60):
        question = drawn_fleet(seed)
        any_split = replace(question, file=replace(question.file, slices=None))
        best, form = best_fleet(any_split), scaled(any_split)
        for _ in range(20):
            scale = random.choice((1, 7, 1 << 20))
            prices = [random.randint(0, 2 * scale) for _ in question.classes]
            assert question.cost(fleet_bound(form, [0] * len(question.kinds), form.most, scale, prices)) <= best, seed


def test_many_devices_of_many_kinds_are_proved() -> None:
    """8 classes on 50 kinds, some 10,000 devices."""
    random = Random(1)
    devices: dict[str, object] = {}
    for kind in range(50):
        size = 20.0 ** random.random()
        rates = {f"class {place}": round(size * 2.0 ** random.gauss(0.0, 0.4), 2) for place in range(8)}
        devices[f"kind {kind}"] = {"price": round(size**0.9 * random.uniform(0.9, 1.1), 2), "rates": rates}
    classes = {f"class {place}": round(27_000 * random.uniform(0.5, 1.5), 1) for place in range(8)}
    question = fleet_in({"classes": classes, "devices": devices})
    found = solved(question)
    assert (found.status, found.proved) == ("OPTIMAL", True)
    assert found.details is not None
    assert found.details.devices > 10_000
    assert not prove(question, found, unwatched).refused


def test_a_gap_is_proved_by_a_bound_within_it() -> None:
    for seed in range(20):
        question = drawn_fleet(seed)
        found, best = solved(question, 0.2), solved(question)
        if best.value is None:
            continue
        assert found.value is not None and found.bound is not None
        assert found.bound <= best.value <= found.value
        assert found.settled and found.gap is not None and found.gap <= 0.2
        assert not prove(question, found, unwatched).refused


def test_claims_that_a_tree_does_not_show_are_refused() -> None:
    question = read_given(SAMPLES["fleet"].texts[0], "fleet")
    found = solved(question)
    assert isinstance(found.proof, Integers) and found.value is not None
    higher = replace(found, bound=found.value + 0.01)
    assert any("the engine cheapest does not prove so" in fault for fault in status_faults(FAMILY, replace(found, engine="cheapest")))
    assert prove(question, higher, unwatched).refused[0].startswith("bound: its proof shows")
    for steps in ((), (*found.proof.steps, "0"), ("0",), ("1 0 1",), ("7 1", "0", "0"), ("0 9 1",), ("0 0 -1",), ("-1 1", "0", "0")):
        assert prove(question, replace(found, proof=replace(found.proof, steps=steps)), unwatched).refused, steps
    with pytest.raises(ValueError, match="a scale of 0 is none"):
        bound_of_fleets(scaled(question), unpacked(0, found.proof.steps))


def test_a_fleet_is_judged_in_exact_fractions() -> None:
    question = read(MELANGE)
    found = solved(question)
    assert found.answer is not None
    shares = found.answer.shares
    more = Fleet(found.answer.devices, {**shares, "long-short": {"a10g": "333334/1000000", "a100-80g": "666666/1000000"}})
    with pytest.raises(ValueError, match="is no share above 0 and up to 1 in lowest terms"):
        judge(question, more)
    barely = Fleet(found.answer.devices, {**shares, "long-short": {"a10g": "166667/500000", "a100-80g": "333333/500000"}})
    assert judge(question, barely).violations == ("1 devices of kind a10g serve less than is sent to them, which takes 1.000002",)
    less = Fleet(found.answer.devices, {**shares, "long-short": {"a10g": "1/4", "a100-80g": "2/3"}})
    assert judge(question, less).violations == ("11/12 of the class long-short is served",)
    assert judge(replace(question, file=replace(question.file, slices=2)), found.answer).violations != ()
    with pytest.raises(ValueError, match="no device of kind 'h100' serves the class"):
        judge(question, Fleet(found.answer.devices, {**shares, "long-short": {"h100": "1"}}))


def test_an_infeasible_question_names_the_classes() -> None:
    settings = ("devices.large.available=1", "devices.small.available=2", "devices.middle.available=0", "classes.short=40")
    found = solved(read_given(SAMPLES["fleet"].texts[0], "fleet", settings))
    assert (found.status, found.proved) == ("INFEASIBLE", True)
    assert found.reasons[0].startswith("available: all devices together serve at most ")
    assert "of the requests of short" in found.reasons[0]
    sliced = solved(fleet_in({"classes": {"a": 9}, "devices": {"x": {"price": 1, "rates": {"a": 3}, "available": 2}} | OTHER, "slices": 1}))
    assert sliced.reasons == ("slices: other splits serve all requests, 1 equal parts of each class do not",)


@every(
    ("document", "cost"),
    [
        (
            {
                "classes": {"a": 0.1234567, "b": 0.8765433},
                "devices": {"x": {"price": 1, "rates": {"a": 1, "b": 1}, "available": 1}},
                "slices": 1,
            },
            1,
        ),
        (
            {
                "classes": {"a": 1.7e6, "b": 333333.3, "c": 3e5},
                "devices": {
                    "x": {"price": 0.01, "rates": {"a": 3e6, "b": 1e6, "c": 1e6}},
                    "y": {"price": 0.032, "rates": {"a": 1e5, "b": 2e6, "c": 1.5e6}},
                },
                "utilization": "30 %",
                "slices": 2,
            },
            0.04,
        ),
    ],
)
def test_slices_that_nearly_fill_their_devices_are_found(document: dict[str, object], cost: float) -> None:
    """0.1234567 and 0.8765433 fill a device, and 1.19999997 of 1.2 devices are busy: more digits than the integer model holds."""
    found = solved(fleet_in(document))
    assert (found.value, found.proved) == (cost, True)


OTHER = {"y": {"price": 1, "rates": {"a": 4}, "available": 1}}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (("classes.new=3",), "classes.new: no device serves this class"),
        (("classes.short=-1",), "classes.short: "),
        (("classes.short=.nan",), "classes.short: "),
        (("devices.small.price=0",), "devices.small.price: "),
        (("devices.small.rates.shor=2",), "devices.small.rates.shor: there is no class 'shor' (did you mean short?)"),
        (("devices.small.rates.short=-2",), "devices.small.rates.short: "),
        (("slices=0",), "slices: "),
        (("classes.short=0", "classes.long=0", "classes.batch=0"), "classes: no class has any requests"),
        (("devices.small.rates=null",), "devices.small: its rates are needed"),
        (("devices.small.available=-1",), "devices.small.available: "),
        (("utilization=0",), "utilization: "),
        (("devices.small.rates.short=1e-300",), "classes.short: rates above 0 are from 1e-06 requests/s on"),
        (("devices.small.rates.short=1e-320",), "classes.short: rates above 0 are from 1e-06 requests/s on"),
        (("devices.small.rates.short=1e-5", "classes.short=30"), "classes.short: 3e+06 devices of kind small would serve it"),
        (("devices.small.price=1e300",), "devices.small.price: "),
        (
            ("utilization=1e-20", "classes.long=0", "classes.batch=0"),
            "utilization: 2.4e+20 devices of kind small so idle would serve 'short' (raise it,",
        ),
    ],
)
def test_a_faulty_question_is_refused_in_one_sentence(settings: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(InstanceError) as error:
        read_given(SAMPLES["fleet"].texts[0], "fleet", settings)
    assert len(error.value.faults) == 1
    assert sentence in str(error.value)


BY_FILE = "kind: fleet\nclasses: {short: 12, long: 3}\ndevices: {small: {price: 1.01}, large: {price: 3.67}}\nrates: rates.csv\n"


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("device,class,rate\nsmall,short,nan\n", "rates.csv:2:1: rate: 'nan' is none, a number from 0 on is needed"),
        ("device,class,rate\nsmal,short,1\n", "rates.csv:2:1: device: the question has no device 'smal' (did you mean small?)"),
        ("device,class,rate\nsmall,short,1\nsmall,short,2\n", "rates.csv:3:1: the rate of 'short' on 'small' is given twice (keep one)"),
        ("device,class,rate\nsmall,short,1\n", "classes.long: no device serves this class"),
    ],
)
def test_a_faulty_table_is_refused_in_one_sentence(table: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "question.yaml").write_text(BY_FILE, encoding="utf-8")
    (tmp_path / "rates.csv").write_text(table, encoding="utf-8")
    with pytest.raises(InstanceError) as error:
        read(tmp_path / "question.yaml")
    assert len(error.value.faults) == 1
    assert sentence in str(error.value)


def test_a_table_says_what_rates_in_the_question_say(tmp_path: Path) -> None:
    (tmp_path / "question.yaml").write_text(BY_FILE, encoding="utf-8")
    (tmp_path / "rates.csv").write_text("device,class,rate\nsmall,short,5\nsmall,long,1\nlarge,short,20\nlarge,long,10\n", encoding="utf-8")
    rates = {"small": {"price": 1.01, "rates": {"short": 5, "long": 1}}, "large": {"price": 3.67, "rates": {"short": 20, "long": 10}}}
    assert read(tmp_path / "question.yaml").rates == fleet_in({"classes": {"short": 12, "long": 3}, "devices": rates}).rates


def test_utilization_leaves_room() -> None:
    full, spare = (solved(read_given(SAMPLES["fleet"].texts[0], "fleet", (f"utilization={share}",))) for share in (1, 0.5))
    assert full.details is not None and spare.details is not None
    assert full.value is not None and spare.value is not None
    assert spare.value > full.value
    assert spare.details.utilization <= 0.5
