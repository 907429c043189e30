"""A program that answers as it is told to: `tests/compiler/test_child.py` asks it, in processes of its own."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from typing import Any

from layoutproof.compiler.serve import MARK, Tell, serve
from layoutproof.core.errors import BudgetExceeded, LayoutError


def answer(request: Any, tell: Tell) -> Any:
    """Does what the first word says; the rest is what it does it with."""
    what, *rest = request
    match what:
        case "pid":
            return os.getpid()
        case "echo":
            return rest[0]
        case "where":
            return [os.getcwd(), sys.path, os.environ.get("ANSWER", "")]
        case "progress":
            for k in range(rest[0]):
                tell({"done": k})
            return rest[0]
        case "print":
            print("noise from Python", rest[0])
            sys.stdout.flush()
            os.write(1, f"noise from native code {rest[0]}\n{MARK}{{\n".encode())
            ctypes.CDLL(None).puts(b"noise from C")
            return sys.stdin.readline()
        case "stderr":
            os.write(2, b"x" * 200_000 + b"\n")
            return "still here"
        case "exit":
            os.write(2, b"the first line\n\xff the last words\n\n")
            os._exit(rest[0])
        case "kill":
            os.kill(os.getpid(), getattr(signal, rest[0]))
            time.sleep(60)
        case "abort":
            os.write(2, b"F1122 10:00:00.000 1 x.cc:9] Check failed: ok\n*** Check failure stack trace: ***\n @ 0x1\n")
            os.abort()
        case "crash":
            ctypes.string_at(0)
        case "memory":
            return len(bytes(rest[0]))
        case "native memory":
            # as native code has it that cannot go on without
            if not ctypes.CDLL(None).calloc(1, ctypes.c_size_t(rest[0])):
                os.write(
                    2, b"terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n"
                )
                os.abort()
        case "hang":
            time.sleep(1000)
        case "slowly":
            time.sleep(rest[0])
            return "done"
        case "tell and hang with a child":
            tell("begun")
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
            time.sleep(1000)
        case "hang with a child":
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
            time.sleep(1000)
        case "leave a child":
            started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3)"], start_new_session=True)
            os.write(2, f"{started.pid}\n".encode())
            os._exit(5)
        case "close":
            os.closerange(3, 100)
            time.sleep(1000)
        case "raise":
            raise ValueError(rest[0])
        case "wrong input":
            raise LayoutError("tile size 0 must be positive", text="f32[3]{0:T(0)}", column=12)
        case "budget":
            raise BudgetExceeded("its steps are spent")
        case "no data":
            return {1, 2}
    return None


if __name__ == "__main__":
    serve(answer, again=lambda value: value != "last")
