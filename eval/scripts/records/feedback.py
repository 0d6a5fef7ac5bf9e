"""Feedback: what people who used the bot, or reviewed it, said of one of its answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

_NEITHER = 0.5


def thumb_of(rating: float) -> bool | None:
    """Whether a rating from 0 to 1 says that the answer is good; None at one half, which says
    neither."""
    return None if rating == _NEITHER else rating > _NEITHER


class Rating(msgspec.Struct, omit_defaults=True):
    """One rating of an answer by a person.

    ``score``: from 0 (bad) to 1 (good), None where the scale of ``value``, which is what the person
    chose, is not known, and of a comment without a rating. ``user``: who rated, as a keyed hash;
    None where that is not told. ``at``: when, in UTC, "" where that is not told.
    """

    name: str
    score: float | None = None
    value: Any = None
    user: str | None = None
    at: str = ""
    comment: str = ""


def rating_of(ratings: Iterable[Rating]) -> float | None:
    """The rating of one answer, from 0 (bad) to 1 (good): the mean over users of the last rating
    of each; None where no rating has a known scale.

    A user who rated under several names counts with the mean of the last under each. Ratings
    without a user count as those of one person: whoever asked. Of ratings at the same time, the
    later in the list counts.
    """
    last: dict[tuple[str | None, str], tuple[str, float]] = {}
    for rating in ratings:
        key = (rating.user, rating.name)
        if rating.score is not None and rating.at >= last.get(key, ("", 0.0))[0]:
            last[key] = (rating.at, rating.score)
    users: dict[str | None, list[float]] = {}
    for (user, _), (_, score) in last.items():
        users.setdefault(user, []).append(score)
    return _mean([_mean(scores) for scores in users.values()]) if users else None


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
