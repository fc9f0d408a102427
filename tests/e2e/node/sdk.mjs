// Asks a server everything this SDK can and prints what came back as JSON.
// Usage: node sdk.mjs <base URL> <package name>
const [baseURL, packageName] = process.argv.slice(2);
const { default: OpenAI } = await import(packageName);
const client = new OpenAI({ baseURL, apiKey: "unused", maxRetries: 0, timeout: 20_000 });
const model = "private-gpt";
const messages = [{ role: "user", content: "Hi" }];
const cited = { use_context: true, citation_style: ["annotations", "citations", "chunks"] };

const plain = await client.chat.completions.create({ model, messages, ...cited });

let streamed = "";
let usage = null;
const chunks = await client.chat.completions.create({
  model,
  messages,
  stream: true,
  stream_options: { include_usage: true },
});
for await (const chunk of chunks) {
  streamed += chunk.choices[0]?.delta?.content ?? "";
  usage = chunk.usage ?? usage;
}

const helper = client.chat.completions.stream({ model, messages, ...cited });
const final = await helper.finalChatCompletion();

const legacy = await client.completions.create({ model, prompt: "Hi" });
const floats = await client.embeddings.create({ model, input: ["abc", "d"] });
const models = await client.models.list();
const retrieved = await client.models.retrieve("org/model:tag");

let failure;
try {
  await client.chat.completions.create({ model: "gpt-9", messages });
} catch (error) {
  const { status, code, param, requestID, message } = error;
  failure = { name: error.constructor.name, status, code, param, requestID, message };
}

console.log(
  JSON.stringify({
    plain,
    streamed,
    usage,
    final,
    legacy: legacy.choices[0].text,
    embeddings: floats.data.map((item) => Array.from(item.embedding)),
    models: models.data.map((item) => item.id),
    retrieved: retrieved.id,
    failure,
  }),
);
