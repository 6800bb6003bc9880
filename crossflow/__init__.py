"""The analytical model: what a design costs in time, memory, energy, area and money. Pure functions on SI floats and numpy arrays."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crossopt.crossflow.bill import Bill, PlanCosts
    from crossopt.crossflow.device import Architecture
    from crossopt.crossflow.evaluate import Design, Evaluation, Limit, evaluate
    from crossopt.crossflow.generator import Edges, Split, generate
    from crossopt.crossflow.hardware import Budget, Cluster, Efficiency, Hardware, Link, Memory
    from crossopt.crossflow.kernels.distributed_product import LinkLoads, Mesh, link_loads
    from crossopt.crossflow.kernels.kernel_plan import KernelPlan
    from crossopt.crossflow.parameters import parameters, step_flops
    from crossopt.crossflow.plan import Plan, Plans, broken_rules, table
    from crossopt.crossflow.technology import Parts, Technology, scale_logic, scale_network
    from crossopt.crossflow.transformer import price
    from crossopt.crossflow.workload import Gemm, Lstm, Transformer, Workload

_WHERE = {
    "Architecture": "device",
    "Bill": "bill",
    "Budget": "hardware",
    "Cluster": "hardware",
    "Design": "evaluate",
    "Edges": "generator",
    "Efficiency": "hardware",
    "Evaluation": "evaluate",
    "Gemm": "workload",
    "Hardware": "hardware",
    "KernelPlan": "kernels.kernel_plan",
    "Limit": "evaluate",
    "Link": "hardware",
    "LinkLoads": "kernels.distributed_product",
    "Lstm": "workload",
    "Memory": "hardware",
    "Mesh": "kernels.distributed_product",
    "Parts": "technology",
    "Plan": "plan",
    "Plans": "plan",
    "PlanCosts": "bill",
    "Split": "generator",
    "Technology": "technology",
    "Transformer": "workload",
    "Workload": "workload",
    "broken_rules": "plan",
    "evaluate": "evaluate",
    "generate": "generator",
    "link_loads": "kernels.distributed_product",
    "parameters": "parameters",
    "price": "transformer",
    "scale_logic": "technology",
    "scale_network": "technology",
    "step_flops": "parameters",
    "table": "plan",
}
__all__ = [
    "Architecture",
    "Bill",
    "Budget",
    "Cluster",
    "Design",
    "Edges",
    "Efficiency",
    "Evaluation",
    "Gemm",
    "Hardware",
    "KernelPlan",
    "Limit",
    "Link",
    "LinkLoads",
    "Lstm",
    "Memory",
    "Mesh",
    "Parts",
    "Plan",
    "PlanCosts",
    "Plans",
    "Split",
    "Technology",
    "Transformer",
    "Workload",
    "broken_rules",
    "evaluate",
    "generate",
    "link_loads",
    "parameters",
    "price",
    "scale_logic",
    "scale_network",
    "step_flops",
    "table",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a name is fetched when it is used, so that help need not wait for numpy
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
