"""Every result that a command writes of a shipped question or a sample is accepted by `check`, however early its search ended."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from crossopt.instances.catalogue.registry import shipped
from crossopt.instances.kinds import KINDS
from crossopt.reports.cli import main
from crossopt.solvers.family import family_of
from tests.samples import SAMPLES

SHORT = ("50ms", "1s")
"""Limits of shipped questions. Samples are also solved to the end."""
BROKEN = {1, 30, 70}
"""Exit codes of a failure, of a result that does not hold, and of an internal error."""


def kind_of(path: Path) -> str:
    """The kind that a question names."""
    return next(line.split()[1] for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("kind: "))


SHIPPED = {name: path for name, path in shipped().items() if kind_of(path) != "study"}


def accepted(target: Path, *words: str) -> None:
    """A command ends as it may, and `check` accepts what it writes."""
    assert main([*words, "--out", str(target)]) not in BROKEN, words
    if target.exists():
        assert main(["check", str(target)]) == 0, words


def ways(kind: str, question: str, limits: tuple[tuple[str, ...], ...]) -> Iterator[tuple[str, ...]]:
    """Every engine within every limit, all beside each other, and fronts."""
    family, short = family_of(kind), ("--time-limit", "300ms")
    engines = ["auto"] if kind == "codesign" else [*family.engines][1:] if len(family.engines) == 2 else family.engines
    for limit in limits:
        yield from (("solve", question, "--engine", engine, *limit) for engine in engines)
    if kind != "codesign":  # whose comparisons are no results
        yield ("compare", question, *short)
    if family.front is not None:
        yield ("solve", question, "--pareto", family.front.example, "--points", "3", *short)


@pytest.mark.thorough
@pytest.mark.parametrize("name", SHIPPED)
def test_results_of_shipped_questions_are_accepted(name: str, tmp_path: Path) -> None:
    limits = tuple(("--time-limit", limit) for limit in SHORT)
    for place, words in enumerate(ways(kind_of(SHIPPED[name]), str(SHIPPED[name]), limits)):
        accepted(tmp_path / f"{place}.json", *words)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", [kind for kind in SAMPLES if kind in KINDS and kind != "knapsack"])  # a toy that no other process knows
def test_results_of_samples_are_accepted(kind: str, tmp_path: Path) -> None:
    """To the end, within hardly any time, and where there is no answer; and those that a sweep stores."""
    sample, limits = SAMPLES[kind], ((), ("--time-limit", "20ms"))
    for name, text in sample.files:
        (tmp_path / name).write_text(text, encoding="utf-8")
    for place, text in enumerate(sample.texts):
        question = tmp_path / f"{kind}{place}{sample.suffix}"
        question.write_text(text, encoding="utf-8")
        own = limits if sample.seconds == float("inf") else (("--time-limit", f"{sample.seconds}s"), limits[1])
        impossible = tuple(word for setting in sample.impossible for word in ("--set", setting)) if place == 0 else ()
        for number, words in enumerate([*ways(kind, str(question), own), *([("solve", str(question), *impossible)] if impossible else [])]):
            accepted(tmp_path / f"{place}-{number}.json", *words)
    asked = ", ".join(f"{kind}{place}{sample.suffix}" for place in range(len(sample.texts)))
    (tmp_path / "study.yaml").write_text(
        f"kind: study\ntitle: Samples\nengines: [auto]\ninstances: [{asked}]\ntime_limit: 1 s\n", encoding="utf-8"
    )
    assert main(["sweep", str(tmp_path / "study.yaml"), "--store", str(tmp_path / "store"), "--workers", "1"]) not in BROKEN
    assert main(["sweep", "check", str(tmp_path / "store")]) == 0
