"""verdicts.jsonl: what a judge said of each claim, fact and passage, and which of it counts.

A line for each case, repeat of the answer, metric, opinion of the judge and part (blocks of twenty
items; single chunks). The file is only appended to; the last line of a key wins. A line
``{"withdrawn": ID, "reason": …}`` takes back what one run of judging has brought: ``read_lines``,
which all readers use, passes over every line that rests on it, and gives each line who judged it
(``verdict_lines``). No line gives the text of a passage: it is in results.jsonl. Whoever shows or
counts a verdict asks ``records.judgements``, which leaves out what another judge said, and of
another answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict, cast

import msgspec

from records import jsonl, verdict_lines
from records.errors import Problem, StorageError
from records.file_access import open_plain
from records.files import JsonlWriter, check_schema, locked
from records.lines import lines_from
from records.rubrics import PREFIX, Rubric, of_prompt
from records.runs import CONFIG, read_config
from records.verdict_lines import VerdictPrompt, VerdictSetting, read_setting

REMEDY = "delete the line and judge again"
_DAMAGED_REMEDY = "judge again; this asks for the lost verdicts"
_SETTING_REMEDY = "delete it and the lines that name it, and judge again: the cache has them"

QUOTE_UNVERIFIED = "quote_unverified"
"""Replaces a verdict that needs a quote when no text contains the quote: counts as not so."""

VerdictLine = dict[str, Any]

VerdictKey = tuple[str, int, str, int, int]
"""case id, repeat of the answer, metric, opinion, part."""

Status = Literal["ok", "failed", "not_applicable"]

Items = Literal["claims", "facts", "nuggets", "contexts"]
"""The numbered items of a call, as in the ``input`` of its line."""

Source = Literal["contexts", "answer", "other", "reference", "facts"]
"""The source of a quote, as in the ``input`` of a line."""

Strength = Literal["digest", "build", "revision", "name only", "code"]
"""The strength of an identity: the hash of the weights, the server's build, a revision that the
user declared, nothing but the model's name, or (the local judge) the version of our own rules."""

MODES = ("json_schema", "json_object_schema", "tool", "json_object", "plain")
"""Ways to ask a judge's server for JSON, best first, as the ``mode`` of a line names them: the
server holds the model to the schema; the same in the older words of llama.cpp, which
llama-cpp-python and some hosts know alone; a forced call of one function; any JSON, and the schema
stands in the prompt; no help from the server."""

Count = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]


class CallKind(msgspec.Struct, frozen=True):
    """One kind of call. ``verdicts``: what can be said of an item; none for calls that write texts.

    ``prompt``: the name of the prompt that asks it. ``items``: what is numbered, a verdict each;
    None where the verdict is on the answer as a whole. ``positive``: the verdict that needs a quote
    from one of the ``sources`` (None: no such). ``partial``: one of half credit, which needs a
    quote, too. ``cites``: an entry names the block that it quotes.
    ``extra``: further fields of the reply. ``rubric``: whose question it is, where that is not the
    toolkit's own; ``frame`` is then the prompt file that the rubric is put into, and ``prompt`` the
    rubric's name. ``quotes``: the verdicts that need a quote, where they are not the two above.
    ``texts``: what the reply writes beside its verdicts. ``prompts``: the folder of an extra that
    has the prompt file; None for the toolkit's own.
    """

    prompt: str
    verdicts: tuple[str, ...] = ()
    items: Items | None = None
    positive: str | None = None
    partial: str | None = None
    sources: tuple[Source, ...] = ()
    cites: bool = False
    extra: tuple[str, ...] = ()
    rubric: Rubric | None = None
    frame: str = ""
    quotes: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    prompts: Path | None = None

    @property
    def quoted(self) -> tuple[str, ...]:
        """The verdicts that need a quote."""
        return self.quotes or tuple(verdict for verdict in (self.positive, self.partial) if verdict)

    @property
    def scale(self) -> tuple[str, ...]:
        """The verdicts from least to most where they are a scale of three or more; else none."""
        if self.rubric is not None:
            return () if self.rubric.binary else self.rubric.labels
        return self.verdicts[::-1] if self.partial else ()

    def ids_of(self, material: Mapping[Items, Sequence[Mapping[str, Any]]]) -> list[str]:
        """The ids that need a verdict each, of the numbered texts of a call."""
        if self.items is not None:
            return [item["id"] for item in material.get(self.items, ())]
        return ["1"] if self.verdicts else []


KINDS: Mapping[str, CallKind] = {
    "groundedness": CallKind(
        "groundedness",
        ("supported", "contradicted", "not_found"),
        items="claims",
        positive="supported",
        sources=("contexts",),
        cites=True,
    ),
    "correctness": CallKind(
        "correctness",
        ("present", "contradicted", "missing"),
        items="facts",
        positive="present",
        sources=("answer",),
        extra=("addresses_question",),
    ),
    "answer_correctness": CallKind(
        "entailment",
        ("supported", "contradicted", "not_found"),
        items="claims",
        positive="supported",
        sources=("reference", "facts"),
        cites=True,
    ),
    "context_precision": CallKind("relevance", ("useful", "not_useful"), items="contexts"),
    "context_recall": CallKind(
        "attribution",
        ("attributed", "not_attributed"),
        items="facts",
        positive="attributed",
        sources=("contexts",),
        cites=True,
    ),
    "nuggets": CallKind(
        "nuggets",
        ("support", "partial", "none"),
        items="nuggets",
        positive="support",
        partial="partial",
        sources=("answer",),
    ),
    "answer_relevancy": CallKind("questions", extra=("noncommittal",)),
    "abstained_judged": CallKind(
        "abstention", ("answered", "partial", "abstained", "asks_back", "refused_policy")
    ),
}
"""The kind of call behind each ``metric`` of a verdict line. The last verdict of those with a
positive one is what they say where nothing is found."""


@lru_cache(maxsize=256)
def rubric_kind(rubric: Rubric) -> CallKind:
    """The kind of call that asks a rubric: one verdict on the answer, with a quote from it or from
    a passage that the rubric reads."""
    reads_passages = "passages" in rubric.reads
    return CallKind(
        rubric.metric,
        rubric.labels,
        sources=("answer", "contexts") if reads_passages else ("answer",),
        cites=reads_passages,
        rubric=rubric,
        frame="rubric",
        quotes=rubric.quoted,
    )


def kind_of(line: Mapping[str, Any]) -> CallKind | None:
    """The kind of call that a verdict line comes from; None when it is not known any more.

    Raises msgspec.ValidationError where the line's rubric is none.
    """
    if not line["metric"].startswith(PREFIX):
        return KINDS.get(line["metric"])
    rubric = of_prompt(line["prompt"])
    return None if rubric is None else rubric_kind(rubric)


class JudgeIdentity(msgspec.Struct, frozen=True):
    """Who judges, without where: what config.json and the cache key hold.

    ``provider``: local, ollama, llama.cpp, llama-cpp-python, vllm, lmstudio, openai or unknown.
    ``digest``, ``build``, ``revision``: what the server or the user tells, None when unknown.
    """

    provider: str
    model: str
    digest: str | None = None
    build: str | None = None
    revision: str | None = None
    strength: Strength = "name only"

    def to_dict(self) -> dict[str, Any]:
        """The identity as in config.json, in verdicts and in the cache key."""
        return msgspec.structs.asdict(self)

    def __str__(self) -> str:
        """Short, for tables and verdicts: ``provider/model@digest``."""
        mark = self.digest or self.build or self.revision
        return f"{self.provider}/{self.model}" + (f"@{mark[:19]}" if mark else "")


class _Item(TypedDict):
    id: str
    text: str
    span: NotRequired[tuple[Count, Count] | None]
    lead: NotRequired[str]


class _Context(TypedDict):
    id: str
    chunk_id: NotRequired[str]
    sha256: NotRequired[str]


class _Input(TypedDict, total=False):
    answer_sha256: str
    other_sha256: str
    contexts: list[_Context]
    claims: list[_Item]
    facts: list[_Item]
    nuggets: list[_Item]


class _Entry(TypedDict):
    id: str
    verdict: str
    context: NotRequired[str | None]
    quote: NotRequired[str | None]
    reason: NotRequired[str | None]
    score: NotRequired[float | None]


class _Extra(TypedDict, total=False):
    mark: str | None
    votes: dict[str, list[str | None]]
    """Of a panel, by item: what each member said, in its order; None for no vote."""
    by_code: str
    manipulation: bool
    addresses_question: bool
    noncommittal: bool
    questions: list[str]


class _Line(TypedDict):
    """A line as far as scores and people read it; see ``verdict_lines`` for what it leaves out."""

    schema: NotRequired[Any]
    case_id: str
    metric: str
    setting: str
    repeat: NotRequired[Count]
    judge_repeat: NotRequired[Count]
    part: NotRequired[Count]
    parts: NotRequired[Annotated[int, msgspec.Meta(ge=1, lt=2**31)]]
    status: NotRequired[Status]
    reason: NotRequired[str | None]
    failure: NotRequired[str | None]
    prompt: NotRequired[VerdictPrompt]
    judge: NotRequired[dict[str, Any]]
    parameters: NotRequired[dict[str, Any]]
    key: NotRequired[str]
    made_of: NotRequired[str | None]
    subject: NotRequired[str]
    mode: NotRequired[str]
    answered_as: NotRequired[list[str]]
    judging_runs: NotRequired[list[str]]
    input: NotRequired[_Input]
    verdicts: NotRequired[list[_Entry]]
    extra: NotRequired[_Extra]


def key_of(line: Mapping[str, Any]) -> VerdictKey:
    """The key of a line's judgement; a later line with the same key replaces it."""
    return (
        line["case_id"],
        line["repeat"],
        line["metric"],
        line["judge_repeat"],
        line.get("part", 0),
    )


class VerdictPlace(msgspec.Struct):
    """Which answer a line is on; one that withdraws others names no case, and is on all."""

    case_id: str | None = None
    repeat: int = 0


class VerdictExtra(msgspec.Struct):
    """Of a line's ``extra``."""

    mark: str | None = None


class VerdictHead(msgspec.Struct):
    """The fields that identify a verdict line, without its texts."""

    case_id: str
    repeat: int
    metric: str
    judge_repeat: int
    status: str
    part: int = 0
    parts: int = 1
    reason: str | None = None
    key: str = ""
    inputs_sha256: str | None = msgspec.field(name="made_of", default=None)
    mode: str = ""
    judge: dict[str, Any] = {}
    parameters: dict[str, Any] = {}
    prompt: dict[str, Any] = {}
    extra: VerdictExtra = msgspec.field(default_factory=VerdictExtra)


def head_of(line: VerdictLine) -> VerdictHead:
    """The fields that identify a line."""
    return msgspec.convert(line, VerdictHead)


def read_lines(
    path: Path,
    keep: Callable[[VerdictLine], bool] = lambda line: True,
    at: Iterable[int] | None = None,
    settings: dict[str, VerdictSetting] | None = None,
) -> Iterator[VerdictLine]:
    """All lines in order, each with the fields of ``_Line``; [] when there is no file.

    Lines that were withdrawn are left out. ``at``: only the lines that begin at these byte offsets,
    those that withdraw and those that say who judged among them. ``settings``: who judged, as read
    before; those that are read now are put there. A torn last line is passed over. Raises
    StorageError naming any other line that is damaged: not of its types, or with verdicts that are
    not those of its items.
    """
    offsets = None if at is None else list(at)
    notes = _notes(path, offsets)
    taken_back = {note.withdrawn for note in notes.values() if isinstance(note, Withdrawal)}
    settings = {} if settings is None else settings
    settings |= {n.setting: n for n in notes.values() if isinstance(n, VerdictSetting)}
    if offsets is not None:
        offsets = [offset for offset in offsets if offset not in notes]
    for number, typed in _decoded(path, offsets):
        line = cast(VerdictLine, typed)
        if not taken_back.isdisjoint(line.get("judging_runs", ())):
            continue
        check_schema(path, line.get("schema"), verdict_lines.SCHEMA, line=number)
        setting = settings.get(line["setting"])
        if setting is None:
            fault: tuple[str, str] | None = "setting", _NO_JUDGE.format(line["setting"])
        else:
            line = verdict_lines.full_line(line, setting)
            fault = _fault(line)
        if fault:
            message = f"{fault[1]}; {REMEDY}"
            problem = Problem(str(path), number or None, fault[0], message)
            raise StorageError.from_problems([problem])
        if keep(line):
            yield line


_NO_JUDGE = (
    "no line of the file describes the judge of {!r}; this applies to all lines that name it, and "
    "the cache has them"
)


class VerdictReader:
    """Reads a verdicts.jsonl that grows: each line once.

    Whoever judges reads all lines before anything is paid, and afterwards only what has come.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: list[VerdictLine] = []
        self._settings: dict[str, VerdictSetting] = {}
        self._end = 0

    def read(self) -> Sequence[VerdictLine]:
        """All lines that count, as the file is now. Raises StorageError as ``read_lines`` does."""
        start, offsets = self._end, []
        if self.path.exists():
            with open_plain(self.path) as file:
                file.seek(start)
                for line in file:
                    if line.endswith(b"\n"):
                        offsets.append(self._end)
                        self._end += len(line)
        # Without offsets a damaged line is told with its number.
        at = offsets if start else None
        self._lines.extend(read_lines(self.path, at=at, settings=self._settings))
        if start and offsets and (taken_back := _withdrawn(self.path).keys()):
            self._lines = [
                line for line in self._lines if taken_back.isdisjoint(line.get("judging_runs", ()))
            ]
        return self._lines


def _decoded(path: Path, at: Iterable[int] | None) -> Iterator[tuple[int, _Line]]:
    """Number and record of each line; damaged lines are reported together at the end."""
    if not path.exists():
        return
    faults: list[Problem] = []
    last = 0
    lines = jsonl.read(path, _Line, "verdict line", REMEDY, faults.append, at, _DAMAGED_REMEDY)
    for number, _, record in lines:
        last = number
        yield number, record
    if faults:
        notes = _notes(path)
        faults = [fault for fault in faults if fault.line not in notes]
    if faults and (faults[-1].line or 0) > last and _is_torn(path):
        faults.pop()
    if faults:
        raise StorageError.from_problems(faults)


def _is_torn(path: Path) -> bool:
    with open_plain(path) as file:
        file.seek(-1, 2)
        return file.read(1) != b"\n"


def _fault(line: VerdictLine) -> tuple[str, str] | None:
    """Field and fault of a line that is decided and does not say what it should."""
    if line["status"] != "ok":
        return None
    try:
        kind = kind_of(line)
    except msgspec.ValidationError as error:
        return "prompt.rubric", f"is not a rubric ({error})"
    if kind is None:
        return None
    for name in kind.extra if "by_code" not in line["extra"] else ():
        if name not in line["extra"]:
            return f"extra.{name}", "is not there"
    if not kind.verdicts:
        return None
    for index, entry in enumerate(line["verdicts"]):
        if entry["verdict"] not in (*kind.verdicts, QUOTE_UNVERIFIED):
            return f"verdicts[{index}].verdict", f"must be one of {', '.join(kind.verdicts)}"
    asked = kind.ids_of(line["input"])
    if [entry["id"] for entry in line["verdicts"]] != asked:
        return "verdicts", f"must have one entry for each of {', '.join(asked) or 'no items'}"
    return None


_START = b'{"withdrawn"'


class Withdrawal(msgspec.Struct):
    """The id of a judging run whose verdicts do not count, and why."""

    withdrawn: str
    reason: str = ""


_decode = msgspec.json.Decoder(Withdrawal).decode


def new_judging_run() -> str:
    """An id for one run of judging: 16 hex digits, drawn at random."""
    import secrets

    return secrets.token_hex(8)


def withdrawal(judging_run: str, reason: str) -> dict[str, str]:
    """The record that takes back a judging run; its fields stay in this order."""
    return {"withdrawn": judging_run, "reason": reason}


def read_withdrawal(line: bytes) -> Withdrawal | None:
    """The withdrawal in a whole line; None when it is another line, or torn."""
    if not line.startswith(_START) or not line.endswith(b"\n"):
        return None
    try:
        return _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _withdrawn(path: Path) -> dict[str, str]:
    """The runs of judging that a verdicts.jsonl takes back, each with the reason."""
    notes = _notes(path).values()
    return {note.withdrawn: note.reason for note in notes if isinstance(note, Withdrawal)}


Note = Withdrawal | VerdictSetting
"""The content of a line that is not a verdict."""


def _notes(path: Path, at: Sequence[int] | None = None) -> dict[int, Note]:
    """The lines that take something back or say who judged, by their number; with ``at`` by their
    byte offset."""
    notes: dict[int, Note] = {}
    if not path.exists():
        return notes
    try:
        with open_plain(path) as file:
            for key, line in enumerate(file, 1) if at is None else lines_from(path, at):
                if (note := read_withdrawal(line) or read_setting(line)) is not None:
                    notes[key] = note
    except msgspec.ValidationError as error:
        message, _, field = str(error).removesuffix("`").partition(" - at `$.")
        message = f"is not a line on who judged ({message}); {_SETTING_REMEDY}"
        problem = Problem(str(path), key if at is None else None, field, message)
        raise StorageError.from_problems([problem]) from None
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}).") from None
    return notes


def withdraw(path: Path, judging_runs: Mapping[str, str]) -> None:
    """Take back the lines of runs of judging, each with its reason; those without lines are left.

    Nothing is deleted: a line is appended for each.
    """
    if not judging_runs or not path.exists():
        return
    withdrawn_before = _withdrawn(path)
    judged_runs = {run for line in read_lines(path) for run in line.get("judging_runs", ())}
    with locked(path), JsonlWriter(path) as writer:
        for run, reason in judging_runs.items():
            if run in judged_runs and run not in withdrawn_before:
                writer.write(withdrawal(run, reason))
        writer.sync()


class _Text(TypedDict):
    sha256: str


class _Judge(TypedDict, total=False):
    identity: JudgeIdentity
    prompts: dict[str, _Text]
    parameters: dict[str, Any]
    k: Annotated[int, msgspec.Meta(ge=1, lt=2**31)] | None
    answered_as: list[str]
    fingerprints: list[str]


TURN = "_turn"
"""End of the name of a prompt with a place for the messages before the question."""


def prompt_of(line: Mapping[str, Any], judge: Mapping[str, Any]) -> Mapping[str, Any]:
    """The prompt behind a verdict of the judge in config.json. For turns of conversations it is the
    prompt that theirs was made from, which also asked about questions by themselves.
    """
    prompt: Mapping[str, Any] = line["prompt"]
    base = prompt["name"].removesuffix(TURN)
    written = judge.get("prompts", {}).get(base)
    return prompt if base == prompt["name"] or written is None else {"name": base} | written


def judge_of(folder: Path) -> dict[str, Any]:
    """The judge in a run's config.json, {} when there is none; StorageError when it is damaged."""
    judge = read_config(folder).judge
    try:
        msgspec.convert(judge, _Judge)
    except msgspec.ValidationError as error:
        message = f"{folder / CONFIG}: judge: {error}; take the file from a backup."
        raise StorageError(message) from None
    return judge


def of_judge(judge: Mapping[str, Any]) -> Callable[[VerdictLine], bool]:
    """Distinguishes the lines of the judge in a run's config.json from those of its earlier judges.

    Another identity, another text of a prompt or other parameters make another judge.
    """
    identity, prompts = judge.get("identity"), judge.get("prompts", {})
    parameters = judge.get("parameters", {})

    def belongs(line: VerdictLine) -> bool:
        name = line["prompt"]["name"]
        prompt = prompts.get(name)
        return bool(
            line.get("judge") == identity
            and (prompt is None or prompt["sha256"] == line["prompt"]["sha256"])
            and all(line.get("parameters", {}).get(k) == v for k, v in parameters.items())
        )

    return belongs


def identity_of(raw: Mapping[str, Any]) -> JudgeIdentity:
    """A judge's identity from config.json or a verdict line."""
    names = [name for name in JudgeIdentity.__struct_fields__ if name in raw]
    return JudgeIdentity(**{name: raw[name] for name in names})
