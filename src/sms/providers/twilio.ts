import { createHash, createHmac } from "node:crypto"
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
  type TextMeaning,
  textIn,
  textOutcome,
  textService,
  UNCONFIRMED,
} from "./provider"

export interface TwilioAccess {
  account_sid: string
  auth_token: string
  api_key_sid?: string
  api_key_secret?: string
}

const sid = (prefix: string) => t.String({ pattern: `^${prefix}[0-9a-fA-F]{32}$` })

export const twilioProvider: ProviderDescriptor<TwilioAccess, SmsContext, OutgoingText> = {
  name: "twilio",
  channel: "sms",
  about: "Twilio",
  reports: "`sent`, then `delivered`, `undelivered` or `failed` when Twilio reports it",
  example: "--account-sid AC… --secret-stdin < auth-token",
  credentials: {
    account_sid: { schema: sid("AC"), about: "account SID, which begins with AC" },
    auth_token: {
      schema: Secret,
      about: "auth token of the account, which signs the callbacks",
      secret: true,
      asked_with: "account_sid",
    },
    api_key_sid: {
      schema: t.Optional(sid("SK")),
      about: "SID of an API key that sends in the place of the auth token",
    },
    api_key_secret: {
      schema: t.Optional(Secret),
      about: "secret of the API key",
      secret: true,
      asked_with: "api_key_sid",
    },
  },
  settings: {
    ...SMS_SETTINGS,
    messaging_service_sid: {
      schema: t.Optional(sid("MG")),
      about: "messaging service that chooses the sender of a text that names none",
    },
  },
  validate({ api_key_sid, api_key_secret }) {
    if ((api_key_sid === undefined) === (api_key_secret === undefined)) return undefined
    const field = api_key_sid === undefined ? "api_key_sid" : "api_key_secret"
    const message = "Give both the SID and the secret of the API key, or neither."
    return { field, code: "required", message }
  },
  callbacks: {
    methods: ["POST", "GET"],
    example: { MessageSid: "SM8d2f4c1b7a9e40d5b6c3f1a2e7d90b54", MessageStatus: "delivered" },
    about: "Twilio reports here what became of texts, and sends the texts of other people.",
    verify: async ({ request, access }) => isSigned(request, access.auth_token) || undefined,
    read: async ({ request }) => reportOf(request.fields),
    // Twilio warns its customer of an answer to a received text that is not of its markup.
    answer: { content_type: "text/xml", body: "<Response/>" },
  },
  open: twilio,
}

function twilio(
  access: TwilioAccess,
  { settings }: SmsContext,
  { settings: given, callbackUrl: ours }: Pick<ProviderOpening, "settings" | "callbackUrl">,
): SmsProvider {
  const { account_sid, auth_token, api_key_sid, api_key_secret } = access
  const own: SmsSettings = given
  const endpoint = settings["providers.twilio.endpoint"]
  const { url, allow_private, callbackUrl } = serviceAt(endpoint, ours)
  const account = `${url}/2010-04-01/Accounts/${account_sid}`
  const with_token = basicAuth(account_sid, auth_token)
  const with_key = api_key_sid && api_key_secret && basicAuth(api_key_sid, api_key_secret)
  const asked = (url: string, authorization: string) => ({
    ...{ url, allow_private },
    headers: { authorization, accept: "application/json" },
  })
  const sending = asked(`${account}/Messages.json`, with_key || with_token)
  const headers = { ...sending.headers, "content-type": "application/x-www-form-urlencoded" }
  return textService("twilio", own, {
    async send(text) {
      const form = formOf(text, own, callbackUrl())
      const body = new URLSearchParams(form).toString()
      const answer = await exchange({ ...sending, method: "POST", headers, body }, readAnswer)
      return textOutcome("twilio", text, { sender: form.From, ...answer })
    },
    async check() {
      const said = await checked(exchange(asked(`${account}.json`, with_token), readAccount))
      // An API key may not see the account, so it is asked for what a key for texts may see.
      const messages = asked(`${account}/Messages.json?PageSize=1`, with_key || with_token)
      if (with_key) await checked(exchange(messages, readList))
      return said
    },
  })
}

/** The sender of the text, else the messaging service, else the sender of the configuration. */
function formOf(text: OutgoingText, own: SmsSettings, callback: string | undefined) {
  const [to = ""] = text.to
  const { messaging_service_sid: MessagingServiceSid } = own
  const From = text.from ?? senderFor(own, to)
  return {
    To: to,
    ...(callback !== undefined && { StatusCallback: `${callback}?id=${text.message_id}` }),
    ...(From !== null ? { From } : MessagingServiceSid && { MessagingServiceSid }),
    Body: text.text,
  } as Record<string, string> & { From?: string }
}

function readAnswer({ status }: { status: number }, text: string): TextAnswer {
  const said = objectIn(text)
  if (status < 200 || status >= 300) return refusal(status, said)
  const { sid, from, price, price_unit } = said ?? {}
  if (typeof sid !== "string") {
    return { meaning: UNCONFIRMED, said: "Twilio answered without the SID of a message." }
  }
  const costs = typeof price === "string" && typeof price_unit === "string"
  return {
    meaning: "sent",
    said: `${status} ${sid}`,
    provider_message_id: sid,
    ...(typeof from === "string" && { sender: from }),
    // Twilio writes what it takes as a negative number.
    ...(costs && { price: { amount: price.replace(/^-/, ""), currency: price_unit } }),
  }
}

/** The account may be suspended or closed, and still answer. */
function readAccount({ status }: { status: number }, text: string): TextAnswer {
  const said = objectIn(text)
  if (status !== 200 || said?.sid === undefined) return refusal(status, said)
  return said.status === "active"
    ? { meaning: "sent", said: "Twilio accepts the credentials. The account is active." }
    : { meaning: "credentials", said: `The account at Twilio is ${said.status}.` }
}

const readList = ({ status }: { status: number }, text: string): TextAnswer =>
  status === 200 ? { meaning: "sent", said: null } : refusal(status, objectIn(text))

const MOST_SAID = 500

/** Errors have `code` and `message`, or in the form of RFC 9457 `detail`. */
function refusal(status: number, body: Record<string, unknown> = {}): TextAnswer {
  const code = /^\d{5}$/.test(String(body.code)) ? String(body.code) : undefined
  const words = body.message ?? body.detail ?? (code && WORDS.get(code)) ?? "no reason was given"
  const said = `${code ?? `HTTP ${status}`}: ${words}`.slice(0, MOST_SAID)
  const meaning = MEANINGS.get(code ?? "") ?? meaningOfStatus(status)
  return { meaning, said, provider_code: code }
}

/** By https://www.twilio.com/docs/api/errors. Other codes are a word about the number or the text. */
const CODES: Partial<Record<TextMeaning, number[]>> = {
  opted_out: [21610],
  throttled: [14107, 20429, 21611, 30001, 30022, 30023, 30027],
  // Of the account or its keys: nothing leaves before somebody mends them.
  credentials: [10001, 20003, 20005, 20006, 20008, 20010, 20403, 20404, 21470, 21471, 21472, 30002],
  outage: [20409, 20500, 20503, 20504, 21730],
  // Of the sender, the region, a trial account, or our public address.
  forbidden: [
    ...[10002, 21212, 21219, 21264, 21267, 21407, 21408, 21603, 21606, 21607, 21608, 21609, 21612],
    ...[21616, 21657, 21659, 21660, 21661, 21662, 21663, 21668, 21701, 21702, 21703, 21704, 21705],
    ...[21709, 21910, 30018, 30024, 30032, 30034, 30040, 30041, 30042],
  ],
}

const MEANINGS = new Map(
  Object.entries(CODES).flatMap(([meaning, codes]) =>
    codes.map((code) => [String(code), meaning as TextMeaning]),
  ),
)

/** What the codes of reports mean, because a report has no words. */
const WORDS = byWord({
  "21610": "the recipient wants no more texts from this sender",
  "30001": "too many texts wait at Twilio",
  "30002": "the account is suspended",
  "30003": "the phone is switched off or cannot be reached",
  "30004": "the recipient or the carrier blocks this text",
  "30005": "the number is unknown or out of service",
  "30006": "the number is a landline or its carrier cannot be reached",
  "30007": "the text was filtered as unwanted",
  "30008": "the carrier gave no reason",
  "30034": "the sender is not registered in the USA",
  "30036": "the text waited too long at Twilio",
})

/** The address without its port and with the usual one, because both are signed. Bun encodes an apostrophe, Twilio does not. */
const addressesOf = (url: string): string[] =>
  [url, url.replaceAll("%27", "'")].flatMap((one) => {
    const [origin = "", host, port] = /^(https?:\/\/(?:\[[^\]]*\]|[^/?#:]*))(:\d*)?/.exec(one) ?? []
    const rest = one.slice(origin.length)
    const usual = one.startsWith("https:") ? ":443" : ":80"
    return [`${host}${rest}`, `${host}${port ?? usual}${rest}`]
  })

/** https://www.twilio.com/docs/usage/security: the address, then the sorted fields of the body. */
function isSigned({ url, headers, body }: CallbackRequest, auth_token: string): boolean {
  const given = headers.get("x-twilio-signature")
  if (!given) return false
  const hash = /[?&]bodySHA256=([0-9a-f]{64})(?:[&#]|$)/.exec(url)?.[1]
  if (hash && !isSame(hash, createHash("sha256").update(body).digest("hex"))) return false
  // Any other body counts as a form, so that nothing in it is left unsigned.
  const fields = hash ? "" : signedFields(new URLSearchParams(Buffer.from(body).toString()))
  const fits = (address: string) =>
    isSame(
      given,
      createHmac("sha1", auth_token)
        .update(address + fields)
        .digest("base64"),
    )
  return addressesOf(url).some(fits)
}

/** Each value of a name counts once. */
function signedFields(form: URLSearchParams): string {
  const names = [...new Set(form.keys())].sort()
  return names
    .flatMap((name) => [...new Set(form.getAll(name))].sort().map((value) => name + value))
    .join("")
}

const OPTED_OUT = "21610"

const STATUSES = byWord<ProviderNotice["type"]>({
  sent: "sent",
  delivered: "delivered",
  read: "delivered",
  undelivered: "undelivered",
  failed: "failed",
  canceled: "failed",
})

const KEYWORDS = byWord({ STOP: "stop", START: "start", HELP: "help" } as const)

function reportOf(fields: Record<string, unknown>): ProviderReport | undefined {
  const text = textIn(fields)
  const provider_message_id = text("MessageSid") ?? text("SmsSid")
  const status = text("MessageStatus")
  if (status === undefined) return textOf(fields)
  const type = STATUSES.get(status)
  if (!type) return undefined
  const code = text("ErrorCode")
  const words = text("ErrorMessage") ?? (code && WORDS.get(code))
  const notice: ProviderNotice = {
    type,
    response: code ? `${code}: ${words ?? "see the errors of Twilio"}`.slice(0, MOST_SAID) : null,
    ...(code && { provider_code: code }),
    ...(code === OPTED_OUT && { opted_out: true }),
  }
  return statusReport(provider_message_id, text("id"), notice)
}

function textOf(fields: Record<string, unknown>): ProviderReport | undefined {
  const text = textIn(fields)
  const keyword = KEYWORDS.get(text("OptOutType") ?? "")
  return receivedReport(text("MessageSid"), text("From"), text("To"), text("Body"), keyword)
}
