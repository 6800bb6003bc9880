"""What is to be said of a trace that waits for other ranks of its job: they arrive as traced, whatever is changed on this one."""

from collections import Counter
from collections.abc import Iterator

from crossopt.instances.traces.ranks import WAITING
from crossopt.instances.traces.whatif import WhatIfQuestion
from crossopt.reports.sheets.amounts import digits, listed


def waiting_words(question: WhatIfQuestion) -> Iterator[str]:
    """In a sentence, of gaps that no change touches; nothing where there are none."""
    graph, waited = question.trace.graph, Counter[str]()
    touched = {place for effect in question.effects for places, _ in effect.rescaled for place in places}
    for place, name in enumerate(graph.names):
        if name.startswith(WAITING) and place not in touched:
            waited[name.removeprefix(WAITING)] += int(graph.durations[place])
    if not waited:
        return
    ranks = waited.most_common()
    told = listed([f"{digits(took, 'ns')} of waiting for rank {rank}" for rank, took in ranks])
    alone = "what is saved before these on this rank alone is waited for in its place"
    asked = f"for changes on all ranks ask the trace of rank {ranks[0][0]} (`crossopt import` with `--rank {ranks[0][0]}`)"
    yield f"{told} stay as long as they were: {alone}; {asked}"
