"""The sheet of several workloads on one chip: the chip once, then plan, value and limits of each workload."""

from collections.abc import Sequence
from dataclasses import replace

from crossopt.instances.codesign.instance import Portfolio
from crossopt.reports.facts.chip.words import design_words
from crossopt.reports.facts.question import Asked, asked_of
from crossopt.reports.sheets.amounts import REGRET, amount, count_of, time_of
from crossopt.reports.sheets.codesign.caveats import Context, caveats_section
from crossopt.reports.sheets.codesign.design import CHECKED, assumptions, chip_rows, limit_of, open_choices, plan_details, time_section
from crossopt.reports.sheets.sheet import (
    Breakdown,
    Limit,
    Limits,
    Pairs,
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
from crossopt.solvers.codesign.answer import DesignResult, Share
from crossopt.solvers.proofs import Boxes, EnumeratedTogether

OF_PLANS = ("memory", "step time")
"""Limits that each workload has of its own."""


def several_sheet(question: Portfolio, result: DesignResult) -> Sheet:
    """What is shown."""
    asked = tuple(map(asked_of, question.parts))
    designs, shares = (result.answer.designs, result.details.shares) if result.answer and result.details else ((), ())
    contexts = [
        (share.name, Context(part, design, share.evaluation)) for part, design, share in zip(question.parts, designs, shares, strict=False)
    ]
    regrets = result.question["combine"] == "worst_regret"
    objective, combine = (str(result.question[key]).replace("_", " ") for key in ("objective", "combine"))
    alone = tuple(f"{one.question['name']} alone: {amount(one.value, one.question['unit'])}, by {one.proved_by}." for one in result.parts)
    aim = "the least regret of the worst one" if regrets else "the least sum of weighted values"
    return answer_sheet(
        result,
        "design",
        f"Which one chip, with a plan for each of {len(asked)} workloads, has {aim}?",
        asks=f"{combine} of {objective}",
        unit=REGRET if regrets else None,
        looked_at=_size(result),
        summary=design_words(designs[0]) if designs else "",
        figures=tuple((f"a step of {share.name}", time_of(share.evaluation.step_time)) for share in shares),
        given=_terms(asked),
        open_choices=open_choices(Asked("", (), _open(asked))),
        sections=(*(_answered(contexts, shares, result) if contexts else _without(result)), Section("Each workload alone", (alone,))),
        details=lambda: _details(contexts, result, f"{combine} of {objective}"),
        notes=tuple(f"{note}." for note in result.notes),
        judged=f"for each workload, {CHECKED}",
    )


def _size(result: DesignResult) -> str:
    count = len(result.answer.designs) if result.answer else 0
    workloads = f"{count} workload{'s' * (count != 1)}"
    match result.proof:
        case EnumeratedTogether(space=space) if count:
            chips = f"{count_of(space.serving)} of {count_of(space.hardware_points)} chips serve them all"
            return f"{workloads}, {count_of(space.designs)} designs, {chips}"
        case Boxes(tree=tree):
            plans = " x ".join(count_of(promising) for promising in tree.promising)
            return f"{workloads}, {count_of(tree.designs)} designs, {plans} plans in {count_of(tree.boxes)} boxes"
        case _:
            return workloads if count else ""


def _answered(contexts: Sequence[tuple[str, Context]], shares: Sequence[Share], result: DesignResult) -> tuple[Section, ...]:
    first = contexts[0][1]
    return (
        Section("The chip", (given_in(chip_rows(first)),)),
        Section("The workloads", (_workloads(contexts, shares, result),)),
        *(time_section(context.evaluation, f" of {name}") for name, context in contexts),
        Section("Limits", _limits(contexts)),
        caveats_section(contexts),
    )


def _workloads(contexts: Sequence[tuple[str, Context]], shares: Sequence[Share], result: DesignResult) -> Table:
    """Value, weight or regret, and plan of each workload."""
    unit = str(result.parts[0].question["unit"] if result.parts else result.question["unit"])
    own = result.question["objective"] != "step_time"
    regrets = [share.regret for share in shares]
    weighed = (
        amounts("weight", [share.weight for share in shares], "{:g}".format)
        if regrets[0] is None
        else amounts("above its optimum alone", regrets, "{:.2%}".format)
    )
    return Table(
        (
            names("workload", (share.name for share in shares)),
            weighed,
            *([amounts("value", [share.value for share in shares], lambda value: amount(value, unit), unit)] if own else []),
            amounts("step time", [share.evaluation.step_time for share in shares], time_of, "s"),
            counts("tokens a second", [round(share.evaluation.tokens_per_second) for share in shares]),
            amounts("MFU", [share.evaluation.utilisation for share in shares], "{:.1%}".format),
            names("plan", (context.design.words for _, context in contexts)),
        )
    )


def _limits(contexts: Sequence[tuple[str, Context]]) -> tuple[Limits | Breakdown, ...]:
    """The limits of a plan for each workload, those of the chip once, and what fills the memory."""
    named = [(name, limit_of(limit)) for name, context in contexts for limit in context.evaluation.limits]
    own: list[Limit] = [replace(limit, label=f"{limit.label}, {name}") for name, limit in named if limit.label in OF_PLANS]
    chip = [limit_of(limit) for limit in contexts[0][1].evaluation.limits if limit.name not in OF_PLANS]
    held = (
        Breakdown("use", tuple(context.evaluation.memory.items()), "bytes", brief=f"memory holds, {name}:") for name, context in contexts
    )
    return (Limits((*own, *chip)), *held)


def _without(result: DesignResult) -> tuple[Section, ...]:
    """Which workloads no chip serves, where there is no design."""
    if not result.settled:
        return ()
    hint = "`crossopt explain FILE --workload NAME` names what clashes for one of them."
    if not isinstance(result.proof, EnumeratedTogether):
        return (Section("What clashes", (hint,)),)
    space = result.proof.space
    built = f"{count_of(space.hardware_points)} chips, {count_of(space.unbuilt)} of which cannot be built."
    rows = Table(
        (
            names("workload", (str(number) for number in range(1, len(space.served) + 1))),
            figures("chips that serve it", [count_of(number) for number in space.served]),
        )
    )
    return (Section("What clashes", (built, rows, hint)),)


def _terms(asked: Sequence[Asked]) -> Pairs:
    """Each workload, and once what they share."""
    own = ("workload", "model", "work")
    each = [(f"{name} {number}", words) for number, one in enumerate(asked, 1) for name, words in one.terms if name in own]
    return (*each, *(term for term in asked[0].terms if term[0] not in own))


def _open(asked: Sequence[Asked]) -> tuple[tuple[str, tuple[object, ...]], ...]:
    """Choices of the chip once, and of each workload where its options are others."""
    first = dict(asked[0].open)
    others = [
        (f"{name} (workload {number})", options)
        for number, one in enumerate(asked[1:], 2)
        for name, options in one.open
        if first.get(name) != options
    ]
    return (*asked[0].open, *others)


def _details(contexts: Sequence[tuple[str, Context]], result: DesignResult, axis: str) -> tuple[Section, ...]:
    from crossopt.reports.facts.design import chip_of  # noqa: PLC0415 - pages alone have them
    from crossopt.reports.sheets.codesign.machine import chip_sections  # noqa: PLC0415

    if not contexts:
        return ()
    first = contexts[0][1]
    return (
        *chip_sections(chip_of(first.question, first.design)),
        *(section for name, context in contexts for section in plan_details(context, f" of {name}")),
        Section("How the search closed in", (Search("best design", axis, result),)),
        *assumptions(first.question, first.design),
    )
