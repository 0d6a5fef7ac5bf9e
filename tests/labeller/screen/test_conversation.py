"""Turns: what was said before the question, folded and whole; searches behind it and by words."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.labeller.conftest import FakeSource, FakeStore
from tests.rows import each_row
from tests.screens import press, see

from labeller.conversation import AskedQuery, PriorMessage, asked_query, messages_before
from labeller.fetching import api_source
from labeller.plain import PlainLabeller
from labeller.session import Session
from terminal.actions import ActionRefused

Record = dict[str, Any]


def turn(number: int, question: str, reference: str | None = "An [answer].") -> Record:
    case: Record = {"id": f"t{number}", "question": question, "conversation": "talk"}
    case |= {"turn": number}
    return case if reference is None else case | {"reference_answer": reference}


def talk() -> dict[str, Record]:
    """A question by itself, a conversation of four turns, another question by itself."""
    cases = [
        {"id": "a", "question": "Alone?"},
        turn(1, "How long are logs kept?", "For 30 days."),
        turn(2, "Who can extend it?", "The owner,\nby 90 days."),
        turn(3, "And on the free plan?", None),
        turn(4, "For how much?"),
        {"id": "z", "question": "Last?"},
    ]
    return {case["id"]: case for case in cases}


def test_what_was_said_before_is_the_turns_or_the_history() -> None:
    cases = talk()
    ids = list(cases)

    def before(case_id: str) -> list[tuple[str, str]]:
        return [message[:2] for message in messages_before(cases[case_id], ids, cases.get)]  # type: ignore[arg-type]

    assert [before(case_id) for case_id in ("a", "t1", "z")] == [[], [], []]
    assert before("t3") == [
        ("user", "How long are logs kept?"),
        ("assistant", "For 30 days."),
        ("user", "Who can extend it?"),
        ("assistant", "The owner,\nby 90 days."),
    ]
    cases["z"]["history"] = [{"role": "system", "content": "Be brief."}]
    assert before("z") == [("system", "Be brief.")]


def test_own_question_and_marked_words_are_asked_behind_the_conversation() -> None:
    cases = talk()

    def asked(query: str, case_id: str = "t2") -> AskedQuery:
        return asked_query(cases[case_id], query, list(cases), cases.__getitem__)

    behind = (
        PriorMessage("user", "How long are logs kept?", 1),
        PriorMessage("assistant", "For 30 days.", 1),
    )
    assert asked("Who can extend it?") == AskedQuery("Who can extend it?", behind)
    assert asked("> who else?") == AskedQuery("who else?", behind)
    assert asked("retention owner") == AskedQuery("retention owner")
    assert asked(">") == AskedQuery(">")
    # the third turn has no reference answer: an empty message is not sent
    assert [message.turn for message in asked("For how much?", "t4").history] == [1, 1, 2, 2, 3]


@each_row("takes", [True, False])
def test_the_bot_gets_the_messages_or_the_question_made_whole(tmp_path: Path, takes: bool) -> None:
    body = '{question = "{question}", history = "{history}"}' if takes else '{q = "{question}"}'
    profile = tmp_path / "p.toml"
    profile.write_text(
        f'schema = 1\n[request]\npath = "/ask"\nbody = {body}\n'
        '[response]\nanswer = "a"\nretrieved = "r"\n'
    )
    cases = talk()
    cases["t2"]["question_alone"] = "Who can extend how long logs are kept?"
    bot = ("http://127.0.0.1:9", str(profile), 5, tmp_path, tmp_path / "cache")
    with api_source(*bot, cases) as source:
        chunks: Any = source._ask
        own = chunks._asked_as("t2", "Who can extend it?")
        words = chunks._asked_as("t2", "> who else?")
        paths = {chunks._path(case_id, "Who can extend it?", None) for case_id in ("t2", "t3")}
    if takes:
        assert (own.text, len(own.history)) == ("Who can extend it?", 2)
        assert (words.text, len(words.history)) == ("who else?", 2)
        assert len(paths) == 2, "the same words behind another conversation are another search"
    else:
        assert own == AskedQuery("Who can extend how long logs are kept?")
        assert words == AskedQuery("who else?")


async def test_the_conversation_stands_above_the_question(bench: Any) -> None:
    async with bench.run(cases=talk()) as (b, pilot):
        await pilot.pause()
        rows = b.main.chunks.size.height
        assert not b.main.panes.talk.display
        await pilot.press("H")
        assert b.status == "nothing was said before this question"
        await press(pilot, "l l l")
        lines = b.shown().split("\n")
        assert [line.strip() for line in lines[1:4]] == [
            "2 user: Who can extend it?",
            "bot: The owner, by 90 days.",
            "And on the free plan?",
        ]
        assert b.main.chunks.size.height + b.main.text.size.height == 17 - 2
        await press(pilot, "H")
        lines = b.shown().split("\n")
        assert lines[1].strip() == "1 user: How long are logs kept?"
        assert b.main.panes.talk.size.height == 4
        await press(pilot, "H")
        assert b.main.panes.talk.size.height == 2
        # folded, it is a pane like the others: Tab reaches it, the same keys scroll it
        while b.main.panes.focus != "conversation":
            await pilot.press("tab")
        assert b.main.panes.talk.top == 2
        await pilot.press("k", "k")
        assert b.main.panes.talk.top == 0
        await see(pilot, "z", "For 30 days.")
        assert "passages" not in b.shown()
        await press(pilot, "z 1 enter")
        assert b.session.current == "t4", "two keys label a turn as any other question"
        assert "(no reference answer)" in b.shown()
        await see(pilot, "p", "> first: behind the conversation")
        await press(pilot, "escape l")
        assert b.session.current == "z"
        assert not b.main.panes.talk.display
        assert b.main.chunks.size.height == rows


def test_a_conversation_stays_in_one_piece() -> None:
    cases = talk()
    session = Session(cases, {}, record=lambda event: None, now=time.time)
    session.queue.goto("t1")
    session.add_case("What of backups?", id="new")
    assert session.queue.ids == ["a", "t1", "t2", "t3", "t4", "new", "z"]
    session.queue.goto("t2")
    session.duplicate_case()
    copy = session.case
    assert session.queue.ids[5] == copy["id"]
    assert not {"conversation", "turn"} & copy.keys()
    session.queue.goto("t2")
    with pytest.raises(ActionRefused, match="t2 has later turns; delete the last turn of talk"):
        session.delete_case()
    session.queue.goto("t4")
    session.delete_case()
    assert session.queue.ids[:4] == ["a", "t1", "t2", "t3"]


def test_the_words_of_the_whole_question_are_marked() -> None:
    cases = talk()
    cases["t2"]["question_alone"] = "Who can extend the retention?"
    session = Session(cases, {}, record=lambda event: None, now=time.time)
    session.queue.goto("t2")
    assert "retention" in session.terms()
    session.queue.goto("t1")
    assert {"long", "log"} <= session.terms()


def test_line_mode_prints_what_was_said_before(tmp_path: Path) -> None:
    out = io.StringIO()
    session = Session(talk(), {}, record=lambda event: None, now=time.time)
    session.queue.goto("t2")
    plain = PlainLabeller(
        session, FakeStore(), FakeSource({}), io.StringIO("q\n"), out, prompt=False
    )
    plain.run()
    said = out.getvalue()
    assert "1 user: How long are logs kept?\n  bot: For 30 days.\nt2 (3/6, open)" in said, (
        json.dumps(said)
    )
