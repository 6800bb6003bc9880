"""Sends over links in whole steps: as a model with time laid out, and the bound of cuts.

    x_clt = 1         chunk c sets out over link l at step t, and arrives at t + w_l
    sum over links into v, t of x_clt = 1                      each NPU but its origin receives each chunk once
    x_clt <= sum of the x_ck u that arrive at its sender by t  nobody sends what it has not
    sum over c, t - w_l < u <= t of x_clu <= 1                 a link holds one chunk at a time

(Cai et al. 2021, "Synthesizing optimal collective algorithms", PPoPP; time laid out as in TACOS, Won et al. 2024, arXiv:2304.05301.)

The bound: let D_c be the least steps in which chunk c can come to any NPU of a set S that needs it. The chunks with D_c >= d enter S over
the links of the cut, link l not before d - w_l and each for w_l steps, so that until T no more of them are in than

    sum over l of floor((T - max(d - w_l, 0)) / w_l)

Call that B(T). A chunk that enters only once, over link l, has to go on to the farthest NPU of S, e_l steps away, so that no more than
A(T) = sum over l of floor((T - e_l - max(d - w_l, 0)) / w_l) chunks enter once; others enter twice and more. So n chunks need

    2 n - min(A(T), n)  <=  B(T)

The least T of that, over all S and d, is a bound; there are 2^9 sets at the most.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator

from crossopt.formulation.model import ExactlyOne, Linear, Model, Variable
from crossopt.instances.network.synthesis import Link, SynthesisQuestion

Send = tuple[int, int, int]
"""A chunk, a link by its place, and the step at which it sets out."""


def least_steps(question: SynthesisQuestion) -> int:
    """What the cut around some set of NPUs asks at the least."""
    return max(_cut_steps(question, inside) for inside in _sets(question.npus))


def _sets(npus: int) -> Iterator[frozenset[int]]:
    for number in range(1, 2**npus):
        yield frozenset(npu for npu in range(npus) if number >> npu & 1)


def _cut_steps(question: SynthesisQuestion, inside: frozenset[int]) -> int:
    """Steps until everybody inside has all chunks that begin outside."""
    cut = [one for one in question.links if one.receiver in inside and one.sender not in inside]
    further = [max(question.distances[one.receiver][npu] for npu in inside) for one in cut]
    outside = [origin for origin in question.origins if origin not in inside]
    waiting = Counter(min(question.distances[origin][npu] for npu in inside) for origin in outside)
    least, later = 0, 0
    for first in sorted(waiting, reverse=True):
        later += waiting[first]
        while not _enter(cut, further, later, first, least):
            least += 1
    return least


def _enter(cut: list[Link], further: list[int], chunks: int, first: int, step: int) -> bool:
    """Whether so many chunks, none of which comes to the cut's end before the given step, may have come over it and gone further."""
    starts = [max(first - one.steps, 0) for one in cut]
    all_in = sum(max(step - start, 0) // one.steps for one, start in zip(cut, starts, strict=True))
    in_once = sum(max(step - start - more, 0) // one.steps for one, start, more in zip(cut, starts, further, strict=True))
    return 2 * chunks - min(in_once, chunks) <= all_in


def sends_model(question: SynthesisQuestion, most: int) -> tuple[Model, dict[Send, Variable]]:
    """The model whose solutions are all that is done within so many steps, and the sends that it may choose."""
    sends = dict(_sends(question, most))
    into, over = defaultdict[tuple[int, int], list[Send]](list), defaultdict[int, list[Send]](list)
    for send in sends:
        chunk, place, _ = send
        into[chunk, question.links[place].receiver].append(send)
        over[place].append(send)
    once = (
        ExactlyOne(f"chunk {chunk} comes to {npu}", tuple(sends[send] for send in into[chunk, npu]))
        for chunk, origin in enumerate(question.origins)
        for npu in range(question.npus)
        if npu != origin
    )
    had = (
        Linear(f"{sends[send].name} has it", _has(question, sends, into, send), 0)
        for send in sends
        if question.links[send[1]].sender != question.origins[send[0]]
    )
    alone = (
        Linear(f"link {place} at {step}", tuple((1, sends[send]) for send in held), None, 1)
        for place in over
        for step in range(most)
        if len(held := [send for send in over[place] if step - question.links[place].steps < send[2] <= step]) > 1
    )
    return Model(tuple(sends.values()), (*once, *had, *alone)), sends


def _sends(question: SynthesisQuestion, most: int) -> Iterator[tuple[Send, Variable]]:
    """Every send that can begin so soon and end in time."""
    for chunk, origin in enumerate(question.origins):
        for place, link in enumerate(question.links):
            if link.receiver != origin:
                for step in range(question.distances[origin][link.sender], most - link.steps + 1):
                    yield (chunk, place, step), Variable(f"chunk {chunk} over {place} at {step}")


def _has(
    question: SynthesisQuestion, sends: dict[Send, Variable], into: dict[tuple[int, int], list[Send]], send: Send
) -> tuple[tuple[int, Variable], ...]:
    """What came to the sender in time, less the send itself."""
    chunk, place, step = send
    came = into[chunk, question.links[place].sender]
    return (*((1, sends[one]) for one in came if one[2] + question.links[one[1]].steps <= step), (-1, sends[send]))
