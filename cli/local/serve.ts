import { announce, isJsonLog, log } from "../../src/core/log"
import type { Running } from "../../src/server"
import type { SetupToken } from "../../src/tenancy/setup"
import type { Action, Context } from "../lib/context"
import { type Exit, usage } from "../lib/errors"
import { inFormOfLog, STOPPING, settledMailbox, startServer, untilStopped } from "./run"
import { type BeginOptions, begins, localSettings, sameData } from "./settings"
import { exitAfterStop } from "./upgrade-entry"

interface ServeOptions extends BeginOptions {
  hold?: boolean
}

/** Runs the service until a signal. What it does is in its log on stderr. */
export const serve: Action<ServeOptions> = async (context, options) => {
  if (context.flags.dryRun)
    throw usage("--dry-run is not possible with this command", "see `belfry config show`")
  try {
    return await run(context, options)
  } catch (error) {
    throw inFormOfLog(error)
  }
}

async function run(context: Context, options: ServeOptions): Promise<Exit> {
  const base = localSettings(context.flags, options)
  const mailbox = await settledMailbox(base)
  const set = [...(options.set ?? []), ...mailbox]
  const loaded = localSettings(context.flags, { ...options, set })
  const running = await startServer(loaded, {
    mode: "serve",
    begin: begins(options),
    hold: options.hold ?? false,
  })
  const { url, smtp, data_dir } = running
  const note = (text: string) => (isJsonLog() ? undefined : context.output.note(text))
  // Before the first line is printed: its reader may stop the server at once.
  const stopped = untilStopped(running, () => note(STOPPING))
  if (context.flags.json !== undefined) {
    await context.output.line({ url, smtp, data_dir }, () => "")
  } else {
    await note(`belfry serves ${url}`)
  }
  if (mailbox.length > 0)
    log.warn(OTHER_MAILBOX, { usual: base.values["mailbox.listen"], port: smtp.mailbox })
  await notifyNobodyHasKey(running, context.output.again(`belfry init${sameData(options)}`))
  if (running.setup) notifySetup(running.setup, url)
  await stopped
  return exitAfterStop(data_dir)
}

/** Another program has the usual port, and no setting names another. */
const OTHER_MAILBOX =
  "The usual port of the embedded mailbox is taken, so the mailbox uses a free one."

/** Also off a terminal: in a container the log is the only console there is. */
function notifySetup({ token, path }: SetupToken, url: string) {
  const next = `belfry setup ${url}`
  if (isJsonLog())
    return announce("This instance has no owner yet.", { setup_token: token, path, next })
  process.stderr.write(
    `This instance has no owner yet. The setup token, also in ${path}:\n  ${token}\n` +
      `Become the owner with it: ${next}\n`,
  )
}

/** Without an account every request is 401: what makes one should not have to be guessed. */
async function notifyNobodyHasKey({ store }: Running, next: string): Promise<void> {
  const { firstProject } = await import("../../src/tenancy/setup")
  const [project] = await firstProject(store.read)
  if (!project)
    log.warn("there is no account yet, so there is no API key: stop the server, then run init", {
      next,
    })
}
