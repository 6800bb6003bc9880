"""Functions of Python: the examples of their docstrings run, saved results are read, and errors name the arguments of the call."""

import doctest
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import crossopt
from crossopt.instances.errors import InstanceError, RefusedError
from crossopt.instances.operators.graph_file import graph_text
from crossopt.reports import api
from tests.every import every
from tests.instances.layers.test_network import small
from tests.samples import CHAIN


def test_the_examples_of_the_docstrings_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(api, extraglobs={"crossopt": crossopt})
    assert found.attempted > 25
    assert found.failed == 0
    functions = [getattr(crossopt, name) for name in crossopt.__all__ if getattr(api, name, None) is getattr(crossopt, name)]
    lacking = {function.__name__ for function in functions if "Example:" not in (function.__doc__ or "")}
    assert lacking - {"Answer", "Evaluation", "InstanceError"} == set()


def test_a_saved_result_is_read_as_what_the_function_returned(tmp_path: Path) -> None:
    answers = [crossopt.solve("tiny"), crossopt.solve(CHAIN)]
    for answer in answers:
        answer.save(tmp_path / "answer.json")
        again = crossopt.read(tmp_path / "answer.json")
        assert isinstance(again, crossopt.Answer)
        assert again.data == answer.data
        assert str(again) == str(answer)
    forged = {**answers[0].data, "value": 0.5 * float(answers[0].value or 0.0)}
    (tmp_path / "forged.json").write_text(json.dumps(forged), encoding="utf-8")
    with pytest.raises(Exception, match="value"):
        crossopt.read(tmp_path / "forged.json")
    with pytest.raises(RefusedError, match="leave out settings and workload"):
        crossopt.read(tmp_path / "answer.json", {"tensor": 2})


def test_a_check_is_printed_line_by_line() -> None:
    answer = crossopt.solve("tiny")
    assert str(crossopt.check(answer)).splitlines()[-1] == "accepted"
    lines = str(crossopt.check({**answer.data, "value": 1.0})).splitlines()
    assert lines[-1] == "refused"
    assert any(line.startswith("REFUSED: ") for line in lines)


def test_saved_fronts_and_comparisons_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from crossopt.reports.cli import main

    out = str(tmp_path / "saved.json")
    assert main(["solve", "small", "--pareto", "step_time,energy_per_token", "--points", "2", "--out", out]) == 0
    front = crossopt.read(out)
    assert isinstance(front, crossopt.DesignFront)
    assert front.table() == crossopt.front("small", "step_time", "energy_per_token", points=2).table()
    assert main(["compare", "tiny", "--engines", "boxes,expert", "--out", out]) == 0
    runs = crossopt.read(out)
    assert isinstance(runs, crossopt.Comparison)
    assert [(run.question, run.engine, run.value) for run in runs] == [
        (run.question, run.engine, run.value) for run in crossopt.compare("tiny", ["boxes", "expert"])
    ]
    capsys.readouterr()


def test_an_export_is_what_the_command_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from crossopt.reports.cli import main

    answer = crossopt.solve("tiny")
    answer.save(tmp_path / "answer.json")
    assert main(["export", str(tmp_path / "answer.json"), "--as", "torchtitan", "--job", "slurm"]) == 0
    assert crossopt.export(answer, "torchtitan", job="slurm") == capsys.readouterr().out
    assert crossopt.export("tiny", "lp", out=tmp_path / "tiny.lp", settings={"tensor": 1})
    assert (tmp_path / "tiny.lp").exists()
    with pytest.raises(RefusedError, match=r"^form: 'megatrn' is unknown"):
        crossopt.export(answer, "megatrn")
    for form in ("devices", "pytorch", "replicas", "plan", "vllm", "policy"):
        with pytest.raises(RefusedError, match=rf"^form {form}: .* is about a joint design"):
            crossopt.export(answer, form)


def test_networks_are_read_and_their_formats_chosen(tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    path.write_text(graph_text(small()), encoding="utf-8")
    network = crossopt.import_graph(path)
    assert network.graph == small()
    answer = crossopt.quantize(path, "h100-sxm", ["fp8"])
    assert answer.proved
    assert crossopt.check(answer).accepted
    with pytest.raises(RefusedError, match=r"^formats: 'fp9' is unknown"):
        crossopt.quantize(path, "h100-sxm", ["fp9"])
    with pytest.raises(RefusedError, match=r"^budget size: "):
        crossopt.quantize(path, "h100-sxm", ["fp8"], budget={"size": "3 s"})


def test_faults_are_returned_by_validate() -> None:
    assert crossopt.validate("tiny") == ()
    faults = crossopt.validate("tiny", {"tensor": 3, "cluster.devices": "few"})
    assert {fault.path for fault in faults} == {"cluster.devices"}
    assert "[from settings cluster.devices=few]" in faults[0].message


@every(
    ("call", "said"),
    [
        (lambda: crossopt.evaluate("tiny", {"tensor": 4}), 'use design={"tensor": 8}'),
        (lambda: crossopt.evaluate("tiny", {"tensr": 4}), "[from design tensr=4]"),
        (lambda: crossopt.solve("tiny", settings={"tensr": 4}), "[from settings tensr=4]"),
        (lambda: crossopt.plan("llama3-8b", "64xh100", deadline=60), "deadline: 60 has no unit (write 60d for days)"),  # type: ignore[arg-type]
        (lambda: crossopt.plan("llama3-8b", "64xh100", precision="fp7"), "precision: 'fp7' is unknown (did you mean 'fp8'?)"),
        (lambda: crossopt.plan("llama3-8b", "64xh100", mode="cheapest"), 'mode="cheapest": the length of the run is needed'),
        (lambda: crossopt.plan("llama3-8b", "64xh100", mode="best"), "mode: 'best' is unknown (one of"),  # type: ignore[arg-type]
        (lambda: crossopt.front("tiny", "step_time", "cost"), "did you mean run_cost? there are step_time, "),
    ],
)
def test_an_error_names_the_argument(call: Callable[[], object], said: str) -> None:
    with pytest.raises((InstanceError, ValueError)) as caught:
        call()
    assert said in str(caught.value)
    assert "--" not in str(caught.value)


def test_the_verdict_of_a_plan_says_what_to_do_in_python() -> None:
    text = str(crossopt.plan("llama3-8b", "8xh100"))
    assert "next" in text
    assert "`text`" in text
    assert "--save" not in text


def test_commands_and_flags_of_other_programs_stay_as_they_are() -> None:
    text = "--time-limit: too short (see `crossopt solve FILE --out R.json`; --tp-comm-overlap hides it)"
    assert api.in_python(text) == "time_limit: too short (see `crossopt solve FILE --out R.json`; --tp-comm-overlap hides it)"


@pytest.mark.parametrize("source", ["tiny", CHAIN])
def test_what_read_returned_is_a_question_of_every_function(source: object) -> None:
    question = crossopt.read(source)
    assert crossopt.validate(question) == ()
    answer = crossopt.solve(question)
    assert answer.value == crossopt.solve(answer).value == crossopt.solve(source).value
    assert len(list(crossopt.compare(question, ["auto"]))) == 1


def test_settings_are_laid_over_what_read_returned() -> None:
    question = crossopt.read("tiny", {"tensor": [1, 2]})
    design = {"tensor": 2, "pipeline": 1, "microbatch": 2, "recompute": "none"}
    more, both = {"cluster.devices": 16}, {"tensor": [1, 2], "cluster.devices": 16}
    assert crossopt.solve(question, settings=more).value == crossopt.solve("tiny", settings=both).value
    assert crossopt.evaluate(question, design, settings=more).value == crossopt.evaluate("tiny", design, settings=both).value
    with pytest.raises(TypeError, match="what read returned, not int"):
        crossopt.solve(5)  # type: ignore[arg-type]


def _nested(levels: int) -> dict[str, object]:
    found: dict[str, object] = {}
    for _ in range(levels):
        found = {"kind": found}
    return found


def test_what_no_file_can_hold_is_refused_in_a_sentence() -> None:
    round_again = _nested(2)
    round_again["kind"] = round_again
    unlike = [{"kind": {1}}, {"kind": b"x"}, {"kind": 10**5_000}, {("a", "b"): 1}, round_again, _nested(100_000)]
    longest = ["[" * 5_000, "a" * 300, "a/" * 3_000, Path("x" * 5_000)]
    words = {"has no form in a file": unlike, "a path or a name .* is needed": longest}
    for sentence, questions in words.items():
        for question in questions:
            for ask in (crossopt.solve, crossopt.read, crossopt.evaluate, crossopt.explain, crossopt.compare):
                with pytest.raises(InstanceError, match=sentence):
                    ask(question)
            assert crossopt.validate(question)
    with pytest.raises(InstanceError, match=r"tensor: .* has no form in a file"):
        crossopt.solve("tiny", settings={"tensor": {1, 2}})
    with pytest.raises(TypeError, match="a result is an Answer or a path, not bytes"):
        crossopt.check(b"tiny")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a result is an Answer or a path, not NoneType"):
        crossopt.report(None)  # type: ignore[arg-type]


def test_numbers_of_numpy_and_paths_are_written_as_what_they_are(tmp_path: Path) -> None:
    found = crossopt.solve("tiny", settings={"tensor": np.arange(1, 3), "cluster.devices": np.int64(8)})
    assert found.value == crossopt.solve("tiny", settings={"tensor": [1, 2], "cluster.devices": 8}).value
    graph = tmp_path / "graph.json"
    graph.write_text(graph_text(small()), encoding="utf-8")
    question = {"kind": "memory", "graph": graph, "hardware": "a100-80g", "budget_share": 1}
    assert crossopt.read(question).name == crossopt.read({**question, "graph": str(graph)}).name


@every(
    ("call", "error", "sentence"),
    [
        (lambda: crossopt.solve("tiny", gap=2), ValueError, "gap: 2 is no share from 0 to below 1"),
        (lambda: crossopt.solve("tiny", gap="1%"), ValueError, "gap: '1%' is no share"),
        (lambda: crossopt.solve("tiny", time_limit=float("nan")), ValueError, "time_limit: nan is no number of seconds from 0 on"),
        (lambda: crossopt.solve("tiny", time_limit="-1 s"), ValueError, "time_limit: '-1 s' is negative"),
        (lambda: crossopt.solve("tiny", engine=None), TypeError, "engine: a name is needed"),
        (lambda: crossopt.solve("tiny", seed=1.5), ValueError, "seed: 1.5 is no whole number"),
        (lambda: crossopt.solve("tiny", settings=["tensor=1"]), TypeError, "settings: a mapping of keys to values is needed"),
        (lambda: crossopt.evaluate("tiny", 5), TypeError, "design: a mapping of choices to values or an answer is needed, not int"),
        (lambda: crossopt.plan("llama3-8b", "8xh100", time_limit="x"), ValueError, "time_limit: 'x' is no time"),
        (lambda: crossopt.plan("llama3-8b", "8xh100", batch=64.5), ValueError, "batch: 64.5 is no whole number"),
    ],
)
def test_arguments_without_sense_are_refused_before_anything_is_searched(
    call: Callable[[], object], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error) as refused:
        call()
    assert str(refused.value).startswith(sentence)


def test_limits_are_numbers_of_numpy_or_without_end_as_well() -> None:
    assert crossopt.solve("tiny", gap=np.float64(0.0), seed=np.int64(3), time_limit=10**400).proved
    assert crossopt.plan("llama3-8b", "8xh100", time_limit=20).plan.data == crossopt.plan("llama3-8b", "8xh100").plan.data
