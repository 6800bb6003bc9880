"""Random questions over all settings of plans together, with one or several numbers of devices, batches and workloads."""

from random import Random
from typing import Any

from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read_again

_DENSE = "transformer: {layers: %d, hidden: 512, heads: 8, kv_heads: 4, ffn: 2048, vocabulary: 8192, sequence: 512}"
_EXPERTS = (
    "transformer: {layers: %d, hidden: 512, heads: 8, kv_heads: 4, ffn: 1024, vocabulary: 8192, sequence: 512, experts: 4,"
    " experts_per_token: 2}, capacity_factor: %s"
)
_CHOICES: dict[str, tuple[str, ...]] = {
    "tensor": ("[1, 2]", "[1, 2, 4]", "divisors"),
    "context": ("[1]", "[1]", "[1, 2]"),
    "pipeline": ("[1, 2]", "[1, 2, 4]", "[2, 4]"),
    "microbatch": ("[1]", "[1, 2]"),
    "interleave": ("[1]", "[1, 2]", "divisors"),
    "sequence_parallel": ("[true]", "[false, true]"),
    "tensor_exchange": ("[exposed]", "[exposed, hidden]", "[hidden]"),
    "recompute": ("[none, full]", "[none, elements, selective-elements]", "[elements, selective, full]", "[none, selective, full]", "best"),
    "recompute_layers": ("[0]", "[0, 1]", "[0, 1, 2]"),
    "zero": ("[0, 1]", "[1, 3]", "[0, 1, 2, 3]"),
    "shard": ("[0]", "[0, 2]", "[0, 2, 4]"),
    "overlap": ("[none, both]", "[none, data, pipeline, both]"),
    "schedule": ("[1f1b]", "[1f1b, zero-bubble]", "[1f1b, zero-bubble-v]", "[zero-bubble, zero-bubble-v]", "[1f1b, dualpipe]"),
    "first_stage_layers": ("[0]", "[0, 1]", "[0, 2]"),
    "last_stage_layers": ("[0]", "[0, 1]", "[0, 3]"),
    "placement": ("[tensor-context-data-pipeline]", "[tensor-context-data-pipeline, data-tensor-context-pipeline]"),
}
_OF_EXPERTS = {"expert": ("[1, 2]", "[1, 2, 4]", "[2, 4]"), "expert_tensor": ("[0]", "[0, 1]", "[0, 1, 2]")}
_OFFLOADS = ("[none, activations]", "[none, optimizer, all]", "[activations]", "[weights-activations, optimizer]")
_CHIP = {
    "compute_area": ("[300 mm^2]", "[300 mm^2, 500 mm^2]"),
    "compute_power": ("[150 W]", "[120 W, 240 W]"),
    "l2_area": ("[60 mm^2]", "[20 mm^2, 120 mm^2]"),
    "network_power": ("[5 W]", "[2 W, 12 W]"),
    "hbm_stacks": ("[4]", "[2, 5]"),
}
_PRICES = "{electricity: 0.1 USD/kWh, lifetime: 4 year, wafer: 9000 USD, defects_per_square_metre: 1000, stack: 120 USD, package: 900 USD}"
_OBJECTIVES = ("step_time", "step_time", "step_time", "time_per_sample", "energy_per_token", "cost_per_token", "worst_step_time")


def any_settings(seed: int) -> Any:  # noqa: ANN401 - of one workload or several, one number of devices and batch or several
    """A question like no other; those that no plan could have are drawn again."""
    for attempt in range(50):
        random = Random(f"settings {seed} {attempt}")
        try:
            return read_again({"text": _text(random), "source": "question.yaml", "settings": []}, "codesign")
        except InstanceError:
            continue
    raise AssertionError(f"seed {seed}: no question was drawn in 50 attempts")


def _text(random: Random) -> str:
    shape = random.choice(("one", "one", "one", "counts", "batches", "both", "workloads"))
    free, objective, host = random.random() < 0.5, random.choice(_OBJECTIVES), random.random() < 0.3
    models = [_model(random) for _ in range(2 if shape == "workloads" else 1)]
    batch = "[16, 32]" if shape in {"batches", "both"} else str(random.choice((16, 32, 48)))
    devices = "[4, 8]" if shape in {"counts", "both"} else str(random.choice((4, 8, 16)))
    if shape == "counts" and random.random() < 0.4:
        objective = "devices"
    if shape in {"batches", "both"}:
        objective = random.choice(("time_per_sample", "energy_per_token", "cost_per_token"))
    hardware = random.choice(("a100-40g", "h100-sxm", "v100-16g"))
    more = f"global_batch: {batch}" + (", precision: fp16" if hardware == "v100-16g" and not free else "")
    lines = ["kind: codesign"]
    if shape == "workloads":
        lines += ["workloads:", *(f"  - {{{model}, {more}, name: w{place}}}" for place, model in enumerate(models))]
    else:
        lines.append(f"workload: {{{models[0]}, {more}}}")
    memory = f", host: {{memory: {random.choice((4, 64))} GiB, bandwidth: {random.choice((4, 60))} GB/s}}" if host else ""
    lines += [f"cluster: {{devices: {devices}, devices_per_node: {random.choice((2, 4))}{memory}}}", f"objective: {objective}"]
    lines += [f"prices: {_PRICES}", "technology: accelerator-7nm" if free else f"hardware: {hardware}", *_budget(random, objective, free)]
    choices = _CHOICES | (_CHIP if free else {}) | (_OF_EXPERTS if any("experts:" in model for model in models) else {})
    told = {name: random.choice(options) for name, options in choices.items()} | ({"offload": random.choice(_OFFLOADS)} if host else {})
    return "\n".join([*lines, "choices:", *(f"  {name}: {options}" for name, options in told.items())])


def _model(random: Random) -> str:
    layers = random.choice((4, 6, 8))
    return _EXPERTS % (layers, random.choice(("1", "1.1", "1.5"))) if random.random() < 0.5 else _DENSE % layers


def _budget(random: Random, objective: str, free: bool) -> list[str]:
    limits = []
    if free:
        limits += [f"die_area: {random.choice((780, 900))} mm^2", f"package_area: {random.choice((1500, 2200))} mm^2"]
        limits.append(f"power: {random.choice((300, 600))} W")
    if objective == "devices" or random.random() < 0.1:
        limits.append(f"step_time: {random.choice((20, 60, 200))} ms")
    return [f"budget: {{{', '.join(limits)}}}"] if limits else []
