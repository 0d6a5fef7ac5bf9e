"""numpy, loaded when one of its names is first used: printing a help page waits for none of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["Floats", "Ints", "NDArray", "np"]

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
else:

    class _Numpy:
        def __getattr__(self, name: str) -> Any:
            import numpy

            value = getattr(numpy, name)
            setattr(self, name, value)  # so that it is looked up once
            return value

    np = _Numpy()
    NDArray = Floats = Ints = Any
