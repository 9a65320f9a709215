import { Type as t } from "@sinclair/typebox"
import { outcomeOf } from "../../src/emails/smtp/outcome"
import {
  type Fault,
  NO_REPLY,
  type OutgoingMessage,
  type ProviderDescriptor,
  type ProviderEnvironment,
  ProviderError,
  type ReceivedCallback,
} from "../../src/providers/provider"

export interface Text extends OutgoingMessage {
  body: string
}

/** What each account says, and what it got. A silent one takes a text and does not say so. */
interface Carrier {
  fault?: Fault
  is_silent?: true
  /** What is wrong shows only when a text is sent. */
  is_blind?: true
  got: string[]
}

export type Carriers = Map<string, Carrier>

type Access = { account: string; auth_token: string }

/** Every callback as its provider saw it. */
export const heard: ReceivedCallback<Access, unknown>[] = []

const schedule = () => 5

/** A provider of texts that is not there: one descriptor, as any channel has it. */
export const pigeon: ProviderDescriptor<Access, { carriers: Carriers }, Text> = {
  name: "pigeon",
  channel: "sms",
  about: "a pigeon",
  reports: "`sent` when it flies",
  credentials: {
    account: { schema: t.String(), about: "account" },
    auth_token: { schema: t.String(), about: "token", secret: true, asked_with: "account" },
  },
  settings: {
    from: { schema: t.Optional(t.String({ maxLength: 20 })), about: "sender" },
    allowed: { schema: t.Optional(t.Array(t.String())), about: "prefixes that it flies to" },
  },
  callbacks: {
    methods: ["POST", "GET"],
    example: { account: "one" },
    about: "A pigeon comes home.",
    async verify(call) {
      heard.push(call)
      const { proof, account } = call.request.fields
      return proof === call.access.auth_token ? String(account ?? "one") : undefined
    },
    async read({ request: { fields } }) {
      const notices = [{ type: "delivered" as const, response: null }]
      return { provider_message_id: String(fields.id), notices }
    },
    answer: { content_type: "text/xml", body: "<Response/>" },
  },
  open: ({ account }, { carriers }, { settings: { allowed = [""] } }) => ({
    name: "pigeon",
    schedule,
    ...(carriers.get(account)?.is_blind && { proves_login: false }),
    takes: ({ to: [first = ""] }) => (allowed as string[]).some((one) => first.startsWith(one)),
    async check() {
      const { fault, is_blind } = carriers.get(account) ?? {}
      if (fault && !is_blind) throw new ProviderError(fault, "no wind")
      return "The loft is open."
    },
    async send({ to, body }) {
      const carrier = carriers.get(account)
      const fault = carrier?.fault
      if (!fault) carrier?.got.push(body)
      const reason = fault ? "no wind" : null
      const one = { reason, bounce_subtype: null, code: null, reply: NO_REPLY }
      const status = fault ? ("retry" as const) : ("sent" as const)
      const is_unanswered = carrier?.is_silent && { is_unanswered: true as const }
      const said = { ...one, status, ...(fault && { fault }), ...is_unanswered }
      const results = to.map((address) => ({ ...said, address }))
      return outcomeOf(results, { provider: "pigeon", schedule })
    },
    close: async () => {},
  }),
}

/** Nothing but pigeons. */
export const pigeons = (carriers: Carriers): ProviderEnvironment => ({
  table: [pigeon],
  contexts: { sms: { carriers } },
  own: {},
  allow_private: [],
  network: { allow_private: [] },
})
