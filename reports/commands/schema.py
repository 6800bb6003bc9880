"""Where the JSON schemas of the installed version are, and settings by which editors check and complete questions with them."""

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import crossopt.instances
from crossopt.instances.files.saved import write_atomically
from crossopt.reports.commands.console import ANSWERED, usage

ANY = "question"
"""The schema of a question of any kind."""
USUAL = ("*.crossopt.yaml", "questions/*.yaml")
"""Files that are taken for questions, where no others are named."""
_TARGETS = {"vscode": ".vscode/settings.json", "neovim": ".nvim.lua", "helix": ".helix/languages.toml"}


def schemas() -> dict[str, Path]:
    """The schema of each form of files, that of all questions first."""
    folder = Path(str(crossopt.instances.__file__)).parent
    found = {
        path.name.removesuffix(".schema.json"): path for path in (folder, folder / "schemas") for path in sorted(path.glob("*.schema.json"))
    }
    return {ANY: found.pop(ANY), **found}


def schema(options: Namespace) -> int:
    """Print paths or settings, or write the settings; the exit code."""
    known = schemas()
    if options.form is not None and options.form not in known:
        usage(f"{options.form}: there is no such schema (there are {', '.join(known)})")
    if options.write and options.editor not in _TARGETS:
        usage(f"--write: say which editor: --editor {', '.join(_TARGETS)}")
    path = known[options.form or ANY]
    if options.editor is not None:
        return _for_editor(options.editor, path, tuple(options.files or USUAL), options.write)
    if options.form is not None:
        sys.stdout.write(f"{path}\n")
        return ANSWERED
    width = max(map(len, known))
    sys.stdout.writelines(f"{name:<{width}}  {path}\n" for name, path in known.items())
    return ANSWERED


def _for_editor(editor: str, path: Path, files: tuple[str, ...], write: bool) -> int:
    text = settings_text(editor, path, files)
    if not write:
        sys.stdout.write(text)
        return ANSWERED
    target = Path(_TARGETS[editor])
    before = target.read_text(encoding="utf-8") if target.exists() else ""
    after = text if not before else _merged(before, path, files) if editor == "vscode" else None
    if after is None:
        usage(f"--write: {target} is there already and stays as it is (add what `crossopt schema --editor {editor}` prints)")
    target.parent.mkdir(exist_ok=True)
    write_atomically(target, after)
    sys.stdout.write(f"{target}: {', '.join(files)} are checked by {path}\n")
    return ANSWERED


def settings_text(editor: str, path: Path, files: tuple[str, ...]) -> str:
    """What an editor that asks yaml-language-server takes."""
    listed = json.dumps(list(files))
    quoted = json.dumps(str(path))
    match editor:
        case "vscode":
            return _as_json({"yaml.schemas": {str(path): list(files)}})
        case "neovim":
            named = f"[{quoted}] = {{ {', '.join(map(json.dumps, files))} }}"
            settings = f"{{ settings = {{ yaml = {{ schemas = {{ {named} }} }} }} }}"
            return f'vim.lsp.config("yamlls", {settings})\nvim.lsp.enable("yamlls")\n'
        case "helix":
            return f"[language-server.yaml-language-server.config.yaml.schemas]\n{quoted} = {listed}\n"
        case _:
            return f"# yaml-language-server: $schema={path}\n"


def _merged(before: str, path: Path, files: tuple[str, ...]) -> str | None:
    """Settings of VS Code with ours among them; None where they have comments, which would be lost, or are none."""
    try:
        document: Any = json.loads(before)
    except ValueError:
        return None
    if not isinstance(document, dict) or not isinstance(document.setdefault("yaml.schemas", {}), dict):
        return None
    document["yaml.schemas"][str(path)] = list(files)
    return _as_json(document)


def _as_json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
