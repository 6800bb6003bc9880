"""Assignment 8: a chip and a plan for a question drawn from a seed, better than the expert's, with a certificate; no program is run.

Nothing in what is handed in is believed: the answer must be to this very question, designs are priced and its proof is carried out anew.
The question is the first draw in which the expert is a tenth to a quarter above the best, and one change after another, of a single choice
each, ends before half of the way from the one to the other.

What a student writes down on the way from the expert's design to a better one, priced anew: `hand.json` of assignment 8.

{"steps": [{"design": {"compute_area": "600 mm^2", ...}, "step_time": 1.2}, ...],   the expert's design, then one or two choices changed
 "alone": {"chip": 1.0, "plan": 1.1}}     seconds of the best chip for the expert's plan, and of the best plan on the expert's chip
"""

import json
from dataclasses import dataclass
from functools import cache
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import yaml

from crossopt.crossflow.plan import PLAN_FIELDS, Plan, Plans, table
from crossopt.instances.codesign.boxes import Boxes, corners, grid, option_indices
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_question
from crossopt.instances.codesign.space import plan_blocks
from crossopt.instances.errors import InstanceError
from crossopt.instances.files.document import Node, read_text
from crossopt.instances.files.saved import read_as
from crossopt.solvers.answer import gap_between, result_in, unwatched
from crossopt.solvers.checking import check_answer
from crossopt.solvers.codesign.answer import DesignResult, Designs, EvaluatedDesigns, candidate_in
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.boxes.search import search
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.codesign.judge import evaluate_single, verify
from crossopt.solvers.codesign.megatron import expert_design
from crossopt.solvers.codesign.objective import joined, rows_of, values_of
from crossopt.solvers.codesign.searchers import row_of
from crossopt.solvers.grading.marks import FULL, Assignment, Mark, Task, Verdict, apart, by_gap, nearly, number, shown, wrong

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
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return f"{HAND} is no JSON"
    steps = content.get("steps") if isinstance(content, dict) else None
    if not isinstance(steps, list) or not 0 < len(steps) <= _STEPS:
        return f"{HAND} has 1 to {_STEPS} `steps`"
    read = [_step(step) for step in steps]
    alone = content.get("alone")
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
    for step, (design, claimed) in enumerate(hand.steps):
        value = seconds_of(question_of(text), text, design)
        if isinstance(value, str):
            return wrong(f"step {step}: {value}")
        if abs(claimed - value) > CLAIM * value:
            return wrong(f"step {step}: the design takes {apart(value, claimed)[0]} s, where {claimed!r} is written down")
        if fault := _misplaced(value, last, step, _changed(before, design)):
            return wrong(f"step {step}: {fault}")
        last, before = value, design
    why = f"the last step takes {apart(last, expert, best)[0]} s, the expert's design {expert:.6g} s and the best {best:.6g} s"
    if (expert - last) / (expert - best) >= HALF:
        return FULL
    return nearly("less than half of the way from the expert's design to the best one is gone", why) if last < expert else wrong(why)


def _misplaced(value: float, last: float, step: int, changed: int) -> str:
    """Why a step is none after the one before it, or no first one; nothing where it is one."""
    if step == 0:
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
    good = [abs(claim - right) <= CLAIM * right for claim, right in zip(given, (chip, plan), strict=True)]  # type: ignore[operator]
    if all(good):
        return FULL
    why = (
        f"the best chip for the expert's plan is not {given[0]!r} s"
        if good[1]
        else f"the best plan on the expert's chip is not {given[1]!r} s"
    )
    if any(good):
        return nearly("one of the two is right, the other one answers another question", why)
    swapped = all(abs(claim - right) <= CLAIM * right for claim, right in zip(given, (plan, chip), strict=True))  # type: ignore[operator]
    return (
        nearly("what the chip alone can win and what the plan alone can are swapped") if swapped else wrong("neither of the two is right")
    )


@cache
def question_of(text: str) -> Instance:
    return read_question({"text": text, "source": "question.yaml", "settings": []})


def seconds_of(instance: Instance, text: str, design: dict[str, str]) -> float | str:
    """The step time of a design that is given by a setting for each choice; a sentence where it does not belong to the question."""
    choices = _choices(text)
    if set(design) != choices:
        return f"a design has a setting for each of {', '.join(sorted(choices))}"
    try:
        settings = [f"{name}={value}" for name, value in design.items()]
        only = read_question({"text": text, "source": "question.yaml", "settings": settings})
        verdict = verify(instance, candidate_in(instance, evaluate_single(only).design))
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
    chip, value = np.array(option_indices(space, expert.point)), inf
    while True:
        chips = np.array([[*chip[:choice], p, *chip[choice + 1 :]] for choice, size in enumerate(space.sizes) for p in range(size)])
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


ANSWER = "answer.json"
_PARTS = (
    ("from the expert's design to a better one, by hand", 20),
    ("what the chip and the plan can win alone", 10),
    ("a certificate", 30),
)
_GAP_NEARLY = 0.02
_EXPERT_OFF = (0.10, 0.25)
"""How far the expert's design is above the best one, relatively."""
_DRAWS = 200
_LONGEST = 1 << 16
"""Signs of a question."""
_ANOTHER = "this answers another question than the one handed out (put question.yaml back and solve it as it stands, without --set)"


def tasks(_seed: str) -> tuple[Task, ...]:
    """The parts of the grade; no function is called."""
    return tuple(Task(name, points, ()) for name, points in _PARTS)


@cache
def question(seed: str) -> str:
    """The question as YAML: a network, a cluster and budgets."""
    random = Random(f"{seed}/08")
    least, most = _EXPERT_OFF
    for _ in range(_DRAWS):
        text = _draw(random)
        best, expert = _values(text)
        if least <= expert / best - 1.0 <= most and by_single_changes(text) >= HALF * (best + expert):
            return text
    raise ValueError(f"the seed {seed!r} draws no question in which the expert is {least:.0%} to {most:.0%} off (take another one)")


def _draw(random: Random) -> str:
    name, devices = random.choice(("gpt3-2.7b", "gpt3-6.7b", "llama2-7b", "llama2-13b", "llama3-8b")), random.choice((32, 64, 128, 256))
    area, power = random.randrange(600, 856, 5), random.randrange(300, 471, 10)
    return f"""# Assignment 8: which chip and which plan train {name} best on {devices} devices?
kind: codesign
description: {name} on {devices} devices of {area} mm^2 and {power} W
workload: {{model: {name}, global_batch: {random.choice((256, 512, 1024))}, precision: bf16}}
cluster: {{devices: {devices}, devices_per_node: 8}}
technology: accelerator-7nm
budget: {{die_area: {area} mm^2, package_area: {random.randrange(1300, 1701, 20)} mm^2, power: {power} W}}
choices:
  compute_area: {{from: 100 mm^2, to: 700 mm^2, step: 20 mm^2}}
  compute_power: {{from: 60 W, to: 260 W, step: 20 W}}
  l2_area: {{from: 10 mm^2, to: 130 mm^2, step: 30 mm^2}}
  hbm_stacks: [1, 2, 3, 4, 5, 6]
  tensor: [1, 2, 4, 8]
  pipeline: [1, 2, 4, 8]
  microbatch: [1, 2, 4]
  recompute: [none, selective, full]
  zero: [0, 1, 3]
objective: step_time
"""


def judged(folder: Path, seed: str) -> tuple[Mark, ...]:
    """The marks of what is handed in: what was found by hand, and the answer with its certificate, each on its own."""
    text, hand = question(seed), read_hand(folder)
    best, expert = best_and_expert(seed)
    verdicts = judge_steps(hand, text, expert, best), judge_alone(hand, text), _answered(folder, seed)
    return tuple(_mark(name, points, verdict) for (name, points), verdict in zip(_PARTS, verdicts, strict=True))


def _mark(name: str, points: int, verdict: Verdict) -> Mark:
    mistakes = "; ".join(verdict.mistakes)
    why = f"{mistakes} ({verdict.why})" if mistakes and verdict.why else mistakes or verdict.why
    return Mark(name, round(points * verdict.share, 2), points, (why,) if why else ())


def _answered(folder: Path, seed: str) -> Verdict:
    """What an answer is worth."""
    if not (folder / ANSWER).is_file():
        return wrong(f"there is no {ANSWER} (fill the holes of solution.py and run it)")
    try:
        result = read_as(folder / ANSWER, lambda data: result_in(data, Designs, EvaluatedDesigns))
        instance = _question_of_seed(result, seed)
        value = _value(result, instance)
    except (InstanceError, ValueError) as error:
        return wrong("; ".join(fault.message for fault in error.faults) if isinstance(error, InstanceError) else str(error))
    return _certified(result, instance, value)


def _question_of_seed(result: DesignResult, seed: str) -> Instance:
    """The question of the seed in the words of the answer; a ValueError where it answers another one.

    Comments, empty lines and blanks may differ: what is compared is what the text says, without its places.
    """
    text, source, settings = (result.question.get(name) for name in ("text", "source", "settings"))
    if settings or not isinstance(text, str) or len(text) > _LONGEST:
        raise ValueError(_ANOTHER)
    try:
        answered = _plain(read_text(text, "answer"))
    except InstanceError as error:
        raise ValueError(f"{_ANOTHER}: {error.faults[0].message}") from error
    right = _plain(read_text(question(seed), "question"))
    if answered != right:
        keys = (
            [key for key in sorted(answered.keys() | right.keys()) if answered.get(key) != right.get(key)]
            if isinstance(answered, dict)
            else []
        )
        raise ValueError(f"{_ANOTHER}: its text was changed{' at ' if keys else ''}{', '.join(keys)}")
    return read_question({"text": text, "source": source, "settings": []})


def _plain(node: Node) -> Any:  # noqa: ANN401 - a tree of YAML
    """What a text says: each value as it is written, by its keys."""
    if isinstance(node.value, dict):
        return {key: _plain(entry.node) for key, entry in node.value.items()}
    return [_plain(part) for part in node.value] if isinstance(node.value, tuple) else node.value


def _value(result: DesignResult, instance: Instance) -> float:
    """What the full model says of the design; a ValueError where it is none, or breaks a limit."""
    if result.answer is None:
        raise ValueError("there is no design in the answer")
    try:
        verdict = verify(instance, candidate_in(instance, result.answer.design))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the design does not belong to the question: {error}") from error
    if verdict.violations:
        raise ValueError(f"the design breaks a limit, in SI units: {'; '.join(verdict.violations)}")
    return verdict.value


def best_and_expert(seed: str) -> tuple[float, float]:
    """The optimum of the question, by boxes, and the value of the expert's design."""
    return _values(question(seed))


@cache
def _values(text: str) -> tuple[float, float]:
    """Optimum of the question in a text, and the value of the expert's design; infinite where the expert has none. The search starts from
    the expert's design."""
    instance = question_of(text)
    design = expert_design(instance)
    if design is None:
        return inf, inf
    found = search(instance, unwatched, Spend(), design, near=True)
    return (inf if found.value is None else found.value), verify(instance, design).value


def _edited(result: DesignResult, value: float) -> str:
    """What is certain to have been changed in the answer, as a beginning of what follows from that."""
    if result.value != value:
        return f"its value was edited, the design takes {value!r} s and the answer says {result.value!r}, so that "
    if result.gap is not None and result.bound is not None and result.gap != gap_between(value, result.bound):
        return "its bound or its gap was edited, since they do not belong together: "
    return ""


def _certified(result: DesignResult, instance: Instance, value: float) -> Verdict:
    """A bound that was proved anew and meets the value."""
    report = check_answer(FAMILY, result, instance)
    if not report.accepted:
        return wrong(f"the check refuses it: {_edited(result, value)}{report.refused[0]}")
    if result.gap is None:
        return wrong(f"the engine {result.engine} gives no bound (boxes and exhaustive do)")
    gap = by_gap(result.gap, _GAP_NEARLY, f"a gap of {result.gap:.2%} is left", "the search was stopped before the bound met the value")
    if report.unverified and gap.share:
        return nearly("the bound is reported by a solver, which nobody can check (--engine boxes proves it)", gap.why)
    return gap


def above_bound(folder: Path, seed: str) -> float | None:
    """How far the last design by hand is above the bound that boxes prove; None where the way to it does not hold together."""
    text, hand = question(seed), read_hand(folder)
    best, expert = best_and_expert(seed)
    value = last_value(hand, text)
    return value / best - 1.0 if value is not None and judge_steps(hand, text, expert, best).share else None


EXPERT = Assignment("08-beat-the-expert", "Beat the expert, with a certificate", tasks, judge=judged, rank=above_bound, handed=ANSWER)
