"""Rules to compare with: links filled step by step as TACOS fills them, and a ring.

TACOS (Won et al. 2024, arXiv:2304.05301) goes through the free links of each step in random order, and gives each a chunk at random that
its sender has and its receiver still needs.
"""

from collections.abc import Iterator
from itertools import pairwise, permutations
from random import Random

from crossopt.instances.network.synthesis.question import SynthesisQuestion
from crossopt.solvers.network.synthesis.answer import Sends, in_order


def filled(question: SynthesisQuestion, random: Random) -> Sends:
    """Every link as soon as it is free and of use, by chance."""
    has = dict.fromkeys(enumerate(question.origins), 0)
    free, sends, step = [0] * len(question.links), list[tuple[int, int, int]](), 0
    places = list(range(len(question.links)))
    while len(has) < len(question.origins) * question.npus:
        random.shuffle(places)
        for place in places:
            link = question.links[place]
            useful = [
                chunk
                for chunk in range(len(question.origins))
                if has.get((chunk, link.sender), step + 1) <= step and (chunk, link.receiver) not in has
            ]
            if free[place] <= step and useful:
                chunk = random.choice(useful)
                free[place] = has[chunk, link.receiver] = step + link.steps
                sends.append((chunk, place, step))
        step += 1
    return in_order(sends)


def ring(question: SynthesisQuestion) -> Sends | None:
    """Everybody hands on along one ring through all NPUs; None where links make none. A broadcast goes along it as well."""
    way = next(_rings(question), None)
    if way is None:
        return None
    after = {question.links[place].sender: place for place in way}
    waits = dict.fromkeys(way, 0)
    sends = []
    coming = [(0, chunk, origin) for chunk, origin in enumerate(question.origins)]
    while coming:
        coming.sort()
        came, chunk, npu = coming.pop(0)
        link = question.links[after[npu]]
        if link.receiver == question.origins[chunk]:
            continue
        step = max(came, waits[after[npu]])
        waits[after[npu]] = step + link.steps
        sends.append((chunk, after[npu], step))
        coming.append((step + link.steps, chunk, link.receiver))
    return in_order(sends)


def _rings(question: SynthesisQuestion) -> Iterator[tuple[int, ...]]:
    """Links that go once through all NPUs and back, if need be after looking at 40,320 orders."""
    place_of = {(link.sender, link.receiver): place for place, link in enumerate(question.links)}
    for rest in permutations(range(1, question.npus)):
        order = (0, *rest, 0)
        pairs = list(pairwise(order))
        if all(pair in place_of for pair in pairs):
            yield tuple(place_of[pair] for pair in pairs)
