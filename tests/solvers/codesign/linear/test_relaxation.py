"""The relaxation of integer models and the tree that closes its gap, against brute force and against the proved optimum of questions."""

import json
from collections.abc import Callable
from itertools import product
from math import inf
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import pytest

from crossopt.formulation.model import ExactlyOne, Linear, Model, Values, Variable, violations
from crossopt.instances.codesign.question import read_instance
from crossopt.reports.cli import main
from crossopt.solvers.backends import Spend, backend
from crossopt.solvers.backends.milp import Fractional, relaxation
from crossopt.solvers.codesign.boxes.branch import Spend as SearchSpend
from crossopt.solvers.codesign.boxes.search import search
from crossopt.solvers.codesign.linear.relaxation import Explored, Fixed, explore
from tests.paths import INSTANCES
from tests.solvers.codesign.questions import TINY_FREE, ask


def silent(progress: object) -> None:
    del progress


def rest_of(model: Model) -> Callable[[Fixed, float], tuple[Values, int] | None]:
    def rest(fixed: Fixed, seconds: float) -> tuple[Values, int] | None:
        rows = [Linear(f"fixed {variable.name}", ((1, variable),), value, value) for variable, value in fixed.items()]
        answer = backend("highs")(Model(model.variables, (*model.constraints, *rows), model.objective), Spend(seconds))
        return None if answer.values is None or answer.value is None else (answer.values, answer.value)

    return rest


def explored(model: Model, most: int = 10_000) -> Explored:
    return explore(model, relaxation(model), rest_of(model), silent, inf, most)


def drawn(random: Random) -> Model:
    """One of three options in each of four groups, the cost of the sum rounded up to whole sixths by an integer, and a budget."""
    groups = [tuple(Variable(f"group {g}: option {o}") for o in range(3)) for g in range(4)]
    every = [variable for group in groups for variable in group]
    whole = Variable("whole", 0, 100)
    cost = tuple((random.randrange(1, 60), variable) for variable in every)
    rows = (
        *(ExactlyOne(f"group {place}", group) for place, group in enumerate(groups)),
        Linear("budget", tuple((random.randrange(5, 40), variable) for variable in every), high=60),
        Linear("cost", (*((-price, variable) for price, variable in cost), (6, whole)), low=0),
    )
    return Model((*every, whole), rows, ((1, whole),))


def least(model: Model) -> int | None:
    """The optimum by trying all choices; the integer beside them is as small as its row allows."""
    choices, whole = model.variables[:-1], model.variables[-1]
    best = None
    for figures in product((0, 1), repeat=len(choices)):
        values = dict(zip(choices, figures, strict=True))
        cost = -sum(c * values[v] for c, v in model.constraints[-1].terms if v != whole)  # type: ignore[union-attr]
        values[whole] = -(-cost // 6)
        if not violations(model, values) and (best is None or values[whole] < best):
            best = values[whole]
    return best


@pytest.mark.parametrize("seed", range(4))
def test_the_tree_closes_on_the_optimum_and_no_bound_is_above_what_is_below_it(seed: int) -> None:
    model = drawn(Random(seed))
    found = explored(model)
    assert found.stopped == "complete"
    assert found.value == found.bound == least(model)
    assert found.values is None or violations(model, found.values) == ()
    for node in found.nodes:
        assert node.status != "open"
        if node.parent is not None and node.bound is not None:
            above = found.nodes[node.parent].bound
            assert above is not None
            assert above <= node.bound
        if node.value is not None:
            assert node.bound is not None
            assert node.bound <= node.value
    bounds = [bound for _, bound, _ in found.steps if bound is not None]
    assert bounds == sorted(bounds)


def test_a_model_without_a_solution_has_no_bound() -> None:
    one = Variable("one")
    model = Model((one,), (Linear("half", ((2, one),), 1, 1),), ((1, one),))
    found = explored(model)
    assert (found.value, found.bound, found.stopped) == (None, None, "complete")
    assert [node.status for node in found.nodes] == ["branched", "no solution", "no solution"]


def test_what_stops_it_leaves_a_bound_below_the_optimum() -> None:
    model = next(model for model in (drawn(Random(seed)) for seed in range(50)) if len(explored(model).nodes) > 6)
    optimum = least(model)
    assert optimum is not None
    few = explored(model, most=3)
    assert few.stopped == "node limit"
    assert few.bound is not None
    assert few.bound <= optimum

    def stopping(error: type[BaseException]) -> Explored:
        calls, relax = [0], relaxation(model)

        def three(fixed: Fixed, seconds: float) -> Fractional:
            calls[0] += 1
            if calls[0] > 4:
                raise error
            return relax(fixed, seconds)

        return explore(model, three, rest_of(model), silent, inf, 100)

    for error, word in ((KeyboardInterrupt, "interrupted"), (TimeoutError, "time limit")):
        found = stopping(error)
        assert (found.stopped, len(found.nodes)) == (word, 4)
        assert found.bound is not None
        assert found.bound <= optimum


def test_only_what_minimises_is_explored() -> None:
    one = Variable("one")
    model = Model((one,), (), ((1, one),), minimise=False)
    with pytest.raises(ValueError, match="minimise"):
        explored(model)


def explained(question: Path, folder: Path) -> dict[str, Any]:
    """What the command writes about the relaxation of a question."""
    assert main(["explain", str(question), "--relaxation", "--out", str(folder / "tree.json"), "--svg", str(folder / "tree.svg")]) == 0
    return dict(json.loads((folder / "tree.json").read_text(encoding="utf-8")))


def hold(data: dict[str, Any], best: float) -> None:
    """The optimum of the model bounds the question, its design is priced anew, and the shares of each part add up."""
    assert data["kind"] == "relaxation"
    assert data["stopped"] == "complete"
    assert data["root"] <= data["optimum"] * (1.0 + 1e-9)
    assert data["bound"] <= best <= data["value"]
    assert data["bound"] == pytest.approx(best, rel=2e-4)
    assert {node["status"] for node in data["nodes"]} <= {"branched", "nothing below", "not better", "solved"}
    for part in {share["part"] for share in data["shares"]}:
        assert sum(share["share"] for share in data["shares"] if share["part"] == part) == pytest.approx(1.0)


def test_the_command_prints_fractions_and_tree_and_draws_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "question.yaml").write_text(TINY_FREE, encoding="utf-8")
    data, best = explained(tmp_path / "question.yaml", tmp_path), search(ask(TINY_FREE), silent, SearchSpend()).value
    assert best is not None
    hold(data, best)
    told = capsys.readouterr().out
    for words in ("by the word of highs", "by the full model", "What the relaxation takes at the root", "closed after"):
        assert words in told
    root = ElementTree.fromstring((tmp_path / "tree.svg").read_text(encoding="utf-8"))
    texts = [element.text or "" for element in root.iter()]
    assert "all designs" in texts
    assert any(text.startswith("Branch and bound on the integer model of question") for text in texts)


@pytest.mark.slow
def test_the_gap_of_the_quickstart_is_closed_by_branching(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With 340 W, as the root is the optimum with 400."""
    path = tmp_path / "less.yaml"
    path.write_text((INSTANCES / "quickstart.yaml").read_text(encoding="utf-8").replace("power: 400 W", "power: 340 W"), encoding="utf-8")
    data, best = explained(path, tmp_path), search(read_instance(path), silent, SearchSpend()).value
    assert best is not None
    hold(data, best)
    assert len(data["nodes"]) > 10
    assert data["root"] < 0.999 * data["optimum"]
    assert "more (--svg FILE draws them" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["tiny", "--svg", "tree.svg"], 2, "--svg: this writes what --relaxation or --constants finds"),
        (["tiny", "--out", "tree.json"], 2, "--out: this writes what --relaxation or --constants finds"),
        (["tiny", "--relaxation", "--force", "tensor=2"], 2, "--force: this says nothing of a relaxation"),
        (["deepflow-lstm-64", "--relaxation"], 2, "use boxes"),
        (["tiny", "--relaxation", "--svg", "none/tree.svg"], 2, "make it first"),
        (["quickstart", "--relaxation", "--time-limit", "0s"], 10, "time limit before there was an integer model"),
        (["tiny", "--relaxation", "--out", str(INSTANCES / "tiny.yaml")], 2, "this is the question itself"),
        (["tiny", "--relaxation", "--set", "workload.model=gpt3-175b"], 20, "no design keeps every limit"),
    ],
)
def test_what_cannot_be_explained_is_told(arguments: list[str], code: int, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        ended = main(["explain", *arguments])
    except SystemExit as stop:
        ended = int(stop.code or 0)
    told = capsys.readouterr()
    assert (ended, word in told.out + told.err) == (code, True)
