"""Several ratings of one answer as one number."""

from __future__ import annotations

from records.feedback import Rating, rating_of


def rated(user: str | None, at: str, score: float | None, name: str = "thumbs") -> Rating:
    return Rating(name, score, user=user, at=at)


def test_the_last_of_each_user_and_their_mean() -> None:
    """a changed 0 to 1, b gave 0, c's scale is unknown: (1 + 0) / 2."""
    ratings = [
        rated("a", "2026-03-02", 1.0),
        rated("a", "2026-03-01", 0.0),
        rated("b", "", 0.0),
        rated("c", "2026-03-01", None),
    ]
    assert rating_of(ratings) == 0.5


def test_a_user_who_rated_under_several_names_counts_once() -> None:
    """a: (1 + 0.5) / 2 = 0.75; b: 0; the mean of both is 0.375."""
    ratings = [rated("a", "1", 1.0), rated("a", "1", 0.5, "tone"), rated("b", "1", 0.0)]
    assert rating_of(ratings) == 0.375


def test_ratings_without_a_user_are_those_of_whoever_asked() -> None:
    """Of the same time, the later in the list."""
    assert rating_of([rated(None, "", 1.0), rated(None, "", 0.0)]) == 0.0
    assert rating_of([rated("a", "", None)]) is None
    assert rating_of([]) is None
