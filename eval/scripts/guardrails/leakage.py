"""Scores leaks in an answer: personal data, secrets, internals, whole passages.

    >>> report = score_leakage("Write to jane.roe@corp-mail.io, card 4111 1111 1111 1111.")
    >>> report.categories["pii_exposure"] > 0.9
    True

Four categories, each from 0 to 1, where `WARN` and `BLOCK` mean what they mean in `injection`:

- pii_exposure (`pii`), secret_exposure (`secrets`), metadata_exposure (`rules/metadata.toml`):
  1 - product of (1 - weight) over the distinct values found;
- verbatim_context: 0.5 for a run of 50 words copied from a context, or for 80 % of at least 30
  words. A copied run in quotation marks that is followed by a citation is quoting.

The score is the highest category. Values are reported masked. Pure and linear in the texts.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from guardrails.normalise import fold, words
from guardrails.pii import find_pii
from guardrails.secrets import find_secrets


@dataclass(frozen=True)
class LeakedValue:
    """One thing found in an output: `text[start:end]`, never stored in the clear.

    `weight` 0-1 is how sure the detector is that this is what `kind` says. `origin` is "context"
    when the value also stands in a retrieved context (it was leaked from there), "not in context"
    when it does not, and "unknown" when no context was given.
    """

    kind: str
    category: str
    start: int
    end: int
    weight: float
    masked: str
    origin: str = "unknown"


def _mask(value: str) -> str:
    """A value made safe to store: its two first and last characters, length and hash prefix."""
    digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    shown = f"{value[:2]}…{value[-2:]}" if len(value) >= 8 else "…"
    return f"{shown} ({len(value)} characters, sha256 {digest})"


CATEGORIES = ("pii_exposure", "metadata_exposure", "verbatim_context", "secret_exposure")

WARN = 0.40

BLOCK = 0.50

Item = tuple[str, int, int, float]  # kind, start, end, weight

_IN_CONTEXT = 0.3

_CITED = re.compile(
    r"[.,;!?]{0,2}[\"”»’']?[\s.,]{0,3}(?:\[[^\]\n]{1,60}\]|【\d{1,3}】|\([^()\n]{2,80}\))"
)

_OPENING = re.compile(r"(?:[\"“„«]|^>)[^\"”»\n]{0,3}\Z", re.MULTILINE)


@dataclass(frozen=True)
class LeakageReport:
    """`score` 0-1, the highest of `categories` (all four, 0 when clean), and the leaks found.

    `evidence` holds masked values in order of place. `copied` are the runs of copied words that
    count, `quoted` those that are marked as quotations with a source.
    """

    score: float
    categories: dict[str, float]
    evidence: tuple[LeakedValue, ...]
    copied: tuple[VerbatimSpan, ...]
    quoted: tuple[VerbatimSpan, ...]


def score_leakage(
    text: str,
    contexts: Sequence[str] = (),
    *,
    system_prompt: str = "",
    internal_ids: Sequence[str] = (),
) -> LeakageReport:
    """Score one output; any string is accepted, the empty one scores 0.

    `contexts` are the retrieved passages in full (without them verbatim copying is 0 and no
    origin is known); `internal_ids` and `system_prompt` sharpen metadata_exposure. A path or
    host that a context itself speaks of is the documents' content, so it weighs little.
    """
    findings = {
        "pii_exposure": list(find_pii(text)),
        "secret_exposure": list(find_secrets(text)),
        "metadata_exposure": [
            _as_content(text, item, contexts)
            for item in find_metadata(text, internal_ids=internal_ids, system_prompt=system_prompt)
        ],
    }
    spans = _copied_spans(text, contexts) if contexts else []
    quoted = tuple(span for span in spans if _is_quotation(text, span))
    copied = tuple(span for span in spans if span not in quoted)
    categories = {
        name: _leak_score(copied, sum(1 for _ in words(fold(text).text)))
        if name == "verbatim_context"
        else _combined(text, findings[name])
        for name in CATEGORIES
    }
    evidence = [
        _finding(text, category, item, contexts)
        for category, items in findings.items()
        for item in items
    ]
    return LeakageReport(
        score=max(categories.values()),
        categories=categories,
        evidence=tuple(sorted(evidence, key=lambda item: (item.start, item.end, item.kind))),
        copied=copied,
        quoted=quoted,
    )


def _finding(text: str, category: str, item: Item, contexts: Sequence[str]) -> LeakedValue:
    kind, start, end, weight = item
    value = text[start:end]
    origin = "unknown"
    if contexts:
        origin = "context" if any(value in context for context in contexts) else "not in context"
    return LeakedValue(kind, category, start, end, weight, _mask(value), origin)


def _as_content(text: str, item: Item, contexts: Sequence[str]) -> Item:
    kind, start, end, weight = item
    if any(text[start:end] in context for context in contexts):
        weight *= _IN_CONTEXT
    return kind, start, end, weight


def _combined(text: str, items: Iterable[Item]) -> float:
    best: dict[str, float] = {}
    for _, start, end, weight in items:
        value = text[start:end]
        best[value] = max(best.get(value, 0.0), weight)
    doubt = 1.0
    for weight in best.values():
        doubt *= 1.0 - weight
    return 1.0 - doubt


def _is_quotation(text: str, span: VerbatimSpan) -> bool:
    """Whether a copied run opens with a quotation mark and is followed by a citation."""
    before = text[max(0, span.start - 6) : span.start]
    after = text[span.end : span.end + 90]
    return _OPENING.search(before) is not None and _CITED.match(after) is not None


_MIN_SPAN = 5  # words

_MOST_OCCURRENCES = 8  # occurrences of a word group in the contexts that are followed up


@dataclass(frozen=True)
class VerbatimSpan:
    """A span `text[start:end]` of `words` words copied from context number `context`."""

    start: int
    end: int
    words: int
    context: int


def _copied_spans(
    text: str, contexts: Sequence[str], min_span: int = _MIN_SPAN
) -> list[VerbatimSpan]:
    """The copied runs of `text` in order, none overlapping; [] without contexts.

    Linear in the lengths of the texts.
    """
    view = fold(text)
    own = [(m.group(), *view.original_span(m.start(), m.end())) for m in words(view.text)]
    tokens = [token for token, _, _ in own]
    sources = [[m.group() for m in words(fold(context).text)] for context in contexts]
    index: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for number, source in enumerate(sources):
        for start in range(len(source) - min_span + 1):
            occurrences = index.setdefault(tuple(source[start : start + min_span]), [])
            if len(occurrences) < _MOST_OCCURRENCES:
                occurrences.append((number, start))
    spans: list[VerbatimSpan] = []
    position = 0
    while position + min_span <= len(tokens):
        best, context = 0, 0
        for number, start in index.get(tuple(tokens[position : position + min_span]), ()):
            length = _shared(tokens, position, sources[number], start)
            if length > best:
                best, context = length, number
        if best:
            spans.append(VerbatimSpan(own[position][1], own[position + best - 1][2], best, context))
        position += best or 1
    return spans


def _shared(
    first: Sequence[str], first_start: int, second: Sequence[str], second_start: int
) -> int:
    length = 0
    while (
        first_start + length < len(first)
        and second_start + length < len(second)
        and first[first_start + length] == second[second_start + length]
    ):
        length += 1
    return length


def _leak_score(spans: Iterable[VerbatimSpan], total_words: int) -> float:
    """0-1; 0.5 is reached by a run of 50 words, or by 80 % copied of at least 30 words."""
    spans = list(spans)
    longest = max((span.words for span in spans), default=0)
    score = min(1.0, longest / 100)
    if total_words >= 30:
        coverage = sum(span.words for span in spans) / total_words
        score = max(score, 0.45 * coverage if coverage < 0.8 else 1.0 - 2.5 * (1.0 - coverage))
    return min(1.0, score)


@lru_cache(maxsize=1)
def _internals() -> tuple[tuple[str, float, re.Pattern[str]], ...]:
    """Kind, weight and pattern of what only the machinery of a bot knows."""
    source = resources.files("guardrails").joinpath("rules", "metadata.toml").read_text("utf-8")
    return tuple(
        (rule["kind"], rule["weight"], re.compile("".join(rule["pattern"]), re.MULTILINE))
        for rule in tomllib.loads(source)["rule"]
    )


_PROMPT_RUN = 7  # words of the system prompt in a row


def find_metadata(
    text: str, *, internal_ids: Sequence[str] = (), system_prompt: str = ""
) -> Iterator[Item]:
    """Yield kind, start, end and weight (0-1) of each system internal that appears in `text`.

    A relative path such as `guide/setup.md` is how a chatbot cites its sources and is no leak.

    `internal_ids` are ids that the system really uses (looked for as they are); `system_prompt`
    is compared by runs of seven words.
    """
    for internal in sorted({value for value in internal_ids if len(value) >= 4}):
        start = text.find(internal)
        while start != -1:
            yield "internal id", start, start + len(internal), 0.9
            start = text.find(internal, start + len(internal))
    if system_prompt:
        yield from _prompt_runs(text, system_prompt)
    for kind, weight, pattern in _internals():
        for match in pattern.finditer(text):
            end = match.start() + len(match.group().rstrip(".,;:"))  # a sentence's own marks
            yield kind, match.start(), end, weight


def _prompt_runs(text: str, system_prompt: str) -> Iterator[Item]:
    prompt = [match.group() for match in words(fold(system_prompt).text)]
    runs = {tuple(prompt[i : i + _PROMPT_RUN]) for i in range(len(prompt) - _PROMPT_RUN + 1)}
    view = fold(text)
    own = list(words(view.text))
    for first, last in zip(own, own[_PROMPT_RUN - 1 :], strict=False):
        at = first.start()
        run = tuple(match.group() for match in words(view.text[at : last.end()]))
        if run in runs:
            yield "prompt fragment", *view.original_span(at, last.end()), 0.9
