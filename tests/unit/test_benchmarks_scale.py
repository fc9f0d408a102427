"""The scale benchmark measures what it says: its passages, its vectors, its notes, its tables."""

from __future__ import annotations

import json
from contextlib import aclosing
from pathlib import Path

import pytest
import qdrant_edge as qe
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.scale.cheap import HashedWords, ParagraphTokens
from benchmarks.scale.corpus import Passage, as_paragraphs, as_sections, endless, questions
from benchmarks.scale.filling import Filled, fill, store_large
from benchmarks.scale.growth import write_again
from benchmarks.scale.notebook import Notebook
from benchmarks.scale.quantisation import nearest, read_vectors
from benchmarks.scale.real import write_folder
from benchmarks.scale.records import every_record
from benchmarks.scale.report import FROM, TO, put_into, report
from privategpt.backends.vectors.points import DENSE, WORDS
from privategpt.chunking.splitter import split
from privategpt.domain.documents import ParsedDocument

WORDS_OF_TEXT = st.lists(
    st.text(st.characters(categories=["L", "N"], max_codepoint=0x24F), min_size=1, max_size=12),
    min_size=1,
    max_size=30,
)


def corpus_of(folder: Path, texts: list[str]) -> Path:
    path = folder / "corpus.jsonl"
    lines = [json.dumps({"title": f"Title {n}", "text": text}) for n, text in enumerate(texts)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@given(st.lists(WORDS_OF_TEXT, min_size=1, max_size=20))
def test_a_passage_of_a_file_becomes_a_chunk_of_its_own(found: list[list[str]]) -> None:
    passages = [Passage(title="", text=" ".join(words) + ".") for words in found]
    document = ParsedDocument(text=as_paragraphs(passages))
    chunks = split(document, doc_id="doc", tokenizer=ParagraphTokens())
    assert [chunk.text for chunk in chunks] == [passage.text for passage in passages]


def test_a_second_round_of_the_corpus_is_another_edition(tmp_path: Path) -> None:
    source = endless(corpus_of(tmp_path, ["One.", "Two."]))
    assert [next(source).text for _ in range(5)] == [
        "One.",
        "Two.",
        "One. Edition 2.",
        "Two. Edition 2.",
        "One. Edition 3.",
    ]


def test_questions_are_words_from_the_middle_of_passages(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, ["one two three four five", "six"])
    assert questions(corpus, words=3) == ["two three four", "six"]


def test_real_files_have_a_heading_for_every_passage(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, [f"Text {n}." for n in range(150)])
    folder = write_folder(tmp_path / "files", corpus)
    first, second = sorted(folder.iterdir())
    assert first.read_text().startswith("## Title 0\n\nText 0.\n\n## Title 1\n")
    assert second.read_text() == as_sections(
        [Passage(f"Title {n}", f"Text {n}.") for n in range(100, 150)]
    )


async def test_texts_that_share_words_are_near_and_vectors_are_the_same_every_time() -> None:
    model, again = (HashedWords(dimensions=64, fingerprint="x") for _ in range(2))
    texts = ["the cat sat", "the cat slept", "rain tomorrow", ""]
    vectors = (await model.embed_passages(texts)).vectors
    assert vectors == (await again.embed_passages(texts)).vectors
    assert [sum(v * v for v in vector) for vector in vectors] == pytest.approx([1.0] * 4)
    near, far = (sum(map(float.__mul__, vectors[0], other)) for other in vectors[1:3])
    assert near > 0.4 > far


async def filled(data_dir: Path, corpus: Path, *, first: int, last: int) -> list[Filled]:
    model = HashedWords(dimensions=16, fingerprint="hashed")
    steps = fill(data_dir, corpus, embedding=model, first=first, last=last)
    async with aclosing(steps) as told:
        return [step async for step in told]


async def test_a_library_grows_and_what_is_there_takes_no_time_that_counts(
    tmp_path: Path,
) -> None:
    corpus = corpus_of(tmp_path, [f"Word{n} and word{n + 1}." for n in range(300)])
    library = tmp_path / "library"
    [step] = await filled(library, corpus, first=0, last=200)
    assert (step.chunks, step.new) == (200, 200)
    assert step.pace > 0
    [step] = await filled(library, corpus, first=0, last=300)
    assert (step.chunks, step.new) == (300, 100)

    model = HashedWords(dimensions=16, fingerprint="hashed")
    await store_large(library, corpus, embedding=model, passages=50)
    plain = tmp_path / "plain"
    write_again(library, plain, quantization="none")
    assert records(library) == records(plain)
    assert len(records(plain)) == 350
    assert (plain / "state.db").exists()
    codes = [(folder / "vectors" / "edge_config.json").read_text() for folder in (library, plain)]
    assert ["turbo" in config for config in codes] == [True, False]


def records(data_dir: Path) -> dict[str, object]:
    shard = qe.EdgeShard.load(str(data_dir / "vectors"))
    found: dict[str, object] = {}
    for record in every_record(shard, vectors=[DENSE, WORDS], with_payload=True):
        assert isinstance(record.vector, dict)
        words = record.vector[WORDS]
        assert isinstance(words, qe.SparseVector)
        weights = sorted(zip(words.indices, words.values, strict=True))
        found[str(record.id)] = (record.vector[DENSE], weights, record.payload)
    shard.close()
    return found


def test_the_truth_is_the_best_by_cosine(tmp_path: Path) -> None:
    shard = qe.EdgeShard.create(
        str(tmp_path / "shard"),
        qe.EdgeConfig(vectors={DENSE: qe.EdgeVectorParams(size=2, distance=qe.Distance.Cosine)}),
    )
    points = [qe.Point(id=n, vector={DENSE: [1.0, n / 10]}) for n in range(30)]
    shard.update(qe.UpdateOperation.upsert_points(points))
    shard.close()
    vectors = read_vectors(tmp_path / "shard")
    assert vectors.shape == (30, 2)
    assert nearest(vectors, vectors[:1]) == [set(range(10))]


def test_of_a_measure_that_was_taken_twice_the_last_holds(tmp_path: Path) -> None:
    notebook = Notebook(tmp_path / "figures.jsonl")
    assert notebook.find("a") is None
    notebook.note("a", {"x": 1.0})
    notebook.note("b", {"y": "yes"})
    notebook.note("a", {"x": 2.0})
    assert Notebook(tmp_path / "figures.jsonl").all() == {"a": {"x": 2.0}, "b": {"y": "yes"}}


def test_tables_have_a_column_for_every_size_in_order_and_no_empty_lines() -> None:
    text = report(
        {
            "served 20000": {"ready_s": 5.25, "above_p50_ms": 7.0, "above_p95_ms": 9.876},
            "served 1000": {"ready_s": 4.0, "above_p50_ms": 0.5, "above_p95_ms": 123.4},
            "filled 1000": {"new": 1000, "seconds": 4.0, "processor_s": 1.5, "index_mb": 5.0},
            "quantization none": {"vectors": 1000.0, "plain_recall": 1.0},
            "quantization turbo": {"vectors": 1000.0, "plain_recall": 0.9876},
            "real killed": {"files": 3.0, "chunks": 200.0},
            "real": {
                "files": 10.0,
                "chunks": 900.0,
                "new_chunks": 700.0,
                "seconds": 14.0,
                "processor_s": 7.0,
                "already_there": 3.0,
                "check": "sound",
            },
        }
    )
    assert "| chunks | 1,000 | 20,000 |\n| --- | ---: | ---: |\n" in text
    assert "| ready after a start, s | 4 | 5.25 |" in text
    assert "p50 (p95), ms | 0.500 (123) | 7 (9.88) |" in text
    assert "| stored a second, model left out | 250 |" in text
    assert "| processor time to store one, ms | 1.50 |" in text
    assert "| recall@10 as written | 1 | 0.988 |" in text
    assert "once with 3 files and 200 chunks" in text
    assert "700 of them in 14 s: 50 a second, 10 ms of processor time each" in text
    assert "delete" not in text


def test_tables_go_between_the_marks_of_a_page() -> None:
    page = f"# Scale\n\n{FROM}\nold\n{TO}\nend\n"
    assert put_into(page, "new") == f"# Scale\n\n{FROM}\n\nnew\n\n{TO}\nend\n"
    with pytest.raises(ValueError, match="marks"):
        put_into("# Scale\n", "new")
