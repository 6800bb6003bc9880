"""What a study expected and what came of it, in lines; the same words stand on its page."""

from collections.abc import Iterator

from crossopt.reports.texts.width import wrapped
from crossopt.solvers.study.records import Finding, Study


def findings_text(study: Study) -> Iterator[str]:
    """Each expectation with its verdict, and how many there are of which."""
    if not study.plan.claims.expect and not study.findings:
        return
    yield from wrapped("  ", f"{verdicts_words(study)}.")
    for one in study.findings:
        yield from wrapped(f"  {one.verdict:<8}", finding_words(one))
    yield ""


def verdicts_words(study: Study) -> str:
    """How much of what was expected is so."""
    if not study.findings:
        return "what was expected is not judged before all is asked"
    counts = {verdict: sum(one.verdict == verdict for one in study.findings) for verdict in ("held", "failed", "open")}
    return f"expected: {', '.join(f'{count} {verdict}' for verdict, count in counts.items() if count)}"


def finding_words(one: Finding) -> str:
    """An expectation, and what came of it."""
    return f"{one.says}: {one.words}{f' ({one.source})' if one.source else ''}"


def ends_words(ends: tuple[float, float] | None) -> str:
    """A derived figure: one number where both ends are told alike."""
    if ends is None:
        return "-"
    least, most = (f"{end:.4g}" for end in ends)
    return least if least == most else f"{least} to {most}"
