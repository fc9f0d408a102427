"""The pages that show the API in a browser ask nobody but this server."""

from __future__ import annotations

import re
from typing import get_args

import httpx
import pytest

from privategpt.api.routes.docs import Asset


@pytest.mark.parametrize("page", ["/docs", "/redoc"])
async def test_a_page_loads_everything_from_this_server(
    client: httpx.AsyncClient, page: str
) -> None:
    response = await client.get(page)
    assert response.status_code == 200
    assert "://" not in response.text
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "://" not in policy
    wanted = re.findall(r"(?:src|href|url|spec-url)\s*[=:]\s*[\"']([^\"']+)", response.text)
    assert "openapi.json" in wanted
    for address in wanted:
        loaded = await client.get(str(httpx.URL(f"http://gpt.test{page}").join(address)))
        assert loaded.status_code == 200, address


@pytest.mark.parametrize("asset", get_args(Asset))
async def test_a_file_of_the_pages_is_there_with_its_type(
    client: httpx.AsyncClient, asset: str
) -> None:
    response = await client.get(f"/docs/assets/{asset}")
    kind = {"js": "javascript", "css": "css", "png": "png"}[asset.rpartition(".")[2]]
    assert (response.status_code, kind in response.headers["content-type"]) == (200, True)


@pytest.mark.parametrize("asset", ["..%2fcore.py", "core.py", "x"])
async def test_no_other_file_is(client: httpx.AsyncClient, asset: str) -> None:
    assert (await client.get(f"/docs/assets/{asset}")).status_code in {400, 404}
