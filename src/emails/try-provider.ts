import { fail, invalid } from "../core/errors"
import { newId } from "../core/ids"
import { log } from "../core/log"
import type { Secrets } from "../core/secrets"
import { monotonic, now } from "../core/time"
import type { Workers } from "../core/workers"
import { signingKeys } from "../domains/keys"
import type { Caller } from "../identity/caller"
import { DeferredError } from "../jobs/work-item"
import { domainOf, isMailbox, notOneAddress } from "../lib/address"
import { INSTANCE_NAME, shownId } from "../providers/callbacks"
import { keepReturnPath, pause, refusalText, refusedReturnPaths, resume } from "../providers/health"
import type { OpenProviders } from "../providers/open-providers"
import {
  type Fault,
  type Outcome,
  type Provider,
  ProviderBusyError,
  ProviderError,
  type ReturnPathAnswer,
} from "../providers/provider"
import { type ConfigRow, INSTANCE } from "../providers/tables"
import type { Store } from "../store/store"
import { returnPathOf } from "./channel"
import { compose } from "./compose-email"
import { refuseUnsendable, type SendRules } from "./prepare"
import type { OutgoingMail } from "./providers/provider"

export interface TestParts {
  store: Store
  secrets: Secrets
  workers: Workers
  open_providers: OpenProviders
  rules: SendRules
}

interface TestSubject {
  caller: Caller
  row: ConfigRow
  project_id: string
}

/**
 * Logs in at the provider and, with `to`, sends a mail through it and no other. What shows of its
 * credentials counts: a pause ends or begins. Throws 502 `provider_error` with its words, and 500
 * `send_failed` where there could be no mail.
 */
export async function tryProvider(parts: TestParts, subject: TestSubject, to: string | undefined) {
  if (to !== undefined && !isMailbox(to)) throw invalid("to", "invalid_email", notOneAddress(to))
  const mail = to === undefined ? undefined : await written(parts, subject, to)
  const begun = monotonic()
  const { row } = subject
  const detail = await attempt(parts, row, (provider) => tried(parts, provider, subject, mail))
  await parts.store.tx((tx) => resume(tx, row))
  return { ok: true as const, duration_ms: Math.round(monotonic() - begun), detail }
}

async function attempt(
  { store, open_providers }: TestParts,
  row: ConfigRow,
  run: (provider: Provider) => Promise<string>,
): Promise<string> {
  try {
    return await open_providers.use(row, run)
  } catch (error) {
    // No room at the moment, which a message would wait for.
    const is_full = error instanceof DeferredError || error instanceof ProviderBusyError
    if (is_full) return refused(row.provider, error.message, "infrastructure")
    if (!(error instanceof ProviderError)) throw error
    const { message, fault } = error
    if (fault === "authentication") await store.tx((tx) => pause(tx, row, message))
    return refused(row.provider, message, fault)
  }
}

const refused = (provider: string, message: string, fault: Fault | "message"): never =>
  fail("provider_error", message, { provider, fault })

/** What was tried, and what the provider makes of our return path. */
async function tried(
  parts: TestParts,
  provider: Provider,
  { caller, row, project_id }: TestSubject,
  mail: OutgoingMail | undefined,
): Promise<string> {
  const { default_from } = caller.project_settings
  const sender_domain = default_from && domainOf(default_from.email)
  const about = { id: mail?.message_id ?? newId(), project_id, sender_domain }
  const return_path = await returnPathOf(parts.store.read, parts.secrets, about)
  // An older refusal is forgotten, so that the mail is sent with it, too.
  const asked = return_path === undefined ? null : await provider.checkReturnPath?.(return_path)
  if (!mail) {
    const checked = (await provider.check?.()) ?? "This provider needs no login."
    return `${checked}${await told(parts, row, asked)}`
  }
  const sent: OutgoingMail = { ...mail, reports_to: async () => return_path }
  const outcome = await provider.send(sent)
  const words = sentWords(provider, mail, outcome)
  return `${words}${await told(parts, row, outcome.return_path ?? asked, true)}`
}

function sentWords(provider: Provider, { to }: OutgoingMail, outcome: Outcome): string {
  const { status, fault } = outcome
  const words = outcome.reason ?? outcome.reply.response ?? "no reason was given"
  if (status === "sent" || status === "delivered") return `It accepted a mail to ${to[0]}: ${words}`
  if (fault) throw new ProviderError(fault, words)
  return refused(provider.name, words, "message")
}

/** Many a relay refuses a sender at RCPT or after the message only: without a mail its yes is no more than a word. */
async function told(
  { store }: TestParts,
  row: ConfigRow,
  answer: ReturnPathAnswer | null | undefined,
  is_proven = false,
): Promise<string> {
  if (!answer) return ""
  const { host, refusal } = answer
  if (is_proven || refusal !== null) await store.tx((tx) => keepReturnPath(tx, row, answer))
  if (refusal !== null) return ` ${refusalText(host, refusal)}`
  const before = is_proven ? undefined : refusedReturnPaths(row)[host]
  const last =
    before && ` It refused a mail with it, though: "${before}" The next mail tries it again.`
  return ` It takes ${host} as envelope sender.${last ?? ""}`
}

async function written(
  { store, secrets, workers, rules }: TestParts,
  { caller, row, project_id }: TestSubject,
  to: string,
): Promise<OutgoingMail> {
  const { default_from } = caller.project_settings
  const from = default_from ?? fail("sender_not_configured", NO_SENDER, { channel: "email" })
  const domain = domainOf(from.email)
  const to_mailbox = row.provider === "mailbox"
  const own = { ...rules, to_mailbox, mailbox_takes_all: to_mailbox }
  const recipient = { email: to, name: null }
  await refuseUnsendable(caller, domain, [recipient], own)
  const id = newId()
  try {
    const dkim = await signingKeys(store.read, secrets, project_id, domain)
    const letter = { message_id: id, domain, from, to: recipient, ...letterOf(row) }
    const { raw } = await compose(workers, { ...letter, dkim })
    return { message_id: id, project_id, from: from.email, to: [to], raw, smtputf8: false }
  } catch (error) {
    log.error("a test mail could not be composed", { config_id: shownId(row), error })
    return fail("send_failed", "The test mail could not be composed. The log has the reason.")
  }
}

const NO_SENDER =
  "The project has no default_from, so the test mail has no sender. Set it with `belfry settings set default_from=<address>`."

function letterOf(row: ConfigRow) {
  const name = row.project_id === INSTANCE ? INSTANCE_NAME : row.name
  const what = `a test of ${row.provider} (${name})`
  return {
    ...{ created_at: now(), cc: [], reply_to: [], attachments: [] },
    subject: `A${what.slice(1)}`,
    text: `This mail is ${what}. It arrived, so the provider works.\n`,
    html: null,
    headers: { "Auto-Submitted": "auto-generated" },
  }
}
