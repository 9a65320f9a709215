/** What is to be sent again, and how far that is. */
export interface Resend {
  job_id: string
  project_id: string
  webhook_id: string
  /** By hand, or as replays: what was held, what failed, or all from the store of events. */
  what: "retry" | "held" | "failed" | "all"
  status: ("failed" | "exhausted")[]
  /** Exact types; none is all. */
  event_types: string[]
  since: string | null
  until: string
  /** Behind which one the next part begins. */
  after: string | null
}

/** What a part did, and where the next one begins; null when there is none. */
export interface Part {
  done: number
  failed?: number
  after: string | null
}
