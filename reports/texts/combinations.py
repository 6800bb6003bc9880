"""How many combinations of settings are no plans of a question, in words: the rules that most break, and on a page all of them."""

from crossopt.instances.codesign.left_out import LeftOut
from crossopt.reports.texts.width import count_of

_TOLD = 5
"""Reasons that a terminal shows."""
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
