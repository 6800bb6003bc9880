"""`python -m crossopt`, and the script `crossopt`: an interrupt while modules are loaded ends in a sentence, too."""

import sys

_INTERRUPTED = 10
"""The exit code of a command that has no answer."""


def main() -> int:
    """Load the command line, and run one command."""
    try:
        from crossopt.reports import cli  # noqa: PLC0415 - what takes a tenth of a second is loaded where an interrupt is seen

        return cli.main()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted before there was an answer\n")
        return _INTERRUPTED


if __name__ == "__main__":
    raise SystemExit(main())
