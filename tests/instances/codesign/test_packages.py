"""Packages of dies and stacks, and links inside a node, as choices of a technology."""

import pytest

import crossopt
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.codesign.question import read_question
from crossopt.instances.errors import InstanceError

PACKAGES = ("organic", "interposer", "bridge", "hybrid-bonding", "wafer")


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
