import { usage } from "../failure"
import { readText } from "../input"
import { headerFields, pairs, parsedObject } from "../pairs"
import { given } from "../switches"
import { duration } from "../time"

/** What `webhooks create` and `update` take, as commander reads it. */
export interface EndpointOptions {
  endpoint?: string
  event?: string[]
  description?: string
  header?: string[]
  signature?: string
  maxAttempts?: string
  intervals?: string
  rateLimit?: string
  filter?: string
  transformFile?: string
  metadata?: string[]
}

/** The fields of the request that were said. `none` takes away what may be absent. */
export async function endpointBody(options: EndpointOptions): Promise<Record<string, unknown>> {
  const { event, header, metadata, maxAttempts, intervals } = options
  const policy = given({
    max_attempts: number(maxAttempts, "--max-attempts"),
    intervals: intervals?.split(",").map((text) => duration(text, "--intervals") / 1000),
  })
  return given({
    url: options.endpoint,
    events: event?.flatMap((some) => some.split(",")),
    description: orNone(options.description, (text) => text),
    headers: header && headerFields(header.filter((one) => one !== "none")),
    header_format: options.signature,
    retry_policy: Object.keys(policy).length > 0 ? policy : undefined,
    rate_limit: orNone(options.rateLimit, (text) => number(text, "--rate-limit")),
    filter: orNone(options.filter, (text) => parsedObject(text, "--filter")),
    transform: await transformOf(options.transformFile),
    metadata: metadata && pairs(metadata, "--metadata"),
  })
}

const orNone = <Value>(text: string | undefined, read: (text: string) => Value) =>
  text === undefined ? undefined : text === "none" ? null : read(text)

async function transformOf(path: string | undefined) {
  if (path === undefined) return undefined
  return path === "none" ? null : await readText(path, "--transform-file")
}

function number(text: string | undefined, option: string): number | undefined {
  if (text === undefined) return undefined
  if (!/^\d+$/.test(text)) throw usage(`${option}: "${text}" is not a whole number`)
  return Number(text)
}
