import { once } from "node:events"
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { Readable } from "node:stream"
import type { Components } from "../../src/client/components"
import { verify } from "../../src/lib/signature"
import { openClient } from "../lib/client"
import { type InboxFrame, InboxStream } from "../lib/inbox-stream"
import { NOBODY } from "../lib/profiles"
import { millis, pause } from "../lib/time"
import { ownCommand, scratchEnvironment } from "./own-binary"
import { pushToBrowser } from "./smoke-push"
import { signUpByCode } from "./smoke-sign-up"

/** The name under which the scratch server receives mail. */
const HOST = "mx.smoke.test"
const SENDER = "smoke@mailbox.test"

/** What `up --json` prints first. */
interface ReadyLine {
  url: string
  api_key: string
  smtp: { submission: number; inbound: number }
}

type Child = Bun.Subprocess<"ignore", "pipe", "pipe">

/** A server of this program in a scratch folder, on free ports of the loopback, and the commands that the checks give it. */
export class SmokeBox implements Disposable {
  /** The backup, the email that is open in it, and the time when this email is due. */
  kept: { path: string; id: string; due: number } | undefined
  readonly #scratch = mkdtempSync(join(tmpdir(), "belfry-smoke-"))
  readonly #deadline: number
  readonly #names = Bun.udpSocket({ hostname: "127.0.0.1", socket: { data: knowsNoName } })
  #child: Child | undefined
  #ready: ReadyLine | undefined

  /** What still runs at the deadline (a time of `millis`) is killed. */
  constructor(deadline: number) {
    this.#deadline = deadline
    mkdirSync(this.folder("home"))
  }

  get ready(): ReadyLine {
    if (!this.#ready) throw new Error("the server does not run")
    return this.#ready
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

  /** Runs another command of this program, and gives the JSON that it prints. Throws unless it ends with 0. */
  async run<Printed>(...words: string[]): Promise<Printed> {
    const child = await this.#spawn(words)
    const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
    if (child.exitCode === 0) return JSON.parse(out) as Printed
    const said = (err || out).trim().slice(-500)
    throw new Error(`belfry ${words.slice(0, 2).join(" ")} ended with ${endOf(child)}: ${said}`)
  }

  send = (to: string, ...words: string[]) =>
    this.run<Components["Email"]>("emails", "send", "--from", SENDER, "--to", to, ...words)

  /** The mail is in the embedded mailbox, where a recipient would read it. */
  caught = (to: string, subject: string) =>
    this.run("mailbox", "wait", "--to", to, "--subject", subject)

  /** What somebody else is to bring before the deadline. */
  async inTime<Brought>(brought: Promise<Brought>, what: string): Promise<Brought> {
    const late = pause(this.#left).then(() => Promise.reject(new Error(`out of time: no ${what}`)))
    return await Promise.race([brought, late])
  }

  /** Leaves nothing behind. */
  [Symbol.dispose](): void {
    this.#child?.kill("SIGKILL")
    void this.#names.then((socket) => socket.close())
    rmSync(this.#scratch, { recursive: true, force: true })
  }

  get #left(): number {
    return Math.max(1, this.#deadline - millis())
  }

  /** A command without the settings of this user: no ballast, and no other machine. */
  async #spawn(words: string[]): Promise<Child> {
    const { url, api_key } = this.#ready ?? {}
    return Bun.spawn(ownCommand(...words), {
      cwd: this.#scratch,
      env: {
        ...scratchEnvironment(this.folder("home")),
        BELFRY_DNS_SERVERS: `127.0.0.1:${(await this.#names).port}`,
        BELFRY_DOMAINS_HOST: HOST,
        BELFRY_STORAGE_BALLAST_MB: "0",
        BELFRY_STORAGE_MIN_FREE_MB: "0",
        ...(url && { BELFRY_URL: url, BELFRY_API_KEY: api_key }),
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

interface Heard {
  headers: Record<string, string>
  body: string
}

export interface SmokeCheck {
  name: string
  about: string
  run(box: SmokeBox): Promise<unknown>
}

const check = (name: string, about: string, run: SmokeCheck["run"]): SmokeCheck => {
  return { name, about, run }
}

type EventEnvelope = Components["EventEnvelope"]

const READER = "smoke-reader"
const CALL_MILLISECONDS = 10_000

/** Follows an inbox as an app does, sends a message to it, and marks that as read over the socket. Gives its id. */
async function readInInbox(box: SmokeBox) {
  const { url, api_key } = box.ready
  const open = (anonymous: boolean) =>
    openClient(
      { ...NOBODY, url, api_key },
      { timeout: CALL_MILLISECONDS, dry_run: false, anonymous },
    )
  const first = { ready: next(), created: next(), ack: next() }
  const stream = new InboxStream(
    open(false),
    open(true),
    { external_id: READER },
    {
      onFrame(frame) {
        const name = frame.type === "message.created" ? "created" : frame.type
        if (name in first) first[name as keyof typeof first].resolve(frame)
      },
    },
  )
  const heard = async (name: keyof typeof first) => {
    const frame = await box.inTime(
      Promise.race([first[name].promise, stream.ended]),
      `frame ${name}`,
    )
    if (!frame) throw new Error(`the socket closed before the frame ${name}`)
    return frame
  }
  try {
    await heard("ready")
    const words = ["inbox", "send", "--to", READER, "--title", "Smoke"]
    const { id } = await box.run<{ id: string }>(...words)
    const told = await heard("created")
    if (told.type !== "message.created" || told.message.id !== id)
      throw new Error(`the socket told of another message than ${id}`)
    stream.send({ type: "mark", id, as: "read", ref: "smoke" })
    await heard("ack")
    return id
  } finally {
    stream.close()
  }
}

const next = () => Promise.withResolvers<InboxFrame>()

/** In the order in which they run. When the first fails, the rest is not tried. */
export const SMOKE_CHECKS: readonly SmokeCheck[] = [
  check("start", "the server starts in an empty folder and is ready", async (box) => {
    await box.start("--data-dir", box.folder("box"))
    await box.run("status")
  }),
  check("send", "an email that the API accepts is delivered", async (box) => {
    await box.send("ann@mailbox.test", "--subject", "Smoke", "--text", "send", "--wait")
    await box.caught("ann@mailbox.test", "Smoke")
  }),
  check("text", "a text is delivered, and shown in the mailbox", async (box) => {
    await box.run("sms", "send", "+14155550100", "Smoke", "--wait")
    await box.run("mailbox", "wait", "--to", "14155550100@sms.mailbox.test")
  }),
  check("inbox", "a message reaches an open inbox, and is read there", async (box) => {
    await box.run("subscribers", "upsert", READER)
    const id = await readInInbox(box)
    const list = ["inbox", "list", "--external-id", READER, "--state", "read"]
    const found = await box.run<{ id: string }[]>(...list)
    if (found[0]?.id !== id) throw new Error("the message is not read in the list")
    const events = await box.run<EventEnvelope[]>("events", "list", "--event", "inbox.read")
    if (events[0]?.data.inbox_message_id !== id) throw new Error("no event tells of it")
  }),
  check("push", "a push message reaches a browser, and is acknowledged", pushToBrowser),
  check("sign-up", "a person signs up by a code, and their session is revoked", signUpByCode),
  check("webhook", "an event reaches a webhook with a right signature", async (box) => {
    const { promise: heard, resolve } = Promise.withResolvers<Heard>()
    using receiver = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: async (request) => {
        resolve({ headers: request.headers.toJSON(), body: await request.text() })
        return new Response("ok")
      },
    })
    const hook = ["webhooks", "create", receiver.url.href, "--event", "email.delivered"]
    const { secret } = await box.run<{ secret: string }>(...hook)
    const { id } = await box.send("bob@mailbox.test", "--subject", "Smoke", "--text", "webhook")
    const { headers, body } = await box.inTime(heard, "delivery came")
    const signature = verify({ secret, headers, body, now_seconds: millis() / 1000 })
    if (signature !== "ok") throw new Error(`the signature of the delivery is ${signature}`)
    const { type, data } = JSON.parse(body)
    if (type !== "email.delivered" || data.message_id !== id)
      throw new Error(`the delivery is ${type} of ${data.message_id}, not of ${id}`)
  }),
  check("template", "a template is stored, rendered and sent", async (box) => {
    const file = box.folder("smoke.html")
    await Bun.write(file, "<p>Hello {{name}}</p>")
    const text = ["--subject", "Order {{number}}", "--html-file", file]
    await box.run("templates", "create", "--name", "smoke", ...text)
    const values = ["--var", "number=1042", "--var", "name=<Ann>"]
    const mail = ["--template", "smoke", ...values, "--wait"]
    const { html } = await box.send("tim@mailbox.test", ...mail)
    if (!html?.includes("Hello &lt;Ann&gt;")) throw new Error(`the html is ${html}`)
    await box.caught("tim@mailbox.test", "Order 1042")
  }),
  check(
    "submission",
    "an email that a program submits by SMTP with login is delivered",
    async (box) => {
      const address = `127.0.0.1:${box.ready.smtp.submission}`
      const mail = ["--from", SENDER, "--to", "sue@mailbox.test", "--subject", "Submitted"]
      await box.run("smtp", "test", address, ...mail, "--insecure")
      await box.caught("sue@mailbox.test", "Submitted")
    },
  ),
  check("inbound", "an email from a stranger is received and read", async (box) => {
    const [address, to] = [`127.0.0.1:${box.ready.smtp.inbound}`, `postmaster@${HOST}`]
    const mail = ["--from", "eve@stranger.test", "--to", to, "--subject", "Received"]
    await box.run("smtp", "test", address, ...mail, "--tls", "none", "--no-login")
    await box.run("inbound", "wait", "--to", to)
  }),
  check("backup", "a backup is made beside the server, and verified", async (box) => {
    const mail = ["--subject", "Held", "--text", "held", "--schedule-at", HELD_FOR]
    const { id, scheduled_at } = await box.send("zoe@mailbox.test", ...mail)
    const folder = ["--data-dir", box.folder("box")]
    const { path } = await box.run<{ path: string }>("backup", "create", ...folder)
    await box.run("backup", "verify", path, ...folder)
    box.kept = { path, id, due: Date.parse(scheduled_at ?? "") }
  }),
  check("stop", "the server stops in order", (box) => box.stop()),
  check("restore", "the backup is restored, and its open email is held", async (box) => {
    const { path, id, due } = keptIn(box)
    const folder = ["--data-dir", box.folder("restored")]
    await box.run("restore", path, "--master-key", box.folder("box/master.key"), ...folder)
    await box.start("--new-key", ...folder)
    await pause(Math.max(0, due + LATE_MILLISECONDS - millis()))
    const { status } = await box.run<Components["Email"]>("emails", "get", id)
    if (status !== "queued") throw new Error(`the held email is ${status}`)
  }),
  check("release", "the held email is released and delivered", async (box) => {
    const words = ["queue", "resume", "held_after_restore", "--where", "kind=email"]
    await box.run(...words, "--data-dir", box.folder("restored"))
    await box.caught("zoe@mailbox.test", "Held")
    await box.stop()
  }),
]

/** How long the email waits that is open in the backup. */
const HELD_FOR = "in 5s"
/** So long after its time, an email that is not held would have been sent. */
const LATE_MILLISECONDS = 300

function keptIn({ kept }: SmokeBox) {
  if (!kept) throw new Error("there is no backup")
  return kept
}
