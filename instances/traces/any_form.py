"""A trace in any of the forms that are known, found out from what a file holds."""

from pathlib import Path

from crossopt.instances.traces.chakra.graph import imported_chakra
from crossopt.instances.traces.chakra.reading import chakra_in, chakra_json_in, is_chakra
from crossopt.instances.traces.graph_file import trace_in
from crossopt.instances.traces.host import imported_host, is_host_trace
from crossopt.instances.traces.imported import Imported
from crossopt.instances.traces.kineto.events import is_kineto
from crossopt.instances.traces.kineto.graph import KINETO, imported_kineto
from crossopt.instances.traces.packed import bytes_in, json_in, refuse
from crossopt.instances.traces.window import WHOLE, Window

_FORMS = "Kineto JSON (traceEvents), Chakra (.et, or workload_graph in JSON), or a PyTorch host trace (schema and nodes)"
_UNKNOWN = f"this is no trace that is known (name {_FORMS})"


def read_any(path: Path, window: Window = WHOLE) -> Imported:
    """The trace in a file, or what of it is in the window; an InstanceError with every fault."""
    found = _read(path, window)
    if window and found.form != KINETO:
        refuse(path, f"{found.form} has no steps and no times to cut at (cut a trace of PyTorch's profiler, or take all of this one)")
    return found


def _read(path: Path, window: Window) -> Imported:
    data = bytes_in(path)
    is_named = ".et" in path.suffixes
    if is_named or not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
        if not (is_named or is_chakra(data)):
            refuse(path, _UNKNOWN)
        return imported_chakra(path, chakra_in(path, data), "Chakra")
    document = json_in(path, data)
    if is_kineto(document):
        return imported_kineto(path, document, window)
    if is_host_trace(document):
        return imported_host(path, document)
    if isinstance(document, dict) and "workload_graph" in document:
        return imported_chakra(path, chakra_json_in(path, document), "Chakra in JSON")
    if isinstance(document, dict) and "trace" in document:
        return Imported(trace_in(data.decode("utf-8-sig"), str(path)), "graph of a trace")
    return refuse(path, _UNKNOWN)
