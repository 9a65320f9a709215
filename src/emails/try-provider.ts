import { ApiError, fail } from "../core/errors"
import { newId } from "../core/ids"
import { log } from "../core/log"
import { invalid } from "../core/problems"
import type { Secrets } from "../core/secrets"
import { monotonic, now } from "../core/time"
import type { Workers } from "../core/workers"
import { signingKeys } from "../domains/signing"
import type { Caller } from "../identity/caller"
import { DeferredError } from "../jobs/work"
import { domainOf, isMailbox, type Mailbox, notOneAddress } from "../lib/address"
import { INSTANCE } from "../providers/callback-token"
import type { ConfigRow } from "../providers/configs"
import { pauseInstance, resumeInstance } from "../providers/instance-standing"
import type { Fault, Outcome } from "../providers/provider"
import { emailRouting } from "../providers/routing"
import { pause, resume } from "../providers/standing"
import type { Store, Tx } from "../store/store"
import { compose } from "./compose"
import { refuseUnsendable, type SendRules } from "./prepare"
import type { Adapters, Lease } from "./providers/adapters"
import { asLease } from "./providers/candidates"
import { ProviderError } from "./providers/provider"
import { PoolBusy } from "./smtp/pool"

export interface TestParts {
  store: Store
  secrets: Secrets
  workers: Workers
  adapters: Adapters
  rules: SendRules
}

interface Tested {
  ok: true
  duration_ms: number
  detail: string
}

/** Whom a test asks, and what becomes of a pause by what it finds. */
interface Subject {
  id: string
  project_id: string
  provider: string
  name: string
  lease(): Lease
  pause(tx: Tx, why: string): Promise<unknown>
  resume(tx: Tx): Promise<void>
}

/** As `tryProvider`, of the instance's own. Throws 404 for a project that has providers of its own. */
export async function tryInstance(
  parts: TestParts,
  caller: Caller,
  project_id: string,
  to: string | undefined,
): Promise<Tested> {
  const { own } = parts.adapters
  const rows = await emailRouting(parts.store.read, project_id)
  if (!own || rows.length > 0) return fail("not_found", "There is no such provider configuration.")
  const { name: provider } = own
  const who = { id: INSTANCE, project_id, provider, name: INSTANCE, lease: () => asLease(own) }
  const standing = {
    pause: (tx: Tx, why: string) => pauseInstance(tx, provider, why),
    resume: resumeInstance,
  }
  return tested(parts, caller, { ...who, ...standing }, to)
}

/**
 * Logs in at the provider and, with `to`, sends a mail through it and no other. What shows of its
 * credentials counts: a pause ends or begins. Throws 502 `provider_error` with its words, and 500
 * `send_failed` where there could be no mail.
 */
export const tryProvider = (
  parts: TestParts,
  caller: Caller,
  row: ConfigRow,
  to: string | undefined,
): Promise<Tested> =>
  tested(
    parts,
    caller,
    {
      ...row,
      lease: () => parts.adapters.lease(row),
      pause: (tx, why) => pause(tx, row, why),
      resume: (tx) => resume(tx, row),
    },
    to,
  )

async function tested(
  parts: TestParts,
  caller: Caller,
  subject: Subject,
  to: string | undefined,
): Promise<Tested> {
  if (to !== undefined && !isMailbox(to)) throw invalid("to", "invalid_email", notOneAddress(to))
  const mail = to === undefined ? undefined : await written(parts, caller, subject, to)
  const begun = monotonic()
  const detail = await attempt(parts, subject, (lease) => (mail ? send(lease, mail) : check(lease)))
  await parts.store.tx(subject.resume)
  return { ok: true, duration_ms: Math.round(monotonic() - begun), detail }
}

async function attempt(
  { store }: TestParts,
  subject: Subject,
  run: (lease: Lease) => Promise<string>,
): Promise<string> {
  try {
    const lease = subject.lease()
    try {
      return await run(lease)
    } finally {
      lease.release()
    }
  } catch (error) {
    // No room at the moment, which a message would wait for.
    const is_full = error instanceof DeferredError || error instanceof PoolBusy
    if (is_full) return refused(subject.provider, error.message, "infrastructure")
    if (!(error instanceof ProviderError)) throw error
    const { message, fault } = error
    if (fault === "authentication") await store.tx((tx) => subject.pause(tx, message))
    return refused(subject.provider, message, fault)
  }
}

const refused = (provider: string, message: string, fault: Fault | "message"): never =>
  fail("provider_error", message, { provider, fault })

const check = async ({ provider }: Lease) =>
  (await provider.check?.()) ?? "This provider needs no login."

interface TestMail {
  id: string
  project_id: string
  from: string
  to: string
  raw: Uint8Array
}

async function send({ provider }: Lease, { id, project_id, from, to, raw }: TestMail) {
  const mail = { message_id: id, project_id, from, to: [to], raw, smtputf8: false }
  const outcome = await provider.send(mail)
  const { status, fault } = outcome
  const words = wordsOf(outcome)
  if (status === "sent" || status === "delivered") return `It accepted a mail to ${to}: ${words}`
  if (fault) throw new ProviderError(fault, words)
  return refused(provider.name, words, "message")
}

const wordsOf = ({ reason, reply }: Outcome) => reason ?? reply.response ?? "no reason was given"

async function written(
  { store, secrets, workers, rules }: TestParts,
  caller: Caller,
  subject: Subject,
  to: string,
): Promise<TestMail> {
  const { default_from } = caller.project_settings
  const from = default_from ?? fail("sender_not_configured", NO_SENDER, { channel: "email" })
  const domain = domainOf(from.email)
  const to_mailbox = subject.provider === "mailbox"
  const own = { ...rules, to_mailbox, mailbox_takes_all: to_mailbox }
  await refuseUnsendable(caller, domain, [{ email: to, name: null }], own)
  const id = newId()
  const { project_id } = subject
  try {
    const dkim = await signingKeys(store.read, secrets, project_id, domain)
    const letter = letterOf({ from, to, domain, id }, subject)
    const { raw } = await compose(workers, { ...letter, dkim })
    return { id, project_id, from: from.email, to, raw }
  } catch (error) {
    log.error("a test mail could not be composed", { config_id: subject.id, error })
    throw new ApiError(
      "send_failed",
      "The test mail could not be composed. The log has the reason.",
    )
  }
}

const NO_SENDER =
  "The project has no default_from, so the test mail has no sender. Set it with `belfry settings set default_from=<address>`."

interface Address {
  from: Mailbox
  to: string
  domain: string
  id: string
}

const letterOf = ({ from, to, domain, id }: Address, { provider, name }: Subject) => ({
  message_id: id,
  domain,
  created_at: now(),
  from,
  to: { email: to, name: null },
  cc: [],
  reply_to: [],
  subject: `A test of ${provider} (${name})`,
  text: `This mail is a test of ${provider} (${name}). It arrived, so the provider works.\n`,
  html: null,
  headers: { "Auto-Submitted": "auto-generated" },
  attachments: [],
})
