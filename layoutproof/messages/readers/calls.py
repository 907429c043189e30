"""What JAX says of a call that does not fit the jitted function: its devices, argument numbers, trees and types.

Sources: messages of jax 0.10.2 and 0.12.0.1; `tests/messages/test_jax_says.py` asks the installed JAX for each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod

from layoutproof.messages.explanation import Explanation, joined
from layoutproof.messages.kinds import SPEC, Kind, Told, explained
from layoutproof.messages.pasted import PastedLine

_MESH = r"(?:Abstract)?Mesh\((?:[^()]|\([^()]{0,200}\)){0,400}\)"
_DEVICES = r"(?:with|and) device ids \[([\d,. ]{0,4000})\] on platform (\w{1,20})"


def _devices(match: re.Match[str], block: str) -> Told:
    """Two values of one program that lie on other devices."""
    (one, on_one), (two, on_two) = ((match[k].replace(" ", "").split(","), match[k + 1]) for k in (2, 5))
    names = [
        re.split(r" of .{1,200} with shape| inside jit|,? (?:with|and) ", name)[0].strip()
        for name in (match[1], match[4])
    ]
    cut = any("." in each for each in (*one, *two))
    if (one, on_one) == (two, on_two):
        return Told("", reason="both device lists of the message are the same, so they do not explain it")
    if on_one != on_two:
        how = f"one is on {on_one} and the other on {on_two}"
    elif cut:
        how = "their device lists differ"
    elif sorted(one) == sorted(two):
        how = f"both have the same {len(one)} devices in another order"
    else:
        shared = len({*one} & {*two})
        how = f"{len(one)} and {len(two)} devices, {shared or 'none'} of them in common"
    same_set = on_one == on_two and not cut and sorted(one) == sorted(two)
    ways = ["jax.device_put one of them to the sharding of the other before the call (x.sharding says it)"]
    if same_set:
        ways = ["make both shardings of one Mesh: another order of its devices is another mesh", f"or {ways[0]}"]
    elif min(len(one), len(two)) == 1 and max(len(one), len(two)) > 1:
        ways.append(
            "for the one that is on a single device: jax.device_put(x, NamedSharding(mesh, P())) has it whole on each; "
            "an array without a placement (jnp.ones without device_put) follows the others"
        )
    return Told(f"one jitted program runs on one list of devices, and {joined(names)} lie on two: {how}", tuple(ways))


def _not_the_arguments(match: re.Match[str], block: str) -> Told:
    asked, given = (re.findall(f"spec={SPEC}", match[k]) for k in (1, 2))
    if asked and given and asked[-1] != given[-1]:
        said = f"in_shardings says {asked[-1]} and the array ({match[3]}) comes with {given[-1]}"
    else:
        said = f"in_shardings and the array ({match[3]}) are of two meshes, or of two kinds of memory"
    return Told(
        f"{said}; jit moves nothing that was placed already",
        (
            "jax.device_put(x, sharding) with the sharding of in_shardings before the call",
            "or leave in_shardings out: jit then takes the arrays as they lie",
        ),
    )


def _compiled_for(match: re.Match[str], block: str) -> Told:
    who = re.findall(r"Argument (.{1,120}?) with shape (\w+\[[\d,]*\])", block)
    names = f": {joined([f'{name} ({shape})' for name, shape in who[:3]])}" if who else ""
    return Told(
        f"a compiled program takes its arguments in the shardings that it was compiled for{names}",
        (
            "jax.device_put the arguments to compiled.input_shardings[0] before the call",
            "or lower with the arrays, or ShapeDtypeStruct(.., sharding=..), that it is called with; or call the "
            "jitted function, which compiles anew",
        ),
    )


def _compiled_types(match: re.Match[str], block: str) -> Told:
    found = re.findall(r"Argument '?([^'\n]{1,120}?)'? compiled with (\S+) and called with (\S+)", block)
    differ = [each for each in found if each[1] != each[2]]
    if not differ:
        return Told("", reason="the message names no argument whose types differ; paste the lines after it")
    return Told(
        "a compiled program takes the types that it was compiled for; "
        + joined([f"{name} is {given} in place of {wanted}" for name, wanted, given in differ[:3]]),
        (
            "call the jitted function, which compiles for each new type; or lower and compile for these types too",
            *["or x.astype(..) before the call"] * all(w.split("[")[1:] == g.split("[")[1:] for _, w, g in differ),
        ),
    )


def _wrong_length(match: re.Match[str], block: str) -> Told:
    which, given, have = match["which"], int(match["given"]), int(match["have"])
    if given == have:
        return Told("", reason=f"both lengths of the message are {given}, so they do not explain it")
    what = "arguments" if which == "in" else "results"
    at = f" at {match['at']}" if match.groupdict().get("at") else ""
    return Told(
        f"{which}_shardings has {given} entries{at}, for {have} {what if not at else 'parts'}",
        (
            f"{have} entries, None where JAX is to choose",
            f"or one sharding in place of the tuple: it stands for all {what}",
        ),
    )


def _other_keys(match: re.Match[str], block: str) -> Told:
    lines = [line.strip() for line in block.split("\n")]
    at = next(
        (k for k, line in enumerate(lines) if line.startswith("so the symmetric difference on key sets is")), None
    )
    keys = lines[at + 1] if at is not None and at + 1 < len(lines) else ""
    return Told(
        f"{match[1]}_shardings has other keys than what it is for"
        + (f": {keys} is in one of them only" if keys else ""),
        (
            "a sharding for each key, None where JAX is to choose",
            "or one sharding in place of the whole dict: it stands for all that is below",
        ),
    )


def _argument_numbers(match: re.Match[str], block: str) -> Told:
    option, count = match[1], int(match[3])
    numbers = [int(n) for n in re.findall(r"-?\d+", match[2])]
    outside = [str(n) for n in numbers if not -count <= n < count]
    if not outside:
        return Told("", reason=f"{match[2]} counts within {count} positional arguments, so it does not explain this")
    allowed = f"0 to {count - 1}" if count > 1 else "0" if count else "none"
    by_name = option.replace("argnums", "argnames")
    said = f"{option}={match[2]} names argument {joined(outside)} of a function that takes {count} by position"
    return Told(
        f"{said}; they count from 0, so {allowed} {'are' if count > 1 else 'is'} there",
        (
            *[f"write {allowed}"] * bool(count),
            f"for an argument that is given by keyword: {by_name}=('name',)",
            "self of a bound method, and what functools.partial has filled, count no more",
        ),
    )


def _argument_names(match: re.Match[str], block: str) -> Told:
    return Told(
        f"{match[2]} names {match[1]}, and the function has no parameters of such names",
        ("write the names of its signature, as inspect.signature(f) says them",),
    )


def _both(match: re.Match[str], block: str) -> Told:
    return Told(
        f"{match[1]} is static and donated at once: a static argument is a Python value and has no memory to give",
        ("leave it out of donate_argnums, or out of static_argnums where it is an array",),
    )


def _context_mesh(match: re.Match[str], block: str) -> Told:
    here, given = match[1].strip(), match[2].strip()
    return Told(
        f"jax.set_mesh has made {here} the mesh of everything inside, and this call is given another one, {given}",
        (
            "one mesh for both: jax.set_mesh(mesh) with the mesh that the call is given, or no mesh= of the call",
            "equal is what has the same axes, sizes, axis types and devices in one order",
        ),
    )


def _layouts(match: re.Match[str], block: str) -> Told:
    return Told(
        f"jit is asked for its argument ({match[3]}) with {match[1]}, and the array lies as {match[2]}; jit "
        "turns nothing that is placed already",
        (
            "jax.device_put(x, Format(layout, sharding)) with the layout of in_shardings before the call",
            "or Layout.AUTO when it is compiled, and arrays put to compiled.input_formats",
        ),
    )


def _keywords(match: re.Match[str], block: str) -> Told:
    return Told(
        "in_shardings is one entry for each positional argument, and the call gives some by keyword",
        ("give them by position, or leave in_shardings out and put the arrays with jax.device_put",),
    )


def _from_numpy(match: re.Match[str], block: str) -> Told:
    return Told(
        "on several processes a NumPy array is not cut by in_shardings: each process has its own",
        (
            "jax.make_array_from_process_local_data(sharding, x) of the part that this process has",
            "or P() for what is the same in all processes",
        ),
    )


def _no_hash(match: re.Match[str], block: str) -> Told:
    return Told(
        f"a static argument is looked up by its hash, and {match[1]} has none",
        ("a tuple for a list, a frozen dataclass for a dict", "or no static argument: pass it as an array"),
    )


def _no_array(match: re.Match[str], block: str) -> Told:
    return Told(
        f"{match[2]} is no array and no number: an argument of a jitted function has a shape and a type",
        (
            f"static_argnames={match[3]!r}, if it is a setting" if match[3] else "static_argnames, if it is a setting",
            "jax.tree_util.register_dataclass for a class of arrays",
        ),
    )


def _few_devices(match: re.Match[str], block: str) -> Told:
    have, shape = int(match[1]), tuple(int(n) for n in re.findall(r"\d+", match[2]))
    wanted = prod(shape)
    if have >= wanted:
        return Told("", reason=f"{have} devices are enough for {shape}, so they do not explain it")
    return Told(
        f"a mesh of {shape} takes {wanted} devices, and {have} are there",
        (
            f"a mesh of at most {have}",
            f"on a CPU, for tests: XLA_FLAGS=--xla_force_host_platform_device_count={wanted} before JAX is imported",
        ),
    )


def _no_axis(match: re.Match[str], block: str) -> Told:
    return Told(
        f"an operation speaks of axis {match[1]}, and nothing around it has an axis of that name",
        (
            f"call it inside jax.shard_map over a mesh that has {match[1]!r}, or inside jax.vmap(f, "
            f"axis_name={match[1]!r})",
            "under plain jit there are no named axes: the sum is jnp.sum, and the compiler inserts what it needs",
        ),
    )


_KINDS: tuple[Kind, ...] = (
    (
        re.compile(
            r"Received incompatible devices for (?:jitted|pjitted) computation\. Got (.{1,400}?) "
            rf"{_DEVICES} and (.{{1,400}}?) {_DEVICES}"
        ),
        _devices,
    ),
    (
        re.compile(
            r"Sharding passed to p?jit does not match the sharding on the respective arg\. Got p?jit sharding: "
            r"(.{1,800}?),? arg sharding: (.{1,800}?) for arg type: (\w+\[[\d,]*\])"
        ),
        _not_the_arguments,
    ),
    (re.compile(r"Computation was compiled for input shardings that disagree with the shardings of"), _compiled_for),
    (re.compile(r"Argument types differ from the types for which this computation was compiled"), _compiled_types),
    (
        re.compile(
            r"pjit (?P<which>in|out)_shardings is the wrong length: got a tuple or list of length (?P<given>\d+) for "
            r"an args tuple of length (?P<have>\d+)"
        ),
        _wrong_length,
    ),
    (
        re.compile(
            r"prefix pytree pjit (?P<which>in|out)_shardings(?P<at>\S{0,120}) has a subtree of type (?:tuple|list) of "
            r"length (?P<given>\d+), but the full pytree has a subtree of the same type but of length (?P<have>\d+)"
        ),
        _wrong_length,
    ),
    (re.compile(r"different numbers of pytree children at key path\s{1,20}pjit (in|out)_shardings"), _other_keys),
    (
        re.compile(
            r"Jitted function has ((?:donate|static)_argnums)=(\([-\d, ]{0,200}\)|-?\d{1,9}), but only accepts "
            r"(\d{1,9}) positional"
        ),
        _argument_numbers,
    ),
    (
        re.compile(r"Jitted function has invalid argnames (\{[^{}]{0,400}\}) in ((?:donate|static)_argnames)"),
        _argument_names,
    ),
    (
        re.compile(
            r"static_arg(?:names|nums) and donate_arg(?:names|nums) cannot intersect\. Argument (?:names|nums) "
            r"(\{[^{}]{0,400}\})"
        ),
        _both,
    ),
    (re.compile(r"[Uu]nbound axis name: (\w{1,80})"), _no_axis),
    (
        re.compile(
            rf"[Cc]ontext mesh ({_MESH}) (?:should|must) match the (?:mesh passed|mesh of sharding).{{0,40}}? ({_MESH})"
        ),
        _context_mesh,
    ),
    (
        re.compile(
            r"Layout passed to p?jit does not match the layout on the respective arg\. Got p?jit layout: "
            r"(Layout\(.{1,200}?\)),? arg layout: (Layout\(.{1,200}?\)) for arg type: (\w+\[[\d,]*\])"
        ),
        _layouts,
    ),
    (re.compile(r"pjit does not support kwargs when in_shardings is specified"), _keywords),
    (re.compile(r"Passing non-trivial shardings for numpy inputs is not allowed"), _from_numpy),
    (
        re.compile(r"Non-hashable static arguments are used.{0,200}?to hash an object of type (<class .{1,80}?>)"),
        _no_hash,
    ),
    (
        re.compile(
            r"[Ee]rror interpreting argument to (.{1,120}?) as an abstract array\. The problematic value is of type "
            r"(<class .{1,80}?>) and was passed to the function at path ([\w.\[\]']{0,80}\w)?"
        ),
        _no_array,
    ),
    (re.compile(r"Number of devices (\d{1,9}) must be >= the product of mesh_shape (\([\d, ]{1,80}\))"), _few_devices),
)


def read(lines: Sequence[PastedLine], target: str | None) -> Iterator[Explanation]:
    """The errors of calls in a text, each once.

    lines: of the text.  target: not looked at.
    """
    yield from explained("jit", _KINDS, lines)
