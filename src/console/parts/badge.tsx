import type { ComponentChildren } from "preact"

export type BadgeTone = "plain" | "good" | "bad" | "warn" | "accent"

interface BadgeProps {
  children: ComponentChildren
  tone?: BadgeTone
}

/** A word or a number; its meaning never depends on the color alone. */
export const Badge = ({ children, tone = "plain" }: BadgeProps) => (
  <span class={`badge ${tone}`}>{children}</span>
)
