"""The command `check` about a folder or a .tar with traces of all NPUs."""

import sys
from pathlib import Path

from crossopt.instances.traces.chakra.recount import recounted
from crossopt.instances.traces.chakra.written import archive_at
from crossopt.reports.commands.traces.replaying import replayed_lines
from crossopt.reports.render.width import fitted
from crossopt.reports.sheets.amounts import several


def check_traces(path: Path, network: tuple[Path, Path] | None) -> bool:
    """Read every trace again, and say whether they hold together, and how long they take on a network."""
    archive = archive_at(path)
    sums, wrong = recounted(archive)
    lines = [
        f"{several(sums.npus, 'trace')} {'was' if sums.npus == 1 else 'were'} read, {several(sums.nodes, 'node')}, "
        "each behind what it waits for",
        f"{sums.flops:,} FLOPs and {sums.moved:,} bytes of computations",
        f"{sums.messages:,} messages of {sums.message_bytes:,} bytes, each sent once and received once",
        f"{sums.collectives:,} collectives of {sums.collective_bytes:,} bytes, in the same order at all members of a group",
        "the bytes of every file are those that were written, by their digests in about.json",
    ]
    if network is not None and not wrong:
        lines += replayed_lines(archive, sums, network)
    for line in [f"REFUSED  {one}" for one in wrong] or lines:
        sys.stdout.write(fitted(f"  {line}\n"))
    sys.stdout.write(fitted(f"{path}: {'refused' if wrong else 'accepted'}\n"))
    return not wrong
