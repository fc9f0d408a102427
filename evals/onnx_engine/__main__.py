"""`python -m evals.onnx_engine`: see the package."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table

from evals.onnx_engine.encoder import load_onnx_encoder
from evals.onnx_engine.files import make_files
from evals.onnx_engine.speed import Timed, compare
from privategpt.backends.embedding import bundled
from privategpt.backends.embedding.bert import load_bert, read_config
from privategpt.backends.embedding.cpu import Dtype, choose_dtype, read_cpuinfo
from privategpt.backends.embedding.encoder import NO_PROMPTS, Encoder
from privategpt.backends.embedding.memory import bound_kernel_caches

OURS, THEIRS = "ours", "ONNX Runtime"

_console = Console()
app = typer.Typer(add_completion=False)


@app.command()
def make(folder: Path) -> None:
    """Write the bundled model as ONNX files."""
    for file in make_files(folder):
        _console.print(f"{file}: {file.stat().st_size:,} bytes")


@app.command()
def speed(
    file: Path,
    threads: Annotated[int, typer.Option(help="Of both engines.")] = 1,
    dtype: Annotated[
        Literal["auto", "float32", "bfloat16"], typer.Option(help="Of ours.")
    ] = "auto",
) -> None:
    """Processor time of both engines, in turns, for lengths and batches."""
    chosen = choose_dtype(dtype, cpuinfo=read_cpuinfo())
    engines: dict[str, Encoder] = {
        OURS: _load_ours(dtype=chosen, threads=threads),
        THEIRS: load_onnx_encoder(file, threads=threads),
    }
    table = Table(title=f"{file.name}, {threads} threads, ours in {chosen}: processor time, ms")
    for heading in ("tokens", "texts", OURS, THEIRS, f"{OURS} / {THEIRS}"):
        table.add_column(heading, justify="right")
    for timed in compare(engines, clock=time.process_time):
        table.add_row(*_cells(timed))
    _console.print(table)


def _load_ours(*, dtype: Dtype, threads: int) -> Encoder:
    import torch

    bound_kernel_caches()
    torch.set_num_threads(threads)
    folder = bundled.locate()
    config = read_config(folder)
    assert config is not None  # noqa: S101 - it is ours
    return load_bert(folder, config=config, dtype=dtype, prompts=NO_PROMPTS)


def _cells(timed: Timed) -> list[str]:
    ours, theirs = timed.seconds[OURS] * 1000, timed.seconds[THEIRS] * 1000
    return [
        str(timed.length),
        str(timed.batch),
        f"{ours:.1f}",
        f"{theirs:.1f}",
        f"{ours / theirs:.2f}",
    ]


if __name__ == "__main__":
    app()
