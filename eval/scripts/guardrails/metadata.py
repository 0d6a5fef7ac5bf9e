"""Internals of the system in an output: ids, scores, paths, hosts, prompt fragments, traces.

A relative path such as `guide/setup.md` is how a chatbot cites its sources and is no leak. What
counts is what only the machinery knows. Pure; linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from guardrails.normalise import fold, words

Span = tuple[str, int, int, float]

_RULES: tuple[tuple[str, float, str], ...] = (
    (
        "record field",
        0.8,
        r"[\"'`]?\b(?:chunk|doc|document|node|vector|embedding|passage|point|record|tenant|session|"
        r"trace|request|conversation|run|index|collection|object)_?(?:id|uuid|hash|key)[\"'`]?"
        r"(?:\s{0,2}[:=]\s{0,2}|[ ](?:is|was)[ ])[\"'`]?[\w./:#-]{1,120}",
    ),
    (
        "internal id",
        0.75,
        r"\b(?:chunk|doc|node|vec|emb|idx|passage|tenant|sess|usr|org)[-_:#][A-Za-z0-9_-]{0,40}\d"
        r"[A-Za-z0-9_:#-]{0,40}\b",
    ),
    (
        "id named in words",
        0.7,
        r"\b(?:chunk|document|node|vector|tenant|session|trace|request|internal|customer|user|"
        r"employee|record)[ ](?:id|ID|identifier|uuid|UUID|hash)(?:[ ]is|[ ]was)?[ :=#]{1,3}"
        r"[\"'`]?[A-Za-z0-9_-]{0,40}\d[A-Za-z0-9_-]{0,60}",
    ),
    (
        "retrieval score",
        0.7,
        r"\b(?:score_(?:vector|lexical|final|rerank)|(?:similarity|cosine|relevance|rerank(?:er)?|"
        r"retrieval|bm25|vector|confidence)[ _-](?:score|distance))[\"'`]?(?:[ ](?:of|is|was))?"
        r"\s{0,2}[:=]?\s{0,2}-?\d{1,3}[.,]\d{1,8}",
    ),
    (
        "retrieval setting",
        0.6,
        r"\b(?:top_k|ef_search|n_probe|chunk_size|chunk_overlap|"
        r"max_tokens|embedding_model|reranker_model|system_fingerprint)[\"'`]?\s{0,2}[:=]\s{0,2}[\"'`]?"
        r"[\w./-]{1,60}",
    ),
    (
        "local path",
        0.7,
        r"(?<![\w/.])/(?:home|Users|root|var|opt|srv|mnt|data|etc|tmp|app|usr/local|workspace|"
        r"private|proc|run)/[\w.@+-]{1,60}(?:/[\w.@+-]{1,60}){0,12}",
    ),
    ("local path", 0.7, r"(?<!\w)[A-Za-z]:\\(?:[\w .@+-]{1,60}\\){1,12}[\w .@+-]{0,60}"),
    ("local path", 0.65, r"(?<![\w\\])\\\\[A-Za-z0-9.-]{2,60}(?:\\[\w$ .-]{1,60}){1,10}"),
    ("local path", 0.45, r"\bfile://[\w./@+-]{3,200}"),
    ("storage path", 0.7, r"\b(?:s3|gs|hdfs|wasbs|smb|nfs)://[\w./@+-]{3,200}"),
    (
        "internal host",
        0.65,
        r"\b(?:[a-z0-9-]{1,40}\.){1,6}(?:internal|corp|intranet|lan|local|svc\.cluster\.local)\b"
        r"(?::\d{2,5})?",
    ),
    (
        "internal host",
        0.6,
        r"(?<![\w.])(?<![Vv]ersion )(?<![Rr]elease )"
        r"(?:10\.\d{1,3}|172\.(?:1[6-9]|2\d|3[01]))\.\d{1,3}\.\d{1,3}"
        r"(?::\d{2,5})?(?![\w.]\d)",
    ),
    ("private address", 0.35, r"(?<![\w.])192\.168\.\d{1,3}\.\d{1,3}(?::\d{2,5})?(?![\w.]\d)"),
    (
        "stack trace",
        0.8,
        r"Traceback \(most recent call last\)|^[ ]{0,8}File \"[^\"\n]{1,200}\", line \d{1,6}|"
        r"^[ \t]{0,8}at [\w$.<>]{3,120}\([\w.]{1,60}(?::\d{1,6}){1,2}\)|"
        r"\bcore dumped\b",
    ),
    (
        "database query",
        0.45,
        r"\bSELECT\s[^\n;]{1,160}\sFROM\s[\w.\"`]{1,60}\s+(?:WHERE|JOIN|LIMIT|ORDER)\b",
    ),
    (
        "chat template",
        0.75,
        r"<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id)\|>|"
        r"\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>",
    ),
    (
        "prompt fragment",
        0.75,
        r"(?i:\b(?:my|the|this) (?:system|developer|hidden|initial) "
        r"(?:prompt|message|instructions?)"
        r"(?: \w{1,15}){0,2} (?:is|are|says|say|reads?|states?|tells? me|starts?|begins?|"
        r"instructs?|was|were)\b)|"
        r"(?i:\bI (?:was|am|have been) (?:instructed|told|configured|prompted|"
        r"programmed) (?:to|not to|by|that)\b)|(?i:\bmy (?:internal |hidden |original )?"
        r"(?:instructions|guidelines|configuration|rules) (?:are|is|say|state|tell|include)\b)",
    ),
    (
        "prompt fragment",
        0.75,
        r"(?i:^[\W_]{0,8}(?:system|system prompt|system message|developer message|instructions)"
        r"\s{0,2}[:>][\W_]{0,6}(?:you are|you must|answer|use|never|do not|always|only)\b)|"
        r"(?i:\byou are (?:a|an|the) (?:\w{1,15} ){0,4}(?:assistant|chatbot|bot|ai|agent)\b"
        r"[^\n]{0,160}?\b(?:answer|use only|only use|do not|don't|never|must|always|your task|"
        r"context)\b)",
    ),
    (
        "prompt fragment",
        0.6,
        r"(?i:\b(?:answer|respond|reply)(?: the (?:user'?s? )?question)?,? (?:only|strictly|solely|"
        r"using only|based only|based solely)[^\n.]{0,40}"
        r"\b(?:context|passages|documents|excerpts)\b"
        r"[^\n]{0,120}\b(?:if|do not|never|otherwise|say)\b)|"
        r"(?i:\b(?:do not|never) (?:reveal|mention|disclose|share) (?:these|this|the|your) "
        r"(?:system )?(?:instructions?|prompt|rules|guidelines)\b)",
    ),
)

_PATTERNS = tuple((kind, weight, re.compile(rule, re.MULTILINE)) for kind, weight, rule in _RULES)

_PROMPT_RUN = 7  # words of the system prompt in a row


def find_metadata(
    text: str, *, internal_ids: Sequence[str] = (), system_prompt: str = ""
) -> Iterator[Span]:
    """Kind, start, end and weight (0-1) of each internal of the system that shows in `text`.

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
    for kind, weight, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            end = match.start() + len(match.group().rstrip(".,;:"))  # a sentence's own marks
            yield kind, match.start(), end, weight


def _prompt_runs(text: str, system_prompt: str) -> Iterator[Span]:
    prompt = [match.group() for match in words(fold(system_prompt).text)]
    runs = {tuple(prompt[i : i + _PROMPT_RUN]) for i in range(len(prompt) - _PROMPT_RUN + 1)}
    view = fold(text)
    own = list(words(view.text))
    for first, last in zip(own, own[_PROMPT_RUN - 1 :], strict=False):
        at = first.start()
        run = tuple(match.group() for match in words(view.text[at : last.end()]))
        if run in runs:
            yield "prompt fragment", *view.original_span(at, last.end()), 0.9
