"""Every command on every kind of wrong file: a sentence and an exit code, whatever the file holds and wherever the words go."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from crossopt.instances.kinds import question_path, standard_input
from tests.commands import exit_code
from tests.extent import FULL, some
from tests.paths import ROOT

TINY = question_path(Path("tiny")).read_bytes()
RESULT = (ROOT / "reports/gallery/quickstart.json").read_bytes()
DEEP = 20_000

FILES: dict[str, bytes] = {
    "empty": b"",
    "blank": b" \n\n\t\n",
    "zeros": b"\0" * 300,
    "latin": "name: gr\xf6\xdfe\nkind: codesign\n".encode("latin-1"),
    "utf16": TINY.decode().encode("utf-16"),
    "image": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "zip": b"PK\x03\x04" + bytes(200),
    "gzip": b"\x1f\x8b\x08\x00" + bytes(40),
    "null": b"null\n",
    "list": b"[1, 2, 3]\n",
    "number": b"42\n",
    "prose": b"This is a letter, and it asks nothing.\nIt has a second line: here.\n",
    "nan": b'{"kind": "codesign", "value": NaN}',
    "infinite": b'{"kind": "front", "points": [1e999]}',
    "kind": b'{"kind": 3, "format": 2, "question": []}',
    "cut": RESULT[: len(RESULT) // 2],
    "bare": b'{"kind": "codesign", "format": 3, "question": {}}',
    "foreign": b'{"kind": "serving", "format": 3, "question": {}, "answer": null}',
    "nested": b"[" * DEEP + b"]" * DEEP,
    "mappings": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "alias": b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
    "tag": b"!!python/object/apply:os.system ['true']\n",
    "documents": b"kind: codesign\n---\nkind: codesign\n",
    "line": b"kind: " + b"x" * 200_000 + b"\n",
    "controls": b"kind: code\x1b[31msign\n\x07: 1\n",
    "table": b"alpha,beta\n1,2\n3\n",
    "quotes": b'gpu,model\n"a100,b\n',
    "study": b"kind: study\nquestions: 7\n",
    "placement": b'{"nodes": [{"id": 1}], "edges": [[1, 2]]}',
}
NAMES = {
    "empty": "gr\u00f6\u00dfe \u2713.yaml",
    "list": "a\nline.json",
    "table": "runs.csv",
    "zip": "page.onnx",
    "utf16": "q.txt",
    "controls": "red\x1b[31m\x07.yaml",
    "zeros": "model.et",
}
"""What files are called, where not by their own name with .yaml or .json."""
COMMANDS: dict[str, tuple[str, ...]] = {
    "validate": ("validate", "FILE"),
    "solve": ("solve", "FILE", "--time-limit", "1s"),
    "json": ("solve", "FILE", "--json", "--time-limit", "1s"),
    "pareto": ("solve", "FILE", "--pareto", "step_time,power", "--time-limit", "1s"),
    "against": ("solve", "tiny", "--against", "FILE", "--time-limit", "1s"),
    "evaluate": ("evaluate", "FILE"),
    "explain": ("explain", "FILE", "--time-limit", "1s"),
    "relaxation": ("explain", "FILE", "--relaxation", "--time-limit", "1s"),
    "compare": ("compare", "FILE", "--time-limit", "1s"),
    "check": ("check", "FILE"),
    "report": ("report", "FILE", "--out", "-"),
    "csv": ("report", "FILE", "--as", "csv", "--out", "-"),
    "export": ("export", "FILE"),
    "vipr": ("export", "FILE", "--as", "vipr", "--out", "made.vipr"),
    "sweep": ("sweep", "FILE", "--dry-run", "--store", "kept"),
    "status": ("sweep", "status", "FILE"),
    "table": ("sweep", "table", "FILE"),
    "accuracy": ("accuracy", "FILE"),
    "calibrate": ("calibrate", "FILE", "--gpu", "a100-80g"),
    "import": ("import", "FILE"),
    "plan": ("plan", "FILE", "--gpus", "8xh100", "--tokens", "1B", "--context", "8k"),
    "quantize": ("quantize", "FILE", "--hardware", "h100-sxm", "--formats", "fp8"),
}
REFUSALS = {2, 3}


def written(folder: Path, name: str) -> Path:
    data = FILES[name]
    path = folder / NAMES.get(name, f"{name}.{'json' if data[:1] in (b'{', b'[') else 'yaml'}")
    path.write_bytes(data)
    return path


def refused(code: int, out: str, err: str) -> bool:
    """Whether it is a sentence on standard error alone, with a code that says so, and no sign that acts on a terminal."""
    plain = not any(ord(sign) < 32 and sign != "\n" for sign in err)
    return code in REFUSALS and not out and bool(err.strip()) and plain and "Traceback" not in err and "internal error" not in err


READ_FROM_A_PIPE = ("validate", "solve", "json", "evaluate", "explain", "compare")
"""Commands that read a question from standard input."""


@pytest.mark.parametrize("command", READ_FROM_A_PIPE)
def test_wrong_words_of_standard_input_are_refused_in_a_sentence(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    faults = []
    for name, data in some(list(FILES.items()), 10):
        standard_input.cache_clear()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        code = exit_code([word if word != "FILE" else "-" for word in COMMANDS[command]])
        captured = capsys.readouterr()
        if not refused(code, captured.out, captured.err):
            faults.append((name, code, captured.out[:200], captured.err[:300]))
    standard_input.cache_clear()
    assert faults == []


IN_C = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "NO_COLOR": "1", "TERM": "dumb"}
EACH_IN_C = """
import json, sys
from pathlib import Path
from tests.commands import exit_code
from tests.reports.commands.test_wrong_files import COMMANDS
codes, files = [], sorted(path.name for path in Path().iterdir())
for words in COMMANDS.values():
    codes += [exit_code([word if word != "FILE" else name for word in words]) for name in files]
print(json.dumps(codes))
"""


@pytest.mark.process
def test_words_are_plain_in_the_c_locale_without_a_terminal(tmp_path: Path) -> None:
    """What the locale cannot write, such as the name of a file, is written as other signs, and costs no command its end."""
    for name in ("empty", "latin", "image", "cut", "list", "controls"):
        written(tmp_path, name)
    environment = {**os.environ, **IN_C, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", EACH_IN_C], capture_output=True, check=False, timeout=600, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr.decode()
    assert set(json.loads(done.stdout)) <= REFUSALS
    assert done.stderr.isascii()
    said = done.stderr.decode()
    assert "\x1b" not in said
    assert "Traceback" not in said
    assert "internal error" not in said


@pytest.mark.process
def test_an_answer_is_whole_in_the_c_locale_without_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "gr\u00f6\u00dfe.yaml").write_bytes(TINY)
    environment = {**os.environ, **IN_C, "PYTHONPATH": os.pathsep.join(sys.path)}
    program = [sys.executable, "-m", "crossopt.reports.cli", "solve", "gr\u00f6\u00dfe.yaml"]
    text, data = (
        subprocess.run([*program, *more], capture_output=True, check=True, timeout=600, cwd=tmp_path, env=environment, input=b"").stdout
        for more in ((), ("--json",))
    )
    assert text.isascii()
    assert b"proved optimal" in text
    assert json.loads(data)["proved"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_file_is_refused_in_a_sentence_on_terminals_of_any_width(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    faults = []
    first = list(COMMANDS).index(command)
    for number, name in enumerate((*FILES, "folder", "missing", "loop")):
        if not FULL and (number + first) % 3:
            continue
        monkeypatch.setenv("COLUMNS", ("40", "80", "200")[number // 3 % 3])
        path = written(tmp_path, name) if name in FILES else tmp_path / f"{name}.yaml"
        if name == "folder":
            path.mkdir()
        if name == "loop":
            path.symlink_to(path)
        code = exit_code([word if word != "FILE" else path.name for word in COMMANDS[command]])
        captured = capsys.readouterr()
        if not refused(code, captured.out, captured.err):
            faults.append((name, code, captured.out[:200], captured.err[:300]))
    assert faults == []
