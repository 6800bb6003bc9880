"""Problems as files, and what the command makes of them."""

import json
from itertools import pairwise
from pathlib import Path

from crossopt.instances.sharding.problem import FORBIDDEN, Problem
from crossopt.instances.sharding.question import ShardingQuestion
from crossopt.reports.cli import main
from crossopt.solvers.answer import Limits, Watch, result_in, to_text
from crossopt.solvers.checking import Report, check
from crossopt.solvers.family import solve
from crossopt.solvers.sharding.family import FAMILY
from crossopt.solvers.sharding.judge import Answer, Meaning, Strategies, weigh
from tests.instances.sharding.tiny import least, tiny


def document(problem: Problem) -> dict[str, object]:
    """A problem as its file says it."""
    costs, entries = (
        [10**18 if figure == FORBIDDEN else figure for figure in figures.tolist()] for figures in (problem.costs, problem.entries)
    )
    nodes, edges = problem.offsets.tolist(), problem.entry_offsets.tolist()
    limit = {} if problem.limit is None else {"usage_limit": problem.limit}
    return {
        "problem": {
            "name": problem.name,
            "nodes": {
                "intervals": [list(pair) for pair in zip(problem.starts.tolist(), problem.ends.tolist(), strict=True)],
                "costs": [costs[a:b] for a, b in pairwise(nodes)],
                "usages": [problem.usages[a:b].tolist() for a, b in pairwise(nodes)],
            },
            "edges": {
                "nodes": [list(pair) for pair in zip(problem.firsts.tolist(), problem.seconds.tolist(), strict=True)],
                "costs": [entries[a:b] for a, b in pairwise(edges)],
            },
            **limit,
        }
    }


def written(folder: Path, seed: int) -> Path:
    path = folder / "problem.json"
    path.write_text(json.dumps(document(tiny(seed))))
    return path


def solved(folder: Path, path: Path, *options: str) -> tuple[int, Path]:
    target = folder / "answer.json"
    return main(["solve", str(path), "--out", str(target), *options]), target


def answered(question: ShardingQuestion, engine: str, limits: Limits, watch: Watch) -> Answer:
    return solve(FAMILY, question, engine, limits, watch)


def checked(result: Answer, folder: Path) -> Report:
    """What a check says of a result after it was written and read."""
    return check(FAMILY, result_in(json.loads(to_text(result)), Strategies, Meaning), folder)


def feasible(folder: Path) -> Path:
    """A tiny problem on which memory counts."""
    for seed in range(100):
        problem = tiny(seed)
        if problem.limit is not None and least(problem) is not None and weigh(problem, [0] * 5).violations:
            return written(folder, seed)
    raise LookupError
