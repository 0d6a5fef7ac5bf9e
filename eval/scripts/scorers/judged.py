"""The section ``judged``: scores of a run from its verdict lines. No judge is asked."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import fsum
from pathlib import Path
from typing import Any

from clients.embedder import Embedder, EmbeddingUnavailable
from judging.answers import NO_ANSWER, Subject
from ragmetrics import embedding, judged
from ragmetrics.catalogue.judged import CALLS_BY_METRIC, ROWS
from ragmetrics.catalogue.metric import Metric
from ragmetrics.judged import CORRECTNESS_WEIGHT
from ragmetrics.stats.tally import Value, average
from ragmetrics.text.words import fold
from records import verdicts as records_verdicts
from records.cases import TestCase
from records.errors import StorageError
from records.results import TestResult
from records.runs import CACHE_DIR
from records.verdicts import FILE
from scorers import judged_scores
from scorers.abstention import JudgedReply
from scorers.contract import Evidence, ScoreRow
from scorers.embedding import BLOCK, Embed, answered, vectors_of
from scorers.judged_scores import Calls, Judgement, Texts, blames, joined

AGREEMENT, MANIPULATION = "judge_self_agreement", "judge_manipulation_suspected"

STALE = "judged before its answer or labels changed"

OTHERS = "Lines of verdicts.jsonl by another judge, prompt or temperature, which do not count: {}."

AnswerKey = tuple[str, int]
"""Case id and repeat of the answer."""

Parts = dict[int, records_verdicts.Line]

Opinions = dict[int, Calls]


@dataclass
class Verdicts:
    """The verdict lines of one judge, by case and repeat of the answer. Whoever shows or counts a
    verdict asks here which ones there are."""

    judge: Mapping[str, Any]
    found: dict[AnswerKey, dict[tuple[str, int], Parts]] = field(default_factory=dict)
    others: int = 0

    @property
    def calls(self) -> set[str]:
        """What was judged."""
        return {metric for parts in self.found.values() for metric, _ in parts}

    @property
    def repeats(self) -> int:
        """The most opinions that any answer has."""
        return 1 + max((r for parts in self.found.values() for _, r in parts), default=0)

    def subject(self, case: TestCase, result: TestResult) -> Subject:
        """An answer with the chunks that the judge was shown."""
        return Subject(case, result, self.judge.get("k"))

    def opinions(self, subject: Subject) -> tuple[Opinions, bool]:
        """The calls of each opinion on an answer as it is now; what code decided belongs to all.

        And whether a call has only verdicts that do not count any more: those on another answer, on
        other chunks or other labels.
        """
        found: dict[int, dict[str, Judgement]] = defaultdict(dict)
        mark, stale = subject.fingerprint, False
        key = (subject.case.id, subject.result.repeat)
        for (metric, opinion), parts in self.found.get(key, {}).items():
            fresh = {part: line for part, line in parts.items() if line.get("subject") == mark}
            if (judgement := joined(fresh)) is not None:
                found[opinion][metric] = judgement
            else:
                stale |= len(fresh) < len(parts)
        return dict(found), stale


def read_verdicts(
    folder: Path,
    judge: Mapping[str, Any],
    *,
    keep: Callable[[records_verdicts.Line], bool] = lambda line: True,
    at: Iterable[int] | None = None,
    texts: bool = False,
) -> Verdicts:
    """The lines of the judge that config.json names; those of others are counted and left out.

    ``keep``: only the lines that it takes. ``at``: only those that begin at these byte offsets, in
    the order of the file. ``texts``: with the texts of the chunks, which no score needs.
    """
    verdicts = Verdicts(judge)
    belongs = records_verdicts.of_judge(judge)
    for line in records_verdicts.read(folder / records_verdicts.FILE, keep, at):
        case_id, repeat, metric, opinion, part = records_verdicts.key_of(line)
        if not belongs(line):
            verdicts.others += 1
            continue
        if not texts:
            for context in line["input"].get("contexts", ()):
                context.pop("text", None)
        of_case = verdicts.found.setdefault((case_id, repeat), {})
        of_case.setdefault((metric, opinion), {})[part] = line
    return verdicts


def rows_for(verdicts: Verdicts) -> tuple[Metric, ...]:
    """The catalogue rows that the verdicts can fill."""
    calls, wanted = verdicts.calls, set[str]()
    for name, needed in CALLS_BY_METRIC.items():
        wanted |= {name} if set(needed) <= calls else set()
    wanted |= {MANIPULATION} | ({AGREEMENT} if verdicts.repeats > 1 else set())
    return tuple(row for row in ROWS if row.name in wanted)


@dataclass
class JudgedScorer:
    """Scores one answer from its verdicts; ``embed`` None: ``no_model`` says why."""

    verdicts: Verdicts
    metrics: tuple[Metric, ...]
    embed: Embed | None = None
    embedding_model: str = ""
    no_model: str = "no embedding model"
    weight: float = judged.CORRECTNESS_WEIGHT

    section = "judged"

    @property
    def options(self) -> dict[str, Any]:
        """The judge as in config.json, and what else the numbers depend on."""
        return {
            "judge": dict(self.verdicts.judge),
            "correctness_weight": self.weight,
            "embedding_model": self.embedding_model,
        }

    def score(self, case: TestCase, result: TestResult) -> tuple[ScoreRow, Evidence]:
        """Of several opinions the mean counts; a failed judgement is FAILED and no score."""
        subject = self.verdicts.subject(case, result)
        opinions, stale = self.verdicts.opinions(subject)
        first = opinions.get(0, {})
        texts = self._texts(subject)
        names = [metric.name for metric in self.metrics]
        values: dict[str, Value] = {}
        reasons: dict[str, str] = {}
        spread: dict[str, float] = {}
        for name in names:
            if name in CALLS_BY_METRIC:
                found = [judged_scores.score(name, calls, texts) for calls in _own(name, opinions)]
                values[name] = average([(value,) for value, _ in found])[0]
                reasons[name] = next((why for _, why in found if why), "")
                scored = [value for value, _ in found if isinstance(value, float)]
                if len(scored) > 1:
                    spread[name] = max(scored) - min(scored)
        values[AGREEMENT], flips = _agreement(opinions)
        reasons[AGREEMENT] = "one opinion"
        rules = suspected(subject.answer)
        by_judge = any(True in one.extra("manipulation") for one in first.values())
        answered = subject.why_no_answer() is None
        values[MANIPULATION] = float(bool(rules) or by_judge) if answered else None
        reasons[MANIPULATION] = NO_ANSWER
        if stale:
            reasons |= {name: STALE for name, why in reasons.items() if why == "not judged"}
        evidence = evidence_of(first)
        if rules or by_judge:
            evidence["manipulation"] = {"rules": rules, "judge": by_judge}
        if len(opinions) > 1:
            evidence["opinions"] = flips | {"spread": spread}
        told = {
            name: reasons[name]
            for name in names
            if not isinstance(values[name], float) and reasons.get(name)
        }
        return ScoreRow(tuple(values[name] for name in names), tuple(told.items())), evidence

    def _texts(self, subject: Subject) -> Texts:
        cosine = None if self.embed is None else self._cosine
        return Texts(
            subject.case.question,
            subject.answer,
            subject.reference,
            cosine,
            self.no_model,
            self.weight,
        )

    def _cosine(self, one: str, other: str) -> float:
        assert self.embed is not None
        known = vectors_of(self.embed, [one, other])
        return embedding.whole_similarity(known[one], known[other])

    def warm(self, pairs: Iterable[tuple[TestCase, TestResult]]) -> None:
        """Embed what the cosines need, many texts together."""
        source = iter(pairs)
        while self.embed is not None and (block := list(islice(source, BLOCK))):
            vectors_of(self.embed, [text for pair in block for text in self._wanted(*pair)])

    def _wanted(self, case: TestCase, result: TestResult) -> Iterator[str]:
        subject = self.verdicts.subject(case, result)
        for calls in self.verdicts.opinions(subject)[0].values():
            one = calls.get("answer_relevancy")
            if one is not None and one.status == "ok" and not any(one.extra("noncommittal")):
                yield case.question
                yield from (text for found in one.extra("questions") for text in found)
            both = [calls.get(name) for name in CALLS_BY_METRIC["answer_correctness_judged"]]
            if self.weight < 1 and all(one is not None and one.status == "ok" for one in both):
                yield from (text for text in (subject.answer, subject.reference) if text.strip())

    def aggregate(
        self, section: dict[str, Any], scored: Iterator[dict[str, Any]], seed: int
    ) -> dict[str, Any]:
        """What stands beside the means: kinds of replies, claims an answer, flips and spread."""
        states: Counter[str] = Counter()
        counts: Counter[str] = Counter()
        spread: dict[str, list[float]] = defaultdict(list)
        for line in scored:
            evidence = line.get("evidence", {})
            states.update([evidence["reply"]] if "reply" in evidence else [])
            claims = evidence.get("claims", ())
            counts["answers_with_claims"] += bool(claims)
            counts["claims"] += len(claims)
            counts.update(f"claims_{claim['verdict']}" for claim in claims)
            if (found := evidence.get("opinions")) is not None:
                counts["flipped"] += found["flipped"]
                counts["items"] += found["items"]
                for name, width in found["spread"].items():
                    spread[name].append(width)
        more: dict[str, Any] = {"claims": {k: v for k, v in counts.items() if "claims" in k}}
        if states:
            more["replies"] = dict(sorted(states.items()))
        if counts["items"]:
            more["repeats"] = {
                "opinions": self.verdicts.repeats,
                "items": counts["items"],
                "flipped": counts["flipped"],
                "flip_rate": counts["flipped"] / counts["items"],
                "mean_spread": {name: fsum(w) / len(w) for name, w in sorted(spread.items())},
            }
        return section | more


def _own(name: str, opinions: Opinions) -> list[Calls]:
    """The calls of each opinion that says something of a metric by itself; the first always."""
    first = opinions.get(0, {})
    found: list[Calls] = [first]
    for number in sorted(opinions.keys() - {0}):
        own = opinions[number]
        if any(call in own for call in CALLS_BY_METRIC[name]):
            fixed = {call: one for call, one in first.items() if not one.asked}
            found.append(fixed | dict(own))
    return found


def _agreement(opinions: Opinions) -> tuple[Value, dict[str, int]]:
    """Share of identical verdicts over all calls with several opinions; flipped items and items."""
    same = pairs = 0.0
    flipped = items = 0
    for call in sorted({name for calls in opinions.values() for name in calls}):
        said = [_said(one) for n in sorted(opinions) if (one := opinions[n].get(call)) is not None]
        said = [one for one in said if one and len(one) == len(said[0])]
        agreement = judged.self_agreement(said)
        if agreement is not None:
            weight = len(said) * (len(said) - 1) / 2 * len(said[0])
            same, pairs = same + agreement * weight, pairs + weight
            changed, number = judged.flips(said)
            flipped, items = flipped + changed, items + number
    counts = {"flipped": flipped, "items": items}
    return (same / pairs if pairs else None), counts


def _said(one: Judgement) -> Sequence[str]:
    """What can be the same or not in two opinions; of questions only whether there is an answer."""
    if not one.asked:
        return []
    flags = [
        str(value) for name in ("addresses_question", "noncommittal") for value in one.extra(name)
    ]
    return [*one.verdicts, *flags]


NEEDS_MODEL = ("answer_relevancy", "answer_correctness_judged")


def make_scorer(
    folder: Path,
    *,
    weight: float = CORRECTNESS_WEIGHT,
    model: str | None = None,
    cache_dir: Path = CACHE_DIR,
) -> JudgedScorer:
    """A scorer of the verdicts that the run has.

    Raises StorageError when there are none of the judge in config.json. Without an embedding model
    the two metrics that need one do not apply.
    """
    if not (folder / FILE).exists():
        raise StorageError(f"{folder / FILE}: no such file; run judge_answers.py first.")
    judge = records_verdicts.judge_of(folder)
    verdicts = read_verdicts(folder, judge)
    if not verdicts.found:
        raise StorageError(
            f"{folder / FILE}: no verdicts of the judge in config.json; run judge_answers.py."
        )
    scorer = JudgedScorer(verdicts, rows_for(verdicts), weight=weight)
    if any(metric.name in NEEDS_MODEL for metric in scorer.metrics):
        try:
            embedder = Embedder(model, cache_dir)
        except EmbeddingUnavailable as error:
            scorer.no_model = f"no embedding model: {error}"
        else:
            scorer.embed, scorer.embedding_model = embedder, _name(embedder)
    return scorer


def replies(folder: Path) -> dict[tuple[str, int], JudgedReply]:
    """What the run's judge called each answer. Raises StorageError when it was not asked."""
    path = folder / FILE
    verdicts = read_verdicts(
        folder,
        records_verdicts.judge_of(folder),
        keep=lambda line: bool(line["metric"] == "abstained_judged"),
    )
    found: dict[tuple[str, int], JudgedReply] = {}
    for key, calls in verdicts.found.items():
        line = calls.get(("abstained_judged", 0), {}).get(0)
        if line is not None and line["status"] == "ok":
            by = "phrases" if "by_code" in line["extra"] else "judge"
            answer = line["input"].get("answer", "")
            found[key] = JudgedReply(line["verdicts"][0]["verdict"], by, answer)
    if not found:
        raise StorageError(
            f"{path}: no verdicts on abstention; run judge_answers.py --metrics abstained_judged."
        )
    return found


def judge_name(folder: Path) -> str:
    """The run's judge as ``provider/model@mark``."""
    return str(records_verdicts.identity_of(records_verdicts.judge_of(folder)["identity"]))


def warm(scorer: JudgedScorer, folder: Path, eval_set: Path, labels_dir: Path | None) -> None:
    """Embed what has no vector yet, many texts together; a model that cannot be loaded is told."""
    if scorer.embed is None:
        return
    try:
        scorer.warm(answered(folder, eval_set, labels_dir))
    except EmbeddingUnavailable as error:
        scorer.embed, scorer.no_model = None, f"no embedding model: {error}"


def _name(embedder: Embedder) -> str:
    """The model's name, for a folder with the hash of its content; no path of this machine."""
    if embedder.folder is None:
        return embedder.name
    return f"{Path(embedder.name).name} {embedder.identity[:12]}"


_JUDGE = (
    r"(?:graders?|judges?|evaluators?|evaluation model|assessors?|rat(?:ers?|ing model)"
    r"|scoring (?:model|system)|reviewing model|llm judge)"
)

RULES: dict[str, re.Pattern[str]] = {
    "addresses the judge": re.compile(
        rf"\b(?:notes?|message|instructions?|attention|hint|reminder|dear)\W{{0,3}}"
        rf"(?:(?:to|for) )?(?:the |any |all )?(?:\w+ )?{_JUDGE}\b"
        rf"|\bto (?:the |any |all )?{_JUDGE} ?:"
    ),
    "asks for a score": re.compile(
        r"\b(?:give|assign|award|return|output|deserves?|warrants?"
        r"|(?:rate|score|grade|mark) (?:this|it|the|my|with|as))\b[^.!?\n]{0,40}?"
        r"\b(?:(?:a |the )?(?:score|grade|rating|mark) of \W?\d"
        r"|(?:full|maximum|max|highest|perfect|top) (?:score|marks?|points|grade|rating)"
        r"|\d ?(?:/|out of) ?\d{1,3}\b)"
    ),
    "asks for a verdict": re.compile(
        r"\b(?:mark|label|classify|treat|judge|consider|return|count|declare)\b[^.!?\n]{0,30}?"
        r"\b(?:all|every|each|this|these)\b[^.!?\n]{0,30}?"
        r"\b(?:claims?|facts?|statements?|answers?|sentences?|verdicts?|responses?|items?|ids?)\b"
        r"[^.!?\n]{0,30}?\b(?:as |to |is |are )?\W?(?:supported|correct|present|faithful|grounded"
        r"|true|useful|attributed|accurate)\b"
    ),
    "overrides instructions": re.compile(
        r"\b(?:ignore|disregard|forget|override|bypass)\b[^.!?\n]{0,30}?\b(?:previous|prior|above"
        r"|earlier|all|any|the|your|evaluation|grading|judging)\b[^.!?\n]{0,25}?"
        r"\b(?:instructions?|rules?|rubrics?|criteria|prompts?|guidelines?|passages?|contexts?)\b"
    ),
    "forges a reply": re.compile(
        r"\"(?:verdicts?|score|manipulation)\"\s*:|<<<\s*(?:begin|end)\b|<\|[^|<>\n]{1,40}\|>"
        r"|\[/?inst\]|<</?sys>>"
    ),
}


def suspected(answer: str) -> list[str]:
    """The rules that an answer breaks; a question about grading is no talk to the judge."""
    folded = fold(answer)
    return [name for name, pattern in RULES.items() if pattern.search(folded)]


Entry = dict[str, Any]


def evidence_of(calls: Calls) -> dict[str, Any]:
    """``claims``, ``facts``, ``chunks``, ``questions``, ``reply``: those that were judged."""
    found: dict[str, Any] = {}
    blamed = blames(calls)
    if claims := _rows(calls.get("groundedness"), "claims"):
        for row in claims:
            row |= {"blame": blamed[row["id"]]} if row["id"] in blamed else {}
        found["claims"] = claims
    if facts := _rows(calls.get("correctness"), "facts"):
        held = {row["id"]: row for row in _rows(calls.get("context_recall"), "facts")}
        for row in facts:
            row |= {"in_contexts": held[row["id"]]["verdict"]} if row["id"] in held else {}
        found["facts"] = facts
    elif facts := _rows(calls.get("context_recall"), "facts"):
        found["facts_in_contexts"] = facts
    if claims := _rows(calls.get("answer_correctness"), "claims"):
        found["claims_in_reference"] = claims
    chunks = calls.get("context_precision")
    if chunks is not None and chunks.status == "ok":
        names = _chunk_ids(chunks)
        found["chunks"] = [
            {"chunk_id": names.get(entry["id"], ""), "verdict": entry["verdict"]}
            for entry in chunks.entries
        ]
    relevancy = calls.get("answer_relevancy")
    if relevancy is not None and relevancy.status == "ok":
        found["questions"] = [text for part in relevancy.extra("questions") for text in part]
    reply = calls.get("abstained_judged")
    if reply is not None and reply.status == "ok":
        found["reply"] = reply.verdicts[0]
    failed = {name: one.reason for name, one in calls.items() if one.status == "failed"}
    return found | ({"failed": failed} if failed else {})


def _chunk_ids(one: Judgement) -> dict[str, str]:
    contexts = (c for line in one.lines for c in line["input"].get("contexts", ()))
    return {context["id"]: context.get("chunk_id", "") for context in contexts}


def _rows(one: Judgement | None, items: str) -> list[Entry]:
    """Each claim or fact with its verdict, quote and reason; [] when there is no judgement."""
    if one is None or one.status != "ok":
        return []
    texts: Mapping[str, Entry] = {
        item["id"]: item for line in one.lines for item in line["input"].get(items, ())
    }
    names = _chunk_ids(one)
    rows = []
    for entry in one.entries:
        item = texts.get(entry["id"], {})
        row = {"id": entry["id"], "text": item.get("text", ""), "verdict": entry["verdict"]}
        row |= {name: entry[name] for name in ("quote", "reason") if entry.get(name)}
        if (chunk := names.get(entry.get("context") or "")) is not None:
            row["chunk_id"] = chunk
        if item.get("span"):
            row["span"] = item["span"]
        rows.append(row)
    return rows
