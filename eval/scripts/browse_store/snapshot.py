"""One reading of a run's files from their start, kept up to date while they only grow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from browse_store.feed import Feed, Replaced
from browse_store.rows import (
    CaseReader,
    Faults,
    ResultReader,
    ScoreReader,
    VerdictIndex,
    metrics_of,
)
from browse_store.runs import dataset_hash, results_path
from browser.table import Table
from judging.lines import FILE
from storage import PARTIAL, Labels, sha256_file

FIRST_ROWS = 100


class Snapshot:
    """A table, and the readers that fill it. Used by one thread at a time.

    ``check`` raises Replaced when what was read does not count any more; a new Snapshot is then
    needed.
    """

    def __init__(self, folder: Path, eval_set: Path, labels: Callable[[], Labels]) -> None:
        self.path = results_path(folder)
        self.table = Table()
        self._folder, self._eval_set = folder, eval_set
        self._faults = Faults()
        self._set_notice = ""
        live = self.path.name == PARTIAL
        self._has_results, self._has_set = self.path.exists(), eval_set.exists()
        feed = Feed(self.path, final=not live)
        self._results = ResultReader(feed, self.table, self._faults)
        self._cases = CaseReader(Feed(eval_set), self.table, labels, self._faults)
        self.verdicts = VerdictIndex(Feed(folder / FILE, final=False), self._faults)
        self._scores: list[ScoreReader] = []
        self._signatures: dict[str, tuple[int, int, int]] = {}

    def first_look(self, wanted: Sequence[str]) -> None:
        """Read enough for a first screen: a hundred rows with the wanted scores."""
        self.check()
        self.want(wanted)
        while self._has_results and self.table.count < FIRST_ROWS and self._results.step():
            pass
        for reader in self._scores:
            if reader.metrics:
                self._score_step(reader)

    def check(self) -> None:
        """Find new score files. Raises Replaced when a file was written anew or taken away."""
        if results_path(self._folder) != self.path or self.path.exists() != self._has_results:
            raise Replaced
        if self.verdicts.feed.offset and not self.verdicts.feed.path.exists():
            raise Replaced
        scored = sorted(self._folder.glob("scores/*.jsonl"))
        if not self._signatures.keys() <= {path.stem for path in scored}:
            raise Replaced
        for path in scored:
            found = _signature(path)
            known = self._signatures.get(path.stem)
            if known is not None and known != found:
                raise Replaced
            if found is not None and known is None:
                self._signatures[path.stem] = found
                for name in metrics_of(path):
                    self.table.metrics.setdefault(name, path.stem)
                self._read_section(path.stem, ())

    def want(self, wanted: Sequence[str]) -> None:
        """Give a reader to each section with metrics that are wanted and have no column yet."""
        missing = self.table.missing(wanted)
        for section in dict.fromkeys(self.table.metrics[name] for name in missing):
            metrics = [name for name in missing if self.table.metrics[name] == section]
            waiting = [one for one in self._scores if one.section == section and not one.begun]
            for reader in waiting:
                self._scores.remove(reader)
                metrics += reader.metrics
            self._read_section(section, metrics)

    def _read_section(self, section: str, metrics: Sequence[str]) -> None:
        feed = Feed(self._folder / "scores" / f"{section}.jsonl")
        self._scores.append(ScoreReader(feed, section, metrics, self.table, self._faults))

    def step(self) -> str:
        """Read one block of what is needed most; its name, empty when all is read for now."""
        for name, read in self._readers():
            if read():
                return name
        return ""

    def _readers(self) -> Iterator[tuple[str, Callable[[], bool]]]:
        if self._has_results:
            yield self.path.name, self._results.step
        self._scores.sort(key=lambda reader: not reader.metrics)
        for reader in list(self._scores):
            if self._score_step(reader):
                yield f"scores/{reader.section}.jsonl", lambda: True
            self._scores.remove(reader)
        if self._has_set:
            yield self._eval_set.name, self._cases.step
            self._compare_set()
        if self.verdicts.feed.path.exists():
            yield FILE, self.verdicts.step

    def _score_step(self, reader: ScoreReader) -> bool:
        return reader.step(complete=self._results.feed.ended or not self._has_results)

    def _compare_set(self) -> None:
        """Once: is the set the one that the run was asked with?"""
        if not self._set_notice:
            asked = dataset_hash(self._folder)
            same = not asked or sha256_file(self._eval_set) == asked
            text = f"{self._eval_set.name} is not the set this run was asked with, or was changed"
            self._set_notice = " " if same else text

    def notices(self) -> list[str]:
        """Unreadable lines, and a set that is another one by now; a sentence each."""
        said = self._faults.say()
        return [*said, self._set_notice] if self._set_notice.strip() else said


def _signature(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
