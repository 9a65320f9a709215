import { isSecret } from "../../../src/lib/signature"
import type { Action } from "../../context"
import { exits, usage } from "../../failure"
import { receiverAddress } from "../../listen/address"
import { forwardingSecret } from "../../listen/secret"
import type { Column } from "../../table"
import { type Trial, trials } from "./trials"

interface VerifyOptions {
  secret?: string
  skipVerify?: boolean
}

const columns: Column<Trial>[] = [
  {
    title: "",
    cell: ({ passed }) => (passed ? "✓" : "✗"),
    paint: (text, { passed }, paint) => (passed ? paint.green(text) : paint.red(text)),
  },
  { title: "DELIVERY", cell: ({ name }) => name },
  { title: "WHAT", cell: ({ about }) => about, flexible: true },
  { title: "EXPECTED", cell: ({ expected }) => expected },
  { title: "ANSWER", cell: ({ response_status, error }) => String(response_status ?? error) },
  { title: "TIME", cell: ({ duration_ms }) => `${duration_ms} ms` },
]

/** Scores a receiver: 0 when it did everything right, 8 when some, 1 when nothing. */
export const verify: Action<VerifyOptions> = async (context, { secret, skipVerify }, to = "") => {
  const { output, paint } = context
  const url = receiverAddress(to)
  const known = secret ?? (await forwardingSecret(context.client()))
  if (!isSecret(known)) throw usage("--secret is not a webhook secret", "it begins with whsec_")
  await output.note(paint.dim("trying it; this takes some seconds"))
  const done: Trial[] = []
  for await (const trial of trials(url, known, skipVerify)) done.push(trial)
  await output.list(done, columns)

  const passed = done.filter((trial) => trial.passed).length
  const notes = done.filter((trial) => trial.passed && trial.note !== null)
  for (const { name, note } of notes) await output.note(paint.dim(`${name}: ${note}`))
  await output.note(`${passed} of ${done.length} as they should be`)
  if (passed === done.length) return exits.done
  return passed === 0 ? exits.failed : exits.partly_failed
}
