"""A price does not depend on the plans and chips that are priced beside it, to the last bit.

A step's price is a formula of numbers. Blocks of plans and chips only compute it for many of these at once; so every figure of a plan on a
chip has the same bits alone, in any block, in any order, and by the judge, who looks at one design.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest

from crossopt.crossflow.arrays import Array, Whole
from crossopt.crossflow.hardware import Efficiency, Hardware, take
from crossopt.instances.codesign.boxes import Boxes, Corners, chips_at, corners, grid, places_of, whole
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.space import AnyPlans, buildable, draw_plans, hardware_points, plan_blocks
from crossopt.solvers.codesign.answer import candidate
from crossopt.solvers.codesign.judge import verify
from crossopt.solvers.codesign.objective import OBJECTIVES, values
from crossopt.solvers.codesign.pricing import host_memory_of, joined, memory_of, rows_of, spent, values_of
from tests.solvers.codesign.any_questions import any_question
from tests.solvers.codesign.asking import answered, checked
from tests.solvers.codesign.questions import ask

_GATHERED_BEHIND = """\
kind: codesign
workload: {{model: {model}, global_batch: {batch}, sequence: {sequence}}}
cluster: {{devices: {devices}}}
hardware: h100-sxm
stack: megatron-core
choices:
  tensor: [1, 2, 4, 8]
  pipeline: [1, 2, 4, 8]
  overlap: [none, both]
  sequence_parallel: [false, true]
  zero: 1
  microbatch: [1, 2]
  recompute: [none, full]
"""


@pytest.mark.parametrize(("model", "batch", "sequence", "devices"), [("gpt3-13b", 128, 2048, 8), ("llama3-8b", 24, 1024, 16)])
def test_a_best_plan_without_overlap_is_priced_alike_beside_plans_with_it(model: str, batch: int, sequence: int, devices: int) -> None:
    """Megatron-Core gathers updated weights behind the first forward pass where overlap is on."""
    question = ask(_GATHERED_BEHIND.format(model=model, batch=batch, sequence=sequence, devices=devices))
    result = answered(question)
    assert result.proved
    assert checked(result).refused == ()
    plans, space = joined(list(plan_blocks(question))), grid(question)
    chips = corners(question, space, whole(space))
    together = values_of(question, chips, plans)
    alone = [values_of(question, chips, rows_of(plans, np.array([row]))) for row in range(len(plans))]
    assert np.array_equal(together, np.concatenate(alone))


ALONE = ("plan alone", "chip alone", "both alone")
PLANS, CHIPS = 64, 32
"""At the most, of a drawn question."""
ROWS, COLUMNS, SINGLE, JUDGED = 8, 6, 2, 3
"""Of these so many plans alone on all chips, chips alone with all plans, plans alone on one chip, and designs that the judge prices."""


def test_a_price_is_the_same_alone_in_a_block_and_by_the_judge() -> None:
    pairs, faults = compared(range(25))
    assert not faults
    assert min(pairs[way] for way in (*ALONE, "shuffled", "split", "judged", "generated alone")) > 20


@pytest.mark.slow
def test_100000_prices_are_the_same_alone_in_a_block_and_by_the_judge() -> None:
    pairs, start = Counter[str](), 1_000
    while sum(pairs[way] for way in ALONE) < 100_000:
        more, faults = compared(range(start, start + 50))
        assert not faults
        pairs, start = pairs + more, start + 50
    print(dict(pairs))


def compared(seeds: range) -> tuple[Counter[str], list[str]]:
    """How many pairs of a plan and a chip were priced twice in each way, and each figure that differs, with its question."""
    pairs, faults = Counter[str](), list[str]()
    for seed in seeds:
        random = np.random.default_rng([seed, 7])
        question = any_question(seed)
        plans, points = _plans(question, random), _points(question, random)
        with np.errstate(all="ignore"):
            if len(plans) and len(points):
                space = grid(question)
                places = np.stack([places_of(space, point) for point in points.tolist()])
                boxed = corners(question, space, Boxes(places, places))
                every = _figures(question, boxed.hardware, plans)
                found = (*_again(question, random, plans, points, every), *_judged(question, random, plans, points, boxed, every))
                faults += [f"seed {seed}: {way}: {name}" for way, _, names in found for name in names]
                pairs.update({"questions": 1})
                for way, count, _ in found:
                    pairs[way] += count
    return pairs, faults


def _plans(question: Instance, random: np.random.Generator) -> AnyPlans:
    drawn = draw_plans(question, random, 400)
    return rows_of(drawn, random.permutation(len(drawn))[:PLANS])


def _points(question: Instance, random: np.random.Generator) -> Whole:
    """Points of chips that can be built."""
    every = hardware_points(question)
    drawn = np.unique(random.integers(every, size=3 * CHIPS)) if every > 3 * CHIPS else np.arange(every)
    built = np.broadcast_to(buildable(chips_at(question, drawn).hardware), drawn.shape)
    return random.permutation(drawn[built])[:CHIPS]


Found = tuple[str, int, list[str]]
"""A way to price again, how many pairs were, and the figures that differ."""


def _again(question: Instance, random: np.random.Generator, plans: AnyPlans, points: Whole, every: dict[str, Array]) -> Iterator[Found]:
    chips = chips_at(question, points).hardware
    yield "chip, not box", len(plans) * len(points), _unlike(every, _figures(question, chips, plans))
    alone = {place: chips_at(question, points[[place]]).hardware for place in random.permutation(len(points))[:COLUMNS].tolist()}
    for place, chip in alone.items():
        yield "generated alone", 1, _unlike(_leaves(take(chips, np.array([place]))), _leaves(chip))
        yield "chip alone", len(plans), _unlike(_part(every, slice(None), [place]), _figures(question, chip, plans))
    for row in random.permutation(len(plans))[:ROWS]:
        one = rows_of(plans, np.array([row]))
        yield "plan alone", len(points), _unlike(_part(every, [row], slice(None)), _figures(question, chips, one))
        for place in [*alone][:SINGLE]:
            yield "both alone", 1, _unlike(_part(every, [row], [place]), _figures(question, alone[place], one))
    rows, columns = random.permutation(len(plans)), random.permutation(len(points))
    shuffled = _figures(question, take(chips, columns), rows_of(plans, rows))
    yield "shuffled", len(plans) * len(points), _unlike(_part(_part(every, rows, slice(None)), slice(None), columns), shuffled)
    some = rows[: int(random.integers(1, len(rows) + 1))]
    yield "split", len(some) * len(points), _unlike(_part(every, some, slice(None)), _figures(question, chips, rows_of(plans, some)))


def _judged(
    question: Instance, random: np.random.Generator, plans: AnyPlans, points: Whole, boxed: Corners, every: dict[str, Array]
) -> Iterator[Found]:
    every = every | {"limited value": values_of(question, boxed, plans)}
    for _ in range(JUDGED):
        row, place = int(random.integers(len(plans))), int(random.integers(len(points)))
        verdict = verify(question, candidate(plans, row, int(points[place])))
        found, needed = verdict.details, 0.0
        for _, size in found.memory[:-1]:  # the last is what the framework reserves
            needed += size
        figures = {name: OBJECTIVES[name].one(question, found) for name in _named(question)}
        figures |= {"energy": found.energy, "memory": needed, "limited value": np.inf if verdict.violations else verdict.value}
        yield "judged", 1, _unlike(figures, _part(every, [row], [place]))


def _figures(question: Instance, chips: Hardware, plans: AnyPlans) -> dict[str, Array]:
    """All that is said of plans (rows) on chips (columns)."""
    taken = spent(question.workload, chips, question.cluster, plans)
    memory, host = memory_of(question.workload, plans), host_memory_of(question.workload, plans)
    found = {name: values(replace(question, objective=name), taken, chips) for name in _named(question)}
    found |= {"energy": taken.energy, "memory": memory[:, None], "host": host[:, None]}
    return {name: np.broadcast_to(some, taken.step_time.shape) for name, some in found.items()}


def _named(question: Instance) -> list[str]:
    """Objectives by what one set of constants says."""
    return [name for name in OBJECTIVES if name != "worst_step_time" and (name != "cost_per_token" or question.prices)]


def _part(figures: dict[str, Array], rows: Any, columns: Any) -> dict[str, Array]:  # noqa: ANN401 - whatever indexes an array
    return {name: some[rows][:, columns] for name, some in figures.items()}


def _unlike(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return [name for name, some in one.items() if not np.array_equal(np.squeeze(some), np.squeeze(other[name]), equal_nan=True)]


def _leaves(record: Any, path: str = "") -> dict[str, Any]:  # noqa: ANN401 - the parts of a chip
    """Every figure of a chip by its name."""
    found: dict[str, Any] = {}
    for field in fields(record):
        part, name = getattr(record, field.name), f"{path}{field.name}"
        if field.name == "links":
            found |= {key: figure for place, link in enumerate(part) for key, figure in _leaves(link, f"{name}[{place}].").items()}
        elif is_dataclass(part) and not isinstance(part, Efficiency):
            found |= _leaves(part, f"{name}.")
        elif isinstance(part, int | float | np.ndarray):
            found[name] = part
    return found
