import type { ComponentChildren } from "preact"

interface EmptyProps {
  title: string
  children?: ComponentChildren
}

/** In the place of a list that has nothing: why, and what to do. */
export const Empty = ({ title, children }: EmptyProps) => (
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
