"""What the processor can do, as far as the choice of a number type depends on it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, TypeAlias

Dtype: TypeAlias = Literal["float32", "bfloat16"]

_CPUINFO = Path("/proc/cpuinfo")
_BFLOAT16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}  # the last is ARM's
_FLAGS = re.compile(r"^(?:flags|Features)\s*:(.*)$", re.MULTILINE)


def choose_dtype(wanted: Literal["auto", "float32", "bfloat16"], *, cpuinfo: str) -> Dtype:
    """`auto` becomes bfloat16 only where the processor multiplies it natively.

    Elsewhere bfloat16 is emulated and several times slower than float32.
    """
    if wanted != "auto":
        return wanted
    flags = _FLAGS.search(cpuinfo)
    native = flags is not None and not _BFLOAT16_FLAGS.isdisjoint(flags.group(1).split())
    return "bfloat16" if native else "float32"


def read_cpuinfo() -> str:
    """The kernel's description of the processor; empty where there is none to read."""
    try:
        return _CPUINFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
