"""Certificates of joint designs: their boxes are covered, and each design that is drawn is priced as its box says, whatever its options."""

import copy
import gzip
import json
import sys
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from fractions import Fraction
from functools import cache
from io import StringIO
from itertools import product
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crossopt import solve
from crossopt.reports.cli import main
from crossopt.reports.facts.listing import certificate_of_designs
from crossopt.solvers import standalone
from crossopt.solvers.answer import result_in
from crossopt.solvers.family import family_of
from tests.paths import ROOT
from tests.solvers.test_standalone import asked

SETTINGS = {"recompute": "[none, full]", "recompute_layers": "[0, 1]", "schedule": "[1f1b, zero-bubble]", "shard": "[0, 2]"}
"""Options that are told by several keys, and others of which each holds only beside some."""
MORE = {"last_stage_layers": "[0, 1]", "sequence_parallel": "true", "tensor_exchange": "[exposed, hidden]", "zero": "[1, 3]"}


@pytest.mark.parametrize("more", [{}, pytest.param(MORE, marks=pytest.mark.slow)], ids=["few", "more"])
def test_every_option_is_priced_as_its_box_says(more: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each combination of the options of a small question, drawn in turn."""
    family, options = family_of("codesign"), SETTINGS | more | {"tensor": "[1, 2]", "pipeline": "[1, 2]", "microbatch": "[1]"}
    found = solve("tiny", settings={f"choices.{name}": values for name, values in options.items()})
    document = json.loads(json.dumps(certificate_of_designs(result_in(found.data, family.answer, family.details))), parse_float=exactly)
    draws = iter([place for places in product(*(range(len(some)) for _, some in document["choices"])) for place in places])
    count = prod(len(some) for _, some in document["choices"])
    monkeypatch.setattr(standalone.random, "randrange", lambda stop: next(draws))
    monkeypatch.setattr(standalone.subprocess, "run", evaluated_here)
    assert f"of the answer and {count} drawn" in standalone.cover(document, [count], ["crossopt"])
    for places in ([9] * len(document["answer"]), document["answer"][1:]):
        with pytest.raises((ValueError, StopIteration)):
            standalone.cover({**document, "answer": places}, [], [])


def exactly(text: str) -> Fraction:
    return Fraction(float(text))


def evaluated_here(words: list[str], **_: object) -> Any:  # noqa: ANN401 - what a process leaves
    """The command in this process."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as faults:
        code = main(words[1:])
    return SimpleNamespace(returncode=code, stdout=out.getvalue(), stderr=faults.getvalue())


@cache
def listed() -> dict[str, Any]:
    """The 24 designs of the smallest joint question."""
    family = family_of("codesign")
    return certificate_of_designs(result_in(solve("tiny").data, family.answer, family.details))


COMMAND = (sys.executable, "-m", "crossopt.reports.cli")


def covered(document: dict[str, Any], folder: Path, *words: str) -> tuple[int, str]:
    (folder / "designs.json").write_text(json.dumps(document), encoding="utf-8")
    return asked(folder / "designs.json", *words)


def test_boxes_of_joint_designs_are_covered_and_never_called_proved(tmp_path: Path) -> None:
    """That the lists are those of the question nobody sees here, which is told."""
    code, words = covered(listed(), tmp_path)
    assert (code, words[:46]) == (2, "covered: 24 designs of its own lists lie in 24")
    assert words.endswith("that these are all of the question's is not seen; prices were not checked\n")
    assert covered(listed(), tmp_path, str(tmp_path / "designs.json"))[0] == 1
    garbage = copy.deepcopy(listed())
    garbage["choices"] = [[name, [f"{option}; nothing=1" for option in options]] for name, options in garbage["choices"]]
    assert covered(garbage, tmp_path, "--price", "0", *COMMAND)[0] == 1
    assert covered({**listed(), "bound": listed()["bound"] * 1.0001}, tmp_path)[0] == 1


@pytest.mark.thorough
def test_designs_that_are_drawn_have_the_prices_of_the_full_model(tmp_path: Path) -> None:
    code, words = covered(listed(), tmp_path, "--price", "1", *COMMAND)
    assert (code, words.count("of the answer and 1 drawn 2 have a price")) == (2, 1)
    lower = json.loads(json.dumps(listed()).replace(repr(listed()["bound"]), repr(listed()["bound"] * 0.999)))
    assert covered(lower, tmp_path)[0] == 2
    code, words = covered(lower, tmp_path, "--price", "0", *COMMAND)
    assert (code, words.count("is not worth what is said")) == (1, 1)
    assert covered(listed(), tmp_path, "--price", "0", sys.executable, "-c", "raise SystemExit(3)")[0] == 1
    assert covered(listed(), tmp_path, "--price", "0", "no-such-command")[0] == 1


@pytest.mark.slow
@pytest.mark.parametrize("question", ["quickstart", "gpt3-175b-pathfinding-large"])
def test_chips_that_were_enumerated_or_cut_are_covered(question: str, tmp_path: Path) -> None:
    target = tmp_path / "designs.json.gz"
    assert main(["export", str(ROOT / "reports/gallery" / f"{question}.json"), "--as", "certificate", "--out", str(target)]) == 0
    document = standalone.read(str(target))
    sizes = [len(options) for _, options in document["choices"]]
    found = standalone.boxes(document["tree"], [(0, size - 1) for size in sizes], document["bound"])
    assert sum(prod(last - first + 1 for first, last in box) for box, _ in found) == prod(sizes)
    assert asked(target, "--price", "1", *COMMAND)[0] == 2
    raised = json.loads(gzip.decompress(target.read_bytes()))
    code, words = covered({**raised, "tree": _raised(raised["tree"])}, tmp_path, "--price", "0", *COMMAND)
    assert (code, words.count("is below what its box may hold")) == (1, 1)


def _raised(tree: Any) -> Any:  # noqa: ANN401 - a tree
    """With least values that are above the designs in their boxes."""
    if isinstance(tree, list):
        return [tree[0], *([last, _raised(part)] for last, part in tree[1:])]
    return None if tree is None else tree * 1.5


@pytest.mark.parametrize("question", ["gpt3-175b-pathfinding-7nm", "joint-vs-single-layer"])
def test_what_rests_on_a_word_or_is_no_answer_is_not_listed(question: str) -> None:
    with pytest.raises(SystemExit) if question.startswith("joint") else nullcontext():
        assert main(["export", str(ROOT / "reports/gallery" / f"{question}.json"), "--as", "certificate"]) not in (0, 1)
