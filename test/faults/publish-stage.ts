import { join } from "node:path"
import { settings } from "../../src/core/config"
import { openStore } from "../../src/store/open"
import type { Store } from "../../src/store/store"
import { type Belfry, makeHome } from "../harness/binary"
import { relaySettings } from "../scenarios/serve"

/** Where the servers of a publish live, one or two of them. */
export interface Stage {
  homes: string[]
  env: Record<string, string>
  /** The database itself, while no server that must be alone has it open. */
  open(): Promise<Store>
}

/** One home on SQLite, or two on a Postgres. Mail leaves by the relay on this port. */
export const stage = (
  database_url: string | null,
  port: number,
  more: Record<string, string> = {},
): Stage => {
  const homes = database_url === null ? [makeHome()] : [makeHome(), makeHome()]
  const shared = {
    DATABASE_URL: database_url ?? "",
    BELFRY_SECURITY_MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
    BELFRY_STORAGE_BLOBS_DIR: join(homes[0] ?? "", "blobs"),
    BELFRY_DELIVERY_LEASE: "5s", // what a dead node had in hand waits no longer
  }
  const data_dir = join(homes[0] ?? "", "belfry")
  return {
    homes,
    env: relaySettings(port, { ...more, ...(database_url !== null && shared) }),
    open: () => openStore({ ...settings(), data_dir, database_url, "storage.sqlite.path": null }),
  }
}

export const call = async (server: Belfry, method: string, path: string, body?: object) => {
  const given = body && { body: JSON.stringify(body) }
  const answer = await server.request(path, { method, ...given })
  return { status: answer.status, body: (await answer.json()) as { data: { id: string } } }
}
