"""The analytical model: what a design costs in time, memory, energy, area and money. Pure functions on SI floats and numpy arrays."""

from crossflow.bill import Bill, Prices
from crossflow.evaluate import Budget, Design, Evaluation, Limit, evaluate
from crossflow.generator import Architecture, Edges, Parts, Split, generate
from crossflow.hardware import Cluster, Efficiency, Hardware, Link, Memory
from crossflow.kernel_plan import KernelPlan
from crossflow.mesh import LinkLoads, Mesh, link_loads
from crossflow.parameters import parameters, step_flops
from crossflow.plan import Plan, Plans, broken_rules, table
from crossflow.technology import Technology, scale_logic, scale_network
from crossflow.transformer import price
from crossflow.workload import Gemm, Lstm, Transformer, Workload

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
    "Plans",
    "Prices",
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
