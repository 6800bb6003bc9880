"""Engines that choose changes: branch and bound, enumeration, greedy baselines by gain per cost, and exchanges."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from math import inf
from time import monotonic

from crossopt.formulation.traces.whatif import Choice, Model, all_choices, cut, keeps, model_of, packed, set_bits, settled
from crossopt.instances.errors import RefusedError
from crossopt.instances.traces.whatif import WhatIfQuestion
from crossopt.solvers.answer import Baseline, Limits, Progress, SearchOutcome, Watch
from crossopt.solvers.proofs import Chosen, RecomputableBound
from crossopt.solvers.traces.whatif.family import BASELINES, Changes, reasons_of
from crossopt.solvers.traces.whatif.search import Search, exchanged, filled, gains_of, in_turn, leaner, share_of

# Rules to compare with: what people do who know what each change saves alone.

_MOST_SUMMED = 20_000
"""Choices of which gains are added up."""


def baselines_of(model: Model, names: Sequence[str], gains: Sequence[int], seed: int, deadline: float) -> tuple[Baseline[Changes], ...]:
    """The best change alone, the most gain for its cost first, by gains alone or measured anew after each, the greatest sum of gains,
    whatever fits in the question's order, and exchanges from all of these."""
    root, every = settled(model.rules, 0, 0), range(len(names))
    if root is None:
        return ()
    alone = [change for change in every if keeps(model.rules, 1 << change)]
    rows = [
        1 << max(alone, key=gains.__getitem__) if alone else None,
        greedy(model, gains),
        measured(model),
        _summed(model, gains),
        list(filled(model, root, every))[-1],
    ]
    rows.append(exchanged(model, [*rows], seed, deadline))
    return tuple(
        Baseline(name, None, None if inside is None else made(names, inside), "none" if inside is None else "")
        for name, inside in zip(BASELINES, rows, strict=True)
    )


def greedy(model: Model, gains: Sequence[int]) -> int | None:
    """By gain for cost, where a cost is asked about no further than the target asks. What saves nothing beside the others is dropped, and
    its room filled, until nothing is."""
    dropped, choice = 0, settled(model.rules, 0, 0)
    while choice is not None:
        found = list(filled(model, choice, in_turn(model, gains)))
        full = found[-1]
        if model.price is not None:
            spans = model.known_spans([(inside, model.rules.all & ~inside) for inside in found])
            full = next((inside for inside, span in zip(found, spans, strict=True) if span <= model.target), full)
        lean = leaner(model, full)
        if lean == full or model.price is not None:
            return lean
        dropped |= full & ~lean
        choice = settled(model.rules, lean, dropped)
    return None


def measured(model: Model) -> int | None:
    """The most gain for its cost first, each measured with what is chosen already, until nothing gains or the target is met; what saves
    nothing any more is dropped before the next."""
    if settled(model.rules, 0, 0) is None:
        return None
    inside, [span] = 0, model.known_spans([(0, model.rules.all)])
    while model.price is None or span > model.target:
        settled_ones = [settled(model.rules, inside | 1 << change, 0) for change in set_bits(model.rules.all & ~inside)]
        larger = list(dict.fromkeys(grown[0] for grown in settled_ones if grown is not None and keeps(model.rules, grown[0])))
        spans = model.known_spans([(grown, model.rules.all & ~grown) for grown in larger])
        gained = [(span - then, grown) for grown, then in zip(larger, spans, strict=True) if then < span]
        if not gained:
            break
        _, larger_one = max(gained, key=lambda row: row[0] / sum(share_of(model, change) for change in set_bits(row[1] & ~inside)))
        inside = leaner(model, larger_one)
        [span] = model.known_spans([(inside, model.rules.all & ~inside)])
    return inside


def made(names: Sequence[str], inside: int) -> Changes:
    """Changes by their names."""
    return Changes(tuple(names[change] for change in set_bits(inside)))


def _summed(model: Model, gains: Sequence[int]) -> int | None:
    """The set whose single gains add up to most; None where these are too many to look through."""
    order = sorted(range(len(gains)), key=lambda change: -gains[change])
    rest = [*accumulate((max(gains[change], 0) for change in reversed(order)), initial=0)][::-1]
    waiting: list[tuple[int, Choice | None]] = [(0, settled(model.rules, 0, 0))]
    best, most, examined = None, -1, 0
    while waiting:
        depth, choice = waiting.pop()
        examined += 1
        if choice is None:
            continue
        total = sum(gains[change] for change in set_bits(choice[0]))
        if total + rest[depth] <= most:
            continue
        if examined > _MOST_SUMMED:
            return None
        if depth == len(order):
            best, most = choice[0], total
        elif (choice[0] | choice[1]) >> order[depth] & 1:
            waiting.append((depth + 1, choice))
        else:
            waiting += [(depth + 1, part) for part in reversed(cut(model.rules, choice, order[depth]))]
    return best


# Engines: branch and bound, enumeration, greedy rules by gain per cost, and exchanges.


def branches(question: WhatIfQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Changes]:
    """The optimum with the tree that proves it."""
    if not limits.seconds:
        return SearchOutcome(None, engine="branches", stopped="time limit")
    began = monotonic()
    deadline, model = began + limits.seconds, model_of(question)
    gains = gains_of(model)
    search = Search(model, gains, in_turn(model, gains))

    def tell(now: Search) -> None:
        best, message = now.best, f"{len(now.choices):,} choices"
        value = None if best is None else model.value(now.value)
        watch(Progress(message, value, model.value(now.bound), lambda: None if best is None else made(question.names, best)))

    ended = search.run(deadline, tell)
    answer = None if search.best is None else leaner(model, search.best)
    proof = Chosen(f"a tree of {len(search.choices):,} choices", packed(list(search.steps())))
    known = monotonic() - began
    return SearchOutcome(
        None if answer is None else made(question.names, answer),
        model.value(search.bound),
        proof,
        "branches",
        "complete" if ended else "time limit",
        () if answer is not None or not ended else reasons_of(question, model),
        baselines=baselines_of(model, question.names, gains, limits.seed, deadline),
        seconds=known,
    )


def enumerate_all(question: WhatIfQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Changes]:
    """Every choice that keeps the rules."""
    if not limits.seconds:
        return SearchOutcome(None, engine="enumerate", stopped="time limit")
    del watch
    model = model_of(question)
    try:
        choices = all_choices(model.rules)
    except ValueError as error:
        raise RefusedError(f"{error} (`branches` answers)") from error
    values = model.bounds(choices)
    least = min(values, default=inf)
    answer = None if least == inf else made(question.names, leaner(model, choices[values.index(least)][0]))
    proof = RecomputableBound(f"{len(choices):,} choices looked at")
    return SearchOutcome(answer, model.value(least), proof, "enumerate", reasons=() if answer else reasons_of(question, model))


def by_gain(question: WhatIfQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Changes]:
    """The most gain for its cost first; no proof."""
    del limits, watch
    model = model_of(question)
    return _ruled(question, model, greedy(model, gains_of(model)), "greedy")


def by_measure(question: WhatIfQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Changes]:
    """Greedy by gain per cost, measured again after each change; no proof."""
    del limits, watch
    model = model_of(question)
    return _ruled(question, model, measured(model), "measured")


def by_exchange(question: WhatIfQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Changes]:
    """Exchanges from both rules and from drawn choices; no proof."""
    if not limits.seconds:
        return SearchOutcome(None, engine="exchange", stopped="time limit")
    del watch
    deadline, model = monotonic() + limits.seconds, model_of(question)
    inside = exchanged(model, [greedy(model, gains_of(model)), measured(model)], limits.seed, deadline)
    return replace(_ruled(question, model, inside, "exchange"), stopped="time limit" if monotonic() > deadline else "complete")


def _ruled(question: WhatIfQuestion, model: Model, inside: int | None, engine: str) -> SearchOutcome[Changes]:
    late = inside is None or model.bounds([(inside, model.rules.all & ~inside)]) == [inf]
    return SearchOutcome(None if late or inside is None else made(question.names, inside), engine=engine)
