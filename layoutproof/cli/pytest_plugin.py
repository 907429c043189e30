"""`pytest --layoutproof`: every Pallas call that a test suite traces is checked, without a changed line of it.

A test whose calls are wrong fails, with the report, also where JAX traced them for another test.
`@pytest.mark.layoutproof(expect="blocks_in_bounds", assume="0 <= prefetch0 < 8")` says what has to be refuted in a
test, and what holds of its tables; `same_as=reference` compares the values of what a test traces with those of a
function. `--layoutproof-specs PATH` makes every claim in spec files a test. Without options
nothing is hooked and nothing but pytest is imported; JAX is never imported here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
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
        "--layoutproof-baseline",
        metavar="FILE",
        help="The unknowns that `layoutproof kernels --write-baseline` wrote are accepted; any other fails its test.",
    )
    group.addoption(
        "--layoutproof-least-proved", metavar="SHARE", help="Fail where fewer of the calls are proved, e.g. 90%%."
    )
    group.addoption(
        "--layoutproof-strict-tables",
        action="store_true",
        help="Count a violation that only some of the assumed tables have as refuted, not as unknown (refuted if).",
    )
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
    config.addinivalue_line(
        "markers",
        "layoutproof(expect=.., assume=.., same_as=..): properties of kernels to be refuted, conditions on tables, the "
        "function that computes what the traced ones must",
    )
    for option in ("target", "baseline", "least-proved"):
        if config.getoption(f"--layoutproof-{option}") is not None and not config.getoption("--layoutproof"):
            from layoutproof.cli import problems

            raise pytest.UsageError(problems.PYTEST_OPTION_WITHOUT_LAYOUTPROOF(option))
    if config.getoption("--layoutproof-target") is not None:
        _must_be_known(config.getoption("--layoutproof-target"))
    if config.getoption("--layoutproof"):
        config.pluginmanager.register(_Calls(config), "layoutproof-calls")
    if config.getoption("--layoutproof-specs"):
        config.pluginmanager.register(_Specs(config.getoption("--layoutproof-specs")), "layoutproof-specs")


def _must_be_known(target: str) -> None:
    from layoutproof.core.errors import LayoutError
    from layoutproof.pallas.judge import kernel_target

    try:
        kernel_target(target)
    except LayoutError as error:
        raise pytest.UsageError(str(error)) from None


class _Calls:
    """Watches what tests trace and run, and judges it with each test."""

    def __init__(self, config: pytest.Config) -> None:
        from layoutproof.cli.guard import Judge

        self.judge = Judge(config.getoption("--layoutproof-target"), config.getoption("--layoutproof-strict-tables"))
        self.baseline = _baseline(config)
        self.least = _share(config)
        self.seen: list[Kernel | Unmodelled] = []
        self.functions: list[Any] = []
        self.values: dict[str, str] = {}
        self.tests = 0
        self.verdicts: dict[str, str] = {}
        self.unknown: dict[str, str] = {}
        self.scopes: dict[str, str] = {}
        self.outside = ""
        self.hooks = ExitStack()

    def pytest_sessionstart(self) -> None:
        """Hooks in before anything is collected: a module may trace when it is imported."""
        from layoutproof.pallas.from_jax.hook import traced

        self.hooks.enter_context(traced(self._traced, again=True))

    def _traced(self, calls: Sequence[Kernel | Unmodelled], jaxpr: object) -> None:
        self.seen.extend(calls)
        self.functions.append(jaxpr)

    def pytest_unconfigure(self) -> None:
        """Leaves JAX as it was."""
        self.hooks.close()

    def pytest_collection_finish(self) -> None:
        """Calls traced while modules are imported belong to no test."""
        self.outside = self._judge() if self.seen else ""
        self.functions.clear()

    # around pytest's own wrapper for xfail, which looks at exceptions only
    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any]:
        """Judges the calls that a test and its fixtures traced or ran with the test: a violation fails it, once."""
        outcome = yield
        report = outcome.get_result()
        if (call.when == "setup" and report.passed) or (call.when == "teardown" and not self.seen):
            return
        said = self._said(item, ran=call.when == "call" and not report.skipped)
        if said and (hasattr(report, "wasxfail") or str(report.longrepr).startswith("[XPASS(strict)]")):
            # the test is expected to fail, and now it does
            if not report.skipped:
                report.wasxfail = getattr(report, "wasxfail", "layoutproof")
                report.outcome, report.longrepr = "skipped", said
        elif said and report.passed:
            report.outcome, report.longrepr = "failed", said
        elif said:
            report.sections.append(("layoutproof", said))

    def _said(self, item: pytest.Item, ran: bool) -> str:
        """The violations in the calls of a test that its mark does not expect; "" when there are none.

        ran: whether the test ran to its end, so that expected violations have to be there.
        """
        try:
            mark = _Mark.of(item)
        except WrongMark as error:
            self.seen.clear()
            self.functions.clear()
            return str(error)
        expect = mark.expect if ran else ()
        functions = list(self.functions)
        self.functions.clear()
        said = []
        if self.seen or expect:
            self.tests += bool(self.seen)
            said.append(self._judge(mark.expect, mark.assume, bool(expect)))
        if mark.same_as is not None and (functions or ran):
            said.append(self._compared(functions, mark, item.nodeid))
        return "\n".join(filter(None, said))

    def _compared(self, functions: Sequence[object], mark: _Mark, test: str) -> str:
        """The wrong values of the functions that a test traced, "" when there are none."""
        from layoutproof.cli import problems
        from layoutproof.core.errors import LayoutError, Undecided
        from layoutproof.core.result import Verdict
        from layoutproof.pallas.from_jax.hook import function_of
        from layoutproof.questions.same import same

        if not functions:
            return problems.MARK_COMPARES_NOTHING()
        said = []
        for k, text in enumerate(texts := {str(jaxpr): jaxpr for jaxpr in functions}):
            try:
                function, shapes = function_of(texts[text])
                found = same(function, mark.same_as, *shapes, assume=mark.assume, target=self.judge.target)
                verdict, reason, shown = found.verdict, found.reason, str(found)
            except LayoutError as error:
                verdict, reason, shown = Verdict.REFUTED, "", str(error)
            except Undecided as why:
                verdict, reason, shown = Verdict.UNKNOWN, str(why), str(why)
            self.values[f"{test} {k}"] = verdict.value
            if verdict is Verdict.UNKNOWN:
                self.unknown.setdefault(f"same: {reason}", "")
            if verdict is Verdict.REFUTED or (verdict is Verdict.UNKNOWN and self.baseline is not None):
                said.append(shown)
        # the comparison traces again, and these calls belong to no test
        self.seen.clear()
        self.functions.clear()
        return "\n".join(said)

    def _judge(self, expect: Sequence[str] = (), assume: Sequence[str] = (), missing: bool = False) -> str:
        """The violations in the calls seen since the last time, "" when there are none.

        expect: properties that may be refuted.  assume: conditions on scalar prefetch operands.  missing: whether it is
        wrong that one of those properties is not refuted.
        """
        from layoutproof.cli import problems
        from layoutproof.cli.guard import report_of
        from layoutproof.core.errors import LayoutError
        from layoutproof.core.result import Verdict
        from layoutproof.pallas.accepted import accepted

        calls = tuple(self.seen)
        self.seen.clear()
        try:
            judged = self.judge.of(calls, assume)
            found = {key: accepted(call, self.baseline or {}) for key, call in judged.items()}
        except LayoutError as error:
            return str(error)
        except Exception as error:
            return problems.INTERNAL_ERROR(f"{type(error).__name__}: {error}")
        self._count(found)
        refuted = {f.question for c in found.values() for f in c.decisive() if f.verdict is Verdict.REFUTED}
        wrong = tuple(call for call in found.values() if self._fails(call, expect))
        said = [report_of(wrong)] if wrong else []
        said += [problems.MARK_NOT_REFUTED(name) for name in expect if missing and name not in refuted]
        return "\n".join(said)

    def _fails(self, call: Judged, expect: Sequence[str]) -> bool:
        """Whether a call fails its test: refuted in what is not expected or, where a baseline is given, unknown."""
        from layoutproof.core.result import Verdict

        if call.verdict is Verdict.REFUTED:
            return any(f.verdict is Verdict.REFUTED and f.question not in expect for f in call.decisive())
        return self.baseline is not None and call.verdict is Verdict.UNKNOWN and not call.only_accepted

    def _count(self, found: Mapping[str, Judged]) -> None:
        from layoutproof.core.result import Verdict
        from layoutproof.pallas.report import scopes, why_unknown

        self.scopes |= dict.fromkeys(scopes(tuple(found.values())), "")
        for key, call in found.items():
            self.verdicts[key] = "accepted" if call.only_accepted else call.verdict.value
            if call.verdict is Verdict.UNKNOWN and not call.only_accepted:
                self.unknown.setdefault(why_unknown(call), "")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A process of xdist hands over what it has counted; the first one decides."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            said = {"unknown": list(self.unknown), "scopes": list(self.scopes), "outside": self.outside}
            output[_XDIST] = {"tests": self.tests, "verdicts": self.verdicts, "values": self.values, **said}
        elif (self.outside or self._too_few()) and session.exitstatus in _GREEN:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Adds up what a process of xdist has counted: equal calls of several processes are one."""
        given = getattr(node, "workeroutput", {}).get(_XDIST)
        if given:
            self.tests += given["tests"]
            self.verdicts |= given["verdicts"]
            self.values |= given["values"]
            self.unknown |= dict.fromkeys(given["unknown"], "")
            self.scopes |= dict.fromkeys(given["scopes"], "")
            self.outside = self.outside or given["outside"]

    def _too_few(self) -> str:
        """The message where fewer calls are proved than the least share, "" where there are enough."""
        proved, calls = list(self.verdicts.values()).count("proved"), len(self.verdicts)
        if self.least is None or (calls and proved >= self.least * calls):
            return ""
        from layoutproof.cli import problems

        return problems.PROVED_TOO_FEW(proved, calls, float(100 * self.least))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """How many calls there were, and what is unknown of them."""
        terminalreporter.section("layoutproof", sep="-")
        counted = list(self.verdicts.values())
        lines = [*([self.outside] if self.outside else []), *self.unknown]
        if counted:
            words = ("proved", "refuted", "unknown", *(["accepted"] if "accepted" in counted else []))
            verdicts = ", ".join(f"{counted.count(name)} {name}" for name in words)
            many = f"{len(counted)} Pallas call{'' if len(counted) == 1 else 's'}"
            tests = f"{self.tests} test{'' if self.tests == 1 else 's'}"
            lines.append("; ".join((f"{many} in {tests}: {verdicts}", *self.scopes)))
        else:
            lines.append("no Pallas call was traced; there is nothing to prove")
        if self.values:
            of_values = list(self.values.values())
            words = (*(["proved"] if "proved" in of_values else []), "sampled", "refuted", "unknown")
            verdicts = ", ".join(f"{of_values.count(name)} {name}" for name in words)
            many = f"{len(of_values)} function{'' if len(of_values) == 1 else 's'}"
            lines.append(f"{many} compared with a reference, over the reals: {verdicts}")
        for line in (*lines, *filter(None, [self._too_few()])):
            terminalreporter.line(line)


_GREEN = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


class WrongMark(Exception):
    """A mark `layoutproof` that is not of the form `_Mark` reads."""


@dataclass(frozen=True)
class _Mark:
    """What `@pytest.mark.layoutproof(expect=.., assume=.., same_as=..)` says of a test.

    expect: properties of kernels that have to be refuted in it.  assume: conditions on scalar prefetch operands.
    same_as: the reference for the values of each traced function; of several marks the nearest one's.
    """

    expect: tuple[str, ...] = ()
    assume: tuple[str, ...] = ()
    same_as: Any = None

    @classmethod
    def of(cls, item: pytest.Item) -> _Mark:
        """The marks of a test, its class and its module together. Raises WrongMark."""
        from layoutproof.cli import problems

        said: dict[str, tuple[str, ...]] = {"expect": (), "assume": ()}
        same_as: Any = None
        for mark in item.iter_markers("layoutproof"):
            texts_of = {name: value for name, value in mark.kwargs.items() if name != "same_as"}
            strange = [*map(repr, mark.args), *(name for name in texts_of if name not in said)]
            if strange:
                raise WrongMark(problems.MARK_KEYWORDS(", ".join(strange)))
            wanted = mark.kwargs.get("same_as")
            if wanted is not None and not callable(wanted) and not isinstance(wanted, str):
                raise WrongMark(problems.MARK_SAME_AS(wanted))
            same_as = wanted if same_as is None else same_as
            for name, value in texts_of.items():
                texts = (value,) if isinstance(value, str) else value
                if not isinstance(texts, (tuple, list)) or not all(isinstance(text, str) for text in texts):
                    raise WrongMark(problems.MARK_TEXTS(name, value))
                said[name] += tuple(texts)
        if said["expect"]:
            from layoutproof.core.errors import unknown_name
            from layoutproof.registry.catalogue import kernel_properties

            for name in said["expect"]:
                if name not in kernel_properties():
                    raise WrongMark(unknown_name("property of kernels", name, kernel_properties()).problem)
        return cls(**said, same_as=same_as)


def _baseline(config: pytest.Config) -> dict[str, str] | None:
    """The accepted unknowns, None where no baseline is given."""
    path = config.getoption("--layoutproof-baseline")
    if path is None:
        return None
    from layoutproof.core.errors import LayoutError
    from layoutproof.pallas.accepted import read_baseline

    try:
        return read_baseline(Path(path))
    except LayoutError as error:
        raise pytest.UsageError(str(error)) from None


def _share(config: pytest.Config) -> Fraction | None:
    """The least share of calls that is to be proved, None where none is asked for."""
    text = config.getoption("--layoutproof-least-proved")
    if text is None:
        return None
    found = re.fullmatch(r"(\d{1,3}(?:\.\d{1,4})?)%", text)
    if found is None or Fraction(found[1]) > 100:
        from layoutproof.cli import problems

        raise pytest.UsageError(problems.LEAST_PROVED_FORM(text))
    return Fraction(found[1]) / 100


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


_RUN = pytest.StashKey[str]()
"""The name of the session's run: its items share what is compiled."""


class SpecItem(pytest.Item):
    """One check. question: the check, or the outcome of what could not be read as one."""

    def __init__(self, *, question: Any, **options: Any) -> None:
        super().__init__(**options)
        self.question = question

    def runtest(self) -> None:
        """Fails unless the answer is the expected one; an unknown fails."""
        from layoutproof.compiler.tracing import here, only
        from layoutproof.specs.check import run
        from layoutproof.specs.spec import Check

        run_ = self.config.stash.setdefault(_RUN, os.urandom(8).hex())
        with only(here(not self.config.getoption("--layoutproof-no-trace")), run_):
            outcome = run(self.question) if isinstance(self.question, Check) else self.question
        if not outcome.held:
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
