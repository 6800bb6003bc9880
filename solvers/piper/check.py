"""Checks saved stages without believing any of it: the graph is read anew, the stages judged anew, and the bound proved anew.

The bound is that of the work of all layers, or the dynamic program runs again and finds no stages below it.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from instances.document import InstanceError
from instances.piper.graph import PiperQuestion
from instances.piper.question import piper_again
from solvers.certify import gap_between
from solvers.check import Report
from solvers.piper.answer import ENGINE, KIND, PiperResult, described, is_proved, named, stages_in, status_after
from solvers.piper.bounds import load_bound, too_large
from solvers.piper.fronts import Bundling
from solvers.piper.ideals import ideals_of
from solvers.piper.judge import judge
from solvers.piper.network import network_of
from solvers.piper.options import options_of
from solvers.piper.search import within
from solvers.piper.tables import tables_of

_STOPPED = ("complete", "time limit", "interrupted")
_SURE = 1.0 - 1e-12


def _unwatched() -> None:
    """Nobody is told how far a proof is."""


def check(result: PiperResult, clock: Callable[[], None] = _unwatched) -> Report:
    """Everything the result says, said again from the graph alone; `clock` is called now and then."""
    try:
        question = piper_again(result.instance)
    except InstanceError as error:
        return Report((), (f"the question in the result cannot be read: {error}",))
    refused = [*_differences("instance", described(question), result.instance), *_certificate_faults(result)]
    checked = ["the graph was read anew"]
    if result.stages:
        refused += _stage_faults(result, question)
        checked.append("the stages were judged anew: order of the data, degrees, devices, memory with the microbatches under way, time")
    if result.bound is not None or result.proved:
        holds = not refused and proved_again(question, result.bound, clock)
        checked += ["the bound was proved anew"] if holds else []
        refused += [] if holds or refused else ["the bound: it was not proved anew"]
    return Report(tuple(checked), tuple(refused))


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
        faults += _differences(f"stages[{place}].load", asdict(true.load), asdict(said.load))
    return faults


def _certificate_faults(result: PiperResult) -> list[str]:
    value, bound = result.value, result.bound
    gap = None if value is None or bound is None else gap_between(value, bound)
    proved = is_proved(value, bound, result.gap_asked) if value is not None else result.proved
    rules = (
        (f"kind: {result.kind!r} is no {KIND}", result.kind == KIND),
        (f"there is no engine {result.engine!r}", result.engine == ENGINE),
        ("value and stages belong together", (value is None) == (not result.stages)),
        ("no devices are taken without stages", bool(result.stages) or result.devices_used == 0),
        (f"gap: {gap!r} follows, the result says {result.gap!r}", result.gap == gap),
        (f"bound {bound!r} is above the value {value!r}", value is None or bound is None or bound <= value),
        ("there is no bound without stages", value is not None or bound is None),
        ("an answer is proved if its bound is as near as was asked, and only then", result.proved == proved),
        ("what proved the bound is told without a bound", bool(result.proved_by) == (bound is not None or result.proved)),
        ("reasons are told where there are stages", value is None or not result.reasons),
        (f"{result.stopped!r} is no reason to stop", result.stopped in _STOPPED),
        (f"status: {result.status} does not follow", result.status == status_after(value, bound, result.proved)),
        (f"{result.seconds!r} seconds are no time", result.seconds >= 0.0),
        (f"a gap of {result.gap_asked!r} is none to ask for", 0.0 <= result.gap_asked < 1.0),
    )
    return [sentence for sentence, holds in rules if not holds]


def _differences(path: str, true: dict[str, Any], said: dict[str, Any]) -> list[str]:
    """Fields that are other than they should be."""
    return [
        f"{path}.{name}: it is {str(true.get(name))[:60]}, the result says {str(said.get(name))[:60]}"
        for name in sorted({*true, *said})
        if name not in true or name not in said or true[name] != said[name]
    ]
