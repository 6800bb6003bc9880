"""What is next to a choice of changes: against every other choice, and told as what was looked at where that is not all."""

import pytest

from crossopt.formulation.traces.whatif import Model, all_choices, model_of
from crossopt.instances.traces.graph_file import Trace, document_of
from crossopt.reports.sheets.traces.whatif import nearest_text
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.family import solve
from crossopt.solvers.traces.whatif.family import FAMILY
from crossopt.solvers.traces.whatif.search import nearest
from tests.solvers.traces.drawn import asked, changes
from tests.trace_steps import few_kernels


def least_share(model: Model, best: int) -> float | None:
    """Of every choice that lacks something of the best, by the formula."""
    shares = list[float]()
    for inside, _ in all_choices(model.rules):
        if best & ~inside:
            choices = [(one, model.rules.all & ~one) for one in (best, inside, inside & best)]
            span, found, both = model.spans(choices).tolist()
            shares.append((found - span) / (both - span) if both > span else 1.0)
    return min(shares, default=None)


@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(6, 60), marks=pytest.mark.slow)], ids=["quick", "all"])
def test_none_of_all_choices_is_nearer(seeds: range) -> None:
    """Of any drawn choice that keeps the rules, changes that make collectives or kernels longer among them."""
    for seed in seeds:
        model = model_of(changes(seed, 6 if seeds.start == 0 else 9)[0])
        for best, outside in all_choices(model.rules)[1::7]:
            span, least = model.spans([(best, outside)])[0], least_share(model, best)
            near = nearest(model, best)
            assert (None if near is None else near.is_nearest) == (None if least is None else True)
            if near is not None and least is not None:
                assert near.share == least or min(near.share, least) < 0, (seed, best)
                assert near.beyond == model.spans([(near.inside, model.rules.all & ~near.inside)])[0] - span


def test_one_change_for_three_is_found_among_twelve() -> None:
    """Three of a day each save 30 of 100 ns, one of three days 89: 1 ns less of 90, 1.1 %; of one for one none comes near."""
    rows = [(f"k{place}", 60, 1) for place in range(8)]
    trace = document_of(Trace(few_kernels((("a", 100, 1), ("b", 100, 1), ("c", 100, 1), ("d", 100, 1), *rows))))
    scaled = [("a", 0.7, 1), ("b", 0.7, 1), ("c", 0.7, 1), ("d", 0.11, 3), *((name, 0.9, 1) for name, _, _ in rows)]
    file = [{"name": name, "transform": "scale", "pattern": name, "factor": factor, "days": days} for name, factor, days in scaled]
    question = asked({"kind": "what-if", "trace": "trace.json", "changes": file, "budgets": {"days": 3}}, trace)
    result = solve(FAMILY, question, "auto", Limits(), unwatched)
    assert result.answer is not None
    assert result.answer.changes == ("a", "b", "c")
    told = "without a, b, c and with d it takes 1 ns more, and is as quick if what it lacks saved 1.1% less than is assumed"
    model = model_of(question)
    assert nearest_text(question, model, [0, 1, 2]) == f"Too close to call: {told}."
    near = nearest(model_of(question), 0b111, most_runs=1)
    assert near is not None
    assert (near.is_nearest, round(near.share, 3)) == (False, 0.8)
