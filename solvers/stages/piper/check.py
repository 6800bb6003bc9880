"""Checks saved stages without believing any of it: the graph is read anew, the stages judged anew, and the bound proved anew.

The bound is that of the work of all layers, or the dynamic program runs again and finds no stages below it.
"""

from collections.abc import Callable
from dataclasses import asdict

from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read_again
from crossopt.instances.stages.piper.graph import PiperQuestion
from crossopt.solvers.answer import denied_below, differences, rival_faults
from crossopt.solvers.checking import Report, certificate_faults
from crossopt.solvers.stages.piper.answer import ENGINE, KIND, LEAST_GAP, PiperResult, described, named, stages_in
from crossopt.solvers.stages.piper.bounds import load_bound, too_large
from crossopt.solvers.stages.piper.fronts import Bundling
from crossopt.solvers.stages.piper.ideals import ideals_of
from crossopt.solvers.stages.piper.judge import judge
from crossopt.solvers.stages.piper.network import network_of
from crossopt.solvers.stages.piper.options import options_of
from crossopt.solvers.stages.piper.search import within
from crossopt.solvers.stages.piper.tables import tables_of

_SURE = 1.0 - 1e-12


def _unwatched() -> None:
    """Nobody is told how far a proof is."""


def check(result: PiperResult, clock: Callable[[], None] = _unwatched) -> Report:
    """Everything the result says, said again from the graph alone; `clock` is called now and then."""
    try:
        question = read_again(result.instance, "piper")
    except InstanceError as error:
        return Report((), (f"the question in the result cannot be read: {error}",))
    refused, checked = faults_but_proof(result, question), ["the graph was read anew"]
    if result.stages:
        checked.append("the stages were judged anew: order of the data, degrees, devices, memory with the microbatches under way, time")
    if result.bound is not None or result.proved:
        holds = not refused and proved_again(question, result.bound, clock)
        checked += ["the bound was proved anew"] if holds else []
        refused += [] if holds or refused else ["the bound: it was not proved anew"]
    return Report(tuple(checked), tuple(refused))


def faults_but_proof(result: PiperResult, question: PiperQuestion) -> list[str]:
    """Why the result is refused, as far as that can be said without carrying out its proof."""
    refused = [*differences("instance", described(question), result.instance), *_certificate_faults(result)]
    refused += rival_faults(denied_below(result), result.rivals)
    return refused + (_stage_faults(result, question) if result.stages else [])


def proved_again(question: PiperQuestion, bound: float | None, clock: Callable[[], None] = _unwatched) -> bool:
    """Whether no stages are quicker than the bound; None asks whether there are none at all."""
    if bound is None and too_large(question):
        return True
    if bound is not None and bound <= load_bound(question):
        return True
    network = network_of(question.graph)
    cuts, every = ideals_of(len(network), network.arcs)
    if not every:
        return False
    tables = tables_of(options_of(question, network), cuts, Bundling(relaxed=True), clock)
    return within(tables, float("inf") if bound is None else bound * _SURE, clock) is None


def _stage_faults(result: PiperResult, question: PiperQuestion) -> list[str]:
    try:
        stages = stages_in(question, result)
        verdict = judge(question, stages)
    except ValueError as error:
        return [f"the stages are none of the question: {error}"]
    faults = [f"the stages break a rule: {violation}" for violation in verdict.violations]
    if verdict.value != result.value:
        faults.append(f"value: the stages take {verdict.value!r} s, the result says {result.value!r}")
    used = sum(load.devices for load in verdict.loads)
    if used != result.devices_used:
        faults.append(f"devices_used: the stages take {used}, the result says {result.devices_used}")
    for place, (true, said) in enumerate(zip(named(question, stages, verdict.loads), result.stages, strict=True)):
        faults += differences(f"stages[{place}].load", asdict(true.load), asdict(said.load))
    return faults


def _certificate_faults(result: PiperResult) -> list[str]:
    rules = (
        ("value and stages belong together", (result.value is None) == (not result.stages)),
        ("no devices are taken without stages", bool(result.stages) or result.devices_used == 0),
    )
    own = [sentence for sentence, holds in rules if not holds]
    return [*own, *certificate_faults(result, KIND, (ENGINE,), LEAST_GAP, "stages")]
