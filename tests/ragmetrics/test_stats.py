"""Wilson's interval by hand and by scipy, and the generators of draws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from ragmetrics.stats import means


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_equals_scipy(pair: tuple[int, int]) -> None:
    successes, n = pair
    expected = binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert means.wilson(successes, n) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_wilson_needs_a_value() -> None:
    with pytest.raises(ValueError, match="at least one"):
        means.wilson(0, 0)


def test_generators_of_two_metrics_differ_and_repeat() -> None:
    first = means.generator(0, "retrieval/recall@1").random(3).tolist()
    assert first == means.generator(0, "retrieval/recall@1").random(3).tolist()
    assert first != means.generator(0, "retrieval/ndcg@1").random(3).tolist()
