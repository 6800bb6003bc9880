"""Proofs in whole numbers of what they cannot show: objectives other than a step time without a limit, and that there is no design.

A liar works with the tools of whoever looks for such a proof, past all that they refuse; the check alone stands in the way.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from math import inf
from random import Random
from typing import Any

from crossopt.crossflow.hardware import Hardware
from crossopt.formulation.certificate import packed
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_question, saved_single_scale
from crossopt.instances.codesign.space import hardware_points, plan_blocks
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.backends.whole import trace
from crossopt.solvers.codesign.answer import Candidate, answer_of, candidate, candidate_in
from crossopt.solvers.codesign.claims import exact
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.codesign.judge import judge, verify
from crossopt.solvers.codesign.linear.certify import certify_bound
from crossopt.solvers.codesign.linear.whole import HERE, MOST_ROWS, TANGENT, Rest, model_of, rest_of
from crossopt.solvers.family import solve
from crossopt.solvers.proofs import Exact, Relaxation, WholeProof
from tests.hunt.drawn import LOOSE, Drawn, TooLargeError, fewer
from tests.hunt.held import Data, FindingError, accepted, data_of
from tests.solvers.codesign.questions import random_question
from tests.solvers.codesign.several_questions import least_by_brute_force, random_several, values_by_brute_force

ASKED = Relaxation("highs 1.0", 1, 1, "strong", 1)
SECONDS = 20.0
"""In which a tree is looked for; without one there is no lie."""
OBJECTIVES = ("energy_per_token", "rated_energy_per_token", "cost_per_token", "power", "die_area")
SLOW = """\
kind: codesign
workload: {{model: gpt3-125m, global_batch: {batch}}}
cluster: {{devices: 4, devices_per_node: 1}}
technology: v100-class
budget: {{die_area: 2000 mm^2, power: 5000 W}}
choices:
  compute_area: {area} mm^2
  compute_power: [{least} W, 250 W]
  network_power: [{network} W, 100 W]
  hbm_stacks: 4
  tensor: [{tensor}]
"""
"""The slow chips take many times as long as twice the slowest plan on the best one."""


class _Unrefused(str):
    """An objective that nobody finds to be another."""

    __slots__ = ()

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = str.__hash__
    __eq__ = str.__eq__


class _Unlimited(float):
    """A limit that nobody finds to be one."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return False


def false_objectives(seed: int, random: Random) -> Counter[str]:
    """The best design is called worse than another, for figures or limits of which no tangent says anything."""
    if seed % 3 == 0:
        return _of_several(seed)
    base = random_question(seed)
    if isinstance(base.hardware, Hardware):  # of which nothing is chosen, so that nothing is linear
        raise TooLargeError
    base = fewer(read_question({**base.document, "settings": [*LOOSE]}), seed)
    limit = random.random() < 0.3
    more = f"objective={'step_time' if limit else random.choice(OBJECTIVES)}"
    question = read_question({**base.document, "settings": [*base.document["settings"], more]})
    values = sorted({value for row in values_by_brute_force(question) for value in row})
    if limit and values:
        within = f"budget.step_time={random.choice(values[len(values) // 2 :]) * 1e3!r} ms"
        question = read_question({**question.document, "settings": [*question.document["settings"], within]})
    if len(values) < 2:
        raise TooLargeError
    drawn, count = Drawn("codesign", question, values[0], ()), Counter[str]()
    disguised = replace(
        question, objective=_Unrefused(question.objective), budget=replace(question.budget, step_time=_Unlimited(question.budget.step_time))
    )
    plain = read_question({**base.document, "settings": [*base.document["settings"], "objective=step_time"]})
    for point, block, row in _designs(question):
        if (found := _judged(question, candidate(block, row, point))) is None or found[1] <= values[0]:
            continue
        for proof in _proofs(disguised, plain, candidate(block, row, point), found[1]):
            count += _offered(drawn, _claim(question, found[0], found[1], proof))
        if count["forged"] >= 6:
            break
    return count


def _of_several(seed: int) -> Counter[str]:
    """The same for the worst of several workloads, by a proof about one of them alone."""
    question = fewer(random_several(seed), seed)
    least, count = least_by_brute_force(question), Counter[str]()
    worse = solve(FAMILY, question, "expert", Limits(SECONDS), unwatched)
    if worse.answer is None or worse.value is None or worse.value <= least:
        raise TooLargeError
    for part in question.parts[:2]:
        alone = solve(FAMILY, part, "exhaustive", Limits(SECONDS), unwatched)
        best = candidate_in(part, alone.answer.design) if alone.answer else None
        for proof in _proofs(part, part, best, alone.value or worse.value):
            count += _offered(Drawn("codesign", question, least, ()), _claim(question, worse.answer, worse.value, proof))
    return count


def false_infeasible(seed: int, random: Random) -> Counter[str]:
    """It is said that there is no design where there are slow ones."""
    places = {"batch": random.choice((512, 2048, 8192)), "area": random.choice((200, 300, 400)), "least": random.choice((2, 4, 6, 8))}
    places |= {"network": random.choice((0.05, 0.1, 0.2)), "tensor": random.choice((2, 4, 4))}
    text = SLOW.format(**places)
    whole = saved_single_scale({"text": text, "source": f"slow{seed}.yaml", "settings": []})
    if not isinstance(whole, Instance):
        raise TypeError("there is one workload")
    powers = sorted({round(limit.used, 2) for limit in _limits(whole) if limit.name == "power"})
    found = next(_slow(whole, random.sample(powers, len(powers))), None)
    if found is None:
        raise TooLargeError
    question, least = found
    count, drawn = Counter[str](), Drawn("codesign", question, least, ())
    none = read_question({**whole.document, "settings": [f"budget.power={powers[0] - 0.5} W"]})
    proofs = [_tree_of_rows(question, (TANGENT,), random), _tree_of_rows(question, (TANGENT, HERE), random), _tree(none, None, inf)]
    for proof in proofs:
        count += _offered(drawn, _claim(question, None, None, proof)) if proof is not None else Counter()
    return count


def _slow(whole: Instance, powers: list[float]) -> Iterator[tuple[Instance, float]]:
    """The question under limits of power that leave only designs beyond what a model about the best chip reaches, with the least value."""
    for power in powers:
        question = read_question({**whole.document, "settings": [f"budget.power={power + 0.02} W"]})
        least, rest = min((value for row in values_by_brute_force(question) for value in row), default=inf), rest_of(question, inf)
        if rest is not None and 2.0 * float(rest.roots.max()) < least < inf:
            yield question, least


def _limits(question: Instance) -> Iterator[Any]:
    for point, block, row in _designs(question):
        try:
            yield from verify(question, candidate(block, row, point)).details.limits
        except ValueError:
            continue


def _designs(question: Instance) -> Iterator[tuple[int, Any, int]]:
    return (
        (point, block, row) for block in plan_blocks(question) for row in range(len(block)) for point in range(hardware_points(question))
    )


def _judged(question: Instance, chosen: Candidate) -> tuple[Any, float] | None:
    """A design in words and its value, where it is one that keeps the limits."""
    try:
        answer = answer_of(question, chosen)
        verdict = judge(question, answer)
    except ValueError:
        return None
    return None if verdict.violations else (answer, float(verdict.value))


def _proofs(disguised: Instance, plain: Instance, best: Candidate | None, bound: float) -> Iterator[Exact]:
    """Trees that were made past all that refuses them: for this bound, for the step time alone, and none at all."""
    for question, least in ((disguised, bound), (plain, bound)):
        proof = _tree(question, best, least)
        if proof is not None:
            yield proof
    yield exact(ASKED, WholeProof((), (), 1, ()))


def _tree(question: Instance, best: Candidate | None, bound: float) -> Exact | None:
    """A proof where the tools find one."""
    try:
        found = certify_bound(question, best, bound if bound < inf else None, bound, SECONDS, unwatched)
    except Exception:  # noqa: BLE001 - what is no question of the tools may break them in any way
        return None
    return None if found is None else exact(ASKED, found)


def _tree_of_rows(question: Instance, kinds: tuple[int, ...], random: Random) -> Exact | None:
    """That the model with such rows has no solution below what it reaches, which slow designs are beyond."""
    rest = rest_of(question, inf)
    if rest is None:
        return None
    reached: Rest = replace(rest, bound=2.0 * float(rest.roots.max(initial=1.0)))
    points = list(product(*(range(len(part)) for part in rest.chip.parts)))
    rows = [(kind, plan, *point) for kind in kinds for plan in range(min(len(rest), 4)) for point in points]
    rows = random.sample(rows, min(len(rows), MOST_ROWS))
    found = trace(model_of(reached, rows).model(), None, SECONDS, 2_000)
    if not found.proved or found.bound is not None:
        return None
    return exact(ASKED, WholeProof((), tuple(rows), found.certificate.scale, packed(found.certificate)))


def _claim(question: Any, answer: Any, value: float | None, proof: Exact) -> Data:  # noqa: ANN401 - of one workload or several
    """A result that says this, with all that belongs to it."""
    true = solve(FAMILY, question, "exhaustive", Limits(SECONDS), unwatched)
    details = judge(question, answer).details if answer is not None else None
    claim = replace(true, engine="milp", answer=answer, details=details, value=value, bound=value, gap=None if value is None else 0.0)
    baselines = (
        true.baselines
        if value is None
        else tuple(baseline for baseline in true.baselines if baseline.value is None or baseline.value >= value)
    )
    claim = replace(
        claim, baselines=baselines if value is not None else (), proof=proof, trace=(), proved=True, stopped="complete", reasons=()
    )
    return data_of(replace(claim, status="OPTIMAL" if value is not None else "INFEASIBLE", parts=()))


def _offered(drawn: Drawn, forged: Data) -> Counter[str]:
    """A check that takes it is a finding."""
    report = accepted(FAMILY, drawn, forged)
    if report is not None and report.accepted:
        raise FindingError(
            f"a forged {forged['status']} with the bound {forged['bound']!r} is accepted, and {drawn.least!r} is reached", forged
        )
    steps = bool(forged["proof"]["whole"]["steps"]) if "whole" in forged["proof"] else False
    return Counter({"forged": 1, "with a tree": int(steps), "no result at all": int(report is None)})


LIES: dict[str, Callable[[int, Random], Counter[str]]] = {"false objectives": false_objectives, "false infeasible": false_infeasible}
