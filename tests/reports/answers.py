"""Answers about joint designs, found and read back as the commands do."""

from pathlib import Path

from crossopt.instances.codesign.instance import Instance, MultiScaleQuestion, Portfolio
from crossopt.instances.question import read_again
from crossopt.reports.commands.asking import read_saved
from crossopt.reports.render.terminal import terminal, text_of
from crossopt.reports.sheets.codesign.design import evaluation_sheet
from crossopt.reports.sheets.codesign.several import sheet
from crossopt.reports.sheets.sheet import Section, Sheet
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.codesign.answer import ChosenDesign, DesignEvaluation, DesignResult
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.family import solve

ENGINES = FAMILY.engines


def answered(asked: Instance | Portfolio | MultiScaleQuestion, engine: str = "exhaustive", seconds: float = float("inf")) -> DesignResult:
    return solve(FAMILY, asked, engine, Limits(seconds), unwatched)


def saved(path: Path) -> DesignResult:
    """The result in a file."""
    result: DesignResult = read_saved(path, "codesign")[1]
    return result


def design_of(result: DesignResult) -> ChosenDesign:
    """The design of a result that has one, of the first workload where there are several."""
    assert result.answer is not None
    return result.answer.design


def evaluation_of(result: DesignResult) -> DesignEvaluation:
    """What the full model says of it."""
    assert result.details is not None
    return result.details.evaluation


def sheet_on(result: DesignResult, asked: Instance | Portfolio | MultiScaleQuestion | None = None) -> Sheet:
    """The sheet of an answer; of the question in it, where none is given."""
    return sheet(read_again(result.question, "codesign") if asked is None else asked, result)


def section_in(shown: Sheet, title: str) -> Section:
    """The section with this title."""
    [found] = [one for one in shown.answer_first if one.title == title]
    return found


def answer(result: DesignResult, asked: Instance | Portfolio | MultiScaleQuestion | None = None) -> str:
    """The answer as a terminal shows it."""
    return terminal(sheet_on(result, asked))


def evaluation_text(asked: Instance, design: ChosenDesign, evaluation: DesignEvaluation) -> str:
    """A priced design as a terminal shows it."""
    return terminal(evaluation_sheet(asked, design, evaluation))


def words_of(*sections: Section) -> str:
    """What a terminal shows of sections, on one line."""
    return " ".join(text_of("", (), sections, "").split())
