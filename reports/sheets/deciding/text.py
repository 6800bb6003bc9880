"""Which constants decide an answer, in words: a bar to either side for each of them, and what becomes of the design."""

from collections.abc import Iterator, Sequence

from crossopt.reports.facts.chip.words import choice_name
from crossopt.reports.pages.shell import named
from crossopt.reports.sheets.amounts import amount
from crossopt.reports.texts.width import wrapped
from crossopt.solvers.codesign.explain.deciding import Decided, Deciding, End, asked_by, moved_by

_HALF = 14
"""Signs to either side of the middle of a bar."""
_GRID = 0.005
"""Of the optimum: where steps and closed parts make less of a difference nothing is said."""
_NEEDED = 0.01
"""Of the optimum: a closed part is named that is worth so much more there than with all constants as they are."""


def deciding_text(found: Deciding) -> str:
    """All of it for the terminal."""
    if found.central.value is None:
        return f"{found.name}: no design {'keeps every limit' if found.central.proved else 'found in time'}, and so nothing decides it\n"
    head = f"{found.name}: {_value(found, found.central)} with all constants as they are stated"
    head += ", proved" if found.central.proved else ", not proved"
    if not found.constants:
        return f"{head}\n"
    most = max((abs(moved) for one in found.constants for end in one.ends if (moved := proved_change(found, end)) is not None), default=0.0)
    names = max(len(name_of(one)) for one in found.constants)
    tips = [[tip_words(found, end) for end in _by_value(one)] for one in found.constants]
    lefts, rights = (max(len(pair[side]) for pair in tips) for side in (0, 1))
    lines = [head, ""]
    for one, (left, right) in zip(found.constants, tips, strict=True):
        lines.append(f"  {name_of(one):<{names}}  {left:>{lefts}} {_bar(found, one, most)} {right:<{rights}}".rstrip())
        for end in one.ends:
            lines += [line for words in (grid_words(found, end), design_words(found, end)) if words for line in wrapped("      ", words)]
    lines += ["", *wrapped("  ", summary(found))]
    return "\n".join([*lines, ""])


def name_of(one: Decided) -> str:
    """What a constant is called among people."""
    section = {"efficiency": "model", "dram": "HBM"}.get(one.section, named(one.section))
    return f"{section}: {named(one.figure)}"


def change(found: Deciding, end: End | None) -> float | None:
    """How far the constant moves the optimum, of a chip that can follow where that is known; None where there is no design."""
    return None if end is None else moved_by(found.central, end)


def proved_change(found: Deciding, end: End | None) -> float | None:
    """The same where it is proved: only that is drawn."""
    return change(found, end) if end is not None and _sure(found, end) else None


def _sure(found: Deciding, end: End) -> bool:
    return end.proved or (end.followed is not None and found.central.followed is not None)


def grid_words(found: Deciding, end: End | None) -> str:
    """How far the optimum of the question moves, where its steps and closed parts make that another figure, and which these are; nothing
    where they do not."""
    if end is None or end.followed is None or found.central.followed is None:
        return ""
    asked, moved = asked_by(found.central, end), moved_by(found.central, end)
    if asked is not None and moved is not None and abs(asked - moved) < _GRID:
        return ""
    there = "no design" if asked is None else _percent(asked)
    before = {name: _cost(worth) for name, worth in found.central.followed.opened}
    needed = [name for name, worth in end.followed.opened if _cost(worth) > before.get(name, 0.0) + _NEEDED]
    closed = ", ".join(choice_name(name) for name in needed)
    why = f"its steps, and closed there: {closed}" if closed else "its steps"
    return f"x {end.factor:.3g}: {there} on the grid of the question, by {why}"


def _cost(worth: float | None) -> float:
    return float("inf") if worth is None else worth


def tip_words(found: Deciding, end: End | None) -> str:
    """By which factor an end is away, and where the optimum goes."""
    if end is None:
        return "not asked"
    moved = change(found, end)
    if moved is None:
        return f"x {end.factor:.3g}: {'no design' if end.proved else 'none found'}"
    return f"x {end.factor:.3g}: {_percent(moved)}{'' if _sure(found, end) else ' ?'}"


def _percent(moved: float) -> str:
    return f"{moved:+.1%}".replace("+0.0%", "0").replace("-0.0%", "0")


def design_words(found: Deciding, end: End) -> str:
    """What becomes of the design at an end; nothing where it stays the best one, and where there is none."""
    if end.value is None or stays(end):
        return ""
    if end.kept is None:
        limit, colon, _ = (end.broken or ("a limit:",))[0].partition(":")
        why = f"break the limit on {limit}" if colon else f"be none ({limit})"
        return f"x {end.factor:.3g}: another design; the present one would {why}"
    more = f"{end.kept / end.value - 1.0:.2%} above it" if end.value else amount(end.kept, found.unit)
    return f"x {end.factor:.3g}: another design; the present one would be {more}"


def stays(end: End) -> bool:
    """Whether the design that is best with all constants as they are is as good as any at this end."""
    return end.same or (end.kept is not None and end.value is not None and end.kept <= end.value)


def summary(found: Deciding) -> str:
    """How many constants matter to the choice, and what is not known."""
    asked = [one for one in found.constants if one.ends]
    other = [name_of(one) for one in asked if any(end.value is not None and not stays(end) for end in one.ends)]
    every = [end for one in found.constants for end in (one.low, one.high)]
    proved = sum(end is not None and end.proved for end in every)
    words = f"{proved} of {len(every)} ends are proved, each as a question of its own."
    if found.central.followed is not None:
        words = (
            f"Changes are those of the best chip that can follow: areas and powers in steps a quarter as large, parts that the question "
            f"leaves closed with up to a quarter more. {words}"
        )
    words += (
        f" Another design is best at an end of {len(other)} constants of {len(asked)}." if other else " The design stays at all of them."
    )
    return words if proved == len(every) else f"{words} A ? marks the best found in time (give more time with --time-limit)."


def _value(found: Deciding, end: End) -> str:
    return amount(end.value, found.unit)


def _by_value(one: Decided) -> Sequence[End | None]:
    """Both ends, the lesser optimum first."""
    return sorted((one.low, one.high), key=lambda end: float("inf") if end is None or end.value is None else end.value)


def _bar(found: Deciding, one: Decided, most: float) -> str:
    moved = [proved_change(found, end) or 0.0 for end in one.ends]
    left, right = (-min([0.0, *moved]), max([0.0, *moved]))
    signs = [round(side / most * _HALF) if most else 0 for side in (left, right)]
    return f"{'█' * signs[0]:>{_HALF}}│{'█' * signs[1]:<{_HALF}}"


def sources(found: Deciding) -> Iterator[tuple[str, str, str]]:
    """Each constant with its range and who says so."""
    for one in found.constants:
        ends = [f"{end.factor:.3g}" for end in one.ends]
        yield name_of(one), " to ".join(ends), one.source
