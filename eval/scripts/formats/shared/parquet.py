"""Rows of Parquet tables, where pyarrow is installed: pandas, datasets and Phoenix write such."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

from records.errors import StorageError

SUFFIX = ".parquet"

_ROWS_AT_ONCE = 1_000


def parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a table in the form of JSON: times as ISO texts, what else JSON lacks as text.

    Raises StorageError without pyarrow, and for a file that is damaged or cannot be read.
    """
    try:
        import pyarrow.parquet as tables
    except ImportError:
        raise StorageError(
            f"{path}: reading Parquet needs pyarrow, which is not installed; install it with "
            "pip install pyarrow, or write the table as JSON lines."
        ) from None
    try:
        with tables.ParquetFile(path) as table:
            for batch in table.iter_batches(batch_size=_ROWS_AT_ONCE):
                for row in batch.to_pylist(maps_as_pydicts="lossy"):
                    yield _plain(row)
    except (OSError, ValueError, NotImplementedError) as error:  # ArrowInvalid is a ValueError
        fault = str(error).strip().partition("\n")[0].rstrip(".")
        raise StorageError(f"{path}: cannot be read as Parquet ({fault}).") from None


def _plain(value: Any) -> Any:
    """A value of a cell as JSON holds it; numbers that JSON has not are null."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime | date):
        return value.isoformat()
    return value if isinstance(value, str | int | None) else str(value)
