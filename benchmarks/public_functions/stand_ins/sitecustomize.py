"""At the start of each process that a compiler runs in: a call's module is there, imported as `modules.py` does it."""

import os
import sys
from pathlib import Path

if "PUBLIC_CALL" in os.environ:
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from asking import EVERY
    from modules import imported, older_names

    older_names()
    imported(EVERY[int(os.environ["PUBLIC_CALL"])], Path(os.environ["PUBLIC_CHECKOUTS"]))
