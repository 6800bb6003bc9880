"""Several results on one page: their figures beside each other, then each with its sections, as far as the page has room for them."""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from crossopt.reports.drawing.bars import Row, bars
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.render.html import (
    Page,
    ProofBox,
    embedded,
    figure,
    frame,
    heading,
    link_table,
    listing,
    paragraph,
    section,
    table,
    text_html,
)
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

    page: Page
    digest: Digest


def as_said(one: Drawn) -> Drawn:
    """Drawn as what somebody says, for no proof was carried out: nothing is green, and the first words tell it."""

    def said_by_file(box: ProofBox) -> ProofBox:
        return replace(box, label=with_text(box.label, SAID) if box.proved else box.label, proved=False, note=_NOT_PROVED)

    verdict = with_text(one.digest.verdict, SAID) if any(box.proved for box in _boxes(one)) else one.digest.verdict
    return _with_boxes(one, said_by_file, verdict)


def as_proved(one: Drawn) -> Drawn:
    """Drawn as what is known, for the proof was repeated."""
    verdict = with_text(one.digest.verdict, PROVED_HERE)
    return _with_boxes(one, lambda box: replace(box, label=with_text(box.label, PROVED_HERE), note=_PROVED), verdict)


def _boxes(one: Drawn) -> list[ProofBox]:
    return [part for part in one.page.sections if isinstance(part, ProofBox)]


def _with_boxes(one: Drawn, changed: Callable[[ProofBox], ProofBox], verdict: str) -> Drawn:
    sections = tuple(changed(part) if isinstance(part, ProofBox) else part for part in one.page.sections)
    return Drawn(replace(one.page, sections=sections), replace(one.digest, verdict=verdict))


_UNCHECKED: Final = "Notes, versions and timings are not verified in any case."
_NOT_PROVED: Final = f"The proof was not repeated here: this is what the file states; `crossopt check FILE` repeats it. {_UNCHECKED}"
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


def together_page(drawn: Sequence[Drawn], names: Sequence[str]) -> str:
    """The page; `names` are those of the files."""
    chapters = [_chapter(number, one, name) for number, (one, name) in enumerate(zip(drawn, names, strict=True), 1)]
    kept, shortened = _within(chapters, ROOM - len(frame("", ()).encode("utf-8")) - 4_000 - 2_000 * len(chapters))
    count = f"{len(drawn)} results"
    parts = [
        heading(count, "What was asked, what is best, and what is proved, beside each other and then one by one."),
        _beside(drawn, names),
        _contents(drawn, names),
        *([section("What was shortened", listing(shortened))] if shortened else []),
    ]
    for number, chapter in enumerate(kept, 1):
        parts.append(f'<article id="result-{number}">\n{chapter.head}\n{chapter.body}\n{chapter.result}\n</article>')
    return frame(count, parts)


def _chapter(number: int, one: Drawn, name: str) -> _Chapter:
    head, body = ("\n".join(str(part) for part in parts if part) for parts in (one.page.sections[:_HEAD], one.page.sections[_HEAD:]))
    return _Chapter(name, _placed(head, number), _placed(body, number), embedded(one.page.result, f"result-{number}-json"))


def _placed(text: str, number: int) -> str:
    """Headings one level deeper, and names of pictures that no other result has. Words of results hold no quotes and no tags: they are
    escaped."""
    deeper = re.sub(r"(</?)(h[123])\b", lambda found: found[1] + _DEEPER[found[2]], text)

    def renamed(found: re.Match[str]) -> str:
        return f' {found[1]}="{" ".join(f"r{number}-{name}" for name in found[2].split())}"'

    return re.sub(r' (id|aria-labelledby)="([^"]*)"', renamed, deeper)


# --- figures beside each other -------------------------------------------------------------------------------------------------------


def _beside(drawn: Sequence[Drawn], names: Sequence[str]) -> str:
    figures, proofs = [], []
    titles = names_of([one.digest for one in drawn], names)
    for number, (one, name) in enumerate(zip(drawn, names, strict=True), 1):
        digest = one.digest
        others = "; ".join(f"{label} {value}" for label, value in digest.figures)
        first = (f"{number}. {digest.name} ({name})", f"#result-{number}")
        figures.append((first, (digest.asks, digest.value_words, digest.bound_words, digest.gap_words, others)))
        proof = f"{digest.verdict}, by {digest.prover}" if digest.prover else digest.verdict
        proofs.append((f"{number}.", digest.design, proof))
    return section(
        "Beside each other",
        _values(drawn, titles),
        link_table(("result", "minimised", "value", "bound", "gap", "figures"), figures, numbers=(2, 3, 4)),
        table(("", "design", "proof"), proofs),
    )


def _values(drawn: Sequence[Drawn], titles: Sequence[str]) -> str:
    """Values as bars, where all results minimise the same of one workload on one cluster, or at least answer one question."""
    digests = [one.digest for one in drawn]
    found = [(number, one, one.value) for number, one in enumerate(digests, 1) if one.value is not None]
    if len(found) < 2 or len({(one.digest.asks, one.digest.unit, one.digest.about or (one.digest.name,)) for one in drawn}) > 1:
        return ""
    least = min(value for _, _, value in found)
    rows = [Row(f"{number}. {titles[number - 1]}", value, f"{one.value_words}{_above(value, least)}") for number, one, value in found]
    asks = digests[0].asks
    words = Titles("values", f"{asks.capitalize()} of each result", "; ".join(f"{row.label}: {row.shown}" for row in rows) + ".")
    return figure(lambda width: bars(words.at(width), rows, least, "the least"), f"{asks.capitalize()}; less is better.")


def _above(value: float, least: float) -> str:
    return f", {value / least - 1.0:.1%} above" if least > 0.0 and value > least else ""


def _contents(drawn: Sequence[Drawn], names: Sequence[str]) -> str:
    titles = names_of([one.digest for one in drawn], names)
    items = "".join(
        f'<li><a href="#result-{number}">{text_html(title)}</a>: {text_html(one.digest.verdict)}</li>'
        for number, (one, title) in enumerate(zip(drawn, titles, strict=True), 1)
    )
    return f'<nav aria-label="Contents"><ol>{items}</ol></nav>'


# --- as much as there is room for ----------------------------------------------------------------------------------------------------


def _within(chapters: list[_Chapter], room: int) -> tuple[list[_Chapter], list[str]]:
    """The chapters in so many bytes: the largest embedded results go first, then the longest sections; and what went, in words."""
    kept, results, parts = list(chapters), set[int](), defaultdict[int, list[str]](list)
    over, left = sum(one.size for one in kept) - room, [_sections(one.body) for one in kept]
    while over > 0:
        if (place := _longest([len(one.result) for one in kept])) is not None:
            results.add(place)
            gone, kept[place] = kept[place].result, replace(kept[place], result="")
        elif (place := _longest([len(sections[0]) if sections else 0 for sections in left])) is not None:
            gone = left[place].pop(0)
            parts[place] += _TITLE.findall(gone)
            kept[place] = replace(kept[place], body=kept[place].body.replace(gone, "", 1))
        elif (place := _longest([len(_drawn_in(one.head)) for one in kept])) is not None:
            parts[place].append("the drawing of its answer")
            gone = _drawn_in(kept[place].head)
            kept[place] = replace(kept[place], head=kept[place].head.replace(gone, "", 1))
        else:
            break
        over -= len(gone.encode("utf-8"))
    words = dict[int, str]()
    for place in sorted({*results, *parts}):
        whole = place in parts and not left[place]
        some = f"without {', '.join(parts[place])}" if place in parts else "its result is not embedded"
        told = "only its head is shown" if whole else some
        words[place] = f"{place + 1}. {kept[place].name}: {told} (`crossopt report {kept[place].name}` draws it in full)."
        kept[place] = replace(kept[place], body=paragraph(_LEFT_OUT)) if whole else kept[place]
    return kept, list(words.values())


def _longest(sizes: Sequence[int]) -> int | None:
    """Which is the longest; none where all are empty."""
    return sizes.index(max(sizes)) if any(sizes) else None


def _drawn_in(head: str) -> str:
    """The longest drawing of an answer."""
    return max(_DRAWING.findall(head), key=len, default="")


def _sections(body: str) -> list[str]:
    """The sections of a chapter, the longest first."""
    return sorted(_SECTION.findall(body), key=len, reverse=True)
