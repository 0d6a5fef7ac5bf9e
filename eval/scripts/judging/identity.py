"""Which server judges, and with which model exactly: what makes two runs comparable.

Each kind of server tells something else of its model; the strength of an identity says what stands
behind it. Nothing that changes by itself (``created``, ``permission``) is ever part of it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec
from msgspec.structs import replace

from clients.secrets import url_in_message
from records.errors import StorageError
from records.files import sha256_file
from records.verdicts import JudgeIdentity
from terminal.tables import printable

SHORT = 16
"""Hex digits of a hash that is one part of a build."""

Fetch = Callable[[str, Any], Any]
"""Path below the server's root, and a body to POST or None to GET → JSON, None if unknown there."""


class JudgeError(StorageError):
    """The judge cannot be used as it was asked for; one sentence with the remedy, exit code 2.

    Words of the server in it cannot steer the terminal.
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class JudgeUnreachable(JudgeError):
    """The judge's server does not answer: exit code 3."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class JudgePin:
    """The user's declaration: the weights' revision, their local file, or that no pin is wanted.

    ``aliases``: names under which another name's model may answer.
    """

    revision: str | None = None
    file: Path | None = None
    allow_unpinned: bool = False
    aliases: tuple[Alias, ...] = ()


class JudgeServer(msgspec.Struct, frozen=True):
    """The identity of the judge, with remarks.

    ``model``: as requests name it. ``floating``: why another model may stand behind it tomorrow.
    """

    identity: JudgeIdentity
    model: str
    facts: Mapping[str, Any]
    floating: str | None = None


def addresses(url: str) -> tuple[str, str]:
    """The server's root, and the base of its OpenAI-compatible API (``…/v1`` by default).

    Raises JudgeError when ``url`` is no HTTP address.
    """
    split = urlsplit(url)
    if split.scheme not in ("http", "https") or not split.hostname:
        shown = url_in_message(url)
        raise JudgeError(
            f"the judge's address {shown!r} is not a URL such as http://localhost:11434/v1"
        )
    path = re.sub("/(chat/completions|messages)$", "", split.path.rstrip("/")) or "/v1"
    root = re.sub(r"/(api/)?v\d+$", "", path)
    return (
        urlunsplit((split.scheme, split.netloc, root, "", "")),
        urlunsplit((split.scheme, split.netloc, path, "", "")),
    )


def identify(
    fetch: Fetch, host: str, model: str | None, pin: JudgePin, provider: str | None = None
) -> JudgeServer:
    """Ask the server who it is. Raises JudgeError for a model that is not there or not pinned.

    ``provider``: whose server it is, where its address says so; it tells nothing but names then.
    """
    if provider is not None:
        remedy = HOSTED.get(provider, REVISION)
        server = _named(provider, _only(model, []), remedy)
    else:
        asked = _ollama(fetch, model) if host != "api.openai.com" else None
        server = asked or _other(fetch, host, model)
    identity = server.identity
    if pin.file is not None and identity.provider != "ollama":
        digest = f"sha256:{sha256_file(pin.file)}"
        identity = replace(identity, digest=digest, strength="digest")
    elif pin.revision is not None:
        strength = identity.strength if identity.strength == "digest" else "revision"
        identity = replace(identity, revision=pin.revision, strength=strength)
    floating = server.floating
    if identity.provider != "ollama" and (pin.file or pin.revision) is not None:
        floating = None  # Ollama tells the digest itself; what the user says would only hide it
    if floating and not pin.allow_unpinned:
        raise JudgeError(
            f"the judge {identity.model} is not pinned: {floating}, or accept this with --set "
            "unpinned=true."
        )
    return replace(server, identity=identity, floating=floating)


REVISION = "name a dated snapshot, or give the weights' revision: --set revision=NAME"

HOSTED = {
    "azure": "name the model behind the deployment as its replies do, such as --model "
    "gpt-4o-2024-08-06, or give its version: --set revision=NAME"
}
"""Remedies for a name that says no version, by provider."""


def _ollama(fetch: Fetch, model: str | None) -> JudgeServer | None:
    version = _field(fetch("/api/version", None), "version")
    listed = _records(fetch("/api/tags", None), "models") if version else None
    if version is None or listed is None:
        return None
    names = sorted(str(entry.get("name")) for entry in listed)
    model = _only(model, names)
    full = model if ":" in model.rpartition("/")[2] else f"{model}:latest"
    own = next((entry for entry in listed if entry.get("name") == full), None)
    if own is None:
        raise JudgeError(f"Ollama has no model {full}; run `ollama pull {full}`.")
    shown = fetch("/api/show", {"model": full})
    template = _field(shown, "template")
    build = f"{version} template:{_hash(template)}" if template else version
    details = shown.get("details") if isinstance(shown, dict) else None
    facts = {"details": details} if isinstance(details, dict) else {}
    digest = _field(own, "digest")
    if digest is None or own.get("remote_host"):
        identity = JudgeIdentity("ollama", full, build=build)
        return JudgeServer(identity, full, facts, "it runs elsewhere; choose a local model")
    if not digest.startswith("sha256:"):
        digest = f"sha256:{digest}"
    moving = full.endswith(":latest")
    why = "its tag latest moves; name a tag such as llama3.1:8b-instruct-q8_0" if moving else None
    identity = JudgeIdentity("ollama", full, digest, build, strength="digest")
    return JudgeServer(identity, full, facts, why)


def _other(fetch: Fetch, host: str, model: str | None) -> JudgeServer:
    props = fetch("/props", None) if host != "api.openai.com" else None
    listed = _records(fetch("/v1/models", None), "data") or []
    names = [str(entry.get("id")) for entry in listed]
    owners = {str(entry.get("owned_by")) for entry in listed}
    if isinstance(props, dict) and ("build_info" in props or "model_path" in props):
        return _llama_cpp(props, _only(model, names), listed)
    if host == "api.openai.com" or host.endswith(".openai.com"):
        return _named("openai", _offered(model, names), "name a dated snapshot")
    if "vllm" in owners:
        return _vllm(fetch, listed, _offered(model, names))
    studio = _records(fetch("/api/v0/models", None), "data")
    if studio is not None:
        return _lm_studio(studio, model)
    if owners == {"me"}:  # llama-cpp-python: whatever is asked for, its one model answers
        name = _only(model, names)
        why = "its server does not report the weights; give their file: --set file=PATH"
        return JudgeServer(JudgeIdentity("llama-cpp-python", file_name(name)), name, {}, why)
    return _named("unknown", _only(model, names), REVISION)


def _llama_cpp(
    props: Mapping[str, Any], model: str, listed: Sequence[Mapping[str, Any]]
) -> JudgeServer:
    path, template = _field(props, "model_path"), _field(props, "chat_template")
    parts = [_field(props, "build_info") or ""]
    parts += [f"path:{_hash(path)}"] if path else []
    parts += [f"template:{_hash(template)}"] if template else []
    name = file_name(model)
    settings = props.get("default_generation_settings")
    context = settings.get("n_ctx") if isinstance(settings, dict) else None
    meta = listed[0].get("meta") if listed else None
    reported = {"context": context} | (meta if isinstance(meta, dict) else {})
    facts = {
        name: reported.get(name) for name in ("context", "n_params", "size") if reported.get(name)
    }
    if not parts[0]:
        identity = JudgeIdentity("llama.cpp", name, build=" ".join(parts).strip() or None)
        why = "its server does not report its build; give the weights: --set file=PATH"
        return JudgeServer(identity, model, facts, why)
    identity = JudgeIdentity("llama.cpp", name, build=" ".join(parts), strength="build")
    return JudgeServer(identity, model, facts)


def _vllm(fetch: Fetch, listed: list[dict[str, Any]], model: str) -> JudgeServer:
    own = next((entry for entry in listed if entry.get("id") == model), {})
    length, root = own.get("max_model_len"), _field(own, "root")
    version = _field(fetch("/version", None), "version")
    parts = [version or ""]
    # a root that is a folder of the server is known by its hash only
    parts += [f"root:{_hash(root) if root.startswith('/') else root}"] if root else []
    parts += [f"max_model_len:{length}"] if isinstance(length, int) else []
    facts = {"context": length} if isinstance(length, int) else {}
    build = " ".join(part for part in parts if part) or None
    identity = JudgeIdentity("vllm", model, build=build)
    why = "vLLM does not report the revision of the weights; give it: --set revision=NAME"
    return JudgeServer(identity, model, facts, why)


def _lm_studio(listed: list[dict[str, Any]], model: str | None) -> JudgeServer:
    model = _offered(_only(model, [str(entry.get("id")) for entry in listed]), [])
    own = next((entry for entry in listed if entry.get("id") == model), None)
    if own is None:
        raise JudgeError(f"LM Studio has no model {model}; download or load it there.")
    parts = [_field(own, name) for name in ("publisher", "arch", "quantization")]
    build = " ".join(part for part in parts if part) or None
    length = own.get("max_context_length")
    facts = {"context": length} if isinstance(length, int) else {}
    why = "the name latest moves; name one version" if "latest" in model else None
    return JudgeServer(JudgeIdentity("lmstudio", model, build=build), model, facts, why)


def _named(provider: str, model: str, remedy: str) -> JudgeServer:
    """A server that tells nothing but names: they must at least be those of snapshots."""
    pinned = DATED.search(model) is not None and "latest" not in model.lower()
    why = None if pinned else f"the name does not say which version; {remedy}"
    return JudgeServer(JudgeIdentity(provider, model), model, {}, why)


def _only(model: str | None, names: list[str]) -> str:
    """The model asked for, else the only one there is."""
    if model:
        return model
    if len(names) == 1:
        return names[0]
    listed = ", ".join(sorted(names)[:10]) or "it lists none"
    raise JudgeError(f"name the judge's model with --model; the server has: {listed}.")


def _offered(model: str | None, names: list[str]) -> str:
    """The model asked for, which must be among the names if there are any."""
    model = _only(model, names)
    if names and model not in names:
        listed = ", ".join(sorted(names)[:10])
        raise JudgeError(f"the judge's server has no model {model}; it has: {listed}.")
    return model


def _field(table: Any, name: str) -> str | None:
    value = table.get(name) if isinstance(table, dict) else None
    return value if isinstance(value, str) and value else None


def _records(table: Any, name: str) -> list[dict[str, Any]] | None:
    rows = table.get(name) if isinstance(table, dict) else None
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:SHORT]


DATED = re.compile(r"20\d\d-?[01]\d-?[0-3]\d|[-_@](?:[0-2]\d[01]\d|[01]\d[0-3]\d)(?!\d)|[-_]00\d$")
"""A snapshot in a name: 2024-08-06, 20241022, 0613, 2411, 002."""

VOUCHED = frozenset({"digest", "build", "code"})
"""Strengths of an identity that rest on more than names."""

UNNAMED = "The judge's server does not say which model answers."

Alias = tuple[str, str]
"""A model that is asked for, and the name under which another server may answer for it."""


class _Naming(msgspec.Struct, frozen=True):
    """What a reply's name means for the judge.

    ``fault``: why it is another model, in a clause; None: it is taken for the judge. ``note``: what
    a reader of the verdicts should know. ``revision``: what belongs into the identity's revision.
    """

    fault: str | None = None
    note: str | None = None
    revision: str | None = None


class ReplyNames:
    """The names in the replies of one run of judging.

    ``accepted``: those taken for the judge. ``notes``: what a reader should know, each once.
    ``fault``: why a reply came from another model; set once, it stays.
    """

    def __init__(self) -> None:
        self.accepted: set[str] = set()
        self.notes: list[str] = []
        self.fault: str | None = None
        self._other: str | None = None

    def take(
        self,
        identity: JudgeIdentity,
        answered: str | None,
        *,
        floating: bool = False,
        aliases: tuple[Alias, ...] = (),
    ) -> _Naming:
        """Decide on a reply's name, by itself and beside those before it, and note it."""
        naming = decide(identity, answered, floating=floating, aliases=aliases)
        if naming.fault is None and answered is not None and identity.strength not in VOUCHED:
            before = [name for name in sorted(self.accepted) if not _compatible(name, answered)]
            if before:
                fault = f"the judge's server answered as {before[0]} and then as {answered}"
                naming = replace(naming, fault=fault)
        if naming.fault is not None:
            if self.fault is None:
                self.fault, self._other = naming.fault, answered
            return naming
        if answered is not None:
            self.accepted.add(answered)
        if naming.note is not None and naming.note not in self.notes:
            self.notes.append(naming.note)
        return naming

    def changed(self) -> str | None:
        """That replies came from several models or from another one, in a clause; else None."""
        if self.fault is None or self._other is None or not self.accepted:
            return self.fault
        names = ", ".join(sorted({*self.accepted, self._other}))
        return f"the judge's server answered with different models: {names}"


@lru_cache(maxsize=64)  # the same name with each reply
def decide(
    identity: JudgeIdentity,
    answered: str | None,
    *,
    floating: bool = False,
    aliases: tuple[Alias, ...] = (),
) -> _Naming:
    """Decide by the name in a reply whether the requested judge answered.

    ``answered``: None when the reply has no name. ``floating``: the model asked for is an allowed
    name that may move, and no reply has said yet what it stands for. ``aliases``: pairs that the
    user accepts. Leave both out for a judge that is settled.
    """
    asked, revision = identity.model, identity.revision
    vouched = identity.strength in VOUCHED
    if answered is None:
        return _Naming(note=None if vouched else UNNAMED, revision=revision)
    floating = floating and revision is None and not vouched
    shown = printable(answered)
    own = answered if floating and answered != asked else revision
    if _same_name(asked, answered):
        return _Naming(revision=own)
    if any(_same_name(asked, a) and _same_name(answered, b) for a, b in aliases):
        return _Naming(revision=revision if vouched else _joined(revision, answered))
    if vouched:
        return _Naming(
            note=f"Asked for {asked}, the judge's server answers as {shown}; it is identified by "
            f"its {identity.strength}.",
            revision=revision,
        )
    loose = f"Asked for {asked}, the judge's server answers as {shown}: treated as the same."
    if floating:
        exact = _undated(asked) == _undated(answered)
        return _Naming(note=None if exact else loose, revision=own)
    if revision is not None and _declares(revision, answered):
        return _Naming(revision=revision)
    undated = _undated(asked) == _plain(answered)
    if undated or (revision is None and _compatible(asked, answered)):
        return _Naming(note=loose, revision=revision)
    stands = f" ({revision})" if revision is not None else ""
    return _Naming(fault=f"asked for {asked}{stands}, the judge's server answers as {shown}")


@lru_cache(maxsize=256)  # the same names with each reply
def _compatible(name: str, other: str) -> bool:
    """May both be names of one model: no other date, and one begins with the other?"""
    dates, others = _dates(name), _dates(other)
    if dates and others and dates != others:
        return False
    return _is_start(name, other) or _is_start(other, name)


def _same_name(name: str, other: str) -> bool:
    """Are they one name in two spellings?"""
    return _plain(name) == _plain(other)


def file_name(model: str) -> str:
    """A model that is named by the path of its file, without the folders."""
    return re.split(r"[/\\]", model)[-1] if model.endswith(".gguf") else model


def _plain(name: str) -> str:
    """A name in the form that is compared: ``Org/Gpt-4o-2024-08-06`` is ``gpt-4o-20240806``."""
    last = re.split(r"[/\\]", name.strip().rstrip("/\\"))[-1].casefold()
    last = last.removesuffix(":latest").removesuffix(".gguf")
    compact = DATED.sub(lambda match: f"-{_digits(match[0])}", last)
    return re.sub(r"[-_@\s]+", "-", compact)


def _undated(name: str) -> str:
    return re.sub(r"[-_@\s]+", "-", DATED.sub("", _plain(name))).strip("-")


def _dates(name: str) -> frozenset[str]:
    return frozenset(_digits(date) for date in DATED.findall(_plain(name)))


def _digits(text: str) -> str:
    return "".join(char for char in text if char.isdigit())


def _is_start(short: str, long: str) -> bool:
    """Does a name begin with another, up to a mark? ``gpt-4`` does not begin ``gpt-4o``."""
    start, whole = _plain(short), _plain(long)
    rest = whole[len(start) :]
    return bool(start) and whole.startswith(start) and not rest[:1].isalnum()


def _declares(revision: str, answered: str) -> bool:
    """Is the name the one that stands in the revision, or does it hold the revision?"""
    names = (revision, revision.rpartition(" ")[2])
    within = revision.casefold() in answered.casefold()
    return within or any(_same_name(name, answered) for name in names)


def _joined(revision: str | None, answered: str) -> str:
    """A revision with the name of the model that answers."""
    return answered if revision is None else f"{revision} {answered}"
