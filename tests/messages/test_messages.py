"""Real messages from public threads: the cause, sizes equal to XLA's printed ones, fixes that are recomputed."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.hlo.reshards import between
from layoutproof.hlo.shapes import read_array
from layoutproof.messages.explanation import human
from layoutproof.questions.cheapest import cheapest_layout, padded_bytes

pytestmark = pytest.mark.slow

CASES = [
    json.loads(line)
    for line in (Path(__file__).resolve().parents[1] / "cases" / "messages.jsonl").read_text().splitlines()
]

# thread, shape in the message, size that XLA printed
SIZES = [
    ("DifferentiableUniverseInitiative/flowpm#27", "s32[8388608,8,4]{2,1,0:T(8,128)}", "32.00G"),
    ("pytorch/xla#6674", "bf16[2048,1,2048,128]{0,1,3,2:T(4,128)(2,1)}", "4.00G"),
    ("vllm-project/tpu-inference#1882", "bf16[128,4096,352]{2,1,0:T(16,128)(2,1)}", "384.00M"),
    ("google/trax#525", "pred[64,512,2048]{2,1,0:T(8,128)E(32)}", "256.00M"),
    ("pytorch/xla#1965", "bf16[512,16,3072]{2,1,0:T(8,128)(2,1)}", "48.00M"),
    ("vllm-project/tpu-inference#2803", "bf16[8,2048,128]{2,1,0:T(16,128)(2,1)}", "4.00M"),
    ("huggingface/diffusers#856", "bf16[512,8,65,128]{3,1,2,0:T(8,128)(2,1)}", "65.00M"),
    ("huggingface/diffusers#856", "bf16[512,1,8,65,128]{4,2,3,0,1:T(8,128)(2,1)}", "65.00M"),
]


def explained(text: str, target: str | None = None) -> Any:
    """The only message of a text."""
    (message,) = lp.why(text, target=target).messages
    return message


@pytest.mark.parametrize("case", CASES, ids=[case["thread"] for case in CASES])
def test_a_message_of_a_public_thread_is_explained(case: dict[str, str]) -> None:
    message = explained(case["text"])
    assert message.kind == case["kind"]
    if case["cause"]:
        assert case["cause"] in message.cause
    else:
        assert message.cause == ""
        assert "paste" in message.reason
    assert all(array.agrees for array in message.arrays if array.printed)


def test_most_of_them_have_a_known_cause() -> None:
    """At least 30 messages, at least 25 explained; those without a cause exit 3."""
    codes = [lp.why(case["text"]).exit_code for case in CASES]
    assert len(codes) >= 30
    assert codes.count(0) >= 25
    assert set(codes) == {0, 3}


@pytest.mark.parametrize(("thread", "shape", "printed"), SIZES)
def test_a_size_is_the_printed_one(thread: str, shape: str, printed: str) -> None:
    assert human(read_array(shape).padded) == printed


@pytest.mark.parametrize(
    ("printed", "same"),
    [
        *[(size, True) for size in ("32.00M", "32.0M", "32M", "32768K", "33554432B", "0.03G")],
        *[(size, False) for size in ("31.99M", "32.1M", "32767.0K", "33554431B", "0.04G")],
    ],
)
def test_equal_sizes_are_equal_however_they_are_printed(printed: str, same: bool, tmp_path: Path) -> None:
    """To the digits and in the unit that are there: the command says so, and exits by it."""
    size = f"  1. Size: {printed}\n     Shape: f32[2048,4096]{{1,0:T(8,128)}}\n     Unpadded size: {printed}\n"
    (tmp_path / "log").write_text(f"Largest program allocations in hbm:\n\n{size}")
    done = run(str(tmp_path / "log"))
    assert ("as printed" in done.stdout) is same
    assert (f"but {printed} is printed" in done.stdout) is not same
    assert done.returncode == (0 if same else 1)


def test_a_printed_size_that_is_not_ours_is_refuted() -> None:
    """Planted: one digit of the flowpm report."""
    text = CASES[0]["text"]
    assert lp.why(text).exit_code == 0
    wrong = lp.why(text.replace("Size: 32.00G", "Size: 31.00G"))
    assert wrong.exit_code == 1
    assert "printed as 31.00G, computed as 32.00G" in [finding.reason for finding in wrong.findings]
    assert "but 31.00G is printed" in str(wrong)


def test_padding_that_the_report_does_not_print_is_computed() -> None:
    """A report cut before `Unpadded size` has padding all the same; where sizes disagree nothing is said of it."""
    report = "  1. Size: {}\n     Shape: f32[8388608,4]{{1,0:T(8,128)}}"
    (message,) = lp.why(report.format("4.00G")).messages
    assert message.cause.startswith("padding: 3.88G of 4.00G listed are padding")
    (message,) = lp.why(report.format("3.00G")).messages
    assert "padding" not in message.cause
    (message,) = lp.why("  1. Size: 4.00G\n     Shape: f32[1073741824]{0:T(1024)}").messages
    assert message.cause.endswith("none of it is padding")


def test_every_fix_of_an_array_is_recomputed() -> None:
    """The bytes after each fix are those of the best layout of the shape that it names."""
    checked = 0
    for case in CASES:
        for array in explained(case["text"]).arrays:
            for fix in array.fixes:
                match = re.fullmatch(r"(?:with dimension \d+ last, |as |reshaped to )(\S+): (\S+)", fix)
                assert match, fix
                layout = cheapest_layout(match[1].split("{")[0], "v5e")
                assert human(padded_bytes(layout)) == match[2]
                checked += 1
    assert checked >= 8


def test_a_report_that_is_printed_twice_is_explained_once() -> None:
    assert len(lp.why(CASES[0]["text"] + "\n" + CASES[0]["text"]).messages) == 1


def test_two_messages_in_one_log_are_two() -> None:
    (warning,) = [case["text"] for case in CASES if case["thread"] == "alpa-projects/alpa#701"]
    both = lp.why(CASES[0]["text"] + "\n\n" + warning)
    assert [message.kind for message in both.messages] == ["out of HBM", "involuntary full rematerialization"]
    assert [message.line for message in both.messages] == [1, CASES[0]["text"].count("\n") + 3]


@pytest.mark.parametrize("case", CASES, ids=[case["thread"] for case in CASES])
def test_the_prefix_of_a_logger_changes_nothing(case: dict[str, str]) -> None:
    prefix = "(EngineCore_DP0 pid=896988) ERROR 06-03 07:41:11 [core.py:1184] "
    before = explained(case["text"])
    after = explained("\n".join(prefix + line for line in case["text"].splitlines()))
    assert (after.kind, after.cause, after.reason, after.arrays) == (
        before.kind, before.cause, before.reason, before.arrays,
    )  # fmt: skip


def test_python_printed_as_a_literal_is_read() -> None:
    """An exception whose message was printed by repr: line ends are two characters."""
    text = CASES[0]["text"]
    assert explained(repr(text)).arrays == explained(text).arrays


def test_the_least_that_a_reshard_moves() -> None:
    """openxla/xla#15207 at f32[16,16,16]: 14,336 bytes are gathered where 1,792 would do; by brute force, too."""
    one, two = "{devices=[2,1,4]<=[4,2]T(1,0)}", "{devices=[1,8,1]<=[8]}"
    maps = [lp.read_layout(f"f32[16,16,16] sharded {each}") for each in (one, two)]
    found = between(*[each.index_map() for each in maps])
    assert (found.least * 4, found.full * 4) == (1792, 14336)
    tables = [lp.table(each) for each in maps]
    held: list[dict[int, set[int]]] = [{}, {}]
    for side, table in zip(held, tables, strict=True):
        for element, device in enumerate(table[..., 0].reshape(-1).tolist()):
            side.setdefault(device, set()).add(element)
    lacks = [len(held[1][device] - held[0].get(device, set())) for device in held[1]]
    assert found.least == max(lacks)
    text = (
        f"[spmd] Involuntary full rematerialization. The compiler was not able to go from sharding {one} to {two} "
        "without doing a full rematerialization of the tensor for HLO operation: "
        "%add.1 = f32[16,16,16]{2,1,0} add(%a, %b)"
    )
    assert "a device receives 14336 bytes (14.0K), and 1792 (1.8K) would do" in explained(text).notes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("f32[1000,5]{1,0:T(8,128)}", "500.0K for 19.5K of elements, 25.6 times: dimension 1 is padded from 5 to 128"),
        ("bf16[4096,11008]", "86.00M, of which 0B are padding"),
        ("%c = f32[3,5]{1,0:T(8,128)} copy(%p)", "4.0K for 60B of elements"),
        ("memref<8192x2880xi32, #tpu.tiled<(4,128),[23,1]>, hbm>", "92.00M, of which 2.00M are padding"),
        ("tensor<1000x5xbf16>", "16.0K for 9.8K of elements, 1.6 times"),
    ],
)
def test_a_line_or_a_shape_is_explained(text: str, said: str) -> None:
    assert said in explained(text).cause


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "%c = f16[2,128,128]{2,1,0} copy(f16[2,128,128]{1,2,0} %b)",
            "the copy moves elements to another layout: 128.0K",
        ),
        ("%c = f32[8]{0} copy(f32[8]{0} %b)", "the copy makes a second array just like the first: 64B"),
        ("%c = f32[8]{0:S(1)} copy(f32[8]{0} %b)", "the copy moves the array to another memory space"),
        ("%t = f32[5,3]{0,1} transpose(f32[3,5]{1,0} %b), dimensions={1,0}", "the transpose moves no byte, proved"),
        ("%t = f32[5,3]{1,0} transpose(f32[3,5]{1,0} %b), dimensions={1,0}", "the transpose moves elements to another"),
        ("%r = f32[4,4]{1,0} reshape(f32[16]{0} %b)", "the reshape moves no byte, proved"),
        ("%r = f32[1,6,2]{2,1,0} bitcast(f32[1,2,6]{1,2,0} %b)", "the bitcast moves no byte, proved: "),
        ("%r = f32[6,2]{1,0:T(8,128)} bitcast(f32[12]{0:T(128)} %b)", "the bitcast is refuted as one: 512 bytes"),
    ],
)
def test_a_line_that_keeps_values_says_what_moves(line: str, said: str) -> None:
    """Copies, transposes, reshapes and bitcasts whose operand is printed with its layout."""
    (note,) = explained(line).notes
    assert note.startswith(said)


def test_memory_that_is_not_there_while_running() -> None:
    """More than is free, or no piece as long; a program's temporaries, or one array."""
    text = (
        "RESOURCE_EXHAUSTED: Error loading program: Attempting to reserve 2.50G at the bottom of memory. That was not "
    )
    text += "possible. There are {} free, 0B reserved, and 1.00G reservable."
    less, pieces = explained(text.format("1.00G")), explained(text.format("3.00G"))
    assert less.cause.endswith("a program that is loaded take 2.50G, and 1.00G are free, 1.50G too few")
    assert pieces.cause.endswith("take 2.50G, and no piece of the 3.00G free is as long")
    assert [each.kind for each in (less, pieces)] == ["out of HBM"] * 2


def test_half_a_message_is_no_answer() -> None:
    """A report that is cut off above its first shape: unknown, with what to paste; nothing is said of its padding."""
    (text,) = [case["text"] for case in CASES if case["thread"] == "erfanzar/EasyDeL#166"]
    for cut, reason in ((text.index("1. Size"), "lists no allocation"), (text.index("Shape: "), "no shape of what is")):
        message = explained(text[:cut])
        assert (message.kind, message.cause) == ("out of HBM", "")
        assert reason in message.reason
        assert lp.why(text[:cut]).exit_code == 3
    assert lp.why(text).exit_code == 0


def test_what_is_no_text_and_no_file() -> None:
    for text, said in (("", "the text is empty"), (" \n", "the text is empty"), ("job.log", "no file of that name")):
        done = run(text)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
    assert "no file of that name" not in run("hello").stderr


def test_an_error_of_mosaic_that_is_not_known_is_unknown() -> None:
    """Not bad input, and no sizes of registers in place of an answer; beside a known one it says nothing."""
    head = "INTERNAL: Mosaic failed to compile TPU kernel: something new"
    operation = '\nThe MLIR operation involved:\n  %1 = "vector.new"(%0) : (vector<8x128x2xbf16>) -> vector<8x128xbf16>'
    for text, why in (
        (head, "is not known here"),
        (head + operation, "is not known here"),
        (operation, "paste the line"),
    ):
        message = explained(text)
        assert (message.kind, message.cause, message.arrays) == ("Mosaic", "", ())
        assert why in message.reason
        assert lp.why(text).exit_code == 3
    known = explained(f"{head}\nINTERNAL: Mosaic failed to compile TPU kernel: Only 32-bit types supported{operation}")
    assert known.cause == "vector.new is there for elements of 32 bits in that compiler, and got bf16"


def test_a_vector_of_registers_is_no_array_of_memory() -> None:
    (note,) = explained("%1 = vector.load %0 : vector<8x100xf32>").notes
    assert "in registers" in note


def test_a_shape_that_is_padded_comes_with_what_would_do() -> None:
    assert explained("s32[8388608,8,4]{2,1,0:T(8,128)}").fixes == (
        "s32[8388608,8,4]{2,1,0:T(8,128)}: with dimension 0 last, s32[8,4,8388608]: 1.00G",
    )


def test_a_bare_shape_says_whose_layout_it_gets() -> None:
    (array,) = explained("f32[1000,5]", target="v3").arrays
    assert array.note == "f32[1000,5] names no layout; this is the default of v3"
    assert explained("float32[1000,5]", target="v3").arrays == (array,)


@pytest.mark.parametrize(
    ("block", "array", "said"),
    [
        ("(5, 100)", "(1000, 1000)", ("dimension 1: 100 of 1000; 128 or 1000", "dimension 0: 5 of 1000; 8 or 1000")),
        ("(12, 128)", "(1000, 1000)", ("dimension 0: 12 of 1000; 8 or 16 or 1000",)),
        (
            "(Blocked(block_size=12), Squeezed(), Blocked(block_size=9), Blocked(block_size=128))",
            "(24, 7, 9, 1000)",
            (),
        ),
        ("(Blocked(block_size=12), Blocked(block_size=128))", "(13, 9)", ("dimension 0: 12 of 13; 8 or 13",)),
        (
            "(Blocked(block_size=12), Blocked(block_size=128))",
            "(1000, 256)",
            ("dimension 0: 12 of 1000; 8 or 16 or 1000",),
        ),
    ],
)
def test_a_refused_block_shape_names_the_multiples_that_do(block: str, array: str, said: tuple[str, ...]) -> None:
    text = (
        "ValueError: The Pallas TPU lowering currently requires that the last two dimensions of your block shape are "
        "divisible by 8 and 128 respectively, or be equal to the respective dimensions of the overall array. Block "
        f"spec for args[0] in pallas_call k at a.py:3 has block shape {block}, array shape {array}, and index_map .."
    )
    assert explained(text).fixes == said


def test_what_the_lowering_of_jax_says_is_understood() -> None:
    """The messages are asked of the installed JAX, so that a new wording is seen."""
    pytest.importorskip("jax", reason="asks JAX's lowering for TPUs")
    code = """
import sys
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
block, shape = eval(sys.argv[1]), eval(sys.argv[2])
at = lambda *i: i
call = pl.pallas_call(lambda x, o: None, grid=(2,) * len(shape), in_specs=[pl.BlockSpec(block, at)],
                      out_specs=pl.BlockSpec(block, at), out_shape=jax.ShapeDtypeStruct(shape, jnp.float32))
jax.jit(call).trace(jax.ShapeDtypeStruct(shape, jnp.float32)).lower(lowering_platforms=("tpu",))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, "(12, 100)", "(1000, 1000)"],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )
    message = explained(done.stderr[-6000:])
    assert message.fixes == ("dimension 1: 100 of 1000; 128 or 1000", "dimension 0: 12 of 1000; 8 or 16 or 1000")
    assert message.cause.startswith("args[0] of <lambda> (")


def test_a_refused_block_of_rank_1_names_what_does() -> None:
    text = (
        "The Pallas TPU lowering currently requires that rank 1 block shapes, either 1) the first (and only) dimension "
        "of the block shape is equal to the first (and only) dimension of the array shape, or 2) the first (and only) "
        "dimension of the block shape is a multiple of 1024, or 3) the first (and only) dimension of the block shape "
        "is a power of 2 and at least the tiling size (128 = 128 * (32 // 32)) of the array shape. Block spec for "
        "args[0] in pallas_call k at a.py:3 has block shape (Blocked(block_size=300),), array shape (5000,), and .."
    )
    assert explained(text).fixes == ("dimension 0: 256 or 512 or 5000",)


def test_what_is_not_known_is_bad_input() -> None:
    with pytest.raises(lp.LayoutError, match="nothing in the text is known"):
        lp.why("hello")
    with pytest.raises(lp.LayoutError, match="v9"):
        lp.why("f32[3,5]", target="v9")


def test_broken_messages_raise_layout_errors_only() -> None:
    """Messages with characters cut, doubled and exchanged at random: an answer or a LayoutError, quickly."""
    rng = random.Random(16)
    answered = 0
    for _ in range(400):
        text = list(rng.choice(CASES)["text"])
        for _ in range(rng.randint(1, 12)):
            at = rng.randrange(len(text))
            what = rng.choice(["cut", "double", "exchange", "number"])
            if what == "cut":
                del text[at : at + rng.randint(1, 9)]
            elif what == "double":
                text[at:at] = text[at : at + rng.randint(1, 9)]
            elif what == "number":
                text[at:at] = str(10 ** rng.randint(0, 30))
            else:
                text[at] = rng.choice("[]{}(),.:0aTEx<>=\n\\")
            if not text:
                text = [" "]
        try:
            answered += lp.why("".join(text)).exit_code in (0, 1, 3)
        except lp.LayoutError:
            continue
    assert answered > 200


def run(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "layoutproof", "why", *words], input=text, capture_output=True, text=True, timeout=120
    )


def test_the_command_reads_text_a_file_and_standard_input(tmp_path: Path) -> None:
    text = CASES[0]["text"]
    (tmp_path / "oom.log").write_text(text)
    answers = [run(text), run(str(tmp_path / "oom.log")), run("-", text=text)]
    assert [(done.returncode, done.stderr) for done in answers] == [(0, "")] * 3
    assert len({done.stdout for done in answers}) == 1
    assert "fix      s32[8388608,8,4]{2,1,0:T(8,128)}: with dimension 0 last, s32[8,4,8388608]: 1.00G" in (
        answers[0].stdout
    )


def test_the_command_exits_by_what_it_knows() -> None:
    codes = [
        run(text).returncode
        for text in ("hello", "unsupported shape cast", CASES[0]["text"].replace("32.00G", "3.00G"))
    ]
    assert codes == [2, 3, 1]


def test_json_has_what_the_text_has() -> None:
    done = run("--json", CASES[0]["text"])
    (message,) = json.loads(done.stdout)["messages"]
    (array,) = message["arrays"]
    assert (array["bytes"], array["unpadded"], array["agrees"]) == (1 << 35, 1 << 30, True)


def test_a_report_of_a_gpu_has_no_tiles() -> None:
    """Its arrays are dense: the printed size is that of the elements, and no advice is about a tile of a TPU's."""
    report = "        Buffer 1:\n                Size: {}\n                Shape: f32[32,8,2896,2896]\n"
    right = explained(report.format("8.00GiB"))
    assert (right.kind, right.arrays[0].agrees, right.arrays[0].unpadded) == ("out of device memory", True, 8588099584)
    assert "padded" not in str(lp.why(report.format("8.00GiB")))
    wrong = lp.why(report.format("7.00GiB"))
    assert (wrong.exit_code, wrong.messages[0].cause) == (1, "")
    (alone,) = lp.why("Size: 8.00GiB\nShape: f32[32,8,2896,2896]").messages
    assert alone.cause == "8.00G, as printed: the elements alone, without a tile of a TPU's"


def test_a_cause_that_does_not_agree_with_its_text_is_withdrawn() -> None:
    """A shape beside a size that is neither its padded nor its plain one is another array."""
    message = explained("Size: 3.00GiB\nShape: f32[32,8,2896,2896]")
    assert (message.cause, message.arrays, message.fixes) == ("", (), ())
    assert "3.00G is printed" in message.reason
    assert explained("Size: 32.0K Shape: f32[1000,5]").cause.startswith("32.0K for 19.5K of elements")


@pytest.mark.parametrize(
    "text",
    [
        "TypeError: dot_general requires equal contracting dimensions, got (3,) and (4,) for f32[2,3] and f32[4,5]",
        "INTERNAL: RET_CHECK failure (xla/service/spmd/spmd.cc:1234) hlo->has_sharding() %x = f32[4]{0} p(0)",
        "ValueError: Incompatible shapes for broadcasting: bf16[8,100] and bf16[8,128]",
        "error: failed to legalize: tensor<8x100xf32>",
    ],
)
def test_shapes_of_an_error_are_not_its_cause(text: str) -> None:
    """An error that is not known is unknown: no word of padding, which is not what it is about."""
    answer = lp.why(text)
    assert answer.exit_code == 3
    assert "padding" not in str(answer)
    assert "padded" not in str(answer)


def test_what_a_total_is_made_of_is_named_largest_first() -> None:
    """One array of 1 GiB is no cause of 97.92 GiB; arguments count, and arrays on the heap count once."""
    report = """Ran out of memory in memory space hbm. Used 97.92G of 7.48G hbm. Exceeded hbm capacity by 90.44G.

Total hbm usage >= 99.65G:
    reserved        530.00M
    program          97.92G
    arguments        1.20G

Program hbm requirement 97.92G:
    HLO temp         97.92G (89.3% utilization: Unpadded (87.45G) Padded (97.92G), 0.0% fragmentation (4.0K))

  Largest program allocations in hbm:

  1. Size: 1.00G
     Shape: f32[256,1024,1024]{2,1,0:T(8,128)}
     Unpadded size: 1.00G
     Allocation type: HLO temp
"""
    cause = explained(report).cause
    assert cause.startswith("99.65G are made of HLO temp 97.92G, arguments 1.20G and reserved 530.00M (10.47G of the ")
    assert "1 x f32[256,1024,1024]{2,1,0:T(8,128)} take 1.00G" in cause
    heap = "    heap allocations (without fragmentation)   6.08G\n    output   5.06G (71.6% utilization)\n"
    (note,) = explained(f"Total hbm usage >= 10.94G:\n    reserved 529.00M\n{heap}    program 4.34G\n").notes
    assert note == "of 10.94G: heap allocations 6.08G, program 4.34G and reserved 529.00M"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "Attempting to reserve 6.14G at the bottom of memory.",
            "a program that is loaded take 6.14G, and less is free",
        ),
        ("Could not allocate 10485760 bytes in memory 0x0x0_HBM0", "an array of 10.00M (10485760 bytes)"),
        (
            "Failed to allocate request for 32.00MiB (33554432B) on device ordinal 0",
            "32.00M does not fit into what is free",
        ),
        (
            "failed to allocate 378.60M (396990720 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY",
            "one request of 378.60M",
        ),
    ],
)
def test_a_request_that_failed_is_read_without_its_second_sentence(text: str, said: str) -> None:
    message = explained(text)
    assert said in message.cause
    assert lp.why(text).exit_code == 0
    assert explained(f"{text}\n{text}").notes == ("it is printed 2 times",)


def test_the_sentence_above_an_operation_is_found_where_it_has_its_own_line() -> None:
    operation = '\nThe MLIR operation involved:\n  %1 = "vector.new"(%0) : (vector<8x128xf32>) -> vector<8x128xf32>'
    message = explained(f"INTERNAL: Mosaic failed to compile TPU kernel:\nsomething new{operation}")
    assert (message.said, message.cause) == ("something new", "")
    assert "paste" not in message.reason
