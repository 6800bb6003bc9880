"""Answers: engines that find designs, the verifier that judges them, results and their checking, and the command line.

Its modules are imported one by one, as in `from solvers.engines import exhaustive`, so that `crossopt --help` need not wait for numpy.
"""

__all__ = [
    "calibrate",
    "check",
    "cli",
    "cross_validation",
    "designs",
    "engines",
    "exhaustive",
    "expert",
    "files",
    "objective",
    "pricing",
    "progress",
    "result",
    "schools",
    "searchers",
    "single",
    "verify",
]
