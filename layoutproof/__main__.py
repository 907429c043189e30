"""`python -m layoutproof` is the command `layoutproof`."""

from layoutproof.cli.main import main

if __name__ == "__main__":
    main()
