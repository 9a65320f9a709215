import { explanationText } from "../lib/checks-text"
import { attemptColumns, emailColumns, emailText } from "../lib/email-text"
import { FIRST_EMAIL, optionWords } from "../lib/flags"
import { row } from "../lib/resource"
import { trackingText } from "../lib/tracking-text"
import { rescheduleRow } from "./scheduled"

/** Email: the commands that are plain. */
export const emailRows = [
  row("list", "GET /v1/emails", {
    example: "--status bounced --json=id,to.email,status_reason",
    aliases: { domain: "domain", template_id: "template", subscriber_id: "subscriber" },
    flags: { template_id: "show only emails of this template, by id or name", stream: false },
    columns: emailColumns,
    next: ([first], _, options) => {
      if (first) return `emails get ${first.id}`
      return optionWords({ ...options, limit: undefined }) === ""
        ? FIRST_EMAIL.slice("belfry ".length)
        : undefined
    },
  }),
  row("get <id>", "GET /v1/emails/{email_id}", {
    shown: emailText,
    next: ({ id }) => `emails attempts ${id}`,
  }),
  row("attempts <id>", "GET /v1/emails/{email_id}/attempts", {
    about: "list the delivery attempts of an email with the servers' answers, oldest first",
    columns: attemptColumns,
  }),
  row("explain <id>", "GET /v1/emails/{email_id}/explain", {
    about: "explain what happened to an email, and why, stage by stage",
    shown: explanationText,
    next: ({ email_id }) => `emails attempts ${email_id}`,
  }),
  row("tracking <id>", "GET /v1/emails/{email_id}/tracking", {
    about: "show the openings and clicks of an email",
    shown: trackingText,
    next: ({ email_id }) => `emails events ${email_id}`,
  }),
  row("cancel <id>", "POST /v1/emails/{email_id}/cancel", {
    done: () => "cancelled",
    shown: emailText,
  }),
  rescheduleRow,
]
