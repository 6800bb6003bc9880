"""What the command `compare` takes beside its questions."""

import argparse
from pathlib import Path


def add_compared(parser: argparse.ArgumentParser) -> None:
    """Who is asked, how long and how often, and where the runs go."""
    engines = (
        "in the order of the columns, with commas between; as for `solve --engine`, where megatron is another name of expert and deepflow "
        "of gradient (default: auto, every rule, every searcher, hardware-only, plan-only; of a study as it says)"
    )
    limit = "for each run, for example 10s (default: 5s for searchers, which are greedy to random, none for others; a graph's proof 60s)"
    seeds = "ask searchers, milp and cpsat with seeds 0 to N-1; figures are the median and the range (default: 1, of a study as it says)"
    parser.add_argument("--engines", metavar="NAMES", help=engines)
    parser.add_argument("--time-limit", metavar="TIME", help=limit)
    parser.add_argument("--seeds", type=_seeds, metavar="N", help=f"{seeds}; of graphs and strategies only searchers have seeds")
    parser.add_argument(
        "--out", type=Path, metavar="RUNS.json", help="of joint designs: write every run as JSON to this file; - is standard output"
    )
    parser.add_argument(
        "--chart", type=Path, metavar="PAGE.html", help="of joint designs: draw the comparison as a page of HTML into this file"
    )


def _seeds(text: str) -> int:
    if not text.isdecimal() or len(text) > 4:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seeds (write a whole number from 1 to 9999)")
    if not int(text):
        raise argparse.ArgumentTypeError("0 is too few (write 1 or more)")
    return int(text)
