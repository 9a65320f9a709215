import type { Outcome } from "../providers/provider"
import type { messages } from "./tables"

export interface Ready {
  content: unknown
  /** After the attempt: what makes the bytes that left again, to be written together with what came of it. */
  keep?: () => Buffer | undefined
}

/** All the pipeline knows about a channel. Which provider it asks is its own affair. */
export interface Channel {
  /** Work before the attempt that needs no other server. It may throw what `deliver` may throw. */
  prepare?(message: typeof messages.$inferSelect, content: unknown, attempt: number): Promise<Ready>
  deliver(message: typeof messages.$inferSelect, content: unknown): Promise<Outcome>
  /** Ends what `prepare` began for a message, after every outcome. */
  release?(message_id: string): void
  /** Resolves when one more attempt may begin, with what to call at its end. Its result is not on disk then. */
  permit?(): Promise<() => void>
}
