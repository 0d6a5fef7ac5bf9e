"""Editing a text in the user's own editor, with the screen given up meanwhile."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported

from terminal.actions import ActionRefused


def edit_outside(app: App[Any], text: str) -> str:
    """`text` as $VISUAL or $EDITOR left it. Refuses when there is none or it failed."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not command:
        raise ActionRefused(
            "no editor is set; export EDITOR=nano (or vim), or press e for the form"
        )
    handle, name = tempfile.mkstemp(suffix=".json", prefix="label-")
    path = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(text)
        with app.suspend():
            code = subprocess.call([*shlex.split(command), name])
        if code != 0:
            raise ActionRefused(f"the editor ended with {code}; nothing was changed")
        return path.read_bytes().decode("utf-8", errors="surrogatepass")
    except SuspendNotSupported:  # behind --serve, or where the system knows no suspending
        raise ActionRefused("an editor cannot be opened here; press e for the form") from None
    except (OSError, ValueError) as error:
        raise ActionRefused(f"the editor could not be used: {error}") from None
    finally:
        path.unlink(missing_ok=True)
