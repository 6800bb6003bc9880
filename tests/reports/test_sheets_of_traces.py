"""Sheets of changes of a trace: what each saves, the way to the answer, and what other budgets of days would buy."""

import pytest

from crossopt.crossflow.traces import graph_of
from crossopt.instances.question import read
from crossopt.instances.traces.graph_file import Trace, document_of
from crossopt.reports.sheets.sheet import Table, Timeline
from crossopt.reports.sheets.traces import benchmark_sheet as sheet_of_benchmark
from crossopt.reports.sheets.traces import whatif_sheet
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.family import solve
from crossopt.solvers.traces.benchmark.family import FAMILY as BENCHMARKS
from crossopt.solvers.traces.whatif.family import FAMILY
from tests.paths import INSTANCES
from tests.solvers.traces.drawn import asked
from tests.trace_steps import few_kernels

_SWAP = "without first and with second it takes"


@pytest.mark.parametrize(
    ("second", "told"),
    [
        (100, f"Too close to call: {_SWAP} as long."),
        (90, f"Too close to call: {_SWAP} 5 ns more, and is as quick if what it lacks saved 10.0% less than is assumed."),
        (60, f"Nearest: {_SWAP} 20 ns more, and is as quick if what it lacks saved 40.0% less than is assumed."),
    ],
)
def test_a_choice_is_too_close_to_call_where_a_tenth_less_saved_would_turn_it(second: int, told: str) -> None:
    """Half of 100 ns or half of another kernel for a day: 45 ns are 10 % less than 50, 30 are 40 % less."""
    changes = [
        {"name": name, "transform": "scale", "pattern": kernel, "factor": 0.5, "days": 1}
        for name, kernel in (("first", "a"), ("second", "b"))
    ]
    trace = document_of(Trace(few_kernels((("a", 100, 1), ("b", second, 1)))))
    question = asked({"kind": "what-if", "trace": "trace.json", "changes": changes, "budgets": {"days": 1}}, trace)
    section = whatif_sheet(question, solve(FAMILY, question, "auto", Limits(), unwatched)).sections[2]
    assert told in section.parts


def test_waiting_for_another_rank_is_told_with_the_rank_to_ask() -> None:
    """20 of 50 ns are waiting, before an exchange of 10; no note where the change takes the waiting too."""
    rows = [("gemm", "kernel", "s", 20), ("waiting for rank 3", "gap", "s", 20), ("reduce", "collective", "s", 10)]
    trace = document_of(Trace(graph_of(rows, [(0, 1, "stream"), (1, 2, "stream")])))
    for pattern, kinds, told in (("gemm", ["kernel"], True), ("waiting*", ["gap"], False)):
        change = {"name": "half", "transform": "scale", "pattern": pattern, "kinds": kinds, "factor": 0.5}
        question = asked({"kind": "what-if", "trace": "trace.json", "changes": [change]}, trace)
        notes = whatif_sheet(question, solve(FAMILY, question, "auto", Limits(), unwatched)).sections[-1].parts[0]
        assert any(note.startswith("20 ns of waiting for rank 3 stay as long as they were: ") for note in notes) == told
        assert any("ask the trace of rank 3 " in note for note in notes) == told


def test_what_is_told_of_days_is_what_their_budgets_give() -> None:
    """The row of ten days is the answer, that of five the answer to five; the way goes from the trace to the answer."""
    path = INSTANCES / "traces" / "two-weeks-of-work.yaml"
    question, fewer = read(path, ()), read(path, ("budgets.days=5",))
    result, least = (solve(FAMILY, one, "auto", Limits(), unwatched) for one in (question, fewer))
    sections = {section.title: section for section in whatif_sheet(question, result).sections}
    tables = {title: part for title, section in sections.items() for part in section.parts if isinstance(part, Table)}
    days, spans, _ = (column.texts for column in tables["What more or fewer days would buy"].columns)
    told = dict(zip(days, spans, strict=True))
    assert (told["10"], told["5"], told["0"]) == (f"{result.value:,}", f"{least.value:,}", "9,118,000")
    [way] = [part for part in sections["From the trace to the answer"].parts if isinstance(part, Timeline)]
    assert [track.label for track in way.tracks] == ["unchanged", "mixed precision", "CUDA graph", "compressed gradients", "afterwards"]
    parts = [track.shown.split() for track in way.tracks]
    scale = {"ms": 10**6, "us": 10**3}
    assert sum(round(float(amount) * scale[unit]) for amount, unit in parts[:-1]) == result.value
    assert whatif_sheet(question, result).summary == "mixed precision, CUDA graph, compressed gradients"
    alone = dict(zip(*(tables["What the changes save"].columns[place].exact for place in (2, 3)), strict=True))
    assert alone[0] == 1_861_500
    parts = [part for part in sections["What the changes save"].parts if isinstance(part, str)]
    [words] = [part for part in sections["What the changes save"].parts if isinstance(part, tuple)]
    assert any("All together, whatever they cost:" in part and "even those that exclude each other." in part for part in parts)
    assert words[-1] == "overlapped gradients: 3 of 3 collectives moved, as many as wait for some gradient"


def test_a_benchmark_tells_its_mix_beside_that_of_the_trace() -> None:
    """Five runs of 60,000 ns of 3,002,000 are 9.99 %; the six runs of the trace are 360,000 of 9,078,000."""
    question = read(INSTANCES / "traces" / "a-third-of-a-step.yaml", ())
    shown = sheet_of_benchmark(question, solve(BENCHMARKS, question, "auto", Limits(), unwatched))
    assert shown.sentence.endswith("stand for 33.3333% of the trace of a-third-of-a-step?")
    [kernels] = [section for section in shown.sections if section.title == "Kernels"]
    [table] = [part for part in kernels.parts if isinstance(part, Table)]
    told = {row[0]: row[4:] for row in zip(*(column.texts for column in table.columns), strict=True)}
    assert told["attention_softmax_backward"] == ("3.97%", "9.99%")
    assert sum(float(share[:-1]) for _, share in told.values()) == pytest.approx(100.0, abs=0.05)
