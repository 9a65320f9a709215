import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { loadSettings } from "../../src/core/config"
import { start } from "../../src/server"
import { ensureFirst } from "../../src/tenancy/setup"
import { leftover } from "./leftovers"
import { OWN_PORTS, relayedTo } from "./own-ports"

/** A whole server in this process, on SQLite, that delivers to a relay on the loopback. Leaving its scope stops it. */
export async function serverHere(relay_port: number) {
  const data_dir = join(leftover(mkdtempSync(join(tmpdir(), "belfry-here-"))), "data")
  const flags = {
    data_dir,
    ...OWN_PORTS,
    ...relayedTo(relay_port),
  }
  const running = await start({ loaded: loadSettings({ environment: {}, flags }), mode: "serve" })
  const { store, secrets, url, stop } = running
  const { api_key } = await ensureFirst(store, secrets, { keep_key: true, new_key: false })
  const headers = { authorization: `Bearer ${api_key}`, "content-type": "application/json" }
  const mail = { from: "me@example.test", to: "ann@example.test", subject: "Hi", text: "Hello" }
  const request = { method: "POST", headers, body: JSON.stringify(mail) }
  return {
    store,
    log_path: join(data_dir, "belfry.db-wal"),
    /** Asks to send a mail. Resolves with its id. */
    async send(): Promise<string> {
      const answer = await fetch(`${url}/v1/emails`, request)
      if (answer.status !== 201) throw new Error(await answer.text())
      return ((await answer.json()) as { id: string }).id
    },
    [Symbol.asyncDispose]: stop,
  }
}
