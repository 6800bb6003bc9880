"""The studies that come along: `python -m tests.benchmarks.studies` runs them and writes what is kept of them.

That is the runs in `reports/gallery`, the page in `build/gallery`, and where a study has a text beside it the tables between its two
marks. With `--tables` nothing is run: the tables are written anew from the runs that are there. Names of studies run only these. Seconds
are those of the process: a busy machine takes no baseline's time.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from crossopt.instances.files.saved import read_as
from crossopt.reports.cli import main as command
from crossopt.reports.sheets.amounts import amount
from crossopt.reports.sheets.study import course_text, share_of
from crossopt.solvers.study.figures import Overall, best_of, cell, courses, flips_along, overall, values_along
from crossopt.solvers.study.records import Study, from_json
from tests.benchmarks.own_seconds import on_own_seconds
from tests.paths import INSTANCES, ROOT

TOLD = ("joint-vs-single-layer", "logic-memory-network-scaling")
"""Studies with a text beside them."""
STUDIES = (
    *TOLD,
    *("diminishing-returns", "sharing-in-groups", "links-in-the-package", "chiplets-and-yield", "congested-links"),
    *("rare-exchanges", "packages", "optical-links"),
)
GALLERY = ROOT / "reports/gallery"
PAGES = ROOT / "build/gallery"
FIRST, LAST = "<!-- table -->", "<!-- end of table -->"


def main() -> None:
    """Run the studies, unless only tables are wanted, and write the tables."""
    wanted = [name for name in sys.argv[1:] if name in STUDIES] or STUDIES
    on_own_seconds()
    PAGES.mkdir(parents=True, exist_ok=True)
    for name in wanted:
        if "--tables" not in sys.argv[1:]:
            command(["compare", name, "--out", str(GALLERY / f"{name}.json"), "--chart", str(PAGES / f"{name}.html")])
    for name in (name for name in wanted if name in TOLD):
        path = text_beside(name)
        path.write_text(with_table(path.read_text(encoding="utf-8"), kept(name)), encoding="utf-8")


def text_beside(name: str) -> Path:
    """Where a study is told in words."""
    return INSTANCES / "studies" / f"{name}.md"


def kept(name: str) -> Study:
    """The runs that are kept of a study."""
    return read_as(GALLERY / f"{name}.json", from_json)


def with_table(text: str, study: Study) -> str:
    """The text with the study's tables between the marks."""
    before, _, rest = text.partition(FIRST)
    _, _, after = rest.partition(LAST)
    return f"{before}{FIRST}\n{''.join(tables(study))}{LAST}{after}"


def tables(study: Study) -> Iterator[str]:
    """Of a sweep its courses, else every question; and what each engine comes to."""
    yield from sweep_table(study) if study.plan.axes else questions_table(study)
    yield "\n| engine | above the bound | range | within 1 % | proved |\n|---|---|---|---|---|\n"
    for engine in study.plan.engines:
        yield engine_row(overall(study, engine))


def engine_row(one: Overall) -> str:
    """One engine over all questions."""
    assert one.above is not None
    ends = f"{share_of(one.above.least)} to {share_of(one.above.most)}"
    return f"| {one.engine} | {share_of(one.above.middle)} | {ends} | {one.near} of {one.questions} | {one.proved} of {one.questions} |\n"


def questions_table(study: Study) -> Iterator[str]:
    """Each question with the best value and each engine's distance from the bound."""
    engines = study.plan.engines
    yield f"| question | best | {' | '.join(engines)} |\n|---|---|{'---|' * len(engines)}\n"
    for place, question in enumerate(study.questions):
        best, cells = best_of(study, place), [cell(study, place, engine) for engine in engines]
        gaps = ["none" if one is None or one.above is None else share_of(one.above.middle) for one in cells]
        yield f"| {question.name} | {amount(None if best is None else best.value, question.unit)} | {' | '.join(gaps)} |\n"


def sweep_table(study: Study) -> Iterator[str]:
    """Each course with its values along the first axis, a star where the plan changes, and where it levels off."""
    axis = study.plan.axes[0]
    yield f"| {study.questions[0].objective.replace('_', ' ')} in {study.questions[0].unit} | {' | '.join(axis.values)} | |\n"
    yield f"|---|{'---|' * (len(axis.values) + 1)}\n"
    for course in courses(study):
        pairs = zip(values_along(study, course), flips_along(study, course), strict=True)
        cells = [f"{'none' if value is None else f'{value:.3g}'}{'*' * flip}" for value, flip in pairs]
        yield f"| {course.name} | {' | '.join(cells)} | {course_text(study, course.questions)[0]} |\n"


if __name__ == "__main__":
    main()
