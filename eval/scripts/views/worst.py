"""The worst cases of a section on a terminal: question, score, and what explains it.

The score scripts hand this to ``scorers/show.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

from ragmetrics import catalogue
from ragmetrics.catalogue.metric import Metric
from ragmetrics.gold import gold_names
from records.run import Run
from records.runs import scores_file
from records.scores import (
    AbstentionEvidence,
    ClaimEvidence,
    ContextEvidence,
    ConversationEvidence,
    EmbeddingEvidence,
    GroundednessEvidence,
    JudgedEvidence,
    JudgedItem,
    PipelineEvidence,
    RetrievalEvidence,
    RubricsEvidence,
    SearchesEvidence,
)
from terminal.tables import counted, plain

if TYPE_CHECKING:
    from rich.console import Console

    from ragmetrics.matching import Mode
    from views.case import Case, RetrievedPassage


def worst_cases(
    folder: Path, section: str, metric: Metric, count: int, eval_set: Path, labels_dir: Path | None
) -> list[tuple[float, Case]]:
    """The ``count`` answers with the worst score of one metric, worst first, in set order on ties.

    Unscored answers, failed calls and those with the best score that the metric can have are left
    out. Raises StorageError for damaged files.
    """
    import numpy as np

    from views.case_files import read_asked, read_cases

    table = Run(folder)
    lines = table.section(section)
    if metric.name not in lines.names:
        return []
    scores = lines.values(metric.name)
    best = metric.high if metric.higher_is_better else metric.low
    bad = ~np.isnan(scores) & ~lines.failed_lines & (scores != best)
    sign = 1 if metric.higher_is_better else -1
    chosen = np.flatnonzero(bad)
    chosen = chosen[np.argsort(sign * scores[chosen], kind="stable")][:count]
    ids = lines.case_ids(set(lines.line_cases[chosen].tolist()))
    asked = read_asked(eval_set, labels_dir, set(ids.values()))
    answers = read_cases(table, asked, asked, [section])
    keys = [(ids[lines.line_cases[line]], int(lines.repeats[line])) for line in chosen]
    return [(float(scores[line]), answers[key]) for line, key in zip(chosen, keys, strict=True)]


_FEW = 3
"""Cases that are named when no number of them is asked for."""


def print_worst(
    console: Console,
    folder: Path,
    section: str,
    metric: Metric,
    count: int,
    eval_set: Path,
    labels_dir: Path | None,
    scored: int = 1,
) -> None:
    """Each of the worst cases with its question and score, then its explanation. ``scored``: how
    many cases have a score. ``count`` 0: three of them on a line each."""
    bad = worst_cases(folder, section, metric, count or _FEW, eval_set, labels_dir)
    if not count:
        if bad:
            console.print(f"\nWorst by {metric.name} (--worst {_FEW} explains them):")
        for score, case in bad:
            question = case.asked.question if case.asked else case.question
            console.print(f"  {score:.3f}  {plain(case.case_id, 60)}  {plain(question)}")
        return
    if not bad:
        none = f"No case has a score of {metric.name}; see the column n/a."
        perfect = f"No case is bad: all {scored} have the best score that {metric.name} can have."
        console.print(perfect if scored else none)
        return
    which = "worst case" if len(bad) == 1 else f"{len(bad)} worst cases"
    console.print(f"The {which} by {metric.name}:")
    for score, case in bad:
        title = f"{plain(case.case_id, 60)}  {metric.name} {score:.3f}"
        question = case.asked.question if case.asked else case.question
        console.print(f"\n{title}  {plain(question)}")
        for line in _explanation(case, section):
            console.print(line)


def print_worst_of(
    console: Console, folder: Path, section: str, eval_set: Path, labels_dir: Path | None
) -> None:
    """The worst case of a section that is scored, by the metric that its bad cases are sorted by;
    nothing where all are perfect."""
    row = catalogue.SECTIONS[section]
    metrics = catalogue.at_cutoffs(row.metrics, catalogue.KS)
    metric = next(metric for metric in metrics if metric.name == row.worst_by)
    if not scores_file(folder, section).exists():
        return
    if worst_cases(folder, section, metric, 1, eval_set, labels_dir):
        console.print()
        print_worst(console, folder, section, metric, 1, eval_set, labels_dir)


def _gold_names(case: Case, match: str) -> list[str]:
    """What each gold support is called, in the order of the evidence."""
    return gold_names(case.asked, cast("Mode", match)) if case.asked and match else []


_RETRIEVED = 10
"""Retrieved chunks that are listed for a bad case."""


def _passage_title(passage: RetrievedPassage) -> str:
    return plain(" > ".join(filter(None, (passage.path, passage.heading))) or passage.chunk_id)


def _retrieval(case: Case) -> Iterator[str]:
    """What was wanted and at which rank it came, and what was retrieved."""
    evidence = case.evidence(RetrievalEvidence)
    names = _gold_names(case, evidence.match)
    for name, rank in zip(names, evidence.found or (), strict=True):
        at = "missed" if rank is None else f"rank {rank}"
        yield f"  wanted {at:>9}  {plain(name)}"
    for passage in case.passages[:_RETRIEVED]:
        mark = "✓" if passage.gold else " "
        yield f"  got    {mark} {passage.rank:>5}.  {_passage_title(passage)}"


def _context(case: Case) -> Iterator[str]:
    """The two chunks that are most alike, and where each gold fact stands."""
    evidence = case.evidence(ContextEvidence)
    passages = {passage.chunk_id: passage for passage in case.passages}
    ranks = {name: rank for rank, name in enumerate(passages, 1)}
    if alike := evidence.most_alike:
        yield f"  most alike, 3-gram overlap {alike.overlap:.2f}:"
        for name in alike.chunks:
            yield f"    {ranks[name]:>3}. {_passage_title(passages[name])}"
            yield f"         {plain(passages[name].text, 100)}"
    for fact in evidence.facts:
        places = ", ".join(str(ranks[name]) for name in fact.chunks)
        where = f"in chunk {places}" if places else "in no chunk"
        yield f"  fact {where}: {plain(fact.fact)}"


_CLAIMS = 6
"""Claims that are listed for a bad case; those that failed come first."""


def _groundedness(case: Case) -> Iterator[str]:
    """The claims with their best windows, numbers and citations that failed, labels missed."""
    evidence = case.evidence(GroundednessEvidence)
    passages = {passage.chunk_id: passage for passage in case.passages}
    judged = [claim for claim in evidence.claims if claim.skipped is None]
    for claim in sorted(judged, key=lambda claim: bool(claim.supported))[:_CLAIMS]:
        yield from _claim_lines(claim, passages)
    if len(judged) > _CLAIMS:
        yield f"  … {len(judged) - _CLAIMS} more claims"
    for kind, figures in evidence.numbers.items():
        yield f"  {kind} numbers: {plain(', '.join(map(str, figures)))}"
    for cited in evidence.citations:
        if cited.chunk_id is None:
            yield f"  citation [{plain(str(cited.target))}] names no retrieved chunk"
        elif cited.supported is False:
            yield f"  citation [{plain(str(cited.target))}] does not bear its claim"
    for name, texts in (
        ("expected claims missing", evidence.expected_claims_missing),
        ("forbidden claims found", evidence.forbidden_claims_found),
        ("nuggets missing", evidence.nuggets_missing),
    ):
        yield from (f"  {name}: {plain(text)}" for text in texts)


def _claim_lines(claim: ClaimEvidence, passages: Mapping[str, RetrievedPassage]) -> Iterator[str]:
    """A claim, what the contexts hold of it, and what they lack."""
    yield f"  {'✓' if claim.supported else '✗'} {claim.score:.2f}  {plain(claim.text)}"
    if claim.chunk_id is not None and claim.window is not None:
        passage = passages[claim.chunk_id]
        location = passage.path or claim.chunk_id
        text = passage.text[slice(*claim.window)]
        yield f"         best in {plain(location, 60)}: {plain(text, 160)}"
    if claim.missing:
        yield f"         missing words: {plain(', '.join(claim.missing))}"
    if claim.vetoed_by:
        yield f"         found nowhere: {plain(', '.join(map(str, claim.vetoed_by)))}"
    if claim.opposite:
        yield "         a sentence of the passage says the opposite"
    elif claim.negation_mismatch:
        yield "         note: the claim is negated, the passage is not"
    if claim.unknown_names:
        yield f"         names in no passage: {plain(', '.join(claim.unknown_names))}"


def _abstention(case: Case) -> Iterator[str]:
    """What the bot said, what it was taken for and why."""
    evidence, answer = case.evidence(AbstentionEvidence), case.answer or ""
    names = {"api": "the bot says so", "phrases": "by its wording", "judge": "the judge says so"}
    why = f", {plain(evidence.why, 60)}" if evidence.why else ""
    yield f"  {evidence.cell.partition('_')[0]}: {names[evidence.decided_by]}{why}"
    yield f"  answer: {plain(answer) or '(empty)'}"
    if evidence.phrases is not None:
        yield f"  its wording says: {evidence.phrases}"
    if evidence.span is not None:
        yield f"  sentence: {plain(answer[slice(*evidence.span)])}"


def _pipeline(case: Case) -> Iterator[str]:
    """The outcome and why, then each check that failed."""
    evidence = case.evidence(PipelineEvidence)
    expectation = f", expected {plain(evidence.expected, 40)}" if evidence.expected else ""
    yield f"  {evidence.outcome or 'no outcome'}{plain(evidence.reason)}{expectation}"
    if evidence.missing_flags:
        yield f"  expected flags that the answer lacks: {plain(', '.join(evidence.missing_flags))}"
    if evidence.forbidden_flags:
        yield f"  forbidden flags of the answer: {plain(', '.join(evidence.forbidden_flags))}"
    if count := evidence.citations:
        yield f"  citations: {count.present}, at least {count.min} wanted"
    for stage, over in evidence.over_budget.items():
        yield f"  {plain(stage, 40)}: {over.ms:,.1f} ms > {over.budget_ms:,.0f} ms"


_SENTENCES = 6
"""Sentences that are listed for a bad case."""


def _embedding(case: Case) -> Iterator[str]:
    """Each sentence with its cosines, the farthest first, and what it is nearest to."""
    sentences = case.evidence(EmbeddingEvidence).sentences
    for sentence in sorted(sentences, key=lambda sentence: sentence.window)[:_SENTENCES]:
        yield f"  {sentence.window:6.3f}  {plain(sentence.text, 160)}"
        yield f"          nearest: {plain(sentence.nearest, 160)}"


_ITEMS = 8
"""Claims and facts that are listed for a bad case; those that failed come first."""

_MARKS = dict.fromkeys(("supported", "present", "attributed", "support"), "✓") | {
    "contradicted": "✗",
    "partial": "~",
}


def _judged(case: Case) -> Iterator[str]:
    """Claims and facts of a bad case with verdict, quote and reason; what failed comes first."""
    evidence = case.evidence(JudgedEvidence)
    yield from _items("claims", evidence.claims)
    yield from _items("facts", evidence.facts)
    yield from _items("nuggets", evidence.nuggets)
    yield from _items("facts in contexts", evidence.facts_in_contexts)
    yield from _items("claims in reference", evidence.claims_in_reference)
    for question in evidence.questions:
        yield f"  answers the question: {plain(question)}"
    if evidence.reply is not None:
        yield f"  kind of reply: {evidence.reply.replace('_', ' ')}"
    if suspicion := evidence.manipulation:
        rules = ", ".join(suspicion.rules) + ("; the judge says so" if suspicion.judge else "")
        yield f"  talks to the judge: {rules.removeprefix('; ')}"


def _rubrics(case: Case) -> Iterator[str]:
    """The verdict by each rubric with its reason and the words that show it."""
    evidence = case.evidence(RubricsEvidence)
    for one in evidence.rubrics:
        reason = f": {plain(one.reason)}" if one.reason else ""
        word = one.verdict.replace("_", " ") + (
            f" (it said {one.unchecked})" if one.unchecked else ""
        )
        yield f"  {'✓' if one.good else '✗'} {one.name}: {plain(word)}{reason}"
        if one.quote:
            yield f'      "{plain(one.quote)}"'
    for name, why in evidence.failed.items():
        yield f"  ? {name}: the judge failed ({plain(why)})"


def _items(title: str, items: Sequence[JudgedItem]) -> Iterator[str]:
    if items:
        yield f"  {title}:"
    for item in sorted(items, key=lambda item: item.verdict in _MARKS)[:_ITEMS]:
        blame = f"  [{item.blame.replace('_', ' ')}]" if item.blame is not None else ""
        verdict = item.verdict.replace("_", " ")
        yield f"  {_MARKS.get(item.verdict, '·')} {verdict:<14} {plain(item.text)}{blame}"
        if item.quote:
            where = f" ({plain(item.chunk_id, 60)})" if item.chunk_id else ""
            yield f'      "{plain(item.quote, 160)}"{where}'
        if item.reason:
            yield f"      {plain(item.reason, 160)}"
    if len(items) > _ITEMS:
        yield f"    … {len(items) - _ITEMS} more"


def _turn(case: Case, turn: int | None) -> Iterator[str]:
    if turn is not None:
        yield f"  turn {turn} of conversation {plain(case.conversation, 60)}"


def _searches(case: Case) -> Iterator[str]:
    """Query by query: what it asked, what it brought, and where the gold stood in it."""
    evidence = case.evidence(SearchesEvidence)
    yield from _turn(case, evidence.turn)
    if case.rewritten:
        yield f"  rewritten as: {plain(case.rewritten)}"
    names = _gold_names(case, evidence.match)
    for number, (step, row) in enumerate(zip(case.searches, evidence.searches, strict=True), 1):
        times = (("at", step.start_ms), ("took", step.latency_ms))
        parts = [f"{name} {time:,.0f} ms" for name, time in times if time is not None]
        parts.insert(0, plain(step.tool, 40))
        parts.append(f"{counted(row.passages, 'passage')}, {len(step.new)} new")
        if row.evidence_recall is not None:
            parts.append(f"evidence_recall {row.evidence_recall:.3f}")
        query = plain(step.query or "no query told")
        yield f"  search {number}  {query}  ({'; '.join(filter(None, parts))})"
        if row.error is not None:
            yield f"    failed: {plain(row.error)}"
        for name, rank in zip(names, row.found, strict=False):
            if rank is not None:
                yield f"    ✓ {rank:>3}.  {plain(name)}"
    if evidence.match:
        last = evidence.complete_at
        yield f"  evidence: {f'complete at search {last}' if last else 'never complete'}"
    for support in evidence.lost:
        yield f"  lost before the answer: {plain(names[support])}"


def _tools(case: Case) -> Iterator[str]:
    """The calls in order with what the score says of each, and expected ones that were not made."""
    for number, step in enumerate(case.tools or (), 1):
        says = f"  ({step.says()})" if step.says() else ""
        yield f"  call {number}  {plain(step.call)}{says}"
        if step.error:
            yield f"    failed: {plain(step.error)}"
    if case.tools == ():
        yield "  no tool was called"
    for call in case.missing_calls:
        yield f"  not made: {plain(call)}"


def _conversations(case: Case) -> Iterator[str]:
    """The turn, and where the evidence that it lacks had been."""
    evidence = case.evidence(ConversationEvidence)
    yield from _turn(case, evidence.turn)
    names = _gold_names(case, evidence.match)
    for support, turn in zip(evidence.missing, evidence.found_at, strict=True):
        where = f"brought at turn {turn}" if turn else "brought at no turn"
        yield f"  missing here, {where}: {plain(names[support])}"
    if evidence.asks_back:
        yield "  asks back"


_EXPLAINED: Mapping[str, Callable[[Case], Iterator[str]]] = {
    "abstention": _abstention,
    "context": _context,
    "conversations": _conversations,
    "embedding": _embedding,
    "groundedness": _groundedness,
    "judged": _judged,
    "rubrics": _rubrics,
    "pipeline": _pipeline,
    "retrieval": _retrieval,
    "searches": _searches,
    "tools": _tools,
}
"""By section, what explains a bad case of it, line by line; others show their evidence alone."""


def _explanation(case: Case, section: str) -> Iterator[str]:
    if section in _EXPLAINED:
        yield from _EXPLAINED[section](case)
        return
    yield f"  answer: {plain(case.answer or '') or '(empty)'}"
    evidence = case.lines[section].evidence
    for name, value in evidence.items() if isinstance(evidence, Mapping) else ():
        shown = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        yield f"  {plain(name, 40)}: {plain(shown, 160)}"
