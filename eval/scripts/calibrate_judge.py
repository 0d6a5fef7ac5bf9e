"""Compare a judge with human labels: does it find what people find, and can you trust its numbers?

In: a run that judge_answers.py has judged, and people's labels of its claims. Label on the screen
that --label opens (eval/labels/verdicts/<annotator>.jsonl) or in a file. Out: the confusion matrix,
recall of unsupported claims, balanced accuracy, Cohen's kappa and AUROC with intervals, and the
worst disagreements. The run's share of supported claims is corrected for the judge's errors. All of
it goes to stdout and to calibration.json of the run folder. --metric correctness does the same for
the facts of the reference answers (present, missing, contradicted), in
calibration_correctness.json. --metric rubrics.NAME does it for answers by a rubric: linear weighted
kappa on its scale, the whole confusion matrix, corrected share and mean rank. Where results have
feedback of users, you also see how often judge and case verdicts agree with it. No mean includes
that feedback.

\b
A label is one JSON object a line:
  {"case_id": "q1", "repeat": 0, "claim_id": "1", "label": "not_supported"}
with the label supported, not_supported or cannot_tell; for a fact
  {"case_id": "q1", "metric": "correctness",
   "claim_id": "f1", "label": "present"}
with present, missing, contradicted or cannot_tell; for a rubric, claim_id 1 and a label of its
scale. A file of claims with their own contexts needs no run; --judge judges it at once:
  {"claim": "B is free.", "contexts": ["0 EUR"], "supported": 1, "group": "a"}

\b
Examples:
  python eval/scripts/calibrate_judge.py --run latest --label --annotator maria
  python eval/scripts/calibrate_judge.py --label --plain < marks.txt
  python eval/scripts/calibrate_judge.py --metric correctness --label
  python eval/scripts/calibrate_judge.py --metric rubrics.helpful --label
  python eval/scripts/calibrate_judge.py --run new,old --label
  python eval/scripts/calibrate_judge.py --run latest --output eval/calibration.json
  python eval/scripts/calibrate_judge.py --gate --calibration eval/calibration.json
  python eval/scripts/calibrate_judge.py --labels-file ragtruth_qa --json

Exit codes: 0 done, 1 the gate refuses the judge (--gate), 2 bad input or usage, 3 judge
unreachable, 130 interrupted.
"""

from __future__ import annotations

from typing import Any

import click

import options


class LabelledMetric(click.Choice[str]):
    """A metric with verdicts that people can label; the labels of a rubric are in the run."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        is_rubric = text.partition(".")[0] == "rubrics"
        return text if is_rubric else super().convert(text, param, ctx)


@options.command(help=__doc__)
@options.runs_option(
    help="Run id, path of a run folder, or 'latest'. Separate several runs by the same judge with "
    "commas."
)
@options.results_dir_option
@options.eval_set_option
@options.labels_option
@click.option(
    "--metric",
    type=LabelledMetric(["groundedness", "correctness"]),
    default="groundedness",
    help="Whose verdicts: claims of groundedness, facts of correctness, or rubrics.NAME.",
)
@click.option(
    "--labels-file",
    type=options.FILE,
    multiple=True,
    help="Read labels from this file (repeatable), or from a known set in the folder "
    "RAG_EVAL_DATA, such as ragtruth_qa.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    help="Judge at most N claims of a set or file, drawn at random.",
)
@click.option("--label", is_flag=True, help="Label on the screen first; ? shows the keys.")
@click.option(
    "--plain", is_flag=True, help="With --label: read lines and print lines, without a full screen."
)
@click.option("--annotator", metavar="NAME", help="Whose labels they are.  [default: your user]")
@click.option(
    "--sample",
    type=click.IntRange(1, 100_000),
    default=100,
    help="Claims or facts to label; the judge doubts half of them. A larger number adds more.",
)
@click.option(
    "--within",
    type=options.FiniteRange(0.1, 50),
    default=5.0,
    help="With --label: print how many more labels bring the run's mean to ± POINTS.",
    metavar="POINTS",
)
@click.option(
    "--gate",
    is_flag=True,
    help="Exit 1 when the judge is not calibrated, not good enough, or has changed.",
)
@click.option(
    "--calibration",
    type=options.FILE,
    help="With --gate: check the run's judge against this stored calibration.",
)
@click.option(
    "--output",
    type=options.FILE,
    help="Also store the calibration here, without texts, so that you can commit it.",
)
@click.option("--worst", type=click.IntRange(0, 1000), default=5, help="Disagreements to show.")
@click.option(
    "--attack",
    is_flag=True,
    help="Append attacks on the judge to labelled answers, and see whether scores move.",
)
@options.judge_options
@options.seed_option
@options.json_option
@options.verbosity_options
def main(verbose: bool, **values: Any) -> int:
    """Label, report, gate: the work is in validation/jobs.py."""
    from judging.connect import JudgeOptions
    from judging.judge_files import judge_settings
    from validation.jobs import CalibrateOptions, calibrate, objections

    judge = JudgeOptions.of(judge_settings(**options.judge_words(values)), values)
    names = CalibrateOptions.__dataclass_fields__
    run, *others = values["run"] or ("latest",)
    values |= {"run": run, "also_run": tuple(others)}
    own = {name: value for name, value in values.items() if name in names}
    screen = options.screen_settings(filter(options.is_of_screen, values["set"]))
    source = click.get_current_context().get_parameter_source("judge")
    own |= {"judge_is_named": source is click.core.ParameterSource.COMMANDLINE}
    calibrate_options = CalibrateOptions(**own | {"judge": judge, "screen": screen})
    outcome = options.run_extras(values, asked=calibrate_options)
    if isinstance(outcome, int):
        return outcome
    calibrated = calibrate(calibrate_options, talk=options.say)
    if isinstance(calibrated, int):
        return calibrated
    if not calibrated.stored:
        print_report(calibrated.report, as_json=calibrate_options.as_json)
    if not calibrate_options.gate:
        return options.Exit.DONE
    sentences = objections(calibrate_options, calibrated)
    for sentence in sentences:
        options.say(f"Gate: {sentence}.")
    if not sentences and not calibrate_options.quiet:
        options.say("Gate: the judge is calibrated and unchanged.")
    return options.Exit.GATE_FAILED if sentences else options.Exit.DONE


def print_report(report: dict[str, Any], *, as_json: bool) -> None:
    """The calibration on stdout: tables, or JSON."""
    if as_json:
        import orjson

        from records.metrics import rounded

        layout = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS
        click.echo(orjson.dumps(rounded(report), option=layout).decode())
        return
    from terminal.print_page import print_page
    from validation.show import calibration_page

    print_page(options.stdout_console(), calibration_page(report))


if __name__ == "__main__":
    main()
