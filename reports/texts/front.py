"""A Pareto front for the terminal: one line a point, with its bound where one is known and what was chosen."""

from crossopt.reports.facts.chip.words import design_words
from crossopt.reports.sheets.amounts import amount, bound_amount
from crossopt.reports.texts.width import listed, wrapped
from crossopt.solvers.codesign.answer import design_in
from crossopt.solvers.codesign.combined.pareto import Front, Point
from crossopt.solvers.codesign.objective import UNITS

_WIDTH = 14
_BOUND = "no less than"


def front_text(name: str, first: str, second: str, found: Front) -> str:
    """The front as a table."""
    points, ended = found.points, "" if found.stopped == "complete" else f" ({found.stopped})"
    if not points:
        return f"{name}: {'no design keeps every limit' if found.proved else f'no design found{ended}'}\n"
    labels = [figure.replace("_", " ") for figure in (first, second)]
    count = f"{len(points)} design{'s' * (len(points) != 1)}"
    proved = f"each proved; nothing is better in {labels[0]} that is not worse in {labels[1]}"
    words = proved if found.proved else f"not proved{ended}: there may be better ones, beside these and beyond them"
    lines = [*wrapped(f"{name}: ", f"{count}, {words}"), ""]
    bounded = any(point.result.bound is not None for point in points)
    rows = [(*labels, *([_BOUND] if bounded else []), "design")]
    for point in points:
        told = [amount(point.first, UNITS[first]), amount(point.second, UNITS[second]), *_bound(point, UNITS[second], bounded)]
        rows.append((*told, design_words(design_in(point.result) or {})))
    width = max(_WIDTH, *(len(word) + 2 for *figures, _ in rows for word in figures))
    for *figures, words in rows:
        lines += listed(f"  {''.join(f'{word:>{width}}' for word in figures)}  ", words)
    legend = wrapped("  ", f"{_BOUND}: no design whose {labels[0]} is that of the line or less has a lower {labels[1]}")
    lines += ["", *legend] if bounded else []
    return "\n".join(lines) + "\n"


def _bound(point: Point, unit: str, bounded: bool) -> list[str]:
    """The bound of the second figure where the front has any, `the same` where it is that figure."""
    bound = point.result.bound
    told = "-" if bound is None else "the same" if bound == point.second else bound_amount(bound, unit)
    return [told] if bounded else []
