import { useState } from "preact/hooks"
import type { Components } from "../../client/components"
import { ActionDialog, type DialogProps } from "../parts/action-dialog"
import { Dialog } from "../parts/dialog"
import { Waiting } from "../parts/empty"
import { Field } from "../parts/field"
import { Trouble } from "../parts/notice"
import { call } from "../transport"
import { useLoaded } from "../use-loaded"
import { MAILBOX_KEYS } from "./mailbox-keys"

/** Empties the mailbox of the project. */
export const DeleteAllDialog = (then: DialogProps) => (
  <ActionDialog
    title="Delete all mail of the mailbox?"
    action="Delete all"
    look="danger"
    said="the mailbox is empty"
    operation="DELETE /v1/mailbox"
    input={{}}
    belfry="belfry mailbox clear --yes"
    {...then}
  >
    <p>All mail of this project leaves the mailbox for good. Messages and their events stay.</p>
  </ActionDialog>
)

const SIGNS: Record<string, string> = {
  ArrowDown: "↓",
  ArrowUp: "↑",
  ArrowRight: "→",
  ArrowLeft: "←",
  Escape: "Esc",
  Enter: "⏎",
}

/** What each key does. */
export const KeysDialog = ({ onClose }: { onClose: () => void }) => (
  <Dialog title="Keys" onClose={onClose}>
    <dl class="facts">
      {MAILBOX_KEYS.map(({ keys, text }) => (
        <div class="pair" key={text}>
          <dt>
            {keys.map((key) => (
              <kbd key={key}>{SIGNS[key] ?? key}</kbd>
            ))}
          </dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
    <p class="hint">
      They are the keys of <code>belfry tui</code>.
    </p>
  </Dialog>
)

type Chaos = Components["MailboxChaos"]

const FIELDS = [
  {
    name: "bounce_rate",
    flag: "--bounce",
    label: "Share of recipients that bounce",
    hint: "From 0 to 1. Each one ends as bounce@mailbox.test does.",
  },
  {
    name: "defer_rate",
    flag: "--defer",
    label: "Share of recipients that are deferred",
    hint: "From 0 to 1. Each one ends as defer@mailbox.test does.",
  },
  {
    name: "refuse_rate",
    flag: "--refuse",
    label: "Share of recipients that are refused",
    hint: "From 0 to 1. Each one ends as reject@mailbox.test does.",
  },
  {
    name: "delay_ms",
    flag: "--delay",
    label: "Delay of each answer",
    hint: "In milliseconds, 60000 at most.",
  },
] as const satisfies { name: keyof Chaos; flag: string; label: string; hint: string }[]

/** What is set for this project. */
export const readChaos = async (): Promise<Chaos> => (await call("GET /v1/mailbox/chaos")).data

/** Whether any mail goes wrong now, or waits. */
export const isChaotic = (chaos: Chaos): boolean => FIELDS.some(({ name }) => chaos[name] > 0)

/** Lets mail of this project go wrong in the mailbox, to see what a program makes of it. */
export function ChaosDialog(then: DialogProps) {
  const { value: known, error, again } = useLoaded(readChaos)
  const [typed, setTyped] = useState<Partial<Record<keyof Chaos, string>>>({})
  const textOf = (name: keyof Chaos) => typed[name] ?? String(known?.[name] ?? "")
  const body: Partial<Chaos> = known
    ? (Object.fromEntries(FIELDS.map(({ name }) => [name, asNumber(textOf(name))])) as Chaos)
    : {}
  const flags = FIELDS.flatMap(({ name, flag }) => (body[name] ? `${flag} ${body[name]}` : []))
  return (
    <ActionDialog
      title="Chaos"
      action="Set"
      said={flags.length > 0 ? "chaos is on" : "chaos is off"}
      operation="PUT /v1/mailbox/chaos"
      input={{ body }}
      belfry={
        flags.length > 0 ? `belfry mailbox chaos ${flags.join(" ")}` : "belfry mailbox chaos --off"
      }
      {...then}
    >
      <p class="soft">
        Mail of this project goes wrong in the mailbox on purpose. All shares together are 1 at
        most. Zero everywhere ends it.
      </p>
      {error !== undefined && <Trouble error={error} onRetry={again} />}
      {!known && error === undefined && <Waiting />}
      {known &&
        FIELDS.map(({ name, label, hint }) => (
          <Field
            key={name}
            label={label}
            hint={hint}
            value={textOf(name)}
            onInput={(value) => setTyped({ ...typed, [name]: value })}
            is_code
          />
        ))}
    </ActionDialog>
  )
}

/** What is no number goes to the server as it is, which says what is wrong with it. */
function asNumber(text: string): number | string {
  const number = Number(text.trim().replace(",", "."))
  return Number.isNaN(number) ? text.trim() : number
}
