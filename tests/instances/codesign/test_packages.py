"""Packages of dies and stacks, and links inside a node, as choices of a technology."""

import pytest

import crossopt
from crossopt.crossflow.generator import edge_of
from crossopt.instances.catalogue.registry import technology as entry_of
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.codesign.question import read_question
from crossopt.instances.errors import InstanceError

PACKAGES = ("organic", "interposer", "bridge", "hybrid-bonding", "wafer", "hybrid-bonded-memory")


def text(technology: str, objective: str = "cost_per_token") -> str:
    return (
        "kind: codesign\nworkload: {model: gpt3-1.3b, global_batch: 64, precision: bf16}\ncluster: {devices: 8, devices_per_node: 8}\n"
        f"technology: {technology}\nchoices: {{dies: [1, 2], compute_area: [300 mm^2, 400 mm^2], compute_power: [120 W, 160 W], "
        f"hbm_stacks: [2, 4], recompute: [none, full]}}\nobjective: {objective}\n"
    )


def question(technology: str) -> Instance:
    return read_question({"text": text(technology), "source": "question.yaml", "settings": []})


def free(technology: str) -> FreeHardware:
    found = question(technology).hardware
    assert isinstance(found, FreeHardware)
    return found


@pytest.mark.parametrize("base", ["accelerator-7nm", "accelerator-4nm", "accelerator-4np"])
def test_the_interposer_is_the_usual_package(base: str) -> None:
    usual, named = free(base), free(f"{{base: {base}, package: interposer, links: electrical}}")
    assert named.technology == usual.technology
    assert (named.package_area, named.power_density, named.prices) == (usual.package_area, usual.power_density, usual.prices)


def test_a_package_brings_wires_prices_size_and_heat() -> None:
    usual, organic = free("accelerator-7nm"), free("{base: accelerator-7nm, package: organic}")
    assert organic.technology.die_links.bandwidth_per_metre == pytest.approx(112e9 * 1e3)
    assert organic.technology.dram.links_per_metre < usual.technology.dram.links_per_metre
    assert organic.package_area == pytest.approx(6000e-6)
    assert organic.prices is not None
    assert usual.prices is not None
    assert organic.prices.interposer < usual.prices.interposer


@pytest.mark.parametrize("engine", ["auto", pytest.param("boxes", marks=pytest.mark.thorough)])
def test_the_best_package_is_the_best_of_all_alone(engine: str) -> None:
    together = crossopt.solve(text(f"{{base: accelerator-7nm, package: [{', '.join(PACKAGES)}]}}"), engine=engine)
    alone = [crossopt.solve(text(f"{{base: accelerator-7nm, package: {name}}}"), engine=engine).value for name in PACKAGES]
    assert together.value == min(value for value in alone if value is not None)
    assert together.proved
    assert crossopt.check(together).accepted


def test_stacks_on_dies_leave_the_edge_to_links_and_have_more_wires() -> None:
    usual, made = free("accelerator-7nm"), free("{base: accelerator-7nm, package: hybrid-bonded-memory, memory: hbm3}")
    beside = free("{base: accelerator-7nm, memory: hbm3}")
    assert made.technology.dram.on_dies
    assert not usual.technology.dram.on_dies
    assert made.technology.dram.links_per_stack == 4 * beside.technology.dram.links_per_stack
    assert made.technology.dram.energy_per_bit == pytest.approx(0.87 * beside.technology.dram.energy_per_bit)
    assert edge_of(beside.technology, 4.0, 0.0, 0.0) > edge_of(made.technology, 4.0, 0.0, 0.0) == 0.0
    assert (made.power_density, beside.power_density) == (0.5e6, 1e6)


@pytest.mark.parametrize("objective", [pytest.param("step_time", marks=pytest.mark.thorough), "cost_per_token"])
def test_engines_agree_on_stacks_on_dies(objective: str) -> None:
    asked = text("{base: accelerator-7nm, package: hybrid-bonded-memory}", objective)
    asked = asked.replace("hbm_stacks: [2, 4]", "hbm_stacks: [2, 4, 5, 6]")  # of which one die holds four at the most
    found = [crossopt.solve(asked, engine=engine) for engine in ("exhaustive", "boxes", *(("milp",) if objective == "step_time" else ()))]
    assert [each.value for each in found] == pytest.approx([found[0].value] * len(found), rel=2e-4)
    assert all(crossopt.check(each).accepted for each in found)
    assert found[1].proved


@pytest.mark.parametrize("base", ["accelerator-7nm", "accelerator-4nm", "accelerator-4np"])
def test_links_say_how_far_they_reach_and_who_says_so(base: str) -> None:
    links = entry_of(base).node_links
    assert all(link.reach is not None and "reach" in link.source for link in links.values())
    assert links["electrical"].reach == {"accelerator-7nm": 5.0, "accelerator-4nm": 3.0, "accelerator-4np": 2.0}[base]
    assert {links[name].reach for name in links if name != "electrical"} == {500.0}


def test_links_of_less_energy_on_more_of_the_edge_are_never_slower() -> None:
    found = crossopt.solve(text("{base: accelerator-7nm, links: [electrical, optical-in-package]}", "step_time"))
    electrical = crossopt.solve(text("{base: accelerator-7nm, links: electrical}", "step_time"))
    assert found.proved
    assert found.value is not None
    assert electrical.value is not None
    assert found.value <= electrical.value


@pytest.mark.parametrize(
    ("technology", "message"),
    [
        ("{base: accelerator-7nm, package: paper}", "'paper' is no package of this technology .one of organic"),
        ("{base: tensor-7nm, package: organic}", "'organic' is no package of this technology .one of none"),
        ("{base: accelerator-7nm, links: laser}", "'laser' is no kind of links of this technology"),
    ],
)
def test_unknown_packages_are_refused(technology: str, message: str) -> None:
    with pytest.raises(InstanceError, match=message):
        question(technology)
