"""`solve --form`, `--workers`, `--seed`: what makes no sense is refused in a sentence."""

from pathlib import Path

import pytest

from crossopt.reports.cli import main
from crossopt.reports.commands.console import UNPROVED, USAGE
from tests.solvers.codesign.questions import TINY_FREE

REFUSED = [
    (("--form", "weak"), "--form weak: the engine auto solves no integer model (take --engine milp or cpsat)"),
    (("--engine", "boxes", "--workers", "2"), "--workers 2: the engine boxes solves no integer model"),
    (("--engine", "milp", "--workers", "999999999"), "--workers 999999999: this is too many (write 256 or less"),
    (("--engine", "milp", "--workers", "0"), "0 is too few (write 1 or more)"),
    (("--engine", "milp", "--form", "convex"), "--form: 'convex' is unknown (one of "),
    (("--engine", "random", "--seed", "-1"), "--seed -1: this is no seed (write a whole number from 0 to 2147483647)"),
    (("--engine", "cpsat", "--seed", "99999999999"), "--seed 99999999999: this is no seed"),
]


@pytest.mark.parametrize(("words", "sentence"), REFUSED)
def test_limits_that_make_no_sense_are_refused(words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["solve", "tiny", *words])
    assert ended.value.code == USAGE
    assert sentence in capsys.readouterr().err


def test_placements_take_workers_without_an_integer_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "gpt3-13b-on-8", "--workers", "2"]) == 0
    assert "--workers" not in capsys.readouterr().err


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("engine", "strict"),
    [
        ("cpsat", True),
        *(pytest.param(engine, strict, marks=pytest.mark.slow) for engine, strict in (("milp", True), ("milp", False), ("cpsat", False))),
    ],
)
def test_the_form_and_the_workers_are_taken(engine: str, strict: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question = tmp_path / "question.yaml"
    question.write_text(TINY_FREE, encoding="utf-8")
    several = (
        "compute_area={from: 150 mm^2, to: 400 mm^2, step: 50 mm^2}",
        "compute_power=[100 W, 150 W, 200 W]",
        "l2_area=[20 mm^2, 80 mm^2]",
        "budget.die_area=600 mm^2",
    )
    words = [
        "solve",
        str(question),
        *(word for one in several for word in ("--set", one)),
        "--engine",
        engine,
        "--form",
        "log",
        "--workers",
        "2",
        "--verbose",
    ]
    assert main([*words, "--strict"] if strict else words) == (UNPROVED if strict else 0)  # told, as no tree is sought of this form
    assert "in the log form" in " ".join(capsys.readouterr().out.split())
