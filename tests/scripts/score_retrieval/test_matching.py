"""What a retrieved chunk is matched by: ids, documents, headings, texts, groups of supports."""

from __future__ import annotations

from typing import Any

from records.labels import read_cases
from records.runs import EVAL_SET
from scorers.retrieval import RetrievalScorer
from storage import FolderSelection, Reference, RetrievedChunk, TestResult

Chunks = list[RetrievedChunk | str]


def test_each_mode_matches_what_it_says(evaluated: Any, chunk: Any, gold: Any) -> None:
    support = gold("a.md > A", snippets=["the lease ends at noon"])
    case = {
        "id": "q",
        "gold_supports": support,
        "relevant_chunks": ["id of c.md > C"],
        "relevance_grades": {"d.md": 2, "e.md": 0},
    }
    held = chunk("x.md > X", text="It is said that THE lease\nends at noon, always.")
    results: Chunks = [
        chunk("e.md > E"),
        chunk("d.md > D"),
        chunk("c.md > C"),
        chunk("a.md > A"),
        held,
    ]
    run = evaluated([case], [TestResult("q", retrieved=results)])
    ranks = {"chunk": 3, "anchor": 4, "doc": 2, "text": 5, "auto": 3}
    for mode, rank in ranks.items():
        found = run.section("--match", mode)
        assert found["mean"]["mrr"] == round(1 / rank, 6), mode
        assert found["options"]["match"] == mode
    assert run.section()["by"]["match"] == {"chunk": run.section()["by"]["match"]["chunk"]}


def test_documents_of_another_unicode_form_are_the_same(evaluated: Any) -> None:
    # é as one character (NFC), and as e with an accent (NFD), as macOS spells paths.
    grades = {"cafe\u0301.md": 2, "b.md": 1}
    case = {"id": "q", "relevant_docs": ["caf\u00e9.md"], "relevance_grades": grades}
    listed: Chunks = [
        RetrievedChunk("1", "b.md"),
        RetrievedChunk("2", None, "caf\u00e9.md"),
        RetrievedChunk("3", "cafe\u0301.md"),
    ]
    run = evaluated([case], [TestResult("q", retrieved=listed)])
    found = run.section()["mean"]
    # The explicit grade 2 counts: (1 + 2 / log2 3) / (2 + 1 / log2 3) = 2.261860 / 2.630930.
    assert (found["recall@3"], found["ndcg@3"]) == (1.0, 0.859719)
    assert run.rows()["q"]["evidence"] == {"match": "doc", "found": [2, 1], "hits": [1, 2, 3]}


def test_rank_decides_not_the_place_in_the_list(evaluated: Any) -> None:
    case = {"id": "q", "relevant_chunks": ["b"]}
    listed: Chunks = [RetrievedChunk("a", rank=2), RetrievedChunk("b", rank=1)]
    run = evaluated([case], [TestResult("q", retrieved=listed)])
    assert run.section()["mean"]["mrr"] == 1.0


def test_groups_count_by_their_files_where_documents_are_matched(
    evaluated: Any, chunk: Any, gold: Any
) -> None:
    supports = gold("a.md > A", "a.md > B", "b.md > C", "c.md > D")
    groups = [[0, 1, 2], [3]]
    files = {"a.md": 2, "b.md": 2, "c.md": 1}
    case = {"gold_supports": supports, "required_support_groups": groups}
    known = case | {"id": "known", "relevance_grades": files}
    # Documents under other names than the files: the groups cannot be told apart.
    other = case | {"id": "other", "relevant_docs": ["one", "two"]}
    results = [
        TestResult("known", retrieved=[chunk("a.md > X"), chunk("x.md > X"), chunk("b.md > Y")]),
        TestResult("other", retrieved=[RetrievedChunk("1", "one"), RetrievedChunk("2", "three")]),
    ]
    run = evaluated([known, other], results)
    run.section("--match", "doc")
    scores = {name: row["scores"] for name, row in run.rows().items()}
    # The files of the first group are a.md and b.md (once each): 1 of 2, then both.
    assert [scores["known"][f"evidence_recall@{k}"] for k in (1, 3)] == [0.5, 1.0]
    assert [scores["known"][f"recall_all@{k}"] for k in (1, 3)] == [0.0, 1.0]
    assert scores["known"]["recall@3"] == 2 / 3
    assert scores["other"]["evidence_recall@3"] == scores["other"]["recall@3"] == 0.5


def test_exactly_the_sufficient_evidence_is_whole_on_the_set_of_the_toolkit() -> None:
    """One group first, nothing else: the smallest, then the largest of each case."""
    scorer = RetrievalScorer()
    column = [metric.name for metric in scorer.metrics].index("evidence_recall@5")
    for size in (min, max):
        scored = []
        for case in read_cases(EVAL_SET):
            groups = case.required_support_groups or [list(range(len(case.gold_supports)))]
            group = size([group for group in groups if len(group) <= 5], key=len, default=[])
            places = [case.gold_supports[index] for index in group]
            listed: Chunks = [
                RetrievedChunk(
                    str(n), None, gold.rel_path, gold.heading_path, text=" ".join(gold.snippets)
                )
                for n, gold in enumerate(places)
            ]
            row, _ = scorer.score(case, TestResult(case.id, retrieved=listed))
            if row.values[column] is not None and group:
                scored.append(row.values[column])
        assert set(scored) == {1.0}
        assert len(scored) == 75 + 51  # all questions and turns that can be answered


def test_scope_attribution_snippets_and_recency(evaluated: Any, chunk: Any, gold: Any) -> None:
    supports = [
        *gold("old/a.md > A", snippets=["ten days"], date="2020-01-01"),
        *gold("new/b.md > B", snippets=["twelve days"], date="2024-01-01"),
    ]
    case = {"id": "q", "gold_supports": supports, "recency_conflict_rule": "cite_newer"}
    old = chunk("old/a.md > A", text="You get ten days.", rank=1)
    new = chunk("new/b.md > B", text="You now get twelve days.", rank=2)
    result = TestResult(
        "q",
        answer="Twelve days [1].",
        references=[Reference(1, chunk_id=new.chunk_id)],
        retrieved=[old, new],
        folder_selection=FolderSelection(["other"], "guessed"),
    )
    found = evaluated([case], [result]).section()
    assert found["mean"]["scope_miss"] == 1.0
    assert found["mean"]["attribution_hit"] == 1.0
    assert found["mean"]["snippet_recall@1"] == 0.5
    assert found["mean"]["snippet_recall@3"] == 1.0
    assert found["mean"]["recency_rule_ok"] == 1.0
