import { Failover, type FailoverParts } from "../../providers/failover"
import type { Outcome, Provider } from "../../providers/provider"
import { mailer } from "../mailer"
import type { EmailProvider, OutgoingMail, UnsentMail } from "./provider"

/** Sends the mail by a provider: one that does not have it made gets its bytes. Rejects with MailNotMade, too. */
export async function handOver(provider: EmailProvider, mail: UnsentMail): Promise<Outcome> {
  const { raw } = mail
  if (raw instanceof Uint8Array) return provider.send({ ...mail, raw })
  if (provider.makes_mail) return (provider as Provider<UnsentMail>).send(mail)
  const made = await mailer.make(raw.mail)
  raw.recipe ??= made.recipe
  return provider.send({ ...mail, raw: made.raw })
}

/** The email providers of every project as one. */
export const emailFailover = (parts: FailoverParts<OutgoingMail>) =>
  Object.assign(new Failover<OutgoingMail>({ ...parts, handOver }), { makes_mail: true as const })
