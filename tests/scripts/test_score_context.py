"""score_context.py as a user runs it: one pass for document frequencies, one for the scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from records import targets
from score_context import main
from storage import ErrorInfo, RetrievedChunk, StorageError, TestResult

CATS = "cats sleep all day long in the sun and purr" + " very softly indeed" * 20
DOGS = "dogs bark at strangers when night falls over town" + " rather loudly though" * 20


def result(name: str, *texts: str) -> TestResult:
    chunks: list[RetrievedChunk | str] = [
        RetrievedChunk(f"{name}-{place}", rel_path=f"[red]{place}.md", text=text, rank=place)
        for place, text in enumerate(texts, 1)
    ]
    return TestResult(name, answer="Yes.", retrieved=chunks)


CASES = [
    {"id": "same", "query_type": "research"},
    {"id": "other", "query_type": "faq"},
    {"id": "none"},
    {"id": "broken"},
]
RESULTS = [
    result("same", CATS, CATS),
    result("other", CATS, DOGS),
    result("none"),
    TestResult("broken", status="error", error=ErrorInfo("timeout")),
]
FACTS = [{"case_id": "other", "gold_facts": [{"fact": "dogs bark"}, {"fact": "birds sing"}]}]


def test_numbers_states_and_evidence(finished: Any) -> None:
    finished.write(CASES, RESULTS, context_labels=FACTS)
    found = finished.section(main)
    # same: overlap 1; other: no shared 3-gram
    assert found["mean"]["redundancy_ngram"] == 0.5
    assert found["mean"]["redundant_chunks_ngram"] == 0.25  # the second of two, and none of two
    assert found["mean"]["fact_coverage"] == 0.5
    assert found["mean"]["fact_dispersion"] == 1.0
    assert found["mean"]["diversity_ok"] == 0.5  # research wants at most 0.25
    counts = [found[name]["redundancy_ngram"] for name in ("n", "not_applicable", "failed")]
    assert counts == [2, 1, 1]
    rows = finished.rows("context")
    assert rows["none"]["reasons"] == {"*": "no contexts"}
    assert rows["same"]["evidence"]["most_alike"]["chunks"] == ["same-1", "same-2"]
    held = [fact["chunks"] for fact in rows["other"]["evidence"]["facts"]]
    assert held == [["other-2"], []]
    first = finished.section(main, "--set", "top=1")
    assert (first["mean"]["redundancy_ngram"], first["options"]["top"]) == (0.0, 1)


def test_the_tables_and_the_worst_case(finished: Any) -> None:
    finished.write(CASES, RESULTS, context_labels=FACTS)
    done = finished.score(main, "--by", "query_type", "--worst", "2")
    assert done.exit_code == 0, done.output
    shown = done.stdout
    assert "< 0.2" in shown
    assert "research" in shown
    assert "most alike: chunks passage 1 ([red]1.md" in shown
    assert "overlap 1" in shown
    by_fact = finished.score(main, "--worst", "2", "--worst-by", "fact_coverage").stdout
    assert "dogs bark: passage 2 (" in by_fact
    assert "    birds sing\n" in by_fact


def test_neither_order_of_work_nor_repetition_changes_a_byte(
    finished: Any, same_bytes: Callable[..., None]
) -> None:
    finished.write(CASES, RESULTS, context_labels=FACTS)
    same_bytes(finished, main, "context")


def test_bands_of_the_targets_file(tmp_path: Any) -> None:
    path = tmp_path / "targets.toml"
    path.write_text('[diversity]\nfaq = "<= 0.6"\nwide = ">= 0.2"\n')
    assert targets.read_bands("diversity", path) == {"faq": (0.0, 0.6), "wide": (0.2, 1.0)}
    assert targets.read_bands("other", path) == {}
    path.write_text('[diversity]\nfaq = "< 0.6"\n')
    with pytest.raises(StorageError, match=r'diversity\.faq: "< 0.6" excludes its end'):
        targets.read_bands("diversity", path)
    assert set(targets.read_bands("diversity")) == {"faq", "comparison", "research"}
