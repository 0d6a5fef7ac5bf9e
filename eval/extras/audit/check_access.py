"""Ask a bot the same questions as several roles: does it show a role what it must not see?

In: the bot's documents, a set whose cases have gold and user_roles, and roles.toml:

\b
  [roles.staff]
  profile = "staff"
  may_see = ["public/*", "staff/*"]
  [roles.guest]
  header = "X-Role=GUEST_ROLE"
  may_see = ["public/*"]

A profile is a name, or a path beside roles.toml; a header's value is in the variable that is named.
What no glob of a role matches is closed to it.

Each case is asked as every role, most rights first, so that a cache which roles share shows. The
probes are the cases whose gold is closed to the role. Out: the leaks of two rows, "reached the
model" (a closed passage was retrieved) and "said" (a closed document is cited, or a sentence of the
answer tells what only closed documents say), with case and quote, and their share of the probes.
The answers of each role are a run, RUN-ROLE.

\b
Examples:
  python eval/extras/audit/check_access.py docs --roles roles.toml --api-url http://localhost:8080
  python eval/extras/audit/check_access.py docs --roles roles.toml --api-url URL --run-id may \\
      --resume

Exit codes: 0 no leak, 1 a leak, 2 bad input or no probe, 3 bot unreachable, 130 interrupted.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))  # the core

import options

if TYPE_CHECKING:
    from extras.audit.access import AccessReport, Role
    from records.results import TestResult


@options.command(help=__doc__, how_to_go_on="Give --run-id to go on with --resume.")
@click.argument("vault")
@click.option("--roles", type=options.FILE, required=True, help="File of the roles.")
@options.eval_set_option
@options.results_dir_option
@options.api_url_option
@options.profile_option
@options.labels_option
@options.limits_option
@click.option("--k", type=click.IntRange(1, 10_000), default=10, help="Passages to ask for.")
@click.option("--run-id", help="Name before the role in the run folders.  [default: access-TIME]")
@click.option("--resume", is_flag=True, help="Continue the runs --run-id: ask what is missing.")
@options.error_rate_option(help="Exit 3 above this share of errors.")
@options.cache_dir_option(type=options.FOLDER, help="Where the sets of the roles are kept.")
@options.json_option
@options.verbosity_options
def main(vault: str, roles: Path, **values: Any) -> int:
    """Ask as every role and print: the work is in access.py."""
    import time

    from extras.audit.access import examine, in_order, is_probe, read_roles
    from extras.audit.audit import vault_of
    from extras.audit.passages import sections_of
    from records.errors import StorageError
    from records.labels import read_cases

    documents = vault_of(vault)[0].notes
    paths = [note.rel_path for note in documents]
    every = in_order(read_roles(roles), paths)
    cases = read_cases(values["eval_set"], values["labels_dir"])
    names = {role.name for role in every}
    if unknown := sorted({role for case in cases for role in case.user_roles} - names):
        raise StorageError(f"{roles}: there is no role {unknown[0]!r}, which user_roles names.")
    if not any(is_probe(case, role) for case in cases for role in every):
        raise StorageError(
            "No probe: the gold of no case is closed to a role, so nothing can leak. Label cases "
            "whose gold some role may not see."
        )
    base = values["run_id"] or time.strftime("access-%Y%m%d-%H%M%S")
    answers, texts = {}, {}
    for role in every:
        answers[role.name], texts[role.name] = _ask(role, base, values)
    report = examine(every, cases, answers, sections_of(documents), paths, texts)
    _print(report, as_json=values["as_json"], every=values["verbose"])
    if not report.count:
        raise StorageError("No probe was answered: see the failed calls of the runs.")
    return options.Exit.GATE_FAILED if report.leaks else options.Exit.DONE


def _ask(role: Role, base: str, values: dict[str, Any]) -> tuple[list[TestResult], str]:
    """A run as the role, of a set in which every case has that role; and its profile's text."""
    from clients.limits import BOT_LIMITS
    from clients.run import run
    from clients.run_plan import RunOptions
    from records.files import replace_bytes
    from records.profiles import find_profile
    from records.run import Run
    from records.runs import PROFILES
    from records.settings import from_pairs

    own_set = Path(values["cache_dir"]) / "access" / f"{base}-{role.name}.jsonl"
    own_set.parent.mkdir(parents=True, exist_ok=True)
    replace_bytes(own_set, set_of(role, values["eval_set"].read_bytes()))
    profile = role.profile or values["profile"]
    run_options = RunOptions(
        eval_set=own_set,
        labels_dir=own_set.parent,
        results_dir=values["results_dir"],
        api_url=values["api_url"],
        from_jsonl=None,
        profile=profile,
        header=(role.header,) if role.header else (),
        demo_arg=(),
        k=values["k"],
        folder_mode=None,
        retrieval_only=False,
        store_full_text=True,
        filters=(),
        limit=None,
        repeat=1,
        run_id=f"{base}-{role.name}",
        resume=values["resume"],
        retry_errors=False,
        max_error_rate=values["max_error_rate"],
        seed=0,
        verbose=values["verbose"],
        quiet=values["quiet"],
        as_json=False,
        history="replay",
        proof=False,
        set_limits=from_pairs(values["set"], BOT_LIMITS),
    )
    folder, _ = run(run_options, options.stderr_console(quiet=values["quiet"]))
    text = find_profile(profile, PROFILES).read_text("utf-8")
    return Run(folder).results, text


def set_of(role: Role, lines: bytes) -> bytes:
    """The lines of a set with the role as the one that asks: it is part of what was asked."""
    import orjson

    cases = [orjson.loads(line) for line in lines.splitlines() if line.strip()]
    return b"".join(orjson.dumps(case | {"user_roles": [role.name]}) + b"\n" for case in cases)


def _print(report: AccessReport, *, as_json: bool, every: bool) -> None:
    """The two rows, the leaks with case and quote, and the verdict."""
    from extras.audit.access_page import access_data, access_page
    from terminal.print_page import print_page

    if as_json:
        from storage import json_bytes

        click.echo(json_bytes(access_data(report)), nl=False)
    else:
        print_page(options.stdout_console(), access_page(report), every=every)


if __name__ == "__main__":
    main()
