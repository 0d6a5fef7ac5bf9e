"""Annotators side by side: who said what of each case, and how far they agree. Pure.

In: cases and judgements. Out: plain figures, as `--agreement --json` prints them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from labeller.anchors import heading, norm_path, under
from labeller.entry import GOLD
from labeller.supports import USUAL_GRADE, needs, read_supports, short_name
from labeller.worklist import LABELLED, OPEN, SKIPPED, status_of
from ragmetrics.agreement import (
    clustered_interval,
    cohen_kappa,
    krippendorff_alpha,
    overlap,
    positive_agreement,
    raw_agreement,
)
from ragmetrics.stats import generator

Record = dict[str, Any]
Anchor = tuple[str, str]
Pair = tuple[float, float]
"""Two grades of one passage; 0 is judged and not marked."""


ENOUGH_QUESTIONS = 10
"""Below this, an interval from resampled questions says nothing."""


@dataclass(frozen=True)
class Verdict:
    """What one annotator said of one case.

    `rows` holds the passages judged, by key: their anchor and grade (0 not marked). `needs` is the
    support formula in words.
    """

    state: str
    marks: Mapping[Anchor, float]
    rows: Mapping[str, tuple[Anchor, float]] = field(default_factory=dict)
    needs: str = ""


Verdicts = Mapping[str, Verdict]


def verdicts(
    cases: Mapping[str, Record], judgements: Mapping[str, Record], annotator: str
) -> dict[str, Verdict]:
    """The decided cases of an annotator: of the set itself for ``gold``, else of the judgements."""
    found: dict[str, Verdict] = {}
    for case_id in cases if annotator == GOLD else judgements:
        if case_id not in cases:
            continue
        known = judgements.get(case_id, {})
        case = cases[case_id] if annotator == GOLD else known
        status = status_of(case, known)
        if status not in (OPEN, SKIPPED):
            found[case_id] = _verdict(status, case, known)
    return found


def _verdict(status: str, case: Record, judgement: Record) -> Verdict:
    supports = read_supports(case)
    marks = {s.anchor: float(s.data.get("grade") or USUAL_GRADE) for s in supports}
    rows = {
        str(row["key"]): (
            (norm_path(str(row["rel_path"])), heading(row["heading_path"])),
            float(row["grade"]),
        )
        for row in judgement.get("rows") or ()
        if row.get("grade") is not None
    }
    state = "answerable" if status == LABELLED else status
    return Verdict(state, marks, rows, needs(supports, lambda i: short_name(supports[i])))


def graded_pairs(a: Verdict, b: Verdict) -> dict[Anchor, Pair]:
    """Passages that both judged, with both grades.

    Rows that both were shown, by their text. Where one annotator's rows are not known, that one's
    supports say what was marked; where neither's are, only the supports can be compared.
    """
    if a.rows and b.rows:
        keys = [key for key in a.rows if key in b.rows]
        return {
            (a.rows[k][0][0], f"{a.rows[k][0][1]} #{k}"): (a.rows[k][1], b.rows[k][1]) for k in keys
        }
    if a.rows or b.rows:
        known, other = (a, b) if a.rows else (b, a)
        pairs = {
            (anchor[0], f"{anchor[1]} #{key}"): (grade, _grade_at(other.marks, anchor))
            for key, (anchor, grade) in known.rows.items()
        }
        return pairs if a.rows else {key: (y, x) for key, (x, y) in pairs.items()}
    anchors = dict.fromkeys([*a.marks, *b.marks])
    return {x: (a.marks.get(x, 0.0), b.marks.get(x, 0.0)) for x in anchors}


def _grade_at(marks: Mapping[Anchor, float], anchor: Anchor) -> float:
    """The highest grade of a support that holds a passage."""
    grades = [
        g for (path, place), g in marks.items() if path == anchor[0] and under(anchor[1], place)
    ]
    return max(grades, default=0.0)


def compare(name_a: str, a: Verdicts, name_b: str, b: Verdicts, seed: int = 0) -> Record:
    """Agreement of two annotators: on states, marks and grades; overall, and per question."""
    shared = [case_id for case_id in a if case_id in b]
    states = [(a[c].state, b[c].state) for c in shared]
    pairs = {c: graded_pairs(a[c], b[c]) for c in shared}
    clusters = [list(found.values()) for found in pairs.values() if found]
    everything = [pair for cluster in clusters for pair in cluster]
    return {
        "a": name_a,
        "b": name_b,
        "cases": len(shared),
        "state": _of_states(states, seed),
        "marks": _of_marks(everything) | {"kappa_ci95": _interval(clusters, _kappa, seed)},
        "grades": {"alpha": krippendorff_alpha(everything, "ordinal"), "n": len(everything)},
        "questions": [
            {"id": c, "state": list(state), **_of_marks(list(pairs[c].values()))}
            for c, state in zip(shared, states, strict=True)
        ],
        "disagreements": list(_disagreements(shared, a, b, pairs)),
    }


def _of_states(states: Sequence[tuple[str, str]], seed: int) -> Record:
    first, second = [x for x, _ in states], [y for _, y in states]

    def kappa(items: list[tuple[str, str]]) -> float | None:
        return cohen_kappa([x for x, _ in items], [y for _, y in items])

    return {
        "n": len(states),
        "raw": raw_agreement(first, second),
        "kappa": kappa(list(states)),
        "alpha": krippendorff_alpha(states),
        "kappa_ci95": _interval([[state] for state in states], kappa, seed),
    }


def _of_marks(pairs: Sequence[Pair]) -> Record:
    a, b = [x > 0 for x, _ in pairs], [y > 0 for _, y in pairs]
    return {
        "n": len(pairs),
        "raw": raw_agreement(a, b),
        "kappa": cohen_kappa(a, b),
        "positive": positive_agreement(a, b),
        "overlap": overlap(a, b),
        "alpha": krippendorff_alpha([(float(x), float(y)) for x, y in zip(a, b, strict=True)]),
    }


def _kappa(pairs: list[Pair]) -> float | None:
    return cohen_kappa([x > 0 for x, _ in pairs], [y > 0 for _, y in pairs])


def _interval(
    clusters: Sequence[Sequence[Any]], statistic: Callable[[list[Any]], float | None], seed: int
) -> list[float] | None:
    if len(clusters) < ENOUGH_QUESTIONS:
        return None
    found = clustered_interval(clusters, statistic, generator(seed, "label_eval/agreement"))
    return None if found is None else list(found)


def _disagreements(
    shared: Sequence[str], a: Verdicts, b: Verdicts, pairs: Mapping[str, Mapping[Anchor, Pair]]
) -> Iterable[Record]:
    for case_id in shared:
        if a[case_id].state != b[case_id].state:
            yield {"id": case_id, "what": "state", "a": a[case_id].state, "b": b[case_id].state}
        elif a[case_id].needs != b[case_id].needs:
            yield {"id": case_id, "what": "needs", "a": a[case_id].needs, "b": b[case_id].needs}
        for (path, place), (x, y) in pairs[case_id].items():
            if (x > 0) != (y > 0):
                where = f"{path} > {place}" if place else path
                yield {"id": case_id, "what": where, "a": x, "b": y}


def agreement(annotators: Mapping[str, Verdicts], seed: int = 0) -> Record:
    """All pairs of annotators, and alpha over all of them together."""
    names = list(annotators)
    pairs = [
        compare(a, annotators[a], b, annotators[b], seed)
        for a, b in itertools.combinations(names, 2)
    ]
    cases = dict.fromkeys(case_id for known in annotators.values() for case_id in known)
    states = [
        [annotators[name][c].state if c in annotators[name] else None for name in names]
        for c in cases
    ]
    return {
        "annotators": {name: len(known) for name, known in annotators.items()},
        "alpha_state": krippendorff_alpha(states),
        "pairs": pairs,
    }


def disagreement(annotators: Mapping[str, Verdicts]) -> dict[str, float]:
    """How far annotators are apart on each case that two of them judged: 0 agreed, up to 2.

    One for another state, and one minus the overlap of the marks; the worst pair counts.
    """
    worst: dict[str, float] = {}
    for a, b in itertools.combinations(annotators.values(), 2):
        for case_id in a:
            if case_id in b:
                first, second = a[case_id], b[case_id]
                pairs = list(graded_pairs(first, second).values())
                same = overlap([x > 0 for x, _ in pairs], [y > 0 for _, y in pairs])
                apart = float(first.state != second.state) + (0 if same is None else 1 - same)
                worst[case_id] = max(worst.get(case_id, 0.0), apart)
    return worst
