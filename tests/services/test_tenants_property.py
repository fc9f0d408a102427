"""Three tenants do anything, in any order, over the real state store and vector index.

After every step each sees exactly what it put there itself, also where the server starts again.
`make crash` runs this for ten minutes.
"""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from privategpt.domain.documents import DocumentFilter
from privategpt.domain.errors import NotFound
from privategpt.domain.ports import Upload
from privategpt.services.ingestion import IngestRequest
from privategpt.services.maintenance import violations
from tests.fakes.tenants import shared_server

TENANTS = st.sampled_from(["ann", "bob", "cy"])
NAMES = st.sampled_from(["a.txt", "b.txt"])
TEXTS = st.sampled_from(["red green blue", "red green blue black", "one two three\fred two"])


@dataclass(frozen=True, slots=True)
class Mine:
    """A document as its tenant knows it."""

    doc_id: str
    file_id: str
    name: str
    text: str


class ThreeTenants(RuleBasedStateMachine):
    """`theirs` is what each tenant must see, in order."""

    items: Bundle[str] = Bundle("items")

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name)
        self.stack = AsyncExitStack()
        self.start()
        self.theirs: dict[str, list[Mine]] = {"ann": [], "bob": [], "cy": []}

    def teardown(self) -> None:
        self.runner.run(self.stack.aclose())
        self.runner.close()
        self.temporary.cleanup()

    def start(self) -> None:
        self.server = self.runner.run(
            self.stack.enter_async_context(shared_server(self.folder / "data"))
        )

    @rule()
    def start_again(self) -> None:
        self.runner.run(self.stack.aclose())
        self.start()

    @initialize(target=items)
    def an_id_that_never_was(self) -> str:
        return "00000000-0000-4000-8000-000000000000"

    @rule(target=items, tenant=TENANTS, name=NAMES, text=TEXTS, replaces=st.booleans())
    def ingest(self, tenant: str, name: str, text: str, *, replaces: bool) -> MultipleResults[str]:
        path = self.folder / "upload"
        path.write_text(text, encoding="utf-8")
        request = IngestRequest(
            upload=Upload(path=path, name=name), tenant=tenant, replaces=replaces
        )
        stored = self.runner.run(self.server.ingestion.ingest(request))
        file_id = stored.file.file_id
        pages = text.split("\f")
        new = [
            Mine(document.doc_id, file_id, name, pages[document.position])
            for document in stored.documents
        ]
        mine = self.theirs[tenant]
        if not any(each.file_id == file_id for each in mine):
            # A new file is nobody else's, under any of its ids.
            everybodys = {each.file_id for theirs in self.theirs.values() for each in theirs}
            assert file_id not in everybodys
            mine += new
        if replaces:
            mine[:] = [each for each in mine if each.name != name or each.file_id == file_id]
        return multiple(file_id, *(each.doc_id for each in new))

    @rule(item_id=items)
    def read(self, item_id: str) -> None:
        for tenant, mine in self.theirs.items():
            known = {each.doc_id: each.text for each in mine}
            reading = self.server.ingestion.document(tenant, item_id)
            if item_id in known:
                assert self.runner.run(reading).text == known[item_id]
            else:
                with pytest.raises(NotFound):
                    self.runner.run(reading)

    @rule(item_id=items)
    def list_behind(self, item_id: str) -> None:
        for tenant, mine in self.theirs.items():
            ids = [each.doc_id for each in mine]
            listing = self.server.ingestion.list_documents(tenant, after=item_id)
            if item_id in ids:
                found = [info.doc_id for info in self.runner.run(listing)]
                assert found == ids[ids.index(item_id) + 1 :]
            else:
                with pytest.raises(NotFound):
                    self.runner.run(listing)

    @rule(tenant=TENANTS, item_id=items)
    def delete(self, tenant: str, item_id: str) -> None:
        self._delete(tenant, item_id)

    @rule(tenant=TENANTS, item_id=consumes(items))
    def delete_for_good(self, tenant: str, item_id: str) -> None:
        self._delete(tenant, item_id)

    def _delete(self, tenant: str, item_id: str) -> None:
        mine = self.theirs[tenant]
        left = [each for each in mine if item_id not in (each.doc_id, each.file_id)]
        if left == mine:
            with pytest.raises(NotFound):
                self.runner.run(self.server.ingestion.delete(tenant, item_id))
        else:
            self.runner.run(self.server.ingestion.delete(tenant, item_id))
            self.theirs[tenant] = left

    @rule(tenant=TENANTS, item_ids=st.lists(items, max_size=4))
    def search_in(self, tenant: str, item_ids: list[str]) -> None:
        wanted = {
            each.doc_id
            for each in self.theirs[tenant]
            if each.doc_id in item_ids or each.file_id in item_ids
        }
        assert self._found(tenant, DocumentFilter(ids=frozenset(item_ids))) == wanted

    @invariant()
    def each_sees_its_own_and_nothing_else(self) -> None:
        for tenant, mine in self.theirs.items():
            listed = self.runner.run(self.server.ingestion.list_documents(tenant))
            assert [(i.doc_id, i.file_id) for i in listed] == [(m.doc_id, m.file_id) for m in mine]
            assert self._found(tenant, DocumentFilter()) == {each.doc_id for each in mine}

    @invariant()
    def the_index_holds_what_is_listed_and_nothing_else(self) -> None:
        found = violations(state=self.server.state, index=self.server.index)
        assert self.runner.run(found) == []

    def _found(self, tenant: str, filter_: DocumentFilter) -> set[str]:
        searching = self.server.retrieval.search(
            "red green blue one two three", tenant=tenant, limit=100, filter=filter_, neighbours=2
        )
        found = self.runner.run(searching).chunks
        known = {each.doc_id: each.text for each in self.theirs[tenant]}
        for hit in found:
            for chunk in (hit.chunk, *hit.previous, *hit.next):
                assert chunk.text in known[hit.document.doc_id]
        return {hit.chunk.doc_id for hit in found}


TestThreeTenants = ThreeTenants.TestCase
TestThreeTenants.settings = settings(
    max_examples=8,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
