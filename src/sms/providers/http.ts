import { Type as t } from "@sinclair/typebox"
import type { NetAnswer } from "../../core/net"
import { oneOf } from "../../http/field-schemas"
import type { CallbackRequest, ProviderDescriptor } from "../../providers/provider"
import {
  at,
  CallbackPaths,
  type CallbackReading,
  Path,
  readCallback,
  StatusMap,
  textAt,
} from "./http/callback"
import {
  gatewayRequest,
  placeOf,
  type RequestTemplate,
  TemplateFault,
  tryOut,
} from "./http/gateway-request"
import {
  checked,
  exchange,
  meaningOfStatus,
  type OutgoingText,
  SMS_SETTINGS,
  type SmsContext,
  type SmsProvider,
  type SmsSettings,
  senderFor,
  type TextAnswer,
  type TextMeaning,
  textOutcome,
  textService,
} from "./provider"

interface GatewayAccess extends RequestTemplate, CallbackReading {
  success_path?: string
  id_path?: string
}

const TEMPLATE = "^[^\\u0000]*$"

export const httpProvider: ProviderDescriptor<GatewayAccess, SmsContext, OutgoingText> = {
  name: "http",
  channel: "sms",
  about: "any gateway over HTTP",
  reports: "`sent`, then `delivered`, `undelivered` or `failed` when the gateway reports it",
  example: `--http-url https://sms.example.com/send --body '{"to": "{{to}}", "text": "{{text}}"}'`,
  credentials: {
    url: {
      schema: t.String({ minLength: 1, maxLength: 2000, pattern: "^[^\\u0000-\\u001f\\u007f]+$" }),
      about: "address of the gateway, with placeholders such as {{to}}, {{from}} and {{text}}",
      secret: true,
    },
    method: {
      schema: oneOf("GET", "POST", "PUT"),
      about: "GET, POST or PUT",
      fallback: "POST",
    },
    headers: {
      schema: t.Optional(
        t.Record(
          t.String({ pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$" }),
          t.String({ maxLength: 2000, pattern: "^[\\u0020-\\u007e]*$" }),
          { maxProperties: 20, additionalProperties: false },
        ),
      ),
      about: "headers, as JSON: their values may have placeholders",
      value: "json",
      secret: true,
    },
    body: {
      schema: t.Optional(t.String({ maxLength: 10_000, pattern: TEMPLATE })),
      about: "body with placeholders: JSON, a form or XML, as Content-Type says",
      value: "template",
      secret: true,
    },
    success_path: {
      schema: t.Optional(Path),
      about: "path into the JSON answer to a value that only a success has (default: any 2xx)",
    },
    id_path: {
      schema: t.Optional(Path),
      about: "path into the JSON answer to the gateway's id of the text",
    },
    status_map: {
      schema: t.Optional(StatusMap),
      about: 'meaning of its statuses, as JSON: {"DONE": "delivered"}',
      value: "json",
    },
    callback_paths: {
      schema: t.Optional(CallbackPaths),
      about: "names of id, status, from, to and text in its callbacks, as JSON",
      value: "json",
    },
  },
  settings: SMS_SETTINGS,
  validate(access) {
    try {
      tryOut(access)
      return undefined
    } catch (error) {
      if (!(error instanceof TemplateFault)) throw error
      return { field: error.field, code: "invalid", message: error.message }
    }
  },
  destination(access) {
    const { host, port } = placeOf(access)
    return { field: "url", host, port }
  },
  callbacks: {
    methods: ["GET", "POST"],
    example: { id: "019a0000-0000-7000-8000-000000000001", status: "delivered" },
    about:
      "A gateway of your own (`http`) reports here, and hands over the texts that it receives.",
    // The token in the path is known to nobody but the gateway.
    verify: async () => true,
    read: async ({ request, access }) => readCallback(request, access),
    challenge,
  },
  open: (access, { allow_private }, { settings, callbackUrl }) =>
    gateway({ access, allow_private, settings, callbackUrl }),
}

/** WhatsApp asks for its own word before it calls an address (the field `hub.challenge`). */
function challenge({ fields }: Pick<CallbackRequest, "fields">) {
  const word = fields["hub.challenge"]
  const is_word = typeof word === "string" && /^[\w.-]{1,200}$/.test(word)
  return is_word ? { content_type: "text/plain", body: word } : undefined
}

interface GatewayOptions {
  access: GatewayAccess
  allow_private: readonly string[]
  settings: SmsSettings
  callbackUrl(): string | undefined
}

/** Any gateway that takes a text with one HTTP request. */
function gateway({ access, allow_private, settings, callbackUrl }: GatewayOptions): SmsProvider {
  const template = gatewayRequest(access)
  const secrets = secretsIn(access)
  return textService("http", settings, {
    async send(text) {
      const {
        message_id: id,
        to: [to = ""],
      } = text
      const sender = text.from ?? senderFor(settings, to) ?? ""
      const callback = callbackUrl()
      const callback_url = callback === undefined ? "" : `${callback}?id=${id}`
      const ucs2 = text.encoding === "ucs2" ? "true" : ""
      const values = { id, to, from: sender, text: text.text, callback_url, ucs2 }
      const { method, url, headers, body } = template
      const asked = { method, url: url(values), headers: headers(values), body: body?.(values) }
      const answer = await exchange({ ...asked, allow_private }, (answer, words) =>
        readAnswer(answer, words, access, secrets),
      )
      const is_taken = /^(sent|unconfirmed)$/.test(answer.meaning)
      return textOutcome("http", text, {
        ...answer,
        ...(is_taken && { provider_message_id: answer.provider_message_id ?? id }),
        ...(sender !== "" && { sender }),
      })
    },
    check: () => reachable(access, allow_private),
  })
}

/** A request for nothing: the path that takes texts might take one. */
function reachable(access: GatewayAccess, allow_private: readonly string[]): Promise<string> {
  const { protocol, authority } = placeOf(access)
  const url = `${protocol}//${authority}/`
  const said = `${authority} answers. Whether it accepts texts shows only when one is sent: test again with a number in \`to\`.`
  return checked(exchange({ url, allow_private }, () => ({ meaning: "sent", said })))
}

const LONGEST_SAID = 300

function readAnswer(
  answer: NetAnswer,
  words: string,
  access: GatewayAccess,
  secrets: string[],
): TextAnswer {
  const { status, headers, truncated } = answer
  const said = `${status} ${masked(words, secrets)}`
    .replace(/[\p{C}\s]+/gu, " ")
    .trim()
    .slice(0, LONGEST_SAID)
  const meaning = meaningOf(status, headers)
  if (status >= 300 && status < 400) return { meaning, said: redirected(status, headers) }
  if (meaning !== "sent") return { meaning, said, provider_code: String(status) }
  const { success_path, id_path } = access
  const json = parsed(words)
  // It may have said yes in what was cut off.
  if (truncated && success_path !== undefined) return { meaning: "unconfirmed", said }
  if (success_path !== undefined && !isGood(at(success_path, json))) {
    return { meaning: "refused", said }
  }
  const id = id_path === undefined ? undefined : textAt(id_path, json)
  return { meaning, said, provider_message_id: id?.slice(0, 200) || undefined }
}

/** Gateways of many makers say 403 of a wrong password, and 404 of a number or of a wrong address. */
function meaningOf(status: number, headers: Headers): TextMeaning {
  if (status >= 200 && status < 300) return "sent"
  if (status === 403) return "credentials"
  if (status === 408 || (status === 503 && headers.has("retry-after"))) return "throttled"
  return /^40[245]$/.test(String(status)) ? "forbidden" : meaningOfStatus(status)
}

/** Only the host of where it leads: the rest may hold what our request held. */
function redirected(status: number, headers: Headers): string {
  const location = headers.get("location") ?? ""
  const to = URL.canParse(location) ? ` to ${new URL(location).origin}` : ""
  return `${status}: the gateway redirects${to}, and Belfry does not follow. Set \`url\` to the last address.`
}

function parsed(words: string): object {
  try {
    const value: unknown = JSON.parse(words)
    return typeof value === "object" && value !== null ? value : {}
  } catch {
    return {}
  }
}

/** Words that stand for no success where a gateway has them in place of `false`. */
const BAD = /^(|0|no|false|null|error|fail|failed|failure|rejected)$/i

const isGood = (value: unknown) => (typeof value === "string" ? !BAD.test(value) : Boolean(value))

const SHORTEST_SECRET = 6

/**
 * What the owner wrote as a value, also as a gateway decodes it: passwords and keys are among it. Some have
 * the key in the path of the address, and the usual 404 repeats that.
 */
function secretsIn({ url, headers = {}, body = "" }: RequestTemplate): string[] {
  const paths = url.replace(/^[^:]+:\/\/[^/]*|[?#].*/gs, "").match(/[^/{}]*\d[^/{}]*/g) ?? []
  const values = [...`${url}\n${body}`.matchAll(/(?:=["']?|:\s*"|>)([^&"'<>{}\s]+)/g)].map(
    ([, one]) => one ?? "",
  )
  const words = Object.values(headers).flatMap((value) => value.split(/\s+/))
  const logins = Object.values(headers).flatMap((value) => {
    const login = /^Basic\s+(\S+)/i.exec(value)?.[1] ?? ""
    return Buffer.from(login, "base64").toString().split(":")
  })
  const all = [...values, ...words, ...paths, ...logins]
  return [...all, ...all.map(decoded)].filter((one) => one.length >= SHORTEST_SECRET)
}

const decoded = (value: string): string => new URLSearchParams(`x=${value}`).get("x") ?? ""

/** A gateway may repeat our request in its answer. */
const masked = (said: string, secrets: string[]): string =>
  secrets.reduce((text, secret) => text.replaceAll(secret, "****"), said)
