"""Sheets of traces: kernels that stand for a benchmark, and changes of a trace with what is too close to call."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import inf

from crossopt.crossflow.traces import ASSUMPTIONS, KINDS, changed, replay
from crossopt.formulation.traces.whatif import Model, all_choices, model_of, set_bits
from crossopt.instances.files.units import format_quantity
from crossopt.instances.traces.benchmark import BenchmarkQuestion, size_of
from crossopt.instances.traces.ranks import WAITING
from crossopt.instances.traces.whatif import AMOUNTS, ChangeSection, WhatIfQuestion, cost_of, matched
from crossopt.instances.traces.whatif import size_of as whatif_size_of
from crossopt.reports.drawing.axes import Segment, Track
from crossopt.reports.sheets.amounts import digits, listed, several, short
from crossopt.reports.sheets.sheet import Column, Part, Section, Sheet, Table, Timeline, answer_sheet, baselines_in, counts, names
from crossopt.solvers.answer import Result
from crossopt.solvers.traces.benchmark.family import Runs, Stands
from crossopt.solvers.traces.whatif.family import Changed, Changes
from crossopt.solvers.traces.whatif.search import nearest

# The sheet of a benchmark: which kernels run how often, how each total is met, and how much of the trace they make up.

_MOST = 40
_LONGEST = 240
"""Characters of a kernel's name: those of C++ templates go on for lines."""
_SHORT = 40
"""Characters of a kernel's name in the short answer."""


def benchmark_sheet(question: BenchmarkQuestion, result: Result[Runs, Stands]) -> Sheet:
    """What is shown."""
    details, answer, sections, summary = result.details, result.answer, tuple[Section, ...](), ""
    figures = tuple[tuple[str, str], ...]()
    if details is not None and answer is not None:
        summary = f"{several(details.kernels, 'kernel')}, {several(details.runs, 'run')}"
        sections = (_totals(details), _kernels(question, answer, details))
        worst = max((total.deviation for total in details.totals), default=0.0)
        figures = (("coverage", f"{details.coverage:.2%}"), ("greatest deviation", f"{worst:.4%}"))
        figures = (*figures, ("mix off by", f"{details.mix:.2%}"))
        figures = (*figures, ("runs" if question.file.objective == "kernels" else "kernels", _other(question, details)))
    taken = (
        [f"{kernel.name[:_SHORT]} x {runs:,}" for kernel, runs in zip(question.kernels, answer.runs, strict=True) if runs] if answer else []
    )
    texts = [_text(baseline.answer) for baseline in result.baselines]
    share = f"{float(100 * question.file.share):.6g}%"
    return answer_sheet(
        result,
        "benchmark",
        f"Which few kernels, each repeated how often, stand for {share} of the trace of {question.name}?",
        asks="size",
        summary=summary,
        answer_rows=(("benchmark", f"{summary}: {listed(taken)}"),) if summary else (),
        figures=figures,
        given=tuple(_benchmark_given(question)),
        sections=(*sections, baselines_in("benchmark", result, result.baselines, texts)),
        notes=("each run counts for the mean of all runs of its kernel",),
        judged="total by total, as fractions",
    )


def _benchmark_given(question: BenchmarkQuestion) -> Iterator[tuple[str, str]]:
    file = question.file
    yield "trace", f"{size_of(question)}{f', {question.trace.source}' if question.trace.source else ''}"
    yield "stands for", f"{float(file.share):.4%} of it, each total within {float(file.deviation):.4%}"
    yield "coverage at the least", f"{float(file.coverage):.2%} of its time"
    yield "mix of kernels", "no limit" if file.mix is None else f"off by {float(file.mix):.2%} of the time at the most"
    for key in ("kernels", "runs"):
        if getattr(file, key) is not None:
            yield f"{key} at the most", f"{getattr(file, key):,}"


def _other(question: BenchmarkQuestion, details: Stands) -> str:
    total = sum(kernel.runs for kernel in question.kernels)
    if question.file.objective == "kernels":
        return f"{details.runs:,} of {total:,} in the trace"
    return f"{details.kernels:,} of {len(question.kernels):,} in the trace"


def _text(answer: Runs | None) -> str:
    return "" if answer is None else f"{several(sum(count > 0 for count in answer.runs), 'kernel')}, {several(sum(answer.runs), 'run')}"


def _totals(details: Stands) -> Section:
    columns = (
        names("total", (row.total for row in details.totals)),
        Column("wanted", tuple(f"{row.wanted:,.0f}" for row in details.totals), tuple(row.wanted for row in details.totals)),
        Column("has", tuple(f"{row.has:,.0f}" for row in details.totals), tuple(row.has for row in details.totals)),
        Column("off by", tuple(f"{row.deviation:.4%}" for row in details.totals), tuple(row.deviation for row in details.totals)),
    )
    return Section("Totals against their targets", (Table(columns), "Times are in ns; the target is the share of the whole trace."))


def _kernels(question: BenchmarkQuestion, answer: Runs, details: Stands) -> Section:
    rows = [(kernel, runs) for kernel, runs in zip(question.kernels, answer.runs, strict=True) if runs]
    shares = [kernel.time / question.time for kernel, _ in rows]
    took = [kernel.time * runs / kernel.runs for kernel, runs in rows]
    own = [time / sum(took) for time in took]
    columns = (
        names("kernel", (kernel.name[:_LONGEST] for kernel, _ in rows)),
        counts("runs", [runs for _, runs in rows]),
        counts("in trace", [kernel.runs for kernel, _ in rows]),
        counts("ns each", [kernel.time // kernel.runs for kernel, _ in rows]),
        Column("of the time", tuple(f"{share:.2%}" for share in shares), tuple(shares)),
        Column("of the benchmark", tuple(f"{share:.2%}" for share in own), tuple(own)),
    )
    left = f"Kernels that are left out take {1 - details.coverage:.2%} of the time of the trace. "
    left += f"The benchmark gives {details.mix:.2%} of its time to other kernels than the trace"
    left += " (no limit was given: see `mix`)." if question.file.mix is None else "."
    order = "Not held: which kernels lie on the critical path, what runs beside what, and times without work."
    return Section("Kernels", (Table(columns, most=_MOST), left, order))


# Whether a choice of changes is too close to call: what is next to it, and how far assumptions may be off until that is as quick.

_CLOSE = 0.1
"""What a change saves is assumed, and hardly known better than to a tenth."""


def nearest_text(question: WhatIfQuestion, model: Model, made: list[int]) -> str:
    """In a sentence; empty where nothing is made, or nothing else may be, or where another value is asked for than time."""
    best = sum(1 << index for index in made)
    near = nearest(model, best) if made and question.file.objective == "time" else None
    if near is None:
        return ""
    lost, gained = (listed([question.names[index] for index in set_bits(bits)]) for bits in (best & ~near.inside, near.inside & ~best))
    swap = f"without {lost}{f' and with {gained}' if gained else ''} it takes"
    searched = "" if near.is_nearest else f" of what {near.runs:,} runs of the trace looked at"
    if near.beyond < 0:
        return f"Quicker than this choice: {swap} {digits(-near.beyond, 'ns')} less."
    if near.beyond == 0:
        return f"Too close to call: {swap} as long."
    text = f"{swap} {digits(near.beyond, 'ns')} more, and is as quick if what it lacks saved {near.share:.1%} less than is assumed"
    if near.share > _CLOSE:
        return f"Nearest{searched}: {text}."
    return f"Too close to call: {text}{f'; nearest{searched}' if searched else ''}."


# What is to be said of a trace that waits for other ranks of its job: they arrive as traced, whatever is changed on this one.


def waiting_text(question: WhatIfQuestion) -> Iterator[str]:
    """In a sentence, of gaps that no change touches; nothing where there are none."""
    graph, waited = question.trace.graph, Counter[str]()
    touched = {operation for effect in question.effects for places, _ in effect.rescaled for operation in places}
    for operation, name in enumerate(graph.names):
        if name.startswith(WAITING) and operation not in touched:
            waited[name.removeprefix(WAITING)] += int(graph.durations[operation])
    if not waited:
        return
    ranks = waited.most_common()
    text = listed([f"{digits(took, 'ns')} of waiting for rank {rank}" for rank, took in ranks])
    alone = "what is saved before these on this rank alone is waited for in its place"
    advice = f"for changes on all ranks ask the trace of rank {ranks[0][0]} (`crossopt import` with `--rank {ranks[0][0]}`)"
    yield f"{text} stay as long as they were: {alone}; {advice}"


# The sheet of changes of a trace: what each saves alone and last, the way to the answer, the critical path before and after.

_MOST_TRACKS, _MOST_DRAWN = 8, 2_000
"""Threads and streams, and operations, of a timeline."""
_UNCHANGED = "unchanged"
"""What the trace takes when it is run again as it is: as long as was traced, where anything was."""
_SPREADSHEET_HEADS = {"days": "days", "memory": "memory in bytes", "money": "USD"}
_CALLED = {"days": "of work"}
"""What an amount is called whose unit is its name."""
_MOST_LOOKED_AT = 10
"""Most changes of which all choices are enumerated."""


def whatif_sheet(question: WhatIfQuestion, result: Result[Changes, Changed]) -> Sheet:
    """What is shown."""
    details, answer, sections = result.details, result.answer, list[Section]()
    summary, figures = "", list[tuple[str, str]]()
    model = model_of(question)
    made = [index for index, name in enumerate(question.names) if answer is not None and name in answer.changes]
    if details is not None and answer is not None:
        summary = listed([question.names[index] for index in made]) or "nothing is changed"
        figures = [(_UNCHANGED, short(details.traced, "ns"))]
        figures += [("afterwards", short(details.span, "ns"))] if question.file.objective != "time" else []
        figures += [("saved", f"{1.0 - details.span / details.traced:.1%}")] if details.traced else []
        figures += [
            (_CALLED.get(name, name), _amount(name, Fraction(getattr(details, name))))
            for name in AMOUNTS
            if _is_asked(question, name) and getattr(details, name)
        ]
        sections = [_way(question, model, made, details), _path(details)]
    sections += [_changes(question, model, made), *_front(question, model), *_drawn(question, made)]
    texts = [", ".join(baseline.answer.changes) if baseline.answer else "" for baseline in result.baselines]
    return answer_sheet(
        result,
        "choice of changes",
        _sentence(question),
        asks=question.file.objective,
        summary=summary,
        answer_rows=(("changes", summary),) if summary else (),
        figures=tuple(figures),
        meaning_rows=(("next best", nearest_text(question, model, made).removeprefix("Nearest: ")), ("order", question.trace.order)),
        given=tuple(_given(question)),
        sections=(*sections, baselines_in("choice", result, result.baselines, texts)),
        notes=(_NOTE, *([] if question.trace.span else [_NO_SPAN]), *waiting_text(question)),
        judged="change by change on the trace",
    )


_NOTE = "times are those of the replayed trace: they hold for the program as far as the assumptions of the changes do"
_NO_SPAN = "the trace has no span, so that the replayed time has no measured counterpart"


def _sentence(question: WhatIfQuestion) -> str:
    objective = question.file.objective
    aim = "make it quickest" if objective == "time" else f"meet the target for the least {objective}"
    return f"Which changes of the trace of {question.name}, within their budgets, {aim}?"


def _given(question: WhatIfQuestion) -> Iterator[tuple[str, str]]:
    yield "trace", f"{whatif_size_of(question)}{f', {question.trace.source}' if question.trace.source else ''}"
    yield "span as traced", f"{question.trace.span:,} ns" if question.trace.span else "none"
    if question.trace.order:
        yield "order", question.trace.order
    for amount in AMOUNTS:
        most = getattr(question.file.budgets, amount)
        if most is not None:
            yield f"{amount} at the most", _amount(amount, most)
    if question.target is not None:
        yield "time at the most", f"{question.target:,} ns"


def _amount(name: str, amount: Fraction) -> str:
    if name == "days":
        return several(int(amount), "day") if amount.denominator == 1 else f"{float(amount):g} days"
    sign = "-" if amount < 0 else ""
    return sign + format_quantity(float(abs(amount)), {"memory": "bytes"}.get(name, name))


def _is_asked(question: WhatIfQuestion, amount: str) -> bool:
    return amount != question.file.objective and any(cost_of(change, amount) for change in question.file.changes)


def _costs(changes: Sequence[ChangeSection]) -> Column:
    """What each change costs; of each kind of amount, spreadsheets have a column."""
    texts = tuple(", ".join(_amount(name, cost_of(change, name)) for name in AMOUNTS if cost_of(change, name)) or "-" for change in changes)
    first, *more = ((_SPREADSHEET_HEADS[name], tuple(float(cost_of(change, name)) for change in changes)) for name in AMOUNTS)
    return replace(names("costs", texts), exact=first[1], exact_head=first[0], more=tuple(more))


def _changes(question: WhatIfQuestion, model: Model, made: list[int]) -> Section:
    """What each saves alone, and as the last one of the answer."""
    answer, every = sum(1 << index for index in made), range(len(question.names))
    choices = [(0, model.rules.all), (model.rules.all, 0), (answer, model.rules.all & ~answer)]
    choices += [(1 << index, model.rules.all & ~(1 << index)) for index in every]
    choices += [(answer & ~(1 << index), model.rules.all & ~answer | 1 << index) for index in made]
    traced, all_of_them, span, *others = model.spans(choices).tolist()
    alone, last = others[: len(every)], dict(zip(made, others[len(every) :], strict=True))
    columns = (
        names("change", question.names),
        names("made", ("yes" if index in last else "" for index in every)),
        _saved("alone ns", [traced - span for span in alone]),
        _saved("last ns", [last[index] - span if index in last else None for index in every]),
        _costs(question.file.changes),
    )
    text = "Alone is what a change saves of the trace, last what it adds to the others of the answer. All together, whatever they cost: "
    text += f"{digits(all_of_them, 'ns')}{', even those that exclude each other' if any(model.rules.excluded) else ''}."
    near = nearest_text(question, model, made)
    assumed = dict.fromkeys(f"{change.transform}: {ASSUMPTIONS[change.transform]}" for change in question.file.changes)
    return Section("What the changes save", (Table(columns), *([near] if near else []), text, (*assumed, *_moved(question))))


def _moved(question: WhatIfQuestion) -> Iterator[str]:
    """How many collectives overlaps free, of those that their patterns mean."""
    for change, effect in zip(question.file.changes, question.effects, strict=True):
        if change.transform == "overlap":
            count = len({after for _, after in effect.added})
            meant = len(matched(question.trace.graph, change)["pattern"])
            yield f"{change.name}: {count:,} of {several(meant, 'collective')} moved, as many as wait for some gradient"


def _saved(head: str, saved: list[int | None]) -> Column:
    return Column(head, tuple("" if value is None else f"{value:,}" for value in saved), tuple(saved))


def _way(question: WhatIfQuestion, model: Model, made: list[int], details: Changed) -> Section:
    """From the trace to the answer, one change after another, as a waterfall."""
    insides = [sum(1 << index for index in made[:count]) for count in range(len(made) + 1)]
    spans = model.spans([(inside, model.rules.all & ~inside) for inside in insides]).tolist()
    tracks = [Track(_UNCHANGED, (Segment(0.0, details.traced / 1e6, 0),), digits(details.traced, "ns"))]
    for index, (before, after) in zip(made, pairwise(spans), strict=True):
        ends = sorted((before / 1e6, after / 1e6))
        tracks.append(Track(question.names[index], (Segment(ends[0], ends[1], 1 if after <= before else 2),), _signed(after - before)))
    tracks.append(Track("afterwards", (Segment(0.0, details.span / 1e6, 0),), digits(details.span, "ns")))
    adds = any(after > before for before, after in pairwise(spans))
    kinds = ("takes", "saves", *(["adds"] if adds else []))
    until = max(spans) / 1e6
    text = f"From {digits(details.traced, 'ns')} unchanged to {digits(details.span, 'ns')}, in the order of the question."
    return Section("From the trace to the answer", (Timeline(kinds, tuple(tracks), until, "ms", "", text),))


def _signed(nanoseconds: int) -> str:
    return f"{'-' if nanoseconds < 0 else '+'}{digits(abs(nanoseconds), 'ns')}"


def _path(details: Changed) -> Section:
    columns = (
        names("kind", (row.kind for row in details.path)),
        counts("before ns", [row.before for row in details.path]),
        counts("after ns", [row.after for row in details.path]),
    )
    return Section("The critical path by kind", ("Only what lies on this path makes the trace as long as it is.", Table(columns)))


def _front(question: WhatIfQuestion, model: Model) -> Iterator[Section]:
    """The least time for each number of days, whatever the budget of days is, if all choices can be enumerated quickly."""
    if len(question.names) > _MOST_LOOKED_AT or not any(change.days for change in question.file.changes):
        return
    budgets = tuple(replace(budget, most=None) if budget.name == "days" else budget for budget in model.rules.budgets)
    days = next(budget for budget in budgets if budget.name == "days")
    choices = all_choices(replace(model.rules, budgets=budgets))
    rows, best = list[tuple[Fraction, int, int]](), inf
    spans = model.spans(choices).tolist()
    for spent, span, inside in sorted((days.spent(choice[0]), span, choice[0]) for choice, span in zip(choices, spans, strict=True)):
        if span < best:
            best = span
            rows.append((Fraction(spent, days.scale), span, inside))
    columns = (
        names("days", (f"{float(spent):g}" for spent, _, _ in rows)),
        counts("least ns", [span for _, span, _ in rows]),
        names("changes", (", ".join(question.names[index] for index in set_bits(inside)) or "none" for _, _, inside in rows)),
    )
    yield Section("What more or fewer days would buy", ("Within all other budgets; every choice was enumerated.", Table(columns, most=24)))


def _drawn(question: WhatIfQuestion, made: list[int]) -> Iterator[Section]:
    """When threads and streams work, before and after, where a picture can hold that."""
    graph = question.trace.graph
    if len(graph) > _MOST_DRAWN or len(graph.resources) > _MOST_TRACKS:
        return
    parts, used = list[Part](), sorted(set(graph.kinds.tolist()))
    until = replay(graph).span / 1e6
    for name, some in ((_UNCHANGED, []), ("afterwards", made)) if made else ((_UNCHANGED, []),):
        after = changed(graph, [question.effects[index] for index in some])
        found = replay(after)
        tracks = []
        for lane, resource in enumerate(graph.resources):
            own = [
                operation
                for operation in range(len(after))
                if after.places[operation] == lane and found.ends[operation] > found.begins[operation]
            ]
            segments = tuple(
                Segment(int(found.begins[operation]) / 1e6, int(found.ends[operation]) / 1e6, used.index(int(after.kinds[operation])))
                for operation in own
            )
            busy = sum(
                int(found.ends[operation] - found.begins[operation])
                for operation in own
                if KINDS[int(after.kinds[operation])] not in {"gap", "wait"}
            )
            tracks.append(Track(resource, segments, f"{busy / max(found.span, 1):.0%} busy"))
        kinds = tuple(KINDS[kind] for kind in used)
        parts.append(
            Timeline(kinds, tuple(tracks), max(until, found.span / 1e6), "ms", "", f"{name.capitalize()}: {digits(found.span, 'ns')}.")
        )
    yield Section("When threads and streams work", tuple(parts))
