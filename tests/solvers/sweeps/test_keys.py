"""Keys: the same for the same question, wherever it lies and however it is written, and another one for whatever may change an answer."""

from pathlib import Path

import pytest

from crossopt.instances.question import read
from crossopt.solvers.answer import Limits
from crossopt.solvers.sweeps import listed
from crossopt.solvers.sweeps.listed import code_digest, key_of, question_digest
from tests.paths import INSTANCES

TINY = (INSTANCES / "tiny.yaml").read_text(encoding="utf-8")


def digest(path: Path, *settings: str) -> str:
    return question_digest("codesign", read(path, settings).document)


def test_comments_names_places_and_the_order_of_keys_are_no_part_of_a_question(tmp_path: Path) -> None:
    own = tmp_path / "mine.yaml"
    lines = [line for line in TINY.splitlines() if not line.startswith("#")]
    own.write_text(
        "\n".join(["name: another", *reversed([line for line in lines if line[0] != " " and line != "choices:"])]), encoding="utf-8"
    )
    with own.open("a", encoding="utf-8") as file:
        file.write("\nchoices: {recompute: [none, full], microbatch: [1, 2], pipeline: [1, 2], tensor: [1, 2, 4]}  # as there\n")
    assert digest(own) == digest(INSTANCES / "tiny.yaml")


def test_a_setting_is_what_it_sets(tmp_path: Path) -> None:
    own = tmp_path / "tiny.yaml"
    own.write_text(TINY.replace("devices: 8,", "devices: 16,"), encoding="utf-8")
    assert digest(own) == digest(INSTANCES / "tiny.yaml", "cluster.devices=16") != digest(INSTANCES / "tiny.yaml")
    assert digest(own, "cluster.devices=8") == digest(INSTANCES / "tiny.yaml")


def test_the_texts_of_files_that_are_named_count() -> None:
    document = read(INSTANCES / "tiny.yaml").document
    texts = [question_digest("codesign", {**document, "files": {"model.json": text}}) for text in ("{}", "{} ")]
    assert len({*texts, question_digest("codesign", document)}) == 3


@pytest.mark.parametrize("limits", [Limits(1.0), Limits(seed=1), Limits(gap=0.1), Limits(form="weak"), Limits(workers=2)])
def test_what_an_engine_may_spend_counts(limits: Limits) -> None:
    assert key_of("q", "auto", limits) != key_of("q", "auto", Limits())
    assert key_of("q", "boxes", limits) != key_of("q", "auto", limits)
    assert key_of("q", "boxes", Limits(start="cold")) != key_of("q", "boxes", Limits())


def test_the_code_that_answers_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key_of("q", "auto", Limits())
    assert len(code_digest()) == 64
    monkeypatch.setattr(listed, "code_digest", lambda: "another")
    assert key_of("q", "auto", Limits()) != before
