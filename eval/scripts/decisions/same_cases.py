"""Which cases of two runs did not change: asked alike, and labelled alike in a section.

Sets grow, and labels are corrected. What decides is the fingerprint of a case
(records/fingerprints.py), in the files of both runs; where one has none, the version of the set
that it was asked and scored with, on disk or in git.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from decisions.conditions import Conditions, with_settings
from ragmetrics import catalogue
from ragmetrics.stats.arrays import Ints, NDArray, np
from records.asked import asked_of, asked_set
from records.fingerprints import (
    SHORT,
    asked_digests,
    labelled_digests,
    read_asked,
    read_labelled,
    short,
)
from records.id_numbers import id_number
from records.labels import own_labels
from records.metric_lines import PRIMARY
from records.metrics import CASE_FINGERPRINTS, PRIMARY_METRICS, load_metrics
from records.results import RunConfig
from records.runs import METRICS, scored_sections
from records.scores import OWN_TEXTS
from records.set_versions import cases_with
from terminal.tables import counted

Places = Iterable[tuple[Path, Path]]
"""Sets, and the folders of their labels, among which a version of a set is looked for."""


class CaseCounts(NamedTuple):
    """Counts of the cases of two sets: the ``same``, and those that changed or are in one alone.

    ``rescored``: re-labelled ones that count as the same, since base was scored again.
    """

    same: int
    new: int
    reworded: int
    relabelled: int
    gone: int
    rescored: int = 0

    @property
    def share(self) -> float:
        """The same cases / those that a run was asked and the other could have been."""
        whole = self.same + self.reworded + self.relabelled + self.gone
        return self.same / whole if whole else 0.0

    def words(self) -> str:
        """``126 cases that did not change in the set (28 new, 12 re-labelled, 2 gone)``."""
        named = {"new": self.new, "re-labelled": self.relabelled}
        named |= {"reworded": self.reworded, "gone": self.gone}
        others = ", ".join(f"{count:,} {word}" for word, count in named.items() if count)
        of_others = f" ({others})" if others else ""
        return f"{counted(self.same, 'case')} that did not change in the set{of_others}"


@dataclass(frozen=True)
class ScoredBase:
    """A run as it was, or a copy with scores by other labels; ``cases``: how many of its cases were
    labelled otherwise."""

    folder: Path
    cases: int = 0


@dataclass(frozen=True)
class Alignment:
    """How the cases of two runs differ, by case id.

    ``new``, ``gone``: cases that only the set of the new run, or only that of base, has.
    ``reworded``: those that the runs did not ask alike. ``relabelled``: by section, those that were
    not labelled alike; a section that is not there cannot be compared. ``shared``: those that both
    have. ``differs``: whether the sets are two.
    """

    new: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    reworded: frozenset[str] = frozenset()
    relabelled: Mapping[str, frozenset[str]] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()
    differs: bool = False

    def counts(self, sections: Collection[str], rescored: int = 0) -> CaseCounts | None:
        """Counts the cases that changed, and those that did not; None if both runs have one set.

        ``sections``: those that decide. ``rescored``: see ``CaseCounts``.
        """
        if not self.differs:
            return None
        own = (self.relabelled.get(name, frozenset()) for name in sections)
        relabelled = frozenset[str]().union(*own) - self.reworded
        changed = len(self.reworded), len(relabelled)
        same = len(self.shared) - sum(changed)
        return CaseCounts(same, len(self.new), *changed, len(self.gone), rescored)

    @property
    def other_cases(self) -> bool:
        """Whether a run was asked a question that the other was not asked."""
        return bool(self.new or self.gone or self.reworded)

    @property
    def of_any(self) -> frozenset[str]:
        """The cases that changed in any section."""
        return self.reworded.union(*self.relabelled.values())

    def depends_on_others(self, section: str, metric: str, alone: int) -> str:
        """Return why a metric of all cases together cannot be compared; "" where it can.

        That is one whose score of a case depends on the other cases of the run, where these are not
        the same. ``alone``: how many cases only one of the runs was asked.
        """
        if not (alone or self.other_cases) or not catalogue.depends_on_run(section, metric):
            return ""
        return "depends on all passages of a run, and its cases are not the same"

    def mask(self, section: str, ids: Ints) -> NDArray[np.bool_]:
        """Which of the cases with these numbers changed, or are in one set alone, so that a section
        cannot compare them."""
        if self.differs and section not in self.relabelled:
            return np.ones(len(ids), bool)
        changed = self.of_section(section)
        return np.isin(ids, np.array([*map(id_number, changed)], np.int64))

    def of_section(self, section: str) -> frozenset[str]:
        """The cases that a section cannot compare, where it can compare any."""
        changed = self.relabelled.get(section, frozenset())
        own_texts = section == OWN_TEXTS
        return changed if own_texts else changed | self.reworded | self.new | self.gone


class _Marks(NamedTuple):
    """The fingerprints of a run: of its lines, else ``committed``, the short ones of metrics.json.

    Questions are compared by the first ``SHORT`` digits, which both have.
    """

    asked: Mapping[str, str]
    labelled: Mapping[str, Mapping[str, str]]
    committed: Mapping[str, str]

    @property
    def ids(self) -> frozenset[str]:
        """The cases: those without a result have labels alone."""
        labelled = (own for name, own in self.labelled.items() if name != OWN_TEXTS)
        return frozenset[str]().union(self.asked or self.committed, *labelled)


def sets_differ(base: Conditions, new: Conditions) -> bool:
    """Whether two runs were asked or scored with different versions of the set or its labels."""
    old, now = base.metrics, new.metrics
    asked = base.config.dataset.get("sha256"), new.config.dataset.get("sha256")
    scored = old.get("eval_set_sha256"), now.get("eval_set_sha256")
    # what earlier versions wrote has no such key; null: there were no labels
    labelled = "labels_sha256" in old and "labels_sha256" in now
    return any(one and other and one != other for one, other in (asked, scored)) or (
        labelled and old["labels_sha256"] != now["labels_sha256"]
    )


def align(
    base: Conditions, new: Conditions, sections: Collection[str], places: Places = ()
) -> Alignment | None:
    """How the cases of two runs differ; None where that is not known.

    ``sections``: those that are compared. ``places``: where else a version of the set may be.
    """
    if not sets_differ(base, new):
        return Alignment()
    places = [*places, *_own_places(new), *_own_places(base)]
    old, now = (_marks(run, sections, places) for run in (base, new))
    if old is None or now is None:
        return None
    if not (old.asked and now.asked):
        bare = [run for run, marks in ((base, old), (new, now)) if not marks.asked]
        covered = {_primary_sections(run) for run in bare}
        if len(covered) > 1:
            return None
        old, now = (_shortened(marks, *covered) for marks in (old, now))
        if not (old.committed and now.committed):
            return None
    return _aligned(old, now, sections, whole=(_whole_set(base), _whole_set(new)))


def align_committed(
    old: Mapping[str, str], now: Mapping[str, str], sections: Collection[str]
) -> Alignment:
    """How the cases of two runs differ by the fingerprints of their metrics.json files alone."""
    return _aligned(_Marks({}, {}, old), _Marks({}, {}, now), sections)


def _aligned(
    old: _Marks, now: _Marks, sections: Collection[str], whole: tuple[bool, bool] = (True, True)
) -> Alignment:
    """``whole``: whether base and new were asked every case of their sets."""
    first, last = old.ids, now.ids
    return Alignment(
        last - first if whole[0] else frozenset(),
        first - last if whole[1] else frozenset(),
        *_compared(old, now, sections),
        first & last,
        differs=True,
    )


def align_folders(base: Path, new: Path, sections: Collection[str]) -> Alignment:
    """How the cases of two run folders differ, where that is known. ``base``: also a file."""
    runs = []
    for source in (base, new):
        path = source / METRICS if source.is_dir() else source
        if not path.exists():
            return Alignment()
        metrics, folder = load_metrics(path, slices=False), source if source.is_dir() else None
        run = Conditions(source.name, metrics, RunConfig(""), source, folder)
        runs.append(with_settings(run))
    return align(runs[0], runs[1], sections) or Alignment()


def _own_places(run: Conditions) -> Places:
    if run.folder is not None:
        path = asked_set(run.folder)
        yield path, own_labels(path)


def _whole_set(run: Conditions) -> bool:
    """Whether a run was asked every case of its set, as far as it says."""
    asked = asked_of(run.config)
    return asked is None or asked.cases == run.config.dataset.get("cases", asked.cases)


def _marks(run: Conditions, sections: Collection[str], places: Places) -> _Marks | None:
    """The fingerprints of a run, of its files or of the set that it was asked and scored with."""
    committed: Mapping[str, str] = run.metrics.get(CASE_FINGERPRINTS) or {}
    own = {*scored_sections(run.folder)} if run.folder else set()
    scored = {*sections} & own
    if run.folder is not None and scored:
        # where the results are gone, metrics.json has the first digits
        asked = read_asked(run.folder) or {i: mark[:SHORT] for i, mark in committed.items()}
        labelled = {name: read_labelled(run.folder, name) for name in scored}
        if asked and all(labelled.values()):
            return _Marks(asked, labelled, committed)
    elif committed:
        return _Marks({}, {}, committed)
    head, dataset = run.metrics, run.config.dataset
    hashes = head.get("eval_set_sha256"), head.get("labels_sha256")
    cases = cases_with(*hashes, places)
    if cases is None:
        return None
    first = cases
    if (sha256 := dataset.get("sha256")) and sha256 != hashes[0]:
        then = cases_with(sha256, dataset.get("labels_sha256"), places)
        if then is None:
            return None
        first = then
    ids = _ids(run)
    asked = {case_id: own for case_id, own in asked_digests(first).items() if case_id in ids}
    labelled = {
        name: (run.folder and name in own and read_labelled(run.folder, name))
        or {case_id: mark for case_id, mark in digests.items() if case_id in ids}
        for name in sections
        if name != OWN_TEXTS
        for digests in [labelled_digests(cases, catalogue.labels_of(name))]
    }
    return _Marks(asked, labelled, committed)


def _ids(run: Conditions) -> set[str]:
    """The cases that a run has scores of, as its files say."""
    ids: set[str] = {*(run.metrics.get(PRIMARY) or ())}
    for name in scored_sections(run.folder) if run.folder else ():
        if run.folder and name != OWN_TEXTS:
            ids |= read_labelled(run.folder, name, unknown="").keys()
    return ids


def _primary_sections(run: Conditions) -> tuple[str, ...]:
    """The sections whose labels the committed fingerprints of a run are of."""
    names = run.metrics.get(PRIMARY_METRICS) or ()
    return tuple(sorted({name.partition(".")[0] for name in names}))


def _shortened(marks: _Marks, sections: tuple[str, ...]) -> _Marks:
    """The marks as a committed file has them, of the labels of some sections."""
    if not marks.asked:
        return marks
    if any(name not in marks.labelled for name in sections):
        return _Marks({}, {}, {})
    own = [marks.labelled[name] for name in sections]
    both = {
        case_id: short(asked, [digests[case_id] for digests in own])
        for case_id, asked in marks.asked.items()
        if all(case_id in digests for digests in own)
    }
    return _Marks({}, {}, both)


def _compared(
    old: _Marks, now: _Marks, sections: Collection[str]
) -> tuple[frozenset[str], dict[str, frozenset[str]]]:
    """The cases that were asked otherwise, and by section those labelled otherwise."""
    if old.asked:
        asked = [{i: mark[:SHORT] for i, mark in side.asked.items()} for side in (old, now)]
        return _unlike(*asked), {
            name: _unlike(old.labelled[name], now.labelled[name])
            for name in sections
            if name in old.labelled and name in now.labelled
        }
    first, last = (
        [{case_id: mark[part] for case_id, mark in side.committed.items()} for side in (old, now)]
        for part in (slice(SHORT), slice(SHORT, None))
    )
    relabelled = _unlike(*last)
    return _unlike(*first), dict.fromkeys(sections, relabelled)


def _unlike(old: Mapping[str, str], now: Mapping[str, str]) -> frozenset[str]:
    return frozenset(case_id for case_id in old.keys() & now.keys() if old[case_id] != now[case_id])
