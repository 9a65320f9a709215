import { hostname } from "node:os"
import { checkServerIdentity } from "node:tls"
import type { Socket } from "bun"
import { SmtpConnection, SmtpConnectionError } from "../../src/emails/smtp/wire"
import { dotStuffed } from "../../src/lib/mail-text"
import type { Action, Context } from "../lib/context"
import { exits, Failure, usage } from "../lib/errors"
import { readBytes } from "../lib/input"
import { certificateFault } from "../lib/post"
import { password } from "../lib/prompts"
import { type SubmissionServer, submissionServer } from "../lib/smtp-server"
import { cleanLine, type Paint } from "../lib/terminal"
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

type DialogueStep = {
  phase: string
  sent: string | null
  code: number
  reply: string[]
  ms: number
}

type Outcome = "accepted" | "ready" | "refused" | "deferred" | "untrusted"

interface Ended {
  outcome: Outcome
  /** The step that ended the dialogue before its time. */
  refused_at: string | null
}

/** The certificate that a server showed, and whether it can be trusted. */
type TlsSession = ReturnType<typeof sessionOf>

const HIDDEN = "********"

/** Exit 0 when everything was accepted, 4 for a refused login, 75 for 4yz, 1 for other refusals. */
export const smtpTest: Action<SmtpTestOptions> = async (context, options, server) => {
  if (context.flags.dryRun) throw usage("--dry-run is not possible with this command")
  const { from, to } = options
  if ((from === undefined) !== (to === undefined)) {
    throw usage("--from and --to belong together", "give both, or none to end after the login")
  }
  for (const address of [from, to]) requireAddress(address)
  const target = submissionServer(context, server, options.tls)
  const login = options.login === false ? undefined : await loginOf(context, options)
  const ca = options.ca && Buffer.from(await readBytes(options.ca, "--ca")).toString("utf8")
  const since = millis()
  const { host, port } = target
  const name = `${host}:${port}`
  const lost = (error: unknown) => unreachable(name, error)
  const wire = await SmtpConnection.open(port, host, timeoutOf(context)).catch((error) => {
    // An attempt to connect cannot be ended, and keeps the process alive for two minutes.
    if (error.kind === "timeout") setTimeout(() => process.exit(), 500).unref()
    return lost(error)
  })
  const dialogue = new Dialogue(context, target, wire)
  const ended = await dialogue.hold(options, login, ca || undefined).catch(lost)
  const { tls, extensions, steps } = dialogue
  const reply = steps.findLast(({ phase }) => phase !== "QUIT")?.reply.at(-1) ?? null
  const ms = millis() - since
  const human = () => {
    const end = context.paint.dim(`${name}, ${ms} ms`)
    return `${summary(ended, reply, context.paint)}  ${end}`
  }
  const result = { server: name, ...ended, reply, tls, extensions, steps, ms }
  await context.output.record(result, human, ended.outcome)
  return exitOf(ended, steps.at(-1)?.code)
}

/** Only what would break the line apart is refused: the server checks the rest. */
function requireAddress(address: string | undefined) {
  if (address === undefined || /^[^\s<>\p{Cc}]+@[^\s<>\p{Cc}]+$/u.test(address)) return
  throw usage(`"${cleanLine(address)}" is not an email address`)
}

type Login = Awaited<ReturnType<typeof loginOf>>

async function loginOf(context: Context, options: SmtpTestOptions) {
  const { username = "svc", passwordStdin } = options
  const api_key = passwordStdin ? null : context.connection().api_key
  const secret = api_key ?? (await password(context, { passwordStdin }))
  return { username, secret }
}

/** The server said no in the last step. */
class Refused extends Error {}

class Dialogue {
  readonly steps: DialogueStep[] = []
  extensions: string[] = []
  tls: TlsSession | null = null
  readonly #context: Context
  readonly #target: SubmissionServer
  readonly #wire: SmtpConnection
  readonly #timeout: number

  constructor(context: Context, target: SubmissionServer, wire: SmtpConnection) {
    this.#context = context
    this.#target = target
    this.#wire = wire
    this.#timeout = timeoutOf(context)
  }

  async hold(options: SmtpTestOptions, login: Login | undefined, ca?: string): Promise<Ended> {
    try {
      return { outcome: await this.#talk(options, login, ca), refused_at: null }
    } catch (error) {
      const last = this.steps.at(-1)
      if (!(error instanceof Refused) || !last) throw error
      return { outcome: last.code >= 500 ? "refused" : "deferred", refused_at: last.phase }
    } finally {
      this.#wire.close()
    }
  }

  async #talk(options: SmtpTestOptions, login: Login | undefined, ca?: string): Promise<Outcome> {
    const { tls, is_local } = this.#target
    await this.#step("greeting", null, () => tls === "implicit" && this.#secure(ca))
    await this.#ehlo()
    if (tls === "starttls") {
      await this.#say("STARTTLS", "STARTTLS")
      await this.#secure(ca)
      await this.#ehlo()
    }
    // A password goes only through TLS with a server that is known, or to this machine.
    const may_log_in = is_local || options.insecure || this.tls?.certificate.trusted
    if (login && !may_log_in) return "untrusted"
    if (login) await this.#logIn(login)
    const { from, to, subject = "A test of SMTP" } = options
    if (from !== undefined && to !== undefined) await this.#send(from, to, subject)
    await this.#say("QUIT", "QUIT").catch(() => {}) // the mail is accepted, however it ends
    return from === undefined ? "ready" : "accepted"
  }

  /** Any certificate will do here: it is checked afterwards, so that a person sees what is wrong with it. */
  async #secure(ca: string | undefined) {
    const { host } = this.#target
    await this.#wire.secure({ host, ca, verify: false }, this.#timeout)
    if (!this.#wire.encrypted) return
    this.tls = sessionOf(this.#wire.encrypted, host)
    const { version, cipher, certificate } = this.tls
    const { subject, issuer, valid_to, trusted, reason } = certificate
    const verdict = trusted ? "trusted" : `not trusted: ${certificateFault(reason ?? "")}`
    const { paint } = this.#context
    await this.#print(paint.dim(`  ${version}, ${cipher}`))
    const text = `  certificate of ${subject}, by ${issuer}, until ${valid_to}: ${verdict}`
    await this.#print(trusted ? paint.dim(cleanLine(text)) : paint.yellow(cleanLine(text)))
  }

  async #ehlo() {
    const { reply } = await this.#say("EHLO", `EHLO ${hostname() || "localhost"}`)
    this.extensions = reply.slice(1).map((line) => line.slice(4))
  }

  async #logIn({ username, secret }: Login) {
    const token = Buffer.from(`\0${username}\0${secret}`).toString("base64")
    this.#wire.conceal([token, secret])
    await this.#say("AUTH", `AUTH PLAIN ${token}`, `AUTH PLAIN ${HIDDEN}`)
  }

  async #send(from: string, to: string, subject: string) {
    const is_wide = /[^\x20-\x7e]/.test(from + to)
    const raw = Buffer.from(mailText(from, to, subject))
    const size = this.extensions.some((one) => /^SIZE\b/i.test(one)) ? ` SIZE=${raw.length}` : ""
    await this.#say("MAIL", `MAIL FROM:<${from}>${size}${is_wide ? " SMTPUTF8" : ""}`)
    await this.#say("RCPT", `RCPT TO:<${to}>`)
    await this.#say("DATA", "DATA")
    const write = () => this.#wire.send(dotStuffed(raw), this.#timeout)
    await this.#step("message", `(a mail of ${raw.length} bytes)`, write)
  }

  #say = (phase: string, line: string, shown = line) =>
    this.#step(phase, shown, () => this.#wire.write([line]))

  /** Does it, and reads the answer, while a person on a terminal reads along. Throws Refused. */
  async #step(phase: string, sent: string | null, act: () => unknown): Promise<DialogueStep> {
    const since = millis()
    await act()
    if (sent !== null) await this.#print(`→ ${cleanLine(sent)}`)
    const { code, lines } = await this.#wire.read(`at ${phase}`, this.#timeout)
    const mark = (at: number) => (at === lines.length - 1 ? " " : "-")
    const reply = lines.map((words, at) => `${code}${mark(at)}${words}`.trimEnd())
    const step: DialogueStep = { phase, sent, code, reply, ms: millis() - since }
    this.steps.push(step)
    const { paint } = this.#context
    const colour = code < 400 ? paint.green : paint.red
    for (const [at, line] of reply.entries()) {
      const time = at === reply.length - 1 ? paint.dim(`  ${step.ms} ms`) : ""
      await this.#print(`← ${colour(cleanLine(line))}${time}`)
    }
    if (code >= 400) throw new Refused(reply.at(-1))
    return step
  }

  async #print(line: string) {
    const { output } = this.#context
    if (output.form === "human") await output.raw(`${line}\n`)
  }
}

const timeoutOf = ({ timeout = 30_000 }: Context) => timeout

/** Throws exit 69 where the server cannot be reached, or falls silent. */
function unreachable(server: string, error: unknown): never {
  if (!(error instanceof SmtpConnectionError)) throw error
  const { kind, message } = error
  const why = message.replace(`${kind}: `, "")
  const reason =
    kind === "timeout" ? "The server does not answer." : `The connection failed: ${why}.`
  throw new Failure(exits.unreachable, "unreachable", `${server}: ${reason}`, {
    details: { server },
    hint: "check host and port; 465 begins with TLS, 587 with STARTTLS",
  })
}

function sessionOf(socket: Socket<unknown>, host: string) {
  const shown = socket.getPeerCertificate()
  const fault = socket.authorized
    ? checkServerIdentity(host, shown)
    : (socket.getAuthorizationError() ?? "not trusted")
  const code = fault instanceof Error && "code" in fault ? fault.code : fault
  return {
    version: socket.getTLSVersion(),
    cipher: socket.getCipher().name,
    certificate: {
      subject: nameOf(shown.subject),
      issuer: nameOf(shown.issuer),
      names: shown.subjectaltname ?? "",
      valid_from: shown.valid_from,
      valid_to: shown.valid_to,
      fingerprint: shown.fingerprint256,
      trusted: fault === undefined,
      reason: fault === undefined ? null : String(code),
    },
  }
}

const nameOf = (name: object | undefined): string =>
  Object.entries(name ?? {})
    .map(([key, value]) => `${key}=${String(value)}`)
    .join(", ")

function exitOf({ outcome, refused_at }: Ended, code: number | undefined): number {
  const is_login = refused_at === "AUTH" || code === 530 || code === 535
  const refused = is_login ? exits.unauthorized : exits.failed
  const done = { accepted: exits.done, ready: exits.done }
  return { ...done, deferred: exits.try_later, untrusted: exits.failed, refused }[outcome]
}

const REMEDY = "give --ca FILE, or --insecure"

function summary({ outcome, refused_at }: Ended, reply: string | null, paint: Paint): string {
  const said = reply === null ? "" : `: ${cleanLine(reply)}`
  return {
    accepted: paint.green("✓ the mail was accepted") + said,
    ready: paint.green("✓ the server is ready; give --from and --to to send a mail"),
    refused: paint.red(`✗ refused at ${refused_at}`) + said,
    deferred: paint.yellow(`! not now: refused for the moment at ${refused_at}`) + said,
    untrusted: paint.red(`✗ the certificate is not trusted, so no password was sent; ${REMEDY}`),
  }[outcome]
}

/** ASCII only where the addresses are; CRLF line ends. */
function mailText(from: string, to: string, subject: string): string {
  const at = new Date(millis())
  const encoded = /[^\x20-\x7e]/.test(subject)
    ? `=?utf-8?B?${Buffer.from(subject).toString("base64")}?=`
    : subject
  return [
    `Date: ${at.toUTCString().replace("GMT", "+0000")}`,
    `From: <${from}>`,
    `To: <${to}>`,
    `Subject: ${encoded.replaceAll(/[\r\n]+/g, " ")}`,
    `Message-ID: <${at.getTime()}.${crypto.randomUUID()}@${from.split("@").at(-1)}>`,
    "MIME-Version: 1.0",
    "Content-Type: text/plain; charset=utf-8",
    "",
    "This mail was sent by `belfry smtp test`.",
    "",
  ].join("\r\n")
}
