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
  await untilStopped(running, () => context.output.note(STOPPING))
  return undefined
}
