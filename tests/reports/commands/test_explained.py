"""What is explained before Ctrl-C is told, with the words that there is more."""

import pytest

from crossopt.reports.cli import main
from crossopt.reports.commands import explain
from tests.paths import INSTANCES


@pytest.mark.parametrize("ended", ["relief", "near_optimum"])
def test_an_interrupt_leaves_what_is_known(ended: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(*_: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(explain, ended, interrupt)
    assert main(["explain", str(INSTANCES / "tiny.yaml"), "--near", "1%"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "is the optimum" in lines[0]
    assert lines[-1] == "  interrupted before all of this was explained"
