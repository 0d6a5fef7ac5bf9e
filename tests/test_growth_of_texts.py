"""Every public function that reads a text costs time in proportion to it, whatever it repeats.

The functions are discovered by their signatures. Processor time decides, not the clock, and only
its ratios: a text twice and four times as long costs twice and four times as much where the cost is
linear, four and sixteen times where it grows with the square.
"""

from __future__ import annotations

import gc
import importlib
import inspect
import pkgutil
import re
import string
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from time import process_time
from typing import Any

import pytest
from tests.rows import each_row

from guardrails.facts import TextFacts
from guardrails.injection import weigh
from guardrails.leakage import score_leakage
from guardrails.linear import Featurizer, LinearModel
from guardrails.patterns import rule_book
from ragmetrics import (
    abstention,
    citations,
    claims,
    context,
    embedding,
    facts,
    groundedness,
    matching,
    paths,
    support,
    tools,
    windows,
)
from ragmetrics.text import (
    gold_quotes,
    measures,
    number_forms,
    number_scan,
    numbers,
    phrase_search,
    tfidf,
    topics,
)
from ragmetrics.text import words as word_lists
from ragmetrics.text.asked_questions import AskedQuestions
from records.tool_calls import ExpectedTool, ToolCall

SIZE = 520
"""Characters of the shortest text; the longest has four times as many."""
SURELY_LINEAR = 0.0015
"""Seconds for the longest text. The square of its 2,080 characters is 4 million steps, which take
longer, even those of a regular expression."""
STEEP = 2.7
"""How many times as much twice the text costs: between 2 and 4. Both doublings must cost it: a
cache for texts of up to 1,000 characters makes one of them steep."""
TRIES = 4

PATTERNS = [
    *string.punctuation,
    *("a", "1", " ", "\n", "\t", "\r", "é", "你", "“", "…", "—", "\u200b", "\u0301", "\u2028"),
    *("a ", "1 ", " \n", "\r\n", "- ", "1. ", "# ", "| a |\n", "```\n", "[1]", "[1] ", "【1】"),
    *("(Passage 1) ", "passage 1 and 2, ", "1,", "1.", "1-", "$1 ", "a.b", "; ", ", and ", "A. "),
    *("We pay thirty days; we sell twenty nights; ", "The red cats ate it, and ", "it is, "),
    *("one hundred and ", "2026-01-", "12:30 ", "May ", "n't ", "I do not know. ", "is he? "),
    *("according to the context, ", "http://a/", "a@b.", "a-", "a_", "aA", '"a" ', "“a” "),
    *("a.b#", "%41"),
]


@dataclass(frozen=True)
class Chunk:
    """A retrieved passage or a source, as the protocols of the metrics want it."""

    text: str | None
    chunk_id: str = "c1"
    doc_id: str | None = "d1"
    rel_path: str | None = "a.md"
    truncated: bool = False
    index: int | None = 1


@dataclass(frozen=True)
class GoldFact:
    """A gold fact, as ``facts.Fact`` wants it."""

    fact: str
    aliases: tuple[str, ...] = ()
    vital: bool = True


def _called(text: str) -> ToolCall:
    return ToolCall("a", {"b": text})


def _prepared(text: str) -> list[windows.PreparedChunk]:
    return [windows.prepare(text)]


def _features(text: str) -> Any:
    chunks = _prepared(text)
    verdict = claims.score_claim(text, chunks)
    return verdict and support.features(text, chunks, verdict)


def _denied(text: str) -> Any:
    (chunk,) = chunks = _prepared(f"{text} This is not so.")
    verdict = claims.score_claim(text, chunks)
    return verdict and support.is_denied(text, chunk, verdict, "")


class _Undecided:
    """A support model without a cost of its own."""

    identity = "undecided"
    window_words = 200

    def __call__(
        self,
        claims: Sequence[claims.AnswerClaim],
        passages: Sequence[str],
        question: str,
        answer: str,
    ) -> list[float]:
        return [0.5] * len(claims)


def _frequencies(text: str) -> tfidf.Frequencies:
    words = tfidf.Frequencies()
    words.add([text, text])
    return words


@cache
def _of_known_text() -> tfidf.Frequencies:
    return _frequencies(_KNOWN_TEXT)


def _passage(text: str) -> matching.Passage:
    return matching.Passage(matching.anchor("a.md", text), text)


def _asked(text: str) -> AskedQuestions:
    asked = AskedQuestions()
    asked.add(text)
    return asked


def _words(text: str) -> list[str]:
    return re.findall(r"\S+|\s", text)


def _lines(text: str) -> list[str]:
    return re.split(r"(?<=[\s.;,])", text)


def _with_vectors(text: str) -> None:
    """Drives the scores of embeddings with the same vector for every text. Of answer, reference and
    contexts only one is long: each sentence of one is compared with each of another."""
    import numpy as np

    steps = embedding.score_case(text, text, _KNOWN_TEXT, [Chunk(_KNOWN_TEXT)])
    wanted = next(steps)
    try:
        while True:
            wanted = steps.send({text: np.full((1, 4), 0.5) for text in wanted})
    except StopIteration:
        pass


BUILDERS: dict[str, Callable[[str], Any]] = {
    "str": str,
    "str | None": str,
    "Sequence[str]": lambda text: [text],
    "Iterable[str]": lambda text: [text],
    "Iterable[str | None]": lambda text: [text],
    "PreparedChunk": windows.prepare,
    "Sequence[PreparedChunk]": _prepared,
    "Sequence[Passage]": lambda text: [Chunk(text)],
    "Sequence[AnswerClaim]": lambda text: claims.extract(text).claims,
    "Sequence[Fact]": lambda text: [GoldFact(text)],
    "Sequence[Citation]": lambda text: citations.attach(
        text, claims.extract(text).claims, citations.Resolver([Chunk(text)])
    ),
    "Resolver": lambda text: citations.Resolver([Chunk(text)]),
}
"""An argument of each type, made of the text. Without a row here a function needs one in CALLS."""

_RULES = [rule for rules in rule_book().by_anchor.values() for rule in rules][:20]
_KNOWN_TEXT = "We pay for thirty days and 1.5 nights. It is not free."

_STEPS = tuple(paths.STEPS)


def _numbers(text: str) -> Iterator[re.Match[str]]:
    """The matches that are digits or number words."""
    return (match for match in number_scan.matches(text) if match["core"] or match["word"])


CALLS: dict[str, Callable[[str], Any]] = {
    "text.topics.word_sets": lambda text: topics.word_sets([text]),
    "text.topics.telling_words": lambda text: topics.telling_words(
        topics.word_sets([text])[0], [True]
    ),
    "abstention.detect_with_passages": lambda t: abstention.detect_with_passages(t, [Chunk(t)], t),
    "windows.best_share": lambda t: windows.best_share(
        dict.fromkeys(_words(t), ""), _prepared(t), 3
    ),
    "windows.best_window": lambda t: windows.best_window(_words(t), windows.prepare(t)),
    "windows.best_hit": lambda t: windows.best_hit(dict.fromkeys(_words(t), ""), _prepared(t), 3),
    "windows.numbers_of_window": lambda t: windows.numbers_of_window(
        windows.prepare(t), (0, len(t))
    ),
    "windows.window_span": lambda t: windows.window_span(windows.prepare(f"It is. {t}"), 0, 3),
    "claims.extract": lambda t: claims.extract(t, clauses=True),
    "context.mattr": lambda t: context.mattr([_words(t), _words(t)]),
    "context.ngram_overlap": lambda t: context.ngram_overlap(_words(t), _words(t)),
    "context.shared_end": lambda t: context.shared_end(_words(t), _words(t)),
    "context.unique_token_ratio": lambda t: context.unique_token_ratio([_words(t)] * 2),
    "context.without_shared_ends": lambda t: context.without_shared_ends([_words(t)] * 2),
    "context.score_case": lambda t: context.score_case(
        [Chunk(t), Chunk("a " + t)], frequencies=_of_known_text(), gold_facts=[GoldFact(t)]
    ),
    "embedding.likely_windows": lambda t: embedding.likely_windows(
        [t], embedding.sentence_windows(_lines(t))
    ),
    "embedding.sentence_windows": lambda t: embedding.sentence_windows(_lines(t)),
    "embedding.score_case": _with_vectors,
    "facts.find_facts": lambda t: facts.find_facts([t], [GoldFact(_KNOWN_TEXT)]),
    "groundedness.checks": lambda t: groundedness.checks(
        t,
        question=t,
        contexts=1,
        citations=1,
        answerable=True,
        best_score=None,
        min_score=0.0,
        declines=False,
    ),
    "groundedness.score_case": lambda t: groundedness.score_case(
        t,
        [Chunk(t)],
        question=t,
        references=[Chunk(t)],
        labels=groundedness.Labels(
            reference_answer=t, expected_claims=[t], forbidden_claims=[t], gold_facts=[GoldFact(t)]
        ),
    ),
    "claim_metrics.score_claims": lambda t: groundedness.score_case(
        t, [Chunk(t)], question=t, support_model=_Undecided()
    ),
    "groundedness.unsupported_claims": lambda t: groundedness.unsupported_claims(t, [Chunk(t)], t),
    "text.words.has_fewer_words": lambda t: word_lists.has_fewer_words(t, len(t)),
    "matching.match_anchors": lambda t: matching.match_anchors(
        [matching.anchor("a.md", t)], [_passage(t)], [[_KNOWN_TEXT]]
    ),
    "matching.match_texts": lambda t: matching.match_texts([[_KNOWN_TEXT]], [t]),
    "matching.matches_place": lambda t: matching.matches_place(
        matching.anchor("a.md", ""), [_KNOWN_TEXT], _passage(t)
    ),
    "matching.by_heading_only": lambda t: matching.by_heading_only(
        matching.anchor("a.md", "A"), [t], _passage(t)
    ),
    "text.gold_quotes.holds_run": lambda t: [
        gold_quotes.holds_run(t, _KNOWN_TEXT, [t]),
        gold_quotes.holds_run(_KNOWN_TEXT, t),
    ],
    "text.gold_quotes.holds_quote": lambda t: gold_quotes.holds_quote(t, _KNOWN_TEXT),
    "text.gold_quotes.fold_quote": lambda t: gold_quotes.fold_quote.__wrapped__(t),
    # Snippets and facts are the set's own and a sentence long: the cost is theirs times the text's.
    "tools.score_tools": lambda t: tools.score_tools(
        ("tool_recall",), [_called(t)], tools.ToolLabels([ExpectedTool("a", {"b": t})])
    ),
    "facts.holds": lambda t: facts.holds(t, facts.canonical(t), _KNOWN_TEXT),
    "matching.holds": lambda t: matching.holds(t, _KNOWN_TEXT),
    "matching.window_similarity": lambda t: matching.window_similarity(_KNOWN_TEXT, t),
    "paths.PathCut.applied": lambda t: paths.PathCut(_STEPS, t).applied(t),
    "paths.PathCut.gold_key": lambda t: paths.PathCut(_STEPS, t).gold_key(t),
    "paths.PathCut.key": lambda t: paths.PathCut(_STEPS, t).key(t),
    "paths.examine_paths": lambda t: paths.examine_paths([([t], [t, f"kb://a/{t}#b", f"c/{t}"])]),
    "paths.looks_like_path": lambda t: [paths.looks_like_path(t + end) for end in ("", " ", "#")],
    "support.ask": lambda t: support.ask(
        _Undecided(), claims.extract(t).claims, _prepared(t), t, t
    ),
    "support.features": _features,
    "support.is_denied": _denied,
    "support.pieces": lambda t: support.pieces(windows.prepare(t), 20),
    "text.asked_questions.AskedQuestions.add": _asked,
    "text.asked_questions.AskedQuestions.closeness": lambda t: _asked(t).closeness(t),
    "text.measures.unit_after": lambda t: measures.unit_after(t, 0),
    "text.number_forms.signs": lambda t: number_forms.signs(
        t, len(t) // 2, len(t), number_forms.falls(t)
    ),
    "text.number_scan.amounts": lambda t: [
        number_scan.amounts(match, comma=True) for match in _numbers(t)
    ],
    "text.number_scan.is_bare": lambda t: [number_scan.is_bare(match) for match in _numbers(t)],
    "text.number_scan.keys_of": lambda t: [
        number_scan.keys_of(match, comma=True) for match in number_scan.matches(t)
    ],
    "text.numbers.NumberIndex.note": lambda t: numbers.NumberIndex().note([("i", t)]),
    "text.numbers.judge": lambda t: numbers.judge(numbers.numbers(t), numbers.index(t)),
    "text.phrase_search.PhraseSearch.all_in": lambda t: phrase_search.PhraseSearch(
        ["a b", "i (?:do not|cannot) know"]
    ).all_in(t),
    "text.phrase_search.PhraseSearch.first_in": lambda t: phrase_search.PhraseSearch(
        ["a b", "i (?:do not|cannot) know"]
    ).first_in(t),
    "text.tfidf.Frequencies.add": _frequencies,
    "text.tfidf.Frequencies.similarity": lambda t: _of_known_text().similarity([t, t]),
    "guardrails.leakage.score_leakage": lambda t: score_leakage(
        t, [t, "a " + t], system_prompt=t, internal_ids=["c1"]
    ),
    "guardrails.injection.weigh": lambda t: weigh(t, (), 0.0, 0.9),
    "guardrails.facts.TextFacts.has": lambda t: TextFacts(t).has("password", "secret"),
    "guardrails.facts.TextFacts.matches": lambda t: [
        *TextFacts(t).matches(re.compile("[a-z]{1,4}"), "a", "p")
    ],
    "guardrails.facts.TextFacts.places": lambda t: [*TextFacts(t).places("a", "key", " ")],
    "guardrails.linear.Featurizer.features": lambda t: Featurizer().features(_words(t), {}),
    "guardrails.linear.LinearModel.probability": LinearModel({}, 0.0).probability,
    "guardrails.patterns.InjectionRule.is_excused": lambda t: [
        rule.is_excused(t, len(t) // 2) for rule in _RULES
    ],
    "guardrails.patterns.InjectionRule.is_about_a_thing": lambda t: [
        rule.is_about_a_thing(t, len(t) // 2) for rule in _RULES
    ],
}
"""Functions whose arguments no signature tells."""

NO_TEXT = re.compile(
    r"ragmetrics\.(?:catalogue|stats|judged|case_scores|safety|retrieval)\b"
    r"|ragmetrics\.pipeline\.(?:ResponseTotals|is_largest|run_budgets|stage_budgets)"
    r"|ragmetrics\.(?:claims\.has_threshold|text\.language\.is_covered|text\.number_scan\.value_key"
    r"|matching\.(?:scope_miss|kind_of|is_within))"
    r"|ragmetrics\.groundedness\.share|guardrails\.pii\.luhn_valid|guardrails\.linear\.LinearModel\.(?:to|from)_json"
    r"|guardrails\.fitting\.fit$"
)
"""They take names (of metrics, kinds, paths, verdicts) or figures."""


def _public(package: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public functions and methods of a package that take strings or texts taken apart."""
    folder = importlib.import_module(package).__path__
    for info in pkgutil.walk_packages(folder, f"{package}."):
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            if name.startswith("_") or getattr(value, "__module__", "") != info.name:
                continue
            if inspect.isclass(value):
                for method, function in inspect.getmembers(value, inspect.isroutine):
                    if not method.startswith("_") and _reads_text(function):
                        yield f"{info.name}.{name}.{method}", function
            elif callable(value) and _reads_text(value):
                yield f"{info.name}.{name}", value


def _reads_text(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(
        p.name == "text" or re.search(r"\b(?:str|Passage|PreparedChunk|Fact)\b", str(p.annotation))
        for p in parameters
    )


def _call(name: str, function: Callable[..., Any]) -> Callable[[str], Any]:
    """The function with one argument, a text."""
    short = name.removeprefix("ragmetrics.")
    if short in CALLS:
        return CALLS[short]
    needed = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
    ]
    missing = [str(p) for p in needed if str(p.annotation) not in BUILDERS]
    assert not missing, f"{name} needs a row in CALLS or NO_TEXT: {missing}"

    def run(text: str) -> Any:
        given = {p.name: BUILDERS[str(p.annotation)](text) for p in needed}
        return function(**given)

    return run


FUNCTIONS = {
    name: function
    for package in ("ragmetrics", "guardrails")
    for name, function in _public(package)
    if not NO_TEXT.match(name)
}


def _seconds(run: Callable[[str], Any], text: str) -> float:
    start = process_time()
    result = run(text)
    if isinstance(result, Iterator):
        for _ in result:
            pass
    return process_time() - start


def _repeated(pattern: str) -> Callable[[int], str]:
    return lambda size: (pattern * size)[:size]


def _is_steep(run: Callable[[str], Any], text: Callable[[int], str]) -> bool:
    """Whether a text that is four times as long costs far more than four times as much; asked
    several times, since other work on the machine can stretch any measure. Each text is another
    one, since functions remember what they have read."""

    def cost(size: int, attempt: int) -> float:
        return _seconds(run, text(size - attempt))

    for attempt in range(TRIES):
        longest = cost(4 * SIZE, attempt)
        if longest < SURELY_LINEAR:
            return False
        middle, shortest = cost(2 * SIZE, attempt), cost(SIZE, attempt)
        if middle < STEEP * shortest or longest < STEEP * middle:
            return False
    return True


def _steep_patterns(name: str, patterns: Sequence[str]) -> list[str]:
    run = _call(name, FUNCTIONS[name])
    run("Warm up: 1 text, which loads what is loaded once.")
    gc.disable()
    try:
        return [pattern for pattern in patterns if _is_steep(run, _repeated(pattern))]
    finally:
        gc.enable()


@each_row(("place", "name"), enumerate(FUNCTIONS))
def test_a_text_costs_in_proportion_to_its_length(place: int, name: str) -> None:
    """Every function and every pattern; which of them meet goes round."""
    assert _steep_patterns(name, PATTERNS[place % 3 :: 3]) == []


@pytest.mark.thorough
@each_row("name", FUNCTIONS)
def test_each_pattern_with_each_function(name: str) -> None:
    assert _steep_patterns(name, PATTERNS) == []


@each_row(("expression", "steep"), [(r"\s*?x", True), (r"(?<!\s)\s*?x", False)])
def test_the_measure_tells_a_square_from_a_line(expression: str, steep: bool) -> None:
    compiled = re.compile(expression)
    # Other work on the machine can hide a square, so it gets ten chances; it cannot make one.
    seen = (_is_steep(lambda text: compiled.sub("", text), _repeated("\n")) for _ in range(10))
    assert any(seen) is steep
    assert len(set(PATTERNS)) >= 60
