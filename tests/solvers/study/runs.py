"""Runs and studies by hand, on which figures can be told in the head."""

from dataclasses import replace

from crossopt.crossflow.plan import Plan as CodesignPlan
from crossopt.solvers.codesign.answer import ChosenDesign, ChosenHardware
from crossopt.solvers.study.records import Plan, Question, Run, Source, Study
from crossopt.solvers.sweeps.listed import Axis

RUN = Run(
    question=0,
    engine="boxes",
    answered_by="boxes",
    seed=0,
    status="OPTIMAL",
    stopped="complete",
    value=100.0,
    bound=100.0,
    gap_asked=0.0,
    proved=True,
    proved_by="hand",
    seconds=4.0,
    trace=((1.0, 120.0, 50.0), (2.0, 100.5, 60.0), (4.0, 100.0, 100.0)),
    design=ChosenDesign(ChosenHardware("chip"), CodesignPlan(), "plan A"),
    verified=True,
    note="",
)
LOST = replace(RUN, engine="random", answered_by="random", status="UNKNOWN", value=None, bound=None, proved=False, trace=(), design=None)


def searched(value: float, seed: int = 0, question: int = 0) -> Run:
    """A run of a searcher that ends there after a second, and is done after three."""
    return replace(
        RUN,
        engine="random",
        answered_by="random",
        question=question,
        seed=seed,
        status="FEASIBLE",
        value=value,
        bound=None,
        proved=False,
        proved_by="",
        seconds=3.0,
        trace=((1.0, value, None),),
    )


def planned(words: str, value: float, question: int) -> Run:
    """A proved run with that plan."""
    design = ChosenDesign(ChosenHardware("chip"), CodesignPlan(), words)
    return replace(RUN, question=question, value=value, bound=value, design=design, trace=())


def study_of(*runs: Run, at: tuple[tuple[str, ...], ...] = ((),), axes: tuple[Axis, ...] = ()) -> Study:
    """A study with these runs and a question for each place on the axes."""
    questions = tuple(Question(", ".join(here) or "one", "", here, "step_time", "s", 0, (), None) for here in at)
    engines = tuple(dict.fromkeys(run.engine for run in runs))
    return Study(Plan("title", "", engines, None, 3, axes), (Source("one.yaml", ""),), questions, runs, "complete", 10.0, {})
