"""The `conformax` command as the wheel installs it: the Rust command on this process's streams."""

from __future__ import annotations

import sys

from . import _conformax


def main() -> int:
    """Runs the command with the process's arguments and returns its exit code."""
    sys.stdout.flush()
    sys.stderr.flush()
    return _conformax.run_command(["conformax", *sys.argv[1:]])
