"""Generated pages in parts that a person reads: `NAME.md`, `NAME-2.md` and so on, each of at most 12 kB where a section is no longer."""

import re
from pathlib import Path

MOST = 12_000


def write_pages(path: Path, text: str) -> None:
    """The page in parts, cut at its sections; parts of an earlier, longer page go."""
    for old in parts_of(path):
        old.unlink()
    chunks, last = [""], 0
    for section in re.split(r"^(?=##+ )", text, flags=re.MULTILINE):
        if last and last + len(section.encode()) > MOST:
            chunks, last = [*chunks, ""], 0
        chunks[-1] += section
        last += len(section.encode())
    for number, chunk in enumerate(chunks, 1):
        (path if number == 1 else path.with_name(f"{path.stem}-{number}.md")).write_text(chunk, encoding="utf-8")


def read_pages(path: Path) -> str:
    """All parts again, one after the other."""
    return "".join(part.read_text(encoding="utf-8") for part in parts_of(path))


def parts_of(path: Path) -> list[Path]:
    """The parts that are there, in their order."""
    numbered = re.compile(rf"{re.escape(path.stem)}-(\d+)")
    later = {int(found[1]): part for part in path.parent.glob(f"{path.stem}-*.md") if (found := numbered.fullmatch(part.stem))}
    return [*([path] if path.exists() else []), *(later[number] for number in sorted(later))]
