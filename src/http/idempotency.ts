import { and, eq, lte } from "drizzle-orm"
import { ApiError, invalid } from "../core/errors"
import type { Secrets } from "../core/secrets"
import { isoFrom, millis, now } from "../core/time"
import { type Caller, isBrowserCaller } from "../identity/caller"
import { newRowInserter, prepared } from "../store/statements"
import type { Reader, Store, Tx } from "../store/store"
import { idempotency } from "./tables"

const KEPT_MILLISECONDS = 24 * 3_600_000
const FORM = /^[\x21-\x7e]{1,255}$/
const PURGE_LIMIT = 500

/** A request that wants to be executed once: which one it is, and what it says. */
export interface Claim {
  /** Project, method, path and the caller's key. */
  request: string
  project_id: string
  key: string
  body_hash: string
  /** Of the answer, unless it brings its own. */
  status: number
  /** Where the answer holds a secret: they seal its text. */
  secrets: Secrets | undefined
  /** The key was used more than a day ago: that row gives way to the new one. */
  renewed?: boolean
}

interface Kept {
  data: unknown
  top?: object
  meta?: object
  status?: number
}

interface Claiming {
  request: Request
  path: string
  caller: Caller
  route: { status: [number, ...number[]]; sealed?: boolean }
  body: { hash: () => string }
}

/** Undefined without the header. A malformed key is a 422. */
export function claimOf(
  { request, path, caller, route, body }: Claiming,
  secrets: Secrets,
): Claim | undefined {
  const key = request.headers.get("idempotency-key")
  if (key === null) return undefined
  requireKeyForm(key)
  const { project_id, account_id, user_id } = caller
  const { status, sealed } = route
  const owner_id = project_id || account_id || (user_id ?? "")
  // An answer that holds a secret is only repeated to the very credential that caused it, and one to
  // a program in a browser only to its own user.
  const is_own = sealed || isBrowserCaller(caller.kind)
  const owner = is_own ? `${owner_id} ${credentialName(caller)}` : owner_id
  return {
    request: `${owner} ${request.method} ${path} ${key}`,
    project_id: owner_id,
    key,
    body_hash: body.hash(),
    status: status[0],
    secrets: sealed ? secrets : undefined,
  }
}

function credentialName({ key_id, user_id, end_user, subscriber_id, application }: Caller) {
  const own = key_id ?? user_id ?? end_user?.id ?? subscriber_id
  return own ?? `${application?.id} ${application?.environment}`
}

/** Throws 422 `validation_error`. */
export function requireKeyForm(key: string): void {
  if (!FORM.test(key)) throw invalid("Idempotency-Key", "invalid", KEY_RULE)
}

const KEY_RULE = "The value must have 1 to 255 visible ASCII characters."

/** The stored answer of the same request. The same key with another body is a 422. */
export async function lookup(db: Reader, claim: Claim): Promise<Kept | undefined> {
  const [row] = await findRow(db, { request: claim.request })
  if (!row) return undefined
  claim.renewed = row.created_at <= oldest()
  if (claim.renewed) return undefined
  if (row.body_hash === claim.body_hash) {
    const text = claim.secrets?.open(row.answer, claim.request) ?? row.answer
    return { ...(JSON.parse(text) as Kept), status: row.status }
  }
  const message =
    "This Idempotency-Key was used with another body in the last 24 hours. Use a new key."
  throw new ApiError("validation_error", message, { reason: "idempotency_key_reused", fields: [] })
}

/**
 * Takes the claims whose answers are given here, in the transaction of what they make. Returns the
 * requests that were new; the others were answered before, by this node or another.
 */
export async function take(
  tx: Tx,
  list: { claim: Claim; stored: { status: number; answer: string } }[],
) {
  for (const { claim } of list) {
    if (claim.renewed) await removeOld(tx, { request: claim.request, created_at: oldest() })
  }
  const created_at = now()
  const rows = list.map(({ claim, stored }) => ({
    request: claim.request,
    project_id: claim.project_id,
    body_hash: claim.body_hash,
    ...stored,
    created_at,
  }))
  return insertNew(tx, rows)
}

/** Thrown inside a transaction when another one took the claim first: everything is undone. */
export class AlreadyAnswered extends Error {
  readonly claim: Claim

  constructor(claim: Claim) {
    super("The request was answered before.")
    this.claim = claim
  }
}

/**
 * Throws `AlreadyAnswered` for a repeated request. For a handler whose first step cannot be undone: a
 * request to another server, or a place in a bucket of requests.
 */
export async function refuseAnswered(db: Reader, claim: Claim | undefined): Promise<void> {
  if (claim && (await lookup(db, claim))) throw new AlreadyAnswered(claim)
}

/** As `take`, for one answer that is only known after the work. Throws `AlreadyAnswered`. */
export async function keepAnswer(tx: Tx, claim: Claim | undefined, answer: Kept) {
  if (!claim) return
  const { status = claim.status, ...body } = answer
  const text = JSON.stringify(body)
  const stored = { status, answer: claim.secrets?.seal(text, claim.request) ?? text }
  const fresh = await take(tx, [{ claim, stored }])
  if (!fresh.has(claim.request)) throw new AlreadyAnswered(claim)
}

/** Another answer in the place of the one that was taken, in the same transaction. */
export const amend = (tx: Tx, { request, secrets }: Claim, answer: object) => {
  const text = JSON.stringify(answer)
  const kept = { answer: secrets?.seal(text, request) ?? text }
  return tx.update(idempotency).set(kept).where(eq(idempotency.request, request))
}

/** Does the work of a request in one transaction with keeping its answer. `large_of` is as in `Store.tx`. */
export async function answerOnce<Made>(
  store: Store,
  claim: Claim | undefined,
  work: (tx: Tx) => Promise<Made>,
  large_of?: string,
): Promise<{ data: Made }> {
  return store.tx(async (tx) => {
    const answer = { data: await work(tx) }
    await keepAnswer(tx, claim, answer)
    return answer
  }, large_of)
}

/** For a request that was refused after all, in the transaction that took its claim. */
export const giveUp = (tx: Tx, { request }: Claim) =>
  tx.delete(idempotency).where(eq(idempotency.request, request))

/** Requests that are running here and now, so that a second one is told so. */
export class RunningClaims {
  readonly #requests = new Set<string>()

  begin({ request }: Claim) {
    if (this.#requests.has(request)) throw inProgress()
    this.#requests.add(request)
  }

  end({ request }: Claim) {
    this.#requests.delete(request)
  }
}

const inProgress = () =>
  new ApiError(
    "conflict",
    "A request with this Idempotency-Key is still running. Ask again in a second.",
    { reason: "in_progress", id: null, retry_after: 1 },
  )

/** Forgets what is older than a day, some at a time. Returns how many rows went. */
export async function purge(store: Store): Promise<number> {
  const limit = oldest()
  const old = lte(idempotency.created_at, limit)
  const rows = store.read.select({ request: idempotency.request }).from(idempotency).where(old)
  const some = await rows.limit(PURGE_LIMIT)
  if (some.length === 0) return 0
  await store.tx(async (tx) => {
    for (const { request } of some) await removeOld(tx, { request, created_at: limit })
  })
  return some.length
}

/** What was answered then, or before, is forgotten. */
const oldest = () => isoFrom(millis() - KEPT_MILLISECONDS)

const insertNew = newRowInserter(idempotency, "request")

const { request, created_at } = idempotency

const findRow = prepared({ request }, (db: Reader, slot) =>
  db.select().from(idempotency).where(eq(request, slot.request)),
)

const removeOld = prepared({ request, created_at }, (tx: Tx, slot) =>
  tx.delete(idempotency).where(and(eq(request, slot.request), lte(created_at, slot.created_at))),
)
