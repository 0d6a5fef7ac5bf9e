"""One run from the first question to results.jsonl."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clients.chat_api import Asked, ChatApi, Question
from clients.headers import literal_warnings
from clients.pool import ask_all
from clients.profiles import load_profile
from runner.connect import check_uses, connected, resolved_headers
from runner.errors import Unreachable
from runner.imported import read_answers
from runner.plan import PROFILES, Plan, add_facts, differences, now, refuse
from runner.progress import progress
from runner.prompts import Prompt, ask_prompts
from runner.selection import Job, expand, select
from runner.tally import Tally, printable
from storage import (
    PARTIAL,
    RESULTS,
    ResultsWriter,
    RunConfig,
    StorageError,
    TestResult,
    iter_results,
    locked,
    read_cases,
    read_config,
)

if TYPE_CHECKING:
    from rich.console import Console


def run(plan: Plan, console: Console, prompts: Sequence[Prompt] = ()) -> tuple[Path, Tally]:
    """Make the run; then ask the labelled prompts, too. Returns its folder and what it came to.

    Raises StorageError for unusable input (nothing is written then), Unreachable when the bot does
    not answer at all or fails too often (what came in is kept), KeyboardInterrupt as it comes.
    """
    plan.check()
    cases = read_cases(plan.eval_set, plan.labels_dir)
    selected = select(cases, plan.filters, plan.limit)
    jobs = list(expand(selected, plan.repeat))
    order = [case.id for case in selected]
    if plan.from_jsonl:
        answers = read_answers(plan.from_jsonl, cases, jobs)
        config = plan.config(None, len(cases), len(selected))
        session = _Session(plan, config, console, len(jobs), order)
        with session.opened(resume=False):
            return session.take(answers)
    profile = load_profile(plan.profile, PROFILES)
    check_uses(plan, profile)
    headers = resolved_headers(plan, profile)
    for warning in literal_warnings(
        headers, profile.query, profile.body, f"profile {profile.name}"
    ):
        console.print(warning, soft_wrap=True)
    if plan.retrieval_only and profile.retrieval_only is None:
        console.print(
            f"Profile {profile.name} does not say how to ask for retrieval alone: the bot makes "
            "its answers all the same; they are not recorded.",
            soft_wrap=True,
        )
    config = plan.config(profile, len(cases), len(selected))
    session = _Session(plan, config, console, len(jobs), order)
    session.check_folder()
    with connected(plan, profile, headers) as api:
        try:
            done = session.ask(api, jobs)
            session.ask_prompts(api, prompts)
            return done
        except KeyboardInterrupt:
            console.print(session.how_to_go_on(), soft_wrap=True)
            raise


class _Session:
    """The folder of one run while it is being filled."""

    def __init__(
        self, plan: Plan, config: RunConfig, console: Console, total: int, order: list[str]
    ) -> None:
        self._plan = plan
        self._config = config
        self._console = console
        self._total = total
        self._order = order
        self._kept_errors = 0
        self._last_error: TestResult | None = None
        self._facts: dict[str, dict[str, Any]] | None = None
        self._writer: ResultsWriter | None = None
        self._first_address = ""
        """Where a resumed run was begun, when that is not where it goes on."""

    @property
    def folder(self) -> Path:
        return self._plan.results_dir / self._config.run_id

    def ask(self, api: ChatApi, jobs: Sequence[Job]) -> tuple[Path, Tally]:
        """Ask what is missing. The first question goes out alone: it shows whether there is a bot,
        and what the bot tells of itself completes the configuration, before anything is written."""
        with contextlib.ExitStack() as stack:
            done: set[tuple[str, int]] = set()
            if self._plan.resume:
                writer = stack.enter_context(self.opened(resume=True))
                done = writer.reopen(self._keep)
                self._check_errors(self._kept_errors)
            missing = [job for job in jobs if job.key not in done]
            if not missing:
                return self._complete()
            if self._first_address:
                moved = f"This run was begun at {self._first_address}; it goes on at "
                moved += f"{self._config.api['url']}."
                self._console.print(printable(moved), soft_wrap=True)
            first = api.ask(self._question(missing[0]))
            if first.result.error is not None and not first.connected:
                raise Unreachable(
                    f"no answer from {self._config.api['url']} "
                    f"({printable(first.result.error.message)}); is the bot running?"
                )
            if not self._plan.resume:
                stack.enter_context(self.opened(resume=False))
            self._learn(first)
            answers = ask_all(
                missing[1:],
                lambda job: api.ask(self._question(job)),
                min(self._plan.concurrency, max(1, len(missing) - 1)),
                api.stop,
            )
            return self.take(self._results(first, answers), done=len(done))

    def ask_prompts(self, api: ChatApi, prompts: Sequence[Prompt]) -> None:
        """Ask the labelled prompts, and say how many failed."""
        if not prompts:
            return
        with progress(self._console, len(prompts), 0, verbose=self._plan.verbose) as step:
            errors = ask_prompts(
                api,
                prompts,
                self.folder,
                concurrency=self._plan.concurrency,
                seed=self._plan.seed,
                step=step,
            )
        failed = f"; {errors} failed" if errors else ""
        self._console.print(f"Asked {len(prompts)} labelled prompts, too{failed}.")

    @contextlib.contextmanager
    def opened(self, *, resume: bool) -> Iterator[ResultsWriter]:
        """The run folder, held against a second process that would write into it."""
        plan = self._plan
        self._writer = ResultsWriter(
            plan.results_dir,
            self._config.run_id,
            store_full_text=plan.store_full_text,
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
                yield self._writer
                self._remove_lock()
        except OSError as error:
            raise StorageError(
                f"{self.folder}: cannot be written ({error.strerror}); make room, then go on with "
                f"{self._how_to_resume()}."
            ) from error
        finally:
            with contextlib.suppress(OSError):  # the error that counts is on its way already
                self._writer.close()

    def _remove_lock(self) -> None:
        """A finished run needs no lock file. It goes while it is still held, so that nobody else's
        can be meant: who waits for it sees that it has no name any more and makes one anew."""
        if not (self.folder / PARTIAL).exists():
            with contextlib.suppress(OSError):
                (self.folder / f"{PARTIAL}.lock").unlink()

    def take(self, results: Generator[TestResult], done: int = 0) -> tuple[Path, Tally]:
        """Write results as they come; finish, or stop when too many are errors."""
        assert self._writer is not None
        errors = self._kept_errors
        with (
            progress(self._console, self._total, done, verbose=self._plan.verbose) as step,
            contextlib.closing(results),
        ):
            for result in results:
                self._writer.write_result(result)
                errors += self._note(result)
                step(result)
                self._check_errors(errors)
        return self._complete()

    def _results(self, first: Asked, answers: Generator[Asked]) -> Generator[TestResult]:
        yield first.result
        with contextlib.closing(answers):
            for asked in answers:
                self._learn(asked)
                yield asked.result

    def _complete(self) -> tuple[Path, Tally]:
        assert self._writer is not None
        already = (self.folder / RESULTS).exists() and not (self.folder / PARTIAL).exists()
        path = self._writer.finish(self._order)
        if not already:
            self._config.finished = now()
            self._writer.write_config(self._config)
        return self.folder, Tally(iter_results(path))

    def check_folder(self) -> None:
        """Raises StorageError when a new run would overwrite one, or a resumed one is another."""
        if not self._plan.resume:
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
        if any((self.folder / name).exists() for name in ("config.json", RESULTS, PARTIAL)):
            raise StorageError(
                f"{self.folder}: this run exists; choose another --run-id, or --resume it."
            )

    def _learn(self, asked: Asked) -> None:
        """Complete the configuration from the first good answer; notice a bot that changes.

        Raises StorageError when the first answer of a resumed run comes from another build.
        """
        if asked.result.status != "ok" or asked.facts == self._facts:
            return
        assert self._writer is not None
        told = copy.deepcopy(self._config)
        add_facts(told, asked.facts)
        if not self._config.api.get("fields_seen"):
            told.api["fields_seen"] = asked.fields_seen
            self._config = told
        elif found := differences(self._config, told, facts=True):
            if self._facts is None:
                refuse(self.folder, found)
            if "facts_changed" in self._config.api:
                return
            self._config.api["facts_changed"] = found
            message = "The bot changed during the run: " + "; ".join(found)
            self._console.print(printable(message), style="red", soft_wrap=True)
        self._facts = asked.facts
        self._writer.write_config(self._config)

    def _keep(self, result: TestResult) -> bool:
        kept = result.status == "ok" or not self._plan.retry_errors
        self._kept_errors += kept and self._note(result)
        return kept

    def _note(self, result: TestResult) -> bool:
        """True for an error; the last one is told when the run stops because of them."""
        if result.status == "error":
            self._last_error = result
        return result.status == "error"

    def _question(self, job: Job) -> Question:
        case, plan = job.case, self._plan
        return Question(
            case_id=case.id,
            text=case.question,
            k=plan.k,
            vaults=tuple(case.vaults),
            folders=tuple(case.folders),
            folder_mode=plan.folder_mode,
            user_roles=tuple(case.user_roles),
            repeat=job.repeat,
            seed=plan.seed,
        )

    def _check_errors(self, errors: int) -> None:
        if errors <= self._plan.max_error_rate * self._total:
            return
        more = (
            "" if self._plan.from_jsonl else f"; go on with {self._how_to_resume()} --retry-errors"
        )
        last = self._last_error
        said = f"{last.error.kind}: {last.error.message}" if last and last.error else "unknown"
        raise Unreachable(
            f"{errors} of {self._total} answers are errors, more than --max-error-rate "
            f"{self._plan.max_error_rate:g} allows; stopped. The last: {printable(said)}\n"
            f"What came in is kept in {self.folder}{more}."
        )

    def _how_to_resume(self) -> str:
        return f"--resume --run-id {self._config.run_id}"

    def how_to_go_on(self) -> str:
        """What to tell someone who stopped the run."""
        if self._writer is None:
            return "Stopped before the first answer; nothing was written."
        return f"Stopped; what came in is kept. Go on with {self._how_to_resume()}."
