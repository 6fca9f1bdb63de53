"""Parameters as the numbers they must be; an error says which parameter, what was wanted and what came."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ._inputs import as_array, refuse_masked

#: More threads than any machine has cores; starting a million of them takes the machine down.
MOST_THREADS = 1024


def as_threads(n_threads: Any) -> int | None:
    """A number of threads, or None for one per core."""
    if n_threads is None:
        return None
    count = _whole(n_threads, "n_threads")
    if not 1 <= count <= MOST_THREADS:
        raise ValueError(f"n_threads must lie between 1 and {MOST_THREADS}, or be None for one per core, got {count}")
    return count


def as_seed(random_state: Any) -> int:
    """The seed of the draws: whoever wants other draws gives another number, for the same rows have the same ones.

    >>> as_seed(None)
    Traceback (most recent call last):
    ...
    TypeError: random_state must be a whole number, got None
    """
    seed = _whole(random_state, "random_state")
    if not 0 <= seed < 1 << 64:
        raise ValueError(f"random_state must lie between 0 and 2**64 - 1, got {seed}")
    return seed


def as_number(value: Any, name: str) -> float:
    """One number; text, truth values and arrays of several are none.

    >>> as_number("1.5", "gamma")
    Traceback (most recent call last):
    ...
    TypeError: gamma must be a number, got '1.5'
    """
    if (number := _number(value)) is None or isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be a number, got {value!r}")
    return number


def as_count(value: Any, name: str) -> int:
    """A whole number that the core can hold in 32 bits."""
    count = _whole(value, name)
    if not 0 <= count < 1 << 32:
        raise ValueError(f"{name} must lie between 0 and 2**32 - 1, got {count}")
    return count


def as_truth(value: Any, name: str) -> bool:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def as_numbers(values: Any, what: str, place: Callable[[int], str]) -> np.ndarray:
    """Numbers as `float64`, in whatever shape they come; an entry that is none is named by its `place`.

    >>> as_numbers([1, "a"], "severity", "class {}".format)
    Traceback (most recent call last):
    ...
    ValueError: severity: wanted a number for class 1, got 'a'
    """
    refuse_masked(values, what)
    try:
        array = as_array(values)
    except ValueError:
        # Entries of several lengths, of which NumPy makes no array.
        array = np.empty(len(values), dtype=object)
    if array.dtype.kind in "biuf":
        return np.asarray(array, dtype=np.float64, order="C")
    if array.ndim == 0:
        raise ValueError(f"{what}: wanted numbers, got {values!r}")
    # A list goes by its own values: NumPy would make texts of whatever stands beside a text.
    entries = values.tolist() if isinstance(values, np.ndarray) else list(values)
    numbers = [_number(entry) for entry in entries]
    for at, number in enumerate(numbers):
        if number is None:
            raise ValueError(f"{what}: wanted a number for {place(at)}, got {entries[at]!r}")
    return np.asarray(numbers)


def _number(value: Any) -> float | None:
    """The number that a value is; text that reads as one is none."""
    if isinstance(value, (str, bytes)) or getattr(value, "ndim", 0):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _whole(value: Any, name: str) -> int:
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    return operator.index(value)
