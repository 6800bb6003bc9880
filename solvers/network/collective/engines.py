"""Who orders chunks: a search that ends at its bound or when its time is over, and the rules of the simulator."""

from dataclasses import dataclass, field
from math import inf
from random import Random
from time import monotonic

from crossopt.formulation.model import Shop
from crossopt.formulation.network.orders import asked_of, least_time
from crossopt.instances.network.collective.question import CollectiveQuestion
from crossopt.solvers.answer import Found, Limits, Progress, Watch
from crossopt.solvers.backends.cpsat import scheduled
from crossopt.solvers.network.collective.answer import Chunks
from crossopt.solvers.network.collective.rivals import best, rivals_of
from crossopt.solvers.network.collective.search import Walk, weights_of
from crossopt.solvers.proofs import Weighed, Word

_PATIENCE = {"auto": 120.0, "search": 4.0}
"""Seconds of solvers, and of exchanges at random, where nobody gives a limit."""
_MOST_SCHEDULED, _WORKERS, _FIRST_TURN = 48, 4, 15.0
"""Chunks of which CP-SAT is asked, its threads, fewer of which find no good schedule, and seconds for each number at first."""


def auto(question: CollectiveQuestion, limits: Limits, watch: Watch) -> Found[Chunks]:
    """Rules, then CP-SAT where its package is here and a number of chunks is still open, then exchanges at random."""
    return _asked(question, limits, watch, "auto")


def search(question: CollectiveQuestion, limits: Limits, watch: Watch) -> Found[Chunks]:
    """The same without a solver."""
    return _asked(question, limits, watch, "search")


def _asked(question: CollectiveQuestion, limits: Limits, watch: Watch, engine: str) -> Found[Chunks]:
    """The best chunks of every number; proved where they meet the bound."""
    if not limits.seconds:
        return Found(None, engine="search", stopped="time limit")
    deadline = monotonic() + (limits.seconds if limits.seconds < inf else _PATIENCE[engine])
    run = _begun(question, limits, watch)
    if question.deadline is not None and run.bound > question.deadline:
        reason = f"deadline: no chunks of any number take less than {run.bound:,} ns, by what they ask of the dimensions"
        return Found(None, inf, run.proof, "search", reasons=(reason,))
    run.rules(deadline)
    solved = engine == "auto" and run.value > run.bound and run.schedules(deadline)
    if engine == "search":
        run.exchanges(deadline)
    told = run.told if solved else run.bound
    proof = Word("cpsat") if told > run.bound and told == run.value else run.proof
    bound = told if isinstance(proof, Word) else run.bound
    stopped = "time limit" if run.value > bound and monotonic() >= deadline else "complete"
    late = question.deadline is not None and run.value > question.deadline
    return Found(None if late else run.best, bound, proof, "cpsat" if solved else "search", stopped, rivals=rivals_of(question))


@dataclass(slots=True)
class _Run:
    """Every number of chunks: what it asks, its bound, the bound that a solver tells, and the best chunks so far."""

    walks: list[Walk]
    bounds: list[int]
    proof: Weighed
    limits: Limits
    watch: Watch
    tells: list[int] = field(default_factory=list)

    @property
    def bound(self) -> int:
        return min(self.bounds)

    @property
    def told(self) -> float:
        """The bound with a solver's word."""
        return min(max(pair) for pair in zip(self.bounds, self.tells, strict=True))

    @property
    def value(self) -> float:
        return min(walk.value for walk in self.walks)

    @property
    def best(self) -> Chunks | None:
        return min(self.walks, key=lambda walk: walk.value).best

    def open(self) -> list[int]:
        """Numbers of chunks that may hold something better, the least bound first."""
        places = sorted(range(len(self.walks)), key=lambda place: self.bounds[place])
        return [place for place in places if max(self.bounds[place], self.tells[place]) < self.value]

    def tell(self, words: str) -> None:
        answer = self.best
        self.watch(Progress(words, None if self.value == inf else self.value, self.bound, lambda: answer))

    def rules(self, deadline: float) -> None:
        for place in self.open():
            if self.bounds[place] < self.value and (self.best is None or monotonic() < deadline):
                self.walks[place].rules(self.bounds[place], deadline)
                self.tell(f"{self.walks[place].option} chunks")

    def schedules(self, deadline: float) -> bool:
        """Whether CP-SAT was asked about any: about each in turn, each time for twice as long and with another seed, until time is over.

        What threads come by differs from run to run, so that one long run may miss what a second one finds at once."""
        asked, turn = False, 0
        while monotonic() < deadline and (left := [place for place in self.open() if self.walks[place].asked.chunks <= _MOST_SCHEDULED]):
            for place in left:
                seconds = min(deadline - monotonic(), _FIRST_TURN * 2.0**turn)
                if seconds > 0.0 and place in self.open():
                    asked = True
                    self.schedule(place, seconds, self.limits.seed + turn)
            turn += 1
        return asked

    def schedule(self, place: int, seconds: float, seed: int) -> None:
        """CP-SAT on one number of chunks."""
        walk = self.walks[place]
        ways = tuple(tuple((one.phase.dimension, one.duration) for one in job) for job in walk.asked.operations)
        shop = Shop(walk.asked.chunks, ways, self.bounds[place], int(min(walk.value, self.value)))
        found = scheduled(shop, seconds, max(self.limits.workers, _WORKERS), seed)
        self.tells[place] = max(self.tells[place], found.bound)
        if found.ways:
            walk.take_schedule(found.ways, found.sequences(shop))
        self.tell(f"schedules of {walk.option} chunks")

    def exchanges(self, deadline: float) -> None:
        while (left := self.open()) and monotonic() < deadline:
            for place in left:
                self.walks[place].step()
            self.tell("exchanges")


def _begun(question: CollectiveQuestion, limits: Limits, watch: Watch) -> _Run:
    """The bounds of every number of chunks."""
    options = question.options
    asked = [asked_of(question, option) for option in options]
    weights = tuple(weights_of(one) for one in asked)
    bounds = [least_time(one, own) for one, own in zip(asked, weights, strict=True)]
    walks = [Walk(one, option, Random(limits.seed)) for one, option in zip(asked, options, strict=True)]
    return _Run(walks, bounds, Weighed("loads of dimensions", weights), limits, watch, [0] * len(options))


def by_rule(name: str, engine: str, question: CollectiveQuestion, limits: Limits, watch: Watch) -> Found[Chunks]:
    """A rule of the simulator; no proof."""
    del limits, watch
    found = best(question, name)
    from crossopt.solvers.network.collective.judge import judge  # noqa: PLC0415 - a rule may miss the deadline

    return Found(None if judge(question, found).violations else found, engine=engine)
