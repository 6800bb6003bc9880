"""What the commands of the course take."""

import argparse
from pathlib import Path

_SEED_HELP = "a word that hidden cases are drawn from (default: the variable CROSSOPT_COURSE_SEED, else `practice`)"


def add_grade(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grade`."""
    parser.add_argument("assignment", help="its number or name, see `crossopt course list`")
    parser.add_argument("submission", type=Path, help="a folder or a .zip with solution.py, or what the assignment names")
    parser.add_argument("--format", choices=("text", "json", "gradescope"), default="text", help="how to tell it (default: text)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write it to this file, such as results/results.json")
    parser.add_argument("--seed", metavar="WORD", help=_SEED_HELP)
    parser.add_argument("--unconfined", action="store_true", help="run it without walls: your own program, or a machine to throw away")
    parser.set_defaults(command="grade")


def add_course(parser: argparse.ArgumentParser) -> None:
    """Arguments of `course`."""
    actions = "list the assignments, write the handouts without solutions, or print the question of assignment 8"
    parser.add_argument("action", choices=("list", "release", "question"), help=actions)
    parser.add_argument("target", type=Path, nargs="?", metavar="TARGET", help="of release: a folder that is not there yet")
    parser.add_argument("--seed", metavar="WORD", help=f"of question: {_SEED_HELP}")
    parser.set_defaults(command="course")
