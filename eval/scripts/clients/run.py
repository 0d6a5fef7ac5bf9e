"""One run from the first question to results.jsonl: asking what is missing, stopping, resuming."""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import AsyncIterator, Awaitable, Generator, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clients.bot import BotAnswer, ChatApi, Question
from clients.demo_server import demo_server
from clients.http import KINDS, RetryPolicy, ask_all, ask_each, finish
from clients.limits import CallLimits
from clients.profile import Profile, fill, load_profile
from clients.proof import RUN_CASES, prove_run
from clients.run_counts import RunTally, Step, progress
from clients.run_plan import (
    AnswersReader,
    Ending,
    Job,
    Jobs,
    Pace,
    RunOptions,
    add_facts,
    check_uses,
    differences,
    header_templates,
    now,
    refuse,
    select,
)
from clients.safety_prompts import SafetyPrompt, ask_labelled
from clients.secrets import Headers, literal_warnings
from clients.turns import RESUMED, Talks, TurnPlan, plan_of, units_of
from records.asked import ASKED
from records.case_file import CaseFile
from records.cases import TestCase, ignore
from records.errors import StorageError, Unreachable
from records.files import clear_leftovers, cut_torn_tail, damage_of, drop_damaged_lines, locked
from records.labels import has_turns, read_cases
from records.results import RunConfig, TestResult, is_root_failure, iter_results, read_results
from records.runs import (
    CONFIG,
    PARTIAL,
    PROFILES,
    RESULTS,
    SAFETY_PARTIAL,
    SAFETY_RESULTS,
    VERSION,
    ResultsWriter,
    read_config,
    results_file,
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
    with CaseFile(options.eval_set, options.labels_dir) as cases:
        return _run(options, console, cases, prompts, pace, read_answers)


def _run(
    options: RunOptions,
    console: Console,
    case_file: CaseFile,
    prompts: Sequence[SafetyPrompt],
    pace: Pace | None,
    read_answers: AnswersReader | None,
) -> tuple[Path, RunTally]:
    """The same; the set is sound. Cases are held one at a time, but for an import or a pace, which
    need them in other orders, and for turns that are asked with those before them."""
    cases: Sequence[TestCase] = list(case_file) if options.from_jsonl or pace else case_file
    selected = select(cases, options.filters, options.limit)
    if options.limit and len(selected) > options.limit:
        console.print(
            f"--limit {options.limit} is inside a conversation, which is asked whole: "
            f"{len(selected):,} cases.",
            soft_wrap=True,
        )
    jobs = Jobs(selected, options.repeat)
    order = selected.ids if isinstance(selected, CaseFile) else [case.id for case in selected]
    if options.from_jsonl:
        assert read_answers is not None, "the caller reads the answers"
        keys = [job.key for job in jobs]
        answers = read_answers(options.from_jsonl, cases, keys, KINDS)
        config = options.config(None, len(cases), order)
        session = _Session(options, config, console, len(jobs), order)
        with session.opened(resume=False):
            return session.take(answers)
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
        console.print("--history changes nothing: no case is a turn of a conversation.")
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
    session = _Session(options, config, console, len(jobs), order)
    session.check_folder()
    session.proves = options.proof
    session.takes_turns(plan, selected, one_at_a_time=profile.one_memory)
    with _connected(options, filled, headers) as api:
        try:
            portions: Iterable[_Portion] = pace.portions(selected) if pace else [jobs]
            done = session.ask(api, portions, pace)
            session.ask_prompts(api, prompts)
            return done
        except KeyboardInterrupt:
            console.print(session.how_to_go_on(), soft_wrap=True)
            raise


def end(options: RunOptions, console: Console, ending: Ending, asked: Iterable[str]) -> Path:
    """End a run that is paused, without asking anybody; returns its folder.

    ``asked``: its cases. Raises StorageError when there is no such run.
    """
    order = [case.id for case in read_cases(options.eval_set, options.labels_dir)]
    folder = options.results_dir / str(options.run_id)
    session = _Session(options, read_config(folder), console, len(order), order)
    with session.opened(resume=True) as writer:
        writer.reopen(lambda result: True)
        session.tell_damage(session.folder, writer.damaged_lines)
        session.finish(ending, asked)
    return folder


MOST_LOOKED_AT = 1000
"""Cases among which those of the proof are looked for."""

_Portion = Sequence[Job] | Jobs

_Answers = AsyncIterator[Sequence[BotAnswer]]
"""Of a unit of work; what is written together in one list."""


class _Session:
    """The folder of one run while it is being filled."""

    def __init__(
        self, options: RunOptions, config: RunConfig, console: Console, total: int, order: list[str]
    ) -> None:
        self._options = options
        self._config = config
        self._console = console
        self._total = total
        self._order = order
        self._errors = 0
        self._last_error: TestResult | None = None
        self._facts: dict[str, dict[str, Any]] | None = None
        self._writer: ResultsWriter | None = None
        self._first_address = ""
        """Where a resumed run was begun, when that is not where it goes on."""
        self._plan: TurnPlan | None = None
        self._talks: Talks | None = None
        self._selected: Sequence[TestCase] = ()
        self._turns: frozenset[str] = frozenset()
        self._sound: set[tuple[str, int]] = set()
        """Results of turns that a resumed run can go on from."""
        self._one_at_a_time = False
        self.proves = False
        """Whether the first answers are looked at before the others are asked."""
        self._first_cases: dict[str, TestCase] = {}
        self._first_results: dict[str, TestResult] = {}

    def takes_turns(
        self, plan: TurnPlan | None, selected: Sequence[TestCase], *, one_at_a_time: bool
    ) -> None:
        """Ask by this plan. ``one_at_a_time``: the bot has one memory for all who ask."""
        self._plan, self._selected, self._one_at_a_time = plan, selected, one_at_a_time
        if plan is not None:
            self._talks = Talks(plan, self._question)
            self._turns = frozenset(case.id for case in selected if case.conversation is not None)

    @property
    def folder(self) -> Path:
        return self._options.results_dir / self._config.run_id

    def ask(
        self, api: ChatApi, portions: Iterable[_Portion], pace: Pace | None = None
    ) -> tuple[Path, RunTally]:
        """Ask what is missing. The first question goes out alone: it shows whether there is a bot,
        and what the bot tells of itself completes the configuration, before anything is written."""
        with contextlib.ExitStack() as stack:
            done: set[tuple[str, int]] = set()
            if self._options.resume:
                writer = stack.enter_context(self.opened(resume=True))
                self._find_sound()
                done = writer.reopen(self._keep)
                self.tell_damage(self.folder, writer.damaged_lines)
                self._check_errors()
            step: Step | None = None
            asked: dict[str, None] = {}
            reached = 0
            ending = None
            for portion in portions:
                self._choose_first(portion, done)
                if pace:
                    asked |= dict.fromkeys(job.case.id for job in portion)
                reached += len(portion)
                self._total = max(self._total, reached)
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
                        stack.enter_context(self.opened(resume=False))
                    step = stack.enter_context(
                        progress(
                            self._console,
                            None if pace and pace.open_ended else self._total,
                            len(done),
                            verbose=self._options.verbose,
                        )
                    )
                    self._write(self._results([first]), step)
                if first_units and step is not None:
                    most = 1 if self._one_at_a_time else len(first_units)
                    answers = self._answers(api, begun, units, most)
                    with contextlib.closing(answers):
                        self._write(self._results(answers), step)
                if pace and (ending := pace.after(self.folder, list(portion))):
                    break
            return self.finish(ending, asked)

    def tell_damage(self, path: Path, lines: int) -> None:
        """Say how many lines of a file were no JSON."""
        if lines:
            self._console.print(printable(damage_of(path, lines)), soft_wrap=True)

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
        calls = chain(begun, map(partial(self._talks.ask, api), units))
        return ask_each(calls, aiter, most, api.stop)

    def _find_sound(self) -> None:
        """Look which turns of a resumed run were answered under the history that stands there."""
        if self._talks is None:
            return
        cut_torn_tail(self.folder / PARTIAL)
        paths = (self.folder / name for name in (PARTIAL, RESULTS))
        path = next((path for path in paths if path.exists()), None)
        rows = read_results(path, RESUMED, ignore) if path else ()
        self._sound = self._talks.sound(
            (result for _, result in rows),
            self._selected,
            retry_errors=self._options.retry_errors,
        )

    def _warm_up(self, api: ChatApi, pace: Pace | None) -> None:
        """Ask what does not count: a bot's first answers are slower than its others."""
        for job in pace.warm_up if pace else ():
            finish(api.ask(self._question(job)))

    async def _first(self, call: Awaitable[Sequence[BotAnswer]]) -> Sequence[BotAnswer]:
        """The first answers of a process. Raises Unreachable when no server answers."""
        if self._first_address:
            moved = f"This run began at {self._first_address}; it continues at "
            moved += f"{self._config.api['url']}."
            self._console.print(printable(moved), soft_wrap=True)
        answers = await call
        first = answers[0]
        if first.result.error is not None and not first.connected:
            raise Unreachable(
                f"no answer from {self._config.api['url']} "
                f"({printable(first.result.error.message)}); is the bot running?"
            )
        return answers

    def ask_prompts(self, api: ChatApi, prompts: Sequence[SafetyPrompt]) -> None:
        """Ask the labelled prompts, and say how many failed."""
        if not prompts:
            return
        for name in (SAFETY_PARTIAL, SAFETY_RESULTS):
            path = self.folder / name
            self.tell_damage(path, drop_damaged_lines(path))
        with progress(self._console, len(prompts), 0, verbose=self._options.verbose) as step:
            errors = ask_labelled(
                api,
                prompts,
                self.folder,
                concurrency=self._options.limits.concurrency,
                seed=self._options.seed,
                step=step,
            )
        failed = f"; {errors} failed" if errors else ""
        self._console.print(f"Asked {len(prompts)} labelled prompts as well{failed}.")

    @contextlib.contextmanager
    def opened(self, *, resume: bool) -> Iterator[ResultsWriter]:
        """The run folder, locked so that no second process writes into it."""
        options = self._options
        self._writer = ResultsWriter(
            options.results_dir,
            self._config.run_id,
            store_full_text=options.store_full_text,
            resume=resume,
        )
        try:
            with locked(self.folder / PARTIAL):
                if not resume:
                    try:
                        self._check_new()  # another process may have made this run meanwhile
                    except StorageError:
                        self._remove_lock()
                        raise
                    self._writer.write_config(self._config)
                elif any(self.folder.glob(f".{CONFIG}.*")):  # left by a kill, or a judge's
                    with locked(self.folder / CONFIG):
                        clear_leftovers(self.folder / CONFIG)
                yield self._writer
                self._remove_lock()
        except OSError as error:
            raise StorageError(
                f"{self.folder}: cannot be written ({error.strerror}); make room, then continue "
                "with "
                f"{self._how_to_resume()}."
            ) from error
        finally:
            with contextlib.suppress(OSError):  # the error that counts is on its way already
                self._writer.close()

    def _remove_lock(self) -> None:
        """A finished run needs no lock file. It goes while it is still held, so that it cannot be
        another process's: one that waits for it sees that its name is gone and makes a new one."""
        if not (self.folder / PARTIAL).exists():
            with contextlib.suppress(OSError):
                (self.folder / f"{PARTIAL}.lock").unlink()

    def take(self, results: Iterable[TestResult]) -> tuple[Path, RunTally]:
        """Write results that are there already; finish, or stop when too many are errors."""
        with progress(self._console, self._total, 0, verbose=self._options.verbose) as step:
            self._write(((result,) for result in results), step)
        return self.finish()

    def _write(self, results: Iterable[Sequence[TestResult]], step: Step) -> None:
        """Write results as they come, some of them together; stop when too many are errors."""
        assert self._writer is not None
        for together in results:
            self._writer.write_together(together)
            for result in together:
                self._errors += self._note(result)
                step(result)
                if result.test_case_id in self._first_cases:
                    self._first_results.setdefault(result.test_case_id, result)
            self._check_proof()
            self._check_errors()

    def _results(self, answers: Iterable[Sequence[BotAnswer]]) -> Iterator[Sequence[TestResult]]:
        for together in answers:
            for asked in together:
                self._learn(asked)
            yield [asked.result for asked in together]

    def finish(
        self, ending: Ending | None = None, asked: Iterable[str] = ()
    ) -> tuple[Path, RunTally]:
        """Finish the run, unless it only pauses. ``asked``: the cases of a run that was stopped."""
        assert self._writer is not None
        if ending is not None and ending.kind == "paused":
            self._writer.close()
            partial = self.folder / PARTIAL
            path = partial if partial.exists() else results_file(self.folder)
            return self.folder, RunTally(iter_results(path))
        if ending is not None:  # before the rename: a run without it would count as a whole one
            self._config.run |= dict(ending.facts)
            if ending.kind == "stopped":
                ids = set(asked)
                listed = [case_id for case_id in self._order if case_id in ids]
                self._config.run |= {"stopped": ending.reason, "selected": len(ids), ASKED: listed}
            self._writer.write_config(self._config)
        already = results_file(self.folder).exists() and not (self.folder / PARTIAL).exists()
        path = self._writer.finish(self._order)
        if not already:
            self._config.finished = now()
            self._writer.write_config(self._config)
        return self.folder, RunTally(iter_results(path))

    def check_folder(self) -> None:
        """Raises StorageError when a new run would overwrite one, or a resumed one is another."""
        if not self._options.resume:
            self._check_new()
            return
        if not self.folder.is_dir():
            raise StorageError(f"{self.folder}: there is no such run to resume.")
        old = read_config(self.folder)
        refuse(self.folder, differences(old, self._config))
        old.run = self._config.run  # concurrency and time-outs may be others
        old.tool_version = self._config.tool_version
        old.run_id = self._config.run_id  # a folder that was copied or renamed is a run by itself
        if (address := self._config.api.get("url")) != old.api.get("url"):
            self._first_address = str(old.api.get("url"))
            old.api["url"] = address  # a bot may come back anywhere: its facts tell who it is
        self._config = old

    def _check_new(self) -> None:
        """Raises StorageError when the folder holds anything of a run already."""
        if any((self.folder / name).exists() for name in (CONFIG, RESULTS, PARTIAL)):
            raise StorageError(
                f"{self.folder}: this run exists already; choose another --run-id, or --resume it."
            )

    def _learn(self, asked: BotAnswer) -> None:
        """Complete the configuration from the first good answer; notice a bot that changes.

        Raises StorageError when the first answer of a resumed run comes from another build.
        """
        if asked.result.status != "ok" or asked.facts == self._facts:
            return
        assert self._writer is not None
        learned = copy.deepcopy(self._config)
        add_facts(learned, asked.facts)
        if not self._config.api.get("fields_seen"):
            learned.api["fields_seen"] = asked.fields_seen
            self._config = learned
        elif changes := differences(self._config, learned, facts=True):
            if self._facts is None:
                refuse(self.folder, changes)
            if "facts_changed" in self._config.api:
                return
            self._config.api["facts_changed"] = changes
            message = "The bot changed during the run: " + "; ".join(changes)
            self._console.print(printable(message), style="red", soft_wrap=True)
        self._facts = asked.facts
        self._writer.write_config(self._config)

    def _keep(self, result: TestResult) -> bool:
        counted = result.status == "ok" or not self._options.retry_errors
        if result.test_case_id in self._turns:
            counted = (result.test_case_id, result.repeat) in self._sound
        self._errors += counted and self._note(result)
        return counted

    def _note(self, result: TestResult) -> bool:
        """True for a call that failed; the last one is reported when they stop the run."""
        if failed := is_root_failure(result):
            self._last_error = result
        return failed

    def _question(self, job: Job) -> Question:
        case, options = job.case, self._options
        return Question(
            case_id=case.id,
            text=case.question,
            k=options.k,
            vaults=tuple(case.vaults),
            folders=tuple(case.folders),
            folder_mode=options.folder_mode,
            user_roles=tuple(case.user_roles),
            repeat=job.repeat,
            seed=options.seed,
            run_id=self._config.run_id,
            reset=self._one_at_a_time,
        )

    def _check_errors(self) -> None:
        errors = self._errors
        if errors <= self._options.max_error_rate * self._total:
            return
        more = (
            ""
            if self._options.from_jsonl
            else f"; continue with {self._how_to_resume()} --retry-errors"
        )
        last = self._last_error
        reason = f"{last.error.kind}: {last.error.message}" if last and last.error else "unknown"
        raise Unreachable(
            f"{errors} of {self._total} answers are errors, more than --max-error-rate "
            f"{self._options.max_error_rate:g} allows; stopped. The last: {printable(reason)}\n"
            f"All answers so far are in {self.folder}{more}."
        )

    def _choose_first(self, jobs: Iterable[Job], done: set[tuple[str, int]]) -> None:
        """Choose the answerable cases, of those to ask, that the proof looks at."""
        if not self.proves or self._first_cases:
            return
        able = (
            job.case
            for job in islice(jobs, MOST_LOOKED_AT)
            if job.case.answerable is not False and job.key not in done
        )
        self._first_cases = {case.id: case for case in islice(able, RUN_CASES)}

    def _check_proof(self) -> None:
        """Raises Unreachable when by the first answers no number of this run can be right."""
        if not self.proves or len(self._first_results) < max(1, len(self._first_cases)):
            return
        self.proves = False
        known = (gold.rel_path for case in self._selected for gold in case.gold_supports)
        why = prove_run(
            list(self._first_results.values()),
            self._first_cases,
            known,
            with_answers=not self._options.retrieval_only,
        )
        if why:
            raise Unreachable(
                f"{printable(why)}. Stopped; all answers so far are in {self.folder}. To continue "
                f"anyway: {self._how_to_resume()} --no-proof."
            )

    def _how_to_resume(self) -> str:
        return f"--resume --run-id {self._config.run_id}"

    def how_to_go_on(self) -> str:
        """What to tell someone who stopped the run."""
        if self._writer is None:
            return "Stopped before the first answer; nothing was written."
        return f"Stopped; all answers so far are kept. Continue with {self._how_to_resume()}."


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
