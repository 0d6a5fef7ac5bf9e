"""The option --support-model of the scripts that score claims."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import eval_suite
from records.metrics import load_metrics
from score_groundedness import main
from storage import RetrievedChunk, TestResult

CASES = [{"id": "good"}, {"id": "bad"}]
LEAVE = "Staff get 15 days of paid vacation each year. Vacation accrues monthly."


def result(name: str, answer: str) -> TestResult:
    return TestResult(name, answer=answer, retrieved=[RetrievedChunk("c1", text=LEAVE, rank=1)])


GOOD = result("good", "Staff get 15 days of paid vacation each year [1].")
# No passage says it, and none has a 31.
BAD = result(
    "bad", "The kitchen is painted in a friendly yellow. It opens at 31 in the morning for all."
)


@pytest.fixture(scope="module")
def always_supports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cross-encoder of one tiny layer whose last bias alone decides: "entailment", always."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("nli")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "staff", "kitchen"]
    (folder / "vocab.txt").write_text("\n".join(words))
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=8, num_hidden_layers=1, num_attention_heads=1,
        intermediate_size=8, max_position_embeddings=64, num_labels=3,
        id2label={0: "contradiction", 1: "entailment", 2: "neutral"},
        label2id={"contradiction": 0, "entailment": 1, "neutral": 2},
    )  # fmt: skip
    model = transformers.BertForSequenceClassification(config)
    with torch.no_grad():
        model.classifier.weight.zero_()
        # softmax of (0, log 8, 0) is (0.1, 0.8, 0.1)
        model.classifier.bias.copy_(torch.tensor([0.0, 8.0, 0.0]).clamp(min=1).log())
    model.save_pretrained(folder)
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


def test_a_support_model_decides_about_claims_and_is_recorded(
    finished: Any, always_supports: Path
) -> None:
    finished.write(CASES, [GOOD, BAD])
    by_words = finished.section(main)
    assert by_words["mean"]["claim_support_rate"] == 0.5  # good 1 of 1, bad 0 of 2
    assert by_words["options"]["support_model"] == "word features"
    by_model = finished.section(main, "--support-model", str(always_supports), "--jobs", "1")
    # All claims are supported, but one has a number of no passage: good 1 of 1, bad 1 of 2.
    assert by_model["mean"]["claim_support_rate"] == 0.75
    assert by_model["mean"]["mean_claim_support"] == by_words["mean"]["mean_claim_support"]
    assert by_model["options"]["support_model"].startswith(f"{always_supports.name}@")
    claims = finished.rows("groundedness")["bad"]["evidence"]["claims"]
    strengths = [(claim["supported"], round(claim["strength"], 3)) for claim in claims]
    assert strengths == [(True, 0.8), (False, 0.0)]
    by_one = finished.bytes_of("groundedness")
    finished.section(main, "--support-model", str(always_supports), "--jobs", "2")
    assert finished.bytes_of("groundedness") == by_one


def test_a_support_model_that_cannot_be_used_is_told_in_one_sentence(
    finished: Any, tmp_path: Path, always_supports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished.write(CASES, [GOOD, BAD])

    def refused(folder: Path) -> str:
        done = finished.score(main, "--support-model", str(folder))
        assert done.exit_code == 2, done.output
        assert len(done.stderr.strip().splitlines()) == 1
        return str(done.stderr)

    assert "has no config.json" in refused(tmp_path / "nowhere")
    nameless = tmp_path / "nameless"
    nameless.mkdir()
    for file in always_supports.iterdir():
        (nameless / file.name).write_bytes(file.read_bytes())
    config = json.loads((nameless / "config.json").read_text())
    config["id2label"] = {"0": "a", "1": "b", "2": "c"}
    (nameless / "config.json").write_text(json.dumps(config))
    assert "(architectures 'BertForSequenceClassification', labels a, b, c)" in refused(nameless)
    config["support_form"] = "nli"
    (nameless / "config.json").write_text(json.dumps(config))
    assert "none of its labels (a, b, c) is called entailment" in refused(nameless)
    config["id2label"] = {"0": "contradiction", "1": "entailment", "2": "neutral"}
    (nameless / "config.json").write_text(json.dumps(config))
    (nameless / "model.safetensors").unlink()
    assert "cannot be loaded as a support model" in refused(nameless)
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert "needs torch and transformers" in refused(tmp_path)


def test_a_support_model_reaches_the_section_of_claims(
    suite: Any, write: Any, finished: Any, always_supports: Path
) -> None:
    write()
    before = (finished.run / "metrics.json").exists()
    done = finished.score(eval_suite.main, "--support-model", "no/such/folder")
    assert done.exit_code == 2
    assert "has no config.json" in done.stderr
    assert (finished.run / "metrics.json").exists() == before  # refused before any section
    suite("--sections", "groundedness", "--support-model", str(always_supports))
    header = load_metrics(finished.run / "metrics.json")["sections"]["groundedness"]
    assert header["options"]["support_model"].startswith(f"{always_supports.name}@")
