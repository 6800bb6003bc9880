"""The two ways into a question, whatever its kind: what a result keeps of it is all that is needed to ask it again."""

import json
from pathlib import Path

import pytest

from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read, read_again
from tests.paths import INSTANCES, reference

PROFILE = "placement/pipedream/vgg16/graph.txt"
ASKED = [
    pytest.param(kind, name, settings, id=f"{kind}-{Path(name).stem}", marks=() if (INSTANCES / name).exists() else pytest.mark.data)
    for kind, name, settings in (
        ("codesign", "tiny.yaml", ("tensor=2",)),
        ("codesign", "tiny.yaml", ("cluster.devices=[8, 16]",)),
        ("codesign", "two-models-one-chip.yaml", ()),
        ("chain", "stages/gpt3-96-layers.yaml", ("copies=3",)),
        ("placement", "placement/gpt3-13b-on-8.yaml", ("devices=4",)),
        ("placement", "placement/throughput/layer/gnmt_inference.json", ("devices=4", "contiguous=no")),
        ("sharding", "sharding/example.json", ("limit=9 B",)),
        ("piper", "placement/piper/bert32a100.json", ("devices=16", "without=[recompute, data]")),
        ("pipedream", PROFILE, ("devices=4x2", "bandwidth=[6 GB/s, 1 GB/s]")),
    )
]


def file_of(name: str) -> Path:
    """A question that comes along, or else a file of the reference data."""
    return INSTANCES / name if (INSTANCES / name).exists() else reference(name)


@pytest.mark.parametrize(("kind", "name", "settings"), ASKED)
def test_a_question_is_text_and_settings_and_is_asked_again_from_them(kind: str, name: str, settings: tuple[str, ...]) -> None:
    question = read(file_of(name), settings)
    assert question.document["settings"] == list(settings)
    assert read_again(json.loads(json.dumps(question.document)), kind).document == question.document


@pytest.mark.parametrize("kind", ["codesign", "chain"])
@pytest.mark.parametrize(
    ("source", "text"),
    [("graph.txt", "node1 -- Input -- forward_compute_time=1"), ("graph.json", '{"nodes": []}'), ("problem.json.gz", "kind: chain")],
)
def test_what_is_asked_in_yaml_alone_was_in_no_authors_file(kind: str, source: str, text: str) -> None:
    with pytest.raises(InstanceError, match=f"are asked in YAML, and '{source}' is an author's file"):
        read_again({"source": source, "text": text, "settings": []}, kind)


@pytest.mark.parametrize(("kind", "name", "settings"), ASKED[3:])
def test_keys_that_there_are_not_are_refused_of_every_kind(kind: str, name: str, settings: tuple[str, ...]) -> None:
    del kind
    with pytest.raises(InstanceError, match=r"colours: unknown key .* \[from --set colours=7\]"):
        read(file_of(name), (*settings, "colours=7"))


@pytest.mark.data
@pytest.mark.parametrize(
    ("kind", "name", "line"),
    [
        ("piper", "placement/piper/bert32a100.json", "file: {}"),
        ("pipedream", PROFILE, "file: {}"),
        ("placement", "placement/throughput/layer/gnmt_inference.json", "graph: {{file: {}}}"),
        ("sharding", "sharding/example.json", "file: {}"),
    ],
)
def test_an_authors_file_is_short_for_yaml_that_names_it(kind: str, name: str, line: str, tmp_path: Path) -> None:
    path = reference(name)
    target = tmp_path / "question.yaml"
    target.write_text(f"kind: {kind}\nmemory: 2 GiB\n{line.format(path)}\n".replace("memory", "limit" if kind == "sharding" else "memory"))
    short, long = read(path, ("limit=2 GiB",) if kind == "sharding" else ("memory=2 GiB",)), read(target)
    assert read_again(long.document, kind, tmp_path).document == long.document
    if kind == "sharding":
        assert (long.problem.limit, len(long.problem)) == (short.problem.limit, len(short.problem))
    else:
        assert long.memory == short.memory == 2**31
        assert long.document["files"] == {str(path): path.read_text(encoding="utf-8")}


@pytest.mark.data
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"text": None}, "the text of the question is missing"),
        ({"settings": "devices=4"}, "the text of the question is missing"),
        ({"settings": ["devices"]}, "a setting is written KEY=VALUE"),
        ({"settings": ["a." * 5000 + "b=1"]}, "more than 32 levels"),
        ({"files": {}}, "the text of 'graph.json' is missing"),
    ],
)
def test_what_is_kept_badly_is_refused_in_words(change: dict[str, object], said: str, tmp_path: Path) -> None:
    (tmp_path / "graph.json").write_text(reference("placement/throughput/layer/gnmt_inference.json").read_text(encoding="utf-8"))
    (tmp_path / "question.yaml").write_text("kind: placement\ngraph: {file: graph.json}\n")
    document = read(tmp_path / "question.yaml").document
    with pytest.raises(InstanceError, match=said):
        read_again({**document, **change}, "placement")


def test_a_study_is_no_single_question() -> None:
    with pytest.raises(InstanceError, match="crossopt compare"):
        read(INSTANCES / "studies/joint-vs-single-layer.yaml")
