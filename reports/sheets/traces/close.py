"""Other choices of changes that are too close to the answer to call: nearer than the replay of the trace is held to what was traced.

An unchanged trace is run again within 1 % of its span, or as near as it is (`import` tells it). Two choices whose times lie nearer to each
other than that are not told apart by it, whatever is proved about the model. Only choices count of which every change saves something.
"""

from collections.abc import Iterator, Sequence
from itertools import product

from crossopt.formulation.traces.rules import keeps, places_in
from crossopt.formulation.traces.tree import Model
from crossopt.instances.traces.whatif.question import WhatIfQuestion
from crossopt.reports.sheets.amounts import digits, several
from crossopt.reports.sheets.sheet import Section, Table, counts, names
from crossopt.solvers.traces.whatif.answer import Changed

MOST_LOOKED_AT = 10
"""Changes of which every choice is looked at; of more, choices that differ by one change or by one for another."""
_CARRIED, _SHOWN = 100, 8
"""The part of the unchanged time that is one too little to call, and rows."""


def carried(question: WhatIfQuestion, details: Changed) -> int:
    """ns by which times may be off before any change is assumed."""
    off = abs(details.traced - question.trace.span) if question.trace.span else 0
    return max(-(-details.traced // _CARRIED), off)


def close_ones(question: WhatIfQuestion, model: Model, made: Sequence[int], details: Changed) -> list[tuple[int, int]]:
    """Times and changes, as bits, of the other choices that are as good within that: no longer than the answer by more, or cheaper and
    beyond the target by no more. Nearest first."""
    own, far = sum(1 << place for place in made), carried(question, details)
    allowed = [inside for inside in dict.fromkeys(_others(model, own)) if inside != own and keeps(model.rules, inside)]
    spans = dict(zip(allowed, _spans(model, allowed), strict=True))
    if model.price is None:
        near = [inside for inside, span in spans.items() if span <= min(details.span + far, model.target)]
    else:
        spent = model.price.spent(own)
        near = [inside for inside, span in spans.items() if model.price.spent(inside) < spent and span <= model.target + far]
    fewer = {inside: [inside & ~(1 << place) for place in places_in(inside)] for inside in near}
    left = [one for ones in fewer.values() for one in ones]
    known = dict(zip(left, _spans(model, left), strict=True))
    return sorted((spans[inside], inside) for inside in near if all(known[one] > spans[inside] for one in fewer[inside]))


def _others(model: Model, own: int) -> Iterator[int]:
    every = range(model.rules.count)
    if model.rules.count <= MOST_LOOKED_AT:
        yield from range(model.rules.all + 1)
        return
    yield from (own ^ 1 << place for place in every)
    yield from (own ^ 1 << one ^ 1 << other for one, other in product(every, every) if one < other and own >> one & 1 != own >> other & 1)


def _spans(model: Model, choices: Sequence[int]) -> list[int]:
    return model.known_spans([(inside, model.rules.all & ~inside) for inside in choices])


def close_section(question: WhatIfQuestion, model: Model, found: Sequence[tuple[int, int]], details: Changed) -> Section:
    """Which these are."""
    far, against = digits(carried(question, details), "ns"), details.span if model.price is None else int(model.target)
    what = f"of the answer: {several(len(found), 'other choice')}" if model.price is None else "beyond the target are cheaper choices"
    words = f"Within {far} {what}. The trace run again unchanged is held to what was traced no nearer than that: "
    words += "1% of it, or as far as it is off."
    looked = "" if model.rules.count <= MOST_LOOKED_AT else "Looked at were choices that differ by one change, or by one for another."
    columns = (
        names("changes", (", ".join(question.names[place] for place in places_in(inside)) or "none" for _, inside in found)),
        counts("ns", [span for span, _ in found]),
        counts("longer by ns", [span - against for span, _ in found]),
        names("days", (f"{sum(float(question.file.changes[place].days) for place in places_in(inside)):g}" for _, inside in found)),
    )
    return Section("Too close to call", (words, Table(columns, most=_SHOWN), *([looked] if looked else [])))
