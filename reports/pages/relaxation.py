"""A page about the relaxation of a question's integer model: the fractions at its root, and the tree that closes the gap."""

from functools import partial

from crossopt.reports.drawing.plots import Steps, steps
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.pages.shell import Page, ProofBox, figure, heading, paragraph, section, table, tiles
from crossopt.reports.render.tables import Digest, Table
from crossopt.reports.sheets.amounts import several
from crossopt.reports.texts.relaxation import ending, relaxation_tree, said_once
from crossopt.solvers.answer import gap_between
from crossopt.solvers.codesign.linear.relaxation import Relaxed

_ASKED = "What does the integer model of this question choose if it may choose fractions, and how does branching close the gap?"
_BRANCHED = (
    "Each node adds a choice, or forbids it; the node with the least bound is branched on next. Nodes whose bound is not below the best "
    "solution are left alone. The model was written for designs that are not worse than the best one known before the tree: where it "
    "has no solution no design is below that one, and there may be others that are not better, or none."
)
_TOLD = (
    "Everything here is told as the file tells it: bounds of nodes are linear programs that HiGHS solved in floating point. Their order in "
    "the tree and what follows from it were looked at again; `crossopt explain FILE --relaxation` solves them again, and `solve` and "
    "`crossopt check` prove the optimum without any solver's word."
)


def relaxation_page(found: Relaxed, saved: dict[str, object]) -> Page:
    """What the page says."""
    closed = found.stopped == "complete"
    words = f"No design is below {_seconds(found.bound)}, by the word of {found.solver}; {ending(found)}."
    facts = [("best design known before the tree", _seconds(found.start)), ("root of the relaxation", _seconds(found.root))]
    facts += [("integer model", _seconds(found.optimum)), ("its design by the full model", _seconds(found.value))]
    sized = ((found.variables, "variable"), (found.rows, "row"), (found.plans, "plan"))
    model = ", ".join(several(number, what) for number, what in sized)
    caption = " ".join([_BRANCHED, *(f"{words[0].upper()}{words[1:]}." for words in said_once(found))])
    sections = (
        heading(found.name, _ASKED),
        ProofBox("the tree is closed" if closed else "the tree is not closed", words, closed),
        tiles(facts),
        paragraph(f"The model after {several(found.rounds, 'round')} of refinement: {model}.", "soft"),
        _shares(found),
        _gap(found),
        section("The tree", figure(partial(relaxation_tree, found), caption)) if found.nodes else "",
        section("How this is known", paragraph(_TOLD)),
    )
    return Page(found.name, sections, saved)


def of_relaxation(found: Relaxed) -> Digest:
    """The same in a few figures."""
    shares = tuple((one.part, one.choice, one.share) for one in found.shares)
    return Digest(
        name=found.name,
        asks="step time, by the integer model",
        unit="s",
        value=found.known,
        bound=found.bound,
        gap=gap_between(found.known, found.bound),
        verdict="told" if found.stopped == "complete" else "not closed",
        prover=found.solver,
        engine="branch and bound",
        seconds=0.0,
        design=found.design,
        figures=(("root of the relaxation", _seconds(found.root)), ("nodes", f"{len(found.nodes):,}")),
        tables=(Table("Shares at the root", ("part", "choice", "share"), shares),),
    )


def _shares(found: Relaxed) -> str:
    rows = [(share.part, f"{share.share:.4f}", share.choice) for share in found.shares]
    words = "Shares of one part add up to one. A share of one is a choice; all others are fractions that no chip can have."
    shares = [paragraph(words), table(("part", "share", "choice"), rows, numbers=(1,))] if rows else []
    return section("What the relaxation takes at the root", *shares)


def _gap(found: Relaxed) -> str:
    """Bound and best solution over the nodes that were solved."""
    best = tuple((float(count), value) for count, _, value in found.steps if value is not None)
    bound = tuple((float(count), value) for count, value, _ in found.steps if value is not None)
    known = tuple((float(count), found.start) for count, _, _ in found.steps)
    ways = (("best design known before the tree", known), ("best solution of the tree", best), ("bound", bound))
    series = [Steps(label, way) for label, way in ways if way]
    if not series or len(found.nodes) < 2:
        return ""
    words = f"After {several(len(found.nodes), 'node')} the bound is {_seconds(found.bound)}, the best solution {_seconds(found.optimum)}."
    titles = Titles("closing", "Bound and best solution over the nodes of the tree", words)
    until, axes = float(len(found.nodes)), ("nodes", "step time in s")
    return section("How branching closes the gap", figure(lambda width: steps(titles.at(width), series, until, axes), words))


def _seconds(value: float | None) -> str:
    return "none" if value is None else f"{value:.6g} s"
