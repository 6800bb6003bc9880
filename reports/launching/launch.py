"""The text of an export: what is launched and what it costs, the settings ready to paste, and what each of them does.

Where a stack does not launch the plan as it is, the nearest plan that it launches is taken, priced anew by the full model, and shown beside
the plan; it is refused where it does not fit. What is printed is read back, so that the plan that is priced is that of the settings.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from textwrap import wrap

from crossopt.crossflow.evaluate import Evaluation, evaluate
from crossopt.crossflow.plan import END_STAGES, PLAN_FIELDS, Plan
from crossopt.crossflow.recomputation import mode_for
from crossopt.crossflow.stages import split_layers
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.entries import USUAL, Numerics
from crossopt.instances.catalogue.huggingface import config_in, numerics_in, transformer_from_config
from crossopt.instances.catalogue.registry import model as model_entry
from crossopt.instances.catalogue.registry import names
from crossopt.instances.codesign.instance import FreeHardware, Goal, Instance
from crossopt.instances.codesign.stack_rules import STACKS, broken_rows, launchable, nearest
from crossopt.instances.codesign.stack_table import NAMED_OPTIONS, Machine, Stack
from crossopt.instances.errors import InstanceError, RefusedError
from crossopt.instances.question import read_again
from crossopt.reports.launching import deepspeed, fsdp, megatron, torchtitan
from crossopt.reports.launching.options import UNSAID, Export
from crossopt.reports.sheets.amounts import days_of, several, tokens_of
from crossopt.solvers.codesign.answer import Candidate, design_of

_WIDE, _PAGE = 48, 100
"""Longer settings do not move the words beside others to the right; and the signs of a line of comments."""

_MEMORIES = ("memory", "host memory")
_ANY = Machine()
_NOT_KNOWN = Numerics()
EXPORTS: dict[str, Export] = {
    "megatron": megatron.EXPORT,
    "torchtitan": torchtitan.EXPORT,
    "deepspeed": deepspeed.EXPORT,
    "fsdp": fsdp.EXPORT,
}


@dataclass(frozen=True, slots=True)
class Launch:
    """What a stack launches for a plan."""

    plan: Plan
    """As the settings say, read back from them."""
    text: str
    """The settings, ready to paste."""
    options: tuple[tuple[str, str], ...]
    """Each with what it does."""
    remarks: tuple[str, ...]
    instead: tuple[str, ...]
    """What is launched in place of the plan's settings, in words."""


def export_named(stack: Stack | None) -> str:
    """The form of export that belongs to the stack of a question."""
    return next((name for name, export in EXPORTS.items() if stack is not None and export.stack == stack.name), "megatron")


def unsaid_text(stack: Stack, model: object, plan: object) -> str:
    """What no setting of the stack says, so that something else is launched; nothing where settings say all of it."""
    if not isinstance(plan, Plan) or not isinstance(model, Transformer):
        return ""
    remarks = EXPORTS[export_named(stack)].remarks(model, plan)
    parts = [remark.partition(UNSAID)[0] for remark in remarks if UNSAID in remark]
    return f"no setting of {stack.name} says that {', '.join(parts)}: that is priced here, and something else is launched" if parts else ""


def launch(
    name: str,
    model: Transformer,
    plan: Plan,
    machine: Machine = _ANY,
    cost: Callable[[Plan], float] | None = None,
    known: Numerics = _NOT_KNOWN,
) -> Launch:
    """The nearest plan that this stack launches, as its settings, of several the one that costs least; a RefusedError where there is none
    with these degrees."""
    export, plan = EXPORTS[name], replace(plan, recompute=mode_for(model, plan.recompute))
    stack = STACKS[export.stack]
    every = nearest(stack, model, plan, machine)
    broken = tuple(row.sentence for row in broken_rows(stack, model, plan, machine))
    if not every:
        raise RefusedError(f"--as {name}: {stack.name} launches no plan with these degrees: {'; '.join(broken)} ({_remedy(stack.name)})")
    found = every[0] if cost is None or len(every) == 1 else min(every, key=cost)
    numerics, left = export.numerics(model, known)
    settings = export.on(machine, (*export.settings(model, found), *numerics))
    text = export.written(model, found, settings)
    launched = _named_alike(model, export.read(export.parsed(text), model, plan.devices), plan)
    options = tuple((setting.label, setting.meaning) for setting in settings)
    return Launch(launched, text, options, (*export.remarks(model, found), *left), _instead(stack.name, plan, launched, broken))


def _named_alike(model: Transformer, read: Plan, plan: Plan) -> Plan:
    """What was read, with the layers of the ends as the plan says them where every stage holds as many: of two stages either says all."""
    splits = [split_layers(model.stack, *(float(getattr(own, name)) for name in ("pipeline", *END_STAGES))) for own in (read, plan)]
    layers = [[int(split.on(float(stage))) for stage in range(own.pipeline)] for split, own in zip(splits, (read, plan), strict=True)]
    return replace(read, **{name: getattr(plan, name) for name in END_STAGES}) if layers[0] == layers[1] else read


def _remedy(stack: str) -> str:
    return f"solve the question with --set stack={stack}"


def _instead(name: str, plan: Plan, launched: Plan, broken: tuple[str, ...]) -> tuple[str, ...]:
    """What differs, which rules brought it about, and which settings no stack has."""
    changed = [field for field in PLAN_FIELDS if getattr(plan, field) != getattr(launched, field)]
    if not changed:
        return ()
    others = [f"{field} {_shown(getattr(launched, field))} in place of {_shown(getattr(plan, field))}" for field in changed]
    lines = [f"{name} launches {', '.join(others)}", *(f"since there {sentence}" for sentence in broken)]
    for field in changed:
        value = getattr(plan, field)
        if field in NAMED_OPTIONS and not any(launchable(stack, field, (value,)) for stack in STACKS.values()):
            lines.append(f"no stack that is known launches {field} {_shown(value)}")
    return tuple(lines)


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class Launched:
    """What is launched for a design, with what is to be said of it."""

    plan: Plan
    text: str
    """The settings, ready to paste."""
    options: tuple[tuple[str, str], ...]
    heads: tuple[str, ...]
    notes: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    """Variables that the stack needs, with their values; an empty one is to be unset."""
    step_time: float
    """Seconds of a step of what is launched."""

    def comments(self, *more: str) -> list[str]:
        """What is launched and what it costs, as comments."""
        return [line for words in (*self.heads, *more) for line in _commented(words)]


def numerics_of(instance: Instance, model: Transformer) -> Numerics:
    """Figures of the network that take no time: of the config.json in the question that has its shapes, else of the registry."""
    for path, text in instance.document.get("files", {}).items():
        with suppress(ValueError):
            config = config_in(text, path)
            shape = transformer_from_config(config)
            if all(getattr(shape, name) == getattr(model, name) for name in ("layers", "hidden", "heads", "vocabulary")):
                return numerics_in(config)
    registered = model_entry(model.name).numerics if model.name in names("workloads") else None
    return registered or _NOT_KNOWN


def launched(name: str, instance: Instance, chosen: Candidate) -> Launched:
    """The nearest plan that a stack launches for a design, priced beside it; a RefusedError where it does not fit."""
    plan, model = chosen.plan, instance.workload
    if not isinstance(plan, Plan) or not isinstance(model, Transformer):
        raise RefusedError(f"--as {name}: only plans of transformers can be launched so")
    there, kept = _launched_with(instance, EXPORTS[name].stack)
    found = launch(name, model, plan, there.machine, partial(_cost, there, chosen), numerics_of(instance, model))
    title = " ".join(instance.name.split())  # of a file perhaps, and what follows a comment is run
    planned = priced = _evaluation_of(instance, chosen, plan)
    heads = [f"for {EXPORTS[name].options}", f"{title}: {plan}", f"on {plan.devices} devices, {_figures(priced)}"]
    heads += [f"NOT AS PRICED: {words}" for words in found.remarks if UNSAID in words]
    if found.instead or there is not instance:
        priced = _evaluation_of(there, chosen, found.plan)
        others = "" if there is instance else f", by the constants of {there.priced_by.partition('; ')[0]}"
        heads += [*found.instead, f"launched: {_figures(priced)}{others}"]
        heads.append(f"as planned: {_figures(planned)}{others and f', by those of {_usual_name(instance)}'}")
        if found.instead:
            _refuse_what_does_not_fit(name, found, priced)
    heads += [*kept, *_run_text(instance.goal, priced.step_time, priced.likely[1])]
    text, options = found.text, found.options
    if instance.sites is not None and (apart := torchtitan.site_settings(name, instance.sites, priced.step_time)):
        text = torchtitan.with_sites(text, instance.sites, model.global_batch, apart)
        options += tuple((setting.label, setting.meaning) for setting in apart)
        heads.append(f"one of {instance.sites.groups} groups, whose mean step is {float(instance.sites.least(priced.step_time)):.4g} s")
    notes = tuple(f"note: {words}" for words in found.remarks if UNSAID not in words)
    levels = instance.hardware.joins if isinstance(instance.hardware, FreeHardware) else instance.hardware.links
    summed = (
        (("NCCL_COLLNET_ENABLE", "1"),) if any(level.reduces for level in levels[1:]) else ()
    )  # off by default; inside nodes NVLS is on
    environment = (*EXPORTS[name].environment(model, found.plan, instance.machine), *summed)
    return Launched(found.plan, text, options, tuple(heads), notes, environment, priced.step_time)


def _usual_name(instance: Instance) -> str:
    return USUAL if instance.stack is None else instance.stack.name


def _launched_with(instance: Instance, stack: str) -> tuple[Instance, tuple[str, ...]]:
    """The question as runs of a stack are priced, where they differ from those of its own: by their constants and by what they exchange.
    Where the choices of the question are none of that stack, its own constants stay, and why."""
    own = _usual_name(instance)
    if stack == own:
        return instance, ()
    settings = (*instance.document.get("settings", ()), f"stack={stack}")
    try:
        other: Instance = read_again({**instance.document, "settings": settings}, "codesign")
    except InstanceError as error:
        fault = error.faults[0]
        why = f"PRICED BY THE CONSTANTS OF {own}, not of {stack}, which cannot read the choices of the question"
        return instance, (f"{why}: {fault.path}: {fault.message}",)
    same = (other.hardware, other.workload) == (instance.hardware, instance.workload)
    return (instance if same else other), ()


def _run_text(goal: Goal | None, step_time: float, longest: float) -> list[str]:
    """How long the run takes, and whether that is in time, also over the likely range; nothing where no run is asked about."""
    if goal is None:
        return []
    seconds = goal.seconds(step_time)
    run = f"the run: {tokens_of(goal.tokens)} tokens in {several(goal.steps_taken(step_time), 'step')}, {days_of(seconds)} by the model"
    if not isfinite(goal.wanted):
        return [run]
    if seconds <= goal.wanted:
        late = goal.seconds(longest) > goal.wanted
        doubt = f", which may be missed: likely up to {days_of(goal.seconds(longest))}" if late else ""
        return [f"{run}, within the deadline of {days_of(goal.wanted)}{doubt}"]
    return [run, f"THE DEADLINE of {days_of(goal.wanted)} IS MISSED: the run takes {seconds / goal.wanted:.3g} times as long"]


def launch_text(name: str, instance: Instance, chosen: Candidate) -> str:
    """What is launched and what it costs, the settings, then what each of them does; a RefusedError where it does not fit."""
    found = launched(name, instance, chosen)
    width = max((len(setting) for setting, _ in found.options if len(setting) <= _WIDE), default=0)
    lines = [*found.comments(), "", found.text, ""]
    lines += [line for setting, text in found.options for line in _beside(f"# {setting:<{width}}", text)]
    return "\n".join([*lines, *(line for note in found.notes for line in _commented(note))]) + "\n"


def _beside(setting: str, text: str) -> list[str]:
    """A setting and what it does, below it where the line would be long."""
    line, short = f"{setting}  {text}", setting.rstrip()
    if len(line) <= _PAGE:
        return [line]
    if len(short) > _PAGE:  # its value stands among the settings
        short = " ".join([*short.split(" ")[:2], "..."])
    return [short, *_commented(text, "#     ")]


def _commented(text: str, start: str = "# ") -> list[str]:
    """Words as comments on lines that a terminal shows whole."""
    return wrap(text, _PAGE, initial_indent=start, subsequent_indent="#     ", break_long_words=False, break_on_hyphens=False)


def _evaluation_of(instance: Instance, chosen: Candidate, plan: Plan) -> Evaluation:
    """The full model's word on a plan on the design's device."""
    return evaluate(instance.workload, design_of(instance, replace(chosen, plan=plan)), instance.budget, instance.prices)


def _cost(instance: Instance, chosen: Candidate, plan: Plan) -> float:
    """The step time of a plan that fits."""
    priced = _evaluation_of(instance, chosen, plan)
    return priced.step_time if all(limit.satisfied for limit in priced.limits if limit.name in _MEMORIES) else float("inf")


def _figures(priced: Evaluation) -> str:
    memory = next(limit for limit in priced.limits if limit.name == "memory")
    return f"a step takes {priced.step_time:.4g} s, in {_gib(memory.used)} of {_gib(memory.available)} of memory"


def _gib(size: float) -> str:
    return f"{size / 2**30:.4g} GiB"


def _refuse_what_does_not_fit(name: str, found: Launch, launched: Evaluation) -> None:
    over = [limit for limit in launched.limits if limit.name in _MEMORIES and not limit.satisfied]
    for limit in over:
        message = f"{found.instead[0]}, which needs {_gib(limit.used)} of {_gib(limit.available)} of {limit.name}"
        raise RefusedError(f"--as {name}: {message} ({_remedy(EXPORTS[name].stack)})")
