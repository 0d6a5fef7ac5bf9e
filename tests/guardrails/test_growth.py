"""The cost of the injection detector grows with the length of a text, not with its square.

Processor time decides, not the clock: a text is made eight times as long, which costs eight times
as much where the cost is linear and 64 times where it is quadratic.
"""

from __future__ import annotations

import gc
import re
import string
from collections.abc import Callable, Iterator
from itertools import permutations, product
from time import process_time
from typing import Any

from tests.rows import each_row

from guardrails.injection import _planted_lines, score_injection
from guardrails.normalise import views
from guardrails.patterns import InjectionRule, rule_book
from guardrails.pii import find_pii
from guardrails.secrets import find_secrets

SIZE = 500
"""Characters of the shortest text."""
LONGER = 8
"""How many times as long the longest one is."""
STEEP = 24.0
"""Between 8 and 64 with a factor of about three to both: other work on the machine, which slows the
processor's caches down, does not make one of them the other."""
SURELY_LINEAR = 0.001
"""Seconds for 4 * SIZE characters. Their square is 4 million steps, which take longer."""

BOOK = rule_book()
PHRASES = {rule.name: rule for rules in BOOK.by_anchor.values() for rule in rules}
SIGNS = [*string.printable.strip(), " ", "\n", "\t", "\u200b", "é", "“", "你"]
SIGNS += ["0x41 ", "%41", "&#65;"]
RUNS = [*SIGNS, "-=", "- ", "=\n", "_a", "a ", "1 ", "| x |\n", "<!-- ", "\nuser: x", '"""', "``` "]


def seconds(run: Callable[[str], Any], text: str) -> float:
    """Processor time of one run."""
    start = process_time()
    run(text)
    return process_time() - start


def is_steep(run: Callable[[str], Any], head: str, run_of: str) -> bool:
    """Whether a run behind ``head`` costs far more than eight times when it is eight times as long;
    asked three times, since other work on the machine can stretch any one of them."""

    def cost(size: int) -> float:
        return seconds(run, head + (run_of * size)[:size])

    gc.disable()
    try:
        if cost(4 * SIZE) < SURELY_LINEAR:
            return False
        return all(cost(LONGER * SIZE) >= STEEP * cost(SIZE) for _ in range(3))
    finally:
        gc.enable()


def own_texts(rule: InjectionRule) -> Iterator[tuple[str, str]]:
    """Heads and runs made of the signs and the words that stand in a rule's own expression."""
    source = rule.regex.pattern
    signs = sorted({char for char in source if not char.isalnum()} | {"\n"})
    words = sorted(set(re.findall(r"[^\W\d_]{2,}", source)))
    for run_of in [*signs, *map("".join, permutations(signs, 2)), *words]:
        yield "", run_of
    for head, run_of in product(words, words):
        yield head, run_of
    for word, sign in product(words, signs):
        yield "", word + sign
        yield word, sign


def finder(pattern: re.Pattern[str]) -> Callable[[str], int]:
    return lambda text: sum(1 for _ in pattern.finditer(text))


@each_row("rule", BOOK.marks)
def test_each_mark_is_linear_in_runs_of_anything(rule: InjectionRule) -> None:
    texts = [*(("", run_of) for run_of in RUNS), *own_texts(rule)]
    assert next((text for text in texts if is_steep(finder(rule.regex), *text)), None) is None


@each_row("step", [views, lambda text: list(_planted_lines(text)), score_injection])
def test_each_step_is_linear_in_runs_of_anything(step: Callable[[str], Any]) -> None:
    assert next((run_of for run_of in RUNS if is_steep(step, "", run_of)), None) is None


LEAKS = [
    *("password ", "password='", "pass=", "user a password '", "create user 'a' ", "a1b2c3d4"),
    *("wandb ", "key: ", "https://a:b@", "://a:", "Pwd=a;", "<pass>", '<a password="'),
    *("-----BEGIN ", "eyJ", "a@b.", "名@", "1.2.3.4, ", "1234 ", "0688 ", "+"),
    *("version 1.2.3.4 to ", "a:1:b:c:", "login a "),
]


@each_row("step", [find_secrets, find_pii])
def test_leaks_are_looked_for_in_linear_time(step: Callable[[str], Any]) -> None:
    def run(text: str) -> int:
        return sum(1 for _ in step(text))

    assert next((run_of for run_of in LEAKS if is_steep(run, "", run_of)), None) is None


def test_phrases_are_linear_in_runs_of_their_own_words() -> None:
    """All of them are tried where one of their first words stands, so each is run on its own."""
    slow: list[str] = []
    for rule in PHRASES.values():
        for anchor in sorted(rule.anchors)[:2]:
            for run_of in (f"{anchor} ", f"{anchor}, - "):

                def tried(text: str, rule: InjectionRule = rule, anchor: str = anchor) -> int:
                    places = (found.start() for found in re.finditer(re.escape(anchor), text))
                    return sum(rule.regex.match(text, place) is not None for place in places)

                if is_steep(tried, "", run_of):
                    slow.append(f"{rule.name}: {run_of}")
    assert slow == []


@each_row(("expression", "steep"), [("={5,}x", True), ("(?<!=)={5,}x", False)])
def test_the_measure_tells_a_square_from_a_line(expression: str, steep: bool) -> None:
    """Asked up to five times: a busy machine can stretch the short run."""
    find = finder(re.compile(expression))
    assert any(is_steep(find, "", "=") for _ in range(5)) is steep
