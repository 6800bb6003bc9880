"""A Pareto front for the terminal: one line a point, with what was chosen."""

from reports.text import amount, design_words
from solvers.pareto import Point

_UNITS = {"step_time": "s", "power": "W", "die_area": "m^2"}
_WIDTH = 14


def front_text(name: str, first: str, second: str, points: list[Point]) -> str:
    """The front as a table."""
    if not points:
        return f"{name}: no design keeps every limit\n"
    proof = "each proved" if all(point.result.proved for point in points) else "not all of them proved"
    labels = [figure.replace("_", " ") for figure in (first, second)]
    count = f"{len(points)} design{'s' * (len(points) != 1)}"
    lines = [f"{name}: {count}, {proof}; nothing is better in {labels[0]} that is not worse in {labels[1]}", ""]
    lines.append(f"  {labels[0]:>{_WIDTH}}{labels[1]:>{_WIDTH}}  design")
    for point in points:
        figures = (amount(point.first, _UNITS[first]), amount(point.second, _UNITS[second]))
        words = design_words(point.result.design) if point.result.design else ""
        lines.append(f"  {figures[0]:>{_WIDTH}}{figures[1]:>{_WIDTH}}  {words}")
    return "\n".join(lines) + "\n"
