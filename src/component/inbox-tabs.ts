import type { LineFrame } from "./inbox-line"
import type { InboxCounts, InboxState } from "./inbox-message"
import { locks } from "./page-words"

/** What tabs tell each other. A tab that asks wants to know whether it has missed something. */
export type TabNote =
  | { frame: LineFrame }
  | { state: InboxState; seq: number | undefined; counts: InboxCounts }
  | { ask: true }

/**
 * The tabs of one subscriber in a browser. One of them holds the socket, because a subscriber has ten, and passes on
 * what it hears; when it closes, another one takes over. A browser without locks gives each tab a socket.
 */
export class InboxTabs {
  readonly #name: string | undefined
  readonly #channel: BroadcastChannel | undefined
  readonly #stop = new AbortController()
  #release: () => void = () => {}

  constructor(name: string | undefined, hear: (note: TabNote) => void) {
    if (name === undefined || !locks() || typeof BroadcastChannel === "undefined") return
    this.#name = name
    this.#channel = new BroadcastChannel(name)
    this.#channel.onmessage = ({ data }) => hear(data as TabNote)
  }

  /** Calls when this tab has to hold the socket, which may be at once or never. */
  take(lead: () => void): void {
    if (this.#name === undefined) {
      lead()
      return
    }
    const { signal } = this.#stop
    const hold = () => {
      lead()
      return new Promise<void>((resolve) => {
        this.#release = resolve
      })
    }
    // A frame without an origin may not use locks: it leads itself.
    locks()
      ?.request(this.#name, { signal }, hold)
      .catch(() => signal.aborted || lead())
    this.tell({ ask: true })
  }

  tell(note: TabNote): void {
    this.#channel?.postMessage(note)
  }

  leave(): void {
    this.#stop.abort()
    this.#release()
    this.#channel?.close()
  }
}

/** The name that all tabs of a subscriber share; undefined where the token does not say whose it is. */
export function tabsName(url: string, token: string): string | undefined {
  try {
    const claims = token.split(".")[1] ?? ""
    const { iss, sub } = JSON.parse(atob(claims.replaceAll("-", "+").replaceAll("_", "/")))
    return sub ? `belfry-inbox ${url} ${iss} ${sub}` : undefined
  } catch {
    return undefined
  }
}
