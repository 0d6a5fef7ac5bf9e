"""scores/<section>.jsonl: the type of a score line, how it is written and how it is read.

A line for each result of a run, in the order of results.jsonl: case, repeat, status (scored,
not_applicable, failed), the score of each metric, the reasons of those that are missing, and the
evidence that they rest on. Readers name the fields that they use: others are not decoded.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, repeat
from pathlib import Path
from typing import Annotated, Any

import msgspec
import orjson

from records import jsonl
from records.files import replace_bytes
from records.runs import scores_file

Rank = Annotated[int, msgspec.Meta(ge=1)]

Scores = dict[str, int | float | None]


class RetrievalEvidence(msgspec.Struct):
    """How the gold was matched; the rank of each gold support, and the ranks that hit any."""

    match: str = ""
    found: list[Rank | None] | None = None
    hits: list[Rank] | None = None


class ClaimEvidence(msgspec.Struct):
    """A claim of the answer, as the support rules see it."""

    text: str = ""
    span: tuple[int, int] | None = None
    supported: bool | None = None
    score: float | None = None
    chunk_id: str | None = None
    skipped: str | None = None
    missing: list[str] = []
    vetoed_by: list[str | float] = []
    negation_mismatch: bool = False
    unknown_names: list[str] = []


class NumberEvidence(msgspec.Struct):
    """Numbers of the answer that stand in no source."""

    fabricated: list[str | float] = []


class GroundednessEvidence(msgspec.Struct):
    """Claims and numbers of the answer, and the claims of the labels that it holds or lacks."""

    claims: list[ClaimEvidence] = []
    numbers: NumberEvidence = msgspec.field(default_factory=NumberEvidence)
    expected_claims_missing: list[str] = []
    forbidden_claims_found: list[str] = []
    nuggets_missing: list[str] = []


class OverBudget(msgspec.Struct):
    """A time that was too long."""

    ms: float
    budget_ms: float


class PipelineEvidence(msgspec.Struct):
    """The outcome of a case beside the expected one, and what was measured."""

    expected: str | None = None
    outcome: str | None = None
    why: str | None = None
    missing_flags: list[str] = []
    forbidden_flags: list[str] = []
    over_budget: dict[str, OverBudget] = {}
    latency_ms: dict[str, float] = {}
    usage: dict[str, Any] = {}
    cost_usd: float | None = None


class _AbstentionEvidence(msgspec.Struct):
    """The cell of the table answered x answerable."""

    cell: str = ""


class _PromptEvidence(msgspec.Struct):
    """A labelled text that the guardrails looked at."""

    kind: str | None = None
    category: str | None = None
    score: float | None = None
    text: str | None = None


class ScoreLine(msgspec.Struct, omit_defaults=True):
    """A line of scores/<section>.jsonl; ``evidence`` is of its section's type, None without any.

    ``cluster``: the number of the cluster of its case; ``conversation``: that of its conversation,
    with the ``turn`` in it. The file holds none of the three (0: none).
    """

    case_id: str
    repeat: int
    status: str
    scores: Scores
    reasons: dict[str, str] = {}
    evidence: Any = None
    cluster: int = 0
    conversation: int = 0
    turn: int = 0


SCORES_OF_CASE = ("case_id", "scores")

SCORES_AND_STATUS = (*SCORES_OF_CASE, "status")

SCORES_OF_RESULT = (*SCORES_OF_CASE, "repeat")

ALL_BUT_EVIDENCE = (*SCORES_OF_RESULT, "status", "reasons")

EVIDENCE: Mapping[str, type[msgspec.Struct]] = {
    "retrieval": RetrievalEvidence,
    "groundedness": GroundednessEvidence,
    "pipeline": PipelineEvidence,
    "abstention": _AbstentionEvidence,
    "safety": _PromptEvidence,
}
"""What readers use of a section's evidence; other sections have evidence of any form."""

_LINES: Mapping[str, Any] = {
    section: msgspec.defstruct(
        "ScoreLine", [("evidence", kind | None, None)], bases=(ScoreLine,), omit_defaults=True
    )
    for section, kind in EVIDENCE.items()
}


def line_type(section: str, fields: Sequence[str] = ()) -> type[ScoreLine]:
    """The type of a section's score lines, with some of its fields (see ``jsonl.project``)."""
    kind: type[ScoreLine] = _LINES.get(section, ScoreLine)
    return jsonl.project(kind, tuple(fields)) if fields else kind


def read_scores(
    folder: Path,
    section: str,
    fields: Sequence[str] = (),
) -> Iterator[tuple[int, int, ScoreLine]]:
    """Number, byte offset and record of the score lines of a run's section, see ``jsonl.read``.

    Raises StorageError for a line that is no score line, as far as ``fields`` ask.
    """
    return jsonl.read(scores_file(folder, section), line_type(section, fields))


def read_whole_scores(
    folder: Path, section: str, fields: Sequence[str] = ()
) -> Iterator[ScoreLine]:
    """The score lines of a section with their evidence as it is, of any form, as plain data."""
    kind = jsonl.project(ScoreLine, tuple(fields)) if fields else ScoreLine
    for _, _, line in jsonl.read(scores_file(folder, section), kind):
        yield line


_decode_plain = msgspec.json.Decoder(ScoreLine).decode


def read_own_scores(path: Path) -> Iterator[ScoreLine]:
    """Score lines that this process or a worker of it has just written, evidence as plain data."""
    with open(path, "rb") as file:
        yield from map(_decode_plain, file)


def metric_names(path: Path) -> list[str]:
    """The metrics of a file of score lines, by its first line; [] when that cannot be read."""
    try:
        with open(path, "rb") as file:
            line = msgspec.json.decode(file.readline(), type=line_type("", ("scores",)))
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return []
    return list(line.scores)


_decode_scores = msgspec.json.Decoder(line_type("", ALL_BUT_EVIDENCE)).decode


def find_score_line(path: Path, case_id: str, repeat: int) -> ScoreLine | None:
    """The score line of one result, without its evidence; None where the file has none.

    The id is looked for in the bytes, so that a large file costs no decoding. Raises OSError.
    """
    needle = orjson.dumps(case_id)
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            at = data.find(needle)
            while at >= 0:
                start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
                end = end if end >= 0 else len(data)
                try:
                    line = _decode_scores(data[start:end])
                except (msgspec.MsgspecError, UnicodeDecodeError):
                    pass  # damaged, or the words stand inside a text
                else:
                    if (line.case_id, line.repeat) == (case_id, repeat):
                        return line
                at = data.find(needle, end)
    return None


class MetricColumns:
    """Decodes of a score line no more than case, repeat and some of its scores."""

    def __init__(self, metrics: Sequence[str]) -> None:
        fields = [(f"m{number}", float | None, None) for number in range(len(metrics))]
        names = {f"m{number}": name for number, name in enumerate(metrics)}
        scores = msgspec.defstruct("ColumnScores", fields, rename=names)
        line = msgspec.defstruct(
            "ColumnLine", [("case_id", str), ("repeat", int, 0), ("scores", scores | None, None)]
        )
        self.decode: Callable[[bytes], Any] = msgspec.json.Decoder(line).decode
        """Its ``scores`` have a field for each metric, see ``fields``; None without any."""
        self.fields = tuple(names)


def write_scores(folder: Path, section: str, lines: Iterable[ScoreLine]) -> None:
    """Replace the score lines of a section, whole or not at all."""
    path = scores_file(folder, section)
    path.parent.mkdir(exist_ok=True)
    encoded = (orjson.dumps(msgspec.to_builtins(line)) + b"\n" for line in lines)
    replace_bytes(path, b"".join(encoded))


def encode_lines(
    case_ids: Iterable[str],
    repeats: Iterable[int],
    middles: Iterable[bytes],
    evidence: Iterable[Mapping[str, Any] | bytes],
) -> bytes:
    """The score lines of a block of results, one after the other; ``middles``: `encode_scores`.

    Evidence that is bytes is encoded already.
    """
    pieces = zip(
        repeat(b'{"case_id":'),
        map(orjson.dumps, case_ids),
        map(_encode_repeat, repeats),
        middles,
        map(_encode_evidence, evidence),
    )
    return b"".join(chain.from_iterable(pieces))


@lru_cache(maxsize=1024)
def _encode_repeat(repeat: int) -> bytes:
    return b',"repeat":%d,' % repeat


def encode_scores(
    status: str, scores: Mapping[str, float | None], reasons: Iterable[tuple[str, str]]
) -> bytes:
    """Status, scores and reasons as the middle of a score line: many lines have the same ones."""
    middle: dict[str, Any] = {"status": status, "scores": scores}
    if reasons:
        middle["reasons"] = dict(reasons)
    return orjson.dumps(middle)[1:-1]


def _encode_evidence(evidence: Mapping[str, Any] | bytes) -> bytes:
    if not evidence:
        return b"}\n"
    text = evidence if isinstance(evidence, bytes) else orjson.dumps(evidence)
    return b',"evidence":' + text + b"}\n"
