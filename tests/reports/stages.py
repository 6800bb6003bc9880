"""What every page about stages holds."""

import json
import re
from pathlib import Path

from crossopt.reports.commands.report import page_of
from tests.reports.look import embedded, looked_at


def stages_drawn(result: Path) -> str:
    """The page of a result: the same twice, well-formed; it holds the result and names every stage."""
    page, data = page_of(result), json.loads(result.read_text(encoding="utf-8"))
    assert page == page_of(result)
    assert "script" not in looked_at(page).tags
    assert embedded(page) == data
    table = re.search(r"(?s)<h2>The stages</h2>.*?</table>", page)
    assert (table[0].count('<th scope="row">') if table else 0) == len((data["answer"] or {"stages": ()})["stages"])
    assert (data["value"] is None) == (f"{'told' if data['proof']['form'] == 'word' else 'proved'}: no plan" in page)
    return page
