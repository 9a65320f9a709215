import type { ComponentChildren } from "preact"
import { useId } from "preact/hooks"

interface LabelledProps {
  label: string
  /** Shows the label to screen readers only. */
  is_label_hidden?: boolean
}

interface FieldProps extends LabelledProps {
  name?: string
  value: string
  onInput: (value: string) => void
  type?: "text" | "email" | "password" | "search"
  hint?: ComponentChildren
  /** Several lines; the number of them that show at once. */
  rows?: number
  required?: boolean
  placeholder?: string
  autocomplete?: string
  /** The text reads from left to right in every language: an address, a key, a path. */
  is_code?: boolean
}

export function Field({
  label,
  is_label_hidden,
  onInput,
  type = "text",
  hint,
  ...rest
}: FieldProps) {
  const { rows, is_code, autocomplete = "off", ...own } = rest
  const id = useId()
  const shared = {
    ...own,
    id,
    autocomplete,
    maxLength: 1_000_000,
    ...(is_code && { dir: "ltr" as const, spellcheck: false, autocapitalize: "none" as const }),
    "aria-describedby": hint ? `${id}-hint` : undefined,
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
    </div>
  )
}

interface ChoiceProps<Value extends string> extends LabelledProps {
  value: Value
  options: readonly { value: Value; text: string }[]
  onChoose: (value: Value) => void
}

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
  label: string
  checked: boolean
  onChange: (checked: boolean) => void
}

export const Check = ({ label, checked, onChange }: CheckProps) => (
  <label class="check">
    <input
      type="checkbox"
      checked={checked}
      onChange={(event) => onChange(event.currentTarget.checked)}
    />
    <span>{label}</span>
  </label>
)
