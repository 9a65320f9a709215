import { afterAll, expect, test } from "bun:test"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createTransport } from "nodemailer"
import { Webhook } from "standardwebhooks"
import { loadSettings } from "../../src/core/config"
import { start } from "../../src/server"
import { ensureFirst } from "../../src/tenancy/setup"
import { emptyDns } from "../harness/empty-dns"
import { addReceivingDomain } from "../harness/inbound-rows"
import { leftover } from "../harness/leftovers"
import { OWN_PORTS } from "../harness/own-ports"
import { freshDatabase } from "../harness/postgres"
import { quietLog } from "../harness/quiet"
import { engine } from "../harness/store"

quietLog()

const dns = await emptyDns()
const database = engine === "postgres" ? await freshDatabase() : undefined
const told: { headers: Headers; body: string }[] = []
const arrived: ((value: (typeof told)[number]) => void)[] = []
const receiver = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    const one = { headers: request.headers, body: await request.text() }
    told.push(one)
    arrived.shift()?.(one)
    return new Response()
  },
})
const next = () => new Promise<(typeof told)[number]>((resolve) => arrived.push(resolve))

const running = await start({
  loaded: loadSettings({
    environment: {},
    flags: {
      data_dir: leftover(mkdtempSync(join(tmpdir(), "belfry-arrival-"))),
      ...(database && { database_url: database.url }),
      ...OWN_PORTS,
      "domains.host": "mx.belfry.test",
      "dns.servers": [dns.server],
      "webhooks.require_https": false,
      "webhooks.allow_private": ["127.0.0.0/8"],
    },
  }),
  mode: "up",
})
afterAll(async () => {
  await running.stop()
  receiver.stop(true)
  dns[Symbol.dispose]()
  await database?.[Symbol.asyncDispose]()
})

const { store, secrets } = running
const first = await ensureFirst(store, secrets, { keep_key: true, new_key: false })
const call = async (method: string, path: string, body?: unknown) => {
  const reply = await fetch(`${running.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${first.api_key}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return (await reply.json()) as { data: Record<string, unknown> }
}

const transport = createTransport({
  host: "127.0.0.1",
  port: running.smtp.inbound ?? 0,
  requireTLS: true,
  tls: { rejectUnauthorized: false },
  name: "mx.elsewhere.test",
})

test("a mail over STARTTLS is a signed webhook with an attachment that anybody may fetch for an hour", async () => {
  const domain = await addReceivingDomain(store, first)
  const url = `http://127.0.0.1:${receiver.port}/`
  const hook = await call("POST", "/v1/webhooks", { url, events: ["email.received"] })
  const webhook = next()
  await transport.sendMail({
    from: "Ann <ann@elsewhere.test>",
    to: `support+42@${domain}`,
    subject: "Grüße",
    text: "Where is it?",
    attachments: [{ filename: "a.txt", content: "a file" }],
  })
  const { headers, body } = await webhook
  const event = new Webhook(String(hook.data.secret)).verify(body, Object.fromEntries(headers)) as {
    type: string
    data: { message_id: string; inbound: Record<string, unknown> }
  }
  expect(event.type).toBe("email.received")
  expect(event.data.inbound).toMatchObject({
    kind: "new",
    subject: "Grüße",
    mailbox_hash: "42",
    from: { email: "ann@elsewhere.test", name: "Ann" },
    status: "processed",
    envelope: { from: "ann@elsewhere.test", to: [`support+42@${domain}`] },
  })
  const [file] = event.data.inbound.attachments as { url: string }[]
  const fetched = await fetch(file?.url ?? "")
  expect(await fetched.text()).toBe("a file")
  const read = await call("GET", `/v1/inbound-emails/${event.data.message_id}`)
  expect(read.data).toMatchObject({ text_body: "Where is it?", thread_id: event.data.message_id })
})

test("an answer to an email comes back to its address and joins its thread", async () => {
  await call("PATCH", "/v1/settings", { reply_tracking: true })
  const sent = await call("POST", "/v1/emails", {
    from: "bell@mailbox.test",
    to: "ann@mailbox.test",
    subject: "Your order",
    text: "It is on its way.",
    metadata: { order: "1042" },
  })
  const id = String(sent.data.id)
  const email = await call("GET", `/v1/emails/${id}`)
  const [reply_to] = email.data.reply_to as { email: string }[]
  expect(reply_to?.email).toMatch(/^r\+[a-z2-7]{42}@mx\.belfry\.test$/)
  const webhook = next()
  await transport.sendMail({
    from: "ann@elsewhere.test",
    to: reply_to?.email,
    subject: "Re: Your order",
    text: "Thanks",
  })
  const { data } = JSON.parse((await webhook).body)
  expect(data.inbound).toMatchObject({
    kind: "reply",
    replied_to_message_id: id,
    thread_id: id,
    reply_to_metadata: { order: "1042" },
  })
  expect((await call("GET", `/v1/emails/${id}`)).data.thread_id).toBe(id)
})
