"""The relaxation of a question's integer model: the fractions it takes, and the tree that closes its gap, as text and as a picture."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from crossopt.reports.drawing.svg import WIDTH
from crossopt.reports.drawing.tree import TreeNode, tree_svg
from crossopt.reports.pages.frame.style import alone
from crossopt.reports.sheets.amounts import lowered
from crossopt.reports.texts.width import page_width
from crossopt.solvers.codesign.linear.relaxation import Branch, Relaxed

_ROWS = 40
"""Nodes that are listed."""
_STEPS = 8
"""Moments that are told of how the bound rose."""
_WIDTH, _PAGE = 58, 100
"""Of a choice, on so wide a page."""
_BETWEEN, _NOT = " · ", "not "
"""What stands between the settings of a plan, and before a choice that is forbidden."""


def relaxation_text(found: Relaxed) -> str:
    """The relaxation for the terminal."""
    rounds = f"{found.rounds} round{'s' * (found.rounds != 1)} of refinement"
    state = f"after {rounds}" if found.refined else f"after {rounds}, stopped before the end"
    size = f"{found.variables:,} variables, {found.rows:,} rows, {found.plans:,} plan{'s' * (found.plans != 1)}"
    lines = [f"{found.name}: the integer model {state}: {size}", ""]
    if found.root is None:
        return "\n".join([*lines, "  there was no time to solve its relaxation (give a longer --time-limit)"]) + "\n"
    lines += [f"  best design known        {_seconds(found.start)}   found by the refinement before the tree"]
    lines += [f"  relaxation at the root   {_seconds(found.root)}   choices may be fractions; a linear program of HiGHS in floating point"]
    if found.optimum is not None:
        gap = f"the root is {1.0 - found.root / found.optimum:.2%} below" if found.stopped == "complete" else "the best solution so far"
        lines += [f"  integer model            {_seconds(found.optimum)}   {gap}"]
    if found.value is not None:
        lines += [f"  its design               {_seconds(found.value)}   by the full model: {found.design}"]
    lines += [f"  bound                    {_seconds(found.bound)}   no design is below this, by the word of {found.solver}"]
    return "\n".join([*lines, "", *_fractions(found), "", *_tree(found)]) + "\n"


def relaxation_svg(found: Relaxed) -> str:
    """The tree as a picture in a file of its own."""
    return alone(relaxation_tree(found))


def relaxation_tree(found: Relaxed, width: float = WIDTH) -> str:
    """The tree as a picture."""
    title = f"Branch and bound on the integer model of {found.name}"
    described = f"{len(found.nodes):,} nodes, each with its choice, its bound and what became of it; {ending(found)}"
    choices = [choice.replace("mm^2", "mm²") for choice in _choices(found)]
    nodes = [TreeNode(node.parent, choice, _bound(node), _status(found, node)) for node, choice in zip(found.nodes, choices, strict=True)]
    return tree_svg(nodes or [TreeNode(None, "all designs", "", "open")], title, described, width=width)


def _fractions(found: Relaxed) -> list[str]:
    """Part by part the choices of the root, with the share of each."""
    lines = ["  what the relaxation takes at the root"]
    for part, shares in groupby(found.shares, key=lambda share: share.part):
        several = list(shares)
        for place, share in enumerate(several):
            lines.append(f"    {part if place == 0 else '':<10}{share.share:>8.4f}  {share.choice}")
    whole = all(share.share > 1.0 - 1e-6 for share in found.shares)
    return [*lines, *(["    every choice is whole: there is nothing to branch on"] if whole else [])]


def _tree(found: Relaxed) -> list[str]:
    """A row for each node, and how the bound rose."""
    if len(found.nodes) == 1:
        return [f"  no branching: {ending(found)}"]
    width = _WIDTH - (_PAGE - page_width())
    lines = [
        "  branch and bound, the least bound first",
        *(f"    {words}" for words in said_once(found)),
        f"    {'node':>5}{'from':>6}  {'choice':<{width}}  {'bound':>9}  fractions  what became of it",
    ]
    for number, (node, whole) in enumerate(zip(found.nodes[:_ROWS], _choices(found), strict=False)):
        parent = "" if node.parent is None else f"{node.parent:,}"
        choice = whole if len(whole) <= width else f"{whole[: width // 2 - 3]}...{whole[-width // 2 :]}"
        lines.append(f"    {number:>5,}{parent:>6}  {choice:<{width}}  {_bound(node):>9}  {node.fractions:>9}  {_became(found, node)}")
    if len(found.nodes) > _ROWS:
        lines.append(f"    ... and {len(found.nodes) - _ROWS:,} more (--svg FILE draws them, --out FILE has them all)")
    return [*lines, "", *_steps(found), f"  {ending(found)}"]


def _steps(found: Relaxed) -> list[str]:
    """Where the bound or the best solution became another one, the last of equal bounds."""
    rises = [next(iter(rows)) for _, rows in groupby(found.steps, key=lambda step: (_shown(step[1]), _shown(step[2])))]
    told = rises if len(rises) <= _STEPS else [rises[round(place * (len(rises) - 1) / (_STEPS - 1))] for place in range(_STEPS)]
    known = f"{found.start:.5g} s"
    ways = [f"bound {_shown(bound):>9}, best solution of the tree {_shown(best)}" for _, bound, best in told]
    head = f"  the best design known is {known} from the start"
    return [head, *(f"  after {step[0]:>5,} nodes: {way}" for step, way in zip(told, ways, strict=True))]


def ending(found: Relaxed) -> str:
    """How the tree ended, in words."""
    counts = Counter(_status(found, node) for node in found.nodes if node.status != "open")
    told = ", ".join(f"{count:,} {status}" for status, count in sorted(counts.items()))
    if found.stopped != "complete":
        left = sum(node.status == "open" for node in found.nodes)
        return f"not closed ({found.stopped}): {left:,} nodes are open, {told}"
    return f"closed after {len(found.nodes):,} node{'s' * (len(found.nodes) != 1)}: {told}"


def _bound(node: Branch) -> str:
    return "" if node.bound is None else _shown(node.bound)


def _choices(found: Relaxed) -> list[str]:
    """What was chosen at each node, of plans only what not all plans of the tree have."""
    shared = _shared(found)
    return [_BETWEEN.join(own) if (own := _without(node.choice, shared)) else node.choice for node in found.nodes]


def said_once(found: Relaxed) -> list[str]:
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
    kept = [part for part in choice.removeprefix(_NOT).split(_BETWEEN) if part not in shared]
    return [f"{_NOT}{kept[0]}", *kept[1:]] if forbidden and kept else kept


def _status(found: Relaxed, node: Branch) -> str:
    """What became of a node; a model that was cut off at the best design known cannot tell worse designs from none at all."""
    return f"nothing below {lowered(found.start)} s" if node.status == "nothing below" else node.status


def _became(found: Relaxed, node: Branch) -> str:
    if node.status == "solved" and node.value is not None:
        return f"solved, {_shown(node.value)}"
    return _status(found, node)


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.5g} s"


def _seconds(value: float) -> str:
    return f"{value:.6g} s".ljust(10)
