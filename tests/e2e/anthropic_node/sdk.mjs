// Asks a server what Anthropic's JavaScript SDK can and prints what came back as JSON.
// Usage: node sdk.mjs <base URL>
import Anthropic from "@anthropic-ai/sdk";

const [baseURL] = process.argv.slice(2);
const client = new Anthropic({ baseURL, apiKey: "unused", maxRetries: 0, timeout: 60_000 });
const asked = {
  model: "private-gpt",
  max_tokens: 300,
  messages: [{ role: "user", content: "What is the weather forecast for Lisbon?" }],
};
const searching = { ...asked, web_search: true };

const citationsOf = (message) => message.content.flatMap((block) => block.citations ?? []);
const textOf = (message) => message.content.map((block) => block.text ?? "").join("");

const plain = await client.messages.create(searching);
let streamed = "";
let deltaSources = null;
for await (const event of await client.messages.create({ ...searching, stream: true })) {
  if (event.type === "content_block_delta") streamed += event.delta.text ?? "";
  if (event.type === "message_delta") deltaSources = event.sources;
}
const final = await client.messages.stream(searching).finalMessage();
const counted = await client.messages.countTokens({ model: asked.model, messages: asked.messages });

let failure;
try {
  await client.messages.create({ ...asked, model: "gpt-9" });
} catch (error) {
  const { status, requestID } = error;
  failure = { name: error.constructor.name, status, type: error.error?.error?.type, requestID };
}

console.log(
  JSON.stringify({
    plain: textOf(plain),
    citations: citationsOf(plain),
    sources: plain.sources,
    streamed,
    deltaSources,
    final: textOf(final),
    finalCitations: citationsOf(final),
    finalSources: final.sources,
    stop: final.stop_reason,
    tokens: counted.input_tokens,
    failure,
  }),
);
