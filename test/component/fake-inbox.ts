import type { ServerWebSocket } from "bun"
import type { InboxMark, InboxMessage } from "../../src/component/inbox-message"
import { type ChangeFrame, changeOf, isWithin, seqOf } from "../../src/component/inbox-shelf"

interface Line {
  token?: string
}

type Frame = { type: string; token?: string; after_seq?: number }

/** The inbox of one subscriber as the contract has it, which does what a test wants of a network. */
export class FakeInbox {
  readonly messages = new Map<string, InboxMessage>()
  readonly changes: ChangeFrame[] = []
  readonly sockets = new Set<ServerWebSocket<Line>>()
  /** `METHOD /path` of each request, and `auth <after_seq>` of each sign-in. */
  readonly asked: string[] = []
  readonly tokens = new Set(["first"])
  /** What it serves beside the inbox, by path. */
  readonly files = new Map<string, { type: string; body: string }>()
  /** Called before each request; what it gives is the answer. */
  refuse: (name: string) => number | undefined = () => undefined
  /** The close code of each new socket; undefined: it opens. */
  closing: () => number | undefined = () => undefined
  /** Frames before the socket is cut without a word. */
  cut_after = Number.POSITIVE_INFINITY
  is_resync = false
  /** Seconds between the pings that it promises, and never sends. */
  heartbeat = 25
  #ids = 0
  readonly #server = Bun.serve<Line>({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request, server) => {
      const { pathname } = new URL(request.url)
      const file = this.files.get(pathname)
      if (file) return new Response(file.body, { headers: { "content-type": file.type } })
      if (!pathname.endsWith("/ws")) return this.#answer(request)
      return server.upgrade(request, { data: {} }) ? undefined : new Response(null, { status: 400 })
    },
    websocket: {
      message: (socket, text) => this.#hear(socket, JSON.parse(String(text)) as Frame),
      close: (socket) => void this.sockets.delete(socket),
    },
  })

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}`
  }

  get seq(): number {
    const last = this.changes.at(-1)
    return last ? seqOf(last) : 0
  }

  stop = () => this.#server.stop(true)

  counts() {
    const all = this.list("all")
    const unread = all.filter(({ read_at }) => !read_at)
    const by_category: Record<string, number> = {}
    for (const { category } of unread)
      if (category) by_category[category] = (by_category[category] ?? 0) + 1
    const unseen = all.filter(({ seen_at }) => !seen_at).length
    return { unread: unread.length, unseen, total: all.length, by_category }
  }

  list(filter: string, category?: string): InboxMessage[] {
    const all = [...this.messages.values()].filter(
      (one) => category === undefined || one.category === category,
    )
    const of = all.filter(({ read_at, archived_at }) =>
      filter === "archived" ? archived_at : !archived_at && (filter !== "unread" || !read_at),
    )
    return of.sort((a, b) => (a.id < b.id ? 1 : -1))
  }

  create(given: Partial<InboxMessage> = {}): InboxMessage {
    const id = String(++this.#ids).padStart(6, "0")
    const message = { ...EMPTY, id, title: `Message ${id}`, seq: this.seq + 1, ...given }
    this.messages.set(id, message)
    this.tell({ type: "message.created", seq: message.seq, message })
    return message
  }

  mark(id: string, as: InboxMark): void {
    const seq = this.seq + 1
    const message = { ...(changeOf(as)(this.#find(id)) as InboxMessage), seq }
    this.messages.set(id, message)
    this.tell({ type: "message.updated", seq, message })
  }

  markAll(as: "read" | "seen" | "archived", of: { category?: string } = {}): void {
    const isOf = isWithin(of)
    for (const one of this.messages.values())
      if (isOf(one)) this.messages.set(one.id, changeOf(as)(one) as InboxMessage)
    this.tell({ type: `messages.${as}`, upto_seq: this.seq + 1, ...of })
  }

  remove(id: string): void {
    this.messages.delete(id)
    this.tell({ type: "message.deleted", seq: this.seq + 1, id })
  }

  /** Records a change and sends it, which a test may also do twice. */
  tell(frame: ChangeFrame): void {
    if (seqOf(frame) > this.seq) this.changes.push(frame)
    for (const socket of this.sockets) this.#send(socket, frame)
    const { by_category: _, ...counts } = this.counts()
    for (const socket of this.sockets) this.#send(socket, { type: "counts", ...counts })
  }

  /** Sends to all sockets what is no change. */
  say(frame: object): void {
    for (const socket of this.sockets) this.#send(socket, frame)
  }

  /** The line breaks, and nobody says so. */
  cut(): void {
    for (const socket of this.sockets) socket.terminate()
  }

  #send(socket: ServerWebSocket<Line>, frame: object): void {
    if (--this.cut_after < 0) socket.terminate()
    else socket.send(JSON.stringify(frame))
  }

  #hear(socket: ServerWebSocket<Line>, { type, token, after_seq }: Frame): void {
    if (type === "ping") this.#send(socket, { type: "pong" })
    if (type === "refresh") this.asked.push(`refresh ${token}`)
    if (type !== "auth") return
    socket.data.token = token ?? ""
    this.asked.push(`auth ${after_seq}`)
    const code = this.tokens.has(token ?? "") ? this.closing() : 4401
    if (code === undefined) this.#welcome(socket, after_seq)
    else socket.close(code)
  }

  #welcome(socket: ServerWebSocket<Line>, after_seq: number | undefined): void {
    this.sockets.add(socket)
    const ready = {
      type: "ready",
      last_seq: this.seq,
      counts: this.counts(),
      heartbeat: this.heartbeat,
    }
    this.#send(socket, ready)
    if (this.is_resync) this.#send(socket, { type: "resync" })
    else if (after_seq !== undefined)
      for (const frame of this.changes) if (seqOf(frame) > after_seq) this.#send(socket, frame)
  }

  async #answer(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url)
    const path = pathname.replace("/v1/subscriber-inbox", "")
    const name = `${request.method} ${path}`
    this.asked.push(name)
    const token = request.headers.get("authorization")?.replace("Bearer ", "") ?? ""
    const status = this.refuse(name) ?? (this.tokens.has(token) ? undefined : 401)
    if (status !== undefined)
      return Response.json({ error: { code: "refused", message: "No." } }, { status })
    const body = request.method === "POST" ? ((await request.json()) as Body) : {}
    if (name === "GET ") return this.#page(searchParams)
    if (name === "GET /unread-count") return data(this.counts())
    if (name === "POST /mark") this.#markSome(body)
    if (name === "POST /read-all") this.markAll("read", body)
    const [, id = "", , key] = path.split("/")
    if (request.method === "DELETE") this.remove(id)
    return data(key ? { ...this.#find(id), seq: this.seq } : {})
  }

  #markSome({ ids = [], as = "read" }: Body): void {
    for (const id of ids) if (this.messages.has(id)) this.mark(id, as)
  }

  #page(query: URLSearchParams): Response {
    const limit = Number(query.get("limit"))
    const cursor = query.get("cursor")
    const all = this.list(query.get("filter") ?? "all", query.get("category") ?? undefined)
    const rest = all.filter(({ id }) => cursor === null || id < cursor)
    const page = rest.slice(0, limit)
    const next_cursor = rest.length > limit ? page.at(-1)?.id : null
    return Response.json({ data: page, meta: { last_seq: this.seq, next_cursor } })
  }

  #find(id: string): InboxMessage {
    const message = this.messages.get(id)
    if (!message) throw new Error(`there is no message ${id}`)
    return message
  }
}

type Body = { ids?: string[]; as?: InboxMark; category?: string }

const data = (value: object) => Response.json({ data: value, meta: {} })

const EMPTY: Omit<InboxMessage, "id" | "seq" | "title"> = {
  ...{ subscriber_id: "s", body: null, action_url: null, action_label: null, actions: [] },
  ...{ icon: null, image_url: null, category: null, priority: "normal", data: {}, tags: [] },
  ...{ collapse_key: null, seen_at: null, read_at: null, archived_at: null, snoozed_until: null },
  expires_at: null,
  ...{ created_at: "2026-11-21T10:30:00.000Z", updated_at: "2026-11-21T10:30:00.000Z" },
}
