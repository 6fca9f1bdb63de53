"""Miscoverage levels as exact decimals: text that the compiled module parses."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any


#: The level where none is asked for.
DEFAULT = 0.1


def level(alpha: Any) -> str:
    """A level's shortest decimal.

    >>> level(0.1), level("0.10"), level(1e-5)
    ('0.1', '0.10', '1e-05')
    """
    if isinstance(alpha, bool) or not isinstance(alpha, (str, Decimal)) and not hasattr(alpha, "__float__"):
        raise TypeError(f"alpha must be a number or a decimal string, got {type(alpha).__name__}")
    return str(alpha)


def complement(confidence: Any) -> str:
    """The level of a confidence, complemented in decimal.

    >>> complement(0.95)
    '0.05'
    """
    text = level(confidence)
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
