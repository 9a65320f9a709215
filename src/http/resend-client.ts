type Fields = Record<string, unknown>

/** Whether the program uses the client of Resend in some language: `resend-node:6.38.0`, `resend-go/3.12.0`. */
export const isResendClient = ({ headers }: Request): boolean =>
  headers.get("user-agent")?.startsWith("resend-") ?? false

const AREA = /^\/v1\/(emails|domains|api-keys|webhooks|templates|topics)(?![^/])/

/** The part of the API that this client knows, of those whose answers it reads. */
export const resendArea = (path: string): string | undefined => AREA.exec(path)?.[1]

/**
 * A record as this client reads it: names and forms of Resend beside ours. In Go a value of another type is an
 * error, so where both have a field its form is that of Resend.
 */
export const resendForm = (area: string, record: Fields): Fields => ({
  ...record,
  ...FORMS[area]?.(record),
})

/** Fields that a record does not have stay undefined, which JSON leaves out. */
const FORMS: Record<string, (record: Fields) => Fields> = {
  emails: ({ from, to, cc, bcc, reply_to, last_event, rfc_message_id }) => ({
    from: addressText(from),
    to: isObject(to) ? [addressText(to)] : to,
    ...{ cc: eachOf(cc, addressText), bcc: eachOf(bcc, addressText) },
    reply_to: eachOf(reply_to, addressText),
    last_event: isObject(last_event) ? String(last_event.type).replace("email.", "") : last_event,
    message_id: rfc_message_id,
  }),
  domains: ({ domain, dns_records }) => ({ name: domain, records: eachOf(dns_records, dnsRecord) }),
  "api-keys": ({ key }) => ({ token: key }),
  webhooks: ({ url, secret }) => ({ endpoint: url, signing_secret: secret }),
  templates: ({ variables }) => ({
    variables: eachOf(
      variables,
      (one) => isObject(one) && { ...one, fallback_value: one.fallback },
    ),
  }),
  topics: ({ default: fallback }) => ({
    default_subscription: fallback && (fallback === "on" ? "opt_in" : "opt_out"),
  }),
}

const isObject = (value: unknown): value is Fields => typeof value === "object" && value !== null

const eachOf = (list: unknown, form: (one: unknown) => unknown) =>
  Array.isArray(list) ? list.map(form) : list

/** `Ann <ann@example.com>`, or the address alone. */
const addressText = (value: unknown) => {
  const { email, name } = isObject(value) ? value : {}
  return typeof email !== "string" ? value : name ? `${name} <${email}>` : email
}

const dnsRecord = (given: unknown) => {
  const { purpose, name, type, ttl, status, value, priority } = given as Fields
  const record = `${purpose}`.replace(/^(spf|dkim|dmarc)$/, (word) => word.toUpperCase())
  return { record, name, type, ttl: `${ttl}`, status, value, priority: priority ?? undefined }
}
