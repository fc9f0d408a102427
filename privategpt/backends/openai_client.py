"""OpenAI's client, for the servers that the operator names: language models, embeddings, rerankers.

By itself it takes an address, an account and a proxy from the environment, which only settings may
read, and follows redirects. What it carries here are people's documents and questions.
"""

from __future__ import annotations

import httpx2
import openai

from privategpt.domain.addresses import is_loopback_url

NO_KEY = "none"
"""Sent where the operator set no key: servers without keys ignore it, and the client insists."""
KEEPALIVE_S = 3.0
"""Shorter than the 5 s after which llama.cpp and uvicorn (vLLM) close an idle connection."""


def make_http_client(base_url: str, *, timeout: httpx2.Timeout) -> httpx2.AsyncClient:
    """Connections to the server at `base_url`, and to no other."""
    # A proxy from the environment is for the world outside: to loopback it would carry the
    # prompt off this machine. Redirects are not followed: they would carry our key elsewhere.
    return httpx2.AsyncClient(
        trust_env=not is_loopback_url(base_url),
        follow_redirects=False,
        limits=httpx2.Limits(
            max_connections=None, max_keepalive_connections=20, keepalive_expiry=KEEPALIVE_S
        ),
        timeout=timeout,
    )


def make_openai_client(
    base_url: str, *, api_key: str | None, http: httpx2.AsyncClient, max_retries: int = 0
) -> openai.AsyncOpenAI:
    """The client over `http`, which it closes with itself."""
    client = openai.AsyncOpenAI(
        base_url=base_url,
        api_key=api_key or NO_KEY,
        max_retries=max_retries,
        http_client=http,
        timeout=http.timeout,
    )
    # The client would take these from the environment.
    client.organization = None
    client.project = None
    return client
