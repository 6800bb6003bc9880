"""From a question in YAML to the problem of a transformer on a mesh."""

import hashlib
from dataclasses import fields, replace
from math import prod

import numpy as np

from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.registry import UnknownNameError, build_device, device
from crossopt.instances.catalogue.workload import Report, build_workload
from crossopt.instances.errors import Fault
from crossopt.instances.files.written import Files, Written
from crossopt.instances.sharding.network import Network, network_problem
from crossopt.instances.sharding.problem import Problem
from crossopt.instances.sharding.section import ShardingFile

_MOST_AXES, _MOST_DEVICES = 3, 1 << 16


def generated(file: ShardingFile, written: Written) -> Network:
    """The problem and what its numbers mean; an InstanceError with every fault."""
    faults: list[Fault] = []

    def report(path: str, message: str) -> None:
        faults.append(written.fault(path, message))

    model = _model(file, written.files, report)
    mesh = file.mesh or ()
    if not 1 <= len(mesh) <= _MOST_AXES or not 1 <= prod(mesh) <= _MOST_DEVICES:
        report("mesh", f"a mesh of 1 to {_MOST_AXES} axes and at most {_MOST_DEVICES:,} devices is needed (such as mesh: [4, 8])")
    if file.hardware is None:
        report("hardware", "a device is needed (such as hardware: a100-80g; `crossopt list hardware` names them)")
    if faults or model is None or file.hardware is None:
        raise written.refused(faults)
    try:
        entry = device(file.hardware)
        hardware = build_device(entry, file.hardware, model.precision, 2)
        devices = prod(mesh)
        node = min(file.devices_per_node or entry.devices_per_node, devices)
        if devices % node:
            raise ValueError(f"{devices} devices are no whole number of nodes of {node} (give devices_per_node)")
        room = float(np.asarray(hardware.dram.capacity).item()) - hardware.reserved_memory
        found = network_problem(model, hardware, mesh, (node, devices), int(room))
        return replace(found, given=_given(model, file.hardware, mesh, node))
    except (UnknownNameError, ValueError) as error:
        raise written.refused([written.fault("hardware", str(error))]) from error


def _given(model: Transformer, hardware: str, mesh: tuple[int, ...], node: int) -> tuple[tuple[str, str], ...]:
    """What the numbers are made of."""
    shape = f"{model.layers} layers, hidden size {model.hidden:,}, {model.heads} heads"
    batch = f"{model.global_batch:,} samples of {model.sequence:,} tokens in {model.precision}, as one microbatch"
    devices = f"{' x '.join(map(str, mesh))} devices, {node:,} in a node"
    return ("model", f"{model.name}: {shape}"), ("batch", batch), ("hardware", hardware), ("mesh", devices)


def _model(file: ShardingFile, files: Files, report: Report) -> Transformer | None:
    if file.workload is None:
        return None
    model = build_workload(file.workload, files, lambda path, message: report(f"workload.{path}".strip("."), message))
    if model is None:
        return None
    if not isinstance(model, Transformer) or model.experts > 1 or model.latent or model.parallel_blocks or not model.all_trained:
        without = "without latents, parallel blocks, adapters or frozen layers"
        report("workload", f"problems are generated from dense transformers only, {without} (give model or transformer)")
        return None
    return model


def digest_of(problem: Problem) -> str:
    """SHA-256 of all figures: a cost model that has changed makes another problem."""
    found = hashlib.sha256()
    for field in fields(problem):
        value = getattr(problem, field.name)
        found.update(value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode())
    return found.hexdigest()
