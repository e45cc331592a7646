"""What a column is for some samples."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

Values = Array | list[Any]
"""An ndarray with the samples along axis 0, or a list with a value for each."""
