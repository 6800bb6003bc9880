"""What newcomers get wrong: each mistake is answered in one or two sentences that name the place and the remedy, without a traceback."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from crossopt.instances.kinds import question_path, standard_input
from crossopt.reports.cli import main
from tests.commands import exit_code

TINY = question_path(Path("tiny")).read_text(encoding="utf-8")
LONGEST = 600
"""Characters of an answer: lists of known names take the most of it."""


def tiny(old: str, new: str) -> str:
    assert old in TINY
    return TINY.replace(old, new)


QUESTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "a key mistyped": (tiny("hardware:", "hardwear:"), (":7:1: hardwear: unknown key", "did you mean 'hardware'?")),
    "a nested key mistyped": (tiny("global_batch", "global_bach"), (":5:30: workload.global_bach", "did you mean 'global_batch'?")),
    "a choice by another tool's name": (
        tiny("microbatch:", "micro_batch:"),
        ("choices.micro_batch", "micro_batch is called microbatch here"),
    ),
    "a unit of something else": (f"{TINY}budget: {{power: 400 GB}}\n", ("budget.power", "a size in bytes, a power is needed", "'400 W'")),
    "no unit": (f"{TINY}budget: {{power: 400}}\n", ("budget.power: '400' has no unit", "for example '400 W'")),
    "no unit of a time": (f"{TINY}budget: {{step_time: 9}}\n", ("budget.step_time: '9' has no unit", "'9 s'")),
    "months": (f"{TINY}budget: {{step_time: 3 months}}\n", ("budget.step_time", "write it in days: about '91 d'")),
    "a unit in small letters": (f"{TINY}budget: {{power: 400 w}}\n", ("unknown unit 'w'", "did you mean '400 W'?")),
    "a tab": (tiny("cluster:", "\tcluster:"), (":6:1: a tab cannot indent", "use spaces")),
    "no colon": (tiny("hardware: ", "hardware "), (":7:1: a ':' is missing", "write 'key: value'")),
    "no space after the colon": (tiny("hardware: ", "hardware:"), (":7:1: a space is missing after the ':'", "write 'hardware: a100-80g'")),
    "a bracket that stays open": (tiny("[none, full]", "[none, full"), ("is not closed, or a comma is missing",)),
    "a quote that stays open": (tiny("gpt3-125m,", '"gpt3-125m,'), (":5:19: a quote is opened and never closed",)),
    "a model mistyped": (tiny("gpt3-125m,", "gpt3-126m,"), ("no known workload", "did you mean 'gpt3-125m'?", "crossopt list workloads")),
    "an id of the hub": (tiny("gpt3-125m,", "Qwen/Qwen3-32B,"), ("no known workload", "did you mean 'qwen3-32b'?")),
    "an id of the hub without a model": (tiny("gpt3-125m,", "foo/Bar-7B,"), ("no known workload", "config.json")),
    "a device without its memory": (tiny("a100-80g", "a100"), ("no known device", "'a100-40g' or 'a100-80g'")),
    "an unknown stack": (f"{TINY}stack: deepspede\n", ("stack", "did you mean 'deepspeed'?")),
    "a negative number": (tiny("devices: 8,", "devices: -8,"), ("cluster.devices: '-8' is too small", "at least 1")),
    "a fraction": (tiny("devices: 8,", "devices: 8.5,"), ("cluster.devices: '8.5' is not a whole number",)),
    "a list without brackets": (tiny("[1, 2, 4]", "1, 2, 4"), ("'1, 2, 4' is not a number", "write a list: [1, 2, 4]")),
    "a word in quotes": (tiny("devices: 8,", "devices: 'eight',"), ("cluster.devices: 'eight' is not a number",)),
    "a number in words": (tiny("devices: 8,", "devices: eight,"), ("cluster.devices: 'eight' is not a number",)),
    "a percentage": (f"{TINY}efficiency: {{overlap: 50%}}\n", ("efficiency.overlap: '50%' is not a number", "write '0.5'")),
    "a large number with a letter": (tiny("global_batch: 64", "global_batch: 15T"), ("'15T' is not a number", "write 15e12")),
    "a list for one value": (
        tiny("devices_per_node: 8", "devices_per_node: [8]"),
        ("cluster.devices_per_node: this is a list", "without brackets"),
    ),
    "a key twice": (f"{TINY}hardware: h100-sxm\n", (":14:1: hardware: the key is given twice, on line 7 and on line 14", "keep one")),
    "a kind mistyped": (tiny("kind: codesign", "kind: codesing"), ("kind: 'codesing' is unknown", "did you mean 'codesign'?")),
    "a kind as a list": (tiny("kind: codesign", "kind: [codesign]"), ("kind: one word is needed", "write kind: codesign", "1 fault")),
    "a kind of others mistyped": (
        "kind: servng\nname: q\nworkload: {model: gpt3-125m}\ncluster: {devices: 8}\n",
        ("kind: 'servng' is unknown", "did you mean 'serving'?", "1 fault"),
    ),
    "a kind that is not there": (tiny("kind: codesign", "kind: checkpoints"), ("kind: 'checkpoints' is unknown", "one of codesign,")),
    "an unknown precision": (tiny("bf16", "fp7"), ("workload.precision: 'fp7' is unknown", "did you mean 'fp8'?")),
    "devices that fill no node": (
        tiny("devices: 8,", "devices: 12,"),
        ("12 devices are no whole number of groups of 8", "a multiple of 8"),
    ),
    "no hardware": (tiny("hardware: a100-80g\n", ""), ("neither hardware nor technology is given", "crossopt list hardware")),
    "no workload": (TINY.replace(TINY.splitlines()[4], "# none"), ("workload: this key is missing",)),
    "a list at the top": ("- kind: codesign\n", ("this is a list, a mapping is needed", "write 'key: value' lines")),
    "one word": ("tiny\n", ("this is a single value, a mapping is needed", "write 'key: value' lines")),
    "nothing": ("", ("the document is empty", "write 'key: value' lines")),
}


@pytest.mark.parametrize("mistake", QUESTIONS)
def test_a_mistake_in_a_question_is_named_with_its_place_and_its_remedy(
    mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text, said = QUESTIONS[mistake]
    monkeypatch.chdir(tmp_path)
    Path("q.yaml").write_text(text, encoding="utf-8")
    assert main(["validate", "q.yaml"]) == main(["solve", "q.yaml"]) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("q.yaml:")
    for part in said:
        assert part in captured.err
    assert len(captured.err) <= 2 * LONGEST


FILES: dict[str, bytes] = {
    "q.yaml": TINY.encode(),
    "graphs.yaml": b"kind: placement\ngraph: cut.json\n",
    "model.onnx": b"\x08\x07\x12\x07pytorch",
    "config.json": json.dumps({"hidden_size": 64, "model_type": "llama", "num_hidden_layers": 2}).encode(),
    "broken.json": b'{"kind": "codesign",',
    "settings.toml": b"[workload]\nmodel = 'gpt3-125m'\n",
    "note.txt": b"hello\n",
    "runs.csv": b"gpu,model\n1,2\n",
    "latin.yaml": "kind: codesign\ndescription: café\n".encode("latin-1"),
    "binary.yaml": bytes(range(256)),
    "empty.json": b"",
    "result.json": b'{"format": 3, "kind": "codesign"}',
    "page.html": b"<!DOCTYPE html>\n<html><head><title>q \xc2\xb7 crossopt report</title>",
    "cut.json": b'{"graph": "operators", "nodes":',
    "semicolons.csv": b"name;rows;dimension\na;10;4\n",
}
NEXT = "crossopt solve FILE --out RESULT.json"
COMMANDS: tuple[tuple[str, int, tuple[str, ...]], ...] = (
    ("solve tinny", 3, ("neither a file nor a question of this name", "did you mean 'tiny'?", "crossopt list instances")),
    ("solve p.yaml", 3, ("p.yaml:1:1: there is no such file", "did you mean 'q.yaml'?")),
    ("solve folder", 3, ("folder:1:1: this is a directory", "name a YAML file")),
    ("solve model.onnx", 3, ("this is a model of ONNX, not a question", "crossopt import")),
    ("solve config.json", 3, ("this is the configuration of a model, not a question", "workload: {config: FILE}")),
    ("solve broken.json", 3, ("broken.json:1:",)),
    ("solve settings.toml", 3, ("this text is neither a question in YAML",)),
    ("solve note.txt", 3, ("this text is neither a question in YAML",)),
    ("solve runs.csv", 3, ("this is a table, not a question", "crossopt accuracy")),
    ("solve latin.yaml", 3, ("latin.yaml:2:17: byte 0xe9 is not UTF-8 text", "save the file as UTF-8")),
    ("solve binary.yaml", 3, ("this is a binary file", "name a file of text")),
    ("solve result.json", 3, ("this is a result, not a question", "crossopt check")),
    ("compare q.yaml result.json", 3, ("result.json:1:1: this is a result, not a question", "crossopt report")),
    ("evaluate q.yaml", 3, ("several designs are left, one is needed", "tensor (3 options)", "use --set")),
    ("check q.yaml", 3, ("this is a question, not a result", NEXT)),
    ("check model.onnx", 3, ("this is a model of ONNX, not a result", "crossopt import")),
    ("check empty.json", 3, ("this file is empty", NEXT)),
    ("check resul.json", 3, ("there is no such file", "did you mean 'result.json'?")),
    ("report q.yaml", 3, ("this is a question, not a result", NEXT)),
    ("export q.yaml", 2, ("a question has no plan", "--as lp")),
    ("export result.json --as megatorn", 2, ("--as: 'megatorn' is unknown", "did you mean megatron?")),
    ("solve q.yaml --out no/such/a.json", 2, ("--out no/such/a.json: there is no folder no/such", "make it first")),
    ("solve q.yaml --out folder", 2, ("--out folder: this is a directory", "name a file")),
    ("solve q.yaml --out q.yaml", 2, ("--out q.yaml: this file is read", "name another file")),
    ("solve q.yaml --log q.yaml", 2, ("--log q.yaml: this file is read", "name another file")),
    ("embed runs.csv --devices 8 --out runs.csv", 2, ("--out runs.csv: this file is read", "name another file")),
    ("place model.onnx --devices 4xh100 --save model.onnx", 2, ("--save model.onnx: this file is read",)),
    ("solve graphs.yaml --out cut.json", 2, ("--out cut.json: graphs.yaml reads this file", "name another file")),
    ("plan llama3-8b --gpus 64xh100 --save a.yaml --out a.yaml", 2, ("--out a.yaml: --save is written there", "name another file")),
    ("place model.onnx --devices 4xh100 --save a.yaml --out a-graph.json", 2, ("the graph of --save is written there",)),
    ("report result.json --out a.docx", 2, ("a report is not written as .docx", "--as html")),
    ("validate q.yaml result.json", 2, ("'result.json' is one file too many",)),
    ("check folder", 3, ("this is a directory", "name a result")),
    ("plan note.txt --gpus 64xh100", 2, ("'note.txt'", "not JSON", "config.json")),
    ("plan llama3-8b --gpus 64xh100 --save", 2, ("--save: its value is missing",)),
    ("plan llama3-8b --gpus 64xh100 --batch 0", 2, ("--batch: '0' is no count", "512, or 4M for tokens")),
    ("plan llama3-8b --gpus 64xh100 --tokens 1T --deadline 0d", 2, ("--deadline: zero is no figure", "leave it out")),
    ("solve q.yaml --time-limit 60", 2, ("--time-limit: 60 has no unit", "write 60s")),
    ("solve q.yaml --time-limit -5s", 2, ("--time-limit: '-5s' is below zero", "write 5s")),
    ("solve q.yaml --engine exhaustiv", 2, ("the engine 'exhaustiv'", "did you mean 'exhaustive'?")),
    ("solve q.yaml --engine stages", 2, ("the engine 'stages' answers no question of kind codesign", "one of auto,")),
    ("solve q.yaml --form strong", 2, ("--form strong: the engine auto solves no integer model", "--engine milp")),
    ("solve q.yaml --gap 5", 2, ("--gap: '5' is no gap", "0.1%")),
    ("solve q.yaml --set tensor", 3, ("a setting is written KEY=VALUE", "tensor=8")),
    ("solve q.yaml --set tensr=4", 3, ("did you mean 'tensor'?", "[from --set tensr=4]")),
    ("solve q.yaml --pareto step_time", 2, ("--pareto step_time: two different figures are needed", "step_time,power")),
    ("solve q.yaml --pareto step_time,power --points 0", 2, ("--points: 0 is too few", "write 1 or more")),
    ("solve q.yaml --cpus 2", 2, ("--cpus: this does not apply to a question about joint designs", "leave it out")),
    ("explain q.yaml --force tensor=16", 3, ("16 does not divide the 8 devices (write 1, 2, 4, 8)", "[from --force tensor=16]")),
    ("explain q.yaml --force tensor", 3, ("--force tensor", "a setting is written KEY=VALUE")),
    ("solve q.yaml --set zero=3 --set zero=1", 2, ("solve: --set: zero=3 and zero=1 say two things", "keep one")),
    ("sweep q.yaml --set tensor=2 --set tensor=4", 2, ("--set: tensor=2 and tensor=4 say two things",)),
    ("explain q.yaml --force zero=3 --force tensor=8 --force choices.zero=1", 2, ("--force: zero=3 and choices.zero=1 say two things",)),
    ("solve gpt3-13b-on-8 --set memory=1GB --memory 2GB", 2, ("--memory: --set memory=1GB says otherwise", "keep one")),
    ("plan gpt3-125m --gpus 8xa100-80g --save q.yaml", 2, ("--save q.yaml: q.yaml is there, and `crossopt plan", "name another file")),
    ("plan gpt3-125m --gpus 8xa100-80g --save result.json", 2, ("--save result.json: a question is written as YAML", "result.yaml")),
    ("explain gpt3-13b-on-8", 2, ("`explain` does not answer questions about operators of a graph on devices", "`solve` does")),
    ("solve congested-links", 2, ("crossopt compare congested-links",)),
    ("sweep q.yaml --store runs", 2, ("this is one question", "crossopt solve q.yaml")),
    ("slove q.yaml", 2, ("'slove' is unknown", "did you mean solve?")),
    ("solve q.yaml --timelimit 5s", 2, ("--timelimit: there is no such option", "did you mean --time-limit?")),
    ("plan llama3-8b --gpus 8xh100 --tpot 20ms", 2, ("--tpot: there is no such option", "it is one of `crossopt serve`")),
    ("list gpus", 2, ("'gpus' is unknown", "one of hardware")),
    ("list hardware --show a100", 2, ("'a100' is no known device", "'a100-40g' or 'a100-80g'")),
    ("place no.onnx --devices 4xh100", 2, ("no.onnx: there is no such file", "check the name")),
    ("place - --devices 4xh100", 2, ("a graph is not read from standard input", "name its file")),
    ("embed empty.json --devices 8", 2, ("empty.json: the file is empty", "name,rows,dimension")),
    ("plan llama3-8b --gpus 64xh100 --verbose", 2, ("--verbose: plan has none", "crossopt solve run.yaml --verbose")),
    ("embed q.yaml --devices 8", 2, ("q.yaml: this is a question, not a list of tables", "crossopt solve")),
    ("plan llama3-8b --gpus 64xh100 --tokens 1T --deadline 30 days", 2, ("'days' is one argument too many", "30d")),
    ("plan llama3-8b --gpus 64xh1000 --tokens 1T", 2, ("'h1000' is no device that is known", "did you mean h100?")),
    ("plan meta-llama/Llama-9 --gpus 64xh100 --tokens 1T", 2, ("is not in the registry", "registered are llama2-13b", "hf download")),
    ("plan llama3-8b --gpus 64xh100 --tokens -2T", 2, ("--tokens: '-2T' is below zero", "write 2T")),
    ("solve q.yaml --set cluster.failures=1", 3, ("a mapping is needed (with mean_time, checkpoint, restart)",)),
    ("solve q.yaml --set budget.memory=10GiB", 3, ("budget.memory: unknown key", "`cluster: {reserved_memory: 20 GiB}`")),
    ("grade 4", 2, ("the submission to assignment 4 is missing", "crossopt grade 4 FOLDER")),
    ("solve -", 3, ("standard input is empty", "give it a question: `- < FILE`")),
    ("check -", 3, ("standard input is empty", NEXT)),
    ("accuracy q.yaml", 3, ("this is a question, not a table of measured runs", NEXT)),
    ("import q.yaml", 3, ("this is a question, not a trace", NEXT)),
    ("import note.txt", 3, ("neither a trace nor a network that is known", "a model of ONNX")),
    ("solve page.html", 3, ("this is a page that `crossopt report` drew", "name the question, or its result")),
    ("solve no.csv", 3, ("no.csv:1:1: there is no such file", "check the name")),
    ("evaluate empty.json", 3, ("empty.json:1:1: the document is empty", "key: value")),
    ("export no.yaml", 3, ("no.yaml:1:1: there is no such file",)),
    ("validate /dev/stdin", 3, ("standard input is empty", "give it a question: `- < FILE`")),
    ("accuracy -", 3, ("-:1:1: standard input is not read here", "name a file")),
    ("plan q.yaml --gpus 8xh100", 2, ("'q.yaml' is no model", "crossopt solve q.yaml")),
    (
        "plan result.json --gpus 8xh100 --context 8k",
        2,
        ("result.json", "this is a result, not the configuration of a model", "crossopt report"),
    ),
    ("plan no.yaml --gpus 8xh100", 2, ("'no.yaml': there is no such file", "config.json")),
    ("plan - --gpus 8xh100", 2, ("no model is read from standard input", "config.json")),
    ("place q.yaml --devices 4xh100", 3, ("q.yaml:1:1: this is a question, not a graph of operators", NEXT)),
    ("place runs.csv --devices 4xh100", 3, ("this is a table, not a graph of operators", "crossopt embed")),
    ("place note.txt --devices 4xh100", 3, ("note.txt:1:1: this is not JSON", "name a graph in JSON")),
    ("place cut.json --devices 4xh100", 3, ("cut.json:1:32: this is not JSON: it ends too early", "write it again")),
    ("checkpoint empty.json --hardware h100", 3, ("empty.json:1:1: the file is empty", "crossopt import")),
    ("quantize result.json --hardware h100 --formats fp8", 3, ("this is a result, not a graph of operators", "crossopt check")),
    ("embed binary.yaml --devices 8", 2, ("binary.yaml: this is not text in UTF-8", "name a list of tables")),
    ("embed cut.json --devices 8", 2, ("cut.json: this is a graph of operators, not a list of tables", "crossopt place")),
    ("embed semicolons.csv --devices 8", 2, ("columns are separated by semicolons", "separate them by commas")),
    ("embed runs.csv --devices 8", 2, ("runs.csv: this is no list of tables", "name,rows,dimension")),
    ("embed folder --devices 8", 2, ("folder: this is a directory", "name a list of tables")),
    ("embed no.csv --devices 8", 2, ("no.csv: there is no such file", "check the name")),
    ("embed - --devices 8", 2, ("-: standard input is not read here", "name a file")),
)


@pytest.fixture
def ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[[list[str]], tuple[int, str]]:
    """The exit code of a command in a folder with files of all sorts and nothing on standard input, and what it said."""
    monkeypatch.chdir(tmp_path)
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "folder").mkdir()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))

    def run(words: list[str]) -> tuple[int, str]:
        standard_input.cache_clear()
        try:
            code = exit_code(words)
        finally:
            standard_input.cache_clear()
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    return run


@pytest.mark.parametrize(("command", "code", "said"), COMMANDS, ids=[command for command, _, _ in COMMANDS])
def test_a_mistake_on_the_command_line_is_named_with_its_remedy(
    command: str, code: int, said: tuple[str, ...], ended: Callable[[list[str]], tuple[int, str]]
) -> None:
    found, text = ended(command.split())
    assert found == code, text
    for part in said:
        assert part in text
    assert len(text) <= LONGEST
