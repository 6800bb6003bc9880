"""The checker that needs nothing but Python: what it proves of strategies, and that no edit makes it prove too much."""

import ast
import copy
import gzip
import json
import os
import random
import re
import subprocess
import sys
from fractions import Fraction
from functools import cache, partial
from itertools import chain, product
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pytest

from crossopt.formulation.sharding.core import Core, unreduced
from crossopt.formulation.sharding.dual import Dual, bound_of, no_dual
from crossopt.formulation.sharding.tree import Recorder
from crossopt.instances.sharding.question import ShardingQuestion
from crossopt.reports.cli import main
from crossopt.solvers import standalone
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.sharding.certificate import certificate_of, document_of
from crossopt.solvers.sharding.messages import ascent_of, climb, proof_of
from crossopt.solvers.sharding.run import Run
from tests.every import every
from tests.instances.sharding.files import answered, solved, written
from tests.instances.sharding.tiny import choices_of, least, tiny
from tests.paths import ROOT, reference

pytestmark = pytest.mark.process

CHECKER = ROOT / "solvers" / "standalone.py"
LONGEST = 400
SEEDS = range(40)
EDITS = 60


def asked(*words: Path | str) -> tuple[int, str]:
    """What the file says, run by a Python that knows no other."""
    done = subprocess.run([sys.executable, "-I", str(CHECKER), *map(str, words)], capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.returncode, done.stdout


@cache
def certificate(seed: int) -> dict[str, Any]:
    question = ShardingQuestion(tiny(seed), "", "")
    return certificate_of(question, answered(question, "auto", Limits(60.0), unwatched))


def kinds_in(steps: list[Any]) -> set[str]:
    parts = (part for step in steps if step[0] == "branch" for part in step[3:])
    return {step[0] for step in steps} | set(chain.from_iterable(map(kinds_in, parts)))


def said(document: object, *problems: object) -> str:
    """What the checker says in this process; an empty text where it proves nothing."""
    try:
        return standalone.check(json.loads(json.dumps(document)), *problems)
    except Exception:  # noqa: BLE001 - as the program itself does
        return ""


def holds(sentence: str, best: int | None) -> bool:
    """Whether a sentence is true of a problem whose best choice costs this."""
    if not sentence or sentence.startswith("no choice is allowed"):
        return not sentence or best is None
    figures = re.fullmatch(r"no choice costs less than (-?\d+); the answer costs (\d+) .*", sentence)
    return figures is not None and best is not None and int(figures[1]) <= best <= int(figures[2])


def test_the_file_is_short_and_needs_the_standard_library_alone() -> None:
    text = CHECKER.read_text(encoding="utf-8")
    named = set[str]()
    for node in ast.walk(ast.parse(text)):
        named |= {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
        named |= {str(node.module)} if isinstance(node, ast.ImportFrom) else set()
    assert len(text.splitlines()) <= LONGEST
    assert named
    assert all(name.partition(".")[0] in sys.stdlib_module_names for name in named)


def test_every_tiny_problem_is_proved_to_the_unit() -> None:
    kinds = set[str]()
    for seed in SEEDS:
        best, document = least(tiny(seed)), certificate(seed)
        kinds |= kinds_in(document["steps"])
        assert document["bound"] == best
        assert holds(said(document), best)
        assert said(document)
    assert kinds >= {"needless", "apart", "into", "out", "moments", "dual", "branch"}


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_the_file_runs_alone_and_ends_with_its_verdict(seed: int, tmp_path: Path) -> None:
    path, document = tmp_path / "certificate.json", certificate(seed)
    path.write_text(json.dumps(document), encoding="utf-8")
    assert asked(path) == (0, f"proved: {said(document)}\n")
    path.write_text(json.dumps({**document, "bound": (document["bound"] or 0) + 1}), encoding="utf-8")
    code, words = asked(path)
    assert (code, words[:9], words.count("\n")) == (1, "refused: ", 1)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", "1e5", '{"kind": "sharding"}', "[" * 100_000, '{"bound": NaN}', "\ufeff{}"])
def test_what_is_no_certificate_is_refused_in_one_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / "certificate.json").write_text(text, encoding="utf-8")
    code, words = asked(tmp_path / "certificate.json")
    assert (code, words[:9], words.count("\n")) == (1, "refused: ", 1)


def test_a_file_that_is_not_there_and_no_file_at_all_are_refused(tmp_path: Path) -> None:
    assert asked(tmp_path / "nowhere.json")[0] == 1
    for words in ((), ("--price", "3")):
        code, said = asked(*words)
        assert (code, said.startswith("refused: no file is named (python standalone.py CERTIFICATE")) == (1, True)


def test_the_command_writes_what_the_file_proves(tmp_path: Path) -> None:
    """From a problem to a packed certificate, held to the author's own file."""
    problem = written(tmp_path, 0)
    _, answer = solved(tmp_path, problem)
    target = tmp_path / "certificate.json.gz"
    assert main(["export", str(answer), "--as", "certificate", "--out", str(target)]) == 0
    code, words = asked(target, problem)
    assert code == 0
    assert holds(words.removeprefix("proved: ").strip(), least(tiny(0)))
    (tmp_path / "other.json").write_text(json.dumps(document_of(tiny(1))), encoding="utf-8")
    assert asked(target, tmp_path / "other.json") == (1, "refused: the certificate is about another problem\n")


def test_the_command_prints_where_no_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, answer = solved(tmp_path, written(tmp_path, 2))
    capsys.readouterr()
    assert main(["export", str(answer), "--as", "certificate"]) == 0
    assert said(json.loads(capsys.readouterr().out))


def test_a_result_whose_proof_was_edited_is_not_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seed = next(seed for seed in SEEDS if least(tiny(seed)) is not None)
    _, answer = solved(tmp_path, written(tmp_path, seed))
    saved = json.loads(answer.read_text(encoding="utf-8"))
    saved["bound"] += 1
    answer.write_text(json.dumps(saved), encoding="utf-8")
    assert main(["export", str(answer), "--as", "certificate"]) not in (0, 1)
    assert "(see `crossopt check`)" in capsys.readouterr().err


@every("seed", SEEDS[:24])
def test_no_edit_of_a_certificate_proves_too_much(seed: int) -> None:
    """Steps dropped, doubled, swapped; numbers changed, negated, made huge; whatever is still proved is true of the problem."""
    dice, best, original = random.Random(seed), least(tiny(seed)), certificate(seed)
    problem = json.loads(json.dumps(document_of(tiny(seed))))
    for _ in range(EDITS):
        document = copy.deepcopy(original)
        for _ in range(dice.randrange(1, 4)):
            _edit(document, dice)
        assert holds(said(document, problem), best), document


def test_duals_that_leave_more_than_the_bound_needs_are_carried_out() -> None:
    """As where a search went on with what was better than a choice then known; edited, they prove nothing that is false."""
    chains = 0
    for seed in SEEDS:
        problem, dice = tiny(seed), random.Random(seed)
        core = unreduced(problem)
        run, recorder = Run(core, Limits(), unwatched, monotonic()), Recorder(core)
        choices = sorted(choices_of(core), key=lambda pair: pair[1])
        run.offer(choices[-1][0] if choices else np.zeros(len(core), np.int64))
        run.bound_proved(no_dual(core))
        if run.cost is None or (rest := run.narrowed()) is None:
            continue
        run.bound_proved(_climbed(rest.core), rest)
        steps, bound = iter(run.duals), run.dual_bound or 0
        recorder.close(core, bound, lambda _, steps=steps: next(steps, None))
        answer = choices[0][0].tolist()
        claim = {"problem": document_of(problem), "answer": answer, "bound": bound, "steps": recorder.steps}
        document = {"kind": "sharding", "format": 1, **json.loads(json.dumps(claim))}
        assert said(document)
        assert holds(said(document), choices[0][1])
        chains += any(len(step) > 4 for step in document["steps"] if step[0] == "dual")
        for _ in range(5):
            edited = copy.deepcopy(document)
            _edit(edited, dice)
            assert holds(said(edited, document["problem"]), choices[0][1]), edited
    assert chains > 3


def _climbed(core: Core) -> Dual:
    """What a round of messages proves."""
    ascent = ascent_of(core)
    climb(ascent, lambda _: True, 1)
    return proof_of(ascent, partial(bound_of, core))[0]


def _edit(document: dict[str, Any], dice: random.Random) -> None:
    """One change somewhere in it, mostly outside of the problem."""
    holder: Any = document
    key: Any = dice.choice(["answer", "bound", "steps", "steps", "steps", "problem", "kind", "format"])
    while isinstance(holder[key], list | dict) and holder[key] and dice.random() < 0.8:
        holder = holder[key]
        key = dice.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    if isinstance(holder, list) and dice.random() < 0.5:
        other = dice.randrange(len(holder))
        match dice.randrange(3):
            case 0:
                del holder[key]
            case 1:
                holder.insert(other, copy.deepcopy(holder[key]))
            case _:
                holder[key], holder[other] = holder[other], holder[key]
        return
    old = holder[key]
    if type(old) is int:
        holder[key] = dice.choice([old + 1, old - 1, -old, 0, 10**18, -(10**18), 10**400, old + dice.randrange(-5, 6), True, 1.5, None])
    elif isinstance(old, str):
        holder[key] = dice.choice([*standalone.STEPS, "", "every"])
    else:
        holder[key] = dice.choice([None, [], {}, 0, [0], "dual"])


@every("seed", SEEDS[:24])
def test_no_order_of_steps_closes_below_the_best_choice(seed: int) -> None:
    """Steps at random, whatever they are about; those that are accepted leave the best choice, so that a bound above it is never proved."""
    best, problem, dice = least(tiny(seed)), document_of(tiny(seed)), random.Random(seed)
    for bound in (None, best + 1, best + 1) if best is not None else ():
        core = standalone.Core(copy.deepcopy(problem), bound)
        for _ in range(60):
            name = dice.choice(list(standalone.STEPS))
            before = copy.deepcopy(core.__dict__)
            try:
                standalone.STEPS[name](core, *_drawn(core, name, dice))
            except (ValueError, KeyError):
                core.__dict__.update(before)


def _drawn(core: standalone.Core, name: str, dice: random.Random) -> list[Any]:
    """What may stand beside the name of a step."""
    nodes = list(core.live) or [0]
    v = dice.choice(nodes)
    u = dice.choice(list(core.near.get(v, {})) or nodes)
    s, r = (dice.choice(core.live.get(v, [0])) for _ in "sr")
    if name == "dual":
        edges = [(a, b) for a, near in core.near.items() for b in near if a < b and dice.random() < 0.7]
        messages = [[a, b, *([dice.randrange(-8, 9) for _ in core.live[node]] for node in (a, b))] for a, b in edges]
        return [dice.choice([1, 2, 7]), [[time, dice.randrange(6)] for time in core.times if dice.random() < 0.4], messages]
    first = [strategy for strategy in core.live.get(v, []) if dice.random() < 0.5]
    branch = [v, first, [["dual", 1, [], []]], [["dual", 1, [], []]]]
    return {"needless": [v, s, r], "apart": [v, u], "into": [v, u], "out": [v], "branch": branch}.get(name, [])


GOOD = [["dual", 1, [[1, 10**18]], []], ["dual", 1, [], []]]
"""The price takes the cheap strategy of node 0 away, and no price bounds what is left."""
EXACT = 3 * 10**17 + 1


def plain(**changed: object) -> dict[str, Any]:
    """Two nodes of which node 0 would rather take what memory does not allow beside node 1."""
    nodes = {"intervals": [[0, 2], [1, 3]], "costs": [[10**17, 3 * 10**17], [0, 9]], "usages": [[5, 1], [2, 2]]}
    problem = {"nodes": nodes, "edges": {"nodes": [[0, 1]], "costs": [[0, 4, 1, 10**18]]}, "usage_limit": 6}
    return {"kind": "sharding", "format": 1, "problem": problem, "answer": [1, 0], "bound": EXACT, "steps": GOOD, **changed}


def test_large_numbers_stay_exact() -> None:
    assert said(plain()) == f"no choice costs less than {EXACT}; the answer costs {EXACT} (memory at its peak 3)"
    assert not said(plain(bound=EXACT + 1))
    assert not said(plain(bound=float(EXACT)))


@every(
    "steps",
    [
        [["needless", 0, 1]],
        [["needless", -1, 0]],
        [["needless", 0, 1, 1]],
        [["needless", 0, 1, -2]],
        [["needless", 0, 1, 0]],
        [["needless", 1, 0, 0]],
        [["apart", 0, 1]],
        [["into", 1, 0]],
        [["out", 0]],
        [["beyond"]],
        [["dual", 1, [[1, -1]], []]],
        [["dual", 1, [[0, 10**18]], []], ["dual", 1, [[9, 10**18]], []]],
        [["dual", 0, [], []]],
        [["dual", 1, [], [[0, 1, [10**18], [0, 0]]]]],
        [["branch", 0, [0], [["dual", 1, [[1, 10**18]], []]]]],
        [["branch", 0, [0, 7], [], []]],
        [["branch", 0, [0], GOOD, []]],
        [["every"]],
    ],
)
def test_a_step_for_which_there_is_no_reason_is_refused(steps: list[Any]) -> None:
    assert not said(plain(steps=[*steps, *GOOD]))
    *before, (name, *given) = steps
    core = standalone.Core(plain()["problem"], EXACT)
    for other, *words in before:
        standalone.STEPS[other](core, *words)
    with pytest.raises((ValueError, KeyError, IndexError)):
        standalone.STEPS.get(name, refuse)(core, *given)


def refuse(*_: object) -> None:
    """A step that there is not."""
    raise ValueError


def test_an_edge_whose_costs_do_not_come_apart_stays() -> None:
    """One unit beside a sum of two parts."""
    for figures, apart in (([0, 4, 1, 5], True), ([0, 4, 1, 6], False), ([7, 4, 1, -2], True), ([7, 4, 1, -1], False)):
        problem: Any = {**plain()["problem"], "edges": {"nodes": [[0, 1]], "costs": [figures]}}
        core = standalone.Core(problem, EXACT)
        if apart:
            standalone.STEPS["apart"](core, 0, 1)
            paid = [[one + two - 10**17 * (1 + 2 * s) - 9 * r for r, two in enumerate(core.cost[1])] for s, one in enumerate(core.cost[0])]
            assert paid == [figures[:2], figures[2:]]
            assert not core.near[0]
        else:
            with pytest.raises(ValueError, match="do not come apart"):
                standalone.STEPS["apart"](core, 0, 1)


@pytest.mark.parametrize("answer", [[0, 0], [1, 1], [1], [1, 0, 0], [-1, 0], [2, 0], [True, 0], None, [1.0, 0]])
def test_an_answer_that_is_none_is_refused(answer: object) -> None:
    assert said(plain())
    assert not said(plain(answer=answer))


@pytest.mark.parametrize("node", ["\r\x1b[2Kproved: nothing\x1b[8m", "\nproved: nothing", "\ud800"])
def test_no_text_of_a_certificate_makes_a_line_of_its_own(node: str, tmp_path: Path) -> None:
    forged = {**plain(), "steps": [["needless", node, 0]]}
    (tmp_path / "forged.json").write_text(json.dumps(forged), encoding="utf-8")
    code, words = asked(tmp_path / "forged.json")
    assert (code, words[:8], words.count("\n"), words[:-1].isprintable()) == (1, "refused:", 1, True)


def test_a_file_that_grows_beyond_all_bounds_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standalone, "MOST", 10**6)
    (tmp_path / "bomb.json.gz").write_bytes(gzip.compress(bytes(10**7)))
    with pytest.raises(ValueError, match="is larger than 1000000 bytes"):
        standalone.read(str(tmp_path / "bomb.json.gz"))


@every("seed", range(40))
def test_trees_that_are_accepted_part_their_box_exactly(seed: int) -> None:
    dice, sizes = random.Random(seed), (3, 2, 4)
    for _ in range(EDITS):
        tree = _cut([(0, size - 1) for size in sizes], dice)
        for _ in range(dice.randrange(3)):
            _edit({"tree": tree, **dict.fromkeys(("answer", "bound", "steps", "problem", "kind", "format"), tree)}, dice)
        try:
            found = standalone.boxes(tree, [(0, size - 1) for size in sizes], Fraction(5))
        except (ValueError, TypeError, IndexError, KeyError):
            continue
        for place in product(*map(range, sizes)):
            assert sum(all(a <= one <= b for one, (a, b) in zip(place, box, strict=True)) for box, _ in found) == 1
        assert all(least is None or least >= 5 for _, least in found)


def _cut(box: list[tuple[int, int]], dice: random.Random) -> Any:  # noqa: ANN401 - a tree
    choice = dice.randrange(len(box))
    first, last = box[choice]
    if first == last or dice.random() < 0.2:
        return dice.choice([5, 6, None])
    middle = dice.randrange(first, last)
    parts = [(place, [*box[:choice], span, *box[choice + 1 :]]) for place, span in ((middle, (first, middle)), (last, (middle + 1, last)))]
    return [choice, *([place, _cut(part, dice)] for place, part in parts)]


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("letter", ["B", "G"])
def test_public_problems_are_proved_by_the_file_alone(letter: str, tmp_path: Path) -> None:
    problem, target = reference(f"sharding/asplos-2025-iopddl-{letter}.json.gz"), tmp_path / "certificate.json.gz"
    _, answer = solved(tmp_path, problem)
    assert main(["export", str(answer), "--as", "certificate", "--out", str(target)]) == 0
    assert gzip.decompress(target.read_bytes())
    code, words = asked(target, problem)
    assert (code, words.count({"B": "532843", "G": "217039"}[letter])) == (0, 2)


def test_costs_that_are_forbidden_are_alike_and_pipes_are_no_files(tmp_path: Path) -> None:
    """10^18 and more forbid, so that a certificate with 10^18 is about the very problem in which its author wrote more."""
    problem = {
        "nodes": {"intervals": [[0, 1], [0, 1]], "costs": [[3, 10**18], [1, 2]], "usages": [[1, 1], [1, 1]]},
        "edges": {"nodes": [[0, 1]], "costs": [[0, 10**18, 5, 5]]},
    }
    theirs = json.loads(json.dumps(problem).replace(str(10**18), str(10**20)))
    certificate = {"kind": "sharding", "format": 1, "answer": [0, 0], "bound": 3, "problem": problem, "steps": [["dual", 1, [], []]]}
    assert standalone.check(certificate, theirs).startswith("no choice costs less than 3")
    other = json.loads(json.dumps(theirs).replace("[1, 2]", "[1, 3]"))
    with pytest.raises(ValueError, match="another problem"):
        standalone.check(certificate, other)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe is no file"):
        standalone.read(str(tmp_path / "pipe"))
