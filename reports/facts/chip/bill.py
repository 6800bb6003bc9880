"""What a device costs, part by part, where its price follows from a wafer: the bill that a cost of a step is written off from."""

from dataclasses import dataclass

import numpy as np

from crossopt.crossflow.cost import device_price, dies_per_wafer, good_share, joined_well
from crossopt.crossflow.generator import generate
from crossopt.instances.codesign.chips import made_of, split_of
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.solvers.codesign.answer import ChosenDesign


@dataclass(frozen=True, slots=True)
class DeviceBill:
    """Dollars of one device."""

    parts: tuple[tuple[str, float], ...]
    """By name, none of them zero; they add up to the total."""
    total: float
    good: float
    """Share of the dies on a wafer."""
    dies: float
    """On a wafer."""


def bill_of(instance: Instance, design: ChosenDesign) -> DeviceBill | None:
    """The bill of a chip that was chosen; none where the question asks for no cost, or gives the price of the whole device."""
    prices, free = instance.prices, instance.hardware
    if prices is None or prices.wafer is None or prices.device is not None or not isinstance(free, FreeHardware):
        return None
    split = split_of(free, {name: np.array([value], np.float64) for name, value in design.hardware.choices.items()})
    made = made_of(free, split, split, generate(free.technology, split).dram.stacks)
    good, dies = float(np.max(good_share(prices, made))), float(np.max(dies_per_wafer(made.die_area / made.dies, prices.wafer_diameter)))
    stacks, wires, several = (float(np.max(count)) for count in (made.stacks, made.wires, made.dies))
    joined = (
        ("dies" if several > 1 else "die", several * prices.wafer / (dies * good)),
        ("HBM stacks", stacks * prices.stack),
        ("interposer", float(np.max(made.package_area)) * prices.interposer),
    )
    lost = sum(value for _, value in joined) * (1.0 / float(np.max(joined_well(prices, made))) - 1.0)
    beside = (("lost when joined", lost), ("package and host", prices.package), ("ports", wires * prices.lane))
    total = float(np.max(device_price(prices, made)))
    return DeviceBill(tuple(one for one in (*joined, *beside) if one[1]), total, good, dies)


def bill_words(bill: DeviceBill) -> str:
    """All of it in a sentence."""
    listed = ", ".join(f"{name} {value:,.0f}" for name, value in bill.parts)
    return f"{bill.total:,.0f} USD a device ({listed}); {yield_words(bill)}"


def yield_words(bill: DeviceBill) -> str:
    """What of a wafer is good."""
    return f"{bill.good:.0%} of {bill.dies:.0f} dies on a wafer are good"
