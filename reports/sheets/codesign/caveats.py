"""What a reader of a design has to know before trusting its figures: one function for each caveat, all of them in one list.

To add one, write a function that takes a `Context` and gives a `Note`, or None where it does not apply, and name it in `CAVEATS`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.reports.facts.building import reticle_text
from crossopt.reports.facts.chip import above_text, binding_limits_text, l2_limit_text
from crossopt.reports.facts.network import network_of
from crossopt.reports.facts.repriced import fullness_text, hidden_text, once_text, runs_text, short_text
from crossopt.reports.sheets.amounts import count_of
from crossopt.reports.sheets.sheet import Column, Section, Table
from crossopt.solvers.codesign.answer import ChosenDesign, DesignEvaluation, DesignResult, candidate_in, space_in

PRICED_BY: Final = "priced by"
_OF_TENSOR_RANKS, _OF_REPLICAS = ("sequence_parallel", "tensor_exchange"), ("zero", "overlap")
"""Settings that recipes of every stack have on, and that are off where a question does not name them."""


@dataclass(frozen=True, slots=True)
class Context:
    """A design of a question with its evaluation, and the result that it is the answer of, where it is one."""

    question: Instance
    design: ChosenDesign
    evaluation: DesignEvaluation
    result: DesignResult | None = None

    @property
    def best_step(self) -> float | None:
        """Step time in seconds of an answer that has a proof; None otherwise, where no other plan is searched for comparison."""
        return self.evaluation.step_time if self.result is not None and self.result.proof is not None else None


def context_of(question: Instance, result: DesignResult) -> Context | None:
    """The design of a result with all that is known of it; None where it has none."""
    if result.answer is None or result.details is None:
        return None
    return Context(question, result.answer.design, result.details.evaluation, result)


@dataclass(frozen=True, slots=True)
class Note:
    """A caveat: what it is about, and a sentence."""

    label: str
    text: str


Caveat = Callable[[Context], Note | None]


def _note(label: str, text: str) -> Note | None:
    return Note(label, text) if text else None


def at_range_end(context: Context) -> Note | None:
    """Choices at the end of what the question allows."""
    ends = " · ".join(name.replace("_", " ").replace("hbm", "HBM") for name in context.design.at_end_of_range)
    return _note("at a range end", f"{ends}: a wider range may hold a better design" if ends else "")


def at_most(context: Context) -> Note | None:
    """Limits and parts of which the chip uses all that the question allows."""
    full = binding_limits_text(context.question, context.design, context.evaluation.binding)
    return _note("at the most", f"{full} (`explain` says what binds)" if full else "")


def within_model_error(context: Context) -> Note | None:
    """How many designs are nearer to the best one than the model is to measured runs."""
    space = space_in(context.result) if context.result is not None and context.result.settled else None
    if space is None or space.error is None or space.within_error is None:
        return None
    others, near = space.within_error - 1, f"within {space.error:.1%}, the model's mean error on measured runs, of the best"
    texts = {0: f"no other design is {near}", 1: f"one other design is {near}: the model cannot tell the two apart"}
    many = f"{count_of(others)} other designs are {near}: the model cannot tell them apart"
    return _note("within the model's error", texts.get(others, many))


def memory_nearly_full(context: Context) -> Note | None:
    """That the plan would not fit if the framework took more memory than is counted for it."""
    memory = next((limit for limit in context.evaluation.limits if limit.name == "memory"), None)
    if memory is None:
        return None
    return _note("memory", fullness_text(context.question, memory.used, memory.available, context.best_step))


def hidden_exchange(context: Context) -> Note | None:
    """What the plan owes to hiding an exchange."""
    return _note("hidden exchange", hidden_text(context.question, context.design))


def estimated_l2(context: Context) -> Note | None:
    """That the step waits for an L2 whose bandwidth is an estimate."""
    return _note("estimated L2", l2_limit_text(context.question, context.design))


def reticle(context: Context) -> Note | None:
    """That a die is larger than the field of a scanner."""
    return _note("reticle", reticle_text(context.question))


def energy_counted(context: Context) -> Note | None:
    """Whose energy it is."""
    is_objective = context.question.objective == "energy_per_token"
    return _note("energy", "of the devices and their links; hosts, switches and cooling are not counted" if is_objective else "")


def shared_links(context: Context) -> Note | None:
    """That exchanges would have to wait for others."""
    network = network_of(context.question, context.design)
    return _note("shared links", network.crowded if network is not None else "")


def priced_by(context: Context) -> Note | None:
    """Which constants priced the design."""
    return _note(PRICED_BY, context.question.priced_by)


def above_published(context: Context) -> Note | None:
    """That the prediction exceeds the best published MFU."""
    return _note("above published", above_text(context.question, context.evaluation.utilisation))


def measured_runs(context: Context) -> Note | None:
    """How far the model is off on public runs."""
    return _note("measured runs", runs_text(context.question, context.design.plan))


def underestimated(context: Context) -> Note | None:
    """That the model underestimates such plans."""
    return _note("underestimated", short_text(context.question, context.design.plan, context.best_step))


def priced_once(context: Context) -> Note | None:
    """What the stack exchanges with every microbatch and the model prices once a step."""
    return _note("priced once", once_text(context.question, context.design))


def not_launched(context: Context) -> Note | None:
    """What of the network no setting of the question's stack says."""
    if context.question.stack is None:
        return None
    from crossopt.reports.launching.launch import unsaid_text  # noqa: PLC0415 - most questions name no stack

    plan = candidate_in(context.question, context.design).plan
    return _note("not launched", unsaid_text(context.question.stack, context.question.workload, plan))


def not_named(context: Context) -> Note | None:
    """What is off only because the question does not name it."""
    return _note("not named", unnamed_text(context.question))


def no_nodes(context: Context) -> Note | None:
    """That chips to be built have no links inside nodes, as the question does not say how many a node holds."""
    question = context.question
    alone = isinstance(question.hardware, FreeHardware) and question.cluster.devices > 1 and not question.nodes_given
    return _note(
        "nodes", "each chip is a node of its own, as `cluster.devices_per_node` is not named: no links inside nodes" if alone else ""
    )


def derived_device(context: Context) -> Note | None:
    """Which figures of the device its file leaves out."""
    return _note("device, derived", context.question.derived)


CAVEATS: Final[tuple[Caveat, ...]] = (
    at_range_end,
    at_most,
    within_model_error,
    memory_nearly_full,
    hidden_exchange,
    estimated_l2,
    reticle,
    energy_counted,
    shared_links,
    priced_by,
    above_published,
    measured_runs,
    underestimated,
    priced_once,
    not_launched,
    not_named,
    no_nodes,
    derived_device,
)
"""All of them, in the order in which every medium shows those that apply."""

BRIEF: Final[tuple[Caveat, ...]] = (
    no_nodes,
    memory_nearly_full,
    at_range_end,
    not_launched,
    underestimated,
    not_named,
    measured_runs,
    priced_by,
)
"""Those that a short answer shows, the most important first: what may keep the plan from running, then how far the model is off."""


def caveats_of(context: Context) -> Iterator[Note]:
    """Those that apply."""
    return (note for caveat in CAVEATS if (note := caveat(context)) is not None)


def caveats_section(contexts: Sequence[tuple[str, Context]]) -> Section:
    """The caveats of one design, or of several that have names: what all of them share is said once."""
    found = [(name, list(caveats_of(context))) for name, context in contexts]
    rows: dict[Note, list[str]] = {}
    for name, notes in found:
        for note in notes:
            rows.setdefault(note, []).append(name)
    shared = len(contexts)
    labelled = [(note.label if len(of) == shared else f"{note.label}, {', '.join(of)}", note.text) for note, of in rows.items()]
    labels = Column("", tuple(label for label, _ in labelled), exact_head="caveat")
    texts = Column("", tuple(text for _, text in labelled), exact_head="what it says")
    return Section("Caveats", (Table((labels, texts)),) if labelled else ())


def unnamed_text(question: Instance) -> str:
    """What is off only because the question does not name it, on devices that are bought; nothing where it names all, or opens the rest."""
    if not isinstance(question.workload, Transformer) or not isinstance(question.hardware, Hardware) or question.cluster.devices == 1:
        return ""
    options = dict(question.plan_options)
    meant = (*(_OF_TENSOR_RANKS if max(options["tensor"]) > 1 else ()), *_OF_REPLICAS)
    left = [f"{name} ({_first(options[name])} by default)" for name in meant if name in question.unnamed and len(options[name]) == 1]
    return f"{', '.join(left)}, which recipes have on (name them, or write rest: all)" if left else ""


def _first(options: Iterable[Any]) -> str:
    return str(next(iter(options))).lower()
