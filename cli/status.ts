import type { Client } from "./client"
import type { Action } from "./context"
import { exits, Failure } from "./failure"
import { fields } from "./table"
import type { Paint } from "./terminal"
import { version } from "./version"

type Health = { status: string; version: string; uptime_seconds: number }
type Ready = { status: string; checks: Record<string, unknown> }

/** Exit 0 when the server takes work, 75 when it lives but does not, 69 when there is none. */
export const status: Action<object> = async (context) => {
  const client = context.client()
  const health = (await client.plain("/healthz")).body as Health
  const readiness = await client.plain("/readyz")
  const ready = readiness.body as Ready
  const record = {
    url: client.url,
    profile: context.connection().profile,
    live: health.status === "ok",
    ready: readiness.status === 200,
    version: health.version,
    cli_version: version,
    uptime_seconds: health.uptime_seconds,
    checks: ready.checks ?? {},
    queue: context.connection().api_key === null ? null : await queueOf(client),
  }
  await context.output.record(record, () => shown(record, context.paint))
  return record.live && record.ready ? exits.done : exits.try_later
}

/** A server that does not tell its queue, or not to this key, still has a status. */
async function queueOf(client: Client): Promise<unknown> {
  try {
    return (await client.get<unknown>("/v1/queue")).data
  } catch (error) {
    const untold: number[] = [exits.not_found, exits.unauthorized]
    if (error instanceof Failure && untold.includes(error.exit)) return null
    throw error
  }
}

type Shown = {
  url: string
  profile: string | null
  ready: boolean
  version: string
  uptime_seconds: number
  checks: Record<string, unknown>
  queue: unknown
}

function shown(record: Shown, paint: Paint): string {
  const mark = record.ready ? `${paint.green("✓")} ready` : `${paint.red("✗")} not ready`
  const told = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value))
  const checks = Object.entries(record.checks).map(([name, value]) => [name, told(value)] as const)
  return [
    `${mark}  ${record.url}`,
    fields(
      [
        ["profile", record.profile],
        ["version", record.version],
        ["running for", `${record.uptime_seconds} s`],
        ...checks,
        ["queue", record.queue === null ? null : JSON.stringify(record.queue)],
      ],
      paint,
    ),
  ].join("\n")
}

export const versions: Action<object> = async ({ output }) => {
  const record = {
    version,
    runtime: `bun ${Bun.version}`,
    platform: `${process.platform}-${process.arch}`,
  }
  await output.record(record, () => `belfry ${version} (${record.runtime}, ${record.platform})`)
  return undefined
}
