// Ask a document with Anthropic's SDK: `npm install @anthropic-ai/sdk`, then run this beside the server.
import { readFile } from "node:fs/promises";

import Anthropic from "@anthropic-ai/sdk";

const baseURL = process.env.BASE_URL ?? "http://127.0.0.1:8001"; // without /v1
const client = new Anthropic({ baseURL, apiKey: "none" });
const handbook = await readFile(new URL("handbook.md", import.meta.url), "utf8");

const asked = {
  model: "private-gpt",
  max_tokens: 60,
  messages: [
    {
      role: "user",
      content: [
        {
          type: "document",
          title: "handbook.md",
          source: { type: "text", media_type: "text/plain", data: handbook },
          citations: { enabled: true },
        },
        { type: "text", text: "How many books may a reader borrow?" },
      ],
    },
  ],
};

const stream = client.messages.stream(asked);
stream.on("text", (text) => process.stdout.write(text));
const message = await stream.finalMessage();
console.log();
for (const block of message.content) {
  for (const citation of block.citations ?? []) {
    const { document_title, start_char_index, end_char_index } = citation;
    // The offsets count code points, as JavaScript's own do not.
    const cited = Array.from(handbook).slice(start_char_index, end_char_index).join("");
    console.log("-", document_title, citation.cited_text === cited, citation.cited_text);
  }
}

const { model, messages } = asked;
const { input_tokens } = await client.messages.countTokens({ model, messages });
console.log(input_tokens, "tokens");
