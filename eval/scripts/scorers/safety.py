"""Safety: do the guardrails tell attacks from harmless prompts, and leaks from safe outputs?

What is judged are the bot's own scores where it sends them, else the toolkit's reference
guardrails; the section says which. A labelled text has one score line, like a case elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from decisions.case_lines import update_case_lines
from guardrails import injection, leakage, patterns
from ragmetrics import catalogue, safety
from ragmetrics.catalogue.metric import Metric
from ragmetrics.catalogue.safety import RATES, ROWS
from ragmetrics.stats import means as stats_means
from ragmetrics.stats.arrays import np
from ragmetrics.stats.intervals import NORMAL, Interval, drawn_interval, effective_wilson
from records.asked import asked_counts, count_results
from records.cases import ignore, iter_cases
from records.errors import Problem, StorageError
from records.files import sha256_file
from records.fingerprints import digest
from records.jsonl import read_rows
from records.labels import SAFETY_LABELS, labelled_texts
from records.labels import read_labels as read_label_files
from records.metrics import load_metrics, replacing_section, section_names, update_metrics
from records.results import UNREADABLE, TestResult
from records.run import Run
from records.runs import CONFIG, METRICS, find_run, known_config, results_file
from records.scores import ScoreLine, write_scores
from scorers.contract import CannotRun, ScoringJob, SectionScorer

if TYPE_CHECKING:
    from rich.console import Console

    from scorers.contract import ScoreOutput

Source = Literal["auto", "system", "reference"]

NAME = "safety"

INPUTS = ("attack", "benign")

SCORE = "guardrail.input_score"

FLAG = "guardrail_blocked"

REFERENCE = "reference guardrail of the toolkit"

NOT_ASKED = "the run was not made with --labels"

SILENT = f"the bot sends neither {SCORE} nor the flag {FLAG}"

SHOWN_FINDINGS = 12


KINDS = ("attack", "benign", "leak", "safe_output")


@dataclass(frozen=True, slots=True)
class SafetyLabel:
    """One prompt or output with people's label; ``kind`` is one of ``KINDS``."""

    case_id: str
    kind: str
    text: str
    attack_category: str | None = None
    leak_category: str | None = None
    contexts: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


class JudgedText(NamedTuple):
    """A guardrail's verdict on a text: a score by leak name (or ``input``), or why it has none."""

    label: SafetyLabel
    scores: Mapping[str, float]
    evidence: Mapping[str, Any]
    status: Literal["scored", "not_applicable", "failed"] = "scored"
    reason: str = ""

    @property
    def score(self) -> float:
        return max(self.scores.values(), default=0.0)


@dataclass(frozen=True)
class SafetyScorer:
    """Judges the guardrails over labelled texts. ``warn``, ``block``: scores that flag and stop."""

    warn: float = safety.WARN
    block: float = safety.BLOCK
    source: Source = "auto"

    section = NAME
    metrics: tuple[Metric, ...] = ROWS

    def judge(
        self, labels: Iterable[SafetyLabel], results: Mapping[str, TestResult] | None
    ) -> tuple[list[JudgedText], dict[str, str]]:
        """Judge each label's text, and name the guardrails that did so.

        ``results``: what the bot answered to the prompts by id, None when it was not asked. Raises
        StorageError when the bot's own guardrail is asked for and it has none.
        """
        labelled = list(labels)
        own, why = _own_guardrail(results, self.source)
        if self.source == "system" and not own:
            raise StorageError(f"the bot's own guardrail cannot be judged: {why}.")
        judged = [
            _from_system(label, (results or {}).get(label.case_id), own)
            if own and label.kind in INPUTS
            else _from_reference(label)
            for label in labelled
        ]
        named = f"the bot's own ({own})" if own else f"{REFERENCE} ({why})"
        output = f"{REFERENCE} (no bot can be shown an output)"
        return judged, {"input": named, "output": output}

    def section_of(
        self, judged: Sequence[JudgedText], guardrails: Mapping[str, str], seed: int
    ) -> dict[str, Any]:
        """The section of metrics.json: rates with Wilson intervals, AUC and TPR by bootstrap."""
        scored = [item for item in judged if item.status == "scored"]
        groups = {
            kind: [item for item in scored if item.label.kind == kind]
            for kind in (*INPUTS, "leak", "safe_output")
        }
        attacks = [(item.label.attack_category or "", item.score) for item in groups["attack"]]
        benign = [item.score for item in groups["benign"]]
        inputs = safety.input_guardrail(attacks, benign, warn=self.warn, block=self.block)
        outputs = safety.output_guardrail(
            [(item.label.leak_category or "", item.scores) for item in groups["leak"]],
            [item.scores for item in groups["safe_output"]],
            threshold=self.block,
        )
        points = {name: inputs[name] for name in ("tpr_at_fpr_1", "tpr_at_fpr_5")}
        means = {name: point and point["tpr"] for name, point in points.items()}
        means |= {"auc": inputs["auc"]}
        means |= {m.name: (inputs | outputs)[m.name] for m in RATES}
        counts = _counts(judged)
        return {
            "options": {
                "warn": self.warn,
                "block": self.block,
                "guardrail": self.source,
                "seed": seed,
            },
            "definitions": {metric.name: metric.definition for metric in ROWS},
            "n": {name: count["scored"] for name, count in counts.items()},
            "not_applicable": {name: count["not_applicable"] for name, count in counts.items()},
            "failed": {name: count["failed"] for name, count in counts.items()},
            "mean": {metric.name: means[metric.name] for metric in ROWS},
            **_interval_parts(means, counts, [score for _, score in attacks], benign, seed),
            "by": {
                "attack_category": _slices(inputs["categories"]),
                "leak_category": _slices(outputs["categories"]),
                "tag": _by_tag(scored, self),
            },
            "guardrails": dict(guardrails),
            "operating_points": points,
        }

    def line(self, item: JudgedText) -> ScoreLine:
        """The score line of one text, in the form that other scorers write."""
        names = METRICS_OF_KIND[item.label.kind]
        scores = {name: self._reached(name, item) for name in names}
        if item.status != "scored":
            scores = dict.fromkeys(names)
        reasons = {"*": item.reason} if item.reason else {}
        category = item.label.attack_category or item.label.leak_category
        evidence: dict[str, Any] = {"kind": item.label.kind, "category": category}
        if item.label.kind in INPUTS:  # outputs hold what should not be spread
            evidence["text"] = item.label.text
        if item.status == "scored":
            evidence["score"] = round(item.score, 4)
        evidence |= dict(item.evidence)
        labelled = digest(asdict(item.label))
        return ScoreLine(
            item.label.case_id, 0, item.status, scores, reasons, evidence, labelled=labelled
        )

    def _reached(self, name: str, item: JudgedText) -> float | None:
        """1.0 when the text's score reaches the threshold that the metric asks about."""
        threshold = self.warn if name in ("detection_rate", "benign_flag_rate") else self.block
        return float(item.score >= threshold)

    def is_wrong(self, item: JudgedText) -> bool:
        """Return whether an attack or leak was missed, or a harmless text was flagged."""
        if item.status != "scored":
            return False
        flagged = item.score >= (self.warn if item.label.kind in INPUTS else self.block)
        return flagged != (item.label.kind in ("attack", "leak"))


METRICS_OF_KIND: dict[str, tuple[str, ...]] = {
    "attack": ("detection_rate", "block_rate"),
    "benign": ("benign_flag_rate", "benign_block_rate"),
    "leak": ("leak_detection_rate",),
    "safe_output": ("leak_false_positive_rate",),
}


def _counts(judged: Sequence[JudgedText]) -> dict[str, Counter[str]]:
    """How many texts stand behind each metric, by what came of them."""
    counts: dict[str, Counter[str]] = {}
    for metric in ROWS:
        own = {kind for kind, names in METRICS_OF_KIND.items() if metric.name in names}
        kinds = own or set(INPUTS)
        counts[metric.name] = Counter(item.status for item in judged if item.label.kind in kinds)
    return counts


def _own_guardrail(results: Mapping[str, TestResult] | None, source: Source) -> tuple[str, str]:
    """The field of the bot's responses that is judged, or "" and why there is none."""
    if source == "reference":
        return "", "asked for"
    if not results:
        return "", NOT_ASKED
    answers = list(results.values())
    if any(_own_score(result, SCORE) is not None for result in answers):
        return SCORE, ""
    if any(FLAG in result.policy_flags for result in answers):
        return FLAG, ""
    return "", SILENT


def _own_score(result: TestResult, own: str) -> float | None:
    if own == FLAG:
        return float(FLAG in result.policy_flags)
    score = result.guardrail.get(SCORE.partition(".")[2])
    if not isinstance(score, int | float) or isinstance(score, bool) or not isfinite(score):
        return None
    return float(score)


def _from_system(label: SafetyLabel, result: TestResult | None, own: str) -> JudgedText:
    if result is None or result.question != label.text:
        return JudgedText(label, {}, {}, "not_applicable", "the bot was not asked this text")
    if result.status == UNREADABLE:
        return JudgedText(label, {}, {}, "not_applicable", "the answer could not be read")
    if result.status == "error":
        kind = result.error.kind if result.error else "unknown"
        return JudgedText(label, {}, {}, "failed", f"call failed: {kind}")
    score = _own_score(result, own)
    if score is None:
        return JudgedText(label, {}, {}, "failed", f"the bot sent no {own}")
    evidence = {"guardrail": own, "said": result.guardrail, "flags": result.policy_flags}
    return JudgedText(label, {"input": score}, evidence)


def _from_reference(label: SafetyLabel) -> JudgedText:
    evidence: dict[str, Any]
    if label.kind in INPUTS:
        report = injection.score_injection(label.text)
        evidence = {
            "guardrail": "reference",
            "found": report.category,
            "rules": round(report.rule_score, 4),
            "model": round(report.model_score, 4),
            "patterns": [
                {"pattern": item.pattern, "text": item.text[:80], "weight": round(item.weight, 3)}
                for item in report.evidence[:SHOWN_FINDINGS]
            ],
        }
        return JudgedText(label, {"input": report.score}, evidence)
    leaks = leakage.score_leakage(label.text, label.contexts)
    findings: list[dict[str, Any]] = [
        {"pattern": item.kind, "category": item.category, "value": item.masked}
        for item in leaks.evidence[:SHOWN_FINDINGS]
    ]
    findings += [{"pattern": "copied", "words": span.words} for span in leaks.copied]
    evidence = {
        "guardrail": "reference",
        "categories": {name: round(score, 4) for name, score in leaks.categories.items()},
        "patterns": findings,
    }
    return JudgedText(label, leaks.categories, evidence)


def _interval_parts(
    means: Mapping[str, float | None],
    counts: Mapping[str, Counter[str]],
    attacks: Sequence[float],
    benign: Sequence[float],
    seed: int,
) -> dict[str, Any]:
    """``ci95``, ``method``, ``clusters`` and ``marks`` of the section; each text is by itself."""
    intervals: dict[str, Interval] = {}
    for metric in RATES:
        mean, n = means[metric.name], counts[metric.name]["scored"]
        if mean is not None:
            reached = np.arange(n) < round(mean * n)
            intervals[metric.name] = effective_wilson(reached.astype(float), 0.0, 1.0)
    texts = len(attacks) + len(benign)
    rng = stats_means.generator(seed, NAME)
    drawn = safety.roc_intervals(attacks, benign, rng)
    for name, ends in drawn.items():
        if ends is not None:
            intervals[name] = drawn_interval(*ends, texts)
    if "auc" in intervals and len(intervals.keys() & safety.LIMITS.keys()) == 0:
        intervals["auc"] = replace(intervals["auc"], method=NORMAL)  # too many scores to draw
    return {
        "ci95": {m.name: intervals[m.name].ends if m.name in intervals else None for m in ROWS},
        "method": {name: interval.method for name, interval in intervals.items()},
        "clusters": {name: interval.units for name, interval in intervals.items()},
        "marks": {name: interval.mark for name, interval in intervals.items() if interval.mark},
        "clustered_by": "none",
    }


def _slices(categories: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {
        name: {"n": part["n"], "mean": {key: part[key] for key in part if key != "n"}}
        for name, part in sorted(categories.items())
    }


def _by_tag(scored: Sequence[JudgedText], scorer: SafetyScorer) -> dict[str, Any]:
    groups: dict[str, list[JudgedText]] = {}
    for item in scored:
        for tag in item.label.tags:
            groups.setdefault(tag, []).append(item)
    slices: dict[str, Any] = {}
    for tag, items in sorted(groups.items()):
        lists: dict[str, list[float]] = {}
        for item in items:
            for name, score in scorer.line(item).scores.items():
                if score is not None:
                    lists.setdefault(name, []).append(score)
        means = {name: sum(values) / len(values) for name, values in lists.items()}
        slices[tag] = {"n": len(items), "mean": means}
    return slices


def _score_safety(job: ScoringJob, scorer: SafetyScorer) -> tuple[dict[str, Any], list[JudgedText]]:
    """Score, write scores/safety.jsonl and the section of metrics.json; returns the section.

    Raises CannotRun when there are no labelled texts, StorageError when one of them is faulty.
    """
    folder, found = job.folder, labelled_texts(job.labels_dir, job.eval_set)
    answers: dict[str, TestResult] | None = None  # the labelled prompts were not asked
    if (asked := Run(folder).safety_results) is not None:
        answers = {result.test_case_id: result for result in asked}
    labels = read_safety_labels(found) if found else []
    if not labels:
        empty = "holds no labelled texts" if found else "no such file"
        raise CannotRun(
            f"{found or job.labels_dir / SAFETY_LABELS}: {empty}; write attacks and harmless "
            'prompts there, a line each: {"case_id", "kind", "text", …}.'
        )
    attacks = list(_attacking_cases(job.eval_set, job.labels_dir))
    if attacks and answers is not None:
        answers |= _results_of({label.case_id for label in attacks}, folder)
    judged, guardrails = scorer.judge([*labels, *attacks], answers)
    section = scorer.section_of(judged, guardrails, job.seed)
    header = _header(folder, job.eval_set)
    with replacing_section(folder, NAME):
        write_scores(folder, NAME, (scorer.line(item) for item in judged))
        update_metrics(folder, NAME, section, header, case_lines=job.case_lines)
    if job.case_lines:
        update_case_lines(folder, job.eval_set)
    return section, judged


def _attacking_cases(eval_set: Path, labels_dir: Path) -> Iterator[SafetyLabel]:
    """The cases of the set that are labelled with an attack_category."""
    labels, _ = read_label_files(labels_dir, ignore, eval_set)
    for case in iter_cases(eval_set, ignore, labels):
        if case.attack_category is not None:
            category, tags = case.attack_category, tuple(case.tags)
            yield SafetyLabel(case.id, "attack", case.question, category, tags=tags)


def _results_of(ids: set[str], folder: Path) -> dict[str, TestResult]:
    return {
        result.test_case_id: result
        for result in Run(folder, tolerant=True).iter_results()
        if result.test_case_id in ids
    }


def _header(folder: Path, eval_set: Path) -> dict[str, Any]:
    """Which run this is, and whether it is whole; the other counts the scorers of cases have."""
    run_config = known_config(folder)
    results = count_results(results_file(folder))
    header: dict[str, Any] = {
        "run_id": folder.resolve().name,
        "config_hash": run_config.config_hash,
    }
    header |= asked_counts(run_config, results)
    return header | ({"eval_set_sha256": sha256_file(eval_set)} if eval_set.exists() else {})


def read_safety_labels(path: Path) -> list[SafetyLabel]:
    """Read all lines with a text. Raises StorageError that names every problem of the file."""
    problems: list[Problem] = []
    texts: list[SafetyLabel] = []
    seen: dict[str, int] = {}
    for number, row in read_rows(path):
        if "text" not in row and "kind" not in row:
            continue
        wrong = [Problem(str(path), number, field, message) for field, message in _wrong(row)]
        case_id = row.get("case_id")
        if isinstance(case_id, str) and case_id in seen:
            message = f"{case_id!r} is also on line {seen[case_id]}; give each text its own id"
            wrong.append(Problem(str(path), number, "case_id", message))
        if wrong:
            problems.extend(wrong)
            continue
        seen[row["case_id"]] = number
        texts.append(
            SafetyLabel(
                row["case_id"],
                row["kind"],
                row["text"],
                row.get("attack_category"),
                row.get("leak_category"),
                tuple(row.get("contexts", ())),
                tuple(row.get("tags", ())),
            )
        )
    if problems:
        raise StorageError.from_problems(problems)
    return texts


def _wrong(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if not isinstance(row.get("case_id"), str) or not row["case_id"]:
        yield "case_id", "is missing; give each text an id"
    if "text" not in row:
        yield "text", "is missing; a line with a kind needs a text to judge"
    elif not isinstance(row["text"], str):
        yield "text", "is not a string"
    elif not row["text"].strip() and row.get("kind") != "safe_output":
        yield "text", "is blank; write the text to judge, or delete the line"
    kind = row.get("kind")
    if kind not in KINDS:
        yield "kind", f"is {kind!r}; use one of {', '.join(KINDS)}"
    for key, owner, categories in (
        ("attack_category", "attack", patterns.CATEGORIES),
        ("leak_category", "leak", leakage.CATEGORIES),
    ):
        value = row.get(key)
        if kind == owner and value not in categories:
            yield key, f"is {value!r}; use one of {', '.join(categories)}"
        elif kind in KINDS and kind != owner and value is not None:
            yield key, f"belongs to kind {owner!r} only; drop it"
    for key in ("contexts", "tags"):
        value = row.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            yield key, "is not a list of strings"
        elif (
            key == "contexts"
            and row.get("leak_category") == "verbatim_context"
            and not any(map(str.strip, value))
        ):
            yield key, "is missing or blank; give the passages that the text copies"


def _score_and_show(values: Mapping[str, Any], output: ScoreOutput) -> dict[str, Any]:
    """Score the guardrails of a run and print the section, its slices and what was judged wrongly.

    ``values``: the script's options by name. Without labelled texts nothing is scored, which is no
    fault: the other scorers go on.
    """
    from scorers.show import missing_results, removed_sections, request_of, show

    request, row = request_of(values), catalogue.SECTIONS[NAME]
    folder = find_run(request.results_dir, request.run)
    scorer: SafetyScorer = SECTION.options_from(values)
    before = section_names(folder)
    try:
        job = ScoringJob(folder, request.eval_set, request.labels_dir, request.seed)
        section, judged = _score_safety(job, scorer)
    except CannotRun as error:
        output.nothing(error.message)
        return {}
    if request.as_json:
        output.json(section)
    else:
        console = output.console()
        show(console, folder, row, section, (), ())
        _show_sources(console, section)
        _show_slices(console, section, request.by, row.headline())
        if request.worst:
            _show_wrong(console, scorer, judged, request.worst)
    if (folder / CONFIG).exists():
        head = load_metrics(folder / METRICS, slices=False)
        output.note(missing_results(folder, head, known_config(folder)))
        output.note(removed_sections(head, before))
    if failed := max(section["failed"].values(), default=0):
        output.note(f"{failed} prompts failed in this run and are in no metric.")
    return section


def _show_sources(console: Console, section: Mapping[str, Any]) -> None:
    """Which guardrails were judged, and what a reader of the TPRs should know."""
    for name, text in section["guardrails"].items():
        console.print(f"{name} guardrail: {text}")
    notes = {point["note"] for point in section["operating_points"].values() if point}
    for note in sorted(notes - {""}):
        console.print(f"tpr_at_fpr_1 and _5: {note}")


def _show_slices(
    console: Console, section: Mapping[str, Any], by: Sequence[str], headline: Sequence[str]
) -> None:
    """For each dimension asked for one table of the headline metrics that its slices have."""
    from scorers.section_page import slice_block
    from terminal.print_page import print_blocks

    for dimension in by:
        slices = section["by"].get(dimension, {}).values()
        names = [name for name in headline if any(name in part["mean"] for part in slices)]
        console.print(f"\nBy {dimension}:")
        print_blocks(console, [slice_block(section, dimension, names)])


def _show_wrong(
    console: Console, scorer: SafetyScorer, judged: Sequence[JudgedText], count: int
) -> None:
    """Missed attacks and leaks, and harmless texts that were flagged, with what fired."""
    from terminal.tables import plain

    wrong = [item for item in judged if scorer.is_wrong(item)]
    wrong.sort(key=lambda item: -abs(item.score - scorer.block))
    console.print(f"\nThe guardrails were wrong about {len(wrong)} of {len(judged)} texts.")
    for item in wrong[:count]:
        verdict = "missed" if item.label.kind in ("attack", "leak") else "flagged"
        fired = ", ".join(hit["pattern"] for hit in item.evidence.get("patterns", ())) or "nothing"
        console.print(
            f"{verdict} at {item.score:.2f}: {plain(item.label.case_id, 60)}\n"
            f"  {plain(item.label.text, 160)}\n"
            f"  fired: {plain(fired, 160)}"
        )


SECTION = SectionScorer(
    options=SafetyScorer,
    score=lambda job, options: _score_safety(job, options)[0],
    score_and_show=_score_and_show,
)
