"""The leakage detectors: finds, look-alikes, masking, origins, bounds."""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.rows import each_row

from guardrails import secrets
from guardrails.facts import facts_of
from guardrails.leakage import (
    BLOCK,
    CATEGORIES,
    WARN,
    _copied_spans,
    _leak_score,
    _mask,
    find_metadata,
    score_leakage,
)
from guardrails.pii import find_pii, luhn_valid
from guardrails.secrets import _book, entropy, find_secrets, token_families

PASSAGE = (
    "Receipts are handed in within four weeks after the trip, sorted by date and with a note. "
    "Late claims are paid only if illness or a similar reason prevented an earlier one. "
    "Hotels are reimbursed up to a fixed sum a night, which is higher in large cities than in "
    "the country. The portal keeps a copy of each receipt for ten years."
)


def _kinds(text: str) -> list[tuple[str, str]]:
    return [(kind, text[start:end]) for kind, start, end, _ in find_pii(text)]


def test_luhn() -> None:
    """The worked example of the algorithm, wrong by 3; in 18 8 + (1 * 2 = 2) = 10."""
    valid = {"79927398713": True, "79927398710": False, "0": True, "18": True}
    assert {digits: luhn_valid(digits) for digits in valid} == valid


@each_row(
    ("text", "kind", "value"),
    [
        ("mail jane.roe+x@post.co.uk.", "email", "jane.roe+x@post.co.uk"),
        ("<jane@post-office.org>", "email", "jane@post-office.org"),
        ("josé@correo-español.es", "email", "josé@correo-español.es"),
        ("почта: иван@почта.рф", "email", "иван@почта.рф"),
        ("邮箱jane@post.cn谢谢", "email", "jane@post.cn"),
        ("card 4111 1111 1111 1111 ok", "credit_card", "4111 1111 1111 1111"),
        ("card 3782-822463-10005", "credit_card", "3782-822463-10005"),
        ("5555555555554444", "credit_card", "5555555555554444"),
        ("maestro 5018 0000 0009", "credit_card", "5018 0000 0009"),
        ("2200 0000 0000 0004", "credit_card", "2200 0000 0000 0004"),
        ("to DE89 3704 0044 0532 0130 00 today", "iban", "DE89 3704 0044 0532 0130 00"),
        ("gb29nwbk60161331926819", "iban", "gb29nwbk60161331926819"),
        ("to NO93 8601 1117 947 today", "iban", "NO93 8601 1117 947"),  # the shortest there is
        ("SSN 472-81-3306", "us_ssn", "472-81-3306"),
        ("social security number 472813306", "us_ssn", "472813306"),
        ("ring +44 20 7946 0018 now", "phone", "+44 20 7946 0018"),
        ("call (212) 664-7665", "phone", "(212) 664-7665"),
        ("no more messages to 0688 872 49 99", "phone", "0688 872 49 99"),
        ("(37) 788-063-Office", "phone", "(37) 788-063"),
        ("seen from 81.2.69.142 twice", "ip_address", "81.2.69.142"),
        ("The name server is 8.8.8.8.", "ip_address", "8.8.8.8"),
        ("blocked: 5.9.12.7", "ip_address", "5.9.12.7"),
        ("bind_address = 93.184.216.34", "ip_address", "93.184.216.34"),
        ("proxy_pass http://93.184.216.34:3000/;", "ip_address", "93.184.216.34"),
        ("postgres://reader@93.184.216.34:5432/x", "ip_address", "93.184.216.34"),
        ('if client_ip == "93.184.216.34":', "ip_address", "93.184.216.34"),
        ("The phone answers at 93.184.216.34 now.", "ip_address", "93.184.216.34"),
        ("a login from 93.184.216.34", "ip_address", "93.184.216.34"),
        ("ssh jane@93.184.216.34", "ip_address", "93.184.216.34"),  # and no mail address
        # these could be versions
        ("15.9.72.183, port 9987", "ip_address", "15.9.72.183"),
        ("20.6.1.88 is blocked", "ip_address", "20.6.1.88"),
        ("scans from 20.6.1.88", "ip_address", "20.6.1.88"),
        ("Chrome on Windows, 68.49.202.37", "ip_address", "68.49.202.37"),
        ("Nobody has read 83.135.44.6 yet", "ip_address", "83.135.44.6"),
    ],
)
def test_personal_data_is_found_at_its_place(text: str, kind: str, value: str) -> None:
    assert _kinds(text) == [(kind, value)]


# prefixes and lengths as Wikipedia's "Payment card number" lists them
CARDS = {"4": {13, 16, 19}, "51": {16}, "2221": {16}, "34": {15}, "3528": {16}, "36": {14},
         "5018": {*range(12, 20)}, "2200": {16, 17, 18, 19}, "9792": {16}}  # fmt: skip


@each_row(("prefix", "lengths"), CARDS.items())
def test_a_card_has_a_length_of_its_issuer(prefix: str, lengths: set[int]) -> None:
    found = set()
    for length in range(12, 20):
        body = prefix + "90753186429753108642"[: length - 1 - len(prefix)]
        # Luhn: every second digit from the right, the check digit apart, counts twice
        twice = [int(digit) * (2 - place % 2) for place, digit in enumerate(reversed(body))]
        number = body + str(-sum(value - 9 * (value > 9) for value in twice) % 10)
        if ("credit_card", number) in _kinds(f"card {number} ok"):
            found.add(length)
    assert found == lengths


@each_row(
    "text",
    [
        "4111 1111 1111 1112",  # wrong check digit
        "9111 1111 1111 1111",  # no issuer
        "order 4512 8890 1123 4455",
        "DE89 3704 0044 0532 0130 01",  # modulo 97 fails
        "000-12-3456 666-12-3456 900-12-3456 123-00-4567 123-45-0000",  # never given out
        "https://host.test/a/4111111111111111/b",
        "ISBN 978-1-59327-828-1",
        "build 20230417123456",
        "Version 10.4.2.1 and 127.0.0.1:7878 and 192.168.1.1",
        "logo@2x.png",
        "user@example.com",
        "git@github.com:org/project.git",
        "Total 363 286 202 73 149 230 1303",
        "3.14159265358979323846",
        "123-45-6789-0123",
    ],
)
def test_look_alikes_are_left_alone(text: str) -> None:
    assert _kinds(text) == []


def test_a_hotline_weighs_little() -> None:
    assert score_leakage("Call 1-800-275-8777 for help.").score < WARN


@each_row(
    "text",
    [
        "key " + "AKI" + "AQ7RZ2LMX9TWB4KDN",
        "gh" + "p_k3Vd9TzQ1mXb7LrW5nYc2HfJ8sPa6GuE4oRi",
        "postgres://reporter:w8Zqk2mvP@db.sales.test:5432/main",
        "password = Tr4umf@brik!29",
        "client_secret: 'q9Xw4Lz7Rb2Tk8Vn5Mc1Hd6Jf3Gs0Pa'",
        "-----BEGIN PRIVATE " + "KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n",
        "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiI5MDEyMzQifQ.Zk3mQ8vLr2TxW7yNb1CdHf4G",
        'token: String::from("q9Xw4Lz7Rb2Tk8Vn5Mc1Hd6Jf3Gs0Pa")',
        'let password = String::from("Tr4umf@brik!29");',
        "secret = 'qKirRWalryBGqTzLWmePKf'",  # letters alone, capitals in no order
    ],
)
def test_secrets_are_found(text: str) -> None:
    assert list(find_secrets(text))
    assert score_leakage(text).categories["secret_exposure"] >= BLOCK


def test_entropy() -> None:
    # four equally likely characters: log2 4; two: log2 2
    assert [entropy(text) for text in ("", "aaaa", "abcd", "aabb")] == [0, 0, 2.0, 1.0]


@each_row(
    "text",
    [
        "chunk_id: guide-0412",
        "a similarity score of 0.87",
        "see /home/deploy/rag/handbook.md",
        "C:\\Users\\svc\\vault\\a.md",
        "My system prompt says that prices are secret.",
        "Traceback (most recent call last):",
        "vector-db-02.prod.internal:6333",
    ],
)
def test_internals_are_found(text: str) -> None:
    assert score_leakage(text).categories["metadata_exposure"] >= BLOCK


@each_row(
    "text",
    [
        "See guide/setup.md [1] and chapter 4.",
        "The chunk of memory is 4096 bytes long.",
        "A document id is assigned when the file is created.",
        "System requirements: 8 GB of memory.",
        "You are right, the assistant cannot see private notes.",
    ],
)
def test_citations_and_prose_are_no_internals(text: str) -> None:
    assert list(find_metadata(text)) == []


def test_ids_and_prompt_that_the_caller_knows() -> None:
    known = list(find_metadata("It stands in zebra42x.", internal_ids=["zebra42x", "zz"]))
    assert known == [("internal id", 13, 21, 0.9)]
    prompt = "Speak kindly and keep the price list of the shop strictly to yourself."
    said = "Well: keep the price list of the shop strictly to yourself, they said."
    runs = list(find_metadata(said, system_prompt=prompt))
    # 10 words in common make four runs of 7; the first starts at "keep"
    assert len(runs) == 4
    assert runs[0][1] == said.index("keep")
    assert not list(find_metadata("keep the price list", system_prompt=prompt))


def test_a_path_that_a_context_speaks_of_is_content() -> None:
    text = "Put the file into /etc/app/main.conf."
    assert score_leakage(text).score >= BLOCK
    assert score_leakage(text, ["The file /etc/app/main.conf holds the settings."]).score < WARN


def test_values_are_masked_and_their_origin_is_told() -> None:
    text = "Ask jane.roe@post-office.org or raj@harbor-club.org."
    report = score_leakage(text, ["Contact: jane.roe@post-office.org"])
    assert [item.origin for item in report.evidence] == ["context", "not in context"]
    assert "jane" not in str(report.evidence)
    assert [item.origin for item in score_leakage(text).evidence] == ["unknown"] * 2


def test_mask_never_shows_a_short_value() -> None:
    assert "abc" not in _mask("abcdefg")
    assert _mask("abcdefgh").startswith("ab…gh (8 characters, sha256 ")


def test_verbatim_spans_by_hand() -> None:
    context = "one two three four five six seven"
    text = "Zero, ONE two: three four five! and six seven eight nine"
    # the run one..five stands in the context; "and" breaks it, "six seven" is too short
    (span,) = _copied_spans(text, [context])
    assert (span.words, span.context) == (5, 0)
    assert text[span.start : span.end] == "ONE two: three four five"


@each_row(
    ("longest", "total", "score"),
    [
        (0, 100, 0.0),
        (50, 1_000, 0.5),  # 50 words in a row: half
        (100, 1_000, 1.0),
        (24, 30, 0.5),  # 80 % of 30 words
        (30, 30, 1.0),
        (20, 20, 0.2),  # a short answer may be a quotation: only the run counts
    ],
)
def test_verbatim_score_by_hand(longest: int, total: int, score: float) -> None:
    context = " ".join(f"w{n}" for n in range(longest))
    spans = _copied_spans(context, [context])
    assert _leak_score(spans, total) == pytest.approx(score)


def test_a_copied_passage_leaks_and_a_cited_quotation_does_not() -> None:
    assert score_leakage(PASSAGE, [PASSAGE]).categories["verbatim_context"] == 1.0
    assert score_leakage(PASSAGE).categories["verbatim_context"] == 0.0
    quoted = score_leakage(f'The rule: "{PASSAGE}" [2]', [PASSAGE])
    assert quoted.categories["verbatim_context"] == 0.0
    assert len(quoted.quoted) == 1
    uncited = score_leakage(f'The rule: "{PASSAGE}"', [PASSAGE])
    assert uncited.categories["verbatim_context"] >= BLOCK


def test_nothing_leaks_nothing() -> None:
    report = score_leakage("", ["something"])
    assert report.score == 0.0
    assert report.categories == dict.fromkeys(CATEGORIES, 0.0)
    assert report.evidence == ()


@settings(max_examples=150, deadline=None)
@given(st.text(st.characters(), max_size=300), st.lists(st.text(max_size=100), max_size=3))
@example("\ud800 @ \udfff @.@.@", [])
@example("你好" * 40, ["你好" * 40])
@example("الجواب " * 40, ["الجواب " * 40])
def test_scores_stay_in_range_for_any_text(text: str, contexts: list[str]) -> None:
    report = score_leakage(text, contexts)
    assert set(report.categories) == set(CATEGORIES)
    assert all(0.0 <= score <= 1.0 for score in report.categories.values())
    assert report.score == max(report.categories.values())
    assert report == score_leakage(text, contexts)
    assert all(0 <= item.start < item.end <= len(text) for item in report.evidence)


@pytest.mark.slow
@each_row("piece", ["a b ", "123-45-6789 ", "GB12 ", "a://b:", "a@"])
def test_a_long_text_of_anything_ends(piece: str) -> None:
    # a pattern that backtracks would need hours here; pytest's own time-out is the only clock
    text = piece * (100_000 // len(piece))
    assert 0.0 <= score_leakage(text).score <= 1.0


def test_each_makers_rules_can_be_left_out() -> None:
    """Without its maker's rules a token is found by its form or its name, or not at all."""
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    assert [kind for kind, *_ in find_secrets(token)] == ["github token"]
    alone = find_secrets(token, without=frozenset({"github"}))
    assert [kind for kind, *_ in alone] == ["token with a head"]
    key = "AKIA" + "Q3EHNMZXTL2PKW7R"  # nothing but the prefix tells that these are a key
    assert [kind for kind, *_ in find_secrets(key)] == ["aws access key"]
    assert not list(find_secrets(key, without=frozenset({"aws"})))
    named = f"token = {token}"
    assert [kind for kind, *_ in find_secrets(named, without=frozenset({"github"}))] == [
        "named secret"
    ]
    assert "github" in token_families()


def test_every_secret_rule_names_its_source() -> None:
    data = tomllib.loads(resources.files("guardrails").joinpath("rules/secrets.toml").read_text())
    rules = [*data["token"], *data["form"], data["services"]]
    for rule in rules:
        address = urlsplit(rule["source"])
        form = (address.scheme, "." in address.netloc, " " in rule["source"])
        assert form == ("https", True, False), rule["source"]
    assert len(_book().kinds) == len(data["token"])


@each_row(
    "text",
    [
        "updated from 91.12.30.4 to 91.12.31.2",
        "firmware 87.10.22.5",
        "the 91.12.30.4 release",
        "Chrome/91.30.44.12",
        "see 4.4.2.1 below",
        "Version number 93.184.21.34",
        "Rolled back from 4.4.1.2 to 4.4.0.9 today",
        "The reader 5.21.0.2 is slow.",
        "suite 16.41.33.0 is out",
        "requires base==91.12.30.4",
        "The agent 91.12.30.4 was rolled out on Monday.",
        "get http://host/download/91.12.30.4/setup.exe",
        "| Router X2 | 3.0.0.4 | 2024-02-11 |",
        '"fileVersion" : "144.29.30.139"',
        "the fw 20.6.1.88 works again",
        "The till app 9.14.22.101 hangs",
    ],
)
def test_versions_with_four_parts_are_no_addresses(text: str) -> None:
    assert _kinds(text) == []


def test_no_token_is_shorter_than_the_shortcuts_assume() -> None:
    folder = resources.files("guardrails").joinpath("rules")
    rules = tomllib.loads(folder.joinpath("secrets.toml").read_text("utf-8"))
    for row in rules["token"]:
        least, _ = re._parser.parse(row["pattern"]).getwidth()  # type: ignore[attr-defined]
        assert least >= secrets.SHORTEST_TOKEN, row["family"]
        assert not re.search(r"\\[sSWD]|[ .]\*|\[\^", row["pattern"]), row["family"]
    names = rules["services"]["names"].split("|")
    assert max(map(len, names)) <= secrets.LONGEST_SERVICE_NAME


SERVICE_PIECES = (
    "algolia", "Datadog", "key", " = ", ": ", " ", ".", "/", "\n", "_", "-", "a1b2c3d4e5f6a7b8c9d0",
    "internationalization", "x" * 35, "0123abcd-0123-abcd-0123-abcdef012345", "Zq7", "%", "é",
)  # fmt: skip


@settings(max_examples=200)
@given(st.lists(st.sampled_from(SERVICE_PIECES), max_size=16).map("".join))
def test_tokens_of_services_are_found_as_by_looking_everywhere(text: str) -> None:
    book = secrets._book()
    near = list(secrets._of_services(facts_of(text), book))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "_DRAWN", re.compile(""))
        patch.setattr(secrets, "_beside_services", lambda text, book: book.services.finditer(text))
        assert near == list(secrets._of_services(facts_of(text), book))


DRAWN = "k7Qm2xVt9RzL4wBn8sHd3"
SHA1 = "4f1d9a7c02be85634f1d9a7c02be85637d10aa52"
AWS = "Jb/xQmRtYuIoPaSdFgHjKlZxCvBnMwErTyUiOp1Q"


@each_row(
    ("text", "value"),
    [
        ("Server=db7;Database=shop;Uid=app;Pwd=Tr4vel.Mug;", "Tr4vel.Mug"),
        ("Password=Tr4vel.Mug;Encrypt=true;", "Tr4vel.Mug"),
        ("anna:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g="),
        ("anna:$apr1$x7Qd1e2f$0aBcDeFgHiJkLmNoPqRs5/", "$apr1$x7Qd1e2f$0aBcDeFgHiJkLmNoPqRs5/"),
        ("CREATE USER 'anna' IDENTIFIED BY 'gr33n tea'", "gr33n tea"),
        ("CREATE ROLE anna WITH LOGIN PASSWORD 'gr33n tea';", "gr33n tea"),
        ("machine host.zone login anna password gr33ntea", "gr33ntea"),
        ('<Pass encoding="base64">R3IzM250ZWE0dHdv</Pass>', "R3IzM250ZWE0dHdv"),
        ('<server user="anna" password="gr33ntea"/>', "gr33ntea"),
        ("postgres://anna:gr33n/te?a!@db7.zone:5432/shop", "gr33n/te?a!"),
        (f"wandb {SHA1}", SHA1),
        ("SMTP_PASS=lukewarmgrog", "lukewarmgrog"),
        ("define('DB_PASSWORD', 'gr33ntea');", "gr33ntea"),
        ("db7.zone:5432:shop:anna:gr33ntea", "gr33ntea"),
        (f"acme_{DRAWN}", f"acme_{DRAWN}"),  # a maker that nobody has a rule for
        (f"the new key is ACME-live-{DRAWN}.", f"ACME-live-{DRAWN}"),
        (f'ACME_TOKEN ::= "{DRAWN}"', DRAWN),
        (f'acmeToken ?= "{DRAWN}"', DRAWN),
        (f'$acmeToken .= "{DRAWN}"', DRAWN),
        (f'var acmeToken string = "{DRAWN}"', DRAWN),
        (f"acme token - '{DRAWN}'", DRAWN),
        (f"<acmeToken>\n    {DRAWN}\n</acmeToken>", DRAWN),
        (f"<secret>{{AQAAABAAA {DRAWN}}}</secret>", DRAWN),
        (f'"{{\\"acmeSecretKey\\":\\"{DRAWN}\\"}}"', DRAWN),
        (f"acmeapikey={DRAWN}", DRAWN),
        (f"| api token | {DRAWN} |", DRAWN),
        ("curl -s -u jane:Tr0ub4dor https://host/x", "Tr0ub4dor"),
        ("curl https://host/x \\\n  -H 'A: b' \\\n  --user 'jane:Tr0ub4dor'", "Tr0ub4dor"),
        (f"POST https://hooks.acme.io/in/T01/{DRAWN}", DRAWN),
        (f"aws_secret_key = {AWS}", AWS),
    ],
)
def test_secrets_are_found_by_form_and_context(text: str, value: str) -> None:
    assert value in [text[start:end] for _, start, end, _ in find_secrets(text)]


@each_row(
    "text",
    [
        "The quick brown fox jumps over the lazy dog.",
        "Your password must have 12 characters.",
        "API_KEY=<your key here>",
        "token = os.environ['TOKEN']",
        "password: ${DB_PASSWORD}",
        "key: value",
        "api token = '35rqejvHx8E83LC8?j65uBHEz8VRlWSw'",  # one sign of no alphabet: a pattern
        "key = sk-or-v1-a2Cy8xCLyvrAf7lZKfhQhyCr4RAID9D",  # a known head, not its form
        "loyalty = 'g7w41cfy8n6z7mrlku18wouolg9dt0n'",  # a weak name and an odd length
        "sk-xxxxxxxxxxxxxxxxxxxxxxxx",
        "commit 9f1c2ab77e03d1",
        "The access token is sent in the header.",
        "https://user:${password}@host.test/",
        "'password': '#password-field'",
        "forgotPassword: '/reset-password'",
        "{'password': 'required|min:8', 'email': 'required'}",
        "'fields': ['username', 'password', 'email']",
        "password: 'Passwort vergessen?'",
        "License key: XXXXXXXX-XXXX-XXXX",
        "https://username:password@site.zone/",
        "aws_secret_access_key: 9c1b7d0e2f3a4b5c6d7e8f901a2b3c4d5e6f70819a",  # 42 signs, never 40
        "sonar-plugin-1.2.4.tgz#4f1d9a7c02be85634f1d9a7c02be85637d10aa52",
        "API_KEY = ZHVtbXkgdGV4dCBmb3IgYSBzYW1wbGU=",  # unpacks to "dummy text for a sample"
        "git checkout 4f1d9a7c02be85634f1d9a7c02be85637d10aa52",
        "hf_" + "FakeToken" * 4,  # 36 letters, a token has 34
        "curl -u user:password https://host/x",
        'curl -u "$USER:$PASS1" https://host/x',
        "curl -u jane https://host/x",
        "rsync -u host1:path2 host3:path4",
        "https://docs.acme.io/webhooks/events-and-payloads-2022",
        f"public_key = {DRAWN}",
        f"primaryKey={DRAWN}",
        "credentialsId: '29f63271-dc2f-4734-8221-5b31b5169bac'",
        f"csrf-token={DRAWN}",
        "doc.Security.KeySize = PdfKeySize.Key128Bit;",
        "keyVaultName: web2-prod-1208358310",
        f"acme = '{DRAWN}{DRAWN}?{DRAWN}'",  # no token has such a sign within
        "acme_aAbBcCdDeEfFgGhHiIjJkKlLmM0123",  # letters in their order
        "commit-3f786850e387550fdab836ed7e6dc881de23001b",
        "acme/plugin.py,sha256=CSR-8dqLxpZyjUcTDnAuQwf299EB1sSFv_nzpxznAI0,1040",
        "chunk-vendors-3f786850e387550fdab836ed7e6dc881de23001b.js",
        "img_20240311_183045123_holiday_in_rome_with_all_of_us",
        "std::vector<RandomAccessIterator>\n_MY_CONSTEXPR_AFTER_CXX11",
        "aws_secret_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    ],
)
def test_placeholders_prose_names_and_routes_are_no_secrets(text: str) -> None:
    assert list(find_secrets(text)) == []


@each_row(
    ("text", "found"),
    [
        ("Jane Roe, 472-81-3306, hired in May", True),
        ("Name,SSN,Unit Roe,472-81-3306,A", True),
        ("social 472813306, born 1980", True),
        ("I typed 472813306 as my SSN and it failed", True),
        ("her claim number 472-81-3306A is her husband's SSN and a letter", True),
        ("Tax id 472-81-3306", True),
        ("the lot number on the vial is 472-81-3306", False),
        ("Policy 472-81-3306 ends in May", False),
        ("quote the widget no. 472-81-3306", False),
        ("We post as user 472813306. Enter your SSN below.", False),
        ("members of the social club (membership 472-81-3306)", False),
        ("472-81-3306", True),
        ("inmate Roe, J. 472-81-3306 was moved", True),
        ("box 2: 472-81-3306, DOB 4/4/1971", True),
        ("ssn on file 472 81 3306", True),
        ("name,born,ssn: Roe,1984-02-11,472-81-3306", True),
        ("Never send your SSN. Your case number is 472-81-3306", False),
        ("Bin collection 472-81-3306 was moved", False),
        ("Students find leaflet 472-81-3306 at the desk", False),
        ("Dossier no 472-81-3306", False),
        ("mail it to Springfield 62704-1185", False),
    ],
)
def test_social_security_numbers_by_their_words(text: str, found: bool) -> None:
    assert ("us_ssn" in [kind for kind, _ in _kinds(text)]) is found
