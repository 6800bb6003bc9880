"""Small joint-design questions of assignments 6 and 7, drawn from a seed, and the full model's values of all their designs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any, Final

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.evaluate import Evaluation
from crossopt.instances.codesign.boxes import Boxes, Grid, corners, grid
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_question
from crossopt.instances.codesign.space import AnyPlans, hardware_choice, plan_blocks
from crossopt.solvers.answer import Verdict
from crossopt.solvers.codesign.answer import candidate
from crossopt.solvers.codesign.judge import verify
from crossopt.solvers.codesign.objective import joined, values_of


@dataclass(frozen=True, slots=True)
class Small:
    """A question of which every design can be priced at once."""

    instance: Instance
    space: Grid
    plans: AnyPlans

    def bounds(self, boxes: Boxes) -> Array:
        """Lower bound of each box; on a box of one chip the least value, infinite if there is none."""
        return np.asarray(self.prices(boxes).min(axis=0))

    def prices(self, boxes: Boxes) -> Array:
        """Lower bound of each plan (rows) in each box (columns); its value on a box of one chip."""
        return values_of(self.instance, corners(self.instance, self.space, boxes), self.plans)

    def chips(self) -> Boxes:
        """Every chip as a box of its own, in the order of their numbers."""
        places = np.stack(np.unravel_index(np.arange(self.space.points), self.space.sizes), axis=1)
        return Boxes(places, places)

    def areas(self) -> Array:
        """Square metres of the dies of all chips."""
        return np.asarray(corners(self.instance, self.space, self.chips()).hardware.die_area)

    def plan(self, row: int) -> object:
        """One of the plans."""
        return candidate(self.plans, row, 0).plan

    def judged(self, plan: int, chip: int) -> Verdict[Evaluation]:
        """The full model's value of one design, priced on its own."""
        return verify(self.instance, candidate(self.plans, plan, chip))

    def choice(self, chip: int) -> dict[str, Any]:
        """The choices of a chip, in SI units."""
        return hardware_choice(self.instance, chip)


@cache
def small(text: str) -> Small:
    """The question of a text."""
    instance = read_question({"text": text, "source": "question.yaml", "settings": []})
    return Small(instance, grid(instance), joined(list(plan_blocks(instance))))


NETWORKS: Final = ("gpt3-1.3b", "gpt3-2.7b", "gpt3-6.7b", "llama2-7b")
BATCHES, MANY_BATCHES = (256, 512), tuple(range(128, 1025, 64))
"""Batch sizes of public questions, and of hidden ones, which should differ between students."""


def draw_question(random: Random, title: str, chips: str, networks: Sequence[str] = NETWORKS, batches: Sequence[int] = BATCHES) -> str:
    """A network, a cluster and budgets as YAML, with these choices of the chip."""
    name, devices = random.choice(networks), random.choice((16, 32, 64))
    area, power = random.randrange(740, 841, 20), random.randrange(400, 461, 10)
    return f"""# {title}
kind: codesign
description: {name} on {devices} devices of at most {area} mm^2
workload: {{model: {name}, global_batch: {random.choice(batches)}, precision: bf16}}
cluster: {{devices: {devices}, devices_per_node: 8}}
technology: accelerator-7nm
budget: {{die_area: {area} mm^2, package_area: 1700 mm^2, power: {power} W}}
choices:
{chips}  tensor: [1, 2, 4]
  pipeline: [1, 2]
  microbatch: [1, 2, 4]
  recompute: [none, full]
  zero: 1
objective: step_time
"""
