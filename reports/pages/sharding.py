"""A page about strategies of operators: what they mean, memory against the limit, what reductions left, plans beside them, the proof."""

from collections.abc import Sequence
from dataclasses import astuple

from crossopt.instances.files.units import format_quantity
from crossopt.instances.sharding.question import ShardingQuestion
from crossopt.reports.drawing.bars import Row, bars
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.pages.search import Search, search_section
from crossopt.reports.pages.shell import Page, figure, heading, listing, paragraph, proof_box, section, table, tiles
from crossopt.reports.tables.digest import Digest, Table, verdict_of
from crossopt.reports.texts.design import bound_amount, seconds_of, time_of
from crossopt.reports.texts.sharding import certificate_sentence
from crossopt.solvers.answer import Number
from crossopt.solvers.proofs import Steps
from crossopt.solvers.sharding.answer import Answer, Meaning

_ASKED = "Which strategy does each operator take, so that operators and what passes between them cost least within the memory?"
_TOLD = (
    "The file of the question was read anew for this page, its digest compared, and the strategies judged on all nodes and edges of it: "
    "what is forbidden, cost, memory at every time. `crossopt check` also counts the proof and the reductions anew where there is "
    "a proof. Here the counts of the reductions, the seconds and the notes are the result's own."
)
_EXTENT = ("nodes", "strategies", "edges", "pairs", "members", "times")
_PLANS = 12


def sharding_page(question: ShardingQuestion, result: Answer, data: object) -> Page:
    """The page; `data` is the result as it was read, for re-use."""
    name, given = result.question["name"], () if question.network is None else question.network.given
    label = "proved optimal" if result.status == "OPTIMAL" else f"proved within {result.gap_asked:.2%}" if result.proved else "not proved"
    if result.value is None or result.details is None:
        label = "proved: no choice" if result.proved else "no choice found"
        words = "No choice keeps the rules." if result.proved else "No choice was found."
        head = (heading(name, _ASKED), proof_box(label, words, result.proved))
        return Page(name, (*head, section("Why", listing(result.reasons)), _question(result, given), _reductions(result)), data)
    sections = (
        heading(name, _ASKED),
        proof_box(label, _capital(certificate_sentence(result)), result.proved),
        _tiles(result, result.value),
        paragraph(
            f"To the last digit: {_axis(result)} {result.value:,}{'' if result.bound is None else f', lower bound {result.bound:,}'}.",
            "soft",
        ),
        _question(result, given),
        _memory(result, result.details),
        _choices(result.details),
        _plans(result, result.value),
        _reductions(result),
        search_section(Search("best choice", _axis(result), result.engine, result.trace, result.seconds, result.bound, result.gap)),
        section("Notes", listing(result.notes)) if result.notes else "",
        section("How this is known", paragraph(_TOLD)),
    )
    return Page(name, sections, data)


def of_sharding(result: Answer) -> Digest:
    """The same in a few figures."""
    said = result.details
    peak = () if said is None else (("memory at its peak", _bytes(said.peak)),)
    choices = () if said is None else tuple((one.operator, one.way, float(one.count)) for one in said.choices)
    plans = tuple((plan.name, None if plan.value is None else float(plan.value)) for plan in result.rivals)
    return Digest(
        name=result.question["name"],
        asks="cost",
        unit=result.question["unit"],
        value=None if result.value is None else float(result.value),
        bound=None if result.bound is None else float(result.bound),
        gap=result.gap,
        verdict=verdict_of(result, "choice"),
        prover=result.proved_by,
        engine=result.engine,
        seconds=result.seconds,
        design=f"{result.question['nodes']:,} nodes, {result.question['strategies']:,} strategies",
        figures=peak,
        tables=(
            *([Table("Strategies", ("operator", "along each axis of the mesh", "operators"), choices)] if choices else []),
            *([Table("Plans of Megatron-LM", ("plan", "cost"), plans)] if plans else []),
        ),
    )


def _axis(result: Answer) -> str:
    return f"cost in {result.question['unit']}" if result.question["unit"] else "cost"


def _tiles(result: Answer, value: Number) -> str:
    facts = [_cost(result, value), ("lower bound", "none" if result.bound is None else _bound(result, result.bound))]
    facts += [("gap", f"{result.gap:.2%}")] if result.gap is not None else []
    return tiles([*facts, ("operators", f"{result.question['nodes']:,}"), ("solved in", seconds_of(result.seconds))])


def _cost(result: Answer, value: Number) -> tuple[str, str]:
    """Nanoseconds as a time in the unit that suits it."""
    return ("cost", time_of(value / 1e9)) if result.question["unit"] == "ns" else (_axis(result), _short(value))


def _bound(result: Answer, bound: Number) -> str:
    if result.question["unit"] != "ns":
        return _short(bound)
    return time_of(bound / 1e9) if bound == result.value else bound_amount(bound / 1e9, "s")


def _question(result: Answer, given: Sequence[tuple[str, str]]) -> str:
    asked, limit = result.question, result.question["limit"]
    rows = [*given, ("nodes", f"{asked['nodes']:,}"), ("strategies", f"{asked['strategies']:,}"), ("edges", f"{asked['edges']:,}")]
    rows += [("memory at every time", "no limit" if limit is None else f"{_bytes(limit)} at most"), ("file", asked["source"])]
    return section("The question", table(("", "given"), [*rows, ("SHA-256 of its text", asked["digest"])]))


def _memory(result: Answer, said: Meaning) -> str:
    limit, peak = result.question["limit"], said.peak
    if not limit:
        return ""
    words = f"At time {said.peak_time} {_bytes(peak)} of {_bytes(limit)} are in use, more than at any other time."
    row = Row(f"time {said.peak_time}", peak / limit, f"{peak / limit:.1%}", "binds" if peak > 0.95 * limit else "")
    picture = bars(Titles("memory", "Memory at its peak against the limit", words), [row], 1.0, "the limit")
    return section("Memory at its peak", figure(picture, words))


def _choices(said: Meaning) -> str:
    rows = [(one.operator, one.way, f"{one.count:,}") for one in said.choices]
    words = "One word for each axis of the mesh; weights, gradients and the optimizer's state are whole or split."
    shown = [paragraph(words), table(("operator", "along each axis", "operators"), rows, numbers=(2,))] if rows else []
    return section("What is split how", *shown)


def _plans(result: Answer, value: Number) -> str:
    """Megatron-LM's plans on the same mesh, the best first."""
    fitting = [(plan.name, plan.value) for plan in result.rivals if plan.value is not None][:_PLANS]
    if not fitting or not value:
        return ""
    rows = [(name, f"{cost:,}", f"{cost / value - 1.0:.2%}") for name, cost in fitting]
    large = sum(plan.value is None for plan in result.rivals)
    left = f" {large} more plans do not fit the memory." if large else ""
    words = f"What Megatron-LM's plans cost on the same mesh by the same prices, the best first.{left}"
    shown = table(("plan", _axis(result), "above this answer"), rows, numbers=(1, 2))
    return section("Beside Megatron-LM's plans", paragraph(words), shown)


def _reductions(result: Answer) -> str:
    if not isinstance(result.proof, Steps):
        return ""
    reductions = result.proof.reductions
    before, after = reductions.before, reductions.after
    rows = [("before", *(f"{figure:,}" for figure in astuple(before)))]
    rows += [(step.name, *_signed(astuple(step.taken))) for step in reductions.steps if any(astuple(step.taken))]
    rows.append(("left", *(f"{figure:,}" for figure in astuple(after))))
    words = f"Reductions that keep the optimum leave {after.nodes:,} of {before.nodes:,} nodes with a choice."
    return section("What is left to choose", paragraph(words), table(("", *_EXTENT), rows, numbers=tuple(range(1, 7)), wide=True))


def _short(figure: Number) -> str:
    """With commas; large ones with five digits, towards nothing, as bounds must be."""
    if figure < 10**7:
        return f"{figure:,}"
    places = len(str(figure)) - 1
    return f"{figure // 10 ** (places - 4) / 10**4:.4f}e{places}"


def _signed(taken: tuple[int, ...]) -> tuple[str, ...]:
    """What was taken away, with a minus; what came instead has a plus."""
    return tuple(f"{-figure:+,}" if figure else "" for figure in taken)


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _bytes(figure: int) -> str:
    return format_quantity(float(figure), "bytes")
