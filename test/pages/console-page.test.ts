import { expect, test } from "bun:test"
import { brotliDecompressSync, gunzipSync } from "node:zlib"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const { url } = service.listen()

const plain = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${url}${path}`, { headers, decompress: false } as RequestInit)

async function assetsOf(path: string) {
  const text = await (await plain(path)).text()
  return [...text.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, name = ""]) => name)
}

test("the page of the console has neither script nor style of its own, and a policy without exceptions", async () => {
  const page = await plain("/")
  const policy = page.headers.get("content-security-policy") ?? ""
  expect(policy).toStartWith("default-src 'none'; script-src 'self'; style-src 'self'; ")
  expect(policy).toContain("require-trusted-types-for 'script'; trusted-types 'none'")
  expect(policy).toContain("frame-ancestors 'none'")
  expect(policy).not.toMatch(/unsafe|\*|https:/)
  const text = await page.text()
  expect(text).not.toMatch(/<style|\son\w+=|style="|<script(?! (type="module" )?src="\/assets\/)/i)
})

test("a host of an odd form adds no source to the policy", async () => {
  const page = await plain("/", { host: "a;script-src *" })
  expect(page.headers.get("content-security-policy") ?? "").not.toContain("script-src *")
})

test("a page is not sent again to a browser that has it", async () => {
  const { headers } = await plain("/")
  const again = await plain("/", { "if-none-match": headers.get("etag") ?? "" })
  expect([again.status, await again.text()]).toEqual([304, ""])
})

test("assets come in the encoding that a browser takes, with the same content, for ever", async () => {
  const names = await assetsOf("/")
  expect(names.length).toBeGreaterThanOrEqual(3)
  for (const name of names) {
    const brotli = await plain(name, { "accept-encoding": "gzip, br" })
    const gzip = await plain(name, { "accept-encoding": "gzip" })
    const bare = await plain(name, { "accept-encoding": "identity" })
    const encodings = [brotli, gzip, bare].map(({ headers }) => headers.get("content-encoding"))
    expect(encodings).toEqual(["br", "gzip", null])
    const text = await bare.text()
    expect(text.length).toBeGreaterThan(20)
    expect(brotliDecompressSync(await brotli.bytes()).toString()).toBe(text)
    expect(gunzipSync(await gzip.bytes()).toString()).toBe(text)
    expect(brotli.headers.get("cache-control")).toBe("public, max-age=31536000, immutable")
    expect(brotli.headers.get("vary")).toBe("accept-encoding")
    expect(brotli.headers.get("content-type")).toMatch(/^text\/(javascript|css);charset=utf-8$/)
    const again = await plain(name, { "if-none-match": brotli.headers.get("etag") ?? "" })
    expect(again.status).toBe(304)
  }
})

test("the first page takes less than 100 KB on the wire", async () => {
  const all = ["/", ...(await assetsOf("/"))].map(async (path) => {
    const answer = await plain(path, { "accept-encoding": "gzip" })
    return (await answer.bytes()).length
  })
  const sizes = await Promise.all(all)
  expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(100_000)
})

test("what is no asset is a page that says so", async () => {
  for (const name of ["main.js", "__proto__", "constructor", "%2e%2e%2fapp.ts"]) {
    const answer = await plain(`/assets/${name}`)
    expect([name, answer.status]).toEqual([name, 404])
    expect(await answer.text()).toContain("There is no asset")
  }
})
