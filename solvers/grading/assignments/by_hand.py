"""What a student writes down on the way from the expert's design to a better one, priced anew: `hand.json` of assignment 8.

{"steps": [{"design": {"compute_area": "600 mm^2", ...}, "step_time": 1.2}, ...],   the expert's design, then one or two choices changed
 "alone": {"chip": 1.0, "plan": 1.1}}     seconds of the best chip for the expert's plan, and of the best plan on the expert's chip
"""

import json
from dataclasses import dataclass
from functools import cache
from math import inf
from pathlib import Path

import numpy as np
import yaml

from crossopt.crossflow.plan import PLAN_FIELDS, Plan, Plans, table
from crossopt.instances.codesign.boxes import Boxes, corners, grid, places_of
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_question
from crossopt.instances.codesign.space import plan_blocks
from crossopt.instances.errors import InstanceError
from crossopt.solvers.codesign.answer import from_words
from crossopt.solvers.codesign.explain.single import evaluate_single
from crossopt.solvers.codesign.judge import verify
from crossopt.solvers.codesign.pricing import joined, rows_of, values_of
from crossopt.solvers.codesign.rivals.megatron import expert_design
from crossopt.solvers.codesign.rivals.searchers.neighbourhood import row_of
from crossopt.solvers.grading.marks import FULL, Verdict, apart, nearly, number, shown, wrong

HAND = "hand.json"
CLAIM = 1e-4
"""The relative error up to which a time that is written down is that of the design: the tool shows so many digits."""
HALF = 0.5
AT_ONCE = 2
"""Choices that a step may change: what one part of a die gives, another one takes."""
_STEPS, _SIGNS, _BYTES = 50, 40, 1 << 18

Step = tuple[dict[str, str], float]


@dataclass(frozen=True, slots=True)
class Hand:
    """What is written down."""

    steps: tuple[Step, ...]
    alone: dict[str, float]


def read_hand(folder: Path) -> Hand | str:
    """What is in the file; a sentence where it is none."""
    path = folder / HAND
    if not path.is_file():
        return f"there is no {HAND} (fill the holes of solution.py and run it)"
    if path.stat().st_size > _BYTES:
        return f"{HAND} is larger than {_BYTES >> 10} KiB"
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return f"{HAND} is no JSON"
    steps = said.get("steps") if isinstance(said, dict) else None
    if not isinstance(steps, list) or not 0 < len(steps) <= _STEPS:
        return f"{HAND} has 1 to {_STEPS} `steps`"
    read = [_step(step) for step in steps]
    alone = said.get("alone")
    figures = {name: number(value) for name, value in alone.items()} if isinstance(alone, dict) else {}
    if None in read:
        return f"each step has a `design`, a text for each choice, and its `step_time` in seconds, not {shown(steps[read.index(None)])}"
    return Hand(tuple(step for step in read if step), {name: value for name, value in figures.items() if value is not None})


def _step(step: object) -> Step | None:
    if not isinstance(step, dict) or not isinstance(step.get("design"), dict) or (time := number(step.get("step_time"))) is None:
        return None
    design = step["design"]
    return (design, time) if all(isinstance(value, str) and len(value) <= _SIGNS for value in design.values()) else None


def judge_steps(hand: Hand | str, text: str, expert: float, best: float) -> Verdict:
    """From the expert's design, one or two choices at a time, each step quicker, to half of the way at least."""
    if isinstance(hand, str):
        return wrong(hand)
    last, before = expert, dict[str, str]()
    for place, (design, claimed) in enumerate(hand.steps):
        value = seconds_of(question_of(text), text, design)
        if isinstance(value, str):
            return wrong(f"step {place}: {value}")
        if abs(claimed - value) > CLAIM * value:
            return wrong(f"step {place}: the design takes {apart(value, claimed)[0]} s, where {claimed!r} is written down")
        if fault := _misplaced(value, last, place, _changed(before, design)):
            return wrong(f"step {place}: {fault}")
        last, before = value, design
    why = f"the last step takes {apart(last, expert, best)[0]} s, the expert's design {expert:.6g} s and the best {best:.6g} s"
    if (expert - last) / (expert - best) >= HALF:
        return FULL
    return nearly("less than half of the way from the expert's design to the best one is gone", why) if last < expert else wrong(why)


def _misplaced(value: float, last: float, place: int, changed: int) -> str:
    """Why a step is none after the one before it, or no first one; nothing where it is one."""
    if place == 0:
        here, expert = apart(value, last)
        return "" if value == last else f"this takes {here} s, and the expert's design {expert} s: begin with that"
    if not 0 < changed <= AT_ONCE:
        return f"{changed} choices are changed, one or two at a time are meant"
    return "" if value < last else f"this takes {apart(value, last)[0]} s, no less than the step before"


def _changed(before: dict[str, str], after: dict[str, str]) -> int:
    return sum(before.get(name) != after.get(name) for name in before.keys() | after.keys())


def last_value(hand: Hand | str, text: str) -> float | None:
    """Seconds of the last design that was found by hand; None where there is none."""
    value = seconds_of(question_of(text), text, hand.steps[-1][0]) if isinstance(hand, Hand) else None
    return value if isinstance(value, float) else None


def judge_alone(hand: Hand | str, text: str) -> Verdict:
    """What the chip alone can win, and what the plan alone."""
    if isinstance(hand, str):
        return wrong(hand)
    chip, plan = alone(text)
    given = hand.alone.get("chip"), hand.alone.get("plan")
    if given[0] is None or given[1] is None:
        return wrong(f"`alone` has the seconds of `chip` and of `plan`, not {shown(hand.alone)}")
    good = [abs(one - right) <= CLAIM * right for one, right in zip(given, (chip, plan), strict=True)]  # type: ignore[operator]
    if all(good):
        return FULL
    why = (
        f"the best chip for the expert's plan is not {given[0]!r} s"
        if good[1]
        else f"the best plan on the expert's chip is not {given[1]!r} s"
    )
    if any(good):
        return nearly("one of the two is right, the other one answers another question", why)
    swapped = all(abs(one - right) <= CLAIM * right for one, right in zip(given, (plan, chip), strict=True))  # type: ignore[operator]
    return (
        nearly("what the chip alone can win and what the plan alone can are swapped") if swapped else wrong("neither of the two is right")
    )


@cache
def question_of(text: str) -> Instance:
    return read_question({"text": text, "source": "question.yaml", "settings": []})


def seconds_of(instance: Instance, text: str, design: dict[str, str]) -> float | str:
    """The step time of a design that is given by a setting for each choice; a sentence where it is none of the question."""
    choices = _choices(text)
    if set(design) != choices:
        return f"a design has a setting for each of {', '.join(sorted(choices))}"
    try:
        settings = [f"{name}={value}" for name, value in design.items()]
        only = read_question({"text": text, "source": "question.yaml", "settings": settings})
        verdict = verify(instance, from_words(instance, evaluate_single(only).design))
    except InstanceError as error:
        return error.faults[0].message
    except (KeyError, TypeError, ValueError) as error:
        return f"this is no design of the question: {error}"
    return f"a limit is broken, in SI units: {verdict.violations[0]}" if verdict.violations else verdict.value


@cache
def _choices(text: str) -> frozenset[str]:
    return frozenset(yaml.safe_load(text)["choices"])


@cache
def by_single_changes(text: str) -> float:
    """Where changes of one choice at a time end that begin with the expert's design, the best change first."""
    instance = question_of(text)
    space, expert, plans = grid(instance), expert_design(instance), joined(list(plan_blocks(instance)))
    if expert is None or (row := row_of(plans, expert.plan)) is None or not isinstance(plans, Plans):
        raise ValueError("the expert has no design")
    settings = np.column_stack([getattr(plans, name) for name in sorted(_choices(text) & set(PLAN_FIELDS))])
    chip, value = np.array(places_of(space, expert.point)), inf
    while True:
        chips = np.array([[*chip[:choice], place, *chip[choice + 1 :]] for choice, size in enumerate(space.sizes) for place in range(size)])
        near = np.flatnonzero((settings != settings[row]).sum(axis=1) <= 1)
        of_chips = values_of(instance, corners(instance, space, Boxes(chips, chips)), rows_of(plans, np.array([row])))[0]
        of_plans = values_of(instance, corners(instance, space, Boxes(chip[None], chip[None])), rows_of(plans, near))[:, 0]
        least = float(min(of_chips.min(), of_plans.min()))
        if not least < value:
            return value
        value = least
        if of_chips.min() == least:
            chip = chips[int(of_chips.argmin())]
        else:
            row = int(near[int(of_plans.argmin())])


@cache
def alone(text: str) -> tuple[float, float]:
    """Seconds of the best chip for the expert's plan, and of the best plan on the expert's chip; all of them are priced."""
    instance = question_of(text)
    space, expert = grid(instance), expert_design(instance)
    if expert is None or not isinstance(expert.plan, Plan):
        raise ValueError("the expert has no design")
    places = np.stack(np.unravel_index(np.arange(space.points), space.sizes), axis=1)
    chips = values_of(instance, corners(instance, space, Boxes(places, places)), table([expert.plan]))
    own = places[expert.point][None]
    plans = values_of(instance, corners(instance, space, Boxes(own, own)), joined(list(plan_blocks(instance))))
    return float(chips.min()), float(plans.min())
