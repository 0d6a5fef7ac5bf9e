"""What people say of watched answers: the share that is rated bad, and the cases drawn by it."""

from __future__ import annotations

import hmac
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from extras.watch.tests.conftest import NOW, START, call, otlp, trace
from extras.watch.trace_index import hash_of


def annotation(span: str, user: str, value: float, **more: Any) -> dict[str, Any]:
    """As Phoenix lists it: it names a span, and no trace."""
    row: dict[str, Any] = {"span_id": span, "name": "thumbs", "annotator_kind": "HUMAN"}
    result = {"score": value, "label": None, "explanation": "joe@example.com says"}
    row |= {"identifier": user, "result": result, "updated_at": "2026-03-02T10:00:00+00:00"}
    return row | more


def score(name: str, value: float, source: str = "API", **more: Any) -> dict[str, Any]:
    """As Langfuse lists it: it names a trace."""
    row = {"id": "s", "traceId": "t0", "name": name, "value": value, "source": source}
    return row | {"dataType": "NUMERIC", "timestamp": "2026-03-02T10:00:00Z"} | more


def write(path: Path, *rows: Any) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_the_share_of_rated_answers_that_are_rated_bad(
    folder: Path, tmp_path: Path, look: Callable[..., Any]
) -> None:
    """t0: maria says bad. t1: maria said bad, later good. t2: maria bad, li good: 0.5 is not bad.
    t3: one star of five; t4: five stars: on no known scale. t5: its search is rated, not it."""
    ratings = [
        annotation("t0.root", "maria", 0),
        annotation("t1.root", "maria", 1, updated_at="2026-03-03T10:00:00+00:00"),
        annotation("t1.root", "maria", 0),
        annotation("t2.root", "maria", 0),
        annotation("t2.root", "li", 1),
        annotation("t3.root", "li", 1, name="stars"),
        annotation("t4.root", "li", 5, name="stars"),
        annotation("t5.retrieve", "li", 0),
        annotation("t5.root", "m-1", 0, annotator_kind="LLM"),
        annotation("t99.root", "li", 0),
        score("bleu", 0),
    ]
    body = {"data": ratings, "next_cursor": None}
    (folder / "annotations.json").write_text(json.dumps(body))  # read before the traces
    (folder / "spans.jsonl").write_text(otlp(*(s for n in range(6) for s in trace(f"t{n}"))))
    outcome = look()
    feedback = outcome.feedback
    assert (feedback["rated"], feedback["bad"], feedback["share"]) == (3, 1, 0.333333)
    assert feedback["clusters"] == 2  # maria alone rated t0 and t1; t2 has two users
    low, high = feedback["ci95"]
    assert 0 <= low < 1 / 3 < high <= 1
    days = [(day.bad, day.n) for day in outcome.series["feedback"]]
    assert days == [(1, 3)]
    assert outcome.counts["ratings by models or programs: no feedback"] == 1
    left = outcome.counts["ratings that do not say whether a person gave them: no feedback"]
    assert left == 1
    # Days later somebody rates t5 bad, and t0's user thinks better of it; the rest comes again.
    later = {"timestamp": "2026-03-09T10:00:00Z", "authorUserId": "maria"}
    good = score("thumbs", 1, **later)
    write(folder / "scores.jsonl", score("user-feedback", 0, traceId="t5"), good, *ratings)
    feedback = look(now=NOW + 1).feedback
    assert (feedback["rated"], feedback["bad"]) == (4, 1)
    index = (tmp_path / "index.sqlite").read_bytes()
    assert not [text for text in (b"maria", b"joe@", b"thumbs") if text in index]
    with sqlite3.connect(tmp_path / "index.sqlite") as database:
        raters = {row[0] for row in database.execute("SELECT rater FROM ratings")}
    assert hash_of("h-" + hmac.new(b"k" * 64, b"maria", "sha256").hexdigest()[:16]) in raters
    assert hash_of("maria") not in raters  # who knows the names cannot find them again


def test_a_rating_in_the_trace_itself(folder: Path, look: Callable[..., Any]) -> None:
    spans = trace("a") + trace("b")
    value = {"key": "gen_ai.evaluation.score.label", "value": {"stringValue": "thumbs down"}}
    name = {"key": "gen_ai.evaluation.name", "value": {"stringValue": "user_feedback"}}
    event: dict[str, Any] = {"name": "gen_ai.evaluation.result", "attributes": [name, value]}
    spans[1]["events"] = [event]
    log: dict[str, Any] = {"traceId": "b", "spanId": "b.root", "timeUnixNano": f"{START}000000000"}
    log |= {"eventName": event["name"], "attributes": event["attributes"]}
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": [log]}]}]}
    (folder / "spans.jsonl").write_text(otlp(*spans) + json.dumps(logs) + "\n")
    outcome = look()
    assert outcome.traces == 2
    assert (outcome.feedback["rated"], outcome.feedback["bad"]) == (2, 2)


def test_cases_are_drawn_by_bad_ratings_with_a_known_probability(
    folder: Path, tmp_path: Path
) -> None:
    """60 answers, of which people rated 30 bad. The drafts take turns between this stratum and the
    ordinary one; 4 of 8 are rated bad: the first 4 of 30 in the order of the hashes."""
    topics = ["crane", "boat", "lamp", "wheel", "engine", "ladder"]
    lines = [
        otlp(*trace(f"t{n}", question=f"Why does the {topics[n % 6]} number {n} need {n * n} oils?",
                    answer="With oil, once a week."))
        for n in range(60)
    ]  # fmt: skip
    (folder / "spans.jsonl").write_text("".join(lines))
    write(folder / "scores.jsonl", *(
        score("user-feedback", n % 2, traceId=f"t{n}") for n in range(60)))  # fmt: skip
    index, drawn = ["--index", str(tmp_path / "i.sqlite")], tmp_path / "drawn"
    words = [str(folder), *index, "--check-share", "0", "--cases", "8", "--output", str(drawn)]
    done = call(*words)
    assert done.returncode == 0, done.stderr
    # Wilson's interval of 30 in 60 with t's quantile of 59 degrees, 2.001, and the sample variance
    # 0.25 / 59, as of n = 59: 0.5 ± 2.001 sqrt(0.25 / 59 + 4.004 / (4 · 59²)) / (1 + 4.004 / 59).
    share = "50.0 % (95 % interval 37.4 % to 62.6 %)"
    assert f"People rated 60 answers of 60, 30 of them bad: {share}." in done.stdout
    assert "Raters choose what they rate: this is no share of all answers" in done.stdout
    drafts = [json.loads(line) for line in (drawn / "cases/eval_set.jsonl").open()]
    rated = [int(case["question"].split()[5]) for case in drafts if "feedback" in case["tags"]]
    others = [int(case["question"].split()[5]) for case in drafts if "feedback" not in case["tags"]]
    assert len(rated) == len(others) == 4
    assert [n % 2 for n in rated + others] == [0, 0, 0, 0, 1, 1, 1, 1]
    config = json.loads((drawn / "cases/results/cases-enriched/config.json").read_text())
    known = config["run"]["sample"]["strata"]["feedback"]
    assert known == {"p": pytest.approx(4 / 30, abs=1e-6), "traces": 30}
    assert set(rated) == {n for n, _ in first_by_hash(range(0, 60, 2))[:4]}


def test_a_stratum_that_was_looked_at_whole_has_the_probability_1(
    folder: Path, tmp_path: Path, look: Callable[..., Any]
) -> None:
    """Three answers are rated bad, two of them to the same question: one of these is left out."""
    asked = ["How is a crane greased?", "How is a crane greased?", "Why do boats float at all?"]
    lines = [otlp(*trace(f"t{n}", question=text)) for n, text in enumerate(asked)]
    (folder / "spans.jsonl").write_text("".join(lines))
    write(folder / "s.jsonl", *(score("thumbs", 0, traceId=f"t{n}") for n in range(3)))
    (draw,) = look(cases=5, output=tmp_path / "drawn").draws
    assert (draw.cases, draw.probabilities) == (2, {"feedback": {"p": 1.0, "traces": 3}})


def first_by_hash(numbers: range) -> list[tuple[int, int]]:
    """Traces in the order of the hashes of their ids, as the index says that it makes them."""
    from hashlib import blake2b

    keys = [(n, blake2b(f"t{n}".encode(), digest_size=8).digest()) for n in numbers]
    return sorted(((n, int.from_bytes(key) >> 1) for n, key in keys), key=lambda pair: pair[1])


def test_scores_in_a_trace_of_langfuse_and_beside_it(folder: Path, look: Any) -> None:
    """A score has an id, a time and an environment, as a trace has, and is none."""
    head = {"projectId": "p", "environment": "default", "timestamp": "2026-03-01T10:00:00Z"}
    traces: list[dict[str, Any]] = [
        {"id": f"t{n}", "name": "ask", "input": {"question": "What is A?"}, "latency": 1,
         "output": {"answer": "An A of some length."}, "observations": []} | head
        for n in range(2)
    ]  # fmt: skip
    traces[0]["scores"] = [score("user-feedback", 0)]
    write(folder / "langfuse.jsonl", *traces, score("user-feedback", 1, traceId="t1", **head))
    outcome = look()
    assert outcome.traces == 2
    assert (outcome.feedback["rated"], outcome.feedback["bad"]) == (2, 1)
