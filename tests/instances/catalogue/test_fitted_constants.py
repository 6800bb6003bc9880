"""Fitted constants of the registry: three sets, their error and its provenance, and mistakes in them."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from crossopt.crossflow.hardware import Efficiency, Hardware
from crossopt.instances.catalogue import registry
from crossopt.instances.catalogue.registry import build_device, constants_of, device, efficiency_with, technology
from crossopt.instances.codesign.instance import FreeHardware
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.codesign.space import devices
from crossopt.instances.errors import InstanceError
from tests.paths import INSTANCES
from tests.solvers.codesign.questions import TINY_FREE, ask


def test_a_device_has_its_optimistic_and_its_pessimistic_constants_and_the_error_of_its_calibration() -> None:
    entry = device("a100-80g")
    assert entry.calibration is not None
    built = build_device(entry, "a100-80g", "bf16", 1)
    assert built.variants == (efficiency_with(entry.optimistic), efficiency_with(entry.pessimistic))
    assert built.error == entry.calibration.error
    newer, older = (build_device(device(name), name, "fp16", 1) for name in ("h100-sxm", "v100-32g"))  # their own, of no stack
    lucky, unlucky = built.variants
    carried = (replace(lucky, routing=14e-6), unlucky)  # of the wait of routers there is a shorter figure
    assert (newer.variants, newer.error) == (carried, None), "the newer device carries the constants, nothing was fitted to it"
    assert (older.variants, older.error) == (built.variants, None), "so does the older one"


def test_what_a_set_does_not_name_is_as_in_the_central_one() -> None:
    entry = replace(device("a100-80g"), optimistic={"matrix": 0.9}, pessimistic={"matrix": 0.5})
    built = build_device(entry, "a100-80g", "bf16", 1)
    assert built.variants == tuple(replace(built.efficiency, matrix=matrix) for matrix in (0.9, 0.5))


def test_the_error_of_a_calibration_is_that_of_its_sources_as_the_fit_weighs_them() -> None:
    """A source of n rows weighs n^0.4 in all."""
    calibration = device("a100-80g").calibration
    assert calibration is not None
    weights = {source: rows**0.4 for source, rows in calibration.rows.items()}
    pooled = sum(weights[source] * error for source, error in calibration.errors.items()) / sum(weights.values())
    assert calibration.error == pytest.approx(pooled, abs=1e-4)


def test_every_fitted_constant_has_an_interval_and_a_value_in_each_set() -> None:
    entry = device("a100-80g")
    assert entry.calibration is not None
    assert set(entry.calibration.uncertainty) == set(entry.efficiency) == set(entry.optimistic) == set(entry.pessimistic)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (r"(?s)\npessimistic:.*?(?=\ncalibration:)", "", "optimistic and pessimistic constants belong together"),
        (r"(optimistic:[^\n]*\n  matrix:) [0-9.]+", r"\1 -0.1", "'-0.1' is too small (at least 0)"),
        (r"(optimistic:[^\n]*\n  matrix:) [0-9.]+", r"\1 good", "good"),
        (r"(\n    matrix:) \[[^\]]*\]", r"\1 [0.7]", "uncertainty.matrix: two figures are needed, the lower one first"),
        (r"(\n    matrix:) \[[^\]]*\]", r"\1 [0.8, 0.7]", "uncertainty.matrix: two figures are needed, the lower one first"),
        (r"(\n  below: {[^:]*:) [0-9.]+", r"\1 1.5", "is too large (at most 1)"),
        (r"\n  error: [0-9.]+", "", "calibration.error: this key is missing"),
    ],
)
def test_fitted_sections_with_a_mistake_are_refused(
    old: str, new: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (registry._FOLDER / "hardware/a100-80g.yaml").read_text(encoding="utf-8")
    changed, count = re.subn(old, new, text)
    assert count == 1
    (tmp_path / "hardware").mkdir()
    (tmp_path / "hardware/mine.yaml").write_text(changed, encoding="utf-8")
    monkeypatch.setattr(registry, "_FOLDER", tmp_path)
    with pytest.raises(InstanceError, match=re.escape(message)):
        device.__wrapped__("mine")


def test_a_set_with_an_unknown_constant_is_refused() -> None:
    with pytest.raises(ValueError, match="matrx: the model has no such constant"):
        replace(device("a100-80g"), optimistic={"matrx": 0.9})


def test_a_constant_that_a_question_gives_leaves_no_other_sets_and_no_error_to_speak_of() -> None:
    """The sets and the error are those of constants that were fitted together; with another one in them, no run was compared."""
    usual, given = (read_instance(INSTANCES / "tiny.yaml", settings).hardware for settings in ((), ("efficiency={matrix: 0.66}",)))
    assert isinstance(usual, Hardware)
    assert isinstance(given, Hardware)
    assert (len(usual.variants), given.variants) == (2, ())
    assert (given.efficiency, given.error) == (replace(usual.efficiency, matrix=0.66), None)
    assert usual.error == build_device(device("a100-80g"), "a100-80g", "bf16", 1).error


FITTED = "technology={base: accelerator-7nm, constants: a100-80g}"


def free(*settings: str) -> FreeHardware:
    hardware = ask(TINY_FREE, *settings).hardware
    assert isinstance(hardware, FreeHardware)
    return hardware


def test_chips_of_a_technology_take_all_three_sets_of_the_device_that_the_question_names() -> None:
    fitted = build_device(device("a100-80g"), "a100-80g", "bf16", 1)
    ideal, named = free("technology={base: accelerator-7nm, constants: ideal}"), free(FITTED)
    assert free() == named, "what the technology names where the question names none"
    assert (ideal.efficiency, ideal.variants) == (Efficiency(), ()), "the defaults, and nothing tells how far they are off"
    assert (named.efficiency, named.variants) == (fitted.efficiency, fitted.variants)
    chips = devices(ask(TINY_FREE, FITTED), 4, 12).hardware
    assert (chips.efficiency, chips.variants, chips.error) == (fitted.efficiency, fitted.variants, None), (
        "nothing was fitted to these chips"
    )


def test_a_technology_of_the_users_own_may_name_the_device_itself() -> None:
    entry = replace(technology("accelerator-7nm"), constants="a100-80g")
    assert constants_of(entry, "mine", None) == (free(FITTED).efficiency, free(FITTED).variants)
    with pytest.raises(ValueError, match="efficiency and constants are both given"):
        replace(entry, efficiency={"matrix": 0.7})


def test_a_constant_that_a_question_gives_leaves_chips_without_other_sets_too() -> None:
    given = free(FITTED, "efficiency={matrix: 0.66}")
    assert (given.efficiency, given.variants) == (replace(free(FITTED).efficiency, matrix=0.66), ())


@pytest.mark.parametrize(
    ("technology", "message"),
    [
        ("{base: accelerator-7nm, constants: a100-80}", "'a100-80' is no known device (did you mean 'a100-80g'?"),
        ("{base: v100-class, logic: 7nm, constants: a100-80g}", "v100-class has constants of its own, with which those of a100-80g do not"),
    ],
)
def test_a_device_whose_constants_a_technology_cannot_take_is_refused(technology: str, message: str) -> None:
    with pytest.raises(InstanceError, match=re.escape(message)):
        ask(TINY_FREE, f"technology={technology}")


def test_a_technology_takes_no_constants_of_a_device_without_other_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = replace(device("v100-32g"), optimistic={}, pessimistic={})
    monkeypatch.setattr(registry, "device", lambda name: plain if name == "v100-32g" else device(name))
    with pytest.raises(ValueError, match=re.escape("v100-32g has no optimistic and pessimistic constants (one of a100-40g, a100-80g,")):
        constants_of(technology("accelerator-7nm"), "accelerator-7nm", "v100-32g")
