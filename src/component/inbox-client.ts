import type {
  InboxCounts,
  InboxMark,
  InboxMessage,
  InboxPreferences,
  InboxState,
  InboxView,
} from "./inbox-message"

export interface InboxClientOptions {
  /** Where the server is; without it the origin of this script. */
  url?: string
  /** A function is asked again when the server wants a newer token. */
  token: string | (() => string | Promise<string>)
}

/**
 * The inbox of one subscriber without a look: its connection, its messages and its counts. It dispatches `change`,
 * `message` and `action` with `{message}`, `opened` with `{message}` (cancelable), and `problem` with `{code, message}`.
 */
export class InboxClient extends EventTarget {
  /** Of the view, newest first. */
  readonly messages: readonly InboxMessage[] = []
  readonly counts: InboxCounts = { unread: 0, unseen: 0, total: 0, by_category: {} }
  readonly state: InboxState = "idle"
  /** Whether `more` finds older messages of the view. */
  readonly hasMore: boolean = false

  readonly #options: InboxClientOptions

  constructor(options: InboxClientOptions) {
    super()
    this.#options = options
  }

  /** Loads the view and follows the inbox until `stop`. */
  async start(): Promise<void> {
    throw new Error(`Nothing follows ${this.#options.url} yet.`)
  }

  stop(): void {}

  /** Shows other messages, and loads their first page. */
  async show(_view: InboxView): Promise<void> {}

  /** Loads the next older page of the view. */
  async more(): Promise<void> {}

  /**
   * Marks one message, or with `*` all (of a category, where it is named). It shows at once, and is taken back where
   * the server refuses. The promise rejects then, as those of all other changes.
   */
  async mark(_id: string, _as: InboxMark, _of?: { category?: string }): Promise<void> {}

  /** Hides a message until a time (ISO 8601); null shows it again. */
  async snooze(_id: string, _until: string | null): Promise<void> {}

  async remove(_id: string): Promise<void> {}

  /** Reads a message and dispatches `opened`. False where a listener prevented that its `action_url` opens. */
  open(_id: string): boolean {
    return true
  }

  /** Takes an action of a message. */
  async act(_id: string, _key: string, _data?: unknown): Promise<void> {}

  preferences(): Promise<InboxPreferences> {
    return Promise.reject(new Error("There is no server yet."))
  }

  /** Changes only the preferences that are named. */
  choose(_changes: object): Promise<InboxPreferences> {
    return this.preferences()
  }
}
