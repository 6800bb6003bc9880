"""Public training runs with their plans and times, from `published/runs.yaml`: each as questions, and its seconds of a step."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import yaml

from crossopt.crossflow.parameters import step_flops
from crossopt.crossflow.plan import PLAN_FIELDS, Plan
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.entries import constants_for
from crossopt.instances.catalogue.registry import device
from crossopt.instances.codesign.plan_choices import divisors
from crossopt.reports.api import read
from tests.paths import ROOT

FOLDER: Final = ROOT / "tests/benchmarks/published"
RUNS: Final = FOLDER / "runs.yaml"
PAGE: Final = ROOT / "reports/gallery/published-plans.md"

PLAIN: Final[Mapping[str, Any]] = {name: getattr(Plan(), name) for name in PLAN_FIELDS if name != "data"}
"""What a launched plan has where its row says nothing; replicas are what the other degrees leave."""


@dataclass(frozen=True, slots=True)
class Run:
    """One public run: what was trained on what, the plan that was launched, and how long a step took."""

    name: str
    source: str
    assumed: str
    """What of the plan the source does not state, and where it was taken from."""
    facts: tuple[str, ...]
    """What the source says of how the run was made beside its plan, and where."""
    differs: str
    """In what the plan that was launched is not the one that the model prices; empty where it is."""
    hardware: str
    stack: str
    limits: Mapping[str, Any]
    """What the stack could not launch then."""
    parts: bool
    """Whether it is of a stack that sent parts of messages between stages, as those of 2021 to 2023 did."""
    fitted: bool
    base: Mapping[str, Any]
    """The question without what may be chosen."""
    plan: Mapping[str, Any]
    stated: Mapping[str, Any]
    """The time, as the source states it."""

    @property
    def devices(self) -> int:
        return int(self.base["cluster"]["devices"])

    @property
    def precision(self) -> str:
        return str(self.base["workload"]["precision"])

    @property
    def title(self) -> str:
        return f"{self.name} on {self.devices:,} {SHORT[self.hardware]}"

    @property
    def key(self) -> str:
        """A name for files and links."""
        return f"{self.title} {self.source}".lower().replace(" ", "-").replace(".", "-").replace(",", "")


SHORT: Final = {"a100-80g": "A100", "h100-sxm": "H100", "b200": "B200", "gb200-nvl72": "GB200"}


def runs() -> tuple[Run, ...]:
    """All rows of the table."""
    return _listed("runs")


def further() -> tuple[Run, ...]:
    """Runs that are priced as launched, beside no optimum."""
    return _listed("further")


def staged() -> tuple[Run, ...]:
    """Such runs of torchtitan with pipeline stages."""
    return _listed("staged")


def _listed(section: str) -> tuple[Run, ...]:
    table = yaml.safe_load(RUNS.read_text(encoding="utf-8"))
    return tuple(run_of(row, table) for row in table[section])


def sources() -> dict[str, str]:
    """Where each figure was read, by the name that rows use."""
    return dict(yaml.safe_load(RUNS.read_text(encoding="utf-8"))["sources"])


def run_of(row: Mapping[str, Any], table: Mapping[str, Any]) -> Run:
    """One row, with what the table says beside its rows."""
    workload, also = {"precision": "bf16", **row["workload"]}, row.get("also", ())
    limits = table["limits"][row["limits"]] if "limits" in row else {}
    known = [settings for settings in also if _is_known(settings)]
    stated = [table["facts"][name] for name in row.get("facts", ())]
    efficiency: dict[str, float] = {}
    factors: dict[str, Any] = {}
    for fact in stated:
        workload |= fact.get("workload", {})
        efficiency |= fact.get("efficiency", {})
        factors |= fact.get("factors", {})
    if network := workload.pop("network", None):
        workload["transformer"] = table["networks"][network]
    cluster = {"devices": row["devices"], **row.get("cluster", {})}
    base = {"kind": "codesign", "name": row["name"], "workload": workload, "cluster": cluster, "hardware": _device(row)}
    base |= {name: given for name, given in (("efficiency", efficiency), ("factors", factors)) if given}
    return Run(
        name=row["name"],
        source=row["source"],
        assumed=table["assumptions"][row["assumed"]],
        facts=tuple(fact["words"] for fact in stated),
        differs="" if also and len(known) == len(also) else row.get("differs", ""),
        hardware=row["hardware"],
        stack=row.get("stack", "megatron-core"),
        limits={name: values for name, values in limits.items() if name in PLAN_FIELDS},
        parts="limits" in row,
        fitted=row.get("fitted", False),
        base=base,
        plan={**PLAIN, **row["plan"], **{name: value for settings in known for name, value in settings.items()}},
        stated={name: row[name] for name in ("seconds", "tokens", "teraflops", "counted") if name in row},
    )


def _device(row: Mapping[str, Any]) -> str | dict[str, Any]:
    """The name of the registry's device, or where a source says that it had another memory its sheet with that."""
    if "memory" not in row:
        return str(row["hardware"])
    sheet = yaml.safe_load((ROOT / f"instances/registry/hardware/{row['hardware']}.yaml").read_text(encoding="utf-8"))
    return {**sheet, "name": f"{row['hardware']} of {row['memory']}", "dram": {**sheet["dram"], "capacity": row["memory"]}}


def _is_known(settings: Mapping[str, Any]) -> bool:
    """Whether plans can say this; what they cannot say yet is left out, and told by the row as a difference."""
    try:
        Plan(**settings)
    except (TypeError, ValueError):
        return False
    return True


def launched(run: Run) -> dict[str, Any]:
    """The question that leaves the launched plan alone; without the rules of the stack, so that a plan it does not launch has a price, too,
    but with the constants that a device has for it."""
    return {**run.base, **constants(run), "choices": dict(run.plan)}


def constants(run: Run) -> dict[str, Any]:
    """What the model's constants are for the stack, where they differ."""
    own = constants_for(device(run.hardware).stacks, run.stack)
    return {"efficiency": {**own, **run.base.get("efficiency", {})}} if own else {}


def opened(run: Run) -> dict[str, Any]:
    """The question of all plans that the stack launches in place of it."""
    return {**run.base, "stack": run.stack, "choices": {"interleave": _chunks(run), **run.limits, "rest": "all"}}


def narrowed(run: Run, names: tuple[str, ...]) -> dict[str, Any]:
    """The same with some settings open and the others as launched."""
    kept = {name: value for name, value in run.plan.items() if name not in names}
    return {**opened(run), "choices": {**opened(run)["choices"], **kept}}


def _chunks(run: Run) -> list[int]:
    """Chunks of a stage: divisors of the layers, as `all` opens, and of the layers with embedding and head, as many recipes deal them."""
    layers = model(run).stack
    return sorted({*divisors(layers), *(chunks for chunks in divisors(layers + 2) if chunks <= layers)})


@cache
def _shape(text: str) -> Transformer:
    return read(json.loads(text)).workload  # type: ignore[no-any-return]


def model(run: Run) -> Transformer:
    """The network of the run."""
    return _shape(json.dumps(launched(run)))


def seconds(run: Run) -> float:
    """Of a step, stated or derived."""
    if "seconds" in run.stated:
        return float(run.stated["seconds"])
    network = model(run)
    tokens = network.global_batch * network.sequence
    if "tokens" in run.stated:
        return tokens / (float(run.stated["tokens"]) * run.devices)
    counted = _narayanan(network) if run.stated["counted"] == "narayanan" else step_flops(network)
    return counted / (float(run.stated["teraflops"]) * 1e12 * run.devices)


def _narayanan(network: Transformer) -> float:
    """FLOPs of a step with full recomputation, by formula 3 of Narayanan et al. 2021."""
    layers, hidden, sequence = network.layers, network.hidden, network.sequence
    shares = 1 + sequence / (6 * hidden) + network.vocabulary / (16 * layers * hidden)
    return 96.0 * network.global_batch * sequence * layers * hidden**2 * shares
