"""The commands as functions, as a notebook uses them."""

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml

import crossopt
from crossopt.instances.errors import InstanceError, RefusedError
from tests.instances.catalogue.sections import LLAMA
from tests.paths import INSTANCES, ROOT
from tests.samples import CHAIN

SINGLE = {"tensor": 4, "pipeline": 1, "microbatch": 2, "recompute": "none"}


def test_an_answer_says_what_the_command_says_and_survives_its_check(tmp_path: Path) -> None:
    answer = crossopt.solve("tiny")
    assert (answer.status, answer.proved, answer.gap) == ("OPTIMAL", True, 0.0)
    assert answer.value == answer.bound
    assert answer.answer is not None
    assert "certificate: no design is below" in answer.text
    assert crossopt.check(answer).accepted
    answer.save(tmp_path / "answer.json")
    assert crossopt.check(tmp_path / "answer.json").accepted
    assert not crossopt.check({**answer.data, "bound": 0.9 * (answer.bound or 0.0)}).accepted
    assert "srcdoc=" in answer._repr_html_()
    assert answer.value in {row["value"] for row in answer.table()}
    assert crossopt.report(answer, form="markdown", out=tmp_path / "tables.md") == tmp_path / "tables.md"
    assert crossopt.report(answer, form="markdown") == (tmp_path / "tables.md").read_text(encoding="utf-8")


def test_a_question_is_a_path_a_name_a_text_or_a_mapping() -> None:
    path = INSTANCES / "tiny.yaml"
    text = path.read_text(encoding="utf-8")
    found = {crossopt.solve(one).value for one in (path, str(path), "tiny", text, yaml.safe_load(text))}
    assert len(found) == 1
    assert crossopt.solve(CHAIN).value == crossopt.solve(yaml.safe_load(CHAIN)).value
    assert crossopt.read("gpt2-two-versions").file.schedule == "two-versions"


def test_a_mapping_names_files_from_the_working_folder_and_its_answer_stands_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
    question = yaml.safe_load((INSTANCES / "tiny.yaml").read_text(encoding="utf-8"))
    question["workload"] = {"config": "config.json", "sequence": 1024, "global_batch": 32}
    answer = crossopt.solve(question)
    with pytest.raises(InstanceError, match=r"'nowhere\.json': there is no such file"):
        crossopt.solve({**question, "workload": {**question["workload"], "config": "nowhere.json"}})
    (tmp_path / "config.json").unlink()
    assert crossopt.check(answer).accepted


def test_settings_are_laid_over_a_question() -> None:
    assert crossopt.solve("tiny", settings={"cluster.devices": 16, "tensor": [1, 2]}).answer.design.plan.data > 4
    assert crossopt.evaluate("tiny", settings=SINGLE).plan.tensor == 4
    counts = crossopt.solve("tiny", settings={"cluster.devices": [4, 8]})
    assert len(counts.data["parts"]) == 2
    assert crossopt.check(counts).accepted


def test_a_plan_of_an_answer_is_priced_by_its_settings_without_reading_the_question_again(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"overlap": ["none", "both"], "pipeline": [1], "zero": [0, 1], "tensor": [1, 2], "recompute": ["none"]}
    question = crossopt.read("small", settings)
    answer = crossopt.solve("small", settings=settings)
    plan = asdict(answer.evaluation.plan)
    open_choices = [name for name, values in question.plan_options if len(values) > 1]
    assert plan["overlap"] == "data"  # what `both` comes to in one stage
    monkeypatch.setattr("crossopt.reports.api.read_question", None)
    assert crossopt.evaluate(question, {name: plan[name] for name in open_choices}).value == answer.value
    assert crossopt.evaluate(answer).value == answer.value


def test_engines_are_compared_and_answers_explained() -> None:
    runs = crossopt.compare("tiny", ["exhaustive", "boxes", "expert"])
    assert [run.engine for run in runs] == ["exhaustive", "boxes", "expert"]
    assert runs[0].value == runs[1].value <= runs[2].value
    assert "is the optimum" in str(crossopt.explain("tiny"))
    assert len(crossopt.accuracy(INSTANCES / "measured-sample.csv")["runs"]) > 3


def test_what_is_wrong_is_said_in_words() -> None:
    with pytest.raises(crossopt.InstanceError, match="cluster: this key is missing"):
        crossopt.solve({"kind": "codesign", "workload": {"model": "gpt3-125m"}})
    with pytest.raises(crossopt.InstanceError, match="several designs are left"):
        crossopt.evaluate("tiny")
    with pytest.raises(RefusedError, match="the engine 'nobody' answers no question of kind codesign"):
        crossopt.solve("tiny", engine="nobody")
    with pytest.raises(RefusedError, match="numbers of devices are given, but one is needed"):
        crossopt.explain("tiny", {"cluster.devices": [4, 8]})
    with pytest.raises(RefusedError, match="studies ask many questions, and here one is needed"):
        crossopt.solve("kind: study\ntitle: two\n")
    with pytest.raises(RefusedError, match="this needs a joint design"):
        crossopt.evaluate("gpt2-two-versions")


@pytest.mark.process
def test_importing_waits_for_nothing() -> None:
    program = "import json, sys, crossopt; dir(crossopt); print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT.parent)
    assert set(json.loads(done.stdout)).isdisjoint({"numpy", "yaml", "ortools", "highspy", "pulp"})
