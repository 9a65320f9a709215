import { fail, invalid } from "../core/errors"
import { newId } from "../core/ids"
import { log } from "../core/log"
import type { Secrets } from "../core/secrets"
import { now } from "../core/time"
import type { Workers } from "../core/workers"
import { signingKeys } from "../domains/keys"
import { domainOf, isMailbox, notOneAddress } from "../lib/address"
import { INSTANCE_NAME, shownId } from "../providers/callbacks"
import { keepReturnPath, refusalText, refusedReturnPaths } from "../providers/health"
import type { OpenProviders } from "../providers/open-providers"
import type { Provider, ReturnPathAnswer } from "../providers/provider"
import { type ConfigRow, INSTANCE } from "../providers/tables"
import { checked, sent, type Trial, type TrialSubject } from "../providers/try-provider"
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

/**
 * Logs in at a provider of email and, with `to`, sends a mail through it. Throws 500 `send_failed` where there
 * could be no mail.
 */
export async function emailTrial(
  parts: TestParts,
  subject: TrialSubject,
  to: string | undefined,
): Promise<Trial> {
  if (to !== undefined && !isMailbox(to)) throw invalid("to", "invalid_email", notOneAddress(to))
  const mail = to === undefined ? undefined : await written(parts, subject, to)
  return (provider) => tried(parts, provider, subject, mail)
}

/** What was tried, and what the provider makes of our return path. */
async function tried(
  parts: TestParts,
  provider: Provider,
  { caller, row, project_id }: TrialSubject,
  mail: OutgoingMail | undefined,
): Promise<string> {
  const { default_from } = caller.project_settings
  const sender_domain = default_from && domainOf(default_from.email)
  const about = { id: mail?.message_id ?? newId(), project_id, sender_domain }
  const return_path = await returnPathOf(parts.store.read, parts.secrets, about)
  // An older refusal is forgotten, so that the mail is sent with it, too.
  const asked = return_path === undefined ? null : await provider.checkReturnPath?.(return_path)
  if (!mail) return `${await checked(provider)}${await told(parts, row, asked)}`
  const asking: OutgoingMail = { ...mail, reports_to: async () => return_path }
  const { words, outcome } = await sent(provider, asking, "a mail")
  return `${words}${await told(parts, row, outcome.return_path ?? asked, true)}`
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
  { caller, row, project_id }: TrialSubject,
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
