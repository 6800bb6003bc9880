"""Every command that a page of the documentation shows runs, and every link leads somewhere."""

import argparse
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from crossopt.instances.schema_export import slug
from crossopt.reports.arguments import parser_of_commands
from crossopt.reports.cli import main
from tests.commands import exit_code
from tests.paths import DATA, INSTANCES, NO_DATA, ROOT

ROOMS = ("", "instances", "crossflow", "formulation", "solvers", "reports", "instances/course")
PAGES = [*(ROOT / room / "README.md" for room in ROOMS), ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
COMMAND = re.compile(r"^\$ (?:crossopt )?((?:solve|[a-z]+) .*?)(?:\s+# exit code (\d+)|\s+#.*)?$")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GENERATED = {"reference", "contributing.md"}
NAMED = re.compile(r"# ([\w-]+\.yaml)\n")
SECONDS = re.compile(r"(?<=proved in )[\d.]+ s|(?<=proved optimal in )[\d.]+ s|(?<=solver-reported, in )[\d.]+ s|(?<=%)(\s+([\d.]+ s|-))+$")
ENDED: dict[str, tuple[int, str]] = {}
PUBLIC = {
    "gnmt_training.json": "placement/throughput/layer/gnmt_training.json",
    "bert24_inference.json": "placement/latency/layer/bert24_inference.json",
    "expert.json": "placement/human-experts/gnmt_training_expert.json",
    "graph.txt": "placement/pipedream/gnmt/graph.txt",
    "gnmt.json": "placement/piper/gnmt.json",
    "bert32a100.json": "placement/piper/bert32a100.json",
    "dlrm_rank2.json.gz": "traces/dlrm_rank2.json.gz",
    "tables.json": "embeddings/tables_24.json",
}
"""Inputs of other authors, which do not come along."""
if (spec := find_spec("onnx")) is not None and spec.origin:
    PUBLIC["light_resnet50.onnx"] = str(Path(spec.origin).parent / "backend/test/data/light/light_resnet50.onnx")
LEFT_OUT = {
    "compare joint-vs-single-layer": "eleven questions, some ten minutes",
    "compare logic-memory-network-scaling": "sixty-three questions, some seven minutes",
    "compare diminishing-returns": "eighty questions, half a minute",
    "compare sharing-in-groups": "forty questions, ten seconds",
    "compare links-in-the-package": "eighteen questions, half a minute",
    "compare chiplets-and-yield": "eighty-four questions, ten seconds",
    "compare congested-links": "thirty-five questions, ten seconds",
    "compare packages": "seventy-two questions, twenty seconds",
    "compare optical-links": "six questions, ten seconds",
    "compare rare-exchanges": "three hundred and ten questions, two minutes",
    "solve gnmt_training.json --contiguous no": "up to minutes of two solvers",
    "solve problem.json.gz": "asks for up to a minute, and the contest's problem does not come along",
    "compare problem.json.gz": "the contest's problem and its best values do not come along",
    "compare gnmt_training.json --split": "ten seconds of local search",
    "solve gpt3-13b-on-4x8": "compiles for up to a minute on a fresh installation",
    "solve hub.yaml": "a model's config.json does not come along; it is read below",
    "import rank": "traces of several ranks of one job do not come along",
    "solve bert32a100.json": "ten seconds; the other network of its kind is solved",
}
"""Beginnings of commands that are shown and not run here, and why."""
LONG = (
    "solve written-out.yaml",
    "explain quickstart --set budget.power=340 W --relaxation",
    "explain quickstart --constants",
    "compare gpt3-175b-pathfinding-large",
    "explain quickstart --near",
    "solve quickstart --pareto",
    "solve gnmt.json --devices 8",
    "solve quickstart --engine milp --form weak",
    "explain quickstart --force hbm_stacks=2",
    "explain gpt3-175b-1024xa100 --set pipeline=[1, 2, 4]",
)
"""Beginnings of commands that take seconds and write no file; all commands run with -m slow."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A command, the code that it shall end with, and the lines of its output that stand below it."""

    words: tuple[str, ...]
    code: int
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.words)


def shown(page: Path) -> Iterator[Shown | tuple[str, str]]:
    """Commands, and files with their texts, in the order of the page."""
    for language, body in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "yaml" and (named := NAMED.match(body)):
            yield named[1], body
        for part in re.split(r"^(?=\$ )", body, flags=re.MULTILINE) if not language else ():
            first, _, rest = part.partition("\n")
            if found := COMMAND.match(first):
                lines = tuple(line for line in rest.splitlines() if line.strip(" .,"))
                yield Shown(tuple(shlex.split(found[1])), int(found[2] or 0), lines)


def commands(page: Path) -> list[Shown]:
    return [item for item in shown(page) if isinstance(item, Shown)]


def left_out(command: Shown) -> bool:
    return any(command.text.startswith(beginning) for beginning in LEFT_OUT)


def without_input(command: Shown, absent: list[Shown]) -> bool:
    """Whether an input is not on this machine, or is written by such a command; published inputs that are there are linked here."""
    if any(written(other) in command.words for other in absent if written(other)):
        return True
    needed = {name: DATA / PUBLIC[name] for name in command.words if name in PUBLIC}
    for name, path in needed.items():
        if path.is_file() and not Path(name).exists():
            Path(name).symlink_to(path)
    return not all(path.is_file() for path in needed.values())


def written(command: Shown) -> str | None:
    """The file that a command writes."""
    return command.words[command.words.index("--out") + 1] if "--out" in command.words else None


def run(command: Shown, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The code and the output; of commands that write no file those of an earlier page."""
    if command.text not in ENDED or "--out" in command.words:
        code = exit_code(command.words)
        printed = capsys.readouterr()
        ENDED[command.text] = code, printed.out + printed.err
    return ENDED[command.text]


def lines_of(text: str) -> set[str]:
    """Lines without the seconds that a run took, which are never the same."""
    return {" ".join(SECONDS.sub(" ", line).split()) for line in text.splitlines()}


@pytest.mark.docs
@pytest.mark.parametrize("without", [LONG, pytest.param((), marks=pytest.mark.slow)], ids=["quick", "all"])
@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_the_commands_of_a_page_end_as_it_says(
    page: Path, without: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One after the other in a folder, where later ones read what earlier ones wrote; and they print what the page shows."""
    monkeypatch.chdir(tmp_path)
    Path("instances").symlink_to(INSTANCES)
    wrong, absent = {}, list[Shown]()
    for item in shown(page):
        if isinstance(item, tuple):
            Path(item[0]).write_text(item[1], encoding="utf-8")
        elif without_input(item, absent):
            absent.append(item)
        elif not left_out(item) and not item.text.startswith(without):
            code, printed = run(item, capsys)
            unseen = lines_of("\n".join(item.lines)) - lines_of(printed)
            if code != item.code or unseen:
                wrong[item.text] = (code, unseen, printed[-500:] if code != item.code else "")
    assert wrong == {}
    if absent:
        pytest.skip(f"{NO_DATA}: inputs of {', '.join(command.text for command in absent)} (the others ran)")


def test_the_question_about_a_configuration_of_the_hub_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    [text] = [
        item[1] for item in shown(ROOT / "docs" / "get-started" / "first-plan.md") if isinstance(item, tuple) and item[0] == "hub.yaml"
    ]
    shapes = {"num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "vocab_size": 128256}
    config = {"model_type": "llama", **shapes, "num_key_value_heads": 8, "max_position_embeddings": 8192}
    Path("hub.yaml").write_text(text, encoding="utf-8")
    Path("config.json").write_text(json.dumps(config), encoding="utf-8")
    assert main(["validate", "hub.yaml"]) == 0
    assert "shapes of llama3-8b and llama3.1-8b" in " ".join(capsys.readouterr().out.split())


def test_what_is_left_out_is_shown() -> None:
    texts = [command.text for page in PAGES for command in commands(page)]
    assert len(texts) > 50
    assert [beginning for beginning in (*LEFT_OUT, *LONG) if not any(text.startswith(beginning) for text in texts)] == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)]+)\)", text):
        name, _, anchor = target.partition("#")
        assert not name.startswith("http"), f"{target}: pages lead to files of the project"
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), target
        if ROOT / "docs" in path.parents and (GENERATED & set(path.relative_to(ROOT / "docs").parts)):
            continue  # the site has the whole of these pages, and MkDocs checks links to their sections when it builds it
        if anchor:
            assert anchor in {slug(heading) for heading in re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)}, target


def test_the_first_page_is_short() -> None:
    assert len((ROOT / "README.md").read_bytes()) <= 5_000


def test_no_page_is_long() -> None:
    pages = [page for page in ROOT.rglob("*.md") if not {".venv", "build", "node_modules"} & set(page.relative_to(ROOT).parts)]
    assert {str(page): len(page.read_bytes()) for page in pages if len(page.read_bytes()) > 12_000} == {}


def test_every_option_of_every_command_is_told_on_some_page() -> None:
    pages = " ".join(page.read_text(encoding="utf-8") for page in PAGES)
    told = set(re.findall(r"--[a-z][a-z-]+", pages))
    assert options(parser_of_commands()) - told - {"--help"} == set()


def options(parser: argparse.ArgumentParser) -> set[str]:
    """Of a command and of all below it."""
    found = {name for action in parser._actions for name in action.option_strings if name.startswith("--")}
    below = [inner for action in parser._actions if isinstance(action.choices, dict) for inner in action.choices.values()]
    return found.union(*(options(inner) for inner in below))
