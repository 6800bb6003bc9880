"""Cost of one time step of an LSTM language model on one device: embedding, cell and softmax, forward and backward.

B batch of a replica, D hidden size, G gates, V words, P bytes a value, all split over the ranks of a grid. Element-wise work as counted
in the public DeepFlow code (arXiv 2211.03309), but with its bytes moved by DRAM:

                      FLOP                  bytes                      kernels
    cell forward      5 B G D               13 P B G D                 5
    cell backward     5 B D + 2 G D^2       13 P B D + 6 P G D^2       5        the second terms add up the gradients of the weights
    softmax forward   B (3V - 1)            7 P B V                    4
    softmax backward  5 B V                 11 P B V                   4
    embedding         0                     2 P B D                    1        each way; forward the inputs also come from the host

The products are B x 2D x GD in a cell (Hochreiter, Schmidhuber 1997: input and state side by side) and B x D x V before the softmax.
"""

from collections.abc import Sequence
from functools import reduce

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.bill import Bill, Items, PlanCosts, price_table, total
from crossopt.crossflow.collectives import all_to_all, send
from crossopt.crossflow.hardware import Cluster, Hardware, devices_in, within_power
from crossopt.crossflow.kernels.distributed_product import (
    Grid,
    Share,
    backward,
    exchange_cost,
    forward,
    gather_output_gradient,
    grid,
    products_cost,
    publish_weights,
    reduce_gradients,
    transpose_weights,
)
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.roofline import NOTHING, Cost, Product, stream_cost
from crossopt.crossflow.workload import Lstm

HOST_BANDWIDTH = 12.4 * 2**30
"""Bytes per second of inputs from the host: 16 lanes of PCIe 3.0, as in DeepFlow."""

_GATE_OPERANDS = 4.0
"""Gate-sized operands of element-wise operations that lie on another rank if the gates are split."""


@dataclass(frozen=True, slots=True)
class Work:
    """Work of one device by kind."""

    products: Cost = NOTHING
    pointwise: Cost = NOTHING
    exchange: Cost = NOTHING
    host_copy: Cost = NOTHING

    def __add__(self, other: "Work") -> "Work":
        return Work(
            self.products + other.products,
            self.pointwise + other.pointwise,
            self.exchange + other.exchange,
            self.host_copy + other.host_copy,
        )

    def times(self, count: Real) -> "Work":
        return Work(self.products.times(count), self.pointwise.times(count), self.exchange.times(count), self.host_copy.times(count))

    def total(self) -> Cost:
        return self.products + self.pointwise + self.exchange + self.host_copy

    def seconds(self, host: Real) -> Real:
        """Seconds of the work, at least its kernels times `host` seconds of launch time."""
        total = self.total()
        return np.maximum(total.time, host * total.kernels)


def cell_product(model: Lstm, batch: float) -> Product:
    return Product(batch, 2.0 * model.hidden, float(model.gates * model.hidden))


def softmax_product(model: Lstm, batch: float) -> Product:
    return Product(batch, float(model.hidden), float(model.vocabulary))


def embedding_product(model: Lstm, batch: float) -> Product:
    """The embedding as a product of one-hot rows with the table: communication of a product, arithmetic of a gather."""
    return Product(batch, float(model.vocabulary), float(model.hidden))


def cell_forward(model: Lstm, batch: float, cut: Grid, hardware: Hardware) -> Work:
    gates = batch * model.gates * model.hidden / cut.ranks
    pointwise = stream_cost(13.0 * model.value_bytes * gates, 5.0 * gates, hardware, 5.0)
    share = forward(cell_product(model, batch), model.value_bytes, cut)
    return _work(_with_gates(share, model, batch, cut), pointwise, model, hardware)


def cell_backward(model: Lstm, batch: float, cut: Grid, hardware: Hardware) -> Work:
    size, units = model.value_bytes, batch * model.hidden / cut.ranks
    weights = 2.0 * model.hidden * model.gates * model.hidden / cut.ranks
    pointwise = stream_cost(13.0 * size * units + 3.0 * size * weights, 5.0 * units + weights, hardware, 5.0)
    share = backward(cell_product(model, batch), size, cut)
    return _work(_with_gates(share, model, batch, cut), pointwise, model, hardware)


def softmax_forward(model: Lstm, batch: float, cut: Grid, hardware: Hardware) -> Work:
    logits = batch * model.vocabulary / cut.ranks
    pointwise = stream_cost(7.0 * model.value_bytes * logits, 3.0 * logits - batch / cut.ranks, hardware, 4.0)
    return _work(forward(softmax_product(model, batch), model.value_bytes, cut), pointwise, model, hardware)


def softmax_backward(model: Lstm, batch: float, cut: Grid, hardware: Hardware) -> Work:
    logits = batch * model.vocabulary / cut.ranks
    pointwise = stream_cost(11.0 * model.value_bytes * logits, 5.0 * logits, hardware, 4.0)
    return _work(backward(softmax_product(model, batch), model.value_bytes, cut), pointwise, model, hardware)


def embedding_forward(model: Lstm, batch: float, cut: Grid, hardware: Hardware) -> Work:
    size = _embedding_bytes(model, batch, cut)
    exchanges = forward(embedding_product(model, batch), model.value_bytes, cut).exchanges
    copy = Cost(size / HOST_BANDWIDTH, 0.0, 0.0)
    return Work(pointwise=stream_cost(size, 0.0, hardware), exchange=exchange_cost(exchanges, hardware.links), host_copy=copy)


def embedding_backward(model: Lstm, batch: float, cut: Grid, hardware: Hardware) -> Work:
    gather = gather_output_gradient(embedding_product(model, batch), model.value_bytes, cut)
    pointwise = stream_cost(_embedding_bytes(model, batch, cut), 0.0, hardware)
    return Work(pointwise=pointwise, exchange=exchange_cost((gather,), hardware.links))


def _work(share: Share, pointwise: Cost, model: Lstm, hardware: Hardware) -> Work:
    return Work(products_cost(share, model.value_bytes, hardware), pointwise, exchange_cost(share.exchanges, hardware.links))


def _with_gates(share: Share, model: Lstm, batch: float, cut: Grid) -> Share:
    """Adds 4 P B G D bytes over all ranks: the gates of one unit lie on different ranks if columns are split."""
    gates = batch * model.gates * model.hidden / cut.ranks
    return Share(share.products, (*share.exchanges, all_to_all(_GATE_OPERANDS * model.value_bytes * gates, cut.output_members)))


def _embedding_bytes(model: Lstm, batch: float, cut: Grid) -> float:
    return 2.0 * model.value_bytes * batch * model.hidden / cut.ranks


# Which parts of an LSTM each device of a chain holds, and the bytes that they need.
#
# Of a replica with batch B, P bytes a value, S steps, D hidden size, G gates, V words, before division over the ranks of a grid:
#
#     weights      (2D + 1) G D a layer, (D + 1) V before the softmax, V D in the embedding
#     activations  P S [ B G D (1 + 9/2) a layer, B V (1 + 2) + B in the softmax, B D in the embedding ]   (counts of DeepFlow)
#
# The rows-columns cut holds the weights of the products twice, K x N/c and K/c x N, as soon as there are columns.


@dataclass(frozen=True, slots=True)
class DeviceParts:
    """Parts of the network on one device of the chain."""

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
        """Values stored for the backward pass."""
        cells = self.cells * 5.5 * batch * model.gates * model.hidden
        softmax = self.softmax * (3.0 * batch * model.vocabulary + batch)
        return model.sequence * (cells + softmax + self.embedding * batch * model.hidden)

    def widest(self, model: Lstm) -> float:
        """Columns of the widest result."""
        widths = (self.cells > 0, model.gates * model.hidden), (self.softmax, model.vocabulary), (self.embedding, model.hidden)
        return float(max(present * width for present, width in widths))


def split_over_chain(model: Lstm, plan: KernelPlan) -> tuple[DeviceParts, ...]:
    """Parts on each device, input first: cells in equal runs, embedding on the first device, softmax on the last."""
    devices = plan.cell_devices
    cells = [(device + 1) * model.layers // devices - device * model.layers // devices for device in range(devices)]
    if plan.layers > devices:
        cells = [0, *cells, 0]
    last = len(cells) - 1
    return tuple(DeviceParts(count, device == 0, device == last) for device, count in enumerate(cells))


def memory(model: Lstm, plan: KernelPlan) -> Items:
    """Bytes by use on the fullest device."""
    return max((_memory(model, plan, part) for part in split_over_chain(model, plan)), key=lambda items: float(total(items)))


def _memory(model: Lstm, plan: KernelPlan, part: DeviceParts) -> Items:
    batch, ranks = model.global_batch / plan.data, plan.rows * plan.columns
    products, table = part.product_weights(model), part.table_weights(model)
    weight_ranks = plan.rows if plan.split == "inner" else plan.columns
    return (
        ("weights", model.value_bytes * (products + table) / weight_ranks),
        ("transposed weights", model.value_bytes * products / plan.columns if plan.columns > 1 else 0.0),
        ("gradients", model.gradient_bytes * (products + table) / ranks),
        ("optimizer", model.optimizer_bytes * (products + table) / ranks),
        ("activations", model.value_bytes * part.activations(model, batch) / ranks),
        ("exchange buffer", model.value_bytes * batch * part.widest(model) * _gathered(plan)),
    )


def _gathered(plan: KernelPlan) -> float:
    """The largest share of a result that one exchange brings together: over columns, over rows, or partial sums of all of it."""
    if plan.split == "inner":
        return 1.0
    return max(1.0 / plan.rows if plan.columns > 1 else 0.0, 1.0 / plan.columns if plan.rows > 1 else 0.0)


# The price of training an LSTM language model: step time, memory and energy of one kernel plan, for one device or an array of devices.
#
# The network is unrolled over S steps and laid on a chain of devices. Each device works in one fixed order, step by step and within a step
# from the input to the softmax (backward in reverse), which keeps every precedence and never holds back the next device. A chain of devices
# and links with the same work in every step is a flow shop of equal jobs: device d is done after
#
#     finish_d = sum of one step's work and transfers up to d + (S - 1) * the longest of them
#
# Only + and max appear, so the step time falls when any operation does. Forward and backward chains follow each other; a device reduces and
# updates its weights when its own backward chain is done.


@dataclass(frozen=True, slots=True)
class Finish:
    """Work on the weights after the last backward step."""

    reduction: Cost
    update: Cost
    publication: Cost

    def __add__(self, other: "Finish") -> "Finish":
        return Finish(self.reduction + other.reduction, self.update + other.update, self.publication + other.publication)

    def total(self) -> Cost:
        return self.reduction + self.update + self.publication


@dataclass(frozen=True, slots=True)
class Chain:
    """Work of each device of the chain, input first: of one time step, and after the last one."""

    forward: tuple[Work, ...]
    backward: tuple[Work, ...]
    finish: tuple[Finish, ...]
    transfer: Cost
    """Transfer of one time step's activations to the next device, by each rank."""

    def __len__(self) -> int:
        return len(self.finish)


def bill(model: Lstm, hardware: Hardware, cluster: Cluster, plan: KernelPlan) -> Bill:
    """The cost breakdown of a plan, which must satisfy `crossflow.kernels.kernel_plan.broken_rules`."""
    cut = grid(plan, cluster)
    chain = chain_of(model, hardware, plan, cut)
    free, work = step_time(chain, model.sequence, hardware), step_energy(chain, model.sequence, cut.ranks * plan.data)
    time = within_power(free, work, plan.devices, hardware)
    return Bill(
        step_time=time,
        time=(*_breakdown(chain, model.sequence, hardware, free), ("power limit", time - free)),
        memory=memory(model, plan),
        energy=work + plan.devices * (hardware.idle_power * time),
        flops=step_flops(model),
    )


def price(model: Lstm, hardware: Hardware, cluster: Cluster, plans: Sequence[KernelPlan]) -> PlanCosts:
    """Costs of every plan on every device."""
    return price_table((bill(model, hardware, cluster, plan) for plan in plans), devices_in(hardware))


def step_flops(model: Lstm) -> float:
    """FLOPs of the products of one step: 2 forward and 4 backward for each weight and token, 6 B S (2 G D^2 L + D V)."""
    weights = 2.0 * model.gates * model.hidden * model.hidden * model.layers + float(model.hidden) * model.vocabulary
    return 6.0 * model.tokens * weights


def step_time(chain: Chain, steps: int, hardware: Hardware) -> Real:
    """Seconds of one training step: forward chain, backward chain, the last device to finish, and what lies outside the model."""
    host, transfer = hardware.efficiency.host, chain.transfer.time
    forward = finish_times([work.seconds(host) for work in chain.forward], transfer, steps)[-1]
    backward = finish_times([work.seconds(host) for work in reversed(chain.backward)], transfer, steps)
    ends = [end + finish.total().time for end, finish in zip(backward, reversed(chain.finish), strict=True)]
    return (forward + reduce(np.maximum, ends)) + hardware.efficiency.step


def finish_times(work: Sequence[Real], transfer: Real, steps: int) -> tuple[Real, ...]:
    """Time at which each device of a chain has done `steps` equal steps, with a transfer to the next device after each."""
    passed, slowest = work[0], work[0]
    ends = [passed + (steps - 1.0) * slowest]
    for seconds in work[1:]:
        passed = passed + (transfer + seconds)
        slowest = np.maximum(np.maximum(slowest, transfer), seconds)
        ends.append(passed + (steps - 1.0) * slowest)
    return tuple(ends)


def step_energy(chain: Chain, steps: int, ranks: int) -> Real:
    """Joules of all work and communication; `ranks` devices share each place of the chain."""
    once = reduce(Work.__add__, (*chain.forward, *chain.backward)).total()
    last = reduce(Finish.__add__, chain.finish).total()
    sent = chain.transfer.times(2.0 * (len(chain) - 1))
    return ranks * ((once + sent).energy * float(steps) + last.energy)


def chain_of(model: Lstm, hardware: Hardware, plan: KernelPlan, cut: Grid) -> Chain:
    """Work of every device of the chain."""
    batch = model.global_batch / plan.data
    operations = ((cell_forward, softmax_forward, embedding_forward), (cell_backward, softmax_backward, embedding_backward))
    forward, backward = (tuple(operation(model, batch, cut, hardware) for operation in direction) for direction in operations)
    parts = split_over_chain(model, plan)
    message = model.value_bytes * batch * model.hidden / cut.ranks
    return Chain(
        forward=tuple(_step_work(part, *forward) for part in parts),
        backward=tuple(_step_work(part, *backward) for part in parts),
        finish=tuple(_finish(model, part, cut, hardware) for part in parts),
        transfer=exchange_cost((send(message, cut.layer_members),), hardware.links),
    )


def _step_work(part: DeviceParts, cell: Work, softmax: Work, embedding: Work) -> Work:
    """Work of one time step on a device with these parts of the network."""
    return cell.times(float(part.cells)) + softmax.times(float(part.softmax)) + embedding.times(float(part.embedding))


def _finish(model: Lstm, part: DeviceParts, cut: Grid, hardware: Hardware) -> Finish:
    """Gradient reduction over replicas, clipping (4 FLOP, 3 values per weight), update (3 FLOP, 4 values, optimizer state), and
    publication. Publication gathers the weights and converts them to the layout of backward products.
    """
    weights = part.product_weights(model) + part.table_weights(model)
    own = weights / cut.ranks
    size = own * (7.0 * model.value_bytes + 2.0 * model.optimizer_bytes)
    published = publish_weights(model.value_bytes * weights, cut, hardware.links)
    transposed = transpose_weights(model.value_bytes * part.product_weights(model), cut, hardware.links)
    return Finish(
        reduction=reduce_gradients(model.gradient_bytes * weights, cut, hardware.links),
        update=stream_cost(size, 7.0 * own, hardware, 2.0),
        publication=published + transposed,
    )


def _breakdown(chain: Chain, steps: int, hardware: Hardware, time: Real) -> Items:
    """Mean seconds of a device by use over the chain; the rest of the step is spent waiting for others and their messages."""
    once, last = reduce(Work.__add__, (*chain.forward, *chain.backward)), reduce(Finish.__add__, chain.finish)
    host = hardware.efficiency.host
    launches: Real = 0.0
    for work in (*chain.forward, *chain.backward):
        launches = launches + (work.seconds(host) - work.total().time)
    busy = (
        ("matrix products", steps * once.products.time),
        ("point-wise", steps * once.pointwise.time),
        ("exchange", steps * once.exchange.time),
        ("host copy", steps * once.host_copy.time),
        ("launch", steps * launches),
        ("gradient reduction", last.reduction.time),
        ("weight update", last.update.time),
        ("weight exchange", last.publication.time),
    )
    known = (*((name, seconds / len(chain)) for name, seconds in busy), ("overhead", hardware.efficiency.step))
    waiting = np.maximum(time - total(known), 0.0) if len(chain) > 1 else 0.0
    return (*known, ("waiting", waiting))
