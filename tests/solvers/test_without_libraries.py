"""In a Python that has nothing but its standard library, as in a browser: the questions of the page that runs there.

What needs no library is answered; what needs one is unknown and names it, never green and never an ImportError.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp

ROOT = Path(lp.__file__).parents[1]

CHILD = """
import json, sys
sys.path.insert(0, sys.argv[1])
import layoutproof as lp
answers = [lp.ask(*question, **options).as_dict() for question, options in json.loads(sys.argv[2])]
more = {
    "locate": lp.locate("f32[3,5]{1,0:T(2,2)}", (2, 3)),
    "default": str(lp.tpu_default("f32[1000,5]", target="v5e")),
    "convert": str(lp.convert("f32[4,8]{1,0:T(2,4)}", to="cute")),
    "inverse": str(lp.inverse("f32[3,5]{1,0:T(2,2)}").at(offset=17)),
    "why": str(lp.why("f32[1000,5]{1,0:T(8,128)}")),
    "picture": lp.show("f32[3,5]{1,0:T(2,2)}").svg(),
    "compared": lp.show("f32[3,5]{1,0}", other="f32[3,5]{0,1}").svg(),
}
print(json.dumps([answers, more]))
"""

QUESTIONS: list[tuple[str, list[str], dict[str, Any]]] = [
    ("proved", ["injective", "bf16[N,M]{1,0:T(8,128)(2,1)}"], {}),
    ("refuted", ["injective", "f32[3,5] strides (4,1)"], {}),
    ("proved", ["bijective", "f32[N,M]{1,0:T(a,b)}"], {}),
    ("refuted", ["padding", "f32[1000,5]{0,1:T(8,128)}"], {"at_most": "10%"}),
    ("proved", ["same_map", "f32[N,M] strides (M,1)", "f32[N,M]{1,0}"], {}),
    ("refuted", ["same_map", "f32[N,M]{1,0:T(8,128)}", "f32[N,M]{1,0}"], {}),
    ("proved", ["bitcast", "f32[16,8,128]{2,1,0:T(8,128)}", "f32[128,128]{1,0:T(8,128)}"], {}),
    ("refuted", ["bitcast", "f32[a,b,c]{2,1,0:T(8,128)}", "f32[a*b,c]{1,0:T(8,128)}"], {}),
    ("proved", ["injective", "Sw<3,3,3> o 0 o (8,64):(64,1)"], {}),
    ("refuted", ["in_bounds", "f32[1000,90] blockspec (16, 20) (i, j) -> (i, j) grid (63, 5)"], {}),
]
NEED = [
    (["injective", "f32[N,M]{1,0:T(8,128)}"], "isl", "islpy"),
    (["injective", "f32[N,M]{1,0:T(8,128)}"], "smt", "z3"),
    (["injective", "(i < 3000, j < 3000) -> (i * i + j)"], "brute", "numpy"),
]


@pytest.fixture(scope="module")
def answered() -> Any:
    """The answers to all questions, by a process without any package."""
    asked = [[question, options] for _, question, options in QUESTIONS]
    asked += [[question, {"engine": engine}] for question, engine, _ in NEED]
    command = [sys.executable, "-I", "-S", "-c", CHILD, str(ROOT), json.dumps(asked)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.mark.parametrize("number", range(len(QUESTIONS)), ids=lambda n: " ".join(QUESTIONS[n][1])[:50])
def test_answers_are_those_of_a_whole_installation(number: int, answered: Any) -> None:
    """The same verdict and the same smallest counterexample."""
    verdict, question, options = QUESTIONS[number]
    found = answered[0][number]
    assert found["verdict"] == verdict
    whole = json.loads(lp.ask(*question, **options).to_json())
    assert (found["verdict"], found["counterexample"]) == (whole["verdict"], whole["counterexample"])


@pytest.mark.parametrize("number", range(len(NEED)), ids=lambda n: NEED[n][2])
def test_what_needs_a_library_names_it(number: int, answered: Any) -> None:
    """Unknown, exit code 3; with the library the same engine decides."""
    question, engine, library = NEED[number]
    found = answered[0][len(QUESTIONS) + number]
    assert (found["verdict"], found["exit_code"]) == ("unknown", 3)
    assert f"{library} is not installed" in found["reason"]
    assert lp.ask(*question, engine=engine).verdict is not lp.Verdict.UNKNOWN


def test_pictures_places_defaults_and_messages_need_nothing(answered: Any) -> None:
    """What is no question, too."""
    more = answered[1]
    assert more["locate"] == [{"offset": 17}]
    assert more["default"] == "f32[1000,5]{0,1:T(8,128)}"
    assert more["convert"] == "f32 ((2,2),(4,2)):((4,16),(1,8))"
    assert "(2, 3)" in more["inverse"]
    assert "with dimension 0 last" in more["why"]
    assert more["picture"] == lp.show("f32[3,5]{1,0:T(2,2)}").svg()
    assert more["compared"] == lp.show("f32[3,5]{1,0}", other="f32[3,5]{0,1}").svg()
