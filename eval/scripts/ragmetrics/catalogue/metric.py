"""Defines the metrics and sections of the catalogue as data, one field per property."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

BY_DOCUMENT = " (by document)"
"""The suffix of a metric's name where whole files are gold. No target, gate or verdict has such a
name, and no table hides it."""

Need = Literal[
    "texts",
    "verdicts",
    "labelled texts",
    "embedding model",
    "plugin",
    "searches",
    "conversations",
    "tools",
    "rubrics",
]
"""The data that a section requires. They are: full chunk texts, a judge's verdicts, attacks and
leaks that people labelled, a model that embeds, a file with metrics of the user's own, results that
report their searches, a set with conversations, results that report their tool calls, verdicts by
rubrics of the user's own."""


Counted = Literal["case", "share", "number"]
"""What a mean may be called in a sentence. ``case``: a case scores 0 or 1, so it is a count of
cases. ``share``: cases may score in between, so it is a share of what is measured. ``number``: of
nothing that could be counted, such as a rank, a cosine or a time."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric's meaning, its range and how it is shown.

    ``low``, ``high``: the ends of its range (None: unbounded). ``binary``: a case scores 0 or 1,
    so the mean is a proportion, and it is ``counted`` by cases; what has another unit than a share
    is a number. ``of_run``: what a case scores depends on the other cases of the run.
    ``at_k``: computed at each cut-off, named ``name@k``. ``needs``:
    what a case must bring, else it is not applicable. ``function``: for metrics of one Ranking,
    and those of a plugin.

    ``headline``: its rank among what is shown of its section first (0: only with all the others);
    ``shown_k``: the cut-off at which it is shown (0: by its plain name). ``compared``: it stands
    for its family where two runs are compared, though no headline has it. ``overview``: its rank
    where metrics of all sections stand side by side, as in a list of runs (0: not there), with
    ``short`` as a narrow column's head. ``primary``: it decides whether a run got better.
    ``target``: its key in eval/targets.toml ("": none is set there). ``must``: a labelled
    prompt at its bad end was judged wrongly. ``tells_right``: its rank among the metrics that
    say whether an answer is right (0: it does not). ``calls``: the kinds of judgement that it is
    counted from. ``words``: what it measures, for a reader who does not know its name; ``says``: a
    sentence without its subject that tells its value, of metrics that may decide. ``{k}`` in them
    is the cut-off, ``{value}`` the number (``115 of 146``, ``79 %``).
    """

    name: str
    family: str
    meaning: str
    needs: str
    source: str
    low: float | None = 0.0
    high: float | None = 1.0
    unit: str = "share"
    higher_is_better: bool = True
    binary: bool = False
    counted: Counted = "share"
    of_run: bool = False
    at_k: bool = False
    version: int | str = 1
    function: Callable[..., float | None] | None = None
    headline: int = 0
    shown_k: int = 5
    compared: bool = False
    overview: int = 0
    short: str = ""
    primary: bool = False
    target: str = ""
    must: bool = False
    tells_right: int = 0
    calls: tuple[str, ...] = ()
    words: str = ""
    says: str = ""

    def __post_init__(self) -> None:
        if self.binary:
            object.__setattr__(self, "counted", "case")
        elif self.unit != "share":
            object.__setattr__(self, "counted", "number")

    def in_words(self, name: str) -> str:
        """Describe in plain words the metric that is computed as ``name``."""
        return at_cutoff(self.words, name) + (BY_DOCUMENT if name.endswith(BY_DOCUMENT) else "")

    @property
    def is_main(self) -> bool:
        """Whether the metric represents its family when two runs are compared."""
        return bool(
            self.compared or self.headline or self.primary or self.target or self.tells_right
        )

    @property
    def definition(self) -> str:
        """The definition's id, such as ``retrieval/ndcg@1``; the number is its version."""
        return f"{self.family}/{stem_of(self.name)}@{self.version}"

    @property
    def per_search_definition(self) -> str:
        """The id of the same metric where the first k of each of several searches count: another
        number than that of one list, which no comparison may mix with it."""
        return f"{self.family}/{stem_of(self.name)}_per_search@{int(self.version) + 1}"

    def shown_as(self, cutoffs: Sequence[int] = ()) -> str:
        """The name under which it is shown: at its usual cut-off, or the nearest one there is."""
        if not self.at_k or not self.shown_k:
            return self.name
        return f"{self.name}@{nearest_cutoff(self.shown_k, cutoffs)}"


@dataclass(frozen=True, slots=True)
class MetricSection:
    """A part of metrics.json, with the metrics that its scorer computes.

    ``script``: what scores it. ``labels``: the fields of a case that it reads. ``needs``: what it
    cannot do without. ``worst_by``: the metric that bad cases are sorted by. ``alias``: another
    name that options take.
    """

    name: str
    title: str
    metrics: tuple[Metric, ...]
    script: str
    labels: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    worst_by: str = ""
    alias: str = ""

    def headline(self, cutoffs: Sequence[int] = ()) -> tuple[str, ...]:
        """Return the names of the metrics that are shown first, in order."""
        ranked = sorted((row for row in self.metrics if row.headline), key=lambda row: row.headline)
        return tuple(row.shown_as(cutoffs) for row in ranked)

    @property
    def must(self) -> tuple[str, ...]:
        """The metrics whose bad end makes a labelled prompt one that was judged wrongly."""
        return tuple(row.name for row in self.metrics if row.must)

    @property
    def targets(self) -> tuple[str, ...]:
        """The keys that eval/targets.toml has for it."""
        return tuple(row.target for row in self.metrics if row.target)


def by_document(rows: Iterable[Metric]) -> tuple[Metric, ...]:
    """The same metrics over the cases whose gold is a whole file."""
    return tuple(replace(row, name=row.name + BY_DOCUMENT) for row in rows)


def stem_of(name: str) -> str:
    """Return the name of a metric's row, without ``@k`` and any other suffix."""
    return name.removesuffix(BY_DOCUMENT).partition("@")[0]


def at_cutoff(text: str, name: str) -> str:
    """A text about a metric, with the cut-off of the name it is computed under."""
    k = name.removesuffix(BY_DOCUMENT).partition("@")[2]
    if k == "1":
        text = text.replace("first {k} passages", "first passage")
        text = text.replace("first {k}", "first passage")
    return text.replace("{k}", k)


def nearest_cutoff(k: int, cutoffs: Sequence[int]) -> int:
    """The cut-off nearest to ``k``, of two the smaller one; ``k`` itself without any."""
    return min(cutoffs, key=lambda cutoff: (abs(cutoff - k), cutoff), default=k)


def at_cutoffs(metrics: Iterable[Metric], ks: Iterable[int]) -> tuple[Metric, ...]:
    """The metrics as computed: ``name@k`` for each cut-off, MRR once more over the whole list."""
    named: list[Metric] = []
    cutoffs = tuple(ks)
    for metric in metrics:
        if not metric.at_k:
            named.append(metric)
            continue
        if metric.name == "mrr":
            named.append(metric)
        named.extend(replace(metric, name=f"{metric.name}@{k}") for k in cutoffs)
    return tuple(named)
