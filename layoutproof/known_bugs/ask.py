"""The known bugs of one kernel, of one compiled program, and of the words of a refusal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from layoutproof.core.packages import package_version
from layoutproof.kernel.kernel import Kernel
from layoutproof.known_bugs import in_kernels, in_programs
from layoutproof.known_bugs.bug import PACKAGES, BugSeen, KnownBug, seen
from layoutproof.known_bugs.bugs import BUGS

_NAMED = re.compile(r"\b(libtpu|jaxlib|jax) ([0-9][\w.]*)")


def versions_in(*texts: str) -> dict[str, str]:
    """Package -> version, of texts such as "libtpu 0.0.52" or "XLA:CPU of jaxlib 0.10.2".

    >>> versions_in("XLA:CPU of jaxlib 0.10.2", "jax 0.10.2")
    {'jaxlib': '0.10.2', 'jax': '0.10.2'}
    """
    return {name: version for text in texts for name, version in _NAMED.findall(text)}


def installed() -> dict[str, str]:
    """Package -> version of what is installed here; none is loaded."""
    return {name: version for name in PACKAGES if (version := package_version(name))}


def of_kernel(kernel: Kernel, packages: Iterable[str], versions: Mapping[str, str]) -> tuple[BugSeen, ...]:
    """The bugs whose pattern a Pallas call has.

    Args:
        kernel: The call.
        packages: Whose bugs are asked about.
        versions: Package to version; of a package that is not in it nothing is said.

    Returns:
        Each bug once, at its first place.
    """
    asked = (bug for bug in BUGS if bug.subject == "kernel" and bug.package in packages)
    if kernel.platform != "tpu":
        asked = (bug for bug in asked if bug.platform != "tpu")
    found = (seen(bug, versions.get(bug.package, ""), getattr(in_kernels, bug.pattern)(kernel)) for bug in asked)
    return tuple(one for one in found if one is not None)


def of_program(
    lines: Iterable[str], target: str, versions: Mapping[str, str], flags: Mapping[str, str]
) -> tuple[BugSeen, ...]:
    """The bugs whose pattern a compiled program has.

    Args:
        lines: The compiler's text.
        target: "cpu", "gpu" or a TPU generation.
        versions: As for `of_kernel`.
        flags: The compiler's options.

    Returns:
        Each bug once, at its first instruction.
    """
    asked = [bug for bug in _asked("program", target) if versions.get(bug.package)]
    text = in_programs.read(lines, flags) if asked else in_programs.CompiledText()
    found = (seen(bug, versions[bug.package], getattr(in_programs, bug.pattern)(text)) for bug in asked)
    return tuple(one for one in found if one is not None)


def of_refusal(words: str, target: str, versions: Mapping[str, str]) -> tuple[BugSeen, ...]:
    """The bugs that the words of a refusal are of. Arguments as for `of_program`."""
    found = (
        seen(bug, versions.get(bug.package, ""), [("the refusal", "")] if re.search(bug.pattern, words) else [])
        for bug in _asked("refusal", target)
    )
    return tuple(one for one in found if one is not None)


def _asked(subject: str, target: str) -> list[KnownBug]:
    platform = target if target in ("cpu", "gpu") else "tpu"
    return [bug for bug in BUGS if bug.subject == subject and bug.platform in ("", platform)]
