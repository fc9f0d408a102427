"""The `privategpt` command: serve, ingest, keys, check, reindex, optimize, models."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console

from privategpt.command_settings import DataDir, read_settings
from privategpt.domain.access import DEFAULT_TENANT, require_tenant_name
from privategpt.domain.errors import PrivateGptError, Unavailable
from privategpt.keys_command import keys_cli
from privategpt.progress_bars import FileBars, progress_bar
from privategpt.settings import Settings

if TYPE_CHECKING:
    from privategpt.services.batch import BatchResult

cli = typer.Typer(
    name="privategpt",
    help="Ask questions of your own documents through an OpenAI-compatible API.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
cli.add_typer(keys_cli, name="keys")
T = TypeVar("T")

INTERRUPTED = 130
"""What a shell shows for a command that Ctrl-C has ended."""

_out = Console(highlight=False, soft_wrap=True)
_err = Console(stderr=True, highlight=False, soft_wrap=True)


def main() -> None:
    """Run the command line; what the product refuses is one clear message and exit code 1."""
    try:
        cli()
    except PrivateGptError as error:
        _err.print(error.message, style="red", markup=False)
        sys.exit(1)


@cli.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 takes a free one.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Serve the API until it is told to stop."""
    from privategpt.serving import serve as run_server

    settings = read_settings(host=host, port=port, data_dir=data_dir)
    _run(run_server(settings, announce=lambda line: print(line, flush=True)))


@cli.command()
def ingest(
    paths: Annotated[list[Path], typer.Argument(help="Files and folders.", exists=True)],
    *,
    tenant: Annotated[str, typer.Option(help="Whose documents they become.")] = DEFAULT_TENANT,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace what is there under the same name.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on with what comes and changes; implies --replace.")
    ] = False,
    delete_removed: Annotated[
        bool,
        typer.Option("--delete-removed", help="With --watch: delete documents with their files."),
    ] = False,
    interval: Annotated[
        float, typer.Option(min=0.1, help="With --watch: seconds between two looks.")
    ] = 2.0,
    data_dir: DataDir = None,
) -> None:
    """Ingest files, and folders with all that is in them; what fails is reported at the end.

    What is there already, with the same name and bytes, is skipped.
    """
    if delete_removed and not watch:
        raise typer.BadParameter("It needs --watch", param_hint="--delete-removed")
    settings = read_settings(data_dir=data_dir)
    owner = require_tenant_name(tenant)
    if watch:
        with suppress(KeyboardInterrupt):
            _run(_watch(settings, paths, owner, deletes=delete_removed, interval_s=interval))
        return
    try:
        result = _run(_ingest(settings, paths, owner, replace=replace))
    except KeyboardInterrupt:
        _err.print("interrupted: what was ingested stays, and is skipped when you start it again")
        raise typer.Exit(INTERRUPTED) from None
    _report(result)
    if result.failures:
        raise typer.Exit(1)


async def _ingest(
    settings: Settings, paths: list[Path], tenant: str, *, replace: bool
) -> BatchResult:
    from privategpt.services.batch import files_below, ingest_files
    from privategpt.wiring import open_library

    found = files_below(paths)
    async with open_library(settings) as library:
        with FileBars(_err, files=len(found)) as bars:
            return await ingest_files(
                found, ingestion=library.ingestion, tenant=tenant, reporter=bars, replace=replace
            )


async def _watch(
    settings: Settings, paths: list[Path], tenant: str, *, deletes: bool, interval_s: float
) -> None:
    from privategpt.services.watching import FolderWatch
    from privategpt.wiring import open_library

    async with open_library(settings) as library:
        watched = FolderWatch(
            paths=paths, ingestion=library.ingestion, tenant=tenant, deletes=deletes
        )
        while True:
            if changes := await watched.look():
                try:
                    with FileBars(_err, files=len(changes.files)) as bars:
                        result = await watched.follow(changes, reporter=bars)
                    _report(result, deleted=len(changes.gone))
                except Unavailable as error:
                    _err.print(error.message, style="red", markup=False)
            await asyncio.sleep(interval_s)


def _report(result: BatchResult, *, deleted: int = 0) -> None:
    for outcome in result.outcomes:
        for unread in outcome.stored.unread if outcome.stored else ():
            name = f"{outcome.file.name}/{unread.path}"
            _out.print(f"left out: {name}: {unread.reason}", markup=False)
    for failed in result.failures:
        _out.print(f"not ingested: {failed.file.name}: {failed.reason}", markup=False)
    _out.print(
        f"{result.ingested} ingested, {result.already_there} already there, "
        f"{len(result.failures)} failed" + (f", {deleted} deleted" if deleted else "")
    )


@cli.command()
def check(data_dir: DataDir = None) -> None:
    """Prove that every document has all its vectors, and every vector its document."""
    from privategpt.services.maintenance import Violation, violations
    from privategpt.wiring import open_library

    async def run(settings: Settings) -> list[Violation]:
        async with open_library(settings, purpose="check") as library:
            return await violations(state=library.state, index=library.index)

    found = _run(run(read_settings(data_dir=data_dir)))
    for violation in found:
        _out.print(f"{violation.invariant} {violation.item_id}: {violation.message}", markup=False)
    _out.print(
        "sound" if not found else f"{len(found)} violations; `privategpt reindex` mends them"
    )
    if found:
        raise typer.Exit(1)


@cli.command()
def reindex(data_dir: DataDir = None) -> None:
    """Rebuild the vector index from the stored text, with the configured embedding model."""
    from privategpt.services import maintenance
    from privategpt.wiring import open_library

    async def run(settings: Settings) -> int:
        async with open_library(settings, purpose="reindex") as library:
            totals = await library.state.chunk_totals()
            with progress_bar(_err) as progress:
                task = progress.add_task("Reindexing", total=sum(totals.values()), unit="chunks")
                return await maintenance.reindex(
                    state=library.state,
                    index=library.index,
                    embedding=library.embedding,
                    progress=lambda count: progress.advance(task, count),
                )

    _out.print(f"{_run(run(read_settings(data_dir=data_dir)))} chunks indexed")


@cli.command()
def optimize(data_dir: DataDir = None) -> None:
    """Compact the embedded vector index and build its graph, while no server runs."""
    from privategpt.wiring import optimize_index

    settings = read_settings(data_dir=data_dir)
    with _out.status("Optimizing the vector index"):
        changed = _run(optimize_index(settings))
    _out.print("optimized" if changed else "nothing to do")


@cli.command()
def models(
    verify: Annotated[bool, typer.Option(help="Check the bundled files' checksums.")] = False,
) -> None:
    """Show which models are configured and which are on disk."""
    from privategpt.wiring.describing import describe_models

    for line in describe_models(read_settings(), verify=verify):
        _out.print(line, markup=False)


def _run(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(work)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    if sys.platform == "win32":
        return asyncio.new_event_loop
    import uvloop

    return uvloop.new_event_loop


if __name__ == "__main__":
    main()
