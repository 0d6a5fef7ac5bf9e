"""One run from the first question to results.jsonl: asking what is missing, stopping, resuming."""

from __future__ import annotations

import contextlib
import os
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from clients.answer_checks import HeardAnswer, lags
from clients.bot import BotAnswer, ChatApi, Question
from clients.demo_server import demo_server
from clients.http import KINDS, RetryPolicy, ask_all, ask_each, finish
from clients.limits import CallLimits
from clients.profile import Profile, fill, load_profile
from clients.proof import RUN_CASES, prove_run
from clients.run_counts import ResultStep, RunTally, result_progress
from clients.run_folder import RunFolder
from clients.run_plan import (
    AnswersReader,
    Ending,
    Job,
    Jobs,
    Pace,
    RunOptions,
    check_uses,
    header_templates,
    select,
)
from clients.safety_prompts import SafetyPrompt, ask_labelled
from clients.secrets import Headers, literal_warnings
from clients.turns import RESUMED, Talks, TurnPlan, plan_of, units_of
from records.cases import TestCase, ignore
from records.errors import Unreachable
from records.files import cut_torn_tail, drop_damaged_lines
from records.fingerprints import asked_digests
from records.labels import has_turns, read_cases
from records.results import TestResult, is_root_failure, read_results
from records.runs import (
    PARTIAL,
    PROFILES,
    RESULTS,
    SAFETY_PARTIAL,
    SAFETY_RESULTS,
    VERSION,
    read_config,
)
from terminal.tables import printable

if TYPE_CHECKING:
    from rich.console import Console


def run(
    options: RunOptions,
    console: Console,
    prompts: Sequence[SafetyPrompt] = (),
    pace: Pace | None = None,
    read_answers: AnswersReader | None = None,
) -> tuple[Path, RunTally]:
    """Make the run; then ask the labelled prompts, too. Returns its folder and what it came to.

    ``pace``: asks in portions, and may pause or stop the run after each of them. ``read_answers``:
    reads the answers of ``from_jsonl``.

    Raises StorageError for unusable input (nothing is written then), Unreachable when the bot does
    not answer at all or fails too often (what came in is kept), KeyboardInterrupt as it comes.
    """
    options.check()
    cases = read_cases(options.eval_set, options.labels_dir)
    selected = select(cases, options.filters, options.limit)
    if options.limit and len(selected) > options.limit:
        console.print(
            f"--limit {options.limit} is inside a conversation, which is asked whole: "
            f"{len(selected):,} cases.",
            soft_wrap=True,
        )
    jobs = Jobs(selected, options.repeat)
    order = [case.id for case in selected]
    if options.from_jsonl:
        assert read_answers is not None, "the caller reads the answers"
        keys = [job.key for job in jobs]
        answers = read_answers(options.from_jsonl, cases, keys, KINDS)
        config = options.config(None, len(cases), order)
        folder = RunFolder(options, config, console, order, asked_digests(cases))
        with folder.opened(resume=False):
            with result_progress(console, len(jobs), 0, verbose=options.verbose) as step:
                checks = _RunChecks(options, folder, len(jobs))
                checks.write(((result,) for result in answers), step)
            return folder.finish()
    profile = load_profile(options.profile, PROFILES).with_settings(options.settings)
    options = options.with_limits(profile)
    check_uses(options, profile)
    later = selected if has_turns(options.eval_set) else ()
    plan = plan_of(
        later,
        profile,
        options.history,
        retrieval_only=options.retrieval_only,
        chosen="history" in options.set_by_user,
    )
    if "history" in options.set_by_user and (plan is None or plan.history is None):
        console.print("history changes nothing: no case is a turn of a conversation.")
    for remark in plan.remarks if plan else ():
        console.print(printable(remark), soft_wrap=True)
    filled, headers = fill(profile, os.environ, header_templates(options.header))
    for warning in literal_warnings(
        headers, profile.query, profile.body, f"profile {profile.name}"
    ):
        console.print(warning, soft_wrap=True)
    if options.retrieval_only and profile.retrieval_only is None:
        console.print(
            f"Profile {profile.name} does not say how to ask for retrieval only. The bot answers "
            "as well; the answers are not recorded.",
            soft_wrap=True,
        )
    config = options.config(
        profile, len(cases), order, pace.plan if pace else None, plan.facts if plan else None
    )
    folder = RunFolder(options, config, console, order, asked_digests(cases))
    folder.check()
    checks = _RunChecks(
        options,
        folder,
        len(jobs),
        selected,
        proves=options.proof,
        with_answers=profile.answer.answers and not options.retrieval_only,
    )
    asking = _Asking(
        options, console, folder, checks, selected, plan, one_at_a_time=profile.one_memory
    )
    with _connected(options, filled, headers) as api:
        try:
            portions: Iterable[_Portion] = pace.portions(selected) if pace else [jobs]
            done = asking.ask(api, portions, pace)
            if checks.doubt:
                console.print(printable(checks.doubt), soft_wrap=True)
            asking.ask_prompts(api, prompts)
            return done
        except KeyboardInterrupt:
            console.print(folder.how_to_go_on(), soft_wrap=True)
            raise


def end(options: RunOptions, console: Console, ending: Ending, asked: Iterable[str]) -> Path:
    """End a run that is paused, without asking anybody; returns its folder.

    ``asked``: its cases. Raises StorageError when there is no such run.
    """
    order = [case.id for case in read_cases(options.eval_set, options.labels_dir)]
    path = options.results_dir / str(options.run_id)
    folder = RunFolder(options, read_config(path), console, order)
    with folder.opened(resume=True) as writer:
        writer.reopen(lambda result: True)
        folder.report_damage(folder.path, writer.damaged_lines)
        folder.finish(ending, asked)
    return path


MOST_LOOKED_AT = 1000
"""Cases among which those of the proof are looked for."""

_Portion = Sequence[Job] | Jobs

_Answers = AsyncIterator[Sequence[BotAnswer]]
"""Of a unit of work; what is written together in one list."""


class _RunChecks:
    """When a run has to stop: too many calls fail, or its first answers cannot be right.

    ``total``: how many results there will be. ``proves``: whether the first answers are looked at
    before the others are asked.
    """

    def __init__(
        self,
        options: RunOptions,
        folder: RunFolder,
        total: int,
        selected: Sequence[TestCase] = (),
        *,
        proves: bool = False,
        with_answers: bool = True,
    ) -> None:
        self._options, self._folder, self._selected = options, folder, selected
        self.total = total
        self._proves, self._with_answers = proves, with_answers
        self._errors = 0
        self._last_error: TestResult | None = None
        self._first_cases: dict[str, TestCase] = {}
        self._first_results: dict[str, TestResult] = {}
        self.doubt = ""
        """What the first answers make doubtful, as a sentence."""

    def choose_first(self, jobs: Iterable[Job], done: set[tuple[str, int]]) -> None:
        """Choose the answerable cases, of those to ask, that the proof looks at."""
        if not self._proves or self._first_cases:
            return
        able = (
            job.case
            for job in islice(jobs, MOST_LOOKED_AT)
            if job.case.answerable is not False and job.key not in done
        )
        self._first_cases = {case.id: case for case in islice(able, RUN_CASES)}

    def count(self, result: TestResult) -> None:
        """Note a result of this run, new or written earlier."""
        if is_root_failure(result):
            self._errors += 1
            self._last_error = result

    def write(self, results: Iterable[Sequence[TestResult]], step: ResultStep) -> None:
        """Write results as they come, some of them together. Raises Unreachable."""
        for together in results:
            self._folder.write(together)
            for result in together:
                self.count(result)
                step(result)
                if result.test_case_id in self._first_cases:
                    self._first_results.setdefault(result.test_case_id, result)
            self._check_proof()
            self.check_errors()

    def check_errors(self) -> None:
        """Raises Unreachable when too many calls have failed."""
        if self._errors <= self._options.max_error_rate * self.total:
            return
        resume = f"; continue with {self._folder.how_to_resume()} --retry-errors"
        more = "" if self._options.from_jsonl else resume
        last = self._last_error
        reason = f"{last.error.kind}: {last.error.message}" if last and last.error else "unknown"
        raise Unreachable(
            f"{self._errors} of {self.total} answers are errors, more than --max-error-rate "
            f"{self._options.max_error_rate:g} allows; stopped. The last: {printable(reason)}\n"
            f"All answers so far are in {self._folder.path}{more}."
        )

    def _check_proof(self) -> None:
        """Raises Unreachable when by the first answers no number of this run can be right."""
        if not self._proves or len(self._first_results) < max(1, len(self._first_cases)):
            return
        self._proves = False
        why = prove_run(
            list(self._first_results.values()),
            self._first_cases,
            (gold.rel_path for case in self._selected for gold in case.gold_supports),
            with_answers=self._with_answers,
        )
        self.doubt = lags(
            [
                HeardAnswer(
                    result.question,
                    result,
                    frozenset(gold.rel_path for gold in self._first_cases[name].gold_supports),
                    self._first_cases[name].conversation,
                )
                for name, result in self._first_results.items()
            ]
        )
        if why:
            raise Unreachable(
                f"{printable(why)}. Stopped; all answers so far are in {self._folder.path}. To "
                f"continue anyway: {self._folder.how_to_resume()} --set proof=false."
            )


class _Asking:
    """The questions of one run on their way to the bot. ``plan``: how turns are asked.

    ``one_at_a_time``: the bot has one memory for all who ask.
    """

    def __init__(
        self,
        options: RunOptions,
        console: Console,
        folder: RunFolder,
        checks: _RunChecks,
        selected: Sequence[TestCase],
        plan: TurnPlan | None,
        *,
        one_at_a_time: bool,
    ) -> None:
        self._options, self._console, self._folder = options, console, folder
        self._checks = checks
        self._selected = selected
        self._plan = plan
        self._one_at_a_time = one_at_a_time
        self._talks = None if plan is None else Talks(plan, self._question)

    def ask(
        self, api: ChatApi, portions: Iterable[_Portion], pace: Pace | None = None
    ) -> tuple[Path, RunTally]:
        """Ask what is missing. The first question goes out alone: it shows whether there is a bot,
        and what the bot tells of itself completes the configuration, before anything is written."""
        folder, checks = self._folder, self._checks
        with contextlib.ExitStack() as stack:
            done: set[tuple[str, int]] = set()
            if self._options.resume:
                writer = stack.enter_context(folder.opened(resume=True))
                done = writer.reopen(self._rule_of_resuming())
                folder.report_damage(folder.path, writer.damaged_lines)
                checks.check_errors()
            step: ResultStep | None = None
            asked: dict[str, None] = {}
            reached = 0
            ending = None
            for portion in portions:
                checks.choose_first(portion, done)
                if pace:
                    asked |= dict.fromkeys(job.case.id for job in portion)
                reached += len(portion)
                checks.total = max(checks.total, reached)
                units = self._units(portion, done)
                first_units = list(islice(units, self._options.limits.concurrency))
                units = chain(first_units, units)
                begun: list[_Answers] = []
                if first_units and step is None:
                    self._warm_up(api, pace)
                    unit = next(units)
                    if self._talks is not None:
                        begun = [self._talks.ask(api, unit)]
                    first = finish(self._first(anext(*begun) if begun else self._alone(api, unit)))
                    if not self._options.resume:
                        stack.enter_context(folder.opened(resume=False))
                    step = stack.enter_context(
                        result_progress(
                            self._console,
                            None if pace and pace.open_ended else checks.total,
                            len(done),
                            verbose=self._options.verbose,
                        )
                    )
                    checks.write(self._results([first]), step)
                if first_units and step is not None:
                    most = 1 if self._one_at_a_time else len(first_units)
                    answers = self._answers(api, begun, units, most)
                    with contextlib.closing(answers):
                        checks.write(self._results(answers), step)
                if pace and (ending := pace.after(folder.path, list(portion))):
                    break
            return folder.finish(ending, asked)

    def _rule_of_resuming(self) -> Callable[[TestResult], bool]:
        """Which results of a resumed run count; those that do are counted at once."""
        turns = {
            case.id
            for case in (self._selected if self._talks else ())
            if case.conversation is not None
        }
        sound = self._sound_turns()

        def counts(result: TestResult) -> bool:
            counted = result.status == "ok" or not self._options.retry_errors
            if result.test_case_id in turns:
                counted = (result.test_case_id, result.repeat) in sound
            if counted:
                self._checks.count(result)
            return counted

        return counts

    def _sound_turns(self) -> set[tuple[str, int]]:
        """The turns of a resumed run that were answered under the history that is there now."""
        if self._talks is None:
            return set()
        cut_torn_tail(self._folder.path / PARTIAL)
        paths = (self._folder.path / name for name in (PARTIAL, RESULTS))
        path = next((path for path in paths if path.exists()), None)
        rows = read_results(path, RESUMED, ignore) if path else ()
        return self._talks.sound(
            (result for _, result in rows),
            self._selected,
            retry_errors=self._options.retry_errors,
        )

    def _units(self, jobs: Iterable[Job], done: set[tuple[str, int]]) -> Iterator[Sequence[Job]]:
        """What is asked one after the other, of all that lacks a result."""
        if self._plan is None:
            return ((job,) for job in jobs if job.key not in done)
        units = units_of(jobs, self._plan)
        return (unit for unit in units if any(job.key not in done for job in unit))

    async def _alone(self, api: ChatApi, unit: Sequence[Job]) -> Sequence[BotAnswer]:
        """The answer of a unit of one job."""
        return (await api.ask(self._question(unit[0])),)

    def _answers(
        self, api: ChatApi, begun: list[_Answers], units: Iterable[Sequence[Job]], most: int
    ) -> Generator[Sequence[BotAnswer]]:
        """The answers of all units, also those that are left of a talk that has ``begun``."""
        if self._talks is None:
            return ask_all(units, partial(self._alone, api), most, api.stop)

        async def ask_for_all(
            answers: _Answers, take: Callable[[Sequence[BotAnswer]], None]
        ) -> None:
            async for together in answers:
                take(together)

        calls = chain(begun, map(partial(self._talks.ask, api), units))
        return ask_each(calls, ask_for_all, most, api.stop)

    def _warm_up(self, api: ChatApi, pace: Pace | None) -> None:
        """Ask what does not count: a bot's first answers are slower than its others."""
        for job in pace.warm_up if pace else ():
            finish(api.ask(self._question(job)))

    async def _first(self, call: Awaitable[Sequence[BotAnswer]]) -> Sequence[BotAnswer]:
        """The first answers of a process. Raises Unreachable when no server answers."""
        url = self._folder.config.api["url"]
        if self._folder.first_address:
            moved = f"This run began at {self._folder.first_address}; it continues at {url}."
            self._console.print(printable(moved), soft_wrap=True)
        answers = await call
        first = answers[0]
        if first.result.error is not None and not first.connected:
            raise Unreachable(
                f"no answer from {url} "
                f"({printable(first.result.error.message)}); is the bot running?"
            )
        return answers

    def _results(self, answers: Iterable[Sequence[BotAnswer]]) -> Iterator[Sequence[TestResult]]:
        for together in answers:
            for asked in together:
                self._folder.learn(asked)
            yield [asked.result for asked in together]

    def ask_prompts(self, api: ChatApi, prompts: Sequence[SafetyPrompt]) -> None:
        """Ask the labelled prompts, and say how many failed."""
        if not prompts:
            return
        for name in (SAFETY_PARTIAL, SAFETY_RESULTS):
            path = self._folder.path / name
            self._folder.report_damage(path, drop_damaged_lines(path))
        with result_progress(self._console, len(prompts), 0, verbose=self._options.verbose) as step:
            errors = ask_labelled(
                api,
                prompts,
                self._folder.path,
                concurrency=self._options.limits.concurrency,
                seed=self._options.seed,
                step=step,
            )
        failed = f"; {errors} failed" if errors else ""
        self._console.print(f"Asked {len(prompts)} labelled prompts as well{failed}.")

    def _question(self, job: Job) -> Question:
        options = self._options
        return Question.of_case(
            job.case,
            options.k,
            folder_mode=options.folder_mode,
            repeat=job.repeat,
            seed=options.seed,
            run_id=self._folder.config.run_id,
            reset=self._one_at_a_time,
        )


@contextlib.contextmanager
def _connected(options: RunOptions, profile: Profile, headers: Headers) -> Iterator[ChatApi]:
    """The client, with the embedded API started before and stopped after where it is asked for."""
    limits = options.limits
    with contextlib.ExitStack() as stack:
        url = (options.demo_url if options.demo else options.api_url) or ""
        if options.demo and not url:
            url = stack.enter_context(demo_server(options.demo_arg, quiet=options.quiet))
        api = ChatApi(
            url,
            profile,
            headers,
            RetryPolicy(limits.timeout, limits.retries, limits.backoff),
            retrieval_only=options.retrieval_only,
            limits=CallLimits(limits.concurrency, limits.rpm, limits.tpm),
            max_bytes=limits.max_bytes,
            user_agent=f"rag-eval-toolkit/{VERSION}",
        )
        stack.callback(api.close)
        yield api
