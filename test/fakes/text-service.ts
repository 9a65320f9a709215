import { type Settings, settings } from "../../src/core/config"
import type { SmsContext } from "../../src/sms/providers/provider"

export interface ServiceRequest {
  method: string
  path: string
  authorization: string
  content_type: string | null
  body: unknown
}

interface ServiceAnswer {
  status: number
  body: object | string
}

type Answer = (request: ServiceRequest) => ServiceAnswer | Promise<ServiceAnswer>

/** An SMS service that takes JSON. It keeps every request. */
export function textService(answer: Answer) {
  const requests: ServiceRequest[] = []
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { headers, method } = request
      const { pathname, search } = new URL(request.url)
      const text = await request.text()
      const asked: ServiceRequest = {
        method,
        path: pathname + search,
        authorization: atob(headers.get("authorization")?.replace(/^Basic /, "") ?? ""),
        content_type: headers.get("content-type"),
        body: text === "" ? null : JSON.parse(text),
      }
      requests.push(asked)
      const { status, body } = await answer(asked)
      return new Response(typeof body === "string" ? body : JSON.stringify(body), { status })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    requests,
    [Symbol.dispose]: () => void server.stop(true),
  }
}

/** What providers of texts get, with settings of a test. */
export const smsContext = (own: Partial<Settings>): SmsContext => ({
  settings: { ...settings(), ...own },
  allow_private: [],
  simulator: { show: async () => {}, report: async () => {} },
})

/** A text without a sender of its own. */
export const someText = (fields: object = {}) => ({
  message_id: "019a0000-0000-7000-8000-000000000001",
  project_id: "019a0000-0000-7000-8000-000000000002",
  to: ["+436601234567"],
  from: null,
  text: "Grüß Gott & 50 % = 1 + 1\n€",
  encoding: "gsm7" as const,
  attempt: 1,
  ...fields,
})

/** For the contract of providers. The service takes one number, wants to wait at another, and refuses a third. */
export function serviceCase(
  credentials: Record<string, unknown>,
  setting: keyof Settings,
  answer: (asked: ServiceRequest, ends_with: string | undefined) => ServiceAnswer,
) {
  const server = textService((asked) => {
    const { to, dst = to } = (asked.body ?? {}) as { to?: string; dst?: string }
    return answer(asked, dst?.at(-1))
  })
  const to = (number: string) => someText({ to: [number], from: "Belfry" })
  return {
    credentials,
    context: smsContext({ [setting]: server.url }),
    messages: {
      accepted: to("+436601234567"),
      deferred: to("+436601234561"),
      refused: to("+436601234566"),
    },
    success: "sent" as const,
    leave: () => server[Symbol.dispose](),
    async [Symbol.asyncDispose]() {
      server[Symbol.dispose]()
    },
  }
}
