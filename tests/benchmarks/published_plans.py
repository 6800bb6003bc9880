"""Public training plans beside what the model says of them, and beside the proven optimum of what their stack launches.

    python -m tests.benchmarks.published_plans            # make published-plans

Each run of `published/runs.yaml` is priced as it was launched; then the question of all plans that its stack launches on the same devices
with the same batch is solved with proof, and so is the question that opens one setting alone, for each setting. What was found is kept in
`published/found.json` with a digest of the code that decides it: where the cost model, the questions or the registry changed all is found
anew, in some nine minutes on two busy cores, else what is missing, in seconds. The page is `reports/gallery/published-plans.md`.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from hashlib import sha256
from typing import Any, Final

from crossopt.crossflow.plan import PLAN_FIELDS, Plan
from crossopt.instances.codesign.stack_rules import STACKS, broken_rows
from crossopt.instances.errors import InstanceError
from crossopt.reports.api import read
from crossopt.reports.facts.question import evaluation_json
from crossopt.solvers.answer import Limits, to_text, unwatched
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.codesign.judge import evaluate_single
from crossopt.solvers.family import solve
from tests.benchmarks.published_runs import FOLDER, Run, constants, launched, model, narrowed, opened, runs, seconds
from tests.paths import ROOT

FOUND: Final = FOLDER / "found.json"
LIMIT: Final = 300.0
_TOGETHER: Final[Mapping[str, tuple[str, ...]]] = {
    "degrees": ("tensor", "context", "pipeline", "expert"),
    "degrees and chunks": ("tensor", "context", "pipeline", "expert", "interleave"),
    "microbatch": ("microbatch",),
    "chunks": ("interleave",),
    "recomputation": ("recompute",),
    "sharing": ("zero",),
    "overlap": ("overlap",),
    "recomputation and microbatch": ("recompute", "microbatch"),
    "sequence parallel": ("sequence_parallel",),
}
_NEVER: Final = ("data", "offload", *(name for names in _TOGETHER.values() for name in names))
"""Replicas follow from the other degrees, no run tells of its host's memory, and the others stand above."""
ALONE: Final = {**_TOGETHER, **{name.replace("_", " "): (name,) for name in PLAN_FIELDS if name not in _NEVER}}
"""Settings that are opened alone, the others as launched."""


@dataclass(frozen=True, slots=True)
class Price:
    """What the full model says of one plan."""

    plan: Mapping[str, Any]
    seconds: float
    feasible: bool
    memory: float
    """Bytes that are needed over those that there are."""
    terms: Mapping[str, float]
    """Seconds of the step by use."""
    held: Mapping[str, float]
    """Bytes of the fullest device by use."""
    likely: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a question, as it is kept: a plan, its step time and bound; no plan where nothing keeps every limit."""

    plan: Mapping[str, Any] | None
    seconds: float | None
    bound: float | None
    proved: bool
    designs: int


Answering = Callable[[Run, Mapping[str, Any]], Found]
"""The answer to a question about a run."""


@dataclass(frozen=True, slots=True)
class Case:
    """A run with everything that the page says of it."""

    run: Run
    measured: float
    price: Price
    refused: tuple[str, ...]
    """Rules of the stack that the launched plan breaks."""
    best: Found
    best_price: Price | None
    alone: Mapping[str, Found]

    @property
    def error(self) -> float:
        return self.price.seconds / self.measured - 1.0

    @property
    def gain(self) -> float | None:
        """How much faster the optimum is than the launched plan, as the model prices both: ratio of their speeds, less 1."""
        return None if self.best.seconds is None else self.price.seconds / self.best.seconds - 1.0


def priced(run: Run, question: Mapping[str, Any]) -> Price:
    """The one plan that a question leaves, its weights published and its messages sent as the stack of the run did it."""
    instance, table = read(question), STACKS[run.stack]
    workload = replace(instance.workload, hides_publication=table.hides_publication, whole_messages=table.whole_messages and not run.parts)
    workload = replace(workload, stops_early=table.stops_early, apart=table.apart)
    single = evaluate_single(replace(instance, workload=workload))
    answer = evaluation_json(instance, single.design, single.evaluation)
    told = answer["evaluation"]
    memory = next(limit for limit in told["limits"] if limit["name"] == "memory")
    likely = told["likely_by_constants"]  # the other one has these very runs in it
    return Price(
        plan=answer["design"]["plan"],
        seconds=told["step_time"],
        feasible=told["feasible"],
        memory=memory["used"] / memory["available"],
        terms=told["breakdown"],
        held=told["memory"],
        likely=None if likely is None else (likely[0], likely[1]),
    )


def with_plan(run: Run, plan: Mapping[str, Any]) -> dict[str, Any]:
    """The question that leaves this plan."""
    return {**run.base, **constants(run), "choices": {name: value for name, value in plan.items() if name != "data"}}


def refused(run: Run) -> tuple[str, ...]:
    """Rules of the stack that the launched plan breaks."""
    plan = Plan(**{**run.plan, "data": data_of(run)})
    return tuple(row.sentence for row in broken_rows(STACKS[run.stack], model(run), plan, read(launched(run)).machine))


def data_of(run: Run) -> int:
    """Replicas that the other degrees leave."""
    return int(run.devices // (run.plan["tensor"] * run.plan["context"] * run.plan["pipeline"]))


def case(run: Run, answer: Answering) -> Case:
    """Everything about one run."""
    price, own = priced(run, launched(run)), refused(run)
    best = answer(run, opened(run))
    alone = {name: answer(run, narrowed(run, names)) for name, names in ALONE.items() if not own}
    best_price = None if best.plan is None else priced(run, with_plan(run, best.plan))
    return Case(run, seconds(run), price, own, best, best_price, alone)


def key_of(question: Mapping[str, Any]) -> str:
    """Under what the answer to a question is kept: kernels of a device price serving alone, and sources nothing."""
    device = question.get("hardware")
    own = {**question, "hardware": {**device, "kernels": {}, "sources": {}}} if isinstance(device, dict) else question
    return sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:16]


def kept(run: Run, question: Mapping[str, Any]) -> Found:
    """The answer that is kept; a KeyError where there is none."""
    return Found(**_read()["answers"][key_of(question)])


@cache
def _read() -> dict[str, Any]:
    """What was found before, and by which code."""
    return dict(json.loads(FOUND.read_text(encoding="utf-8"))) if FOUND.exists() else {"code": "", "answers": {}}


def code() -> str:
    """A digest of all that decides answers: the cost model, the questions, and the registry."""
    files = [
        *(ROOT / "crossflow").rglob("*.py"),
        *(ROOT / "instances/codesign").rglob("*.py"),
        *(ROOT / "instances/registry").rglob("*.yaml"),
    ]
    return sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()[:16]


def solved(run: Run, question: Mapping[str, Any]) -> Found:
    instance = read(question)
    workload = replace(instance.workload, whole_messages=instance.workload.whole_messages and not run.parts)
    try:
        result = solve(FAMILY, replace(instance, workload=workload), "auto", Limits(LIMIT), unwatched)
    except InstanceError:
        return Found(None, None, None, proved=True, designs=0)  # no combination is a plan
    answer = json.loads(to_text(result))
    plan = None if answer["answer"] is None else answer["answer"]["designs"][0]["plan"]
    proof = answer["proof"] or {}
    counted = proof.get("space") or proof.get("tree") or {}
    return Found(plan, result.value, result.bound, result.proved, int(counted.get("designs", 0)))


def _finding(answers: dict[str, Any]) -> Answering:
    """Takes answers that are there, and finds and keeps the others."""

    def answer(run: Run, question: Mapping[str, Any]) -> Found:
        key = key_of(question)
        if key not in answers:
            begun = time.monotonic()
            found = solved(run, question)
            print(f"  {run.title}: {found.designs:,} designs, {time.monotonic() - begun:.1f} s", file=sys.stderr)
            answers[key] = asdict(found)
        return Found(**answers[key])

    return answer


def main() -> None:
    """Find what is not found yet by the code as it is, and draw the page."""
    from tests.benchmarks.published_page import write

    before, now, asked = _read(), code(), dict[str, Any]()
    answers = before["answers"] if before["code"] == now else {}
    finding, cases = _finding(answers), list[Case]()

    def answer(run: Run, question: Mapping[str, Any]) -> Found:
        asked[key_of(question)] = asdict(finding(run, question))
        return Found(**asked[key_of(question)])

    for run in runs():
        cases.append(case(run, answer))
        _keep({"code": now, "answers": answers})
    _keep({"code": now, "answers": asked})
    write(cases)


def _keep(found: Mapping[str, Any]) -> None:
    """A line for each answer, so that what changed is seen."""
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(answer)}" for key, answer in sorted(found["answers"].items()))
    FOUND.write_text(f'{{"code": {json.dumps(found["code"])}, "answers": {{\n{lines}\n}}}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
