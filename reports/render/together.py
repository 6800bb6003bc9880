"""Several results on one page: their figures beside each other, then each with its sections, as far as the page has room for them."""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from crossopt.reports.drawing.bars import Row, bars
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.render import html
from crossopt.reports.render.paper import names_of
from crossopt.reports.render.tables import PROVED_HERE, SAID, Digest, with_text

ROOM: Final = 490_000
"""Bytes of a page, less a little for what says what was shortened."""
_HEAD: Final = 2
"""Sections that are never left out: what was asked, and what is proved."""
_DRAWING: Final = re.compile(r"(?s)<figure.*?</figure>")
_SECTION: Final = re.compile('(?s)<section id="[^"]*">\n<h3>.*?</section>')
_TITLE: Final = re.compile("<h3>(.*?)</h3>")
_LEFT_OUT: Final = "The sections on this result were left out, for this page has no room for them."
_DEEPER: Final = {"h1": "h2", "h2": "h3", "h3": "h4"}


@dataclass(frozen=True, slots=True)
class Drawn:
    """A result as its own page has it, and in a few figures."""

    page: html.Page
    digest: Digest


def as_reported(result: Drawn) -> Drawn:
    """The page of a result whose proof was not verified: nothing is green, and a line below says how to verify it."""
    verdict = with_text(result.digest.verdict, SAID) if any(box.proved for box in _boxes(result)) else result.digest.verdict
    return _with_boxes(result, lambda box: replace(box, stated=True, note=_NOT_PROVED), verdict)


def as_proved(result: Drawn) -> Drawn:
    """Drawn as what is known, for the proof was repeated."""
    verdict = with_text(result.digest.verdict, PROVED_HERE)
    return _with_boxes(result, lambda box: replace(box, label=with_text(box.label, PROVED_HERE), note=_PROVED), verdict)


def _boxes(result: Drawn) -> list[html.ProofBox]:
    return [part for part in result.page.sections if isinstance(part, html.ProofBox)]


def _with_boxes(result: Drawn, changed: Callable[[html.ProofBox], html.ProofBox], verdict: str) -> Drawn:
    sections = tuple(changed(part) if isinstance(part, html.ProofBox) else part for part in result.page.sections)
    return Drawn(replace(result.page, sections=sections), replace(result.digest, verdict=verdict))


_UNCHECKED: Final = "Notes, versions and timings are not verified in any case."
_NOT_PROVED: Final = f"The proof was not repeated here; run `crossopt check FILE` to verify this file. {_UNCHECKED}"
_PROVED: Final = f"The proof was repeated for this page. {_UNCHECKED}"


@dataclass(frozen=True, slots=True)
class _Chapter:
    """What a page of several results has of one of them."""

    name: str
    head: str
    body: str
    result: str

    @property
    def size(self) -> int:
        return sum(len(part.encode("utf-8")) for part in (self.head, self.body, self.result))


def together_page(results: Sequence[Drawn], names: Sequence[str]) -> str:
    """The page; `names` are those of the files."""
    chapters = [_chapter(number, result, name) for number, (result, name) in enumerate(zip(results, names, strict=True), 1)]
    shown, shortened = _within(chapters, ROOM - len(html.frame("", ()).encode("utf-8")) - 4_000 - 2_000 * len(chapters))
    count = f"{len(results)} results"
    parts = [
        html.heading(count, "Questions, best answers and proofs, side by side and then one by one."),
        _beside(results, names),
        _contents(results, names),
        *([html.section("What was shortened", html.listing(shortened))] if shortened else []),
    ]
    for number, chapter in enumerate(shown, 1):
        parts.append(f'<article id="result-{number}">\n{chapter.head}\n{chapter.body}\n{chapter.result}\n</article>')
    return html.frame(count, parts)


def _chapter(number: int, result: Drawn, name: str) -> _Chapter:
    head, body = ("\n".join(str(part) for part in parts if part) for parts in (result.page.sections[:_HEAD], result.page.sections[_HEAD:]))
    return _Chapter(name, _placed(head, number), _placed(body, number), html.embedded(result.page.result, f"result-{number}-json"))


def _placed(text: str, number: int) -> str:
    """Headings one level deeper, and names of pictures that no other result has. Words of results hold no quotes and no tags: they are
    escaped."""
    deeper = re.sub(r"(</?)(h[123])\b", lambda found: found[1] + _DEEPER[found[2]], text)

    def renamed(found: re.Match[str]) -> str:
        return f' {found[1]}="{" ".join(f"r{number}-{name}" for name in found[2].split())}"'

    return re.sub(r' (id|aria-labelledby)="([^"]*)"', renamed, deeper)


# --- figures beside each other -------------------------------------------------------------------------------------------------------


def _beside(results: Sequence[Drawn], names: Sequence[str]) -> str:
    figures, proofs = [], []
    titles = names_of([result.digest for result in results], names)
    for number, (result, name) in enumerate(zip(results, names, strict=True), 1):
        digest = result.digest
        others = "; ".join(f"{label} {value}" for label, value in digest.figures)
        first = (f"{number}. {digest.name} ({name})", f"#result-{number}")
        figures.append((first, (digest.asks, digest.value_words, digest.bound_words, digest.gap_words, others)))
        proof = f"{digest.verdict}, by {digest.prover}" if digest.prover else digest.verdict
        proofs.append((f"{number}.", digest.design, proof))
    return html.section(
        "Beside each other",
        _values(results, titles),
        html.link_table(("result", "minimised", "value", "bound", "gap", "figures"), figures, numbers=(2, 3, 4)),
        html.table(("", "design", "proof"), proofs),
    )


def _values(results: Sequence[Drawn], titles: Sequence[str]) -> str:
    """Values as bars, where all results minimise the same of one workload on one cluster, or at least answer one question."""
    digests = [result.digest for result in results]
    found = [(number, entry, entry.value) for number, entry in enumerate(digests, 1) if entry.value is not None]
    if len(found) < 2 or len({(part.digest.asks, part.digest.unit, part.digest.about or (part.digest.name,)) for part in results}) > 1:
        return ""
    least = min(value for _, _, value in found)
    rows = [Row(f"{number}. {titles[number - 1]}", value, f"{entry.value_words}{_above(value, least)}") for number, entry, value in found]
    asks = digests[0].asks
    titles_of_bars = Titles("values", f"{asks.capitalize()} of each result", "; ".join(f"{row.label}: {row.shown}" for row in rows) + ".")
    return html.figure(lambda width: bars(titles_of_bars.at(width), rows, least, "the least"), f"{asks.capitalize()}; less is better.")


def _above(value: float, least: float) -> str:
    return f", {value / least - 1.0:.1%} above" if least > 0.0 and value > least else ""


def _contents(results: Sequence[Drawn], names: Sequence[str]) -> str:
    titles = names_of([result.digest for result in results], names)
    items = "".join(
        f'<li><a href="#result-{number}">{html.text_html(title)}</a>: {html.text_html(result.digest.verdict)}</li>'
        for number, (result, title) in enumerate(zip(results, titles, strict=True), 1)
    )
    return f'<nav aria-label="Contents"><ol>{items}</ol></nav>'


# --- as much as there is room for ----------------------------------------------------------------------------------------------------


def _within(chapters: list[_Chapter], room: int) -> tuple[list[_Chapter], list[str]]:
    """The chapters in so many bytes: the largest embedded results go first, then the longest sections; and what went, in words."""
    shown, results, parts = list(chapters), set[int](), defaultdict[int, list[str]](list)
    over, left = sum(chapter.size for chapter in shown) - room, [_sections(chapter.body) for chapter in shown]
    while over > 0:
        if (index := _longest([len(chapter.result) for chapter in shown])) is not None:
            results.add(index)
            gone, shown[index] = shown[index].result, replace(shown[index], result="")
        elif (index := _longest([len(sections[0]) if sections else 0 for sections in left])) is not None:
            gone = left[index].pop(0)
            parts[index] += _TITLE.findall(gone)
            shown[index] = replace(shown[index], body=shown[index].body.replace(gone, "", 1))
        elif (index := _longest([len(_drawn_in(chapter.head)) for chapter in shown])) is not None:
            parts[index].append("the drawing of its answer")
            gone = _drawn_in(shown[index].head)
            shown[index] = replace(shown[index], head=shown[index].head.replace(gone, "", 1))
        else:
            break
        over -= len(gone.encode("utf-8"))
    notes = dict[int, str]()
    for index in sorted({*results, *parts}):
        only_head = index in parts and not left[index]
        some = f"without {', '.join(parts[index])}" if index in parts else "its result is not embedded"
        remark = "only its head is shown" if only_head else some
        notes[index] = f"{index + 1}. {shown[index].name}: {remark} (`crossopt report {shown[index].name}` draws it in full)."
        shown[index] = replace(shown[index], body=html.paragraph(_LEFT_OUT)) if only_head else shown[index]
    return shown, list(notes.values())


def _longest(sizes: Sequence[int]) -> int | None:
    """Which is the longest; none where all are empty."""
    return sizes.index(max(sizes)) if any(sizes) else None


def _drawn_in(head: str) -> str:
    """The longest drawing of an answer."""
    return max(_DRAWING.findall(head), key=len, default="")


def _sections(body: str) -> list[str]:
    """The sections of a chapter, the longest first."""
    return sorted(_SECTION.findall(body), key=len, reverse=True)
