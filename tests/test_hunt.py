"""The hunt for false proofs: ten minutes of it, and that it finds what it should."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from crossopt.solvers.family import Proved
from tests.hunt import held
from tests.hunt.__main__ import hunted
from tests.hunt.drawn import DRAWS
from tests.hunt.faults import FAULTS

QUICK = ("placement", "strategies", "chain", "split stages")


def test_some_of_every_quick_kind_is_hunted_and_nothing_is_found(tmp_path: Path) -> None:
    for name in QUICK:
        assert held.hunt(DRAWS[name](3), Random(3), tries=4) >= 5
    bags = hunted(["strategies"], seconds=0.01, seed=5, edits=2, folder=tmp_path)
    assert (bags["strategies"].questions, bags["strategies"].findings) == (1, [])


def test_a_check_that_believes_everything_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some edit of some result raises its bound; whoever does not carry the proof out anew accepts that."""
    found = held.family_of
    monkeypatch.setattr(held, "family_of", lambda kind: replace(found(kind), prove=lambda *given: Proved()))
    with pytest.raises(held.FindingError, match="nothing is below"):
        for seed in range(1, 40):
            held.hunt(DRAWS["chain"](seed), Random(seed), tries=60)


@pytest.mark.slow
def test_ten_minutes_of_hunting_find_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bags = hunted([*DRAWS, *FAULTS], seconds=600.0, seed=20_261, edits=25, folder=tmp_path)
    with capsys.disabled():
        print({name: (bag.questions, bag.results) for name, bag in bags.items()})
    assert [finding for bag in bags.values() for finding in bag.findings] == []
