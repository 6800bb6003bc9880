"""Questions about benchmarks: kernels are operations that are alike, and every mistake is told in one sentence with its place."""

import json
from pathlib import Path
from typing import Any

import pytest

from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read
from crossopt.instances.traces.graph_file import Trace, document_of
from tests.trace_steps import few_kernels, training_step


def asked(folder: Path, said: dict[str, Any], trace: dict[str, Any]) -> Any:  # noqa: ANN401 - a question
    (folder / "trace.json").write_text(json.dumps(trace), encoding="utf-8")
    path = folder / "q.yaml"
    path.write_text(json.dumps({"kind": "benchmark", "trace": "trace.json", **said}), encoding="utf-8")  # JSON is YAML
    return read(path, ())


def test_operations_that_are_alike_are_one_kernel_those_with_most_time_first(tmp_path: Path) -> None:
    question = asked(tmp_path, {}, document_of(Trace(few_kernels((("add", 5, 3), ("gemm", 30, 2))))))
    assert [(one.name, one.operations, one.time) for one in question.kernels] == [("gemm", (3, 4), 61), ("add", (0, 1, 2), 16)]
    assert dict(zip(question.totals, question.sums, strict=True)) == {"time": 77, "kernel time": 77, "runs": 5, "bytes": 700}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"share": 0}, "share: a benchmark that stands for nothing is none (give more than 0)"),
        ({"share": 1.5}, "share: '1.5' is too large (at most 1)"),
        ({"deviation": -0.1}, "deviation: '-0.1' is negative"),
        (
            {"totals": ["copy time"]},
            "totals[0]: the trace says nothing of 'copy time' (it has time, kernel time, collective time, runs, bytes",
        ),
        ({"totals": ["tiem"]}, "totals[0]: 'tiem' is unknown (did you mean 'time'?)"),
        ({"kinds": ["copy"]}, "trace: it holds no operation of the kinds copy (it holds collective, gap, host, kernel, wait)"),
        ({"kernels": 3}, "kernels: the fewest kernels are asked for already"),
        ({"trace": "other.json"}, "trace: there is no such file (check the name and the folder); paths begin at the question"),
    ],
)
def test_every_mistake_is_told(said: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(InstanceError) as error:
        asked(tmp_path, said, document_of(Trace(training_step(1))))
    assert told in str(error.value)
