"""A whole run in words: how long it takes and what it costs, beside its deadline and budget."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil, floor, isfinite
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from crossopt.crossflow.goodput import goodput
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.plan import Plan
from crossopt.instances.catalogue.workload import repeated_share
from crossopt.instances.codesign.instance import FreeHardware, Goal, Instance
from crossopt.instances.codesign.known_errors import mean_error
from crossopt.instances.codesign.plan_groups import LeftOut, left_out
from crossopt.instances.files.units import rounded_quantity
from crossopt.reports.facts.building import clock_text
from crossopt.reports.facts.chip import (
    beside_l2,
    bill_of,
    bill_text,
    chip_text,
    choice_name,
    design_text,
    exceeded,
    hardware_text,
    needed_powers,
    shapes_of,
    watts_of,
)
from crossopt.reports.facts.network import network_of
from crossopt.reports.facts.question import QuestionText, text_of_question
from crossopt.reports.facts.repriced import coverage_text, covered_text, doubt_text, likely_text, safer_text
from crossopt.reports.facts.uses import Linearized, Term, saved_text, uses_of
from crossopt.reports.render.width import page_width
from crossopt.reports.sheets.amounts import (
    DAY,
    above,
    count_of,
    days_between,
    days_of,
    digits,
    digits_below,
    seconds_of,
    several,
    shown,
    time_of,
    tokens_of,
)
from crossopt.reports.sheets.codesign.caveats import (
    BRIEF,
    PRICED_BY,
    Caveat,
    Context,
    Note,
    caveats_section,
    context_of,
    memory_nearly_full,
    priced_by,
    unnamed_text,
)
from crossopt.reports.sheets.sheet import (
    FULL,
    Bar,
    Bars,
    Breakdown,
    Column,
    Folded,
    Limit,
    Limits,
    Pairs,
    Part,
    Picture,
    Search,
    Section,
    Sheet,
    Table,
    amounts,
    answer_sheet,
    counts,
    figures,
    given_in,
    names,
)
from crossopt.solvers.answer import Baseline, Result
from crossopt.solvers.codesign.answer import (
    BESIDE,
    ChosenDesign,
    DesignEvaluation,
    DesignResult,
    Designs,
    LimitUse,
    chosen_hardware,
    relaxation_in,
    space_in,
)
from crossopt.solvers.proofs import Boxes, Enumerated, Exact, Relaxed, Space, UnverifiedBound

if TYPE_CHECKING:
    from crossopt.crossflow.rare_exchanges import Groups
    from crossopt.reports.drawing.svg import Titles
    from crossopt.solvers.codesign.explain.near_optimal import Known, Near

Range = tuple[float, float]
"""The step times between which a design is likely."""


def goal_text(goal: Goal, step_time: float, likely: Range = (0.0, 0.0)) -> str:
    """What the run comes to with this step time."""
    return " · ".join([f"{tokens_of(goal.tokens)} tokens in {several(goal.steps, 'step')}", *run_figures(goal, step_time, likely)])


def run_figures(goal: Goal, step_time: float, likely: Range = (0.0, 0.0)) -> list[str]:
    """Days, and money where a rent or a purchase is given, each of its limit, and by the likely range; of a purchase with its items."""
    money, items = goal.money(step_time), goal.items(step_time)
    days = f"{days_of(goal.seconds(step_time))}{f' of {days_of(goal.wanted)}' if isfinite(goal.wanted) else ''}"
    paid = "" if money is None else f"{money:,.0f} USD{f' of {goal.budget:,.0f} USD' if isfinite(goal.budget) else ''}"
    entries = [f"{money:,.0f} USD {name}" for name, money in items] if goal.purchase is not None else []
    failures = [] if goal.lasting == 1.0 else [f"failures counted, {days_of(goal.seconds(step_time) * goal.lasting)} without"]
    return [days, *([paid] if paid else []), *(entries if len(entries) > 1 else []), *_likely(goal, likely), *failures]


def _likely(goal: Goal, likely: Range) -> list[str]:
    """The run by the likely range of the step, and whether a limit that the central constants satisfy may be violated."""
    low, high = likely
    if low >= high:
        return []
    least, most = goal.money(low) or 0.0, goal.money(high) or 0.0
    paid = f" and {least:,.0f} to {most:,.0f} USD" if least < most else ""
    missed = [
        name for name, worst, limit in (("deadline", goal.seconds(high), goal.deadline), ("budget", most, goal.budget)) if worst > limit
    ]
    late = f", at worst past the {' and the '.join(missed)} (goal.by: slowest holds the slowest constants to it)" if missed else ""
    return [f"likely {days_between(goal.seconds(low), goal.seconds(high))}{paid}{late}"]


def run_text(instance: Instance, evaluation: DesignEvaluation) -> str:
    """The run of an answer; empty if the question has no run."""
    return "" if instance.goal is None else goal_text(instance.goal, evaluation.step_time, evaluation.likely)


def rent_text(question: Instance) -> str:
    """What a device rents for, and by whose list; nothing where nothing is rented."""
    goal = question.goal
    if goal is None or goal.purchase is not None or (goal.rent is None and isinstance(question.hardware, FreeHardware)):
        return ""
    if goal.rent is None:
        return "no list price of this device is known: with `rent` (of `plan` --rent) the cost is shown"
    return f"{goal.rent:,.4g} USD per device and hour, {goal.rent_source or 'as given'}"


def lasting_text(instance: Instance, evaluation: DesignEvaluation) -> str:
    """What is left of the speed where devices fail now and then; nothing where they do not."""
    if instance.failures is None:
        return ""
    groups = 1 if instance.sites is None else instance.sites.groups
    left = goodput(instance.failures, groups * instance.cluster.devices)
    tokens = f"{floor(evaluation.tokens_per_second * left.share):,}"
    often = f"a failure in {span_of(left.between)}, a checkpoint every {span_of(left.interval)} (no other interval leaves more)"
    return f"{tokens} tokens/s · {left.share:.1%} of the time lasts · {often}"


def span_of(seconds: float) -> str:
    """A long time in its natural unit."""
    unit, size = next((pair for pair in (("days", DAY), ("h", 3600.0), ("min", 60.0)) if seconds >= 2.0 * pair[1]), ("s", 1.0))
    return f"{seconds / size:.3g} {unit}"


# The section about an integer model: each term of the step as its tangent has it and as the full model does.

_TITLE = "The integer model against the full one"
_FORMS = {
    "strong": "Tangents are rows that say something of every plan.",
    "weak": "Tangents are rows that speak of their plan alone, behind a big M.",
    "table": "This form takes times from tables over plans and parts of the chip, and rows for single chips instead of tangents.",
    "classic": "This form writes 1/x of each part's rate by straight pieces, which lose a little more than the tangents below.",
    "log": "This form writes products as sums of logarithms, which lose a little more than the tangents below.",
}
_NEAR = 1e-12


def linear_section(linear: Linearized | None) -> Section:
    """The section; empty where no integer model was asked."""
    if linear is None:
        return Section(_TITLE, ())
    form = _form(linear)
    if not linear.terms:
        given = "The chip is given, so that no term had to be made linear: the price of a plan is a number."
        return Section(_TITLE, (form, given))
    return Section(_TITLE, (form, _sentence(linear), *_picture(linear), _table(linear), _rest(linear)))


def _form(linear: Linearized) -> str:
    """What the bound was found with."""
    if linear.rounds:
        return f"The bound was found with the {linear.form} form. {_FORMS.get(linear.form, '')}".strip()
    none = "No round of the integer model ran: bounds on the best chip and prices on the budgets left nothing for a solver."
    return f"{none} Below are the model's tangents all the same, beside the full model." if linear.terms else none


def _sentence(linear: Linearized) -> str:
    worst = max(linear.terms[:-1], key=lambda term: term.error, default=linear.terms[-1])
    step = linear.terms[-1]
    if worst.error <= _NEAR:
        return f"At the chip of this design the tangent of its plan is exact: {time_of(step.full)}, and so is each of its terms."
    return (
        f"At the chip of this design the tangent of its plan is {_share(step.error)} below the step of {time_of(step.full)}; of its terms "
        f"it loses the most of the {worst.name}, {_share(worst.error)}."
    )


def _picture(linear: Linearized) -> tuple[Picture, ...]:
    """The step by the tangent over the step as it is, chip by chip."""
    if not linear.step:
        return ()
    step, pairs = linear.terms[-1], [(full, low) for low, full in linear.step]
    text = f"On {linear.chips:,} other chips the tangent is {_share(step.worst or 0.0)} below the step at the most, and above it on none."
    if any(low > full * (1.0 + 1e-9) for full, low in pairs):
        text = f"On some of {linear.chips:,} other chips the tangent is above the step, which no bound may be."
    answer, axes = (step.full, step.linear, "this design"), ("seconds by the full model", "seconds by the tangent")
    caption = f"{text} The broken line is where both are equal."
    title = "The step by the tangent and as it is"

    def drawn(titles: "Titles") -> str:
        from crossopt.reports.drawing.plots import parity  # noqa: PLC0415 - pages alone draw it

        return parity(titles, pairs, answer, axes)

    return (Picture(drawn, "", caption, title=title, described=text, zooms=False),)


def _table(linear: Linearized) -> Table:
    sampled, terms = linear.chips > 0, linear.terms
    caption = "Seconds at the chip of this design"
    columns = (
        names("term", (term.name for term in terms)),
        amounts("by the tangent", [term.linear for term in terms], time_of, "s"),
        amounts("by the full model", [term.full for term in terms], time_of, "s"),
        amounts("below it by", [term.error for term in terms], _share),
        *([figures("at worst", [_worst(term) for term in terms])] if sampled else []),
    )
    return Table(columns, caption=f"{caption}; at worst: on {linear.chips:,} drawn chips" if sampled else caption)


def _worst(term: Term) -> str:
    return "-" if term.worst is None else _share(term.worst)


def _rest(linear: Linearized) -> str:
    liked = "at chips that the relaxation liked too much, make the bound"
    role = liked if linear.rounds else "at the best design known and at chips that prices made cheapest, served those prices"
    taken = f"{linear.tangents:,} of them, {role}. " if linear.tangents else ""
    return (
        f"A tangent is near where it is taken{f'; {taken}' if taken else '. '}"
        "Each is lowered by 1e-9 of its largest figures for rounding. The design itself is priced by the full model."
    )


def _share(share: float) -> str:
    return "0" if abs(share) <= _NEAR else f"{share:.2%}" if share >= 1e-4 else f"{share:.1e}"


# What near-optimal designs have in common, in words: every choice with the options that occur.

_DIGITS = 4
_LISTED = 3
_TIE = "\N{NO-BREAK SPACE}"


def common_text(space: Space, value: float) -> tuple[str, str]:
    """Within how much of the best value there are others, and what all designs within that have in common; the nearest such share."""
    for count, share, limit in ((space.within_1_percent, "within 1 %", value * 1.01), (space.within_5_percent, "within 5 %", value * 1.05)):
        if count > 1:
            return share, choices_text([(choice.name, choice.within(limit), choice.of) for choice in space.near])
    return "", ""


def near_text(near: "Near | None", gap: float) -> str:
    """What every design near the optimum has, and what was not decided in time."""
    if near is None:
        return f"\n  within {100.0 * gap:.4g} % of the optimum: not known, as the optimum was not proved in time\n"
    settled = [known for known in near.choices if not _open(known)]
    text = choices_text([(known.name, _occurring(known), len(known.options) + (not known.asked_between)) for known in settled])
    lines = [f"\n  designs within {100.0 * gap:.4g} % of the optimum, by proof:"]
    lines += [line for part in text.split("; ") if part for line in _indented(part)]
    lines += [line for known in near.choices if (places := _open(known)) for line in _indented(_undecided(known, places))]
    return "\n".join(lines) + "\n"


def _occurring(known: "Known") -> list[Any]:
    """The options that occur; between the ends also those that were not asked."""
    return [option for option, never in zip(known.options, known.never, strict=True) if not never]


def _open(known: "Known") -> list[int]:
    """Options of which it is not known whether they occur, and of which that was asked."""
    places = [index for index, (occurs, never) in enumerate(zip(known.occur, known.never, strict=True)) if not (occurs or never)]
    found = [index for index, occurs in enumerate(known.occur) if occurs]
    return [index for index in places if known.asked_between or not found[0] < index < found[-1]]


def _undecided(known: "Known", places: list[int]) -> str:
    """What is known of a choice that was not decided in time."""
    found = [option for option, occurs in zip(known.options, known.occur, strict=True) if occurs]
    rest = options_text(known.name, [known.options[index] for index in places])
    return f"{options_text(known.name, found)}; not decided in time whether {rest}, too"


def _indented(text: str) -> list[str]:
    tied = re.sub(r"(?<!,) ", _TIE, text)
    lines = wrap(tied, page_width(), initial_indent="    ", subsequent_indent="      ", break_long_words=False, break_on_hyphens=False)
    return [line.replace(_TIE, " ") for line in lines]


def choices_text(choices: Sequence[tuple[str, list[Any], int]]) -> str:
    """Name, occurring options and number of all options of each choice: first what is alike, then what differs, then what does not
    matter at all."""
    common = [options_text(name, options) for name, options, _ in choices if len(options) == 1]
    differ = [options_text(name, options) for name, options, of in choices if 1 < len(options) < of]
    anything = [name.replace("_", " ") for name, options, of in choices if 1 < len(options) == of]
    parts = [f"all have {', '.join(common)}"] if common else []
    return "; ".join([*parts, *differ, *([f"every option of {', '.join(anything)}"] if anything else [])])


def options_text(name: str, options: list[Any]) -> str:
    """Options of a choice as a person would say them: one or a few one by one, more of them by the least and the greatest."""
    if options in (["none"], [False], [True]) and isinstance(options[0], str | bool):
        return f"{'' if options[0] is True else 'no '}{name.replace('_', ' ')}"
    if len(options) > _LISTED and not isinstance(options[0], str):
        return _named(name, f"between {option_word(name, min(options))} and {option_word(name, max(options))}")
    listed = [option_word(name, option) for option in options]
    return _named(name, listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} or {listed[-1]}")


def option_word(name: str, option: Any) -> str:  # noqa: ANN401 - options are numbers or words
    """One option, with its unit."""
    kind = name.rpartition("_")[2]
    if kind not in {"area", "power"}:
        return f"{option:.{_DIGITS}g}" if isinstance(option, float) else str(option)
    return rounded_quantity(option, kind, _DIGITS)


def _named(name: str, options: str) -> str:
    part, _, kind = name.rpartition("_")
    if name == "hbm_stacks":
        return f"{options} HBM stacks"
    if name == "zero":
        return f"ZeRO-{options.replace('or ', 'or ZeRO-').replace(', ', ', ZeRO-')}"
    if kind == "edge":
        return f"{part.replace('_', ' ')} {options} of the edge"
    label = (part if kind in {"area", "power"} else name).replace("_", " ")
    return f"{label} given {options}" if kind == "power" else f"{label} {options}"


# The sheet of one workload's best design, or of one design that was priced, and the sections that other sheets share with it.

CHECKED = "by the full model, one design on its own; plan rules; memory, area and power limits"
"""What the judge checked before the result was reported."""
_REASONS = 5
"""Why combinations are no plans, on a terminal."""


def design_sheet(question: Instance, result: DesignResult) -> Sheet:
    """What is shown of an answer about one workload on one number of devices."""
    terms = text_of_question(question)
    context = context_of(question, result)
    sections = without_design(question, result) if context is None else answer_sections(context)
    made = answer_sheet(
        result,
        "design",
        terms.sentence,
        asks=question.objective.replace("_", " "),
        looked_at=size_text(result),
        summary="" if context is None else design_text(context.design, needed_powers(question, context.design)),
        sketch=None if context is None else sketch_of(context),
        figures=() if context is None else rates(context.evaluation, question, context.design.plan),
        beside=baselines_beside(result),
        given=terms.terms,
        open_choices=open_choices(terms),
        sections=(*sections, combinations_section(left_out(question))),
        brief=None if context is None else lambda: brief_of(context),
        next_step="`crossopt explain` names the limits and choices that clash",
        details=lambda: () if context is None else details_of(context),
        notes=tuple(f"{note}." for note in result.notes),
        prover=prover_text(result),
        judged=CHECKED,
        about=about(terms),
    )
    if context is None:
        return made
    missed = question.goal is not None and bool(question.goal.seconds(context.evaluation.step_time) > question.goal.wanted)
    return replace(made, lead=_lead(context, result), label=f"{'deadline missed; ' * missed}{made.label}", missed=missed)


def answer_sections(context: Context) -> tuple[Section, ...]:
    """The design, where its time goes, its limits, what it stands beside, and what a reader has to know of it."""
    result = context.result
    assert_answer = (baselines_section(context, result), near_section(result)) if result is not None else ()
    return (*design_sections(context), *assert_answer, caveats_section([("", context)]))


def design_sections(context: Context, of: str = "") -> tuple[Section, ...]:
    """What was chosen, what it reaches, where its time goes, and its limits."""
    question, design, evaluation = context.question, context.design, context.evaluation
    estimated = estimates(context)
    network = network_of(question, design) if question.cluster.are_dimensions else None
    return (
        Section(f"The design{of}", (given_in((*chip_rows(context), ("plan", design.plan_label))),)),
        Section(f"Estimates{of}", (given_in(estimated),) if estimated else ()),
        *([_sites(question.sites, evaluation.step_time)] if question.sites is not None and question.sites.groups > 1 else []),
        time_section(evaluation, of),
        Section(f"Limits{of}", limits_parts(context)),
        *([_network(network, of)] if network is not None else []),
    )


def _sites(sites: "Groups", step: float) -> Section:
    from crossopt.reports.sheets.codesign.machine import sites_section  # noqa: PLC0415 - most questions have one group

    return sites_section(sites, step)


def _sites_text(sites: "Groups | None", step: float) -> str:
    if sites is None:
        return ""
    from crossopt.reports.sheets.codesign.machine import sites_text  # noqa: PLC0415 - most questions have one group

    return sites_text(sites, step)


def _network(network: Any, of: str) -> Section:  # noqa: ANN401 - a network with what is exchanged on it
    from crossopt.reports.sheets.codesign.machine import network_section  # noqa: PLC0415 - most networks are on pages alone

    return network_section(network, of)


def chip_rows(context: Context) -> Pairs:
    """The chip, up to how much parts draw whose power was chosen, with its clock, and what one device offers."""
    question, design = context.question, context.design
    chip = " · ".join((*hardware_text(design, needed_powers(question, design)), *clock_text(question, design)))
    return ("hardware", chip), ("a device offers", chip_text(context.evaluation, beside_l2(question, design), shapes_of(question)))


def time_section(evaluation: DesignEvaluation, of: str = "") -> Section:
    """Where the time of a step goes."""
    total = time_of(evaluation.step_time)
    return Section(f"Where the step{of} goes", (Breakdown("use", uses(evaluation), "time", f"A step of {total} on the fullest stage."),))


def uses(evaluation: DesignEvaluation) -> tuple[tuple[str, float], ...]:
    """Uses of time, the largest first."""
    return tuple(sorted(evaluation.breakdown.items(), key=lambda item: -item[1]))


def limits_parts(context: Context) -> tuple[Part, ...]:
    """The limits, and what fills the memory and draws the power."""
    evaluation = context.evaluation
    memory = next((limit.available for limit in evaluation.limits if limit.name == "memory"), 0.0)
    watts = watts_of(context.question, context.design)
    caption = "" if watts is None else f"Together {shown(watts.kinds[0].total, 'power')} in {watts.kinds[0].name}."
    return (
        Limits(tuple(map(limit_of, evaluation.limits))),
        Breakdown("use", tuple(evaluation.memory.items()), "bytes", "", memory, brief="memory holds:"),
        *([Breakdown("part", watts.kinds[0].watts, "power", caption, brief="power is drawn by:")] if watts is not None else []),
    )


def limit_of(limit: LimitUse) -> Limit:
    """A limit of an evaluation."""
    return Limit(limit.name, limit.used, limit.available, limit.unit, limit.satisfied)


def rates(evaluation: DesignEvaluation, question: Instance | None, plan: Plan | KernelPlan) -> Pairs:
    """Tokens, model FLOPs of the peak and, where something is computed again, hardware FLOPs of it, power, energy and money."""
    used = evaluation.utilisation
    again = 0.0 if question is None else repeated_share(question.workload, plan)
    found = [("step time", time_of(evaluation.step_time))] if question is None or question.objective != "step_time" else []
    found += [("tokens a second", count_of(round(evaluation.tokens_per_second))), ("MFU", f"{used:.1%}")]
    found += [("HFU", f"{used * (1.0 + again):.1%}")] if again else []
    if evaluation.energy > 0.0:
        found += [("average power of a device", f"{evaluation.average_power:.0f} W")]
        found += [("energy of a step", shown(evaluation.energy, "energy"))]
    return (*found, *([("cost of a step", f"{evaluation.cost:.4g} USD")] if evaluation.cost is not None else []))


def estimates(context: Context) -> Pairs:
    """The likely range of a step, the whole run, what failures leave, and the price of a device, as far as they are asked for."""
    question, bill = context.question, bill_of(context.question, context.design)
    rows = (
        ("likely step time", covered_text(question, context.evaluation)),
        ("whole run", run_text(question, context.evaluation)),
        ("deadline", deadline_text(question.goal, context.evaluation.step_time, context.evaluation.likely)),
        ("rent", rent_text(question)),
        ("with failures", lasting_text(question, context.evaluation)),
        ("price", bill_text(bill) if bill else ""),
    )
    return tuple((label, text) for label, text in rows if text)


def fullness(evaluation: DesignEvaluation) -> str:
    """Which limits are full."""
    full = [limit for limit in map(limit_of, evaluation.limits) if limit.share >= FULL]
    listed = ", ".join(f"{limit.label} {limit.share:.1%}" for limit in full)
    return f"Full: {listed}; crossopt explain says which bind." if full else f"No limit is full: none is used to {FULL:.0%}."


# --- how the search ended ------------------------------------------------------------------------------------------------------------


def size_text(result: DesignResult) -> str:
    """How many designs there are, and what became of them."""
    match result.proof:
        case Enumerated(space=space) if result.value is not None:
            return f"{_designs(space.designs)}, {count_of(space.feasible)} keep{'s' if space.feasible == 1 else ''} every limit"
        case Relaxed(relaxation=relaxation) | Exact(relaxation=relaxation):
            plans, rounds = relaxation.plans, relaxation.rounds
            text = f"{count_of(plans)} plan{'s' * (plans != 1)} in {count_of(rounds)} round{'s' * (rounds != 1)}"
            return text if rounds else "no round of an integer model"
        case Boxes(tree=tree):
            (plans,), (groups,), (promising,) = tree.plans, tree.groups, tree.promising
            some = f"{count_of(promising)} of {count_of(plans)} plans in {count_of(tree.boxes)} box{'es' * (tree.boxes != 1)}"
            looks = f"one look at each of {count_of(groups)} group{'s' * (groups != 1)} of plans"
            return f"{_designs(tree.designs)}, {some if promising else looks}"
        case proof:
            return proof.by if isinstance(proof, UnverifiedBound) else f"a design by {result.engine}" if result.value is not None else ""


def _designs(number: int) -> str:
    return f"{count_of(number)} design{'' if number == 1 else 's'}"


def prover_text(result: Result[Any, Any]) -> str:
    """The prover of the bound, or its unverified source."""
    solver = isinstance(result.proof, Relaxed) and result.proof.relaxation.solver
    return f"the report of {result.proved_by}" if solver else result.proved_by


def without_design(question: Instance, result: DesignResult) -> tuple[Section, ...]:
    """What clashes, where there is no design."""
    if not result.settled:
        return ()
    conflicts = result.proof.conflicts if isinstance(result.proof, Enumerated) else ()
    least = tuple("-" if limit.least_share is None else f"{limit.least_share:.4g} times what there is" for limit in conflicts)
    columns = (
        names("limit", (limit.limit for limit in conflicts)),
        counts("designs that keep it", [limit.kept_by for limit in conflicts]),
        Column("the least that any design needs", least, tuple(limit.least_share for limit in conflicts), "least need over what there is"),
    )
    hint = "`crossopt explain` names the limits and choices that clash."
    clashes = Section("What clashes", (Table(columns, most=0, on_pages=len(conflicts)),) if conflicts else (hint,))
    unnamed = unnamed_text(question)
    return clashes, Section("Caveats", (given_in((("not named", unnamed),)),) if unnamed else ())


# --- what stands beside it -----------------------------------------------------------------------------------------------------------


def baseline_label(baseline: Baseline[Designs]) -> str:
    """What a rule is called beside an answer."""
    return {"recipes": "best recipe", "nvidia": "NVIDIA's recipe", "nvidia-own": "NVIDIA's own plan"}.get(
        baseline.name, f"{baseline.name} rule"
    )


def baseline_text(baseline: Baseline[Designs], question: Instance | None = None) -> str:
    """What a rule chooses, by which recipe; or why it chooses nothing."""
    if baseline.value is None or baseline.answer is None:
        return baseline.note if baseline.name == "nvidia-own" else f"finds no design: {baseline.note}"
    design = baseline.answer.design
    return f"{f'{baseline.note}: ' if baseline.note else ''}{design_text(design, needed_powers(question, design))}"


def baselines_beside(result: DesignResult) -> tuple[tuple[str, float], ...]:
    """The values of those that found a design."""
    labels = ((baseline_label(baseline), baseline.value) for baseline in result.baselines if baseline.value is not None)
    return tuple((label if "'" in label else f"the {label}", value) for label, value in labels)


def baselines_section(context: Context, result: DesignResult) -> Section:
    """The answer beside published recipes and other rules without proof."""
    rows = [Bar("this design", result.value)]
    for baseline in result.baselines:
        text = baseline_text(baseline, context.question)
        if baseline.value is None or baseline.answer is None:
            rows.append(Bar(baseline_label(baseline), None, "", text))
            continue
        distance = baseline.value / result.value - 1.0 if result.value else 0.0
        why = (
            _saved(context, result, baseline) if distance else "finds the same value",
            doubt_text(mean_error(context.question), distance),
        )
        rows.append(Bar(baseline_label(baseline), baseline.value, "; ".join(part for part in (text, *why) if part)))
    bars = Bars(tuple(rows), str(result.question["unit"]), result.value, result.bound)
    return Section("Baselines", (bars,) if result.baselines and result.value is not None else ())


def _saved(context: Context, result: DesignResult, baseline: Baseline[Designs]) -> str:
    """What the answer saves of a baseline's step, and on what."""
    found = [uses_of(context.question, "", answer.design) for answer in (result.answer, baseline.answer) if answer is not None]
    return saved_text(found[0], found[1], proved=result.proved) if len(found) > 1 else ""


def near_section(result: DesignResult) -> Section:
    """How many designs are nearly as good, and what they have in common."""
    space = space_in(result)
    if space is None or not result.settled:
        return Section("Designs nearly as good", ())
    others = [("as good", space.ties - 1), ("within 1 %", space.within_1_percent - 1), ("within 5 %", space.within_5_percent - 1)]
    text = ", ".join(f"{count_of(count) if count else 'none'} {what}" for what, count in others)
    share, common = common_text(space, result.value or 0.0)
    rows = (("other designs", text), *(((share, common),) if common else ()))
    return Section("Designs nearly as good", (given_in(rows),))


def near_options(result: DesignResult) -> Section:
    """Every choice with the options that occur within 5 %, for pages."""
    space, value = space_in(result), result.value
    title = "Options of designs within 5 %"
    if space is None or value is None or not result.settled or not space.near:
        return Section(title, ())
    options = [
        ", ".join(
            f"{option_text(choice.name, option)} ({'best' if least <= value else f'+{least / value - 1.0:.2%}' if value else '-'})"
            for option, least in zip(choice.options, choice.least, strict=True)
        )
        for choice in space.near
    ]
    columns = (
        names("choice", (choice_name(choice.name) for choice in space.near)),
        figures("occur", [f"{len(choice.options)} of {choice.of}" for choice in space.near]),
        names("options", options),
    )
    return Section(title, (Table(columns, caption="How far above the best the best design with each of them is"),))


# --- what was asked ------------------------------------------------------------------------------------------------------------------


def open_choices(question: QuestionText) -> tuple[Part, ...]:
    """Choices with more than one option, for pages."""
    if not question.open:
        return ("No choice is open: every setting is fixed (`choices: all` opens them).",)
    columns = (
        names("open", (choice_name(name) for name, _ in question.open)),
        figures("options", [f"{len(options):,}" for _, options in question.open]),
        names("from", (_options(name, options) for name, options in question.open)),
    )
    return (Table(columns, most=0, on_pages=len(question.open)),)


def _options(name: str, options: Sequence[Any]) -> str:
    texts = [option_text(name, option) for option in options]
    return ", ".join(texts) if len(options) <= 8 or isinstance(options[0], str) else f"{texts[0]} to {texts[-1]}"


def option_text(name: str, option: object) -> str:
    """One option, with its unit."""
    return {True: "yes", False: "no"}[option] if isinstance(option, bool) else option_word(name, option)


def combinations_section(out: LeftOut | None) -> Section:
    """How many combinations of settings are plans, and why the others are none."""
    reasons = () if out is None else reasons_of(out)
    if out is None or out.combinations == 1 or not reasons:
        return Section("Combinations of settings", ())
    more = f"{len(reasons) - _REASONS} further rules are broken by fewer." if len(reasons) > _REASONS + 1 else ""
    listed = reasons[:_REASONS] if more else reasons
    every = (more, Folded("All rules, and how many combinations break each", "\n".join(reasons))) if more else ()
    return Section("Combinations of settings", (f"{head_of(out)} are valid plans; of the others:", listed, *every))


def head_of(out: LeftOut) -> str:
    """How many of all combinations are plans."""
    return f"{_about(out)}{count_of(out.plans)} of {count_of(out.combinations)}"


def reasons_of(out: LeftOut) -> tuple[str, ...]:
    """Why the others are none, the most first."""
    invalid = ((many, f"are invalid: {rule}") for rule, many in out.broken)
    counts = sorted([(out.same, "are equivalent to another"), (out.unlike, "are not as `only` asks"), *invalid], reverse=True)
    return tuple(f"{_about(out)}{count_of(many)} {why}" for many, why in counts if many)


def _about(out: LeftOut) -> str:
    return "" if out.exact else "about "


def about(question: QuestionText) -> tuple[str, ...]:
    """The workload and the cluster."""
    return tuple(text for name, text in question.terms if name in ("workload", "devices"))


# --- for pages -----------------------------------------------------------------------------------------------------------------------


def sketch_of(context: Context) -> Picture | None:
    """The chip and the devices of the plan; None where neither can be drawn."""
    plan = context.design.plan
    if not isinstance(plan, Plan):
        return None
    replicas, stages, width = plan.data, plan.pipeline, plan.tensor * plan.context
    text = f"{replicas:,} replica{'s' * (replicas != 1)} of {stages} stage{'s' * (stages != 1)}"
    caption_text = f"{text}, {width} device{'s' * (width != 1)} a stage."

    def draw(titles: Any) -> str:  # noqa: ANN401 - what a picture is called
        from crossopt.reports.drawing.floorplan import WIDE, Grid, sketch  # noqa: PLC0415 - pages alone have pictures
        from crossopt.reports.facts.design import chip_of  # noqa: PLC0415
        from crossopt.reports.sheets.codesign.machine import floor_of  # noqa: PLC0415

        floor = floor_of(chip_of(context.question, context.design))
        return sketch(titles.at(min(titles.width, WIDE)), floor, Grid(replicas, stages, width))

    caption = f"A square is a device, a block a replica: {caption_text}"
    return Picture(draw, "", caption, title="The chip and the devices of the plan", described=caption_text, zooms=False)


def details_of(context: Context, of: str = "") -> tuple[Section, ...]:
    """How the design uses its machine, how it was found, and what its figures rest on."""
    from crossopt.reports.facts.design import chip_of  # noqa: PLC0415 - pages alone have them
    from crossopt.reports.sheets.codesign.machine import chip_sections  # noqa: PLC0415

    question, design, result = context.question, context.design, context.result
    linear = None
    if result is not None and (relaxation := relaxation_in(result)) is not None:
        from crossopt.reports.facts.linear import linear_of  # noqa: PLC0415 - models are read only where one was asked

        linear = linear_of(question, design, relaxation)
    axis = f"{question.objective.replace('_', ' ')} in {result.question['unit']}" if result is not None else ""
    search = (Section("How the search closed in", (Search("best design", axis, result),)),) if result is not None else ()
    near = (near_options(result),) if result is not None else ()
    chip = chip_sections(chip_of(question, design))
    return (*plan_details(context, of), *chip, *near, *search, linear_section(linear), *assumptions(question, design))


def plan_details(context: Context, of: str = "") -> Iterator[Section]:
    """One step over time, the operators, the network and the memory of the stages."""
    from crossopt.reports.facts.chip import roofs_of  # noqa: PLC0415
    from crossopt.reports.facts.design import stages_of  # noqa: PLC0415
    from crossopt.reports.facts.schedule import step_of  # noqa: PLC0415
    from crossopt.reports.sheets.codesign.machine import network_section, operators_section, stages_section  # noqa: PLC0415
    from crossopt.reports.sheets.codesign.step import step_section  # noqa: PLC0415

    question, design = context.question, context.design
    lettered = tuple(name for name, seconds in uses(context.evaluation) if seconds > 0.0)
    yield step_section(step_of(question, design), of, lettered)
    yield operators_section(roofs_of(question, design), of)
    if not question.cluster.are_dimensions:
        yield network_section(network_of(question, design), of)
    memory = next((limit.available for limit in context.evaluation.limits if limit.name == "memory"), 0.0)
    yield stages_section(stages_of(question, design), memory, of)


def assumptions(question: Instance, design: ChosenDesign) -> tuple[Section, ...]:
    """What the figures rest on."""
    from crossopt.reports.facts.design import assumed, constants_of  # noqa: PLC0415

    constants = constants_of(question, chosen_hardware(question, design).efficiency)
    columns = (
        names("constant of the model", (constant.name.replace("_", " ") for constant in constants)),
        figures("value", [f"{constant.value:.6g} {constant.unit}".rstrip() for constant in constants]),
        names("meaning", (constant.meaning for constant in constants)),
        names("from", (constant.origin for constant in constants)),
    )
    return (Section("Assumptions", (assumed(question, design), Table(columns), *_sources(question))),)


def _sources(question: Instance) -> tuple[Part, ...]:
    """Where the figures of a technology are from, of a chip that was chosen."""
    free = question.hardware
    if not isinstance(free, FreeHardware) or not free.sources:
        return ()
    estimates = sum(text.startswith("estimate") for _, text in free.sources)
    title = f"Where the technology's figures are from: {len(free.sources)} lines, of which {estimates} begin with an estimate"
    rows = [name.replace(".", ", ").replace("_", " ") for name, _ in free.sources]
    return (Table((names("figures", rows), names("from", (text for _, text in free.sources))), fold=title),)


# --- one design that was priced ------------------------------------------------------------------------------------------------------


def evaluation_sheet(question: Instance, design: ChosenDesign, evaluation: DesignEvaluation) -> Sheet:
    """What is shown of the only design that a question leaves."""
    context = Context(question, design, evaluation)
    verdict = "it keeps every limit" if evaluation.feasible else "it BREAKS A LIMIT"
    step = time_of(evaluation.step_time)
    sections = (*design_sections(context), caveats_section([("", context)]))
    return Sheet(
        name=question.name,
        sentence=text_of_question(question).sentence,
        headline=f"one design, priced by the full model; {verdict}",
        label="feasible" if evaluation.feasible else "infeasible",
        verdict=f"Priced by the full model, one design on its own; {verdict}.",
        asks="step time",
        unit="s",
        value=evaluation.step_time,
        exactly=(("step time", step),),
        shortly=(("step time", step),),
        figures=tuple(pair for pair in rates(evaluation, question, design.plan) if pair[0] != "step time"),
        summary=design_text(design),
        question=Section("The question", (given_in(text_of_question(question).terms),)),
        sections=sections,
        details=lambda: details_of(context),
    )


# --- the answer in a dozen rows --------------------------------------------------------------------------------------------------------

NEXT = "--verbose; `crossopt explain`; --out FILE for `check` and `export`"
_DOUBTS = 2
"""Caveats that are shown; `--verbose` shows all that apply."""
_ASIDE = re.compile(r" \([^()]{45,}\)")
"""A plan in brackets, which the short answer leaves to the long one."""


def brief_of(context: Context, *, led: bool = False) -> Pairs:
    """The rows, with those left out of which nothing is known; days and money by the step time only where no first line leads with them."""
    question, evaluation = context.question, context.evaluation
    likely = likely_text(question, evaluation).partition(", by ")[0]
    free, notes = isinstance(question.hardware, FreeHardware), () if context.result is None else context.result.notes[:_DOUBTS]
    rows = (
        ("hardware", short_chip(context) if free else ""),
        ("plan", context.design.plan_label),
        *_objective(context),
        ("step time", f"{time_of(evaluation.step_time)}{f', {likely}' if likely else ''}{_range(question) if likely else ''}"),
        ("exchange", _sites_text(question.sites, evaluation.step_time)),
        ("speed", speed_text(context)),
        ("run", "" if question.goal is None else _run(question.goal, evaluation, led=led)),
        ("deadline", deadline_text(question.goal, evaluation.step_time, evaluation.likely, led=led)),
        ("rent", rent_text(question)),
        ("with failures", lasting_text(question, evaluation)),
        ("memory", _memory(context)),
        ("safer", "" if context.best_step is None else safer_text(question, evaluation)),
        ("limits", _full(context) if free else ""),
        ("baselines", "" if context.result is None else _baselines(context.result)),
        ("proof", "" if context.result is None else proof_of(context.result)),
        *(("compared" if note.startswith(BESIDE) else "note", _ASIDE.sub("", note.removeprefix(BESIDE))) for note in notes),
        *caveat_rows([("", context)], [caveat for caveat in BRIEF if caveat is not memory_nearly_full]),
        ("next", NEXT),
    )
    return tuple(row for row in rows if row[1])


def lead_text(goal: Goal | None, evaluation: DesignEvaluation, count: int, device: str, settled: bool) -> str:
    """The answer in a line: the days and the money of a run, or the step time, on these devices, and that it is not proved."""
    step_time, devices, unproved = evaluation.step_time, f"{count:,} {device}", "" if settled else ", not proved"
    if goal is None:
        return f"{time_of(step_time)} a step on {devices}{unproved}"
    seconds, money = goal.seconds(step_time), goal.money(step_time)
    took = f"{days_of(seconds)} on {devices}{f', {money:,.0f} USD' if money and isfinite(money) else ''}"
    if seconds <= goal.wanted:
        most = goal.seconds(evaluation.likely[1])
        return f"{took}{unproved}{f': in time, but likely up to {days_of(most)}, past the deadline' if most > goal.wanted else ''}"
    ratio = seconds / goal.wanted
    needed = f", proved; at least about {ceil(count * ratio):,} devices are needed, at the same speed of each"
    return f"{took}: {ratio:.3g} times the deadline{needed if settled else f'{unproved}; a better plan may exist'}"


def _lead(context: Context, result: DesignResult) -> str:
    """Of an answer; empty where neither a run nor the step time on given devices was asked for: the rows begin with what was chosen."""
    question = context.question
    free = isinstance(question.hardware, FreeHardware)
    if question.goal is None and (free or question.objective != "step_time"):
        return ""
    device = f"{'chips of ' if free else ''}{context.design.hardware.name}"
    count = question.cluster.devices if question.sites is None else question.sites.groups * question.cluster.devices
    return lead_text(question.goal, context.evaluation, count, device, result.settled)


def short_chip(context: Context) -> str:
    """The chip without the powers of its parts and its clock."""
    return " · ".join(part for part in hardware_text(context.design) if " given " not in part)


def _objective(context: Context) -> Pairs:
    """What was minimised, where that is not the step time, which has a row in any case."""
    result, objective = context.result, context.question.objective
    if result is None or result.value is None or objective == "step_time":
        return ()
    return ((objective.replace("_", " "), digits(result.value, str(result.question["unit"]))),)


def speed_text(context: Context) -> str:
    """Tokens a second, MFU and, where something is computed again, HFU; of a chosen chip also energy a token, where known."""
    evaluation, free = context.evaluation, isinstance(context.question.hardware, FreeHardware)
    found = dict(rates(evaluation, context.question, context.design.plan))
    above = {"MFU": f" (above the best published, {best[0]:.1%})"} if (best := exceeded(context.question, evaluation.utilisation)) else {}
    shares = [f"{name} {found[name]}{above.get(name, '')}" for name in ("MFU", "HFU") if name in found]
    energy = [f"{shown(evaluation.energy / evaluation.tokens, 'energy')}/token"] if free and evaluation.energy > 0.0 else []
    return " · ".join([f"{found['tokens a second']} tokens/s", *shares, *energy])


def _run(goal: Goal, evaluation: DesignEvaluation, *, led: bool) -> str:
    """How long the run takes, unless the first line says it, how long it likely takes, what it costs, and by which rent."""
    (low, high), money = evaluation.likely, goal.money(evaluation.step_time)
    first = () if led else (f"{days_of(goal.seconds(evaluation.step_time))}{'' if money is None else f' and {money:,.0f} USD'}",)
    if low < high:
        least, most = goal.money(low), goal.money(high)
        paid = f", {least:,.0f} to {most:,.0f} USD" if least is not None and most is not None and least < most else ""
        first = (*first, f"likely {days_between(goal.seconds(low), goal.seconds(high))}{paid}")
    rent = "" if goal.rent is None or goal.purchase is not None else f" at {goal.rent:,.4g} USD/h"
    return f"{' · '.join(first)}{rent}"


def _range(question: Instance) -> str:
    """Which share of measured runs the likely range is to hold, and whether days count failures."""
    share = "9 of 10 runs" if "9 of 10" in coverage_text(question) else "coverage unknown"
    return f" ({share}{', failures aside' if question.goal is not None and question.failures is None else ''})"


def deadline_text(goal: Goal | None, step_time: float, likely: Range = (0.0, 0.0), *, led: bool = False) -> str:
    """Whether the run is as short as it should be, and whether the likely range says otherwise; nothing where no deadline is said, or
    where a first line that leads with the days says as much."""
    if goal is None or not isfinite(goal.wanted):
        return ""
    seconds, least, most = goal.seconds(step_time), *(goal.seconds(step) for step in likely)
    if seconds <= goal.wanted:
        late = (", may be missed", f"; likely up to {days_of(most)}") if most > goal.wanted else ("", "")
        return f"{days_of(goal.wanted)}: met{late[0]}, {days_of(goal.wanted - seconds)} to spare{late[1]}"
    early = f"; may be met: likely from {days_of(least)}" if 0.0 < least <= goal.wanted else ""
    return "" if led and not early else f"{days_of(goal.wanted)}: MISSED, the run takes {seconds / goal.wanted:.3g} times as long{early}"


def _memory(context: Context) -> str:
    """How full the memory is, and what fills most of it, or on what it depends whether a nearly full one holds the plan."""
    limit = next((limit_of(limit) for limit in context.evaluation.limits if limit.name == "memory"), None)
    if limit is None or not isfinite(limit.available):
        return ""
    of = f"{shown(limit.used, 'bytes')} of {shown(limit.available, 'bytes')}"
    if memory_nearly_full(replace(context, result=None)) is not None:
        reserved = shown(float(context.question.hardware.reserved_memory), "bytes")
        return f"{of} ({limit.share:.1%}): fits if {reserved} of reserve is enough"
    name, size = max(context.evaluation.memory.items(), key=lambda part: part[1])
    largest = f"; largest: {name}, {shown(size, 'bytes')}" if size > 0.0 else ""
    return f"{of} ({limit.share:.0%}){largest}"


def _full(context: Context) -> str:
    """Which limits are full."""
    full = [limit for limit in map(limit_of, context.evaluation.limits) if limit.share >= FULL]
    return ", ".join(f"{limit.label} {limit.share:.0%}" for limit in full)


def _baselines(result: DesignResult) -> str:
    """How far published recipes are above the answer."""
    found = [
        (baseline_label(rule), f" ({rule.note})" if rule.note else "", rule.value) for rule in result.baselines if rule.value is not None
    ]
    far = [
        (name + recipe, "equals the optimum" if value == result.value and result.proved else above(value, result.value).strip(" ,"))
        for name, recipe, value in found
    ]
    return "; ".join(f"{name} {distance or 'is as good'}" for name, distance in far)


def proof_of(result: DesignResult, unit: str = "") -> str:
    """What is known of the bound, in a line; of a value in another unit than the question's where one is given."""
    time = seconds_of(result.seconds)
    if result.bound is None:
        return f"none: a better design may exist (after {time})"
    bound = digits_below(result.bound, result.value, unit or str(result.question["unit"]))
    if not result.settled:
        return f"none in {time}: no design is below {bound}, a gap of {result.gap or 0.0:.2%}"
    among = f"none of {_designs(designs)}" if (designs := _designs_proved(result)) > 1 else "no design"
    near = "" if result.optimal else f", {result.gap or 0.0:.2%} below this one"
    return f"{among} is below {bound}{near}, {'as the solver reports' if result.unverified else 'proved'} in {time}"


def _designs_proved(result: DesignResult) -> int:
    """How many designs the proof speaks of; 0 where it does not count them."""
    space = getattr(result.proof, "space", None) or getattr(result.proof, "tree", None)
    return int(getattr(space, "designs", 0))


def caveat_rows(contexts: Sequence[tuple[str, Context]], caveats: Sequence[Caveat] = BRIEF) -> Pairs:
    """The caveats that matter most, of those that apply to the designs of these workloads; what all of them share is said once.

    First and always that no measured run fitted the constants. Nothing is searched for them: the long sheet says what remedies cost."""
    unfitted = [name for name, context in contexts if not context.question.calibrated]
    found: dict[Note, list[str]] = {}
    for caveat in (*([priced_by] if unfitted else []), *caveats):
        for name, context in contexts if len(found) < _DOUBTS + bool(unfitted) else ():
            if (note := caveat(replace(context, result=None))) is not None and name not in found.setdefault(note, []):
                found[note].append(name)
    most = dict(list(found.items())[: _DOUBTS + bool(unfitted)])
    of = {note: "" if len(names) == len(contexts) else f", {', '.join(names)}" for note, names in most.items()}
    said = {note: note.text.startswith(note.label) or (note.label == PRICED_BY and bool(unfitted)) for note in of}
    labels = {note: "" if of[note] == "" and said[note] else f"{note.label}{of[note]}: " for note in of}
    return tuple(("caveat", f"{label}{first_clause(note)}") for note, label in labels.items())


def first_clause(note: Note) -> str:
    """A caveat up to its first semicolon, of constants with their origin, without what is in brackets; the long sheet has all of it."""
    clauses = note.text.split("; ")
    return _ASIDE.sub("", "; ".join(clauses[: 1 + (note.label == PRICED_BY)]))
