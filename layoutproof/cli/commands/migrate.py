"""`layoutproof migrate`: spec files, approvals and the lock file of earlier versions, as this version reads them.

In the list: claims and changes: Rewrite files of earlier versions for this one.
"""

from __future__ import annotations

import datetime
import difflib
import os
from pathlib import Path

import click

from layoutproof.cli.arguments import (
    complete_file,
    json_flag,
    no_cache_flag,
    no_trace_flag,
    print_json,
    say,
    write_whole,
)
from layoutproof.compiler.tracing import here, only
from layoutproof.core.document import document, error_entry


@click.command(name="migrate")
@click.argument("paths", nargs=-1, shell_complete=complete_file)
@click.option("--dry-run", is_flag=True, help="Write nothing; print what would change, as a diff.")
@no_trace_flag
@no_cache_flag
@json_flag
def command(paths: tuple[str, ...], dry_run: bool, no_trace: bool, as_json: bool) -> int:
    """Make what earlier versions wrote into what this version reads: layoutproof.lock, approvals, and the spec files.

    PATHS are spec files and folders; without any, those that layoutproof.lock is of. What a lock file says stays;
    what its version did not keep is added as it is now, and is printed. Run twice, it changes nothing more.

    Exit codes: 0 all is migrated or was, 2 something cannot be read (nothing is written), 3 something is left for you.

    \b
    Example:
      layoutproof migrate --dry-run
    """
    from layoutproof.changes.lock_head import NAME
    from layoutproof.changes.migrate import migrate
    from layoutproof.changes.rules import pyproject

    lock = Path(NAME) if os.path.lexists(NAME) else None
    config = pyproject()
    shown = None if config is None else Path(os.path.relpath(config))
    today = datetime.datetime.now(tz=datetime.UTC).date()
    with only(here(not no_trace)):
        found, errors = migrate(paths, lock, shown, today)
    left = any(each.left for each in found)
    code = 2 if errors else 3 if left else 0
    changed = [each for each in found if each.after != each.before]
    written = [] if dry_run or errors else changed
    for each in written:
        # a link stays a link
        write_whole(Path(os.path.realpath(each.file)), each.after.encode(errors="backslashreplace"))
    if as_json:
        rows = [{"file": e.file, "done": e.done, "left": e.left, "notes": e.notes} for e in found]
        problems = [error_entry(error, "input", "") for error in errors]
        return print_json(
            document(code, {"results": rows, "errors": problems, "written": [each.file for each in written]})
        )
    lines: list[str] = []
    for each in found:
        if dry_run and each.after != each.before and not errors:
            old, new = each.before.splitlines(), each.after.splitlines()
            lines += difflib.unified_diff(old, new, each.file, each.file, lineterm="", n=1)
        lines += [f"done     {each.file}: {what}" for what in each.done] if not dry_run and not errors else []
        lines += [f"left     {what}" for what in each.left]
        lines += [f"note     {what}" for what in each.notes]
    lines += [f"error    {error}" for error in errors]
    files = f"{len(changed)} file{'' if len(changed) == 1 else 's'}"
    if errors:
        lines.append(f"nothing is written: {len(errors)} file{'' if len(errors) == 1 else 's'} cannot be read")
    elif not changed:
        lines.append("nothing to migrate")
    else:
        lines.append(f"{files} would change" if dry_run else f"{files} migrated")
    say("\n".join(lines))
    return code
