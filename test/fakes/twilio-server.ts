export interface TwilioRequest {
  method: string
  path: string
  authorization: string
  content_type: string | null
  form: Record<string, string>
}

interface TwilioAnswer {
  status: number
  body: object
}

type Answer = (request: TwilioRequest) => TwilioAnswer | undefined | Promise<TwilioAnswer>

/** Answers as the Twilio API does for one account, and keeps every request. */
export function twilioServer(answer: Answer = () => undefined, port = 0) {
  const requests: TwilioRequest[] = []
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port,
    async fetch(request) {
      const { headers, method } = request
      const { pathname, search } = new URL(request.url)
      const asked: TwilioRequest = {
        method,
        path: pathname + search,
        authorization: atob(headers.get("authorization")?.replace(/^Basic /, "") ?? ""),
        content_type: headers.get("content-type"),
        form: Object.fromEntries(new URLSearchParams(await request.text())),
      }
      requests.push(asked)
      const { status, body } = (await answer(asked)) ?? usual(asked, requests.length)
      return Response.json(body, { status })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    requests,
    [Symbol.dispose]: () => void server.stop(true),
  }
}

function usual({ method, path, form }: TwilioRequest, count: number): TwilioAnswer {
  const sid = `SM${String(count).padStart(32, "0")}`
  if (method === "POST") return { status: 201, body: { ...MESSAGE, ...senderOf(form), sid } }
  const [, account] = /Accounts\/(\w+)\.json/.exec(path) ?? []
  return account === undefined
    ? { status: 200, body: { messages: [] } }
    : { status: 200, body: { sid: account, status: "active" } }
}

const MESSAGE = {
  status: "queued",
  error_code: null,
  error_message: null,
  price: null,
  price_unit: "USD",
}

const senderOf = ({ From, MessagingServiceSid }: Record<string, string>) => ({
  from: From ?? null,
  messaging_service_sid: MessagingServiceSid ?? null,
})
