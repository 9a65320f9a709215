import type { Static } from "@sinclair/typebox"
import { ApiError, type ErrorCode, type Problems } from "../core/errors"
import { monotonic } from "../core/time"
import { type BulkItems, readItems, shownFailures } from "../http/bulk-items"
import { Semaphore } from "../lib/semaphore"
import { rest } from "../store/in-steps"
import type { Store, Tx } from "../store/store"
import type { DeviceActor } from "./device-actor"
import { badEndpoint, endpointProblem, type NewDevice, readDevice } from "./device-input"
import { countingLast } from "./device-rows"
import * as devices from "./devices"
import { DeviceInput, MOST_AT_ONCE } from "./schemas"

type DeviceItems = BulkItems<NewDevice>

/** Reads 1 to 1,000 devices. A broken one does not stop the others. */
export const readDevices = (body: unknown, problems: Problems): DeviceItems =>
  readItems(
    body,
    {
      name: "devices",
      ...{ least: 1, most: MOST_AT_ONCE, schema: DeviceInput, read },
    },
    problems,
  )

function read(given: Static<typeof DeviceInput>, problems: Problems): NewDevice {
  if (given.user_id === undefined) problems.add("user_id", "required", "The field is required.")
  return readDevice(given, problems)
}

/** Devices of one transaction, so that others need not wait for long. */
const AT_ONCE = 25

/** Hosts of endpoints that name servers are asked for at the same time, and what all wait at most. */
const HOSTS_AT_ONCE = 20
const HOSTS_MS = 5000

/** Registers what can be. A repeated request does no harm, so several transactions may share the work. */
export async function registerAll(
  store: Store,
  actor: DeviceActor,
  { given, failed }: DeviceItems,
  allow_private: readonly string[],
) {
  const { open, refused } = await withPublicEndpoints(given, allow_private)
  const results: DeviceResult[] = shownFailures({ given, failed: [...failed, ...refused] })
  for (let at = 0; at < open.length; at += AT_ONCE) {
    const begun_at = monotonic()
    const some = open.slice(at, at + AT_ONCE)
    const register = (tx: Tx) => countingLast(tx, () => registerSome(tx, actor, some))
    results.push(...(await store.tx(register)))
    await rest(begun_at)
  }
  results.sort((a, b) => a.index - b.index)
  const succeeded = results.filter((one) => "id" in one).length
  const counts = { total: results.length, succeeded, failed: results.length - succeeded }
  return { ...counts, results }
}

async function registerSome(
  tx: Tx,
  actor: DeviceActor,
  items: DeviceItems["given"],
): Promise<DeviceResult[]> {
  const results: DeviceResult[] = []
  for (const { index, item } of items) {
    try {
      const { row } = await devices.register(tx, actor, item)
      results.push({ index, id: row.id, device_id: row.device_id })
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      results.push(...shownFailures({ given: [], failed: [{ index, error }] })) // before it wrote anything
    }
  }
  return results
}

/** Each host is asked for once. */
async function withPublicEndpoints(given: DeviceItems["given"], allow_private: readonly string[]) {
  const permits = new Semaphore(HOSTS_AT_ONCE)
  const signal = AbortSignal.timeout(HOSTS_MS)
  const problems = new Map<string, Promise<string | undefined>>()
  const look = async (endpoint: string) => {
    const release = await permits.acquire()
    return endpointProblem(endpoint, allow_private, signal).finally(release)
  }
  const open: DeviceItems["given"] = []
  const refused: DeviceItems["failed"] = []
  const web = given.filter(({ item }) => item.provider === "webpush")
  for (const { item } of web) {
    const { origin } = new URL(item.token)
    if (!problems.has(origin)) problems.set(origin, look(item.token))
  }
  for (const { index, item } of given) {
    const problem =
      item.provider === "webpush" ? await problems.get(new URL(item.token).origin) : undefined
    if (problem === undefined) open.push({ index, item })
    else refused.push({ index, error: badEndpoint(problem, `devices.${index}.`) })
  }
  return { open, refused }
}

type DeviceResult =
  | { index: number; id: string; device_id: string }
  | {
      index: number
      error: { code: ErrorCode; message: string; details: Record<string, unknown> }
    }
