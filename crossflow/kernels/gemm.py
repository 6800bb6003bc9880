"""The price of one distributed matrix product, forward only: for tests and teaching."""

from collections.abc import Sequence

import numpy as np

from crossopt.crossflow.bill import Bill, Items, Prices, price_table
from crossopt.crossflow.hardware import Cluster, Hardware, devices_in, within_power
from crossopt.crossflow.kernels.distributed_product import exchange_cost, forward, grid, products_cost
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.roofline import Product
from crossopt.crossflow.workload import Gemm


def bill(gemm: Gemm, hardware: Hardware, cluster: Cluster, plan: KernelPlan) -> Bill:
    """The itemised price of a plan, which must satisfy `crossflow.kernels.kernel_plan.broken_rules`."""
    whole = Product(float(gemm.rows), float(gemm.depth), float(gemm.columns))
    share = forward(whole, gemm.value_bytes, grid(plan, cluster))
    product, exchange = products_cost(share, gemm.value_bytes, hardware), exchange_cost(share.exchanges, hardware.links)
    launched = np.maximum(product.time, hardware.efficiency.host * product.kernels)
    work = plan.devices * (product.energy + exchange.energy)
    time = within_power(launched + exchange.time, work, plan.devices, hardware)
    held = time - (launched + exchange.time)
    return Bill(
        step_time=time,
        time=(("matrix products", product.time), ("launch", launched - product.time), ("exchange", exchange.time), ("power limit", held)),
        memory=memory(gemm, plan),
        energy=work + plan.devices * (hardware.idle_power * time),
        flops=2.0 * gemm.rows * gemm.depth * gemm.columns,
    )


def price(gemm: Gemm, hardware: Hardware, cluster: Cluster, plans: Sequence[KernelPlan]) -> Prices:
    """Prices of every plan on every device."""
    return price_table((bill(gemm, hardware, cluster, plan) for plan in plans), devices_in(hardware))


def memory(gemm: Gemm, plan: KernelPlan) -> Items:
    """Bytes by use on one device; the result is held whole where its parts are summed or gathered."""
    rows, depth, columns = float(gemm.rows), float(gemm.depth), float(gemm.columns)
    if plan.split == "inner":
        sizes = rows * depth / plan.rows, depth / plan.rows * columns, rows * columns
    else:
        sizes = rows / plan.rows * depth, depth * columns / plan.columns, rows / plan.rows * columns
    return tuple((name, gemm.value_bytes * size) for name, size in zip(("input", "weights", "result"), sizes, strict=True))
