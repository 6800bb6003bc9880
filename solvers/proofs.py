"""The forms of proofs of a bound, as a closed union; a check refuses a proof that it cannot repeat."""

from typing import Any, Literal

from crossopt.crossflow.records import dataclass
from crossopt.instances.extent import Extent, Taken


@dataclass(frozen=True, slots=True)
class UnverifiedBound:
    """A bound that only its author claims."""

    by: str
    form: Literal["unverified"] = "unverified"


@dataclass(frozen=True, slots=True)
class RecomputableBound:
    """A bound that can be recomputed from the question, by the same program or by enumeration."""

    by: str
    form: Literal["recomputable"] = "recomputable"


@dataclass(frozen=True, slots=True)
class Reductions:
    """Size of the problem before and after all reductions."""

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
    below: int = 0


@dataclass(frozen=True, slots=True)
class Certificate:
    """Steps about the reduced problem, and the bound that they prove in integers; above every cost, infeasibility."""

    bound: int
    steps: tuple[ProofStep, ...]


@dataclass(frozen=True, slots=True)
class Steps:
    """Reductions, and proof steps about the reduced problem; both can be repeated."""

    by: str
    unverified: bool
    """Whether the claimed bound exceeds what the steps prove."""
    reductions: Reductions
    certificate: Certificate | None
    form: Literal["steps"] = "steps"


@dataclass(frozen=True, slots=True)
class Occurring:
    """Options of a choice that occur among designs within 5 % of the best."""

    name: str
    of: int
    """Number of options of the choice."""
    options: list[Any]
    """Options that occur, in the order of the question."""
    least: tuple[float, ...]
    """For each of them, the least value of a design with it."""

    def within(self, limit: float) -> list[Any]:
        """Options that occur among designs up to this value."""
        return [option for option, least in zip(self.options, self.least, strict=True) if least <= limit]


@dataclass(frozen=True, slots=True)
class Space:
    """Number of designs of a question, and statistics of their values."""

    designs: int
    """Valid plans times hardware points."""
    feasible: int
    """Designs that satisfy every limit."""
    ties: int
    """Designs with exactly the best value, including the best."""
    within_1_percent: int
    within_5_percent: int
    unbuilt: int
    """Hardware points without cores, memory or links; their designs count as infeasible."""
    hardware_points: int
    plans: int
    error: float | None = None
    """The model's mean error on measured runs of this device; None without runs, and for energies and costs."""
    within_error: int | None = None
    """Designs within that error of the best value, including the best: the model cannot distinguish them."""
    near: tuple[Occurring, ...] = ()
    """Common features of designs within 5 % of the best: every choice with several options; empty without a design."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A violated limit: number of designs that satisfy it, and the least requirement over the available amount."""

    limit: str
    kept_by: int
    least_share: float | None
    """At most 1 if some design satisfies it; None if it cannot be measured."""


@dataclass(frozen=True, slots=True)
class Enumerated:
    """All designs were evaluated and counted."""

    by: str
    space: Space
    conflicts: tuple[Conflict, ...] = ()
    """Conflicting limits, if no design satisfies every limit."""
    form: Literal["enumerated"] = "enumerated"


@dataclass(frozen=True, slots=True)
class JointSpace:
    """Number of designs of a question with several workloads, and statistics."""

    designs: int
    """Combinations of one plan per workload, times hardware points."""
    hardware_points: int
    unbuilt: int
    """Hardware points without cores, memory or links."""
    plans: tuple[int, ...]
    served: tuple[int, ...]
    """Hardware points on which each workload has a plan within every limit."""
    serving: int
    """Hardware points on which all workloads have one."""


@dataclass(frozen=True, slots=True)
class EnumeratedTogether:
    """All plans of several workloads were evaluated on every chip."""

    by: str
    space: JointSpace
    form: Literal["enumerated-together"] = "enumerated-together"


@dataclass(frozen=True, slots=True)
class Tree:
    """Tree of boxes of hardware points, cut until no plan in any is below the bound; plan counts are per workload."""

    designs: int
    """Combinations of valid plans, one per workload, times hardware points."""
    hardware_points: int
    plans: tuple[int, ...]
    groups: tuple[int, ...]
    """Number of groups of plans that are bounded together by the plan with the least of each concession."""
    promising: tuple[int, ...]
    """Plans that would beat the bound on the best chip."""
    boxes: int
    cuts: tuple[tuple[tuple[int, int, int], ...] | None, ...]
    """From the root down, each box before its parts: choices with the first and the last place that the first part keeps, counted from 0 in
    ascending order of the options, of which each takes off what is below and above; None for a box that is not cut."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """Boxes of designs were bounded and cut where necessary; the tree of cuts can be repeated."""

    by: str
    tree: Tree
    form: Literal["boxes"] = "boxes"


@dataclass(frozen=True, slots=True)
class Relaxation:
    """An integer model that under-estimates every design, solved and tightened repeatedly."""

    solver: str
    """Name and version of the solver; empty if none was needed."""
    rounds: int
    """Number of solves."""
    tangents: int
    """Number of tangents of the step time of a plan at a chip."""
    form: str
    """Name of the form, as in `formulation.codesign.forms`."""
    plans: int
    """Plans in the model; the others are excluded by the best chip, or by multipliers on the budgets."""


@dataclass(frozen=True, slots=True)
class Relaxed:
    """A relaxation was solved; its bound rests on the solver's report."""

    by: str
    relaxation: Relaxation
    form: Literal["relaxed"] = "relaxed"


@dataclass(frozen=True, slots=True)
class WholeProof:
    """Certificate that no design is below a bound (solvers.codesign.linear.whole)."""

    screens: tuple[tuple[str, ...], ...]
    """What prices on the budgets rule out, one after another: a line for each plan that is left, in the order of the question, with the
    places of the literals of chips at which it has a tangent, its prices of the budgets and the shares of its tangents."""
    rows: tuple[tuple[int, ...], ...]
    """Of the integer model: 0 for a tangent and 1 for a single chip, a plan among those that are left, and the places of the literals of
    a chip."""
    scale: int
    """Denominator of the multipliers."""
    steps: tuple[str, ...]
    """Tree of branches, and leaves with multipliers of the rows (formulation.certificate.packed); empty if no plan is left."""


@dataclass(frozen=True, slots=True)
class Exact:
    """A relaxation was solved, and exact integer arithmetic verifies its bound."""

    by: str
    relaxation: Relaxation
    whole: WholeProof
    form: Literal["exact"] = "exact"


@dataclass(frozen=True, slots=True)
class Parts:
    """The result follows from the results of narrower questions, each with its own proof."""

    by: str
    form: Literal["parts"] = "parts"


@dataclass(frozen=True, slots=True)
class MultiplierBound:
    """An integer multiplier per block, for placements with loads within a limit. A check recomputes which sums of multipliers
    one device can hold.
    """

    by: str
    limit: float
    """Milliseconds; nothing above this is proved."""
    prices: tuple[int, ...]
    form: Literal["multipliers"] = "multipliers"


@dataclass(frozen=True, slots=True)
class Surrounded:
    """A block, and placements within a limit: its device pays at least the cheapest cut around it."""

    by: str
    limit: float
    block: int
    form: Literal["surrounded"] = "surrounded"


@dataclass(frozen=True, slots=True)
class Swept:
    """Rounds of the dynamic program along the blocks, for placements within a limit."""

    by: str
    limit: float
    states: int
    """Number of states in all rounds together, equal at every repetition."""
    form: Literal["swept"] = "swept"


@dataclass(frozen=True, slots=True)
class Branched:
    """A branch-and-bound tree of the integer model of all placements within a limit, in exact integers."""

    by: str
    limit: float
    """Milliseconds; nothing above this is proved."""
    scale: int
    """Denominator of the multipliers."""
    steps: tuple[str, ...]
    """Branches, and leaves with multipliers of the rows (formulation.certificate.packed)."""
    form: Literal["branched"] = "branched"


@dataclass(frozen=True, slots=True)
class OnPath:
    """The longest data path by one kind of figure, and the cost of its pieces."""

    by: str
    longest: Literal["least", "cpu", "size", "transfer", "cuts"]
    """`least`: by the smaller of each node's times, which is the bound. `cuts`: the nodes that all data pass, with all that is between."""
    beside: int
    """Number of ends of pieces, from the first on, that were sharpened by nodes beside the path."""
    form: Literal["on-path"] = "on-path"


@dataclass(frozen=True, slots=True)
class Tangent:
    """Multipliers of a convex program of bandwidths (formulation.network.program)."""

    shares: tuple[tuple[float, ...], ...]
    """Shares of dimensions in the time of each collective; empty if the program minimises cost."""
    prices: tuple[float, ...]
    """Multipliers of the rows."""


@dataclass(frozen=True, slots=True)
class Tangents:
    """Multipliers that bound a bandwidth program, for every branch over catalogues; they can be re-evaluated."""

    by: str
    branches: tuple[tuple[int, int] | None, ...]
    """A dimension and the last of its options in the first branch, before its two branches; None for a leaf with multipliers."""
    tangents: tuple[Tangent, ...]
    """Of the parts in their order. Of time times cost the first is of the least cost, and each other bounds the time at every cost."""
    form: Literal["tangents"] = "tangents"


@dataclass(frozen=True, slots=True)
class Weighed:
    """Weights of dimensions that bound a collective by the requirements of its chunks (formulation.network.orders)."""

    by: str
    weights: tuple[tuple[tuple[int, ...], ...], ...]
    """Of each number of chunks, and of each set of dimensions with which chunks may begin; none if all choices are enumerated."""
    form: Literal["weighed"] = "weighed"


@dataclass(frozen=True, slots=True)
class Chosen:
    """A tree of choices of changes; each leaf is bounded by a replay of the trace (formulation.traces.tree)."""

    by: str
    steps: str
    """In preorder: the index of the change to branch on, `-` at a leaf."""
    form: Literal["chosen"] = "chosen"


@dataclass(frozen=True, slots=True)
class Integers:
    """A branch-and-bound tree of the integer model of a question, in exact integers (formulation.certificate)."""

    by: str
    scale: int
    """Denominator of the multipliers."""
    steps: tuple[str, ...]
    form: Literal["integers"] = "integers"


@dataclass(frozen=True, slots=True)
class Priced:
    """Prices of budgets, at which a dynamic program along a graph finds no answer below the bound (formulation.layers.frontier)."""

    by: str
    prices: tuple[float, ...]
    """Of the figures with budgets, in units of the objective for a unit of each."""
    form: Literal["priced"] = "priced"


@dataclass(frozen=True, slots=True)
class PricedTree:
    """A tree of branches on strategies of layers, and prices of budgets for each of its leaves (formulation.layers.branches)."""

    by: str
    branches: tuple[tuple[int, int] | None, ...]
    """In preorder: a variable and the strategy that it has in the first branch and not in the second; None for a leaf."""
    prices: tuple[tuple[float, ...], ...]
    """Of the leaves in their order."""
    form: Literal["priced-tree"] = "priced-tree"


@dataclass(frozen=True, slots=True)
class Retained:
    """A tree about the relaxation of rematerialisation (formulation.retention), and what that is made of."""

    by: str
    stages: tuple[int, ...]
    """Stages whose memory is limited."""
    entries: tuple[tuple[int, int], ...]
    """Nodes and stages in which they enter memory."""
    depth: int
    """Longest path of repeated inputs."""
    limit: int | None
    """Only schedules whose repetitions take less time, in units of the question, are in the relaxation; None for all."""
    scale: int
    """Denominator of the multipliers."""
    steps: tuple[str, ...]
    form: Literal["retained"] = "retained"


@dataclass(frozen=True, slots=True)
class MemoryLevel:
    """A batch, or a budget in bytes, and the time of repetitions that is proved there."""

    at: int
    least: int | None
    """In units of the question; None where nothing fits."""
    proof: Retained | RecomputableBound


@dataclass(frozen=True, slots=True)
class MemoryLevels:
    """Proofs for some batches or budgets, which bound all larger batches and all smaller budgets."""

    by: str
    levels: tuple[MemoryLevel, ...]
    form: Literal["memory-levels"] = "memory-levels"


@dataclass(frozen=True, slots=True)
class PricedTiers:
    """Prices of memory that bound embedding tables on devices, alone or in a search of all plans (formulation.embeddings)."""

    by: str
    limit: float | None
    """Milliseconds from which on a device with a single piece is left out of the prices' sum, as nothing above this is proved."""
    prices: tuple[float, ...]
    """Milliseconds for a byte of each tier."""
    weights: tuple[tuple[int, int, int], ...] = ()
    """Phase, type of tables, and the weight of the devices with their largest pieces beside the mean one, in parts of 2^20."""
    nodes: int = 0
    """Of the search; 0 where the prices alone prove the bound."""
    form: Literal["priced-tiers"] = "priced-tiers"


@dataclass(frozen=True, slots=True)
class PhaseLeaf:
    """Prices, weights and floors that bound the plans of a region, as in PricedTiers."""

    prices: tuple[float, ...]
    weights: tuple[tuple[int, int, int], ...]
    floors: tuple[int, ...]
    """Weight of the least time of the region in each phase, in parts of 2^20."""


@dataclass(frozen=True, slots=True)
class PricedPhases:
    """A tree of regions of the slowest device of each phase, with prices for each leaf (formulation.embeddings)."""

    by: str
    cuts: tuple[tuple[int, float] | None, ...]
    """In preorder: a phase, and the milliseconds below which its slowest device stays in the first half; None for a leaf."""
    leaves: tuple[PhaseLeaf, ...]
    form: Literal["priced-phases"] = "priced-phases"


@dataclass(frozen=True, slots=True)
class PricedCounts:
    """For each number of devices from the fewest on, a proof that embedding tables have no plan on them (solvers.embeddings.judge)."""

    by: str
    tiers: tuple[PricedTiers, ...]
    form: Literal["priced-counts"] = "priced-counts"


@dataclass(frozen=True, slots=True)
class SystemLeaf:
    """A box of choices beside tables: what its tables take at least, None if they have no plan; without a proof it exceeds the budget."""

    bound: float | None
    proof: PricedTiers | PricedPhases | None


@dataclass(frozen=True, slots=True)
class PricedSystems:
    """A tree of boxes of nodes and dense layers, with a bound on embedding tables for each leaf (solvers.embeddings.systems)."""

    by: str
    cuts: tuple[tuple[int, int] | None, ...]
    """In preorder: an axis, and its last place in the first half; None for a leaf."""
    leaves: tuple[SystemLeaf, ...]
    form: Literal["priced-systems"] = "priced-systems"


@dataclass(frozen=True, slots=True)
class ChipPrices:
    """A tree of prices for the layers on one chip; a single leaf has no branches but None."""

    chip: int
    branches: tuple[tuple[int, int] | None, ...]
    prices: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class PricedChips:
    """Prices of budgets that exclude chips, and trees for the chips that are left (instances.layers.chips)."""

    by: str
    screens: tuple[tuple[float, ...], ...]
    """Prices in SI units, in the order of the budgets; at each of them every chip is bounded by its cheapest formats."""
    chips: tuple[ChipPrices, ...]
    form: Literal["priced-chips"] = "priced-chips"


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
    | Priced
    | PricedTree
    | PricedChips
    | Retained
    | MemoryLevels
    | PricedTiers
    | PricedPhases
    | PricedSystems
    | PricedCounts
)
"""Any proof of a bound."""
