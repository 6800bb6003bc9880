"""Assignment 1: its judges, its README, and what faked and near answers earn."""

import importlib.util
import re
from types import ModuleType

import pytest

from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.roofline import Product, product_cost
from crossopt.instances.codesign.question import read_instance
from crossopt.solvers.codesign.judge import evaluate_single
from crossopt.solvers.grading.assignments import layer as slips
from crossopt.solvers.grading.assignments.layer import LAYER, product_seconds
from crossopt.solvers.grading.grade import SOLUTIONS, graded
from crossopt.solvers.grading.marks import HANDOUTS, Task, apart, figure, public

pytestmark = pytest.mark.course


def module(path: object) -> ModuleType:
    described = importlib.util.spec_from_file_location("handed_out", str(path))
    assert described is not None
    assert described.loader is not None
    found = importlib.util.module_from_spec(described)
    described.loader.exec_module(found)
    return found


@pytest.fixture(scope="module")
def tasks() -> tuple[Task, ...]:
    return LAYER.tasks("practice")


def test_the_table_of_the_readme_is_what_the_reference_returns() -> None:
    shape = public(LAYER.name)["shape"]
    solution = module(SOLUTIONS / LAYER.name / "solution.py")
    readme = (HANDOUTS / LAYER.name / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)\((.*)\)` \| ([\d.e-]+) \|$", readme, re.MULTILINE)
    assert len(rows) == 6
    for function, arguments, value in rows:
        given = [
            shape if text == "shape" else text == "True" if text in {"True", "False"} else float(text) for text in arguments.split(", ")
        ]
        assert getattr(solution, function)(*given) == float(value)


def test_the_roofline_is_that_of_a_product_of_whole_tiles(plain: Hardware) -> None:
    """On a device without any loss, whose caches hold everything."""
    for rows, depth, columns in ((256, 512, 1024), (2048, 256, 512), (4096, 4096, 4096)):
        full = product_cost(Product(rows, depth, columns), 2.0, plain)
        assert float(full.time) == pytest.approx(product_seconds(rows, depth, columns, plain.throughput, plain.dram.bandwidth), rel=1e-12)


def test_a_figure_is_right_or_wrong_and_the_ratio_is_told(tasks: tuple[Task, ...]) -> None:
    case = tasks[0].cases[1]
    right = module(SOLUTIONS / LAYER.name / "solution.py").layer_weights(*case.call.arguments)
    assert case.judge(right).share == case.judge(right * (1.0 + 1e-10)).share == 1.0
    near = case.judge(right * 1.0001)
    assert (near.share, near.mistakes, near.why) == (0.0, (), "the figure is 1.0001 times the right one")
    assert case.judge(-right).share == 0.0


def test_the_whole_batch_is_asked_of_the_backward_pass_too(tasks: tuple[Task, ...]) -> None:
    """A third of the FLOPs is the forward pass alone."""
    case = tasks[1].cases[1]
    right = module(SOLUTIONS / LAYER.name / "solution.py").step_flops(*case.call.arguments)
    verdict = case.judge(right / 3)
    assert (verdict.share, verdict.mistakes) == (0.4, ("the backward pass is left out (it takes twice its forward pass)",))


@pytest.mark.parametrize("seed", ["practice", "hidden/ada", "hidden/7"])
def test_formulas_without_a_mistake_are_those_of_the_model_and_each_mistake_shows(seed: str) -> None:
    """Of some hidden case each mistake makes another figure than the right one, and than every other mistake."""
    plain = (slips.weights, slips.flops, slips.traffic, lambda *given: max(slips.seconds(*given)), slips.activations, slips.state)
    formulas = (slips.WEIGHTS, slips.FLOPS, slips.TRAFFIC, slips.SECONDS, slips.ACTIVATIONS, slips.STATE)
    for task, formula, mistakes in zip(LAYER.tasks(seed), plain, formulas, strict=True):
        hidden = [case for case in task.cases if not case.public]
        assert [case.judge(formula(*case.call.arguments)).share for case in task.cases] == [1.0] * len(task.cases)
        for words, wrong_one in mistakes.items():
            verdicts = [case.judge(wrong_one(*case.call.arguments)) for case in hidden]
            assert any(words in verdict.mistakes for verdict in verdicts), words
            assert all(verdict.share == 1.0 or verdict.mistakes for verdict in verdicts)


def test_the_question_of_the_handout_is_one_design() -> None:
    instance = read_instance(HANDOUTS / LAYER.name / "question.yaml")
    assert evaluate_single(instance).evaluation.feasible


def test_grading_needs_nothing_of_the_solutions() -> None:
    assert graded(LAYER, HANDOUTS / LAYER.name, "practice", walls=False).refused.startswith("there is no solution.py")


def test_figures_that_differ_look_different() -> None:
    assert figure(100.0 * (1.0 + 3e-9), 100.0).why == "the figure is 1.000000003 times the right one"
    assert apart(1.0, 2.0, 1.0) == ["1", "2", "1"]
    assert len(set(apart(0.1, 0.1 + 2**-56))) == 2
