"""Reads the claims or facts that a judge decided in a run: verdicts.jsonl, one record each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from judging.answers import JudgedAnswer
from ragmetrics import claims as ragmetrics_claims
from ragmetrics.support import judge
from ragmetrics.text import numbers
from ragmetrics.windows import prepare
from records import claim_labels
from records import verdicts as records_verdicts
from records.cases import TestCase
from records.errors import StorageError
from records.histories import earlier_by_id, messages_of_result
from records.judgements import Judgement, Verdicts, gather
from records.results import TestResult
from records.rubrics import Rubric, of_prompt
from records.run import Run
from records.runs import VERDICTS
from records.verdict_lines import text_sha256
from records.verdicts import JudgeIdentity, VerdictLine, identity_of, of_judge

VALUE = {"supported": 1, "not_supported": 0, "present": 1, "missing": 0, "contradicted": 0}
"""The value of each label of a claim or fact. "cannot tell" has none."""

GOOD = {"groundedness": "supported", "correctness": "present"}
"""The good verdict of each metric; any other counts against."""

ITEMS = {"groundedness": "claims", "correctness": "facts"}
"""The items that each metric decides, as a verdict line calls them."""


def items_of(metric: str) -> str:
    """Return the name of a metric's items; a rubric's are whole answers."""
    return ITEMS.get(metric, "answers")


DIMENSIONS = ("category", "difficulty", "query_type")

Key = tuple[str, int, str]
"""Case id (behind the run's, of another run), repeat of the answer, claim id."""


@dataclass(frozen=True, slots=True)
class JudgedContext:
    """A context as the judge saw it."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """One claim, or one fact of the reference, with the judge's verdict.

    A fact has no contexts: ``answer`` is what it is looked for in, and ``reference`` its source.
    ``score``: how sure the judge is that it is supported, None when it does not say. ``source``:
    the document behind it, by which intervals are drawn. ``weight``: what the claim counts in the
    mean over cases. ``run``: the run's id where claims of several runs are labelled together, ""
    for the run that is calibrated. ``rubric``: of a verdict on a whole answer, which has the
    rubric's question for a claim; ``earlier`` and ``tools`` are then what the judge read besides.
    ``split``: whether the judges of a panel differ on it; None for a single judge.
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
    reference: str = ""
    contexts: tuple[JudgedContext, ...] = ()
    quote: str = ""
    context: str = ""
    reason: str = ""
    source: str = ""
    weight: float = 1.0
    run: str = ""
    slices: Mapping[str, str] = field(default_factory=dict)
    rubric: Rubric | None = None
    earlier: str = ""
    tools: str = ""
    split: bool | None = None

    @property
    def key(self) -> Key:
        case_id, repeat, claim_id = self.labelled_as
        return f"{self.run}/{case_id}" if self.run else case_id, repeat, claim_id

    @property
    def labelled_as(self) -> Key:
        """The claim's key in a label. It omits the run, since a label counts for equal answers."""
        return self.case_id, self.repeat, self.claim_id

    @property
    def supported(self) -> bool:
        """Whether the verdict counts as good: "supported", for facts "present", for a rubric at the
        target. An unverified quote does not count."""
        if self.rubric is not None:
            return self.rubric.reaches(self.verdict)
        return self.verdict in GOOD.values()

    def value_of(self, label: str | None) -> int | None:
        """Return 1 for a label of the good kind, 0 for another; None for one that is undecided."""
        if self.rubric is None:
            return VALUE.get(label or "")
        return None if label not in self.rubric.labels else int(self.rubric.reaches(label or ""))

    @property
    def answer_sha256(self) -> str:
        return claim_labels.answer_sha256(self.answer)


@dataclass(frozen=True, slots=True)
class JudgedClaims:
    """All claims of a run that a metric's verdicts decide, and who decided them."""

    claims: list[JudgedClaim]
    judges: list[dict[str, Any]]
    prompts: list[dict[str, Any]]
    failed: int = 0
    """Answers on which the judge failed. They have no verdict and no score."""
    by_code: int = 0
    """Claims that no judge was asked about, since their verdict is fixed."""
    changed: int = 0
    """Answers whose verdicts no longer count, since the answer or its labels have changed."""
    parameters: dict[str, Any] | None = None
    """The judge's settings (temperature, seed); None when the run does not report them."""


IsJudge = Callable[[JudgeIdentity], bool]


def read_judged(
    run: Path, metric: str, cases: Mapping[str, TestCase], is_judge: IsJudge | None = None
) -> JudgedClaims:
    """The claims of a run that a judge decided, in the order of the file.

    ``is_judge``: whether a judge is the one that the user names, of several the last one. Without
    it the judge counts that config.json names, by which the run is scored. Of its lines the last
    for the same thing counts, on the answer and labels as they are now. An answer of which any part
    failed or is missing gives no claims, and claims that were decided by code (no passages) are not
    the judge's: both are counted. Raises StorageError, also when the run was not judged.
    """
    lines = list(Run(run).verdict_lines(lambda line: bool(line["metric"] == metric)))
    judge = _judge_of(run, metric, lines, is_judge)
    verdicts = gather(lines, judge)
    answers = _answers(run, verdicts, metric, cases, judge.get("k"))
    claims: list[JudgedClaim] = []
    decided: list[Mapping[str, Any]] = []
    counts: Counter[str] = Counter()
    for key in verdicts.by_answer:
        answer = answers.get(key)
        if answer is None or not answer.comparable:
            counts["changed"] += 1
            continue
        sound = [judgement.lines for judgement in answer.opinions if judgement.status == "ok"]
        first = sound[0] if sound else []
        if any(part.get("mode") == "code" for part in first):
            counts["by_code"] += sum(len(part["verdicts"]) for part in first)
        elif sound:
            claims += _claims(key, sound, answer, metric)
            decided += first
        elif answer.stale:
            counts["changed"] += 1
        elif not answer.opinions or any(
            judgement.status == "failed" for judgement in answer.opinions
        ):
            counts["failed"] += 1
    return JudgedClaims(
        _weighted(claims),
        _distinct(line.get("judge") for line in decided),
        _distinct(_prompt_of(line, judge) for line in decided),
        counts["failed"],
        counts["by_code"],
        counts["changed"],
        judge.get("parameters"),
    )


def _judge_of(
    run: Path, metric: str, lines: Sequence[VerdictLine], is_judge: IsJudge | None
) -> Mapping[str, Any]:
    """The judge whose lines count, as config.json names a judge."""
    path = run / VERDICTS
    if not lines:
        raise StorageError(
            f"{path}: has no verdicts of {metric}; judge the run with judge_answers.py."
        )
    present, judges = records_verdicts.judge_of(run), _judges_of(lines)
    if any(map(of_judge(present), lines)) and (
        is_judge is None or is_judge(identity_of(present["identity"]))
    ):
        return present
    named = [one for one in judges if is_judge and is_judge(identity_of(one["identity"]))]
    if not named:
        names = ", ".join(str(identity_of(judge["identity"])) for judge in judges)
        raise StorageError(
            f"{path}: has no verdicts of {metric} by the judge "
            f"{'in config.json' if is_judge is None else 'that --judge names'}, but by {names}; "
            "name that one with --judge, or judge the run again with judge_answers.py."
        )
    return named[-1] | {"k": present.get("k")}


def _judges_of(lines: Iterable[VerdictLine]) -> list[dict[str, Any]]:
    """The judges that wrote some lines, the one of the last line at the end, each as config.json
    would name it: with the prompts and parameters of its last lines."""
    judges: dict[JudgeIdentity, dict[str, Any]] = {}
    for line in lines:
        who, prompt = line["judge"], line["prompt"]
        judge = judges.pop(identity_of(who), None) or {"prompts": {}}
        judge |= {"identity": who, "parameters": line.get("parameters", {})}
        judge["prompts"][prompt["name"]] = {key: prompt[key] for key in ("version", "sha256")}
        judges[identity_of(who)] = judge
    return list(judges.values())


def together(judged: JudgedClaims, others: Mapping[str, JudgedClaims]) -> JudgedClaims:
    """Append the claims of other runs (by run id) to a run, to label and compare as one.

    A claim that another run has in the same answer to the same case is there once. Raises
    StorageError when the runs were not judged alike.
    """
    claims = list(judged.claims)
    answers = {(*claim.labelled_as, claim.claim, claim.answer_sha256) for claim in claims}
    for name, other in others.items():
        if (other.judges, other.prompts, other.parameters) != (
            judged.judges,
            judged.prompts,
            judged.parameters,
        ):
            raise StorageError(
                f"--run: {name} was judged with another judge, prompt or temperature than the run; "
                "judge both in the same way with judge_answers.py."
            )
        for claim in other.claims:
            answer = (*claim.labelled_as, claim.claim, claim.answer_sha256)
            if answer not in answers:
                answers.add(answer)
                claims.append(replace(claim, run=name))
    every = [judged, *others.values()]
    return replace(
        judged,
        claims=claims,
        failed=sum(run.failed for run in every),
        by_code=sum(run.by_code for run in every),
        changed=sum(run.changed for run in every),
    )


@dataclass(frozen=True, slots=True)
class _AnswerJudgements:
    """What the judge said of one answer, its whole opinions in order, and what it was shown."""

    opinions: Sequence[Judgement]
    shown: JudgedAnswer
    stale: bool

    @property
    def comparable(self) -> bool:
        """Whether the judge saw the passages and the answer that are made of results.jsonl now."""
        texts = {context["id"]: context for context in self.shown.contexts}
        for asked in (line["input"] for opinion in self.opinions for line in opinion.lines):
            if asked.get("answer_sha256") not in (None, text_sha256(self.shown.text)):
                return False
            for context in asked.get("contexts", ()):
                now = texts.get(context["id"])
                if now is None or now["chunk_id"] != context.get("chunk_id", now["chunk_id"]):
                    return False
                if context.get("sha256") not in (None, text_sha256(now["text"])):
                    return False
        return True


def _prompt_of(line: Mapping[str, Any], judge: Mapping[str, Any]) -> dict[str, Any]:
    """The prompt of a verdict by name, version and hash."""
    prompt = records_verdicts.prompt_of(line, judge)
    rubric = of_prompt(line["prompt"])
    more = {} if rubric is None else {"target": rubric.aim}
    return {name: value for name, value in prompt.items() if name != "rubric"} | more


def _answers(
    run: Path, verdicts: Verdicts, metric: str, cases: Mapping[str, TestCase], k: int | None
) -> dict[tuple[str, int], _AnswerJudgements]:
    """The answers of a run that are still there, as far as there are verdicts on them."""
    answers = {}
    earlier, said = earlier_by_id(cases.values()), dict[tuple[str, int], str]()
    for result in Run(run).results:
        key, case = (result.test_case_id, result.repeat), cases.get(result.test_case_id)
        if case is not None and case.conversation is not None:
            said[key] = result.answer or ""
        if key in verdicts.by_answer and case is not None:
            opinions, stale = verdicts.opinions(case, result)
            judgements = [opinions[n][metric] for n in sorted(opinions) if metric in opinions[n]]
            before = messages_of_result(case, result, earlier.get(case.id, ()), said)
            shown = JudgedAnswer(case, result, k, before)
            answers[key] = _AnswerJudgements(judgements, shown, stale)
    return answers


def _distinct(values: Any) -> list[dict[str, Any]]:
    by_bytes = {
        orjson.dumps(value, option=orjson.OPT_SORT_KEYS): value for value in values if value
    }
    return [by_bytes[key] for key in sorted(by_bytes)]


def _claims(
    answer: tuple[str, int],
    opinions: Sequence[Sequence[Mapping[str, Any]]],
    judged: _AnswerJudgements,
    metric: str,
) -> Iterator[JudgedClaim]:
    """The items of one answer: the first opinion's verdicts, all opinions' share as the score."""
    verdicts = [
        {str(item["id"]): item for part in parts for item in part.get("verdicts") or ()}
        for parts in opinions
    ]
    if (rubric := of_prompt(opinions[0][0]["prompt"])) is not None:
        yield _rubric_claim(answer, rubric, opinions, judged.shown)
        return
    case, shown, titles = judged.shown.case, judged.shown, _titles(judged.shown.result)
    texts = {context["id"]: context["text"] for context in shown.seen_contexts}
    for part in opinions[0]:
        inputs = part.get("input") or {}
        is_local = (part.get("judge") or {}).get("provider") == "local"
        passages = tuple(
            JudgedContext(
                str(context.get("id", "")),
                titles.get(str(context.get("chunk_id", "")), str(context.get("chunk_id", ""))),
                texts.get(str(context.get("id", "")), ""),
            )
            for context in inputs.get("contexts") or ()
        )
        for claim in inputs.get(ITEMS[metric]) or ():
            item = verdicts[0].get(str(claim["id"]))
            if item is None:
                continue  # not decided: judge_answers counts it
            text = str(claim.get("text", ""))
            span = claim.get("span")
            score = _score(str(claim["id"]), item, verdicts, GOOD[metric])
            if score is None and is_local:
                sources = [passage.text for passage in passages] or [shown.text]
                lead = str(claim.get("lead", ""))
                score = support_score(text, sources, shown.question, lead)
            yield JudgedClaim(
                *answer,
                str(claim["id"]),
                text,
                str(item.get("verdict", "")),
                score,
                (int(span[0]), int(span[1])) if span else None,
                shown.question,
                shown.text,
                case.reference_answer or "",
                passages,
                str(item.get("quote") or ""),
                str(item.get("context") or ""),
                str(item.get("reason") or ""),
                _document(passages[0].title) if passages else answer[0],
                slices=claim_slices(case, text),
                split=_split(part, str(claim["id"])),
            )


def _rubric_claim(
    answer: tuple[str, int],
    rubric: Rubric,
    opinions: Sequence[Sequence[Mapping[str, Any]]],
    shown: JudgedAnswer,
) -> JudgedClaim:
    """A verdict by a rubric, with all that the judge read; of several opinions the share that
    reaches the target is the score."""
    entry = opinions[0][0]["verdicts"][0]
    good = [rubric.reaches(parts[0]["verdicts"][0]["verdict"]) for parts in opinions]
    titles, reads = _titles(shown.result), rubric.reads
    passages = [
        JudgedContext(c["id"], titles.get(c["chunk_id"], c["chunk_id"]), c["text"])
        for c in shown.contexts
    ]
    return JudgedClaim(
        *answer,
        "1",
        " ".join(rubric.ask.split()),
        entry["verdict"],
        sum(good) / len(good) if len(good) > 1 else None,
        question=shown.question,
        answer=shown.text,
        reference=shown.reference if "reference" in reads else "",
        contexts=tuple(passages) if "passages" in reads else (),
        quote=entry.get("quote") or "",
        reason=entry.get("reason") or "",
        source=_document(passages[0].title) if passages else answer[0],
        slices={name: value for name in DIMENSIONS if (value := getattr(shown.case, name))},
        rubric=rubric,
        earlier=shown.earlier if "history" in reads else "",
        tools=shown.tool_calls if "tools" in reads else "",
        split=_split(opinions[0][0], "1"),
    )


def _split(line: Mapping[str, Any], claim_id: str) -> bool | None:
    """Whether the judges of a panel differ on a claim, or one has no vote; None without a panel."""
    votes = (line["extra"].get("votes") or {}).get(claim_id)
    return None if votes is None else len(set(votes)) > 1


def _score(
    claim_id: str, item: Mapping[str, Any], opinions: list[dict[str, Any]], good: str
) -> float | None:
    """The judge's own score of support; else the share of its repeats with the good verdict."""
    own = item.get("score")
    if isinstance(own, int | float) and not isinstance(own, bool):
        return float(own)
    votes = [
        verdicts[claim_id].get("verdict") == good for verdicts in opinions if claim_id in verdicts
    ]
    return sum(votes) / len(votes) if len(votes) > 1 else None


def support_score(claim: str, contexts: list[str], question: str, lead: str = "") -> float:
    """Return the local judge's score: the support of the claim, 0 when a number vetoes it."""
    question_numbers = numbers.index(question) if question else None
    support = judge(
        claim, [prepare(text) for text in contexts], question=question_numbers, lead=lead
    )
    return 0.0 if support is None else support.strength


def claim_slices(case: TestCase | None, claim: str) -> dict[str, str]:
    """Return a claim's groups: the case's own fields, and the kind of claim."""
    slices = {name: value for name in DIMENSIONS if case and (value := getattr(case, name))}
    slices["claim_type"] = ragmetrics_claims.claim_type(ragmetrics_claims.bare(claim))
    slices["numbers"] = "with" if any(char.isdigit() for char in claim) else "without"
    return slices


def _titles(result: TestResult) -> dict[str, str]:
    """The title (path and heading) of an answer's chunks by chunk id."""
    return {
        chunk.chunk_id: " > ".join(filter(None, (chunk.rel_path, chunk.heading_path)))
        or chunk.doc_id
        or chunk.chunk_id
        for chunk in result.chunks()
    }


def _document(title: str) -> str:
    return title.partition(" > ")[0]


def _weighted(claims: list[JudgedClaim]) -> list[JudgedClaim]:
    """Every case counts the same, within it every answer, within that every claim."""
    size = Counter((claim.case_id, claim.repeat) for claim in claims)
    repeats = Counter(case_id for case_id, _ in size)
    return [
        replace(claim, weight=1 / (size[claim.case_id, claim.repeat] * repeats[claim.case_id]))
        for claim in claims
    ]
