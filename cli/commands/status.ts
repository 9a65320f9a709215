import type { Action } from "../lib/context"
import { version } from "../lib/environment"
import { exits } from "../lib/errors"
import { fields } from "../lib/table"
import type { Paint } from "../lib/terminal"

type Health = { status: string; version: string; uptime_seconds: number }
type Ready = { status: string; checks: Record<string, unknown> }

/**
 * Exit 0 when the server takes work, 75 when it lives but does not, 69 when there is none. Nobody
 * asks here who it is, so neither a key nor a token goes along.
 */
export const status: Action<object> = async (context) => {
  const client = context.anonymous()
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
  }
  await context.output.record(record, () => shown(record, context.paint))
  return record.live && record.ready ? exits.done : exits.try_later
}

type Shown = {
  url: string
  profile: string | null
  ready: boolean
  version: string
  uptime_seconds: number
  checks: Record<string, unknown>
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
  const human = () => `belfry ${version} (${record.runtime}, ${record.platform})`
  await output.record(record, human, version)
  return undefined
}
