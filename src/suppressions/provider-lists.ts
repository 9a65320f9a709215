import { log } from "../core/log"
import { enqueueAll, type JobHandler, type JobKind } from "../jobs/jobs"
import type { OpenProviders } from "../providers/open-providers"
import { routing } from "../providers/routing"
import type { Store, Tx } from "../store/store"
import { unexpired } from "./look-up"
import type { SuppressionRow } from "./tables"

const KIND = "email_provider"

/** Providers that suppress addresses by themselves (contract 20, section 5). */
const WITH_LISTS = new Set(["ses"])

/** Addresses of one job: what was removed before an error is asked once more. */
const AT_ONCE = 50

const HOUR = 3600
const TRIES = 12

interface RemovedAddresses {
  project_id: string
  addresses: string[]
}

/** An address is mailed again: a provider with a list of its own has to know. */
export const suppressionRemoved: JobKind<RemovedAddresses> = {
  name: "suppression.removed",
  schedule: (attempt) => (attempt < TRIES ? Math.min(30 * 2 ** attempt, HOUR) : undefined),
}

/** Plans to tell the project's providers, where one of them has a list of its own. */
export async function notifyProviders(
  tx: Tx,
  project_id: string,
  rows: SuppressionRow[],
): Promise<void> {
  const whole = rows.filter(
    ({ channel, scope_type }) => channel === "email" && scope_type === "project",
  )
  if (whole.length === 0) return
  const providers = await routing(tx, KIND, project_id)
  if (!providers.some(({ provider }) => WITH_LISTS.has(provider))) return
  const addresses = whole.map(({ address }) => address)
  const pieces = Array.from({ length: Math.ceil(addresses.length / AT_ONCE) }, (_, at) =>
    addresses.slice(at * AT_ONCE, (at + 1) * AT_ONCE),
  )
  await enqueueAll(
    tx,
    suppressionRemoved,
    pieces.map((some) => ({ payload: { project_id, addresses: some }, project_id })),
  )
}

/**
 * Removes addresses from the lists of the project's providers. One that was suppressed again meanwhile
 * stays there.
 */
export const removeFromProviders = (
  { read }: Pick<Store, "read">,
  providers: Pick<OpenProviders, "unsuppress">,
): JobHandler<RemovedAddresses> => ({
  async run({ project_id, addresses }) {
    const rows = await unexpired(read, project_id, "email", addresses)
    const again = new Set(
      rows.flatMap((row) => (row.scope_type === "project" ? [row.address] : [])),
    )
    const wanted = addresses.filter((address) => !again.has(address))
    for (const config of await routing(read, KIND, project_id)) {
      for (const address of wanted) {
        if (!(await providers.unsuppress(config, address))) break
      }
    }
    return {}
  },
  async onDead(_, { project_id, addresses }, reason) {
    const count = addresses.length
    log.warn("a provider still suppresses addresses", { project_id, addresses: count, reason })
  },
})
