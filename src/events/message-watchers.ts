import { newId } from "../core/ids"
import { log } from "../core/log"
import { monotonic } from "../core/time"
import type { Store } from "../store/store"

const WANTED = "belfry_wanted"
const MESSAGES = "belfry_messages"

const WANTED_FOR_MILLISECONDS = 30_000
const PACKET_MILLISECONDS = 50

/** Postgres carries less than 8,000 bytes in one notification. */
const MOST_BYTES = 7500
const MOST_AT_ONCE = 20
const MOST_FRAMES_AT_ONCE = 200
const MOST_WAITING = 2000

/** In place of a project: a node that has just opened its ears asks which nodes watch what. */
const WHO = "?"

/** What is told of a message. Its project decides which watchers hear it. */
interface WatchedChange {
  project_id: string
}

/** Begins to tell every change of a message of this node, once it is on disk, until the returned function is called. */
type Follow = (tell: (told: WatchedChange) => void) => () => void

type Listener = (frames: readonly string[]) => void

/** The watchers of one project on this node, and the frames that they get next. */
interface WatchedProject {
  listeners: Set<Listener>
  frames: string[]
  timer?: Timer | undefined
}

/**
 * Tells changes of message statuses to the watchers of a project, on any node. Each node says from
 * time to time which projects it has watchers for, and gets the changes of those only.
 * Nothing is kept: a client that needs every change follows the events.
 */
export class MessageWatchers {
  readonly #store: Store
  readonly #follow: Follow
  readonly #node = newId()
  readonly #watched = new Map<string, WatchedProject>()
  readonly #wanted = new Map<string, number>()
  #outbox: string[] = []
  #timer: Timer | undefined
  #leave: (() => void) | undefined

  constructor(store: Store, follow: Follow) {
    this.#store = store
    this.#follow = follow
  }

  start(): () => void {
    if (!this.#store.isAlone) this.#hearOthers()
    return () => {
      clearTimeout(this.#timer)
      this.#leave?.()
    }
  }

  #hearOthers() {
    void this.#store.listen(MESSAGES, (payload) => this.#hearMessages(payload))
    const heard = this.#store.listen(WANTED, (payload) => this.#hearWanted(payload))
    void heard.then(() => this.#want([WHO, ...this.#watched.keys()]))
  }

  /** Says to the other nodes which projects are watched here: now and then, because they forget it. */
  wantAgain = () => this.#want([...this.#watched.keys()])

  /**
   * Calls `listener` with every change of a message of the project, within 50 ms, until the function is
   * called. The text of a change is made once for all listeners.
   */
  watch(project_id: string, listener: Listener): () => void {
    const watched = this.#watched.get(project_id) ?? { listeners: new Set(), frames: [] }
    this.#watched.set(project_id, watched)
    watched.listeners.add(listener)
    this.#followWhileWanted()
    if (watched.listeners.size === 1) this.#want([project_id])
    return () => {
      watched.listeners.delete(listener)
      if (watched.listeners.size > 0 || this.#watched.get(project_id) !== watched) return
      this.#watched.delete(project_id)
      clearTimeout(watched.timer)
      this.#followWhileWanted()
    }
  }

  /** Without a watcher anywhere, a message costs nothing here. */
  #followWhileWanted() {
    if (this.#watched.size + this.#wanted.size > 0) {
      this.#leave ??= this.#follow((told) => this.#tell(told))
    } else {
      this.#leave?.()
      this.#leave = undefined
    }
  }

  /** Tells a change of this node to the watchers of every node. */
  #tell(told: WatchedChange) {
    this.#notify(told)
    this.#carry(told)
  }

  #notify(told: WatchedChange) {
    const watched = this.#watched.get(told.project_id)
    if (!watched) return
    watched.frames.push(JSON.stringify({ type: "message", message: told }))
    if (watched.frames.length >= MOST_FRAMES_AT_ONCE) return handOut(watched)
    watched.timer ??= setTimeout(() => handOut(watched), PACKET_MILLISECONDS)
  }

  #want(projects: string[]) {
    if (this.#store.isAlone) return
    for (const project_id of projects) {
      void this.#store.notify(WANTED, `${this.#node} ${project_id}`)
    }
  }

  #hearWanted(payload: string) {
    const [node, project_id = ""] = payload.split(" ")
    if (node === this.#node) return
    if (project_id === WHO) return this.#want([...this.#watched.keys()])
    this.#wanted.set(project_id, monotonic() + WANTED_FOR_MILLISECONDS)
    this.#followWhileWanted()
  }

  #carry(told: WatchedChange) {
    const until = this.#wanted.get(told.project_id)
    if (until === undefined) return
    if (monotonic() > until) {
      this.#wanted.delete(told.project_id)
      return this.#followWhileWanted()
    }
    if (this.#outbox.length < MOST_WAITING) this.#outbox.push(JSON.stringify(told))
    this.#timer ??= setTimeout(() => void this.#sendAll(), PACKET_MILLISECONDS)
  }

  /** One flush at a time, so that changes of a message arrive in their order. */
  async #sendAll() {
    while (this.#outbox.length > 0) await this.#send()
    this.#timer = undefined
  }

  /** A notification costs the whole database a lock: many changes share one, and few are sent. */
  async #send() {
    const packets = packed(this.#outbox)
    this.#outbox = []
    for (const packet of packets.slice(0, MOST_AT_ONCE)) {
      await this.#store.notify(MESSAGES, `${this.#node} [${packet.join(",")}]`)
    }
    const lost = packets.slice(MOST_AT_ONCE).flat().length
    if (lost > 0) log.debug("other nodes did not learn of changes of messages", { lost })
  }

  #hearMessages(payload: string) {
    const start = payload.indexOf(" ")
    if (payload.slice(0, start) === this.#node) return
    for (const told of JSON.parse(payload.slice(start + 1)) as WatchedChange[]) this.#notify(told)
  }
}

/** Few writes to each connection cost less than many. */
function handOut(watched: WatchedProject) {
  const { listeners, frames, timer } = watched
  clearTimeout(timer)
  watched.timer = undefined
  watched.frames = []
  for (const listener of listeners) listener(frames)
}

function packed(texts: string[]): string[][] {
  const packets: string[][] = []
  let room = 0
  for (const text of texts) {
    const bytes = Buffer.byteLength(text) + 1
    if (bytes > MOST_BYTES) continue
    if (bytes > room) {
      packets.push([])
      room = MOST_BYTES
    }
    packets.at(-1)?.push(text)
    room -= bytes
  }
  return packets
}
