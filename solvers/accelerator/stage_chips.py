"""The chip that each stage of a plan would take alone, of no larger area than the chip of the plan: what part of the die it wants."""

from dataclasses import dataclass
from math import inf
from typing import Final, TypeAlias

import numpy as np

from crossopt.crossflow.accelerator import chip_area
from crossopt.crossflow.arrays import Ints
from crossopt.formulation.accelerator.bounds import Pricing, Setting
from crossopt.formulation.accelerator.schedule import MOST_STATES
from crossopt.instances.accelerator.built import BuiltChips, Rated
from crossopt.instances.accelerator.question import AcceleratorQuestion
from crossopt.solvers.accelerator.judge import AcceleratorFigures, AcceleratorPlan, BuiltChip, ChipAnswer, NetworkPlan

_MOST_SCHEDULED: Final = 40
"""Chips whose schedules are searched for a stage."""


Alike: TypeAlias = tuple[tuple[int, ...], int, bool]
"""Layers of a stage by kind, its tensor degree, and whether its forward pass runs again."""


@dataclass(frozen=True, slots=True)
class StageChip:
    """The quickest chip for some stages with the same layers, of those the smallest, and seconds that they compute on it."""

    stages: tuple[int, ...]
    chip: ChipAnswer | BuiltChip
    seconds: float


def stage_chips(question: AcceleratorQuestion, answer: AcceleratorPlan, said: AcceleratorFigures) -> list[tuple[StageChip, ...]]:
    """By network. Of many chips of a technology a coarser grid is looked at, and the chip of the plan."""
    found = list[tuple[StageChip, ...]]()
    chips = _small(question, answer.chip)
    for row, (plan, figures) in enumerate(zip(answer.plans, said.networks, strict=True)):
        own = list[StageChip]()
        for (counts, tensor, again), stages in _alike(question, row, plan).items():
            setting, work = Setting(row, plan.microbatch, tensor), (counts, again)
            if isinstance(chips, _Grid):
                least = max(figures.stages[number].memory for number in stages)
                own.append(StageChip(tuple(stages), *chips.quickest(question, setting, work, min(least, question.file.memory))))
            else:
                own.append(StageChip(tuple(stages), *_quickest(*chips, setting, work)))
        found.append(tuple(own))
    return found


def _alike(question: AcceleratorQuestion, row: int, plan: NetworkPlan) -> dict[Alike, list[int]]:
    """Stages with the same layers."""
    network, found = question.networks[row], dict[Alike, list[int]]()
    kind_of = dict(zip(network.names, network.kind_of, strict=True))
    for number, stage in enumerate(plan.stages):
        counts = np.bincount([kind_of[name] for name in stage.layers], minlength=len(network.kinds))
        again = stage.recompute == "full" and number < len(plan.stages) - 1 and question.file.passes == "training"
        found.setdefault((tuple(counts.tolist()), stage.tensor, again), []).append(number)
    return found


def _small(question: AcceleratorQuestion, chip: ChipAnswer | BuiltChip) -> "tuple[Pricing, Ints] | _Grid":
    """Chips of no larger area: prices with their order by area, or a grid of a technology."""
    if isinstance(chip, BuiltChip):
        if question.built is None:
            raise ValueError("the question asks for a chip of the template")
        own = [[values.index(chip.choices[name]) for name, values in question.built.options]]
        places = np.concatenate([np.array(own, np.int64).reshape(1, -1), question.built.every()])
        rated = question.built.rated(places, places)
        areas = np.asarray(rated.hardware.die_area)
        rows = np.flatnonzero(rated.fits & (areas <= areas[0]))
        return _Grid(question.built, places[rows], rated.at(rows))
    areas = chip_area(question.chips)
    small = areas <= chip_area(chip.columns())[0]
    return Pricing(question, MOST_STATES, question.chips.at(small)), np.argsort(areas[small], kind="stable")


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """Chips of a technology."""

    built: BuiltChips
    places: Ints
    rated: Rated

    def quickest(
        self, question: AcceleratorQuestion, setting: Setting, work: tuple[tuple[int, ...], bool], least: float
    ) -> tuple[BuiltChip, float]:
        """The first quickest chip with so much memory, for so many layers of each kind, and seconds."""
        passes = np.array([1.0 + work[1], 1.0])[: len(question.directions)]
        every = self.rated.seconds(question.networks[setting.network], setting.tensor, question.file.bandwidth)
        seconds = np.einsum("k,p,kpc->c", np.array(work[0], np.float64), passes, every[:, : len(passes)])
        row = int(np.where(self.rated.memory >= least, seconds, inf).argmin())
        return BuiltChip(self.built.chosen(self.places[row])), float(seconds[row])


def _quickest(pricing: Pricing, order: Ints, setting: Setting, work: tuple[tuple[int, ...], bool]) -> tuple[ChipAnswer, float]:
    """The chip on which so many layers of each kind compute quickest, and seconds: bounds of all, and schedules while they count."""
    (counts, again), clock = work, pricing.question.file.clock
    passes = [1 + again, 1][: len(pricing.question.directions)]
    bounds = np.einsum("k,p,kpc->c", np.array(counts, np.float64), np.array(passes, np.float64), pricing.least(setting))
    best, chosen = inf, 0
    for chip in order[np.argsort(bounds[order], kind="stable")][:_MOST_SCHEDULED].tolist():
        if bounds[chip] >= best:
            break
        cycles = sum(
            count * times * pricing.schedule(chip, setting, kind, backward).cycles
            for kind, count in enumerate(counts)
            for times, backward in zip(passes, pricing.question.directions, strict=True)
            if count
        )
        if cycles < best:
            best, chosen = float(cycles), chip
    return ChipAnswer(*(int(column[chosen]) for column in pricing.chips.columns())), best / clock
