"""Likely mistakes of assignment 1: what becomes of a passage of solution.py, the points that are left, from and to, and what is told.

Where the passage is empty, the code is put at the end. A test grades each of them.
"""

MISTAKES = (
    ("norms are forgotten", ' + 2 * int(shape["hidden"])', "", 50, 56, "the two norms are left out"),
    (
        "every head has keys and values of its own",
        '2 * shape["heads"] + 2 * shape["kv_heads"])',
        '4 * shape["heads"])',
        35,
        45,
        "as many heads of keys",
    ),
    (
        "SwiGLU has two matrices",
        'return int(attention + (3 if shape["gated"] else 2)',
        "return int(attention + 2",
        35,
        45,
        "feed-forward part has two matrices",
    ),
    ("the forward pass alone", "return int(3 * tokens", "return int(tokens", 50, 56, "the backward pass is left out"),
    ("a causal mask halves the scores", '4 * shape["sequence"]', '2 * shape["sequence"]', 50, 56, "half of the scores are counted"),
    (
        "the head of the network is forgotten",
        ' + 2 * shape["hidden"] * shape["vocabulary"]',
        "",
        50,
        56,
        "the head of the network is left out",
    ),
    ("the result is not written", " + rows * columns)", ")", 45, 53, "the result is not written"),
    (
        "arithmetic and memory one after the other",
        "return max(2 * rows * depth * columns / peak, product_bytes",
        "return (2 * rows * depth * columns / peak + product_bytes",
        50,
        56,
        "they overlap",
    ),
    (
        "the whole head of keys and of values is split",
        'max(shape["kv_heads"] / tensor, 1)',
        'shape["kv_heads"] / tensor',
        50,
        56,
        "the whole head",
    ),
    ("each norm keeps one tensor", "4 * hidden / tensor", "2 * hidden / tensor", 50, 56, "each norm is counted by one tensor"),
    ("no sequence parallelism", "4 * hidden / tensor", "4 * hidden", 45, 56, "times the right one"),
    ("statistics of attention are forgotten", " + 4 * heads)", ")", 50, 56, "four more bytes"),
    ("the optimizer keeps two moments alone", "(12, 1)", "(8, 1)", 50, 56, "the optimizer has eight bytes"),
    ("ZeRO begins with the weights", "((2, 3), (4, 2), (12, 1))", "((2, 1), (4, 2), (12, 3))", 50, 56, "begin with the weights"),
    (
        "four of these together",
        "",
        """
def product_bytes(rows, depth, columns):
    return 2 * (rows * depth + depth * columns)
def step_flops(shape, sequences, right=step_flops):
    return right(shape, sequences) / 3
def layer_weights(shape):
    return matrices(shape)
def state_bytes(shape, tensor, data, zero, right=state_bytes):
    return right(shape, tensor, data, min(zero, 1))
""",
        20,
        45,
        "the backward pass is left out",
    ),
)
