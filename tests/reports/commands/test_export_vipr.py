"""Results exported as certificates of VIPR: what they show, what binds them to their question, and why others have none."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from crossopt.formulation.vipr import vipr_certificate
from crossopt.instances.sharding.question import ShardingQuestion
from crossopt.reports.cli import main
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.sharding import certificate as sharding
from crossopt.solvers.vipr import check
from tests.instances.sharding.files import answered
from tests.instances.sharding.tiny import tiny
from tests.samples import SAMPLES


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Results on a few kinds of questions."""
    folder, found = tmp_path_factory.mktemp("results"), dict[str, Path]()
    for kind in ("benchmark", "sharding", "chain"):
        sample = SAMPLES[kind]
        for name, text in (*sample.files, (f"{kind}.yaml", sample.texts[0])):
            (folder / name).write_text(text, encoding="utf-8")
        found[kind] = folder / f"{kind}.json"
        assert main(["solve", str(folder / f"{kind}.yaml"), "--out", str(found[kind])]) == 0
    return found


@pytest.mark.parametrize(("kind", "said"), [("benchmark", "no benchmark is below 2 kernels"), ("sharding", "no choice is below 14")])
def test_a_result_is_exported_and_names_its_question(
    saved: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, said: str
) -> None:
    path = tmp_path / "proof.vipr"
    assert main(["export", str(saved[kind]), "--as", "vipr", "--out", str(path)]) == 0
    assert said in capsys.readouterr().err
    text = path.read_text(encoding="ascii")
    question = json.loads(saved[kind].read_text(encoding="utf-8"))["question"]
    assert sha256(json.dumps(question, sort_keys=True).encode()).hexdigest() in text.partition("VER")[0]
    assert all(line.startswith("% ") for line in text.partition("VER")[0].splitlines())
    assert main(["check", str(path)]) == 0
    assert main(["export", str(saved[kind]), "--as", "vipr"]) == 0
    assert capsys.readouterr().out.endswith(text)  # the same again


@pytest.mark.parametrize("seed", range(12))
def test_strategies_after_their_reductions_have_a_certificate_too(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharding, "LARGEST", 0)
    question = ShardingQuestion(tiny(seed), "", "")
    result = answered(question, "auto", Limits(60.0), unwatched)
    proof = sharding.integer_proof(question, result)
    if proof is None:  # forbidden pairs alone leave no choice
        assert result.value is None
        return
    certificate = vipr_certificate(proof)
    checked = check(certificate.text)
    assert checked.low == certificate.bound == (None if result.value is None else result.bound)
    assert checked.high in (None, result.value)


def test_a_bound_that_the_tree_does_not_show_is_not_in_the_certificate(
    saved: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forged = tmp_path / "forged.json"
    (tmp_path / "few.json").write_bytes((saved["benchmark"].parent / "few.json").read_bytes())
    result = json.loads(saved["benchmark"].read_text(encoding="utf-8"))
    forged.write_text(json.dumps({**result, "bound": 3}), encoding="utf-8")
    assert main(["export", str(forged), "--as", "vipr"]) == 0
    printed = capsys.readouterr()
    assert "RTP range 2 2\n" in printed.out
    assert "(the result says 3, which this file does not prove)" in printed.err
    for proof, said in (
        ({"steps": ["0", "0"]}, "the tree has more steps than its branches ask for"),
        ({"scale": 0}, "a scale of 0 is none"),
        ({"steps": ["1"], "scale": 1}, "step 0 does not show that no solution is there"),
    ):
        forged.write_text(json.dumps({**result, "proof": {**result["proof"], **proof}}), encoding="utf-8")
        assert main(["export", str(forged), "--as", "vipr"]) == 2
        assert f"the proof of this result does not hold: {said}" in capsys.readouterr().err


def test_other_proofs_and_questions_say_why_there_is_no_certificate(saved: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(saved["chain"]), "--as", "vipr"]) == 2
    said = "the bound is proved by dynamic programming over all cuts, not by a tree about an integer model, so there is no certificate"
    assert said in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["export", str(saved["chain"].with_suffix(".yaml")), "--as", "vipr"])
    assert "is no saved result, and only a result has a proof" in capsys.readouterr().err
