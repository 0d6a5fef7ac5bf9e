"""A grid of settings as a race: blocks of cases, settings in turns, and who is still in.

Nothing but the runs is state: a sweep that was killed is played again from its runs' results, so
that it comes to the same end. Quality is scored by the ordinary scorers on what is there.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clients.demo_server import DemoServers, started
from clients.profile import load_profile
from clients.run import end, run
from clients.run_plan import Ending, Job, Jobs, RunOptions, select
from decisions.change import higher_is_better, measure, range_of
from decisions.effects import compact
from decisions.pairing import ClusterCodes
from extras.sweep import race
from extras.sweep.grid import Grid, Setting, check_fields, slug
from extras.sweep.order import portions, random_order
from extras.sweep.record import SettingOutcome, Sweep, read_sweep, sweep_file, write_sweep
from extras.sweep.scoring import PartScorer, failing_cases, replies_are_equal, results_so_far
from ragmetrics.stats.means import generator
from records.cases import TestCase
from records.clusters import AUTO, read_clusters
from records.errors import Problem, StorageError, Unreachable
from records.files import sha256_file
from records.labels import read_cases
from records.results import TestResult
from records.runs import CONFIG, PARTIAL, PROFILES, results_file
from records.targets import declared_documents
from scorers.contract import ScoringJob
from terminal.tables import counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console

    Floats = NDArray[np.float64]

_LATENCY, _COST, _ANSWERED = "pipeline.latency_ms", "pipeline.cost_usd", "pipeline.answered"
_BLOCK_SEED = "turns of block"


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
class _Turns:
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


class _Runner:
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
            folder, _ = run(options, console, pace=_Turns(self.plan, blocks, warm_up, ending))
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


class SweepRun:
    """A sweep while it goes on."""

    def __init__(self, options: SweepOptions, console: Console) -> None:
        """Raises StorageError for what cannot be asked, before anything is."""
        self._options, self._console = options, console
        common = options.run
        common.check()
        grid = options.grid
        profile = load_profile(common.profile, PROFILES)
        check_fields(grid, profile, common)
        if grid.command and common.demo:
            raise StorageError("command needs --api-url URL; for the demo use demo_args.")
        self._job = ScoringJob(common.results_dir, common.eval_set, common.labels_dir, common.seed)
        measured = (
            *grid.quality,
            _LATENCY,
            _COST,
            _ANSWERED,
            *(limit.name for limit in grid.limits),
        )
        self._scorer = PartScorer(dict.fromkeys(measured), self._job)
        cases = select(read_cases(common.eval_set, common.labels_dir), common.filters, common.limit)
        self._cases = cases
        self._blocks, self._aside = self._cut(cases)
        fields = list(profile.settings)
        self._servers = DemoServers(quiet=common.quiet)
        self.runners = [
            _Runner(number, setting, options, fields, self._servers)
            for number, setting in enumerate(grid.settings, 1)
        ]
        answered = race.limit_of(f"answered >= {1 - common.max_error_rate:g}")
        self._rules = race.Rules(
            tuple(setting.name for setting in grid.settings),
            frozenset([grid.baseline]),
            (*grid.limits, replace(answered, name=_ANSWERED)),
            largest=self._largest(),
        )
        self._looks = 0
        self._baseline_worse = False
        self.path = sweep_file(common.results_dir, str(common.run_id))
        self._check_file(profile.sha256)

    def run(self) -> Sweep:
        """Ask, drop, and say how it ended. Raises Unreachable when the bot is not there."""
        with self._servers:
            return self._end(*self._race())

    def _race(self) -> tuple[str, str]:
        """How it ended, in a word and in words."""
        ended, reason = "all asked", "every case was asked"
        for number, block in enumerate(self._blocks_in_turn()):
            still = self._racing
            if over := self._over_budget(len(still) * len(block)):
                ended, reason = "budget", over
                break
            rng = generator(self._options.run.seed, f"{_BLOCK_SEED} {number}")
            for at in rng.permutation(len(still)).tolist():
                still[at].ask(block, self._console)
                self._check_connection(still[at], block)
            for runner in still:
                runner.take(self._scorer)
            self._looks = number + 1
            self._look()
            sweep = self._sweep("", "")
            write_sweep(self.path, sweep)
            contenders = self._contenders
            self._console.print(
                f"Block {number + 1} of {len(self._blocks)}: {counted(self._calls, 'call')}, "
                f"{counted(len(contenders), 'setting')} may still be the best.",
                soft_wrap=True,
            )
            if not contenders:
                ended, reason = "no setting", "no setting keeps the limits"
                break
            if len(contenders) == 1 and self._baseline_settled:
                ended, reason = "decided", f"only {contenders[0].setting.name} is left"
                break
            if not self._options.ask_all and self._is_futile():
                ended = "futile"
                reason = f"{len(contenders)} settings show no clear difference, and the "
                reason += "remaining cases would hardly change that (--ask-all asks them)"
                break
        left = self._contenders
        if ended == "all asked" and len(left) > 1:
            reason += f"; {len(left)} settings show no clear difference"
        return ended, reason

    def _blocks_in_turn(self) -> Iterator[Sequence[Job]]:
        """The blocks of the race and, where the baseline leads others at its end, the cases that
        were set aside to confirm another winner: they are the last block then."""
        yield from list(self._blocks)
        leads = self._sweep("", "").best == self._options.grid.baseline
        if self._apart and leads and len(self._contenders) > 1:
            cases = list(dict.fromkeys(job.case.id for job in self._aside))
            chosen = [case for case in self._cases if case.id in {*cases}]
            self._blocks.append(list(Jobs(chosen, self._options.run.repeat)))
            yield self._blocks[-1]

    def _end(self, ended: str, reason: str) -> Sweep:
        """Finish and score the runs, confirm the winner, and record it all."""
        for runner in self._racing:
            runner.finish(len(self._cases), f"the sweep ended: {reason}", self._console)
        folders = [runner.folder for runner in self.runners if runner.blocks]
        if replies_are_equal(folders):
            reason += "; all settings gave the same answers and passages: check that the bot "
            reason += "reads the settings of the grid"
        for folder in folders:
            self._scorer.score_whole(folder)
        sweep = self._sweep(ended, reason)
        failing = failing_cases(
            {runner.setting.name: runner.folder for runner in self.runners if runner.blocks}
        )
        for outcome in sweep.settings:
            outcome.failing = failing.get(outcome.name)
        sweep.compare = self._commands(sweep)
        sweep.confirmed = self._confirm(sweep)
        write_sweep(self.path, sweep)
        return sweep

    # who is in

    @property
    def _racing(self) -> list[_Runner]:
        return [runner for runner in self.runners if runner.state == "racing"]

    @property
    def _contenders(self) -> list[_Runner]:
        """Those that may still be the best."""
        baseline = self._options.grid.baseline
        return [
            runner
            for runner in self._racing
            if not runner.reason and not (self._baseline_worse and runner.setting.name == baseline)
        ]

    @property
    def _baseline_settled(self) -> bool:
        contender = self._contenders[0].setting.name
        return (
            self._baseline_worse
            or contender == self._options.grid.baseline
            or any(runner.reason for runner in self._racing)
        )

    def _look(self) -> None:
        """Drop what breaks a limit, then what is worse than the best of the others."""
        baseline = self._options.grid.baseline
        for runner in self._racing:
            codes = self._codes_of(runner.asked_ids)
            reasons = [
                race.broken(limit, runner.values[limit.name], codes, self._rules)
                for limit in self._rules.limits
            ]
            if reason := "; ".join(filter(None, reasons)):
                self._drop(runner, "broken", reason)
        among = [runner.setting.name for runner in self._racing if not runner.reason]
        if not among:
            return
        codes = self._codes_of(self._racing[0].asked_ids)
        quality = {runner.setting.name: self._quality(runner.values) for runner in self._racing}
        rules = replace(self._rules, protected=frozenset())
        self._baseline_worse = False
        by_name = {runner.setting.name: runner for runner in self._racing}
        for drop in race.dropped(quality, codes, rules, among):
            if drop.setting == baseline:
                self._baseline_worse = True
            else:
                by_name[drop.setting].dropped = drop
                self._drop(by_name[drop.setting], "worse", drop.reason)

    def _is_futile(self) -> bool:
        """Whether nothing will be told apart any more, if it goes on as it has until now."""
        among = [runner.setting.name for runner in self._contenders]
        quality = {runner.setting.name: self._quality(runner.values) for runner in self._contenders}
        asked = self._contenders[0].asked_ids
        share = len(asked) / sum(len({job.case.id for job in block}) for block in self._blocks)
        return race.futile(quality, self._codes_of(asked), self._rules, among, share)

    def _drop(self, runner: _Runner, state: str, reason: str) -> None:
        """Out of the race; the baseline goes on being asked, but cannot win."""
        if runner.setting.name == self._options.grid.baseline:
            runner.reason = reason
            return
        runner.state, runner.reason = state, reason
        runner.finish(len(self._cases), f"dropped from the sweep: {reason}", self._console)

    def _quality(self, values: Mapping[str, Floats]) -> Floats:
        """The weighted quality of each case by its scores, higher is better."""
        weights = self._options.grid.quality
        signs = {name: 1.0 if higher_is_better(name) else -1.0 for name in weights}
        parts = [weights[name] * signs[name] * values[name] for name in weights]
        total: Floats = sum(parts[1:], parts[0])
        return total

    def _largest(self) -> float | None:
        widths = [range_of(name) for name in self._options.grid.quality]
        if None in widths:
            return None
        weights = self._options.grid.quality.values()
        return sum(w * (width or 0.0) for w, width in zip(weights, widths, strict=True))

    @cached_property
    def _codes(self) -> ClusterCodes:
        return ClusterCodes(read_clusters(self._options.run.eval_set, AUTO, declared_documents()))

    def _codes_of(self, ids: Sequence[str]) -> NDArray[np.int64] | None:
        import numpy as np

        return compact(self._codes.of(np.fromiter(map(hash, ids), np.int64, len(ids))))

    # what is asked

    def _cut(self, cases: Sequence[TestCase]) -> tuple[list[list[Job]], list[Job]]:
        """The blocks of the race, and the cases that are to confirm it: set aside where they are
        no more than half of all, else the last ones of the race, which may be asked again."""
        order = random_order(cases, self._options.run.seed)
        count = 0
        number = len(order)
        while number and count < self._options.confirm:
            number -= 1
            count += len(order[number])
        last = [case for cluster in order[number:] for case in cluster]
        self._apart = 0 < 2 * count <= len(cases)
        if self._apart:
            order = order[:number]
        looks = race.LOOKS - self._apart  # one look is kept for them, should the baseline lead
        blocks = [list(Jobs(part, self._options.run.repeat)) for part in portions(order, looks)]
        return blocks, list(Jobs(last, 1))

    def _over_budget(self, calls: int) -> str:
        """Why the next block is not asked; "" when there is enough left."""
        options = self._options
        spent, paid = self._calls, sum(runner.cost for runner in self.runners)
        if options.max_calls is not None and spent + calls > options.max_calls:
            return f"another block of {counted(calls, 'call')} is more than --max-calls leaves"
        expected = paid * calls / spent if spent else 0.0
        if options.max_cost is not None and paid + expected > options.max_cost:
            return f"another block, of about {expected:.4f} USD, is more than --max-cost leaves"
        return ""

    @property
    def _calls(self) -> int:
        return sum(runner.calls for runner in self.runners)

    def _check_connection(self, runner: _Runner, block: Sequence[Job]) -> None:
        """Raises Unreachable when a bot was gone in a block: no setting is dropped for that."""
        ids = {job.case.id for job in block}
        gone = sum(
            result.error is not None and result.error.kind == "connection"
            for result in runner.results()
            if result.test_case_id in ids
        )
        if gone > self._options.run.max_error_rate * len(block):
            raise Unreachable(
                f"setting {runner.setting.name}: {gone} of {len(block)} calls found no bot; all "
                f"answers so far are kept. Continue with {self.how_to_resume()} --retry-errors."
            )

    def how_to_resume(self) -> str:
        return f"--resume --run-id {self._options.run.run_id}"

    # what is recorded

    def _check_file(self, profile_sha256: str) -> None:
        common = self._options.run
        plan = {
            "grid_sha256": hashlib.sha256(self._options.grid_file.read_bytes()).hexdigest(),
            "eval_set_sha256": sha256_file(common.eval_set),
            "profile_sha256": profile_sha256,
            "seed": common.seed,
            "repeat": common.repeat,
            "filter": sorted(common.filters),
            "limit": common.limit,
            "confirm": self._options.confirm,
        }
        self._plan = plan
        if not common.resume:
            if self.path.exists():
                raise StorageError(
                    f"{self.path}: this sweep exists already; continue it with "
                    f"{self.how_to_resume()}, or "
                    "choose another --run-id."
                )
            write_sweep(self.path, self._sweep("", ""))
            return
        if not self.path.exists():
            raise StorageError(f"{self.path}: there is no such sweep to resume.")
        old = read_sweep(self.path).plan
        if changes := [name for name in plan if old.get(name) != plan[name]]:
            raise StorageError(
                f"sweep {common.run_id} cannot continue, because it began with other settings: "
                f"{', '.join(changes)} changed. Begin a new one; nothing was changed."
            )

    def _sweep(self, ended: str, reason: str) -> Sweep:
        grid = self._options.grid
        outcomes = [self._outcome(runner) for runner in self.runners]
        contenders = {runner.setting.name for runner in self._contenders}
        quality = {
            runner.setting.name: self._quality(runner.values)
            for runner in self.runners
            if runner.values
        }
        best = race.best_of(quality, [name for name in quality if name in contenders])
        for outcome, runner in zip(outcomes, self.runners, strict=True):
            if best is None or not runner.values:
                continue
            if outcome.name == best:
                outcome.state = "best" if ended else outcome.state
            elif ended and outcome.state == "racing":
                is_worse = outcome.baseline and self._baseline_worse
                outcome.state = "broken" if runner.reason else "worse" if is_worse else "left"
            seen = runner.dropped.seen if runner.dropped else None
            if outcome.name != best and runner in self._racing:
                codes = self._codes_of(runner.asked_ids)
                pair = quality[best], quality[outcome.name]
                seen = race.held_against(*pair, codes, self._rules, len(self._racing))
            if seen is not None:
                outcome.difference = seen.difference
                outcome.interval = (seen.low, seen.high)
        self._mark_pareto(outcomes)
        return Sweep(
            sweep_id=str(self._options.run.run_id),
            plan=self._plan,
            settings=outcomes,
            quality=dict(grid.quality),
            limits=[limit.text for limit in self._rules.limits],
            looks=self._looks,
            ended=ended,
            reason=reason,
            calls=self._calls,
            planned=len(grid.settings) * sum(map(len, self._blocks)),
            best=best,
        )

    def _outcome(self, runner: _Runner) -> SettingOutcome:
        import numpy as np

        outcome = SettingOutcome(
            name=runner.setting.name,
            run=runner.run_id,
            values=dict(runner.setting.values),
            state=runner.state,
            reason=runner.reason,
            baseline=runner.setting.name == self._options.grid.baseline,
            cases=len(runner.asked_ids),
            calls=runner.calls,
        )
        if runner.values:
            latency, cost = runner.values[_LATENCY], runner.values[_COST]
            outcome.failed = int((runner.values[_ANSWERED] < 1).sum())
            own = self._quality(runner.values)
            outcome.quality = float(np.nanmean(own)) if np.isfinite(own).any() else None
            outcome.latency_p50_ms = race.Limit("", "", "<=", 0, 50).value(latency)
            outcome.latency_p95_ms = race.Limit("", "", "<=", 0, 95).value(latency)
            outcome.cost_usd = race.Limit("", "", "<=", 0).value(cost)
        return outcome

    def _mark_pareto(self, outcomes: Sequence[SettingOutcome]) -> None:
        points = {
            outcome.name: tuple(
                None if value is None else float(f"{value:.9g}")  # means of the same differ by bits
                for value in (-outcome.quality, outcome.latency_p50_ms, outcome.cost_usd)
            )
            for outcome in outcomes
            if outcome.quality is not None and outcome.state != "broken"
        }
        ahead = race.pareto(points)
        for outcome in outcomes:
            outcome.pareto = outcome.name in ahead

    def _commands(self, sweep: Sweep) -> list[str]:
        """How what is left is compared, as commands."""
        baseline = next(outcome for outcome in sweep.settings if outcome.baseline)
        left = [o for o in sweep.settings if o.state in ("best", "left") and not o.baseline]
        names = ",".join(name.partition(".")[2] for name in sweep.quality)
        if not left:
            return []
        runs = " ".join([baseline.run, *(outcome.run for outcome in left)])
        return [f"python eval/scripts/compare_runs.py {runs} --metrics {names}"]

    def _confirm(self, sweep: Sweep) -> dict[str, Any] | None:
        """Winner and baseline on cases that were set aside, or on some of the race's, asked anew;
        None without any."""
        baseline = self._options.grid.baseline
        if not self._aside or sweep.best is None or sweep.best == baseline:
            return None
        ids = list(dict.fromkeys(job.case.id for job in self._aside))
        by_name = {runner.setting.name: runner for runner in self.runners}
        asked = {case_id for name in (baseline, sweep.best) for case_id in by_name[name].asked_ids}
        again = len(asked.intersection(ids))
        reason = f"asked to confirm a sweep, {again} of {counted(len(ids), 'case')} once more"
        quality, runs = [], []
        for name in (baseline, sweep.best):
            runner = by_name[name]
            folder = runner.ask_apart("confirm", self._aside, self._console, reason)
            quality.append(self._quality(self._scorer.scores(folder, ids)))
            self._scorer.score_whole(folder)
            runs.append(folder.name)
        effect, _ = measure(
            quality[0], quality[1], self._codes_of(ids), largest=self._rules.largest
        )
        return {
            "cases": effect.n,
            "again": again,
            "baseline": effect.base,
            "best": effect.new,
            "difference": effect.delta,
            "interval": effect.t_interval,
            "runs": runs,
        }
