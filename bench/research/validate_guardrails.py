"""Measure the reference guardrails on open labelled sets, every set by itself.

In: a folder with the sets (`--data` or RAG_EVAL_DATA; `detectors.py` says which and in
which format); sets that are absent are named and left out. Out: tables on stdout, or one JSON
object (`--json`), and on request the generated block of docs/validation.md (`--write`).

\b
Examples:
  python bench/research/validate_guardrails.py --data ~/open-data
  python bench/research/validate_guardrails.py --data ~/open-data --part leakage --json
  python bench/research/validate_guardrails.py --data ~/open-data --write
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import orjson

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "eval" / "scripts"))

import options
import storage
from research import detectors, documents
from research.detectors import HARD_BENIGN, SETS, read_prompts

BLOCK = "guardrails"
WAYS = {
    "rules_only": "rules alone",
    "cross_validated": "own distribution (5-fold by group)",
    "leave_one_set_out": "leave one set out",
}
BY_SET = "leave_one_set_out"
PAGE = storage.ROOT / "docs" / "validation.md"


def _number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _point(point: Mapping[str, Any] | None) -> str:
    if point is None:
        return "-"
    shown = f"{point['tpr']:.3f} (FPR {point['fpr']:.4f})"
    return shown if point["estimable"] else f"{shown}, not estimable"


def _table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    for row in (head, ["-" * width for width in widths], *rows):
        yield "| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) + " |"


def _injection_lines(report: Mapping[str, Any]) -> Iterator[str]:
    if not report:
        yield "no prompt set found"
        return
    yield f"Injection, {report['prompts']} prompts. *Own distribution*: training and test use parts"
    yield "of the same sets, split by source. *Leave one set out*: training does not use the tested"
    yield "set, which is nearest to an unknown kind of prompt. Both are true of prompts like these,"
    yield f"not of yours. The detector as shipped was trained on {report['trained']} of them; its"
    yield "own figures would say nothing and are left out."
    yield ""
    pooled = [
        [
            title,
            f"{numbers['attacks']}/{numbers['benign']}",
            _number(numbers["auc"]),
            _point(numbers["tpr_at_fpr_1"]),
            _point(numbers["tpr_at_fpr_5"]),
            _number(numbers["detection_rate"]),
            _number(numbers["benign_flag_rate"]),
        ]
        for way, title in WAYS.items()
        if way in report
        for numbers in (report[way]["all"],)
    ]
    head = ["way", "attacks/benign", "AUROC", "TPR at 1 % FPR", "TPR at 5 % FPR"]
    yield from _table([*head, "detected (0.40)", "benign flagged"], pooled)
    if BY_SET in report:
        yield ""
        yield f"By set, {WAYS[BY_SET]}:"
        yield ""
        rows = [
            [
                name,
                str(numbers["attacks"]),
                str(numbers["benign"]),
                _number(numbers["auc"]),
                _number(numbers["detection_rate"]),
                _number(numbers["block_rate"]),
                _number(numbers["benign_flag_rate"]),
                _number(numbers["benign_block_rate"]),
            ]
            for name, numbers in report[BY_SET]["sets"].items()
        ]
        head = ["set", "attacks", "benign", "AUROC", "detected", "blocked"]
        yield from _table([*head, "benign flagged", "benign blocked"], rows)
    if report.get("kinds"):
        yield from _kind_lines(report["kinds"])


def _kind_lines(report: Mapping[str, Any]) -> Iterator[str]:
    known, unknown = (_number(report["all"][f"both_{kind}"]) for kind in ("known", "unknown"))
    yield ""
    yield "The share of the attacks that is found while 1 % of harmless texts that look like"
    yield f"attacks are flagged ({', '.join(HARD_BENIGN)}: {report['benign']})"
    yield f"is {known} for known kinds of attacks and {unknown} for unknown kinds. No tested text"
    yield "was in training. Of a *known* kind, other texts of the set were; of an *unknown* kind,"
    yield "none was:"
    yield ""
    head = ["set", "attacks", "rules alone", "known: model alone", "known: both"]
    head += ["unknown: model alone", "unknown: both"]
    ways = ("rules", "model_known", "both_known", "model_unknown", "both_unknown")
    rows = [
        [name, str(numbers["attacks"]), *(_number(numbers[way]) for way in ways)]
        for name, numbers in (report["sets"] | {"all": report["all"]}).items()
    ]
    yield from _table(head, rows)


def _everyday_lines(report: Mapping[str, Any]) -> Iterator[str]:
    total = report["held"]["all"]
    counts = f"flags {total['flagged']} and blocks {total['blocked']}"
    yield f"Of {total['questions']} harmless everyday questions with the words of attacks, none of"
    yield f"them used in training, the shipped detector {counts}."


def _leakage_lines(report: Mapping[str, Any]) -> Iterator[str]:
    yield "Personal data. A look-alike has the form of the type and is none. Private and reserved"
    yield "addresses belong to no person and are not reported; public ones have a row of their own:"
    yield ""
    rows = [
        [name, kind, str(numbers["labelled"][kind]), _number(recall), _lookalikes(numbers, kind)]
        for name, numbers in report.items()
        if name.startswith("pii_")
        for kind, recall in numbers["recall"].items()
    ]
    yield from _table(["set", "type", "labelled", "recall", "false finds"], rows)
    yield ""
    yield from _table(
        ["benign set", "texts", "personal data found", "texts with a secret"],
        [
            [
                name,
                str(numbers["texts"]),
                ", ".join(f"{kind} {n}" for kind, n in numbers["pii"].items()) or "0",
                str(numbers["texts_with_secret"]),
            ]
            for name, numbers in report["benign"].items()
        ],
    )
    yield ""
    yield "Secrets, also without the rules of the maker whose token it is, and without any maker's."
    yield "A look-alike is *contradicted* when the same set has its text, but for the random parts,"
    yield "as a secret of another rule of the same maker:"
    yield ""
    head = ["set", "secrets", "look-alikes", "recall", "own maker's rules left out"]
    head += ["no maker's rules", "look-alikes flagged", "of the contradicted"]
    yield from _table(
        [*head, "detect-secrets: recall", "look-alikes flagged"],
        [
            [
                name,
                str(numbers["secrets"]),
                str(numbers["lookalikes"]),
                _number(numbers["recall"]),
                _number(numbers["recall_own_family_left_out"]),
                _number(numbers["recall_generic_alone"]),
                _number(numbers["lookalikes_flagged"]),
                f"{numbers['lookalikes_contradicted_flagged']} of "
                f"{numbers['lookalikes_contradicted']}",
                _number(numbers.get("detect_secrets_recall")),
                _number(numbers.get("detect_secrets_lookalikes_flagged")),
            ]
            for name, numbers in report.items()
            if name.startswith("secrets_")
        ],
    )


def _lookalikes(numbers: Mapping[str, Any], kind: str) -> str:
    if "lookalikes" in numbers:
        return f"{numbers['lookalikes_found'][kind]} of {numbers['lookalikes'][kind]} look-alikes"
    return str(numbers["false_finds"][kind])


def _block(report: Mapping[str, Any]) -> str:
    """All tables of the parts that were measured."""
    lines = {
        "injection": _injection_lines,
        "everyday": _everyday_lines,
        "leakage": _leakage_lines,
    }
    parts = ("\n".join(lines[name](numbers)) for name, numbers in report.items())
    return "\n\n".join(parts) + "\n"


@options.command(help=__doc__)
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    envvar="RAG_EVAL_DATA",
    required=True,
    help="Folder with the open sets.",
)
@click.option(
    "--part",
    type=click.Choice(["injection", "everyday", "leakage"]),
    help="Measure one part only.",
)
@click.option(
    "--write", is_flag=True, help="Put the tables into docs/validation.md's generated block."
)
@click.option("--retrain/--no-retrain", default=True, help="Also the ways that train anew (slow).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout instead of tables.")
def main(data: Path, part: str | None, write: bool, retrain: bool, as_json: bool) -> None:
    """Read, measure, print."""
    if write and (part or not retrain):
        raise click.UsageError("--write needs all parts: leave out --part and --no-retrain.")
    absent = sorted(
        {prompt_set.folder for prompt_set in SETS if not (data / prompt_set.folder).is_dir()}
    )
    if absent:
        click.echo(f"absent, left out: {', '.join(absent)}", err=True)
    report: dict[str, Any] = {}
    if part in {None, "injection"}:
        report["injection"] = detectors.measure(read_prompts(data), retrain=retrain)
    if part in {None, "everyday"}:
        report["everyday"] = detectors.measure_everyday()
    if part in {None, "leakage"}:
        report["leakage"] = detectors.measure_leakage(data)
    block = _block(report)
    if write:
        documents.write_block(PAGE, BLOCK, block, must_exist=True)
    if as_json:
        click.echo(orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))
        return
    click.echo(block, nl=False)


if __name__ == "__main__":
    main()
