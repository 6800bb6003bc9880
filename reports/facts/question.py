"""A question about joint designs in words, and an evaluation of one of its designs as plain data."""

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from crossopt.crossflow.goodput import goodput
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.workload import Gemm, Lstm, Transformer
from crossopt.instances.catalogue.workload import model_text, repeated_share, work_of
from crossopt.instances.codesign.instance import FreeHardware, Goal, Instance, MultiScaleQuestion
from crossopt.instances.codesign.open_questions import FEWEST
from crossopt.instances.codesign.plan_groups import LeftOut, left_out
from crossopt.instances.files.dataclass_json import to_plain
from crossopt.instances.files.units import format_quantity
from crossopt.solvers.codesign.answer import ChosenDesign, DesignEvaluation
from crossopt.solvers.codesign.objective import DIMENSIONS

if TYPE_CHECKING:
    from crossopt.crossflow.rare_exchanges import Groups


@dataclass(frozen=True, slots=True)
class QuestionText:
    """A question in words."""

    sentence: str
    terms: tuple[tuple[str, str], ...]
    """What is given, by name."""
    open: tuple[tuple[str, tuple[Any, ...]], ...]
    """Choices with more than one option."""
    goal: Goal | None = None
    """A whole run, where one is asked about."""
    left_out: LeftOut | None = None
    """What became of the combinations of settings, where that is known."""
    instance: Instance | None = None
    """The question itself, of one workload on one number of devices."""


def evaluation_json(instance: Instance, design: ChosenDesign, evaluation: DesignEvaluation) -> dict[str, Any]:
    """An evaluation as plain data, with the size of the network, which constants priced it, and the FLOPs that hardware does for a step."""
    share = repeated_share(instance.workload, design.plan)
    return {
        "design": to_plain(design),
        "evaluation": to_plain(evaluation),
        "workload": {"name": instance.workload.name, **work_of(instance.workload)},
        "hardware_flops": evaluation.flops * (1.0 + share),
        "hardware_utilisation": evaluation.utilisation * (1.0 + share),
        "priced_by": instance.priced_by,
    }


_AIMS = {
    "step_time": "with the least time for a training step",
    "time_per_sample": "with the least time for a sample",
    "worst_step_time": "with the least step time under the slowest set of constants",
    "energy_per_token": "with the least energy a token",
    "rated_energy_per_token": "with the most tokens for a watt of rated power and second",
    "cost_per_token": "at the least cost a token",
    "mean_step_time": "in the shortest time with exchanges",
    "run_cost": "at the least cost of the whole run",
    "die_area": "on the smallest die",
    "power": "with the least power",
}
_BUDGETS = {**DIMENSIONS, "package_area": "area", "power_density": "power_per_area", "reticle": "area"}


def text_of_question(instance: Instance) -> QuestionText:
    """The question in words."""
    free = isinstance(instance.hardware, FreeHardware)
    name = instance.hardware.technology.name if isinstance(instance.hardware, FreeHardware) else instance.hardware.name
    count, options = instance.cluster.devices, instance.hardware.options if isinstance(instance.hardware, FreeHardware) else ()
    devices = f"{count:,} device{'s' * (count != 1)}{_of_each(instance.sites)}"
    which = f"Which chip of {name} and which plan train" if free else "Which plan trains"
    sentence = f"{which} {instance.workload.name} on {devices}{'' if free else f' of {name}'} {_AIMS[instance.objective]}?"
    inside = " in ".join(f"groups of {size:,}" for size in instance.cluster.level_sizes[:-1])
    terms = [
        ("workload", _workload(instance)),
        *zip(("model", "work"), model_text(instance.workload), strict=False),
        ("devices", f"{count:,}{f', in {inside}' if inside else ''}{_of_each(instance.sites)}"),
    ]
    hardware, sizes = instance.hardware, instance.cluster.level_sizes
    reduces = [join.reduces for join in hardware.joins] if isinstance(hardware, FreeHardware) else [link.reduces for link in hardware.links]
    if any(reduces):
        adding = " and ".join(f"{size:,}" for size, adds in zip(sizes, reduces, strict=True) if adds)
        terms.append(("switches", f"those that join {adding} devices add up all-reduces"))
    if instance.failures is not None:
        left = goodput(instance.failures, count)
        terms.append(("failures", f"one in {left.between / 3600.0:.3g} h; with the best checkpoints {left.share:.1%} of the time lasts"))
    terms.append(("technology" if free else "device", name))
    budget = {
        key.replace("_", " "): format_quantity(value, _BUDGETS[key])
        for key, value in (*asdict(replace(instance.budget, reticle=instance.budget.one_die)).items(), *instance.ceilings)
        if value < float("inf")
    }
    terms += [("budget of a device", ", ".join(f"{key} {value}" for key, value in budget.items()))] if budget else []
    opened = tuple((key, values) for key, values in (*options, *instance.plan_options) if len(values) > 1)
    return QuestionText(sentence, tuple(terms), opened, instance.goal, left_out(instance), instance)


def _of_each(sites: "Groups | None") -> str:
    return f" in each of {sites.groups} groups" if sites is not None and sites.groups > 1 else ""


def text_of_scales(question: MultiScaleQuestion) -> QuestionText:
    """The question in words where the number of devices, the network or the batch is open."""
    largest = text_of_question(question.parts[-1])
    grouped = question.parts[-1].sites if "groups" in question.compared else None
    listed = _or_list(question.numbers if grouped is None else (grouped.groups * question.parts[-1].cluster.devices,))
    workload = question.parts[-1].workload.name
    aim = "every limit be kept" if question.objective == FEWEST else f"{workload} be trained {_AIMS[question.objective]}"
    terms = tuple((name, text) for name, text in largest.terms if name != "devices" and name not in question.compared)
    networks = question.networks
    terms = (*terms, ("devices", listed), *(((question.compared_names, "; ".join(networks)),) if networks else ()))
    terms = (*terms, *((("batches", _or_list(question.samples)),) if question.batches else ()))
    batch = f" with which batch, of {_or_list(question.samples)}," if question.batches else ""
    batch = f" on which of {len(networks)} {question.compared_names},{' and' * bool(batch)}{batch}" if networks else batch
    if batch and (len(question.numbers) == 1 or grouped is not None):
        return QuestionText(f"{batch[1:].capitalize()} can {aim}?", terms, largest.open)
    how = "On how few devices" if question.objective == FEWEST else "On how many devices"
    return QuestionText(f"{how}, of {listed},{' and' * bool(batch)}{batch} can {aim}?", terms, largest.open)


def _or_list(numbers: tuple[int, ...]) -> str:
    texts = [f"{number:,}" for number in numbers]
    return " or ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def _workload(instance: Instance) -> str:
    workload = instance.workload
    match workload:
        case Transformer():
            experts = f", {workload.experts} experts of which {workload.experts_per_token} a token" if workload.experts > 1 else ""
            heads = f"{workload.heads} heads{experts}"
            shape = f"{workload.layers} layers, hidden size {workload.hidden:,}, {heads}, sequence {workload.sequence:,}"
        case Lstm():
            shape = f"{workload.layers} layers, hidden size {workload.hidden:,}, sequence {workload.sequence:,}"
        case Gemm():
            return f"{workload.name}: a product of {workload.rows:,} x {workload.depth:,} by {workload.depth:,} x {workload.columns:,}"
    return f"{workload.name}: {shape}; {workload.global_batch:,} samples a step in {workload.precision}"
