import { once } from "node:events"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { Readable } from "node:stream"
import type { OperationInput } from "../../src/client/client"
import { newSecret, verify } from "../../src/lib/signature"
import { type Client, openClient } from "../lib/client"
import { NOBODY } from "../lib/profiles"
import { lookUntil, millis, pause } from "../lib/time"
import { ownCommand, scratchEnvironment } from "./own-binary"

const POLL_MILLISECONDS = 25

/** The name under which the scratch server receives mail. */
const HOST = "mx.smoke.test"
const SENDER = "smoke@mailbox.test"

/** What `up --json` prints first. */
interface ReadyLine {
  url: string
  api_key: string
  smtp: { submission: number; inbound: number }
}

type SmokeMail = OperationInput<"POST /v1/emails">[0]["body"]

type Child = Bun.Subprocess<"ignore", "pipe", "pipe">

/** A server of this program in a scratch folder, on free ports of the loopback, and what the checks ask of it. */
export class SmokeBox implements Disposable {
  /** The backup, the email that is open in it, and the time when this email is due. */
  kept: { path: string; id: string; due: number } | undefined
  readonly #scratch: string
  readonly #deadline: number
  readonly #names = Bun.udpSocket({ hostname: "127.0.0.1", socket: { data: knowsNoName } })
  #child: Child | undefined
  #ready: ReadyLine | undefined

  /** What still runs at the deadline (a time of `millis`) is killed. */
  constructor(scratch: string, deadline: number) {
    this.#scratch = scratch
    this.#deadline = deadline
  }

  get ready(): ReadyLine {
    if (!this.#ready) throw new Error("the server does not run")
    return this.#ready
  }

  /** Calls the server as its first project. */
  get client(): Client {
    const { url, api_key } = this.ready
    const timeout = this.#left
    return openClient({ ...NOBODY, url, api_key }, { timeout, dry_run: false })
  }

  folder = (name: string) => join(this.#scratch, name)

  /** Starts `belfry up` and waits for its first line. When the server ends before that, throws its log. */
  async start(...words: string[]): Promise<void> {
    const child = await this.#spawn(["up", "--json", "--port", "0", ...words])
    this.#child = child
    const log = child.stderr.text()
    const input = Readable.fromWeb(child.stdout as Parameters<typeof Readable.fromWeb>[0])
    const lines = createInterface({ input }) // reads on: a full pipe would stop the server
    const [line] = await Promise.race([once(lines, "line"), once(lines, "close")])
    if (line !== undefined) {
      this.#ready = JSON.parse(line) as ReadyLine
      return
    }
    await child.exited
    throw new Error(`the server ended with ${endOf(child)}: ${(await log).trim()}`)
  }

  /** Stops the server by SIGTERM, as a service manager does. Throws unless it ends with 0. */
  async stop(): Promise<void> {
    const child = this.#child
    child?.kill("SIGTERM")
    await child?.exited
    if (child?.exitCode !== 0) throw new Error(`the server ended with ${child && endOf(child)}`)
  }

  /** Runs another command of this program. Throws unless it ends with 0. */
  async run(...words: string[]): Promise<string> {
    const child = await this.#spawn(words)
    const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
    if (child.exitCode === 0) return out
    const said = (err || out).trim().slice(-500)
    throw new Error(`belfry ${words.slice(0, 2).join(" ")} ended with ${endOf(child)}: ${said}`)
  }

  /** Asks again until `wanted` finds something. Throws at the deadline, with the last answer. */
  async until<Answer, Found>(
    ask: (client: Client) => Answer | Promise<Answer>,
    wanted: (answer: Answer) => Found | undefined | false,
  ): Promise<Found> {
    const answer = await lookUntil(
      async () => ask(this.client),
      (seen) => Boolean(wanted(seen)),
      { limit: this.#left, every: POLL_MILLISECONDS },
    )
    const found = wanted(answer)
    if (found) return found
    throw new Error(`out of time: the answer is still ${JSON.stringify(answer).slice(0, 300)}`)
  }

  async send(body: SmokeMail): Promise<string> {
    return (await this.client.call("POST /v1/emails", { body })).data.id
  }

  delivered(email_id: string) {
    return this.until(
      (client) => client.call("GET /v1/emails/{email_id}", { params: { email_id } }),
      ({ data }) => data.status === "delivered" && data,
    )
  }

  /** The mail is in the embedded mailbox, where a recipient would read it. */
  caught(to: string, subject: string) {
    return this.until(
      (client) => client.call("GET /v1/mailbox", { query: { to } }),
      ({ data }) => data.some((mail) => mail.subject === subject),
    )
  }

  [Symbol.dispose](): void {
    this.#child?.kill("SIGKILL")
    void this.#names.then((socket) => socket.close())
  }

  get #left(): number {
    return Math.max(1, this.#deadline - millis())
  }

  /** A command without the settings of this user: no ballast, and no other machine. */
  async #spawn(words: string[]): Promise<Child> {
    const there = this.#ready && {
      BELFRY_URL: this.#ready.url,
      BELFRY_API_KEY: this.#ready.api_key,
    }
    return Bun.spawn(ownCommand(...words), {
      cwd: this.#scratch,
      env: {
        ...scratchEnvironment(this.folder("home")),
        BELFRY_DNS_SERVERS: `127.0.0.1:${(await this.#names).port}`,
        BELFRY_DOMAINS_HOST: HOST,
        BELFRY_STORAGE_BALLAST_MB: "0",
        BELFRY_STORAGE_MIN_FREE_MB: "0",
        ...there,
      },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      timeout: this.#left,
      killSignal: "SIGKILL",
    })
  }
}

const endOf = ({ exitCode, signalCode }: Child) => String(exitCode ?? signalCode)

const HEADER_BYTES = 12
const NO_SUCH_NAME = 0x8183

/** A name server that knows no name: nothing of a run leaves this machine (RFC 1035, 4.1.1). */
function knowsNoName(from: Bun.udp.Socket<"buffer">, question: Buffer, port: number, to: string) {
  if (question.length < HEADER_BYTES) return
  const answer = Buffer.from(question)
  answer.writeUInt16BE(NO_SUCH_NAME, 2)
  answer.writeUInt16BE(0, 10)
  from.send(answer, port, to)
}

export interface SmokeCheck {
  name: string
  about: string
  run(box: SmokeBox): Promise<unknown>
}

/** In the order in which they run. When the first fails, the rest is not tried. */
export const SMOKE_CHECKS: readonly SmokeCheck[] = [
  {
    name: "start",
    about: "the server starts in an empty folder and is ready",
    async run(box) {
      await box.start("--data-dir", box.folder("box"))
      const { status, body } = await box.client.plain("/readyz")
      if (status !== 200) throw new Error(`/readyz answered ${status}: ${JSON.stringify(body)}`)
    },
  },
  {
    name: "send",
    about: "an email that the API accepts is delivered",
    async run(box) {
      const mail = { from: SENDER, to: "ann@mailbox.test", subject: "Smoke", text: "send" }
      await box.delivered(await box.send(mail))
      await box.caught("ann@mailbox.test", "Smoke")
    },
  },
  {
    name: "webhook",
    about: "an event reaches a webhook with a right signature",
    async run(box) {
      const heard: { headers: Record<string, string>; body: string }[] = []
      using receiver = Bun.serve({
        hostname: "127.0.0.1",
        port: 0,
        fetch: async (request) => {
          heard.push({ headers: request.headers.toJSON(), body: await request.text() })
          return new Response("ok")
        },
      })
      const secret = newSecret()
      const hook = { url: receiver.url.href, events: ["email.delivered" as const], secret }
      await box.client.call("POST /v1/webhooks", { body: hook })
      const mail = { from: SENDER, to: "bob@mailbox.test", subject: "Smoke", text: "webhook" }
      const id = await box.send(mail)
      const { headers, body } = await box.until(
        () => heard,
        ([one]) => one,
      )
      const signature = verify({ secret, headers, body, now_seconds: millis() / 1000 })
      if (signature !== "ok") throw new Error(`the signature of the delivery is ${signature}`)
      const { type, data } = JSON.parse(body)
      if (type !== "email.delivered" || data.message_id !== id)
        throw new Error(`the delivery is ${type} of ${data.message_id}, not of ${id}`)
    },
  },
  {
    name: "template",
    about: "a template is stored, rendered and sent",
    async run(box) {
      const text = { subject: "Order {{number}}", html: "<p>Hello {{name}}</p>" }
      await box.client.call("POST /v1/templates", { body: { name: "smoke", ...text } })
      const variables = { number: 1042, name: "<Ann>" }
      const mail = { from: SENDER, to: "tim@mailbox.test", template_id: "smoke", variables }
      const { html } = await box.delivered(await box.send(mail))
      if (!html?.includes("Hello &lt;Ann&gt;")) throw new Error(`the html is ${html}`)
      await box.caught("tim@mailbox.test", "Order 1042")
    },
  },
  {
    name: "submission",
    about: "an email that comes by SMTP with login is delivered",
    async run(box) {
      const address = `127.0.0.1:${box.ready.smtp.submission}`
      const mail = ["--from", SENDER, "--to", "sue@mailbox.test", "--subject", "Submitted"]
      await box.run("smtp", "test", address, ...mail, "--insecure", "--json")
      await box.caught("sue@mailbox.test", "Submitted")
    },
  },
  {
    name: "inbound",
    about: "an email from a stranger is received and read",
    async run(box) {
      const address = `127.0.0.1:${box.ready.smtp.inbound}`
      const mail = ["--from", "eve@stranger.test", "--to", `postmaster@${HOST}`]
      const words = ["--tls", "none", "--no-login", "--subject", "Received", "--json"]
      await box.run("smtp", "test", address, ...mail, ...words)
      await box.until(
        (client) => client.call("GET /v1/inbound-emails"),
        ({ data }) => data.some(({ subject }) => subject === "Received"),
      )
    },
  },
  {
    name: "backup",
    about: "a backup is made beside the server, and verified",
    async run(box) {
      const due = millis() + HELD_MILLISECONDS
      const mail = { from: SENDER, to: "zoe@mailbox.test", subject: "Held", text: "held" }
      const id = await box.send({ ...mail, scheduled_at: new Date(due).toISOString() })
      const folder = ["--data-dir", box.folder("box")]
      const made = await box.run("backup", "create", "--json", ...folder)
      const { path } = JSON.parse(made) as { path: string }
      await box.run("backup", "verify", path, ...folder)
      box.kept = { path, id, due }
    },
  },
  {
    name: "stop",
    about: "the server stops in order",
    run: (box) => box.stop(),
  },
  {
    name: "restore",
    about: "the backup is restored, and its open email is held",
    async run(box) {
      const { path, id, due } = keptIn(box)
      const folder = ["--data-dir", box.folder("restored")]
      await box.run("restore", path, "--master-key", box.folder("box/master.key"), ...folder)
      await box.start("--new-key", ...folder)
      await pause(Math.max(0, due + LATE_MILLISECONDS - millis()))
      const params = { email_id: id }
      const { data } = await box.client.call("GET /v1/emails/{email_id}", { params })
      if (data.status !== "queued") throw new Error(`the held email is ${data.status}`)
    },
  },
  {
    name: "release",
    about: "the held email is released and delivered",
    async run(box) {
      const words = ["queue", "resume", "held_after_restore", "--where", "kind=email"]
      await box.run(...words, "--data-dir", box.folder("restored"))
      await box.delivered(keptIn(box).id)
      await box.stop()
    },
  },
]

/** How long the email waits that is open in the backup. */
const HELD_MILLISECONDS = 5000
/** So long after its time, an email that is not held would have been sent. */
const LATE_MILLISECONDS = 300

function keptIn({ kept }: SmokeBox) {
  if (!kept) throw new Error("there is no backup")
  return kept
}
