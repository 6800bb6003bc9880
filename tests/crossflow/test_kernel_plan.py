"""Kernel plans: which are plans, under which one name, and how they lie on the network."""

import pytest

from crossopt.crossflow.hardware import Cluster, Link
from crossopt.crossflow.kernels.distributed_product import Mesh, grid, shared_links
from crossopt.crossflow.kernels.kernel_plan import KernelPlan, broken_rules, kernel_plans
from crossopt.crossflow.workload import Gemm, Lstm

MODEL = Lstm("language model", layers=2, hidden=19968, vocabulary=800_000, sequence=20, global_batch=4096)
GEMM = Gemm("product", rows=96, depth=64, columns=48)


def test_the_published_study_of_64_devices_has_34_designs() -> None:
    """28 cuts by rows and columns and 7 by the inner dimension (arXiv 2211.03309), of which the two undivided ones are one design."""
    plans = kernel_plans(MODEL, 64, layers=(1,))
    assert len(plans) == len(set(plans)) == 34
    assert sum(plan.split == "inner" for plan in plans) == 6


def test_plans_are_those_combinations_that_break_no_rule() -> None:
    degrees = range(1, 13)
    every = {
        KernelPlan(split, rows, columns, data, layers)
        for split in ("rows-columns", "inner")
        for rows in degrees
        for columns in degrees
        for data in degrees
        for layers in degrees
        if rows * columns * data * layers == 12
    }
    assert set(kernel_plans(MODEL, 12)) == {plan for plan in every if not broken_rules(MODEL, plan, 12)}


def test_only_the_degrees_that_are_allowed_are_used() -> None:
    plans = kernel_plans(MODEL, 16, rows=(1, 4), columns=(1, 2), layers=(1, 2))
    assert {plan.rows for plan in plans} == {1, 4}
    assert {plan.columns for plan in plans} == {1, 2}
    assert kernel_plans(MODEL, 16, splits=("inner",), rows=(4,), data=(4,), layers=(1,)) == (KernelPlan("inner", 4, 1, 4),)


@pytest.mark.parametrize(
    ("plan", "devices", "sentence"),
    [
        (KernelPlan(rows=2), 4, "rows x columns x data x layers is the 4 devices"),
        (KernelPlan("inner", 2, 2), 4, "an inner split has no columns"),
        (KernelPlan("inner", data=4), 4, "an inner split is over at least 2 rows; an undivided product is called rows-columns"),
        (KernelPlan(rows=0), 0, "rows, columns, data and layers are at least 1"),
        (KernelPlan("sideways"), 1, "the split is one of rows-columns, inner"),  # type: ignore[arg-type]
        (KernelPlan(data=3), 3, "data divides the global batch 4096"),
        (KernelPlan(rows=8, data=1024), 8192, "data x rows divides the global batch 4096"),
        (KernelPlan("inner", 5), 5, "rows divides the cell's input width 39936"),
        (KernelPlan(columns=5), 5, "columns divides the width of the gates 79872"),
        (KernelPlan(layers=5), 5, "each of the 3 devices of the chain that hold cells has one of the 2 layers"),
    ],
)
def test_a_broken_rule_is_named_alone(plan: KernelPlan, devices: int, sentence: str) -> None:
    assert broken_rules(MODEL, plan, devices) == (sentence,)


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        (KernelPlan(rows=5), "rows divides the 96 rows"),
        (KernelPlan(columns=5), "columns divides the 48 columns"),
        (KernelPlan("inner", 5), "rows divides the inner dimension 64"),
        (KernelPlan(data=5), "one product has rows and columns to split, but neither data nor layers"),
    ],
)
def test_a_single_product_is_split_by_its_own_dimensions(plan: KernelPlan, sentence: str) -> None:
    assert broken_rules(GEMM, plan, 5) == (sentence,)


@pytest.mark.parametrize(("layers", "holders"), [(1, 1), (2, 2), (3, 1), (4, 2)])
def test_the_ends_of_a_long_chain_hold_no_cells(layers: int, holders: int) -> None:
    assert KernelPlan(layers=layers).cell_devices == holders


def test_a_plan_reads_as_words() -> None:
    assert str(KernelPlan()) == "undivided"
    assert str(KernelPlan("inner", 4, data=16)) == "inner 4 · data 16"
    assert str(KernelPlan(rows=2, columns=4, data=8, layers=2)) == "rows 2 · columns 4 · data 8 · layers 2"


def test_columns_lie_innermost_then_rows_layers_and_data() -> None:
    """16 devices in nodes of 8: columns 2, rows 2 and layers 2 fill a node, data crosses it."""
    cut = grid(KernelPlan(rows=2, columns=2, data=2, layers=2), Cluster(16, (2, 8, 16)))
    assert cut.column_members == (2.0, 1.0, 1.0)
    assert cut.row_members == cut.layer_members == (1.0, 2.0, 1.0)
    assert cut.data_members == (1.0, 1.0, 2.0)


def test_rings_on_a_mesh_share_its_links() -> None:
    """One ring over 8 x 8 devices uses a link twice on its way home; with pairs beside rings of 32 it is four times."""
    links = (Link(bandwidth=8.0e9, latency=0.0),)
    assert shared_links(links, KernelPlan(data=64), Mesh(8))[0].bandwidth == 4.0e9
    assert shared_links(links, KernelPlan(columns=2, data=32), Mesh(8))[0].bandwidth == 2.0e9


def test_an_unused_link_keeps_its_bandwidth() -> None:
    links = (Link(bandwidth=8.0e9, latency=0.0), Link(bandwidth=1.0e9, latency=0.0))
    assert shared_links(links, KernelPlan(), Mesh(1)) == links
