import { join } from "node:path"
import type { OperationInput } from "../../src/client/client"
import { newSecret, verify } from "../../src/lib/signature"
import { millis, pause } from "../lib/time"
import { runOwn, type SmokeOptions, SmokeServer } from "./smoke-server"

/** What the checks of one run share. */
export interface SmokeBench {
  options: SmokeOptions
  /** The server under test, once it has started. */
  server: SmokeServer | undefined
  receiver: SmokeReceiver
  /** The backup, the email that is open in it, and the time when this email is due. */
  kept?: { path: string; id: string; due: number }
}

export interface SmokeCheck {
  name: string
  about: string
  run(bench: SmokeBench): Promise<void>
}

/** The name under which the scratch server receives mail. */
const HOST = "mx.smoke.test"
const SENDER = "smoke@mailbox.test"

/** Settings of the scratch server: no name server, no ballast, no other machine. */
export const smokeSettings = (name_server: string): Record<string, string> => ({
  BELFRY_DNS_SERVERS: name_server,
  BELFRY_DOMAINS_HOST: HOST,
  BELFRY_STORAGE_BALLAST_MB: "0",
  BELFRY_STORAGE_MIN_FREE_MB: "0",
})

/** In the order in which they run. When the first fails, the rest is not tried. */
export const SMOKE_CHECKS: readonly SmokeCheck[] = [
  {
    name: "start",
    about: "the server starts in an empty folder and is ready",
    async run(bench) {
      const folder = join(bench.options.scratch, "box")
      bench.server = await SmokeServer.start(["--data-dir", folder], bench.options)
      const { status, body } = await bench.server.client.plain("/readyz")
      if (status !== 200) throw new Error(`/readyz answered ${status}: ${JSON.stringify(body)}`)
    },
  },
  {
    name: "send",
    about: "an email that the API accepts is delivered",
    async run(bench) {
      const server = running(bench)
      const mail = { from: SENDER, to: "ann@mailbox.test", subject: "Smoke", text: "send" }
      const id = await sent(server, mail)
      await delivered(server, id)
      await caught(server, "ann@mailbox.test", "Smoke")
    },
  },
  {
    name: "webhook",
    about: "an event reaches a webhook with a right signature",
    async run(bench) {
      const server = running(bench)
      const { url, secret, heard } = bench.receiver
      const hook = { url, events: ["email.delivered" as const], secret }
      await server.client.call("POST /v1/webhooks", { body: hook })
      const mail = { from: SENDER, to: "bob@mailbox.test", subject: "Smoke", text: "webhook" }
      const id = await sent(server, mail)
      const first = await server.until(
        async () => heard,
        ([one]) => one,
      )
      requireSigned(first, secret, id)
    },
  },
  {
    name: "template",
    about: "a template is stored, rendered and sent",
    async run(bench) {
      const server = running(bench)
      const text = { subject: "Order {{number}}", html: "<p>Hello {{name}}</p>" }
      await server.client.call("POST /v1/templates", { body: { name: "smoke", ...text } })
      const variables = { number: 1042, name: "<Ann>" }
      const mail = { from: SENDER, to: "tim@mailbox.test", template_id: "smoke", variables }
      const id = await sent(server, mail)
      const { html } = await delivered(server, id)
      if (!html?.includes("Hello &lt;Ann&gt;")) throw new Error(`the html is ${html}`)
      await caught(server, "tim@mailbox.test", "Order 1042")
    },
  },
  {
    name: "submission",
    about: "an email that comes by SMTP with login is delivered",
    async run(bench) {
      const server = running(bench)
      const address = `127.0.0.1:${server.ready.smtp.submission}`
      const mail = ["--from", SENDER, "--to", "sue@mailbox.test", "--subject", "Submitted"]
      await server.run("smtp", "test", address, ...mail, "--insecure", "--json")
      await caught(server, "sue@mailbox.test", "Submitted")
    },
  },
  {
    name: "inbound",
    about: "an email from a stranger is received and read",
    async run(bench) {
      const server = running(bench)
      const address = `127.0.0.1:${server.ready.smtp.inbound}`
      const mail = ["--from", "eve@stranger.test", "--to", `postmaster@${HOST}`]
      const words = ["--tls", "none", "--no-login", "--subject", "Received", "--json"]
      await server.run("smtp", "test", address, ...mail, ...words)
      await server.until(
        (client) => client.call("GET /v1/inbound-emails"),
        ({ data }) => data.some(({ subject }) => subject === "Received") || undefined,
      )
    },
  },
  {
    name: "backup",
    about: "a backup is made beside the server, and verified",
    async run(bench) {
      const { scratch } = bench.options
      const due = new Date(millis() + HELD_MILLISECONDS).toISOString()
      const mail = { from: SENDER, to: "zoe@mailbox.test", subject: "Held", text: "held" }
      const id = await sent(running(bench), { ...mail, scheduled_at: due })
      const folder = ["--data-dir", join(scratch, "box")]
      const made = await runOwn(["backup", "create", "--json", ...folder], bench.options)
      const { path } = JSON.parse(made) as { path: string }
      await runOwn(["backup", "verify", path, ...folder], bench.options)
      bench.kept = { path, id, due: millis() + HELD_MILLISECONDS }
    },
  },
  {
    name: "stop",
    about: "the server stops in order",
    run: (bench) => running(bench).stop(),
  },
  {
    name: "restore",
    about: "the backup is restored, and its open email is held",
    async run(bench) {
      const { scratch } = bench.options
      const { path, id, due } = keptIn(bench)
      const folder = ["--data-dir", join(scratch, "restored")]
      const key = ["--master-key", join(scratch, "box/master.key")]
      await runOwn(["restore", path, ...key, ...folder], bench.options)
      bench.server = await SmokeServer.start(["--new-key", ...folder], bench.options)
      await pause(Math.max(0, due + LATE_MILLISECONDS - millis()))
      const { data } = await bench.server.client.call("GET /v1/emails/{email_id}", {
        params: { email_id: id },
      })
      if (data.status !== "queued") throw new Error(`the held email is ${data.status}`)
    },
  },
  {
    name: "release",
    about: "the held email is released and delivered",
    async run(bench) {
      const folder = ["--data-dir", join(bench.options.scratch, "restored")]
      const words = ["queue", "resume", "held_after_restore", "--where", "kind=email"]
      await runOwn([...words, ...folder], bench.options)
      const server = running(bench)
      await delivered(server, keptIn(bench).id)
      await server.stop()
    },
  },
]

/** How long the email waits that is open in the backup. */
const HELD_MILLISECONDS = 5000
/** So long after its time, an email that is not held would have been sent. */
const LATE_MILLISECONDS = 300

function keptIn({ kept }: SmokeBench) {
  if (!kept) throw new Error("there is no backup")
  return kept
}

function running({ server }: SmokeBench): SmokeServer {
  if (!server) throw new Error("the server does not run")
  return server
}

type SmokeMail = OperationInput<"POST /v1/emails">[0]["body"]

async function sent({ client }: SmokeServer, body: SmokeMail): Promise<string> {
  return (await client.call("POST /v1/emails", { body })).id
}

const delivered = (server: SmokeServer, email_id: string) =>
  server.until(
    (client) => client.call("GET /v1/emails/{email_id}", { params: { email_id } }),
    ({ data }) => (data.status === "delivered" ? data : undefined),
  )

/** The mail is in the embedded mailbox, where a recipient would read it. */
const caught = (server: SmokeServer, to: string, subject: string) =>
  server.until(
    (client) => client.call("GET /v1/mailbox", { query: { to } }),
    ({ data }) => data.some((mail) => mail.subject === subject) || undefined,
  )

interface HeardDelivery {
  headers: Record<string, string>
  body: string
}

function requireSigned({ headers, body }: HeardDelivery, secret: string, id: string): void {
  const verdict = verify({ secret, headers, body, now_seconds: millis() / 1000 })
  if (verdict !== "ok") throw new Error(`the signature of the delivery is wrong: ${verdict}`)
  const { type, data } = JSON.parse(body) as { type: string; data: { message_id?: string } }
  if (type !== "email.delivered") throw new Error(`the delivery is of the type ${type}`)
  if (data.message_id !== id) throw new Error(`the delivery is about ${data.message_id}, not ${id}`)
}

/** The receiver of the webhook, on a free port. */
export interface SmokeReceiver extends Disposable {
  url: string
  secret: string
  heard: HeardDelivery[]
}

export function openReceiver(): SmokeReceiver {
  const heard: HeardDelivery[] = []
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      heard.push({ headers: request.headers.toJSON(), body: await request.text() })
      return new Response("ok")
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}/`,
    secret: newSecret(),
    heard,
    [Symbol.dispose]: () => void server.stop(true),
  }
}

/** A name server that knows no name: nothing of a run leaves this machine (RFC 1035, 4.1.1). */
export async function openNameServer(): Promise<{ address: string } & Disposable> {
  const socket = await Bun.udpSocket({
    hostname: "127.0.0.1",
    socket: {
      data(from, question, port, address) {
        if (question.length < HEADER_BYTES) return
        const answer = Buffer.from(question)
        answer.writeUInt16BE(NO_SUCH_NAME, 2)
        answer.writeUInt16BE(0, 10)
        from.send(answer, port, address)
      },
    },
  })
  return { address: `127.0.0.1:${socket.port}`, [Symbol.dispose]: () => socket.close() }
}

const HEADER_BYTES = 12
const NO_SUCH_NAME = 0x8183
