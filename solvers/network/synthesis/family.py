"""Sends over links as a problem type: answers, their judge chunk by chunk, and bounds recomputed from cuts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from math import inf

from crossopt.formulation.network import least_steps
from crossopt.instances.network.synthesis import SynthesisQuestion
from crossopt.solvers.answer import Baseline, Result, Verdict, Watch
from crossopt.solvers.family import ProblemType, Proved, baseline_names, lazy_import, rules_of
from crossopt.solvers.proofs import RecomputableBound, UnverifiedBound

# Sends over links, and their judge: every chunk step by step, who has it, and whether its link is free.

# Sends, and what the judge says of them.


@dataclass(frozen=True, slots=True)
class Sends:
    """Every send (chunk, link by its place, step at which it sets out), as asked: of a reduce-scatter over turned links and times."""

    sends: tuple[tuple[int, int, int], ...]


def in_order(sends: Sequence[tuple[int, int, int]]) -> Sends:
    """By their steps, and those of a step by their links."""
    return Sends(tuple(sorted(sends, key=lambda send: (send[2], send[1]))))


@dataclass(frozen=True, slots=True)
class Used:
    """How long each link works."""

    busy: tuple[int, ...]
    """Steps, by link."""
    received: tuple[int, ...]
    """The step at which each NPU has all."""


# The judge of sends: every chunk step by step, who has it, and whether its link is free.


def judge(question: SynthesisQuestion, answer: Sends) -> Verdict[Used]:
    """Steps until everybody has everything; a ValueError if the answer does not belong to the question."""
    has = dict.fromkeys(enumerate(question.origins), 0)
    free, busy = [0] * len(question.links), [0] * len(question.links)
    for chunk, number, step in answer.sends:
        if not (0 <= chunk < len(question.origins) and 0 <= number < len(question.links) and step >= 0):
            raise ValueError("a send names a chunk and a link of the question, and a step from 0")
    if list(answer.sends) != sorted(answer.sends, key=lambda send: (send[2], send[1])):
        raise ValueError("sends stand by their steps, and those of a step by their links")
    for chunk, number, step in answer.sends:
        link = question.links[number]
        if has.get((chunk, link.sender), step + 1) > step:
            raise ValueError(f"NPU {link.sender} sends chunk {chunk} at step {step} before receiving it")
        if (chunk, link.receiver) in has:
            raise ValueError(f"NPU {link.receiver} receives chunk {chunk} twice")
        if free[number] > step:
            raise ValueError(
                f"the link from {link.sender} to {link.receiver} holds a chunk until step {free[number]}, and is sent one at {step}"
            )
        free[number] = has[chunk, link.receiver] = step + link.steps
        busy[number] += link.steps
    if len(has) < len(question.origins) * question.npus:
        raise ValueError("every NPU needs every chunk")
    received = tuple(max(at for (_, receiver), at in has.items() if receiver == npu) for npu in range(question.npus))
    value, deadline = max(received), question.file.deadline
    late = deadline is not None and value > deadline
    violations = (f"it takes {value} steps, the deadline is {deadline}",) if late else ()
    return Verdict(value, violations, Used(tuple(busy), received))


# The problem type.

# Bounds recomputed from cuts around all sets of NPUs.


def reasons_of(question: SynthesisQuestion) -> tuple[str, ...]:
    """Why the deadline cannot be kept, by the bound of cuts."""
    return (f"deadline: links let nothing be done in less than {least_steps(question)} steps, as cuts around NPUs show",)


def prove(question: SynthesisQuestion, saved: Result[Sends, Used], _: Watch) -> Proved:
    """The bound of cuts, or the unverified source of a higher one."""
    if isinstance(saved.proof, UnverifiedBound):
        return Proved((f"the bound is reported by {saved.proof.by}, not proved again",), unverified=True)
    if not isinstance(saved.proof, RecomputableBound) or saved.proof.by != "cuts":
        return Proved((), ("proof: bounds on sends are shown by cuts",))
    shown, deadline = least_steps(question), question.file.deadline
    method = f"cuts around all {2**question.npus - 1} sets of NPUs were counted anew"
    if saved.bound is None:
        fault = f"bound: cuts show no more than {shown} steps, the result says that nothing is possible"
        return Proved((method,), () if deadline is not None and shown > deadline else (fault,))
    fault = f"bound: cuts show no more than {shown} steps, the result claims {saved.bound!r}"
    return Proved((method,), () if saved.bound <= shown and saved.bound < inf else (fault,))


# A ring to compare with, which a check carries out again.


def rules_of_synthesis(question: SynthesisQuestion) -> tuple[Baseline[Sends], ...]:
    """Along one ring."""
    return (Baseline("ring", None, ring(question)),)


def ring(question: SynthesisQuestion) -> Sends | None:
    """Everybody hands on along one ring through all NPUs; None where links make none. A broadcast goes along it as well."""
    way = next(_rings(question), None)
    if way is None:
        return None
    after = {question.links[number].sender: number for number in way}
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
    place_of = {(link.sender, link.receiver): number for number, link in enumerate(question.links)}
    for rest in permutations(range(1, question.npus)):
        order = (0, *rest, 0)
        pairs = list(pairwise(order))
        if all(pair in place_of for pair in pairs):
            yield tuple(place_of[pair] for pair in pairs)


# Sends over links as a family of questions: what is asked again, who answers, who judges, what proves.

_ENGINES = "crossopt.solvers.network.synthesis.engines"

FAMILY: ProblemType[SynthesisQuestion, Sends, Used] = ProblemType(
    kind="synthesis",
    what="schedule",
    unit="steps",
    answer=Sends,
    details=Used,
    engines={"auto": lazy_import(_ENGINES, "auto"), "tacos": lazy_import(_ENGINES, "tacos"), "ring": lazy_import(_ENGINES, "around")},
    judge=judge,
    judged="who has what, links, deadline",
    prove=prove,
    reasons=lambda question, _: reasons_of(question),
    rules=rules_of(rules_of_synthesis, "auto"),
    searched=lambda question: baseline_names("TACOS, best of 200", reason="", always=("auto",)),
    proof_labels=frozenset({"cuts"}),
    reporting=("auto",),
    seeded=frozenset({"auto", "tacos"}),
)
