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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))  # the core

import options
from clients.run_options import LIMITS
from records import opt

if TYPE_CHECKING:
    from extras.audit.access import AccessReport, Role
    from records.results import TestResult


@dataclass(frozen=True, kw_only=True)
class AccessOptions(opt.Output):
    """The options of check_access.py."""

    vault: str = opt.argument(required=True)
    roles: Path = opt.value("File of the roles.", path="file", required=True)
    eval_set: Path = opt.eval_set()
    results_dir: Path = opt.results_dir()
    api_url: str | None = opt.api_url()
    profile: str = opt.profile()
    labels_dir: Path = opt.labels_dir()
    pairs: tuple[str, ...] = opt.pairs(LIMITS)
    k: int = opt.value("Passages to ask for.", default=10, low=1, high=10_000)
    run_id: str | None = opt.value(
        "Name before the role in the run folders.  [default: access-TIME]"
    )
    resume: bool = opt.flag("Continue the runs --run-id: ask what is missing.")
    max_error_rate: float = opt.error_rate("Exit 3 above this share of errors.")
    cache_dir: Path = opt.cache_dir("Where the sets of the roles are kept.")


@options.script(AccessOptions, help=__doc__, how_to_go_on="Give --run-id to go on with --resume.")
def main(asked: AccessOptions) -> int:
    """Ask as every role and print: the work is in access.py."""
    import time

    from extras.audit.access import examine, in_order, is_probe, read_roles
    from extras.audit.audit import vault_of
    from extras.audit.passages import sections_of
    from records.errors import StorageError
    from records.labels import read_cases

    documents = vault_of(asked.vault)[0].notes
    paths = [note.rel_path for note in documents]
    every = in_order(read_roles(asked.roles), paths)
    cases = read_cases(asked.eval_set, asked.labels_dir)
    names = {role.name for role in every}
    if unknown := sorted({role for case in cases for role in case.user_roles} - names):
        raise StorageError(
            f"{asked.roles}: there is no role {unknown[0]!r}, which user_roles names."
        )
    if not any(is_probe(case, role) for case in cases for role in every):
        raise StorageError(
            "No probe: the gold of no case is closed to a role, so nothing can leak. Label cases "
            "whose gold some role may not see."
        )
    base = asked.run_id or time.strftime("access-%Y%m%d-%H%M%S")
    answers, texts = {}, {}
    for role in every:
        answers[role.name], texts[role.name] = _ask(role, base, asked)
    report = examine(every, cases, answers, sections_of(documents), paths, texts)
    _print(report, as_json=asked.as_json, every=asked.verbose)
    if not report.count:
        raise StorageError("No probe was answered: see the failed calls of the runs.")
    return options.Exit.GATE_FAILED if report.leaks else options.Exit.DONE


def _ask(role: Role, base: str, asked: AccessOptions) -> tuple[list[TestResult], str]:
    """A run as the role, of a set in which every case has that role; and its profile's text."""
    from clients.limits import BOT_LIMITS
    from clients.run import run
    from clients.run_plan import RunOptions
    from records.files import replace_bytes
    from records.profiles import find_profile
    from records.run import Run
    from records.runs import PROFILES
    from records.settings import from_pairs

    own_set = asked.cache_dir / "access" / f"{base}-{role.name}.jsonl"
    own_set.parent.mkdir(parents=True, exist_ok=True)
    replace_bytes(own_set, set_of(role, asked.eval_set.read_bytes()))
    profile = role.profile or asked.profile
    run_options = RunOptions(
        eval_set=own_set,
        labels_dir=own_set.parent,
        results_dir=asked.results_dir,
        api_url=asked.api_url,
        profile=profile,
        header=(role.header,) if role.header else (),
        k=asked.k,
        store_full_text=True,
        run_id=f"{base}-{role.name}",
        resume=asked.resume,
        max_error_rate=asked.max_error_rate,
        verbose=asked.verbose,
        quiet=asked.quiet,
        history="replay",
        proof=False,
        set_limits=from_pairs(asked.pairs, BOT_LIMITS),
    )
    folder, _ = run(run_options, options.stderr_console(quiet=asked.quiet))
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
        import click

        from records.files import json_bytes

        click.echo(json_bytes(access_data(report)), nl=False)
    else:
        print_page(options.stdout_console(), access_page(report), every=every)


if __name__ == "__main__":
    main()
