"""Backends: each finds the optimum that counting finds, none is believed beyond what can be checked; models as files for other programs."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from math import inf, nan
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossopt.formulation.model import ExactlyOne, Linear, Model, Table, Variable, linearize, violations
from crossopt.instances.errors import SolverError
from crossopt.solvers.backends import BACKENDS, backend
from crossopt.solvers.backends.answer import Course, Event, RawReply, Reply, Spend, checked, judged
from crossopt.solvers.codesign.linear.relaxation import write_cpsat, write_lp, write_mps
from tests.formulation.models import models, optimum
from tests.paths import ROOT

# Backends: each finds the optimum that counting finds, none is believed beyond what can be checked.

PROVING = ("cpsat", "highs")
EACH = pytest.mark.parametrize("name", PROVING)
A, X, Y = Variable("a"), Variable("x", -3, 9), Variable("y", 0, 7)
SMALL = Model(
    (A, X, Y),
    (
        Linear("sum", ((2, X), (3, Y)), 3, 20),
        Table("cost", (X, Y), ((1, 2), (4, 3), (5, 1), (9, 9))),
        Linear("more", ((1, X),), 4, given=A),
        ExactlyOne("chosen", (A,)),
    ),
    ((5, X), (-7, Y)),
    3,
)
"""Of the rows of the table (4, 3) and (5, 1) are left: 5 * 4 - 7 * 3 + 3 = 2 and 5 * 5 - 7 + 3 = 21."""
ALL_BEST = {A: 1, X: 4, Y: 3}


def market_split(items: int, rows: int, largest: int, room: int, seed: int = 0) -> Model:
    """0/1 variables of which about half of several random sums is asked, to within a little: the smallest hard models there are."""
    random = Random(seed)
    chosen = tuple(Variable(f"item {place}") for place in range(items))
    sums = [[random.randint(1, largest) for _ in chosen] for _ in range(rows)]
    asked = tuple(
        Linear(f"sum {place}", tuple(zip(c, chosen, strict=True)), sum(c) // 2, sum(c) // 2 + room) for place, c in enumerate(sums)
    )
    return Model(chosen, asked, tuple((random.randint(10, 20), variable) for variable in chosen), 5)


def knapsack(seed: int) -> Model:
    """Thirty things of about a million each in weight and worth, of which a third fit."""
    random = Random(seed)
    things = tuple(Variable(f"thing {place}") for place in range(30))
    weights = [random.randint(500_000, 1_000_000) for _ in things]
    worths = [weight + random.randint(0, 1000) for weight in weights]
    room = Linear("room", tuple(zip(weights, things, strict=True)), high=sum(weights) // 3)
    return Model(things, (room,), tuple(zip(worths, things, strict=True)), minimise=False)


@EACH
@pytest.mark.parametrize(("minimise", "value"), [(True, 2), (False, 21)])
def test_a_small_model_by_hand(name: str, minimise: bool, value: int) -> None:
    answer = backend(name)(replace(SMALL, minimise=minimise), Spend())
    assert (answer.status, answer.value, answer.bound, answer.stopped) == ("OPTIMAL", value, value, "complete")
    assert answer.values is not None
    assert violations(SMALL, answer.values) == ()
    assert answer.solver.split()[0] == name
    assert answer.trace[-1].value == answer.trace[-1].bound == value


@settings(max_examples=45)
@given(models() | models(largest=10**6))
def test_counting_cpsat_and_highs_agree_to_the_unit(model: Model) -> None:
    best = optimum(model)
    for name in PROVING:
        answer = backend(name)(model, Spend())
        assert (answer.status, answer.value, answer.bound) == (("INFEASIBLE", None, None) if best is None else ("OPTIMAL", best, best))


@pytest.mark.parametrize("seed", [1, pytest.param(0, marks=pytest.mark.slow)])
def test_they_agree_on_knapsacks_with_costs_of_a_million(seed: int) -> None:
    """Two solvers of different kinds stand for each other. At its usual gap of 1e-4 HiGHS calls less than the optimum optimal here."""
    one, other = (backend(name)(knapsack(seed), Spend()) for name in PROVING)
    assert (one.status, one.value, one.bound) == (other.status, other.value, other.bound)
    assert one.status == "OPTIMAL"


@pytest.mark.parametrize(("worth", "proved"), [(10**6, True), (10**9, False)])
def test_beyond_eight_digits_floating_point_proves_no_last_unit(worth: int, proved: bool) -> None:
    """What HiGHS calls solved keeps a bound that is a millionth away."""
    things = tuple(Variable(f"thing {place}") for place in range(5))
    worths = tuple((worth + place, thing) for place, thing in enumerate(things))
    answer = backend("highs")(
        Model(things, (Linear("room", tuple((2, thing) for thing in things), high=5),), worths, minimise=False), Spend()
    )
    best = 2 * worth + 7
    assert (answer.status, answer.value) == ("OPTIMAL" if proved else "FEASIBLE", best)
    assert answer.bound is not None
    assert (answer.bound == best) == proved
    assert best <= answer.bound <= best * (1 + 2e-6)


@EACH
def test_a_model_on_which_highs_1_13_and_1_14_are_wrong(name: str) -> None:
    """They prove 10019 where 10013 can be had (enumerated): four integers, two rows, coefficients below a thousand."""
    a, b, c, d = Variable("a"), Variable("b", 0, 1536), Variable("c", -74, 0), Variable("d", 0, 2009)
    rows = (Linear("one", ((-99, a), (59, c)), high=-2755), Linear("two", ((-334, b), (-274, c), (152, d)), high=-24698))
    model = Model((a, b, c, d), rows, ((633, a), (87, b), (-4, c), (-6, d)))
    answer = backend(name)(model, Spend())
    assert (answer.status, answer.value, answer.values) == ("OPTIMAL", 10013, {a: 0, b: 113, c: -47, d: 1})


@pytest.mark.parametrize("name", ["cbc", *PROVING])
@pytest.mark.parametrize(
    ("model", "feasible"),
    [
        (Model((), ()), True),
        (Model((X,), (), constant=4), True),
        (Model((X,), (), ((-3, X),), 2), True),
        (Model((), (Linear("false", (), 1),)), False),
        (Model((X,), (Linear("false", (), 1, 2),)), False),
        (Model((X,), (ExactlyOne("none", ()),), ((1, X),)), False),
        (Model((X,), (Table("none", (X,), ()),)), False),
        (Model((X,), (Table("outside", (X,), ((10,),)),)), False),
    ],
)
def test_models_at_the_edge(name: str, model: Model, feasible: bool) -> None:
    """Without variables, rows, or an objective. CBC finds no solution where there is none, and is not believed that it is so."""
    answer = backend(name)(model, Spend())
    if feasible:
        assert (answer.status, answer.value) == ("OPTIMAL", optimum(model))
    else:
        assert (answer.status, answer.values) == ("UNKNOWN" if name == "cbc" else "INFEASIBLE", None)


def test_cbc_finds_and_never_proves() -> None:
    answer = backend("cbc")(SMALL, Spend())
    assert (answer.status, answer.value, answer.bound, answer.stopped) == ("FEASIBLE", 2, SMALL.domain_bound(), "no proof")


@EACH
def test_a_time_limit_leaves_a_bound_that_is_valid(name: str) -> None:
    """Small enough for CP-SAT to prove in a second or two, so that the optimum is known; cut off long before."""
    hard = market_split(items=24, rows=3, largest=1000, room=40)
    optimal = backend("cpsat")(hard, Spend()).value
    assert optimal is not None
    for seconds in (0.0, 0.05):
        answer = backend(name)(hard, Spend(seconds=seconds))
        assert answer.bound is not None
        assert hard.domain_bound() <= answer.bound <= optimal
        assert answer.status in {"UNKNOWN", "FEASIBLE", "OPTIMAL"}
        assert (answer.stopped == "complete") == (answer.status == "OPTIMAL")
        assert all(event.bound is not None and event.bound <= optimal for event in answer.trace)


@EACH
def test_no_time_at_all_is_no_proof_of_a_negative_optimum(name: str) -> None:
    """A bound that was never set must not be read as 0: here it is -9 x 10."""
    model = Model((X, Y), (Linear("even", ((2, X), (-2, Y)), 4, 4),), ((-10, X), (3, Y)))
    answer = backend(name)(model, Spend(seconds=0.0))
    assert answer.bound is not None
    assert answer.bound <= -10 * 9 + 3 * 7


@EACH
def test_a_watch_stops_a_solver_and_sees_what_is_known(name: str) -> None:
    seen: list[Event] = []

    def watch(event: Event) -> bool:
        seen.append(event)
        return len(seen) > 2

    answer = backend(name)(market_split(items=50, rows=5, largest=10**5, room=10), Spend(watch=watch))
    assert (answer.status, answer.stopped) == ("UNKNOWN", "interrupted")
    assert [event.seconds for event in seen] == sorted(event.seconds for event in seen)


@pytest.mark.process
@EACH
def test_control_c_gives_the_answer_so_far_and_the_next_one_is_pythons_again(name: str) -> None:
    """In a process of its own: CP-SAT's own handler would leave one that the next Ctrl-C kills without a word."""
    program = (
        "import os, signal, threading, time\n"
        "from crossopt.solvers.backends import backend\n"
        "from crossopt.solvers.backends.answer import Spend\n"
        "from tests.solvers.backends.test_backends import SMALL, market_split\n"
        "press = lambda: os.kill(os.getpid(), signal.SIGINT)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in the background of a shell\n"
        f"solve = backend({name!r})\n"
        "solve(SMALL, Spend())\n"
        "threading.Timer(0.3, press).start()\n"
        "answer = solve(market_split(items=50, rows=5, largest=10**5, room=10), Spend())\n"
        "print(answer.status, answer.stopped)\n"
        "try:\n"
        "    press(); time.sleep(5)\n"
        "except KeyboardInterrupt:\n"
        "    print('seen')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (0, "UNKNOWN interrupted\nseen\n", "")


@EACH
def test_a_gap_is_no_proof(name: str) -> None:
    """A solver that may stop at a wide gap calls what it has optimal; it is that only where value and bound are one."""
    optimal = backend("cpsat")(knapsack(0), Spend()).value
    answer = backend(name)(knapsack(0), Spend(gap=0.5))
    assert optimal is not None
    assert answer.value is not None
    assert answer.bound is not None
    assert answer.value <= optimal <= answer.bound <= 1.5 * answer.value
    assert (answer.status, answer.stopped) == (("OPTIMAL", "complete") if answer.value == answer.bound else ("FEASIBLE", "gap"))


@pytest.mark.parametrize("name", ["cbc", *PROVING])
def test_a_hint_that_is_a_solution_is_the_least_that_is_answered(name: str) -> None:
    answer = backend(name)(SMALL, Spend(seconds=0.0, hint={A: 1, X: 5, Y: 1}))
    assert answer.value is not None
    assert answer.value <= 21
    assert violations(SMALL, answer.values or {}) == ()


@EACH
@pytest.mark.parametrize("hint", [{X: 4}, {A: 0, X: 9, Y: 0}, ALL_BEST])
def test_a_hint_in_part_or_in_vain_changes_no_optimum(name: str, hint: dict[Variable, int]) -> None:
    assert backend(name)(SMALL, Spend(hint=hint)).value == 2


@pytest.mark.parametrize("name", ["cbc", *PROVING])
def test_a_hint_for_a_stranger_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="the hint names z, which is not a variable of the model"):
        backend(name)(SMALL, Spend(hint={Variable("z"): 1}))


@EACH
def test_the_number_of_threads_may_change_from_solve_to_solve(name: str) -> None:
    """HiGHS keeps one pool of threads a process and refuses another size, unless each solve has a thread of its own."""
    assert [backend(name)(SMALL, Spend(workers=workers)).value for workers in (1, 2, 1)] == [2, 2, 2]


@EACH
def test_one_worker_and_a_seed_give_the_same_answer_again(name: str) -> None:
    model = market_split(items=20, rows=1, largest=1000, room=40)
    one, other = (backend(name)(model, Spend(seed=7)) for _ in range(2))
    assert (one.values, one.value, one.bound) == (other.values, other.value, other.bound)


LIES = {
    "a row is broken": (
        Reply(False, {A: 1, X: 4, Y: 2}, 9, None, "complete"),
        "liar returned an invalid result: cost: x = 4, y = 2 is none of 4 rows",
    ),
    "a range is left": (
        Reply(False, {A: 1, X: 4, Y: 12}, 9, None, "complete"),
        "liar returned an invalid result: y = 12 is not from 0 to 7",
    ),
    "a value is missing": (Reply(False, {A: 1, X: 4}, 9, None, "complete"), "liar returned an invalid result: y has no value"),
    "a value is no number": (Reply(False, {A: 1, X: nan, Y: 3}, 2, None, "complete"), "liar returned an invalid result: x = nan"),
    "the value is wrong": (
        Reply(False, {**ALL_BEST}, 1, None, "complete"),
        "liar returned an invalid result: it claims the objective value 1, its solution has 2",
    ),
    "the value is infinite": (
        Reply(False, {**ALL_BEST}, -inf, None, "complete"),
        "liar returned an invalid result: it claims the objective value -inf",
    ),
    "the bound is beyond": (
        Reply(False, {**ALL_BEST}, 2, 3, "complete"),
        "liar returned an invalid result: its bound on the objective is 3, its solution has the value",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_refused(lie: str) -> None:
    reply, sentence = LIES[lie]
    with pytest.raises(SolverError, match=sentence):
        judged(SMALL, reply, Course(SMALL), "liar")


def test_a_model_with_a_known_solution_is_not_called_infeasible() -> None:
    reply = Reply(True, None, None, None, "complete")
    assert judged(SMALL, reply, Course(SMALL), "liar").status == "INFEASIBLE"
    with pytest.raises(SolverError, match="it reports INFEASIBLE for a model with a solution of value 2"):
        judged(SMALL, reply, Course(SMALL), "liar", ALL_BEST)


def test_a_claim_without_bound_proves_nothing() -> None:
    answer = judged(SMALL, Reply(False, {**ALL_BEST}, 2, None, "gap"), Course(SMALL), "modest")
    assert (answer.status, answer.bound) == ("FEASIBLE", SMALL.domain_bound())


def test_figures_near_integers_are_the_integers() -> None:
    assert checked(SMALL, {A: 0.9999999, X: 4.0000001, Y: 3.0}, 2.0000004, "highs") == ALL_BEST


def first_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    """HiGHS' figures are changed on their way."""
    from crossopt.solvers.backends import milp

    honest = milp._reply_of_highs

    def lying(*heard: object) -> RawReply:
        infeasible, figures, *rest = honest(*heard)
        first, _, last = figures or ()
        return (infeasible, [first, 9.0, last], *rest)

    monkeypatch.setattr(milp, "_reply_of_highs", lying)


@pytest.mark.usefixtures("solvers_inside")
def test_where_a_solver_breaks_its_word_another_one_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    first_lies(monkeypatch)
    found = backend("highs")(SMALL, Spend())
    assert (found.status, found.values, found.bound, found.solver.split()[0]) == ("OPTIMAL", ALL_BEST, 2, "cpsat")
    sentence = (
        r"highs \S+ returned an invalid result: sum: 27 where at most 20 is asked, off by 7 \(and 1 more\); cpsat \S+ was used instead"
    )
    assert re.fullmatch(sentence, found.note)


@pytest.mark.usefixtures("solvers_inside")
@pytest.mark.parametrize("start", [None, ALL_BEST])
def test_where_all_solvers_break_their_word_the_start_and_the_ranges_are_left(
    start: dict[Variable, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_lies(monkeypatch)
    monkeypatch.setattr(sys.modules["crossopt.solvers.backends.cpsat"], "_reply", lambda *heard: (False, [1, 4, 2], None, None, "complete"))
    for name, other in (("highs", "cpsat"), ("cpsat", "highs")):
        found = backend(name)(SMALL, Spend(hint=start))
        assert (found.status, found.values, found.bound) == ("FEASIBLE" if start else "UNKNOWN", start, SMALL.domain_bound())
        assert found.stopped == "interrupted"
        assert re.fullmatch(rf"{name} \S+ returned an invalid result: .*; {other} \S+ returned an invalid result: .*", found.note)


@pytest.mark.parametrize(("name", "package"), [("gurobi", "gurobipy"), ("scip", "pyscipopt")])
def test_a_solver_that_is_not_here_says_how_to_get_it(name: str, package: str) -> None:
    try:
        __import__(package)
    except ImportError:
        with pytest.raises(
            SolverError, match=f"{name} is not installed: pip install {package}, or use cpsat or highs, which are always available"
        ):
            backend(name)(SMALL, Spend())
    else:
        assert backend(name)(SMALL, Spend()).value == 2


def test_a_solver_that_there_is_not_is_answered_with_those_there_are() -> None:
    assert tuple(BACKENDS) == tuple(sorted(BACKENDS))
    with pytest.raises(SolverError, match="no solver is called 'cplex'; there are cbc, cpsat, gurobi, highs, scip"):
        backend("cplex")


def test_sums_too_large_for_floating_point_are_refused_by_milp_and_solved_by_cpsat() -> None:
    """Around 2^59 doubles are 64 apart, and here a single unit decides."""
    far = Variable("far", 0, 2**20)
    model = Model((A, far), (Linear("huge", ((2**40, far), (1, A)), 2**59 + 1),), ((1, far), (1, A)))
    assert backend("cpsat")(model, Spend()).value == 2**19 + 1
    with pytest.raises(ValueError, match="huge: its terms may add up to more than 2\\*\\*53, too much for floating point"):
        backend("highs")(model, Spend())


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"seconds": -1.0}, "time limit"),
        ({"seconds": nan}, "time limit"),
        ({"gap": -0.1}, "gap"),
        ({"workers": 0}, "workers"),
        ({"seed": -1}, "seed"),
    ],
)
def test_limits_that_make_no_sense_are_refused(wrong: dict[str, float], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Spend(**wrong)  # type: ignore[arg-type]


@pytest.mark.process
@pytest.mark.parametrize("order", [PROVING, PROVING[::-1]], ids=" then ".join)
def test_both_solvers_live_in_one_process_whichever_comes_first(order: tuple[str, str]) -> None:
    """Both packages bring a HiGHS library; that of highspy 1.15 and that of ortools 9.15 do not share a process."""
    program = (
        "from crossopt.formulation.model import Linear, Model, Variable\n"
        "from crossopt.solvers.backends import backend\n"
        "from crossopt.solvers.backends.answer import Spend\n"
        "x, y = Variable('x', 0, 9), Variable('y', 0, 9)\n"
        "model = Model((x, y), (Linear('room', ((3, x), (5, y)), high=31),), ((4, x), (7, y)), minimise=False)\n"
        f"print([backend(name)(model, Spend()).value for name in {order} * 2])\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], check=False, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[43, 43, 43, 43]\n", "")


@pytest.mark.process
def test_naming_the_backends_imports_no_solver() -> None:
    program = (
        "import sys, crossopt.solvers.backends, crossopt.solvers.codesign.linear.relaxation\n"
        "print(sorted({'ortools', 'pulp', 'highspy'} & set(sys.modules)))\n"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=600).stdout == "[]\n"


# Files for other programs: what is read back has the same optimum, and every short name has its full one.

PLAIN = {"model.lp": write_lp, "model.mps": write_mps}


def read_with_highs(path: Path) -> float | None:
    """The optimum of a file, in a process of nothing but HiGHS' own reader; None where it has no solution."""
    import highspy

    solver = highspy.Highs()
    solver.silent()
    assert solver.readModel(str(path)) == highspy.HighsStatus.kOk
    solver.setOptionValue("mip_rel_gap", 0.0)
    solver.run()
    if solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        return None
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(solver.getInfo().objective_function_value)


@pytest.mark.parametrize("name", PLAIN)
@settings(max_examples=25)
@given(model=models(), constant=st.integers(-9, 9))
def test_a_file_read_back_has_the_same_optimum(name: str, model: Model, constant: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The constant as well, which PuLP's writers drop."""
    path = tmp_path_factory.mktemp("files") / name
    PLAIN[name](replace(model, constant=constant), path)
    assert read_with_highs(path) == optimum(replace(model, constant=constant))


@pytest.mark.parametrize("name", ["model.textproto", "model.pb"])
def test_cpsats_file_read_back_has_the_same_optimum(name: str, tmp_path: Path) -> None:
    from google.protobuf import text_format
    from ortools.sat.python import cp_model

    path = tmp_path / name
    write_cpsat(SMALL, path)
    model = cp_model.CpModel()
    if name.endswith("textproto"):
        text_format.Parse(path.read_text(), model.proto)
    else:
        model.proto.ParseFromString(path.read_bytes())
    assert [variable.name for variable in model.proto.variables] == ["x0", "x1", "x2"]
    solver = cp_model.CpSolver()
    assert solver.solve(model) == cp_model.OPTIMAL
    assert solver.objective_value == backend("cpsat")(SMALL, Spend()).value == 2


@pytest.mark.parametrize("name", PLAIN)
def test_every_name_of_the_file_has_its_full_name(name: str, tmp_path: Path) -> None:
    """Names that no file format bears, and some that PuLP would make one of."""
    odd = (Variable("tensor = 4"), Variable("tensor - 4"), Variable("pipeline [2] ≤ 3"))
    model = Model(odd, (Linear("memory of stage 0, at most 80 GiB", tuple((1, v) for v in odd), 1, 2),), ((1, odd[2]),), 7)
    names = PLAIN[name](model, tmp_path / name)
    assert names == tmp_path / f"{name}.names.json"
    assert json.loads(names.read_text(encoding="utf-8")) == {
        "variables": {f"x{place}": variable.name for place, variable in enumerate(odd)},
        "rows": {"r0": "memory of stage 0, at most 80 GiB"},
    }
    words = set((tmp_path / name).read_text().replace(":", " ").split())
    assert {"x0", "x1", "x2", "one", "r0_low", "r0_high"} <= words


def test_names_cover_the_rows_and_variables_that_the_linear_form_adds(tmp_path: Path) -> None:
    names = json.loads(write_lp(SMALL, tmp_path / "small.lp").read_text())
    linear = linearize(SMALL)
    assert list(names["variables"].values()) == [variable.name for variable in linear.variables]
    assert list(names["rows"].values()) == [row.name for row in linear.constraints]


@pytest.mark.parametrize("name", PLAIN)
def test_numbers_that_a_file_would_shorten_are_refused(name: str, tmp_path: Path) -> None:
    x = Variable("x")
    with pytest.raises(ValueError, match="the number 1234567890123 has more digits than the file keeps"):
        PLAIN[name](Model((x,), (), ((1234567890123, x),)), tmp_path / name)
    assert list(tmp_path.iterdir()) == []
