"""One case in full as a typed part of a report: its texts are cut. Conversations, turn by turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from msgspec import UNSET, UnsetType

from records.judgements import STALE
from records.rubrics import PREFIX
from records.scores import GroundednessEvidence, PipelineEvidence, RetrievalEvidence
from terminal.page import Block, Heading, Prose, Quotation, items, number
from views.case import Case, Claim, GoldMatch, RetrievedPassage, Said
from views.report import words
from views.report.model import CutText
from views.report.report import (
    ReportAnswer,
    ReportConversation,
    ShownCall,
    ShownMessage,
    ShownNewPassage,
    ShownPassage,
    ShownSearch,
    ShownSearches,
    ShownTools,
    ShownVerdict,
    UnsupportedClaim,
    WantedPassage,
)
from views.report.text import cut, one_line, page_bytes, shortened
from views.searches import SearchStep, longest_ms
from views.tools import tools_note

QUESTION, ANSWER, PASSAGE, QUOTE = 2_000, 6_000, 4_000, 600
"""Characters that are shown of each kind of text."""

MOST_PASSAGES, MOST_GOLD, MOST_CLAIMS, MOST_VERDICTS = 10, 10, 10, 12

QUERY = 600
"""Characters of a query that are shown."""

MOST_SEARCHES = MOST_TOOLS = 20

BAR = 100
"""Units of the bar that shows when a search ran."""


MARKUP_BYTES = 250
"""Bytes of markup for each passage, claim and the like of an answer."""


def describe(case: Case, said: Said) -> ReportAnswer:
    """The case as asked and as answered: texts cut, passages marked, reasons in words."""
    asked = case.asked
    facts = asked.expected_key_facts[:10] if asked else []
    history = [ShownMessage(m.role, shortened(m.content, QUERY)) for m in case.history]
    return ReportAnswer(
        case_id=case.case_id,
        repeat=case.repeat,
        category=asked.category if asked else None,
        difficulty=asked.difficulty if asked else None,
        answerable=asked.answerable if asked else None,
        question=shortened(case.question, QUESTION),
        answer=cut(case.answer, ANSWER),
        error=case.error or None,
        abstained=case.abstained,
        abstain_reason=case.abstain_reason,
        confidence=case.confidence,
        reference_answer=cut(asked.reference_answer if asked else None, ANSWER),
        key_facts=[shortened(fact, QUOTE) for fact in facts],
        verdict=said.word,
        fails=list(said.reasons),
        warnings=list(said.warnings),
        because=[*_because(case), *([f"the judge: {STALE}"] if case.stale else [])],
        claims=_unsupported(case.evidence(GroundednessEvidence)),
        verdicts=_judged_rows(case),
        gold=[_gold_row(gold) for gold in case.gold[:MOST_GOLD]],
        retrieved=[_passage_row(passage) for passage in case.passages[:MOST_PASSAGES]],
        retrieved_more=max(0, len(case.passages) - MOST_PASSAGES),
        conversation=case.conversation or UNSET,
        turn=case.turn if case.conversation else UNSET,
        history=history or UNSET,
        searches=_searches(case),
        tools=_tools(case),
    )


def _because(case: Case) -> Iterable[str]:
    """What the scorers noted that is no number."""
    if case.passages_unknown:
        yield case.passages_unknown
    pipeline = case.evidence(PipelineEvidence)
    if pipeline.expected and pipeline.expected != pipeline.outcome:
        yield f"ended as {pipeline.outcome}{pipeline.reason}, expected {pipeline.expected}"
    for text, flags in (
        ("expected flags that the answer lacks", pipeline.missing_flags),
        ("forbidden flags of the answer", pipeline.forbidden_flags),
    ):
        if flags:
            yield f"{text}: {', '.join(flags)}"
    for stage, over in pipeline.over_budget.items():
        yield f"{stage} took {over.ms:,.0f} ms of {over.budget_ms:,.0f} ms"
    gold = case.evidence(RetrievalEvidence).found or ()
    if missing := sum(rank is None for rank in gold):
        yield f"not retrieved: {missing} of {len(gold)} gold passages"
    grounded = case.evidence(GroundednessEvidence)
    if numbers := grounded.numbers.get("fabricated"):
        yield f"numbers found in no passage: {', '.join(map(str, numbers))}"
    for fact in grounded.expected_claims_missing[:3]:
        yield f"an expected claim is missing: {fact.removesuffix('.')}"


def _unsupported(evidence: GroundednessEvidence) -> list[UnsupportedClaim]:
    """Claims of the answer that no passage supports."""
    unsupported = [claim for claim in evidence.claims if claim.supported is False]
    return [
        UnsupportedClaim(
            shortened(claim.text, QUOTE),
            claim.score,
            claim.missing[:20],
            list(map(str, claim.vetoed_by))[:20],
        )
        for claim in unsupported[:MOST_CLAIMS]
    ]


def _gold_row(gold: GoldMatch) -> WantedPassage:
    place = " › ".join(filter(None, (gold.title, gold.heading))) or "a given text"
    quote = cut(gold.snippets[0], QUOTE) if gold.snippets else None
    return WantedPassage(place, quote, gold.rank)


def _passage_row(passage: RetrievedPassage) -> ShownPassage:
    path = passage.path or passage.document or passage.chunk_id
    text = cut(passage.text or None, PASSAGE)
    if text is not None and passage.cut and passage.length:
        text = CutText(text.text, passage.length - len(text.text))
    return ShownPassage(
        rank=passage.rank,
        place=" › ".join(filter(None, (path, passage.heading))),
        score=dict(passage.scores).get("final"),
        gold=bool(passage.gold),
        cited=passage.cited,
        text=text,
    )


def _judged_rows(case: Case) -> list[ShownVerdict]:
    """What the judge said of the claims and facts of one answer, the bad news first."""
    judged = {metric.metric: metric.items for metric in case.judged if metric.status == "ok"}
    facts = judged.get("correctness") or judged.get("context_recall") or ()
    kinds = (("claim", judged.get("groundedness", ())), ("fact", facts))
    rows = [
        (kind, item)
        for kind, items in (*kinds, ("nugget", judged.get("nuggets", ())))
        for item in items
    ]
    of_rubrics = [name for name in judged if name.startswith(PREFIX) and " " not in name]
    rows += [
        (name, replace(i, text=i.note or i.quote)) for name in of_rubrics for i in judged[name]
    ]
    rows.sort(key=lambda row: row[1].verdict == "supported")
    return [_judged_row(kind, item) for kind, item in rows[:MOST_VERDICTS]]


def _judged_row(kind: str, item: Claim) -> ShownVerdict:
    return ShownVerdict(
        kind=kind,
        verdict=item.word,
        good=item.verdict == "supported",
        text=shortened(item.text, QUOTE),
        quote=cut(item.quote or None, QUOTE),
        reason=item.note or None,
        blame=item.blame or None,
    )


def _searches(case: Case) -> ShownSearches | UnsetType:
    """The searches of a case that tells them."""
    steps = case.searches
    longest = longest_ms(steps)
    return (
        ShownSearches(
            rewritten=cut(case.rewritten or None, QUERY),
            complete=case.complete,
            steps=[_step(step, longest) for step in steps[:MOST_SEARCHES]],
            more=max(0, len(steps) - MOST_SEARCHES),
        )
        if steps
        else UNSET
    )


def _tools(case: Case) -> ShownTools | UnsetType:
    """The calls of tools of a case that tells them."""
    if (calls := case.tools) is None:
        return UNSET
    return ShownTools(
        says=tools_note(calls, case.missing_calls),
        calls=[
            ShownCall(
                call=shortened(step.call, QUERY),
                result=cut(step.result or None, QUERY),
                error=cut(step.error or None, QUERY),
                says=step.says(),
                bad=step.bad,
            )
            for step in calls[:MOST_TOOLS]
        ],
        more=max(0, len(calls) - MOST_TOOLS),
        missing=[shortened(call, QUERY) for call in case.missing_calls[:MOST_TOOLS]],
    )


def _step(step: SearchStep, longest: float) -> ShownSearch:
    shown = step.shown_new()
    return ShownSearch(
        query=shortened(step.query or "(no query told)", QUERY),
        tool=step.tool,
        start_ms=step.start_ms,
        latency_ms=step.latency_ms,
        bar=step.bar(longest, BAR),
        failed=bool(step.error),
        says=step.says(),
        new=[ShownNewPassage(passage.rank, passage.location, passage.gold) for passage in shown],
        new_more=len(step.new) - len(shown),
    )


def bytes_of(answer: ReportAnswer) -> int:
    """Approximate size of an answer in full on the page: its texts, and the markup around them."""
    sides = [answer, *([answer.before] if answer.before else [])]
    items = len(answer.verdicts) + len(answer.fails) + len(answer.warnings)
    for side in sides:
        items += len(side.retrieved) + len(side.gold) + len(side.claims) + len(side.because)
    # Marks on the words that differ take about as much as short answers themselves.
    marked = sum(page_bytes(side.answer) for side in sides if answer.before)
    return page_bytes(answer) + marked + MARKUP_BYTES * (4 + items)


def conversations(answers: Sequence[ReportAnswer]) -> list[ReportConversation]:
    """The conversations among the answers in full, those that fail first, the earliest turn
    first."""
    places: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for place, answer in enumerate(answers):
        if answer.conversation and answer.turn:
            turns = places.setdefault((answer.conversation, answer.repeat), [])
            turns.append((answer.turn, place))
    talks = []
    for (name, repeat), turns in places.items():
        turns.sort()
        failing = [turn for turn, place in turns if answers[place].verdict == "fails"]
        absent = sorted(set(range(1, turns[-1][0] + 1)).difference(turn for turn, _ in turns))
        first, shown = failing[0] if failing else None, [place for _, place in turns]
        talks.append(ReportConversation(name, repeat, shown, first, failing, absent))
    return sorted(
        talks, key=lambda talk: (talk.first_failing is None, talk.first_failing or 0, talk.name)
    )


# As blocks of Markdown; the page has templates for these.


def conversation_blocks(
    talks: Sequence[ReportConversation], answers: Sequence[ReportAnswer]
) -> Iterator[Block]:
    """The conversations that fail, each with its turns and the queries of their searches."""
    yield Prose(words.conversations_text(talks))
    failing = [talk for talk in talks if talk.first_failing is not None]
    for talk in failing[: words.IN_MARKDOWN]:
        yield Prose(f"{one_line(talk.name)}, from turn {talk.first_failing} on", item=1)
        for answer in (answers[place] for place in talk.turns):
            fails = answer.turn in talk.failing
            state = f"fails: {words.why_text(answer)}" if fails else "ok"
            question = one_line(answer.question.text, 400)
            yield Prose(f"turn {answer.turn}: {question} ({state})", item=2)
            for step in answer.searches.steps if answer.searches else ():
                yield Prose(f"search: {one_line(step.query.text, 400)} ({step.says})", item=3)


_LEADS: Mapping[str, str] = {"fails": "fails: ", "warnings": "warning: ", "notes": "note: "}


def answer_blocks(answer: ReportAnswer) -> Iterator[Block]:
    """One case in full; of its passages the text of those with a mark."""
    repeat = f" (repeat {answer.repeat})" if answer.repeat else ""
    yield Heading(f"{one_line(answer.case_id, 80)}{repeat}", 3)
    yield _text("Question", answer.question)
    if answer.error:
        yield Prose(words.no_answer_text(one_line(answer.error, 400)))
    state = words.answer_state(answer)
    yield _text(f"Answer{f' ({state})' if state else ''}", answer.answer)
    if answer.reference_answer:
        yield _text("Reference answer", answer.reference_answer)
    if answer.before:
        yield _text("Answer before", answer.before.answer)
    yield from items(map(words.change_text, answer.changes))
    for name in ("fails", "warnings", "notes", "because"):
        yield from items(f"{_LEADS.get(name, '')}{why}" for why in getattr(answer, name))
    for claim in answer.claims:
        text = one_line(claim.text.text, 400)
        yield Prose(f"not supported ({number(claim.score)}): {text}", item=1)
    for judged in answer.verdicts:
        blame = f", {words.spaced(judged.blame)}" if judged.blame else ""
        verdict = f"{judged.kind} {words.spaced(judged.verdict)}{blame}"
        yield Prose(f"judge: {verdict}: {one_line(judged.text.text, 400)}", item=1)
    for gold in answer.gold:
        rank = f"found at rank {gold.rank}" if gold.rank else "not retrieved"
        yield Prose(f"wanted: {gold.place} ({rank})", item=1)
    for passage in answer.retrieved:
        marks = [name for key, name in words.PASSAGE_MARKS if getattr(passage, key)]
        named = f" ({', '.join(marks)})" if marks else ""
        name = f"{passage.rank}. {passage.place}{named}"
        if passage.text and marks:  # those without a mark are named; the page holds their text
            yield _text(name, passage.text)
        else:
            yield Prose(name)
    if answer.retrieved_more:
        yield Prose(f"{answer.retrieved_more} more are not shown.")


def _text(name: str, text: CutText | None) -> Quotation:
    if not text:
        return Quotation(name, "No text.")
    more = words.more(text.left_out)
    return Quotation(name, text.text + (f" {more}" if more else ""))
