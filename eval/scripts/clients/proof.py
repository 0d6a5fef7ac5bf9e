"""Is a mapping right? Values of two real answers side by side, and checks that can fail; pure.

    proof = prove(mapped, answers, repeated, places)
    proof.failures      # sentences with their remedy; [] when the profile may be written

A ✓ stands only where a check held. A ``?`` is a doubt that one sentence explains; an extractive
bot, short answers, an empty index and a weak retriever are honest bots, so nothing fails for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from clients.bot import Heard
from clients.expressions import compile_path
from clients.field_names import name_rank
from clients.guess import another_answer, is_under, longer_list
from clients.place_check import NO_LABELS, PlaceVerdict
from clients.reply_form import bare, texts_within
from guardrails.blot import blot
from ragmetrics.matching import ends_cut
from ragmetrics.paths import examine_paths
from records.cases import TestCase
from records.results import RetrievedChunk, TestResult
from records.tool_calls import call_words
from terminal.tables import counted, harmless

SHOWN = 60
"""Characters of a value that are shown."""

RUN_CASES = 10
"""Answerable cases of a run that are looked at before the others are asked."""

FEW_WORDS = 3

T = TypeVar("T")

_ID = re.compile(r"(?=\S*\d)(?:[\w-]*[0-9a-fA-F]{8}[\w-]*|[\w-]{16,})")
_URL = re.compile(r"\w+://\S+")
_REPR = re.compile(r"<[\w.]+(?: object| at 0x).*>|[A-Z]\w+\(\w+=.*\)", re.DOTALL)


@dataclass(frozen=True)
class ProofRow:
    """One question about a mapping: the path, its value in two answers, and what a check found.

    ``mark``: ✓ a check held, ? a doubt, ✗ a failure, – nothing is mapped.
    """

    question: str
    path: str
    values: tuple[str, ...]
    mark: str
    says: str


@dataclass(frozen=True)
class Proof:
    """The answers to the five questions."""

    rows: tuple[ProofRow, ...] = ()

    @property
    def failures(self) -> list[str]:
        return [row.says for row in self.rows if row.mark == "✗"]

    def lines(self) -> list[str]:
        """For a person. Where one mapping is wrong none is called right."""
        lines = []
        for row in self.rows:
            mark = " " if self.failures and row.mark == "✓" else row.mark
            lines.append(f"{mark} {row.question}  {row.path}".rstrip())
            if any(row.values):
                width = max(len(value) for value in row.values)
                values = "  |  ".join(f"{value:{width}}" for value in row.values)
                lines.append(f"    {values}".rstrip())
            lines.append(f"    {row.says}")
        return lines


def prove(
    tables: Mapping[str, Mapping[str, str]],
    answers: Sequence[Heard],
    repeated: TestResult | None,
    places: PlaceVerdict,
    *,
    retrieves_only: bool = False,
    time_doubt: str = "",
    order: ProofRow | None = None,
    lag: str = "",
) -> Proof:
    """Check the values that a profile maps in answers to different questions.

    ``repeated``: the answer to the first question, asked again. ``time_doubt``: why the bot's own
    time was not taken, or not checked.
    """
    response, answers = tables["response"], _two_unlike_first(answers)
    answer_row = _answer_row(response, answers, retrieves_only)
    if lag and answer_row.mark != "✗":
        answer_row = replace(answer_row, mark="?", says=lag)
    return Proof(
        (
            answer_row,
            _passages_row(response, answers),
            *([order] if order is not None else []),
            _places_row(tables, answers, repeated, places),
            _cited_row(response, answers),
            _time_row(response, answers, time_doubt),
            *([_tools_row(response, answers)] if "tools" in response else []),
        )
    )


def prove_run(
    results: Sequence[TestResult],
    cases: Mapping[str, TestCase],
    known: Iterable[str],
    *,
    with_answers: bool = True,
) -> str:
    """Why a run is not worth going on with, after its first answers; "" when it is.

    ``cases``: those of the results; ``known``: the paths of all labels. Only what cannot be right
    stops a run: no answer at all, or a bot and labels that have no file in common.
    """
    counted_results = [result for result in results if not _is_other_error(result)]
    if with_answers and counted_results and all(map(_lacks_answer, counted_results)):
        return (
            f"none of the first {counted(len(counted_results), 'answer')} has a text: the profile "
            "does not map the bot's answer. Correct [response] answer in it, or make it again with "
            "connect_bot.py --force"
        )
    asked = [
        (
            [support.rel_path for support in cases[result.test_case_id].gold_supports],
            [chunk.rel_path or "" for chunk in result.chunks()],
        )
        for result in results
        if result.status == "ok"
    ]
    if examine_paths(asked).same_space:
        return ""
    verdict = examine_paths(asked, known)
    if not verdict.two_name_spaces:
        return ""
    return (
        f"{verdict.sentence()} Correct [chunk] rel_path in the profile, or label with this bot's "
        "own paths"
    )


def _is_other_error(result: TestResult) -> bool:
    return result.error is not None and result.error.kind != "no_answer"


def _lacks_answer(result: TestResult) -> bool:
    return not (result.answer or "").strip() and not result.abstained


def _two_unlike_first(answers: Sequence[Heard]) -> list[Heard]:
    """The first answer, then one that says something else: two values of each row are shown."""
    order = list(answers)
    for place, each in enumerate(order[1:], start=1):
        if each.result.answer != order[0].result.answer:
            return [order[0], each, *order[1:place], *order[place + 1 :]]
    return order


def _row(question: str, path: str | None, values: Sequence[Any], mark: str, says: str) -> ProofRow:
    shown = tuple(_shown(value) for value in values[:2])
    return ProofRow(question, path or "", shown, mark, says)


def _shown(value: Any) -> str:
    """A value on one line, without secrets, cut."""
    text = harmless(" ".join(blot(str(value))[0].split()))
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def _answer_row(
    response: Mapping[str, str], answers: Sequence[Heard], retrieves_only: bool
) -> ProofRow:
    path, texts = response.get("answer"), [each.result.answer or "" for each in answers]
    ask = "Is this the answer?"
    if retrieves_only:
        return _row(ask, path, (), "–", "The profile describes a bot that only retrieves.")
    if all(_lacks_answer(each.result) for each in answers):
        path = path or _empty_answer([each.payload for each in answers])
        where = f"{path} has no text in any answer" if path else "not found"
        says = f"The answer: {where}. Name its path with --set answer=PATH"
        if _passages_path(response):
            says += "; for a bot that only retrieves use --set kind=retrieval"
        return _row(ask, path, texts, "✗", f"{says}.")
    given = [each for each in answers if not _lacks_answer(each.result)]
    own = [each.result.answer or "" for each in given]
    if fault := _passage_fault(response, given) or _form_fault(given):
        return _row(ask, path, texts, "✗", fault)
    return _row(ask, path, texts, *_answer_doubt(response, given, own))


def _empty_answer(payloads: Sequence[Any]) -> str | None:
    """A key that is named as an answer and is null or empty in every reply."""
    keys = payloads[0] if payloads and all(isinstance(each, dict) for each in payloads) else ()
    empty = [key for key in keys if not any(each.get(key) for each in payloads)]
    ranks = {key: name_rank(key, "answer") for key in empty}
    best = max(ranks, key=lambda key: ranks[key], default="")
    return best if ranks.get(best) else None


def _passage_fault(response: Mapping[str, str], answers: Sequence[Heard]) -> str:
    """F2: the answer is a string of the passages, and another one can be the answer."""
    path, passages = response.get("answer", ""), _passages_path(response)
    if passages is None:
        return ""
    inside = is_under(path, passages)
    if not inside and not _is_a_passage(passages, answers):
        return ""
    payloads, questions = (
        [each.payload for each in answers],
        [each.question.text for each in answers],
    )
    lists = [compile_path(passages)(payload) for payload in payloads]
    other = another_answer(payloads, questions, path, lists)
    if not inside and other is None:
        return ""  # an extractive bot
    remedy = f"--set answer={other}" if other else "--set answer=PATH"
    return f"The answer's path leads to a passage. Use {remedy}."


def _passages_path(response: Mapping[str, str]) -> str | None:
    """The path of the passages, of several searches all of them; None without any."""
    searches = response.get("searches")
    return response.get("retrieved") or (f"{searches}[].retrieved[]" if searches else None)


def _is_a_passage(passages: str, answers: Sequence[Heard]) -> bool:
    """Whether every answer equals, word for word, a string of one of its passages."""
    get = compile_path(passages)
    within = [texts_within(get(each.payload)) for each in answers if each.result.retrieved]
    own = [bare(each.result.answer or "") for each in answers if each.result.retrieved]
    return bool(own) and all(text in texts for text, texts in zip(own, within, strict=True))


def _form_fault(answers: Sequence[Heard]) -> str:
    """F3: the answer is in all cases no answer by its form."""
    for kind, holds in (
        ("the question itself", lambda text, each: text == each.question.text.strip()),
        ("an id", lambda text, _: _ID.fullmatch(text)),
        ("a URL", lambda text, _: _URL.fullmatch(text)),
        ("JSON", lambda text, _: _is_json(text)),
        ("an object's repr", lambda text, _: _REPR.fullmatch(text)),
    ):
        if all(holds((each.result.answer or "").strip(), each) for each in answers):
            return f"The answer's path leads to {kind}. Name the right one with --set answer=PATH."
    return ""


def _is_json(text: str) -> bool:
    import json

    try:
        return text[:1] in ("{", "[") and isinstance(json.loads(text), (dict, list))
    except (ValueError, RecursionError):
        return False


def _answer_doubt(
    response: Mapping[str, str], answers: Sequence[Heard], texts: Sequence[str]
) -> tuple[str, str]:
    questions = {each.question.text for each in answers}
    if len(questions) < 2:
        return "?", "Only one answer was read, so nothing could be compared."
    if len(set(texts)) == 1:
        return "?", f"The bot gave the same answer to {len(questions)} different questions."
    if (passages := _passages_path(response)) and _is_a_passage(passages, answers):
        return "?", "Every answer is word for word a passage."
    if all(len(text.split()) < FEW_WORDS for text in texts):
        return "?", f"Every answer has fewer than {FEW_WORDS} words."
    if most := _items_beside(response.get("answer", ""), answers):
        return "?", f"The answer is the first of {most} texts of its list; the others are not read."
    return "✓", "The answers differ, and none is a passage or the question."


def _items_beside(path: str, answers: Sequence[Heard]) -> int:
    """How many items the list has, the first of which the path takes, that have such a text; 0
    where one alone has it."""
    most = 1
    plain = path if re.fullmatch(r"[\w.\[\]]+", path) else ""
    for match in re.finditer(r"\[0\]", plain):
        get, inner = compile_path(path[: match.start()] or "@"), path[match.end() :].lstrip(".")
        text_of = compile_path(inner or "@")
        for each in answers:
            items = get(each.payload)
            texts = map(text_of, items if isinstance(items, list) else ())
            most = max(most, sum(isinstance(text, str) and bool(text.strip()) for text in texts))
    return most if most > 1 else 0


def _passages_row(response: Mapping[str, str], answers: Sequence[Heard]) -> ProofRow:
    ask, path = "Are these the passages?", response.get("retrieved", response.get("searches"))
    if path is None:
        return _row(ask, None, (), "–", "No list of passages is mapped: retrieval is not measured.")
    lists = [each.result.chunks() for each in answers]
    values = [_several(chunks, _first_words) for chunks in lists]
    mark, says = _passages_doubt(answers, lists)
    payloads = [each.payload for each in answers] if "retrieved" in response else []
    if mark == "✓" and (other := longer_list(payloads, path)):
        mark, says = "?", f"{other} has these passages and more: if it is what was retrieved, "
        says += f"--set retrieved={other}."
    return _row(ask, path, values, mark, says)


def _several(items: Sequence[T], words: Callable[[Sequence[T]], str]) -> str:
    """How many items an answer has, and some of them in words."""
    return f"{len(items)}: {words(items)}" if items else "0"


def _first_words(chunks: Sequence[RetrievedChunk]) -> str:
    return chunks[0].text or chunks[0].rel_path or chunks[0].chunk_id


def _passages_doubt(
    answers: Sequence[Heard], lists: Sequence[Sequence[RetrievedChunk]]
) -> tuple[str, str]:
    if not any(lists):
        return "?", "None of the questions brought a passage."
    several = len({each.question.text for each in answers}) > 1
    if several and len({tuple(map(_identity, chunks)) for chunks in lists}) == 1:
        return "?", "The same passages came for all questions."
    texts = {chunk.text for chunks in lists for chunk in chunks if chunk.text}
    if not texts:
        return "?", "The passages have no text: metrics that read texts are not measured."
    ends = sum(map(ends_cut, texts))
    if ends > len(texts) / 2 or (len(texts) > 2 and len(set(map(len, texts))) == 1):
        return "?", "The passages' texts are cut: do not trust metrics that read whole passages."
    if not several:
        return "?", "Only one answer was read, so nothing could be compared."
    return "✓", "The questions brought different passages."


def _tools_row(response: Mapping[str, str], answers: Sequence[Heard]) -> ProofRow:
    ask, path = "Did it call these tools?", response["tools"]
    lists = [each.result.tools or [] for each in answers]
    values = [
        _several(own, lambda own: ", ".join(call_words(c.name, c.arguments, 60) for c in own))
        for own in lists
    ]
    calls = [call for each in lists for call in each]
    if not calls:
        return _row(ask, path, values, "?", "No tool was called for any of the questions.")
    if not any(call.result or call.error for call in calls):
        doubt = "The tools' results are not reported: answers based on them look unsupported."
        return _row(ask, path, values, "?", doubt)
    return _row(ask, path, values, "✓", "Each call has its name, and results were found.")


def _identity(chunk: RetrievedChunk) -> tuple[Any, ...]:
    return (chunk.rel_path, chunk.heading_path, chunk.text) if chunk.text else (chunk.chunk_id,)


def _places_row(
    tables: Mapping[str, Mapping[str, str]],
    answers: Sequence[Heard],
    repeated: TestResult | None,
    places: PlaceVerdict,
) -> ProofRow:
    ask, path = "Is this their place?", tables["chunk"].get("rel_path")
    if not tables["response"].keys() & {"retrieved", "searches"}:
        return _row(ask, None, (), "–", "No list of passages is mapped.")
    tops = [(*each.result.chunks()[:1], RetrievedChunk(""))[0] for each in answers]
    values = [" > ".join(filter(None, (top.rel_path, top.heading_path))) for top in tops]
    return _row(ask, path, values, *_places_doubt(path, answers, repeated, places))


def _places_doubt(
    path: str | None,
    answers: Sequence[Heard],
    repeated: TestResult | None,
    places: PlaceVerdict,
) -> tuple[str, str]:
    check, paths = places.places, places.paths
    sentence = f"{paths.sentence()[:1].upper()}{paths.sentence()[1:]}"
    seen = f"{check.paths} of {check.gold} gold files were retrieved"
    if paths.two_name_spaces:
        remedy = "Name the path that the labels use with --set chunk.rel_path=PATH."
        return "✗", f"{sentence} {remedy}"
    changed = _changed_ids(answers, repeated)
    if path is None and changed:
        return "?", "The bot names no file, and its passage ids change from call to call."
    if path is None:
        return "?", "The bot names no file: labels are matched by passage id alone."
    if changed:
        return "?", "Passage ids changed when a question was asked twice; label by file."
    if not paths.gold or not check.paths:
        return "?", sentence if paths.gold else NO_LABELS
    if check.headings or check.below:
        parts = f", {check.below} only in parts of it without the quote" if check.below else ""
        return "✓", f"{seen}, {check.headings} of them at the labelled place{parts}."
    if check.untold:
        return "?", f"{seen}; the texts are cut or missing, so no quote can be looked for."
    if any(chunk.heading_path for each in answers for chunk in each.result.chunks()):
        return "?", f"{seen}, none at its place."
    remedy = "the bot names no headings. Label quotes, or score with --match doc."
    return "?", f"{seen}, none at its place: {remedy}"


def _changed_ids(answers: Sequence[Heard], repeated: TestResult | None) -> bool:
    """Whether the first question brought other ids when it was asked again."""
    if repeated is None or not answers:
        return False
    ids = [{chunk.chunk_id for chunk in r.chunks()} for r in (answers[0].result, repeated)]
    return bool(ids[0] and ids[1]) and ids[0] != ids[1]


def _cited_row(response: Mapping[str, str], answers: Sequence[Heard]) -> ProofRow:
    ask, path = "Is this what it cites?", response.get("references")
    if path is None:
        says = "No list of citations is mapped: only [n] marks in the answer are read."
        return _row(ask, None, (), "–", says)
    cited = [each.result.references or [] for each in answers]
    values = [_several(own, lambda own: ", ".join(map(_name, own[:3]))) for own in cited]
    total = sum(map(len, cited))
    resolved = sum(
        _names_a_passage(reference, each.result.chunks())
        for each, own in zip(answers, cited, strict=True)
        for reference in own
    )
    if not total:
        return _row(ask, path, values, "?", "No answer cites anything.")
    if resolved < total:
        says = f"{total - resolved} of {counted(total, 'citation')} name none of its passages."
        return _row(ask, path, values, "?", says)
    whole = f"All {total:,} citations name" if total > 1 else "The 1 citation names"
    return _row(ask, path, values, "✓", f"{whole} a passage of the answer.")


def _name(reference: Any) -> str:
    if reference.rel_path or reference.index is None:
        return str(reference.rel_path or reference.chunk_id or reference.doc_id)
    return f"[{reference.index}]"


def _names_a_passage(reference: Any, chunks: Sequence[RetrievedChunk]) -> bool:
    for name in ("chunk_id", "rel_path", "doc_id"):
        if value := getattr(reference, name):
            return any(getattr(chunk, name) == value for chunk in chunks)
    return reference.index is not None and 0 < reference.index <= len(chunks)


def _time_row(response: Mapping[str, str], answers: Sequence[Heard], doubt: str) -> ProofRow:
    ask, path = "How long did it take?", response.get("latency_ms")
    times = [(each.result.latency_ms.get("total", 0.0), each.timing.total) for each in answers]
    values = [f"{own:,.1f} ms (call {call * 1000:,.1f} ms)" for own, call in times if call]
    if doubt:
        return _row(ask, path, values, "?", doubt)
    if path is None:
        return _row(ask, None, values, "✓", "The whole call, measured here.")
    return _row(ask, path, values, "✓", "The bot's time fits the measured one in one unit only.")
