"""A Pareto front for the terminal: one line a point, with what was chosen."""

from reports.text import amount, design_words
from solvers.pareto import Front

_UNITS = {"step_time": "s", "power": "W", "die_area": "m^2"}
_WIDTH = 14


def front_text(name: str, first: str, second: str, found: Front) -> str:
    """The front as a table."""
    points, ended = found.points, "" if found.stopped == "complete" else f" ({found.stopped})"
    if not points:
        return f"{name}: {'no design keeps every limit' if found.proved else f'no design found{ended}'}\n"
    labels = [figure.replace("_", " ") for figure in (first, second)]
    count = f"{len(points)} design{'s' * (len(points) != 1)}"
    proved = f"each proved; nothing is better in {labels[0]} that is not worse in {labels[1]}"
    words = proved if found.proved else f"not proved{ended}: there may be better ones, beside these and beyond them"
    lines = [f"{name}: {count}, {words}", ""]
    lines.append(f"  {labels[0]:>{_WIDTH}}{labels[1]:>{_WIDTH}}  design")
    for point in points:
        figures = (amount(point.first, _UNITS[first]), amount(point.second, _UNITS[second]))
        words = design_words(point.result.design) if point.result.design else ""
        lines.append(f"  {figures[0]:>{_WIDTH}}{figures[1]:>{_WIDTH}}  {words}")
    return "\n".join(lines) + "\n"
