"""The one script of a page, which stands inside it, and the rule by which a browser runs this one alone and fetches nothing."""

import base64
import hashlib
from functools import cache
from pathlib import Path


@cache
def script() -> str:
    """The script without its comments."""
    lines = (line.strip() for line in Path(__file__).with_name("page.js").read_text(encoding="utf-8").splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def policy(own: str = "") -> str:
    """What a browser may do with a page: run the script with this digest, and one of its own where it has one, and use the style sheet
    inside it (Content Security Policy, level 3). Words of a result cannot act, were they ever let through."""
    digests = " ".join(f"'sha256-{_digest(text)}'" for text in (script(), own) if text)
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src {digests}; base-uri 'none'; form-action 'none'"


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
