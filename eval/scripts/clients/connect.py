"""Make a bot's profile: find the request, map the answer, check it, write it.

    outcome = connect(ConnectOptions(url="http://localhost:9000"), cases, environ, talk)

The requests are found in probe.py and shapes.py, the paths in guess.py, and place_check.py compares
the places in the answers with the labels."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qsl, unquote_plus, urlsplit, urlunsplit

from clients.bot import Question, check_bot_address
from clients.connect_job import ConnectJob, Draft, Outcome
from clients.connect_options import LIMITS_PREFIX, ConnectOptions
from clients.curl import CurlRequest, parse_curl
from clients.expressions import MOST
from clients.http import CallError, Reply
from clients.known import at_path
from clients.limits import BotLimits
from clients.probe import (
    MOST_TRIES,
    Answered,
    K,
    Prober,
    understood,
    with_model,
)
from clients.profile import METHODS
from clients.proposal import assignment, set_paths
from clients.reply_form import tree
from clients.run_plan import header_templates
from clients.secrets import Redactor
from clients.shapes import (
    NO_MODEL,
    QUESTION,
    SESSION,
    SecretFinder,
    Shape,
    fixed_depths,
    known_shapes,
    shape_of,
    template,
    with_history,
)
from records.cases import TestCase
from records.errors import StorageError
from records.file_access import MAX_SETTINGS, read_whole
from records.files import replace_bytes
from records.lines import parse_json

QUESTIONS = 3
"""Questions for the bot once the request is known; the first one is repeated."""

MOST_FOR_ORDER = 10
"""Further questions at most, until it is certain that scores rise in every list."""

ANY_QUESTIONS = (
    "What is this documentation about?",
    "How do I get started?",
    "What should I know first?",
)
"""Questions for a bot without a set or --ask."""


@dataclass(frozen=True)
class Talk:
    """How the user hears and is asked. ``edit``: shows the fields, returns changed ones or None to
    stop; ``name``: the name of the variable that is to hold a secret."""

    tell: Callable[[str], None]
    edit: Callable[[Draft], Mapping[str, str] | None] | None = None
    name: Callable[[str], str] | None = None


def connect(
    options: ConnectOptions, cases: Sequence[TestCase], environ: Mapping[str, str], talk: Talk
) -> Outcome | None:
    """Find out how a bot is asked and where its values are; None when the user stopped it.

    ``cases``: of the labelled set to check against, or none. Nothing is written: ``write`` does.
    Raises StorageError, with the tries, when it cannot be found out; Unreachable.
    """
    options.check()
    request = given_request(options)
    url = options.url or (request.url if request else "")
    base, path, url_query = url_parts(url)
    chosen = _chosen(cases)
    questions = _questions(options, chosen)
    asked = {case.id for case in chosen}
    further = [case for case in cases if case.gold_supports and case.id not in asked]
    further = further[:MOST_FOR_ORDER]
    finder = SecretFinder(talk.name or str)
    headers = header_templates(options.header)
    given = given_shape(options, request, path, url_query, finder)
    plain = finder.shape(Shape("GET", path, "the URL", {} if given else template(url_query, None)))
    opening = begin_request(options, path, given, finder)
    limits = BotLimits(**options.limits)
    prober = Prober(
        base,
        headers,
        {**environ, **finder.values},
        talk.tell,
        limits.timeout,
        plain.query,
        model=options.model,
        begin=opening.as_begin() if opening else None,
    )
    if options.from_response:
        answered, repeat = _from_file(options, given, path, questions[0]), None
        heard = [answered.first]
    else:
        more = f", and at most {len(further)} more if scores look reversed" if further else ""
        talk.tell(
            f"At most {MOST_TRIES} requests are tried. When one works, {len(questions)} questions "
            f"are asked, the first one twice{more}."
        )
        answered = prober.find(given, path, questions[0])
        others = [prober.ask(answered, question) for question in questions[1:]]
        heard = [answered.first, *filter(None, others)]
        repeat = prober.ask(answered, replace(questions[0], repeat=1))
    shape = with_history(replace(answered.shape, headers={**answered.shape.headers, **headers}))
    proposal = answered.proposal(
        heard,
        seconds=[each.timing.total for each in heard],
        gold_paths=[support.rel_path for case in cases for support in case.gold_supports],
        gold_ids=[chunk for case in cases for chunk in case.relevant_chunks],
    )
    own = answered.recipe.shape() if answered.recipe and answered.recipe.needs_id else None
    if own and own.path == answered.shape.path:
        proposal.about.append("Write your own id into the path of the request.")
    set_paths(
        proposal,
        dict(assignment(text) for text in options.set_paths if not text.startswith(LIMITS_PREFIX)),
    )
    proposal.notes += [
        f'{name} stays {number} for every --k; write "{{k}}" in its place to vary it.'
        for name, number in fixed_depths({"query": shape.query, "body": shape.body})
    ]
    job = ConnectJob(options, shape, heard, repeat, proposal, cases)
    job.settle()
    if not options.from_response:
        for case in further:
            if not job.order_is_open():
                break
            if reply := prober.ask(answered, Question.of_case(case, K)):
                job.hear(reply)
    if talk.edit and not job.edited(talk.edit):
        return None
    return job.outcome(base, prober.tries, sorted(finder.values))


def write(outcome: Outcome) -> None:
    """Put the profile into its file."""
    replace_bytes(outcome.target, outcome.text.encode())
    outcome.written = True


def _chosen(cases: Sequence[TestCase]) -> list[TestCase]:
    """Cases to ask: two with gold of different files, one more, and one that has no answer."""
    labelled = [case for case in cases if case.gold_supports] or list(cases)
    first = labelled[:1]
    files = {support.rel_path for case in first for support in case.gold_supports}
    rest = sorted(
        labelled[1:], key=lambda case: {support.rel_path for support in case.gold_supports} <= files
    )
    second = rest[:1]
    third = [case for case in reversed(labelled) if case not in first + second][:1]
    none = [case for case in cases if case.answerable is False and case not in first + second]
    return [*first, *second, *third, *none[:1]]


def _questions(options: ConnectOptions, chosen: Sequence[TestCase]) -> list[Question]:
    if chosen:
        return [Question.of_case(case, K) for case in chosen]
    texts = [*options.ask, *ANY_QUESTIONS][: max(QUESTIONS, len(options.ask))]
    return [Question(f"question {number}", text, K) for number, text in enumerate(texts, 1)]


def _from_file(
    options: ConnectOptions, given: Shape | None, path_of_url: str, question: Question
) -> Answered:
    """A saved answer as if the bot had just given it."""
    path = options.from_response
    assert path is not None
    try:
        body = read_whole(path, MOST)
    except OSError as error:
        raise StorageError(f"--from-response {path}: {error.strerror}.") from None
    shape = given or known_shapes(path_of_url)[0]
    try:
        answered = understood(shape, question, Reply(200, {}, body, 0.0), Redactor())
    except CallError as error:
        raise StorageError(f"--from-response {path}: {error.message}.") from None
    recipe, heard = answered.recipe, answered.first
    shape = given or (recipe and recipe.shape(path_of_url)) or shape
    answered = replace(answered, shape=with_model(shape, options.model or NO_MODEL))
    if not (recipe or options.set_paths or answered.proposal([heard]).usable):
        shown = "\n".join(f"  {line}" for line in tree(heard.payload))
        raise StorageError(
            f"--from-response {path}: contains no recognisable answer or passages:\n"
            f"{shown}\nName their paths with --set answer=PATH or --set retrieved=PATH."
        )
    return answered


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
