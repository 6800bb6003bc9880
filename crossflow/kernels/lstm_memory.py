"""Which parts of an LSTM each device of a chain holds, and the bytes that they need.

Of a replica with batch B, P bytes a value, S steps, D hidden size, G gates, V words, before division over the ranks of a grid:

    weights      (2D + 1) G D a layer, (D + 1) V before the softmax, V D in the embedding
    activations  P S [ B G D (1 + 9/2) a layer, B V (1 + 2) + B in the softmax, B D in the embedding ]   (counts of DeepFlow)

The rows-columns cut holds the weights of the products twice, K x N/c and K/c x N, as soon as there are columns.
"""

from dataclasses import dataclass

from crossopt.crossflow.bill import Items, total
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.workload import Lstm


@dataclass(frozen=True, slots=True)
class Held:
    """The parts of the network on one device of the chain."""

    cells: int
    embedding: bool
    softmax: bool

    def product_weights(self, model: Lstm) -> float:
        """Weights of matrix products, with biases."""
        cell = (2.0 * model.hidden + 1.0) * model.gates * model.hidden
        return self.cells * cell + self.softmax * (model.hidden + 1.0) * model.vocabulary

    def table_weights(self, model: Lstm) -> float:
        return self.embedding * float(model.vocabulary) * model.hidden

    def activations(self, model: Lstm, batch: float) -> float:
        """Values kept for the backward pass."""
        cells = self.cells * 5.5 * batch * model.gates * model.hidden
        softmax = self.softmax * (3.0 * batch * model.vocabulary + batch)
        return model.sequence * (cells + softmax + self.embedding * batch * model.hidden)

    def widest(self, model: Lstm) -> float:
        """Columns of the widest result."""
        widths = (self.cells > 0, model.gates * model.hidden), (self.softmax, model.vocabulary), (self.embedding, model.hidden)
        return float(max(present * width for present, width in widths))


def hold_on_chain(model: Lstm, plan: KernelPlan) -> tuple[Held, ...]:
    """The parts on each device, input first: cells in equal runs, embedding on the first device, softmax on the last."""
    devices = plan.cell_devices
    cells = [(place + 1) * model.layers // devices - place * model.layers // devices for place in range(devices)]
    if plan.layers > devices:
        cells = [0, *cells, 0]
    last = len(cells) - 1
    return tuple(Held(count, place == 0, place == last) for place, count in enumerate(cells))


def memory(model: Lstm, plan: KernelPlan) -> Items:
    """Bytes by use on the fullest device."""
    return max((_memory(model, plan, held) for held in hold_on_chain(model, plan)), key=lambda items: float(total(items)))


def _memory(model: Lstm, plan: KernelPlan, held: Held) -> Items:
    batch, ranks = model.global_batch / plan.data, plan.rows * plan.columns
    products, table = held.product_weights(model), held.table_weights(model)
    weight_ranks = plan.rows if plan.split == "inner" else plan.columns
    return (
        ("weights", model.value_bytes * (products + table) / weight_ranks),
        ("transposed weights", model.value_bytes * products / plan.columns if plan.columns > 1 else 0.0),
        ("gradients", model.gradient_bytes * (products + table) / ranks),
        ("optimizer", model.optimizer_bytes * (products + table) / ranks),
        ("activations", model.value_bytes * held.activations(model, batch) / ranks),
        ("exchange buffer", model.value_bytes * batch * held.widest(model) * _gathered(plan)),
    )


def _gathered(plan: KernelPlan) -> float:
    """The largest share of a result that one exchange brings together: over columns, over rows, or partial sums of all of it."""
    if plan.split == "inner":
        return 1.0
    return max(1.0 / plan.rows if plan.columns > 1 else 0.0, 1.0 / plan.columns if plan.rows > 1 else 0.0)
