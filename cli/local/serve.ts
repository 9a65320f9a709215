import type { SetupToken } from "../../src/session/setup/setup-token"
import type { Action } from "../context"
import { usage } from "../failure"
import { STOPPING, startServer, untilStopped } from "./run"
import { type LocalOptions, localSettings } from "./settings"

/** Runs the service until a signal. What it does is in its log on stderr. */
export const serve: Action<LocalOptions> = async (context, options) => {
  if (context.flags.dryRun) throw usage("--dry-run means nothing here", "see `belfry config show`")
  const running = await startServer(localSettings(context.flags, options), "serve")
  const { url, smtp, data_dir } = running
  if (context.flags.json !== undefined) {
    await context.output.line({ url, smtp, data_dir }, () => "")
  } else {
    await context.output.note(`belfry serves ${url}`)
  }
  if (running.setup) process.stderr.write(setupHint(running.setup))
  await untilStopped(running, () => context.output.note(STOPPING))
  return undefined
}

/** Also off a terminal: in a container the log is the only console there is. */
const setupHint = ({ token, path }: SetupToken) =>
  `This instance has no owner yet. The setup token, also in ${path}:\n  ${token}\n`
