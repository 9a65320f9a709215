import { defaultDataDir, hostAndPort, type Loaded, type Settings } from "../../src/core/config"
import { log } from "../../src/core/log"
import type { Running } from "../../src/server"
import { openClient } from "../lib/client"
import type { Action, Context } from "../lib/context"
import { environment, version } from "../lib/environment"
import { usage } from "../lib/errors"
import {
  LOCAL_PROFILE,
  NOBODY,
  type Profile,
  type Profiles,
  profilesPath,
  readProfiles,
  writeProfiles,
} from "../lib/profiles"
import type { Paint } from "../lib/terminal"
import { millis } from "../lib/time"
import { liveLines } from "./live"
import {
  LOOPBACK,
  portNumber,
  STOPPING,
  settledMailbox,
  settledPort,
  startServer,
  untilStopped,
} from "./run"
import { begins, localSettings } from "./settings"
import { startFailure } from "./start-errors"

const DEFAULT_PORT = 8080
const SUBMISSION_PORT = 2587
const INBOUND_PORT = 2525
const TICK = 250
/** What a slow reader of our output may leave waiting in memory. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024

interface UpOptions {
  port?: string
  dataDir?: string
  newKey?: boolean
  new?: boolean
}

/** Everything on this machine, for one person, on loopback only. */
export const up: Action<UpOptions> = async (context, options) => {
  if (context.flags.dryRun) throw usage("--dry-run is not possible with this command")
  const loaded = await upSettings(context.flags, options)
  const running = await startServer(loaded, { mode: "up", begin: begins(options) })
  const { project_id, key_id, api_key } = await firstKey(running, loaded, options.newKey === true)
  const { url, data_dir, smtp } = running
  const mail = smtp.submission === null ? {} : { submission_port: smtp.submission }
  const local = { url, api_key, instance: project_id, data_dir, ...mail }
  const leaveProfile = await takeLocalProfile(local).catch(notStored)
  const setup_token = running.setup?.token ?? null
  const open_url = signInLink(running, project_id, key_id)
  const { output, paint } = context
  const is_human = output.form === "human"
  const silence = is_human ? humanLines(context, running) : jsonLines(running)
  // Before the first line is printed: its reader may stop the server at once.
  const stopped = untilStopped(running, () => output.note(STOPPING))
  try {
    const first = is_human
      ? `\n${await banner(running, loaded.values, { open_url, api_key }, paint)}\n`
      : `${JSON.stringify({ url, api_key, project_id, data_dir, smtp, setup_token, open_url })}\n`
    await Promise.all([stopped, output.raw(first)])
  } finally {
    silence()
    await leaveProfile?.().catch(notStored)
  }
}

/** The settings as for `serve`, but on loopback, in a folder of its own, and with little log. */
export async function upSettings(
  flags: Pick<Context["flags"], "config">,
  options: Pick<UpOptions, "port" | "dataDir">,
): Promise<Loaded> {
  const requested = options.port === undefined ? undefined : portNumber(options.port)
  const defaults: Partial<Settings> = {
    data_dir: defaultDataDir(environment, "belfry-up"),
    "http.listen": `${LOOPBACK}:${DEFAULT_PORT}`,
    "smtp.submission.listen": `${LOOPBACK}:${SUBMISSION_PORT}`,
    "smtp.inbound.listen": `${LOOPBACK}:${INBOUND_PORT}`,
    // Programs under test connect as often as they like.
    "smtp.inbound.per_minute": 100_000,
    "log.level": "warn",
    // The tests of a program bounce and complain as they like.
    "reputation.enforced": false,
    // A first try needs no backups.
    "backup.schedule": "off",
    // For a first try the receivers of webhooks are on the same machine.
    "webhooks.require_https": false,
    "webhooks.allow_private": ["127.0.0.0/8", "::1"],
    // And so are gateways, and the services that push messages and sign-ins are tried with.
    "providers.allow_private": ["127.0.0.0/8", "::1"],
    "auth.oauth.allow_private": ["127.0.0.0/8", "::1"],
  }
  const load = (set: string[]) => localSettings(flags, { ...options, set }, defaults)
  const base = load([])
  const configured = base.explain("http.listen").source !== "default"
  const wanted = requested ?? hostAndPort(base.values["http.listen"]).port
  const port = await settledPort(wanted, requested !== undefined || configured)
  if (port !== wanted) log.warn(`port ${wanted} is taken, so the server uses a free one`)
  const set = [`http.listen=${LOOPBACK}:${port}`]

  // A free HTTP port means several servers side by side: none gets the usual SMTP ports.
  if (requested !== 0) return load([...set, ...(await settledMailbox(base))])
  const mail = ["smtp.submission.listen", "smtp.inbound.listen", "mailbox.listen"] as const
  const usual = mail.filter((name) => base.explain(name).source === "default")
  return load([...set, ...usual.map((name) => `${name}=${LOOPBACK}:0`)])
}

async function firstKey(running: Running, { values }: Loaded, new_key: boolean) {
  try {
    const { ensureFirst } = await import("../../src/tenancy/setup")
    return await ensureFirst(running.store, running.secrets, { keep_key: true, new_key })
  } catch (error) {
    await running.stop()
    throw startFailure(error, values)
  }
}

/** A link that signs in to the pages, once, with the rights of the key. */
function signInLink({ links, url }: Running, project_id: string, key_id: string | null) {
  if (key_id === null) return null
  links.open({ key_id, project_id }, url)
  return links.newLink()
}

/** That the profile cannot be kept is no reason not to run, but one to say so. */
function notStored(error: unknown): undefined {
  const reason = error instanceof Error ? error.message : String(error)
  log.warn(`The profile "${LOCAL_PROFILE}" was not stored: ${reason}`)
}

function humanLines(context: Context, { watch }: Running): () => void {
  const lines = new WaitingLines(process.stdout, MAX_WAITING_BYTES)
  const print = (line: string) => lines.add(line)
  const one_line_each = context.terminal.out
  const live = liveLines(print, { one_line_each, paint: context.paint, now: millis })
  const timer = setInterval(() => live.tick(), TICK)
  const off = watch((fact) => {
    if (!lines.isFull) live.add(fact)
  })
  return () => {
    clearInterval(timer)
    off()
  }
}

/** A reader that does not read loses events, and is told how many, but costs no memory. */
function jsonLines({ watch }: Running): () => void {
  const lines = new WaitingLines(process.stdout, MAX_WAITING_BYTES)
  let dropped = 0
  return watch((fact) => {
    if (lines.isFull) {
      dropped += 1
      return
    }
    if (dropped > 0) lines.add(JSON.stringify({ dropped }))
    dropped = 0
    lines.add(JSON.stringify(fact))
  })
}

/** What a person needs after `up`: only what answers today. */
async function banner(
  running: Running,
  values: Settings,
  { open_url, api_key }: { open_url: string | null; api_key: string | null },
  paint: Paint,
): Promise<string> {
  const { url, smtp, data_dir, setup } = running
  const pair = (name: string, value: string) => `${paint.dim(name.padEnd(9))}  ${value}`
  const certificate =
    values["tls.cert"] === null ? "self-signed certificate" : "certificate of tls.cert"
  const login = `STARTTLS, ${certificate}; user svc, password = API key`
  const lines = [
    `${paint.bold(`belfry ${version} · up`)}       data ${data_dir}      loopback only`,
    ...(open_url === null ? [] : [pair("Open", open_url)]),
    pair("API", `${url}/v1`),
    pair("Docs", `${url}/docs`),
    ...(smtp.submission === null ? [] : [pair("SMTP", `localhost:${smtp.submission} (${login})`)]),
    ...(smtp.inbound === null ? [] : [pair("Inbound", inboundText(smtp.inbound))]),
    ...(smtp.mailbox === null ? [] : [pair("Mailbox", `SMTP on port ${smtp.mailbox}`)]),
    pair("Delivery", await deliveryOf(values)),
    ...(values["sms.provider"] === "none" ? [] : [pair("Texts", TEXTS)]),
    pair("API key", keyText(api_key)),
    // What is needed once there is more than one person.
    ...(setup ? [pair("Owner", `none yet; belfry setup ${url} --setup-token ${setup.token}`)] : []),
    "",
    `Try:  ${curl(url, api_key ?? "svc_live_…", senderOf(values))}`,
    "      and watch it here. Ctrl-C stops.",
    "",
  ]
  return lines.map((line) => (line === "" ? "" : `  ${line}`)).join("\n")
}

const TEXTS = "shown in the mailbox; belfry sms send +14155550116 'Hello' gets an answer"

const inboundText = (port: number) =>
  `SMTP on port ${port}; mail for anything@in.mailbox.test is received here`

async function deliveryOf(values: Settings): Promise<string> {
  const { PROVIDERS } = await import("../../src/channels")
  const { ownEmailProvider } = await import("../../src/providers/own-provider")
  const { descriptor, credentials } = ownEmailProvider(PROVIDERS, values)
  return descriptor.banner?.(credentials) ?? descriptor.about
}

function keyText(api_key: string | null): string {
  if (api_key === null) return "created earlier and not stored; --new-key creates another"
  return `${api_key}   (this data folder only)`
}

function senderOf(values: Settings): string {
  const own = values["delivery.provider"] === "mailbox" ? undefined : values.sending_domains[0]
  return `me@${own ?? "mailbox.test"}`
}

function curl(url: string, api_key: string, from: string): string {
  const body = JSON.stringify({ to: "ann@mailbox.test", from, subject: "Hi", text: "hello" })
  const headers = `-H 'X-API-Key: ${api_key}' -H 'Content-Type: application/json'`
  return `curl -s ${url}/v1/emails ${headers} \\\n          -d '${body}'`
}

/** Where lines go. `written` is called once the text has left this process, or never will. */
interface LineSink {
  write(text: string, written: () => void): unknown
}

/**
 * Lines for a reader that may be slow, or not read at all: what waits for it has a limit in bytes. The count is
 * kept here, because `writableLength` of Bun's standard output is always 0.
 */
export class WaitingLines {
  readonly #sink: LineSink
  readonly #most_bytes: number
  #waiting = 0

  constructor(sink: LineSink, most_bytes: number) {
    this.#sink = sink
    this.#most_bytes = most_bytes
  }

  /** So much waits that another line must not be added now. */
  get isFull(): boolean {
    return this.#waiting >= this.#most_bytes
  }

  add(line: string): void {
    const text = `${line}\n`
    const bytes = Buffer.byteLength(text)
    this.#waiting += bytes
    this.#sink.write(text, () => {
      this.#waiting -= bytes
    })
  }
}

const ANSWER_MILLISECONDS = 500
const MOST_HIDDEN = 8

/** The entry of a running `up`. The instance tells one data folder from another. */
type LocalProfile = Profile & { instance: string }

/**
 * Makes this server the profile `local`, so that other terminals need no settings. A sign-in to the
 * same data folder goes on. Returns what to call at the end: it brings back the entry before, if
 * that server still answers. It leaves alone what another `up` has put in its place meanwhile, and
 * it never forgets a sign-in. Throws when the file cannot be written.
 */
async function takeLocalProfile(own: LocalProfile): Promise<() => Promise<void>> {
  const path = profilesPath(environment)
  const stored = readProfiles(path)
  const before = stored.profiles[LOCAL_PROFILE]
  const known = [...stored.hidden, ...(before ? [before] : [])]
  const same = known.findLast(({ instance }) => instance === own.instance)
  const others = known.filter(
    (one) => one.instance !== own.instance && (one.url !== own.url || one.session),
  )
  const local = { ...signInOf(same, own.url), ...own }
  writeProfiles(path, withLocal(stored, local, others.slice(-MOST_HIDDEN)))
  return () => leaveLocalProfile(path, own)
}

/** What a person chose and proved in this data folder, also when it had another port. */
function signInOf(profile: Profile | undefined, url: string): Partial<Profile> {
  const { session, account_id = null, project_id = null } = profile ?? {}
  if (!session) return {}
  // An access token counts at one address only; the next call gets another one.
  const expires_at = profile?.url === url ? session.expires_at : new Date(0).toISOString()
  return { session: { ...session, expires_at }, account_id, project_id }
}

async function leaveLocalProfile(path: string, own: LocalProfile): Promise<void> {
  const stored = readProfiles(path)
  const mine = stored.profiles[LOCAL_PROFILE]
  if (mine?.url !== own.url) {
    const hidden = stored.hidden.filter((one) => one.url !== own.url || one.session)
    return writeProfiles(path, { ...stored, hidden })
  }
  const hidden = [...stored.hidden]
  const stopped: Profile[] = []
  let next = hidden.pop()
  while (next && !(await answers(next))) {
    if (next.session) stopped.unshift(next)
    next = hidden.pop()
  }
  const kept = mine.session ? mine : undefined
  const resting = next && kept ? [kept] : []
  writeProfiles(path, withLocal(stored, next ?? kept, [...hidden, ...stopped, ...resting]))
}

function withLocal(stored: Profiles, local: Profile | undefined, hidden: Profile[]): Profiles {
  const { [LOCAL_PROFILE]: _, ...others } = stored.profiles
  const profiles = local ? { ...others, [LOCAL_PROFILE]: local } : others
  return { ...stored, profiles, hidden }
}

/** A server on another machine may be unreachable for a moment only, so its entry stays. */
async function answers({ url }: Profile): Promise<boolean> {
  const is_here = URL.canParse(url) && new URL(url).hostname === "127.0.0.1"
  if (!is_here) return true
  const client = openClient(
    { ...NOBODY, url, api_key: null },
    { timeout: ANSWER_MILLISECONDS, dry_run: false },
  )
  return await client.plain("/healthz").then(
    ({ status }) => status === 200,
    () => false,
  )
}
