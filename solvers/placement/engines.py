"""Engines for placements, by the problem and the contiguity that are asked."""

from collections.abc import Callable

from crossopt.instances.errors import RefusedError
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.solvers.answer import Limits, SearchOutcome, Watch
from crossopt.solvers.placement.answer import Placement
from crossopt.solvers.placement.latency.engine import latency
from crossopt.solvers.placement.throughput.portfolio import portfolio
from crossopt.solvers.placement.throughput.stages import stages

Engine = Callable[[PlacementQuestion, Limits, Watch], SearchOutcome[Placement]]
ENGINES: dict[str, Engine] = {"portfolio": portfolio, "stages": stages, "latency": latency}
BY_CONTIGUITY = {"stages": "stages", "convex": "portfolio", "no": "portfolio"}


def answered(engine: str, question: PlacementQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Placement]:
    """The answer of an engine; `auto` is the one for the problem and the contiguity that are asked."""
    of_latency = question.problem == "latency"
    fitting = "latency" if of_latency else BY_CONTIGUITY[question.contiguity]
    if engine not in {"auto", fitting}:
        asked = "--problem latency" if of_latency else f"--contiguous {question.contiguity}"
        raise RefusedError(f"the engine {engine} does not answer {asked}; take {fitting}, or none")
    return ENGINES[fitting](question, limits, watch)
