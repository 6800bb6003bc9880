"""The price of training an LSTM language model: step time, memory and energy of one kernel plan, for one device or an array of devices.

The network is unrolled over S steps and laid on a chain of devices. Each device works in one fixed order, step by step and within a step
from the input to the softmax (backward in reverse), which keeps every precedence and never holds back the next device. A chain of devices
and links with the same work in every step is a flow shop of equal jobs: device d is done after

    finish_d = sum of one step's work and transfers up to d + (S - 1) * the longest of them

Only + and max appear, so the step time falls when any operation does. Forward and backward chains follow each other; a device reduces and
updates its weights when its own backward chain is done.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.bill import Bill, Items, Prices, price_table, total
from crossopt.crossflow.collectives import send
from crossopt.crossflow.hardware import Cluster, Hardware, devices_in, within_power
from crossopt.crossflow.kernels.distributed_product import Grid, exchange_cost, grid, publish_weights, reduce_gradients, transpose_weights
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.kernels.lstm_memory import Held, hold_on_chain, memory
from crossopt.crossflow.kernels.lstm_operations import (
    Work,
    cell_backward,
    cell_forward,
    embedding_backward,
    embedding_forward,
    softmax_backward,
    softmax_forward,
)
from crossopt.crossflow.roofline import Cost, stream_cost
from crossopt.crossflow.workload import Lstm


@dataclass(frozen=True, slots=True)
class Finish:
    """What a device does with its weights after its last backward step."""

    reduction: Cost
    update: Cost
    publication: Cost

    def __add__(self, other: "Finish") -> "Finish":
        return Finish(self.reduction + other.reduction, self.update + other.update, self.publication + other.publication)

    def total(self) -> Cost:
        return self.reduction + self.update + self.publication


@dataclass(frozen=True, slots=True)
class Chain:
    """The work of each device of the chain, input first: of one step, and after the last one."""

    forward: tuple[Work, ...]
    backward: tuple[Work, ...]
    finish: tuple[Finish, ...]
    transfer: Cost
    """Of one step's activations to the next device, by each rank."""

    def __len__(self) -> int:
        return len(self.finish)


def bill(model: Lstm, hardware: Hardware, cluster: Cluster, plan: KernelPlan) -> Bill:
    """The itemised price of a plan, which must satisfy `crossflow.kernels.kernel_plan.broken_rules`."""
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


def price(model: Lstm, hardware: Hardware, cluster: Cluster, plans: Sequence[KernelPlan]) -> Prices:
    """Prices of every plan on every device."""
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
    """When each device of a chain is done with `steps` equal steps, a transfer to the next device after each."""
    passed, slowest = work[0], work[0]
    ends = [passed + (steps - 1.0) * slowest]
    for seconds in work[1:]:
        passed = passed + (transfer + seconds)
        slowest = np.maximum(np.maximum(slowest, transfer), seconds)
        ends.append(passed + (steps - 1.0) * slowest)
    return tuple(ends)


def step_energy(chain: Chain, steps: int, ranks: int) -> Real:
    """Joules of all work and exchanges; `ranks` devices share each place of the chain."""
    once = reduce(Work.__add__, (*chain.forward, *chain.backward)).total()
    last = reduce(Finish.__add__, chain.finish).total()
    sent = chain.transfer.times(2.0 * (len(chain) - 1))
    return ranks * ((once + sent).energy * float(steps) + last.energy)


def chain_of(model: Lstm, hardware: Hardware, plan: KernelPlan, cut: Grid) -> Chain:
    """The work of every device of the chain."""
    batch = model.global_batch / plan.data
    operations = (
        (cell_forward, softmax_forward, embedding_forward),
        (cell_backward, softmax_backward, embedding_backward),
    )
    forward, backward = (tuple(operation(model, batch, cut, hardware) for operation in direction) for direction in operations)
    held = hold_on_chain(model, plan)
    message = model.value_bytes * batch * model.hidden / cut.ranks
    return Chain(
        forward=tuple(_held_work(part, *forward) for part in held),
        backward=tuple(_held_work(part, *backward) for part in held),
        finish=tuple(_finish(model, part, cut, hardware) for part in held),
        transfer=exchange_cost((send(message, cut.layer_members),), hardware.links),
    )


def _held_work(held: Held, cell: Work, softmax: Work, embedding: Work) -> Work:
    """One step on a device that holds these parts of the network."""
    return cell.times(float(held.cells)) + softmax.times(float(held.softmax)) + embedding.times(float(held.embedding))


def _finish(model: Lstm, held: Held, cut: Grid, hardware: Hardware) -> Finish:
    """Reduction over the replicas, clipping (4 FLOP and 3 values a weight), update (3 FLOP, 4 values, optimizer state), and publication."""
    weights = held.product_weights(model) + held.table_weights(model)
    own = weights / cut.ranks
    size = own * (7.0 * model.value_bytes + 2.0 * model.optimizer_bytes)
    published = publish_weights(model.value_bytes * weights, cut, hardware.links)
    transposed = transpose_weights(model.value_bytes * held.product_weights(model), cut, hardware.links)
    return Finish(
        reduction=reduce_gradients(model.gradient_bytes * weights, cut, hardware.links),
        update=stream_cost(size, 7.0 * own, hardware, 2.0),
        publication=published + transposed,
    )


def _breakdown(chain: Chain, steps: int, hardware: Hardware, time: Real) -> Items:
    """Seconds of a device by use, on average over the chain; what is left of the step it waits for others and their messages."""
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
