"""Matrix products of a layer with its weights: attention's projections, the router, experts, and adapters."""

from dataclasses import replace

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.ranks import Ranks, expert_ranks, expert_split, local_groups, routed_tokens
from crossopt.crossflow.roofline import LINE, Product
from crossopt.crossflow.workload import Transformer

QUERIES, OUTPUT = "queries, keys, values", "projection"
"""Products of attention whose inputs are not latents."""
UP_PRODUCTS = ("queries", "queries up", "keys, values up")
"""Products of latent attention that compute queries, keys and values."""
FEED_FORWARD_PRODUCTS = ("inner product", "outer product")
"""Products of the feed-forward part, or of the routed experts."""
SHARED_PRODUCTS = ("shared inner product", "shared outer product")
ROUTER = "router"
WIDE = (ROUTER, "")
"""Products that stay at 16 bits: the router's, and those of adapters, which have no name."""


def adapters(model: Transformer, ranks: Ranks) -> tuple[Product, ...]:
    """Adapter products: beside each product except the router's, one into the rank and one out of it; joint matrices share the one into
    it."""
    joint = {QUERIES: 3.0, FEED_FORWARD_PRODUCTS[0]: model.projections - 1.0, SHARED_PRODUCTS[0]: model.projections - 1.0}
    inner, found = float(model.lora_rank), list[Product]()
    for name, one in named_projections(model, ranks) if model.lora_rank else ():
        if name != ROUTER:
            found += [replace(one, columns=joint.get(name, 1.0) * inner), replace(one, depth=inner)]
    return tuple(found)


def projections(model: Transformer, ranks: Ranks) -> tuple[Product, ...]:
    """Weight products; of the feed-forward part, those of the rank's experts."""
    return tuple(product for _, product in named_projections(model, ranks))


def named_projections(model: Transformer, ranks: Ranks) -> tuple[tuple[str, Product], ...]:
    """Weight products by name: of attention, of the router, of shared experts, and last of the feed-forward part.

    Experts are products of their own, each launched on one of several streams by one call (Transformer Engine's grouped linear layers,
    transformer_engine/common/gemm/cublaslt_gemm.cu, multi_stream_cublas_gemm): the device loses nothing between them, but the call takes
    as long as its launches (`Efficiency.launch`). Each expert has as many tokens as come to it by chance.
    """
    tokens, split, hidden = ranks.tokens(model), ranks.tensor, float(model.hidden)
    attention = _latent_products(model, ranks) if model.latent else _attention_products(model, ranks)
    width, local, parts = model.expert_width, model.experts / expert_ranks(model, ranks), expert_split(model, ranks)
    of_one, apart = _tokens_of_one(model, ranks), (local, 1.0) if model.experts > 1 else (1.0, 0.0)
    feed_forward = (
        (FEED_FORWARD_PRODUCTS[0], Product(of_one, hidden, (model.projections - 1) * width / parts, local, *apart)),
        (FEED_FORWARD_PRODUCTS[1], Product(of_one, width / parts, hidden, local, *apart)),
    )
    router = ((ROUTER, Product(tokens, hidden, float(model.experts))),) if model.experts > 1 else ()
    width = model.shared_experts * width
    shared = (
        (SHARED_PRODUCTS[0], Product(tokens, hidden, (model.projections - 1) * width / split)),
        (SHARED_PRODUCTS[1], Product(tokens, width / split, hidden)),
    )
    return attention + router + (shared if model.shared_experts else ()) + feed_forward


def _attention_products(model: Transformer, ranks: Ranks) -> tuple[tuple[str, Product], ...]:
    tokens, split, width = ranks.tokens(model), ranks.tensor, float(model.head_width)
    return (
        (QUERIES, Product(tokens, float(model.hidden), width * (model.heads / split + 2.0 * local_groups(model, ranks)))),
        (OUTPUT, Product(tokens, width * model.heads / split, float(model.hidden))),
    )


def _latent_products(model: Transformer, ranks: Ranks) -> tuple[tuple[str, Product], ...]:
    """Projections to latents on every tensor rank (of its own tokens with sequence parallelism), and up to the rank's heads (DeepSeek-AI
    2024, arXiv:2405.04434, section 2.1); nothing is absorbed in training."""
    tokens, hidden, heads = ranks.tokens(model), float(model.hidden), model.heads / ranks.tensor
    own, ranked = tokens / ranks.norm_split(), float(model.query_rank)
    up = heads * float(model.score_width)
    queries = (("queries down", Product(own, hidden, ranked)), ("queries up", Product(tokens, ranked, up)))
    return (
        *(queries if model.query_rank else (("queries", Product(tokens, hidden, up)),)),
        ("keys, values down", Product(own, hidden, float(model.kv_rank + model.rope_size))),
        ("keys, values up", Product(tokens, float(model.kv_rank), heads * float(model.head_width + model.value_width))),
        (OUTPUT, Product(tokens, float(model.value_width) * model.heads / ranks.tensor, hidden)),
    )


def _tokens_of_one(model: Transformer, ranks: Ranks) -> Real:
    """Tokens of one expert of the fullest rank, a random number. How many there are is by chance, and they are no rows that lie in lines of
    the cache: where     experts are not equally full they are filled up to whole lines, so that a product of more tokens is not the faster
    one."""
    spread = expert_ranks(model, ranks)
    one = routed_tokens(model, ranks) / (model.experts / spread)
    return np.where(model.fullest(spread) > 1.0, np.ceil(one / LINE) * LINE, one)
