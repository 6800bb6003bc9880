"""Every form in which a bound may be known; a check refuses those that it cannot carry out, so that there is no proof without one."""

from typing import Any, Literal

from crossopt.crossflow.records import dataclass
from crossopt.instances.sharding.extent import Extent, Taken


@dataclass(frozen=True, slots=True)
class UnverifiedBound:
    """Nobody but who says so knows that the bound holds."""

    by: str
    form: Literal["unverified"] = "unverified"


@dataclass(frozen=True, slots=True)
class RecomputableBound:
    """Anybody can count the bound again from the question, by the same program or by looking at everything."""

    by: str
    form: Literal["recomputable"] = "recomputable"


@dataclass(frozen=True, slots=True)
class Reductions:
    """What was left to choose before and after all of them."""

    before: Extent
    after: Extent
    steps: tuple[Taken, ...]


@dataclass(frozen=True, slots=True)
class ProofStep:
    """A branch, by its node and the strategies of its first part, or a dual in units of 1 / scale (formulation.sharding.tree)."""

    node: int | None
    first: tuple[int, ...]
    scale: int
    times: tuple[int, ...]
    prices: tuple[int, ...]
    to_firsts: tuple[int, ...]
    to_seconds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Certificate:
    """Steps about what reductions leave, and the bound that they prove in whole numbers; beyond every cost, that there is no answer."""

    bound: int
    steps: tuple[ProofStep, ...]


@dataclass(frozen=True, slots=True)
class Steps:
    """Reductions, and steps about what they leave: anybody can carry both out again."""

    by: str
    unverified: bool
    """Whether more is said than that shows, by somebody's word."""
    reductions: Reductions
    certificate: Certificate | None
    form: Literal["steps"] = "steps"


@dataclass(frozen=True, slots=True)
class Occurring:
    """The options of a choice that occur among the designs within 5 % of the best one."""

    name: str
    of: int
    """How many options the choice has."""
    options: list[Any]
    """Those that occur, in the order of the question."""
    least: tuple[float, ...]
    """For each of them the least value of a design that has it: the option occurs as near to the best one as this."""

    def within(self, limit: float) -> list[Any]:
        """The options that occur among designs of at most this value."""
        return [option for option, least in zip(self.options, self.least, strict=True) if least <= limit]


@dataclass(frozen=True, slots=True)
class Space:
    """How many designs the question allows and how they fare."""

    designs: int
    """Plans that are plans, times hardware points."""
    feasible: int
    """Designs that keep every limit."""
    ties: int
    """Designs with the very value of the best one, itself included."""
    within_1_percent: int
    within_5_percent: int
    unbuilt: int
    """Hardware points that lack cores, memory or links; their designs count as infeasible."""
    hardware_points: int
    plans: int
    error: float | None = None
    """The model's mean error on measured runs of this device; None where nothing was measured, and for energies and costs."""
    within_error: int | None = None
    """Designs whose values are that near to the best one, itself included: the model cannot tell them apart."""
    near: tuple[Occurring, ...] = ()
    """What the designs within 5 % of the best one have in common: every choice with more than one option; none without a design."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A limit that designs break: how many keep it, and the least that any design needs of it over what there is."""

    limit: str
    kept_by: int
    least_share: float | None
    """1 or less if some design keeps it; None where there is nothing to measure."""


@dataclass(frozen=True, slots=True)
class Enumerated:
    """All designs were priced, and counted as they fare."""

    by: str
    space: Space
    conflicts: tuple[Conflict, ...] = ()
    """Where no design keeps every limit."""
    form: Literal["enumerated"] = "enumerated"


@dataclass(frozen=True, slots=True)
class JointSpace:
    """How many designs a question about several workloads allows and how they fare."""

    designs: int
    """Plans of the workloads, one of each, times hardware points."""
    hardware_points: int
    unbuilt: int
    """Hardware points that lack cores, memory or links."""
    plans: tuple[int, ...]
    served: tuple[int, ...]
    """Hardware points on which each workload has a plan that keeps every limit."""
    serving: int
    """Those on which all workloads have one."""


@dataclass(frozen=True, slots=True)
class EnumeratedTogether:
    """All plans of several workloads were priced on every chip."""

    by: str
    space: JointSpace
    form: Literal["enumerated-together"] = "enumerated-together"


@dataclass(frozen=True, slots=True)
class Tree:
    """How boxes of hardware points were cut until no plan in any was below the bound; plans are told of each workload."""

    designs: int
    """Plans that are plans, one of each workload, times hardware points."""
    hardware_points: int
    plans: tuple[int, ...]
    groups: tuple[int, ...]
    """Of plans that differ in overlap and offloading only, and in recomputation unless every option offloads activations; they are
    bounded together by the plan with the least of each."""
    promising: tuple[int, ...]
    """Plans with which the value would be below the bound on the best chip."""
    boxes: int
    cuts: tuple[tuple[tuple[int, int, int], ...] | None, ...]
    """From the root down, each box before its parts: choices with the first and the last place that the first part keeps, counted from 0 in
    ascending order of the options, of which each takes off what is below and above; None for a box that is not cut."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """Boxes of designs were bounded, and cut where that was not enough: anybody can go down the tree of cuts again."""

    by: str
    tree: Tree
    form: Literal["boxes"] = "boxes"


@dataclass(frozen=True, slots=True)
class Relaxation:
    """An integer model that under-estimates every design, solved and tightened again and again."""

    solver: str
    """Its name and version; empty where no solver was needed."""
    rounds: int
    """How often it was solved."""
    tangents: int
    """Tangents of the step time of a plan at a chip."""
    form: str
    """How it is written, by its name in `formulation.codesign.forms`."""
    plans: int
    """Plans that it chooses among; all others are no better on the best chip there could be, or at prices on the budgets."""


@dataclass(frozen=True, slots=True)
class Relaxed:
    """A relaxation was solved; that no solution of it is below the bound is the word of its solver."""

    by: str
    relaxation: Relaxation
    form: Literal["relaxed"] = "relaxed"


@dataclass(frozen=True, slots=True)
class WholeProof:
    """All that says, beside the question, that no design is below a bound (solvers.codesign.linear.whole)."""

    screens: tuple[tuple[str, ...], ...]
    """What prices on the budgets rule out, one after another: a line for each plan that is left, in the order of the question, with the
    places of the literals of chips at which it has a tangent, its prices of the budgets and the shares of its tangents."""
    rows: tuple[tuple[int, ...], ...]
    """Of the integer model: 0 for a tangent and 1 for a single chip, a plan among those that are left, and the places of the literals of
    a chip."""
    scale: int
    """What multipliers are divided by."""
    steps: tuple[str, ...]
    """A tree of branches and of leaves with multipliers of the rows (formulation.certificate.packed); none where no plan is left."""


@dataclass(frozen=True, slots=True)
class Exact:
    """A relaxation was solved, and whole numbers show that no solution of it is below the bound: anybody can count them again."""

    by: str
    relaxation: Relaxation
    whole: WholeProof
    form: Literal["exact"] = "exact"


@dataclass(frozen=True, slots=True)
class Parts:
    """It follows from the answers to narrower questions that the result holds, each with a proof of its own."""

    by: str
    form: Literal["parts"] = "parts"


@dataclass(frozen=True, slots=True)
class MultiplierBound:
    """A whole price for every block of those that placements no busier than a limit leave: what one device can hold of them is counted."""

    by: str
    limit: float
    """Milliseconds; nothing above it is proved."""
    prices: tuple[int, ...]
    form: Literal["multipliers"] = "multipliers"


@dataclass(frozen=True, slots=True)
class Surrounded:
    """A block, and placements no busier than a limit: whoever holds it pays the cheapest cut round it."""

    by: str
    limit: float
    block: int
    form: Literal["surrounded"] = "surrounded"


@dataclass(frozen=True, slots=True)
class Swept:
    """Rounds of the program along the blocks, for placements no busier than a limit."""

    by: str
    limit: float
    states: int
    """That it comes by in all rounds together; whoever repeats them ends there."""
    form: Literal["swept"] = "swept"


@dataclass(frozen=True, slots=True)
class Branched:
    """A tree about the integer model of all placements within a limit, counted in whole numbers."""

    by: str
    limit: float
    """Milliseconds; nothing above it is proved."""
    scale: int
    """What multipliers are divided by."""
    steps: tuple[str, ...]
    """Branches, and leaves with multipliers of the rows (formulation.certificate.packed)."""
    form: Literal["branched"] = "branched"


@dataclass(frozen=True, slots=True)
class OnPath:
    """The path of the data that is longest by one kind of figure, and what pieces of it take."""

    by: str
    longest: Literal["least", "cpu", "size", "transfer"]
    """`least`: by the lesser of each node's times, and that is the bound."""
    beside: int
    """Ends of pieces, from the first on, of which what lies beside the path was looked at."""
    form: Literal["on-path"] = "on-path"


@dataclass(frozen=True, slots=True)
class Tangent:
    """Multipliers of a convex program of bandwidths (formulation.network.program)."""

    shares: tuple[tuple[float, ...], ...]
    """Of the dimensions in the time of each collective; none where the program asks for the least cost."""
    prices: tuple[float, ...]
    """Of the rows."""


@dataclass(frozen=True, slots=True)
class Tangents:
    """Multipliers that bound a program of bandwidths, of every part that catalogues are cut into: anybody can count them again."""

    by: str
    branches: tuple[tuple[int, int] | None, ...]
    """A dimension and the last of its options in the first part, before its two parts; None for a part that has multipliers."""
    tangents: tuple[Tangent, ...]
    """Of the parts in their order. Of time times cost the first is of the least cost, and each other bounds the time at every cost."""
    form: Literal["tangents"] = "tangents"


@dataclass(frozen=True, slots=True)
class Weighed:
    """Weights of dimensions, by which what chunks ask of them bounds a collective (formulation.network.orders)."""

    by: str
    weights: tuple[tuple[tuple[int, ...], ...], ...]
    """Of each number of chunks, and of each set of dimensions with which chunks may begin; none where all choices are looked at."""
    form: Literal["weighed"] = "weighed"


@dataclass(frozen=True, slots=True)
class Chosen:
    """A tree of choices of changes, each leaf bounded by running the trace again (formulation.traces.tree)."""

    by: str
    steps: str
    """From the root down: the place of the change at which a choice is cut, `-` where it is not."""
    form: Literal["chosen"] = "chosen"


@dataclass(frozen=True, slots=True)
class Integers:
    """A tree about the integer model of a question, counted in whole numbers (formulation.certificate)."""

    by: str
    scale: int
    """What multipliers are divided by."""
    steps: tuple[str, ...]
    form: Literal["integers"] = "integers"


Proof = (
    UnverifiedBound
    | RecomputableBound
    | Steps
    | Enumerated
    | EnumeratedTogether
    | Boxes
    | Relaxed
    | Exact
    | Parts
    | MultiplierBound
    | Surrounded
    | Swept
    | OnPath
    | Branched
    | Tangents
    | Weighed
    | Chosen
    | Integers
)
"""How a bound is known."""
