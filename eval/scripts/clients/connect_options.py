"""The options for connecting a bot: its address, a request that works, and a profile."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from records import opt
from records.errors import StorageError
from records.home import PROFILES

LIMITS_PREFIX = "limits."
"""How a limit begins among the fields that are set: limits.timeout=30."""

_PROFILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True, kw_only=True)
class ConnectOptions:
    """The options of connect_bot.py.

    ``set_by_user``: names of those that did not come from the built-in defaults.
    """

    url: str | None = opt.argument()
    header: tuple[str, ...] = opt.header(
        "Send a header whose value is in this environment variable, or 'NAME: VALUE' unchanged."
    )
    body: str | None = opt.value(
        "The request's body; {question} in it, or --ask.", metavar="JSON|@FILE"
    )
    curl: str | None = opt.value("A curl command that works.", metavar="COMMAND|@FILE")
    ask: tuple[str, ...] = opt.repeated(
        "A question to ask (repeatable). Where --body or --curl contains it, {question} replaces "
        "it.",
        metavar="TEXT",
    )
    from_response: Path | None = opt.value("Read this saved answer instead of asking.", path="file")
    from_traces: Path | None = opt.value(
        "Instead of asking, look which tools in these traces are searches."
    )
    begin: str | None = opt.value(
        "A curl command that begins a conversation; write {session} where its id goes.",
        metavar="COMMAND|@FILE",
    )
    model: str | None = opt.value("The model, deployment or graph to ask.  [default: the first]")
    set_paths: tuple[str, ...] = opt.pairs(
        "Set a field's path, such as answer=data.text or chunk.rel_path=meta.file, or a limit, "
        "such as limits.timeout=30 (repeatable).",
        metavar="FIELD=JMESPATH",
    )
    name: str = opt.value(
        "The profile's name in eval/profiles, or a path ending in .toml.", default="mybot"
    )
    eval_set: Path = opt.eval_set()
    labels_dir: Path = opt.labels_dir()
    yes: bool = opt.flag("Accept the proposed paths.")
    force: bool = opt.flag("Replace a profile of this name.")
    dry_run: bool = opt.flag("Print the profile; write nothing.")
    as_json: bool = opt.as_json()
    set_by_user: frozenset[str] = frozenset()

    @property
    def limits(self) -> dict[str, Any]:
        """The limits among ``set_paths``, for the profile. Raises StorageError."""
        from clients.limits import BOT_LIMITS
        from records.settings import from_pairs

        pairs = [text for text in self.set_paths if text.startswith(LIMITS_PREFIX)]
        return from_pairs(
            [pair.removeprefix(LIMITS_PREFIX) for pair in pairs], BOT_LIMITS, "--set limits"
        )

    @property
    def target(self) -> Path:
        """The file of the profile: ``name`` in eval/profiles, or a path that ends in .toml."""
        return Path(self.name) if self.name.endswith(".toml") else PROFILES / f"{self.name}.toml"

    def check(self) -> None:
        """Raises StorageError for options that contradict each other."""
        from clients.bot import check_bot_address

        if self.curl and self.body:
            raise StorageError("--curl contains the body; leave out --body.")
        if not self.url and not self.curl and not self.from_response:
            raise StorageError("which bot? Give its URL, or --curl with a working request.")
        if self.url:
            check_bot_address(self.url)
        if not self.name.endswith(".toml") and not _PROFILE_NAME.fullmatch(self.name):
            raise StorageError(
                f"--name {self.name!r}: use letters, digits, - and _, or a path that ends in .toml."
            )
        if self.target.exists() and not self.force and not self.dry_run:
            again = "" if self.curl or self.body else " (with its --curl or --body, if it had one)"
            raise StorageError(
                f"{self.target}: this profile exists already; give another --name, or --force to "
                f"replace it{again}. Nothing was asked."
            )
