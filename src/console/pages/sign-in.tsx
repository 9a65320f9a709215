import type { ComponentProps } from "preact"
import { useEffect, useState } from "preact/hooks"
import { serverMode } from "../browser"
import { useObservable, useTitle } from "../hooks"
import { isOfConsole, safeNext } from "../page-paths"
import { type NextStep, session, signIn, signInWithCode, signInWithKey } from "../page-session"
import { Button } from "../parts/button"
import { Field } from "../parts/field"
import { Trouble, Waiting } from "../parts/notice"
import { Tabs } from "../parts/tabs"
import { navigate, place } from "../router"

type Way = "password" | "key"

const WAYS = [
  { name: "password", text: "Email and password" },
  { name: "key", text: "API key" },
] as const

/** Signs in, then opens the page of `?next=`: only ever a page of this server. */
export function Page() {
  useTitle("Sign in")
  const [way, setWay] = useState<Way>("password")
  const [step, setStep] = useState<NextStep>()
  const known = useObservable(session)
  const is_signed_in = known.kind === "key" || known.kind === "token"
  useEffect(() => {
    if (is_signed_in) leave()
  }, [is_signed_in])
  if (is_signed_in) return <Waiting />
  return (
    <div class="narrow form">
      <h1>Sign in</h1>
      {step ? (
        <CodeForm challenge={step.challenge} />
      ) : (
        <Tabs label="Ways to sign in" tabs={WAYS} chosen={way} onChoose={setWay}>
          {way === "password" ? <PasswordForm onStep={setStep} /> : <KeyForm />}
        </Tabs>
      )}
      {serverMode() === "up" && (
        <p class="hint">
          On the machine of <code>belfry up</code>, open the link that it printed.{" "}
          <code>belfry open</code> prints a new one.
        </p>
      )}
    </div>
  )
}

/** A session that is there already leaves at once, too. */
function leave() {
  const next = safeNext(new URLSearchParams(place.value.query).get("next"))
  if (isOfConsole(next)) navigate(next, { replace: true })
  else location.replace(next)
}

interface SignInFormProps {
  fields: readonly (Omit<ComponentProps<typeof Field>, "value" | "onInput"> & { name: string })[]
  action: string
  send: (values: Record<string, string>) => Promise<unknown>
}

/** One attempt at a time, and what went wrong with the last one. */
function SignInForm({ fields, action, send }: SignInFormProps) {
  const [values, setValues] = useState<Record<string, string>>({})
  const [error, setError] = useState<unknown>()
  const [is_busy, setBusy] = useState(false)
  const attempt = async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    await send(values).catch(setError)
    setBusy(false)
  }
  return (
    <form onSubmit={attempt}>
      <Trouble error={error} />
      {fields.map((field) => (
        <Field
          key={field.name}
          {...field}
          required
          value={values[field.name] ?? ""}
          onInput={(value) => setValues({ ...values, [field.name]: value })}
        />
      ))}
      <Button type="submit" look="go" is_busy={is_busy}>
        {action}
      </Button>
    </form>
  )
}

const EMAIL = { label: "Email", name: "email", type: "email", autocomplete: "username" } as const
const PASSWORD = {
  label: "Password",
  name: "password",
  type: "password",
  autocomplete: "current-password",
} as const

const PasswordForm = ({ onStep }: { onStep: (step: NextStep) => void }) => (
  <SignInForm
    fields={[EMAIL, PASSWORD]}
    action="Sign in"
    send={async ({ email = "", password = "" }) => onStep(await signIn(email, password))}
  />
)

const CODE = {
  label: "Code of your authenticator app, or a backup code",
  name: "code",
  autocomplete: "one-time-code",
  is_code: true,
}

const CodeForm = ({ challenge }: { challenge: string }) => (
  <SignInForm
    fields={[CODE]}
    action="Continue"
    send={({ code = "" }) => signInWithCode(challenge, code.trim())}
  />
)

const KEY = {
  label: "API key",
  name: "key",
  type: "password",
  is_code: true,
  hint: "This tab keeps the key until you close it. Nothing else stores it.",
} as const

const KeyForm = () => (
  <SignInForm
    fields={[KEY]}
    action="Use this key"
    send={({ key = "" }) => signInWithKey(key.trim())}
  />
)
