import type { Server } from "bun"

export const KEY = "svc_live_testtesttesttesttest"
export const ID = "0199a1c2-0000-7000-8000-000000000001"

interface Seen {
  method: string
  /** As it stands in the log of every server on the way. */
  url: string
  path: string
  query: Record<string, string>
  headers: Record<string, string>
  body: unknown
}

interface Scripted {
  status?: number
  body?: unknown
  headers?: Record<string, string>
}

type Answer = Scripted | ((seen: Seen) => Scripted)

/** A server on a real socket that answers as told and remembers what it was asked. */
export class FakeApi implements Disposable {
  readonly seen: Seen[] = []
  readonly #answers = new Map<string, Answer>()
  readonly #frames = new Map<string, object[]>()
  readonly #server: Server<object[]>

  constructor() {
    this.#server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: (request) => this.#reply(request),
      websocket: {
        open(wire) {
          for (const frame of wire.data) wire.send(JSON.stringify(frame))
        },
        message() {},
      },
    })
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}`
  }

  /** `GET /v1/emails` → data in the envelope, 200. */
  data(route: string, data: unknown, meta: object = {}): this {
    return this.answer(route, { body: { data, meta: { request_id: "req_1", ...meta } } })
  }

  error(route: string, status: number, code: string, details: object = {}): this {
    const error = { code, message: `This is ${code}.`, details }
    return this.answer(route, { status, body: { error, meta: { request_id: "req_1" } } })
  }

  answer(route: string, answer: Answer): this {
    this.#answers.set(route, answer)
    return this
  }

  /** A WebSocket that says these frames when it opens. */
  socket(path: string, ...frames: object[]): this {
    this.#frames.set(`GET ${path}`, frames)
    return this
  }

  [Symbol.dispose](): void {
    void this.#server.stop(true)
  }

  async #reply(request: Request): Promise<Response | undefined> {
    const url = new URL(request.url)
    const text = await request.text()
    const seen: Seen = {
      method: request.method,
      url: request.url,
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      headers: Object.fromEntries(request.headers),
      body: text === "" ? undefined : JSON.parse(text),
    }
    this.seen.push(seen)
    const data = this.#frames.get(`${seen.method} ${seen.path}`)
    const protocol = { "sec-websocket-protocol": seen.headers["sec-websocket-protocol"] ?? "" }
    if (data && this.#server.upgrade(request, { data, headers: protocol })) return undefined
    const answer = this.#answers.get(`${seen.method} ${seen.path}`)
    const { status, body, headers } = (typeof answer === "function" ? answer(seen) : answer) ?? {
      status: 404,
      body: { error: { code: "not_found", message: "No such route.", details: {} }, meta: {} },
    }
    const content = typeof body === "string" ? body : JSON.stringify(body)
    return new Response(content, { status: status ?? 200, headers: headers ?? {} })
  }
}

/** An email as the API gives it in lists. */
export const email = (more: object = {}) => ({
  id: ID,
  status: "delivered",
  status_reason: null,
  from: { email: "me@mailbox.test", name: null },
  to: { email: "ann@mailbox.test", name: "Ann" },
  subject: "Hi",
  provider: "mailbox",
  attempts: 1,
  next_attempt_at: null,
  error: null,
  created_at: new Date(Date.now() - 65_000).toISOString(),
  ...more,
})

/** A received mail as the API shows it. */
export const received = (more: object = {}) => ({
  id: ID,
  from: { email: "ann@elsewhere.test", name: "Ann" },
  to_email: "support@in.acme.test",
  envelope: { from: "ann@elsewhere.test", to: ["support@in.acme.test"] },
  subject: "Where is it?",
  text_body: "Where is my order?",
  html_body: null,
  kind: "new",
  status: "processed",
  thread_id: ID,
  replied_to_message_id: null,
  mailbox_hash: null,
  spf_verdict: "pass",
  dkim_verdict: "pass",
  dmarc_verdict: "fail",
  arc_verdict: "none",
  verified: false,
  spam: { score: 1.5, flagged: false, rules: [{ rule: "dmarc_fail", points: 1.5 }] },
  report: null,
  attachments: [],
  size: 512,
  created_at: new Date(Date.now() - 65_000).toISOString(),
  ...more,
})
