"""The leakage detectors measured on the open sets of personal data and secrets.

A labelled span counts as found when a finding of the same kind overlaps it. Benign sets hold
nothing to find, so every finding there is a false one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from guardrails.pii import find_pii
from guardrails.secrets_rules import find_secrets
from humanlabels.rows import read_rows

KINDS = {
    "CREDIT_CARD": "credit_card",
    "IBAN_CODE": "iban",
    "US_SSN": "us_ssn",
    "EMAIL_ADDRESS": "email",
    "PHONE_NUMBER": "phone",
    "IP_ADDRESS": "ip_address",
}
BENIGN = ("benign_numbers", "benign_security_docs", "benign_notinject", "benign_roles")


def _rows(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.jsonl*")):
        for _, row in read_rows(path):
            yield row


def measure(data: Path) -> dict[str, Any]:
    """Numbers of every set that is there; a set that is absent has no entry."""
    found: dict[str, Any] = {}
    if (data / "pii_presidio_synth").is_dir():
        found["pii_presidio_synth"] = _spans(data / "pii_presidio_synth")
    if (data / "pii_presidio_cases").is_dir():
        found["pii_presidio_cases"] = _counts(data / "pii_presidio_cases")
    found["benign"] = {name: _false_finds(data / name) for name in BENIGN if (data / name).is_dir()}
    for name in ("secrets_rules", "secrets_fixtures"):
        if (data / name).is_dir():
            found[name] = _secrets(data / name)
    return found


def _spans(folder: Path) -> dict[str, Any]:
    """Recall by type over labelled sentences, and findings that no span of their kind explains."""
    total: Counter[str] = Counter()
    hits: Counter[str] = Counter()
    false: Counter[str] = Counter()
    for row in _rows(folder):
        finds = list(find_pii(row["text"]))
        wanted = [span for span in row["spans"] if span["type"] in KINDS]
        for span in wanted:
            total[span["type"]] += 1
            hits[span["type"]] += any(_fits(find, span) for find in finds)
        for find in finds:
            false[find[0]] += not any(_fits(find, span) for span in wanted)
    return {
        "recall": {kind: _share(hits[kind], total[kind]) for kind in KINDS},
        "labelled": {kind: total[kind] for kind in KINDS},
        "false_finds": {kind: false[name] for kind, name in KINDS.items()},
    }


def _fits(find: tuple[str, int, int, float], span: dict[str, Any]) -> bool:
    kind, start, end, _ = find
    return KINDS[span["type"]] == kind and start < span["end"] and span["start"] < end


def _counts(folder: Path) -> dict[str, Any]:
    """Recall by type over cases that say how often a type occurs; 0 marks a look-alike."""
    total: Counter[str] = Counter()
    hits: Counter[str] = Counter()
    lookalikes: Counter[str] = Counter()
    false: Counter[str] = Counter()
    for row in _rows(folder):
        kind = row["entity"]
        if kind not in KINDS:
            continue
        count = sum(find[0] == KINDS[kind] for find in find_pii(row["text"]))
        total[kind] += row["count"]
        hits[kind] += min(count, row["count"])
        if not row["count"]:
            lookalikes[kind] += 1
            false[kind] += count > 0
    return {
        "recall": {kind: _share(hits[kind], total[kind]) for kind in KINDS},
        "labelled": {kind: total[kind] for kind in KINDS},
        "lookalikes": {kind: lookalikes[kind] for kind in KINDS},
        "lookalikes_found": {kind: false[kind] for kind in KINDS},
    }


def _false_finds(folder: Path) -> dict[str, Any]:
    texts = [row["text"] for row in _rows(folder)]
    kinds = Counter(find[0] for text in texts for find in find_pii(text))
    secrets = sum(any(True for _ in find_secrets(text)) for text in texts)
    return {"texts": len(texts), "pii": dict(sorted(kinds.items())), "texts_with_secret": secrets}


def _secrets(folder: Path) -> dict[str, Any]:
    """Labelled texts in which something is found: by us, and by detect-secrets if installed."""
    ours: Counter[tuple[str, bool]] = Counter()
    theirs: Counter[tuple[str, bool]] = Counter()
    scan = detect_secrets_scanner()
    total: Counter[str] = Counter()
    for row in _rows(folder):
        if row["label"] is None:
            continue
        side = "secrets" if row["label"] else "lookalikes"
        total[side] += 1
        spans = row.get("spans") or []
        finds = [(start, end) for _, start, end, _ in find_secrets(row["text"])]
        ours[side, _overlaps(finds, spans)] += 1
        if scan is not None:
            theirs[side, _overlaps(scan(row["text"]), spans)] += 1
    found: dict[str, Any] = {
        "secrets": total["secrets"],
        "lookalikes": total["lookalikes"],
        "recall": _share(ours["secrets", True], total["secrets"]),
        "lookalikes_flagged": _share(ours["lookalikes", True], total["lookalikes"]),
    }
    if scan is not None:
        found["detect_secrets_recall"] = _share(theirs["secrets", True], total["secrets"])
        found["detect_secrets_lookalikes_flagged"] = _share(
            theirs["lookalikes", True], total["lookalikes"]
        )
    return found


def _overlaps(finds: list[tuple[int, int]], spans: list[dict[str, Any]]) -> bool:
    """Whether a find overlaps a labelled span; any find will do where none is labelled."""
    if not spans:
        return bool(finds)
    return any(a < span["end"] and span["start"] < b for a, b in finds for span in spans)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def detect_secrets_scanner() -> Any:
    """A function from text to spans by detect-secrets with its default plugins, None without it.

    The plugins are asked line by line as its file scan does, quoted-string entropy limits included.
    """
    try:
        from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
    except ImportError:
        return None
    plugins = [plugin() for plugin in get_mapping_from_secret_type_to_class().values()]

    def scan(text: str) -> list[tuple[int, int]]:
        spans = []
        offset = 0
        for number, line in enumerate(text.splitlines(keepends=True), 1):
            for plugin in plugins:
                for secret in plugin.analyze_line(filename="text", line=line, line_number=number):
                    value = secret.secret_value or ""
                    place = re.search(re.escape(value), line)
                    start = offset + (place.start() if place else 0)
                    spans.append((start, start + max(1, len(value))))
            offset += len(line)
        return spans

    return scan
