"""Pages made from code and notebooks: keys, registries, stacks, units, commands, the Python API; and the gallery where it was built."""

import inspect
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from textwrap import dedent
from typing import Any

import nbformat
from mkdocs.structure.files import File, Files
from nbconvert import MarkdownExporter
from nbconvert.preprocessors import ExecutePreprocessor

import crossopt
from crossopt.instances.schema_export import reference_text, support_text
from crossopt.reports import api as module
from crossopt.reports.arguments import parser_of_commands
from crossopt.reports.cli import main

REGISTRIES = ("hardware", "technologies", "workloads", "instances")
SUPPORT = """Every registered model is priced on every device, and launched by every stack whose rules it keeps. The figures rest on
constants. *Measured* ones were fitted to runs of the stack on the device; *measured on the device* ones to runs of whatever stacks there;
*derived* ones are taken over from another device or stack."""
ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
GALLERY = ROOT / "build" / "gallery"
"""Where `make gallery` writes its pages."""


def on_files(files: Files, config: Any) -> Files:  # noqa: ANN401 - MkDocs' configuration
    """Add the generated pages; those that a clone has in short are replaced."""
    for name, text in generated():
        if (short_page := files.get_file_from_path(name)) is not None:
            files.remove(short_page)
        files.append(File.generated(config, name, content=text))
    for path in NOTEBOOKS:
        text, pictures = notebook(path)
        for name, content in {f"{path.stem}.md": text, **pictures}.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    for page in sorted(GALLERY.glob("*.html")):
        files.append(File.generated(config, f"gallery/{page.name}", abs_src_path=str(page)))
    return files


def generated() -> Iterator[tuple[str, str]]:
    """Names and texts of the pages."""
    parts = re.split(r"^### (?=`device`|What stacks launch|Constants of the model|Units)", reference_text(), flags=re.MULTILINE)
    questions, registry, stacks, constants, units = parts
    yield "reference/questions.md", f"# Keys of questions\n\n{raised(questions)}"
    yield "reference/registry-files.md", f"# Keys of registry files\n\n{raised(f'### {registry}')}"
    yield "reference/stacks.md", "# Rules of training stacks\n\n" + stacks.partition("\n")[2]
    yield "reference/units-and-constants.md", f"# Units and constants\n\n## {constants}\n\n## {units}"
    yield "reference/python.md", f"# Python API\n\n{api()}"
    yield "reference/commands.md", f"# Commands\n\n{commands()}"
    yield "reference/registries.md", f"# Registries\n\n{registries()}"
    yield "reference/support.md", f"# Support matrix\n\n{SUPPORT}\n\n{support_text()}\n"
    yield "contributing.md", unlinked((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    yield "gallery.md", f"# Gallery\n\n{gallery()}"


def notebook(path: Path) -> tuple[str, dict[str, bytes]]:
    """A notebook, executed: its page, and its pictures by file name."""
    document = nbformat.read(path, as_version=4)
    ExecutePreprocessor(timeout=600, kernel_name="python3").preprocess(document, {"metadata": {"path": str(path.parent)}})
    text, resources = MarkdownExporter().from_notebook_node(document, {"unique_key": path.stem, "output_files_dir": f"{path.stem}_files"})
    return text, dict(resources["outputs"])


def unlinked(text: str) -> str:
    """Without links to files, which lie outside the site."""
    return re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text)


def raised(text: str) -> str:
    """Headings one level higher."""
    return re.sub(r"^#(#+ )", r"\1", text, flags=re.MULTILINE)


def api() -> str:
    """What `import crossopt` offers: signatures and docstrings."""
    parts = [inspect.cleandoc(module.__doc__ or "")]
    for name in crossopt.__all__:
        found = getattr(crossopt, name)
        parts += [f"## {name}", f"```python\n{signature(name, found)}\n```", described(found)]
        members = vars(found).items() if inspect.isclass(found) else ()
        rows = [
            f"- `{key}`: {inspect.cleandoc(value.__doc__)}" for key, value in members if key[0] != "_" and getattr(value, "__doc__", None)
        ]
        parts.append("\n".join(rows))
    return "\n\n".join(part for part in parts if part)


def described(found: Any) -> str:  # noqa: ANN401 - a function or a class
    """The docstring, its example as a block of code."""
    text = inspect.cleandoc(found.__doc__ or "")
    text = re.sub(r"\s+# doctest:.*", "", text)
    return re.sub(r"^Example:\n((?: {4}.*(?:\n|$))+)", lambda part: f"```python\n{dedent(part[1]).strip()}\n```", text, flags=re.MULTILINE)


def signature(name: str, found: Any) -> str:  # noqa: ANN401 - a function or a class
    """The call with types by their short names, a parameter a line where it is long."""
    call = inspect.signature(found)
    line = short(f"{name}{call}")
    if len(line) <= 90:
        return line
    parts = [short(str(part)) for part in call.parameters.values()]
    keywords = [part.kind is part.KEYWORD_ONLY for part in call.parameters.values()]
    if True in keywords and not any(part.kind is part.VAR_POSITIONAL for part in call.parameters.values()):
        parts.insert(keywords.index(True), "*")
    return "\n    ".join([f"{name}(", *(f"{part}," for part in parts)]) + f"\n){line.rpartition(')')[2]}"


def short(types: str) -> str:
    """Types without the modules that define them."""
    return re.sub(r"\b(?:\w+\.)+(?=[A-Z])", "", types)


def commands() -> str:
    """The help of each command."""
    [below] = [action.choices for action in parser_of_commands()._actions if isinstance(action.choices, dict)]
    return "\n".join(f"## crossopt {name}\n\n```text\n{inner.format_help()}```\n" for name, inner in below.items())


def registries() -> str:
    """What `crossopt list` prints of each registry, as tables."""
    return "\n".join(f"## {name.capitalize()}\n\n| name | content |\n|---|---|\n{rows(printed('list', name))}\n" for name in REGISTRIES)


def rows(text: str) -> str:
    """A row of a table for each line with a name and what it stands for."""
    return "\n".join(f"| `{name}` | {rest.strip()} |" for name, _, rest in (line.partition(" ") for line in text.splitlines() if line))


def printed(*arguments: str) -> str:
    """Standard output of a command."""
    output = StringIO()
    with redirect_stdout(output):
        main(list(arguments))
    return output.getvalue()


def gallery() -> str:
    """Links to the pages that are there."""
    pages = [f"- [{page.stem}](gallery/{page.name})" for page in sorted(GALLERY.glob("*.html"))]
    return "\n".join(pages) if pages else "The gallery was not built: run `make gallery` before `make docs`."
