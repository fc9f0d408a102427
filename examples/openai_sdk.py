"""Ask a document with the OpenAI SDK: `pip install openai`, then run this beside the server."""

import os
from pathlib import Path

import httpx
from openai import OpenAI

BASE_URL = os.environ.get("BASE_URL", "http://127.0.0.1:8001")
HANDBOOK = Path(__file__).with_name("handbook.md")

with HANDBOOK.open("rb") as opened:
    upload = httpx.post(f"{BASE_URL}/v1/ingest", files={"file": opened}, timeout=60)
upload.raise_for_status()
file_id = upload.json()["data"][0]["doc_metadata"]["file_id"]

client = OpenAI(base_url=f"{BASE_URL}/v1", api_key="none")
answer = client.chat.completions.create(
    model="private-gpt",
    messages=[{"role": "user", "content": "How many books may a reader borrow?"}],
    max_tokens=60,
    extra_body={"use_context": True, "context_filter": {"docs_ids": [file_id]}},
)
print(answer.choices[0].message.content)
for chunk in answer.choices[0].sources:  # a field of ours, so it is a plain list of dicts
    print("-", chunk["document"]["doc_metadata"]["file_name"], round(chunk["score"], 3))

stream = client.chat.completions.create(
    model="private-gpt",
    messages=[{"role": "user", "content": "How much is the late fee?"}],
    max_tokens=60,
    stream=True,
    extra_body={"use_context": True},
)
for event in stream:
    print(event.choices[0].delta.content or "", end="", flush=True)
print()

vectors = client.embeddings.create(model="private-gpt", input=["late fee", "opening hours"])
print(len(vectors.data), "vectors of", len(vectors.data[0].embedding))

httpx.delete(f"{BASE_URL}/v1/ingest/{file_id}").raise_for_status()
