"""Runs the metrics over labelled rows and says how far they agree with people. No files here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragmetrics import abstention, groundedness
from ragmetrics.case_scores import RetrievedText
from ragmetrics.stats import agreement
from ragmetrics.support import LexicalClaim, judge
from ragmetrics.text import numbers
from ragmetrics.text.words import content_words, fold, overlap
from ragmetrics.windows import prepare
from research.labelled_sets import AnswerPair, LabelledAbstention, RatedAnswer
from validation.human import LabelledClaim

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragmetrics.stats.agreement import Statistic
    from ragmetrics.stats.arrays import Floats

    Encode = Callable[[Sequence[str]], NDArray[np.float32]]


NAIVE_THRESHOLD = 0.4

MIN_CLASS = 30
"""Rows of either class below which a figure is printed with a warning."""


def precision_recall_f1(
    labels: Sequence[int], verdicts: Sequence[bool], weights: Floats | None = None
) -> tuple[float | None, float | None, float | None]:
    """Precision, recall and F1 of the verdict "positive"; None where the denominator is 0."""
    import numpy as np

    positive = np.asarray(labels, dtype=bool)
    judged = np.asarray(verdicts, dtype=bool)
    weight = np.ones(len(positive)) if weights is None else weights
    hits = float(weight @ (positive & judged))
    flagged, actual = float(weight @ judged), float(weight @ positive)
    return (
        hits / flagged if flagged else None,
        hits / actual if actual else None,
        2 * hits / (flagged + actual) if flagged + actual else None,
    )


@dataclass(frozen=True, slots=True)
class Resampling:
    """How intervals are drawn: the same seed gives the same interval."""

    resamples: int = agreement.RESAMPLES
    seed: int = 0

    def interval(self, groups: Sequence[str], statistic: Statistic) -> list[float] | None:
        """The interval of a statistic over groups, as a list for JSON."""
        import numpy as np

        bounds = agreement.interval(
            groups, statistic, np.random.default_rng(self.seed), self.resamples
        )
        return None if bounds is None else list(bounds)


@dataclass(frozen=True, slots=True)
class _ContextChunk:
    """A context as a retrieved chunk."""

    chunk_id: str
    text: str
    doc_id: str | None = None
    rel_path: str | None = None
    truncated: bool = False


def _score_row(row: LabelledClaim) -> LexicalClaim | None:
    """The support scorer on one row; None for a claim without a content word."""
    return judge(
        row.claim,
        [prepare(text) for text in row.contexts],
        question=numbers.index(row.question) if row.question else None,
        lead=row.lead,
    )


def measure_support(
    rows: Iterable[LabelledClaim],
    draws: Resampling,
    encode: Encode | None = None,
    naive_rows: int = 0,
) -> dict[str, Any]:
    """AUROC and balanced accuracy of the support scorer, precision of its number flags.

    AUROC ranks by score (0 when a number vetoes), the positive class being "supported"; balanced
    accuracy is that of the scorer's own verdicts. With ``encode`` the rule "cosine of the claim and
    a whole chunk >= 0.4" is measured beside it on the first ``naive_rows`` rows of a seeded shuffle
    of the groups.
    """
    every = list(rows)
    scored = [(row, support) for row in every if (support := _score_row(row)) is not None]
    labels = [row.supported for row, _ in scored]
    groups = [row.group for row, _ in scored]
    result: dict[str, Any] = {
        "n": len(scored),
        "skipped": len(every) - len(scored),
        "groups": len(set(groups)),
        "unsupported": labels.count(0),
    }
    strengths = [support.strength for _, support in scored]
    verdicts = [support.supported for _, support in scored]
    result |= _fit(labels, strengths, verdicts, groups, draws)
    result["words"] = {
        "auroc": agreement.auroc(labels, [support.words.strength for _, support in scored]),
        "balanced_accuracy": agreement.balanced_accuracy(
            labels, [support.words.supported for _, support in scored]
        ),
    }
    flagged = [row.supported for row, support in scored if support.words.vetoing]
    result["number_flags"] = len(flagged)
    result["number_flag_precision"] = flagged.count(0) / len(flagged) if flagged else None
    if encode is not None:
        sample = _sample([row for row, _ in scored], naive_rows, draws.seed)
        result["naive"] = _naive(sample, encode, draws)
    return result


def _fit(
    labels: Sequence[int],
    scores: Sequence[float],
    verdicts: Sequence[bool],
    groups: Sequence[str],
    draws: Resampling,
) -> dict[str, Any]:
    return {
        "auroc": agreement.auroc(labels, scores),
        "auroc_ci95": draws.interval(groups, lambda w: agreement.auroc(labels, scores, w)),
        "balanced_accuracy": agreement.balanced_accuracy(labels, verdicts),
        "balanced_accuracy_ci95": draws.interval(
            groups, lambda w: agreement.balanced_accuracy(labels, verdicts, w)
        ),
        "too_few": min(labels.count(0), labels.count(1)) < MIN_CLASS,
    }


def _sample(rows: Sequence[LabelledClaim], size: int, seed: int) -> list[LabelledClaim]:
    """Whole groups in a seeded order until ``size`` rows are reached; all rows for size 0."""
    import numpy as np

    if not size or len(rows) <= size:
        return list(rows)
    order = {
        name: index
        for index, name in enumerate(
            np.random.default_rng(seed).permutation(sorted({row.group for row in rows})).tolist()
        )
    }
    return sorted(rows, key=lambda row: order[row.group])[:size]


def _naive(rows: Sequence[LabelledClaim], encode: Encode, draws: Resampling) -> dict[str, Any]:
    texts = list(dict.fromkeys(text for row in rows for text in (row.claim, *row.contexts)))
    vectors = encode(texts)
    index = {text: number for number, text in enumerate(texts)}
    best = [
        max(
            (float(vectors[index[row.claim]] @ vectors[index[text]]) for text in row.contexts),
            default=0.0,
        )
        for row in rows
    ]
    labels, groups = [row.supported for row in rows], [row.group for row in rows]
    verdicts = [cosine >= NAIVE_THRESHOLD for cosine in best]
    return {"n": len(rows)} | _fit(labels, best, verdicts, groups, draws)


def measure_ratings(rows: Iterable[RatedAnswer], draws: Resampling) -> dict[str, Any]:
    """Spearman correlation of mean_claim_support and of claim_support_rate with people's ratings,
    and that of plain word overlap.

    Answers that abstain or claim nothing have no score and are counted apart.
    """
    every = list(rows)
    scored: list[tuple[float, float, float, float, str]] = []
    for row in every:
        chunks: list[RetrievedText] = [
            _ContextChunk(str(n), text) for n, text in enumerate(row.contexts)
        ]
        scores = groundedness.score_case(
            row.answer,
            chunks,
            question=row.question,
            abstained=abstention.detect(row.answer).abstained,
        ).values
        mean, rate = scores["mean_claim_support"], scores["claim_support_rate"]
        if mean is not None and rate is not None:
            share = _word_share(row.answer, row.contexts)
            scored.append((mean, rate, share, row.rating, row.group))
    means, rates, shares, ratings = ([float(row[column]) for row in scored] for column in range(4))
    groups = [row[4] for row in scored]
    return {
        "n": len(scored),
        "not_applicable": len(every) - len(scored),
        "spearman_mean_claim_support": agreement.spearman(means, ratings),
        "spearman_mean_claim_support_ci95": draws.interval(
            groups, lambda w: agreement.spearman(means, ratings, w)
        ),
        "spearman_claim_support_rate": agreement.spearman(rates, ratings),
        "spearman_word_overlap": agreement.spearman(shares, ratings),
    }


def _word_share(answer: str, contexts: Sequence[str]) -> float:
    """Plain word overlap: the answer's distinct content words that any context holds."""
    ours = set(content_words(fold(answer)))
    theirs = {word for text in contexts for word in content_words(fold(text))}
    return len(ours & theirs) / len(ours) if ours else 0.0


def measure_pairs(rows: Iterable[AnswerPair], draws: Resampling) -> dict[str, Any]:
    """Pearson correlation of the difference in answer_overlap with people's overall preference."""
    scored: list[tuple[float, float, str]] = []
    for row in rows:
        first = overlap(row.first, row.reference)
        second = overlap(row.second, row.reference)
        if first is not None and second is not None:
            scored.append((second[0] - first[0], row.preference, row.group))
    gains = [gain for gain, _, _ in scored]
    preferences = [preference for _, preference, _ in scored]
    groups = [group for _, _, group in scored]
    return {
        "n": len(scored),
        "pearson_answer_overlap": agreement.pearson(gains, preferences),
        "pearson_answer_overlap_ci95": draws.interval(
            groups, lambda w: agreement.pearson(gains, preferences, w)
        ),
    }


def measure_abstention(rows: Iterable[LabelledAbstention], draws: Resampling) -> dict[str, Any]:
    """Precision, recall and F1 of the phrase detector, the positive class being "abstained"."""
    every = list(rows)
    labels = [row.abstained for row in every]
    verdicts = [abstention.detect(row.answer).abstained for row in every]
    found = detection(labels, verdicts, [row.group for row in every], draws)
    return {"n": len(every), "abstained": labels.count(1)} | found


def detection(
    labels: Sequence[int], verdicts: Sequence[bool], groups: Sequence[str], draws: Resampling
) -> dict[str, Any]:
    """Precision, recall and F1 of "positive", and the interval of F1 over the groups."""
    precision, recall, f1 = precision_recall_f1(labels, verdicts)
    interval = draws.interval(groups, lambda w: precision_recall_f1(labels, verdicts, w)[2])
    return {"precision": precision, "recall": recall, "f1": f1, "f1_ci95": interval}


def _number(value: float | None, interval: Sequence[float] | None = None) -> str:
    """``.812 (.780-.841)``; a dash for what is undefined."""
    if value is None:
        return "-"
    shown = f"{value:.3f}"
    return shown if interval is None else f"{shown} ({interval[0]:.3f}-{interval[1]:.3f})"


def _detected(row: Mapping[str, Any]) -> list[str]:
    """The cells of a detection."""
    return [_number(row["precision"]), _number(row["recall"]), _number(row["f1"], row["f1_ci95"])]


def _rows(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    line = "| " + " | ".join(header) + " |"
    rule = "|---" + "|---:" * (len(header) - 1) + "|"
    return [line, rule, *("| " + " | ".join(row) + " |" for row in rows)]


def _safe(title: str) -> str:
    return title.replace("|", "\\|").replace("\n", " ")


def _pair(row: Mapping[str, Any], name: str) -> list[str]:
    """The cells of one figure: on all sets, with the family left out, of the word share alone."""
    left_out, plain = row.get("left_out", {}), row.get("words", {})
    return [
        _number(row[name], row.get(f"{name}_ci95")),
        _number(left_out.get(name)),
        _number(plain.get(name)),
    ]


def _support(report: Mapping[str, Any]) -> list[str]:
    naive = any("naive" in row for row in report["support"].values())
    header = ["set", "claims", "unsupported"]
    for name in ("AUROC", "balanced accuracy"):
        header += [f"{name}: as shipped", "family left out", "word share alone"]
    header += ["number flags: precision"]
    header += ["cosine >= 0.4: claims", "AUROC", "balanced accuracy"] if naive else []
    rows: list[list[str]] = []
    for row in report["support"].values():
        flags = f"{row['number_flags']}: {_number(row['number_flag_precision'])}"
        cells = [
            _safe(row["title"]) + (" (too few rows)" if row["too_few"] else ""),
            str(row["n"]),
            str(row["unsupported"]),
            *_pair(row, "auroc"),
            *_pair(row, "balanced_accuracy"),
            flags,
        ]
        if naive:
            other = row.get("naive", {})
            cells += [
                str(other.get("n", "-")),
                _number(other.get("auroc"), other.get("auroc_ci95")),
                _number(other.get("balanced_accuracy"), other.get("balanced_accuracy_ci95")),
            ]
        rows.append(cells)
    mean = report["mean"]
    number = len(report["support"])
    last = [f"mean of these {number} sets" if number > 1 else "mean", "", ""]
    last += [*_pair(mean, "auroc"), *_pair(mean, "balanced_accuracy"), ""]
    last += (
        ["", _number(mean["naive_auroc"]), _number(mean["naive_balanced_accuracy"])]
        if naive
        else []
    )
    return _rows(header, [*rows, last])


def _spread(report: Mapping[str, Any]) -> list[str]:
    """How far the sets lie apart with their family left out."""
    sentences = []
    for name, title in (("auroc", "AUROC"), ("balanced_accuracy", "balanced accuracy")):
        values = sorted(
            (row["left_out"][name], row["title"])
            for row in report["support"].values()
            if row.get("left_out", {}).get(name) is not None
        )
        if len(values) > 1:
            mean = sum(value for value, _ in values) / len(values)
            spread = (sum((value - mean) ** 2 for value, _ in values) / (len(values) - 1)) ** 0.5
            (low, worst), (high, best) = values[0], values[-1]
            sentences.append(
                f"{title} {low:.3f} ({_safe(worst)}) to {high:.3f} ({_safe(best)}), standard "
                f"deviation {spread:.3f}"
            )
    if not sentences:
        return []
    return [
        "*Family left out*: by a model that was trained on the other families (RAGTruth's three",
        "sets are one), at the one threshold that ships, which was chosen on these figures. They",
        f"hold for texts like these, not for yours. Between sets: {'; '.join(sentences)}.",
        "",
    ]


PUBLISHED_F1 = (
    ("GPT-4, prompted", 0.634),
    ("Luna", 0.654),
    ("TinyLettuce 17M", 0.685),
    ("TinyLettuce 32M", 0.722),
    ("TinyLettuce 68M", 0.750),
    ("LettuceDetect base", 0.768),
    ("LettuceDetect large", 0.792),
)
"""Example F1 on RAGTruth's test part, stated by arXiv 2502.17125 and by docs/TINYLETTUCE.md of
KRLabsOrg/LettuceDetect."""

_FLAGS = (
    ("surely", "a claim surely lacks support (`answer_supported` is 0)"),
    ("any", "any claim is unsupported"),
)


def _answers(report: Mapping[str, Any]) -> list[str]:
    """Whole answers of RAGTruth, flagged in two ways, beside what others state."""
    row = report.get("answers")
    if not row:
        return []
    rows = [[f"word features: {title}", *_detected(row[name])] for name, title in _FLAGS]
    share = row["hallucinated"] / row["n"]
    rows += [["always, as a baseline", _number(share), "1.000", _number(2 * share / (1 + share))]]
    rows += [[name, "-", "-", _number(value)] for name, value in PUBLISHED_F1]
    return [
        "Whole answers of RAGTruth: does one have a hallucination anywhere (example F1)? *Word",
        f"features* is this toolkit without a support model, on {row['n']} answers",
        f"({row['hallucinated']} hallucinated): a part of the test set, and further questions. Its",
        "features were weighed on the other families alone; its limits are those that ship, which",
        "were chosen on sets that include this one. The other rows are not measured here: the",
        "LettuceDetect paper (arXiv 2502.17125) and docs/TINYLETTUCE.md of its repository state",
        "them for the whole test set, so they are no exact comparison. LettuceDetect and",
        "TinyLettuce were trained on RAGTruth's training part.",
        "",
        *_rows(["an answer is flagged when, or by", "precision", "recall", "example F1"], rows),
        "",
    ]


def _abstention(report: Mapping[str, Any]) -> list[str]:
    rows = [
        [
            _safe(row["title"]),
            str(row["n"]),
            str(row["abstained"]),
            *_detected(row),
        ]
        for row in report["abstention"].values()
    ]
    header = ["set", "answers", "abstained", "precision", "recall", "F1"]
    return ["Abstention by phrases:", "", *_rows(header, rows), ""] if rows else []


PASSAGE_REFUSALS_NOTE = """\
Refusals beside their passages. A negated sentence of an open passage is an answer, and an
abstention made from an unanswerable question of SQuAD 2, which quotes its passage in one of eight
forms, is none: how many are judged otherwise. The phrases for English and for nine languages were
revised after reading the open half of lists that were written without knowledge of them
(`bench/research/blind`); the figures of other texts will be lower."""


def _passage_refusals(report: Mapping[str, Any]) -> list[str]:
    row = report.get("passage_refusals")
    if not row or not row["quoting_abstentions"]:
        return []
    negated, quoting = row["negated_sentences"], row["quoting_abstentions"]
    shown = [
        (
            "negated sentences called abstentions, by phrases",
            "called_abstentions_by_phrases",
            negated,
        ),
        ("the same with their passage", "called_abstentions_with_passage", negated),
        ("quoting abstentions found by phrases", "found_by_phrases", quoting),
        ("of these turned into answers by their passage", "turned_into_answers", quoting),
    ]
    rows = [[name, f"{row[key]} of {of}", _number(row[key] / of)] for name, key, of in shown]
    return [PASSAGE_REFUSALS_NOTE, "", *_rows(["what", "count", "share"], rows), ""]


def _whole_answers(report: Mapping[str, Any]) -> list[str]:
    rows = []
    for row in report["ratings"].values():
        people = "human faithfulness (Spearman)"
        title, n = _safe(row["title"]), str(row["n"])
        shown = _number(row["spearman_mean_claim_support"], row["spearman_mean_claim_support_ci95"])
        rows += [
            [title, f"mean_claim_support, {people}", n, shown],
            [
                title,
                f"claim_support_rate, {people}",
                n,
                _number(row["spearman_claim_support_rate"]),
            ],
            [title, f"plain word overlap, {people}", n, _number(row["spearman_word_overlap"])],
        ]
    rows += [
        [
            _safe(row["title"]),
            "answer_overlap, preferred answer (Pearson)",
            str(row["n"]),
            _number(row["pearson_answer_overlap"], row["pearson_answer_overlap_ci95"]),
        ]
        for row in report["pairs"].values()
    ]
    header = ["set", "what is compared", "n", "correlation"]
    return ["Whole answers:", "", *_rows(header, rows), ""] if rows else []


LANGUAGES_NOTE = """\
By language. Refusals: answers written by a person who had not seen the phrases, half of them
refusals, half answers that quote or discuss one; the phrases were revised by general rule after the
first figures were seen. Claim support on parallel text (questions with their answers, XQuAD):
threshold set on the even articles, balanced accuracy on the odd ones against (a) the other
paragraphs of the article and (b) the own paragraph without the sentences that hold the answer.
French is not in that set: its threshold accepts as large a share of the blocks of a French book as
the English one does of the English blocks, and was checked on claims written about the book (the
last column). A language without a threshold is not applicable for claims: `language`."""


def _languages(report: Mapping[str, Any]) -> list[str]:
    rows = [
        [
            _NAMES.get(language, language),
            str(row.get("refusal_answers", "-")),
            _number(row.get("refusal_f1")),
            "-" if row.get("threshold") is None else f"{row['threshold']:.2f}",
            str(row.get("claims", "-")),
            _number(row.get("balanced_accuracy_others")),
            _number(row.get("balanced_accuracy_without")),
            (
                f"{row['own_claims']}: {_number(row['own_balanced_accuracy'])}"
                if "own_claims" in row
                else "-"
            ),
        ]
        for language, row in report["languages"].items()
    ]
    header = ["language", "refusal answers", "F1", "threshold", "supported claims", "(a)", "(b)"]
    header += ["own claims: balanced accuracy"]
    return [LANGUAGES_NOTE, "", *_rows(header, rows), ""] if rows else []


def _blind_spots(report: Mapping[str, Any]) -> list[str]:
    rows = [
        [row["heuristic"], *(_safe(row[name]) for name in ("what", "example", "says", "right"))]
        for row in report["blind_spots"]
    ]
    header = ["heuristic", "cannot see", "example", "it says", "people say"]
    return ["What each heuristic cannot see:", "", *_rows(header, rows), ""] if rows else []


_NAMES = {
    "ar": "Arabic",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "hi": "Hindi",
    "it": "Italian",
    "ja": "Japanese",
    "nl": "Dutch",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "th": "Thai",
    "tr": "Turkish",
    "vi": "Vietnamese",
    "zh": "Chinese",
}


def markdown(report: Mapping[str, Any]) -> str:
    """The whole report; a part without a set is left out."""
    parts: list[str] = []
    if report["support"]:
        parts += ["Support scorer against people's verdicts (95 % intervals over sources):", ""]
        parts += [*_support(report), "", *_spread(report), *_answers(report)]
    parts += _abstention(report)
    parts += _passage_refusals(report)
    parts += _whole_answers(report)
    parts += _languages(report)
    parts += _blind_spots(report)
    if report["absent"]:
        parts += [f"Not measured, for want of data: {', '.join(map(_safe, report['absent']))}.", ""]
    return "\n".join(parts).strip() + "\n"
