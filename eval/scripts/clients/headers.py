"""What of a request is secret: headers from the environment, and keys written into a profile."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from clients.redact import MIN_LENGTH, RANDOM
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
    """Names of headers whose secret value stands in the profile itself: worth a warning."""


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
            problems.append(Problem(source, None, name, "is no valid header name"))
            continue
        for variable in VARIABLE.findall(template):
            secret = environ.get(variable, "")
            if fault := _fault(secret):
                problems.append(
                    Problem(source, None, name, f"environment variable {variable} {fault}")
                )
            secrets.append(secret)
        values[name] = VARIABLE.sub(lambda found: environ.get(found[1], ""), template)
        if values[name] != template:
            secrets.append(values[name])
        elif template and SECRET_HEADER.search(name):
            secrets.append(template)
            literal.append(name)
    return Headers(values, tuple(secrets), tuple(literal)), problems


def literal_keys(template: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Where a query or a body holds a key as it is, and the key.

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
    """A sentence about each part of a request that holds a key as it is, with the remedy."""
    warnings = []
    if headers.literal:
        names = ", ".join(headers.literal)
        warnings.append(
            f"{source}: request.headers: {names}: looks like a secret that is written into the "
            "file; write ${VARIABLE} and export the variable, so that the profile can be shared."
        )
    parts = (("request.query", query), ("request.body", body))
    places = [where for name, part in parts for where, _ in literal_keys(part, name)]
    if places:
        warnings.append(
            f"{source}: {', '.join(places)}: looks like a secret that is written into the file. It "
            "is kept out of what is written; a key in a header can be a ${VARIABLE}."
        )
    return warnings


def _fault(secret: str) -> str | None:
    if not secret:
        return "is not set; export it first"
    if len(secret.strip()) < MIN_LENGTH:
        return (
            f"has fewer than {MIN_LENGTH} characters, too few to be kept out of the results; "
            "write a value that is no secret into the profile's request.headers"
        )
    if secret != secret.strip() or not secret.isprintable() or not _is_latin(secret):
        return "holds characters that no header may have (line ends, spaces at the ends)"
    return None


def _is_latin(text: str) -> bool:
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        return False
    return True
