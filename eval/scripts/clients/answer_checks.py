"""Two checks over all answers of a bot: does its score give the order of its passages, and does it
answer the question before? Pure.

    order_of("score", [[0.9, 0.4], [0.7, 0.2]]).kind         # "falls": the best passage is first
    lags([Heard(…), …])                                       # "" for a bot that does not lag

What is only seen in all answers together no single answer shows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, Literal, NamedTuple

from clients.expressions import compile_path
from clients.field_names import name_words
from ragmetrics.text.words import fold, words
from records.results import TestResult

ENOUGH = math.log(1000)
"""Evidence at which an order that falls by chance is as good as excluded: one of 1,000 orders."""

LEAST_PAIRS = 2
"""Pairs of answers that must tell something."""
_LEAST_SHARE = 0.8
"""Share of them that fit the question before."""
_LEAST_GAIN = 0.2
"""A difference in shared words that says something."""

_DISTANCES = frozenset(("distance", "distances", "dist"))
_SCORES = ("score_final", "score_vector", "score_lexical")

_SAYS = {
    "neither": "{field} does not give the order of the passages (reranked, fused?).",
    "falls": "{field} falls in {lists}: the best passage is first.",
    "rises": "{field} rises in {lists}: the nearest passage is first.",
}

Kind = Literal["falls", "rises", "neither", "open"]


class ScoreOrder(NamedTuple):
    """How a bot's scores go through its lists. ``open``: too few lists to say that they rise.

    ``asks``: whether the best passage may be the last one."""

    field: str
    kind: Kind
    lists: int
    asks: bool = False

    @property
    def mark(self) -> str:
        """As in a proof."""
        return "?" if self.asks else "–" if self.kind == "neither" else "✓"

    @property
    def _lists(self) -> str:
        return "the one list" if self.lists == 1 else f"all {self.lists} lists"

    def sentence(self, shared: tuple[float, float], first_right: tuple[float, float] | None) -> str:
        """The verdict on the order as a sentence.

        ``shared``: words of the question in the first and in the last passage; ``first_right``: the
        share of answers whose first passage is right, and whose last is.
        """
        if not self.asks:
            return _SAYS[self.kind].format(field=self.field, lists=self._lists)
        doubt = "a distance (the order is right), or" if self.kind == "rises" else "is"
        said = (
            f"{self.field} {self.kind} in {self._lists}: {doubt} the worst passage first? "
            f"Then --set order=reversed. The first passage shares {shared[0]:.1f} words with its "
            f"question, the last {shared[1]:.1f}."
        )
        if first_right is not None:
            said += f" P@1 is {first_right[0]:.2f} in this order, {first_right[1]:.2f} reversed."
        return said


def order_of(field: str, lists: Sequence[Sequence[float]]) -> ScoreOrder | None:
    """How the values of a field go through the lists that have two or more different ones; None
    without such a list.

    k passages fall into one of k! orders by chance; the wrong way round asks only where all lists
    together are one order in 1,000.
    """
    telling = [values for values in lists if len(set(values)) > 1]
    if not telling:
        return None
    falls = all(a >= b for values in telling for a, b in pairwise(values))
    rises = all(a <= b for values in telling for a, b in pairwise(values))
    if not falls and not rises:
        return ScoreOrder(field, "neither", len(telling))
    is_distance = bool(_DISTANCES & set(name_words(field)))
    if rises == is_distance:
        return ScoreOrder(field, "rises" if rises else "falls", len(telling))
    evidence = sum(math.lgamma(len(values) + 1) for values in telling)
    if evidence < ENOUGH:
        return ScoreOrder(field, "open", len(telling))
    return ScoreOrder(field, "rises" if rises else "falls", len(telling), asks=True)


def score_lists(
    tables: Mapping[str, Mapping[str, str]], payloads: Sequence[Any], *, is_reversed: bool
) -> tuple[str, list[list[float]]]:
    """The score that a bot gives beside its passages, and its values in each list; "" without one.

    A field that is called a distance counts also where no path of the profile names it.
    """
    lists = _lists(tables["response"], payloads)
    items = [item for listed in lists for item in listed if isinstance(item, dict)]
    chunk = tables["chunk"]
    path = next((chunk[name] for name in _SCORES if name in chunk), None)
    path = path or next(
        (name for name in (items[0] if items else ()) if _DISTANCES & set(name_words(name))), None
    )
    if path is None:
        return "", []
    get = compile_path(path)
    values = [[get(item) for item in listed] for listed in lists]
    whole = [each for each in values if each and all(_is_number(value) for value in each)]
    return path.rpartition(".")[2], [each[::-1] if is_reversed else each for each in whole]


def _lists(response: Mapping[str, str], payloads: Sequence[Any]) -> list[list[Any]]:
    """The lists of passages: of each answer, or of each of its searches."""
    path = response.get("retrieved", response.get("searches"))
    found = [compile_path(path)(payload) or [] for payload in payloads] if path else []
    if "retrieved" not in response:
        found = [each.get("retrieved") or [] for searches in found for each in searches]
    return [each for each in found if isinstance(each, list)]


def _words(text: str) -> set[str]:
    return set(words(fold(text)))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and not isinstance(value, bool)


def shared_words(results: Sequence[tuple[str, TestResult]]) -> tuple[float, float]:
    """The mean number of a question's words in the first and in the last passage."""
    ends = [
        (_words(question), chunks[0].text or "", chunks[-1].text or "")
        for question, result in results
        if len(chunks := result.chunks()) > 1
    ]
    first, last = (
        sum(len(own & _words(texts[place])) for own, *texts in ends) / len(ends) if ends else 0.0
        for place in (0, 1)
    )
    return first, last


@dataclass(frozen=True)
class HeardAnswer:
    """A question with its answer, the files where its gold is, and of a turn its conversation."""

    question: str
    result: TestResult
    gold: frozenset[str] = frozenset()
    conversation: str | None = None

    def words(self) -> set[str]:
        """The words of the answer and of its first passage."""
        texts = [self.result.answer or "", *(c.text or "" for c in self.result.chunks()[:1])]
        return {word for text in texts for word in _words(text)}

    def places(self) -> set[str]:
        """The files of its passages."""
        return {chunk.rel_path for chunk in self.result.chunks() if chunk.rel_path}


def lags(heard: Sequence[HeardAnswer]) -> str:
    """A sentence for a bot whose answers fit the question before better than their own; "" else.

    ``heard``: in the order in which they were asked; before a turn is the turn of its conversation
    before it, whatever was asked in others in between. Compared are the words that one of the two
    questions has alone, and the files of their gold. A question without gold in a set that has
    gold cannot be answered, so nothing fits it.
    """
    has_gold = any(each.gold for each in heard)
    by_conversation: dict[str | None, list[HeardAnswer]] = {}
    for each in heard:
        by_conversation.setdefault(each.conversation, []).append(each)
    pairs = chain.from_iterable(map(pairwise, by_conversation.values()))
    fits = [_fits_before(b, each) for b, each in pairs if b.gold or not has_gold]
    telling = [fit for fit in fits if fit is not None]
    lagging = sum(telling)
    if len(telling) < LEAST_PAIRS or lagging < _LEAST_SHARE * len(telling):
        return ""
    return (
        f"{lagging} of {len(telling)} answers fit the question that was asked before them "
        "better than their own: a cache, or mixed-up sessions?"
    )


def _fits_before(before: HeardAnswer, each: HeardAnswer) -> bool | None:
    """Whether an answer fits the question before better; None where nothing tells them apart."""
    own, other = _words(each.question), _words(before.question)
    content = each.words()
    own_share = len((own - other) & content) / max(1, len(own - other))
    other_share = len((other - own) & content) / max(1, len(other - own))
    own_gold, other_gold = each.gold - before.gold, before.gold - each.gold
    places = each.places()
    own_found, other_found = bool(own_gold & places), bool(other_gold & places)
    if own_found != other_found and own_gold and other_gold:
        return other_found
    is_clear = abs(own_share - other_share) > _LEAST_GAIN
    return other_share > own_share if is_clear else None
