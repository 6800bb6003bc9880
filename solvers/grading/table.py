"""The assignments by name, and where their solutions lie."""

from crossopt.solvers.grading.assignments.alternating import ALTERNATING
from crossopt.solvers.grading.assignments.chips import CHIPS
from crossopt.solvers.grading.assignments.collectives import COLLECTIVES
from crossopt.solvers.grading.assignments.curves import CURVES
from crossopt.solvers.grading.assignments.expert import EXPERT
from crossopt.solvers.grading.assignments.knapsack import KNAPSACK
from crossopt.solvers.grading.assignments.layer import LAYER
from crossopt.solvers.grading.assignments.stages import STAGES
from crossopt.solvers.grading.assignments.tradeoffs import TRADEOFFS
from crossopt.solvers.grading.assignments.trees import TREES
from crossopt.solvers.grading.marks import HANDOUTS, Assignment

ASSIGNMENTS: tuple[Assignment, ...] = (LAYER, KNAPSACK, STAGES, CHIPS, CURVES, TRADEOFFS, TREES, EXPERT, ALTERNATING, COLLECTIVES)
LAB = "phaze-lab"
"""A folder beside the assignments."""
SOLUTIONS = HANDOUTS / "solutions"
"""Reference solutions and notes for instructors, which no student gets."""


def assignment_named(name: str) -> Assignment | None:
    """The assignment of that name or number: `1`, `01` and `01-transformer-layer` are the same."""
    number = name.zfill(2)
    return next((one for one in ASSIGNMENTS if name == one.name or number == one.name[:2]), None)
