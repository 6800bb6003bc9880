"""Constants multiplied: the figure and nothing else, and what cannot be multiplied is told with its place."""

from dataclasses import replace

import pytest

from crossopt.instances.codesign.instance import FreeHardware
from crossopt.instances.codesign.space import device_at
from crossopt.instances.errors import InstanceError
from tests.paths import INSTANCES
from tests.solvers.codesign.questions import TINY_FREE, ask

TINY = (INSTANCES / "tiny.yaml").read_text(encoding="utf-8")


def free(*settings: str) -> FreeHardware:
    hardware = ask(TINY_FREE, *settings).hardware
    assert isinstance(hardware, FreeHardware)
    return hardware


def test_a_factor_multiplies_a_figure_of_a_technology_and_no_other() -> None:
    usual, other = free(), free("factors.core.nominal_power=1.2")
    core = usual.technology.core
    assert other == replace(usual, technology=replace(usual.technology, core=replace(core, nominal_power=core.nominal_power * 1.2)))


def test_cores_of_another_size_keep_their_bytes_of_registers_and_l1() -> None:
    """400 mm^2 are 400 cores of 1 mm^2, or 320 of 1.25 mm^2; each bundle of four of them has as many bytes as before."""
    settings = ("compute_area=400 mm^2", "compute_power=100 W", "hbm_stacks=4")
    usual, larger = (device_at(ask(TINY_FREE, *settings, *more), 0) for more in ((), ("factors.core.area=1.25",)))
    assert (usual.bundles, larger.bundles) == (100.0, 80.0)
    for level in ("registers", "l1"):
        before, after = (getattr(one, level).capacity / one.bundles for one in (usual, larger))
        assert after == pytest.approx(before, rel=0.01)  # whole banks


def test_a_factor_holds_for_every_generation_of_memory() -> None:
    base = "technology={base: accelerator-7nm, memory: hbm3}"
    usual, faster = free(base), free(base, "factors.dram.nominal_frequency=1.1")
    assert faster.technology.dram.nominal_frequency == usual.technology.dram.nominal_frequency * 1.1


def test_factors_of_the_model_hold_for_each_of_its_sets() -> None:
    usual, other = ask(TINY).hardware, ask(TINY, "factors.efficiency.matrix=0.9", "factors.node_network.bandwidth=0.5").hardware
    assert not isinstance(usual, FreeHardware)
    assert not isinstance(other, FreeHardware)
    assert [one.matrix for one in (other.efficiency, *other.variants)] == [one.matrix * 0.9 for one in (usual.efficiency, *usual.variants)]
    assert other.links[0].bandwidth == usual.links[0].bandwidth * 0.5


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("factors.cor.area=2", "factors.cor: no constants are called so (did you mean 'core'?)"),
        ("factors.core.aera=2", "factors.core.aera: this is no figure that can be multiplied (did you mean 'area'?)"),
        ("factors.efficiency.matrix=2", "factors.efficiency.matrix: 1.4446 is out of range, a share above 0 and up to 1 is needed"),
        ("factors.network.utilisation=2", "factors.network: utilisation is 1.8, a share of at most 1 is needed"),
        ("factors.core.area=-1", "factors.core.area"),
        ("factors.core.area=1e-300", "factors.core.area: factors above 0 are from 1e-06 to 1e+06 (take one nearer 1)"),
        ("compute_area=1e300 mm^2", "choices.compute_area: '1e300 mm^2' is too large (at most 1000000 mm^2)"),
        ("dies=[1, 1001]", "choices.dies[1]: '1001' is too large (at most 1000)"),
        ("compute_power=1e300 W", "choices.compute_power: '1e300 W' is too large (at most 1 MW)"),
    ],
)
def test_what_cannot_be_multiplied_is_told(setting: str, words: str) -> None:
    with pytest.raises(InstanceError) as refused:
        ask(TINY_FREE, setting)
    assert words in str(refused.value)
