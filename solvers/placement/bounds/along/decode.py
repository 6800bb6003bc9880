"""A placement from the names of the devices that the program along the blocks chose.

The program calls accelerators by their places in the order of the nets they hold, and of their loads where they hold the same. Its loads
are the least of states that were made one, so that the true ones may be in another order: the placement is then another than the program
saw, and a placement still.
"""

from collections.abc import Sequence
from heapq import heapify, heapreplace

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.placement.blocks import Figures
from crossopt.solvers.placement.bounds.order import Sweep, put

_LOAD = 32
"""More binary digits than a load has."""


def replayed(sweep: Sweep, figures: Figures, machine: tuple[int, int], names: Sequence[int]) -> Whole:
    """The device of each block, of so many accelerators and CPUs, from the name that its device had when it was placed."""
    accelerators, cpus = machine
    called = np.arange(accelerators + (cpus > 0))
    held, load = np.zeros((len(called), 1), np.int64), np.zeros((len(called), 1), np.int64)
    device = np.zeros(len(names), np.int64)
    for step, name in zip(sweep.steps, names, strict=True):
        device[step.block] = called[name]
        paid, held = put(held, name, step, accelerators)
        load[:accelerators] += paid
        load[name] += (figures.accelerator if name < accelerators else figures.cpu)[step.block]
        order = np.arange(len(called))
        order[:accelerators] = np.argsort((held[:accelerators, 0] << _LOAD) | load[:accelerators, 0], kind="stable")
        called, held, load = called[order], held[order], load[order]
    return _shared(device, accelerators, cpus, figures.cpu)


def _shared(device: Whole, accelerators: int, cpus: int, work: Sequence[int]) -> Whole:
    """The blocks of the one device that stands for all CPUs, the longest first, each on the CPU that has least to do."""
    idle = [(0, accelerators + number) for number in range(cpus)]
    heapify(idle)
    for block in sorted(np.flatnonzero(device == accelerators).tolist(), key=lambda one: -work[one]) if cpus else ():
        done, cpu = idle[0]
        device[block] = cpu
        heapreplace(idle, (done + work[block], cpu))
    return device
