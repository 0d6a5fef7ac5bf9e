"""pairs/BASE.jsonl of a run: which of two answers to the same question a judge found better.

The lines are those of verdicts.jsonl (``records.verdicts``), with the metric ``pairs``, or
``pairs.NAME`` by a rubric. A pair has two lines an opinion: part 0 has the run's answer first,
part 1 the base's. A file is of one base; the judge of its last line is the one whose lines count.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import orjson

from judging.kinds import FIRST, SECOND
from records.claim_labels import ClaimLabel, answer_sha256
from records.errors import StorageError
from records.results import TestResult
from records.run import Run
from records.runs import results_file
from records.verdicts import VerdictLine, read_lines

FOLDER = "pairs"

PairKey = tuple[str, int]
"""Case id and repeat of the answer."""

NEW, BASE = "new", "base"

_WINNERS = ({FIRST: NEW, SECOND: BASE}, {FIRST: BASE, SECOND: NEW})
"""Whose answer a verdict names, by the order."""


class PairOrder(msgspec.Struct, frozen=True):
    """The judge's verdict in one order: ``verdict`` as it was given, and whose answer it names
    (``new``, ``base``, or "" for neither and for a quote that no answer has)."""

    verdict: str
    winner: str
    quote: str = ""
    reason: str = ""


class PairOpinion(msgspec.Struct, frozen=True):
    """One opinion on a pair. ``orders``: run's answer first, then base's first; empty where the
    answers are equal and no judge was asked."""

    case_id: str
    repeat: int
    opinion: int = 0
    orders: tuple[PairOrder, ...] = ()

    @property
    def outcome(self) -> int:
        """1 where the run's answer won in both orders, -1 where the base's did, else 0."""
        winners = {order.winner for order in self.orders}
        return {NEW: 1, BASE: -1}.get(winners.pop(), 0) if len(winners) == 1 else 0


class PairFile(msgspec.Struct, frozen=True):
    """The verdicts of one judge on the pairs of two runs by one question.

    ``failed``: pairs without a verdict, since a call failed. ``not_applicable``: pairs that lack an
    answer. ``stale``: pairs whose answers have changed since. ``longer``: 1 where the run's answer
    has more characters than the base's, -1 where it has fewer, else 0. ``answers``: the hashes of
    both answers, by which people's labels name them. ``texts``: question, the run's answer and the
    base's.
    """

    metric: str
    judge: Mapping[str, Any]
    prompt: Mapping[str, Any]
    verdicts: tuple[PairOpinion, ...]
    failed: int = 0
    not_applicable: int = 0
    stale: int = 0
    longer: Mapping[PairKey, int] = {}
    answers: Mapping[PairKey, tuple[str, str]] = {}
    texts: Mapping[PairKey, tuple[str, str, str]] = {}


def pairs_file(run: Path, base: Path) -> Path:
    """The file of a run's pairs with a base."""
    return run / FOLDER / f"{base.resolve().name}.jsonl"


def pair_sha256(new: str | None, base: str | None) -> str:
    """The hash of a pair's inputs, as in a line's ``subject``: 24 hex digits of both answers."""
    return hashlib.sha256(orjson.dumps([new, base])).hexdigest()[:24]


def answers_by_key(run: Path) -> dict[PairKey, TestResult]:
    """The answers of a run without their passages, by case and repeat; failed calls are left out.

    Raises StorageError for a run that is not finished."""
    path = results_file(run)
    if not path.exists():
        raise StorageError(f"{path}: no such file; finish the run (run_eval --resume).")
    fields = ("test_case_id", "repeat", "status", "question", "answer")
    return {
        (result.test_case_id, result.repeat): result
        for result in Run(run).iter_results(*fields)
        if result.status == "ok"
    }


def read_pairs(run: Path, base: Path) -> list[PairFile]:
    """The judged pairs of a run with a base, a list for each question asked, by its name.

    Empty without a file. Raises StorageError for a damaged one.
    """
    path = pairs_file(run, base)
    lines = list(read_lines(path))
    if not lines or not results_file(base).exists():  # of a committed base there are no answers
        return []
    new, old = answers_by_key(run), answers_by_key(base)
    now = {
        key: pair_sha256(result.answer, old[key].answer)
        for key, result in new.items()
        if key in old
    }
    texts = {key: (new[key].question, new[key].answer or "", old[key].answer or "") for key in now}
    sizes = {key: [len(" ".join(x.split())) for x in both] for key, (_, *both) in texts.items()}
    longer = {key: (mine > other) - (mine < other) for key, (mine, other) in sizes.items()}
    answers = {key: (answer_sha256(a), answer_sha256(b)) for key, (_, a, b) in texts.items()}
    return [
        msgspec.structs.replace(
            _pair_file(metric, lines, now), longer=longer, answers=answers, texts=texts
        )
        for metric in sorted({line["metric"] for line in lines})
    ]


PAIR = "pair"
"""In place of a claim's id in a label of a pair."""

_VALUES = {"left": 1, "right": -1, "equal": 0}


def people_on(labels: Iterable[ClaimLabel], file: PairFile) -> dict[PairKey, int]:
    """The label of most annotators for each pair: 1 the run's answer, -1 the base's, 0 neither.

    Left out: pairs that no one decided, on which as many say one thing as another, and labels of
    other answers. A label names the left answer by ``answer_sha256``, the right one by ``claim``.
    """
    last: dict[tuple[PairKey, str], int | None] = {}
    for label in labels:
        key = label.key[0], label.key[1]
        own = file.answers.get(key)
        sides = label.answer_sha256, label.claim
        if label.metric == file.metric and own is not None and sides in (own, own[::-1]):
            value = _VALUES.get(label.label or "")
            turned = value is not None and sides != own
            last[key, label.annotator] = -value if turned and value is not None else value
    votes: dict[PairKey, Counter[int]] = {}
    for (key, _), value in last.items():
        if value is not None:
            votes.setdefault(key, Counter())[value] += 1
    most = {key: counts.most_common(2) for key, counts in votes.items()}
    return {
        key: said[0][0] for key, said in most.items() if len(said) == 1 or said[0][1] > said[1][1]
    }


def _pair_file(metric: str, lines: list[VerdictLine], now: Mapping[PairKey, str]) -> PairFile:
    own = [line for line in lines if line["metric"] == metric]
    last = own[-1]
    prompts = {line["prompt"].get("name"): line["prompt"] for line in own}
    current = [
        line
        for line in own
        if (line["judge"], line["parameters"]) == (last["judge"], last["parameters"])
        and line["prompt"] == prompts[line["prompt"].get("name")]
    ]
    parts: dict[tuple[str, int, int], dict[int, VerdictLine]] = {}
    for line in current:
        key = line["case_id"], line["repeat"], line["judge_repeat"]
        parts.setdefault(key, {})[line["part"]] = line
    verdicts: list[PairOpinion] = []
    counts = {"failed": 0, "not_applicable": 0, "stale": 0}
    for (case_id, repeat, opinion), by_part in parts.items():
        first = by_part[min(by_part)]
        whole = [by_part[n] for n in range(first["parts"]) if n in by_part]
        status = {line["status"] for line in whole}
        if first.get("subject") != now.get((case_id, repeat)):
            counts["stale"] += opinion == 0
        elif "failed" in status or len(whole) < first["parts"] or not _decided(whole):
            counts["failed"] += opinion == 0
        elif "not_applicable" in status:
            counts["not_applicable"] += opinion == 0
        else:
            asked = [] if "by_code" in first["extra"] else list(enumerate(whole))
            orders = tuple(_order(number, line["verdicts"][0]) for number, line in asked)
            verdicts.append(PairOpinion(case_id, repeat, opinion, orders))
    return PairFile(
        metric,
        last["judge"],
        last["prompt"],
        tuple(verdicts),
        counts["failed"],
        counts["not_applicable"],
        counts["stale"],
    )


def _decided(lines: Iterable[VerdictLine]) -> bool:
    return all(line["verdicts"] or line["status"] != "ok" for line in lines)


def _order(number: int, entry: Mapping[str, Any]) -> PairOrder:
    verdict = entry["verdict"]
    winner = _WINNERS[number].get(verdict, "")
    return PairOrder(verdict, winner, entry.get("quote") or "", entry.get("reason") or "")
