"""Two runs side by side: the column of metric names, and which words of two answers differ."""

from __future__ import annotations

from dataclasses import replace

from tests.rows import each_row

from records.scores import ScoreLine
from views.browser.case_page import pair_docs
from views.browser.document import Doc
from views.browser.rows import MAIN, RUN_MAIN, case_columns, gain, heading
from views.case import Case
from views.case_blocks import ShownWith, case_blocks
from views.text import score_pair, word_changes


@each_row(
    ("before", "after", "shown"),
    [
        (0.5, 0.75, "0.50 0.75"),
        (0.191, 0.194, "0.191 0.194"),
        (0.19, 0.1904, "0.1900 0.1904"),
        (1.0, 0.998, "1.000 0.998"),  # 1 and 1.00 are no difference to see
        (0.5, 0.5000001, "0.50 0.50"),  # less than the six decimals of a file
        (None, 0.5, "- 0.50"),
        (0.0, 1.0, "0 1"),
    ],
)
def test_two_scores_have_the_digits_that_show_their_difference(
    before: float | None, after: float, shown: str
) -> None:
    assert " ".join(score_pair(before, after)) == shown


def test_a_column_of_the_list_has_room_for_three_decimals() -> None:
    assert score_pair(0.191, 0.194, 3) == ("0.191", "0.194")
    assert score_pair(0.19, 0.1904, 3) == ("0.19", "0.19")


def detail(value: float) -> Case:
    scores: dict[str, float | None] = {"mrr": value, "context_relevance_top3": value}
    return Case("q", 0, "?", "ok", lines={"s": ScoreLine("q", 0, "scored", scores)})


def test_values_stand_under_each_other_whatever_the_length_of_the_names() -> None:
    doc = Doc()
    doc.draw(case_blocks(detail(0.75), ("values",), ShownWith(before=detail(0.25))))
    rows = [line for line in doc.text.splitlines() if "→" in line]
    assert rows == ["mrr                    0.25 → 0.75", "context_relevance_top3 0.25 → 0.75"]


@each_row(
    ("before", "now", "sentence"),
    [
        ("It ends here.", "It ends here.", "Both answers have the same words."),
        ("It ends here.", "It ends\nhere.", "Both answers have the same words."),
        ("It ends here.", "It ends there.", "Changed words are underlined."),
        ("It ends here.", "Nobody knows that", "Most of their words differ."),
    ],
)
def test_below_two_answers_stands_how_they_differ(before: str, now: str, sentence: str) -> None:
    sides = [replace(detail(1.0), answer=text) for text in (before, now)]
    doc = Doc()
    doc.draw(case_blocks(sides[1], ("answer",), ShownWith(before=sides[0], runs=("a", "b"))))
    assert sentence in doc.text


@each_row("name", sorted({*MAIN, *RUN_MAIN}))
def test_the_head_of_a_main_metric_is_whole_also_with_its_arrow(name: str) -> None:
    columns = [c for c in case_columns(200, [name], 4, chosen=True) if c.name == name]
    ((_, text),) = heading(columns, name, True, False)
    assert "…" not in text
    assert "↓" in text


def test_a_gain_is_positive_where_a_case_became_better() -> None:
    assert gain("recall@5", 0.5, 1.0) == 0.5
    assert gain("latency", 100.0, 300.0) == -200.0
    assert gain("scope_miss@5", 1.0, 0.0) == 1.0
    assert gain("recall@5", None, 1.0) is None


def test_answers_of_a_pair_begin_on_the_same_line() -> None:
    """Whatever stands above them: here the question takes many lines on the left."""
    question = "why " * 60
    base, new = (Case("q", 0, question, "ok", answer=answer) for answer in ("short", "long " * 40))
    view = ShownWith(before=base, runs=("a", "b"), states=("ok", "ok"), way="broke")
    left, right = pair_docs(lambda: Doc(width=40), new, view, two=True)
    assert right is not None

    def lines_before(doc: Doc, title: str) -> int:
        head = Doc(width=40)
        head.add(doc.text[: doc.text.index(title)].removesuffix("\u2500\u2500 "))
        return head.rows

    assert lines_before(left, "Base: a") == lines_before(right, "New: b")
    assert lines_before(left, "Retrieved in a") == lines_before(right, "Retrieved in b")
    assert left.rows == right.rows


def changed(before: str, after: str) -> tuple[list[str], list[str]]:
    left, right = word_changes(before, after)
    return [before[a:b] for a, b in left], [after[a:b] for a, b in right]


def test_words_that_differ_are_marked_in_both() -> None:
    expected = (["30"], ["90 whole"])
    assert changed("Logs are kept for 30 days.", "Logs are kept for 90 whole days.") == expected
    assert changed("a b", "a  b\n") == ([], []), "blanks are no words"
    assert changed("It ends.", "It ends, then.") == ([], [", then"])


def test_answers_with_little_in_common_have_no_marks() -> None:
    """One of the shorter text's four words is common, 25 %; one of three, 33 %."""
    assert changed("a b c d", "a e f g h") == ([], [])
    assert changed("a b c", "a e f g h") == (["b c"], ["e f g h"])
    assert changed("", "new words") == ([], ["new words"])


def test_long_answers_take_no_time() -> None:
    """Three thousand words a side: beyond the pairs that are compared exactly."""
    words = [f"w{number % 700}" for number in range(3000)]
    left, right = changed(" ".join(words), " ".join([*words[:1500], "new", *words[1500:]]))
    assert "new" in " ".join(right)
    assert max(len(right), len(left)) < 20
