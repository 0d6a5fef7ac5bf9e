"""Other tools' formats: what they hold becomes an eval set and runs, and back.

``formats/`` has a file a format, found by its name; the rest is what they share. What one side
cannot hold is counted in ``Notes`` and told; nothing is dropped in silence.
"""

from __future__ import annotations
