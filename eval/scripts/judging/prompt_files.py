"""The judge's prompts: files in ``prompts/``, each with a name, a version and two templates.

A prompt is known by the sha256 of its file and of ``rules.toml``, which every system text begins
with. ``lock.json`` lists the sha256 of each version that was ever used: verdicts of different texts
are never taken for the same, so a text that changes needs a new version. Prompts of an extra are in
a folder of its own, with such a list (``CallKind.prompts``).
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import starmap
from pathlib import Path

import msgspec

from judging.types import PromptId
from records.errors import StorageError
from records.files import read_toml
from records.rubrics import Rubric, RubricExample
from records.verdicts import TURN, CallKind

FOLDER = Path(__file__).with_name("prompts")

LOCK = "lock.json"

RULES = FOLDER / "rules.toml"

HISTORY = "history"
"""The addition to a prompt whose question is a turn of a conversation."""

_SLOT = re.compile(r"\{([a-z_]+)\}")


class PromptError(ValueError):
    """A prompt file cannot be used; the message says which and why."""


@dataclass(frozen=True, slots=True)
class JudgePrompt:
    """``system`` is sent unchanged; ``user`` has slots such as ``{question}``."""

    id: PromptId
    system: str
    user: str

    @property
    def slots(self) -> frozenset[str]:
        """The names that ``messages`` must be given."""
        return _parsed(self.user)[1]

    def messages(self, values: Mapping[str, str], salt: bytes) -> tuple[Messages, Messages]:
        """System and user message as they are sent, and as the cache key has them.

        ``values``: by slot; a text in a block is ``fenced``, and a value that looks like a slot is
        never filled itself. A paragraph whose slots are all empty is left out. ``salt``: makes the
        codes of the blocks, which others cannot guess.

        Raises PromptError when a slot has no value.
        """
        try:
            filled = [paragraph % values for paragraph in _parsed(self.user)[0]]
        except KeyError as missing:
            raise PromptError(f"{self.id}: no value for {missing.args[0]}") from None
        text = "\n\n".join([paragraph for paragraph in filled if paragraph.strip()])
        system = _system_message(self.system)
        return (
            (system, {"role": "user", "content": _with_codes(salt, text)}),
            (system, {"role": "user", "content": text.replace(_CODE, PLACEHOLDER)}),
        )


Messages = tuple[Mapping[str, str], ...]


@cache
def _system_message(text: str) -> Mapping[str, str]:
    """Shared by all calls with a prompt; do not change it."""
    return {"role": "system", "content": text}


@cache
def _parsed(user: str) -> tuple[Sequence[str], frozenset[str]]:
    """A template's paragraphs as ``%`` forms, and the names of all slots."""
    form = _SLOT.sub(r"%(\1)s", user.replace("%", "%%"))
    return form.split("\n\n"), frozenset(_SLOT.findall(user))


def names(folder: Path = FOLDER) -> list[str]:
    """The prompts of a folder, sorted."""
    return sorted(path.stem for path in folder.glob("*.toml") if path != RULES)


@cache
def load(name: str, folder: Path = FOLDER) -> JudgePrompt:
    """The prompt of that name. Raises PromptError when its file is absent or faulty."""
    path = folder / f"{name}.toml"
    try:
        rules, own = RULES.read_bytes(), path.read_bytes()
        common, text = read_toml(RULES), read_toml(path)
        system = common["system"].strip() + "\n\n" + text["system"].strip()
        version, user = text["version"], text["user"].strip()
    except (OSError, StorageError, KeyError) as error:
        raise PromptError(f"{path}: no usable prompt ({error})") from None
    if text.get("name") != name or not isinstance(version, int):
        raise PromptError(f"{path}: name and version must be {name!r} and a whole number")
    sha256 = hashlib.sha256(rules + b"\0" + own).hexdigest()
    return JudgePrompt(PromptId(name, version, sha256), system, user)


@cache
def load_for(kind: CallKind, *, earlier: bool) -> JudgePrompt:
    """The prompt of a kind of call; ``earlier``: with a place for the turns before the question,
    under a name and a sha256 of its own, so that all other prompts stay what they are."""
    prompt = load(kind.frame or kind.prompt, kind.prompts or FOLDER)
    if kind.rubric is not None:
        prompt = _with_rubric(prompt, kind, kind.rubric)
    if not earlier:
        return prompt
    more = load(HISTORY)
    sha256 = hashlib.sha256(f"{prompt.id.sha256}\0{more.id.sha256}".encode()).hexdigest()
    own = read_toml(FOLDER / f"{HISTORY}.toml")["system"].strip()
    identity = PromptId(f"{kind.prompt}{TURN}", prompt.id.version, sha256)
    return JudgePrompt(identity, f"{prompt.system}\n\n{own}", f"{more.user}\n\n{prompt.user}")


def _with_rubric(frame: JudgePrompt, kind: CallKind, rubric: Rubric) -> JudgePrompt:
    """A frame's system text with a rubric in its slots, under a name and a sha256 of its own.

    A rubric may come from a stranger: its texts are ``neutral``, and what looks like a slot in them
    is never filled.
    """
    sources = " or ".join("a passage" if s == "contexts" else f"the {s}" for s in kind.sources)
    values = {
        "ask": neutral(rubric.ask),
        "scale": "\n".join(f"- {label}: {neutral(text)}" for label, text in rubric.scale),
        "quoted": ", ".join(kind.quoted),
        "sources": sources,
        "examples": "\n\n".join(starmap(_example, enumerate(rubric.examples, 1))),
        "better": rubric.labels[-1 if rubric.direction == "higher" else 0],
    }
    system = _SLOT.sub(lambda slot: values.get(slot[1], slot[0]), frame.system).strip()
    told = [frame.id.sha256.encode(), rubric.prompt_bytes()]
    told += [values["better"].encode()] if "{better}" in frame.system else []
    sha256 = hashlib.sha256(b"\0".join(told)).hexdigest()
    return JudgePrompt(PromptId(kind.prompt, frame.id.version, sha256), system, frame.user)


def _example(number: int, example: RubricExample) -> str:
    """An example as the judge reads it; each text on a line of its own, so that none passes itself
    off as another."""
    texts = msgspec.to_builtins(example)
    shown = [(key, texts[key]) for key in _EXAMPLE if texts.get(key)]
    lines = [f"{key}: {one_line(neutral(text))}" for key, text in shown]
    return "\n".join([f"Example {number}, which is never to be quoted:", *lines])


_EXAMPLE = ("question", "reference", "answer", "reason", "verdict")


PLACEHOLDER = "boundary"
"""The text in a cache key that replaces a block's code."""

CODE_LENGTH = 16

_CODE = "\x01"
"""Stands for a block's code until the prompt is complete; ``neutral`` takes it out of texts."""

_BEGIN, _OPENED, _END = "<<<BEGIN ", ">>>\n", "\n<<<END "

_FENCES = re.compile(r"<{2,}(?=\s*(?:BEGIN|END)\b)", re.IGNORECASE)

_TOKENS = re.compile(
    r"<\|[^|<>\n]{1,40}\|>"  # <|im_start|>, <|eot_id|>, <|channel|> …
    r"|</?s>|<(?:bos|eos|pad|unk)>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]|<</?SYS>>"
    r"|</?(?:start|end)_of_(?:turn|role)>|<start_of_image>"
    r"|<[｜][^<>\n]{1,40}[｜]>"
    r"|</?think(?:ing)?>",
    re.IGNORECASE,
)

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


@lru_cache(maxsize=1024)
def neutral(text: str) -> str:
    """The text without look-alikes of our boundaries, of chat-template tokens and control bytes.

    The brackets before BEGIN and END become guillemets, a token ``[token]``, a control character or
    lone surrogate U+FFFD. Everything else stays letter by letter, so quotes of it can be found.
    """
    if not text.isprintable():
        text = _CONTROL.sub("�", text)
    if "<" not in text and "[" not in text:
        return text
    text = _TOKENS.sub("[token]", text)
    return _FENCES.sub(lambda match: "‹" * len(match[0]), text)


def fenced(name: str, text: str) -> str:
    """One block, still without its code: ``name`` is ours and says what the text is."""
    return f"{_BEGIN}{name} {_CODE}{_OPENED}{neutral(text)}{_END}{_CODE}>>>"


def _with_codes(salt: bytes, text: str) -> str:
    """The text of a prompt with the code of each block: 16 hex digits of the HMAC of what is in it.

    Between the two marks of a block is its text, which has no such mark itself.
    """
    pieces = text.split(_CODE)
    for place in range(1, len(pieces), 2):
        code = _code(salt, pieces[place])
        pieces[place] = f"{code}{pieces[place]}{code}"
    return "".join(pieces)


@lru_cache(maxsize=64)  # a question is asked about with each of its passages
def _code(salt: bytes, piece: str) -> str:
    text = piece[len(_OPENED) : -len(_END)]
    return hmac.digest(salt, text.encode(), "sha256").hex()[:CODE_LENGTH]


def one_line(text: str) -> str:
    """A text on a single line, so that it cannot pass itself off as several numbered ones."""
    return " ".join(text.split())
