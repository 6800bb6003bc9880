"""How many combinations of settings are no plans of a question, in words: the rules that most break, and on a page all of them; and what
a question leaves as it is that runs elsewhere do not."""

from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.plans.left_out import LeftOut
from crossopt.reports.sheets.amounts import count_of

_TOLD = 5
"""Reasons that a terminal shows."""
_OF_TENSOR_RANKS, _OF_REPLICAS = ("sequence_parallel", "tensor_exchange"), ("zero", "overlap")
"""Settings that recipes of every stack have on, and that are off where a question does not name them."""
_SAME, _UNLIKE = "do what another one does", "are not as `only` asks"


def head_of(out: LeftOut) -> str:
    """How many of all combinations are plans."""
    return f"{_about(out)}{count_of(out.plans)} of {count_of(out.combinations)} combinations of settings"


def reasons_of(out: LeftOut) -> tuple[str, ...]:
    """Why the others are none, the most first."""
    counts = sorted([(out.same, _SAME), (out.unlike, _UNLIKE), *((many, f"break: {rule}") for rule, many in out.broken)], reverse=True)
    return tuple(f"{_about(out)}{count_of(many)} {why}" for many, why in counts if many)


def shortly(out: LeftOut) -> tuple[str, ...]:
    """The largest of the reasons, and how many more there are."""
    every = reasons_of(out)
    more = len(every) - _TOLD
    return every if more <= 1 else (*every[:_TOLD], f"{more} further rules are broken by fewer (all are on the page of `crossopt report`)")


def _about(out: LeftOut) -> str:
    return "" if out.exact else "about "


def unnamed_words(asked: Instance) -> str:
    """What is off only because the question does not name it, on devices that are bought; nothing where it names all, or opens the rest."""
    if not isinstance(asked.workload, Transformer) or not isinstance(asked.hardware, Hardware) or asked.cluster.devices == 1:
        return ""
    options = dict(asked.plan_options)
    meant = (*(_OF_TENSOR_RANKS if max(options["tensor"]) > 1 else ()), *_OF_REPLICAS)
    left = [f"{name}: {str(options[name][0]).lower()}" for name in meant if name in asked.unnamed and len(options[name]) == 1]
    return f"{', '.join(left)}; recipes have these on (name them, or write rest: all)" if left else ""
