"""Twenty strange bots, each connected with one command, asked, and scored.

What is right is derived by hand here, for each bot. A number that is shown must be that one. A ✓
must not stand beside a value that the bot did not send, and each odd bot gets a true sentence.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.bots import twenty
from tests.bots.strange import MARKS
from tests.bots.twenty import StrangeBot, World
from tests.commands import read_lines, write_lines

import connect_bot
import run_eval
import score_retrieval

SCRIPTS = Path(__file__).resolve().parents[2] / "eval" / "scripts"

STANDARD = {
    # Ranks 1 1 2 1 3 1 - 2 1 4 1 -: six at 1, two at 2, one at 3, one at 4, two missing.
    "evidence_recall@1": 6 / 12,
    "evidence_recall@3": 9 / 12,
    "evidence_recall@5": 10 / 12,
    "recall@5": 10 / 12,
    "precision@5": 10 / 60,
    "mrr": (6 + 2 / 2 + 1 / 3 + 1 / 4) / 12,
    # 1 / log2(rank + 1): 1, 0.63093, 0.5, 0.430677.
    "ndcg@5": (6 + 2 * 0.6309298 + 0.5 + 0.4306766) / 12,
}
TURKISH = {
    # Ranks 1 2 1 3 1 1 - 1: five at 1, one at 2, one at 3, one missing.
    "evidence_recall@1": 5 / 8,
    "evidence_recall@3": 7 / 8,
    "evidence_recall@5": 7 / 8,
    "precision@5": 7 / 40,
    "mrr": (5 + 1 / 2 + 1 / 3) / 8,
}
NONE_FOUND = {"evidence_recall@5": 0.0, "precision@5": 0.0, "mrr": 0.0}
FIRST_LIST = {
    # Every question gets the sections 0, 3, 6, 9: the gold of these four stands at 1, 2, 3, 4.
    "evidence_recall@1": 1 / 12,
    "evidence_recall@3": 3 / 12,
    "evidence_recall@5": 4 / 12,
    "precision@5": 4 / 60,
    "mrr": (1 + 1 / 2 + 1 / 3 + 1 / 4) / 12,
}
AT_NO_PLACE = r"\b\d+ of \d+\b gold [^\n]*none at its place"
CUT = {"evidence_recall@5": 0.0}
"""Ten of twelve cases hold a cut passage of the gold's file: they cannot be decided. The other two
have no passage of that file."""


@dataclass(frozen=True)
class Expected:
    """What is right for a bot, written before it was connected for the first time."""

    bot: type[StrangeBot]
    connects: bool | None = True
    """None: either is right, but never a wrong number."""
    numbers: dict[str, float] = field(default_factory=lambda: STANDARD)
    scored: int = 12
    """Cases with a score of evidence_recall@5."""
    measured: bool | None = True
    """Whether retrieval has numbers; None: either is right."""
    unproved: str = ""
    """The questions of the proof that must not have a ✓."""
    sentence: str = ""
    """What the scripts must say, as a regular expression."""


EXPECTED = (
    Expected(twenty.DeepEnvelope),
    Expected(twenty.EventStream),
    Expected(twenty.LineStream),
    Expected(twenty.QueryTuples, measured=None),
    Expected(twenty.FormPost),
    Expected(twenty.IdsAlone),
    Expected(twenty.WebPages),
    Expected(twenty.TwoSteps, connects=None, measured=None),
    Expected(twenty.SourceList, measured=None),
    Expected(twenty.Turkish, numbers=TURKISH, scored=8),
    Expected(
        twenty.NoAnswer,
        connects=False,
        unproved="answer",
        sentence="reply has no text in any answer",
    ),
    Expected(twenty.NeighbourPassages, numbers=NONE_FOUND, sentence=AT_NO_PLACE),
    Expected(
        twenty.BlobPaths, connects=False, unproved="place", sentence="none of the labels' files"
    ),
    Expected(twenty.ConstantAnswer, unproved="answer", sentence="same answer"),
    Expected(
        twenty.CutTexts,
        numbers=CUT,
        scored=2,
        measured=None,
        unproved="passages",
        sentence=r"\bcut\b|truncated",
    ),
    Expected(twenty.FreshIds, unproved="place", sentence="other ids|ids (change|differ)"),
    Expected(twenty.Parrot, unproved="answer", sentence="word for word"),
    Expected(twenty.StaleCache, numbers=FIRST_LIST, unproved="passages", sentence="same passages"),
    Expected(twenty.WrongEncoding, connects=None, measured=None, sentence="UTF-8|encod|charset"),
    Expected(
        twenty.ErrorAsAnswer,
        numbers=NONE_FOUND,
        measured=None,
        unproved="answer passages",
        sentence="same answer|no passages",
    ),
)

QUESTIONS_OF_PROOF = {text: name for name, text in MARKS.items()}


def test_the_expectations_are_about_twenty_bots() -> None:
    assert len({expected.bot for expected in EXPECTED}) == 20
    assert sum(expected.connects is True for expected in EXPECTED) >= 16
    for section in twenty.FERRY.sections:
        assert len(section.first) > 60  # a text of 60 characters has nothing of the last sentence
    for world in (twenty.FERRY, twenty.LIBRARY):
        for number in range(len(world.questions)):
            ranking = [world.sections.index(section) for section in world.passages(number)]
            rank = ranking.index(number) + 1 if number in ranking else 0
            assert rank == (world.ranks[number] if number < len(world.ranks) else 0)


@pytest.fixture(params=EXPECTED, ids=[expected.bot.__name__ for expected in EXPECTED])
def expected(request: pytest.FixtureRequest) -> Expected:
    value = request.param
    assert isinstance(value, Expected)
    return value


@pytest.fixture
def bot(expected: Expected) -> Iterator[StrangeBot]:
    with expected.bot() as started:
        yield started


def write_set(folder: Path, kind: type[StrangeBot], world: World) -> Path:
    """The questions with their gold: sections, ids for a bot of ids, quotes where texts are cut."""
    lines, labels = [], []
    for number, question in enumerate(world.questions):
        line: dict[str, Any] = {"id": f"q{number:02d}", "question": question, "answerable": False}
        if number < len(world.ranks):
            section = world.sections[number]
            heading = "" if kind is twenty.CutTexts else section.place
            support = {"rel_path": section.path, "heading_path": heading}
            line |= {"answerable": True, "gold_supports": [{**support, "snippets": [section.last]}]}
            labels.append({"case_id": line["id"], "relevant_chunks": [f"s-{number:03d}"]})
        lines.append(line)
    if kind is twenty.IdsAlone:
        (folder / "labels").mkdir()
        write_lines(folder / "labels" / "retrieval_labels.jsonl", labels)
    return write_lines(folder / "my_set.jsonl", lines)


def run_script(module: Any, *arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(module.main, list(arguments), catch_exceptions=False)
    return done.exit_code, done.output


def run_process(module: Any, *arguments: str) -> tuple[int, str]:
    script = SCRIPTS / f"{module.__name__}.py"
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=200,
        check=False,
    )
    return done.returncode, done.stdout


def command_line(bot: StrangeBot, folder: Path, questions: Path) -> list[str]:
    """The one command of README.md; a form is asked by the curl command that its owner has."""
    url = bot.url + bot.path
    options = ["--eval-set", str(questions), "--name", str(folder / "profile.toml"), "--yes"]
    if isinstance(bot, twenty.FormPost):
        question = bot.world.questions[0]
        curl = f"curl {url} --data-urlencode 'frage={question}'"
        return ["--curl", curl, "--ask", question, *options]
    return [url, *options]


def marks(output: str) -> dict[str, str]:
    """The marks of the proof: answer, passages, place, cited, time."""
    pattern = rf"^\s*(\S) ({'|'.join(re.escape(text) for text in QUESTIONS_OF_PROOF)})"
    return {
        QUESTIONS_OF_PROOF[text]: mark for mark, text in re.findall(pattern, output, re.MULTILINE)
    }


def test_right_numbers_or_none(expected: Expected, bot: StrangeBot, tmp_path: Path) -> None:
    questions = write_set(tmp_path, expected.bot, bot.world)
    run = run_process if expected.bot is twenty.DeepEnvelope else run_script
    code, output = run(connect_bot, *command_line(bot, tmp_path, questions))
    shown = marks(output)
    assert code in (0, 2), output
    if expected.connects is not None:
        assert (code == 0) is expected.connects, output
    assert not [name for name in expected.unproved.split() if shown.get(name) == "✓"], output
    if code:
        assert "✓" not in output
        assert not (tmp_path / "profile.toml").exists()
        assert re.search(expected.sentence, output, re.IGNORECASE), output
        return

    address = re.search(r"(?:API=|--api-url )'?(http://[^\s']+)", output.split("Next:")[-1])
    started = time.perf_counter()
    code, asked = run(
        run_eval,
        *("--api-url", address[1] if address else bot.url, "--store-full-text"),
        *("--profile", str(tmp_path / "profile.toml"), "--eval-set", str(questions)),
        *("--results-dir", str(tmp_path / "results"), "--run-id", "new"),
    )
    wall = (time.perf_counter() - started) * 1000
    assert code == 0, output + asked
    code, scored = run(
        score_retrieval,
        *("--run", "new", "--eval-set", str(questions)),
        *("--results-dir", str(tmp_path / "results")),
    )
    assert code == 0, output + asked + scored
    whole = output + asked + scored
    folder = tmp_path / "results" / "new"
    check_values(bot, shown, read_lines(folder / "results.jsonl"), wall, whole)
    check_numbers(expected, json.loads((folder / "metrics.json").read_text("utf-8")), whole)
    assert re.search(expected.sentence, whole, re.IGNORECASE), whole


def check_values(
    bot: StrangeBot, shown: dict[str, str], lines: list[dict[str, Any]], wall: float, whole: str
) -> None:
    """What has a ✓ is what the bot sent."""
    assert len(lines) == len(bot.world.questions), whole
    for number, line in enumerate(lines):
        assert line["status"] == "ok", (line, whole)
        if shown.get("answer") == "✓":
            assert line["answer"] in bot.true_answers(number), (line, whole)
        if shown.get("passages") == "✓":
            retrieved, texts = line["retrieved"], bot.true_texts(number)
            assert len(retrieved) == len(texts), (line, whole)
            for passage, text in zip(retrieved, texts, strict=True):
                assert passage.get("text") in (None, "", text), (line, whole)
        if shown.get("place") == "✓" and bot.true_texts(number) == [
            section.text for section in bot.world.passages(number)
        ]:
            sections = bot.world.passages(number)
            if isinstance(bot, twenty.IdsAlone):
                places = [passage["chunk_id"] for passage in line["retrieved"]]
                true_places = [twenty.chunk_id(section) for section in sections]
            else:
                # The names that labels use are only those of the labels' files.
                labelled = {each.path for each in bot.world.sections[: len(bot.world.ranks)]}
                pairs = zip(line["retrieved"], sections, strict=True)
                both = [(each, section) for each, section in pairs if section.path in labelled]
                places = [same_path(passage["rel_path"]) for passage, _ in both]
                true_places = [section.path for _, section in both]
            assert places == true_places, (line, whole)
        if bot.pause and shown.get("time") == "✓":
            for name, value in line["latency_ms"].items():
                assert 0.9 * bot.pause * 1000 <= value <= wall, (name, line, whole)


def same_path(path: str) -> str:
    """Matching reads paths in Unicode's form NFC, with slashes."""
    return unicodedata.normalize("NFC", path).replace("\\", "/").removeprefix("./")


def check_numbers(expected: Expected, metrics: dict[str, Any], whole: str) -> None:
    """Each number is the one derived by hand, or there is none."""
    retrieval = metrics["sections"]["retrieval"]["metrics"]
    means = {name: retrieval.get(name) or {} for name in expected.numbers}
    measured = {name: line["mean"] for name, line in means.items() if line.get("n")}
    if expected.measured is not None:
        assert bool(measured) is expected.measured, whole
    for name, mean in measured.items():
        assert mean == pytest.approx(expected.numbers[name], abs=2e-6), (name, mean, whole)
    if measured:
        assert set(measured) == set(expected.numbers), whole
        assert means["evidence_recall@5"]["n"] == expected.scored, whole
