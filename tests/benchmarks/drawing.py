"""How long a browser takes to draw the pages of the gallery: `python -m tests.benchmarks.drawing [WIDTH]` prints it for each.

A page is drawn when its load event is over and something was painted; the time is the browser's own, the least of three, beside that of an
empty page as the measure of the machine. Needs Chromium.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.paths import ROOT
from tests.reports.browser import opened

GALLERY: Final = ROOT / "build" / "gallery"
_TIMES, _WIDE = 3, 1280
_DRAWN: Final = """new Promise(done => requestAnimationFrame(() => setTimeout(() => {
  const [page] = performance.getEntriesByType("navigation"), painted = performance.getEntriesByName("first-contentful-paint");
  done(Math.max(page.loadEventEnd, ...painted.map(one => one.startTime)));
})))"""
"""Milliseconds from the beginning of a page until its script was heard and something was painted."""


def milliseconds(page: Path, width: int) -> float:
    """The least of a few times."""
    found = list[float]()
    for _ in range(_TIMES):
        view = opened(page, width)
        found.append(float(view.run(_DRAWN)))
        view.close()
    return min(found)


def main() -> None:
    """Print the milliseconds of each page, the slowest first."""
    width = int(sys.argv[1]) if len(sys.argv) > 1 else _WIDE
    with TemporaryDirectory() as name:
        empty = Path(name) / "empty.html"
        empty.write_text("<!DOCTYPE html><title>empty</title>", encoding="utf-8")
        least = milliseconds(empty, width)
    found = sorted(((milliseconds(page, width), page) for page in GALLERY.glob("*.html")), reverse=True)
    for taken, page in found:
        sys.stdout.write(f"{page.name:<45}{page.stat().st_size / 1000:>7.0f} kB{taken:>8.0f} ms\n")
    sys.stdout.write(f"{'an empty page':<54}{least:>8.0f} ms\n")


if __name__ == "__main__":
    main()
