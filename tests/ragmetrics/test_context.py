"""Context quality: redundancy, facts, diversity; derived by hand, TF-IDF against scikit-learn."""

from __future__ import annotations

from itertools import product
from time import process_time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from tests.rows import each_row

from ragmetrics import context
from ragmetrics.context import ngram_overlap, score_case, shared_end
from ragmetrics.facts import _occurrences, find_facts
from ragmetrics.text.tfidf import Frequencies, tokens
from records.cases import GoldFact
from records.results import RetrievedChunk

TEXTS = [
    "Plan B costs 20 EUR a month.",
    "Plan B costs 20 EUR a year for students.",
    "The office opens at nine.",
]


def chunks(*texts: str) -> list[RetrievedChunk]:
    return [RetrievedChunk(chunk_id=f"c{n}", text=text) for n, text in enumerate(texts)]


def frequencies(*texts: str) -> Frequencies:
    counted = Frequencies()
    counted.add(texts)
    return counted


def test_ngram_overlap() -> None:
    # Trigrams: 5 and 7; shared: plan b costs, b costs 20, costs 20 eur, 20 eur a: 4 of min 5.
    first, second = tokens(TEXTS[0]), tokens(TEXTS[1])
    assert ngram_overlap(first, second) == 4 / 5
    assert ngram_overlap(first, first) == 1.0
    assert ngram_overlap(first, tokens(TEXTS[2])) == 0.0
    # Fewer than three words: sets of words, {plan, b} in 7 words.
    assert ngram_overlap(["plan", "b"], first) == 1.0
    assert ngram_overlap([], first) == 0.0
    assert ngram_overlap([], []) == 0.0


def test_redundancy_of_three_chunks() -> None:
    # Pairs: 4/5, 0, 0: mean 4/15. Chunk 2 repeats chunk 1 at 0.8: 1 of 3 chunks.
    found = score_case(chunks(*TEXTS), frequencies=frequencies(*TEXTS))
    assert found.values["redundancy_ngram"] == pytest.approx(4 / 15)
    assert found.values["redundant_chunks_ngram"] == 1 / 3
    assert found.evidence["most_alike"] == {"chunks": ["c0", "c1"], "overlap": 0.8}
    found = score_case(chunks(*TEXTS))
    assert found.values["redundancy_tfidf"] is None
    assert found.reasons["redundancy_tfidf"] == "no document frequencies of the run"
    assert found.values["redundancy_ngram"] is not None


def test_tfidf_equals_scikit_learn() -> None:
    run = [*TEXTS, "Students pay 10 EUR.", "Plan C is free.", "计划每个月花费二十欧元。"]
    reference = TfidfVectorizer(analyzer=tokens, sublinear_tf=True).fit(run)
    rows = reference.transform(TEXTS)
    ours = frequencies(*run, *run).similarity(TEXTS)  # a chunk retrieved twice counts once
    np.testing.assert_allclose(ours, (rows @ rows.T).toarray(), atol=1e-12)


def test_passages_that_share_no_word_cost_little() -> None:
    """200 texts of 100 words, none shared: 20,000 words have a weight above 0, 4 million do not.

    Each cosine looks at the words of one text. Over all words of all texts it took 65 times the
    CPU of counting them, now 5 times.
    """
    texts = [" ".join(f"w{text}x{word}" for word in range(100)) for text in range(200)]
    counted = frequencies(texts[0])
    start = process_time()
    counted.add(texts)
    counting = process_time() - start
    cosines = counted.similarity(texts)
    assert process_time() - start < 25 * counting
    np.testing.assert_allclose(cosines, np.eye(200), atol=0.05)  # a few share a place by chance


def test_exact_duplicates_are_exactly_one() -> None:
    found = score_case(chunks("Go!", "Go!"), frequencies=frequencies("Go!"))  # one word each
    assert found.values["redundancy_tfidf"] == found.values["redundancy_ngram"] == 1.0
    twice = score_case(chunks(TEXTS[0], TEXTS[0]), frequencies=frequencies(TEXTS[0]))
    assert twice.values["redundancy_tfidf"] == twice.values["redundancy_ngram"] == 1.0
    assert twice.values["redundant_chunks_tfidf"] == 1 / 2


def test_the_overlap_that_a_chunker_adds_is_told_apart() -> None:
    first = ["a", "b", "c", "d", "e"]
    second = ["d", "e", "f", "g", "h"]
    assert shared_end(first, second) == 2
    assert shared_end(second, first) == 0
    assert shared_end([], first) == 0
    long_first, long_second = ["x", *"abcde"], [*"abcde", "y", "z"]
    # Trigrams abc bcd cde are shared by design: 3 of min(4, 5); after the cut nothing is.
    assert ngram_overlap(long_first, long_second) == 3 / 4
    assert context.without_shared_ends([long_first, long_second]) == 0.0
    assert context.without_shared_ends([first, first]) == 1.0


@each_row("counted", [None, frequencies("...", "!!!")])
def test_chunks_without_a_word_have_no_redundancy(counted: Frequencies | None) -> None:
    for texts in (["...", "!!!"], ["...", "..."], ["", "!!!"], ["!!!"]):
        found = score_case(chunks(*texts), frequencies=counted, query_type="faq")
        for name in (*context.METRICS[:4], "mattr", "unique_token_ratio", "diversity_ok"):
            assert found.values[name] is None, texts
            assert found.reasons[name] == "no words", texts
        assert found.evidence == {}


def test_chunks_without_a_word_count_in_no_pair_and_no_share() -> None:
    # Left over are TEXTS 1 and 2, places 1 and 3: one pair of 4/5, so 1 of 2 repeats the other.
    texts = ["...", TEXTS[0], "...", TEXTS[1], "!!!"]
    found = score_case(chunks(*texts), frequencies=frequencies(*texts))
    assert found.values["redundancy_ngram"] == 4 / 5
    assert found.values["redundant_chunks_ngram"] == 1 / 2
    assert found.evidence["most_alike"] == {"chunks": ["c1", "c3"], "overlap": 0.8}
    same = score_case(chunks("...", TEXTS[0], TEXTS[0]), frequencies=frequencies(*TEXTS))
    assert same.values["redundancy_tfidf"] == 1.0
    assert same.values["redundant_chunks_tfidf"] == 1 / 2


@each_row(
    ("text", "fact", "aliases", "held"),
    [
        ("It gives us a discount.", "United States", ["US"], False),
        ("The US office is shut.", "office in the United States", ["US"], True),  # in capitals
        ("Everyone gets fifteen days of vacation.", "15 days of vacation", [], True),
        ("The plan costs 15% less.", "15 percent", [], True),
        ("See page 15.", "15 days of vacation", ["15"], False),  # digits need a word of the fact
        ("It is 15 for vacation.", "15 days of vacation", ["15"], True),
        ("The art of war.", "car", [], False),  # word boundaries
        ("1,000 members", "1000 members", [], True),
        ("", "plan", [], False),
        ("plan", "", ["!!"], False),
    ],
)
def test_fact_matching(text: str, fact: str, aliases: list[str], held: bool) -> None:
    assert bool(find_facts([text], [GoldFact(fact, aliases)]).holders[0]) is held


def test_mattr_and_the_ratio_of_distinct_words() -> None:
    # Windows of 3 over a b | a c c: aba 2, bac 3, acc 2: (2 + 3 + 2) / 9.
    assert context.mattr([["a", "b"], ["a", "c", "c"]], window=3) == pytest.approx(7 / 9)
    # Fewer words than the window: distinct / words, as the plain ratio.
    assert context.mattr([["a", "b", "a"]], window=3) == context.mattr([["a", "b", "a"]]) == 2 / 3
    assert context.mattr([["a"] * 5], window=2) == 1 / 2
    assert context.mattr([[], []]) is None
    # Plan, b, costs, money are distinct of 6 words.
    found = score_case(chunks("Plan B costs", "plan b money"))
    assert found.values["mattr"] == found.values["unique_token_ratio"] == 4 / 6
    text = [f"w{n % 150}" for n in range(150)]
    assert context.mattr([text]) == context.mattr([text * 10]) == 1.0, "whatever its length"
    assert context.unique_token_ratio([text * 10]) == 1 / 10


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=60), st.integers(1, 12))
def test_mattr_is_the_mean_over_all_windows(text: list[str], window: int) -> None:
    size = min(window, len(text))
    windows = [text[start : start + size] for start in range(len(text) - size + 1)]
    expected = sum(len(set(part)) / size for part in windows) / len(windows)
    assert context.mattr([text], window) == pytest.approx(expected)


def test_every_place_is_found_also_where_wordings_overlap() -> None:
    """Independent: compares the slice at each place. All phrases of up to six words that begin with
    a, among all texts of ten; of two words, since more only make borders rarer."""
    texts = list(product("ab", repeat=10))
    for length in range(1, 7):
        for phrase in product("a", *["ab"] * (length - 1)):
            for held in texts:
                places = [at for at in range(10) if held[at : at + length] == phrase]
                assert _occurrences(phrase, held) == places, (phrase, held)
