"""Assignment 8: beat the expert. Copy this file to solution.py, fill the holes and run it: it prices what you found by hand and writes
hand.json and answer.json."""

import json
import subprocess
import sys
from pathlib import Path

QUESTION, ANSWER, HAND = (str(Path(__file__).with_name(name)) for name in ("question.yaml", "answer.json", "hand.json"))


def steps() -> list[dict[str, str]]:
    """Designs, a setting for each choice of question.yaml, such as {"compute_area": "600 mm^2", "tensor": "2"}: first the expert's, then
    others, each with one or two choices changed and quicker than the one before."""
    raise NotImplementedError("steps is still a hole")


def alone() -> dict[str, float]:
    """Seconds of the best chip for the expert's plan (`chip`) and of the best plan on the expert's chip (`plan`)."""
    raise NotImplementedError("alone is still a hole")


def engine() -> str:
    """The engine whose answer you hand in (`crossopt solve --help` names them): what makes it believable?"""
    raise NotImplementedError("engine is still a hole")


def crossopt(*arguments: str, quiet: bool = False) -> str:
    """Run the tool; where it refuses, as it does a design that breaks a limit, show its words and stop."""
    done = subprocess.run([sys.executable, "-m", "crossopt.reports.cli", *arguments], check=False, capture_output=quiet, text=True)
    if done.returncode and quiet:
        crossopt(*(word for word in arguments if word != "--json"))
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout or ""


def seconds(design: dict[str, str]) -> float:
    """The step time of a design, which must keep every limit."""
    given = (part for name, value in design.items() for part in ("--set", f"{name}={value}"))
    return float(json.loads(crossopt("evaluate", QUESTION, *given, "--json", quiet=True))["evaluation"]["step_time"])


if __name__ == "__main__":
    designs = steps()
    written = [{"design": design, "step_time": seconds(design)} for design in designs]
    for step in written:
        print(f"{step['step_time']:.6g} s")
    Path(HAND).write_text(json.dumps({"steps": written, "alone": alone()}, indent=1), encoding="utf-8")
    crossopt("solve", QUESTION, "--engine", engine(), "--out", ANSWER)
