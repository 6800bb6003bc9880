"""What one device does in one time step of an LSTM language model: embedding, cell and softmax, forward and backward.

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

from dataclasses import dataclass

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.collectives import all_to_all
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.kernels.distributed_product import (
    Grid,
    Share,
    backward,
    exchange_cost,
    forward,
    gather_output_gradient,
    products_cost,
)
from crossopt.crossflow.roofline import NOTHING, Cost, Product, stream_cost
from crossopt.crossflow.workload import Lstm

HOST_BANDWIDTH = 12.4 * 2**30
"""Bytes per second at which inputs come from the host: a 16-lane PCIe 3.0 slot, as DeepFlow has it."""

_GATE_OPERANDS = 4.0
"""Gate-sized operands of the element-wise operations that lie on another rank when the gates are split."""


@dataclass(frozen=True, slots=True)
class Work:
    """Some work of one device, by kind."""

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
        """Time of the work, but at least what the host needs to launch its kernels at `host` seconds each."""
        total = self.total()
        return np.maximum(total.time, host * total.kernels)


def cell_product(model: Lstm, batch: float) -> Product:
    return Product(batch, 2.0 * model.hidden, float(model.gates * model.hidden))


def softmax_product(model: Lstm, batch: float) -> Product:
    return Product(batch, float(model.hidden), float(model.vocabulary))


def embedding_product(model: Lstm, batch: float) -> Product:
    """The embedding as a product of one-hot rows with the table: its exchanges are those of a product, its arithmetic is a gather."""
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
    words = batch * model.vocabulary / cut.ranks
    pointwise = stream_cost(7.0 * model.value_bytes * words, 3.0 * words - batch / cut.ranks, hardware, 4.0)
    return _work(forward(softmax_product(model, batch), model.value_bytes, cut), pointwise, model, hardware)


def softmax_backward(model: Lstm, batch: float, cut: Grid, hardware: Hardware) -> Work:
    words = batch * model.vocabulary / cut.ranks
    pointwise = stream_cost(11.0 * model.value_bytes * words, 5.0 * words, hardware, 4.0)
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
    """And 4 P B G D bytes over all ranks: the gates of one unit lie on different ranks where the columns of the result are split."""
    gates = batch * model.gates * model.hidden / cut.ranks
    return Share(share.products, (*share.exchanges, all_to_all(_GATE_OPERANDS * model.value_bytes * gates, cut.output_members)))


def _embedding_bytes(model: Lstm, batch: float, cut: Grid) -> float:
    return 2.0 * model.value_bytes * batch * model.hidden / cut.ranks
