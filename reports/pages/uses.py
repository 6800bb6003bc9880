"""Steps of several designs beside each other on a page: a table by use of time, and what its words mean."""

from collections.abc import Sequence

from crossopt.reports.facts.uses import UNEQUAL, Uses, uses_named
from crossopt.reports.pages.shell import paragraph, table


def uses_table(beside: Sequence[Uses]) -> str:
    """Seconds of a step by use, a column for each design; nothing for a single one."""
    if len(beside) < 2:
        return ""
    rows = [(name, *(f"{one.seconds.get(name, 0.0):.4g}" for one in beside)) for name in uses_named(beside)]
    whole = ("the whole step", *(f"{one.step:.4g}" for one in beside))
    note = paragraph(f"{UNEQUAL.capitalize()}.") if any(one.seconds.get("unequal stages") for one in beside) else ""
    return table(("a step, in s", *(one.name for one in beside)), [*rows, whole], numbers=range(1, 1 + len(beside))) + note
