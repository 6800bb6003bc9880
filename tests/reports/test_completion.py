"""Completion: what the scripts offer at places of a command line, as real shells evaluate them."""

import shutil
import subprocess
from pathlib import Path

import pytest

from crossopt.instances.catalogue.registry import names, shipped
from crossopt.reports.arguments import FORMS, parser_of_commands
from crossopt.reports.cli import COMMANDS, main
from crossopt.reports.commands.completion import SHELLS, completion_script

pytestmark = pytest.mark.process
SCRIPTS = {shell: completion_script(shell, parser_of_commands()) for shell in SHELLS}


def needs(shell: str) -> str:
    """The path of a shell; skips the test where it is absent."""
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not on this machine")
    return found


def offered(folder: Path, *words: str) -> list[str]:
    """What bash offers for the last word, in a folder."""
    program = f'{SCRIPTS["bash"]}\nCOMP_WORDS=("$@")\nCOMP_CWORD=$(($# - 1))\n_shtab_crossopt\nprintf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(
        [needs("bash"), "-c", program, "bash", *words], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if line]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files and a folder."""
    for name in ("tiny answer.json", "runs.csv"):
        (tmp_path / name).touch()
    (tmp_path / "mine").mkdir()
    return tmp_path


@pytest.mark.parametrize("shell", SHELLS)
def test_the_command_prints_a_script_in_which_the_shell_finds_no_mistake(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    assert capsys.readouterr().out == SCRIPTS[shell]
    script = tmp_path / "script"
    script.write_text(SCRIPTS[shell], encoding="utf-8")
    done = subprocess.run([needs(shell), "-n", str(script)], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_bash_offers_commands_and_options_of_each(tmp_path: Path) -> None:
    assert set(COMMANDS) <= set(offered(tmp_path, "crossopt", ""))
    assert offered(tmp_path, "crossopt", "va") == ["validate"]
    assert offered(tmp_path, "crossopt", "solve", "--fo") == ["--form"]
    assert offered(tmp_path, "crossopt", "validate", "--fo") == []
    assert offered(tmp_path, "crossopt", "solve", "--form", "st") == [form for form in FORMS if form.startswith("st")]
    assert offered(tmp_path, "crossopt", "list", "hard") == ["hardware"]


def test_questions_are_offered_by_name_beside_files_and_results_are_files_alone(folder: Path) -> None:
    assert set(offered(folder, "crossopt", "solve", "")) == {*shipped(), "mine", "runs.csv", "tiny answer.json"}
    assert offered(folder, "crossopt", "compare", "tiny", "sma") == ["small"]
    assert offered(folder, "crossopt", "check", "tin") == ["tiny answer.json"]
    assert offered(folder, "crossopt", "solve", "tiny", "--out", "tin") == ["tiny answer.json"]


def test_names_of_devices_and_assignments_are_offered(folder: Path) -> None:
    devices = [name for name in names("hardware") if name.startswith("a100")]
    assert offered(folder, "crossopt", "calibrate", "runs.csv", "--gpu", "a100") == devices
    assert offered(folder, "crossopt", "grade", "02") == ["02-knapsack"]


def test_nothing_of_the_scripts_starts_python() -> None:
    for script in SCRIPTS.values():
        assert [line for line in script.splitlines() if not line.startswith("#") and ("python" in line or "$(crossopt" in line)] == []
