import type { ComponentChildren } from "preact"
import { messageOf, RequestError } from "../request-error"
import { Button } from "./button"
import { Prose } from "./prose"

interface NoticeProps {
  children: ComponentChildren
  tone?: "plain" | "good" | "bad" | "warn"
}

/** A fact about the page as a whole. */
export const Notice = ({ children, tone = "plain" }: NoticeProps) => (
  <div class={`notice ${tone}`} role={tone === "bad" ? "alert" : undefined}>
    {children}
  </div>
)

interface TroubleProps {
  error: unknown
  onRetry?: (() => void) | undefined
}

/** What failed: the server's own words, the id for its log, and another try. */
export function Trouble({ error, onRetry }: TroubleProps) {
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
