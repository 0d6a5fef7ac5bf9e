"""validate_metrics.py and the model of claim support: by hand, by scikit-learn and SciPy."""

from __future__ import annotations

import gzip
import json
import math
import os
import runpy
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from research import blind_spots, documents, labelled_sets, languages, metrics, support_fit
from research.metrics import Resampling
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from tests.processes import call_script
from tests.rows import each_row

from ragmetrics import support_model
from ragmetrics.stats import agreement
from ragmetrics.support import FEATURES
from records.errors import StorageError
from validation import human
from validation.human import LabelledClaim

START = documents.start("agreement")
DATA = os.environ.get("RAG_EVAL_DATA")
CONTEXT = "Plan B costs 20 EUR a month. It includes phone support."
ROWS: list[dict[str, Any]] = [
    {"claim": "Plan B costs 20 EUR a month.", "contexts": [CONTEXT], "supported": 1, "group": "a"},
    {
        "claim": "Plan B includes phone support.",
        "contexts": [CONTEXT],
        "supported": 1,
        "group": "b",
    },
    {"claim": "Plan B costs 25 EUR a month.", "contexts": [CONTEXT], "supported": 0, "group": "a"},
    {"claim": "The moon is green cheese.", "contexts": [CONTEXT], "supported": 0, "group": "b"},
]


def run(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return call_script("research.validate_metrics", *args, cwd=None, **env)


def jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    if path.suffix == ".gz":
        path.parent.mkdir(parents=True)
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


def test_own_labels_as_json(tmp_path: Path) -> None:
    # Scores: 1, 1, 0 (25 vetoes), 0: supported rows above the others, all four verdicts right.
    done = run(
        "--labels-file", str(jsonl(tmp_path / "mine.jsonl", ROWS)), "--json", "--resamples", "50"
    )
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)["support"]["own"]
    assert (row["n"], row["unsupported"], row["groups"]) == (4, 2, 2)
    assert row["auroc"] == row["balanced_accuracy"] == 1.0
    assert row["auroc_ci95"] == [1.0, 1.0]
    assert (row["number_flags"], row["number_flag_precision"]) == (1, 1.0)
    assert row["too_few"] is True


def test_the_table_is_printed_and_written_between_the_markers(tmp_path: Path) -> None:
    labels = str(jsonl(tmp_path / "mine.jsonl", ROWS))
    page = tmp_path / "page.md"
    page.write_text(f"before\n{START}\nold\n{documents.END}\nafter\n", encoding="utf-8")
    done = run("--labels-file", labels, "--output", str(page), "--resamples", "50")
    assert done.returncode == 0, done.stderr
    written = page.read_text(encoding="utf-8")
    assert written.startswith(f"before\n{START}\nSupport scorer")
    assert written.endswith(f"{documents.END}\nafter\n")
    assert "old" not in written
    assert "| mine.jsonl (too few rows) | 4 | 2 | 1.000 (1.000-1.000) |" in done.stdout
    again = run("--labels-file", labels, "--output", str(page), "--resamples", "50")
    assert again.returncode == 0
    assert page.read_text(encoding="utf-8") == written  # the same bytes


def test_a_page_without_markers_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("mine\n", encoding="utf-8")
    done = run("--labels-file", str(jsonl(tmp_path / "mine.jsonl", ROWS)), "--output", str(page))
    assert done.returncode == 2
    assert "add them where the table belongs" in done.stderr
    assert page.read_text(encoding="utf-8") == "mine\n"
    page = tmp_path / "new.md"
    labels = str(jsonl(tmp_path / "mine.jsonl", ROWS))
    assert run("--labels-file", labels, "--output", str(page)).returncode == 0
    assert page.read_text(encoding="utf-8").startswith(START)


@each_row(
    ("args", "message"),
    [
        ((), "Name what to check"),
        (("--data", "{empty}"), "holds none of the known sets"),
        (("--data", "{empty}/nowhere"), "does not exist"),
    ],
)
def test_bad_usage_ends_with_2(tmp_path: Path, args: tuple[str, ...], message: str) -> None:
    done = run(*(arg.format(empty=tmp_path) for arg in args))
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_every_problem_of_a_label_file_is_told_at_once(tmp_path: Path) -> None:
    bad = [
        {"claim": " ", "contexts": "text", "supported": True, "group": 3},
        ROWS[0],
        {"claim": "Plan B.", "contexts": ["x"], "supported": 2},
    ]
    path = jsonl(tmp_path / "bad.jsonl", bad)
    with pytest.raises(StorageError) as caught:
        human.read_own(path)
    fields = [(problem.line, problem.field) for problem in caught.value.problems]
    assert fields == [
        (1, "claim"), (1, "contexts"), (1, "supported"), (1, "group"), (3, "supported"),
    ]  # fmt: skip
    path.write_text("not json\n", encoding="utf-8")
    done = run("--labels-file", str(path))
    assert done.returncode == 2
    assert f"{path}:1: is not JSON" in done.stderr
    path.write_text("\n", encoding="utf-8")
    with pytest.raises(StorageError, match="has no labels"):
        human.read_own(path)


def test_own_labels_default_to_a_group_a_line(tmp_path: Path) -> None:
    rows = [{key: value for key, value in row.items() if key != "group"} for row in ROWS]
    found = human.read_own(jsonl(tmp_path / "mine.jsonl", rows))
    assert [row.group for row in found] == ["line 1", "line 2", "line 3", "line 4"]


def test_ragtruth_labels_our_claims_by_the_spans_that_people_marked(tmp_path: Path) -> None:
    answer = "Plan B costs 20 EUR. It renews every year. Ask me anything?"
    row = {
        "group": "1", "subset": "qa_test", "question": "Q?", "contexts": [CONTEXT],
        "answer": answer,
        "spans": [{"start": answer.index("renews"), "end": answer.index(" year")}],
    }  # fmt: skip
    other = row | {"subset": "summary"}
    jsonl(tmp_path / "ragtruth" / "data.jsonl.gz", [row, other])
    found = list(human._ragtruth(tmp_path, "qa"))
    assert [(claim.claim, claim.supported) for claim in found] == [
        ("Plan B costs 20 EUR.", 1),
        ("It renews every year.", 0),
    ]


def test_a_folder_with_one_set_names_the_absent_ones(tmp_path: Path) -> None:
    rows = [
        {"group": str(n), "answer": answer, "abstained": label}
        for n, (answer, label) in enumerate(
            [("I don't know.", 1), ("Plan B costs 20 EUR.", 0), ("Ask the desk.", 1)]
        )
    ]
    jsonl(tmp_path / "delucionqa_idk" / "data.jsonl.gz", rows)
    done = run("--json", "--resamples", "20", RAG_EVAL_DATA=str(tmp_path))
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    # Found 1 of 2, nothing wrong: precision 1, recall 1/2, F1 = 2 * 1 / (1 + 2).
    row = report["abstention"]["delucionqa"]
    assert (row["precision"], row["recall"], row["f1"]) == (1.0, 0.5, 2 / 3)
    assert "RAGTruth QA" in report["absent"]
    assert report["mean"]["auroc"] is None


def test_the_naive_rule_is_measured_on_the_same_rows() -> None:
    # Vectors: claims 0 and 1 lie on the context, 2 and 3 at right angles: cosines 1, 1, 0, 0.
    rows = [
        LabelledClaim(str(row["claim"]), (CONTEXT,), int(row["supported"] == 1), str(row["group"]))
        for row in ROWS
    ]
    good = {CONTEXT, rows[0].claim, rows[1].claim}

    def encode(texts: Any) -> Any:
        assert len(set(texts)) == len(texts)  # nothing is embedded twice
        return np.array([[1.0, 0.0] if text in good else [0.0, 1.0] for text in texts])

    found = metrics.measure_support(rows, Resampling(10), encode)["naive"]
    assert (found["n"], found["auroc"], found["balanced_accuracy"]) == (4, 1.0, 1.0)


SCORED = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 5)), min_size=2, max_size=30)


@given(SCORED)
def test_auroc_and_balanced_accuracy_equal_scikit_learns(rows: list[tuple[int, int]]) -> None:
    labels, scores = [label for label, _ in rows], [score for _, score in rows]
    if len(set(labels)) < 2:
        assert agreement.auroc(labels, scores) is None
        assert agreement.balanced_accuracy(labels, [True] * len(rows)) is None
        return
    assert agreement.auroc(labels, scores) == pytest.approx(roc_auc_score(labels, scores))
    verdicts = [score > 2 for score in scores]
    expected = balanced_accuracy_score(labels, verdicts)
    assert agreement.balanced_accuracy(labels, verdicts) == pytest.approx(expected)
    weights = np.arange(1, len(rows) + 1, dtype=float)
    weighted = roc_auc_score(labels, scores, sample_weight=weights)
    assert agreement.auroc(labels, scores, weights) == pytest.approx(weighted)


@given(SCORED)
def test_correlations_equal_scipys(rows: list[tuple[int, int]]) -> None:
    one, other = [float(a) for a, _ in rows], [float(b) for _, b in rows]
    if len(set(one)) < 2 or len(set(other)) < 2:
        assert agreement.pearson(one, other) is None
        assert agreement.spearman(one, other) is None
        return
    assert agreement.pearson(one, other) == pytest.approx(pearsonr(one, other)[0])
    assert agreement.spearman(one, other) == pytest.approx(spearmanr(one, other)[0])
    twice = np.full(len(one), 2.0)
    assert agreement.spearman(one, other, twice) == pytest.approx(spearmanr(one * 2, other * 2)[0])


def test_precision_recall_f1() -> None:
    # Flagged 3, of them right 2; wanted 4: 2/3, 2/4, 4/7.
    labels, verdicts = [1, 1, 1, 1, 0, 0], [True, True, False, False, True, False]
    assert metrics.precision_recall_f1(labels, verdicts) == (2 / 3, 2 / 4, 4 / 7)
    assert metrics.precision_recall_f1([0], [False]) == (None, None, None)
    # Two groups, each of one kind: a draw holds none, some or all of the second.
    rng = np.random.default_rng(0)
    share = agreement.interval(["a"] * 3 + ["b"], lambda w: float(w[3] / w.sum()), rng, 200)
    assert share == (0.0, 1.0)
    assert agreement.interval(["a"] * 4, lambda w: 1.0, rng) is None
    assert agreement.interval(["a", "b"], lambda w: None, rng) is None


def test_every_known_set_has_its_own_key() -> None:
    keys = [one.key for one in human.SUPPORT] + [one.key for one in labelled_sets.RATINGS]
    keys += [one.key for one in labelled_sets.PAIRS] + [one.key for one in labelled_sets.ABSTENTION]
    assert len(set(keys)) == len(keys)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.skipif(DATA is None, reason="RAG_EVAL_DATA names no folder of human-labelled sets")
def test_the_model_that_ships_is_refitted_and_agrees_with_people(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Both scripts read the same sets, which takes most of their time: each is read once here.
    monkeypatch.setattr(support_fit, "read_sets", cache(support_fit.read_sets))
    measured: dict[Any, Any] = {}
    measure = languages.measure

    def measured_once(articles: Any, language: str, score: Any = languages.by_words) -> Any:
        if (language, score) not in measured:
            measured[language, score] = measure(articles, language, score)
        return measured[language, score]

    monkeypatch.setattr(languages, "measure", measured_once)
    output = tmp_path / "model.py"
    done = call_script("research.train_support", "--data", str(DATA), "--output", str(output))
    assert done.returncode == 0, done.stderr
    assert output.read_text("utf-8") == Path(support_model.__file__).read_text("utf-8")
    done = run("--json", "--resamples", "20", "-q", RAG_EVAL_DATA=str(DATA))
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    found = report["support"]
    assert report["mean"]["left_out"]["auroc"] >= 0.78
    assert report["mean"]["left_out"]["balanced_accuracy"] >= 0.70
    least = {"balanced_accuracy_others": 0.90, "balanced_accuracy_without": 0.85}
    for language, row in report["languages"].items():
        for name, value in least.items():
            assert row.get(name, 1.0) >= value, (language, name)
    least = {"ragtruth_qa": 0.74, "attributionbench": 0.735, "factscore": 0.78}
    for name, value in least.items():
        assert found[name]["balanced_accuracy"] >= value, name
    flags = {"ragtruth_qa": 0.60, "ragtruth_summary": 0.90, "attributionbench": 0.86}
    for name, value in flags.items():
        assert found[name]["number_flag_precision"] >= value, name
    assert report["ratings"]["mtrag_models"]["spearman_mean_claim_support"] >= 0.75
    assert report["pairs"]["ragchecker_pairs"]["pearson_answer_overlap"] >= 0.60
    f1 = {"delucionqa": 0.88, "mtrag_un": 0.90, "xstest": 0.83}
    for name, value in f1.items():
        assert report["abstention"][name]["f1"] >= value, name


PAGE = "The pool opens at nine. Lockers cost two euros. Dogs are not allowed in the water."
GOOD = ("The pool opens at nine.", "Lockers cost two euros.", "Dogs are not allowed.")
BAD = ("The pool has a Finnish sauna.", "Lockers cost fifty euros.", "Dogs love the fountain.")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two families of labelled claims, one language of parallel text, a book in two languages."""
    claims = [(text, 1) for text in GOOD] + [(text, 0) for text in BAD]
    rows = [
        {"group": text, "question": "", "contexts": [PAGE], "claim": text, "supported": label}
        for text, label in claims
    ]
    jsonl(tmp_path / "attributionbench" / "data.jsonl.gz", rows)
    replies = [{**row, "answer": f"Well, {row['claim']}"} for row in rows]
    jsonl(tmp_path / "begin_wow" / "data.jsonl.gz", replies)
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
    jsonl(tmp_path / "xquad" / "data.jsonl.gz", paragraphs)
    blocks = [
        {"group": "a.md", "en": english, "fr": french}
        for english, french in (
            ("The compiler checks every type of the program.", "Le compilateur vérifie les types."),
            ("Every type of the program has a certain size.", "Un type du programme a une taille."),
        )
    ]
    blocks = [{**row, "fr": row["fr"] + " Il est rapide et utile."} for row in blocks]
    jsonl(tmp_path / "vault_rust_book_fr" / "parallel.jsonl.gz", blocks)
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
    jsonl(data / "ragtruth" / "data.jsonl.gz", rows)
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
