"""The figures of a comparison: distance from the bound, time to come near it, time to prove it, and what changes along an axis.

Of several runs that differ in their seeds, and of several questions, a figure is told by its median and by its range; a run that never gets
there counts as infinitely far or late.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from crossopt.instances.errors import VerificationError
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.study.records import Run, Study

NEAR = 0.01
"""How near to the bound is near: a hundredth above it."""
LEVEL = 0.1
"""Steps along an axis that gain less than this share have levelled off."""
NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of several figures and their range; infinite where there is none."""

    middle: float
    least: float
    most: float


def spread(figures: Sequence[float]) -> Spread:
    """The median, of an even number halfway between the two in the middle."""
    return Spread(median(figures), min(figures), max(figures))


def bound_of(study: Study, question: int) -> float | None:
    """The best bound that a run proved; infinite where there is no design, None where no run proved any."""
    runs = study.runs_of(question)
    if any(run.status == "INFEASIBLE" for run in runs):
        return NEVER
    return max((run.bound for run in runs if run.bound is not None), default=None)


def best_of(study: Study, question: int) -> Run | None:
    """The first run with the best design."""
    found = [run for run in study.runs_of(question) if run.value is not None]
    return min(found, key=lambda run: run.value or 0.0, default=None)


def is_covered(study: Study, question: int) -> bool:
    """Whether every engine was asked, with every seed that matters to it: of other questions nothing can be claimed but what was found."""
    if study.stopped == "complete":
        return True
    seeds = {engine: study.plan.seeds if engine in FAMILY.seeded else 1 for engine in study.plan.engines}
    return all(len(study.runs_of(question, engine)) >= count for engine, count in seeds.items())


def covered_questions(study: Study) -> tuple[int, ...]:
    """The questions of which that is so."""
    return tuple(question for question in range(len(study.questions)) if is_covered(study, question))


def above(run: Run, bound: float) -> float:
    """How far the value is above the bound, as a share of the bound."""
    if run.value is None:
        return NEVER
    return run.value / bound - 1.0 if bound > 0.0 else NEVER if run.value > bound else 0.0


def near_after(run: Run, bound: float) -> float:
    """Seconds until the design was within a hundredth of the bound; those of the run where it does not tell its way."""
    limit = bound * (1.0 + NEAR)
    if run.value is None or run.value > limit:
        return NEVER
    return next((seconds for seconds, value, _ in run.trace if value is not None and value <= limit), run.seconds)


def proved_after(run: Run) -> float:
    """Seconds until the value was proved, or that there is none."""
    return run.seconds if run.proved else NEVER


def consistency_faults(name: str, runs: Sequence[Run]) -> None:
    """Refuse runs on one question of which one finds a design below another's bound, or where another proved that there is none."""
    found = [run for run in runs if run.value is not None]
    for prover in runs:
        limit = float("inf") if prover.status == "INFEASIBLE" else prover.bound
        for run in found:
            if limit is not None and run.value is not None and run.value < limit:
                claim = "that there is no design" if prover.status == "INFEASIBLE" else f"a bound of {limit!r}"
                raise VerificationError(f"{name}: {prover.engine} proves {claim}, and {run.engine} finds a design of {run.value!r}")


@dataclass(frozen=True, slots=True)
class Cell:
    """One engine on one question: its runs, the one in the middle by value (the worse of two) as an example, and their figures."""

    question: int
    engine: str
    run: Run
    runs: int
    value: Spread
    above: Spread | None
    """None without a bound to measure against."""
    near: Spread | None
    proved: Spread
    seconds: Spread


def cell(study: Study, question: int, engine: str) -> Cell | None:
    """The figures of an engine on a question; None where it was not asked because the study was stopped."""
    runs = study.runs_of(question, engine)
    if not runs:
        return None
    ordered = sorted(runs, key=lambda run: NEVER if run.value is None else run.value)
    bound = bound_of(study, question)
    known = bound is not None and bound < NEVER
    return Cell(
        question=question,
        engine=engine,
        run=ordered[len(ordered) // 2],
        runs=len(runs),
        value=spread([NEVER if run.value is None else run.value for run in runs]),
        above=spread([above(run, bound) for run in runs]) if known and bound is not None else None,
        near=spread([near_after(run, bound) for run in runs]) if known and bound is not None else None,
        proved=spread([proved_after(run) for run in runs]),
        seconds=spread([run.seconds for run in runs]),
    )


@dataclass(frozen=True, slots=True)
class Overall:
    """An engine over all questions that have a bound and a design; of each question the median counts."""

    engine: str
    questions: int
    near: int
    """On how many it came within a hundredth of the bound."""
    above: Spread | None
    near_after: Spread | None
    proved: int
    """On how many of them it proved its answer."""
    proved_after: Spread | None
    refuted: int
    """Beside these, questions of which it proved that they have no design."""


def overall(study: Study, engine: str) -> Overall:
    """The engine's figures over the questions that were asked of every engine, so that all are held to the same ones."""
    cells = [found for question in covered_questions(study) if (found := cell(study, question, engine)) is not None]
    measured = [(row.above.middle, row.near.middle, row.proved.middle) for row in cells if row.above is not None and row.near is not None]
    impossible = [row for row in cells if bound_of(study, row.question) == NEVER]
    return Overall(
        engine=engine,
        questions=len(measured),
        near=sum(near < NEVER for _, near, _ in measured),
        above=spread([gap for gap, _, _ in measured]) if measured else None,
        near_after=spread([near for _, near, _ in measured]) if measured else None,
        proved=sum(seconds < NEVER for _, _, seconds in measured),
        proved_after=spread([seconds for _, _, seconds in measured]) if measured else None,
        refuted=sum(row.proved.middle < NEVER for row in impossible),
    )


# --- along the first axis ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Course:
    """The questions that differ on the first axis only, in its order."""

    subject: str
    at: tuple[str, ...]
    """Their values on the other axes."""
    questions: tuple[int, ...]

    @property
    def name(self) -> str:
        return ", ".join([self.subject, *self.at] if self.subject else self.at)


def courses(study: Study) -> tuple[Course, ...]:
    """All courses of a sweep; none where there are no axes."""
    if not study.plan.axes:
        return ()
    length = len(study.plan.axes[0].values)
    shared = dict[tuple[str, ...], list[int]]()
    for number, question in enumerate(study.questions):
        shared.setdefault((question.subject, *question.at[1:]), []).append(number)
    return tuple(Course(subject, tuple(at), tuple(places)) for (subject, *at), places in shared.items() if len(places) == length)


def values_along(study: Study, course: Course) -> tuple[float | None, ...]:
    """The best value at each place; None where there is no design, and where not every engine was asked, one of which may know a better."""
    return tuple(None if run is None else run.value for run in _best_along(study, course))


def flips_along(study: Study, course: Course) -> tuple[bool, ...]:
    """Whether the plan is another one than at the last place before that has one."""
    flips, last = list[bool](), None
    for run in _best_along(study, course):
        plan = run.design.plan_label if run and run.design else None
        flips.append(plan is not None and last is not None and plan != last)
        last = plan or last
    return tuple(flips)


def _best_along(study: Study, course: Course) -> list[Run | None]:
    return [best_of(study, question) if is_covered(study, question) else None for question in course.questions]


def gains_along(values: Sequence[float | None]) -> Iterator[float | None]:
    """By which share each step makes the value less; None for the first place and where there is no design."""
    yield None
    for before, after in pairwise(values):
        yield None if before is None or after is None or before <= 0.0 else 1.0 - after / before


def level_from(values: Sequence[float | None]) -> int | None:
    """The first place from which no further step gains a tenth; None where the last step does, or where there is no design."""
    gains = list(gains_along(values))
    level = None
    for index in range(len(values) - 1, 0, -1):
        gain = gains[index]
        if gain is None or gain >= LEVEL:
            break
        level = index - 1
    return level
