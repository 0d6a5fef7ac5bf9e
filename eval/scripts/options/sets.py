"""Find the set and the folder of labels that a script reads if the user names none."""

from __future__ import annotations

from pathlib import Path

import click

from options.commands import say
from terminal.tables import printable


def set_of_run(
    folder: Path, eval_set: Path | None, labels_dir: Path | None = None
) -> tuple[Path, Path]:
    """The set and the folder of labels: those that the user named, else those that belong to the
    run; for ``opt.run_set`` and ``opt.labels_dir``."""
    from records.asked import asked_set, set_elsewhere

    chosen = eval_set or asked_set(folder)
    if eval_set is None and not _quiet() and (remark := set_elsewhere(folder)):
        say(f"Note: {remark}")
    return chosen, labels_dir or _own_labels(chosen)


def labels_of(eval_set: Path | None, labels_dir: Path | None) -> Path | None:
    """The folder asked for, else the one that belongs to the set; None until the run says which set
    that is.

    Raises click.BadParameter for a folder that is not there.
    """
    from records.labels import own_labels

    if eval_set and (labels_dir is None or labels_dir.resolve() == own_labels(eval_set).resolve()):
        return _own_labels(eval_set)  # which need not be there: labels are optional
    if labels_dir is not None and not labels_dir.is_dir():
        raise click.BadParameter(f"{labels_dir}: no such folder.", param_hint="'--labels-dir'")
    return labels_dir


def _own_labels(eval_set: Path) -> Path:
    """The folder of labels that belongs to a set; says which label files beside the set do not
    count."""
    from records.labels import own_labels, passed_over

    if not _quiet():
        for sentence in passed_over(eval_set):
            click.echo(f"Note: {printable(sentence)}", err=True)
    return own_labels(eval_set)


def _quiet() -> bool:
    context = click.get_current_context(silent=True)
    return context is None or bool(context.params.get("quiet"))
