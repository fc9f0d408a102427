#!/usr/bin/env bash
# Ingest a document, ask about it (in one piece, then streamed), list, delete. Needs curl only.
set -euo pipefail
BASE_URL=${BASE_URL:-http://127.0.0.1:8001}
HERE=$(dirname "$0")

ingested=$(curl -sS --fail-with-body -F "file=@$HERE/handbook.md" "$BASE_URL/v1/ingest")
echo "$ingested"
file_id=$(sed -E 's/.*"file_id": ?"([^"]+)".*/\1/' <<<"$ingested")

curl -sS --fail-with-body "$BASE_URL/v1/chat/completions" -H 'Content-Type: application/json' -d '{
  "model": "private-gpt",
  "messages": [{"role": "user", "content": "How many books may a reader borrow?"}],
  "use_context": true,
  "max_tokens": 60
}'
echo

curl -sSN --fail-with-body "$BASE_URL/v1/chat/completions" -H 'Content-Type: application/json' -d '{
  "model": "private-gpt",
  "messages": [{"role": "user", "content": "How much is the late fee?"}],
  "use_context": true,
  "stream": true,
  "max_tokens": 60
}'

curl -sS --fail-with-body "$BASE_URL/v1/chunks" -H 'Content-Type: application/json' \
  -d '{"text": "opening hours on Saturday", "limit": 1}'
echo
curl -sS --fail-with-body "$BASE_URL/v1/ingest/list"
echo
curl -sS --fail-with-body -X DELETE "$BASE_URL/v1/ingest/$file_id"
