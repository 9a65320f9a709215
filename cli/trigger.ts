import type { Action } from "./context"
import { usage } from "./failure"
import { envelope_fields } from "./fields"
import { parsedObject } from "./pairs"
import type { Envelope } from "./records"

interface TriggerOptions {
  override?: string[]
  idempotencyKey?: string
}

/** A marked event through the real path: stored, routed and delivered like any other. */
export const trigger: Action<TriggerOptions> = async (context, options, type = "") => {
  const { output, paint } = context
  output.promises(envelope_fields)
  const { override = [], idempotencyKey } = options
  const data = override.reduce(overridden, {})
  const body = { type, ...(override.length > 0 && { data }) }
  const headers = idempotencyKey ? { "idempotency-key": idempotencyKey } : undefined
  const answer = await context.client().post<Envelope>("/v1/events/trigger", body, headers)
  const event = answer.data
  await output.record(event, () => `${paint.green("✓")} ${event.type} ${event.id}`)
  await output.next("belfry webhooks list")
  return undefined
}

type Data = Record<string, unknown>

/** `user.email=kim@example.com`: dots lead inside. What reads as JSON is taken as that. */
function overridden(data: Data, text: string): Data {
  if (text.trimStart().startsWith("{")) return { ...data, ...parsedObject(text, "--override") }
  const at = text.indexOf("=")
  const path = text.slice(0, Math.max(0, at)).split(".")
  if (at < 1 || path.some((step) => step === "")) {
    throw usage(`--override: "${text}" is neither k=v nor a JSON object`)
  }
  return within(data, path, parsed(text.slice(at + 1)))
}

function within(data: Data, [step = "", ...rest]: string[], value: unknown): Data {
  if (rest.length === 0) return { ...data, [step]: value }
  const inner = data[step]
  const before = typeof inner === "object" && inner !== null ? (inner as Data) : {}
  return { ...data, [step]: within(before, rest, value) }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
