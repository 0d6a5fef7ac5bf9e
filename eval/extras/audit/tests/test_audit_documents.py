"""audit_documents.py as a user calls it: what it prints, accepts, refuses, and asks a judge."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.processes import call_script

from documents.sections import Note
from extras.audit.gaps import RunFacts, Subjects, gap_findings
from extras.audit.passages import sections_of
from records.cases import TestCase
from records.runs import ResultsWriter
from storage import RetrievedChunk, TestResult

SCRIPT = "extras.audit.audit_documents"
FACT = "A reminder of the northern branch library costs {} euros at the counter."
NOTES = {
    "fees.md": f"# Fees\n\n{FACT.format('two')}\n",
    "more/costs.md": f"# Costs\n\n{FACT.format('five')}\n",
    "offer.md": "# Offer\n\nThe free card is valid until 2020-01-01.\n",
    "roses.md": "# Roses\n\nThe garden shop sells roses in spring.\n",
}
CASES: list[dict[str, Any]] = [
    {"id": "fee", "question": "What does a reminder cost?", "answerable": True,
     "gold_supports": [{"rel_path": "fees.md", "heading_path": "Fees"}]},
    {"id": "gone", "question": "Where is the northern branch library?", "answerable": True,
     "gold_supports": [{"rel_path": "old.md", "snippets": ["The garden shop sells"]}]},
    {"id": "boat", "question": "Where can kayaks be moored overnight?", "answerable": True},
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in NOTES.items():
        (tmp_path / "vault" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "vault" / name).write_text(text)
    (tmp_path / "set.jsonl").write_text("".join(json.dumps(case) + "\n" for case in CASES))
    return tmp_path


def call(folder: Path, *words: str) -> Any:
    own = ["--accepted", str(folder / "accepted.toml"), "--cache-dir", str(folder / "cache")]
    own += ["--results-dir", str(folder / "results"), "--today", "2026-06-01"]
    return call_script(SCRIPT, str(folder / "vault"), *own, *words)


def found(folder: Path, *words: str) -> dict[str, list[dict[str, Any]]]:
    done = call(folder, "--eval-set", str(folder / "set.jsonl"), "--json", *words)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    kinds: dict[str, list[dict[str, Any]]] = {}
    for finding in report["findings"]:
        kinds.setdefault(finding["kind"], []).append(finding)
    return kinds


def test_labels_in_a_file_of_their_own_beside_the_set_are_held_against_the_vault(
    folder: Path,
) -> None:
    (folder / "set.jsonl").write_text('{"id": "a", "question": "What does a reminder cost?"}\n')
    (folder / "labels").mkdir()
    label = {"case_id": "a", "gold_supports": [{"rel_path": "fees.md", "heading_path": "Prices"}]}
    (folder / "labels" / "retrieval_labels.jsonl").write_text(json.dumps(label) + "\n")
    (finding,) = found(folder)["gold"]
    assert (finding["cases"], finding["why"]) == (["a"], "the heading is gone")


def test_every_kind_is_found_with_its_place_quote_and_reason(folder: Path) -> None:
    kinds = found(folder)
    assert list(kinds) == ["gold", "expired", "may_contradict", "gap", "dead_weight"]
    (gold,) = kinds["gold"]
    assert gold["cases"] == ["gone"]
    assert gold["moved_to"] == {"rel_path": "roses.md", "heading_path": "Roses", "page": None}
    (pair,) = kinds["may_contradict"]
    assert pair["why"] == "same subject, differ in two euros / five euros"
    assert pair["cases"] == ["fee"]  # its gold is one of the two places
    (gap,) = kinds["gap"]
    assert gap["cases"] == ["boat"]
    words = "'Where can kayaks be moored overnight?': no section has"
    assert gap["why"] == f"{words} kayaks, moored, overnight"
    dead = [weight["why"].partition(":")[0] for weight in kinds["dead_weight"]]
    assert dead == ["more/costs.md", "offer.md", "roses.md"]
    saved = json.loads((folder / "cache" / "audit.json").read_bytes())
    assert len(saved["findings"]) == 7


def test_a_terminal_shows_blocks_and_the_counts_last(folder: Path) -> None:
    done = call(folder, "--eval-set", str(folder / "set.jsonl"))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.strip().splitlines()
    assert lines[-1].endswith("(in 4 documents, 4 sections).")
    assert "Gold labels: 1" in lines
    page = folder / "page.md"
    assert call(folder, "--markdown", str(page)).returncode == 0
    assert "May contradict" in page.read_text()


def test_an_accepted_finding_is_left_out_and_its_reason_is_kept(folder: Path) -> None:
    (pair,) = found(folder)["may_contradict"]
    done = call(folder, "--accept", pair["key"], "--reason", 'two "branches"')
    assert done.returncode == 0, done.stderr
    assert 'two \\"branches\\"' in (folder / "accepted.toml").read_text()
    assert "may_contradict" not in found(folder)
    assert "1 accepted" in call(folder).stdout
    assert call(folder, "--accept", "stale-1").returncode == 2


def test_accepting_keeps_what_people_wrote_and_takes_the_key_as_printed(folder: Path) -> None:
    (pair,) = found(folder)["may_contradict"]
    path = folder / "accepted.toml"
    path.write_text("# by Ann\n[accepted]\nstale-00000000 = 'old'  # ticket 7")
    assert call(folder, "--accept", f"{pair['key']}:", "--reason", "x").returncode == 0
    assert path.read_text() == (
        f"# by Ann\n[accepted]\nstale-00000000 = 'old'  # ticket 7\n{pair['key']} = \"x\"\n"
    )
    kept = path.read_bytes()
    for key in ("nonsense", "stale-1", "rust-00000000", pair["key"]):
        assert call(folder, "--accept", key, "--reason", "x").returncode == 2
    path.write_text("[accepted]\n[other]\n")
    assert call(folder, "--accept", pair["key"], "--reason", "x").returncode == 2
    assert path.read_text() == "[accepted]\n[other]\n"
    path.write_bytes(kept)


@pytest.mark.parametrize("option", ["--dry-run", "--yes"])
def test_an_option_of_a_judge_needs_a_judge(folder: Path, option: str) -> None:
    done = call(folder, option)
    assert (done.returncode, f"{option} is about a judge" in done.stderr) == (2, True)


def test_fail_on_is_exit_1_and_an_unknown_kind_a_sentence(folder: Path) -> None:
    assert call(folder, "--fail-on", "expired").returncode == 1
    assert call(folder, "--fail-on", "stale").returncode == 0
    done = call(folder, "--fail-on", "rust")
    assert (done.returncode, "rust is no kind" in done.stderr) == (2, True)


@pytest.mark.parametrize("text", ["accepted = 3", "[accepted]\nkey = 3"])
def test_a_faulty_file_of_accepted_findings_is_a_sentence(folder: Path, text: str) -> None:
    (folder / "accepted.toml").write_text(text)
    done = call(folder)
    assert (done.returncode, "write a reason for each finding" in done.stderr) == (2, True)


def test_runs_say_what_crowds_what_is_refused_and_what_comes_together(folder: Path) -> None:
    writer = ResultsWriter(folder / "results", "a")
    for case in CASES:
        chunks: list[Any] = [
            RetrievedChunk("1", rel_path="roses.md", heading_path="Roses", text="r", rank=1),
            RetrievedChunk("2", rel_path="fees.md", heading_path="Fees", text="f", rank=2),
        ]
        answer = "I cannot find this in the documents." if case["id"] != "fee" else "Two euros."
        writer.write_result(
            TestResult(case["id"], question=case["question"], answer=answer, retrieved=chunks)
        )
    writer.finish([case["id"] for case in CASES])
    kinds = found(folder, "--run", "a")
    (crowd,) = kinds["crowding"]
    assert crowd["why"] == "roses.md: retrieved in 3 of 3 answers, gold of no question"
    dead = [weight["why"].partition(":")[0] for weight in kinds["dead_weight"]]
    assert dead == ["more/costs.md", "offer.md"]


def test_unanswered_questions_are_grouped_by_a_word_and_never_by_a_number() -> None:
    questions = {"a": "1 kayak at noon", "b": "1 kayak by night", "c": "1 desk", "d": "1 lamp"}
    cases = [TestCase(name, question) for name, question in questions.items()]
    facts = RunFacts(unanswered=dict.fromkeys("acd", "refused") | {"b": "failing"})
    sections = sections_of([Note("v", "a.md", "# Desk\n\nThe kayak is beside desk 1.\n")])
    *single, group = gap_findings(cases, Subjects(sections), facts)
    assert group.why == "2 questions about 'kayak': 1 refused, 1 failing"
    assert group.cases == ("a", "b")
    assert [each.why for each in single] == ["'1 lamp': its best section, a.md > Desk, lacks lamp"]


PASSAGE = re.compile(r"<<<BEGIN passage (\d+) ([0-9a-f]{16})>>>\n(.*?)\n<<<END \2>>>", re.DOTALL)


def reply(body: dict[str, Any], verdict: str, quote: str = "") -> dict[str, Any]:
    entries = [
        {"id": number, "quote": quote or text.splitlines()[-1], "reason": "", "verdict": verdict}
        for number, _, text in PASSAGE.findall(body["messages"][1]["content"])
    ]
    return {"notes": "", "verdicts": entries, "manipulation": False}


def judged(folder: Path, judge: Any, *words: str) -> Any:
    own = ("--judge", judge.url, "--model", judge.model, "--set", "retries=0", "--json", *words)
    return call(folder, *own)


def kinds_of(done: Any) -> list[str]:
    assert done.returncode == 0, done.stderr
    return [finding["kind"] for finding in json.loads(done.stdout)["findings"]]


def test_only_what_a_judge_confirms_in_both_orders_is_a_contradiction(
    folder: Path, fake_judge: Any
) -> None:
    fake_judge.answer = lambda body: reply(body, "contradicts")
    done = judged(folder, fake_judge, "--yes")
    assert kinds_of(done) == ["contradiction", "expired"]
    first, second = (PASSAGE.findall(body["messages"][1]["content"]) for body in fake_judge.chats())
    assert [text for _, _, text in first] == [text for _, _, text in second][::-1]
    assert "1 confirmed, 0 rejected, 0 failed" in json.loads(done.stdout)["notes"][1]


def test_a_judge_that_says_no_in_one_order_or_invents_a_quote_confirms_nothing(
    folder: Path, fake_judge: Any
) -> None:
    verdicts = iter(["contradicts", "compatible"])
    fake_judge.answer = lambda body: reply(body, next(verdicts))
    assert kinds_of(judged(folder, fake_judge, "--yes")) == ["expired"]
    (folder / "cache").rename(folder / "other")
    fake_judge.answer = lambda body: reply(body, "contradicts", "Reminders are free of any charge.")
    assert kinds_of(judged(folder, fake_judge, "--yes")) == ["expired"]


def test_a_judge_is_asked_only_after_consent_and_the_rules_cannot_judge(
    folder: Path, fake_judge: Any
) -> None:
    done = judged(folder, fake_judge)
    assert (done.returncode, "--yes" in done.stderr) == (2, True)
    done = judged(folder, fake_judge, "--dry-run")
    assert (done.returncode, "2 calls" in done.stderr) == (0, True)
    assert fake_judge.chats() == []
    done = call(folder, "--judge", "local", "--yes")
    assert (done.returncode, "cannot decide about contradictions" in done.stderr) == (2, True)


def test_a_failed_call_is_counted_and_confirms_nothing(folder: Path, fake_judge: Any) -> None:
    fake_judge.answer = lambda body: "no JSON at all"
    done = judged(folder, fake_judge, "--yes")
    assert kinds_of(done) == ["expired"]
    assert "0 confirmed, 0 rejected, 1 failed" in json.loads(done.stdout)["notes"][1]
