"""Assignment 1: weights, FLOPs, bytes and memory of a transformer layer. Copy this file to solution.py and fill the holes."""

from pathlib import Path

import yaml

Shape = dict[str, int]
"""`gated` is True or False."""


def layer_weights(shape: Shape) -> float:
    """Weights of one layer: queries, keys, values, output projection, feed-forward part, two norms."""
    raise NotImplementedError("layer_weights is still a hole")


def step_flops(shape: Shape, sequences: int) -> float:
    """FLOPs of the matrix products of one training step, forward and backward."""
    raise NotImplementedError("step_flops is still a hole")


def product_bytes(rows: int, depth: int, columns: int) -> float:
    """Bytes between memory and chip for C[rows, columns] = A[rows, depth] B[depth, columns] in bf16, at least."""
    raise NotImplementedError("product_bytes is still a hole")


def product_seconds(rows: int, depth: int, columns: int, peak: float, bandwidth: float) -> float:
    """Seconds for the same, at least, with `peak` FLOP/s and `bandwidth` B/s."""
    raise NotImplementedError("product_seconds is still a hole")


def layer_activations(shape: Shape, microbatch: int, tensor: int, recompute: bool) -> float:
    """Bytes that one layer keeps on one of `tensor` devices for the backward pass of a microbatch of so many sequences."""
    raise NotImplementedError("layer_activations is still a hole")


def state_bytes(shape: Shape, tensor: int, data: int, zero: int) -> float:
    """Bytes of weights, gradients and optimizer state of one layer on one device, with ZeRO of this stage (0 is without)."""
    raise NotImplementedError("state_bytes is still a hole")


if __name__ == "__main__":  # `python solution.py` prints what the functions say of instance.yaml
    given = yaml.safe_load(Path(__file__).with_name("instance.yaml").read_text(encoding="utf-8"))
    shape, product = given["shape"], given["product"]
    print("layer_weights", layer_weights(shape))
    print("step_flops", step_flops(shape, **given["step_flops"]))
    print("product_bytes", product_bytes(**product))
    print("product_seconds", product_seconds(**product, **given["device"]))
    print("layer_activations", layer_activations(shape, **given["layer_activations"]))
    print("state_bytes", state_bytes(shape, **given["state_bytes"]))
