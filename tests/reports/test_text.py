"""The answer on the terminal: its numbers are those of the evaluation, its lines fit the page, and it claims what is proved."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from crossopt.crossflow.evaluate import evaluate
from crossopt.crossflow.plan import Plan
from crossopt.instances.codesign.known_errors import likely_of
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.files.units import format_quantity, parse_quantity
from crossopt.reports.cli import main
from crossopt.reports.facts.repriced import measured_text
from crossopt.reports.facts.uses import Uses, saved_text, uses_named, uses_of
from crossopt.reports.sheets.codesign.design import common_text
from crossopt.reports.sheets.sheet import Bars, Breakdown, Limits
from crossopt.solvers.codesign.answer import Candidate, DesignResult, chosen_design, design_of, space_in
from crossopt.solvers.codesign.claims import reasons_of
from crossopt.solvers.codesign.engines import SEARCHERS
from crossopt.solvers.codesign.judge import evaluate_single
from crossopt.solvers.proofs import Conflict, Enumerated, Occurring, Space
from tests.paths import INSTANCES
from tests.reports.answers import ENGINES, answer, answered, evaluation_of, evaluation_text, section_in, sheet_on, words_of
from tests.solvers.codesign.questions import LSTM, TINY_FREE, ask, random_question

PAGE = 100
LLAMA_ON_H100 = """
kind: codesign
workload: {model: llama3.1-8b, global_batch: 64}
cluster: {devices: 64}
hardware: h100-sxm
"""


def space_of(result: DesignResult) -> Space:
    space = space_in(result)
    assert space is not None
    return space


def counting(result: DesignResult, space: Space) -> DesignResult:
    """The result with other counts."""
    return replace(result, proof=Enumerated(result.proved_by, space))


@pytest.fixture(scope="module")
def tiny() -> DesignResult:
    return answered(read_instance(INSTANCES / "tiny.yaml"))


@pytest.fixture(scope="module")
def quickstart() -> DesignResult:
    return answered(read_instance(INSTANCES / "quickstart.yaml"))


def shown_again(text: str, dimension: str) -> float:
    return parse_quantity(text, dimension)


def test_the_value_and_the_bound_are_those_of_the_certificate(quickstart: DesignResult) -> None:
    sheet = sheet_on(quickstart)
    assert (sheet.value, sheet.bound, sheet.gap) == (quickstart.value, quickstart.bound, 0.0)
    assert [name for name, _ in sheet.exactly] == ["step time", "lower bound", "gap"]
    assert all(shown_again(words, "time") == pytest.approx(quickstart.value, rel=1e-6) for _, words in sheet.exactly[:2])


def test_the_breakdown_has_every_item_of_the_evaluation(quickstart: DesignResult) -> None:
    items = evaluation_of(quickstart).breakdown
    [part] = section_in(sheet_on(quickstart), "Where the step goes").parts
    assert isinstance(part, Breakdown)
    assert [(label, amount) for _, label, amount in part.present] == sorted(
        ((name, seconds) for name, seconds in items.items() if seconds > 0.0), key=lambda item: -item[1]
    )
    assert part.total == pytest.approx(evaluation_of(quickstart).step_time)


def test_every_limit_is_shown_and_marked_where_it_is_full(quickstart: DesignResult) -> None:
    limits = evaluation_of(quickstart).limits
    part = section_in(sheet_on(quickstart), "Limits").parts[0]
    assert isinstance(part, Limits)
    assert {limit.name for limit in limits} == {"memory", "die area", "package area", "power", "power density"}
    for limit, row in zip(limits, part.rows, strict=True):
        assert (row.label, row.used, row.available, row.dimension) == (limit.name, limit.used, limit.available, limit.unit)
        assert (row.mark in ("full", "nearly full")) == (limit.name in evaluation_of(quickstart).binding)
        assert (row.mark == "full") == (limit.used >= 0.995 * limit.available)


def test_rates_memory_and_counts_are_those_of_the_result(tiny: DesignResult) -> None:
    sheet, evaluation = sheet_on(tiny), evaluation_of(tiny)
    assert ("tokens a second", f"{round(evaluation.tokens_per_second):,}") in sheet.figures
    assert ("MFU", f"{evaluation.utilisation:.1%}") in sheet.figures
    assert f"{space_of(tiny).designs} designs, {space_of(tiny).feasible} keep every limit" in sheet.headline
    held = section_in(sheet, "Limits").parts[1]
    assert isinstance(held, Breakdown)
    assert dict(held.parts) == evaluation.memory


def test_the_certificate_is_one_sentence_with_the_bound_and_who_proved_it(tiny: DesignResult) -> None:
    told = f"No design is below {tiny.value:.7g} s, by exhaustive enumeration of 24 designs; answer evaluated again, by the full model"
    sheet = sheet_on(tiny)
    assert sheet.verdict.startswith(told)
    assert sheet.closing == "certificate"


def test_an_answer_without_a_proof_claims_none() -> None:
    for engine in ("expert", "plan-only", "hardware-only"):
        sheet = sheet_on(answered(ask(TINY_FREE), engine))
        assert ("lower bound", "none") in sheet.exactly
        assert (sheet.closing, sheet.proved, sheet.label) == ("no proof", False, "not proved")
        assert "a better one may exist" in sheet.verdict
        assert "Designs nearly as good" not in [one.title for one in sheet.all_sections]


@pytest.mark.parametrize(
    ("ties", "one", "five", "words"),
    [
        (1, 1, 3, "none as good, none within 1 %, 2 within 5 %"),
        (2, 2, 2, "1 as good, 1 within 1 %, 1 within 5 %"),
        (1001, 1200, 1300, "1,000 as good, 1,199 within 1 %, 1,299 within 5 %"),
    ],
)
def test_designs_near_the_optimum_are_counted_in_words(tiny: DesignResult, ties: int, one: int, five: int, words: str) -> None:
    space = replace(space_of(tiny), ties=ties, within_1_percent=one, within_5_percent=five)
    assert words in words_of(section_in(sheet_on(counting(tiny, space)), "Designs nearly as good"))


@pytest.mark.parametrize(
    ("seconds", "words"), [(6.3e-6, "under 1 ms"), (0.0142, "0.014 s"), (1.234, "1.2 s"), (123.4, "123 s"), (7200.0, "7,200 s")]
)
def test_the_time_of_the_proof_is_told_as_people_tell_it(tiny: DesignResult, seconds: float, words: str) -> None:
    assert f"proved in {words} by exhaustive" in answer(replace(tiny, seconds=seconds))


def test_baselines_stand_beside_the_answer(quickstart: DesignResult) -> None:
    [recipes, nvidia] = quickstart.baselines
    [bars] = section_in(sheet_on(quickstart), "Baselines").parts
    assert isinstance(bars, Bars)
    assert [(row.label, row.amount) for row in bars.rows] == [
        ("this design", quickstart.value),
        ("best recipe", recipes.value),
        ("NVIDIA's recipe", nvidia.value),
    ]
    same = replace(quickstart, baselines=(replace(recipes, value=quickstart.value),))
    assert "finds the same value" in words_of(section_in(sheet_on(same), "Baselines"))
    none = replace(quickstart, baselines=(replace(recipes, value=None, note="nothing fits"),))
    assert "best recipe: none, finds no design: nothing fits" in words_of(section_in(sheet_on(none), "Baselines"))


def test_limits_that_no_design_meets_come_first_and_with_the_least_violation(tiny: DesignResult) -> None:
    nothing = {"status": "INFEASIBLE", "answer": None, "details": None, "value": None, "bound": None, "gap": None}
    conflicts = (Conflict("memory", 7, 0.5), Conflict("power", 0, 1.25), Conflict("die area", 0, 4.0), Conflict("rule: x", 0, None))
    [reasons] = section_in(sheet_on(replace(tiny, reasons=reasons_of(conflicts), **nothing)), "Why").parts  # type: ignore[arg-type]
    assert [reason.partition(":")[0] for reason in reasons] == ["die area", "power", "memory", "rule"]
    assert "die area: no design keeps it; the least that any design needs is 4 times what there is" in reasons
    assert "memory: kept by 7 designs" in reasons
    both = sheet_on(replace(tiny, reasons=reasons_of(conflicts[:1]), **nothing))  # type: ignore[arg-type]
    assert "each limit is satisfied by some design, but no design satisfies all of them" in words_of(section_in(both, "Why"))


@pytest.mark.parametrize("objective", ["energy_per_token", "cost_per_token"])
def test_other_objectives_have_their_unit_and_the_step_time_below(objective: str) -> None:
    prices = "prices={electricity: 0.1 USD/kWh, lifetime: 4 year, device: 15000 USD}"
    result = answered(read_instance(INSTANCES / "tiny.yaml", (f"objective={objective}", prices)))
    sheet = sheet_on(result)
    unit = {"energy_per_token": "J/token", "cost_per_token": "USD/token"}[objective]
    assert (sheet.asks, sheet.unit, sheet.value) == (objective.replace("_", " "), unit, result.value)
    assert {"step time", "cost of a step"} <= set(dict(sheet.figures))


def test_a_design_over_its_limits_is_marked() -> None:
    settings = ("workload.model=gpt3-175b", "tensor=4", "pipeline=1", "microbatch=1", "recompute=none")
    single = evaluate_single(asked := read_instance(INSTANCES / "tiny.yaml", settings))
    text = evaluation_text(asked, single.design, single.evaluation)
    assert "BREAKS A LIMIT" in text
    assert re.search(r"memory .*BROKEN$", text, re.MULTILINE)


@pytest.mark.parametrize("seed", [33, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 1, 6, 9, 22, 44))])
def test_no_line_is_wider_than_the_page(seed: int) -> None:
    instance = random_question(seed)
    answering = list(ENGINES) if instance.objective == "step_time" else [name for name in ENGINES if name not in {"milp", "cpsat"}]
    results = [answered(instance, name, 0.02 if name in SEARCHERS else float("inf")) for name in answering]
    for text in map(answer, results):
        assert max(map(len, text.splitlines())) <= PAGE
        assert text == "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
        assert "\N{NO-BREAK SPACE}" not in text


def test_an_answer_of_an_lstm_is_told_in_its_own_words() -> None:
    text = answer(answered(ask(LSTM)))
    assert "matrix products" in text
    assert re.search(r"plan +(rows|columns|inner|data|undivided)", text)


def test_one_of_a_thing_is_not_several(tiny: DesignResult) -> None:
    space = Space(1, 1, 1, 1, 1, 0, 1, 1)
    text = answer(counting(tiny, space))
    assert "1 designs" not in text
    assert "tiny   1 design, 1 keeps every limit" in text
    assert format_quantity(1.0, "time") == "1 s"


@pytest.mark.parametrize(
    ("designs", "words"),
    [
        (1, "no other design is within 7.0%, the model's mean error on measured runs, of the best"),
        (2, "one other design is within 7.0%, the model's mean error on measured runs, of the best: the model cannot tell the two apart"),
        (
            1234,
            "1,233 other designs are within 7.0%, the model's mean error on measured runs, of the best: the model cannot tell them apart",
        ),
    ],
)
def test_designs_within_the_models_error_are_told_in_a_sentence(tiny: DesignResult, designs: int, words: str) -> None:
    def told(space: Space) -> str:
        return words_of(section_in(sheet_on(counting(tiny, space)), "Caveats"))

    assert words in told(replace(space_of(tiny), error=0.07, within_error=designs))
    assert "within the model's error" not in told(replace(space_of(tiny), error=None, within_error=None))


NEAR = (
    Occurring("compute_area", 9, [640e-6, 600e-6, 660e-6, 680e-6], (1.0, 1.005, 1.01, 1.02)),
    Occurring("l2_power", 3, [10.0, 20.0], (1.0, 1.005)),
    Occurring("hbm_edge", 2, [0.5], (1.0,)),
    Occurring("hbm_stacks", 4, [4, 6], (1.0, 1.04)),
    Occurring("tensor", 5, [1, 2, 4, 8], (1.0, 1.0, 1.0, 1.04)),
    Occurring("sequence_parallel", 2, [False, True], (1.0, 1.01)),
    Occurring("recompute", 3, ["none", "full"], (1.0, 1.03)),
    Occurring("zero", 4, [0, 1, 3], (1.0, 1.0, 1.0)),
)


def test_what_near_designs_have_in_common_is_told_by_choice(tiny: DesignResult) -> None:
    space = replace(space_of(tiny), within_1_percent=2, within_5_percent=3, near=NEAR)
    assert common_text(space, 1.0) == (
        "within 1 %",
        "all have hbm 0.5 of the edge, 4 HBM stacks, no recompute; compute 640 mm^2, 600 mm^2 or 660 mm^2; l2 given 10 W or 20 W; "
        "tensor 1, 2 or 4; ZeRO-0, ZeRO-1 or ZeRO-3; every option of sequence parallel",
    )
    share, wider = common_text(replace(space, within_1_percent=1), 1.0)
    assert share == "within 5 %"
    assert "compute between 600 mm^2 and 680 mm^2" in wider
    assert "tensor between 1 and 8" in wider
    assert "4 or 6 HBM stacks" in wider
    assert common_text(replace(space, within_1_percent=1, within_5_percent=1), 1.0) == ("", "")


def test_nothing_is_said_of_near_designs_where_there_are_none(tiny: DesignResult, quickstart: DesignResult) -> None:
    assert "all have" not in answer(tiny)
    same = "within 1 % all have compute 440 mm^2, tensor 1, pipeline 1, data 64, microbatch 4, interleave 1,"
    assert same in words_of(section_in(sheet_on(quickstart), "Designs nearly as good"))


def test_the_spread_of_measured_runs_is_printed_where_there_were_some(tiny: DesignResult) -> None:
    """The A100 has an optimistic and a pessimistic set of constants, the model's own have not."""
    low, high = evaluation_of(tiny).likely
    assert low < evaluation_of(tiny).step_time < high
    assert f"likely step time  {low * 1e3:.4g} ms to {high * 1e3:.4g} ms" in answer(tiny)
    new = answered(read_instance(INSTANCES / "tiny.yaml", ("hardware=b300",)))
    (low, high), (fast, slow) = evaluation_of(new).likely, evaluation_of(new).likely_by_constants
    assert low <= fast < slow < high, "what a result says is what its text says"
    assert f"likely step time  {low * 1e3:.4g} ms to {high * 1e3:.4g} ms" in answer(new)
    assert "likely" not in answer(answered(ask(TINY_FREE, "technology={base: accelerator-7nm, constants: ideal}")))


def test_an_infeasible_answer_by_boxes_says_what_explains_it() -> None:
    text = " ".join(answer(answered(ask(TINY_FREE, "budget.power=50 W"), "boxes")).split())
    assert "1 box of" in text
    assert "`crossopt explain` names the limits and choices that clash" in text


def test_what_the_best_saves_of_another_step_is_said_by_use() -> None:
    """Ten seconds less 8: three of the bubble and half a second of the optimizer less, one and a half of exchanges more."""
    best = Uses("auto", {"compute": 5.0, "tensor exchange": 2.5, "optimizer": 0.5})
    other = Uses("recipes", {"compute": 5.0, "pipeline bubble": 3.0, "tensor exchange": 1.0, "optimizer": 1.0})
    said = (
        "of its step of 10 s the optimum saves 2 s (20.0%): pipeline bubble 3 s, optimizer 500 ms; it spends more on tensor exchange 1.5 s"
    )
    assert saved_text(best, other, proved=True) == said
    assert saved_text(best, other, proved=False) == said.replace("the optimum", "the best design found")
    assert saved_text(other, best, proved=True) == saved_text(best, best, proved=True) == ""
    assert uses_named((best, other)) == ("compute", "pipeline bubble", "tensor exchange", "optimizer")


def test_the_head_takes_as_long_whichever_stage_is_the_slowest() -> None:
    """A last stage with as many layers as others and the head is the slowest; with less layers stages between are."""
    text = """
kind: codesign
workload: {model: deepseek-v3, global_batch: 512}
cluster: {devices: 256}
hardware: h100-sxm
choices: {tensor: 8, pipeline: 8, expert: 4, last_stage_layers: [8, 5], recompute: full, zero: 1, sequence_parallel: true}
"""
    asked = ask(text)
    common = Plan(tensor=8, pipeline=8, data=4, expert=4, sequence_parallel=True, recompute="full", zero=1)
    plans = [replace(common, last_stage_layers=layers) for layers in (8, 5)]
    last, middle = (uses_of(asked, "", chosen_design(asked, Candidate(0, plan))).seconds for plan in plans)
    shown, hidden = (dict(evaluate(asked.workload, design_of(asked, Candidate(0, plan)), asked.budget).breakdown) for plan in plans)
    assert shown["embedding and head"] > 0.0 == hidden["embedding and head"]
    assert last["embedding and head"] == middle["embedding and head"] > 0.0
    assert sum(last.values()) == pytest.approx(sum(shown.values()), rel=1e-12)
    assert sum(middle.values()) == pytest.approx(sum(hidden.values()), rel=1e-12)
    assert last["unequal stages"] > 0.0


def test_a_comparison_shows_steps_by_use_within_80_columns_and_on_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["compare", "llama3-405b-1024xh100", "--engines", "auto,recipes,expert", "--chart", str(tmp_path / "page.html")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    head = lines[lines.index("  Where the step goes") + 1]
    assert head.split() == ["use", "exhaustive", "recipes", "expert"]
    assert [line.split()[0] for line in lines if "of its step of" in line] == ["recipes", "expert"]
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    table = page.partition("<h2>Where the step goes</h2>")[2].partition("</table>")[0]
    assert all(words in table for words in ("exhaustive", "recipes", "expert", "compute", "pipeline bubble", "the whole step"))
    assert page.count("of its step of") == 2


def test_the_likely_range_is_no_narrower_than_measured_runs_of_the_stack_say() -> None:
    """Ten seconds that are 10.4 % off may be 10 / 1.104 or 10 / 0.896; by megatron-core's 6.3 % the range of the constants stays. Where
    no run is known it is what taking constants over was off by, and on more devices than any run had what more ranks cost FSDP."""
    titan, usual, deep = (ask(LLAMA_ON_H100, f"stack={stack}") for stack in ("torchtitan", "megatron-core", "deepspeed"))
    many, new = ask(LLAMA_ON_H100, "stack=fsdp", "cluster.devices=1024", "workload.global_batch=1024"), ask(LLAMA_ON_H100, "hardware=b300")
    priced = (10.0, (9.2, 10.9))
    assert likely_of(titan, *priced, Plan()) == pytest.approx((10 / 1.104, 10 / 0.896))
    assert likely_of(usual, *priced, Plan()) == (9.2, 10.9)
    assert likely_of(deep, *priced, Plan()) == pytest.approx((10 / 1.17, 10 / 0.83))
    assert likely_of(new, *priced, Plan()) == pytest.approx((10 / 1.177, 10 / 0.823))
    assert likely_of(many, *priced, Plan()) == pytest.approx((9.2, 10 / 0.75))
    assert "1,024 devices are outside the span of the runs (512 at the most)" in measured_text(many, None)
    assert "outside" not in measured_text(titan, None)
    assert measured_text(usual, None).startswith(
        "77 public runs of megatron-core on h100-sxm, none of which was fitted to: 6.3% off on average"
    )
    few, none, many_like = Plan(tensor=8), Plan(tensor=8, context=2), Plan(tensor=8, pipeline=8)
    assert measured_text(titan, few) == (
        f"{measured_text(titan, None)}; with tensor ranks in 16 bits 4 are known, for which 9.4% too little to 1.3% too much is predicted"
    )
    assert "no run of torchtitan with tensor and context ranks in 16 bits is known" in measured_text(titan, none)
    assert measured_text(usual, many_like) == measured_text(usual, None)
    assert likely_of(titan, *priced, none) == pytest.approx((10 / 1.104, 10 / 0.685))  # of all with context ranks, -3.1 to -31.5 %
    assert likely_of(titan, *priced, Plan(pipeline=8)) == pytest.approx((10 / 1.17, 10 / 0.83))
    assert likely_of(usual, *priced, many_like) == (9.2, 10.9)
    fitted = "on h100-sxm, to which constants were fitted, so that others may be further off"
    for stack, runs in (("torchtitan", "24 public runs of torchtitan"), ("fsdp", "79 public runs of llm-foundry, torchtitan and fms-fsdp")):
        assert measured_text(ask(LLAMA_ON_H100, f"stack={stack}"), None).startswith(f"{runs} {fitted}")
    assert measured_text(deep, None).startswith("none of deepspeed on h100-sxm was compared with the model")
    assert measured_text(ask(TINY_FREE), None).startswith("none of accelerator-7nm was compared")


def test_settings_that_are_off_only_because_nobody_named_them_are_told() -> None:
    """Eight tensor ranks without a word on sequence parallelism; one word less where it is named, and none where the rest is open."""
    alone, named, every, one = (
        "\n".join(answer(answered(asked), asked).splitlines())
        for asked in (
            ask(LLAMA_ON_H100, "choices.tensor=8", "recompute=full", *more) for more in ((), ("zero=0",), ("rest=all",), ("tensor=1",))
        )
    )
    by_default = {"sequence_parallel": "false", "tensor_exchange": "exposed", "zero": "0", "overlap": "none"}
    off = f"{', '.join(f'{name} ({value} by default)' for name, value in by_default.items())}, which recipes have on"
    assert [" ".join(text.split()).count(off) for text in (alone, named)] == [1, 0]
    assert "tensor_exchange (exposed by default), overlap (none by default), which recipes have on" in " ".join(named.split())
    assert "not named" not in every
    assert "not named  zero (0 by default), overlap (none by default), which recipes" in one
