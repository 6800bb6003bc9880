"""How answers about joint designs are shown: of one workload or several, on one number of devices or several."""

from dataclasses import replace
from typing import TYPE_CHECKING

from crossopt.instances.codesign.instance import Counted, Instance, Portfolio
from crossopt.reports.texts.design import answer, rival_label
from crossopt.reports.texts.devices import best_part, best_place, counts_answer
from crossopt.reports.texts.workloads import several_answer
from crossopt.solvers.codesign.answer import DesignResult, design_in, relaxation_in

if TYPE_CHECKING:
    from crossopt.reports.facts.design import Facts
    from crossopt.reports.pages.shell import Page
    from crossopt.reports.tables.digest import Digest

Question = Instance | Portfolio | Counted


def text_of(question: Question, result: DesignResult) -> str:
    """The answer for the terminal."""
    if isinstance(question, Counted):
        return counts_answer(question, result)
    if isinstance(question, Portfolio):
        return several_answer(result, question.parts)
    return answer(result, question)


def page_of(question: Question, result: DesignResult, data: object) -> "Page":
    """The answer as a page."""
    from crossopt.reports.facts.design import asked_of, asked_of_counts, facts_of  # noqa: PLC0415 - only pages need pictures
    from crossopt.reports.pages.counts import counts_page  # noqa: PLC0415
    from crossopt.reports.pages.design import design_page  # noqa: PLC0415
    from crossopt.reports.pages.several import several_page  # noqa: PLC0415

    if isinstance(question, Counted):
        best = best_part(question, result)
        facts = None if best is None else _facts(question.parts[best_place(question, result)], best)
        return counts_page(question, result, asked_of_counts(question), facts, data)
    if isinstance(question, Portfolio):
        designs = result.answer.designs if result.answer else ()
        found = tuple(facts_of(part, design) for part, design in zip(question.parts, designs, strict=False))
        return several_page(result, tuple(map(asked_of, question.parts)), found, data)
    return design_page(result, asked_of(question), _facts(question, result), data)


def _facts(instance: Instance, result: DesignResult) -> "Facts | None":
    from crossopt.reports.facts.design import facts_of  # noqa: PLC0415

    design = design_in(result)
    rivals = tuple((rival_label(one), one.answer.designs[0]) for one in result.rivals if one.answer is not None and one.value is not None)
    return None if design is None else facts_of(instance, design, relaxation_in(result), rivals)


def digest_of(question: Question, result: DesignResult) -> "Digest":
    """The answer as tables."""
    from crossopt.reports.facts.design import asked_of, asked_of_counts  # noqa: PLC0415
    from crossopt.reports.tables.digest import of_counts, of_design, of_several  # noqa: PLC0415

    if isinstance(question, Portfolio):
        return of_several(result)
    asked = asked_of_counts(question) if isinstance(question, Counted) else asked_of(question)
    found = of_counts(question, result) if isinstance(question, Counted) else of_design(result)
    return replace(found, about=tuple(words for name, words in asked.terms if name in ("workload", "devices")))
