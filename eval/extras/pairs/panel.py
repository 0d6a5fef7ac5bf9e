"""A judge's file that names other judges: they are connected, and asked, as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from extras.pairs.votes import PANEL, Panel
from judging.cache import VerdictCache
from judging.connect import Connection, JudgeChanged, JudgeOptions, Shared, open_judge
from judging.cost import CostEstimate, summed
from judging.identity import JudgeError
from judging.judge_files import HEAD, LOCAL, NAME, judge_settings, names
from judging.kinds import CLAIMS, FACTS
from judging.show import estimate_line
from judging.types import JudgeTask
from records.errors import StorageError
from records.toml_files import TomlReader
from records.verdicts import JudgeIdentity
from terminal.tables import printable

OF_PANEL = frozenset(
    {PANEL, "claims", "correctness_weight", "embedding_model", "min_kappa", "min_balanced_accuracy"}
)
"""The keys that a panel can have; all others belong in the files of its members."""


def check(reader: TomlReader, values: Mapping[str, Any]) -> None:
    """Note what is wrong within the keys of a panel's file."""
    panel = values[PANEL]
    if len(set(panel)) < max(2, len(panel)):
        reader.wrong((PANEL,), "must name two judges or more, each once")
    for key in sorted(values.keys() - OF_PANEL - HEAD.keys()):
        clause = "is given together with panel; write it into the files of the members"
        reader.wrong((key,), clause)


def read(path: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of the members, as ``members``.

    Raises StorageError for a key that belongs into their files, and for a name that is none of a
    file.
    """
    for key in sorted(settings.keys() - OF_PANEL):
        raise JudgeError(
            f"{path} is a panel: {key} belongs in the files of its members; set it there."
        )
    return {"members": [_member(path, name) for name in settings[PANEL]]}


def _member(panel: Path, name: str) -> dict[str, Any]:
    """The keys of one judge of a panel. Raises StorageError for a name that is none of a file."""
    try:
        if not NAME.fullmatch(name) or not (panel.parent / f"{name}.toml").is_file():
            known = ", ".join(names(panel.parent))
            raise JudgeError(f"no judge of that name has a file in {panel.parent}; known: {known}.")
        member = judge_settings(name, folder=panel.parent) if name != panel.stem else {"panel": []}
        if "panel" in member:
            raise JudgeError("is a panel itself; name single judges.")
        if member.get("server", LOCAL) == LOCAL:
            raise JudgeError("names no server; the embedded rules cannot be a member of a panel.")
    except StorageError as error:
        reader = TomlReader(str(panel), panel)
        reader.wrong((PANEL,), f"{name}: {error.message.rstrip('.')}")
        reader.end()
    return member


def compound(settings: Mapping[str, Any], values: Mapping[str, Any]) -> PanelOptions:
    """The members from the keys of a file that was read, and the options of a command line."""
    return PanelOptions(tuple(JudgeOptions.of(own, values) for own in settings["members"]))


@dataclass(frozen=True)
class PanelOptions:
    """The judges of a panel, and the way to reach each."""

    members: tuple[JudgeOptions, ...]

    @property
    def names(self) -> list[str]:
        """The models of the members."""
        return [str(member.model) for member in self.members]

    @property
    def concurrency(self) -> int:
        """Calls that may be under way at once."""
        return sum(member.concurrency for member in self.members)

    def may_be(self, identity: JudgeIdentity) -> bool:
        """Whether the panel may be the judge of an identity; names alone decide."""
        return identity.provider == PANEL and identity.model == "+".join(self.names)

    @contextmanager
    def connect(
        self, cache: VerdictCache, salt: bytes, ask_nothing: bool
    ) -> Iterator[PanelConnection]:
        """All members, each connected as its own judge.

        Raises JudgeError where two are one judge.
        """
        shared = Shared()
        with ExitStack() as stack:
            members = []
            for member in self.members:
                try:
                    link = open_judge(member, cache, salt, ask_nothing, shared)
                    members.append(stack.enter_context(link))
                except JudgeError as error:
                    raise type(error)(f"panel: {member.model}: {error}") from None
            told = [member.describe() for member in members]
            for number, one in enumerate(told):
                same = [told[n] for n in range(number) if told[n]["identity"] == one["identity"]]
                if one["parameters"] in [other["parameters"] for other in same]:
                    raise JudgeError(
                        f"panel: two members are the same judge, {members[number].judge.identity}; "
                        "name each once."
                    )
            panel = Panel([member.judge for member in members])

            def describe() -> dict[str, Any]:
                each = [member.describe() for member in members]
                own: dict[str, Any] = {
                    "identity": panel.identity.to_dict(),
                    "parameters": {"members": [one["parameters"] for one in each]},
                    "mode": "panel",
                    "dropped_params": sorted({n for one in each for n in one["dropped_params"]}),
                    "members": [{k: one[k] for k in ("identity", "mode")} for one in each],
                }
                for name in ("answered_as", "fingerprints"):
                    own[name] = sorted({text for one in each for text in one.get(name, ())})
                return own

            yield PanelConnection(
                panel,
                salt,
                describe,
                withdrawn=lambda: cache.withdrawn,
                taken_back=lambda: cache.taken_back,
                notes=lambda: list(dict.fromkeys(n for member in members for n in member.notes())),
                holds=lambda task: all(member.holds(task) for member in members),
                tokens=cache.tokens_a_reply,
                stop=shared.stop,
                members=members,
                hosts=[urlsplit(member.server).hostname or "offline" for member in self.members],
            )


@dataclass
class PanelConnection(Connection):
    """A panel at hand. ``hosts``: where its members are."""

    members: Sequence[Connection] = ()
    hosts: Sequence[str] = ()

    def recipients(self, cost: CostEstimate, max_cost: float | None) -> str:
        """The recipients of the answers, and the total cost of all members."""
        models = [member.judge.identity.model for member in self.members]
        to = ", ".join(f"{name} ({host})" for name, host in zip(models, self.hosts, strict=True))
        line = estimate_line(cost, max_cost)
        return printable(f"A panel judges: the answers go to {to}. In all {line}")

    def estimate(self, tasks: Iterable[JudgeTask]) -> CostEstimate:
        """Calls, tokens and money of tasks, by the prices of each member; nothing is asked.

        Lists (claims, facts) are made once, and every member is asked about all else.
        """
        asked = list(tasks)
        voted = [task for task in asked if task.metric not in (CLAIMS.prompt, FACTS.prompt)]
        first, *others = self.members
        return summed([first.estimate(asked), *(each.estimate(voted) for each in others)])

    def confirm(self) -> None:
        """Check again which judges answer; see ``Connection.confirm``."""
        changes: list[JudgeChanged] = []
        for member in () if self._confirmed else self.members:
            try:
                member.confirm()
            except JudgeChanged as changed:
                changes.append(changed)
        if changes:
            self._confirmed = True
            gone = {run: why for changed in changes for run, why in changed.withdrawn.items()}
            raise JudgeChanged(changes[0].message, gone)
        super().confirm()
