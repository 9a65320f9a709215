import { expect, test } from "bun:test"
import { existsSync, mkdtempSync, readFileSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { download } from "../../cli/lib/download"
import { leftover } from "../harness/leftovers"

const target = () => join(leftover(mkdtempSync(join(tmpdir(), "belfry-download-"))), "file")

const refusal = (url: string, path = target(), most_bytes = 10) =>
  download(new URL(url), path, { most_bytes }).then(
    () => "",
    ({ message }: Error) => message,
  )

test("a download ends at its limit, and has what the server sent", async () => {
  using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => new Response("0123456789"),
  })
  const url = `http://127.0.0.1:${server.port}/a`
  const path = target()
  expect(await refusal(url, path)).toBe("")
  expect([readFileSync(path, "utf8"), statSync(path).mode & 0o777]).toEqual(["0123456789", 0o600])
  expect(await refusal(url, target(), 9)).toContain("more than 9 bytes")
})

test("a URL's login and query are in no message", async () => {
  using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => new Response("", { status: 403 }),
  })
  const path = target()
  for (const host of ["far.test", `127.0.0.1:${server.port}`]) {
    const message = await refusal(`http://ann:planted@${host}/a.tar.gz?token=planted`, path)
    expect(message).toContain(`http://${host}/a.tar.gz`)
    expect(message).not.toContain("planted")
  }
  expect(existsSync(path)).toBe(false)
})

test("a URL that leads to another machine without TLS is not followed to its end", async () => {
  const path = target()
  using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) => {
      const { pathname, port } = new URL(url)
      const elsewhere = `http://0.0.0.0:${port}/file?token=planted` // another name of this machine
      return pathname === "/file" ? new Response("0123456789") : Response.redirect(elsewhere)
    },
  })
  const message = await refusal(`http://127.0.0.1:${server.port}/a`, path)
  expect(message).toContain(`it leads to http://0.0.0.0:${server.port}/file, which`)
  expect(message).not.toContain("planted")
  expect(existsSync(path)).toBe(false)
})
