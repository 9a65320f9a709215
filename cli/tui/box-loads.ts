import type { Components } from "../../src/client/components"
import type { Client } from "../lib/client"
import { exits, Failure } from "../lib/errors"
import { optionWords } from "../lib/flags"
import { HELD_QUEUE } from "../lib/message-status"
import type { ServerRun } from "../local/held"
import { type BoxFacts, type Intent, type Question, whether } from "./state"

const PAGE = 100

type DoctorCheck = Components["DoctorReport"]["checks"][number]

/** What operators may read; without their rights, the report of `/readyz`. */
export async function boxFacts(client: Client): Promise<BoxFacts> {
  try {
    const query = { per_page: PAGE }
    const [doctor, backups, queues] = await Promise.all([
      client.call("GET /v1/admin/doctor"),
      client.call("GET /v1/admin/backups", { query }),
      client.call("GET /v1/admin/queues", { query }),
    ])
    const held = queues.data.find(({ queue }) => queue === HELD_QUEUE) ?? null
    const { checks, data_dir, run_id } = doctor.data
    return { checks, backups: backups.data, held, server: { data_dir, run_id } }
  } catch (error) {
    if (!(error instanceof Failure) || error.exit !== exits.unauthorized) throw error
    return {
      checks: await readiness(client),
      backups: undefined,
      held: undefined,
      server: undefined,
    }
  }
}

async function readiness(client: Client): Promise<DoctorCheck[]> {
  const { body } = await client.plain("/readyz")
  const { checks = {}, warnings = [] } = body as {
    checks?: Record<string, string>
    warnings?: string[]
  }
  const looked = Object.entries(checks).map(([name, detail]) => {
    const outcome = /^(ok|off)\b/.test(detail) ? ("pass" as const) : ("fail" as const)
    return { name, outcome, detail, fix: null }
  })
  const warned = warnings.map((detail) => ({
    name: "warning",
    outcome: "warn" as const,
    detail,
    fix: null,
  }))
  return [...looked, ...warned]
}

/**
 * What a person has to say yes to before all held work is dropped; undefined where the server does not run on
 * this machine. Only there it takes the order.
 */
export async function dropQuestion(server: ServerRun): Promise<Question | undefined> {
  const { countHeldHere, told } = await import("../local/held")
  const counts = await countHeldHere(server)
  if (!counts) return undefined
  const text = `Drop ${told(counts)}? This cannot be undone.`
  return whether(text, { do: "drop_held", server })
}

/** The command that drops it on the machine of the server. It asks by itself. */
export const dropCommand = ({ data_dir }: ServerRun): string =>
  `belfry queue purge ${HELD_QUEUE}${optionWords({ "data-dir": data_dir })}`

/** Does it, and answers what to say about it. */
export async function changeBox(client: Client, change: BoxChange): Promise<string> {
  switch (change.do) {
    case "make_backup": {
      const { data } = await client.call("POST /v1/admin/backups")
      return `the backup runs as job ${data.id}`
    }
    case "drop_held": {
      const { dropHeldHere, told } = await import("../local/held")
      return `dropped: ${told(await dropHeldHere(change.server))}`
    }
    case "release_held":
      await client.call("POST /v1/admin/queues/{queue}/resume", { params: { queue: HELD_QUEUE } })
      return "the held work is sent now"
  }
}

type BoxChange = Extract<Intent, { do: "make_backup" | "drop_held" | "release_held" }>
