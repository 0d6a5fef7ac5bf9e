"""From what the user wants to a judge that can be asked: local, on a server, or its cache alone."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import storage
from clients.judge import HttpJudge
from clients.judge_bodies import Found, Sampling
from clients.judge_channel import key_headers
from clients.judge_cost import Budget, Totals, read_prices
from clients.judge_names import Alias
from clients.judge_servers import JudgeError, Pin
from clients.judge_types import Judge, JudgeIdentity, JudgeTask, Verdict
from clients.retry import RetryPolicy
from clients.verdict_cache import (
    FILE_NAME,
    CachedJudge,
    KeyedJudge,
    OfflineJudge,
    VerdictCache,
)
from clients.withdrawal import new_judging_run
from judging.limits import Fitted
from judging.local import LocalJudge
from judging.wrappers import NotAsked, ProbedFirst

LOCAL = "local"
SALT_BYTES = 32


@dataclass(frozen=True)
class Wanted:
    """What the command line says of the judge. ``api_key``: the name of a variable, no key."""

    judge: str = LOCAL
    model: str | None = None
    api_key: str | None = None
    revision: str | None = None
    file: Path | None = None
    allow_unpinned: bool = False
    allow_alias: tuple[Alias, ...] = ()
    temperature: float | None = 0.0
    seed: int | None = 0
    mode: str | None = None
    thinking_tokens: int = 0
    concurrency: int = 8
    timeout: float = 120.0
    retries: int = 3
    prices: Path | None = None
    max_cost: float | None = None
    offline: bool = False
    cache_dir: Path = storage.CACHE_DIR

    @property
    def sampling(self) -> Sampling:
        return Sampling(self.temperature, self.seed)


class Counted:
    """A judge whose verdicts are counted. Thread-safe if the judge is."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._lock = threading.Lock()
        self.totals = Totals()

    @property
    def identity(self) -> JudgeIdentity:
        return self._judge.identity

    @property
    def cannot(self) -> Mapping[str, str]:
        """Prompts that this judge cannot answer, with the reason."""
        found: Mapping[str, str] = getattr(self._judge, "cannot", {})
        return found

    def ask(self, task: JudgeTask) -> Verdict:
        verdict = self._judge.ask(task)
        with self._lock:
            self.totals.add(verdict)
        return verdict


class JudgeChanged(JudgeError):
    """Verdicts cannot be trusted any more. ``withdrawn``: the runs of judging, each with why."""

    def __init__(self, message: str, withdrawn: Mapping[str, str]) -> None:
        super().__init__(message)
        self.withdrawn = withdrawn


@dataclass
class Connection:
    """A judge at hand. ``describe``: its part of config.json. ``changed``: is it still the same?

    ``holds`` tells whether a task's verdict is in the cache; ``tokens`` how long replies are.
    ``judging_run``: the id of what is asked by this connection. ``withdraw``: takes back what it
    has put into the cache, with a reason. ``withdrawn``: what was taken back, by id, each with the
    reason; ``taken_back``: those of them whose verdicts were used here. ``notes``: what a reader
    of the verdicts should know of the names in the replies.
    """

    judge: Counted
    salt: bytes
    describe: Callable[[], dict[str, Any]]
    judging_run: str = ""
    changed: Callable[[], str | None] = lambda: None
    withdraw: Callable[[str], None] = lambda reason: None
    withdrawn: Callable[[], Mapping[str, str]] = dict
    taken_back: Callable[[], Mapping[str, str]] = dict
    notes: Callable[[], Sequence[str]] = tuple
    holds: Callable[[JudgeTask], bool] = lambda task: False
    tokens: Callable[[str], float | None] = lambda metric: None
    budget: Budget = field(default_factory=Budget)
    stop: threading.Event = field(default_factory=threading.Event)
    _confirmed: bool = False

    def confirm(self) -> None:
        """Look once more who judges; if that is another judge, take back what was asked here.

        Raises JudgeError for a judge that changed, and when another run of judging has taken back
        what was used here; JudgeUnreachable for a server that is gone. Done once: ``connect`` does
        it at its end if nobody has.
        """
        if self._confirmed:
            return
        self._confirmed = True
        if (reason := self.changed()) is not None:
            self.withdraw(reason)
            raise JudgeChanged(
                f"{reason}; its verdicts cannot be trusted and were withdrawn: judge again.",
                {**self.withdrawn(), self.judging_run: reason},
            )
        if lost := self.taken_back():
            why = next(iter(lost.values()))
            raise JudgeChanged(
                f"verdicts from the cache were withdrawn in the meantime ({why}): judge again.",
                lost,
            )


@contextmanager
def connect(wanted: Wanted, *, ask_nothing: bool = False) -> Iterator[Connection]:
    """The judge that is wanted, ready to be asked.

    ``ask_nothing``: spend nothing yet (for an estimate): a server is identified, not probed.
    Raises StorageError for what is missing or not pinned, JudgeUnreachable (exit code 3).
    """
    salt = read_salt(wanted.cache_dir)
    if wanted.judge == LOCAL:
        local = LocalJudge()
        identity = local.identity.to_dict()
        told = {"identity": identity, "parameters": {}, "mode": "local", "dropped_params": []}
        yield Connection(Counted(local), salt, lambda: dict(told))
        return
    cache = VerdictCache(wanted.cache_dir / FILE_NAME, read_only=wanted.offline)
    try:
        yield from (_offline if wanted.offline else _server)(wanted, cache, salt, ask_nothing)
    finally:
        cache.close()


def _offline(
    wanted: Wanted, cache: VerdictCache, salt: bytes, ask_nothing: bool
) -> Iterator[Connection]:
    """The cache alone, as the judge that has verdicts there under this name."""
    known = [
        (identity, found)
        for identity, found in cache.judges(wanted.model)
        if wanted.file or wanted.revision in (None, identity.revision)
    ]
    if not known:
        name = wanted.model or "any judge"
        raise JudgeError(f"{cache.path}: no verdicts of {name}; judge once without --offline.")
    names = sorted({str(identity) for identity, _ in known})
    if len(names) > 1:
        raise JudgeError(
            f"--offline: the cache has verdicts of several judges ({', '.join(names)}); choose one "
            "with --model, or with --judge-revision."
        )
    identity, found = known[-1]
    sampling = wanted.sampling
    judge = OfflineJudge(identity, found, sampling)
    asked = {"temperature": sampling.temperature, "seed": sampling.seed}
    told = {
        "identity": identity.to_dict(),
        "parameters": {k: v for k, v in asked.items() if k not in found.dropped},
        "mode": found.mode,
        "dropped_params": list(found.dropped),
    }
    cached = CachedJudge(judge, cache)
    fitted = Fitted(cached, cached, judge, wanted.thinking_tokens)
    yield Connection(
        Counted(fitted),
        salt,
        lambda: dict(told),
        withdrawn=lambda: cache.withdrawn,
        holds=fitted.holds,
        tokens=cache.tokens_a_reply,
    )


def _server(
    wanted: Wanted, cache: VerdictCache, salt: bytes, ask_nothing: bool
) -> Iterator[Connection]:
    stop = threading.Event()
    judging_run = new_judging_run()
    judge = HttpJudge(
        wanted.judge,
        wanted.model,
        headers=key_headers(wanted.api_key, os.environ),
        policy=RetryPolicy(wanted.timeout, wanted.retries),
        sampling=wanted.sampling,
        mode=wanted.mode,
        pin=Pin(wanted.revision, wanted.file, wanted.allow_unpinned, wanted.allow_alias),
        budget=_budget(wanted),
        connections=wanted.concurrency,
        stop=stop,
    )
    try:
        asked = _ready(judge, cache.found_for(judge.identify()), wanted.mode, ask_nothing)
        stored = CachedJudge(NotAsked(judge), cache)
        asking = CachedJudge(asked, cache, judging_run)
        fitted = Fitted(stored, asking, judge, wanted.thinking_tokens)

        def describe() -> dict[str, Any]:
            told = judge.describe()
            left_out = [f"schema:{name}" for name in fitted.left_out]
            return told | {"dropped_params": [*told["dropped_params"], *left_out]}

        connection = Connection(
            Counted(fitted),
            salt,
            describe,
            judging_run,
            judge.changed,
            lambda reason: cache.withdraw(judging_run, reason),
            lambda: cache.withdrawn,
            lambda: cache.taken_back,
            lambda: judge.notes,
            fitted.holds,
            cache.tokens_a_reply,
            judge.budget,
            stop,
        )
        yield connection
        if not ask_nothing:
            connection.confirm()
    finally:
        judge.close()


def _ready(
    judge: HttpJudge, known: Found | None, mode: str | None, ask_nothing: bool
) -> KeyedJudge:
    """The judge with its way to ask for JSON; where it is known, it is tried before the first call.

    A run that takes all from the cache asks the server nothing, unless the judge is known only by
    the name that a reply has.
    """
    if judge.named_by_probe and not ask_nothing:
        judge.probe(known)
        return judge
    if known is not None and mode in (None, known.mode):
        judge.assume(known)
        return judge if ask_nothing else ProbedFirst(judge)
    if ask_nothing:
        judge.assume(Found(mode or "json_schema"))
    else:
        judge.probe()
    return judge


def _budget(wanted: Wanted) -> Budget:
    if wanted.prices is None:
        if wanted.max_cost is not None:
            raise storage.StorageError(
                "--max-cost: needs --prices, a TOML file of what tokens cost."
            )
        return Budget()
    if not wanted.model:
        raise storage.StorageError("--prices: name the model with --model, too.")
    return Budget(read_prices(wanted.prices, wanted.model), wanted.max_cost)


def read_salt(cache_dir: Path) -> bytes:
    """The secret of the boundaries, made once; whoever writes an answer must not know it."""
    path = cache_dir / "judge_salt"
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
        with storage.locked(path):
            if not path.exists() or len(path.read_bytes()) != SALT_BYTES:
                storage.replace_bytes(path, secrets.token_bytes(SALT_BYTES))
                path.chmod(0o600)
            return path.read_bytes()
    except OSError as error:
        raise storage.StorageError(f"{path}: cannot be used ({error.strerror}).") from None
