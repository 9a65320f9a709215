import { settings } from "../core/config"
import { THIS_SERVER } from "../core/destination"
import { type Resolver, resolver } from "../core/dns"
import { type AddressPolicy, NetError, type NetErrorKind, request } from "../core/net"
import type { Secrets } from "../core/secrets"
import { monotonic } from "../core/time"
import type { Workers } from "../core/workers"
import { unavailable } from "../http/envelope"
import type { ContentFinding } from "../lib/content-finding"
import { Semaphore } from "../lib/semaphore"
import { TOKEN_PURPOSE } from "../tracking/tracking-tokens"
import type { CheckedMail, FeatureSupport, MailToCheck } from "./check-task"
import { isUnsubscribe, type LinkTarget, withoutHash } from "./link-targets"
import { lookInto } from "./mail-look"
import type { MailboxMail } from "./mailbox"

/** Some mail programs show no more of an html body than this. */
const CLIPPED_BYTES = 102 * 1024

export interface MailCheckParts {
  secrets: Secrets
  workers: Workers
  link_rules: LinkRules
}

export interface MailCheck {
  html: FeatureSupport[]
  /** Null: nobody asked for them. */
  links: CheckedLink[] | null
  content: ContentFinding[]
  size: { bytes: number; html_bytes: number; clipped: boolean }
}

/** Looks at a mail, and with `links` asks the servers of its links. */
export async function checkMail(
  { secrets, workers, link_rules }: MailCheckParts,
  mail: MailboxMail,
  { links }: { links: boolean },
): Promise<MailCheck> {
  const { subject, size: bytes } = mail
  const key = secrets.mac(TOKEN_PURPOSE, "v1")
  const input = (raw: Uint8Array): MailToCheck => ({ raw, subject, key })
  const checked = await lookInto<CheckedMail>(workers, mail, "check-mail", input)
  const { html, content, html_bytes, targets, announced } = checked
  return {
    html,
    content,
    links: links ? await probeLinks(targets, link_rules, announced) : null,
    size: { bytes, html_bytes, clipped: html_bytes > CLIPPED_BYTES },
  }
}

interface CheckedLink {
  url: string
  /** Of the last answer; null where there was none. */
  status: number | null
  /** Null is not known: nobody asked, or the server does not answer programs. */
  ok: boolean | null
  /** Why it is not ok, or why that is not known. */
  error: string | null
}

const MOST_FETCHED = 50
const AT_ONCE = 5
const REQUEST_MS = 5_000
/** For all links of a mail together. */
const CHECK_MS = 15_000
const MOST_REDIRECTS = 5
/** The body says nothing about a link: its first piece proves that one comes. */
const MOST_BODY_BYTES = 1_024

/** Checks at the same time, on this node: each may hold connections for 15 seconds. */
const checks = new Semaphore(4)

/** Where requests may go that the links and images of a mail name. */
export interface LinkRules extends AddressPolicy {
  /** PEM of the authorities to trust instead of the well-known ones. */
  ca?: string
  timeout_ms?: number
}

/**
 * Asks the servers of up to 50 links by HEAD, or by GET where HEAD is refused, within 15 seconds. Each
 * request and each redirect goes where webhooks may go and nowhere else. A link that could end a
 * subscription is never asked, nor is one that a redirect leads to. `named` are such addresses, too.
 */
export async function probeLinks(
  targets: LinkTarget[],
  rules: LinkRules,
  named: ReadonlySet<string> = new Set(),
): Promise<CheckedLink[]> {
  const release = checks.tryAcquire()
  if (!release) throw unavailable(BUSY, "busy", CHECK_MS / 1000)
  const ends = targets.filter(({ is_unsubscribe }) => is_unsubscribe).map(({ url }) => url)
  const announced = named.union(new Set(ends))
  const probing = { rules, names: askedOnce(rules), announced, ends_at: monotonic() + CHECK_MS }
  const permits = new Semaphore(AT_ONCE)
  let fetched = 0
  const look = async ({ url, is_unsubscribe }: LinkTarget): Promise<CheckedLink> => {
    if (is_unsubscribe) return unasked(url, UNSUBSCRIBES)
    if (++fetched > MOST_FETCHED) return unasked(url, TOO_MANY)
    const leave = await permits.acquire()
    const is_late = monotonic() >= probing.ends_at
    return (is_late ? Promise.resolve(unasked(url, TOO_LATE)) : probe(url, probing)).finally(leave)
  }
  try {
    return await Promise.all(targets.map(look))
  } finally {
    release()
  }
}

const BUSY = "Other checks ask for their links at the moment. Try again in some seconds."
const UNSUBSCRIBES = "The link may end a subscription, so it is not fetched."
const TOO_MANY = `Only the first ${MOST_FETCHED} links of a mail are fetched.`
const TOO_LATE = `The check ended after ${CHECK_MS / 1000} seconds, before this link.`

const unasked = (url: string, error: string): CheckedLink => ({
  url,
  status: null,
  ok: null,
  error,
})

interface Probing {
  rules: LinkRules
  names: HostNames
  announced: ReadonlySet<string>
  ends_at: number
}

async function probe(url: string, probing: Probing): Promise<CheckedLink> {
  let at = url
  try {
    for (let hops = 0; hops <= MOST_REDIRECTS; hops++) {
      const { status, next } = await ask(at, probing)
      if (next === undefined) return { url, status, ...meaningOf(status) }
      if (probing.announced.has(withoutHash(next)) || isUnsubscribe(next))
        return { url, status, ok: null, error: UNSUBSCRIBES }
      at = next.href
    }
    return { url, status: null, ok: false, error: TOO_FAR }
  } catch (error) {
    if (!(error instanceof NetError)) throw error
    return { url, status: null, ...failureOf(error, new URL(at), probing) }
  }
}

const TOO_FAR = `The link leads from one address to another more than ${MOST_REDIRECTS} times.`

/** Many sites answer so to programs, and show people the page. */
const REFUSALS = new Set([401, 403, 405, 429, 503])

type Meaning = Pick<CheckedLink, "ok" | "error">

function meaningOf(status: number): Meaning {
  if (status < 400) return { ok: true, error: null }
  if (!REFUSALS.has(status)) return { ok: false, error: `The server answered ${status}.` }
  const error = `The server refused to answer (${status}). People may see the page: open it.`
  return { ok: null, error }
}

/** What is no fault of the link leaves open whether it is dead. */
function failureOf({ kind, cause }: NetError, { hostname }: URL, { names }: Probing): Meaning {
  const is_unanswered = kind === "dns" ? cause !== undefined : names.isWaiting(hostname)
  if (is_unanswered) return { ok: null, error: UNANSWERED }
  if (kind !== "blocked_address") return { ok: false, error: REASONS[kind] }
  return { ok: null, error: cause === THIS_SERVER ? ITSELF : REASONS[kind] }
}

const UNANSWERED = "The name servers did not answer, so nobody knows where the link leads."
const ITSELF = "The link leads to this server, which does not ask itself."

/** Not the words of our network: they would tell a stranger what stands behind it. */
const REASONS: Record<NetErrorKind, string> = {
  blocked_address: "The host has an address that is not public, so it is not asked.",
  connection: "The host did not accept the connection.",
  dns: "The host has no address.",
  invalid_url: "The URL cannot be used.",
  timeout: "The host did not answer in time.",
  tls: "The certificate of the host is not valid.",
}

interface LinkAnswer {
  status: number
  next: URL | undefined
}

/** Many servers refuse HEAD, or answer it wrongly; only GET says what a reader gets. */
async function ask(url: string, probing: Probing): Promise<LinkAnswer> {
  const head = await send(url, "HEAD", probing).catch((error) => {
    if (error instanceof NetError && error.kind === "connection") return undefined
    throw error
  })
  return head && head.status < 400 ? head : send(url, "GET", probing)
}

async function send(
  url: string,
  method: string,
  { rules: { timeout_ms: own_ms = REQUEST_MS, ...rules }, names, ends_at }: Probing,
): Promise<LinkAnswer> {
  const timeout_ms = Math.max(1, Math.min(own_ms, ends_at - monotonic()))
  const limits = { timeout_ms, capture_bytes: MOST_BODY_BYTES }
  const { status, headers } = await request({ ...rules, ...limits, resolver: names, url, method })
  const location = status >= 300 && status < 400 ? headers.get("location") : null
  const next = location === null ? null : URL.parse(location, url)
  return { status, next: next ?? undefined }
}

type HostNames = Pick<Resolver, "a" | "aaaa"> & {
  /** Whether the name servers still owe an answer for the host. */
  isWaiting: (hostname: string) => boolean
}

/** The names that one check asks for, each once. */
function askedOnce({ resolver: own }: AddressPolicy): HostNames {
  const names = own ?? resolver({ servers: settings()["dns.servers"] })
  const answers = new Map<string, Promise<string[]>>()
  const waiting = new Set<string>()
  const ask = (kind: "a" | "aaaa") => (host: string) => {
    const question = `${kind} ${host}`
    const known = answers.get(question)
    if (known) return known
    waiting.add(question)
    const answer = names[kind](host).finally(() => waiting.delete(question))
    answers.set(question, answer)
    return answer
  }
  const isWaiting = (hostname: string) =>
    ["a", "aaaa"].some((kind) => waiting.has(`${kind} ${hostname.replace(/\.$/, "")}`))
  return { a: ask("a"), aaaa: ask("aaaa"), isWaiting }
}
