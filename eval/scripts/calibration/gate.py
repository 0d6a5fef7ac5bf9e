"""May a run's judged figures be used? Only when its judge was held against people, and is the same.

Pure: a calibration and what the run says of its judge go in, sentences come out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragmetrics.calibration import MIN_CLASS


def objections(
    found: Mapping[str, Any],
    judges: Sequence[Mapping[str, Any]],
    prompts: Sequence[Mapping[str, Any]],
    *,
    parameters: Mapping[str, Any] | None = None,
    min_kappa: float,
    min_balanced_accuracy: float,
) -> list[str]:
    """What stands against using the run's figures, a sentence each; none when nothing does.

    ``judges`` and ``prompts``: every one that the run's verdicts name. ``parameters``: the run's,
    None when it does not say; what only one side knows is a change.
    """
    said = changes(found, judges, prompts, parameters)
    if few := too_few(found):
        said.append(few)
    else:
        figures = found.get("figures") or {}
        said.append(_below(figures, "kappa", min_kappa))
        said.append(_below(figures, "balanced_accuracy", min_balanced_accuracy))
    said.append(attacked(found))
    return [sentence for sentence in said if sentence]


def changes(
    found: Mapping[str, Any],
    judges: Sequence[Mapping[str, Any]],
    prompts: Sequence[Mapping[str, Any]],
    parameters: Mapping[str, Any] | None,
) -> list[str]:
    """Where the judge that was calibrated is not the one of the run, a sentence each."""
    said = [_changed("judge", found["judge"], one) for one in judges]
    said += [_changed("prompt", found["prompt"], one) for one in prompts]
    asked_with = found.get("parameters") or {}
    said.append(_changed("way the judge is asked", asked_with, parameters or {}))
    if not judges:
        said.append("the run's verdicts do not say who judged; judge it again")
    return [sentence for sentence in said if sentence]


def too_few(found: Mapping[str, Any]) -> str:
    """That there are too few labels for any figure; "" when there are enough."""
    if not found["too_few"]:
        return ""
    return (
        f"uncalibrated: {labelled(found)} are labelled, {MIN_CLASS} of each are needed; label more "
        "with --label"
    )


def labelled(found: Mapping[str, Any]) -> str:
    """How many claims or facts of either kind people have decided, in words."""
    good, bad = found.get("supported", 0), found.get("unsupported", 0)
    if found.get("metric") == "correctness":
        return f"{good} present and {bad} absent facts"
    return f"{good} supported and {bad} unsupported claims"


def attacked(found: Mapping[str, Any]) -> str:
    """That attacks move the judge; "" when they do not, or were not tried."""
    if (found.get("attack") or {}).get("passed") is False:
        return "attacks in the answers move its scores more than the limits allow"
    return ""


def _changed(what: str, known: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Where two identities differ, in words; "" when they are the same."""
    names = [name for name in sorted({*known, *now}) if known.get(name) != now.get(name)]
    if not names:
        return ""
    told = ", ".join(
        f"{name} {_short(known.get(name))} → {_short(now.get(name))}" for name in names
    )
    return f"the {what} is not the one that was calibrated ({told}); calibrate it again"


def _short(value: object) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 24 else f"{text[:23]}…"


def _below(figures: Mapping[str, Any], name: str, minimum: float) -> str:
    value = (figures.get(name) or {}).get("value")
    shown = name.replace("_", " ")
    if value is None:
        return f"{shown} is undefined for these labels"
    return f"{shown} {value:.3f} is below {minimum:g}" if value < minimum else ""
