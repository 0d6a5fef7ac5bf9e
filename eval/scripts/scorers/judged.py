"""The section ``judged``: scores of a run from its verdict lines. No judge is asked."""

from __future__ import annotations

import contextlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clients.embedder import Embedder, EmbeddingUnavailable
from ragmetrics import embedding, judged
from ragmetrics.catalogue.judged import CALLS_BY_METRIC, ROWS
from ragmetrics.catalogue.metric import Metric
from ragmetrics.judged import CORRECTNESS_WEIGHT, RELIABLE_AGREEMENT, Texts
from ragmetrics.stats.tally import Value, average
from ragmetrics.text.words import clean, fold, words
from records import verdicts as records_verdicts
from records.cases import TestCase
from records.claim_labels import PeopleSay, label_files, read_labels
from records.errors import StorageError
from records.judgements import (
    OTHERS,
    STALE,
    Calls,
    Judgement,
    Opinions,
    Verdicts,
    evidence_of,
    gather,
)
from records.metrics import read_metrics
from records.results import TestResult
from records.rubrics import without_rubrics
from records.runs import CACHE_DIR, METRICS, VERDICTS
from records.scores import ScoreLine
from records.verdicts import VerdictReader
from scorers.abstention import NO_ANSWER
from scorers.common import without_passages
from scorers.contract import NOTHING, CannotRun, Evidence, ScoreRow, ScoringJob, SectionScorer
from scorers.embedding import BLOCK, Embed, answered, vectors_of
from scorers.panel import PanelAgreement, print_panel, votes_of

if TYPE_CHECKING:
    from rich.console import Console


BY_PEOPLE = {"correctness_by_people": "correctness", "faithfulness_by_people": "groundedness"}
"""Metrics that count people's labels instead of a judge, and the call whose items they decide."""

AGREEMENT, MANIPULATION = "judge_self_agreement", "judge_manipulation_suspected"


OF_PASSAGES = frozenset({"groundedness", "context_precision", "context_recall"})
"""The kinds of judgement that read the passages."""


def _rows_for(verdicts: Verdicts, people: PeopleSay) -> tuple[Metric, ...]:
    """The catalogue rows that the verdicts can fill, and what people say of their items."""
    calls, names = verdicts.calls, set[str]()
    for name, needed in CALLS_BY_METRIC.items():
        names |= {name} if set(needed) <= calls else set()
    names |= {MANIPULATION} | ({AGREEMENT} if verdicts.repeats > 1 else set())
    names |= {name for name, call in BY_PEOPLE.items() if people and call in calls}
    return tuple(row for row in ROWS if row.name in names)


@dataclass
class JudgedScorer:
    """Scores one answer from its verdicts; ``embed`` None: ``no_model`` says why."""

    verdicts: Verdicts
    metrics: tuple[Metric, ...]
    embed: Embed | None = None
    embedding_model: str = ""
    no_model: str = "no embedding model"
    weight: float = judged.CORRECTNESS_WEIGHT
    people: PeopleSay = field(default_factory=lambda: PeopleSay(()))

    section = "judged"

    @property
    def options(self) -> dict[str, Any]:
        """The judge as in config.json, and the other settings that the numbers depend on."""
        return {
            "judge": without_rubrics(self.verdicts.judge),
            "correctness_weight": self.weight,
            "embedding_model": self.embedding_model,
        }

    def score(self, case: TestCase, result: TestResult) -> tuple[ScoreRow, Evidence]:
        """Score one answer: the mean of several opinions counts; a failed judgement is FAILED."""
        opinions, stale = self.verdicts.opinions(case, result)
        first = opinions.get(0, {})
        texts = self._texts(case, result)
        names = [metric.name for metric in self.metrics]
        values: dict[str, Value] = {}
        reasons: dict[str, str] = {}
        spread: dict[str, float] = {}
        for name in names:
            if name in CALLS_BY_METRIC:
                scores = [judged.score(name, calls, texts) for calls in _own(name, opinions)]
                values[name] = average([(value,) for value, _ in scores])[0]
                reasons[name] = next((why for _, why in scores if why), "")
                scored = [value for value, _ in scores if isinstance(value, float)]
                if len(scored) > 1:
                    spread[name] = max(scored) - min(scored)
        for name in (name for name in BY_PEOPLE if name in names):
            values[name] = self._by_people(name, case.id, result.repeat, texts.answer, first)
            reasons[name] = "people have not decided it"
        values[AGREEMENT], flips = _agreement(opinions)
        reasons[AGREEMENT] = "one opinion"
        rules = _suspected(texts.answer)
        by_judge = any(True in call.extra("manipulation") for call in first.values())
        has_words = bool(words(texts.answer))
        values[MANIPULATION] = float(bool(rules) or by_judge) if has_words else None
        reasons[MANIPULATION] = NO_ANSWER
        if stale:
            reasons |= {name: STALE for name, why in reasons.items() if why == "not judged"}
        unknown, why = without_passages(result)
        needs = OF_PASSAGES - {"groundedness"} if result.tool_sources() else OF_PASSAGES
        for name in names if why else ():
            if not needs.isdisjoint(CALLS_BY_METRIC.get(name, ())):
                values[name], reasons[name] = unknown, why
        evidence = evidence_of(first, judged.blame_claims(first)) | votes_of(first)
        if rules or by_judge:
            evidence["manipulation"] = {"rules": rules, "judge": by_judge}
        if len(opinions) > 1:
            evidence["opinions"] = flips | {"spread": spread}
        unscored = {
            name: reasons[name]
            for name in names
            if not isinstance(values[name], float) and reasons.get(name)
        }
        return ScoreRow(tuple(values[name] for name in names), tuple(unscored.items())), evidence

    def _by_people(
        self, name: str, case_id: str, repeat: int, answer: str, calls: Calls
    ) -> float | None:
        """The score by people's labels on all claims or facts of an answer; on some of them, where
        these settle that it is wrong or unsupported."""
        call = BY_PEOPLE[name]
        judgement = calls.get(call)
        items = judgement.items("facts" if call == "correctness" else "claims") if judgement else {}
        words = self.people.of(call, case_id, repeat, answer, items)
        verdicts = [words[item] for item in items if item in words]
        if call == "correctness":
            settled = judged.CONTRADICTED in verdicts
            score = judged.correctness(verdicts, True)
        else:
            settled = any(word != judged.SUPPORTED for word in verdicts)
            score = judged.share(verdicts, judged.SUPPORTED)
        return score if settled or len(verdicts) == len(items) else None

    def _texts(self, case: TestCase, result: TestResult) -> Texts:
        cosine = None if self.embed is None else self._cosine
        answer, reference = clean(result.answer or ""), clean(case.reference_text())
        vital = [fact.vital for fact in case.gold_facts]
        question = case.whole_question()
        return Texts(question, answer, reference, cosine, self.no_model, vital, self.weight)

    def _cosine(self, text: str, other: str) -> float:
        assert self.embed is not None
        vectors = vectors_of(self.embed, [text, other])
        return embedding.whole_similarity(vectors[text], vectors[other])

    def warm(self, pairs: Iterable[tuple[TestCase, TestResult]]) -> None:
        """Embed the texts that the cosines need, many together."""
        source = iter(pairs)
        while self.embed is not None and (block := list(islice(source, BLOCK))):
            vectors_of(self.embed, [text for pair in block for text in self._to_embed(*pair)])

    def _to_embed(self, case: TestCase, result: TestResult) -> Iterator[str]:
        texts = self._texts(case, result)
        for calls in self.verdicts.opinions(case, result)[0].values():
            relevancy = calls.get("answer_relevancy")
            if (
                relevancy is not None
                and relevancy.status == "ok"
                and not any(relevancy.extra("noncommittal"))
                and texts.question is not None
            ):
                yield texts.question
                yield from (text for part in relevancy.extra("questions") for text in part)
            both = [calls.get(name) for name in CALLS_BY_METRIC["answer_correctness_judged"]]
            if self.weight < 1 and all(call is not None and call.status == "ok" for call in both):
                yield from (text for text in (texts.answer, texts.reference) if text.strip())

    def aggregate(
        self, section: dict[str, Any], lines: Iterator[ScoreLine], seed: int
    ) -> dict[str, Any]:
        """Add numbers to the means: kinds of replies, claims per answer, flips and spread."""
        states: Counter[str] = Counter()
        counts: Counter[str] = Counter()
        spread: dict[str, list[float]] = defaultdict(list)
        panel = PanelAgreement(self.verdicts.judge)
        for line in lines:
            evidence = line.evidence or NOTHING
            panel.add(evidence)
            states.update([evidence["reply"]] if "reply" in evidence else [])
            claims = evidence.get("claims", ())
            counts["answers_with_claims"] += bool(claims)
            counts["claims"] += len(claims)
            counts.update(f"claims_{claim['verdict']}" for claim in claims)
            if (repeated := evidence.get("opinions")) is not None:
                counts["flipped"] += repeated["flipped"]
                counts["items"] += repeated["items"]
                for name, width in repeated["spread"].items():
                    spread[name].append(width)
        more: dict[str, Any] = {"claims": {k: v for k, v in counts.items() if "claims" in k}}
        if states:
            more["replies"] = dict(sorted(states.items()))
        if counts["items"]:
            more["repeats"] = {
                "opinions": self.verdicts.repeats,
                "items": counts["items"],
                "flipped": counts["flipped"],
                "flip_rate": counts["flipped"] / counts["items"],
                "mean_spread": {name: fsum(w) / len(w) for name, w in sorted(spread.items())},
            }
        calls_of = {m.name: CALLS_BY_METRIC.get(m.name, ()) for m in self.metrics}
        return section | more | panel.section(calls_of, records_verdicts.KINDS)


def _own(name: str, opinions: Opinions) -> list[Calls]:
    """The calls of each opinion that says something of a metric by itself; the first always."""
    first = opinions.get(0, {})
    own_calls: list[Calls] = [first]
    for number in sorted(opinions.keys() - {0}):
        own = opinions[number]
        if any(call in own for call in CALLS_BY_METRIC[name]):
            fixed = {
                call: judgement for call, judgement in first.items() if not judgement.from_model
            }
            own_calls.append(fixed | dict(own))
    return own_calls


def _agreement(opinions: Opinions) -> tuple[Value, dict[str, int]]:
    """Share of identical verdicts over all calls with several opinions; flipped items and items."""
    same = pairs = 0.0
    flipped = items = 0
    for call in sorted({name for calls in opinions.values() for name in calls}):
        marks = [
            _comparable(judgement)
            for n in sorted(opinions)
            if (judgement := opinions[n].get(call)) is not None
        ]
        marks = [row for row in marks if row and len(row) == len(marks[0])]
        agreement = judged.self_agreement(marks)
        if agreement is not None:
            weight = len(marks) * (len(marks) - 1) / 2 * len(marks[0])
            same, pairs = same + agreement * weight, pairs + weight
            changed, number = judged.flips(marks)
            flipped, items = flipped + changed, items + number
    counts = {"flipped": flipped, "items": items}
    return (same / pairs if pairs else None), counts


def _comparable(judgement: Judgement) -> Sequence[str]:
    """What can be the same or not in two opinions; of questions only whether there is an answer."""
    if not judgement.from_model:
        return []
    flags = [
        str(value)
        for name in ("addresses_question", "noncommittal")
        for value in judgement.extra(name)
    ]
    return [*judgement.verdicts, *flags]


NEEDS_MODEL = ("answer_relevancy", "answer_correctness_judged")


def make_scorer(
    folder: Path,
    reader: VerdictReader | None = None,
    *,
    weight: float | None = None,
    model: str | None = None,
    cache_dir: Path = CACHE_DIR,
    labels_dir: Path | None = None,
    console: Console | None = None,
) -> JudgedScorer:
    """Make a scorer of the run's verdicts; ``reader``: of them, if they were read before.
    ``labels_dir``: where people's labels on claims and facts are. ``console``: shows progress.

    Raises StorageError when there are none of the judge in config.json. Without an embedding model
    the two metrics that need one do not apply.
    """
    weight = CORRECTNESS_WEIGHT if weight is None else weight
    if not (folder / VERDICTS).exists():
        raise StorageError(f"{folder / VERDICTS}: no such file; run judge_answers.py first.")
    judge = records_verdicts.judge_of(folder)
    lines = (reader or VerdictReader(folder / VERDICTS)).read()
    verdicts = gather(lines, judge)
    if not verdicts.by_answer:
        raise StorageError(
            f"{folder / VERDICTS}: no verdicts of the judge in config.json; run judge_answers.py."
        )
    people = PeopleSay(read_labels(label_files(labels_dir, ())) if labels_dir else ())
    scorer = JudgedScorer(verdicts, _rows_for(verdicts, people), weight=weight, people=people)
    if any(metric.name in NEEDS_MODEL for metric in scorer.metrics):
        try:
            embedder = Embedder(model, cache_dir)
        except EmbeddingUnavailable as error:
            scorer.no_model = f"no embedding model: {error}"
        else:
            embedder.console = console
            scorer.embed, scorer.embedding_model = embedder, embedder.public_name
    return scorer


def warm(scorer: JudgedScorer, folder: Path, eval_set: Path, labels_dir: Path | None) -> None:
    """Embed texts without a vector, many together; a model that cannot be loaded is reported."""
    if scorer.embed is None:
        return
    try:
        scorer.warm(answered(folder, eval_set, labels_dir))
    except EmbeddingUnavailable as error:
        scorer.embed, scorer.no_model = None, f"no embedding model: {error}"


def scorer_as_before(
    job: ScoringJob,
    reader: VerdictReader | None = None,
    *,
    weight: float | None = None,
    model: str | None = None,
    cache_dir: Path = CACHE_DIR,
) -> JudgedScorer:
    """Make a warm scorer with the options of the run's section, if it has one already.

    ``weight``: another one. ``model``: where the section's embedding model is. Raises
    StorageError as ``make_scorer``, and for a model that cannot be used: without it, or with
    another one, the numbers would change.
    """
    before = options_before(job.folder)
    name = before.get("embedding_model") or ""
    if name:
        model = _model_named(name, model, cache_dir)
    if weight is None:
        weight = before.get("correctness_weight")
    scorer = make_scorer(
        job.folder,
        reader,
        weight=weight,
        model=model,
        cache_dir=cache_dir,
        labels_dir=job.labels_dir,
        console=job.console,
    )
    warm(scorer, job.folder, job.eval_set, job.labels_dir)
    if name and scorer.embedding_model and scorer.embed is None:
        raise StorageError(f"{job.folder}: was judged with cosines; {scorer.no_model}.")
    return scorer


def options_before(folder: Path) -> dict[str, Any]:
    """The options with which a run's section was scored; {} if it has not been scored."""
    if not (folder / METRICS).exists():
        return {}
    section = read_metrics(folder).get("sections", {}).get("judged", {})
    options: dict[str, Any] = section.get("options", {})
    return options


def _model_named(name: str, at: str | None, cache_dir: Path) -> str | None:
    """The model that a section calls ``name``: ``at``, the bundled one, or one of a hub, where
    names have no space: a folder's name has its hash behind one."""
    for model in (at, None, *([] if " " in name else [name])):
        with contextlib.suppress(EmbeddingUnavailable):
            if Embedder(model, cache_dir).public_name == name:
                return model
    raise StorageError(
        f"the run was judged with the embedding model {name!r}, which is not found; name its "
        "folder with --embedding-model, or choose another by judge_answers.py --rescore."
    )


_JUDGE = (
    r"(?:graders?|judges?|evaluators?|evaluation model|assessors?|rat(?:ers?|ing model)"
    r"|scoring (?:model|system)|reviewing model|llm judge)"
)

RULES: dict[str, re.Pattern[str]] = {
    "addresses the judge": re.compile(
        rf"\b(?:notes?|message|instructions?|attention|hint|reminder|dear)\W{{0,3}}"
        rf"(?:(?:to|for) )?(?:the |any |all )?(?:\w+ )?{_JUDGE}\b"
        rf"|\bto (?:the |any |all )?{_JUDGE} ?:"
    ),
    "asks for a score": re.compile(
        r"\b(?:give|assign|award|return|output|deserves?|warrants?"
        r"|(?:rate|score|grade|mark) (?:this|it|the|my|with|as))\b[^.!?\n]{0,40}?"
        r"\b(?:(?:a |the )?(?:score|grade|rating|mark) of \W?\d"
        r"|(?:full|maximum|max|highest|perfect|top) (?:score|marks?|points|grade|rating)"
        r"|\d ?(?:/|out of) ?\d{1,3}\b)"
    ),
    "asks for a verdict": re.compile(
        r"\b(?:mark|label|classify|treat|judge|consider|return|count|declare)\b[^.!?\n]{0,30}?"
        r"\b(?:all|every|each|this|these)\b[^.!?\n]{0,30}?"
        r"\b(?:claims?|facts?|statements?|answers?|sentences?|verdicts?|responses?|items?|ids?)\b"
        r"[^.!?\n]{0,30}?\b(?:as |to |is |are )?\W?(?:supported|correct|present|faithful|grounded"
        r"|true|useful|attributed|accurate)\b"
    ),
    "overrides instructions": re.compile(
        r"\b(?:ignore|disregard|forget|override|bypass)\b[^.!?\n]{0,30}?\b(?:previous|prior|above"
        r"|earlier|all|any|the|your|evaluation|grading|judging)\b[^.!?\n]{0,25}?"
        r"\b(?:instructions?|rules?|rubrics?|criteria|prompts?|guidelines?|passages?|contexts?)\b"
    ),
    "forges a reply": re.compile(
        r"\"(?:verdicts?|score|manipulation)\"\s*:|<<<\s*(?:begin|end)\b|<\|[^|<>\n]{1,40}\|>"
        r"|\[/?inst\]|<</?sys>>"
    ),
}


def _suspected(answer: str) -> list[str]:
    """The rules that an answer breaks; a question about grading is no talk to the judge."""
    folded = fold(answer)
    return [name for name, pattern in RULES.items() if pattern.search(folded)]


def section_notes(
    section: Mapping[str, Any], answerer: Mapping[str, Any], others: int
) -> list[str]:
    """Return notes for a reader of the numbers, one sentence each.

    ``others``: verdict lines of a judge that the run had before.
    """
    judge = section["options"]["judge"]
    identity = judge.get("identity", {})
    notes = []
    if others:
        notes.append(OTHERS.format(others))
    shared = _families(str(identity.get("model", ""))) & _families(" ".join(_strings(answerer)))
    if shared:
        name = ", ".join(sorted(shared))
        notes.append(
            f"Judge and answerer both belong to the family {name}; judges prefer their own."
        )
    if identity.get("strength") == "name only":
        notes.append(
            "Only the judge's name is known, not its weights: pin it with revision or file in its "
            "judge file (eval/judges), or --set revision=NAME."
        )
    if identity.get("provider") == "local":
        notes.append(
            "The local judge compares words and numbers. A model sees more: docs/validation.md."
        )
    agreement = section["mean"].get("judge_self_agreement")
    if agreement is not None and agreement < RELIABLE_AGREEMENT:
        notes.append(
            f"The judge agrees with itself on {agreement:.1%} of the verdicts; below "
            f"{RELIABLE_AGREEMENT:.0%} small differences between runs mean nothing."
        )
    return notes


def _families(text: str) -> set[str]:
    """Names of model families in a model's name, such as ``llama`` in ``llama3.1:8b``."""
    return {name.lower() for name in _FAMILY.findall(text)}


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for part in value.values() for text in _strings(part)]
    return [text for part in value for text in _strings(part)] if isinstance(value, list) else []


_FAMILY = re.compile(
    r"\b(gpt|o[134]|claude|llama|mistral|mixtral|qwen|gemma|gemini|phi|deepseek|command|smollm"
    r"|granite|falcon|yi|olmo|solar|nemotron|grok|kimi|glm)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class JudgedOptions:
    """The places of the cosine model and its vectors; the rest is as the run was judged."""

    embedding_model: str | None = None
    cache_dir: Path = CACHE_DIR


def _scorer_of(job: ScoringJob, options: JudgedOptions) -> JudgedScorer:
    """The scorer of a run's verdicts, its texts embedded. Raises CannotRun when it has none."""
    try:
        return scorer_as_before(job, model=options.embedding_model, cache_dir=options.cache_dir)
    except StorageError as error:
        raise CannotRun(error.message) from None


def _show_more(console: Console, section: Mapping[str, Any]) -> None:
    """What the section holds beside means."""
    from terminal.tables import plain, print_rows

    judge = section["options"]["judge"]
    identity = judge["identity"]
    mark = identity.get("digest") or identity.get("build") or identity.get("revision")
    name = f"{identity['provider']}/{identity['model']}" + (f"@{mark[:19]}" if mark else "")
    console.print(f"Judged by {plain(name)} (known by its {identity['strength']}).")
    print_panel(console, section)
    claims = section["claims"]
    if claims.get("claims"):
        parts = [
            f"{count} {kind.removeprefix('claims_').replace('_', ' ')}"
            for kind, count in sorted(claims.items())
            if kind.startswith("claims_")
        ]
        each = claims["claims"] / claims["answers_with_claims"]
        console.print(f"{claims['claims']} claims, {each:.1f} an answer: {', '.join(parts)}.")
    if replies := section.get("replies"):
        counts = ", ".join(f"{count} {kind}" for kind, count in replies.items())
        console.print(f"Kinds of replies: {counts}.")
    if repeats := section.get("repeats"):
        console.print(
            f"{repeats['opinions']} opinions: {repeats['flipped']} of {repeats['items']} verdicts "
            f"changed ({repeats['flip_rate']:.1%})."
        )
        rows = [(name, f"{width:.3f}") for name, width in repeats["mean_spread"].items()]
        print_rows(console, ("spread (highest - lowest)", "mean"), rows)


SECTION = SectionScorer(
    options=JudgedOptions,
    scorer=_scorer_of,
    show_more=_show_more,
    in_processes=False,
)
