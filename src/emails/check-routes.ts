import { Type as t } from "@sinclair/typebox"
import { type AnyRoute, projectRow, route } from "../http/route"
import { anything, count, flag, id, maybe, text as sample, word } from "../lib/record-fields"
import { explanationFields } from "../messages/explanation"
import { readSendEmail, SEND_LIMIT_BYTES } from "./fields"
import type { PreflightParts } from "./preflight"
import { SendEmail, STATUSES } from "./schemas"
import { CHECK_OUTCOMES, CHECKS, explain, preflight, STAGES } from "./stages"

const Preflight = t.Object(
  {
    ok: flag(true, "Whether the email would be accepted."),
    errors: t.Array(
      t.Object({
        code: sample("suppressed_recipient"),
        message: sample("ann@example.com is suppressed."),
        details: anything({ address: "ann@example.com" }),
      }),
      { description: "What sending this email would be refused with." },
    ),
    warnings: t.Array(
      t.Object({
        code: word(CHECKS),
        message: sample('The html names no language. Add lang, such as <html lang="en">.'),
      }),
      { description: "What its author may want to change. `code` is the name of the check." },
    ),
    rendered: t.Object({
      subject: sample("Your receipt"),
      html: maybe(sample("<p>Thank you for your order.</p>")),
      text: sample("Thank you for your order."),
      size_bytes: count(1840),
    }),
    checks: t.Array(
      t.Object({
        name: word(CHECKS),
        outcome: word(CHECK_OUTCOMES),
        detail: sample("The DKIM key and the SPF record of example.com are published."),
      }),
    ),
  },
  { title: "Preflight" },
)

const SUMMARY = "The email to ann@example.com was delivered after 1 attempt."

const Explanation = t.Object(
  { email_id: id(), ...explanationFields(STATUSES, STAGES, SUMMARY) },
  { title: "Explanation" },
)

export const checkRoutes = (parts: PreflightParts): AnyRoute[] => [
  route({
    ...projectRow("POST", "/v1/emails/preflight", "email:send"),
    summary: "Check an email without sending it",
    description:
      "Checks what sending it would check, then its domain, size, links, accessibility and content. It sends, counts and fetches nothing. Records of the domain are as the last check saw them.",
    body: SendEmail,
    example: {
      from: "Acme <hello@mailbox.test>",
      to: "ann@mailbox.test",
      subject: "Your receipt",
      html: '<p>Thank you for your <a href="https://example.com/orders/1042">order</a>.</p>',
    },
    readRaw: readSendEmail,
    response: Preflight,
    limit: SEND_LIMIT_BYTES,
    takes_files: true,
    handle: async ({ caller, body }) => ({ data: await preflight(parts, caller, body) }),
  }),
  route({
    ...projectRow("GET", "/v1/emails/{email_id}/explain", "email:read"),
    summary: "Explain what happened to an email, and why",
    description:
      "The whole way of the email: each stage with what decided, from the caller to the deliveries of its events.",
    response: Explanation,
    handle: async ({ project_id, params }) => ({
      data: await explain(parts.store.read, project_id, params.email_id),
    }),
  }),
]
