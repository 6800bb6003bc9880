"""The command line from end to end: commands, exit codes, what is written where, and what happens when things go wrong."""

import errno
import json
import re
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from crossopt import reports
from crossopt.__main__ import main as script
from crossopt.instances.errors import RefusedError, VerificationError
from crossopt.instances.files.saved import check_writable
from crossopt.reports import cli
from crossopt.reports.arguments import remedies_of
from crossopt.reports.cli import main, solve_main
from crossopt.reports.commands import asking, compare
from crossopt.reports.commands.console import ANSWERED, ENDED_EARLY, INFEASIBLE, NO_DESIGN, UNPROVED, USAGE
from crossopt.solvers.answer import Limits, Watch
from tests.commands import exit_code
from tests.every import every
from tests.paths import INSTANCES
from tests.reports.answers import ENGINES
from tests.solvers.codesign.questions import LSTM

TINY = str(INSTANCES / "tiny.yaml")
NAMES = ", ".join(ENGINES)
OPEN_CHOICES = "tensor (3 options), pipeline (2 options), data (4 options), microbatch (2 options), recompute (2 options)"
ONE_DESIGN = ("--set=tensor=2", "--set=pipeline=1", "--set=microbatch=1", "--set=recompute=none")

Captured = pytest.CaptureFixture[str]


# --- commands and their exit codes ---------------------------------------------------------------------------------------------------


def test_solve_prints_the_answer_and_exits_with_zero(capsys: Captured) -> None:
    assert main(["solve", TINY]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("tiny   proved optimal in ")
    assert "proof      none of 24 designs is below" in out
    assert err == ""


def test_solve_alone_is_the_command_solve(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["solve", TINY, "--json"])
    assert solve_main() == 0
    assert json.loads(capsys.readouterr().out)["status"] == "OPTIMAL"


def test_an_interrupt_while_the_command_line_is_loaded_ends_in_a_sentence(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "crossopt.reports.cli":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "crossopt.reports.cli")
    monkeypatch.delattr(reports, "cli")
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    assert script() == NO_DESIGN
    assert capsys.readouterr().err == "interrupted before there was an answer\n"


@pytest.mark.parametrize("arguments", [["--version"], ["solve", "--version"]], ids=" ".join)
def test_the_version_is_that_of_the_installed_package(arguments: list[str], capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert (ended.value.code, capsys.readouterr().out) == (0, f"crossopt {version('crossopt')}\n")


def test_no_command_prints_the_help_and_is_a_usage_error(capsys: Captured) -> None:
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("usage: crossopt")
    for command in ("solve", "validate", "evaluate", "check", "compare", "list"):
        assert f"\n    {command} " in err


@every(
    ("arguments", "message"),
    [
        (("frob",), "'frob' is unknown (one of plan, place, quantize, checkpoint, embed, serve"),
        (("solve",), "the following arguments are required: file"),
        (("solve", TINY, "--engine", "magic"), f"the engine 'magic' answers no question of kind codesign (one of {NAMES})"),
        (("compare", TINY, "--engines", "expert,magic"), f"there is no engine 'magic' (one of {NAMES})"),
        (("compare", TINY, "--engines", ","), f"there is no engine '' (one of {NAMES})"),
        (("solve", TINY, "--time-limit", "soon"), "--time-limit: 'soon' is no time (write for example 60s, 5min or 2h)"),
        (("solve", TINY, "--time-limit", "60"), "--time-limit: 60 has no unit (write 60s for seconds, 5min or 2h)"),
        (("solve", TINY, "--time-limit=-1s"), "--time-limit: '-1s' is no time (write for example 60s, 5min or 2h)"),
        (("solve", TINY, "--seed", "x"), "invalid int value: 'x'"),
        (("serve", "llama3-8b", "--rate", "10/h"), "--rate: '10/h' is no number (write it without a unit, such as 10)"),
        (
            ("serve", "llama3-8b", "--gpus", "1xh100", "--input", "1", "--output", "1", "--fast"),
            "--fast: there is no such option (see `",
        ),
        (("solve", TINY, "--out", "/nowhere/x.json"), "--out /nowhere/x.json: there is no folder /nowhere (make it first)"),
        (("solve", TINY, "--out", "/proc/x.json"), "--out /proc/x.json: this cannot be written, "),
        (("calibrate", "nothing.csv", "--gpu", "a100-80g", "--out", "/proc/x.yaml"), "--out /proc/x.yaml: this cannot be written, "),
        (("accuracy", "nothing.csv", "--plot", "/proc/x.svg"), "--plot /proc/x.svg: this cannot be written, "),
        (("solve", TINY, "--out", "x" * 300), "this cannot be written, file name too long"),
        (("solve", TINY, "--out", "/tmp"), "--out /tmp: this is a directory (name a file)"),
        (("compare", TINY, "--seeds", "0"), "0 is too few (write 1 or more)"),
        (("list", "cats"), "kind: 'cats' is unknown (one of hardware, "),
    ],
)
def test_wrong_usage_exits_with_two_and_one_sentence(arguments: tuple[str, ...], message: str, capsys: Captured) -> None:
    code = exit_code(arguments)
    out, err = capsys.readouterr()
    assert code == 2
    assert out == ""
    assert message in err


@pytest.mark.parametrize("there", [False, True])
def test_to_see_whether_a_file_can_be_written_leaves_no_trace(there: bool, tmp_path: Path) -> None:
    target = tmp_path / "answer.json"
    if there:
        target.write_text("kept", encoding="utf-8")
    check_writable(target)
    assert [(path, path.read_text(encoding="utf-8")) for path in tmp_path.iterdir()] == ([(target, "kept")] if there else [])


def test_the_help_of_solve_names_every_engine(capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        main(["solve", "--help"])
    words = capsys.readouterr().out
    assert all(name in words for name in ENGINES)


@pytest.mark.parametrize("command", ["solve", "validate", "evaluate", "compare"])
def test_a_file_that_is_no_question_exits_with_three_and_writes_nothing(command: str, tmp_path: Path, capsys: Captured) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("kind: codesign\nworklod: 3\ncluster: {devices: 8 GB}\n")
    assert main([command, str(wrong)]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1] == ("2 faults" if command == "validate" else "2 faults, nothing solved")
    assert f"{wrong}:2:1: worklod: unknown key (did you mean 'workload'?)" in err
    assert list(tmp_path.iterdir()) == [wrong]


def test_figures_that_overflow_exit_with_three_and_one_sentence(capsys: Captured) -> None:
    assert main(["solve", TINY, "--set", "cluster.node.latency=1e305 s"]) == 3
    assert capsys.readouterr().err == "the model gives no finite value for a design (mend figures that are far too large or too small)\n"


def test_an_infeasible_budget_exits_with_twenty_and_the_limit_that_no_design_meets(capsys: Captured) -> None:
    assert main(["solve", TINY, "--set", "budget.power=100 W"]) == 20
    out = " ".join(capsys.readouterr().out.split())
    assert "no design keeps the limits, proved in" in out
    assert "power: no design keeps it; the least that any design needs is 4 times what there is" in out
    assert "memory: kept by 24 designs" in out


def test_no_time_exits_with_ten(capsys: Captured) -> None:
    assert main(["solve", TINY, "--time-limit", "0s"]) == 10
    out, err = capsys.readouterr()
    assert out.startswith("tiny   no design found (time limit after ")
    assert " of search)" in out.splitlines()[0]
    more = "increase --time-limit, or leave fewer choices open"
    assert err == f"no answer and no proof of infeasibility (exit code 10): {more}\n"


def test_only_options_of_a_command_are_advised() -> None:
    assert remedies_of("plan") == remedies_of("serve") == remedies_of("checkpoint") == "increase --time-limit"
    assert remedies_of("explain") == "increase --time-limit, or leave fewer choices open"
    assert remedies_of("solve", "boxes") == "increase --time-limit, use --engine auto, or leave fewer choices open"
    assert remedies_of("check") == ""


@pytest.mark.parametrize(("engine", "code"), [("exhaustive", 0), ("expert", 11), ("plan-only", 11), ("hardware-only", 11)])
def test_strict_exits_with_eleven_unless_the_answer_is_proved(engine: str, code: int) -> None:
    assert main(["solve", TINY, "--engine", engine]) == 0
    assert main(["solve", TINY, "--engine", engine, "--strict"]) == code


def test_a_contradiction_of_the_full_model_exits_with_thirty(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    def contradicted(instance: object, limits: Limits, watch: Watch) -> object:
        raise VerificationError("the design found breaks a limit: memory")

    monkeypatch.setitem(ENGINES, "auto", contradicted)
    assert main(["solve", TINY]) == 30
    assert capsys.readouterr().err == "verification failed: the design found breaks a limit: memory\n"


def test_a_fault_of_the_program_exits_with_one_and_without_a_traceback(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(instance: object, limits: Limits, watch: Watch) -> object:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setitem(ENGINES, "auto", broken)
    monkeypatch.delenv("CROSSOPT_DEBUG", raising=False)
    assert main(["solve", TINY]) == 1
    err = capsys.readouterr().err
    assert err.startswith("internal error: ZeroDivisionError: division by zero (set CROSSOPT_DEBUG=1")
    assert "Traceback" not in err
    monkeypatch.setenv("CROSSOPT_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["solve", TINY])


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        OSError("Could not find/load shared object file 'libllvmlite.so'\nError was: failed to map segment from shared object"),
        ImportError("\n\nIMPORTANT: PLEASE READ THIS\n\nOriginal error was: libstdc++.so.6: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
    ],
    ids=["python", "the system", "a library", "numpy", "a thread"],
)
def test_too_little_memory_is_told_in_a_sentence(error: Exception, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    def starved(instance: object, limits: Limits, watch: Watch) -> object:
        raise error

    monkeypatch.setitem(ENGINES, "auto", starved)
    monkeypatch.delenv("CROSSOPT_DEBUG", raising=False)
    assert main(["solve", TINY]) == 1
    assert capsys.readouterr().err == "not enough memory (free some, raise `ulimit -v`, or reduce the question)\n"


def test_validate_counts_and_solves_nothing(capsys: Captured) -> None:
    assert main(["validate", TINY]) == 0
    first, *about = capsys.readouterr().out.splitlines()
    assert first == f"{TINY}: valid: 1 hardware point x 24 combinations of plan choices"
    assert about == [
        "  gpt3-125m · 125.2M weights · 12 layers x 768 · sequence 2,048 · batch 64",
        "  967.7 MFLOP a token · 6 for each of 123.5M weights that multiply it · 226.5 for attention, masked half counted",
    ]


def test_evaluate_prices_the_one_design_that_is_left(capsys: Captured) -> None:
    assert main(["evaluate", TINY, *ONE_DESIGN]) == 0
    assert "tensor 2 · data 4 · microbatch 1 · no recompute" in capsys.readouterr().out
    assert main(["evaluate", TINY, *ONE_DESIGN, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["design"]["plan"]["tensor"] == 2


def test_evaluate_of_a_design_over_its_limits_says_so_and_exits_with_twenty(capsys: Captured) -> None:
    assert main(["evaluate", TINY, *ONE_DESIGN, "--set=budget.power=100 W"]) == 20
    out = capsys.readouterr().out
    assert "BREAKS A LIMIT" in out
    assert re.search(r"power +400 W of 100 W +400\.0% .*BROKEN", out)


def test_evaluate_of_several_designs_names_what_is_open(capsys: Captured) -> None:
    assert main(["evaluate", TINY]) == 3
    assert f"several designs are left, one is needed (still open: {OPEN_CHOICES}; use --set, as in tensor=8)" in capsys.readouterr().err


def test_compare_shows_every_engine_and_its_distance_from_the_bound(capsys: Captured) -> None:
    assert main(["compare", TINY, "--time-limit", "100ms"]) == 0
    lines = capsys.readouterr().out.splitlines()
    searchers = ["descent", "genetic", "gradient", "random", "nsga-ii", "tpe", "cma-es", "bayesian"]
    rows = ["exhaustive", "recipes", "expert", "fsdp", "pipedream-flush", *searchers, "alternating", "hardware-only", "plan-only"]
    first = next(place for place, line in enumerate(lines) if line.split()[:1] == ["engine"]) + 1
    assert [line.split()[0] for line in lines[first : first + 16]] == rows
    assert lines[first].split()[2] == "0.00%"
    assert lines[first + 3].split()[1] == "none"
    assert any("proved by exhaustive enumeration of 24 designs" in line for line in lines)
    assert " 16 runs in " in " ".join(lines)
    assert lines[0].startswith("tiny   step time in s: exhaustive proves the optimum of the question, 152.1"), "the verdict comes first"


def test_compare_says_which_baselines_it_leaves_out_without_optuna(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert main(["compare", TINY, "--time-limit", "100ms"]) == 0
    out, err = capsys.readouterr()
    assert "left out: nsga-ii, tpe, cma-es, bayesian (optuna is not installed: pip install '.[baselines]')" in err
    assert not {"nsga-ii", "tpe", "cma-es", "bayesian"} & {line.split()[0] for line in out.splitlines() if line.split()}
    assert {"random", "descent", "genetic", "gradient", "alternating"} <= {line.split()[0] for line in out.splitlines() if line.split()}
    assert main(["compare", TINY, "--engines", "auto,tpe"]) == 2, "one that is named is refused in its row"
    assert "left out" not in capsys.readouterr().err


def test_compare_runs_searchers_with_several_seeds_and_nothing_else(capsys: Captured) -> None:
    assert main(["compare", TINY, "--engines", "random,expert,auto", "--seeds", "3"]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    first = next(place for place, line in enumerate(lines) if line.split()[:1] == ["engine"]) + 1
    rows = [line.split() for line in lines[first : first + 3]]
    assert [row[0] for row in rows] == ["random", "expert", "exhaustive"]
    assert not any("to" in row for row in rows[1:])
    assert " 5 runs in " in " ".join(out.split())  # three, one and one


@pytest.mark.parametrize(("more", "words"), [((), "from the design of the best recipe"), (("--start", "cold"), "cold, without a recipe")])
def test_compare_says_from_which_design_searches_start(more: tuple[str, ...], words: str, tmp_path: Path, capsys: Captured) -> None:
    target = tmp_path / "runs.json"
    assert main(["compare", TINY, "--engines", "recipes,random,alternating", "--out", str(target), *more]) == 0
    assert f"Searches start {words}." in " ".join(capsys.readouterr().out.split())
    assert json.loads(target.read_text(encoding="utf-8"))["plan"]["start"] == (more[1] if more else "recipe")
    assert main(["check", str(target)]) == 0


@pytest.mark.parametrize(("start", "told"), [("recipe", True), ("cold", False)])
def test_a_check_counts_searches_above_the_recipe_that_they_started_from(start: str, told: bool, tmp_path: Path, capsys: Captured) -> None:
    """The design of the rule `expert` stands in for that of a search."""
    target = tmp_path / "runs.json"
    assert main(["compare", "quickstart", "--engines", "recipes,expert", "--out", str(target)]) == 0
    runs = json.loads(target.read_text(encoding="utf-8"))
    runs["plan"] |= {"engines": ["recipes", "random"], "start": start}
    runs["runs"][1] |= {"engine": "random", "answered_by": "random"}
    target.write_text(json.dumps(runs), encoding="utf-8")
    capsys.readouterr()
    assert main(["check", str(target)]) == 0
    assert ("above the best recipe's design, with which searches begin" in " ".join(capsys.readouterr().out.split())) == told


def test_rules_alone_start_from_no_design_and_other_kinds_refuse_a_start(capsys: Captured) -> None:
    assert main(["compare", TINY, "--engines", "recipes,expert"]) == 0
    assert "Searches start" not in capsys.readouterr().out
    assert exit_code(["compare", str(INSTANCES / "stages" / "gpt2-two-versions.yaml"), "--start", "cold"]) == 2
    assert "--start: this is for joint designs" in capsys.readouterr().err


@pytest.mark.parametrize(("names", "code"), [("exhaustive,expert", 20), ("expert,exhaustive", 20), ("expert", 10)])
def test_compare_tells_infeasible_from_not_found_in_any_order(names: str, code: int, capsys: Captured) -> None:
    assert main(["compare", TINY, "--engines", names, "--set", "budget.power=100 W"]) == code
    out = capsys.readouterr().out
    assert ("no design of the question keeps every limit" if code == 20 else "no engine proved a bound") in out


def test_an_engine_that_is_named_and_does_not_answer_ends_a_comparison_with_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """The integer model knows no step of an LSTM; where nobody named it, the table says so, and no more was asked."""
    (tmp_path / "lstm.yaml").write_text(LSTM, encoding="utf-8")
    asked = ["compare", str(tmp_path / "lstm.yaml"), "--out", str(tmp_path / "runs.json")]
    assert main([*asked, "--engines", "exhaustive,milp"]) == 2
    assert "the milp engine answers step_time questions of transformers" in capsys.readouterr().out
    assert [run["status"] for run in json.loads((tmp_path / "runs.json").read_text(encoding="utf-8"))["runs"]] == ["OPTIMAL", "UNKNOWN"]
    assert main(["compare", TINY, str(tmp_path / "lstm.yaml"), "--engines", "exhaustive,milp"]) == 2
    assert "  milp does not answer lstm: the milp engine" in capsys.readouterr().out
    asked = ["compare", str(tmp_path / "lstm.yaml"), "--time-limit", "20 ms"]
    monkeypatch.setattr(compare, "COMPARED", "exhaustive,milp")
    assert main(asked) == 0


def test_the_same_of_other_kinds_of_questions(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    real = asking.solved

    def refusing(family: Any, question: Any, engine: str, *more: Any) -> Any:  # noqa: ANN401 - of any kind
        if engine == "cuts":
            raise RefusedError("cuts has a day off")
        return real(family, question, engine, *more)

    monkeypatch.setattr(asking, "solved", refusing)
    chain = str(INSTANCES / "stages" / "gpt2-two-versions.yaml")
    for more, code in (((), 0), (("--engines", "auto,cuts"), 2)):
        assert main(["compare", chain, *more]) == code
        assert "cuts does not answer gpt2-two-versions: cuts has a day off" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("kind", "name"), [("hardware", "a100-80g"), ("technologies", "v100-class"), ("workloads", "gpt3-175b"), ("instances", "tiny")]
)
def test_list_names_what_questions_may_use(kind: str, name: str, capsys: Captured) -> None:
    assert main(["list", kind]) == 0
    assert name in [line.split()[0] for line in capsys.readouterr().out.splitlines()]


def test_every_exit_code_is_told_in_the_help(capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    words = capsys.readouterr().out
    for code in (ANSWERED, cli.INTERNAL, USAGE, cli.INVALID, NO_DESIGN, UNPROVED, ENDED_EARLY, INFEASIBLE, cli.REFUSED):
        assert re.search(rf"\b{code} [a-z]", words), code


def test_the_log_tells_how_value_and_bound_close_in(tmp_path: Path) -> None:
    target = tmp_path / "log.jsonl"
    asked = ["quickstart", "--set", "objective=rated_energy_per_token"]
    assert main(["solve", *asked, "--engine", "boxes", "--log", str(target)]) == 0
    lines = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    assert len(lines) >= 2
    assert [line["seconds"] for line in lines] == sorted(line["seconds"] for line in lines)
    assert lines[0]["bound"] is None  # the recipes' design, before there is any proof
    bounds = [line["bound"] for line in lines[1:]]
    assert bounds == sorted(bounds)
    assert all(line["bound"] <= line["best"] for line in lines[1:])


@pytest.mark.parametrize("more", [(), ("--pareto", "step_time,power")])
def test_options_of_other_questions_are_refused_by_a_joint_design(more: tuple[str, ...], capsys: Captured) -> None:
    assert exit_code(["solve", "tiny", "--cpus", "3", *more]) == 2
    assert capsys.readouterr().err == "crossopt: --cpus: this does not apply to a question about joint designs (leave it out)\n"
