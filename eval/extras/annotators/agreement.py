"""Annotators side by side: who labelled each case how, and how far they agree. Pure.

In: cases and judgements. Out: plain figures, as `--agreement --json` prints them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extras.annotators.kappa import cohen_kappa, overlap, positive_agreement, raw_agreement
from labeller.case_state import GOLD, Record, read_judgements
from labeller.passages import under
from labeller.supports import USUAL_GRADE, formula, needs_of, read_supports, short_name
from labeller.worklist import LABELLED, OPEN, SKIPPED, status_of
from ragmetrics.stats.agreement import clustered_interval, krippendorff_alpha
from ragmetrics.stats.means import generator
from records.judged import heading, norm_path
from terminal.safe_text import one_line
from terminal.tables import counted, print_columns

if TYPE_CHECKING:
    from rich.console import Console


Anchor = tuple[str, str]

Pair = tuple[float, float]
"""Two grades of one passage; 0 is judged and not marked."""


ENOUGH_QUESTIONS = 10
"""Below this, an interval from resampled questions says nothing."""


@dataclass(frozen=True)
class AnnotatorLabel:
    """One annotator's label of one case.

    `rows` holds the passages judged, by key: their anchor and grade (0 not marked). `needs` is the
    support formula in words.
    """

    state: str
    marks: Mapping[Anchor, float]
    rows: Mapping[str, tuple[Anchor, float]] = field(default_factory=dict)
    needs: str = ""


AnnotatorLabels = Mapping[str, AnnotatorLabel]


def labels_of(
    cases: Mapping[str, Record], judgements: Mapping[str, Record], annotator: str
) -> dict[str, AnnotatorLabel]:
    """The decided cases of an annotator: of the set itself for ``gold``, else of the judgements."""
    labels: dict[str, AnnotatorLabel] = {}
    for case_id in cases if annotator == GOLD else judgements:
        if case_id not in cases:
            continue
        judgement = judgements.get(case_id, {})
        case = cases[case_id] if annotator == GOLD else judgement
        status = status_of(case, judgement)
        if status not in (OPEN, SKIPPED):
            labels[case_id] = _label(status, case, judgement)
    return labels


def labels_by_annotator(
    cases: Mapping[str, Record], judgements: Mapping[str, Mapping[str, Record]]
) -> dict[str, AnnotatorLabels]:
    """Each annotator's decided cases, the set's own first; a pool of judged rows decides none."""
    others = {name: judged for name, judged in judgements.items() if name != GOLD}
    everybody = {GOLD: judgements.get(GOLD, {}), **others}
    labels = {name: labels_of(cases, judged, name) for name, judged in everybody.items()}
    return {name: decided for name, decided in labels.items() if decided}


def _label(status: str, case: Record, judgement: Record) -> AnnotatorLabel:
    supports = read_supports(case)
    # A place without a heading is its quote, which the rows of another annotator do not hold.
    marks = {
        (path, headings or quote): float(s.data.get("grade") or USUAL_GRADE)
        for s in supports
        for path, headings, quote in [s.identity]
    }
    rows = {
        str(row["key"]): (
            (norm_path(str(row["rel_path"])), heading(row["heading_path"])),
            float(row["grade"]),
        )
        for row in judgement.get("rows") or ()
        if row.get("grade") is not None
    }
    state = "answerable" if status == LABELLED else status
    pieces = formula(needs_of(case), [short_name(support) for support in supports])
    return AnnotatorLabel(state, marks, rows, "".join(piece for piece, _ in pieces))


def _graded_pairs(a: AnnotatorLabel, b: AnnotatorLabel) -> dict[Anchor, Pair]:
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
        judged, other = (a, b) if a.rows else (b, a)
        pairs = {
            (anchor[0], f"{anchor[1]} #{key}"): (grade, _grade_at(other.marks, anchor))
            for key, (anchor, grade) in judged.rows.items()
        }
        return pairs if a.rows else {key: (y, x) for key, (x, y) in pairs.items()}
    anchors = dict.fromkeys([*a.marks, *b.marks])
    return {x: (a.marks.get(x, 0.0), b.marks.get(x, 0.0)) for x in anchors}


def _grade_at(marks: Mapping[Anchor, float], anchor: Anchor) -> float:
    """The highest grade of a support that holds a passage."""
    grades = [
        g
        for (path, headings), g in marks.items()
        if path == anchor[0] and under(anchor[1], headings)
    ]
    return max(grades, default=0.0)


def _compare(
    name_a: str, a: AnnotatorLabels, name_b: str, b: AnnotatorLabels, seed: int = 0
) -> Record:
    """Agreement of two annotators: on states, marks and grades; overall, and per question."""
    shared = [case_id for case_id in a if case_id in b]
    states = [(a[c].state, b[c].state) for c in shared]
    pairs = {c: _graded_pairs(a[c], b[c]) for c in shared}
    clusters = [list(graded.values()) for graded in pairs.values() if graded]
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
    interval = clustered_interval(clusters, statistic, generator(seed, "label_eval/agreement"))
    return None if interval is None else list(interval)


def _disagreements(
    shared: Sequence[str],
    a: AnnotatorLabels,
    b: AnnotatorLabels,
    pairs: Mapping[str, Mapping[Anchor, Pair]],
) -> Iterable[Record]:
    for case_id in shared:
        if a[case_id].state != b[case_id].state:
            yield {"id": case_id, "what": "state", "a": a[case_id].state, "b": b[case_id].state}
        elif a[case_id].needs != b[case_id].needs:
            yield {"id": case_id, "what": "needs", "a": a[case_id].needs, "b": b[case_id].needs}
        for (path, headings), (x, y) in pairs[case_id].items():
            if (x > 0) != (y > 0):
                where = f"{path} > {headings}" if headings else path
                yield {"id": case_id, "what": where, "a": x, "b": y}


def agreement(annotators: Mapping[str, AnnotatorLabels], seed: int = 0) -> Record:
    """All pairs of annotators, and alpha over all of them together."""
    names = list(annotators)
    pairs = [
        _compare(a, annotators[a], b, annotators[b], seed)
        for a, b in itertools.combinations(names, 2)
    ]
    cases = dict.fromkeys(case_id for labels in annotators.values() for case_id in labels)
    states = [
        [annotators[name][c].state if c in annotators[name] else None for name in names]
        for c in cases
    ]
    return {
        "annotators": {name: len(labels) for name, labels in annotators.items()},
        "alpha_state": krippendorff_alpha(states),
        "pairs": pairs,
    }


def disagreement(annotators: Mapping[str, AnnotatorLabels]) -> dict[str, float]:
    """How far annotators are apart on each case that two of them judged: 0 agreed, up to 2.

    One for another state, and one minus the overlap of the marks; the worst pair counts.
    """
    worst: dict[str, float] = {}
    for a, b in itertools.combinations(annotators.values(), 2):
        for case_id in a:
            if case_id in b:
                first, second = a[case_id], b[case_id]
                pairs = list(_graded_pairs(first, second).values())
                same = overlap([x > 0 for x, _ in pairs], [y > 0 for _, y in pairs])
                apart = float(first.state != second.state) + (0 if same is None else 1 - same)
                worst[case_id] = max(worst.get(case_id, 0.0), apart)
    return worst


def by_disagreement(cases: Mapping[str, Record], folder: Path) -> dict[str, float]:
    """The order of the questions by how far the annotators in a folder of judgements are apart."""
    return disagreement(labels_by_annotator(cases, read_judgements(folder)))


SHOWN = 40
"""Disagreements and questions that are listed; --json has them all."""


def _number(value: float | None) -> str:
    """Three decimals; an en dash for what is undefined."""
    return "–" if value is None else f"{value:.3f}"


def print_agreement(console: Console, figures: Mapping[str, Any]) -> None:
    """Each pair of annotators: overall, by question (worst first), and the disagreements."""
    people = ", ".join(
        f"{one_line(n)} ({counted(c, 'case')})" for n, c in figures["annotators"].items()
    )
    console.print(f"annotators: {people}")
    if len(figures["annotators"]) > 2:
        console.print(
            f"Krippendorff's alpha of all, on the state: {_number(figures['alpha_state'])}"
        )
    for pair in figures["pairs"]:
        _print_pair(console, pair)


def _print_pair(console: Console, pair: Mapping[str, Any]) -> None:
    console.print(
        f"\n{one_line(pair['a'])} and {one_line(pair['b'])}: "
        f"{counted(pair['cases'], 'case')} labelled by both"
    )
    rows = []
    for name in ("state", "marks"):
        row = pair[name]
        interval = row["kappa_ci95"]
        shown = "–" if interval is None else f"{interval[0]:.3f} – {interval[1]:.3f}"
        figures = [_number(row.get(key)) for key in ("alpha", "positive", "overlap")]
        rows.append(
            (name, str(row["n"]), _number(row["raw"]), _number(row["kappa"]), shown, *figures)
        )
    grades = pair["grades"]
    rows.append(("grades", str(grades["n"]), "–", "–", "–", _number(grades["alpha"]), "–", "–"))
    heads = ("on", "n", "raw", "kappa", "95 % interval", "alpha", "positive", "overlap")
    print_columns(console, heads, rows)
    names = [f"state ({one_line(pair[side], 20)})" for side in "ab"]
    worst = sorted(pair["questions"], key=lambda q: (q["state"][0] == q["state"][1], _low(q)))
    by_question = [
        (
            one_line(row["id"]),
            *row["state"],
            str(row["n"]),
            *(_number(row[key]) for key in ("raw", "kappa", "positive")),
        )
        for row in worst[:SHOWN]
    ]
    columns = ("question", *names, "n", "raw", "kappa", "positive")
    print_columns(console, columns, by_question, left=names)
    for item in pair["disagreements"][:SHOWN]:
        subject = one_line(str(item["what"]))
        a, b = (f"{one_line(pair[side])} says {_shown(item[side])}" for side in "ab")
        console.print(f"{one_line(item['id'])}: {subject}: {a}; {b}")
    more = len(pair["disagreements"]) - SHOWN
    if more > 0:
        console.print(f"… and {more} more disagreements; --json has them all")


def _low(question: Mapping[str, Any]) -> float:
    value = question["positive"]
    return 1.0 if value is None else float(value)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"grade {value:g}" if value else "not marked"
    return one_line(str(value)) or "nothing"
