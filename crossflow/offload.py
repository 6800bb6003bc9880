"""Time and energy of offloading to host memory; the memory saved is in `crossflow.memory`.

A stage with more than three layers may keep weights, activations or optimizer state of its layers in the host's memory: three layers stay
on the device, one in use, one coming and one going (as in Calculon, Isaev et al. 2023). The link carries both directions at once and works
beside the device, so that one layer and microbatch takes

    forward   max(layer, max(weights in, activations out) / bandwidth)
    backward  max(layer, (weights in + activations in) / bandwidth)

and the optimizer max(its own time, state there and back / bandwidth). Embedding, head, gradients and working set stay on the device.
"""

import numpy as np

from crossopt.crossflow.arrays import Mask, Real
from crossopt.crossflow.hardware import Memory
from crossopt.crossflow.memory import kept_activations, layer_trained, layer_weights
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.sharding import RESIDENT_LAYERS, Sharding, Weights, in_flight, layers_of, offloads, share_out
from crossopt.crossflow.workload import Transformer


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
    split, one, trained = layers_of(model, sharding), layer_weights(model, sharding), layer_trained(model, sharding)
    layers = np.maximum(np.maximum(split.first(), split.middle()), split.last())
    flight = in_flight(sharding, 0.0)
    weights = np.where(_moves(sharding, "weights", layers), model.weight_bytes * share_out(sharding, one, 3), 0.0)
    activations = np.where(_moves(sharding, "activations", layers * flight), kept_activations(model, sharding, layers), 0.0)
    away = np.maximum(layers - RESIDENT_LAYERS, 0.0)
    state = model.optimizer_bytes * share_out(sharding, Weights(away * trained.shared, away * trained.routed), 1)
    state = np.where(offloads(sharding, "optimizer"), state, 0.0)
    return HostTraffic(
        forward=np.maximum(weights, activations) / host.bandwidth,
        backward=(weights + activations) / host.bandwidth,
        optimizer=state / host.bandwidth,
        layer_energy=2.0 * (weights + activations) * host.energy,
        energy=2.0 * state * host.energy,
    )


def _moves(sharding: Sharding, what: str, layers: Real) -> Mask:
    return offloads(sharding, what) & np.greater(layers, RESIDENT_LAYERS)
