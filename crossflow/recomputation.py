"""What of a layer the backward pass computes again: sets of modules, each with a word and a number.

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

from crossopt.crossflow.arrays import Array, Mask, Real, Whole
from crossopt.crossflow.workload import Transformer

ATTENTION_NORM, FEED_FORWARD_NORM, DENSE_ACTIVATION, EXPERT_ACTIVATION, UP_PROJECTIONS, ATTENTION = (1 << bit for bit in range(6))
DENSE_PART, SHARED_EXPERTS, EXPERTS, SECOND_PRODUCTS, LAYER = (1 << bit for bit in range(6, 11))
PARTLY: Final = 1 << 11
"""In the number of a mode of recomputation the layers of each chunk, of which the others compute nothing again, count as so many."""
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
"""By name, a set before those that it holds."""
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
"""Our words for those of Megatron-Core."""
RECOMPUTE: Final = ("none", "elements", "selective", "selective-elements", "full")
"""The modes that are about any network."""
OF_EXPERTS: Final = ("expert-activation", "feed-forward-norm+expert-activation")
OF_LATENTS: Final = ("up-projections",)
OF_BOTH: Final = ("norms+expert-activation+up-projections",)
"""Further ones of networks with experts, with latents, and with both, as recipes for these have them."""
WHOLE_PARTS: Final = ("dense-part", "shared-experts", "experts")
"""Those that repeat the products of a part of the layer."""


Recomputed = tuple[Array, Array] | None
"""Of how many layers out of how many a mode holds; None where it does of all of all plans."""


def layers_named(word: str) -> int:
    """The layers of each chunk that such a word as `full-2` names; 0 for any other."""
    found = fullmatch(r"full-([1-9]\d{0,5})", word, ASCII)
    return int(found[1]) if found else 0


def number_of(word: str) -> int:
    """The number of a mode of recomputation; a ValueError where this is none."""
    if layers := layers_named(word):
        return PARTLY * layers + _FULL
    parts = word.split("+")
    if not set(parts) <= {*(_SETS if len(parts) == 1 else MODULES)}:
        if set(parts) <= {*MODULES, *MEGATRON}:
            ours = "+".join(MEGATRON.get(part, part) for part in parts)
            raise ValueError(f"recompute is {word!r}, which is called {ours!r} here (join modules that go together with +)")
        raise ValueError(f"recompute is {word!r}, one of none, full, full-2 (of two layers), or of {', '.join(MODULES)} with + is needed")
    return reduce(or_, (_SETS[part] for part in parts))


def word_of(number: int) -> str:
    """The one word of a mode of recomputation, though others may mean the same."""
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
    """Every set of these modules, none at all included."""
    listed = tuple(names)
    return tuple(word_of(number_of("+".join(some) or "none")) for count in range(len(listed) + 1) for some in combinations(listed, count))


def meaning_of(model: Transformer, number: int) -> int:
    """The mode without modules that the network does not have, and with those that others hold there."""
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


def word_for(model: Transformer, word: str) -> str:
    """The mode without the parts of its word that are nothing for this network: up-projections where there are no latents."""
    number = number_of(word)
    if number & LAYER:
        return word_of(number)
    return word_of(number_of("+".join(part for part in word_of(number).split("+") if meaning_of(model, number_of(part))) or "none"))


def again(recompute: Real | Whole | int, what: int) -> Mask:
    """Which modes of recomputation, by their numbers, compute one of these modules again, or the whole LAYER."""
    found: Mask = np.not_equal(np.asarray(recompute, np.int64) & what, 0)
    return found


def mean_again(full: Real, none: Real, recomputed: Recomputed) -> Real:
    """The mean of a figure of layers that are computed again and of others."""
    if recomputed is None:
        return full
    redone, layers = recomputed
    return np.where(redone < layers, (redone * full + (layers - redone) * none) / layers, full)


def select(place: Whole, modes: Sequence[Real]) -> Real:
    """Of a figure under several modes that of each plan's own, by its place among these."""
    found, *rest = modes
    for number, one in enumerate(rest, 1):
        found = np.where(place == number, one, found)
    return found


def stacked(modes: Sequence[Real], shape: tuple[int, int]) -> Array:
    """Tables of a figure under several modes, one below the other."""
    return np.vstack([np.broadcast_to(mode, shape) for mode in modes])


def layers_again(recompute: Real, interleave: Real, layers: Real) -> Real:
    """Of how many layers of a stage that has so many the mode holds: all, or a number of each chunk (Megatron-LM's method `block`)."""
    each = np.floor(recompute / PARTLY)
    return np.where(each > 0.5, np.minimum(each * interleave, layers), layers)


def least_recomputed(numbers: Sequence[int]) -> int:
    """The mode that computes again what all of these do, and nothing else: no more than any of them, though none of two need be less."""
    if all(number % PARTLY == _FULL for number in numbers):
        return min(numbers, key=lambda number: number // PARTLY or np.inf)
    return reduce(and_, (0 if number >= PARTLY else number for number in numbers))


def recompute_text(word: str) -> str:
    """What is computed again, in a line about a plan."""
    if layers := layers_named(word):
        return f"full recompute of {layers} {'layers' if layers > 1 else 'layer'} a chunk"
    return f"{word} recompute" if word != "none" else "no recompute"
