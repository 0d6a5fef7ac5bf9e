"""Scores retrieval: whether the bot found the passages that support the answer, and how far up."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ragmetrics import catalogue, matching
from ragmetrics import retrieval as ragmetrics_retrieval
from ragmetrics.catalogue import metric as catalogue_metric
from ragmetrics.catalogue import retrieval
from ragmetrics.catalogue.metric import Metric
from ragmetrics.gold import (
    CUT,
    CaseGold,
    Match,
    doc_of,
    gold_of,
    match_chunks,
    passage_of,
    place_of,
    place_of_gold,
    quotes_of,
    unusable,
    whole_text,
)
from ragmetrics.matching import Anchor, Matches, Mode, Passage
from ragmetrics.paths import MOST_PASSAGES, examine_paths
from ragmetrics.retrieval import Gain, Ranking
from ragmetrics.stats.tally import Value, Values
from records.cases import TestCase, ignore, iter_cases
from records.judged import JudgedRow, JudgedRows, key_of_passage, read_judged
from records.results import RetrievedChunk, TestResult, read_results
from records.runs import results_file
from records.scores import Reasons, ScoreLine
from scorers.common import (
    BY_DOCUMENT,
    NOT_BY_DOCUMENT,
    has_whole_files,
    in_rank_order,
    resolve,
    without_passages,
)
from scorers.contract import ScoreOutcome, ScoreRow, ScoringJob, SectionScorer
from terminal.tables import counted

if TYPE_CHECKING:
    from rich.console import Console

Missing = tuple[str, str, str, str, str, str]
"""The reasons that six metrics lack a score, else "". They are scope_miss, attribution_hit,
snippet_recall, unjudged (and condensed_ndcg), bpref and recency_rule_ok."""

NO_SELECTION, NO_REFERENCES = "no folder_selection", "no references"

UNRESOLVED = "a cited source is not a retrieved passage with a text"

NO_JUDGEMENTS, NO_NEGATIVES = "no judgements", "nothing judged irrelevant"

NO_TEXTS = "no chunk texts"

NO_SNIPPETS, NO_RULE = "no snippets", "no recency_conflict_rule"

SEVERAL = "several searches have no one ranking"

_WITHOUT_RANKING = retrieval.PER_SEARCH | {"scope_miss", "attribution_hit", "recency_rule_ok"}
"""What applies to an answer that saw several searches: the first k of each together, or no rank."""

_SEVERAL_SLICE = ("searches", "several")
"""The slice of answers that saw several searches."""

FEW_FOUND = 0.8
"""Recall below which the file names of bot and labels are compared."""


@dataclass(frozen=True)
class RetrievalScorer:
    """Scores one result against the gold of its case; the catalogue describes each number."""

    ks: tuple[int, ...] = catalogue.KS
    match: Match = "auto"
    gain: Gain = "linear"
    min_similarity: float = matching.MIN_SIMILARITY
    judged: JudgedRows = field(default_factory=dict, repr=False)
    judgements: str = ""
    """SHA-256 over the files that ``judged`` was read from; "" without any."""
    run_files: tuple[Path, Path] | None = field(default=None, repr=False)
    """The set and the folder of the run, where paths of passages can be compared with labels."""
    documents: bool = False
    """Whether a case of the set has a whole file as gold: such cases have metrics of their own."""

    section = "retrieval"

    @property
    def usual_reasons(self) -> Reasons:
        """The metrics without a score where the bot gives only a list and no passage was judged."""
        nothing_judged = (NO_JUDGEMENTS, NO_JUDGEMENTS)
        return _reasons((NO_SELECTION, NO_REFERENCES, NO_SNIPPETS, *nothing_judged, NO_RULE))

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        rows = catalogue_metric.at_cutoffs(retrieval.ROWS, self.ks)
        return (*rows, *_by_document(self.ks)) if self.documents else rows

    @property
    def options(self) -> dict[str, Any]:
        return {
            "k": list(self.ks),
            "match": self.match,
            "gain": self.gain,
            "min_similarity": self.min_similarity,
            "judgements": self.judgements,
        }

    def score(self, case: TestCase, result: TestResult) -> ScoreOutcome:
        """Scores of one result. Unanswerable cases and cases without gold are not applicable."""
        if case.answerable is False:
            return self._nothing("unanswerable"), {}
        gold = gold_of(case, self.match)
        if gold is None:
            kind = "" if self.match == "auto" else f"{self.match} "
            return self._nothing(f"no {kind}gold"), {}
        value, why = without_passages(result)
        if why:
            return self._nothing(why, value), {}
        if gold.mode == "chunk" and (ids := _only_ids(case, result)):
            found = matching.match_ids(gold.keys, ids, len(gold.grades))
            outcome = tuple(found.first), tuple(found.hits), tuple(gold.grades)
            return _outcome_by_ids(*outcome, self.ks, self.gain, self.documents)
        lists = result.rankings() if result.seen else [in_rank_order(result)]
        if len(lists) > 1:
            return self._score_searches(case, result, gold, lists)
        chunks = lists[0]
        if why := unusable(gold, chunks):
            return self._nothing(why), {}
        matches = match_chunks(gold, chunks, self.min_similarity)
        if matches.open:
            return self._nothing(CUT), {}
        ranking = ragmetrics_retrieval.ranking(matches, gold.grades, gold.groups, self.ks[-1])
        pool = _pool_of(case, gold, matches, chunks, self.judged)
        extra, missing = self._extra(case, result, gold, lists, matches, pool)
        undecided = min(matches.undecided, default=0)
        row = _row(
            ranking, extra, missing, gold.mode, self.ks, self.gain, undecided, self.documents
        )
        evidence: dict[str, Any] = {"match": gold.mode, "found": matches.first}
        evidence["hits"] = matches.hits
        if matches.by_heading:
            evidence["by_heading"] = len(matches.by_heading)
        if 0 < undecided <= self.ks[-1]:
            evidence["undecided"] = len(matches.undecided)
        if gold.mode in ("anchor", "document"):
            evidence |= _places_found(gold.keys, matches, chunks)
        if isinstance(pool, _JudgedPool):
            evidence["unjudged"] = pool.unjudged
            evidence["ranges"] = [_ends_of(ranking, k, pool.unjudged_to(k)) for k in self.ks]
        return row, evidence

    def _score_searches(
        self,
        case: TestCase,
        result: TestResult,
        gold: CaseGold,
        lists: Sequence[Sequence[RetrievedChunk]],
    ) -> ScoreOutcome:
        """An answer that saw the passages of several searches: what is found in the first k of each
        search together. What needs one ranking does not apply."""
        if why := next((why for chunks in lists if (why := unusable(gold, chunks))), ""):
            return self._nothing(why), {}
        matches = [match_chunks(gold, chunks, self.min_similarity) for chunks in lists]
        if any(own.open for own in matches):
            return self._nothing(CUT), {}
        first = _best_ranks([own.first for own in matches])
        together = Matches(first, sorted(filter(None, first)))
        ranking = ragmetrics_retrieval.ranking(together, gold.grades, gold.groups, self.ks[-1])
        extra, missing = self._extra(case, result, gold, lists, together, NO_JUDGEMENTS)
        row = _row(ranking, extra, missing, gold.mode, self.ks, self.gain, 0, self.documents)
        kept = [metric.name.partition("@")[0] in _WITHOUT_RANKING for metric in self.metrics]
        values = (value if keep else None for value, keep in zip(row.values, kept, strict=True))
        lost = {
            metric.name: SEVERAL
            for metric, keep, value in zip(self.metrics, kept, row.values, strict=True)
            if not keep and value is not None
        }
        row = msgspec.structs.replace(
            row,
            values=(*values,),
            reasons=(*row.reasons, *lost.items()),
            slices=(*row.slices, _SEVERAL_SLICE),
        )
        evidence: dict[str, Any] = {"match": gold.mode, "found": first, "searches": len(lists)}
        if by_heading := sum(len(own.by_heading) for own in matches):
            evidence["by_heading"] = by_heading
        return row, evidence

    def aggregate(
        self, section: dict[str, Any], lines: Iterator[ScoreLine], seed: int
    ) -> dict[str, Any]:
        """The section, with remarks on headings and paths that never match where they are due, and
        with ``ranges`` where passages were judged. ``per_search``: how many answers saw several
        searches, where any did; ``by_heading_only``, ``text_cut``: how many lack a text."""
        modes = section["by"].get("match", {}).keys()
        places = modes & {"anchor", "document"}
        misplaced = _MisplacedCases() if "anchor" in modes else None
        texts = _MissingTexts() if places or not modes else None
        judged = any(section["n"][f"unjudged@{k}"] for k in self.ks)
        ranges = _UnjudgedRanges(self.ks) if judged else None
        gathering = [each for each in (misplaced, texts, ranges) if each is not None]
        for line in lines if gathering else ():
            for each in gathering:
                each.take(line)
        more: dict[str, Any] = texts.noted() if texts is not None else {}
        if misplaced is not None and (noted := misplaced.noted()):
            more["place_mismatch"] = noted
        if ranges is not None:
            more["ranges"] = ranges.means()
        dimension, value = _SEVERAL_SLICE
        if several := section["by"].get(dimension, {}).get(value):
            more["per_search"] = several["n"]
            own = retrieval.per_search_definitions(self.metrics)
            more["definitions"] = section["definitions"] | own
        recall = section["mean"].get(f"evidence_recall@{self.ks[-1]}")
        low = places and recall is not None and recall < FEW_FOUND
        if low and self.run_files and (unseen := _unseen_files(*self.run_files)):
            more["path_mismatch"] = unseen
        return section | more

    def _nothing(self, reason: str, value: Value = None) -> ScoreRow:
        return _empty_row(len(self.metrics), reason, value)

    def _judged_scores(
        self, gold: CaseGold, matches: Matches, pool: _JudgedPool | str
    ) -> tuple[Values, str, str]:
        """unjudged@k, condensed_ndcg@k and bpref, and why they lack a score, else ""."""
        if isinstance(pool, str):
            return (None,) * (2 * len(self.ks) + 1), pool, pool
        left = ragmetrics_retrieval.ranking(
            ragmetrics_retrieval.condensed(matches, pool.unjudged), gold.grades, gold.groups
        )
        preference = ragmetrics_retrieval.bpref(matches, pool.wrong, pool.negatives)
        values = (
            *(pool.unjudged_to(k) / k for k in self.ks),
            *(ragmetrics_retrieval.ndcg(left, k, self.gain) for k in self.ks),
            preference,
        )
        return values, "", "" if preference is not None else NO_NEGATIVES

    def _extra(
        self,
        case: TestCase,
        result: TestResult,
        gold: CaseGold,
        lists: Sequence[Sequence[RetrievedChunk]],
        matches: Matches,
        pool: _JudgedPool | str,
    ) -> tuple[Values, Missing]:
        """What is no metric of one ranking, and reasons for gaps."""
        seen = lists[0] if len(lists) == 1 else result.chunks()
        attribution, no_attribution = self._attribution(result, gold, seen)
        scope, no_scope = _scope_of(case, result)
        snippets, no_snippets = self._snippets(case, lists)
        recency, no_recency = _recency_of(case, result, self.min_similarity)
        judged, no_pool, no_preference = self._judged_scores(gold, matches, pool)
        missing = (no_scope, no_attribution, no_snippets, no_pool, no_preference, no_recency)
        return (scope, attribution, *snippets, *judged, recency), missing

    def _attribution(
        self, result: TestResult, gold: CaseGold, chunks: Sequence[RetrievedChunk]
    ) -> tuple[Value, str]:
        if not result.references:
            return None, NO_REFERENCES
        cited = [resolve(reference, chunks) for reference in result.references]
        matches = match_chunks(gold, cited, self.min_similarity)
        if not matches.hits and matches.undecided:
            return None, UNRESOLVED
        return float(bool(matches.hits)), ""

    def _snippets(
        self, case: TestCase, lists: Sequence[Sequence[RetrievedChunk]]
    ) -> tuple[tuple[Value, ...], str]:
        nothing = (None,) * len(self.ks)
        snippets = [snippet for support in case.gold_supports for snippet in support.snippets]
        if not snippets:
            return nothing, NO_SNIPPETS
        tops = [chunks[: self.ks[-1]] for chunks in lists]
        if any(chunk.truncated for chunks in tops for chunk in chunks):
            return nothing, CUT
        texts = [[chunk.text or "" for chunk in chunks] for chunks in tops]
        if any(texts) and not any(map(any, texts)):
            return nothing, NO_TEXTS
        snippet_lists = [[snippet] for snippet in snippets]
        found = [
            matching.match_texts(snippet_lists, own, self.min_similarity).first for own in texts
        ]
        ranks = _best_ranks(found)
        return tuple(ragmetrics_retrieval.snippet_recall(ranks, k) for k in self.ks), ""


def _best_ranks(lists: Sequence[Sequence[int | None]]) -> list[int | None]:
    """The best rank of each support in any of several lists; None where none has it."""
    return [min((rank for rank in own if rank), default=None) for own in zip(*lists, strict=True)]


def _only_ids(case: TestCase, result: TestResult) -> list[Any] | None:
    """The retrieved ids, where the scores depend on nothing else; None when they may."""
    more = case.gold_supports or case.recency_conflict_rule or result.folder_selection
    if more or result.references or result.seen or not result.retrieved:
        return None
    ids: list[Any] = result.retrieved
    judged_wrong = min(case.chunk_relevance_grades.values(), default=1.0) <= 0
    return ids if not judged_wrong and any(ids) and set(map(type, ids)) == {str} else None


@lru_cache(maxsize=1 << 13)
def _outcome_by_ids(
    first: tuple[int | None, ...],
    hits: tuple[int, ...],
    grades: tuple[float, ...],
    ks: tuple[int, ...],
    gain: Gain,
    documents: bool,
) -> ScoreOutcome:
    """The outcome of a list of ids, by the ranks of the gold; the same one for the same ranks."""
    ranking = ragmetrics_retrieval.ranking(Matches([*first], [*hits]), grades, None, ks[-1])
    no_extra = (None,) * (3 * len(ks) + 4)
    nothing_judged = (NO_JUDGEMENTS, NO_JUDGEMENTS)
    missing = (NO_SELECTION, NO_REFERENCES, NO_SNIPPETS, *nothing_judged, NO_RULE)
    row = _row(ranking, no_extra, missing, "chunk", ks, gain, 0, documents)
    return row, {"match": "chunk", "found": first, "hits": hits}


@lru_cache(maxsize=1 << 13)
def _row(
    ranking: Ranking,
    extra: Values,
    missing: Missing,
    mode: Mode,
    ks: tuple[int, ...],
    gain: Gain,
    undecided: int,
    documents: bool,
) -> ScoreRow:
    """The row of an outcome; outcomes recur, so the same one gives the same object.

    ``undecided``: the rank of the first chunk whose text would have to tell (0: none).
    """
    scores: list[Value] = []
    for metric in retrieval.ROWS:
        function = metric.function
        if function is None:
            continue
        if function is ragmetrics_retrieval.ndcg:
            scores += [ragmetrics_retrieval.ndcg(ranking, k, gain) for k in ks]
            continue
        if function is ragmetrics_retrieval.reciprocal_rank:
            scores.append(ragmetrics_retrieval.reciprocal_rank(ranking))
        of_hits = function in _OF_HITS
        scores += [None if of_hits and 0 < undecided <= k else function(ranking, k) for k in ks]
    cut = _undecided(ks, undecided) if undecided else ()
    if mode == "document":
        return _document_row(scores, extra, missing, cut, ks, documents)
    row = ScoreRow((*map(_shared, scores), *extra), _reasons(missing) + cut, (("match", mode),))
    if not documents:
        return row
    own = _by_document(ks)
    none = tuple((metric.name, NOT_BY_DOCUMENT) for metric in own)
    return msgspec.structs.replace(
        row, values=(*row.values, *[None] * len(own)), reasons=(*row.reasons, *none)
    )


_OF_HITS = (
    ragmetrics_retrieval.precision,
    ragmetrics_retrieval.f1,
    ragmetrics_retrieval.average_precision,
)
"""What counts every matching chunk of the top k, and not only the first of a support."""


def _undecided(ks: Sequence[int], rank: int) -> Reasons:
    names = [metric.name for metric in retrieval.ROWS if metric.function in _OF_HITS]
    return tuple((f"{name}@{k}", CUT) for name in names for k in ks if k >= rank)


@lru_cache(maxsize=64)
def _by_document(ks: tuple[int, ...]) -> tuple[Metric, ...]:
    """The metrics of cases whose gold is a whole file, which stand apart from those of passages."""
    rows = [row for row in retrieval.ROWS if row.function or row.name == "attribution_hit"]
    return catalogue_metric.by_document(catalogue_metric.at_cutoffs(rows, ks))


def _document_row(
    scores: Sequence[Value],
    extra: Values,
    missing: Missing,
    cut: Reasons,
    ks: tuple[int, ...],
    documents: bool,
) -> ScoreRow:
    """The row of a case whose gold is a whole file: what rests on matching stands apart."""
    count = len(ks)
    scope, attribution, *rest = extra
    judged = (*rest[: 2 * count], *[None] * (count + 1), *rest[3 * count + 1 :])
    values: Values = (*[None] * len(scores), scope, None, *judged)
    no_scope, no_attribution, no_snippets, no_pool, _, no_rule = missing
    reasons = _reasons((no_scope, BY_DOCUMENT, no_snippets, no_pool, BY_DOCUMENT, no_rule))
    names = [f"{metric.name}@*" for metric in retrieval.ROWS if metric.function is not None]
    names += ["mrr", *([] if no_pool else ["condensed_ndcg@*"])]
    reasons += tuple((name, BY_DOCUMENT) for name in names)
    if documents:
        values = (*values, *scores, attribution)
        own = (*cut, *([("attribution_hit", no_attribution)] if no_attribution else ()))
        reasons += tuple((name + catalogue_metric.BY_DOCUMENT, why) for name, why in own)
    return ScoreRow(values, reasons, (("match", "document"),))


@lru_cache(maxsize=1 << 12)
def _shared(value: float) -> float:
    """The same object for the same score: thousands of rows are in memory together."""
    return value


@lru_cache(maxsize=64)
def _reasons(missing: Missing) -> Reasons:
    """``name@*``: of that metric at every cut-off, which lack a score together."""
    scope, attribution, snippets, pool, preference, recency = missing
    named = [("scope_miss", scope), ("attribution_hit", attribution)]
    named += [("snippet_recall@*", snippets), ("unjudged@*", pool), ("condensed_ndcg@*", pool)]
    named += [("bpref", preference), ("recency_rule_ok", recency)]
    return tuple((name, reason) for name, reason in named if reason)


@lru_cache(maxsize=64)
def _empty_row(width: int, reason: str, value: Value) -> ScoreRow:
    return ScoreRow((value,) * width, (("*", reason),))


def _scope_of(case: TestCase, result: TestResult) -> tuple[Value, str]:
    """scope_miss of one result, or why it has none."""
    if result.folder_selection is None:
        return None, NO_SELECTION
    if not case.gold_supports:
        return None, "no gold paths"
    paths = [gold.rel_path for gold in case.gold_supports]
    return matching.scope_miss(paths, result.folder_selection.chosen), ""


def _recency_of(case: TestCase, result: TestResult, min_similarity: float) -> tuple[Value, str]:
    """recency_rule_ok of one result, or why it has none."""
    rule = case.recency_conflict_rule
    if rule is None:
        return None, NO_RULE
    if not case.gold_supports:
        return None, "no gold_supports"
    if not result.answer or result.abstained:
        return None, "no answer"
    if not result.references and (rule != "acknowledge_both" or not case.expected_key_facts):
        return None, NO_REFERENCES
    chunks = in_rank_order(result)
    gold = list(map(place_of_gold, case.gold_supports))
    quotes = [quotes_of(support) for support in case.gold_supports]
    cited = result.references or ()
    sources = [passage_of(resolve(reference, chunks)) for reference in cited]
    verdicts = [
        [
            source is not None and matching.matches_place(place, words, source, min_similarity)
            for place, words in zip(gold, quotes, strict=True)
        ]
        for source in sources
    ]
    if any(verdict is None for own in verdicts for verdict in own):
        return None, UNRESOLVED
    places = [[index for index, cites in enumerate(own) if cites] for own in verdicts]
    answer = matching.fold(result.answer)
    facts = [matching.fold(fact) for fact in case.expected_key_facts]
    states_all = bool(facts) and all(fact in answer for fact in facts)
    dates = [support.date for support in case.gold_supports]
    return ragmetrics_retrieval.recency_rule_ok(rule, places, dates, states_all), ""


LEAST_MISPLACED, MISPLACED_SHARE = 5, 0.2
"""Cases, and their share, above which headings that never match are remarked on."""


def _places_found(
    gold: Sequence[Anchor], matches: Matches, chunks: Sequence[RetrievedChunk]
) -> dict[str, Any]:
    """Return whether a gold heading was found where its file was; if not, the headings found there.

    A part of the section has its heading, too, whether or not it contains the quote. {} when no
    file of a support that has a heading was retrieved.
    """
    headed = [index for index, support in enumerate(gold) if support.heading]
    if any(matches.first[index] is not None for index in headed):
        return {"heading_found": True}
    wanted = {gold[index].path: gold[index] for index in reversed(headed)}
    places = [place_of(chunk) for chunk in chunks]
    if any(
        place is not None
        and place.path == gold[index].path
        and matching.is_within(place.heading, gold[index].heading)
        for place in places
        for index in headed
    ):
        return {"heading_found": True}
    for chunk, place in zip(chunks, places, strict=True):
        if place is not None and place.path in wanted:
            support = wanted[place.path]
            heading = matching.SEPARATOR.join(support.heading)
            got = [place.path, heading, (chunk.heading_path or "")[:MOST_HEADING]]
            return {"heading_found": False, "instead": got}
    return {}


MOST_HEADING = 500
"""Characters of a bot's heading that are kept as an example."""


class _MisplacedCases:
    """Gathers cases whose file was found and whose heading was not."""

    def __init__(self) -> None:
        self._cases: set[str] = set()
        self._instead: dict[str, Sequence[str]] = {}
        self._is_due = True

    def take(self, line: ScoreLine) -> None:
        """Count a score line; where a heading matched, no remark is due."""
        evidence = line.evidence or {}
        if evidence.get("match") == "anchor":
            self._cases.add(line.case_id)
            if "instead" in evidence:
                self._instead.setdefault(line.case_id, evidence["instead"])
        if evidence.get("heading_found"):
            self._is_due = False

    def noted(self) -> dict[str, Any] | None:
        """The remark, if there are enough of them."""
        least = max(LEAST_MISPLACED, MISPLACED_SHARE * len(self._cases))
        if not self._is_due or len(self._instead) < least:
            return None
        path, wanted, got = next(iter(self._instead.values()))
        counts = {"cases": len(self._cases), "path_found": len(self._instead)}
        return counts | {"path": path, "wanted": wanted, "got": got}


class _MissingTexts:
    """Counts the answers whose passages lack the text in which a gold quote would be looked for."""

    def __init__(self) -> None:
        self._by_heading = self._not_scored = self._without_precision = 0

    def take(self, line: ScoreLine) -> None:
        evidence = line.evidence or {}
        self._by_heading += "by_heading" in evidence
        self._not_scored += line.reasons.get("*") == CUT
        self._without_precision += "undecided" in evidence

    def noted(self) -> dict[str, Any]:
        """The counts as a section has them; {} where every quote could be looked for."""
        cut = {"not_scored": self._not_scored, "without_precision": self._without_precision}
        counts = {"by_heading_only": self._by_heading, "text_cut": cut if any(cut.values()) else 0}
        return {name: count for name, count in counts.items() if count}


def _unseen_files(eval_set: Path, folder: Path) -> dict[str, Any] | None:
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


def _ends_of(ranking: Ranking, k: int, unjudged: int) -> list[float]:
    """The two ends of each metric of RANGED for one case at k."""
    right = ragmetrics_retrieval.precision(ranking, k)
    return [
        right,
        right + unjudged / k,
        ragmetrics_retrieval.evidence_recall(ranking, k),
        ragmetrics_retrieval.evidence_recall_at_most(ranking, k, unjudged),
    ]


class _UnjudgedRanges:
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


class _JudgedPool(NamedTuple):
    """The judgements of a list. They are the ranks of ``unjudged`` chunks and of those judged
    ``wrong`` (each passage once), and how many ``negatives`` the case has, retrieved or not."""

    unjudged: list[int]
    wrong: list[int]
    negatives: int

    def unjudged_to(self, k: int) -> int:
        """How many of the top k have no human judgement."""
        return bisect_right(self.unjudged, k)


def _pool_of(
    case: TestCase,
    gold: CaseGold,
    matches: Matches,
    chunks: Sequence[RetrievedChunk],
    judged: JudgedRows,
) -> _JudgedPool | str:
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
    return _JudgedPool(unjudged, wrong, len(negative) + len(graded))


def _graded_pool(
    case: TestCase, gold: CaseGold, matches: Matches, names: Sequence[str | None]
) -> _JudgedPool | str:
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
    return _JudgedPool(unjudged, wrong, len(negative))


def _is_gold(row: JudgedRow, gold: CaseGold) -> bool:
    """True when a judged passage is a gold support by its place: its mark came later than its row.

    By its words it is recognised only where it was retrieved: a row keeps no text. Its text counts
    as cut, since there was one."""
    if gold.mode not in ("anchor", "document"):
        return False
    passage = Passage(matching.anchor(row.rel_path, row.heading_path), cut=True)
    return any(
        matching.matches_place(support, quotes, passage)
        for support, quotes in zip(gold.keys, gold.quotes, strict=True)
    )


SHOWN_RANGE = 5
"""The cut-off whose ranges are shown, or the nearest one."""

MOSTLY = 0.5
"""Share of unjudged passages from which a warning is due."""


def _show_more(console: Console, section: Mapping[str, Any]) -> None:
    """Print counts of answers that lack texts, and the ranges due to unjudged passages."""
    for sentence in (*_about_texts(section), *_about_ranges(section)):
        console.print(sentence)


def _about_texts(section: Mapping[str, Any]) -> Iterator[str]:
    if answers := section.get("by_heading_only"):
        yield (
            f"By heading only: in {counted(answers, 'answer')} a passage below the labelled "
            "heading has no text, so its heading alone decides that it counts. Map the passages' "
            "text (chunk.text in the profile), and the labels' quotes decide."
        )
    if cut := section.get("text_cut"):
        yield (
            "Text was truncated before a quote was found: "
            f"{counted(cut['not_scored'], 'answer')} not scored, and "
            f"{cut['without_precision']} without precision, F1 and MAP. Ask again with run_eval.py "
            "--store-full-text."
        )


def _about_ranges(section: Mapping[str, Any]) -> Iterator[str]:
    """What the unjudged passages leave open, and that most were never judged where it is so."""
    ranges = section.get("ranges")
    if not ranges:
        return
    k = catalogue_metric.nearest_cutoff(SHOWN_RANGE, section["options"]["k"])
    share = section["mean"][f"unjudged@{k}"]
    parts = [
        f"{name}@{k} {low:.3f} … {high:.3f}"
        for name in RANGED
        for low, high in [ranges[f"{name}@{k}"]]
    ]
    yield (
        f"{share:.0%} of the top {k} have no human judgement. Over the "
        f"{section['n'][f'unjudged@{k}']} cases with judgements the worst and best possible means "
        f"are: {', '.join(parts)}."
    )
    if share > MOSTLY:
        yield (
            "Most of it is unjudged: passages that were chunked anew are, since a judgement holds "
            "for a text. Label this run (label_eval.py) before you trust its precision."
        )


def _make(job: ScoringJob, options: RetrievalScorer) -> RetrievalScorer:
    judged, sha256 = read_judged(job.eval_set, job.labels_dir)
    return replace(
        options,
        judged=judged,
        judgements=sha256,
        documents=has_whole_files(job.eval_set, options.match),
        run_files=(job.eval_set, job.folder),
    )


SECTION = SectionScorer(options=RetrievalScorer, scorer=_make, show_more=_show_more)
