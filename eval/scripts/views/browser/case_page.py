"""The page of one case, part by part: pure functions from its detail to a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from records.notes import CaseNote
from terminal.plot import sparkline
from terminal.safe_text import one_line
from terminal.tables import counted
from views.browser.document import (
    CHUNK_INDENT,
    LABEL_WIDTH,
    SAYS,
    STYLES,
    Blank,
    Doc,
    level,
    squeezed,
)
from views.browser.model import Trend
from views.browser.rows import MAIN, score, score_pair
from views.case import Case, RetrievedPassage
from views.searches import SearchStep, longest_ms
from views.tools import tools_note
from views.word_changes import word_changes

GOLD_INDENT = 19

SHORT_CHUNK, SHORT_LINES = 260, 4
"""Characters of a chunk that are shown until the whole is asked for; its lines on a wide page."""


def _answer_part(
    doc: Doc,
    detail: Case,
    title: str = "Answer",
    note: str = "",
    changed: Sequence[tuple[int, int]] = (),
) -> None:
    """The answer with its claims coloured and ``changed`` words marked, or why there is none."""
    whose = f"claims by {detail.claims_by}" if detail.claims_by else ""
    doc.part(title, " · ".join(part for part in (note, whose) if part))
    if detail.no_answer:
        doc.line(detail.no_answer, "bad" if detail.status == "error" else "warn")
    elif not detail.answer:
        doc.line("(empty)" if detail.answer == "" else "(no answer)", "dim")
    else:
        if detail.abstained:
            doc.line("The bot abstained:", "key")
        doc.answer(detail.answer, detail.claims, changed)


def _question_part(doc: Doc, detail: Case, state: str, failing: bool) -> None:
    """The question, whether the case fails and why."""
    doc.part("Question", detail.case_id + (f" repeat {detail.repeat}" if detail.repeat else ""))
    doc.line(detail.question, "term")
    doc.line(state, "bad" if failing else "good")
    for label, text in detail.trace if failing else ():
        if label == "outcome":
            doc.pair(label, text)
    for problem in detail.problems:
        doc.line(f"! {problem}", "warn")


def _notes_part(doc: Doc, notes: Sequence[CaseNote]) -> None:
    """What people noted on the case."""
    for note in notes:
        run = f" ({note.run})" if note.run else ""
        doc.pair("note", f"{note.line()}{run}", "warn" if note.flag else "")


def _claims_part(doc: Doc, detail: Case) -> None:
    """Each claim with its verdict, and the chunk that supports it."""
    if not detail.claims:
        return
    doc.part("Claims", f"by {detail.claims_by}")
    ranks = _ranks_of(detail)
    for claim in detail.claims:
        doc.claim(claim, _where(ranks, claim.chunk_id))


def _ranks_of(detail: Case) -> dict[str, int]:
    """Rank of each chunk id; of one that comes twice, the first."""
    ranks: dict[str, int] = {}
    for passage in detail.passages:
        ranks.setdefault(passage.chunk_id, passage.rank)
    return ranks


def _where(ranks: Mapping[str, int], chunk_id: str) -> str:
    if not chunk_id:
        return ""
    return f"chunk {ranks[chunk_id]}" if chunk_id in ranks else f"chunk {chunk_id}"


def _gold_part(doc: Doc, detail: Case) -> None:
    """What should have been found and said."""
    if not detail.gold and not detail.labels:
        doc.part("Expected", "the eval set does not hold this case")
        return
    doc.part("Expected", "from the eval set")
    for gold in detail.gold:
        if detail.hits is None:
            rank_text, style = "not scored", "dim"
        elif gold.rank is None:
            rank_text, style = "not retrieved", "bad"
        else:
            rank_text, style = f"found at {gold.rank}", "good"
        doc.add(f"{f'gold {rank_text}':<{GOLD_INDENT - 1}} ", style)
        doc.hang(gold.location, GOLD_INDENT)
        for snippet in gold.snippets:
            doc.add(" " * GOLD_INDENT)
            doc.hang(f'"{squeezed(snippet)}"', GOLD_INDENT, "dim")
    for label, text in detail.labels:
        doc.pair(label, text)


def _passages_part(doc: Doc, detail: Case, *, full: bool, title: str = "Retrieved") -> None:
    """The chunks in rank order, gold ones marked, snippets of gold in them highlighted."""
    if detail.hits is None:
        note = "gold unknown: score_retrieval.py has no score here"
    else:
        ranks = ", ".join(map(str, detail.hits)) or "none"
        chunks = counted(len(detail.passages), "chunk")
        note = f"{chunks}, gold ones ({detail.match}): {ranks}"
    doc.part(title, note)
    if not detail.passages:
        doc.line(f"({detail.passages_unknown or 'nothing'})", "dim")
    snippets = [snippet for gold in detail.gold for snippet in gold.snippets]
    limit = None if full else max(SHORT_CHUNK, SHORT_LINES * (doc.width - CHUNK_INDENT))
    for passage in detail.passages:
        _passage_head(doc, passage)
        text = passage.text if full else squeezed(passage.text)
        doc.passage(text, snippets if passage.gold is not False else (), limit)
        if passage.cut and full:
            doc.line(f"(cut when it was stored; {passage.length} characters long)", "dim")


def _passage_head(doc: Doc, passage: RetrievedPassage) -> None:
    scores = " ".join(f"{name} {value:.3g}" for name, value in passage.scores)
    style = "good" if passage.gold else "key"
    doc.add(f"{passage.rank:>2} {'GOLD' if passage.gold else '':<5}", style)
    text = f"{one_line(passage.location, 400)}  {scores}"
    doc.hang(text, CHUNK_INDENT, style if passage.gold else "dim")


BAR_WIDTH = 16
"""Cells of the bar that shows when a search ran."""

SEARCH_INDENT = 4


def _searches_part(doc: Doc, detail: Case) -> None:
    """The searches as a waterfall: when, what was asked, what was new, gold marked."""
    if detail.searches:
        note = [counted(len(detail.searches), "search", "searches"), detail.complete]
        doc.part("Searches", " · ".join(filter(None, note)))
        _waterfall(doc, detail)


def _waterfall(doc: Doc, detail: Case) -> None:
    if detail.rewritten:
        doc.pair("rewritten as", detail.rewritten)
    longest = longest_ms(detail.searches)
    for number, step in enumerate(detail.searches, 1):
        doc.add(f"{number:>2}  ", "key")
        if longest:
            doc.add(f"{_bar(step, longest, doc)} ", "dim")
        times = "" if step.start_ms is None else f"{step.start_ms:,.0f} ms"
        if step.latency_ms is not None:
            times += f" +{step.latency_ms:,.0f}"
        doc.line(" · ".join(filter(None, (times, one_line(step.tool, 40)))), "dim")
        doc.add(" " * SEARCH_INDENT)
        doc.hang(step.query or "(no query told)", SEARCH_INDENT, "term")
        doc.add(" " * SEARCH_INDENT)
        style = "bad" if step.error else "good" if step.gold else "dim"
        doc.hang(step.says(), SEARCH_INDENT, style)
        shown = step.shown_new()
        for passage in shown:
            doc.add(f"{passage.rank:>6} {'GOLD' if passage.gold else 'new':<5}")
            doc.hang(one_line(passage.location, 400), 12, "good" if passage.gold else "dim")
        if len(shown) < len(step.new):
            doc.line(f"{'':12}and {len(step.new) - len(shown)} more new", "dim")


def _bar(step: SearchStep, longest: float, doc: Doc) -> str:
    """When a search ran, of all the time until the last one ended."""
    drawn = step.bar(longest, BAR_WIDTH)
    full, free = ("#", ".") if doc.ascii else ("█", "░")
    if drawn is None:
        return free * BAR_WIDTH
    start, size = drawn
    return free * start + full * size + free * (BAR_WIDTH - start - size)


def _tools_part(doc: Doc, detail: Case) -> None:
    """The calls of tools in order, what each gave back, and expected calls that were not made."""
    if detail.tools is not None:
        doc.part("Tools", tools_note(detail.tools, detail.missing_calls))
        _calls(doc, detail)


def _calls(doc: Doc, detail: Case) -> None:
    for number, step in enumerate(detail.tools or (), 1):
        doc.add(f"{number:>2}  ", "key")
        doc.hang(one_line(step.call, 800), SEARCH_INDENT, "term")
        if says := step.says():
            doc.add(" " * SEARCH_INDENT)
            doc.hang(says, SEARCH_INDENT, "bad" if step.bad else "good" if step.marks else "dim")
        for text, style in ((f"failed: {step.error}" * bool(step.error), "bad"), (step.result, "")):
            if text:
                doc.add(" " * SEARCH_INDENT)
                doc.hang(squeezed(text), SEARCH_INDENT, style)
    for call in detail.missing_calls:
        doc.add(" " * SEARCH_INDENT)
        doc.hang(f"not made: {one_line(call, 800)}", SEARCH_INDENT, "bad")


def _said_before_part(doc: Doc, detail: Case) -> None:
    """Where the case stands in its conversation, or what it says was said before it."""
    if detail.conversation:
        doc.pair("conversation", f"turn {detail.turn} of {detail.conversation}; H shows all turns")
    for message in detail.history:
        doc.pair({"assistant": "bot"}.get(message.role, message.role), squeezed(message.content))


def conversation_doc(blank: Blank, turns: Sequence[tuple[Case, str, bool]], current: str) -> Doc:
    """A conversation turn by turn; each turn with its state in words and whether it fails."""
    doc = blank()
    name = turns[0][0].conversation if turns else ""
    failing = [detail.turn for detail, _, fails in turns if fails]
    broke = f"turn {failing[0]} is the first that fails" if failing else "no turn fails"
    doc.part("Conversation", f"{name} · {counted(len(turns), 'turn')} · {broke}")
    if not turns:
        doc.line("The case belongs to no conversation.", "dim")
    for detail, state, fails in turns:
        here = " · the case that was open" if detail.case_id == current else ""
        doc.part(f"Turn {detail.turn}", f"{detail.case_id}{here}")
        doc.line(detail.question, "term")
        doc.line(state, "bad" if fails else "good")
        for problem in detail.problems:
            doc.line(f"! {problem}", "warn")
        if detail.no_answer:
            doc.line(detail.no_answer, "bad" if detail.status == "error" else "warn")
        else:
            doc.answer(detail.answer or "(no answer)", detail.claims)
        if detail.tools is not None:
            doc.line(f"Tools · {tools_note(detail.tools, detail.missing_calls)}", "rule")
            _calls(doc, detail)
        if detail.searches:
            searches = counted(len(detail.searches), "search", "searches")
            doc.line(" · ".join(filter(None, (searches, detail.complete))), "rule")
            _waterfall(doc, detail)
        missing = [gold for gold in detail.gold if detail.hits is not None and gold.rank is None]
        found = [gold for gold in detail.gold if gold.rank is not None]
        for gold in found:
            doc.pair(f"gold found at {gold.rank}", gold.location, "good")
        for gold in missing:
            doc.pair("gold not retrieved", gold.location, "dim" if found else "bad")
    return doc


def _judged_part(doc: Doc, detail: Case) -> None:
    """What judges said, claim by claim."""
    ranks = _ranks_of(detail)
    for judgement in detail.judged:
        notes = (judgement.judge, judgement.status, judgement.reason)
        note = " · ".join(notes[:2] if not judgement.reason else notes)
        doc.part(f"Judge: {judgement.metric}", note)
        for claim in judgement.items:
            doc.claim(claim, _where(ranks, claim.chunk_id), claim.quote)
        if not judgement.items:
            doc.line("(no verdict)", "dim")


def _scores_part(doc: Doc, detail: Case) -> None:
    """All scores by section, a few to a line, and the reasons for what has none."""
    doc.part("Scores", "" if detail.lines else "none yet: run eval_suite.py or a score_*.py")
    for section, line in detail.lines.items():
        scores = [
            f"{name} {score(value)}" for name, value in line.scores.items() if value is not None
        ]
        doc.pair(section, ", ".join(scores) or line.status, "" if scores else "dim")
        reasons: dict[str, list[str]] = {}
        for name, reason in line.reasons.items():
            reasons.setdefault(reason, []).append(name)
        for reason, names in reasons.items():
            shown = "nothing scored" if names == ["*"] else ", ".join(names)
            doc.pair("", f"- {shown}: {reason}", "dim")


def _trace_part(doc: Doc, detail: Case) -> None:
    """How the answer came about."""
    doc.part("Trace")
    for label, text in detail.trace:
        doc.pair(label, text)
    doc.line("r shows the result as written in the file, T the scores over all runs.", "dim")


def case_docs(
    blank: Blank,
    detail: Case,
    state: str,
    *,
    failing: bool,
    full: bool,
    two: bool,
    notes: Sequence[CaseNote] = (),
    judged: Sequence[tuple[str, str, str]] = (),
) -> tuple[Doc, Doc | None]:
    """The page as one document, or as two side by side."""
    left = blank()
    _question_part(left, detail, state, failing)
    _said_before_part(left, detail)
    _notes_part(left, notes)
    _answer_part(left, detail)
    if two:
        right = blank()
        _tools_part(right, detail)
        _searches_part(right, detail)
        _passages_part(right, detail, full=full)
        for part in (_claims_part, _gold_part, _judged_part, _scores_part):
            part(left, detail)
        _trace_part(right, detail)
        return left, right
    _claims_part(left, detail)
    _gold_part(left, detail)
    _tools_part(left, detail)
    _searches_part(left, detail)
    _passages_part(left, detail, full=full)
    for part in (_judged_part, _scores_part, _trace_part):
        part(left, detail)
    return left, None


def raw_doc(blank: Blank, detail: Case) -> Doc:
    """The result as JSON."""
    doc = blank()
    doc.part("Result as written in the file", detail.case_id)
    for line in _indented(detail.raw).split("\n"):
        doc.line(line)
    return doc


def _indented(line: bytes) -> str:
    """A JSON line over several lines; unchanged where it is no JSON."""
    try:
        value: Any = orjson.loads(line)
    except orjson.JSONDecodeError:
        return line.decode("utf-8", "replace")
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def trend_doc(blank: Blank, case_id: str, trend: Trend | None) -> Doc:
    """The scores of a case over all runs, a line a metric; None: they are still being read."""
    doc = blank()
    if trend is None:
        doc.part("Trend", case_id)
        doc.line("reading all runs …", "dim")
        return doc
    doc.part("Trend", f"{case_id} in {counted(len(trend.runs), 'run')}, the oldest first")
    if not trend.runs:
        doc.line("No run has scored this case yet.", "dim")
    scored = [line for line in trend.metrics if any(value is not None for value in line.values)]
    width = min(max((len(line.metric) for line in scored), default=0), WIDEST_NAME)
    main = sorted(
        (line for line in scored if line.metric in MAIN), key=lambda line: MAIN.index(line.metric)
    )
    section = ""
    for title, line in [("main metrics", line) for line in main] + [
        (line.section, line) for line in scored if line not in main
    ]:
        if title != section:
            section = title
            doc.line(section, "rule")
        scores = [value for value in line.values if value is not None]
        doc.add(f"  {one_line(line.metric, WIDEST_NAME):<{width}} ", "key")
        doc.add(sparkline(line.values, line.breaks, unicode=not doc.ascii))
        doc.line(f"  {_ends(scores, doc)}", "dim" if len(set(scores)) == 1 else "")
    if any(line.breaks for line in trend.metrics):
        sign = "|" if doc.ascii else "┊"
        doc.line(f"{sign} before it the metric was defined in another way", "dim")
    doc.part("Runs", "the oldest first")
    for run_id, started in trend.runs:
        doc.add(f"{one_line(started[:16].replace('T', ' ')):<17}", "dim")
        doc.line(one_line(run_id, 200))
    for problem in trend.problems:
        doc.line(f"! {problem}", "warn")
    return doc


def _ends(scores: Sequence[float], doc: Doc) -> str:
    """The first and the last score, and how far they went in between."""
    arrow = "->" if doc.ascii else "→"
    if len(set(scores)) == 1:
        return f"{score(scores[0])} in all"
    low, high = min(scores), max(scores)
    ends = f" {arrow} ".join(score_pair(scores[0], scores[-1]))
    inside = {scores[0], scores[-1]} == {low, high}
    return ends if inside else f"{ends}, between {score(low)} and {score(high)}"


RANK_INDENT = 13

WIDEST_NAME = 40
"""Cells of the column of metric names."""


@dataclass(frozen=True, slots=True)
class CaseInRun:
    """One of the two: the run's name, the case in it, and whether and why it fails, in words."""

    name: str
    detail: Case
    state: str
    changed: Sequence[tuple[int, int]] = ()
    """The words of its answer that the other one does not have."""


def _head_part(doc: Doc, base: CaseInRun, new: CaseInRun, word: str, style: str) -> None:
    """The question and what became of the case."""
    doc.part("Question", new.detail.case_id)
    doc.line(new.detail.question, "term")
    doc.add(f"{word}  ", style)
    states = (f"{side.name}: {side.state.partition(' (warning')[0]}" for side in (base, new))
    doc.line("; ".join(states))  # warnings stand over the answers
    for side in (base, new):
        for problem in side.detail.problems:
            doc.line(f"! {side.name}: {problem}", "warn")


def _pair_part(doc: Doc, judged: Sequence[tuple[str, str, str]]) -> None:
    """What a judge said of both answers together: the question asked, the verdict, the quote."""
    for metric, verdict, quote in judged:
        doc.pair(metric, verdict, {"better": "good", "worse": "bad"}.get(verdict, ""))
        if quote:
            doc.pair("", squeezed(quote), "dim")


def _ranks_part(doc: Doc, base: CaseInRun, new: CaseInRun) -> None:
    """Ranks of gold before and after, one line a gold support."""
    doc.part("Gold ranks", "base, new")
    arrow = "->" if doc.ascii else "→"
    sides = (base.detail, new.detail)
    if any(detail.hits is None for detail in sides):
        doc.line("not scored in both runs: score_retrieval.py has no score here", "dim")
        return
    golds = zip(base.detail.gold, new.detail.gold, strict=False)
    for before, after in golds:
        ranks = [str(gold.rank) if gold.rank else "none" for gold in (before, after)]
        style = "dim" if before.rank == after.rank else "good"
        if before.rank and (after.rank is None or after.rank > before.rank):
            style = "bad"
        doc.add(f"{ranks[0]:>4} {arrow} {ranks[1]:<4} ".ljust(RANK_INDENT), style)
        doc.hang(after.location, RANK_INDENT)
    lists = [", ".join(map(str, detail.hits or ())) or "none" for detail in sides]
    doc.line(f"gold chunks at: base {lists[0]}; new {lists[1]}", "dim")


def _changes_part(doc: Doc, base: CaseInRun, new: CaseInRun) -> None:
    """Scores that differ."""
    before, after = base.detail.values(), new.detail.values()
    pairs = {name: score_pair(before[name], after[name]) for name in after if name in before}
    changed = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    same = len(pairs) - len(changed)
    doc.part("Scores that changed", f"{len(changed)} changed, {same} equal")
    arrow = "->" if doc.ascii else "→"
    width = min(max([LABEL_WIDTH, *map(len, changed)]), WIDEST_NAME)
    for name, pair in changed.items():
        doc.pair(name, f"{pair[0]} {arrow} {pair[1]}", width=width)


def _side_part(doc: Doc, side: CaseInRun, title: str) -> None:
    """One run's answer and its claims that are not supported."""
    note = f"{side.state}; other words underlined" if side.changed else side.state
    _answer_part(doc, side.detail, f"{title}: {side.name}", note, side.changed)
    for claim in side.detail.claims:
        if claim.verdict in ("unsupported", "contradicted"):
            doc.line(
                f"{doc.sign(claim.verdict)} {SAYS[claim.verdict]}: {claim.note}",
                STYLES[claim.verdict],
            )


def pair_docs(
    blank: Blank,
    base: CaseInRun,
    new: CaseInRun,
    change: tuple[str, str],
    *,
    two: bool,
    notes: Sequence[CaseNote] = (),
    judged: Sequence[tuple[str, str, str]] = (),
) -> tuple[Doc, Doc | None]:
    """The page as one document, one run under the other, or as two side by side.

    Words in which the two answers differ are marked in both. ``judged``: what a judge said of them
    together: question asked, verdict, quote.
    """
    before, after = word_changes(base.detail.answer or "", new.detail.answer or "")
    base, new = replace(base, changed=before), replace(new, changed=after)
    left = blank()
    _head_part(left, base, new, *change)
    _pair_part(left, judged)
    _notes_part(left, notes)
    if two:
        right = blank()
        _ranks_part(right, base, new)
        level(left, right)
        for doc, side, title in ((left, base, "Base"), (right, new, "New")):
            _side_part(doc, side, title)
        level(left, right)
        for doc, side in ((left, base), (right, new)):
            _passages_part(doc, side.detail, full=False, title=f"Retrieved in {side.name}")
        level(left, right)
        _changes_part(left, base, new)
        _gold_part(right, new.detail)
        level(left, right)
        return left, right
    _side_part(left, base, "Base")
    _side_part(left, new, "New")
    _ranks_part(left, base, new)
    _changes_part(left, base, new)
    _passages_part(left, base.detail, full=False, title=f"Retrieved in base {base.name}")
    _passages_part(left, new.detail, full=False, title=f"Retrieved in new {new.name}")
    _gold_part(left, new.detail)
    return left, None
