"""A curl command as a request: what browsers, API documentation and people paste; pure.

Only what shapes the request is read. Files that the command names are not: their content is asked
for as ``--body @FILE``. Nothing is sent from here.
"""

from __future__ import annotations

import getopt
import re
import shlex
from base64 import b64encode
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from records.errors import StorageError
from records.lines import parse_json

_SHORT = "GX:H:u:b:d:fgikLNsSv46m:o:w:A:e:"
_LONG = shlex.split(
    "get head url= request= header= user= cookie="
    " data= data-raw= data-ascii= data-binary= json= data-urlencode="
    " compressed fail globoff http1.1 http2 include insecure location no-buffer silent show-error"
    " verbose ipv4 ipv6 fail-with-body no-progress-meter connect-timeout= max-time= output= retry="
    " write-out= cacert= resolve= user-agent= referer="
)
"""The options that are read, then those that change nothing in the request."""

_LONG_NAMES = {"-X": "--request", "-H": "--header", "-u": "--user", "-b": "--cookie", "-G": "--get"}
_SENT = ("-d", "--data", "--data-ascii", "--data-binary", "--json")
_LONG_NAMES |= dict.fromkeys((*_SENT, "--data-raw"), "--data")

_NOT_KEPT = set(
    shlex.split(
        "content-type content-length accept accept-encoding accept-language host origin referer"
        " user-agent priority pragma cache-control dnt connection te"
    )
)
"""Headers that the client sets itself, or that only a browser sends."""

FORM = "application/x-www-form-urlencoded"
"""The Content-Type with which a request's body is sent as a form instead of JSON."""

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
    values = _values(command)
    url = "".join(values["--url"][:1])
    if not url:
        raise _fault("it names no URL")
    try:
        split = urlsplit(url if "://" in url else f"http://{url}")
    except ValueError:
        raise _fault("its URL is not a URL") from None
    parts = (text.partition(":") for text in values["--header"])
    headers = {name.strip(): text.strip() for name, _, text in parts}
    for user in values["--user"]:
        headers["Authorization"] = "Basic " + b64encode(user.encode()).decode()
    for cookie in values["--cookie"]:
        headers["Cookie"] = cookie
    headers = {
        name: text
        for name, text in headers.items()
        if name.lower() not in _NOT_KEPT and not name.lower().startswith("sec-")
    }
    query: dict[str, Any] = dict(parse_qsl(split.query, keep_blank_values=True))
    data, pairs, body = values["--data"], values["--data-urlencode"], None
    if values["--get"]:
        query |= dict(parse_qsl("&".join([*data, *pairs]), keep_blank_values=True))
    elif data or pairs:
        body, is_form = _body("&".join(data), pairs)
        headers |= {"Content-Type": FORM} if is_form else {}
    default = "POST" if body is not None else "GET"
    return CurlRequest(
        urlunsplit((split.scheme, split.netloc, split.path, "", "")),
        "".join(values["--request"][-1:]).upper() or default,
        _with_variables(headers),
        _with_variables(query),
        body,
    )


def _values(command: str) -> dict[str, list[str]]:
    """The values of each option, by its long name; of what sends data together, in their order."""
    values: dict[str, list[str]] = defaultdict(list)
    try:
        words = shlex.split(command.replace("\\\n", " ").replace("\\\r\n", " "))
        words = words[words[:1] == ["curl"] :]
        while words:
            pairs, words = getopt.getopt(words, _SHORT, _LONG)
            for name, value in [*pairs, *(("--url", url) for url in words[:1])]:
                if name == "--head":  # else it would be read as the beginning of --header
                    raise getopt.GetoptError("not recognized", "head")
                if name in _SENT and value.startswith("@"):
                    raise _fault("it reads its data from a file; give the file with --body @FILE")
                values[_LONG_NAMES.get(name, name)].append(value)
            words = words[1:]
    except getopt.GetoptError as error:
        name = f"--{error.opt}" if error.opt[1:] else f"-{error.opt}"
        if "requires" in error.msg:
            raise _fault(f"{name} has no value") from None
        raise _fault(
            f"{name} has no place in a profile (which has method, URL, headers and JSON)"
        ) from None
    except ValueError as error:
        raise _fault(f"its quotes do not match ({error})") from None
    return values


def _body(text: str, pairs: Sequence[str]) -> tuple[dict[str, Any], bool]:
    """What is sent, and whether that is a form. ``pairs``: name=value that curl encodes."""
    if not pairs:
        try:
            body = parse_json(text)
        except ValueError:
            if text.lstrip().startswith(("{", "[")) or not re.match(r"[^\s=&]+=", text):
                raise _fault("its data is neither JSON nor a form") from None
        else:
            if not isinstance(body, dict):
                raise _fault("its data must be a JSON object, {…}")
            return body, False
    form: dict[str, Any] = dict(parse_qsl(text, keep_blank_values=True))
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals or "@" in name:
            raise _fault("write --data-urlencode as name=value")
        form[name] = value
    return form, True


def _with_variables(values: dict[str, Any]) -> dict[str, Any]:
    """``$NAME`` and ``${NAME}`` of a shell in the form that profiles have."""
    return {
        name: _DOLLAR.sub(lambda match: f"${{{match[1] or match[2]}}}", value)
        for name, value in values.items()
    }


def _fault(reason: str) -> StorageError:
    return StorageError(f"--curl: {reason}.")
