"""Instances on a server: published answers, equality with a look at everything, agreement of engines, monotony, and bad input."""

import json
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

import pytest

from crossopt.formulation.counts import best_of
from crossopt.instances.counts.shapes import InstancesQuestion
from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read, read_given
from crossopt.reports.sheets.counts import instances_sheet
from crossopt.solvers.answer import Limits, Result, unwatched
from crossopt.solvers.counts.instances import FAMILY, InstanceGroups, ServerUse, prove, value_of
from crossopt.solvers.family import solve
from tests.extent import FULL
from tests.paths import ROOT
from tests.samples import SAMPLES
from tests.solvers.counts.drawn import best_instances, drawn_instances, instances_in

REFERENCE = ROOT.parent / "shared" / "data" / "serving" / "packrat_bert.json"
PUBLISHED = [
    (16, 8, [(2, 8, 4)]),
    (16, 16, [(4, 4, 4)]),
    (16, 32, [(4, 4, 8)]),
    (16, 64, [(4, 4, 16)]),
    (16, 128, [(4, 4, 32)]),
    (16, 256, [(8, 2, 32)]),
    (16, 512, [(8, 2, 64)]),
    (16, 1024, [(8, 2, 128)]),
    (14, 8, [(2, 7, 4)]),
    (14, 16, [(1, 6, 8), (2, 4, 4)]),
    (14, 32, [(1, 6, 16), (2, 4, 8)]),
    (14, 64, [(1, 6, 32), (2, 4, 16)]),
    (14, 128, [(2, 7, 64)]),
    (14, 256, [(2, 3, 64), (4, 2, 32)]),
    (14, 512, [(2, 3, 128), (4, 2, 64)]),
    (14, 1024, [(2, 3, 256), (4, 2, 128)]),
]
"""Table 2 of Packrat (ICML 2025): threads, requests, and instances with their threads and batch."""


def solved(question: InstancesQuestion, engine: str = "auto") -> Result[InstanceGroups, ServerUse]:
    return solve(FAMILY, question, engine, Limits(), unwatched)


@cache
def packrat() -> dict[str, Any]:
    if not REFERENCE.exists():
        pytest.skip("the reference data are not here")
    found: dict[str, Any] = json.loads(REFERENCE.read_text(encoding="utf-8"))
    return found


def bert(threads: int, batch: int, idle: bool = False) -> InstancesQuestion:
    rows = [{"threads": t, "batch": b, "latency": f"{latency} ms"} for t, b, latency in packrat()["profile"]["rows"]]
    return instances_in({"threads": threads, "batch": batch, "idle_threads": idle, "profile": rows})


@pytest.mark.data
@pytest.mark.parametrize(("threads", "batch", "published"), PUBLISHED)
def test_published_configurations_are_optimal(threads: int, batch: int, published: list[tuple[int, int, int]]) -> None:
    question = bert(threads, batch)
    found = solved(question)
    assert (found.status, found.proved, found.value) == ("OPTIMAL", True, solved(question, "bisection").value)
    latencies = {(t, b): latency for t, b, latency in packrat()["profile"]["rows"]}
    assert sum(count * t for count, t, _ in published) == threads
    assert sum(count * b for count, _, b in published) == batch
    assert found.value == pytest.approx(max(latencies[t, b] for _, t, b in published) / 1e3, rel=1e-15)
    assert not prove(question, found, unwatched).refused
    golden = {(one["T"], one["B"]): one["max_latency_ms"] for one in packrat()["golden"]}
    assert found.value * 1e3 == pytest.approx(golden.get((threads, batch), found.value * 1e3), rel=1e-15)


@pytest.mark.data
@pytest.mark.parametrize("threads", [1, 5, 16, pytest.param(12, marks=pytest.mark.slow), pytest.param(14, marks=pytest.mark.slow)])
def test_engines_agree_on_the_profile(threads: int) -> None:
    for batch in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 3, 100, 777):
        question = bert(threads, batch)
        values = [solved(question, engine).value for engine in ("program", "bisection", "highs")]
        assert values[1:] == values[:1] * 2, (threads, batch)


@pytest.mark.parametrize("start", range(10))
def test_drawn_questions_have_the_best_of_everything(start: int) -> None:
    infeasible = 0
    seeds = range(start, 1_000 if FULL else 300, 10)
    for seed in seeds:
        question = drawn_instances(seed)
        best, found = best_instances(question), solved(question)
        assert found.value == (None if best == inf else best), seed
        assert found.status == ("INFEASIBLE" if best == inf else "OPTIMAL"), seed
        assert bool(found.reasons) == (best == inf), seed
        proved = prove(question, found, unwatched)
        assert (proved.refused, proved.unverified) == ((), False), seed
        if question.file.objective == "latency":
            assert solved(question, "bisection").value == found.value, seed
        infeasible += best == inf
    assert 0 < infeasible < 0.7 * len(seeds)


@pytest.mark.parametrize("engine", ["highs", "cpsat"])
def test_integer_programs_agree_with_the_dynamic_program(engine: str) -> None:
    for seed in (*range(60 if FULL else 15), 5_240_026):  # the last ends with "Solve error" by presolve of HiGHS 1.12
        question = drawn_instances(seed)
        found, best = solved(question, engine), solved(question)
        assert not found.proved
        if best.value is None:
            assert found.value is None, seed
        elif engine == "highs" and question.file.objective == "throughput":  # rates of 16 digits are more than HiGHS tells apart
            assert found.value == pytest.approx(best.value, rel=1e-6), seed
        else:
            assert (found.value, found.settled) == (best.value, True), seed


def test_more_of_anything_is_no_worse() -> None:
    for seed in range(100):
        question = drawn_instances(seed)
        written = dict(question.document)
        for setting in ("idle_threads=true", "latency=null", "memory=null,memory_per_instance=null"):
            more = read_given(written["text"], "instances", tuple(setting.split(",")))
            costs = [value_of(one, best_of(one, lambda: None).cost) for one in (question, more)]
            assert costs[1] <= costs[0], (seed, setting)


def test_interference_changes_the_choice() -> None:
    """Four instances of one thread take 20 ms alone; where four slow each other down by half, two of two threads are faster."""
    rows = [{"threads": 1, "batch": 1, "latency": "20 ms"}, {"threads": 2, "batch": 2, "latency": "22 ms"}]
    alone = solved(instances_in({"threads": 4, "batch": 4, "profile": rows}))
    slowed = solved(instances_in({"threads": 4, "batch": 4, "profile": rows, "interference": {2: 1.05, 4: 1.5}}))
    assert alone.answer is not None
    assert slowed.answer is not None
    assert [group.instances for group in (*alone.answer.groups, *slowed.answer.groups)] == [4, 2]
    assert (alone.value, slowed.value) == (0.020, 0.0231)


PROFILE = "kind: instances\nthreads: 4\nbatch: 8\nprofile: table.csv\n"


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("threads,batch,latency_ms\n0,1,5\n", "table.csv:2:1: threads: '0' is none, a whole number above 0 is needed"),
        ("threads,batch,latency_ms\n1,1,nan\n", "table.csv:2:1: latency_ms: 'nan' is none, a number above 0 is needed"),
        ("threads,batch,latency_ms\n1,1,-5\n", "table.csv:2:1: latency_ms: '-5' is none, a number above 0 is needed"),
        ("threads,batch,latency_ms\n1,1.5,5\n", "table.csv:2:1: batch: '1.5' is none, a whole number above 0 is needed"),
        ("threads,batch,latency_ms\n1,1,\n", "table.csv:2:1: latency_ms: '' is none, a number above 0 is needed"),
        ("threads,batch,latency_ms\n1,1,1e400\n", "table.csv:2:1: latency_ms: '1e400' is too large"),
        ("threads,batch,latency_ms\n1,1,1e-300\n", "profile: latencies from 1e-303 s to 1e-303 s have no common unit"),
        ("threads,batch,latency_ms\n1,1\n", "table.csv:2:1: the row has 2 cells, the header has 3"),
        ("threads,batch,latency_ms\n1,1,5\n1,1,6\n", "table.csv:3:1: 1 threads with a batch of 1 are given twice, also on line 2"),
        ("threads,batch,latency_ms\n1,1,5\n2048,1,6\n", "table.csv:3:1: 2048 threads and a batch of 1 are beyond 1,024"),
        ("threads,batch,latency\n1,1,5\n", "table.csv:1:1: latency_ms: this column is missing"),
        ("threads,batch,latency_ms\n", "table.csv:1:1: there are no rows below the header"),
        ("threads,batch,latency_ms\n8,1,5\n", "profile: |threads: every measured instance has 8 threads or more, and the server has 4"),
        ("threads,batch,latency_ms\n2,16,5\n", "batch: every measured instance takes 16 requests or more, and 8 are in flight"),
    ],
)
def test_a_faulty_table_is_refused_in_one_sentence(table: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "question.yaml").write_text(PROFILE, encoding="utf-8")
    (tmp_path / "table.csv").write_text(table, encoding="utf-8")
    with pytest.raises(InstanceError) as error:
        read(tmp_path / "question.yaml")
    assert len(error.value.faults) == 1
    assert sentence.rpartition("|")[2] in str(error.value)


def test_a_table_says_what_rows_in_the_question_say(tmp_path: Path) -> None:
    text = SAMPLES["instances"].texts[0]
    (tmp_path / "question.yaml").write_text(PROFILE, encoding="utf-8")
    table = "threads,batch,latency_ms\n1,1,20\n1,2,31\n2,2,18\n2,4,30.5\n3,4,22\n4,8,33\n"
    (tmp_path / "table.csv").write_text(table, encoding="utf-8")
    found = read(tmp_path / "question.yaml")
    assert found.shapes == read_given(text, "instances").shapes
    assert found.document["files"] == {"table.csv": table}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (("batch=null",), "batch: the number of requests in flight is needed"),
        (("sockets=3",), "sockets: 4 threads cannot be shared evenly by 3 sockets"),
        (("memory=1 GB",), "memory: it says nothing without memory_per_instance"),
        (("interference.0=2",), "interference.0: '0' is no number of instances"),
        (("interference.2=0",), "interference.2: a factor above 0 is needed"),
        (("profile.0.latency=0 s",), "profile[0].latency: "),
        (("profile.0.threads=0",), "profile[0].threads: "),
        (("profile.1.batch=1",), "profile[1]: 1 threads with a batch of 1 are given twice, also as item 0"),
        (("threads=0",), "threads: "),
        (("profile.0.latency=1e13 s",), "profile: latencies from 0.018 s to 1e+13 s have no common unit that keeps eight digits of each"),
        (("latency=9000000.00000001 s", "profile.0.latency=9000000.000000011 s"), "latency: a measured latency is beside it by less"),
        (("objective=throughput", "profile.0.latency=1e-7 ms"), "profile: throughputs from "),
    ],
)
def test_a_faulty_question_is_refused_in_one_sentence(settings: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(InstanceError) as error:
        read_given(SAMPLES["instances"].texts[0], "instances", settings)
    assert len(error.value.faults) == 1
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (("batch=7", "profile.0.batch=2", "profile.1.batch=4"), "batch: no sum of measured batches is 7 (measured are 2, 4, 8)"),
        (("batch=64",), "threads: no measured instances use at most 4 threads and take 64 requests"),
        (("memory=1 GB", "memory_per_instance=1.5 GB"), "memory: it holds 0 instances"),
        (("latency=30 ms",), "latency: the slowest instance takes 30.5 ms or more, above the service level of 30 ms"),
    ],
)
def test_an_infeasible_question_names_the_limit(settings: tuple[str, ...], reason: str) -> None:
    found = solved(read_given(SAMPLES["instances"].texts[0], "instances", settings))
    assert (found.status, found.proved) == ("INFEASIBLE", True)
    assert found.reasons[0].startswith(reason)


def test_utilisation_is_work_over_peak() -> None:
    """64 images of 8.178 GFLOP in 516.1 ms on 16 threads of 0.1 TFLOP/s."""
    question = read(ROOT / "instances/counts/resnet-50-on-16-threads.yaml")
    figures = dict(instances_sheet(question, solved(question)).figures)
    assert figures["utilisation"] == f"{64 * 8.178e9 / 0.5161 / 1.6e12:.1%} of peak" == "63.4% of peak"


@pytest.mark.parametrize("engine", ["program", "cpsat"])
def test_an_engine_without_time_answers_with_the_best_rule(engine: str) -> None:
    rows = [{"threads": 1, "batch": 1, "latency": "5 ms"}, {"threads": 2, "batch": 2, "latency": "3 ms"}]
    question = instances_in({"threads": 4, "batch": 4, "profile": rows})
    found = solve(FAMILY, question, engine, Limits(1e-9), unwatched)
    assert (found.value, found.stopped, found.proved) == (0.003, "time limit", False)


@pytest.mark.parametrize("engine", ["auto", "highs", "cpsat"])
def test_infeasible_questions_of_too_many_states_for_reasons_are_answered(engine: str) -> None:
    rows = [{"threads": 1, "batch": 1000, "latency": "5 ms"}]
    found = solved(instances_in({"threads": 512, "batch": 100_000, "latency": "1 ms", "profile": rows}), engine)
    assert (found.value, found.settled, found.reasons) == (None, True, ())
