"""Which words of two answers differ."""

from __future__ import annotations

from views.text import word_changes


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
