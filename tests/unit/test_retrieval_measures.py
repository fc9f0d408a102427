"""What the retrieval evals count, on rankings whose measures are known by hand."""

from __future__ import annotations

import json
from datetime import date
from math import log2
from pathlib import Path

import pytest

from evals.retrieval.fusions import OURS, distributions, reciprocal_ranks
from evals.retrieval.measures import Quality, mean, quality
from evals.retrieval.sets import find_sets, read_set
from evals.retrieval.table import Measured, read_last, write


def test_relevant_documents_in_front_are_a_perfect_ranking() -> None:
    assert quality(["a", "b", "x"], {"a": 1.0, "b": 1.0}) == Quality(1.0, 1.0, 1.0, 1.0)


def test_a_relevant_document_in_third_place_is_discounted() -> None:
    found = quality(["x", "y", "a"], {"a": 1.0, "b": 1.0})
    ideal = 1 + 1 / log2(3)
    assert found.ndcg_10 == pytest.approx((1 / 2) / ideal)
    assert found.recall_10 == 0.5
    assert found.mrr_10 == pytest.approx(1 / 3)


def test_what_comes_after_the_tenth_counts_for_the_deep_recall_only() -> None:
    ranking = [*(f"x{n}" for n in range(10)), "a"]
    assert quality(ranking, {"a": 1.0}) == Quality(0.0, 0.0, 1.0, 0.0)


def test_higher_gains_belong_in_front() -> None:
    gains = {"a": 3.0, "b": 1.0}
    assert quality(["b", "a"], gains).ndcg_10 < quality(["a", "b"], gains).ndcg_10 == 1.0


def test_the_mean_is_over_queries() -> None:
    assert mean([Quality(1, 1, 1, 1), Quality(0, 0.5, 1, 0)]) == Quality(0.5, 0.75, 1.0, 0.5)


def test_reciprocal_ranks_add_up() -> None:
    fused = reciprocal_ranks({"a": 0.9, "b": 0.1}, {"b": 7.0})
    assert [id_ for id_, _ in fused] == ["b", "a"]
    assert [score for _, score in fused] == pytest.approx([1 / 62 + 1 / 61, 1 / 61])


def test_distributions_put_the_mean_in_the_middle() -> None:
    fused = distributions({"a": 3.0, "b": 2.0, "c": 1.0}, {"d": 5.0})
    scores = dict(fused)
    assert scores == {"a": pytest.approx(2 / 3), "b": 0.5, "c": pytest.approx(1 / 3), "d": 0.5}


def test_a_set_is_read_with_its_judged_queries_only(tmp_path: Path) -> None:
    home = tmp_path / "group" / "small"
    (home / "qrels").mkdir(parents=True)
    (home / "corpus.jsonl").write_text(json.dumps({"_id": "d", "title": "T", "text": "x"}))
    queries = [{"_id": "q", "text": "?"}, {"_id": "unjudged", "text": "!"}]
    (home / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    (home / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t1\nq\te\t0\n")
    assert find_sets(tmp_path) == ["group/small"]
    read = read_set(tmp_path, "group/small")
    assert (read.queries, read.relevant) == ({"q": "?"}, {"q": {"d": 1.0}})
    assert read.corpus["d"].whole == "T x"


def test_results_of_a_day_are_kept_together_and_the_last_day_is_found(tmp_path: Path) -> None:
    monday, tuesday = date(2026, 3, 2), date(2026, 3, 3)
    one = Measured("one", "whole", OURS, Quality(0.1, 0.2, 0.3, 0.4))
    two = Measured("two", "whole", OURS, Quality(0.5, 0.6, 0.7, 0.8))
    assert read_last(tmp_path, before=tuesday) == []
    write(tmp_path, [one], model="m", day=monday)
    write(tmp_path, [two], model="m", day=monday)
    write(tmp_path, [two], model="m", day=tuesday)
    assert read_last(tmp_path, before=tuesday) == [one, two]
    assert read_last(tmp_path, before=monday) == []
