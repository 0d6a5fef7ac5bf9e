"""Do the places that a bot names agree with those of the labels? Three answers tell; pure.

What a bot says of a passage (a path below another folder, headings with another separator) can keep
every label from matching, and then all retrieval figures are zero without anything being wrong with
the bot. ``suggest`` finds the settings of a profile that make them match.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from clients.mapping import ANY_TITLE, PlaceForm
from ragmetrics.gold import GoldPlace, passage_of, place_of_gold, quotes_of
from ragmetrics.matching import (
    SEPARATOR,
    Anchor,
    heading_segments,
    is_within,
    kind_of,
    matches_place,
    normalise_path,
)
from ragmetrics.paths import PathVerdict, examine_paths
from records.results import RetrievedChunk, TestResult
from terminal.tables import counted

SEPARATORS = (
    " / ", " » ", " › ", " → ", " :: ", " | ", "/", "»", "›", "→", "::", "|", ">",
    " - ", " – ", " — ", "\\", ".", ",",
)  # fmt: skip
"""Signs that bots put between headings; those with blanks first, since a heading may contain the
bare sign."""

NO_LABELS = (
    "No labels to check against: label some questions, then repeat this command with --force."
)

MOST_LEVELS = 2
"""Leading headings that a bot may put in front of those of the labels."""


@dataclass(frozen=True)
class AskedQuestion:
    """One answer with the gold places of its case, and the quotes of each."""

    gold: tuple[Anchor, ...]
    chunks: tuple[RetrievedChunk, ...]
    quotes: tuple[tuple[str, ...], ...] = ()

    def places(self) -> list[tuple[Anchor, tuple[str, ...]]]:
        return list(zip(self.gold, self.quotes or [()] * len(self.gold), strict=True))


@dataclass(frozen=True)
class PlaceCheck:
    """Counts of gold places that the answers contain. ``example``: the labels' heading and the
    bot's.

    ``headings`` counts those whose heading matches, or whose quote is found where they have none:
    ``quotes`` of them have a quote, of which ``untold`` could not be looked for in cut or missing
    texts. ``below``: further places whose section was retrieved only by parts without the quote:
    the headings agree. ``coarse``: the bot's heading is only a part of the labels': whole sections
    can match.
    """

    gold: int = 0
    paths: int = 0
    headings: int = 0
    example: tuple[str, str] | None = None
    coarse: bool = False
    quotes: int = 0
    untold: int = 0
    below: int = 0

    @property
    def places(self) -> str:
        """The parts of a place that were compared besides files."""
        return "headings" if not self.quotes else "places" if self.quotes < self.gold else "quotes"


def asked_of(result: TestResult, gold: Sequence[GoldPlace]) -> AskedQuestion:
    """An answer beside the gold supports of its case, each place once."""
    places = dict.fromkeys((place_of_gold(support), tuple(quotes_of(support))) for support in gold)
    anchors, quotes = zip(*places, strict=True) if places else ((), ())
    return AskedQuestion(anchors, tuple(result.chunks()), quotes)


def check_places(asked: Sequence[AskedQuestion]) -> PlaceCheck:
    """Count the gold places whose file was retrieved, and those whose place was retrieved, too."""
    counts = Counter[str]()
    example: tuple[str, str] | None = None
    coarse = False
    for each in asked:
        passages = [passage for chunk in each.chunks if (passage := passage_of(chunk)) is not None]
        for place, quotes in each.places():
            same_file = [passage for passage in passages if passage.anchor.path == place.path]
            headings = [passage.anchor.heading for passage in same_file]
            verdicts = [matches_place(place, quotes, passage) for passage in same_file]
            is_named = place.heading and any(is_within(own, place.heading) for own in headings)
            counts["gold"] += 1
            counts["quotes"] += kind_of(place, quotes) == "quote"
            counts["paths"] += bool(same_file)
            if any(verdicts):
                counts["headings"] += 1
                continue
            counts["below"] += bool(is_named)
            if None in verdicts:
                counts["untold"] += 1
            elif not is_named and same_file and place.heading:
                shown = max(headings, key=lambda own: _shared(own, place.heading))
                example = example or (" > ".join(place.heading), " > ".join(shown))
                coarse = coarse or (bool(shown) and shown == place.heading[: len(shown)])
    return PlaceCheck(**counts, example=example, coarse=coarse)


def first_and_last_right(asked: Sequence[AskedQuestion]) -> tuple[float, float] | None:
    """The shares of answers whose first passage is at a gold place, and whose last is.

    None without an answer that has two passages and gold.
    """
    able = [each for each in asked if each.gold and len(each.chunks) > 1]
    if not able:
        return None

    def share(place: int) -> float:
        right = 0
        for each in able:
            passage = passage_of(each.chunks[place])
            right += passage is not None and any(
                matches_place(gold, quotes, passage) for gold, quotes in each.places()
            )
        return right / len(able)

    return share(0), share(-1)


def _shared(heading: Sequence[str], other: Sequence[str]) -> int:
    return len(set(heading) & set(other))


def suggest(asked: Sequence[AskedQuestion], known_paths: Sequence[str]) -> dict[str, Any]:
    """The settings with which more gold places match, as a profile writes them.

    ``known_paths``: the paths of all labels. A setting that changes nothing is left out.
    """
    cut = path_verdict(asked, known_paths).cut
    files = sorted(set(map(normalise_path, known_paths))) if cut.by_key else []
    form = PlaceForm(path_root=cut.root, path_cut=" ".join(cut.steps), path_files=tuple(files))
    settings = {"path_root": form.path_root, "path_cut": form.path_cut, "path_files": files}
    pairs = [
        (place.heading, chunk.heading_path or "")
        for each in asked
        for place in each.gold
        for chunk in each.chunks
        if place.heading and _path_by(form, chunk.rel_path or "") == place.path
    ]
    return {name: value for name, value in settings.items() if value} | _heading_settings(pairs)


def path_verdict(asked: Sequence[AskedQuestion], known_paths: Iterable[str]) -> PathVerdict:
    """Which gold files these answers have, and by which cut of the bot's paths more."""
    return examine_paths(
        (
            ([place.path for place in each.gold], [chunk.rel_path or "" for chunk in each.chunks])
            for each in asked
        ),
        known_paths,
    )


def _path_by(form: PlaceForm, path: str) -> str:
    return normalise_path(form.applied({"rel_path": path})["rel_path"])


def _heading_settings(pairs: Sequence[tuple[tuple[str, ...], str]]) -> dict[str, str]:
    """``pairs``: the segments of a gold heading, and what the bot calls a passage of that file."""

    def matched(separator: str, root: str) -> int:
        golds = {
            gold for gold, text in pairs if _segments(text, separator, root)[: len(gold)] == gold
        }
        return len(golds)

    best, most = {}, matched("", "")
    roots = {"": 0, ANY_TITLE: MOST_LEVELS + 1} | {
        SEPARATOR.join(_segments(text, separator, "")[:level]): level
        for separator in ("", *SEPARATORS)
        for _, text in pairs
        for level in range(1, MOST_LEVELS + 1)
    }
    by_level = sorted(roots, key=lambda each: (roots[each], each))
    for root, separator in product(by_level, ("", *SEPARATORS)):
        if (count := matched(separator, root)) > most:
            settings = {"heading_separator": separator, "heading_root": root}
            best, most = {name: value for name, value in settings.items() if value}, count
    return best


def _segments(text: str, separator: str, root: str) -> tuple[str, ...]:
    """The headings of a bot as a profile with these settings reads them."""
    read = PlaceForm(separator, root).applied({"heading_path": text})
    return heading_segments(read["heading_path"])


@dataclass(frozen=True)
class PlaceVerdict:
    """The result of the check. ``places``: with the proposed ``settings``; ``before``: without."""

    places: PlaceCheck
    before: PlaceCheck = PlaceCheck()
    settings: Mapping[str, Any] = field(default_factory=dict)
    paths: PathVerdict = PathVerdict()
    has_paths: bool = True
    """Whether paths of passages are mapped at all."""

    def sentences(self) -> list[str]:
        """Remarks on the counts, the most important first."""
        check, before = self.places, self.before
        shown = " and ".join(f'{name} = "{value}"' for name, value in self.settings.items())
        label, bot = check.example or ("", "")
        remarks = (
            (
                shown,
                f"Without {shown}, {before.paths} of {before.gold} gold files and "
                f"{before.headings} of {before.gold} gold {before.places} match.",
            ),
            (
                check.untold,
                f"{counted(check.untold, 'quote')} could not be searched: the passages' text is "
                "missing or cut. Map it with --set chunk.text=…, or score with --match doc.",
            ),
            (
                check.below,
                f"Of {counted(check.below, 'labelled section')} only parts without the label's "
                "quote were retrieved: the headings agree, but these passages do not count.",
            ),
            (check.example, f'A heading that does not match: labels "{label}", bot "{bot}".'),
            (
                check.coarse,
                "Some of the bot's headings end above those of the labels: such a passage counts "
                "only if its text contains the label's snippet.",
            ),
        )
        return [text for holds, text in remarks if holds and self.has_paths and check.gold]
