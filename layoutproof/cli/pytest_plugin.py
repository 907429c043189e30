"""`pytest --layoutproof`: every Pallas call that a test suite traces is checked, without a changed line of it.

A test whose calls are wrong fails a second time, with the report; JAX traces a function once per shape, so that is the
test that traces it first. `--layoutproof-specs PATH` makes every claim in spec
files a test. Without these options nothing is hooked and nothing but pytest is imported; JAX is never imported here.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from layoutproof.kernel.kernel import Kernel, Unmodelled
    from layoutproof.pallas.findings import Judged
    from layoutproof.specs.check import Outcome

_XDIST = "layoutproof"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, in a group of their own."""
    group = parser.getgroup("layoutproof", "proofs of Pallas calls and of layouts")
    group.addoption("--layoutproof", action="store_true", help="Check every Pallas call that a test traces.")
    group.addoption("--layoutproof-target", metavar="NAME", help="Also ask what this hardware demands, e.g. v5e.")
    group.addoption(
        "--layoutproof-specs",
        metavar="PATH",
        action="append",
        default=[],
        help="Every claim in these spec files is a test.",
    )
    group.addoption(
        "--layoutproof-no-trace",
        action="store_true",
        help="Import nothing that spec files name; claims that need it fail as unknown.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Registers what the options ask for."""
    target = config.getoption("--layoutproof-target")
    if target is not None:
        _must_be_known(target, config)
    if config.getoption("--layoutproof"):
        config.pluginmanager.register(_Calls(target), "layoutproof-calls")
    if config.getoption("--layoutproof-specs"):
        config.pluginmanager.register(_Specs(config.getoption("--layoutproof-specs")), "layoutproof-specs")


def _must_be_known(target: str, config: pytest.Config) -> None:
    from layoutproof.core.errors import LayoutError
    from layoutproof.pallas.judge import kernel_target

    if not config.getoption("--layoutproof"):
        raise pytest.UsageError("--layoutproof-target needs --layoutproof")
    try:
        kernel_target(target)
    except LayoutError as error:
        raise pytest.UsageError(str(error)) from None


class _Calls:
    """Watches what tests trace, and judges it when a test is over."""

    def __init__(self, target: str | None) -> None:
        from layoutproof.cli.guard import Judge

        self.judge = Judge(target)
        self.traced: list[Kernel | Unmodelled] = []
        self.tests = 0
        self.counts = dict.fromkeys(("calls", "proved", "refuted", "unknown"), 0)
        self.unknown: dict[str, str] = {}
        self.scopes: dict[str, str] = {}
        self.outside = ""
        self.hooks = ExitStack()

    def pytest_sessionstart(self) -> None:
        """Hooks in before anything is collected: a module may trace when it is imported."""
        from layoutproof.pallas.from_jax.hook import traced

        self.hooks.enter_context(traced(self.traced.extend))

    def pytest_unconfigure(self) -> None:
        """Leaves JAX as it was."""
        self.hooks.close()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None]:
        """After a test, with its fixtures, what it traced is judged; what is refuted is a failure of its own."""
        yield
        if self.traced:
            self.tests += 1
            report = self._judge()
            if report:
                item.ihook.pytest_runtest_logreport(report=_failed(item, report))

    def _judge(self) -> str:
        """What is wrong with the calls traced since the last time, "" when nothing is."""
        from layoutproof.cli.guard import refuted, report_of

        calls = tuple(self.traced)
        self.traced.clear()
        try:
            found = self.judge.of(calls)
        except Exception as error:
            return f"this is a bug in layoutproof, please report it: {type(error).__name__}: {error}"
        self._count(found)
        wrong = refuted(found)
        return report_of(wrong) if wrong else ""

    def _count(self, found: Iterable[Judged]) -> None:
        from layoutproof.core.result import Verdict
        from layoutproof.pallas.report import scopes, why_unknown

        found = tuple(found)
        self.scopes |= dict.fromkeys(scopes(found), "")
        for call in found:
            self.counts["calls"] += 1
            self.counts[call.verdict.value] += 1
            if call.verdict is Verdict.UNKNOWN:
                self.unknown.setdefault(why_unknown(call), "")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Calls traced outside of any test are judged too; a process of xdist hands over what it has counted."""
        self.outside = self._judge() if self.traced else ""
        if self.outside and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            said = {"unknown": list(self.unknown), "scopes": list(self.scopes)}
            output[_XDIST] = {"tests": self.tests, "counts": self.counts, **said}

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Adds up what a process of xdist has counted."""
        given = getattr(node, "workeroutput", {}).get(_XDIST)
        if given:
            self.tests += given["tests"]
            self.counts = {name: count + given["counts"][name] for name, count in self.counts.items()}
            self.unknown |= dict.fromkeys(given["unknown"], "")
            self.scopes |= dict.fromkeys(given["scopes"], "")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """How many calls there were, and what is unknown of them."""
        terminalreporter.section("layoutproof", sep="-")
        if not self.counts["calls"]:
            terminalreporter.line("no Pallas call was traced; there is nothing to prove")
            return
        for line in (self.outside, *self.unknown) if self.outside else self.unknown:
            terminalreporter.line(line)
        verdicts = ", ".join(f"{self.counts[name]} {name}" for name in ("proved", "refuted", "unknown"))
        many = f"{self.counts['calls']} Pallas call{'' if self.counts['calls'] == 1 else 's'}"
        tests = f"{self.tests} test{'' if self.tests == 1 else 's'}"
        terminalreporter.line("; ".join((f"{many} in {tests}: {verdicts}", *self.scopes)))


def _failed(item: pytest.Item, text: str) -> pytest.TestReport:
    """A failure beside the test's own outcome, so that both are seen."""
    file, line, domain = item.location
    return pytest.TestReport(
        nodeid=item.nodeid,
        location=(file, line, f"{domain} [layoutproof]"),
        keywords={},
        outcome="failed",
        longrepr=text,
        when="call",
    )


class _Specs:
    """Makes a test of every check in spec files."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Adds them after the collected tests, before -k and -m choose."""
        from layoutproof.core.errors import LayoutError
        from layoutproof.core.visible import visible_lines
        from layoutproof.specs.check import find

        try:
            files = find(self.paths)
        except LayoutError as error:
            raise pytest.UsageError(visible_lines(str(error))) from None
        for path in files:
            items += SpecFileCollector.from_parent(session, path=path.resolve()).collect()


class SpecFileCollector(pytest.File):
    """A spec file as pytest sees it."""

    def collect(self) -> list[pytest.Item]:
        """One item per check, and one per mistake in the file; a file without either is an item that fails."""
        from layoutproof.core.visible import visible
        from layoutproof.specs.check import Outcome, items_of

        items: list[pytest.Item] = []
        for each in items_of(_shown(self.path)):
            if isinstance(each, Outcome):
                name = f"error:{each.finding.place.partition(':')[2].partition(':')[0] or 0}"
            else:
                name = visible(f"{each.kind}:{each.name or ','.join(each.labels)}:{each.line}")
            items.append(SpecItem.from_parent(self, name=name, question=each))
        return items


class SpecItem(pytest.Item):
    """One check. question: the check, or the outcome of what could not be read as one."""

    def __init__(self, *, question: Any, **options: Any) -> None:
        super().__init__(**options)
        self.question = question

    def runtest(self) -> None:
        """Fails unless the answer is the expected one; what is unknown fails."""
        from layoutproof.compiler.tracing import here, only
        from layoutproof.core.result import Verdict
        from layoutproof.specs.check import run
        from layoutproof.specs.spec import Check

        with only(here(not self.config.getoption("--layoutproof-no-trace"))):
            outcome = run(self.question) if isinstance(self.question, Check) else self.question
        if outcome.finding.verdict is not Verdict.PROVED:
            raise Unmet(outcome)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The outcome as `layoutproof check` shows it."""
        if isinstance(excinfo.value, Unmet):
            from layoutproof.specs.report import one

            return one(excinfo.value.outcome)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where it stands in its file."""
        line = getattr(self.question, "line", None)
        return self.path, line - 1 if line else None, self.name


class Unmet(Exception):
    """A check that did not come out as its file says."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.finding.reason)
        self.outcome = outcome


def _shown(path: Path) -> Path:
    """A path relative to where we are, if it lies below."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
