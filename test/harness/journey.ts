/**
 * Sends BELFRY_TEST_JOURNEYS emails one after the other through a server in this process, each with
 * its webhook. test/docs/journey.test.ts runs it twice under coverage and compares the two.
 */
import { expect, test } from "bun:test"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { loadSettings, useSettings } from "../../src/core/config"
import { leftover } from "./leftovers"
import { OWN_PORTS } from "./own-ports"

const count = Number(process.env.BELFRY_TEST_JOURNEYS ?? 0)

/** An endpoint that changed less than a second ago is read anew for each delivery. */
const SETTLED_MILLISECONDS = 1100

test("the emails travel", async () => {
  const arrived: (() => void)[] = []
  using receiver = Bun.serve({
    port: 0,
    fetch: () => {
      arrived.shift()?.()
      return new Response()
    },
  })
  const folder = leftover(mkdtempSync(join(tmpdir(), "belfry-journey-")))
  const flags = {
    data_dir: join(folder, "data"),
    ...OWN_PORTS,
    "webhooks.require_https": false,
    "webhooks.allow_private": ["127.0.0.0/8"],
  }
  const loaded = loadSettings({ environment: {}, flags })
  useSettings(loaded)
  const { start } = await import("../../src/server")
  const { ensureFirst } = await import("../../src/tenancy/setup")
  const running = await start({ loaded, mode: "up" })
  const { api_key } = await ensureFirst(running.store, running.secrets, {
    keep_key: true,
    new_key: false,
  })
  const headers = { authorization: `Bearer ${api_key}`, "content-type": "application/json" }
  const post = (path: string, body: unknown) =>
    fetch(`${running.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) })
  const hook = { url: `http://127.0.0.1:${receiver.port}/`, events: ["email.delivered"] }
  expect((await post("/v1/webhooks", hook)).status).toBe(201)
  await Bun.sleep(SETTLED_MILLISECONDS)
  for (let number = 0; number < count; number++) {
    const { promise, resolve } = Promise.withResolvers<void>()
    arrived.push(resolve)
    const email = { from: "you@mailbox.test", to: "her@example.com", subject: "Hi", text: "Hello" }
    expect((await post("/v1/emails", email)).status).toBe(201)
    await promise
  }
  await running.stop()
})
