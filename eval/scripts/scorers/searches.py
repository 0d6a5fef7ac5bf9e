"""Scores searches: the passages that each search brought, and those lost after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import TYPE_CHECKING, Any

import msgspec

from ragmetrics import matching
from ragmetrics import searches as ragmetrics_searches
from ragmetrics.case_scores import Collector
from ragmetrics.catalogue.metric import BY_DOCUMENT, Metric, by_document
from ragmetrics.catalogue.searches import GOLD, ROWS
from ragmetrics.gold import CUT, CaseGold, Match, gold_of, match_chunks, unusable
from ragmetrics.matching import Matches
from records.cases import TestCase
from records.judged import identity_of
from records.results import RetrievedChunk, Search, TestResult, tells_searches
from records.runs import RESULTS
from records.scores import ScoreLine
from scorers.common import has_whole_files, row_of, set_apart
from scorers.contract import Evidence, NothingToScore, ScoreRow, ScoringJob, SectionScorer
from scorers.retrieval_remarks import match_of_run

if TYPE_CHECKING:
    from rich.console import Console

NO_SEARCHES = "no searches"

_GOLD_ROWS = tuple(row for row in ROWS if row.needs.startswith(GOLD))

_OF_GOLD = tuple(row.name for row in _GOLD_ROWS)

Searched = Sequence[tuple[Search, Sequence[RetrievedChunk]]]


@dataclass(frozen=True)
class SearchesScorer:
    """Scores the searches of one result against the gold of its case, over whole lists."""

    match: Match = "auto"
    min_similarity: float = matching.MIN_SIMILARITY

    documents: bool = False
    """Whether a case of the set has a whole file as gold: such cases have metrics of their own."""

    section = "searches"

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return (*ROWS, *by_document(_GOLD_ROWS)) if self.documents else ROWS

    @property
    def options(self) -> dict[str, Any]:
        return {"match": self.match, "min_similarity": self.min_similarity}

    def score(self, case: TestCase, result: TestResult) -> tuple[ScoreRow, Evidence]:
        """Scores of one result. Without searches nothing is applicable; without gold, the counts
        are."""
        scores = Collector([metric.name for metric in self.metrics])
        searched = result.searched()
        if not searched:
            scores.nothing(list(scores.values), NO_SEARCHES)
            return row_of(scores.result(), self.metrics), {}
        rows = _count(scores, searched)
        gold = None if case.answerable is False else gold_of(case, self.match)
        if case.answerable is False:
            scores.nothing(_OF_GOLD, "unanswerable")
        elif gold is None:
            kind = "" if self.match in ("auto", "file") else f"{self.match} "
            scores.nothing(_OF_GOLD, f"no {kind}gold")
        elif why := _unusable(gold, searched):
            scores.nothing(_OF_GOLD, why)
        else:
            self._match(scores, gold, searched, result, rows)
        set_apart(scores, _GOLD_ROWS, gold)
        scores.evidence["searches"] = rows
        if case.conversation is not None and case.turn is not None:
            scores.evidence["turn"] = case.turn
        row = row_of(scores.result(), self.metrics)
        if gold is not None and "match" in scores.evidence:
            row = msgspec.structs.replace(row, slices=(("match", gold.mode),))
        return row, scores.evidence

    def _match(
        self,
        scores: Collector,
        gold: CaseGold,
        searched: Searched,
        result: TestResult,
        rows: Sequence[dict[str, Any]],
    ) -> None:
        """What each search and all together have of the gold."""
        matches = [match_chunks(gold, chunks, self.min_similarity) for _, chunks in searched]
        if any(found.open for found in matches):
            scores.nothing(_OF_GOLD, CUT)
            return
        lengths = [len(chunks) for _, chunks in searched]
        recalls = []
        for row, found, length in zip(rows, matches, lengths, strict=True):
            if "error" not in row:
                row["evidence_recall"] = ragmetrics_searches.evidence_recall(
                    found, gold.grades, gold.groups, length
                )
                recalls.append(row["evidence_recall"])
            row["found"], row["hits"] = found.first, found.hits
        union = ragmetrics_searches.union(matches, lengths, gold.grades, gold.groups)
        scores.set("union_evidence_recall", union.evidence_recall, "")
        scores.set("search_evidence_recall", fsum(recalls) / len(recalls), "")
        scores.set("never_complete", float(union.complete_at is None), "")
        scores.set("complete_at_search", union.complete_at, "never complete")
        scores.evidence |= {"match": gold.mode, "complete_at": union.complete_at}
        self._lose(scores, gold, union.matches, result)

    def _lose(self, scores: Collector, gold: CaseGold, union: Matches, result: TestResult) -> None:
        """What the searches brought and the answer did not see."""
        seen = result.chunks()
        if result.retrieved_from_search or result.seen == "union":
            scores.nothing(["lost_supports"], "retrieved was derived from a search")
        elif gold.mode == "text" and any(chunk.truncated for chunk in seen):
            scores.nothing(["lost_supports"], CUT)
        else:
            retrieved = match_chunks(gold, seen, self.min_similarity)
            if retrieved.open:
                scores.nothing(["lost_supports"], CUT)
                return
            lost = ragmetrics_searches.lost_supports(union, retrieved)
            scores.set("lost_supports", len(lost), "")
            scores.evidence["lost"] = lost

    def aggregate(
        self, section: dict[str, Any], lines: Iterator[ScoreLine], seed: int
    ) -> dict[str, Any]:
        """The section with ``by_search``: what the first, second, … search brought; and with
        ``by_turn``, the same for each turn of the conversations."""
        whole = _SearchTable()
        turns: dict[int, _SearchTable] = {}
        for line in lines:
            evidence = line.evidence or {}
            rows = evidence.get("searches", ())
            by_document = evidence.get("match") == "document"
            whole.add(rows, by_document=by_document)
            if rows and "turn" in evidence:
                turns.setdefault(evidence["turn"], _SearchTable()).add(
                    rows, by_document=by_document
                )
        more: dict[str, Any] = {"by_search": whole.rows()}
        if turns:
            more["by_turn"] = {str(turn): turns[turn].rows() for turn in sorted(turns)}
        return section | more


class _SearchTable:
    """Counts by the number of a search; sums are exact, in any order of the lines."""

    def __init__(self) -> None:
        self._counts: dict[int, dict[str, int]] = {}
        self._recalls: dict[tuple[int, str], list[float]] = {}

    def add(self, rows: Sequence[Mapping[str, Any]], *, by_document: bool) -> None:
        """Count the searches of an answer; ``by_document``: whole files are its gold."""
        suffix = BY_DOCUMENT if by_document else ""
        for number, row in enumerate(rows, 1):
            names = ("searches", "failed", "empty", "nothing_new")
            counts = self._counts.setdefault(number, dict.fromkeys(names, 0))
            counts["searches"] += 1
            if kind := _kind(row):
                counts[kind] += 1
            if "evidence_recall" in row:
                self._recalls.setdefault((number, suffix), []).append(row["evidence_recall"])

    def rows(self) -> dict[str, Any]:
        rows: dict[str, Any] = {}
        for number, counts in sorted(self._counts.items()):
            row: dict[str, Any] = {**counts, "n": 0, "evidence_recall": None}
            rows[str(number)] = row
            for suffix in ("", BY_DOCUMENT):
                if recalls := self._recalls.get((number, suffix)):
                    mean = fsum(recalls) / len(recalls)
                    row |= {f"n{suffix}": len(recalls), f"evidence_recall{suffix}": mean}
        return rows


def _kind(row: Mapping[str, Any]) -> str:
    """``failed``, ``empty``, ``nothing_new``, or "" for a search that brought something new."""
    if "error" in row:
        return "failed"
    if not row["passages"]:
        return "empty"
    return "" if row["new"] else "nothing_new"


def _count(scores: Collector, searched: Searched) -> list[dict[str, Any]]:
    """The numbers that need no gold; a row of evidence for each search."""
    fresh = ragmetrics_searches.new_passages(
        [[identity_of(chunk) for chunk in chunks] for _, chunks in searched]
    )
    rows = []
    for (search, chunks), ranks in zip(searched, fresh, strict=True):
        row: dict[str, Any] = {"passages": len(chunks), "new": ranks}
        if search.error is not None:
            row["error"] = search.error
        rows.append(row)
    kinds = [_kind(row) for row in rows]
    scores.set("searches_without_new", kinds.count("nothing_new"), "")
    scores.set("empty_searches", kinds.count("empty"), "")
    scores.set("failed_searches", kinds.count("failed"), "")
    scores.set("search_count", len(rows), "")
    return rows


def _unusable(gold: CaseGold, searched: Searched) -> str:
    """Why the gold cannot be matched with the passages of the searches; "" when it can."""
    chunks = [chunk for _, chunks in searched for chunk in chunks]
    if all(search.error is not None for search, _ in searched):
        return "every search failed"
    return unusable(gold, chunks)


def _show_tables(console: Console, section: Mapping[str, Any]) -> None:
    """What each search brought, then by turn, and where least of the evidence was found."""
    from terminal.tables import print_rows

    recalls = ["evidence_recall"]
    if any(_FILE_RECALL in row for row in section["by_search"].values()):
        recalls.append(_FILE_RECALL)
    head = ("search", "searches", *recalls, "nothing new", "empty", "failed")
    if section["by_search"]:
        console.print("\nBy search, in order of their start:")
        print_rows(
            console,
            head,
            [_cells(number, row, recalls) for number, row in section["by_search"].items()],
        )
    turns = section.get("by_turn", {})
    if turns:
        console.print("\nBy turn and search:")
        rows = [
            (turn, *_cells(number, row, recalls))
            for turn, table in turns.items()
            for number, row in table.items()
        ]
        print_rows(console, ("turn", *head), rows)
    if least := _least(section):
        console.print(least)


_FILE_RECALL = "evidence_recall" + BY_DOCUMENT


def _cells(number: str, row: Mapping[str, Any], recalls: Sequence[str]) -> tuple[str, ...]:
    means = ("–" if row.get(name) is None else f"{row[name]:.3f}" for name in recalls)
    counts = (str(row[name]) for name in ("nothing_new", "empty", "failed"))
    return number, str(row["searches"]), *means, *counts


def _least(section: Mapping[str, Any]) -> str:
    """A sentence on the search that found least of the evidence, with its turn; "" when all found
    the same."""
    from terminal.tables import counted

    tables = section.get("by_turn") or {"": section["by_search"]}
    means = [
        (row["evidence_recall"], turn, number, row["n"])
        for turn, table in tables.items()
        for number, row in table.items()
        if row["evidence_recall"] is not None
    ]
    if not means or len({mean for mean, *_ in means}) == 1:
        return ""
    mean, turn, number, n = min(means, key=lambda row: row[0])
    where = f"search {number} of turn {turn}" if turn else f"search {number}"
    return (
        f"The weakest search is {where}: evidence_recall {mean:.3f} "
        f"({counted(n, 'search', 'searches')})."
    )


def _make(job: ScoringJob, options: SearchesScorer) -> SearchesScorer:
    results = job.folder / RESULTS
    if results.exists() and not tells_searches(results):
        raise NothingToScore(
            f"No result of {job.folder.name} reports its searches; map `searches` in the profile "
            "of a bot that does (eval/profiles/default.toml explains it) and ask again."
        )
    match = match_of_run(job, options.match)
    return replace(options, match=match, documents=has_whole_files(job.eval_set, match))


SECTION = SectionScorer(
    options=SearchesScorer,
    scorer=_make,
    show_more=_show_tables,
)
