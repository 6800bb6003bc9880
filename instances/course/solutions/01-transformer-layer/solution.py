"""Reference solution of assignment 1."""

from typing import Any

Shape = dict[str, Any]


def matrices(shape: Shape) -> int:
    """Weights of the matrices of one layer."""
    hidden, width = shape["hidden"], shape["hidden"] // shape["heads"]
    attention = hidden * width * (2 * shape["heads"] + 2 * shape["kv_heads"])
    return int(attention + (3 if shape["gated"] else 2) * hidden * shape["ffn"])


def layer_weights(shape: Shape) -> int:
    """The matrices and two norms."""
    return matrices(shape) + 2 * int(shape["hidden"])


def step_flops(shape: Shape, sequences: int) -> int:
    """Two FLOPs for each weight and token, and for each pair of tokens twice two for each value of a head; three passes."""
    tokens = sequences * shape["sequence"]
    layer = 2 * matrices(shape) + 4 * shape["sequence"] * shape["hidden"]
    return int(3 * tokens * (shape["layers"] * layer + 2 * shape["hidden"] * shape["vocabulary"]))


def product_bytes(rows: int, depth: int, columns: int) -> int:
    """Both operands are read once, the result is written once."""
    return 2 * (rows * depth + depth * columns + rows * columns)


def product_seconds(rows: int, depth: int, columns: int, peak: float, bandwidth: float) -> float:
    """Arithmetic or memory, whichever takes longer."""
    return max(2 * rows * depth * columns / peak, product_bytes(rows, depth, columns) / bandwidth)


def layer_activations(shape: Shape, microbatch: int, tensor: int, recompute: bool) -> float:
    """Component by component, two bytes a value."""
    hidden, width = shape["hidden"], shape["hidden"] // shape["heads"]
    tokens = microbatch * shape["sequence"]
    if recompute:
        return float(2 * tokens * hidden / tensor)
    heads = shape["heads"] / tensor
    shared = max(shape["kv_heads"] / tensor, 1)
    values = 4 * hidden / tensor + width * (2 * heads + 2 * shared) + (3 if shape["gated"] else 2) * shape["ffn"] / tensor
    return float(tokens * (2 * values + 4 * heads))


def state_bytes(shape: Shape, tensor: int, data: int, zero: int) -> float:
    """Each part is divided among the replicas from its stage of ZeRO on."""
    weights = matrices(shape) / tensor + 2 * shape["hidden"]
    return float(sum(size * weights / (data if zero >= stage else 1) for size, stage in ((2, 3), (4, 2), (12, 1))))
