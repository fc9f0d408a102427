"""Reading pictures of text with Tesseract, the program, where it is installed.

It runs as a process of its own for every page, within limits of time and memory: the pictures
come from whoever uploads, and it is native code.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from privategpt.domain.errors import FileExceedsBounds, InvalidSettings

PIXELS_PER_INCH = 300
"""What Tesseract's models were trained on."""

MAX_PIXELS = 25_000_000
"""Of what is given to Tesseract: A3 at 300 dots per inch has 17 million."""

MEMORY_BYTES = 1_000_000_000
"""Address space of Tesseract; a page of A4 takes 150 MB."""

_COMMAND = "tesseract"
_ORIENTATION = "osd"  # the data that tells which way a page is turned
_TURN_AND_READ, _READ = "1", "3"


@dataclass(frozen=True, slots=True)
class OcrOptions:
    """The program, the languages it reads, and how long one page may take."""

    command: str
    languages: tuple[str, ...]
    page_timeout_s: float
    turns_pages: bool = True


@dataclass(frozen=True, slots=True)
class Picture:
    """A page in grey, a byte for a pixel, row by row; 0 is black."""

    width: int
    height: int
    pixels: bytes

    @property
    def is_blank(self) -> bool:
        """True where every pixel is the same."""
        return self.pixels.count(self.pixels[:1]) == len(self.pixels)


def find_tesseract(languages: Sequence[str], *, page_timeout_s: float) -> OcrOptions | None:
    """Tesseract with these languages; None where it is not installed.

    Raises `InvalidSettings` where it is there and lacks one of them.
    """
    command = shutil.which(_COMMAND)
    if command is None:
        return None
    listed = subprocess.run(  # noqa: S603 (the program found above, no shell)
        [command, "--list-langs"], capture_output=True, text=True, check=False, timeout=60
    )
    known = set(listed.stdout.split("\n")[1:])
    if missing := sorted(set(languages) - known):
        raise InvalidSettings(
            f"Tesseract does not know the languages {missing!r} of 'ingestion.ocr_languages': "
            f"install their data (Debian: tesseract-ocr-{missing[0]}), or name others of "
            f"{sorted(known - {'', _ORIENTATION})!r}"
        )
    return OcrOptions(
        command=command,
        languages=tuple(languages),
        page_timeout_s=page_timeout_s,
        turns_pages=_ORIENTATION in known,
    )


class Tesseract:
    """Reads pictures, one at a time. `before_page` is called before each."""

    def __init__(self, options: OcrOptions, *, before_page: Callable[[], None]) -> None:
        self._options = options
        self._before_page = before_page
        self._running: subprocess.Popen[bytes] | None = None

    def read(self, picture: Picture) -> str:
        """The text on the picture, "" where there is none.

        Raises `FileExceedsBounds` where the page takes too long or too much memory.
        """
        if picture.is_blank:
            return ""
        self._before_page()
        process = subprocess.Popen(  # noqa: S603 (a list, no shell; the picture is its input)
            self._arguments(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # Its threads win nothing on one page and take a core from the server each.
            env=os.environ | {"OMP_THREAD_LIMIT": "1"},
        )
        self._running = process
        self._limit(process.pid)
        header = b"P5\n%d %d\n255\n" % (picture.width, picture.height)
        try:
            text, _ = process.communicate(
                header + picture.pixels, timeout=self._options.page_timeout_s
            )
        except subprocess.TimeoutExpired as error:
            raise FileExceedsBounds(
                f"OCR of a page took longer than {self._options.page_timeout_s:g} seconds"
            ) from error
        finally:
            self.stop()
        if process.returncode:
            raise FileExceedsBounds("OCR broke off: a page takes more memory or time than allowed")
        return text.decode("utf-8", "replace")

    def stop(self) -> None:
        """End the page that is being read, if one is."""
        process, self._running = self._running, None
        if process is not None and process.returncode is None:
            process.kill()
            process.wait()

    def _arguments(self) -> list[str]:
        layout = _TURN_AND_READ if self._options.turns_pages else _READ
        return [
            self._options.command,
            *("stdin", "stdout", "-l", "+".join(self._options.languages)),
            *("--psm", layout, "--dpi", str(PIXELS_PER_INCH)),
        ]

    def _limit(self, pid: int) -> None:
        """Where the worker is killed, its Tesseract ends by itself, out of processor time."""
        if not hasattr(resource, "prlimit"):
            return
        seconds = int(self._options.page_timeout_s) + 1
        with suppress(ProcessLookupError, PermissionError):
            resource.prlimit(pid, resource.RLIMIT_CPU, (seconds, seconds))
            resource.prlimit(pid, resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
