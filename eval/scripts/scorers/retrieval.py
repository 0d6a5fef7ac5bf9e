"""Scores retrieval: whether the bot found the passages that support the answer, and how far up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

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
    gold_of,
    match_chunks,
    passage_of,
    place_of_gold,
    quotes_of,
    unusable,
)
from ragmetrics.matching import Matches, Mode
from ragmetrics.retrieval import Gain, RankColumns, Ranking
from ragmetrics.stats.tally import Value, Values
from records.cases import TestCase
from records.judged import JudgedRows, read_judged
from records.results import RetrievedChunk, TestResult
from records.scores import Reasons, ScoreLine
from scorers.common import (
    BY_DOCUMENT,
    NOT_BY_DOCUMENT,
    has_whole_files,
    resolve,
    without_passages,
)
from scorers.contract import ScoreOutcome, ScoreRow, ScoringJob, SectionScorer
from scorers.judged_pool import (
    NO_JUDGEMENTS,
    NO_NEGATIVES,
    NO_TEXTS,
    JudgedPool,
    UnjudgedRanges,
    ends_of,
    pool_of,
)
from scorers.retrieval_remarks import (
    FEW_FOUND,
    MisplacedGold,
    MissingTexts,
    match_of_run,
    places_found,
    show_more,
    unseen_files,
)

Missing = tuple[str, str, str, str, str, str]
"""The reasons that six metrics lack a score, else "". They are scope_miss, attribution_hit,
snippet_recall, unjudged (and condensed_ndcg), bpref and recency_rule_ok."""

NO_SELECTION, NO_REFERENCES = "no folder_selection", "no references"

UNRESOLVED = "a cited source is not a retrieved passage with a text"

NO_SNIPPETS, NO_RULE = "no snippets", "no recency_conflict_rule"

SEVERAL = "several searches have no one ranking"

_WITHOUT_RANKING = retrieval.PER_SEARCH | {"scope_miss", "attribution_hit", "recency_rule_ok"}
"""What applies to an answer that saw several searches: the first k of each together, or no rank."""

_SEVERAL_SLICE = ("searches", "several")
"""The slice of answers that saw several searches."""


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
            kind = "" if self.match in ("auto", "file") else f"{self.match} "
            return self._nothing(f"no {kind}gold"), {}
        value, why = without_passages(result)
        if why:
            return self._nothing(why, value), {}
        lists = result.rankings() if result.seen else [result.chunks()]
        if len(lists) > 1:
            return self._score_searches(case, result, gold, lists)
        chunks = lists[0]
        if why := unusable(gold, chunks):
            return self._nothing(why), {}
        matches = match_chunks(gold, chunks, self.min_similarity)
        if matches.open:
            return self._nothing(CUT), {}
        ranking = ragmetrics_retrieval.ranking(matches, gold.grades, gold.groups, self.ks[-1])
        pool = pool_of(case, gold, matches, chunks, self.judged)
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
            named = gold_of(case, "auto") if self.match == "file" else gold
            ranks = matches.first if named is gold else (None,) * len(gold.grades)
            evidence |= places_found(named.keys if named else (), ranks, chunks)
        if isinstance(pool, JudgedPool):
            evidence["unjudged"] = pool.unjudged
            evidence["ranges"] = [ends_of(ranking, k, pool.unjudged_to(k)) for k in self.ks]
        return row, evidence

    def key(self, case: TestCase, result: TestResult) -> IdRanks | None:
        """Ranks and grades of the gold in a plain list of ids, which depends on nothing else."""
        return _id_ranks(case, result) if self.match in ("auto", "chunk", "file") else None

    def score_columns(self, keys: Sequence[IdRanks]) -> list[ScoreOutcome]:
        """The outcome of each list of ids."""
        firsts, grades = zip(*keys, strict=True)
        columns = RankColumns(firsts, grades, self.gain)
        scores: list[list[float]] = []
        for function in (metric.function for metric in retrieval.ROWS if metric.function):
            of_metric = getattr(columns, function.__name__)
            if function is ragmetrics_retrieval.reciprocal_rank:
                scores.append(of_metric().tolist())
            scores += [of_metric(k).tolist() for k in self.ks]
        own = _by_document(self.ks) if self.documents else ()
        nothing: Values = (None,) * (3 * len(self.ks) + 4 + len(own))
        reasons = *self.usual_reasons, *((metric.name, NOT_BY_DOCUMENT) for metric in own)
        slices = (("match", "chunk"),)
        return [
            (
                ScoreRow((*row, *nothing), reasons, slices),
                {"match": "chunk", "found": first, "hits": sorted(filter(None, first))},
            )
            for row, (first, _) in zip(zip(*scores, strict=True), keys, strict=True)
        ]

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
        misplaced = MisplacedGold() if "anchor" in modes or self.match == "file" else None
        texts = MissingTexts() if places or not modes else None
        judged = any(section["n"][f"unjudged@{k}"] for k in self.ks)
        ranges = UnjudgedRanges(self.ks) if judged else None
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
        if low and self.run_files and (unseen := unseen_files(*self.run_files)):
            more["path_mismatch"] = unseen
        return section | more

    def _nothing(self, reason: str, value: Value = None) -> ScoreRow:
        return _empty_row(len(self.metrics), reason, value)

    def _judged_scores(
        self, gold: CaseGold, matches: Matches, pool: JudgedPool | str
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
        pool: JudgedPool | str,
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
        if not matches.hits and (matches.undecided or _cites_a_number(result, len(chunks))):
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


IdRanks = tuple[tuple[int | None, ...], tuple[float, ...]]
"""The rank of each gold id in a list of ids, and its grade."""


def _id_ranks(case: TestCase, result: TestResult) -> IdRanks | None:
    """Where the gold ids of a case are in the list of ids that was retrieved; None when the scores
    depend on more than that."""
    more = case.gold_supports or case.recency_conflict_rule or result.folder_selection
    if more or result.references or result.seen or case.answerable is False:
        return None
    ids: Any = result.retrieved
    gold = case.chunk_relevance_grades
    gold = gold or dict.fromkeys(case.relevant_chunks, matching.DEFAULT_GRADE)
    if not ids or not any(ids) or not gold or min(gold.values()) <= 0:
        return None
    if case.relevant_chunks and case.chunk_relevance_grades:
        return None
    try:
        together = "\n".join(ids)
    except TypeError:  # passages with more than an id
        return None
    first: list[int | None] = []
    for name in gold:
        times = ids.count(name) if name in together else 0  # mostly none: looked up quickly
        if times > 1:
            return None
        first.append(ids.index(name) + 1 if times else None)
    return tuple(first), tuple(gold.values())


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
    """The row of an outcome.

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
    row = ScoreRow((*scores, *extra), _reasons(missing) + cut, (("match", mode),))
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


def _cites_a_number(result: TestResult, passages: int) -> bool:
    """Whether a citation has the number of a passage alone, of whatever list the bot counts."""
    return any(
        1 <= (reference.index or 0) <= passages
        and not (reference.chunk_id or reference.doc_id or reference.rel_path)
        for reference in result.references or ()
    )


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
    chunks = result.chunks()
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


def _make(job: ScoringJob, options: RetrievalScorer) -> RetrievalScorer:
    judged, sha256 = read_judged(job.eval_set, job.labels_dir)
    match = match_of_run(job, options.match)
    return replace(
        options,
        match=match,
        judged=judged,
        judgements=sha256,
        documents=has_whole_files(job.eval_set, match),
        run_files=(job.eval_set, job.folder),
    )


SECTION = SectionScorer(options=RetrievalScorer, scorer=_make, show_more=show_more)
