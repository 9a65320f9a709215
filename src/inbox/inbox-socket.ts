import { ApiError, fail } from "../core/errors"
import { newId } from "../core/ids"
import { log } from "../core/log"
import { millis, millisFrom } from "../core/time"
import type { BrowserTokens } from "../http/guard"
import type { RateLimits } from "../http/rate-limits"
import type { Conversation, Socket, SocketFrame } from "../http/sockets"
import type { Store } from "../store/store"
import { markOne } from "./inbox"
import { bearerOf, refusalOf } from "./inbox-bearers"
import {
  countsFrame,
  type FollowedInbox,
  type FollowingSocket,
  type InboxHub,
  RESYNC,
  textsBehind,
} from "./inbox-hub"
import type { InboxTokens, ProvenToken } from "./inbox-tokens"
import type { InboxTotals } from "./ledger"
import { markAll } from "./mark-all"
import { isMark, MARKS } from "./marks"
import { type InboxProof, readFrame, type SaidFrame } from "./said-frames"
import * as tickets from "./tickets"

/** For the first frame, where the request brought no credential. */
const SIGN_IN_MILLISECONDS = 5000

/** So long a socket that signed in by its request is told nothing, because it may still say where it was. */
const RESUME_MILLISECONDS = 1000

const EXPIRING_MILLISECONDS = 60_000
const HEARTBEAT_SECONDS = 25

/** The session of an end user is looked at this often: every ten seconds. */
const LOOKS_A_SESSION = 4

/** Frames of one client that wait for the one before them. */
const MOST_WAITING = 20

/** End users, whose tokens open the inbox of the subscriber that they are. */
interface InboxUsers {
  user_tokens: BrowserTokens
  /** Why the socket of a session may not be open; undefined where it may. */
  refusalOfSession(
    session_id: string,
    origin: string | null,
  ): Promise<"unauthorized" | "forbidden" | undefined>
}

/** Whose inbox a proof opens; null for an end user that is no subscriber. */
interface ProvenEntrant extends Pick<ProvenToken, "project_id" | "ends_at"> {
  subscriber_id: string | null
  /** Of an end user. */
  session_id: string | null
}

export interface InboxSocketParts {
  store: Store
  inbox_tokens: Pick<InboxTokens, "prove">
  applications: InboxUsers
  inbox_hub: InboxHub
  limits: Pick<RateLimits, "countFailure">
}

/** How the client asked for the connection. */
export interface InboxKnock {
  ip: string
  origin: string | null
  /** One, or none where the first frame brings it. */
  proofs: InboxProof[]
}

/** The socket of a subscriber's inbox (contract 42, section 3). There may be thousands, so it keeps little. */
export class InboxSocket implements Conversation, FollowingSocket {
  is_live = false
  inbox: FollowedInbox | undefined
  readonly #parts: InboxSocketParts
  #knock: InboxKnock
  #wire: Socket | undefined
  #project_id = ""
  /** Of an end user, whose pages and sessions their application knows. */
  #session_id: string | null = null
  #looks = 0
  #ends_at = 0
  #is_warned = false
  /** What `ready` told. Of a client that said where it was, that place: behind it was told. */
  #ready_seq = 0
  #counts: InboxTotals | undefined
  /** Until it signs in, and then until it resumes. */
  #timer: Timer | undefined
  /** Frames behind the one that is being answered. */
  #waiting: SaidFrame[] | undefined

  constructor(parts: InboxSocketParts, knock: InboxKnock) {
    this.#parts = parts
    this.#knock = knock
  }

  /** Of pages that the project knows. */
  get origin(): string | null {
    return this.#session_id === null ? this.#knock.origin : null
  }

  async begin(wire: Socket): Promise<void> {
    this.#wire = wire
    const [proof, ...others] = this.#knock.proofs
    this.#knock = { ...this.#knock, proofs: [] }
    if (others.length > 0) return this.close("unauthorized")
    if (proof) return void this.#take({ type: "enter", proof })
    this.#timer = setTimeout(() => this.close("unauthorized"), SIGN_IN_MILLISECONDS)
  }

  hear(frame: SocketFrame): "extra" | "bad" {
    const said = readFrame(frame)
    if (!said) return "bad"
    this.#take(said)
    return "extra"
  }

  look(): void {
    if (!this.inbox) return
    if (++this.#looks % LOOKS_A_SESSION === 0) void this.#lookAtSession()
    const left = this.#ends_at - millis()
    if (left <= 0) this.close("unauthorized")
    if (left > EXPIRING_MILLISECONDS || this.#is_warned) return
    this.#is_warned = true
    this.#say({ type: "token.expiring", in: Math.ceil(left / 1000) })
  }

  async #lookAtSession() {
    if (this.#session_id === null) return
    try {
      const refusal = await this.#refusalOf(this.#session_id)
      if (refusal) this.close(refusal)
    } catch (error) {
      log.debug("the session of a socket could not be checked", { error })
    }
  }

  #refusalOf = (session_id: string) =>
    this.#parts.applications.refusalOfSession(session_id, this.#knock.origin)

  gone(): void {
    clearTimeout(this.#timer)
    this.#waiting = undefined
    this.#parts.inbox_hub.leave(this)
  }

  push(frames: string[]): void {
    this.#wire?.pushAll(frames)
  }

  close(why: Parameters<Socket["close"]>[0]): void {
    this.#wire?.close(why)
  }

  #say(frame: object) {
    this.push([JSON.stringify(frame)])
  }

  /** Frames are answered one after the other. */
  #take(said: SaidFrame) {
    if (!this.#waiting) void this.#answerAll(said)
    else if (this.#waiting.length < MOST_WAITING) this.#waiting.push(said)
    else this.close("too_many")
  }

  async #answerAll(first: SaidFrame) {
    this.#waiting = []
    try {
      for (let said: SaidFrame | undefined = first; said; said = this.#waiting?.shift())
        await this.#answer(said)
    } catch (error) {
      log.error("a frame of an inbox socket could not be answered", { error })
      this.close("broken")
    }
    this.#waiting = undefined
  }

  async #answer(said: SaidFrame): Promise<void> {
    const is_first = said.type === "auth" || said.type === "enter"
    if (is_first && this.inbox) return this.close("bad_frame")
    if (said.type === "enter") return this.#enter(said.proof)
    if (said.type === "auth") return this.#signIn(said)
    const { inbox } = this
    if (!inbox || this.#ends_at <= millis()) return this.close("unauthorized")
    if (said.type === "resume") return this.#resume(inbox, said.after_seq)
    try {
      if (said.type === "mark") await this.#mark(inbox, said)
      else await this.#refresh(inbox, said.token)
      this.#say({ type: "ack", ref: said.ref })
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      this.#say({ type: "error", ref: said.ref, code: error.code, message: error.message })
    }
  }

  /** Without a first frame the client may still say where it was, so nothing else is told until then. */
  async #enter(proof: InboxProof) {
    const inbox = await this.#admit(proof)
    if (inbox) this.#timer = setTimeout(() => this.#take(NOWHERE_ELSE), RESUME_MILLISECONDS)
  }

  async #signIn({ proof, after_seq }: Extract<SaidFrame, { type: "auth" }>) {
    clearTimeout(this.#timer)
    const inbox = await this.#admit(proof)
    if (inbox) await this.#resume(inbox, after_seq)
  }

  /** Says `ready`, or closes. */
  async #admit(proof: InboxProof): Promise<FollowedInbox | undefined> {
    const { store, inbox_hub } = this.#parts
    const proven = await this.#proven(proof)
    if (!proven) return this.#refuse()
    const { project_id, subscriber_id, session_id } = proven
    if (subscriber_id === null) return void this.close("forbidden")
    this.#session_id = session_id
    const bearer = await bearerOf(store.read, subscriber_id)
    const is_own = bearer?.project_id === project_id
    const refusal =
      refusalOf(is_own ? bearer : undefined, this.origin) ??
      (session_id === null ? undefined : await this.#refusalOf(session_id))
    if (refusal) return void this.close(refusal)
    if (this.#wire?.is_over) return undefined
    this.#project_id = project_id
    this.#ends_at = millisFrom(proven.ends_at)
    const inbox = await inbox_hub.join(this, subscriber_id)
    const { sent_seq: last_seq, counts } = inbox
    this.#ready_seq = last_seq
    this.#counts = counts
    const ready = { type: "ready", session: newId(), subscriber_id, last_seq, counts }
    this.#say({ ...ready, heartbeat: HEARTBEAT_SECONDS })
    return inbox
  }

  async #proven(proof: InboxProof): Promise<ProvenEntrant | undefined> {
    const { store, inbox_tokens, applications } = this.#parts
    if ("ticket" in proof) {
      const used = await store.tx((tx) => tickets.redeem(tx, proof.ticket))
      return used && { ...used, ends_at: used.token_ends_at, session_id: used.session_id ?? null }
    }
    const { user_tokens } = applications
    if (user_tokens.isOwn(proof.token)) {
      const identifying = user_tokens.identify(proof.token, this.#knock.ip)
      const caller = (await identifying.catch(unlessRefused))?.caller
      if (!caller) return undefined
      const { project_id, subscriber_id, end_user, expires_at } = caller
      const session_id = end_user?.session_id ?? null
      return { project_id, subscriber_id, session_id, ends_at: expires_at ?? "" }
    }
    const proven = await inbox_tokens.prove(proof.token).catch(unlessRefused)
    return proven && !proven.is_over ? { ...proven, session_id: null } : undefined
  }

  /** Credentials that fail are counted by address, here as for requests. */
  #refuse(): undefined {
    try {
      this.#parts.limits.countFailure(this.#knock.ip)
      this.close("unauthorized")
    } catch {
      this.close("too_many")
    }
  }

  /**
   * Tells what happened behind that change, and from then on everything as it happens. One that is live already was
   * told of all behind `ready`.
   */
  async #resume(inbox: FollowedInbox, after_seq = this.#ready_seq): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const { inbox_hub } = this.#parts
    if (after_seq > inbox.sent_seq) await inbox_hub.catchUp(inbox) // it may come from a node that knew more
    let at = after_seq > inbox.sent_seq ? await this.#resync(inbox) : after_seq
    while (at < this.#end(inbox)) {
      const { subscriber_id } = inbox
      const page = await inbox_hub.pages.behind({ subscriber_id, after: at })
      const texts = textsBehind(page, at)?.slice(0, this.#end(inbox) - at)
      if (texts?.length) await this.#wire?.sendAll(texts)
      at = texts?.length ? at + texts.length : await this.#resync(inbox)
      if (this.#wire?.is_over) return
    }
    const is_news = inbox.sent_seq > this.#ready_seq || inbox.counts !== this.#counts
    if (!this.is_live && is_news) this.push([countsFrame(inbox.counts)])
    this.is_live = true
    this.#counts = undefined
    this.#ready_seq = Math.min(this.#ready_seq, after_seq) // nothing is told twice
  }

  #end({ sent_seq }: FollowedInbox): number {
    return this.is_live ? this.#ready_seq : sent_seq
  }

  /** The log does not go back so far: the client reads the inbox anew, and needs what follows now. */
  async #resync(inbox: FollowedInbox): Promise<number> {
    await this.#wire?.sendAll([RESYNC])
    return this.#end(inbox)
  }

  async #mark({ subscriber_id }: FollowedInbox, { id, as }: Extract<SaidFrame, { type: "mark" }>) {
    const { store } = this.#parts
    const owner = { project_id: this.#project_id, subscriber_id }
    if (!isMark(as)) fail("validation_error", NO_MARK)
    if (id !== "*") await store.tx((tx) => markOne(tx, owner, id, as))
    else if (as === "unread" || as === "unarchived") fail("validation_error", NOT_OF_ALL)
    else await markAll(store, owner, as, {})
  }

  async #refresh({ subscriber_id }: FollowedInbox, token: string) {
    const proven = await this.#proven({ token })
    if (!proven) this.#parts.limits.countFailure(this.#knock.ip)
    if (!proven) return fail("unauthorized", "The token is not valid. Send another one.")
    if (proven.subscriber_id !== subscriber_id || proven.project_id !== this.#project_id)
      return fail("forbidden", "The token is another subscriber's. Open another socket for it.")
    this.#session_id = proven.session_id
    this.#ends_at = millisFrom(proven.ends_at)
    this.#is_warned = false
  }
}

const NOWHERE_ELSE = { type: "resume", after_seq: undefined } as const
const NO_MARK = `A message can be marked as one of ${MARKS.join(", ")}.`
const NOT_OF_ALL = "Only `read`, `seen` and `archived` can be said of all messages. Name one."

function unlessRefused(error: unknown): undefined {
  if (!(error instanceof ApiError)) throw error
}
