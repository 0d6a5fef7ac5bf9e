"""Finds the properties that failing cases share: slices of a set in which more cases fail than
elsewhere.

Two families of slices share the level of 5 % evenly. What a case is (labels, words, language,
length, topic) is tested by permuting the effects of clusters; where it is (turn, gold folder, gold
document) by permuting cases, so that says something about these documents alone, as it does of a
label that too few clusters have. Pairs of slices are tried inside a slice that was found, and
nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from decisions.case_changes import PairVerdicts
from decisions.case_verdict import RunVerdicts
from ragmetrics.stats import tally
from ragmetrics.stats.subsets import MarkedItems, adjusted_p, clustered_p
from ragmetrics.text.language import guess
from ragmetrics.text.topics import telling_words, topics, word_sets
from ragmetrics.text.words import fold, words
from records.cases import TestCase, ignore, iter_cases
from records.clusters import AUTO, SECTION, cluster_number, clusters_of, is_of_document, label_of
from records.errors import Problem, StorageError
from records.id_numbers import id_number
from records.labels import read_labels
from records.targets import read_decide
from terminal.page import Block, Heading, Prose, items, p_words
from terminal.tables import counted, plain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    Bools = NDArray[np.bool_]

Embed = Callable[[Sequence[str]], "Vectors | None"]
"""Unit vectors of questions, shape (n, d); None where there is no model, or no vector of them."""

ALPHA = 0.05

FEWEST, FEWEST_MARKED = 5, 3
"""Cases of a slice, and failing ones among them, from which on it is tried and reported."""

FEWEST_CLUSTERS = 3
"""Clusters that a slice has, and clusters of its rest, where it says something about others."""

MOST_CASES = 5_000
"""Of larger sets every second, third … case is looked at."""

SENTENCES = 3

_WEIGHTS = {"label": 16.0, "topic": 2.0, "word": 1.0}
"""How the level is shared among the slices of a family: labels are few and meant by people."""

_WORD_SHARE, _SHORT, _LONG = 0.02, 0.25, 0.75

_LABELS = (
    *("category", "difficulty", "query_type", "expected_outcome", "recency_conflict_rule"),
    *("attack_category", "leak_category"),
)

_LISTS = {"tags": "tag", "user_roles": "role", "vaults": "vault", "folders": "asked folder"}

_NAMES = """
ar Arabic cs Czech da Danish de German el Greek en English es Spanish fi Finnish fr French hi Hindi
hr Croatian hu Hungarian id Indonesian it Italian ja Japanese nl Dutch pl Polish pt Portuguese
ro Romanian ru Russian sv Swedish th Thai tr Turkish vi Vietnamese zh Chinese
"""

_LANGUAGES = dict(re.findall(r"(\w+) (\w+)", _NAMES))


class SliceMember(NamedTuple):
    """A case as the slices need it. ``labels``: what the case is, ``places``: where it is, both as
    they are written behind "Questions". ``cluster``: cases with the same number share their luck.
    """

    case_id: str
    question: str
    labels: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    cluster: int = 0


@dataclass(frozen=True)
class CaseSlice:
    """A slice and the cases in it. ``inside``, ``outside``: marked cases and all. ``before``: the
    same of an earlier time. ``p``: for both families together."""

    phrase: str
    is_place: bool
    inside: tuple[int, int]
    outside: tuple[int, int]
    p: float
    case_ids: tuple[str, ...]
    marked_ids: frozenset[str] = frozenset()
    before: tuple[tuple[int, int], tuple[int, int]] | None = None
    within: str = ""
    """The part of it that is worse still, in words."""

    def says(self, verb: str) -> str:
        """``Questions with tag x fail more often: 2 of 3, against 5 of 9 others (p = .036)``."""
        whom = "questions" if verb != "broke" else "of the questions that were ok before, those"
        start = f"In these documents, {whom}" if self.is_place else whom[0].upper() + whom[1:]
        inside, outside = (f"{part:,} of {n:,}" for part, n in (self.inside, self.outside))
        outside += " others"
        if self.before is not None:
            earlier = [f"{part:,} of {n:,}" for part, n in self.before]
            inside, outside = f"{inside} ({earlier[0]} before)", f"{outside} ({earlier[1]})"
        text = f"{start} {self.phrase} {verb} more often: {inside}, against {outside}"
        text += f" ({p_words(self.p)})"
        return f"{text}; {self.within}" if self.within else text

    def to_dict(self, verb: str) -> dict[str, Any]:
        """As JSON data."""
        return {
            "says": self.says(verb),
            "slice": self.phrase,
            "in_these_documents": self.is_place,
            "inside": list(self.inside),
            "outside": list(self.outside),
            "before": self.before,
            "p": self.p,
            "found": self.p <= ALPHA,
            "cases": list(self.case_ids),
        }


@dataclass(frozen=True)
class Slices:
    """The slices that were tried, the surest first. ``verb``: what the marked cases do."""

    tried: tuple[CaseSlice, ...] = ()
    verb: str = "fail"
    step: int = 1

    @property
    def significant(self) -> list[CaseSlice]:
        """Those in which more cases are marked than chance explains."""
        return [part for part in self.tried if part.p <= ALPHA]

    def sentences(self) -> list[str]:
        """Up to three slices in words; the surest of those that share most marked cases."""
        named: list[CaseSlice] = []
        for part in self.significant:
            others = frozenset[str]().union(*(other.marked_ids for other in named))
            if 2 * len(part.marked_ids & others) <= len(part.marked_ids):
                named.append(part)
        part_of = f", of every {self.step}th case" if self.step > 1 else ""
        return [f"{part.says(self.verb)}{part_of}." for part in named[:SENTENCES]]

    def every(self, most: int = 12) -> list[str]:
        """The slices that were found and the next ones, a line each."""
        if not self.tried:
            return ["No slice could be tried: too few cases, or none or all of them are marked."]
        shown = self.tried[: max(most, len(self.significant))]
        return [("+ " if part.p <= ALPHA else "  ") + part.says(self.verb) for part in shown]

    def to_dict(self) -> dict[str, Any]:
        """As JSON data: the slices that were found."""
        return {
            "verb": self.verb,
            "tried": len(self.tried),
            "every": self.step,
            "found": [part.to_dict(self.verb) for part in self.significant],
        }


def slice_blocks(slices: Slices | None, *, every: bool = True) -> list[Block]:
    """The slices for a page: the sentences alone, or all that were found and the next ones."""
    if slices is None or not every:
        return [Prose(line) for line in slices.sentences()] if slices else []
    return [Heading(f"Slices of cases that {slices.verb}"), *items(slices.every())]


# -- what is looked at --------------------------------------------------------------------------


def common_slices(
    of: RunVerdicts | PairVerdicts,
    eval_set: Path,
    labels_dir: Path | None,
    embed: Embed | None = None,
) -> Slices:
    """The properties that the failing cases of a run share; for two runs the cases that broke,
    among those that were ok before."""
    run = of if isinstance(of, RunVerdicts) else of.new
    marks: dict[int, bool] = {}
    if isinstance(of, RunVerdicts):
        marks = {case: verdict.fails for case, verdict in run.measured()}
    elif of and not of.unknown:
        marks |= dict.fromkeys(of.ids("ok still", run.cases), False)
        marks |= dict.fromkeys(of.ids("broke", run.cases), True)
    found = marked_slices(marks, eval_set, labels_dir, embed)
    return replace(found, verb="fail" if run is of else "broke")


def marked_slices(
    marks: Mapping[int, bool], eval_set: Path, labels_dir: Path | None, embed: Embed | None = None
) -> Slices:
    """The same of any marks by the number of a case's id; cases without one do not count. Of more
    than MOST_CASES every second, third … case of the set is looked at."""
    step = -(-len(marks) // MOST_CASES) or 1
    if not any(marks.values()) or not eval_set.exists():
        return Slices()
    labels, _ = read_labels(
        labels_dir, ignore, eval_set
    )  # faults of both files are reported by scoring
    cases = sliced(list(islice(iter_cases(eval_set, ignore, labels), 0, None, step)))
    return replace(find_slices(cases, marks, embed), step=step)


def sliced(cases: Sequence[TestCase]) -> list[SliceMember]:
    """Cases of a set as slices see them."""
    few = clusters_of(cases).few_documents(read_decide().documents)
    by = SECTION if few else AUTO
    return [
        SliceMember(
            case.id,
            case.question,
            tuple(_labels_of(case)),
            tuple(dict.fromkeys(_places_of(case))),
            cluster_number(label_of(case, by)),
        )
        for case in cases
    ]


def _labels_of(case: TestCase) -> Iterator[str]:
    for name in _LABELS:
        if value := getattr(case, name):
            yield f"with {name.replace('_', ' ')} {_shown(value)}"
    if case.answerable is not None:
        yield "that have an answer" if case.answerable else "that have no answer"
    for name, noun in _LISTS.items():
        yield from (f"with {noun} {_shown(value)}" for value in getattr(case, name))


def _places_of(case: TestCase) -> Iterator[str]:
    if case.turn is not None:
        yield f"at turn {case.turn}"
        yield from (f"at turn {turn} or later" for turn in range(2, case.turn + 1))
    for gold in case.gold_supports:
        yield from places_in(gold.rel_path)
    for name in case.relevant_docs:
        yield from places_in(name)


def places_in(path: str) -> Iterator[str]:
    """A document and the folders that it is in, as they are written behind "Questions"."""
    yield f"on {_shown(path)}"
    parents = (str(folder) for folder in PurePosixPath(path).parents)
    yield from (f"on the folder {_shown(name)}" for name in parents if name not in (".", "/"))


def _shown(value: object) -> str:
    """Foreign text of one line, without the sign that a filter cannot have."""
    return " ".join(plain(str(value), 60).replace('"', "'").split())


# -- the search ---------------------------------------------------------------------------------


def find_slices(
    cases: Sequence[SliceMember], marks: Mapping[int, bool], embed: Embed | None = None
) -> Slices:
    """The slices in which more cases are marked. ``marks``: by the number of a case's id; cases
    without a mark do not count."""
    cases = [case for case in cases if id_number(case.case_id) in marks]
    return _search(cases, [marks[id_number(case.case_id)] for case in cases], (), (), embed)


def find_rise(
    reference: Sequence[SliceMember],
    before: Sequence[bool],
    cases: Sequence[SliceMember],
    now: Sequence[bool],
    embed: Embed | None = None,
) -> Slices:
    """The slices in which the share of marked cases rose more than in the others.

    ``reference`` and ``before``: cases of an earlier time and their marks; ``cases``, ``now``:
    those since. A slice that always had more marks, or has more traffic now, is no find.
    """
    return replace(_search(cases, now, reference, before, embed), verb="rose")


def _search(
    cases: Sequence[SliceMember],
    marks: Sequence[bool],
    reference: Sequence[SliceMember],
    before: Sequence[bool],
    embed: Embed | None,
) -> Slices:
    import numpy as np

    marked, earlier, n = np.array(marks, bool), np.array(before, bool), len(cases)
    if not FEWEST_MARKED <= marked.sum() < n:
        return Slices()
    both = [*cases, *reference]
    vectors = embed([case.question for case in both]) if embed and n >= 2 * FEWEST else None
    families = _families(both, n, vectors)
    if not reference:
        families = _by_clusters(families, cases)
    used = sum(bool(family) for family in families)
    tried: list[CaseSlice] = []
    for is_place, family in enumerate(families):
        clusters = _clusters(cases, without_documents=bool(is_place))
        if not family:
            continue
        members = np.array([mask for _, _, mask in family])
        weights = np.array([_WEIGHTS[kind] for kind, _, _ in family])
        rng, old = np.random.default_rng(is_place), None
        if reference:
            before_by = _clusters(reference, without_documents=bool(is_place))
            old = MarkedItems(members[:, n:], earlier, before_by, whole=not is_place)
        if is_place or old:
            items = MarkedItems(members[:, :n], marked, clusters, whole=not is_place)
            p = adjusted_p(items, weights, rng, before=old)
        else:
            p = clustered_p(members, marked.astype(float), clusters, weights, rng)
        for (_, phrase, mask), value in zip(family, p.tolist(), strict=True):
            found = _slice(cases, marked, phrase, bool(is_place), mask[:n], min(1.0, value * used))
            if found.inside[0] < FEWEST_MARKED:
                continue
            if old is not None:
                found = replace(found, before=_shares(earlier, mask[n:]))
            if found.p <= ALPHA and old is None:
                found = replace(found, within=_within(families, mask, marked, cases))
            tried.append(found)
    return Slices(tuple(sorted(tried, key=_surest)))


def _surest(part: CaseSlice) -> tuple[float, float]:
    """Sorts slices by p, then by how many more are marked than the share of the others gives."""
    (marked, n), (others, rest) = part.inside, part.outside
    return part.p, n * others / max(rest, 1) - marked


def _clusters(cases: Sequence[SliceMember], *, without_documents: bool = False) -> list[int]:
    """A number for each case's cluster; a case without one is a cluster by itself."""
    numbers = (case.cluster for case in cases)
    own = (0 if without_documents and is_of_document(number) else number for number in numbers)
    return [number or -1 - place for place, number in enumerate(own)]


def _shares(marked: Bools, mask: Bools) -> tuple[tuple[int, int], tuple[int, int]]:
    """Marked cases and all, inside and outside of a slice."""
    inside, n = int(marked[mask].sum()), int(mask.sum())
    return (inside, n), (int(marked.sum()) - inside, len(marked) - n)


def _slice(
    cases: Sequence[SliceMember],
    marked: Bools,
    phrase: str,
    is_place: bool,
    mask: Bools,
    p: float,
) -> CaseSlice:
    ids = tuple(case.case_id for case, member in zip(cases, mask, strict=True) if member)
    failing = frozenset(
        case.case_id for case, member in zip(cases, mask & marked, strict=True) if member
    )
    return CaseSlice(phrase, is_place, *_shares(marked, mask), p, ids, failing)


class FallenSlice(NamedTuple):
    """A slice that fell between two runs, or whose rest did (``inverse``). ``inside``, ``outside``:
    cases that broke, that were fixed, and all."""

    phrase: str
    inverse: bool
    inside: tuple[int, int, int]
    outside: tuple[int, int, int]
    p: float

    def says(self) -> str:
        """``Questions with tag de: 30 of 30 broke; others: 0 of 90, 30 fixed (p < .001).``"""
        parts: list[str] = []
        for broke, fixed, n in (self.inside, self.outside):
            verb = "" if parts else " broke"
            parts.append(f"{broke:,} of {n:,}{verb}" + (f", {fixed:,} fixed" if fixed else ""))
        start = "All questions but those" if self.inverse else "Questions"
        return f"{start} {self.phrase}: {parts[0]}; others: {parts[1]} ({p_words(self.p)})."


NAMED_FALLEN = 2
"""Slices that fell and are named beside a verdict."""

FALLEN_ALPHA = 0.04
"""The level at which they are named. At .05 as many as .065 of simulated pairs without a change
name one, since correlated clusters are permuted by an approximation; at this level .042 did of
5,400 others, and .055 in the largest of nine cells (bench/decisions_slices.py)."""


def fallen_slices(pair: PairVerdicts, eval_set: Path, labels_dir: Path | None) -> list[FallenSlice]:
    """The slices that fell by more than the rest and by more than chance, the surest first.

    What broke counts against what was fixed, so a slice is found also where the whole is the same.
    Only what a case is counts: labels, words, language, length. Of several slices of the same cases
    the surest is named.
    """
    moves = {} if pair.unknown or not pair else pair.moves()
    if sum(move < 0 for move in moves.values()) < FEWEST_MARKED or not eval_set.exists():
        return []
    labels, _ = read_labels(labels_dir, ignore, eval_set)
    step = -(-len(moves) // MOST_CASES) or 1
    chosen = islice(iter_cases(eval_set, ignore, labels), 0, None, step)
    cases = sliced([case for case in chosen if id_number(case.id) in moves])
    return fallen_of(cases, [moves[id_number(case.case_id)] for case in cases])


def fallen_of(cases: Sequence[SliceMember], moves: Sequence[int]) -> list[FallenSlice]:
    """The same of cases that are at hand. ``moves``: -1 for one that broke, 1 for one fixed."""
    import numpy as np

    values = np.array(moves, float)
    family = _by_clusters(_families(cases, len(cases), None), cases)[0] if cases else []
    if not family or (values < 0).sum() < FEWEST_MARKED:
        return []
    members = np.array([mask for _, _, mask in family])
    weights = np.array([_WEIGHTS[kind] for kind, _, _ in family])
    rng = np.random.default_rng(3)
    clusters = _clusters(cases)
    tested = clustered_p(members, values, clusters, weights, rng, two_sided=True)
    found: list[tuple[FallenSlice, Bools]] = []
    for at in np.argsort(tested, kind="stable").tolist():
        if tested[at] > FALLEN_ALPHA or len(found) == NAMED_FALLEN:
            break
        inverse = bool(values[members[at]].mean() > values.mean())
        mask = ~members[at] if inverse else members[at]
        broke = (values < 0) & mask
        if broke.sum() <= ((values > 0) & mask).sum() or any(
            2 * (broke & other).sum() > broke.sum() for _, other in found
        ):
            continue
        sides = [
            (int((values[own] < 0).sum()), int((values[own] > 0).sum()), int(own.sum()))
            for own in (mask, ~mask)
        ]
        part = FallenSlice(family[at][1], inverse, sides[0], sides[1], float(tested[at]))
        found.append((part, mask))
    return [part for part, _ in found]


Family = list[tuple[str, str, "Bools"]]
"""Slices: their kind, what is written behind "Questions", and whether each case is in them."""


def _within(
    families: Sequence[Family], outer: Bools, marked: Bools, cases: Sequence[SliceMember]
) -> str:
    """The part of a slice that is worse than its rest, in words; "" for none."""
    import numpy as np

    own, size = np.flatnonzero(outer), int(outer.sum())
    parts = [
        (kind, phrase, mask[own])
        for kind, phrase, mask in families[0]
        if FEWEST <= (outer & mask).sum() <= size - FEWEST
    ]
    if not parts or not 0 < marked[own].sum() < size:
        return ""
    weights = np.array([_WEIGHTS[kind] for kind, _, _ in parts])
    clusters = np.array(_clusters(cases))[own].tolist()
    items = MarkedItems(np.array([mask for _, _, mask in parts]), marked[own], clusters)
    p = adjusted_p(items, weights, np.random.default_rng(2))
    best = int(p.argmin())
    if p[best] > ALPHA / 2:
        return ""
    (inside, n), _ = _shares(marked[own], parts[best][2])
    return f"among them those {parts[best][1]}: {inside:,} of {n:,} ({p_words(float(p[best]))})"


def _families(cases: Sequence[SliceMember], n: int, vectors: Vectors | None) -> tuple[Family, ...]:
    """The slices to try of the first ``n`` cases, by what a case is and by where it is.

    A slice has at least FEWEST cases and at most half of all; of equal ones the first stays.
    """
    import numpy as np

    families: list[Family] = []
    for own in (_kinds(cases, vectors), _places(cases)):
        distinct: dict[bytes, tuple[str, str, Bools]] = {}
        phrases: set[str] = set()
        for kind, phrase, mask in own:
            mask = np.asarray(mask, bool)
            if FEWEST <= mask[:n].sum() <= n / 2 and phrase not in phrases:
                phrases.add(phrase)
                distinct.setdefault(mask[:n].tobytes(), (kind, phrase, mask))
        families.append(list(distinct.values()))
    return tuple(families)


def _by_clusters(families: tuple[Family, ...], cases: Sequence[SliceMember]) -> tuple[Family, ...]:
    """The same slices; what a case is counts as a place where too few clusters have it or lack it.

    A slice that too few conversations or groups have is left out: it tells of their luck alone.
    """
    kinds, places = families
    spread = _spread_over(_clusters(cases))
    spread_within = _spread_over(_clusters(cases, without_documents=True))
    tried = {mask.tobytes() for _, _, mask in places}
    moved = [
        part
        for part in kinds
        if not spread(part[2]) and spread_within(part[2]) and part[2].tobytes() not in tried
    ]
    return [part for part in kinds if spread(part[2])], [*places, *moved]


def _spread_over(clusters: Sequence[int]) -> Callable[[Bools], bool]:
    """Whether enough clusters have cases in a slice, and enough have cases outside of it."""
    import numpy as np

    _, number = np.unique(clusters, return_inverse=True)

    def spread(mask: Bools) -> bool:
        return all(len(np.unique(number[side])) >= FEWEST_CLUSTERS for side in (mask, ~mask))

    return spread


Masks = Iterator[tuple[str, str, "Sequence[bool] | Bools"]]


def _kinds(cases: Sequence[SliceMember], vectors: Vectors | None) -> Masks:
    """Slices by what a case is."""
    import numpy as np

    yield from (("label", *part) for part in _having([case.labels for case in cases]))
    questions = [case.question for case in cases]
    languages = [guess(question) for question in questions]
    named = [(f"in {_LANGUAGES.get(name, name)}",) if name else () for name in languages]
    yield from (("label", *part) for part in _having(named))
    yield "label", "with a number", [any(map(str.isdecimal, text)) for text in questions]
    lengths = np.array([len(words(fold(text))) for text in questions])
    short, long = (int(np.quantile(lengths, share)) for share in (_SHORT, _LONG))
    yield "label", f"of at most {counted(short, 'word')}", lengths <= short
    yield "label", f"of {counted(long, 'word')} or more", lengths >= long
    stems, spelled = word_sets(questions)
    least = max(FEWEST, _WORD_SHARE * len(cases))
    for key, mask in _having(stems):
        if sum(mask) >= least:
            yield "word", f"with the word '{_shown(spelled[key])}'", mask
    if vectors is None:
        return
    for number, division in enumerate(topics(vectors)):
        for topic in range(int(division.max()) + 1):
            mask = division == topic
            if mask.sum() >= FEWEST:
                telling = [_shown(spelled[key]) for key in telling_words(stems, mask.tolist())]
                name = ", ".join(telling) or f"topic {number + 1}.{topic + 1}"
                yield "topic", f"about {name}", mask


def _places(cases: Sequence[SliceMember]) -> Masks:
    """Slices by where a case is."""
    yield from (("label", *part) for part in _having([case.places for case in cases]))


def _having(values: Sequence[Iterable[str]]) -> Iterator[tuple[str, Bools]]:
    """Each value that FEWEST cases have, and which cases have it."""
    import numpy as np

    rows: dict[str, list[int]] = {}
    for row, own in enumerate(values):
        for value in own:
            rows.setdefault(value, []).append(row)
    for value in sorted(rows):
        if len(rows[value]) >= FEWEST:
            mask = np.zeros(len(values), bool)
            mask[rows[value]] = True
            yield value, mask


class SliceColumns(NamedTuple):
    """Some slices of compared cases. ``members``: by slice, the rows of its cases; ``moves``: of
    each case -1, 0 or 1; ``clusters``: of each, cases that share their luck."""

    members: Mapping[str, Sequence[int]]
    moves: Sequence[int]
    clusters: Sequence[int]

    def moves_of(self, name: str) -> list[int]:
        return [self.moves[row] for row in self.members[name]]

    def units_of(self, name: str) -> int:
        """How many clusters a slice has."""
        return len({self.clusters[row] for row in self.members[name]})

    def p_fell(self, seed: int = 0) -> dict[str, float]:
        """By slice, the one-sided p that it fell by chance, corrected for all (joint flips)."""
        import numpy as np

        from decisions.joint import joint_p

        columns = []
        for rows in self.members.values():
            column = np.full(len(self.moves), np.nan)
            column[[*rows]] = [self.moves[row] for row in rows]
            columns.append(column)
        _, clusters = np.unique(np.array(self.clusters, np.int64), return_inverse=True)
        found = joint_p(columns, clusters.astype(np.int64), "worse", seed=seed)
        return dict(zip(self.members, found.tolist(), strict=True))


def slice_columns(
    names: Sequence[str], moves: Mapping[int, int], eval_set: Path, labels_dir: Path | None
) -> SliceColumns:
    """The cases of some slices, each ``dimension.value``. ``moves``: by the number of a case's id.

    Where one of the slices has few documents, all cases are clustered by section.
    """
    labels, _ = read_labels(labels_dir, ignore, eval_set)
    cases = [c for c in iter_cases(eval_set, ignore, labels) if id_number(c.id) in moves]
    facets = [
        {f"{dimension}.{value}" for dimension, value in tally.slices_of(tally.facets_of(case))}
        for case in cases
    ]
    members = {name: [row for row, own in enumerate(facets) if name in own] for name in names}
    documents = read_decide().documents
    few = any(
        clusters_of([cases[row] for row in rows]).few_documents(documents)
        for rows in members.values()
        if rows
    )
    by = SECTION if few else AUTO
    numbers = (cluster_number(label_of(case, by)) for case in cases)
    clusters = [number or -1 - row for row, number in enumerate(numbers)]
    return SliceColumns(members, [moves[id_number(case.id)] for case in cases], clusters)


def slices_of_cases(eval_set: Path, labels_dir: Path | None) -> dict[str, tally.Slices]:
    """The slices of each case: category, difficulty, query type, tags, vaults.

    Raises StorageError with every problem of the set and its labels.
    """
    problems: list[Problem] = []
    labels, _ = read_labels(labels_dir, problems.append, eval_set)
    slices = {
        case.id: tally.slices_of(tally.facets_of(case))
        for case in iter_cases(eval_set, problems.append, labels)
    }
    if problems:
        raise StorageError.from_problems(problems)
    return slices
