"""Measured runs priced by crossopt and by public tools beside it.

    python -m tests.benchmarks.other_tools RUNS.csv --python INTERPRETER

llm-analysis 0.2 and mlsysim 0.3 are asked in an interpreter that has them (`pip install llm-analysis mlsysim`, in an environment of its
own). Each takes one share of the peak for all products: its own default, 0.5, and the share that brings its median bias on all these runs
to none, which its users could not know. Rows are of dense networks on whole nodes of A100 and H100 in 16 bits. Calculon is on no package
index: of the eight rows that its authors publish (Korthikanti et al. 2022, table 5) its seconds are printed beside crossopt's.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crossopt.crossflow.parameters import parameters
from crossopt.instances.measured.runs import Measurement, read_measured
from crossopt.solvers.measured.accuracy import predictions

_DEVICES = {"a100-80g": "a100-sxm-80gb", "a100-40g": "a100-sxm-40gb", "h100-sxm": "h100-sxm-80gb"}
_DEFAULT, _TRIED = 0.5, np.linspace(0.2, 0.8, 25)
_TOOLS = ("llm-analysis", "mlsysim")
CALCULON = {
    (48, "full"): 1.396,
    (48, "selective"): 1.137,
    (96, "full"): 18.029,
    (96, "selective"): 13.638,
    (105, "full"): 49.893,
    (105, "selective"): 34.473,
    (128, "full"): 90.081,
    (128, "selective"): 66.041,
}
"""Seconds by Calculon's public code and its files of Korthikanti's runs (calculon-ai/calculon, validation/seqsel/tab5), by layers and
recomputation."""

_DRIVER = """
import json, logging, sys
logging.disable(logging.CRITICAL)
tool, rows, shares = json.load(sys.stdin)

def by_llm_analysis(row, share):
    from llm_analysis.analysis import ActivationRecomputation, DSZeRO, LLMAnalysis
    from llm_analysis.config import DtypeConfig, ModelConfig, ParallelismConfig, get_gpu_config_by_name
    model = ModelConfig(name="model", num_layers=row["layers"], n_head=row["heads"], hidden_dim=row["hidden"], vocab_size=row["vocabulary"],
            max_seq_len=row["sequence"], num_key_value_heads=row["kv_heads"], ffn_embed_dim=row["ffn"],
            expansion_ratio=row["ffn"] / row["hidden"])
    split = ParallelismConfig(tp_size=row["tensor"], pp_size=row["pipeline"], dp_size=row["data"],
            sp_size=row["tensor"] if row["sequence_parallel"] else 1)
    ask = LLMAnalysis(model, get_gpu_config_by_name(row["gpu"]), DtypeConfig(), split, flops_efficiency=share)
    again = {"none": 0, "selective": 1, "full": 2}.get(row["recompute"], 1)
    found = ask.training(batch_size_per_gpu=row["microbatch"], gradient_accumulation_steps=row["microbatches"],
            global_batch_size=row["batch"], seq_len=row["sequence"],
            total_num_tokens=row["batch"] * row["sequence"], flash_attn=row["flash"],
            activation_recomputation=ActivationRecomputation(again), ds_zero=DSZeRO(row["zero"]),
            mlp_gated_linear_units=row["gated"])
    return found["latency_per_iter"]

def by_mlsysim(row, share):
    from mlsysim import ureg
    from mlsysim.engine.solvers.distributed import DistributedModel
    from mlsysim.models.types import TransformerWorkload
    from mlsysim.systems.registry import Fabrics, Nodes
    from mlsysim.systems.types import Fleet
    new = row["gpu"].startswith("h100")
    model = TransformerWorkload(name="model", architecture="Transformer", parameters=row["parameters"] * ureg.count, layers=row["layers"],
            hidden_dim=row["hidden"], heads=row["heads"], kv_heads=row["kv_heads"], vocab_size=row["vocabulary"])
    fleet = Fleet(name="cluster", node=Nodes.DGX_H100 if new else Nodes.DGX_A100, count=row["devices"] // 8,
                  fabric=Fabrics.InfiniBand_NDR if new else Fabrics.InfiniBand_HDR)
    found = DistributedModel().solve(model, fleet, batch_size=row["batch"], efficiency=share, tp_size=row["tensor"],
            pp_size=row["pipeline"], v_stages=row["interleave"],
            microbatch_count=row["microbatches"], zero_stage=row["zero"],
            activation_recomputation=row["recompute"] == "full", overlap_comm=row["overlap"],
            seq_len=row["sequence"])
    return found.step_latency_total.to("second").magnitude

price = by_llm_analysis if tool == "llm-analysis" else by_mlsysim
answers = []
for row in rows:
    try:
        answers.append([price(row, share) for share in shares])
    except Exception:
        answers.append(None)
print(json.dumps(answers))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has the other tools")
    options = parser.parse_args()
    runs = [run for run in read_measured(options.runs).measurements if _is_plain(run)]
    measured = np.array([run.seconds for run in runs])
    errors = {"crossopt": predictions(runs)[:, 0] / measured - 1.0}
    for tool in _TOOLS:
        errors |= _errors_of(tool, options.python, runs, measured)
    _print(runs, errors)
    sys.stdout.writelines(f"{line}\n" for line in beside_calculon(runs, errors["crossopt"]))


def beside_calculon(runs: Sequence[Measurement], errors: np.ndarray) -> Iterator[str]:
    """Measured and predicted seconds of the runs that Calculon publishes."""
    for run, error in zip(runs, errors, strict=True):
        seconds = CALCULON.get((run.workload.layers, run.plan.recompute)) if run.source.startswith("Korthikanti") else None
        if seconds is not None:
            ours, theirs = (1.0 + error) * run.seconds, seconds / run.seconds - 1.0
            name = f"{run.workload.layers} layers, {run.plan.recompute} recomputation"
            yield f"{name}: measured {run.seconds:g} s, crossopt {ours:.3f} s ({error:+.1%}), Calculon {seconds:g} s ({theirs:+.1%})"


def _is_plain(run: Measurement) -> bool:
    known = run.gpu in _DEVICES and run.workload.precision in ("bf16", "fp16") and run.cluster.devices % 8 == 0
    return known and run.workload.experts == 1 and run.plan.context == 1


def _row(run: Measurement) -> dict[str, Any]:
    """The settings of a run, as any tool may take them."""
    model, plan = run.workload, run.plan
    return {
        **{name: getattr(model, name) for name in ("layers", "hidden", "heads", "ffn", "vocabulary", "sequence", "gated")},
        **{name: getattr(plan, name) for name in ("tensor", "pipeline", "data", "microbatch", "interleave", "sequence_parallel", "zero")},
        "kv_heads": model.kv_heads or model.heads,
        "batch": model.global_batch,
        "microbatches": model.global_batch // (plan.data * plan.microbatch),
        "flash": model.attention == "flash",
        "recompute": plan.recompute,
        "overlap": plan.overlap in ("data", "both"),
        "parameters": float(parameters(model)),
        "gpu": _DEVICES[run.gpu],
        "devices": run.cluster.devices,
    }


def _errors_of(tool: str, python: str, runs: list[Measurement], measured: np.ndarray) -> dict[str, np.ndarray]:
    """The tool's errors at its default share of the peak, and at the share without a median bias; not-a-number where it prices nothing."""
    shares = [_DEFAULT, *map(float, _TRIED)]
    asked = json.dumps([tool, list(map(_row, runs)), shares])
    found = subprocess.run([python, "-c", _DRIVER], input=asked, capture_output=True, text=True, check=False)
    if found.returncode:
        print(f"{tool}: not asked ({(found.stderr.strip().splitlines() or ['no answer'])[-1]})")
        return {}
    answers = json.loads(found.stdout.strip().splitlines()[-1])
    priced = np.array([answer or [np.nan] * len(shares) for answer in answers]) / measured[:, None] - 1.0
    if np.isnan(priced).all():
        print(f"{tool}: not asked (it prices none of these runs in {python})")
        return {}
    best = int(np.argmin(np.abs(np.nanmedian(priced[:, 1:], axis=0)))) + 1
    return {f"{tool}, {_DEFAULT:.2f} of the peak": priced[:, 0], f"{tool}, {shares[best]:.2f} of the peak": priced[:, best]}


def _print(runs: list[Measurement], errors: Mapping[str, np.ndarray]) -> None:
    """Mean absolute errors by source, of the runs that all tools price."""
    common = ~np.any([np.isnan(each) for each in errors.values()], axis=0)
    print(f"{len(runs)} runs, {int(common.sum())} priced by all; mean absolute error (median bias)")
    print("| source | runs | " + " | ".join(errors) + " |")
    for source in (*dict.fromkeys(run.source for run in runs), ""):
        here = common & np.array([source in ("", run.source) for run in runs])
        if here.any():
            cells = (f"{np.mean(np.abs(each[here])):.1%} ({np.median(each[here]):+.1%})" for each in errors.values())
            print(f"| {source or 'all'} | {int(here.sum())} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
