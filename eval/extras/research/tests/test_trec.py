"""TREC files in and out."""

from __future__ import annotations

import gzip
import resource
import string
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import each_row
from tests.scripts.labelling.conftest import Tool

import convert_data
import score_retrieval
from extras.research.qrels import qrels
from extras.research.ranked import RankedLine, _single, order_key
from records.asked import Asked
from records.metrics import load_metrics
from storage import asked_of, read_config

QRELS = "q1 0 d1 2\nq1 0 d2 0\nq2 0 d3 1\n"
RUN = "q1 Q0 d2 1 9.5 mine\nq1 Q0 d1 2 3.25 mine\nq3 Q0 d1 1 1 mine\n"
TOPICS = "q2\tWhat is two?\nq1\tWhat is one?\n"


def test_topics_qrels_and_a_run_become_cases_labels_and_a_run(desk: Any) -> None:
    sources = [desk.file("qrels", QRELS), desk.file("run", RUN), desk.file("topics", TOPICS)]
    report = desk.take("trec", *sources)
    # the topics' order, then what only the run names
    assert [case["id"] for case in desk.cases()] == ["q2", "q1", "q3"]
    assert [case["question"] for case in desk.cases()] == ["What is two?", "What is one?", "q3"]
    grades = desk.labels("retrieval_labels")
    q1, q2 = {"relevance_grades": {"d1": 2, "d2": 0}}, {"relevance_grades": {"d3": 1}}
    assert grades == {"q1": q1, "q2": q2}
    found = {row["test_case_id"]: row["retrieved"] for row in desk.results("mine")}
    ranked = [(one["doc_id"], one["score_final"], one["rank"]) for one in found["q1"]]
    assert ranked == [("d2", 9.5, 1), ("d1", 3.25, 2)]
    assert list(found) == ["q1", "q3"]
    counts = {"judgements": 3, "ranked documents": 3, "topics": 2}
    assert report["rows"] == counts | {"topics without a judgement": 1}
    assert report["changed"] == {"question: the topic has no text, its id replaces it": 1}
    assert not report["lossless"]


def test_lists_stand_in_the_order_of_trec_eval(desk: Any) -> None:
    """By score, then by document, both downwards; ranks do not count. 1e-9 is lost in 32 bits."""
    run = "1 Q0 a 1 1.0 t\n1 Q0 c 2 1.000000001 t\n1 Q0 b 3 2.5 t\n1 Q0 d 9 1.0 t\n"
    report = desk.take("trec", desk.file("run", run))
    (result,) = desk.results("t")
    assert [one["doc_id"] for one in result["retrieved"]] == ["b", "d", "c", "a"]
    assert list(report["changed"].values()) == [1, 1]  # no text of the topic; the order


def test_lines_of_a_topic_need_not_stand_together(desk: Any) -> None:
    run = "1 Q0 a 1 5 t\n2 Q0 x 1 5 t\n\n1 Q0 b 2 4 t\n2 Q0 y 2 4 t\n1 Q0 c 3 3 t\n"
    desk.take("trec", desk.file("run", run))
    lists = [[one["doc_id"] for one in row["retrieved"]] for row in desk.results("t")]
    assert lists == [["a", "b", "c"], ["x", "y"]]


def test_runs_of_the_same_tag_are_named_by_their_files(desk: Any) -> None:
    sources = [desk.file(f"{name}.txt", f"1 Q0 {name} 1 1 same\n") for name in ("a", "b")]
    desk.take("trec", *sources)
    assert {path.name for path in (desk.folder / "out/results").iterdir()} == {"a", "b"}
    assert desk.results("b")[0]["retrieved"][0]["doc_id"] == "b"


def test_every_fault_is_told_at_once(desk: Any) -> None:
    lines = ["q1 0 d1 2", "q1 0 d1", "q1 0 d2 nan", "q1 0 d3 1e999", "q1 0 d1 2", "q1 0 d1 1"]
    lines += ["q1 0 \xff 1", "q1 0 d9 1" + 30 * "0"]
    qrels = desk.file("qrels", "\n".join(lines).encode("latin-1"))
    run = desk.file("run", "q1 Q0 d1 1 inf t\nq1 Q0 d1 1 2 t\nq1 Q0 d1 2 1 t\n")
    said = desk.refused("trec", qrels, run)
    for place in (
        f"{qrels}:2: has 3 columns; qrels have 4",
        f"{qrels}:3: relevance: 'nan' is not a finite number",
        f"{qrels}:4: relevance: '1e999' is not a finite number",
        f"{qrels}:6: relevance: 'd1' of topic 'q1' has another grade on an earlier line",
        f"{qrels}:7: is not UTF-8",
        f"{qrels}:8: relevance: the grade of 'd9' is too large; write a small whole number",
        f"{run}:1: score: 'inf' is not a finite number",
        f"{run}:3: document: 'd1' is also on line 2 for this topic",
    ):
        assert place in said
    assert "8 problems" in said


def test_columns_without_a_place_are_counted(desk: Any) -> None:
    qrels = desk.file("qrels", "q1 3 d1 1\nq1 0 d2 1\n")
    run = desk.file("run", "q1 Q0 d1 1 2 a\nq1 Q0 d2 2 1 b\n")
    assert desk.take("trec", qrels, run)["left_out"] == {
        "iterations (second column of qrels)": 1,
        "tags of lines, where a run has several": 2,
    }


def test_what_a_file_is_must_be_seen(desk: Any) -> None:
    assert "has 3 columns" in desk.refused("trec", desk.file("x", "a b c\n"))
    assert "has no case (left out: empty files: 1)" in desk.refused("trec", desk.file("y", "\n\n"))


def test_a_byte_order_mark_and_crlf_are_taken(desk: Any) -> None:
    desk.take("trec", desk.file("qrels", b"\xef\xbb\xbfq1 0 d1 1\r\nq2 0 d2 1\r\n"))
    assert desk.labels("retrieval_labels")["q1"] == {"relevance_grades": {"d1": 1}}


def test_names_with_blanks_are_encoded_and_decoded(desk: Any) -> None:
    grades = {"relevance_grades": {"my note.md": 3, "50%.md": 1}}
    row = {"id": "a case", "question": "Two\nlines?"} | grades
    desk.take("json", desk.rows("rows.jsonl", [row]))
    report = desk.give("trec", "trec")
    assert desk.text("trec/qrels.txt") == "a%20case 0 my%20note.md 3\na%20case 0 50%.md 1\n"
    assert desk.text("trec/topics.tsv") == "a%20case\tTwo lines?\n"
    assert sorted(report["changed"].values()) == [1, 2]
    desk.take("trec", str(desk.folder / "trec/qrels.txt"), out="back", more=["--decode-names"])
    assert desk.labels("retrieval_labels", "back") == {"a case": grades}


def test_scores_that_would_change_the_order_are_replaced(desk: Any) -> None:
    """Ranks say a, b; equal scores would make trec_eval put b before a."""
    desk.take("trec", desk.file("run", "1 Q0 b 1 2 t\n1 Q0 a 2 1 t\n"))
    path = desk.folder / "out/results/t/results.jsonl"
    path.write_text(path.read_text().replace("2.0", "7").replace("1.0", "7"))
    assert desk.give("trec", "same", run="t")["changed"] == {}
    path.write_text(path.read_text().replace('"b"', '"A"').replace("7", "8", 1))
    text = path.read_text().replace('"score_final":8', '"score_final":5')
    path.write_text(text)
    report = desk.give("trec", "new", run="t")
    assert list(report["changed"].values()) == [1]
    assert desk.text("new/run.txt") == "1 Q0 A 1 2.0 t\n1 Q0 a 2 1.0 t\n"


def test_grades_of_supports_and_fractions_are_told(desk: Any) -> None:
    rows: list[Record] = [{"id": "a", "relevance_grades": {"x": 0.25, "y": 2.5, "z": -0.5}}]
    rows += [{"id": "b", "gold_supports": [{"rel_path": "n.md"}], "category": "general"}]
    rows = [row | {"question": "?"} for row in rows]
    desk.take("json", desk.rows("rows.jsonl", rows))
    report = desk.give("trec", "trec")
    assert desk.text("trec/qrels.txt") == "a 0 x 1\na 0 y 2\na 0 z -1\nb 0 n.md 3\n"
    assert report["changed"] == {
        "cases whose gold_supports are written as whole files": 1,
        "grades that are not whole numbers, rounded": 3,
    }
    assert report["left_out"] == {"case.category": 1}


@each_row(("score", "held"), [(0.1, 0.10000000149011612), (1e300, float("inf"))])
def test_a_score_in_single_precision(score: float, held: float) -> None:
    assert _single(score) == held
    assert order_key(RankedLine("b", "", -1e300)) == (float("-inf"), "b")


LETTERS = string.ascii_letters + string.digits + "-_./%#é漢\u00a0\u2028"
NAMES = st.text(LETTERS, min_size=1, max_size=8).filter(str.strip)
JUDGED = st.dictionaries(NAMES, st.dictionaries(NAMES, st.integers(-2, 9), min_size=1), min_size=1)
LISTS = st.dictionaries(NAMES, st.floats(-1e6, 1e6, width=32), max_size=6)


@settings(max_examples=50)
@given(qrels=JUDGED, lists=st.dictionaries(NAMES, LISTS, max_size=4))
def test_qrels_and_runs_come_back_as_they_were(
    desk_class: Any, qrels: dict[str, dict[str, int]], lists: dict[str, dict[str, float]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        desk = desk_class(Path(folder))
        lines = sorted(f"{q} 0 {d} {g}" for q, one in qrels.items() for d, g in one.items())
        sources = [desk.file("qrels", "\n".join(lines) + "\n")]
        ranked = []
        for topic, scores in lists.items():
            order = sorted(scores, key=lambda name: (scores[name], name), reverse=True)
            ranked += [f"{topic} Q0 {d} {n} {scores[d]!r} t" for n, d in enumerate(order, 1)]
        if ranked:
            sources.append(desk.file("run", "\n".join(ranked) + "\n"))
        desk.take("trec", *sources)
        report = desk.give("trec", "back", run="t" if ranked else "")
        assert sorted(desk.text("back/qrels.txt").split("\n")[:-1]) == lines
        assert report["changed"] == {}
        if ranked:
            assert sorted(desk.text("back/run.txt").split("\n")[:-1]) == sorted(ranked)


CLASSIC = """
<top>
<num> Number: 301
<title> International Organized Crime

<desc> Description:
Identify organizations &amp; groups.

<narr> Narrative:
Relevant are names.
</top>

<top>
<num> Number: 302
<title>
</top>
"""
XML = """<topics task="t">
<topic number="301">
  <query>coronavirus origin</query>
  <question>what is the origin</question>
</topic>
</topics>
"""


def test_topics_in_markup(desk: Any) -> None:
    qrels = desk.file("qrels.txt", "301 0 d1 1\n")
    said = desk.refused("trec", qrels, desk.file("topics.txt", CLASSIC))
    assert "topics.txt:13: is not a topic; write its number" in said
    whole = CLASSIC.replace("<title>\n", "<title> Polio\n")
    report = desk.take("trec", qrels, desk.file("topics.txt", whole))
    first, second = desk.cases()
    metadata = {"description": "Identify organizations & groups."}
    metadata |= {"narrative": "Relevant are names."}
    question = "International Organized Crime"
    assert first == {"id": "301", "question": question, "metadata": metadata}
    assert (second["id"], second["question"]) == ("302", "Polio")
    assert report["kept"] == {"description": 1, "narrative": 1}
    desk.take("trec", qrels, desk.file("topics.xml", XML), out="xml")
    (case,) = desk.cases("xml")
    assert (case["id"], case["question"]) == ("301", "coronavirus origin")
    assert case["metadata"] == {"question": "what is the origin"}


def test_packed_files_of_one_name(desk: Any) -> None:
    """They are unpacked apart, and messages name the packed file."""
    run = "{0} Q0 {1} 1 2.5 {2}\n"
    first = desk.file("a/run.gz", gzip.compress(run.format(1, "d1", "one").encode()))
    second = desk.file("b/run.gz", gzip.compress(run.format(1, "x2", "two").encode()))
    desk.take("trec", first, second)
    found = [desk.results(name)[0]["retrieved"][0]["chunk_id"] for name in ("one", "two")]
    assert found == ["d1", "x2"]
    broken = desk.file("b/run.gz", gzip.compress(run.format(1, "x2", "t w o").encode()))
    assert f"{broken}:1: has 8 columns" in desk.refused("trec", first, broken)


def test_an_export_without_judgements_comes_back(desk: Any) -> None:
    """Its qrels.txt is an empty file, which says that there are none."""
    sources = [desk.file("qrels.txt", ""), desk.file("run.txt", "1 Q0 d1 1 2.5 t\n")]
    report = desk.take("trec", *sources)
    assert report["left_out"] == {"empty files": 1}
    assert desk.results("t")[0]["retrieved"][0]["chunk_id"] == "d1"


def test_a_run_was_asked_every_topic_with_a_relevant_document(desk: Any) -> None:
    """Asked are q1 and q2 (relevant documents), and q3, which the run answers though nobody judged
    it. q4 has no relevant document, so a missing list loses nothing. q2 has no list: missing."""
    sources = [desk.file("qrels", QRELS + "q4 0 d1 0\n"), desk.file("run", RUN)]
    desk.take("trec", *sources, desk.file("other", "q4 Q0 d1 1 1 other\n"))
    results = desk.folder / "out/results"
    assert asked_of(read_config(results / "mine")) == Asked(3)
    assert asked_of(read_config(results / "other")) == Asked(3)  # q1, q2, and q4 that it answers
    words = ["--eval-set", str(desk.folder / "out/eval_set.jsonl"), "--results-dir", str(results)]
    words += ["--labels-dir", str(desk.folder / "out/labels")]
    for run, missing, said in (("mine", 1, "1 of 3 asked cases has"), ("other", 2, "2 of 3")):
        done = CliRunner().invoke(score_retrieval.main, [*words, "--run", run])
        assert done.exit_code == 0, done.output
        assert f"Note: {said}" in done.stderr
        assert "make the run again" in done.stderr
        head = load_metrics(results / run / "metrics.json")
        assert (head["asked"], head["missing"]) == (3, missing)


@pytest.mark.slow
@pytest.mark.thorough
def test_a_large_run_is_never_whole_in_memory(tmp_path: Path) -> None:
    """20,000 topics with 40 documents each: a file of 30 MB. 300 MB would not do for it in memory
    as objects; the address space is bounded so that it fails when it is kept."""
    run = tmp_path / "run.txt"
    with open(run, "w") as file:
        for topic in range(20_000):
            file.writelines(
                f"{topic} Q0 document-number-{topic * 7 + rank} {rank} {100 - rank} t\n"
                for rank in range(1, 41)
            )
    limit = 400 * 2**20
    done = subprocess.run(
        [sys.executable, convert_data.__file__, "import", "trec", str(run), "-o", "out"],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert done.returncode == 0, done.stderr
    assert "written: results/t/results.jsonl: 20000" in done.stderr


Record = dict[str, Any]


def test_qrels() -> None:
    supports: list[Record] = [
        {"rel_path": "a b.md", "heading_path": "Plans > Free", "grade": 1},
        {"rel_path": "a b.md", "heading_path": "Other", "grade": 2},
        {"rel_path": "c.md"},
    ]
    cases: dict[str, Record] = {"q 1": {"id": "q 1", "question": "?", "gold_supports": supports}}
    cases["q2"] = {"id": "q2", "question": "?", "answerable": False}
    rows: list[Record] = [
        {"rel_path": "c.md", "heading_path": "Part", "grade": 0},
        {"rel_path": "no.md", "heading_path": "", "grade": 0},
        {"rel_path": "unseen.md", "heading_path": "", "grade": None},
    ]
    judged = {"q 1": {"rows": rows}, "q2": {"rows": rows[1:2]}}
    of_files = ["q%201 0 a%20b.md 2", "q%201 0 c.md 3", "q%201 0 no.md 0"]
    assert sorted(qrels(cases, judged, "doc")) == of_files
    assert sorted(qrels(cases, judged, "anchor")) == [
        "q%201 0 a%20b.md#Other 2",
        "q%201 0 a%20b.md#Plans%20%3E%20Free 1",
        "q%201 0 c.md 3",
        "q%201 0 c.md#Part 0",
        "q%201 0 no.md 0",
    ]


def test_export_qrels(tool: Tool) -> None:
    tool.write([{"id": "d", "question": "?", "gold_supports": [{"rel_path": "x.md", "grade": 2}]}])
    assert tool.run("--export-qrels", "doc").stdout == "d 0 x.md 2\n"
