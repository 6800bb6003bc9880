"""Answers for the terminal: what was chosen, where the time goes, what is full, how far the rivals are, and the proof in one sentence."""

from collections.abc import Sequence
from typing import Any

from crossopt.instances.catalogue.workload_words import model_words, repeated_share
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.plans.left_out import LeftOut, left_out
from crossopt.instances.codesign.stacks.known import mean_error
from crossopt.reports.facts.building import clock_words, reticle_words
from crossopt.reports.facts.chip.bill import bill_of, bill_words
from crossopt.reports.facts.chip.held import held_words
from crossopt.reports.facts.chip.published import above_words
from crossopt.reports.facts.chip.rates import beside_l2, l2_limit_words
from crossopt.reports.facts.chip.watts import needed_powers, parts_words, watts_of
from crossopt.reports.facts.chip.words import chip_words, design_words, hardware_words, shapes_of
from crossopt.reports.facts.fullness import fullness_words
from crossopt.reports.facts.hidden_exchange import hidden_words
from crossopt.reports.facts.measured_runs import doubt_words, likely_words, runs_words
from crossopt.reports.facts.network import network_lines
from crossopt.reports.facts.priced_short import once_words, short_words
from crossopt.reports.facts.uses import saved_words, uses_of
from crossopt.reports.sheets.amounts import amount, count_of, lowered, seconds_of, shown, time_of
from crossopt.reports.texts.combinations import head_of, shortly, unnamed_words
from crossopt.reports.texts.goals import run_lines
from crossopt.reports.texts.near import common_words
from crossopt.reports.texts.width import bar, listed, wrapped
from crossopt.solvers.answer import Rival
from crossopt.solvers.codesign.answer import DesignResult, Designs, design_in, evaluation_in, from_words, space_in
from crossopt.solvers.codesign.claims import PROVERS
from crossopt.solvers.proofs import Boxes, Enumerated, Exact, Relaxed, Space, Word

_LABEL = 20
CHECKED = "priced again by the full model, one design on its own; plan rules; memory, area and power limits"
"""What the judge looked at before the result was told."""


def answer(result: DesignResult, asked: Instance | None = None) -> str:
    """A result as text; with its question, also what is trained, which combinations are no designs, and what failures leave."""
    design, evaluation, out = design_in(result), evaluation_in(result), None if asked is None else left_out(asked)
    if design is None or evaluation is None:
        return _no_design(result, out, asked)
    ends, chip = end_lines(design, asked, evaluation["binding"]), chip_lines(evaluation, asked, design)
    lines = [*_headline(result), "", *_design_lines(design, asked), *ends, *chip]
    lines += [] if asked is None else model_lines(model_words(asked.workload))
    lines += [
        *_value_lines(result, evaluation, asked),
        *run_lines(asked, result, evaluation),
        "",
        *_evaluation_lines(evaluation, asked, best=result.proof is not None),
        *power_lines(asked, design),
        *([] if asked is None else network_lines(asked, design)),
        "",
    ]
    notes = [
        *_rival_lines(result, asked),
        *_space_lines(result),
        *_left_out_lines(out),
        *([] if asked is None else _rests_on(asked, design, evaluation)),
        *(listed(f"  {'device, derived':<{_LABEL}}", asked.derived) if asked is not None and asked.derived else []),
        *(line for note in result.notes for line in wrapped("  ", f"{note}.")),
    ]
    return "\n".join([*lines, *notes, *([""] if notes else []), *_certificate(result)]) + "\n"


def _rests_on(asked: Instance, design: dict[str, Any], evaluation: dict[str, Any]) -> list[str]:
    """How far the model is off on public runs, and what hides on the word of one of them."""
    pairs = (
        ("hidden exchange", hidden_words(asked, design)),
        ("estimated L2", l2_limit_words(asked, design)),
        ("reticle", reticle_words(asked)),
        ("priced by", asked.priced_by),
        ("above published", above_words(asked, evaluation)),
        ("measured runs", runs_words(asked, design["plan"])),
        ("priced short", short_words(asked, design["plan"], evaluation["step_time"])),
        ("priced once", once_words(asked, design)),
        ("not launched", _unsaid(asked, design)),
        ("not named", unnamed_words(asked)),
    )
    return [line for label, words in pairs if words for line in wrapped(f"  {label:<{_LABEL}}", words)]


def _unsaid(asked: Instance, design: dict[str, Any]) -> str:
    """What of the network no setting of the question's stack says."""
    if asked.stack is None:
        return ""
    from crossopt.reports.launching.launch import unsaid_words  # noqa: PLC0415 - most questions name no stack

    return unsaid_words(asked.stack, asked.workload, from_words(asked, dict(design)).plan)


def evaluation_text(
    name: str, design: dict[str, Any], evaluation: dict[str, Any], model: Sequence[str] = (), asked: Instance | None = None
) -> str:
    """One priced design as text."""
    verdict = "keeps every limit" if evaluation["feasible"] else "BREAKS A LIMIT"
    lines = [
        f"{name}: one design, priced by the full model; it {verdict}",
        "",
        *_design_lines(design, asked),
        *chip_lines(evaluation, asked, design),
    ]
    lines += [
        *model_lines(model),
        f"  {'step time':<{_LABEL}}{time_of(evaluation['step_time'])}",
        *_rates(evaluation, asked, design["plan"]),
        "",
        *_evaluation_lines(evaluation, asked),
        *power_lines(asked, design),
        *([] if asked is None else network_lines(asked, design)),
        *([] if asked is None else ["", *wrapped(f"  {'priced by':<{_LABEL}}", asked.priced_by)]),
    ]
    return "\n".join(lines) + "\n"


def _headline(result: DesignResult) -> list[str]:
    label = f"{result.question['name']}   "
    if result.proof is None and (result.stopped == "complete" or result.engine not in PROVERS):
        why = "" if result.stopped == "complete" else f" ({result.stopped})"
        return wrapped(label, f"{result.engine}: a design without a proof{why}")
    if not result.settled:
        return wrapped(label, f"not proved: {_why(result)}")
    near = "" if result.optimal else f"within {result.gap_asked:.2%}"
    known = f"{near or 'optimal'}, as told," if result.told else f"proved {near}".rstrip()
    return wrapped(label, f"{_size(result)}, {known} in {seconds_of(result.seconds)} by {result.engine}")


def _size(result: DesignResult) -> str:
    """How many designs there are, and what became of them."""
    match result.proof:
        case Enumerated(space=space):
            return f"{_designs(space.designs)}, {count_of(space.feasible)} keep{'s' if space.feasible == 1 else ''} every limit"
        case Relaxed(relaxation=relaxation) | Exact(relaxation=relaxation):
            plans, rounds = relaxation.plans, relaxation.rounds
            words = f"{count_of(plans)} plan{'s' * (plans != 1)} in {count_of(rounds)} round{'s' * (rounds != 1)}"
            return words if rounds else "no round of an integer model"
        case Boxes(tree=tree):
            (plans,), (groups,), (promising,) = tree.plans, tree.groups, tree.promising
            some = f"{count_of(promising)} of {count_of(plans)} plans in {count_of(tree.boxes)} box{'es' * (tree.boxes != 1)}"
            looks = f"one look at each of {count_of(groups)} group{'s' * (groups != 1)} of plans"
            return f"{_designs(tree.designs)}, {some if promising else looks}"
        case proof:
            return proof.by if isinstance(proof, Word) else ""


def _left_out_lines(out: LeftOut | None) -> list[str]:
    """How many combinations are no plans, by what makes most of them so."""
    if out is None:
        return []
    if out.combinations == 1:
        return listed(f"  {'nothing is chosen':<{_LABEL}}", "every setting of the plan is fixed (`choices: all` opens them)")
    lines = [line for why in shortly(out) for line in wrapped(" " * (_LABEL + 2), why)]
    return [*listed(f"  {'plans':<{_LABEL}}", f"{head_of(out)}; of the others"), *lines] if lines else []


def _why(result: DesignResult) -> str:
    """Why there is no proof."""
    return f"{result.engine} searches a part of the question" if result.stopped == "complete" else result.stopped


def _design_lines(design: dict[str, Any], asked: Instance | None) -> list[str]:
    return [
        *listed(f"  {'hardware':<{_LABEL}}", " · ".join(chosen_words(design, asked))),
        *listed(f"  {'plan':<{_LABEL}}", design["words"]),
    ]


def chosen_words(design: dict[str, Any], asked: Instance | None) -> tuple[str, ...]:
    """The chip, up to how much parts draw whose power was chosen, and its clock."""
    return (*hardware_words(design, needed_powers(asked, design)), *clock_words(asked, design))


def chip_lines(evaluation: dict[str, Any], asked: Instance | None = None, design: dict[str, Any] | None = None) -> list[str]:
    """What one device offers."""
    beside = "" if asked is None or design is None else beside_l2(asked, design)
    return listed(f"  {'device':<{_LABEL}}", chip_words(evaluation, beside, () if asked is None else shapes_of(asked)))


def model_lines(words: Sequence[str], label: str = "model") -> list[str]:
    """What is trained."""
    return [line for number, one in enumerate(words) for line in listed(f"  {'' if number else label:<{_LABEL}}", one)]


def end_lines(design: dict[str, Any], asked: Instance | None = None, full: Sequence[str] = ()) -> list[str]:
    """Choices at the end of what the question allows: a wider range may hold a better design; and what holds the chip."""
    ends, held = [name.replace("_", " ") for name in design["at_end_of_range"]], held_words(asked, design, full)
    lines = listed(f"  {'at a range end':<{_LABEL}}", " · ".join(ends)) if ends else []
    return [*lines, *(wrapped(f"  {'at the most':<{_LABEL}}", f"{held} (`explain` says what binds)") if held else [])]


def _value_lines(result: DesignResult, evaluation: dict[str, Any], asked: Instance | None) -> list[str]:
    unit, label = result.question["unit"], result.question["objective"].replace("_", " ")
    value = amount(result.value, unit)
    bound = "no bound" if result.bound is None else f"bound {amount(result.bound, unit)}"
    gap = "" if result.gap is None else f", gap {result.gap:.2%}"
    lines = [f"  {label:<{_LABEL}}{value}      {bound}{gap}"]
    if unit != "s":
        lines.append(f"  {'step time':<{_LABEL}}{time_of(evaluation['step_time'])}")
    if result.question["objective"] == "energy_per_token":
        lines.append(f"  {'':<{_LABEL}}of the devices and their links; hosts, switches and cooling are not counted")
    design = design_in(result) or {"plan": {}}
    bill = None if asked is None else bill_of(asked, design)
    return [*lines, *_rates(evaluation, asked, design["plan"]), *(wrapped(f"  {'price':<{_LABEL}}", bill_words(bill)) if bill else [])]


def _rates(evaluation: dict[str, Any], asked: Instance | None, plan: dict[str, Any]) -> list[str]:
    """Tokens, model FLOPs of peak and, where something is computed again, hardware FLOPs of it, power and money."""
    used, again = evaluation["utilisation"], 0.0 if asked is None else repeated_share(asked.workload, plan)
    all_of = f" ({used * (1.0 + again):.1%} with what is computed again)" if again else ""
    rates = [f"{count_of(round(evaluation['tokens_per_second']))} tokens/s", f"{used:.1%} of peak{all_of}"]
    if evaluation["energy"] > 0.0:
        rates += [f"{evaluation['average_power']:.0f} W a device on average", f"{shown(evaluation['energy'], 'energy')} a step"]
    if evaluation["cost"] is not None:
        rates.append(f"{evaluation['cost']:.4g} USD a step")
    likely = likely_words(asked, evaluation)
    return [*(wrapped(f"  {'':<{_LABEL}}", likely) if likely else []), *listed(f"  {'':<{_LABEL}}", " · ".join(rates))]


def _evaluation_lines(evaluation: dict[str, Any], asked: Instance | None, best: bool = False) -> list[str]:
    """Where the time goes, what fills the memory, and the limits with those that are full."""
    total, items = evaluation["step_time"], evaluation["breakdown"]
    lines = ["  where the step goes"]
    for name, seconds in sorted(items.items(), key=lambda item: -item[1]):
        if seconds > 0.0:
            lines.append(f"    {name:<{_LABEL}}{time_of(seconds):>9}  {seconds / total:6.1%}  {bar(seconds / total)}".rstrip())
    memory = [f"{name} {shown(size, 'bytes')}" for name, size in evaluation["memory"].items() if size > 0.0]
    lines += ["", "  limits"]
    lines += [limit_line(limit) for limit in evaluation["limits"]]
    full = [] if asked is None else [words for one in evaluation["limits"] if (words := _fullness(asked, one, total if best else None))]
    return [*lines, *listed("    memory holds: ", ", ".join(memory)), *(line for words in full for line in wrapped("    ", f"{words}."))]


def power_lines(asked: Instance | None, design: dict[str, Any]) -> list[str]:
    """What the parts of a chosen chip draw, which the limit on power counts together."""
    watts = watts_of(asked, design)
    return [] if watts is None else listed("    power is drawn by: ", parts_words(watts))


def _fullness(asked: Instance, limit: dict[str, Any], seconds: float | None) -> str:
    return fullness_words(asked, limit["used"], limit["available"], seconds) if limit["name"] == "memory" else ""


def limit_line(limit: dict[str, Any]) -> str:
    """One limit and how much of it is used."""
    used, available = shown(limit["used"], limit["unit"]), shown(limit["available"], limit["unit"])
    share = limit["used"] / limit["available"] if limit["available"] else float("inf")
    mark = "  BROKEN" if not limit["kept"] else "  full" if share >= 0.95 else ""
    return f"    {limit['name']:<{_LABEL - 6}}{used:>13} of {available:<11}  {share:6.1%}  {bar(min(share, 1.0), framed=True)}{mark}"


def _rival_lines(result: DesignResult, asked: Instance | None) -> list[str]:
    return [line for rival in result.rivals for line in _rival(rival, result, asked)]


def _rival(rival: Rival[Designs], result: DesignResult, asked: Instance | None) -> list[str]:
    if rival.value is None or rival.answer is None or result.value is None:
        return wrapped(f"  {rival_label(rival):<{_LABEL}}", rival_words(rival, asked))
    distance = rival.value / result.value - 1.0
    against = f"{distance:.1%} above the {'optimum' if result.proved else 'best design found'}" if distance else "finds the same value"
    doubt = "" if asked is None else doubt_words(mean_error(asked), distance)
    head = f"  {rival_label(rival):<{_LABEL}}{rival.value:.5g} {result.question['unit']}, {against}"
    lines = [head, *listed(f"  {'':<{_LABEL}}", rival_words(rival, asked))]
    why = "" if asked is None or distance == 0.0 else rival_saved(asked, result, rival)
    return [*lines, *(line for words in (why, doubt) if words for line in wrapped(f"  {'':<{_LABEL}}", words))]


def rival_saved(asked: Instance, result: DesignResult, rival: Rival[Designs]) -> str:
    """What the answer saves of a rival's step, and on what."""
    uses = [uses_of(asked, "", one.designs[0]) for one in (result.answer, rival.answer) if one is not None]
    return saved_words(uses[0], uses[1], proved=result.proved) if len(uses) > 1 else ""


def rival_label(rival: Rival[Designs]) -> str:
    """What a rule is called beside an answer."""
    return {"recipes": "best recipe", "nvidia": "NVIDIA's recipe", "nvidia-own": "NVIDIA's own plan"}.get(rival.name, f"{rival.name} rule")


def rival_words(rival: Rival[Designs], asked: Instance | None = None) -> str:
    """What a rule chooses, by which recipe; or why it chooses nothing."""
    if rival.value is None or rival.answer is None:
        return rival.note if rival.name == "nvidia-own" else f"finds no design: {rival.note}"
    design = rival.answer.designs[0]
    return f"{f'{rival.note}: ' if rival.note else ''}{design_words(design, needed_powers(asked, design))}"


def _space_lines(result: DesignResult) -> list[str]:
    space = space_in(result)
    if space is None or not result.settled:
        return []
    others = [("as good", space.ties - 1), ("within 1 %", space.within_1_percent - 1), ("within 5 %", space.within_5_percent - 1)]
    words = ", ".join(f"{count_of(count) if count else 'none'} {what}" for what, count in others)
    share, common = common_words(space, result.value or 0.0)
    alike = listed(f"  {share:<{_LABEL}}", common) if common else []
    return [*wrapped(f"  {'other designs':<{_LABEL}}", words), *alike, *_undecided_lines(space)]


def _undecided_lines(space: Space) -> list[str]:
    """How many designs are nearer to the best one than the model is to measured runs."""
    if space.error is None or space.within_error is None:
        return []
    others, near = space.within_error - 1, f"within {space.error:.1%}, the model's mean error on measured runs, of the best"
    words = {0: f"no other design is {near}", 1: f"one other design is {near}: the model cannot tell the two apart"}
    many = f"{count_of(others)} other designs are {near}: the model cannot tell them apart"
    return wrapped(f"  {'too close to call':<{_LABEL}}", words.get(others, many))


def _certificate(result: DesignResult) -> list[str]:
    """The proof in a sentence."""
    label = "certificate: " if result.settled and result.bound is not None else ""
    return [*wrapped("  ", f"{label}{proof_words(result)}"), *wrapped("  ", f"Checked: {CHECKED}.")]


def proof_words(result: DesignResult) -> str:
    """What is proved, in a sentence."""
    if result.bound is None:
        return f"not proved by {result.engine}, so a better design may exist."
    if result.settled and result.value == result.bound:  # the value itself, which is told to the nearest digit as everywhere
        return f"no design of the question is below this one's {result.value:.6g} {result.question['unit']}, by {prover_words(result)}."
    figure = f"{lowered(result.bound)} {result.question['unit']}, by {prover_words(result)}."
    return f"no design of the question is below {figure}" if result.settled else f"a better design may exist, but none below {figure}"


def prover_words(result: DesignResult) -> str:
    """Who proved the bound, or whose word it is."""
    solver = isinstance(result.proof, Relaxed) and result.proof.relaxation.solver
    return f"the word of {result.proved_by}" if solver else result.proved_by


def _no_design(result: DesignResult, out: LeftOut | None, asked: Instance | None) -> str:
    name = result.question["name"]
    if not result.settled:
        why = f"{result.engine} finds none" if result.stopped == "complete" else f"{result.engine}: {result.stopped}"
        return f"{name}: no design found ({why})\n"
    known = "answered" if result.told else "proved"
    proof = f"no design of the question keeps every limit, {known} in {seconds_of(result.seconds)} by {result.proved_by}"
    lines = [*wrapped(f"{name}: ", proof), ""]
    lines += [f"  {reason}" for reason in result.reasons] or ["  `crossopt explain` names the limits and choices that clash"]
    lines += [line for note in result.notes for line in wrapped("  ", f"{note}.")]
    lines += [*_left_out_lines(out), *(wrapped(f"  {'not named':<{_LABEL}}", left) if asked and (left := unnamed_words(asked)) else [])]
    return "\n".join(lines) + "\n"


def _designs(number: int) -> str:
    return f"{count_of(number)} design{'' if number == 1 else 's'}"
