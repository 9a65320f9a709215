import type { ComponentChildren } from "preact"
import { useLoaded } from "../hooks"
import { messageOf, RequestError } from "../requests"
import { Button } from "./button"

export type Tone = "plain" | "good" | "bad" | "warn"

interface TonedProps {
  children: ComponentChildren
  tone?: Tone
}

/** A word or a number; its meaning never depends on the color alone. */
export const Badge = ({ children, tone = "plain" }: TonedProps) => (
  <span class={`badge ${tone}`}>{children}</span>
)

/** A sentence of the server, in which `this` is code. */
export const Prose = ({ text }: { text: string }) => (
  <>
    {text
      .split("`")
      .map((part, at) => (at % 2 === 1 ? <code key={`${at} ${part}`}>{part}</code> : part))}
  </>
)

/** A fact about the page as a whole. */
export const Notice = ({ children, tone = "plain" }: TonedProps) => (
  <div class={`notice ${tone}`} role={tone === "bad" ? "alert" : undefined}>
    {children}
  </div>
)

interface TroubleProps {
  error: unknown
  onRetry?: (() => void) | undefined
}

/** What failed: the server's own words, the id for its log, and another try. Nothing where nothing failed. */
export function Trouble({ error, onRetry }: TroubleProps) {
  if (error === undefined) return null
  const is_refusal = error instanceof RequestError && error.status > 0
  return (
    <Notice tone="bad">
      <p>
        <Prose text={messageOf(error)} />
      </p>
      {is_refusal && (
        <p class="hint">
          <a href={`/docs/errors/${error.code}`}>{error.code}</a>
          {error.request_id && (
            <>
              {" · "}request <code>{error.request_id}</code>
            </>
          )}
        </p>
      )}
      {onRetry && <Button onClick={onRetry}>Try again</Button>}
    </Notice>
  )
}

/** In the place of a list that has nothing: why, and what to do. */
export const Empty = ({ title, children }: { title: string; children?: ComponentChildren }) => (
  <div class="empty">
    <p class="title">{title}</p>
    {children}
  </div>
)

/** While something loads. Screen readers hear it once. */
export const Waiting = ({ text = "Loading…" }: { text?: string }) => (
  <p class="waiting" role="status">
    {text}
  </p>
)

interface LoadedProps<Value> {
  /** Keeps its identity, as for `useLoaded`. */
  load: () => Promise<Value>
  waiting?: string
  children: (value: Value, again: () => Promise<void>) => ComponentChildren
}

/** What was loaded; before that it waits, and after a failure it offers another try. */
export function Loaded<Value>({ load, waiting, children }: LoadedProps<Value>) {
  const { value, error, again } = useLoaded(load)
  if (error !== undefined) return <Trouble error={error} onRetry={again} />
  return (
    <>
      {value === undefined ? (
        <Waiting {...(waiting && { text: waiting })} />
      ) : (
        children(value, again)
      )}
    </>
  )
}
