"""One look: new traces are read and counted, and each figure is compared with the reference."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec

from decisions.watch import WatchedFigure, as_dict, with_seen
from formats.shared.rows import JSON_ENDINGS, files_below
from formats.shared.span_stream import DAMAGED, Cut, Position, cuts, open_spans
from ragmetrics.stats.rise import Rise
from records.alarms import KnownAlarm, alarms_file, read_alarms, write_alarms
from records.errors import StorageError
from records.files import locked
from records.labels import read_cases
from records.results import TestResult
from terminal.tables import counted
from watching.figures import (
    ReferencePeriod,
    date_of,
    day_of,
    rate_answers,
    reference_of,
    series_of,
    shown_figures,
    watched,
)
from watching.summary import (
    CLAIMS,
    LEAKS,
    REFUSALS,
    Place,
    SpanSummaries,
    answers_itself,
    is_complete,
    keys_of,
    tells_anything,
    trace_numbers,
)
from watching.texts import read_traces, texts_of
from watching.trace_index import (
    SHARE,
    DayCounts,
    SpanRow,
    TraceIndex,
    TraceRow,
    WatchedFile,
    index_path,
)
from watching.what_rose import RisenTraces, what_rose

if TYPE_CHECKING:
    from watching.canaries import CanaryLook
    from watching.draws import Draw

DAY_SHOWN = "last day shown"
"""The fact under which the index keeps up to which day figures were shown."""

_TRACES_A_STEP = 1000
_SECOND = 1_000_000
_MOST_CHECKED = 20_000
"""Characters of an answer whose claims are looked at."""


def count_due(
    index: TraceIndex, now: int, *, quiet: float, check_share: float, counts: Counter[str]
) -> int:
    """Count every trace whose last span is ``quiet`` seconds old; returns how many.

    ``now``: microseconds. Traces with a key below ``check_share`` of all keys are checked for
    unsupported claims and leaks. A step is one transaction; ``counts`` gets what it counted.
    """
    until = now - int(quiet * _SECOND)
    earliest_day = index.fact(DAY_SHOWN) or 0
    total = 0
    while batch := index.due(until, _TRACES_A_STEP):
        own: Counter[str] = Counter()
        ended = [(key, spans) for key, spans in batch if is_complete(spans)]
        unended = [key for key, spans in batch if not is_complete(spans)]
        unclear = [
            key for key, spans in ended if tells_anything(spans) and not answers_itself(spans)
        ]
        read = read_traces(index, unclear)
        rows = [
            (key, trace_numbers(key, spans, read.get(key), now, earliest_day, own))
            for key, spans in ended
        ]
        traces = [row for _, row in rows if row is not None]
        ignored = [key for key, row in rows if row is None]
        own["traces"] += len(traces)
        own["traces that are no answers of a bot"] += len(ignored)
        index.count(_checked(index, traces, check_share, own), ignored, unended, own)
        counts.update(own)
        total += len(traces)
    return total


def mark_shown(index: TraceIndex) -> None:
    """Remember that figures up to today's data were seen: what comes late counts on later days."""
    days = index.days()
    if days is not None and days[1] != index.fact(DAY_SHOWN):
        index.set_fact(DAY_SHOWN, days[1])


def _checked(
    index: TraceIndex, traces: list[TraceRow], share: float, counts: Counter[str]
) -> list[TraceRow]:
    """The traces, those of the share with the figures that need their texts."""
    limit = int(share * SHARE)
    answered = [row.key for row in traces if row.key < limit and row.applies & REFUSALS]
    bits: dict[int, tuple[int, int]] = {}
    for text in texts_of(index, answered, counts, with_history=False):
        bits[text.key] = _check(text.result)
        counts["traces checked for claims and leaks"] += 1
    return [
        row._replace(
            applies=row.applies | bits.get(row.key, (0, 0))[0],
            bad=row.bad | bits.get(row.key, (0, 0))[1],
        )
        for row in traces
    ]


def _check(result: TestResult) -> tuple[int, int]:
    """Which of the two figures apply to an answer, and which of them are bad."""
    from ragmetrics.groundedness import unsupported_claims  # slow to load, as what leaks needs

    if result.answer is None:
        return 0, 0
    answer, chunks = result.answer[:_MOST_CHECKED], result.seen_chunks()
    applies, bad = LEAKS, 0
    # Passages can only weaken what is found, and looking for copies of them is most of the work.
    if _leaks(answer, []) and _leaks(answer, [chunk.text or "" for chunk in chunks]):
        bad |= LEAKS
    unsupported = unsupported_claims(answer, chunks, result.question)
    if chunks and unsupported is not None:
        applies |= CLAIMS
        bad |= CLAIMS if unsupported else 0
    return applies, bad


def _leaks(answer: str, passages: Sequence[str]) -> bool:
    from guardrails.leakage import BLOCK, score_leakage

    leaks = score_leakage(answer, passages).categories
    return any(score >= BLOCK for name, score in leaks.items() if name != "verbatim_context")


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """The folder to watch, and the traces to draw from it. ``quiet`` in seconds; counts of None: no
    draw."""

    folder: Path
    index: Path | None = None
    reference: str | None = None
    replace_reference: bool = False
    seen: bool = False
    canaries: Path | None = None
    quiet: float = 60.0
    check_share: float = 0.05
    cases: int | None = None
    sample: int | None = None
    output: Path | None = None
    since: date | None = None
    eval_set: Path | None = None
    force: bool = False
    sampling: str = "head"


@dataclass
class Watch:
    """The result of one look. ``series``: each figure by day, from the first day on. ``risen``: of
    each figure with an alarm what its traces have in common."""

    folder: Path
    index: Path
    look: TraceReading
    counts: dict[str, int]
    traces: int
    units: int
    waiting: int
    reference: ReferencePeriod | None
    series: dict[str, list[DayCounts]]
    figures: list[WatchedFigure]
    check_share: float
    feedback: dict[str, Any]
    draws: list[Draw] = field(default_factory=list)
    sampling: str = "head"
    risen: list[RisenTraces] = field(default_factory=list)
    canaries: CanaryLook | None = None

    @property
    def unit(self) -> str:
        """The unit that the shares count."""
        return "sessions" if self.units < self.traces else "traces"

    @property
    def alarms(self) -> list[WatchedFigure]:
        return [figure for figure in self.figures if figure.alarm]

    @property
    def has_alarm(self) -> bool:
        """Whether any figure has an alarm, or the canaries have."""
        return bool(self.alarms or (self.canaries and self.canaries.alarms))


def watch(options: WatchOptions, now: int) -> Watch:
    """Look at a folder of traces. ``now``: microseconds since 1970.

    Raises StorageError for what cannot be used. What was read by then stays read.
    """
    if not options.folder.exists():
        raise StorageError(f"{options.folder}: no such folder of traces.")
    path = options.index or index_path(options.folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path), TraceIndex(path) as index:
        look = read_new(index, options.folder, now)
        _check_that_any_was_read(options.folder, look, index.counts())
        look.traces = count_due(
            index,
            now,
            quiet=options.quiet,
            check_share=options.check_share,
            counts=look.counts,
        )
        reference = reference_of(
            index, options.reference, replace=options.replace_reference, now=now
        )
        feedback = rate_answers(index)
        traces, units = index.totals()
        outcome = Watch(
            options.folder,
            path,
            look,
            index.counts(),
            traces,
            units,
            index.open_traces(),
            reference,
            series_of(index, reference),
            [],
            options.check_share,
            feedback,
            sampling=options.sampling,
        )
        if reference is not None:
            _watch_on(index, options, outcome, reference, now)
        mark_shown(index)
        outcome.draws = list(_draws(index, options, outcome))
    if options.canaries is not None:
        from watching.canaries import look_at_canaries  # slow to load

        outcome.canaries = look_at_canaries(options.canaries)
    return outcome


def _watch_on(
    index: TraceIndex, options: WatchOptions, outcome: Watch, reference: ReferencePeriod, now: int
) -> None:
    """Watch every figure from the alarms that are known on, and keep what is known then.

    ``--seen`` marks what earlier looks showed: a person cannot have seen what this one finds."""
    today, path = datetime.fromtimestamp(now / 1e6, UTC).date(), alarms_file(outcome.index)
    before = {} if options.replace_reference else read_alarms(path)
    known = {
        name: [Rise(**msgspec.structs.asdict(alarm)) for alarm in alarms]
        for name, alarms in before.items()
    }
    if options.seen:
        known = {name: with_seen(rises, today) for name, rises in known.items()}
    outcome.figures = watched(index, reference, outcome.unit, options.sampling, known, today)
    found = known | {figure.name: [*figure.rises] for figure in outcome.figures}
    after = {n: [KnownAlarm(**asdict(r)) for r in rises] for n, rises in found.items() if rises}
    if after != before or options.replace_reference:
        write_alarms(path, after)
    for figure in outcome.alarms:
        if figure.lasting is not None:
            outcome.risen.append(what_rose(index, figure.name, reference, figure.lasting.since))


def _check_that_any_was_read(folder: Path, look: TraceReading, counts: Mapping[str, int]) -> None:
    """Raise StorageError for a folder whose files hold something, and no spans at all."""
    if counts.get("spans") or counts.get("log records") or not look.bytes_read:
        return
    keys = f" The keys are: {', '.join(look.keys)}." if look.keys else ""
    raise StorageError(
        f"{folder}: no trace can be read: {_counted_values(counts)} in "
        f"{counted(look.files, 'file')}.{keys} Write OTLP JSON (the collector's "
        "file exporter), or JSON of Phoenix, MLflow, Langfuse, LangSmith "
        "or the OpenAI Agents SDK."
    )


def _counted_values(counts: Mapping[str, int]) -> str:
    """How many values were found that hold no spans, and how many could not be read."""
    named = ("values without spans", DAMAGED, "spans that cannot be read")
    return ", ".join(f"{counts[name]} {name}" for name in named if counts.get(name)) or "nothing"


def _draws(index: TraceIndex, options: WatchOptions, outcome: Watch) -> list[Draw]:
    draws: list[Draw] = []
    if options.output is None:
        return draws
    from watching.draws import draw_cases, draw_sample

    first = day_of(options.since) if options.since else 0
    if options.cases:
        known = options.eval_set is not None and options.eval_set.exists()
        cases = read_cases(options.eval_set, None) if known and options.eval_set else []
        began = {
            figure.name: day_of(figure.lasting.since)
            for figure in outcome.alarms
            if figure.lasting is not None
        }
        draws.append(
            draw_cases(
                index,
                options.cases,
                options.output / "cases",
                questions=[case.question for case in cases],
                reference=outcome.reference,
                since=began,
                first_day=first,
                force=options.force,
            )
        )
    if options.sample:
        target = options.output / "sample"
        draws.append(
            draw_sample(index, options.sample, target, first_day=first, force=options.force)
        )
    return draws


def in_all(days: Sequence[DayCounts]) -> tuple[int, int]:
    """Bad units and units of all days."""
    return sum(day.bad for day in days), sum(day.n for day in days)


def share_of(days: Sequence[DayCounts]) -> float | None:
    """The share of bad units of all days; None without any. Each unit is weighted by the number of
    traces that a head sampler makes it represent."""
    weight = sum(day.n if day.weight is None else day.weight for day in days)
    bad = sum(day.bad if day.bad_weight is None else day.bad_weight for day in days)
    return bad / weight if weight else None


def to_dict(outcome: Watch) -> dict[str, Any]:
    """A look as ``--json`` prints it."""
    by_name = {figure.name: figure for figure in outcome.figures}
    reference = outcome.reference
    return {
        "schema": 1,
        "folder": str(outcome.folder),
        "index": str(outcome.index),
        "read": {
            "files": outcome.look.files,
            "bytes": outcome.look.bytes_read,
            "traces": outcome.look.traces,
            "counts": _filled(outcome.look.counts),
            "problems": outcome.look.problems,
        },
        "counts": _filled(outcome.counts),
        "traces": outcome.traces,
        "units": outcome.units,
        "unit": outcome.unit,
        "waiting": outcome.waiting,
        "check_share": outcome.check_share,
        "reference": None
        if reference is None
        else {
            "from": reference.first.isoformat(),
            "to": reference.last.isoformat(),
            "traces": reference.traces,
            "units": reference.units,
            "latency_ms": None if reference.latency is None else reference.latency / 1000,
            "answer_characters": reference.length,
        },
        "feedback": outcome.feedback,
        "alarms": [figure.name for figure in outcome.alarms],
        "risen": [asdict(risen) for risen in outcome.risen],
        "canaries": None if outcome.canaries is None else asdict(outcome.canaries),
        "figures": [
            {
                "name": figure.name,
                "label": figure.label,
                "bad_when": figure.about,
                **_share(outcome.series[figure.name]),
                "watch": as_dict(by_name[figure.name]) if figure.name in by_name else None,
            }
            for figure in shown_figures(outcome.sampling)
        ],
        "draws": [draw.to_dict() for draw in outcome.draws],
    }


def _filled(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: n for name, n in sorted(counts.items()) if n}


def _share(days: Sequence[DayCounts]) -> dict[str, Any]:
    bad, n = in_all(days)
    return {
        "bad": bad,
        "n": n,
        "share": None if (share := share_of(days)) is None else round(share, 6),
        "days": [{"day": date_of(day.day).isoformat(), "bad": day.bad, "n": day.n} for day in days],
    }


_HEAD = 1024
_BYTES_A_STEP = 32 << 20
_SPANS_A_STEP = 16_000
_CHARACTERS_A_STEP = 2 << 20


@dataclass
class TraceReading:
    """The result of reading in one look. ``bytes_read``: of the files, unpacked. ``problems``:
    files that could not be read, in a sentence each."""

    files: int = 0
    bytes_read: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    traces: int = 0
    keys: list[str] = field(default_factory=list)
    """The keys of the first value without spans."""


def trace_files(folder: Path) -> tuple[list[Path], int]:
    """The files of traces below a folder, and how many others there are."""
    if folder.is_file():
        return [folder], 0
    if not folder.is_dir():
        raise StorageError(f"{folder}: no such folder of traces.")
    return files_below(folder, JSON_ENDINGS)


def read_new(index: TraceIndex, folder: Path, now: int) -> TraceReading:
    """Read the new parts of the files of a folder into the index. ``now``: microseconds."""
    paths, others = trace_files(folder)
    look = TraceReading(files=len(paths))
    look.counts["files with other endings"] = others
    for path, known in _recognised(index, paths, look):
        try:
            _read_file(index, path, known, now, look)
        except OSError as error:
            look.problems.append(f"{path}: cannot be read ({error.strerror or error}).")
    return look


def _recognised(
    index: TraceIndex, paths: list[Path], look: TraceReading
) -> Iterator[tuple[Path, WatchedFile | None]]:
    """Each file with what is known of it; a file that was renamed or packed is known again."""
    rows = index.files()
    by_path = {row.path: row for row in rows}
    free = {row.id: row for row in rows}
    unknown = []
    for path in paths:
        row = by_path.get(str(path))
        if row is not None and _is_same(path, row, look):
            del free[row.id]
            yield path, row
        else:
            unknown.append(path)
    for path in unknown:
        match = next((row for row in free.values() if row.head and _is_same(path, row, look)), None)
        if match is not None:
            del free[match.id]
        yield path, match


def _is_same(path: Path, row: WatchedFile, look: TraceReading) -> bool:
    """Whether a file begins, and goes on where reading ended, as the one that was read."""
    try:
        status = path.stat()
        if row.path == str(path) and (row.size, row.changed) == (
            status.st_size,
            status.st_mtime_ns,
        ):
            return True
        with open_spans(path) as file:
            return (
                _hash(file.read(row.head)) == row.head_hash
                and _hash(_at(file, row.tail, row.tail_size)) == row.tail_hash
            )
    except OSError:
        return False


def _at(file: IO[bytes], offset: int, size: int) -> bytes:
    file.seek(offset)
    return file.read(size)


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:16]


def _read_file(
    index: TraceIndex, path: Path, known: WatchedFile | None, now: int, look: TraceReading
) -> None:
    status = path.stat()
    stamp = (status.st_size, status.st_mtime_ns)
    if known is not None and known.path == str(path) and (known.size, known.changed) == stamp:
        return
    with open_spans(path) as file:
        if known is None:
            head = file.read(_HEAD)
            row = index.new_file(str(path), len(head), _hash(head), _hash(b""))
        else:
            row = known._replace(path=str(path))
        _read_cuts(index, file, row, now, look, stamp)


def _read_cuts(
    index: TraceIndex,
    file: IO[bytes],
    row: WatchedFile,
    now: int,
    look: TraceReading,
    stamp: tuple[int, int],
) -> None:
    """Read a file to its end in steps; what a step read and how far it came go in together."""
    counts: Counter[str] = Counter()
    summaries = SpanSummaries(counts)
    spans: list[SpanRow] = []
    begun = row.offset

    def step(row: WatchedFile) -> None:
        summaries.mark_refusals(spans)
        index.add(row, spans, counts, now, summaries.ratings)
        summaries.ratings.clear()
        look.counts.update(counts)
        counts.clear()
        spans.clear()

    last: Cut | None = None
    fault: OSError | None = None
    try:
        for cut in cuts(file, Position(row.offset, row.shape, row.stack), counts):
            last = cut
            if cut.data:
                before = len(spans)
                try:
                    spans += summaries.of(cut.data, Place(row.id, cut.offset, len(cut.data)))
                    if len(spans) == before and not look.keys:
                        look.keys = keys_of(cut.data)
                except ValueError:
                    counts[DAMAGED] += 1
            many = (
                len(spans) + len(summaries.ratings) >= _SPANS_A_STEP
                or summaries.characters >= _CHARACTERS_A_STEP
            )
            if many or cut.after.offset - begun >= _BYTES_A_STEP:
                row = _behind(row, cut)
                step(row)
                look.bytes_read += row.offset - begun
                begun = row.offset
    except OSError as error:  # what was read before it stays
        fault = error
    if last is not None:
        row = _behind(row, last)
        look.bytes_read += row.offset - begun
    step(row._replace(size=stamp[0], changed=stamp[1]))
    if fault is not None:
        raise fault


def _behind(row: WatchedFile, cut: Cut) -> WatchedFile:
    """The row of a file that was read up to the end of a cut."""
    tail = cut.data[-_HEAD:]
    start = cut.offset + len(cut.data) - len(tail)
    return row._replace(
        tail=start,
        tail_size=len(tail),
        tail_hash=_hash(tail),
        offset=cut.after.offset,
        shape=cut.after.shape,
        stack=cut.after.stack,
    )
