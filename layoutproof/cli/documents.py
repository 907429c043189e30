"""What each command prints with `--json`, as models: the class of a command has its name, `Ask` of `ask`.

`layoutproof schema --of COMMAND` publishes them; the tests hold what every command really prints against them, and
refuse a key that stands in none. A later version adds keys, so the published schemas allow more of them.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from layoutproof.core.document import VERSION
from layoutproof.programs.record import Record

VerdictWord = Literal["proved", "sampled", "refuted", "unknown"]
Point = dict[str, list[int] | dict[str, int]]
"""Named points, and `sizes` from symbol to value."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Document(_Part):
    """What is in every answer."""

    version: Literal[2] = Field(description="later versions add keys, and rename none")
    exit_code: Literal[0, 1, 2, 3, 130] = Field(
        description="0 all proved, 1 something refuted or denied, 2 bad input, 3 something unknown, 130 interrupted"
    )


class ErrorEntry(_Part):
    """One error."""

    kind: Literal["input", "usage", "unknown", "internal"]
    message: str
    text: str = Field("", description="what was being read")
    file: str = ""
    line: int = 0
    column: int = Field(0, description="from 1, in the text or the file")


class Failure(Document):
    """Instead of an answer: nothing was asked."""

    exit_code: Literal[2, 3]
    error: ErrorEntry


class FindingEntry(_Part):
    """The answer to one question about one subject."""

    question: str = Field(description="a property, a rule, or the gate's class of difference")
    subject: str = Field(description="what it is about, e.g. the text of a layout")
    verdict: VerdictWord
    severity: Literal["error", "warning", "info", "deny", "warn", "allow"]
    reason: str = Field(description="why it is refuted or unknown, in one sentence; empty where it is proved")
    counterexample: Point | None = Field(description="the smallest one; only of what is refuted")
    file: str
    line: int = Field(description="from 1; 0 where there is none, as of column")
    column: int
    figures: dict[str, Any] = Field(description="exact numbers, or closed forms as text where sizes are symbolic")
    fix: str = Field(description="what to write instead, where that is known; of a kernel it was tried")
    hint: str = Field("", description="where to look, where no fix is known")
    decided_by: str = Field(description="the engine that proved or refuted")
    scope: str = Field("", description="what was looked at, where that is not all there is")
    assumes: list[str] = Field([], description="assumptions about run-time values that the answer rests on")
    needs: list[str] = Field([], description="assumptions under which what is unknown is proved")
    where: str = Field("", description="the condition on sizes of the running program under which it is, too")
    derivation: list[str] = Field([], description="how each layout given as an expression was computed and proved")
    relpath: str = Field("", description="of the gate: the file's name in both states")
    before: str = ""
    after: str = ""
    match_heuristic: str = Field("", description="how the two sides were matched, where that is a guess")
    policy: str = Field("", description="which rule or approval set the severity")
    fingerprint: str = Field("", description="a name that stays the same between runs, for approvals")
    bad_input: bool = Field(False, description="there is no verdict, because the input is wrong")
    follows: list[FindingEntry] = Field([], description="of a difference, the others that come from it")


class Written(Document):
    """What a command says on its output where it wrote its answer to a file."""

    summary: str
    written: list[str]


class Ask(Document, FindingEntry):
    """The answer to one question."""

    written: list[str] = Field([], description="with --svg: the picture")


class _CheckEntry(FindingEntry):
    status: Literal["as expected", "wrong", "error", "unknown", "interrupted"]
    name: str = Field("", description="the title that the file gives it")
    source: str = ""
    note: str = ""
    expect: VerdictWord = "proved"
    labels: list[str] = []
    layouts: list[Any] = []


class _Unasked(_Part):
    what: Literal["layout", "kernel", "program"]
    subject: str
    file: str
    line: int


class CheckAnswer(Document):
    """The answer to every check of some spec files."""

    summary: dict[str, int]
    partial: bool = Field(description="it was interrupted")
    results: list[_CheckEntry]
    never_asked: list[_Unasked] = Field(description="what the files state and claim nothing of")
    written: list[str] = Field([], description="with --svg: the picture")


Check = CheckAnswer | Written


class _Figures(_Part):
    """Bytes on one device; null where the compiler does not say."""

    arguments: int | None
    temporaries: int | None
    memory: int | None = Field(description="arguments, results and temporaries, less what they share")
    copied: int = Field(description="bytes that copies between layouts read and write in one run")
    copies: int = Field(description="how often one runs")
    copied_each_trip: int = Field(description="the same bytes of loops whose trip count is unknown, for one trip")
    cycles: int | None = Field(description="the compiler's estimate, comparable within one version of it")


class _Change(_Part):
    """By the number of the parameter or result. An order is from major to minor, an empty one the compiler's choice."""

    orders: dict[str, list[int]]
    results: dict[str, list[int]]
    padded: dict[str, list[int]]
    reshaped: dict[str, list[int]]
    donated: list[int]


class _Try(_Part):
    kind: Literal["auto", "order", "donation", "padding", "reshape", "together"]
    what: str
    write: str = Field(description="what to write in JAX")
    change: _Change
    verdict: Literal["helped", "same", "worse", "trade", "failed"]
    figures: _Figures | None
    less: list[str] = Field(description="memory, copies, copies in loops, cycles: what is less than before")
    more: list[str]
    layouts: dict[str, str] = Field(description="what the compiler chose otherwise, where it was left the choice")
    problem: str = Field(description="of what failed")


class _Advice(_Part):
    program: str
    compiler: str
    before: _Figures | None
    tries: list[_Try]
    together: _Try | None = Field(description="all that helped at once, where several did")
    findings: list[FindingEntry] = Field(description="why nothing could be tried")


class Compile(Document):
    """The records of compiled programs."""

    records: list[Record]
    findings: list[FindingEntry] = Field(description="why there is no record of the rest")
    tried: list[_Advice] = Field([], description="with --try, for each record")
    written: list[str] = Field([], description="files of the records; the compiled text lies beside each as .hlo")


class Convert(Document):
    """A layout in another language."""

    subject: str
    to: str
    layout: str | None = Field(description="the text, where it is proved to be the same map")
    nearest: str
    proof: FindingEntry


class _Source(_Part):
    source: str
    version: str
    cases: int
    agree: int
    compared: int = Field(description="numbers that were compared in the cases that agree")
    disagree: int
    skipped: dict[str, int] = Field(description="why a case was not compared, and how often")
    in_part: dict[str, int] = Field(description="why a part of a case that agrees has no answer, and how often")
    missing: str = Field(description="why the source was not asked at all; empty where it was")


class CrosscheckTable(Document):
    """What sources say that share nothing with this package, compared with what is said here."""

    title: str
    seconds: float
    sources: list[_Source]
    findings: list[FindingEntry] = Field(description="disagreements, each kind once, on the smallest case")


class _Fact(_Part):
    name: str
    target: str = Field(description="empty where it is of all that the compiler knows")
    state: Literal["same", "moved", "unanswered", "not asked"]
    recorded: str
    recorded_by: str = Field(description="who said so, with the version")
    source: str = Field(description="how it was found")
    now: str = Field(description="empty where nothing was found")
    now_by: str
    reason: str = Field(description="why nothing was found")


class CrosscheckFacts(Document):
    """With --facts: what rules about targets rest on, found again with what is installed."""

    compiler: str
    facts: list[_Fact]
    findings: list[FindingEntry] = Field(description="the facts that have moved")


Crosscheck = CrosscheckTable | CrosscheckFacts


class ExplainAll(Document):
    """The first line of every page, by kind and name."""

    pages: dict[str, dict[str, str]]


class _Page(_Part):
    kind: str
    page: str


class ExplainOne(Document):
    """The page of a name; seven names have two."""

    name: str
    kind: str
    page: str
    also: list[_Page] = Field(description="pages of the same name among other kinds")


Explain = ExplainAll | ExplainOne


class GateAnswer(Document):
    """What changed between two states."""

    title: str = Field(description="what was compared with what")
    summary: str
    compared: int = Field(description="files, the unchanged ones too")
    hidden: int = Field(description="findings that are allowed or approved and left out")
    partial: bool
    notes: list[str]
    findings: list[FindingEntry]
    written: list[str] = Field([], description="with --svg: the picture")


class GateApproval(Document):
    """What to add to pyproject.toml to approve one finding."""

    approval: str


Gate = GateAnswer | GateApproval | Written


class _First(_Part):
    first: str = Field(description="the name of the first one")
    line: int
    op_name: str
    source: str


class _Parameter(_First):
    number: int
    shape: str
    unpadded: int
    padded: int
    sharding: str


class _Program(_Part):
    name: str
    line: int
    scheduled: bool
    partitions: int
    result: str
    whole: bool = Field(description="nothing is wrong with its text")
    parameters: list[_Parameter]


class _Fix(_Part):
    layout: str = ""
    layout_bytes: int = 0
    merged: str = ""
    merged_bytes: int = 0
    full: str = ""
    smaller: str = ""
    smaller_bytes: int = 0


class _Waster(_First):
    shape: str
    count: int
    unpadded: int
    padded: int
    fix: _Fix | None = Field(description="other layouts and shapes with their bytes; none of them was tried")
    parameters: list[int] = Field([], description="of the entry, among them: their layout is the user's to choose")
    results: list[int] = Field([], description="the same of results")


class _Often(_Part):
    times: int | None = Field(1, description="runs in one call; null where a loop's trip count is unknown")
    sometimes: bool = Field(False, description="it stands in a branch, so that it may run less often")
    why: str = Field("", description="which loop's trip count is unknown")


class _Talk(_First, _Often):
    kind: str
    does: str = Field(description="dimension, reduction and devices in words")
    bytes: int | None = Field(description="the larger side, on each device, each time")
    moved: int | None = Field(description="what each device has to receive at the least, each time")
    count: int


class _Resharded(_First, _Often):
    collectives: list[str] = Field(description="with nothing but moves between them, by name")
    received: int | None = Field(description="bytes that a device receives through them")
    needed: int | None = Field(description="bytes that the device with most must receive at least, for what is read")
    unknown: str = Field(description="why that is unknown")


class _Pair(_First):
    count: int
    from_: str = Field(alias="from")
    to: str
    reason: str
    counterexample: Point | None
    decided_by: str


class _Copy(_Pair, _Often):
    opcode: str
    kind: Literal["relayout", "space", "same", "free", "unknown"]
    bytes: int
    parameter: int | None = Field(description="the entry parameter that is copied")


class _Bitcast(_Pair):
    is_: str = Field(alias="is", description="the reshape or transpose that it stands for")
    verdict: VerdictWord


class _Bytes(_Part):
    unpadded: int
    padded: int


class _Compared(_Part):
    compared: int
    allocated: int


class _Audit(_Part):
    file: str
    verdict: VerdictWord
    scope: str
    findings: list[FindingEntry]
    programs: list[_Program]
    computations: int
    instructions: int
    bytes: dict[Literal["parameter", "constant", "value", "total"], _Bytes]
    memory_spaces: dict[str, int]
    wasters: list[_Waster]
    copies: list[_Copy]
    collectives: list[_Talk] = []
    reshards: list[_Resharded] = Field([], description="where fewer bytes would do, and where that is unknown")
    copies_in_fusions: dict[str, int]
    bitcasts: list[_Bitcast]
    fusion_roots: dict[str, int]
    custom_calls: dict[str, int]
    mosaic_kernels: dict[str, int]
    sizes: _Compared = Field(description="XLA's own sizes that were compared with ours, and bytes allocated")


class Hlo(Document):
    """The audit of each dump."""

    results: list[_Audit]
    not_dumps: list[str] = Field(description="texts beside the dumps that are none")
    tried: list[_Advice] = Field([], description="with --try, for each dump")


class _Operand(_Part):
    name: str
    role: str
    dtype: str
    dims: list[int | str]
    block: list[str]


class _KernelFinding(FindingEntry):
    asked: bool
    replay: str = Field(description="of what is refuted, what running the kernel says of it; empty without --replay")


class _Sign(_Part):
    kind: Literal["nan", "differs", "race", "raised", "hang", "semaphore"]
    text: str
    known: str = Field(description="why it is against no proof, e.g. a fault of the interpreter; empty = it may be")


class _Replay(_Part):
    """What came of running a kernel in JAX's interpreter; a finding `conflict` says what it shows against a proof."""

    signs: list[_Sign] = Field(description="what the run showed")
    problem: str = Field(description="why it was not run, or not to its end; empty where it was")
    jax: str = Field(description="the version of JAX that ran it")
    tables: dict[str, list[int]] = Field(description="what the tables held in that run, the first entries")


class _VmemPart(_Part):
    kind: Literal["window", "scratch", "spill", "other"]
    what: str
    bytes: int


class _VmemArray(_Part):
    kind: Literal["input", "output"]
    what: str
    bytes: int


class _Vmem(_Part):
    total: int = Field(description="bytes, the sum of the parts")
    limit: int
    parts: list[_VmemPart]
    slots: int = Field(description="places of registers that spill, as the code names them")
    whole: list[_VmemArray] = Field(
        [], description="arrays that are in VMEM as a whole, without windows; the total and the limit leave them out"
    )


class _SourceLine(_Part):
    """A line of source, and operations of the compiled code that move data for it; a loop's body counts once."""

    file: str = Field(description="empty, and line 0, for operations that the compiler ties to no line")
    line: int
    reloads: int = Field(description="of registers that had spilled")
    packs: int
    unpacks: int
    rotates: int


class _Relayout(_Part):
    vector: str
    before: str
    after: str
    count: int
    file: str
    line: int
    reason: str = Field(description="why nobody knows whether it costs something; empty where it does")


class _Estimate(_Part):
    cycles: int | None = Field(description="null where there is no estimate, and reason says why")
    reason: str
    unseen: list[str] = Field(description="what the figure leaves out")
    at_least: int = Field(description="cycles that traffic with HBM and products take at the least; 0 = not known")
    cores: int = Field(description="among which the compiler splits a parallel dimension; cycles are of the busiest")
    ranked: int | None = Field(description="the larger of the two")


class _Explained(_Part):
    cause: str
    fixes: list[str]


class _Compiled(_Part):
    """What the compiler makes of one kernel for one target. Figures of two versions are not compared."""

    kernel: str
    target: str
    compiler: str = Field(description="with its version")
    jax: str
    answer: Literal["accepted", "refused", "unknown"]
    refused: str = Field(description="the compiler's words")
    explained: list[_Explained]
    problem: str = Field(description="why there is no answer")
    vmem: _Vmem | None
    sentence: str = Field(description="the VMEM in one sentence")
    lines: list[_SourceLine]
    relayouts: list[_Relayout] = Field(description="in registers; those that cost something or may")
    free: int = Field(description="other relayouts, proved to move nothing")
    estimate: _Estimate
    source: str


class _Kernel(_Part):
    subject: str
    verdict: VerdictWord
    reason: str
    accepted: str = Field(description='why a call that is unknown as a whole is accepted, "" = it is not')
    scope: str
    file: str
    line: int
    target: str
    compiler: str
    manual_dma: list[str] = Field(description="operands that the body copies itself")
    assume: str = Field(description="the assumptions that would settle what is unknown, for --assume")
    where: str = Field("", description="the condition on sizes that would settle it with them, for --where")
    grid: list[int | str]
    platform: str
    pipeline: str
    operands: list[_Operand]
    replay: _Replay | None = Field(description="null without --replay")
    compiled: list[_Compiled] = Field([], description="with --compile: what the compiler makes of it, by target")
    findings: list[_KernelFinding]


class KernelsAnswer(Document):
    """What is proved of every Pallas call."""

    summary: dict[str, int]
    scope: str = Field(description="what was proved of those that are proved")
    kernels: list[_Kernel]
    written: list[str] = Field([], description="with --svg: the picture")


class KernelsSpec(Document):
    """The calls as a spec file."""

    spec: str


Kernels = KernelsAnswer | KernelsSpec


class _FoundCall(_Part):
    file: str
    line: int
    function: str = Field(description="the outermost function that the call is in; empty where it is in none")


class Init(Document):
    """What was written, and what there is to prove."""

    written: list[str]
    kept: list[str]
    add: str = Field(description="what to put below `repos:` of the pre-commit configuration that was kept")
    kernels: list[_FoundCall]
    dumps: list[str]
    git: bool = Field(description="whether the folder is the root of a git repository")
    next: list[str] = Field(description="commands to run now")


class _Step(_Part):
    step: str
    at: list[int]
    extents: list[int]


class LocateElement(Document):
    """Where one element is."""

    subject: str
    index: list[int]
    steps: list[_Step]
    places: list[dict[str, int]] = Field(description="one for each replica")
    derivation: list[str] = Field([], description="how an expression was computed, with what was proved of it")
    notes: list[str] = Field(description="of a program: what of its block is not in the array")


class _Held(_Part):
    index: list[int]
    replica: list[int] = Field(description="which of the element's places this is; empty where it has one")
    place: dict[str, int]


class LocatePlace(Document):
    """What is at a place, with `--at`."""

    subject: str
    at: dict[str, int] = Field(description="what was asked for: coordinates by name")
    what: Literal["element", "elements", "padding", "hole", "outside"]
    elements: list[_Held] = Field(description="the first of them")
    count: int = Field(description="how many elements there are")
    place_count: int = Field(description="how many pairs of an element and a replica of it there are")
    dimensions: list[str] = Field(description="of padding, the dimensions whose rounding up made it")
    reason: str


class LocateFormula(Document):
    """The element at a place as a formula, with `--at` and names alone."""

    subject: str
    coordinates: list[str]
    element: dict[str, str] = Field(description="each entry of the index as text, by the dimension's name")
    replica: dict[str, str]
    condition: str = Field(description="when a place of the range holds an element; empty where every one does")
    decided_by: str


Locate = LocateElement | LocatePlace | LocateFormula


class Schema(Document):
    """A JSON Schema."""

    schema_: dict[str, Any] = Field(alias="schema")


class _AsideCost(_Part):
    values: dict[str, int]
    cost: int
    vmem: int


class _SetAside(_Part):
    """Candidates of which nothing is proved, because of what the registers may spill."""

    count: int
    why: str = Field(description="empty where there is none")
    candidates: list[_AsideCost] = Field(description="of a declared kernel the cheapest, a few hundred at most")


class _Because(_Part):
    """The first refused finding of a rule."""

    question: str
    subject: str
    reason: str
    fix: str


class _Search(Document):
    subject: str
    target: str
    target_assumed: bool = Field(description="nobody named the target")
    verdict: VerdictWord
    written: list[str] = Field([], description="the picture")


class SearchTilings(_Search):
    """The best tilings of a declared kernel. Times in picoseconds, sizes in bytes."""

    reason: str
    candidates: int
    cost: str
    over: Literal["worst", "sum"]
    best: list[dict[str, Any]]
    certificate: dict[str, Any] | None
    bound: int | None
    refused: dict[str, int] = Field(description="candidates by reason, of all")
    because: dict[str, _Because] = Field(
        description="for each reason of `refused` that a rule gives, its first finding"
    )
    unknown: dict[str, int]
    not_judged: int = Field(description="candidates that cost no less than the last of `best` and were not judged")
    set_aside: _SetAside
    compute: str = Field(description="`counted`, or why it is not in the cost")
    left_out: list[dict[str, Any]]
    model: dict[str, Any]
    infeasible: dict[str, Any] | None = Field(
        None, description="the conditions of an irreducible infeasible subset: fewer of them can be met"
    )
    conflict: dict[str, Any] | None = Field(None, description="the older name of `infeasible`")
    front: dict[str, Any] | None = None
    compiler: dict[str, Any] | None = None
    refused_by_compiler: list[dict[str, Any]] = []


class SearchTraced(_Search):
    """The best arguments of a traced function."""

    reason: str
    best: list[dict[str, Any]]
    refused: dict[str, int]
    because: dict[str, _Because] = Field(
        description="for each reason of `refused` that a rule gives, its first finding"
    )
    not_judged: int = Field(description="candidates that were not looked at")
    set_aside: _SetAside
    compute: str = Field(description="`counted`, or why the cost is that of the traffic alone")
    unknown: dict[str, int]
    certificate: dict[str, Any]
    compiler: dict[str, Any]
    notes: list[str]


class SearchArrays(_Search):
    """The best layouts, paddings and shardings of arrays."""

    layouts: dict[str, Any] | None = None
    padding: dict[str, Any] | None = None
    shardings: dict[str, Any] | None = None


class SearchPruned(_Search):
    """Which given candidates are legal."""

    kept: list[dict[str, Any]]
    figures: list[dict[str, Any]]
    dropped: list[dict[str, Any]]


Search = SearchTilings | SearchTraced | SearchArrays | SearchPruned


class Show(Document):
    """The figures of a layout."""

    subject: str
    figures: dict[str, Any]
    sizes: dict[str, int | str] = Field(description="bytes by who says so, where they differ")
    formula: str = ""
    matrix: list[str] = Field([], description="of an Axe layout: extents above strides, as the paper writes it")
    derivation: list[str] = Field([], description="how an expression was computed, with what was proved of it")
    formula_is: str = ""
    latex: str = ""
    programs: dict[str, Any] = Field({}, description="with --programs: which program writes each element")
    written: list[str]


class _MessageArray(_Part):
    shape: str
    printed: str = Field(description="its size in the message's own words")
    bytes: int = Field(description="as computed here, -1 where it cannot be")
    unpadded: int
    agrees: bool | None = Field(description="whether the computed size is the printed one; null where none is printed")
    count: int
    padded: list[str]
    made_by: str
    kind: str
    fixes: list[str]
    note: str


class _Message(_Part):
    kind: str
    line: int
    said: str
    cause: str = Field(description="empty where it is not known")
    reason: str = Field(description="why the cause is not known")
    arrays: list[_MessageArray]
    fixes: list[str]
    notes: list[str]
    source: str


class Why(Document):
    """What the messages of a pasted text mean."""

    messages: list[_Message]


class _Premise(_Part):
    question: str
    subject: str
    verdict: VerdictWord
    reason: str


class _Exponent(_Part):
    place: str
    at_most_zero: bool
    beside_a_literal: bool = Field(description="whether the maximum also holds a number of the code")


class _Sum(_Part):
    place: str
    dtype: str = Field(description="the type that it is kept in")
    terms: int = Field(description="how many are added at once; 0 of a sum that is carried in memory")
    unit_roundoff: float


class _Blocks(_Part):
    """An axis of a grid, or a loop, along which the answer holds for any number of blocks."""

    axis: int = Field(description="of the grid; -1 of a loop")
    loop: str = Field(description="file:line of a loop, else empty")
    reduced: bool = Field(
        description="whether outputs are the same blocks at every step; else they go along, as of a scan"
    )
    steps: list[Literal["first", "middle", "last", "ragged"]]
    along: list[str] = Field(description="axes of arguments that grow by a block with each program")
    compared: list[int] = Field(description="the numbers of blocks at which the two were compared")


class _Begins(_Part):
    """Where a difference begins."""

    place: str = Field(description="the first store after which the state is no prefix of the reference, or empty")
    until: str = Field(description="where it is one of several stores, the last of them")
    program: list[int] = Field(description="the ids of the program that stores it")
    stored: str = Field(description="where the element that differs is stored")


class _Reduced(_Part):
    """One argument that was compared at a smaller size."""

    argument: str = Field(description="its name, such as args[0]")
    given: list[int]
    shape: list[int] = Field(description="at which it was compared")


class Same(Document):
    """Whether a function computes what its reference computes."""

    subject: str
    verdict: VerdictWord
    reason: str
    file: str
    line: int
    counterexample: Point | None = Field(description="the output's position and the first element that differs")
    figures: dict[str, Any] = Field(description="points; of a difference how many elements and rows, and both values")
    points: int = Field(description="random points at which no difference was found")
    axioms: list[str] = Field(description="functions that are taken to obey few laws")
    chance: str = Field(description="what is proved of the chance that a difference is missed")
    drawn: list[str] = Field(description="integers that nobody gave")
    notes: list[str]
    reduced: list[_Reduced] = Field(description="with --reduced: what was compared at smaller sizes")
    hint: str = Field(description="of a difference: a part of an input that reaches the element on one side alone")
    second_witness: str = Field(description="of a difference: what JAX computes of it, kernels in its interpreter")
    begins: _Begins | None = Field(description="of a difference that float64 shows: where it begins in the kernel")
    exponents: list[_Exponent] = Field(description="of the function, where no difference was found")
    sums: list[_Sum] = Field(description="of the function, where no difference was found")
    decided_by: str = Field(description="points, relations, or float64, which shows a difference; empty of unknown")
    operands: str = Field(description="of a difference of sums of products: which products, and how often on each side")
    scope: str
    sizes: list[str] = Field(description="names of sizes, where the answer is about all of them")
    smallest: dict[str, int] = Field(description="of a difference, the smallest sizes at which there is one")
    blocks: list[_Blocks] = Field(
        description="axes of the kernel's grid along which it is the same for any number of blocks, by induction"
    )
    premises: list[_Premise] = Field(description="what the comparison rests on")


def adapter(command: str) -> TypeAdapter[Any]:
    """What a command prints, answers and failures: the model of its name. KeyError where it has none."""
    return TypeAdapter(globals()[command.capitalize()] | Failure)


def json_schema(command: str) -> dict[str, Any]:
    """The JSON Schema of what a command prints."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"layoutproof {command} --json, version {VERSION}",
        **adapter(command).json_schema(),
    }
    found: dict[str, Any] = _open(schema)
    return found


def _open(schema: Any) -> Any:
    """The schema without what forbids more keys."""
    if isinstance(schema, dict):
        return {key: _open(value) for key, value in schema.items() if key != "additionalProperties" or value}
    return list(map(_open, schema)) if isinstance(schema, list) else schema
