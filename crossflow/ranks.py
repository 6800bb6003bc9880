"""The part of a plan on which a layer's time depends, and what one rank has of the layer: tokens, heads, experts."""

from dataclasses import dataclass

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.collectives import Members
from crossopt.crossflow.workload import Transformer


@dataclass(frozen=True, slots=True)
class Ranks:
    """The part of a plan on which a layer's time depends; numbers, or columns over many plans."""

    tensor: Real
    context: Real
    expert: Real
    microbatch: Real
    sequence_parallel: Real
    tensor_members: Members
    context_members: Members
    expert_members: Members

    def tokens(self, model: Transformer) -> Real:
        return self.microbatch * model.sequence / self.context

    def norm_split(self) -> Real:
        """Over how many ranks norms, dropouts and residuals are split."""
        return np.where(self.sequence_parallel > 0.5, self.tensor, 1.0)


def expert_ranks(model: Transformer, ranks: Ranks) -> Real:
    """Over how many ranks experts are spread; layers without experts are not."""
    return ranks.expert if model.experts > 1 else np.float64(1.0)


def routed_tokens(model: Transformer, ranks: Ranks) -> Real:
    """Tokens that the rank's experts work on: each token goes to top-k experts, the fullest one sets the pace."""
    return ranks.tokens(model) * (model.experts_per_token * model.capacity_factor)


def local_groups(model: Transformer, ranks: Ranks) -> Real:
    """Key-value heads a tensor rank; with more ranks than groups each rank keeps a copy of one."""
    return np.maximum(model.attention_groups / ranks.tensor, 1.0)
