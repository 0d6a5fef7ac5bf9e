"""What stands in verdicts.jsonl already: it is neither asked for nor written again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from clients import judge_prompts
from judging.calls import BLOCK, Settings
from judging.lines import Head, Line
from judging.subject import Subject
from judging.tasks import KINDS
from ragmetrics.claimfilter import CLAIM_RULES
from ragmetrics.quotes import QUOTE_RULES
from ragmetrics.text import TEXT_RULES

RULES = (CLAIM_RULES, TEXT_RULES, QUOTE_RULES, BLOCK)
"""What of our own code decides which claims are asked about, and how they are checked."""
NEED_FACTS = frozenset({"correctness", "answer_correctness", "context_recall"})
DONE = frozenset({"ok", "not_applicable"})
Name = tuple[str, int, str, int]
"""Case id, repeat of the answer, metric, opinion."""


class Kept:
    """The lines of one judge with its parameters and today's prompts, by what they tell.

    Not safe for writing from several threads: ``is_new`` is called by the one that writes.
    """

    def __init__(
        self,
        heads: Iterable[Head],
        identity: Mapping[str, Any],
        parameters: Mapping[str, Any],
        settings: Settings,
    ) -> None:
        self._settings = settings
        self._parts: dict[Name, dict[int, Head]] = {}
        prompts = {name: judge_prompts.load(kind.prompt).id.sha256 for name, kind in KINDS.items()}
        for head in heads:
            same = head.judge == identity and head.parameters == parameters
            if same and head.prompt.get("sha256") == prompts.get(head.metric):
                self._add(head)

    def _add(self, head: Head) -> None:
        name = (head.case_id, head.repeat, head.metric, head.judge_repeat)
        self._parts.setdefault(name, {})[head.part] = head

    def made_of(self, subject: Subject, metric: str) -> str | None:
        """A hash of all that the claims, facts and texts of a call come from.

        None when the facts are not known yet: they have to be asked for.
        """
        facts: list[str] | None = []
        if metric in NEED_FACTS and not any(map(str.strip, subject.case.expected_key_facts)):
            if subject.why_no_reference() is None:
                facts = self._settings.facts.known(subject.case.question, subject.reference)
            if facts is None:
                return None
        parts = [subject.fingerprint, RULES, self._settings.atomic, facts]
        return hashlib.sha256(orjson.dumps(parts)).hexdigest()[:24]

    def opinion(
        self, subject: Subject, metric: str, repeat: int, made_of: str | None
    ) -> Sequence[Head] | None:
        """The lines of one opinion; None unless all are there, of these things, without failure."""
        name = (subject.case.id, subject.result.repeat, metric, repeat)
        parts = self._parts.get(name)
        first = None if parts is None else parts.get(0)
        if parts is None or first is None or made_of is None:
            return None
        found = [parts.get(place) for place in range(first.parts)]
        good = [
            head
            for head in found
            if head is not None
            and head.made_of == made_of
            and head.status in DONE
            and head.extra.mark == first.extra.mark
        ]
        return good if len(good) == len(found) else None

    def is_new(self, line: Line) -> bool:
        """Is the line not there yet, word for word the same in what it tells?"""
        head = Head(
            *(line[name] for name in ("case_id", "repeat", "metric", "judge_repeat", "status")),
            **{
                name: line[name]
                for name in ("part", "parts", "reason", "key", "made_of", "mode", "prompt")
            },
        )
        name = (head.case_id, head.repeat, head.metric, head.judge_repeat)
        known = self._parts.get(name, {}).get(head.part)
        if known is not None and _tells(known) == _tells(head):
            return False
        self._add(head)
        return True


def _tells(head: Head) -> tuple[Any, ...]:
    return head.status, head.reason, head.key, head.parts, head.made_of, head.prompt
