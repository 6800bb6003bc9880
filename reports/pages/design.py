"""A page about one workload's best design: the question, the design, the proof, and every figure that an architect asks for next."""

from collections.abc import Sequence
from typing import Any

from crossopt.instances.codesign.instance import FreeHardware
from crossopt.instances.codesign.plans.left_out import LeftOut
from crossopt.reports.drawing.bars import Row, bars
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.facts.design import Asked, Facts
from crossopt.reports.facts.measured_runs import doubt_words
from crossopt.reports.facts.uses import saved_words
from crossopt.reports.pages.evaluated import (
    chip_section,
    design_section,
    limits_section,
    memory_section,
    time_section,
    uses_lettered,
    uses_table,
)
from crossopt.reports.pages.frame.first import first_screen
from crossopt.reports.pages.linear import linear_section
from crossopt.reports.pages.machine import network_section, operators_section
from crossopt.reports.pages.search import search_section
from crossopt.reports.pages.shell import Page, ProofBox, figure, fold, folded, heading, listing, named, paragraph, section, table, tiles
from crossopt.reports.pages.step import step_section
from crossopt.reports.sheets.amounts import amount, count_of, seconds_of, shown, time_of
from crossopt.reports.sheets.sheet import label_of
from crossopt.reports.texts.combinations import head_of, reasons_of
from crossopt.reports.texts.design import CHECKED, proof_words, prover_words, rival_label, rival_words
from crossopt.reports.texts.goals import run_figures
from crossopt.reports.texts.near import option_word
from crossopt.solvers.answer import Rival
from crossopt.solvers.codesign.answer import DesignResult, Designs, design_in, evaluation_in, space_in
from crossopt.solvers.proofs import Conflict, Enumerated


def design_page(result: DesignResult, asked: Asked, facts: Facts | None, data: object) -> Page:
    """The page; `data` is the result as it was read, for re-use."""
    evaluation = evaluation_in(result)
    head, question = heading(result.question["name"], asked.sentence), question_section(result.question, asked)
    if evaluation is None or facts is None:
        return Page(result.question["name"], (head, _verdict(result), _conflicts(result), question), data)
    first = first_screen(result, facts, _verdict(result))
    figures = section("In figures", _tiles(result, evaluation, asked))
    return Page(result.question["name"], (head, first, figures, *answer_sections(result, facts), question), data)


def answer_sections(result: DesignResult, facts: Facts) -> tuple[str, ...]:
    """The design, every figure of it, how it was found, and what it rests on."""
    evaluation, design = evaluation_in(result) or {}, design_in(result) or {}
    machine = (operators_section(facts.roofs), network_section(facts.network), chip_section(facts), memory_section(facts, evaluation))
    return (
        *(
            design_section(design, evaluation, facts),
            time_section(evaluation),
            step_section(facts.step, uses=uses_lettered(evaluation)),
            *machine,
        ),
        *(limits_section(evaluation["limits"]), _rivals(result, facts), _search(result), linear_section(facts.linear), _near(result)),
        *(assumptions_section(facts), _proof(result)),
    )


def question_section(instance: dict[str, Any], asked: Asked) -> str:
    """What is given, and what is open."""
    terms = table(("", "given"), asked.terms)
    rows = [(named(name), f"{len(options):,}", _options(name, options)) for name, options in asked.open]
    return section(
        "The question",
        terms,
        table(("open", "options", "from"), rows, numbers=(1,)) if rows else paragraph("No choice is open: one design is priced."),
        *_combinations(asked.left_out),
        fold("The question as it was written", f"{instance['text']}{_settings(instance)}"),
    )


def _combinations(out: LeftOut | None) -> tuple[str, ...]:
    """How many combinations of settings are plans, and why the others are none."""
    if out is None or not (reasons := reasons_of(out)):
        return ()
    head = f"{head_of(out)} are plans"
    return (paragraph(f"{head[0].upper()}{head[1:]}."), fold("Why the others are none", "\n".join(reasons)))


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


def _verdict(result: DesignResult) -> ProofBox:
    label = label_of(result, "design")
    if result.answer is None:
        words = (
            f"No design of the question keeps every limit, by {prover_words(result)}."
            if result.settled
            else "No design was found, and none is ruled out."
        )
        return ProofBox(label, words, result.proved)
    return ProofBox(label, _sentence(result), result.proved)


def _sentence(result: DesignResult) -> str:
    words = proof_words(result)
    return words[0].upper() + words[1:]


def _tiles(result: DesignResult, evaluation: dict[str, Any], asked: Asked) -> str:
    unit, objective = result.question["unit"], result.question["objective"]
    bound = "none" if result.bound is None else amount(result.bound, unit)
    facts = [(objective.replace("_", " "), amount(result.value, unit)), ("lower bound", bound)]
    facts += [("gap", f"{result.gap:.2%}")] if result.gap is not None else []
    facts += [("step time", time_of(evaluation["step_time"]))] if objective != "step_time" else []
    facts += [("tokens a second", count_of(round(evaluation["tokens_per_second"]))), ("of peak", f"{evaluation['utilisation']:.1%}")]
    if evaluation["energy"] > 0.0:
        facts += [("a device, on average", f"{evaluation['average_power']:.0f} W"), ("a step", shown(evaluation["energy"], "energy"))]
    facts += [("a step", f"{evaluation['cost']:.4g} USD")] if evaluation["cost"] is not None else []
    if asked.goal is not None:
        words = run_figures(asked.goal, evaluation["step_time"], evaluation["likely"])
        facts += [("the whole run", one) for one in words]
    return tiles(facts)


def _conflicts(result: DesignResult) -> str:
    conflicts = result.proof.conflicts if isinstance(result.proof, Enumerated) else ()
    rows = [(conflict.limit, f"{conflict.kept_by:,}", _least(conflict)) for conflict in conflicts]
    if not rows:
        return paragraph("`crossopt explain` names the limits and choices that clash.") if result.settled else ""
    return section("What clashes", table(("limit", "designs that keep it", "the least any design needs"), rows, numbers=(1,)))


def _least(conflict: Conflict) -> str:
    return "-" if conflict.least_share is None else f"{conflict.least_share:.4g} times what there is"


# --- how good, and how it was found --------------------------------------------------------------------------------------------------


def _rivals(result: DesignResult, facts: Facts) -> str:
    if not result.rivals or result.value is None:
        return ""
    unit, found, beside = result.question["unit"], [rival for rival in result.rivals if rival.value is not None], facts.uses
    rows = [Row("this design", result.value, amount(result.value, unit))]
    rows += [Row(rival_label(rival), rival.value or 0.0, f"{amount(rival.value, unit)}, {_above(rival, result.value)}") for rival in found]
    why = [saved_words(beside[0], one, result.proved) for one in beside[1:]]
    saved = [paragraph(f"{rival_label(rival).capitalize()}: {words}.") for rival, words in zip(found, why, strict=False) if words]
    doubts = [doubt_words(facts.error, (rival.value or 0.0) / result.value - 1.0 if result.value else 0.0) for rival in found]
    saved += [paragraph(f"{rival_label(rival).capitalize()}: {words}.") for rival, words in zip(found, doubts, strict=True) if words]
    titles = Titles("rivals", "What rules of thumb reach", "; ".join(f"{row.label}: {row.shown}" for row in rows) + ".")
    lines = [(rival_label(rival), rival_words(rival, facts.instance)) for rival in result.rivals]
    least, mark = (result.value, "") if result.bound is None else (result.bound, "bound")
    picture = figure(lambda width: bars(titles.at(width), rows, least, mark)) if found else ""
    told = [paragraph(f"{note[:1].upper()}{note[1:]}.") for note in result.notes]
    return section("Rivals", picture, table(("", "chooses"), lines), *saved, *told, uses_table(beside))


def _above(rival: Rival[Designs], value: float) -> str:
    distance = (rival.value or 0.0) / value - 1.0 if value else 0.0
    return "the same value" if distance == 0.0 else f"{distance:.1%} above"


def _search(result: DesignResult) -> str:
    axis = f"{result.question['objective'].replace('_', ' ')} in {result.question['unit']}"
    return search_section("best design", axis, result)


def _near(result: DesignResult) -> str:
    space, value = space_in(result), result.value
    if space is None or value is None or not result.settled:
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


def assumptions_section(facts: Facts) -> str:
    """What the figures rest on."""
    rows = [(one.name.replace("_", " "), f"{one.value:.6g} {one.unit}".rstrip(), one.meaning, one.origin) for one in facts.constants]
    heads = ("constant of the model", "value", "meaning", "from")
    return section("Assumptions", listing(facts.assumed), table(heads, rows, numbers=(1,), wide=True), _sources(facts))


def _sources(facts: Facts) -> str:
    """Where the figures of a technology are from, of a chip that was chosen."""
    free = facts.instance.hardware if facts.instance else None
    if not isinstance(free, FreeHardware) or not free.sources:
        return ""
    estimates = sum(words.startswith("estimate") for _, words in free.sources)
    title = f"Where the technology's figures are from: {len(free.sources)} lines, of which {estimates} begin with an estimate"
    rows = [(name.replace(".", ", ").replace("_", " "), words) for name, words in free.sources]
    return folded(title, table(("figures", "from"), rows))


def _proof(result: DesignResult) -> str:
    lines = [*(f"{note}." for note in result.notes), f"Checked: {CHECKED}.", "The design was priced anew for this page."]
    versions = ", ".join(f"{name} {version}" for name, version in sorted(result.versions.items()))
    made = f"Answered by the engine {result.engine} in {seconds_of(result.seconds)}{f', with {versions}' if versions else ''}."
    return section(
        "How this is known",
        paragraph(_sentence(result)),
        *map(paragraph, lines),
        paragraph(made, "soft"),
    )
