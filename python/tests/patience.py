"""How long a test waits for what should have ended."""

#: Seconds after which a process hangs: it ends what never would, and nothing that a busy machine does slowly.
HANG = 1_800
