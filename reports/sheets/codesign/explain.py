"""Explanations for the terminal: what clashes, what binds, what more of a budget would buy, and what another choice would cost."""

from dataclasses import dataclass
from math import inf

from crossopt.instances.codesign.instance import Goal, Instance
from crossopt.instances.codesign.plan_groups import why_no_plan
from crossopt.instances.files.units import rounded_quantity
from crossopt.reports.facts.building import Built
from crossopt.reports.facts.chip import choice_name, choice_text
from crossopt.reports.facts.uses import saved_text, uses_of
from crossopt.reports.sheets.amounts import days_of
from crossopt.reports.sheets.sheet import ALL_OF_IT
from crossopt.solvers.codesign.answer import BESIDE, DesignResult
from crossopt.solvers.codesign.explain.conflict import Member
from crossopt.solvers.codesign.explain.relief import RangeEnd, Relief, Unopened, buys, gain
from crossopt.solvers.codesign.objective import DIMENSIONS, UNITS

LIMIT_DIMENSIONS = {**DIMENSIONS, "memory": "bytes", "package_area": "area", "power_density": "power_per_area", "reticle": "area"}
_LISTED = 8
LITTLE = 0.005
"""Of what is asked for: a tenth more that buys less binds nothing worth a change."""


@dataclass(frozen=True, slots=True)
class Why:
    """What was asked about an answer."""

    reliefs: tuple[Relief, ...] = ()
    ends: tuple[RangeEnd, ...] = ()
    building: tuple[tuple[Built, float | None], ...] = ()
    """Each with its gain from a tenth more; None if not evaluated."""
    unopened: tuple[Unopened, ...] = ()


NOTHING = Why()


@dataclass(frozen=True, slots=True)
class Terms:
    """In which terms an explanation speaks: of a run, where the question has one, in days and money."""

    unit: str
    goal: Goal | None = None
    """The run, where the step time is minimised."""
    limit: str = ""
    """What limits the step time: the `deadline` or the `budget` of the run; empty where the question limits the step itself."""

    def value(self, value: float | None) -> str:
        """A value of the objective, with the run that it comes to."""
        if value is None:
            return "no design"
        text = rounded_quantity(value, "time") if self.unit == "s" else f"{value:.5g} {self.unit}"
        if self.goal is None:
            return text
        money = self.goal.money(value)
        return f"{text}, a run of {days_of(self.goal.seconds(value))}{'' if money is None else f' and {money:,.0f} USD'}"

    def name(self, limit: str) -> str:
        """A limit or a choice, as the question has it."""
        return self.limit if self.limit and limit.replace(" ", "_") in _STEP_LIMITS else limit.replace("_", " ")

    def amount(self, limit: str, amount: float) -> str:
        """So much of a limit."""
        if self.goal is None or not self.limit or limit not in _STEP_LIMITS:
            return rounded_quantity(amount, LIMIT_DIMENSIONS[limit])
        return days_of(self.goal.seconds(amount)) if self.limit == "deadline" else f"{self.goal.money(amount) or 0.0:,.0f} USD"


_STEP_LIMITS = ("step_time", "mean_step_time")


def terms_of(question: Instance) -> Terms:
    """Those of a question; a limit on the step that follows from the run is told as the deadline or the budget."""
    unit, goal = UNITS[question.objective], question.goal
    if goal is None or goal.sites is not None or question.objective != "step_time":
        return Terms(unit)
    if not goal.step_time <= question.budget.step_time < inf:
        return Terms(unit, goal)
    return Terms(unit, goal, "deadline" if goal.seconds(question.budget.step_time) >= goal.deadline * (1.0 - _ROUNDED) else "budget")


_ROUNDED = 1e-9
"""Of a time, by what rounding may change it."""


def clash_text(result: DesignResult, members: tuple[Member, ...] | None, terms: Terms, lacking: str | None = None) -> str:
    """Why there is no design; `lacking` says what no chip has."""
    name = result.question["name"]
    if members is None and lacking:
        return f"{name}: no chip of the question can be built: {lacking}\n"
    if members is None:
        return f"{name}: no design keeps every limit, and none would with every limit lifted and every choice open\n"
    nearest = "".join(f"\n  {note}\n" for note in result.notes if note.startswith(("deadline: ", "budget: ")))
    return f"{name}: no design keeps every limit; {_clashing(members, terms)}{nearest}"


def _clashing(members: tuple[Member, ...], terms: Terms) -> str:
    """The restrictions that leave no design together, one a line."""
    alone = "one restriction alone leaves none" if len(members) == 1 else "these clash, and without any one of them there is a design"
    return "\n".join([f"{alone}:", "", *(f"  {member_text(member, terms, alone=len(members) == 1)}" for member in members)]) + "\n"


def member_text(member: Member, terms: Terms, *, alone: bool) -> str:
    """A limit or a choice that leaves no design, alone or with others, and what designs need."""
    if member.least is None:
        listed = ", ".join(str(value) for value in member.allowed[:_LISTED]) + (", ..." if len(member.allowed) > _LISTED else "")
        return f"{terms.name(member.name)} is {'one of ' if len(member.allowed) > 1 else ''}{listed}"
    least, there = (terms.amount(member.name, float(value)) for value in (member.least, member.allowed[0]))  # type: ignore[arg-type]
    needs = f"needs at least {least}"
    which = f"without any other limit every design {needs}" if alone else f"every design that the others allow {needs}"
    return f"{terms.name(member.name)}: {there} at most; {which}"


def answer_text(result: DesignResult, terms: Terms, why: Why = NOTHING) -> str:
    """What binds an answer and what is merely full, what a little more of each limit would buy, and how near a free chip is to what can be
    built."""
    lines = [f"{result.question['name']}: {terms.value(result.value)} {'is the optimum' if result.settled else 'is the best found'}", ""]
    lines += [f"  {note}" for note in result.notes if note.startswith(BESIDE)]
    lines += [f"  {line}" for line in (_heads(result, why, terms) if why.reliefs else _filled(result, terms))]
    lines += [f"  {_relief(relief, result.value, terms)}" for relief in why.reliefs]
    lines += [f"  range end: {_beyond(end)}: {_bought(end, result.value, terms)}" for end in why.ends]
    lines += [f"  {line}" for line in _parts(result, why.unopened, terms)]
    lines += ["", *(f"  {built.sentence}{_mark(built, worth)}" for built, worth in why.building)] if why.building else []
    return "\n".join(lines) + "\n"


def _parts(result: DesignResult, parts: tuple[Unopened, ...], terms: Terms) -> list[str]:
    """Closed parts of which a tenth more or less gains something, the largest gain first; one line if none does."""
    better = sorted((part for part in parts if buys(part.value, result.value)), key=lambda part: part.value or 0.0)
    bought = [(part, _bought(part, result.value, terms)) for part in better]
    lines = [f"not opened: {choice_name(part.name)} a tenth {_way(part)}: {text}" for part, text in bought]
    names = ", ".join(dict.fromkeys(choice_name(part.name) for part in parts))
    return lines or ([f"not opened, and each alone a tenth more or less buys nothing: {names}"] if parts else [])


def _filled(result: DesignResult, terms: Terms) -> list[str]:
    """Limits that are full, before anybody asked what more of them would buy."""
    full = [terms.name(name) for name in result.details.evaluation.binding] if result.details else []
    return [f"full: {', '.join(full)}" if full else "no limit is full"]


def _heads(result: DesignResult, why: Why, terms: Terms) -> list[str]:
    """The limits of which more buys something, those of which it buys little, what binds beside them, and what is full and buys nothing.
    What binds beside the limits comes first where it is worth more than any of them."""
    full = result.details.evaluation.binding if result.details else ()
    worth = {_name(relief): gain(relief.value, result.value) for relief in why.reliefs}
    binding = [terms.name(name) for name, bought in sorted(worth.items(), key=lambda pair: -pair[1]) if bought >= LITTLE]
    little = [f"{terms.name(name)} ({bought:.2%} less by a tenth more)" for name, bought in worth.items() if 0.0 < bought < LITTLE]
    known_fully = {_name(relief): relief.complete for relief in why.reliefs}
    shares = {limit.name: limit.share for limit in result.details.evaluation.limits} if result.details else {}
    others = [
        (name, f" ({share:.0%} used)" if (share := shares.get(name, 1.0)) < ALL_OF_IT else "") for name in full if not worth.get(name)
    ]
    beside = _beside(result, why)
    lines = [
        f"binding: {', '.join(binding)}" if binding else f"no limit binds{' by much' if little else ''}",
        f"worth little: {', '.join(little)}" if little else "",
    ]
    told_beside = f"binds beside: {', '.join(f'{head} ({bought:.2%})' for head, bought in beside)}" if beside else ""
    most = max(worth.values(), default=0.0)
    lines = [told_beside, *lines] if beside and beside[0][1] > most else [*lines, told_beside]
    heads = (("full, not worth raising", True), ("full", False))
    groups = [
        (head, [f"{terms.name(name)}{share}" for name, share in others if bool(known_fully.get(name)) == known]) for head, known in heads
    ]
    return [*(line for line in lines if line), *(f"{head}: {', '.join(names)}" for head, names in groups if names)]


def _beside(result: DesignResult, why: Why) -> list[tuple[str, float]]:
    """What buys more than a little and is no limit of the question: of the technology, ends of ranges, closed parts; the most
    first."""
    built = ((f"{limit.sentence.partition(':')[0]} of the technology", worth or 0.0) for limit, worth in why.building if limit.full)
    ends = ((_beyond(end), gain(end.value, result.value)) for end in why.ends)
    parts = ((f"{choice_name(part.name)} a tenth {_way(part)}", gain(part.value, result.value)) for part in why.unopened)
    return sorted((pair for pair in (*built, *ends, *parts) if pair[1] >= LITTLE), key=lambda pair: -pair[1])


def _way(part: Unopened) -> str:
    return "more" if part.more else "less"


def _name(relief: Relief) -> str:
    return relief.name.replace("_", " ")


def _relief(relief: Relief, value: float | None, terms: Terms) -> str:
    budget, raised = (terms.amount(relief.name, amount) for amount in (relief.budget, relief.raised))
    stops = [f"{_beyond(end)} with it: {_bought(end, value, terms)}" for end in relief.stopped_by]
    why = f"; range end: {'; '.join(stops)}" if stops else ""
    return f"{terms.name(relief.name)} {raised} instead of {budget}: {_bought(relief, value, terms)}{why}"


def _bought(change: Relief | RangeEnd | Unopened, value: float | None, terms: Terms) -> str:
    if change.value is not None and value is not None and change.value < value:
        return f"{terms.value(change.value)}, {1.0 - change.value / value:.2%} less"
    return "nothing better" if change.complete else "nothing better found in time"


def _beyond(end: RangeEnd) -> str:
    there, chosen = (choice_text(end.name, amount).replace("given ", "") for amount in (end.beyond, end.option))
    return f"{there} instead of {chosen.removeprefix(end.name.rpartition('_')[0].replace('_', ' ')).removesuffix(' HBM stacks').strip()}"


def _mark(limit: Built, worth: float | None) -> str:
    """That all of it is used, and how much more of it would buy, where that was asked."""
    if not limit.full or worth is None:
        return "; full" if limit.full else ""
    return f"; binds: a tenth more {worth:.2%} less" if worth >= LITTLE else f"; full, {_little(worth)}"


def _little(worth: float) -> str:
    """What is worth next to nothing, and how much."""
    return f"worth little ({worth:.2%})" if worth > 0.0 else "not worth raising"


_LEFT_OUT, _UNPROVED = "the question itself leaves it out", "the answer above is not proved"


def forced_text(forced: tuple[str, ...], questions: tuple[Instance, Instance], results: tuple[DesignResult, DesignResult]) -> str:
    """What a forced choice costs, and on what the time goes: of the question and its result, and of those with the choice."""
    choices, terms, (result, other) = ", ".join(forced), terms_of(questions[0]), results
    if other.value is None or other.answer is None:
        return f"\n  with {choices} there is no design found in time\n"
    if result.value is None or result.answer is None:
        return f"\n  with {choices}: {terms.value(other.value)}\n"
    change = other.value / result.value - 1.0
    more = (
        "the same"
        if not change
        else f"{change:.2%} more"
        if change > 0.0
        else f"{-change:.2%} less: {_LEFT_OUT if result.settled else _UNPROVED}"
    )
    lines = [f"with {choices}: {terms.value(other.value)}, {more}", f"  {other.answer.design.plan_label}"]
    best, worse = (uses_of(*of) for of in zip(questions, ("", ""), (result.answer.design, other.answer.design), strict=True))
    saved = saved_text(best, worse, proved=result.proved)
    return "\n" + "".join(f"  {line}\n" for line in [*lines, *([f"  {saved}"] if saved else [])])


def impossible_text(forced: tuple[str, ...], question: Instance, members: tuple[Member, ...] | None) -> str:
    """Why there is no design with a forced choice: the rule or the limit that it violates, or what it clashes with."""
    head, terms = f"\n  with {', '.join(forced)} there is no design", terms_of(question)
    if reason := why_no_plan(question):
        return f"{head}: {reason}\n"
    if members is None:
        return f"{head}: not even with every limit lifted\n"
    own = {setting.partition("=")[0].rpartition(".")[2] for setting in forced}
    limits, choices = ([member for member in members if (member.least is None) is chosen] for chosen in (False, True))
    if len(limits) != 1:
        return f"{head}: {_clashing(members, terms)}"
    least, there = (terms.amount(limits[0].name, float(value)) for value in (limits[0].least or 0.0, limits[0].allowed[0]))  # type: ignore[arg-type]
    others = ", ".join(member_text(member, terms, alone=False) for member in choices if member.name not in own)
    needs = f"every one needs at least {least}, of {there} that {terms.name(limits[0].name)} allows"
    return f"{head}: {needs}{f', as {others}' if others else ''}\n"
