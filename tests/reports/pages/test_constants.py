"""What a page says of the model's constants: each has a meaning, and nobody takes those of one device for fitted to another."""

from dataclasses import fields

import pytest

from crossopt.crossflow.hardware import Efficiency, Hardware
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.reports.facts.design import constants_of, origin_of
from tests.paths import INSTANCES


def asked(*settings: str) -> Instance:
    return read_instance(INSTANCES / "tiny.yaml", settings)


def origins(instance: Instance) -> dict[str, str]:
    assert isinstance(instance.hardware, Hardware)
    return {one.name: one.origin for one in constants_of(instance, instance.hardware.efficiency)}


def test_every_constant_has_its_meaning() -> None:
    found = constants_of(asked(), Efficiency())
    assert [one.name for one in found] == [field.name for field in fields(Efficiency)]
    assert all(one.meaning for one in found)


@pytest.mark.parametrize(
    ("settings", "matrix", "attention"),
    [
        (("hardware=a100-80g",), "fit of a100-80g", "fit of a100-80g"),
        (("hardware=h100-sxm",), "fit of a100-80g", "fit of a100-80g"),
        (("hardware=h100-sxm", "stack=fsdp"), "set of the stack", "fit of a100-80g"),
        (("hardware=b200",), "file of b200", "fit of a100-80g"),
        (("hardware=a100-80g", "efficiency={matrix: 0.5}"), "given", "fit of a100-80g"),
    ],
)
def test_constants_are_those_of_the_fit_of_the_stack_or_of_the_file(settings: tuple[str, ...], matrix: str, attention: str) -> None:
    found = origins(asked(*settings))
    assert (found["matrix"], found["attention"], found["resident"]) == (matrix, attention, "default")


def test_the_page_names_the_set() -> None:
    assert origin_of(asked()).startswith("Priced by a100-80g (")
    assert "taken over from a100-80g" in origin_of(asked("hardware=b200"))
    ideal = asked("hardware=null", "technology={base: accelerator-7nm, constants: ideal}")
    assert origin_of(ideal) == "Priced by the model's defaults, fitted to no run."
