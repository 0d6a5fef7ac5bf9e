"""Follow-ups: what they take along from earlier questions, and what two searches make of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
import requests

from demo.answerer import Answerer
from demo.bot import Bot, BotServer
from demo.index import Index
from demo.retriever import Retriever
from demo.rewriting import LAST_TURNS, MOST_SESSIONS, Sessions, rewrite

Post = Callable[..., requests.Response]


def rarity(term: str) -> float:
    """That of an unknown term is 4, so the least of a carried one is 1."""
    return 0.9 if term in {"the", "eggs"} else 4.0 if term == " " else 3.0


def test_terms_count_less_with_each_turn_of_age() -> None:
    made = rewrite("and a cod?", ["What eats the owl?", "Which eggs does a hen lay?"], 0.5, rarity)
    # age 1: which, does are a question's form, eggs is common, a stands in the question itself;
    # age 2: what is form, the is common
    assert made.carried == {"hen": 0.5, "lay": 0.5, "eats": 0.25, "owl": 0.25}
    assert made.text == "and a cod? hen lay eats owl"


def test_the_newest_mention_counts_and_old_turns_are_forgotten() -> None:
    made = rewrite("and now?", ["owl", "hen", "cod", "owl"][: LAST_TURNS + 1], 0.5, rarity)
    assert made.carried == {"owl": 0.5, "cod": 0.25, "hen": 0.125}
    aged = rewrite("and now?", ["owl", "hen", "cod", "eel"], 0.5, rarity)
    assert "owl" not in aged.carried


def test_without_weight_or_history_the_question_stands_alone() -> None:
    for made in (rewrite("and it?", ["owl"], 0.0, rarity), rewrite("and it?", [], 0.5, rarity)):
        assert (made.text, made.carried) == ("and it?", {})


def test_sessions_remember_their_own_questions_and_forget_the_silent() -> None:
    sessions = Sessions()
    assert sessions.take("a", "1") == []
    assert sessions.take("b", "2") == []
    assert sessions.take("a", "3") == ["1"]
    for number in range(MOST_SESSIONS - 1):
        sessions.take(f"s{number}", "x")
    assert sessions.take("a", "4") == ["1", "3"]
    assert sessions.take("b", "5") == []


def test_a_term_weighs_in_the_score_what_it_is_given(
    make_index: Callable[..., Index], zoo: dict[str, str]
) -> None:
    lexical = make_index(zoo).lexical
    whole, half = lexical.scores("owl eggs"), lexical.scores("owl eggs", {"owl": 0.5})
    owl, eggs = lexical.scores("owl"), lexical.scores("eggs")
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
    assert "history_weight" not in body["answerer"]


def test_history_that_gives_no_term_changes_no_byte(post: Post) -> None:
    question = {"question": "Which animal lays eggs in the morning?"}
    plain, session = post(question, "?debug=true").json(), {**question, "session": "s"}
    for request in ({**question, "history": []}, session):
        body: dict[str, Any] = post(request, "?debug=true").json()
        del body["latency_ms"]
        assert body == {key: value for key, value in plain.items() if key != "latency_ms"}


def test_the_server_remembers_a_session(post: Post) -> None:
    post({"question": "zebra?", "session": "one"})
    follow_up = {"question": "eggs in the morning?"}
    assert post({**follow_up, "session": "two"}, "?debug=1").json().get("rewritten_query") is None
    body = post({**follow_up, "session": "one"}, "?debug=1").json()
    assert body["rewritten_query"] == "eggs in the morning? zebra"


def test_the_weight_decides_between_the_two_searches(
    make_index: Callable[..., Index], serve: Callable[[Bot], AbstractContextManager[BotServer]]
) -> None:
    notes = {f"{name}.md": f"# {name}\n\nThe {name} sleeps." for name in "abcdefghij"}
    notes |= {"owl.md": "# Owl\n\nAn owl lays eggs.", "hen.md": "# Hen\n\nA hen likes lunch."}
    index = make_index(notes)
    best: dict[float, tuple[str, Any]] = {}
    for weight in (0.0, 0.1, 1.0):
        retriever = Retriever(index)
        answerer = Answerer(index.lexical.rarity, vector_weight=0.0, threshold=0.0)
        bot = Bot(retriever, answerer, k=2, folder_mode="off", history_weight=weight)
        with serve(bot) as server:
            history = [{"role": "user", "content": "owl eggs lays"}]
            request = {"question": "And at lunch?", "history": history}
            url = f"{server.url}/api/v1/ask?debug=true"
            body = requests.post(url, json=request, timeout=60).json()
        best[weight] = body["retrieved"][0]["doc_id"], body["answerer"].get("history_weight")
    # three terms of the owl's note against one of the hen's, as soon as they count fully
    assert best == {0.0: ("hen.md", 0.0), 0.1: ("hen.md", 0.1), 1.0: ("owl.md", 1.0)}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("history", [{"role": "robot", "content": "x"}]),
        ("history", "x"),
        ("session", ""),
    ],
)
def test_history_that_is_none_is_refused(post: Post, field: str, value: Any) -> None:
    response = post({"question": "eggs", field: value})
    assert response.status_code == 400
    assert response.json()["error"]["field"].startswith(field)
