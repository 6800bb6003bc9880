"""The first screen of a design's page: what was chosen, what it reaches, what is proved, how far rivals are and what is full, with a
drawing of the chip and of the devices of the plan; the answer to the question before any detail."""

from dataclasses import replace
from typing import Any

from crossopt.reports.drawing.devices import WIDE, Grid, sketch
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.facts.chip.words import hardware_words
from crossopt.reports.facts.design import Facts
from crossopt.reports.pages.evaluated import FULL, floor_of
from crossopt.reports.pages.shell import ProofBox, figure, lead_over, paragraph, tiles
from crossopt.reports.sheets.amounts import amount
from crossopt.reports.texts.design import rival_label
from crossopt.solvers.codesign.answer import DesignResult, design_in, evaluation_in


def first_screen(result: DesignResult, facts: Facts, verdict: ProofBox) -> ProofBox:
    """All of it, below the heading."""
    design, evaluation = design_in(result) or {}, evaluation_in(result) or {}
    chip = " · ".join(hardware_words(design, dict(facts.needed)))
    chosen = (paragraph(chip, "answer"), paragraph(design["words"], "answer"))
    words = (*chosen, tiles(_figures(result, evaluation)), paragraph(_fullness(design, evaluation, facts.held)))
    return replace(verdict, answer="\n".join(words), drawn=_sketch(design, facts))


def _figures(result: DesignResult, evaluation: dict[str, Any]) -> list[tuple[str, str]]:
    unit, objective = result.question["unit"], result.question["objective"].replace("_", " ")
    bound = "no bound" if result.bound is None else amount(result.bound, unit)
    figures = [(objective, amount(result.value, unit)), ("no design is below", bound)]
    found = [one for one in result.rivals if one.value is not None]
    if found and result.value:
        best = min(found, key=lambda one: one.value or 0.0)
        figures.append(lead_over(_the(rival_label(best)), result.value, best.value or 0.0))
    elif result.rivals:
        figures.append(("rivals with a design", "none"))
    tight = max(evaluation["limits"], key=_share, default=None)
    if tight is not None:
        figures.append((f"of the {tight['name']} is used", f"{_share(tight):.1%}"))
    return figures


def _the(rival: str) -> str:
    return rival if "'" in rival else f"the {rival}"


def _fullness(design: dict[str, Any], evaluation: dict[str, Any], held: str) -> str:
    full = [limit for limit in evaluation["limits"] if _share(limit) >= FULL]
    words = ", ".join(f"{limit['name']} {_share(limit):.1%}" for limit in full)
    told = f"Full: {words}; crossopt explain says which bind." if full else f"No limit is full: none is used to {FULL:.0%}."
    ends = ", ".join(end.replace("_", " ").replace("hbm", "HBM") for end in design["at_end_of_range"])
    told = f"{told} At an end of its range: {ends}." if ends else told
    return f"{told} Held by {held}." if held else told


def _share(limit: dict[str, Any]) -> float:
    return limit["used"] / limit["available"] if limit["available"] > 0.0 else 1.0


def _sketch(design: dict[str, Any], facts: Facts) -> str:
    """Nothing where neither chip nor plan can be drawn."""
    plan, floor = design["plan"], floor_of(facts)
    if not {"data", "pipeline", "tensor"} <= set(plan):
        return ""
    grid = Grid(plan["data"], plan["pipeline"], plan["tensor"] * plan.get("context", 1))
    told = f"{grid.replicas:,} replica{'s' * (grid.replicas != 1)} of {grid.stages} stage{'s' * (grid.stages != 1)}"
    each = f"{grid.width} device{'s' * (grid.width != 1)} a stage"
    titles = Titles("sketch", "The chip and the devices of the plan", f"{told}, {each}.")
    caption = f"A square is a device, a block a replica: {told}, {each}."
    return figure(lambda width: sketch(titles.at(min(width, WIDE)), floor, grid), caption)
