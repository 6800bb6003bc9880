"""The engine for chains: equal splits first, then all of them, until the time is over."""

from time import monotonic

from crossopt.instances.stages.chain import ChainQuestion, Recompute
from crossopt.solvers.answer import Found, Limits, Progress, Rival, Watch
from crossopt.solvers.proofs import Counted, Word
from crossopt.solvers.stages.chain.optimum import Bests, best_plans, equal_splits
from crossopt.solvers.stages.chain.plan import ChainPlan, even
from crossopt.solvers.stages.chain.prove import countable


class _OverError(Exception):
    """The time is over."""


def cuts(question: ChainQuestion, limits: Limits, watch: Watch) -> Found[ChainPlan]:
    """The optimum with its proof; the best equal split where the time ends before."""
    began, equal = monotonic(), Bests()

    def tick() -> None:
        if monotonic() - began > limits.seconds:
            raise _OverError
        watch(Progress("cuts", equal.any.value if equal.any.plan else None, answer=lambda: equal.any.plan))

    try:
        equal = equal_splits(question, tick)
        best = best_plans(question, equal.divisible.value, tick)
    except _OverError:
        return Found(equal.any.plan, engine="cuts", stopped="time limit")
    except KeyboardInterrupt:
        return Found(equal.any.plan, engine="cuts", stopped="interrupted")
    words = "dynamic programming over all cuts"
    proof = Counted(words) if countable(question) else Word(words)
    reasons = () if best.any.plan else (_reason(question),)
    return Found(best.any.plan, best.any.value, proof, "cuts", reasons=reasons, rivals=_rivals(question, equal, best))


def _reason(question: ChainQuestion) -> str:
    """Why there is no plan, with what is least in the way."""
    file, least = question.file, min(width.devices for width in question.widths)
    if least > file.devices:
        return f"a stage needs {least:,} devices at the least, there are {file.devices:,}"
    size = min(file.microbatch)
    alone = min(
        (file.copies * width.parameters + size * width.activations).max() for width in question.widths if width.devices <= file.devices
    )
    if alone > file.memory:
        return f"one layer alone keeps {alone:,.0f} bytes on a device of {file.memory:,.0f}, at the width that needs least"
    return "no stages keep the memory of every device, though each layer alone does (give more devices, memory, or widths)"


def _rivals(question: ChainQuestion, equal: Bests, best: Bests) -> tuple[Rival[ChainPlan], ...]:
    """What else could be done: plans of one rule or another."""
    file = question.file
    found = [_rival("equal split", equal.any.plan)]
    if not file.divisible:
        found.insert(0, _rival("divisible", best.divisible.plan))
    if file.fixed is not None:
        found += [_fixed(question, file.fixed.stages, file.fixed.width, file.fixed.data, one) for one in file.recompute]
    return tuple(found)


def _rival(name: str, plan: ChainPlan | None) -> Rival[ChainPlan]:
    return Rival(name, None, plan, "" if plan else "no such plan keeps the limits")


def _fixed(question: ChainQuestion, stages: int, width: int, data: int, recompute: Recompute) -> Rival[ChainPlan]:
    """The plan that the question names, each layer recomputed or none."""
    plan = ChainPlan(width, recompute, question.file.microbatch[0], data, even(len(question.layers), stages))
    return _rival("fixed plan" if len(question.file.recompute) == 1 else f"fixed, {_WORDS[recompute]}", plan)


_WORDS = {"none": "stored", "full": "recomputed"}
