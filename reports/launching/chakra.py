"""The export to Chakra traces: what each stage of a plan does in a step, where devices stand, and a trace for each of them."""

import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.context_exchange import around_bytes, by_all_to_all
from crossopt.crossflow.edges import embedding, head
from crossopt.crossflow.evaluate import evaluate
from crossopt.crossflow.hardware import Cluster, Hardware
from crossopt.crossflow.hiding import gathers_for_weights, hiding_turns, input_bytes, turns
from crossopt.crossflow.layer import Pass, backward_pass, forward_pass
from crossopt.crossflow.layout import lay_out
from crossopt.crossflow.memory import layer_trained, layer_weights, stage_trained
from crossopt.crossflow.operators import EMBEDDING_FORWARD, HEAD_FORWARD
from crossopt.crossflow.parameters import repeated_flops, step_flops
from crossopt.crossflow.plan import Plan, Ranks, code, routed_tokens, table
from crossopt.crossflow.replica_exchange import handed_on
from crossopt.crossflow.schedule import BACKWARD, FORWARD, passes_of
from crossopt.crossflow.sharding import RESIDENT_LAYERS, Weights
from crossopt.crossflow.stages import chunk_sizes
from crossopt.crossflow.transformer import host_bytes, mean_over_kinds, parts_of, ranks, sharding, share_again, terms
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.errors import RefusedError
from crossopt.instances.files.saved import file_name, naming
from crossopt.instances.traces.chakra_archive import (
    ABOUT,
    GROUPS,
    STEP,
    Access,
    Compute,
    Exchange,
    Item,
    Receive,
    Send,
    Sums,
    Writer,
    about,
    pieces_of,
    write_traces,
)
from crossopt.reports.commands.console import check_target, usage
from crossopt.reports.facts.schedule import Passes, stage_passes
from crossopt.reports.render.width import fitted
from crossopt.reports.sheets.amounts import several
from crossopt.solvers.codesign.answer import Candidate, design_of

# What each stage of a plan does in a step, as the program of a trace.
#
# A pass is one computation: its seconds are those of `facts.schedule` without exchanges, its FLOPs those of products, as `step_flops`
# counts them, its bytes what crosses into the device's memory. Behind it come what context ranks hand on around attention and the exchanges
# of tensor ranks, of all its layers together: a message for each step of the ring, and a collective. Gradients are exchanged once behind
# the last pass, or where ZeRO shares gradients behind each backward pass. No collective hides behind work but what sequence parallelism
# gathers once more for the gradients of weights, always behind products (`exchanges.hiding`): it begins with its backward pass, and what
# follows waits for both.

TENSOR, DATA, ENDS, EXPERT, ROUTED, CONTEXT = "tensor", "data", "ends", "expert", "routed", "context"
"""Tensor ranks; replicas, context ranks among them; the first and the last stage; ranks over which experts are spread; those that hold the
same experts; and context ranks."""
NEXT, PREVIOUS = "next", "previous"
AFTER, BEFORE = "context after", "context before"
"""Neighbours in the ring of context ranks."""


@dataclass(frozen=True, slots=True)
class Held:
    """Of weights that all replicas hold, and of those that only ranks with the same experts hold."""

    shared: float = 0.0
    routed: float = 0.0

    def times(self, factor: float) -> "Held":
        return Held(self.shared * factor, self.routed * factor)

    def less(self, other: "Held") -> "Held":
        return Held(max(self.shared - other.shared, 0.0), max(self.routed - other.routed, 0.0))


@dataclass(frozen=True, slots=True)
class Amounts:
    """What a layer, and what lies beside the layers, comes to for one microbatch on one device."""

    layer_flops: float
    """Forward."""
    again_flops: float
    head_flops: float
    layer_bytes: tuple[float, float]
    """Forward, backward."""
    first_bytes: tuple[float, float]
    last_bytes: tuple[float, float]
    tensor_bytes: float
    """Of the exchanges of a layer in one direction."""
    for_weights: float
    """Of inputs of a layer's products that are gathered once more for the gradients of weights, whole."""
    again: float
    """Which share of the layers repeats its exchanges."""
    again_seconds: float
    """Of a layer, for exchanges that it repeats."""
    message: float
    gathered: bool
    routed: float
    """Bytes that a layer sends to experts and gets back in one direction."""
    around: float
    """Bytes that a layer hands on around attention in each step of a ring, or exchanges all to all, in one direction."""
    gathers: Held
    """Bytes of a layer's weights, where ZeRO gathers them for each pass."""
    scatters: Held
    """Bytes of a layer's gradients, where ZeRO shares them behind each."""
    offloaded: tuple[float, float, float]
    """Bytes of a layer that lie in the host's memory: weights, activations, and optimizer state, of the fullest stage."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan on a device, with what its programs are made of."""

    model: Transformer
    plan: Plan
    passes: tuple[Passes, ...]
    layers: tuple[int, ...]
    """Of each stage."""
    amounts: Amounts
    optimizer: float
    """Seconds of the update, and of what else a step takes on a device."""

    @property
    def microbatches(self) -> int:
        return self.model.global_batch // (self.plan.microbatch * self.plan.data)


def planned(model: Transformer, hardware: Hardware, cluster: Cluster, plan: Plan) -> Planned:
    plans = table([plan])
    needed = terms(model, hardware, plans, parts_of(model, hardware, cluster, plans))
    layers = tuple(int(_number(needed.split.on(np.float64(stage)))) for stage in range(plan.pipeline))
    passes = stage_passes(model, hardware, cluster, plan, needed)
    rest = _number(needed.optimizer) + _number(needed.overhead)
    return Planned(model, plan, passes, layers, _amounts(model, hardware, cluster, plan), rest)


def _amounts(model: Transformer, hardware: Hardware, cluster: Cluster, plan: Plan) -> Amounts:
    plans = table([plan])
    split, group = sharding(model, plans), ranks(plans, lay_out(plans, cluster))
    silent = {level: replace(getattr(hardware, level), energy=0.0) for level in ("l2", "l1", "registers")}
    counted = replace(hardware, energy_per_flop=0.0, dram=replace(hardware.dram, energy=1.0), **silent)
    share = (
        model.stack * model.global_batch / plan.microbatch * plan.tensor * plan.context
    )  # layers of all microbatches, times ranks of each
    head_flops = 6.0 * model.tokens * model.hidden * model.vocabulary
    layers = step_flops(model) - head_flops

    def moved(direction: bool) -> float:
        price = backward_pass if direction else forward_pass
        return _number(mean_over_kinds(model, lambda kind: _memory_bytes(price(kind, group, counted))))

    ahead, back, again = moved(False), moved(True), _number(share_again(model, plans))
    first, last = (_number(price(model, group, counted).energy) for price in (embedding, head))
    message, gathered = handed_on(model, split)
    weights_away, activations_away, state, away = map(_number, host_bytes(model, split)) if plan.offload != "none" else (0.0, 0.0, 0.0, 0.0)
    return Amounts(
        layer_flops=layers / 3.0 / share,
        again_flops=repeated_flops(model, code("recompute", plan.recompute)) / share,
        head_flops=head_flops * model.stack / 3.0 / share,
        layer_bytes=(ahead, back + again * ahead),
        first_bytes=(first * EMBEDDING_FORWARD, first * (1.0 - EMBEDDING_FORWARD)),
        last_bytes=(last * HEAD_FORWARD, last * (1.0 - HEAD_FORWARD)),
        tensor_bytes=_number(mean_over_kinds(model, lambda kind: turns(kind, group)) * group.tokens(model))
        * model.hidden
        * model.activation_bytes,
        for_weights=_number(mean_over_kinds(model, lambda kind: _bytes_for_weights(kind, group))),
        again=again,
        again_seconds=again * _number(mean_over_kinds(model, lambda kind: forward_pass(kind, group, hardware).exchanges())),
        message=_number(message),
        gathered=bool(np.any(gathered)),
        routed=2.0 * _number(mean_over_kinds(model, lambda kind: _routed_bytes(kind, group))),
        around=_number(mean_over_kinds(model, lambda kind: _around_bytes(kind, group))),
        gathers=_parameters_held(layer_weights(model, split)).times(model.weight_bytes if plan.zero == 3 else 0.0),
        scatters=_parameters_held(layer_trained(model, split)).times(model.gradient_bytes if plan.zero >= 2 else 0.0),
        offloaded=(weights_away, activations_away, state / max(away, 1.0)),
    )


def _memory_bytes(run: Pass) -> Real:
    return run.work.energy + run.core.energy


def _bytes_for_weights(model: Transformer, group: Ranks) -> Real:
    return np.where(group.sequence_parallel > 0.5, hiding_turns(model, group) * input_bytes(model, group), 0.0) * gathers_for_weights(model)


def _routed_bytes(model: Transformer, group: Ranks) -> Real:
    """Of a layer's tokens, each copy by itself."""
    if model.experts == 1:
        return np.float64(0.0)
    return routed_tokens(model, group) / group.norm_split() * model.hidden * model.activation_bytes


def _around_bytes(model: Transformer, group: Ranks) -> Real:
    """Keys and values in a ring; queries, keys, values and results all to all."""
    queries, keys, values, results = around_bytes(model, group)
    return queries + keys + values + results if by_all_to_all(model) else keys + values


def program_of(plan_priced: Planned, stage: int) -> Iterator[Item]:
    """The program of the devices of a stage."""
    plan = plan_priced.plan
    for microbatch, chunk, way in passes_of(stage, plan.pipeline, plan_priced.microbatches, plan.interleave, plan.schedule):
        yield from _Pass(plan_priced, stage, microbatch, chunk).items(way)
    yield from _update(plan_priced, stage)


@dataclass(frozen=True, slots=True)
class _Pass:
    """One pass of a microbatch through a chunk of a stage."""

    planned: Planned
    stage: int
    microbatch: int
    chunk: int

    @property
    def layers(self) -> int:
        return chunk_sizes(self.planned.layers[self.stage], self.planned.plan.interleave, first=self.stage == 0)[self.chunk]

    @property
    def is_first(self) -> bool:
        return self.stage == 0 and self.chunk == 0

    @property
    def is_last(self) -> bool:
        return self.stage == self.planned.plan.pipeline - 1 and self.chunk == self.planned.plan.interleave - 1

    def items(self, way: int) -> Iterator[Item]:
        amounts, plan = self.planned.amounts, self.planned.plan
        name = f"{('forward', 'backward', 'weights')[way]} {self.microbatch + 1}.{self.chunk + 1}"
        if way not in (FORWARD, BACKWARD):
            yield self.compute(name, self.planned.passes[self.stage].weights, self.layers * amounts.layer_flops, 0.0)
            return
        is_back = way == BACKWARD
        yield from self.received(name, is_back)
        yield from _replicated(f"{name} weights", "all_gather", amounts.gathers.times(self.layers), plan)
        yield self.work(name, is_back)
        yield from self.accesses(name, is_back)
        gathered = is_back * self.layers * amounts.for_weights / plan.tensor
        yield from _collective(f"{name} inputs once more", "all_gather", gathered, TENSOR, plan.tensor, is_beside=True)
        count = self.layers * (1.0 + amounts.again if is_back else 1.0)
        yield from self.around_attention(name, is_back)
        yield from _collective(f"{name} experts", "all_to_all", count * amounts.routed, EXPERT, plan.expert)
        yield from _tensor_exchanges(name, plan, count * amounts.tensor_bytes)
        yield from _replicated(f"{name} gradients", "reduce_scatter", amounts.scatters.times(self.layers * is_back), plan)
        if not (self.is_first if is_back else self.is_last):
            yield Send(f"{name} sent", round(amounts.message), PREVIOUS if is_back else NEXT, self.tag(is_back, sent=True))

    def accesses(self, name: str, is_back: bool) -> Iterator[Item]:
        """What comes from the host's memory and goes there beside a pass."""
        weights, activations, _ = self.planned.amounts.offloaded
        if self.planned.layers[self.stage] > RESIDENT_LAYERS:
            yield from _access(f"{name} weights", "load", self.layers * weights)
            yield from _access(f"{name} activations", "load" if is_back else "store", self.layers * activations)

    def around_attention(self, name: str, is_back: bool) -> Iterator[Item]:
        """Of all layers together: keys and values to the next context rank step by step, backward with their gradients, or all to all."""
        planned, plan = self.planned, self.planned.plan
        steps, repeated = plan.context - 1, planned.amounts.again * is_back
        if by_all_to_all(planned.model):
            yield from _collective(
                f"{name} heads", "all_to_all", self.layers * (1.0 + repeated) * planned.amounts.around, CONTEXT, plan.context
            )
            return
        size, tag = round(self.layers * (1.0 + is_back + repeated) * planned.amounts.around), self.tag(is_back, sent=False)
        for step in range(steps if size else 0):
            yield Send(f"{name} keys {step + 1} sent", size, AFTER, tag * steps + step)
            yield Receive(f"{name} keys {step + 1} received", size, BEFORE, tag * steps + step)

    def received(self, name: str, is_back: bool) -> Iterator[Item]:
        amounts, plan = self.planned.amounts, self.planned.plan
        if self.is_last if is_back else self.is_first:
            return
        yield Receive(f"{name} received", round(amounts.message), NEXT if is_back else PREVIOUS, self.tag(is_back, sent=False))
        if amounts.gathered:
            yield from _collective(f"{name} put together", "all_gather", amounts.message, TENSOR, plan.tensor)

    def tag(self, is_back: bool, sent: bool) -> int:
        """Of its own for each microbatch, chunk that receives, and direction."""
        plan, chunk = self.planned.plan, self.chunk
        if sent and is_back and self.stage == 0:
            chunk -= 1
        if sent and not is_back and self.stage == plan.pipeline - 1:
            chunk += 1
        return 2 * (self.microbatch * plan.interleave + chunk) + is_back

    def work(self, name: str, is_back: bool) -> Compute:
        amounts, passes, layers = self.planned.amounts, self.planned.passes[self.stage], self.layers
        apart = passes.weights > 0.0
        flops = layers * amounts.layer_flops
        if is_back:
            flops = layers * (amounts.layer_flops * (1.0 if apart else 2.0) + amounts.again_flops)
        flops += self.is_last * amounts.head_flops * (2.0 if is_back else 1.0)
        moved = layers * amounts.layer_bytes[is_back]
        moved += self.is_first * amounts.first_bytes[is_back] + self.is_last * amounts.last_bytes[is_back]
        repeated = passes.again - self.planned.layers[self.stage] * amounts.again_seconds
        return self.compute(name, repeated + passes.backward if is_back else passes.forward, flops, moved)

    def compute(self, name: str, seconds: float, flops: float, moved: float) -> Compute:
        shares = self.planned.passes[self.stage].shares
        share = shares[self.chunk] if shares else 1.0 / self.planned.plan.interleave
        return Compute(name, max(round(seconds * share * 1e6), 1), round(flops), round(moved))


def _tensor_exchanges(name: str, plan: Plan, size: float) -> Iterator[Item]:
    """Of all layers of a pass; scattered and gathered where the ranks share the sequence."""
    if plan.sequence_parallel:
        yield from _collective(f"{name} tensor gather", "all_gather", size / plan.tensor, TENSOR, plan.tensor)
        yield from _collective(f"{name} tensor scatter", "reduce_scatter", size, TENSOR, plan.tensor)
    else:
        yield from _collective(f"{name} tensor", "all_reduce", size, TENSOR, plan.tensor)


def _replicated(name: str, kind: str, weights: Held, plan: Plan) -> Iterator[Item]:
    """Among those that hold the same weights; of a gather each brings its part."""
    replicas = plan.data * plan.context
    for size, group, members in ((weights.shared, DATA, replicas), (weights.routed, ROUTED, replicas // plan.expert)):
        yield from _collective(name, kind, size / members if kind == "all_gather" else size, group, members)


def _collective(name: str, kind: str, size: float, group: str, members: int, is_beside: bool = False) -> Iterator[Item]:
    if members > 1 and round(size) > 0:
        yield Exchange(name, kind, round(size), group, is_beside)  # type: ignore[arg-type]


def _access(name: str, kind: Literal["load", "store"], size: float) -> Iterator[Item]:
    if round(size) > 0:
        yield Access(f"{name} {kind}", kind, round(size))


def _update(planned: Planned, stage: int) -> Iterator[Item]:
    """What follows the last pass: gradients that are left, those of a table on both ends, the update, and weights that were shared out."""
    model, plan = planned.model, planned.plan
    split = sharding(model, table([plan]))
    weights = _parameters_held(stage_trained(model, split, np.float64(stage)))
    beside = weights.less(_parameters_held(layer_trained(model, split)).times(planned.layers[stage]))
    scattered = plan.zero >= 2 or (plan.zero == 1 and model.scattered_gradients)
    summed = (beside if plan.zero >= 2 else weights).times(model.gradient_bytes)
    yield from _replicated("gradients", "reduce_scatter" if scattered else "all_reduce", summed, plan)
    if model.tied and plan.pipeline > 1 and stage in (0, plan.pipeline - 1):
        size = model.gradient_bytes * model.vocabulary * model.hidden / plan.tensor
        yield from _collective("gradients of the table", "all_reduce", size, ENDS, 2)
    if planned.optimizer > 0.0:
        yield Compute("update", max(round(planned.optimizer * 1e6), 1))
        state = max(planned.layers[stage] - RESIDENT_LAYERS, 0) * planned.amounts.offloaded[2]
        yield from _access("optimizer", "load", state)
        yield from _access("optimizer", "store", state)
    if plan.zero:
        yield from _replicated("weights", "all_gather", (beside if plan.zero == 3 else weights).times(model.weight_bytes), plan)


def flops_of(planned: Planned) -> float:
    """Of a step on all devices: the network's, and what is computed again."""
    return step_flops(planned.model) + repeated_flops(planned.model, code("recompute", planned.plan.recompute))


def _parameters_held(weights: Weights) -> Held:
    return Held(_number(weights.shared), _number(weights.routed))


def _number(value: object) -> float:
    return float(np.asarray(value).reshape(-1)[0])


def cannot(model: Transformer, plan: Plan) -> str | None:
    """What of a plan no program says yet, with the setting that rules it out; None where all of it is said."""
    checks = (
        (f"expert_tensor {plan.expert_tensor}", plan.expert_tensor > 0, "ask again with --set expert_tensor=0"),
        (f"schedule {plan.schedule}", plan.schedule in ("zero-bubble-v", "dualpipe"), "ask again with --set schedule=1f1b"),
        (f"shard {plan.shard}", plan.shard > 0, "ask again with --set shard=0"),
        ("layers that are not trained", bool(model.frozen_layers or model.lora_rank), "export a plan that trains all layers"),
    )
    return next((f"{name} yet ({remedy})" for name, holds, remedy in checks if holds), None)


# Where the devices of a plan stand: which ones each sends to, and in which groups it exchanges.
#
# A device's number is the sum of its place in each dimension times the devices laid inside that dimension, the innermost first as the
# plan's placement says. Groups are numbered from 1, as the simulator ends on 0.


@dataclass(frozen=True, slots=True)
class Npu:
    """A device of a plan."""

    number: int
    stage: int
    peers: dict[str, int]
    groups: dict[str, int]


def npus_of(plan: Plan, roles: Container[str]) -> tuple[list[Npu], dict[int, tuple[int, ...]]]:
    """All devices in their order, and the members of each group that has one of these roles."""
    degrees = {"tensor": plan.tensor, "context": plan.context, "data": plan.data, "pipeline": plan.pipeline}
    order = plan.placement.split("-")
    members, number_of = dict[int, tuple[int, ...]](), dict[tuple[str, int], int]()
    places = list(_places(order, degrees))
    strides = _strides(order, degrees)
    for role, lies in _along(plan, roles):
        apart = [sum(steps) for steps in product(*([step * strides[name] for step in inside] for name, inside in lies))]
        for number, coordinates in enumerate(places):
            if (role, number) not in number_of and all(coordinates[name] + inside[-1] < degrees[name] for name, inside in lies):
                group = len(members) + 1
                members[group] = tuple(sorted(number + offset for offset in apart))
                number_of |= {(role, member): group for member in members[group]}
    npus = list[Npu]()
    for number, coordinates in enumerate(places):
        peers = dict[str, int]()
        for name, roles_of in (("pipeline", (NEXT, PREVIOUS)), ("context", (AFTER, BEFORE))):
            first, degree = number - coordinates[name] * strides[name], degrees[name]
            others = (first + (coordinates[name] + step) % degree * strides[name] for step in (1, -1))
            peers |= dict(zip(roles_of, others, strict=True)) if degree > 1 else {}
        groups = {role: number_of[role, number] for role, _ in _along(plan, roles) if (role, number) in number_of}
        npus.append(Npu(number, coordinates["pipeline"], peers, groups))
    return npus, members


def _along(plan: Plan, roles: Container[str]) -> Iterator[tuple[str, tuple[tuple[str, Sequence[int]], ...]]]:
    """Each role of a group, and the dimensions along which it lies with where its members stand from the first one."""
    context = ("context", range(plan.context))
    every: tuple[tuple[str, tuple[tuple[str, Sequence[int]], ...]], ...] = (
        (TENSOR, (("tensor", range(plan.tensor)),)),
        (CONTEXT, (context,)),
        (DATA, (context, ("data", range(plan.data)))),
        (EXPERT, (("data", range(plan.expert)),)),
        (ROUTED, (context, ("data", range(0, plan.data, plan.expert)))),
        (ENDS, (("pipeline", (0, plan.pipeline - 1)),)),
    )
    return (role for role in every if role[0] in roles)


def _places(order: list[str], degrees: dict[str, int]) -> Iterator[dict[str, int]]:
    count = 1
    for degree in degrees.values():
        count *= degree
    for number in range(count):
        left, coordinates = number, dict[str, int]()
        for name in order:
            left, coordinates[name] = divmod(left, degrees[name])
        yield coordinates


def _strides(order: list[str], degrees: dict[str, int]) -> dict[str, int]:
    found, inside = dict[str, int](), 1
    for name in order:
        found[name] = inside
        inside *= degrees[name]
    return found


MOST = 1 << 16
"""Devices, each of which has a file."""
MOST_ITEMS = 1 << 16
"""Nodes of a trace."""
LARGEST = 1 << 62
"""FLOPs or bytes that no node reaches, as `check` reads them back."""


def export_chakra(options: Namespace, instance: Instance, chosen: Candidate) -> None:
    """Write the traces and say what was written; a RefusedError where no trace says the plan."""
    model, plan = instance.workload, chosen.plan
    if not isinstance(model, Transformer) or not isinstance(plan, Plan):
        raise RefusedError(f"{options.file}: only plans of transformers are written as traces")
    target = _target(options.out)
    if (what := cannot(model, plan)) is not None:
        raise RefusedError(f"--as chakra: traces do not say {what}")
    if plan.devices > MOST:
        raise RefusedError(f"--as chakra: {plan.devices:,} devices are more than {MOST:,} files")
    design = design_of(instance, chosen)
    plan_priced = planned(model, design.hardware, instance.cluster, plan)
    passes = plan_priced.microbatches * plan.interleave
    if (11 + 2 * (plan.context - 1)) * passes > MOST_ITEMS:
        raise RefusedError(f"--as chakra: {passes:,} passes of a device are too many for a trace (export larger microbatches)")
    name = file_name(instance.name)
    step = evaluate(model, design, instance.budget, instance.prices).step_time
    sums, groups = _write(plan_priced, target, name, round(step * 1e9))
    for line in _summary_lines(plan_priced, sums, groups, target, name):
        sys.stdout.write(fitted(f"{line}\n"))


def _target(out: Path | None) -> Path:
    if out is None or str(out) == "-":
        usage("--as chakra: a folder or a .tar is needed for the traces (say --out FOLDER or --out FILE.tar)")
    if out.suffix == ".tar":
        check_target(out)
    elif out.exists() and not (out.is_dir() and not any(out.iterdir())):
        usage(f"--out {out}: this is there already (name a new folder, or an empty one)")
    elif not out.parent.is_dir():
        usage(f"--out {out}: there is no folder {out.parent} (make it first)")
    return out


def _write(planned: Planned, target: Path, name: str, step: int) -> tuple[Sums, dict[int, tuple[int, ...]]]:
    programs = [list(program_of(planned, stage)) for stage in range(planned.plan.pipeline)]
    refuse_large(programs)
    roles = {item.group for program in programs for item in program if isinstance(item, Exchange)}
    npus, groups = npus_of(planned.plan, roles)
    sums = _sums(programs, npus)
    writers = [Writer(pieces_of(program)) for program in programs]

    traces = (writers[npu.stage].trace_of(npu.number, npu.peers, npu.groups) for npu in npus)
    with naming(target):
        write_traces(target, name, traces, groups, about(sums, {"name": name, "plan": str(planned.plan), STEP: step}))
    return sums, groups


def refuse_large(programs: list[list[Item]]) -> None:
    """A RefusedError where a size does not fit into a node."""
    largest = max(max(item.bytes, item.flops if isinstance(item, Compute) else 0) for program in programs for item in program)
    if largest >= LARGEST:
        raise RefusedError(f"--as chakra: {largest:.3g} FLOPs or bytes are too many for one node (export a plan of more devices)")


def _sums(programs: list[list[Item]], npus: list[Npu]) -> Sums:
    """What all devices do together, counted from the programs."""
    count, sums = Counter(npu.stage for npu in npus), Sums(npus=len(npus))
    for stage, program in enumerate(programs):
        for item in program:
            sums.nodes += count[stage]
            if isinstance(item, Compute):
                sums.micros += count[stage] * item.micros
                sums.flops += count[stage] * item.flops
                sums.moved += count[stage] * item.bytes
            elif isinstance(item, Send):
                sums.messages += count[stage]
                sums.message_bytes += count[stage] * item.bytes
            elif isinstance(item, Exchange):
                sums.collectives += count[stage]
                sums.collective_bytes += count[stage] * item.bytes
            elif isinstance(item, Access):
                sums.accesses += count[stage]
                sums.access_bytes += count[stage] * item.bytes
    return sums


def _summary_lines(planned: Planned, sums: Sums, groups: dict[int, tuple[int, ...]], target: Path, name: str) -> Iterator[str]:
    share = sums.flops / flops_of(planned)
    yield f"{target}: {several(sums.npus, 'trace')} {name}.<npu>.et, {GROUPS} with {several(len(groups), 'group')}, {ABOUT}"
    yield f"  plan           {planned.plan}"
    yield f"  nodes          {sums.nodes:,}, of which {sums.messages:,} send and as many receive, and {sums.collectives:,} are collectives"
    yield f"  computations   {sums.flops:.6g} FLOPs, {share:.6%} of those of the step and of what is computed again"
    yield f"  messages       {sums.message_bytes:,} bytes"
    yield f"  collectives    {sums.collective_bytes:,} bytes at their members: the whole of all but gathers, of which the shard"
    if sums.accesses:
        yield f"  host memory    {sums.access_bytes:,} bytes in {sums.accesses:,} loads and stores; `check` replays them by --remote-memory"
    yield "  left out       exchanges of the embedding and the head; exchanges of a pass are one collective, and hide behind no work"
    if planned.amounts.for_weights:
        yield "                 but what is gathered once more for gradients of weights: that is beside its backward pass"
    yield f"  read again by  crossopt check {target}"
