"""Pages of strategies of layers: from one strategy to the answer step by step, and values by the budget."""

from crossopt.instances.question import read_again
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.sheets.layers import sheet
from crossopt.reports.sheets.sheet import Bars, Picture, Section
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.family import solve
from crossopt.solvers.layers.family import FAMILY
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
    steps = sections(QUESTION)[0].parts[1]
    assert isinstance(steps, Bars)
    assert [(bar.label, bar.amount) for bar in steps.rows] == [
        ("all fp16", 12.0),
        ("2 x fp8", 9.0),
        ("1 x fp4", 5.0),
        ("between layers", 5.25),
    ]
    assert [bar.detail for bar in steps.rows][1:] == ["9 s, -3 s", "5 s, -4 s", "5.25 s, +250 ms"]


def test_the_front_of_the_budget_has_the_answer_and_is_left_out_without_one_budget() -> None:
    front = sections(QUESTION)[1]
    [picture] = front.parts
    assert (front.title, isinstance(picture, Picture)) == ("Time by the budget of size", True)
    assert isinstance(picture, Picture)
    assert "2.861 MiB, 5.25 s" in picture.described
    assert picture.draw(Titles("", "", "", 600.0)).startswith("<svg")
    assert len(sections(SAMPLES["layers"].texts[0])) == 1  # two budgets
