"""Asks a server everything openai 1.109.1 can and prints what came back as JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

import openai

base_url = sys.argv[1]
client = openai.OpenAI(base_url=base_url, api_key="unused", max_retries=0, timeout=20)
model = "private-gpt"
messages: Any = [{"role": "user", "content": "Hi"}]
cited = {"use_context": True, "citation_style": ["annotations", "citations"]}


def failure(wrong: dict[str, Any]) -> list[Any]:
    try:
        client.chat.completions.create(**wrong)
    except openai.APIStatusError as error:
        return [type(error).__name__, error.status_code, error.code, error.param]
    raise AssertionError("The server took it")


plain: Any = client.chat.completions.create(model=model, messages=messages, extra_body=cited)
chunks = list(
    client.chat.completions.create(
        model=model, messages=messages, stream=True, stream_options={"include_usage": True}
    )
)
with client.chat.completions.stream(model=model, messages=messages, extra_body=cited) as stream:
    final: Any = stream.get_final_completion()
embeddings = client.embeddings.create(model=model, input=["abc", "d"])

print(
    json.dumps(
        {
            "version": openai.__version__,
            "plain": plain.choices[0].message.content,
            "annotations": [
                entry.url_citation.title for entry in plain.choices[0].message.annotations
            ],
            "sources": len(plain.sources),
            "citations": len(plain.citations),
            "streamed": "".join(
                chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices
            ),
            "usage": chunks[-1].usage.total_tokens if chunks[-1].usage else None,
            "helper": final.choices[0].message.content,
            "helper_role": final.choices[0].message.role,
            "helper_annotations": [
                entry.url_citation.title for entry in final.choices[0].message.annotations
            ],
            "legacy": client.completions.create(model=model, prompt="Hi").choices[0].text,
            "embeddings": [item.embedding for item in embeddings.data],
            "models": [item.id for item in client.models.list()],
            "retrieved": client.models.retrieve("org/model:tag").id,
            "failure": failure({"model": "gpt-9", "messages": messages}),
            "unfit": failure({"model": model, "messages": []}),
        }
    )
)
