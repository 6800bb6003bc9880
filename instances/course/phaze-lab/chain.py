"""The chain of layers of a transformer from its shape, as a question: `python chain.py LAYERS HIDDEN SEQUENCE MICROBATCH [WIDTHS]`.

    forward      (24 b s h^2 + 4 b s^2 h) FLOPs of a layer, at 60 % of the peak; backward takes twice as long
    output       2 b s h bytes; activations 34 b s h bytes (Korthikanti et al. 2022, without those of the scores)
    parameters   24 h^2 bytes of a layer, two bytes each
    width w      a share of 1 / w of all that, and four sums of the output over w devices: 4 (w - 1) / w of output / bandwidth each way

b sequences of s tokens in a microbatch, h values of a token. The embedding takes a tenth of a layer's time, the head half of it, and each
keeps the table of the vocabulary.
"""

import sys

PEAK = 2 * 8 * 128 * 128 * 1.05e9
"""FLOP/s of a chip with 8 cores of 128 x 128 multipliers at 1.05 GHz."""
SHARE_OF_PEAK, BANDWIDTH = 0.6, 4 * 2**30
DEVICES, SEQUENCES, VOCABULARY = 1024, 4096, 50_000

Kind = tuple[str, int, float, float, float]
"""Name, count, share of a layer's time, bytes of parameters, bytes of activations."""


def question(layers: int, hidden: int, sequence: int, microbatch: int, widths: list[int]) -> str:
    """The chain as YAML."""
    tokens, edge = microbatch * sequence, 2 * microbatch * sequence * hidden
    forward = (24 * tokens * hidden**2 + 4 * tokens * sequence * hidden) / (SHARE_OF_PEAK * PEAK)
    table = 2.0 * VOCABULARY * hidden
    kinds: list[Kind] = [
        ("embedding", 1, 0.1, table, edge),
        ("layer", layers, 1.0, 24.0 * hidden**2, 34.0 * tokens * hidden),
        ("head", 1, 0.5, table, 4.0 * edge),
    ]
    lines = [
        f"# {layers} layers of {hidden}, {microbatch} sequences of {sequence} tokens in a microbatch.",
        "kind: chain",
        f"devices: {DEVICES}",
        "memory: 80 GiB",
        "bandwidth: 4 GiB/s",
        f"microbatches: {SEQUENCES // microbatch}",
        "layers:",
    ]
    for kind in kinds:
        lines += [f"  - name: {kind[0]}", f"    count: {kind[1]}", f"    output: {edge} B", "    widths:"]
        lines += [f"      {width}: {{{figures(kind, forward, edge, width)}}}" for width in widths]
    return "\n".join(lines) + "\n"


def figures(kind: Kind, forward: float, edge: int, width: int) -> str:
    """What one of `width` devices does and keeps; embedding and head need no sums, and keep their activations whole."""
    name, _, share, parameters, activations = kind
    sums = 4 * edge / BANDWIDTH * (width - 1) / width if name == "layer" else 0.0
    there, back = (times * share * forward / width + sums for times in (1.0, 2.0))
    kept = f"parameters: {parameters / width:.0f} B, activations: {activations / (width if name == 'layer' else 1):.0f} B"
    return f"forward: {there * 1e3:.6g} ms, backward: {back * 1e3:.6g} ms, {kept}"


if __name__ == "__main__":
    layers, hidden, sequence, microbatch = map(int, sys.argv[1:5])
    widths = sys.argv[5] if len(sys.argv) > 5 else "1"
    sys.stdout.write(question(layers, hidden, sequence, microbatch, [int(word) for word in widths.split(",")]))
