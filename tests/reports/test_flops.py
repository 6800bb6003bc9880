"""Model FLOPs and hardware FLOPs of a step, in text and as figures, with the size of the network and whose constants priced it."""

from dataclasses import replace
from pathlib import Path

import pytest

from crossopt.crossflow.parameters import parameters
from crossopt.crossflow.plan import Plan
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.workload import repeated_share
from crossopt.instances.codesign.question import read_instance
from crossopt.reports.cli import main
from crossopt.reports.facts.question import evaluation_json
from crossopt.reports.sheets.codesign.design import evaluation_sheet
from crossopt.solvers.codesign.judge import evaluate_single
from tests.paths import INSTANCES
from tests.solvers.codesign.several_questions import TWO


@pytest.mark.parametrize(("recompute", "more"), [("none", 0.0), ("full", None)])
def test_hardware_flops_stand_beside_those_of_the_model_where_something_is_computed_again(recompute: str, more: float | None) -> None:
    """Of `full` a forward pass of the layers: 4 / 3 of what is no head."""
    settings = ("tensor=4", "pipeline=1", "microbatch=2", f"recompute={recompute}")
    instance = read_instance(INSTANCES / "tiny.yaml", settings)
    single = evaluate_single(instance)
    assert isinstance(instance.workload, Transformer)
    head = 6.0 * instance.workload.tokens * instance.workload.hidden * instance.workload.vocabulary
    share = (single.evaluation.flops - head) / 3.0 / single.evaluation.flops if more is None else more
    told, used = evaluation_json(instance, single.design, single.evaluation), single.evaluation.utilisation
    assert told["hardware_utilisation"] == pytest.approx(used * (1.0 + share))
    assert told["hardware_flops"] == pytest.approx(single.evaluation.flops * (1.0 + share))
    assert told["workload"]["flops_per_token"] * instance.workload.tokens == pytest.approx(single.evaluation.flops)
    assert (told["workload"]["parameters"], told["priced_by"]) == (parameters(instance.workload), instance.priced_by)
    figures = dict(evaluation_sheet(instance, single.design, single.evaluation).figures)
    assert figures["MFU"] == f"{used:.1%}"
    assert figures.get("HFU") == (f"{used * (1.0 + share):.1%}" if share else None)


def test_of_some_layers_computed_again_hardware_flops_are_their_share() -> None:
    instance = read_instance(INSTANCES / "tiny.yaml", ("tensor=4", "pipeline=1", "microbatch=2", "recompute=none"))
    model = instance.workload
    assert isinstance(model, Transformer)
    whole, some = (repeated_share(model, Plan(recompute=word, pipeline=2, interleave=3)) for word in ("full", "full-1"))
    assert some == pytest.approx(whole * 3 / 6)
    assert repeated_share(model, Plan(recompute="full-9", pipeline=2, interleave=3)) == whole
    assert repeated_share(replace(model, sequence=4), Plan()) == 0.0


def test_an_answer_about_several_workloads_says_once_what_priced_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "two.yaml").write_text(TWO, encoding="utf-8")
    assert main(["solve", str(tmp_path / "two.yaml"), "--verbose"]) == 0
    assert capsys.readouterr().out.count(" a100-80g (Megatron of 2021 and 2022, FSDP1); fitted to") == 1
