"""What pyproject.toml cannot say: addresses derived from one, and the README with links that lead somewhere from an index of packages."""

import re
import tomllib
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
REPOSITORY = str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["crossopt"]["repository"]).rstrip("/")
LINK = re.compile(r"\[([^\]]+)\]\((?![a-z]+:|#)([^)]+)\)")
"""A link to a file of the repository."""

readme = (ROOT / "README.md").read_text(encoding="utf-8")
setup(
    script_name=__file__,  # so that it is not taken for a module of the package
    long_description=LINK.sub(rf"[\1]({REPOSITORY}/blob/main/\2)" if REPOSITORY else r"\1", readme),
    long_description_content_type="text/markdown",
    project_urls={"Source": REPOSITORY, "Issues": f"{REPOSITORY}/issues", "Changelog": f"{REPOSITORY}/blob/main/CHANGELOG.md"}
    if REPOSITORY
    else {},
)
