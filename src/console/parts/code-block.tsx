import { useState } from "preact/hooks"
import { copyText } from "../browser"
import { type Command, curlOf } from "../curl"

/** For a region that scrolls: the keyboard must reach it (WCAG 2.1.1). */
export const REACHABLE = { tabIndex: 0 } as const

/** Text to take along as it is, with a button that copies it. */
export function CodeBlock({ label, text }: { label: string; text: string }) {
  return (
    <figure class="code">
      <figcaption>
        <span>{label}</span>
        <CopyButton text={text} label={`Copy: ${label}`} />
      </figcaption>
      <pre dir="ltr" {...REACHABLE}>
        <code>{text}</code>
      </pre>
    </figure>
  )
}

function CopyButton({ text, label }: { text: string; label: string }) {
  const [said, setSaid] = useState<string>()
  const copy = async () => {
    setSaid((await copyText(text)) ? "Copied" : "Select it yourself")
    setTimeout(() => setSaid(undefined), 2000)
  }
  return (
    <button type="button" class="button quiet small" aria-label={said ?? label} onClick={copy}>
      {said ?? "Copy"}
    </button>
  )
}

/** How to do the same from a terminal and from a program. */
export const Commands = ({ belfry, request }: Command) => (
  <details class="commands">
    <summary>From a terminal or a program</summary>
    <CodeBlock label="belfry" text={belfry} />
    <CodeBlock label="curl" text={curlOf(request, location.origin)} />
  </details>
)
