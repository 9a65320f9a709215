import type { InboxCounts, InboxMessage, InboxView } from "./inbox-message"

/** Why the inbox could not do something. The status is that of the answer, or 0 where nothing answered. */
export class InboxProblem extends Error {
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

export type TokenSource = string | (() => string | Promise<string>)

/** One page of a list, and the change at which it was read. */
export interface InboxPage {
  messages: InboxMessage[]
  last_seq: number
  cursor: string | null
}

interface Answer<Data> {
  data: Data
  meta: { last_seq: number; next_cursor: string | null }
  error?: { code: string; message: string }
}

const LONGEST_MS = 20_000
const PATH = "/v1/subscriber-inbox"

/** The requests of a subscriber and their token, which is renewed once where the server refuses it. */
export class InboxRequests {
  readonly #url: string
  readonly #source: TokenSource
  #asked: Promise<string> | undefined
  #known: string | undefined

  constructor(url: string, source: TokenSource) {
    this.#url = url.replace(/\/+$/, "")
    this.#source = source
  }

  get socketUrl(): string {
    return `${this.#url.replace(/^http/, "ws")}${PATH}/ws`
  }

  /** The token, or a newer one than the one that the server refused. Throws 401 where there is none. */
  token(refused?: string): Promise<string> {
    if (refused !== undefined && refused === this.#known) this.#asked = undefined
    this.#asked ??= this.#renew(refused).catch((error: unknown) => {
      this.#asked = undefined
      if (error instanceof InboxProblem) throw error
      throw new InboxProblem(0, "no_token", `The page has no token for the inbox: ${error}`)
    })
    return this.#asked
  }

  async #renew(refused?: string): Promise<string> {
    this.#known = undefined
    const token = typeof this.#source === "string" ? this.#source : await this.#source()
    if (token === refused)
      throw new InboxProblem(401, "unauthorized", "The token of the inbox has ended.")
    this.#known = token
    return token
  }

  async page(view: InboxView, paging: { limit: number; cursor?: string }): Promise<InboxPage> {
    const query = new URLSearchParams()
    for (const [name, value] of Object.entries({ ...view, ...paging }))
      if (value !== undefined) query.set(name, String(value))
    const { data, meta } = await this.#send<InboxMessage[]>("GET", `?${query}`)
    return { messages: data, last_seq: meta.last_seq, cursor: meta.next_cursor }
  }

  counts = (): Promise<InboxCounts> => this.ask("GET", "/unread-count")

  async ask<Data>(method: string, path: string, body?: object): Promise<Data> {
    return (await this.#send<Data>(method, path, body)).data
  }

  async #send<Data>(method: string, path: string, body?: object): Promise<Answer<Data>> {
    const token = await this.token()
    let response = await this.#reach(token, method, path, body)
    if (response.status === 401)
      response = await this.#reach(await this.token(token), method, path, body)
    const answer = (await response.json().catch(() => ({}))) as Answer<Data>
    if (response.ok && answer.data !== undefined) return answer
    const { code = "bad_answer", message = `The server answered ${response.status}.` } =
      answer.error ?? {}
    throw new InboxProblem(response.status, code, message)
  }

  async #reach(token: string, method: string, path: string, body?: object): Promise<Response> {
    const headers: Record<string, string> = { authorization: `Bearer ${token}` }
    if (body) headers["content-type"] = "application/json"
    const signal = AbortSignal.timeout(LONGEST_MS)
    // A message that leads elsewhere is read, although the page is left at once.
    const keepalive = method !== "GET"
    const init = { method, headers, signal, keepalive, ...(body && { body: JSON.stringify(body) }) }
    try {
      return await fetch(`${this.#url}${PATH}${path}`, { credentials: "omit", ...init })
    } catch {
      throw new InboxProblem(0, "unreachable", "The inbox cannot reach its server.")
    }
  }
}
