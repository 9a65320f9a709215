import { hostname } from "node:os"
import { certificateFault } from "../lib/certificate-words"
import type { Action, Context } from "../lib/context"
import { exits, usage } from "../lib/errors"
import { readBytes } from "../lib/input"
import { password } from "../lib/prompts"
import { type SubmissionServer, submissionServer } from "../lib/smtp-server"
import { type ShownCertificate, SmtpWire } from "../lib/smtp-wire"
import { cleanLine } from "../lib/terminal"
import { millis } from "../lib/time"

interface SmtpTestOptions {
  from?: string
  to?: string
  subject?: string
  tls?: string
  username?: string
  passwordStdin?: boolean
  login?: boolean
  ca?: string
  insecure?: boolean
}

/** One line of ours, without secrets, and the answer. */
type DialogueStep = {
  phase: string
  sent: string | null
  code: number
  reply: string[]
  ms: number
}

type DialogueResult = {
  server: string
  outcome: "accepted" | "ready" | "refused" | "deferred" | "untrusted"
  /** The step that ended the dialogue before its time. */
  refused_at: string | null
  reply: string | null
  tls: { version: string; cipher: string; certificate: ShownCertificate } | null
  extensions: string[]
  steps: DialogueStep[]
  ms: number
}

const DEFAULT_TIMEOUT = 30_000
const HIDDEN = "********"

/** Exit 0 when everything was accepted, 4 for a refused login, 75 for 4yz, 1 for other refusals. */
export const smtpTest: Action<SmtpTestOptions> = async (context, options, server) => {
  if (context.flags.dryRun) throw usage("--dry-run is not possible with this command")
  if ((options.from === undefined) !== (options.to === undefined)) {
    throw usage("--from and --to belong together", "give both, or none to end after the login")
  }
  for (const address of [options.from, options.to]) demandAddress(address)
  const target = submissionServer(context, server, options.tls)
  const login = options.login === false ? undefined : await loginOf(context, options)
  const ca = options.ca && Buffer.from(await readBytes(options.ca, "--ca")).toString("utf8")
  const timeout = context.timeout ?? DEFAULT_TIMEOUT
  const wire = new SmtpWire({ ...target, timeout, ca: ca || undefined })
  const dialogue = new Dialogue(wire, target, context)
  try {
    const result = await dialogue.hold({ ...options, login })
    await context.output.record(result, () => summary(result, context), result.outcome)
    return exitOf(result)
  } finally {
    wire.close()
  }
}

/** Only what would break the line apart is refused: the server judges the rest. */
function demandAddress(address: string | undefined) {
  if (address === undefined || /^[^\s<>\p{Cc}]+@[^\s<>\p{Cc}]+$/u.test(address)) return
  throw usage(`"${cleanLine(address)}" is not an email address`)
}

interface Login {
  username: string
  secret: string
}

async function loginOf(context: Context, options: SmtpTestOptions): Promise<Login> {
  const { username = "svc", passwordStdin } = options
  const api_key = passwordStdin ? null : context.connection().api_key
  const secret = api_key ?? (await password(context, { passwordStdin }))
  return { username, secret }
}

interface WantedDialogue extends Omit<SmtpTestOptions, "login"> {
  login: Login | undefined
}

/** A server said no, or less than yes. */
class Refused extends Error {
  readonly step: DialogueStep

  constructor(step: DialogueStep) {
    super(step.reply.at(-1) ?? "")
    this.step = step
  }
}

class Dialogue {
  readonly #wire: SmtpWire
  readonly #target: SubmissionServer
  readonly #context: Context
  readonly #steps: DialogueStep[] = []
  #extensions: string[] = []

  constructor(wire: SmtpWire, target: SubmissionServer, context: Context) {
    this.#wire = wire
    this.#target = target
    this.#context = context
  }

  async hold(wanted: WantedDialogue): Promise<DialogueResult> {
    const since = millis()
    const { host, port } = this.#target
    const ended = await this.#talk(wanted).catch((error) => {
      if (error instanceof Refused) return refusalOf(error.step)
      throw error
    })
    return {
      server: `${host}:${port}`,
      refused_at: null,
      reply: this.#steps.findLast(({ phase }) => phase !== "QUIT")?.reply.at(-1) ?? null,
      ...ended,
      tls: this.#wire.session ?? null,
      extensions: this.#extensions,
      steps: this.#steps,
      ms: millis() - since,
    }
  }

  async #talk(wanted: WantedDialogue): Promise<Pick<DialogueResult, "outcome">> {
    const { tls } = this.#target
    const since = millis()
    await this.#wire.open(tls === "implicit")
    if (tls === "implicit") await this.#tellTls()
    await this.#hear("greeting", null, since)
    await this.#ehlo()
    if (tls === "starttls") {
      await this.#say("STARTTLS", "STARTTLS")
      await this.#wire.secure()
      await this.#tellTls()
      await this.#ehlo()
    }
    if (wanted.login && !this.#mayLogIn(wanted)) return { outcome: "untrusted" }
    if (wanted.login) await this.#logIn(wanted.login)
    const { from, to } = wanted
    if (from !== undefined && to !== undefined) await this.#send({ ...wanted, from, to })
    await this.#say("QUIT", "QUIT").catch(() => {}) // the mail is accepted, however it ends
    return { outcome: from === undefined ? "ready" : "accepted" }
  }

  async #ehlo() {
    const step = await this.#say("EHLO", `EHLO ${hostname() || "localhost"}`)
    this.#extensions = step.reply.slice(1).map((line) => line.slice(4))
  }

  /** A password goes only through TLS with a server that is known, or to this machine. */
  #mayLogIn({ insecure }: WantedDialogue): boolean {
    if (this.#target.is_local || insecure) return true
    return this.#wire.session?.certificate.trusted ?? false
  }

  async #logIn({ username, secret }: Login) {
    const token = Buffer.from(`\0${username}\0${secret}`).toString("base64")
    await this.#say("AUTH", `AUTH PLAIN ${token}`, `AUTH PLAIN ${HIDDEN}`)
  }

  async #send({ from, to, subject }: WantedDialogue & { from: string; to: string }) {
    const is_wide = /[^\x20-\x7e]/.test(from + to)
    const raw = mailText(from, to, subject ?? "A test of SMTP")
    const size = this.#extensions.some((one) => /^SIZE\b/i.test(one)) ? ` SIZE=${raw.length}` : ""
    await this.#say("MAIL", `MAIL FROM:<${from}>${size}${is_wide ? " SMTPUTF8" : ""}`)
    await this.#say("RCPT", `RCPT TO:<${to}>`)
    await this.#say("DATA", "DATA")
    await this.#say("message", `${raw}.`, `(a mail of ${raw.length} bytes)`)
  }

  async #say(phase: string, line: string, shown = line): Promise<DialogueStep> {
    const since = millis()
    this.#wire.write(`${line}\r\n`)
    return this.#hear(phase, shown, since)
  }

  async #hear(phase: string, sent: string | null, since: number): Promise<DialogueStep> {
    await this.#tell(sent === null ? undefined : `→ ${cleanLine(sent)}`)
    const reply = await this.#wire.reply()
    const step = { phase, sent, code: Number(reply[0]?.slice(0, 3)), reply, ms: millis() - since }
    this.#steps.push(step)
    const { paint } = this.#context
    const colour = step.code < 400 ? paint.green : paint.red
    for (const [index, line] of reply.entries()) {
      const time = index === reply.length - 1 ? paint.dim(`  ${step.ms} ms`) : ""
      await this.#tell(`← ${colour(cleanLine(line))}${time}`)
    }
    if (step.code >= 400) throw new Refused(step)
    return step
  }

  async #tellTls() {
    const { session } = this.#wire
    if (!session) return
    const { version, cipher, certificate } = session
    const { subject, issuer, valid_to, trusted, reason } = certificate
    const verdict = trusted ? "trusted" : `not trusted: ${certificateFault(reason ?? "")}`
    const { paint } = this.#context
    await this.#tell(paint.dim(`  ${version}, ${cipher}`))
    const text = `  certificate of ${subject}, by ${issuer}, until ${valid_to}: ${verdict}`
    await this.#tell(trusted ? paint.dim(cleanLine(text)) : paint.yellow(cleanLine(text)))
  }

  /** On a terminal a person reads along. */
  async #tell(line: string | undefined) {
    const { output } = this.#context
    if (line !== undefined && output.form === "human") await output.raw(`${line}\n`)
  }
}

const refusalOf = ({
  phase,
  code,
}: DialogueStep): Pick<DialogueResult, "outcome" | "refused_at"> => ({
  outcome: code >= 500 ? "refused" : "deferred",
  refused_at: phase,
})

function exitOf({ outcome, refused_at, steps }: DialogueResult): number {
  if (outcome === "accepted" || outcome === "ready") return exits.done
  if (outcome === "deferred") return exits.try_later
  const code = steps.at(-1)?.code
  const is_login = refused_at === "AUTH" || code === 530 || code === 535
  return outcome === "refused" && is_login ? exits.unauthorized : exits.failed
}

function summary({ server, outcome, refused_at, reply, ms }: DialogueResult, context: Context) {
  const { paint } = context
  const words = {
    accepted: paint.green("✓ the mail was accepted"),
    ready: paint.green("✓ the server is ready; give --from and --to to send a mail"),
    refused: paint.red(`✗ refused at ${refused_at}`),
    deferred: paint.yellow(`! not now: refused for the moment at ${refused_at}`),
    untrusted: paint.red(`✗ the certificate is not trusted, so no password was sent; ${REMEDY}`),
  }[outcome]
  const said = outcome === "untrusted" || reply === null ? "" : `: ${cleanLine(reply)}`
  return `${words}${outcome === "ready" ? "" : said}  ${paint.dim(`${server}, ${ms} ms`)}`
}

const REMEDY = "give --ca FILE, or --insecure"

/** ASCII only where the addresses are; CRLF line ends, and no line begins with a dot. */
function mailText(from: string, to: string, subject: string): string {
  const at = new Date(millis())
  const encoded = /[^\x20-\x7e]/.test(subject)
    ? `=?utf-8?B?${Buffer.from(subject).toString("base64")}?=`
    : subject
  const id = `${at.getTime()}.${crypto.randomUUID()}@${from.split("@").at(-1)}`
  return [
    `Date: ${at.toUTCString().replace("GMT", "+0000")}`,
    `From: <${from}>`,
    `To: <${to}>`,
    `Subject: ${encoded.replaceAll(/[\r\n]+/g, " ")}`,
    `Message-ID: <${id}>`,
    "MIME-Version: 1.0",
    "Content-Type: text/plain; charset=utf-8",
    "",
    "This mail was sent by `belfry smtp test`.",
    "",
  ].join("\r\n")
}
