"""Prices of blocks of designs, whatever is trained: one way in for every engine and rival."""

from crossflow.arrays import Array
from crossflow.bill import Prices
from crossflow.gemm import price as price_gemm
from crossflow.hardware import Cluster, Hardware
from crossflow.lstm import price as price_lstm
from crossflow.memory import peak_memory
from crossflow.plan import Plans
from crossflow.transformer import price as price_transformer
from crossflow.transformer import sharding
from crossflow.workload import Gemm, Lstm, Transformer, Workload
from instances.space import AnyPlans


def price(workload: Workload, hardware: Hardware, cluster: Cluster, plans: AnyPlans) -> Prices:
    """Prices of every plan on every device."""
    match workload, plans:
        case Transformer(), Plans():
            return price_transformer(workload, hardware, cluster, plans)
        case Lstm(), tuple():
            return price_lstm(workload, hardware, cluster, plans)
        case Gemm(), tuple():
            return price_gemm(workload, hardware, cluster, plans)
    raise ValueError(f"{type(plans).__name__} cannot spread a {type(workload).__name__}")


def memory_of(workload: Workload, hardware: Hardware, cluster: Cluster, plans: AnyPlans) -> Array:
    """Bytes that each plan needs on its fullest device, without pricing its time."""
    if isinstance(workload, Transformer) and isinstance(plans, Plans):
        return peak_memory(workload, sharding(workload, plans))[:, 0]  # type: ignore[index]
    return price(workload, hardware, cluster, plans).memory[:, 0]
