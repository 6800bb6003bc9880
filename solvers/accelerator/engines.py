"""Engines for chips with schedules and stages: sets of chips by their bounds, every chip one by one, and rules to compare with."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf
from time import monotonic

from crossopt.formulation.accelerator.bounds import NetworkBest, Pricing, Setting, halves, refined, set_bound
from crossopt.formulation.accelerator.schedule import MOST_STATES
from crossopt.instances.accelerator.question import AcceleratorQuestion, Recompute
from crossopt.instances.files.units import bytes_beyond
from crossopt.solvers.accelerator.judge import (
    BY_SETS,
    AcceleratorPlan,
    ChipAnswer,
    LayerSchedule,
    NetworkPlan,
    StageAnswer,
    judge,
)
from crossopt.solvers.answer import Limits, Progress, SearchOutcome, Watch
from crossopt.solvers.proofs import RecomputableBound


@dataclass(slots=True)
class _Run:
    """What is known so far."""

    question: AcceleratorQuestion
    limits: Limits
    watch: Watch
    began: float
    pricing: Pricing
    answer: AcceleratorPlan | None = None
    value: float = inf
    cutoff: float = inf
    """The least bound of a chip whose layers have schedules: nothing from there on is looked at."""

    def offer(self, chip: int, bound: float, found: Sequence[NetworkBest]) -> None:
        """Keep a plan if it is better."""
        if any(not best.plan.stages for best in found):
            return
        self.cutoff = min(self.cutoff, bound)
        answer = answer_of(self.pricing, chip, found)
        verdict = judge(self.question, answer)
        if verdict.accepted and verdict.value < self.value:
            self.answer, self.value = answer, verdict.value

    def show(self, bound: float | None) -> None:
        self.watch(Progress("sets of chips", self.value if self.answer else None, bound, answer=lambda: self.answer))

    @property
    def is_over(self) -> bool:
        return monotonic() - self.began >= self.limits.seconds


def certified(question: AcceleratorQuestion, limits: Limits, watch: Watch) -> SearchOutcome[AcceleratorPlan]:
    """The best chip and plan: sets of chips are split until those with the least bound are chips with schedules."""
    run = _Run(question, limits, watch, monotonic(), Pricing(question, MOST_STATES))
    bound, notes = _searched(run), tuple(question.equal_layers)
    if run.answer is None and bound == inf:
        return SearchOutcome(None, inf, RecomputableBound(BY_SETS), "certified", reasons=reasons(run.pricing), notes=notes)
    stopped = "time limit" if run.is_over and bound < run.value else "complete"
    return SearchOutcome(
        run.answer,
        None if run.answer is None else min(bound, run.value),
        None if run.answer is None else RecomputableBound(BY_SETS),
        "certified",
        stopped=stopped,
        notes=notes,
    )


def _searched(run: _Run) -> float:
    """Search; the bound of all chips."""
    pricing, chips = run.pricing, tuple(range(len(run.pricing.chips)))
    first = min(chips, key=lambda chip: _work(pricing, chip))
    if not run.is_over:
        run.offer(first, *refined(pricing, first, inf))
    order, heap = 0, [(0.0 if run.is_over else set_bound(pricing, chips, run.cutoff)[0], 0, chips, False)]
    while heap:
        bound, _, members, is_final = heappop(heap)
        if is_final or bound >= run.cutoff * (1.0 - run.limits.gap) or run.is_over:
            return min(bound, run.cutoff)
        if len(members) == 1:
            low, found = refined(pricing, members[0], run.cutoff)
            run.offer(members[0], low, found)
            order += 1
            heappush(heap, (low, order, members, True))
            run.show(bound)
            continue
        for half in halves(pricing.chips, members):
            low = max(bound, set_bound(pricing, half, run.cutoff)[0])
            order += 1
            heappush(heap, (low, order, half, False))
        run.show(bound)
    return inf


def _work(pricing: Pricing, chip: int) -> float:
    """Least cycles of all layers of all networks with the fewest samples at once and the least tensor degree, for each sample."""
    file, total = pricing.question.file, 0.0
    for row, network in enumerate(pricing.question.networks):
        least = pricing.least(Setting(row, file.microbatch[0], file.tensor[0]))[:, :, chip].sum(axis=1)
        total += sum(float(least[kind]) for kind in network.kind_of)
    return total


def answer_of(pricing: Pricing, chip: int, found: Sequence[NetworkBest]) -> AcceleratorPlan:
    """The plan of a chip in words of the question."""
    figures = (int(column[chip]) for column in pricing.chips.columns())
    return AcceleratorPlan(ChipAnswer(*figures), tuple(_network_plan(pricing, chip, row, best) for row, best in enumerate(found)))


def _network_plan(pricing: Pricing, chip: int, row: int, best: NetworkBest) -> NetworkPlan:
    question, network, plan = pricing.question, pricing.question.networks[row], best.plan
    members, stages, needed = question.ideals[row].members, list[StageAnswer](), set[tuple[int, int]]()
    usual: Recompute = "none" if "none" in question.file.recompute else "full"
    if question.file.uniform and any(stage.recompute for stage in plan.stages):
        usual = "full"
    for stage in plan.stages:
        layers = (members[stage.last] & ~members[stage.first]).nonzero()[0].tolist()
        needed |= {(network.kind_of[layer], stage.tensor) for layer in layers}
        stages.append(StageAnswer(tuple(network.names[layer] for layer in layers), stage.tensor, "full" if stage.recompute else usual))
    schedules = []
    for kind, tensor in sorted(needed):
        for backward in question.directions:
            found = pricing.schedule(chip, Setting(row, best.microbatch, tensor), kind, backward)
            schedules.append(LayerSchedule(network.kinds[kind].name, tensor, backward, found.on_all, found.starts))
    return NetworkPlan(network.name, best.microbatch, plan.data, tuple(stages), tuple(schedules))


def reasons(pricing: Pricing) -> tuple[str, ...]:
    """Why there is no plan, with what is least in the way."""
    file, found = pricing.question.file, list[str]()
    for row, network in enumerate(pricing.question.networks):
        layer, kept = pricing.tightest(row)
        if kept > file.memory:
            beyond = bytes_beyond(kept, file.memory, "on a device of")
            found.append(f"{network.name}: {layer} alone keeps {beyond}, with the options that need least")
        elif pricing.bound(row, range(len(pricing.chips))).value == inf:
            found.append(f"{network.name}: no stages keep the memory of every device, though each layer alone does (give more devices)")
    return tuple(found)
