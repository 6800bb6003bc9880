"""The sheet of the relaxation of a question's integer model: the fractions it takes, and the tree that closes its gap."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from crossopt.reports.drawing.graph import TreeNode, tree_svg
from crossopt.reports.drawing.plots import Steps, steps
from crossopt.reports.drawing.svg import WIDTH
from crossopt.reports.render.style import alone
from crossopt.reports.sheets.amounts import lowered, several
from crossopt.reports.sheets.sheet import Column, Picture, Section, Sheet, Table, amounts, counts, names
from crossopt.solvers.answer import gap_between
from crossopt.solvers.codesign.linear.relaxation import Branch, Relaxed

_ROWS: Final = 40
"""Nodes that are listed."""
_STEPS: Final = 8
"""Moments that are listed of how the bound rose."""
_BETWEEN, _NOT = " · ", "not "
"""What stands between the settings of a plan, and before a choice that is forbidden."""
_QUESTION: Final = "What does the integer model of this question choose if it may choose fractions, and how does branching close the gap?"
_BRANCHED: Final = (
    "Each node adds a choice, or forbids it; the node with the least bound is branched on next. Nodes whose bound is not below the best "
    "solution are left alone. The model was written for designs that are not worse than the best one known before the tree: where it "
    "has no solution no design is below that one, and there may be others that are not better, or none."
)
_ABOUT: Final = (
    "Everything here is shown as in the file: bounds of nodes are linear programs that HiGHS solved in floating point. Their order in "
    "the tree and what follows from it were checked again; `crossopt explain FILE --relaxation` solves them again, and `solve` and "
    "`crossopt check` prove the optimum without any solver's word."
)


def relaxation_sheet(found: Relaxed) -> Sheet:
    """What is shown."""
    closed, rounds = found.stopped == "complete", several(found.rounds, "round")
    state = f"after {rounds} of refinement{'' if found.refined else ', stopped before the end'}"
    size = f"{several(found.variables, 'variable')}, {several(found.rows, 'row')}, {several(found.plans, 'plan')}"
    solved = found.root is not None
    no_time = "" if solved else "; there was no time to solve its relaxation (give a longer --time-limit)"
    verdict = f"No design is below {_seconds(found.bound)}, by the report of {found.solver}; {ending(found)}." if solved else ""
    figures = (
        ("best design known before the tree", _seconds(found.start)),
        ("root of the relaxation", _seconds(found.root)),
        ("integer model", _seconds(found.optimum)),
        ("its design by the full model", _seconds(found.value)),
        ("lower bound", _seconds(found.bound)),
    )
    return Sheet(
        name=found.name,
        sentence=_QUESTION,
        headline=f"the integer model {state}: {size}{no_time}",
        label="the tree is closed" if closed else "the tree is not closed",
        verdict=verdict,
        proved=closed,
        asks="step time, by the integer model",
        unit="s",
        value=found.known,
        bound=found.bound,
        gap=gap_between(found.known, found.bound),
        exactly=tuple(pair for pair in figures if pair[1] != "none") if solved else (),
        shortly=figures if solved else (),
        summary=found.design,
        sections=(_shares(found), _gap(found), _tree(found)) if solved else (),
        engine="branch and bound",
        prover=found.solver,
        known=(_ABOUT,),
    )


def _shares(found: Relaxed) -> Section:
    """Part by part the choices of the root, with the share of each."""
    text = "Shares of one part add up to one. A share of one is a choice; all others are fractions that no chip can have."
    integral = ("Every choice is whole: there is nothing to branch on.",) if all(share.share > 1.0 - 1e-6 for share in found.shares) else ()
    columns = (
        names("part", (share.part for share in found.shares)),
        amounts("share", [share.share for share in found.shares], "{:.4f}".format),
        names("choice", (share.choice for share in found.shares)),
    )
    return Section("What the relaxation takes at the root", (text, Table(columns), *integral) if found.shares else ())


def _gap(found: Relaxed) -> Section:
    """Bound and best solution over the nodes that were solved, and where one of them became another."""
    best = tuple((float(count), value) for count, _, value in found.steps if value is not None)
    bound = tuple((float(count), value) for count, value, _ in found.steps if value is not None)
    known = tuple((float(count), found.start) for count, _, _ in found.steps)
    ways = (("best design known before the tree", known), ("best solution of the tree", best), ("bound", bound))
    series = [Steps(label, way) for label, way in ways if way]
    if not series or len(found.nodes) < 2:
        return Section("How branching closes the gap", ())
    text = f"After {several(len(found.nodes), 'node')} the bound is {_seconds(found.bound)}, the best solution {_seconds(found.optimum)}."
    title, until = "Bound and best solution over the nodes of the tree", float(len(found.nodes))
    picture = Picture(lambda titles: steps(titles, series, until, ("nodes", "step time in s")), text, "", title=title, zooms=False)
    rises = [next(iter(rows)) for _, rows in groupby(found.steps, key=lambda step: (_shown(step[1]), _shown(step[2])))]
    some = rises if len(rises) <= _STEPS else [rises[round(index * (len(rises) - 1) / (_STEPS - 1))] for index in range(_STEPS)]
    columns = (
        counts("nodes", [count for count, _, _ in some]),
        amounts("bound", [low for _, low, _ in some], _shown, "s"),
        amounts("best solution of the tree", [value for _, _, value in some], _shown, "s"),
    )
    return Section("How branching closes the gap", (picture, Table(columns)))


def _tree(found: Relaxed) -> Section:
    """A picture, and a row for each node."""
    if len(found.nodes) < 2:
        return Section("The tree", (f"No branching: {ending(found)}.",))
    shared = tuple(f"{text[0].upper()}{text[1:]}." for text in omitted_text(found))
    picture = Picture(lambda titles: relaxation_tree(found, titles.width), "", " ".join((_BRANCHED, *shared)), zooms=False)
    nodes = found.nodes
    more = len(nodes) - _ROWS
    left = (f"{more:,} more nodes are not listed (--svg FILE draws them, --out FILE has them all).",) if more > 0 else ()
    columns = (
        Column("node", tuple(f"{number:,}" for number in range(len(nodes))), tuple(range(len(nodes)))),
        Column("from", tuple("" if node.parent is None else f"{node.parent:,}" for node in nodes), tuple(node.parent for node in nodes)),
        names("choice", _choices(found)),
        amounts("bound", [node.bound for node in nodes], _shown, "s"),
        counts("fractions", [node.fractions for node in nodes]),
        names("what became of it", (_became(found, node) for node in nodes)),
    )
    return Section("The tree", (picture, *shared, Table(columns, most=_ROWS, on_pages=_ROWS, fold="The nodes, in their order"), *left))


def relaxation_svg(found: Relaxed) -> str:
    """The tree as a picture in a file of its own."""
    return alone(relaxation_tree(found))


def relaxation_tree(found: Relaxed, width: float = WIDTH) -> str:
    """The tree as a picture."""
    title = f"Branch and bound on the integer model of {found.name}"
    described = f"{len(found.nodes):,} nodes, each with its choice, its bound and what became of it; {ending(found)}"
    choices = [choice.replace("mm^2", "mm²") for choice in _choices(found)]
    nodes = [
        TreeNode(node.parent, choice, "" if node.bound is None else _shown(node.bound), _status(found, node))
        for node, choice in zip(found.nodes, choices, strict=True)
    ]
    return tree_svg(nodes or [TreeNode(None, "all designs", "", "open")], title, described, width=width)


def ending(found: Relaxed) -> str:
    """How the tree ended, in words."""
    counts = Counter(_status(found, node) for node in found.nodes if node.status != "open")
    statuses = ", ".join(f"{count:,} {status}" for status, count in sorted(counts.items()))
    if found.stopped != "complete":
        left = sum(node.status == "open" for node in found.nodes)
        return f"not closed ({found.stopped}): {left:,} nodes are open, {statuses}"
    return f"closed after {len(found.nodes):,} node{'s' * (len(found.nodes) != 1)}: {statuses}"


def _choices(found: Relaxed) -> list[str]:
    """What was chosen at each node, of plans only what not all plans of the tree have."""
    shared = _shared(found)
    return [_BETWEEN.join(own) if (own := _without(node.choice, shared)) else node.choice for node in found.nodes]


def omitted_text(found: Relaxed) -> list[str]:
    """What the labels of plans leave out, in a sentence; nothing where they leave out nothing."""
    return [f"every plan that is branched on has {_BETWEEN.join(shared)}"] if (shared := _shared(found)) else []


def _shared(found: Relaxed) -> list[str]:
    """The settings that all plans of the tree have, unless one of them has no others."""
    plans = {node.choice.removeprefix(_NOT) for node in found.nodes if _BETWEEN in node.choice}
    shared = [part for part in min(plans, default="").split(_BETWEEN) if all(part in plan.split(_BETWEEN) for plan in plans)]
    return shared if plans and all(_without(plan, shared) for plan in plans) else []


def _without(choice: str, shared: Sequence[str]) -> list[str]:
    """The settings of a choice that are not shared; a forbidden plan stays so."""
    forbidden = choice.startswith(_NOT)
    settings = [part for part in choice.removeprefix(_NOT).split(_BETWEEN) if part not in shared]
    return [f"{_NOT}{settings[0]}", *settings[1:]] if forbidden and settings else settings


def _status(found: Relaxed, node: Branch) -> str:
    """What became of a node; a model that was cut off at the best design known cannot tell worse designs from none at all."""
    return f"nothing below {lowered(found.start)} s" if node.status == "nothing below" else node.status


def _became(found: Relaxed, node: Branch) -> str:
    if node.status == "solved" and node.value is not None:
        return f"solved, {_shown(node.value)}"
    return _status(found, node)


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.5g} s"


def _seconds(value: float | None) -> str:
    return "none" if value is None else f"{value:.6g} s"
