"""A graph of operators on the devices of a cluster as a problem of one split, and one number format, for each operator.

    time      of one device: the roofline of its share, then what the split sends: gradients of the weights (training), partial sums of
              input features, rows of neighbours; and between two operators the relayout of the tensor, and in training of its gradient
    energy    of all devices
    size      bytes of the weights on one device
    memory    the same, in training with gradients and optimizer, its share of what is kept, and the gathered copies that operators keep
    bops      of the network, each multiply-add once

Gradients are exchanged in buckets of 25 MB, as PyTorch's DDP does: a layer with less pays its share of a bucket. The stated share of it is
hidden behind work, and nothing else. A tensor that several products may need gathered, such as that of queries, keys and values, is a layer
of its own: its strategy says in which layout all of them find it, and in which format; their partial sums of the gradient are added up
before they are sent. A table that an embedding shares with its head is priced between the two, by the shares that both have of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from math import log, prod, sqrt
from sys import float_info

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.hardware import Link
from crossopt.crossflow.operator_costs import OPERATORS, Columns, columns_of, graph_costs
from crossopt.crossflow.operator_graph import Node, Weights, group_of, weight_values
from crossopt.crossflow.operator_splits import Split, SplitGraph, SplitKind, shared_columns
from crossopt.crossflow.relayouts import NOTHING, Layout, Network, Spent, backward, forward, together
from crossopt.instances.catalogue.formats import BITS
from crossopt.instances.layers.network import GraphRequest, Pricing, added, has_operands, is_view, offered_formats, total_cost
from crossopt.instances.layers.problem import Figures, Pairs, Written, ties_by

BUCKET = 25.0 * 2**20
"""Bytes of gradients that are exchanged together (`bucket_cap_mb` of torch.nn.parallel.DistributedDataParallel)."""
MOST_DEVICES, MOST_GROUPS = 65_536, 20
COPY = "copy of "
"""Name of a layer that stands for the common copy of a tensor, before the tensor's."""
_WIDE = 16.0
"""Bits of a format that need not be named where there is no other one."""


@dataclass(frozen=True, slots=True)
class Parallel:
    """The devices, and the ways to split operators over them."""

    devices: int
    per_node: int
    kinds: tuple[SplitKind, ...]
    groups: tuple[int, ...]

    @property
    def levels(self) -> tuple[int, ...]:
        """Devices that each level of the network joins."""
        return (self.devices,) if self.devices <= self.per_node else (self.per_node, self.devices)


@dataclass(frozen=True, slots=True)
class SplitProblem:
    """The problem with rules to compare with, and what may be tied."""

    written: Written
    rules: dict[str, tuple[str, ...]]
    """Strategies of all layers by the name of the rule."""
    types: tuple[str, ...]
    """Of each layer the type of operator that rules with one strategy for each type tie; empty for those without weights."""
    pricing: "SplitPricing | None" = None
    """Prices of splits, where operators are split."""


def usual_groups(devices: int, per_node: int) -> tuple[int, ...]:
    """All divisors of the devices; of many, those that divide a node or are whole nodes."""
    found = tuple(divisor for divisor in range(2, devices + 1) if devices % divisor == 0)
    return found if len(found) <= MOST_GROUPS else tuple(divisor for divisor in found if per_node % divisor == 0 or divisor % per_node == 0)


def label(dtype: str, split: Split, several: bool) -> str:
    """The name of a strategy: the split, behind the format where several are offered."""
    return f"{dtype} {split}" if several else str(split)


def parts_of(strategy: str) -> dict[str, str | int]:
    """Format, split and group of a strategy, by its name."""
    first, _, rest = strategy.partition(" ")
    dtype, split = (first, rest) if first in BITS else ("", strategy)
    kind, _, group = split.partition(" ")
    found: dict[str, str | int] = {"format": dtype} if dtype else {}
    found |= {"split": kind} if kind else {}
    return found | ({"group": int(group)} if group.isdecimal() else {})


def faults_of(request: GraphRequest, parallel: Parallel, stated_groups: Sequence[int]) -> Iterator[tuple[str, str]]:
    """What cannot be split, by the key that asks for it."""
    graph = SplitGraph(request.graph, parallel.devices)
    if "batch" in parallel.kinds and graph.batch % parallel.devices:
        remedy = "take a batch that is a multiple of them, or give `splits` without batch"
        yield "cluster.devices", f"a batch of {graph.batch:,} has no equal parts for {parallel.devices:,} devices ({remedy})"
        return
    for number, group in enumerate(stated_groups):
        every = (split.group == group for node in request.graph.nodes for split in graph.splits(node, parallel.kinds, (group,)))
        if group != parallel.devices and not any(every):
            wanted = " or ".join(kind for kind in parallel.kinds if kind != "batch")
            yield (
                f"groups[{number}]",
                f"no operator has {wanted or 'anything else than batch'} in {group} equal parts (give another number)",
            )


def split_problem(request: GraphRequest, parallel: Parallel, objective: str, budgets: Figures) -> SplitProblem:
    """Layers and links of all operators that move anything, with their splits."""
    pricing = SplitPricing(request, parallel)
    nodes = [node for node in request.graph.nodes if not is_view(node)]
    layers, links = dict[str, dict[str, Figures]](), list[tuple[str, str, Pairs]]()
    for node in nodes:
        own = {pricing.label(*way): pricing.figures(node, *way) for way in pricing.offered[node.name]}
        for tensor in dict.fromkeys(node.inputs):
            maker = pricing.plain.maker.get(pricing.plain.origin.get(tensor, tensor))
            if maker is None:
                entering = {pricing.label(*way): pricing.entering(node, tensor, *way) for way in pricing.offered[node.name]}
                own = {name: added(figures, entering[name]) for name, figures in own.items()}
                continue
            source, olds = maker.name, pricing.made(maker)
            if tensor in pricing.copies:
                source, copied, taken = f"{COPY}{tensor}", pricing.copies[tensor], olds
                olds = {name: (layout, dtype, partial) for name, (layout, partial, dtype) in copied.items()}
                if source not in layers:
                    layers[source] = {name: {"time": 0.0} for name in copied}
                    links.append((maker.name, source, pricing.pairs(tensor, taken, copied, pricing.keeps(tensor))))
            links.append((source, node.name, pricing.pairs(tensor, olds, pricing.taken(node, tensor), _keeps(request, node))))
        layers[node.name] = own
    links += list(pricing.tables())
    links = [link for link in links if any(any(figures.values()) for figures in link[2].values())]
    ties, types = (*pricing.plain.sharing, *_ties(request, pricing, list(layers))), {node.name: _type_of(node) for node in nodes}
    written = Written(layers, links, objective, budgets, ties)
    rules = {} if request.tie != "none" else {name: _with_copies(chosen, written) for name, chosen in _rules(pricing, nodes)}
    return SplitProblem(written, rules, tuple(types.get(name, "") for name in layers), pricing)


def _keeps(request: GraphRequest, node: Node) -> bool:
    """Whether an operator keeps its inputs for the backward pass."""
    return request.training and OPERATORS.get(node.operator, OPERATORS["other"]).keeps in ("inputs", "everything")


def _type_of(node: Node) -> str:
    return node.operator if node.weights and (node.product is not None or node.operator == "embedding") else ""


def _ties(request: GraphRequest, pricing: "SplitPricing", layers: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Operators with weights of one type, while all others follow as it is best; or all at one place of repeated blocks, with copies."""
    positions, nodes = group_of(request.graph), {node.name: node for node in request.graph.nodes}
    groups = dict[str, object]()
    for name in layers if request.tie != "none" else ():
        taker = nodes.get(name) or pricing.takers[name.removeprefix(COPY)][0]
        row = pricing.plain.rows[taker.name]
        if request.tie == "operators":
            groups[name] = (_type_of(taker) or None) if name in nodes else None
        elif row in positions:
            block, _, position = positions[row]
            groups[name] = block, position, None if name in nodes else taker.inputs.index(name.removeprefix(COPY))
    return ties_by(groups)


Way = tuple[str, Split]
"""A number format and a split."""


class SplitPricing:
    """Figures of operators and relayouts by format and split, each priced once."""

    def __init__(self, request: GraphRequest, parallel: Parallel) -> None:
        self.request, self.devices, self.base = request, parallel.devices, request.device.base
        self.plain, self.graph = Pricing(request), SplitGraph(request.graph, parallel.devices)
        self.several = len(request.device.formats) > 1 or BITS[self.base] < _WIDE
        self.levels = parallel.levels
        self.network = Network(parallel.devices, self.levels, request.device.formats[self.base].links[: len(self.levels)])
        self.splits = {node.name: self.graph.splits(node, parallel.kinds, parallel.groups) for node in request.graph.nodes}
        formats = offered_formats(request, self.plain)
        self.offered = {name: [(dtype, split) for dtype in own for split in self.splits[name]] for name, own in formats.items()}
        self.known, self.edges = dict[object, Figures](), dict[object, Pairs]()
        self.takers = dict[str, list[Node]]()
        for node in request.graph.nodes:
            for tensor in () if is_view(node) else dict.fromkeys(node.inputs):
                self.takers.setdefault(tensor, []).append(node)
        self.copies = self._copied()
        self.columns = columns_of(request.graph)

    @property
    def every_split(self) -> tuple[Split, ...]:
        """Splits that any operator has."""
        return tuple(dict.fromkeys(split for own in self.splits.values() for split in own))

    @cached_property
    def costs(self) -> dict[Split, dict[str, tuple[Array, Array]]]:
        """Seconds and joules of one device for its share of each operator, by split and format."""
        return {split: self._cost_tables(split) for split in self.every_split}

    def shared(self, split: Split) -> Columns:
        """The share of each operator that one device computes in a split; all of an operator that does not have this split."""
        chosen = [split if split in self.splits[node.name] else None for node in self.request.graph.nodes]
        return shared_columns(self.columns, self.graph, chosen)

    def _cost_tables(self, split: Split) -> dict[str, tuple[Array, Array]]:
        shared = self.shared(split)
        found = dict[str, tuple[Array, Array]]()
        for dtype, hardware in self.request.device.formats.items():
            costs = graph_costs(shared, BITS[dtype] / 8.0, hardware)
            found[dtype] = total_cost(costs, self.request.training, "time"), total_cost(costs, self.request.training, "energy")
        return found

    def label(self, dtype: str, split: Split) -> str:
        return label(dtype, split, self.several)

    def figures(self, node: Node, dtype: str, split: Split) -> Figures:
        """Of an operator, with what its split sends."""
        row, operands = self.plain.rows[node.name], has_operands(node)
        times, energies = self.costs[split][dtype if operands else self.base]
        time, energy = float(times[row]), float(energies[row])
        if not operands and dtype != self.base:
            time, energy = self.plain.narrower(node, dtype, time, energy, self.graph.output(node, split).share(self.devices))
        sent = self.sent(node, split)
        return {**self.stored(node, dtype, split), "time": time + sent[0], "energy": energy * self.devices + sent[1]}

    def sent(self, node: Node, split: Split) -> Spent:
        """What a split sends: gradients of weights, partial sums, and rows of neighbours."""
        return together(self._gradients(node, split), self._partial_sums(node, split), self._borders(node, split))

    def stored(self, node: Node, dtype: str, split: Split) -> Figures:
        """Figures that no device changes: bytes of one device, bit operations and quality."""
        operands, share = has_operands(node), self.graph.weight_share(split)
        stored = sum(prod(weights.shape) for weights in self._stored(node)) * BITS[dtype if operands else self.base] / 8.0
        values = sum(prod(self.request.graph.tensors[name]) for name in node.outputs if name in self.plain.saved_tensors)
        output = self.graph.output(node, split)
        saved_bytes = values * BITS[self.base if operands else dtype] / 8.0 * output.share(self.devices)
        memory = stored * share + saved_bytes + self._state(self._stored(node), share)
        return {**self.plain.figures(node, dtype), "size": stored * share, "memory": memory}

    def gradients_over_time(self, chosen: Mapping[str, str]) -> tuple[float, float]:
        """Seconds of the exchange of all gradients, and how many of them are left when the backward pass ends.

        Operators run backward one after the other, the last one first. A bucket of 25 MB is exchanged once it is full and the one before
        it has been sent, and the rest at the end, while the device computes. Nothing else that is sent hides an exchange.
        """
        full = copy(self)
        full.request = replace(self.request, exposed_gradients=1.0)
        every = done = sent = 0.0
        waiting, shares = dict[tuple[int, int], tuple[float, float]](), dict[Split, dict[str, Array]]()
        for node in reversed([node for node in self.request.graph.nodes if node.name in chosen]):
            dtype, split = next(way for way in self.offered[node.name] if self.label(*way) == chosen[node.name])
            if split not in shares:
                shares[split] = self._backward_shares(split)
            computed = self.figures(node, dtype, split)["time"] - self.sent(node, split)[0]
            done += computed * float(shares[split][dtype if has_operands(node) else self.base][self.plain.rows[node.name]])
            values, ranks = _trained(self._stored(node)) * self.graph.weight_share(split), self.graph.weight_replicas(split)
            time = full._exchanged(values, ranks)[0]
            size, before = waiting.pop(ranks, (0.0, 0.0))
            every, waiting[ranks] = every + time, (size + values * BITS[self.base] / 8.0, before + time)
            if waiting[ranks][0] >= BUCKET:
                sent = max(sent, done) + waiting.pop(ranks)[1]
        tables = sum(pairs[chosen[first], chosen[second]]["time"] for first, second, pairs in full.tables())
        return every + tables, max(sent, done) + sum(time for _, time in waiting.values()) + tables - done

    def _backward_shares(self, split: Split) -> dict[str, Array]:
        """Of the time of each operator the share of its backward pass, by format."""
        shared, found = self.shared(split), dict[str, Array]()
        for dtype, hardware in self.request.device.formats.items():
            costs = graph_costs(shared, BITS[dtype] / 8.0, hardware)
            forward, back = (np.ravel(np.asarray(side.time, np.float64)) for side in (costs.forward, costs.backward))
            found[dtype] = back / np.maximum(forward + back, float_info.min)
        return found

    def with_links(self, links: tuple[Link, ...]) -> "SplitPricing":
        """A copy with a network of these links."""
        other = copy(self)
        other.network, other.known, other.edges = Network(self.devices, self.levels, links), {}, {}
        return other

    def _state(self, weights: Sequence[Weights], share: float) -> float:
        """Bytes of gradient and optimizer of a share of weights."""
        return _trained(weights) * share * self.request.state_bytes if self.request.training else 0.0

    def _gradients(self, node: Node, split: Split) -> Spent:
        """The all-reduce of the gradient of one share of the weights."""
        return self._exchanged(_trained(self._stored(node)) * self.graph.weight_share(split), self.graph.weight_replicas(split))

    def _exchanged(self, values: float, ranks: tuple[int, int]) -> Spent:
        """An all-reduce of the gradient of so many weights, as its share of a bucket."""
        if not self.request.training or not values:
            return NOTHING
        size = values * BITS[self.base] / 8.0
        bucket = max(size, BUCKET)
        share = size / bucket
        time, energy = self.network.reduce(bucket, *ranks)
        return time * share * self.request.exposed_gradients, energy * share

    def _stored(self, node: Node) -> list[Weights]:
        """Weights of an operator, except those of a product before it, and tables that an embedding shares with its head."""
        graph, holders, operands = self.request.graph, self.plain.holders, has_operands(node)
        own = (name for name in dict.fromkeys(node.weights) if (name, not operands) not in holders)
        return [graph.weights[name] for name in own if holders[name, operands][0] == node.name]

    def tables(self) -> Iterator[tuple[str, str, Pairs]]:
        """Between an embedding and a head that share a table: its bytes, and the exchange of its gradient."""
        for name, operands in self.plain.holders:
            if operands and (name, False) in self.plain.holders:
                first, second = (self.plain.holders[name, side][0] for side in (False, True))
                yield (
                    first,
                    second,
                    {
                        (self.label(*way), self.label(*head_way)): self._table(self.request.graph.weights[name], way, head_way)
                        for way in self.offered[first]
                        for head_way in self.offered[second]
                    },
                )

    def _table(self, table: Weights, embedding: Way, head: Way) -> Figures:
        """One copy where both have the same share of it, or one has all of it in the same format; else one for each. Gradients of equal
        shares are added up on the device and exchanged once; of others, all devices exchange the whole gradient."""
        ways = embedding[1], head[1]
        shares, ranks = [self.graph.weight_share(split) for split in ways], [self.graph.weight_replicas(split) for split in ways]
        inside = ways[0].kind, ways[1].kind
        same = shares[0] == shares[1] and (shares[0] == 1.0 or inside == ("features", "inputs"))
        union = max(shares) if same or max(shares) == 1.0 else sum(shares)
        values, bits = float(prod(table.shape)), (BITS[embedding[0]], BITS[head[0]])
        size = values / 8.0 * (union * bits[0] if bits[0] == bits[1] else shares[0] * bits[0] + shares[1] * bits[1])
        trained = _trained([table])
        spent = (
            max(self._exchanged(trained * shares[0], replicas) for replicas in ranks)
            if same
            else self._exchanged(trained, (self.devices, 1))
        )
        return {"time": spent[0], "energy": spent[1], "size": size, "memory": size + self._state([table], union)}

    def _partial_sums(self, node: Node, split: Split) -> Spent:
        """Where input features are split: a reduce-scatter of the output, and in training an all-gather of its gradient."""
        if split.kind != "inputs":
            return NOTHING
        size = self._bytes(node.outputs[0], self.base)
        left, scattered = Layout(split.group), self.graph.scattered(node, split.group)
        summed = backward(size, scattered, left, self.network, partial=True)
        return together(summed, forward(size, scattered, left, self.network)) if self.request.training else summed

    def _borders(self, node: Node, split: Split) -> Spent:
        """Where the height is split: rows under windows of two devices, and in training their gradients."""
        rows = self.graph.overlap(node) if split.kind == "space" else 0
        if not rows:
            return NOTHING
        height = self.request.graph.tensors[node.inputs[0]][2]
        size = self._bytes(node.inputs[0], self.base) * rows / height * split.group / self.devices
        sent = self.network.border(size, split.group)
        return together(sent, sent) if self.request.training else sent

    def _bytes(self, tensor: str, dtype: str) -> float:
        return prod(self.request.graph.tensors[tensor]) * BITS[dtype] / 8.0

    def entering(self, node: Node, tensor: str, dtype: str, split: Split) -> Figures:
        """The conversion of an input of the network, which each device reads as it needs it."""
        needed, _ = self.graph.needed(node, tensor, split)
        return self.plain.conversion(tensor, self.base, self.plain.taken(node, dtype), needed.share(self.devices))

    def made(self, maker: Node) -> "_Made":
        """How the output of an operator lies, by its strategies."""
        return {
            self.label(dtype, split): (self.graph.output(maker, split), self.plain.written(maker, dtype), False)
            for dtype, split in self.offered[maker.name]
        }

    def taken(self, taker: Node, tensor: str) -> "_Taken":
        """How an operator needs an input, by its strategies."""
        return {
            self.label(dtype, split): (*self.graph.needed(taker, tensor, split), self.plain.taken(taker, dtype))
            for dtype, split in self.offered[taker.name]
        }

    def keeps(self, tensor: str) -> bool:
        return any(_keeps(self.request, node) for node in self.takers[tensor])

    def _copied(self) -> dict[str, "_Taken"]:
        """Layouts of a common copy, of each tensor that several operators may need gathered: as it is made, or as they need it."""
        found = dict[str, _Taken]()
        for tensor, nodes in self.takers.items():
            maker = self.plain.maker.get(self.plain.origin.get(tensor, tensor))
            needs = [self.taken(node, tensor).values() for node in nodes]
            if maker is None or sum(any(partial for _, partial, _ in own) for own in needs) < 2:
                continue
            made = self.made(maker).values()
            formats = dict.fromkeys([*(dtype for _, dtype, _ in made), *(dtype for own in needs for _, _, dtype in own)])
            layouts = dict.fromkeys(
                [
                    *((layout, False) for layout, _, _ in made),
                    *((layout, partial) for own in needs for layout, partial, _ in own if partial),
                ]
            )
            named = {(layout, partial): _layout_name(layout, partial, self.devices) for layout, partial in layouts}
            found[tensor] = {
                f"{dtype} {named[lies]}" if self.several else named[lies]: (*lies, dtype) for dtype in formats for lies in layouts
            }
        return found

    def pairs(self, tensor: str, olds: "_Made", news: "_Taken", keeps: bool) -> Pairs:
        """Of an edge by the strategies of both ends: relayouts of the tensor and its gradient, conversions, and the copy that is kept."""
        key = prod(self.request.graph.tensors[tensor]), keeps, tuple(olds.items()), tuple(news.items())
        if key not in self.edges:
            self.edges[key] = {
                (first, second): self._between(tensor, keeps, old, new) for first, old in olds.items() for second, new in news.items()
            }
        return self.edges[key]

    def _between(self, tensor: str, keeps: bool, before: tuple[Layout, str, bool], after: tuple[Layout, bool, str]) -> Figures:
        (old, lies, sums), (needed, partial, taken) = before, after
        key = prod(self.request.graph.tensors[tensor]), keeps, before, after
        if key not in self.known:
            narrow = lies if BITS[lies] < BITS[taken] else taken  # what is narrower is sent
            spent = forward(self._bytes(tensor, narrow), old, needed, self.network)
            if self.request.training and not (sums and old.has(needed)):
                spent = together(spent, backward(self._bytes(tensor, self.base), old, needed, self.network, partial))
            had, wanted = old.share(self.devices), needed.share(self.devices)
            converted = self.plain.conversion(tensor, lies, taken, had if narrow == taken else wanted)
            self.known[key] = {
                "time": spent[0] + converted["time"],
                "energy": spent[1] + converted["energy"] * self.devices,
                "memory": max(wanted - had, 0.0) * self._bytes(tensor, taken) if keeps else 0.0,
            }
        return self.known[key]


def _trained(weights: Sequence[Weights]) -> int:
    """Values that training changes."""
    return sum(prod(own.shape) for own in weights if own.trained)


_Made = dict[str, tuple[Layout, str, bool]]
"""By strategy: layout, format, and whether gradients may come back as partial sums."""
_Taken = dict[str, tuple[Layout, bool, str]]
"""By strategy: layout, whether the gradient is a partial sum, and format."""


def _layout_name(layout: Layout, partial: bool, devices: int) -> str:
    if layout.group == 1:
        return "batch"
    if layout.inside != "copies":
        return f"{layout.inside} {layout.group}"
    return f"gathered {layout.group}" if partial or layout.group < devices else "whole"


# Rules to compare with.


def _rules(pricing: SplitPricing, nodes: Sequence[Node]) -> Iterator[tuple[str, dict[str, str]]]:
    """Data parallel, features over all devices, and MLSL's groups, in the base format."""
    everywhere = Split("features", pricing.devices)
    batch = {node.name: _first(pricing, node, (Split("batch", 1),)) for node in nodes}
    yield "data parallel" if any("batch" in name for name in batch.values()) else "every operator whole", batch
    yield "features over all devices", {node.name: _first(pricing, node, (everywhere,)) for node in nodes}
    yield "MLSL's closed form", dict(_mlsl(pricing, nodes))


def _with_copies(chosen: Mapping[str, str], written: Written) -> tuple[str, ...]:
    """Strategies of all layers, with the best copy for those of the operators."""
    costs = {name: dict.fromkeys(own, 0.0) for name, own in written.layers.items() if name not in chosen}
    for first, second, pairs in written.links:
        for own, other, turned in ((first, second, False), (second, first, True)):
            for name in costs.get(own, ()):
                key = (chosen[other], name) if turned else (name, chosen[other])
                costs[own][name] += pairs[key].get(written.objective, 0.0)
    return tuple(chosen[name] if name in chosen else min(costs[name], key=costs[name].__getitem__) for name in written.layers)


def _first(pricing: SplitPricing, node: Node, wanted: Sequence[Split]) -> str:
    """The first of these splits that is offered, else the whole operator on every device."""
    own = pricing.splits[node.name]
    split = next((offered for offered in wanted if offered in own), own[0])
    return pricing.label(pricing.offered[node.name][0][0], split)


def best_group(weights: float, activations: float, devices: int) -> float:
    """The group g that sends least: 2 weights / g of gradients and 2 activations g / N in the group, so that g* = sqrt(N W / A).

    Das et al. 2016 (arXiv 1602.06709) for the number N / g of groups: sqrt(N minibatch / output features) of a fully connected layer.
    """
    return min(max(sqrt(devices * weights / activations), 1.0), float(devices)) if activations else float(devices)


def _mlsl(pricing: SplitPricing, nodes: Sequence[Node]) -> Iterator[tuple[str, str]]:
    """The closed form for operators with weights; others keep the features that their input has, or are split by the batch."""
    chosen, graph = dict[str, Split](), pricing.request.graph
    for node in nodes:
        own, wanted = pricing.splits[node.name], list[Split]()
        groups = [offered for offered in own if offered.kind in ("features", "batch")]
        if _type_of(node) and groups:
            weights, activations = weight_values(graph, node), sum(prod(graph.tensors[name]) for name in node.inputs[:1])
            aim = best_group(weights, activations, pricing.devices)
            wanted.append(min(groups, key=lambda offered: (abs(log(offered.group) - log(aim)), offered.group)))
        elif not _type_of(node):
            makers = [pricing.plain.maker.get(pricing.plain.origin.get(name, name)) for name in node.inputs[:1]]
            wanted += [chosen[maker.name] for maker in makers if maker is not None and maker.name in chosen]
        split = next((offered for offered in (*wanted, Split("batch", 1)) if offered in own), own[0])
        chosen[node.name] = split
        yield node.name, pricing.label(pricing.offered[node.name][0][0], split)
