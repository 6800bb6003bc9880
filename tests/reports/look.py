"""What a test can see of a page: whether it is well-formed, what its pictures say, and how a browser lays it out."""

import json
import re
from dataclasses import dataclass
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

from crossopt.reports.render.html import script
from crossopt.reports.render.tables import Digest
from tests.reports.browser import opened

EMPTY = {"meta", "br", "link", "img", "input", "hr"}
MEASURE = """
(() => {
const faults = [];
const inside = (a, b) => a.x >= b.x - 0.5 && a.y >= b.y - 0.5 && a.right <= b.right + 0.5 && a.bottom <= b.bottom + 0.5;
for (const svg of document.querySelectorAll('svg')) {
  const frame = svg.getBoundingClientRect(), name = svg.querySelector('title').textContent;
  if (!frame.width) continue;
  const texts = [...svg.querySelectorAll('text')].map(node => [node.textContent, node.getBoundingClientRect()]);
  for (const [text, box] of texts) if (!inside(box, frame)) faults.push(name + ': ' + text + ' leaves its picture');
  for (const [text, box] of texts) if (text.trim() && box.height < 8.5) faults.push(name + ': ' + text + ' is too small to read');
  texts.forEach(([one, a], place) => texts.slice(place + 1).forEach(([other, b]) => {
    const wide = Math.min(a.right, b.right) - Math.max(a.x, b.x), high = Math.min(a.bottom, b.bottom) - Math.max(a.y, b.y);
    if (wide > 0.5 && high > 3) faults.push(name + ': ' + one + ' lies on ' + other);
  }));
}
if (document.documentElement.scrollWidth > window.innerWidth) faults.push('the page is wider than its window');
return faults;
})()
"""
"""Words that leave their picture, lie on others or cannot be read."""


MIXED = re.compile(r"'?[-+]?[\d,.]+(e[+-]?\d+)?( ?(%|[A-Za-zµ][A-Za-z/^\d]*))?(( ?/ ?| to | of |, )[-+]?\d.*)?( \(.*\))?")
"""A figure, or one with a unit, a second figure or a remark."""


def mixed_cells(told: Digest) -> list[tuple[str, str, str]]:
    """Cells of tables for programs that are text and begin with a figure; names of rows, notes, sentences and the plain sheet of two
    columns, which has a field a row, are text."""
    return [
        (table.title, head, cell)
        for table in told.tables
        for column, head in enumerate(table.heads)
        if column and head != "note" and table.heads != ("field", "value")
        for row in table.rows
        if isinstance(cell := row[column], str) and len(cell) <= 40 and MIXED.fullmatch(cell)
    ]


class _Reader(HTMLParser):
    """Tags that are opened and closed in order, and every address that a page names."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.addresses += [f"{name}={value}" for name, value in attrs if name in {"src", "href", "srcset", "action", "data", "xlink:href"}]
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in EMPTY:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@dataclass(frozen=True, slots=True)
class Seen:
    """The tags of a page, and its pictures as trees."""

    tags: set[str]
    pictures: tuple[ElementTree.Element, ...]


def looked_at(page: str) -> Seen:
    """A page that is well-formed, stands on its own, runs the one script that it may, and says in words what each of its pictures shows.
    Pictures are told as wide screens have them."""
    bare = page.replace(f"<script>{script()}</script>", "", 1)
    reader = _Reader()
    reader.feed(bare)
    reader.close()
    assert reader.open == []
    names = re.findall(r' id="([^"]+)"', page)
    assert len(names) == len(set(names))
    assert all(address.removeprefix("href=#") in names for address in reader.addresses)
    assert not re.search(
        r"https?:|//[a-z]+\.|@import|url\(", re.sub(r'(?s)<pre id="result[^"]*">.*?</pre>|<details>.*?</details>', "", page)
    )
    drawn = [ElementTree.fromstring(text) for text in re.findall(r"(?s)<svg.*?</svg>", page)]
    pictures = tuple(one for one in drawn if not (one[0].get("id") or "").endswith("-narrow-title"))
    assert len(drawn) == 2 * len(pictures)
    for picture in drawn:
        assert [child.tag for child in picture][:2] == ["title", "desc"]
        assert all((child.text or "").strip() for child in picture[:2])
    return Seen(reader.seen, pictures)


def embedded(page: str, name: str = "result") -> object:
    """The result that a page holds for re-use."""
    found = re.search(rf'(?s)<pre id="{name}">(.*?)</pre>', page)
    assert found
    return json.loads(unescape(found[1]))


def faults_in_a_browser(page: str, folder: Path, width: int) -> list[str]:
    """Words that leave their picture or lie on others, pages wider than their window, and whatever else the console complains of."""
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    view = opened(path, width)
    faults: list[str] = [*view.run(MEASURE), *view.complaints()]
    view.close()
    return faults
