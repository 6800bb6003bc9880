"""The sheet of strategies of operators: memory against the limit, what is split how, plans beside them, what the reductions left."""

from collections import Counter
from dataclasses import astuple, fields

from crossopt.instances.extent import Extent
from crossopt.instances.files.units import format_quantity
from crossopt.instances.sharding.question import ShardingQuestion
from crossopt.reports.sheets.amounts import seconds_of
from crossopt.reports.sheets.sheet import Column, Limit, Limits, Part, Search, Section, Sheet, Table, answer_sheet, counts, names
from crossopt.solvers.proofs import Reductions, Steps
from crossopt.solvers.sharding.judge import EXACT_PROOFS, IN_FLOATS, Answer, Meaning

_KNOWN = "It was read anew for this page. The counts of the reductions, the seconds and the notes are the result's own."
_PLANS = 12
"""Of Megatron-LM, the best ones; spreadsheets have all."""
_SAID = 6
"""Ways to split of the short answer."""


def sheet(question: ShardingQuestion, result: Answer) -> Sheet:
    """What is shown."""
    facts, details = result.question, result.details
    answered = () if details is None else (_memory(result, details), _choices(details), _plans(result))
    reduced = (_reductions(result.proof.reductions),) if isinstance(result.proof, Steps) else ()
    limit = "no limit" if facts["limit"] is None else f"{facts['limit']:,} bytes at most"
    return answer_sheet(
        result,
        "choice",
        "Which strategy does each operator take, so that operators and what passes between them cost least within the memory?",
        asks="cost",
        summary=f"{facts['nodes']:,} nodes with {facts['strategies']:,} strategies",
        answer_rows=(("strategies", _ways(details) or f"{facts['nodes']:,} nodes, one of {facts['strategies']:,} strategies for each"),)
        if details
        else (),
        figures=(("memory at its peak", _peak_text(details, facts["limit"])),) if details else (),
        given=(
            *(() if question.network is None else question.network.given),
            ("nodes", f"{facts['nodes']:,}"),
            ("strategies", f"{facts['strategies']:,}"),
            ("edges", f"{facts['edges']:,}"),
            ("memory at every time", limit),
        ),
        sections=(
            *answered,
            *reduced,
            Section("How the search closed in", (Search("best choice", f"cost in {facts['unit']}".removesuffix(" in "), result),)),
        ),
        notes=result.notes,
        prover=_prover(result),
        judged="on every node and edge",
        known=(f"The question is the file {facts['source']}, the SHA-256 of its text {facts['digest']}. {_KNOWN}",),
    )


def _ways(details: Meaning) -> str:
    """How many operators are split in each way, most first; empty where strategies have no meaning."""
    ways = Counter[str]()
    for choice in details.choices:
        ways[choice.way] += choice.count
    return " · ".join(f"{count:,} x {way}" for way, count in ways.most_common(_SAID))


def _peak_text(details: Meaning, limit: int | None) -> str:
    return f"{_bytes(details.peak)}{f' of {_bytes(limit)} ({details.peak / limit:.0%})' if limit else ''}"


def _prover(result: Answer) -> str:
    """The prover of the bound, or its unverified source."""
    sure = result.proof.certificate.bound if isinstance(result.proof, Steps) and result.proof.certificate else None
    own = "" if sure is None or sure == result.bound else f"; {sure:,} of it is proved by prices and messages in whole numbers"
    floats = ", in floating point and lowered by a millionth at least" if result.proved_by.startswith(IN_FLOATS) else ""
    return f"{'' if result.proved_by in EXACT_PROOFS else 'the report of '}{result.proved_by}{floats}{own}" if result.proved_by else ""


def _memory(result: Answer, details: Meaning) -> Section:
    limit, peak = result.question["limit"], details.peak
    if not limit:
        return Section("Memory at its peak", (f"At time {details.peak_time} {peak:,} bytes are in use, without a limit.",))
    text = (
        f"At time {details.peak_time} {peak:,} of {limit:,} bytes are in use ({_bytes(peak)} of {_bytes(limit)}), more than at other times."
    )
    return Section("Memory at its peak", (Limits((Limit(f"time {details.peak_time}", float(peak), float(limit), "bytes"),)), text))


def _choices(details: Meaning) -> Section:
    """What the strategies mean, the same operators of all layers in one row for each way."""
    text = "One word for each axis of the mesh; weights, gradients and the optimizer's state are whole or split."
    table = Table(
        (
            names("operator", (row.operator for row in details.choices)),
            names("along each axis of the mesh", (row.way for row in details.choices)),
            counts("operators", [row.count for row in details.choices]),
        )
    )
    return Section("What is split how", (text, table) if details.choices else ())


def _plans(result: Answer) -> Section:
    """Megatron-LM's plans on the same mesh, the best first."""
    value, large = result.value, sum(plan.value is None for plan in result.baselines)
    left = f" {len(result.baselines) - large} plans fit the memory, {large} do not." if large else ""
    above = [plan.value / value - 1.0 if plan.value is not None and value else None for plan in result.baselines]
    table = Table(
        (
            names("plan", (plan.name for plan in result.baselines)),
            Column(
                f"cost in {result.question['unit']}".removesuffix(" in "),
                tuple("-" if plan.value is None else f"{plan.value:,}" for plan in result.baselines),
                tuple(plan.value for plan in result.baselines),
            ),
            Column("above this answer", tuple("-" if share is None else f"{share:.2%}" for share in above), tuple(above)),
        ),
        most=min(_PLANS, len(result.baselines) - large),
    )
    text = f"What Megatron-LM's plans cost on the same mesh by the same prices, the best first.{left}"
    return Section("Beside Megatron-LM's plans", (text, table) if len(result.baselines) > large else ())


def _reductions(reductions: Reductions) -> Section:
    """What there was to choose, what each kind of reduction took, and what was left."""
    before, after = reductions.before, reductions.after
    steps = [step for step in reductions.steps if any(astuple(step.taken))]
    heads = {field.name: "pairs" if field.name == "entries" else field.name for field in fields(Extent)}
    took = [tuple(-getattr(step.taken, name) for step in steps) for name in heads]
    figures = [(getattr(before, name), *taken, getattr(after, name)) for name, taken in zip(heads, took, strict=True)]
    total, seconds = sum(step.seconds for step in reductions.steps), [step.seconds for step in steps]
    text = f"Reductions that keep the optimum leave {after.nodes:,} of {before.nodes:,} nodes with a choice, in {seconds_of(total)}."
    columns = (
        names("", ("before", *(step.name for step in steps), "left")),
        *(Column(head, _signed(column), column) for head, column in zip(heads.values(), figures, strict=True)),
        Column("took ms", ("", *(f"{second * 1e3:.2g}" for second in seconds), ""), (None, *seconds, None), "took in s"),
    )
    parts: tuple[Part, ...] = (text, Table(columns))
    return Section("What is left to choose", parts)


def _signed(column: tuple[int, ...]) -> tuple[str, ...]:
    """What was taken away with a minus, what came instead with a plus."""
    return (f"{column[0]:,}", *(f"{figure:+,}" if figure else "" for figure in column[1:-1]), f"{column[-1]:,}")


def _bytes(figure: int) -> str:
    return format_quantity(float(figure), "bytes")
