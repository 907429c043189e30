"""What may be wrong with a file of Python that is scanned."""

from __future__ import annotations

from layoutproof.core.message import Template

NESTED_PYTHON = Template("scanning.nested_python", "not Python that can be read: it is nested too deep")
NOT_PARSED = Template("scanning.not_parsed", "cannot be parsed: {why}{mentions}")
NO_FOLDER = Template("scanning.no_folder", "{folder}: there is no such folder")
