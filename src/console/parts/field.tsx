import type { ComponentChildren } from "preact"
import { useId } from "preact/hooks"

interface FieldProps {
  label: string
  name?: string
  value: string
  onInput: (value: string) => void
  type?: "text" | "email" | "password" | "search" | "number"
  hint?: ComponentChildren
  /** What is wrong with the value. */
  problem?: string | undefined
  /** Several lines; the number of them that show at once. */
  rows?: number
  required?: boolean
  disabled?: boolean
  placeholder?: string
  autocomplete?: string
  /** The text reads from left to right in every language: an address, a key, a path. */
  is_code?: boolean
  /** Shows the label to screen readers only. */
  is_label_hidden?: boolean
}

/** A label, its input, a hint, and what is wrong with the value. */
export function Field({
  label,
  value,
  onInput,
  type = "text",
  hint,
  problem,
  ...rest
}: FieldProps) {
  const { rows, is_code, is_label_hidden, autocomplete = "off", ...own } = rest
  const id = useId()
  const told = [hint && `${id}-hint`, problem && `${id}-problem`].filter(Boolean).join(" ")
  const shared = {
    ...own,
    id,
    value,
    autocomplete,
    maxLength: 1_000_000,
    ...(is_code && { dir: "ltr" as const, spellcheck: false, autocapitalize: "none" as const }),
    "aria-describedby": told || undefined,
    "aria-invalid": problem ? true : undefined,
    onInput: (event: { currentTarget: { value: string } }) => onInput(event.currentTarget.value),
  }
  return (
    <div class="field">
      <label for={id} class={is_label_hidden ? "unseen" : undefined}>
        {label}
      </label>
      {rows ? <textarea rows={rows} {...shared} /> : <input type={type as "text"} {...shared} />}
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {problem && (
        <p class="problem" id={`${id}-problem`} role="alert">
          {problem}
        </p>
      )}
    </div>
  )
}

interface ChoiceProps<Value extends string> {
  label: string
  value: Value
  options: readonly { value: Value; text: string }[]
  onChoose: (value: Value) => void
  is_label_hidden?: boolean
}

/** One of a few values. */
export function Choice<Value extends string>(props: ChoiceProps<Value>) {
  const { label, value, options, onChoose, is_label_hidden } = props
  const id = useId()
  return (
    <div class="field">
      <label for={id} class={is_label_hidden ? "unseen" : undefined}>
        {label}
      </label>
      <select
        id={id}
        value={value}
        onChange={(event) => onChoose(event.currentTarget.value as Value)}
      >
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.text}
          </option>
        ))}
      </select>
    </div>
  )
}

interface CheckProps {
  label: ComponentChildren
  checked: boolean
  onChange: (checked: boolean) => void
}

/** Yes or no. */
export function Check({ label, checked, onChange }: CheckProps) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={checked}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <span>{label}</span>
    </label>
  )
}
