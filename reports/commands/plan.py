"""The command `plan`: a training run in one line, answered in a dozen; the question that it writes can be kept."""

import json
import sys
from argparse import Namespace
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, gcd, inf, isfinite, log2
from pathlib import Path
from time import monotonic
from typing import Literal, TypeVar

from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.entries import USUAL
from crossopt.instances.catalogue.known_runs import MEASURED
from crossopt.instances.catalogue.registry import device
from crossopt.instances.catalogue.registry import model as registered
from crossopt.instances.catalogue.registry import names as registered_names
from crossopt.instances.codesign import short
from crossopt.instances.codesign.instance import Goal, Instance
from crossopt.instances.errors import InstanceError
from crossopt.instances.files.saved import write_atomically
from crossopt.instances.files.units import parse_quantity
from crossopt.instances.question import read_given
from crossopt.reports.commands.console import ANSWERED, INFEASIBLE, NO_DESIGN, check_target, saved_question, seconds_of, usage
from crossopt.reports.commands.progress import progress_on
from crossopt.reports.render.terminal import brief
from crossopt.reports.render.width import fitted
from crossopt.reports.sheets.amounts import days_between, days_of, listed, several, time_of
from crossopt.reports.sheets.codesign.caveats import Context, caveats_of
from crossopt.reports.sheets.codesign.caveats import context_of as context_in
from crossopt.reports.sheets.codesign.design import brief_of, lead_text
from crossopt.reports.sheets.codesign.explain import member_text, terms_of
from crossopt.reports.sheets.codesign.several import TIED, days_columns, money_columns, origin_of, ties
from crossopt.reports.sheets.sheet import Section, Table, figures, names
from crossopt.solvers.answer import Limits, Watch, plain_result, to_text, unwatched
from crossopt.solvers.checking import solve_and_verify
from crossopt.solvers.codesign.answer import DesignResult
from crossopt.solvers.codesign.explain.conflict import UndecidedError, clash
from crossopt.solvers.family import family_of
from crossopt.solvers.proofs import Conflict

_USUAL_LIMIT = 60.0
"""Seconds for each number of devices."""
_OPTIONS = {
    "workload.config": "MODEL",
    "workload.sequence": "--context",
    "workload.global_batch": "--batch",
    "workload.precision": "--precision",
    "stack.name": "--stack",
    "stack": "--stack",
    "goal.deadline": "--deadline",
    "goal.target": "--deadline",
    "goal.rent": "--rent",
    "goal.tokens": "--tokens",
}
"""Options by the keys of the question that they write."""
_LEAST_TOKENS = 1e4
_DOUBLINGS, _MOST = 7, 2**17
"""How often a number of devices that is too small is doubled, and up to how many."""
_FEW_TOKENS, _MANY_TOKENS, _FAR = short.USUAL_BATCH // 16, short.USUAL_BATCH * 16, 4
"""Tokens of a step below and above which a batch is unusual, and times its usual sequence that a model has to be stretched for."""
_SOONER, _LITTLE = 0.9, 1.05
"""Times the days and the money of the cheapest run: others within both are shown, too."""
_NEXT_BEST = 4
"""Numbers of devices of one kind that a saved result names beside its own."""
_NO_DEADLINE = "none is named (--deadline 60d): the fewest devices that hold a plan"
_NEIGHBOURS = 2
"""Smaller numbers of devices that are tried below one that misses the deadline, as a number may share the work worse than a smaller one;
and larger ones that may keep it over their likely range."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A number of devices with what it can do."""

    run: short.Run
    group: short.Group
    question: Instance
    result: DesignResult

    @property
    def goal(self) -> Goal | None:
        return self.question.goal

    @property
    def seconds(self) -> float:
        """Of the run where there is one, else of a step; infinite where there is no plan."""
        step = self.result.value
        if step is None:
            return inf
        return self.goal.seconds(float(step)) if self.goal else float(step)

    @property
    def money(self) -> float:
        step = self.result.value
        return (self.goal.money(float(step)) or inf) if step is not None and self.goal else inf

    @property
    def in_time(self) -> bool:
        return self.result.value is not None and (self.goal is None or self.seconds <= self.goal.wanted)

    @property
    def punctual(self) -> Literal["yes", "likely", "unlikely", "no"]:
        """Whether the deadline is kept: by the model, and by both ends of the likely range."""
        if self.goal is None or self.result.details is None:
            return "yes" if self.in_time else "no"
        low, high = (self.goal.seconds(step) for step in self.result.details.evaluation.likely)
        if self.in_time:
            return "yes" if high <= self.goal.wanted else "likely"
        return "unlikely" if 0.0 < low <= self.goal.wanted else "no"


def plan(options: Namespace) -> int:
    """Answer, print and write; the exit code says whether a plan keeps the deadline."""
    for option, path in (("--save", options.save), ("--out", options.out)):
        check_target(path, option)
    try:
        with progress_on(sys.stderr, "s") as watch:
            best, text, tried = best_plan(options, watch)
    except ValueError as error:
        usage(str(error))
    except InstanceError as error:
        usage(faults_by_option(error))
    if options.save is not None:
        write_atomically(options.save, saved_question(options.command, short.question_text(best.run, best.group, options.save.parent)))
    if options.out is not None:
        others = [_compared(trial) for trial in _alternatives(best, tried, options)]
        noted = [f"compared by `plan`: {'; '.join(others)}"] if others else []
        noted += [f"too close to call: {tied}: {TIED}"] if (tied := _tied(best, tried, paid=options.mode == "cheapest")) else []
        write_atomically(options.out, to_text(replace(best.result, notes=(*best.result.notes, *noted))))
    sys.stdout.write(_as_json(best, tried) if options.json else fitted(text))
    if best.result.value is None:
        return INFEASIBLE if best.result.proved else NO_DESIGN
    return ANSWERED if best.in_time else INFEASIBLE


def _as_json(best: Tried, tried: Sequence[Tried]) -> str:
    """All devices that were tried, the best first, with figures as figures, and the result as `--out` writes it."""
    rows = [_figures_of(trial) for trial in (best, *(trial for trial in tried if trial is not best))]
    document = {
        "verdict": _verdict(best),
        "compared": rows,
        "caveats": [
            *_unusual(best),
            *beyond_runs(best),
            *_few_samples(best),
            *(note.text for context in [context_in(best.question, best.result)] if context for note in caveats_of(context)),
        ],
        "result": plain_result(best.result),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _figures_of(trial: Tried) -> dict[str, object]:
    """What a number of devices comes to; null where there is no plan, or nothing to compare with."""
    details = trial.result.details
    evaluation = None if details is None else details.evaluation
    plan = None if trial.result.answer is None else trial.result.answer.design.plan_label
    goal, likely = trial.goal, evaluation.likely if evaluation is not None and evaluation.likely[0] < evaluation.likely[1] else None
    return {
        "devices": trial.group.count,
        "device": trial.group.device,
        "global_batch": getattr(trial.question.workload, "global_batch", None),
        "plan": plan,
        "step_seconds": trial.result.value,
        "tokens_per_second": None if evaluation is None else evaluation.tokens_per_second,
        "mfu": None if evaluation is None else evaluation.utilisation,
        "run_seconds": trial.seconds if trial.goal is not None and isfinite(trial.seconds) else None,
        "run_seconds_likely": None if goal is None or likely is None else [goal.seconds(step) for step in likely],
        "run_usd": trial.money if isfinite(trial.money) else None,
        "run_usd_likely": None if goal is None or likely is None or not isfinite(trial.money) else [goal.money(step) for step in likely],
        "constants": origin_of(trial.question),
        "deadline_seconds": trial.goal.wanted if trial.goal is not None and isfinite(trial.goal.wanted) else None,
        "in_time": trial.in_time,
        "punctual": trial.punctual,
        "proved": trial.result.proved,
    }


def _alternatives(best: Tried, tried: Sequence[Tried], options: Namespace) -> list[Tried]:
    """The best of each other kind of devices; of one kind alone the next best numbers."""
    others = sorted((trial for trial in tried if trial is not best), key=lambda trial: _rank(trial, options))
    kinds = dict.fromkeys(trial.group.device for trial in others if trial.group.device != best.group.device)
    return [next(trial for trial in others if trial.group.device == kind) for kind in kinds] or others[:_NEXT_BEST]


def _compared(trial: Tried) -> str:
    """Devices that were tried beside the best ones, with what they come to."""
    devices = f"{trial.group.count:,} {trial.group.device}"
    if trial.result.value is None:
        return f"no plan {'fits' if trial.result.proved else 'was found'} on {devices}"
    money = f", {trial.money:,.0f} USD" if isfinite(trial.money) else ""
    goal, details = trial.goal, trial.result.details
    low, high = details.evaluation.likely if details else (0.0, 0.0)
    between = days_between(goal.seconds(low), goal.seconds(high)) if goal else f"{time_of(low)} to {time_of(high)}"
    likely = f", likely {between}" if low < high else ""
    took = time_of(trial.seconds) if goal is None else f"{days_of(trial.seconds)}{'' if trial.in_time else ', late'}"
    return f"{devices} {took}{likely}{money}"


def faults_by_option(error: InstanceError) -> str:
    """Faults of the question that the options write, by their options."""
    messages = [(_OPTIONS.get(fault.path), fault) for fault in error.faults]
    return "; ".join(
        f"{option}: {fault.message.replace('remove the key', 'leave it out')}" if option else f"{fault.path}: {fault.message}"
        for option, fault in messages
    )


def best_plan(options: Namespace, watch: Watch, following: str = "") -> tuple[Tried, str, Sequence[Tried]]:
    """The best of what is tried, with the verdict, and all of them; a ValueError in a sentence where the options make no sense."""
    run, groups = _run_of(options), short.groups_in(options.gpus)
    rents = _rents(options, groups)
    for group in groups:
        short.question_text(run, group)
    limits = Limits(seconds_of(options.time_limit) if options.time_limit else _USUAL_LIMIT)

    def solved(group: short.Group) -> Tried:
        return _solved(replace(run, rent=rents.get(group.device)), group, limits, watch)

    found = [_tried(group, options.mode, solved) for group in groups]
    tried = [trial for of_group in found for trial in of_group]
    best = min(tried, key=lambda trial: _rank(trial, options))
    if best.result.value is None and best.result.proved and options.mode != "fewest":
        tried += _doubled(best, lambda trial: trial.result.value is not None, solved)
    return best, _verdict_text(best, tried, options, following), tried


def _doubled(first: Tried, enough: Callable[[Tried], bool], solved: Callable[[short.Group], Tried]) -> list[Tried]:
    """More and more devices, each time twice as many, until there are enough of them; none of a number that is no question.

    Where the first are late, those are left out that would be late at the same speed of each."""
    late = first.seconds / first.goal.wanted if first.goal and isfinite(first.seconds) else 1.0
    found, count = list[Tried](), first.group.count * 2 ** max(ceil(log2(late)) - 1, 0)
    while len(found) < _DOUBLINGS and 2 * count <= _MOST and not (found and enough(found[-1])):
        count *= 2
        try:
            found.append(solved(replace(first.group, count=count)))
        except InstanceError:
            break
    return found


def _run_of(options: Namespace) -> short.Run:
    """What the command line says of the run; a ValueError in a sentence."""
    tokens = _read("--tokens", short.count_of, options.tokens)
    context = _read("--context", lambda text: max(round(short.count_of(text, 1024)), 1), options.context)
    deadline, rent = options.deadline, options.rent
    if deadline is not None and deadline.strip().isdecimal():
        raise ValueError(f"--deadline: {deadline} has no unit (write {deadline.strip()}d for days)")
    _read("--deadline", short.seconds_of_deadline, deadline)
    if tokens is None and (deadline or rent):
        raise ValueError(
            f"{'--deadline' if deadline else '--rent'}: the length of the run is needed with it (say for example --tokens 15T)"
        )
    if tokens is not None and tokens < _LEAST_TOKENS:
        said = options.tokens.strip()
        raise ValueError(f"--tokens: {said} is less than a step trains on (write for example {said}B or {said}T)")
    if options.mode == "cheapest" and tokens is None:
        raise ValueError("--cheapest: the length of the run is needed with it (say for example --tokens 15T)")
    run = short.Run(options.model, tokens, context, None, options.precision, options.stack, deadline)
    of_batch = short.context_of(run)
    return replace(run, batch=_read("--batch", lambda text: short.samples_in(text, of_batch), options.batch))


_T = TypeVar("_T")


def _read(option: str, reader: Callable[[str], _T], text: str | None) -> _T | None:
    """What an option says, with its name in front of what is wrong with it."""
    try:
        return None if text is None else reader(text)
    except ValueError as error:
        raise ValueError(f"{option}: {error}") from error


def _rents(options: Namespace, groups: Sequence[short.Group]) -> dict[str, str]:
    """Money for an hour of each kind of device that the command line gives it for: one figure for all, or `h100=2.5,b200=4`."""
    text, kinds = options.rent, list(dict.fromkeys(group.device for group in groups))
    rents: dict[str, str] = {}
    for part in [] if text is None else text.split(",") if "=" in text else [text]:
        name, equals, money = part.rpartition("=")
        named = [_read("--rent", short.device_named, name)] if equals else kinds
        if unknown := [kind for kind in named if kind not in kinds]:
            raise ValueError(f"--rent: {unknown[0]} is not among the devices of --gpus ({', '.join(kinds)})")
        money = money.strip().removeprefix("$")
        dollars = money if money[-1:].isalpha() else f"{money} USD"
        _read("--rent", lambda text: parse_quantity(text, "money"), dollars)
        rents |= {str(kind): dollars for kind in named}
    unpriced = [kind for kind in kinds if kind not in rents and device(kind).rent is None]
    if options.mode == "cheapest" and unpriced:
        raise ValueError(f"--cheapest: no list price of {unpriced[0]} is known (say for example --rent {unpriced[0]}=2.5)")
    return rents


def _tried(group: short.Group, mode: str, solved: Callable[[short.Group], Tried]) -> tuple[Tried, ...]:
    """The devices with what they can do; and fewer of them, where fewer may be better, or more, where the fewest in time are sought.

    The least money is often near the fewest devices that keep the deadline, as efficiency mostly falls with their number: these are
    sought beside the halves. A half that is late ends the halves.
    """
    found = {group.count: solved(group)}
    if mode == "fewest":
        if not found[group.count].in_time:
            found |= {trial.group.count: trial for trial in _doubled(found[group.count], lambda trial: trial.in_time, solved)}
        return _fewest(group, found, solved)
    if mode == "cheapest":
        count, node = group.count, device(group.device).devices_per_node
        while found[count].in_time and count % (2 * node) == 0:  # half of them are whole nodes
            count //= 2
            found[count] = solved(replace(group, count=count))
        first = found[group.count]
        if first.goal and isfinite(first.goal.wanted) and isfinite(first.seconds):
            found |= {} if first.in_time else {trial.group.count: trial for trial in _doubled(first, lambda trial: trial.in_time, solved)}
            return _fewest(group, found, solved)
    return tuple(found[count] for count in sorted(found, reverse=True))


def _fewest(group: short.Group, found: dict[int, Tried], solved: Callable[[short.Group], Tried]) -> tuple[Tried, ...]:
    """What is found, and fewer devices: between the most that are known to be late and the fewest that are in time.

    Every other number is where speed in proportion to the devices would put the deadline, the others are in the middle. More devices are
    seldom slower, but may be where they share batch and layers worse, so that some numbers below one that is late are tried as well.
    """
    most = max(found)
    if not found[most].in_time:
        return tuple(found[count] for count in sorted(found, reverse=True))
    counts = _usable(found[most])
    late = max((index for index, count in enumerate(counts) if count in found and not found[count].in_time), default=-1)
    early = min((index for index, count in enumerate(counts) if count in found and found[count].in_time), default=len(counts) - 1)
    by_speed = True
    while early - late > 1:
        best = found[counts[early]]
        wanted = best.group.count * best.seconds / best.goal.wanted if best.goal and by_speed else 0.0
        middle = min(max(bisect_left(counts, wanted), late + 1), early - 1) if wanted else (late + early) // 2
        by_speed = not by_speed
        found[counts[middle]] = trial = solved(replace(group, count=counts[middle]))
        late, early = (late, middle) if trial.in_time else (middle, early)
    for index in range(late - 1, max(late - 1 - _NEIGHBOURS, -1), -1):
        if counts[index] not in found:
            found[counts[index]] = solved(replace(group, count=counts[index]))
    for count in _surer(found[counts[early]], counts):
        found[count] = found.get(count) or solved(replace(group, count=count))
        if found[count].punctual == "yes":
            break
    return tuple(found[count] for count in sorted(found, reverse=True))


def _surer(fewest: Tried, counts: Sequence[int]) -> Sequence[int]:
    """Numbers from which on the likely range would keep the deadline at the same speed of each device; none where it does already."""
    if fewest.punctual != "likely" or fewest.goal is None or fewest.result.details is None:
        return ()
    first = bisect_left(counts, fewest.group.count * fewest.goal.seconds(fewest.result.details.evaluation.likely[1]) / fewest.goal.wanted)
    return counts[first : first + _NEIGHBOURS]


def _usable(largest: Tried) -> list[int]:
    """Numbers of devices up to these, ascending: whole nodes and divisors of a node; with a batch that is given only those of which what
    replicas cannot share of it may be left to tensor, context and pipeline parallelism."""
    count, node, model = largest.group.count, device(largest.group.device).devices_per_node, largest.question.workload
    counts = [part for part in range(1, min(node, count)) if node % part == 0]
    counts += [*range(node, count, node), count]
    if largest.run.batch is None or not isinstance(model, Transformer):
        return counts
    shared = model.heads * model.layers * model.sequence
    return [part for part in counts if part == count or shared % (part // gcd(part, largest.run.batch)) == 0]


def _solved(run: short.Run, group: short.Group, limits: Limits, watch: Watch) -> Tried:
    """The fastest plan, whatever the deadline, which is a target of the question and no limit."""
    question: Instance = read_given(short.question_text(run, group, limit=False), "codesign")
    return Tried(run, group, question, solve_and_verify(family_of("codesign"), question, "auto", limits, watch))


def _rank(trial: Tried, options: Namespace) -> tuple[float, ...]:
    """What is best: a plan in time before all others, then by what was asked."""
    first = {"fastest": trial.seconds, "cheapest": trial.money, "fewest": float(trial.group.count)}[options.mode]
    return (float(not trial.in_time), first if trial.in_time else trial.seconds, trial.seconds)


def _verdict_text(best: Tried, tried: Sequence[Tried], options: Namespace, following: str) -> str:
    """The verdict, the numbers of devices beside each other where there are several, and what to do next, where it is not given."""
    context = context_in(best.question, best.result)
    rows = brief_of(context, led=True)[:-1] if context else (*(("why", reason) for reason in _reasons(best)), *_fitting(best, tried))
    unusual, usual = _unusual(best), [row for row in rows if row[0] == "caveat"]
    rows = tuple(row for row in rows if row[0] != "caveat") + tuple(("caveat", caveat) for caveat in unusual)
    rows += tuple(usual[: max(len(usual) - len(unusual), 1)])
    rows += tuple(("caveat", caveat) for caveat in beyond_runs(best) or _few_samples(best))
    rows += (("deadline", _NO_DEADLINE),) if options.mode == "fewest" and options.deadline is None else ()
    sections = [Section("Devices compared", (_table(tried), _untried(tried, options.mode)))] if len(tried) > 1 else []
    saved = options.save or Path("run.yaml")
    if options.mode != "fewest" and (tied := _tied(best, tried, paid=options.mode == "cheapest")):
        rows += (("ties", f"{tied}: {TIED}"),)
    rows += _sooner(best, tried) if options.mode == "cheapest" else _punctual(best, tried) if options.mode == "fewest" else ()
    rows += (("next", following or _following(best, tried, options, saved)),)
    headline = f"{best.result.question['name']}   {_verdict(best)}"
    return brief(headline, rows, sections)


def _fitting(best: Tried, tried: Sequence[Tried]) -> tuple[tuple[str, str], ...]:
    """The fewest of the doubled devices that hold a plan, or that none does."""
    more = [trial for trial in tried if trial.group.device == best.group.device and trial.group.count > best.group.count]
    if not more:
        return ()
    if fits := min((trial for trial in more if trial.result.value is not None), key=lambda trial: trial.group.count, default=None):
        took = time_of(float(fits.result.value or 0.0))
        return (("fits", f"on {fits.group.count:,} {fits.group.device}, {took} a step; the numbers between were not tried"),)
    return (("fits", f"on no number up to {max(trial.group.count for trial in more):,}, each twice the one before"),)


def _tied(best: Tried, tried: Sequence[Tried], *, paid: bool) -> str:
    """Other devices that the model cannot tell from these by the money of the run, or else by its time; empty where there are none."""
    others = [trial for trial in tried if trial is not best and trial.in_time == best.in_time]
    found = [(trial, context) for trial in (best, *others) if (context := context_in(trial.question, trial.result)) is not None]

    def value_of(context: Context, step: float) -> float:
        goal = context.question.goal
        return step if goal is None else (goal.money(step) or inf) if paid else goal.seconds(step)

    tied = ties([context for _, context in found], value_of) if found else []
    return listed([f"{found[index][0].group.count:,} {found[index][0].group.device}" for index in tied])


def _sooner(best: Tried, tried: Sequence[Tried]) -> tuple[tuple[str, str], ...]:
    """The soonest of other devices that cost little more, where they are clearly sooner."""
    others = [trial for trial in tried if trial.in_time and trial.seconds < _SOONER * best.seconds and trial.money <= _LITTLE * best.money]
    if not others:
        return ()
    soonest = min(others, key=lambda trial: trial.seconds)
    surely = ", in time over the likely range" if soonest.punctual == "yes" != best.punctual else ""
    more = f"{soonest.money - best.money:,.0f} USD more"
    return (("sooner", f"{days_of(soonest.seconds)} on {soonest.group.count:,} {soonest.group.device} for {more}{surely}"),)


def _punctual(best: Tried, tried: Sequence[Tried]) -> tuple[tuple[str, str], ...]:
    """The fewest of the devices tried that keep the deadline over their likely range, where the fewest by the model may not."""
    sure = [trial for trial in tried if trial.punctual == "yes"]
    if best.punctual != "likely" or not sure:
        return ()
    fewest = min(sure, key=lambda trial: (trial.group.count, trial.money))
    money = f", {fewest.money:,.0f} USD" if isfinite(fewest.money) else ""
    where = f"{fewest.group.count:,} {fewest.group.device}: {days_of(fewest.seconds)}{money}"
    return (("surely", f"{where}; the fewest tried that are in time over the likely range"),)


def beyond_runs(best: Tried) -> list[str]:
    """That more devices are used than in any measured run of this stack on them."""
    stack = best.question.stack.name if best.question.stack else USUAL
    found, count = MEASURED.get((stack, best.group.device)), best.group.count
    if found is None or count <= found.devices:
        return []
    return [f"{count:,} devices: the largest measured run of {stack} on {best.group.device} has {found.devices:,}"]


def _few_samples(best: Tried) -> list[str]:
    """That a batch has fewer samples than there are devices: replicas alone cannot use them all."""
    model, count = best.question.workload, best.group.count
    if not isinstance(model, Transformer) or model.global_batch >= count:
        return []
    return [f"the batch of {several(model.global_batch, 'sample')} is smaller than the {count:,} devices"]


def _unusual(best: Tried) -> list[str]:
    """What a reader has to know of a batch or a context that few runs have."""
    model, found = best.question.workload, list[str]()
    if not isinstance(model, Transformer):
        return found
    tokens, usual = (
        model.global_batch * model.sequence,
        None if model.name not in registered_names("workloads") else registered(model.name).transformer,
    )
    if not _FEW_TOKENS <= tokens <= _MANY_TOKENS:
        found.append(
            f"a step has {tokens:,} tokens: runs of large models have about {short.USUAL_BATCH:,} (--batch {short.USUAL_BATCH // 2**20}M)"
        )
    if usual is not None and model.sequence > _FAR * usual.sequence:
        stretched = f"{model.sequence / usual.sequence:,.4g} times the {usual.sequence:,} of the model's pre-training"
        found.append(f"the context of {model.sequence:,} tokens is {stretched}: its positions must be scaled, and no such run was measured")
    return found


def _reasons(best: Tried) -> tuple[str, ...]:
    """Why there is no plan: rules that none keeps, or the limits and choices that clash."""
    rules = tuple(_conflict_text(conflict) for conflict in getattr(best.result.proof, "conflicts", ()))
    if rules or not best.result.proved:
        return rules
    try:
        members, terms = clash(best.question, unwatched, monotonic() + _USUAL_LIMIT) or (), terms_of(best.question)
        return tuple(member_text(member, terms, alone=len(members) == 1) for member in members)
    except UndecidedError:
        return ("which limits clash was not decided within a minute: `crossopt explain` takes longer",)


def _conflict_text(conflict: Conflict) -> str:
    least = conflict.least_share
    return conflict.limit if least is None else f"{conflict.limit}: every plan needs at least {least:.3g} times what there is"


def _verdict(best: Tried) -> str:
    """The answer in a sentence."""
    devices = f"{best.group.count:,} {best.group.device}"
    if best.result.details is None:
        return f"no plan fits on {devices}{', proved' if best.result.proved else f' within {best.result.seconds:.0f} s'}"
    return lead_text(best.goal, best.result.details.evaluation, best.group.count, best.group.device, best.result.settled)


def _untried(tried: Sequence[Tried], mode: str) -> str:
    """Which numbers of devices are in the table, and which are not."""
    batches = {getattr(trial.question.workload, "global_batch", 1) for trial in tried}
    own = " Each number has its own batch of about four million tokens, which its replicas share evenly; --batch gives all the same."
    proved = "All proved. " if all(trial.result.proved for trial in tried) else ""
    return f"{proved}{_searched(tried, mode)}{own if len(batches) > 1 else ''}".strip()


def _searched(tried: Sequence[Tried], mode: str) -> str:
    if mode == "fastest" and any(trial.result.value is None for trial in tried):
        return "Devices that are too few for any plan are doubled until one fits."
    if mode == "fastest":
        cheapest = min(tried, key=lambda trial: (not trial.in_time, trial.money))
        devices = f"{cheapest.group.count:,} {cheapest.group.device}"
        timed = any(trial.goal and isfinite(trial.goal.wanted) for trial in tried) and cheapest.in_time
        which = "The cheapest of these that keeps the deadline" if timed else "The cheapest of these"
        tied = _tied(cheapest, tried, paid=True) if isfinite(cheapest.money) else ""
        also = f"; {tied} may cost as little: {TIED}" if tied else ""
        return f"{which} is the run on {devices}, for {cheapest.money:,.0f} USD{also}." if isfinite(cheapest.money) else ""
    if mode == "cheapest":
        return (
            "All devices, half of them, and so on, and with a deadline the fewest that keep it, by bisection over whole nodes and divisors "
            "of a node. Other numbers were not tried (name them in --gpus)."
        )
    return (
        "Found by bisection over whole nodes and divisors of a node: only these numbers were solved, and another one below the answer "
        "may keep the deadline too."
    )


def _table(tried: Sequence[Tried]) -> Table:
    """What each number of devices comes to, as it was asked."""
    steps = ["-" if trial.result.value is None else time_of(float(trial.result.value)) for trial in tried]
    columns = [names("devices", [f"{trial.group.count:,} {trial.group.device}" for trial in tried])]
    batches = [getattr(trial.question.workload, "global_batch", 1) for trial in tried]
    columns += [figures("batch", [f"{batch:,}" for batch in batches])] if len(set(batches)) > 1 else []
    columns.append(figures("step time", steps))
    contexts, kinds = [context_in(trial.question, trial.result) for trial in tried], len({trial.group.device for trial in tried})
    columns += days_columns(contexts)
    if any(trial.goal and isfinite(trial.goal.wanted) for trial in tried):
        columns.append(names("in time", [trial.punctual for trial in tried]))
    columns += money_columns(contexts)[: 3 if kinds > 1 else 1]  # of one kind money has the range of the days
    columns.append(figures("MFU", ["-" if context is None else f"{context.evaluation.utilisation:.1%}" for context in contexts]))
    if kinds > 1:
        columns.append(names("constants", [origin_of(trial.question) for trial in tried]))
    if not all(trial.result.proved for trial in tried):
        columns.append(names("proof", ["proved" if trial.result.proved else "not proved" for trial in tried]))
    return Table(tuple(columns))


def _following(best: Tried, tried: Sequence[Tried], options: Namespace, saved: Path) -> str:
    """The commands that take it from here."""
    keep = "" if options.save else f"--save {saved}; "
    stack = best.question.stack.name if best.question.stack else "megatron"
    form = {"megatron-core": "megatron"}.get(str(stack), str(stack))
    if best.result.value is None:
        fits = next((trial for trial in tried if trial.result.value is not None), None)
        more = "more devices" if fits is None else f"--gpus {fits.group.name}"
        return f"{more}, or another precision or stack; {keep}`crossopt explain {saved}` says which limits clash"
    late = "" if best.in_time else " --set goal.deadline=null"
    fewest = "" if best.in_time or options.mode == "fewest" else "--fewest: how many devices keep the deadline; "
    return f"{fewest}{keep}`crossopt solve {saved}{late} --out run.json --verbose`; `crossopt export run.json --as {form}`"
