"""Takes credentials and personal data out of a text before it is written anywhere.

Here a miss is worse than a false alarm: beside what the detectors are sure of, everything goes that
has the shape of a secret, an address or a number of a person, whether or not it is a valid one.

    >>> blot("Mail jane@corp.example or call +49 30 901820.")[0]
    'Mail [email] or call [phone].'

Pure; linear in the length of the text.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Iterator
from operator import attrgetter, methodcaller

from guardrails.facts import TextFacts, facts_of
from guardrails.pii import find_pii, luhn_valid
from guardrails.secrets import CALL, entropy, find_secrets

Span = tuple[str, int, int]

_NAMES = {"credit_card": "card", "us_ssn": "ssn", "ip_address": "ip"}
"""What stands in the place of a kind of personal data; other kinds have their own name."""

_AT, _DIGITS = methodcaller("has", "@"), attrgetter("has_many_digits")
_CODE, _IP4 = attrgetter("has_country_code"), attrgetter("has_four_numbers")

_PATTERNS: tuple[tuple[str, Callable[[TextFacts], bool] | str, str], ...] = (
    ("email", _AT, r"[^\s@<>()\[\]\"',;:]{1,64}@(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24}"),
    ("url login", _AT, r"(?<=://)[^\s/@:]{1,64}:[^\s/@]{1,128}(?=@)"),
    ("iban", _CODE, r"\b[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,4})?\b"),
    ("ssn", _DIGITS, r"(?<![\d-])\d{3}[- ]\d{2}[- ]\d{4}(?![\d-])"),
    ("card", _DIGITS, r"(?<!\d)(?:\d[ -]?){12,18}\d(?!\d)"),
    ("secret", "akia asia", r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])"),
    ("ip", _IP4, r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?!\d|\.\d)"),
    (
        "ip",
        attrgetter("has_colon_groups"),
        r"(?<![\w:])(?=[^\s]{0,36}:[^\s]{0,36}:)[0-9a-fA-F:]{4,39}(?![\w:])",
    ),
    (
        "phone",
        lambda facts: facts.has_many_digits or facts.has_local_number,
        r"(?<![\w.+])(?:\+|00)\d{1,3}(?:[ ./()-]{0,3}\d){6,13}(?!\w)"
        r"|(?<![\w.])\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}(?!\w)"
        r"|(?<![\w.])(?<!\d:)\(?0\d{1,5}\)?(?:[ /.-]{1,3}\d{2,8}){1,4}(?!\w)",
    ),
    ("key", "-----begin", r"-----BEGIN[^-]{0,40}-----.*?(?:-----END[^-]{0,40}-----|\Z)"),
    ("token", "eyj", r"\beyJ[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]+){1,4}"),
    (
        "secret",
        "pass pwd secret token api access auth bearer credential",
        r"(?i:password|passwd|passwort|passphrase|pwd|secret|token|api[ _-]?key|apikey"
        r"|access[ _-]?key|auth|bearer|credential)s?\w{0,20}[\"'\])]{0,2}"
        rf"\s{{0,3}}(?:=>|:=|=|:|\bis\b|\bist\b)\s{{0,3}}{CALL}"
        r"[\"'`]?(?P<value>[^\s\"'`,;]{4,256})",
    ),
    (
        "token",  # "basic" stands before many a word; one without capitals and digits is no token
        "bearer basic",
        r"(?i:\bbearer\s{1,3}|\bbasic\s{1,3}(?-i:(?=[a-z]{0,200}[A-Z0-9+/=])))"
        r"(?P<value>[A-Za-z0-9+/_.=~-]{8,})",
    ),
)
_SHAPES = tuple((kind, needs, re.compile(pattern, re.DOTALL)) for kind, needs, pattern in _PATTERNS)
"""What has the shape of a private detail: its kind; what a text must have, or the words of which
each match begins with one, in any case; the pattern."""

_RUN = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}={0,2}")
_DATE = re.compile(r"(?:19|20)\d\d-\d\d-\d\d")
_ORDINARY_WORDS = """
required wrong incorrect invalid used not stored sent set reset needed changed expired missing
correct valid empty optional generated shared passed given hashed encrypted saved the a an your my
it in to for by case always never only still also being what how where
string str struct bool boolean number integer int option none null
"""
_ORDINARY = frozenset(_ORDINARY_WORDS.split())
_CALLED = re.compile(
    r"[A-Za-z_]\w{0,40}\(|(?:[A-Za-z_]\w{0,40}(?:\(\))?(?:::|\.)){1,6}[a-z_]\w{0,40}!?"
    r"\([&\w.:=()]{0,80};?"
)
"""A call without a text in it."""
_BUILT = re.compile(
    r"(?:target/(?:debug|release)/\w{1,20}/\w{0,60}-|\A(?:io|com)-)[0-9a-f]{16}|rustc/[0-9a-f]{40}"
)
"""Hashes that Rust's tools put into the names of folders and programs."""


def _in_date(text: str, start: int, end: int) -> bool:
    return _DATE.search(text, max(0, start - 5), end) is not None


_GLUED_BEFORE = re.compile(r"(?:[\w.]|\w-)\Z")


def _is_no_card(text: str, start: int, end: int) -> bool:
    """Digits within a word, an id or a fraction are a card's only with its check digit."""
    if _in_date(text, start, end):
        return True
    if not (_GLUED_BEFORE.search(text[max(0, start - 2) : start]) or text[end : end + 1] == "."):
        return False
    digits = "".join(filter(str.isdigit, text[start:end]))
    return text[start] not in "23456" or not luhn_valid(digits)


def _is_ordinary(text: str, start: int, end: int) -> bool:
    value = text[start:end]
    return value.rstrip(".?!").lower() in _ORDINARY or _CALLED.fullmatch(value) is not None


def _is_no_address(text: str, start: int, end: int) -> bool:
    try:
        ipaddress.ip_address(text[start:end])
    except ValueError:
        return "." not in text[start:end]
    return False


_UNLIKE: dict[str, Callable[[str, int, int], bool]] = {
    "phone": _in_date,
    "card": _is_no_card,
    "ip": _is_no_address,
    "secret": _is_ordinary,
}
"""Of a shape, what shows that it is something else after all."""


def blot(text: str, *, is_id: bool = False) -> tuple[str, Counter[str]]:
    """Replace each credential and personal detail with a mark such as ``[email]``; count them by
    kind.

    ``is_id``: an id or a path, in which letters and digits may be mixed as in a secret.
    """
    spans = sorted(_spans(text, is_id), key=lambda span: (span[1], -span[2]))
    parts: list[str] = []
    counts: Counter[str] = Counter()
    end = 0
    for kind, start, stop in spans:
        if stop <= end:
            continue
        if start >= end:
            parts += [text[end:start], f"[{kind}]"]
            counts[kind] += 1
        end = stop
    parts.append(text[end:])
    return "".join(parts), counts


def _spans(text: str, is_id: bool) -> Iterator[Span]:
    for kind, start, end, _ in find_pii(text):
        yield _NAMES.get(kind, kind), start, end
    for _, start, end, _ in find_secrets(text):
        if not _is_ordinary(text, start, end):
            yield "secret", start, end
    facts = facts_of(text)
    for kind, needs, pattern in _SHAPES:
        if isinstance(needs, str):
            matches = facts.matches(pattern, *needs.split())
        else:
            matches = pattern.finditer(text) if needs(facts) else iter(())
        for match in matches:
            group = "value" if "value" in match.re.groupindex else 0
            start, end = match.span(group)
            if kind in _UNLIKE and _UNLIKE[kind](text, start, end):
                continue
            yield kind, start, end
    has_random = any(_looks_random(match[0]) for match in _RUN.finditer(facts.long_words))
    for match in _RUN.finditer(text) if has_random and not is_id else ():
        if _looks_random(match[0]):
            yield "secret", match.start(), match.end()


def _looks_random(run: str) -> bool:
    """Whether letters and digits are mixed as in no word, path or identifier."""
    if "/" in run:
        run = _BUILT.sub("", run)
    pieces = re.split(r"[/_-]", run) if not run.isalnum() else [run]
    for part in pieces:
        digits = sum(char.isdigit() for char in part)
        letters = len(part) - digits
        mixed = digits >= 2 and letters >= 2
        if len(part) >= 16 and digits and part.isupper():
            return True
        if len(part) >= 16 and mixed and entropy(part) >= 3.0:
            return True
    if all(piece.isalpha() or piece.isdigit() for piece in pieces if piece):
        return False
    digits = sum(char.isdigit() for char in run)
    cases = run != run.lower() and run != run.upper()
    return len(run) >= 20 and digits >= 3 and cases and entropy(run) >= 3.7
