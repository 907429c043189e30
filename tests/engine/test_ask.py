"""Asking: from several threads, with arguments of the wrong kind, and where nobody can tell."""

from __future__ import annotations

import subprocess
import sys
import textwrap


def test_threads_ask_at_once() -> None:
    """Answers from four threads are those from one; in a process of its own, because native code would end ours."""
    program = """
        from concurrent.futures import ThreadPoolExecutor
        import layoutproof as lp
        questions = [
            ("covers", "f32[N,M]{1,0:T(8,128)}"),
            ("injective", "f32[N,M] strides (M-1,1)"),
            ("bitcast", "f32[a,b,c]{2,1,0:T(8,128)}", "f32[a*b,c]{1,0:T(8,128)}"),
        ] * 8
        alone = [str(lp.ask(*question)) for question in questions[:3]] * 8
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(lambda question: str(lp.ask(*question)), questions)) == alone
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
