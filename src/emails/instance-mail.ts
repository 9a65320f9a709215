import { ApiError } from "../core/errors"
import type { Secrets } from "../core/secrets"
import type { SystemMail } from "../identity/system-mail"
import { MAILBOX_DOMAIN, type Mailbox, parseMailbox } from "../lib/address"
import * as messages from "../messages/pipeline"
import { sealContent } from "../messages/sealed-contents"
import { instanceProject } from "../tenancy/projects"
import type { EmailContent } from "./filed-content"
import { newEmail } from "./prepare"

interface SystemSender {
  /** The setting `system_from`: an address, or `Name <address>`. */
  system_from: string | null
  /** Mail goes to the embedded mailbox. */
  to_mailbox: boolean
}

/**
 * Mail of the instance itself goes the way of all mail, but from the hidden project, past plans and
 * quotas: no key and no member ever reads what it says. It holds tokens that open accounts. So a copy of
 * the database must not show it: the content waits sealed, and goes once the mail is delivered.
 */
export const systemMail = (secrets: Secrets, sender: SystemSender): SystemMail => ({
  async send(tx, letter) {
    const from = senderOf(sender)
    const owner = await instanceProject(tx)
    const { to, subject, text, html, kind } = letter
    // RFC 3834: no answering machine replies to it.
    const headers = { "Auto-Submitted": "auto-generated" }
    const content: EmailContent = { html: html ?? null, text, headers }
    const message = newEmail({
      ...owner,
      from,
      to: { email: to, name: null },
      reply_to: [],
      subject,
      content,
      stream: "auth",
      source: messages.OWN_SOURCE,
      tags: [kind],
      sandbox: false,
    })
    const sealed = sealContent(secrets, message.id, content)
    await messages.accept(tx, [{ ...message, content: sealed }])
  },
})

function senderOf({ system_from, to_mailbox }: SystemSender): Mailbox {
  const own = system_from === null ? undefined : parseMailbox(system_from)
  if (own) return own
  if (to_mailbox) return { email: `belfry@${MAILBOX_DOMAIN}`, name: "Belfry" }
  throw new ApiError(
    "email_not_configured",
    "This instance has no sender address for its own mail. Set system_from.",
  )
}
