"""What is installed here, by the names of packages; nothing of it is loaded."""

from __future__ import annotations


def package_version(name: str) -> str:
    """The version of an installed package, "" where there is none.

    >>> package_version("no-such-package")
    ''
    """
    # where it is needed: a question about a layout does not wait for it
    import importlib.metadata

    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
