"""Answers about several workloads for the terminal: the chip once, then plan and value of each workload, limits, and the proof."""

from crossopt.reports.texts.design import (
    amount,
    chip_lines,
    count_of,
    end_lines,
    hardware_words,
    limit_line,
    listed,
    seconds_of,
    time_of,
    wrapped,
)
from crossopt.solvers.codesign.combined.workloads.result import JointResult, Share
from crossopt.solvers.codesign.result import Result

_LABEL = 20


def several_answer(result: JointResult) -> str:
    """A result as text."""
    if not result.shares:
        return _no_design(result)
    first = result.shares[0]
    lines = [*_headline(result), "", *listed(f"  {'hardware':<{_LABEL}}", " · ".join(hardware_words(first.design)))]
    lines += [*end_lines(first.design), *chip_lines(first.evaluation), *_value_lines(result), ""]
    for share in result.shares:
        lines += _share_lines(share, result)
    return "\n".join([*lines, "", "  limits", *_limit_lines(result.shares), "", *_certificate(result)]) + "\n"


def _headline(result: JointResult) -> list[str]:
    label = f"{result.instance['name']}   "
    if result.proved:
        return wrapped(label, f"{_size(result)}, proved in {seconds_of(result.seconds)} by {result.engine}")
    if result.space is None and result.tree is None:
        why = "" if result.stopped == "complete" else f" ({result.stopped})"
        return wrapped(label, f"{result.engine}: a design without a proof{why}")
    return wrapped(label, f"not proved: {result.stopped}")


def _size(result: JointResult) -> str:
    workloads = f"{len(result.shares)} workload{'s' * (len(result.shares) != 1)}"
    if result.space is not None:
        chips = f"{count_of(result.space.serving)} of {count_of(result.space.hardware_points)} chips serve them all"
        return f"{workloads}, {count_of(result.space.designs)} designs, {chips}"
    if result.tree is None:
        return workloads
    plans = " x ".join(count_of(promising) for promising in result.tree.promising)
    return f"{workloads}, {count_of(result.tree.designs)} designs, {plans} plans in {count_of(result.tree.boxes)} boxes"


def _value_lines(result: JointResult) -> list[str]:
    combine, objective = (result.instance[key].replace("_", " ") for key in ("combine", "objective"))
    bound = "no bound" if result.bound is None else f"bound {figure_of(result.bound, result)}"
    gap = "" if result.gap is None else f", gap {result.gap:.2%}"
    return wrapped(f"  {combine:<{_LABEL}}", f"{figure_of(result.value, result)}, of {objective}      {bound}{gap}")


def _share_lines(share: Share, result: JointResult) -> list[str]:
    """Value, weight or regret, and plan of one workload."""
    objective = result.instance["objective"]
    unit = result.alone[0].instance["unit"] if result.alone else result.instance["unit"]
    words = [] if objective == "step_time" else [amount(share.value, unit)]
    words.append(f"step {time_of(share.evaluation['step_time'])}")
    words.append(f"weight {share.weight:g}" if share.regret is None else f"{share.regret:.2%} above its optimum alone")
    words.append(f"{count_of(round(share.evaluation['tokens_per_second']))} tokens/s")
    words.append(f"{share.evaluation['utilisation']:.1%} of peak")
    return [*listed(f"  {share.name:<{_LABEL}}", " · ".join(words)), *listed(f"  {'':<{_LABEL}}", share.design["words"])]


def _limit_lines(shares: tuple[Share, ...]) -> list[str]:
    """The limits of the chip once, those of a plan for each workload."""
    lines = []
    for share in shares:
        own = [limit for limit in share.evaluation["limits"] if limit["name"] in OF_PLANS]
        lines += [f"    {share.name}", *(f"  {limit_line(limit)}" for limit in own)]
    return [*lines, *(limit_line(limit) for limit in shares[0].evaluation["limits"] if limit["name"] not in OF_PLANS)]


OF_PLANS = ("memory", "step time")
"""Limits that each workload has of its own."""


def _certificate(result: JointResult) -> list[str]:
    """The proof in a sentence."""
    checks = wrapped("  ", f"Checked for each workload: {'; '.join(result.checks)}.")
    if result.bound is None or not result.proved:
        return [*wrapped("  ", joint_proof(result)), *checks]
    alone = [f"{one.instance['name']} alone: {_optimum(one)}, by {one.proved_by}." for one in result.alone]
    proof = wrapped("  ", f"certificate: {joint_proof(result)}")
    return [*proof, *(line for words in alone for line in wrapped("  ", words)), *checks]


def joint_proof(result: JointResult) -> str:
    """What is proved, in a sentence."""
    if not result.shares and result.proved:
        return f"no chip serves every workload within the limits, by {result.proved_by}."
    if result.bound is None:
        return f"not proved by {result.engine}, so a better design may exist."
    figure = f"{figure_of(result.bound, result)}, by {result.proved_by}."
    return f"no design of the question is below {figure}" if result.proved else f"a better design may exist, but none below {figure}"


def _optimum(result: Result) -> str:
    return amount(result.value, result.instance["unit"])


def _no_design(result: JointResult) -> str:
    name = result.instance["name"]
    if result.status != "INFEASIBLE":
        return f"{name}: no design found ({result.engine}: {result.stopped})\n"
    proof = f"no chip serves every workload within the limits, proved in {seconds_of(result.seconds)} by {result.proved_by}"
    lines = wrapped(f"{name}: ", proof)
    if result.space is not None:
        lines += ["", f"  {count_of(result.space.hardware_points)} chips, {count_of(result.space.unbuilt)} of which cannot be built"]
        lines += [f"  workload {place}: served by {count_of(number)}" for place, number in enumerate(result.space.served, start=1)]
    return "\n".join([*lines, "", "  `crossopt explain FILE --workload NAME` names what clashes for one of them"]) + "\n"


def figure_of(value: float | None, result: JointResult) -> str:
    """A figure of all workloads together."""
    if value is None:
        return "none"
    return f"{value:.3%}" if result.instance["combine"] == "worst_regret" else amount(value, result.instance["unit"])
