"""Values, bounds and verdicts of every shipped question, and of further ones, beside those in frozen.json.

    python -m tests.benchmarks.frozen [--write] [NAME ...]

Run it before and after a change that must not change answers: any figure that differs is printed, and the exit status is 1. Every question
is solved and its result checked in processes of their own, by the command line, so that no refactoring can break the comparison. Saved
results of the gallery are checked too. `--write` replaces frozen.json.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("frozen.json")
FIGURES = ("status", "value", "bound", "gap", "proved", "stopped")
SECONDS = 300
FOLDERS = ("", "placement", "network", "traces", "sharding", "stages", "counts", "serving", "memory", "layers", "embeddings", "accelerator")
FURTHER = {
    "tiny by boxes": ["tiny", "--engine", "boxes"],
    "tiny by milp": ["tiny", "--engine", "milp"],
    "fewest devices": ["small", "--set", "cluster.devices=[32, 64, 128]", "--set", "objective=devices", "--set", "budget.step_time=40 s"],
    "no design": ["tiny", "--set", "budget.step_time=1 us"],
    "energy of a free chip": ["quickstart", "--set", "objective=energy"],
    "cost of a free chip": ["quickstart", "--set", "objective=die_area", "--set", "budget.step_time=10 s"],
}


def main() -> int:
    """Solve, check, and compare with the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    saved: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    faults = 0
    for name, words in cases().items():
        if arguments.names and name not in arguments.names:
            continue
        figures = solved(words) if words else checked(ROOT / name)
        if arguments.write:
            saved[name] = figures
        elif figures != saved.get(name):
            faults += 1
            print(f"{name}: {figures}, frozen {saved.get(name)}")
        print(f"{name}: {figures}" if arguments.write else f"{name}: compared", flush=True)
    if arguments.write:
        TABLE.write_text(json.dumps(saved, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{faults} differ" if not arguments.write else "written")
    return 1 if faults else 0


def cases() -> dict[str, list[str]]:
    """The words behind `crossopt solve`; none for a saved result, which is checked alone."""
    files = [path for folder in FOLDERS for path in sorted((ROOT / "instances" / folder).glob("*.yaml"))]
    shipped = {path.stem: [str(path)] for path in files}
    gallery = {str(path.relative_to(ROOT)): list[str]() for path in sorted((ROOT / "reports" / "gallery").glob("*.json"))}
    return {**shipped, **FURTHER, **gallery}


def solved(words: list[str]) -> dict[str, Any]:
    """The figures of an answer, and whether its check accepts it."""
    with TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        code = crossopt("solve", *words, "--out", str(result), "--time-limit", f"{SECONDS}s")
        if not result.exists():
            return {"exit": code}
        document = json.loads(result.read_text(encoding="utf-8"))
        said = {"exit": code, "check": crossopt("check", str(result))}
        if document["stopped"] == "time limit":  # other figures depend on the machine
            return said | {"stopped": "time limit"}
        proof = document.get("proof") or {}
        return {
            **said,
            "proof": sorted(proof) if isinstance(proof, dict) else None,
            **{name: document.get(name) for name in FIGURES},
        }


def checked(result: Path) -> dict[str, Any]:
    """Whether the check of a saved result accepts it."""
    return {"check": crossopt("check", str(result))}


def crossopt(*words: str) -> int:
    """Exit status of a command."""
    return subprocess.run([sys.executable, "-m", "crossopt.reports.cli", *words], cwd=ROOT, capture_output=True, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
