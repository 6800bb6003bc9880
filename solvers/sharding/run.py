"""What is known while a problem is worked on: the best choice, its cost, and the bound; it stays whatever becomes of the engine.

Engines offer choices and bounds. A choice is kept only where its cost and its memory, counted anew, say that it may be.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Ints
from crossopt.formulation.sharding.core import Back, Core, beyond, cost_of
from crossopt.formulation.sharding.dual import Dual, bound_of
from crossopt.formulation.sharding.integer import chosen_memory
from crossopt.formulation.sharding.tree import Step, composed, left_by
from crossopt.instances.sharding.problem import FORBIDDEN
from crossopt.solvers.answer import Limits, Progress, Watch
from crossopt.solvers.sharding.judge import BY_DUAL, BY_TREE, IN_FLOATS, lowered

_EVERY = 0.2
STORED = 400_000
"""Figures of a proof that a result holds."""


class EnoughError(Exception):
    """The time is up, or the bound is as near as was asked; its words are those of a solver that did not end by itself."""


def figures_in(steps: Sequence[Step]) -> int:
    """How many figures a result needs for a proof."""
    return sum(len(step.times) + len(step.to_firsts) + len(step.to_seconds) for step in steps if isinstance(step, Dual))


@dataclass(frozen=True, slots=True, eq=False)
class Rest:
    """What duals leave of a run's core that may cost less than a known choice."""

    core: Core
    back: Back
    duals: tuple[Dual, ...] = ()
    below: int = FORBIDDEN
    """What that choice costs."""
    times: Ints | None = None
    """Which times of the rest before it its times were; None where they are the same."""


@dataclass(slots=True)
class Run:
    """The course of one solve, in terms of the reduced core; costs are those of the whole problem."""

    core: Core
    limits: Limits
    watch: Watch
    began: float
    """When the clock started."""
    chosen: Ints | None = None
    cost: int | None = None
    bound: int | None = None
    """No choice costs less; FORBIDDEN where there is none."""
    proved_by: str = ""
    dual: Dual | None = None
    """The best of those that were offered, about which rest, and what they prove together."""
    rest: Rest | None = None
    dual_bound: int | None = None
    steps: tuple[Step, ...] = ()
    """That prove, in whole numbers, that nothing costs less than the best choice."""
    said_by: str = ""
    """Who says, in floating point, that nothing costs less than the best choice, or that there is none."""
    label: str = "strategies"
    notes: list[str] = field(default_factory=list)
    distrusted: set[str] = field(default_factory=set)
    """Those whose bound was above a choice that was found."""
    trace: list[tuple[float, float | None, float | None]] = field(default_factory=list)
    shown: float = 0.0
    back: Callable[[Ints], object] | None = None
    """From a choice to an answer about the problem of the file, for who keeps answers on the way."""

    @property
    def left(self) -> float:
        """Seconds that may still be spent."""
        return self.limits.seconds - (monotonic() - self.began)

    def offer(self, chosen: Ints) -> bool:
        """Keeps a choice where it is better than all before; says whether it may be chosen at all."""
        cost = cost_of(self.core, chosen)
        if cost is None or len(chosen_memory(self.core, chosen)[0]):
            return False
        if self.cost is None or cost < self.cost:
            self.chosen, self.cost = chosen.copy(), cost
            if self.bound is not None and self.bound > cost:
                self.notes.append(f"{self.proved_by} bounded the cost by {self.bound:,}, and was wrong: its bounds are ignored")
                self._distrust(self.proved_by)
            if self.said_by:
                self.refuted(self.said_by, "nothing is better")
            if self.bound is not None and self.proved_by.startswith(IN_FLOATS):
                self._keep_below(cost)
            self.show(news=True)
        return True

    def refuted(self, by: str, what: str) -> None:
        """A choice contradicts a claim: note it, and distrust all bounds of its source."""
        self.notes.append(f"{by} said that {what}, and was wrong: its bounds are ignored")
        self._distrust(by)

    def _distrust(self, by: str) -> None:
        """Discard all that this source claimed."""
        self.distrusted.add(by)
        self.said_by = ""
        if self.proved_by == by:
            self.bound, self.proved_by = self.dual_bound, BY_DUAL if self.dual_bound is not None else ""

    def _keep_below(self, cost: int) -> None:
        """A bound in floating point stays below the best choice, and is not worth more than what whole numbers prove."""
        self.bound = min(self.bound, lowered(cost)) if self.bound is not None else None
        if self.bound is not None and self.dual_bound is not None and self.dual_bound >= self.bound:
            self.bound, self.proved_by = self.dual_bound, BY_DUAL

    def bound_told(self, bound: int, by: str) -> None:
        """Keep a bound of a trusted source if it is above the best one so far."""
        if by not in self.distrusted and (self.bound is None or bound > self.bound):
            self.bound, self.proved_by = bound, by
            self.show(news=True)

    def bound_in_floats(self, bound: int, by: str) -> None:
        """Keep the bound of a solver in floating point, rounded down, as its last unit is uncertain."""
        self.bound_told(lowered(bound if self.cost is None else min(bound, self.cost)), by)

    def best_said(self, by: str) -> None:
        """Note a claim in floating point that nothing is better: a reason to look for a proof, but no proof."""
        if by not in self.distrusted:
            self.said_by = by

    @property
    def duals(self) -> tuple[Dual, ...]:
        """All that the best proof consists of."""
        return () if self.dual is None or self.rest is None else (*self.rest.duals, self.dual)

    @property
    def everything(self) -> Rest:
        """The core, of which nothing is left out yet."""
        return Rest(self.core, np.array)

    def narrowed(self) -> Rest | None:
        """What the best proof leaves that may be better than the best choice; None, and proved, where that is nothing."""
        if self.dual is None or self.rest is None or self.cost is None:
            return self.everything
        dual = replace(self.dual, below=self.cost)
        left = left_by(self.rest.core, dual, self.cost)
        if left is None:
            self.closed(self.duals)
            return None
        return Rest(left.core, composed(self.rest.back, left.back), (*self.rest.duals, dual), self.cost, left.times)

    def bound_proved(self, dual: Dual, rest: Rest | None = None) -> int:
        """Counts what a dual bounds, after those that left a rest, and keeps it where a result has room for its proof."""
        rest = rest or self.everything
        bound = min(bound_of(rest.core, dual), rest.below)
        if figures_in((*rest.duals, dual)) > STORED >= figures_in(self.duals) > 0:
            return bound
        if self.dual_bound is None or bound > self.dual_bound:
            self.dual, self.rest, self.dual_bound = dual, rest, bound
        if bound == self.bound:  # a proof is worth more than a word
            self.proved_by = BY_DUAL
        self.bound_told(bound, BY_DUAL)
        return bound

    def closed(self, steps: tuple[Step, ...]) -> None:
        """Keeps a proof in whole numbers that nothing costs less than the best choice, or that there is none."""
        bound = FORBIDDEN if self.cost is None else self.cost
        if self.bound is None or self.bound <= bound:
            self.steps, self.bound, self.proved_by = steps, bound, BY_TREE

    @property
    def aim(self) -> int:
        """What a proof in whole numbers has to reach: the cost of the best choice, or what no choice can cost."""
        return beyond(self.core) if self.cost is None else self.cost

    @property
    def near(self) -> bool:
        """Whether the bound is as near to the value as was asked."""
        if self.cost is None or self.bound is None:
            return self.bound == FORBIDDEN
        return self.cost - self.bound <= self.limits.gap * self.cost

    def enough(self) -> bool:
        """Whether to stop; shows how far the work is."""
        self.show()
        return self.near or self.left <= 0

    def tick(self) -> None:
        """Ends the work by an EnoughError where it is enough."""
        if self.enough():
            raise EnoughError

    def show(self, news: bool = False) -> None:
        """Keeps what is news in the trace, and shows what is known."""
        now = monotonic() - self.began
        bound = None if self.bound is None or self.bound >= FORBIDDEN else float(self.bound)
        cost = None if self.cost is None else float(self.cost)
        if news:
            self.trace.append((now, cost, bound))
        if news or now - self.shown > _EVERY:
            self.shown = now
            answer = None if self.chosen is None or self.back is None else partial(self.back, self.chosen)
            self.watch(Progress(self.label, cost, bound, answer))
