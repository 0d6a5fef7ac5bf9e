"""scores/<section>.jsonl: the type of a score line, how it is written and how it is read.

A line for each result of a run, in the order of results.jsonl: case, repeat, status (scored,
not_applicable, failed), the score of each metric, the reasons of those that are missing, and the
evidence that they rest on. Readers name the fields that they use: others are not decoded.

Schema 2: the first line also has a ``head``, which names the section's metrics in order, and those
that a line may leave out, each with the reason why it then has no score, such as "no judgements".
Readers here give null and that reason for what a line leaves out. A line all of whose scores are
null for one reason (``*``) holds none of them. 0 and 1 are written as such. A file without a head
is of schema 1: its lines are complete.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain, repeat
from pathlib import Path
from typing import Annotated, Any

import msgspec
import orjson

from records import jsonl
from records.errors import StorageError
from records.file_access import open_plain
from records.files import replace_bytes
from records.runs import scores_file

OWN_TEXTS = "safety"
"""The section whose lines are labelled texts instead of the run's cases."""

Rank = Annotated[int, msgspec.Meta(ge=1)]
RepeatNumber = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]

Scores = dict[str, float | None]

SCHEMA = 2

Reasons = tuple[tuple[str, str], ...]
"""Metrics without a score, and why; ``name@*``: at every cut-off, ``*``: all."""


CALL_FAILED, NO_RESULT = "call failed: ", "asked, but the run has no result"
"""Why a line of a failed call has no scores: with the kind of failure, or without any result."""


def failed_otherwise(reasons: bytes) -> bool:
    """Whether the reasons of a failed line blame a judge, or a field that the answer lacks, and not
    the bot's call. Older lines do not say."""
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
        why = msgspec.json.decode(reasons, type=dict[str, str]).get("*", CALL_FAILED)
        return why != NO_RESULT and not why.startswith(CALL_FAILED.rstrip(": "))
    return False


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
    window: tuple[int, int] | None = None
    skipped: str | None = None
    missing: list[str] = []
    vetoed_by: list[str | float] = []
    negation_mismatch: bool = False
    opposite: bool = False
    unknown_names: list[str] = []


class CitationEvidence(msgspec.Struct):
    """A citation of the answer: the passage that it names, and whether that supports its claim."""

    target: str | int | None = None
    chunk_id: str | None = None
    supported: bool | None = None


class GroundednessEvidence(msgspec.Struct):
    """Claims, citations and numbers of the answer, and the labels' claims that it has or lacks.

    ``numbers``: by kind, ``fabricated`` for those that are in no source.
    """

    claims: list[ClaimEvidence] = []
    numbers: dict[str, list[str | float]] = {}
    citations: list[CitationEvidence] = []
    expected_claims_missing: list[str] = []
    forbidden_claims_found: list[str] = []
    nuggets_missing: list[str] = []


class OverBudget(msgspec.Struct):
    """A time that was too long."""

    ms: float
    budget_ms: float


class CitationCount(msgspec.Struct):
    """How many citations an answer has, and how many it needs."""

    present: int = msgspec.field(name="found")
    min: int


class PipelineEvidence(msgspec.Struct):
    """The outcome of a case beside the expected one, and the measurements."""

    expected: str | None = None
    outcome: str | None = None
    why: str | None = None
    missing_flags: list[str] = []
    forbidden_flags: list[str] = []
    over_budget: dict[str, OverBudget] = {}
    citations: CitationCount | None = None
    latency_ms: dict[str, float] = {}
    usage: dict[str, Any] = {}
    cost_usd: float | None = None
    run_budgets_ms: dict[str, float] = {}

    @property
    def reason(self) -> str:
        """Why it has its outcome, in brackets; empty where that only repeats the outcome."""
        why = self.why or ""
        return f" ({why})" if why not in ("", (self.outcome or "").replace("_", " ")) else ""


class AbstentionEvidence(msgspec.Struct):
    """The cell of the table answered x answerable, and how it was decided."""

    cell: str = ""
    decided_by: str = ""
    why: str | None = None
    phrases: str | None = None
    span: tuple[int, int] | None = None


class AlikeChunks(msgspec.Struct):
    """Two passages, and the share of 3-grams that they have in common."""

    chunks: list[str]
    overlap: float


class FactChunks(msgspec.Struct):
    """A gold fact, and the passages that contain it."""

    fact: str
    chunks: list[str]


class ContextEvidence(msgspec.Struct):
    """The passages that are most alike, and where the gold facts are."""

    most_alike: AlikeChunks | None = None
    facts: list[FactChunks] = []


class NearSentence(msgspec.Struct):
    """A sentence of the answer, its cosine to the nearest window of a passage, and that window."""

    window: float
    text: str
    nearest: str


class EmbeddingEvidence(msgspec.Struct):
    """The sentences of the answer."""

    sentences: list[NearSentence] = []


class JudgedItem(msgspec.Struct):
    """A claim or fact with its verdict."""

    text: str
    verdict: str
    quote: str | None = None
    chunk_id: str | None = None
    reason: str | None = None
    blame: str | None = None


class Manipulation(msgspec.Struct):
    """The signs that an answer addresses the judge: rules by name, the judge itself."""

    rules: list[str]
    judge: bool


class JudgedEvidence(msgspec.Struct):
    """The judged parts of an answer."""

    claims: list[JudgedItem] = []
    facts: list[JudgedItem] = []
    nuggets: list[JudgedItem] = []
    facts_in_contexts: list[JudgedItem] = []
    claims_in_reference: list[JudgedItem] = []
    questions: list[str] = []
    reply: str | None = None
    manipulation: Manipulation | None = None


class SearchEvidence(msgspec.Struct):
    """The result of one search: how many passages, the ranks of new ones, and of the gold."""

    passages: int = 0
    new: list[Rank] | None = None
    evidence_recall: float | None = None
    found: list[Rank | None] = []
    hits: list[Rank] | None = None
    error: str | None = None


class SearchesEvidence(msgspec.Struct):
    """The searches of an answer, and at which of them all needed evidence was there.

    ``complete_at``: unset where that was not scored. ``lost``: supports that the answer lacks.
    """

    match: str = ""
    searches: list[SearchEvidence] = []
    complete_at: int | msgspec.UnsetType | None = msgspec.UNSET
    lost: list[int] = []
    turn: int | None = None


class ConversationEvidence(msgspec.Struct):
    """A turn: the supports that it lacks, and the turns that brought them."""

    turn: int | None = None
    asks_back: bool | None = None
    match: str = "anchor"
    missing: list[int] = []
    found_at: list[int | None] = []


class ToolCallEvidence(msgspec.Struct):
    """A call of a tool: which expected one it fits, from 0, and what else it is."""

    name: str = ""
    expected: int | None = None
    forbidden: bool = False
    redundant: bool = False
    retry: bool = False


class ToolsEvidence(msgspec.Struct):
    """The calls of an answer in order, and the expected ones that were not made."""

    calls: list[ToolCallEvidence] = []
    missing: list[int] = []


class RubricVerdict(msgspec.Struct):
    """A judgement by a rubric; ``good``: it reaches the target. ``unchecked``: the verdict whose
    quote was found nowhere. ``others``: those of further opinions."""

    name: str
    verdict: str
    good: bool
    unchecked: str = msgspec.field(name="said", default="")
    quote: str = ""
    reason: str = ""
    others: list[str] = []


class RubricsEvidence(msgspec.Struct):
    """The verdicts on an answer by rubrics, and why others failed."""

    rubrics: list[RubricVerdict] = []
    failed: dict[str, str] = {}


class _PromptEvidence(msgspec.Struct):
    """A labelled text that the guardrails looked at."""

    kind: str | None = None
    category: str | None = None
    score: float | None = None
    text: str | None = None


class ScoreHead(msgspec.Struct, dict=True):
    """The first line of a file with the facts shared by all lines, see the module."""

    schema: int
    metrics: list[str]
    left_out: dict[str, str] = {}

    def complete(self, line: ScoreLine) -> None:
        """Add the shared values that a line leaves out to its scores and, if it has any, its
        reasons."""
        scores = line.scores
        if len(scores) == len(self.metrics):
            return
        line.scores = self._nothing | scores
        reasons = getattr(line, "reasons", None)
        if reasons is not None:
            line.reasons = self.reasons(scores, reasons)

    def reasons(self, scores: Scores, reasons: dict[str, str]) -> dict[str, str]:
        """The reasons of a line with those of the metrics that it leaves out."""
        if "*" in reasons:
            return reasons
        usual = {name: why for metric, name, why in self._probes if metric not in scores}
        return usual | reasons

    @cached_property
    def _nothing(self) -> Scores:
        return dict.fromkeys(self.metrics)

    @cached_property
    def _probes(self) -> list[tuple[str, str, str]]:
        """One of the metrics that each entry of ``left_out`` stands for, and the entry."""
        return [
            (
                next((metric for metric in self.metrics if _stands_for(name, metric)), name),
                name,
                why,
            )
            for name, why in self.left_out.items()
        ]


def _stands_for(name: str, metric: str) -> bool:
    return metric.startswith(name[:-1]) if name.endswith("@*") else metric == name


class ScoreLine(msgspec.Struct, omit_defaults=True):
    """A line of scores/<section>.jsonl; ``evidence`` is of its section's type, None without any.

    ``cluster``: the label of the cluster that its case belongs to, see ``records.clusters``; None
    for a case by itself, and in files of older versions. ``cluster_number``: a number for it;
    ``conversation``: that of its conversation, with the ``turn`` in it. The file holds none of
    these three (0: none). ``labelled``: the fingerprint of the labels that the scores rest on, see
    ``records.fingerprints``; None in files of older versions.
    """

    case_id: str
    repeat: RepeatNumber
    status: str
    scores: Scores
    reasons: dict[str, str] = {}
    evidence: Any = None
    cluster: str | None = None
    labelled: str | None = None
    cluster_number: int = 0
    conversation: int = 0
    turn: int = 0


SCORES_OF_CASE = ("case_id", "scores")

SCORES_OF_RESULT = (*SCORES_OF_CASE, "repeat")

ALL_BUT_EVIDENCE = (*SCORES_OF_RESULT, "status", "reasons")

EVIDENCE: Mapping[str, type[msgspec.Struct]] = {
    "retrieval": RetrievalEvidence,
    "groundedness": GroundednessEvidence,
    "pipeline": PipelineEvidence,
    "abstention": AbstentionEvidence,
    "context": ContextEvidence,
    "conversations": ConversationEvidence,
    "embedding": EmbeddingEvidence,
    "judged": JudgedEvidence,
    "rubrics": RubricsEvidence,
    "searches": SearchesEvidence,
    "tools": ToolsEvidence,
    "safety": _PromptEvidence,
}
"""The types of sections' evidence that readers use; other sections have evidence of any form."""

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


def raw_line(kind: type[ScoreLine], *more: tuple[str, Any, Any]) -> type[Any]:
    """The same type with the scores as the file has them: many lines have the same ones, which are
    then decoded once. ``more``: fields that are of another type, too, with their defaults."""
    parts: list[Any] = [("scores", msgspec.Raw), *more]
    return msgspec.defstruct(kind.__name__, parts, bases=(kind,), kw_only=True, gc=False)


def read_scores(folder: Path, section: str) -> Iterator[ScoreLine]:
    """The score lines of a run's section, with evidence of its own type. Raises StorageError for a
    line that is not a score line."""
    return _complete_lines(scores_file(folder, section), line_type(section), ())


def read_whole_scores(
    folder: Path, section: str, fields: Sequence[str] = ()
) -> Iterator[ScoreLine]:
    """The score lines of a section with their evidence unchanged, of any form, as plain data."""
    kind = jsonl.project(ScoreLine, tuple(fields)) if fields else ScoreLine
    return _complete_lines(scores_file(folder, section), kind, fields)


def _complete_lines(
    path: Path, kind: type[ScoreLine], fields: Sequence[str]
) -> Iterator[ScoreLine]:
    head = read_head(path) if not fields or "scores" in fields else None
    for _, _, line in jsonl.read(path, kind):
        if head is not None:
            head.complete(line)
        yield line


class _HeadLine(msgspec.Struct):
    head: ScoreHead | None = None


def read_head(path: Path) -> ScoreHead | None:
    """The head of a file of score lines; None without one (schema 1), or where it cannot be read.

    Raises StorageError for a schema that this version does not know.
    """
    try:
        with open_plain(path) as file:
            head = msgspec.json.decode(file.readline(), type=_HeadLine).head
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if head is not None and head.schema != SCHEMA:
        raise StorageError(
            f"{path}: has schema {head.schema}, but this version reads {SCHEMA}; score the run "
            "again, "
            "or update the toolkit."
        )
    return head


_decode_plain = msgspec.json.Decoder(ScoreLine).decode


def parse_own_scores(text: bytes) -> Iterator[ScoreLine]:
    """Score lines that this process has just encoded, evidence as plain data, without the scores
    that they leave out."""
    return map(_decode_plain, text.splitlines())


def write_scores(folder: Path, section: str, lines: Iterable[ScoreLine]) -> None:
    """Replace the score lines of a section, whole or not at all."""
    path = scores_file(folder, section)
    path.parent.mkdir(exist_ok=True)
    encoded = (orjson.dumps(msgspec.to_builtins(line)) + b"\n" for line in lines)
    replace_bytes(path, b"".join(encoded))


def encode_lines(
    case_ids: Iterable[str],
    repeats: Iterable[int],
    clusters: Iterable[str | None],
    labelled: Iterable[str],
    ends: Iterable[bytes],
    head: bytes = b"",
) -> bytes:
    """The score lines of results, one after the other; ``ends``: `encode_scores` and
    `encode_evidence` of each. ``labelled``: hex digits. ``head``: `encode_head`."""
    pieces = zip(
        repeat(b'{"case_id":'),
        map(orjson.dumps, case_ids),
        map(_encode_repeat, repeats),
        map(_encode_cluster, clusters),
        (b'"labelled":"%b",' % text.encode() for text in labelled),
        ends,
    )
    text = b"".join(chain.from_iterable(pieces))
    return b"{" + head + text[1:] if head and text else text


@lru_cache(maxsize=1024)
def _encode_repeat(repeat: int) -> bytes:
    return b',"repeat":%d,' % repeat


def _encode_cluster(label: str | None) -> bytes:
    return b"" if label is None else b'"cluster":%b,' % orjson.dumps(label)


def encode_head(metrics: Sequence[str], left_out: Reasons) -> bytes:
    """The start of a file's first line, behind its opening bracket."""
    head = {"schema": SCHEMA, "metrics": metrics, "left_out": dict(left_out)}
    return b'"head":' + orjson.dumps(head) + b","


def encode_scores(
    status: str,
    names: tuple[str, ...],
    scores: Sequence[float | None],
    reasons: Reasons,
    left_out: Reasons = (),
) -> bytes:
    """Status, scores and reasons as the middle of a score line: many lines have the same ones.

    ``left_out``: reasons that need not be given, as the head gives them.
    """
    written, reasons = _written(names, reasons, left_out)
    if reasons and reasons[0][0] == "*" and scores.count(None) == len(scores):
        written = {}
    if len(written) < len(names):
        scores = [scores[at] for at in written.values()]
    text = orjson.dumps(dict(zip(written, scores, strict=True)))
    # 0 and 1, which most scores are, without ".0"; no name of a metric holds these characters
    text = b"%b,}" % text[:-1]
    text = text.replace(b":0.0,", b":0,").replace(b":1.0,", b":1,").replace(b",}", b"}")
    more = b',"reasons":' + orjson.dumps(dict(reasons)) if reasons else b""
    return b'"status":"%b","scores":%b%b' % (status.encode(), text, more)


@lru_cache(maxsize=256)
def _written(
    names: tuple[str, ...], reasons: Reasons, left_out: Reasons
) -> tuple[dict[str, int], Reasons]:
    """The place of each metric that is not left out, and the reasons that are still to be given."""
    usual = [name for name, why in reasons if (name, why) in left_out]
    written = {
        metric: place
        for place, metric in enumerate(names)
        if not any(_stands_for(name, metric) for name in usual)
    }
    return written, tuple(pair for pair in reasons if pair not in left_out)


def encode_evidence(evidence: Mapping[str, Any]) -> bytes:
    """The evidence as the end of a score line."""
    return b',"evidence":' + orjson.dumps(evidence) + b"}\n" if evidence else b"}\n"
