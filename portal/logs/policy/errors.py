"""Which lines of a log tell of an error: what Python, CUDA, NCCL, the kernel and ordinary programs write.

A guess by words, for jumping and filtering; it decides nothing about what became of a job.
"""

from enum import StrEnum

import re2

from portal.logs.policy.patterns import Pattern, visible_text

# Of a line, how much is looked at: what an error says of itself stands at its beginning.
_LOOKED_AT = 2000


class Kind(StrEnum):
    """What a line tells of, the gravest first."""

    MEMORY = "memory"
    CUDA = "cuda"
    NCCL = "nccl"
    TRACEBACK = "traceback"
    CRASH = "crash"
    ERROR = "error"


# A line may begin with the rank, a time, a process: "[rank3]: ", "2026-11-19 14:02:11,123 - ", "(pid=812) ".
_HEAD = r"^(?:[\[(<][^\])>\n]{1,60}[\])>]:? *|[0-9][0-9T:.,/Z+ -]{5,35}(?:[ |-]+)?|[\w.-]{1,40}: +){0,4}"
_LOUD = r"(?:error|Error|ERROR|fatal|Fatal|FATAL|CRITICAL)"
_WORDS: dict[Kind, tuple[str, ...]] = {
    Kind.MEMORY: (
        r"CUDA out of memory",
        r"OutOfMemoryError",
        r"\bRESOURCE_EXHAUSTED: Out of memory",
        r"\b[Oo]ut of memory: ",
        r"\boom-kill",
        r"\bOOMKilled\b",
        r"\b[Kk]illed process [0-9]+",
        r"MemoryError\b",
        r"\bstd::bad_alloc\b",
        r"\b[Cc](?:annot|an't|ould not|ouldn't) allocate memory\b",
    ),
    Kind.CUDA: (
        r"\bCUDA (?:error|driver error|initialization error|runtime error|failure)\b",
        r"\bcudaError[A-Z]\w+",
        r"\bCUDA_ERROR_\w+",
        r"\bCU(?:BLAS|DNN|SPARSE|SOLVER|FFT|RAND)_STATUS_(?:[A-RT-Z]|S[A-TV-Z])\w+",
        r"\bdevice-side assert triggered\b",
        r"\bNVRM: Xid\b",
    ),
    Kind.NCCL: (
        r"\bNCCL (?:WARN|ERROR|error)\b",
        r"\bnccl(?:Unhandled|System|Internal|Remote)\w*Error\b",
        r"\b(?:DistBackendError|ProcessGroupNCCL\S* .{0,80}(?:timeout|timed out|exception))",
        r"\bWatchdog caught collective operation timeout\b",
    ),
    Kind.TRACEBACK: (r"Traceback \(most recent call last\):",),
    Kind.CRASH: (
        r"\bSegmentation fault\b",
        r"\bFatal Python error\b",
        r"\bcore dumped\b",
        r"\bBus error\b",
        r"\bthread '[^'\n]*' (?:\([0-9]+\) )?panicked at\b",
        r"^panic: ",
        r"^terminate called ",
    ),
    Kind.ERROR: (
        _HEAD + r"(?:[\w.]+\.)?_?[A-Z]\w*(?:Error|Exception|Interrupt|Exit)(?:: |$)",
        _HEAD + _LOUD + r"(?:[\]:|]|\[[A-Z]*[0-9]+\]| +[-|:\[(]| {1,8}[A-Za-z0-9\[\"'/])",
        r"[\[| ](?:ERROR|FATAL|CRITICAL)[\]| ][ :|-]",
        r"\[(?:error|fatal|critical|ERROR|FATAL|CRITICAL)\]",
    ),
}
_WARNING_WORDS = (
    _HEAD + r"(?:warn(?:ing)?|Warn(?:ing)?|WARN(?:ING)?)(?:[\]:| ])|\b\w+Warning: |\[(?:warn(?:ing)?|WARN(?:ING)?)\]"
    r"|[\[| ]WARN(?:ING)?[\]| ]"
)

# Linear in the length of the line, whatever stands in it: with `re`, 2,000 digits in `_HEAD` would take 20 s.
_OPTIONS = re2.Options()
_OPTIONS.never_nl = True
_OPTIONS.never_capture = True
_OPTIONS.max_mem = 32 * 1024 * 1024
_KINDS = {kind: re2.compile("|".join(words), _OPTIONS) for kind, words in _WORDS.items()}
_WARNING = re2.compile(_WARNING_WORDS, _OPTIONS)
_ANY_WORDS = "(?m)" + "|".join(word for words in _WORDS.values() for word in words)
_ANY_IN_TEXT = re2.compile(_ANY_WORDS, _OPTIONS)
_ANY = re2.compile(_ANY_WORDS.encode(), _OPTIONS)


def kind_of(text: str) -> Kind | None:
    """What sort of error a line tells of; None for every other line."""
    return _kind_of_seen(visible_text(text[:_LOOKED_AT]))


def level_of(text: str) -> str:
    """`error`, `warning` or `info`, by the words of a line."""
    seen = visible_text(text[:_LOOKED_AT])
    if _kind_of_seen(seen) is not None:
        return "error"
    return "warning" if _WARNING.search(seen) else "info"


def _kind_of_seen(seen: str) -> Kind | None:
    # Most lines tell of no error, and are asked once.
    if not _ANY_IN_TEXT.search(seen):
        return None
    return next((kind for kind, words in _KINDS.items() if words.search(seen)), None)


def _find(data: bytes, position: int) -> int:
    match = _ANY.search(data, position)
    return match.start() if match is not None else -1


def _spans(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in _ANY_IN_TEXT.finditer(text)]


ERRORS = Pattern(_find, _spans, slow=False)
