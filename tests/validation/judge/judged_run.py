"""Writes a run that a judge has judged, as judge_answers.py leaves it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.verdict_files import write_verdicts

import storage
from records.judgements import answer_sha256
from storage import RetrievedChunk, TestResult

JUDGE = {
    "provider": "ollama",
    "model": "tiny",
    "digest": "sha256:1234",
    "build": None,
    "revision": None,
    "strength": "digest",
}
PROMPT = {"name": "groundedness", "version": 1, "sha256": "ab" * 32}
Claim = tuple[str, str]
"""A claim and the judge's verdict of it."""


class JudgedRun:
    """A set, a run and its verdicts below a folder; labels are added by `label`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = folder / "results" / "run"
        self.answers: dict[str, str] = {}
        self.passages: dict[str, str] = {}
        self.verdicts: list[dict[str, Any]] = []

    def write(self, answers: Mapping[str, Sequence[Claim]], **changes: Any) -> None:
        """An answer a case, made of its claims; ``changes`` go into every verdict line."""
        with (self.folder / "set.jsonl").open("w", encoding="utf-8") as file:
            for number, case_id in enumerate(answers):
                case = {"id": case_id, "question": f"What about {case_id}?"}
                case["category"] = ("factual", "reasoning")[number % 2]
                file.write(json.dumps(case) + "\n")
        (self.folder / "labels").mkdir(exist_ok=True)
        writer = storage.ResultsWriter(self.folder / "results", "run", store_full_text=True)
        writer.write_config(storage.RunConfig("run"))
        for number, (case_id, claims) in enumerate(answers.items()):
            text = " ".join(claim for claim, _ in claims)
            self.answers[case_id] = text
            self.passages[case_id] = f"Passage of {case_id}. It speaks of many things."
            chunk = RetrievedChunk(
                f"chunk-{case_id}",
                rel_path=f"notes/{number // 2}.md",
                heading_path="Part",
                text=self.passages[case_id],
                rank=1,
            )
            question = f"What about {case_id}?"
            writer.write_result(
                TestResult(case_id, question=question, answer=text, retrieved=[chunk])
            )
            self.verdicts.append(self.line(case_id, claims) | changes)
        writer.finish(answers)
        self.save()

    def line(self, case_id: str, claims: Sequence[Claim]) -> dict[str, Any]:
        """One judgement."""
        answer = self.answers.get(case_id, "")
        passage = {"id": "c1", "chunk_id": f"chunk-{case_id}", "text": self.passages[case_id]}
        given: dict[str, Any] = {"question": f"What about {case_id}?", "answer": answer}
        given |= {"contexts": [passage], "claims": []}
        verdicts = []
        for number, (claim, verdict) in enumerate(claims, 1):
            start = max(0, answer.find(claim))
            span = [start, start + len(claim)]
            given["claims"].append({"id": str(number), "text": claim, "span": span})
            words = {"quote": "", "context": "c1", "reason": f"because of {number}"}
            verdicts.append({"id": str(number), "verdict": verdict} | words)
        line = {"case_id": case_id, "metric": "groundedness", "judge": JUDGE, "prompt": PROMPT}
        return line | {"input": given, "verdicts": verdicts, "mode": "json_schema"}

    def save(self) -> None:
        """Write verdicts.jsonl from ``verdicts``, and their first judge into config.json.

        What names no subject is on the present answer.
        """
        cases = {case.id: case for case in storage.read_cases(self.folder / "set.jsonl")}
        marks = {
            result.test_case_id: answer_sha256(cases[result.test_case_id], result, None)
            for result in storage.iter_results(self.run / storage.RESULTS)
        }
        whole = [{"subject": marks[line["case_id"]]} | line for line in self.verdicts]
        write_verdicts(self.run / "verdicts.jsonl", whole)
        config = storage.read_json(self.run / "config.json")
        identity = self.verdicts[0]["judge"]
        config["judge"] = {"identity": identity, "prompts": {}, "parameters": {}}
        storage.replace_json(self.run / "config.json", config)

    def label_line(self, case_id: str, claim_id: str, label: str | None, **more: Any) -> Any:
        """A full label line, as the screen writes it."""
        line = next(one for one in self.verdicts if one["case_id"] == case_id)
        claim = line["input"]["claims"][int(claim_id) - 1]["text"]
        sha256 = hashlib.sha256(self.answers[case_id].encode()).hexdigest()
        return {
            "case_id": case_id,
            "repeat": 0,
            "metric": "groundedness",
            "claim_id": claim_id,
            "claim": claim,
            "answer_sha256": sha256,
            "label": label,
            "annotator": "maria",
            "at": "2025-01-01T00:00:00+00:00",
            "sample": "random:0",
        } | more

    def label(self, lines: Sequence[dict[str, Any]], annotator: str = "maria") -> Path:
        """Write an annotator's file; returns its path."""
        path = self.folder / "labels" / "verdicts" / f"{annotator}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        return path

    def options(self) -> list[str]:
        """Where everything lies, as options of a script."""
        words = ["--eval-set", str(self.folder / "set.jsonl"), "--run", "run"]
        words += ["--results-dir", str(self.folder / "results")]
        return [*words, "--labels-dir", str(self.folder / "labels")]


def mixed(size: int, wrong: int = 5) -> tuple[dict[str, list[Claim]], dict[tuple[str, str], str]]:
    """``size`` answers of two claims, the first true, the second false; and people's labels.

    The judge passes every ``wrong``-th false claim, and misses every ``2 * wrong``-th true one.
    """
    answers: dict[str, list[Claim]] = {}
    labels: dict[tuple[str, str], str] = {}
    for number in range(size):
        case_id = f"q{number:03d}"
        true = "not_found" if number % (2 * wrong) == 0 else "supported"
        false = "supported" if number % wrong == 0 else "contradicted"
        answers[case_id] = [
            (f"The limit of plan {number} is high.", true),
            (f"Plan {number} costs nothing.", false),
        ]
        labels[case_id, "1"] = "supported"
        labels[case_id, "2"] = "not_supported"
    return answers, labels
