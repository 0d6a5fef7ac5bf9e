"""Lists as data, in order, the rules by which an answer to a case fails.

The first rule that an answer breaks is its reason; the others are listed behind it. A user changes
them under ``[cases]`` of targets.toml. Targets of a run's means are no rules for one case.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Level = Literal["fail", "warn", "off"]

Softened = Literal["", "right", "uncertain"]

RIGHT: Softened = "right"
UNCERTAIN: Softened = "uncertain"
"""The conditions that turn a failure into a warning. The answer is one that a judge calls right;
for ``uncertain`` the outcome must also be uncertain."""


@dataclass(frozen=True, slots=True)
class CaseRule:
    """A condition on one answer, and the words for an answer that breaks it.

    The value of ``metric`` (``section.metric``) must be ``sign bound``; with ``also`` the value
    ``of`` these metrics together. ``name``: its key under ``[cases]``. ``word``: for a column;
    ``counted``: behind a number of cases; ``says``: a sentence, where ``{value}`` is the number,
    ``{s}`` the plural of it and ``{depth}`` the passages looked at. ``evidence``: the field of the
    score line that names the facts. ``judged``: it fails an answer where a model or a person says
    so; where only rules on words do, it warns. ``ranked``: the value is 1 / rank, and ranks behind
    the depth do not count. ``softened``: when a failure is a warning, see ``RIGHT``.
    ``tells_right``: an answer that is measured by such rules and breaks none of them is right.
    ``overrules``: the names of rules that say nothing where this one was measured.
    """

    name: str
    word: str
    counted: str
    says: str
    metric: str
    sign: Literal[">=", "<=", ">", "<"]
    bound: float
    level: Level = "fail"
    evidence: str = ""
    judged: bool = False
    ranked: bool = False
    softened: Softened = ""
    tells_right: bool = False
    also: str = ""
    of: Callable[[float, float], float] | None = None
    overrules: tuple[str, ...] = ()

    @property
    def section(self) -> str:
        """The section of its metric."""
        return self.metric.partition(".")[0]

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that it reads, as ``section.metric``."""
        return (self.metric, self.also) if self.also else (self.metric,)


HARM: tuple[tuple[str, ...], ...] = (
    ("forbidden_claim", "forbidden_flag", "forbidden_tool"),
    ("answered",),
    ("wrong_by_people", "wrong", "vital_fact"),
    ("claim_by_people", "claim"),
    ("no_response",),
    ("no_gold",),
    ("refused",),
    (),  # a user's own rules
    ("citations", "flag", "citation"),
)
"""Names of rules in the order in which lists of cases are sorted; others of ``RULES`` come last.
The reason of a case follows the order of ``RULES`` instead."""

OF_SOME_RUNS = frozenset({"tools"})
"""Sections for which most bots have no data. Such sections are not missed. Their rules count in the
hash of all only if a user has changed them: runs without such scores are decided as before."""


def vital_facts_missing(judged: float, strict: float) -> float:
    """Return the share of the vital facts that are entirely missing from the answer, in [0, 1].

    ``judged`` = (whole + partial / 2) / facts and ``strict`` = whole / facts, so that
    missing / facts = 1 + strict - 2 x judged.
    """
    return round(1 + strict - 2 * judged, 6)


RULES: tuple[CaseRule, ...] = (
    CaseRule(
        "no_response",
        "error",
        "without a response",
        "the call gave no response",
        "pipeline.answered",
        ">=",
        1,
    ),
    CaseRule(
        "answered",
        "answered",
        "answered though unanswerable",
        "answered, though the documents do not contain the answer",
        "abstention.hallucination_on_unanswerable",
        "<=",
        0,
    ),
    CaseRule(
        "refused",
        "refused",
        "declined an answerable question",
        "declined, though the documents contain the answer",
        "abstention.over_refusal",
        "<=",
        0,
    ),
    CaseRule(
        "forbidden_claim",
        "forbidden",
        "with a forbidden claim",
        "states {value} forbidden claim{s}",
        "groundedness.forbidden_claims",
        "<=",
        0,
        evidence="forbidden_claims_found",
    ),
    CaseRule(
        "forbidden_flag",
        "forbidden flag",
        "with a forbidden flag",
        "has a forbidden policy flag",
        "pipeline.forbidden_flags_absent",
        ">=",
        1,
        evidence="forbidden_flags",
    ),
    CaseRule(
        "forbidden_tool",
        "forbidden tool",
        "with a forbidden tool call",
        "called a forbidden tool",
        "tools.forbidden_called",
        "<=",
        0,
    ),
    CaseRule(
        "wrong_by_people",
        "wrong (people)",
        "judged wrong by people",
        "people give {value} of 5 points for correctness",
        "judged.correctness_by_people",
        ">",
        2,
        tells_right=True,
        overrules=("wrong",),
    ),
    CaseRule(
        "wrong",
        "wrong",
        "judged wrong",
        "the judge gives {value} of 5 points for correctness",
        "judged.correctness",
        ">",
        2,
        judged=True,
        tells_right=True,
    ),
    CaseRule(
        "vital_fact",
        "fact missing",
        "without a vital fact",
        "a vital fact is missing",
        "judged.nugget_recall_vital_judged",
        "<=",
        0,
        judged=True,
        tells_right=True,
        also="judged.nugget_recall_vital_strict",
        of=vital_facts_missing,
    ),
    CaseRule(
        "claim_by_people",
        "claim (people)",
        "with a claim that people find unsupported",
        "people found a claim that no passage supports",
        "judged.faithfulness_by_people",
        ">=",
        1,
        overrules=("claim", "rule_claim"),
    ),
    CaseRule(
        "claim",
        "claim",
        "with an unsupported claim",
        "the judge found a claim that no passage supports",
        "judged.faithfulness",
        ">=",
        1,
        judged=True,
    ),
    CaseRule(
        "no_gold",
        "no gold",
        "without a gold passage",
        "no gold passage {depth}",
        "retrieval.mrr",
        ">",
        0,
        ranked=True,
        softened=RIGHT,
    ),
    CaseRule(
        "tool",
        "tool",
        "without an expected tool call",
        "an expected tool call was not made",
        "tools.tool_recall",
        ">=",
        1,
        softened=RIGHT,
    ),
    CaseRule(
        "no_tool",
        "needless tool",
        "with a tool call where none is expected",
        "called a tool where none is expected",
        "tools.no_call_ok",
        ">=",
        1,
        softened=RIGHT,
    ),
    CaseRule(
        "flag",
        "flag",
        "without a required flag",
        "a required policy flag is missing",
        "pipeline.required_flags_present",
        ">=",
        1,
        evidence="missing_flags",
    ),
    CaseRule(
        "citations",
        "citations",
        "with too few citations",
        "fewer citations than required",
        "pipeline.citations_ok",
        ">=",
        1,
    ),
    CaseRule(
        "outcome",
        "outcome",
        "ended differently than expected",
        "another outcome than expected",
        "pipeline.outcome_match",
        ">=",
        1,
        evidence="outcome",
        softened=UNCERTAIN,
    ),
    CaseRule(
        "number",
        "number",
        "with a number in no passage",
        "{value} number{s} in no passage",
        "groundedness.numeric_fabrications",
        "<=",
        0,
        evidence="numbers",
    ),
    CaseRule(
        "rule_claim",
        "claim by rule",
        "with a claim that rules find unsupported",
        "rules find no support for {value} claim{s}",
        "groundedness.unsupported_claims",
        "<=",
        0,
        "warn",
    ),
    CaseRule(
        "rule_fact",
        "fact by rule",
        "without an expected claim, by rules",
        "rules find {value} of the expected claims",
        "groundedness.expected_claim_recall",
        ">=",
        1,
        "warn",
    ),
    CaseRule(
        "rule_vital",
        "vital by rule",
        "without a vital fact, by rules",
        "rules find {value} of the vital facts",
        "groundedness.nugget_recall_vital",
        ">=",
        1,
        "warn",
    ),
    CaseRule(
        "citation",
        "citation",
        "without an expected citation",
        "an expected source is not cited",
        "groundedness.expected_citation_recall",
        ">=",
        1,
        "warn",
    ),
    CaseRule(
        "latency",
        "time",
        "over their time budget",
        "slower than its time budget",
        "pipeline.latency_ok",
        ">=",
        1,
        "warn",
    ),
)
"""The rules, most harmful first. Those that warn are counted and shown, and fail no case."""

_OWN_RULE = HARM.index(())

_HARM_OF = dict.fromkeys((rule.name for rule in RULES), len(HARM)) | {
    name: place for place, names in enumerate(HARM) for name in names
}


def harm_of(name: str) -> int:
    """The place of a rule in the order of harm, from 0; rules that users add have their own."""
    return _HARM_OF.get(name, _OWN_RULE)
