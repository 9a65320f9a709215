import { expect, test } from "bun:test"
import { gzipSync } from "node:zlib"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const { url } = service.listen()

const ask = (headers: Record<string, string> = {}) =>
  fetch(`${url}/sw.js`, { headers: { origin: "https://shop.test", ...headers } })

/** The goal of the worker: what it costs a page on the wire. */
const MOST_BYTES = 2_000

test("workers of every origin may import the script, which knows the address of the server", async () => {
  const answer = await ask({ "accept-encoding": "br" })
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    "content-type": "text/javascript;charset=utf-8",
    "access-control-allow-origin": "*",
    "cross-origin-resource-policy": "cross-origin",
    "cache-control": "public, no-cache",
    "x-content-type-options": "nosniff",
  })
  const script = await answer.text()
  expect(script).toContain('fetch("http://belfry.test"+')
  expect(script).not.toContain("server.invalid")
  const again = await ask({ "if-none-match": answer.headers.get("etag") ?? "" })
  expect([again.status, await again.text()]).toEqual([304, ""])
})

test("the script is small, and is no module", async () => {
  const script = await (await ask({ "accept-encoding": "identity" })).text()
  expect(gzipSync(script, { level: 9 }).length).toBeLessThanOrEqual(MOST_BYTES)
  expect(script).not.toMatch(/\b(import|export)\b\s*[("'{*]|\beval\(|new Function\(/)
})
