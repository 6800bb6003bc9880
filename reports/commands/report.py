"""The command `report`: saved results as one page of HTML, or as tables."""

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from crossopt.instances.errors import Fault, InstanceError, VerificationError, install_text
from crossopt.instances.files.saved import kind_of, naming, read_as, write_atomically
from crossopt.instances.kinds import KINDS, STANDARD_INPUT, name_of
from crossopt.instances.question import read_again
from crossopt.reports.commands.asking import read_saved
from crossopt.reports.commands.console import check_target, refuse_overwriting, refuse_overwriting_others, say, usage
from crossopt.reports.commands.families import check as checked
from crossopt.reports.commands.fronts import front_faults, front_in_file
from crossopt.reports.render.html import html, page
from crossopt.reports.render.paper import paper
from crossopt.reports.render.runs import runs_csv
from crossopt.reports.render.tables import digest
from crossopt.reports.render.together import Drawn, as_proved, as_reported, together_page
from crossopt.reports.sheets.front import front_sheet
from crossopt.reports.sheets.sheet import Sheet
from crossopt.reports.sheets.study import study_sheet
from crossopt.reports.shown import sheet_of
from crossopt.solvers.answer import Result
from crossopt.solvers.checking import faults_but_proof
from crossopt.solvers.fronts import Front, Point, full_question
from crossopt.solvers.study.records import Study, text_of
from crossopt.solvers.study.records import from_json as study_from_json

ENDINGS = {"html": ".html", "latex": ".tex", "csv": ".csv", "markdown": ".md", "text": ".txt", "runs": ".csv", "svg": ".svg", "pdf": ".pdf"}
"""Of files, by what is written."""
MOST = 36
"""Results on one page."""


def form_of(out: Path | None) -> str:
    """What the ending of a file asks for, where `--as` says nothing: a page, unless it is that of another form."""
    suffix = "" if out is None else out.suffix.lower()
    known = {ending: form for form, ending in reversed(ENDINGS.items())} | {".htm": "html", "": "html"}
    if suffix not in known:
        usage(f"--out {out}: a report is not written as {suffix} (say --as html, or take {', '.join(dict.fromkeys(ENDINGS.values()))})")
    return known[suffix]


def report(options: Namespace) -> None:
    """Write the page or the tables, or print them; a result that does not hold, as far as that is seen without its proof, is refused."""
    files = list(options.files)
    if len(files) > MOST:
        usage(f"{len(files)} results do not fit on one page (name at most {MOST})")
    check_target(options.out)
    options.form = options.form or form_of(options.out)
    suffix = ENDINGS[options.form]
    stem = "results" if len(files) > 1 else "result" if files[0] == STANDARD_INPUT else files[0].stem
    target = options.out or Path(f"{stem}{suffix}")
    if options.form in ("svg", "pdf"):
        figures(options, target)
        return
    check_target(target)
    draws = {"html": lambda: page_of(*files, check=options.check), "runs": lambda: runs_on(files)}
    text = draws.get(options.form, lambda: tables_on(options.form, files, options.check))()
    for file in files:  # after they were read: a page that is named in place of its result is no result
        refuse_overwriting(target, file)
    refuse_overwriting_others(target, options.out)
    if str(target) == "-":
        sys.stdout.write(text)
        return
    write_atomically(target, text)
    what = {"html": "report", "runs": "runs"}.get(options.form, "tables")
    sys.stdout.write(f"{target}: the {what} on {name_of(files[0]) if len(files) == 1 else f'{len(files)} results'}\n")


def figures(options: Namespace, target: Path) -> None:
    """Write each picture of the page as a file of its own, beside each other: NAME-TITLE.svg where NAME.svg was asked for."""
    from crossopt.reports.render.figures import figures_of  # noqa: PLC0415 - few reports are such

    if str(target) == "-":
        usage(f"--as {options.form}: figures go into files of their own (name one, they are called after it)")
    if options.form == "pdf" and find_spec("reportlab") is None:
        usage(f"--as pdf: reportlab is not installed ({install_text('figures')}, or take --as svg)")
    found = [figure for result in draw_results(options.files, options.check) for figure in figures_of(result.page)]
    if not found:
        usage(f"--as {options.form}: there is no picture on this page (take --as csv for its figures)")
    places = [target.with_name(f"{target.stem}-{name}.{options.form}") for name, _ in found]
    if len(set(places)) < len(places):
        usage(f"--as {options.form}: several results have pictures of one name (draw them one after another)")
    for path in places:
        check_target(path)
        refuse_overwriting_others(path, path if options.out else None)
    for path, (_, svg) in zip(places, found, strict=True):
        _write_figure(path, svg)
    sys.stdout.write("".join([f"{len(places)} figure{'s' * (len(places) > 1)}:\n", *(f"  {path}\n" for path in places)]))


def _write_figure(path: Path, svg: str) -> None:
    if path.suffix == ".svg":
        write_atomically(path, svg)
        return
    from crossopt.reports.render.pdf import pdf_of  # noqa: PLC0415 - it needs a library that not everybody has

    data = pdf_of(svg)
    with naming(path):
        path.write_bytes(data)


def tables_on(form: str, paths: Sequence[Path], check: bool = False) -> str:
    """The tables of saved results."""
    return paper(form, [result.digest for result in draw_results(paths, check)], [path.name for path in paths])


def runs_on(paths: Sequence[Path]) -> str:
    """The runs of saved comparisons, one a row."""
    for path in paths:
        if kind_of(path) != "study":
            usage(f"--as runs: {path} holds no runs of `crossopt compare` (take --as csv)")
    return runs_csv([saved_study(path) for path in paths])


def page_of(*paths: Path, check: bool = False) -> str:
    """The page about saved results."""
    return page_of_pictures(draw_results(paths, check), [path.name for path in paths])


def page_of_pictures(found: Sequence[Drawn], names: Sequence[str]) -> str:
    """The page about results that are drawn, of several beside each other."""
    return page(found[0].page) if len(found) == 1 else together_page(found, names)


def draw_results(paths: Sequence[Path], check: bool = False) -> list[Drawn]:
    """Each result as its page has it. Where several are refused, all are said.

    What a result claims is drawn as what its file says, unless its proof is carried out anew.
    """
    found, refused = list[Drawn](), list[InstanceError | VerificationError]()
    for path in paths:
        try:
            found.append(_proved(path, picture_in(path)) if check else as_reported(picture_in(path)))
        except (InstanceError, VerificationError) as error:
            refused.append(error)
    for fault in refused[:-1]:
        say(str(fault))
    if refused:
        raise refused[-1]
    return found


def _proved(path: Path, page: Drawn) -> Drawn:
    """What a check says of it; a VerificationError where it refuses it."""
    report = checked(path)
    hold(path, list(report.refused))
    return as_reported(page) if report.unverified else as_proved(page)


def picture_in(path: Path) -> Drawn:
    """A result as its page has it, with its claims as they are."""
    kind = kind_of(path)
    if kind in PAGES:
        return PAGES[kind](path)
    return _of_family(path, kind) if kind is None or kind in KINDS else read_as(path, lambda _: _foreign_result_fault(kind))


def _foreign_result_fault(kind: str) -> Drawn:
    known = ", ".join([*(row.about for row in KINDS.values()), "fronts, relaxations and deciding constants"])
    raise ValueError(f"a result of the kind {kind!r} has no page (those about {known} have one)")


def _plain(data: Any) -> Any:  # noqa: ANN401 - JSON as it is
    return data


def hold(path: Path, faults: list[str]) -> None:
    """Refuse a result with faults: a VerificationError with the first of them."""
    if faults:
        more = f" (and {len(faults) - 1} more: `crossopt check` lists all)" if len(faults) > 1 else ""
        raise VerificationError(f"{path}: {faults[0]}{more}")


def _front(path: Path) -> Drawn:
    question, figures, front = saved_front(path)
    return _of_sheet(front_sheet(question, figures, front), read_as(path, _plain))


def saved_front(path: Path) -> tuple[Any, tuple[str, str], Front]:
    """The question, both figures and the front in a file; a VerificationError where a figure is not that of its design."""
    saved = read_as(path, front_in_file)
    hold(path, front_faults(saved))
    if not saved.points:
        message = "there is no point in this front, and so nothing to draw (`crossopt check` verifies that)"
        raise InstanceError(str(path), [Fault(1, 1, "points", message)], "nothing drawn")
    faults = list[str]()
    for index, (_, result) in enumerate(saved.points):
        found = faults_but_proof(saved.family, result, read_again(result.question, saved.family.kind))
        faults += [f"points[{index}]: {fault}" for fault in found]
    hold(path, faults)
    points = tuple(Point(pair[0], pair[1], result) for pair, result in saved.points)
    front = Front(points, saved.stopped, saved.proved)
    return read_again(full_question(saved.family, saved.figures, saved.points[0][1]), saved.family.kind), saved.figures, front


def _of_sheet(sheet: Sheet, data: object) -> Drawn:
    return Drawn(html(sheet, data), digest(sheet))


def _of_family(path: Path, kind: str | None) -> Drawn:
    """The page of a result of a problem type; a result without a kind is of an older format, which reading it reports."""
    kind = kind or "codesign"
    question, result = saved_result(path, kind)
    return _of_sheet(sheet_of(kind, question, result), read_as(path, _plain))


def saved_result(path: Path, kind: str) -> tuple[Any, Result[Any, Any]]:
    """The question and the result of a problem type in a file; a VerificationError where a figure is not that of the answer."""
    family, result = read_saved(path, kind)
    try:
        question = read_again(result.question, kind, path.parent)
    except InstanceError as error:
        raise VerificationError(f"{path}: the question in the result cannot be read: {error}") from error
    hold(path, faults_but_proof(family, result, question))
    return question, result


def _study(path: Path) -> Drawn:
    study = saved_study(path)
    return _of_sheet(study_sheet(study), json.loads(text_of(study)))


def saved_study(path: Path) -> Study:
    """The runs of a comparison in a file; a VerificationError where a figure is not that of its design."""
    from crossopt.solvers.study.check import check as check_study  # noqa: PLC0415 - it loads engines, which other checks do without

    study = read_as(path, study_from_json)
    hold(path, list(check_study(study).refused))
    return study


def _relaxation(path: Path) -> Drawn:
    """Only this needs integer models."""
    from crossopt.reports.facts.linear import from_json as relaxation_from_json  # noqa: PLC0415
    from crossopt.reports.facts.linear import relaxation_faults  # noqa: PLC0415
    from crossopt.reports.sheets.codesign.relaxation import relaxation_sheet  # noqa: PLC0415

    found, data = read_as(path, relaxation_from_json), read_as(path, _plain)
    hold(path, relaxation_faults(found))
    return _of_sheet(relaxation_sheet(found), data)


def _constants(path: Path) -> Drawn:
    from crossopt.reports.commands.constants import deciding_faults  # noqa: PLC0415 - few results are such
    from crossopt.reports.commands.constants import from_json as deciding_from_json  # noqa: PLC0415
    from crossopt.reports.sheets.codesign.deciding import deciding_sheet  # noqa: PLC0415

    (document, found), data = read_as(path, deciding_from_json), read_as(path, _plain)
    hold(path, deciding_faults(document, found))
    return _of_sheet(deciding_sheet(found), data)


PAGES: dict[str | None, Callable[[Path], Drawn]] = {
    "front": _front,
    "study": _study,
    "relaxation": _relaxation,
    "constants": _constants,
}
"""Results that are no answers of a family, by the kind that they say they are."""
