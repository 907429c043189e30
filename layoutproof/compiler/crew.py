"""Threads that each wait for a child process: an exception in one is raised here, and an early end stops them all."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from layoutproof.compiler.child import NoLongerAwaited


class Crew:
    """Some threads that do the same. changed: to be notified and waited for when something is there to be taken."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.raised: list[BaseException] = []
        self.running = 0
        self.over = False

    def stop(self) -> bool:
        """Whether the caller no longer waits for them."""
        return self.over

    def wait(self, ready: Callable[[], bool] = lambda: False) -> None:
        """Until it is so or all have returned; raises what one of them has raised. `changed` guards `ready`."""
        with self.changed:
            while self.running and not self.raised and not ready():
                self.changed.wait()
        if self.raised:
            raise self.raised[0]

    def _one(self, work: Callable[[], None]) -> None:
        try:
            work()
        except NoLongerAwaited:
            return
        except BaseException as error:
            self.raised.append(error)
        finally:
            with self.changed:
                self.running -= 1
                self.changed.notify_all()


@contextlib.contextmanager
def crew(work: Callable[[Crew], None], many: int) -> Iterator[Crew]:
    """So many threads that call `work`. At the end they are told to stop, and joined unless it is Ctrl-C: each ends
    the process that it waits for, so nothing is lost by going on at once.

    work: asks `stop` again and again, or hands it to `child.ask`.
    """
    found = Crew()
    found.running = many
    # daemons: where the run ends without a word, nothing waits for them, and their processes end with this one
    threads = [threading.Thread(target=found._one, args=(lambda: work(found),), daemon=True) for _ in range(many)]
    started: list[threading.Thread] = []
    try:
        for thread in threads:
            thread.start()
            started.append(thread)
        yield found
    except KeyboardInterrupt:
        started.clear()
        raise
    finally:
        found.over = True
        for thread in started:
            thread.join()
