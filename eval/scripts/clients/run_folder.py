"""The folder of one run while it is filled: locked, written line by line, and finished."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clients.bot import BotAnswer
from clients.run_counts import RunTally
from clients.run_plan import Ending, RunOptions, add_facts, differences, now, refuse
from records.asked import ASKED
from records.errors import StorageError
from records.files import clear_leftovers, damage_of, locked
from records.results import RunConfig, TestResult, iter_results
from records.runs import CONFIG, PARTIAL, RESULTS, ResultsWriter, read_config, results_file
from terminal.tables import printable

if TYPE_CHECKING:
    from rich.console import Console


class RunFolder:
    """The folder of one run while it is filled.

    ``order``: the ids of the cases as the results will be ordered. ``asked``: the fingerprint of
    what each case asks, which its results get.
    """

    def __init__(
        self,
        options: RunOptions,
        config: RunConfig,
        console: Console,
        order: Sequence[str],
        asked: Mapping[str, str] | None = None,
    ) -> None:
        self._options = options
        self._asked = asked or {}
        self.config = config
        self._console = console
        self._order = order
        self._facts: dict[str, dict[str, Any]] | None = None
        self._writer: ResultsWriter | None = None
        self.first_address = ""
        """Where a resumed run was begun, when that is not where it goes on."""

    @property
    def path(self) -> Path:
        return self._options.results_dir / self.config.run_id

    def check(self) -> None:
        """Raises StorageError when a new run would overwrite one, or a resumed one is another."""
        if not self._options.resume:
            self._check_new()
            return
        if not self.path.is_dir():
            raise StorageError(f"{self.path}: there is no such run to resume.")
        old = read_config(self.path)
        refuse(self.path, differences(old, self.config))
        old.run = self.config.run  # concurrency and time-outs may be others
        old.tool_version = self.config.tool_version
        old.run_id = self.config.run_id  # a folder that was copied or renamed is a run by itself
        if (address := self.config.api.get("url")) != old.api.get("url"):
            self.first_address = str(old.api.get("url"))
            old.api["url"] = address  # a bot may come back anywhere: its facts tell who it is
        self.config = old

    def _check_new(self) -> None:
        """Raises StorageError when the folder holds anything of a run already."""
        if any((self.path / name).exists() for name in (CONFIG, RESULTS, PARTIAL)):
            raise StorageError(
                f"{self.path}: this run exists already; choose another --run-id, or --resume it."
            )

    @contextlib.contextmanager
    def opened(self, *, resume: bool) -> Iterator[ResultsWriter]:
        """The run folder, locked so that no second process writes into it."""
        options = self._options
        self._writer = ResultsWriter(
            options.results_dir,
            self.config.run_id,
            store_full_text=options.store_full_text,
            resume=resume,
        )
        try:
            with locked(self.path / PARTIAL):
                if not resume:
                    try:
                        self._check_new()  # another process may have made this run meanwhile
                    except StorageError:
                        self._remove_lock()
                        raise
                    self._writer.write_config(self.config)
                elif any(self.path.glob(f".{CONFIG}.*")):  # left by a kill, or a judge's
                    with locked(self.path / CONFIG):
                        clear_leftovers(self.path / CONFIG)
                yield self._writer
                self._remove_lock()
        except OSError as error:
            raise StorageError(
                f"{self.path}: cannot be written ({error.strerror}); make room, then continue "
                "with "
                f"{self.how_to_resume()}."
            ) from error
        finally:
            with contextlib.suppress(OSError):  # the error that counts is on its way already
                self._writer.close()

    def _remove_lock(self) -> None:
        """A finished run needs no lock file. It goes while it is still held, so that it cannot be
        another process's: one that waits for it sees that its name is gone and makes a new one."""
        if not (self.path / PARTIAL).exists():
            with contextlib.suppress(OSError):
                (self.path / f"{PARTIAL}.lock").unlink()

    def write(self, together: Sequence[TestResult]) -> None:
        """Add the results of one question or of one conversation."""
        assert self._writer is not None
        for result in together:
            result.asked = self._asked.get(result.test_case_id, result.asked)
        self._writer.write_together(together)

    def learn(self, asked: BotAnswer) -> None:
        """Complete the configuration from the first good answer; notice a bot that changes.

        Raises StorageError when the first answer of a resumed run comes from another build.
        """
        if asked.result.status != "ok" or asked.facts == self._facts:
            return
        assert self._writer is not None
        learned = copy.deepcopy(self.config)
        add_facts(learned, asked.facts)
        if not self.config.api.get("fields_seen"):
            learned.api["fields_seen"] = asked.fields_seen
            self.config = learned
        elif changes := differences(self.config, learned, facts=True):
            if self._facts is None:
                refuse(self.path, changes)
            if "facts_changed" in self.config.api:
                return
            self.config.api["facts_changed"] = changes
            message = "The bot changed during the run: " + "; ".join(changes)
            self._console.print(printable(message), style="red", soft_wrap=True)
        self._facts = asked.facts
        self._writer.write_config(self.config)

    def finish(
        self, ending: Ending | None = None, asked: Iterable[str] = ()
    ) -> tuple[Path, RunTally]:
        """Finish the run, unless it only pauses. ``asked``: the cases of a run that was stopped."""
        assert self._writer is not None
        if ending is not None and ending.kind == "paused":
            self._writer.close()
            partial = self.path / PARTIAL
            path = partial if partial.exists() else results_file(self.path)
            return self.path, RunTally(iter_results(path))
        if ending is not None:  # before the rename: a run without it would count as a whole one
            self.config.run |= dict(ending.facts)
            if ending.kind == "stopped":
                ids = set(asked)
                listed = [case_id for case_id in self._order if case_id in ids]
                self.config.run |= {"stopped": ending.reason, "selected": len(ids), ASKED: listed}
            self._writer.write_config(self.config)
        already = results_file(self.path).exists() and not (self.path / PARTIAL).exists()
        path = self._writer.finish(self._order)
        if not already:
            self.config.finished = now()
            self._writer.write_config(self.config)
        return self.path, RunTally(iter_results(path))

    def report_damage(self, path: Path, lines: int) -> None:
        """Say how many lines of a file were no JSON."""
        if lines:
            self._console.print(printable(damage_of(path, lines)), soft_wrap=True)

    def how_to_resume(self) -> str:
        return f"--resume --run-id {self.config.run_id}"

    def how_to_go_on(self) -> str:
        """The message for someone who stopped the run, with the way to continue."""
        if self._writer is None:
            return "Stopped before the first answer; nothing was written."
        return f"Stopped; all answers so far are kept. Continue with {self.how_to_resume()}."
