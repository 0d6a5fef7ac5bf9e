"""What a session looked at last, in a small file beside the set.

It is written at every change of view, so that a killed session loses none of it; it holds no label,
and one that cannot be read is left out of account.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from labeller.resuming import View


class ViewFile:
    """The file of one annotator's last view of one set."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> tuple[View | None, str]:
        """The view, or None and, when there is a file that cannot be used, a word about it."""
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=View), ""
        except FileNotFoundError:
            return None, ""
        except OSError as error:
            why = error.strerror or type(error).__name__
        except (msgspec.MsgspecError, UnicodeDecodeError):
            why = "damaged"
        return None, f"{self.path.name}: cannot be read ({why}); starting with the usual view."

    def write(self, view: View) -> None:
        """Keep a view. A disk that refuses is passed over: no label is in it.

        The file is replaced in one step, for a kill must not halve it; it is not forced onto the
        disk, for this happens at every move of the cursor.
        """
        passing = self.path.with_name(f".{self.path.name}.new")
        with contextlib.suppress(OSError, UnicodeEncodeError):
            passing.write_bytes(msgspec.json.encode(view))
            os.replace(passing, self.path)
