"""Which networks of the registry a network is by its shapes, so that what is known of them is told whatever its file is called."""

from functools import cache

from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.registry import model, names

Shapes = tuple[object, ...]


def known_as(network: Transformer) -> tuple[str, ...]:
    """Names that it goes by: its own, where the registry's of that name has its shapes or no other one has; else those that have them."""
    own = network.name.lower()
    if own in names("workloads") and (shape := model(own).transformer) is not None and _shapes(shape) == _shapes(network):
        return (own,)  # no other file is read
    return _names_by_shapes().get(_shapes(network), (own,))


def alike_words(network: Transformer) -> str:
    """That a network of another name has the shapes of one of the registry."""
    known = known_as(network)
    return "" if known == (network.name.lower(),) else f"shapes of {' and '.join(known)}, of which measured runs and recipes are looked up"


@cache
def _names_by_shapes() -> dict[Shapes, tuple[str, ...]]:
    found: dict[Shapes, tuple[str, ...]] = {}
    for name in names("workloads"):
        if (shape := model(name).transformer) is not None:
            found[_shapes(shape)] = (*found.get(_shapes(shape), ()), name)
    return found


def _shapes(network: Transformer) -> Shapes:
    """Numbers of layers, heads, experts and tokens, and widths that layers have."""
    dense = network.ffn if network.experts == 1 or network.dense_layers else 0
    attention = (network.heads, network.kv_heads or network.heads, network.head_size or network.hidden // network.heads, network.kv_rank)
    experts = (network.experts, network.experts_per_token, (network.expert_ffn or network.ffn) if network.experts > 1 else 0)
    return (network.layers, network.hidden, dense, network.vocabulary, *attention, *experts)
