"""The assignments by name, and where their solutions lie."""

from solvers.course.chips import CHIPS
from solvers.course.curves import CURVES
from solvers.course.expert import EXPERT
from solvers.course.handouts import HANDOUTS
from solvers.course.knapsack import KNAPSACK
from solvers.course.layer import LAYER
from solvers.course.marks import Assignment
from solvers.course.stages import STAGES
from solvers.course.tradeoffs import TRADEOFFS
from solvers.course.trees import TREES

ASSIGNMENTS: tuple[Assignment, ...] = (LAYER, KNAPSACK, STAGES, CHIPS, CURVES, TRADEOFFS, TREES, EXPERT)
LAB = "phaze-lab"
"""A folder beside the assignments."""
SOLUTIONS = HANDOUTS / "solutions"
"""Reference solutions and notes for instructors, which no student gets."""


def assignment_named(name: str) -> Assignment | None:
    """The assignment of that name or number: `1`, `01` and `01-transformer-layer` are the same."""
    number = name.zfill(2)
    return next((one for one in ASSIGNMENTS if name == one.name or number == one.name[:2]), None)
