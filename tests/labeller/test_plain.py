"""Line mode: what is read, what is said, and that foreign text stays text."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.labeller.conftest import FakeSource, Lines, snapshot
from tests.rows import each_row

from labeller.merging import Conflict
from labeller.passages import Chunk
from labeller.plain import COMMANDS
from labeller.session import Session


def test_marks_and_enter(lines: Lines) -> None:
    said = lines.do("2 '' 4", "")
    assert "[ ]   1 faq.md > Billing: Upgrades take effect at once." in said
    assert "q-0001: needs: (2 retention.md) AND (4 roles.md); marks join need 2" in said
    assert "q-0001: Saved as answerable." in said
    assert "q-0002 (2/3, open)" in said
    case = lines.session.ledger.case_of("q-0001")
    assert len(case["gold_supports"]) == 2
    assert "required_support_groups" not in case, "both are needed: the list says so"


def test_marks_grade_and_confirm_in_one_line(lines: Lines) -> None:
    lines.do("2=3 4'1=2 ok")
    supports = lines.session.ledger.case_of("q-0001")["gold_supports"]
    assert [support["grade"] for support in supports] == [3, 2]
    assert lines.session.queue.summaries["q-0001"].status == "labelled"


def test_decisions(lines: Lines) -> None:
    said = lines.do("x", "ok", "progress", "s", "c two plans", "f", "note ask", "")
    assert "1 of 3 done: 0 labelled, 1 unanswerable" in said
    assert re.search(r"flagged; \d+ s each, \d+ min left", said)
    briefs = {b.id: b for b in lines.session.queue.summaries.values()}
    assert briefs["q-0001"].status == "unanswerable"
    assert briefs["q-0002"].status == "skipped"
    assert briefs["q-0003"].status == "cannot_tell"
    assert briefs["q-0003"].flagged


def test_refusals_are_said_and_nothing_happens(lines: Lines) -> None:
    before = snapshot(lines.session)
    said = lines.do(
        "99", "bogus", "2 7b", "n", "pick 2", "2=9", "go 77", "u", "U", "delete q-9", "e x y"
    )
    assert "There is no row 99." in said
    assert "'bogus' is not a command; ? lists them." in said
    assert "Needs have numbers: 7'2 puts row 7 into need 2." in said
    assert "l is the next question here." in said
    assert "Write pick ROW SENTENCE." in said
    assert "'2=9' is not a command" in said
    assert "There is no question 77" in said
    assert "Nothing to undo." in said
    assert "Nothing to redo." in said
    assert "Write delete q-0001 to delete it." in said
    assert "the fields are: question" in said
    assert snapshot(lines.session) == before


def test_editing(lines: Lines) -> None:
    lines.do("e expected_key_facts one | two", "fact three", "o What is new?", "e tags a|b")
    assert lines.session.ledger.case_of("q-0001")["expected_key_facts"] == ["one", "two", "three"]
    assert lines.session.ledger.case_of("what-is-new")["tags"] == ["a", "b"]
    said = lines.do("go what-is-new", "json", "delete what-is-new", "u")
    assert '"question": "What is new?"' in said
    assert "what-is-new" in lines.session.queue


def test_supports_and_sentences(lines: Lines) -> None:
    said = lines.do("t 2", "pick 2 2", "''", "P other.md > Part", "w", "< 2", "head 2 New")
    assert "* 1 Audit" not in said
    assert "1 Audit events are kept for 30 days on the free plan." in said
    assert "2 [2] other.md > Part (absent: no row)" in said
    assert "The answer needs (2 retention.md) AND (other.md > Part)." in said
    supports = lines.session.ledger.case_of("q-0001")["gold_supports"]
    assert [support["heading_path"] for support in supports] == ["Plans", "New"]
    assert supports[0]["snippets"] == ["Exports are not included."]


def test_needs_are_typed_as_on_the_screen(lines: Lines) -> None:
    """'' opens a need, & shares, '0 is what is not required, 0 is row 10 and .5 or ,5 row 15."""
    said = lines.do("2 '' 4 5", "2&2", "'0 1", ". ", ";", "0", ",5", "w")
    assert "needs: (2 retention.md) AND (4 roles.md or 5 dpa.md); marks join need 2" in said
    assert "row 1 is related" not in said  # one line says what all of it came to
    assert "not required: 1 faq.md; marks are related passages, not required" in said
    assert "There is no row 10." in said
    assert "There is no row 15." in said
    assert "4 [0] faq.md > Billing" in said


def test_a_probe_adds_rows(lines: Lines) -> None:
    lines.source.probed = (Chunk("new.md", "", "New text."),)
    said = lines.do("p other words", "+1")
    assert "1 new rows" in said
    assert "[ ]  +1 new.md: New text." in said
    assert lines.session.ledger.case_of("q-0001")["gold_supports"][0]["rel_path"] == "new.md"


def test_without_chunks_editing_goes_on(lines: Lines) -> None:
    lines.source.problem = "connection: nobody answers"
    said = lines.do("2", "e tags x", "f")
    assert "No chunks: connection: nobody answers" in said
    assert "No passages are here." in said
    assert lines.session.ledger.case_of("q-0001")["tags"] == ["x"]
    lines.source.request = lambda case_id, question: None  # type: ignore[method-assign]
    assert "are not here yet" in lines.do("go q-0003", "e tags y")
    assert lines.session.ledger.case_of("q-0003")["tags"] == ["y"]


def test_coming_back_asks_a_bot_again_that_was_away(lines: Lines) -> None:
    lines.source.problem = "connection: nobody answers"
    lines.do("l")
    lines.source.problem = ""
    said = lines.do("h")
    assert "1 faq.md" in said


def test_conflicts_are_shown_and_settled(lines: Lines) -> None:
    conflict = Conflict("q-0001", ("tags",), {}, {"tags": ["a"]}, {"tags": ["b"]})
    lines.store.conflicts.append(conflict)
    said = lines.do("conflicts", "conflicts 1 theirs", "conflicts 2 mine")
    assert "1 q-0001: tags" in said
    assert "There is no conflict 2." in said
    assert lines.store.asked == ["q-0001 theirs"]


def test_moving_and_counting(lines: Lines) -> None:
    said = lines.do("l", "h", "go 3", "back", "open", "/ flag", "/", "progress", "S x")
    assert "0 of 3 cases" in said
    assert "0 of 3 done" in said
    assert "Row order 'x' is unknown" in said
    assert "There is no question 0; there are 3." in lines.do("go 3", "go 1", "go 0")
    assert lines.session.current == "q-0001"


def test_blind_mode_can_be_left(lines: Lines) -> None:
    said = lines.do("B off", ";", "B maybe")
    assert "(rank 1)" in said
    assert "Write blind on or blind off." in said


def test_every_command_is_in_the_help(lines: Lines) -> None:
    said = lines.do("?")
    for name, word in COMMANDS.items():
        (line,) = (x for x in said.splitlines() if x.startswith(f"{name} {word.usage}".ljust(29)))
        assert line[29:].endswith("."), "its own sentence, or that of the key"
        assert word.help in line
    assert "x                            The documents do not contain the answer" in said


@each_row(
    "hostile",
    [
        *("\x1b]0;owned\x07", "\x1b[2J", "\x9b31m", "[bold]x[/]", "a\x00b", "\u202eevil"),
        *("line\u2028next", "x" * 1_000_000, "👩‍👩‍👧‍👦 漢字", "q\nx\nok\n"),
    ],
)
def test_hostile_text_is_shown_as_text(clock: Callable[[], float], hostile: str) -> None:
    cases = {"a": {"id": "a", "question": f"Q {hostile}"}}
    session = Session(cases, {}, record=lambda e: None, now=clock)
    chunk = Chunk(f"p{hostile}", f"h{hostile}", f"A sentence {hostile} here.")
    said = Lines(session, FakeSource({"a": [chunk]})).do("; 1", "t 1", "1", "w")
    for bad in "\x00\x07\x1b\x9b\u202e\u2028":
        assert bad not in said
    if "[bold]" in hostile:
        assert "[bold]x[/]" in said, "markup is shown as it is"
    assert session.queue.summaries["a"].status == "open", "no line of a text is taken for a command"
    assert len(session.case["gold_supports"]) == 1


def test_a_line_is_one_step_to_undo_and_done_as_a_whole_or_not(lines: Lines) -> None:
    said = lines.do("2 4'2=2 ok", "u")
    assert "Undone: saving in q-0001" in said
    assert lines.session.case.get("gold_supports") is None
    assert not lines.session.ledger.history.done
    assert "This line was ignored (99)." in lines.do("1 99")
    assert lines.session.case.get("gold_supports") is None
