import { useEffect, useState } from "preact/hooks"
import { requestOf } from "../../client/client"
import type { Components } from "../../client/components"
import { ActionDialog } from "../parts/action-dialog"
import { Waiting } from "../parts/empty"
import { Field } from "../parts/field"
import { Trouble } from "../parts/notice"
import { call } from "../transport"
import { useLoaded } from "../use-loaded"

type Chaos = Components["MailboxChaos"]

interface ChaosField {
  name: keyof Chaos
  flag: string
  label: string
  hint: string
}

const FIELDS: readonly ChaosField[] = [
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
]

/** What is set for this project. */
export const readChaos = async (): Promise<Chaos> => (await call("GET /v1/mailbox/chaos")).data

/** Whether any mail goes wrong now, or waits. */
export const isChaotic = (chaos: Chaos): boolean => FIELDS.some(({ name }) => chaos[name] > 0)

interface ChaosDialogProps {
  onClose: () => void
  onDone: () => unknown
}

/** Lets mail of this project go wrong in the mailbox, to see what a program makes of it. */
export function ChaosDialog({ onClose, onDone }: ChaosDialogProps) {
  const { value: known, error, again } = useLoaded(readChaos)
  const [texts, setTexts] = useState<Record<keyof Chaos, string>>()
  useEffect(() => {
    if (known) setTexts(asTexts(known))
  }, [known])
  const body = texts && asNumbers(texts)
  return (
    <ActionDialog
      title="Chaos"
      action="Set"
      said={saidOf(body)}
      run={() => call("PUT /v1/mailbox/chaos", { body: body ?? {} })}
      belfry={chaosCommand(body)}
      request={requestOf("PUT /v1/mailbox/chaos", { body: body ?? {} })}
      onClose={onClose}
      onDone={onDone}
    >
      <p class="soft">
        Mail of this project goes wrong in the mailbox on purpose. All shares together are 1 at
        most. Zero everywhere ends it.
      </p>
      {error !== undefined && <Trouble error={error} onRetry={again} />}
      {!texts && error === undefined && <Waiting />}
      {texts &&
        FIELDS.map(({ name, label, hint }) => (
          <Field
            key={name}
            label={label}
            hint={hint}
            value={texts[name]}
            onInput={(value) => setTexts({ ...texts, [name]: value })}
            is_code
          />
        ))}
    </ActionDialog>
  )
}

const asTexts = (chaos: Chaos) =>
  Object.fromEntries(FIELDS.map(({ name }) => [name, String(chaos[name])])) as Record<
    keyof Chaos,
    string
  >

/** What is no number goes to the server as it is, which says what is wrong with it. */
const asNumbers = (texts: Record<keyof Chaos, string>) =>
  Object.fromEntries(
    FIELDS.map(({ name }) => {
      const text = texts[name].trim().replace(",", ".")
      return [name, Number.isNaN(Number(text)) ? text : Number(text)]
    }),
  ) as Partial<Chaos>

const saidOf = (body: Partial<Chaos> | undefined): string =>
  FIELDS.some(({ name }) => body?.[name]) ? "chaos is on" : "chaos is off"

const chaosCommand = (body: Partial<Chaos> | undefined): string => {
  const flags = FIELDS.flatMap(({ name, flag }) => (body?.[name] ? [`${flag} ${body[name]}`] : []))
  return `belfry mailbox chaos ${flags.length > 0 ? flags.join(" ") : "--off"}`
}
