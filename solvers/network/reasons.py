"""Why no bandwidths keep the limits: the least ones that keep ends and orders already break one, or the most are too few."""

from math import inf

from crossopt.formulation.network.program import broken_rows, least_point, options_of, program_of
from crossopt.instances.network.question import NetworkQuestion


def why_none(question: NetworkQuestion) -> tuple[str, ...]:
    """In words; none where some bandwidths keep all limits."""
    program = program_of(question)
    least = least_point(program, options_of(question))
    if least is None:
        return ("what dimensions have at the least, in the order that is asked for, is more than one of them may have",)
    broken = [place for place in broken_rows(program, least) if min(program.rows[place][0]) >= 0.0]
    if broken:
        names = [question.rows[place].name for place in broken]
        return tuple(f"{name}: the least bandwidths of all dimensions already take more" for name in names)
    asked = question.file.budget.at_least
    if asked is not None and most_together(question) < asked:
        return (f"budget.at_least: all dimensions together may have {most_together(question) / 1e9:.6g} GB/s at the most",)
    return ()


def most_together(question: NetworkQuestion) -> float:
    """The most that all dimensions may have together, within their ends and orders."""
    highs = list(question.highs)
    for more, less in question.descending:
        highs[less] = min(highs[less], highs[more])
    return sum(highs) if max(highs) < inf else inf
