import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { codeBlocks } from "../docs/code-blocks"
import type { Belfry } from "../harness/binary"
import { freePort } from "../harness/ports"
import { until } from "./mails"

/** The site of the guide, as a reader pastes it. Its pages are of another origin than the server. */
export async function startPushSite(server: Belfry) {
  const folder = join(server.home, "push-site")
  mkdirSync(folder)
  const port = await freePort()
  const blocks = codeBlocks("docs/push.md").filter(({ language }) => /^(html|js)$/.test(language))
  const texts = blocks.map(({ code }) =>
    code.replaceAll("http://localhost:8080", server.url).replace("port: 3000", `port: ${port}`),
  )
  const [page = "", worker = "", program = "", kept = ""] = texts
  const asked = /(method: "POST", headers, body \}\)\n)/
  const files = {
    "page.html": page.replace(asked, (all) => all + kept),
    "worker.js": worker,
    "server.js": program,
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  const child = Bun.spawn([process.execPath, "server.js"], {
    cwd: folder,
    env: {
      PATH: process.env.PATH ?? "",
      BELFRY_URL: server.url,
      BELFRY_API_KEY: server.api_key,
    },
    stdio: ["ignore", "inherit", "inherit"],
  })
  /** By this name, so that the host differs, too. */
  const origin = `http://localhost:${port}`
  await until("the site", () => fetch(origin).catch(() => undefined))
  return {
    origin,
    async [Symbol.asyncDispose]() {
      child.kill()
      await child.exited
    },
  }
}
