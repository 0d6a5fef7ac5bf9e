"""One case, or the same case of two runs, as page blocks: browser, report, ``--worst`` draw them.

A case is a list of parts, each a heading and its blocks; whoever draws it names the parts that it
has room for. Texts are as they are in the files: what draws blocks makes them harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import msgspec

from decisions.case_changes import Ways
from ragmetrics.pipeline import outcome_words
from records.judgements import STALE
from records.notes import CaseNote
from records.scores import (
    ConversationEvidence,
    GroundednessEvidence,
    PipelineEvidence,
    SearchesEvidence,
)
from terminal.page import (
    Block,
    Heading,
    Labelled,
    PassageBlock,
    Prose,
    Quotation,
    Sides,
    Tag,
    TextMark,
    TimeBar,
    Tone,
    number,
)
from terminal.tables import counted
from views.case import Case, Claim, GoldMatch, RetrievedPassage, Said, Verdict
from views.searches import longest_ms, tools_note
from views.text import same_words, score, score_pair, shortened, word_changes

TONES: Mapping[Verdict, Tone] = {
    "supported": "good",
    "unsupported": "doubt",
    "contradicted": "bad",
    "unclear": "strong",
    "skipped": "quiet",
}

WORDS: Mapping[Verdict, str] = {
    "supported": "supported",
    "unsupported": "not supported",
    "contradicted": "contradicted",
    "unclear": "unclear",
    "skipped": "not judged",
}

SIGNS: Mapping[Verdict, str] = {
    "supported": "✓",
    "unsupported": "✗",
    "contradicted": "‼",
    "unclear": "?",
    "skipped": "·",
}
"""A sign for each colour, so that colour alone carries no meaning."""

BAD: tuple[Verdict, ...] = ("unsupported", "contradicted")

SHORT = 600
"""Characters of a claim, a quote or a query that are shown."""

MOST_PASSAGES, MOST_ITEMS = 10, 12
"""Passages, and claims, verdicts, searches or calls, of a case in brief."""

_SNIPPET = 300


@dataclass(frozen=True, slots=True)
class ShownWith:
    """The verdict, the notes and the other run that a case is shown with.

    ``state``: whether it fails, in words, with its tone. ``said``: the verdict by its rules.
    ``before``: the same case in the run that this one is compared with, whose names are ``runs``;
    ``way``: what became of it; ``changes``: the scores that changed; ``pairs``: what a judge said
    of both answers together (question asked, verdict, quote). ``brief``: of long lists the
    beginning, of claims those that are not supported.
    """

    state: str = ""
    failing: bool = False
    said: Said = field(default_factory=Said)
    notes: Sequence[CaseNote] = ()
    before: Case | None = None
    runs: tuple[str, str] = ("Before", "Now")
    states: tuple[str, str] = ("", "")
    way: Ways | str = ""
    changes: Sequence[str] = ()
    pairs: Sequence[tuple[str, str, str]] = ()
    brief: bool = False
    hint: str = ""
    """What is said behind the turn of a conversation."""


def case_blocks(
    case: Case, parts: Iterable[str] | None = None, view: ShownWith | None = None
) -> list[Block]:
    """The parts of a case in order, each a heading with its blocks. ``parts``: some of ``PARTS``;
    None: all. A part without anything to say is left out."""
    shown = ShownWith() if view is None else view
    names = EVERY if parts is None else parts
    return [block for name in names for block in PARTS[name](case, shown)]


def cut(text: str, most: int = SHORT) -> str:
    """The beginning of a text on one line."""
    beginning, left_out = shortened(" ".join(text[: 4 * most].split()), most)
    return f"{beginning.rstrip()} …" if left_out else beginning


def repeat_name(case: Case) -> str:
    """Id of the case, with the number of its repeat."""
    return case.case_id + (f" repeat {case.repeat}" if case.repeat else "")


def _question(case: Case, view: ShownWith) -> Iterator[Block]:
    yield Heading("Question", 4, note=repeat_name(case))
    yield Quotation("", case.question)
    if view.state:
        yield Prose(view.state, "bad" if view.failing else "good")
    if view.failing:
        yield from (Labelled(*pair) for pair in case.trace if pair[0] == "outcome")
    for name, side in _sides(case, view):
        run = f"{name}: " if view.before else ""
        yield from (Prose(f"! {run}{problem}", "doubt") for problem in side.problems)


def _sides(case: Case, view: ShownWith) -> list[tuple[str, Case]]:
    """The case in the run before, if there is one, and in this run."""
    sides = [case] if view.before is None else [view.before, case]
    return list(zip(view.runs[-len(sides) :], sides, strict=True))


def _changed(case: Case, view: ShownWith) -> Iterator[Block]:
    """What became of the case between two runs, and what a judge says of both answers."""
    if any(view.states):
        tones: Mapping[str, Tone] = {"broke": "bad", "fixed": "good"}
        told = zip(view.runs, view.states, strict=True)
        # warnings are beside the answers
        states = "; ".join(f"{name}: {state.partition(' (warning')[0]}" for name, state in told)
        tag = Tag(view.way.upper() if view.way in tones else view.way or "-", tones.get(view.way))
        yield Prose((tag, f"  {states}"))
    for question, verdict, quote in view.pairs:
        yield Labelled(question, verdict, _WAYS.get(verdict))
        if quote:
            yield Labelled("", cut(quote), "quiet")


_WAYS: Mapping[str, Tone] = {"better": "good", "worse": "bad"}


def _history(case: Case, view: ShownWith) -> Iterator[Block]:
    if case.conversation:
        yield Labelled("conversation", f"turn {case.turn} of {case.conversation}{view.hint}")
    for message in case.history:
        name = {"assistant": "bot"}.get(message.role, message.role)
        yield Labelled(name, cut(message.content))


def _notes(case: Case, view: ShownWith) -> Iterator[Block]:
    for note in view.notes:
        run = f" ({note.run})" if note.run else ""
        yield Labelled("note", note.line() + run, "doubt" if note.flag else None)


def _why(case: Case, view: ShownWith) -> Iterator[Block]:
    """Which rules the case breaks, and what the scorers noted that is no number."""
    lines = [*view.changes]
    lines += [f"fails: {reason}" for reason in view.said.reasons]
    lines += [f"warning: {warning}" for warning in view.said.warnings]
    lines += because(case)
    if view.before is not None:
        lines += [f"before: {fact}" for fact in because(view.before)]
    if lines:
        yield Heading("Why", 4)
        yield from (Prose(line, item=1) for line in lines)


def because(case: Case) -> Iterator[str]:
    """The findings of the scorers that are no numbers."""
    if case.passages_unknown:
        yield case.passages_unknown
    pipeline = case.evidence(PipelineEvidence)
    if pipeline.expected and pipeline.expected != pipeline.outcome:
        yield outcome_words(pipeline.outcome, pipeline.expected, pipeline.reason)
    for text, flags in (
        ("expected flags that the answer lacks", pipeline.missing_flags),
        ("forbidden flags of the answer", pipeline.forbidden_flags),
    ):
        if flags:
            yield f"{text}: {', '.join(flags)}"
    if count := pipeline.citations:
        yield f"citations: {count.present}, at least {count.min} wanted"
    for stage, over in pipeline.over_budget.items():
        yield f"{stage} took {over.ms:,.0f} ms of {over.budget_ms:,.0f} ms"
    if missing := sum(rank is None for rank in case.ranks or ()):
        yield f"not retrieved: {missing} of {len(case.ranks or ())} gold passages"
    grounded = case.evidence(GroundednessEvidence)
    if numbers := grounded.numbers.get("fabricated"):
        yield f"numbers found in no passage: {', '.join(map(str, numbers))}"
    for fact in grounded.expected_claims_missing[:3]:
        yield f"an expected claim is missing: {fact.removesuffix('.')}"
    for cited in grounded.citations:
        if cited.chunk_id is None:
            yield f"citation [{cited.target}] names no retrieved passage"
        elif cited.supported is False:
            yield f"citation [{cited.target}] does not support its claim"
    for place in case.evidence(SearchesEvidence).lost:
        yield f"lost before the answer: {_gold_name(case, place)}"
    turn = case.evidence(ConversationEvidence)
    for place, brought in zip(turn.missing, turn.found_at, strict=True):
        where = f"brought at turn {brought}" if brought else "brought at no turn"
        yield f"missing here, {where}: {_gold_name(case, place)}"
    if turn.asks_back:
        yield "the bot asks back"
    if case.stale:
        yield f"the judge: {STALE}"


def _gold_name(case: Case, place: int) -> str:
    return case.gold[place].location if place < len(case.gold) else f"gold {place + 1}"


def _answer(case: Case, view: ShownWith) -> Iterator[Block]:
    yield Heading("Answer", 4, note=f"claims by {case.claims_by}" if case.claims_by else "")
    if view.before is None:
        yield from _reply(case)
        return
    both = case.answer and view.before.answer and not (case.no_answer or view.before.no_answer)
    spans = word_changes(view.before.answer or "", case.answer or "") if both else ([], [])
    replies: list[list[Block]] = []
    for side, changed, state in zip((view.before, case), spans, view.states, strict=True):
        head = [Prose(state, "quiet")] if state else []
        bad = [claim for claim in side.claims if claim.verdict in BAD]
        signs = (Labelled(_sign(one), one.note, TONES[one.verdict]) for one in bad if one.note)
        replies.append([*head, *_reply(side, changed), *signs])
    yield Sides([(replies[0], replies[1])], view.runs)
    if both:
        same = same_words(view.before.answer or "", case.answer or "")
        words = "Changed words are underlined." if any(spans) else "Most of their words differ."
        yield Prose("Both answers have the same words." if same else words, "quiet")


def _reply(case: Case, changed: Sequence[tuple[int, int]] = ()) -> Iterator[Block]:
    """The answer with its claims marked, or why there is none."""
    if case.no_answer:
        what, _, why = case.no_answer.partition(": ")
        failed = case.status == "error"
        yield Prose((Tag(what, "bad" if failed else "doubt"), f": {why}"))
        return
    if not case.answer:
        yield Prose("(empty)" if case.answer == "" else "(no answer)", "quiet")
    else:
        yield Quotation("", case.answer, _marks(case.answer, case.claims), changed)
    facts = []
    if case.abstained:
        facts.append("abstained" + (f": {case.abstain_reason}" if case.abstain_reason else ""))
    if case.confidence is not None:
        facts.append(f"confidence {number(case.confidence)}")
    if facts:
        yield Prose(", ".join(facts), "quiet")


def _marks(text: str, claims: Iterable[Claim]) -> list[TextMark]:
    """The claims in an answer that overlap no other and are within it."""
    marks: list[TextMark] = []
    for claim in sorted(claims, key=lambda claim: claim.span or (0, 0)):
        if claim.span is not None:
            start, end = claim.span
            if (marks[-1].end if marks else 0) <= start < end <= len(text):
                marks.append(TextMark(start, end, TONES[claim.verdict], SIGNS[claim.verdict]))
    return marks


def _sign(claim: Claim) -> str:
    word = claim.word.replace("_", " ") or WORDS[claim.verdict]
    return f"{SIGNS[claim.verdict]} {word[:40]}"


def _expected(case: Case, view: ShownWith) -> Iterator[Block]:
    """What should have been found and said."""
    if not case.gold and not case.labels:
        yield Heading("Expected", 4, note="the eval set does not hold this case")
        return
    yield Heading("Expected", 4, note="from the eval set")
    for gold, old in _golds(case, view):
        yield Labelled(*_found(case, gold, old))
        for snippet in gold.snippets[: 1 if view.brief else None]:
            yield Labelled("", f'"{cut(snippet, _SNIPPET)}"', "quiet")
    for label, text in case.labels:
        yield Labelled(label, text)


def _gold(case: Case, view: ShownWith) -> Iterator[Block]:
    """Where each gold support was found, without anything else."""
    return (Labelled(*_found(case, gold, old)) for gold, old in _golds(case, view))


def _golds(case: Case, view: ShownWith) -> Iterator[tuple[GoldMatch, GoldMatch | None]]:
    """Each gold support, as it was found in this run and, where that is known, before."""
    before = view.before.gold if view.before and view.before.hits is not None else ()
    return zip_longest(case.gold, before[: len(case.gold)])


def _found(case: Case, gold: GoldMatch, before: GoldMatch | None) -> tuple[str, str, Tone | None]:
    """Where a gold support was found, its place, and how good that is."""
    if case.hits is None:
        return "gold not scored", gold.location, "quiet"
    rank = f"found at {gold.rank}" if gold.rank else "not retrieved"
    tone: Tone = "good" if gold.rank else "bad"
    if before is None or before.rank == gold.rank:
        return f"gold {rank}", gold.location, tone
    worse = before.rank and (gold.rank is None or gold.rank > before.rank)
    ranks = " → ".join(str(rank) if rank else "none" for rank in (before.rank, gold.rank))
    return f"gold {ranks}", gold.location, "bad" if worse else "good"


def _claims(case: Case, view: ShownWith) -> Iterator[Block]:
    """Each claim with its verdict, and the passage that supports it."""
    claims = [claim for claim in case.claims if not view.brief or claim.verdict in BAD]
    if claims:
        title = "Claims that no passage supports" if view.brief else "Claims"
        yield Heading(title, 4, note=f"by {case.claims_by}")
        yield from _claim_lines(case, claims, view)


def _claim_lines(case: Case, claims: Sequence[Claim], view: ShownWith) -> Iterator[Block]:
    ranks: dict[str, int] = {}
    for passage in case.passages:
        ranks.setdefault(passage.chunk_id, passage.rank)
    shown = claims[:MOST_ITEMS] if view.brief else claims
    for claim in shown:
        yield Labelled(_sign(claim), cut(claim.text), TONES[claim.verdict])
        where = f"passage {ranks.get(claim.chunk_id, claim.chunk_id)}" if claim.chunk_id else ""
        blame = claim.blame.replace("_", " ")
        if notes := " · ".join(filter(None, (where, blame, cut(claim.note)))):
            yield Labelled("", notes, "quiet")
        if claim.quote:
            yield Labelled("", f'quote: "{cut(claim.quote)}"', "quiet")
    if len(shown) < len(claims):
        yield Prose(f"{len(claims) - len(shown):,} more are not shown.", "quiet")


def _judged(case: Case, view: ShownWith) -> Iterator[Block]:
    """What judges said, claim by claim; in brief the bad news first."""
    for judgement in case.judged:
        items = list(judgement.items)
        if view.brief:
            items.sort(key=lambda item: item.verdict == "supported")
        notes = filter(None, (judgement.judge, judgement.status, judgement.reason))
        yield Heading(f"Judge: {judgement.metric}", 4, note=" · ".join(notes))
        yield from _claim_lines(case, items, view)
        if not items:
            yield Prose("(no verdict)", "quiet")


def _tools(case: Case, view: ShownWith) -> Iterator[Block]:
    """The calls of tools in order, what each gave back, and expected calls that were not made."""
    if case.tools is None:
        return
    yield Heading("Tools", 4, note=tools_note(case.tools, case.missing_calls))
    most = MOST_ITEMS if view.brief else None
    for place, step in enumerate(case.tools[:most], 1):
        yield Prose(f"{place}. {cut(step.call, 800)}", item=1)
        if says := step.says():
            tone: Tone = "bad" if step.bad else "good" if step.marks else "quiet"
            yield Prose(says, tone, item=2)
        if step.error:
            yield Prose(f"failed: {cut(step.error)}", "bad", item=2)
        if step.result:
            yield Prose(cut(step.result), item=2)
    for call in case.missing_calls:
        yield Prose((Tag("not made", "bad"), f" {cut(call, 800)}"), item=1)


def _searches(case: Case, view: ShownWith) -> Iterator[Block]:
    """The searches in time: when, what was asked, what was new, gold marked."""
    if not case.searches:
        return
    count = counted(len(case.searches), "search", "searches")
    yield Heading("Searches", 4, note=" · ".join(filter(None, (count, case.complete))))
    if case.rewritten:
        yield Labelled("rewritten as", cut(case.rewritten))
    longest = longest_ms(case.searches)
    for place, step in enumerate(case.searches[: MOST_ITEMS if view.brief else None], 1):
        times = "" if step.start_ms is None else f"{step.start_ms:,.0f} ms"
        times += "" if step.latency_ms is None else f" +{step.latency_ms:,.0f}"
        when = " · ".join(filter(None, (times, step.tool[:60])))
        drawn = step.bar(longest, 100)
        bar = () if drawn is None else (TimeBar(drawn[0] / 100, drawn[1] / 100), " ")
        yield Prose((f"{place}. ", *bar, when), "quiet", item=1)
        yield Prose(cut(step.query) or "(no query told)", "strong", item=2)
        yield Prose(step.says(), "bad" if step.error else "good" if step.gold else "quiet", item=2)
        shown = step.shown_new()
        for passage in shown:
            tag = Tag("GOLD", "good") if passage.gold else Tag("new")
            yield Prose((tag, f" {passage.rank}. {passage.location}"), item=2)
        if len(shown) < len(step.new):
            yield Prose(f"and {len(step.new) - len(shown)} more new", "quiet", item=2)


def _passages(case: Case, view: ShownWith) -> Iterator[Block]:
    """The passages in rank order, gold ones marked, snippets of gold in them highlighted."""
    if case.hits is None:
        note = "gold unknown: score_retrieval.py has no score here"
    else:
        ranks = ", ".join(map(str, case.hits)) or "none"
        note = f"{counted(len(case.passages), 'passage')}, gold ones ({case.match}): {ranks}"
    yield Heading("Retrieved", 4, note=note)
    if view.before is None:
        yield from _passage_list(case, view)
        return
    both = (list(_passage_list(side, view)) for side in (view.before, case))
    rows = [
        ([old] if old else [], [new] if new else []) for old, new in zip_longest(*both)
    ]  # those of the same rank are level
    yield Sides(rows, view.runs)


def _passage_list(case: Case, view: ShownWith) -> Iterator[Block]:
    if not case.passages:
        yield Prose(f"({case.passages_unknown or 'nothing'})", "quiet")
    snippets = [snippet for gold in case.gold for snippet in gold.snippets]
    shown = case.passages[: MOST_PASSAGES if view.brief else None]
    for passage in shown:
        scores = dict(passage.scores)
        if view.brief:
            scores = {"score": scores["final"]} if "final" in scores else {}
        tags = (Tag("relevant", "good"),) * bool(passage.gold) + (Tag("cited"),) * passage.cited
        yield PassageBlock(
            passage.rank,
            passage.location,
            passage.text,
            gold=bool(passage.gold),
            loud=bool(passage.gold) or passage.cited,
            tags=tags,
            note=" ".join(f"{name} {value:.3g}" for name, value in scores.items()),
            snippets=snippets if passage.gold is not False else (),
            length=passage.length if passage.cut else None,
        )
    if len(shown) < len(case.passages):
        yield Prose(f"{len(case.passages) - len(shown):,} more are not shown.", "quiet")


def _scores(case: Case, view: ShownWith) -> Iterator[Block]:
    """All scores by section, and the reasons for what has none; of two runs those that differ."""
    if view.before is not None:
        yield from _changed_scores(view.before.values(), case.values())
        return
    empty = "" if case.lines else "none yet: run eval_suite.py or a score_*.py"
    yield Heading("Scores", 4, note=empty)
    for section, line in case.lines.items():
        scores = [
            f"{name} {score(value)}" for name, value in line.scores.items() if value is not None
        ]
        yield Labelled(section, ", ".join(scores) or line.status, None if scores else "quiet")
        reasons: dict[str, list[str]] = {}
        for name, reason in line.reasons.items():
            reasons.setdefault(reason, []).append(name)
        for reason, names in reasons.items():
            shown = "nothing scored" if names == ["*"] else ", ".join(names)
            yield Labelled("", f"- {shown}: {reason}", "quiet")


def _changed_scores(
    before: Mapping[str, float | None], after: Mapping[str, float | None]
) -> Iterator[Block]:
    pairs = {name: score_pair(before[name], after[name]) for name in after if name in before}
    changed = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    note = f"{len(changed)} changed, {len(pairs) - len(changed)} equal"
    yield Heading("Scores that changed", 4, note=note)
    for name, pair in changed.items():
        yield Labelled(name, " → ".join(pair))


def _trace(case: Case, view: ShownWith) -> Iterator[Block]:
    """How the answer came about."""
    if case.trace:
        yield Heading("Trace", 4)
        yield from (Labelled(*pair) for pair in case.trace)


EVERY = (
    *("question", "changed", "history", "notes", "why", "answer", "claims", "expected", "judged"),
    *("tools", "searches", "passages", "values", "trace"),
)
"""The parts of a whole case in their order."""

PARTS: Mapping[str, Callable[[Case, ShownWith], Iterator[Block]]] = {
    "question": _question,
    "changed": _changed,
    "history": _history,
    "notes": _notes,
    "why": _why,
    "answer": _answer,
    "claims": _claims,
    "expected": _expected,
    "gold": _gold,
    "judged": _judged,
    "tools": _tools,
    "searches": _searches,
    "passages": _passages,
    "values": _scores,
    "trace": _trace,
}
"""What makes each part."""


# The evidence of a section, whatever its scorer keeps


_SHOWN_ELSEWHERE = {"hits", "found", "match", "window", "span", "index", "id", "claim_id"}

_CHUNKS = {"chunk_id", "chunk_ids", "chunks", "context"}

_HEADS = ("text", "fact", "claim", "question", "name", "target", "query")


def evidence_blocks(case: Case, section: str, but: Sequence[str] = ()) -> Iterator[Block]:
    """The evidence that a section's scorer kept of a case; passages by their rank. ``but``: names
    that are left out."""
    line = case.lines.get(section)
    kept = None if line is None else msgspec.to_builtins(line.evidence)
    passages = {passage.chunk_id: passage for passage in reversed(case.passages)}
    for name, value in kept.items() if isinstance(kept, Mapping) else ():
        if name == "span" and value and case.answer:
            yield Labelled("sentence", cut(case.answer[slice(*value)]))
        if name in (*but, *_SHOWN_ELSEWHERE) or value in (None, "", [], {}, False):
            continue
        label = name.replace("_", " ")
        if isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
            yield Prose(f"{label}:", item=1)
            for item in value[:MOST_ITEMS]:
                yield Prose(_item_words(item, passages), item=2)
            if len(value) > MOST_ITEMS:
                yield Prose(f"… {len(value) - MOST_ITEMS} more", "quiet", item=2)
        else:
            yield Labelled(label, cut(_value_words(name, value, passages)))


Passages = Mapping[str, RetrievedPassage]
"""Passages of an answer by the ids of their chunks."""


def _item_words(item: Mapping[str, Any], passages: Passages) -> str:
    """One of several things, what it is first."""
    head = next((name for name in _HEADS if item.get(name)), "")
    rest = "; ".join(
        f"{_named(name)}{_value_words(name, value, passages)}"
        for name, value in item.items()
        if name not in (head, *_SHOWN_ELSEWHERE) and value not in (None, "", [], {})
    )
    return ": ".join(filter(None, (cut(str(item.get(head, "")), _SNIPPET), rest)))


def _named(name: str) -> str:
    return "" if name in _CHUNKS else f"{name.replace('_', ' ')} "


def _value_words(name: str, value: Any, passages: Passages) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{k} {_value_words(k, v, passages)}" for k, v in value.items())
    if isinstance(value, list):
        return ", ".join(_value_words(name, item, passages) for item in value)
    if name == "quote":
        return f'"{value}"'
    if name in _CHUNKS:
        passage = passages.get(value)
        where = passage and f"passage {passage.rank} ({cut(passage.location, 80)})"
        return where or str(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return score(value) if isinstance(value, float) else str(value)
