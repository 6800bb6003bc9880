"""Groups that exchange rarely: answers against brute force over plans and exchanges, faults, and what torchtitan is told."""

from dataclasses import replace
from itertools import product
from math import ceil
from random import Random

import pytest

import crossopt
from crossopt.crossflow.plan import rows_of
from crossopt.crossflow.rare_exchanges import mean_step, straggling
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_question
from crossopt.instances.codesign.space import plan_blocks
from crossopt.instances.errors import InstanceError, RefusedError
from crossopt.reports.launching.torchtitan import site_settings, with_sites
from crossopt.reports.sheets.codesign.machine import sites_section
from crossopt.solvers.codesign.answer import candidate
from crossopt.solvers.codesign.judge import verify

PLANS = "tensor: [1, 2], microbatch: [1, 2], recompute: [none, full]"


def text(sites: str, more: str = "", devices: int = 8) -> str:
    return (
        "kind: codesign\nworkload: {model: gpt3-125m, global_batch: 64, precision: bf16}\n"
        f"cluster: {{devices: {devices}, devices_per_node: 4}}\nhardware: a100-80g\nchoices: {{{PLANS}}}\nsites: {{{sites}}}\n{more}"
    )


def question(written: str) -> Instance:
    return read_question({"text": written, "source": "question.yaml", "settings": []})


def drawn(random: Random) -> tuple[str, dict[tuple[int, int, float], float]]:
    every, shares = random.sample((1, 2, 10, 40, 100), 2), random.sample((1.0, 0.5, 0.25), 2)
    overlaps = random.sample((0, 1, 3), 2)
    table = {way: round(random.uniform(1.0, 1.5), 3) for way in product(every, overlaps, shares)}
    rows = [f"{{sync_every: {way[0]}, overlap_steps: {way[1]}, compression: {way[2]}, steps: {steps}}}" for way, steps in table.items()]
    lines = [
        f"groups: {random.choice((2, 4))}",
        f"bandwidth: {10.0 ** random.uniform(1.0, 6.0):.6g} Mbit/s",
        f"latency: {random.choice((0, 1, 50))} ms",
        f"sync_every: {every}",
        f"fragments: [1, {random.choice((2, 6, 12))}]",
        f"overlap_steps: {overlaps}",
        f"compression: {shares}",
        f"straggler: {random.choice((0, 0.02))}",
        f"quality: [{', '.join(rows)}]",
    ]
    return ", ".join(lines), table


def brute_force(instance: Instance, table: dict[tuple[int, int, float], float]) -> float:
    """The least time over all plans and exchanges, one by one; that of mean steps is tested part by part elsewhere."""
    sites, found = instance.sites, []
    assert sites is not None
    steps = [
        verify(instance, candidate(rows_of(plans, slice(row, row + 1)), 0, 0))
        for plans in plan_blocks(instance)
        for row in range(len(plans))
    ]
    for verdict, way in product([step for step in steps if not step.violations], sites.ways):
        nodes = sites.nodes * (sites.groups if way.every == 1 else 1)
        step = verdict.details.step_time * straggling(sites.spread, nodes)
        sent = 2.0 * sites.parameters * way.compression * 2.0 * (1.0 - 1.0 / sites.groups) / way.fragments / sites.bandwidth
        factor = 1.0 if way.learns_alike else table[way.every, way.overlap, way.compression]
        found.append(factor * float(mean_step(way, step, sent, sites.latency, sites.groups)))
    return min(found)


@pytest.mark.parametrize("seed", [0, 2, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(300) if seed not in (0, 2))])
def test_answers_are_those_of_brute_force(seed: int) -> None:
    sites, table = drawn(Random(seed))
    answer = crossopt.solve(text(sites))
    assert answer.proved
    assert answer.value == pytest.approx(brute_force(question(text(sites)), table), rel=1e-12)
    assert crossopt.check(answer).accepted


def test_several_numbers_of_groups_are_compared() -> None:
    quality = "quality: [{groups: 2, steps: 1.1}, {groups: 4, steps: 1.5}]"
    answer = crossopt.solve(text(f"groups: [1, 2, 4], bandwidth: 1 Gbit/s, sync_every: 30, {quality}"))
    alone = [crossopt.solve(text(f"groups: {groups}, bandwidth: 1 Gbit/s, sync_every: 30, {quality}")) for groups in (1, 2, 4)]
    assert answer.value == min(part.value for part in alone if part.value is not None)
    assert answer.proved
    assert crossopt.check(answer).accepted


@pytest.mark.parametrize(
    ("sites", "more", "message"),
    [
        ("bandwidth: 1 Gbit/s, sync_every: 0", "", "too small"),
        ("groups: 16, bandwidth: 1 Gbit/s", "", "16 groups do not divide the 8 devices"),
        ("bandwidth: 1 Gbit/s, sync_every: 100, fragments: 13", "", "13 fragments are more than the 12 layers"),
        ("bandwidth: 1 Gbit/s, sync_every: 4, fragments: 8", "", "8 fragments are more than the 4 steps"),
        ("groups: 2", "", "groups need a link between them"),
        ("bandwidth: 1 Gbit/s, compression: 1.5", "", "too large"),
        ("bandwidth: 1 Gbit/s, compression: 0", "", "zero sends nothing"),
        ("bandwidth: 1 Gbit/s, straggler: 0.1, scaling: [{nodes: 8, share: 0.9}]", "", "fitted to the runs of `scaling`"),
        ("bandwidth: 1 Gbit/s, scaling: [{nodes: 1, share: 1}]", "", "too small"),
        ("bandwidth: 1 Gbit/s, sync_every: [], quality: []", "", "sync_every"),
        ("bandwidth: 0 Gbit/s", "", "groups need a link between them"),
        ("bandwidth: 1 Gbit/s, quality: [{sync_every: 0, steps: 1}]", "", "too small"),
        ("bandwidth: 1 Gbit/s, quality: [{steps: 0}]", "", "no training takes zero steps"),
        ("bandwidth: 1 Gbit/s, sync_every: 3000", "", "give at most 2000"),
        ("bandwidth: 1 Gbit/s, fragments: 0", "", "too small"),
        ("bandwidth: 1 Gbit/s, overlap_steps: -1", "", "too small"),
        ("bandwidth: 1 Gbit/s, sync_every: [1, 30]", "", "how many steps training needs is not known for every 30 steps"),
        ("groups: [2, 4], bandwidth: 1 Gbit/s, sync_every: 30", "", "depends on the groups"),
        ("bandwidth: 1 Gbit/s, sync_every: [30, 60], quality: [{sync_every: 30, steps: 1}]", "", "no row for every 60 steps"),
        ("bandwidth: 1 Gbit/s", "goal: {tokens: 1e9, deadline: 1 d, by: slowest}", "that of the central constants"),
        ("bandwidth: 1 Gbit/s", "objective: run_cost", "what a run costs needs its tokens and a rent"),
        ("bandwidth: 1 Gbit/s", "budget: {step_time: 1 s}", "a limit is one on the mean step"),
        ("bandwidth: 1 Gbit/s", "objective: energy_per_token", "compared by their mean step"),
    ],
)
def test_bad_sites_are_refused_in_a_sentence(sites: str, more: str, message: str) -> None:
    with pytest.raises(InstanceError, match=message) as caught:
        question(text(sites, more))
    assert len(caught.value.faults) == 1


def test_a_run_of_groups_takes_its_steps_times_the_mean_step() -> None:
    written = text(
        "bandwidth: 1 Gbit/s, sync_every: [1, 30], quality: [{steps: 1.25}]", "goal: {tokens: 1e9, rent: 3 USD, deadline: LIMIT s}"
    )
    answer = crossopt.solve(written.replace("LIMIT", "1e6"))
    assert answer.value is not None
    assert answer.days == pytest.approx(ceil(1e9 / (64 * 2048)) * answer.value / 86400.0, rel=1e-12)
    assert answer.money == pytest.approx(8 * 3.0 * answer.days * 24.0, rel=1e-12)
    for engine in ("exhaustive", "boxes"):
        late = crossopt.solve(written.replace("LIMIT", f"{0.999 * 86400.0 * answer.days}"), engine=engine)
        assert late.value is None
        assert late.proved
        assert "deadline: the fastest design" in " ".join(late.result.notes)
    with pytest.raises(RefusedError, match="without limits"):
        crossopt.solve(written.replace("LIMIT", "1e6"), engine="milp")


def test_a_budget_of_exactly_what_a_run_of_groups_costs_is_kept() -> None:
    """To the last bit, for rents of which the quotient by the money of a second rounds down."""
    written = text(
        "bandwidth: 1 Gbit/s, sync_every: [1, 30], quality: [{steps: 1.25}]", "goal: {tokens: 1e9, rent: RENT USD, budget: LIMIT USD}"
    )
    for cents in range(200, 216):
        rented = written.replace("RENT", f"{cents / 100}")
        answer = crossopt.solve(rented.replace("LIMIT", "1e6"))
        assert crossopt.solve(rented.replace("LIMIT", f"{float(answer.money)!r}")).value == answer.value


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(20))
def test_runs_of_groups_are_those_of_brute_force(seed: int) -> None:
    """A run of all groups takes its steps times the mean step; so a deadline or a budget allows exactly what the least mean step keeps."""
    sites, table = drawn(Random(seed))
    least = brute_force(question(text(sites)), table)
    seconds = ceil(1e9 / (64 * 2048)) * least
    money = 8 * 3.0 * seconds / 3600.0
    goal = "goal: {{tokens: 1e9, rent: 3 USD, deadline: {deadline} s, budget: {budget} USD}}\nobjective: {objective}"
    for objective, value in (("run_cost", money), ("mean_step_time", least)):
        loose = crossopt.solve(text(sites, goal.format(deadline=seconds * 1.001, budget=money * 1.001, objective=objective)))
        assert loose.proved
        assert loose.value == pytest.approx(value, rel=1e-12)
        assert crossopt.check(loose).accepted
    for late, dear in ((0.999, 2.0), (2.0, 0.999)):
        limits = goal.format(deadline=seconds * late, budget=money * dear, objective="run_cost")
        tight = crossopt.solve(text(sites, limits), engine="boxes")
        assert tight.value is None
        assert tight.proved
        assert ("deadline" if late < 1.0 else "budget") in " ".join(tight.result.notes)


def test_a_mean_step_is_a_limit_for_the_smallest_die() -> None:
    sites = "groups: 2, bandwidth: 1 Gbit/s, sync_every: 30"
    chip = text(sites, "objective: die_area\nbudget: {mean_step_time: LIMIT s}").replace(
        "hardware: a100-80g", "technology: accelerator-7nm"
    )
    chip = chip.replace(PLANS, f"{PLANS}, compute_area: {{from: 300 mm^2, to: 500 mm^2, step: 20 mm^2}}")
    areas = []
    for limit in (0.22, 0.25, 9.0):
        answer = crossopt.solve(chip.replace("LIMIT", str(limit)))
        assert answer.proved
        areas.append(answer.value or float("inf"))
    assert areas[0] >= areas[1] >= areas[2]
    assert areas[0] > areas[2]


def test_a_single_exchange_needs_no_table() -> None:
    found = question(text("bandwidth: 1 Gbit/s, sync_every: 30")).sites
    assert found is not None
    assert found.steps == (1.0,)
    assert not found.known


def test_stragglers_are_fitted_to_small_runs() -> None:
    """One run is met exactly; of several the spread is that of least squares."""
    found = question(text("bandwidth: 1 Gbit/s, sync_every: 30, scaling: [{nodes: 64, share: 0.7}]")).sites
    assert found is not None
    assert 1.0 / straggling(found.spread, 64.0) == pytest.approx(0.7, rel=1e-12)
    assert any("Stragglers: a spread of 0.1486" in str(part) for part in sites_section(replace(found, nodes=8.0), 1.0).parts)


def test_the_climb_of_skewscout_ends_where_neither_neighbour_is_better() -> None:
    """From the rarest exchange: here the least of all is behind a worse one, so that the climb misses it."""
    rows = ", ".join(f"{{sync_every: {every}, steps: {steps}}}" for every, steps in ((5, 1.0), (10, 1.4), (50, 1.1), (100, 1.2)))
    sites = question(text(f"bandwidth: 100 Gbit/s, sync_every: [5, 10, 50, 100], quality: [{rows}]")).sites
    assert sites is not None
    assert sites.ways[sites.climbed(0.5)].every == 50
    assert sites.ways[sites.chosen(0.5)].every == 5


def test_torchtitan_is_told_how_to_exchange() -> None:
    sites = question(text("bandwidth: 1 Gbit/s, sync_every: 30, fragments: 4, overlap_steps: 1, compression: 0.5")).sites
    assert sites is not None
    named = {setting.name.removeprefix("--fault_tolerance."): setting.value for setting in site_settings("torchtitan", sites, 1.0)}
    assert named | {"sync_steps": "30", "num_fragments": "4", "fragment_sync_delay": "1", "group_size": "2"} == named
    assert named["semi_sync_method"] == "diloco"
    assert "should_quantize" in named
    told = with_sites("--training.global_batch_size 32", sites, 32, site_settings("torchtitan", sites, 1.0))
    assert "--training.global_batch_size 64" in told
    assert '--fault_tolerance.replica_id "${GROUP:?' in told
    with pytest.raises(RefusedError, match="torchtitan alone"):
        site_settings("megatron", sites, 1.0)


@pytest.mark.parametrize("engine", ["milp", pytest.param("cpsat", marks=pytest.mark.thorough)])
def test_integer_models_bound_the_mean_step_by_that_of_their_bound(engine: str) -> None:
    sites, _ = drawn(Random(11))
    found, least = crossopt.solve(text(sites), engine=engine), crossopt.solve(text(sites))
    assert found.value == least.value
    assert found.bound is not None
    assert least.value is not None
    assert least.value * (1.0 - 1e-3) <= found.bound <= least.value
    assert crossopt.check(found).accepted
