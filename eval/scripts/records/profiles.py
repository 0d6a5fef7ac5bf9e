"""The profile that a run was made with: where its file is, and whether it maps passages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from records.errors import StorageError
from records.files import read_toml
from records.results import RunConfig, TestResult
from records.runs import PROFILES, SHIPPED_PROFILES, known_config


def maps_passages(config: RunConfig) -> bool:
    """False for a run whose profile maps no passages: its older results hold empty lists, which
    say nothing. True where no one can know."""
    mapped = config.api.get("mapped")
    if mapped is None and config.api.get("source") == "http":
        with suppress(StorageError, TypeError):  # the profile is missing, or was changed
            raw = read_toml(find_profile(str(config.api.get("profile")), PROFILES))
            if config.api.get("profile_sha256") in (digest_without_turns(raw), digest(raw)):
                mapped = [*raw.get("response", {}), *raw.get("constant", {})]
    return mapped is None or bool({"retrieved", "searches"} & set(mapped))


def read_maps_passages(folder: Path) -> bool:
    """The same of the run in a folder; True where its configuration cannot be read."""
    with suppress(StorageError):
        return maps_passages(known_config(folder))
    return True


def forget_unmapped(result: TestResult) -> TestResult:
    """The result of a run that maps no passages: its empty list becomes null."""
    result.retrieved = result.retrieved or None
    return result


def find_profile(name: str, folder: Path) -> Path:
    """The file of a profile given by name or path. Raises StorageError when there is none."""
    named = folder / f"{name}.toml"
    if named.is_file() and "/" not in name:
        return named
    if Path(name).is_file():
        return Path(name)
    shipped = SHIPPED_PROFILES / f"{name}.toml"
    if shipped.is_file() and "/" not in name:
        return shipped
    folders = (folder, SHIPPED_PROFILES)
    names = ", ".join(sorted({path.stem for each in folders for path in each.glob("*.toml")}))
    raise StorageError(
        f"profile {name!r}: no such file, and no such name in {folder}; known: {names}."
    )


def digest(raw: Mapping[str, Any]) -> str:
    """SHA-256 over the profile's settings. Comments, order, description and limits change no
    answer, so they do not count."""
    counted = {key: value for key, value in raw.items() if key not in ("description", "limits")}
    return hashlib.sha256(json.dumps(counted, sort_keys=True, default=str).encode()).hexdigest()


def digest_without_turns(raw: Mapping[str, Any]) -> str:
    """The same without the settings that a question by itself never uses: a profile that learns of
    conversations asks all other questions as before. What it tells of tools, and of searches beside
    the passages, changes nothing that was recorded before, either."""
    counted = {key: value for key, value in raw.items() if key not in ("history", "tool")}
    response = raw.get("response")
    if isinstance(response, dict):
        beside = (*_OF_SEARCHES, "tools") if "retrieved" in response else ("tools",)
        counted["response"] = {k: v for k, v in response.items() if k not in beside}
    return digest(_without_turns(counted))


def _without_turns(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_turns(v) for k, v in value.items() if v not in _OF_TURNS}
    if isinstance(value, list):
        return [_without_turns(item) for item in value if item not in _OF_TURNS]
    return value


_OF_SEARCHES = ("searches", "rewritten_query")

_OF_TURNS = ("{history}", "{session}")
