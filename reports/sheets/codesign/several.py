"""Sheets of joint designs of every form: of one workload, of several on one chip, and of several numbers of devices."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from crossopt.instances.codesign.instance import FreeHardware, Instance, MultiScaleQuestion, Portfolio, Scale
from crossopt.instances.codesign.known_errors import mean_error
from crossopt.instances.codesign.open_questions import FEWEST
from crossopt.instances.codesign.plan_groups import why_no_plan
from crossopt.instances.codesign.question import narrowing, several_text
from crossopt.reports.facts.chip import design_text, hardware_text
from crossopt.reports.facts.question import QuestionText, text_of_question, text_of_scales
from crossopt.reports.sheets.amounts import DAY, REGRET, amount, bound_amount, count_of, seconds_of, short, shown, time_of, with_unit
from crossopt.reports.sheets.codesign.caveats import Context, caveats_section, context_of
from crossopt.reports.sheets.codesign.design import (
    CHECKED,
    NEXT,
    about,
    answer_sections,
    assumptions,
    baselines_beside,
    brief_of,
    caveat_rows,
    chip_rows,
    design_sheet,
    details_of,
    limit_of,
    open_choices,
    plan_details,
    proof_of,
    rates,
    rent_text,
    short_chip,
    sketch_of,
    speed_text,
    time_section,
)
from crossopt.reports.sheets.sheet import (
    FULL,
    Bar,
    Bars,
    Bound,
    Breakdown,
    Cell,
    Column,
    FrontText,
    Limit,
    Limits,
    Pairs,
    Part,
    Search,
    Section,
    Sheet,
    Table,
    amounts,
    answer_sheet,
    counts,
    given_in,
    names,
)
from crossopt.solvers.codesign.answer import DesignResult, Share
from crossopt.solvers.proofs import Boxes, EnumeratedTogether

# The sheet of several workloads on one chip: the chip once, then plan, value and limits of each workload.

_SAID = 3
"""Numbers, batches or networks without a design that the short answer explains."""
TIED = "they differ by less than the model's mean error, or one is within the likely range of the other"
OF_PLANS = ("memory", "step time")
"""Limits that each workload has of its own."""


def front_text(question: Instance) -> FrontText:
    """What is said of fronts of a question about one workload."""
    words = text_of_question(question)

    def chosen(result: DesignResult) -> str:
        if result.answer is None:
            return ""
        return "; ".join([*hardware_text(result.answer.design)[1:], result.answer.design.plan_label])

    return FrontText((given_in(words.terms), *open_choices(words)), "design", chosen)


def several_sheet(question: Portfolio, result: DesignResult) -> Sheet:
    """What is shown."""
    questions = tuple(map(text_of_question, question.parts))
    designs, shares = (result.answer.designs, result.details.shares) if result.answer and result.details else ((), ())
    contexts = [
        (share.name, Context(part, design, share.evaluation)) for part, design, share in zip(question.parts, designs, shares, strict=False)
    ]
    regrets = result.question["combine"] == "worst_regret"
    objective, combine = (str(result.question[key]).replace("_", " ") for key in ("objective", "combine"))
    alone = tuple(
        f"{part.question['name']} alone: {amount(part.value, part.question['unit'])}, by {part.proved_by}." for part in result.parts
    )
    aim = "the least regret of the worst one" if regrets else "the least sum of weighted values"
    return answer_sheet(
        result,
        "design",
        f"Which one chip, with a plan for each of {len(questions)} workloads, has {aim}?",
        asks=f"{combine} of {objective}",
        unit=REGRET if regrets else None,
        looked_at=_size(result),
        summary=design_text(designs[0]) if designs else "",
        figures=tuple((f"a step of {share.name}", time_of(share.evaluation.step_time)) for share in shares),
        given=_terms(questions),
        open_choices=open_choices(QuestionText("", (), _open(questions))),
        sections=(*(_answered(contexts, shares, result) if contexts else _without(result)), Section("Each workload alone", (alone,))),
        details=lambda: _details(contexts, result, f"{combine} of {objective}"),
        brief=(lambda: _several_rows(contexts, result, f"{combine} of {objective}")) if contexts else None,
        meaning_rows=_unserved_rows(result),
        next_step="`crossopt explain FILE --workload NAME` names what clashes for one of them",
        notes=tuple(f"{note}." for note in result.notes),
        judged=f"for each workload, {CHECKED}",
    )


def _several_rows(contexts: Sequence[tuple[str, Context]], result: DesignResult, asks: str) -> Pairs:
    """The short answer: the chip, plan and speed of each workload, limits, proof, and what to doubt."""
    first = contexts[0][1]
    unit = REGRET if result.question["combine"] == "worst_regret" else str(result.question["unit"])
    limits, *_ = _limits(contexts)
    full = [limit.label for limit in limits.rows if limit.share >= FULL] if isinstance(limits, Limits) else []
    rows = (
        ("hardware", short_chip(first)),
        *((f"plan of {name}", context.design.plan_label) for name, context in contexts),
        ("value", "" if result.value is None else f"{short(result.value, unit)}, {asks}"),
        *((f"step of {name}", f"{time_of(context.evaluation.step_time)} · {speed_text(context)}") for name, context in contexts),
        ("full limits", ", ".join(full)),
        ("proof", proof_of(result, unit)),
        *(("note", note) for note in result.notes),
        *caveat_rows(contexts),
        ("next", NEXT),
    )
    return tuple(row for row in rows if row[1])


def _unserved_rows(result: DesignResult) -> Pairs:
    """How many chips serve each workload, where none serves all, for the short answer."""
    space = result.proof.space if isinstance(result.proof, EnumeratedTogether) and result.value is None else None
    if space is None:
        return ()
    return tuple(
        ("why", f"workload {number}: {count_of(some)} of {_chips(space.hardware_points)} serve it")
        for number, some in enumerate(space.served, 1)
    )


def _chips(number: int) -> str:
    return f"{count_of(number)} chip{'s' * (number != 1)}"


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
            names("plan", (context.design.plan_label for _, context in contexts)),
        )
    )


def _limits(contexts: Sequence[tuple[str, Context]]) -> tuple[Limits | Breakdown, ...]:
    """The limits of a plan for each workload, those of the chip once, and what fills the memory."""
    named = [(name, limit_of(limit)) for name, context in contexts for limit in context.evaluation.limits]
    own: list[Limit] = [replace(limit, label=f"{limit.label}, {name}") for name, limit in named if limit.label in OF_PLANS]
    chip = [limit_of(limit) for limit in contexts[0][1].evaluation.limits if limit.name not in OF_PLANS]
    contents = (
        Breakdown("use", tuple(context.evaluation.memory.items()), "bytes", brief=f"memory holds, {name}:") for name, context in contexts
    )
    return (Limits((*own, *chip)), *contents)


def _without(result: DesignResult) -> tuple[Section, ...]:
    """Which workloads no chip serves, where there is no design."""
    if not result.settled:
        return ()
    hint = "`crossopt explain FILE --workload NAME` names what clashes for one of them."
    if not isinstance(result.proof, EnumeratedTogether):
        return (Section("What clashes", (hint,)),)
    space = result.proof.space
    built = f"{_chips(space.hardware_points)}, {count_of(space.unbuilt)} of which cannot be built."
    rows = Table(
        (
            names("workload", (str(number) for number in range(1, len(space.served) + 1))),
            amounts("chips that serve it", space.served, lambda number: count_of(int(number))),
        )
    )
    return (Section("What clashes", (built, rows, hint)),)


def _terms(questions: Sequence[QuestionText]) -> Pairs:
    """Each workload, and once what they share."""
    own = ("workload", "model", "work")
    each = [(f"{name} {number}", text) for number, question in enumerate(questions, 1) for name, text in question.terms if name in own]
    return (*each, *(term for term in questions[0].terms if term[0] not in own))


def _open(questions: Sequence[QuestionText]) -> tuple[tuple[str, tuple[object, ...]], ...]:
    """Choices of the chip once, and of each workload where its options are others."""
    first = dict(questions[0].open)
    others = [
        (f"{name} (workload {number})", options)
        for number, question in enumerate(questions[1:], 2)
        for name, options in question.open
        if first.get(name) != options
    ]
    return (*questions[0].open, *others)


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


# The sheet of several numbers of devices, networks or batches: a row for each of them, and the best one's design in full.


def counts_sheet(question: MultiScaleQuestion, result: DesignResult) -> Sheet:
    """What is shown."""
    described, index, fewest = text_of_scales(question), best_part(question, result), question.objective == FEWEST
    best = result.parts[index] if 0 <= index < len(result.parts) else None
    context, name = context_of(question.parts[index], best) if best else None, question.part_name(index) if index >= 0 else ""
    shown = () if context is None else answer_sections(context)
    found = answer_sheet(
        result,
        "design",
        described.sentence,
        asks="number of devices" if fewest else question.objective.replace("_", " "),
        looked_at=_evaluated_text(question, result, name),
        summary="" if context is None else f"{name}; {design_text(context.design)}",
        sketch=None if context is None else sketch_of(context),
        figures=() if context is None else rates(context.evaluation, context.question, context.design.plan),
        beside=() if best is None else baselines_beside(best),
        given=described.terms,
        open_choices=open_choices(described),
        sections=(
            *(() if fewest else (ranking(question, result),)),
            _parts_section(question, result),
            *(replace(section, title=f"{section.title} with {name}") for section in shown),
        ),
        brief_sections=lambda: () if fewest else (ranking(question, result),),
        details=lambda: () if context is None else details_of(context),
        brief=None if context is None else lambda: _counts_rows(question, result, name, context),
        meaning_rows=_without_rows(question, result),
        next_step=f"`crossopt explain FILE {narrowing(question)}` names what clashes",
        notes=tuple(f"{note}." for note in (*result.notes, *batch_notes(question))),
        verdict=_verdict(question, result),
        about=about(described),
    )
    return replace(found, engine="" if best is None else best.engine, prover="" if best is None else best.proved_by)


def _counts_rows(question: MultiScaleQuestion, result: DesignResult, name: str, context: Context) -> Pairs:
    """The short answer: which number, batch or network, and the rows of its design, with the proof that is about all of them."""
    *rows, following = brief_of(context)
    verdict = f"{_verdict(question, result).rstrip('.')}, in {seconds_of(result.seconds)}"
    proof = ("proof", f"{verdict[:1].lower()}{verdict[1:]}")
    notes = tuple(("note", note) for note in (*result.notes, *batch_notes(question)))
    index = next(index for index, row in enumerate(rows) if row[0] == "proof")
    what = "enough" if question.objective == FEWEST else "best"
    answer = f"{name} {_are(question)} {what if result.settled else 'the best known'}, of {several_text(question)}"
    if question.objective != FEWEST and (tied := tied_parts(question, result)):
        answer += f"; too close to call: it ties with {_joined(question.part_name(part) for part in tied[1:])}"
    return (("answer", answer), *rows[:index], proof, *notes, *rows[index + 1 :], following)


def _without_rows(question: MultiScaleQuestion, result: DesignResult) -> Pairs:
    """Why none of them has a design, for the short answer."""
    missing = zip(range(len(result.parts)), result.parts, question.parts, strict=False) if result.answer is None else ()
    return tuple(("why", f"{question.part_name(index)}: {no_design_text(answer, part)}") for index, answer, part in missing)[:_SAID]


def best_part(question: MultiScaleQuestion, result: DesignResult) -> int:
    """Which part the answer is of; -1 where there is none."""
    return -1 if result.answer is None else question.scales.index(result.answer.scale)


def _evaluated_text(question: MultiScaleQuestion, result: DesignResult, name: str) -> str:
    if result.answer is None:
        return ""
    what = "enough" if question.objective == FEWEST else "best"
    return f"{several_text(question)}, {name} {_are(question)} {what if result.settled else 'the best known'}"


def _are(question: MultiScaleQuestion) -> str:
    return "is" if question.batches or question.networks else "are"


def ranking(question: MultiScaleQuestion, result: DesignResult) -> Section:
    """Those with a design, the best first: how far each is from the best, what the run comes to, and what is proved."""
    found = _found(question, result)
    if len(question.parts) + len(question.impossible) < 2 or not found:
        return Section("Ranking", ())
    answers, evaluations = [result.parts[index] for index, _ in found], [context.evaluation for _, context in found]
    values, steps = [float(answer.value or 0.0) for answer in answers], [evaluation.step_time for evaluation in evaluations]
    contexts = [context for _, context in found]
    tokens = [evaluation.energy / evaluation.tokens for evaluation in evaluations]
    columns = [
        names("option", [question.part_name(index) for index, _ in found]),
        amounts("above", [None, *(value / values[0] - 1.0 if values[0] else None for value in values[1:])], lambda ratio: f"{ratio:.1%}"),
    ]
    if question.objective not in ("step_time", "run_cost"):
        unit = str(answers[0].question["unit"])
        columns.append(amounts(question.objective.replace("_", " "), values, lambda figure: amount(figure, unit), unit))
    columns.append(amounts("step time", steps, time_of, "s"))
    if contexts[0].question.goal is None:
        columns += likely_columns("step time", contexts, lambda _, step: step, time_of)[1:]
    columns += [*days_columns(contexts), *money_columns(contexts)]
    columns.append(amounts("MFU", [evaluation.utilisation for evaluation in evaluations], lambda ratio: f"{ratio:.1%}"))
    columns += [amounts("J/token", tokens, lambda energy: shown(energy, "energy"), "J")] if min(tokens) > 0.0 else []
    if len({context.design.hardware.name for context in contexts}) > 1:
        columns.append(names("constants", [origin_of(context.question) for context in contexts]))
    columns.append(names("proof", [_proof(answer) for answer in answers]))
    return Section("Ranking", (Table(tuple(columns)), *_remarks(question, result, found)))


def likely_columns(
    head: str, contexts: Sequence[Context | None], value_of: Callable[[Context, float], float | None], text_of: Callable[[float], str]
) -> list[Column]:
    """Columns of what step times come to: by the model, and from which to which value by the likely range."""
    rows = list[tuple[float | None, float | None, float | None]]()
    for context in contexts:
        step, (low, high) = (0.0, (0.0, 0.0)) if context is None else (context.evaluation.step_time, context.evaluation.likely)
        found = [None if context is None else value_of(context, seconds) for seconds in (step, low, high)]
        rows.append((found[0], found[1] if low < high else None, found[2] if low < high else None))
    columns = [amounts(f"{head}{end}", [row[index] for row in rows], text_of) for index, end in enumerate(("", " from", " to"))]
    return [column for column in columns if any(value is not None for value in column.exact)]


def days_columns(contexts: Sequence[Context | None]) -> list[Column]:
    """Days of runs with their likely range; none where no run is asked about."""

    def days(context: Context, step: float) -> float | None:
        return None if context.question.goal is None else context.question.goal.seconds(step) / DAY

    return likely_columns("days", contexts, days, lambda days: f"{days:.4g}" if days < 1e4 else f"{days:,.0f}")


def money_columns(contexts: Sequence[Context | None]) -> list[Column]:
    """What runs cost, with the likely range; none where no rent is known."""

    def money(context: Context, step: float) -> float | None:
        return None if context.question.goal is None else context.question.goal.money(step)

    return likely_columns("USD", contexts, money, lambda dollars: f"{dollars:,.0f}")


def origin_of(question: Instance) -> str:
    """Where the constants are from: measured runs of the device and the stack, another device, or a guess."""
    taken = re.search(r"taken over from ([^,; ]+)", question.priced_by)
    if isinstance(question.hardware, FreeHardware):
        return "derived"
    return "measured" if question.calibrated else f"derived from {taken[1]}" if taken else "guessed"


def ties(contexts: Sequence[Context], value_of: Callable[[Context, float], float]) -> list[int]:
    """Which of these the model cannot tell from the first, the best, by a value that a step time comes to.

    Designs on one kind of devices can be told apart where they differ by more than the mean error on measured runs. The errors of different
    kinds are not the same: of these neither likely range may hold what the other comes to."""
    first = contexts[0]
    best, most = value_of(first, first.evaluation.step_time), value_of(first, max(first.evaluation.likely[1], first.evaluation.step_time))

    def tied(other: Context) -> bool:
        step, low = other.evaluation.step_time, other.evaluation.likely[0]
        value = value_of(other, step)
        if other.design.hardware.name == first.design.hardware.name:
            return value <= best * (1.0 + max(mean_error(context.question) or 0.0 for context in (first, other)))
        return value <= most or value_of(other, min(low, step) or step) <= best

    return [index for index, context in enumerate(contexts) if index and tied(context)]


def _proof(answer: DesignResult) -> str:
    if answer.bound is None:
        return "none"
    known = "reported" if answer.unverified else "proved"
    return known if answer.optimal else f"{known} to {answer.gap or 0.0:.2%}" if answer.settled else f"gap {answer.gap or 0.0:.1%}"


def _remarks(question: MultiScaleQuestion, result: DesignResult, found: Sequence[tuple[int, Context]]) -> Iterator[str]:
    """What the model cannot tell from the best, which rents count, and which have no design."""
    if tied := tied_parts(question, result):
        best, *others = (question.part_name(index) for index in tied)
        yield f"Too close to call: {best} ties with {_joined(others)} ({TIED})."
    of: dict[str, list[str]] = {}
    for context in (context for _, context in found):
        if rent := rent_text(context.question):
            of.setdefault(f"Rent: {rent}, for", []).append(context.design.hardware.name)
    if len({context.design.hardware.name for _, context in found}) > 1:  # of one device the rows of the answer say it
        yield from (f"{text} {', '.join(dict.fromkeys(devices))}." for text, devices in of.items())
    missing = [(index, part) for index, part in enumerate(result.parts) if part.value is None]
    yield from (f"{question.part_name(index)}: {no_design_text(part, question.parts[index])}." for index, part in missing)
    yield from (f"{', '.join(text for text, _ in _cells(question, scale))}: {why}." for scale, why in question.impossible)


def _found(question: MultiScaleQuestion, result: DesignResult) -> list[tuple[int, Context]]:
    """The parts with a design, the best first."""
    pairs = [(index, context_of(question.parts[index], part)) for index, part in enumerate(result.parts)]
    found = [(index, context) for index, context in pairs if context is not None]
    return sorted(found, key=lambda pair: float(result.parts[pair[0]].value or 0.0))


def tied_parts(question: MultiScaleQuestion, result: DesignResult) -> list[int]:
    """The best part and those that the model cannot tell from it; none where there is no other."""
    found = [
        (index, context) for index, part in enumerate(result.parts) if (context := context_of(question.parts[index], part)) is not None
    ]
    found.sort(key=lambda pair: float(result.parts[pair[0]].value or 0.0))
    contexts = [context for _, context in found]
    if not contexts or not all(context.question.measures_time for context in contexts):
        return []

    def value_of(context: Context, step: float) -> float:
        goal, value = context.question.goal, context.result.value if context.result is not None else None
        if question.objective == "run_cost" and goal is not None:
            return goal.money(step) or 0.0
        return float(value or 0.0) * step / context.evaluation.step_time

    return [found[0][0], *(found[index][0] for index in tied)] if (tied := ties(contexts, value_of)) else []


def _joined(labels: Iterable[str]) -> str:
    """Labels as in a sentence, with semicolons between those that hold commas themselves."""
    *most, last = labels
    have_commas = any("," in label for label in (*most, last))
    return f"{('; ' if have_commas else ', ').join(most)}{';' * have_commas} and {last}" if most else last


# --- each of them --------------------------------------------------------------------------------------------------------------------


def _parts_section(question: MultiScaleQuestion, result: DesignResult) -> Section:
    """Every number of devices, network or batch with what it reaches."""
    title = several_text(question).partition(" ")[2].capitalize()
    answers = [*result.parts, *[None] * (len(question.parts) - len(result.parts))]
    rows = [_row(question, index, answer, result) for index, answer in enumerate(answers)]
    rows += [
        (*_cells(question, scale), ("-", None), ("-", None), ("-", None), (f"no plan at all: {why}", ""))
        for scale, why in question.impossible
    ]
    unit = result.parts[0].question["unit"] if result.parts else ""
    value = str(result.parts[0].question["objective"]).replace("_", " ") if result.parts else "value"
    heads = [*part_heads(question), value, "lower bound", "step time", "design"]
    columns = [
        _column(head, [row[index] for row in rows], unit if head in (value, "lower bound") else "") for index, head in enumerate(heads)
    ]
    if value == "step time":
        columns.pop(-2)
    found = [(index, part) for index, part in enumerate(result.parts) if part.value is not None]
    bars = Bars(tuple(Bar(question.part_name(index), part.value) for index, part in found), unit, None, None)
    hint = f"`crossopt explain FILE {narrowing(question)}` names what clashes."
    parts: tuple[Part, ...] = (Table(tuple(columns)), *([bars] if found else []), *([hint] if result.settled and not found else []))
    return Section(title, parts)


def _column(head: str, cells: list[tuple[str, Cell]], unit: str) -> Column:
    exact = tuple(cell for _, cell in cells)
    is_figure = any(isinstance(cell, float | Bound) for cell in exact)
    return Column(head, tuple(text for text, _ in cells), exact if is_figure else (), with_unit(head, unit) if unit and is_figure else "")


def _row(question: MultiScaleQuestion, index: int, answer: DesignResult | None, result: DesignResult) -> tuple[tuple[str, Cell], ...]:
    """The cells of a row, in words and as figures."""
    own = _cells(question, question.scales[index])
    if answer is None:
        return (*own, ("-", None), ("-", None), ("-", None), (why_not_evaluated(question, result), ""))
    context, unit = context_of(question.parts[index], answer), str(answer.question["unit"])
    bound = ("none", None) if answer.bound is None else (_bound(answer, unit), Bound(answer.bound))
    if context is None:
        known = f", {'told' if answer.unverified else 'proved'}" if answer.settled else ""
        return (*own, ("-", None), ("-", None), ("-", None), (f"{no_design_text(answer, question.parts[index])}{known}", ""))
    value = (amount(answer.value, unit), answer.value)
    step = context.evaluation.step_time
    return (*own, value, bound, (time_of(step), step), (design_text(context.design), ""))


def _bound(answer: DesignResult, unit: str) -> str:
    return "the same" if answer.bound == answer.value else bound_amount(float(answer.bound or 0.0), unit)


def part_heads(question: MultiScaleQuestion) -> tuple[str, ...]:
    """What sets the parts apart."""
    devices = ("devices",) if question.by_devices else ()
    network = (question.compared_name,) if question.networks else ()
    return (*devices, *network, *(("batch",) if question.batches else ()))


def _cells(question: MultiScaleQuestion, scale: Scale) -> tuple[tuple[str, Cell], ...]:
    """The cells of one part."""
    devices = ((count_of(scale.devices), float(scale.devices)),) if question.by_devices else ()
    network = ((scale.network, scale.network),) if question.networks else ()
    return (*devices, *network, *(((count_of(scale.batch), float(scale.batch)),) if scale.batch else ()))


def why_not_evaluated(question: MultiScaleQuestion, result: DesignResult) -> str:
    """Why there is no answer about the parts that come later."""
    enough = question.objective == FEWEST and result.answer is not None
    return "not evaluated, as fewer are enough" if enough else f"not evaluated ({result.stopped})"


def no_design_text(answer: DesignResult, part: Instance) -> str:
    """Why there is no design with one number of devices: none was found, none is a plan, or none keeps every limit."""
    if not answer.settled:
        return f"no design found ({answer.stopped})"
    none = why_no_plan(part) if answer.value is None else None
    missed = "; ".join(note.partition(" (")[0] for note in answer.notes)
    return f"no plan at all: {none}" if none else f"no design keeps every limit{f'; {missed}' if missed else ''}"


def batch_notes(question: MultiScaleQuestion) -> tuple[str, ...]:
    """How batches are compared, and what is not modelled."""
    if not question.batches:
        return ()
    by = {"time_per_sample": "the time of a sample", FEWEST: "the limits of the whole run"}
    figure = by.get(question.objective, question.objective.replace("_", " "))
    return (f"batches are compared by {figure}, as a smaller one has the shorter step; how well each of them learns is not modelled",)


# --- the proof -----------------------------------------------------------------------------------------------------------------------


def _verdict(question: MultiScaleQuestion, result: DesignResult) -> str:
    """The proof in a sentence; each answer has its own."""
    if result.answer is None:
        what = "batch" if question.batches else question.compared_name if question.networks else "number of devices"
        return f"No {what} of the question has a design." if result.settled else f"No design was found ({result.stopped})."
    if question.objective == FEWEST:
        sentence = f"{_why_not_fewer(question, result)}, by {result.proved_by}."
        return f"{sentence[0].upper()}{sentence[1:]}"
    if result.bound is None:
        return "Not proved, so a better design may exist."
    none = f"o design with any of them is below {bound_amount(float(result.bound), str(result.question['unit']))}, by {result.proved_by}."
    return f"N{none}" if result.settled else f"A better design may exist, but n{none}"


def _why_not_fewer(question: MultiScaleQuestion, result: DesignResult) -> str:
    by_number = not (question.batches or question.networks)
    places = range(len(question.parts))
    labels = [f"{question.scales[index].devices:,}" if by_number else question.part_name(index) for index in places]
    triples = zip(labels, result.parts, question.parts, strict=False)
    without = [(name, _known(answer, part)) for name, answer, part in triples if answer.value is None]
    refuted, planless, unknown = (
        ", ".join(count for count, kind in without if kind == wanted) for wanted in ("refuted", "planless", "unknown")
    )

    def named(numbers: str) -> str:
        return f"{numbers} device{'s' * (numbers != '1')}" if by_number else numbers

    clauses = [f"no design with {named(refuted)} keeps every limit"] if refuted else []
    clauses += [f"no plan exists for {named(planless)}"] if planless else []
    clauses += [f"whether {named(unknown)} would do is not known"] if unknown else []
    return "; ".join(clauses) or "the question allows no fewer devices"


def _known(answer: DesignResult, part: Instance) -> str:
    """What is known of a number of devices without a design."""
    return "unknown" if not answer.settled else "planless" if why_no_plan(part) else "refuted"


# How answers about joint designs are shown: of one workload or several, on one number of devices or several.


def sheet(question: Instance | Portfolio | MultiScaleQuestion, result: DesignResult) -> Sheet:
    """What is shown."""
    if isinstance(question, MultiScaleQuestion):
        return counts_sheet(question, result)
    if isinstance(question, Portfolio):
        return several_sheet(question, result)
    return design_sheet(question, result)
