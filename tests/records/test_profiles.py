"""Whether a run's profile maps passages, and who reads the empty lists of one that maps none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest
from tests.rows import each_row

from labeller.fetching import FetchError, run_chunks
from records import profiles
from records.profiles import digest_without_turns, maps_passages, read_maps_passages
from records.results import RunConfig, TestResult
from records.run import Run
from views.case import case_of
from views.case_files import read_case

PROFILE = """\
[request]
path = "/ask"
[request.body]
q = "{question}"
[response]
answer = "text"
error = "fault"
"""

RAW = {
    "request": {"path": "/ask", "body": {"q": "{question}"}},
    "response": {"answer": "text", "error": "fault"},
}

OLD = {"test_case_id": "a", "question": "?", "answer": "Yes.", "retrieved": []}


def old_run(folder: Path, api: dict[str, Any]) -> Path:
    run = folder / "run"
    run.mkdir()
    (run / "results.jsonl").write_bytes(orjson.dumps(OLD) + b"\n")
    (run / "config.json").write_bytes(orjson.dumps({"schema": 1, "api": {"source": "http"} | api}))
    return run


@each_row(
    ("mapped", "known"),
    [
        (["answer"], False),
        (["answer", "retrieved"], True),
        (["answer", "searches"], True),
        (None, True),  # no profile of that name, so no one can say
    ],
)
def test_a_run_says_what_its_profile_maps(mapped: list[str] | None, known: bool) -> None:
    api: dict[str, Any] = {"source": "http", "profile": "gone", "mapped": mapped}
    assert maps_passages(RunConfig(api=api)) is known


def test_an_older_run_is_known_by_its_profile(tmp_path: Path, monkeypatch: Any) -> None:
    """The file says it, as long as it is the one that the run was made with."""
    monkeypatch.setattr(profiles, "PROFILES", tmp_path)
    (tmp_path / "mine.toml").write_text(PROFILE)
    same = {"source": "http", "profile": "mine", "profile_sha256": digest_without_turns(RAW)}
    assert not maps_passages(RunConfig(api=same))
    assert maps_passages(RunConfig(api=same | {"profile_sha256": "0" * 64}))
    (tmp_path / "mine.toml").write_text(PROFILE + 'retrieved = "hits"\n')
    assert maps_passages(RunConfig(api=same))


def test_a_damaged_configuration_says_nothing(tmp_path: Path) -> None:
    run = old_run(tmp_path, {"mapped": ["answer"]})
    assert not read_maps_passages(run)
    for text in ("{", '{"schema": 1, "api": {"mapped": 3}}', '{"schema": 1, "api": []}'):
        (run / "config.json").write_text(text)
        assert read_maps_passages(run)
    (run / "config.json").unlink()
    assert read_maps_passages(run)


@each_row("mapped", [["answer"], ["answer", "retrieved"]])
def test_all_readers_agree_on_the_empty_lists_of_an_old_run(
    tmp_path: Path, mapped: list[str]
) -> None:
    """Mapped and empty: nothing was found. Not mapped: no one knows."""
    run = old_run(tmp_path, {"mapped": mapped})
    known = "retrieved" in mapped
    why = "" if known else "passages are not mapped"
    (answer,) = Run(run).answers_of({"a"})
    assert answer.retrieved == ([] if known else None)
    assert case_of(answer).passages_unknown == why
    case = read_case(Run(run, tmp_path / "no set", tolerant=True), 0, ("a", 0))
    assert (case.passages, case.passages_unknown) == ((), why)
    source = run_chunks(Run(run))
    if known:
        assert source("a", "?", None) == []
    else:
        with pytest.raises(FetchError, match="passages are not mapped: there is nothing to label"):
            source("a", "?", None)


def test_an_answer_that_lacks_its_list_says_what_is_missing() -> None:
    lacking = {"retrieved": None, "absent": {"retrieved": "no list at hits"}}
    result = msgspec.convert(OLD | lacking, TestResult)
    assert case_of(result).passages_unknown == "no list at hits"
    result.status = "error"
    assert case_of(result).passages_unknown == ""
