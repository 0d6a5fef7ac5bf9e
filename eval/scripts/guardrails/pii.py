"""Personal data in a text: e-mail, phone, US social security number, card, IBAN, IP address.

Every kind has a check beyond its shape: cards an issuer, its lengths and the Luhn digit; IBANs the
country's structure and modulo 97 (python-stdnum); social security numbers the ranges never given
out; phone numbers a real numbering plan (phonenumbers); addresses a public range. Digits inside
web addresses, version strings, hashes and longer numbers are left alone, since documents are full
of them. Pure; linear in the length of the text.
"""

from __future__ import annotations

import ipaddress
import re
import tomllib
from collections.abc import Callable, Iterator
from importlib import resources

from guardrails.facts import TextFacts, facts_of

_RULES = resources.files("guardrails").joinpath("rules", "pii.toml")
_WORDS: dict[str, str] = tomllib.loads(_RULES.read_text("utf-8"))


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_WORDS[name].replace("\n", ""), re.IGNORECASE)


_CONTEXT_REACH = 48
_PHONE_REGIONS = ("US", "GB", "DE", "FR", "ES", "IT", "NL", "BE", "CH", "AT", "AU", "IN", "BR")

# toll free, premium rate and shared cost in phonenumbers.PhoneNumberType
_SERVICE_NUMBERS = frozenset({3, 4, 5})
# Letters of any script may stand in an address (RFC 6531). Those of scripts written without blanks
# make an address of their own, since a sentence may run straight into one.
_DENSE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_LETTER = rf"[^\W_{_DENSE}]"
_LOCAL = re.compile(rf"(?:[!#$%&'*+/=?^_`{{|}}~.-]|{_LETTER}){{1,64}}\Z|[{_DENSE}0-9._-]{{1,64}}\Z")
_DOMAIN = re.compile(
    rf"(?:{_LETTER}(?:-|{_LETTER}){{0,62}}\.){{1,8}}"
    rf"(?:xn--[A-Za-z0-9-]{{2,58}}|[A-Za-z]{{2,24}}|(?=[^A-Za-z]){_LETTER}{{2,24}})"
    rf"(?!_|@|{_LETTER})"
    rf"|(?:[{_DENSE}0-9A-Za-z-]{{1,62}}\.){{1,8}}"
    rf"(?:[{_DENSE}]{{2,4}}|[A-Za-z]{{2,24}})(?![A-Za-z0-9_@])"
)
_FILE_ENDINGS = frozenset(
    ("png", "jpg", "jpeg", "gif", "svg", "webp", "ico", "css", "js", "map", "html", "htm", "php")
)
_RESERVED_DOMAIN = re.compile(r"(?:^|\.)(?:example(?:\.(?:com|org|net))?|invalid|test|localhost)$")

_CARD = re.compile(
    r"(?<![\w.,+#/=-])(?:\d{12,19}|\d{4}([ -])\d{4}\1\d{4}(?:\1\d{1,4}){0,2}"
    r"|\d{4}([ -])\d{6}\2\d{3,5})(?![\w/-])"
)
_ISSUERS: tuple[tuple[str, frozenset[int]], ...] = (
    (r"4", frozenset({13, 16, 19})),
    (r"5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720", frozenset({16})),
    (r"3[47]", frozenset({15})),
    (r"6011|64[4-9]|65", frozenset({16, 19})),
    (r"35", frozenset({16})),  # JCB has 3528-3589; made-up numbers use all of 35
    (r"2131|1800", frozenset({15})),
    (r"30[0-5]|36|38|39", frozenset({14})),
    (r"62", frozenset({16, 17, 18, 19})),
    (r"5018|5020|5038|5893|6304|6759|676[123]|0604", frozenset(range(12, 20))),
    (r"220[0-4]", frozenset(range(16, 20))),  # Mir
    (r"9792", frozenset({16})),  # Troy
    (r"81[0-9]{2}|508[5-9]|60[6-9]|6521|6522|353|356", frozenset({16})),  # RuPay
    (r"636|63[7-9]", frozenset({16, 17, 18, 19})),  # InterPayment, InstaPayment
    (
        r"4011(?:78|79)|431274|438935|451416|457393|457631|504175|627780|6363(?:68|97)",
        frozenset({16}),
    ),
    (r"606282|3841", frozenset({16, 19})),  # Hipercard
    (r"506[01]|507865|6500", frozenset({16, 18, 19})),  # Verve
    (r"5019|4571", frozenset({16})),  # Dankort
    (r"6334|6767", frozenset({16, 18, 19})),  # Solo
)
# Ranges too wide to tell a card by them alone: only beside a word for a card.
_WIDE_ISSUERS = ((r"5[06-9]|6\d", frozenset(range(12, 20))),)
_CARD_CONTEXT = _pattern("card")
_ISSUER_PATTERNS = tuple((re.compile(prefix), lengths) for prefix, lengths in _ISSUERS)
_WIDE_PATTERNS = tuple((re.compile(prefix), lengths) for prefix, lengths in _WIDE_ISSUERS)

_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}(?:[ -]?[A-Za-z0-9]){11,34}")
_SSN = re.compile(
    r"(?<![\w.-])(?:(?<!\d,)|(?=\d+-))(\d{3})([- .])(\d{2})\2(\d{4})(?![a-z\d-]|[A-Z]\w|[.,]\d)"
)
_SSN_RUN = re.compile(r"(?<![\w.-])(?<!\d,)(\d{3})-?(\d{2})-?(\d{4})(?![a-z\d-]|[A-Z]\w|[.,]\d)")
_SSN_ONE_DASH = re.compile(r"\d{3}-\d{6}\Z")
_SSN_CONTEXT = _pattern("ssn")
_SSN_AFTER = re.compile(r"[^.;\n]{0,40}?\b(?:ssns?|social security)\b", re.I)
_PERSON = _pattern("person")
_ROLE = _pattern("role")
_NAME_BEFORE = _pattern("name")
_NUMBERED = _pattern("numbered")
_PHONE = re.compile(
    r"(?<![\w./=#+-])(?<!\d,)(?:\+|\()?\d(?:[ ().\-/]{0,3}\d){6,15}(?:[ ]?x\d{1,6})?(?![\w/])"
)
_US_SHAPE = re.compile(r"(?:\+?1[ .-])?(?:\(\d{3}\) ?|\d{3}[-.])\d{3}[-.]\d{4}(?: ?x\d{1,6})?\Z")
_PHONE_CONTEXT = _pattern("phone")
_PHONE_AFTER = _pattern("phone_after")
_IPV4 = re.compile(r"(?<![\w.-])(?<![A-Za-z]/)\d{1,3}(?:\.\d{1,3}){3}(?![\w-]|\.\d)(?!/\d)")
_IPV6 = re.compile(
    r"(?<![\w:.])(?:[0-9A-Fa-f]{0,4}:){2,7}(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f]{0,4})(?![\w:]|\.\d)"
)
# A version with four parts reads like an address: the words around it tell them apart, through
# other versions that stand between ("from 91.12.30.4 to 91.12.31.2").
_VERSION_CONTEXT = _pattern("version")
_VERSION_AFTER = _pattern("version_after")
_ADDRESS_CONTEXT = _pattern("address")
_ADDRESS_AFTER = _pattern("address_after")
_ADDRESS_KEY = _pattern("address_key")
_RESOLVERS = frozenset(
    ("8.8.8.8", "8.8.4.4", "1.1.1.1", "1.0.0.1", "9.9.9.9", "4.2.2.2", "4.2.2.1", "208.67.222.222")
)

Span = tuple[str, int, int, float]


def find_pii(text: str) -> Iterator[Span]:
    """Kind, start, end and weight (0-1) of each piece of personal data; spans do not overlap."""
    taken = bytearray(len(text))
    facts = facts_of(text)
    for finder, may_find in _FINDERS:
        for kind, start, end, weight in finder(text) if may_find(facts) else ():
            if not any(taken[start:end]):
                taken[start:end] = b"\x01" * (end - start)
                yield kind, start, end, weight


def _emails(text: str) -> Iterator[Span]:
    at = text.find("@")
    while at != -1:
        local = _LOCAL.search(text, max(0, at - 64), at)
        domain = _DOMAIN.match(text, at + 1, at + 256)
        is_remote = domain and re.match(r":[\w~./-]", text[domain.end() : domain.end() + 2])
        if local and domain and not is_remote and _is_address(local.group(), domain.group()):
            start = local.start() + len(local.group()) - len(local.group().lstrip("'`{|/=.-*"))
            yield "email", start, domain.end(), 0.9
        at = text.find("@", at + 1)


def _is_address(local: str, domain: str) -> bool:
    name = local.strip("'`{|/=.-*")
    if not name or "//" in local or local.endswith("."):
        return False
    ending = domain.rpartition(".")[2].lower()
    if ending.isdigit():  # a login at an address
        return False
    return ending not in _FILE_ENDINGS and not _RESERVED_DOMAIN.search(domain.lower())


def luhn_valid(digits: str) -> bool:
    """Whether a string of digits ends in its Luhn check digit (ISO/IEC 7812-1, annex B)."""
    total = 0
    for position, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if position % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def _cards(text: str) -> Iterator[Span]:
    for match in _CARD.finditer(text):
        digits = re.sub(r"[ -]", "", match.group())
        near = _near(text, match.start(), _CARD_CONTEXT)
        is_issued = any(
            len(digits) in lengths and prefix.match(digits)
            for prefix, lengths in (*_ISSUER_PATTERNS, *(_WIDE_PATTERNS if near else ()))
        )
        if is_issued and luhn_valid(digits) and not _in_web_address(text, match.start()):
            yield "credit_card", match.start(), match.end(), 0.95


def _ibans(text: str) -> Iterator[Span]:
    from stdnum import iban

    for match in _IBAN.finditer(text):
        positions = [i for i in range(match.start(), match.end()) if text[i].isalnum()]
        for size in range(len(positions), 14, -1):
            end = positions[size - 1] + 1
            if end < len(text) and text[end].isalnum():
                continue
            compact = "".join(text[i] for i in positions[:size]).upper()
            if iban.is_valid(compact, check_country=False):
                yield "iban", match.start(), end, 0.95
                break


def _social_security(text: str) -> Iterator[Span]:
    for match in _SSN.finditer(text):
        if _ssn_issued(match.group(1), match.group(3), match.group(4)):
            near, sure = _speaks_of_ssn(text, match), match.group(2) == "-"
            if not (
                near or (_is_of_person(text, match) and not _near(text, match.start(), _NUMBERED))
            ):
                continue
            if near or sure or not _in_digit_row(text, match.start(), match.end()):
                yield "us_ssn", match.start(), match.end(), 0.9 if near or sure else 0.6
    for match in _SSN_RUN.finditer(text):
        near = _speaks_of_ssn(text, match)
        likely = near or (_SSN_ONE_DASH.match(match.group()) and _is_alone(text, match))
        if likely and _ssn_issued(match.group(1), match.group(2), match.group(3)):
            yield "us_ssn", match.start(), match.end(), 0.8 if near else 0.45


def _speaks_of_ssn(text: str, match: re.Match[str]) -> bool:
    """Whether the words before, or the rest of the clause, name a social security number.

    Where another number is named, a sentence before that ("never your SSN. Case number …") is not
    of this one.
    """
    before = text[max(0, match.start() - _CONTEXT_REACH) : match.start()]
    if _near(text, match.start(), _NUMBERED):
        before = re.split(r"[.;!?]\s", before)[-1]
    reach = match.end() + _CONTEXT_REACH
    return (
        _SSN_CONTEXT.search(before) is not None
        or _SSN_AFTER.match(text, match.end(), reach) is not None
    )


def _is_of_person(text: str, match: re.Match[str]) -> bool:
    """Whether the words around digits tell of a person, or there are no words."""
    start, end = match.span()
    reach = 2 * _CONTEXT_REACH
    return (
        _PERSON.search(text, max(0, start - reach), end + reach) is not None
        or _near(text, start, _ROLE)
        or _near(text, start, _NAME_BEFORE)
        or _is_alone(text, match)
    )


def _is_alone(text: str, match: re.Match[str]) -> bool:
    """Whether no word of four letters is near digits."""
    near = text[max(0, match.start() - _CONTEXT_REACH) : match.end() + _CONTEXT_REACH]
    return re.search(r"[^\W\d_]{4}", near) is None


def _ssn_issued(area: str, group: str, serial: str) -> bool:
    """The areas, groups and serials that were never given out are left out."""
    return area not in {"000", "666"} and area < "900" and group != "00" and serial != "0000"


def _phones(text: str) -> Iterator[Span]:
    for match in _PHONE.finditer(text):
        shown = match.group()
        near = (
            _near(text, match.start(), _PHONE_CONTEXT)
            or _PHONE_AFTER.match(text, match.end()) is not None
        )
        us_shape = _US_SHAPE.match(shown) is not None
        if not (near or shown.startswith("+") or us_shape) or _in_web_address(text, match.start()):
            continue
        weight = _phone_weight(shown, near=near, us_shape=us_shape)
        if weight:
            yield "phone", match.start(), match.end(), weight


def _phone_weight(shown: str, *, near: bool, us_shape: bool) -> float:
    """How sure it is that digits are a phone number, 0 when no numbering plan has them."""
    import phonenumbers

    international = shown.startswith("+")
    possible = False
    for region in [None] if international else _PHONE_REGIONS if near else ("US",):
        try:
            number = phonenumbers.parse(shown, region)
        except phonenumbers.NumberParseException:
            continue
        if phonenumbers.is_valid_number(number):
            if phonenumbers.number_type(number) in _SERVICE_NUMBERS:
                return 0.2  # a hotline belongs to nobody
            return 0.85 if near or international else 0.6
        possible = possible or phonenumbers.is_possible_number(number)
    written_so = us_shape or international or (near and not shown.isdigit())
    return 0.55 if possible and written_so else 0.0


def _addresses(text: str) -> Iterator[Span]:
    facts = facts_of(text)
    four = _IPV4.finditer(text) if facts.has_four_numbers else iter(())
    groups = _IPV6.finditer(text) if facts.has_colon_groups else iter(())
    for matches in (four, groups):
        for match in matches:
            try:
                address = ipaddress.ip_address(match.group())
            except ValueError:
                continue
            before = text[max(0, match.start() - 2 * _CONTEXT_REACH) : match.start()]
            if not address.is_global:
                continue
            if not _ADDRESS_KEY.search(before) and (
                _in_web_address(text, match.start())
                or (address.version == 4 and _is_version(text, match, address.packed))
            ):
                continue
            yield "ip_address", match.start(), match.end(), 0.55


def _is_version(text: str, match: re.Match[str], parts: bytes) -> bool:
    """Whether four numbers with dots are a version rather than an address."""
    before = text[max(0, match.start() - _CONTEXT_REACH) : match.start()]
    if _VERSION_CONTEXT.search(before) or _VERSION_AFTER.match(text, match.end()):
        return True
    is_likely = parts[0] < 20 or max(parts) < 64 or 0 in parts[1:]
    if not (is_likely or (parts[0] < 32 and min(parts[1:3]) < 10)) or match.group() in _RESOLVERS:
        return False
    after = _ADDRESS_AFTER.match(text, match.end())
    return after is None and _ADDRESS_CONTEXT.search(before) is None


_FINDERS: tuple[tuple[Callable[[str], Iterator[Span]], Callable[[TextFacts], bool]], ...] = (
    (_emails, lambda facts: "@" in facts.text),
    (_ibans, lambda facts: facts.has_country_code),
    (_cards, lambda facts: facts.has_many_digits),
    (_social_security, lambda facts: facts.has_many_digits),
    (_addresses, lambda facts: facts.has_four_numbers or facts.has_colon_groups),
    (_phones, lambda facts: facts.has_many_digits),
)
"""Each with what must be in a text in which it finds anything."""


def _near(text: str, start: int, pattern: re.Pattern[str]) -> bool:
    return pattern.search(text, max(0, start - _CONTEXT_REACH), start) is not None


def _in_web_address(text: str, start: int) -> bool:
    """Whether the word around `start` is a web address."""
    before = text[max(0, start - 300) : start]
    word = re.split(r"[\s<>\"'()\[\]]", before)[-1]
    return "://" in word or word.startswith("www.")


def _in_digit_row(text: str, start: int, end: int) -> bool:
    """Whether more numbers stand directly before or after, as in a table's row."""
    return bool(
        re.search(r"\d[ .]\Z", text[max(0, start - 2) : start])
        or re.match(r"[ .]\d", text[end : end + 2])
    )
