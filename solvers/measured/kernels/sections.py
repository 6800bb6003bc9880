"""What a fit of kernels leaves as a section of a device's file: constants and errors of each kind."""

from collections.abc import Iterator, Sequence

from crossopt.instances.measured.kernels import Of
from crossopt.solvers.measured.kernels.fitting import KernelFit

_SPLIT = {
    "products": "columns and depth",
    "attention": "heads, sizes of heads and windows",
    "collectives": "ranks and bytes",
}
"""What rows that are left out of a fit together have in common."""


def sections_text(fits: Sequence[KernelFit], of: Of, data: str) -> str:
    """The section as YAML; `left_out` is of rows whose shapes the constants were not fitted to."""
    lines = [f"kernels: # of {of}, fitted by `crossopt calibrate --of {of}` to {data}"]
    for fit in fits:
        lines += [f'  "{fit.kind}":', *_lines(fit)]
    lines += ["sources:", f"  kernels: of {of} fitted to {data}; shapes left out share {_SPLIT[of]}"]
    return "\n".join(lines) + "\n"


def _lines(fit: KernelFit) -> Iterator[str]:
    yield f"    constants: {{{', '.join(f'{name}: {value:.4g}' for name, value in fit.constants.items())}}}"
    yield f"    rows: {len(fit.kernels)}"
    yield f"    error: {fit.error:.4f}"
    if left_out := ", ".join(f'"{name}": {error:.4f}' for name, error in fit.left_out.items()):
        yield f"    left_out: {{{left_out}}}"
    if fit.at_bound:
        yield f"    at_bound: [{', '.join(fit.at_bound)}]"
