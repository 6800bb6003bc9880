"""Recomputation modes: sets of modules of a layer that the backward pass computes again, each with a name and a number.

A module is what an operator or a few give: that is not kept, and they work again before it is needed. In the words of Megatron-Core's
`--recompute-modules` (megatron/core/transformer/transformer_config.py, core 0.14) the modules are

    attention-norm       the norm before attention, or before both parts where these are in parallel     layernorm
    feed-forward-norm    the norm before the feed-forward part                                           layernorm
    dense-activation     the activation of dense parts and of shared experts
    expert-activation    the activation of the experts that tokens choose                                moe_act
    up-projections       of latents: their norms, and the queries, keys and values that they give        mla_up_proj
    selective            attention from its scores on                                                    core_attn
    second-products      every other product of a dense layer, one by one without a gate: keys, the
                         projection, and of a gated part one of the two inner ones (torchtitan)
    dense-part           the feed-forward part of dense layers, with its norm and its exchange           mlp
    shared-experts       the experts of every token, with their exchange                                 shared_experts
    experts              all of the router, the experts and what goes to them, shared ones too           moe

and `norms`, `activations`, `elements` (both) and `selective-elements` are names of several. A set is written with `+` between its modules,
such as `norms+expert-activation`; `full` is all of a layer with its exchanges, `full-2` that of two layers of each chunk. A module that a
network does not have is nothing there. As a number a set has a bit for each module, so that what all of several sets compute again, and
none computes less than, is their bitwise and.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import combinations
from operator import and_, or_
from re import ASCII, fullmatch
from typing import Final

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask, Real
from crossopt.crossflow.workload import Transformer

ATTENTION_NORM, FEED_FORWARD_NORM, DENSE_ACTIVATION, EXPERT_ACTIVATION, UP_PROJECTIONS, ATTENTION = (1 << bit for bit in range(6))
DENSE_PART, SHARED_EXPERTS, EXPERTS, SECOND_PRODUCTS, LAYER = (1 << bit for bit in range(6, 11))
PARTLY: Final = 1 << 11
"""Factor in the number of a mode that encodes how many layers of each chunk are recomputed."""
_FULL: Final = PARTLY - 1
_NORMS, _ACTIVATIONS = ATTENTION_NORM | FEED_FORWARD_NORM, DENSE_ACTIVATION | EXPERT_ACTIVATION
_SETS: Final[dict[str, int]] = {
    "none": 0,
    "full": _FULL,
    "experts": EXPERTS | SHARED_EXPERTS | EXPERT_ACTIVATION,
    "selective-elements": _NORMS | _ACTIVATIONS | ATTENTION,
    "elements": _NORMS | _ACTIVATIONS,
    "norms": _NORMS,
    "activations": _ACTIVATIONS,
    "attention-norm": ATTENTION_NORM,
    "feed-forward-norm": FEED_FORWARD_NORM,
    "dense-activation": DENSE_ACTIVATION,
    "expert-activation": EXPERT_ACTIVATION,
    "up-projections": UP_PROJECTIONS,
    "selective": ATTENTION,
    "dense-part": DENSE_PART,
    "shared-experts": SHARED_EXPERTS,
    "second-products": SECOND_PRODUCTS,
}
"""Bits by name, a set before its subsets."""
MODULES: Final = tuple(name for name in _SETS if name not in ("none", "full"))
"""Names that `+` may join."""
MEGATRON: Final = {
    "core_attn": "selective",
    "layernorm": "norms",
    "moe_act": "expert-activation",
    "mla_up_proj": "up-projections",
    "mlp": "dense-part",
    "moe": "experts",
    "shared_experts": "shared-experts",
}
"""Names of Megatron-Core and ours."""
_SEVERAL: Final = ("norms", "activations", "elements", "selective-elements")
"""Names of several modules that have names of their own."""
BEST: Final = "best"
"""In questions: every set of modules that saves memory, and any number of layers of a chunk in full."""
RECOMPUTE: Final = ("none", "elements", "selective", "selective-elements", "full")
"""Modes available for every network."""
OF_EXPERTS: Final = ("expert-activation", "feed-forward-norm+expert-activation")
OF_LATENTS: Final = ("up-projections",)
OF_BOTH: Final = ("norms+expert-activation+up-projections",)
"""Further modes for networks with experts, with latents, and with both, as in their recipes."""
WHOLE_PARTS: Final = ("dense-part", "shared-experts", "experts")
"""Modules with products of a part of the layer."""


Recomputed = tuple[Array, Array] | None
"""Layers that a mode covers, out of how many; None if it covers all layers of all plans."""


def layers_named(mode: str) -> int:
    """The number of layers per chunk in a name such as `full-2`; 0 for any other name."""
    found = fullmatch(r"full-([1-9]\d{0,5})", mode, ASCII)
    return int(found[1]) if found else 0


def number_of(mode: str) -> int:
    """The number of a recomputation mode; a ValueError if the name is invalid."""
    if layers := layers_named(mode):
        return PARTLY * layers + _FULL
    parts = mode.split("+")
    if not set(parts) <= {*(_SETS if len(parts) == 1 else MODULES)}:
        if set(parts) <= {*MODULES, *MEGATRON}:
            ours = "+".join(MEGATRON.get(part, part) for part in parts)
            raise ValueError(f"recompute is {mode!r}, which is called {ours!r} here (join modules that go together with +)")
        raise ValueError(f"recompute is {mode!r}, one of none, full, full-2 (of two layers), or of {', '.join(MODULES)} with + is needed")
    return reduce(or_, (_SETS[part] for part in parts))


def mode_name(number: int) -> str:
    """The canonical name of a recomputation mode."""
    layers, left = divmod(int(number), PARTLY)
    if layers:
        return f"full-{layers}"
    found = list[str]()
    for name, modules in _SETS.items():
        if modules and not modules & ~left:
            found.append(name)
            left &= ~modules
    return "+".join(found) or "none"


def sets_of(names: Iterable[str]) -> tuple[str, ...]:
    """Every subset of these modules."""
    listed = tuple(names)
    return tuple(mode_name(number_of("+".join(some) or "none")) for count in range(len(listed) + 1) for some in combinations(listed, count))


def meaning_of(model: Transformer, number: int) -> int:
    """The mode without modules that the network lacks, and with those that others contain there."""
    if number & LAYER:
        return number
    absent = (0 if model.experts > 1 else EXPERT_ACTIVATION | EXPERTS) | (0 if model.latent else UP_PROJECTIONS)
    dense = model.experts == 1 or bool(model.dense_layers)
    absent |= (0 if dense else DENSE_PART) | (0 if model.shared_experts else SHARED_EXPERTS)
    absent |= 0 if model.experts == 1 and not model.latent else SECOND_PRODUCTS
    absent |= (0 if dense or model.shared_experts else DENSE_ACTIVATION) | (0 if model.normed_parts[1] else FEED_FORWARD_NORM)
    if number & DENSE_PART and model.experts == 1:
        number |= DENSE_ACTIVATION | FEED_FORWARD_NORM
    if number & SHARED_EXPERTS and not dense:
        number |= DENSE_ACTIVATION
    return number & ~absent


def sets_that_save(model: Transformer) -> tuple[str, ...]:
    """Every set of modules of a layer that the network has, and `full`. Left out are fused attention, norms without products after
    them, and second products beside the whole part: they would be computed again without saving a byte."""
    nothing = (ATTENTION if model.attention == "flash" else 0) | (0 if model.normed_parts[0] else ATTENTION_NORM)
    found = dict[int, str]()
    for name in sets_of(module for module in MODULES if module not in _SEVERAL and not number_of(module) & nothing):
        number = meaning_of(model, number_of(name))
        if not (number & SECOND_PRODUCTS and number & DENSE_PART):
            found.setdefault(number, mode_for(model, name))
    return (*found.values(), "full")


def mode_for(model: Transformer, mode: str) -> str:
    """The mode without parts of its name that do nothing for this network, such as up-projections without latents."""
    number = number_of(mode)
    if number & LAYER:
        return mode_name(number)
    return mode_name(number_of("+".join(part for part in mode_name(number).split("+") if meaning_of(model, number_of(part))) or "none"))


def again(recompute: Real | Ints | int, what: int) -> Mask:
    """Whether modes of recomputation, given by number, recompute one of these modules, or the whole LAYER."""
    found: Mask = np.not_equal(np.asarray(recompute, np.int64) & what, 0)
    return found


def mean_again(full: Real, none: Real, recomputed: Recomputed) -> Real:
    """Mean of a figure over recomputed layers and others."""
    if recomputed is None:
        return full
    redone, layers = recomputed
    return np.where(redone < layers, (redone * full + (layers - redone) * none) / layers, full)


def select(mode: Ints, modes: Sequence[Real]) -> Real:
    """For each plan, the figure under its own mode, by the mode's index."""
    found, *rest = modes
    for number, figure in enumerate(rest, 1):
        found = np.where(mode == number, figure, found)
    return found


def stacked(modes: Sequence[Real], shape: tuple[int, int]) -> Array:
    """Tables of a figure under several modes, stacked."""
    return np.vstack([np.broadcast_to(mode, shape) for mode in modes])


def layers_again(recompute: Real, interleave: Real, layers: Real) -> Real:
    """How many of a stage's layers the mode covers: all, or a number per chunk (Megatron-LM's method `block`)."""
    each = np.floor(recompute / PARTLY)
    return np.where(each > 0.5, np.minimum(each * interleave, layers), layers)


def least_recomputed(numbers: Sequence[int]) -> int:
    """The mode that recomputes the intersection: no more than any of them, though it need not be one of them."""
    if all(number % PARTLY == _FULL for number in numbers):
        return min(numbers, key=lambda number: number // PARTLY or np.inf)
    return reduce(and_, (0 if number >= PARTLY else number for number in numbers))


def recompute_text(mode: str) -> str:
    """Recomputation as it is named in the one-line summary of a plan."""
    if layers := layers_named(mode):
        return f"full recompute of {layers} {'layers' if layers > 1 else 'layer'} a chunk"
    return f"{mode} recompute" if mode != "none" else "no recompute"
