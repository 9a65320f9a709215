import { useEffect, useState } from "preact/hooks"
import { isOfConsole, safeNext } from "../page-paths"
import { type NextStep, session, signIn, signInWithCode, signInWithKey } from "../page-session"
import { Button } from "../parts/button"
import { Waiting } from "../parts/empty"
import { Field } from "../parts/field"
import { Trouble } from "../parts/notice"
import { Tabs } from "../parts/tabs"
import { navigate, place } from "../router"
import { serverMode } from "../server-mode"
import { useObservable } from "../use-observable"
import { useTitle } from "../use-title"

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

/** One attempt at a time, and what went wrong with the last one. */
function useAttempt() {
  const [error, setError] = useState<unknown>()
  const [is_busy, setBusy] = useState(false)
  const attempt = (run: () => Promise<void>) => async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    await run().catch(setError)
    setBusy(false)
  }
  return { error, is_busy, attempt }
}

function PasswordForm({ onStep }: { onStep: (step: NextStep) => void }) {
  const [email, setEmail] = useState("")
  const [password, setPassword] = useState("")
  const { error, is_busy, attempt } = useAttempt()
  return (
    <form onSubmit={attempt(async () => onStep(await signIn(email, password)))}>
      {error !== undefined && <Trouble error={error} />}
      <Field
        label="Email"
        name="email"
        type="email"
        autocomplete="username"
        required
        value={email}
        onInput={setEmail}
      />
      <Field
        label="Password"
        name="password"
        type="password"
        autocomplete="current-password"
        required
        value={password}
        onInput={setPassword}
      />
      <Button type="submit" look="go" is_busy={is_busy}>
        Sign in
      </Button>
    </form>
  )
}

function CodeForm({ challenge }: { challenge: string }) {
  const [code, setCode] = useState("")
  const { error, is_busy, attempt } = useAttempt()
  const send = () => signInWithCode(challenge, code.trim())
  return (
    <form onSubmit={attempt(send)}>
      {error !== undefined && <Trouble error={error} />}
      <Field
        label="Code of your authenticator app, or a backup code"
        name="code"
        autocomplete="one-time-code"
        required
        is_code
        value={code}
        onInput={setCode}
      />
      <Button type="submit" look="go" is_busy={is_busy}>
        Continue
      </Button>
    </form>
  )
}

function KeyForm() {
  const [key, setKey] = useState("")
  const { error, is_busy, attempt } = useAttempt()
  const send = () => signInWithKey(key.trim())
  return (
    <form onSubmit={attempt(send)}>
      {error !== undefined && <Trouble error={error} />}
      <Field
        label="API key"
        name="key"
        type="password"
        required
        is_code
        value={key}
        onInput={setKey}
        hint="This tab keeps the key until you close it. Nothing else stores it."
      />
      <Button type="submit" look="go" is_busy={is_busy}>
        Use this key
      </Button>
    </form>
  )
}
