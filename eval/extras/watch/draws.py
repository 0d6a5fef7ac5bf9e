"""Cases drawn from watched traces: drafts that are worth labelling, and a uniform sample as a run.

Everything that is written goes through one place, where credentials and personal data are blotted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import msgspec

from decisions.case_rules import Basis, read_case_rules
from decisions.case_verdict import Ruling, judge_case
from extras.watch.figures import FIGURES, Figure, ReferencePeriod, condition_of
from extras.watch.summary import ERRORS, FEEDBACK
from extras.watch.texts import TraceText, texts_of
from extras.watch.trace_index import SHARE, TraceIndex
from formats.shared.convert import import_data
from formats.shared.item import ImportedCase, ImportOptions, Notes
from formats.traces.private import masked
from ragmetrics.groundedness import score_case
from ragmetrics.text.asked_questions import NEAR, AskedQuestions
from records.errors import StorageError
from records.results import TestResult
from records.runs import ENRICHED, UNIFORM

ORDINARY = "ordinary"
"""The stratum of traces that no figure calls bad."""

_RATED = "feedback"
"""The stratum of answers that people rated bad."""
_IS_RATED_BAD = f"bad & {FEEDBACK} != 0"

_BANDS = ((0.25, "far"), (0.5, "middle"), (NEAR, "near"))
"""How like the set a question is: below which likeness, and the band's name."""

_READ_FOR_ONE = 20
_READ_AT_LEAST = 200
_TAGS = ["draft", "from-traces"]
_NO_TEXT = "questions nearly like one of the set, or one drawn before"


@dataclass
class Draw:
    """The drawn traces. ``paths``: what was written; ``blotted``: by kind of secret."""

    kind: str
    cases: int = 0
    p: float | None = None
    paths: list[Path] = field(default_factory=list)
    strata: Counter[str] = field(default_factory=Counter)
    blotted: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    probabilities: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By stratum that was drawn with a known probability: that, and how many traces it has."""
    ended: set[str] = field(default_factory=set)
    """Strata in which every trace was drawn or left out."""

    def to_dict(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return {
            "sample": self.kind,
            "cases": self.cases,
            "p": self.p,
            "paths": [str(path) for path in self.paths],
            "strata": dict(self.strata),
            "known_probabilities": self.probabilities,
            "blotted": dict(sorted(self.blotted.items())),
            "left_out": dict(sorted(self.left_out.items())),
        }


def draw_cases(
    index: TraceIndex,
    count: int,
    target: Path,
    *,
    questions: Iterable[str],
    reference: ReferencePeriod | None,
    since: Mapping[str, int],
    first_day: int,
    force: bool,
) -> Draw:
    """Draw drafts worth labelling: some of each signal, near to and far from the set.

    Answers that people rated bad are a stratum of their own, whatever else is bad with them. They
    are looked at in the order of their hashes, and the share of them that was looked at is written
    as the probability of each; those whose question is nearly one of the set are left out.

    ``questions``: those of the set. ``since``: figures with an alarm and the day it began; they
    come first, and their traces from that day on. ``first_day``: of the others.
    """
    draw = Draw(ENRICHED)
    asked = AskedQuestions(questions)
    strata = _strata(index, count, asked, draw, reference, since, first_day)
    chosen = list(_in_turns(strata, count, asked, draw))
    if not chosen:
        raise StorageError(
            f"No case was drawn: no trace has a question that is new ({_counted(draw.left_out)})."
        )
    about: dict[str, Any] = {"kind": ENRICHED}
    if last := max((item.position for item in chosen if item.signals == (_RATED,)), default=0):
        keys = index.keys_where(FEEDBACK, _IS_RATED_BAD, first_day, index.totals()[0])
        items = strata[_RATED][_BANDS[0][1]]
        if _RATED in draw.ended:  # the others were looked at and left out
            last = items[-1].position if len(items) >= 3 * count else min(len(keys), _most(count))
        draw.probabilities[_RATED] = {"p": round(last / len(keys), 6), "traces": len(keys)}
        about["strata"] = draw.probabilities
    _write(chosen, target, f"{target.name}-{ENRICHED}", draw, about, force=force)
    return draw


def draw_sample(
    index: TraceIndex, count: int, target: Path, *, first_day: int, force: bool
) -> Draw:
    """Draw a uniform sample of about ``count`` traces by the hash of their ids, as set and run."""
    traces, _ = index.totals(first_day)
    if not traces:
        raise StorageError("No sample was drawn: no trace was counted in these days.")
    draw = Draw(UNIFORM, p=round(min(1.0, count / traces), 6))
    limit = int((draw.p or 0.0) * SHARE)
    keys = index.keys_where(ERRORS, f"key < {limit:d}", first_day, traces)
    drawn = [DrawnTrace(text, (), "") for text in texts_of(index, keys, draw.left_out)]
    if not drawn:
        raise StorageError(f"No sample was drawn ({_counted(draw.left_out)}); ask for more traces.")
    about = {"kind": UNIFORM, "p": draw.p, "traces": traces}
    _write(drawn, target, f"{target.name}-{UNIFORM}", draw, about, force=force)
    return draw


@dataclass(frozen=True, slots=True)
class DrawnTrace:
    """A trace that was drawn; ``signals`` and ``band`` say why, both empty in a uniform sample.

    ``position``: its number in its stratum in the order of the hashes, from 1."""

    text: TraceText
    signals: tuple[str, ...]
    band: str
    position: int = 0


def _strata(
    index: TraceIndex,
    count: int,
    asked: AskedQuestions,
    draw: Draw,
    reference: ReferencePeriod | None,
    since: Mapping[str, int],
    first_day: int,
) -> dict[str, dict[str, list[DrawnTrace]]]:
    """By signal and band, the traces from which cases are taken in turns."""
    figures = sorted(FIGURES, key=lambda figure: figure.name not in since)
    pools = [
        (f.name, f.bit, _condition(f, reference), since.get(f.name, first_day)) for f in figures
    ]
    calm = " AND ".join(f"NOT ({condition_of(f, reference)})" for f in FIGURES)
    pools.append((ORDINARY, ERRORS, calm, first_day))
    strata: dict[str, dict[str, list[DrawnTrace]]] = {}
    for name, bit, condition, day in pools:
        bands: dict[str, list[DrawnTrace]] = {band: [] for _, band in _BANDS}
        keys = index.keys_where(bit, condition, day, _most(count))
        places = {key: place for place, key in enumerate(keys, 1)}
        for text in texts_of(index, keys, draw.left_out):
            band = _band(asked.closeness(text.question))
            if band is None:
                draw.left_out[_NO_TEXT] += 1
                continue
            # The bands of this stratum are no queues: its probability is of one order.
            queue = _BANDS[0][1] if name == _RATED else band
            bands[queue].append(DrawnTrace(text, (name,), band, places[text.key]))
            if sum(map(len, bands.values())) >= 3 * count:
                break
        strata[name] = bands
    return strata


def _most(count: int) -> int:
    """Traces of a stratum that are read for so many cases."""
    return max(_READ_AT_LEAST, _READ_FOR_ONE * count)


def _condition(figure: Figure, reference: ReferencePeriod | None) -> str:
    """When a trace belongs to the stratum of a figure, in SQL."""
    condition = condition_of(figure, reference)
    return condition if figure.name == _RATED else f"({condition}) AND NOT ({_IS_RATED_BAD})"


def _band(closeness: float) -> str | None:
    return next((band for limit, band in _BANDS if closeness < limit), None)


def _in_turns(
    strata: Mapping[str, Mapping[str, list[DrawnTrace]]],
    count: int,
    asked: AskedQuestions,
    draw: Draw,
) -> Iterator[DrawnTrace]:
    """One of each signal after another, from each band in turn; what is asked twice is passed."""
    queues = {
        name: {band: iter(items) for band, items in own.items()} for name, own in strata.items()
    }
    bands = {name: cycle([band for _, band in _BANDS]) for name in queues}
    drawn: set[int] = set()
    while queues and len(drawn) < count:
        for name in list(queues):
            item = _next_of(queues[name], bands[name], drawn, asked, draw)
            if item is None:
                draw.ended.add(name)
                del queues[name]
                continue
            drawn.add(item.text.key)
            draw.strata[f"{name}, {item.band}"] += 1
            yield item
            if len(drawn) == count:
                return


def _next_of(
    queue: dict[str, Iterator[DrawnTrace]],
    bands: Iterator[str],
    drawn: set[int],
    asked: AskedQuestions,
    draw: Draw,
) -> DrawnTrace | None:
    while queue:
        band = next(bands)
        if band not in queue:
            continue
        for item in queue[band]:
            if item.text.key in drawn:
                continue
            if asked.add(item.text.question):
                return item
            draw.left_out[_NO_TEXT] += 1
        del queue[band]
    return None


class _Traces:
    """Traces in the place of a format that is imported."""

    NAME = "traces"

    def __init__(self, drawn: Sequence[DrawnTrace], run: str, draw: Draw) -> None:
        self._drawn, self._run, self._draw = drawn, run, draw

    def read(
        self, sources: Sequence[Path], options: ImportOptions, notes: Notes
    ) -> Iterator[ImportedCase]:
        for item in self._drawn:
            self._draw.cases += 1
            yield _blotted_case(item, self._run, self._draw.blotted)


def _write(
    drawn: Sequence[DrawnTrace],
    target: Path,
    run: str,
    draw: Draw,
    sample: Mapping[str, Any],
    *,
    force: bool,
) -> None:
    draw.paths = import_data(
        _Traces(drawn, run, draw),
        [],
        target,
        {},
        Notes(),
        one_file=True,
        force=force,
        sample=sample,
    )


def _blotted_case(item: DrawnTrace, run: str, counts: Counter[str]) -> ImportedCase:
    """A trace as a case with its answer, nothing of it written as it was but numbers."""
    source = item.text.item
    fails = _why_it_fails(item.text.result)
    case: dict[str, Any] = {"id": source.case["id"], "question": item.text.question}
    if item.text.history:
        case["history"] = item.text.history
    if item.band:
        case["tags"] = [*_TAGS, *item.signals, *(["fails"] if fails else [])]
        case["drafted_by"] = f"traces: {', '.join(item.signals)}; {item.band} from the set"
        if fails:
            case["drafted_by"] += f"; fails: {fails}"
    answer = source.answers[0]
    raw = msgspec.to_builtins(answer.result)
    raw["question"] = item.text.question
    result = msgspec.convert(masked(raw, "", counts), TestResult)
    answer = type(answer)(run, result, answer.has_retrieved)
    return ImportedCase(masked(case, "", counts), source.path, None, [answer], asked=False)


def _why_it_fails(result: TestResult) -> str:
    """The reasons by which an answer fails, in words, as far as a trace tells; "" without one."""
    failed = result.status == "error"
    scores: dict[str, float | None] = {}
    sources = result.seen_chunks()
    if result.answer and sources:
        found = score_case(result.answer, sources, question=result.question).values
        scores = {f"groundedness.{name}": value for name, value in found.items()}
    verdict = judge_case([scores], Ruling(read_case_rules(), Basis()), failed=[0] if failed else [])
    return ", ".join(rule.word for rule in verdict.reasons)


def _counted(counts: Counter[str]) -> str:
    return "; ".join(f"{name}: {n}" for name, n in sorted(counts.items())) or "no trace at all"
