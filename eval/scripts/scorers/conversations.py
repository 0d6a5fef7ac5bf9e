"""Scores conversations: how far a turn needs the turns before it, and how conversations end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import msgspec

from ragmetrics import matching
from ragmetrics import searches as ragmetrics_searches
from ragmetrics.case_scores import Collector
from ragmetrics.catalogue.conversations import ROWS, RUN_ROWS
from ragmetrics.catalogue.metric import Metric, by_document
from ragmetrics.gold import CUT, CaseGold, Match, gold_of, match_chunks, unusable
from ragmetrics.pipeline import spread
from ragmetrics.stats.arrays import np
from ragmetrics.stats.tally import FAILED, Value
from records.cases import TestCase
from records.labels import has_turns
from records.results import UNREADABLE, RetrievedChunk, TestResult
from records.scores import ScoreLine
from scorers.abstention import usual_language
from scorers.common import has_whole_files, row_of, set_apart, without_passages
from scorers.contract import (
    Earlier,
    Evidence,
    NothingToScore,
    ScoreRow,
    ScoringJob,
    SectionScorer,
    add_metric,
)
from scorers.groundedness import GroundednessScorer
from scorers.pipeline import CLARIFY, asks_back, check_response, may_ask_back
from scorers.retrieval_remarks import match_of_run

if TYPE_CHECKING:
    from rich.console import Console

FEWEST = 6
"""Conversations below which no interval is given for a number of theirs."""

NAMED = 10
"""Conversations that are listed with their first failing turn."""

NO_TURN = "no turn of a conversation"

_OF_HISTORY = ("evidence_in_history", "answered_from_history")

_HISTORY_ROWS = tuple(row for row in ROWS if row.name in _OF_HISTORY)


@dataclass(frozen=True)
class ConversationsScorer:
    """Scores a turn with the turns before it in the same repeat; ``groundedness`` counts claims."""

    match: Match = "auto"
    min_similarity: float = matching.MIN_SIMILARITY
    groundedness: GroundednessScorer = field(default_factory=GroundednessScorer)

    documents: bool = False
    """Whether a case of the set has a whole file as gold: such turns have metrics of their own."""

    section = "conversations"

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return (*ROWS, *by_document(_HISTORY_ROWS)) if self.documents else ROWS

    @property
    def options(self) -> dict[str, Any]:
        return {"match": self.match, "min_similarity": self.min_similarity}

    def score(self, case: TestCase, result: TestResult) -> tuple[ScoreRow, Evidence]:
        """Score a question without earlier turns."""
        return self.score_turn(case, result, ())

    def score_turn(
        self, case: TestCase, result: TestResult, earlier: Sequence[Earlier]
    ) -> tuple[ScoreRow, Evidence]:
        """Scores of one result; ``earlier``: the turns before it that have an answer, in order."""
        scores = Collector([metric.name for metric in self.metrics])
        asked = asks_back(case, result)
        _score_asking(scores, case, result, asked=asked)
        if case.conversation is None:
            scores.nothing([*_OF_HISTORY, "claim_support_conversation"], NO_TURN)
            set_apart(scores, _HISTORY_ROWS, None)
            return row_of(scores.result(), self.metrics), scores.evidence
        passed = check_response(case, result).values["pass"]
        scores.evidence |= {"turn": case.turn, "pass": passed}
        gold = None if case.answerable is False else gold_of(case, self.match)
        self._history(scores, case, result, gold, earlier, passed)
        set_apart(scores, _HISTORY_ROWS, gold)
        self._claims(scores, case, result, earlier)
        measured: dict[str, Any] = {
            "latency_ms": result.latency_ms.get("total"),
            "cost_usd": result.cost_usd,
        }
        measured["usage"] = result.usage or None
        scores.evidence |= {name: value for name, value in measured.items() if value is not None}
        return row_of(scores.result(), self.metrics), scores.evidence

    def score_failed(self, case: TestCase, reason: str) -> ScoreRow:
        """No score; ``_Totals`` counts a turn without an answer as one that does not pass."""
        del case
        no_score: Value = FAILED
        return ScoreRow((no_score,) * len(self.metrics), (("*", reason),), status="failed")

    def _history(
        self,
        scores: Collector,
        case: TestCase,
        result: TestResult,
        gold: CaseGold | None,
        earlier: Sequence[Earlier],
        passed: float | None,
    ) -> None:
        """Whether earlier turns had brought what this turn's passages lack."""
        chunks = result.chunks()
        why = _not_asked(case, result, gold, chunks)
        if why or gold is None:
            scores.nothing(_OF_HISTORY, why)
            return
        lists = [chunks, *(answer.chunks() for _, answer in reversed(earlier))]
        if gold.mode == "text" and any(chunk.truncated for own in lists for chunk in own):
            scores.nothing(_OF_HISTORY, CUT)
            return
        matches = [match_chunks(gold, own, self.min_similarity) for own in lists]
        if any(found.open for found in matches):
            scores.nothing(_OF_HISTORY, CUT)
            return
        own = ragmetrics_searches.evidence_recall(matches[0], gold.grades, gold.groups, len(chunks))
        if own >= 1.0:
            scores.nothing(_OF_HISTORY, "this turn's passages have all the needed evidence")
            return
        union = ragmetrics_searches.union(
            matches, [len(own) for own in lists], gold.grades, gold.groups
        )
        in_history = union.complete_at is not None
        scores.set("evidence_in_history", float(in_history), "")
        from_history = None if passed is None else float(in_history and passed == 1.0)
        scores.set("answered_from_history", from_history, "no check applies")
        missing = [index for index, rank in enumerate(matches[0].first) if rank is None]
        turns = [turn.turn for turn, _ in reversed(earlier)]
        scores.evidence |= {
            "match": gold.mode,
            "missing": missing,
            "found_at": [
                next((t for t, m in zip(turns, matches[1:], strict=True) if m.first[index]), None)
                for index in missing
            ],
        }

    def _claims(
        self, scores: Collector, case: TestCase, result: TestResult, earlier: Sequence[Earlier]
    ) -> None:
        """The share of claims that the passages of the conversation so far support."""
        chunks = result.chunks()
        for _, answer in reversed(earlier):
            chunks += answer.chunks()
        ranked = [msgspec.structs.replace(chunk, rank=rank) for rank, chunk in enumerate(chunks, 1)]
        whole = msgspec.structs.replace(result, retrieved=[*ranked])
        row, _ = self.groundedness.score(case, whole)
        names = [metric.name for metric in self.groundedness.metrics]
        value = dict(zip(names, row.values, strict=True))["claim_support_rate"]
        reasons = dict(row.reasons)
        why = reasons.get("claim_support_rate") or reasons.get("*", "no claims")
        scores.set("claim_support_conversation", None if value == "failed" else value, why)

    def aggregate(
        self, section: dict[str, Any], lines: Iterator[ScoreLine], seed: int
    ) -> dict[str, Any]:
        """The section with conversation_pass, and with ``conversations``: counts by
        first failing turn, and cost."""
        totals = _Totals()
        for line in lines:
            if line.turn:
                totals.add(line)
        totals.close()
        values, clusters = totals.passes, totals.clusters
        interval = None
        if values and len(set(clusters)) >= FEWEST:
            from ragmetrics.stats.intervals import effective_wilson

            interval = effective_wilson(np.array(values), 0.0, 1.0, clusters)
        add_metric(
            section,
            RUN_ROWS[0],
            sum(values) / len(values) if values else None,
            interval,
            n=len(values),
            not_applicable=totals.count - len(values),
        )
        return section | {"conversations": totals.summary()}


class _Totals:
    """Adds up conversations, each repeat of one by itself; lines of one stand beside each other."""

    def __init__(self) -> None:
        self.count = self.unread = 0
        self.passes: list[float] = []
        self.clusters: list[int] = []
        self._broke: Counter[int] = Counter()
        self._first_broken: list[tuple[int, str, int]] = []
        self._sums: dict[str, list[float]] = {}
        self._open = 0
        self._repeats: dict[int, list[ScoreLine]] = {}

    def add(self, line: ScoreLine) -> None:
        if line.conversation != self._open:
            self.close()
            self._open = line.conversation
        self._repeats.setdefault(line.repeat, []).append(line)

    def close(self) -> None:
        for lines in self._repeats.values():
            self._take(lines)
        self._repeats = {}

    def _take(self, lines: Sequence[ScoreLine]) -> None:
        self.count += 1
        checks = {
            line.turn: 0.0 if line.status == "failed" else (line.evidence or {}).get("pass")
            for line in lines
        }
        checked = [value for value in checks.values() if value is not None]
        unread = any(line.status == UNREADABLE for line in lines)
        self.unread += unread
        if checked and not (unread and all(checked)):  # else the unread turn decides
            self.passes.append(float(all(checked)))
            self.clusters.append(lines[0].cluster_number or lines[0].conversation)
        broken = [line for line in lines if checks[line.turn] == 0.0]
        if broken:
            first = min(broken, key=lambda line: line.turn)
            self._broke[first.turn] += 1
            self._first_broken.append((first.turn, first.case_id, first.repeat))
            # sorting is stable: of one turn those stay that come first in the set
            self._first_broken = sorted(self._first_broken, key=lambda row: row[0])[:NAMED]
        sums: dict[str, float] = {}
        for line in lines:
            evidence = line.evidence or {}
            numbers: dict[str, Any] = {
                name: evidence.get(name) for name in ("latency_ms", "cost_usd")
            }
            numbers |= {f"usage.{name}": value for name, value in evidence.get("usage", {}).items()}
            for name, value in numbers.items():
                if type(value) in (int, float):
                    sums[name] = sums.get(name, 0.0) + value
        for name, value in (sums | {"turns": float(len(lines))}).items():
            self._sums.setdefault(name, []).append(value)

    def summary(self) -> dict[str, Any]:
        """Counts, the first turns that do not pass (the earliest by name), and mean, median, p95
        and most of what one took."""
        return {
            "n": self.count,
            "broke_at_turn": {str(turn): n for turn, n in sorted(self._broke.items())},
            "first_broken": [
                {"case_id": case_id, "repeat": repeat, "turn": turn}
                for turn, case_id, repeat in self._first_broken
            ],
            **({UNREADABLE: self.unread} if self.unread else {}),
            "per_conversation": {
                name: spread(values) for name, values in sorted(self._sums.items())
            },
        }


def _score_asking(scores: Collector, case: TestCase, result: TestResult, *, asked: bool) -> None:
    """Whether the bot asks back where it should, and where it should not."""
    scores.evidence["asks_back"] = asked
    names = ("asked_back", "over_asking")
    if result.answer is None:
        scores.nothing(names, "no answer")
    elif case.expected_outcome == CLARIFY:
        scores.set("asked_back", float(asked), "")
        scores.nothing(["over_asking"], "expected_outcome is clarify")
    else:
        scores.nothing(["asked_back"], "expected_outcome is not clarify")
        clear = case.answerable is True and may_ask_back(case)
        scores.set("over_asking", float(asked) if clear else None, "no turn that is answerable")


def _not_asked(
    case: TestCase, result: TestResult, gold: CaseGold | None, chunks: Sequence[RetrievedChunk]
) -> str:
    """Why nothing can be said of earlier turns; "" when it can."""
    if case.turn == 1:
        return "first turn"
    if result.asked_with != "live":
        return "not asked live"
    if case.answerable is False:
        return "unanswerable"
    if gold is None:
        return "no gold"
    if why := without_passages(result)[1]:
        return why
    return unusable(gold, chunks)


def _show_more(console: Console, section: Mapping[str, Any]) -> None:
    """In how many conversations a turn does not pass, which is the first, and what one takes."""
    from terminal.tables import counted, plain, print_rows

    summary = section["conversations"]
    if not summary["n"]:
        return
    broke = summary["broke_at_turn"]
    where = ", ".join(f"{n} at turn {turn}" for turn, n in broke.items())
    checked = section["n"]["conversation_pass"]
    unread = summary.get(UNREADABLE)
    told = "every turn passes" if checked else "no turn has a pipeline label to check"
    if unread:
        told = f"in {unread} a turn could not be read"
    if broke:
        more = f"; {told}" if unread else ""
        told = f"in {sum(broke.values())} a turn fails, first: {where}{more}"
    console.print(f"\n{counted(summary['n'], 'conversation')}; {told}.")
    if first := summary["first_broken"]:
        names = ", ".join(plain(row["case_id"], 80) for row in first)
        left_out = sum(broke.values()) - len(first)
        more = f", and {left_out:,} more" if left_out else ""
        console.print(f"First failing turns: {names}{more}.")
    rows = [
        (
            name,
            f"{row['mean']:,.6g}",
            f"{row['p50']:,.6g}",
            f"{row['p95']:,.6g}",
            f"{row['max']:,.6g}",
        )
        for name, row in summary["per_conversation"].items()
    ]
    if rows:
        console.print("A conversation takes:")
        print_rows(console, ("", "mean", "p50", "p95", "max"), rows)


def _make(job: ScoringJob, options: ConversationsScorer) -> ConversationsScorer:
    if not has_turns(job.eval_set):
        raise NothingToScore(
            f"{job.eval_set} has no conversation: no case has conversation and turn, or history."
        )
    groundedness = GroundednessScorer(usual_language=usual_language(job.folder))
    match = match_of_run(job, options.match)
    documents = has_whole_files(job.eval_set, match)
    return replace(options, groundedness=groundedness, match=match, documents=documents)


SECTION = SectionScorer(options=ConversationsScorer, scorer=_make, show_more=_show_more)
