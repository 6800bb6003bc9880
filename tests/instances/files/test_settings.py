"""Settings laid over a question: what each is taken for, and which one is named where it is wrong."""

import pytest

from crossopt.instances.codesign.instance import FreeHardware
from tests.instances.codesign.test_reading import FIXED, read, refusal


def test_a_setting_with_a_plain_name_is_a_choice() -> None:
    assert dict(read(FIXED, "tensor=4").plan_options)["tensor"] == (4,)
    assert dict(read(FIXED, "recompute=[none, full]").plan_options)["recompute"] == ("none", "full")


def test_a_setting_with_a_path_or_the_name_of_a_section_is_that_value() -> None:
    assert read(FIXED, "cluster.devices=32").cluster.devices == 32
    assert read(FIXED, "hardware=h100-sxm").hardware.name == "h100-sxm"  # type: ignore[union-attr]
    assert read(FIXED, "budget.power=350 W").budget.power == 350.0


def test_of_two_settings_of_one_value_the_last_one_counts() -> None:
    assert dict(read(FIXED, "tensor=4", "tensor=8").plan_options)["tensor"] == (8,)


def test_null_takes_a_value_away() -> None:
    free = read(FIXED, "hardware=null", "technology=accelerator-7nm")
    assert isinstance(free.hardware, FreeHardware)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("tensor", "--set tensor:1:1: a setting is written KEY=VALUE (for example tensor=8)"),
        ("tensor=", "--set tensor=:1:1: a setting is written KEY=VALUE (for example tensor=8)"),
        ("=8", "--set =8:1:1: a setting is written KEY=VALUE (for example tensor=8)"),
        ("a..b=8", "--set a..b=8:1:1: a setting is written KEY=VALUE (for example tensor=8)"),
        ("tensor=[1", "--set tensor=[1:1:1: a list in '[' is not closed, or a comma is missing"),
        ("tensr=8", "q.yaml:6:3: choices.tensr: unknown key (did you mean 'tensor'?) [from --set tensr=8]"),
        ("tensor=x", "q.yaml:6:11: choices.tensor: 'x' is not a number [from --set tensor=x]"),
        ("cluster.pods=1", "q.yaml:3:10: cluster.pods: unknown key (did you mean 'pod'?) [from --set cluster.pods=1]"),
        ("data={fro: 1, to: 4}", "q.yaml:6:3: choices.data.fro: unknown key (did you mean 'from'?) [from --set data={fro: 1, to: 4}]"),
    ],
)
def test_a_wrong_setting_says_which(setting: str, message: str) -> None:
    """The line of the file does not show what is wrong, so that the setting is named."""
    assert refusal(FIXED, setting) == f"{message}\n1 fault, nothing solved"


def test_a_list_takes_no_settings() -> None:
    assert refusal("[1, 2]", "tensor=1").startswith("q.yaml:1:1: there are no keys to set")
