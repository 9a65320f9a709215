import { createHmac } from "node:crypto"
import { Type as t } from "@sinclair/typebox"
import { isSame } from "../../lib/signature"
import { objectIn } from "../../lib/text"
import type {
  CallbackRequest,
  ProviderDescriptor,
  ProviderNotice,
  ProviderOpening,
  ProviderReport,
} from "../../providers/provider"
import {
  basicAuth,
  byWord,
  checked,
  exchange,
  meaningOfStatus,
  type OutgoingText,
  receivedReport,
  Secret,
  SMS_SETTINGS,
  type SmsContext,
  type SmsProvider,
  type SmsSettings,
  senderFor,
  serviceAt,
  statusReport,
  type TextAnswer,
  textIn,
  textOutcome,
  textService,
  UNCONFIRMED,
  withoutSender,
} from "./provider"

export interface PlivoAccess {
  auth_id: string
  auth_token: string
}

export const plivoProvider: ProviderDescriptor<PlivoAccess, SmsContext, OutgoingText> = {
  name: "plivo",
  channel: "sms",
  about: "Plivo",
  reports: "`sent`, then `delivered`, `undelivered` or `failed` when Plivo reports it",
  example: "--auth-id MA… --from +43… --secret-stdin < auth-token",
  credentials: {
    auth_id: { schema: t.String({ pattern: "^[A-Za-z0-9]{1,64}$" }), about: "auth ID" },
    auth_token: {
      schema: Secret,
      about: "auth token, which signs the callbacks too",
      secret: true,
      asked_with: "auth_id",
    },
  },
  settings: SMS_SETTINGS,
  callbacks: {
    methods: ["POST", "GET"],
    example: { MessageUUID: "d0f1a2b4-5c6d-11eb-8ecd-0242ac110005", Status: "delivered" },
    about: "Plivo reports here what became of texts, and sends the texts of other people.",
    verify: async ({ request, access }) => isSigned(request, access.auth_token) || undefined,
    read: async ({ request }) => reportOf(request.fields),
    // The address for texts that come in must answer in the markup of Plivo.
    answer: { content_type: "text/xml", body: "<Response/>" },
  },
  open: plivo,
}

function plivo(
  { auth_id, auth_token }: PlivoAccess,
  { settings }: SmsContext,
  { settings: given, callbackUrl: ours }: Pick<ProviderOpening, "settings" | "callbackUrl">,
): SmsProvider {
  const own: SmsSettings = given
  const endpoint = settings["providers.plivo.endpoint"]
  const { url, allow_private, callbackUrl } = serviceAt(endpoint, ours)
  const headers = {
    authorization: basicAuth(auth_id, auth_token),
    "content-type": "application/json",
    accept: "application/json",
  }
  const account = { url: `${url}/v1/Account/${auth_id}/`, allow_private, headers }
  const messages = { ...account, url: `${account.url}Message/`, method: "POST" }
  return textService("plivo", own, {
    async send(text) {
      const sender = text.from ?? senderFor(own, text.to[0] ?? "")
      if (sender === null) return textOutcome("plivo", text, withoutSender("Plivo"))
      const body = JSON.stringify(requestOf(text, sender, callbackUrl()))
      const answer = await exchange({ ...messages, body }, readAnswer)
      return textOutcome("plivo", text, { sender, ...answer })
    },
    check: () => checked(exchange(account, readAccount)),
  })
}

const requestOf = (
  { to: [dst = ""], text, message_id }: OutgoingText,
  src: string,
  callback: string | undefined,
) => ({
  src,
  dst,
  text,
  ...(callback !== undefined && { url: `${callback}?id=${message_id}`, method: "POST" }),
})

function readAnswer({ status }: { status: number }, text: string): TextAnswer {
  const body = objectIn(text)
  if (status < 200 || status >= 300) return refusal(status, body)
  const [id] = Array.isArray(body?.message_uuid) ? body.message_uuid : []
  if (typeof id === "string") {
    return { meaning: "sent", said: `${status} ${id}`, provider_message_id: id }
  }
  if (Array.isArray(body?.invalid_number) && body.invalid_number.length > 0) {
    return { meaning: "refused", said: `HTTP ${status}: the number is not valid` }
  }
  return { meaning: UNCONFIRMED, said: "Plivo answered without the id of a message." }
}

/** For two minutes after the credit ran out every request is wrong; the status does not say why. */
const NO_CREDIT = /insufficient (credit|balance|fund)/i

function refusal(status: number, { error, message }: Record<string, unknown> = {}): TextAnswer {
  const words = error ?? message ?? "no reason was given"
  const said = `HTTP ${status}: ${typeof words === "string" ? words : JSON.stringify(words)}`
  const is_paid = status >= 500 || !NO_CREDIT.test(said)
  return { meaning: is_paid ? meaningOfStatus(status) : "credentials", said }
}

function readAccount({ status }: { status: number }, text: string): TextAnswer {
  const body = objectIn(text)
  if (status !== 200 || body?.auth_id === undefined) return refusal(status, body)
  const said = `Plivo accepts the credentials. The credit is ${body.cash_credits} USD.`
  return { meaning: "sent", said }
}

/**
 * By signature V3, which covers the address, its query and the form. Plivo signs some callbacks of messages
 * by V2 alone, which covers the address without its query. The header `Ma` is that of the main account.
 */
function isSigned({ method, url, headers, body }: CallbackRequest, auth_token: string): boolean {
  const [address = "", ...queries] = url.split("?")
  const query = new URLSearchParams(queries.join("?"))
  const form = new URLSearchParams(method === "POST" ? Buffer.from(body).toString() : "")
  const signed = (text: string) => createHmac("sha256", auth_token).update(text).digest("base64")
  const given = (version: string) =>
    ["", "Ma-"].flatMap((of) => headers.get(`x-plivo-signature-${of}${version}`)?.split(",") ?? [])
  const fits = (version: string, text: string) => {
    const nonce = headers.get(`x-plivo-signature-${version}-nonce`)
    // Any other one could hold what version 3 signs, and pass for version 2 with another body.
    if (nonce === null || !/^[\w-]+$/.test(nonce)) return false
    const right = signed(`${text}${nonce}`)
    return given(version).some((one) => isSame(one.trim(), right))
  }
  if (given("v3").length > 0) return fits("v3", `${signedText(address, query, form)}.`)
  return fits("v2", address)
}

function signedText(address: string, query: URLSearchParams, form: URLSearchParams): string {
  const asked = sortedPairs(query, "=").join("&")
  const told = sortedPairs(form, "").join("")
  if (told === "") return asked === "" ? address : `${address}?${asked}`
  return `${address}?${asked}${asked && "."}${told}`
}

const sortedPairs = (given: URLSearchParams, joint: string): string[] =>
  [...new Set(given.keys())].sort().flatMap((name) =>
    given
      .getAll(name)
      .sort()
      .map((value) => `${name}${joint}${value}`),
  )

/** `queued` tells nothing new. */
const STATUSES = byWord<ProviderNotice["type"]>({
  sent: "sent",
  delivered: "delivered",
  read: "delivered",
  undelivered: "undelivered",
  failed: "failed",
  rejected: "failed",
})

/** What the codes of reports mean, because a report has no words. */
const WORDS = byWord({
  "10": "the carrier calls the text not valid",
  "20": "the network failed",
  "30": "the text was filtered as unwanted",
  "40": "the sender is not valid",
  "50": "the number is not valid",
  "60": "the carrier found a loop",
  "70": "the number is out of service",
  "80": "the phone is switched off or cannot be reached",
  "90": "no route leads to the number",
  "100": "the carrier does not take this text",
  "110": "the text is too long",
  "200": "the recipient wants no more texts from this sender",
  "201": "a toll-free number of the USA cannot write to Canada",
  "900": "the credit is used up",
  "1000": "the carrier gave no reason",
})

const OPTED_OUT = "200"

/** What Plivo itself makes of a text that comes in. */
const KEYWORDS = byWord({ optout: "stop", optin: "start", help: "help" } as const)

function reportOf(fields: Record<string, unknown>): ProviderReport | undefined {
  const field = textIn(fields)
  const provider_message_id = field("MessageUUID")
  const status = field("Status")
  if (status === undefined) {
    // A text with pictures has a body in the place of its text.
    const text = field("Text") ?? field("Body")
    const keyword = KEYWORDS.get(field("MessageIntent") ?? "")
    return receivedReport(provider_message_id, field("From"), field("To"), text, keyword)
  }
  const type = STATUSES.get(status)
  if (!type) return undefined
  const code = type === "undelivered" || type === "failed" ? codeIn(field("ErrorCode")) : undefined
  const amount = field("TotalAmount")
  const notice: ProviderNotice = {
    type,
    response: code
      ? `${status} ${code}: ${WORDS.get(code) ?? "see the error codes of Plivo"}`
      : null,
    ...(code && { provider_code: code }),
    ...(code === OPTED_OUT && { opted_out: true }),
    ...(amount && /^\d{1,9}(\.\d{1,9})?$/.test(amount) && { price: { amount, currency: "USD" } }),
  }
  return statusReport(provider_message_id, field("id"), notice)
}

/** `000` stands for no error. */
const codeIn = (text = "") => (/^[1-9]\d{1,3}$/.test(text) ? text : undefined)
