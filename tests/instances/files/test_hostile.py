"""Files that hang a reader, say a thing twice or steer a terminal: each is one sentence, at once."""

import gzip
import json
import os
import re
from contextlib import suppress
from pathlib import Path
from socket import AF_UNIX, socket

import pytest

from crossopt.instances.errors import InstanceError
from crossopt.instances.files.careful import JsonError, read_strictly
from crossopt.instances.files.document import fault_at, read_text
from crossopt.instances.files.schema import MOST
from crossopt.instances.question import read
from crossopt.reports.cli import main
from tests.paths import ROOT
from tests.samples import NODES

Captured = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
TINY = "kind: codesign\nworkload: {model: gpt3-125m, global_batch: 64}\ncluster: {devices: 8}\nhardware: a100-80g\n"


def endless(folder: Path, name: str) -> tuple[Path, ...]:
    """A pipe that nobody writes to and a device without end, and links to both."""
    pipe, device = folder / f"pipe-{name}", folder / f"device-{name}"
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    links = folder / f"to-pipe-{name}", folder / f"to-device-{name}"
    links[0].symlink_to(pipe)
    links[1].symlink_to(device)
    return pipe, device, *links


COMMANDS = (
    *("check", "report", "solve", "validate", "accuracy", "import", "export --as lp", "export --as devices", "calibrate --gpu a100-80g"),
    *("compare", "compare --split HERE GRAPH", "sweep --store NEW", "course release NEW --roster"),
)
"""Commands, which take a file at their end, or elsewhere."""


@pytest.mark.parametrize("command", COMMANDS)
def test_pipes_and_devices_are_not_read(command: str, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "graph.yaml").write_text(NODES)
    for number, path in enumerate(endless(tmp_path, "x.json")):
        said = {"NEW": tmp_path / f"new{number}", "HERE": path, "GRAPH": tmp_path / "graph.yaml"}
        words = [str(said.get(word, word)) for word in command.split()]
        with suppress(SystemExit):  # of who wrote the command
            assert main(words if str(path) in words else [*words, str(path)]) == 3
        assert "this is not a regular file" in capsys.readouterr().err


def test_a_link_to_itself_is_refused_among_several_questions(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert main(["compare", "tiny", str(tmp_path / "loop")]) == 3
    assert "too many levels of symbolic links" in capsys.readouterr().err


NAMING = {
    "graph.file": "kind: placement\ndevices: 2\ngraph: {file: HERE}\n",
    "file": "kind: pipedream\nfile: HERE\n",
    "file of piper": "kind: piper\nfile: HERE\n",
    "file of sharding": "kind: sharding\nfile: HERE\n",
    "profile": "kind: chain\ndevices: 2\nmemory: 1 GB\nbandwidth: 1 GB/s\nmicrobatches: 4\nprofile: HERE\n",
    "trace": "kind: what-if\ntrace: HERE\nchanges: [{name: a, transform: scale, pattern: ['*'], factor: 0.5}]\n",
    "trace of benchmark": "kind: benchmark\ntrace: HERE\n",
    "network": "kind: collective\ncollective: all_reduce\nbytes: 1 MB\nnetwork: HERE\nsystem: HERE\n",
    "workload.config": TINY.replace("model: gpt3-125m", "config: HERE"),
    "hardware": TINY.replace("a100-80g", "HERE"),
    "technology": TINY.replace("hardware: a100-80g", "technology: HERE"),
    "technology.base": TINY.replace("hardware: a100-80g", "technology: {base: HERE}"),
}
"""Questions by their keys that name files."""
ARE_SOURCES = ("hardware", "technology", "technology.base")
"""Keys of files that stand in the place of a section, and are the source of their faults."""


def things(folder: Path) -> dict[str, str]:
    """What may stand where a file is named, and what is said of it."""
    (folder / "directory").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to("loop")
    (folder / "device").symlink_to("/dev/zero")
    (folder / "to-pipe").symlink_to("pipe")
    with socket(AF_UNIX) as listening:
        listening.bind(str(folder / "socket"))
    odd = dict.fromkeys(("pipe", "to-pipe", "socket", "device"), "this is not a regular file (")
    return odd | {
        "directory": "this is a directory (",
        "loop": "the file cannot be read (too many levels of symbolic links)",
        "missing": "there is no such file (check the name and the folder)",
        "x" * 300: "the file cannot be read (file name too long)",
    }


@pytest.mark.parametrize("key", NAMING)
def test_each_key_that_names_a_file_is_refused_in_a_sentence_where_none_is_there(key: str, tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    for name, words in things(Path()).items():
        Path("q.yaml").write_text(NAMING[key].replace("HERE", f"./{name}"))
        with pytest.raises(InstanceError) as refused:
            read(Path("q.yaml"))
        [fault] = refused.value.faults
        assert words in fault.message
        assert (refused.value.source, fault.path) == ((name, "") if key in ARE_SOURCES else ("q.yaml", key.partition(" of ")[0]))


def test_the_keys_of_all_kinds_that_name_files_are_in_the_table() -> None:
    """Whoever reads a file that a question names asks `Files` for it; each of them is one of the modules that the table asks."""
    asking = [path.relative_to(ROOT).as_posix() for path in (ROOT / "instances").rglob("*.py") if "files.text(" in path.read_text()]
    assert sorted(asking) == [
        "instances/catalogue/registry.py",
        "instances/catalogue/workload.py",
        "instances/codesign/question.py",
        "instances/network/collective.py",
        "instances/placement/question.py",
        "instances/question.py",
        "instances/stages/chain.py",
        "instances/stages/pipedream.py",
        "instances/stages/piper.py",
        "instances/traces/graph_file.py",
    ]


OWN = ("instances/catalogue/registry.py", "instances/course/", "instances/editors.py", "instances/files/careful.py")
"""Readers of files that come along, and the reader of all others."""


def test_files_of_others_are_opened_by_one_function() -> None:
    opening = re.compile(r"\.open\(\"|\.read_text\(|\.read_bytes\(|(?<![\w.])open\(|os\.open\(")
    found = [path.relative_to(ROOT).as_posix() for path in (ROOT / "instances").rglob("*.py") if opening.search(path.read_text())]
    assert [name for name in found if not name.startswith(OWN)] == []


@pytest.mark.slow
def test_a_small_file_that_unpacks_to_a_large_one_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.json.gz"
    with gzip.open(bomb, "wb") as file:
        for _ in range(400):
            file.write(b" " * 1_000_000)
    with pytest.raises(InstanceError, match=r"the text has more than 7\d MiB, from a file of 38\d,\d+ bytes"):
        read(bomb)


@pytest.mark.slow
def test_a_problem_with_more_rows_than_any_graph_has_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text('{"problem": {"nodes": {"costs": [' + "[]," * (1 << 20) + "[]")
    with pytest.raises(InstanceError, match="costs has more than 1,048,576 rows"):
        read(path)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ('{"a": 1,\n "b": 2,\n "a": 3}', (3, 2), "the key 'a' is given twice, on line 1 and on line 3 (keep one)"),
        ('{"a": [{"b": {}},\n {"c": 1, "c": {"a": 1}}]}', (2, 11), "the key 'c' is given twice, on line 2 and on line 2 (keep one)"),
        ('{"\\u0061": ["a", "b:"],\n"x": "{", "a": 1}', (2, 11), "the key 'a' is given twice"),
        ('{"a": "\\u001b[2J"}', (1, 8), "character U+001B is not text"),
        ('{"a": "\\\\u001b", "b": "\\\\\\b"}', (1, 26), "character U+0008 is not text"),
        ('{"a": "\\ud83d\\ude00 \\ud83d"}', (1, 21), "character U+D83D is not text"),
        ('{"a": "\\uDE00"}', (1, 8), "character U+DE00 is not text"),
        ('{"a\u202e": 1}', (1, 4), "character U+202E is not text"),
        ("[" * 100_000, (1, 1), "this is nested too deeply"),
        ("[1" + "0" * 5000 + "]", (1, 1), "a number of 5,001 digits"),
        ("[Infinity]", (1, 1), "Infinity is no number"),
        ("[1,", (1, 4), "this is not JSON: expecting value"),
    ],
)
def test_json_that_cannot_be_meant_is_refused_with_its_place(text: str, place: tuple[int, int], words: str) -> None:
    with pytest.raises(JsonError) as refused:
        read_strictly(text)
    assert (refused.value.line, refused.value.column) == place
    assert refused.value.message.startswith(words)


def test_json_with_letters_of_all_kinds_is_read_as_it_is() -> None:
    data = {"a": ["\\u001b", "\t\n\r", "µ·→", "\\\\u0007", {"a": {"a": 1}}], "b": {"a": 1e308}}
    assert read_strictly(json.dumps(data)) == read_strictly(json.dumps(data, ensure_ascii=False)) == data


def test_a_key_given_twice_is_refused_in_a_graph_and_in_a_result(tmp_path: Path, capsys: Captured) -> None:
    graph = tmp_path / "graph.json"
    graph.write_text('{"maxSubgraphs": 2, "nodes": [],\n "nodes": []}')
    assert main(["validate", str(graph)]) == 3
    assert f"{graph}:2:2: nodes: the key 'nodes' is given twice, on line 1 and on line 2" in capsys.readouterr().err
    result = tmp_path / "result.json"
    assert main(["solve", "tiny", "--out", str(result)]) == 0
    result.write_text(result.read_text().replace('"status":', '"status": "INFEASIBLE",\n  "status":'))
    capsys.readouterr()
    for command in ("check", "report"):
        assert main([command, str(result)]) == 3
        assert "the key 'status' is given twice" in capsys.readouterr().err


@pytest.mark.slow
def test_faults_are_looked_for_up_to_a_thousand(tmp_path: Path) -> None:
    path = tmp_path / "q.yaml"
    path.write_text(TINY + "".join(f"k{place}: 1\n" for place in range(70_000)))
    with pytest.raises(InstanceError) as refused:
        read(path)
    assert len(refused.value.faults) == MOST


def test_faults_of_a_long_file_are_placed_without_looking_at_all_of_it() -> None:
    """Keys with dots and quotes are found as they were before there was an index."""
    node = read_text('a: {b: 1, b.c: {d: [1, 2, {e: 3}]}, "x y": {z: 1}}\nf: 2', "q")
    places = {"a.b": 8, "a.b.c.d[2].e": 31, "a.b.c.d[7]": 20, "a.'x y'.z": 48, "a.nothing": 4, "f": 4, "": 1}
    assert {path: fault_at(node, path, "").column for path in places} == places
