import { afterAll } from "bun:test"
import { Type as t } from "@sinclair/typebox"
import { Elysia } from "elysia"
import type { AiAction } from "../../src/ai/actions"
import type { AiTask } from "../../src/ai/ai-task"
import { answer, framesOf as framesOfCall, times } from "../../src/ai/answer"
import { aiCalls, aiInstanceSpending, aiQuotas } from "../../src/ai/tables"
import { loadSettings, type Settings, useSettings } from "../../src/core/config"
import { fail } from "../../src/core/errors"
import { listen } from "../../src/http/listener"
import { mountRoutes } from "../../src/http/request-handler"
import { projectRow, route } from "../../src/http/route"
import { type ModelGatewayCall, type ModelScript, somePrompt } from "../fakes/model-gateway"
import { openaiGateway } from "../fakes/openai-gateway"
import { type TestProject, testService } from "./service"

/** A gateway that says what its script says, with settings that name it until the tests of the file have ended. */
export async function scriptedModel() {
  const before = loadSettings()
  const says: { script: ModelScript | ((call: ModelGatewayCall) => ModelScript) } = { script: {} }
  const fake = await openaiGateway((call) =>
    typeof says.script === "function" ? says.script(call) : says.script,
  )
  /** Without the gateway, where it is not among what is chosen. */
  const configure = (chosen: Partial<Settings>) =>
    useSettings({ ...before, values: { ...before.values, ...chosen } })
  configure(fake.settings)
  afterAll(async () => {
    useSettings(before)
    await fake[Symbol.asyncDispose]()
  })
  return Object.assign(says, fake, { configure })
}

/** What a call asks of the stand-in for a task. */
export interface TrialCall {
  action?: AiAction
  tries?: number
  /** The result by rules alone. */
  rules?: Record<string, unknown>
}

/**
 * A server with one more route, `POST /v1/ai/trial`, whose result is the JSON of the model. It rejects `{rejected}`,
 * and breaks at `{bug}`.
 */
export async function aiService(chosen: Partial<typeof times> = {}) {
  const service = await testService()
  const usual = { ...times }
  Object.assign(times, chosen)
  const { parts, store } = service
  const row = route({
    ...projectRow("POST", "/v1/ai/trial", "ai:use"),
    summary: "Try the engine",
    body: t.Unsafe<TrialCall>(t.Object({}, { additionalProperties: true })),
    response: t.Unknown(),
    also_produces: ["text/event-stream"],
    time_limit_ms: 120_000,
    handle: (call) =>
      answer(
        call,
        framesOfCall(parts, call, async () => trialTask(call.body)),
      ),
  })
  const app = new Elysia()
  mountRoutes(app, [row], parts)
  const listener = listen(app as never, { host: "127.0.0.1", port: 0, idle_seconds: 10 })
  return {
    ...service,
    port: listener.port,
    /** An answer as it comes. */
    open: (
      { key }: TestProject,
      call: TrialCall,
      accept = "text/event-stream",
      signal: AbortSignal | null = null,
    ) =>
      fetch(`${listener.url}/v1/ai/trial`, {
        ...{ method: "POST", body: JSON.stringify(call), signal },
        headers: { "x-api-key": key, "content-type": "application/json", accept },
      }),
    /** What calls left behind: the quota that is used, the money, and what open calls hold. */
    async left() {
      const quotas = await store.read.select().from(aiQuotas)
      const [money] = await store.read.select().from(aiInstanceSpending)
      return {
        used: quotas.reduce((sum, { used }) => sum + used, 0),
        ...{ spent_micro: money?.spent_micro ?? 0, held_micro: money?.held_micro ?? 0 },
        open: (await store.read.select().from(aiCalls)).length,
      }
    },
    async [Symbol.asyncDispose]() {
      Object.assign(times, usual)
      await listener.stop()
      await service[Symbol.asyncDispose]()
    },
  }
}

const trialTask = ({ action = "draft_template", tries, rules }: TrialCall): AiTask => ({
  action,
  prompt: { ...somePrompt, version: "trial-1", max_output_tokens: 1000 },
  ...(tries && { tries }),
  ...(rules && { rules }),
  read: async (output) => {
    const { bug, rejected } = Object(output)
    if (bug) throw new Error("a bug of ours")
    if (rejected) fail("ai_workflow_invalid", "The AI model wrote a workflow that is not valid.")
    return {
      complete: { result: output },
      ...(!rules && { variables: { detected: ["name"], corrected: [], unknown: [] } }),
    }
  },
})

/** The events of a stream, in its order. Throws where one has another form than the contract says. */
export function framesOf(text: string) {
  const blocks = text.split("\n\n")
  if (blocks.pop() !== "") throw new Error(`the stream ends in the middle: ${text.slice(-100)}`)
  return blocks.flatMap((block) => {
    if (block === ": ping") return []
    const [, event, data] = /^event: (\w+)\ndata: (.+)$/.exec(block) ?? []
    if (!event || !data) throw new Error(`no event: ${block.slice(0, 100)}`)
    return [{ event, data: JSON.parse(data) }]
  })
}

/** The names of the events in their order, a run of tokens as one. */
export const orderOf = (frames: { event: string }[]): string[] =>
  frames
    .map(({ event }) => event)
    .filter((event, at, all) => event !== "token" || all[at - 1] !== "token")
