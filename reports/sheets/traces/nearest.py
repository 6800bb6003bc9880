"""Whether a choice of changes is too close to call: what is next to it, and how far assumptions may be off until that is as quick."""

from crossopt.formulation.traces.whatif import Model, places_in
from crossopt.instances.traces.whatif import WhatIfQuestion
from crossopt.reports.sheets.amounts import digits, listed
from crossopt.solvers.traces.whatif.search import nearest

_CLOSE = 0.1
"""What a change saves is assumed, and hardly known better than to a tenth."""


def nearest_words(question: WhatIfQuestion, model: Model, made: list[int]) -> str:
    """In a sentence; empty where nothing is made, or nothing else may be, or where another value is asked for than time."""
    best = sum(1 << place for place in made)
    near = nearest(model, best) if made and question.file.objective == "time" else None
    if near is None:
        return ""
    lost, gained = (listed([question.names[place] for place in places_in(bits)]) for bits in (best & ~near.inside, near.inside & ~best))
    swap = f"without {lost}{f' and with {gained}' if gained else ''} it takes"
    looked = "" if near.is_nearest else f" of what {near.runs:,} runs of the trace looked at"
    if near.beyond < 0:
        return f"Quicker than this choice: {swap} {digits(-near.beyond, 'ns')} less."
    if near.beyond == 0:
        return f"Too close to call: {swap} as long."
    told = f"{swap} {digits(near.beyond, 'ns')} more, and is as quick if what it lacks saved {near.share:.1%} less than is assumed"
    if near.share > _CLOSE:
        return f"Nearest{looked}: {told}."
    return f"Too close to call: {told}{f'; nearest{looked}' if looked else ''}."
