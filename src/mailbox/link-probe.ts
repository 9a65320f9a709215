import { type AddressPolicy, NetError, type NetErrorKind, request } from "../core/net"
import { monotonic } from "../core/time"
import { unavailable } from "../http/envelope"
import { Semaphore } from "../lib/semaphore"
import { isUnsubscribe, type LinkTarget, withoutHash } from "./link-targets"

/** What a look at one link of a mail found. */
export interface CheckedLink {
  url: string
  /** Of the last answer; null where there was none. */
  status: number | null
  /** Null: nobody looked. */
  ok: boolean | null
  /** Why it is not ok, or why nobody looked. */
  error: string | null
}

/** Links of one mail that are fetched. */
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
  const ends_at = monotonic() + CHECK_MS
  const marked = targets.filter(({ is_unsubscribe }) => is_unsubscribe).map(({ url }) => url)
  const probing = { rules, announced: named.union(new Set(marked)), ends_at }
  const permits = new Semaphore(AT_ONCE)
  const asked = targets.filter(({ is_unsubscribe }) => !is_unsubscribe).slice(0, MOST_FETCHED)
  const wanted = new Set(asked.map(({ url }) => url))
  try {
    return await Promise.all(
      targets.map(async ({ url, is_unsubscribe }) => {
        if (!wanted.has(url)) return unasked(url, is_unsubscribe ? UNSUBSCRIBES : TOO_MANY)
        const leave = await permits.acquire()
        try {
          return monotonic() >= ends_at ? unasked(url, TOO_LATE) : await probe(url, probing)
        } finally {
          leave()
        }
      }),
    )
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
  announced: ReadonlySet<string>
  ends_at: number
}

async function probe(url: string, probing: Probing): Promise<CheckedLink> {
  try {
    return await followed(url, probing)
  } catch (error) {
    if (!(error instanceof NetError)) throw error
    const ok = error.kind === "blocked_address" ? null : false
    return { url, status: null, ok, error: REASONS[error.kind] }
  }
}

/** Not the words of our network: they would tell a stranger what stands behind it. */
const REASONS: Record<NetErrorKind, string> = {
  blocked_address: "The host has an address that is not public, so it is not asked.",
  connection: "The host did not accept the connection.",
  dns: "The host has no address.",
  invalid_url: "The URL cannot be used.",
  timeout: "The host did not answer in time.",
  tls: "The certificate of the host is not valid.",
}

async function followed(url: string, { rules, announced, ends_at }: Probing): Promise<CheckedLink> {
  let at = url
  for (let hops = 0; hops <= MOST_REDIRECTS; hops++) {
    const { status, next } = await ask(at, rules, ends_at)
    if (next === undefined) {
      const ok = status < 400
      const error = ok ? null : `The server answered ${status}.`
      return { url, status, ok, error }
    }
    if (announced.has(withoutHash(next)) || isUnsubscribe(next))
      return { url, status, ok: null, error: UNSUBSCRIBES }
    at = next.href
  }
  const error = `The link leads from one address to another more than ${MOST_REDIRECTS} times.`
  return { url, status: null, ok: false, error }
}

interface LinkAnswer {
  status: number
  /** Where a redirect leads. */
  next: URL | undefined
}

/** Many servers refuse HEAD, or answer it wrongly; only GET says what a reader gets. */
async function ask(url: string, rules: LinkRules, ends_at: number): Promise<LinkAnswer> {
  const head = await send(url, "HEAD", rules, ends_at).catch((error) => {
    if (error instanceof NetError && error.kind === "connection") return undefined
    throw error
  })
  return head && head.status < 400 ? head : send(url, "GET", rules, ends_at)
}

async function send(
  url: string,
  method: string,
  { timeout_ms: own_ms = REQUEST_MS, ...rules }: LinkRules,
  ends_at: number,
): Promise<LinkAnswer> {
  const timeout_ms = Math.max(1, Math.min(own_ms, ends_at - monotonic()))
  const limits = { timeout_ms, capture_bytes: MOST_BODY_BYTES }
  const { status, headers } = await request({ ...rules, ...limits, url, method })
  const location = status >= 300 && status < 400 ? headers.get("location") : null
  const next = location === null ? null : URL.parse(location, url)
  return { status, next: next ?? undefined }
}
