import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { loadSettings } from "../../src/core/config"
import { leftover } from "../harness/leftovers"
import { freePort } from "../harness/ports"

/** Settings of a server in a folder of its own, on free ports. */
export async function ownServer(database_url?: string) {
  const data_dir = leftover(mkdtempSync(join(tmpdir(), "belfry-entry-")))
  const port = await freePort()
  const loaded = loadSettings({
    environment: {},
    flags: {
      data_dir,
      ...(database_url !== undefined && { database_url }),
      "http.listen": `127.0.0.1:${port}`,
      "mailbox.listen": "127.0.0.1:0",
      "smtp.submission.listen": "127.0.0.1:0",
      "smtp.inbound.listen": "127.0.0.1:0",
      "storage.ballast_mb": 0,
    },
  })
  return { data_dir, loaded, url: `http://127.0.0.1:${port}` }
}
