"""What the package warns of and raises beyond `ValueError` and `TypeError`."""

from __future__ import annotations


class ConformaxWarning(UserWarning):
    """Something legal that the caller should know of, such as too few calibration rows."""


class NotFittedError(ValueError, AttributeError):
    """Prediction was asked of a classifier that has not been calibrated.

    Where scikit-learn is installed its own `NotFittedError` is raised instead, so that one `except` catches both.
    """


def not_calibrated(name: str) -> Exception:
    """The exception for a method that needs calibration first."""
    try:
        from sklearn.exceptions import NotFittedError as error
    except ImportError:
        error = NotFittedError
    return error(f"this {name} is not calibrated: call `calibrate` with logits and labels first")
