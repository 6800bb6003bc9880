"""What a test can see of a page: whether it is well-formed, what its pictures say, and how a browser lays it out."""

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

EMPTY = {"meta", "br", "link", "img", "input", "hr"}
MEASURE = """
<script>
const faults = [];
const inside = (a, b) => a.x >= b.x - 0.5 && a.y >= b.y - 0.5 && a.right <= b.right + 0.5 && a.bottom <= b.bottom + 0.5;
for (const svg of document.querySelectorAll('svg')) {
  const frame = svg.getBoundingClientRect(), name = svg.querySelector('title').textContent;
  const texts = [...svg.querySelectorAll('text')].map(node => [node.textContent, node.getBoundingClientRect()]);
  for (const [text, box] of texts) if (!inside(box, frame)) faults.push(name + ': ' + text + ' leaves its picture');
  texts.forEach(([one, a], place) => texts.slice(place + 1).forEach(([other, b]) => {
    const wide = Math.min(a.right, b.right) - Math.max(a.x, b.x), high = Math.min(a.bottom, b.bottom) - Math.max(a.y, b.y);
    if (wide > 0.5 && high > 3) faults.push(name + ': ' + one + ' lies on ' + other);
  }));
}
if (document.documentElement.scrollWidth > window.innerWidth) faults.push('the page is wider than its window');
document.body.innerHTML = '<pre id="faults"></pre>';
document.getElementById('faults').textContent = JSON.stringify(faults);
</script>
"""


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
    """A page that is well-formed, stands on its own, and says in words what each of its pictures shows."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    names = re.findall(r' id="([^"]+)"', page)
    assert len(names) == len(set(names))
    assert all(address.removeprefix("href=#") in names for address in reader.addresses)
    assert not re.search(
        r"https?:|//[a-z]+\.|@import|url\(", re.sub(r'(?s)<pre id="result[^"]*">.*?</pre>|<details>.*?</details>', "", page)
    )
    pictures = tuple(ElementTree.fromstring(text) for text in re.findall(r"(?s)<svg.*?</svg>", page))
    for picture in pictures:
        assert [child.tag for child in picture][:2] == ["title", "desc"]
        assert all((child.text or "").strip() for child in picture[:2])
    return Seen(reader.seen, pictures)


def embedded(page: str, name: str = "result") -> object:
    """The result that a page holds for re-use."""
    found = re.search(rf'(?s)<pre id="{name}">(.*?)</pre>', page)
    assert found
    return json.loads(unescape(found[1]))


def faults_in_a_browser(page: str, folder: Path, width: int) -> list[str]:
    """Words that leave their picture or lie on others, pages wider than their window, and whatever else Chromium complains of."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("there is no Chromium on this machine")
    path = folder / "page.html"
    path.write_text(page.replace("</body>", f"{MEASURE}</body>"), encoding="utf-8")
    arguments = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-logging=stderr",
        f"--window-size={width},900",
        "--dump-dom",
        f"file://{path}",
    )
    done = subprocess.run([browser, *arguments], capture_output=True, text=True, check=True, timeout=600)
    found = re.search(r'(?s)<pre id="faults">(.*?)</pre>', done.stdout)
    assert found, done.stderr
    faults: list[str] = json.loads(unescape(found[1]))
    return faults + re.findall(r"CONSOLE\S* (.*)", done.stderr)
