"""The command `export --as chakra`: a trace for each device of the plan of a result."""

import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from crossopt.crossflow.evaluate import evaluate
from crossopt.crossflow.plan import Plan
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.errors import RefusedError
from crossopt.instances.files.saved import file_name, naming
from crossopt.instances.traces.chakra.program import Compute, Exchange, Item, Send, Writer, pieces_of
from crossopt.instances.traces.chakra.recount import Sums, about
from crossopt.instances.traces.chakra.written import ABOUT, GROUPS, STEP, write_traces
from crossopt.reports.commands.console import check_target, usage
from crossopt.reports.launching.chakra.programs import Planned, cannot, flops_of, planned, program_of
from crossopt.reports.launching.chakra.ranks import Npu, npus_of
from crossopt.reports.render.width import fitted
from crossopt.reports.sheets.amounts import several
from crossopt.solvers.codesign.answer import Candidate, design_of

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
    one = planned(model, design.hardware, instance.cluster, plan)
    passes = one.microbatches * plan.interleave
    if (9 + 2 * (plan.context - 1)) * passes > MOST_ITEMS:
        raise RefusedError(f"--as chakra: {passes:,} passes of a device are too many for a trace (export larger microbatches)")
    name = file_name(instance.name)
    step = evaluate(model, design, instance.budget, instance.prices).step_time
    sums, groups = _write(one, target, name, round(step * 1e9))
    for line in _told(one, sums, groups, target, name):
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


def _write(one: Planned, target: Path, name: str, step: int) -> tuple[Sums, dict[int, tuple[int, ...]]]:
    programs = [list(program_of(one, stage)) for stage in range(one.plan.pipeline)]
    refuse_large(programs)
    roles = {item.group for program in programs for item in program if isinstance(item, Exchange)}
    npus, groups = npus_of(one.plan, roles)
    sums = _sums(programs, npus)
    writers = [Writer(pieces_of(program)) for program in programs]

    traces = (writers[npu.stage].trace_of(npu.number, npu.peers, npu.groups) for npu in npus)
    with naming(target):
        write_traces(target, name, traces, groups, about(sums, {"name": name, "plan": str(one.plan), STEP: step}))
    return sums, groups


def refuse_large(programs: list[list[Item]]) -> None:
    """A RefusedError where a size does not fit into a node."""
    largest = max(max(item.bytes, item.flops if isinstance(item, Compute) else 0) for program in programs for item in program)
    if largest >= LARGEST:
        raise RefusedError(f"--as chakra: {largest:.3g} FLOPs or bytes are too many for one node (export a plan of more devices)")


def _sums(programs: list[list[Item]], npus: list[Npu]) -> Sums:
    """What all devices do together, counted from the programs."""
    held, sums = Counter(npu.stage for npu in npus), Sums(npus=len(npus))
    for stage, program in enumerate(programs):
        for item in program:
            sums.nodes += held[stage]
            if isinstance(item, Compute):
                sums.micros += held[stage] * item.micros
                sums.flops += held[stage] * item.flops
                sums.moved += held[stage] * item.bytes
            elif isinstance(item, Send):
                sums.messages += held[stage]
                sums.message_bytes += held[stage] * item.bytes
            elif isinstance(item, Exchange):
                sums.collectives += held[stage]
                sums.collective_bytes += held[stage] * item.bytes
    return sums


def _told(one: Planned, sums: Sums, groups: dict[int, tuple[int, ...]], target: Path, name: str) -> Iterator[str]:
    share = sums.flops / flops_of(one)
    yield f"{target}: {several(sums.npus, 'trace')} {name}.<npu>.et, {GROUPS} with {several(len(groups), 'group')}, {ABOUT}"
    yield f"  plan           {one.plan}"
    yield f"  nodes          {sums.nodes:,}, of which {sums.messages:,} send and as many receive, and {sums.collectives:,} are collectives"
    yield f"  computations   {sums.flops:.6g} FLOPs, {share:.6%} of those of the step and of what is computed again"
    yield f"  messages       {sums.message_bytes:,} bytes"
    yield f"  collectives    {sums.collective_bytes:,} bytes at their members: the whole of all but gathers, of which the shard"
    yield "  left out       exchanges of the embedding and the head; exchanges of a pass are one collective, and hide behind no work"
    if one.amounts.for_weights:
        yield "                 but what is gathered once more for gradients of weights: that is beside its backward pass"
    yield f"  read again by  crossopt check {target}"
