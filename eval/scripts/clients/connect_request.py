"""The user's description of a bot to connect: options, and the request that works."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import parse_qsl, unquote_plus, urlsplit, urlunsplit

from clients.bot import check_bot_address
from clients.connect_options import ConnectOptions
from clients.curl import CurlRequest, parse_curl
from clients.known import at_path
from clients.profile import METHODS
from clients.shapes import QUESTION, SESSION, SecretFinder, Shape, shape_of, template
from records.errors import StorageError
from records.file_access import MAX_SETTINGS, read_whole
from records.lines import parse_json


def prepare(options: ConnectOptions) -> None:
    """Make the folder of the profile, before the bot is asked. Raises StorageError."""
    folder = options.target.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"{folder}: cannot be made ({error.strerror}). Nothing was asked."
        ) from None


def given_request(options: ConnectOptions) -> CurlRequest | None:
    """The request of --curl or --body; None without either."""
    if options.curl:
        request = parse_curl(_text_of(options.curl, "--curl"))
        check_bot_address(request.url)
        return request
    url = options.url or ""
    in_url = any(text in unquote_plus(url) for text in (QUESTION, *options.ask))
    if options.body is None and not in_url:
        return None
    body = None
    if options.body is not None:
        try:
            body = parse_json(_text_of(options.body, "--body"))
        except ValueError as error:
            raise StorageError(f"--body: is not JSON ({error}).") from None
        if not isinstance(body, dict):
            raise StorageError("--body: must be a JSON object, {…}.")
    return CurlRequest(url, "GET" if body is None else "POST", {}, {}, body)


def begin_request(
    options: ConnectOptions, path: str, given: Shape | None, finder: SecretFinder
) -> Shape | None:
    """The request of --begin without its secrets. Raises StorageError."""
    if options.begin is None:
        return None
    parts = [path, *((given.body, dict(given.query)) if given else ())]
    if SESSION not in json.dumps(parts):
        raise StorageError(
            f"--begin: write {SESSION} where its id goes: in the URL, --body or --curl."
        )
    request = parse_curl(_text_of(options.begin, "--begin"))
    own_path = urlsplit(request.url).path or "/"
    query, body = template(request.query, None), template(request.body, None)
    return finder.shape(Shape(request.method, own_path, "--begin", query, {}, body))


def _text_of(value: str, option: str) -> str:
    """The value, or the text of the file that it names behind ``@``."""
    if not value.startswith("@"):
        return value
    path = Path(value[1:])
    try:
        return read_whole(path, MAX_SETTINGS).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8"
        raise StorageError(f"{option}: {path}: {reason}.") from None


def url_parts(url: str) -> tuple[str, str, dict[str, str]]:
    """Scheme and host, the path, and the query of an address."""
    split = urlsplit(url)
    base = urlunsplit((split.scheme, split.netloc, "", "", ""))
    return base, split.path or "/", dict(parse_qsl(split.query, keep_blank_values=True))


def given_shape(
    options: ConnectOptions,
    request: CurlRequest | None,
    path: str,
    url_query: dict[str, str],
    finder: SecretFinder,
) -> Shape | None:
    """The user's own request without its secrets."""
    if request is None:
        return None
    request.query = {**url_query, **request.query}
    asked = [text for text in options.ask if text]
    shape = shape_of(request, path, asked, "--curl" if options.curl else "--body")
    if options.body and (recipes := at_path(path)) and not recipes[0].guesses:
        shape = recipes[0].completed(shape)
    if shape.method not in METHODS:
        raise StorageError(f"--curl: {shape.method} is a method that profiles do not support.")
    return finder.shape(shape)
