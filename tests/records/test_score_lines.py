"""Score lines leave out what cannot apply, and every reader gives it back as null."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from records.errors import StorageError
from records.run import Run
from records.scores import (
    Reasons,
    encode_evidence,
    encode_head,
    encode_lines,
    encode_scores,
    read_whole_scores,
)

NAMES = ("recall@1", "recall@3", "bpref", "unjudged@1", "unjudged@3")
USUAL = (("bpref", "no judgements"), ("unjudged@*", "no judgements"))
OTHER = (("bpref", "nothing judged irrelevant"),)
LINES: dict[str, tuple[str, tuple[float | None, ...], Reasons]] = {
    "usual": ("scored", (0.0, 1.0, None, None, None), USUAL),
    "judged": ("scored", (0.05, 10.0, None, 1.0, 0.0), OTHER),
    "none": ("not_applicable", (None,) * 5, (("*", "unanswerable"),)),
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    ends = [
        encode_scores(status, NAMES, values, reasons, USUAL) + encode_evidence({})
        for status, values, reasons in LINES.values()
    ]
    text = encode_lines(
        LINES, [0, 0, 0], [None] * 3, ["0" * 16] * 3, ends, encode_head(NAMES, USUAL)
    )
    (tmp_path / "scores").mkdir()
    (tmp_path / "scores/retrieval.jsonl").write_bytes(text)
    return tmp_path


def test_what_cannot_apply_is_not_written_and_named_once(run: Path) -> None:
    text = (run / "scores/retrieval.jsonl").read_text()
    usual, judged, none = map(json.loads, text.splitlines())
    left_out = {"bpref": "no judgements", "unjudged@*": "no judgements"}
    assert usual.pop("head") == {"schema": 2, "metrics": list(NAMES), "left_out": left_out}
    assert usual["scores"] == {"recall@1": 0, "recall@3": 1}
    assert "reasons" not in usual
    # another reason than the usual one is told, with its null
    assert judged["scores"]["bpref"] is None
    assert judged["reasons"] == dict(OTHER)
    assert none["scores"] == {}
    assert none["reasons"] == {"*": "unanswerable"}
    # 0 and 1 as such; .05 and 10 keep their digits
    assert '"scores":{"recall@1":0,"recall@3":1}' in text
    assert '{"recall@1":0.05,"recall@3":10.0,"bpref":null,"unjudged@1":1,"unjudged@3":0}' in text


def test_every_reader_gives_null_and_the_reason(run: Path) -> None:
    assert Run(run).section("retrieval").metrics == list(NAMES)
    for lines in (Run(run).lines("retrieval"), list(read_whole_scores(run, "retrieval"))):
        alone = (Run(run).find_scores(case_id, 0)["retrieval"] for case_id in LINES)
        for line in (*lines, *alone):
            status, values, reasons = LINES[line.case_id]
            assert (line.status, line.reasons) == (status, dict(reasons))
            assert list(line.scores.items()) == list(zip(NAMES, values, strict=True))
    ids, recall = Run(run).column("retrieval.recall@3")
    assert ids == list(LINES)
    assert recall.tolist() == pytest.approx([1.0, 10.0, float("nan")], nan_ok=True)


def test_lines_without_a_head_are_read_as_they_are(run: Path) -> None:
    path = run / "scores/retrieval.jsonl"
    path.write_text('{"case_id":"a","repeat":0,"status":"scored","scores":{"mrr":1.0,"b":null}}\n')
    line, *_ = Run(run).lines("retrieval")
    assert (line.scores, line.reasons) == ({"mrr": 1.0, "b": None}, {})
    assert Run(run).section("retrieval").metrics == ["mrr", "b"]


def test_a_later_schema_is_refused(run: Path) -> None:
    path = run / "scores/retrieval.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"schema":2', b'"schema":3', 1))
    with pytest.raises(StorageError, match="has schema 3, but this version reads 2"):
        list(Run(run).lines("retrieval"))
