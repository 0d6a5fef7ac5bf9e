"""A curl command as a request: what browsers, API documentation and people paste; pure.

Only what shapes the request is read. Files that the command names are not: their content is asked
for as ``--body @FILE``. Nothing is sent from here.
"""

from __future__ import annotations

import re
import shlex
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from records.errors import StorageError
from records.lines import parse_json

_FLAGS = set(
    shlex.split(
        "--compressed --fail --globoff --http1.1 --http2 --include --insecure --location"
        " --no-buffer --silent --show-error --verbose --ipv4 --ipv6 --fail-with-body"
        " --no-progress-meter -f -g -i -k -L -N -s -S -v -4 -6"
    )
)
"""Options without a value that change nothing in the request."""

_IGNORED = set(
    shlex.split(
        "--connect-timeout --max-time --output --retry --write-out --cacert --resolve -m -o -w"
    )
)
"""Options with a value that change nothing in the request."""

_NOT_KEPT = set(
    shlex.split(
        "content-type content-length accept accept-encoding accept-language host origin referer"
        " user-agent priority pragma cache-control dnt connection te"
    )
)
"""Headers that the client sets itself, or that only a browser sends."""

FORM = "application/x-www-form-urlencoded"
"""The Content-Type with which a request's body is sent as a form instead of JSON."""

_DATA = {"-d", "--data", "--data-raw", "--data-ascii", "--data-binary", "--json"}

_DOLLAR = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")


@dataclass
class CurlRequest:
    """The request that a curl command sends. ``body``: JSON, or the fields of a form (its header
    Content-Type says so), or None where it sends nothing."""

    url: str
    method: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    query: dict[str, Any] = field(default_factory=dict, repr=False)
    body: Any = field(default=None, repr=False)


def parse_curl(command: str) -> CurlRequest:
    """The request of a curl command. Raises StorageError for what cannot become a profile."""
    try:
        words = shlex.split(command.replace("\\\n", " ").replace("\\\r\n", " "))
    except ValueError as error:
        raise _fault(f"its quotes do not match ({error})") from None
    if words[:1] == ["curl"]:
        words = words[1:]
    values: list[tuple[str, str]] = []
    rest = iter(words)
    for word in rest:
        name, value = _option(word)
        if name in _FLAGS:
            continue
        if name in ("-G", "--get", "-I", "--head"):
            values.append((name, ""))
            continue
        if name and value is None:
            value = next(rest, None)
            if value is None:
                raise _fault(f"{name} has no value")
        values.append((name, value if value is not None else word))
    return _request(values)


def _option(word: str) -> tuple[str, str | None]:
    """The option of a word ("" for none) and the value that is part of it."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return name, value if equals else None
    if not word.startswith("-") or word == "-":
        return "", word
    if all(f"-{letter}" in _FLAGS for letter in word[1:]):
        return "-s", None  # several of them at once, such as -sS
    return word[:2], word[2:] or None


def _request(values: list[tuple[str, str]]) -> CurlRequest:
    url, method, data, pairs, as_json, get = "", "", list[str](), list[str](), False, False
    headers: dict[str, str] = {}
    for name, value in values:
        if name in ("", "--url"):
            url = url or value
        elif name in ("-X", "--request"):
            method = value.upper()
        elif name in ("-H", "--header"):
            key, _, text = value.partition(":")
            headers[key.strip()] = text.strip()
        elif name in ("-u", "--user"):
            headers["Authorization"] = "Basic " + b64encode(value.encode()).decode()
        elif name in ("-b", "--cookie"):
            headers["Cookie"] = value
        elif name in ("-A", "--user-agent", "-e", "--referer"):
            continue
        elif name in ("-G", "--get"):
            get = True
        elif name == "--data-urlencode":
            pairs.append(value)
        elif name in _DATA:
            if value.startswith("@") and name != "--data-raw":
                raise _fault("it reads its data from a file; give the file with --body @FILE")
            data.append(value)
            as_json = as_json or name == "--json"
        elif name not in _IGNORED:
            raise _fault(
                f"{name} has no place in a profile (which has method, URL, headers and JSON)"
            )
    if not url:
        raise _fault("it names no URL")
    url = url if "://" in url else f"http://{url}"
    return _built(url, method, headers, data, pairs, get=get)


def _built(
    url: str, method: str, headers: dict[str, str], data: list[str], pairs: list[str], *, get: bool
) -> CurlRequest:
    try:
        split = urlsplit(url)
    except ValueError:
        raise _fault("its URL is not a URL") from None
    query: dict[str, Any] = dict(parse_qsl(split.query, keep_blank_values=True))
    body = None
    if get:
        query |= dict(parse_qsl("&".join([*data, *pairs]), keep_blank_values=True))
    elif pairs or data:
        body = _form(data, pairs) if pairs else _json_or_form("&".join(data))
    known = {name.lower(): name for name in headers}
    for name in known:
        if name in _NOT_KEPT or name.startswith("sec-"):
            headers.pop(known[name])
    if isinstance(body, _FormBody):
        headers["Content-Type"] = FORM
    default = "POST" if body is not None else "GET"
    bare = urlunsplit((split.scheme, split.netloc, split.path, "", ""))
    return CurlRequest(
        bare, method or default, _with_variables(headers), _with_variables(query), body
    )


class _FormBody(dict[str, Any]):
    """The fields of a form."""


def _form(data: Sequence[str], pairs: Sequence[str]) -> _FormBody:
    """``data``: fields as they are sent; ``pairs``: name=value that curl encodes."""
    form = _FormBody(parse_qsl("&".join(data), keep_blank_values=True))
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals or "@" in name:
            raise _fault("write --data-urlencode as name=value")
        form[name] = value
    return form


def _json_or_form(text: str) -> dict[str, Any]:
    try:
        body = parse_json(text)
    except ValueError:
        if text.lstrip().startswith(("{", "[")) or not re.match(r"[^\s=&]+=", text):
            raise _fault("its data is neither JSON nor a form") from None
        return _form([text], [])
    if not isinstance(body, dict):
        raise _fault("its data must be a JSON object, {…}")
    return body


def _with_variables(values: dict[str, Any]) -> dict[str, Any]:
    """``$NAME`` and ``${NAME}`` of a shell in the form that profiles have."""
    return {
        name: _DOLLAR.sub(lambda match: f"${{{match[1] or match[2]}}}", value)
        for name, value in values.items()
    }


def _fault(reason: str) -> StorageError:
    return StorageError(f"--curl: {reason}.")
