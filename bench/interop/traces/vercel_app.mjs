// An agent of Vercel's AI SDK; vercel_cells.py runs it beside the node_modules of its lock.
// stdin: {address, model, instructions, turns, found}. stdout: for each turn a line
// {answer, request}, the request as OTLP JSON.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { JsonTraceSerializer } from "@opentelemetry/otlp-transformer";
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";
import { generateText, stepCountIs, tool } from "ai";
import { readFileSync } from "node:fs";
import { z } from "zod";

// One clock that never tells the same time twice: spans of a millisecond keep their order.
let tick = 0;
performance.now = () => tick++;
Date.now = () => Math.round(performance.timeOrigin) + tick++;

const shop = JSON.parse(readFileSync(0, "utf8"));
const exporter = new InMemorySpanExporter();
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
provider.register();

const models = createOpenAICompatible({ name: "shop", baseURL: shop.address, apiKey: "none" });
const search = tool({
  description: "Search the documents of the shop.",
  inputSchema: z.object({ query: z.string() }),
  execute: async ({ query }) => shop.found[query],
});
const threads = {};

for (const turn of shop.turns) {
  const messages = turn.thread ? (threads[turn.thread] ??= []) : [];
  messages.push({ role: "user", content: turn.question });
  const metadata = turn.thread ? { sessionId: turn.thread } : {};
  const done = await generateText({
    model: models(shop.model),
    system: shop.instructions,
    messages,
    tools: { search },
    stopWhen: stepCountIs(6),
    maxRetries: 0,
    experimental_telemetry: { isEnabled: true, functionId: "shop-agent", metadata },
  });
  messages.push(...done.response.messages);
  const request = new TextDecoder().decode(JsonTraceSerializer.serializeRequest(exporter.getFinishedSpans()));
  exporter.reset();
  console.log(JSON.stringify({ answer: done.text, request: JSON.parse(request) }));
}
