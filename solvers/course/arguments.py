"""What the commands of the course take."""

import argparse
from pathlib import Path


def add_grade(parser: argparse.ArgumentParser) -> None:
    """Arguments of `grade`."""
    parser.add_argument("assignment", help="its number or name, see `crossopt course list`")
    parser.add_argument("submission", type=Path, help="a folder or a .zip with solution.py")
    parser.add_argument("--format", choices=("text", "json", "gradescope"), default="text", help="how to tell it (default: text)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write it to this file, such as results/results.json")
    seed = "a word that hidden cases are drawn from (default: the variable CROSSOPT_COURSE_SEED, else `practice`)"
    parser.add_argument("--seed", metavar="WORD", help=seed)
    parser.add_argument("--unconfined", action="store_true", help="run it without walls: your own program, or a machine to throw away")
    parser.set_defaults(command="grade")


def add_course(parser: argparse.ArgumentParser) -> None:
    """Arguments of `course`."""
    parser.add_argument("action", choices=("list", "release"), help="list the assignments, or write the handouts without solutions")
    parser.add_argument("target", type=Path, nargs="?", metavar="TARGET", help="of release: a folder that is not there yet")
    parser.set_defaults(command="course")
