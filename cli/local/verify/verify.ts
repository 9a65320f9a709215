import { isSecret } from "../../../src/lib/signature"
import type { Action, Context } from "../../context"
import { type Exit, exits, usage } from "../../failure"
import { trial_fields } from "../../fields"
import { onInterrupt } from "../../interrupt"
import { receiverAddress } from "../../listen/address"
import { listenSecret } from "../../listen/secret"
import { millis } from "../../time"
import { headLine, trialLine, waitingLine } from "./lines"
import { type Asked, type Trial, trials } from "./trials"

interface VerifyOptions {
  secret?: string
  skipVerify?: boolean
}

/** Scores a receiver: 0 when it did everything right, 8 when some, 1 when nothing. */
export const verify: Action<VerifyOptions> = async (context, { secret, skipVerify }, to = "") => {
  const { output, paint } = context
  const url = receiverAddress(to)
  output.promises(trial_fields)
  const known = secret ?? listenSecret(context)
  if (!isSecret(known))
    throw usage("--secret is not a webhook secret", "a webhook secret begins with whsec_")
  const done = await tried(context, url, known, skipVerify)
  // One JSON text can only be whole at its end.
  if (output.form === "json") await output.list(done, [])

  const passed = done.filter((trial) => trial.passed).length
  const notes = done.filter((trial) => trial.passed && trial.note !== null)
  for (const { name, note } of notes) await output.note(paint.dim(`${name}: ${note}`))
  await output.note(`${passed} of ${done.length} answers are right`)
  return exitOf(passed, done.length)
}

function exitOf(passed: number, count: number): Exit {
  if (passed === count) return exits.done
  return passed === 0 ? exits.failed : exits.partly_failed
}

/** Each line as soon as it is known; until then, for people, how long it is waited for. */
async function tried(
  context: Context,
  url: string,
  secret: string,
  skip_verify: boolean | undefined,
): Promise<Trial[]> {
  const { output, paint, terminal } = context
  const paper = { paint, width: terminal.width }
  const waiting = new Waiting((asked, since) =>
    output.passing(waitingLine(asked, millis() - since, paper)),
  )
  onInterrupt(() => {
    waiting.end()
    output.passing("")
    process.exit(exits.interrupted)
  })
  if (output.form === "human") await output.raw(`${headLine(paper)}\n`)
  const done: Trial[] = []
  try {
    for await (const trial of trials({ url, secret, skip_verify, begun: waiting.begin })) {
      waiting.end()
      done.push(trial)
      output.passing("")
      if (output.form !== "json") await output.line(trial, () => trialLine(trial, paper))
    }
  } finally {
    waiting.end()
    output.passing("")
  }
  return done
}

const TICK_MILLISECONDS = 1000

/** Tells once at the beginning, and then every second, what is waited for. */
class Waiting {
  readonly #tell: (asked: Asked, since: number) => void
  #timer: Timer | undefined

  constructor(tell: (asked: Asked, since: number) => void) {
    this.#tell = tell
  }

  readonly begin = (asked: Asked): void => {
    const since = millis()
    this.#tell(asked, since)
    this.#timer = setInterval(() => this.#tell(asked, since), TICK_MILLISECONDS)
  }

  end(): void {
    clearInterval(this.#timer)
  }
}
