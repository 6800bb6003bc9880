"""Devices and models that many tests share, each small enough to reason about."""

import gc
import os
from collections.abc import Generator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.hardware import Cluster, Efficiency, Hardware, Link, Memory
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.registry import build_device, device
from crossopt.solvers.backends import wall
from tests.extent import examples
from tests.paths import NO_DATA

os.environ.pop("COLUMNS", None)  # texts are as wide as without a terminal, wherever tests run

# No deadline, and no complaint that examples are drawn slowly: a busy machine is no fault of what is tested.
settings.register_profile(
    "crossopt", deadline=None, derandomize=True, max_examples=examples(25).max_examples, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("crossopt")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays to the end: looking again and again whether it is garbage took a third of the time of collecting.

    It stays outside of what is looked through while tests run, which is seldom: they leave little garbage and make many arrays.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(500_000, 20, 100)
        gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for all tests that found no reference data, as in a clone with nothing beside it."""
    absent = [report for report in terminalreporter.stats.get("skipped", []) if NO_DATA in str(report.longrepr)]
    if absent:
        terminalreporter.write_line(f"{len(absent)} tests skipped: {NO_DATA}")


@pytest.fixture
def solvers_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solvers work in this process, for tests that change what they do there."""
    monkeypatch.setattr(wall, "INSIDE", True)


@pytest.fixture(scope="session")
def a100() -> Hardware:
    """An A100 of the registry on a network of nodes of eight."""
    return build_device(device("a100-80g"), "a100-80g", "bf16", 2)


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """Sixty-four devices in nodes of eight."""
    return Cluster(64, (8, 64))


@pytest.fixture(scope="session")
def small_model() -> Transformer:
    """A transformer with as many divisors as possible."""
    return Transformer("small", layers=12, hidden=1536, heads=12, ffn=6144, vocabulary=32000, sequence=1024, global_batch=192)


@pytest.fixture(scope="session")
def plain() -> Hardware:
    """A device of round figures without any launch cost, setup or latency, on which times can be computed by hand."""
    smooth = Efficiency(
        matrix=1.0,
        unaligned=1.0,
        attention=1.0,
        accumulation=0.0,
        stream=1.0,
        half_stream=0.0,
        resident=1.0,
        kernel=0.0,
        launch=0.0,
        routing=0.0,
        host=0.0,
        step=0.0,
        overlap_loss=0.0,
    )
    return Hardware(
        name="plain",
        throughput=100e12,
        vector_throughput=10e12,
        bundles=1.0,
        dram=Memory(64e9, 1e12),
        l2=Memory(32e6, 4e12),
        l1=Memory(8e6, 16e12),
        registers=Memory(8e6, 100e12),
        links=(Link(100e9, 0.0), Link(10e9, 0.0)),
        register_traffic=0.0,
        reserved_memory=0.0,
        efficiency=smooth,
    )


@pytest.fixture
def arithmetic(plain: Hardware) -> Hardware:
    """A device on which only matrix FLOPs take time."""
    endless = Memory(1e15, 1e30)
    return replace(plain, vector_throughput=1e30, dram=endless, l2=endless, l1=endless, registers=endless)


def scaled(hardware: Hardware, resource: str, factor: float | Array) -> Hardware:
    """The device with one resource multiplied; links and latencies by their level."""
    part, _, field = resource.partition(".")
    if not field:
        return replace(hardware, **{part: getattr(hardware, part) * factor})
    if part == "links":
        return replace(hardware, links=tuple(replace(link, **{field: getattr(link, field) * factor}) for link in hardware.links))
    record = getattr(hardware, part)
    return replace(hardware, **{part: replace(record, **{field: getattr(record, field) * factor})})


GROWING = (
    "throughput",
    "vector_throughput",
    "wide_share",
    "dram.bandwidth",
    "l2.bandwidth",
    "l2.capacity",
    "l1.bandwidth",
    "l1.capacity",
    "registers.bandwidth",
    "registers.capacity",
    "links.bandwidth",
)
"""Resources of which more may never make a plan slower."""

SHRINKING = ("links.latency", "links.setup", "links.ring_latency")
"""Delays of which less may never make a plan slower."""

FACTORS = np.array([1.0, 1.01, 1.5, 4.0])
