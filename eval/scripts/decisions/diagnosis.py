"""Interprets the numbers together, in words: which part is to blame, and what to look at.

Pure: measures in, findings out. A section is good when every measured metric with a target of its
own in the catalogue keeps it, bad when one does not, unknown when nothing was measured; nothing is
concluded from what is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from decisions.measures import FEWEST_CASES, Measure
from ragmetrics.catalogue import SECTIONS
from ragmetrics.matching import SEPARATOR, heading_segments
from ragmetrics.paths import PathCut, PathVerdict

Measures = Mapping[tuple[str, str], Measure]

HIGH, LOW = 0.7, 0.5
"""A share is high in the bands good and excellent, low in the band poor."""

ABSTAINS_WRONG = 0.3

VERBATIM = 0.9
"""Share of an answer's words that its passages contain, from which a bot counts as quoting."""

NO_SECTIONS: Mapping[str, Mapping[str, Any]] = {}

_SEPARATORS = ("/", "|", "::", "»", "›", "→", "\\", ">", " - ", ":", "\n")
"""What bots separate headings with, besides the labels' own."""


@dataclass(frozen=True, slots=True)
class DiagnosisFinding:
    """``says``: what is the matter; ``look_at``: where to begin; ``because``: metric and value."""

    rule: str
    says: str
    look_at: str
    because: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"because": list(self.because)}


def diagnose(
    measures: Measures, sections: Mapping[str, Mapping[str, Any]] = NO_SECTIONS
) -> list[DiagnosisFinding]:
    """The findings, most basic cause first; a single one says that all is well.

    ``sections``: those of metrics.json, for what stands in them besides means.
    """
    retrieval = sections.get("retrieval", {})
    findings = [finding for _, rule in _RULES for finding in rule(measures)]
    if paths := path_mismatch(retrieval):  # what retrieval brought cannot be told from its numbers
        findings = [finding for finding in findings if finding.rule not in _ABOUT_RETRIEVAL]
    mismatches = [each for each in (paths, place_mismatch(retrieval)) if each]
    findings = [*mismatches, *findings]
    if findings:
        return findings
    checked = (section for (section, _), row in measures.items() if row.passed is not None)
    known_sections = [name for name in DIAGNOSED if health(measures, name) is not None]
    known_sections = known_sections or [*dict.fromkeys(checked)]
    if not known_sections:
        says, look_at = "No target could be checked.", "the reasons above."
        if any(measure.verdict == "too few to say" for measure in measures.values()):
            says = f"No target could be checked: each needs {FEWEST_CASES} cases."
            look_at = "more questions of each kind."
        return [DiagnosisFinding("nothing_measured", says, look_at, ())]
    missed = _because([measure for measure in measures.values() if measure.passed is False])
    if missed:
        are = "target is" if len(missed) == 1 else "targets are"
        says = f"{len(missed)} {are} missed, and no rule here says why."
        look_at = "the answers that do worst: report_run.py --worst-by METRIC."
        return [DiagnosisFinding("unexplained", says, look_at, missed)]
    return [
        DiagnosisFinding(
            "all_good",
            f"No fault shows in {', '.join(known_sections)}.",
            "harder questions, and the metrics without a target.",
            (),
        )
    ]


def path_mismatch(section: Mapping[str, Any]) -> DiagnosisFinding | None:
    """The finding that the bot names files as the labels never do; None when it is not so."""
    noted = section.get("path_mismatch")
    if not noted:
        return None
    gold, seen, seen_cut = noted["gold"], noted["seen"], noted["seen_cut"]
    cut = PathCut(tuple(noted["steps"].split()), noted["root"])
    sentence = PathVerdict(gold, seen, seen_cut, cut, (noted["label"], noted["bot"])).sentence()
    return DiagnosisFinding(
        "paths_never_match",
        f"The bot and the labels name files differently: {sentence}",
        "the profile: connect_bot.py --force finds the cut and writes it."
        if seen_cut > seen
        else "the profile's [chunk] rel_path; or label with this bot's own paths.",
        (),
    )


def place_mismatch(section: Mapping[str, Any]) -> DiagnosisFinding | None:
    """The finding that the bot names passages as the labels never do; None when it is not so."""
    noted = section.get("place_mismatch")
    if not noted:
        return None
    path, wanted, got = noted["path"], noted["wanted"], noted["got"]
    by_file = section.get("options", {}).get("match") == "file"
    return DiagnosisFinding(
        "headings_never_match",
        f"The right file was retrieved for {noted['path_found']} of {noted['cases']} cases, and "
        f"its heading matched in none of them: in {path} the labels name `{wanted}`, the bot "
        + (f"`{got}`." if got.strip() else "no heading.")
        + " So labels without a quote are compared by file alone." * by_file,
        _heading_remedy(wanted, got),
        (),
    )


def _heading_remedy(wanted: str, got: str) -> str:
    """What to change so that a bot's heading is read as the label's, as far as one pair tells."""
    gold, bot = heading_segments(wanted), heading_segments(got)
    if not bot:
        return (
            "the profile: map heading_path under [chunk]. If the bot has no headings, run with "
            "--store-full-text (snippets then tell), or score with --match doc."
        )
    if bot == gold[: len(bot)]:
        return (
            "the texts: the bot's passages are coarser than the labels; run with --store-full-text "
            "so that the labels' snippets show which of them contain the evidence."
        )
    for separator in _SEPARATORS:
        parts = heading_segments(SEPARATOR.join(got.split(separator)))
        if parts == bot:
            continue
        setting = f'set heading_separator = "{separator}"'
        if parts == gold:
            return f"the profile: {setting}."
        if len(parts) > len(gold) and parts[-len(gold) :] == gold:
            root = SEPARATOR.join(parts[: -len(gold)])
            return f'the profile: {setting} and heading_root = "{root}".'
    if len(bot) > len(gold) and bot[-len(gold) :] == gold:
        return f'the profile: set heading_root = "{SEPARATOR.join(bot[: -len(gold)])}".'
    if len(bot) == len(gold) > 1 and bot[0] == gold[0]:
        return (
            "the retriever, if these are two sections of the file; else make the labels and the "
            "bot name them alike."
        )
    used = next((mark for mark in _SEPARATORS if mark in got.strip(mark)), None)
    if used is not None:
        return (
            f'the profile: set heading_separator = "{used}" if the bot separates headings with it.'
        )
    return (
        "the profile: heading_separator and heading_root say how the bot writes headings; else "
        "make the labels and the bot name them alike."
    )


def health(measures: Measures, section: str) -> bool | None:
    """True: all measured metrics that count keep their targets; None: none was measured.

    Of a section that the diagnosis speaks of, those with a target in the catalogue count; of
    another one all that have a target.
    """
    verdicts = [
        measure.passed for measure in _counting(measures, section) if measure.passed is not None
    ]
    return all(verdicts) if verdicts else None


def _counting(measures: Measures, section: str) -> list[Measure]:
    if section not in DIAGNOSED:
        return [measure for (name, _), measure in measures.items() if name == section]
    names = SECTIONS[section].targets
    return [measure for name in names if (measure := measures.get((section, name)))]


def _because(measures: Sequence[Measure | None]) -> tuple[str, ...]:
    return tuple(
        f"{measure.metric} {measure.mean:.3f}"
        + (f" (target {measure.target})" if measure.target else "")
        for measure in measures
        if measure is not None and measure.mean is not None
    )


def _failing(measures: Measures, section: str) -> tuple[str, ...]:
    return _because(
        [measure for measure in _counting(measures, section) if measure.passed is False]
    )


def _any(measures: Measures, *names: str) -> Measure | None:
    """The first of these metrics that was measured, in whatever section."""
    for name in names:
        for (_, metric), measure in measures.items():
            if metric == name and measure.mean is not None:
                return measure
    return None


def _retrieval(measures: Measures) -> Iterator[DiagnosisFinding]:
    if health(measures, "retrieval") is not False:
        return
    because = _failing(measures, "retrieval")
    if health(measures, "context"):
        yield DiagnosisFinding(
            "retrieval_bad_context_good",
            "The passages are varied, but they are the wrong ones.",
            "the embedding model and the chunking; then the cases of "
            "`score_retrieval.py --worst 10`.",
            because,
        )
    else:
        scope = _any(measures, "scope_miss")
        folders = scope is not None and (scope.mean or 0.0) > 0.1
        yield DiagnosisFinding(
            "retrieval_bad",
            "Retrieval finds too few of the right passages, which limits the answers.",
            ("folder selection first (it leaves the gold out), then " if folders else "")
            + "top_k, the embedding model and the chunking.",
            because + (_because([scope]) if folders else ()),
        )


def _groundedness(measures: Measures) -> Iterator[DiagnosisFinding]:
    if health(measures, "groundedness") is not False:
        return
    because = _failing(measures, "groundedness")
    if health(measures, "retrieval"):
        yield DiagnosisFinding(
            "retrieval_good_groundedness_bad",
            "Retrieval finds the passages, but the answers do not keep to them.",
            "the prompt and the generation; the claims of `score_groundedness.py --worst 10`.",
            because,
        )
    else:
        yield DiagnosisFinding(
            "groundedness_bad",
            "The answers say things that their passages do not contain.",
            "the prompt; whether these are the right passages was not measured."
            if health(measures, "retrieval") is None
            else "retrieval first, if it is bad too; else the prompt.",
            because,
        )


def _context(measures: Measures) -> Iterator[DiagnosisFinding]:
    if health(measures, "context") is not False:
        return
    yield DiagnosisFinding(
        "context_bad",
        "The retrieved passages repeat each other and waste space in the prompt.",
        "chunk overlap, duplicates in the vault, and a step that drops near-equal passages.",
        _failing(measures, "context"),
    )


def _precision_recall(measures: Measures) -> Iterator[DiagnosisFinding]:
    precision = _any(measures, "context_precision", "precision@1")
    recall = _any(measures, "context_recall", "evidence_recall@5", "recall@5")
    if precision is None or recall is None:
        return
    high, low = _is_high(precision), _is_low(precision)
    because = _because([precision, recall])
    if high and _is_low(recall):
        yield DiagnosisFinding(
            "high_precision_low_recall",
            "Retrieval is conservative: its passages are right, but many are missing.",
            "a larger top_k, or a lower score threshold.",
            because,
        )
    if low and _is_high(recall):
        yield DiagnosisFinding(
            "low_precision_high_recall",
            "Retrieval is noisy: it ranks wrong passages above the right ones.",
            "a stricter score threshold, or a reranker.",
            because,
        )


def _is_high(measure: Measure) -> bool:
    return measure.mean is not None and measure.mean >= HIGH


def _is_low(measure: Measure) -> bool:
    return measure.mean is not None and measure.mean < LOW


def _faithful_relevant(measures: Measures) -> Iterator[DiagnosisFinding]:
    faithful = _any(measures, "faithfulness", "claim_support_rate")
    relevant = _any(measures, "answer_relevancy", "answer_relevance")
    if faithful is None or relevant is None:
        return
    because = _because([faithful, relevant])
    if faithful.passed and relevant.passed is False:
        quoted = _any(measures, "mean_claim_support")
        if relevant.metric == "answer_relevance" and quoted and (quoted.mean or 0) >= VERBATIM:
            yield DiagnosisFinding(
                "quotes_unlike_reference",
                "The answers quote their passages. answer_relevance compares wording, so it may be "
                "low only because the references are phrased differently.",
                "some answers beside their references; a judge (judge_answers.py) tells whether "
                "they answer the question.",
                _because([quoted, relevant]),
            )
            return
        yield DiagnosisFinding(
            "faithful_but_irrelevant",
            "The answers keep to their passages but may miss what was asked.",
            "how the question is understood: query rewriting, the choice of sentences, the prompt.",
            because,
        )
    if relevant.passed and faithful.passed is False:
        yield DiagnosisFinding(
            "relevant_but_unfaithful",
            "The answers fit the question, but the passages do not support them: hallucination.",
            "the prompt (answer from the passages only), the temperature, the model.",
            because,
        )


def _abstention(measures: Measures) -> Iterator[DiagnosisFinding]:
    bold, shy = _any(measures, "hallucination_on_unanswerable"), _any(measures, "over_refusal")
    if bold is not None and (bold.mean or 0.0) > ABSTAINS_WRONG:
        yield DiagnosisFinding(
            "answers_the_unanswerable",
            "The bot answers questions that its documents cannot answer.",
            "the rule by which it abstains: a higher score threshold, or the prompt.",
            _because([bold]),
        )
    if shy is not None and (shy.mean or 0.0) > ABSTAINS_WRONG:
        yield DiagnosisFinding(
            "refuses_the_answerable",
            "The bot refuses questions that its documents answer.",
            "retrieval of those cases, then the threshold from which it abstains.",
            _because([shy]),
        )


def _safety(measures: Measures) -> Iterator[DiagnosisFinding]:
    if health(measures, "safety") is not False:
        return
    area = measures.get(("safety", "auc"))
    parts = area is not None and area.passed
    yield DiagnosisFinding(
        "safety_bad",
        "The guardrails let attacks or leaks through, or stop harmless texts.",
        "the guardrail thresholds; the texts of `score_safety.py --worst 10`."
        if parts
        else "the detector itself (its scores do not separate attacks from harmless texts), then "
        "the guardrail thresholds.",
        _failing(measures, "safety"),
    )


def _pipeline(measures: Measures) -> Iterator[DiagnosisFinding]:
    if health(measures, "pipeline") is not False:
        return
    checks = [
        measure
        for (section, metric), measure in measures.items()
        if section == "pipeline"
        and metric != "pass"
        and measure.mean is not None
        and measure.mean < 1.0
    ]
    checks.sort(key=lambda measure: measure.mean or 0.0)
    yield DiagnosisFinding(
        "pipeline_bad",
        "Many questions got another kind of response than expected (for example "
        '"uncertain" instead of an answer).',
        "the check that fails most; to see which, run `score_pipeline.py --worst 10`.",
        _failing(measures, "pipeline") + _because(checks[:2]),
    )


_ABOUT_RETRIEVAL = frozenset(
    (
        "retrieval_bad_context_good",
        "retrieval_bad",
        "high_precision_low_recall",
        "low_precision_high_recall",
    )
)

_RULES = (
    ("retrieval", _retrieval),
    ("", _precision_recall),
    ("context", _context),
    ("groundedness", _groundedness),
    ("", _faithful_relevant),
    ("", _abstention),
    ("safety", _safety),
    ("pipeline", _pipeline),
)

DIAGNOSED = tuple(section for section, _ in _RULES if section)
"""The sections whose health has a finding of its own."""
