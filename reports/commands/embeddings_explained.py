"""`explain` of a question about embedding tables: the answer with its baselines, what more of each thing is worth, or what clashes."""

import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from math import inf

from crossopt.crossflow.records import dataclass
from crossopt.instances.embeddings.question import EmbeddingsQuestion
from crossopt.instances.files.dataclass_json import to_plain
from crossopt.instances.files.units import rounded_quantity
from crossopt.instances.kinds import KINDS
from crossopt.reports.commands.console import Ending, question_of, seconds_of, usage
from crossopt.reports.commands.progress import progress_on
from crossopt.reports.render.width import fitted
from crossopt.reports.shown import text_of
from crossopt.solvers.answer import Limits
from crossopt.solvers.embeddings.explained import Changed, Clash, Found, changed, clash, enough_memory, solved

KIND = "embeddings"
_USUAL, _SHARE = 60.0, 12
"""Seconds without a time limit, and parts of it: the first answer has three, each changed question one."""
_SAME = 5e-5


@dataclass(frozen=True, slots=True)
class _Why:
    """What is said beside the answer."""

    changes: tuple[Changed, ...] = ()
    clash: Clash | None = None
    enough: float | None = None
    """Bytes of HBM of a device with which tables fit."""


def explain(options: Namespace) -> Ending:
    """Print the answer, its distance from baselines, and each changed question."""
    for option in ("near", "relaxation", "constants", "out", "svg"):
        if getattr(options, option):
            usage(f"--{option}: this does not apply to embedding tables (memory, links and choices are changed one by one)")
    if options.force:
        usage("--force: this does not apply to embedding tables (`solve --set choices.sharding=[table]` answers with a choice)")
    question: EmbeddingsQuestion = question_of(options, KINDS[KIND].options)
    seconds = seconds_of(options.time_limit) if options.time_limit else _USUAL
    share = Limits(min(seconds, 1e9) / _SHARE)
    with progress_on(sys.stderr, "ms") as watch:
        result = solved(question, Limits(3.0 * share.seconds), watch)
        if result.value is not None:
            why = _Why(tuple(changed(question, result, share, watch)))
        elif result.status == "INFEASIBLE":
            why = _Why(clash=clash(question, share, watch), enough=enough_memory(question, share, watch))
        else:
            why = _Why()
    if options.json:
        figures = {name: getattr(result, name) for name in ("status", "value", "bound", "proved")}
        baselines = [{"name": own.name, "value": own.value, "note": own.note} for own in result.baselines]
        document = {**figures, "reasons": result.reasons, "baselines": baselines, **to_plain(why)}
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        lines = [*_baselines(result), *_changes(result, why.changes), *_clash(question, why)]
        sys.stdout.write(fitted(text_of(KIND, question, result, verbose=False)) + "".join(f"{fitted(line)}\n" for line in lines))
    return Ending(result.status, result.proved)


def _aligned(title: str, rows: Sequence[tuple[str, str]]) -> list[str]:
    width = max((len(name) for name, _ in rows), default=0)
    return ["", f"  {title}", *(f"    {name:<{width}}  {text}" for name, text in rows)] if rows else []


def _shown(result: Found, value: float) -> str:
    """A value with its unit."""
    if result.question["unit"] != "ms":
        return f"{value:g} devices"
    return rounded_quantity(value / 1e3, "time", 5)


def _baselines(result: Found) -> list[str]:
    """How far each baseline is above this plan, and above what any plan takes."""
    rows = list[tuple[str, str]]()
    for own in result.baselines:
        if own.value is None:
            rows.append((own.name, own.note or "finds no plan"))
            continue
        above = own.value / result.value - 1.0 if result.value else 0.0
        bound = f", {own.value / result.bound - 1.0:.2%} above the bound" if result.bound and not result.proved else ""
        rows.append((own.name, f"{_shown(result, own.value)}  {above:+.2%}{bound}{f' ({own.note})' if own.note else ''}"))
    return _aligned("baselines beside this plan", rows)


def _changes(result: Found, changes: Sequence[Changed]) -> list[str]:
    """Each changed question beside this plan."""
    rows = list[tuple[str, str]]()
    for own in changes:
        if own.value is None:
            rows.append((own.change, "no plan was found" if own.bound is None else "no plan"))
            continue
        gain = own.value / result.value - 1.0 if result.value else 0.0
        least = own.bound / result.value - 1.0 if own.bound is not None and result.value else -inf
        proved = "" if own.bound is None or own.value <= own.bound * (1.0 + _SAME) else f" (not below {min(least, gain):+.2%})"
        same = "the same" if abs(gain) < _SAME else f"{gain:+.2%}"
        rows.append((own.change, f"{_shown(result, own.value)}  {same}{proved}"))
    return _aligned("with one change", rows)


def _clash(question: EmbeddingsQuestion, why: _Why) -> list[str]:
    """What leaves no plan together."""
    if why.clash is None:
        return []
    sizes = [f"{rounded_quantity(float(room), 'bytes') if room else 'none'} for tables" for room in question.capacity]
    shown = {f"{tier} of a device": f"{tier} of a device: {size}" for tier, size in zip(("HBM", "DDR", "SSD"), sizes, strict=True)}
    title = "a smallest set of limits and choices that leave no plan" if why.clash.smallest else "these leave no plan together"
    lines = ["", f"  {title}", *(f"    {shown.get(name, name)}" for name in why.clash.members)]
    if why.enough is not None:
        lines += [
            "",
            f"  with {rounded_quantity(why.enough, 'bytes')} of HBM a device there is a plan (a hundredth less may do)",
        ]
    return lines
