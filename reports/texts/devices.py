"""Answers about several numbers of devices for the terminal: one row for each number, and the best of them in full."""

from crossopt.reports.texts.design import amount, answer, count_of, design_words, listed, seconds_of, time_of, wrapped
from crossopt.solvers.codesign.combined.devices.result import CountsResult
from crossopt.solvers.codesign.result import Result


def counts_answer(result: CountsResult) -> str:
    """A result as text."""
    value = "" if _fewest(result) or _objective(result) == "step_time" else f"{_objective(result).replace('_', ' '):>24}"
    lines = [*_headline(result), "", f"  {'devices':>9}{value}{'step time':>12}  design"]
    lines += [line for count, one in zip(result.counts, result.answers, strict=False) for line in _row(count, one, bool(value))]
    why = "not looked at, as fewer are enough" if _fewest(result) and result.best is not None else f"not looked at ({result.stopped})"
    lines += [f"  {count_of(count):>9}  {why}" for count in result.counts[len(result.answers) :]]
    if result.best is None:
        settings = f"--set cluster.devices={result.counts[-1]}{' --set objective=step_time' * _fewest(result)}"
        return "\n".join([*lines, *(["", f"  `crossopt explain FILE {settings}` names what clashes"] if result.proved else [])]) + "\n"
    best = f"with {count_of(result.counts[result.best])} devices:"
    return "\n".join([*lines, "", *_certificate(result), "", best, ""]) + answer(result.answers[result.best])


def _headline(result: CountsResult) -> list[str]:
    label, numbers = f"{result.instance['name']}   ", f"{len(result.counts)} numbers of devices"
    if result.best is None:
        proof = f"none has a design, proved in {seconds_of(result.seconds)}" if result.proved else f"no design found ({result.stopped})"
        return wrapped(label, f"{numbers}, {proof}")
    best = count_of(result.counts[result.best])
    if result.proved:
        return wrapped(label, f"{numbers}, {best} is {'enough' if _fewest(result) else 'best'}, proved in {seconds_of(result.seconds)}")
    return wrapped(label, f"{numbers}, {best} is the best known, not proved")


def _row(count: int, one: Result, valued: bool) -> list[str]:
    start = f"  {count_of(count):>9}"
    if one.value is None or one.evaluation is None or one.design is None:
        return [f"{start}  {'no design keeps every limit' if one.proved else f'no design found ({one.stopped})'}"]
    value = f"{amount(one.value, one.instance['unit']):>24}" if valued else ""
    return listed(f"{start}{value}{time_of(one.evaluation['step_time']):>12}  ", design_words(one.design))


def _certificate(result: CountsResult) -> list[str]:
    """The proof in a sentence; each answer has its own."""
    if _fewest(result):
        return wrapped("  ", f"{_why_not_fewer(result)}.")
    if result.bound is None:
        return ["  not proved, so a better design may exist."]
    figure = amount(result.bound, str(result.instance["unit"]))
    return wrapped("  ", f"{'' if result.proved else 'a better design may exist, but '}no design with any of them is below {figure}.")


def _why_not_fewer(result: CountsResult) -> str:
    without = [(count_of(count), one.proved) for count, one in zip(result.counts, result.answers, strict=False) if one.value is None]
    refuted, unknown = (", ".join(count for count, proved in without if proved == kind) for kind in (True, False))
    words = [f"no design with {refuted} devices keeps every limit"] if refuted else []
    words += [f"whether {unknown} devices would do is not known"] if unknown else []
    return "; ".join(words) or "the question allows no fewer devices"


def _fewest(result: CountsResult) -> bool:
    return _objective(result) == "devices"


def _objective(result: CountsResult) -> str:
    return str(result.instance["objective"])
