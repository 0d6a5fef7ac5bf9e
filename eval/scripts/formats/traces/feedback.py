"""People's ratings in exports of Langfuse, LangSmith and Phoenix, in events of OpenTelemetry and
beside chat logs. They are from 0 (bad) to 1 (good) where the scale is known."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from formats.shared.item import Notes
from formats.traces.cases import TracedCase
from formats.traces.exporters import items_of
from formats.traces.ids import Key, hashed
from formats.traces.private import masked
from formats.traces.reading import HIDDEN
from formats.traces.spans import EVALUATION, USERS
from formats.traces.values import nanoseconds
from records.feedback import Rating
from records.results import TestResult

PERSON, PROGRAM, UNTOLD = "person", "program", ""
NO_FEEDBACK = {
    PROGRAM: "ratings by models or programs: no feedback",
    UNTOLD: "ratings that do not say whether a person gave them: no feedback",
}
TAKEN = "ratings by people"
_UNKNOWN = f"{TAKEN} on an unknown scale (unknown)"
_ELSEWHERE = "ratings of missing answers"
_OF_A_STEP = "ratings of a search or a tool, not of the answer"

_RATERS = dict.fromkeys(("HUMAN", "ANNOTATION", "APP", "USER"), PERSON)
_RATERS |= dict.fromkeys(("LLM", "CODE", "EVAL", "MODEL", "AUTO_EVAL"), PROGRAM)
"""Phoenix' kinds of annotators; sources of Langfuse and LangSmith. API is none of them: by it come
the thumbs of users and the scores of programs."""
_OF_PEOPLE = re.compile(
    r"feedback|thumbs?|(?:up|down)vote|(?<![a-z])(?:dis)?liked?(?![a-z])|csat|"
    r"(?:user|customer|human)[\W_]*(?:score|rating|vote|satisfaction|reaction|review)",
    re.IGNORECASE,
)
"""Names of ratings that only people give, where the source does not say who did."""
_OF_FAULTS = re.compile(r"thumbs?[\W_]*down|downvote|dislike", re.IGNORECASE)
"""Names under which 1 says that the answer is bad, and 0 says nothing for certain."""

_GOOD = "up;good;great;positive;like;liked;helpful;correct;yes;true;pass;passed;satisfied;upvote"
_BAD = "down;bad;poor;negative;dislike;disliked;unhelpful;not helpful;incorrect;wrong;no;false"
_BAD += ";fail;failed;dissatisfied;downvote;thumbs down;thumb down;thumbsdown;👎"
_WORDS = dict.fromkeys(f"{_GOOD};thumbs up;thumb up;thumbsup;👍".split(";"), 1.0)
_WORDS |= dict.fromkeys(_BAD.split(";"), 0.0)
_SKIN = re.compile("[\U0001f3fb-\U0001f3ff\ufe0f]")

_FIELDS = {
    "name": "name key annotation_name gen_ai.evaluation.name",
    "value": "score result.score gen_ai.evaluation.score.value rating value thumbs thumb vote "
    "label result.label stringValue string_value",
    "label": "label result.label gen_ai.evaluation.score.label stringValue string_value value",
    "rater": "annotator_kind feedback_source.type source",
    # Phoenix keeps an annotation for each span, name and identifier.
    "user": "user_id authorUserId author_user_id feedback_source.user_id identifier user "
    + " ".join(USERS),
    "comment": "comment explanation result.explanation gen_ai.evaluation.explanation text reason",
    "trace": "traceId trace_id",
    "span": "span_id context.span_id run_id observationId observation_id",
    "at": "updatedAt updated_at modified_at timestamp at createdAt created_at",
    "kind": "dataType data_type",
    "config": "configId config_id",
    "low": "min feedback_config.min minValue",
    "high": "max feedback_config.max maxValue",
}
"""Where each source holds what; of several names the first that has a value."""


@dataclass(frozen=True, slots=True)
class SourceRating:
    """A rating as in its source; "" and None for missing parts. ``scale``: the least and the
    largest value; ``config``: the id of Langfuse's record that may tell them."""

    name: str
    value: Any
    label: str = ""
    rater: str = UNTOLD
    user: str = ""
    at: str = ""
    comment: str = ""
    trace: str = ""
    span: str = ""
    scale: tuple[float, float] | None = None
    config: str = ""

    @property
    def bare_number(self) -> float | None:
        """The number of a rating whose scale neither the source nor a word reveals; else None."""
        return None if self.scale or self.label in _WORDS else _number(self.value)

    def score(self, *, is_thumb: bool) -> float | None:
        """The rating from 0 to 1: by its declared scale, else by its word, else 0 or 1 unchanged;
        None for any other. ``is_thumb``: whether every bare number of this name is 0 or 1; of a
        scale from 1 to 5 the 1 is no thumb."""
        number, score = _number(self.value), _WORDS.get(self.label)
        if self.scale is not None and number is not None:
            low, high = self.scale
            score = (number - low) / (high - low) if low <= number <= high and low < high else None
        elif score is None and is_thumb and number in (0.0, 1.0):
            score = number
        if _OF_FAULTS.search(self.name):
            return 0.0 if score == 1.0 else None
        return score


def _number(value: Any) -> float | None:
    try:
        number = float(value) if isinstance(value, bool | int | float | str) else math.nan
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _word(value: Any) -> str:
    """A word of a rating in small letters, with single blanks for other signs."""
    text = _SKIN.sub("", value).strip().casefold() if isinstance(value, str) else ""
    return text if text in _WORDS else re.sub(r"[\W_]+", " ", text).strip()


def _rating_of(row: Mapping[str, Any], rater: str = UNTOLD) -> SourceRating:
    """The rating that an object is, by the names of all sources. ``rater``: who, if untold."""
    flat = dict(row)
    for name in ("result", "feedback_source", "feedback_config"):
        if isinstance(inner := row.get(name), dict):
            flat |= {f"{name}.{key}": value for key, value in inner.items()}
    told = {
        field: next(
            (flat[name] for name in names.split() if flat.get(name) not in (None, "")), None
        )
        for field, names in _FIELDS.items()
    }
    text = {field: "" if value is None else str(value) for field, value in told.items()}
    value = None if isinstance(told["value"], dict | list) else told["value"]
    low, high = _number(told["low"]), _number(told["high"])
    scale = None if low is None or high is None else (low, high)
    if isinstance(value, bool) or text["kind"] == "BOOLEAN":
        scale = (0.0, 1.0)
    named = PERSON if _OF_PEOPLE.search(text["name"]) else UNTOLD
    return SourceRating(
        text["name"] or "feedback",
        told["label"] if text["kind"] == "CATEGORICAL" else value,
        _word(told["label"]),
        _RATERS.get(text["rater"].upper(), rater or named),
        **{name: text[name] for name in ("user", "comment", "trace", "span", "config")},
        at=_time(told["at"]),
        scale=scale,
    )


def _time(value: Any) -> str:
    """A time in UTC to the second; "" for what is none."""
    if isinstance(value, int | float) and 1e9 < value < 1e10:  # seconds since 1970
        value = int(value * 1e9)
    if not 0 < (stamp := nanoseconds(value)) < 4e18:
        return ""
    return datetime.fromtimestamp(stamp / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rating_in(row: Mapping[str, Any]) -> SourceRating | None:
    """The rating that an object is: Phoenix' annotation, LangSmith's feedback or Langfuse's score
    (of its API or its export to blob storage); None for anything else."""
    names = row.keys()
    is_langfuse = "name" in names and "type" not in names and names & {"traceId", "trace_id"}
    is_langfuse = is_langfuse and names & {"value", "stringValue", "string_value"}
    is_langsmith = "key" in names and names & {"feedback_source", "run_id"}
    return _rating_of(row) if "annotator_kind" in names or is_langsmith or is_langfuse else None


def ratings_of_events(events: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[SourceRating]:
    """The ratings among the events of a span. OpenTelemetry's convention has no word for who
    rated: the name of a rating tells."""
    return (_rating_of(fields) for name, fields in events if name == EVALUATION)


def ratings_beside(value: Any) -> Iterator[SourceRating]:
    """The ratings in the field ``feedback`` of a chat log: a thumb, a word, an object with one, or
    a list of those."""
    for item in value if isinstance(value, list) else [value]:
        if item is not None:
            yield _rating_of(item if isinstance(item, dict) else {"value": item}, PERSON)


def ratings_in(document: Any) -> Iterator[SourceRating]:
    """The ratings of a JSON value: one, a list of them, an answer of an API that lists them, or
    the scores in a trace of Langfuse."""
    rows = document if isinstance(document, list) else [document, *items_of(document, "data")]
    rows = [*rows, *(score for row in rows for score in items_of(row, "scores"))]
    told = (rating_in(row) for row in rows if isinstance(row, dict))
    return (rating for rating in told if rating is not None)


def names_with_a_scale(ratings: Iterable[SourceRating]) -> set[str]:
    """Names of ratings with a bare number that is not 0 or 1: they have a scale, and it is not
    told."""
    return {rating.name for rating in ratings if rating.bare_number not in (None, 0.0, 1.0)}


class Ratings:
    """The ratings of an import, which may come before or after their answers."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._told: list[SourceRating] = []
        self._scales: dict[str, tuple[float, float] | None] = {}

    def add(self, told: SourceRating) -> bool:
        """Whether a rating is one by a person, which is kept; any other is counted."""
        if told.rater != PERSON:
            self._notes.left_out[NO_FEEDBACK[told.rater]] += 1
            return False
        self._told.append(told)
        return True

    def take(self, document: Any) -> bool:
        """Add the ratings of a JSON value; return whether it has any."""
        return len([self.add(told) for told in ratings_in(document)]) > 0

    def take_scale(self, row: Mapping[str, Any]) -> bool:
        """Whether a row is Langfuse's record of a scale (ScoreConfig), which is remembered."""
        is_scale = "dataType" in row and "isArchived" in row
        if is_scale:
            self._scales[str(row.get("id"))] = _rating_of(row).scale
        return is_scale

    def give(self, cases: Iterable[TracedCase], key: Key) -> None:
        """Put the ratings into the results of the traces that they are of. ``key``: of ids."""
        traces: dict[str, TestResult] = {}
        spans: dict[str, TestResult | None] = {}
        for traced in cases:
            for span in traced.trace.spans:
                is_step = traced.trace.kinds[id(span)] in HIDDEN
                traces[span.trace] = traced.result
                spans[span.id] = None if is_step else traced.result
                for told in ratings_of_events(span.events):
                    self.add(replace(told, trace=span.trace, span=span.id))
        self.attach(spans, traces, key)

    def attach(
        self, spans: Mapping[str, TestResult | None], traces: Mapping[str, TestResult], key: Key
    ) -> None:
        """Put each rating into a result, its comment masked. ``spans``: None for what is a step on
        the way to an answer."""
        every = [replace(t, scale=t.scale or self._scales.get(t.config)) for t in self._told]
        odd = names_with_a_scale(every)
        for told in every:
            result = spans.get(told.span) if told.span else traces.get(told.trace)
            if result is None:
                self._notes.left_out[_OF_A_STEP if told.span in spans else _ELSEWHERE] += 1
                continue
            score = told.score(is_thumb=told.name not in odd)
            counts: Counter[str] = Counter()
            texts = (told.name, told.value, told.comment)
            name, value, comment = (masked(text, "", counts) for text in texts)
            user = hashed(told.user, key) if told.user else None
            rating = Rating(name, score, value, user, told.at, comment)
            if rating not in (result.feedback or ()):
                result.feedback = [*(result.feedback or ()), rating]
                self._notes.rows[TAKEN] += 1
                self._notes.changed[_UNKNOWN] += score is None
                self._notes.changed.update({f"{kind}: masked": n for kind, n in counts.items()})
