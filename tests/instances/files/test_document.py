"""Texts and settings become trees with exact positions; everything else, hostile files too, becomes faults that name the place."""

import gzip
import json
import os
import pickle
import re
from contextlib import suppress
from pathlib import Path
from socket import AF_UNIX, socket

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crossopt.instances.codesign.instance import FreeHardware
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.careful import JsonError, read_strictly
from crossopt.instances.files.document import DEEPEST, LARGEST, Node, Scalar, fault_at, fault_at_key, read_file, read_text
from crossopt.instances.files.schema import MOST
from crossopt.instances.question import read
from crossopt.reports.cli import main
from tests.every import every
from tests.extent import examples
from tests.instances.codesign.test_reading import FIXED, refusal
from tests.instances.codesign.test_reading import read as read_design
from tests.paths import ROOT
from tests.samples import NODES

# Texts become trees with exact positions, and everything else becomes faults that name the place.

EMPTY = "f.yaml:1:1: the document is empty (write 'key: value' lines)"
OPEN_QUOTE = "a quote is opened and never closed"
NO_COLON = "a ':' does not belong here (check the indentation, or quote a text with ': ' in it)"
TEXT_DOES_NOT_FIT = "this text does not fit the lines above (check the indentation, commas and quotes)"
WRONG_END = "the document begins or ends wrongly (a file holds one: remove lines of '---', '...' or '%')"

REFUSED = [
    ("", EMPTY),
    ("# only a comment\n", EMPTY),
    ("~", EMPTY),
    ("---\n...\n", EMPTY),
    ("a: [1, 2\nb: 3", "f.yaml:1:4: a list in '[' is not closed, or a comma is missing"),
    ("a: {b: 1", "f.yaml:1:4: a mapping in '{' is not closed, or a comma is missing"),
    ("a: [1,,2]", "f.yaml:1:7: a value is missing before this (a comma too many?)"),
    ("a: 'x\nb: 2\n", f"f.yaml:1:4: {OPEN_QUOTE}"),
    ("a: 'x\n--- \n", f"f.yaml:1:4: {OPEN_QUOTE}"),
    ("a:\n\t- 1", "f.yaml:2:1: a tab cannot indent (use spaces)"),
    ("a: b: c", f"f.yaml:1:5: {NO_COLON}"),
    ("a: 1\n b: 2", f"f.yaml:2:3: {NO_COLON}"),
    ("a: @x", "f.yaml:1:4: this character cannot begin a value (put the value in quotes)"),
    ("- a\nb: 1", "f.yaml:2:1: the indentation does not fit the lines above"),
    ("a: 1\nb", "f.yaml:2:1: a ':' is missing after this key (write 'key: value')"),
    (": 3", "f.yaml:1:1: a key is missing before this ':' (write 'key: value')"),
    ("a: 'b' c", f"f.yaml:1:8: {TEXT_DOES_NOT_FIT}"),
    ("a: - 1", "f.yaml:1:4: a '-' does not belong here (begin the list on its own line)"),
    ('a: "\\q"', "f.yaml:1:6: an escape with '\\' is unknown here (use single quotes)"),
    ('a: "\\UFFFFFFFF"', "f.yaml:1:2: after this an escape or a number is out of range (put text in single quotes)"),
    ('a: "\\0"', "f.yaml:1:4: a: character U+0000 is not text (remove its escape)"),
    ("a: 1\r\nb: \x07", "f.yaml:2:4: character U+0007 is not text (remove it)"),
    ("a: 1\rb: \u2028", "f.yaml:2:4: character U+2028 is not text (remove it)"),
    ("a: \ud800", "f.yaml:1:4: character U+D800 is not text (remove it)"),
    ("a: \u202etxt", "f.yaml:1:4: character U+202E is not text (remove it)"),
    ("a: 1\n---\nb: 1", "f.yaml:2:1: a second document begins here (a file holds one: remove the '---')"),
    ("a: 1\n...\nb", f"f.yaml:3:1: {WRONG_END}"),
    ("%FOO\na: 1", f"f.yaml:2:1: {WRONG_END}"),
    ("%YAML 9.9\n---\na: 1", "f.yaml:1:1: this version of YAML is unknown (remove the line)"),
    ("%YAML 1." + "9" * 5000 + "\n---\na: 1", "f.yaml:1:1: after this an escape or a number is out of range (put text in single quotes)"),
    ("a: >3x\n b", "f.yaml:1:6: this is not YAML (check indentation, quotes and brackets)"),
    ("a: *", "f.yaml:1:5: '&' and '*' begin anchors and aliases, which are not read (put the value in quotes)"),
    ("a: *b", "f.yaml:1:4: a: aliases such as '*b' are not read (write the value out)"),
    ("*a : 1", "f.yaml:1:1: aliases such as '*a' are not read (write the value out)"),
    ("a: &b [1]", "f.yaml:1:4: a: anchors such as '&b' are not read (write the values out)"),
    ("a: !!python/object:x {}", "f.yaml:1:4: a: tags such as '!!python/object:x' are not read (remove it)"),
    ("a: ! b", "f.yaml:1:4: a: tags such as '!' are not read (remove it)"),
    ("!a!b c", "f.yaml:1:1: words that begin with '!' are tags, which are not read (put the value in quotes)"),
    ("<<: {a: 1}", "f.yaml:1:1: <<: merge keys are not read (write the values out)"),
    ("b:\n  a: 1\n  c: 2\n  a: 3", "f.yaml:4:3: b.a: the key is given twice, on line 2 and on line 4 (keep one)"),
    ("a: 1\n'a': 2", "f.yaml:2:1: a: the key is given twice, on line 1 and on line 2 (keep one)"),
    ("x:\n  ? [1]\n  : 2", "f.yaml:2:5: x: a key must be a word (write 'key: value')"),
    ("? {a: 1}\n: 2", "f.yaml:1:3: a key must be a word (write 'key: value')"),
    ("'': 1", "f.yaml:1:1: a key must be a word (write 'key: value')"),
    ("a b: *c", "f.yaml:1:6: 'a b': aliases such as '*c' are not read (write the value out)"),
    ("a: 1\n" + "x" * 50 + ": *c", f"f.yaml:2:53: '{'x' * 37}...': aliases such as '*c' are not read (write the value out)"),
]


@every(("text", "message"), REFUSED)
def test_a_text_that_cannot_be_read_names_place_and_remedy(text: str, message: str) -> None:
    with pytest.raises(InstanceError) as raised:
        read_text(text, "f.yaml")
    assert str(raised.value) == f"{message}\n1 fault, nothing solved"


def test_all_faults_come_at_once_and_in_the_order_of_the_file() -> None:
    with pytest.raises(InstanceError) as raised:
        read_text("a: !x 1\nb: !y 1\na: 2\nc: [", "f.yaml")
    assert [fault.line for fault in raised.value.faults] == [1, 2, 3, 4]
    assert str(raised.value).endswith("\n4 faults, nothing solved")


def test_an_error_lists_each_fault_once_and_no_more_than_a_hundred() -> None:
    faults = [Fault(line, 1, "", "wrong") for line in range(150, 0, -1)]
    error = InstanceError("f.yaml", faults + faults)
    lines = str(error).splitlines()
    assert len(error.faults) == 150
    assert (lines[0], lines[99], lines[100:]) == (
        "f.yaml:1:1: wrong",
        "f.yaml:100:1: wrong",
        ["... and 50 more", "150 faults, nothing solved"],
    )


def test_an_error_survives_a_process_boundary() -> None:
    error = InstanceError("f.yaml", [Fault(2, 3, "a", "wrong")])
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (copy.source, copy.faults, str(copy)) == (error.source, error.faults, str(error))


def test_keys_and_values_know_where_they_stand() -> None:
    root = read_text("# first\nbudget:\n  power: 400 W\nsizes: [1, 'no',\n  x]\n", "f.yaml")
    assert isinstance(root.value, dict)
    budget, sizes = root.value["budget"], root.value["sizes"]
    assert isinstance(budget.node.value, dict)
    power = budget.node.value["power"]
    assert (root.line, root.column, root.path) == (2, 1, "")
    assert (budget.line, budget.column, budget.node.line, budget.node.column) == (2, 1, 3, 3)
    assert (power.line, power.column) == (3, 3)
    assert power.node == Node(Scalar("400 W", quoted=False), 3, 10, "budget.power")
    assert sizes.node.value == (
        Node(Scalar("1", quoted=False), 4, 9, "sizes[0]"),
        Node(Scalar("no", quoted=True), 4, 12, "sizes[1]"),
        Node(Scalar("x", quoted=False), 5, 3, "sizes[2]"),
    )


def test_columns_count_characters_not_bytes() -> None:
    with pytest.raises(InstanceError) as raised:
        read_text("größe: [µ, *a]", "f.yaml")
    assert (raised.value.faults[0].column, raised.value.faults[0].path) == (12, "größe[1]")


@pytest.mark.parametrize("word", ["no", "1e9", "0x10", "null", "2024-01-01", "1:30", "~", "=", "010"])
def test_scalars_stay_as_written(word: str) -> None:
    """YAML 1.1 would make False, a text, 16, None, a date and 5400 of these."""
    root = read_text(f"a: {word}", "f.yaml")
    assert isinstance(root.value, dict)
    assert root.value["a"].node.value == Scalar(word, quoted=False)


def test_only_a_plain_scalar_can_be_empty() -> None:
    root = read_text("- \n- ~\n- null\n- ''\n- 'null'\n- 0\n", "f.yaml")
    assert isinstance(root.value, tuple)
    assert [isinstance(node.value, Scalar) and node.value.empty for node in root.value] == [True, True, True, False, False, False]


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert read_text("\ufeffa: 1", "f.yaml") == read_text("a: 1", "f.yaml")


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_nesting_has_a_limit(opening: str) -> None:
    """The limit holds while the text is parsed: a thousand levels must not reach Python's recursion limit."""
    deep, too_deep = opening * (DEEPEST - 1) + "x", opening * 1000
    closing = {"[": "]", "{a: ": "}", "- ": ""}[opening] * (DEEPEST - 1)
    read_text(deep + closing, "f.yaml")
    with pytest.raises(InstanceError, match="more than 32 levels"):
        read_text(too_deep, "f.yaml")


def test_exactly_the_deepest_level_is_read() -> None:
    read_text("[" * DEEPEST + "]" * DEEPEST, "f.yaml")
    with pytest.raises(InstanceError, match=r"f\.yaml:1:33: .* 32 levels"):
        read_text("{" * 20_000, "f.yaml")  # unclosed, so that the parser that explains is asked: 18 s to the end of the text
    with pytest.raises(InstanceError, match=r"f\.yaml:1:33: .* 32 levels"):
        read_text("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), "f.yaml")


def test_a_bomb_of_aliases_is_refused_without_being_expanded() -> None:
    levels = [f"l{level}: &l{level} [{', '.join([f'*l{level - 1}'] * 9)}]" for level in range(1, 10)]
    with pytest.raises(InstanceError) as raised:
        read_text("l0: &l0 [lol]\n" + "\n".join(levels), "f.yaml")
    assert len(raised.value.faults) == 1


def message_of(path: Path) -> str:
    with pytest.raises(InstanceError) as raised:
        read_file(path)
    assert raised.value.source == str(path)
    return str(raised.value).splitlines()[0].removeprefix(f"{path}:")


def test_a_file_reads_as_its_text(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes("\ufeffa: µ\r\nb: 2\r\n".encode())
    assert read_file(path) == read_file(str(path)) == read_text("a: µ\nb: 2\n", "a.yaml")


def test_a_large_file_gives_one_message(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_bytes(b"[&*" * 3_500_000)
    assert message_of(path) == "1:1: 10,500,000 bytes are too many for an instance (at most 1,000,000)"


def test_the_largest_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "largest.yaml"
    path.write_bytes(b"a: " + b"x" * (LARGEST - 3))
    read_file(path)
    with pytest.raises(InstanceError, match="1,000,001 bytes"):
        read_text("a: " + "x" * (LARGEST - 4) + "µ", "f.yaml")


def test_bytes_that_are_no_text_are_placed(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes("a: 1\nb: gr\xfcn".encode("latin-1"))
    assert message_of(path) == "2:6: byte 0xfc is not UTF-8 text (save the file as UTF-8)"
    path.write_bytes("a: 1".encode("utf-16"))
    assert "1:1: byte 0xff is not UTF-8" in message_of(path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert message_of(tmp_path) == "1:1: this is a directory (name a YAML file)"
    assert message_of(tmp_path / "none.yaml") == "1:1: there is no such file (check the name and the folder)"
    assert message_of(tmp_path / "pipe") == "1:1: this is not a regular file (name a YAML file)"
    assert message_of(Path("/dev/zero")) == "1:1: this is not a regular file (name a YAML file)"
    assert message_of(tmp_path / "loop").startswith("1:1: the file cannot be read (too many levels of symbolic links")
    assert message_of(tmp_path / ("x" * 5000)) == "1:1: the file cannot be read (file name too long)"
    assert message_of(Path("a\0b")).startswith("1:1: ")


def test_a_file_without_permission_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so the refusal of the system is played."""
    path = tmp_path / "secret.yaml"
    path.write_text("a: 1")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("crossopt.instances.files.document.bytes_of", refuse)
    assert message_of(path) == "1:1: the file may not be read (check its permissions)"


NESTED = "choices:\n  sizes: [1, {deep: 2}]\n  size: 3\n  llama-3.1: 4\n"


@pytest.mark.parametrize(
    ("path", "value", "key"),
    [
        ("", (1, 1), (1, 1)),
        ("choices", (2, 3), (1, 1)),
        ("choices.size", (3, 9), (3, 3)),
        ("choices.sizes", (2, 10), (2, 3)),
        ("choices.sizes[0]", (2, 11), (2, 11)),
        ("choices.sizes[1].deep", (2, 21), (2, 15)),
        ("choices.llama-3.1", (4, 14), (4, 3)),
        ("choices.missing.more", (2, 3), (1, 1)),
        ("choices.sizes[7]", (2, 10), (2, 3)),
    ],
)
def test_a_path_leads_to_its_value_and_its_key(path: str, value: tuple[int, int], key: tuple[int, int]) -> None:
    root = read_text(NESTED, "f.yaml")
    assert fault_at(root, path, "wrong") == Fault(*value, path, "wrong")
    assert fault_at_key(root, path, "wrong") == Fault(*key, path, "wrong")


def test_a_path_may_begin_anywhere_in_the_tree() -> None:
    root = read_text(NESTED, "f.yaml")
    assert isinstance(root.value, dict)
    choices = root.value["choices"].node
    assert fault_at(choices, "sizes[1].deep", "wrong") == Fault(2, 21, "choices.sizes[1].deep", "wrong")
    assert isinstance(choices.value, dict)
    assert fault_at(choices.value["sizes"].node, "[0]", "wrong") == Fault(2, 11, "choices.sizes[0]", "wrong")


@examples(300)
@given(
    st.text()
    | st.text(alphabet="ab:-?[]{},&*!|>'\"%@`#\\ \n\t0x<~.")
    | st.lists(st.sampled_from(["a: ", "\n", "  ", "- ", "? ", '"\\U', "1", "%TAG ! "])).map("".join)
)
@example('"\\UFFFFFFFF"')
def test_any_text_gives_a_tree_or_faults(text: str) -> None:
    try:
        assert isinstance(read_text(text, "f.yaml"), Node)
    except InstanceError as error:
        assert error.faults
        assert all(fault.line >= 1 and fault.column >= 1 and fault.message.isprintable() for fault in error.faults)
        assert len(str(error).splitlines()) == min(len(error.faults), 101) + 1


@examples(100)
@given(content=st.binary())
def test_any_bytes_give_a_tree_or_faults(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(content)
    try:
        assert isinstance(read_file(path), Node)
    except InstanceError as error:
        assert error.faults


# Files that hang a reader, say a thing twice or steer a terminal: each is one sentence, at once.

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
    "graph": "kind: layers\ngraph: HERE\nhardware: a100-80g\nformats: [fp16, int8]\nobjective: time\nbudgets: {size: 1 MB}\n",
    "graph of memory": "kind: memory\ngraph: HERE\nbudget: 1 GB\n",
    "graph of accelerator": "kind: accelerator\ngraph: HERE\nbatch: 8\ndevices: 2\nbandwidth: 900 GB/s\nmemory: 80 GB\n",
    "tables.file": "kind: embeddings\ntables: {file: HERE}\ncluster: {devices: 2, hbm: 1 GB}\nbatch: 64\n",
    "config": "kind: serving\nconfig: HERE\nhardware: h100-sxm\ndevices: 8\nrequests: {input: 9, output: 9}\n",
    "rates": "kind: fleet\nclasses: {a: 1}\ndevices: {b: {price: 1.0}}\nrates: HERE\n",
    "networks.a.graph": "kind: fleet\nclasses: {a: 1}\nnetworks: {a: {graph: HERE, latency: 10 ms}}\ndevices: {a100-80g: {price: 1.0}}\n",
    "profile of instances": "kind: instances\nthreads: 4\nbatch: 4\nprofile: HERE\n",
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
        "missing": "there is no such file (check the name and the folder",
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
        "instances/accelerator/question.py",
        "instances/catalogue/registry.py",
        "instances/catalogue/workload.py",
        "instances/codesign/question.py",
        "instances/counts/fleet.py",
        "instances/counts/networks.py",
        "instances/counts/shapes.py",
        "instances/embeddings/question.py",
        "instances/layers/question.py",
        "instances/memory/question.py",
        "instances/network/collective.py",
        "instances/placement/question.py",
        "instances/question.py",
        "instances/serving/question.py",
        "instances/stages/chain.py",
        "instances/stages/pipedream.py",
        "instances/stages/piper.py",
        "instances/traces/graph_file.py",
    ]


OWN = (
    "instances/catalogue/registry.py",
    "instances/codesign/stack_rules.py",
    "instances/course/",
    "instances/schema_export.py",
    "instances/files/careful.py",
)
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
        ("[1,", (1, 4), "this is not JSON: it ends too early"),
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


# Settings laid over a question: what each is taken for, and which one is named where it is wrong.


def test_a_setting_with_a_plain_name_is_a_choice() -> None:
    assert dict(read_design(FIXED, "tensor=4").plan_options)["tensor"] == (4,)
    assert dict(read_design(FIXED, "recompute=[none, full]").plan_options)["recompute"] == ("none", "full")


def test_a_setting_with_a_path_or_the_name_of_a_section_is_that_value() -> None:
    assert read_design(FIXED, "cluster.devices=32").cluster.devices == 32
    assert read_design(FIXED, "hardware=h100-sxm").hardware.name == "h100-sxm"  # type: ignore[union-attr]
    assert read_design(FIXED, "budget.power=350 W").budget.power == 350.0


def test_of_two_settings_of_one_value_the_last_one_counts() -> None:
    assert dict(read_design(FIXED, "tensor=4", "tensor=8").plan_options)["tensor"] == (8,)


def test_null_takes_a_value_away() -> None:
    free = read_design(FIXED, "hardware=null", "technology=accelerator-7nm")
    assert isinstance(free.hardware, FreeHardware)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("tensor", "--set tensor:1:1: a setting is written KEY=VALUE (for example tensor=8)"),
        ("tensor=", "--set tensor=:1:1: a setting is written KEY=VALUE (for example tensor=8)"),
        ("=8", "--set =8:1:1: a setting is written KEY=VALUE (for example tensor=8)"),
        ("a..b=8", "--set a..b=8:1:1: a setting is written KEY=VALUE (for example tensor=8)"),
        ("tensor=[1", "--set tensor=[1:1:1: a list in '[' is not closed, or a comma is missing"),
        ("tensr=8", "q.yaml:6:3: choices.tensr: unknown key (did you mean 'tensor'?) [from --set tensr=8]"),
        ("tensor=x", "q.yaml:6:11: choices.tensor: 'x' is not a number [from --set tensor=x]"),
        ("cluster.pods=1", "q.yaml:3:10: cluster.pods: unknown key (did you mean 'pod'?) [from --set cluster.pods=1]"),
        ("data={fro: 1, to: 4}", "q.yaml:6:3: choices.data.fro: unknown key (did you mean 'from'?) [from --set data={fro: 1, to: 4}]"),
    ],
)
def test_a_wrong_setting_says_which(setting: str, message: str) -> None:
    """The line of the file does not show what is wrong, so that the setting is named."""
    assert refusal(FIXED, setting) == f"{message}\n1 fault, nothing solved"


def test_a_list_takes_no_settings() -> None:
    assert refusal("[1, 2]", "tensor=1").startswith("q.yaml:1:1: there are no keys to set")
