"""One setting of a race: its run, what was asked of it, and what was measured so far."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clients.run import end, run
from clients.run_plan import Ending, Job, RunOptions
from extras.sweep import race
from extras.sweep.grid import Grid, Setting, slug
from extras.sweep.scoring import PartScorer, results_so_far
from extras.sweep.servers import DemoServers, started
from records.cases import TestCase
from records.errors import Problem
from records.results import TestResult
from records.runs import CONFIG, PARTIAL, results_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console

    Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SweepOptions:
    """``run``: what every run has in common, the sweep's id as its run id. ``max_calls``,
    ``max_cost``: budgets, None without one. ``confirm``: cases that are set aside for the end.
    ``ask_all``: go on where nothing is expected to be told apart any more."""

    grid: Grid
    grid_file: Path
    run: RunOptions
    max_calls: int | None = None
    max_cost: float | None = None
    confirm: int = 0
    ask_all: bool = False


@dataclass
class Turns:
    """Asks a run its first blocks, and pauses."""

    plan: Mapping[str, Any]
    blocks: Sequence[Sequence[Job]]
    warm_up: Sequence[Job] = ()
    ending: Ending = field(default_factory=lambda: Ending("paused"))
    open_ended = False

    def portions(self, cases: Sequence[TestCase]) -> Iterable[Sequence[Job]]:
        return [[job for block in self.blocks for job in block]]

    def after(self, folder: Path, portion: Sequence[Job]) -> Ending:
        return self.ending

    def summary(self) -> str:
        return ""


class SettingState:
    """One setting: its run folder, what was measured of it so far."""

    def __init__(
        self,
        number: int,
        setting: Setting,
        options: SweepOptions,
        fields: list[str],
        servers: DemoServers,
    ) -> None:
        self.setting, self._servers = setting, servers
        own = setting.options(options.run, fields)
        self.run_id = f"{options.run.run_id}.{number:02d}-{slug(setting.name)}"
        self._options = replace(own, run_id=self.run_id, max_error_rate=1.0)
        self._grid = options.grid
        self._retries = options.run.retry_errors
        self.values: dict[str, Floats] = {}
        self.blocks: list[list[Job]] = []
        self.state, self.reason = "racing", ""
        self.cost = 0.0
        self.dropped: race.Drop | None = None

    @property
    def folder(self) -> Path:
        return self._options.results_dir / self.run_id

    @property
    def asked_ids(self) -> list[str]:
        return list(dict.fromkeys(job.case.id for block in self.blocks for job in block))

    @property
    def calls(self) -> int:
        return sum(map(len, self.blocks))

    @property
    def plan(self) -> dict[str, Any]:
        return {"sweep": self.run_id.rpartition(".")[0], "setting": dict(self.setting.values)}

    def ask(self, block: Sequence[Job], console: Console) -> None:
        """Ask what is missing of a block; a bot that is not needed is not started."""
        self.blocks.append(list(block))
        there = (self.folder / CONFIG).exists()
        if there and not self._missing():
            return
        self.asking(self._options, self.blocks, console, Ending("paused"))
        self._retries = False

    def asking(
        self,
        options: RunOptions,
        blocks: Sequence[Sequence[Job]],
        console: Console,
        ending: Ending,
    ) -> Path:
        """Ask the blocks with this setting, after a warm-up with the cases asked last."""
        resumes = (options.results_dir / str(options.run_id) / CONFIG).exists()
        options = replace(options, resume=resumes, retry_errors=resumes and self._retries)
        warm_up = list(blocks[-1])[-self._grid.warm_up :] if self._grid.warm_up else []
        if options.demo:
            options = replace(options, demo_url=self._servers.url(options.demo_arg))
        with contextlib.ExitStack() as stack:
            if self._grid.command:
                words = self._grid.command_of(self.setting)
                stack.enter_context(started(words, options.api_url or "", self._grid.wait_s))
            folder, _ = run(options, console, pace=Turns(self.plan, blocks, warm_up, ending))
        return folder

    def ask_apart(self, suffix: str, block: Sequence[Job], console: Console, reason: str) -> Path:
        """Ask a block in a run of its own."""
        options = replace(self._options, run_id=f"{self.run_id[:80]}.{suffix}")
        return self.asking(options, [block], console, Ending("stopped", reason))

    def _missing(self) -> bool:
        keys = {job.key for block in self.blocks for job in block}
        damaged: list[Problem] = []  # taken out, or told, when the run is resumed
        for result in results_so_far(self.folder, damaged.append):
            if result.status == "ok" or not self._retries:
                keys.discard((result.test_case_id, result.repeat))
        return bool(keys or damaged)

    def take(self, scorer: PartScorer) -> None:
        """Score the last block."""
        import numpy as np

        new = list(dict.fromkeys(job.case.id for job in self.blocks[-1]))
        for name, values in scorer.scores(self.folder, new).items():
            before = self.values.get(name, np.zeros(0))
            self.values[name] = np.concatenate([before, values])
        self.cost = sum(result.cost_usd or 0.0 for result in self.results())

    def results(self) -> Iterator[TestResult]:
        return results_so_far(self.folder)

    def finish(self, cases: int, reason: str, console: Console) -> None:
        """Make an ordinary run of the folder: complete with all ``cases``, else stopped."""
        ending = Ending("complete") if len(self.asked_ids) == cases else Ending("stopped", reason)
        if (self.folder / PARTIAL).exists() or not results_file(self.folder).exists():
            end(self._options, console, ending, self.asked_ids)
