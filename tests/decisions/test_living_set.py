"""A set grows and its labels are corrected; the same bot stays the same, and thirteen planted
failures are found, by everyone who compares.

The expected numbers are counted from the lists of cases in this file, by no code of the project.
"""

from __future__ import annotations

import copy
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import compare_runs
import eval_suite
import gate_run
import report_run
import score_abstention
import score_pipeline
import score_retrieval
from ragmetrics.catalogue import labels_of
from records.files import sha256_file
from records.fingerprints import asked_digests, labelled_digests
from records.labels import read_cases
from records.results import ErrorInfo, Reference, RetrievedChunk, RunConfig, TestResult
from records.targets import read_decide
from storage import ResultsWriter

CASES = 140
UNANSWERABLE = range(120, 140)
BASE_FAILS = range(0, 120, 6)
"""The twenty questions whose evidence the bot does not find."""

BROKEN = range(1, 79, 6)
"""The thirteen whose evidence the other bot loses."""

Rows = list[dict[str, Any]]
GATED = ("--run", "new", "--baseline", "base")
SECTIONS = ("--sections", "retrieval,abstention,pipeline", "--eval-set")


def first_set() -> Rows:
    return [case(number) for number in range(CASES)]


def case(number: int) -> dict[str, Any]:
    row: dict[str, Any] = {"id": f"q{number}", "question": f"What is {number}?"}
    if number in UNANSWERABLE:
        return row | {"answerable": False}
    return row | {
        "answerable": True,
        "gold_supports": [{"rel_path": f"d{number}.md", "heading_path": "H", "snippets": []}],
        "expected_outcome": "success",
    }


def grown(rows: Rows) -> Rows:
    """28 new cases, of which the bot fails none."""
    more = [case(number) for number in range(200, 228)]
    return [*more[:14], *rows, *more[14:]]


def relabelled(rows: Rows) -> Rows:
    """The gold of twelve questions that the bot failed is what it found."""
    for number in BASE_FAILS[:12]:
        rows[number]["gold_supports"][0]["rel_path"] = "other-1.md"
    return rows


def shrunk(rows: Rows) -> Rows:
    return [row for row in rows if row["id"] not in ("q2", "q60", "q130")]


def reworded(rows: Rows) -> Rows:
    for number in (3, 40, 77, 100, 125):
        rows[number]["question"] = f"Tell me of {number}."
    return rows


def reordered(rows: Rows) -> Rows:
    return rows[::-1]


STATES: dict[str, Callable[[Rows], Rows]] = {
    "grown": grown,
    "relabelled": relabelled,
    "shrunk": shrunk,
    "reworded": reworded,
    "reordered": reordered,
}


def write_set(path: Path, rows: Rows) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def answer_of(number: int, lost: range | tuple[int, ...] = ()) -> dict[str, Any]:
    """Five passages, of which the first is the evidence where the bot finds it."""
    gold = f"d{number}.md"
    if number in BASE_FAILS or number in lost:
        gold = "other-1.md"
    paths = [gold, *(f"other-{n}.md" for n in range(2, 6))]
    chunks = [
        RetrievedChunk(f"c{n}", rel_path=path, heading_path="H", rank=n)
        for n, path in enumerate(paths, 1)
    ]
    return {
        "answer": "I do not know." if number in UNANSWERABLE else f"It is {number}.",
        "abstained": number in UNANSWERABLE,
        "references": [Reference(1, rel_path=gold)],
        "retrieved": list(chunks),
    }


def make_run(
    folder: Path,
    run: str,
    eval_set: Path,
    lost: range | tuple[int, ...] = (),
    k: int = 10,
    answers: Mapping[int, dict[str, Any]] | None = None,
) -> None:
    """``answers``: what the bot returns otherwise."""
    cases = read_cases(eval_set, None)
    asked = asked_digests(cases)
    writer = ResultsWriter(folder / "results", run)
    dataset: dict[str, Any] = {"path": eval_set.name, "sha256": sha256_file(eval_set)}
    dataset["cases"] = len(cases)
    config = RunConfig(run, dataset=dataset, run={"selected": len(cases)}, retriever={"k": k})
    writer.write_config(config)
    for own in cases:
        number = int(own.id[1:])
        answer = answer_of(number, lost) | (answers or {}).get(number, {})
        writer.write_result(TestResult(own.id, own.question, asked=asked[own.id], **answer))
    writer.finish(own.id for own in cases)
    for script in (score_retrieval, score_abstention, score_pipeline):
        done = call(script, folder, "--run", run, "--eval-set", eval_set)
        assert done.exit_code == 0, done.output


def leave_metrics_alone(run: Path) -> None:
    """A run as git keeps it."""
    for path in run.iterdir():
        if path.name != "metrics.json":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def call(script: object, folder: Path, *words: object) -> Result:
    words = (*words, "--results-dir", folder / "results")
    return CliRunner().invoke(script.main, [str(word) for word in words])  # type: ignore[attr-defined]


def compared(folder: Path, *words: object) -> dict[str, Any]:
    done = call(compare_runs, folder, "base", "new", "--json", *words)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)["comparisons"][0]
    return found


def row_of(found: dict[str, Any], name: str) -> dict[str, Any]:
    parts = name.split(".")
    row: dict[str, Any] = next(r for r in found["rows"] if [r["section"], r["metric"]] == parts)
    return row


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("living")
    make_run(folder, "base", write_set(folder / "set.jsonl", first_set()))
    return folder


RECALL = "retrieval.evidence_recall@5"

COMPARED = {
    "grown": ("", range(120)),
    "relabelled": ("", range(120)),
    "shrunk": ("3 gone", [n for n in range(120) if n not in (2, 60)]),
    "reworded": ("5 reworded", [n for n in range(120) if n not in (3, 40, 77, 100)]),
    "reordered": ("", range(120)),
}
"""What is said of the others, and the answerable cases that count."""

SAID = COMPARED | {"grown": ("28 new", range(120))}


@pytest.mark.parametrize(
    ("lost", "state"),
    [
        *(pytest.param(BROKEN, state, id=f"thirteen lost-{state}") for state in STATES),
        pytest.param((), "relabelled", id="same bot-relabelled"),
        *(
            pytest.param((), state, id=f"same bot-{state}", marks=pytest.mark.thorough)
            for state in STATES
            if state != "relabelled"
        ),
    ],
)
def test_a_verdict_on_what_did_not_change(
    base: Path, tmp_path: Path, state: str, lost: range | tuple[int, ...]
) -> None:
    results = tmp_path / "results"
    results.mkdir()
    (results / "base").symlink_to(base / "results/base")
    write_set(tmp_path / "set.jsonl", STATES[state](copy.deepcopy(first_set())))
    make_run(tmp_path, "new", tmp_path / "set.jsonl", lost)

    others, answerable = SAID[state]
    corrected = set(BASE_FAILS[:12]) if state == "relabelled" else set()
    before = [n not in BASE_FAILS or n in corrected for n in answerable]
    now = [good and n not in lost for good, n in zip(before, answerable, strict=True)]

    found = compared(tmp_path)
    recall = row_of(found, RECALL)
    assert recall["n"] == len(answerable)
    assert recall["base"] == pytest.approx(sum(before) / len(before))
    assert recall["new"] == pytest.approx(sum(now) / len(now))
    assert found["headline"] == ("WORSE" if lost else "NO CLEAR DIFFERENCE")
    unchanged = {"shrunk": 137, "reworded": 135}.get(state, 140)
    first = found["says"][0]
    if state != "reordered":
        words = f"on the {unchanged} cases that did not change in the set"
        assert words + (f" ({others})" if others else "") in first
    again = [said for said in found["says"] if "was scored again" in said]
    assert len(again) == (state == "relabelled")

    gate = call(gate_run, tmp_path, *GATED)
    assert gate.exit_code == (1 if lost else 0), gate.output
    assert all(text in " ".join(gate.stdout.split()) for text in (first, *again))
    suite = call(eval_suite, tmp_path, *GATED, "--json", *SECTIONS, tmp_path / "set.jsonl")
    told = json.loads(suite.stdout)
    assert (told["headline"], told["says"][0]) == (found["headline"], first)
    assert suite.exit_code == (1 if lost else 0), suite.stdout
    call(report_run, tmp_path, *GATED, "--format", "md")
    report = (tmp_path / "results/new/report.md").read_text()
    assert first in " ".join(report.split())


def without_fingerprints(run: Path) -> None:
    """A run as versions before the fingerprints wrote it."""
    for path in run.rglob("*.jsonl"):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        for row in rows:
            row.pop("asked", None)
            row.pop("labelled", None)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    metrics = run / "metrics.json"
    metrics.write_text(re.sub(r', "[0-9a-f]{16}"', "", metrics.read_text()))


def git(folder: Path, *words: str) -> None:
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c", *words]
    subprocess.run(command, check=True, capture_output=True)


def edited(
    folder: Path,
    base: Path,
    edit: Callable[[Rows], Rows] = list,
    *,
    commit: bool = False,
    run: str = "new",
    **bot: Any,
) -> None:
    """Another run, over the set after an edit; ``commit``: git has the first set."""
    shutil.copytree(base / "results/base", folder / "results/base")
    path = write_set(folder / "set.jsonl", first_set())
    if commit:
        git(folder, "init", "-q")
        git(folder, "add", "set.jsonl")
        git(folder, "commit", "-qm", "the first set")
    make_run(folder, run, write_set(path, edit(first_set())), **bot)


def both(rows: Rows) -> Rows:
    return grown(relabelled(rows))


def test_a_committed_baseline_is_compared_by_its_lines(base: Path, tmp_path: Path) -> None:
    """Of the base there is metrics.json alone: 28 cases are new, and the twelve re-labelled ones
    are left out, all of which base failed, so that recall has no verdict (0 of 12 against 100 of
    108) and the other metrics have one."""
    edited(tmp_path, base, both)
    leave_metrics_alone(tmp_path / "results/base")
    found = compared(tmp_path)
    assert found["set_changes"] == {
        "same": 128, "new": 28, "reworded": 0, "relabelled": 12, "gone": 0, "rescored": 0,
    }  # fmt: skip
    recall = row_of(found, RECALL)
    assert (recall["verdict"], recall["n"]) == ("no verdict", 108)
    assert row_of(found, "pipeline.answered")["verdict"] == "no evidence"
    assert "base scores 0.000 in retrieval.evidence_recall@5 in the 12 cases" in found["says"][0]
    assert (
        "on the 128 cases that did not change in the set (28 new, 12 re-labelled)"
        in found["says"][0]
    )

    found = compared(tmp_path, "--metrics", "pass,pipeline.answered", "--sections", "pipeline")
    assert [row["metric"] for row in found["rows"]] == ["pass", "answered"]
    for words in (("--metrics", "mrr"), ("--sections", "context")):
        done = call(compare_runs, tmp_path, "base", "new", *words)
        assert (done.exit_code, "only metrics.json of base is there" in done.stderr) == (2, True)


@pytest.mark.parametrize("committed", [True, False])
def test_new_cases_that_fail_lose_no_target(base: Path, tmp_path: Path, committed: bool) -> None:
    """More than 70 % is the target: 100 of 120 before and now, and 100 of 148 with the new ones."""
    edited(tmp_path, base, grown, lost=range(200, 228))
    if committed:
        leave_metrics_alone(tmp_path / "results/base")
    done = call(compare_runs, tmp_path, "base", "new", "--fail-on", "target")
    assert (done.exit_code, "no longer met" in done.stdout) == (0, False), done.stdout


@pytest.mark.parametrize("commit", [True, False], ids=["git has the set", "no one has it"])
def test_an_older_run_is_aligned_by_the_set_that_it_was_asked(
    base: Path, tmp_path: Path, commit: bool
) -> None:
    """Its files have no fingerprints: without its set it is refused as before, and no one gives a
    verdict."""
    edited(tmp_path, base, both, commit=commit)
    without_fingerprints(tmp_path / "results/base")
    done = call(compare_runs, tmp_path, "base", "new")
    gate = call(gate_run, tmp_path, *GATED)
    if commit:
        assert "on the 140 cases that did not change in the set (28 new)." in done.stdout
        page = (Path(__file__).parents[2] / "docs/decisions.md").read_text("utf-8")
        assert "\n".join(done.stdout.splitlines()[-5:-2]) in page
        assert gate.exit_code == 0, gate.stdout
    else:
        assert done.exit_code == 2
        assert "were asked different versions of the eval set" in done.stderr
        assert gate.exit_code == 1
        assert "NO CLEAR DIFFERENCE" not in gate.stdout


def test_without_a_new_score_relabelled_cases_are_left_out(base: Path, tmp_path: Path) -> None:
    """Twelve re-labelled ones of which base failed two, as often as the others (20 of 120)."""

    def at_random(rows: Rows) -> Rows:
        for number in range(24, 36):
            rows[number]["gold_supports"].append(
                {"rel_path": "more.md", "heading_path": "H", "snippets": []}
            )
        return rows

    edited(tmp_path, base, at_random)
    before = (tmp_path / "results/base/scores/retrieval.jsonl").read_bytes()
    found = compared(tmp_path, "--no-rescore")
    recall = row_of(found, RECALL)
    assert (recall["n"], recall["base"], recall["new"]) == (108, *[pytest.approx(90 / 108)] * 2)
    assert row_of(found, "abstention.decision_right")["n"] == 140
    assert "on the 128 cases that did not change in the set (12 re-labelled)" in found["says"][0]
    again = compared(tmp_path)
    assert row_of(again, RECALL)["n"] == 120
    assert (tmp_path / "results/base/scores/retrieval.jsonl").read_bytes() == before


def test_a_base_with_options_of_its_own_is_scored_again_with_them(
    base: Path, tmp_path: Path
) -> None:
    """The gold of twelve of its twenty failures is corrected: 8 of 120 still fail."""
    shutil.copytree(base / "results/base", tmp_path / "results/base")
    words = ("--match", "doc", "--k", "2,5")
    call(score_retrieval, tmp_path, "--run", "base", "--eval-set", base / "set.jsonl", *words)
    write_set(tmp_path / "set.jsonl", relabelled(copy.deepcopy(first_set())))
    make_run(tmp_path, "new", tmp_path / "set.jsonl")
    call(score_retrieval, tmp_path, "--run", "new", "--eval-set", tmp_path / "set.jsonl", *words)
    recall = row_of(compared(tmp_path), RECALL)
    assert (recall["n"], recall["base"], recall["new"]) == (120, *[pytest.approx(112 / 120)] * 2)


def test_a_gate_needs_enough_cases_that_did_not_change(base: Path, tmp_path: Path) -> None:
    """75 of 140 reworded leave 65, which is 46 %."""

    def most_reworded(rows: Rows) -> Rows:
        for row in rows[:75]:
            row["question"] += " Please."
        return rows

    edited(tmp_path, base, most_reworded)
    rules = tmp_path / "gates.toml"
    for least, code in (("", 1), ("min_compared = 0.46", 0), ("min_compared = 0.47", 1)):
        rules.write_text(f'[gates]\nunlabelled = "skip"\n{least}\n')
        words = (*GATED, "--gates", rules)
        done = call(gate_run, tmp_path, *words)
        assert (done.exit_code, "cases_compared" in done.stdout) == (code, code == 1)


def test_a_set_whose_ids_are_all_new_passes_nowhere(base: Path, tmp_path: Path) -> None:
    """No case is in both runs, though the baseline has scores of 120 and 140 others."""

    def renamed(rows: Rows) -> Rows:
        return [row | {"id": f"q{number + 500}"} for number, row in enumerate(rows)]

    edited(tmp_path, base, renamed)
    found = compared(tmp_path)
    assert (found["headline"], found["set_changes"]["same"]) == ("TOO FEW", 0)
    rules = tmp_path / "gates.toml"
    rules.write_text('[gates]\nunlabelled = "skip"\nmin_compared = 0\n')
    gate = call(gate_run, tmp_path, *GATED, "--gates", rules, "--json")
    failed = [row for row in json.loads(gate.stdout)["checks"] if row["status"] == "failed"]
    assert gate.exit_code == 1
    assert {row["name"] for row in failed} >= {RECALL, "pipeline.answered"}
    assert all("no case has a score in both runs" in row["reason"] for row in failed)
    suite = call(eval_suite, tmp_path, *GATED, *SECTIONS, tmp_path / "set.jsonl")
    assert suite.exit_code == 1, suite.output
    assert "TOO FEW: no case has a primary metric in both runs" in suite.stdout


def test_conversations_are_compared_turn_by_turn(tmp_path: Path) -> None:
    """What the bot answered to the first turn is no part of what the second one asks; a reworded
    first turn changes the second."""
    turns: Rows = [
        {"id": f"t{n}-{turn}", "question": f"{n} {turn}?", "conversation": f"c{n}", "turn": turn}
        for n in range(8)
        for turn in (1, 2)
    ]
    path = write_set(tmp_path / "set.jsonl", turns)
    before = asked_digests(read_cases(path, None))
    turns[0]["question"] = "reworded"
    turns[5]["tags"] = ["any"]
    now = asked_digests(read_cases(write_set(path, [*turns[4:], *turns[:4]]), None))
    assert {case_id for case_id in before if before[case_id] != now[case_id]} == {"t0-1", "t0-2"}


def test_what_is_labelled_is_what_a_section_reads(tmp_path: Path) -> None:
    """Keys in another order, composed characters and a tag change nothing; a new file does."""
    row = case(1) | {"question": "Caf\u00e9?"}
    same = {key: row[key] for key in reversed(row)} | {"question": "Cafe\u0301?", "tags": ["x"]}
    other = copy.deepcopy(row)
    other["gold_supports"][0]["rel_path"] = "d2.md"
    digests = []
    for own in (row, same, other):
        (read,) = read_cases(write_set(tmp_path / "set.jsonl", [own]), None)
        labelled = [labelled_digests([read], labels_of(name)) for name in ("retrieval", "pipeline")]
        digests.append([asked_digests([read]), *labelled])
    assert digests[0] == digests[1]
    assert [a == b for a, b in zip(digests[0], digests[2], strict=True)] == [True, False, True]


def test_what_the_labels_alone_moved(base: Path, tmp_path: Path) -> None:
    """The same answers: with the first labels 100 of 120 questions have their evidence, with the
    corrected ones 112."""
    edited(tmp_path, base, relabelled, commit=True)
    git(tmp_path, "tag", "first")
    done = call(compare_runs, tmp_path, "new", "new", "--labels-of", "first")
    assert "needed evidence in the first 5 passages: 83 → 93 %. The bot is the same." in done.stdout
    for words, fault in (
        (("new", "new", "--labels-of", "nowhere"), "git does not have"),
        (("new", "new", "--labels-of", "--all"), "git does not have"),
        (("base", "new", "--labels-of", "first"), "write its name twice"),
    ):
        failed = call(compare_runs, tmp_path, *words)
        assert (failed.exit_code, fault in failed.stderr) == (2, True), failed.output


def test_the_first_screen_says_what_changed_and_where_the_loss_is(
    base: Path, tmp_path: Path
) -> None:
    """Evidence at rank 1 is lost in the thirteen questions, of the 120 that have any; k changed."""
    edited(tmp_path, base, lost=BROKEN, k=3)
    second = "Changed: k 10 → 3. Evidence lost at rank 1 in 13 of 120 questions."
    assert compared(tmp_path)["says"][1] == second
    gate = call(gate_run, tmp_path, *GATED)
    assert second in gate.stdout
    done = call(report_run, tmp_path, *GATED, "--format", "md")
    assert done.exit_code == 0, done.output
    text = (tmp_path / "results/new/report.md").read_text()
    assert text.index("WORSE") < text.index(second) < text.index("##")
    by = call(compare_runs, tmp_path, "base", "new", "--by", "category", "--by", "tag")
    assert f"--by: no case of {tmp_path / 'set.jsonl'} has a value for category, tag." in by.stderr
    none: dict[int, dict[str, Any]] = {number: {"retrieved": []} for number in range(CASES)}
    make_run(tmp_path, "empty", tmp_path / "set.jsonl", answers=none)
    done = call(compare_runs, tmp_path, "base", "empty")
    assert "No evidence was found for any of 120 questions." in done.stdout
    assert "Evidence lost" not in done.stdout


def test_the_most_harmful_cases_come_first(base: Path, tmp_path: Path) -> None:
    """An invented answer, no response, lost evidence, a refusal, and last what reads the same."""
    no_answer = {"answer": None, "abstained": None, "retrieved": None, "references": None}
    answers: dict[int, dict[str, Any]] = {
        7: {"answer": "Something else."},
        13: {"answer": "I do not know.", "abstained": True},
        19: no_answer | {"status": "error", "error": ErrorInfo("timeout")},
        120: {"answer": "It is 120.", "abstained": False},
    }
    edited(tmp_path, base, lost=(1, 7), answers=answers)
    order = ["q120", "q19", "q7", "q13", "q1"]
    done = call(compare_runs, tmp_path, "base", "new", "--json", "--set", "flips=10")
    cases = json.loads(done.stdout)["cases"]["changed"]
    assert [case["case_id"] for case in cases if case["way"] == "broke"] == order
    call(report_run, tmp_path, *GATED, "--format", "md")
    text = (tmp_path / "results/new/report.md").read_text()
    places = [re.search(rf"\b{case_id}\b", text) for case_id in order]
    starts = [place.start() for place in places if place]
    assert len(starts) == 5
    assert starts == sorted(starts)


def with_languages(rows: Rows) -> Rows:
    """Five German documents of six questions each; the other ninety answerable ones are English."""
    for number, row in enumerate(rows):
        german = number < 30
        row["tags"] = ["de" if german else "en"]
        if german:
            gold = {"rel_path": f"g{number // 6}.md", "heading_path": f"H{number}", "snippets": []}
            row["gold_supports"] = [gold]
    return rows


def found(number: int) -> dict[str, Any]:
    """An answer whose first passage is the evidence."""
    path, place = f"d{number}.md", "H"
    if number < 30:
        path, place = f"g{number // 6}.md", f"H{number}"
    chunk = RetrievedChunk("c1", rel_path=path, heading_path=place, rank=1)
    return {"retrieved": [chunk], "references": [Reference(1, rel_path=path)]}


LOST: dict[str, Any] = {"retrieved": [], "references": []}


def test_a_lost_language_is_named_although_the_sum_is_zero(tmp_path: Path) -> None:
    """Thirty German questions broke and thirty English ones were fixed; the gate's rule on the tag
    fires, and one on a tag that nothing happened to does not."""
    path = write_set(tmp_path / "set.jsonl", with_languages(first_set()))
    german, english = range(30), range(30, 60)
    answers = {number: found(number) for number in range(120)}
    make_run(tmp_path, "base", path, k=5, answers=answers | dict.fromkeys(english, LOST))
    make_run(tmp_path, "new", path, answers=answers | dict.fromkeys(german, LOST))
    says = compared(tmp_path)["says"]
    page = (Path(__file__).parents[2] / "docs/decisions.md").read_text("utf-8")
    assert "\n".join(says[:3]) in page, says
    assert says[0].startswith("NO CLEAR DIFFERENCE")
    assert says[2] == (
        "Questions with tag de: 30 of 30 broke; others: 0 of 110, 30 fixed (p < .001)."
    )
    rules = tmp_path / "gates.toml"
    words = (*GATED, "--gates", rules)
    for tag, code in (("de", 1), ("en", 0)):
        rules.write_text(f'[gates.slices]\n"tag.{tag}" = "no fall"\n')
        done = call(gate_run, tmp_path, *words)
        assert done.exit_code == code, done.stdout
        suite = call(eval_suite, tmp_path, *words, *SECTIONS, path)
        assert (suite.exit_code, "gate missed: slice tag.de" in suite.stdout) == (code, code == 1)
        assert ("30 of 30 cases broke, 0 fixed (p < .001)" in done.stdout) == (tag == "de")
    rules.write_text('[gates.slices]\n"tag.fr" = "no fall"\n')
    done = call(gate_run, tmp_path, *words)
    assert "no compared case of the set is in this slice" in done.stdout
    for name, fault in (("tag", "is no slice"), ("color.red", "is no slice")):
        rules.write_text(f'[gates.slices]\n"{name}" = "no fall"\n')
        done = call(gate_run, tmp_path, *words)
        assert (done.exit_code, fault in done.stderr) == (2, True)


def test_what_these_cases_cannot_see_of_what_matters(base: Path, tmp_path: Path) -> None:
    """Three of 120 broke, which may be chance, and may be more than two points."""
    edited(tmp_path, base, lost=(1, 7, 13))
    says = compared(tmp_path, "--set", "margin=0.02")["says"]
    assert re.fullmatch(r"120 cases cannot see 2 points; about [\d,]+ can\.", says[2])


def test_the_pinned_baseline_is_said_beside_the_last_run(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten questions were lost since the first run, none since the last; the set grew between."""
    targets = tmp_path / "targets.toml"
    targets.write_text('[decide]\npinned = "base"\n')
    read = read_decide
    monkeypatch.setattr("decisions.alerts.read_decide", lambda path=targets: read(targets))
    lost = tuple(BROKEN[:10])
    edited(tmp_path, base, run="last", lost=lost)
    make_run(tmp_path, "new", write_set(tmp_path / "set.jsonl", grown(first_set())), lost)
    done = call(compare_runs, tmp_path, "last", "new")
    since = "Since the pinned baseline base: evidence_recall@5 −8 points (worse), decision_right ±0"
    assert done.stdout.index("NO CLEAR DIFFERENCE") < done.stdout.index(since)
    gate = call(gate_run, tmp_path, "--run", "new", "--baseline", "last")
    assert since in gate.stdout
    assert "Since the pinned" not in call(compare_runs, tmp_path, "new", "base").stdout
