import { createHash, createHmac } from "node:crypto"
import { Type as t } from "@sinclair/typebox"
import { jwtVerify } from "jose"
import { isSame } from "../../lib/signature"
import { objectIn } from "../../lib/text"
import type {
  CallbackRequest,
  Price,
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
  withoutSender,
} from "./provider"

export interface VonageAccess {
  api_key: string
  api_secret: string
  signature_secret?: string
}

export const vonageProvider: ProviderDescriptor<VonageAccess, SmsContext, OutgoingText> = {
  name: "vonage",
  channel: "sms",
  about: "Vonage",
  reports: "`sent`, then `delivered` or `undelivered` when Vonage reports it",
  example: "--vonage-api-key abcd1234 --from Belfry --secret-stdin < api-secret",
  credentials: {
    api_key: { schema: t.String({ pattern: "^[A-Za-z0-9]{1,64}$" }), about: "API key" },
    api_secret: { schema: Secret, about: "API secret", secret: true, asked_with: "api_key" },
    signature_secret: {
      schema: t.Optional(Secret),
      about: "signature secret of the account. With it, unsigned callbacks are refused",
      secret: true,
    },
  },
  settings: SMS_SETTINGS,
  callbacks: {
    methods: ["POST", "GET"],
    example: { messageId: "0C000000217B7F02", status: "delivered", "err-code": "0" },
    about: "Vonage reports here what became of texts, and sends the texts of other people.",
    verify: async ({ request, access: { signature_secret } }) =>
      signature_secret === undefined || (await isSigned(request, signature_secret)) || undefined,
    read: async ({ request }) => reportOf(request.fields),
  },
  open: vonage,
}

function vonage(
  { api_key, api_secret }: VonageAccess,
  { settings }: SmsContext,
  { settings: given, callbackUrl: ours }: Pick<ProviderOpening, "settings" | "callbackUrl">,
): SmsProvider {
  const own: SmsSettings = given
  const endpoint = settings["providers.vonage.endpoint"]
  const { url, allow_private, callbackUrl } = serviceAt(endpoint, ours)
  const headers = { authorization: basicAuth(api_key, api_secret), accept: "application/json" }
  const asked = (path: string) => ({ url: `${url}${path}`, allow_private, headers })
  return textService("vonage", own, {
    async send(text) {
      const sender = text.from ?? senderFor(own, text.to[0] ?? "")
      if (sender === null) return textOutcome("vonage", text, withoutSender("Vonage"))
      const answer = await exchange(
        {
          ...asked("/sms/json"),
          method: "POST",
          headers: { ...headers, "content-type": "application/json" },
          body: JSON.stringify(requestOf(text, sender, callbackUrl())),
        },
        readAnswer,
      )
      return textOutcome("vonage", text, { sender, ...answer })
    },
    check: () => checked(exchange(asked("/account/get-balance"), readBalance)),
  })
}

/** Numbers of Vonage have no plus; names of senders stay what they are. */
const plain = (number: string) => number.replace(/^\+(?=\d+$)/, "")

/** Reports give `client-ref` back, so our id need not stand in the address of the callback. */
const requestOf = (
  { to: [to = ""], text, encoding, message_id }: OutgoingText,
  sender: string,
  callback: string | undefined,
) => ({
  to: plain(to),
  from: plain(sender),
  text,
  type: encoding === "ucs2" ? "unicode" : "text",
  "client-ref": message_id,
  ...(callback !== undefined && { "status-report-req": true, callback }),
})

interface VonagePart {
  status?: unknown
  "message-id"?: unknown
  "message-price"?: unknown
  "error-text"?: unknown
}

/** The statuses of the SMS API. Those that are not here are a word about the number or the text. */
const STATUSES = byWord<TextMeaning>({
  "0": "sent",
  "1": "throttled",
  "4": "credentials",
  "5": "outage",
  "8": "credentials", // the account is barred
  "9": "credentials", // its balance is used up
  "10": "throttled", // too many connections
  "11": "credentials", // it may not use HTTP
  "13": "outage",
  "14": "credentials", // it wants signed requests
  "15": "forbidden", // the sender
  "19": "forbidden", // a facility that is not enabled
  "23": "forbidden", // the address of our callback
  "29": "forbidden", // a trial account may only text its own numbers
  "32": "credentials",
})

/**
 * One entry for each part of the text. Where one was taken, the text is sent, because a second try would
 * repeat that part.
 */
function readAnswer({ status }: { status: number }, text: string): TextAnswer {
  const body = objectIn(text)
  if (status < 200 || status >= 300) return refusal(status, body)
  const parts: VonagePart[] = Array.isArray(body?.messages) ? body.messages : []
  const taken = parts.filter((part) => String(part?.status) === "0")
  const refused = parts.find((part) => !taken.includes(part))
  const [first] = taken
  if (!first) {
    if (refused?.status === undefined) {
      return { meaning: UNCONFIRMED, said: "Vonage answered without the status of a message." }
    }
    const { status: code, "error-text": words } = refused
    const said = `${code}: ${words ?? "no reason was given"}`
    return { meaning: STATUSES.get(String(code)) ?? "refused", said, provider_code: String(code) }
  }
  const id = first["message-id"]
  const price = priceOf(taken)
  const words = refused && ` ${taken.length} of ${parts.length} parts: ${refused["error-text"]}`
  return {
    meaning: "sent",
    said: `${status} ${id}${words ?? ""}`,
    ...(typeof id === "string" && { provider_message_id: id }),
    ...(refused && { provider_code: String(refused.status) }),
    ...(price && { price }),
  }
}

const PLACES = 8

/** All parts together, in whole units of the last decimal place, because floats do not add up. */
function priceOf(parts: VonagePart[]): Price | undefined {
  const prices = parts.map((part) => /^(\d{1,9})(?:\.(\d{1,8}))?$/.exec(`${part["message-price"]}`))
  if (!prices.every((one) => one !== null)) return undefined
  const sum = prices
    .map(([, whole, decimals = ""]) => BigInt(whole + decimals.padEnd(PLACES, "0")))
    .reduce((all, one) => all + one, 0n)
  const digits = sum.toString().padStart(PLACES + 1, "0")
  // Vonage keeps every account in euros.
  return { amount: `${digits.slice(0, -PLACES)}.${digits.slice(-PLACES)}`, currency: "EUR" }
}

function refusal(status: number, body: Record<string, unknown> = {}): TextAnswer {
  const words = body["error-code-label"] ?? body.detail ?? body.title ?? "no reason was given"
  return { meaning: meaningOfStatus(status), said: `HTTP ${status}: ${words}` }
}

function readBalance({ status }: { status: number }, text: string): TextAnswer {
  const body = objectIn(text)
  if (status !== 200 || typeof body?.value !== "number") return refusal(status, body)
  const said = `Vonage accepts the credentials. The balance is ${body.value} EUR.`
  return { meaning: "sent", said }
}

/** By the token of signed webhooks, or by the parameter `sig` of the SMS API. */
const isSigned = async (request: CallbackRequest, secret: string): Promise<boolean> =>
  hasSignature(request.fields, secret) || (await hasToken(request, secret))

/** The account chooses the algorithm. The length of the signature tells which ones it can be. */
const ALGORITHMS: Record<number, string> = { 32: "md5", 40: "sha1", 64: "sha256", 128: "sha512" }

function hasSignature({ sig, ...fields }: Record<string, unknown>, secret: string): boolean {
  const algorithm = typeof sig === "string" && ALGORITHMS[sig.length]
  if (!algorithm || Object.values(fields).some((value) => typeof value === "object")) return false
  const names = Object.keys(fields).sort()
  const signed = names.map((name) => `&${name}=${`${fields[name]}`.replace(/[&=]/g, "_")}`).join("")
  const digests = [createHmac(algorithm, secret).update(signed).digest("hex")]
  // The usual one is a plain hash with the secret behind it.
  if (algorithm === "md5")
    digests.push(
      createHash("md5")
        .update(signed + secret)
        .digest("hex"),
    )
  return digests.some((digest) => isSame(sig.toLowerCase(), digest))
}

const BEARER = /^Bearer ([\w.-]+)$/i

/** The token proves the body and nothing beside it, so nothing else may tell something. */
async function hasToken({ url, headers, body }: CallbackRequest, secret: string): Promise<boolean> {
  const token = BEARER.exec(headers.get("authorization") ?? "")?.[1]
  if (token === undefined || body.length === 0 || url.includes("?")) return false
  try {
    const key = new TextEncoder().encode(secret)
    const { payload } = await jwtVerify(token, key, { algorithms: ["HS256"] })
    return payload.payload_hash === createHash("sha256").update(body).digest("hex")
  } catch {
    return false
  }
}

const REPORTS = byWord<ProviderNotice["type"]>({
  accepted: "sent",
  buffered: "sent",
  delivered: "delivered",
  expired: "undelivered",
  failed: "undelivered",
  rejected: "undelivered",
})

/** Codes of delivery receipts. */
const WORDS = byWord({
  "1": "unknown",
  "2": "the phone is switched off or cannot be reached",
  "3": "the number is no longer in use",
  "4": "the recipient blocks texts",
  "5": "the number moved to another carrier",
  "6": "the text was filtered as unwanted",
  "7": "the phone is busy",
  "8": "the network failed",
  "9": "the recipient wants no more texts from this sender",
  "10": "the text is not valid",
  "11": "no route leads to the number",
  "12": "the destination cannot be reached",
  "13": "the recipient is too young for this text",
  "14": "the carrier blocks the number",
  "15": "the recipient's prepaid balance is used up",
  "16": "the quota of the gateway is used up",
  "50": "a filter of the country refused the company",
  "51": "a filter of the country refused the sender",
  "52": "a filter of the country refused the content",
  "53": "a filter of the country found no consent",
  "54": "a rule of the country refused the text",
  "99": "the carrier gave no reason",
})

const OPTED_OUT = "9"

/** Each part of a long text is reported with an id and a price of its own, and with our reference. */
function reportOf(fields: Record<string, unknown>): ProviderReport | undefined {
  const field = textIn(fields)
  const provider_message_id = field("messageId")
  const status = field("status")
  if (status === undefined) {
    return receivedReport(provider_message_id, field("msisdn"), field("to"), field("text"))
  }
  const type = REPORTS.get(status)
  if (!type) return undefined
  const code = type === "undelivered" ? field("err-code") : undefined
  const words = code && WORDS.get(code)
  const notice: ProviderNotice = {
    type,
    response: words ? `${status} ${code}: ${words}` : type === "undelivered" ? status : null,
    ...(words && { provider_code: code }),
    ...(code === OPTED_OUT && { opted_out: true }),
  }
  return statusReport(provider_message_id, field("client-ref"), notice)
}
