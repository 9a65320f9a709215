import { hostAndPort, type Settings } from "../core/config"
import type { Secrets } from "../core/secrets"
import type { Store } from "../store/store"
import { firstProject } from "../tenancy/setup"
import { plan } from "./complain"
import { type MailboxServer, openMailbox } from "./smtp-server"

interface Storage {
  store: Store
  secrets: Secrets
}

/** Starts the embedded mailbox where it is wanted; `undo` learns how to stop it. */
export async function startMailbox(
  settings: Settings,
  { store, secrets }: Storage,
  undo: (() => unknown)[],
) {
  if (!settings["mailbox.enabled"]) return undefined
  let fallback: string | undefined
  const server: MailboxServer = await openMailbox({
    store,
    secrets,
    listen: hostAndPort(settings["mailbox.listen"]),
    fallback_project: async () => {
      fallback ??= (await firstProject(store.read))[0]?.project_id // there may be none yet
      return fallback
    },
    complained: (message_id) => plan(store, message_id),
  })
  undo.push(() => server.close())
  return server
}
