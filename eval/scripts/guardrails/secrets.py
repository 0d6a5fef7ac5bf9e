"""Credentials in a text: tokens known by their prefix, keys, and values named as secret.

Three kinds of rule, strongest first; `rules/secrets.toml` has the patterns of the first two, each
with the page that describes it:

- token: a maker's prefix, character set and length (`ghp_` and 36 characters, `AKIA` and 16), or
  the maker's name and a random value after it;
- form: private key blocks, JSON web tokens, passwords inside web addresses, connection strings,
  markup, and the password files of common programs;
- named: `name = value`, where the name says secret, token, key or password and the value has
  high entropy (Shannon; digits among letters) and is no placeholder.

Pure; linear in the length of the text.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import pairwise

from guardrails.facts import SHORTEST_LONG_WORD, TextFacts, facts_of

_RULES = resources.files("guardrails").joinpath("rules")
_WORDS = tomllib.loads(_RULES.joinpath("secret_words.toml").read_text("utf-8"))


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_WORDS[name].replace("\n", ""), re.IGNORECASE)


_EDGE = r"(?<![A-Za-z0-9])"

_END = r"(?![A-Za-z0-9])"

SHORTEST_TOKEN = 15
"""Least length of a vendor's token. Shorter runs are passed over without trying the rules."""

LONGEST_SERVICE_NAME = 20
"""Most characters of a service's name."""

_BRIDGE = 40
"""Characters between a service's name and its token."""

# where the token of a named service may stand, and whether it can be one at all
_RUN = re.compile(rf"[A-Za-z0-9_-]{{{SHORTEST_LONG_WORD},}}")

# with what a maker's pattern begins, where that is a word of its own
_HEAD = re.compile(
    r"(?:[A-Za-z0-9]{4,}[_-]|[A-Za-z0-9]{2,}(?:[_-][A-Za-z0-9]+)+[_-]|[A-Z]{2}[a-z]{2})(?=[\[(]|eyJ)"
)

# no alphabet of tokens has these signs, and one drawn from all signs holds many of them
_FOREIGN = re.compile(r"[?#^*$@]")
_ALPHABET = 16  # of so many signs one at least is foreign, where foreign ones are drawn too

# base64 of 20 and of 32 bytes; other tokens have an even number of signs
_ODD_LENGTHS = frozenset({27, 43})

# a token that begins with a head, and its longest part at least
_HEADED_RUN = re.compile(
    r"(?<![A-Za-z0-9_./@%+~#-])(?:[a-z][a-z0-9]{1,9}|[A-Z][A-Z0-9]{1,9})[_.~-]"
    r"(?=[A-Za-z0-9_.~-]{0,99}?[A-Za-z0-9]{20})[A-Za-z0-9_.~-]{20,600}(?![A-Za-z0-9/@(]|[?*^!#$]\w)"
)
_SHORTEST_BODY, _LONGEST_HEAD = 20, 30
_SHORTEST_END = 14  # after a dot; what is shorter may be the ending of a file or a host
_NAME_BEFORE = re.compile(r"([A-Za-z][\w.-]{0,40})[\"']?\s?[=:]\s?[\"'`]?\Z")

_GLUED = r"api_?(?:key|token)|(?:access|auth)_?(?:key|token)|secret_?key|password"

_NAME = (
    r"(?:pass(?:word|wd|phrase|code)?|pwd|secret|token|api[ _.-]?key|apikey|access[ _.-]?key|"
    r"auth[ _.-]?key|private[ _.-]?key|encryption[ _.-]?key|signing[ _.-]?key|client[ _.-]?secret|"
    r"credentials?|auth|key|pw|salt|license|private|access|login|apitoken)"
)

CALL = (
    r"(?:(?:\w{1,40}(?:::|\.))?(?:from|new|of|Some|[Ss]tr(?:ing)?|bytes|Secret\w{0,20})"
    r"!?\((?=[\"'`]))?"
)
"""A call around a value in quotes, as in ``String::from("…")``."""

# name, optional bridge (quotes, a type, an operator or blanks), value
_NAMED = re.compile(
    rf"(?:(?<![A-Za-z])|(?-i:(?<=[a-z])(?=[A-Z]))|(?={_GLUED})){_NAME}(?:[A-Za-z0-9_]{{0,20}})"
    r"[\\\"'\])]{0,4}(\s{0,12}(?::?\s?\bstr(?:ing)?\b\s{0,3})?"
    r"(?::{1,3}=|=>|==|[?.+]=|=|:|\bis\b|,|\||>|-(?=\s{1,3}[\"']))\s{0,12}|\s{1,4}|[-.])"
    rf"{CALL}[\\\"'`]{{0,4}}"
    r"([A-Za-z0-9+/_.!@#$%^&*~?-]{6,512}={0,2})",
    re.IGNORECASE,
)

_NO_KEY_NAME = _pattern("no_key_name")

# a value in quotes may hold any sign, as the keys of Django and WordPress do
_QUOTED = re.compile(
    r"(?i:secret|salt|(?<![a-z])key|token|password)[A-Za-z0-9_]{0,12}[\"'\])]{0,2}"
    r"\s{0,3}(?:=>|=|:|,)\s{0,12}(?:\"([^\"\n]{16,160})\"|'([^'\n]{16,160})')"
)

# a password that is assigned: in quotes anywhere, or alone on its line as in an .env file
_ASSIGNED = re.compile(
    rf"(?:(?i:password|passwd|passphrase|(?<![a-z])pwd)|(?i:(?<![a-z])pass)|(?<=[a-z])Pass)\d{{0,3}}"
    rf"[\"'\]]{{0,2}}[ \t]{{0,8}}(?:=>|:=|=|:)[ \t]{{0,8}}{CALL}"
    r"(?:\"([^\"\n]{4,120})\"|'([^'\n]{4,120})')"
)
_ENV_LINE = re.compile(
    r"^[ \t]{0,8}(?:#[ \t]?)?(?:export[ \t]{1,4}|set[ \t]{1,4})?[A-Z0-9_]{0,40}"
    r"(?:PASS|PASSWORD|PASSWD|PASSPHRASE|PWD)[ \t]{0,4}=[ \t]{0,4}"
    r"([^\s\"'`<>(){}$;,#%/][^\s\"'`<>(){}$;,#]{3,79})(?=[ \t]{0,8}(?:#|$))",
    re.MULTILINE,
)

_PASSWORD_NAME = re.compile(
    r"pass(?:word|wd|phrase|code)|pwd|(?<![a-z])pass(?![a-z])", re.IGNORECASE
)

_PLACEHOLDER = _pattern("placeholder")

_STANDS_FOR = _pattern("stands_for")

# version numbers, file names, paths and snake_case names
_ORDINARY = re.compile(
    r"\d{1,3}(?:\.\d{1,3}){1,3}|[\w.-]{1,80}\.[a-z]{2,4}|https?:?|/[\w./-]{1,200}"
    r"|[a-z]{1,30}(?:_[a-z0-9]{1,30}){2,12}|_{0,2}[A-Z]{1,30}(?:_[A-Z0-9]{1,30}){2,12}_{0,2}"
)

# ids of page elements, routes, and words joined by dashes
_WEB_NAME = re.compile(
    r"[#./:@\[\\].{0,200}|[A-Za-z]{2,20}\d?(?:-(?:[A-Za-z]{1,20}|\d{1,12})){1,8}"
)

# names of a program joined by dots
_CHAIN = re.compile(r"[A-Za-z_]\w{0,60}(?:\.[A-Za-z_]\w{0,60}){1,8}=?")

_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"

_NO_SECRET_NAME = _pattern("no_secret_name")

_STATED = re.compile(
    r"(?<![A-Za-z0-9_.-])([A-Za-z][A-Za-z0-9_.-]{0,40})[\"'\]]{0,2}[ \t]{0,3}"
    r"(?:=>|:=|=|:)[ \t]{0,3}[\"'`]?([A-Za-z0-9]{24,64})(?![A-Za-z0-9+/=_.-]|[?*^!@#$]\w)"
)

_STATED_VALUE = re.compile(r"[A-Za-z0-9]{24}")

# a call's arguments, a package's checksum and a page's address come after a maker's name too
_NO_SERVICE = re.compile(r"://|public|\(|#\Z|\.(?:tgz|tar|zip|whl|jar)", re.IGNORECASE)

_AWS_SECRET_NAME = re.compile(r"aws.{0,12}secret.{0,12}key", re.IGNORECASE)

Span = tuple[str, int, int, float]


@dataclass(frozen=True)
class _SecretForm:
    kind: str
    regex: re.Pattern[str]
    group: int
    guessed: bool
    digit: bool
    drawn: bool
    needs: tuple[str, ...]
    """One of these is in each match, in any case."""


@dataclass(frozen=True)
class _Book:
    """The compiled rules; `kinds[i]` is the kind of the i-th group of `grouped`, which matches as
    `tokens` does and takes ten times as long."""

    tokens: re.Pattern[str]
    grouped: re.Pattern[str]
    kinds: tuple[str, ...]
    families: tuple[str, ...]
    forms: tuple[_SecretForm, ...]
    services: re.Pattern[str]
    heads: tuple[str, ...]
    """With these the tokens of one maker begin: what does not fit its rule is none."""


@lru_cache(maxsize=256)
def _book(without: frozenset[str] = frozenset()) -> _Book:
    """All rules but the token rules of the families in `without`."""
    data = tomllib.loads(_RULES.joinpath("secrets.toml").read_text("utf-8"))
    rows = [row for row in data["token"] if row["family"] not in without]
    parts = "|".join(row["pattern"] for row in rows) or "(?!)"
    groups = "|".join(f"({row['pattern']})" for row in rows) or "((?!))"
    forms = tuple(
        _SecretForm(
            row["kind"],
            re.compile(row["pattern"]),
            row.get("group", 0),
            row.get("guessed", False),
            row.get("digit", False),
            row.get("drawn", False),
            tuple(row["needs"]),
        )
        for row in data["form"]
    )
    names = "|".join(name for name in data["services"]["names"].split("|") if name not in without)
    services = re.compile(
        rf"(?<![A-Za-z])(?i:{names})(?![a-z]{{4}})[^\n]{{0,{_BRIDGE}}}?"
        rf"(?<![A-Za-z0-9/+.%-])(?<!\w[?*^!@#$])({_UUID}|[A-Za-z0-9][A-Za-z0-9_-]{{13,127}})"
        r"(?![A-Za-z0-9/_-]|[.?*^!@#$]\w)"
    )
    return _Book(
        re.compile(rf"{_EDGE}(?=\S{{{SHORTEST_TOKEN}}})(?:{parts}){_END}"),
        re.compile(rf"(?:{groups}){_END}"),
        tuple(row["kind"] for row in rows),
        tuple(dict.fromkeys(row["family"] for row in data["token"])),
        forms,
        services,
        tuple(head[0] for row in rows if (head := _HEAD.match(row["pattern"]))),
    )


def token_families() -> tuple[str, ...]:
    """Return the vendors whose tokens are known, in the order of the rules."""
    return _book().families


def find_secrets(text: str, *, without: frozenset[str] = frozenset()) -> Iterator[Span]:
    """Kind, start, end and weight (0-1) of each credential; spans do not overlap.

    `without` leaves out the makers' rules of these families, to measure what the others find.
    """
    book = _book(without)
    taken = bytearray(len(text))
    facts = facts_of(text)
    for finds in (
        _forms(facts, book),
        _prefixed(facts, book),
        _assigned(facts),
        _named(facts, book),
        _of_services(facts, book),
        _headed(facts, book),
        _stated(facts),
    ):
        for kind, start, end, weight in finds:
            if end > start and not any(taken[start:end]):
                taken[start:end] = b"\x01" * (end - start)
                yield kind, start, end, weight


def entropy(value: str) -> float:
    """Shannon entropy of the characters of `value` in bits per character; 0 when empty."""
    counts = Counter(value).values()
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts)


def _prefixed(facts: TextFacts, book: _Book) -> Iterator[Span]:
    if not book.tokens.search(facts.long_words):  # no token has a blank
        return
    for match in book.tokens.finditer(facts.text):
        grouped = book.grouped.match(facts.text, match.start())
        if grouped and grouped.lastindex and not _is_dull(match.group()):
            yield book.kinds[_outer_group(grouped)], match.start(), match.end(), 0.9


def _outer_group(match: re.Match[str]) -> int:
    return next(index for index, value in enumerate(match.groups()) if value is not None)


_DULL = 1.0
"""Bits a character: a token of one repeated character has less, its head included."""


def _is_dull(value: str) -> bool:
    """A token of one repeated character, or one that says it is a placeholder."""
    return (
        entropy(value) < _DULL or re.search(r"(?i)example|x{6}|your[_-]|0{12}", value) is not None
    )


def _forms(facts: TextFacts, book: _Book) -> Iterator[Span]:
    for form in book.forms:
        for match in form.regex.finditer(facts.text) if facts.has(*form.needs) else ():
            value = match.group(form.group)
            if form.guessed and (_PLACEHOLDER.search(value) or _STANDS_FOR.fullmatch(value)):
                continue
            if form.digit and not any(c.isdigit() for c in value):
                continue
            if form.drawn and not _looks_drawn(value, stated=False):
                continue
            yield form.kind, match.start(form.group), match.end(form.group), 0.9


def _assigned(facts: TextFacts) -> Iterator[Span]:
    for match in _ENV_LINE.finditer(facts.text) if facts.has("pass", "pwd") else ():
        if not (_PLACEHOLDER.search(match.group(1)) or _STANDS_FOR.fullmatch(match.group(1))):
            yield "assigned password", match.start(1), match.end(1), 0.7
    for match in facts.matches(_ASSIGNED, "pass", "pwd"):
        group = 1 if match.group(1) is not None else 2
        if _is_password(match.group(group)):
            yield "assigned password", match.start(group), match.end(group), 0.7
    for match in facts.matches(_QUOTED, "secret", "salt", "key", "token", "password"):
        group = 1 if match.group(1) is not None else 2
        if _is_noise(match.group(group)):
            yield "named secret", match.start(group), match.end(group), 0.7


def _is_password(value: str) -> bool:
    """Whether a quoted value is a password rather than a label, a route or an element's name."""
    if re.search(r"[\s|<>{}$()]|password|passwort", value, re.IGNORECASE):
        return False
    if _PLACEHOLDER.search(value) or _STANDS_FOR.fullmatch(value) or _WEB_NAME.fullmatch(value):
        return False
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _is_noise(value: str) -> bool:
    """Whether a quoted value mixes letters and signs as no text does."""
    if _PLACEHOLDER.search(value) or value.count(" ") > len(value) / 12 or "://" in value:
        return False
    signs = sum(not (c.isalnum() or c in " _./:-,") for c in value)
    letters = sum(c.isalpha() for c in value)
    if re.search(r"\$\{|%\w\b|\w\(\w*\)|[;{}]\s", value) and signs < len(value) / 5:
        return False
    return letters >= 4 and entropy(value) >= 3.3 and (signs >= len(value) / 8 or "#" in value[4:])


_NAME_BEGINS = (
    *("pass", "pw", "secret", "token", "api", "access", "auth", "private", "encryption"),
    *("signing", "client", "credential", "key", "salt", "license", "login"),
)
"""What a name of ``_NAMED`` may begin with."""


def _named(facts: TextFacts, book: _Book) -> Iterator[Span]:
    text, at = facts.text, 0
    for start in facts.places(*_NAME_BEGINS):
        match = _NAMED.match(text, start) if start >= at else None
        if match is None:
            continue
        value = match.group(2).rstrip(".,;")
        name = text[match.start() : match.start(1)]
        sign = match.group(1).strip()
        stated = sign not in {"", "-", "."}
        before = text[max(0, match.start() - 12) : match.start()]
        no_key = "public" in before.lower() or _NO_KEY_NAME.search(before + name)
        of_aws = _AWS_SECRET_NAME.search(before + name) is not None
        # a cell or an element named password may hold a word about passwords
        name = "" if sign in {"|", ">"} else name
        drawn = _looks_secret(name, value, stated=stated)
        if of_aws and not drawn:  # 40 signs of base64 may hold a slash as a path does
            drawn = entropy(value) >= 4.0 and not _PLACEHOLDER.search(value)
        drawn = drawn and (len(value) == 40 or not of_aws)
        if drawn and not no_key and not value.startswith(book.heads):
            yield "named secret", match.start(2), match.start(2) + len(value), 0.7
            at = match.end()
        else:
            at = match.start(1) + 1


def _looks_secret(name: str, value: str, *, stated: bool) -> bool:
    """Whether a value under this name has high entropy and is no word or placeholder."""
    if _PLACEHOLDER.search(value) or len(set(value)) < 5:
        return False
    digits = sum(c.isdigit() for c in value)
    letters = sum(c.isalpha() for c in value)
    if _ORDINARY.fullmatch(value) or _WEB_NAME.fullmatch(value):
        return False
    if _CHAIN.fullmatch(value) and digits <= len(value) / 5 and not _is_unspeakable(value):
        return False
    if _PASSWORD_NAME.search(name) and not stated and digits and letters and len(value) >= 7:
        return value.isalnum() and not value[0].isdigit()
    if _PASSWORD_NAME.search(name) and stated:
        mixed = digits > 0 or re.search(r"[^A-Za-z0-9_.-]", value) is not None
        return mixed and letters > 0 and entropy(value) >= 2.3
    foreign = len(_FOREIGN.findall(value))
    if 0 < foreign <= len(value) / _ALPHABET:  # a mask or a pattern of what may stand there
        return False
    return _looks_drawn(value, stated=stated) and not _is_packed_text(value)


def _looks_drawn(value: str, *, stated: bool) -> bool:
    """Whether 14 or more characters have high entropy."""
    digits = sum(c.isdigit() for c in value)
    letters = sum(c.isalpha() for c in value)
    if len(value) < 14:
        return False
    if re.fullmatch(_UUID, value) or re.fullmatch(r"[0-9a-f]{32,128}|\d{20,128}", value):
        return True
    if len(value) >= 20 and value.isalpha():
        one_case = value in (value.lower(), value.upper())
        return _is_unspeakable(value) if one_case else len(_CAPITALS.findall(value)) >= 3
    if len(value) < 16:
        return stated and digits >= 2 and letters >= 2 and value.isalnum() and entropy(value) >= 3
    random = entropy(value) >= 3.0 and digits >= 2 and letters >= 2
    many_cases = entropy(value) >= 4.0 and value != value.lower() and value != value.upper()
    return random or (many_cases and stated and "/" not in value and " " not in value)


def _is_odd(value: str) -> bool:
    """Whether letters and digits have a length that tokens do not have."""
    return value.isalnum() and len(value) % 2 == 1 and len(value) not in _ODD_LENGTHS


def _is_ascending(value: str) -> bool:
    """Whether half of the neighbours are the same or follow each other, as in `aAbBcC` or 1234."""
    codes = [ord(char) for char in value.lower()]
    return sum(b - a in {0, 1} for a, b in pairwise(codes)) >= len(value) / 2


_CAPITALS = re.compile(r"[a-z](?=[A-Z]{2})")
"""Small letter before two capitals: rare in names joined by capitals."""


def _is_unspeakable(value: str) -> bool:
    """Whether letters hold a run of five consonants, as words do not."""
    return re.search(r"(?i)[bcdfghjklmnpqrstvwxz]{5}", value) is not None


def _is_packed_text(value: str) -> bool:
    """Whether base64 unpacks to words, as in a manifest's sample."""
    try:
        plain = base64.b64decode(value, validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return False
    return plain.isprintable() and plain.count(" ") >= 2


_DRAWN = re.compile(r"(?:[0-9][A-Za-z_-]*){4}|[0-9a-f]{28}|[A-Za-z]{20}")
"""What a token of a named service has in it: see ``_is_mixed``."""


def _of_services(facts: TextFacts, book: _Book) -> Iterator[Span]:
    """A maker's name and, on the same line, a high-entropy value."""
    if not any(map(_DRAWN.search, _RUN.findall(facts.long_words))):
        return
    text = facts.text
    for match in _beside_services(text, book):
        value = match.group(1)
        bridge = text[match.start() : match.start(1)]
        if _PLACEHOLDER.search(value) or len(set(value)) < 6 or _NO_SERVICE.search(bridge):
            continue
        hexadecimal = re.fullmatch(r"[0-9a-f]{28,128}", value) is not None
        is_drawn = (hexadecimal or _is_mixed(value)) and not _is_odd(value)
        if is_drawn and not _NO_SECRET_NAME.search(bridge.rstrip(" =:\"'")):
            yield "token of a named service", match.start(1), match.end(1), 0.6


def _beside_services(text: str, book: _Book) -> Iterator[re.Match[str]]:
    """What ``book.services.finditer`` finds, looked for only beside runs that may be a token."""
    end = 0
    for run in _RUN.finditer(text):
        if run.end() <= end or not _DRAWN.search(run[0]):
            continue
        start = max(end, run.start() - _BRIDGE - LONGEST_SERVICE_NAME)
        while match := book.services.search(text, start, run.end() + 2):
            yield match
            start = end = match.end()


def _is_mixed(value: str) -> bool:
    """Whether a token mixes digits and letters throughout, or is long and unspeakable."""
    if not _looks_drawn(value, stated=False) or _ORDINARY.fullmatch(value):
        return False
    digits = sum(c.isdigit() for c in value)
    return (digits >= 4 and not _WEB_NAME.fullmatch(value)) or value.isalpha()


def _headed(facts: TextFacts, book: _Book) -> Iterator[Span]:
    """A short head and a long body drawn at random, joined by a sign, as makers write tokens."""
    for run in _HEADED_RUN.finditer(facts.text) if _HEADED_RUN.search(facts.long_words) else ():
        head, *pieces = re.split(r"[._~-]", run[0])
        body = max(pieces, key=len, default="")
        before = f"{head}{run[0][len(head) : run[0].index(body)]}".rstrip("._~-")
        is_file = "." in run[0] and len(pieces[-1]) < _SHORTEST_END
        if len(body) < _SHORTEST_BODY or is_file or len(before) > _LONGEST_HEAD:
            continue
        named = _NAME_BEFORE.search(facts.text, max(0, run.start() - 50), run.start())
        names = (before, named[1] if named else "")
        if any(map(_NO_SECRET_NAME.search, names)) or _PLACEHOLDER.search(run[0]):
            continue
        digits = sum(c.isdigit() for c in body)
        is_hash = re.fullmatch(r"[0-9a-f]+", body) is not None
        if (
            run[0].startswith(book.heads)
            or _is_ascending(body)
            or (is_hash and (len(body) < 32 or len(before) > 8))
        ):
            continue
        if 2 <= digits <= len(body) - 4 and entropy(body) >= (3.0 if is_hash else 3.5):
            yield "token with a head", run.start(), run.end(), 0.5


def _stated(facts: TextFacts) -> Iterator[Span]:
    """`any_name = value` where the value is letters and digits drawn at random."""
    if not _STATED_VALUE.search(facts.long_words):
        return
    for match in _STATED.finditer(facts.text):
        name, value = match.groups()
        digits = sum(c.isdigit() for c in value)
        hexadecimal = re.fullmatch(r"[0-9A-Fa-f]+", value) is not None
        if hexadecimal or not 4 <= digits <= len(value) - 6 or _PLACEHOLDER.search(value):
            continue
        if entropy(value) < 3.5 or _NO_SECRET_NAME.search(name) or _NO_KEY_NAME.search(name):
            continue
        if not (_is_ascending(value) or _is_odd(value)):
            yield "stated token", match.start(2), match.end(2), 0.5
