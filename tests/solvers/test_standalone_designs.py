"""Certificates of joint designs with every kind of option: each design that is drawn is priced as its box says."""

import json
from contextlib import redirect_stderr, redirect_stdout
from fractions import Fraction
from io import StringIO
from itertools import product
from math import prod
from types import SimpleNamespace
from typing import Any

import pytest

from crossopt import solve
from crossopt.reports.cli import main
from crossopt.reports.facts.listing import certificate_of_designs
from crossopt.solvers import standalone
from crossopt.solvers.answer import result_in
from crossopt.solvers.family import family_of

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
