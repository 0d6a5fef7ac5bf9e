"""One run being read: a first look at once, the rest in a thread, anew when files change."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from browse_store.detail import build
from browse_store.feed import Replaced, line_at
from browse_store.runs import run_info, signature
from browse_store.snapshot import Snapshot
from browser.model import Detail, Key, RunInfo
from browser.table import UNSCORED, Table
from judging.lines import FILE, judge_of
from judging.scorer import Verdicts, read_verdicts
from storage import Labels

POLL_SECONDS = 1.0
TELL_SECONDS = 0.5
PAUSE_SECONDS = 0.001
"""Between two blocks, so that a key press need not wait for its turn."""


class Opened:
    """A run, as `browser.model.OpenRun` says it. ``wanted``: the metrics to read first."""

    def __init__(
        self,
        folder: Path,
        eval_set: Path,
        labels: Callable[[], Labels],
        wanted: Sequence[str],
    ) -> None:
        self.run_id = folder.name
        self._folder, self._eval_set, self._labels = folder, eval_set, labels
        self._wanted = list(wanted)
        self._tell: Callable[[], None] = lambda: None
        self._wake = threading.Event()
        self._closed = False
        self.reading = "the first lines"
        self.failure = ""
        self._snapshot = Snapshot(folder, eval_set, labels)
        with contextlib.suppress(Replaced, OSError):
            self._snapshot.first_look(self._wanted)
        self._signature = signature(folder)
        self.info: RunInfo = run_info(folder)

    @property
    def table(self) -> Table:
        return self._snapshot.table

    @property
    def notices(self) -> Sequence[str]:
        failure = [f"{self.run_id}: {self.failure}"] if self.failure else []
        missing = [self.info.missing] if self.info.missing else []
        return [*failure, *missing, *self._snapshot.notices()]

    def start(self, tell: Callable[[], None]) -> None:
        """Begin to read on. ``tell`` is called in the reading thread, a few times a second."""
        self._tell = tell
        threading.Thread(target=self._work, name="browse", daemon=True).start()

    def want(self, metrics: Sequence[str]) -> None:
        """Read these columns as well, soon."""
        new = [name for name in dict.fromkeys(metrics) if name not in self._wanted]
        if new:
            self._wanted += new
            self._wake.set()

    def close(self) -> None:
        """Stop reading."""
        self._closed = True
        self._wake.set()

    # -- the reading thread ---------------------------------------------------------------------

    def _work(self) -> None:
        while not self._closed:
            try:
                self._read_all(self._snapshot)
            except Replaced:
                self._read_anew()
            except OSError as error:
                self._fail(f"cannot be read ({error.strerror})")
            except Exception as error:
                # A fault of ours: it must not end in silence with half of the cases in view.
                self._fail(f"stopped: {type(error).__name__}")
                raise
            self._wake.wait(POLL_SECONDS)
            self._wake.clear()

    def _fail(self, text: str) -> None:
        self.failure = text
        self._tell()

    def _read_all(self, snapshot: Snapshot) -> None:
        """Read until nothing is left for now. Raises Replaced."""
        snapshot.check()
        self.failure = ""
        told = time.monotonic()
        version, was_reading = snapshot.table.version, bool(self.reading)
        shown, judged = snapshot is self._snapshot, False
        while not self._closed:
            snapshot.want(self._wanted)
            name = snapshot.step()
            if not name:
                break
            self.reading = name
            judged |= name == FILE
            if shown and time.monotonic() - told > TELL_SECONDS:
                self._tell()
                told = time.monotonic()
            time.sleep(PAUSE_SECONDS)
        self.reading = ""
        changed = snapshot.table.version != version or was_reading or judged
        if (now := signature(self._folder)) != self._signature:
            self._signature, self.info, changed = now, run_info(self._folder), True
        if shown and changed:
            self._tell()

    def _read_anew(self) -> None:
        """Read the files beside what is shown, and show the new reading when it is whole."""
        fresh = Snapshot(self._folder, self._eval_set, self._labels)
        try:
            self._read_all(fresh)
        except (Replaced, OSError):
            return  # replaced again, or not there for a moment: next time
        if not self._closed:
            self._snapshot = fresh
            self._tell()

    # -- one case -------------------------------------------------------------------------------

    def detail(self, key: Key) -> Detail | None:
        """One case, read now; None when it is not known (any more)."""
        snapshot = self._snapshot
        table, folder = snapshot.table, self._folder
        row = table.row_of(*key)
        if row is None:
            return None
        offset = table.case_offsets[row]
        score_lines = {
            section: line
            for section, places in sorted(table.places.items())
            if places[row] != UNSCORED
            and (line := line_at(folder / "scores" / f"{section}.jsonl", places[row]))
        }
        return build(
            line_at(snapshot.path, table.offsets[row]),
            b"" if offset == UNSCORED else line_at(self._eval_set, offset),
            self._labels() if offset != UNSCORED else {},
            score_lines,
            lambda: self._verdicts(snapshot.verdicts.of(*key)),
            key,
        )

    def _verdicts(self, places: Sequence[int]) -> Verdicts:
        """The verdicts of the run's judge among some lines; none when the file is gone."""
        if not places or not (self._folder / FILE).exists():
            return Verdicts({})
        return read_verdicts(self._folder, judge_of(self._folder), at=places, texts=True)
