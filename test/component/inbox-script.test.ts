import { expect, test } from "bun:test"
import { brotliDecompressSync, gunzipSync, gzipSync } from "node:zlib"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const { url } = service.listen()

const ask = (headers: Record<string, string> = {}) =>
  fetch(`${url}/inbox.js`, {
    headers: { origin: "https://shop.test", ...headers },
    decompress: false,
  } as RequestInit)

/** The goal of the component: what it costs a page on the wire. */
const MOST_BYTES = 18_000

test("pages of every origin may load the script, in the encoding that they take", async () => {
  const brotli = await ask({ "accept-encoding": "gzip, br" })
  const gzip = await ask({ "accept-encoding": "gzip" })
  const bare = await ask({ "accept-encoding": "identity" })
  const encodings = [brotli, gzip, bare].map(({ headers }) => headers.get("content-encoding"))
  expect(encodings).toEqual(["br", "gzip", null])
  const script = await bare.text()
  expect(brotliDecompressSync(await brotli.bytes()).toString()).toBe(script)
  expect(gunzipSync(await gzip.bytes()).toString()).toBe(script)
  expect(Object.fromEntries(bare.headers)).toMatchObject({
    "content-type": "text/javascript;charset=utf-8",
    "access-control-allow-origin": "*",
    "cross-origin-resource-policy": "cross-origin",
    "cache-control": "public, no-cache",
    "x-content-type-options": "nosniff",
    vary: "accept-encoding",
  })
})

test("a browser that has the script is not sent it again", async () => {
  const { headers } = await ask()
  const again = await ask({ "if-none-match": headers.get("etag") ?? "" })
  expect([again.status, await again.text()]).toEqual([304, ""])
  expect(again.headers.get("access-control-allow-origin")).toBe("*")
})

test("the script is small, needs nothing else, and runs under a strict policy", async () => {
  const script = await (await ask({ "accept-encoding": "identity" })).text()
  expect(gzipSync(script, { level: 9 }).length).toBeLessThanOrEqual(MOST_BYTES)
  expect(script).toMatch(/export\s*\{[^}]*\bInboxClient\b/)
  expect(script).not.toMatch(/\bimport\b\s*[("'{]|\beval\(|new Function\(|\.innerHTML\b/)
})
