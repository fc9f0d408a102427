"""GET /docs and /redoc: the API in a browser, from this machine alone.

FastAPI's own pages load their scripts from a CDN, so they are blank without a network, and a
stranger's script would run beside everything that the API lets a page read.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from fastapi import APIRouter, Response
from fastapi.openapi.docs import get_redoc_html, get_swagger_ui_html
from starlette.responses import FileResponse

router = APIRouter(include_in_schema=False)

TITLE = "PrivateGPT"
# Relative, so that the pages work below any path of a proxy.
SCHEMA = "openapi.json"
ASSETS = "docs/assets"
_HEADERS = {
    # The pages' own script and the styles that it makes are inline; ReDoc compiles schemas.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
        "style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src data:; "
        "connect-src 'self'; worker-src blob:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}

Asset = Literal["swagger-ui-bundle.js", "swagger-ui.css", "redoc.standalone.js", "favicon.png"]


@router.get("/docs")
async def swagger() -> Response:
    """Every operation, to read and to try."""
    page = get_swagger_ui_html(
        openapi_url=SCHEMA,
        title=TITLE,
        swagger_js_url=f"{ASSETS}/swagger-ui-bundle.js",
        swagger_css_url=f"{ASSETS}/swagger-ui.css",
        swagger_favicon_url=f"{ASSETS}/favicon.png",
    )
    page.headers.update(_HEADERS)
    return page


@router.get("/redoc")
async def redoc() -> Response:
    """Every operation, to read."""
    page = get_redoc_html(
        openapi_url=SCHEMA,
        title=TITLE,
        redoc_js_url=f"{ASSETS}/redoc.standalone.js",
        redoc_favicon_url=f"{ASSETS}/favicon.png",
        with_google_fonts=False,
    )
    page.headers.update(_HEADERS)
    return page


@router.get("/docs/assets/{asset}")
async def asset(asset: Asset) -> Response:
    """A file that the pages need."""
    return FileResponse(_assets() / asset, headers={"Cache-Control": "max-age=86400"})


@cache
def _assets() -> Path:
    """Where the package with the files is; of its code nothing is used."""
    found = find_spec("fastapi_offline")
    if found is None or found.origin is None:
        raise FileNotFoundError("The package fastapi-offline is not installed")
    return Path(found.origin).parent / "static"
