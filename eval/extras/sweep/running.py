"""A grid of settings as a race: blocks of cases, settings in turns, and who is still in.

Nothing but the runs is state: a sweep that was killed is played again from its runs' results, so
that it comes to the same end. Quality is scored by the ordinary scorers on what is there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from clients.profile import load_profile
from clients.run_plan import Job, Jobs, select
from decisions.change import measure
from extras.sweep import race
from extras.sweep.contest import ANSWERED, COST, LATENCY, Contest
from extras.sweep.grid import check_fields
from extras.sweep.order import portions, random_order
from extras.sweep.record import Sweep, read_sweep, sweep_file, write_sweep
from extras.sweep.scoring import PartScorer, failing_cases, replies_are_equal
from extras.sweep.servers import DemoServers
from extras.sweep.setting_run import SettingState, SweepOptions
from ragmetrics.stats.means import generator
from records.cases import TestCase
from records.errors import StorageError, Unreachable
from records.files import sha256_file
from records.labels import read_cases
from records.runs import PROFILES
from scorers.contract import ScoringJob
from terminal.tables import counted

if TYPE_CHECKING:
    from rich.console import Console

_BLOCK_SEED = "turns of block"


class SweepProgress:
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
        limits = (limit.name for limit in grid.limits)
        measured = (*grid.quality, LATENCY, COST, ANSWERED, *limits)
        self._scorer = PartScorer(dict.fromkeys(measured), self._job)
        cases = select(read_cases(common.eval_set, common.labels_dir), common.filters, common.limit)
        self._cases = cases
        self._blocks, self._aside = self._cut(cases)
        fields = list(profile.settings)
        self._servers = DemoServers(quiet=common.quiet)
        self.runners = [
            SettingState(number, setting, options, fields, self._servers)
            for number, setting in enumerate(grid.settings, 1)
        ]
        self._contest = Contest(grid, self.runners, common.max_error_rate, common.eval_set)
        self._looks = 0
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
            still = self._contest.racing
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
            for runner in self._contest.look():
                why = f"dropped from the sweep: {runner.reason}"
                runner.finish(len(self._cases), why, self._console)
            sweep = self._sweep("", "")
            write_sweep(self.path, sweep)
            contenders = self._contest.contenders
            self._console.print(
                f"Block {number + 1} of {len(self._blocks)}: {counted(self._calls, 'call')}, "
                f"{counted(len(contenders), 'setting')} may still be the best.",
                soft_wrap=True,
            )
            if not contenders:
                ended, reason = "no setting", "no setting keeps the limits"
                break
            if len(contenders) == 1 and self._contest.baseline_settled:
                ended, reason = "decided", f"only {contenders[0].setting.name} is left"
                break
            if not self._options.ask_all and self._contest.is_futile(self._planned):
                ended = "futile"
                reason = f"{len(contenders)} settings show no clear difference, and the "
                reason += "remaining cases would hardly change that (--ask-all asks them)"
                break
        left = self._contest.contenders
        if ended == "all asked" and len(left) > 1:
            reason += f"; {len(left)} settings show no clear difference"
        return ended, reason

    def _blocks_in_turn(self) -> Iterator[Sequence[Job]]:
        """The blocks of the race and, where the baseline leads others at its end, the cases that
        were set aside to confirm another winner: they are the last block then."""
        yield from list(self._blocks)
        leads = self._sweep("", "").best == self._options.grid.baseline
        if self._apart and leads and len(self._contest.contenders) > 1:
            cases = list(dict.fromkeys(job.case.id for job in self._aside))
            chosen = [case for case in self._cases if case.id in {*cases}]
            self._blocks.append(list(Jobs(chosen, self._options.run.repeat)))
            yield self._blocks[-1]

    def _end(self, ended: str, reason: str) -> Sweep:
        """Finish and score the runs, confirm the winner, and record it all."""
        for runner in self._contest.racing:
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
    def _planned(self) -> int:
        """Cases of the whole race."""
        return sum(len({job.case.id for job in block}) for block in self._blocks)

    @property
    def _calls(self) -> int:
        return sum(runner.calls for runner in self.runners)

    def _check_connection(self, runner: SettingState, block: Sequence[Job]) -> None:
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
        outcomes, best = self._contest.outcomes(ended=bool(ended))
        return Sweep(
            sweep_id=str(self._options.run.run_id),
            plan=self._plan,
            settings=outcomes,
            quality=dict(grid.quality),
            limits=[limit.text for limit in self._contest.rules.limits],
            looks=self._looks,
            ended=ended,
            reason=reason,
            calls=self._calls,
            planned=len(grid.settings) * sum(map(len, self._blocks)),
            best=best,
        )

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
            quality.append(self._contest.quality(self._scorer.scores(folder, ids)))
            self._scorer.score_whole(folder)
            runs.append(folder.name)
        effect, _ = measure(
            quality[0],
            quality[1],
            self._contest.clusters_of(ids),
            largest=self._contest.rules.largest,
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
