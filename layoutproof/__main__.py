"""`python -m layoutproof` and the command `layoutproof`: what a user stops while it is being imported ends as later."""

import sys

TYPE_CHECKING = False  # as in `layoutproof`, which is imported before this
if TYPE_CHECKING:
    from typing import NoReturn

GARBAGE = 50_000
"""Objects after which a command looks for garbage, where Python does so after 700."""


def main() -> "NoReturn":
    """The console entry: runs and exits, with 130 where Ctrl-C comes, one line and no traceback, whenever it comes."""
    try:
        import gc

        # most of what a command makes at first, classes and functions, stays
        gc.set_threshold(GARBAGE, *gc.get_threshold()[1:])
        from layoutproof.cli.main import main as commands

        commands()
    except KeyboardInterrupt:
        _deaf()
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    finally:
        _deaf()


def _deaf() -> None:
    """From here on the end is near and its code is known: one more Ctrl-C changes nothing."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    main()
