"""The sheet of sends: every link over time with the chunks it carries, and every step in words."""

from collections.abc import Iterator

from crossopt.instances.files.units import format_quantity
from crossopt.instances.network.synthesis import SynthesisQuestion, size_of
from crossopt.reports.drawing.timeline import Segment, Track
from crossopt.reports.sheets.amounts import several
from crossopt.reports.sheets.sheet import Section, Sheet, Table, Timeline, answer_sheet, baselines_in, counts, names
from crossopt.solvers.answer import Result
from crossopt.solvers.network.synthesis.judge import Sends, Used

_MOST_TRACKS = 32


def sheet(question: SynthesisQuestion, result: Result[Sends, Used]) -> Sheet:
    """What is shown."""
    sections, summary, figures = tuple[Section, ...](), "", tuple[tuple[str, str], ...]()
    if result.answer is not None and result.details is not None and result.value is not None:
        steps = int(result.value)
        summary = several(len(result.answer.sends), "send")
        sections = (_links(question, result.answer, result.details, steps), _sends(question, result.answer, steps))
        if question.file.step is not None:
            figures = (("time", format_quantity(steps * question.file.step, "time")),)
    words = ["" if rival.answer is None else several(len(rival.answer.sends), "send") for rival in result.rivals]
    return answer_sheet(
        result,
        "schedule",
        f"Over which links does each chunk of {question.name} go, and when, so that all is done soonest?",
        asks="steps",
        summary=summary,
        figures=figures,
        given=_given(question),
        sections=(*sections, baselines_in("schedule", result, result.rivals, words)),
        judged="send by send",
    )


def _given(question: SynthesisQuestion) -> tuple[tuple[str, str], ...]:
    step, deadline = question.file.step, question.file.deadline
    rows = [("collective", size_of(question))]
    rows += [("step", format_quantity(step, "time"))] if step is not None else []
    rows += [("deadline", several(deadline, "step"))] if deadline is not None else []
    return tuple(rows)


def _sends_in_order(question: SynthesisQuestion, answer: Sends, steps: int) -> Iterator[tuple[int, int, int]]:
    """Every send as it runs: of a reduce-scatter from the last to the first."""
    for chunk, place, step in answer.sends:
        yield chunk, place, steps - step - question.links[place].steps if question.turned else step


def _ends(question: SynthesisQuestion, place: int) -> tuple[int, int]:
    """Who sends to whom over a link as it is."""
    link = question.links[place]
    return (link.receiver, link.sender) if question.turned else (link.sender, link.receiver)


def _links(question: SynthesisQuestion, answer: Sends, used: Used, steps: int) -> Section:
    """A lane for each link, by the NPU whose chunks it carries."""
    owners = sorted(set(question.origins))
    of = "for" if question.turned else "of"
    runs = sorted(_sends_in_order(question, answer, steps), key=lambda send: send[2])
    tracks = []
    for place in sorted(range(len(question.links)), key=lambda one: _ends(question, one)):
        length = question.links[place].steps
        mine = ((owners.index(question.origins[chunk]), step) for chunk, at, step in runs if at == place)
        segments = tuple(Segment(float(step), float(step + length), owner) for owner, step in mine)
        sender, receiver = _ends(question, place)
        tracks.append(Track(f"link {sender}>{receiver}", segments, f"{used.busy[place] / steps:.0%} busy"))
    kinds = tuple(f"chunks {of} NPU {owner}" for owner in owners)
    drawn = Timeline(kinds, tuple(tracks[:_MOST_TRACKS]), float(steps), "steps", "done", f"All is done after {several(steps, 'step')}.")
    left = len(tracks) - _MOST_TRACKS
    more = (f"{several(left, 'further link')} stand in the table below.",) if left > 0 else ()
    return Section("When every link works", (drawn, *more))


def _sends(question: SynthesisQuestion, answer: Sends, steps: int) -> Section:
    """As they run, one after another."""
    told = _sends_in_order(question, answer, steps)
    runs = sorted((step, *_ends(question, place), chunk, question.links[place].steps) for chunk, place, step in told)
    of, cut = "for" if question.turned else "of", question.file.chunks
    columns = (
        counts("step", [run[0] for run in runs]),
        counts("from", [run[1] for run in runs]),
        counts("to", [run[2] for run in runs]),
        names("chunk", (f"{run[3] % cut} {of} NPU {question.origins[run[3]]}" for run in runs)),
        counts("takes", [run[4] for run in runs]),
    )
    return Section("Every send", (Table(columns, most=24),))
