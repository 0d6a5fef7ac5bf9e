"""Private values, each in a sentence as people write it."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator


def planted(rng: random.Random) -> Iterator[tuple[str, str]]:
    """200 private values, each with the words around it; what must not be written comes first."""

    def letters(n: int, alphabet: str = string.ascii_letters + string.digits) -> str:
        return "".join(rng.choices(alphabet, k=n))

    def digits(n: int) -> str:
        return letters(n, string.digits)

    names = ["jane.roe", "m.huber", "li_wei", "o'neil", "anna+test"]
    for n in range(20):
        email = (
            f"{names[n % 5]}{n}@{['example.com', 'corp-mail.io', 'uni.ac.uk', 'mail.test'][n % 4]}"
        )
        yield email, f"write to {email}, please"
        phones = (f"+49 30 {digits(7)}", f"+1-202-555-01{n:02d}", f"(415) 555-{digits(4)}")
        phone = (*phones, f"0171 {digits(7)}")[n % 4]
        yield phone, f"call me at {phone} after six"
        card = f"4{digits(3)} {digits(4)} {digits(4)} {digits(4)}" if n % 2 else f"5{digits(15)}"
        yield card, f"my card is {card}"
        iban = f"DE{digits(2)} {digits(4)} {digits(4)} {digits(4)} {digits(4)} {digits(2)}"
        yield iban, f"pay to {iban} today"
        ssn = f"{rng.randint(100, 665)}-{rng.randint(10, 99)}-{digits(4)}"
        yield ssn, f"social security number {ssn}"
        host = f"8.{rng.randint(1, 250)}.{rng.randint(1, 250)}.{rng.randint(1, 250)}"
        yield host, f"my address is {host} at home"
        tokens = (
            f"ghp_{letters(36)}",
            f"sk-proj-{letters(40)}",
            f"xoxb-{digits(12)}-{letters(24)}",
        )
        token = (*tokens, f"AKIA{letters(16, string.ascii_uppercase + string.digits)}")[n % 4]
        yield token, f"it fails with {token} in the header"
        password = f"{letters(5, string.ascii_lowercase)}{digits(2)}!"
        yield password, f"the password is {password} and it fails"
        login = f"{letters(6, string.ascii_lowercase)}:{letters(9)}"
        yield login, f"connect to postgres://{login}@db.local/main"
        jwt = f"eyJ{letters(20)}.{letters(40)}.{letters(30)}"
        yield jwt, f"Authorization: Bearer {jwt}"
