"""Bots with one oddity each, over a handbook of eight files; each is a view for ``BotServer``.

A plain question has three words of its file in it; the search counts words, so that the right file
comes first. ``ODD`` names them; ``honest`` has no oddity.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.bots.serving import Answer, View

PAGES = {
    "garden/roses.md": ("Roses > Pruning", "Roses are pruned in March when the forsythia blooms."),
    "garden/lawn.md": ("Lawn > Mowing", "A lawn is mown every week from April until October."),
    "garden/compost.md": ("Compost > Turning", "Compost is turned twice a year with a long fork."),
    "house/boiler.md": ("Boiler > Service", "The boiler is serviced each autumn by the plumber."),
    "house/gutter.md": ("Gutter > Cleaning", "Gutters are cleaned in November after leaves fall."),
    "house/chimney.md": ("Chimney > Sweeping", "The chimney sweep comes each spring, never later."),
    "car/tyres.md": ("Tyres > Winter", "Winter tyres are fitted in October, before first frost."),
    "car/oil.md": ("Oil > Change", "Engine oil is changed every fifteen thousand kilometres."),
}
ANSWERS = {
    "garden/roses.md": "You should prune them in March.",
    "garden/lawn.md": "Mow it weekly in the warm months.",
    "garden/compost.md": "Twice a year will do nicely.",
    "house/boiler.md": "Have it looked after each autumn.",
    "house/gutter.md": "November is the right month for that.",
    "house/chimney.md": "The sweep visits every spring.",
    "car/tyres.md": "Change over before October is out.",
    "car/oil.md": "After fifteen thousand kilometres of driving.",
}
QUESTIONS = {
    "garden/roses.md": "When are roses pruned?",
    "garden/lawn.md": "How often is the lawn mown?",
    "garden/compost.md": "When is compost turned?",
    "house/boiler.md": "Who has the boiler serviced?",
    "house/gutter.md": "When are gutters cleaned?",
    "house/chimney.md": "When does the chimney sweep come?",
    "car/tyres.md": "When are winter tyres fitted?",
    "car/oil.md": "When is engine oil changed?",
}
CASES = [
    {
        "id": path.partition("/")[2].removesuffix(".md"),
        "question": question,
        "answerable": True,
        "gold_supports": [{"rel_path": path, "heading_path": PAGES[path][0]}],
    }
    for path, question in QUESTIONS.items()
] + [{"id": "mars", "question": "Who walked on Mars?", "answerable": False}]

MARKS = {
    "answer": "Is this the answer?",
    "passages": "Are these the passages?",
    "place": "Is this their place?",
    "cited": "Is this what it cites?",
    "time": "How long did it take?",
}
"""The questions of the proof."""


def ranked(question: str) -> list[str]:
    """The three files that share most words with a question."""
    words = set(question.lower().strip("?").split())

    def shared(path: str) -> int:
        return len(words & set(PAGES[path][1].lower().strip(".").split()))

    return sorted(PAGES, key=lambda path: -shared(path))[:3]


def passages(question: str) -> list[dict[str, Any]]:
    return [
        {"id": path, "file_path": path, "section": PAGES[path][0], "text": PAGES[path][1]}
        for path in ranked(question)
    ]


def reply(question: str) -> dict[str, Any]:
    return {"answer": ANSWERS[ranked(question)[0]], "sources": passages(question)}


def _with(change: Callable[[dict[str, Any]], Any]) -> Callable[[str], Any]:
    return lambda question: change(reply(question))


def _each(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[str], Any]:
    """The honest reply with every passage changed."""
    return lambda question: {
        "answer": ANSWERS[ranked(question)[0]],
        "sources": [change(item) for item in passages(question)],
    }


_calls = itertools.count()


_before = ["When is compost turned?"]


def _lagging(question: str) -> dict[str, Any]:
    """The reply to the question before, as of a cache with a wrong key."""
    before, _before[0] = _before[0], question
    return reply(before)


def _slow_seconds(question: str) -> dict[str, Any]:
    """Its latency is 0.06 s, written without a unit."""
    time.sleep(0.06)
    return reply(question) | {"latency": 0.06}


def _haystack(question: str) -> dict[str, Any]:
    """The answer is called data, deep inside; the passages are there twice."""
    items = [{"content": item["text"], "meta": item} for item in passages(question)]
    generated = {"data": ANSWERS[ranked(question)[0]], "query": question, "documents": items}
    return {"result": {"retriever": {"documents": items}, "builder": {"answers": [generated]}}}


def _no_answer_stream(question: str) -> Iterator[str]:
    """Events of a state, and none with any text of an answer."""
    yield f"data: {json.dumps({'type': 'sources', 'documents': passages(question)})}\n\n"
    for number in range(4):
        yield f"data: {json.dumps({'type': 'step', 'step': number})}\n\n"
    yield f"data: {json.dumps({'type': 'done'})}\n\n"


ODD: dict[str, Callable[[str], Any]] = {
    "honest": reply,
    "no_answer": _with(lambda it: {"answer": None, "sources": it["sources"]}),
    "passage_as_answer": _haystack,
    "other_passages": lambda question: {
        "answer": ANSWERS[ranked(question)[0]],
        "sources": passages("When are roses pruned?"),
    },
    "foreign_paths": _each(
        lambda it: it | {"file_path": f"node-{sum(map(ord, it['id']))}.bin", "section": ""}
    ),
    "lagging": _lagging,
    "constant": _with(lambda it: {**it, "answer": "Please look into the handbook of the house."}),
    "cut_texts": _each(lambda it: it | {"text": f"{it['text'][:20]}…"}),
    "new_ids": _each(lambda it: it | {"id": f"chunk-{next(_calls)}"}),
    "seconds": _slow_seconds,
    "parts_of_time": _with(lambda it: {**it, "timings": {"retrieval_ms": 1_000_000}}),
    "cites_all": _with(lambda it: {**it, "citations": it["sources"]}),
    "separators": _each(lambda it: it | {"section": it["section"].replace(" > ", " / ")}),
    "stream": _no_answer_stream,
    "retriever": _with(lambda it: {"documents": it["sources"]}),
}


def view(name: str) -> View:
    def answer(body: Any, headers: Mapping[str, str]) -> Answer:
        if not isinstance(body, dict) or not isinstance(body.get("question"), str):
            return Answer({"error": "the field 'question' is required"}, 400)
        made = ODD[name](body["question"])
        kind = {"Content-Type": "text/event-stream"} if isinstance(made, Iterator) else {}
        return Answer(made, 200, kind)

    return answer
