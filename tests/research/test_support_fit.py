"""The model of claim support and the thresholds by language, fitted on tiny sets."""

from __future__ import annotations

import gzip
import json
import math
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from research import blind_spots, languages, support_fit
from research.metrics import Resampling
from tests.processes import call_script
from tests.rows import each_row

from ragmetrics import support_model
from ragmetrics.support import FEATURES

PAGE = "The pool opens at nine. Lockers cost two euros. Dogs are not allowed in the water."
GOOD = ("The pool opens at nine.", "Lockers cost two euros.", "Dogs are not allowed.")
BAD = ("The pool has a Finnish sauna.", "Lockers cost fifty euros.", "Dogs love the fountain.")


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two families of labelled claims, one language of parallel text, a book in two languages."""
    claims = [(text, 1) for text in GOOD] + [(text, 0) for text in BAD]
    rows = [
        {"group": text, "question": "", "contexts": [PAGE], "claim": text, "supported": label}
        for text, label in claims
    ]
    write(tmp_path / "attributionbench" / "data.jsonl.gz", rows)
    replies = [{**row, "answer": f"Well, {row['claim']}"} for row in rows]
    write(tmp_path / "begin_wow" / "data.jsonl.gz", replies)
    paragraphs = [
        {
            "lang": "de",
            "article": article,
            "text": f"{city} liegt an der {river}. Der Turm der Stadt hat {floors} Stockwerke.",
            "questions": [{"question": f"An welchem Fluss liegt {city}?", "answers": [river]}],
        }
        for article in (0, 1)
        for city, river, floors in (("Ulm", "Donau", 9), ("Trier", "Mosel", 7))
    ]
    write(tmp_path / "xquad" / "data.jsonl.gz", paragraphs)
    blocks = [
        {"group": "a.md", "en": english, "fr": french}
        for english, french in (
            ("The compiler checks every type of the program.", "Le compilateur vérifie les types."),
            ("Every type of the program has a certain size.", "Un type du programme a une taille."),
        )
    ]
    blocks = [{**row, "fr": row["fr"] + " Il est rapide et utile."} for row in blocks]
    write(tmp_path / "vault_rust_book_fr" / "parallel.jsonl.gz", blocks)
    return tmp_path


def test_the_coefficients_are_where_the_gradient_vanishes(data: Path) -> None:
    # Penalised weighted log-loss: C * sum w (p - y) z + beta = 0 for standardised features z, and
    # sum w (p - y) = 0 for the intercept, which is not penalised.
    sets = support_fit.read_sets(data)
    assert [item.key for item in sets] == ["attributionbench", "begin_wow"]
    coefficients, intercept = support_fit.fit(sets)
    assert list(coefficients) == list(FEATURES)
    values = np.vstack([item.values[~item.vetoed] for item in sets])
    labels = np.concatenate([item.labels[~item.vetoed] for item in sets])
    # "fifty" is vetoed in both sets, so a set has three good claims and two bad ones: each side
    # weighs 1/2, scaled so that the ten rows weigh ten in all.
    assert labels.tolist() == [1, 1, 1, 0, 0] * 2
    weights = np.where(labels == 1, 1 / 6, 1 / 4) * 10 / 2
    spread = values.std(axis=0) + 1e-9
    slopes = np.array([coefficients[name] for name in FEATURES])
    chances = 1 / (1 + np.exp(-(values @ slopes + intercept)))
    residuals = weights * (chances - labels)
    z = (values - values.mean(axis=0)) / spread
    assert residuals.sum() == pytest.approx(0, abs=1e-3)
    assert 0.006 * (residuals @ z) + slopes * spread == pytest.approx(
        np.zeros(len(FEATURES)), abs=1e-3
    )


def test_a_left_out_family_is_ranked_by_the_others_model(data: Path) -> None:
    sets = support_fit.read_sets(data)
    ranked = support_fit.left_out(sets)
    coefficients, intercept = support_fit.fit([sets[1]])
    item = sets[0]
    for row, vetoed, chance in zip(item.values, item.vetoed, ranked[item.key], strict=True):
        total = sum(coefficients[name] * value for name, value in zip(FEATURES, row, strict=True))
        by_hand = 0.0 if vetoed else 1 / (1 + math.exp(-(total + intercept)))
        assert chance == pytest.approx(by_hand)
    assert support_fit.left_out_figures(data)["begin_wow"]["auroc"] == 1.0


def test_whole_answers_are_flagged_by_their_weakest_claim(data: Path) -> None:
    # The others' model denies the sauna and the fountain and accepts the three good claims;
    # "fifty" is vetoed. An abstention is never flagged, nor is an answer without a claim.
    good, bad = " ".join(GOOD), BAD[1]
    refusal = "I'm sorry, I could not find an answer to this question."
    answers = [(good, 0), (f"{good} {bad}", 1), (bad, 0), (GOOD[0], 1), (refusal, 0), ("Hi!", 0)]
    rows = [
        {"group": f"g{at}", "subset": "qa_test", "question": "", "contexts": [PAGE],
         "answer": answer, "hallucinated": label, "spans": []}
        for at, (answer, label) in enumerate(answers)
    ]  # fmt: skip
    assert support_fit.ragtruth_answers(data, Resampling(10)) == {}
    write(data / "ragtruth" / "data.jsonl.gz", rows)
    found = support_fit.ragtruth_answers(data, Resampling(10))
    assert (found["n"], found["hallucinated"]) == (6, 2)
    # Flagged are the second and the third, one of them rightly; one of two is found.
    for name in ("surely", "any"):
        figures = found[name]
        assert (figures["precision"], figures["recall"], figures["f1"]) == (0.5, 0.5, 0.5)


def test_one_family_cannot_be_left_out(tmp_path: Path) -> None:
    assert support_fit.left_out_figures(tmp_path) == {}


def test_the_script_writes_a_module_that_the_metrics_can_read(data: Path, tmp_path: Path) -> None:
    output = tmp_path / "model.py"
    done = call_script("research.train_support", "--data", str(data), "--output", str(output))
    assert done.returncode == 0, done.stderr
    module = runpy.run_path(str(output))
    coefficients, intercept = support_fit.fit(support_fit.read_sets(data))
    assert module["COEFFICIENTS"] == coefficients
    assert module["INTERCEPT"] == intercept
    assert sorted(module["THRESHOLDS"]) == ["de", "fr"]
    first = output.read_bytes()
    assert (
        call_script(
            "research.train_support", "--data", str(data), "--output", str(output)
        ).returncode
        == 0
    )
    assert output.read_bytes() == first
    (data / "begin_wow" / "data.jsonl.gz").unlink()
    (data / "begin_wow").rmdir()
    done = call_script("research.train_support", "--data", str(data), "--output", str(output))
    assert done.returncode == 2
    assert "fewer than two families" in done.stderr


def test_the_model_that_ships_has_a_number_for_each_feature() -> None:
    assert sorted(support_model.COEFFICIENTS) == sorted(FEATURES)
    # More words held is never worse; names and numbers of elsewhere are never better.
    better = ("weakest_share", "one_sentence_share", "anywhere_share")
    worse = ("unknown_names", "names_outside_window", "numbers_outside_window")
    assert all(support_model.COEFFICIENTS[name] > 0 for name in better)
    assert all(support_model.COEFFICIENTS[name] < 0 for name in worse)


def test_claims_of_parallel_text_against_three_kinds_of_context(data: Path) -> None:
    # Content words of the claim "An welchem Fluss liegt Ulm? Donau": its own paragraph holds
    # liegt, Ulm, Donau; the other one liegt alone; its own without the answer's sentence none.
    articles = languages.read_articles(data)["de"]
    even, odd = languages.measure(articles, "de")
    assert (len(even.own), len(even.others), len(even.without)) == (2, 2, 2)
    assert even.own == odd.own
    assert min(even.own) > max(even.others) > max(even.without) == 0.0
    threshold = even.best_threshold()
    assert max(even.others) < threshold <= min(even.own)
    assert even.balanced(even.others, threshold) == even.balanced(even.without, threshold) == 1.0


def test_refusals_and_french_claims_of_our_own_are_whole(data: Path) -> None:
    figures = languages.measure_refusals()
    assert set(figures) == {"de", "es", "fr", "hi", "it", "ja", "nl", "pt", "zh"}
    assert {row["refusal_answers"] for row in figures.values()} == {60}
    assert all(row["refusal_f1"] >= 0.84 for row in figures.values())
    own = languages.measure_french_claims(data)
    # No page of the tiny book is one of theirs: nothing is supported, half of that is right.
    assert (own["own_claims"], own["own_balanced_accuracy"]) == (60, 0.5)


@each_row("spot", blind_spots.BLIND_SPOTS)
def test_each_blind_spot_is_one(spot: blind_spots.BlindSpot) -> None:
    assert spot.verdict() != spot.right
