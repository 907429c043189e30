"""One question's use of z3: a context that dies with it, bounded memory, and checks that Ctrl-C ends."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from layoutproof.solvers.smt.library import z3

if TYPE_CHECKING:
    from layoutproof.solvers.smt.library import CheckSatResult, Context, Solver

MEMORY = 512
"""Megabytes that z3 may allocate for one question."""

SOON = 0.05
"""Seconds between two looks at whether z3 has noticed that it shall stop."""


def _context() -> Context:
    """A z3 context. Where Ctrl-C comes while it is made, its finaliser finds nothing to free, and says nothing."""
    made = z3.Context.__new__(z3.Context)
    made.owner = False
    made.__init__()
    return made


class Session:
    """A z3 context of one question and the solvers in it; it shares no term and no option with another z3 context.

    To be closed on the thread that opened it. z3 is not safe where two threads use a context, and Python frees terms
    wherever it collects garbage, at the latest in the finalisers at exit: so no context outlives its question. Nor
    would verdicts be stable: earlier questions to a context steer its search. Of nine all-shape proofs in one context
    the sixth was unknown after 20 million steps; in a new one it takes 0.3 million.
    """

    def __init__(self) -> None:
        self.context = _context()
        # a collector on another thread may free what the question has dropped while the question is in z3
        z3.Z3_enable_concurrent_dec_ref(self.context.ref())
        self.running: _Running | None = None
        self.solver: Any = None
        # z3 compares with the memory of the whole process, terms of other contexts included
        self.megabytes = (z3.Z3_get_estimated_alloc_size() >> 20) + MEMORY

    def bits(self) -> Solver:
        """A solver for bit-vectors; it ends the one before."""
        # z3.SolverFor makes the name in the context that everybody shares
        logic = z3.to_symbol("QF_BV", self.context)
        pointer = z3.Z3_mk_solver_for_logic(self.context.ref(), logic)
        return self._bounded(z3.Solver(pointer, self.context))

    def integers(self, seed: int = 0) -> Solver:
        """A solver for integers; it ends the one before."""
        # z3.Solver() runs out of any budget on every tenth all-shape proof of a flattened tiling, this on hardly any
        solver = self._bounded(z3.SimpleSolver(ctx=self.context))
        solver.set("random_seed", seed)
        return solver

    def quantified(self) -> Solver:
        """A solver for linear integers under quantifiers, which it eliminates; it ends the one before."""
        return self._bounded(z3.Tactic("qsat", ctx=self.context).solver())

    def _bounded(self, solver: Solver) -> Solver:
        self._release()
        self.solver = solver
        solver.set("max_memory", self.megabytes)
        # z3's own handler of Ctrl-C would swallow it
        solver.set("ctrl_c", False)
        return solver

    def check(self, solver: Solver) -> CheckSatResult:
        """`solver.check()`, ended by what a signal handler raises, such as KeyboardInterrupt.

        Python runs signal handlers on its main thread only, and between two of its own instructions: so there the
        check runs on another thread while this one waits.
        """
        if threading.current_thread() is not threading.main_thread():
            return solver.check()
        self.running = _Running(solver)
        try:
            self.running.start()
            return self.running.answer()
        except BaseException:
            self.running.stop()
            raise

    def _release(self) -> None:
        """Free the solver before: it is not used again, and can be large.

        A KeyboardInterrupt in a finaliser of Python's is lost, so that what takes long is not left to one.
        """
        if self.solver is not None:
            pointer, self.solver.solver = self.solver.solver, None
            z3.Z3_solver_dec_ref(self.context.ref(), pointer)
            self.solver = None

    def close(self) -> None:
        """Free all that z3 holds for the question, here and now; terms that are still somewhere then free nothing."""
        if self.running is not None and not self.running.ended():
            # only if stopping it was itself interrupted: better lost than freed under it
            self.context.owner = False
            return
        self._release()
        pointer, self.context.ctx, self.context.owner = self.context.ctx, None, False
        z3.Z3_del_context(pointer)


class _Running:
    """One check on a thread of its own."""

    def __init__(self, solver: Solver) -> None:
        self.solver = solver
        self.begun = self.stopped = False
        self.done = threading.Event()
        self.outcome: Any = None

    def start(self) -> None:
        threading.Thread(target=self._run, name="z3", daemon=True).start()

    def _run(self) -> None:
        self.begun = True
        try:
            if not self.stopped:
                self.outcome = self.solver.check()
        except z3.Z3Exception as error:
            self.outcome = error.with_traceback(None)
        finally:
            self.done.set()

    def answer(self) -> CheckSatResult:
        # a signal that the kernel hands to another thread does not wake this one
        while not self.done.wait(1):
            pass
        if isinstance(self.outcome, z3.Z3Exception):
            raise self.outcome
        return self.outcome

    def stop(self) -> None:
        """End it, however often Ctrl-C is pressed meanwhile: nothing may be freed before."""
        self.stopped = True
        while not self.ended():
            try:
                self.solver.ctx.interrupt()
                self.done.wait(SOON)
            except KeyboardInterrupt:
                continue

    def ended(self) -> bool:
        """Whether z3 is out of it, or will never be in it."""
        return self.done.is_set() or (self.stopped and not self.begun)
