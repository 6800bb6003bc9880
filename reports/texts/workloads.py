"""Answers about several workloads for the terminal: the chip once, then plan and value of each workload, limits, and the proof."""

from collections.abc import Sequence

from crossopt.instances.catalogue.workload_words import model_words
from crossopt.instances.codesign.instance import Instance
from crossopt.reports.sheets.amounts import amount, count_of, seconds_of, time_of
from crossopt.reports.texts.design import CHECKED, chip_lines, chosen_words, end_lines, limit_line, model_lines
from crossopt.reports.texts.width import listed, wrapped
from crossopt.solvers.codesign.answer import DesignResult, Share
from crossopt.solvers.codesign.claims import PROVERS
from crossopt.solvers.proofs import Boxes, EnumeratedTogether

_LABEL = 20


def several_answer(result: DesignResult, asked: Sequence[Instance] = ()) -> str:
    """A result as text; with its questions, also what is trained, what the chip draws, and which constants priced all of them."""
    if result.answer is None or result.details is None:
        return _no_design(result)
    designs, shares, first = result.answer.designs, result.details.shares, asked[0] if asked else None
    lines = [*_headline(result), "", *listed(f"  {'hardware':<{_LABEL}}", " · ".join(chosen_words(designs[0], first)))]
    trained = [line for one in asked for line in model_lines(model_words(one.workload), one.name)]
    lines += [
        *end_lines(designs[0], first, shares[0].evaluation["binding"]),
        *chip_lines(shares[0].evaluation, first, designs[0]),
        *trained,
        *_value_lines(result),
        "",
    ]
    for share, design in zip(shares, designs, strict=True):
        lines += _share_lines(share, design["words"], result)
    priced = wrapped(f"  {'priced by':<{_LABEL}}", first.priced_by) if first else []
    return "\n".join([*lines, "", "  limits", *_limit_lines(shares), *priced, "", *_certificate(result)]) + "\n"


def _headline(result: DesignResult) -> list[str]:
    label = f"{result.question['name']}   "
    if result.proved:
        return wrapped(label, f"{_size(result)}, proved in {seconds_of(result.seconds)} by {result.engine}")
    if result.proof is None and (result.stopped == "complete" or result.engine not in PROVERS):
        why = "" if result.stopped == "complete" else f" ({result.stopped})"
        return wrapped(label, f"{result.engine}: a design without a proof{why}")
    if result.settled:
        return wrapped(label, f"{_size(result)}, as told in {seconds_of(result.seconds)} by {result.engine}, in {result.proved_by}")
    return wrapped(label, f"not proved: {result.stopped}")


def _size(result: DesignResult) -> str:
    count = len(result.answer.designs) if result.answer else 0
    workloads = f"{count} workload{'s' * (count != 1)}"
    match result.proof:
        case EnumeratedTogether(space=space):
            chips = f"{count_of(space.serving)} of {count_of(space.hardware_points)} chips serve them all"
            return f"{workloads}, {count_of(space.designs)} designs, {chips}"
        case Boxes(tree=tree):
            plans = " x ".join(count_of(promising) for promising in tree.promising)
            return f"{workloads}, {count_of(tree.designs)} designs, {plans} plans in {count_of(tree.boxes)} boxes"
        case _:
            return workloads


def _value_lines(result: DesignResult) -> list[str]:
    combine, objective = (result.question[key].replace("_", " ") for key in ("combine", "objective"))
    bound = "no bound" if result.bound is None else f"bound {figure_of(result.bound, result)}"
    gap = "" if result.gap is None else f", gap {result.gap:.2%}"
    return wrapped(f"  {combine:<{_LABEL}}", f"{figure_of(result.value, result)}, of {objective}      {bound}{gap}")


def _share_lines(share: Share, plan: str, result: DesignResult) -> list[str]:
    """Value, weight or regret, and plan of one workload."""
    objective = result.question["objective"]
    unit = result.parts[0].question["unit"] if result.parts else result.question["unit"]
    words = [] if objective == "step_time" else [amount(share.value, unit)]
    words.append(f"step {time_of(share.evaluation['step_time'])}")
    words.append(f"weight {share.weight:g}" if share.regret is None else f"{share.regret:.2%} above its optimum alone")
    words.append(f"{count_of(round(share.evaluation['tokens_per_second']))} tokens/s")
    words.append(f"{share.evaluation['utilisation']:.1%} of peak")
    return [*listed(f"  {share.name:<{_LABEL}}", " · ".join(words)), *listed(f"  {'':<{_LABEL}}", plan)]


def _limit_lines(shares: tuple[Share, ...]) -> list[str]:
    """The limits of the chip once, those of a plan for each workload."""
    lines = []
    for share in shares:
        own = [limit for limit in share.evaluation["limits"] if limit["name"] in OF_PLANS]
        lines += [f"    {share.name}", *(f"  {limit_line(limit)}" for limit in own)]
    return [*lines, *(limit_line(limit) for limit in shares[0].evaluation["limits"] if limit["name"] not in OF_PLANS)]


OF_PLANS = ("memory", "step time")
"""Limits that each workload has of its own."""


def _certificate(result: DesignResult) -> list[str]:
    """The proof in a sentence."""
    checks = wrapped("  ", f"Checked for each workload: {CHECKED}.")
    if result.bound is None or not result.proved:
        return [*wrapped("  ", joint_proof(result)), *checks]
    alone = [f"{one.question['name']} alone: {_optimum(one)}, by {one.proved_by}." for one in result.parts]
    proof = wrapped("  ", f"certificate: {joint_proof(result)}")
    return [*proof, *(line for words in alone for line in wrapped("  ", words)), *checks]


def joint_proof(result: DesignResult) -> str:
    """What is proved, in a sentence."""
    if result.answer is None and result.proved:
        return f"no chip serves every workload within the limits, by {result.proved_by}."
    if result.bound is None:
        return f"not proved by {result.engine}, so a better design may exist."
    figure = f"{figure_of(result.bound, result)}, by {result.proved_by}."
    return f"no design of the question is below {figure}" if result.proved else f"a better design may exist, but none below {figure}"


def _optimum(result: DesignResult) -> str:
    return amount(result.value, result.question["unit"])


def _no_design(result: DesignResult) -> str:
    name = result.question["name"]
    if result.status != "INFEASIBLE":
        return f"{name}: no design found ({result.engine}: {result.stopped})\n"
    proof = f"no chip serves every workload within the limits, proved in {seconds_of(result.seconds)} by {result.proved_by}"
    lines = wrapped(f"{name}: ", proof)
    if isinstance(result.proof, EnumeratedTogether):
        space = result.proof.space
        lines += ["", f"  {count_of(space.hardware_points)} chips, {count_of(space.unbuilt)} of which cannot be built"]
        lines += [f"  workload {place}: served by {count_of(number)}" for place, number in enumerate(space.served, start=1)]
    return "\n".join([*lines, "", "  `crossopt explain FILE --workload NAME` names what clashes for one of them"]) + "\n"


def figure_of(value: float | None, result: DesignResult) -> str:
    """A figure of all workloads together."""
    if value is None:
        return "none"
    return f"{value:.3%}" if result.question["combine"] == "worst_regret" else amount(value, result.question["unit"])
