"""`python -m layoutproof` and the command `layoutproof`: what a user stops while it is being imported ends as later."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """The console entry: runs and exits, with 130 where Ctrl-C comes before the commands are there."""
    try:
        from layoutproof.cli.main import main as commands
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    commands()


if __name__ == "__main__":
    main()
