"""The checker of VIPR certificates: valid ones are accepted, broken ones refused in a sentence, and no edit proves too much."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from crossopt.reports.cli import main
from crossopt.solvers import vipr
from crossopt.solvers.vipr import MalformedError, RefutedError, check, sentence
from tests import certificates
from tests.certificates import edited, is_true
from tests.paths import ROOT

ROUNDED = """\
% two integers
VER 1.0
VAR 2
x y
INT 2
0 1
OBJ min
2 0 2 1 3
CON 2 1
bound G 0 1 1 1
cover G 5 2 0 2 1 2
RTP range 6 6
SOL 1
best 1 0 3
DER 2
whole G 3 2 0 1 1 1 { rnd 1 1 1/2 } 3
cost G 6 OBJ { lin 2 2 2 0 1 } -1
"""
BRANCHED = """\
VER 1.0
VAR 2
x y
INT 2
0 1
OBJ min
0
CON 1 0
odd E 1 2 0 2 1 -2
RTP infeas
SOL 0
DER 5
below L 0 2 0 1 1 -1 { asm } 5
above G 1 2 0 1 1 -1 { asm } 5
first G 1 0 { lin 2 0 1 1 -2 } 5
second G 1 0 { lin 2 0 -1 2 2 } 5
none G 1 0 { uns 3 1 4 2 } -1
"""
MOST = """\
VER 1.0
VAR 2
x part
INT 1
0
OBJ max
1 0 1
CON 1 0
limit L 5 1 0 2
RTP range 2 2
SOL 2
poor 1 0 1
best 2 0 2 1 .5
DER 1
whole L 2 OBJ { rnd 1 0 0.5 } 0
"""
FRACTIONS = """\
VER 1.0
VAR 1
x
INT 0
OBJ min
1 0 0.5
CON 1 1
bound G 1/3 1 0 1
RTP range 1/6 inf
SOL 0
DER 1
cost G 1/6 1 0 1/2 { lin 1 0 1/2 } -1
"""
CUTOFF = """\
VER 1.0
VAR 1
x
INT 1
0
OBJ min
1 0 1
CON 1 0
cover G 3 1 0 2
RTP range 2 2
SOL 1
best 1 0 2
DER 2
better L 1 OBJ { sol } 2
none G 1 0 { lin 2 0 1 1 -2 } -1
"""
VALID = {
    ROUNDED: "no solution of the integer model is below 6, and a solution has at most 6",
    BRANCHED: "the integer model has no solution",
    MOST: "no solution of the integer model is above 2, and a solution has at least 2",
    FRACTIONS: "no solution of the integer model is below 1/6",
    CUTOFF: "no solution of the integer model is below 2, and a solution has at most 2",
}


@pytest.mark.parametrize("text", VALID)
def test_a_valid_certificate_is_accepted_with_what_it_proves(text: str) -> None:
    assert sentence(check(text)) == VALID[text]
    assert sentence(check(" ".join(text.partition("VER")[2].split()).join(("VER ", "")))) == VALID[text]  # lines mean nothing


def test_what_a_file_holds_is_counted() -> None:
    found = check(ROUNDED)
    assert (found.variables, found.constraints, found.derived, found.solutions) == (2, 2, 2, 1)
    assert found.comments == ("two integers",)


REFUTED = [
    (ROUNDED, "whole G 3", "whole G 4", "constraint 2 does not follow from its sum"),
    (ROUNDED, "whole G 3", "whole L 3", "constraint 2 does not follow from its sum"),
    (ROUNDED, "whole G 3", "whole E 3", "constraint 2 does not follow from its sum"),
    (ROUNDED, "rnd 1 1 1/2", "lin 1 1 1/2", "constraint 2 does not follow from its sum"),
    (ROUNDED, "rnd 1 1 1/2", "rnd 1 1 1/4", "constraint 2 takes variable 0 as whole, of which it has 1/2"),
    (ROUNDED, "INT 2\n0 1", "INT 1\n0", "constraint 2 takes variable 1 as whole, of which it has 1"),
    (ROUNDED, "lin 2 2 2 0 1", "lin 1 2 2", "constraint 3 does not follow from its sum"),
    (ROUNDED, "lin 2 2 2 0 1", "lin 2 2 2 0 -1", "constraint 3 adds up inequalities that point both ways"),
    (ROUNDED, "{ rnd 1 1 1/2 } 3", "{ rnd 1 1 1/2 } 2", "constraint 3 uses 2 after its last use"),
    (ROUNDED, "{ lin 2 2 2 0 1 }", "{ asm }", "the last constraint rests on the assumption 3"),
    (ROUNDED, "RTP range 6 6", "RTP range 7 7", "the last constraint does not say that no solution is better than 7"),
    (ROUNDED, "RTP range 6 6", "RTP range 6 5", "the optimum is claimed to be from 6 to 5, which no number is"),
    (ROUNDED, "RTP range 6 6", "RTP range 5 5", "the optimum is claimed to be 5 or better, and the best solution has 6"),
    (ROUNDED, "RTP range 6 6", "RTP infeas", "the last constraint does not say that there is no solution"),
    (ROUNDED, "SOL 1\nbest 1 0 3", "SOL 0", "the optimum is claimed to be 6 or better, and no solution is given"),
    (ROUNDED, "best 1 0 3", "best 1 0 2", "solution 'best' breaks constraint 1"),
    (ROUNDED, "best 1 0 3", "best 1 0 5/2", "solution 'best': variable 0 is no integer"),
    (ROUNDED, "best 1 0 3", "best 2 0 4 1 -1", "solution 'best' breaks constraint 0"),
    (ROUNDED, "DER 2\nwhole G 3 2 0 1 1 1 { rnd 1 1 1/2 } 3\ncost G 6 OBJ { lin 2 2 2 0 1 } -1", "DER 0", "nothing is derived"),
    (BRANCHED, "below L 0", "below L -1", "constraint 5: 1 and 2 are not a x <= b and a x >= b + 1"),
    (BRANCHED, "below L 0", "below E 0", "constraint 5: 1 and 2 are not a x <= b and a x >= b + 1"),
    (BRANCHED, "INT 2\n0 1", "INT 1\n0", "constraint 5 takes variable 1 as whole, of which it has -1"),
    (BRANCHED, "uns 3 1 4 2", "uns 3 2 4 1", "the last constraint rests on the assumption 1"),
    (BRANCHED, "uns 3 1 4 2", "uns 3 1 3 2", "the last constraint rests on the assumption 1"),
    (BRANCHED, "uns 3 1 4 2", "uns 0 1 4 2", "constraint 5 does not follow from 0"),
    (BRANCHED, "odd E 1", "odd E 0", "constraint 3 does not follow from its sum"),
    (BRANCHED, "none G 1 0", "none G 1 1 0 1", "the last constraint does not say that there is no solution"),
    (MOST, "poor 1 0 1", "poor 1 0 3", "solution 'poor' breaks constraint 0"),
    (MOST, "RTP range 2 2", "RTP range 3 3", "the optimum is claimed to be 3 or better, and the best solution has 2"),
    (MOST, "RTP range 2 2", "RTP range 1 1", "the last constraint does not say that no solution is better than 1"),
    (MOST, "limit L 5", "limit E 5", "solution 'poor' breaks constraint 0"),
    (FRACTIONS, "RTP range 1/6 inf", "RTP range 1/5 inf", "the last constraint does not say that no solution is better than 1/5"),
    (FRACTIONS, "{ lin 1 0 1/2 }", "{ rnd 1 0 1/2 }", "constraint 1 takes variable 0 as whole, of which it has 1/2"),
    (FRACTIONS, "{ lin 1 0 1/2 }", "{ rnd 0 }", "constraint 1 rounds an equation"),
    (CUTOFF, "better L 1", "better L 0", "constraint 1 says more than that no solution is better than 2"),
    (CUTOFF, "INT 1\n0", "INT 0", "constraint 1 says more than that no solution is better than 2"),
    (CUTOFF, "RTP range 2 2", "RTP range 3 3", "the proof leaves out what is no better than the best solution"),
    (CUTOFF, "RTP range 2 2", "RTP infeas", "the last constraint does not say that there is no solution"),
    (CUTOFF, "RTP range 2 2\nSOL 1\nbest 1 0 2", "RTP range 2 inf\nSOL 0", "constraint 1 names the best solution, and none is given"),
]


@pytest.mark.parametrize(("text", "old", "new", "said"), REFUTED)
def test_what_does_not_prove_its_claim_is_refuted(text: str, old: str, new: str, said: str) -> None:
    assert text.count(old) == 1
    with pytest.raises(RefutedError) as refused:
        check(text.replace(old, new))
    assert str(refused.value).startswith(said)


MALFORMED = [
    ("VER 1.0", "VER 1.1", 2, "'1.1' stands where 1.0 is expected"),
    ("% two integers", "two integers", 1, "'two' stands where VER is expected"),
    ("VAR 2", "VAR x", 3, "number of variables: 'x' is no whole number from 0 to"),
    ("VAR 2", "VAR 3", 5, "'2' stands where INT is expected"),
    ("x y\nINT", "x\nINT", 5, "'2' stands where INT is expected"),
    ("INT 2\n0 1", "INT 2\n0 2", 6, "an integer variable: '2' is no whole number from 0 to 1"),
    ("OBJ min", "OBJ least", 7, "'least' stands where min or max is expected"),
    ("2 0 2 1 3", "2 0 2 0 3", 8, "the objective: 0 stands there twice"),
    ("2 0 2 1 3", "2 0 2 1 3/0", 8, "the objective: '3/0' divides by 0"),
    ("2 0 2 1 3", "2 0 2 1 1e1", 8, "the objective: '1e1' is no number"),
    ("2 0 2 1 3", "2 0 2 1 nan", 8, "the objective: 'nan' is no number"),
    ("2 0 2 1 3", "2 0 2 1 ٣", 8, "the objective: '٣' is no number"),
    ("2 0 2 1 3", f"2 0 2 1 {'9' * 5000}", 8, f"the objective: '{'9' * 37}...' is no number"),
    ("CON 2 1", "CON 2 3", 9, "more constraints are bounds than there are"),
    ("cover G", "cover X", 11, "'X' stands where L or E or G is expected"),
    ("cover G 5 2", "cover G 5 OBJECTIVE", 11, "'OBJECTIVE' stands where OBJ or a number of terms is expected"),
    ("cover G 5 2", "cover G 5 -2", 11, "'-2' stands where OBJ or a number of terms is expected"),
    ("RTP range", "RTP between", 12, "'between' stands where infeas or range is expected"),
    ("SOL 1", "SOL -1", 13, "number of solutions: '-1' is no whole number from 0 to"),
    ("{ rnd 1 1 1/2 }", "rnd 1 1 1/2 }", 16, "'rnd' stands where { is expected"),
    ("{ rnd 1 1 1/2 }", "{ guess 1 1 1/2 }", 16, "'guess' stands where asm or lin or rnd or uns or sol is expected"),
    ("{ rnd 1 1 1/2 }", "{ rnd 1 2 1/2 }", 16, "a constraint of a sum: '2' is no whole number from 0 to 1"),
    ("{ rnd 1 1 1/2 }", "{ rnd 2 1 1/2 1 0 }", 16, "a constraint of a sum: 1 stands there twice"),
    ("{ rnd 1 1 1/2 } 3", "{ rnd 1 1 1/2 }", 17, "the last use of a constraint: 'cost' is no whole number"),
    ("{ rnd 1 1 1/2 } 3", "{ rnd 1 1 1/2 } -2", 16, "the last use of a constraint: '-2' is no whole number from -1"),
    ("DER 2", "DER 3", 17, "the file ends where the name of a constraint is expected"),
    ("DER 2", "DER 1", 17, "'cost' stands after the last derivation"),
    ("DER 2", "DER 999999999", 15, "number of derivations: '999999999' is no whole number from 0 to"),
]


@pytest.mark.parametrize(("old", "new", "line", "said"), MALFORMED)
def test_what_is_no_certificate_is_refused_with_its_line(old: str, new: str, line: int, said: str) -> None:
    assert ROUNDED.count(old) == 1
    with pytest.raises(MalformedError) as refused:
        check(ROUNDED.replace(old, new))
    assert refused.value.line == line
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize("text", ["", " ", "%", "% comment", "VER", "\0", "{" * 1000, "VER 1.0 VAR 0 INT 0 OBJ min"])
def test_files_of_next_to_nothing_are_refused(text: str) -> None:
    with pytest.raises(MalformedError):
        check(text)


def test_a_model_of_nothing_needs_no_proof() -> None:
    empty = "VER 1.0 VAR 0 INT 0 OBJ min 0 CON 0 0 RTP range -inf inf SOL 1 s 0 DER 0"
    assert sentence(check(empty)) == "the solutions keep the integer model"


def test_work_and_sizes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value, said in (
        ("_WORK", 3, "additions, which is the limit"),
        ("LARGEST", 10, "larger than 10 bytes"),
        ("_ASSUMED", 1, "assumptions are listed at once"),
    ):
        with monkeypatch.context() as patches:
            patches.setattr(vipr, name, value)
            with pytest.raises(MalformedError, match=said):
                check(BRANCHED)


def test_sums_of_many_denominators_end() -> None:
    """Each constraint has a denominator of its own, whose product would take long to compute."""
    rows = [f"c{place} G 1/{10**900 + place} 1 0 1/{10**900 + place}" for place in range(20)]
    times = " ".join(f"{place} 1" for place in range(20))
    text = f"VER 1.0 VAR 1 x INT 0 OBJ min 1 0 1 CON 20 0 {' '.join(rows)} RTP range -inf inf SOL 0 DER 1 d G 0 OBJ {{ lin 20 {times} }} -1"
    with pytest.raises(MalformedError, match="denominator of more than"):
        check(text)


def test_the_checker_shares_nothing_with_the_package() -> None:
    tree = ast.parse((ROOT / "solvers" / "vipr.py").read_text(encoding="utf-8"))
    named = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    named |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert named == {"re", "collections.abc", "dataclasses", "fractions", "math", "typing"}


# Edits: what is still accepted is true of the model that then stands in the file.


@pytest.mark.parametrize("text", VALID)
@pytest.mark.parametrize("seed", range(3))
def test_no_edit_proves_what_is_not_true(text: str, seed: int) -> None:
    accepted = refused = 0
    for edit in edited(text, seed, 1_500):
        try:
            found = check(edit)
        except (MalformedError, RefutedError) as error:
            assert "\n" not in str(error)
            refused += 1
        else:
            accepted += 1
            assert is_true(edit, found), edit
    assert refused > 100
    assert accepted > 10


def test_a_line_that_is_left_out_is_missed() -> None:
    """Every line but a comment says something that the proof needs."""
    for text, proved in VALID.items():
        lines = text.splitlines()
        for place, line in enumerate(lines):
            without = "\n".join(lines[:place] + lines[place + 1 :])
            if line.startswith("%"):
                assert sentence(check(without)) == proved
            else:
                with pytest.raises((MalformedError, RefutedError)):
                    check(without)


# The commands.


def test_check_accepts_a_certificate_and_says_what_it_does_not_cover(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "proof.vipr"
    path.write_text(ROUNDED, encoding="utf-8")
    assert main(["check", str(path)]) == 0
    said = capsys.readouterr().out
    assert VALID[ROUNDED] in said
    assert "not verified: that this is the model of a question" in said
    assert said.endswith("proof.vipr: accepted\n")


@pytest.mark.parametrize(
    ("old", "new", "code", "said"), [("whole G 3", "whole G 4", 30, "REFUSED  constraint 2 does"), ("DER", "", 3, "15:1")]
)
def test_check_refuses_a_broken_certificate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, code: int, said: str
) -> None:
    path = tmp_path / "proof.vipr"
    path.write_text(ROUNDED.replace(old, new), encoding="utf-8")
    assert main(["check", str(path)]) == code
    printed = capsys.readouterr()
    assert said in printed.out + printed.err
    assert "Traceback" not in printed.err


def test_bytes_that_are_no_text_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "proof.vipr"
    path.write_bytes(bytes(range(256)) * 10)
    assert main(["check", str(path)]) == 3
    assert "stands where VER is expected" in capsys.readouterr().err


def test_what_a_checked_certificate_says_is_compared_with_a_solver_where_the_points_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "FEW", 0)
    assert [certificates.holds(text) for text in (ROUNDED, BRANCHED, MOST)] == [True, True, True]
    claimed = check(ROUNDED)
    for text, believed in ((ROUNDED, replace(claimed, low=7)), (ROUNDED, replace(claimed, infeasible=True))):
        monkeypatch.setattr(certificates, "check", lambda _, believed=believed: believed)
        assert not certificates.holds(text)
