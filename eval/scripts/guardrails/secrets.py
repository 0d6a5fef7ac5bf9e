"""Credentials in a text: tokens known by their prefix, keys, and values named as secret.

Three kinds of rule, strongest first:

- prefix: a vendor's prefix, character set and length (`ghp_` and 36 characters, `AKIA` and 16);
- form: private key blocks, JSON web tokens, passwords inside web addresses and command lines;
- named: `name = value`, where the name says secret, token, key or password and the value looks
  drawn at random (Shannon entropy, digits among letters) and is no placeholder.

Pure; linear in the length of the text.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

_EDGE = r"(?<![A-Za-z0-9])"

_END = r"(?![A-Za-z0-9])"

# kind, pattern of the token after a left edge. Prefixes and lengths as the vendors document them.
_PREFIXES: tuple[tuple[str, str], ...] = (
    ("aws access key", r"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}"),
    ("github token", r"gh[oprsu]_[A-Za-z0-9]{36,255}"),
    ("github fine-grained token", r"github_pat_[A-Za-z0-9_]{36,255}"),
    ("gitlab token", r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat|ffct)-[A-Za-z0-9_.-]{20,300}"),
    ("slack token", r"xox[abeoprs]-[A-Za-z0-9-]{10,250}"),
    ("slack app token", r"xapp-\d-[A-Za-z0-9-]{20,250}"),
    ("openai key", r"sk-(?:proj-|svcacct-|admin-|None-)?[A-Za-z0-9_-]{20,250}"),
    ("anthropic key", r"sk-ant-[A-Za-z0-9_-]{20,250}"),
    ("openrouter key", r"sk-or-v1-[0-9a-f]{64}"),
    ("stripe key", r"(?:sk|rk|pk|whsec)_(?:live_|test_)?[A-Za-z0-9]{16,250}"),
    ("google api key", r"AIza[A-Za-z0-9_-]{35}"),
    ("google oauth secret", r"GOCSPX-[A-Za-z0-9_-]{20,40}"),
    ("google oauth token", r"ya29\.[A-Za-z0-9_-]{20,500}"),
    ("google oauth client", r"\d{6,20}-[a-z0-9]{20,40}\.apps\.googleusercontent\.com"),
    ("hugging face token", r"(?:hf|api_org)_[A-Za-z]{30,50}"),
    ("npm token", r"npm_[A-Za-z0-9]{36}"),
    ("pypi token", r"pypi-[A-Za-z0-9_-]{50,250}"),
    ("rubygems key", r"rubygems_[0-9a-f]{48}"),
    ("crates token", r"cio[A-Za-z0-9]{32}"),
    ("docker token", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,80}"),
    ("digitalocean token", r"do[opr]_v1_[0-9a-f]{64}"),
    ("sendgrid key", r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}"),
    ("mailgun key", r"key-[0-9a-z]{32}"),
    ("mailchimp key", r"[0-9a-f]{32}-us\d{1,2}"),
    ("brevo key", r"xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    ("twilio key", r"(?:SK|AC)[0-9a-f]{32}"),
    ("telegram bot token", r"\d{8,10}:AA[A-Za-z0-9_-]{32,33}"),
    ("discord token", r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}"),
    ("shopify token", r"shp(?:at|ca|pa|ss|ua)_[0-9a-fA-F]{32}"),
    ("square token", r"(?:sq0[a-z]{3}-[A-Za-z0-9_-]{22,43}|EAAA[A-Za-z0-9_-]{60})"),
    ("paypal token", r"access_token\$production\$[0-9a-z]{16}\$[0-9a-f]{32}"),
    ("facebook token", r"EAA[A-Za-z0-9]{60,250}"),
    ("atlassian token", r"AT(?:ATT3|CTT3|BB|SC|BT)[A-Za-z0-9_=-]{20,250}"),
    ("linear key", r"lin_(?:api|oauth)_[A-Za-z0-9]{30,64}"),
    ("notion token", r"(?:secret_[A-Za-z0-9]{43}|ntn_[A-Za-z0-9]{40,50})"),
    ("airtable token", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("asana token", r"[0-2]/\d{12,20}(?:/\d{12,20})?:[0-9a-f]{32}"),
    ("figma token", r"fig[dou]r?_[A-Za-z0-9_-]{30,60}"),
    ("postman key", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    ("new relic key", r"(?:NRAK-[A-Z0-9]{27}|NRJS-[0-9a-f]{19}|NRI[A-Z]-[A-Za-z0-9_-]{26,40})"),
    ("grafana token", r"(?:glc_[A-Za-z0-9+/=]{32,400}|glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8})"),
    ("sentry token", r"sntry[su]_[A-Za-z0-9+/=_-]{40,300}"),
    ("datadog key", r"ddog_[A-Za-z0-9]{30,60}"),
    ("dynatrace token", r"dt0[a-zA-Z]\d{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    ("vault token", r"hv[sbr]\.[A-Za-z0-9_-]{24,250}"),
    ("terraform token", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,80}"),
    ("databricks token", r"dapi[0-9a-fA-F]{32}(?:-\d)?"),
    ("azure storage key", r"AccountKey=[A-Za-z0-9+/]{80,88}={0,2}"),
    ("azure app secret", r"[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}"),
    ("pulumi token", r"pul-[0-9a-f]{40}"),
    ("planetscale token", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,64}"),
    ("supabase key", r"sb[pe]_(?:secret_)?[A-Za-z0-9_-]{20,60}"),
    ("tailscale key", r"tskey-[a-z]{2,12}-[A-Za-z0-9]{6,30}-?[A-Za-z0-9-]{10,60}"),
    ("doppler token", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{30,80}"),
    ("1password token", r"(?:ops_eyJ[A-Za-z0-9_=-]{50,1000}|A3-[A-Z0-9]{6}-[A-Z0-9-]{26,40})"),
    ("age key", r"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
    ("alibaba key", r"LTAI[A-Za-z0-9]{12,30}"),
    ("tencent key", r"AKID[A-Za-z0-9]{32}"),
    ("contentful token", r"CFPAT-[A-Za-z0-9_-]{43}"),
    ("groq key", r"gsk_[A-Za-z0-9]{40,60}"),
    ("replicate token", r"r8_[A-Za-z0-9]{37}"),
    ("perplexity key", r"pplx-[A-Za-z0-9]{40,60}"),
    ("xai key", r"xai-[A-Za-z0-9]{60,100}"),
    ("typeform token", r"tfp_[A-Za-z0-9_.-]{40,70}"),
    ("artifactory token", r"(?:AKCp[A-Za-z0-9]{60,80}|cmVmdGtuO[A-Za-z0-9]{40,80})"),
    ("prefect key", r"pn[ub]_[A-Za-z0-9]{36}"),
    ("readme key", r"rdme_[a-z0-9]{60,80}"),
    ("heroku key", r"HRKU-[A-Za-z0-9_-]{30,80}"),
    ("fly token", r"fm[12][ar]?_[A-Za-z0-9+/=_-]{40,600}|fo1_[A-Za-z0-9_-]{40,60}"),
    ("easypost key", r"EZ[AT]K[A-Za-z0-9]{50,60}"),
    ("flutterwave key", r"FLW(?:SECK|PUBK)(?:_TEST)?-[A-Za-z0-9]{12,40}(?:-X)?"),
    (
        "web hook",
        r"https://(?:hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,120}"
        r"|(?:discord|discordapp)\.com/api/webhooks/\d{15,20}/[A-Za-z0-9_-]{20,90}"
        r"|hooks\.zapier\.com/hooks/catch/[A-Za-z0-9/]{8,60}"
        r"|[a-z0-9.-]{1,60}\.webhook\.office\.com/[A-Za-z0-9@/_-]{30,250})",
    ),
)

_FORMS: tuple[tuple[str, str, int], ...] = (
    # kind, pattern, group of the value
    (
        "private key",
        r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:\\n|\s|[^\n]{0,80}\n){0,4}?(?:\\n|\s){0,8}"
        r"(?:[A-Za-z-]{1,20}: [^\n]{0,80}\s){0,4}([A-Za-z0-9+/=]{16,76})",
        0,
    ),
    ("putty key", r"PuTTY-User-Key-File-\d: [^\n]{2,40}", 0),
    (
        "json web token",
        r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,1000}",
        0,
    ),
    (
        "password in web address",
        r"(?<![A-Za-z0-9])[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"'<>]{0,80}:([^\s/@\"'<>]{3,120})@[A-Za-z0-9\[]",
        1,
    ),
    (
        "authorization header",
        r"(?i:authorization|proxy-authorization)[\"']?\s{0,3}[:=]\s{0,3}"
        r"[\"']?(?i:basic|bearer|token)\s{1,3}([A-Za-z0-9+/=_.~-]{8,2000})",
        1,
    ),
    ("bearer token", r"\b[Bb]earer\s{1,3}([A-Za-z0-9_.~+/-]{20,2000}={0,2})", 1),
    (
        "password option",
        r"(?:\s|^)(?:-p|--?[Pp]assword|--?[Pp]asswd|--?token|--?api-?key|"
        r"-AccountPassword)[ =]{1,2}[\"']?([^\s\"'<>$(){}-][^\s\"'<>]{5,80})",
        1,
    ),
    (
        "password hash",
        r"(?<![\w$])\$(?:2[abxy]?\$\d\d\$[./A-Za-z0-9]{53}|[156]\$[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{22,86}|"
        r"argon2id?\$v=\d{1,3}\$[^\s$]{3,40}\$[^\s$]{8,64}\$[^\s$]{16,90}|"
        r"y\$[./A-Za-z0-9]{2,8}\$[./A-Za-z0-9]{1,86}\$[./A-Za-z0-9]{20,86})",
        0,
    ),
    ("unix password hash", r"(?m:^[a-z_][a-z0-9_-]{0,31}:\$[^\s:]{10,200}:)", 0),
)

_NAME = (
    r"(?:pass(?:word|wd|phrase|code)?|pwd|secret|token|api[ _.-]?key|apikey|access[ _.-]?key|"
    r"auth[ _.-]?key|private[ _.-]?key|encryption[ _.-]?key|signing[ _.-]?key|client[ _.-]?secret|"
    r"credentials?|auth|key|pw|salt|license|private|access)"
)

# name, optional bridge (quotes, an operator or blanks), value
_NAMED = re.compile(
    rf"(?:(?<![A-Za-z])|(?-i:(?<=[a-z])(?=[A-Z]))){_NAME}(?:[A-Za-z0-9_]{{0,20}})[\"'\])]{{0,2}}"
    r"(\s{0,3}(?::=|=>|==|=|:|\bis\b|,)\s{0,3}|\s{1,2}|[-.])[\"'`]{0,3}"
    r"([A-Za-z0-9+/_.!@#$%^&*~?-]{6,512}={0,2})",
    re.IGNORECASE,
)

_PASSWORD_NAME = re.compile(
    r"pass(?:word|wd|phrase|code)|pwd|(?<![a-z])pass(?![a-z])", re.IGNORECASE
)

_PLACEHOLDER = re.compile(
    r"(?:your|example|sample|dummy|placeholder|changeme|change_me|redacted|xxxx|\*{3}|\.\.\.|todo|"
    r"insert|replace|enter|fake|<|\$\{|\{\{|%\(|process\.env|os\.environ|getenv|null|none|undefined|"
    r"true|false|required|optional|string|test123|abcdef|012345678|123456789\Z|"
    r"^\$|^\{|^env\.|^self\.|^this\.|\(\))",
    re.IGNORECASE,
)

# version numbers, file names, paths and snake_case names
_ORDINARY = re.compile(
    r"\d{1,3}(?:\.\d{1,3}){1,3}|[\w.-]{1,80}\.[a-z]{2,4}|https?:?|/[\w./-]{1,200}"
    r"|[a-z]{1,30}(?:_[a-z0-9]{1,30}){2,12}"
)

_PREFIX = re.compile(
    _EDGE + "(?:" + "|".join(f"({pattern})" for _, pattern in _PREFIXES) + ")" + _END
)

_KINDS = tuple(kind for kind, _ in _PREFIXES)

_FORM_PATTERNS = tuple((kind, re.compile(pattern), group) for kind, pattern, group in _FORMS)

Span = tuple[str, int, int, float]


def find_secrets(text: str) -> Iterator[Span]:
    """Kind, start, end and weight (0-1) of each credential; spans do not overlap."""
    taken = bytearray(len(text))
    for finder in (_forms, _prefixed, _named):
        for kind, start, end, weight in finder(text):
            if end > start and not any(taken[start:end]):
                taken[start:end] = b"\x01" * (end - start)
                yield kind, start, end, weight


def _entropy(value: str) -> float:
    """Shannon entropy of the characters of `value` in bits per character; 0 when empty."""
    counts = Counter(value).values()
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts)


def _prefixed(text: str) -> Iterator[Span]:
    for match in _PREFIX.finditer(text):
        value = match.group()
        if match.lastindex and not _is_dull(value):
            yield _KINDS[_outer_group(match)], match.start(), match.end(), 0.9


def _outer_group(match: re.Match[str]) -> int:
    return next(index for index, value in enumerate(match.groups()) if value is not None)


def _is_dull(value: str) -> bool:
    """A token of a few repeated characters, or one that says it is a placeholder."""
    body = max(re.split(r"[_.-]", value), key=len)
    return len(set(body)) < 4 or re.search(r"(?i)example|x{6}|your[_-]", value) is not None


def _forms(text: str) -> Iterator[Span]:
    for kind, pattern, group in _FORM_PATTERNS:
        for match in pattern.finditer(text):
            value = match.group(group)
            if kind in _GUESSED and _PLACEHOLDER.search(value):
                continue
            if kind == "password option" and not any(c.isdigit() for c in value):
                continue
            yield kind, match.start(group), match.end(group), 0.9


_GUESSED = frozenset(
    {"authorization header", "bearer token", "password option", "password in web address"}
)


def _named(text: str) -> Iterator[Span]:
    at = 0
    while match := _NAMED.search(text, at):
        value = match.group(2).rstrip(".,;")
        name = text[match.start() : match.start(1)]
        stated = match.group(1).strip() not in {"", "-", "."}
        public = "public" in text[max(0, match.start() - 10) : match.start()].lower()
        if not public and _looks_secret(name, value, stated=stated):
            yield "named secret", match.start(2), match.start(2) + len(value), 0.7
            at = match.end()
        else:
            at = match.start(1) + 1


def _looks_secret(name: str, value: str, *, stated: bool) -> bool:
    """Whether a value under this name is drawn at random rather than a word or a placeholder."""
    if _PLACEHOLDER.search(value) or len(set(value)) < 5:
        return False
    digits = sum(c.isdigit() for c in value)
    letters = sum(c.isalpha() for c in value)
    if _ORDINARY.fullmatch(value):
        return False
    if _PASSWORD_NAME.search(name) and not stated and digits and letters and len(value) >= 7:
        return value.isalnum() and not value[0].isdigit()
    if _PASSWORD_NAME.search(name) and stated:
        mixed = digits > 0 or re.search(r"[^A-Za-z0-9_.-]", value) is not None
        return mixed and letters > 0 and _entropy(value) >= 2.3
    if len(value) < 16:
        return False
    random = _entropy(value) >= 3.0 and digits >= 2 and letters >= 2
    many_cases = _entropy(value) >= 4.0 and value != value.lower() and value != value.upper()
    return random or (many_cases and stated and "/" not in value and " " not in value)
