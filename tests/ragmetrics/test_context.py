"""Context quality: redundancy, facts, diversity; derived by hand, TF-IDF against scikit-learn."""

from __future__ import annotations

from itertools import product
from time import process_time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from tests.rows import each_row

from ragmetrics import context
from ragmetrics.case_scores import CaseScores
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


def test_one_chunk_is_not_redundant_and_none_is_not_applicable() -> None:
    one = score_case(chunks(TEXTS[0]), frequencies=frequencies(TEXTS[0]))
    for name in context.METRICS[:4]:
        assert one.values[name] == 0.0
    none = score_case([], frequencies=frequencies(TEXTS[0]))
    assert all(value is None for value in none.values.values())
    assert set(none.reasons.values()) == {"no contexts"}
    cut = [RetrievedChunk(chunk_id="c0", text="Plan", text_length=400)]
    assert set(score_case(cut).reasons.values()) == {"text was truncated"}
    assert set(score_case([RetrievedChunk(chunk_id="c0")]).reasons.values()) == {"no chunk texts"}


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


def test_facts() -> None:
    texts = [
        "Everyone gets fifteen days of vacation.",
        "Vacation: 15 days.",
        "The US office is shut.",
    ]
    facts = [
        GoldFact("15 days of vacation", ["15 days"]),  # two chunks, number words count
        GoldFact("office in the United States", ["US"]),  # in capitals: one chunk
        GoldFact("free of charge", ["gratis"]),  # none
    ]
    found = find_facts(texts, facts)
    assert found.holders == ((0, 1), (2,), ())
    assert found.coverage == 2 / 3
    assert found.dispersion == (2 + 1) / 2  # over the facts found


@each_row(
    ("text", "fact", "aliases", "held"),
    [
        ("It gives us a discount.", "United States", ["US"], False),
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


def test_no_facts_and_none_found() -> None:
    without = score_case(chunks(*TEXTS))
    assert without.reasons["fact_coverage"] == without.reasons["fact_dispersion"] == "no gold_facts"
    missed = score_case(chunks(*TEXTS), gold_facts=[GoldFact("the moon")])
    assert missed.values["fact_coverage"] == 0.0
    assert missed.reasons["fact_dispersion"] == "no fact found"
    assert missed.evidence["facts"] == [{"fact": "the moon", "chunks": []}]


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


def test_diversity_by_query_type() -> None:
    def score(**more: Any) -> CaseScores:
        return score_case(chunks(TEXTS[0]) * 2, frequencies=frequencies(TEXTS[0]), **more)

    bands = {"faq": (0.0, 1.0), "research": (0.0, 0.5)}
    assert score(query_type="faq", bands=bands).values["diversity_ok"] == 1.0
    assert score(query_type="research", bands=bands).values["diversity_ok"] == 0.0
    assert score(query_type="poem").reasons["diversity_ok"] == "no band for query_type poem"
    assert score().reasons["diversity_ok"] == "no query_type"


TEXT = st.text(st.characters(), max_size=60)


@settings(max_examples=60, deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=4), TEXT)
def test_any_texts_have_defined_scores(texts: list[str], fact: str) -> None:
    counted = frequencies(*texts)
    found = score_case(
        chunks(*texts), frequencies=counted, gold_facts=[GoldFact(fact, [fact])], query_type="faq"
    )
    for name, value in found.values.items():
        if value is None:
            assert found.reasons[name]
        elif name == "fact_dispersion":
            assert 1.0 <= value <= len(texts)
        else:
            assert 0.0 <= value <= 1.0


def test_every_place_is_found_also_where_wordings_overlap() -> None:
    """Independent: compares the slice at each place. All phrases of up to six words that begin with
    a, among all texts of ten; of two words, since more only make borders rarer."""
    texts = list(product("ab", repeat=10))
    for length in range(1, 7):
        for phrase in product("a", *["ab"] * (length - 1)):
            for held in texts:
                places = [at for at in range(10) if held[at : at + length] == phrase]
                assert _occurrences(phrase, held) == places, (phrase, held)
