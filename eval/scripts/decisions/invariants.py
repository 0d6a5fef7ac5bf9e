"""May two runs be compared? What must be the same, and what was varied on purpose.

What measures (the set, the gold, the judge, definitions, options of the scorers, the payload that
scores are made from) must be the same; what is measured (index, retriever, answerer, API) is what
the comparison is about.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from decisions.comparison import Difference, shown
from decisions.conditions import Conditions
from records.asked import ASKED, missing_remark
from records.errors import StorageError
from records.results import UNREADABLE, RunConfig
from records.run import Run
from records.runs import CONFIG, scored_sections, scores_file
from terminal.tables import plain

PAYLOAD = ("answer", "references", "retrieved", "abstained", "latency_ms")

ITEM_FIELDS = ("chunk_id", "doc_id", "rel_path", "heading_path", "text")
"""Fields of the bot's answer that scores are made from; the rest describes the system itself."""

FREE_OPTIONS = ("seed", "k", "judge")
"""Options of a scorer that chance alone depends on, that names carry (``recall@5``), and the judge,
who is looked at by himself. An option that is the empty text was not used."""

LABELS = "labels_sha256"

SEEN = "fingerprints"
"""The server's report on its build, which may change from call to call."""

SYSTEM = ("index", "retriever", "answerer")

PARTS = (*SYSTEM, "api")


class IncomparableError(StorageError):
    """Two runs differ in a setting that must be the same; ``differences`` names it.

    ``override``: the option of the running script that compares all the same; "" without one.
    """

    def __init__(
        self, base: str, new: str, differences: Sequence[Difference], override: str = ""
    ) -> None:
        self.differences = tuple(differences)
        names = {difference.name for difference in differences}
        why, remedy = "they differ in what measures them", "Score or ask one of them again"
        if "eval set (asked)" in names:
            why = "they were asked different versions of the eval set (fingerprints below)"
            remedy = f"Ask {base} again with the set of {new} (run_eval.py), then score it"
        elif "eval set (scored)" in names:
            why = "they were scored with different versions of the eval set (fingerprints below)"
            remedy = f"Score {base} again with the set of {new} (eval_suite.py)"
        lines = [f"{base} and {new} cannot be compared: {why}."]
        lines += [f"  {difference}" for difference in differences]
        more = f"; {override} compares them anyway" if override else ""
        lines.append(f"{remedy}{more}.")
        super().__init__("\n".join(lines))


def controls(
    base: Conditions, new: Conditions, sections: Iterable[str], *, cases_known: bool = False
) -> list[Difference]:
    """Differences in settings that must be the same for the compared sections. ``cases_known``: see
    ``run_controls``."""
    sections = list(sections)
    options = scored_otherwise(base, new, sections).values()
    of_run = run_controls(base, new, sections, cases_known=cases_known)
    return [*of_run, *(one for found in options for one in found)]


def scored_otherwise(
    base: Conditions, new: Conditions, sections: Iterable[str]
) -> dict[str, list[Difference]]:
    """The sections whose options or judge differ, each with the differences. The other sections
    of the two runs can be compared all the same."""
    differing: dict[str, list[Difference]] = {}
    for name in sections:
        found = list(_option_differences(name, base.section(name), new.section(name)))
        if name in JUDGED:
            found = _judge_differences(judge_of(base, name), judge_of(new, name)) + found
        if found:
            differing[name] = found
    return differing


def left_out(section: str, differences: Sequence[Difference], override: str = "") -> str:
    """Why a section is not compared, and the remedy, in a sentence."""
    script = "judge_answers.py" if section in JUDGED else f"score_{section}.py"
    more = f"; {override} compares it anyway" if override else ""
    return (
        f"{section} is left out, because it was scored differently (base → new): "
        f"{'; '.join(map(str, differences))}; score one of the runs again like the other "
        f"({script}){more}."
    )


def comparable_sections(
    base: Conditions,
    new: Conditions,
    sections: Sequence[str],
    primary: Sequence[str],
    needed: Collection[str] = (),
    override: str = "",
    *,
    cases_known: bool = False,
) -> dict[str, str]:
    """The sections that are left out, each with a sentence that says why.

    Raises IncomparableError when that leaves none, or none with a metric of ``primary``, or leaves
    out one that is ``needed``, and for runs that differ in what measures all of their sections.
    """
    differing = scored_otherwise(base, new, sections)
    alike = [name for name in sections if name not in differing]
    deciding = {name.partition(".")[0] for name in primary}
    bare = not alike or (bool(deciding) and deciding <= differing.keys())
    of_run = run_controls(base, new, alike, cases_known=cases_known)
    if bare or differing.keys() & {*needed} or of_run:
        found = controls(base, new, sections, cases_known=cases_known)
        raise IncomparableError(base.id, new.id, found, override)
    return {name: left_out(name, found, override) for name, found in differing.items()}


def run_controls(
    base: Conditions, new: Conditions, sections: Iterable[str], *, cases_known: bool = False
) -> list[Difference]:
    """Differences in settings that must be the same for all sections, and in definitions of
    metrics. ``cases_known``: which cases did not change is known, so the sets may be two."""
    pairs = {
        "eval set (asked)": (base.config.dataset.get("sha256"), new.config.dataset.get("sha256")),
        "eval set (scored)": (
            base.metrics.get("eval_set_sha256"),
            new.metrics.get("eval_set_sha256"),
        ),
    }
    differences_found = [
        Difference(name, old, now)
        for name, (old, now) in pairs.items()
        if old and now != old and now and not cases_known
    ]
    # what earlier versions wrote has no such key; null: there were no labels
    if LABELS in base.metrics and LABELS in new.metrics and not cases_known:
        differences_found += _differences(
            base.metrics[LABELS], new.metrics[LABELS], "labels (scored)"
        )
    for name in sections:
        differences_found += _definition_differences(name, base.section(name), new.section(name))
    return differences_found + list(_payload_differences(base.config, new.config))


JUDGED = ("judged", "rubrics")
"""The sections with a judge's verdicts."""


def judge_of(run: Conditions, section: str = JUDGED[0]) -> Mapping[str, Any]:
    """Who judged and how: as the scores say, else as config.json says; {} when no judge did."""
    scored = run.section(section).get("options", {}).get("judge")
    judge: Mapping[str, Any] = scored or run.config.judge
    return judge


def _judge_differences(base: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    """Identity, parameters and way of asking; prompts that both used; the name a server answered
    under, where both tell it. What a server says of its build from call to call is a remark."""
    old, now = ({k: v for k, v in judge.items() if k != SEEN} for judge in (base, new))
    prompts = [judge.pop("prompts", None) or {} for judge in (old, now)]
    names = [judge.pop("answered_as", None) or [] for judge in (old, now)]
    changed = _differences(old, now, "judge")
    for name in sorted(prompts[0].keys() & prompts[1].keys()):
        one, other = prompts[0][name], prompts[1][name]
        if "target" not in one or "target" not in other:  # config.json tells none
            one, other = ({**of, "target": None} for of in (one, other))
        changed += _differences(one, other, f"judge.prompts.{name}")
    if all(names):
        changed += _differences(names[0], names[1], "judge.answered_as")
    return changed


def _definition_differences(
    name: str, base: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[Difference]:
    old, now = base.get("definitions", {}), new.get("definitions", {})
    for metric in (metric for metric in old if metric in now):
        if old[metric] != now[metric]:
            yield Difference(f"{name}.definitions.{metric}", old[metric], now[metric])


def _option_differences(
    name: str, base: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[Difference]:
    for difference in _differences(
        base.get("options", {}), new.get("options", {}), f"{name}.options"
    ):
        option = difference.name.split(".")[2]
        unused = "" in (difference.base, difference.new)
        if option not in FREE_OPTIONS and not unused:
            yield difference


def _payload_differences(base: RunConfig, new: RunConfig) -> Iterator[Difference]:
    """Fields that only one bot sends, of those that scores are made from.

    The fields come from one answer, so those of list items count only where both lists had items.
    """
    old, now = (set(config.api.get("fields_seen") or ()) for config in (base, new))
    if not old or not now:
        return
    fields = list(PAYLOAD)
    for name in ("references[]", "retrieved[]"):
        if all(any(field.startswith(f"{name}.") for field in seen) for seen in (old, now)):
            fields += [f"{name}.{item}" for item in ITEM_FIELDS]
    for name in fields:
        if (name in old) != (name in now):
            yield Difference(
                f"payload field {name}", *("sent" if name in seen else None for seen in (old, now))
            )


def varied(base: Conditions, new: Conditions) -> list[Difference]:
    """Differences of the measured bots: index, retriever, answerer, API, seed, way of asking; none
    where the settings of a run are not known."""
    if without_settings(base, new):
        return []
    changed: list[Difference] = []
    for part in PARTS:
        old, now = dict(getattr(base.config, part)), dict(getattr(new.config, part))
        for part_of_run in (old, now):
            for name in ("fields_seen", "mapped"):
                part_of_run.pop(name, None)
        changed += _differences(old, now, part)
    changed += _differences({"seed": base.config.seed}, {"seed": new.config.seed}, "")
    cases = (ASKED, "selected")  # how many there were is no setting
    old, now = ({k: v for k, v in r.config.run.items() if k not in cases} for r in (base, new))
    return changed + _differences(old, now, "run")


def without_settings(*runs: Conditions) -> list[str]:
    """The ids of the runs whose config.json is missing."""
    return [run.id for run in runs if not run.has_settings]


def _differences(base: Any, new: Any, name: str) -> list[Difference]:
    """Leaves that differ between two trees of JSON objects; lists are leaves."""
    if not (isinstance(base, Mapping) and isinstance(new, Mapping)):
        return [] if base == new else [Difference(name, base, new)]
    return [
        difference
        for key in sorted(base.keys() | new.keys())
        for difference in _differences(
            base.get(key), new.get(key), f"{name}.{key}" if name else key
        )
    ]


def remarks(
    base: Conditions, new: Conditions, changes: Sequence[Difference], declared: Sequence[str]
) -> list[str]:
    """Remarks on the configurations for a reader, in sentences."""
    notes = []
    unchanged = [
        part for part in declared if not any(_under(change.name, part) for change in changes)
    ]
    if unchanged:
        notes.append(f"Declared as varied, but the same in both: {', '.join(unchanged)}.")
    if not changes and base.config.config_hash == new.config.config_hash:
        notes.append(_same_report(base.config, new.config))
    if coarser := _coarseness_note(base, new):
        notes.append(coarser)
    for run in (base, new):
        if remark := missing_remark(run.metrics):
            notes.append(
                f"{run.id}: {remark}; 0 in answered and pass if the run says which they are, "
                "else in no mean."
            )
    unread = [run.metrics.get(UNREADABLE) or 0 for run in (base, new)]
    if any(unread):
        notes.append(
            f"Answers that could not be read: {unread[0]} in {base.id}, {unread[1]} in {new.id}: "
            "they count in no score, as its coverage shows."
        )
    failed = [run.metrics.get("errors") or 0 for run in (base, new)]
    if any(failed):
        notes.append(
            f"Calls that failed: {failed[0]} in {base.id}, {failed[1]} in {new.id}: 0 in "
            "answered and pass; no other metric scores them, as its coverage shows."
        )
    old, now = judge_of(base).get(SEEN), judge_of(new).get(SEEN)
    if old and now and old != now:
        notes.append(
            f"The judge's server reports other builds: {', '.join(old)}; then {', '.join(now)}."
        )
    marks = [of.get("marks", {}) for run in (base, new) if (of := run.section(JUDGED[1]))]
    names = marks[0] if marks else ()
    if bare := [x for x in names if all("not calibrated" in of.get(x, "") for of in marks)]:
        notes.append(f"Not calibrated by labels of people: {', '.join(bare)}.")
    if base.config.tool_version != new.config.tool_version:
        notes.append(
            f"The toolkit's version differs: {base.config.tool_version or 'unknown'}, "
            f"{new.config.tool_version or 'unknown'}."
        )
    return notes


LOOKED_AT = 2000
"""Score lines of each run that are read for the gold's share of a chunk; more lines add nothing."""

COARSER = 1.1
"""The ratio of supports a chunk from which two runs differ in the size of their chunks."""


def _coarseness_note(base: Conditions, new: Conditions) -> str:
    """What to say where the chunks of one run hold more gold supports each; "" where they do not.

    NDCG, precision and MAP count chunks, so between such runs they tell of the chunking too.
    """
    old, now = (_supports_per_chunk(run.source) for run in (base, new))
    if not old or not now or max(old, now) < COARSER * min(old, now):
        return ""
    return (
        f"A matching chunk brings {old:.2f} gold supports in {base.id}, {now:.2f} in {new.id}: the "
        "chunks differ in size. NDCG, precision and MAP count chunks; compare these runs by "
        "evidence_recall and snippet_recall."
    )


def _supports_per_chunk(folder: Path) -> float | None:
    """Gold supports that were found / chunks that brought them; None where nothing tells."""
    if not scores_file(folder, "retrieval").exists():
        return None
    supports = chunks = 0
    for line in islice(Run(folder).lines("retrieval"), LOOKED_AT):
        found = line.evidence.found if line.evidence else None
        ranks = [rank for rank in found or () if rank is not None]
        supports += len(ranks)
        chunks += len(set(ranks))
    return supports / chunks if chunks else None


def _same_report(base: RunConfig, new: RunConfig) -> str:
    """What equal configurations are worth: as much as the bots report of themselves."""
    reported = [part for part in SYSTEM if _facts(base, part) and _facts(new, part)]
    silent = [part for part in SYSTEM if part not in reported]
    if not reported:
        return (
            "The bot does not report its index, retriever and answerer: differences are chance, or "
            "a change of these."
        )
    parts = ", ".join(reported) + (
        f"; nothing is known of its {', '.join(silent)}" if silent else ""
    )
    return (
        f"What the bot reports of itself is the same in both runs ({parts}): differences are "
        "chance, or what the bot does not report."
    )


def _facts(config: RunConfig, part: str) -> dict[str, Any]:
    """What the bot reported of a part of itself; what the run asked for is no report."""
    return {name: value for name, value in getattr(config, part).items() if name != "requested"}


_HISTORY = "retriever.requested.history"
"""What turns of conversations were asked with; runs over other sets do not have it."""

_ADDRESS = "api.url"

_IMPORTED = {"answerer.imported_sha256", "api.path"}
"""Of a file with answers: no settings of the bot."""


MOST_CHANGED = 4
"""Settings that changed and are named."""


def changed_words(changes: Sequence[Difference], unknown: Sequence[str] = ()) -> str:
    """The settings of the bot that changed, in a sentence: ``Changed: k 10 → 3.``

    ``unknown``: runs whose settings are not known, see ``without_settings``.
    """
    if unknown:
        runs = plain(" and ".join(unknown))
        return f"The settings of {runs} are not known (no {CONFIG}, or one of another run)."
    differences = {change.name: change for change in changes}
    names = [name for name in _changed_things(changes) if name not in _IMPORTED]
    leaves = Counter(map(_setting, names))
    words = []
    for name in names[:MOST_CHANGED]:
        label = _setting(name) if leaves[_setting(name)] == 1 else name
        old, now = differences[name].base, differences[name].new
        words.append(f"{plain(label)} {_short(shown(old))} → {_short(shown(now))}")
    if not words and not _IMPORTED.isdisjoint(differences):
        return "The answers come from a file: what changed in the bot is not known."
    if not words:
        return "Nothing in the settings changed."
    if len(names) > MOST_CHANGED:
        words.append(f"{len(names) - MOST_CHANGED} more")
    several = " None can be credited alone." if len(names) > 1 else ""
    return f"Changed: {'; '.join(words)}.{several}"


def _short(value: str) -> str:
    """A value to be read; of a hash its beginning."""
    return f"{value[:8]}…" if _HASH.fullmatch(value) else plain(value)


_HASH = re.compile("[0-9a-f]{20,}")


def _changed_things(changes: Sequence[Difference]) -> list[str]:
    """The settings that changed, each once.

    One setting often shows at several places: as it was asked for and as the bot tells it, and in
    hashes that follow from it. So a name counts once a part, hashes only where nothing else of
    their part changed, and what was asked for only where the bot tells of no change; but for the
    history, of which no bot tells. The bot's address is named where nothing else is. How fast a
    run asked is no setting of the bot.
    """
    by_setting: dict[str, str] = {}
    for part in (*PARTS, "seed"):
        own = [change.name for change in changes if change.name.partition(".")[0] == part]
        plain = [name for name in own if not _is_hash(name)] or own[:1]
        by_setting |= {
            _setting(name): name for name in reversed(plain) if ".requested." not in name
        }
    asked = [change.name for change in changes if ".requested." in change.name]
    if len(by_setting) > 1 or any(name != _HISTORY for name in asked):
        by_setting.pop(_setting(_ADDRESS), None)
    by_setting |= {_setting(name): name for name in asked if not by_setting or name == _HISTORY}
    return sorted(by_setting.values())


def _setting(name: str) -> str:
    return name.rpartition(".")[2]


def _is_hash(name: str) -> bool:
    leaf = _setting(name)
    return ("hash" in leaf or "sha256" in leaf) and "corpus" not in leaf


def _under(name: str, declared: str) -> bool:
    """A declared name is a place (``index``, ``retriever.k``) or the setting alone (``k``)."""
    return f"{name}.".startswith(f"{declared}.") or _setting(name) == declared


def shared_sections(
    base: Conditions, new: Conditions, asked: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Sections to compare, and notes on those that one run lacks.

    Raises StorageError when nothing is left, or a section that was asked for is not there.
    """
    old, now = scored_sections(base.source), scored_sections(new.source)
    notes = []
    for section in sorted({*asked} or {*old, *now}):
        for run, scored in ((base, old), (new, now)):
            if section not in scored:
                lack = f"has no scores of {section}; {_remedy(section, run.id)}"
                if asked:
                    raise StorageError(f"{run.source}: {lack}")
                notes.append(f"{run.id} {lack}")
    shared = [section for section in old if section in now and (not asked or section in asked)]
    if not shared:
        lines = "\n".join(notes) or f"{base.source} and {new.source}: hold no score lines."
        raise StorageError(
            f"{lines}\nCases cannot be compared: metrics.json alone has no score lines."
        )
    return shared, notes


def _remedy(section: str, run: str) -> str:
    """How a run gets its scores of a section."""
    if section == "judged":
        return f"run judge_answers.py --run {run}."
    if section == "custom":
        return "run eval_suite.py with the same --plugin."
    return f"run score_{section}.py --run {run}."
