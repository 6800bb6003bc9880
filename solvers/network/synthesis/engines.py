"""Engines that find sends: rules that fill links step by step, and the model with time laid out."""

from dataclasses import dataclass, field
from math import inf
from random import Random
from time import monotonic

from crossopt.formulation.network import least_steps, sends_model
from crossopt.instances.network.synthesis import SynthesisQuestion
from crossopt.solvers.answer import Baseline, Limits, Progress, SearchOutcome, Watch
from crossopt.solvers.backends import Spend, backend
from crossopt.solvers.network.synthesis.family import Sends, in_order, judge, reasons_of, ring, rules_of_synthesis
from crossopt.solvers.proofs import RecomputableBound, UnverifiedBound

# Links filled step by step as TACOS fills them, to compare with.
#
# TACOS (Won et al. 2024, arXiv:2304.05301) goes through the free links of each step in random order, and gives each a chunk at random that
# its sender has and its receiver still needs.


def filled(question: SynthesisQuestion, random: Random) -> Sends:
    """Every link as soon as it is free and of use, by chance."""
    has = dict.fromkeys(enumerate(question.origins), 0)
    free, sends, step = [0] * len(question.links), list[tuple[int, int, int]](), 0
    places = list(range(len(question.links)))
    while len(has) < len(question.origins) * question.npus:
        random.shuffle(places)
        for number in places:
            link = question.links[number]
            useful = [
                chunk
                for chunk in range(len(question.origins))
                if has.get((chunk, link.sender), step + 1) <= step and (chunk, link.receiver) not in has
            ]
            if free[number] <= step and useful:
                chunk = random.choice(useful)
                free[number] = has[chunk, link.receiver] = step + link.steps
                sends.append((chunk, number, step))
        step += 1
    return in_order(sends)


# Who finds sends: the rule of TACOS many times, and the model with time laid out for every number of steps that is still open.

_TRIES = 200
_PATIENCE = 60.0
"""Default time limit of the solver in seconds."""
CUTS = "cuts"
"""Who says the bound that anybody can count."""


def auto(question: SynthesisQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Sends]:
    """Rules until they meet the bound of cuts; CP-SAT where they do not."""
    if not limits.seconds:
        return SearchOutcome(None, stopped="time limit")
    bound, deadline = least_steps(question), question.file.deadline
    if deadline is not None and bound > deadline:
        return SearchOutcome(None, inf, RecomputableBound(CUTS), reasons=reasons_of(question))
    tries, value = _of_many(question, limits.seed, bound)
    run = _Run(question, limits, bound, tries, value)
    run.tell(watch, "rules")
    while run.bound < run.value and run.look():
        run.tell(watch, f"{run.bound} steps")
    proof = RecomputableBound(CUTS) if run.bound == bound else UnverifiedBound("cpsat")
    late = deadline is not None and run.value > deadline
    impossible = deadline is not None and run.bound > deadline
    stopped = run.stopped if limits.seconds < inf or run.stopped == "interrupted" else "complete"
    return SearchOutcome(
        None if late else run.best,
        inf if impossible else run.bound,
        proof,
        stopped=stopped,
        reasons=(f"deadline: at least {run.bound} steps are needed",) if impossible else (),
        baselines=(Baseline(f"TACOS, best of {_TRIES}", None, tries), *rules_of_synthesis(question)),
        solver=run.solver,
    )


@dataclass(slots=True)
class _Run:
    """The best sends so far, and the steps below which a solver says that there are none."""

    question: SynthesisQuestion
    limits: Limits
    bound: int
    best: Sends
    value: int
    stopped: str = "complete"
    solver: str = ""
    began: float = field(default_factory=monotonic)

    def look(self) -> bool:
        """Whether CP-SAT says that all can, or cannot, be done in as many steps as the bound."""
        model, sends = sends_model(self.question, self.bound)
        left = self.began + (self.limits.seconds if self.limits.seconds < inf else _PATIENCE) - monotonic()
        answer = backend("cpsat")(model, Spend(max(left, 0.0), workers=self.limits.workers, seed=self.limits.seed))
        self.solver = answer.solver
        if answer.values is not None:
            chosen = [send for send, variable in sends.items() if answer.values[variable]]
            self.best, self.value = in_order(chosen), self.bound
        elif answer.status == "INFEASIBLE":
            self.bound += 1
        else:
            self.stopped = "interrupted" if answer.stopped == "interrupted" else "time limit"
            return False
        return True

    def tell(self, watch: Watch, message: str) -> None:
        best = self.best
        watch(Progress(message, self.value, self.bound, lambda: best))


def tacos(question: SynthesisQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Sends]:
    """Links filled by chance, once; no proof."""
    del watch
    return _within(question, filled(question, Random(limits.seed)), "tacos")


def around(question: SynthesisQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Sends]:
    """Along one ring; no proof."""
    del limits, watch
    return _within(question, ring(question), "ring")


def _within(question: SynthesisQuestion, answer: Sends | None, engine: str) -> SearchOutcome[Sends]:
    """The answer, unless it comes too late."""
    return SearchOutcome(None if answer is None or judge(question, answer).violations else answer, engine=engine)


def _of_many(question: SynthesisQuestion, seed: int, bound: int) -> tuple[Sends, int]:
    """The best of many tries, until one meets the bound."""
    best, value = filled(question, Random(seed)), 0
    value = int(judge(question, best).value)
    for turn in range(1, _TRIES):
        if value == bound:
            break
        other = filled(question, Random(seed + turn))
        taken = int(judge(question, other).value)
        if taken < value:
            best, value = other, taken
    return best, value
