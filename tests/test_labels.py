"""The label files of the demo set: complete, joined without a problem, and true to the vault.

Like the eval set, the texts were labelled on the releases that it names; on another Python a
difference is a visible skip.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

import storage
from demo.chunker import chunk_notes
from demo.vault import python_reference
from documents.sections import HEADING_SEPARATOR
from ragmetrics.facts import canonical, holds
from ragmetrics.gold import gold_of
from ragmetrics.groundedness import missing_claims, stated_claims
from ragmetrics.pipeline import OUTCOMES, PERCENTILES, STAGES
from ragmetrics.windows import prepare
from storage import TestCase

ROOT = Path(__file__).parent.parent
LABELS = ROOT / "eval" / "labels"
CASES = storage.read_cases(ROOT / "eval_set.jsonl", LABELS)
BARE = {case.id: case for case in storage.read_cases(ROOT / "eval_set.jsonl")}
LABELLED_ON = ("3.11.7", "3.12.1", "3.13.0")
RUNNING = ".".join(str(part) for part in sys.version_info[:3])
WITH_FACTS = [case for case in CASES if case.gold_facts]
WITH_CLAIMS = [case for case in CASES if case.expected_claims]


@pytest.fixture(scope="module")
def sections() -> dict[tuple[str, str], str]:
    """(rel_path, heading_path) to the section's own text."""
    texts: dict[tuple[str, str], list[str]] = {}
    for chunk in chunk_notes(python_reference(), max_chars=10**9):
        texts.setdefault((chunk.rel_path, chunk.heading_path), []).append(chunk.text)
    return {place: "\n".join(parts) for place, parts in texts.items()}


def supports(case: TestCase, sections: dict[tuple[str, str], str]) -> list[str]:
    """The text under each gold support of a case."""
    return [
        "\n".join(
            text
            for (path, heading), text in sections.items()
            if path == gold.rel_path and _is_under(heading, gold.heading_path)
        )
        for gold in case.gold_supports
    ]


def _is_under(heading: str, gold: str) -> bool:
    return not gold or heading == gold or heading.startswith(gold + HEADING_SEPARATOR)


def judge(problems: list[str]) -> None:
    if problems and RUNNING not in LABELLED_ON:
        pytest.skip(f"labelled on Python {', '.join(LABELLED_ON)}; on {RUNNING}: {problems[0]}")
    assert problems == []


def raw(name: str) -> Iterator[dict[str, Any]]:
    for line in (LABELS / f"{name}.jsonl").read_text("utf-8").splitlines():
        yield json.loads(line)


def test_there_are_enough_labels_of_every_kind() -> None:
    answerable = [case for case in CASES if case.answerable]
    least = {"gold_facts": 30, "relevant_docs": 20}
    least |= {"expected_claims": 25, "forbidden_claims": 25, "expected_citations": 25}
    for kind, most in least.items():
        assert sum(bool(getattr(case, kind)) for case in answerable) >= most, kind
    aliases = [fact for case in WITH_FACTS for fact in case.gold_facts if fact.aliases]
    assert len(aliases) >= 30
    assert all(case.query_type in ("faq", "comparison", "research") for case in CASES)
    assert min(Counter(case.query_type for case in CASES).values()) >= 5


def test_no_label_repeats_what_the_eval_set_says() -> None:
    """A label wins over the set's own field, so the two could drift apart."""
    for row in raw("cases"):
        assert BARE[row["case_id"]].query_type is None


@each_row("case", CASES)
def test_the_pipeline_labels_agree_with_the_case(case: TestCase) -> None:
    assert case.expected_outcome in OUTCOMES
    assert (case.expected_outcome == "success") == bool(case.answerable)
    assert case.min_citations is not None
    assert (case.min_citations > 0) == bool(case.answerable)
    assert set(case.required_flags).isdisjoint(case.forbidden_flags)
    assert isinstance(case.latency_budget_ms, dict)
    assert set(case.latency_budget_ms) <= {*PERCENTILES, *STAGES}
    assert min(case.latency_budget_ms.values()) > 0


@each_row("case", CASES)
def test_labels_leave_the_way_of_matching_alone(case: TestCase) -> None:
    before, after = gold_of(BARE[case.id], "auto"), gold_of(case, "auto")
    assert (before and before.mode) == (after and after.mode)
    docs = {gold.rel_path for gold in case.gold_supports}
    assert set(case.relevant_docs) == set(case.relevance_grades) == docs
    assert set(case.expected_citations) <= docs


@each_row("case", WITH_FACTS)
def test_every_gold_fact_stands_under_a_gold_support(
    case: TestCase, sections: dict[tuple[str, str], str]
) -> None:
    texts = [(text, canonical(text)) for text in supports(case, sections)]
    judge(
        [
            f"not in the gold supports: {fact.fact}"
            for fact in case.gold_facts
            if not any(holds(text, words, fact.fact, fact.aliases) for text, words in texts)
        ]
    )


@each_row("case", WITH_FACTS)
def test_every_alias_is_a_wording_of_the_vault(
    case: TestCase, sections: dict[tuple[str, str], str]
) -> None:
    texts = [(text, canonical(text)) for text in supports(case, sections)]
    aliases = [alias for fact in case.gold_facts for alias in fact.aliases]
    judge([a for a in aliases if not any(holds(text, words, a) for text, words in texts)])


@each_row("case", WITH_CLAIMS)
def test_the_truth_states_no_forbidden_claim(
    case: TestCase, sections: dict[tuple[str, str], str]
) -> None:
    """Words are compared, not their order: a forbidden claim must not be the truth rearranged."""
    said = [case.reference_answer or "", " ".join(case.expected_claims), *supports(case, sections)]
    judge([claim for text in said for claim in stated_claims(prepare(text), case.forbidden_claims)])


@each_row("case", WITH_CLAIMS)
def test_an_answer_of_all_gold_texts_states_every_expected_claim(
    case: TestCase, sections: dict[tuple[str, str], str]
) -> None:
    everything = "\n\n".join([case.reference_answer or "", *supports(case, sections)])
    judge(missing_claims(prepare(everything), case.expected_claims))


def test_lines_are_plain() -> None:
    for path in LABELS.glob("*_labels.jsonl"):
        assert path.read_bytes().endswith(b"}\n"), path
        assert not re.search(r"[\x00-\x08\x0b-\x1f]", path.read_text("utf-8")), path
