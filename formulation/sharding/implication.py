"""The weak model of a core, to compare with: a variable for each pair that costs something, held up by its two strategies.

    minimise    sum c_v(s) x_vs + sum C_e(s, t) y_est
    such that   sum over s of x_vs = 1,   y_est >= x_us + x_vt - 1,   x_us + x_vt <= 1 where (s, t) is forbidden

Its relaxation may halve every x between two strategies and pay for no pair, which is why its bound says little.
"""

import numpy as np

from crossopt.formulation.program import Program, Rows
from crossopt.formulation.sharding.core import Core
from crossopt.formulation.sharding.marginal import unit_of
from crossopt.instances.sharding.problem import FORBIDDEN, offsets_of


def weak_program_of(core: Core) -> Program:
    """The model without rows for memory: nodes first, then pairs."""
    pairs = np.flatnonzero(core.entries > 0)
    costs = core.entries[pairs]
    paid = costs < FORBIDDEN
    edges = np.repeat(np.arange(len(core.firsts)), np.diff(core.entry_offsets))[pairs]
    widths = core.counts[core.seconds][edges]
    within = pairs - core.entry_offsets[edges]
    strategies, nodes = len(core.costs), len(core)
    ends = (core.offsets[core.firsts[edges]] + within // widths, core.offsets[core.seconds[edges]] + within % widths)
    rows = nodes + np.arange(len(pairs))
    row = np.concatenate([np.repeat(np.arange(nodes), core.counts), rows, rows, rows[paid]])
    column = np.concatenate([np.arange(strategies), *ends, strategies + np.arange(int(paid.sum()))])
    factor = np.concatenate([np.ones(strategies + 2 * len(pairs)), -np.ones(int(paid.sum()))])
    order = np.argsort(row, kind="stable")
    figures = np.concatenate([np.where(core.costs < FORBIDDEN, core.costs, 0), costs[paid]]).astype(float)
    unit = unit_of(figures)
    return Program(
        unit=unit,
        costs=figures / unit,
        highs=np.concatenate([(core.costs < FORBIDDEN).astype(float), np.ones(int(paid.sum()))]),
        whole=np.arange(len(figures)) < strategies,
        rows=Rows(
            lows=np.concatenate([np.ones(nodes), np.full(len(pairs), -np.inf)]),
            highs=np.ones(nodes + len(pairs)),
            starts=offsets_of(np.bincount(row, minlength=nodes + len(pairs)).astype(np.int64)),
            columns=column[order],
            factors=factor[order],
        ),
    )
