"""Plans that cannot be best, by prices on the budgets (Lagrangian relaxation): gone before an integer model is written.

A price l_b >= 0 on each budget b turns "not more than the limit" into "what is over must be paid". Then the parts no longer meet:

    T_p(chip)  >=  c_p + sum over parts of min_k ( a_p[part, k] + sum_b l_b amount_b[part, k] )  -  sum_b l_b limit_b

for every chip that keeps the budgets, whatever the prices. A plan whose bound is not below the time asked is out. Prices are sought for all
plans at once by subgradient steps (Polyak 1969): l += (time asked - bound) / |over|^2 * over, each budget in units of its limit.
"""

import numpy as np

from crossflow.arrays import Array, Index, Mask
from formulation.codesign_parts import Chip
from formulation.codesign_rows import Tangents

_STEPS = 60
_GUARD = 1.0e-9
"""The share of the largest figures by which a bound is lowered, for the rounding of its sums."""


def priced_out(chip: Chip, tangents: Tangents, needs: Array, below: float) -> Mask:
    """Which of the plans, one tangent each, are not below the time on any chip that keeps the budgets."""
    return np.asarray(priced_bounds(chip, tangents, needs, below) >= below)


def priced_bounds(chip: Chip, tangents: Tangents, needs: Array, below: float) -> Array:
    """For each tangent the best bound that some prices give."""
    amounts, limits = _amounts(chip), np.array([budget.limit for budget in chip.budgets])
    amounts, limits = amounts / np.maximum(limits, 1e-300)[:, None], np.where(limits > 0.0, 1.0, 0.0)
    slopes, starts = _fitting(chip, tangents.slopes, needs), np.cumsum([0, *(len(part) for part in chip.parts[:-1])])
    best = np.full(len(tangents), -np.inf)
    open_, prices = np.arange(len(tangents)), np.zeros((len(tangents), len(limits)))
    for _ in range(_STEPS):
        bounds, over = _bounds(slopes[open_], tangents.constants[open_], starts, amounts, limits, prices[open_])
        best[open_] = np.maximum(best[open_], bounds)
        going = (bounds < below) & (over != 0.0).any(axis=1)
        step = (below - bounds) / np.maximum((over * over).sum(axis=1), 1e-30)
        prices[open_] = np.maximum(prices[open_] + step[:, None] * over, 0.0)
        open_ = open_[going]
        if not len(open_):
            break
    return best


def _bounds(slopes: Array, constants: Array, starts: Index, amounts: Array, limits: Array, prices: Array) -> tuple[Array, Array]:
    """The bound of each plan at its prices, and by how much the chip that gives it is over each budget."""
    paid = slopes + prices @ amounts
    ends = [*starts[1:], paid.shape[1]]
    taken, least, size = np.zeros_like(prices), np.zeros(len(paid)), np.abs(constants) + prices @ limits
    for start, end in zip(starts, ends, strict=True):
        chosen = np.argmin(paid[:, start:end], axis=1)
        cheapest = np.take_along_axis(paid[:, start:end], chosen[:, None], axis=1)[:, 0]
        least, size = least + cheapest, size + np.where(np.isfinite(cheapest), np.abs(cheapest), 0.0)
        taken += amounts[:, start + chosen].T
    return constants + least - prices @ limits - _GUARD * size, taken - limits


def _amounts(chip: Chip) -> Array:
    """What each literal takes of each budget: one row a budget, one column a literal."""
    return np.array(
        [np.concatenate([budget.amounts.get(part.name, np.zeros(len(part))) for part in chip.parts]) for budget in chip.budgets]
    ).reshape(len(chip.budgets), sum(map(len, chip.parts)))


def _fitting(chip: Chip, slopes: Array, needs: Array) -> Array:
    """The slopes, infinite for stacks that do not hold the plan."""
    held = [np.asarray(part.best.dram.capacity) if part.name == "dram" else np.full(len(part), np.inf) for part in chip.parts]
    return np.where(needs[:, None] > np.concatenate(held), np.inf, slopes)
