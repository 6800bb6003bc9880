"""A page about one workload's best design: the question, the design, the proof, and every figure that an architect asks for next."""

from collections.abc import Sequence
from typing import Any

from reports.charts import Part, Row, Steps, Titles, Units, bars, columns, stacked, steps
from reports.near import option_word
from reports.pages.shell import (
    Page,
    figure,
    folded,
    heading,
    listing,
    named,
    page,
    paragraph,
    parts_table,
    proof_box,
    section,
    table,
    tiles,
)
from reports.text import amount, chip_words, count_of, design_words, hardware_words, proof_words, seconds_of, shown, time_of
from solvers.reporting.facts import Amounts, Asked, Facts
from solvers.result import Conflict, Result, Rival

_BINDING = 0.95


def design_page(result: Result, asked: Asked, facts: Facts | None, data: object) -> str:
    """The page; `data` is the result as it was read, for re-use."""
    evaluation = result.evaluation
    head = [heading(result.instance["name"], asked.sentence), _verdict(result)]
    if evaluation is None or result.design is None or facts is None:
        return page(Page(result.instance["name"], (*head, _conflicts(result), question_section(result.instance, asked)), data))
    sections = (
        *(*head, _tiles(result, evaluation), question_section(result.instance, asked), _design(result.design, evaluation)),
        *(_time(evaluation), _chip(facts), _memory(facts, evaluation), _limits(evaluation["limits"])),
        *(_rivals(result), _search(result), _near(result), _assumptions(facts), _proof(result)),
    )
    return page(Page(result.instance["name"], sections, data))


def question_section(instance: dict[str, Any], asked: Asked) -> str:
    """What is given, and what is open."""
    terms = table(("", "given"), asked.terms)
    rows = [(named(name), f"{len(options):,}", _options(name, options)) for name, options in asked.open]
    return section(
        "The question",
        terms,
        table(("open", "options", "from"), rows, numbers=(1,)) if rows else paragraph("No choice is open: one design is priced."),
        folded("The question as it was written", f"{instance['text']}{_settings(instance)}"),
    )


def _options(name: str, options: Sequence[Any]) -> str:
    said_options = [option_words(name, option) for option in options]
    if len(options) <= 8 or isinstance(options[0], str):
        return ", ".join(said_options)
    return f"{said_options[0]} to {said_options[-1]}"


def option_words(name: str, option: object) -> str:
    """One option, with its unit."""
    return {True: "yes", False: "no"}[option] if isinstance(option, bool) else option_word(name, option)


def _settings(instance: dict[str, Any]) -> str:
    return "".join(f"\n# --set {setting}" for setting in instance.get("settings", ()))


# --- verdict -------------------------------------------------------------------------------------------------------------------------


def _verdict(result: Result) -> str:
    if result.design is None:
        words = (
            f"No design of the question keeps every limit, by {result.proved_by}."
            if result.proved
            else "No design was found, and none is ruled out."
        )
        return proof_box("proved: no design" if result.proved else "no design found", words, result.proved)
    label = "proved optimal" if result.status == "OPTIMAL" else f"proved within {result.gap_asked:.2%}" if result.proved else "not proved"
    return proof_box(label, _sentence(result), result.proved)


def _sentence(result: Result) -> str:
    words = proof_words(result)
    return words[0].upper() + words[1:]


def _tiles(result: Result, evaluation: dict[str, Any]) -> str:
    unit, objective = result.instance["unit"], result.instance["objective"]
    bound = "none" if result.bound is None else amount(result.bound, unit)
    facts = [(objective.replace("_", " "), amount(result.value, unit)), ("lower bound", bound)]
    facts += [("gap", f"{result.gap:.2%}")] if result.gap is not None else []
    facts += [("step time", time_of(evaluation["step_time"]))] if objective != "step_time" else []
    facts += [("tokens a second", count_of(round(evaluation["tokens_per_second"]))), ("of peak", f"{evaluation['utilisation']:.1%}")]
    if evaluation["energy"] > 0.0:
        facts += [("a device, on average", f"{evaluation['average_power']:.0f} W"), ("a step", shown(evaluation["energy"], "energy"))]
    facts += [("a step", f"{evaluation['cost']:.4g} USD")] if evaluation["cost"] is not None else []
    return tiles(facts)


def _conflicts(result: Result) -> str:
    rows = [(conflict.limit, f"{conflict.kept_by:,}", _least(conflict)) for conflict in result.conflicts]
    if not rows:
        return paragraph("`crossopt explain` names the limits and choices that clash.") if result.proved else ""
    return section("What clashes", table(("limit", "designs that keep it", "the least any design needs"), rows, numbers=(1,)))


def _least(conflict: Conflict) -> str:
    return "-" if conflict.least_share is None else f"{conflict.least_share:.4g} times what there is"


# --- the design ----------------------------------------------------------------------------------------------------------------------


def _design(design: dict[str, Any], evaluation: dict[str, Any]) -> str:
    name, *chosen = hardware_words(design)
    rows = [("hardware", " · ".join([name, *chosen])), ("plan", design["words"]), ("a device offers", chip_words(evaluation))]
    ends = [named(end) for end in design["at_end_of_range"]]
    rows += [("at a range end", f"{', '.join(ends)}: a wider range may hold a better design")] if ends else []
    return section("The design", table(("", ""), rows))


def _time(evaluation: dict[str, Any]) -> str:
    parts = _parts(sorted(evaluation["breakdown"].items(), key=lambda item: -item[1]), "time")
    low, high = evaluation["likely"]
    likely = f"By the optimistic and the pessimistic constants a step takes {time_of(low)} to {time_of(high)}." if low < high else ""
    total = time_of(evaluation["step_time"])
    titles = Titles("time", "Where the step goes", f"A bar of {total}, cut into {_listed(parts)}.")
    whole = figure(stacked(titles, parts), f"A step of {total} on the fullest stage. {likely}".strip())
    return section("Where the step goes", whole, parts_table(("use", "time"), parts))


def _parts(items: Any, dimension: str) -> list[Part]:  # noqa: ANN401 - pairs of a name and an amount, from a mapping or a tuple
    """What is there at all, the most first."""
    found = [Part(name, value, shown(value, dimension), place) for place, (name, value) in enumerate(items) if value > 0.0]
    return sorted(found, key=lambda part: -part.value)


def _listed(parts: Sequence[Part]) -> str:
    return ", ".join(f"{part.label} {part.shown}" for part in parts)


def _chip(facts: Facts) -> str:
    if not facts.areas:
        return ""
    return section("The chip", *_split("Die area", "area", "area", facts.areas), *_split("Power", "power", "power", facts.powers))


def _split(title: str, name: str, dimension: str, amounts: Amounts) -> tuple[str, str, str]:
    parts = _parts(amounts, dimension)
    total = shown(sum(part.value for part in parts), dimension)
    titles = Titles(name, f"{title} by part", f"A bar of {total}, cut into {_listed(parts)}.")
    return f"<h3>{title}</h3>", figure(stacked(titles, parts), f"{total} of one device"), parts_table(("part", name), parts)


# --- memory --------------------------------------------------------------------------------------------------------------------------


def _memory(facts: Facts, evaluation: dict[str, Any]) -> str:
    """The bytes of every stage of a pipeline; of a single stage, as the fullest device has them."""
    if len(facts.stages) > 1:
        return _stages(facts)
    parts = _parts(evaluation["memory"].items(), "bytes")
    used, capacity = (shown(size, "bytes") for size in (sum(part.value for part in parts), facts.capacity))
    titles = Titles("memory", "Memory of a device", f"A bar of {capacity}, filled with {_listed(parts)}.")
    picture = figure(stacked(titles, parts, facts.capacity), f"{used} of {capacity} of a device")
    return section("Memory", picture, parts_table(("use", "memory"), parts))


def _stages(facts: Facts) -> str:
    totals, stages = [sum(size for _, size in stage) for stage in facts.stages], [dict(stage) for stage in facts.stages]
    fullest = totals.index(max(totals))
    values = [(use, [stage[use] for stage in stages]) for use in stages[0] if any(stage[use] > 0.0 for stage in stages)]
    least, most, capacity = (shown(size, "bytes") for size in (min(totals), max(totals), facts.capacity))
    titles = Titles("memory", "Memory of each stage", f"{len(totals)} columns of {least} to {most}; a device has {capacity}.")
    unit, one = ("GiB", 2.0**30) if facts.capacity >= 2.0**30 else ("MiB", 2.0**20)
    axis = Units(unit, one, f"capacity {capacity}", "pipeline stage, the first one left")
    picture = columns(titles, [str(place + 1) for place in range(len(totals))], values, facts.capacity, axis)
    parts = [Part(use, sizes[fullest], shown(sizes[fullest], "bytes"), place) for place, (use, sizes) in enumerate(values)]
    caption = f"The fullest stage is number {fullest + 1}: {most} of {capacity} on each of its devices."
    return section("Memory", figure(picture, caption), parts_table((f"stage {fullest + 1}", "memory"), parts))


def _limits(limits: Sequence[dict[str, Any]]) -> str:
    rows, lines = [], []
    for limit in limits:
        share = limit["used"] / limit["available"] if limit["available"] > 0.0 else 1.0
        used, available = shown(limit["used"], limit["unit"]), shown(limit["available"], limit["unit"])
        rows.append(Row(limit["name"], share, f"{share:.1%}", "binds" if share >= _BINDING else ""))
        lines.append(
            (limit["name"], used, available, shown(limit["available"] - limit["used"], limit["unit"]), "yes" if share >= _BINDING else "no")
        )
    said_rows = "; ".join(f"{row.label} {row.shown}{' binds' if row.note else ''}" for row in rows)
    titles = Titles("limits", "How much of each limit is used", f"{said_rows}.")
    heads = ("limit", "used", "of", "slack", "binds")
    return section(
        "Limits",
        figure(bars(titles, rows, 1.0, "the limit"), f"A limit binds where {_BINDING:.0%} or more of it are used."),
        table(heads, lines, numbers=(1, 2, 3)),
    )


# --- how good, and how it was found --------------------------------------------------------------------------------------------------


def _rivals(result: Result) -> str:
    if not result.rivals or result.value is None:
        return ""
    unit, found = result.instance["unit"], [rival for rival in result.rivals if rival.value is not None]
    rows = [Row("this design", result.value, amount(result.value, unit))]
    rows += [
        Row(f"{rival.name} rule", rival.value or 0.0, f"{amount(rival.value, unit)}, {_above(rival, result.value)}") for rival in found
    ]
    titles = Titles("rivals", "What rules of thumb reach", "; ".join(f"{row.label}: {row.shown}" for row in rows) + ".")
    lines = [
        (f"{rival.name} rule", design_words(rival.design) if rival.value is not None and rival.design else f"finds no design: {rival.note}")
        for rival in result.rivals
    ]
    mark = "bound" if result.bound is not None else ""
    picture = figure(bars(titles, rows, result.value if result.bound is None else result.bound, mark)) if found else ""
    return section("Rivals", picture, table(("", "chooses"), lines))


def _above(rival: Rival, value: float) -> str:
    distance = (rival.value or 0.0) / value - 1.0 if value else 0.0
    return "the same value" if distance == 0.0 else f"{distance:.1%} above"


def _search(result: Result) -> str:
    best = tuple((at, value) for at, value, _ in result.trace if value is not None)
    bound = tuple((at, value) for at, _, value in result.trace if value is not None)
    unit = result.instance["unit"]
    bound += ((result.seconds, result.bound),) if result.bound is not None and (not bound or bound[-1][1] != result.bound) else ()
    series = [Steps("best design", best)] if best else []
    series += [Steps("lower bound", bound)] if bound else []
    if not result.trace or not series:
        return ""
    until = max(result.seconds, *(at for at, _, _ in result.trace))
    gap = "" if result.gap is None else f" and leaves a gap of {result.gap:.2%}"
    titles = Titles("search", "Best design and bound over time", f"The search ends after {seconds_of(result.seconds)}{gap}.")
    picture = steps(titles, series, until or 1.0, ("seconds", f"{result.instance['objective'].replace('_', ' ')} in {unit}"))
    return section("How the search closed in", figure(picture, f"Engine {result.engine}. {titles.description}"))


def _near(result: Result) -> str:
    space, value = result.space, result.value
    if space is None or value is None or not result.proved:
        return ""
    counts = [("designs asked about", count_of(space.designs)), ("keep every limit", count_of(space.feasible))]
    counts += [("others as good", count_of(space.ties - 1)), ("others within 1 %", count_of(space.within_1_percent - 1))]
    counts += [("others within 5 %", count_of(space.within_5_percent - 1))]
    rows = []
    for choice in space.near:
        pairs = zip(choice.options, choice.least, strict=True)
        options = ", ".join(f"{option_words(choice.name, option)} ({_distance(least, value)})" for option, least in pairs)
        rows.append((named(choice.name), f"{len(choice.options)} of {choice.of}", options))
    caption = "Options that occur within 5 %, and how far above the best the best design with each of them is"
    return section("Designs nearly as good", tiles(counts), table(("choice", "occur", "options"), rows, caption, (1,)) if rows else "")


def _distance(least: float, value: float) -> str:
    return "best" if least <= value else f"+{least / value - 1.0:.2%}" if value else "-"


def _assumptions(facts: Facts) -> str:
    rows = [(name.replace("_", " "), f"{value:.6g}") for name, value in facts.constants]
    return section("Assumptions", listing(facts.assumed), table(("constant of the model", "value"), rows, numbers=(1,)))


def _proof(result: Result) -> str:
    lines = [f"Checked: {'; '.join(result.checks)}."]
    lines.append(
        "The design was priced anew for this page. The proof is told as the result tells it: `crossopt check` carries it out anew."
    )
    versions = ", ".join(f"{name} {version}" for name, version in sorted(result.versions.items()))
    made = f"Answered by the engine {result.engine} in {seconds_of(result.seconds)}{f', with {versions}' if versions else ''}."
    return section(
        "How this is known",
        paragraph(_sentence(result)),
        *map(paragraph, lines),
        paragraph(made, "soft"),
    )
