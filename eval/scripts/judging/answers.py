"""One answer made ready for its judge: contexts, claims and facts with ids of ours."""

from __future__ import annotations

import asyncio
import copy
import hashlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

from judging.kinds import Item
from judging.prompt_files import one_line
from judging.types import JudgeVerdict, PromptId
from ragmetrics.abstention import Detection, detect_with_passages
from ragmetrics.case_scores import unusable
from ragmetrics.claims import extract
from ragmetrics.text.language import language_of
from ragmetrics.text.words import clean, has_word, words
from records.cases import ChatMessage, TestCase
from records.errors import Problem, StorageError
from records.files import JsonlWriter, cut_torn_tail, locked
from records.histories import ALONE
from records.judgements import NUGGETS, answer_sha256
from records.results import SCHEMA, RetrievedChunk, TestResult
from records.rubrics import Rubric
from records.tool_calls import ToolCall
from records.verdicts import JudgeIdentity

UNANSWERABLE = "unanswerable"

NO_REFERENCE = "no reference answer and no key facts"

NO_CLAIMS = "no claims"

ABSTENTION = "abstention"

EMPTY = "empty answer"

NO_ANSWER = "no answer"

MOST_EARLIER, MOST_MESSAGE = 6000, 1500
"""Characters of the earlier turns, and of each message, that a judge sees."""


@dataclass
class JudgedAnswer:
    """A case with one of its results. The ``why_no_…`` functions say what it lacks.

    ``k``: only the first chunks count; None: all. ``before``: what was said before the question.
    """

    case: TestCase
    result: TestResult
    k: int | None = None
    before: Sequence[ChatMessage] = ()
    atomic: list[dict[str, Any]] | None = field(default=None)

    @cached_property
    def text(self) -> str:
        """The answer's text, cleaned."""
        return clean(self.result.answer or "")

    @property
    def question(self) -> str:
        """The question as the bot was asked it."""
        case = self.case
        alone = self.result.asked_with == ALONE
        return (case.question_alone or case.question) if alone else case.question

    @cached_property
    def earlier(self) -> str:
        """The last messages before the question, a line each; long ones are cut, and of a long
        conversation the beginning is left out."""
        lines: list[str] = []
        room = MOST_EARLIER
        for message in reversed(self.before):
            text = one_line(clean(message.content))
            text = text if len(text) <= MOST_MESSAGE else f"{text[: MOST_MESSAGE - 1]}…"
            line = f"{message.role}: {text}"
            room -= len(line)
            if room < 0:
                lines.append("(earlier turns left out)")
                break
            lines.append(line)
        return "\n".join(reversed(lines))

    @cached_property
    def chunks(self) -> Sequence[RetrievedChunk]:
        return self.result.chunks()[: self.k]

    @cached_property
    def _seen(self) -> Sequence[RetrievedChunk]:
        return self.result.seen_chunks(self.k)

    @cached_property
    def contexts(self) -> list[Item]:
        """The chunks as ``c1``, ``c2`` … in rank order."""
        return _numbered(self.chunks)

    @cached_property
    def seen_contexts(self) -> list[Item]:
        """All that the answer saw: the chunks, then the results of tools that are no passages."""
        return _numbered(self._seen) if len(self._seen) > len(self.chunks) else self.contexts

    @cached_property
    def tool_calls(self) -> str:
        """The calls of tools that the bot reports, a line each; long arguments and results are
        cut."""
        calls = self.result.tools or ()
        return "\n".join(f"{n}. {_shown(call)}" for n, call in enumerate(calls, start=1))

    @cached_property
    def abstained(self) -> bool:
        """By the bot's own word, else by the wording of the answer."""
        if self.result.abstained is not None:
            return self.result.abstained
        return self.detection.abstained

    @cached_property
    def detection(self) -> Detection:
        """The result of the phrase rules for the answer, with the passages of the result."""
        result = self.result
        return detect_with_passages(result.answer, result.chunks(), result.question)

    @property
    def language(self) -> str | None:
        """The language of the answer; None when it is unknown."""
        passages = (chunk.text for chunk in self.result.chunks())
        return language_of(self.result.answer or "", self.result.question, passages)

    def answer_sha256(self, metric: str) -> str:
        """Hash of the judged text, as in the verdict line."""
        return self._nuggets_sha256 if metric == NUGGETS else self._sha256

    @cached_property
    def _sha256(self) -> str:
        return answer_sha256(self.case, self.result, self.k)

    @cached_property
    def _nuggets_sha256(self) -> str:
        return answer_sha256(self.case, self.result, self.k, NUGGETS)

    @cached_property
    def nuggets(self) -> list[Item]:
        """The gold facts as ``n1``, ``n2`` …; a judge needs no other wordings of them."""
        return [
            {"id": f"n{number}", "text": clean(fact.fact)}
            for number, fact in enumerate(self.case.gold_facts, start=1)
        ]

    @property
    def reference(self) -> str:
        """The reference answer, else the key facts as a text."""
        return clean(self.case.reference_text())

    @cached_property
    def sentences(self) -> list[dict[str, Any]]:
        """The claims of the answer by our own rules, with their spans."""
        claims = extract(self.text, denial=self.detection.denial).claims
        return [
            {"id": str(number), "text": claim.text, "span": [claim.start, claim.end]}
            | ({"lead": claim.lead} if claim.lead else {})
            for number, claim in enumerate(claims, start=1)
        ]

    def whole_answer(self) -> list[dict[str, Any]]:
        """The answer as one claim: for "15 days", which is too short to be a claim of its own."""
        text = " ".join(self.text.split())
        if self.abstained or not words(text):
            return []
        return [{"id": "1", "text": text, "span": [0, len(self.text)]}]

    def why_no_answer(self) -> str | None:
        if self.result.answer is None:
            return NO_ANSWER
        return None if self._has_words else EMPTY

    @cached_property
    def _has_words(self) -> bool:
        return has_word(self.text)

    def why_no_claims(self) -> str | None:
        """Why nothing can be said of the claims, before they are cut out."""
        return self.why_no_answer() or (ABSTENTION if self.abstained else None)

    def why_no_texts(self, *, seen: bool = False) -> str | None:
        """The chunks were stored without their full texts (None also when there are no chunks).
        ``seen``: the results of tools count, too."""
        return unusable(self._seen if seen else self.chunks)

    def why_no_reference(self) -> str | None:
        if self.case.answerable is False:
            return UNANSWERABLE
        return None if self.reference.strip() else NO_REFERENCE

    def why_no_nuggets(self) -> str | None:
        """Why no gold fact can be looked for."""
        if self.case.answerable is False:
            return UNANSWERABLE
        return None if self.case.gold_facts else "no gold_facts"

    def inputs(self, rubric: Rubric | None) -> list[Any]:
        """The other texts that a verdict depends on, beside question and answer."""
        return [self.tool_calls] if rubric is not None and "tools" in rubric.reads else []


def _shown(call: ToolCall) -> str:
    """Name, arguments and outcome of a tool call on one line."""
    came = "" if call.result is None else call.result
    parts = [
        call.name,
        orjson.dumps(call.arguments).decode(),
        came if not call.error else call.error,
    ]
    shown = [one_line(clean(part)) for part in parts]
    name, arguments, outcome = (
        part if len(part) <= MOST_MESSAGE else f"{part[: MOST_MESSAGE - 1]}…" for part in shown
    )
    return f"{name} {arguments} → {'failed: ' if call.error else ''}{outcome}"


def _numbered(chunks: Sequence[RetrievedChunk]) -> list[Item]:
    return [
        {"id": f"c{number}", "chunk_id": chunk.chunk_id, "text": clean(chunk.text or "")}
        for number, chunk in enumerate(chunks, start=1)
    ]


FACTS_FILE = "reference_facts.jsonl"

FactsKey = tuple[str, str, str]
"""Hash of the question and its reference answer, judge, prompt."""


class FactStore:
    """The facts of reference answers, as a judge has listed them.

    Safe to use from several processes, and from all calls of one loop.
    """

    def __init__(
        self,
        cache_dir: Path,
        identity: JudgeIdentity,
        prompt: PromptId,
        withdrawn: Collection[str] = (),
    ) -> None:
        """``withdrawn``: runs of judging whose lists do not count.

        Raises StorageError naming the line of the file that holds no list of facts.
        """
        self._withdrawn = withdrawn
        self.path = cache_dir / FACTS_FILE
        self.new_lists = 0
        self._writes = True
        self._judge, self._prompt = str(identity), str(prompt)
        self._lists: dict[FactsKey, list[str]] = {}
        self._locks: dict[FactsKey, asyncio.Lock] = defaultdict(asyncio.Lock)
        if self.path.exists():
            self._read()

    def _read(self) -> None:
        cut_torn_tail(self.path)
        with open(self.path, "rb") as file:
            for number, line in enumerate(file, start=1):
                if b"\0" in line:
                    continue  # a power cut's hole, no one's typing error: the list is asked again
                try:
                    raw = orjson.loads(line)
                    facts = [str(fact) for fact in raw["facts"] if str(fact).strip()]
                    key = (raw["reference_sha256"], raw["judge"], raw["prompt"])
                except (orjson.JSONDecodeError, KeyError, TypeError):
                    problem = Problem(
                        str(self.path), number, "facts", "not a list of facts; correct or drop it"
                    )
                    raise StorageError.from_problems([problem]) from None
                if facts and str(raw.get("judging_run")) not in self._withdrawn:
                    self._lists[key] = facts

    def guessing(self) -> FactStore:
        """A copy that keeps nothing on disk: for estimates."""
        other = copy.copy(self)
        other._lists, other._writes = dict(self._lists), False
        return other

    def stored(self, question: str, reference: str) -> list[str] | None:
        """The list of a reference answer in its present wording; None when there is none."""
        return self._lists.get(self._key(question, reference))

    def _key(self, question: str, reference: str) -> FactsKey:
        digest = hashlib.sha256(f"{question}\0{reference}".encode()).hexdigest()
        return digest, self._judge, self._prompt

    async def get(
        self,
        question: str,
        reference: str,
        ask: Callable[[], Awaitable[tuple[list[str], JudgeVerdict]]],
    ) -> list[str] | JudgeVerdict:
        """The facts of a reference answer, or the verdict that failed to give them.

        ``ask`` is called once for each reference that is not known.
        """
        key = self._key(question, reference)
        async with self._locks[key]:
            if key in self._lists:
                return self._lists[key]
            facts, verdict = await ask()
            if not verdict.ok:
                return verdict
            self._store(key, question, reference, facts, verdict.judging_run)
            return facts

    def _store(
        self,
        key: FactsKey,
        question: str,
        reference: str,
        facts: list[str],
        judging_run: str | None,
    ) -> None:
        line: dict[str, Any] = {
            "schema": SCHEMA,
            "reference_sha256": key[0],
            "question": question,
            "reference": reference,
            "facts": facts,
            "judge": key[1],
            "prompt": key[2],
            "judging_run": judging_run,
        }
        self._lists[key] = facts
        self.new_lists += 1
        if self._writes:
            with locked(self.path), JsonlWriter(self.path) as writer:
                writer.write(line)
