"""TorchRec's own planner as a referee: its estimates of every shard beside ours, and its plan beside ours and beside the bound.

    python -m tests.benchmarks.torchrec_planner [--seconds 30] [QUESTION.yaml ...]

It needs `torchrec` with `fbgemm-gpu-cpu` and `torch` of the same release (torchrec 1.8, fbgemm-gpu-cpu 1.8 and torch 2.13 were tried). Both
need about 1 GB, so that they are no part of the tests. Questions ask for `slowest_device`, and for one `cache` at most. Without a question
it takes tables drawn like those of a large model. TorchRec prices every shard by its own code; our judge prices its plan.
"""

import logging
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from importlib import import_module
from math import inf
from time import perf_counter
from typing import Any

from crossopt.instances.embeddings.options import Option, PricedOption
from crossopt.instances.embeddings.question import EmbeddingsQuestion
from crossopt.instances.embeddings.tables import Table
from crossopt.instances.question import read, read_given
from crossopt.reports.sheets.embeddings import TORCHREC_NAMES
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.checking import solve_and_verify
from crossopt.solvers.embeddings.family import FAMILY
from crossopt.solvers.embeddings.judge import EmbeddingPlan, TablePlan, judge

OURS = {theirs: ours for ours, theirs in TORCHREC_NAMES.items()}
CHOICES = "choices: {sharding: [table, row, column, data], kernel: [fused, fused_uvm, dense], columns: [1, 2]}\noptimizer: none\n"
CASES = {
    "24 tables, 4 devices": f"tables: {{count: 24, seed: 20261124}}\ncluster: {{devices: 4, hbm: 32 GiB}}\n{CHOICES}",
    "24 tables, 4 devices, 0.5 GiB": f"tables: {{count: 24, seed: 20261124}}\ncluster: {{devices: 4, hbm: 0.5 GiB}}\n{CHOICES}",
    "80 tables, 8 devices": f"tables: {{count: 80, seed: 20261180}}\ncluster: {{devices: 8, hbm: 32 GiB}}\n{CHOICES}",
    "80 tables, 8 devices, 2 GiB": f"tables: {{count: 80, seed: 20261180}}\ncluster: {{devices: 8, hbm: 2 GiB}}\n{CHOICES}",
    "80 tables whole, 8 devices, 3.65 GiB": (
        "tables: {count: 80, seed: 20261180}\ncluster: {devices: 8, hbm: 3.65 GiB, ddr: 0 B}\noptimizer: none\n"
        "choices: {sharding: [table], kernel: [fused]}\n"
    ),
    "80 tables, 16 devices in 2 nodes": (
        "tables: {count: 80, seed: 20261180}\ncluster: {devices: 16, devices_per_node: 8, hbm: 4 GiB}\noptimizer: none\n"
        "choices: {sharding: [table, row, table-row, table-column], kernel: [fused, fused_uvm], columns: [1, 2]}\n"
    ),
}


def module(name: str) -> Any:  # noqa: ANN401 - a package that is not installed for tests
    return import_module(name)


class Referee:
    """A question as TorchRec has it: collections of tables without values, their constraints and the devices."""

    def __init__(self, question: EmbeddingsQuestion) -> None:
        torch, configs = module("torch"), module("torchrec.modules.embedding_configs")
        modules, planner = module("torchrec.modules.embedding_modules"), module("torchrec.distributed.planner")
        meta = torch.device("meta")
        self.question = question

        def shape(table: Table) -> dict[str, Any]:
            dtype = {"fp32": "FP32", "fp16": "FP16", "bf16": "BF16"}[table.dtype]
            names = {"name": table.name, "feature_names": [f"feature of {table.name}"], "data_type": configs.DataType[dtype]}
            return names | {"num_embeddings": table.rows, "embedding_dim": table.dimension}

        class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                for weighted in (False, True):
                    bags = [configs.EmbeddingBagConfig(**shape(one)) for one in question.tables if one.pooled and one.weighted == weighted]
                    if bags:
                        bag = modules.EmbeddingBagCollection(tables=bags, device=meta, is_weighted=weighted)
                        self.add_module(f"bags_{weighted}", bag)
                for dimension in sorted({one.dimension for one in question.tables if not one.pooled}):
                    alike = [one for one in question.tables if not one.pooled and one.dimension == dimension]
                    kept = [configs.EmbeddingConfig(**shape(one)) for one in alike]
                    self.add_module(f"sequences_{dimension}", modules.EmbeddingCollection(tables=kept, device=meta))

        group = question.group
        rates, (hbm, ddr, ssd) = group.bandwidths, question.capacity
        self.model = Model()
        self.sharders = [
            module("torchrec.distributed.embeddingbag").EmbeddingBagCollectionSharder(),
            module("torchrec.distributed.embedding").EmbeddingCollectionSharder(),
        ]
        self.topology = planner.Topology(
            world_size=group.devices,
            local_world_size=group.per_node,
            compute_device="cuda",
            hbm_cap=hbm,
            ddr_cap=ddr,
            ssd_cap=ssd,
            hbm_mem_bw=rates.hbm,
            hbm_to_ddr_mem_bw=rates.host,
            intra_host_bw=rates.intra,
            inter_host_bw=rates.inter,
        )
        self.constraints = {table.name: self._constraint(table) for table in question.tables}
        self.enumerator = module("torchrec.distributed.planner.enumerators").EmbeddingEnumerator(
            topology=self.topology, batch_size=group.batch, constraints=self.constraints
        )

    def _constraint(self, table: Table) -> Any:  # noqa: ANN401 - of TorchRec
        choices, types = self.question.choices, module("torchrec.distributed.types")
        group = self.question.group
        cut = {"row": group.devices, "table-row": group.per_node, "grid": group.per_node}  # fewer rows are not cut
        return module("torchrec.distributed.planner").ParameterConstraints(
            sharding_types=[TORCHREC_NAMES[one] for one in choices.sharding if table.rows >= cut.get(one, 1)],
            compute_kernels=list(choices.kernel),
            pooling_factors=[table.pooling],
            num_poolings=[table.fraction],
            is_weighted=table.weighted,
            min_partition=choices.narrowest,
            cache_params=types.CacheParams(load_factor=choices.cache[0]) if choices.cache else None,
        )

    def options(self) -> Iterator[tuple[str, Option, float, tuple[int, int, int]]]:
        """Of every option of a table: time and memory of its largest shard."""
        for found in self.enumerator.enumerate(self.model, self.sharders):
            pieces = len(found.shards) // (self.question.group.per_node if found.sharding_type == "grid_shard" else 1)
            columns = pieces if found.sharding_type in {"column_wise", "table_column_wise", "grid_shard"} else 1
            cache = self.question.choices.cache[0] if found.compute_kernel == "fused_uvm_caching" else 0.0
            storage = [(shard.storage.hbm, shard.storage.ddr, shard.storage.ssd) for shard in found.shards]
            option = Option(OURS[found.sharding_type], found.compute_kernel, columns, cache)  # type: ignore[arg-type]
            yield found.name, option, max(shard.perf.total for shard in found.shards), max(storage)

    def plan(self, proposers: list[Any] | None = None) -> EmbeddingPlan | None:
        """The plan of TorchRec's planner in our terms; None where it finds none."""
        planner = module("torchrec.distributed.planner")
        asked = planner.EmbeddingShardingPlanner(
            topology=self.topology,
            batch_size=self.question.group.batch,
            enumerator=self.enumerator,
            constraints=self.constraints,
            proposer=proposers,
            storage_reservation=module("torchrec.distributed.planner.storage_reservations").FixedPercentageStorageReservation(0.0),
            debug=False,
        )
        try:
            found = asked.plan(self.model, self.sharders)
        except module("torchrec.distributed.planner.types").PlannerError:
            return None
        places = {name: own for plan in found.plan.values() for name, own in plan.items()}
        if missing := [table.name for table in self.question.tables if table.name not in places]:
            print(f"  the plan leaves out {len(missing)} tables: {', '.join(missing[:5])}")
        return EmbeddingPlan(tuple(self._table_plan(places[table.name]) for table in self.question.tables))

    def _table_plan(self, found: Any) -> TablePlan:  # noqa: ANN401 - of TorchRec
        sharding, per_node, ranks = OURS[found.sharding_type], self.question.group.per_node, list(found.ranks)
        cache = self.question.choices.cache[0] if found.compute_kernel == "fused_uvm_caching" else 0.0
        if sharding in {"column", "table-column"}:  # pieces on one device are one shard there
            widths = [shard.shard_sizes[1] for shard in found.sharding_spec.shards]
            ranks = [rank for rank, width in zip(ranks, widths, strict=True) for _ in range(width // min(widths))]
        columns = len(ranks) if sharding in {"column", "table-column"} else len(ranks) // per_node if sharding == "grid" else 1
        if columns == 1 and sharding in {"column", "table-column"}:
            sharding = "table"
        node_wise = sharding in {"table-row", "grid"}
        own = [rank // per_node for rank in ranks[::per_node]] if node_wise else [] if sharding in {"row", "data"} else ranks
        return TablePlan(Option(sharding, found.compute_kernel, columns, cache), tuple(sorted(own)))  # type: ignore[arg-type]


def compared(referee: Referee) -> tuple[int, float, int]:
    """How many options both have, the largest difference of their times, and how many differ in memory."""
    question = referee.question
    ours: dict[tuple[str, Option], PricedOption] = {
        (table.name, option.option): option
        for table, kind in zip(question.tables, question.types, strict=True)
        for option in question.options[kind]
    }
    both, largest, unlike = 0, 0.0, 0
    for name, option, time, memory in referee.options():
        if (own := ours.get((name, option))) is not None:
            both, largest = both + 1, max(largest, abs(own.time / time - 1.0))
            unlike += own.memory != memory
    return both, largest, unlike


def main() -> None:
    """Print what both find."""
    parser = ArgumentParser()
    parser.add_argument("questions", nargs="*")
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    questions = {path: read(path) for path in options.questions}
    questions = questions or {name: read_given(f"kind: embeddings\nbatch: 512\n{text}", "embeddings") for name, text in CASES.items()}
    proposers = module("torchrec.distributed.planner.proposers")
    for name, question in questions.items():
        referee = Referee(question)
        both, largest, unlike = compared(referee)
        print(f"{name}: of {both:,} options times differ by {largest:.1e} at most, {unlike:,} differ in memory")
        result = solve_and_verify(FAMILY, question, "auto", Limits(seconds=options.seconds), unwatched)
        value = inf if result.value is None else float(result.value)
        bound = "none" if result.bound is None else f"{result.bound:.6g} ms"
        print(f"  {'crossopt':<28} {value:10.6g} ms   {result.status}, lower bound {bound}")
        for label, asked in (
            ("TorchRec's planner", None),
            ("TorchRec's greedy alone", [proposers.GreedyProposer()]),
            ("TorchRec's uniform alone", [proposers.UniformProposer()]),
            ("TorchRec's dynamic alone", [proposers.DynamicProgrammingProposer()]),
        ):
            began = perf_counter()
            plan = referee.plan(asked)
            verdict = None if plan is None else judge(question, plan)
            shown = "no plan" if verdict is None else f"{verdict.value:10.6g} ms, {verdict.value / value - 1.0:+.2%}"
            broken = "" if verdict is None or verdict.accepted else f" ({verdict.violations[0]})"
            print(f"  {label:<28} {shown}{broken}   in {perf_counter() - began:.1f} s")
        for own in result.baselines:
            shown = f"none: {own.note}" if own.value is None else f"{own.value:10.6g} ms, {own.value / value - 1.0:+.2%} {own.note}"
            print(f"  {'ours: ' + own.name:<28} {shown}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
