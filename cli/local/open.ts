import type { Action } from "../lib/context"
import { exits, Failure, usage } from "../lib/errors"
import { askServer } from "./admin-socket"
import { whereServersRun } from "./find-server"
import { type LocalOptions, localSettings } from "./settings"

type SignInLink = { open_url: string; expires_in: number }

/** Prints a new link to the pages of the running `up`. Each one signs in once. */
export const open: Action<LocalOptions> = async (context, options) => {
  if (context.flags.dryRun) throw usage("--dry-run is not possible with this command")
  context.output.promises(["open_url", "expires_in"])
  const loaded = localSettings(context.flags, options, { "log.level": "warn" })
  const link = await askServer<SignInLink>(loaded, { operation: "sign_in_link" })
  if (!link) throw noServer(loaded.values.data_dir)
  const minutes = link.expires_in / 60
  await context.output.record(link, () => link.open_url, link.open_url)
  await context.output.note(`It works once, for ${minutes} minutes, in a browser on this machine.`)
}

function noServer(data_dir: string): Failure {
  const hint = whereServersRun() ?? "start one with `belfry up`"
  const message = `No server runs on the data in ${data_dir}.`
  return new Failure(exits.unreachable, "unreachable", message, { hint })
}
