"""One answer of the bot as on disk (a line of results.jsonl), and a run's configuration.

Records are msgspec structs: decoding checks types while it parses; unknown keys are skipped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from records.errors import Problem, StorageError
from records.feedback import Rating
from records.jsonl import Decode, project, read, whole
from records.lines import Block, Report, holds, iter_blocks, lines_at
from records.tool_calls import ToolCall, calls_beside_passages

SCHEMA = 1

TEXT_LIMIT = 200
"""Characters of a chunk's text that are kept unless the run stores full texts."""

UNREADABLE: Final = "unreadable"
"""The status of an answer that an import could not read: neither an answer nor a failed call."""

Status = Literal["ok", "error", "unreadable"]

EARLIER_TURN_FAILED = "earlier_turn_failed"
"""The kind of error of a turn that was not asked, because a turn before it has no answer."""


class RetrievedChunk(msgspec.Struct, gc=False):
    """One retrieved passage. ``rank`` counts from 1; scores are the bot's own, on no fixed scale.

    ``text_length`` counts the characters before truncation; ``text`` is shorter when it was cut.
    ``page``: as the bot calls it, a number or a label, of files that have pages.
    In a file a chunk may also be a plain string: its id, with the place in the list as its rank.
    """

    chunk_id: str = ""
    doc_id: str | None = None
    rel_path: str | None = None
    heading_path: str | None = None
    score_vector: float | None = None
    score_lexical: float | None = None
    score_final: float | None = None
    text: str | None = None
    text_length: int | None = None
    rank: int | None = None
    page: int | str | msgspec.UnsetType | None = msgspec.UNSET

    @property
    def truncated(self) -> bool:
        """True when ``text`` is known to be only the beginning of the passage."""
        return self.text_length is not None and len(self.text or "") < self.text_length

    @property
    def page_label(self) -> str:
        """The page as text; "" if the bot reports none."""
        return str(self.page).strip() if isinstance(self.page, int | str) else ""

    def cut(self, limit: int = TEXT_LIMIT) -> RetrievedChunk:
        """A copy whose text has at most ``limit`` characters, its full length kept beside it."""
        text = self.text
        if text is None:
            return self
        length = self.text_length if self.text_length is not None else len(text)
        return msgspec.structs.replace(self, text=text[:limit], text_length=length)


class SearchedChunk(RetrievedChunk, gc=False, omit_defaults=True):
    """A passage that one search returned; ``rank`` is its place in that search.

    In a file its ``text`` is left out, and ``text_length`` stays, where a passage of ``retrieved``
    or of an earlier search has the same id and the same text.
    """


class Search(msgspec.Struct, gc=False, omit_defaults=True):
    """One search on the way to an answer, in the order in which they began.

    ``start_ms`` counts from the beginning of the call. ``error``: why it failed, None when it did
    not; one that failed returned nothing.
    """

    query: str | None = None
    tool: str | None = None
    start_ms: float | None = None
    latency_ms: float | None = None
    error: str | None = None
    retrieved: list[SearchedChunk | str] = msgspec.field(default_factory=list)


class Reference(msgspec.Struct, gc=False, omit_defaults=True):
    """A source that the answer cites; ``index`` is the n of its ``[n]`` mark."""

    index: int | None = None
    chunk_id: str | None = None
    doc_id: str | None = None
    rel_path: str | None = None
    heading_path: str | None = None


class FolderSelection(msgspec.Struct, gc=False):
    """Folders that the bot searched. An empty ``chosen`` means that it searched all of them."""

    chosen: list[str] = msgspec.field(default_factory=list)
    reason: str | None = None


class ErrorInfo(msgspec.Struct, gc=False):
    """Why a call failed: ``kind`` is one of the client's kinds, ``attempts`` counts the tries."""

    kind: str
    message: str = ""
    attempts: int = 1


class TestResult(msgspec.Struct):
    """The bot's answer to one case, or the error that ended it. Times in milliseconds.

    ``status`` ``unreadable``: the bot gave something back, and it is not known which text is the
    answer (``absent["answer"]`` says why). No score counts such a result, for or against the bot.

    ``retrieved`` is what the answer saw: an empty list says that nothing was found, null that it is
    unknown (not mapped, or ``absent`` says why); so it is with ``references``. ``absent``: fields
    that the profile maps and this answer lacks, each with what was looked for. ``searches``: how it
    was come by, where told; ``retrieved_from_search``: the number (from 1) of the search whose
    passages stand in ``retrieved`` because nothing else says what the answer saw.
    ``rewritten_query``: the question as the bot made it whole before it searched. Lines of bots
    without searches have none of them. ``seen``: how it is known what the answer saw of several
    searches (``prompt``: what stood in front of the model; ``union``: all that they brought).
    ``seen_tools``: results of tools that it saw and that are no passages. ``tools``: the calls of
    tools where the bot reports them; an empty list says that there was none. ``handoffs``: agents
    that took over, in order, which are no tools. ``feedback``: what
    people said of the answer, where told.

    Of a turn of a conversation, and of a case with a history of its own: ``asked_with`` says which
    history it was asked with (``live``, ``replay``, ``alone``, ``none``, or ``fixed``),
    ``history_sha256`` is the hash of the messages as they were sent, ``session`` what the bot knew
    the conversation by.

    ``asked``: the fingerprint of the question, see ``records.fingerprints``; older lines lack it.
    """

    __test__ = False  # pytest: not a test class

    test_case_id: str
    question: str = ""
    status: Status = "ok"
    schema: int = SCHEMA
    error: ErrorInfo | None = None
    answer: str | None = None
    references: list[Reference] | None = None
    retrieved: list[RetrievedChunk | str] | None = None
    folder_selection: FolderSelection | None = None
    abstained: bool | None = None
    abstain_reason: str | None = None
    confidence: float | None = None
    policy_flags: list[str] = msgspec.field(default_factory=list)
    guardrail: dict[str, Any] = msgspec.field(default_factory=dict)
    latency_ms: dict[str, float] = msgspec.field(default_factory=dict)
    usage: dict[str, Any] = msgspec.field(default_factory=dict)
    cost_usd: float | None = None
    repeat: int = 0
    asked_with: str | None = None
    history_sha256: str | None = None
    session: str | None = None
    searches: list[Search] | msgspec.UnsetType = msgspec.UNSET
    rewritten_query: str | msgspec.UnsetType = msgspec.UNSET
    retrieved_from_search: int | msgspec.UnsetType = msgspec.UNSET
    absent: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    tools: list[ToolCall] | msgspec.UnsetType = msgspec.UNSET
    handoffs: list[str] | msgspec.UnsetType = msgspec.UNSET
    seen: Literal["prompt", "union"] | msgspec.UnsetType = msgspec.UNSET
    seen_tools: list[str] | msgspec.UnsetType = msgspec.UNSET
    asked: str | msgspec.UnsetType = msgspec.UNSET
    feedback: list[Rating] | msgspec.UnsetType = msgspec.UNSET

    def chunks(self) -> list[RetrievedChunk]:
        """The retrieved passages in rank order; plain ids become chunks ranked by their place."""
        return _ranked(self.retrieved or ())

    def seen_chunks(self, k: int | None = None) -> list[RetrievedChunk]:
        """The passages that the answer saw, or the first ``k``, and after them the results of tools
        that are no passages."""
        return [*self.chunks()[:k], *self.tool_sources()]

    def tool_sources(self) -> list[RetrievedChunk]:
        """The results of tools that the answer saw and that are no passages, as sources of claims:
        those that are known from its prompt, else those of all its calls."""
        lengths = {text: len(text) for text in self.seen_tools or ()}
        if not lengths and self.tools:
            lists = [self.chunks(), *(chunks for _, chunks in self.searched())]
            calls = calls_beside_passages(
                self.tools,
                {search.tool for search in self.searches or ()},
                [[chunk.text or "" for chunk in chunks] for chunks in lists],
                self.answer,
            )
            texts = [(call.result or "", call.result_length) for call in calls]
            lengths = {text: length or len(text) for text, length in texts}
        first = len(self.retrieved or ()) + 1
        return [
            RetrievedChunk(f"tool-{rank - first + 1}", text=text, text_length=length, rank=rank)
            for rank, (text, length) in enumerate(lengths.items(), first)
        ]

    def rankings(self) -> list[list[RetrievedChunk]]:
        """The lists that a metric of ranks may take: the passages as they are ranked, or, where an
        answer saw those of several searches, which no one list ranks, those of each search."""
        if not self.seen:
            return [self.chunks()]
        lists = [chunks for _, chunks in self.searched()]
        if number := self.retrieved_from_search:
            return [lists[number - 1]]
        return [chunks for chunks in lists if chunks]

    def searched(self) -> list[tuple[Search, list[RetrievedChunk]]]:
        """Each search with its passages in rank order, the texts that are stored once filled in."""
        if not self.searches:
            return []
        lists = [_ranked(search.retrieved) for search in self.searches]
        first: dict[str, RetrievedChunk] = {}
        for chunk in chain(self.chunks(), *lists):
            if first.setdefault(chunk.chunk_id, chunk).text is None:
                first[chunk.chunk_id] = chunk
        return [
            (search, [_filled(chunk, first[chunk.chunk_id]) for chunk in chunks])
            for search, chunks in zip(self.searches, lists, strict=True)
        ]

    def to_dict(self, *, store_full_text: bool = False) -> dict[str, Any]:
        """As a plain dict. Chunk texts and results of tools are cut to ``TEXT_LIMIT`` unless
        ``store_full_text``; a text that several searches returned occurs once."""
        retrieved = self.retrieved
        if retrieved and not store_full_text:
            retrieved = [item if isinstance(item, str) else item.cut() for item in retrieved]
        stored = msgspec.structs.replace(self, retrieved=retrieved)
        if self.searches:
            stored.searches = _stored_once(self.searches, self.chunks(), store_full_text)
        if self.tools and not store_full_text:
            stored.tools = [call.cut(TEXT_LIMIT) for call in self.tools]
        data: dict[str, Any] = msgspec.to_builtins(stored)
        if self.asked_with is None:
            for name in _OF_TURNS:
                del data[name]
        return data


def union_of(lists: Sequence[Sequence[RetrievedChunk]]) -> list[RetrievedChunk]:
    """The passages of several lists, each once by its place and text, ranked in that order."""
    once: dict[Any, RetrievedChunk] = {}
    for chunk in chain(*lists):
        place = (chunk.rel_path, chunk.heading_path, chunk.text) if chunk.text else chunk.chunk_id
        if place not in once:
            fields = {name: getattr(chunk, name) for name in RetrievedChunk.__struct_fields__}
            once[place] = RetrievedChunk(**fields | {"rank": len(once) + 1})
    return list(once.values())


NOT_MAPPED, NO_LIST = "passages are not mapped", "no list at "
"""Why passages are unknown: of the whole run, and of an answer that lacks them, with the path."""


def passages_unknown(result: TestResult) -> str:
    """Why no one knows which passages there were: this answer lacks what the profile maps, or it
    maps none; "" where that is known."""
    if result.retrieved is not None:
        return ""
    return (result.absent or {}).get("retrieved") or NOT_MAPPED


def passages_are_unknown(reason: str) -> bool:
    """Whether the reason of a missing score is that no one knows which passages there were."""
    return reason == NOT_MAPPED or reason.startswith(NO_LIST)


def why_unreadable(result: TestResult) -> str:
    """Why an answer could not be read, in words."""
    return (result.absent or {}).get("answer") or "the source does not say which text it is"


def without_answer(result: TestResult) -> str:
    """The name under which a result without an answer is counted: ``failed calls``."""
    return "answers that could not be read" if result.status == UNREADABLE else "failed calls"


def is_root_failure(result: TestResult) -> bool:
    """True for a call that failed itself: not for a turn that was not asked behind a failed one."""
    earlier = result.error is not None and result.error.kind == EARLIER_TURN_FAILED
    return result.status == "error" and not earlier


_OF_TURNS = ("asked_with", "history_sha256", "session")
"""Fields that only the lines of questions with a history have."""


_rank = attrgetter("rank")


def _ranked(items: Sequence[RetrievedChunk | str]) -> list[RetrievedChunk]:
    """Passages in rank order; plain ids become chunks ranked by their place."""
    chunks = [
        RetrievedChunk(chunk_id=item, rank=rank) if isinstance(item, str) else item
        for rank, item in enumerate(items, start=1)
    ]
    if None not in map(_rank, chunks):
        chunks.sort(key=_rank)
    return chunks


_PLACE = ("doc_id", "rel_path", "heading_path", "text", "text_length")


def _filled(chunk: RetrievedChunk, first: RetrievedChunk) -> RetrievedChunk:
    """A passage of a search with what another one of its id, ``first``, tells for both: the text
    that was left out, or all of its place where it is nothing but an id."""
    if chunk.text is None and chunk.text_length is not None:
        return msgspec.structs.replace(chunk, text=first.text)
    if chunk.chunk_id and all(getattr(chunk, name) is None for name in _PLACE):
        return msgspec.structs.replace(chunk, **{name: getattr(first, name) for name in _PLACE})
    return chunk


def _stored_once(
    searches: Sequence[Search], retrieved: Sequence[RetrievedChunk], store_full_text: bool
) -> list[Search]:
    """Searches without the texts that stand in the line already, under the same id."""
    texts = {chunk.chunk_id: chunk.text for chunk in reversed(retrieved) if chunk.text is not None}
    stored = []
    for search in searches:
        items: list[SearchedChunk | str] = []
        for item in search.retrieved:
            if isinstance(item, str) or item.text is None:
                items.append(item)
                continue
            length = len(item.text) if item.text_length is None else item.text_length
            text: str | None = item.text if store_full_text else item.text[:TEXT_LIMIT]
            if item.text and texts.get(item.chunk_id) == item.text:
                text = None
            texts.setdefault(item.chunk_id, item.text)
            items.append(msgspec.structs.replace(item, text=text, text_length=length))
        stored.append(msgspec.structs.replace(search, retrieved=items))
    return stored


class RunConfig(msgspec.Struct):
    """Snapshot of all that a run was made with. Only these fields are written: no secret enters.

    ``dataset``: path, sha256, git commit, number of cases. ``index``, ``retriever``, ``answerer``:
    what the bot tells of itself, and what the run asked for. ``api``: URL without secrets, profile,
    debug fields seen. ``run``: concurrency, timeouts and the like, which cannot change a result.

    ``k`` and ``folder_mode`` are a short way to say two settings of the retriever: what is given
    stands in ``retriever`` from then on. Without ``run_id`` it gets the one of its ResultsWriter.
    """

    run_id: str = ""
    schema: int = SCHEMA
    tool_version: str = ""
    config_hash: str = ""
    dataset: dict[str, Any] = msgspec.field(default_factory=dict)
    index: dict[str, Any] = msgspec.field(default_factory=dict)
    retriever: dict[str, Any] = msgspec.field(default_factory=dict)
    answerer: dict[str, Any] = msgspec.field(default_factory=dict)
    api: dict[str, Any] = msgspec.field(default_factory=dict)
    judge: dict[str, Any] = msgspec.field(default_factory=dict)
    run: dict[str, Any] = msgspec.field(default_factory=dict)
    seed: int | None = None
    started: str | None = None
    finished: str | None = None
    k: int | msgspec.UnsetType = msgspec.UNSET
    folder_mode: str | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        for name in ("k", "folder_mode"):
            value = getattr(self, name)
            if value is not msgspec.UNSET:
                self.retriever = self.retriever | {name: value}
                setattr(self, name, msgspec.UNSET)  # which is never written: one fact, one place


def result_type(*fields: str) -> type[TestResult]:
    """The type of a result with some of its fields (see ``jsonl.project``)."""
    return project(TestResult, fields)


_DECODER = msgspec.json.Decoder(TestResult)

_SCHEMA = attrgetter("schema")


def read_results(
    path: Path, fields: Sequence[str] = (), report: Report | None = None
) -> Iterator[tuple[int, TestResult]]:
    """Byte offset and record of each result, with some of its fields; see ``jsonl.read``.

    Raises StorageError for a line that is no result as far as ``fields`` ask, unless a ``report``
    takes it, and for a file that cannot be read.
    """
    kind = result_type(*fields) if fields else TestResult
    for _, offset, result in read(path, kind, "result line", "make the run again", report):
        yield offset, result


def result_offsets(
    path: Path,
    case_ids: Collection[str] | None = None,
    report: Report | None = None,
    *,
    whole: bool = False,
) -> dict[str, tuple[int, ...]]:
    """Where the results of each case (by default of all) begin in a file of results, by repeat.

    ``report`` takes lines that are no results, else they raise StorageError. ``whole``: each line
    is checked in full, else for what is read here.
    """
    fields = () if whole else ("test_case_id", "repeat")
    places: dict[str, tuple[tuple[int, int], ...]] = {}
    for offset, result in read_results(path, fields, report):
        case_id = result.test_case_id
        if case_ids is None or case_id in case_ids:
            places[case_id] = (*places.get(case_id, ()), (result.repeat, offset))
    return {case_id: tuple(offset for _, offset in sorted(own)) for case_id, own in places.items()}


def results_of(path: Path, case_ids: Collection[str]) -> list[TestResult]:
    """All results of some cases. Raises StorageError for damaged results."""
    offsets = chain.from_iterable(result_offsets(path, case_ids).values())
    lines = read(path, TestResult, "result line", "make the run again", at=offsets)
    return [result for _, _, result in lines]


_SEARCHES = b'"searches":[{'
_TOOLS = b'"tools":['
_FEEDBACK = b'"feedback":[{'
"""In a text the quotes are escaped: these are keys, and a list of searches is not empty."""


def tells_searches(path: Path) -> bool:
    """Whether a line of the file has the searches that led to its passages."""
    return holds(path, _SEARCHES)


def tells_tools(path: Path) -> bool:
    """The same of calls of tools, if only that there was none."""
    return holds(path, _TOOLS)


def tells_feedback(path: Path) -> bool:
    """The same for people's ratings of answers."""
    return holds(path, _FEEDBACK)


def tells_retrieved(line: bytes) -> bool:
    """Whether a line has the retrieved passages, even if there were none."""
    return _decode_retrieved(line).retrieved is not None


class _Retrieved(msgspec.Struct):
    retrieved: list[msgspec.Raw] | None = None


_decode_retrieved = msgspec.json.Decoder(_Retrieved).decode


def iter_results(path: Path, report: Report | None = None) -> Iterator[TestResult]:
    """Results one line at a time, never the whole file in memory.

    Lines that are no result are passed to ``report``; without it, the first one raises.
    """
    return chain.from_iterable(iter_result_blocks(path, report, whole(TestResult)))


def iter_result_blocks(
    path: Path, report: Report | None, decode: Decode[TestResult]
) -> Iterator[list[TestResult]]:
    """The same in lists of neighbours, a block of the file each."""

    def refuse(problem: Problem) -> None:
        if report is None:
            raise StorageError.from_problems([problem])
        report(problem)

    for block in iter_blocks(path):
        try:
            results = decode(block.lines)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            results = list(_sound_results(refuse, block))
        else:
            if list(map(_SCHEMA, results)).count(SCHEMA) < len(results):
                results = list(_sound_results(refuse, block))
        yield results


def _sound_results(refuse: Report, block: Block) -> Iterator[TestResult]:
    """The sound lines of one block, the others refused with their numbers."""
    path = block.path
    lines = lines_at(path, refuse, block.start, block.end, limit=None, lines=block.before)
    for number, line in lines:
        result = result_of(path, number, line, "run it again")
        if isinstance(result, Problem):
            refuse(result)
        else:
            yield result


def result_of(path: Path, number: int, line: bytes, remedy: str) -> TestResult | Problem:
    """The result of one line, or its fault and the remedy."""
    try:
        result = _DECODER.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return Problem(str(path), number, "", f"not a result line ({error}); {remedy}")
    if result.schema == SCHEMA:
        return result
    message = f"this version reads schema {SCHEMA}, the line says {result.schema}; {remedy}"
    return Problem(str(path), number, "schema", message)
