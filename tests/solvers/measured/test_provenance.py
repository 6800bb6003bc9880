"""Of which measured runs the constants that price them were fitted to their source."""

from pathlib import Path

import pytest

from crossopt.instances.measured.runs import read_measured
from crossopt.solvers.measured.accuracy import fitted_to

COLUMNS = "source,model,layers,hidden,heads,seq,gpu,gpus,tp,pp,mbs,gbs,time_per_iter_s,framework"
FOUNDRY, TITAN, CLOUD = "mosaicml/llm-foundry training benchmarks", "torchtitan benchmarks", "NVIDIA DGX Cloud benchmarking recipes v25.05"
CASES = (
    (FOUNDRY, "A100-40GB", "FSDP", True),  # the A100's own constants, of both memories
    (FOUNDRY, "H100", "FSDP", True),
    (FOUNDRY, "H200", "FSDP", False),  # H100's set, which saw none of H200
    (TITAN, "H100", "torchtitan", True),  # the set of FSDP, which saw them
    (TITAN, "A100-80GB", "torchtitan", False),
    (CLOUD, "GB200", "NeMo", True),  # an edition of a table of the same hands
    (CLOUD, "H100", "NeMo", False),  # the A100's constants
    ("somebody else", "H100", "FSDP", False),
)


@pytest.mark.parametrize(("source", "gpu", "framework", "fitted"), CASES)
def test_a_run_was_fitted_to_where_the_set_that_prices_it_saw_its_source(
    source: str, gpu: str, framework: str, fitted: bool, tmp_path: Path
) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(f"{COLUMNS}\n{source},GPT,24,2048,16,1024,{gpu},64,1,1,1,64,1.0,{framework}\n", encoding="utf-8")
    (run,) = read_measured(path).measurements
    assert fitted_to(run) is fitted
