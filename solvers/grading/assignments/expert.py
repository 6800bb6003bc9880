"""Assignment 8: a chip and a plan for a question drawn from a seed, better than the expert's, with a certificate; no program is handed in.

Nothing in the answer is believed: it must answer this very question, its design is priced anew, and its proof is carried out anew.
"""

from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_question
from crossopt.instances.errors import InstanceError
from crossopt.instances.files.document import Node, read_text
from crossopt.instances.files.saved import read_as
from crossopt.solvers.answer import gap_between, result_in, unwatched
from crossopt.solvers.checking import check_answer
from crossopt.solvers.codesign.answer import DesignResult, Designs, Priced, design_in, from_words
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.boxes.search import search
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.codesign.judge import verify
from crossopt.solvers.codesign.rivals.megatron import expert_design
from crossopt.solvers.grading.marks import FULL, Assignment, Mark, Task, Verdict, by_gap

ANSWER = "answer.json"
_PARTS = (("a design that keeps every limit", 20), ("better than the expert", 40), ("a certificate", 40))
_GAP_NOTHING, _SOLVERS_WORD = 0.1, 0.5
_LONGEST = 1 << 16
"""Signs of a question."""
_ANOTHER = "this answers another question than the one handed out (put question.yaml back and solve it as it stands, without --set)"


def tasks(_seed: str) -> tuple[Task, ...]:
    """The parts of the grade; no function is called."""
    return tuple(Task(name, points, ()) for name, points in _PARTS)


def question(seed: str) -> str:
    """The question as YAML: a network, a cluster and budgets."""
    random = Random(f"{seed}/08")
    name, devices = random.choice(("gpt3-2.7b", "gpt3-6.7b", "llama2-7b", "llama3-8b")), random.choice((32, 64, 128))
    area, power = random.randrange(740, 856, 5), random.randrange(390, 471, 10)
    return f"""# Assignment 8: which chip and which plan train {name} best on {devices} devices?
kind: codesign
description: {name} on {devices} devices of {area} mm^2 and {power} W
workload: {{model: {name}, global_batch: {random.choice((256, 512, 1024))}, precision: bf16}}
cluster: {{devices: {devices}, devices_per_node: 8}}
technology: accelerator-7nm
budget: {{die_area: {area} mm^2, package_area: {random.randrange(1400, 1601, 20)} mm^2, power: {power} W}}
choices:
  compute_area: {{from: 300 mm^2, to: 700 mm^2, step: 20 mm^2}}
  compute_power: {{from: 100 W, to: 260 W, step: 20 W}}
  l2_area: {{from: 10 mm^2, to: 130 mm^2, step: 30 mm^2}}
  hbm_stacks: [2, 4, 5, 6]
  tensor: [1, 2, 4, 8]
  pipeline: [1, 2, 4]
  microbatch: [1, 2, 4]
  recompute: [none, selective, full]
  zero: [0, 1, 3]
objective: step_time
"""


def judged(folder: Path, seed: str) -> tuple[Mark, ...]:
    """The marks of an answer."""
    try:
        result = read_as(folder / ANSWER, lambda data: result_in(data, Designs, Priced))
        instance = _asked(result, seed)
        value = _value(result, instance)
    except (InstanceError, ValueError) as error:
        why = "; ".join(fault.message for fault in error.faults) if isinstance(error, InstanceError) else str(error)
        return nothing(why)
    return tuple(
        Mark(name, round(points * verdict.share, 2), points, (verdict.why,) if verdict.why else ())
        for (name, points), verdict in zip(_PARTS, (FULL, _beside(value, seed), _certified(result, instance, value)), strict=True)
    )


def nothing(why: str) -> tuple[Mark, ...]:
    """No points for one reason."""
    return tuple(Mark(name, 0.0, points, (why,)) for name, points in _PARTS)


def _asked(result: DesignResult, seed: str) -> Instance:
    """The question of the seed in the words of the answer; a ValueError where it answers another one.

    Comments, empty lines and blanks may differ: what is compared is what the text says, without its places.
    """
    text, source, settings = (result.question.get(name) for name in ("text", "source", "settings"))
    if settings or not isinstance(text, str) or len(text) > _LONGEST:
        raise ValueError(_ANOTHER)
    try:
        said = _plain(read_text(text, "answer"))
    except InstanceError as error:
        raise ValueError(f"{_ANOTHER}: {error.faults[0].message}") from error
    right = _plain(read_text(question(seed), "question"))
    if said != right:
        keys = [key for key in sorted(said.keys() | right.keys()) if said.get(key) != right.get(key)] if isinstance(said, dict) else []
        raise ValueError(f"{_ANOTHER}: its text was changed{' at ' if keys else ''}{', '.join(keys)}")
    return read_question({"text": text, "source": source, "settings": []})


def _plain(node: Node) -> Any:  # noqa: ANN401 - a tree of YAML
    """What a text says: each value as it is written, by its keys."""
    if isinstance(node.value, dict):
        return {key: _plain(entry.node) for key, entry in node.value.items()}
    return [_plain(part) for part in node.value] if isinstance(node.value, tuple) else node.value


def _value(result: DesignResult, instance: Instance) -> float:
    """What the full model says of the design; a ValueError where it is none, or breaks a limit."""
    design = design_in(result)
    if design is None:
        raise ValueError("there is no design in the answer")
    try:
        verdict = verify(instance, from_words(instance, design))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the design is none of the question: {error}") from error
    if verdict.violations:
        raise ValueError(f"the design breaks a limit, in SI units: {'; '.join(verdict.violations)}")
    return verdict.value


@cache
def best_and_expert(seed: str) -> tuple[float, float]:
    """The optimum of the question, by boxes, and the value of the expert's design."""
    instance = read_question({"text": question(seed), "source": "question.yaml", "settings": []})
    found, design = search(instance, unwatched, Spend()), expert_design(instance)
    if found.value is None or design is None:
        raise ValueError(f"the seed {seed!r} draws a question without a design (take another one)")
    return found.value, verify(instance, design).value


def _beside(value: float, seed: str) -> Verdict:
    best, expert = best_and_expert(seed)
    missing = (value - best) / (expert - best) if expert > best else (value - best) / best
    why = f"the design takes {value:.6g} s, the expert's {expert:.6g} s and the best {best:.6g} s"
    return FULL if value <= best else by_gap(missing, 1.0, why)


def _edited(result: DesignResult, value: float) -> str:
    """What is certain to have been changed in the answer, as a beginning of what follows from that."""
    if result.value != value:
        return f"its value was edited, the design takes {value!r} s and the answer says {result.value!r}, so that "
    if result.gap is not None and result.bound is not None and result.gap != gap_between(value, result.bound):
        return "its bound or its gap was edited, since they do not belong together: "
    return ""


def _certified(result: DesignResult, instance: Instance, value: float) -> Verdict:
    """All points for a bound that was proved anew and meets the value."""
    report = check_answer(FAMILY, result, instance)
    if not report.accepted:
        return Verdict(0.0, f"the check refuses it: {_edited(result, value)}{report.refused[0]}")
    if result.gap is None:
        return Verdict(0.0, f"the engine {result.engine} gives no bound (boxes and exhaustive do)")
    near = by_gap(result.gap, _GAP_NOTHING, f"a gap of {result.gap:.2%} is left")
    if report.told:
        word = "the bound is the word of a solver, which nobody can check (half the points; --engine boxes proves it)"
        return Verdict(near.share * _SOLVERS_WORD, f"{near.why}; {word}" if near.why else word)
    return near


EXPERT = Assignment("08-beat-the-expert", "Beat the expert, with a certificate", tasks, judge=judged, handed=ANSWER)
