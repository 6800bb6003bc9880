"""The bound of saved stages, proved anew: that of the work of all layers, or the dynamic program runs again and finds none below it."""

from crossopt.instances.stages.piper.graph import PiperQuestion
from crossopt.solvers.answer import Result, Watch
from crossopt.solvers.family import Proved
from crossopt.solvers.stages.piper.bounds import load_bound, too_large
from crossopt.solvers.stages.piper.fronts import Bundling
from crossopt.solvers.stages.piper.ideals import ideals_of
from crossopt.solvers.stages.piper.judge import PiperLoads
from crossopt.solvers.stages.piper.network import network_of
from crossopt.solvers.stages.piper.options import options_of
from crossopt.solvers.stages.piper.plan import PiperPlan
from crossopt.solvers.stages.piper.search import within
from crossopt.solvers.stages.piper.tables import tables_of

_SURE = 1.0 - 1e-12


def prove(question: PiperQuestion, saved: Result[PiperPlan, PiperLoads], _: Watch) -> Proved:
    """Whoever said it: the bound is proved anew, or the result is refused."""
    if prove_again(question, saved.bound):
        return Proved(("the bound was proved anew",))
    return Proved(refused=("the bound: it was not proved anew",))


def prove_again(question: PiperQuestion, bound: float | None) -> bool:
    """Whether no stages are quicker than the bound; None asks whether there are none at all."""
    if bound is None and too_large(question):
        return True
    if bound is not None and bound <= load_bound(question):
        return True
    network = network_of(question.graph)
    cuts, every = ideals_of(len(network), network.arcs)
    if not every:
        return False
    tables = tables_of(options_of(question, network), cuts, Bundling(relaxed=True), _unwatched)
    return within(tables, float("inf") if bound is None else bound * _SURE, _unwatched) is None


def _unwatched() -> None:
    """Nobody is told how far a proof is."""
