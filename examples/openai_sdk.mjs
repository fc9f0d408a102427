// Ask a document with the OpenAI SDK: `npm install openai`, then run this beside the server.
import { readFile } from "node:fs/promises";
import OpenAI from "openai";

const baseURL = process.env.BASE_URL ?? "http://127.0.0.1:8001";

const form = new FormData();
form.append("file", new Blob([await readFile(new URL("handbook.md", import.meta.url))]), "handbook.md");
const upload = await fetch(`${baseURL}/v1/ingest`, { method: "POST", body: form });
const fileId = (await upload.json()).data[0].doc_metadata.file_id;

const client = new OpenAI({ baseURL: `${baseURL}/v1`, apiKey: "none" });
const answer = await client.chat.completions.create({
  model: "private-gpt",
  messages: [{ role: "user", content: "How many books may a reader borrow?" }],
  max_tokens: 60,
  use_context: true,
});
console.log(answer.choices[0].message.content);
for (const chunk of answer.choices[0].sources) {
  console.log("-", chunk.document.doc_metadata.file_name, chunk.score.toFixed(3));
}

const stream = await client.chat.completions.create({
  model: "private-gpt",
  messages: [{ role: "user", content: "How much is the late fee?" }],
  max_tokens: 60,
  stream: true,
  use_context: true,
});
for await (const event of stream) process.stdout.write(event.choices[0]?.delta?.content ?? "");
console.log();

await fetch(`${baseURL}/v1/ingest/${fileId}`, { method: "DELETE" });
