"""The claims that a judge decided in a run: verdicts.jsonl read into one record a claim."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

import storage
from ragmetrics import claimfilter, numbercheck
from ragmetrics.claims import prepare, score_claim
from storage import Problem, StorageError, TestCase

VERDICTS = "verdicts.jsonl"
SUPPORTED = "supported"
DIMENSIONS = ("category", "difficulty", "query_type")
Key = tuple[str, int, str]
"""Case id, repeat of the answer, claim id."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A context as the judge saw it."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """One claim with the judge's verdict.

    ``score``: how sure the judge is that it is supported, None when it does not say. ``source``:
    the document behind it, by which intervals are drawn. ``weight``: what the claim counts in the
    mean over cases.
    """

    case_id: str
    repeat: int
    claim_id: str
    claim: str
    verdict: str
    score: float | None = None
    span: tuple[int, int] | None = None
    question: str = ""
    answer: str = ""
    contexts: tuple[Passage, ...] = ()
    quote: str = ""
    context: str = ""
    reason: str = ""
    source: str = ""
    weight: float = 1.0
    slices: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return self.case_id, self.repeat, self.claim_id

    @property
    def supported(self) -> bool:
        """Only "supported" counts; an unverified quote does not."""
        return self.verdict == SUPPORTED

    @property
    def answer_sha256(self) -> str:
        return sha256(self.answer)


@dataclass(frozen=True, slots=True)
class Judged:
    """All claims of a run that a metric's verdicts decide, and who decided them."""

    claims: list[JudgedClaim]
    judges: list[dict[str, Any]]
    prompts: list[dict[str, Any]]
    failed: int
    """Answers that the judge failed on: they have no verdict and no score."""


def sha256(text: str) -> str:
    """Of a text's UTF-8 bytes, lone surrogates kept."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def read_judged(run: Path, metric: str, cases: Mapping[str, TestCase]) -> Judged:
    """The claims of a run, in the order of the file.

    Of several lines for the same thing the last one counts. An answer of which any part failed is
    counted as failed and gives no claims. Raises StorageError, also when the run was not judged.
    """
    lines: dict[tuple[str, int, int, Any], dict[str, Any]] = {}
    for line in _lines(run / VERDICTS):
        if line["metric"] == metric:
            key = (line["case_id"], line["repeat"], line["judge_repeat"], line.get("part"))
            lines[key] = line
    if not lines:
        raise StorageError(
            f"{run / VERDICTS}: holds no verdicts of {metric}; judge the run with judge_answers.py."
        )
    answers: dict[tuple[str, int], dict[int, list[dict[str, Any]]]] = {}
    for (case_id, repeat, judge_repeat, _), line in lines.items():
        opinions = answers.setdefault((case_id, repeat), {})
        opinions.setdefault(judge_repeat, []).append(line)
    sources = _sources(run)
    claims: list[JudgedClaim] = []
    failed = 0
    for answer, opinions in answers.items():
        sound = [parts for _, parts in sorted(opinions.items()) if _all(parts, "ok")]
        if sound:
            claims += _claims(answer, sound, sources, cases.get(answer[0]))
        else:
            failed += any(_any(parts, "failed") for parts in opinions.values())
    decided = [line for line in lines.values() if line["status"] == "ok"]
    return Judged(
        _weighted(claims),
        _distinct(line.get("judge") for line in decided),
        _distinct(line.get("prompt") for line in decided),
        failed,
    )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of verdicts.jsonl, checked as far as they are used here."""
    if not path.is_file():
        raise StorageError(f"{path}: no such file; judge the run with judge_answers.py.")

    def problem(number: int, field_name: str, message: str) -> StorageError:
        return StorageError.from_problems([Problem(str(path), number, field_name, message)])

    with open(path, "rb") as file:
        for number, raw in enumerate(file, 1):
            if not raw.endswith(b"\n"):
                return  # a line that a killed process left unfinished
            try:
                line = orjson.loads(raw)
            except orjson.JSONDecodeError as error:
                raise problem(number, "", f"not JSON ({error.msg})") from None
            if not isinstance(line, dict):
                raise problem(number, "", "not an object")
            storage.check_schema(path, line.get("schema"), line=number)
            kinds = {"case_id": str, "repeat": int, "metric": str, "judge_repeat": int}
            for name, kind in (kinds | {"status": str}).items():
                if not isinstance(line.get(name), kind):
                    raise problem(number, name, "is missing or of another type; judge again")
            yield line


def _all(parts: list[dict[str, Any]], status: str) -> bool:
    return all(part["status"] == status for part in parts)


def _any(parts: list[dict[str, Any]], status: str) -> bool:
    return any(part["status"] == status for part in parts)


def _distinct(values: Any) -> list[dict[str, Any]]:
    found = {orjson.dumps(value, option=orjson.OPT_SORT_KEYS): value for value in values if value}
    return [found[key] for key in sorted(found)]


def _claims(
    answer: tuple[str, int],
    opinions: list[list[dict[str, Any]]],
    sources: Mapping[tuple[str, int], dict[str, str]],
    case: TestCase | None,
) -> Iterator[JudgedClaim]:
    """The claims of one answer: the first opinion's verdicts, all opinions' share as the score."""
    titles = sources.get(answer, {})
    said = [
        {str(item["id"]): item for part in parts for item in part.get("verdicts") or ()}
        for parts in opinions
    ]
    for part in opinions[0]:
        inputs = part.get("input") or {}
        is_local = (part.get("judge") or {}).get("provider") == "local"
        passages = tuple(
            Passage(
                str(one.get("id", "")),
                titles.get(str(one.get("chunk_id", "")), str(one.get("chunk_id", ""))),
                str(one.get("text", "")),
            )
            for one in inputs.get("contexts") or ()
        )
        for claim in inputs.get("claims") or ():
            item = said[0].get(str(claim["id"]))
            if item is None:
                continue  # not decided: judge_answers counts it
            text = str(claim.get("text", ""))
            span = claim.get("span")
            score = _score(str(claim["id"]), item, said)
            if score is None and is_local:
                score = support_score(
                    str(claim.get("lead", "")) + text,
                    [passage.text for passage in passages],
                    str(inputs.get("question", "")),
                )
            yield JudgedClaim(
                *answer,
                str(claim["id"]),
                text,
                str(item.get("verdict", "")),
                score,
                (int(span[0]), int(span[1])) if span else None,
                str(inputs.get("question", "")),
                str(inputs.get("answer", "")),
                passages,
                str(item.get("quote") or ""),
                str(item.get("context") or ""),
                str(item.get("reason") or ""),
                _document(passages[0].title) if passages else answer[0],
                slices=claim_slices(case, text),
            )


def _score(claim_id: str, item: Mapping[str, Any], said: list[dict[str, Any]]) -> float | None:
    """The judge's own score of support; else the share of its repeats that said "supported"."""
    own = item.get("score")
    if isinstance(own, int | float) and not isinstance(own, bool):
        return float(own)
    votes = [one[claim_id].get("verdict") == SUPPORTED for one in said if claim_id in one]
    return sum(votes) / len(votes) if len(votes) > 1 else None


def support_score(claim: str, contexts: list[str], question: str) -> float:
    """What the local judge decides by: the support of the claim, 0 when a number vetoes it."""
    known = numbercheck.index(question) if question else None
    found = score_claim(claim, [prepare(text) for text in contexts], question=known)
    return 0.0 if found is None else found.strength


def claim_slices(case: TestCase | None, claim: str) -> dict[str, str]:
    """What a claim is grouped by: the case's own fields, and the kind of claim."""
    found = {name: value for name in DIMENSIONS if case and (value := getattr(case, name))}
    found["claim_type"] = claimfilter.claim_type(claimfilter.bare(claim))
    found["numbers"] = "with" if any(char.isdigit() for char in claim) else "without"
    return found


def _sources(run: Path) -> dict[tuple[str, int], dict[str, str]]:
    """For each answer: the title (path and heading) of its chunks by chunk id."""
    path = run / storage.RESULTS
    if not path.is_file():
        return {}
    found = {}
    for result in storage.iter_results(path):
        found[result.test_case_id, result.repeat] = {
            chunk.chunk_id: " > ".join(filter(None, (chunk.rel_path, chunk.heading_path)))
            or chunk.doc_id
            or chunk.chunk_id
            for chunk in result.chunks()
        }
    return found


def _document(title: str) -> str:
    return title.partition(" > ")[0]


def _weighted(claims: list[JudgedClaim]) -> list[JudgedClaim]:
    """Every case counts the same, within it every answer, within that every claim."""
    from dataclasses import replace

    size = Counter((claim.case_id, claim.repeat) for claim in claims)
    repeats = Counter(case_id for case_id, _ in size)
    return [
        replace(claim, weight=1 / (size[claim.case_id, claim.repeat] * repeats[claim.case_id]))
        for claim in claims
    ]
