"""The judgements of a retrieved list, and whether headings ever match."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import fsum
from pathlib import Path
from typing import Any, NamedTuple

from ragmetrics import matching
from ragmetrics import retrieval as ragmetrics_retrieval
from ragmetrics.gold import CUT, CaseGold, doc_of, place_of, whole_text
from ragmetrics.matching import Anchor, Matches, Passage
from ragmetrics.paths import MOST_PASSAGES, examine_paths
from ragmetrics.retrieval import Ranking
from records.cases import TestCase, ignore, iter_cases
from records.judged import JudgedRow, JudgedRows, key_of_passage
from records.results import RetrievedChunk, read_results
from records.runs import results_file
from records.scores import ScoreLine

NO_JUDGEMENTS, NO_NEGATIVES = "no judgements", "nothing judged irrelevant"

NO_TEXTS = "no chunk texts"

LEAST_MISPLACED, MISPLACED_SHARE = 5, 0.2
"""Cases, and their share, above which headings that never match are remarked on."""


def places_found(
    gold: Sequence[Anchor], matches: Matches, chunks: Sequence[RetrievedChunk]
) -> dict[str, Any]:
    """Return whether a gold heading was found where its file was; if not, the headings found there.

    {} when no file of a support that has a heading was retrieved.
    """
    headed = [index for index, support in enumerate(gold) if support.heading]
    if any(matches.first[index] is not None for index in headed):
        return {"heading_found": True}
    wanted = {gold[index].path: gold[index] for index in reversed(headed)}
    for chunk in chunks:
        place = place_of(chunk)
        if place is not None and place.path in wanted:
            support = wanted[place.path]
            heading = matching.SEPARATOR.join(support.heading)
            got = [place.path, heading, (chunk.heading_path or "")[:MOST_HEADING]]
            return {"heading_found": False, "instead": got}
    return {}


MOST_HEADING = 500
"""Characters of a bot's heading that are kept as an example."""


class MisplacedCases:
    """Gathers cases whose file was found and whose heading was not."""

    def __init__(self) -> None:
        self._cases: set[str] = set()
        self._instead: dict[str, Sequence[str]] = {}

    def take(self, line: ScoreLine) -> bool:
        """Count a score line; False when a heading matched, so that no remark is due."""
        evidence = line.evidence or {}
        if evidence.get("match") == "anchor":
            self._cases.add(line.case_id)
            if "instead" in evidence:
                self._instead.setdefault(line.case_id, evidence["instead"])
        return not evidence.get("heading_found")

    def noted(self) -> dict[str, Any] | None:
        """The remark, if there are enough of them."""
        if len(self._instead) < max(LEAST_MISPLACED, MISPLACED_SHARE * len(self._cases)):
            return None
        path, wanted, got = next(iter(self._instead.values()))
        counts = {"cases": len(self._cases), "path_found": len(self._instead)}
        return counts | {"path": path, "wanted": wanted, "got": got}


def unseen_files(eval_set: Path, folder: Path) -> dict[str, Any] | None:
    """The remark that the bot names files as the labels never do; None where this is untrue."""
    if not results_file(folder).exists():  # one scorer scores the parts of several runs
        return None
    lists: dict[str, list[str]] = {}
    passages = 0
    for _, result in read_results(results_file(folder), ("test_case_id", "status", "retrieved")):
        if result.status == "ok" and result.test_case_id not in lists:
            lists[result.test_case_id] = [
                chunk.rel_path or ""
                for chunk in result.retrieved or ()
                if isinstance(chunk, RetrievedChunk)
            ]
            passages += len(lists[result.test_case_id])
        if passages > MOST_PASSAGES:
            break
    known: set[str] = set()
    asked = []
    for case in iter_cases(eval_set, ignore):
        gold = [support.rel_path for support in case.gold_supports]
        known.update(gold)
        if gold and case.answerable is not False and case.id in lists:
            asked.append((gold, lists[case.id]))
    verdict = examine_paths(asked, known)
    gained = verdict.seen_cut - verdict.seen
    if not verdict.two_name_spaces and gained < max(1, MISPLACED_SHARE * verdict.gold):
        return None
    label, bot = verdict.example or ("", "")
    return {
        "gold": verdict.gold,
        "seen": verdict.seen,
        "seen_cut": verdict.seen_cut,
        "steps": " ".join(verdict.cut.steps),
        "root": verdict.cut.root,
        "label": label[:MOST_HEADING],
        "bot": bot[:MOST_HEADING],
    }


RANGED = ("precision", "evidence_recall")
"""Metrics that the unjudged passages leave between two ends. Recall and NDCG have none, since
relevant passages outside the list raise their denominator."""


def ends_of(ranking: Ranking, k: int, unjudged: int) -> list[float]:
    """The two ends of each metric of RANGED for one case at k."""
    right = ragmetrics_retrieval.precision(ranking, k)
    return [
        right,
        right + unjudged / k,
        ragmetrics_retrieval.evidence_recall(ranking, k),
        ragmetrics_retrieval.evidence_recall_at_most(ranking, k, unjudged),
    ]


class UnjudgedRanges:
    """Means of precision and evidence_recall if all unjudged chunks were irrelevant, or relevant.

    Over the cases with judgements; of a case that was asked several times the mean counts.
    """

    def __init__(self, ks: tuple[int, ...]) -> None:
        self._ks = ks
        self._cases: dict[str, list[list[float]]] = {}

    def take(self, line: ScoreLine) -> None:
        ends = (line.evidence or {}).get("ranges")
        if ends is not None:
            flat = [end for at_k in ends for end in at_k]
            self._cases.setdefault(line.case_id, []).append(flat)

    def means(self) -> dict[str, list[float]]:
        """``{"precision@5": [low, high], …}``, and for evidence_recall."""
        rows = [
            [fsum(column) / len(column) for column in zip(*repeats, strict=True)]
            for repeats in self._cases.values()
        ]
        ends = [fsum(column) / len(rows) for column in zip(*rows, strict=True)]
        names = [f"{name}@{k}" for k in self._ks for name in RANGED]
        return {name: ends[2 * at : 2 * at + 2] for at, name in enumerate(names)}


class JudgedPool(NamedTuple):
    """The judgements of a list. They are the ranks of ``unjudged`` chunks and of those judged
    ``wrong`` (each passage once), and how many ``negatives`` the case has, retrieved or not."""

    unjudged: list[int]
    wrong: list[int]
    negatives: int

    def unjudged_to(self, k: int) -> int:
        """How many of the top k have no human judgement."""
        return bisect_right(self.unjudged, k)


def pool_of(
    case: TestCase,
    gold: CaseGold,
    matches: Matches,
    chunks: Sequence[RetrievedChunk],
    judged: JudgedRows,
) -> JudgedPool | str:
    """Return the judgements of the list, or the reason why none are known."""
    if gold.mode in ("chunk", "doc"):
        names: Sequence[str | None] = (
            [chunk.chunk_id for chunk in chunks]
            if gold.mode == "chunk"
            else [doc_of(chunk) for chunk in chunks]
        )
        return _graded_pool(case, gold, matches, names)
    rows = judged.get(case.id, ())
    graded = {name for name, grade in case.chunk_relevance_grades.items() if grade == 0}
    if not rows and not graded:
        return NO_JUDGEMENTS
    hits = set(matches.hits)
    known = {row.key for row in rows}
    hit_keys = {key_of_passage(chunks[rank - 1]) for rank in hits} if rows else set()
    negative = {
        row.key
        for row in rows
        if row.grade == 0 and row.key not in hit_keys and not _is_gold(row, gold)
    }
    unjudged, wrong, seen = [], [], set()
    for rank, chunk in enumerate(chunks, 1):
        if rank in hits:
            continue
        name = chunk.chunk_id
        if name not in graded:
            if rows and whole_text(chunk) is None:
                return CUT if chunk.truncated else NO_TEXTS
            name = key_of_passage(chunk) if rows else ""
            if name not in known:
                unjudged.append(rank)
                continue
            if name not in negative:
                continue
        if name not in seen:
            seen.add(name)
            wrong.append(rank)
    return JudgedPool(unjudged, wrong, len(negative) + len(graded))


def _graded_pool(
    case: TestCase, gold: CaseGold, matches: Matches, names: Sequence[str | None]
) -> JudgedPool | str:
    """The same where ids are graded: 0 is judged irrelevant, below 0 (as in trec_eval) unjudged."""
    if gold.mode == "chunk":
        grades = case.chunk_relevance_grades
    else:
        grades = {matching.same_form(doc): g for doc, g in case.relevance_grades.items()}
    negative = {name for name, grade in grades.items() if grade == 0}
    if not negative:
        return NO_JUDGEMENTS
    hits = set(matches.hits)
    unjudged, wrong, seen = [], [], set()
    for rank, name in enumerate(names, 1):
        if rank in hits:
            continue
        if name not in negative:
            unjudged.append(rank)
        elif name not in seen:
            seen.add(name)
            wrong.append(rank)
    return JudgedPool(unjudged, wrong, len(negative))


def _is_gold(row: JudgedRow, gold: CaseGold) -> bool:
    """True when a judged passage is a gold support by its place: its mark came later than its row.

    By its words it is recognised only where it was retrieved: a row keeps no text."""
    if gold.mode not in ("anchor", "document"):
        return False
    passage = Passage(matching.anchor(row.rel_path, row.heading_path))
    return any(
        matching.matches_place(support, quotes, passage)
        for support, quotes in zip(gold.keys, gold.quotes, strict=True)
    )
