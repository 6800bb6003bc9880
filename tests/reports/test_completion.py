"""Completion: what the scripts offer at each place of a command line, asked of real shells."""

import re
import shutil
import subprocess
from argparse import ArgumentParser
from pathlib import Path

import pytest

from crossopt.instances.catalogue.registry import names, shipped
from crossopt.reports.arguments import FORMS, parser_of_commands
from crossopt.reports.cli import COMMANDS, main
from crossopt.reports.completion import SHELLS, commands_of, completion_script

SCRIPTS = {shell: completion_script(shell, parser_of_commands()) for shell in SHELLS}


def needs(shell: str) -> str:
    """The path of a shell; skips the test where it is absent."""
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not on this machine")
    return found


def offered(folder: Path, *words: str) -> list[str]:
    """What bash offers for the last word, in a folder, with the words as bash takes them apart."""
    program = f'{SCRIPTS["bash"]}\nCOMP_WORDS=("$@")\nCOMP_CWORD=$(($# - 1))\n_crossopt\nprintf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(
        [needs("bash"), "-uc", program, "bash", *words], cwd=folder, capture_output=True, text=True, timeout=60, check=False
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
def test_the_command_prints_the_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert capsys.readouterr().out == SCRIPTS[shell]


@pytest.mark.process
@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_finds_no_mistake_in_its_script(shell: str, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(SCRIPTS[shell], encoding="utf-8")
    done = subprocess.run([needs(shell), "-n", str(script)], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_every_command_and_option_of_the_parser_is_in_both_scripts() -> None:
    commands = commands_of(parser_of_commands())
    assert [one.name for one in commands] == list(COMMANDS)
    for one in commands:
        for script in SCRIPTS.values():
            assert re.search(rf"\b{one.name}\b", script)
            assert [name for option in one.options for name in option.names if name not in script] == []


@pytest.mark.process
def test_bash_offers_commands_and_what_stands_before_them(tmp_path: Path) -> None:
    assert offered(tmp_path, "crossopt", "") == [*COMMANDS, "-h", "--help", "--version"]
    assert offered(tmp_path, "crossopt", "va") == ["validate"]
    assert offered(tmp_path, "crossopt", "no-such-command", "") == []


@pytest.mark.process
def test_bash_offers_options_of_the_command_alone(tmp_path: Path) -> None:
    assert offered(tmp_path, "crossopt", "solve", "--fo") == ["--form"]
    assert offered(tmp_path, "crossopt", "validate", "--fo") == []
    assert offered(tmp_path, "/usr/local/bin/solve", "--ver") == ["--version"]


@pytest.mark.process
@pytest.mark.parametrize("words", [("--form", ""), ("--form", "="), ("--form", "=", "st"), ("tiny", "--form", "str")], ids=" ".join)
def test_bash_offers_the_values_of_an_option(words: tuple[str, ...], tmp_path: Path) -> None:
    start = "" if words[-1] == "=" else words[-1]
    assert offered(tmp_path, "crossopt", "solve", *words) == [form for form in FORMS if form.startswith(start)]


@pytest.mark.process
def test_bash_offers_nothing_where_nobody_can_guess(folder: Path) -> None:
    assert offered(folder, "crossopt", "solve", "--gap", "") == []
    assert offered(folder, "crossopt", "solve", "tiny", "") == []


@pytest.mark.process
def test_questions_are_offered_by_name_beside_the_files_that_are_there(folder: Path) -> None:
    found = offered(folder, "crossopt", "solve", "")
    assert found[: len(shipped())] == list(shipped())
    assert sorted(found[len(shipped()) :]) == ["mine", "runs.csv", "tiny answer.json"]
    assert offered(folder, "crossopt", "solve", "tin") == ["tiny", "tiny answer.json"]
    assert offered(folder, "solve", "--form", "strong", "--out", "x.json", "tin") == ["tiny", "tiny answer.json"]
    assert offered(folder, "solve", "--form", "=", "strong", "tin") == ["tiny", "tiny answer.json"]


@pytest.mark.process
def test_results_and_targets_are_files_alone(folder: Path) -> None:
    assert offered(folder, "crossopt", "check", "tin") == ["tiny answer.json"]
    assert offered(folder, "crossopt", "solve", "tiny", "--out", "tin") == ["tiny answer.json"]
    assert offered(folder, "crossopt", "accuracy", "r") == ["runs.csv"]


@pytest.mark.process
def test_many_files_are_offered_one_after_the_other(folder: Path) -> None:
    assert offered(folder, "crossopt", "compare", "tiny", "quickstart", "sma") == ["small"]
    assert offered(folder, "crossopt", "report", "a.json", "b.json", "tin") == ["tiny answer.json"]


@pytest.mark.process
def test_names_of_devices_and_assignments_are_offered(folder: Path) -> None:
    devices = [name for name in names("hardware") if name.startswith("a100")]
    assert offered(folder, "crossopt", "calibrate", "runs.csv", "--gpu", "a100") == devices
    assert offered(folder, "crossopt", "grade", "02") == ["02-knapsack"]
    assert offered(folder, "crossopt", "grade", "02", "mi") == ["mine"]
    assert offered(folder, "crossopt", "course", "rel") == ["release"]
    assert offered(folder, "crossopt", "list", "hard") == ["hardware"]


def test_nothing_of_the_scripts_starts_a_program() -> None:
    """At a press of TAB nobody waits for Python."""
    for script in SCRIPTS.values():
        code = [line for line in script.splitlines() if not line.startswith("#")]
        assert [line for line in code if "python" in line or "$(crossopt" in line or "`" in line] == []


ZSH = """
compadd() { :; }
_files() { :; }
_arguments() { printf '%s\\n' "$@"; }
compdef() { printf 'compdef %s\\n' "$*"; }
"""


@pytest.mark.process
def test_zsh_reads_each_option_as_one_word(tmp_path: Path) -> None:
    """With a stand-in for the function that completes, since the real one needs a terminal."""
    script = f"{ZSH}\n{SCRIPTS['zsh']}\n_crossopt_explain\n_crossopt_list\n"
    done = subprocess.run([needs("zsh"), "-fc", script], capture_output=True, text=True, timeout=60, check=True, cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert lines[0] == "compdef _crossopt crossopt solve"
    assert f"1:file: _crossopt_either {' '.join(shipped())}" in lines
    assert "1:kind:(hardware technologies workloads instances)" in lines
    assert "--time-limit=[for each of the questions that are solved, and for --near]:time: " in lines
    assert any(line.startswith("*--set=[") for line in lines)
    assert (done.stderr, [line for line in lines[1:] if not re.match(r"\*?-|[1*]:", line)]) == ("", [])


@pytest.mark.process
def test_signs_that_shells_read_are_kept_from_them(tmp_path: Path) -> None:
    """Quotes, brackets and colons in helps."""
    parser = ArgumentParser(prog="crossopt")
    commands = parser.add_subparsers()
    one = commands.add_parser("odd", help="it's: `odd` $HOME [x]")
    one.add_argument("--odd", metavar="A:B", help="don't use [these] $HOME signs")
    one.set_defaults(command="odd")
    script = f"{ZSH}\n{completion_script('zsh', parser)}\n_crossopt_odd\n"
    done = subprocess.run([needs("zsh"), "-fc", script], capture_output=True, text=True, timeout=60, check=True, cwd=tmp_path)
    assert "--odd=[don't use \\[these\\] $HOME signs]:a\\:b: " in done.stdout.splitlines()
    assert done.stderr == ""
