import { useObservable } from "../hooks"
import { observable } from "../observable"

type ToastTone = "good" | "bad"

interface Toast {
  number: number
  text: string
  tone: ToastTone
}

const SHOWN_MILLISECONDS = 6000
const MOST_TOASTS = 3

const toasts = observable<readonly Toast[]>([])
let last = 0

/** Tells for some seconds what was done, or what failed. */
export function notify(text: string, tone: ToastTone = "good"): void {
  last += 1
  const number = last
  toasts.set([...toasts.value, { number, text, tone }].slice(-MOST_TOASTS))
  setTimeout(() => dismiss(number), SHOWN_MILLISECONDS)
}

const dismiss = (number: number) =>
  toasts.set(toasts.value.filter((toast) => toast.number !== number))

/** Where toasts appear; it stands once in the frame. */
export function Toasts() {
  const shown = useObservable(toasts)
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.map(({ number, text, tone }) => (
        <div key={number} class={`toast ${tone}`}>
          <span>
            <b>{tone === "good" ? "Done:" : "Failed:"}</b> <bdi>{text}</bdi>
          </span>
          <button type="button" class="icon" aria-label="Dismiss" onClick={() => dismiss(number)}>
            <span aria-hidden="true">✕</span>
          </button>
        </div>
      ))}
    </div>
  )
}
