"""Checks that people have calibrated the judge of a run, and lists objections to its figures.

Also the words in which a calibration is shown, on the terminal and in the report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ragmetrics.catalogue.judged import CALLS_BY_METRIC
from ragmetrics.stats.calibration import MIN_CLASS
from records import calibration
from records.rubrics import PREFIX, RANK
from records.rubrics import SECTION as RUBRICS
from records.verdicts import KINDS
from terminal.tables import plain

Calibration = Mapping[str, Any]


def stored_calibrations(folder: Path | None) -> list[Calibration]:
    """The calibrations in a run folder; none without a folder."""
    if folder is None:
        return []
    return [calibration.read(path) for path in calibration.files_of(folder)]


def calls_behind(section: str, metric: str) -> tuple[str, ...]:
    """The kinds of verdict that a judged number is counted from; none of other numbers."""
    if section == RUBRICS:
        return (f"{PREFIX}{metric.removesuffix(RANK)}",)
    return CALLS_BY_METRIC.get(metric, ()) if section == "judged" else ()


def fitting(
    call: str, judge: Mapping[str, Any], calibrations: Sequence[Calibration]
) -> tuple[Calibration | None, list[str]]:
    """The calibration of this judge and prompt; None with the reasons why there is none.

    ``call``: the kind of verdict. ``judge``: as the scores of the run say it.
    """
    of_rubric = call.startswith(PREFIX)
    if call not in calibration.METRICS and not of_rubric:
        names = " and ".join(calibration.METRICS)
        more = f"only verdicts of {names} and of rubrics can be compared with labels of people"
        return None, [f"{more}; name other metrics"]
    mine = [candidate for candidate in calibrations if candidate["metric"] == call]
    if not mine:
        return None, [
            "its judge was never compared with people; label with calibrate_judge.py --label "
            f"--metric {call}, or name a stored calibration under files"
        ]
    name = call if of_rubric else KINDS[call].prompt
    prompt = judge.get("prompts", {}).get(name)
    judges = [judge["identity"]] if judge.get("identity") else []
    prompts = [{"name": name} | prompt] if prompt else []
    why: list[str] = []
    for candidate in mine:
        differences = _changes(candidate, judges, prompts, judge.get("parameters"))
        if not differences:
            return candidate, []
        why = why or differences
    return None, why


def objections(
    record: Mapping[str, Any],
    judges: Sequence[Mapping[str, Any]],
    prompts: Sequence[Mapping[str, Any]],
    *,
    parameters: Mapping[str, Any] | None = None,
    min_kappa: float,
    min_balanced_accuracy: float,
) -> list[str]:
    """Objections to the use of the run's figures, a sentence each.

    ``judges`` and ``prompts``: every one that the run's verdicts name. ``parameters``: the run's,
    None when it does not say; what only one side knows is a change.
    """
    sentences = _changes(record, judges, prompts, parameters)
    if few := too_few(record):
        sentences.append(few)
    else:
        figures = record.get("figures") or {}
        sentences.append(_below(figures, "kappa", min_kappa))
        sentences.append(_below(figures, "balanced_accuracy", min_balanced_accuracy))
    sentences.append(attacked(record))
    return [sentence for sentence in sentences if sentence]


def _changes(
    record: Mapping[str, Any],
    judges: Sequence[Mapping[str, Any]],
    prompts: Sequence[Mapping[str, Any]],
    parameters: Mapping[str, Any] | None,
) -> list[str]:
    """Where the judge that was calibrated is not the one of the run, a sentence each."""
    sentences = [_changed("judge", record["judge"], identity) for identity in judges]
    sentences += [_changed("prompt", record["prompt"], prompt) for prompt in prompts]
    asked_with = record.get("parameters") or {}
    sentences.append(_changed("way the judge is asked", asked_with, parameters or {}))
    if not judges:
        sentences.append("the run's verdicts do not say who judged; judge it again")
    return [sentence for sentence in sentences if sentence]


def too_few(record: Mapping[str, Any]) -> str:
    """That there are too few labels for any figure; "" when there are enough."""
    if not record["too_few"]:
        return ""
    return (
        f"uncalibrated: {labelled(record)} are labelled, {needed(record)} are needed; "
        "label more with --label"
    )


def needed(record: Mapping[str, Any]) -> str:
    """How many labels a calibration takes, in words."""
    of_rubric = str(record.get("metric", "")).startswith(PREFIX)
    return str(MIN_CLASS) if of_rubric else f"{MIN_CLASS} of each"


def labelled(record: Mapping[str, Any]) -> str:
    """How many claims or facts of either kind people have decided, in words."""
    good, bad = record.get("supported", 0), record.get("unsupported", 0)
    if str(record.get("metric", "")).startswith(PREFIX):
        return f"{good + bad} answers"
    if record.get("metric") == "correctness":
        return f"{good} present and {bad} absent facts"
    return f"{good} supported and {bad} unsupported claims"


def attacked(record: Mapping[str, Any]) -> str:
    """That attacks move the judge; "" when they do not, or were not tried."""
    if (record.get("attack") or {}).get("passed") is False:
        return "attacks in the answers move its scores more than the limits allow"
    return ""


def _changed(subject: str, calibrated_with: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Where two identities differ, in words; "" when they are the same."""
    names = [
        name
        for name in sorted({*calibrated_with, *now})
        if calibrated_with.get(name) != now.get(name)
    ]
    if not names:
        return ""
    differences = ", ".join(
        f"{name} {_short(calibrated_with.get(name))} → {_short(now.get(name))}" for name in names
    )
    return f"another {subject} was calibrated ({differences}); calibrate it again"


def _short(value: object) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 24 else f"{text[:23]}…"


def _below(figures: Mapping[str, Any], name: str, minimum: float) -> str:
    value = (figures.get(name) or {}).get("value")
    shown = name.replace("_", " ")
    if value is None:
        return f"{shown} is undefined for these labels"
    return f"{shown} {value:.3f} is below {minimum:g}" if value < minimum else ""


"""What calibration.json holds."""

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""Heads and rows."""

FIGURES = {
    "specificity": "finds {bad} {items} (specificity)",
    "sensitivity": "passes {good} {items} (sensitivity)",
    "balanced_accuracy": "balanced accuracy",
    "kappa": "Cohen's kappa",
    "auroc": "AUROC of its score",
    "accuracy": "same verdict as people",
}

RATES = {
    "stratified": "cases of this run, people and score (stratified PPI)",
    "ppi_plus": "cases, prediction-powered, best lambda (PPI++)",
    "ppi": "cases, prediction-powered (PPI)",
    "rogan_gladen": "{items}, corrected for its errors (Rogan-Gladen)",
    "labels_only": "cases, from the labels alone",
}

WORDS = {
    "groundedness": {
        "items": "claims",
        "good": "supported",
        "bad": "unsupported",
        "not": "not supported",
        "mean": "faithfulness",
        "sources": "documents",
    },
    "correctness": {
        "items": "facts",
        "good": "present",
        "bad": "absent",
        "not": "not present",
        "mean": "fact_recall",
        "sources": "cases",
    },
}
"""The words for each metric's verdicts."""


_OF_RUBRIC = {
    "items": "answers",
    "good": "good enough",
    "bad": "below the target",
    "not": "below the target",
    "sources": "sources",
}


def words_on(metric: str) -> dict[str, str]:
    """The words for the verdicts of a metric."""
    if metric.startswith(PREFIX):
        return _OF_RUBRIC | {"mean": metric.removeprefix(PREFIX)}
    return WORDS.get(metric, WORDS["groundedness"])


def words_of(calibration: Calibration) -> dict[str, str]:
    """The words for the verdicts that a calibration is about."""
    return words_on(str(calibration.get("metric")))


def figure_names(calibration: Calibration) -> dict[str, str]:
    """``FIGURES`` in the words of a calibration's metric."""
    more = {"kappa": "linear weighted kappa of the labels"} if _has_scale(calibration) else {}
    return {name: text.format(**words_of(calibration)) for name, text in (FIGURES | more).items()}


def _has_scale(calibration: Calibration) -> bool:
    return len((calibration.get("scale") or {}).get("labels", ())) > 2


def share_names(calibration: Calibration) -> dict[str, str]:
    """The shares that are shown, by key in ``corrected``, in the words of the metric: those as
    judged and the first corrected mean of ``RATES`` that has a value."""
    words, values = words_of(calibration), calibration.get("corrected") or {}
    judged = {
        "claim_rate": f"{words['items']}, as judged",
        words["mean"]: f"cases, as judged ({words['mean']})",
    }
    best = [name for name in RATES if values.get(name) is not None][:1]
    return judged | {name: RATES[name].format(**words) for name in best}


def verdict_tables(calibration: Calibration) -> list[Table]:
    """Counts of people's labels (rows) by the judge's verdict (columns).

    The confusion table; for facts before it the same by each side's own words: a fact that is
    missed and one that is denied differ.
    """
    cells, words = calibration.get("confusion"), words_of(calibration)
    if not cells:
        return []
    rows: list[tuple[str, ...]] = [
        (words["not"], str(cells["not_supported"]), str(cells["not_not"])),
        (words["good"], str(cells["supported_supported"]), str(cells["supported_not"])),
    ]
    head = ("people say", f"judge: {words['good']}", f"judge: {words['not']}")
    return [*_by_word(calibration), (head, rows)]


def _by_word(calibration: Calibration) -> list[Table]:
    table = calibration["labels"].get("by_verdict")
    if calibration["metric"] != "correctness" or not table:
        return []
    verdicts = sorted({verdict for counts in table.values() for verdict in counts})
    rows = [
        (_spaced(label), *(str(counts.get(verdict, 0)) for verdict in verdicts))
        for label, counts in table.items()
    ]
    return [(("people say", *(f"judge: {_spaced(verdict)}" for verdict in verdicts)), rows)]


def _spaced(verdict: str) -> str:
    return plain(verdict.replace("_", " "), 30)


def people_say(calibration: Calibration, human: str) -> str:
    """A label of ``worst`` in the words of the metric: "present", "not present"."""
    words = words_of(calibration)
    return words["good" if human == "supported" else "not"]


def judge_name(judge: Mapping[str, Any]) -> str:
    """``provider/model@digest``, short."""
    mark = judge.get("digest") or judge.get("build") or judge.get("revision")
    name = f"{judge.get('provider', '?')}/{judge.get('model', '?')}"
    return plain(name + (f"@{str(mark)[:19]}" if mark else ""), 80)
