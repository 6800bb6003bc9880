"""Which family answers a file."""

from pathlib import Path

import pytest

from solvers.kinds import FAMILIES, check_of, command_of, family_of
from solvers.objective import RefusedError


@pytest.mark.parametrize(
    ("name", "text", "family"),
    [
        ("graph.json", "{}", "placement"),
        ("graph.txt", "", "pipeline"),
        ("question.yaml", "name: q\nkind: placement\n", "placement"),
        ("question.yaml", 'kind: "placement"\n', "placement"),
        ("question.yaml", "# a chain\nkind: chain\n", "chain"),
        ("question.yaml", "kind: study\ntitle: several\n", "study"),
        ("question.yaml", "name: q\nobjective: step_time\n", None),
        ("question.yaml", "workload:\n  kind: placement\n", None),
        ("question.yaml", "kind: another\n", None),
    ],
)
def test_a_file_belongs_to_a_family_by_its_form_or_its_kind(tmp_path: Path, name: str, text: str, family: str | None) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert family_of(path) == family


def test_a_file_that_is_not_there_is_left_to_the_reader() -> None:
    assert family_of(Path("nowhere.yaml")) is None


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_solves_and_checks(family: str) -> None:
    assert callable(command_of(family, "solve"))
    assert callable(check_of(family))


def test_a_command_that_a_family_lacks_is_refused_in_words() -> None:
    with pytest.raises(RefusedError, match="does not answer questions about operators"):
        command_of("placement", "calibrate")
