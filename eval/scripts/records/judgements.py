"""The judgements of a run that count: those of its present judge on its answers as they now are.

Everybody who counts, shows or compares verdicts asks here: the scorers, the report, the browser,
the calibration.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from records.cases import TestCase
from records.results import TestResult
from records.runs import VERDICTS
from records.verdicts import VerdictLine, key_of, of_judge, read_lines

STALE = "judged before its answer or labels changed"

OTHERS = "Lines of verdicts.jsonl by another judge, prompt or temperature, which are ignored: {}."

ABSTENTION_RULES = 3
"""Version of the rules by which code recognises an abstention (ragmetrics.abstention). Raise it
with them: a judgement rests on whether the answer was taken for one."""

AnswerKey = tuple[str, int]
"""Case id and repeat of the answer."""

NUGGETS = "nuggets"
"""The call whose verdicts rest on the gold facts, besides all that the others rest on."""

Item = dict[str, Any]


@dataclass(frozen=True)
class Judgement:
    """All parts of one call: ``status`` as in a line, ``entries`` of all parts in order."""

    status: str
    reason: str
    lines: Sequence[Mapping[str, Any]]

    @property
    def entries(self) -> list[dict[str, Any]]:
        return [entry for line in self.lines for entry in line["verdicts"]]

    def items(self, name: str) -> dict[str, str]:
        """The claims or facts that were asked about: text by id."""
        items = (item for line in self.lines for item in line["input"].get(name, ()))
        return {item["id"]: item["text"] for item in items}

    @property
    def verdicts(self) -> list[str]:
        return [entry["verdict"] for entry in self.entries]

    @property
    def from_model(self) -> bool:
        """Whether a model judged this, not code."""
        return self.status == "ok" and "by_code" not in self.lines[0]["extra"]

    def extra(self, name: str) -> list[Any]:
        """The parts' own remarks on it."""
        return [line["extra"][name] for line in self.lines if name in line["extra"]]


def _join_parts(parts: Mapping[int, VerdictLine]) -> Judgement | None:
    """The parts of one call; None when one of them is not there (a run that was stopped)."""
    first = parts.get(0)
    if first is None:
        return None
    mark = first["extra"].get("mark")
    lines = [parts[number] for number in sorted(parts) if number < first["parts"]]
    together = [line for line in lines if line["extra"].get("mark") == mark]
    for status in ("failed", "not_applicable"):
        for line in together:
            if line["status"] == status:
                return Judgement(status, line["failure"] or line["reason"] or "", together)
    return Judgement("ok", "", together) if len(together) == first["parts"] else None


Calls = Mapping[str, Judgement]
"""The judgements of one opinion on an answer, by the metric of their lines."""

Opinions = dict[int, Calls]


def answer_sha256(case: TestCase, result: TestResult, k: int | None, metric: str = "") -> str:
    """The hash of the inputs of a judgement: question, answer, contexts, reference, labels; 24 hex
    digits.

    ``k``: only the first chunks were shown; None: all. ``metric``: that of the line. It stands in a
    line as ``subject``: a line with another one belongs to an answer or a label that is no longer
    there.
    """
    parts: list[Any] = [
        case.question,
        result.answer,
        [[chunk.chunk_id, chunk.text, chunk.truncated] for chunk in result.chunks()[:k]],
        case.reference_answer,
        case.expected_key_facts,
        case.answerable,
        [result.abstained, ABSTENTION_RULES],
    ]
    if case.conversation is not None or case.history is not None:
        parts.append([case.question_alone, result.asked_with, result.history_sha256])
    if tools := result.tool_sources():
        parts.append({"seen_tools": [source.text for source in tools]})
    if metric == NUGGETS:
        parts.append([fact.fact for fact in case.gold_facts])
    return hashlib.sha256(orjson.dumps(parts)).hexdigest()[:24]


@dataclass
class Verdicts:
    """The verdict lines of one judge, by case and repeat of the answer; of each its parts, by
    metric and opinion. ``others``: how many lines another judge wrote."""

    judge: Mapping[str, Any]
    by_answer: dict[AnswerKey, dict[tuple[str, int], dict[int, VerdictLine]]] = field(
        default_factory=dict
    )
    others: int = 0

    @property
    def calls(self) -> set[str]:
        """The judged calls."""
        return {metric for parts in self.by_answer.values() for metric, _ in parts}

    @property
    def repeats(self) -> int:
        """The most opinions that any answer has."""
        numbers = (opinion for parts in self.by_answer.values() for _, opinion in parts)
        return 1 + max(numbers, default=0)

    def opinions(self, case: TestCase, result: TestResult) -> tuple[Opinions, bool]:
        """The calls of each opinion on the present answer; calls that code decided belong to all.

        And whether a call has only verdicts that do not count any more: those on another answer, on
        other chunks or other labels.
        """
        calls: dict[int, dict[str, Judgement]] = defaultdict(dict)
        stale, k = False, self.judge.get("k")
        sha256, of_nuggets = answer_sha256(case, result, k), ""
        of_answer = self.by_answer.get((case.id, result.repeat), {})
        for (metric, opinion), parts in of_answer.items():
            if metric == NUGGETS:
                of_nuggets = of_nuggets or answer_sha256(case, result, k, metric)
            subject = of_nuggets if metric == NUGGETS else sha256
            fresh = {part: line for part, line in parts.items() if line.get("subject") == subject}
            if (judgement := _join_parts(fresh)) is not None:
                calls[opinion][metric] = judgement
            else:
                stale |= len(fresh) < len(parts)
        return dict(calls), stale


def read_verdicts(
    folder: Path,
    judge: Mapping[str, Any],
    *,
    keep: Callable[[VerdictLine], bool] = lambda line: True,
    at: Iterable[int] | None = None,
) -> Verdicts:
    """The lines of the judge that config.json names; those of others are counted and left out.

    ``keep``: only the lines that it takes. ``at``: only those that begin at these byte offsets, in
    the order of the file.
    """
    return gather(read_lines(folder / VERDICTS, keep, at), judge)


def gather(lines: Iterable[VerdictLine], judge: Mapping[str, Any]) -> Verdicts:
    """Those of the lines that the judge wrote; see ``read_verdicts``."""
    verdicts = Verdicts(judge)
    belongs = of_judge(judge)
    for line in lines:
        case_id, repeat, metric, opinion, part = key_of(line)
        if not belongs(line):
            verdicts.others += 1
            continue
        of_answer = verdicts.by_answer.setdefault((case_id, repeat), {})
        of_answer.setdefault((metric, opinion), {})[part] = line
    return verdicts


def evidence_of(calls: Calls, blames: Mapping[str, str]) -> dict[str, Any]:
    """``claims``, ``facts``, ``nuggets``, ``chunks``, ``questions``, ``reply``: those that were
    judged.

    ``blames``: by claim id, which side is at fault where a claim was compared with both."""
    evidence: dict[str, Any] = {}
    if claims := _items(calls.get("groundedness"), "claims"):
        for claim in claims:
            claim |= {"blame": blames[claim["id"]]} if claim["id"] in blames else {}
        evidence["claims"] = claims
    if facts := _items(calls.get("correctness"), "facts"):
        in_contexts = {fact["id"]: fact for fact in _items(calls.get("context_recall"), "facts")}
        for fact in facts:
            attributed = in_contexts.get(fact["id"])
            fact |= {"in_contexts": attributed["verdict"]} if attributed is not None else {}
        evidence["facts"] = facts
    elif facts := _items(calls.get("context_recall"), "facts"):
        evidence["facts_in_contexts"] = facts
    if nuggets := _items(calls.get(NUGGETS), "nuggets"):
        evidence["nuggets"] = nuggets
    if claims := _items(calls.get("answer_correctness"), "claims"):
        evidence["claims_in_reference"] = claims
    chunks = calls.get("context_precision")
    if chunks is not None and chunks.status == "ok":
        names = _chunk_ids(chunks)
        evidence["chunks"] = [
            {"chunk_id": names.get(entry["id"], ""), "verdict": entry["verdict"]}
            for entry in chunks.entries
        ]
    relevancy = calls.get("answer_relevancy")
    if relevancy is not None and relevancy.status == "ok":
        evidence["questions"] = [text for part in relevancy.extra("questions") for text in part]
    reply = calls.get("abstained_judged")
    if reply is not None and reply.status == "ok":
        evidence["reply"] = reply.verdicts[0]
    failed = {name: call.reason for name, call in calls.items() if call.status == "failed"}
    return evidence | ({"failed": failed} if failed else {})


def _chunk_ids(judgement: Judgement) -> dict[str, str]:
    contexts = (c for line in judgement.lines for c in line["input"].get("contexts", ()))
    return {context["id"]: context.get("chunk_id", "") for context in contexts}


def _items(judgement: Judgement | None, name: str) -> list[Item]:
    """Each claim or fact with its verdict, quote and reason; [] when there is no judgement."""
    if judgement is None or judgement.status != "ok":
        return []
    inputs: Mapping[str, Item] = {
        item["id"]: item for line in judgement.lines for item in line["input"].get(name, ())
    }
    chunk_ids = _chunk_ids(judgement)
    items = []
    for entry in judgement.entries:
        judged = inputs.get(entry["id"], {})
        item = {"id": entry["id"], "text": judged.get("text", ""), "verdict": entry["verdict"]}
        item |= {key: entry[key] for key in ("quote", "reason") if entry.get(key)}
        if (chunk_id := chunk_ids.get(entry.get("context") or "")) is not None:
            item["chunk_id"] = chunk_id
        if judged.get("span"):
            item["span"] = judged["span"]
        items.append(item)
    return items
