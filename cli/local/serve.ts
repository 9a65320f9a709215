import { log } from "../../src/core/log"
import type { Running } from "../../src/server"
import type { SetupToken } from "../../src/session/setup/setup-token"
import type { Action } from "../context"
import { usage } from "../failure"
import { STOPPING, startServer, untilStopped } from "./run"
import { type BeginOptions, begins, localSettings, sameData } from "./settings"

/** Runs the service until a signal. What it does is in its log on stderr. */
export const serve: Action<BeginOptions> = async (context, options) => {
  if (context.flags.dryRun) throw usage("--dry-run means nothing here", "see `belfry config show`")
  const running = await startServer(localSettings(context.flags, options), {
    mode: "serve",
    begin: begins(options),
  })
  const { url, smtp, data_dir } = running
  // Before the first line is out: whoever reads it may stop us at once.
  const stopped = untilStopped(running, () => context.output.note(STOPPING))
  if (context.flags.json !== undefined) {
    await context.output.line({ url, smtp, data_dir }, () => "")
  } else {
    await context.output.note(`belfry serves ${url}`)
  }
  await tellNobodyHasKey(running, context.output.again(`belfry init${sameData(options)}`))
  if (running.setup) process.stderr.write(setupHint(running.setup, url))
  await stopped
  return undefined
}

/** Also off a terminal: in a container the log is the only console there is. */
const setupHint = ({ token, path }: SetupToken, url: string) =>
  `This instance has no owner yet. The setup token, also in ${path}:\n  ${token}\n` +
  `Become the owner with it: belfry setup ${url}\n`

/** Without an account every request is 401: what makes one should not have to be guessed. */
async function tellNobodyHasKey({ store }: Running, next: string): Promise<void> {
  const { firstProject } = await import("../../src/accounts/first")
  const [project] = await firstProject(store.read)
  if (!project) log.warn("there is no account yet, so nobody has a key: stop, then init", { next })
}
