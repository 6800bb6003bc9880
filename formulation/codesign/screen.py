"""Plans and literals that cannot be best, by prices on the budgets (Lagrangian relaxation): gone before an integer model is written.

A price l_b >= 0 on each budget b turns "not more than the limit" into "what is over must be paid", and shares m_j >= 0 that add up to 1
make one tangent of a plan's tangents j. Then the parts no longer meet, and for every chip that keeps the budgets, whatever the prices,

    T_p(chip)  >=  sum_j m_j c_j  +  sum over parts of min_k ( sum_j m_j a_j[part, k] + sum_b l_b amount_b[part, k] )  -  sum_b l_b limit_b

A plan whose bound is not below the time asked is out. So is a literal with which no plan's is: for chips that have it the bound is higher
by what it costs there above the cheapest literal of its part (fixing by reduced costs, Dantzig, Fulkerson and Johnson 1954). Prices and
shares are sought for all plans at once by subgradient steps (Polyak 1969): each goes on by (time asked - bound) / |gradient|^2 * gradient;
that of a price is by how much the cheapest chip is over the budget, in units of its limit, that of a share what its tangent says of that
chip. There the next tangent of the plan is taken.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.formulation.codesign.choices import Chip, Masks, Tangents

_STEPS = 400
_PATIENCE = 6
"""Steps without gain after which a plan goes back to its best prices, with half the stride."""
_GUARD = 1.0e-9
"""The share of the largest figures by which a bound is lowered, for the rounding of its sums."""


@dataclass(frozen=True, slots=True)
class Priced:
    """For each plan the best bound that some prices give, and the cheapest chip there (which may break the budgets)."""

    bounds: Array
    places: dict[str, Whole]
    literals: Masks
    """Those with which some plan may be below the time asked."""


def screening_bounds(chip: Chip, several: Sequence[Tangents], needs: Array, below: float) -> Priced:
    """The bounds of plans of which each list of tangents has one each."""
    return sought(chip, several, needs, below)[0]


def priced_at(chip: Chip, several: Sequence[Tangents], needs: Array, below: float, at: "At") -> Priced:
    """What given prices and shares say, whoever found them; a ValueError where they are none."""
    amounts, limits = _amounts(chip)
    slopes = _fitting(chip, np.stack([tangents.slopes for tangents in several], axis=1), needs)
    constants = np.stack([tangents.constants for tangents in several], axis=1)
    if at.prices.shape != (len(needs), len(limits)) or at.shares.shape != constants.shape:
        raise ValueError("each plan needs a price for each budget and a share for each of its tangents")
    if not all(np.isfinite(figures).all() and (figures >= 0.0).all() for figures in (at.prices, at.shares)):
        raise ValueError("prices and shares are numbers from 0 on")
    at = At(at.prices, at.shares / np.maximum(at.shares.sum(axis=1, keepdims=True), 1.0))
    with np.errstate(over="ignore", invalid="ignore"):
        bounds, places = _bounds(chip, slopes, constants, amounts, limits, at)
        # four times as much as well, so that what sums of three of them come to are numbers
        finite = np.isfinite(4.0 * bounds).all() and np.isfinite(4.0 * (at.prices @ amounts)).all()
    if not finite:
        raise ValueError("these prices are beyond all numbers")
    literals = _open(chip, slopes, amounts, bounds, at, below)
    return Priced(bounds, {part.name: places[:, column] for column, part in enumerate(chip.parts)}, literals)


def sought(chip: Chip, several: Sequence[Tangents], needs: Array, below: float) -> "tuple[Priced, At]":
    """The same with the prices and shares that give the bounds."""
    amounts, limits = _amounts(chip)
    slopes = _fitting(chip, np.stack([tangents.slopes for tangents in several], axis=1), needs)
    constants = np.stack([tangents.constants for tangents in several], axis=1)
    at = At(np.zeros((len(needs), len(limits))), np.full(constants.shape, 1.0 / len(several)))
    best, bounds, places = (
        At(at.prices.copy(), at.shares.copy()),
        np.full(len(needs), -np.inf),
        np.zeros((len(needs), len(chip.parts)), np.int64),
    )
    stride, stuck, left = np.ones(len(needs)), np.zeros(len(needs), np.int64), np.arange(len(needs))
    for _ in range(_STEPS):
        here = at.rows(left)
        found, chosen = _bounds(chip, slopes[left], constants[left], amounts, limits, here)
        better = found > bounds[left]
        gained = left[better]
        bounds[gained], places[gained], stuck = found[better], chosen[better], stuck + 1
        stuck[gained] = 0
        best.take(gained, here.rows(np.flatnonzero(better)))
        over, said = _gradient(chip, slopes[left], constants[left], amounts, limits, chosen)
        said = said / below
        step = (stride[left] * (below - found) / np.maximum((over**2).sum(axis=1) + (said**2).sum(axis=1), 1e-30))[:, None]
        at.take(left, At(np.maximum(here.prices + step * over, 0.0), _shares(here.shares + step * said / below)))
        back = left[stuck[left] >= _PATIENCE]
        at.take(back, best.rows(back))
        stride[back], stuck[back] = stride[back] / 2.0, 0
        left = left[found < below]
        if not len(left):
            break
    literals = _open(chip, slopes, amounts, bounds, best, below)
    return Priced(bounds, {part.name: places[:, column] for column, part in enumerate(chip.parts)}, literals), best


def _open(chip: Chip, slopes: Array, amounts: Array, bounds: Array, best: "At", below: float) -> Masks:
    """Literals with which the bound of some plan, at its best prices, is below the time."""
    paid = np.einsum("pj,pjk->pk", best.shares, slopes) + best.prices @ amounts
    found = {}
    for part, (start, end) in zip(chip.parts, _columns(chip), strict=True):
        own = paid[:, start:end]
        cheapest = own.min(axis=1, keepdims=True)
        size = np.abs(bounds)[:, None] + np.abs(own) + np.abs(cheapest)
        found[part.name] = (bounds[:, None] + (own - cheapest) - _GUARD * size < below).any(axis=0)
    return found


@dataclass(frozen=True, slots=True)
class At:
    """A row of prices and a row of shares for each plan."""

    prices: Array
    shares: Array

    def rows(self, rows: Whole) -> "At":
        return At(self.prices[rows], self.shares[rows])

    def take(self, rows: Whole, other: "At") -> None:
        self.prices[rows], self.shares[rows] = other.prices, other.shares


def _bounds(chip: Chip, slopes: Array, constants: Array, amounts: Array, limits: Array, here: At) -> tuple[Array, Whole]:
    """The bound of each plan at its prices and shares, and the chip that gives it."""
    prices, shares = here.prices, here.shares
    paid = np.einsum("pj,pjk->pk", shares, slopes) + prices @ amounts
    chosen, least = np.zeros((len(paid), len(chip.parts)), np.int64), (shares * constants).sum(axis=1) - prices @ limits
    size = np.abs(shares * constants).sum(axis=1) + prices @ np.abs(limits)
    for column, (start, end) in enumerate(_columns(chip)):
        chosen[:, column] = np.argmin(paid[:, start:end], axis=1)
        cheapest = np.take_along_axis(paid[:, start:end], chosen[:, [column]], axis=1)[:, 0]
        least, size = least + cheapest, size + np.abs(cheapest)
    return least - _GUARD * size, chosen


def _gradient(chip: Chip, slopes: Array, constants: Array, amounts: Array, limits: Array, chosen: Whole) -> tuple[Array, Array]:
    """By how much the chips are over each budget, and what each tangent says of them less the mean."""
    columns = chosen + np.array([start for start, _ in _columns(chip)])
    said = constants + np.take_along_axis(slopes, columns[:, None, :], axis=2).sum(axis=2)
    return amounts[:, columns].sum(axis=2).T - limits, said - said.mean(axis=1, keepdims=True)


def _shares(wanted: Array) -> Array:
    """The nearest shares that are not negative and add up to 1 (the projection on a simplex)."""
    ordered = -np.sort(-wanted, axis=1)
    excess = (np.cumsum(ordered, axis=1) - 1.0) / np.arange(1, wanted.shape[1] + 1)
    count = (ordered > excess).sum(axis=1)
    found = np.maximum(wanted - excess[np.arange(len(wanted)), count - 1][:, None], 0.0)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _columns(chip: Chip) -> list[tuple[int, int]]:
    ends = np.cumsum([0, *map(len, chip.parts)]).tolist()
    return list(pairwise(ends))


def _amounts(chip: Chip) -> tuple[Array, Array]:
    """What each literal takes of each budget in units of its limit (one row a budget, one column a literal), and the limits so."""
    amounts = [np.concatenate([budget.amounts.get(part.name, np.zeros(len(part))) for part in chip.parts]) for budget in chip.budgets]
    limits = np.array([budget.limit for budget in chip.budgets])
    units = np.where(limits > 0.0, limits, 1.0)
    return np.array(amounts).reshape(len(limits), sum(map(len, chip.parts))) / units[:, None], limits / units


def _fitting(chip: Chip, slopes: Array, needs: Array) -> Array:
    """The slopes, out of reach for stacks that do not hold the plan."""
    held = [np.asarray(part.best.dram.capacity) if part.name == "dram" else np.full(len(part), np.inf) for part in chip.parts]
    beyond = needs[:, None] > np.concatenate([np.broadcast_to(row, len(part)) for row, part in zip(held, chip.parts, strict=True)])
    return np.where(beyond[:, None, :], 1e6 * (1.0 + np.abs(slopes).max(initial=0.0)), slopes)
