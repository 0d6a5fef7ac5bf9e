"""What is blotted out of a text before it is written, and what stays."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import each_row

from guardrails.blot import blot


@each_row(
    ("text", "blotted"),
    [
        ("Mail jane@corp.example or call +49 30 901820.", "Mail [email] or call [phone]."),
        ("card 4111 1111 1111 1111, even 4111111111111112", "card [card], even [card]"),
        ("IBAN DE89 3704 0044 0532 0130 00.", "IBAN [iban]."),
        ("SSN 123-45-6789; 8.8.8.8, 2001:db8::ff00:42:8329", "SSN [ssn]; [ip], [ip]"),
        ("the password is hunter2! and", "the password is [secret] and"),
        ("postgres://admin:hunter2@db/x", "postgres://[url login]@db/x"),
        ("AKIAIOSFODNN7EXAMPLE", "[secret]"),
        ("card-4111111111111111, file_4111-1111-1111-1111", "card-[card], file_[card]"),
        ("it says basic YWxhZGRpbjpvcGVu", "it says basic [token]"),
        (
            'let password = String::from("Tr4umf@brik!29");',
            'let password = String::from("[secret]");',
        ),
        ("the password is hunter(2secret", "the password is [secret]"),
        ("keys/prod/q9Xw4Lz7Rb2Tk8Vn5Mc1", "[secret]"),
        ("at +1-202-555-0143 or (555) 123-4567", "at [phone] or [phone]"),
    ],
)
def test_private_values_go(text: str, blotted: str) -> None:
    assert blot(text)[0] == blotted


@each_row(
    "text",
    [
        "The release on 2026-03-04 12:00:00 has 1000000 rows; version 3.11.2, docs/page-12.md",
        "functools.lru_cache(maxsize=None), key=my_key_function, 1234 tokens; the token is used",
        "What happens when the password is wrong?",
        "What are the basic principles? See basic mechanics, e.g. 2020-04-01T03:15:00+12:00",
        "secret_number = rand::thread_rng().gen_range(1..=100); token: String::from(&s)",
        "Running target/debug/deps/adder-92948b65e88960b4, /rustc/" + "4eb1" * 10 + "/library/core",
        "see github.com/rust-lang/mdBook/issues/1127",
        "see the_long_function_name_of_a_module and https://docs.python.org/3/library/os.html",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert blot(text) == (text, {})


def test_ids_keep_their_random_letters_but_no_secret() -> None:
    identity = "3f2a9c1d5e6b7a8c9d0e1f2a3b4c5d6e"
    assert blot(identity, is_id=True)[0] == identity
    assert blot(identity)[0] == "[secret]"
    assert blot("docs/jane@corp.io.md", is_id=True)[1] == {"email": 1}
    assert blot("docs/bill-4111 1111 1111 1111.md", is_id=True)[1] == {"card": 1}
    assert blot("docs/keys-AKIAIOSFODNN7EXAMPLE.md", is_id=True)[1] == {"secret": 1}
    # 4111111111111112 has a wrong check digit: glued to a word, sixteen digits are a number of it.
    assert blot("docs/scan-4111111111111112.md", is_id=True)[1] == {}


@settings(max_examples=25)
@given(st.text(max_size=80))
def test_any_text_is_taken_and_nothing_is_added_but_marks(text: str) -> None:
    blotted, counts = blot(text)
    assert blotted.count("[") <= text.count("[") + counts.total()
