"""What a retrieved chunk is matched by: ids, documents, headings, texts, groups of supports."""

from __future__ import annotations

from typing import Any

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


def test_retrieved_may_be_plain_ids(evaluated: Any) -> None:
    case = {"id": "q", "chunk_relevance_grades": {"c1": 1, "c9": 3}}
    run = evaluated([case], [TestResult("q", retrieved=["c0", "c1"])])
    assert run.section()["mean"]["recall@3"] == 0.5


def test_rank_decides_not_the_place_in_the_list(evaluated: Any) -> None:
    case = {"id": "q", "relevant_chunks": ["b"]}
    listed: Chunks = [RetrievedChunk("a", rank=2), RetrievedChunk("b", rank=1)]
    run = evaluated([case], [TestResult("q", retrieved=listed)])
    assert run.section()["mean"]["mrr"] == 1.0


def test_multi_hop_needs_one_whole_group(evaluated: Any, chunk: Any, gold: Any) -> None:
    supports = gold("a.md > A", "b.md > B", "c.md > C")
    case = {"id": "q", "gold_supports": supports, "required_support_groups": [[0, 1], [2]]}
    retrieved: Chunks = [chunk("a.md > A"), chunk("x.md > X"), chunk("b.md > B")]
    found = evaluated([case], [TestResult("q", retrieved=retrieved)]).section()
    assert [found["mean"][f"recall_all@{k}"] for k in (1, 3)] == [0.0, 1.0]
    assert found["mean"]["recall@3"] == round(2 / 3, 6)


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
