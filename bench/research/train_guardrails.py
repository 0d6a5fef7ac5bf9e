"""Train the injection model that ships with the guardrails (for developers of this toolkit).

In: a folder with the open prompt sets (`--data` or RAG_EVAL_DATA; `detectors.py` lists
them). Only sets whose licence lets derived weights be shipped are used. Out: one JSON file with
hashed, rounded weights; no text of the sets is in it. Measure it with validate_guardrails.py.

\b
Examples:
  python bench/research/train_guardrails.py --data ~/open-data
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "eval" / "scripts"))

import options
import storage

if TYPE_CHECKING:
    from research.detectors import LabelledPrompt

MODEL = storage.ROOT / "eval" / "scripts" / "guardrails" / "injection_model.json"


def _describe(prompts: list[LabelledPrompt]) -> dict[str, dict[str, int]]:
    counts = Counter((prompt.set, prompt.label) for prompt in prompts)
    return {
        name: {"attack": counts[name, 1], "benign": counts[name, 0]}
        for name in dict.fromkeys(prompt.set for prompt in prompts)
    }


@options.command(help=__doc__)
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    envvar="RAG_EVAL_DATA",
    required=True,
    help="Folder with the open prompt sets.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=MODEL,
    help="Where the model is written (default: the one that ships).",
)
def main(data: Path, output: Path) -> None:
    """Train the injection model on the open sets that may be trained on."""
    from research import fitting
    from research.detectors import fingerprint, read_prompts, trainable_sets

    allowed = trainable_sets()
    prompts = [prompt for prompt in read_prompts(data) if prompt.set in allowed]
    labels = [prompt.label for prompt in prompts]
    if len(set(labels)) != 2:
        raise click.UsageError(
            f"{data} holds no attacks or no benign prompts; point --data at the open sets"
        )
    model = fitting.fit(
        fitting.featurize([prompt.text for prompt in prompts]),
        labels,
        [prompt.set for prompt in prompts],
    )
    sets = _describe(prompts)
    storage.replace_json(
        output,
        {
            "schema": 1,
            "sets": sets,
            "trained_on": " ".join(sorted({fingerprint(prompt) for prompt in prompts})),
            **fitting.packed(model),
        },
    )
    for name, counts in sets.items():
        click.echo(f"{name}: {counts['attack']} attacks, {counts['benign']} benign", err=True)
    click.echo(f"{len(prompts)} prompts, {len(model.weights)} weights -> {output}", err=True)


if __name__ == "__main__":
    main()
