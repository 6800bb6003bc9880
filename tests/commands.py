"""Commands run in this process, as a shell runs them."""

from collections.abc import Sequence

from crossopt.reports.cli import main


def exit_code(words: Sequence[str]) -> int:
    """The exit code of a command, also where an argument is refused before it runs."""
    try:
        return main(list(words))
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
