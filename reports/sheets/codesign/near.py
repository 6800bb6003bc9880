"""What near-optimal designs have in common, in words: every choice with the options that occur."""

import re
from collections.abc import Sequence
from textwrap import wrap
from typing import Any

from crossopt.instances.files.units import rounded_quantity
from crossopt.reports.render.width import page_width
from crossopt.solvers.codesign.explain.near_optimal import Known, Near
from crossopt.solvers.proofs import Space

_DIGITS = 4
_LISTED = 3
_TIE = "\N{NO-BREAK SPACE}"


def common_words(space: Space, value: float) -> tuple[str, str]:
    """Within how much of the best value there are others, and what all designs within that have in common; the nearest such share."""
    for count, share, limit in ((space.within_1_percent, "within 1 %", value * 1.01), (space.within_5_percent, "within 5 %", value * 1.05)):
        if count > 1:
            return share, choices_words([(choice.name, choice.within(limit), choice.of) for choice in space.near])
    return "", ""


def near_text(near: Near | None, gap: float) -> str:
    """What every design near the optimum has, and what was not decided in time."""
    if near is None:
        return f"\n  within {100.0 * gap:.4g} % of the optimum: not known, as the optimum was not proved in time\n"
    settled = [known for known in near.choices if not _open(known)]
    words = choices_words([(known.name, _occurring(known), len(known.options) + (not known.asked_between)) for known in settled])
    lines = [f"\n  designs within {100.0 * gap:.4g} % of the optimum, by proof:"]
    lines += [line for part in words.split("; ") if part for line in _indented(part)]
    lines += [line for known in near.choices if (places := _open(known)) for line in _indented(_undecided(known, places))]
    return "\n".join(lines) + "\n"


def _occurring(known: Known) -> list[Any]:
    """The options that occur; between the ends also those that were not asked."""
    return [option for option, never in zip(known.options, known.never, strict=True) if not never]


def _open(known: Known) -> list[int]:
    """Options of which it is not known whether they occur, and of which that was asked."""
    places = [place for place, (occurs, never) in enumerate(zip(known.occur, known.never, strict=True)) if not (occurs or never)]
    found = [place for place, occurs in enumerate(known.occur) if occurs]
    return [place for place in places if known.asked_between or not found[0] < place < found[-1]]


def _undecided(known: Known, places: list[int]) -> str:
    """What is known of a choice that was not decided in time."""
    found = [option for option, occurs in zip(known.options, known.occur, strict=True) if occurs]
    rest = options_words(known.name, [known.options[place] for place in places])
    return f"{options_words(known.name, found)}; not decided in time whether {rest}, too"


def _indented(text: str) -> list[str]:
    tied = re.sub(r"(?<!,) ", _TIE, text)
    lines = wrap(tied, page_width(), initial_indent="    ", subsequent_indent="      ", break_long_words=False, break_on_hyphens=False)
    return [line.replace(_TIE, " ") for line in lines]


def choices_words(choices: Sequence[tuple[str, list[Any], int]]) -> str:
    """Name, occurring options and number of all options of each choice: first what is alike, then what differs, then what does not
    matter at all."""
    alike = [options_words(name, options) for name, options, _ in choices if len(options) == 1]
    differ = [options_words(name, options) for name, options, of in choices if 1 < len(options) < of]
    anything = [name.replace("_", " ") for name, options, of in choices if 1 < len(options) == of]
    parts = [f"all have {', '.join(alike)}"] if alike else []
    return "; ".join([*parts, *differ, *([f"every option of {', '.join(anything)}"] if anything else [])])


def options_words(name: str, options: list[Any]) -> str:
    """Options of a choice as a person would say them: one or a few one by one, more of them by the least and the greatest."""
    if options in (["none"], [False], [True]) and isinstance(options[0], str | bool):
        return f"{'' if options[0] is True else 'no '}{name.replace('_', ' ')}"
    if len(options) > _LISTED and not isinstance(options[0], str):
        return _named(name, f"between {option_word(name, min(options))} and {option_word(name, max(options))}")
    listed = [option_word(name, option) for option in options]
    return _named(name, listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} or {listed[-1]}")


def option_word(name: str, option: Any) -> str:  # noqa: ANN401 - options are numbers or words
    """One option, with its unit."""
    kind = name.rpartition("_")[2]
    if kind not in {"area", "power"}:
        return f"{option:.{_DIGITS}g}" if isinstance(option, float) else str(option)
    return rounded_quantity(option, kind, _DIGITS)


def _named(name: str, options: str) -> str:
    part, _, kind = name.rpartition("_")
    if name == "hbm_stacks":
        return f"{options} HBM stacks"
    if name == "zero":
        return f"ZeRO-{options.replace('or ', 'or ZeRO-').replace(', ', ', ZeRO-')}"
    if kind == "edge":
        return f"{part.replace('_', ' ')} {options} of the edge"
    words = (part if kind in {"area", "power"} else name).replace("_", " ")
    return f"{words} given {options}" if kind == "power" else f"{words} {options}"
