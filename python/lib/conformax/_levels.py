"""Miscoverage levels as exact decimals: text that the compiled module parses."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np


#: The level where none is asked for.
DEFAULT = 0.1


def level(alpha: Any, name: str = "alpha") -> str:
    """A level's shortest decimal; errors speak of it by `name`.

    >>> level(0.1), level("0.10"), level(1e-5)
    ('0.1', '0.10', '1e-05')
    """
    text = _decimal(alpha, name)
    if not 0 < Decimal(text) < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {text}")
    return text


def _decimal(value: Any, name: str) -> str:
    """The text of a finite number."""
    kind = isinstance(value, (str, Decimal)) or hasattr(value, "__float__")
    if isinstance(value, (bool, np.bool_)) or not kind:
        raise TypeError(f"{name} must be a number or a decimal string, got {value!r}")
    text = str(value)
    try:
        finite = Decimal(text).is_finite()
    except InvalidOperation:
        finite = False
    if not finite:
        raise ValueError(f"{name} must be a number or a decimal string, got {value!r}")
    return text


def complement(confidence: Any) -> str:
    """The level of a confidence, complemented in decimal.

    >>> complement(0.95)
    '0.05'
    """
    text = _decimal(confidence, "confidence_level")
    if not 0 < float(text) < 1:
        raise ValueError(f"confidence must lie strictly between 0 and 1, got {text}")
    return str(1 - Decimal(text))


def levels(alpha: Any = None, confidence: Any = None) -> tuple[list[str], bool]:
    """All levels that were asked for, and whether they came as a list; 0.1 where none was.

    >>> levels(), levels(0.2)
    ((['0.1'], False), (['0.2'], False))
    >>> levels(confidence=[0.9, 0.95])
    (['0.1', '0.05'], True)
    """
    if alpha is not None and confidence is not None:
        raise ValueError("give alpha or confidence_level, not both")
    alpha = DEFAULT if alpha is None else alpha
    given, convert = (alpha, level) if confidence is None else (confidence, complement)
    if isinstance(given, Iterable) and not isinstance(given, str):
        several = [convert(one) for one in given]
        if not several:
            raise ValueError("wanted at least one level, got none")
        return several, True
    return [convert(given)], False
