"""The option `solve --against`: two joint designs line by line, first what is asked, then what is answered, with the proof of each."""

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from math import isfinite
from pathlib import Path
from time import monotonic
from typing import Any

from crossopt.crossflow.records import dataclass
from crossopt.instances.codesign.instance import Instance, MultiScaleQuestion, Portfolio
from crossopt.instances.codesign.question import several_text
from crossopt.instances.codesign.section import KEYS
from crossopt.instances.errors import RefusedError
from crossopt.instances.files.dataclass_json import to_plain
from crossopt.instances.files.document import Node, Scalar, read_text
from crossopt.instances.files.saved import read_as
from crossopt.instances.files.written import lay_over
from crossopt.instances.kinds import kind_of_file, question_path
from crossopt.instances.question import read, read_again
from crossopt.reports.commands import asking
from crossopt.reports.commands.console import Ending, code_of, question_of, usage
from crossopt.reports.commands.keeper import Kept, keeper
from crossopt.reports.commands.progress import progress_on
from crossopt.reports.render.terminal import brief
from crossopt.reports.render.width import fitted
from crossopt.reports.sheets.amounts import amount, count_of, days_of, shown, time_of
from crossopt.reports.sheets.codesign.caveats import Context, context_of
from crossopt.reports.sheets.codesign.design import limit_of, option_text, proof_of
from crossopt.reports.sheets.sheet import Section, Table, figures, names
from crossopt.solvers.answer import Limits, Watch, to_text
from crossopt.solvers.checking import faults_but_proof, solve_and_verify
from crossopt.solvers.codesign.answer import DesignResult
from crossopt.solvers.codesign.objective import UNITS, figure_in
from crossopt.solvers.family import family_of, unit_of

_UNSAID = frozenset(("kind", "name", "description"))
"""Keys of a question that change no answer."""
_NOISE = 5e-4
"""Shares that are printed as none."""
_STEPS = 6
"""Uses of a step's time that are compared, those that differ the most."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two: its question, and the part of its answer that is best."""

    label: str
    document: dict[str, Any]
    result: DesignResult
    part: Instance
    answer: DesignResult
    source: str = ""
    best: str = ""
    """Which of several questions in one has this answer."""
    file: Path | None = None
    """Where the answer was saved, whose proof is not repeated here."""

    @property
    def context(self) -> Context | None:
        return context_of(self.part, self.answer)


def solve_against(options: Namespace) -> Ending:
    """Answer both questions, of which the second may be a result that was saved, and print what differs."""
    asking.refuse_before(options, "codesign")
    for name in ("pareto", "log"):
        if getattr(options, name):
            usage(f"--{name}: two answers are printed side by side (leave it out; --out writes the first)")
    limits, keep = asking.limits_of(options), keeper()
    began = keep.began if keep else monotonic()
    asked = question_of(options, {})
    with progress_on(sys.stderr, unit_of(family_of("codesign"), asked) or "value") as watch:
        spent = replace(limits, seconds=max((limits.seconds - (monotonic() - began)) / 2.0, 0.0))
        one = replace(_solved(asked, options, spent, watch, "A"), source=str(options.file))
        spent = replace(limits, seconds=max(limits.seconds - (monotonic() - began), 0.0))
        other = replace(_other(options, spent, watch), source=str(options.against))
    proved = one.result.proved and other.result.proved
    text = against_json(one, other) if options.json else fitted(against_text(one, other))
    code = code_of(one.result.status, options.strict and not proved)
    asking.hand_out(Kept(to_text(one.result) if options.out else None, text, code), options.out)
    return Ending(one.result.status, proved)


def _other(options: Namespace, limits: Limits, watch: Watch) -> Side:
    """The second: a saved result whose figures are evaluated again, or a question that is answered."""
    path, family = question_path(options.against), family_of("codesign")
    if kind := _kind_of_result(path):
        if kind != "codesign":
            raise RefusedError(f"--against {path}: a joint design is compared with a joint design (this is a result of kind {kind})")
        _, result = asking.read_saved(path, kind)
        question = read_again(result.question, kind, path.parent)
        if faults := faults_but_proof(family, result, question):
            raise RefusedError(f"--against {path}: this result is refused: {'; '.join(faults)}")
        return replace(_side("B", question, result), file=path)
    if kind_of_file(path) != "codesign":
        raise RefusedError(f"--against {path}: a joint design is compared with a joint design (this is another kind of question)")
    return _solved(read(path), options, limits, watch, "B")


def _kind_of_result(path: Path) -> str:
    """The kind of a saved result; empty of a question."""
    if path.suffix != ".json" or not path.is_file():
        return ""
    data = read_as(path, lambda data: data)
    return str(data.get("kind")) if isinstance(data, dict) and {"format", "question"} <= data.keys() else ""


def _solved(asked: Any, options: Namespace, limits: Limits, watch: Watch, label: str) -> Side:  # noqa: ANN401 - of any form
    if isinstance(asked, Portfolio):
        raise RefusedError("--against: designs of one workload are compared (say --workload NAME, or leave several out)")
    return _side(label, asked, solve_and_verify(family_of("codesign"), asked, options.engine, limits, watch))


def _side(label: str, asked: Any, result: DesignResult) -> Side:  # noqa: ANN401 - of any form
    if isinstance(asked, MultiScaleQuestion):
        index = 0 if result.answer is None else asked.scales.index(result.answer.scale)
        best = f"{asked.part_name(index)}, the best of {several_text(asked)}" if result.answer is not None else ""
        answer = result.parts[index] if index < len(result.parts) else result
        return Side(label, asked.document, result, asked.parts[index], answer, best=best)
    return Side(label, asked.document, result, asked, result)


def against_text(one: Side, other: Side) -> str:
    """What differs in the questions, and in the answers."""
    rows = tuple((side.label, _named(side)) for side in (one, other))
    rows += tuple((f"proof of {side.label}", _proof(side)) for side in (one, other))
    if one.context is None and other.context is None:
        rows += (("next", "`crossopt explain` says which limits clash; to compare without a deadline, leave it out of the goal of both"),)
    sections = [Section("The questions", (questions_table(one, other),))]
    if one.context is not None and other.context is not None:
        sections.append(Section("The answers", (answers_table(one.context, other.context),)))
        sections.append(Section("Where the steps go", (steps_table(one.context, other.context),)))
    return brief(f"A against B   {verdict(one, other)}", rows, sections)


def against_json(one: Side, other: Side) -> str:
    """The same for programs: figures as figures, each with its unit."""
    first, second = one.context, other.context
    differences = [*_settings(first, second), *_figures(first, second)] if first is not None and second is not None else []
    uses = use_pairs(first, second) if first is not None and second is not None else {}
    document = {
        "verdict": verdict(one, other),
        **{side.label: _side_json(side) for side in (one, other)},
        "questions": [{"key": key, "A": mine, "B": theirs} for key, mine, theirs in question_rows(one, other)],
        "answers": [
            {"name": row.name, "unit": row.unit, "A": to_plain(row.values[0]), "B": to_plain(row.values[1])} for row in differences
        ],
        "step_seconds": [{"use": use, "A": mine, "B": theirs} for use, (mine, theirs) in uses.items()],
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _side_json(side: Side) -> dict[str, object]:
    result = side.result
    figures = {name: getattr(result, name) for name in ("status", "value", "bound", "gap", "proved", "seconds")}
    return {"source": _named(side), "unit": result.question["unit"], **figures}


def _named(side: Side) -> str:
    """The file with its settings, and which of its questions is meant."""
    settings = [] if side.file else [f"--set {setting}" for setting in side.document["settings"]]
    return " ".join([side.source, *settings]) + (f": {side.best}" if side.best else "")


def _proof(side: Side) -> str:
    if side.result.value is None:
        return "no design keeps the limits, proved" if side.result.proved else f"no design was found ({side.result.stopped})"
    stated = f" (as the file states; `crossopt check {side.file}` repeats it)" if side.file is not None else ""
    return f"{proof_of(side.answer)}{stated}"


def verdict(one: Side, other: Side) -> str:
    """Which is better in what, by how much, and whether the bounds prove it."""
    first, second = one.context, other.context
    if first is None or second is None:
        return " and ".join(f"{side.label} has {'a' if side.context else 'no'} design" for side in (one, other))
    same = one.part.objective == other.part.objective
    name = one.part.objective if same else "step_time"
    mine, theirs = (figure_in(context.question, context.evaluation, name) for context in (first, second))
    if mine == theirs:
        return f"the same {name.replace('_', ' ')}"
    low, high = (one, other) if mine < theirs else (other, one)
    bound = high.answer.bound
    sure = same and bound is not None and low.answer.value is not None and low.answer.value < bound
    known = not (high.answer.unverified or low.answer.unverified or one.file or other.file)
    proved = ", proved" if sure and known else ""
    share = abs(mine / theirs - 1.0) if theirs else 1.0
    if share < _NOISE:
        return f"the same {name.replace('_', ' ')} to {_NOISE:.2%}"
    return f"{name.replace('_', ' ')} of A is {share:.1%} {'less' if mine < theirs else 'more'} than of B{proved}"


def question_rows(one: Side, other: Side) -> list[tuple[str, str, str]]:
    """Keys that the questions have otherwise, as they are written."""
    first, second = (dict(_leaves(_tree(side.document), "")) for side in (one, other))
    keys = [key for key in dict.fromkeys((*first, *second)) if first.get(key) != second.get(key) and key not in _UNSAID]
    return [(key, first.get(key, "-"), second.get(key, "-")) for key in keys]


def questions_table(one: Side, other: Side) -> Table | str:
    """These keys, or that there are none."""
    rows = question_rows(one, other)
    heads = ("key", "A", "B")
    return Table(tuple(map(names, heads, zip(*rows, strict=True)))) if rows else "The questions ask the same."


def _tree(document: dict[str, Any]) -> Node:
    """The question with its settings laid over it."""
    root = read_text(document["text"], document["source"])
    for setting in document["settings"]:
        root = lay_over(root, setting, document["source"], KEYS)
    return root


def _leaves(node: Node, path: str) -> Iterator[tuple[str, str]]:
    """Keys with their values as text."""
    if isinstance(node.value, dict):
        for key, entry in node.value.items():
            yield from _leaves(entry.node, f"{path}.{key}" if path else key)
    else:
        yield path, _text(node)


def _text(node: Node) -> str:
    match node.value:
        case Scalar(text=text):
            return text
        case tuple() as items:
            return f"[{', '.join(map(_text, items))}]"
        case entries:
            return f"{{{', '.join(f'{key}: {_text(entry.node)}' for key, entry in entries.items())}}}"


def answers_table(one: Context, other: Context) -> Table:
    """Settings and figures of the designs; settings only where they differ."""
    rows = [*_settings(one, other), *_figures(one, other)]
    return Table(
        (
            names("", [row.name for row in rows]),
            *(figures(head, [row.texts[at] for row in rows]) for at, head in enumerate(("A", "B"))),
            figures("A vs B", [row.change for row in rows]),
        )
    )


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting or a figure of both answers, as text and as it is."""

    name: str
    texts: tuple[str, str]
    change: str
    values: tuple[Any, Any]
    unit: str = ""


def _figure(name: str, pair: tuple[float, float], text: Callable[[float], str], unit: str) -> Difference:
    texts = text(pair[0]), text(pair[1])
    return Difference(name, texts, "the same" if texts[0] == texts[1] else _change(*pair), pair, unit)


def _settings(one: Context, other: Context) -> Iterator[Difference]:
    """The devices, and each setting of chip and plan that is another one."""
    counts = one.question.cluster.devices, other.question.cluster.devices
    chosen = [
        {"device": context.design.hardware.name, **context.design.hardware.choices, **asdict(context.design.plan)}
        for context in (one, other)
    ]
    if counts[0] != counts[1]:
        yield Difference("devices", (f"{counts[0]:,}", f"{counts[1]:,}"), _change(*counts), counts)
    for name in dict.fromkeys((*chosen[0], *chosen[1])):
        first, second = (of.get(name) for of in chosen)
        if first != second:
            words = ["-" if option is None else option_text(name, option) for option in (first, second)]
            unit = next((unit for ending, unit in (("_area", "m^2"), ("_power", "W")) if name.endswith(ending)), "")
            yield Difference(name.replace("_", " "), (words[0], words[1]), "", (first, second), unit)


def _figures(one: Context, other: Context) -> Iterator[Difference]:
    """What the designs reach."""
    first, second = one.evaluation, other.evaluation
    name = one.question.objective
    if name not in ("step_time", "run_cost") and name == other.question.objective:
        mine, theirs = (figure_in(context.question, context.evaluation, name) for context in (one, other))
        yield _figure(name.replace("_", " "), (mine, theirs), lambda value: amount(value, UNITS[name]), UNITS[name])
    yield _figure("step time", (first.step_time, second.step_time), time_of, "s")
    rates = first.tokens_per_second, second.tokens_per_second
    yield _figure("tokens/s", rates, lambda rate: count_of(round(rate)), "tokens/s")
    shares = first.utilisation, second.utilisation
    texts, points = (f"{shares[0]:.1%}", f"{shares[1]:.1%}"), f"{100.0 * (shares[0] - shares[1]):+.1f} points"
    yield Difference("MFU", texts, "the same" if texts[0] == texts[1] else points, shares)
    goals = one.question.goal, other.question.goal
    if goals[0] is not None and goals[1] is not None:
        yield _figure("run", (goals[0].seconds(first.step_time), goals[1].seconds(second.step_time)), days_of, "s")
        paid, spent = goals[0].money(first.step_time), goals[1].money(second.step_time)
        if paid is not None and spent is not None:
            yield _figure("cost", (paid, spent), lambda money: f"{money:,.0f} USD", "USD")
    energies = first.energy / first.tokens, second.energy / second.tokens
    if min(energies) > 0.0:
        yield _figure("energy a token", energies, lambda energy: shown(energy, "energy"), "J")
    memory = [limit_of(limit) for found in (first, second) for limit in found.limits if limit.name == "memory"]
    if len(memory) == 2 and all(isfinite(limit.available) for limit in memory):
        used = memory[0].used, memory[1].used
        words = [f"{shown(limit.used, 'bytes')} ({limit.share:.0%})" for limit in memory]
        yield Difference("memory", (words[0], words[1]), "the same" if words[0] == words[1] else _change(*used), used, "bytes")


def _change(first: float, second: float) -> str:
    return "the same" if first == second else f"{first / second - 1.0:+.1%}" if second else "-"


def use_pairs(one: Context, other: Context) -> dict[str, tuple[float, float]]:
    """Uses of the step's time with what both take, those first that differ the most."""
    first, second = one.evaluation.breakdown, other.evaluation.breakdown
    pairs = {use: (first.get(use, 0.0), second.get(use, 0.0)) for use in dict.fromkeys((*first, *second))}
    taken = [(use, pair) for use, pair in pairs.items() if any(pair)]
    return dict(sorted(taken, key=lambda item: -abs(item[1][0] - item[1][1])))


def steps_table(one: Context, other: Context) -> Table:
    """The uses that differ the most."""
    uses = list(use_pairs(one, other).items())[:_STEPS]
    pairs = [pair for _, pair in uses]
    signs = [
        "the same" if time_of(mine) == time_of(theirs) else f"{'+' if mine > theirs else '-'}{time_of(abs(mine - theirs))}"
        for mine, theirs in pairs
    ]
    return Table(
        (
            names("use", [use for use, _ in uses]),
            figures("A", [time_of(mine) for mine, _ in pairs]),
            figures("B", [time_of(theirs) for _, theirs in pairs]),
            figures("A vs B", signs),
        )
    )
