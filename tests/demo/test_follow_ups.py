"""Follow-ups: what they take along from earlier questions, and what two searches make of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import requests

from demo.index import Index
from demo.retriever import LAST_TURNS, carried_terms

Post = Callable[..., requests.Response]


def rarity(term: str) -> float:
    """That of an unknown term is 4, so the least of a carried one is 1."""
    return 0.9 if term in {"the", "eggs"} else 4.0 if term == " " else 3.0


def test_terms_count_less_with_each_turn_of_age() -> None:
    earlier = ["What eats the owl?", "Which eggs does a hen lay?"]
    # age 1: which, does are a question's form, eggs is common, a stands in the question itself;
    # age 2: what is form, the is common
    weights = {"hen": 0.5, "lay": 0.5, "eats": 0.25, "owl": 0.25}
    assert carried_terms("and a cod?", earlier, rarity) == weights


def test_the_newest_mention_counts_and_old_turns_are_forgotten() -> None:
    earlier = ["owl", "hen", "cod", "owl"]
    assert len(earlier) == LAST_TURNS + 1
    weights = {"owl": 0.5, "cod": 0.25, "hen": 0.125}
    assert carried_terms("and now?", earlier, rarity) == weights
    assert "owl" not in carried_terms("and now?", ["owl", "hen", "cod", "eel"], rarity)
    assert carried_terms("and now?", [], rarity) == {}


def test_a_term_weighs_in_the_score_what_it_is_given(
    make_index: Callable[..., Index], zoo: dict[str, str]
) -> None:
    lexical = make_index(zoo).lexical
    whole, half = lexical.scores("owl eggs", {}), lexical.scores("owl eggs", {"owl": 0.5})
    owl, eggs = lexical.scores("owl", {}), lexical.scores("eggs", {})
    assert whole == pytest.approx(owl + eggs)
    assert half == pytest.approx(0.5 * owl + eggs)


def test_a_follow_up_is_answered_by_what_came_before(post: Post) -> None:
    follow_up = "And in which place?"
    alone = post({"question": follow_up}, "?debug=true").json()
    history = [
        {"role": "user", "content": "Which eggs does the cod lay in the sea?"},
        {"role": "assistant", "content": "Very many. [1]"},
    ]
    body = post({"question": follow_up, "history": history}, "?debug=true").json()
    assert alone["retrieved"][0]["doc_id"] == "birds/hen.md"
    assert "rewritten_query" not in alone
    assert "searches" not in alone
    # ln(1 + 3.5 / 0.5) = 2.08 for a term of no note (lay), a quarter of it 0.52; 0.98 for one of
    # one note (cod, sea), 0.47 for one of two (eggs, the)
    assert body["rewritten_query"] == "And in which place? cod lay sea"
    assert body["retrieved"][0]["doc_id"] == "fish/cod.md"
    first, second = body["searches"]
    assert first["query"] == follow_up
    assert second["query"] == body["rewritten_query"]
    assert [hit["doc_id"] for hit in first["retrieved"]][:1] == ["birds/hen.md"]
    assert 0 <= first["start_ms"] <= second["start_ms"] <= body["latency_ms"]["total"]


def test_history_that_gives_no_term_changes_no_byte(post: Post) -> None:
    question = {"question": "Which animal lays eggs in the morning?"}
    plain = post(question, "?debug=true").json() | {"latency_ms": {}}
    answered = [{"role": "assistant"}]
    additions: list[dict[str, Any]] = [{"history": []}, {"session": "s"}, {"history": answered}]
    for more in additions:
        assert post({**question, **more}, "?debug=true").json() | {"latency_ms": {}} == plain


def test_the_scores_are_the_means_of_both_searches(post: Post) -> None:
    history = [{"role": "user", "content": "mice at night"}]
    request = {"question": "eggs in the morning?", "history": history}
    body = post(request, "?debug=true").json()
    found = [search["retrieved"] for search in body["searches"]]
    finals = [{hit["doc_id"]: hit["score_final"] for hit in hits} for hits in found]
    assert len(body["retrieved"]) == 3
    for hit in body["retrieved"]:
        mean = sum(final.get(hit["doc_id"], 0.0) for final in finals) / 2
        assert hit["score_final"] == pytest.approx(mean, abs=1e-6)
