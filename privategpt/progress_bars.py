"""What a person sees of a long command."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from privategpt.domain import jobs
from privategpt.services.batch import NamedFile

NAME_CHARACTERS = 40


def progress_bar(console: Console) -> Progress:
    """A bar for each task; the field `unit` of a task says what is counted."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}"),
        TimeRemainingColumn(),
        console=console,
    )


class FileBars:
    """A `Reporter` on a terminal: a bar of all files, and one for each that is in work."""

    def __init__(self, console: Console, *, files: int) -> None:
        self._files = progress_bar(console)
        self._all = self._files.add_task("Ingesting", total=files, unit="files")
        self._bars: dict[NamedFile, TaskID] = {}

    def __enter__(self) -> Self:
        self._files.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._files.stop()

    def began(self, file: NamedFile) -> None:
        """A bar without an end: it is being read."""
        name = file.name[-NAME_CHARACTERS:]
        self._bars[file] = self._files.add_task(name, total=None, unit="chunks")

    def advanced(self, file: NamedFile, progress: jobs.Progress) -> None:
        """So many chunks of so many."""
        self._files.update(
            self._bars[file], completed=progress.chunks_done, total=progress.chunks_total
        )

    def ended(self, file: NamedFile) -> None:
        """Its bar is gone, and one more of all is done."""
        self._files.remove_task(self._bars.pop(file))
        self._files.advance(self._all)
