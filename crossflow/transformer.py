"""The price of transformer training plans on devices: step time, memory, energy, and what offloading to the host costs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from pickle import HIGHEST_PROTOCOL, dumps
from typing import Any, TypeVar

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask, Real, distinct
from crossopt.crossflow.bill import Bill, Items, PlanCosts, Spent, step_items
from crossopt.crossflow.edges import embedding, head
from crossopt.crossflow.hardware import Cluster, Hardware, Link, Memory, devices_in, under_all_sets, within_power
from crossopt.crossflow.hiding import expert_share, paired_share
from crossopt.crossflow.layer import Layer, both_passes, layer
from crossopt.crossflow.layout import Layout, laid_at, lay_out
from crossopt.crossflow.memory import fullest_stage, host_memory, kept_activations, layer_trained, layer_weights, peak_memory
from crossopt.crossflow.parameters import step_flops
from crossopt.crossflow.pipeline import Terms, fullest_slot, mean_slot, slots, step_time
from crossopt.crossflow.plan import BOTH_WAYS, END_STAGES, Plan, Plans, Ranks, rows_of, table
from crossopt.crossflow.recomputation import LAYER, PARTLY, Recomputed, again, layers_again, mean_again, select, stacked
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.replica_exchange import (
    DataExchange,
    Sent,
    busy_seconds,
    data_exchange,
    layers_sent,
    limiting_levels,
    sent_of_plans,
    sent_over,
    transfer_either_side,
    transfer_energy,
    transfer_time,
)
from crossopt.crossflow.roofline import Cost
from crossopt.crossflow.sharding import RESIDENT_LAYERS, Sharding, Weights, in_flight, layers_of, offloads, share_out
from crossopt.crossflow.stages import Split, is_both_ways, split_layers
from crossopt.crossflow.workload import Transformer, layer_kinds

# Time and energy of offloading to host memory; the memory saved is in `crossflow.memory`.
#
# A stage with more than three layers may keep weights, activations or optimizer state of its layers in the host's memory: three layers stay
# on the device, one in use, one coming and one going (as in Calculon, Isaev et al. 2023). The link carries both directions at once and
# works beside the device, so that one layer and microbatch takes
#
#     forward   max(layer, max(weights in, activations out) / bandwidth + latency)
#     backward  max(layer, (weights in + activations in) / bandwidth + latency of each)
#
# and the optimizer max(its own time, state there and back / bandwidth + latency of each layer). Embedding, head, gradients and working set
# stay on the device. Devices that share a memory are served in turn, latency included, as in a pool of ASTRA-sim's: each has its share of
# the bandwidth, and as many times the latency.


@dataclass(frozen=True, slots=True)
class HostTraffic:
    """Seconds of the host link for one layer and microbatch forward and backward, and for the optimizer; and joules per device."""

    forward: Real = 0.0
    backward: Real = 0.0
    optimizer: Real = 0.0
    layer_energy: Real = 0.0
    """Joules for one layer and microbatch, both ways."""
    energy: Real = 0.0
    """Joules for the optimizer."""


def host_traffic(model: Transformer, sharding: Sharding, host: Memory | None) -> HostTraffic:
    """Host traffic of the fullest stage; zero without offloading."""
    if host is None or not np.any(sharding.offload):
        return HostTraffic()
    weights, activations, state, away = host_bytes(model, sharding)
    loads, stores = np.minimum(weights, 1.0), np.minimum(activations, 1.0)  # 1 where something moves: nothing is less than a byte
    return HostTraffic(
        forward=np.maximum(weights, activations) / host.bandwidth + np.maximum(loads, stores) * host.latency,
        backward=(weights + activations) / host.bandwidth + (loads + stores) * host.latency,
        optimizer=state / host.bandwidth + np.minimum(state, 1.0) * away * host.latency,
        layer_energy=2.0 * (weights + activations) * host.energy,
        energy=2.0 * state * host.energy,
    )


def host_bytes(model: Transformer, sharding: Sharding) -> tuple[Real, Real, Real, Real]:
    """Bytes that the fullest stage moves one way: weights and activations of a layer and microbatch, optimizer state of all layers that are
    away; and the number of these."""
    split, layer, trained = layers_of(model, sharding), layer_weights(model, sharding), layer_trained(model, sharding)
    layers = np.maximum(np.maximum(split.first(), split.middle()), split.last())
    flight = in_flight(sharding, 0.0)
    weights = np.where(_moves(sharding, "weights", layers), model.weight_bytes * share_out(sharding, layer, 3), 0.0)
    activations = np.where(_moves(sharding, "activations", layers * flight), kept_activations(model, sharding, layers), 0.0)
    away = np.maximum(layers - RESIDENT_LAYERS, 0.0)
    state = model.optimizer_bytes * share_out(sharding, Weights(away * trained.shared, away * trained.routed), 1)
    return weights, activations, np.where(offloads(sharding, "optimizer"), state, 0.0), away


def _moves(sharding: Sharding, what: str, layers: Real) -> Mask:
    return offloads(sharding, what) & np.greater(layers, RESIDENT_LAYERS)


# Costs of transformer training plans: step time, memory and energy of every plan on every device at once.
#
# Block times depend on few of a plan's choices, and hardware enters through few resources. So each part is computed once per different
# combination of what it depends on, for all devices, and gathered: `price`. `price_directly` has these formulas without tables.

_BLOCK = 1 << 15
"""Number of costs computed together, small enough for all intermediate arrays to fit the processor's cache."""
_FEW, _KEPT = 128, 512
"""Most plans and devices of a table of costs that is kept, some 100 kB with its question; and the number of tables and bills."""
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Parts:
    """Seconds and joules of the parts of a step; columns over plans combine with rows over devices."""

    layer: Layer
    embedding: Cost
    head: Cost
    exchange: DataExchange
    transfer: Real
    either_side: Real
    """Seconds of a message between stages, the mean of both sides."""
    transfer_energy: Real
    host: HostTraffic
    sent: tuple[Sent, ...]
    """Busy seconds of each level that can limit a step."""


def price(model: Transformer, hardware: Hardware, cluster: Cluster, plans: Plans) -> PlanCosts:
    """Costs of every plan on every device, from tables. Plans must satisfy the rules of `crossflow.plan_rules`."""
    found, memory = spent(model, hardware, cluster, plans), np.empty((len(plans), 1))
    for rows in _blocks(found.step_time.shape):
        memory[rows] = peak_memory(model, sharding(model, rows_of(plans, rows)))
    return PlanCosts(found.step_time, found.energy, memory)


def spent(model: Transformer, hardware: Hardware, cluster: Cluster, plans: Plans) -> Spent:
    """Step times and energies without memory, for plans already known to fit."""
    if len(plans) + devices_in(hardware) > _FEW:
        return _spent(model, hardware, cluster, plans)
    found = _kept(_spent, model, hardware, cluster, plans)
    found.step_time.flags.writeable = found.energy.flags.writeable = False
    return found


def _kept(work_out: Callable[..., Found], *question: object) -> Found:
    """What was worked out for the same bytes, or is now. Searches, baselines, checks and sheets ask for the same designs again."""
    key = dumps((work_out.__name__, *question), HIGHEST_PROTOCOL)
    found: Found | None = _known.get(key)
    if found is None:
        found = work_out(*question)
        if len(_known) >= _KEPT:
            _known.clear()
        _known[key] = found
    return found


_known: dict[bytes, Any] = {}


def _spent(model: Transformer, hardware: Hardware, cluster: Cluster, plans: Plans) -> Spent:
    shape = (len(plans), devices_in(hardware))
    times, energies = np.empty(shape), np.empty(shape)
    tables = _tables(model, hardware, cluster, plans)
    for rows in _blocks(shape):
        chosen = rows_of(plans, rows)
        parts = tables.parts(model, chosen, rows, host_traffic(model, sharding(model, chosen), hardware.host))
        times[rows], energies[rows] = _time_and_energy(model, hardware, chosen, parts)
    return Spent(times, energies)


def price_directly(model: Transformer, hardware: Hardware, cluster: Cluster, plans: Plans) -> PlanCosts:
    """The costs with every formula evaluated for every plan and device, without tables."""
    both = _time_and_energy(model, hardware, plans, parts_of(model, hardware, cluster, plans))
    times, energies = (np.broadcast_to(figure, (len(plans), devices_in(hardware))) for figure in both)
    return PlanCosts(times, energies, np.broadcast_to(peak_memory(model, sharding(model, plans)), (len(plans), 1)))


def step_times(model: Transformer, hardware: Hardware, cluster: Cluster, plans: Plans) -> Real:
    """Step time in seconds of every plan on every device, or on one under every set of constants, without other costs."""
    tables, host = _tables(model, hardware, cluster, plans), host_traffic(model, sharding(model, plans), hardware.host)
    return _time_and_energy(model, hardware, plans, tables.parts(model, plans, slice(None), host))[0]


def bill(model: Transformer, hardware: Hardware, cluster: Cluster, plan: Plan) -> Bill:
    """The cost breakdown of one plan on one device; further sets of constants are columns after the device's own."""
    return _kept(_bill, model, hardware, cluster, plan)


def _bill(model: Transformer, hardware: Hardware, cluster: Cluster, plan: Plan) -> Bill:
    plans, hardware = table([plan]), under_all_sets(hardware) if hardware.variants else hardware
    parts, split = parts_of(model, hardware, cluster, plans), sharding(model, plans)
    needed = terms(model, hardware, plans, parts)
    slot, unlimited = slots(needed), step_time(needed)
    time, energy = _time_and_energy(model, hardware, plans, parts, unlimited)
    items = (*step_items(needed, slot, parts.layer, fullest_slot(needed, slot)), ("power limit", time - unlimited))
    return Bill(
        step_time=_single(time),
        time=tuple((name, _single(seconds)) for name, seconds in items),
        memory=tuple((name, _single(size)) for name, size in fullest_stage(model, split)),
        energy=_single(energy),
        flops=step_flops(model),
        host_memory=_single(host_memory(model, split)),
        others=tuple(np.ravel(time)[1:].tolist()),
    )


def mean_items(model: Transformer, hardware: Hardware, cluster: Cluster, plan: Plan) -> Items:
    """Step time in seconds by use, as the mean stage spends it, plus pipeline-stage imbalance (the excess of the fullest stage)."""
    plans = table([plan])
    parts = parts_of(model, hardware, cluster, plans)
    needed = terms(model, hardware, plans, parts)
    slot = slots(needed)
    stage, beyond = mean_slot(needed, slot)
    items = (*step_items(needed, slot, parts.layer, stage), ("unequal stages", needed.microbatches * beyond))
    return tuple((name, _single(seconds)) for name, seconds in items)


def parts_of(model: Transformer, hardware: Hardware, cluster: Cluster, plans: Plans, layout: Layout | None = None) -> Parts:
    """The parts of each plan's step, with every formula evaluated for every plan; group placement is computed or given."""
    layout, split = layout or lay_out(plans, cluster), sharding(model, plans)
    group, (modes, mode_of) = ranks(plans, layout), _modes(plans)
    layers, recomputed, own = mean_layers(model, group, hardware, modes), _recomputed(model, plans), mode_of[:, None]

    def sent(alone: Hardware) -> Real:
        several = layers_sent(model, group, alone, modes)
        return mean_again(select(own, several), several[0], recomputed)

    return Parts(
        layer=_paired(model, plans, _mixed(_select_layer(own, layers), layers[0], recomputed)),
        embedding=embedding(model, group, hardware),
        head=head(model, group, hardware),
        exchange=data_exchange(model, split, layout, hardware),
        transfer=transfer_time(model, split, layout, hardware.links),
        either_side=transfer_either_side(model, split, layout, hardware.links),
        transfer_energy=transfer_energy(model, split, layout, hardware.links),
        host=host_traffic(model, split, hardware.host),
        sent=sent_over(model, limiting_levels(hardware, cluster), group, sent, (split, layout), (split, layout)),
    )


def mean_layers(model: Transformer, ranks: Ranks, hardware: Hardware, modes: Sequence[int] = (0,)) -> list[Layer]:
    """A layer under each of these recompute modes; for layers of several kinds, the weighted mean.

    A stage takes as long as its number of layers times this: right where kinds alternate more often than stages change, and near where
    the first few layers differ.
    """
    several, hidden = [], expert_share(ranks, hardware)
    for count, kind in layer_kinds(model):
        forward, backward = both_passes(kind, ranks, hardware)
        layers = [layer(forward, backward, mode, hardware, hidden, model.trained_share) for mode in modes]
        several.append((count / model.stack, layers))
    if len(several) == 1:
        return several[0][1]
    return [_mean([(share, layers[index]) for share, layers in several]) for index in range(len(modes))]


def _modes(plans: Plans) -> tuple[list[int], Ints]:
    """The distinct recompute modes, `none` first, and the index of each plan's own."""
    modes, mode_of = np.unique(np.concatenate([[0], plans.recompute % PARTLY]), return_inverse=True)
    return modes.tolist(), mode_of[1:]


def _recomputed(model: Transformer, plans: Plans) -> Recomputed:
    """Number of layers, out of how many, that each plan's recompute mode covers on the stages with the fewest layers. Other stages
    have a smaller share, so that no step time is too short. None if every plan's mode covers all layers.
    """
    if not np.any(plans.recompute >= PARTLY):
        return None
    layers = np.maximum(_split(model, plans).least, 1.0)
    return np.asarray(layers_again(_column(plans.recompute), _column(plans.interleave), layers)), np.asarray(layers)


def _split(model: Transformer, plans: Plans) -> Split:
    return split_layers(model.stack, *(_column(getattr(plans, name)) for name in ("pipeline", *END_STAGES)))


def share_again(model: Transformer, plans: Plans) -> Real:
    """Share of the layers that is recomputed with its communication."""
    redone, layers = _recomputed(model, plans) or (1.0, 1.0)
    return np.where(again(_column(plans.recompute), LAYER), redone / layers, 0.0)


def _mixed(recomputed_layer: Layer, plain: Layer, recomputed: Recomputed) -> Layer:
    """Mean over a plan's recomputed layers and its other layers."""
    if recomputed is None:
        return recomputed_layer
    return Layer(*(mean_again(getattr(recomputed_layer, field.name), getattr(plain, field.name), recomputed) for field in fields(Layer)))


def _paired(model: Transformer, plans: Plans, layer: Layer) -> Layer:
    """The mean layer with expert communication hidden in paired passes (`exchanges.hiding`), and the exposed rest."""
    both_ways = is_both_ways(_column(plans.schedule))
    if np.any(both_ways):
        layer = _whole_or_together(layer, both_ways, _column(plans.expert_exchange) > 0.5)
    if not np.any(plans.expert_exchange):
        return layer
    alone = _column(plans.pipeline) + np.where(both_ways, 1.0, 0.0)
    paired = paired_share(alone, model.global_batch / _column(plans.microbatch * plans.data))
    share = np.where(_column(plans.expert_exchange) > 0.5, paired, 0.0)
    forward, backward = (
        (1.0 - share) * alone + share * part * layer.together for alone, part in ((layer.forward, 1 / 3), (layer.backward, 2 / 3))
    )
    return replace(
        layer, forward=forward, backward=backward, expert=layer.expert + ((forward - layer.forward) + (backward - layer.backward))
    )


def _whole_or_together(layer: Layer, both_ways: Mask, hidden: Mask) -> Layer:
    """The mean layer of schedules with paired passes: both parts of a backward pass in sequence, and pairs without overlap."""
    back = np.where(both_ways, layer.inputs + layer.weights, layer.backward)
    pairs = np.where(both_ways & ~hidden, layer.forward + back, layer.together)
    return replace(layer, backward=back, launch=layer.launch + (back - layer.backward), together=pairs)


def _mean(several: list[tuple[float, Layer]]) -> Layer:
    return Layer(*(sum((share * getattr(layer, field.name) for share, layer in several), np.float64(0)) for field in fields(Layer)))


def mean_over_kinds(model: Transformer, figure: Callable[[Transformer], Real]) -> Real:
    """Mean over the layers of a figure known for networks of one kind of layer."""
    kinds = layer_kinds(model)
    return figure(model) if len(kinds) == 1 else sum((count / model.stack * figure(kind) for count, kind in kinds), np.float64(0))


def terms(model: Transformer, hardware: Hardware, plans: Plans, parts: Parts) -> Terms:
    """The parts of a step in the form of the pipeline model."""
    efficiency, count = hardware.efficiency, _column(plans.microbatch * plans.data)
    overlap = _column(plans.overlap)
    behind_data, behind_pipeline = overlap % 2.0, np.floor(overlap / 2.0)
    one_by_one = _column(plans.schedule) + _column(plans.interleave) < 1.5
    needed = Terms(
        split=_split(model, plans),
        interleave=_column(plans.interleave),
        microbatches=model.global_batch / count,
        forward=parts.layer.forward,
        backward=parts.layer.backward,
        embedding=parts.embedding.time,
        head=parts.head.time,
        transfer=np.where(one_by_one, parts.either_side, parts.transfer),
        gather_forward=parts.exchange.gather_forward,
        gather_backward=parts.exchange.gather_backward,
        synchronize=parts.exchange.synchronize,
        publish=parts.exchange.publish,
        optimizer=np.maximum(parts.exchange.optimizer, parts.host.optimizer),
        overhead=efficiency.step,
        hidden_gather=efficiency.gather_overlap * behind_data,
        hidden_transfer=efficiency.pipeline_overlap * behind_pipeline,
        hidden_exchange=efficiency.data_overlap * behind_data,
        hidden_publish=efficiency.data_overlap * behind_data if model.hides_publication else None,
        lost=efficiency.overlap_loss,
        host_forward=parts.host.forward,
        host_backward=parts.host.backward,
        inputs=parts.layer.inputs,
        weights=parts.layer.weights,
        ahead=parts.layer.ahead,
        together=parts.layer.together,
        schedule=_column(plans.schedule),
    )
    return replace(needed, busy=busy_seconds(parts.sent, needed)) if parts.sent else needed


def _time_and_energy(
    model: Transformer, hardware: Hardware, plans: Plans, parts: Parts, unlimited: Real | None = None
) -> tuple[Real, Real]:
    """Seconds of a step, at least as long as its power limit requires, and joules on all devices: layers, edges, communication, idle
    power. `unlimited` are the seconds without that limit, where they are known."""
    width, replicas, stages = (_column(part) for part in (plans.tensor * plans.context, plans.data, plans.pipeline))
    passes, devices = model.global_batch / _column(plans.microbatch), width * stages * replicas
    layers = model.stack * (parts.layer.energy + (parts.exchange.gather_energy + parts.host.layer_energy))
    messages = 2.0 * (stages * _column(plans.interleave) - 1.0) * parts.transfer_energy
    work = width * passes * (layers + parts.embedding.energy + parts.head.energy + messages)
    work = work + devices * (parts.exchange.energy + parts.host.energy)
    unlimited = step_time(terms(model, hardware, plans, parts)) if unlimited is None else unlimited
    time = within_power(unlimited, work, devices, hardware)
    return time, work + devices * (hardware.idle_power * time)


def sharding(model: Transformer, plans: Plans) -> Sharding:
    """The plans as columns for the memory formulas."""
    names = [field.name for field in fields(Sharding) if field.name != "microbatches"]
    columns = {name: _column(getattr(plans, name)) for name in names}
    return Sharding(**columns, microbatches=model.global_batch / _column(plans.microbatch * plans.data))


def ranks(plans: Plans, layout: Layout) -> Ranks:
    """The plans as columns for the layer formulas."""
    names = ("tensor", "context", "expert", "microbatch", "sequence_parallel", "expert_tensor")
    columns = {name: _column(getattr(plans, name)) for name in names}
    spreads = {f"{name}_members": getattr(layout, name) for name in ("tensor", "context", "expert", "expert_tensor")}
    return Ranks(**columns, **spreads, hides=_column(plans.tensor_exchange))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class _Tables:
    """Parts for the distinct combinations, and the combination of each plan."""

    layer: Layer
    """The tables of the recompute modes, stacked."""
    edges: tuple[Cost, Cost]
    exchange: DataExchange
    transfer: Array
    either_side: Array
    transfer_energy: Array
    layer_row: Ints
    edge_row: Ints
    exchange_row: Ints
    transfer_row: Ints
    recomputed: Recomputed
    sent: tuple[Sent, ...]

    def parts(self, model: Transformer, plans: Plans, rows: slice, host: HostTraffic) -> Parts:
        """The parts of the plans in some rows, with split backward passes and paired passes where used."""
        edge, shares = self.edge_row[rows], self.recomputed and (self.recomputed[0][rows], self.recomputed[1][rows])
        own = self.layer_row[rows], edge, self.exchange_row[rows], self.transfer_row[rows]
        names = (*_LAYER, *(_IN_PARTS if plans.schedule.any() else ()))
        names += _IN_PAIRS if plans.expert_exchange.any() or (plans.schedule == BOTH_WAYS).any() else ()
        layer = _gather(self.layer, self.layer_row[rows], names)
        return Parts(
            layer=_paired(model, plans, layer if shares is None else _mixed(layer, _gather(self.layer, edge, names), shares)),
            embedding=_gather(self.edges[0], edge, ("time", "energy")),
            head=_gather(self.edges[1], edge, ("time", "energy")),
            exchange=_gather(self.exchange, self.exchange_row[rows], _EXCHANGE),
            transfer=self.transfer[self.transfer_row[rows]],
            either_side=self.either_side[self.transfer_row[rows]],
            transfer_energy=self.transfer_energy[self.transfer_row[rows]],
            host=host,
            sent=tuple(sent_of_plans(sent, own, shares) for sent in self.sent),
        )


_LAYER, _IN_PARTS, _IN_PAIRS = ("forward", "backward", "energy"), ("inputs", "weights"), ("together", "ahead")
_EXCHANGE = tuple(field.name for field in fields(DataExchange))
_LAID = ("tensor", "context", "pipeline", "data", "expert", "expert_tensor", "placement")
"""Columns that determine the layout of a plan."""


def _tables(model: Transformer, hardware: Hardware, cluster: Cluster, plans: Plans) -> _Tables:
    shapes, shape_of = distinct(*(getattr(plans, name) for name in _LAID))
    layout = lay_out(rows_of(plans, shapes), cluster)
    near_of = _neighbourhoods(rows_of(plans, shapes), layout, hardware.links)
    group, group_of = distinct(near_of[shape_of], plans.microbatch, plans.sequence_parallel, plans.tensor_exchange)
    several = ranks(rows_of(plans, group), laid_at(layout, shape_of[group]))
    modes, mode_of = _modes(plans)
    layers = mean_layers(model, several, hardware, modes)
    shared = (shape_of, plans.zero, plans.shard, plans.schedule, *(getattr(plans, name) for name in END_STAGES))
    exchange, exchange_of = distinct(*shared, *([plans.microbatch, plans.interleave] if model.gradient_traffic else []))
    groups = lay_out(rows_of(plans, exchange), cluster)
    transfer, transfer_of = distinct(shape_of, plans.microbatch, plans.sequence_parallel)
    message = sharding(model, rows_of(plans, transfer))
    laid, owned = laid_at(layout, shape_of[transfer]), sharding(model, rows_of(plans, exchange))
    size = len(group), devices_in(hardware)

    def sent(alone: Hardware) -> Real:
        return stacked(layers_sent(model, several, alone, modes), size)

    return _Tables(
        layer=Layer(*(stacked([getattr(mode, field.name) for mode in layers], size) for field in fields(Layer))),
        edges=(embedding(model, several, hardware), head(model, several, hardware)),
        exchange=data_exchange(model, owned, groups, hardware),
        transfer=np.asarray(transfer_time(model, message, laid, hardware.links)),
        either_side=np.asarray(transfer_either_side(model, message, laid, hardware.links)),
        transfer_energy=np.asarray(transfer_energy(model, message, laid, hardware.links)),
        layer_row=mode_of * len(group) + group_of,
        recomputed=_recomputed(model, plans),
        edge_row=group_of,
        exchange_row=exchange_of,
        transfer_row=transfer_of,
        sent=sent_over(model, limiting_levels(hardware, cluster), several, sent, (owned, groups), (message, laid)),
    )


def _neighbourhoods(plans: Plans, layout: Layout, links: tuple[Link, ...]) -> Ints:
    """For each plan the number of its combination of degrees inside a layer and placement of their groups. On switches, of the gaps only
    those of context ranks count.
    """
    spreads = (layout.tensor, layout.context, layout.expert, layout.expert_tensor)
    gaps = [gap for each in spreads for gap, link in zip(each.gaps, links, strict=True) if each is layout.context or link.shape != "switch"]
    parts = [np.where(np.isinf(gap), 0.0, gap + 1.0) for gap in gaps] + [part for spread in spreads for part in spread]
    parts += [reach for spread in spreads for reach, link in zip(spread.reaches, links, strict=True) if link.shape == "ring"]
    columns = (np.asarray(part)[:, 0].astype(np.int64) for part in parts)
    return distinct(plans.tensor, plans.context, plans.expert, plans.expert_tensor, *columns)[1]


Record = TypeVar("Record", Layer, Cost, DataExchange)


def _gather(record: Record, rows: Ints, names: tuple[str, ...]) -> Record:
    """Rows of the named fields of a table. Fields not named are 0; named fields without rows stay as they are."""
    values: dict[str, Any] = {field.name: getattr(record, field.name) if field.name in names else 0.0 for field in fields(record)}
    return type(record)(**{name: value[rows] if np.ndim(value) == 2 else value for name, value in values.items()})


def _select_layer(mode: Ints, modes: list[Layer]) -> Layer:
    """For each plan the layer under its own mode."""
    return Layer(*(select(mode, [getattr(layer, field.name) for layer in modes]) for field in fields(Layer)))


def _blocks(shape: tuple[int, int]) -> Iterator[slice]:
    step = max(1, _BLOCK // max(shape[1], 1))
    for start in range(0, shape[0], step):
        yield slice(start, min(start + step, shape[0]))


def _single(value: Real) -> float:
    """The number in an array of one plan on one device."""
    return float(np.asarray(value).reshape(-1)[0])


def _column(values: Ints) -> Array:
    return values.astype(np.float64)[:, None]
