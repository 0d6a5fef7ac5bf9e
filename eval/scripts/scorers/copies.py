"""Copies of runs: some cases of it, or the same answers with the labels of another set."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from decisions.conditions import read_run
from decisions.same_cases import ScoredBase, align
from ragmetrics import catalogue
from records.asked import ASKED, asked_ids, asked_of
from records.errors import StorageError
from records.files import replace_json, sha256_file
from records.fingerprints import asked_digests, read_asked
from records.labels import labels_sha256, read_cases
from records.metrics import load_metrics, update_metrics
from records.results import RunConfig
from records.run import Run
from records.runs import (
    CONFIG,
    METRICS,
    RESULTS,
    SAFETY_RESULTS,
    SCORES,
    SLICES,
    read_config,
    scored_sections,
    scores_file,
)
from records.scores import OWN_TEXTS
from records.set_versions import set_of_reference, set_with
from scorers import SECTIONS
from scorers.contract import ScoringJob
from scorers.sections import try_section

_NOT_AT_HAND = frozenset({"verdicts", "plugin"})
"""What sections that are not scored again need: a judge's verdicts are on the old labels."""

_OPTIONS = {"cached_only": True}
"""Options of scorers: no model is loaded, and none is asked for."""


@contextlib.contextmanager
def scored_alike(
    base: Path, new: Path, eval_set: Path, labels_dir: Path, *, rescore: bool = True
) -> Iterator[ScoredBase]:
    """The base with scores by the labels of the new run, while the block lasts.

    It is the base itself where no label of a shared case changed, where its results or the set of
    the new run are not there, and without ``rescore``. Sections with a judge or a plugin, and those
    that were scored with another model or with judgements, stay as they are.
    """
    with contextlib.ExitStack() as stack:
        place = eval_set, labels_dir
        yield _scored_alike(base, new, place, stack) if rescore else ScoredBase(base)


def _scored_alike(
    base: Path, new: Path, place: tuple[Path, Path], stack: contextlib.ExitStack
) -> ScoredBase:
    sections = set(scored_sections(base)) & {*scored_sections(new)} & {*catalogue.SECTIONS}
    if not sections or not (base / RESULTS).exists():
        return ScoredBase(base)
    old, now = read_run(base), read_run(new)
    changes = align(old, now, sections, [place])
    if changes is None:
        return ScoredBase(base)
    changed = {name: cases for name, cases in changes.relabelled.items() if cases}
    chosen = [n for n in changed if not _NOT_AT_HAND & {*catalogue.SECTIONS[n].needs}]
    hashes = now.metrics.get("eval_set_sha256"), now.metrics.get("labels_sha256")
    version = stack.enter_context(set_with(*hashes, [place])) if chosen else None
    if version is None:
        return ScoredBase(base)
    parent = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rag-eval-")))
    folder, again = with_labels(base, version, chosen, changes.shared, parent)
    own = frozenset[str]().union(*(changed[name] for name in again if name != OWN_TEXTS))
    return ScoredBase(folder, len(own - changes.reworded))


def with_labels_of(
    run: Path, reference: str, eval_set: Path, labels_dir: Path, stack: contextlib.ExitStack
) -> Path:
    """Copies a run, scored with the set and labels of a git reference, while the stack lasts.

    The copy has the cases that the run was asked as they are there. Raises StorageError where git
    does not have the set, or where it shares no case with the run.
    """
    version = stack.enter_context(set_of_reference(reference, eval_set, labels_dir))
    own = read_asked(run) or asked_digests(read_cases(eval_set, labels_dir))
    then = asked_digests(read_cases(*version))
    shared = [case_id for case_id, asked in then.items() if own.get(case_id) == asked]
    sections = [
        name
        for name in scored_sections(run)
        if name in catalogue.SECTIONS and not _NOT_AT_HAND & {*catalogue.SECTIONS[name].needs}
    ]
    parent = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rag-eval-")))
    header = {
        "eval_set_sha256": sha256_file(version[0]),
        "labels_sha256": labels_sha256(version[1], version[0]),
    }
    return with_labels(run, version, sections, shared, parent, header)[0]


def with_labels(
    run: Path,
    version: tuple[Path, Path],
    sections: Iterable[str],
    case_ids: Collection[str],
    parent: Path,
    header: dict[str, Any] | None = None,
) -> tuple[Path, list[str]]:
    """A copy of a run in ``parent``, where some sections are scored with another version of the set
    and its labels; and which these are.

    ``case_ids``: the cases that the set and the run have. ``header``: hashes of that version;
    without them the copy keeps those that tell how its other sections were labelled.
    """
    folder = parent / run.resolve().name
    (folder / SCORES).mkdir(parents=True)
    for path in (*run.iterdir(), *(run / SCORES).iterdir()):
        if path.is_file() and path.suffix != ".lock":
            (folder / path.relative_to(run)).symlink_to(path.resolve())
    for name in (METRICS, SLICES):
        (folder / name).unlink(missing_ok=True)
        if (run / name).exists():
            shutil.copyfile(run / name, folder / name)
    part = copy_of_part(run, case_ids, parent / "part")
    before, again = load_metrics(run / METRICS)["sections"], []
    for name in sections:
        job = ScoringJob(part, *version, case_lines=False)
        options = _OPTIONS | _own_options(before[name])
        own = try_section(name, job, options).section if name in SECTIONS else None
        if own is None or _options(own) != _options(before[name]):
            continue
        scores_file(folder, name).unlink()
        shutil.move(scores_file(part, name), scores_file(folder, name))
        update_metrics(folder, name, own, header or {})
        again.append(name)
    return folder, again


def _options(section: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in section.get("options", {}).items() if name != "seed"}


def _own_options(section: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a section was scored with, by the names of its scorer's options; without
    those that stand for something else: a model, files of judgements."""
    options = _options(section)
    if "k" in options:
        options["ks"] = tuple(options["k"])
    elsewhere = ("judgements", *(name for name in options if name.endswith("model")))
    return {name: value for name, value in options.items() if name not in elsewhere}


def copy_of_part(folder: Path, ids: Iterable[str], parent: Path, remedy: str = "") -> Path:
    """Copies to ``parent`` a run with the results of these cases alone.

    The real run's scores and metrics.json are of the whole run: a part of it must not write there.
    Raises StorageError when the run has none of the cases; ``remedy``: what to do then.
    """
    part_ids = list(ids)
    case_ids = set(part_ids)
    target = parent / folder.name
    target.mkdir(parents=True)
    if (folder / SAFETY_RESULTS).exists():
        shutil.copyfile(folder / SAFETY_RESULTS, target / SAFETY_RESULTS)
    if (folder / CONFIG).exists():
        config = _config_of_part(read_config(folder), part_ids)
        replace_json(target / CONFIG, msgspec.to_builtins(config))
    copied = 0
    with open(target / RESULTS, "wb") as file:
        for result in Run(folder).results:
            if result.test_case_id in case_ids:
                file.write(msgspec.json.encode(result) + b"\n")
                copied += 1
    if not copied:
        raise StorageError(f"{folder}: has no result of these cases{remedy}.")
    return target


def _config_of_part(config: RunConfig, ids: Sequence[str]) -> RunConfig:
    """The configuration of a copy that holds the results of some cases of the set.

    Of a run that was asked its whole set they were all asked; of one that lists its cases, those in
    the list. Of any other run the number is unknown."""
    asked, listed = asked_of(config), asked_ids(config)
    part: list[str] | None = None
    if listed is not None:
        part = [case_id for case_id in listed if case_id in set(ids)]
    elif asked is not None and asked.cases == config.dataset.get("cases"):
        part = list(ids)
    run = {name: value for name, value in config.run.items() if name not in ("imported", ASKED)}
    if part is None:
        return msgspec.structs.replace(config, run=run | {"selected": None})
    return msgspec.structs.replace(config, run=run | {"selected": len(part), ASKED: part})
