import { plainNouns } from "../../cli/lib/plain-nouns"
import { exampleLines, ID } from "../../cli/lib/resource"
import { resources } from "../../cli/resources"

/** Where the server keeps them. It cannot import the command line itself. */
export const COMMAND_LINES = "src/pages/docs/command-lines.ts"

/** The rows of the resources give most of them; these operations are reached by code. */
export const BY_HAND: Readonly<Record<string, string>> = {
  "GET /healthz": "status",
  "GET /readyz": "status",
  "GET /v1/setup": "setup https://mail.example.test --email ann@example.test",
  "POST /v1/setup": "setup https://mail.example.test --email ann@example.test --account-name Acme",
  "POST /v1/session": "login https://mail.example.test --email ann@example.test",
  "POST /v1/session/mfa": "login https://mail.example.test --email ann@example.test --code 123456",
  "GET /v1/session": "whoami",
  "DELETE /v1/session": "logout",
  "POST /v1/session/device": "login https://mail.example.test --device",
  "POST /v1/session/device/token": "login https://mail.example.test --device",
  "POST /v1/users": "signup https://mail.example.test --email kim@example.test --name Kim",
  "DELETE /v1/users/me": "me delete",
  "POST /v1/users/me/mfa/enroll": "me mfa enroll",
  "POST /v1/invitations/{token}/accept": "invitations accept belfry_invitation_… --name Kim",
  "PUT /v1/api-keys/{key_id}/ip-whitelist": `keys allowlist ${ID} 192.0.2.7 2001:db8::/32`,
  "GET /v1/usage": "usage --period 2026-11",
  "GET /v1/settings": "settings get",
  "PATCH /v1/settings": "settings set sandbox=true default_from=me@example.com",
  "GET /v1/jobs/{job_id}": `jobs get ${ID}`,
  "GET /v1/domains/{domain_id}/zonefile": "domains records acme.test --format bind",
  "POST /v1/domains/{domain_id}/check": "domains check acme.test",
  "POST /v1/emails":
    'emails send --from hello@mailbox.test --to ann@mailbox.test --subject "Your receipt" --text "Thank you."',
  "POST /v1/emails/batch": "emails batch messages.json",
  "POST /v1/sms/batch": "sms batch texts.json",
  "GET /v1/emails/{email_id}/events": `emails events ${ID}`,
  "GET /v1/emails/{email_id}/content": `emails content ${ID}`,
  "GET /v1/emails/{email_id}/raw": `emails raw ${ID} > mail.eml`,
  "GET /v1/emails/{email_id}/attachments/{attachment_id}": `emails attachment ${ID} ${ID} --save-as invoice.pdf`,
  "POST /v1/emails/{email_id}/resend": `emails resend ${ID}`,
  "POST /v1/emails/preflight":
    'emails preflight --from hello@mailbox.test --to ann@mailbox.test --subject "Your receipt" --text "Thank you."',
  "GET /v1/inbound-emails/wait": "inbound wait --to ann@in.acme.test --since 1m --extract otp",
  "GET /v1/inbound-emails/{inbound_id}/raw": `inbound raw ${ID} > mail.eml`,
  "GET /v1/inbound-emails/{inbound_id}/attachments/{attachment_id}": `inbound attachments ${ID} 0 --save-as invoice.pdf`,
  "GET /v1/files/{token}": `inbound attachments ${ID} 0 --save-as invoice.pdf`,
  "POST /v1/inbound-emails/{inbound_id}/reply": `inbound reply ${ID} --text "Thank you."`,
  "POST /v1/suppressions/bulk": "suppressions import bounced.txt --reason bounce",
  "POST /v1/suppressions/bulk-remove": "suppressions rm ann@example.com ben@example.com",
  "GET /v1/suppressions/check": "suppressions check ann@example.com",
  "GET /v1/suppressions/export": "suppressions export > suppressions.csv",
  "DELETE /v1/suppressions/{suppression_id}": `suppressions rm ${ID}`,
  "POST /v1/subscribers/bulk": "subscribers import people.csv --map Id=external_id",
  "GET /v1/subscribers/external/{external_id}": "subscribers get user-42 --external",
  "DELETE /v1/subscribers/external/{external_id}": "subscribers rm user-42 --external",
  "GET /v1/subscribers/{subscriber_id}": "subscribers get user-42",
  "DELETE /v1/subscribers/{subscriber_id}": "subscribers rm user-42",
  "POST /v1/topics/{topic_key}/subscribers": "topics join news user-1 user-2",
  "DELETE /v1/topics/{topic_key}/subscribers": "topics leave news user-1 user-2",
  "DELETE /v1/topics/{topic_key}/subscribers/{subscriber_id}": "topics leave news user-1",
  "POST /v1/topics/{topic_key}/publish":
    'topics publish news --channel email --subject "News" --text "Hello" --from hello@example.com',
  "GET /v1/topics/{topic_key}/publishes": "topics publishes news",
  "GET /v1/topics/{topic_key}/publishes/{publish_id}": `topics publishes news ${ID}`,
  "POST /v1/topics/{topic_key}/publishes/{publish_id}/cancel": `topics cancel news ${ID}`,
  "GET /v1/subscribers/{subscriber_id}/consents": "subscribers consents user-42",
  "GET /v1/subscribers/{subscriber_id}/export": "subscribers export user-42 > user-42.json",
  "PATCH /v1/providers/{kind}/config/{config_id}": `providers update ${ID} --priority 5`,
  "POST /v1/providers/{kind}/config":
    "providers set smtp --host smtp.example.com --username apikey --secret-stdin < password",
  "GET /v1/mailbox": "mailbox list --to ann@mailbox.test --since 1h",
  "GET /v1/mailbox/{mail_id}": `mailbox get ${ID}`,
  "GET /v1/mailbox/{mail_id}/raw": `mailbox raw ${ID} > mail.eml`,
  "GET /v1/mailbox/{mail_id}/attachments/{attachment_id}": `mailbox attachments ${ID} 0 --save-as receipt.pdf`,
  "GET /v1/mailbox/chaos": "mailbox chaos",
  "PUT /v1/mailbox/chaos": "mailbox chaos --bounce 0.1 --defer 0.2 --delay 500",
  "GET /v1/events": "events list --event email.bounced --since 1d",
  "GET /v1/admin/queues": "queue instance",
  "POST /v1/admin/queues/{queue}/pause": "queue pause email",
  "POST /v1/admin/queues/{queue}/resume": "queue resume email",
  "GET /v1/webhooks/{webhook_id}/deliveries": `webhooks deliveries ${ID} --status failed`,
  "GET /v1/webhooks/{webhook_id}/deliveries/{delivery_id}": `webhooks deliveries ${ID} ${ID}`,
  "POST /v1/webhooks/{webhook_id}/deliveries/{delivery_id}/retry": `webhooks retry ${ID} ${ID}`,
  "POST /v1/webhooks/{webhook_id}/deliveries/bulk-retry": `webhooks retry ${ID} --all --since 1d`,
  "GET /v1/events/stream": "events tail",
  "GET /v1/subscriber-inbox/ws": "inbox tail --external-id user-42",
  "GET /v1/request-log": "logs list --status 4xx",
  "GET /v1/openapi.json": "routes",
}

/** Operations that do the same as another one, which the command asks for. */
export const SAME_AS: Readonly<Record<string, string>> = {
  "GET /v1/health": "GET /healthz",
  "GET /v1/accounts/me/projects": "GET /v1/projects",
  "POST /v1/accounts/me/projects": "POST /v1/projects",
  "GET /v1/domains/{domain_id}/status": "GET /v1/domains/{domain_id}",
  "POST /v1/domains/{domain_id}/verify": "POST /v1/domains/{domain_id}/check",
  "POST /v1/emails/{email_id}/events": "GET /v1/emails/{email_id}/events",
  "POST /v1/emails/{email_id}/tracking": "GET /v1/emails/{email_id}/tracking",
  "PUT /v1/templates/{template_id}": "PATCH /v1/templates/{template_id}",
  "PATCH /v1/subscribers/{subscriber_id}/preferences":
    "POST /v1/subscribers/{subscriber_id}/preferences",
  "PUT /v1/webhooks/{webhook_id}": "PATCH /v1/webhooks/{webhook_id}",
}

/** One line of `belfry` for each operation that a command sends, by `METHOD /path`. */
export function commandLines(): Record<string, string> {
  const plain = [...resources, ...plainNouns(resources)].flatMap(({ noun, rows }) =>
    rows.flatMap((row) =>
      row.route ? [[row.route, exampleLines(noun, row)[0] ?? ""] as const] : [],
    ),
  )
  // Of two commands for one route the first is its line.
  const own = [...plain.reverse(), ...Object.entries(BY_HAND)]
  const lines = Object.fromEntries(own)
  const same = Object.entries(SAME_AS).flatMap(([route, other]) => {
    const line = lines[other]
    return line === undefined ? [] : [[route, line] as const]
  })
  const all = [...own, ...same]
  return Object.fromEntries(
    all
      .map(([route, line]) => [route, `belfry ${line}`] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  )
}

/** The file that `bun run generate` writes. */
export function commandLinesSource(): string {
  const rows = Object.entries(commandLines()).map(
    ([route, line]) => `  ${JSON.stringify(route)}: ${JSON.stringify(line)},\n`,
  )
  return `/** Written by \`bun run generate\`: the command that does what an operation does. */
export const commandLines: Readonly<Record<string, string>> = {
${rows.join("")}}
`
}
