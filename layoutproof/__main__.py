"""`python -m layoutproof` is the command `layoutproof`."""

from layoutproof.doors.cli import main

if __name__ == "__main__":
    main()
