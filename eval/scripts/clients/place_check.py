"""Do the places that a bot names agree with those of the labels? Three answers tell; pure.

What a bot says of a passage (a path below another folder, headings with another separator) can keep
every label from matching, and then all retrieval figures are zero without anything being wrong with
the bot. ``suggest`` finds the settings of a profile that make them match.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from clients.mapping import ANY_TITLE, PlaceForm
from ragmetrics.matching import (
    SEPARATOR,
    Anchor,
    anchor,
    heading_segments,
    matches_anchor,
    normalise_path,
)
from records.results import RetrievedChunk, TestResult
from terminal.tables import counted

SEPARATORS = ("/", "»", "›", "→", "::", "|", ">", " - ", " – ", " — ", "\\", ".", ",")

MOST_LEVELS = 2
"""Leading headings that a bot may put in front of those of the labels."""


@dataclass(frozen=True)
class AskedQuestion:
    """One answer with the gold places of its case."""

    gold: tuple[Anchor, ...]
    chunks: tuple[RetrievedChunk, ...]


@dataclass(frozen=True)
class PlaceCheck:
    """How many gold places the answers hold. ``example``: the labels' heading and the bot's."""

    gold: int = 0
    paths: int = 0
    headings: int = 0
    example: tuple[str, str] | None = None
    coarse: bool = False
    """True when the bot's heading is only a part of the labels': whole sections can match."""


def asked_of(result: TestResult, gold: Sequence[tuple[str, str]]) -> AskedQuestion:
    """An answer beside the (rel_path, heading_path) of its gold supports."""
    places = tuple(dict.fromkeys(anchor(path, heading) for path, heading in gold))
    return AskedQuestion(places, tuple(result.chunks()))


def check_places(asked: Sequence[AskedQuestion]) -> PlaceCheck:
    """Counts gold places of which the file was retrieved, and of which the heading, too."""
    gold = paths = headings = 0
    example: tuple[str, str] | None = None
    coarse = False
    for each in asked:
        anchors = [anchor(chunk.rel_path or "", chunk.heading_path) for chunk in each.chunks]
        for place in each.gold:
            gold += 1
            same_file = [chunk for chunk in anchors if chunk.path == place.path]
            paths += bool(same_file)
            if any(matches_anchor(place, chunk) for chunk in same_file):
                headings += 1
            elif same_file:
                shown = max(same_file, key=lambda chunk: _shared(chunk.heading, place.heading))
                example = example or (" > ".join(place.heading), " > ".join(shown.heading))
                begins = shown.heading == place.heading[: len(shown.heading)]
                coarse = coarse or (begins and bool(shown.heading))
    return PlaceCheck(gold, paths, headings, example, coarse)


def _shared(heading: Sequence[str], other: Sequence[str]) -> int:
    return len(set(heading) & set(other))


def suggest(asked: Sequence[AskedQuestion], known_paths: Sequence[str]) -> dict[str, str]:
    """The settings with which more gold places match: path_root, heading_separator, heading_root.

    ``known_paths``: the paths of all labels. A setting that changes nothing is left out.
    """
    settings: dict[str, str] = {}
    root = _path_root(asked, {normalise_path(path) for path in known_paths})
    if root:
        settings["path_root"] = root
    pairs = [
        (place.heading, chunk.heading_path or "")
        for each in asked
        for place in each.gold
        for chunk in each.chunks
        if place.heading and _without_root(chunk.rel_path or "", root) == place.path
    ]
    return settings | _heading_settings(pairs)


def _path_root(asked: Sequence[AskedQuestion], known: set[str]) -> str:
    """The folder that most paths of the bot begin with and those of the labels do not."""
    roots: Counter[str] = Counter()
    exact = 0
    for chunk in (chunk for each in asked for chunk in each.chunks):
        path = normalise_path(chunk.rel_path or "")
        if path in known:
            exact += 1
            continue
        tails = [place for place in known if path.endswith(f"/{place}")]
        if tails:
            longest = max(tails, key=len)
            roots[path[: -len(longest) - 1]] += 1
    (root, count), *_ = roots.most_common(1) or [("", 0)]
    return root if count > exact else ""


def _without_root(path: str, root: str) -> str:
    read = PlaceForm(path_root=root).applied({"rel_path": path})
    return normalise_path(read["rel_path"])


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
    for root, separator in product(
        sorted(roots, key=lambda each: (roots[each], each)), ("", *SEPARATORS)
    ):
        if (count := matched(separator, root)) > most:
            settings = {"heading_separator": separator, "heading_root": root}
            best, most = {name: value for name, value in settings.items() if value}, count
    return best


def _segments(text: str, separator: str, root: str) -> tuple[str, ...]:
    """The headings of a bot as a profile with these settings reads them."""
    read = PlaceForm(separator, root).applied({"heading_path": text})
    return heading_segments(read["heading_path"])


@dataclass(frozen=True)
class Measurable:
    """One perspective: can it be measured with this bot, and why (not)."""

    name: str
    possible: bool
    why: str


def measurable(
    fields: Mapping[str, Mapping[str, str]], results: Sequence[TestResult], stable: bool | None
) -> list[Measurable]:
    """What the mapped fields allow, in words. ``stable``: two equal questions bring equal ids."""
    chunks = [chunk for result in results for chunk in result.chunks()]
    texts = sum(bool(chunk.text) for chunk in chunks)
    return [
        _retrieval(fields, chunks, stable),
        _texts(texts, len(chunks)),
        Measurable(
            "citations",
            "references" in fields["response"],
            "the bot names what it cites"
            if "references" in fields["response"]
            else "no list of citations: only the [n] marks in the answer's text are read",
        ),
        Measurable(
            "abstention",
            True,
            "the bot says so itself"
            if "abstained" in fields["response"]
            else "the bot does not say so: told from the answer's words",
        ),
        Measurable("latency", True, _latency(results)),
        Measurable(
            "tokens and cost",
            any(result.usage or result.cost_usd is not None for result in results),
            "the bot counts them"
            if any(result.usage or result.cost_usd is not None for result in results)
            else "the bot reports neither",
        ),
    ]


def _retrieval(
    fields: Mapping[str, Mapping[str, str]], chunks: Sequence[RetrievedChunk], stable: bool | None
) -> Measurable:
    if "retrieved" not in fields["response"]:
        return Measurable("retrieval", False, "the answer holds no list of passages")
    if not chunks:
        return Measurable("retrieval", False, "no passage came back for any of the questions")
    if "rel_path" not in fields["chunk"]:
        if stable is False:
            why = "no rel_path, and ids change from call to call: labels cannot match"
            if any(chunk.text for chunk in chunks):
                return Measurable("retrieval", True, f"{why}, but --match text can")
            return Measurable("retrieval", False, why)
        return Measurable("retrieval", True, "no rel_path: labels by chunk id only")
    if "heading_path" not in fields["chunk"]:
        return Measurable("retrieval", True, "by file; no heading_path: labels by whole files only")
    return Measurable("retrieval", True, "by file and heading")


def _texts(texts: int, chunks: int) -> Measurable:
    name = "context, groundedness, embeddings"
    if texts:
        return Measurable(name, True, f"{texts} of {counted(chunks, 'passage')} came with a text")
    return Measurable(name, False, "the passages have no text")


def _latency(results: Sequence[TestResult]) -> str:
    stages = sorted({stage for result in results for stage in result.latency_ms} - {"total"})
    names = {"first_token": "the time to the first token"}
    shown = ", ".join(names.get(stage, stage) for stage in stages)
    return f"total, {shown}" if shown else "the whole call"


@dataclass
class PlaceVerdict:
    """All that the check says: counts, settings, and sentences."""

    places: PlaceCheck
    before: PlaceCheck
    settings: dict[str, str] = field(default_factory=dict)
    stable: bool | None = None

    def sentences(self) -> list[str]:
        """In words, the most important first."""
        return [*self._place_sentences(), *self._id_sentences()]

    def _place_sentences(self) -> list[str]:
        after, before = self.places, self.before
        if not after.gold:
            return ["No gold supports to check against: name a labelled set with --eval-set."]
        if self.settings:
            shown = ", ".join(f'{name} = "{value}"' for name, value in self.settings.items())
            lines = [
                f"As the bot writes them, {before.paths} of {before.gold} gold files and "
                f"{before.headings} of {before.gold} gold headings match.",
                f"With {shown}: {after.paths} of {after.gold} gold files were retrieved; "
                f"{after.headings} of these {after.paths} headings match.",
            ]
        else:
            lines = [
                f"{after.paths} of {after.gold} gold files were retrieved; {after.headings} of "
                f"these {after.paths} headings match."
            ]
        if after.example is not None:
            label, bot = after.example
            lines.append(f'A heading that does not match: labels "{label}", bot "{bot}".')
        if after.coarse:
            lines.append(
                "Some of the bot's headings end above those of the labels: such a passage counts "
                "only where its text holds the label's snippet."
            )
        return lines

    def _id_sentences(self) -> list[str]:
        if self.stable is None:
            return []
        if self.stable:
            return ["Passage ids were the same when a question was asked twice."]
        return [
            "Passage ids changed when a question was asked twice: label by file and heading, not "
            "by chunk id."
        ]
