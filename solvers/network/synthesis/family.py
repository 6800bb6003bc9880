"""Sends over links as a family of questions: what is asked again, who answers, who judges, what proves."""

from crossopt.instances.network.synthesis.question import SynthesisQuestion
from crossopt.solvers.family import Family, later
from crossopt.solvers.network.synthesis.answer import Sends, Used
from crossopt.solvers.network.synthesis.judge import judge
from crossopt.solvers.network.synthesis.prove import prove

_ENGINES = "crossopt.solvers.network.synthesis.engines"

FAMILY: Family[SynthesisQuestion, Sends, Used] = Family(
    kind="synthesis",
    what="schedule",
    unit="steps",
    answer=Sends,
    details=Used,
    engines={"auto": later(_ENGINES, "auto"), "tacos": later(_ENGINES, "tacos"), "ring": later(_ENGINES, "around")},
    judge=judge,
    judged="who has what, links, deadline",
    prove=prove,
    said=frozenset({"cuts"}),
    seeded=frozenset({"auto", "tacos"}),
)
