"""`python -m crossopt`: the command line, where its script is not on the path."""

from crossopt.reports.cli import main

raise SystemExit(main())
