"""Ids of users and sessions as keyed hashes: the same id has the same hash, with no way back."""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from formats.traces.spans import SESSIONS, USERS
from records.errors import StorageError
from records.runs import HOME

KEY_FILE = HOME / "eval" / "trace_ids.key"
"""The key of the hashes; git leaves it out. Who deletes it gives every id another hash."""

_NAMES = frozenset((*SESSIONS, *USERS, "username", "user_name", "user", "email"))
_NAMES |= {"authorUserId", "author_user_id"}


Key = Callable[[], bytes] | None
"""Gives the key, which is made when an id needs it; None: ids are kept."""


def hashed(identity: str, key: Key) -> str:
    """The hash of an id; the id itself without a key."""
    if key is None:
        return identity
    data = identity.encode("utf-8", "surrogatepass")
    return "h-" + hmac.digest(key(), data, "sha256").hex()[:16]


def hidden(value: Any, key: Key, name: str = "") -> Any:
    """The value with every id of a user or session in it hashed, by the names of its fields."""
    if isinstance(value, Mapping):
        return {field: hidden(item, key, str(field)) for field, item in value.items()}
    if isinstance(value, list):
        return [hidden(item, key, name) for item in value]
    return hashed(str(value), key) if is_name_of_id(name) and value not in (None, "") else value


def is_name_of_id(name: str) -> bool:
    """Whether a field of this name has the id of a user or session."""
    return name in _NAMES or name.rpartition(".")[2] in _NAMES


@cache
def key_of_ids(path: Path = KEY_FILE) -> bytes:
    """The key, made at its first use. Raises StorageError when it cannot be kept."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            pass
        else:
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_hex(32))
        key = path.read_bytes().strip()
    except OSError as error:
        raise StorageError(
            f"{path}: the key of hashed ids cannot be kept ({error.strerror}); make the folder "
            "writable, or keep ids unchanged with keep_ids = true under [traces] of config.toml."
        ) from None
    if len(key) < 32:
        raise StorageError(f"{path}: is not a key of hashed ids; delete it, and a new one is made.")
    return key
