"""What of a study is left to be asked, told run by run while its questions are still read, so that the first need not wait for the last."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from crossopt.solvers.sweeps.reading import Reader
from crossopt.solvers.sweeps.standing import Standing, in_shard, is_left, listed_of, point_of, row_of, standing_at, standings
from crossopt.solvers.sweeps.store import Listed, all_kept, make_store, open_store
from crossopt.solvers.sweeps.worker import Job


@dataclass(slots=True)
class Unanswered:
    """The runs of a study, or of a part of it, that a folder has no answer of."""

    folder: Path
    reader: Reader
    mark: str
    listed: Listed | None
    """What the folder says is asked, where it is this study; known of any other study when all of its questions were read."""
    shard: tuple[int, int] | None = None
    retry: tuple[str, ...] = ()
    before: dict[str, Standing] = field(default_factory=dict)
    """What each run had come to when it was looked at."""
    spoiled: dict[str, int] = field(default_factory=dict)
    """How many files of a run that is left are there that do not count."""

    def jobs(self) -> Iterator[Job | None]:
        """Each run that is left, once; and None after each question, as reading takes a while.

        An InstanceError where a value is at fault comes before any of them, one where several values do not go together in the end; from
        where the first such fault is seen no run is told any more.
        """
        return self._of_new() if self.listed is None else self._of_known(self.listed)

    def keys(self, listed: Listed) -> list[str]:
        """Of the study's runs, or of those of the part."""
        return [row.key for row in listed.rows if in_shard(row.key, self.shard)]

    def _of_known(self, listed: Listed) -> Iterator[Job | None]:
        """Of a study that is listed no question is read but those that are left."""
        open_store(self.folder, listed)
        self.before = standings(self.folder, listed, set(self.keys(listed)))
        left = {key for key in self.before if self._is_left(key)}
        for number in sorted({row.question for row in listed.rows if row.key in left}):
            yield from self._told(number, left)
        self._refuse_faults()

    def _of_new(self) -> Iterator[Job | None]:
        self.reader.look_ahead()
        make_store(self.folder, self.reader.study.file.title)
        found, seen, left = all_kept(self.folder), set[str](), set[str]()
        for number in self.reader.numbers():
            asked, runs = self.reader.read(number) or (None, ())
            for run in runs if asked else ():
                new = run.key not in seen and in_shard(run.key, self.shard)
                seen.add(run.key)
                if new and asked:
                    self.before[run.key] = standing_at(self.folder, row_of(run), point_of(asked), found.get(run.key, ()))
                    left.update([run.key] if self._is_left(run.key) else [])
            yield from self._told(number, left)
        self._refuse_faults()
        self.listed = listed_of(self.reader.sweep(), self.mark)
        open_store(self.folder, self.listed)

    def _is_left(self, key: str) -> bool:
        one = self.before[key]
        if one.files:
            self.spoiled[key] = one.files
        return is_left(one, self.retry)

    def _told(self, number: int, left: set[str]) -> Iterator[Job | None]:
        """The runs of a question that are left, and are so no more."""
        read = self.reader.read(number)
        if read is not None and not self.reader.faults:
            asked, runs = read
            for run in runs:
                if run.key in left:
                    left.remove(run.key)
                    yield Job(run.key, f"{asked.name}, {run.engine}", asked.kind, asked.document, run.engine, run.limits, asked.size)
        yield None

    def _refuse_faults(self) -> None:
        if self.reader.faults:
            self.reader.sweep("what was answered before they were seen is kept")
