"""Prices of measured serving beside those of AIConfigurator itself, on the same rows.

    python -m venv other && other/bin/pip install aiconfigurator==0.12.0
    python -m tests.benchmarks.aiconfigurator silicon.csv other/bin/python [ROWS]

The file is the table of runs of ai-dynamo/aiconfigurator (systems/silicon_sample.csv). AIConfigurator prices so many rows (150 by default),
evenly spaced over those of one worker that prefills and decodes, by its `estimate` with the latest database of the engine. Rows that it
refuses, such as for memory, are counted. Its packages are those of an environment of its own.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from crossopt.instances.measured.serving import Served, read_served
from crossopt.solvers.measured.serving import PricedRun, errors_of, price_served

SYSTEMS: Final = {"h100-sxm": "h100_sxm", "h200": "h200_sxm", "b200": "b200_sxm", "b300": "b300_sxm"}
MODELS: Final = {
    "Llama-3.1-70B": "meta-llama/Meta-Llama-3.1-70B",
    "Qwen3-32B": "Qwen/Qwen3-32B-FP8",
    "Qwen3-235B-A22B": "Qwen/Qwen3-235B-A22B-FP8",
    "DeepSeek-R1": "deepseek-ai/DeepSeek-R1",
    "DeepSeek-V3": "deepseek-ai/DeepSeek-V3",
    "gpt-oss-120b": "openai/gpt-oss-120b",
    "MiniMax-M2.5": "MiniMaxAI/MiniMax-M2.5",
    "Kimi-K2.5": "moonshotai/Kimi-K2.5",
}
FORMATS: Final = {"fp8": "fp8", "fp8-block": "fp8_block", "fp4": "nvfp4", "bf16": "bfloat16"}
THEIRS: Final = """
import json, logging, sys, warnings
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
from aiconfigurator.cli.api import cli_estimate
for line in sys.stdin:
    try:
        found = cli_estimate(**json.loads(line))
        print("PRICED " + json.dumps([found.ttft, found.tpot]), flush=True)
    except BaseException as error:
        print("PRICED " + json.dumps(f"{type(error).__name__}: {error}"[:160]), flush=True)
"""


def asked(run: Served) -> dict[str, Any]:
    """A row as AIConfigurator's `estimate` takes it."""
    experts: dict[str, Any] = {}
    if run.shape.experts > 1:
        experts = {"moe_tp_size": run.tensor // run.expert, "moe_ep_size": run.expert, "moe_quant_mode": FORMATS.get(run.weights)}
    return {
        "model_path": MODELS[run.model],
        "system_name": SYSTEMS[run.gpu],
        "backend_name": run.engine,
        "isl": run.input,
        "osl": run.output,
        "batch_size": run.batch // run.data,
        "tp_size": run.tensor // run.data,
        "pp_size": run.pipeline,
        "attention_dp_size": run.data,
        "gemm_quant_mode": FORMATS.get(run.weights),
        **experts,
    }


def theirs(runs: Sequence[Served], python: Path) -> list[list[float] | str]:
    """Milliseconds to the first token and per output token by AIConfigurator, or its reason."""
    lines = "".join(f"{json.dumps(asked(run))}\n" for run in runs)
    done = subprocess.run([str(python), "-c", THEIRS], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line.removeprefix("PRICED ")) for line in done.stdout.splitlines() if line.startswith("PRICED ")]


def main(path: Path, python: Path, most: int) -> None:
    """Print errors of both, group by group."""
    known = [run for run in read_served(path).measured if run.prefill is None and run.model in MODELS and run.gpu in SYSTEMS]
    known = [run for run in known if run.first_token is not None and run.output_time is not None]
    runs = known[:: max(len(known) // most, 1)][:most]
    answers, ours = theirs(runs, python), price_served(runs)
    both: dict[str, list[tuple[PricedRun, PricedRun]]] = {}
    refused: dict[str, int] = {}
    for row, answer in zip(ours, answers, strict=True):
        if isinstance(answer, str):
            refused[answer] = refused.get(answer, 0) + 1
            continue
        other = PricedRun(row.run, answer[1] * 1e-3, answer[0] * 1e-3)
        for label in ("dense" if row.run.shape.experts == 1 else "experts", f"{row.run.engine}, {row.run.model} on {row.run.gpu}", "all"):
            both.setdefault(label, []).append((row, other))
    print(f"{len(runs)} rows, {len(runs) - sum(refused.values())} priced by both\n")
    print(f"{'':<44}{'rows':>6}{'TPOT':>8}{'theirs':>8}{'TTFT':>8}{'theirs':>8}{'queued':>8}{'TTFT':>8}{'theirs':>8}")
    for label in sorted(both, key=lambda label: (label in ("dense", "experts", "all"), label == "all", label)):
        first, second = (errors_of(label, [pair[side] for pair in both[label]]) for side in (0, 1))
        shares = [first.output_time, second.output_time, first.first_token, second.first_token]
        queued = [first.queued_first_token, second.queued_first_token]
        cells = ["-" if share is None else f"{share:.1%}" for share in (*shares, *queued)]
        print(f"{label:<44}{first.rows:>6}" + "".join(f"{cell:>8}" for cell in (*cells[:4], str(first.queued), *cells[4:])))
    for reason, count in sorted(refused.items(), key=lambda pair: -pair[1])[:5]:
        print(f"  {count:>4} refused: {reason}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 150)
