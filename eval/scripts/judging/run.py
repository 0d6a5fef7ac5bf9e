"""Judging a run: every answer to its judge, every verdict into verdicts.jsonl, in any order.

What was paid for is in the cache before it is in the file, so a run that was killed asks for
nothing twice: the same command goes on where it stopped.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections import Counter, defaultdict
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import orjson

from clients.http import ask_all
from judging import prompt_files
from judging.answers import FactStore, JudgedAnswer
from judging.calls import BLOCK, Call, Settings, call_of, needs_facts
from judging.connect import Connection, JudgeChanged
from judging.kinds import CLAIMS, FACTS
from judging.local import LocalJudge
from judging.types import Judge, JudgeTask, JudgeVerdict
from ragmetrics.claims import CLAIM_RULES
from ragmetrics.text.quotes import QUOTE_RULES
from ragmetrics.text.words import TEXT_RULES, clean, fold
from records import verdicts
from records.errors import StorageError
from records.files import clear_leftovers, locked, read_json, replace_json
from records.histories import earlier_by_id, messages_of_result
from records.labels import read_cases
from records.results import SCHEMA, RunConfig
from records.rubrics import of_prompt
from records.run import Run
from records.runs import CONFIG, VERDICTS, config_hash, results_file
from records.toml_files import TomlReader
from records.verdict_lines import VerdictWriter
from records.verdicts import (
    KINDS,
    QUOTE_UNVERIFIED,
    CallKind,
    VerdictHead,
    VerdictLine,
    VerdictReader,
    head_of,
)
from terminal.progress import progress

if TYPE_CHECKING:
    from rich.console import Console


NewAndExisting = tuple[list[VerdictLine], list[VerdictHead]]

SEEN = ("answered_as", "fingerprints")
"""A server's reports on itself, collected over all runs of judging."""


@dataclass(frozen=True)
class JudgingPlan:
    """The answers and metrics to judge, and how. ``repeats``: opinions; from the second on of
    ``repeats_share`` of the cases.

    ``k``: the first chunks of each answer; None: all. ``kinds``: the row of each call.
    """

    folder: Path
    eval_set: Path
    labels_dir: Path | None
    calls: tuple[str, ...]
    repeats: int = 1
    repeats_share: float = 1.0
    seed: int = 0
    atomic: bool = False
    k: int | None = None
    concurrency: int = 8
    kinds: Mapping[str, CallKind] = field(default_factory=lambda: KINDS)

    judges_run: ClassVar[bool] = True
    """Whether the judge is that of the run, which its config.json names."""

    @property
    def verdicts_file(self) -> Path:
        """Where its verdicts are."""
        return self.folder / VERDICTS

    def answers(self) -> Iterator[JudgedAnswer]:
        """The answers of the run, in its order."""
        return answers_of(self)

    def call_of(self, name: str) -> Call:
        """The function that judges one answer by the kind of call of that name."""
        return call_of(name)

    def countable(
        self,
        lines: Sequence[VerdictLine],
        identity: Mapping[str, Any],
        parameters: Mapping[str, Any],
    ) -> Sequence[VerdictLine]:
        """The lines that need not be asked for again by the judge with this identity."""
        return lines


def refuse_examples(plan: JudgingPlan, files: Mapping[str, Path]) -> None:
    """Raise StorageError where an example of a rubric is an answer of the run: the judge would be
    told the verdict. ``files``: of each rubric, by the name of its call."""
    examples: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for name, kind in plan.kinds.items():
        for number, example in enumerate(kind.rubric.examples if kind.rubric else (), 1):
            examples[_folded(example.answer)].append((name, number))
    run = Run(plan.folder)
    if not examples or not run.results_path.exists():
        return
    readers = {name: TomlReader(str(path), path) for name, path in files.items()}
    for result in run.results:
        for name, number in examples.pop(_folded(result.answer or ""), ()):
            clause = (
                f"is the answer of the run to case {result.test_case_id!r}, so the judge would see "
                "its verdict; write another example"
            )
            readers[name].wrong((f"examples[{number}]", "answer"), clause)
    problems = [problem for reader in readers.values() for problem in reader.problems]
    if problems:
        raise StorageError.from_problems(problems)


def _folded(text: str) -> str:
    return " ".join(fold(clean(text)).split())


@dataclass
class JudgingOutcome:
    """Counts of the judged answers.

    ``lines``: by status, and those that a judge decided as ``asked``. ``failures``: by kind.
    ``dropped_ids``: verdicts on items that the judge was not asked about. ``unverified``: verdicts
    whose quote was not found. ``reused``: lines that stood in verdicts.jsonl already.
    """

    lines: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    answers: int = 0
    dropped_ids: int = 0
    unverified: int = 0
    reused: int = 0

    @property
    def unreached(self) -> bool:
        """Nothing could be judged because the server could not be used."""
        nothing = bool(self.lines["failed"]) and not self.lines["asked"]
        return nothing and set(self.failures) <= {"transport", "rejected"}

    @property
    def judgements(self) -> int:
        """Those that a judge decided, now or before, and those that failed."""
        return self.lines["asked"] + self.lines["failed"]

    def too_many_failed(self, most: float) -> bool:
        """Have more than this share of the judgements failed, for whatever reason?"""
        return self.lines["failed"] > most * self.judgements

    def reuse(self, head: VerdictHead) -> None:
        """Count a line that exists already."""
        self.reused += 1
        self.lines["asked"] += head.mode not in ("", "code")

    def add(self, line: VerdictLine) -> None:
        """Count a new line."""
        self.lines[line["status"]] += 1
        self.lines["asked"] += line["status"] == "ok" and "by_code" not in line["extra"]
        if line["failure"]:
            self.failures[line["failure"]] += 1
        self.dropped_ids += line["extra"].get("dropped_ids", 0)
        self.unverified += sum(e["verdict"] == QUOTE_UNVERIFIED for e in line["verdicts"])


def answers_of(plan: JudgingPlan) -> Iterator[JudgedAnswer]:
    """The answered cases of a run, in order. Raises StorageError before anything is paid."""
    run = Run(plan.folder)
    path = run.results_path
    if not path.exists():
        raise StorageError(f"{path}: no such file; finish the run (run_eval --resume).")
    cases = {case.id: case for case in read_cases(plan.eval_set, plan.labels_dir)}
    earlier = earlier_by_id(cases.values())
    answers: dict[tuple[str, int], str] = {}
    for result in run.results:
        if result.test_case_id not in cases:
            raise StorageError(
                f"{path}: test_case_id {result.test_case_id!r} is in no line of {plan.eval_set}; "
                "use the set that the run was asked with."
            )
        if cases[result.test_case_id].conversation is not None:
            answers[result.test_case_id, result.repeat] = result.answer or ""
    return (
        JudgedAnswer(
            case,
            result,
            plan.k,
            messages_of_result(case, result, earlier.get(case.id, ()), answers),
        )
        for result in run.results
        if result.status == "ok"
        for case in (cases[result.test_case_id],)
    )


def judge_run(
    plan: JudgingPlan,
    connection: Connection,
    facts: FactStore,
    reader: VerdictReader,
    console: Console,
) -> JudgingOutcome:
    """Judge all answers and append the new verdicts to verdicts.jsonl.

    ``reader``: of that file; a damaged line of it is reported before anything is paid.
    ``console``: where progress is shown.
    """
    path = reader.path
    answers = list(plan.answers())
    verdicts.withdraw(path, connection.withdrawn())
    described = connection.describe()
    settings = Settings(connection.judge, connection.salt, facts, plan.atomic, kinds=plan.kinds)
    identity = connection.judge.identity.to_dict()
    lines = plan.countable(reader.read(), identity, described["parameters"])
    existing = ExistingVerdicts(lines, identity, described["parameters"], settings)
    judge = _write_config(plan, described)
    outcome = JudgingOutcome()

    async def work(answer: JudgedAnswer) -> NewAndExisting:
        return await _judge_answer(answer, settings, plan, existing)

    of_turns: dict[str, Any] = {}
    judged = ask_all(answers, work, plan.concurrency, threading.Event())
    with (
        _stopping(connection),
        VerdictWriter(path) as writer,
        closing(judged),
        progress(console, "judging", len(answers)) as step,
    ):
        for new, old in judged:
            outcome.answers += 1
            for head in old:
                outcome.reuse(head)
            for line in new:
                line |= {"judge": identity, "parameters": judge["parameters"]}
                outcome.add(line)
                prompt = line["prompt"]
                if prompt["name"] not in judge["prompts"]:
                    of_turns[prompt["name"]] = {k: prompt[k] for k in ("version", "sha256")}
                if existing.is_new(line):
                    writer.write(line)
            step()
        writer.sync()
    _write_config(plan, connection.describe(), of_turns)
    return outcome


def confirm(plan: JudgingPlan, connection: Connection) -> None:
    """Check again who judged. Verdicts of another judge are taken back, also in verdicts.jsonl.

    Raises JudgeError then, and JudgeUnreachable when the server does not answer any more.
    """
    try:
        connection.confirm()
    except JudgeChanged as changed:
        verdicts.withdraw(plan.verdicts_file, changed.withdrawn)
        raise


@contextmanager
def _stopping(connection: Connection) -> Iterator[None]:
    """Ends the calls under way when the session is broken off."""
    try:
        yield
    except BaseException:
        connection.stop.set()
        raise


async def _judge_answer(
    answer: JudgedAnswer, settings: Settings, plan: JudgingPlan, existing: ExistingVerdicts
) -> NewAndExisting:
    """All calls and opinions of one answer: the new lines, and the heads of those that stand."""
    new: list[VerdictLine] = []
    old: list[VerdictHead] = []
    for name in plan.calls:
        inputs_sha256 = existing.inputs_sha256(answer, name)
        opinions = 1
        repeat = 0
        while repeat < opinions:
            heads = existing.opinion(answer, name, repeat, inputs_sha256)
            if heads is None:
                lines = await plan.call_of(name)(answer, settings, repeat)
                # the list of facts may have come just now
                sha256 = inputs_sha256 or existing.inputs_sha256(answer, name)
                new += [line | {"made_of": sha256} for line in lines]
                asked = any(line["mode"] not in ("", "code") for line in lines)
            else:
                old += heads
                asked = any(head.mode not in ("", "code") for head in heads)
            if repeat == 0 and asked and _is_drawn(plan, answer):
                opinions = plan.repeats
            repeat += 1
    return new, old


def _is_drawn(plan: JudgingPlan, answer: JudgedAnswer) -> bool:
    """Is the case in the sample? By its id and the seed, whatever the order."""
    digest = hashlib.sha256(f"{plan.seed}\0{answer.case.id}".encode()).digest()
    return int.from_bytes(digest[:8]) < plan.repeats_share * 2**64


def _write_config(
    plan: JudgingPlan, described: Mapping[str, Any], of_turns: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Put the judge into the run's config.json and return what stands there.

    ``of_turns``: the prompts that turns of conversations were asked with. Prompts of an earlier
    time stay beside the new ones as long as the judge is the same.
    """
    path = plan.folder / CONFIG
    asked = [*(plan.kinds[call] for call in plan.calls), FACTS, *([CLAIMS] if plan.atomic else [])]
    ids = {prompt_files.load_for(kind, earlier=False).id for kind in asked}
    prompts = {one.name: {"version": one.version, "sha256": one.sha256} for one in ids}
    prompts |= of_turns or {}
    if not plan.judges_run:
        return {**described, "prompts": prompts}
    with locked(path):
        clear_leftovers(path)
        raw: dict[str, Any] = {"schema": SCHEMA, "run_id": plan.folder.resolve().name}
        before: dict[str, Any] = {}
        if path.exists():
            before = verdicts.judge_of(plan.folder)
            raw |= read_json(path)
        if before.get("identity") != described["identity"]:
            before = {}
        judge = before | dict(described) | {"prompts": before.get("prompts", {}) | prompts}
        for name in SEEN:
            # What a server said of itself stays when a later run takes all from the cache.
            judge[name] = sorted({*before.get(name, ()), *described.get(name, ())})
        judge |= {"claims": "atomic" if plan.atomic else "sentence", "k": plan.k}
        raw["judge"] = judge
        raw["config_hash"] = config_hash(msgspec.convert(raw, RunConfig))
        replace_json(path, raw)
    return judge


class _TaskRecorder:
    """Notes what would be asked, and answers in the way of the local judge."""

    def __init__(self, connection: Connection) -> None:
        self._local = LocalJudge()
        self.identity = connection.judge.identity
        self.cannot = connection.judge.cannot
        self.tasks: list[JudgeTask] = []

    async def ask(self, task: JudgeTask) -> JudgeVerdict:
        """What the local rules say, which is used for estimates only."""
        self.tasks.append(task)
        return await self._local.ask(task)


def would_ask(plan: JudgingPlan, connection: Connection, facts: FactStore) -> Iterator[JudgeTask]:
    """The tasks that judging would ask, follow-ups apart; nothing is asked, kept or written.

    Facts and atomic claims that are not known yet are guessed by the local rules.
    """
    recorder = _TaskRecorder(connection)
    for _ in rehearse(plan, recorder, connection, facts.guessing()):
        tasks: Sequence[JudgeTask] = recorder.tasks
        recorder.tasks = []
        yield from tasks


def prompts_of(
    plan: JudgingPlan, connection: Connection, facts: FactStore, case_id: str
) -> Iterator[tuple[int, str, JudgeTask]]:
    """The prompts about a case, rebuilt: repeat of the answer, metric and task of each call,
    follow-ups apart. Nothing is asked, kept or written.

    Facts and atomic claims that are not known are guessed by the local rules. Raises StorageError
    when the run has no answer to the case.
    """
    recorder = _TaskRecorder(connection)
    settings = _rehearsing(plan, recorder, connection, facts.guessing())
    answers = [answer for answer in plan.answers() if answer.case.id == case_id]
    if not answers:
        raise StorageError(
            f"{results_file(plan.folder)}: has no answer to case {case_id!r} that can be judged; "
            "name a case of the run that was answered."
        )
    for answer in answers:
        for name in plan.calls:
            _at_once(plan.call_of(name)(answer, settings, 0))
            tasks: Sequence[JudgeTask] = recorder.tasks
            recorder.tasks = []
            yield from ((answer.result.repeat, name, task) for task in tasks)


def rehearse(
    plan: JudgingPlan, judge: Judge, connection: Connection, facts: FactStore
) -> Iterator[None]:
    """Judge the missing verdicts of a run without writing a line, one answer each step.

    ``judge`` only notes its tasks.
    """
    settings = _rehearsing(plan, judge, connection, facts)
    described = connection.describe()
    lines = VerdictReader(plan.verdicts_file).read()
    lines = plan.countable(lines, described["identity"], described["parameters"])
    existing = ExistingVerdicts(lines, described["identity"], described["parameters"], settings)
    for answer in plan.answers():
        _at_once(_judge_answer(answer, settings, plan, existing))
        yield


def _rehearsing(
    plan: JudgingPlan, judge: Judge, connection: Connection, facts: FactStore
) -> Settings:
    return Settings(judge, connection.salt, facts, plan.atomic, rehearsed=True, kinds=plan.kinds)


def _at_once(call: Coroutine[Any, Any, object]) -> None:
    """Run a call to its end whose judge only notes its tasks, so that it waits for no reply."""
    with contextlib.suppress(StopIteration):
        call.send(None)
        raise RuntimeError("the call waits for something")


RULES = (CLAIM_RULES, TEXT_RULES, QUOTE_RULES, BLOCK)
"""Versions of our own code that decides which claims are asked about, and how they are checked."""

DONE = frozenset({"ok", "not_applicable"})

OpinionKey = tuple[str, int, str, int]
"""Case id, repeat of the answer, metric, opinion."""


class ExistingVerdicts:
    """The verdict lines that need not be asked for again.

    They are those of one judge with its parameters and today's prompts.
    """

    def __init__(
        self,
        lines: Iterable[VerdictLine],
        identity: Mapping[str, Any],
        parameters: Mapping[str, Any],
        settings: Settings,
    ) -> None:
        self._settings = settings
        self._parts: dict[OpinionKey, dict[int, VerdictHead]] = {}
        prompts = {
            (name, prompt_files.load_for(kind, earlier=earlier).id.sha256): kind.rubric
            for name, kind in settings.kinds.items()
            for earlier in (False, True)
        }
        for head in map(head_of, lines):
            same = head.judge == identity and head.parameters == parameters
            prompt = (head.metric, head.prompt.get("sha256"))
            # a rubric with another target: the same question, whose lines are written anew
            if same and prompt in prompts:
                self._add(head, of_prompt(head.prompt) == prompts[prompt])

    def _add(self, head: VerdictHead, stands: bool = True) -> None:
        key = (head.case_id, head.repeat, head.metric, head.judge_repeat)
        self._parts.setdefault(key, {})[head.part] = head
        if not stands:
            del self._parts[key]

    def inputs_sha256(self, answer: JudgedAnswer, metric: str) -> str | None:
        """A hash of all that the claims, facts and texts of a call come from.

        None when the facts are not known yet: they have to be asked for.
        """
        facts: list[str] | None = []
        if needs_facts(self._settings.kinds[metric]) and not any(
            map(str.strip, answer.case.expected_key_facts)
        ):
            if answer.why_no_reference() is None:
                question = answer.case.question_alone or answer.case.question
                facts = self._settings.facts.stored(question, answer.reference)
            if facts is None:
                return None
        parts = [answer.answer_sha256(metric), RULES, self._settings.atomic, facts]
        parts += [answer.earlier] if answer.earlier else []
        parts += answer.inputs(self._settings.kinds[metric].rubric)
        return hashlib.sha256(orjson.dumps(parts)).hexdigest()[:24]

    def opinion(
        self, answer: JudgedAnswer, metric: str, repeat: int, inputs_sha256: str | None
    ) -> Sequence[VerdictHead] | None:
        """The lines of one opinion; None unless all parts exist, with these inputs and unfailed."""
        key = (answer.case.id, answer.result.repeat, metric, repeat)
        parts = self._parts.get(key)
        first = None if parts is None else parts.get(0)
        if parts is None or first is None or inputs_sha256 is None:
            return None
        usable = [
            head
            for number in range(first.parts)
            if (head := parts.get(number)) is not None
            and head.inputs_sha256 == inputs_sha256
            and head.status in DONE
            and head.extra.mark == first.extra.mark
        ]
        return usable if len(usable) == first.parts else None

    def is_new(self, line: VerdictLine) -> bool:
        """Whether no line with the same content exists yet."""
        head = head_of(line)
        key = (head.case_id, head.repeat, head.metric, head.judge_repeat)
        before = self._parts.get(key, {}).get(head.part)
        if before is not None and _content(before) == _content(head):
            return False
        self._add(head)
        return True


def _content(head: VerdictHead) -> tuple[Any, ...]:
    return head.status, head.reason, head.key, head.parts, head.inputs_sha256, head.prompt
