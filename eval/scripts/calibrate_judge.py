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

from dataclasses import replace
from typing import Any

import click

import options
from validation.calibrate_options import CalibrateOptions


class LabelledMetric(click.Choice[str]):
    """A metric with verdicts that people can label; the labels of a rubric are in the run."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        is_rubric = text.partition(".")[0] == "rubrics"
        return text if is_rubric else super().convert(text, param, ctx)


@options.script(
    CalibrateOptions, {"metric": LabelledMetric(["groundedness", "correctness"])}, help=__doc__
)
def main(asked: CalibrateOptions) -> int:
    """Label, report, gate: the work is in validation/jobs.py."""
    from judging.connect import JudgeOptions
    from judging.judge_files import judge_settings
    from options.tables import is_of_screen, screen_settings
    from validation.jobs import calibrate, objections

    screen = [pair for pair in asked.pairs if is_of_screen(pair)]
    asked = replace(asked, pairs=tuple(pair for pair in asked.pairs if pair not in screen))
    calibrate_options = replace(
        asked,
        judge_options=JudgeOptions.of(judge_settings(**asked.words()), vars(asked)),
        screen=screen_settings(screen),
    )
    outcome = options.run_extras(calibrate_options, asked=calibrate_options)
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
