"""Judging a run: every answer to its judge, every verdict into verdicts.jsonl, in any order.

What was paid for is in the cache before it is in the file, so a run that was killed asks for
nothing twice: the same command goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

import storage
from clients import judge_prompts
from clients.judge_types import JudgeTask, Verdict
from clients.pool import ask_all
from judging import lines, tasks
from judging.calls import CALLS, Settings
from judging.connect import Connection, JudgeChanged
from judging.facts import FactStore
from judging.kept import Kept
from judging.lines import Head, Line
from judging.local import LocalJudge
from judging.subject import Subject
from storage import TestCase, TestResult

Pair = tuple[TestCase, TestResult]
Judged = tuple[list[Line], list[Head]]
SEEN = ("answered_as", "fingerprints")


@dataclass(frozen=True)
class Plan:
    """What is judged. ``repeats``: opinions; from the second on of ``repeats_share`` of the cases.

    ``k``: the first chunks of each answer; None: all.
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


@dataclass
class Outcome:
    """Lines by status, failures by kind, and ids that nobody had asked about.

    ``kept``: lines that stood in verdicts.jsonl already and were left alone.
    """

    lines: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    answers: int = 0
    dropped_ids: int = 0
    unverified: int = 0
    kept: int = 0

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

    def keep(self, head: Head) -> None:
        self.kept += 1
        self.lines["asked"] += head.mode not in ("", "code")

    def add(self, line: Line) -> None:
        self.lines[line["status"]] += 1
        self.lines["asked"] += line["status"] == "ok" and "by_code" not in line["extra"]
        if line["failure"]:
            self.failures[line["failure"]] += 1
        self.dropped_ids += line["extra"].get("dropped_ids", 0)
        self.unverified += sum(e["verdict"] == "quote_unverified" for e in line["verdicts"])


def pairs(plan: Plan) -> Iterator[Pair]:
    """The answered cases of a run, in order. Raises StorageError before anything is paid."""
    path = plan.folder / storage.RESULTS
    if not path.exists():
        raise storage.StorageError(f"{path}: no such file; finish the run (run_eval --resume).")
    cases = {case.id: case for case in storage.read_cases(plan.eval_set, plan.labels_dir)}
    for result in storage.iter_results(path):
        if result.test_case_id not in cases:
            raise storage.StorageError(
                f"{path}: test_case_id {result.test_case_id!r} is in no line of {plan.eval_set}; "
                "use the set that was asked."
            )
    return (
        (cases[result.test_case_id], result)
        for result in storage.iter_results(path)
        if result.status == "ok"
    )


def judge_run(
    plan: Plan, connection: Connection, facts: FactStore, step: Callable[[], None]
) -> Outcome:
    """Judge all answers and append what is new to verdicts.jsonl. ``step`` after each answer."""
    path = plan.folder / lines.FILE
    answers = pairs(plan)
    lines.withdraw(path, connection.withdrawn())
    told = connection.describe()
    settings = Settings(connection.judge, connection.salt, facts, plan.atomic)
    identity = connection.judge.identity.to_dict()
    kept = Kept(lines.heads(path), identity, told["parameters"], settings)
    judge = write_config(plan, told)
    storage.cut_torn_tail(path)
    outcome = Outcome()

    def work(pair: Pair) -> Judged:
        return judge_answer(Subject(*pair, plan.k), settings, plan, kept)

    found = ask_all(answers, work, plan.concurrency, threading.Event())
    with _stopping(connection), storage.JsonlWriter(path) as writer, closing(found):
        for new, old in found:
            outcome.answers += 1
            for head in old:
                outcome.keep(head)
            for line in new:
                line |= {"judge": identity, "parameters": judge["parameters"]}
                outcome.add(line)
                if kept.is_new(line):
                    writer.write(line)
            step()
        writer.sync()
    write_config(plan, connection.describe())
    return outcome


def confirm(plan: Plan, connection: Connection) -> None:
    """Look once more who judged. Verdicts of another judge are taken back, also in verdicts.jsonl.

    Raises JudgeError then, and JudgeUnreachable when the server does not answer any more.
    """
    try:
        connection.confirm()
    except JudgeChanged as changed:
        lines.withdraw(plan.folder / lines.FILE, changed.withdrawn)
        raise


@contextmanager
def _stopping(connection: Connection) -> Iterator[None]:
    """Ends the calls under way when the session is broken off."""
    try:
        yield
    except BaseException:
        connection.stop.set()
        raise


def judge_answer(subject: Subject, settings: Settings, plan: Plan, kept: Kept) -> Judged:
    """All calls and opinions of one answer: the new lines, and the heads of those that stand."""
    new: list[Line] = []
    old: list[Head] = []
    for name in plan.calls:
        made_of = kept.made_of(subject, name)
        opinions = 1
        repeat = 0
        while repeat < opinions:
            stands = kept.opinion(subject, name, repeat, made_of)
            if stands is None:
                made = CALLS[name](subject, settings, repeat)
                # the list of facts may have been made just now
                mark = made_of or kept.made_of(subject, name)
                new += [line | {"made_of": mark} for line in made]
                asked = any(line["mode"] not in ("", "code") for line in made)
            else:
                old += stands
                asked = any(head.mode not in ("", "code") for head in stands)
            if repeat == 0 and asked and _drawn(plan, subject):
                opinions = plan.repeats
            repeat += 1
    return new, old


def _drawn(plan: Plan, subject: Subject) -> bool:
    """Is the case in the sample? By its id and the seed, whatever the order."""
    digest = hashlib.sha256(f"{plan.seed}\0{subject.case.id}".encode()).digest()
    return int.from_bytes(digest[:8]) < plan.repeats_share * 2**64


def write_config(plan: Plan, described: Mapping[str, Any]) -> dict[str, Any]:
    """Put the judge into the run's config.json and return what stands there.

    Prompts of an earlier time stay beside the new ones as long as the judge is the same.
    """
    path = plan.folder / "config.json"
    names = {tasks.KINDS[call].prompt for call in plan.calls} | {"facts"}
    names |= {"claims"} if plan.atomic else set()
    prompts = {}
    for name in sorted(names):
        known = judge_prompts.load(name).id
        prompts[name] = {"version": known.version, "sha256": known.sha256}
    with storage.locked(path):
        raw: dict[str, Any] = {"schema": storage.SCHEMA, "run_id": plan.folder.resolve().name}
        before: dict[str, Any] = {}
        if path.exists():
            before = lines.judge_of(plan.folder)
            raw |= storage.read_json(path)
        if before.get("identity") != described["identity"]:
            before = {}
        judge = before | dict(described) | {"prompts": before.get("prompts", {}) | prompts}
        for name in SEEN:
            # What a server said of itself stays when a later run takes all from the cache.
            judge[name] = sorted({*before.get(name, ()), *described.get(name, ())})
        judge |= {"claims": "atomic" if plan.atomic else "sentence", "k": plan.k}
        raw["judge"] = judge
        raw["config_hash"] = storage.config_hash(msgspec.convert(raw, storage.RunConfig))
        storage.replace_json(path, raw)
    return judge


class Recorder:
    """Notes what would be asked, and answers in the way of the local judge."""

    def __init__(self, connection: Connection) -> None:
        self._local = LocalJudge()
        self.identity = connection.judge.identity
        self.cannot = connection.judge.cannot
        self.tasks: list[JudgeTask] = []

    def ask(self, task: JudgeTask) -> Verdict:
        self.tasks.append(task)
        return self._local.ask(task)


def would_ask(plan: Plan, connection: Connection, facts: FactStore) -> Iterator[JudgeTask]:
    """The tasks that judging would ask, follow-ups apart; nothing is asked, kept or written.

    Facts and atomic claims that are not known yet are guessed by the local rules.
    """
    recorder = Recorder(connection)
    settings = Settings(recorder, connection.salt, facts.guessing(), plan.atomic)
    told = connection.describe()
    path = plan.folder / lines.FILE
    kept = Kept(lines.heads(path), told["identity"], told["parameters"], settings)
    for pair in pairs(plan):
        judge_answer(Subject(*pair, plan.k), settings, plan, kept)
        found: Sequence[JudgeTask] = recorder.tasks
        recorder.tasks = []
        yield from found
