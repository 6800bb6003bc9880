"""The trends of DeepFlow's published case study (arXiv 2211.03309): an LSTM language model on 64 generated devices, 34 plans each.

Times are not compared: the published ones charge element-wise work to registers and divide link bandwidths. The trends must hold.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.device import device_from
from crossopt.crossflow.hardware import Cluster, Efficiency, Hardware
from crossopt.crossflow.kernels.kernel_plan import KernelPlan, kernel_plans
from crossopt.crossflow.kernels.lstm import bill, memory, price
from crossopt.crossflow.workload import Lstm
from tests.crossflow.test_case_study import GIB, architecture_of, case_study, inputs_of, technology_of

MODEL = Lstm("language model", layers=2, hidden=19968, vocabulary=800_000, sequence=20, global_batch=4096)
CLUSTER = Cluster(64, (64,))
PLANS = kernel_plans(MODEL, 64, layers=(1,))
NODES = ("14", "10", "7", "5", "3", "2", "1")
NETWORK = tuple(str(step) for step in range(1, 20))
DRAM = ("HBM1", "HBM2", "HBM2e-8", "HBM2e-12", "HBM2e-16")
LOGIC_SWEEPS = ("v100-energy_per_flop", "energy_per_flop_inter_bw_384GB", "energy_per_flop_inter_bw_1395GB", "siif-energy_per_flop")
EFFICIENCY = Efficiency(matrix=1.0, accumulation=0.0, stream=1.0, half_stream=0.0, kernel=9.0e-6, host=0.0, step=0.0)


def device_of(sweep: str, level: str) -> Hardware:
    """A generated device with the one kind of link that it has."""
    technology = technology_of(inputs_of(sweep, level))
    device = device_from(technology, architecture_of(sweep, level), MODEL.value_bytes, EFFICIENCY)
    return replace(device, links=tuple(link for link in device.links if link.bandwidth > 0.0))


@cache
def step_times(sweep: str, levels: tuple[str, ...]) -> Array:
    """Seconds of each plan (rows) at each level (columns)."""
    return np.hstack([price(MODEL, device_of(sweep, level), CLUSTER, PLANS).step_time for level in levels])


def best(sweep: str, levels: tuple[str, ...]) -> Array:
    times: Array = step_times(sweep, levels).min(axis=0)
    return times


def peak(sweep: str, level: str) -> float:
    return float(device_of(sweep, level).throughput)


@pytest.mark.data
def test_logic_alone_saturates() -> None:
    """22.7 times the peak, but far less than half of that in speed, the less the slower the network, and little after 5 nm."""
    gain = peak(LOGIC_SWEEPS[0], "1") / peak(LOGIC_SWEEPS[0], "14")
    slow, middle, fast = (best(sweep, NODES) for sweep in LOGIC_SWEEPS[:3])
    assert gain > 20.0
    assert slow[0] / slow[-1] < middle[0] / middle[-1] < fast[0] / fast[-1] < gain / 3
    assert slow[0] / slow[-1] < 3.0
    assert slow[3] / slow[-1] < 1.3 < slow[0] / slow[3]


@pytest.mark.data
@pytest.mark.parametrize("sweep", LOGIC_SWEEPS)
def test_a_better_node_is_never_slower(sweep: str) -> None:
    """The published 7 nm is slower than 10 nm at 384 GB/s and on the wafer, although every resource is larger there."""
    assert np.all(np.diff(best(sweep, NODES)) <= 0.0)


@pytest.mark.data
def test_the_best_strategy_changes_with_the_network() -> None:
    winners = step_times("energy_per_xbit", NETWORK).argmin(axis=0)
    assert PLANS[winners[0]] != PLANS[winners[-1]]
    assert PLANS[winners[0]].data > PLANS[winners[-1]].data  # faster links favour cutting products over copying weights


@pytest.mark.data
def test_the_best_strategy_changes_with_logic() -> None:
    assert len(set(step_times(LOGIC_SWEEPS[0], NODES).argmin(axis=0))) > 1


@pytest.mark.data
def test_the_network_saturates() -> None:
    """Each step is worth less than the one before; 1000 times the bandwidth is worth no more than twice the speed."""
    times = best("energy_per_xbit", NETWORK)
    gains = -np.diff(times)
    assert np.all(gains >= 0.0)
    assert times[0] / times[-1] < 2.0
    assert times[5] - times[-1] < 0.1 * (times[0] - times[5])


@pytest.mark.data
def test_faster_dram_helps_until_l2_binds() -> None:
    """HBM2e-16 has 4.3 times the bandwidth of HBM1, but usable L2 (968 GiB/s) is hardly faster than HBM1: without that limit HBM pays."""
    times = best("energy_per_membit", DRAM)
    assert np.all(np.diff(times) <= 0.0)
    assert times[-1] < times[0]
    first, last = (device_of("energy_per_membit", level) for level in (DRAM[0], DRAM[-1]))
    wide = [replace(device, l2=replace(device.l2, bandwidth=8.0 * device.l2.bandwidth)) for device in (first, last)]
    slow, fast = (price(MODEL, device, CLUSTER, PLANS).step_time.min() for device in wide)
    assert slow - fast > 10.0 * (times[0] - times[-1])


@pytest.mark.data
def test_strategy_matters_as_much_as_technology() -> None:
    for sweep in LOGIC_SWEEPS:
        times = step_times(sweep, NODES)
        assert np.all(times.max(axis=0) > 1.8 * times.min(axis=0)), sweep


@pytest.mark.data
def test_gradients_of_unsplit_weights_cost_the_most_to_replicate() -> None:
    """64 replicas reduce all weights: at 48 GB/s that is the largest part that is no arithmetic, and a 4-way inner split quarters it."""
    device = device_of(LOGIC_SWEEPS[0], "14")
    whole = dict(bill(MODEL, device, CLUSTER, KernelPlan(data=64)).time)["gradient reduction"]
    quarter = dict(bill(MODEL, device, CLUSTER, KernelPlan("inner", 4, data=16)).time)["gradient reduction"]
    assert quarter == pytest.approx(whole / 4, rel=0.1)


@pytest.mark.data
def test_memory_of_weights_and_activations_is_the_published_one() -> None:
    """For cuts by rows and columns; an inner split here keeps its share of the results, the published one all of them."""
    published = {
        KernelPlan("rows-columns", int(row["kp1"]), int(row["kp2"]), int(row["dp"])): float(row["mem_per_shard_GB"])
        for _, _, row in case_study()
        if row["kp_type"] == "RC"
    }
    assert len(published) == 28
    for plan, gigabytes in published.items():
        sizes = dict(memory(MODEL, plan))
        assert (sizes["weights"] + sizes["activations"]) / GIB == pytest.approx(gigabytes, abs=0.0501), plan
