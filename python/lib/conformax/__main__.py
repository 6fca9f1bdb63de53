"""`python -m conformax` is the command `conformax`."""

from __future__ import annotations

from ._command import main

if __name__ == "__main__":
    raise SystemExit(main())
