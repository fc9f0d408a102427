"""A real searx server, from Debian's package, whose one engine is a small server of the tests.

Its settings are the package's example with `engines` replaced. That version (1.1.0) is older than
`search.formats`, so the launcher adds SearXNG's own rule for it: a format that is not listed is
refused with Flask's 403 page. Everything else is searx as it is installed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

SYSTEM_PYTHON = "/usr/bin/python3"
EXAMPLE_SETTINGS = Path("/usr/share/doc/searx/examples/settings.yml")
ENGINE_TIMEOUT_S = 2.0

LAUNCHER = """
import flask
from searx import settings
from searx.webapp import app
from werkzeug.serving import make_server

@app.before_request
def refuse_unlisted_formats():
    asked = flask.request.form.get("format", "html")
    if asked not in settings["search"]["formats"]:
        flask.abort(403)

server = make_server("127.0.0.1", 0, app, threaded=True)
print(server.server_port, flush=True)
server.serve_forever()
"""


@contextmanager
def running_searx(
    folder: Path, *, engine_url: str, formats: Sequence[str] = ("html", "json")
) -> Generator[str]:
    """The address of a searx that asks `engine_url`; its files are in `folder`.

    Skips where searx is not installed, except in CI, where it fails.
    """
    settings = folder / "settings.yml"
    # JSON is YAML too.
    settings.write_text(json.dumps(_settings(engine_url, formats)), encoding="utf-8")
    log = folder / "searx.log"
    with (
        log.open("w") as stderr,
        subprocess.Popen(
            [SYSTEM_PYTHON, "-c", LAUNCHER],
            env={"PATH": "/usr/bin:/bin", "SEARX_SETTINGS_PATH": str(settings)},
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            port = process.stdout.readline().strip()
            assert port, f"searx did not start:\n{log.read_text()}"
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def _settings(engine_url: str, formats: Sequence[str]) -> dict[str, Any]:
    if shutil.which("searx-run") is None or not EXAMPLE_SETTINGS.exists():
        assert not os.environ.get("CI"), "searx is not installed: apt-get install searx"
        pytest.skip("searx is not installed")
    settings = cast("dict[str, Any]", yaml.safe_load(EXAMPLE_SETTINGS.read_text(encoding="utf-8")))
    settings["server"]["secret_key"] = "of-a-test"
    # An engine that failed is asked again at once, or one test would be another's failure.
    settings["search"] |= {
        "formats": list(formats),
        "ban_time_on_fail": 0,
        "max_ban_time_on_fail": 0,
    }
    settings["engines"] = [
        {
            "name": "local",
            "engine": "json_engine",
            "shortcut": "lo",
            "categories": "general",
            "search_url": f"{engine_url}/search?q={{query}}",
            "results_query": "found",
            "url_query": "address",
            "title_query": "name",
            "content_query": "extract",
            "enable_http": True,
            "timeout": ENGINE_TIMEOUT_S,
        }
    ]
    return settings
