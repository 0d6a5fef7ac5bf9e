"""Scores from verdicts, against values derived by hand; every empty case."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ragmetrics import judged
from ragmetrics.text.quotes import quoted

S, C, N, Q = "supported", "contradicted", "not_found", "quote_unverified"
P, M = "present", "missing"


@each_row(
    ("verdicts", "points", "share"),
    [
        ([], None, None),  # no claims: undefined, neither 0 nor 1
        ([S], 5.0, 1.0),
        ([S, S, S], 5.0, 1.0),  # perfect is exactly 5, whatever the number of claims
        ([N], 0.0, 0.0),
        ([S, C, N, S], 2.5, 0.5),  # 2 of 4
        ([S, Q], 2.5, 0.5),  # a quote that stands nowhere counts as not supported
        ([S] * 3 + [N] * 4, 5 * 3 / 7, 3 / 7),
    ],
)
def test_groundedness_and_faithfulness_are_the_same_verdicts(
    verdicts: list[str], points: float | None, share: float | None
) -> None:
    assert judged.groundedness(verdicts) == points
    assert judged.share(verdicts, S) == share


@each_row(
    ("verdicts", "addresses", "points"),
    [
        ([], True, None),
        ([P, P], True, 5.0),
        ([P, M], True, 2.5),  # 5 x 1/2
        ([P, P, P, C], True, 2.0),  # 5 x 3/4 = 3.75, a contradicted fact caps at 2
        ([P, C, C, C], True, 1.25),  # 5 x 1/4 is below the cap
        ([P, P], False, 1.0),  # not the question: caps at 1
        ([P, C], False, 1.0),  # both caps: the lower one
        ([M, M], False, 0.0),
        ([P, Q], True, 2.5),  # unverified is not present, and no contradiction
    ],
)
def test_correctness_and_its_caps(
    verdicts: list[str], addresses: bool, points: float | None
) -> None:
    assert judged.correctness(verdicts, addresses) == points


@each_row(
    ("useful", "value"),
    [
        ([], None),
        ([False, False], 0.0),
        ([True, True, True], 1.0),
        ([True, False], 1.0),  # nothing useful behind the first: 1/1
        ([False, True], 0.5),
        ([True, False, True], (1 + 2 / 3) / 2),
        ([False, True, True, False, True], (1 / 2 + 2 / 3 + 3 / 5) / 3),
    ],
)
def test_ranked_precision_is_average_precision(useful: list[bool], value: float | None) -> None:
    assert judged.precision_ranked(useful) == pytest.approx(value, abs=1e-15)


@given(st.lists(st.booleans(), min_size=1, max_size=20))
def test_ranked_precision_against_the_published_formula(useful: list[bool]) -> None:
    """Context precision at K of RAGAS and DeepEval: sum of precision@k x v_k over the useful ones.

    RAGAS adds 1e-10 to the denominator, so its perfect result is not 1; DeepEval gives 0 without a
    useful chunk, as we do.
    """
    precision = [sum(useful[: k + 1]) / (k + 1) for k in range(len(useful))]
    weighted = sum(p * v for p, v in zip(precision, useful, strict=True))
    ours = judged.precision_ranked(useful)
    assert ours == pytest.approx(weighted / (sum(useful) + 1e-10), abs=1e-9)  # RAGAS
    assert ours == pytest.approx(weighted / sum(useful) if any(useful) else 0.0)  # DeepEval


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_f1_beside_its_namesake(tp: int, fp: int, fn: int) -> None:
    """RAGAS: TP / (TP + (FP + FN) / 2) for TP > 0, and 1 for an empty side; ours is 0 there."""
    facts, claims = [P] * tp + [M] * fn, [S] * tp + [N] * fp
    ours = judged.fact_f1(facts, claims)
    if tp and claims:
        assert ours == pytest.approx(tp / (tp + 0.5 * (fp + fn)))
    else:
        assert ours == (None if not facts and not claims else 0.0)


def test_relevancy_correctness_and_credits() -> None:
    assert judged.answer_relevancy([0.9, 0.6, 0.3], False) == 0.6
    assert judged.answer_relevancy([-0.2, -0.1, 0.0], False) == 0.0  # clipped
    assert judged.answer_relevancy([0.9999999, 1.0, 1.0], False) == 1.0
    assert judged.answer_relevancy([0.9], True) == 0.0  # noncommittal
    assert judged.answer_relevancy([], True) == 0.0
    assert judged.answer_relevancy([], False) is None
    assert judged.answer_correctness(0.5, 0.8) == pytest.approx(0.75 * 0.5 + 0.25 * 0.8)
    assert judged.answer_correctness(0.5, 0.8, 0.5) == pytest.approx(0.65)
    assert judged.answer_correctness(0.5, -1.0, 0.5) == 0.25  # a negative cosine is 0
    assert judged.answer_correctness(1.0, 1.0000004) == 1.0
    verdicts = ["support", "partial", "none", "quote_unverified"]
    assert judged.nugget_credits(verdicts, strict=False) == [1.0, 0.5, 0.0, 0.0]
    assert judged.nugget_credits(verdicts, strict=True) == [1.0, 0.0, 0.0, 0.0]


@each_row(
    ("grounded", "right", "useful", "blame"),
    [
        (S, S, True, "right"),
        (S, S, False, "right"),
        (N, S, None, "self_knowledge"),
        (Q, S, True, "self_knowledge"),  # a support without a quote is none
        (N, N, None, "hallucination"),
        (C, C, True, "hallucination"),
        (S, N, False, "noise"),
        (S, N, None, "noise"),
        (S, C, True, "beyond_reference"),
        (S, Q, True, "beyond_reference"),
    ],
)
def test_blame(grounded: str, right: str, useful: bool | None, blame: judged.Blame) -> None:
    assert judged.blame_claim(grounded, right, useful) == blame


def test_claim_and_fact_rates() -> None:
    blames: list[judged.Blame] = ["right", "hallucination", "noise", "noise", "beyond_reference"]
    assert judged.claim_rates(blames) == {
        "claim_hallucination": 0.2,
        "claim_noise": 0.4,
        "claim_noise_relevant": 0.2,
        "claim_self_knowledge": 0.0,
    }
    assert set(judged.claim_rates([]).values()) == {None}
    # four facts: said; in a context but not said; nowhere; said without a context
    rates = judged.fact_rates(
        [P, M, M, P], ["attributed", "attributed", "not_attributed", "not_attributed"]
    )
    # Two facts are in a context, and one of these was said.
    assert rates == {
        "claim_evidence_ignored": 0.25,
        "claim_retriever_miss": 0.5,
        "context_utilisation": 0.5,
    }
    rates = judged.fact_rates([P, M], ["not_attributed"] * 2)
    assert rates["context_utilisation"] is None
    assert set(judged.fact_rates([], []).values()) == {None}


@given(st.integers(0, 2**32 - 1))
def test_rates_equal_the_published_formulas(seed: int) -> None:
    """RAGChecker's matrices (claims x chunks, facts x chunks); a claim quotes a relevant chunk of
    those that bear it where there is one, as its rule for claims that both kinds bear has it."""
    rng = np.random.default_rng(seed)
    claims, facts, chunks = rng.integers(1, 6, 3)
    borne, held = rng.random((claims, chunks)) < 0.4, rng.random((facts, chunks)) < 0.4
    right, stated = rng.random(claims) < 0.5, rng.random(facts) < 0.5
    relevant = held.any(axis=0)
    by_relevant = (borne & relevant).any(axis=1)
    by_irrelevant = (borne & ~relevant).any(axis=1) & ~by_relevant
    blames = [
        judged.blame_claim(
            S if bears.any() else N, S if good else N, bool((bears & relevant).any())
        )
        for bears, good in zip(list(borne), right.tolist(), strict=True)
    ]
    assert judged.claim_rates(blames) == pytest.approx(
        {
            "claim_noise_relevant": (by_relevant & ~right).mean(),
            "claim_noise": (by_irrelevant & ~right).mean(),
            "claim_hallucination": (~borne.any(axis=1) & ~right).mean(),
            "claim_self_knowledge": (~borne.any(axis=1) & right).mean(),
        }
    )
    recalled = np.asarray(held.any(axis=1))
    rates = judged.fact_rates(
        [P if said else M for said in stated],
        ["attributed" if found else "not_attributed" for found in recalled.tolist()],
    )
    assert rates["claim_retriever_miss"] == pytest.approx(1 - recalled.mean())
    if recalled.any():
        assert rates["context_utilisation"] == pytest.approx(
            (recalled & stated).sum() / recalled.sum()
        )
    else:
        assert rates["context_utilisation"] is None


def test_self_agreement_and_flips() -> None:
    opinions = [[S, S, N], [S, N, N], [S, S, N]]
    # pairs: 2/3, 3/3, 2/3 of three items
    assert judged.self_agreement(opinions) == pytest.approx((2 + 3 + 2) / 9)
    assert judged.flips(opinions) == (1, 3)
    assert judged.self_agreement([[S]]) is None
    assert judged.self_agreement([[], []]) is None
    assert judged.flips([[S]]) == (0, 0)
    assert judged.self_agreement([[S, N]] * 4) == 1.0


TEXT = "The fee is 15 euros.  It is paid\nat the “north” desk, before the tour begins."


@each_row(
    ("quote", "found"),
    [
        ("The fee is 15 euros.", True),
        ("the FEE is 15 euros", True),  # case and the full stop
        ('paid at the "north" desk', True),  # line end and quotation marks
        ("The fee … before the tour begins", True),  # a gap: both pieces stand there
        ("The fee ... before the tour ends today", False),
        ("5 euros", False),  # part of another number
        ("15 euros", True),
        ("", False),
        ("the", False),  # no content word: it would stand anywhere
        ("The fee is 16 euros.", False),  # 4 of 5 words
        # 9 of 10 words of one window
        ("It is paid at the north desk before a tour", True),
        ("It was paid at the south desk before a tour", False),  # 7 of 10
        ("tour the before desk north the at paid is It", True),  # words of a window, any order
    ],
)
def test_quotes_are_found_or_not(quote: str, found: bool) -> None:
    assert quoted(quote, TEXT) is found


@given(st.text(max_size=200), st.integers(0, 200), st.integers(0, 200))
def test_a_piece_cut_at_words_is_always_found(text: str, start: int, end: int) -> None:
    words = text.split()
    piece = " ".join(words[min(start, end) % (len(words) + 1) :])
    from ragmetrics.text.words import content_words, fold

    if content_words(fold(piece)) and "…" not in text and "..." not in text:
        assert quoted(piece, text)
