"""Parallel plans for the matrix products of an LSTM, or for one product alone.

A product C[M, N] = A[M, K] B[K, N] is cut in one of two ways (Ardalani et al. 2022, arXiv 2211.03309, "kernel parallelism"):
    rows-columns    M over `rows` ranks and N over `columns` ranks
    inner           K over `rows` ranks, whose partial results are added up
Beside it, the batch is split over `data` replicas and the network's depth over `layers` devices.
"""

from typing import Literal, get_args

from crossopt.crossflow.records import dataclass
from crossopt.crossflow.workload import Gemm, Lstm

Split = Literal["rows-columns", "inner"]
SPLITS: tuple[Split, ...] = get_args(Split)


@dataclass(frozen=True, slots=True)
class KernelPlan:
    """One parallel plan. The product of rows, columns, data and layers is the number of devices."""

    split: Split = "rows-columns"
    rows: int = 1
    """Ranks over the rows of each product, or over its inner dimension if the split is `inner`."""
    columns: int = 1
    data: int = 1
    layers: int = 1
    """Devices in a chain over the depth. Of two, each holds half the cells; of more, the ends hold only embedding and softmax."""

    @property
    def devices(self) -> int:
        return self.rows * self.columns * self.data * self.layers

    @property
    def cell_devices(self) -> int:
        """Number of devices in the chain that hold cells."""
        return self.layers if self.layers <= 2 else self.layers - 2

    def __str__(self) -> str:
        ranks = "inner" if self.split == "inner" else "rows"
        degrees = ((ranks, self.rows), ("columns", self.columns), ("data", self.data), ("layers", self.layers))
        return " · ".join(f"{name} {degree}" for name, degree in degrees if degree > 1) or "undivided"


Rule = tuple[str, bool]


def broken_rules(workload: Lstm | Gemm, plan: KernelPlan, devices: int) -> tuple[str, ...]:
    """Rules that this plan breaks; empty if it is valid."""
    degrees = (plan.rows, plan.columns, plan.data, plan.layers)
    if plan.split not in SPLITS:
        return (f"the split is one of {', '.join(SPLITS)}",)
    if min(degrees) < 1:
        return ("rows, columns, data and layers are at least 1",)
    rules = _lstm_rules(workload, plan) if isinstance(workload, Lstm) else _gemm_rules(workload, plan)
    return tuple(sentence for sentence, holds in (*_shape_rules(plan, devices), *rules) if not holds)


def _shape_rules(plan: KernelPlan, devices: int) -> tuple[Rule, ...]:
    """The last two rules leave one name for each design."""
    inner = plan.split == "inner"
    return (
        (f"rows x columns x data x layers is the {devices} devices", plan.devices == devices),
        ("an inner split has no columns", not inner or plan.columns == 1),
        ("an inner split is over at least 2 rows; an undivided product is called rows-columns", not inner or plan.rows > 1),
    )


def _lstm_rules(model: Lstm, plan: KernelPlan) -> tuple[Rule, ...]:
    width, batch = model.gates * model.hidden, model.global_batch
    chain = (
        f"each of the {plan.cell_devices} devices of the chain that hold cells has one of the {model.layers} layers",
        plan.cell_devices <= model.layers,
    )
    share = (f"data divides the global batch {batch}", batch % plan.data == 0)
    if plan.split == "inner":
        return chain, share, (f"rows divides the cell's input width {2 * model.hidden}", 2 * model.hidden % plan.rows == 0)
    return (
        chain,
        share,
        (f"data x rows divides the global batch {batch}", batch % plan.data != 0 or batch % (plan.data * plan.rows) == 0),
        (f"columns divides the width of the gates {width}", width % plan.columns == 0),
    )


def _gemm_rules(gemm: Gemm, plan: KernelPlan) -> tuple[Rule, ...]:
    single = ("one product has rows and columns to split, but neither data nor layers", plan.data == plan.layers == 1)
    if plan.split == "inner":
        return single, (f"rows divides the inner dimension {gemm.depth}", gemm.depth % plan.rows == 0)
    return (
        single,
        (f"rows divides the {gemm.rows} rows", gemm.rows % plan.rows == 0),
        (f"columns divides the {gemm.columns} columns", gemm.columns % plan.columns == 0),
    )
