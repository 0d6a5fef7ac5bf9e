"""Plans the questions of a run and how they are asked: options, cases, and the configuration that
is written with it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Protocol

from clients.bot import check_bot_address
from clients.limits import BotLimits
from clients.profile import Profile
from clients.run_options import AskOptions
from clients.secrets import DRAWN, SECRET_HEADER, public_url
from records.asked import asked_list, filter_values, patterns_of, selected_of
from records.cases import TestCase
from records.errors import StorageError
from records.files import git_commit, sha256_file
from records.labels import labels_sha256
from records.results import RunConfig, TestResult
from records.runs import ROOT, VERSION, check_run_id
from terminal.tables import printable

SHOWN = 12
PACE = "pace"
"""Key of config.json's ``run``: how a run that is asked in portions was planned."""

AnswersReader = Callable[
    [Path, Sequence[TestCase], Collection[tuple[str, int]], Collection[str]], Iterator[TestResult]
]
"""Reads a file of answers: the set, the cases and repeats asked, the kinds of errors there are."""


@dataclass(frozen=True, kw_only=True)
class RunOptions(AskOptions):
    """The options of a run, with the limits and the settings of the bot that result from them."""

    demo_arg: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Values of the profile's own settings, by their names in its ``[settings]``."""
    demo_url: str | None = None
    """Where an embedded API with these options runs already; None: one is started for the run."""
    set_limits: Mapping[str, Any] = field(default_factory=dict)
    """Limits for this run; they count more than those of the profile."""
    limits: BotLimits = field(default_factory=BotLimits)
    """The limits that result from both: see ``with_limits``."""

    def with_limits(self, profile: Profile) -> RunOptions:
        """These options with the limits of the profile, unless others are set for the run."""
        return replace(self, limits=BotLimits(**{**profile.limits, **self.set_limits}))

    @property
    def demo(self) -> bool:
        """True when the embedded API is to be started."""
        return self.api_url == "demo" and self.from_jsonl is None

    def check(self) -> None:
        """Raises StorageError for combinations that make no sense."""
        if self.run_id:
            check_run_id(self.run_id)
        if self.run_id == "latest":
            raise StorageError("--run-id latest: that name means the newest run; choose another.")
        if self.resume and not self.run_id:
            raise StorageError("--resume needs --run-id: name the run to continue.")
        if self.retry_errors and not self.resume:
            raise StorageError("--retry-errors works with --resume --run-id ID.")
        if self.demo_arg and not self.demo:
            raise StorageError(
                f"--set {self.demo_arg[0]}: is a setting of the embedded bot; it needs --api-url "
                "demo."
            )
        if self.from_jsonl:
            if self.resume:
                raise StorageError(
                    "--from-jsonl asks no bot; run it again instead of using --resume."
                )
            return
        if not self.api_url:
            raise StorageError(
                "which bot? Give --api-url URL, or --api-url demo for the embedded one "
                "(or set RAG_EVAL_API_URL, or api_url in eval/config.toml)."
            )
        check_bot_address(self.api_url)

    def new_run_id(self) -> str:
        """A readable id that no folder has yet: time and what was asked."""
        label = "demo" if self.demo else self.profile
        label = self.from_jsonl.stem if self.from_jsonl else Path(label).stem
        label = "".join(c if c.isascii() and c.isalnum() else "-" for c in label).strip("-")[:40]
        base = time.strftime("%Y%m%d-%H%M%S") + (f"-{label}" if label else "")
        run_id, number = base, 1
        while (self.results_dir / run_id).exists():
            number += 1
            run_id = f"{base}-{number}"
        return run_id

    def config(
        self,
        profile: Profile | None,
        cases: int,
        selected: Sequence[str],
        plan: Mapping[str, Any] | None = None,
        turns: Mapping[str, Any] | None = None,
    ) -> RunConfig:
        """The part of the configuration that is known before the bot answers.

        ``selected``: the ids of the cases to ask, of the set's ``cases``. ``plan``: of a pace.
        ``turns``: how questions with a history are asked; None when there are none.
        """
        return RunConfig(
            run_id=self.run_id or self.new_run_id(),
            tool_version=VERSION,
            dataset={
                "path": _shown_path(self.eval_set),
                "sha256": sha256_file(self.eval_set),
                "git_commit": git_commit(self.eval_set),
                "labels_sha256": labels_sha256(self.labels_dir, self.eval_set),
                "cases": cases,
            },
            retriever={"requested": self._requested(profile, turns or {})} if profile else {},
            answerer={} if profile else {"imported_sha256": sha256_file(self._imported)},
            api=self._api(profile, with_turns=turns is not None),
            run={
                "selected": len(selected),
                **asked_list(selected, cases),
                "filter": sorted(self.filters),
                "limit": self.limit,
                "repeat": self.repeat,
                "store_full_text": self.store_full_text,
                "concurrency": self.limits.concurrency,
                "timeout_s": self.limits.timeout,
                "retries": self.limits.retries,
                "backoff_s": self.limits.backoff,
                "max_error_rate": self.max_error_rate,
                **({PACE: dict(plan)} if plan else {}),
            },
            seed=self.seed,
            started=now(),
        )

    @property
    def _imported(self) -> Path:
        assert self.from_jsonl is not None
        return self.from_jsonl

    def _requested(self, profile: Profile, turns: Mapping[str, Any]) -> dict[str, Any]:
        asked: dict[str, Any] = {
            "k": self.k if "k" in profile.uses else None,
            "folder_mode": self.folder_mode,
            "retrieval_only": self.retrieval_only,
        }
        asked |= {"settings": dict(profile.settings)} if profile and profile.settings else {}
        asked |= turns
        return asked | ({"demo_args": list(self.demo_arg)} if self.demo else {})

    def _api(self, profile: Profile | None, *, with_turns: bool) -> dict[str, Any]:
        if profile is None:
            return {"source": "jsonl", "path": _shown_path(self._imported), "profile": None}
        url = "demo" if self.demo else public_url(self.api_url or "")
        return {
            "source": "http",
            "url": url,
            "profile": profile.name,
            "profile_sha256": profile.turns_sha256 if with_turns else profile.sha256,
            "mapped": sorted({*profile.answer.response, *profile.answer.constant}),
            "fields_seen": [],
            **({"one_passage_per_document": True} if profile.one_passage_per_document else {}),
        }


def now() -> str:
    """The time in UTC, to the second, as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _shown_path(path: Path) -> str:
    """Relative to the repository where it lies inside: other machines have other folders."""
    path = path.resolve()
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name


def add_facts(config: RunConfig, facts: Mapping[str, Mapping[str, Any]]) -> None:
    """Put the bot's report about itself beside the values that the run asked for."""
    for name, reported in facts.items():
        recorded: dict[str, Any] = getattr(config, name)
        recorded.update({key: value for key, value in reported.items() if key != "requested"})


def differences(old: RunConfig, new: RunConfig, *, facts: bool = False) -> list[str]:
    """The differences that keep two configurations from being one run, as ``field: was …, is …``.

    Without ``facts`` only what the command line decides is compared: the bot has not spoken yet.
    """
    before, after = _compared(old, facts), _compared(new, facts)
    return [
        f"{name}: was {_short(before.get(name))}, is {_short(after.get(name))}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]


def _compared(config: RunConfig, facts: bool) -> dict[str, Any]:
    paced = PACE in config.run  # it may have been asked more often than it was begun with
    selection = ("filter", "limit", "store_full_text", *(() if paced else ("repeat",)), PACE)
    compared: dict[str, Any] = {
        "dataset.sha256": config.dataset.get("sha256"),
        "seed": config.seed,
        **{f"api.{name}": config.api.get(name) for name in ("source", "profile_sha256")},
        **{f"run.{name}": config.run.get(name) for name in selection},
        **dict(_flat("retriever.requested", config.retriever.get("requested"))),
    }
    if facts:
        for name in ("index", "retriever", "answerer"):
            compared |= dict(_flat(name, getattr(config, name)))
    return compared


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(f"{prefix}.{key}", item)
    else:
        yield prefix, value


def _short(value: Any) -> str:
    text = "absent" if value is None else printable(str(value))
    return text if len(text) <= 4 * SHOWN else f"{text[:SHOWN]}…"


def refuse(folder: Path, changes: list[str]) -> None:
    """Raises StorageError when a run cannot be continued because of ``changes``."""
    if changes:
        raise StorageError(
            f"{folder.name} cannot be resumed, because its settings were different:\n  "
            + "\n  ".join(changes)
            + "\nResume it with the same settings, or begin a new run; nothing was changed."
        )


@dataclass(frozen=True, slots=True)
class Job:
    """One asking of one case."""

    case: TestCase
    repeat: int = 0

    @property
    def key(self) -> tuple[str, int]:
        return self.case.id, self.repeat


def select(
    cases: Sequence[TestCase], filters: Sequence[str], limit: int | None
) -> Sequence[TestCase]:
    """The first ``limit`` cases that pass all filters, in their order in the set; a conversation is
    whole, or not among them.

    A filter is ``name=pattern`` with ``*`` and ``?``. One name given several times is an "or",
    several names are an "and". Raises StorageError for unknown names and when nothing is left.
    """
    patterns = patterns_of(filters)
    selected = list(selected_of(cases, patterns, limit))
    if not selected:
        hint = printable(_hint(cases, patterns))  # the set's own words
        raise StorageError(f"no case passes --filter {' '.join(filters)}.{hint}")
    return selected


@dataclass(frozen=True, slots=True)
class Ending:
    """Where a run asks no more. ``paused``: it goes on later; ``stopped``: for good, although cases
    are left, because of ``reason``; ``complete``: all was asked. ``facts`` enter its configuration.
    """

    kind: Literal["paused", "stopped", "complete"]
    reason: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


class Pace(Protocol):
    """Asks a run in portions, and says after each whether it goes on."""

    @property
    def plan(self) -> Mapping[str, Any]:
        """The recorded part; a run is resumed with the same plan only."""

    @property
    def warm_up(self) -> Sequence[Job]:
        """The questions that the bot is asked before anything counts."""

    @property
    def open_ended(self) -> bool:
        """Whether the number of portions is unknown."""

    def portions(self, cases: Sequence[TestCase]) -> Iterable[Sequence[Job]]:
        """The selected cases in portions, in the order of asking. A run that is resumed gets the
        same portions."""

    def after(self, folder: Path, portion: Sequence[Job]) -> Ending | None:
        """Called when all results of a portion are on the disk; None: ask the next one."""

    def summary(self) -> str:
        """The outcome as a sentence."""


@dataclass(frozen=True)
class Jobs:
    """Each case ``repeats`` times; all cases once before any is asked again."""

    cases: Sequence[TestCase]
    repeats: int

    def __len__(self) -> int:
        return len(self.cases) * self.repeats

    def __iter__(self) -> Iterator[Job]:
        for repeat in range(self.repeats):
            for case in self.cases:
                yield Job(case, repeat)


def _hint(cases: Sequence[TestCase], names: Iterable[str]) -> str:
    """What values there are of the names that were asked for."""
    parts = []
    for name in names:
        values = sorted({value for case in cases for value in filter_values(case, name)})
        shown = ", ".join(values[:12]) + (", …" if len(values) > 12 else "")
        parts.append(f" The set has {name}: {shown or 'nowhere'}.")
    return "".join(parts)


VARIABLE_NAME = re.compile(r"[A-Z_][A-Z0-9_]*", re.IGNORECASE)


def header_templates(headers: Iterable[str]) -> dict[str, str]:
    """The headers of --header as a profile writes them: NAME=VARIABLE, or 'NAME: VALUE' for a value
    that is no secret. No message shows a value."""
    templates = {}
    for text in headers:
        plain = re.fullmatch(r"([\w-]+):\s+(\S.*)", text)
        if plain and not (SECRET_HEADER.search(plain[1]) or DRAWN.search(plain[2])):
            templates[plain[1]] = plain[2].replace("${", "$ {")
            continue
        name, equals, variable = text.partition("=")
        if not equals or not VARIABLE_NAME.fullmatch(variable):
            raise StorageError(
                f"--header {name.split(':')[0].strip()[:40]}: write NAME=VARIABLE, where VARIABLE "
                "is the name of an environment variable with the value. A value that is no secret: "
                "'NAME: VALUE'."
            )
        templates[name.strip()] = "${" + variable + "}"
    return templates


def check_uses(options: RunOptions, profile: Profile) -> None:
    """An option that the request has no place for would change nothing: say so."""
    for name in ("k", "folder_mode"):
        if name in options.set_by_user and name not in profile.uses:
            option = "--k" if name == "k" else f"--set {name}"
            raise StorageError(
                f"{option}: profile {profile.name} has no {{{name}}} in its request, so it would "
                "change nothing; add the placeholder to the profile."
            )
