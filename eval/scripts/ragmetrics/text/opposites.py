"""Checks whether two English texts with the same words say opposite things without a *not*.

One word is the opposite of the other's (rose, fell; all, some), or the two sides of a verb are
swapped (Anna manages Ben). Paraphrases of an opposite are not seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ragmetrics.text.negation import NEGATIONS, Side
from ragmetrics.text.words import STOP_WORDS, fold, stem, words

_SHARED = 0.85
"""Share of the claim's other content words that the sentence must hold."""

_LONGEST = 40
"""Content words of a claim from which its order is not looked at."""

# Each line: words of one side, then those of the other.
_PAIRS = """
rise rises rose risen increase grow grew grown climb raise higher
    | fall fell fallen decrease decline drop sink sank sunk shrink shrank lower reduce
more | less fewer
before | after
above | below
over | under
minimum min | maximum max
most | least
first | last
earliest | latest
earlier | later
early | late
begin began begun start | end stop
open | close closed
buy bought | sell sold
accept approve | reject refuse deny
allow permit | forbid forbidden prohibit ban
enable | disable
include | exclude
win won | lose lost
left | right
north northern | south southern
east eastern | west western
mandatory compulsory obligatory | optional voluntary
cheap | expensive
cheaper cheapest | dearer dearest
large big | small
larger bigger | smaller
largest biggest | smallest
long | short
longer | shorter
fast quick | slow
faster quicker | slower
older | newer younger
best | worst
better | worse
internal | external
public | private
inside indoors | outside outdoors
hot warm | cold
positive | negative
profit | loss
debit | credit
add | remove delete
lock | unlock
male | female
import | export
upload | download
arrive arrival | depart departure
entry | exit
deposit | withdraw withdrawal
lend lent | borrow
send sent | receive
hire | fire
ascending | descending
odd | even
paid | unpaid
known | unknown
only | except excluding
morning | evening
day daytime | night
weekday | weekend
summer | winter
"""

_RANKS = {
    **dict.fromkeys(("all", "every", "each", "always", "everyone", "everybody"), 3),
    **dict.fromkeys(("most", "majority", "usually", "mostly"), 2),
    **dict.fromkeys(("some", "several", "certain", "sometimes", "occasionally"), 1),
    **dict.fromkeys(("few", "rarely", "seldom"), 0),
}
"""How much of a whole a word says: a claim of more than its source is not supported by it."""


class _Word(NamedTuple):
    pair: int
    side: int


def _sides() -> dict[str, _Word]:
    table: dict[str, _Word] = {}
    lines = _PAIRS.replace("\n    |", " |").strip().splitlines()
    for pair, line in enumerate(lines):
        for side, listed in enumerate(line.split("|")):
            for word in listed.split():
                table[word] = table[stem(word)] = _Word(pair, side)
    return table


_SIDES = _sides()


def says_opposite(claim: str, sentence: str) -> bool:
    """Return True when an English claim and a sentence with its words differ by turning one.

    Neither has a negation, the sentence holds at least 85 % of the claim's other content words, and
    exactly one pair of opposite words beside the same word differs, or the order around one verb.
    """
    own, other = words(fold(claim)), words(fold(sentence))
    pairs = [*_turned(own, other), *_overstated(own, other)]
    if not pairs:
        return _swaps(own, other) and not (_is_negated(own) or _is_negated(other))
    return len(pairs) == 1 and _turns(Side(claim), Side(sentence), *pairs[0])


def _is_negated(listed: Sequence[str]) -> bool:
    return any(word in NEGATIONS or word.endswith("n't") for word in listed)


def _turns(ours: Side, theirs: Side, word: str, opposite: str) -> bool:
    """Whether a word of the claim and its opposite are all that differs."""
    turned = {stem(word), stem(opposite)}
    rest = ours.stems - turned
    shared = len(rest & theirs.stems) >= _SHARED * len(rest)
    bounds = dict(ours.turns - theirs.turns) | dict(theirs.turns - ours.turns)
    return (
        shared
        and not ours.negations
        and not theirs.negations
        and bounds.keys() <= turned
        and _is_beside_the_same(ours.words, word, theirs.words, opposite)
    )


def _turned(own: Sequence[str], other: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each word of the claim with its opposite in the sentence, where no text has both."""
    ours = {side: word for word in own if (side := _side_of(word))}
    if not ours:
        return
    theirs = {side: word for word in other if (side := _side_of(word))}
    for side, word in ours.items():
        opposite = _Word(side.pair, 1 - side.side)
        if opposite in theirs and opposite not in ours and side not in theirs:
            yield word, theirs[opposite]


def _side_of(word: str) -> _Word | None:
    return _SIDES.get(word) or _SIDES.get(stem(word))


def _overstated(own: Sequence[str], other: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The one word for how many in each text, if the claim says more than the sentence."""
    ours, theirs = ([word for word in listed if word in _RANKS] for listed in (own, other))
    if len(ours) == len(theirs) == 1:
        rank, source = _RANKS[ours[0]], _RANKS[theirs[0]]
        if rank > source or (rank == 0 and source > 1):
            yield ours[0], theirs[0]


def _is_beside_the_same(own: Sequence[str], word: str, other: Sequence[str], opposite: str) -> bool:
    """Whether the content word before or behind both is the same."""
    return any(
        first is not None and first == second
        for first, second in zip(_beside(own, word), _beside(other, opposite), strict=True)
    )


def _beside(listed: Sequence[str], word: str) -> tuple[str | None, str | None]:
    if word not in listed:
        return None, None
    place = listed.index(word)
    before = (stem(item) for item in reversed(listed[:place]) if item not in STOP_WORDS)
    behind = (stem(item) for item in listed[place + 1 :] if item not in STOP_WORDS)
    return next(before, None), next(behind, None)


# Swapped sides of a verb.

_BE = frozenset(("is", "are", "was", "were", "be", "been", "being", "get", "gets", "got"))

_NO_VERB_BEHIND = """
a an the its their his her our my your this that these those of in on at by for with as
"""
_BEFORE_NOUNS = frozenset(_NO_VERB_BEHIND.split())

_PAST = """
bought beat sold led gave taught sent built hit won held fed told paid lent saw chose sued wrote
made overtook took drove knew
"""
_IRREGULAR = frozenset(_PAST.split())

_BOTH_WAYS = """
meet marry equal match resemble border play differ correspond intersect touch join merge share
compete talk agree connect link versus cooperate neighbour overlap relate
"""
_MUTUAL = frozenset(map(stem, _BOTH_WAYS.split()))
"""Stems of verbs whose two sides may change places."""

_ORDERING = frozenset(("before", "after", "above", "below", "under", "over", "than"))


def _swaps(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Whether the same words stand in another order around one verb, or in another voice."""
    own, other = _content(ours), _content(theirs)
    size = len(own)
    if not 2 <= size <= min(_LONGEST, len(other)):
        return False
    same = sorted(item for item, _ in own)
    for start in range(len(other) - size + 1):
        window = other[start : start + size]
        if sorted(item for item, _ in window) == same:
            return _is_swapped(ours, own, theirs, window)
    return False


_Content = list[tuple[str, int]]
"""The stems of the content words of a text, each with its place among all words."""


def _content(listed: Sequence[str]) -> _Content:
    return [(stem(word), at) for at, word in enumerate(listed) if word not in STOP_WORDS]


def _is_swapped(ours: Sequence[str], own: _Content, theirs: Sequence[str], other: _Content) -> bool:
    first, second = [item for item, _ in own], [item for item, _ in other]
    if first == second:
        return _changes_voice(ours, own, theirs, other)
    begin = next(at for at in range(len(first)) if first[at] != second[at])
    end = next(at for at in range(len(first), 0, -1) if first[at - 1] != second[at - 1])
    x, y = first[begin:end], second[begin:end]
    for left in range(1, len(x)):
        for right in range(1, len(x) - left + 1):
            if y != x[len(x) - right :] + x[left : len(x) - right] + x[:left]:
                continue
            if left + right == len(x):
                return _is_ordered(ours, own[begin + left - 1], own[begin + left]) and _is_ordered(
                    theirs, other[begin + right - 1], other[begin + right]
                )
            verbs = own[begin + left][1], other[begin + right][1]
            return (
                _is_verb(ours, verbs[0])
                and _is_verb(theirs, verbs[1])
                and _is_after_be(ours, verbs[0]) == _is_after_be(theirs, verbs[1])
            )
    return False


def _is_ordered(listed: Sequence[str], before: tuple[str, int], behind: tuple[str, int]) -> bool:
    """Whether a word that puts two things in an order stands between two content words."""
    return not _ORDERING.isdisjoint(listed[before[1] + 1 : behind[1]])


def _is_verb(listed: Sequence[str], at: int) -> bool:
    """Whether a word has two sides that cannot change places: a verb, or a comparative."""
    word = listed[at]
    before, behind = listed[at - 1] if at else "", listed[at + 1 : at + 3]
    if stem(word) in _MUTUAL or before in _BEFORE_NOUNS or before.endswith("'s"):
        return False
    if behind[:1] == ["of"]:
        return False
    if "than" in behind:
        return word.endswith("er") or before in ("more", "less") or word.endswith("s")
    return word in _IRREGULAR or (
        len(word) > 3 and word.endswith(("s", "ed")) and word[-2:] != "ss"
    )


def _is_after_be(listed: Sequence[str], at: int) -> bool:
    """Whether a verb is passive, or a comparative: is managed by, is larger than."""
    return not _BE.isdisjoint(listed[max(0, at - 2) : at])


def _changes_voice(
    ours: Sequence[str], own: _Content, theirs: Sequence[str], other: _Content
) -> bool:
    """Whether the same order of words is active in one text and passive in the other."""
    for (_, at), (_, there) in zip(own[1:-1], other[1:-1], strict=True):
        passive = _is_by(ours, at), _is_by(theirs, there)
        active, place = (theirs, there) if passive[0] else (ours, at)
        if passive[0] != passive[1]:
            return _is_verb(active, place) and "by" not in active
    return False


def _is_by(listed: Sequence[str], at: int) -> bool:
    """Whether a verb is passive and its agent follows."""
    return _is_after_be(listed, at) and "by" in listed[at + 1 : at + 3]
