"""The part of a plan that determines a layer's time, and a rank's share of the layer: tokens, heads, experts."""

import numpy as np

from crossopt.crossflow.arrays import Mask, Real
from crossopt.crossflow.collectives import Members
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.workload import Transformer


@dataclass(frozen=True, slots=True)
class Ranks:
    """The part of a plan that determines a layer's time; numbers, or columns over many plans."""

    tensor: Real
    context: Real
    expert: Real
    microbatch: Real
    sequence_parallel: Real
    tensor_members: Members
    context_members: Members
    expert_members: Members
    expert_tensor: Real = 0.0
    """Ranks over which each expert is split if experts are folded over tensor, context and data ranks; else 0."""
    expert_tensor_members: Members = ()
    hides: Real = 0.0
    """1 if tensor-parallel communication overlaps with the products next to it."""

    def tokens(self, model: Transformer) -> Real:
        return self.microbatch * model.sequence / self.context

    def norm_split(self) -> Real:
        """Ranks over which norms, dropouts and residuals are split."""
        return np.where(self.sequence_parallel > 0.5, self.tensor, 1.0)


def expert_ranks(model: Transformer, ranks: Ranks) -> Real:
    """Ranks over which experts are spread; 1 for layers without experts."""
    return ranks.expert if model.experts > 1 else np.float64(1.0)


def are_folded(model: Transformer, ranks: Ranks) -> Mask:
    """Whether experts have groups of their own (Liu et al. 2025, arXiv:2504.14960)."""
    return np.greater(ranks.expert_tensor, 0.5) & (model.experts > 1)


def expert_split(model: Transformer, ranks: Ranks) -> Real:
    """Ranks over which the feed-forward part, or each expert, is split."""
    return np.where(are_folded(model, ranks), ranks.expert_tensor, ranks.tensor)


def routed_tokens(model: Transformer, ranks: Ranks) -> Real:
    """Tokens processed by the rank's experts: each token goes to top-k experts, and the fullest rank sets the pace. Of folded experts those
    of as many ranks as an expert is split over, each with its part of the sequence."""
    copies = ranks.tokens(model) * (model.experts_per_token * model.fullest(expert_ranks(model, ranks)))
    return copies * (expert_split(model, ranks) / ranks.tensor)


def local_groups(model: Transformer, ranks: Ranks) -> Real:
    """Key-value heads per tensor rank; with more ranks than groups each rank holds a copy of one."""
    return np.maximum(model.attention_groups / ranks.tensor, 1.0)
