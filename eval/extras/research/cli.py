"""The options that the formats and the tests of a judge add to scripts of the core."""

import click

from options.added import ScriptOptions

CONVERT_DATA = ScriptOptions(
    (
        click.option("--split", help="Import of BEIR: this split alone, such as test."),
        click.option(
            "--decode-names",
            is_flag=True,
            help="Import of TREC and BEIR: names are percent-encoded; decode them.",
        ),
        click.option(
            "--match",
            type=click.Choice(["doc", "chunk"]),
            default="doc",
            help="Export to TREC: what counts as a document.",
        ),
    ),
    "format_options:options_of",
)

JUDGE_ANSWERS = ScriptOptions(
    (
        click.option(
            "--self-test", is_flag=True, help="Attack the judge on known answers; judge no run."
        ),
    ),
    "self_test_command:run",
)

JUDGE_PAIRS = ScriptOptions(
    (
        click.option(
            "--self-test",
            is_flag=True,
            help="Try attacks and both orders on known pairs; judge no run.",
        ),
    ),
    "self_test_command:run_pairs",
)

LABEL_EVAL = ScriptOptions(
    (
        click.option(
            "--export-qrels",
            type=click.Choice(["doc", "anchor"]),
            help="Print the labels as TREC qrels, by file or by file#heading.",
        ),
    ),
    "qrels:export",
)
