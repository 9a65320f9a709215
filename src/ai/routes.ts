import { type AnyRoute, projectRow, route } from "../http/route"
import { EXAMPLE_ID } from "../lib/record-fields"
import { analyzeTask } from "./advice/analyze"
import type { AdviceParts } from "./advice/facts"
import * as schemas from "./ai-schemas"
import { type AnswerParts, answer, answerOnce, framesOf } from "./answer"
import { draftTask, rewriteTask, suggestTask, type TemplateTaskParts } from "./template-tasks"
import { workflowTask } from "./workflow-task"

export interface AiParts extends Omit<AdviceParts, "store">, AnswerParts, TemplateTaskParts {}

const MOST_BYTES = 262_144
const TIME_LIMIT_MS = 120_000

/** Beside those of any route (contract 60, section 1). */
const GATES = [
  ...(["feature_not_enabled", "ai_rate_limited", "ai_quota_exceeded"] as const),
  ...(["ai_budget_exceeded", "bedrock_throttled", "provider_error"] as const),
]

const aiRow = <const Path extends string>(path: Path) => ({
  ...projectRow("POST", path, "ai:use"),
  ...{ limit: MOST_BYTES, time_limit_ms: TIME_LIMIT_MS, errors: GATES },
})

/** Rows that answer with a stream, too. */
const streamRow = <const Path extends string>(path: Path) => ({
  ...aiRow(path),
  description:
    "With `Accept: text/event-stream` the answer comes while the model writes it, as the events `token`, `variables_validated`, one of `complete`, `parse_failed` and `error`, and `done`. Nothing is stored or sent.",
  also_produces: ["text/event-stream"] as const,
})

const project_id = EXAMPLE_ID
const channel = "email"
const content = "Your order has left our warehouse."
const block = { type: "paragraph", content }

export const aiRoutes = (parts: AiParts): AnyRoute[] => [
  route({
    ...aiRow("/v1/ai/subjects/suggest"),
    summary: "Suggest five subjects for a text",
    description: "The best one is first. `predicted_open_rate` is the guess of a model.",
    body: schemas.Suggesting,
    example: { project_id, channel, template_body: content },
    response: schemas.Suggestions,
    handle: (call) => answerOnce(framesOf(parts, call, suggestTask)),
  }),
  route({
    ...streamRow("/v1/ai/templates/draft"),
    summary: "Draft a template from a brief",
    body: schemas.Drafting,
    example: { project_id, channel, brief: "Tell people that their order is on its way." },
    response: schemas.Drafted,
    top: schemas.FoundVariables,
    handle: (call) => answer(call, framesOf(parts, call, draftTask)),
  }),
  route({
    ...streamRow("/v1/ai/templates/rewrite"),
    summary: "Rewrite one block of a template",
    body: schemas.Rewriting,
    example: { project_id, channel, block, instruction: "Shorten." },
    response: schemas.Rewritten,
    top: schemas.FoundVariables,
    handle: (call) => answer(call, framesOf(parts, call, rewriteTask)),
  }),
  route({
    ...streamRow("/v1/ai/workflows/generate"),
    summary: "Write a workflow from a description",
    body: schemas.Generating,
    example: { project_id, description: "Welcome people, and ask again after 3 days." },
    response: schemas.Generated,
    top: schemas.FoundVariables,
    errors: [...GATES, "ai_workflow_invalid"],
    handle: (call) => answer(call, framesOf(parts, call, workflowTask)),
  }),
  route({
    ...streamRow("/v1/ai/broadcasts/analyze"),
    summary: "Get advice on a broadcast before it is sent",
    body: schemas.Analyzing,
    example: { project_id, draft: { channel, subject: "LAST CHANCE", body: content } },
    response: schemas.Analysis,
    errors: [...GATES, "ai_advisory_invalid", "topic_not_found"],
    handle: (call) => answer(call, framesOf(parts, call, analyzeTask)),
  }),
]
