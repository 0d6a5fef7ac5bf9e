"""Whether a process is still there."""

from __future__ import annotations

from pathlib import Path


def gone(pid: int) -> bool:
    """True when no process has this id, or only its remains. Needs /proc."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"
