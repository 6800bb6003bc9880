"""The bound of saved stages, proved anew: that of the work of all layers, or a second dynamic program finds none below it."""

from crossopt.instances.stages.piper.graph import PiperQuestion
from crossopt.solvers.answer import Progress, Result, Watch
from crossopt.solvers.family import Proved
from crossopt.solvers.stages.piper.bounds import BY_CUTS, BY_SIZES, BY_WORK, load_bound, too_large
from crossopt.solvers.stages.piper.judge import PiperLoads
from crossopt.solvers.stages.piper.plan import PiperPlan
from crossopt.solvers.stages.piper.second import none_below


def prove(question: PiperQuestion, saved: Result[PiperPlan, PiperLoads], watch: Watch) -> Proved:
    """Whoever said it: the bound is proved anew, or refuted, or it is told where that takes too long."""
    bound = float("inf") if saved.bound is None else saved.bound
    if too_large(question) if saved.bound is None else bound <= load_bound(question):
        return Proved(("the bound was proved anew: by the work of all layers",), by=BY_SIZES if saved.bound is None else BY_WORK)
    found = none_below(question, bound, lambda words: watch(Progress(words, saved.value, saved.bound)))
    if found is None:
        return Proved((f"the bound is told, not proved anew: {saved.proved_by}",), told=True)
    if found:
        return Proved(("the bound was proved anew: a second dynamic program, layer by layer, finds no quicker stages",), by=BY_CUTS)
    return Proved(
        refused=("bound: a second dynamic program finds quicker stages" if saved.bound is not None else "there are stages that fit",)
    )
