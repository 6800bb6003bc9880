"""The page of the published plans: a summary, a table of all runs, and a note for each that misses a target."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Final

import yaml

from crossopt.crossflow.plan import Plan
from tests.benchmarks.long_pages import write_pages
from tests.benchmarks.published_plans import Case, Found, priced
from tests.benchmarks.published_runs import FOLDER, PAGE, further, launched, seconds, sources

NOTES: Final = FOLDER / "notes.yaml"
ERROR, FASTER, WORTH, WANTED = 0.10, 0.15, 0.005, 0.8
"""Largest error of a time, and largest gain of an optimum, that need no note; least gain of one setting that is told; share of the times
that shall be within that error."""
DEGREES: Final = (
    ("tensor", "t"),
    ("context", "c"),
    ("pipeline", "p"),
    ("data", "d"),
    ("expert", "e"),
    ("interleave", "v"),
    ("microbatch", "m"),
)

TOP: Final = """# Published training plans, as the model sees them

Would you launch a proven plan? Here are {count} public training runs, each with the plan that its authors launched and the time that they
state. Every launched plan is priced by the full model: does it fit the memory, and how far is the predicted step from the stated one? Then
the best plan that the same stack launches, on the same devices with the same batch, is found with proof, and set beside the launched one.

Written by `make published-plans` from [the table of runs](../../tests/benchmarks/published/runs.yaml), which has the source of every figure
and what was assumed where a source is silent. The runs were chosen before any was priced. Those marked ‡ are among the runs that constants
were fitted to since: BLOOM's pre-runs to those of the A100, others to the one that Megatron-Core's set on GB200 names.

## Summary
"""
COLUMNS: Final = """
## All runs

*Plan*: tensor t, context c, pipeline p, data d, expert e, chunks a stage v, microbatch m; SP sequence parallel, R recomputation, Z the
ZeRO stage, O what is overlapped (d gradients, p transfers). *Memory* is the share that the fullest device needs. *Error* is predicted over
stated time, less 1; ✓ where the stated time is in the likely range. *Faster* is how much the proven optimum gains on the launched plan,
both priced by the model (ratio of speeds, less 1). Bold figures miss a target, and have a note below. † is not the very plan that was
launched, as the note says, ‡ a run that constants were fitted to.
"""
FURTHER: Final = """
## Further runs with experts

Priced as they were launched, chosen before any was priced, and not counted above: mean size of the error {mean:.1%}, bias {bias:+.1%}.

| run | bits | launched plan | memory | stated s | model s | error | source |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""
NOTED: Final = """
## Notes on single runs

For each run that misses a target: what makes it. *Opened alone* is what the best option of one setting gains while all others stay as
launched, as the model prices it and where the memory holds it; *degrees* are tensor, context, pipeline, data and expert together.
"""


def write(cases: Sequence[Case]) -> None:
    """Draw the page."""
    write_pages(PAGE, page(cases))


def page(cases: Sequence[Case]) -> str:
    """Its whole text."""
    notes = yaml.safe_load(NOTES.read_text(encoding="utf-8"))
    parts = [
        TOP.format(count=len(cases)),
        summary(cases),
        groups(cases, notes["groups"]),
        "\n" + notes["findings"].strip() + "\n",
        what_if(cases, notes["what if"]),
        COLUMNS,
        table(cases),
        further_runs(),
        "\n" + notes["further"].strip() + "\n",
        NOTED,
        *(noted(number, case, notes) for number, case in enumerate(cases, 1) if missed(case)),
        "\n## Sources\n\n",
        *(f"- {text}: {numbers}\n" for text, numbers in _sources(cases)),
    ]
    return "".join(parts)


def summary(cases: Sequence[Case]) -> str:
    """The three targets, and what came of them."""
    fits, near = sum(case.price.feasible for case in cases), sum(abs(case.error) <= ERROR for case in cases)
    gains = [case.gain for case in cases if case.gain is not None]
    inside = sum(_inside(case) for case in cases)
    rows = [
        ("launched plans that fit the memory by the model", f"{fits} of {len(cases)}", "all"),
        ("predicted times within 10 % of the stated one", f"{near} of {len(cases)} ({near / len(cases):.0%})", "80 %"),
        ("gain of the proven optimum, median", f"{median(gains):.1%}", "at most 15 %"),
        ("mean size of the error", f"{sum(abs(case.error) for case in cases) / len(cases):.1%}", ""),
        ("stated times in the likely range", f"{inside} of {sum(case.price.likely is not None for case in cases)}", ""),
        ("optima that are proved", f"{sum(case.best.proved for case in cases)} of {len(cases)}", "all"),
        ("optima more than 15 % faster", f"{sum(gain > FASTER for gain in gains)} of {len(gains)}", ""),
    ]
    listed = "".join(f"| {name} | {value} | {aim} |\n" for name, value, aim in rows)
    met = {"memory": fits == len(cases), "time": near >= WANTED * len(cases), "gain": median(gains) <= FASTER}
    told = ", ".join(f"that of {name} is {'met' if kept else 'missed'}" for name, kept in met.items())
    return f"\nOf the targets {told}.\n\n| | found | target |\n| --- | --- | --- |\n{listed}"


def groups(cases: Sequence[Case], named: dict[str, list[str]]) -> str:
    """The same by kinds of runs."""
    head = "\n| runs | rows | fit | within 10 % | mean error | bias | median gain |\n| --- | --- | --- | --- | --- | --- | --- |\n"
    return head + "".join(_group(name, [case for case in cases if kind(case) in kinds]) for name, kinds in named.items())


def kind(case: Case) -> str:
    """What tells the groups apart: experts, bits, or the stack."""
    workload = case.run.base["workload"]
    if case.run.plan["expert"] > 1:
        return "experts"
    if case.run.stack != "megatron-core":
        return "sharded"
    return "8 bits" if workload["precision"] == "fp8" else str(case.run.hardware) if case.run.source != "llama3" else "llama3"


def _group(name: str, cases: Sequence[Case]) -> str:
    errors, gains = [case.error for case in cases], [case.gain for case in cases if case.gain is not None]
    fits, near = sum(case.price.feasible for case in cases), sum(abs(error) <= ERROR for error in errors)
    mean, bias = sum(map(abs, errors)) / len(errors), sum(errors) / len(errors)
    return f"| {name} | {len(cases)} | {fits} | {near} | {mean:.1%} | {bias:+.1%} | {median(gains):.1%} |\n"


def further_runs() -> str:
    """Those that are set beside no optimum, with what was assumed of each source."""
    rows, errors, assumed = "", list[float](), dict[str, str]()
    for run in further():
        price, stated = priced(run, launched(run)), seconds(run)
        errors.append(price.seconds / stated - 1.0)
        assumed[run.source] = f"- {sources()[run.source]}: {run.assumed}.\n"
        cells = (run.title, run.precision, short(price.plan), f"{price.memory:.0%}", figure(stated), figure(price.seconds))
        rows += f"| {' | '.join((*cells, f'{errors[-1]:+.1%}', run.source))} |\n"
    mean, bias = sum(map(abs, errors)) / len(errors), sum(errors) / len(errors)
    return f"{FURTHER.format(mean=mean, bias=bias)}{rows}\n{''.join(assumed.values())}"


def what_if(cases: Sequence[Case], changes_made: Sequence[dict[str, Any]]) -> str:
    """What one other assumption does to the launched plans that it concerns, each priced with it."""
    head = "\n| other assumption | runs | errors | with it | memory | with it |\n| --- | --- | --- | --- | --- | --- |\n"
    return head + "".join(_other(cases, change) for change in changes_made)


def _other(cases: Sequence[Case], change: dict[str, Any]) -> str:
    concerned = [(number, case) for number, case in enumerate(cases, 1) if case.run.source in change["sources"]]
    others = [priced(case.run, _changed(case, change)) for _, case in concerned]
    pairs = [(case, other) for (_, case), other in zip(concerned, others, strict=True)]
    cells = (
        change["label"],
        ", ".join(str(number) for number, _ in concerned),
        ", ".join(f"{case.error:+.0%}" for case, _ in pairs),
        ", ".join(f"{other.seconds / case.measured - 1:+.0%}" for case, other in pairs),
        ", ".join(f"{case.price.memory:.0%}" for case, _ in pairs),
        ", ".join(f"{other.memory:.0%}" for _, other in pairs),
    )
    return "| " + " | ".join(cells) + " |\n"


def _changed(case: Case, change: dict[str, Any]) -> dict[str, Any]:
    """The launched question with the other assumption laid over it."""
    question = launched(case.run)
    return {**question, **{name: {**question.get(name, {}), **other} for name, other in change["set"].items()}}


def table(cases: Sequence[Case]) -> str:
    """A row for each run."""
    head = (
        "\n| | run | bits | launched plan | memory | stated s | model s | error | | optimum s | faster | optimum |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
    )
    return head + "".join(_row(number, case) for number, case in enumerate(cases, 1))


def _row(number: int, case: Case) -> str:
    run, price, gain = case.run, case.price, case.gain
    cells = (
        str(number),
        run.title + (" †" if run.differs else "") + (" ‡" if run.fitted else ""),
        run.precision,
        short(price.plan),
        _bold(f"{price.memory:.0%}", not price.feasible),
        figure(case.measured),
        figure(price.seconds),
        _bold(f"{case.error:+.1%}", abs(case.error) > ERROR),
        "✓" if _inside(case) else "",
        "none" if case.best.seconds is None else figure(case.best.seconds) + ("" if case.best.proved else " (not proved)"),
        "" if gain is None else _bold(f"{gain:+.1%}", gain > FASTER),
        "" if case.best.plan is None else changes(case.price.plan, case.best.plan),
    )
    return "| " + " | ".join(cells) + " |\n"


def noted(number: int, case: Case, notes: dict[str, dict[str, str]]) -> str:
    """The note on one run."""
    lines = [f"\n### {number}. {case.run.title}\n\n"]
    lines.append(f"{'; '.join(missed(case)).capitalize()}. Assumed: {case.run.assumed}.")
    lines += [f" Stated: {'; '.join(case.run.facts)}."] if case.run.facts else []
    lines.append(f" Not the plan that was launched: {case.run.differs}.\n" if case.run.differs else "\n")
    lines += [f"\n- {line}" for line in _measured(case)]
    explained = notes["runs"].get(case.run.key)
    lines.append("\n\n" + (explained.strip() if explained else "*Not explained yet.*") + "\n")
    return "".join(lines)


def missed(case: Case) -> list[str]:
    """The targets that a run misses, in words."""
    words = []
    if not case.price.feasible:
        words.append(f"needs {case.price.memory - 1:.0%} more memory than there is")
    if abs(case.error) > ERROR:
        words.append(f"predicted {abs(case.error):.0%} too {'long' if case.error > 0 else 'short'}")
    if case.gain is not None and case.gain > FASTER:
        words.append(f"the optimum is {case.gain:.0%} faster")
    return words


def _measured(case: Case) -> list[str]:
    """What the model tells of a run by itself: where the step goes, what memory holds, what each setting gains alone."""
    price, lines = case.price, list[str]()
    shares = sorted(((seconds / price.seconds, name) for name, seconds in price.terms.items()), reverse=True)
    lines.append("the step: " + ", ".join(f"{name} {share:.0%}" for share, name in shares if share >= 0.01))
    if not price.feasible:
        lines.append("memory: " + ", ".join(f"{name} {size / 2**30:.1f} GiB" for name, size in price.held.items() if size > 2**27))
    if case.gain is not None and case.gain > FASTER and case.best_price is not None:
        gained = sorted(((seconds - case.best_price.terms[name], name) for name, seconds in price.terms.items()), reverse=True)
        told = [f"{name} {gain / price.seconds:+.1%}" for gain, name in gained if abs(gain) >= WORTH * price.seconds]
        lines.append("of the launched step the optimum saves: " + ", ".join(told).replace("+", ""))
        lines.append("opened alone: " + _opened(case))
    return lines


def _opened(case: Case) -> str:
    if not case.alone:
        return f"nothing, since the stack does not launch the plan ({'; '.join(case.refused)})"
    told = [(_gain(case, answer), name) for name, answer in case.alone.items()]
    worth = sorted(((gain, name) for gain, name in told if gain is not None and gain >= WORTH), reverse=True)
    rest = [name for gain, name in told if gain is not None and gain < WORTH]
    none = [name for gain, name in told if gain is None]
    parts = [f"{name} {gain:.1%}" for gain, name in worth]
    parts += [f"nothing by {', '.join(rest)}"] if rest else []
    return "; ".join(parts + ([f"nothing that fits by {', '.join(none)}"] if none else []))


def _gain(case: Case, answer: Found) -> float | None:
    return None if answer.seconds is None else case.price.seconds / answer.seconds - 1.0


_SIGNED: Final = {*(name for name, _ in DEGREES), "sequence_parallel", "recompute", "zero", "overlap", "placement"}
"""Settings that have a sign in the table; others stand there by their names."""


def short(plan: Mapping[str, Any]) -> str:
    """A plan in signs."""
    parts = [f"{sign}{plan[name]}" for name, sign in DEGREES if plan[name] > 1]
    parts += ["SP"] if plan["sequence_parallel"] else []
    parts += [f"R {plan['recompute']}"] if plan["recompute"] != "none" else []
    parts += [f"Z{plan['zero']}"] if plan["zero"] else []
    parts += [{"none": "", "data": "Od", "pipeline": "Op", "both": "Odp"}[plan["overlap"]]]
    usual = Plan()
    parts += [_named(name, value) for name, value in plan.items() if name not in _SIGNED and value != getattr(usual, name)]
    return " ".join(part for part in parts if part) or "one device"


def changes(launched_plan: Mapping[str, Any], best: Mapping[str, Any]) -> str:
    """What the optimum has where it differs."""
    differing = {name for name in launched_plan if launched_plan[name] != best[name] and name != "placement"}
    words = [f"{sign}{best[name]}" for name, sign in DEGREES if name in differing]
    words += [f"{'' if best['sequence_parallel'] else 'no '}SP"] if "sequence_parallel" in differing else []
    words += [f"R {best['recompute']}"] if "recompute" in differing else []
    words += [f"Z{best['zero']}"] if "zero" in differing else []
    words += [f"overlap {best['overlap']}"] if "overlap" in differing else []
    words += [_named(name, best[name]) for name in launched_plan if name in differing - _SIGNED]
    return " ".join(words) or "the same"


def _named(name: str, value: object) -> str:
    return f"{name.replace('_', ' ')} {value}"


def figure(seconds: float) -> str:
    """Three or four digits."""
    return f"{seconds:.1f}" if seconds >= 100 else f"{seconds:.2f}" if seconds >= 10 else f"{seconds:.3f}"


def _inside(case: Case) -> bool:
    return case.price.likely is not None and case.price.likely[0] <= case.measured <= case.price.likely[1]


def _bold(text: str, wanted: bool) -> str:
    return f"**{text}**" if wanted else text


def _sources(cases: Sequence[Case]) -> list[tuple[str, str]]:
    used = {name: [str(number) for number, case in enumerate(cases, 1) if case.run.source == name] for name in sources()}
    return [(text, "run " + ", ".join(used[name])) for name, text in sources().items()]
