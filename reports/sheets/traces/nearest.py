"""Whether a choice of changes is too close to call: what is next to it, and how far assumptions may be off until that is as quick.

With S the choice, R one without some changes of S, and T(.) the time of each, what S saves beyond the changes of both is T(S and R) - T(S).
If it were the share (T(R) - T(S)) / (T(S and R) - T(S)) less, R would be as quick. Of all R the one is told at which this share is least.
"""

from crossopt.formulation.traces.rules import keeps, places_in
from crossopt.formulation.traces.tree import Model, all_choices
from crossopt.instances.traces.whatif.question import WhatIfQuestion
from crossopt.reports.sheets.amounts import digits, listed
from crossopt.solvers.traces.whatif.exchange import exchanges

_MOST_LOOKED_AT = 10
"""Changes of which every choice is looked at; of more those that differ in a change, or in one for another."""
_CLOSE = 0.1
"""What a change saves is assumed, and hardly known better than to a tenth."""


def nearest_words(question: WhatIfQuestion, model: Model, made: list[int]) -> str:
    """In a sentence; empty where nothing is made, or nothing else may be, or where another value is asked for than time."""
    best, rules = sum(1 << place for place in made), model.rules
    if not made or question.file.objective != "time":
        return ""
    if rules.count <= _MOST_LOOKED_AT:
        others = [inside for inside, _ in all_choices(rules) if best & ~inside]
    else:
        others = [inside for inside in dict.fromkeys(exchanges(model, best)) if best & ~inside and keeps(rules, inside)]
    if not others:
        return ""
    span, *spans = model.spans([(one, rules.all & ~one) for one in (best, *others)]).tolist()
    common = model.spans([(one & best, rules.all & ~(one & best)) for one in others]).tolist()
    shares = [(found - span) / (both - span) if both > span else 1.0 for found, both in zip(spans, common, strict=True)]
    share, beyond, other = min(zip(shares, (found - span for found in spans), others, strict=True))
    lost, gained = (listed([question.names[place] for place in places_in(bits)]) for bits in (best & ~other, other & ~best))
    swap = f"without {lost}{f' and with {gained}' if gained else ''}"
    told = f"{swap} it takes {digits(beyond, 'ns')} more, and is as quick if what it lacks saved {share:.1%} less than is assumed"
    return f"{'Too close to call: ' if share <= _CLOSE else 'Nearest: '}{told}."
