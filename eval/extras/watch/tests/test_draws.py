"""Cases drawn from traces: nothing private is written, nothing twice, every scorer takes them."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.formats.secrets_in_words import planted
from tests.processes import call_script

from decisions.conditions import read_run
from extras.watch.tests.conftest import DAY, NOW, REFUSAL, START, call, otlp, span, trace
from records.errors import StorageError


def everything(folder: Path) -> str:
    return "\n".join(path.read_text("utf-8") for path in folder.rglob("*") if path.is_file())


def test_no_planted_secret_is_written(folder: Path, tmp_path: Path, look: Any) -> None:
    """Each stands in one of: question, answer, passage, ids, path, session, trace id, error, and
    an attribute; or was said in an earlier turn."""
    secrets = list(planted(random.Random(7)))
    assert len({value for value, _ in secrets}) == 200
    lines = []
    for n, (value, words) in enumerate(secrets):
        topic = f"crane part {string.ascii_lowercase[n % 26]}{n}x"
        asked = f"How is the {topic} mended?"
        spot = n % 8
        spans = trace(
            f"{value} {n}" if spot == 3 else f"t{n}",
            question=f"{asked} {words}" if spot == 0 else asked,
            answer=f"With oil. {words}" if spot == 1 else f"With oil for {topic}.",
            passages=(f"Oil helps. {words}", f"The {topic}.") if spot == 2 else (f"The {topic}.",),
            session=words if spot == 4 else None,
        )
        if spot == 5:
            keys = ("id", "metadata")
            texts = (value, json.dumps({"file_path": f"docs/{value}.md", "author": words}))
            for key, text in zip(keys, texts, strict=True):
                name = f"retrieval.documents.0.document.{key}"
                spans[0]["attributes"] = [a for a in spans[0]["attributes"] if a["key"] != name]
                spans[0]["attributes"].append({"key": name, "value": {"stringValue": text}})
        if spot == 6:
            spans[1]["attributes"] = spans[1]["attributes"][:2]
            spans[1]["attributes"].append({"key": "user", "value": {"stringValue": words}})
            spans[1]["status"] = {"code": 2, "message": f"failed: {words}"}
        if spot == 7:
            spans.append(
                span(f"t{n}", "chat", "root", START, 1, openinference__span__kind="LLM",
                     llm__input_messages__0__message__role="user",
                     llm__input_messages__0__message__content=words,
                     llm__input_messages__1__message__role="assistant",
                     llm__input_messages__1__message__content=f"You said: {words}",
                     llm__input_messages__2__message__role="user",
                     llm__input_messages__2__message__content=asked)
            )  # fmt: skip
        lines.append(otlp(*spans))
    (folder / "spans.jsonl").write_text("".join(lines))
    outcome = look(cases=200, sample=60, output=tmp_path / "drawn")
    assert outcome.draws[0].cases == 200
    assert outcome.draws[1].cases > 40  # by the hash of their ids
    written = everything(tmp_path / "drawn")
    missed = [(n % 8, value) for n, (value, _) in enumerate(secrets) if value in written]
    assert missed == []
    assert written.count("crane part") >= 240  # questions and answers are there
    index = (tmp_path / "index.sqlite").read_bytes()
    assert b"crane" not in index
    assert [value for value, _ in secrets if value.encode() in index] == []
    drafts = (tmp_path / "drawn/cases/eval_set.jsonl").read_text().splitlines()
    histories = [case["history"] for line in drafts if "history" in (case := json.loads(line))]
    assert len(histories) == 25  # 200 / 8
    assert {m["role"] for history in histories for m in history} == {"user", "assistant"}


def busy(folder: Path, days: int = 24, change: int = 15) -> None:
    """40 traces a day; from a day on one in four is a refusal, before that one in twenty."""
    lines = []
    for n in range(days * 40):
        day, number = divmod(n, 40)
        refuses = number % (4 if day >= change else 20) == 0
        question = f"How is part {number} of crane {day} greased?"
        answer = REFUSAL if refuses else "With oil, once a week, as the maker of the crane says."
        at = START + day * DAY + number * 60
        lines.append(otlp(*trace(f"{day}.{number}", at=at, question=question, answer=answer)))
    (folder / "spans.jsonl").write_text("".join(lines))


def test_an_alarm_its_day_and_cases_that_show_it(folder: Path, tmp_path: Path) -> None:
    busy(folder)
    known = tmp_path / "set.jsonl"
    known.write_text('{"id": "a", "question": "How is part 4 of crane 20 greased?"}\n')
    index = ["--index", str(tmp_path / "index.sqlite")]
    words = [str(folder), *index, "--check-share", "0", "--reference", "2026-03-01..2026-03-12"]
    draws = ["--cases", "12", "--sample", "100", "--output", str(tmp_path / "drawn")]
    draws += ["--eval-set", str(known), "--html", str(tmp_path / "page.html")]
    done = call(*words, *draws, "--fail-on", "alarm", "--json")
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert report["alarms"] == ["refusals"]
    (refusals,) = [figure for figure in report["figures"] if figure["name"] == "refusals"]
    since = date.fromisoformat(refusals["watch"]["current"]["since"])
    assert abs((since - date(2026, 3, 16)).days) <= 2  # day 15 after 1 March
    assert (refusals["bad"], refusals["n"]) == (15 * 2 + 9 * 10, 24 * 40)
    drafts = [json.loads(x) for x in (tmp_path / "drawn/cases/eval_set.jsonl").open()]
    shown = [case for case in drafts if "refusals" in case["tags"]]
    assert len(drafts) == 12
    assert len(shown) >= 5
    assert all(int(case["question"].split()[6]) >= 13 for case in shown)  # since the rise
    page = (tmp_path / "page.html").read_text()
    assert "ALARM in 1 of" in page
    # The frozen reference stays; another one needs a word.
    again = call(str(folder), *index, "--check-share", "0")
    assert again.returncode == 0
    assert again.stdout.rstrip().splitlines()[-1].startswith("ALARM in 1 of")
    other = call(str(folder), *index, "--reference", "2026-03-02..2026-03-12")
    assert other.returncode == 2
    assert "--replace-reference" in other.stderr
    check_runs(tmp_path / "drawn", known)


def check_runs(drawn: Path, eval_set: Path) -> None:
    """Scorers take the sample, and what compares refuses the enriched draw alone."""
    for kind, run in (("sample", "sample-uniform"), ("cases", "cases-enriched")):
        place = ["--eval-set", str(drawn / kind / "eval_set.jsonl")]
        place += ["--results-dir", str(drawn / kind / "results"), "-q"]
        scored = call_script("score_abstention", *place)
        assert scored.returncode == 0, scored.stderr
        config = json.loads((drawn / kind / "results" / run / "config.json").read_text())
        assert config["run"]["sample"]["kind"] == run.partition("-")[2]
    sample = config_of_sample(drawn)
    assert sample["p"] == pytest.approx(100 / 960, abs=1e-6)
    read_run(drawn / "sample/results/sample-uniform")
    with pytest.raises(StorageError, match="enriched"):
        read_run(drawn / "cases/results/cases-enriched")
    compared = call_script(
        "compare_runs", str(drawn / "sample/results/sample-uniform"),
        str(drawn / "cases/results/cases-enriched"), "--eval-set", str(eval_set),
    )  # fmt: skip
    assert compared.returncode == 2
    place = ["--results-dir", str(drawn / "cases/results")]
    place += ["--eval-set", str(drawn / "cases/eval_set.jsonl")]
    gated = call_script("gate_run", "--run", "cases-enriched", *place)
    assert (gated.returncode, "sample: enriched" in gated.stderr) == (2, True), gated.stderr


def config_of_sample(drawn: Path) -> dict[str, Any]:
    path = drawn / "sample/results/sample-uniform/config.json"
    sample: dict[str, Any] = json.loads(path.read_text())["run"]["sample"]
    return sample


def test_sessions_are_the_unit_and_late_traces_change_nothing_shown(
    folder: Path, look: Callable[..., Any]
) -> None:
    spans = [
        *trace("a1", session="a"), *trace("a2", session="a", answer=REFUSAL),
        *trace("a3", session="a", at=START + DAY), *trace("b", session="b"), *trace("c"),
    ]  # fmt: skip
    (folder / "1.jsonl").write_text(otlp(*spans))
    outcome = look()
    # Sessions a and b and the trace c on the first day, session a again on the second.
    days = [(day.bad, day.n) for day in outcome.series["refusals"]]
    assert days == [(1, 3), (0, 1)]
    assert (outcome.unit, outcome.units, outcome.traces) == ("sessions", 4, 5)
    (folder / "2.jsonl").write_text(otlp(*trace("late", session="z", answer=REFUSAL)))
    days = [(day.bad, day.n) for day in look(now=NOW + 1).series["refusals"]]
    assert days == [(1, 3), (1, 2)]  # on the last day that was shown
