"""What near-optimal designs have in common, by proof: it is what counting all designs finds, and short of time nothing false is said."""

import numpy as np
import pytest

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.reports.cli import main
from crossopt.reports.sheets.codesign.design import near_text
from crossopt.solvers.answer import Limits
from crossopt.solvers.codesign.answer import DesignResult
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.exhaustive import Found, search
from crossopt.solvers.codesign.explain import near_optimal as module
from crossopt.solvers.codesign.explain.near_optimal import Known, Near, near_optimum
from tests.every import every
from tests.once import once
from tests.paths import INSTANCES
from tests.solvers.codesign.asking import answered
from tests.solvers.codesign.questions import GEMM, LSTM, TINY_FREE, ask, random_question

WIDE = (
    "compute_area={from: 300 mm^2, to: 600 mm^2, step: 25 mm^2}",
    "compute_power={from: 100 W, to: 300 W, step: 40 W}",
    "hbm_stacks=[6, 2, 5]",
    "tensor=1",
)
"""More options than are asked one by one, some out of order; 425 mm^2 is no multiple of a bundle that helps, 400 and 450 are."""
SMALL = [
    read_instance(INSTANCES / "tiny.yaml"),
    ask(TINY_FREE, *WIDE),
    ask(TINY_FREE, *WIDE, "objective=die_area", "budget.step_time=0.4 s"),
    ask(LSTM, "compute_area={from: 100 mm^2, to: 300 mm^2, step: 20 mm^2}"),
    ask(GEMM),
    *map(random_question, (1, 2, 9, 14, 17, 22, 24, 36, 44)),
]
GAPS = ((0.0, 8), (0.02, 2), (0.05, 8))
"""With so many hardware options between the ends asked one by one."""


def silent(progress: object) -> None:
    del progress


@once
def solved(instance: Instance) -> DesignResult:
    return answered(instance, "boxes")


def found_near(instance: Instance, gap: float, deadline: float = float("inf")) -> Near:
    near = near_optimum(instance, solved(instance), gap, silent, deadline)
    assert near is not None
    return near


@once
def known_near(instance: Instance, gap: float, few: int) -> Near:
    """The same, asked once, with so many hardware options between the ends asked one by one."""
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(module, "_FEW", few)
        return found_near(instance, gap)


@once
def enumerated(instance: Instance) -> Found:
    return search(instance, silent)


def counted(instance: Instance, limit: float) -> dict[str, set[object]]:
    """The options that occur among designs up to the limit, by enumeration."""
    return {choice.name: set(choice.within(limit)) for choice in enumerated(instance).space.near}


def options_of(known: Known, mask: tuple[bool, ...]) -> set[object]:
    return {option for option, holds in zip(known.options, mask, strict=True) if holds}


def feasible() -> list[Instance]:
    return [instance for instance in SMALL if enumerated(instance).value is not None]


@pytest.mark.slow
@pytest.mark.parametrize(("gap", "few"), GAPS)
@every("instance", feasible)
def test_what_is_proved_is_what_enumeration_counts(instance: Instance, gap: float, few: int) -> None:
    near = known_near(instance, gap, few)
    expected = counted(instance, near.limit)
    assert {known.name for known in near.choices} == expected.keys()
    for known in near.choices:
        occur, never = options_of(known, known.occur), options_of(known, known.never)
        assert not never & expected[known.name], known.name
        if known.asked_between:
            assert occur == expected[known.name], known.name
            assert occur | never == set(known.options)
        else:
            ends = [place for place, holds in enumerate(known.occur) if holds]
            truth = [place for place, option in enumerate(known.options) if option in expected[known.name]]
            assert (ends[0], ends[-1]) == (truth[0], truth[-1]), known.name
            assert all(known.never[place] for place in range(len(known.options)) if not ends[0] <= place <= ends[-1])


@pytest.mark.slow
def test_these_questions_have_gaps_between_ends_and_choices_that_do_not_matter() -> None:
    """The comparison would say little without them."""
    near = [known for instance in feasible() for known in known_near(instance, 0.05, 8).choices]
    assert any(not known.asked_between and sum(known.never) > 2 for known in known_near(SMALL[1], 0.02, 2).choices)
    assert any(all(known.occur) for known in near)
    assert any(sum(known.occur) == 1 for known in near)
    ends = [(np.flatnonzero(known.occur), np.array(known.never)) for known in near]
    assert any(never[found[0] : found[-1]].any() for found, never in ends), "no option between the ends is refuted"


def test_the_search_alone_decides_what_dives_do_not_find(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "dive", lambda *_: None)
    for instance in (SMALL[1], random_question(24)):
        near = found_near(instance, 0.02)
        expected = counted(instance, near.limit)
        for known in near.choices:
            if known.asked_between:
                assert options_of(known, known.occur) == expected[known.name]


@pytest.mark.parametrize("looks", (0, 9))
def test_short_of_time_nothing_false_is_said(looks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock jumps past the deadline after so many looks at it."""
    instance = SMALL[1]
    expected = counted(instance, known_near(instance, 0.05, 8).limit)
    result, clock = solved(instance), iter([0.0] * looks)
    monkeypatch.setattr(module, "monotonic", lambda: next(clock, 100.0))
    near = near_optimum(instance, result, 0.05, silent, 50.0)
    assert near is not None
    for known in near.choices:
        assert options_of(known, known.occur) <= expected[known.name]
        assert not options_of(known, known.never) & expected[known.name]
    if not looks:
        assert "; not decided in time whether " in near_text(near, 0.05)


def test_a_search_that_is_stopped_refutes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    instance, whole = SMALL[1], module.branch
    expected = counted(instance, known_near(instance, 0.3, 8).limit)
    monkeypatch.setattr(module, "dive", lambda *_: None)
    monkeypatch.setattr(module, "branch", lambda *given: whole(*given[:-1], Spend(deadline=0.0)))
    near = found_near(instance, 0.3)
    for known in near.choices:
        assert not options_of(known, known.never) & expected[known.name]
    assert any(not (occurs or never) for known in near.choices for occurs, never in zip(known.occur, known.never, strict=True))


def test_an_interrupt_leaves_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "dive", interrupted)
    assert any("not decided" in line for line in near_text(found_near(SMALL[1], 0.01), 0.01).splitlines())


def test_nothing_is_said_without_a_proved_optimum() -> None:
    result = answered(SMALL[1], "boxes", Limits(seconds=0.0))
    assert near_optimum(SMALL[1], result, 0.01, silent, float("inf")) is None
    assert "not known, as the optimum was not proved in time" in near_text(None, 0.01)


def test_the_words_name_only_what_was_asked() -> None:
    many = tuple(float(watts) for watts in range(20))
    long = Known("l2_power", many, (*(False,) * 4, *(True, False) * 7, True, True), (*(True,) * 4, *(False,) * 16), False)
    plan = Known("zero", (0, 1, 2, 3), (False, True, False, False), (True, False, False, True), True)
    every = Known("registers_power", many, (True,) * 20, (False,) * 20, False)
    text = near_text(Near(1.0, (long, plan, every)), 0.015)
    assert "within 1.5 % of the optimum" in text
    assert "    l2 given between 4 W and 19 W\n" in text
    assert "    registers given between 0 W and 19 W\n" in text
    assert "every option" not in text
    assert "    ZeRO-1; not decided in time whether ZeRO-2, too\n" in text


def test_the_command_says_it_beside_its_other_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(INSTANCES / "tiny.yaml"), "--near", "20%"]) == 0
    out = capsys.readouterr().out
    assert "no limit binds" in out
    assert "designs within 20 % of the optimum, by proof:\n    all have " in out


def test_a_gap_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["explain", str(INSTANCES / "tiny.yaml"), "--near", "wide"])
    assert stopped.value.code == 2
    assert "'wide' is no gap (write for example 0.1% or 0.001)" in capsys.readouterr().err
