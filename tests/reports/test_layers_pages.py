"""Pages of strategies of layers: from one strategy to the answer step by step, and values by the budget."""

from pathlib import Path

import pytest

from crossopt.crossflow.operator_graph import edges
from crossopt.instances.operators.graph_file import graph_text
from crossopt.instances.question import read, read_again
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.sheets.layers import sheet
from crossopt.reports.sheets.sheet import Bars, Picture, Section, Table
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.family import solve
from crossopt.solvers.layers.family import FAMILY
from tests.instances.layers.test_network import small
from tests.samples import SAMPLES

QUESTION = """
kind: layers
objective: time
budgets: {size: 5 MB}
layers:
  a: {strategies: {fp16: {time: 4 s, size: 2 MB}, fp8: {time: 2 s, size: 1 MB}}}
  b: {strategies: {fp16: {time: 3 s, size: 2 MB}, fp8: {time: 2 s, size: 1 MB}}}
  c: {strategies: {fp16: {time: 5 s, size: 4 MB}, fp4: {time: 1 s, size: 1 MB}}}
links: [{between: [a, b], differ: {time: 0.5 s}}, {between: [b, c], differ: {time: 0.25 s}}]
"""


def sections(text: str) -> tuple[Section, ...]:
    asked = read_again({"text": text, "source": "question.yaml", "settings": []}, "layers")
    return sheet(asked, solve(FAMILY, asked, "auto", Limits(), unwatched)).details()


def test_steps_lead_from_one_strategy_everywhere_to_the_answer() -> None:
    steps = sections(QUESTION)[1].parts[1]
    assert isinstance(steps, Bars)
    assert [(bar.label, bar.amount) for bar in steps.rows] == [
        ("all fp16", 12.0),
        ("2 x fp8", 9.0),
        ("1 x fp4", 5.0),
        ("between layers", 5.25),
    ]
    assert [bar.detail for bar in steps.rows][1:] == ["9 s, -3 s", "5 s, -4 s", "5.25 s, +250 ms"]


def test_the_front_of_the_budget_has_the_answer_and_is_left_out_without_one_budget() -> None:
    front = sections(QUESTION)[2]
    [picture] = front.parts
    assert (front.title, isinstance(picture, Picture)) == ("Time by the budget of size", True)
    assert isinstance(picture, Picture)
    assert "2.861 MiB, 5.25 s" in picture.described
    assert picture.draw(Titles("", "", "", 600.0)).startswith("<svg")
    assert len(sections(SAMPLES["layers"].texts[0])) == 2  # two budgets


def test_the_sheet_of_a_free_chip_says_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "graph.json").write_text(graph_text(small()), encoding="utf-8")
    text = (
        "kind: layers\nobjective: time\ngraph: graph.json\ntechnology: accelerator-4nm\nformats: [fp8]\n"
        "choices: {compute_area: [300 mm^2], hbm_stacks: [2, 4]}\nformat_area: {fp8: 1%}\n"
    )
    (tmp_path / "question.yaml").write_text(text, encoding="utf-8")
    question = read(tmp_path / "question.yaml")
    result = solve(FAMILY, question, "auto", Limits(), unwatched)
    rows = dict(sheet(question, result).brief())
    assert rows["chip"].startswith("compute area 300 mm^2 · hbm stacks 4 · computes fp8 yes · die area ")
    assert rows["strategies"] == "3 x fp8 · 1 x bf16"
    assert result.proved


def test_the_network_has_the_number_of_each_strategy_and_all_its_edges(tmp_path: Path) -> None:
    """Also of edges that no figure is on, and of operators without a choice, which are round."""
    (tmp_path / "graph.json").write_text(graph_text(small()), encoding="utf-8")
    (tmp_path / "question.yaml").write_text(
        "kind: layers\nobjective: time\ngraph: graph.json\nhardware: h100-sxm\nformats: [fp8]\n"
        "quality: {a0: {fp8: 0.5}, c0: {fp8: 0.25}}\nbudgets: {quality: 0.3}\n",
        encoding="utf-8",
    )
    question = read(tmp_path / "question.yaml")
    result = solve(FAMILY, question, "auto", Limits(), unwatched)
    shown = sheet(question, result)
    [picture] = next(section for section in shown.details() if section.title == "The network by strategy").parts
    assert isinstance(picture, Picture) and result.answer is not None
    drawn = picture.draw(Titles("", "", "", 600.0))
    assert all(f"{name}: {strategy}, " in drawn for name, strategy in zip(question.problem.layers, result.answer.strategies, strict=True))
    assert "1 bf16; 2 fp8" in picture.caption
    neighbours = {(edge.source, edge.target) for edge in edges(small())}
    assert drawn.count("<path") + drawn.count("<polyline") >= len(neighbours) - 1  # one is a view
    table = next(section for section in shown.sections if section.title == "Layer by layer").parts[1]
    assert isinstance(table, Table)
    columns = {column.head: column for column in table.columns}
    assert sum(float(str(share)) for share in columns["of budget"].exact) == pytest.approx(0.25 / 0.3)
    rows = dict(zip(columns["layer"].texts, columns["gain"].exact, strict=True))
    assert rows["a0"] == 0.0 and float(str(rows["c0"])) > 0.0


def test_a_table_of_many_layers_says_how_many_it_shows_and_where_the_others_are() -> None:
    def described(count: int, budget: str) -> list[str]:
        layers = "".join(
            f"  n{one}: {{strategies: {{x: {{time: 2 s, size: 1 B}}, y: {{time: 1 s, size: 2 B}}}}}}\n" for one in range(count)
        )
        text = f"kind: layers\nobjective: time\nbudgets: {{size: {budget}}}\nlayers:\n{layers}"
        asked = read_again({"text": text, "source": "question.yaml", "settings": []}, "layers")
        shown = sheet(asked, solve(FAMILY, asked, "auto", Limits(), unwatched))
        tables = [section.parts[0] for section in shown.sections if section.title == "Layer by layer"]
        return [*map(str, tables), dict(shown.brief())["next"]]

    assert "The first 40 of 41 are shown; `crossopt export RESULT --as strategies` has all." in described(41, "60 B")[0]
    assert "The first" not in described(40, "60 B")[0]
    assert "export" in described(2, "60 B")[-1] and "export" not in described(2, "1 B")[-1]  # nothing to export


@pytest.mark.parametrize(("training", "passes"), [("false", 1.0), ("true", 3.0)])
def test_the_utilisation_is_the_time_of_multiply_adds_at_the_peak_over_that_of_the_network(
    training: str, passes: float, tmp_path: Path
) -> None:
    (tmp_path / "graph.json").write_text(graph_text(small()), encoding="utf-8")
    text = f"kind: layers\nobjective: time\ngraph: graph.json\nhardware: a100-80g\nformats: [fp16]\ntraining: {training}\n"
    (tmp_path / "question.yaml").write_text(text, encoding="utf-8")
    question = read(tmp_path / "question.yaml")
    result = solve(FAMILY, question, "auto", Limits(), unwatched)
    assert result.details is not None
    share = passes * 2.0 * small().macs / 312e12 / result.details.totals["time"]
    assert dict(sheet(question, result).figures)["utilisation"] == f"{share:.1%} of the peak, by multiply-adds"
