"""What is left of an older run, of a set that changed since, and what no one may compare then.

The expected numbers are counted from the lists of cases, by no code of the project.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.decisions.test_living_set import (
    BASE_FAILS,
    CASES,
    GATED,
    RECALL,
    SECTIONS,
    Rows,
    call,
    case,
    compared,
    edited,
    first_set,
    git,
    grown,
    leave_metrics_alone,
    make_run,
    relabelled,
    row_of,
    without_fingerprints,
    write_set,
)

import compare_runs
import eval_suite
import gate_run
import judge_answers
import score_context
from decisions.change import Change
from decisions.comparison import Difference
from decisions.coverage import ChosenRest, Coverage
from decisions.invariants import changed_words
from decisions.metric_words import chosen_rest_words
from decisions.same_cases import align_folders
from records.files import sha256_file
from records.labels import labels_sha256
from records.results import RetrievedChunk
from records.set_versions import set_with
from records.targets import read_decide

NOT_KNOWN = "The settings of base are not known (no config.json, or one of another run)."


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("older")
    make_run(folder, "base", write_set(folder / "set.jsonl", first_set()))
    return folder


def test_an_older_run_keeps_its_judge_s_verdicts_on_the_old_labels(tmp_path: Path) -> None:
    """Evidence and reference answers of twelve questions are corrected. The older run is scored
    again for the evidence; the judge's verdicts are on the old answers, so those are left out."""

    def corrected(rows: Rows) -> Rows:
        for number, row in enumerate(relabelled(rows)[:120]):
            row["reference_answer"] = f"It is {number}."
        return rows

    def judged(run: str) -> None:
        words = ("--judge", "local", "--metrics", "correctness", "--cache-dir", tmp_path / "cache")
        done = call(
            judge_answers, tmp_path, "--run", run, "--eval-set", path, *words
        )  # fmt: skip
        assert done.exit_code == 0, done.output

    rows = corrected(first_set())
    for number in BASE_FAILS[:12]:
        rows[number] = case(number) | {"reference_answer": "No one has any idea of apples."}
    path = write_set(tmp_path / "set.jsonl", rows)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "set.jsonl")
    git(tmp_path, "commit", "-qm", "the first set")
    make_run(tmp_path, "base", path)
    judged("base")
    without_fingerprints(tmp_path / "results/base")
    make_run(tmp_path, "new", write_set(path, corrected(first_set())))
    judged("new")
    found = compared(tmp_path)
    row = row_of(found, "judged.correctness")
    assert (row["n"], row["base"], row["new"]) == (108, 5.0, 5.0)
    assert row_of(found, RECALL)["n"] == 120
    assert found["set_changes"]["rescored"] == 12


@pytest.mark.parametrize("committed", [False, True], ids=["with results", "metrics.json alone"])
def test_what_depends_on_all_passages_of_a_run_is_not_compared(
    committed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same answers: TF-IDF weighs the words by all passages, and new cases bring others. It is
    declared primary, and no one gives a verdict on it; recall keeps its own."""
    tfidf = "context.redundancy_tfidf"
    targets = tmp_path / "targets.toml"
    targets.write_text(f'[decide]\nprimary = ["{tfidf}", "{RECALL}"]\n')
    read = read_decide
    for room in ("primary", "comparison"):
        monkeypatch.setattr(f"decisions.{room}.read_decide", lambda path=targets: read(targets))

    def texts(number: int) -> dict[str, Any]:
        words = (
            f"word{number} is alpha beta",
            f"word{number} is alpha {'gamma ' * (number > 199)}",
        )
        chunks = [
            RetrievedChunk(f"c{n}", rel_path=f"d{number}.md", heading_path="H", text=text, rank=n)
            for n, text in enumerate(words, 1)
        ]
        return {"retrieved": list(chunks)}

    answers = {number: texts(number) for number in (*range(CASES), *range(200, 228))}
    path = tmp_path / "set.jsonl"
    for run, rows in (("base", first_set()), ("new", grown(first_set()))):
        make_run(tmp_path, run, write_set(path, rows), answers=answers)
        done = call(score_context, tmp_path, "--run", run, "--eval-set", path)
        assert done.exit_code == 0, done.output
    if committed:
        leave_metrics_alone(tmp_path / "results/base")
    found = compared(tmp_path)
    row = row_of(found, tfidf)
    assert (row["verdict"], row["n"], row["p_joint"]) == ("not comparable", 0, None)
    assert (row_of(found, RECALL)["verdict"], row_of(found, RECALL)["n"]) == ("no evidence", 120)
    why = f"{tfidf} depends on all passages of a run, and its cases are not the same"
    assert found["says"][0].startswith(f"INCOMPLETE: {why}")
    if not committed:
        assert row_of(found, "context.redundancy_ngram")["n"] == 140
    gate = call(gate_run, tmp_path, *GATED, "--json")
    checks = {f"{c['section']}.{c['metric']}": c for c in json.loads(gate.stdout)["checks"]}
    assert (checks[tfidf]["status"], checks[RECALL]["status"]) == ("failed", "passed")
    assert "no verdict: depends on all passages of a run" in checks[tfidf]["reason"]
    words = (*GATED, "--eval-set", path, "--sections", "retrieval,context")
    suite = call(eval_suite, tmp_path, *words)
    assert (gate.exit_code, suite.exit_code) == (1, 1)
    done = call(compare_runs, tmp_path, "base", "new")
    assert "not comparable" in next(
        line for line in done.stdout.splitlines() if "redundancy" in line
    )


def test_the_remedy_is_what_the_base_lacks(base: Path, tmp_path: Path) -> None:
    """Labels alone changed: the answers are scored again, those of a judge by the judge. A base
    without answers must be asked."""
    edited(tmp_path, base, relabelled)
    again = "so leaving them out decides; score it again with the labels of the new run "
    assert (
        again + "(score_retrieval.py --run base)" in compared(tmp_path, "--no-rescore")["says"][0]
    )
    row = Change("judged", "correctness", True, verdict="no verdict")
    row = replace(row, coverage=Coverage(108, chosen=ChosenRest(12, 1.0, 5.0, labels_alone=True)))
    assert again + "(judge_answers.py --run base)" in chosen_rest_words(row)
    (tmp_path / "results/base/results.jsonl").unlink()
    assert "; ask and score base again with the set of the new run" in compared(tmp_path)["says"][0]


def test_a_base_without_its_settings_is_said(base: Path, tmp_path: Path) -> None:
    """Its config.json is gone: nothing is said to have changed from nothing to k = 10."""
    edited(tmp_path, base, grown)
    (tmp_path / "results/base/config.json").unlink()
    for alone in (False, True):
        if alone:
            leave_metrics_alone(tmp_path / "results/base")
        done = call(compare_runs, tmp_path, "base", "new")
        assert "on the 140 cases that did not change in the set (28 new)" in done.stdout
        assert NOT_KNOWN in done.stdout.splitlines()
        assert "Changed" not in done.stdout


def committed(folder: Path, base: Path, **config: Any) -> Path:
    """Of the base metrics.json alone, and beside it config.json with other settings."""
    edited(folder, base, grown)
    run = folder / "results/base"
    settings = json.loads((run / "config.json").read_text())
    leave_metrics_alone(run)
    (run / "config.json").write_text(json.dumps(settings | config))
    return run


def test_the_gate_tells_what_changed_since_a_committed_file(base: Path, tmp_path: Path) -> None:
    """By config.json beside metrics.json: base was asked with k = 3, the new run with 10."""
    folder = committed(tmp_path, base, retriever={"k": 3})
    named = ("--run", "new", "--baseline", str(folder / "metrics.json"))
    assert "Changed: k 3 → 10." in call(gate_run, tmp_path, *named).stdout.splitlines()
    (folder / "config.json").unlink()
    assert NOT_KNOWN in call(gate_run, tmp_path, *named).stdout.splitlines()


def test_a_config_of_another_run_beside_a_committed_file_tells_nothing(
    base: Path, tmp_path: Path
) -> None:
    """Only metrics.json of a newer run was committed: the older config.json has another hash."""
    folder = committed(tmp_path, base, retriever={"k": 3}, config_hash="0" * 64)
    for source in (folder, folder / "metrics.json"):
        done = call(gate_run, tmp_path, "--run", "new", "--baseline", str(source))
        assert NOT_KNOWN in done.stdout.splitlines()
    assert NOT_KNOWN in call(compare_runs, tmp_path, "base", "new").stdout.splitlines()


def test_a_committed_file_of_chosen_cases_is_refused_as_its_folder_is(
    base: Path, tmp_path: Path
) -> None:
    folder = committed(tmp_path, base, run={"selected": CASES, "sample": {"kind": "enriched"}})
    for source in (folder, folder / "metrics.json"):
        done = call(gate_run, tmp_path, "--run", "new", "--baseline", str(source))
        assert done.exit_code == 2
        assert "cases that were chosen because something was wrong" in done.stderr


def test_a_committed_file_has_the_cases_of_its_folder(base: Path, tmp_path: Path) -> None:
    """Of a part of the set: the 28 cases that it was not asked are not new in the set."""
    sha = sha256_file(base / "set.jsonl")
    dataset = {"path": "set.jsonl", "sha256": sha, "cases": 168}
    folder, new = committed(tmp_path, base, dataset=dataset), tmp_path / "results/new"
    sections = ("retrieval", "abstention", "pipeline")
    by_file = align_folders(folder / "metrics.json", new, sections)
    assert by_file == align_folders(folder, new, sections)
    assert (len(by_file.shared), by_file.new) == (140, frozenset())


def test_a_run_is_named_by_its_metrics_file_too(base: Path, tmp_path: Path) -> None:
    edited(tmp_path, base, grown)
    folder = tmp_path / "results/base"
    leave_metrics_alone(folder)
    by_name = call(compare_runs, tmp_path, "base", "new").stdout
    assert call(compare_runs, tmp_path, str(folder / "metrics.json"), "new").stdout == by_name
    for name, fault in (
        ("set.jsonl", "is a file; name the run, or its folder."),
        ("metrics.json", "no such file."),
    ):
        refused = call(compare_runs, tmp_path, str(tmp_path / name), "new")
        assert (refused.exit_code, f"{name}: {fault}" in refused.stderr) == (2, True)


def test_an_incomplete_comparison_has_one_exit_code(base: Path, tmp_path: Path) -> None:
    """The new bot sends no passages with 100 of 140 answers: there is no verdict on recall. Gate
    and suite fail, and both pass where the gates allow it."""
    edited(tmp_path, base, answers={number: {"retrieved": None} for number in range(100)})
    first = compared(tmp_path)["says"][0]
    assert first.startswith("INCOMPLETE: new sends no passages: 100 of 120 answers")
    rules = tmp_path / "gates.toml"
    rules.write_text('[gates]\nuntested = "allow"\n')
    suite = (*GATED, *SECTIONS, tmp_path / "set.jsonl")
    for script, words in ((gate_run, GATED), (eval_suite, suite)):
        done = call(script, tmp_path, *words)
        assert first in " ".join(done.stdout.split())
        assert done.exit_code == 1, done.stdout
        assert "no verdict: 20 of 120 cases have a score" in " ".join(done.stdout.split())
        allowed = call(script, tmp_path, *words, "--gates", rules)
        assert allowed.exit_code == 0, allowed.stdout


def test_gates_of_a_suite_see_the_base_scored_again(base: Path, tmp_path: Path) -> None:
    """Twelve of 140 are re-labelled: scored again they count as unchanged, for suite and gate."""
    edited(tmp_path, base, relabelled)
    rules = tmp_path / "gates.toml"
    fall = '[gates.baseline]\n"retrieval.mrr" = "drop 1 %"\n'
    rules.write_text('[gates]\nunlabelled = "skip"\nmin_compared = 0.95\n' + fall)
    words = (*GATED, "--gates", rules)
    suite = (*words, *SECTIONS, tmp_path / "set.jsonl")
    for done in (call(gate_run, tmp_path, *words), call(eval_suite, tmp_path, *suite)):
        assert done.exit_code == 0, done.stdout
    alone = call(gate_run, tmp_path, *words, "--no-rescore")
    assert (alone.exit_code, "cases_compared" in alone.stdout) == (1, True)


def test_words_of_what_changed() -> None:
    address = Difference("api.url", "http://a:1", "http://a:2")
    asked = Difference("retriever.requested.k", 10, 3)
    history = Difference("retriever.requested.history", None, "live")
    assert changed_words([asked, address]) == "Changed: k 10 → 3."
    assert changed_words([address]) == "Changed: url http://a:1 → http://a:2."
    assert "url http://a:1" in changed_words([history, address])
    corpus = Difference("index.corpus_hash", "0123456789abcdef" * 2, "fedcba9876543210" * 2)
    assert changed_words([corpus]) == "Changed: corpus_hash 01234567… → fedcba98…."
    file = [Difference("answerer.imported_sha256", "a" * 64, "b" * 64)]
    file.append(Difference("api.path", "old.jsonl", "new.jsonl"))
    assert changed_words(file) == (
        "The answers come from a file: what changed in the bot is not known."
    )
    model = Difference("answerer.model", "small", "large")
    assert changed_words([*file, model]) == "Changed: model small → large."


def test_new_labels_beside_the_set_are_said(tmp_path: Path) -> None:
    """The set is the same, and a file of labels gives twelve questions other gold."""
    rows = relabelled(first_set())
    labels = [
        {"case_id": f"q{number}", "gold_supports": rows[number]["gold_supports"]}
        for number in BASE_FAILS[:12]
    ]
    bare = first_set()
    for number in BASE_FAILS[:12]:
        del bare[number]["gold_supports"]
    path = write_set(tmp_path / "set.jsonl", bare)
    before = [
        {"case_id": f"q{number}", "gold_supports": case(number)["gold_supports"]}
        for number in BASE_FAILS[:12]
    ]
    write_set(tmp_path / "retrieval_labels.jsonl", before)
    make_run(tmp_path, "first", path)
    write_set(tmp_path / "retrieval_labels.jsonl", labels)
    make_run(tmp_path, "new", path)
    done = call(compare_runs, tmp_path, "first", "new")
    text = " ".join(done.stdout.split())
    assert "first was scored again with the labels of the new run, which changed in 12" in text
    assert "on the 140 cases that did not change" in text


def test_one_base_is_not_scored_again_for_two_sets(base: Path, tmp_path: Path) -> None:
    """It can hold the labels of one of them only; which, the order of the words would decide."""
    edited(tmp_path, base, relabelled)
    make_run(tmp_path, "other", write_set(tmp_path / "set.jsonl", first_set()))
    refused = call(compare_runs, tmp_path, "base", "new", "other")
    assert refused.exit_code == 2
    assert "compare each with the base by itself, or add --no-rescore" in refused.stderr
    assert call(compare_runs, tmp_path, "base", "new", "other", "--no-rescore").exit_code == 0


def test_a_set_named_as_a_label_file_is_found_in_git_with_its_labels(tmp_path: Path) -> None:
    """A file labels/cases.jsonl is one of labels, also when the set beside it has that name."""
    eval_set = write_set(tmp_path / "cases.jsonl", first_set()[:3])
    (tmp_path / "labels").mkdir()
    labels = write_set(tmp_path / "labels/cases.jsonl", [{"case_id": "q0", "tags": ["de"]}])
    hashes = sha256_file(eval_set), labels_sha256(labels.parent, eval_set)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "both")
    place = eval_set, labels.parent
    write_set(labels, [{"case_id": "q0", "tags": ["en"]}])
    with set_with(*hashes, [place]) as version:
        assert version is not None
        assert (version[1] / "cases.jsonl").read_text().count('"de"') == 1


def test_labels_of_another_set_have_no_answer_of_the_run(base: Path, tmp_path: Path) -> None:
    edited(tmp_path, base, lambda rows: rows, commit=True)
    asked_others = write_set(tmp_path / "set.jsonl", [case(number) for number in range(300, 306)])
    make_run(tmp_path, "others", asked_others)
    refused = call(compare_runs, tmp_path, "others", "others", "--labels-of", "HEAD")
    assert refused.exit_code == 2
    assert "has no result of these cases." in refused.stderr
