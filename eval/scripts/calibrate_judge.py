"""Compare a judge with human labels: does it find what people find, and can you trust its numbers?

In: a run that judge_answers.py has judged, and labels of its claims by people, given on the screen
that --label opens (eval/labels/verdicts/<annotator>.jsonl) or in a file. Out: confusion, recall of
unsupported claims, balanced accuracy, Cohen's kappa and AUROC with intervals, the worst
disagreements, and the run's share of supported claims corrected for the judge's errors, on stdout
and in calibration.json of the run folder. With --metric correctness the same for the facts of the
reference answers (present, missing, contradicted), in calibration_correctness.json.

\b
A label is one JSON object a line:
  {"case_id": "q1", "repeat": 0, "claim_id": "1", "label": "not_supported"}
with the label supported, not_supported or cannot_tell; for a fact
  {"case_id": "q1", "metric": "correctness",
   "claim_id": "f1", "label": "present"}
with present, missing, contradicted or cannot_tell. A file of claims with
contexts of their own is judged at once by --judge and needs no run:
  {"claim": "B is free.", "contexts": ["0 EUR"], "supported": 1, "group": "a"}

\b
Examples:
  python eval/scripts/calibrate_judge.py --run latest --label --annotator maria
  python eval/scripts/calibrate_judge.py --label --plain < marks.txt
  python eval/scripts/calibrate_judge.py --metric correctness --label
  python eval/scripts/calibrate_judge.py --run new --also-run old --label
  python eval/scripts/calibrate_judge.py --run latest --output eval/calibration.json
  python eval/scripts/calibrate_judge.py --gate --calibration eval/calibration.json
  python eval/scripts/calibrate_judge.py --data ~/labelled --set ragtruth_qa --json

Exit codes: 0 done, 1 the gate refuses the judge (--gate), 2 bad input or usage, 3 judge
unreachable, 130 interrupted.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

import options


@options.command(help=__doc__)
@options.run_option
@click.option(
    "--also-run",
    metavar="RUN",
    multiple=True,
    help="Label and compare claims of this run too, by the same judge; may be given several times.",
)
@options.results_dir_option
@options.eval_set_option
@options.labels_option
@click.option(
    "--metric",
    type=click.Choice(["groundedness", "correctness"]),
    default="groundedness",
    show_default=True,
    help="Whose verdicts: claims of groundedness, or facts of correctness.",
)
@click.option(
    "--labels-file",
    type=click.Path(path_type=Path, dir_okay=False),
    multiple=True,
    help="Labels in a file instead; may be given several times.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of the human-labelled sets, for --set.  [env: RAG_EVAL_DATA]",
)
@click.option(
    "--set",
    "set_name",
    metavar="NAME",
    help="Hold --judge against one of those sets, such as ragtruth_qa.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    help="Judge at most this many claims of a set or file, drawn at random.",
)
@click.option("--label", is_flag=True, help="Label on the screen first; ? shows the keys.")
@click.option("--plain", is_flag=True, help="With --label: lines in, lines out: no full screen.")
@click.option("--annotator", metavar="NAME", help="Whose labels they are.  [default: your user]")
@click.option(
    "--sample",
    type=click.IntRange(1, 100_000),
    default=100,
    show_default=True,
    help="Claims or facts to label, half of them doubted by the judge; a larger number adds more.",
)
@click.option(
    "--within",
    type=options.FiniteRange(0.1, 50),
    default=5.0,
    show_default=True,
    help="With --label: say how many labels are missing until the run's mean is known to ± POINTS.",
    metavar="POINTS",
)
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw rules in ASCII.")
@click.option("--theme", help="A Textual theme, such as textual-dark or textual-light.")
@click.option(
    "--gate",
    is_flag=True,
    help="Exit with 1 when the judge is not calibrated, not good enough, or not the same.",
)
@click.option(
    "--calibration",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --gate: check the run's judge against this stored calibration.",
)
@click.option(
    "--min-kappa",
    type=options.FiniteRange(-1, 1),
    default=0.6,
    show_default=True,
    help="With --gate: the least Cohen's kappa.",
)
@click.option(
    "--min-balanced-accuracy",
    type=options.FiniteRange(0, 1),
    default=0.75,
    show_default=True,
    help="With --gate: the least balanced accuracy.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Store the calibration here too, without texts, to be committed.",
)
@click.option(
    "--worst",
    type=click.IntRange(0, 1000),
    default=5,
    show_default=True,
    help="Disagreements to show.",
)
@click.option(
    "--attack",
    is_flag=True,
    help="Put attacks on the judge behind labelled answers, and see whether scores move.",
)
@options.judge_options
@options.seed_option
@options.json_option
@options.verbosity_options
def main(verbose: bool, **values: Any) -> int:
    """Label, report, gate: the work is in validation/jobs.py."""
    from judging.connect import JudgeOptions
    from validation.jobs import CalibrateOptions, calibrate, objections

    judge = JudgeOptions.of(values)
    names = CalibrateOptions.__dataclass_fields__
    own = {name: value for name, value in values.items() if name in names}
    calibrate_options = CalibrateOptions(**own | {"judge": judge})
    calibrated = calibrate(calibrate_options, talk=partial(click.echo, err=True))
    if isinstance(calibrated, int):
        return calibrated
    if not calibrated.stored:
        print_report(calibrated.report, as_json=calibrate_options.as_json)
    if not calibrate_options.gate:
        return options.Exit.DONE
    sentences = objections(calibrate_options, calibrated)
    for sentence in sentences:
        click.echo(f"Gate: {sentence}.", err=True)
    if not sentences and not calibrate_options.quiet:
        click.echo("Gate: the judge is calibrated and unchanged.", err=True)
    return options.Exit.GATE_FAILED if sentences else options.Exit.DONE


def print_report(report: dict[str, Any], *, as_json: bool) -> None:
    """The calibration on stdout: tables, or JSON."""
    if as_json:
        import orjson

        from records.metrics import rounded

        layout = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS
        click.echo(orjson.dumps(rounded(report), option=layout).decode())
        return
    from terminal.page import print_page
    from validation.show import calibration_page

    print_page(options.stdout_console(), calibration_page(report))


if __name__ == "__main__":
    main()
