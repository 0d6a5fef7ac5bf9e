"""Asking conversations: what a turn is asked with, what of a resumed run still holds.

A unit of work is one repeat of one conversation: its turns are asked in order, units side by side.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import orjson

from clients.bot import BotAnswer, ChatApi, Question
from clients.profile import Profile
from clients.run_options import HISTORIES, History
from clients.run_plan import Job
from records.cases import ChatMessage, TestCase
from records.conversations import conversations_of, has_conversations
from records.errors import StorageError
from records.histories import earlier_by_id, messages_before
from records.results import EARLIER_TURN_FAILED, ErrorInfo, TestResult
from terminal.tables import counted

FIXED = "fixed"
"""How a case with a history of its own is asked."""

RESUMED = (
    "test_case_id",
    "repeat",
    "status",
    "error",
    "answer",
    "asked_with",
    "history_sha256",
    "session",
)
"""The fields of a stored result that decide whether a conversation can continue from it."""

_NAMED = 5

_ATTEMPT = re.compile(r"-(\d+)-[0-9a-f]{16}")


@dataclass(frozen=True)
class TurnPlan:
    """How the turns of a run are asked. ``history``: None for a set without conversations;
    ``remarks``: what is to be said before the first call; ``earlier``: by the id of a case, the
    turns before it."""

    history: History | None
    sends: bool
    """Whether the request has a place for messages."""
    remembers: bool
    """Whether the bot itself remembers the conversation, by a session or until it is reset."""
    names_sessions: bool = False
    """Whether the bot gives a session its name, with its first answer."""
    one_memory: bool = False
    """Whether the bot has one memory, which is reset between conversations."""
    remarks: tuple[str, ...] = ()
    earlier: Mapping[str, Sequence[TestCase]] = field(default_factory=dict)

    @property
    def facts(self) -> dict[str, str]:
        """The part that belongs to a run's configuration."""
        return {} if self.history is None else {"history": self.history}

    @property
    def chained(self) -> bool:
        """Whether a turn needs the bot's answers to the turns before it."""
        return self.history == "live"

    @property
    def in_one_go(self) -> bool:
        """Whether a conversation cannot be continued once it was broken off."""
        return self.chained and self.remembers

    def text(self, case: TestCase) -> str:
        """The question in the form that is sent."""
        alone = self.history == "alone" and case.conversation is not None
        return (case.question_alone or case.question) if alone else case.question

    def messages(self, case: TestCase, answers: Mapping[str, str]) -> list[ChatMessage]:
        """The earlier turns as the request contains them. ``answers``: those of the bot, by case
        id."""
        if not self.sends:
            return []
        if case.history is None and self.history not in ("live", "replay"):
            return []

        def answer_of(turn: TestCase) -> str:
            return answers[turn.id] if self.chained else turn.reference_answer or ""

        return messages_before(case, self.earlier.get(case.id, ()), answer_of)

    def asked_with(self, case: TestCase) -> str | None:
        """The history that the result of a case records; None for a question by itself."""
        if case.history is not None:
            return FIXED if self.sends else "none"
        return self.history if case.conversation is not None else None


def plan_of(
    cases: Sequence[TestCase],
    profile: Profile,
    history: str,
    *,
    retrieval_only: bool,
    chosen: bool = True,
) -> TurnPlan | None:
    """How the selected cases are asked; None when none has a history. ``chosen``: the user named
    the history. Raises StorageError for what cannot be asked in that way."""
    sends = "history" in profile.uses
    names_sessions = "session" in profile.answer.response or profile.begin is not None
    plan = TurnPlan(None, sends, profile.remembers, names_sessions, profile.one_memory)
    remarks: list[str] = []
    fixed = sum(case.history is not None for case in cases)
    if fixed and not sends:
        remarks.append(
            f"Profile {profile.name} has no {{history}}; asked without the set's history: "
            f"{counted(fixed, 'case')}."
        )
    if not has_conversations(cases):
        return replace(plan, remarks=tuple(remarks)) if fixed else None
    mode: History = next(each for each in HISTORIES if each == history)
    if mode in ("live", "replay") and not sends and not profile.remembers:
        remarks.append(
            f"Profile {profile.name} has neither {{history}} nor {{session}}: every turn is asked "
            "without the earlier turns (--set history=none). If the bot supports it, add one of "
            "them to [request.body] of the profile."
        )
        mode = "none"
    earlier = earlier_by_id(cases)
    if mode == "live" and retrieval_only and earlier:
        if chosen:
            raise StorageError(
                "--retrieval-only asks for no answers, and --set history=live needs them: choose "
                "--set history=replay, alone or none."
            )
        mode = "replay"
        remarks.append(
            "--retrieval-only asks for no answers, so later turns are asked with the set's "
            "reference answers (--set history=replay)."
        )
    if mode == "replay":
        if not sends:
            raise StorageError(
                f"--set history=replay: profile {profile.name} knows only {{session}}, so the bot "
                "goes by its own answers; add {history} to its request, or choose another history."
            )
        _check_references(earlier.values())
    if mode == "alone":
        remarks += _not_written_out(cases)
    return replace(plan, history=mode, remarks=tuple(remarks), earlier=earlier)


def _check_references(earlier: Iterable[Sequence[TestCase]]) -> None:
    needed = {turn.id: turn for turns in earlier for turn in turns}
    missing = [turn.id for turn in needed.values() if not (turn.reference_answer or "").strip()]
    if missing:
        more = f" and {len(missing) - _NAMED:,} more" if len(missing) > _NAMED else ""
        raise StorageError(
            "--set history=replay: these turns have a later turn but no reference_answer to send "
            f"before it: {', '.join(missing[:_NAMED])}{more}; write them, or choose another "
            "history."
        )


def _not_written_out(cases: Sequence[TestCase]) -> Iterator[str]:
    turns = sum(case.conversation is not None and case.whole_question() is None for case in cases)
    if turns:
        yield (
            "Asked as in the set, because they cannot be understood alone and have no "
            f"question_alone: {counted(turns, 'turn')}."
        )


def units_of(jobs: Iterable[Job], plan: TurnPlan) -> Iterator[list[Job]]:
    """The jobs in their order; the turns of one repeat of a conversation together where each needs
    the answers before it."""

    def unit(job: Job) -> tuple[object, ...]:
        return job.case.conversation or job.key, job.repeat

    if plan.chained:
        yield from (list(group) for _, group in groupby(jobs, unit))
    else:
        yield from ([job] for job in jobs)


Key = tuple[str, int]


class Talks:
    """Asks the units of a run, any number of them side by side."""

    def __init__(self, plan: TurnPlan, question: Callable[[Job], Question]) -> None:
        self._plan, self._question = plan, question
        self._stored: dict[Key, TestResult] = {}
        self._attempts: dict[Key, int] = {}
        """By conversation and repeat, the number of the last session that is known of."""

    def sound(
        self, results: Iterable[TestResult], cases: Sequence[TestCase], *, retry_errors: bool
    ) -> set[Key]:
        """The stored results of turns that are still valid: those with all turns before them, asked
        with the very answers that stand there. Of a conversation in a session all or none."""
        turns = {case.id: case for case in cases if case.conversation is not None}
        stored = {(r.test_case_id, r.repeat): r for r in results if r.test_case_id in turns}
        repeats = sorted({repeat for _, repeat in stored})
        for conversation in conversations_of(turns.values()) if self._plan.chained else ():
            for repeat in repeats:
                rows = [stored.get((turn.id, repeat)) for turn in conversation]
                self._note_attempts((str(conversation[0].conversation), repeat), rows)
                self._stored |= self._sound_of(conversation, rows, retry_errors=retry_errors)
        if not self._plan.chained:
            self._stored = {
                key: result
                for key, result in stored.items()
                if result.status == "ok" or not retry_errors
            }
        return set(self._stored)

    def _note_attempts(self, conversation: Key, rows: Iterable[TestResult | None]) -> None:
        """Remember the last session of a conversation that anything is known of."""
        for row in rows:
            if row and row.session and (number := _ATTEMPT.search(row.session)):
                before = self._attempts.get(conversation, 0)
                self._attempts[conversation] = max(before, int(number[1]))

    def _sound_of(
        self,
        turns: Sequence[TestCase],
        rows: Sequence[TestResult | None],
        *,
        retry_errors: bool,
    ) -> dict[Key, TestResult]:
        """The first results of one repeat of a conversation that hold."""
        sound: dict[Key, TestResult] = {}
        answers: dict[str, str] = {}
        failed = False
        for turn, row in zip(turns, rows, strict=True):
            if row is None or (row.status == "error" and retry_errors):
                break
            if row.status == "ok":
                messages = [] if failed else self._plan.messages(turn, answers)
                if failed or row.history_sha256 != _digest(messages):
                    break
                answers[turn.id] = row.answer or ""
            failed = failed or row.status == "error"
            sound[turn.id, row.repeat] = row
        whole = len(sound) == len(turns)
        return sound if whole or not self._plan.in_one_go else {}

    async def ask(self, api: ChatApi, unit: Sequence[Job]) -> AsyncIterator[list[BotAnswer]]:
        """The answers of a unit; answers to be written together are in one list. Raises
        Interrupted."""
        answers: dict[str, str] = {}
        failed: tuple[Job, TestResult] | None = None
        session = self._new_session(unit[0])
        together: list[BotAnswer] = []
        for job in unit:
            stored = self._stored.get(job.key)
            if stored is None:
                answer = (
                    self._behind(job, *failed)
                    if failed
                    else await self._ask(api, job, answers, session, first=job is unit[0])
                )
                result = answer.result
                if self._plan.in_one_go:
                    together.append(answer)
                else:
                    yield [answer]
            else:
                result = stored
            session = result.session or session
            answers[job.case.id] = result.answer or ""
            if result.status == "error" and failed is None and self._plan.chained:
                failed = job, result
        if together:
            yield together

    async def _ask(
        self,
        api: ChatApi,
        job: Job,
        answers: Mapping[str, str],
        session: str | None,
        *,
        first: bool,
    ) -> BotAnswer:
        plan, case = self._plan, job.case
        messages = plan.messages(case, answers)
        question = replace(
            self._question(job),
            text=plan.text(case),
            history=tuple(messages),
            session=session,
            in_session=plan.in_one_go and case.conversation is not None,
            reset=(first or not plan.chained) and (plan.one_memory or session is not None),
        )
        answer = await api.ask(question)
        result = answer.result
        result.asked_with = plan.asked_with(case)
        if result.asked_with is None:
            result.session = None
            return answer
        result.history_sha256 = _digest(messages)
        result.session = result.session or session
        speechless = result.status == "ok" and not (result.answer or "").strip()
        if speechless and plan.chained and case.conversation is not None:
            result.status = "error"
            message = "the answer has no text, so the conversation cannot go on"
            result.error = ErrorInfo("no_text", message)
        return answer

    def _behind(self, job: Job, root: Job, failure: TestResult) -> BotAnswer:
        """What stands for a turn that is not asked, since one before it failed."""
        kind = failure.error.kind if failure.error else "unknown"
        message = f"turn {root.case.turn} ({root.case.id}) failed: {kind}; this one was not asked"
        error = ErrorInfo(EARLIER_TURN_FAILED, message, 0)
        case = job.case
        return BotAnswer(
            TestResult(
                case.id,
                self._plan.text(case),
                "error",
                error=error,
                repeat=job.repeat,
                asked_with=self._plan.asked_with(case),
            )
        )

    def _new_session(self, job: Job) -> str | None:
        """A name that no other conversation, repeat, attempt or run has; None for a question by
        itself. Where turns do not follow each other each has a session of its own."""
        case = job.case
        plan = self._plan
        if not plan.remembers or plan.names_sessions or plan.one_memory:
            return None
        if case.conversation is None:
            return None
        name = case.conversation if plan.chained else case.id
        attempt = self._attempts.get((case.conversation, job.repeat), 0) + 1
        run_id = self._question(job).run_id
        return f"{run_id}-{name}-{job.repeat}-{attempt}-{secrets.token_hex(8)}"


def _digest(messages: Sequence[ChatMessage]) -> str | None:
    """The hash of messages; None when there are none."""
    if not messages:
        return None
    pairs = [(message.role, message.content) for message in messages]
    return hashlib.sha256(orjson.dumps(pairs)).hexdigest()
