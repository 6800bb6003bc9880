"""A question with several workloads or numbers of devices, split into questions with one each."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import field, fields, replace
from math import isfinite
from typing import Any

from crossopt.crossflow.recomputation import OF_BOTH, OF_EXPERTS, OF_LATENTS, RECOMPUTE, WHOLE_PARTS
from crossopt.crossflow.records import dataclass
from crossopt.instances.catalogue.registry import UnknownNameError, model
from crossopt.instances.catalogue.workload import WorkloadSection
from crossopt.instances.codesign.instance import Scale
from crossopt.instances.codesign.networks import network_settings, network_text, networks_of
from crossopt.instances.codesign.plan_choices import KERNEL_CHOICES, Report
from crossopt.instances.codesign.section import (
    TRANSFORMER_CHOICES,
    ChoicesSection,
    ClusterSection,
    CodesignFile,
    SharingSection,
    TrainedWorkloadSection,
    open_options,
)
from crossopt.instances.files.document import Node
from crossopt.instances.files.units import quoted

_OF_TRANSFORMERS = {*TRANSFORMER_CHOICES, "recompute_layers"}
_PLAN_CHOICES = {*_OF_TRANSFORMERS, *KERNEL_CHOICES, "rest", "only"}
_OPEN: dict[str, Any] = {**{name: open_options(name) for name in TRANSFORMER_CHOICES}, "recompute_layers": (0, 1, 2)}
"""Open settings of a transformer's plan by default: all except orders that no stack uses, and experts split over other than the tensor
ranks."""
_OPEN_KERNEL: dict[str, Any] = {"split": ("rows-columns", "inner"), **dict.fromkeys(("rows", "columns", "layers", "data"), "divisors")}
FEWEST = "devices"
"""The objective of the fewest devices, for questions with several numbers of devices only."""
MOST_COUNTS = 64
"""Most numbers of devices of a question, alone or with a network and a batch; each is a separate question."""
_MOST = 16
"""Most workloads of a question."""


@dataclass(frozen=True, slots=True)
class Question:
    """The question with the other workloads removed."""

    name: str
    weight: float
    file: CodesignFile
    own: frozenset[str]
    """Choices of the workload itself, not those of all."""


def batches_of(file: CodesignFile) -> tuple[int, ...]:
    """The batches of the only workload, if there are several."""
    batches = file.workload.global_batch if file.workload is not None else None
    return batches if batches is not None and len(batches) > 1 else ()


def by_part(file: CodesignFile, most: int) -> Iterator[tuple[Scale, CodesignFile, tuple[str, ...]]]:
    """A question per number of devices, network and batch, each as if written alone, with the settings that select it.
    There are at most `most` networks for each number of devices.
    """
    counts, several, listed = file.cluster.devices, batches_of(file), file.cluster.network
    objective = "step_time" if file.objective == FEWEST else file.objective
    for count in counts:
        for network in networks_of(file.cluster, count, most):
            chosen = listed is not None and network is not None and network != listed
            for batch in several or (0,):
                part = replace(file, objective=objective, cluster=replace(file.cluster, devices=(count,), network=network))
                if batch and file.workload is not None:
                    part = replace(part, workload=replace(file.workload, global_batch=(batch,)))
                settings = (
                    *((f"cluster.devices={count}",) if len(counts) > 1 else ()),
                    *(network_settings(listed, network) if listed and network else ()),
                    *((f"workload.global_batch={batch}",) if batch else ()),
                    *((f"objective={objective}",) if several or objective != file.objective else ()),
                )
                yield Scale(count, batch, network_text(listed, network) if chosen and listed and network else ""), part, settings


def number_of_parts(file: CodesignFile, most: int) -> int:
    """The number of these questions, counted up to a limit."""
    several = len(batches_of(file) or (0,))
    return min(most, sum(len(networks_of(file.cluster, count, most)) * several for count in file.cluster.devices))


def per_sample(file: CodesignFile, root: Node) -> CodesignFile:
    """The question with objective time per sample if it has several batches and names no objective."""
    named = isinstance(root.value, dict) and "objective" in root.value
    return replace(file, objective="time_per_sample") if batches_of(file) and not named else file


def batch_faults(file: CodesignFile) -> list[tuple[str, str]]:
    """Faults of comparing batches by step time: a step of a smaller one does less work."""
    faults = []
    if file.objective in ("step_time", "worst_step_time"):
        remedy = "write objective: time_per_sample, energy_per_token, or run_cost with goal: {tokens}"
        faults.append(("objective", f"steps of different batches do different work ({remedy})"))
    for name in (name for name in ("step_time", "worst_step_time") if getattr(file.budget, name) is not None):
        remedy = "write goal: {tokens, deadline}, or give one batch"
        faults.append((f"budget.{name}", f"the same limit on a step asks less of a smaller batch ({remedy})"))
    if file.objective == FEWEST and (file.goal is None or (file.goal.deadline is None and file.goal.budget is None)):
        faults.append(
            ("objective", "the fewest devices for one of several batches need a limit on the whole run (write goal: {tokens, deadline})")
        )
    return faults


def zero_faults(section: ClusterSection) -> list[tuple[str, str]]:
    """Faults of a bandwidth or share of zero among several of a dimension."""
    places = enumerate(section.network or ())
    named = [(f"cluster.network[{index}].{key}", getattr(dim, key) or ()) for index, dim in places for key in ("bandwidth", "share")]
    return [(path, "zero is no link (leave it out)") for path, values in named if len(values) > 1 and 0.0 in values]


def questions_of(file: CodesignFile, root: Node, report: Report) -> tuple[Question, ...]:
    """A question per workload; empty after a fault in what they share."""
    listed = file.workloads or ()
    given = [_given_choices(root, number) for number in range(len(listed))]
    faults = [*_shared_faults(file, listed), *(fault for number, own in enumerate(given) for fault in _choice_faults(number, own))]
    for path, message in faults:
        report(path, message)
    if faults:
        return ()
    kernels = [_is_kernel(section) for section in listed]
    return tuple(
        _question(file, section, own, choices_named(root), kernel if len(set(kernels)) > 1 else None)
        for section, own, kernel in zip(listed, given, kernels, strict=True)
    )


def name_of(section: SharingSection) -> str:
    """Label of a workload."""
    return section.name or section.model or "workload"


def _question(file: CodesignFile, section: SharingSection, own: frozenset[str], named: frozenset[str], kernel: bool | None) -> Question:
    """The question of one workload. Shared choices that do not apply to its kind are left out."""
    defaults, choices = ChoicesSection(), file.choices
    if kernel is not None:
        others = _PLAN_CHOICES - {*(KERNEL_CHOICES if kernel else _OF_TRANSFORMERS)}
        choices = replace(choices, **{name: getattr(defaults, name) for name in others})
    choices = replace(choices, **{name: getattr(section.choices, name) for name in own})
    own_workload = TrainedWorkloadSection(**{slot.name: getattr(section, slot.name) for slot in fields(WorkloadSection)})
    alone = replace(file, name=name_of(section), workload=own_workload, workloads=None, combine=None, choices=choices)
    alone = opened(alone, own | named)
    return Question(name_of(section), section.weight, alone, own)


def _shared_faults(file: CodesignFile, listed: tuple[SharingSection, ...]) -> list[tuple[str, str]]:
    faults = []
    if file.goal is not None:
        faults.append(("goal", "a whole run is one workload's, here are several (remove `goal`, or give one `workload`)"))
    if file.workload is not None:
        faults.append(("workloads", "both workload and workloads are given (give exactly one of them)"))
    if not 1 <= len(listed) <= _MOST:
        faults.append(("workloads", f"{len(listed)} workloads are listed, 1 to {_MOST} are needed"))
    counts = Counter(map(name_of, listed))
    for number, section in enumerate(listed):
        if counts[name_of(section)] > 1:
            faults.append((f"workloads[{number}]", f"another one is called {quoted(name_of(section))} too (give each a `name` of its own)"))
        if section.weight <= 0.0 or not isfinite(section.weight):
            faults.append((f"workloads[{number}].weight", "zero is no weight (give one above 0, or remove the workload)"))
        elif section.weight != 1.0 and file.combine == "worst_regret":
            faults.append((f"workloads[{number}].weight", "the worst regret weighs nothing (remove the weight, or combine: weighted_sum)"))
    return faults


def _choice_faults(number: int, own: frozenset[str]) -> list[tuple[str, str]]:
    message = "all workloads have the same chip, so that none chooses of it (name this under the `choices` of all)"
    return [(f"workloads[{number}].choices.{name}", message) for name in sorted(own - _PLAN_CHOICES)]


def opened(file: CodesignFile, named: frozenset[str]) -> CodesignFile:
    """The question with unnamed plan settings opened: all if its choices say so, otherwise those that its stack determines.
    With a stack, only options that it launches are opened.
    """
    choices, section = file.choices, file.workload
    if section is None or (choices.rest != "all" and file.stack is None):
        return file
    if _is_kernel(section):
        every = _OPEN_KERNEL if choices.rest == "all" else {}
    else:
        every = {**_OPEN, "offload": _OPEN["offload"] if file.cluster.host else ("none",), "recompute": _modes(section)}
        every = every if file.stack is None else _opened_for(file.stack.name, every, all_of_it=choices.rest == "all")
    return replace(file, choices=replace(choices, **{name: options for name, options in every.items() if name not in named}))


def _modes(section: WorkloadSection) -> tuple[str, ...]:
    """Recompute modes for such networks: single modules where these store much."""
    shape = section.transformer
    if shape is None and section.model is not None:
        try:
            shape = model(section.model).transformer
        except UnknownNameError:  # reported with its position where the network is read
            shape = None
    experts, latents = shape is not None and shape.experts > 1, shape is not None and shape.kv_rank > 0
    modes = (*RECOMPUTE, *(OF_EXPERTS if experts else ()), *(OF_LATENTS if latents else ()), *(OF_BOTH if experts and latents else ()))
    return (*modes, *WHOLE_PARTS)


def _opened_for(name: str, every: dict[str, Any], *, all_of_it: bool) -> dict[str, Any]:
    """The open settings that a stack launches; if not all are open, those that it determines."""
    from crossopt.instances.codesign.stack_rules import STACKS, opened_by  # noqa: PLC0415 - most questions name no stack

    stack = STACKS[name]
    return {setting: opened_by(stack, setting, every[setting]) for setting in (every if all_of_it else stack.decided)}


def choices_named(root: Node) -> frozenset[str]:
    """The names of the choices in a mapping of the file; only `rest` if a word such as `all` stands in their place."""
    choices = root.value["choices"].node.value if isinstance(root.value, dict) and "choices" in root.value else {}
    names = {field.name for field in fields(ChoicesSection)}
    return frozenset(key for key in choices if key in names) if isinstance(choices, dict) else frozenset({"rest"})


def _given_choices(root: Node, number: int) -> frozenset[str]:
    """The choices of the workload itself."""
    listed = root.value["workloads"].node.value if isinstance(root.value, dict) and "workloads" in root.value else None
    return choices_named(listed[number]) if isinstance(listed, tuple) else frozenset()


def _is_kernel(section: WorkloadSection) -> bool:
    """Whether its plans are those of an LSTM or a matrix product. Unknown names are reported elsewhere."""
    try:
        named = model(section.model) if section.model is not None else None
    except ValueError:
        return False
    return section.lstm is not None or section.gemm is not None or (named is not None and named.transformer is None)


@dataclass(slots=True)
class PartFaults:
    """Faults of several questions, each reported once if common to all."""

    questions: int
    reported: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def reporter(self, number: int, question: Question) -> Report:
        """A report function for one of the questions, whose parts have other paths in the file."""

        def report(path: str, message: str) -> None:
            head, _, rest = path.partition(".")
            if head == "workload":
                path = f"workloads[{number}].{rest}".rstrip(".")
            elif head == "choices" and rest in question.own:
                path = f"workloads[{number}].{path}"
            self.reported.setdefault((path, message), []).append(question.name)

        return report

    def report_to(self, report: Report) -> None:
        """Report all faults; with the workload's name if only some of them have the fault."""
        for (path, message), names in self.reported.items():
            some = len(names) < self.questions and not path.startswith("workloads[")
            report(path, f"{message} [for {', '.join(names)}]" if some else message)
