"""The command `ui`: a page on this machine that edits a question, prices designs, solves, and draws results."""

import sys
import webbrowser
from argparse import Namespace
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer

from crossopt.instances.errors import install_text
from crossopt.instances.kinds import is_graph_file, question_path
from crossopt.reports.commands.console import usage

_DELAY = 0.5
"""Seconds after which the browser is opened: the server answers by then, and else the browser waits for it."""


def ui(options: Namespace) -> int:
    """Serve the page until it is interrupted."""
    if missing := [name for name in ("starlette", "uvicorn") if find_spec(name) is None]:
        usage(f"ui: the page needs {' and '.join(missing)}, which are not installed ({install_text('ui')})")
    from crossopt.instances.catalogue.registry import shipped  # noqa: PLC0415 - `--help` need not wait for it
    from crossopt.instances.files.document import text_of  # noqa: PLC0415
    from crossopt.reports.ui.app import Access, Served, listening, serve  # noqa: PLC0415
    from crossopt.reports.ui.runs import Desk  # noqa: PLC0415

    folder, text, name, origin = Path.cwd(), "", "", ""
    if options.file is not None:
        path = question_path(options.file)
        if is_graph_file(path):
            usage(f"ui: {path} is a graph of another tool, and the page edits questions in YAML (`crossopt solve` answers graphs)")
        text, name = text_of(path), path.stem
        folder, origin = (folder, name) if shipped().get(name) == path else (path.absolute().parent, "")
    try:
        socket = listening(options.port)
    except (OSError, OverflowError) as error:
        usage(f"--port {options.port}: {str(getattr(error, 'strerror', None) or error).lower()} (leave it out, and a free one is taken)")
    access = Access(socket.getsockname()[1])
    sys.stdout.write(f"crossopt ui: {access.address(access.token)}\nThe page is served to this machine alone. Ctrl-C ends it.\n")
    sys.stdout.flush()
    if not options.no_browser:
        opening = Timer(_DELAY, webbrowser.open, [access.address(access.ticket)])
        opening.daemon = True
        opening.start()
    with socket, TemporaryDirectory(prefix="crossopt-ui-") as saved, suppress(KeyboardInterrupt):
        serve(Served(access, Desk(Path(saved)), folder, text, name, origin), [socket])
    sys.stdout.write("ended\n")
    return 0
