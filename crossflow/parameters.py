"""How many weights a transformer has and how many FLOPs a step of it needs, whatever runs it."""

from crossopt.crossflow.workload import Transformer


def attention_parameters(model: Transformer) -> int:
    """Query, key, value and output projections: h d (2 a + 2 a_kv), with biases."""
    width, groups = model.heads * model.head_width, model.attention_groups * model.head_width
    biases = width + 2 * groups + model.hidden if model.biases else 0
    return model.hidden * (2 * width + 2 * groups) + biases


def norm_parameters(model: Transformer) -> int:
    """Two norms a layer, each with a scale and, where the model has biases, a shift."""
    return 2 * model.hidden * (2 if model.biases else 1)


def expert_parameters(model: Transformer) -> int:
    """One feed-forward network (one expert): 2 h f, or 3 h f with SwiGLU."""
    biases = (model.projections - 1) * model.ffn + model.hidden if model.biases else 0
    return model.projections * model.hidden * model.ffn + biases


def router_parameters(model: Transformer) -> int:
    return model.hidden * model.experts if model.experts > 1 else 0


def layer_parameters(model: Transformer) -> int:
    """All weights of one layer, with every expert."""
    return attention_parameters(model) + norm_parameters(model) + router_parameters(model) + model.experts * expert_parameters(model)


def embedding_parameters(model: Transformer) -> int:
    """Token table and, where positions are learned, one row a position."""
    return model.vocabulary * model.hidden + (model.sequence * model.hidden if model.learned_positions else 0)


def head_parameters(model: Transformer) -> int:
    """The output projection; a tied one is counted with the embedding."""
    return 0 if model.tied else model.vocabulary * model.hidden


def parameters(model: Transformer) -> int:
    """All weights, with the final norm."""
    return model.layers * layer_parameters(model) + embedding_parameters(model) + head_parameters(model) + norm_parameters(model) // 2


def step_flops(model: Transformer) -> float:
    """Model FLOPs of one optimizer step, forward and backward, without recomputation, padding or causal skipping.

    6 B s [ L (h d (2a + 2 a_kv) + 2 s a d + top_k p h f + h E) + h V ], p = 2 or 3 feed-forward matrices. For f = 4h, a d = h it is
    72 B s L h^2 (1 + s / (6h) + V / (12 L h)) (Narayanan et al. 2021, eq. 3, which counts a recomputed forward pass as well: 96).
    """
    width, groups = model.heads * model.head_width, model.attention_groups * model.head_width
    layer = model.hidden * (2 * width + 2 * groups) + 2 * model.sequence * width
    layer += model.experts_per_token * model.projections * model.hidden * model.ffn
    layer += router_parameters(model)
    return 6.0 * model.tokens * (model.layers * layer + model.hidden * model.vocabulary)
