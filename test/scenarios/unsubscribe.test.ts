import { expect, test } from "bun:test"
import { rmSync } from "node:fs"
import nodemailer from "nodemailer"
import { type Belfry, makeHome, startBelfry } from "../harness/binary"
import { until } from "../harness/hooks"

const ADDRESS = "ann@mailbox.test"

const LETTER = {
  from: "news@mailbox.test",
  to: ADDRESS,
  subject: "News",
  category: "newsletter",
  html: '<p>Hi</p><a href="{{unsubscribe_url}}">out</a>',
  variables: {},
}

const post = (server: Belfry, path: string, body: object) =>
  server.request(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  })

async function dataAt(server: Belfry, path: string) {
  const answer = await (await server.request(path)).json()
  return (answer as { data: { status?: string; html?: string } }).data
}

/** Sends, and reads the mail as it lies in the mailbox: the links of its header and of its body. */
async function received(server: Belfry, fields: object = {}) {
  const sent = await post(server, "/v1/emails", { ...LETTER, ...fields })
  expect(sent.status).toBe(201)
  const { id } = (await sent.json()) as { id: string }
  await until(async () => {
    return (await dataAt(server, `/v1/emails/${id}`)).status === "delivered"
  })
  const raw = await (await server.request(`/v1/emails/${id}/raw`)).text()
  const head = raw.slice(0, raw.indexOf("\r\n\r\n")).replaceAll(/\r\n[ \t]+/g, " ")
  const [, url = "", address = ""] =
    /^List-Unsubscribe: <([^>]+)>, <mailto:([^>]+)>$/m.exec(head) ?? []
  const { html = "" } = await dataAt(server, `/v1/emails/${id}/content`)
  const [, in_body = ""] = /href="([^"]+)"/.exec(html) ?? []
  return { url, address, in_body }
}

const codeOf = async (response: Response) =>
  ((await response.json()) as { error?: { code: string } }).error?.code

test("a recipient leaves by one click and by mail; both hold over a SIGKILL, and the person comes back", async () => {
  const home = makeHome()
  const env = { BELFRY_DOMAINS_HOST: "mx.belfry.test" }
  let server = await startBelfry({ home, env })
  const first = await received(server)
  expect(first.url).toStartWith(`${server.url}/u/`)
  expect(first.in_body).toBe(first.url)
  const second = await received(server, { category: "offers" })
  expect((await fetch(first.url)).status).toBe(200)

  const body = new URLSearchParams({ "List-Unsubscribe": "One-Click" })
  const clicked = await fetch(first.url, { method: "POST", body, redirect: "error" })
  expect([clicked.status, await clicked.text()]).toEqual([200, ""])
  server.kill("SIGKILL")
  await server.exited

  server = await startBelfry({ home, env })
  try {
    const letter = (category: string) =>
      post(server, "/v1/emails", { ...LETTER, category }).then(codeOf)
    expect(await letter("newsletter")).toBe("suppressed_recipient")

    const port = server.smtp.inbound ?? 0
    const client = nodemailer.createTransport({ host: "127.0.0.1", port, ignoreTLS: true })
    await client.sendMail({ from: "x@elsewhere.test", to: second.address, text: "stay" })
    await until(async () => (await letter("offers")) === "suppressed_recipient")
    await received(server, { category: "receipts-of-all" })
    const plain = await post(server, "/v1/emails", { ...LETTER, category: undefined })
    expect(plain.status).toBe(201)

    const path = new URL(first.url).pathname.replace("/u/", "/p/")
    const choice = { "seen category:newsletter": "1", "get category:newsletter": "1" }
    const form = new URLSearchParams({ action: "save", ...choice })
    expect((await fetch(`${server.url}${path}`, { method: "POST", body: form })).status).toBe(200)
    await received(server)
    expect(await letter("offers")).toBe("suppressed_recipient")
  } finally {
    await server[Symbol.asyncDispose]()
    rmSync(home, { recursive: true, force: true })
  }
})
