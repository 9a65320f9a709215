import type { SystemMail } from "../identity/system-mail"
import { accounts, type SendingStatus } from "../identity/tables"
import { emailsInAccount } from "../identity/users"
import type { JobHandler, JobKind } from "../jobs/jobs"
import { noticeSchedule } from "../jobs/work-item"
import { rowById } from "../store/rows"
import type { Store } from "../store/store"
import { percentText, thresholds } from "./sending-status"

type AlertKind = SendingStatus | "throttled_soon" | "frozen_soon" | "held"

/** What owners of an account are told of its reputation. */
interface ReputationAlert {
  account_id: string
  kind: AlertKind
  reason: string | null
  bounce_rate: number
  complaint_rate: number
  /** The tag or template that is held. */
  name?: string
}

/** One mail to the owners for each warning and change. */
export const reputationAlert: JobKind<ReputationAlert> = {
  name: "reputation.alert",
  schedule: noticeSchedule,
}

/** Tells every owner of the account what changed, or is about to, and what to do. */
export const notifyOwners = (store: Store, mail: SystemMail): JobHandler<ReputationAlert> => ({
  run: async (alert) => {
    await store.tx(async (tx) => {
      const account = await rowById(tx, accounts, alert.account_id)
      if (!account || account.deleting_at) return
      for (const to of await emailsInAccount(tx, account.id, ["owner"])) {
        await mail.send(tx, { to, kind: "reputation_alert", ...letter(account.name, alert) })
      }
    })
    return {}
  },
})

function letter(account: string, alert: ReputationAlert) {
  const { kind, reason, bounce_rate, complaint_rate } = alert
  const [subject, outlook] = WORDS[kind](alert)
  const rates = `Bounces: ${percentText(bounce_rate)}. Complaints: ${percentText(complaint_rate)}.`
  const why = reason === null ? "" : `Reason: ${reason}\n`
  const advice = kind === "active" ? "" : `\n${ADVICE}`
  return { subject: `${account}: ${subject}`, text: `${outlook}\n\n${rates}\n${why}${advice}` }
}

const ADVICE = `"belfry reputation show" lists the sender domains, tags and templates with the most bounces and
complaints. Remove the addresses that bounced, and stop the mail that people complain about.
`

type Words = (alert: ReputationAlert) => [subject: string, outlook: string]

const WORDS: Record<AlertKind, Words> = {
  active: () => ["all emails are accepted again", "Belfry accepts all sends of the account again."],
  throttled: () => [
    "a part of the emails is rejected",
    "Too many emails bounced, were reported as spam, or were sent at once. Belfry rejects a part of new sends with 429 account_throttled. This ends by itself when the rates stay low.",
  ],
  frozen: () => [
    "no emails are accepted",
    "Belfry rejects all new sends with 403 account_frozen. Only the operator of this instance can lift this.",
  ],
  throttled_soon: () => [
    "the rates are close to a limit",
    `At ${limitOf("throttled")}, Belfry begins to reject a part of new sends.`,
  ],
  frozen_soon: () => [
    "the account is close to being frozen",
    `At ${limitOf("frozen")}, Belfry rejects all new sends.`,
  ],
  held: ({ name }) => [
    `mail with ${name} waits`,
    `Too many people reported this mail as spam. Messages with ${name} are accepted and wait. "belfry reputation release" sends them.`,
  ],
}

function limitOf(step: "throttled" | "frozen"): string {
  const { bounce_rate, complaint_rate } = thresholds()[step]
  return `${percentText(bounce_rate)} bounces or ${percentText(complaint_rate)} complaints`
}
