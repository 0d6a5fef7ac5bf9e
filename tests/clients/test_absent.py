"""Null, empty and absent lists of passages, and answers without a text: what a profile makes of
each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from clients.bot import Question, Timing, read_answer
from clients.http import CallError
from clients.profile import load_profile
from clients.run_counts import RunTally
from records.errors import StorageError
from records.results import TestResult

ASKS = '[request]\npath = "/ask"\nbody = { q = "{question}" }\n[response]\n'

FULL = ASKS + 'answer = "text"\nretrieved = "hits"\nabstained = "gave_up"\n'


def read(folder: Path, profile: str, payload: Any, **more: Any) -> TestResult:
    path = folder / "bot.toml"
    path.write_text(profile)
    answer = load_profile(str(path), folder).answer
    return read_answer(payload, answer, Question("a", "?"), Timing(0.1), **more)


@each_row(
    ("profile", "payload", "retrieved", "absent"),
    [
        (FULL, {"text": "Yes.", "hits": []}, [], False),
        (FULL, {"text": "Yes.", "hits": None}, None, True),
        (FULL, {"text": "Yes."}, None, True),
        ('absent = "empty"\n' + FULL, {"text": "Yes."}, [], False),
        ('required = ["answer"]\n' + FULL, {"text": "Yes."}, [], False),  # of before
        (FULL, {"text": "Yes.", "gave_up": True}, [], False),  # abstains by its flag
        (FULL, {"text": "I don't know."}, [], False),  # and by its words
        (ASKS + 'answer = "text"\n', {"text": "Yes.", "hits": []}, None, False),  # not mapped
    ],
)
def test_null_and_empty_are_two_things(
    tmp_path: Path, profile: str, payload: Any, retrieved: Any, absent: bool
) -> None:
    result = read(tmp_path, profile, payload)
    assert (result.status, result.retrieved) == ("ok", retrieved)
    assert (result.absent or {}) == ({"retrieved": "no list at hits"} if absent else {})


@each_row(
    ("payload", "kind", "message"),
    [
        ({"text": None, "hits": []}, "no_answer", "no text at text"),
        ({"text": " \n", "hits": []}, "no_answer", "no text at text"),
        ({"hits": [], "detail": "no such index"}, "bot_error", "no such index"),
        ({"text": "", "error": {"message": "busy"}}, "bot_error", "busy"),
    ],
)
def test_a_reply_without_a_text_is_none(
    tmp_path: Path, payload: Any, kind: str, message: str
) -> None:
    with pytest.raises(CallError) as failed:
        read(tmp_path, FULL, payload)
    assert (failed.value.kind, failed.value.message) == (kind, message)
    assert not failed.value.retryable
    assert read(tmp_path, FULL, payload | {"gave_up": True}).answer in (None, "", " \n")
    assert read(tmp_path, FULL, {"hits": []}, retrieval_only=True).retrieved == []


def test_a_bot_that_only_retrieves_says_so(tmp_path: Path) -> None:
    bare = ASKS + 'retrieved = "hits"\n'
    with pytest.raises(StorageError, match=r"response\.answer: is missing; map it, or write kind"):
        read(tmp_path, bare, {"hits": []})
    result = read(tmp_path, 'kind = "retrieval"\n' + bare, {"hits": ["c1"]})
    assert (result.answer, [chunk.chunk_id for chunk in result.chunks()]) == (None, ["c1"])


def test_the_run_says_once_how_many_lack_their_passages() -> None:
    absent = {"retrieved": "no list at hits"}
    results = [TestResult("a", answer="x", absent=absent), TestResult("b", answer="y")]
    said = RunTally(results).absent_words()
    assert said.startswith("passages absent in 1 of 2 answers, where metrics")
