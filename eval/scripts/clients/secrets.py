"""Request headers whose values come from the environment and are secret."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit, urlunsplit

from records.errors import Problem

NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

SECRET_HEADER = re.compile(
    r"key(?!word)|token|secret|authori|auth(?!or)|passw|pwd|cred|cookie|jwt|session|signature",
    re.IGNORECASE,
)
"""Names of headers whose values are secret wherever they come from."""


@dataclass(frozen=True)
class Headers:
    """Values to send, and those among them that must never be written."""

    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    literal: tuple[str, ...] = ()
    """Names of headers whose secret value is in the profile itself: worth a warning."""


def resolve_headers(
    templates: Mapping[str, str], environ: Mapping[str, str], source: str
) -> tuple[Headers, list[Problem]]:
    """Headers with each ``${VARIABLE}`` replaced, and every problem; no message shows a value.

    A value without a variable is secret where the header's name says so.
    """
    values: dict[str, str] = {}
    secrets: list[str] = []
    literal: list[str] = []
    problems: list[Problem] = []
    for name, template in templates.items():
        if not NAME.fullmatch(name):
            problems.append(Problem(source, None, name, "is not a valid header name"))
            continue
        for variable in VARIABLE.findall(template):
            secret = environ.get(variable, "")
            if fault := _fault(secret):
                problems.append(
                    Problem(source, None, name, f"environment variable {variable} {fault}")
                )
            secrets.append(secret)
        values[name] = VARIABLE.sub(lambda match: environ.get(match[1], ""), template)
        if values[name] != template:
            secrets.append(values[name])
        elif template and SECRET_HEADER.search(name):
            secrets.append(template)
            literal.append(name)
    return Headers(values, tuple(secrets), tuple(literal)), problems


def fill_variables(
    template: Any, environ: Mapping[str, str], source: str, where: str
) -> tuple[Any, list[str], list[Problem]]:
    """A query or a body with each ``${VARIABLE}`` replaced; the values, which are secret; problems.

    Braces of a value are doubled, so that none of it is taken for a placeholder.
    """
    secrets: list[str] = []
    problems: list[Problem] = []

    def value_of(match: re.Match[str], path: str) -> str:
        secret = environ.get(match[1], "")
        if len(secret.strip()) < MIN_LENGTH:
            fault = _fault(secret)
            problems.append(Problem(source, None, path, f"environment variable {match[1]} {fault}"))
        secrets.append(secret)
        return secret.replace("{", "{{").replace("}", "}}")

    def walk(value: Any, path: str) -> Any:
        if isinstance(value, str):
            return VARIABLE.sub(lambda match: value_of(match, path), value)
        if isinstance(value, Mapping):
            return {key: walk(item, f"{path}.{key}") for key, item in value.items()}
        if isinstance(value, list):
            return [walk(item, f"{path}[{index}]") for index, item in enumerate(value)]
        return value

    return walk(template, where), secrets, problems


def literal_keys(template: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Where a query or a body contains a key in plain text, and the key.

    By the name and by the look of the value: ``key_style = "short"`` is a word of any answer.
    """
    if isinstance(template, Mapping):
        for name, value in template.items():
            inner = f"{path}.{name}"
            if not isinstance(value, str):
                yield from literal_keys(value, inner)
            elif SECRET_HEADER.search(name) and RANDOM.fullmatch(value) and "{" not in value:
                yield inner, value
    elif isinstance(template, list):
        for item in template:
            yield from literal_keys(item, path)


def literal_warnings(headers: Headers, query: Any, body: Any, source: str) -> list[str]:
    """A sentence with the remedy for each part of a request that contains a key in plain text."""
    warnings = []
    if headers.literal:
        names = ", ".join(headers.literal)
        warnings.append(
            f"{source}: request.headers: {names}: looks like a secret in the file; write "
            "${VARIABLE} and export the variable, so that you can share the profile."
        )
    parts = (("request.query", query), ("request.body", body))
    fields = [where for name, part in parts for where, _ in literal_keys(part, name)]
    if fields:
        warnings.append(
            f"{source}: {', '.join(fields)}: looks like a secret in the file. It is left out of "
            "all output; write ${VARIABLE} and export the variable."
        )
    return warnings


def _fault(secret: str) -> str | None:
    if not secret:
        return "is not set; export it first"
    if len(secret.strip()) < MIN_LENGTH:
        return (
            f"has fewer than {MIN_LENGTH} characters, too few to be removed from the results; if "
            "the value is no secret, write it into the profile itself"
        )
    if secret != secret.strip() or not secret.isprintable():
        return "contains characters that a header must not have (line ends, spaces at the ends)"
    return None


MASK = "[secret]"

MIN_LENGTH = 4
"""Least length of a secret. Shorter values occur in ordinary text, so they are refused."""

SECRET_NAME = re.compile(r"key|token|secret|pass|pwd|auth|sig|code|cred|session|jwt", re.IGNORECASE)
"""Query parameters whose values are secret whatever they look like."""

RANDOM = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z]).{8,}|.{12,}", re.DOTALL)
"""Values that may be keys under any other name; ``json`` or ``2024-05-01`` can occur in any answer.
"""

DRAWN = re.compile(
    r"(?<![^\W_])(?:(?=(?:[^\W\d_]*\d){2})(?=(?:\d*[^\W\d_]){2})[^\W_]{8,}|[^\W_]{20,})"
    r"|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
)
"""A run of letters and digits that looks drawn at random: a header's value with one is secret under
any name. ``2024-05-01`` and ``XMLHttpRequest`` have none."""

_ENDING = re.compile(r"[\s.…\"'}\])>\ufffd]+\Z")
"""What may follow a text that was shortened by whoever sent it."""


class Redactor:
    """Replaces every secret by ``[secret]`` in texts and in parsed JSON (keys too)."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        parts = {part for secret in secrets for part in _parts(secret)}
        self._secrets = sorted(parts, key=lambda text: (-len(text), text))

    def __bool__(self) -> bool:
        return bool(self._secrets)

    def text(self, text: str) -> str:
        """``text`` without any secret."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, MASK)
        return text

    def excerpt(self, text: str, most: int) -> str:
        """The beginning of ``text`` in one line of at most ``most`` characters, without any secret.

        Secrets are taken out before the text is cut, and so is the head of one at its end: the
        text itself may be a piece of something longer.
        """
        text = self.text(text)
        bare = _ENDING.sub("", text)
        heads = (
            size
            for secret in self._secrets
            for size in range(len(secret) - 1, MIN_LENGTH - 1, -1)
            if bare.endswith(secret[:size])
        )
        if size := max(heads, default=0):
            text = bare[:-size] + MASK
        return " ".join(text.split())[:most]

    def data(self, value: Any) -> Any:
        """Parsed JSON without any secret in its strings; ``value`` itself if there are none."""
        return self._walk(value) if self._secrets else value

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self._walk(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._walk(item) for item in value]
        return value


def _parts(secret: str) -> set[str]:
    """A value and, for ``Bearer abc``, the part behind the scheme; also as JSON and URLs write it.

    An error page is shown unchanged, so it may contain the value in one of these forms. Many a
    server reads the bytes of a header as Latin-1."""
    words = secret.split()
    plain = {secret, secret.strip(), words[1] if len(words) == 2 else ""}
    plain |= {text.encode().decode("latin-1") for text in plain}
    written = {json.dumps(text)[1:-1] for text in plain} | {quote(text, safe="") for text in plain}
    written |= {quote_plus(text) for text in plain}
    slashes = {text.replace("/", "\\/") for text in written}
    return {part for part in plain | written | slashes if len(part) >= MIN_LENGTH}


def public_url(url: str) -> str:
    """``url`` without user name, password, query and fragment: fit for config.json."""
    split = urlsplit(url)
    return urlunsplit((split.scheme, split.netloc.rpartition("@")[2], split.path, "", ""))


def url_in_message(url: str) -> str:
    """A form of a text that is safe in a message, where the text should be a URL and may not be
    one.

    ``user:password@host`` without a scheme has a login that no parser of URLs sees: all before the
    last ``@`` is left out, and query and fragment are.
    """
    scheme, mark, rest = url.partition("://")
    if not mark or not scheme.isalnum():
        scheme, mark, rest = "", "", url
    return scheme + mark + re.split(r"[?#]", rest.rpartition("@")[2])[0]


def without_login(url: str, secrets: Iterable[str] = ()) -> tuple[str, dict[str, str], Redactor]:
    """``url`` without user name and password, the equivalent header, and a filter that hides both.

    The redactor also hides keys among the query values, and the other ``secrets`` of the server.
    """
    bare, login = _split_login(url)
    return bare, login, Redactor([*secrets, *login.values(), *url_secrets(url)])


def _split_login(url: str) -> tuple[str, dict[str, str]]:
    split = urlsplit(url)
    if "@" not in split.netloc:
        return url, {}
    login = f"{unquote(split.username or '')}:{unquote(split.password or '')}".encode()
    bare = split._replace(netloc=split.netloc.rpartition("@")[2])
    return urlunsplit(bare), {"Authorization": f"Basic {b64encode(login).decode()}"}


def url_secrets(url: str) -> list[str]:
    """The parts of an address that must not be written: the login and keys among its query values.

    The user name alone is secret where it stands for a password (none, or one too short to be
    told from ordinary text); otherwise it may be a word of any answer.
    """
    split = urlsplit(url)
    user, password = unquote(split.username or ""), unquote(split.password or "")
    login = [f"{user}:{password}", password if len(password) >= MIN_LENGTH else user]
    return (login if "@" in split.netloc else []) + [
        value
        for name, value in parse_qsl(split.query)
        if SECRET_NAME.search(name) or RANDOM.fullmatch(value)
    ]
