"""The worker pool: a file can hurt its worker and nothing else."""

from __future__ import annotations

import asyncio
import io
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from privategpt.backends.parsers import worker as worker_module
from privategpt.backends.parsers import workers as workers_module
from privategpt.backends.parsers.reading import read_file
from privategpt.backends.parsers.transfer import (
    PREFIX,
    Frame,
    document_of_frame,
    error_of_frame,
    file_of_frames,
    frame_of_error,
    frame_of_upload,
    frames_of_file,
    read_frame,
    upload_of_frame,
)
from privategpt.backends.parsers.workers import WorkerParser
from privategpt.domain.documents import InnerFile, ParsedDocument, ParsedFile, UnreadFile
from privategpt.domain.errors import (
    CorruptFile,
    EmptyFile,
    EncryptedFile,
    EngineUnavailable,
    FileExceedsBounds,
    NoTextFound,
    PrivateGptError,
    UnsupportedFileType,
)
from privategpt.domain.ports import Parser, Upload
from tests.fakes.parser import FakeParser
from tests.fakes.parser_files import BOUNDS, flate_stream, lines, pdf_of_pages

MakeParser = Callable[..., WorkerParser]
_MEGABYTE = 1_000_000


@pytest.fixture
async def make() -> AsyncIterator[MakeParser]:
    """Makes parsers and closes them."""
    made: list[WorkerParser] = []

    def build(*, workers: int = 1, timeout_s: float = 60, memory_mb: int = 500) -> WorkerParser:
        parser = WorkerParser(
            workers=workers,
            timeout_s=timeout_s,
            memory_bytes=memory_mb * _MEGABYTE,
            max_pages=1_000,
        )
        made.append(parser)
        return parser

    yield build
    for parser in made:
        await parser.close()


def _upload(folder: Path, name: str, data: bytes | str) -> Upload:
    path = folder / f"{len(list(folder.iterdir()))}.bin"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return Upload(path=path, name=name)


class SilentPipe:
    """An upload whose reading never ends: stands in for one that its reader loops over."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.upload = Upload(path=path, name="slow.pipe")
        self._end: int | None = None

    async def begun(self) -> None:
        """Return once a worker reads it (opening for writing waits for a reader)."""
        self._end = await asyncio.to_thread(os.open, self.upload.path, os.O_WRONLY)

    def close(self) -> None:
        """Let go."""
        if self._end is not None:
            os.close(self._end)


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[SilentPipe]:
    """A pipe that stays open and silent until the test ends."""
    pipe = SilentPipe(tmp_path / "pipe")
    yield pipe
    pipe.close()


def _pids(parser: WorkerParser) -> list[int]:
    return [worker.pid for worker in parser.living]


def _endless_pdf() -> bytes:
    """A page that draws a form which draws a form ten times, eight deep: 10^8 letters."""

    def form(number: int) -> bytes:
        body = b"/X Do " * 10 if number < 14 else b"BT /F 9 Tf (x) Tj ET"
        resources = b"/Resources<</Font<</F 3 0 R>>/XObject<</X %d 0 R>>>>" % (number + 1)
        return (
            b"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]" + resources
            + b"/Length %d>>stream\n" % len(body) + body + b"\nendstream"
        )  # fmt: skip

    data = pdf_of_pages([b"/X Do " * 10], more=[form(n) for n in range(6, 15)])
    return data.replace(b"/F 3 0 R>>>>>>", b"/F 3 0 R>>/XObject<</X 6 0 R>>>>>>", 1)


@pytest.mark.parametrize("kind", ["workers", "fake"])
async def test_a_parser_reads_text_and_refuses_what_is_empty_or_broken(
    kind: str, make: MakeParser, tmp_path: Path
) -> None:
    parser: Parser = make() if kind == "workers" else FakeParser()
    parsed = await parser.parse(_upload(tmp_path, "a.txt", "Some text"))
    assert parsed.media_type == "text/plain"
    assert [document.text for document in parsed.documents] == ["Some text"]
    with pytest.raises(EmptyFile):
        await parser.parse(_upload(tmp_path, "a.txt", " \n"))
    with pytest.raises(CorruptFile):
        await parser.parse(_upload(tmp_path, "a.txt", b"\xef\xbb\xbfa\xff"))
    await parser.close()


async def test_what_the_worker_reads_arrives_unchanged(make: MakeParser, tmp_path: Path) -> None:
    upload = _upload(tmp_path, "a.md", "# Título\n\nçãé 中文 😀\n\n## Zwei\n")
    assert await make().parse(upload) == read_file(upload, BOUNDS)


async def test_a_worker_reads_many_files_and_starts_once(make: MakeParser, tmp_path: Path) -> None:
    parser = make()
    await parser.warm_up()
    await parser.warm_up()
    (pid,) = _pids(parser)
    for number in range(5):
        await parser.parse(_upload(tmp_path, "a.txt", f"text {number}"))
        with pytest.raises(UnsupportedFileType):
            await parser.parse(_upload(tmp_path, "a", b"\x7fELF" + b"\0" * 99))
    assert _pids(parser) == [pid]


async def test_files_are_read_side_by_side_up_to_the_number_of_workers(
    make: MakeParser, tmp_path: Path
) -> None:
    parser = make(workers=2)
    uploads = [_upload(tmp_path, "a.txt", f"text {n}") for n in range(8)]
    parsed = await asyncio.gather(*map(parser.parse, uploads))
    assert [p.documents[0].text for p in parsed] == [f"text {n}" for n in range(8)]
    assert len(_pids(parser)) <= 2


async def test_a_file_that_takes_too_long_is_refused_and_the_next_is_read(
    make: MakeParser, tmp_path: Path, pipe: SilentPipe
) -> None:
    parser = make(timeout_s=1.5)
    await parser.parse(_upload(tmp_path, "a.txt", "warm"))
    with pytest.raises(FileExceedsBounds, match=r"'slow\.pipe' took longer than 1.5 seconds"):
        await parser.parse(pipe.upload)
    assert (await parser.parse(_upload(tmp_path, "a.txt", "next"))).documents


async def test_a_file_that_takes_too_much_memory_is_refused_and_the_next_is_read(
    make: MakeParser, tmp_path: Path
) -> None:
    parser = make(memory_mb=150)
    with pytest.raises(FileExceedsBounds, match="memory"):
        await parser.parse(_upload(tmp_path, "laughs.pdf", _endless_pdf()))
    assert (await parser.parse(_upload(tmp_path, "a.txt", "next"))).documents


async def test_memory_that_runs_out_in_python_is_answered(make: MakeParser, tmp_path: Path) -> None:
    parser = make(memory_mb=60)
    with pytest.raises(FileExceedsBounds, match="memory"):
        await parser.parse(_upload(tmp_path, "a.txt", b"some words " * 8_000_000))
    assert (await parser.parse(_upload(tmp_path, "a.txt", "next"))).documents


@pytest.mark.parametrize(
    ("number", "error"),
    [(signal.SIGKILL, FileExceedsBounds), (signal.SIGSEGV, CorruptFile)],
)
async def test_a_worker_killed_over_a_file_costs_that_file_alone(
    number: signal.Signals,
    error: type[PrivateGptError],
    make: MakeParser,
    tmp_path: Path,
    pipe: SilentPipe,
) -> None:
    parser = make()
    await parser.parse(_upload(tmp_path, "a.txt", "warm"))
    (pid,) = _pids(parser)
    task = asyncio.create_task(parser.parse(pipe.upload))
    await pipe.begun()
    os.kill(pid, number)
    with pytest.raises(error, match=r"slow\.pipe"):
        await task
    assert (await parser.parse(_upload(tmp_path, "a.txt", "next"))).documents


async def test_a_worker_killed_while_idle_costs_nothing(make: MakeParser, tmp_path: Path) -> None:
    parser = make()
    await parser.parse(_upload(tmp_path, "a.txt", "warm"))
    os.kill(_pids(parser)[0], signal.SIGKILL)
    assert (await parser.parse(_upload(tmp_path, "a.txt", "next"))).documents


async def test_cancelling_stops_the_work_at_once(
    make: MakeParser, tmp_path: Path, pipe: SilentPipe
) -> None:
    parser = make()
    await parser.parse(_upload(tmp_path, "a.txt", "warm"))
    (worker,) = parser.living
    task = asyncio.create_task(parser.parse(pipe.upload))
    await pipe.begun()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await worker.ended() == -signal.SIGKILL
    assert (await parser.parse(_upload(tmp_path, "a.txt", "next"))).documents


async def test_closing_leaves_no_process_and_refuses_what_comes_after(
    make: MakeParser, tmp_path: Path, pipe: SilentPipe
) -> None:
    parser = make(workers=2)
    await parser.parse(_upload(tmp_path, "a.txt", "warm"))
    task = asyncio.create_task(parser.parse(pipe.upload))
    await pipe.begun()
    pids = _pids(parser)
    await parser.close()
    with pytest.raises(EngineUnavailable, match="stopped"):
        await task
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    with pytest.raises(EngineUnavailable):
        await parser.parse(_upload(tmp_path, "a.txt", "late"))
    await parser.warm_up()
    assert _pids(parser) == []


async def test_a_worker_that_cannot_start_is_no_fault_of_the_file(
    make: MakeParser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers_module, "_MODULE", "privategpt.no_such_module")
    with pytest.raises(EngineUnavailable, match="does not start"):
        await make().parse(_upload(tmp_path, "a.txt", "text"))
    with pytest.raises(EngineUnavailable, match="does not start"):
        await make().warm_up()


async def test_an_upload_that_is_not_there_is_an_error_and_no_crash(
    make: MakeParser, tmp_path: Path
) -> None:
    parser = make()
    with pytest.raises(CorruptFile, match="No such file"):
        await parser.parse(Upload(path=tmp_path / "gone", name="a.txt"))
    assert len(_pids(parser)) == 1


async def test_a_worker_ends_when_the_server_does_or_when_it_has_grown_large(
    tmp_path: Path,
) -> None:
    arguments = ["--memory-bytes", "500000000", "--max-pages", "9"]
    job = frame_of_upload(_upload(tmp_path, "a.txt", "text")).encode()
    for extra, jobs, answers in (
        ([], job, 1),
        (["--retire-above-bytes", "1"], job + job, 1),
        ([], b"", 0),
    ):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "privategpt.backends.parsers.worker", *arguments, *extra),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(jobs)
        for _ in range(1 + answers * 3):
            header, text = PREFIX.unpack(await process.stdout.readexactly(PREFIX.size))
            await process.stdout.readexactly(header + text)
        if not extra:
            process.stdin.close()
        assert await process.wait() == 0
        assert await process.stdout.read() == b""


def test_a_worker_gets_none_of_the_servers_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIVATEGPT_LLM__API_KEY", "sentinel-4711")
    assert not any(
        "sentinel-4711" in value for value in workers_module.worker_environment().values()
    )


async def test_a_worker_does_not_take_the_servers_size_for_its_own(
    make: MakeParser, tmp_path: Path
) -> None:
    ballast = bytearray(os.urandom(1024) * 500_000)  # a server with models in memory
    parser = make()
    await parser.warm_up()
    (pid,) = _pids(parser)
    await parser.parse(_upload(tmp_path, "a.txt", "text"))
    await parser.parse(_upload(tmp_path, "b.txt", "text"))
    assert _pids(parser) == [pid]
    assert ballast


async def test_a_worker_imports_nothing_heavy() -> None:
    code = (
        "import sys, privategpt.backends.parsers.worker;"
        "print([m for m in ('torch', 'numpy', 'pydantic', 'kreuzberg') if m in sys.modules])"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert out.decode().strip() == "[]"


class TestInThisProcess:
    """The worker's own code, run here, where its every line is seen."""

    @pytest.fixture(autouse=True)
    def limits_of_this_process(self) -> Iterator[None]:
        """A job bounds the memory of its process; this one goes on to other tests."""
        before = resource.getrlimit(resource.RLIMIT_AS)
        yield
        resource.setrlimit(resource.RLIMIT_AS, before)

    def test_a_job_is_answered_with_its_documents(self, tmp_path: Path) -> None:
        frames = self._answers(frame_of_upload(_upload(tmp_path, "a.txt", "text")))
        assert frames[0] == Frame({"begun": True})
        assert document_of_frame(frames[1]).text == "text"
        assert frames[2].header["media_type"] == "text/plain"

    def test_a_refusal_keeps_its_class_and_words(self, tmp_path: Path) -> None:
        scan = pdf_of_pages([b"0 0 1 1 re f"])
        error = error_of_frame(self._answers(frame_of_upload(_upload(tmp_path, "a", scan)))[1])
        assert isinstance(error, NoTextFound)
        assert "OCR" in error.message

    def test_a_bomb_is_refused(self, tmp_path: Path) -> None:
        bomb = pdf_of_pages([lines("x")], more=[flate_stream(b" " * 5_000_000)])
        error = error_of_frame(self._answers(frame_of_upload(_upload(tmp_path, "a", bomb)))[1])
        assert isinstance(error, FileExceedsBounds)

    def test_a_missing_upload_is_answered(self, tmp_path: Path) -> None:
        job = frame_of_upload(Upload(path=tmp_path / "gone", name="x"))
        assert isinstance(error_of_frame(self._answers(job)[1]), CorruptFile)

    def test_running_out_of_memory_is_answered_and_ends_the_worker(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def swell(*_: object) -> None:
            raise MemoryError

        monkeypatch.setattr(worker_module, "read_file", swell)
        answers = io.BytesIO()
        job = frame_of_upload(_upload(tmp_path, "a.txt", "text"))
        with pytest.raises(SystemExit):
            worker_module.answer(job, answers, BOUNDS, 10**12)
        answers.seek(0)
        read_frame(answers)
        frame = read_frame(answers)
        assert frame is not None
        assert isinstance(error_of_frame(frame), FileExceedsBounds)

    def _answers(self, job: Frame) -> list[Frame]:
        answers = io.BytesIO()
        worker_module.answer(job, answers, BOUNDS, 10**12)
        answers.seek(0)
        frames: list[Frame] = []
        while frame := read_frame(answers):
            frames.append(frame)
        return frames


@pytest.mark.parametrize("error", [EmptyFile, EncryptedFile, UnsupportedFileType, CorruptFile])
def test_errors_pass_the_pipe_with_their_class(error: type[PrivateGptError]) -> None:
    passed = error_of_frame(frame_of_error(error("why")))
    assert type(passed) is error
    assert passed.message == "why"


def test_frames_survive_the_pipe() -> None:
    upload = Upload(path=Path("x"), name="ü\ud800", media_type="a/b", password="p")
    stream = io.BytesIO(frame_of_upload(upload).encode() + Frame({"a": 1}, "text 😀").encode())
    first, second = read_frame(stream), read_frame(stream)
    assert first is not None
    assert upload_of_frame(first) == upload
    assert second == Frame({"a": 1}, "text 😀")
    assert read_frame(stream) is None
    nothing = ParsedFile(media_type="x/y", documents=())
    last = Frame({"media_type": "x/y", "metadata": {}, "unread": []})
    assert list(frames_of_file(nothing)) == [last]


def test_files_inside_files_survive_the_pipe() -> None:
    parsed = ParsedFile(
        media_type="application/zip",
        documents=(
            ParsedDocument(text="a"),
            ParsedDocument(text="b", inner=InnerFile("x/b.txt", "text/plain", 1, "ab12")),
        ),
        unread=(UnreadFile("c.bin", "why"),),
    )
    *frames, last = frames_of_file(parsed)
    assert file_of_frames([document_of_frame(frame) for frame in frames], last) == parsed
