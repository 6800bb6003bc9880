"""The runs of a sweep on a cluster of Dask, or on one of this machine alone; the only file that names Dask.

A task writes its answer itself where the folder of the sweep is seen from its machine, and hands it over where it is not; so a result that
the cluster loses costs nothing, and no task that was done is done again. Tasks are handed over a few at a time, so that an end that is
asked for is near. A task that ends two processes is put aside, as by `supervisor`; a limit of time is kept by the engine alone.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, Final

from crossopt.instances.errors import FailedError, RefusedError, install_text
from crossopt.solvers.sweeps.leases import BEAT, beat, release
from crossopt.solvers.sweeps.listed import code_digest
from crossopt.solvers.sweeps.store import FAILED, RESULTS, STUDY, Failure, failure_of, forget_failure, keep, keep_failure, kept_at
from crossopt.solvers.sweeps.supervisor import TRIES, Supervisor
from crossopt.solvers.sweeps.worker import INTERNAL, Job, answer, failed_text, outcome

LOCAL: Final = "local"
_AHEAD: Final = 2
"""Tasks for each thread of the cluster that are handed over at a time."""
_TICK: Final = 0.5


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """What a task came to, with its files where it wrote them into a folder of its own."""

    how: str
    sentence: str
    text: str = ""
    failure: Failure | None = None


def run_on_dask(address: str, supervisor: Supervisor, jobs: Iterable[Job | None]) -> None:
    """What is asked of a supervisor, done by a cluster instead; a RefusedError in words where there is no Dask, or no such cluster.

    All questions are read before, as tasks know the folder by the list of them.
    """
    waiting = deque(sorted((job for job in jobs if job), key=lambda job: -job.size))
    folder, total, running, beaten = supervisor.folder, len(waiting), dict[Any, Job](), monotonic()
    mark = (folder / STUDY).read_text(encoding="utf-8")
    with _client(address, supervisor.workers) as (client, threads, wait):
        try:
            while running or (waiting and not supervisor.stopping()):
                while waiting and not supervisor.stopping() and len(running) < _AHEAD * threads:
                    job = waiting.popleft()
                    if supervisor.is_answered(job):
                        supervisor.answered.add(job.key)
                    elif supervisor.takes(job):  # what another sweep has is left to it
                        running[client.submit(answer_there, job, str(folder.absolute()), mark, key=job.key, pure=False)] = job
                for future in _done(running, wait):
                    _take_in(supervisor, running[future], _task_outcome(future))
                    release(folder, running.pop(future).key)
                if supervisor.stopping() > 1:
                    break
                if monotonic() - beaten > BEAT:
                    beaten = monotonic()
                    beat(folder, [job.key for job in running.values()])
                lost = f", {len(supervisor.failed):,} failed" if supervisor.failed else ""
                supervisor.note(
                    f"{len(supervisor.answered):,} answered of {total:,}, {supervisor.proved:,} proved{lost}, {len(running):,} running"
                )
        finally:
            client.cancel(list(running))
            for job in running.values():
                release(folder, job.key)


@contextmanager
def _client(address: str, workers: int) -> Iterator[tuple[Any, int, Any]]:
    """A client of the cluster, how many threads that has, and what waits for tasks."""
    try:
        import dask  # noqa: PLC0415 - few have it, and nobody else waits for it
        import distributed  # noqa: PLC0415
    except ImportError as error:
        raise RefusedError(f"--dask: this needs Dask (`{install_text('dask')}`, or leave it out)") from error
    cluster_of: Any = distributed  # which states some of its types
    with dask.config.set({"distributed.scheduler.allowed-failures": TRIES - 1}):
        cluster = None
        try:
            if address == LOCAL:
                cluster = cluster_of.LocalCluster(
                    n_workers=workers, threads_per_worker=1, dashboard_address=None, host="127.0.0.1", memory_limit=0
                )
            client = cluster_of.Client(address if cluster is None else cluster, timeout="10s")
        except (OSError, ValueError) as error:
            raise RefusedError(f"--dask {address}: there is no cluster ({' '.join(str(error).split())})") from error
        try:
            threads = sum(client.nthreads().values())
            if not threads:
                raise RefusedError(f"--dask {address}: this cluster has no workers (start some)")
            if strange := sorted(name for name, digest in client.run(code_digest).items() if digest != code_digest()):
                raise RefusedError(f"--dask {address}: {strange[0]} runs another version of crossopt (install this one there)")
            yield client, threads, cluster_of.wait
        finally:
            client.close()
            if cluster is not None:
                cluster.close()


def _done(running: dict[Any, Job], wait: Any) -> list[Any]:  # noqa: ANN401 - a function of Dask
    """The tasks that have ended, after a short wait for one."""
    if not running:
        return []
    try:
        return list(wait(list(running), timeout=_TICK, return_when="FIRST_COMPLETED").done)
    except TimeoutError:
        return []


def _task_outcome(future: Any) -> TaskOutcome:  # noqa: ANN401 - a future of Dask
    """What a task came to, or why the cluster ended it."""
    try:
        outcome: TaskOutcome = future.result()
    except Exception as error:  # noqa: BLE001 - whatever the cluster raises for a task is why it has no answer
        if type(error).__name__ == "KilledWorker":
            return TaskOutcome("failed", "", failure=Failure(f"it ended {TRIES} processes of the cluster", INTERNAL, TRIES, ""))
        sentence, code = failed_text(error)
        return TaskOutcome("failed", sentence, failure=Failure(sentence, code, 1, ""))
    return outcome


def _take_in(supervisor: Supervisor, job: Job, outcome: TaskOutcome) -> None:
    """Write what was handed over."""
    if outcome.how == "lost":
        raise FailedError(outcome.sentence)
    if outcome.text:
        keep(supervisor.folder, job.key, outcome.text)
        forget_failure(supervisor.folder, job.key)
    if outcome.failure:
        keep_failure(supervisor.folder, job.key, outcome.failure)
    (supervisor.failed if outcome.how == "failed" else supervisor.answered).add(job.key)
    supervisor.proved += outcome.how == "proved"


def answer_there(job: Job, folder: str, mark: str) -> TaskOutcome:
    """A run, on a machine of the cluster: into the folder where it is seen, else into one of its own whose files are handed over."""
    study = Path(folder) / STUDY
    if study.is_file() and study.read_text(encoding="utf-8") == mark:
        return TaskOutcome(*outcome(job, Path(folder), answer))
    with TemporaryDirectory(prefix="crossopt-sweep-") as name:
        own = Path(name)
        for part in (RESULTS, FAILED):
            (own / part).mkdir()
        how, sentence = outcome(job, own, answer)
        text = "".join(path.read_text(encoding="utf-8") for path in kept_at(own, job.key))
        return TaskOutcome(how, sentence, text, failure_of(own, job.key))
