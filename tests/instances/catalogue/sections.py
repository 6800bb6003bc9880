"""Workloads built from a section of a question, with what is wrong with it; and a published configuration to change."""

import json
from pathlib import Path
from typing import Any

from crossopt.crossflow.parameters import parameters
from crossopt.crossflow.workload import Transformer, Workload
from crossopt.instances.catalogue.huggingface import transformer_from_config
from crossopt.instances.catalogue.workload import WorkloadSection, build_workload
from crossopt.instances.files.written import Files

LLAMA: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 32, "vocab_size": 32000, "max_position_embeddings": 4096, "tie_word_embeddings": False,
}  # fmt: skip


def built(section: WorkloadSection, folder: Path = Path()) -> Workload:
    faults: list[tuple[str, str]] = []
    workload = build_workload(section, Files(folder), lambda path, message: faults.append((path, message)))
    assert not faults
    assert workload is not None
    return workload


def faults_of(section: WorkloadSection, folder: Path = Path()) -> list[tuple[str, str]]:
    faults: list[tuple[str, str]] = []
    workload = build_workload(section, Files(folder), lambda path, message: faults.append((path, message)))
    assert (workload is None) == bool(faults)
    return faults


def weights(config: dict[str, Any], tmp_path: Path) -> float:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    workload = built(WorkloadSection(config="config.json", global_batch=(1,), sequence=transformer_from_config(config).sequence), tmp_path)
    assert isinstance(workload, Transformer)
    return parameters(workload)
