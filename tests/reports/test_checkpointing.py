"""Schedules as policies of PyTorch's checkpoints, and sets of recomputed modules as options of Megatron."""

from dataclasses import replace
from itertools import product
from random import Random

import pytest

from crossopt.crossflow.plan import Plan
from crossopt.crossflow.recomputation import sets_that_save
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.stack_rules import STACKS, broken_rows
from crossopt.instances.codesign.stack_table import Machine
from crossopt.instances.errors import RefusedError
from crossopt.instances.memory.graph import MemoryGraph
from crossopt.instances.memory.question import MemoryQuestion
from crossopt.instances.question import read_given
from crossopt.reports.launching.checkpointing import excess_text, peak_of, policy_text
from crossopt.reports.launching.launch import launch
from crossopt.solvers.answer import Limits, Result, unwatched
from crossopt.solvers.family import solve
from crossopt.solvers.memory.engines import retention
from crossopt.solvers.memory.family import FAMILY
from crossopt.solvers.memory.judge import MemoryUse, Schedule, judge, regions_of, replay, run_in_regions
from crossopt.solvers.memory.rules import repaired
from tests.solvers.codesign.questions import ask
from tests.solvers.memory.drawn import peak_of as peak_in
from tests.solvers.memory.drawn import question_of


def network(seed: int, layers: int = 6) -> MemoryGraph:
    """Layers with skips, a loss, and a backward pass that reads inputs and outputs of layers."""
    random = Random(f"regions {seed}")
    inputs: list[tuple[int, ...]] = [()]
    for node in range(1, layers):
        skipped = {random.randrange(node)} if random.random() < 0.4 else set()
        inputs.append(tuple(sorted({node - 1} | skipped)))
    for node in range(layers - 1, -1, -1):
        kept = {node, *inputs[node]} if random.random() < 0.7 else {node} if random.random() < 0.7 else set(inputs[node])
        inputs.append(tuple(sorted(kept | {len(inputs) - 1})))
    count = 2 * layers
    sizes = tuple(random.randint(1, 9) for _ in range(count))
    times = tuple(random.randint(1, 20) for _ in range(count))
    return MemoryGraph(
        tuple(f"n{node}" for node in range(count)), times, sizes, (0,) * count, (False,) * layers + (True,) * layers, tuple(inputs)
    )


@pytest.mark.parametrize("seed", range(20))
def test_regions_keep_what_the_schedule_keeps_and_are_a_schedule(seed: int) -> None:
    graph = network(seed)
    order = repaired(graph, {}, max(graph.floors), float("inf"))
    regions = regions_of(graph, order)
    verdict = judge(question_of(graph, graph.plain_peak, repetitions=1), Schedule(regions.order))  # computes what is read
    assert verdict.details.repeated == len(regions.order) - len(graph.names)
    covered = {regions.nodes[place] for first, end in regions.spans for place in range(first, end)}
    again = [node for node in set(regions.order) if regions.order.count(node) > 1]
    assert set(again) <= covered
    assert not any(regions.kept[node] for node in again)
    assert {node for node in order if order.count(node) > 1 and not graph.backward[node]} <= covered


def solved(text: str) -> tuple[MemoryQuestion, Result[Schedule, MemoryUse]]:
    question = read_given(text, "memory", ())
    return question, solve(FAMILY, question, "auto", Limits(10.0), unwatched)


_CHAIN = """\
kind: memory
budget: 17 B
nodes:
  input: {time: 1, bytes: 4 B}
  first: {time: 9, bytes: 4 B, after: [input]}
  act: {time: 2, bytes: 4 B, after: [first]}
  loss: {time: 1, bytes: 1 B, after: [act]}
  d_act: {time: 2, bytes: 8 B, backward: true, after: [first, loss]}
  d_first: {time: 9, bytes: 1 B, backward: true, after: [input, d_act]}
"""


def test_a_file_of_policies_names_every_operator_of_its_regions() -> None:
    question, result = solved(_CHAIN.replace("17 B", "16 B"))
    text = policy_text(question, result)
    compile(text, "policy.py", "exec")
    rows = [line.strip() for line in text.splitlines() if line.startswith("        ('")]
    assert rows == ["('input', '', AGAIN),", "('first', '', KEEP),"]
    assert "13 B at most, and 1 units of repetitions. PyTorch\ncomputes each region again at once: 13 B at most, and 1 of" in text
    assert "above the budget" not in text


def test_a_file_says_where_regions_are_above_the_budget() -> None:
    """A region is there at once, where a schedule may repeat its nodes one by one."""
    question, result = _over_budget(0)
    text = policy_text(question, result)
    assert "This is above the budget of" in text
    assert result.answer is not None
    assert excess_text(question, peak_of(question, result.answer)) in text
    assert excess_text(question, question.budget) == ""


@pytest.mark.parametrize("seed", range(8))
def test_schedules_in_regions_are_the_best_of_all_sets_of_kept_outputs(seed: int) -> None:
    """By a look at all sets for small graphs, and by the search for larger ones, whose bound is below and whose schedule runs."""
    graph = network(seed, 6)
    drawn = question_of(graph, max(graph.floors) + (graph.plain_peak - max(graph.floors)) * (1 + seed % 3) // 4)
    question = replace(drawn, file=replace(drawn.file, checkpoints=True))
    found = list[int]()
    for kept in product((False, True), repeat=5):
        order = run_in_regions(graph, tuple(range(6)), (*kept, True))
        if peak_in(graph, list(order)) <= question.budget:
            found.append(sum(graph.times[node] for node in order) - graph.total_time)
    best = min(found, default=None)
    result = solve(FAMILY, question, "auto", Limits(10.0), unwatched)
    assert (result.value, result.proved) == (best, True)
    near = retention(question, Limits(5.0), unwatched)
    assert near.bound is None or near.bound <= (float("inf") if best is None else best)
    for schedule in (result.answer, near.answer):
        if schedule is not None:
            assert judge(question, schedule).violations == ()
            assert excess_text(question, peak_of(question, schedule)) == ""
            assert regions_of(graph, schedule.order).order == schedule.order


def test_a_schedule_that_no_regions_run_is_a_violation() -> None:
    question, result = _over_budget(0)
    assert result.answer is not None
    strict = replace(question, file=replace(question.file, checkpoints=True))
    assert judge(strict, result.answer).violations == ("these repetitions are not those of regions of torch.utils.checkpoint",)


def _over_budget(seed: int) -> tuple[MemoryQuestion, Result[Schedule, MemoryUse]]:
    """The first drawn network from a seed on whose regions need more than its schedule."""
    graph = network(seed, 9)
    question = question_of(graph, max(graph.floors) + (graph.plain_peak - max(graph.floors)) // 4)
    result = solve(FAMILY, question, "auto", Limits(10.0), unwatched)
    order = None if result.answer is None else regions_of(graph, result.answer.order).order
    over = order is not None and max(replay(graph, order).bytes_) > question.budget
    return (question, result) if over else _over_budget(seed + 1)


def test_a_graph_without_a_backward_pass_has_no_policy() -> None:
    question, result = solved(_CHAIN.replace("backward: true, ", ""))
    with pytest.raises(RefusedError, match="nothing to checkpoint"):
        policy_text(question, result)


@pytest.mark.parametrize(("name", "count"), [("gpt3-175b", 3), ("qwen3-235b-a22b", 7), ("deepseek-v3", 41)])
def test_sets_of_best_that_megatron_launches_are_options_of_it(name: str, count: int) -> None:
    asked = ask(f"kind: codesign\nworkload: {{model: {name}, global_batch: 64}}\ncluster: {{devices: 32}}\nhardware: h100-sxm\n").workload
    assert isinstance(asked, Transformer)
    found = 0
    for word in sets_that_save(asked):
        plan = Plan(pipeline=4, data=8, zero=1, recompute=word)
        if broken_rows(STACKS["megatron-core"], asked, plan, Machine()):
            continue
        exported = launch("megatron", asked, plan)
        assert (exported.plan, exported.instead) == (plan, ())
        assert ("--recompute-granularity selective" in exported.text) == (word not in ("none", "full"))
        assert ("--recompute-modules" in exported.text) == (word not in ("none", "full"))
        found += 1
    assert found == count
