import { expect, test } from "bun:test"
import { download } from "../../cli/lib/download"

const refusal = (url: string, most_bytes = 10) =>
  download(new URL(url), { most_bytes }).then(
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
  const bytes = await download(new URL(url), { most_bytes: 10 })
  expect(bytes.toString()).toBe("0123456789")
  expect(await refusal(url, 9)).toContain("more than 9 bytes")
})

test("a URL's login and query are in no message", async () => {
  using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => new Response("", { status: 403 }),
  })
  for (const host of ["far.test", `127.0.0.1:${server.port}`]) {
    const message = await refusal(`http://ann:planted@${host}/a.tar.gz?token=planted`)
    expect(message).toContain(`http://${host}/a.tar.gz`)
    expect(message).not.toContain("planted")
  }
})

test("a URL that leads to another machine without TLS is not followed to its end", async () => {
  using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) => {
      const { pathname, port } = new URL(url)
      const elsewhere = `http://0.0.0.0:${port}/file?token=planted` // another name of this machine
      return pathname === "/file" ? new Response("0123456789") : Response.redirect(elsewhere)
    },
  })
  const message = await refusal(`http://127.0.0.1:${server.port}/a`)
  expect(message).toContain(`it leads to http://0.0.0.0:${server.port}/file, which`)
  expect(message).not.toContain("planted")
})
